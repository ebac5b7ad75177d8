/* SPDX-License-Identifier: Apache-2.0 */

/* What kernels print is kept until somebody waits for the GPU, and is written to the process's stdout, or stderr, then. */

#include <stdio.h>
#include <string.h>

#include "sim.h"

enum { PRINTED_MAX = 1 << 20 };

static struct {
	char text[PRINTED_MAX];
	size_t bytes;
} printed[2];

void print_add(bool error, const char *text)
{
	const size_t bytes = strlen(text);

	if (bytes > PRINTED_MAX - printed[error].bytes)
		return;
	memcpy(printed[error].text + printed[error].bytes, text, bytes);
	printed[error].bytes += bytes;
}

void print_flush(void)
{
	FILE *const files[] = {stdout, stderr};

	for (int i = 0; i < 2; i++) {
		if (printed[i].bytes == 0)
			continue;
		(void)fwrite(printed[i].text, 1, printed[i].bytes, files[i]);
		(void)fflush(files[i]);
		printed[i].bytes = 0;
	}
}
