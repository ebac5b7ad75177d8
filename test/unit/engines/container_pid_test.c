/* SPDX-License-Identifier: Apache-2.0 */

/* Names of containers, in the files of a user's engines, and whether a process is the one that they mean. */

#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/str.h"
#include "ctr-gpu-error.h"
#include "engines/engine.h"
#include "system/machine.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_TAIL "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" /* behind one more digit */

static char home[] = "/tmp/ctr-gpu-test-XXXXXX";

static void write_file(const char *path, const char *text)
{
	_cleanup_free_ char *whole = NULL;
	_cleanup_close_ int fd = -1;

	assert_int_equal(str_format(&whole, "%s/%s", home, path), 0);
	for (char *slash = strchr(whole + strlen(home) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(whole, 0700);
		*slash = '/';
	}
	fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* The first process of a container, which ends with this one. */
static pid_t start_process(void)
{
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	return pid;
}

static void end_process(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static unsigned long long read_start(pid_t pid)
{
	_cleanup_close_ int process = -1;
	unsigned long long start;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(process_key_start(process, &start), 0);
	return start;
}

/* As crun writes it. @more: further members */
static void write_crun(const char *id, pid_t pid, const char *more)
{
	_cleanup_free_ char *path = NULL, *text = NULL;

	assert_int_equal(str_format(&path, "crun/%s/status", id), 0);
	assert_int_equal(
		str_format(&text, "{\"pid\": %d, \"process-start-time\": %llu%s}", (int)pid, read_start(pid), more), 0);
	write_file(path, text);
}

/* As runc does. */
static void write_runc(const char *id, pid_t pid, const char *more)
{
	_cleanup_free_ char *path = NULL, *text = NULL;

	assert_int_equal(str_format(&path, "runc/%s/state.json", id), 0);
	assert_int_equal(str_format(&text, "{\"init_process_pid\": %d, \"init_process_start\": %llu%s}", (int)pid,
				    read_start(pid), more),
			 0);
	write_file(path, text);
}

/* As root would be looked for where the machine's own engines are, it is another user who asks. */
static int begin(void **state)
{
	(void)state;
	if (!mkdtemp(home))
		return -1;
	if (geteuid() == 0 && (chown(home, 65534, 65534) < 0 || seteuid(65534) < 0))
		return -1;
	(void)setenv("XDG_RUNTIME_DIR", home, 1);
	(void)setenv("XDG_DATA_HOME", home, 1);
	(void)setenv("CONTAINERS_STORAGE_CONF", "/nonexistent", 1);
	return 0;
}

static int end(void **state)
{
	char command[64];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", home);
	return getuid() == 0 && seteuid(0) < 0 ? -1 : system(command);
}

static void names_that_are_none(void **state)
{
	static const char *const names[] = {"", "..", "../one", "-one", "a/b", "a b", "a%2e", "\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct container_pid found = {0};
		struct err err = {0};

		assert_int_equal(container_pid_find(names[i], &found, &err), CTR_GPU_E_BAD_ARGUMENT);
		assert_non_null(strstr(err.text, "is not the name of a container"));
	}
}

static void a_container_is_found_by_its_name_or_id(void **state)
{
	static const char *const names[] = {ID, "0123456789ab", "web"};
	(void)state;
	write_file("containers/storage/overlay-containers/containers.json",
		   "[{\"id\": \"" ID "\", \"names\": [\"web\"]}, {\"id\": \"../x\", \"names\": [\"evil\"]}, 7]");
	write_crun(ID, getpid(), "");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_container_pid_ struct container_pid found = {0};
		struct err err = {0};

		assert_int_equal(container_pid_find(names[i], &found, &err), 0);
		assert_int_equal(found.pid, getpid());
		assert_string_equal(found.id, ID);
		assert_true(found.started == read_start(getpid()));
	}
	assert_int_equal(container_pid_find("evil", &(struct container_pid){0}, NULL), CTR_GPU_E_BAD_ARGUMENT);
	assert_int_equal(container_pid_find("01234", &(struct container_pid){0}, NULL), CTR_GPU_E_BAD_ARGUMENT);
}

/* Whatever keeps its layers: the storage has a folder for each driver. */
static void names_are_found_with_each_driver_of_storage(void **state)
{
	static const char *const drivers[] = {"vfs", "btrfs", "zfs", "overlay"};
	static const char *const files[] = {"containers", "containers", "containers", "volatile-containers"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
		_cleanup_container_pids_ struct container_pids list = {0};
		_cleanup_container_pid_ struct container_pid found = {0};
		_cleanup_free_ char *path = NULL, *names = NULL, *id = NULL;
		const char *listed = NULL;
		const pid_t pid = start_process();
		struct err err = {0};

		assert_true(str_format(&path, "containers/storage/%s-containers/%s.json", drivers[i], files[i]) == 0 &&
			    str_format(&names, "[{\"id\": \"id-%s\", \"names\": [\"of-%s\"]}]", drivers[i],
				       drivers[i]) == 0 &&
			    str_format(&id, "id-%s", drivers[i]) == 0);
		write_file(path, names);
		write_crun(id, pid, "");
		*strchr(strstr(names, "of-"), '"') = '\0';
		assert_int_equal(container_pid_find(strstr(names, "of-"), &found, &err), 0);
		assert_int_equal(found.pid, pid);
		assert_int_equal(container_pid_list(&list), 0);
		for (size_t j = 0; j < list.count; j++)
			if (list.items[j].pid == pid)
				listed = list.items[j].name;
		assert_non_null(listed);
		assert_string_equal(listed, strstr(names, "of-"));
	}
}

static void two_of_one_name_are_told(void **state)
{
	struct err err = {0};

	(void)state;
	write_runc("twice", start_process(), "");
	write_crun("twice", start_process(), "");
	assert_int_equal(container_pid_find("twice", &(struct container_pid){0}, &err), CTR_GPU_E_BAD_ARGUMENT);
	assert_non_null(strstr(err.text, "twice is a container of runc and another of crun"));
}

static bool lists_id(const char *id)
{
	_cleanup_container_pids_ struct container_pids list = {0};
	bool listed = false;

	assert_int_equal(container_pid_list(&list), 0);
	for (size_t i = 0; i < list.count; i++)
		listed |= streq(list.items[i].id, id);
	return listed;
}

/* runc has its state until "runc delete", and then another process may have the number. */
static void one_that_has_ended_has_no_name(void **state)
{
	const pid_t pid = start_process(), other = start_process();
	_cleanup_container_pid_ struct container_pid found = {0};
	_cleanup_free_ char *later = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(str_format(&later, "{\"pid\": %d, \"process-start-time\": 1}", (int)other), 0);
	write_runc("ends", pid, "");
	write_file("crun/ended-before/status", later);
	assert_true(lists_id("ends"));
	end_process(pid);
	assert_false(lists_id("ends"));
	assert_false(lists_id("ended-before"));
	assert_int_equal(container_pid_find("ends", &(struct container_pid){0}, &err), CTR_GPU_E_BAD_ARGUMENT);
	assert_non_null(strstr(err.text, "no container that runs is called ends"));
	write_crun("ends", other, "");
	assert_int_equal(container_pid_find("ends", &found, &err), 0);
	assert_int_equal(found.pid, other);
	assert_true(lists_id("ends"));
}

/* Who can write the file can have any process named. */
static void a_file_that_others_can_write_is_not_read(void **state)
{
	_cleanup_free_ char *path = NULL;
	struct err err = {0};

	(void)state;
	write_crun("open", start_process(), "");
	assert_int_equal(str_format(&path, "%s/crun/open/status", home), 0);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(container_pid_find("open", &(struct container_pid){0}, &err), CTR_GPU_E_BAD_ARGUMENT);
	assert_non_null(strstr(err.text, "which process the container open is is not known"));
}

static const struct container_pid *find_unknown(const struct container_pids *list, const char *error)
{
	for (size_t i = 0; i < list->unknown_count; i++)
		if (strstr(list->unknown[i].error, error))
			return &list->unknown[i];
	return NULL;
}

/* What cannot be read may run all the same; what is not there has ended. */
static void what_cannot_be_read_is_told(void **state)
{
	_cleanup_container_pids_ struct container_pids list = {0}, later = {0};
	const struct container_pid *damaged, *all;
	_cleanup_free_ char *path = NULL;

	(void)state;
	write_file("crun/damaged/status", "{\"pid\": 1");
	write_file("crun/ended/exec.fifo", "");
	write_file("crun/a-file", "");
	assert_int_equal(container_pid_list(&list), 0);
	damaged = find_unknown(&list, "/crun/damaged/status is damaged");
	assert_non_null(damaged);
	assert_string_equal(damaged->id, "damaged");
	assert_string_equal(damaged->engine, "crun");
	assert_null(find_unknown(&list, "/crun/ended"));
	assert_null(find_unknown(&list, "a-file"));
	assert_int_equal(str_format(&path, "%s/crun", home), 0);
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(container_pid_list(&later), 0);
	assert_int_equal(chmod(path, 0700), 0);
	all = find_unknown(&later, "/crun: Permission denied");
	assert_non_null(all);
	assert_null(all->id);
}

/* Docker does not answer for one that containerd has, say. A name may be one of several engines. */
static void what_another_source_knows_is_not_unknown(void **state)
{
	_cleanup_container_pids_ struct container_pids list = {0};
	const pid_t pids[] = {start_process(), start_process(), start_process()};
	const struct container_pid *unknown;
	size_t known = 0;

	(void)state;
	write_file("crun/1" ID_TAIL "/status", "{\"pid\": 1");
	write_runc("1" ID_TAIL, pids[0], "");
	write_crun("2" ID_TAIL, pids[1], "");
	write_file("runc/2" ID_TAIL "/state.json", "{\"init_process_pid\": 1");
	write_file("crun/shared-name/status", "{\"pid\": 1");
	write_runc("shared-name", pids[2], "");
	assert_int_equal(container_pid_list(&list), 0);
	for (size_t i = 0; i < list.count; i++)
		for (size_t j = 0; j < ARRAY_SIZE(pids); j++)
			known += list.items[i].pid == pids[j];
	assert_int_equal(known, 3);
	assert_null(find_unknown(&list, "/crun/1" ID_TAIL));
	assert_null(find_unknown(&list, "/runc/2" ID_TAIL));
	unknown = find_unknown(&list, "/crun/shared-name/status is damaged");
	assert_non_null(unknown);
	assert_string_equal(unknown->id, "shared-name");
}

static void another_process_of_the_number_is_not_it(void **state)
{
	_cleanup_close_ int process = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	struct container_pid found = {.pid = getpid(), .id = (char *)"no-such-cgroup"};
	const char *field;

	(void)state;
	assert_int_equal(fd_read_kernel_file(process, "stat", 4096, &text), 0);
	field = strrchr(text, ')');
	for (int number = 2; number < 22; number++)
		field = strchr(field + 1, ' ');
	found.started = strtoull(field + 1, NULL, 10);
	assert_true(container_pid_is(&found, process));
	found.started++;
	assert_false(container_pid_is(&found, process));
	found.started = 0;
	assert_false(container_pid_is(&found, process));
}

/* Where this machine has cgroups. */
static void a_part_of_a_cgroups_name_is_another(void **state)
{
	_cleanup_close_ int process = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *membership = NULL;
	struct container_pid found = {.pid = getpid()};
	char *name = NULL;

	(void)state;
	assert_int_equal(fd_read_kernel_file(process, "cgroup", 4096, &membership), 0);
	/* The longest line has one. */
	for (char *line = strtok(membership, "\n"); line; line = strtok(NULL, "\n"))
		if (strrchr(line, '/') && (!name || strlen(strrchr(line, '/')) > strlen(name)))
			name = strrchr(line, '/');
	if (!name || strlen(name) < sizeof("/abc") - 1)
		skip("needs a cgroup with a name");
	found.id = name + 1;
	assert_true(container_pid_is(&found, process));
	found.id = name + 2;
	assert_false(container_pid_is(&found, process));
	name[strlen(name) - 1] = '\0';
	found.id = name + 1;
	assert_false(container_pid_is(&found, process));
}

/* Each process once, with the name and the bundle that its files have. What begins later has begun now. */
static void all_that_run_are_listed_once(void **state)
{
	_cleanup_close_ int process = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_container_pids_ struct container_pids list = {0};
	const struct container_pid *web = NULL, *own = NULL;
	const pid_t relative = start_process(), labelled = start_process();
	time_t now = time(NULL);

	(void)state;
	write_crun("own", relative, ", \"bundle\": \"relative\"");
	write_runc("labelled", labelled, ", \"config\": {\"labels\": [7, \"other=x\", \"bundle=/srv/bundle\"]}");
	write_runc("again", labelled, "");
	write_file("runc/ended/state.json", "{\"init_process_pid\": 0}");
	assert_int_equal(container_pid_list(&list), 0);
	for (size_t i = 0; i < list.count; i++) {
		if (list.items[i].pid == getpid())
			web = &list.items[i];
		if (list.items[i].pid == labelled)
			own = &list.items[i];
		assert_true(list.items[i].pid > 0);
		assert_true(list.items[i].pid != relative || !list.items[i].bundle);
		for (size_t j = 0; j < i; j++)
			assert_true(list.items[i].pid != list.items[j].pid);
	}
	assert_non_null(web);
	assert_string_equal(web->name, "web");
	assert_string_equal(web->engine, "podman");
	assert_non_null(own);
	assert_string_equal(own->bundle, "/srv/bundle");
	assert_true(container_pid_read_time(process) >= now - 600 && container_pid_read_time(process) <= now + 1);
}

/* In cgroups of both versions; a container may name what is below its own as it likes. */
static void a_cgroup_says_whose_a_process_is(void **state)
{
	static const struct {
		const char *membership, *id, *cgroup;
	} firsts[] = {
		{"0::/system.slice/docker-" ID ".scope/init.scope\n", ID, "0::/system.slice/docker-" ID ".scope"},
		{"2:cpu:/\n1:name=systemd:/docker/" ID "\n0::/\n", ID, "1:name=systemd:/docker/" ID},
		{"0::/test/web\n", "web", "0::/test/web"},
		{"0::/webs/my_web/web2/user.slice\n", "web", NULL},
		{"0::/web:other/web\n", "web", "0::/web:other"},
		{"0::/system.slice/web.service\n", "web", NULL},
		{"0::/default/web-2\n1:cpu:/default/web.2\n", "web", NULL},
		{"0::/system.slice/default-web.scope\n", "web", "0::/system.slice/default-web.scope"},
		{"", "web", NULL},
	};
	char id[CONTAINER_PID_ID_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(firsts); i++) {
		_cleanup_free_ char *cgroup = NULL;

		assert_int_equal(container_pid_find_cgroup(firsts[i].membership, firsts[i].id, &cgroup), 0);
		if (!firsts[i].cgroup) {
			assert_null(cgroup);
			continue;
		}
		assert_string_equal(cgroup, firsts[i].cgroup);
		assert_true(container_pid_is_below(firsts[i].membership, cgroup));
	}
	assert_true(container_pid_is_below("3:pids:/\n0::/a/b/c\n", "0::/a/b"));
	assert_false(container_pid_is_below("0::/a/bc\n", "0::/a/b"));
	assert_false(container_pid_is_below("0::/x/0::/a/b\n", "0::/a/b"));
	assert_false(container_pid_is_below("0::/a\n", "0::/a/b"));
	assert_true(container_pid_read_id("0::/user.slice/libpod-" ID ".scope/" ID "f\n", id));
	assert_string_equal(id, ID);
	assert_false(container_pid_read_id("0::/user.slice/libpod-" ID "0.scope\n", id));
	assert_false(container_pid_read_id("0::/x" ID "\n0::/abc\n", id));
	assert_false(container_pid_read_id(ID, id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_are_none),
		cmocka_unit_test(a_container_is_found_by_its_name_or_id),
		cmocka_unit_test(names_are_found_with_each_driver_of_storage),
		cmocka_unit_test(two_of_one_name_are_told),
		cmocka_unit_test(one_that_has_ended_has_no_name),
		cmocka_unit_test(a_file_that_others_can_write_is_not_read),
		cmocka_unit_test(what_cannot_be_read_is_told),
		cmocka_unit_test(what_another_source_knows_is_not_unknown),
		cmocka_unit_test(another_process_of_the_number_is_not_it),
		cmocka_unit_test(a_part_of_a_cgroups_name_is_another),
		cmocka_unit_test(all_that_run_are_listed_once),
		cmocka_unit_test(a_cgroup_says_whose_a_process_is),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
