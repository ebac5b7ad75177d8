/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The guard's BPF programs, which this program has in it, as libbpf has them. They are looked up by name, so that the
 * build needs no generated header, and no tool that a distribution may lack.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_link;
struct bpf_map;
struct bpf_object;

enum { PROGRAMS_MAX = 64 };

struct guard {
	struct bpf_object *obj;
	struct {
		struct bpf_map *choices, *present;
	} maps;
	unsigned load;                        /* the number of this load */
	struct bpf_link *links[PROGRAMS_MAX]; /* in the order of the programs; NULL where one is not attached */
};

/** Return: what differs where the programs differ. */
uint64_t programs_hash(void);

/** Return: the programs, not loaded, to be released with programs_close(); NULL with errno set. */
struct guard *programs_open(void);

/** Programs that were attached stay so if their links are pinned. Takes NULL. */
void programs_close(struct guard *guard);

/**
 * Sets a constant of the programs before they are loaded.
 * @size: that of the constant, too; -EINVAL otherwise
 * Return: 0; -ENOENT if no program has it.
 */
int programs_set(struct guard *guard, const char *name, const void *value, size_t size);

/** Leaves a program out of what is loaded, or not. Return: 0; -ENOENT if there is none of that name. */
int programs_choose(struct guard *guard, const char *name, bool wanted);

/** Attaches those that were loaded. Return: 0; negative errno, with some of them attached. */
int programs_attach(struct guard *guard);
