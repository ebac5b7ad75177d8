/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/choice.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guard/pins.h"

static int choice_call(enum bpf_cmd command, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

static int choice_open_pin(const char *path)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uint64_t)(uintptr_t)path;
	return choice_call(BPF_OBJ_GET, &attr);
}

int choice_open(void)
{
	return pins_are_roots() ? choice_open_pin(GUARD_CHOICES) : -ENOENT;
}

int choice_open_counts(void)
{
	return pins_are_roots() ? choice_open_pin(GUARD_PRESENT) : -ENOENT;
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

/* The programs count as well, so this is memory that both have. */
int choice_count(int map, unsigned hierarchy, int by)
{
	struct guard_counts *counts;

	if (hierarchy >= GUARD_HIERARCHIES)
		return -EINVAL;
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	if (counts == MAP_FAILED)
		return -errno;
	(void)__atomic_fetch_add(&counts->choices[hierarchy], (unsigned)by, __ATOMIC_SEQ_CST);
	return munmap(counts, sizeof(*counts)) < 0 ? -errno : 0;
}

int choice_read_count(int map, unsigned hierarchy, unsigned *ret)
{
	const uint32_t zero = 0;
	struct guard_counts counts = {0};
	int r = hierarchy < GUARD_HIERARCHIES ? choice_do(BPF_MAP_LOOKUP_ELEM, map, &zero, &counts) : -EINVAL;

	if (r == 0)
		*ret = counts.choices[hierarchy];
	return r;
}

/* One that the cgroup had is counted already. */
static int choice_write(int map, int counts, const struct guard_key *who, const struct guard_choice *choice)
{
	int r = choice_count(counts, (unsigned)who->hierarchy, 1);

	if (r < 0)
		return r;
	r = choice_update(map, who, choice, BPF_NOEXIST);
	if (r == 0)
		return 0;
	if (r == -EEXIST)
		r = choice_update(map, who, choice, BPF_EXIST);
	(void)choice_count(counts, (unsigned)who->hierarchy, -1);
	return r;
}

int choice_set(int map, const struct guard_key *who, const uint64_t *luids, size_t count)
{
	struct guard_choice choice = {.count = (unsigned)count};
	_cleanup_close_ int counts = -1;

	if (count > GUARD_ADAPTERS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < count; i++)
		choice.luids[i] = luids[i];
	counts = choice_open_counts();
	return counts < 0 ? counts : choice_write(map, counts, who, &choice);
}

int choice_remove(int map, const struct guard_key *who)
{
	_cleanup_close_ int counts = choice_open_counts();
	int r = choice_do(BPF_MAP_DELETE_ELEM, map, who, NULL);

	if (r == 0 && counts >= 0)
		(void)choice_count(counts, (unsigned)who->hierarchy, -1);
	return r == -ENOENT ? 0 : r;
}

int choice_get(int map, const struct guard_key *who, struct guard_choice *ret)
{
	return choice_do(BPF_MAP_LOOKUP_ELEM, map, who, ret);
}

int choice_next(int map, const struct guard_key *last, struct guard_key *ret)
{
	return choice_do(BPF_MAP_GET_NEXT_KEY, map, last, ret);
}

int choice_key(int cgroup, struct guard_key *ret)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(cgroup, &fs) < 0 || fstat(cgroup, &st) < 0)
		return -errno;
	if ((fs.f_type != CGROUP2_SUPER_MAGIC && fs.f_type != CGROUP_SUPER_MAGIC) || !S_ISDIR(st.st_mode))
		return -EINVAL;
	*ret = (struct guard_key){
		.cgroup = st.st_ino,
		.hierarchy = fs.f_type == CGROUP2_SUPER_MAGIC ? GUARD_CGROUP2 : GUARD_DEVICES,
	};
	return 0;
}
