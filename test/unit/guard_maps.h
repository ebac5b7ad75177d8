/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The maps that a load of the guard leaves, but for the programs: a test has them in a BPF file system of its own mount namespace. */

#include "scratch.h"

#include <linux/bpf.h>
#include <sys/syscall.h>

#include "guard/choice.h"

#define MAPS_DIRECTORY PINS_USUAL_FILE_SYSTEM "/" PINS_NAME
#define MAPS_CHOICES MAPS_DIRECTORY "/" GUARD_CHOICES_NAME
#define MAPS_PRESENT MAPS_DIRECTORY "/" GUARD_PRESENT_NAME

static inline int maps_call(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static inline void maps_make(const char *path, enum bpf_map_type type, uint32_t key, uint32_t value, uint32_t entries,
			     uint32_t flags)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = key;
	attr.value_size = value;
	attr.max_entries = entries;
	attr.map_flags = flags;
	fd = maps_call(BPF_MAP_CREATE, &attr);
	if (fd < 0 && errno == EPERM)
		skip("needs to make BPF maps");
	assert_true(fd >= 0);
	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uint64_t)(uintptr_t)path;
	attr.bpf_fd = (uint32_t)fd;
	assert_int_equal(maps_call(BPF_OBJ_PIN, &attr), 0);
	assert_int_equal(close(fd), 0);
}

static inline void maps_load(void)
{
	assert_int_equal(mkdir(MAPS_DIRECTORY, 0700), 0);
	maps_make(MAPS_CHOICES, BPF_MAP_TYPE_HASH, sizeof(struct guard_key), sizeof(struct guard_choice), 4,
		  BPF_F_NO_PREALLOC);
	maps_make(MAPS_PRESENT, BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(struct guard_counts), 1, BPF_F_MMAPABLE);
}

static inline void maps_unload(void)
{
	assert_int_equal(unlink(MAPS_CHOICES), 0);
	assert_int_equal(unlink(MAPS_PRESENT), 0);
	assert_int_equal(rmdir(MAPS_DIRECTORY), 0);
}
