/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What must be written in an image so that its own loader finds the driver libraries: /etc/ld.so.cache and a drop-in in
 * /etc/ld.so.conf.d for glibc, /etc/ld-musl-<arch>.path for musl. Reads the image through its root descriptor, writes
 * nothing: apply does, and mounts over what it cannot write.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/span.h"
#include "base/str.h"
#include "ldcache/ldcache.h"
#include "model/plan.h"
#include "root/rootfs.h"

struct loader_file {
	const char *path;                 /* lives as long as the program */
	struct span parts[LDCACHE_PARTS]; /* the content, one behind the other; some may be empty */
	void *owned[2];                   /* where they lie: in memory of their own, and in the old content */
	int handle;    /* of the file that was read, to cover it where it cannot be replaced; -1: it is missing */
	bool covered;  /* an existing one is not replaced: it stays as it is in the image */
	bool optional; /* on a read-only root filesystem the container works without it */
};

/**
 * loader_files() - the files to write, in the order of writing; the cache comes last
 * @ret: array, owned by the caller (loader_files_free()); files that are as they should be are not in it
 *
 * Return: 0; -ENOMEM; negative errno with @err set.
 */
int loader_files(const struct rootfs *rootfs, const struct plan *plan, struct loader_file **ret, size_t *ret_count,
		 struct err *err);

/** The image's cache, as far as it is the image's own. Return: as rootfs_read_file(). */
int loader_read_cache(const struct rootfs *rootfs, char **ret_data, size_t *ret_size);

/** Return: "Nix" or "Guix" if it built programs of the image, whose loader reads a cache of its own; otherwise NULL. */
const char *loader_with_own_cache(const struct rootfs *rootfs);

struct loader_file *loader_files_free(struct loader_file *files, size_t count);

/*
 * Our files in the image's /etc/ld.so.conf.d. With them an ldconfig run in the container finds the driver's
 * directories. Directories that go before the image's are in a file that sorts first, the others in a file that sorts
 * last. Their names are fixed, so that starting a container again leaves nothing new behind.
 *
 * A directory that is not the driver's alone (native driver files are mounted one by one into the distribution's own
 * directory) is always in the last file, because moving it to the front would move the image's libraries too; and
 * behind a comment that marks it, because its entries in a cache are the image's.
 */

#define LOADER_CACHE "/etc/ld.so.cache"
#define LOADER_CONF_FIRST "/etc/ld.so.conf.d/00-ctr-gpu.conf"
#define LOADER_CONF_LAST "/etc/ld.so.conf.d/zz-ctr-gpu.conf"

enum { LOADER_CONF_MAX_SIZE = 64 * 1024 };

/**
 * loader_conf_include() - a ld.so.conf that has ldconfig read our files, too
 * @old: the image's; NULL if it has none
 * @ret: text; NULL: the image's does, as most do by "include /etc/ld.so.conf.d/" and a pattern
 *
 * What an included file includes is not looked at. Return: 0 or -ENOMEM.
 */
int loader_conf_include(const char *old, char **ret);

/** Appends the directories that were ours alone when @text was written, at most some dozens. Return: 0 or -ENOMEM. */
int loader_conf_parse(const char *text, struct strv *ret);
