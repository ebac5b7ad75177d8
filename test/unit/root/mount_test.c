/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mounts, with what the kernel has today, without mount_setattr(2) as before 5.12, and without any of the descriptor calls
 * as before 5.2.
 */

#include "scratch.h"

#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "root/mount.h"
#include "root/rootfs.h"

static struct rootfs rootfs;
static struct undo_log *undo_log;
static struct mount_stage stage;
static int self_fds;

static int setup(void **state)
{
	if (scratch_mount(state) < 0)
		return -1;
	make_directories("/host/lib");
	write_file("/host/lib/libcuda.so.1", "library");
	write_file("/host/file", "file");
	make_directories("/root/lib");
	make_directories("/root/etc");
	write_file("/root/file", "");
	write_file("/root/etc/ld.so.cache", "image's");
	if (mknod(scratch_path("/host/device"), S_IFCHR | 0666, makedev(1, 5)) < 0)
		return -1;
	if (rootfs_open(AT_FDCWD, scratch_path("/root"), &rootfs) < 0)
		return -1;
	rootfs.proc_self_fd = self_fds;
	rootfs.undo_log = undo_log = undo_log_new(false);
	if (!undo_log)
		return -1;
	undo_log->proc_self_fd = dup(self_fds);
	stage = (struct mount_stage){.undo_log = undo_log, .root = rootfs.fd, .tmpfs = -1};
	return 0;
}

static int teardown(void **state)
{
	mount_stage_close(&stage);
	rootfs_close(&rootfs);
	undo_log_free(undo_log);
	return scratch_unmount(state);
}

static struct mount_source open_source(const char *path, enum mount_kind kind, bool noexec)
{
	struct mount_source source = {.tree = -1};

	assert_int_equal(mount_source_open(path, kind, noexec, &source), 0);
	return source;
}

static int attach(struct mount_source *source, const char *path)
{
	int target = rootfs_open_path(&rootfs, path, O_PATH), r;

	assert_true(target >= 0);
	r = mount_attach(source, &stage, target);
	close(target);
	return r;
}

static unsigned long flags_at(const char *path)
{
	struct statvfs fs;

	assert_int_equal(statvfs(scratch_path(path), &fs), 0);
	return fs.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC);
}

static void assert_private(void)
{
	char *all = picture("/root");

	assert_null(strstr(all, "shared:"));
	assert_null(strstr(all, "master:"));
	free(all);
}

/* A picture of the root before and after detaching what was attached. */
static void detach(struct mount_source *source, char *before)
{
	char *after;

	undo_log_undo(undo_log);
	mount_source_close(source);
	after = picture("/root");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void test_directory(void **state)
{
	char *before = picture("/root"), *host = scratch_path("/host/lib");
	struct mount_source source = open_source(host, MOUNT_READ_ONLY, false);

	(void)state;
	assert_int_equal(attach(&source, "/lib"), 0);
	assert_content("/root/lib/libcuda.so.1", "library");
	assert_int_equal(flags_at("/root/lib"), ST_RDONLY | ST_NOSUID | ST_NODEV);
	assert_int_equal(open(scratch_path("/root/lib/libcuda.so.1"), O_WRONLY), -1);
	assert_int_equal(errno, EROFS);
	/* The host's own stays as it was. */
	assert_int_equal(flags_at("/host/lib"), 0);
	assert_private();
	detach(&source, before);
}

static void test_flags_of_files_and_devices(void **state)
{
	char *before = picture("/root"), *file = scratch_path("/host/file"), *device = scratch_path("/host/device");
	struct mount_source source = open_source(file, MOUNT_READ_ONLY, true);
	int fd;

	(void)state;
	assert_int_equal(attach(&source, "/file"), 0);
	assert_int_equal(flags_at("/root/file"), ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC);
	detach(&source, before);
	before = picture("/root");
	source = open_source(device, MOUNT_DEVICE, true);
	assert_int_equal(attach(&source, "/file"), 0);
	assert_int_equal(flags_at("/root/file"), ST_NOSUID | ST_NOEXEC);
	fd = open(scratch_path("/root/file"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	detach(&source, before);
}

/* Flags that the host's mount has stay; in a user namespace they could not be taken off. */
static void test_host_flags_stay(void **state)
{
	struct mount_source source;

	(void)state;
	assert_int_equal(mount("tmpfs", scratch_path("/host/lib"), "tmpfs", MS_NOEXEC | MS_NOATIME, NULL), 0);
	source = open_source(scratch_path("/host/lib"), MOUNT_READ_ONLY, false);
	assert_int_equal(attach(&source, "/lib"), 0);
	assert_int_equal(flags_at("/root/lib"), ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC);
	mount_source_close(&source);
}

/* Where the host shares its mounts with everybody, ours still belong to the container alone. */
static void test_shared_host(void **state)
{
	struct mount_source source;

	(void)state;
	assert_int_equal(mount("tmpfs", scratch_path("/host/lib"), "tmpfs", 0, NULL), 0);
	assert_int_equal(mount("none", scratch_path("/host/lib"), NULL, MS_SHARED, NULL), 0);
	make_directories("/host/lib/sub");
	source = open_source(scratch_path("/host/lib"), MOUNT_READ_ONLY, false);
	assert_int_equal(attach(&source, "/lib"), 0);
	assert_int_equal(mount("tmpfs", scratch_path("/host/lib/sub"), "tmpfs", 0, NULL), 0);
	write_file("/host/lib/sub/later", "x");
	assert_false(exists("/root/lib/sub/later"));
	mount_source_close(&source);
}

static void test_is_there(void **state)
{
	struct mount_source source = open_source(scratch_path("/host/lib"), MOUNT_READ_ONLY, false), other;
	int target = rootfs_open_path(&rootfs, "/lib", O_PATH);

	(void)state;
	assert_false(mount_is_present(&source, target, false));
	close(target);
	assert_int_equal(attach(&source, "/lib"), 0);
	target = rootfs_open_path(&rootfs, "/lib", O_PATH);
	assert_true(mount_is_present(&source, target, false));
	other = open_source(scratch_path("/host/lib"), MOUNT_READ_ONLY, true);
	assert_false(mount_is_present(&other, target, false));
	close(target);
	/* The same directory, but one that can be written. */
	assert_int_equal(mount(scratch_path("/host/lib"), scratch_path("/root/etc"), NULL, MS_BIND, NULL), 0);
	target = rootfs_open_path(&rootfs, "/etc", O_PATH);
	assert_false(mount_is_present(&source, target, false));
	close(target);
	mount_source_close(&other);
	mount_source_close(&source);
}

static void test_errors(void **state)
{
	struct mount_source source = {.tree = -1};
	char *before;

	(void)state;
	assert_int_equal(mount_source_open(scratch_path("/host/none"), MOUNT_READ_ONLY, false, &source), -ENOENT);
	assert_int_equal(source.tree, -1);
	before = picture("/root");
	source = open_source(scratch_path("/host/lib"), MOUNT_READ_ONLY, false);
	assert_true(attach(&source, "/file") < 0);
	detach(&source, before);
	before = picture("/root");
	source = open_source(scratch_path("/host/file"), MOUNT_READ_ONLY, false);
	assert_true(attach(&source, "/lib") < 0);
	detach(&source, before);
}

static void test_source_changes(void **state)
{
	char *before = picture("/root"), *file = scratch_path("/host/file");
	struct mount_source source = open_source(file, MOUNT_READ_ONLY, false);

	(void)state;
	assert_int_equal(rename(scratch_path("/host/file"), scratch_path("/host/old")), 0);
	write_file("/host/file", "another");
	if (source.tree >= 0) {
		assert_int_equal(attach(&source, "/file"), 0);
		assert_content("/root/file", "file");
	} else {
		assert_int_equal(attach(&source, "/file"), -ESTALE);
	}
	detach(&source, before);
}

/* Content in more than one part. */
static const struct span parts[] = {{(const unsigned char *)"ou", 2}, {NULL, 0}, {(const unsigned char *)"rs", 2}};

static void test_data(void **state)
{
	struct mount_source source = {.tree = -1};
	char *before = picture("/root");
	struct stat st;

	(void)state;
	assert_int_equal(mount_make_data(&stage, parts, ARRAY_SIZE(parts), &source), 0);
	/* Nobody else gets into the stage, which lies over the root meanwhile. */
	assert_int_equal(stat(scratch_path("/root"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(attach(&source, "/etc/ld.so.cache"), 0);
	assert_content("/root/etc/ld.so.cache", "ours");
	assert_int_equal(flags_at("/root/etc/ld.so.cache"), ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC);
	/* The tmpfs did not stay over the root. */
	write_file("/root/etc/other", "x");
	assert_content("/root/etc/other", "x");
	assert_int_equal(unlink(scratch_path("/root/etc/other")), 0);
	assert_private();
	detach(&source, before);
	assert_content("/root/etc/ld.so.cache", "image's");
}

static void test_data_on_read_only_root(void **state)
{
	struct mount_source source = {.tree = -1};

	(void)state;
	assert_int_equal(mount("none", scratch, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	assert_int_equal(mount_make_data(&stage, parts, ARRAY_SIZE(parts), &source), 0);
	assert_int_equal(attach(&source, "/etc/ld.so.cache"), 0);
	assert_content("/root/etc/ld.so.cache", "ours");
	mount_source_close(&source);
}

/* Where the next target is reached by a link through the root directory. */
static void test_next_target_through_the_root(void **state)
{
	struct mount_source file = open_source(scratch_path("/host/file"), MOUNT_READ_ONLY, false);
	struct mount_source directory = open_source(scratch_path("/host/lib"), MOUNT_READ_ONLY, false),
			    data = MOUNT_NONE;
	char *before;

	(void)state;
	assert_int_equal(symlink("../../lib", scratch_path("/root/etc/up")), 0);
	assert_int_equal(symlink("../file", scratch_path("/root/etc/file")), 0);
	before = picture("/root");
	assert_int_equal(mount_make_data(&stage, parts, ARRAY_SIZE(parts), &data), 0);
	assert_int_equal(attach(&data, "/etc/ld.so.cache"), 0);
	assert_int_equal(attach(&file, "/etc/file"), 0);
	assert_int_equal(attach(&directory, "/etc/up"), 0);
	assert_content("/root/file", "file");
	assert_content("/root/lib/libcuda.so.1", "library");
	mount_source_close(&data);
	mount_source_close(&file);
	detach(&directory, before);
}

static void test_working_directory_stays(void **state)
{
	struct mount_source source = open_source(scratch_path("/host/lib"), MOUNT_READ_ONLY, false);
	char before[512], after[512];

	(void)state;
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(attach(&source, "/lib"), 0);
	undo_log_undo(undo_log);
	assert_non_null(getcwd(after, sizeof(after)));
	assert_string_equal(before, after);
	mount_source_close(&source);
}

/* Whoever mounts it for a container whose root is another user may not give files away afterwards. */
static void test_owner_of_own_tmpfs(void **state)
{
	static const struct mapped_root self, other = {.other = true, .uid = 100000, .gid = 200000};
	int directory = rootfs_open_path(&rootfs, "/lib", O_PATH);
	char *before = picture("/root"), *after;
	struct stat st;

	(void)state;
	assert_true(mount_own_tmpfs(undo_log, directory, &other) >= 0);
	assert_int_equal(stat(scratch_path("/root/lib"), &st), 0);
	assert_true(st.st_uid == 100000 && st.st_gid == 200000 && (st.st_mode & 07777) == 0755);
	undo_log_undo(undo_log);
	assert_true(mount_own_tmpfs(undo_log, directory, &self) >= 0);
	assert_int_equal(stat(scratch_path("/root/lib"), &st), 0);
	assert_true(st.st_uid == 0 && st.st_gid == 0 && (st.st_mode & 07777) == 0755);
	undo_log_undo(undo_log);
	close(directory);
	after = picture("/root");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* A bind mount that cannot be made read-only must not be left as it is. */
static void test_flags_cannot_be_set(void **state)
{
	struct mount_source source = open_source(scratch_path("/host/lib"), MOUNT_READ_ONLY, false);
	char *before = picture("/root");

	(void)state;
	assert_int_equal(attach(&source, "/lib"), -EPERM);
	detach(&source, before);
}

static void forbid_remounting(void)
{
	const struct sock_filter filter[] = {
		LOAD(nr),         JUMP(BPF_JEQ, SYS_mount, 0, 3),
		LOAD_ARGUMENT(3), JUMP(BPF_JSET, MS_REMOUNT, 0, 1),
		REFUSE(EPERM),    ALLOW,
	};

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(seccomp_install(filter, ARRAY_SIZE(filter)), 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static const struct CMUnitTest tests[] = {
	CASE(test_directory),
	CASE(test_flags_of_files_and_devices),
	CASE(test_host_flags_stay),
	CASE(test_shared_host),
	CASE(test_is_there),
	CASE(test_errors),
	CASE(test_source_changes),
	CASE(test_data),
	CASE(test_data_on_read_only_root),
	CASE(test_next_target_through_the_root),
	CASE(test_working_directory_stays),
	CASE(test_owner_of_own_tmpfs),
};

static const struct CMUnitTest forbidden[] = {
	CASE(test_flags_cannot_be_set),
};

int main(void)
{
	static const int setattr[] = {SYS_mount_setattr};
	static const int others[] = {SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_openat2};
	int failed;

	scratch_enter();
	self_fds = mount_open_proc_self_fd(-1);
	failed = cmocka_run_group_tests_name("mount", tests, NULL, NULL);
	forget_calls(setattr, ARRAY_SIZE(setattr));
	failed += cmocka_run_group_tests_name("mount before Linux 5.12", tests, NULL, NULL);
	forget_calls(others, ARRAY_SIZE(others));
	failed += cmocka_run_group_tests_name("mount before Linux 5.2", tests, NULL, NULL);
	forbid_remounting();
	failed += cmocka_run_group_tests_name("mount that fails halfway", forbidden, NULL, NULL);
	scratch_remove();
	return failed != 0;
}
