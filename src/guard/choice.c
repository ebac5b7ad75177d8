/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/choice.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "system/trusted_file.h"

static int choice_call(enum bpf_cmd command, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

/* Each load has a directory of its own, so both maps are of one load. */
int choices_open(struct choices *ret)
{
	_cleanup_close_ int pins = pins_open(NULL), map = -1;
	int counts;

	if (pins < 0)
		return pins;
	map = pins_open_pin(pins, GUARD_CHOICES_NAME);
	if (map < 0)
		return map;
	counts = pins_open_pin(pins, GUARD_PRESENT_NAME);
	if (counts < 0 && counts != -ENOENT)
		return counts;
	*ret = (struct choices){.map = steal_fd(&map), .counts = counts < 0 ? -1 : counts};
	return 0;
}

void choices_close(struct choices *choices)
{
	cleanup_closep(&choices->map);
	cleanup_closep(&choices->counts);
}

static int choice_update(int map, const struct guard_key *key, const struct guard_choice *choice, uint64_t flags)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map;
	attr.key = (uint64_t)(uintptr_t)key;
	attr.value = (uint64_t)(uintptr_t)choice;
	attr.flags = flags;
	return choice_call(BPF_MAP_UPDATE_ELEM, &attr);
}

/* A command on one entry; @other is its value, or the key behind it. */
static int choice_do(enum bpf_cmd command, int map, const void *key, const void *other)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map;
	attr.key = (uint64_t)(uintptr_t)key;
	attr.value = (uint64_t)(uintptr_t)other;
	return choice_call(command, &attr);
}

/* The programs count as well, so this is memory that both have. Return: NULL with errno set. */
static struct guard_counts *choice_map_counts(int counts)
{
	void *memory = mmap(NULL, sizeof(struct guard_counts), PROT_READ | PROT_WRITE, MAP_SHARED, counts, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int choice_count(int counts, unsigned hierarchy, int by)
{
	struct guard_counts *memory;

	if (hierarchy >= GUARD_HIERARCHIES)
		return -EINVAL;
	memory = choice_map_counts(counts);
	if (!memory)
		return -errno;
	(void)__atomic_fetch_add(&memory->choices[hierarchy], (unsigned)by, __ATOMIC_SEQ_CST);
	return munmap(memory, sizeof(*memory)) < 0 ? -errno : 0;
}

int choice_set_first(int counts, unsigned load)
{
	struct guard_counts *memory = choice_map_counts(counts);

	if (!memory)
		return -errno;
	__atomic_store_n(&memory->first, load, __ATOMIC_SEQ_CST);
	return munmap(memory, sizeof(*memory)) < 0 ? -errno : 0;
}

int choice_read_count(int counts, unsigned hierarchy, unsigned *ret)
{
	const uint32_t zero = 0;
	struct guard_counts found = {0};
	int r = hierarchy < GUARD_HIERARCHIES ? choice_do(BPF_MAP_LOOKUP_ELEM, counts, &zero, &found) : -EINVAL;

	if (r == 0)
		*ret = found.choices[hierarchy];
	return r;
}

static bool choice_is_same(const struct guard_choice *choice, const struct guard_choice *other)
{
	return choice->count == other->count &&
	       memcmp(choice->luids, other->luids, choice->count * sizeof(choice->luids[0])) == 0;
}

/*
 * What the programs have found out of its processes stays: another choice does not make good what one of them did. What
 * they find out between the look and the update is lost, so nothing is written that is there.
 */
static int choice_replace(const struct choices *choices, const struct guard_key *key, struct guard_choice *choice)
{
	struct guard_choice old;
	int r = choice_get(choices, key, &old);

	if (r < 0)
		return r;
	if (choice_is_same(&old, choice))
		return 0;
	choice->state = old.state;
	return choice_update(choices->map, key, choice, BPF_EXIST);
}

/* One that the cgroup had is counted already. */
static int choice_write(const struct choices *choices, const struct guard_key *key, struct guard_choice *choice)
{
	int r = choice_count(choices->counts, (unsigned)key->hierarchy, 1);

	if (r < 0)
		return r;
	r = choice_update(choices->map, key, choice, BPF_NOEXIST);
	if (r == 0)
		return 0;
	if (r == -EEXIST)
		r = choice_replace(choices, key, choice);
	(void)choice_count(choices->counts, (unsigned)key->hierarchy, -1);
	return r;
}

int choice_set(const struct choices *choices, const struct guard_key *key, const uint64_t *luids, size_t count)
{
	struct guard_choice choice = {.count = (unsigned)count};

	if (count > GUARD_ADAPTERS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < count; i++)
		choice.luids[i] = luids[i];
	return choice_write(choices, key, &choice);
}

int choice_remove(const struct choices *choices, const struct guard_key *key)
{
	int r = choice_do(BPF_MAP_DELETE_ELEM, choices->map, key, NULL);

	if (r == 0 && choices->counts >= 0)
		(void)choice_count(choices->counts, (unsigned)key->hierarchy, -1);
	return r == -ENOENT ? 0 : r;
}

int choice_get(const struct choices *choices, const struct guard_key *key, struct guard_choice *ret)
{
	return choice_do(BPF_MAP_LOOKUP_ELEM, choices->map, key, ret);
}

int choice_next(const struct choices *choices, const struct guard_key *last, struct guard_key *ret)
{
	return choice_do(BPF_MAP_GET_NEXT_KEY, choices->map, last, ret);
}

size_t choice_count_marked_for_kill(const struct choices *choices)
{
	struct guard_key key;
	size_t condemned = 0;
	int r = choice_next(choices, NULL, &key);

	while (r == 0) {
		struct guard_choice choice;

		condemned += choice_get(choices, &key, &choice) == 0 && choice.state & GUARD_RACED;
		r = choice_next(choices, &key, &key);
	}
	return condemned;
}

int choice_hierarchy(int cgroup)
{
	struct statfs fs;

	if (fstatfs(cgroup, &fs) < 0)
		return -errno;
	if (fs.f_type == CGROUP2_SUPER_MAGIC)
		return GUARD_CGROUP2;
	/* Another hierarchy of version 1 has the same numbers for other cgroups. */
	return fs.f_type == CGROUP_SUPER_MAGIC && faccessat(cgroup, "devices.list", F_OK, 0) == 0 ? GUARD_DEVICES
												  : -EINVAL;
}

int choice_key(int cgroup, struct guard_key *ret)
{
	enum { ROOT = 1 }; /* the inode of a hierarchy's root, where the programs look for no choice */
	const int hierarchy = choice_hierarchy(cgroup);
	struct stat st;

	if (hierarchy < 0)
		return hierarchy;
	if (fstat(cgroup, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_ino == ROOT)
		return -EINVAL;
	*ret = (struct guard_key){.cgroup = st.st_ino, .hierarchy = (uint32_t)hierarchy};
	return 0;
}

const char *const pins_file_systems[PINS_FILE_SYSTEMS] = {PINS_USUAL_FILE_SYSTEM, PINS_OWN_FILE_SYSTEM};

/* Return: a descriptor; -ENOENT if it is of another file system than BPF's; negative errno. */
static int pins_open_trusted(const char *path)
{
	_cleanup_close_ int fd = trusted_file_open(path, S_IFDIR, TRUSTED_FILE_ROOT_ONLY, O_RDONLY);
	struct statfs fs;

	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	return fs.f_type == BPF_FS_MAGIC ? steal_fd(&fd) : -ENOENT;
}

int pins_open_file_system(size_t file_system)
{
	return pins_open_trusted(pins_file_systems[file_system]);
}

int pins_open_at(size_t file_system, const char *name)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", pins_file_systems[file_system], name);
	fd = pins_open_trusted(path);
	/* Root put nothing there: another user's file, or the way to it, counts as missing. */
	return fd == -EPERM || fd == -EINVAL || fd == -ENOTDIR || fd == -ELOOP ? -ENOENT : fd;
}

int pins_open(size_t *ret_file_system)
{
	int r = -ENOENT;

	for (size_t i = 0; i < PINS_FILE_SYSTEMS && r == -ENOENT; i++) {
		r = pins_open_at(i, PINS_NAME);
		if (r >= 0 && ret_file_system)
			*ret_file_system = i;
	}
	return r;
}

/* Only Linux 6.5 takes a descriptor for a path to begin at. */
int pins_open_pin(int pins, const char *name)
{
	union bpf_attr attr;
	char path[128];
	long fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", pins, name);
	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uint64_t)(uintptr_t)path;
	fd = syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

bool pins_are_others(int file_system)
{
	static const char *const names[] = {PINS_NAME, PINS_NEXT_NAME};
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (fstatat(file_system, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (!S_ISDIR(st.st_mode) || st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH)))
			return true;
	return false;
}

int pins_remove(size_t file_system, const char *name)
{
	_cleanup_close_ int fd = pins_open_at(file_system, name);
	_cleanup_dir_ DIR *dir = fd < 0 ? NULL : fd_open_directory(fd, ".", 0);
	const struct dirent *entry;
	char path[64];

	if (!dir)
		return fd == -ENOENT ? 0 : fd < 0 ? fd : -errno;
	if (unlinkat(fd, GUARD_CHOICES_NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && unlinkat(fd, entry->d_name, 0) < 0 && errno != ENOENT)
			return -errno;
	(void)snprintf(path, sizeof(path), "%s/%s", pins_file_systems[file_system], name);
	return rmdir(path) < 0 ? -errno : 0;
}
