/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked of an image before the driver gets it: any bytes, with nothing but a NUL behind them. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "vcuda/server/code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *image = calloc(1, size + 1);

	if (!image)
		return 0;
	memcpy(image, data, size);
	if (image_is_whole(image, size))
		(void)image_count_globals(image, size);
	free(image);
	return 0;
}
