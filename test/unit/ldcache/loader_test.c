/* SPDX-License-Identifier: Apache-2.0 */

/* What an image gets so that its loader finds the driver: images in a scratch directory, plans written by hand. */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cache-builder.h"
#include "ldcache/ldcache.h"
#include "ldcache/loader.h"

#define FIRST "/etc/ld.so.conf.d/00-ctr-gpu.conf"
#define MAIN "/etc/ld.so.conf"
#define LAST "/etc/ld.so.conf.d/zz-ctr-gpu.conf"
#define CACHE "/etc/ld.so.cache"
#ifdef __x86_64__
#define GLIBC_DIRECTORY "lib64"
#define GLIBC_LOADER "lib64/ld-linux-x86-64.so.2"
#define MUSL_LOADER "lib/ld-musl-x86_64.so.1"
#define MUSL_PATH "/etc/ld-musl-x86_64.path"
#else
#define GLIBC_DIRECTORY "lib"
#define GLIBC_LOADER "lib/ld-linux-aarch64.so.1"
#define MUSL_LOADER "lib/ld-musl-aarch64.so.1"
#define MUSL_PATH "/etc/ld-musl-aarch64.path"
#endif
#define COMMENT "# Directories of the host's GPU driver. Written by ctr-gpu when the container starts.\n"

struct image {
	char path[32];
	int fd;
	struct rootfs rootfs;
	struct loader_file *files;
	size_t count;
	struct err err;
};

static void put_text(struct image *image, const char *path, const char *text);

static int image_new(void **state)
{
	struct image *image = calloc(1, sizeof(*image));

	strcpy(image->path, "/tmp/ctr-gpu-loader.XXXXXX");
	assert_non_null(mkdtemp(image->path));
	image->fd = open(image->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(rootfs_open(AT_FDCWD, image->path, &image->rootfs), 0);
	image->rootfs.undo_log = undo_log_new(false);
	assert_non_null(image->rootfs.undo_log);
	assert_int_equal(mkdirat(image->fd, "etc", 0755), 0);
	assert_int_equal(mkdirat(image->fd, "etc/ld.so.conf.d", 0755), 0);
	put_text(image, MAIN, "include ld.so.conf.d/*.conf\n");
	assert_int_equal(mkdirat(image->fd, "lib", 0755), 0);
	(void)mkdirat(image->fd, GLIBC_DIRECTORY, 0755);
	*state = image;
	return 0;
}

static int image_free(void **state)
{
	struct image *image = *state;
	char command[64];

	(void)snprintf(command, sizeof(command), "rm -rf %s", image->path);
	assert_int_equal(system(command), 0);
	loader_files_free(image->files, image->count);
	undo_log_free(image->rootfs.undo_log);
	rootfs_close(&image->rootfs);
	(void)close(image->fd);
	free(image);
	return 0;
}

static void put_file(struct image *image, const char *path, const void *data, size_t size)
{
	_cleanup_close_ int fd =
		openat(image->fd, path + (*path == '/'), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, size), 0);
}

static void put_text(struct image *image, const char *path, const char *text)
{
	put_file(image, path, text, strlen(text));
}

static void put_cache(struct image *image, const struct built_entry *entries, size_t count)
{
	struct built_cache cache = build_cache(FORMAT_NEW, entries, count, NULL, 0);

	put_file(image, CACHE, cache.data, cache.size);
	free(cache.data);
}

/* ---- plans ---- */

#define TEXT(text) ((char[]){text})

static char *wsl_libraries[] = {TEXT("libcuda.so.1"), TEXT("libdxcore.so")};
static char *intel_libraries[] = {TEXT("libigc.so.2"), TEXT("libLLVM.so.15")};
static char *native_libraries[] = {TEXT("libcuda.so.1")};

static struct plan_mount mounts[] = {
	{.source = TEXT("/usr/lib/wsl/lib"), .target = TEXT("/usr/lib/wsl/lib"), .directory = true},
	{.source = TEXT("/usr/lib/wsl/drivers/iigd"), .target = TEXT("/usr/lib/wsl/drivers/iigd"), .directory = true},
	{.source = TEXT("/lib/native/libcuda.so.1"), .target = TEXT("/lib/native/libcuda.so.1")},
};

static struct plan_library_dir wsl_dirs[] = {
	{TEXT("/usr/lib/wsl/lib"), true, {wsl_libraries, 2}, NULL, {0}},
	{TEXT("/usr/lib/wsl/drivers/iigd"), false, {intel_libraries, 2}, NULL, {0}},
};

static struct plan_library_dir native_dirs[] = {
	{TEXT("/lib/native"), true, {native_libraries, 1}, NULL, {0}},
};

static const struct plan wsl_plan = {
	.mounts = mounts, .mount_count = 3, .library_dirs = wsl_dirs, .library_dir_count = 2};
static const struct plan lib_plan = {
	.mounts = mounts, .mount_count = 3, .library_dirs = wsl_dirs, .library_dir_count = 1};
static const struct plan native_plan = {
	.mounts = mounts, .mount_count = 3, .library_dirs = native_dirs, .library_dir_count = 1};
static const struct plan empty_plan = {0};

/* ---- asking, and applying as apply does ---- */

static void ask(struct image *image, const struct plan *plan)
{
	image->files = loader_files_free(image->files, image->count);
	image->count = 0;
	assert_int_equal(loader_files(&image->rootfs, plan, &image->files, &image->count, &image->err), 0);
}

static const struct loader_file *find_file(const struct image *image, const char *path)
{
	for (size_t i = 0; i < image->count; i++)
		if (streq(image->files[i].path, path))
			return &image->files[i];
	return NULL;
}

static void expect_text(const struct image *image, const char *path, const char *text)
{
	const struct loader_file *file = find_file(image, path);

	struct built_cache content;

	assert_non_null(file);
	content = join_parts(file->parts, ARRAY_SIZE(file->parts));
	assert_int_equal(content.size, strlen(text));
	assert_memory_equal(content.data, text, content.size);
	free(content.data);
}

static bool contains(const struct loader_file *file, const char *text)
{
	struct built_cache content = join_parts(file->parts, ARRAY_SIZE(file->parts));
	bool found = memmem(content.data, content.size, text, strlen(text));

	free(content.data);
	return found;
}

static void expect_library(const struct image *image, const char *name, const char *path)
{
	const struct loader_file *file = find_file(image, CACHE);
	struct built_cache cache;
	const char *found;

	assert_non_null(file);
	cache = join_parts(file->parts, ARRAY_SIZE(file->parts));
	found = ldcache_find(&(struct span){cache.data, cache.size}, name);
	assert_true((found == NULL) == (path == NULL));
	if (path)
		assert_string_equal(found, path);
	free(cache.data);
}

static void apply_files(struct image *image)
{
	for (size_t i = 0; i < image->count; i++)
		assert_int_equal(rootfs_replace_file(&image->rootfs, image->files[i].path, image->files[i].parts,
						     ARRAY_SIZE(image->files[i].parts), 0644),
				 0);
}

/* ---- glibc ---- */

static const struct built_entry baked[] = {
	{"libz.so.1", "/lib/libz.so.1", ABI_HERE, 0},
	{"libcuda.so.1", "/baked/libcuda.so.1", ABI_HERE, 0},
	{"libLLVM.so.15", "/lib/libLLVM.so.15", ABI_HERE, 0},
};

static void test_glibc(void **state)
{
	struct image *image = *state;

	put_text(image, GLIBC_LOADER, "");
	put_cache(image, baked, ARRAY_SIZE(baked));
	ask(image, &wsl_plan);
	assert_int_equal(image->count, 3);
	expect_text(image, FIRST, COMMENT "/usr/lib/wsl/lib\n");
	expect_text(image, LAST, COMMENT "/usr/lib/wsl/drivers/iigd\n");
	assert_true(find_file(image, FIRST)->optional);
	assert_true(find_file(image, LAST)->optional);
	assert_false(find_file(image, CACHE)->optional);
	assert_string_equal(image->files[2].path, CACHE);
	expect_library(image, "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1");
	expect_library(image, "libLLVM.so.15", "/lib/libLLVM.so.15");
	expect_library(image, "libigc.so.2", "/usr/lib/wsl/drivers/iigd/libigc.so.2");
	expect_library(image, "libz.so.1", "/lib/libz.so.1");
}

static void test_second_start(void **state)
{
	struct image *image = *state;

	put_cache(image, baked, ARRAY_SIZE(baked));
	ask(image, &wsl_plan);
	apply_files(image);
	ask(image, &wsl_plan);
	assert_int_equal(image->count, 0);
	/* Another driver: the file for the last ones stays, and lists nothing. */
	ask(image, &lib_plan);
	assert_int_equal(image->count, 2);
	expect_text(image, LAST, COMMENT);
	expect_library(image, "libigc.so.2", NULL);
	apply_files(image);
	/* No GPU any more. */
	ask(image, &empty_plan);
	assert_int_equal(image->count, 2);
	expect_text(image, FIRST, COMMENT);
	expect_library(image, "libcuda.so.1", "/baked/libcuda.so.1");
	apply_files(image);
	ask(image, &empty_plan);
	assert_int_equal(image->count, 0);
}

static void test_no_cache(void **state)
{
	struct image *image = *state;

	ask(image, &lib_plan);
	assert_int_equal(image->count, 2);
	expect_library(image, "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1");
}

static void test_nothing_to_do(void **state)
{
	struct image *image = *state;

	put_cache(image, baked, ARRAY_SIZE(baked));
	ask(image, &empty_plan);
	assert_int_equal(image->count, 0);
}

static void test_ldconfig_run_inside(void **state)
{
	/* What an ldconfig run in the container finds through the drop-ins of an older driver. */
	static const struct built_entry found[] = {
		{"libnative.so.1", "/lib/native/libnative.so.1", ABI_HERE, 0},
		{"libgone.so.1", "/usr/lib/wsl/drivers/gone/libgone.so.1", ABI_HERE, 0},
		{"libgone.so.1", "/lib/libgone.so.1", ABI_HERE, 0},
		{"libdropped.so.1", "/usr/lib/wsl/lib/libdropped.so.1", ABI_HERE, 0},
	};
	struct image *image = *state;

	put_cache(image, found, ARRAY_SIZE(found));
	put_text(image, FIRST, COMMENT "/usr/lib/wsl/drivers/gone\n");
	put_text(image, LAST, COMMENT "# Shared with the image:\n/lib/native\n");
	ask(image, &lib_plan);
	expect_library(image, "libgone.so.1", "/lib/libgone.so.1");
	expect_library(image, "libdropped.so.1", NULL);
	expect_library(image, "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1");
	expect_library(image, "libnative.so.1", "/lib/native/libnative.so.1");
}

/* A directory that the image has too: its own libraries must neither move nor go. */
static void test_shared_directory(void **state)
{
	static const struct built_entry entries[] = {
		{"libnative.so.1", "/lib/native/libnative.so.1", ABI_HERE, 0},
		{"libcuda.so.1", "/baked/libcuda.so.1", ABI_HERE, 0},
	};
	struct image *image = *state;

	put_cache(image, entries, ARRAY_SIZE(entries));
	ask(image, &native_plan);
	assert_int_equal(image->count, 2);
	expect_text(image, LAST, COMMENT "# Shared with the image:\n/lib/native\n");
	expect_library(image, "libcuda.so.1", "/lib/native/libcuda.so.1");
	apply_files(image);
	put_cache(image, entries, ARRAY_SIZE(entries));
	ask(image, &native_plan);
	expect_library(image, "libnative.so.1", "/lib/native/libnative.so.1");
}

/* Below a directory that is mounted whole is the driver's; beside one with a longer name is not. */
static void test_neighbours(void **state)
{
	struct plan_library_dir dirs[] = {
		{TEXT("/usr/lib/wsl/lib/deep"), true, {wsl_libraries, 2}, NULL, {0}},
		{TEXT("/usr/lib/wsl/library"), true, {native_libraries, 1}, NULL, {0}},
	};
	struct plan plan = {.mounts = mounts, .mount_count = 3, .library_dirs = dirs, .library_dir_count = 2};
	struct image *image = *state;

	ask(image, &plan);
	expect_text(image, FIRST, COMMENT "/usr/lib/wsl/lib/deep\n");
	expect_text(image, LAST, COMMENT "# Shared with the image:\n/usr/lib/wsl/library\n");
}

static void test_unlistable_directory(void **state)
{
	struct plan_library_dir dirs[] = {{TEXT("/usr/lib/wsl/lib/a#b"), true, {wsl_libraries, 2}, NULL, {0}}};
	struct plan plan = {.mounts = mounts, .mount_count = 1, .library_dirs = dirs, .library_dir_count = 1};
	struct image *image = *state;

	ask(image, &plan);
	assert_int_equal(image->count, 1);
	expect_library(image, "libcuda.so.1", "/usr/lib/wsl/lib/a#b/libcuda.so.1");
}

/* ---- musl ---- */

static void test_musl(void **state)
{
	struct image *image = *state;

	put_text(image, MUSL_LOADER, "");
	ask(image, &wsl_plan);
	assert_int_equal(image->count, 1);
	expect_text(image, MUSL_PATH,
		    "/usr/lib/wsl/lib::\n/lib:/usr/local/lib:/usr/lib\n::/usr/lib/wsl/drivers/iigd\n");
	assert_false(image->files[0].optional);
	apply_files(image);
	ask(image, &wsl_plan);
	assert_int_equal(image->count, 0);
	ask(image, &lib_plan);
	expect_text(image, MUSL_PATH, "/usr/lib/wsl/lib::\n/lib:/usr/local/lib:/usr/lib\n");
}

static void test_musl_without_plan(void **state)
{
	struct image *image = *state;

	put_text(image, MUSL_LOADER, "");
	put_text(image, MUSL_PATH, "/own");
	ask(image, &empty_plan);
	assert_int_equal(image->count, 0);
	ask(image, &lib_plan);
	apply_files(image);
	ask(image, &empty_plan);
	expect_text(image, MUSL_PATH, "/own\n");
}

static void test_both_loaders(void **state)
{
	struct image *image = *state;

	put_text(image, MUSL_LOADER, "");
	put_text(image, GLIBC_LOADER, "");
	ask(image, &lib_plan);
	assert_int_equal(image->count, 3);
	assert_true(find_file(image, MUSL_PATH)->optional);
	assert_string_equal(image->files[2].path, CACHE);
}

/* ---- hostile images ---- */

static void make_fifo(struct image *image, const char *path)
{
	assert_int_equal(mkfifoat(image->fd, path + 1, 0644), 0);
}

static void make_directory(struct image *image, const char *path)
{
	assert_int_equal(mkdirat(image->fd, path + 1, 0755), 0);
}

static void make_loop(struct image *image, const char *path)
{
	assert_int_equal(symlinkat(path, image->fd, path + 1), 0);
}

/* On the host this is a file, and one that must not be read. */
static void make_escape(struct image *image, const char *path)
{
	assert_int_equal(symlinkat("../../../../../../../../etc/passwd", image->fd, path + 1), 0);
}

static void make_dangling(struct image *image, const char *path)
{
	assert_int_equal(symlinkat("/nowhere/at/all", image->fd, path + 1), 0);
}

static void test_odd_files(void **state)
{
	static void (*const makers[])(struct image *, const char *) = {make_fifo, make_directory, make_loop,
								       make_escape, make_dangling};
	static const char *const paths[] = {CACHE, FIRST, LAST, MUSL_PATH};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(makers); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(paths); j++) {
			void *one;
			struct image *image;

			assert_int_equal(image_new(&one), 0);
			image = one;
			put_text(image, MUSL_LOADER, "");
			put_text(image, GLIBC_LOADER, "");
			makers[i](image, paths[j]);
			ask(image, &wsl_plan);
			assert_int_equal(image->count, 4);
			expect_library(image, "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1");
			expect_text(image, FIRST, COMMENT "/usr/lib/wsl/lib\n");
			for (size_t k = 0; k < image->count; k++)
				assert_false(contains(&image->files[k], "root:"));
			assert_int_equal(image_free(&one), 0);
		}
	}
}

static void make_large(struct image *image, const char *path, off_t size)
{
	_cleanup_close_ int fd = openat(image->fd, path + 1, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
}

static void test_huge_cache(void **state)
{
	struct image *image = *state;

	make_large(image, CACHE, (off_t)LDCACHE_MAX_SIZE + 1);
	assert_int_equal(loader_files(&image->rootfs, &wsl_plan, &image->files, &image->count, &image->err), -EFBIG);
	assert_non_null(strstr(image->err.text, CACHE));
	assert_null(image->files);
	assert_int_equal(image->count, 0);
	make_large(image, CACHE, LDCACHE_MAX_SIZE);
	ask(image, &wsl_plan);
	expect_library(image, "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1");
}

static void test_huge_conf(void **state)
{
	struct image *image = *state;

	make_large(image, FIRST, (off_t)1 << 40);
	ask(image, &wsl_plan);
	expect_text(image, FIRST, COMMENT "/usr/lib/wsl/lib\n");
}

static void test_huge_musl_path(void **state)
{
	struct image *image = *state;

	put_text(image, MUSL_LOADER, "");
	make_large(image, MUSL_PATH, 1 << 20);
	assert_int_equal(loader_files(&image->rootfs, &wsl_plan, &image->files, &image->count, &image->err), -EFBIG);
	assert_non_null(strstr(image->err.text, MUSL_PATH));
}

/* Drop-ins of an attacker: a thousand directories, and all of the image's libraries as if they were ours. */
static void test_forged_conf(void **state)
{
	_cleanup_free_ char *text = calloc(1, 65536);
	struct image *image = *state;

	for (int i = 0; i < 1000; i++)
		(void)sprintf(text + strlen(text), "/lib/%d\n", i);
	put_cache(image, baked, ARRAY_SIZE(baked));
	put_text(image, FIRST, text);
	put_text(image, LAST, "/lib\n/lib\n\n#\n/");
	ask(image, &wsl_plan);
	expect_library(image, "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1");
}

/* What the image's ld.so.conf must say besides, so that ldconfig reads our files. */
static void test_include(void **state)
{
	static const struct {
		const char *old, *expected; /* NULL: it need not */
	} cases[] = {
		{NULL, "include " FIRST "\ninclude " LAST "\n"},
		{"", "include " FIRST "\ninclude " LAST "\n"},
		{"include /etc/ld.so.conf.d/*.conf\n", NULL},
		{"/lib\n \tinclude\told/*.conf ld.so.conf.d/*.conf # ours", NULL},
		{"include " FIRST "\ninclude " LAST, NULL},
		{"include " FIRST "\n/lib", "include " FIRST "\n/lib\ninclude " LAST "\n"},
		{"# include ld.so.conf.d/*.conf\n",
		 "include " FIRST "\n# include ld.so.conf.d/*.conf\ninclude " LAST "\n"},
		{"include # ld.so.conf.d/*.conf\n",
		 "include " FIRST "\ninclude # ld.so.conf.d/*.conf\ninclude " LAST "\n"},
		{"includes ld.so.conf.d/*.conf\n",
		 "include " FIRST "\nincludes ld.so.conf.d/*.conf\ninclude " LAST "\n"},
		{"include ld.so.conf.d/*/*.conf\n",
		 "include " FIRST "\ninclude ld.so.conf.d/*/*.conf\ninclude " LAST "\n"},
		{"include", "include " FIRST "\ninclude\ninclude " LAST "\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *text = NULL;

		assert_int_equal(loader_conf_include(cases[i].old, &text), 0);
		if (cases[i].expected)
			assert_string_equal(text, cases[i].expected);
		else
			assert_null(text);
	}
}

/* One in a volume may be the host's, and is left alone; one that ldconfig does not find is made. */
static void test_main_conf(void **state)
{
	struct image *image = *state;

	assert_int_equal(unlinkat(image->fd, &MAIN[1], 0), 0);
	make_fifo(image, MAIN);
	ask(image, &wsl_plan);
	assert_int_equal(image->count, 3);
	assert_int_equal(unlinkat(image->fd, &MAIN[1], 0), 0);
	put_text(image, MAIN, "/opt/lib");
	ask(image, &wsl_plan);
	assert_int_equal(image->count, 4);
	expect_text(image, MAIN, "include " FIRST "\n/opt/lib\ninclude " LAST "\n");
	assert_int_equal(unlinkat(image->fd, &MAIN[1], 0), 0);
	make_dangling(image, MAIN);
	ask(image, &wsl_plan);
	expect_text(image, MAIN, "include " FIRST "\ninclude " LAST "\n");
}

#define image_test(function) cmocka_unit_test_setup_teardown(function, image_new, image_free)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		image_test(test_glibc),
		image_test(test_second_start),
		image_test(test_no_cache),
		image_test(test_nothing_to_do),
		image_test(test_ldconfig_run_inside),
		image_test(test_shared_directory),
		image_test(test_neighbours),
		image_test(test_unlistable_directory),
		image_test(test_musl),
		image_test(test_musl_without_plan),
		image_test(test_both_loaders),
		cmocka_unit_test(test_include),
		image_test(test_main_conf),
		cmocka_unit_test(test_odd_files),
		image_test(test_huge_cache),
		image_test(test_huge_conf),
		image_test(test_huge_musl_path),
		image_test(test_forged_conf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
