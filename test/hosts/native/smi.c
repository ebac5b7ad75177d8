/* SPDX-License-Identifier: Apache-2.0 */

/* nvidia-smi of a simulated native host: the nodes that it may use, one per line. Linked statically, as it needs no library. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

int main(void)
{
	char path[32];

	for (int i = 0; i < 32; i++) {
		(void)snprintf(path, sizeof(path), "/dev/nvidia%d", i);
		if (open(path, O_RDWR | O_CLOEXEC) >= 0 || errno == ENXIO)
			(void)puts(path);
	}
	return 0;
}
