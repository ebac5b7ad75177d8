/* SPDX-License-Identifier: Apache-2.0 */

#include "state.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* A state is a few hundred bytes and the annotations, which Kubernetes limits to 256 KiB. */
enum { STATE_MAX = 1024 * 1024 };

int state_read(char **ret_text, size_t *ret_size)
{
	char *text;
	size_t size = 0;
	ssize_t part;

	text = malloc(STATE_MAX + 1);
	if (!text)
		return -ENOMEM;
	do {
		part = read(STDIN_FILENO, text + size, STATE_MAX + 1 - size);
		size += part > 0 ? (size_t)part : 0;
	} while (part > 0 || (part < 0 && errno == EINTR));
	if (part < 0 || size > STATE_MAX) {
		int error = part < 0 ? errno : EFBIG;

		free(text);
		return -error;
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}
