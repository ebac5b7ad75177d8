/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/facts.h"

#include <errno.h>
#include <fcntl.h>

#include "system/elf_file.h"

static int wsl_backend_facts_read_libcuda(const char *store, struct driver_facts *facts)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	if (str_format(&path, "%s/libcuda.so.1.1", store) < 0)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return 0;
	/* An old one does not tell; then nothing is known. */
	r = libcuda_read_version(fd, &facts->cuda_major, &facts->cuda_minor);
	return r == -ENOMEM ? r : 0;
}

int wsl_backend_facts(const struct settings *settings, void *seen, const struct adapter *const *selected, size_t count,
		      struct driver_facts *ret)
{
	struct driver_facts facts = {0};
	int r = 0;

	(void)settings, (void)seen;
	for (size_t i = 0; i < count && r == 0 && facts.cuda_major == 0; i++)
		if (selected[i]->vendor_id == PCI_VENDOR_NVIDIA && selected[i]->driver_store)
			r = wsl_backend_facts_read_libcuda(selected[i]->driver_store, &facts);
	if (r == 0)
		*ret = facts;
	return r;
}
