/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The guard's map of choices, by bpf(2) alone: a static hook writes it, too. The programs that read it are loaded and
 * pinned by ctr-gpu-guard(8).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/paths.h"
#include "guard/layout.h"

#define GUARD_CHOICES_NAME "choices"
#define GUARD_PRESENT_NAME "present"

/* The maps of one load of the programs: a choice in one that another counts would not be looked for. */
struct choices {
	int map;    /* of choices; -1: none */
	int counts; /* struct guard_counts; -1 if an older version of the programs has none */
};

#define CHOICES_NONE ((struct choices){-1, -1})

/** Return: 0; -ENOENT if the guard is not loaded, by root; negative errno. */
int choices_open(struct choices *ret);
void choices_close(struct choices *choices);
#define _cleanup_choices_ __attribute__((cleanup(choices_close)))

/** Sets what a cgroup and those below it may use, at once. Return: 0; -E2BIG; negative errno. */
int choice_set(const struct choices *choices, const struct guard_key *key, const uint64_t *luids, size_t count);

/**
 * choice_count() - change how many choices the programs take for granted
 * @counts: a descriptor of that map
 *
 * choice_set() and choice_remove() do it. Return: 0 or negative errno.
 */
int choice_count(int counts, unsigned hierarchy, int by);

/** Says which load of the programs is the first to see lists. Return: 0 or negative errno. */
int choice_set_first(int counts, unsigned load);

/** How many they take for granted. Return: 0 or negative errno. */
int choice_read_count(int counts, unsigned hierarchy, unsigned *ret);

/** Return: 0, also where there is none; negative errno. */
int choice_remove(const struct choices *choices, const struct guard_key *key);

/** Return: 0; -ENOENT if the cgroup has none; negative errno. */
int choice_get(const struct choices *choices, const struct guard_key *key, struct guard_choice *ret);

/** The key behind @last (NULL: the first). Return: 0; -ENOENT behind the last; negative errno. */
int choice_next(const struct choices *choices, const struct guard_key *last, struct guard_key *ret);

/** How many of the choices are of cgroups whose processes raced with the guard. */
size_t choice_count_marked_for_kill(const struct choices *choices);

/** Return: the enum guard_hierarchy in which the open directory is; -EINVAL: in neither; negative errno. */
int choice_hierarchy(int cgroup);

/**
 * choice_key() - the key of the cgroup whose directory is open
 *
 * Return: 0; -EINVAL for another directory, a root, and a controller of version 1 other than devices; negative errno.
 */
int choice_key(int cgroup, struct guard_key *ret);

/*
 * The directory of the guard's pins, and the BPF file systems where it may be. Where the usual one was mounted without
 * a mode, every user may make files and directories in it: then the guard has one of its own. What is there is believed
 * only if it is the kernel's, and if only root can have put it there.
 */

#define PINS_NAME "ctr-gpu"
/*
 * Of a load that has not ended; one that was killed leaves them attached. No dot: names with one are the file system's
 * own.
 */
#define PINS_NEXT_NAME "ctr-gpu-next"
#define PINS_USUAL_FILE_SYSTEM "/sys/fs/bpf"
#define PINS_OWN_FILE_SYSTEM PATH_RUN "/bpf"

enum { PINS_USUAL, PINS_OWN, PINS_FILE_SYSTEMS };

/* By these numbers, which is the order to look in. */
extern const char *const pins_file_systems[PINS_FILE_SYSTEMS];

/**
 * pins_open() - the directory of the pins, to begin paths at
 * @ret_file_system: in which of them it is; may be NULL
 *
 * Return: descriptor; -ENOENT if root put none there; -errno.
 */
int pins_open(size_t *ret_file_system);

/** The same below one of the file systems, by name. */
int pins_open_at(size_t file_system, const char *name);

/** Return: a descriptor of a map or link that is pinned in a directory of pins; negative errno. */
int pins_open_pin(int pins, const char *name);

/** Return: a descriptor of one of them; -EPERM if others may write to it, -ENOENT if it is none; negative errno. */
int pins_open_file_system(size_t file_system);

/** Whether another user has taken one of the names below it. */
bool pins_are_others(int file_system);

/**
 * pins_remove() - remove a directory of pins and what is in it
 *
 * The map of choices goes first: programs that look for the guard look for that. Return: 0, also if root has put no
 * such directory there; negative errno.
 */
int pins_remove(size_t file_system, const char *name);
