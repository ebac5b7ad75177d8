/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"

enum {
	SIZE_MAX_READ = 4 * 1024 * 1024,
	LABEL_MAX = 64 * 1024, /* the kernel's own limit of names and of a value */
	WAIT_MS = 10 * 1000,   /* for another process that writes the same file */
	NAP_MS = 20,
};

void config_file_close(struct config_file *file)
{
	free(file->path);
	text_buffer_clear(&file->text);
	*file = (struct config_file){0};
}

/* Whether the file or its directory has an attribute of chattr(1) that keeps even root from changing it. */
static bool config_file_is_immutable(const char *path)
{
	_cleanup_free_ char *above = strdup(path);
	struct statx own = {0}, its = {0};

	if (above && strrchr(above, '/') > above)
		*strrchr(above, '/') = '\0';
	(void)statx(AT_FDCWD, path, 0, STATX_TYPE, &own);
	(void)statx(AT_FDCWD, above ? above : "/", 0, STATX_TYPE, &its);
	return (own.stx_attributes | its.stx_attributes) & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND);
}

/* Prints the error and, where permissions are missing, what to do about it. */
static int config_file_print_error(const char *what, const char *path)
{
	int error = errno;
	const char *next = error == EBUSY ? "Something is mounted on it; change what is mounted there, and where."
			   : error != EACCES && error != EPERM ? NULL
			   : geteuid() != 0                    ? "It is not yours; try it as root, with sudo."
			   : config_file_is_immutable(path)
				   ? "It was made immutable (see lsattr); chattr -ia allows it to be changed."
				   : NULL;

	errno = error;
	return next ? output_print_advised(("cannot %s %s: %m", what, path), ("%s", next))
		    : output_print("cannot %s %s: %m", what, path);
}

/*
 * The path of a file that does not exist, below directories that may be symlinks, or may not exist either: that which
 * realpath(3) will give once they are made.
 */
static char *config_file_make_absolute(const char *path)
{
	_cleanup_free_ char *absolute = path_absolute(path), *above = absolute ? strdup(absolute) : NULL, *real = NULL;
	char *slash = above;

	while (slash && !real && (slash = strrchr(above, '/'))) {
		*slash = '\0';
		real = realpath(slash == above ? "/" : above, NULL);
		if (slash == above || (!real && errno != ENOENT))
			break;
	}
	if (!real)
		return absolute ? strdup(absolute) : NULL;
	return text_buffer_format("%s%s", streq(real, "/") ? "" : real, absolute + (slash - above));
}

static int config_file_read_existing(struct config_file *file)
{
	struct stat *status = &file->status;
	_cleanup_close_ int fd = -1;
	int r;

	fd = fd_open_file_at(AT_FDCWD, file->path, O_NOFOLLOW);
	if (fd == -EINVAL)
		return output_print_advised(("%s is not a regular file", file->path),
					    ("Name another, or write a file there."));
	errno = -fd;
	if (fd < 0 || fstat(fd, status) < 0)
		return config_file_print_error("read", file->path);
	r = fd_read_all(fd, SIZE_MAX_READ, &file->text.data, &file->text.size);
	if (r == -EFBIG)
		return output_print_advised(("%s is too large for a configuration file", file->path),
					    ("See what is in it."));
	file->exists = true;
	errno = -r;
	return r < 0 ? config_file_print_error("read", file->path) : 0;
}

int config_file_read(const char *path, struct config_file *ret)
{
	struct stat link;

	ret->path = realpath(path, NULL);
	if (ret->path)
		return config_file_read_existing(ret);
	if (errno != ENOENT)
		return config_file_print_error("read", path);
	if (lstat(path, &link) == 0 && S_ISLNK(link.st_mode))
		return output_print_advised(("%s is a symbolic link to a file that does not exist", path),
					    ("Make that file, or remove the link."));
	ret->path = config_file_make_absolute(path);
	return ret->path ? 0 : config_file_print_error("read", path);
}

/* ---- writing ---- */

int config_file_make_directories(const char *file)
{
	_cleanup_free_ char *path = strdup(file);

	if (!path)
		return output_no_memory();
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return config_file_print_error("make the directory", path);
		*slash = '/';
	}
	return 0;
}

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

/*
 * Opens the file's directory. The owner of a directory above may have put a link there since the path was resolved.
 * Return: descriptor; -1 with errno set.
 */
static int config_file_open_directory(const struct config_file *file)
{
	_cleanup_free_ char *path = strndup(file->path, (size_t)(strrchr(file->path, '/') - file->path)), *real = NULL;
	_cleanup_close_ int fd = path ? open(*path ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	char link[32];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	/* Without /proc, a package is installed or removed in a tree that no other process changes. */
	if (fd < 0 || fd_read_link_at(AT_FDCWD, link, &real) < 0 || streq(real, *path ? path : "/"))
		return steal_fd(&fd);
	errno = ELOOP;
	return -1;
}

static int config_file_fill(const struct config_file *file, const struct text_buffer *text, mode_t mode, int directory,
			    int fd)
{
	_cleanup_close_ int old = -1;
	struct stat status;
	int r;

	if (file->exists) {
		mode = file->status.st_mode & ALLPERMS;
		old = fd_open_file_at(directory, strrchr(file->path, '/') + 1, O_NOFOLLOW);
		errno = -old;
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

/* Whether another process has changed the file since it was read. If so, prints an error. */
static bool config_file_has_changed(const struct config_file *file, int directory)
{
	struct stat now;

	if (fstatat(directory, strrchr(file->path, '/') + 1, &now, AT_SYMLINK_NOFOLLOW) < 0
		    ? !file->exists
		    : file->exists && now.st_ino == file->status.st_ino && now.st_dev == file->status.st_dev &&
			      now.st_size == file->status.st_size &&
			      now.st_mtim.tv_sec == file->status.st_mtim.tv_sec &&
			      now.st_mtim.tv_nsec == file->status.st_mtim.tv_nsec)
		return false;
	(void)output_print_advised(("%s has been changed meanwhile by another process", file->path),
				   ("Nothing was written; try again."));
	return true;
}

/*
 * A temporary file that is there is being written by another process, which has it locked, or was left by one that was
 * killed. Return: 0 if it is gone; -EWOULDBLOCK if it is being written; another negative errno.
 */
static int config_file_remove_temporary(int directory, const char *name)
{
	_cleanup_close_ int fd = fd_open_file_at(directory, name, O_NOFOLLOW);
	struct stat locked, named;

	/* File systems without locks have none. */
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return -EWOULDBLOCK;
	/* Its writer may have renamed it since it was opened. */
	if (fd >= 0 && (fstat(fd, &locked) < 0 || fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
			named.st_ino != locked.st_ino || named.st_dev != locked.st_dev))
		return 0;
	return unlinkat(directory, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/*
 * Makes the temporary file and locks it. Every writer takes this lock, so until the file is renamed or removed no
 * other process changes the configuration by these functions. Return: descriptor; -ETIMEDOUT; negative errno.
 */
static int config_file_make_temporary(int directory, const char *name)
{
	const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};

	for (int waited = 0; waited < WAIT_MS; waited += NAP_MS) {
		_cleanup_close_ int fd =
			openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		struct stat st;
		int r;

		if (fd < 0 && errno != EEXIST)
			return -errno;
		/* Before the lock is taken, another process may take the file for one that was left. */
		if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fstat(fd, &st) == 0 &&
		    st.st_nlink > 0)
			return steal_fd(&fd);
		r = fd < 0 ? config_file_remove_temporary(directory, name) : 0;
		if (r < 0 && r != -EWOULDBLOCK)
			return r;
		if (r == -EWOULDBLOCK)
			(void)nanosleep(&nap, NULL);
	}
	return -ETIMEDOUT;
}

int config_file_write(struct config_file *file, const struct text_buffer *text, mode_t mode)
{
	const char *name = strrchr(file->path, '/') + 1;
	/* The dot keeps it out of sight of those that read every file of a directory. */
	_cleanup_free_ char *temporary = text_buffer_format(".%s.ctr-gpu", name);
	_cleanup_close_ int directory = -1, fd = -1;
	struct stat status;
	int r = !temporary ? output_no_memory() : file->exists ? 0 : config_file_make_directories(file->path);

	if (r)
		return r;
	directory = config_file_open_directory(file);
	if (directory < 0)
		return config_file_print_error("write", file->path);
	fd = config_file_make_temporary(directory, temporary);
	errno = -fd;
	if (fd < 0)
		return config_file_print_error("write", file->path);
	if (config_file_fill(file, text, mode, directory, fd) < 0 || fstat(fd, &status) < 0)
		r = config_file_print_error("write", file->path);
	else if (config_file_has_changed(file, directory))
		r = EXIT_STATUS_FAILURE;
	else
		r = renameat(directory, temporary, directory, name) < 0 ? config_file_print_error("replace", file->path)
									: 0;
	if (r) {
		(void)unlinkat(directory, temporary, 0);
		return r;
	}
	file->status = status;
	file->exists = true;
	return 0;
}

int config_file_unlink(struct config_file *file)
{
	_cleanup_close_ int directory = config_file_open_directory(file);

	if (directory < 0)
		return config_file_print_error("remove", file->path);
	if (config_file_has_changed(file, directory))
		return EXIT_STATUS_FAILURE;
	if (unlinkat(directory, strrchr(file->path, '/') + 1, 0) < 0)
		return config_file_print_error("remove", file->path);
	file->exists = false;
	return 0;
}
