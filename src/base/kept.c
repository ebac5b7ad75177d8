/* SPDX-License-Identifier: Apache-2.0 */

#include "base/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hostfile.h"

#define FOLDER "/run/ctr-gpu"

enum { BOOT_MAX = 64 };

int kept_read(const char *name, size_t max, char **ret_data, size_t *ret_size)
{
	char path[64];
	_cleanup_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), FOLDER "/%s", name);
	fd = hostfile_open(path, S_IFREG, HOSTFILE_ROOT_ONLY, O_RDONLY);
	return fd < 0 ? fd : fd_read_all(fd, max, ret_data, ret_size);
}

void kept_write(const char *name, const char *text)
{
	_cleanup_close_ int folder = -1, fd = -1;
	char written[64];

	if (geteuid() != 0 || (mkdir(FOLDER, 0700) < 0 && errno != EEXIST))
		return;
	folder = hostfile_open(FOLDER, S_IFDIR, HOSTFILE_ROOT_ONLY, O_RDONLY);
	(void)snprintf(written, sizeof(written), "%s.%d", name, (int)getpid());
	fd = folder < 0 ? -1 : openat(folder, written, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (fd_write_all(fd, text, strlen(text)) < 0 || renameat(folder, written, folder, name) < 0)
		(void)unlinkat(folder, written, 0);
}

char *kept_boot(void)
{
	char *boot;

	if (fd_read_kernels(AT_FDCWD, "/proc/sys/kernel/random/boot_id", BOOT_MAX, &boot) < 0)
		return NULL;
	boot[strcspn(boot, "\n")] = '\0';
	return boot;
}

void kept_remove(const char *name)
{
	_cleanup_close_ int folder = geteuid() == 0 ? hostfile_open(FOLDER, S_IFDIR, HOSTFILE_ROOT_ONLY, O_RDONLY) : -1;

	if (folder >= 0)
		(void)unlinkat(folder, name, 0);
}
