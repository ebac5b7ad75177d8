/* SPDX-License-Identifier: Apache-2.0 */

/* Where the driver's files are found: in a driver root that is a directory of the test's, through caches of every layout. */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

#include <elf.h>
#include <errno.h>

#include "base/fd.h"
#include "ldcache/cache-builder.h"
#include "nvidia/internal.h"
#include "nvidia/nvidia.h"
#include "process/seccomp.h"

#define VERSION "580.159.04"

/* How much later it is for what is tested. */
static time_t ahead;

time_t time(time_t *ret)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec + ahead;
	return now.tv_sec + ahead;
}

/* A machine with the driver spread over two directories, and links to it in a third. */
struct world {
	char root[64];
	struct settings settings;
};

static const char *inside(const struct world *world, const char *path)
{
	static char text[256];

	(void)snprintf(text, sizeof(text), "%s%s", world->root, path);
	return text;
}

static void directory(const struct world *world, const char *path)
{
	assert_int_equal(mkdir(inside(world, path), 0755), 0);
}

static void write_at(const struct world *world, const char *path, const void *data, size_t size)
{
	_cleanup_close_ int fd = open(inside(world, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, size), 0);
}

static void library(const struct world *world, const char *path)
{
	Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_DYN};

#if defined(__aarch64__)
	header.e_machine = EM_AARCH64;
#else
	header.e_machine = EM_X86_64;
#endif
	write_at(world, path, &header, sizeof(header));
}

static void link_at(const struct world *world, const char *path, const char *points_to)
{
	assert_int_equal(symlink(points_to, inside(world, path)), 0);
}

/* The answer is an errno, also where the module is loaded and its node is missing. */
static void no_watch_without_the_node(void **state)
{
	const struct world *world = *state;
	struct driverd_watch watch = DRIVERD_WATCH_NONE;
	struct err err = {0};

	if (access("/dev/nvidiactl", F_OK) == 0)
		skip("has NVIDIA's driver");
	assert_int_equal(nvidia_watch(&world->settings, NULL, &watch, &err), -ENOENT);
}

static int set_up(void **state)
{
	static const char *const directories[] = {"/etc", "/usr", "/usr/lib", "/drv", "/apart", "/bin", "/links"};
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	(void)strcpy(world->root, "/tmp/ctr-gpu-install.XXXXXX");
	assert_non_null(mkdtemp(world->root));
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		directory(world, directories[i]);
	library(world, "/drv/libcuda.so." VERSION);
	library(world, "/drv/libnvidia-ml.so." VERSION);
	library(world, "/apart/libnvidia-tls.so." VERSION);
	link_at(world, "/drv/libcuda.so.1", "libcuda.so." VERSION);
	link_at(world, "/links/libcuda.so.1", "/drv/libcuda.so.1");
	link_at(world, "/links/libnvidia-ml.so.1", "../drv/libnvidia-ml.so." VERSION);
	library(world, "/links/libnvcuvid.so.1");
	write_at(world, "/bin/nvidia-smi", "x", 1);
	link_at(world, "/sbin", "bin");
	world->settings.driver_root = world->root;
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", world->root);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
	free(world);
	return 0;
}

static const struct built_entry sorted[] = {
	{"libzzz.so.1", "/usr/lib/libzzz.so.1", ABI_HERE, 0},
	{"libnvidia-tls.so." VERSION, "/apart/libnvidia-tls.so." VERSION, ABI_HERE, 0},
	{"libnvidia-ml.so.1", "/links/libnvidia-ml.so.1", ABI_HERE, 0},
	{"libnvcuvid.so.1", "/links/libnvcuvid.so.1", ABI_HERE, 0},
	{"libcuda.so.1", "/links/libcuda.so.1", ABI_HERE, HWCAP_NAMED(0)},
	{"libcuda.so", "/links/libcuda.so.1", ABI_HERE, 0},
	{"libcu", "/usr/lib/libcu", ABI_HERE, 0},
	{"lib", "/usr/lib/lib", ABI_HERE, 0},
	{"li", "relative", ABI_HERE, 0},
};

/* Every order of the entries but the first is one that ldconfig(8) does not write. */
static void caches_of_every_layout(void **state)
{
	static const char *const hwcaps[] = {"x86-64-v3"};
	const struct world *world = *state;
	struct built_entry entries[ARRAY_SIZE(sorted)];

	for (size_t turn = 0; turn < ARRAY_SIZE(sorted); turn++)
		for (enum cache_format format = FORMAT_NEW; format <= FORMAT_OLD; format++) {
			_cleanup_install_ struct driver_files install = {.root = ROOTFS_CLOSED};
			struct built_cache cache;
			struct err err = {0};

			for (size_t i = 0; i < ARRAY_SIZE(sorted); i++)
				entries[i] = sorted[(i + turn) % ARRAY_SIZE(sorted)];
			cache = build_cache(format, entries, ARRAY_SIZE(entries), hwcaps, 1);
			write_at(world, "/etc/ld.so.cache", cache.data, cache.size);
			free(cache.data);
			assert_int_equal(driver_files_open(&world->settings, VERSION, NULL, &install, &err), 0);
			assert_int_equal(install.dir_count, 2);
			/* Versioned names come last, wherever they are. */
			assert_string_equal(install.dirs[0].path, inside(world, "/drv"));
			assert_string_equal(install.dirs[1].path, inside(world, "/apart"));
		}
}

static void names_that_only_begin_alike(void **state)
{
	static const struct built_entry others[] = {
		{"libnvidia-tls.so.1", "/apart/libnvidia-tls.so." VERSION, ABI_HERE, 0},
		{"libnvidia-mlx.so.1", "/links/libnvidia-ml.so.1", ABI_HERE, 0},
		{"libcuda.so.10", "/links/libcuda.so.1", ABI_HERE, 0},
		{"xxxcuda.so.1", "/links/libcuda.so.1", ABI_HERE, 0},
		{"", "/links/libcuda.so.1", ABI_HERE, 0},
		{"libcuda.so.1", "links/libcuda.so.1", ABI_HERE, 0},
		{"libcuda.so.1", "/libcuda.so.1", ABI_HERE, 0},
	};
	const struct world *world = *state;
	struct built_cache cache = build_cache(FORMAT_NEW, others, ARRAY_SIZE(others), NULL, 0);
	_cleanup_install_ struct driver_files install = {.root = ROOTFS_CLOSED};
	struct err err = {0};

	link_at(world, "/libcuda.so.1", "drv/libcuda.so.1");
	write_at(world, "/etc/ld.so.cache", cache.data, cache.size);
	free(cache.data);
	assert_int_equal(driver_files_open(&world->settings, VERSION, NULL, &install, &err), CTR_GPU_E_DRIVER_LIBRARY);
}

static void install_cache(const struct world *world)
{
	struct built_cache cache = build_cache(FORMAT_NEW, sorted, ARRAY_SIZE(sorted), NULL, 0);

	write_at(world, "/etc/ld.so.cache", cache.data, cache.size);
	free(cache.data);
}

/* @real: below the root; NULL: it is missing. Frees the path. */
static void assert_file(const struct world *world, int r, struct driver_files_file *file, const char *real)
{
	assert_true(real ? r == 0 : r < 0);
	if (real)
		assert_string_equal(file->path, inside(world, real));
	free(steal_ptr(file->path));
}

static void files_below_the_root(void **state)
{
	static const struct {
		const char *path, *real; /* NULL: it is missing */
	} files[] = {
		{"/bin/nvidia-smi", "/bin/nvidia-smi"},
		{"/sbin/nvidia-smi", "/bin/nvidia-smi"},
		{"/links/libcuda.so.1", "/drv/libcuda.so." VERSION},
		{"/bin", "/bin"},
		{"/bin/nvidia-debugdump", NULL},
		{"/sbin/nvidia-debugdump", NULL},
		{"/bin/nvidia-smi/x", NULL},
		{"/nowhere/nvidia-smi", NULL},
		{"/out/nvidia-smi", "/bin/nvidia-smi"},
		{"/bin/up", "/bin"},
	};
	const struct world *world = *state;
	_cleanup_install_ struct driver_files install = {.root = ROOTFS_CLOSED};
	struct err err = {0};

	install_cache(world);
	/* Symlinks begin anew at the root, and none leads out of it. */
	link_at(world, "/out", "/../../bin");
	link_at(world, "/bin/up", "../../../../bin");
	assert_int_equal(driver_files_open(&world->settings, VERSION, NULL, &install, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct driver_files_file file = {0};

		assert_file(world, driver_files_find(&install, files[i].path, &file), &file, files[i].real);
		/* Directories are known from the second time on. */
		for (int again = 0; again < 2; again++) {
			const char *name = strrchr(files[i].path, '/') + 1;
			_cleanup_free_ char *place = strndup(files[i].path, (size_t)(name - 1 - files[i].path));
			int r = driver_files_find_in(&install, place, name, &file);

			assert_file(world, r, &file, files[i].real);
		}
		assert_file(world, driver_files_find_in(&install, "", files[i].path + 1, &file), &file, files[i].real);
	}
}

static void more_directories_than_are_known(void **state)
{
	const struct world *world = *state;
	_cleanup_install_ struct driver_files install = {.root = ROOTFS_CLOSED};
	const unsigned before = unit_count_descriptors();
	struct err err = {0};

	install_cache(world);
	assert_int_equal(driver_files_open(&world->settings, VERSION, NULL, &install, &err), 0);
	for (int i = 0; i < 3 * DRIVER_FILES_SEARCHED_MAX; i++) {
		char place[16], path[64];
		struct driver_files_file file = {0};

		(void)snprintf(place, sizeof(place), "/p%d", i % (DRIVER_FILES_SEARCHED_MAX + 2));
		(void)snprintf(path, sizeof(path), "%s/nvidia-smi", place);
		if (i < DRIVER_FILES_SEARCHED_MAX + 2) {
			directory(world, place);
			write_at(world, path, "", 0);
		}
		assert_file(world, driver_files_find_in(&install, place, "nvidia-smi", &file), &file, path);
	}
	driver_files_close(&install);
	assert_int_equal(unit_count_descriptors(), before);
}

/* What fails for now is asked again. */
static void a_failure_is_not_known(void **state)
{
	const struct world *world = *state;
	_cleanup_install_ struct driver_files install = {.root = ROOTFS_CLOSED};
	struct rlimit limit, none = {0};
	struct driver_files_file file = {0};
	struct err err = {0};
	int r;

	install_cache(world);
	assert_int_equal(driver_files_open(&world->settings, VERSION, NULL, &install, &err), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = driver_files_find_in(&install, "/bin", "nvidia-smi", &file);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(r, -EMFILE);
	r = driver_files_find_in(&install, "/bin", "nvidia-smi", &file);
	assert_file(world, r, &file, "/bin/nvidia-smi");
}

/* ---- what is known from an earlier time ---- */

/* What a start keeps. Return: whether that is where the driver is. */
static bool keep(const struct world *world, struct nvidia_cache *known)
{
	_cleanup_libraries_ struct driver_files_libraries libraries = {0};
	_cleanup_install_ struct driver_files install = {.root = ROOTFS_CLOSED};
	struct err err = {0};

	assert_int_equal(driver_files_open(&world->settings, VERSION, known, &install, &err), 0);
	assert_int_equal(driver_files_libraries(&install, CAPABILITY_ALL, &libraries), 0);
	assert_int_equal(libraries.count, 3);
	assert_int_equal(driver_files_cache_put(&install, known), 0);
	return known->driver.version;
}

/* Whether the next start believes it. It finds the same, or fails, whatever it believes. */
static bool believed(const struct world *world, const struct nvidia_cache *known, const char *version, size_t count)
{
	_cleanup_libraries_ struct driver_files_libraries libraries = {0};
	_cleanup_install_ struct driver_files install = {.root = ROOTFS_CLOSED};
	struct err err = {0};
	int r = driver_files_open(&world->settings, version, known, &install, &err);

	if (r != 0) {
		assert_int_equal(count, 0);
		return false;
	}
	assert_int_equal(driver_files_libraries(&install, CAPABILITY_ALL, &libraries), 0);
	assert_int_equal(libraries.count, count);
	return !install.is_new;
}

static void change_nothing(const struct world *world)
{
	(void)world;
}

static void change_cache(const struct world *world)
{
	install_cache(world);
}

static void add_library(const struct world *world)
{
	library(world, "/drv/libnvcuvid.so." VERSION);
}

static void take_library(const struct world *world)
{
	assert_int_equal(unlink(inside(world, "/drv/libnvidia-ml.so." VERSION)), 0);
}

static void change_link(const struct world *world)
{
	assert_int_equal(unlink(inside(world, "/links/libcuda.so.1")), 0);
	link_at(world, "/links/libcuda.so.1", "../drv/libcuda.so.1");
}

static void change_mode(const struct world *world)
{
	assert_int_equal(chmod(inside(world, "/apart"), 0700), 0);
}

/* The same names and times, and another directory. */
static void replace_directory(const struct world *world)
{
	char from[128], to[128];
	struct timespec times[2];
	struct stat st;

	(void)snprintf(from, sizeof(from), "%s/apart", world->root);
	(void)snprintf(to, sizeof(to), "%s/before", world->root);
	assert_int_equal(stat(from, &st), 0);
	assert_int_equal(rename(from, to), 0);
	directory(world, "/apart");
	library(world, "/apart/libnvidia-tls.so." VERSION);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	assert_int_equal(utimensat(AT_FDCWD, from, times, 0), 0);
}

static const struct {
	void (*change)(const struct world *world);
	const char *version;
	size_t count; /* of libraries then; 0: no driver is found */
	bool believed;
} changes[] = {
	{change_nothing, VERSION, 3, true}, {change_nothing, "570.86.10", 0, false}, {change_cache, VERSION, 3, false},
	{add_library, VERSION, 4, false},   {take_library, VERSION, 2, false},       {change_link, VERSION, 3, false},
	{change_mode, VERSION, 3, false},   {replace_directory, VERSION, 3, false},
};

/* Each in a world of its own, as each would have to wait until its directories are settled. */
static void what_is_kept_is_believed_until_something_changes(void **state)
{
	struct world *worlds[ARRAY_SIZE(changes)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct nvidia_cache known = {0};

		assert_int_equal(set_up((void **)&worlds[i]), 0);
		install_cache(worlds[i]);
		/* A directory that has just changed may change again without other times. */
		assert_false(keep(worlds[i], &known));
		nvidia_cache_close(&known);
	}
	(void)sleep(4);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct nvidia_cache known = {.head = strdup("head")}, read = {.head = strdup("head")};
		_cleanup_free_ char *text = NULL;

		assert_true(keep(worlds[i], &known));
		assert_int_equal(nvidia_cache_print(&known, &text), 0);
		assert_int_equal(nvidia_cache_parse(text, strlen(text), &read), 0);
		nvidia_cache_close(&known);
		changes[i].change(worlds[i]);
		if (believed(worlds[i], &read, changes[i].version, changes[i].count) != changes[i].believed)
			fail_msg("change %zu", i);
		/* Somebody may have written anything, and it leads nowhere outside the driver root. */
		assert_int_equal(str_replace(&read.driver.dirs[0].place.path, "/usr/lib"), 0);
		assert_false(believed(worlds[i], &read, changes[i].version, changes[i].count));
		nvidia_cache_close(&read);
		(void)tear_down((void **)&worlds[i]);
	}
}

static void another_root_is_another_driver(void **state)
{
	struct world *other = NULL;
	struct nvidia_cache known = {0};

	install_cache(*state);
	assert_int_equal(set_up((void **)&other), 0);
	install_cache(other);
	(void)sleep(4);
	assert_true(keep(*state, &known));
	assert_true(believed(*state, &known, VERSION, 3));
	assert_false(believed(other, &known, VERSION, 3));
	nvidia_cache_close(&known);
	(void)tear_down((void **)&other);
}

/* Part of a directory's list would be believed until the directory changes. */
static void part_of_a_directory_is_an_error(void **state)
{
	static const struct sock_filter filter[] = {LOAD(nr), JUMP(BPF_JEQ, SYS_getdents64, 0, 1), REFUSE(EIO), ALLOW};
	const struct world *world = *state;
	int wait_status;
	pid_t pid;

	install_cache(world);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct driver_files_libraries libraries = {0};
		struct driver_files install = {.root = ROOTFS_CLOSED};
		struct err err = {0};

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_install(filter, ARRAY_SIZE(filter)) < 0 ||
		    driver_files_open(&world->settings, VERSION, NULL, &install, &err) != 0)
			_exit(255);
		_exit(-driver_files_libraries(&install, CAPABILITY_ALL, &libraries));
	}
	assert_int_equal(waitpid(pid, &wait_status, 0), pid);
	assert_true(WIFEXITED(wait_status));
	assert_int_equal(WEXITSTATUS(wait_status), EIO);
}

/* A process that was held up for long behind its look, while something changed, must not take that for settled. */
static void what_changed_during_a_long_look_is_not_kept(void **state)
{
	_cleanup_libraries_ struct driver_files_libraries libraries = {0};
	_cleanup_install_ struct driver_files install = {.root = ROOTFS_CLOSED};
	const struct world *world = *state;
	struct nvidia_cache known = {0};
	struct err err = {0};

	install_cache(world);
	assert_int_equal(driver_files_open(&world->settings, VERSION, NULL, &install, &err), 0);
	assert_int_equal(driver_files_libraries(&install, CAPABILITY_ALL, &libraries), 0);
	ahead = 60;
	assert_int_equal(driver_files_cache_put(&install, &known), 0);
	ahead = 0;
	assert_null(known.driver.version);
	nvidia_cache_close(&known);
}

/* Any library with a SONAME; for free(). */
static char *read_library(size_t *ret_size)
{
	char *data = NULL;
	Dl_info libc;

	assert_true(dladdr(dlsym(RTLD_DEFAULT, "dladdr"), &libc) != 0);
	assert_int_equal(fd_read_file_at(AT_FDCWD, libc.dli_fname, 64 << 20, &data, ret_size), 0);
	return data;
}

/* The libraries of a world that the table does not know. */
static size_t count_unknown(const struct world *world, const char *path)
{
	_cleanup_libraries_ struct driver_files_libraries libraries = {0};
	_cleanup_install_ struct driver_files install = {.root = ROOTFS_CLOSED};
	struct err err = {0};
	size_t found = 0;

	assert_int_equal(driver_files_open(&world->settings, VERSION, NULL, &install, &err), 0);
	assert_int_equal(driver_files_libraries(&install, CAPABILITY_ALL, &libraries), 0);
	for (size_t i = 0; i < libraries.count; i++)
		found += !libraries.items[i].known && strcmp(libraries.items[i].path, inside(world, path)) == 0;
	return found;
}

/* A driver root's links are about the root, and what they lead to is read there. */
static void unknown_libraries_behind_links(void **state)
{
	const struct world *world = *state;
	_cleanup_free_ char *data = NULL;
	size_t size;

	data = read_library(&size);
	write_at(world, "/apart/real.so", data, size);
	link_at(world, "/drv/libnvidia-unheard-of.so." VERSION, "/apart/real.so");
	install_cache(world);
	assert_int_equal(count_unknown(world, "/apart/real.so"), 1);
}

/* Names become paths in config.json, which is JSON, and lines on terminals. */
static void names_that_are_not_text(void **state)
{
	static const char *const names[] = {"lib\377c", "lib\033c", "lib\nc"};
	const struct world *world = *state;
	_cleanup_free_ char *data = NULL;
	size_t size;

	install_cache(world);
	data = read_library(&size);
	write_at(world, "/drv/libnvidia-unheard-of.so." VERSION, data, size);
	assert_int_equal(count_unknown(world, "/drv/libnvidia-unheard-of.so." VERSION), 1);
	write_at(world, "/drv/libnvidia\377.so." VERSION, data, size);
	assert_int_equal(count_unknown(world, "/drv/libnvidia\377.so." VERSION), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		/* Its SONAME is libc.so.6, or that of another libc. */
		for (char *name = data; (name = memmem(name, size - (size_t)(name - data), "libc.", 5));)
			memcpy(name, names[i], 5);
		write_at(world, "/drv/libnvidia-unheard-of.so." VERSION, data, size);
		assert_int_equal(count_unknown(world, "/drv/libnvidia-unheard-of.so." VERSION), 0);
		free(steal_ptr(data));
		data = read_library(&size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(caches_of_every_layout, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_that_only_begin_alike, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_below_the_root, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_failure_is_not_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_watch_without_the_node, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_directories_than_are_known, set_up, tear_down),
		cmocka_unit_test(what_is_kept_is_believed_until_something_changes),
		cmocka_unit_test_setup_teardown(another_root_is_another_driver, set_up, tear_down),
		cmocka_unit_test_setup_teardown(part_of_a_directory_is_an_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_changed_during_a_long_look_is_not_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unknown_libraries_behind_links, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_that_are_not_text, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
