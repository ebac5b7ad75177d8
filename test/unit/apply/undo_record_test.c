/* SPDX-License-Identifier: Apache-2.0 */

/* The directory of the records of one root filesystem or container, its lock, and what the records bring back. */

#include "scratch.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <inttypes.h>

#include "apply/internal.h"
#include "lib/context.h"
#include "root/mount_class.h"

/* The waiting for a lock ends with a signal. */
static void on_alarm(int signal)
{
	(void)signal;
}

static void interrupt_soon(void)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	/* Again and again, since the first may come before it waits. */
	const struct itimerval soon = {.it_value.tv_usec = 50 * 1000, .it_interval.tv_usec = 50 * 1000};

	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
}

static void interrupt_no_more(void)
{
	const struct itimerval never = {0};

	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
}

static int take_lock(const char *path, struct undo_records *ret)
{
	*ret = UNDO_RECORDS_CLOSED;
	return undo_records_open(scratch_path(path), ret);
}

static void an_empty_directory_goes_with_its_lock(void **state)
{
	struct undo_records records = UNDO_RECORDS_CLOSED;

	(void)state;
	assert_int_equal(undo_records_make(scratch_path("/records/a"), &records), 0);
	assert_true(exists("/records/a"));
	undo_records_close(&records, AT_FDCWD, scratch_path("/records/a"));
	assert_false(exists("/records/a"));
	assert_true(exists("/records"));
}

/* Whoever makes the first record has an empty directory for a while. */
static void another_holders_directory_stays(void **state)
{
	struct undo_records holder = UNDO_RECORDS_CLOSED, other;

	(void)state;
	assert_int_equal(undo_records_make(scratch_path("/records/a"), &holder), 0);
	interrupt_soon();
	assert_int_equal(take_lock("/records/a", &other), -EINTR);
	interrupt_no_more();
	undo_records_close(&other, AT_FDCWD, scratch_path("/records/a"));
	assert_true(exists("/records/a"));
	undo_records_close(&holder, AT_FDCWD, scratch_path("/records/a"));
	assert_false(exists("/records/a"));
}

static void make_through_link(const char *link, const char *path)
{
	struct undo_records records = UNDO_RECORDS_CLOSED;
	char *full = scratch_path(path), before[512];

	make_link(link, "/nowhere");
	(void)snprintf(before, sizeof(before), "%s", full);
	(void)signal(SIGALRM, SIG_DFL); /* ends this program */
	alarm(60);
	assert_int_equal(undo_records_make(full, &records), -ENOENT);
	alarm(0);
	assert_string_equal(full, before);
	undo_records_close(&records, AT_FDCWD, full);
	assert_true(exists(link));
}

static void links_that_lead_nowhere_are_errors(void **state)
{
	(void)state;
	make_through_link("/above", "/above/records/a");
	make_through_link("/last", "/last");
}

static void ended_containers_leave_no_descriptors(void **state)
{
	struct undo_records holder = UNDO_RECORDS_CLOSED;
	unsigned before;

	(void)state;
	assert_int_equal(undo_records_make(scratch_path("/records/4194303-1"), &holder), 0);
	before = unit_count_descriptors();
	interrupt_soon();
	running_drop_ended(scratch_path("/records"));
	interrupt_no_more();
	assert_int_equal(unit_count_descriptors(), before);
	assert_true(exists("/records/4194303-1"));
	undo_records_close(&holder, AT_FDCWD, scratch_path("/records/none"));
	running_drop_ended(scratch_path("/records"));
	assert_false(exists("/records/4194303-1"));
}

/* ---- records of a root filesystem ---- */

static struct rootfs rootfs;
static struct mount_map mount_map;
static struct undo_log *undo_log;

/* As in `ctr-gpu configure`, whose process ends when all is done and written down. */
static void change_begin(void)
{
	assert_int_equal(rootfs_open(AT_FDCWD, scratch_path("/root"), &rootfs), 0);
	mount_map = MOUNT_MAP_NONE;
	undo_log = undo_log_new(false);
	assert_non_null(undo_log);
	undo_log->proc_self_fd = mount_open_proc_self_fd(-1);
	rootfs.proc_self_fd = undo_log->proc_self_fd;
	rootfs.mount_map = &mount_map;
	rootfs.undo_log = undo_log;
}

static void change_end(void)
{
	rootfs_close(&rootfs);
	mount_map_clear(&mount_map);
	undo_log_free(undo_log);
}

static void change_write(void)
{
	pid_t holder = 0;

	assert_int_equal(undo_record_write(scratch_path("/records"), &rootfs, undo_log, &holder), 0);
	change_end();
}

static void change_file(const char *path, const char *text)
{
	const struct span content = span_text(text);

	change_begin();
	assert_int_equal(rootfs_replace_file(&rootfs, path, &content, 1, 0644), 0);
	change_write();
}

/* A step on a directory, which the caller does. */
static void add_step(const char *path, void (*undo)(const struct undo_log *, const struct undo_step *), unsigned number)
{
	const struct undo_step undo_step = {
		.undo = undo, .fds = {open(scratch_path(path), O_RDONLY | O_DIRECTORY), -1, -1}, .number = number};

	assert_true(undo_step.fds[0] >= 0);
	assert_int_equal(undo_log_add(undo_log, &undo_step, NULL), 0);
}

static int open_records(void)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/records/%016" PRIx64, str_hash(scratch_path("/root")));
	fd = open(scratch_path(path), O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	return fd;
}

static int undo_all(void)
{
	struct ctr_gpu_context *context = NULL;
	int r;

	assert_int_equal(ctr_gpu_context_new(&context), 0);
	r = ctr_gpu_undo(context, scratch_path("/root"), scratch_path("/records"));
	ctr_gpu_context_unref(context);
	return r;
}

/* Otherwise an older record is taken back first, finds a file that it has not written, and leaves it. */
static void the_newest_record_is_taken_back_first(void **state)
{
	int records;

	(void)state;
	make_directories("/root");
	write_file("/root/file", "image\n");
	change_file("/file", "one\n");
	change_file("/file", "two\n");
	change_file("/file", "three\n");
	/* Its number is free then, as where a boot has outdated it. */
	records = open_records();
	undo_records_remove(records, "0");
	close(records);
	change_file("/file", "four\n");
	assert_int_equal(undo_all(), 0);
	assert_content("/root/file", "one\n");
}

static bool never_over(int all, const char *name, const char *boot)
{
	(void)all, (void)name, (void)boot;
	return false;
}

static void records_get_lower_numbers_when_the_last_is_taken(void **state)
{
	const struct undo_records_age age = {never_over, ""};
	char name[16];
	int all;

	(void)state;
	make_directories("/records/5/first");
	make_directories("/records/998/second");
	make_directories("/records/999/third");
	all = open(scratch_path("/records"), O_RDONLY | O_DIRECTORY);
	assert_int_equal(undo_records_find_number(all, &age, name), 0);
	assert_string_equal(name, "3");
	assert_true(exists("/records/0/first"));
	assert_true(exists("/records/1/second"));
	assert_true(exists("/records/2/third"));
	assert_false(exists("/records/999"));
	close(all);
}

static void mount_tmpfs(const char *path)
{
	assert_int_equal(mount("tmpfs", scratch_path(path), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL), 0);
}

enum { IMAGE_SIZE = 20 * 1024 + 1 };

/* A file's content that takes some blocks. */
static void make_image(char ret[static IMAGE_SIZE])
{
	memset(ret, 'x', IMAGE_SIZE - 1);
	ret[IMAGE_SIZE - 1] = '\0';
}

/* A root with room for little more than such a file. */
static void make_small_disk(char ret_image[static IMAGE_SIZE])
{
	make_image(ret_image);
	make_directories("/root");
	assert_int_equal(mount("tmpfs", scratch_path("/root"), "tmpfs", 0, "size=64k"), 0);
}

/* Return: bytes that fitted. */
static size_t fill_disk(const char *path)
{
	int fd = open(scratch_path(path), O_WRONLY | O_CREAT, 0600);
	char page[4096] = "";
	size_t size = 0;

	assert_true(fd >= 0);
	while (write(fd, page, sizeof(page)) > 0)
		size += sizeof(page);
	assert_int_equal(errno, ENOSPC);
	close(fd);
	return size;
}

static void a_file_that_a_full_disk_has_no_room_for_is_brought_back_later(void **state)
{
	char image[IMAGE_SIZE];

	(void)state;
	make_small_disk(image);
	write_file("/root/file", image);
	change_file("/file", "ours\n");
	assert_true(fill_disk("/root/filler") >= sizeof(image));
	assert_int_equal(undo_all(), -ENOSPC);
	assert_int_equal(unlink(scratch_path("/root/filler")), 0);
	assert_int_equal(undo_all(), 0);
	assert_content("/root/file", image);
	assert_int_equal(undo_all(), CTR_GPU_E_BAD_ARGUMENT);
}

static void a_file_without_room_beside_a_mount_that_stays_is_brought_back_later(void **state)
{
	const struct span content = span_text("ours\n");
	char image[IMAGE_SIZE];

	(void)state;
	make_small_disk(image);
	make_directories("/root/mount");
	write_file("/root/file", image);
	mount_tmpfs("/root/mount");
	change_begin();
	add_step("/root/mount", mount_undo, 0);
	assert_int_equal(rootfs_replace_file(&rootfs, "/file", &content, 1, 0644), 0);
	change_write();
	mount_tmpfs("/root/mount");
	assert_true(fill_disk("/root/filler") >= sizeof(image));
	assert_int_equal(undo_all(), -EBUSY);
	assert_false(exists("/root/file"));
	assert_int_equal(unlink(scratch_path("/root/filler")), 0);
	assert_int_equal(umount2(scratch_path("/root/mount"), 0), 0);
	assert_int_equal(undo_all(), 0);
	assert_content("/root/file", image);
	assert_int_equal(undo_all(), CTR_GPU_E_BAD_ARGUMENT);
}

static void a_file_without_room_keeps_no_other_file_of_an_older_record(void **state)
{
	const struct span ours = span_text("ours\n"), two = span_text("two\n");
	char image[IMAGE_SIZE];

	(void)state;
	make_small_disk(image);
	write_file("/root/small", "image\n");
	write_file("/root/file", image);
	change_file("/small", "one\n");
	change_begin();
	assert_int_equal(rootfs_replace_file(&rootfs, "/small", &two, 1, 0644), 0);
	assert_int_equal(rootfs_replace_file(&rootfs, "/file", &ours, 1, 0644), 0);
	change_write();
	assert_true(fill_disk("/root/filler") > 0);
	assert_int_equal(undo_all(), -ENOSPC);
	assert_content("/root/small", "image\n");
	assert_false(exists("/root/file"));
	assert_int_equal(unlink(scratch_path("/root/filler")), 0);
	assert_int_equal(undo_all(), 0);
	assert_content("/root/small", "image\n");
	assert_content("/root/file", image);
	assert_int_equal(undo_all(), CTR_GPU_E_BAD_ARGUMENT);
}

static void the_reason_why_a_file_is_not_brought_back_is_kept(void **state)
{
	char image[IMAGE_SIZE];
	struct rlimit before, small;

	(void)state;
	memset(image, 'x', sizeof(image) - 1);
	image[sizeof(image) - 1] = '\0';
	make_directories("/root");
	write_file("/root/file", image);
	change_file("/file", "ours\n");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){4096, before.rlim_max};
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(undo_all(), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	(void)signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(undo_all(), 0);
	assert_content("/root/file", image);
}

/* What another has removed stays removed. */
static void a_file_that_was_removed_since_is_not_brought_back(void **state)
{
	(void)state;
	make_directories("/root");
	write_file("/root/file", "image\n");
	change_file("/file", "ours\n");
	assert_int_equal(unlink(scratch_path("/root/file")), 0);
	assert_int_equal(undo_all(), 0);
	assert_false(exists("/root/file"));
}

static void modes_are_brought_back(void **state)
{
	struct stat st;

	(void)state;
	make_directories("/root/dev");
	change_begin();
	add_step("/root/dev", write_files_undo_mode, 0755);
	assert_int_equal(chmod(scratch_path("/root/dev"), 0700), 0);
	change_write();
	assert_int_equal(undo_all(), 0);
	assert_int_equal(stat(scratch_path("/root/dev"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
}

/* ---- the tmpfs of ours ---- */

static bool is_read_only(const char *path)
{
	return access(scratch_path(path), W_OK) < 0 && errno == EROFS;
}

/* As of a container that runs: this tmpfs is one of its own. */
static void write_own_directory(const char *path, struct undo_records *records)
{
	json_t *more = json_pack("{s:b}", "changed", 0);

	change_begin();
	add_step(path, own_directory_undo_writable, 0);
	*records = UNDO_RECORDS_CLOSED;
	assert_int_equal(undo_records_make(scratch_path("/records/a"), records), 0);
	assert_int_equal(undo_record_write_running(records, &rootfs, undo_log, more), 0);
	json_decref(more);
	change_end();
	assert_int_equal(undo_records_open(scratch_path("/records/a"), records), 0);
}

static void take_back_own_directory(struct undo_records *records)
{
	struct strv restored = {0};
	struct err err = {0};
	int lost = 0;

	change_begin();
	mount_map.outside = strdup("20 1 0:5 / / rw - ext4 x rw\n");
	/* The paths in a record of a container that runs begin at the root of its mount namespace. */
	rootfs_close(&rootfs);
	assert_int_equal(rootfs_open(AT_FDCWD, "/", &rootfs), 0);
	rootfs.proc_self_fd = undo_log->proc_self_fd;
	rootfs.mount_map = &mount_map;
	rootfs.undo_log = undo_log;
	assert_int_equal(undo_record_undo_running(records, 0, &rootfs, &restored, &lost, &err), 0);
	assert_int_equal(lost, 0);
	strv_clear(&restored);
	change_end();
	undo_record_remove_running(records, 0);
	undo_records_close(records, AT_FDCWD, scratch_path("/records/a"));
}

static void the_tmpfs_of_ours_cannot_be_written_to_any_more(void **state)
{
	struct undo_records records;

	(void)state;
	make_directories("/root/own");
	mount_tmpfs("/root/own");
	write_own_directory("/root/own", &records);
	take_back_own_directory(&records);
	assert_true(is_read_only("/root/own"));
}

static void a_tmpfs_in_the_place_of_ours_stays_as_it_is(void **state)
{
	struct undo_records records;

	(void)state;
	make_directories("/root/own");
	mount_tmpfs("/root/own");
	write_own_directory("/root/own", &records);
	mount_tmpfs("/root/own");
	take_back_own_directory(&records);
	assert_false(is_read_only("/root/own"));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, scratch_mount, scratch_unmount)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_empty_directory_goes_with_its_lock),
		CASE(another_holders_directory_stays),
		CASE(links_that_lead_nowhere_are_errors),
		CASE(ended_containers_leave_no_descriptors),
		CASE(the_newest_record_is_taken_back_first),
		CASE(records_get_lower_numbers_when_the_last_is_taken),
		CASE(a_file_that_a_full_disk_has_no_room_for_is_brought_back_later),
		CASE(a_file_without_room_beside_a_mount_that_stays_is_brought_back_later),
		CASE(a_file_without_room_keeps_no_other_file_of_an_older_record),
		CASE(the_reason_why_a_file_is_not_brought_back_is_kept),
		CASE(a_file_that_was_removed_since_is_not_brought_back),
		CASE(modes_are_brought_back),
		CASE(the_tmpfs_of_ours_cannot_be_written_to_any_more),
		CASE(a_tmpfs_in_the_place_of_ours_stays_as_it_is),
	};
	int failed;

	scratch_enter();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove();
	return failed != 0;
}
