/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the loader part of a container's start does to a root directory, and nothing else: for tests that let real loaders
 * judge the result.
 *
 *	ldcache-merge ROOT [-n] DIRECTORY...    driver directories as they are below ROOT, each the driver's alone; those behind
 *	                                        -n only fill gaps
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ldcache/loader.h"
#include "root/rootfs.h"
#include "root/undo_log.h"

static int add_directory(struct plan *plan, const char *root, const char *path, bool overrides)
{
	struct plan_mount mount = {
		.source = strdup(path), .target = strdup(path), .directory = true, .reason = strdup("test")};
	struct plan_library_dir dir = {.path = strdup(path), .overrides_image = overrides, .reason = strdup("test")};
	_cleanup_free_ char *below = NULL;
	struct dirent *entry;
	DIR *open_dir;
	int r = 0;

	if (str_format(&below, "%s%s", root, path) < 0)
		return -ENOMEM;
	open_dir = opendir(below);
	if (!open_dir)
		return -errno;
	while (r == 0 && (entry = readdir(open_dir)))
		if (strstr(entry->d_name, ".so"))
			r = strv_add(&dir.libraries, entry->d_name);
	(void)closedir(open_dir);
	if (r == 0)
		r = plan_add_mount(plan, &mount);
	return r < 0 ? r : plan_add_library_dir(plan, &dir);
}

static int write_files(struct rootfs *rootfs, const struct plan *plan, struct err *err)
{
	struct loader_file *files = NULL;
	size_t count = 0;
	int r;

	r = loader_files(rootfs, plan, &files, &count, err);
	for (size_t i = 0; r == 0 && i < count; i++) {
		printf("%s\n", files[i].path);
		r = rootfs_replace_file(rootfs, files[i].path, files[i].parts, ARRAY_SIZE(files[i].parts), 0644);
	}
	loader_files_free(files, count);
	return r;
}

int main(int argc, char **argv)
{
	_cleanup_rootfs_ struct rootfs rootfs = ROOTFS_CLOSED;
	struct plan plan = {0};
	struct err err = {0};
	bool overrides = true;
	int r;

	if (argc < 2)
		return 2;
	r = rootfs_open(AT_FDCWD, argv[1], &rootfs);
	rootfs.undo_log = undo_log_new(false);
	if (!rootfs.undo_log)
		r = -ENOMEM;
	for (int i = 2; r == 0 && i < argc; i++) {
		if (streq(argv[i], "-n"))
			overrides = false;
		else
			r = add_directory(&plan, argv[1], argv[i], overrides);
	}
	if (r == 0)
		r = write_files(&rootfs, &plan, &err);
	plan_clear(&plan);
	rootfs.undo_log = undo_log_free(rootfs.undo_log);
	if (r < 0)
		fprintf(stderr, "ldcache-merge: %s %s\n", strerror(-r), err.text);
	return r < 0;
}
