/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What takes long to ask of a native host and stays the same until something shows that it changed; kept below /run
 * until the next boot. A GPU's text makes the driver read the GPU's PCI configuration: the text is a binding's, of this
 * device to this load of the module. Where the driver's libraries are, and which, is told by the loader cache and by
 * directories of thousands of files: that is theirs as long as their identity and times are the same.
 *
 * Only root writes the file and only what root alone can have written is read; what is in it is checked all the same as
 * what it stands for. Whoever cannot have it asks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/str.h"

#define KNOWN_KEPT "nvidia" /* the file's name */

struct known_gpu {
	char *address;      /* on the PCI bus */
	char *binding;      /* known_binding() */
	uint32_t device_id; /* PCI's */
	char *information;  /* what the driver writes of it */
	bool is_here;       /* it was asked for since */
};

/* A directory, as it was when it was looked at. */
struct known_place {
	char *stamp; /* known_stamp() */
	char *path;  /* without symlinks, as this machine has it */
};

struct known_libraries {
	struct known_place place;
	bool is_32;
	bool is_listed;
	struct strv names; /* of the driver's libraries in it, if it is listed */
};

enum {
	KNOWN_GPUS_MAX = 256,
	KNOWN_PLACES_MAX = 16,
	KNOWN_DIRS_MAX = 8,
	KNOWN_NAMES_MAX = 256,
};

/* Where the driver's libraries are. */
struct known_driver {
	char *version;                               /* NULL: that is not known */
	char *cache;                                 /* stamp of the loader cache that led there */
	char *root;                                  /* the driver root, without symlinks: "" for "/" */
	struct known_place places[KNOWN_PLACES_MAX]; /* where the links are that the loader cache names */
	size_t place_count;
	struct known_libraries dirs[KNOWN_DIRS_MAX];
	size_t dir_count;
};

struct known {
	char *head; /* the first line of what may be believed now; NULL: nothing is kept */
	struct known_gpu *gpus;
	size_t gpu_count;
	struct known_driver driver;
	bool is_new; /* there is more than was read */
};

/** Reads what is kept. What cannot be read or believed is not known. Return: 0 or -ENOMEM. */
int known_open(struct known *ret);

void known_close(struct known *known);

/**
 * known_parse() - what a file says
 * @text: hostile; taken apart
 * @ret:  with the head that the file must have; otherwise empty, and still so if the file says nothing
 *
 * Return: 0; -EINVAL if it is malformed or has another head; -ENOMEM.
 */
int known_parse(char *text, size_t size, struct known *ret);

/** The same as a file. Return: 0 or -ENOMEM. */
int known_print(const struct known *known, char **ret);

/** Keeps what is new, if the caller is root. */
void known_write(struct known *known);

/* ---- GPUs ---- */

/**
 * known_binding() - what stays the same only as long as a driver has a device
 *
 * The number of a link that the kernel makes whenever a driver takes a device; sysfs gives no number twice in a boot.
 *
 * Return: 0; -ENOENT where no driver has it, or sysfs does not show it; -ENOMEM.
 */
int known_binding(const char *address, char **ret);

/** Return: what is known of a GPU; NULL. */
struct known_gpu *known_find_gpu(const struct known *known, const char *address, const char *binding);

/** Adds a GPU, in place of one at the same address. Return: 0 or -ENOMEM. */
int known_keep_gpu(struct known *known, const char *address, const char *binding, uint32_t device_id,
		   const char *information);

/* ---- directories ---- */

/** Whether what was looked at from @since on was unchanged as long as it takes to see the next change by its times. */
bool known_is_settled(const struct stat *st, time_t since);

/** Identity and times of a file or directory. Return: 0 or -ENOMEM. */
int known_stamp(const struct stat *st, char **ret);

/** Whether a stamp is of this. */
bool known_is_stamp(const char *stamp, const struct stat *st);

void known_forget_driver(struct known_driver *driver);
