/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The driver's files on this machine, wherever its packager put them. The kernel module's version is the key: a
 * directory with a library of exactly that version belongs to the driver. Such directories are found through
 * the host's loader cache, and failing that in well-known places; all below the driver root, if there is one. Inside a
 * container of ours, which may start containers itself, they are where we put them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/str.h"
#include "model/settings.h"
#include "nvidia/cache.h"
#include "nvidia/driver_table.h"
#include "root/rootfs.h"

/*
 * Where the driver's libraries are in a container: one directory of ours, since a plan does not know the image's layout
 * and the loader cache finds them in any. Each library has its SONAME there: programs ask for it, and unlike the file's
 * own name it does not change with the driver. So a container that is started again keeps nothing stale.
 */
#define LIBRARY_DIR "/usr/lib/ctr-gpu"
#define LIBRARY_DIR_32 LIBRARY_DIR "/32"

enum { DRIVER_FILES_DIRS_MAX = NVIDIA_CACHE_DIRS_MAX };

struct driver_files_dir {
	int fd;
	char *path;   /* without symlinks, as this machine has it: with the driver root in front */
	bool is_32;   /* of the 32-bit ABI beside the machine's own */
	bool is_ours; /* LIBRARY_DIR of the container that this is: SONAMEs tell its libraries, not the version */
	struct stat st;
	bool is_listed;
	struct strv names; /* of the driver's libraries in it, ordered, once it is listed */
};

struct driver_files {
	const char *version; /* borrowed */
	struct rootfs root;
	char *root_path; /* without symlinks; "" for "/" */
	struct driver_files_dir dirs[DRIVER_FILES_DIRS_MAX];
	size_t dir_count;
	char *other_version; /* of a libcuda that does not belong to the kernel module; NULL: none was found */

	/* How the directories were found, if the loader cache alone led there. */
	time_t since; /* nothing was looked at before; the process may have been held up after that */
	bool has_cache;
	struct stat cache;
	struct strv places; /* directories that it names, below the driver root */
	bool is_new;        /* something of that is not known from an earlier time */
};

void driver_files_close(struct driver_files *install);
#define _cleanup_install_ _cleanup_(driver_files_close)

/**
 * driver_files_open() - find the driver's directories
 * @version: of the kernel module; must outlive the installation
 * @known:   what an earlier start found counts if nothing has changed since; NULL: look
 *
 * Return: 0; CTR_GPU_E_DRIVER_LIBRARY if the libraries are nowhere or of another version; negative errno. @err is set.
 */
int driver_files_open(const struct settings *settings, const char *version, const struct nvidia_cache *known,
		      struct driver_files *ret, struct err *err);

/**
 * driver_files_cache_put() - have the next start know what was found
 *
 * Nothing is kept that changed so lately that its times may not show the next change. Return: 0 or -ENOMEM.
 */
int driver_files_cache_put(const struct driver_files *install, struct nvidia_cache *known);

/* A file of the driver. */
struct driver_files_file {
	char *path; /* without symlinks, as this machine has it */
	struct stat st;
};

/**
 * driver_files_find() - a file or directory by its path below the driver root
 * @path: absolute, each name behind one slash, none of them "." or ".."
 *
 * Return: 0; -ENOENT and other negative errno.
 */
int driver_files_find(const struct driver_files *install, const char *path, struct driver_files_file *ret);

/** Return: a path of this machine as it is below the driver root; NULL if it is not below it. */
const char *driver_files_path_inside(const struct driver_files *install, const char *path);

/** Return: the length of <stem> if the name is <stem>.so.<driver version>, else 0. */
size_t driver_files_stem_length(const struct driver_files *install, const char *name);

/* A library of the driver's version, or one that came with it. */
struct driver_files_library {
	char *path;
	char *soname;
	const struct driver_library *known; /* NULL: the table does not know it */
	bool is_32;
	struct stat st;
};

struct driver_files_libraries {
	struct driver_files_library *items;
	size_t count;
};

void driver_files_libraries_clear(struct driver_files_libraries *libraries);
#define _cleanup_libraries_ _cleanup_(driver_files_libraries_clear)

/**
 * driver_files_libraries() - the libraries of some capabilities, ordered by directory and name
 * @capabilities: of enum capability; CAPABILITY_COMPAT32 adds the 32-bit ones
 *
 * Return: 0 or negative errno.
 */
int driver_files_libraries(struct driver_files *install, uint32_t capabilities, struct driver_files_libraries *ret);
