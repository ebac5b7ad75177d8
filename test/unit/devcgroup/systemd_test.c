/* SPDX-License-Identifier: Apache-2.0 */

/* What is written for systemd, in a folder of our own in the place of systemd's. test/e2e/systemd.bats has the real one. */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "devcgroup/internal.h"

static char folder[] = "/tmp/ctr-gpu-transient.XXXXXX/transient";
static struct undo_log *undo_log;
static const struct devcgroup_id one = {1, 1}, another = {1, 2}; /* cgroups of containers */

static void put(const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;

	assert_int_equal(str_format(&path, "%s/%s", folder, name), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void make_folder(const char *name)
{
	_cleanup_free_ char *path = NULL;

	assert_int_equal(str_format(&path, "%s/%s", folder, name), 0);
	assert_int_equal(mkdir(path, 0755), 0);
}

static bool exists(const char *name)
{
	_cleanup_free_ char *path = NULL;

	assert_int_equal(str_format(&path, "%s/%s", folder, name), 0);
	return access(path, F_OK) == 0;
}

/* A file was written a while ago. */
static void put_back(const char *name)
{
	const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	_cleanup_free_ char *path = NULL;

	assert_int_equal(str_format(&path, "%s/%s", folder, name), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* The path of a file of ours beside a unit, new; NULL: there is none. */
static char *drop_in(const char *unit)
{
	_cleanup_free_ char *pattern = NULL;
	char *path = NULL;
	glob_t found;

	assert_int_equal(str_format(&pattern, "%s/%s.d/50-ctr-gpu-*.conf", folder, unit), 0);
	if (glob(pattern, 0, NULL, &found) == 0)
		path = strdup(found.gl_pathv[0]);
	globfree(&found);
	return path;
}

static int start(void **state)
{
	(void)state;
	(void)strcpy(folder, "/tmp/ctr-gpu-transient.XXXXXX");
	undo_log = undo_log_new(false);
	if (!undo_log || !mkdtemp(folder))
		return -1;
	make_folder("units");
	make_folder("transient");
	(void)strcat(folder, "/transient");
	return 0;
}

static int stop(void **state)
{
	_cleanup_free_ char *command = NULL;

	(void)state;
	undo_log_free(undo_log);
	*strrchr(folder, '/') = '\0';
	return str_format(&command, "rm -rf %s", folder) < 0 ? -1 : system(command);
}

static void units_are_found_in_paths(void **state)
{
	static const struct {
		const char *path, *unit, *cgroup;
	} cases[] = {
		{"system.slice/docker-12.scope", "docker-12.scope", "system.slice/docker-12.scope"},
		{"machine.slice/libpod-1.scope/container", "libpod-1.scope", "machine.slice/libpod-1.scope"},
		{"docker-12.scope", "docker-12.scope", "docker-12.scope"},
		{"a.slice/run-u1\\x2d2@x:y.service/b/c", "run-u1\\x2d2@x:y.service",
		 "a.slice/run-u1\\x2d2@x:y.service"},
		/* Not transient, or not known. */
		{"system.slice/docker.service/docker/12", NULL, NULL},
		{"system.slice/absent.scope", NULL, NULL},
		/* The outermost that is known decides: what is below is named by the container, or by a user. */
		{"docker-12.scope/init.scope", "docker-12.scope", "docker-12.scope"},
		{"system.slice/libpod-1.scope/docker-12.scope", "libpod-1.scope", "system.slice/libpod-1.scope"},
		{"user.slice/user@1000.service/docker-12.scope", NULL, NULL},
		/* The first one is another systemd's. */
		{"outer.scope/system.slice/docker-12.scope/c", "docker-12.scope",
		 "outer.scope/system.slice/docker-12.scope"},
		/* No unit's names, though such files may lie there. */
		{"system.slice/docker-12", NULL, NULL},
		{"a b.scope", NULL, NULL},
		{"a%b.scope", NULL, NULL},
		{".scope", NULL, NULL},
		{".x.scope", NULL, NULL},
		{"..", NULL, NULL},
		{"", NULL, NULL},
		{"/", NULL, NULL},
	};

	(void)state;
	put("docker-12.scope", "");
	put("libpod-1.scope", "");
	put("run-u1\\x2d2@x:y.service", "");
	put("a b.scope", "");
	put("a%b.scope", "");
	put(".scope", "");
	put(".x.scope", "");
	put("../units/invocation:user@1000.service", "");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *unit = NULL;
		size_t size = 0;

		assert_int_equal(devcgroup_find_unit(cases[i].path, folder, &unit, &size), 0);
		if (!cases[i].unit != !unit)
			fail_msg("%s: %s", cases[i].path, unit ? unit : "none");
		if (unit) {
			assert_string_equal(unit, cases[i].unit);
			assert_int_equal(size, strlen(cases[i].cgroup));
		}
	}
}

static void drop_in_is_written_and_removed(void **state)
{
	_cleanup_free_ char *written = NULL;
	static const struct devcgroup_rule rules[] = {
		{'c', 10, 183, "rw", "/dev/dxg"},
		{'c', 1, 3, "r", "/dev/with blank"},
		{'b', 7, 5, "rwm", "/dev/100%"},
		{'c', 1, 5, "rw", "/dev/../etc/passwd"},
		{'c', 1, 7, "rw", "/dev/x\nDevicePolicy=auto"},
		{'c', 1, 8, "rw", NULL},
	};
	_cleanup_free_ char *path = NULL, *text = NULL;
	struct err err = {0};
	struct stat st;

	(void)state;
	put("a.scope", "");
	assert_int_equal(
		devcgroup_write_drop_in(folder, "a.scope", &one, rules, ARRAY_SIZE(rules), undo_log, &written, &err),
		0);
	path = drop_in("a.scope");
	assert_int_equal(fd_read_file_at(AT_FDCWD, path, 4096, &text, NULL), 0);
	assert_string_equal(text, "# Written by ctr-gpu: the devices that the container was given.\n"
				  "[Scope]\n"
				  "DeviceAllow=/dev/dxg rw\n"
				  "DeviceAllow=/dev/char/10:183 rw\n"
				  "DeviceAllow=/dev/char/1:3 r\n"
				  "DeviceAllow=/dev/block/7:5 rwm\n"
				  "DeviceAllow=/dev/char/1:5 rw\n"
				  "DeviceAllow=/dev/char/1:7 rw\n"
				  "DeviceAllow=/dev/char/1:8 rw\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	/* By its name, as another process takes it back. */
	assert_string_equal(path + strlen(folder) + 1, written);
	devcgroup_remove_drop_in(folder, written);
	assert_false(exists("a.scope.d"));
	undo_log_undo(undo_log);
	assert_false(exists("a.scope.d"));
}

/* Return: the name of the file, new; NULL: the container has it already. */
static char *give(const struct devcgroup_id *to, const struct devcgroup_rule *rule, struct undo_log *log)
{
	char *written = NULL;

	assert_int_equal(devcgroup_write_drop_in(folder, "a.scope", to, rule, 1, log, &written, NULL), 0);
	return written;
}

/* Each takes back what it has written, and no more: one whose start fails, and one that is given back. */
static void containers_of_one_unit_have_files_of_their_own(void **state)
{
	static const struct devcgroup_rule same = {'c', 10, 183, "rw", "/dev/dxg"},
					   other = {'c', 195, 0, "rw", "/dev/nvidia0"};
	struct undo_log *others = undo_log_new(false);
	_cleanup_free_ char *first = NULL, *second = NULL, *third = NULL, *left = NULL, *command = NULL;

	(void)state;
	assert_non_null(others);
	put("a.scope", "");
	first = give(&one, &same, undo_log);
	second = give(&another, &same, others);
	third = give(&another, &other, others);
	assert_true(exists(first) && exists(second) && exists(third));
	undo_log_undo(undo_log);
	assert_false(exists(first));
	assert_true(exists(second) && exists(third));
	devcgroup_remove_drop_in(folder, second);
	left = drop_in("a.scope");
	assert_string_equal(left + strlen(folder) + 1, third);
	/* With the unit, all of it goes. */
	assert_int_equal(str_format(&command, "rm %s/a.scope", folder), 0);
	assert_int_equal(system(command), 0);
	assert_true(devcgroup_remove_stale_drop_ins(folder, "a.scope"));
	assert_false(exists("a.scope.d"));
	undo_log_free(others);
}

/* What is given twice is there once, and is the first one's to take back. */
static void a_container_that_is_given_the_same_again_has_one_file(void **state)
{
	static const struct devcgroup_rule rule = {'c', 10, 183, "rw", "/dev/dxg"};
	struct undo_log *again = undo_log_new(false);
	_cleanup_free_ char *first = NULL;

	(void)state;
	assert_non_null(again);
	put("a.scope", "");
	first = give(&one, &rule, undo_log);
	assert_null(give(&one, &rule, again));
	undo_log_undo(again);
	assert_true(exists(first));
	assert_null(give(&one, &rule, again));
	devcgroup_remove_drop_in(folder, first);
	assert_false(exists("a.scope.d"));
	undo_log_free(again);
}

static void others_files_stay(void **state)
{
	_cleanup_free_ char *written = NULL;
	(void)state;
	put("a.service", "");
	make_folder("a.service.d");
	put("a.service.d/50-DeviceAllow.conf", "");
	assert_int_equal(devcgroup_write_drop_in(folder, "a.service", &one, NULL, 0, undo_log, &written, NULL), 0);
	undo_log_undo(undo_log);
	assert_true(exists("a.service.d/50-DeviceAllow.conf"));
	assert_null(drop_in("a.service"));
}

static void a_link_in_the_place_of_the_folder_is_refused(void **state)
{
	_cleanup_free_ char *written = NULL;
	_cleanup_free_ char *link = NULL;
	struct err err = {0};

	(void)state;
	make_folder("elsewhere");
	assert_int_equal(str_format(&link, "%s/a.scope.d", folder), 0);
	assert_int_equal(symlink("elsewhere", link), 0);
	assert_true(devcgroup_write_drop_in(folder, "a.scope", &one, NULL, 0, undo_log, &written, &err) < 0);
	assert_int_equal(unlink(link), 0);
	free(steal_ptr(link));
	assert_int_equal(str_format(&link, "%s/elsewhere", folder), 0);
	/* Nothing is in it. */
	assert_int_equal(rmdir(link), 0);
	assert_non_null(strstr(err.text, "a.scope.d/50-ctr-gpu-"));
}

static void rules_of_a_unit_are_seen(void **state)
{
	static const struct {
		const char *text;
		bool restricts;
	} cases[] = {
		{"[Scope]\nDevicePolicy=strict\n", true},
		{"[Scope]\nDevicePolicy=closed", true},
		{"[Scope]\nDevicePolicy=auto\n", false},
		{"[Scope]\nDeviceAllow=\nDeviceAllow=/dev/null rw\n", true},
		{"[Scope]\nDeviceAllow=char-* m\n", true},
		{"[Scope]\nDeviceAllow=\n", false},
		{"# DevicePolicy=strict\nDescription=DevicePolicy=strict\n", false},
		{"", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put("a.scope", cases[i].text);
		assert_int_equal(devcgroup_systemd_restricts(folder, "a.scope"), cases[i].restricts);
	}
	assert_false(devcgroup_systemd_restricts(folder, "absent.scope"));
	make_folder("a.scope.d");
	put("a.scope.d/50-ctr-gpu-1.conf", "DeviceAllow=/dev/dxg rw\n");
	put("a.scope.d/50-DeviceAllow", "DeviceAllow=/dev/dxg rw\n");
	assert_false(devcgroup_systemd_restricts(folder, "a.scope"));
	put("a.scope.d/50-DeviceAllow.conf", "DeviceAllow=/dev/dxg rw\n");
	assert_true(devcgroup_systemd_restricts(folder, "a.scope"));
}

static void stale_files_are_removed(void **state)
{
	(void)state;
	put("here.scope", "");
	make_folder("here.scope.d");
	put("here.scope.d/50-ctr-gpu-1.conf", "");
	make_folder("gone.scope.d");
	put("gone.scope.d/50-ctr-gpu-1.conf", "");
	make_folder("shared.scope.d");
	put("shared.scope.d/50-ctr-gpu-1.conf", "");
	put("shared.scope.d/other.conf", "");
	make_folder("others.scope.d");
	put("others.scope.d/other.conf", "");
	make_folder("no unit.d");
	put("no unit.d/50-ctr-gpu-1.conf", "");
	put("file.scope.d", "");
	make_folder("again.scope.d");
	put("again.scope.d/50-ctr-gpu-1.conf", "");
	put("again.scope", "");
	put("again.scope.d/50-ctr-gpu-2.conf", "");
	put_back("again.scope.d/50-ctr-gpu-1.conf");
	assert_true(devcgroup_remove_stale_drop_ins(folder, "again.scope"));
	assert_false(devcgroup_remove_stale_drop_ins(folder, "here.scope"));
	assert_true(exists("here.scope.d/50-ctr-gpu-1.conf"));
	assert_false(exists("gone.scope.d"));
	assert_false(exists("shared.scope.d/50-ctr-gpu-1.conf"));
	assert_true(exists("shared.scope.d/other.conf"));
	assert_true(exists("others.scope.d/other.conf"));
	assert_true(exists("no unit.d/50-ctr-gpu-1.conf"));
	assert_true(exists("file.scope.d"));
	assert_false(exists("again.scope.d/50-ctr-gpu-1.conf"));
	assert_true(exists("again.scope.d/50-ctr-gpu-2.conf"));
	assert_false(devcgroup_remove_stale_drop_ins("/nonexistent", NULL));
}

/* A message of systemd's without fields. */
static void answer(int fd, unsigned char type, unsigned body)
{
	unsigned char message[16 + 64] = {__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 'l' : 'B', type, 0, 1};

	memcpy(message + 4, &body, sizeof(body));
	assert_int_equal(write(fd, message, 16 + body), 16 + body);
}

static int ask(const char *greeting, const unsigned char *types, size_t count, bool end)
{
	unsigned char sent[4096];
	int pair[2], r;
	ssize_t size;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(write(pair[1], greeting, strlen(greeting)), strlen(greeting));
	for (size_t i = 0; i < count; i++)
		answer(pair[1], types[i], 8 * (unsigned)i);
	if (end)
		assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
	r = devcgroup_systemd_ask(pair[0], "a.scope", true,
				  "[Scope]\nDeviceAllow=\nDeviceAllow=/dev/dxg rw\nDeviceAllow=/dev/kfd r");
	size = read(pair[1], sent, sizeof(sent));
	assert_true(size > 0);
	assert_memory_equal(sent, "\0AUTH EXTERNAL 3", 16);
	assert_non_null(memmem(sent, (size_t)size, "\r\nBEGIN\r\n", 9));
	assert_non_null(memmem(sent, (size_t)size, "\10\0\0\0/dev/dxg\0\0\0\0\2\0\0\0rw", 22));
	assert_non_null(memmem(sent, (size_t)size, "\10\0\0\0/dev/kfd\0\0\0\0\1\0\0\0r", 21));
	(void)close(pair[0]);
	(void)close(pair[1]);
	return r;
}

static void systemd_s_answer_is_found(void **state)
{
	static const unsigned char returns[] = {4, 4, 2}, fails[] = {4, 3}, signals[] = {4, 4, 4};

	(void)state;
	assert_int_equal(ask("OK 1234\r\n", returns, 3, false), 0);
	assert_int_equal(ask("OK 1234\r\n", fails, 2, false), -EREMOTEIO);
	assert_int_equal(ask("REJECTED\r\n", NULL, 0, false), -EACCES);
	assert_int_equal(ask("OK 1234\r\n", signals, 3, true), -ECONNRESET);
	assert_int_equal(ask("OK 1234\r\n", signals, 3, false), -ETIMEDOUT);
	/* Each byte missing behind, and another order of bytes. */
	for (size_t size = 0; size < strlen("OK 1\r\n"); size++)
		assert_int_equal(devcgroup_systemd_answer("OK 1\r\n", size), 0);
	assert_int_equal(devcgroup_systemd_answer("OK\n0\2\0\1\0\0\0\0\0\0\0\0\0\0\0\0", 19), -EACCES);
	assert_int_equal(devcgroup_systemd_answer("OK \n0\2\0\1\0\0\0\0\0\0\0\0\0\0\0\0", 20), -EBADMSG);
}

static void systemd_keeps_what_others_want(void **state)
{
	_cleanup_free_ char *left = NULL, *path = NULL;
	_cleanup_close_ int fd = -1;

	(void)state;
	make_folder("a.scope.d");
	assert_int_equal(str_format(&path, "%s/a.scope.d", folder), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(devcgroup_systemd_left(fd, "", &left), -ENOENT);
	assert_null(left);
	put("a.scope.d/50-DeviceAllow.conf", "[Scope]\nDeviceAllow=\nDeviceAllow=/dev/dxg rw\nDeviceAllow=/dev/dxg r\n"
					     "DeviceAllow=/dev/kfd rw\nDeviceAllow=char-* m\n");
	put("a.scope.d/50-ctr-gpu-2.conf", "[Scope]\nDeviceAllow=/dev/kfd rw\n");
	assert_int_equal(
		devcgroup_systemd_left(fd, "[Scope]\nDeviceAllow=/dev/dxg rw\nDeviceAllow=/dev/kfd rw\n", &left), 0);
	assert_string_equal(left, "[Scope]\nDeviceAllow=\nDeviceAllow=/dev/dxg r\nDeviceAllow=/dev/kfd rw\n"
				  "DeviceAllow=char-* m\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(units_are_found_in_paths, start, stop),
		cmocka_unit_test_setup_teardown(drop_in_is_written_and_removed, start, stop),
		cmocka_unit_test_setup_teardown(a_container_that_is_given_the_same_again_has_one_file, start, stop),
		cmocka_unit_test_setup_teardown(containers_of_one_unit_have_files_of_their_own, start, stop),
		cmocka_unit_test_setup_teardown(others_files_stay, start, stop),
		cmocka_unit_test_setup_teardown(a_link_in_the_place_of_the_folder_is_refused, start, stop),
		cmocka_unit_test_setup_teardown(rules_of_a_unit_are_seen, start, stop),
		cmocka_unit_test_setup_teardown(stale_files_are_removed, start, stop),
		cmocka_unit_test(systemd_s_answer_is_found),
		cmocka_unit_test_setup_teardown(systemd_keeps_what_others_want, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
