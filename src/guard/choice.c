/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/choice.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <string.h>
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

int choice_announce(int map, unsigned hierarchy)
{
	const uint32_t yes = 1;

	return choice_do(BPF_MAP_UPDATE_ELEM, map, &hierarchy, &yes);
}

/* Programs of an earlier version look for choices without it. */
static int choice_announce_pinned(unsigned hierarchy)
{
	_cleanup_close_ int map = choice_open_pin(GUARD_PRESENT);

	if (map < 0)
		return map == -ENOENT ? 0 : map;
	return choice_announce(map, hierarchy);
}

int choice_set(int map, const struct guard_key *who, const uint64_t *luids, size_t count)
{
	struct guard_choice choice = {.count = (unsigned)count};
	int r;

	if (count > GUARD_ADAPTERS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < count; i++)
		choice.luids[i] = luids[i];
	r = choice_announce_pinned((unsigned)who->hierarchy);
	return r < 0 ? r : choice_do(BPF_MAP_UPDATE_ELEM, map, who, &choice);
}

int choice_remove(int map, const struct guard_key *who)
{
	int r = choice_do(BPF_MAP_DELETE_ELEM, map, who, NULL);

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
