/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/path.h"

enum {
	SIZE_MAX_READ = 4 * 1024 * 1024,
	LABEL_MAX = 64 * 1024, /* the kernel's own limit of names and of a value */
};

void config_file_close(struct config_file *file)
{
	free(file->path);
	text_clear(&file->text);
	*file = (struct config_file){0};
}

/* Tells a user who lacks the permission how to get it. */
static int config_file_complain(const char *what, const char *path)
{
	if ((errno == EACCES || errno == EPERM) && geteuid() != 0)
		return output_complain("cannot %s %s: %m\n    It is not yours; try it as root, with sudo.", what, path);
	return output_complain("cannot %s %s: %m", what, path);
}

/* The path of a file that does not exist, below directories that may be symlinks, or may not exist either. */
static char *config_file_make_absolute(const char *path)
{
	_cleanup_free_ char *copy = strdup(path), *above = NULL;
	char *slash = copy ? strrchr(copy, '/') : NULL;
	const char *name = slash ? slash + 1 : path;

	if (!copy)
		return NULL;
	if (slash)
		*slash = '\0';
	above = realpath(!slash ? "." : slash == copy ? "/" : copy, NULL);
	if (above)
		return text_format("%s/%s", strcmp(above, "/") == 0 ? "" : above, name);
	return path_absolute(path);
}

static int config_file_read_existing(struct config_file *file)
{
	struct stat *status = &file->status;
	_cleanup_close_ int fd = -1;
	int r;

	/* Opening a device may already do something: a watchdog then restarts the machine. */
	if (stat(file->path, status) < 0)
		return config_file_complain("read", file->path);
	/* O_NONBLOCK: a FIFO that has come into its place must not make us wait for a writer. */
	if (S_ISREG(status->st_mode))
		fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (S_ISREG(status->st_mode) && (fd < 0 || fstat(fd, status) < 0))
		return config_file_complain("read", file->path);
	if (!S_ISREG(status->st_mode))
		return output_complain("%s is not a regular file", file->path);
	r = fd_read_all(fd, SIZE_MAX_READ, &file->text.data, &file->text.size);
	if (r == -EFBIG)
		return output_complain("%s is too large for a configuration file", file->path);
	file->exists = true;
	errno = -r;
	return r < 0 ? config_file_complain("read", file->path) : 0;
}

int config_file_read(const char *path, struct config_file *ret)
{
	struct stat link;

	ret->path = realpath(path, NULL);
	if (ret->path)
		return config_file_read_existing(ret);
	if (errno != ENOENT)
		return config_file_complain("read", path);
	if (lstat(path, &link) == 0)
		return output_complain(
			"%s is a symbolic link to a file that does not exist\n    Make that file, or remove the link.",
			path);
	ret->path = config_file_make_absolute(path);
	return ret->path ? 0 : config_file_complain("read", path);
}

/* ---- writing ---- */

/* Access lists and security labels. Those that this file system or this user cannot set are left out, as by cp -a. */
static void config_file_copy_labels(int from, int to)
{
	_cleanup_free_ char *names = malloc(LABEL_MAX), *value = malloc(LABEL_MAX);
	ssize_t size, length;

	if (!names || !value)
		return;
	size = flistxattr(from, names, LABEL_MAX);
	for (const char *name = names; size > 0 && name < names + size; name += strlen(name) + 1) {
		length = fgetxattr(from, name, value, LABEL_MAX);
		if (length >= 0)
			(void)fsetxattr(to, name, value, (size_t)length, 0);
	}
}

static int config_file_fill(const struct config_file *file, const struct text *text, mode_t mode, int fd)
{
	_cleanup_close_ int old = -1;
	struct stat status;
	int r;

	if (file->exists) {
		mode = file->status.st_mode & ALLPERMS;
		old = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (old < 0 || fstat(fd, &status) < 0)
			return -1;
		if ((status.st_uid != file->status.st_uid || status.st_gid != file->status.st_gid) &&
		    fchown(fd, file->status.st_uid, file->status.st_gid) < 0)
			return -1;
		config_file_copy_labels(old, fd);
	}
	if (fchmod(fd, mode) < 0)
		return -1;
	r = fd_write_all(fd, text->data, text->size);
	errno = -r;
	return r < 0 ? -1 : fsync(fd);
}

/* Whether somebody else has changed the file meanwhile; if so, says it. */
static bool config_file_has_changed(const struct config_file *file)
{
	struct stat now;

	if (lstat(file->path, &now) < 0
		    ? !file->exists
		    : file->exists && now.st_ino == file->status.st_ino && now.st_dev == file->status.st_dev &&
			      now.st_size == file->status.st_size &&
			      now.st_mtim.tv_sec == file->status.st_mtim.tv_sec &&
			      now.st_mtim.tv_nsec == file->status.st_mtim.tv_nsec)
		return false;
	(void)output_complain("%s has been changed meanwhile by somebody else\n    Nothing was written; try again.",
			      file->path);
	return true;
}

int config_file_write(struct config_file *file, const struct text *text, mode_t mode)
{
	const char *name = strrchr(file->path, '/') + 1;
	/* The dot keeps it out of sight of those that read every file of a directory. */
	_cleanup_free_ char *temporary = text_format("%.*s.%s.ctr-gpu", (int)(name - file->path), file->path, name);
	_cleanup_close_ int fd = -1;
	struct stat status;
	int r;

	if (!temporary)
		return output_no_memory();
	/* One that is there was left by a run that was killed: the state is locked. */
	(void)unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return config_file_complain("write", file->path);
	if (config_file_fill(file, text, mode, fd) < 0 || fstat(fd, &status) < 0)
		r = config_file_complain("write", file->path);
	else if (config_file_has_changed(file))
		r = EXIT_STATUS_FAILURE;
	else
		r = rename(temporary, file->path) < 0 ? config_file_complain("replace", file->path) : 0;
	if (r) {
		(void)unlink(temporary);
		return r;
	}
	file->status = status;
	file->exists = true;
	return 0;
}

int config_file_unlink(struct config_file *file)
{
	if (config_file_has_changed(file))
		return EXIT_STATUS_FAILURE;
	if (unlink(file->path) < 0)
		return config_file_complain("remove", file->path);
	file->exists = false;
	return 0;
}

/* ---- directories ---- */

json_t *config_file_missing_directories(const char *file)
{
	_cleanup_free_ char *path = strdup(file);
	_cleanup_json_ json_t *missing = json_array();
	char *slash;

	if (!path || !missing)
		return NULL;
	while ((slash = strrchr(path, '/')) && slash > path) {
		*slash = '\0';
		if (access(path, F_OK) == 0)
			break;
		if (json_array_insert_new(missing, 0, json_string(path)) < 0)
			return NULL;
	}
	return json_incref(missing);
}

int config_file_make_directories(const json_t *directories)
{
	const json_t *path;
	size_t i;

	json_array_foreach (directories, i, path)
		if (mkdir(json_string_value(path), 0755) < 0 && errno != EEXIST)
			return config_file_complain("make the directory", json_string_value(path));
	return 0;
}

void config_file_remove_directories(const json_t *directories)
{
	const char *path;

	for (size_t i = json_array_size(directories); i-- > 0;) {
		path = json_string_value(json_array_get(directories, i));
		if (path && rmdir(path) < 0 && errno != ENOENT)
			return;
	}
}
