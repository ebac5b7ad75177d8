/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as what is known of a native host; what is believed of it is written so that it is believed again. */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nvidia/internal.h"

#define HEAD "ctr-gpu nvidia 1 boot"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *copy(const void *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = copy(data, size), *printed = NULL, *again = NULL, *taken_apart = NULL;
	struct nvidia_cache known = {.head = copy(HEAD, strlen(HEAD))}, same = {.head = copy(HEAD, strlen(HEAD))};

	if (nvidia_cache_parse(text, size, &known) == 0) {
		for (size_t i = 0; i < known.gpu_count; i++)
			known.gpus[i].is_here = true;
		if (nvidia_cache_print(&known, &printed) < 0)
			abort();
		taken_apart = copy(printed, strlen(printed));
		if (nvidia_cache_parse(taken_apart, strlen(printed), &same) < 0)
			abort();
		for (size_t i = 0; i < same.gpu_count; i++)
			same.gpus[i].is_here = true;
		if (nvidia_cache_print(&same, &again) < 0 || strcmp(printed, again) != 0)
			abort();
	} else if (known.gpu_count > 0 || known.driver.version) {
		abort();
	}
	nvidia_cache_close(&known);
	nvidia_cache_close(&same);
	return 0;
}
