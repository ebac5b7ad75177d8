/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What things in a container stand on, with what statmount(2) tells, with mountinfo instead before Linux 6.8, with numbers of mounts
 * from /proc before 5.8, and without the calls on descriptors. Everything is on one filesystem, so that its number tells nothing.
 */

#include "scratch.h"

#include <linux/capability.h>

#include "root/mount.h"
#include "root/mount_class.h"
#include "root/rootfs.h"
#include "root/statmount.h"

static struct rootfs rootfs;
static struct mount_map mount_map = MOUNT_MAP_NONE;
static struct undo_log *undo_log;
static int self_fds;

static void mount_at(const char *source, const char *target, const char *type, unsigned long flags)
{
	assert_int_equal(mount(scratch_path(source), scratch_path(target), type, flags, NULL), 0);
}

static int setup(void **state)
{
	if (scratch_mount(state) < 0)
		return -1;
	make_directories("/out/sub");
	make_directories("/root/volume");
	make_directories("/root/etc");
	make_directories("/root/dev");
	make_directories("/root/proc");
	if (rootfs_open(AT_FDCWD, scratch_path("/root"), &rootfs) < 0)
		return -1;
	rootfs.proc_self_fd = self_fds;
	rootfs.mount_map = &mount_map;
	rootfs.undo_log = undo_log = undo_log_new(false);
	if (!undo_log)
		return -1;
	undo_log->proc_self_fd = dup(self_fds);
	return 0;
}

static int teardown(void **state)
{
	rootfs_close(&rootfs);
	mount_map_clear(&mount_map);
	undo_log_free(undo_log);
	return scratch_unmount(state);
}

static enum mount_class ground_at(const char *path)
{
	int fd = rootfs_open_path(&rootfs, path, O_PATH);
	enum mount_class kind;

	assert_true(fd >= 0);
	assert_int_equal(mount_class_of(&rootfs, fd, &kind), 0);
	assert_int_equal(mount_class_is_root(&rootfs, fd), kind == MOUNT_CLASS_ROOT);
	assert_int_equal(mount_class_check_create(&rootfs, fd),
			 kind == MOUNT_CLASS_ROOT || kind == MOUNT_CLASS_OWN ? 0 : -EXDEV);
	close(fd);
	return kind;
}

static void test_kinds(void **state)
{
	(void)state;
	mount_at("/out", "/root/volume", NULL, MS_BIND);
	mount_at("", "/root/dev", "tmpfs", 0);
	mount_at("", "/root/proc", "proc", 0);
	make_directories("/root/volume/sub");
	mount_at("", "/root/volume/sub", "tmpfs", 0);
	assert_int_equal(ground_at("/"), MOUNT_CLASS_ROOT);
	assert_int_equal(ground_at("/etc"), MOUNT_CLASS_ROOT);
	assert_int_equal(ground_at("/volume"), MOUNT_CLASS_VOLUME);
	assert_int_equal(ground_at("/dev"), MOUNT_CLASS_OWN);
	assert_int_equal(ground_at("/proc/self"), MOUNT_CLASS_KERNEL);
	assert_int_equal(ground_at("/volume/sub"), MOUNT_CLASS_OWN);
}

static void test_shared_volume(void **state)
{
	(void)state;
	mount_at("/out", "/out", NULL, MS_BIND);
	mount_at("", "/out", NULL, MS_SHARED);
	mount_at("/out", "/root/volume", NULL, MS_BIND);
	assert_int_equal(ground_at("/volume"), MOUNT_CLASS_SHARED);
	assert_int_equal(ground_at("/volume/sub"), MOUNT_CLASS_SHARED);
}

/* One mount is asked about by itself where the kernel can: a host may have thousands of others. */
static void test_shared_without_mountinfo(void **state)
{
	bool shared = false;

	(void)state;
	mount_at("", "/root/proc", "proc", 0);
	mount_at("", "/root/proc", NULL, MS_SHARED);
	if (!statmount_is_shared(self_fds, &shared))
		skip("needs statmount(2)");
	assert_int_equal(ground_at("/proc/self"), MOUNT_CLASS_SHARED);
	assert_null(mount_map.inside);
	mount_at("", "/root/proc", NULL, MS_PRIVATE);
	assert_int_equal(ground_at("/proc/self"), MOUNT_CLASS_KERNEL);
	assert_null(mount_map.inside);
}

static void test_slave_volume(void **state)
{
	(void)state;
	mount_at("/out", "/out", NULL, MS_BIND);
	mount_at("", "/out", NULL, MS_SHARED);
	mount_at("/out", "/root/volume", NULL, MS_BIND);
	mount_at("", "/root/volume", NULL, MS_SLAVE);
	assert_int_equal(ground_at("/volume"), MOUNT_CLASS_VOLUME);
}

/* As Apptainer builds a container: the root and its /dev are below a tmpfs that the host does not have. */
static void build_in_tmpfs(void)
{
	mount_at("", "/out", "tmpfs", 0);
	make_directories("/out/final");
	make_directories("/out/dev");
	mount_at("/root", "/out/final", NULL, MS_BIND);
	mount_at("/out/dev", "/out/final/dev", NULL, MS_BIND);
	mount_at("/out", "/out/final/volume", NULL, MS_BIND);
	rootfs_close(&rootfs);
	assert_int_equal(rootfs_open(AT_FDCWD, scratch_path("/out/final"), &rootfs), 0);
	rootfs.proc_self_fd = self_fds;
	rootfs.mount_map = &mount_map;
	rootfs.undo_log = undo_log;
}

static void test_engines_tmpfs(void **state)
{
	(void)state;
	if (getpid() == 1)
		skip("needs a first process that is another one");
	build_in_tmpfs();
	assert_int_equal(ground_at("/dev"), MOUNT_CLASS_OWN);
	assert_int_equal(ground_at("/etc"), MOUNT_CLASS_ROOT);
}

static void turn_ptrace(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	data[0].effective ^= 1U << CAP_SYS_PTRACE;
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

/* The same for whoever may not see the host's first process: a user, to whom /proc does not open it, or not show it. */
static void test_engines_tmpfs_without_first_process(void **state)
{
	static const struct {
		const char *option;
		int error;
	} cases[] = {{"hidepid=1,gid=4711", EPERM}, {"hidepid=2,gid=4711", ENOENT}};

	(void)state;
	if (getpid() == 1)
		skip("needs a first process that is another one");
	build_in_tmpfs();
	make_directories("/other");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd;

		assert_int_equal(mount("proc", scratch_path("/other"), "proc", 0, cases[i].option), 0);
		fd = open(scratch_path("/other/self/fd"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		rootfs.proc_self_fd = fd;
		turn_ptrace();
		assert_int_equal(open(scratch_path("/other/1/mountinfo"), O_RDONLY | O_CLOEXEC), -1);
		assert_int_equal(errno, cases[i].error);
		assert_int_equal(ground_at("/dev"), MOUNT_CLASS_OWN);
		turn_ptrace();
		rootfs.proc_self_fd = self_fds;
		close(fd);
		assert_int_equal(umount(scratch_path("/other")), 0);
	}
}

/* A tmpfs of the host is a volume, also where all of it is given, and where the image leads /dev there. */
static void test_hosts_tmpfs(void **state)
{
	(void)state;
	mount_at("", "/out", "tmpfs", 0);
	mount_at("/out", "/root/volume", NULL, MS_BIND);
	assert_int_equal(rmdir(scratch_path("/root/dev")), 0);
	make_link("/root/dev", "volume");
	assert_int_equal(ground_at("/dev"), MOUNT_CLASS_VOLUME);
}

/* The same where the host is another namespace, of which there is a text. */
static void test_hosts_tmpfs_in_text(void **state)
{
	struct stat st;

	(void)state;
	mount_at("", "/root/dev", "tmpfs", 0);
	assert_int_equal(stat(scratch_path("/root/dev"), &st), 0);
	assert_int_equal(str_format(&mount_map.outside,
				    "20 1 0:5 / / rw - ext4 x rw\n21 20 %u:%u / /run rw shared:3 - tmpfs x rw\n",
				    (unsigned)(st.st_dev >> 8), (unsigned)(st.st_dev & 0xff)),
			 0);
	assert_int_equal(ground_at("/dev"), MOUNT_CLASS_VOLUME);
	free(mount_map.outside);
	assert_int_equal(str_format(&mount_map.outside, "20 1 0:5 / / rw - ext4 x rw\n"), 0);
	assert_int_equal(ground_at("/dev"), MOUNT_CLASS_OWN);
}

/* Has the host have that file system, too. */
static void have_elsewhere(const char *path)
{
	struct stat st;

	assert_int_equal(stat(scratch_path(path), &st), 0);
	assert_int_equal(str_format(&mount_map.outside, "21 20 %u:%u / /run rw shared:3 - tmpfs x rw\n",
				    (unsigned)(st.st_dev >> 8), (unsigned)(st.st_dev & 0xff)),
			 0);
}

/* What the runtime was told counts before such a text, unless a mount that brings something may have come there. */
static void test_runtimes_tmpfs(void **state)
{
	char *place = (char[]){"/dev"}, *bind = strdup(scratch_path("/out")),
	     *same = strdup(scratch_path("/root/dev/sub"));
	struct strv tmpfs = {.items = &place, .count = 1}, binds = {.items = &bind, .count = 1};
	struct statx stx;

	(void)state;
	mount_at("", "/root/dev", "tmpfs", 0);
	make_directories("/root/dev/sub");
	have_elsewhere("/root/dev");
	mount_map.tmpfs = &tmpfs;
	mount_map.binds = &binds;
	/* On a kernel without statx(2) it does not count. */
	assert_int_equal(ground_at("/dev"), statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_TYPE, &stx) == 0
						    ? MOUNT_CLASS_OWN
						    : MOUNT_CLASS_VOLUME);
	assert_int_equal(ground_at("/dev/sub"), MOUNT_CLASS_VOLUME);
	binds.items = &same;
	assert_int_equal(ground_at("/dev"), MOUNT_CLASS_VOLUME);
	binds.items = &bind;
	place = (char[]){"/volume"};
	assert_int_equal(ground_at("/dev"), MOUNT_CLASS_VOLUME);
	make_link("/root/alias", "dev");
	place = (char[]){"/alias"};
	assert_int_equal(ground_at("/alias"), MOUNT_CLASS_VOLUME);
	free(bind);
	free(same);
}

static int make_file_at(const char *path, enum mount_class *ret)
{
	_cleanup_target_ struct rootfs_target target = ROOTFS_TARGET_NONE;
	int r = rootfs_make_file(&rootfs, path, 0644, &target);

	*ret = target.mount_class;
	return r;
}

/* That something was made in it says nothing of what is below. */
static void test_below_runtimes_tmpfs(void **state)
{
	char *place = (char[]){"/dev"}, *bind = strdup(scratch_path("/out"));
	struct strv tmpfs = {.items = &place, .count = 1}, binds = {.items = &bind, .count = 1};
	enum mount_class class;
	struct statx stx;

	(void)state;
	mount_at("", "/root/dev", "tmpfs", 0);
	mount_at("", "/root/dev", NULL, MS_SHARED);
	make_directories("/root/dev/sub");
	write_file("/root/dev/node", "");
	have_elsewhere("/root/dev");
	mount_map.tmpfs = &tmpfs;
	mount_map.binds = &binds;
	if (statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_TYPE, &stx) == 0) {
		assert_int_equal(make_file_at("/dev/first", &class), 0);
		assert_int_equal(class, MOUNT_CLASS_OWN);
	}
	assert_int_equal(make_file_at("/dev/sub/second", &class), -EXDEV);
	assert_int_equal(make_file_at("/dev/node", &class), 0);
	assert_int_equal(class, MOUNT_CLASS_SHARED);
	free(bind);
}

/* A tmpfs in a volume, which the runtime may have made or the volume have brought, is judged by what is mounted. */
static void test_runtimes_tmpfs_in_volume(void **state)
{
	char *place = (char[]){"/volume/sub"}, *bind = strdup(scratch_path("/elsewhere"));
	struct strv tmpfs = {.items = &place, .count = 1}, binds = {.items = &bind, .count = 1};

	(void)state;
	make_directories("/elsewhere");
	mount_at("/out", "/out", NULL, MS_BIND);
	mount_at("", "/out", NULL, MS_SHARED);
	mount_at("/out", "/root/volume", NULL, MS_BIND);
	mount_at("", "/root/volume/sub", "tmpfs", 0);
	mount_map.tmpfs = &tmpfs;
	mount_map.binds = &binds;
	assert_int_equal(ground_at("/volume/sub"), MOUNT_CLASS_SHARED);
	free(bind);
}

static void test_without_ground(void **state)
{
	(void)state;
	rootfs.mount_map = NULL;
	mount_at("", "/root/dev", "tmpfs", 0);
	assert_int_equal(ground_at("/etc"), MOUNT_CLASS_ROOT);
	assert_int_equal(ground_at("/dev"), MOUNT_CLASS_VOLUME);
}

/* ---- settling ---- */

static void reopen_root(void)
{
	rootfs_close(&rootfs);
	assert_int_equal(rootfs_open(AT_FDCWD, scratch_path("/root"), &rootfs), 0);
	rootfs.proc_self_fd = self_fds;
	rootfs.mount_map = &mount_map;
	rootfs.undo_log = undo_log;
}

/* The root filesystem of a runtime, whose mount the host sees as well: what is mounted on it from here on is not seen there. */
static void test_settle_mount(void **state)
{
	(void)state;
	make_directories("/elsewhere");
	mount_at("/root", "/root", NULL, MS_BIND);
	mount_at("", "/root", NULL, MS_SHARED);
	mount_at("/root", "/elsewhere", NULL, MS_BIND);
	reopen_root();
	assert_int_equal(mount_map_make_private(&rootfs, false), 0);
	mount_at("", "/root/etc", "tmpfs", 0);
	write_file("/root/etc/ours", "");
	assert_false(exists("/elsewhere/etc/ours"));
	/* What the host mounts there still comes. */
	mount_at("", "/elsewhere/dev", "tmpfs", 0);
	write_file("/elsewhere/dev/theirs", "");
	assert_true(exists("/root/dev/theirs"));
	assert_int_equal(ground_at("/"), MOUNT_CLASS_ROOT);
}

static void test_settle_private(void **state)
{
	char *before = picture("/root"), *after;

	(void)state;
	assert_int_equal(mount_map_make_private(&rootfs, false), 0);
	assert_int_equal(mount_map_make_private(&rootfs, true), 0);
	after = picture("/root");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* A directory, or somebody's own mount, gets a mount of itself; what was mounted below is still there, and private. */
static void check_settle_by_hand(void)
{
	char *before, *after;

	before = picture("/root");
	assert_int_equal(mount_map_make_private(&rootfs, true), 0);
	assert_int_equal(ground_at("/etc"), MOUNT_CLASS_ROOT);
	mount_at("", "/root/etc", "tmpfs", 0);
	write_file("/root/etc/ours", "");
	assert_false(exists("/peer/root/etc/ours"));
	assert_int_equal(umount(scratch_path("/root/etc")), 0);
	undo_log_undo(undo_log);
	after = picture("/root");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void test_settle_by_hand(void **state)
{
	(void)state;
	make_directories("/peer");
	mount_at("", "/root/dev", "tmpfs", 0);
	assert_int_equal(mount("none", scratch, NULL, MS_SHARED, NULL), 0);
	assert_int_equal(mount(scratch, scratch_path("/peer"), NULL, MS_BIND, NULL), 0);
	check_settle_by_hand();
}

static void test_settle_by_hand_on_a_mount(void **state)
{
	(void)state;
	make_directories("/peer/root");
	mount_at("", "/root/dev", "tmpfs", 0);
	mount_at("/root", "/root", NULL, MS_BIND | MS_REC);
	mount_at("", "/root", NULL, MS_SHARED);
	mount_at("/root", "/peer/root", NULL, MS_BIND);
	reopen_root();
	check_settle_by_hand();
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static const struct CMUnitTest tests[] = {
	CASE(test_kinds),
	CASE(test_shared_volume),
	CASE(test_shared_without_mountinfo),
	CASE(test_slave_volume),
	CASE(test_engines_tmpfs),
	CASE(test_engines_tmpfs_without_first_process),
	CASE(test_hosts_tmpfs),
	CASE(test_hosts_tmpfs_in_text),
	CASE(test_runtimes_tmpfs),
	CASE(test_below_runtimes_tmpfs),
	CASE(test_runtimes_tmpfs_in_volume),
	CASE(test_without_ground),
	CASE(test_settle_mount),
	CASE(test_settle_private),
	CASE(test_settle_by_hand),
	CASE(test_settle_by_hand_on_a_mount),
};

int main(void)
{
	static const int one[] = {SYS_statmount};
	static const int number[] = {SYS_statx};
	static const int others[] = {SYS_mount_setattr, SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_openat2};
	int failed;

	scratch_enter();
	self_fds = mount_open_proc_self_fd(-1);
	failed = cmocka_run_group_tests_name("ground", tests, NULL, NULL);
	forget_calls(one, ARRAY_SIZE(one));
	failed += cmocka_run_group_tests_name("ground before Linux 6.8", tests, NULL, NULL);
	forget_calls(number, ARRAY_SIZE(number));
	failed += cmocka_run_group_tests_name("ground before Linux 5.8", tests, NULL, NULL);
	forget_calls(others, ARRAY_SIZE(others));
	failed += cmocka_run_group_tests_name("ground before Linux 5.2", tests, NULL, NULL);
	scratch_remove();
	return failed != 0;
}
