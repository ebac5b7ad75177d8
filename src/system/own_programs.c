/* SPDX-License-Identifier: Apache-2.0 */

#include "system/own_programs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "model/version.h"
#include "system/elf_file.h"

char *own_programs_beside(const char *name)
{
	_cleanup_free_ char *self = NULL;
	const char *slash;
	char *path;

	if (fd_read_link_at(AT_FDCWD, "/proc/self/exe", &self) < 0 || !(slash = strrchr(self, '/')))
		return NULL;
	return str_format(&path, "%.*s/%s", (int)(slash - self), self, name) == 0 ? path : NULL;
}

/*
 * Whether only the system and the caller can change the file. In a user namespace the files of the host's root belong
 * to the overflow uid, and so does the running program: its owner is trusted already.
 */
bool own_programs_is_trusted(const struct stat *file)
{
	struct stat running;

	if (!S_ISREG(file->st_mode) || (file->st_mode & (S_IWGRP | S_IWOTH)))
		return false;
	if (file->st_uid == 0 || file->st_uid == geteuid())
		return true;
	return stat("/proc/self/exe", &running) == 0 && file->st_uid == running.st_uid;
}

int own_programs_find_driverd(const struct settings *settings, const char *advice, char **ret, struct err *err)
{
	static const char *const usual[] = {"ctr-gpu-driverd", "../libexec/ctr-gpu/ctr-gpu-driverd",
					    CTR_GPU_LIBEXECDIR "/ctr-gpu-driverd"};
	_cleanup_free_ char *path = NULL;
	bool found = false;
	struct stat st;

	/* A path that is set is the only one. */
	for (size_t i = 0; i < (settings->driverd ? 1 : ARRAY_SIZE(usual)) && !found; i++) {
		const char *place = settings->driverd ? settings->driverd : usual[i];

		free(path);
		path = settings->driverd || place[0] == '/' ? strdup(place) : own_programs_beside(place);
		found = path && stat(path, &st) == 0;
	}
	if (!found)
		return err_set_advised(
			err, -ENOENT,
			("ctr-gpu-driverd, which asks the driver's libraries, is missing (last looked for %s)",
			 path ? path : "it beside this program"),
			("Install all of ctr-gpu.%s%s", advice ? " " : "", advice ? advice : ""));
	if (!own_programs_is_trusted(&st))
		return err_set_advised(err, CTR_GPU_E_NO_PERMISSION,
				       ("%s is not started, since others than root and the caller may change it", path),
				       ("Run: chown root %s && chmod go-w %s", path, path));
	*ret = steal_ptr(path);
	return 0;
}

int own_programs_read_version(const char *path, char **ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t size;

	return fd < 0 ? -errno : elf_file_read_note(fd, VERSION_NOTE_SECTION, VERSION_NOTE_OWNER, ret, &size);
}
