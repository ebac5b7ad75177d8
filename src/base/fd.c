/* SPDX-License-Identifier: Apache-2.0 */

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"

enum {
	FIRST_GUESS = 4096,
	LARGE_BUFFER = 64 * 1024,
	PARTS_AT_ONCE = 8,
	COPIED_AT_ONCE = 4096,
};

void *buffer_new(size_t size)
{
	const uintptr_t page = 4096;
	void *buffer = malloc(size);
	uintptr_t start = ((uintptr_t)buffer + page - 1) & ~(page - 1), end = ((uintptr_t)buffer + size) & ~(page - 1);

	/* Linux 5.14; where it is refused, the faults come. */
	if (buffer && size >= LARGE_BUFFER && end > start)
		(void)madvise((void *)start, end - start, MADV_POPULATE_WRITE);
	return buffer;
}

int fd_read_sized(int fd, off_t told, size_t max, char **ret_data, size_t *ret_size)
{
	size_t guess = told > 0 ? (size_t)told : FIRST_GUESS, capacity = (guess < max ? guess : max) + 1, size = 0;
	_cleanup_free_ char *data = buffer_new(capacity + 1);

	if (!data)
		return -ENOMEM;
	/* A file that reports a size ends there, so the read for its end is saved. */
	while (told <= 0 || size < (size_t)told) {
		ssize_t got = read(fd, data + size, capacity - size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		size += (size_t)got;
		if (size > max)
			return -EFBIG;
		if (size == capacity) {
			char *larger = realloc(data, capacity * 2 + 1);

			if (!larger)
				return -ENOMEM;
			data = larger;
			capacity *= 2;
		}
	}
	data[size] = '\0';
	if (ret_size)
		*ret_size = size;
	*ret_data = steal_ptr(data);
	return 0;
}

int fd_read_all(int fd, size_t max, char **ret_data, size_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return fd_read_sized(fd, S_ISREG(st.st_mode) ? st.st_size : 0, max, ret_data, ret_size);
}

int fd_read_file_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_size)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	/* Opening a device may already do something: a watchdog then restarts the machine. */
	if (fstatat(dirfd, path, &st, 0) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	/* O_NONBLOCK: a FIFO that has come into its place must not make us wait for a writer. */
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return fd_read_sized(fd, st.st_size, max, ret_data, ret_size);
}

static int fd_open_untrusted(int dirfd, const char *path, int flags, struct stat *ret_stat)
{
	_cleanup_close_ int handle = openat(dirfd, path, flags | O_PATH | O_CLOEXEC);
	int fd = handle < 0 ? -errno : fd_reopen(-1, handle, ret_stat);

	/* A user's file system may answer ENOENT, too, and have something else there the next time. */
	if (handle < 0 || fd != -ENOENT || access("/proc/self/fd", F_OK) == 0)
		return fd;
	/* Without /proc a package is installed or removed, in a tree that no other process changes; it is regular. */
	fd = openat(dirfd, path, flags | O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 || fstat(fd, ret_stat) < 0 ? -errno : fd;
}

int fd_open_file_at(int dirfd, const char *path, int flags)
{
	struct stat ignored;

	return fd_open_untrusted(dirfd, path, flags, &ignored);
}

static int fd_reopen_log(int handle, const char *path)
{
	const int flags = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	_cleanup_close_ int fd = -1;
	char own[32];
	struct stat st;

	if (fstat(handle, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) && st.st_uid != 0 && st.st_uid != geteuid())
		return -EPERM;
	(void)snprintf(own, sizeof(own), "/proc/self/fd/%d", handle);
	fd = S_ISLNK(st.st_mode) ? open(path, flags | O_CREAT, 0666) : open(own, flags);
	return fd < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0 ? -errno : steal_fd(&fd);
}

int fd_open_log(const char *path)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC;

	/* Two may make it at once; the next time it is there. */
	for (int tries = 0;; tries++) {
		_cleanup_close_ int handle = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		int fd;

		if (handle >= 0)
			return fd_reopen_log(handle, path);
		fd = errno == ENOENT ? open(path, flags, 0666) : -1;
		if (fd >= 0 || errno != EEXIST || tries > 0)
			return fd < 0 ? -errno : fd;
	}
}

int fd_read_untrusted_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_size)
{
	struct stat st;
	_cleanup_close_ int fd = fd_open_untrusted(dirfd, path, 0, &st);

	return fd < 0 ? fd : fd_read_sized(fd, st.st_size, max, ret_data, ret_size);
}

int fd_read_kernel_file(int dirfd, const char *name, size_t max, char **ret)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_free_ char *text = malloc(max + 1);
	ssize_t got = fd < 0 || !text ? -1 : read(fd, text, max);

	if (got < 0)
		return text ? -errno : -ENOMEM;
	text[got] = '\0';
	*ret = steal_ptr(text);
	return 0;
}

int fd_write_all(int fd, const void *data, size_t size)
{
	const char *next = data;

	while (size > 0) {
		ssize_t written = write(fd, next, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		next += written;
		size -= (size_t)written;
	}
	return 0;
}

/* Return: how many bytes of the first parts were taken; 0 also for a failure, which the next write meets again. */
static size_t fd_write_at_once(int fd, const struct span *parts, size_t count)
{
	struct iovec vector[PARTS_AT_ONCE] = {0};
	ssize_t written;

	if (count > PARTS_AT_ONCE)
		count = PARTS_AT_ONCE;
	for (size_t i = 0; i < count; i++)
		vector[i] = (struct iovec){.iov_base = (void *)(uintptr_t)parts[i].data, .iov_len = parts[i].size};
	written = writev(fd, vector, (int)count);
	return written > 0 ? (size_t)written : 0;
}

/* A file system is quicker with one write than with several; most often nothing is left after it. */
int fd_write_parts(int fd, const struct span *parts, size_t count)
{
	size_t written = fd_write_at_once(fd, parts, count);
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		size_t done = written < parts[i].size ? written : parts[i].size;

		if (done < parts[i].size)
			r = fd_write_all(fd, parts[i].data + done, parts[i].size - done);
		written -= done;
	}
	return r;
}

bool fd_is_beyond_copy(int fd, off_t max)
{
	off_t at = 0, copied = 0;

	while (copied <= max && (at = lseek(fd, at, SEEK_DATA)) >= 0) {
		const off_t hole = lseek(fd, at, SEEK_HOLE), pieces = (hole - at + COPIED_AT_ONCE - 1) / COPIED_AT_ONCE;

		if (hole <= at)
			return true;
		at += pieces * COPIED_AT_ONCE;
		copied += pieces * COPIED_AT_ONCE;
	}
	return copied > max || errno != ENXIO;
}

int fd_copy(int from, int to, off_t max)
{
	char buffer[COPIED_AT_ONCE];
	ssize_t got = 1;
	off_t at = 0, copied = 0;
	struct stat st;

	if (fstat(from, &st) < 0)
		return -errno;
	while (got > 0 && (at = lseek(from, at, SEEK_DATA)) >= 0) {
		if (copied >= max)
			return -EFBIG;
		got = pread(from, buffer, sizeof(buffer), at);
		if (got > 0)
			got = pwrite(to, buffer, (size_t)got, at);
		at += got;
		copied += got;
	}
	/* ENXIO: after the last data. */
	if (got < 0 || (at < 0 && errno != ENXIO))
		return -errno;
	return ftruncate(to, st.st_size) < 0 ? -errno : 0;
}

int fd_reopen(int proc_self_fd, int handle, struct stat *ret_stat)
{
	static const char folder[] = "/proc/self/fd/";
	char path[sizeof(folder) + 16];
	struct stat st;
	int fd;

	if (fstat(handle, &st) < 0)
		return -errno;
	if (ret_stat)
		*ret_stat = st;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	(void)snprintf(path, sizeof(path), "%s%d", proc_self_fd < 0 ? folder : "", handle);
	fd = openat(proc_self_fd < 0 ? AT_FDCWD : proc_self_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int fd_read_link_at(int dirfd, const char *name, char **ret)
{
	/* The kernel keeps symlinks shorter than a page. */
	for (size_t size = 128; size <= 64 * 1024; size *= 2) {
		_cleanup_free_ char *text = malloc(size);
		ssize_t length;

		if (!text)
			return -ENOMEM;
		length = readlinkat(dirfd, name, text, size);
		if (length < 0)
			return -errno;
		if ((size_t)length == size)
			continue;
		text[length] = '\0';
		*ret = steal_ptr(text);
		return 0;
	}
	return -ENAMETOOLONG;
}

int fd_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return steal_fd(&fd);
}

DIR *fd_open_directory(int dirfd, const char *path, int flags)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (directory)
		(void)steal_fd(&fd);
	return directory;
}

/* On 64-bit machines, and with 64-bit file offsets, the C library's entries are the kernel's. */
_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "entries have 64-bit numbers");

void fd_entries_begin(struct fd_entries *entries, int fd)
{
	entries->fd = fd;
	entries->at = entries->end = 0;
}

const struct dirent *fd_entries_next(struct fd_entries *entries)
{
	const struct dirent *entry;

	if (entries->at == entries->end) {
		ssize_t got = getdents64(entries->fd, entries->buffer, sizeof(entries->buffer));

		if (got == 0)
			errno = 0;
		if (got <= 0)
			return NULL;
		entries->at = 0;
		entries->end = (size_t)got;
	}
	entry = (const struct dirent *)(const void *)(entries->buffer + entries->at);
	entries->at += entry->d_reclen;
	return entry;
}

int fd_list_names(int dirfd, const char *path, bool (*wanted)(const char *name), size_t max, struct strv *ret)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *entry = NULL;
	struct fd_entries entries;
	int r = fd < 0 ? -errno : 0;

	fd_entries_begin(&entries, fd);
	while (r == 0 && ret->count < max && (entry = fd_entries_next(&entries)))
		if (wanted(entry->d_name))
			r = strv_add(ret, entry->d_name);
	if (r == 0 && ret->count < max)
		r = -errno;
	strv_sort(ret);
	return r;
}
