/* SPDX-License-Identifier: Apache-2.0 */

/* Programs on a PATH of a root directory of the test's own. */

#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "engines/daemon.h"

static char root_path[64];

static char *below(const char *path)
{
	static char text[256];

	(void)snprintf(text, sizeof(text), "%s%s", root_path, path);
	return text;
}

static void put(const char *path, mode_t mode)
{
	int fd = open(below(path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
}

static int begin(void **state)
{
	(void)state;
	(void)snprintf(root_path, sizeof(root_path), "/tmp/program_test-XXXXXX");
	if (!mkdtemp(root_path))
		return -1;
	for (const char *const *name = (const char *const[]){"/a", "/b", "/b/tool", "/c", NULL}; *name; name++)
		if (mkdir(below(*name), 0755) < 0)
			return -1;
	put("/a/tool", 0644);
	put("/c/tool", 0755);
	put("/c/ctr-gpu-hook", 0755);
	if (symlink("ctr-gpu-hook", below("/c/nvidia-container-runtime-hook")) < 0 ||
	    symlink("/c/tool", below("/a/inside")) < 0 || symlink("../../../../../bin/sh", below("/a/outside")) < 0 ||
	    symlink("loop", below("/a/loop")) < 0 || symlink("/none", below("/a/nowhere")) < 0)
		return -1;
	return mkfifo(below("/a/fifo"), 0755);
}

static int end(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", root_path);
	return system(command);
}

static void expect(const char *path, const char *name, const char *found, bool ours)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_program_ struct program program = {0};

	assert_int_equal(rootfs_open(AT_FDCWD, root_path, &root), 0);
	assert_int_equal(path_lookup_find(&root, path, name, &program), found != NULL);
	if (found)
		assert_string_equal(program.path, found);
	else
		assert_null(program.path);
	assert_int_equal(program.ours, ours);
}

static void the_first_that_may_be_executed(void **state)
{
	(void)state;
	/* A file without the right, and a directory, are passed over. */
	expect("/a:/b:/c", "tool", "/c/tool", false);
	expect("/c:/a", "tool", "/c/tool", false);
	expect("/a:/b", "tool", NULL, false);
	expect("/a", "fifo", NULL, false);
	expect("/c", "nvidia-container-runtime-hook", "/c/nvidia-container-runtime-hook", true);
}

static void paths_of_any_kind(void **state)
{
	_cleanup_free_ char *long_path = malloc(100001);

	(void)state;
	expect("", "tool", NULL, false);
	expect(":::", "tool", NULL, false);
	/* What is relative depends on where somebody stands. */
	expect("c:.:../c", "tool", NULL, false);
	expect("/none::/c:", "tool", "/c/tool", false);
	expect("/c", "", NULL, false);
	expect("/c", "../a/../c/tool", "/c/../a/../c/tool", false);
	assert_non_null(long_path);
	memset(long_path, 'x', 100000);
	long_path[0] = '/';
	long_path[100000] = '\0';
	expect(long_path, "tool", NULL, false);
}

static void links_stay_in_the_root(void **state)
{
	(void)state;
	expect("/a", "inside", "/a/inside", false);
	expect("/a", "outside", NULL, false);
	expect("/a", "loop", NULL, false);
	expect("/a", "nowhere", NULL, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_may_be_executed),
		cmocka_unit_test(paths_of_any_kind),
		cmocka_unit_test(links_stay_in_the_root),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
