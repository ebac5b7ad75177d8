/* SPDX-License-Identifier: Apache-2.0 */

/* The directory of the records of one root filesystem or container: its lock, and the numbers of the records in it. */

#include "apply/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/lock_file.h"

enum { UNDO_RECORDS_TRIES = 100 };

/* ---- the directory ---- */

static int undo_records_make_directories(char *path)
{
	int r = 0;

	for (char *slash = strchr(path + 1, '/'); slash && r == 0; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			r = -errno;
		*slash = '/';
	}
	if (r < 0)
		return r;
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* A process that waits for the lock finds that the directory is gone; an empty one of another holder is in use. */
void undo_records_close(struct undo_records *all, int parent, const char *path)
{
	if (all->lock >= 0) {
		(void)unlinkat(parent, path, AT_REMOVEDIR);
		(void)close(all->lock);
	}
	if (all->fd >= 0)
		(void)close(all->fd);
	*all = UNDO_RECORDS_CLOSED;
}

int undo_records_open(const char *path, struct undo_records *all)
{
	all->fd = lock_file_open_directory(path);
	if (all->fd >= 0)
		all->lock = lock_file_take_directory(all->fd, UNDO_RECORDS_WAIT_MS, &all->holder);
	return all->fd < 0 ? all->fd : all->lock < 0 ? all->lock : 0;
}

/* The last holder of the lock may have removed the directory. */
int undo_records_make(char *path, struct undo_records *all)
{
	int r = -ENOENT;

	for (unsigned tries = 0; r == -ENOENT && tries < UNDO_RECORDS_TRIES; tries++) {
		cleanup_closep(&all->fd);
		*all = UNDO_RECORDS_CLOSED;
		r = undo_records_make_directories(path);
		if (r < 0)
			return r;
		r = undo_records_open(path, all);
	}
	return r;
}

/* ---- numbers ---- */

void undo_records_remove(int parent, const char *name)
{
	_cleanup_dir_ DIR *stream = fd_open_directory(parent, name, O_NOFOLLOW);
	const struct dirent *entry;

	while (stream && (entry = readdir(stream)))
		(void)unlinkat(directory_fd(stream), entry->d_name, 0);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

static bool undo_records_is_number(const char *name)
{
	size_t length = strspn(name, "0123456789");

	return length > 0 && length <= 3 && !name[length] && (name[0] != '0' || length == 1);
}

int undo_records_list(int all, bool ret[UNDO_RECORDS_MAX])
{
	_cleanup_strv_ struct strv names = {0};
	int r = fd_list_names(all, ".", undo_records_is_number, UNDO_RECORDS_MAX, &names);

	memset(ret, 0, UNDO_RECORDS_MAX * sizeof(*ret));
	for (size_t i = 0; i < names.count && r == 0; i++)
		ret[strtoul(names.items[i], NULL, 10)] = true;
	return r;
}

/* Removes the records that are outdated: a root filesystem may be given its GPUs at every boot. */
static void undo_records_remove_outdated(int all, const struct undo_records_age *age, bool taken[UNDO_RECORDS_MAX])
{
	char name[16];

	for (unsigned i = 0; i < UNDO_RECORDS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		if (!taken[i] || !age->is_over(all, name, age->boot))
			continue;
		undo_records_remove(all, name);
		taken[i] = false;
	}
}

/* Gives the records the lowest numbers, in the order that they have. Return: how many there are; negative errno. */
static int undo_records_renumber(int all, const bool taken[UNDO_RECORDS_MAX])
{
	char old[16], new[16];
	unsigned next = 0;

	for (unsigned i = 0; i < UNDO_RECORDS_MAX; i++) {
		if (!taken[i])
			continue;
		(void)snprintf(old, sizeof(old), "%u", i);
		(void)snprintf(new, sizeof(new), "%u", next);
		if (next != i && renameat(all, old, all, new) < 0)
			return -errno;
		next++;
	}
	return (int)next;
}

int undo_records_find_number(int all, const struct undo_records_age *age, char ret[static 16])
{
	bool taken[UNDO_RECORDS_MAX];
	int r = undo_records_list(all, taken), next = UNDO_RECORDS_MAX;

	if (r < 0)
		return r;
	undo_records_remove_outdated(all, age, taken);
	while (next > 0 && !taken[next - 1])
		next--;
	if (next == UNDO_RECORDS_MAX)
		next = undo_records_renumber(all, taken);
	if (next < 0)
		return next;
	(void)snprintf(ret, 16, "%d", next);
	return next == UNDO_RECORDS_MAX ? -EMLINK : 0;
}
