/* SPDX-License-Identifier: Apache-2.0 */

#include "system/noexec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"

/* mmap(2) looks at the mount first, and then finds that a directory cannot be mapped (do_mmap() in mm/mmap.c). */
bool noexec_is_set(int directory)
{
	void *page = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, directory, 0);

	if (page != MAP_FAILED)
		return munmap(page, 1), false;
	return errno == EPERM;
}

void noexec_find_mount(char *path)
{
	struct statx stx;
	char *slash;

	while (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, 0, &stx) == 0 && !(stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) &&
	       (slash = strrchr(path, '/')) && slash > path)
		*slash = '\0';
}

int noexec_add(struct plan *plan, const char *path)
{
	struct plan_obstacle obstacle = {.path = strdup(path)};

	if (!obstacle.path)
		return -ENOMEM;
	noexec_find_mount(obstacle.path);
	(void)str_format(&obstacle.reason,
			 "%s is mounted noexec: programs in containers cannot load the driver's libraries",
			 obstacle.path);
	(void)str_format(&obstacle.remedy,
			 "sudo mount -o remount,bind,exec %s; look in /etc/fstab for what mounts it so.",
			 obstacle.path);
	return plan_add_obstacle(plan, &obstacle);
}

int noexec_check(struct plan *plan, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && noexec_is_set(fd) ? noexec_add(plan, path) : 0;
}

int noexec_check_around(struct plan *plan, const char *file, char **seen)
{
	size_t length = (size_t)(strrchr(file, '/') - file);

	if (*seen && strlen(*seen) == length && memcmp(*seen, file, length) == 0)
		return 0;
	free(*seen);
	*seen = strndup(file, length);
	return *seen ? noexec_check(plan, *seen) : -ENOMEM;
}
