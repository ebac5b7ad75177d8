/* SPDX-License-Identifier: Apache-2.0 */

/* Which runtime is executed: directories with programs stand for the machine's. */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hooks/runtime/runtime.h"

static char root[] = "/tmp/ctr-gpu-real-XXXXXX";

static const char *in_root(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
	return path;
}

static void make_file(const char *name, mode_t mode)
{
	int fd = open(in_root(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* Names of @runtimes, JSON, are looked for in PATH = @path below the root. */
static char *find(const char *runtimes, const char *path, int expected)
{
	struct ctr_gpu_context *context;
	FILE *file = fopen(in_root("config.json"), "we");
	char *found = NULL;

	assert_non_null(file);
	assert_true(fprintf(file, "{\"runtimes\": %s}", runtimes) > 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(setenv("PATH", path, 1), 0);
	assert_int_equal(ctr_gpu_context_new(&context), 0);
	assert_int_equal(ctr_gpu_context_load_config(context, in_root("config.json")), 0);
	assert_int_equal(find_runtime(context, &found), expected);
	(void)ctr_gpu_context_unref(context);
	return found;
}

static void expect(const char *runtimes, const char *path, const char *expected)
{
	char *found = find(runtimes, path, 0);

	assert_string_equal(found, expected);
	free(found);
}

static void the_first_that_is_installed(void **state)
{
	char path[256];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s:%s", in_root("a"), in_root("b"));
	expect("[\"test-one\", \"test-two\"]", path, in_root("a/test-one"));
	expect("[\"test-none\", \"test-two\", \"test-one\"]", path, in_root("b/test-two"));
	/* In PATH's order, and not one that cannot be executed, or a directory. */
	expect("[\"test-both\"]", path, in_root("a/test-both"));
	expect("[\"test-file\"]", path, in_root("b/test-file"));
	expect("[\"test-directory\"]", path, in_root("b/test-directory"));
}

static void absolute_paths_are_taken_as_they_are(void **state)
{
	char json[256];

	(void)state;
	(void)snprintf(json, sizeof(json), "[\"%s\", \"%s\"]", in_root("nothing"), in_root("b/test-two"));
	expect(json, "/nonexistent", in_root("b/test-two"));
}

/* The working directory is a bundle, whose files an image may have brought. */
static void never_the_working_directory(void **state)
{
	(void)state;
	assert_int_equal(chdir(in_root("a")), 0);
	assert_null(find("[\"test-one\"]", "", -ENOENT));
	assert_null(find("[\"test-one\"]", ":.::./", -ENOENT));
	assert_null(find("[\"test-one\"]", "../a", -ENOENT));
	assert_int_equal(chdir("/"), 0);
}

/* It would start itself for ever. */
static void never_this_program(void **state)
{
	(void)state;
	assert_int_equal(symlink("/proc/self/exe", in_root("a/test-self")), 0);
	assert_null(find("[\"test-self\"]", in_root("a"), -ENOENT));
	expect("[\"test-self\", \"test-one\"]", in_root("a"), in_root("a/test-one"));
}

static void a_sibling(void **state)
{
	char self[256], *path;
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	assert_true(length > 0);
	self[length] = '\0';
	path = find_runtime_beside(strrchr(self, '/') + 1);
	assert_string_equal(path, self);
	free(path);
	assert_null(find_runtime_beside("not-installed"));
}

static int make_root(void **state)
{
	(void)state;
	if (!mkdtemp(root) || mkdir(in_root("a"), 0755) < 0 || mkdir(in_root("b"), 0755) < 0 ||
	    mkdir(in_root("a/test-directory"), 0755) < 0)
		return -1;
	make_file("a/test-one", 0755);
	make_file("b/test-two", 0755);
	make_file("a/test-both", 0755);
	make_file("b/test-both", 0755);
	make_file("a/test-file", 0644);
	make_file("b/test-file", 0755);
	make_file("b/test-directory", 0755);
	return 0;
}

static int remove_root(void **state)
{
	static const char *const files[] = {"a/test-one",       "b/test-two",  "a/test-both",
					    "b/test-both",      "a/test-file", "b/test-file",
					    "b/test-directory", "a/test-self", "config.json"};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		(void)unlink(in_root(files[i]));
	return rmdir(in_root("a/test-directory")) + rmdir(in_root("a")) + rmdir(in_root("b")) + rmdir(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_is_installed),
		cmocka_unit_test(absolute_paths_are_taken_as_they_are),
		cmocka_unit_test(never_the_working_directory),
		cmocka_unit_test(never_this_program),
		cmocka_unit_test(a_sibling),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
