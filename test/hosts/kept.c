/* SPDX-License-Identifier: Apache-2.0 */

#include "kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "tree.h"

static inline void cleanup_closedirp(DIR **directory)
{
	if (*directory)
		(void)closedir(*directory);
}

/* FNV-1a */
static void add(uint64_t *hash, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		*hash = (*hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
}

static void add_file(uint64_t *hash, int directory, const char *name)
{
	struct stat st = {0};

	add(hash, name, strlen(name) + 1);
	if (fstatat(directory, name, &st, 0) < 0)
		return;
	add(hash, &st.st_ino, sizeof(st.st_ino));
	add(hash, &st.st_size, sizeof(st.st_size));
	add(hash, &st.st_mtim, sizeof(st.st_mtim));
}

/* In whichever order they are. */
static void add_files(uint64_t *hash, const char *files, const char *set, const char *name)
{
	_cleanup_(cleanup_closedirp) DIR *directory = NULL;
	const struct dirent *entry;
	char path[KEPT_PATH_MAX];
	uint64_t sum = 0;

	(void)snprintf(path, sizeof(path), "%s/%s-%s", files, set, name);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		uint64_t file = 0xcbf29ce484222325;

		if (entry->d_name[0] == '.')
			continue;
		add_file(&file, directory_fd(directory), entry->d_name);
		sum += file;
	}
	add(hash, &sum, sizeof(sum));
}

/* A machine has run its own ldconfig(8) since a library came or went, or its programs do not know either. */
static uint64_t state(const struct profile *profile, const char *files)
{
	static const char *const machine[] = {"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
					      "/sbin/ldconfig"};
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++)
		add_file(&hash, AT_FDCWD, machine[i]);
	for (size_t i = 0; i < profile->lib_count; i++)
		add_files(&hash, files, "lib", profile->lib[i]);
	if (profile->libdxcore)
		add_files(&hash, files, "dxcore", profile->libdxcore);
	return hash;
}

/* What root makes in the build directory of another user, that user could not remove. */
void kept_find(const struct profile *profile, const char *files, struct kept *ret)
{
	struct stat st;

	ret->directory[0] = '\0';
	if (!profile->loader_cache || !profile->wsl_mounts || profile->lib_behind || profile->native.present)
		return;
	if (stat(files, &st) < 0 || st.st_uid != geteuid() || access("/etc/ld.so.cache", F_OK) < 0)
		return;
	(void)snprintf(ret->directory, sizeof(ret->directory), "%s/../loader/%016" PRIx64, files,
		       state(profile, files));
}

bool kept_use(const struct kept *kept, const char *lib)
{
	if (!kept->directory[0] || access(kept->directory, F_OK) < 0)
		return false;
	return tree_copy_one(kept->directory, "/etc", "ld.so.cache", 0644) == 0 &&
	       tree_copy_links(kept->directory, lib) == 0;
}

static void discard(const char *directory)
{
	_cleanup_(cleanup_closedirp) DIR *files = opendir(directory);
	const struct dirent *entry;

	while (files && (entry = readdir(files)))
		(void)unlinkat(directory_fd(files), entry->d_name, 0);
	(void)rmdir(directory);
}

void kept_save(const struct kept *kept, const char *lib_upper)
{
	char parent[KEPT_PATH_MAX], new[KEPT_PATH_MAX + 16];

	if (!kept->directory[0])
		return;
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(kept->directory, '/') - kept->directory),
		       kept->directory);
	(void)snprintf(new, sizeof(new), "%s.%d", kept->directory, (int)getpid());
	if ((mkdir(parent, 0755) < 0 && errno != EEXIST) || mkdir(new, 0755) < 0)
		return;
	/* Another host may have been quicker. */
	if (tree_copy_one("/etc", new, "ld.so.cache", 0644) < 0 || tree_copy_links(lib_upper, new) < 0 ||
	    rename(new, kept->directory) < 0)
		discard(new);
}
