/* SPDX-License-Identifier: Apache-2.0 */

#include "system/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "system/trusted_file.h"

#define FOLDER PATH_RUN

enum { BOOT_MAX = 64, SWEPT_MAX = 1000 };

int boot_cache_read(const char *name, size_t max, char **ret_data, size_t *ret_size)
{
	char path[64];
	_cleanup_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), FOLDER "/%s", name);
	fd = trusted_file_open(path, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_RDONLY);
	return fd < 0 ? fd : fd_read_all(fd, max, ret_data, ret_size);
}

/* Of a name and the number of the process that writes it. */
static bool boot_cache_is_unfinished(const char *name)
{
	const char *number = strrchr(name, '.');

	return number && number[1] && !number[1 + strspn(number + 1, "0123456789")];
}

/*
 * What processes that were killed have left. One that is at it meanwhile finds its file gone, and keeps nothing this
 * time.
 */
static void boot_cache_sweep(int folder, const char *name)
{
	_cleanup_strv_ struct strv names = {0};

	(void)fd_list_names(folder, ".", boot_cache_is_unfinished, SWEPT_MAX, &names);
	for (size_t i = 0; i < names.count; i++)
		if (strncmp(names.items[i], name, strlen(name)) == 0 && names.items[i][strlen(name)] == '.')
			(void)unlinkat(folder, names.items[i], 0);
}

void boot_cache_write(const char *name, const char *text)
{
	_cleanup_close_ int folder = -1, fd = -1;
	char written[64];

	if (geteuid() != 0 || (mkdir(FOLDER, 0700) < 0 && errno != EEXIST))
		return;
	folder = trusted_file_open(FOLDER, S_IFDIR, TRUSTED_FILE_ROOT_ONLY, O_RDONLY);
	if (folder < 0)
		return;
	boot_cache_sweep(folder, name);
	/* In another pid namespace another process may have our number. */
	(void)snprintf(written, sizeof(written), "%s.%d", name, (int)getpid());
	fd = openat(folder, written, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (fd_write_all(fd, text, strlen(text)) < 0 || renameat(folder, written, folder, name) < 0)
		(void)unlinkat(folder, written, 0);
}

char *boot_cache_boot(void)
{
	char *boot;

	if (fd_read_kernel_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", BOOT_MAX, &boot) < 0)
		return NULL;
	boot[strcspn(boot, "\n")] = '\0';
	return boot;
}

void boot_cache_remove(const char *name)
{
	_cleanup_close_ int folder =
		geteuid() == 0 ? trusted_file_open(FOLDER, S_IFDIR, TRUSTED_FILE_ROOT_ONLY, O_RDONLY) : -1;

	if (folder < 0)
		return;
	boot_cache_sweep(folder, name);
	(void)unlinkat(folder, name, 0);
}
