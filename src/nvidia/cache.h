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

#define NVIDIA_CACHE_NAME "nvidia" /* the file's name */

struct nvidia_cache_gpu {
	char *address;      /* on the PCI bus */
	char *binding;      /* nvidia_cache_driver_binding() */
	uint32_t device_id; /* PCI's */
	char *information;  /* what the driver writes of it */
	bool is_here;       /* it was asked for since */
};

/* A directory, as it was when it was looked at. */
struct cached_directory {
	char *stamp; /* nvidia_cache_fingerprint() */
	char *path;  /* without symlinks, as this machine has it */
};

struct nvidia_cache_libraries {
	struct cached_directory place;
	bool is_32;
	bool is_listed;
	struct strv names; /* of the driver's libraries in it, if it is listed */
};

enum {
	NVIDIA_CACHE_GPUS_MAX = 256,
	NVIDIA_CACHE_PLACES_MAX = 16,
	NVIDIA_CACHE_DIRS_MAX = 8,
	NVIDIA_CACHE_NAMES_MAX = 256,
};

/* Where the driver's libraries are. */
struct nvidia_cache_driver {
	char *version;                                           /* NULL: that is not known */
	char *cache;                                             /* stamp of the loader cache that led there */
	char *root;                                              /* the driver root, without symlinks: "" for "/" */
	struct cached_directory places[NVIDIA_CACHE_PLACES_MAX]; /* where the links are that the loader cache names */
	size_t place_count;
	struct nvidia_cache_libraries dirs[NVIDIA_CACHE_DIRS_MAX];
	size_t dir_count;
};

struct nvidia_cache {
	char *head; /* the first line of what may be believed now; NULL: nothing is kept */
	struct nvidia_cache_gpu *gpus;
	size_t gpu_count;
	struct nvidia_cache_driver driver;
	bool is_new; /* there is more than was read */
};

/** Reads what is kept. What cannot be read or believed is not known. Return: 0 or -ENOMEM. */
int nvidia_cache_open(struct nvidia_cache *ret);

void nvidia_cache_close(struct nvidia_cache *known);

/**
 * nvidia_cache_parse() - what a file says
 * @text: hostile; taken apart
 * @ret:  with the head that the file must have; otherwise empty, and still so if the file says nothing
 *
 * Return: 0; -EINVAL if it is malformed or has another head; -ENOMEM.
 */
int nvidia_cache_parse(char *text, size_t size, struct nvidia_cache *ret);

/** The same as a file. Return: 0 or -ENOMEM. */
int nvidia_cache_print(const struct nvidia_cache *known, char **ret);

/** Keeps what is new, if the caller is root. */
void nvidia_cache_write(struct nvidia_cache *known);

/* ---- GPUs ---- */

/**
 * nvidia_cache_driver_binding() - what stays the same only as long as a driver has a device
 *
 * The number of a link that the kernel makes whenever a driver takes a device; sysfs gives no number twice in a boot.
 *
 * Return: 0; -ENOENT where no driver has it, or sysfs does not show it; -ENOMEM.
 */
int nvidia_cache_driver_binding(const char *address, char **ret);

/** Return: what is known of a GPU; NULL. */
struct nvidia_cache_gpu *nvidia_cache_find_gpu(const struct nvidia_cache *known, const char *address,
					       const char *binding);

/** Adds a GPU, in place of one at the same address. Return: 0 or -ENOMEM. */
int nvidia_cache_put_gpu(struct nvidia_cache *known, const char *address, const char *binding, uint32_t device_id,
			 const char *information);

/* ---- directories ---- */

/** Whether what was looked at from @since on was unchanged as long as it takes to see the next change by its times. */
bool nvidia_cache_is_settled(const struct stat *st, time_t since);

/** Identity and times of a file or directory. Return: 0 or -ENOMEM. */
int nvidia_cache_fingerprint(const struct stat *st, char **ret);

/** Whether a stamp is of this. */
bool nvidia_cache_is_fingerprint(const char *stamp, const struct stat *st);

void nvidia_cache_drop_driver(struct nvidia_cache_driver *driver);
