/* SPDX-License-Identifier: Apache-2.0 */

#include "state.h"

#include <errno.h>
#include <unistd.h>

/* A state is a few hundred bytes and the annotations, which Kubernetes limits to 256 KiB. */
enum { STATE_MAX = 1024 * 1024 };

int state_read(const char **ret_text, size_t *ret_size)
{
	/* Pages that a state does not reach are never touched, so its size costs nothing. */
	static char text[STATE_MAX + 1];
	size_t size = 0;
	ssize_t part;

	do {
		part = read(STDIN_FILENO, text + size, sizeof(text) - size);
		size += part > 0 ? (size_t)part : 0;
	} while (part > 0 || (part < 0 && errno == EINTR));
	if (part < 0)
		return -errno;
	if (size > STATE_MAX)
		return -EFBIG;
	*ret_text = text;
	*ret_size = size;
	return 0;
}
