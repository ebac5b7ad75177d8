/* SPDX-License-Identifier: Apache-2.0 */

/* Which processes count as an engine's daemon, and what is read of them. */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "engines/daemon.h"

/* No engine's, nor another run's of this test, so that none of this machine's is found. The kernel keeps 15 bytes of it. */
static char name[16];

static char directory[] = "/tmp/ctr-gpu-test-XXXXXX", program[64];

static struct daemon_kind kind = {.name = name};

/* A copy, since a daemon is known by its program's file. */
static int make_program(void)
{
	return system("cp /bin/sh \"$PROGRAM\"");
}

struct detach_wait {
	pid_t pid;
	int input; /* whose end is the process's */
};

/* A shell by another name, which keeps the ids that it is given and waits for the end of its input. */
static struct detach_wait start(const char *path, char *const environment[])
{
	char *const arguments[] = {(char *)(uintptr_t)path, "-p", "-c",        "read line", "x", "--config=/first",
				   "-config=/a b",          "-H", "unix:///s", "--flag",    NULL};
	struct detach_wait running;
	int input[2], ready[2];
	char byte;

	assert_int_equal(pipe(input), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	running.pid = fork();
	assert_true(running.pid >= 0);
	if (running.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(input[0], 0);
		(void)close(input[1]);
		(void)execve(path, arguments, environment);
		_exit(127);
	}
	(void)close(input[0]);
	(void)close(ready[1]);
	/* Ends when it has executed. */
	assert_int_equal(read(ready[0], &byte, 1), 0);
	(void)close(ready[0]);
	running.input = input[1];
	return running;
}

static void end(const struct detach_wait *running)
{
	(void)close(running->input);
	(void)kill(running->pid, SIGKILL);
	(void)waitpid(running->pid, NULL, 0);
}

static char *const no_environment[] = {NULL};

static void nothing_runs(void **state)
{
	_cleanup_program_ struct program shell = {0};
	struct daemon daemon = {0};

	(void)state;
	assert_int_equal(daemon_find(&kind, geteuid(), &daemon), 0);
	assert_int_equal(daemon.pid, 0);
	assert_int_equal(daemon.root, -1);
	assert_null(daemon_option(&daemon, "--config", "-c"));
	assert_null(daemon_variable(&daemon, "PATH"));
	/* As if it were started by a service manager. */
	assert_true(daemon_look_up(&daemon, "sh", &shell));
	assert_string_equal(strrchr(shell.path, '/'), "/sh");
	assert_true(daemon_sees(&daemon, "/"));
	assert_false(daemon_is_older(&daemon, &(struct timespec){.tv_sec = 1}));
	daemon_close(&daemon);
}

static void arguments_and_environment(void **state)
{
	char path[128], *environment[] = {"A=1", "PATHOLOGY=x", path, "EMPTY=", NULL};
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	_cleanup_program_ struct program found = {0};
	struct detach_wait running;

	(void)state;
	(void)snprintf(path, sizeof(path), "PATH=relative:/nowhere:%s:/bin", directory);
	running = start(program, environment);
	assert_int_equal(daemon_find(&kind, geteuid(), &daemon), 0);
	assert_int_equal(daemon.pid, running.pid);
	assert_int_equal(daemon.uid, geteuid());
	/* The last one counts; one dash will do. */
	assert_string_equal(daemon_option(&daemon, "--config", "-c"), "/a b");
	assert_string_equal(daemon_next_option(&daemon, "--config", "-c", NULL), "read line");
	assert_string_equal(daemon_option(&daemon, "--host", "-H"), "unix:///s");
	assert_null(daemon_option(&daemon, "--conf", NULL));
	assert_null(daemon_option(&daemon, "--flag", NULL));
	assert_true(daemon_has_option(&daemon, "--flag") && daemon_has_option(&daemon, "--config") &&
		    !daemon_has_option(&daemon, "--fla"));
	assert_true(daemon_mentions(&daemon, "/a ") && daemon_mentions(&daemon, name) &&
		    !daemon_mentions(&daemon, "nix:///sx"));
	assert_string_equal(daemon_variable(&daemon, "PATH"), path + 5);
	assert_string_equal(daemon_variable(&daemon, "EMPTY"), "");
	assert_null(daemon_variable(&daemon, "PAT"));
	assert_false(daemon.elsewhere || daemon.snap);
	assert_true(daemon_look_up(&daemon, name, &found));
	assert_string_equal(found.path, program);
	assert_true(found.st.st_ctim.tv_sec > 0);
	assert_true(daemon_sees(&daemon, program));
	end(&running);
}

static void the_start_is_told_from_what_came_before_and_after(void **state)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	struct timespec before, after;
	struct detach_wait running;

	(void)state;
	(void)clock_gettime(CLOCK_REALTIME, &before);
	(void)nanosleep(&pause, NULL);
	running = start(program, no_environment);
	(void)nanosleep(&pause, NULL);
	(void)clock_gettime(CLOCK_REALTIME, &after);
	assert_int_equal(daemon_find(&kind, geteuid(), &daemon), 0);
	assert_false(daemon_is_older(&daemon, &before));
	assert_true(daemon_is_older(&daemon, &after));
	end(&running);
}

static bool is_second(const struct daemon *daemon)
{
	return daemon_variable(daemon, "SECOND") != NULL;
}

static void one_of_several(void **state)
{
	const struct daemon_kind second_kind = {.name = name, .is_wanted = is_second};
	char *second[] = {"SECOND=", NULL};
	struct detach_wait first = start(program, no_environment), last = start(program, second);
	struct daemon daemon;

	(void)state;
	assert_int_equal(daemon_find(&second_kind, geteuid(), &daemon), 0);
	assert_int_equal(daemon.pid, last.pid);
	daemon_close(&daemon);
	end(&last);
	assert_int_equal(daemon_find(&second_kind, geteuid(), &daemon), 0);
	assert_int_equal(daemon.pid, 0);
	assert_int_equal(daemon_find(&kind, geteuid(), &daemon), 0);
	assert_int_equal(daemon.pid, first.pid);
	daemon_close(&daemon);
	end(&first);
}

static void docker_s_own_containerd(void **state)
{
	static const struct {
		const char *arguments;
		size_t size;
		bool alone;
	} cases[] = {
#define ARGUMENTS(text, alone) {text, sizeof(text), alone}
		ARGUMENTS("containerd", true),
		ARGUMENTS("containerd\0--config\0/var/run/docker/containerd/containerd.toml", false),
		ARGUMENTS("containerd\0-c=/run/user/1000/docker/containerd/containerd.toml\0--log-level\0info", false),
		ARGUMENTS("containerd\0--root\0/data/docker/containerd/\0--config\0/etc/containerd/docker/config.toml",
			  true),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct daemon daemon = {.arguments = (char *)(uintptr_t)cases[i].arguments,
					      .arguments_size = cases[i].size,
					      .root = -1};

		assert_int_equal(daemon_stands_alone(&daemon), cases[i].alone);
	}
}

/* Where dockerd was told another --exec-root. */
static void docker_s_own_containerd_elsewhere(void **state)
{
	static char arguments[] = "containerd\0--config\0/srv/engine/containerd/containerd.toml";
	const struct daemon daemon = {
		.arguments = arguments, .arguments_size = sizeof(arguments), .parent = getpid(), .root = -1};
	char before[16];

	(void)state;
	assert_int_equal(prctl(PR_GET_NAME, before), 0);
	assert_true(daemon_stands_alone(&daemon));
	assert_int_equal(prctl(PR_SET_NAME, "dockerd"), 0);
	assert_false(daemon_stands_alone(&daemon));
	assert_int_equal(prctl(PR_SET_NAME, before), 0);
}

static void another_user_s_is_not_ours(void **state)
{
	struct detach_wait running = start(program, no_environment);
	struct daemon daemon;

	(void)state;
	assert_int_equal(daemon_find(&kind, geteuid() + 1, &daemon), 0);
	assert_int_equal(daemon.pid, 0);
	end(&running);
}

/* In a child, whose ids and namespaces may change. @undo_step: returns 0 if all is well. */
static void in_child(int (*undo_step)(void))
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip("needs root");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(undo_step());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static pid_t find_of(uid_t uid)
{
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;

	return daemon_find(&kind, uid, &daemon) == 0 ? daemon.pid : -1;
}

/* Its files in /proc are root's. */
static int start_setuid(void)
{
	struct detach_wait running;
	int r;

	if (setresuid(4711, 0, 0) < 0)
		return 1;
	running = start(program, no_environment);
	r = find_of(0) == 0 && find_of(4711) == 0 ? 0 : 2;
	end(&running);
	return r;
}

static int start_in_container(void)
{
	struct detach_wait running;
	int r;

	if (unshare(CLONE_NEWPID) < 0)
		return 1;
	running = start(program, no_environment);
	r = find_of(0) == 0 ? 0 : 2;
	end(&running);
	return r;
}

static void one_with_ids_of_two_users_is_of_neither(void **state)
{
	(void)state;
	in_child(start_setuid);
}

static void one_in_a_container_does_not_count(void **state)
{
	(void)state;
	in_child(start_in_container);
}

/* What a process of root's is like that has the name and nothing else; @become runs in its parent, as container runtimes do it. */
static int become_strange(int (*become)(void))
{
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	int release[2], ready[2], r;
	char byte;
	pid_t pid;

	if (pipe(release) < 0 || pipe(ready) < 0 || (pid = fork()) < 0)
		return 1;
	if (pid == 0) {
		struct detach_wait running;

		if (become() < 0)
			_exit(1);
		running = start(program, no_environment);
		r = write(ready[1], "", 1) == 1 && read(release[0], &byte, 1) == 1 ? 0 : 1;
		end(&running);
		_exit(r);
	}
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return 2;
	r = daemon_find(&kind, 0, &daemon) == 0 && daemon.pid == 0 && daemon.rejected_pid > 0 ? 0 : 3;
	if (write(release[1], "", 1) != 1)
		return 4;
	(void)waitpid(pid, NULL, 0);
	return r;
}

static int own_mounts(void)
{
	return unshare(CLONE_NEWNS);
}

static int own_users(void)
{
	FILE *map;

	if (unshare(CLONE_NEWUSER) < 0)
		return -1;
	map = fopen("/proc/self/uid_map", "we");
	if (!map)
		return -1;
	(void)fputs("0 0 1", map);
	return fclose(map);
}

/* In which the same program is to be found at the same path. */
static int own_root(void)
{
	static const char make[] =
		"cd \"${PROGRAM%/*}\" && mkdir root && mount -t tmpfs tmpfs root && mkdir -p root/usr root/$PWD && "
		"mount --bind /usr root/usr && ln -s usr/bin usr/lib usr/lib64 root/ && cp -P \"$PROGRAM\" root/$PWD/";

	return system(make) != 0 || chdir(directory) < 0 || chroot("root") < 0 || chdir("/") < 0 ? -1 : 0;
}

/* Where others may put a program. */
static int own_program(void)
{
	return chmod(directory, 0777);
}

static int with_own_mounts(void)
{
	return become_strange(own_mounts);
}

static int with_own_users(void)
{
	return become_strange(own_users);
}

static int with_own_root(void)
{
	return unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
		       ? 4
		       : become_strange(own_root);
}

static int with_own_program(void)
{
	int r = become_strange(own_program);

	return chmod(directory, 0755) < 0 ? 6 : r;
}

static void one_with_anything_of_its_own_does_not_count(void **state)
{
	int (*const undo_log[])(void) = {with_own_mounts, with_own_users, with_own_root, with_own_program};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(undo_log); i++)
		if ((undo_log[i] != with_own_users && undo_log[i] != with_own_root) || unit_has_user_namespaces())
			in_child(undo_log[i]);
		else
			print_message("# left out: %s\n", UNIT_NO_USER_NAMESPACES);
	(void)snprintf(program, sizeof(program), "%s/root", directory);
	(void)rmdir(program);
	(void)snprintf(program, sizeof(program), "%s/%s", directory, name);
}

/* A program of root's that is not the engine's, by the engine's name. */
static int with_another_program(void)
{
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	struct detach_wait running;
	int r;

	if (unlink(program) < 0 || symlink("/bin/sh", program) < 0)
		return 1;
	running = start(program, no_environment);
	r = daemon_find(&kind, 0, &daemon) == 0 && daemon.pid == 0 && daemon.rejected_pid == running.pid &&
			    strstr(daemon.rejected_why, "another program")
		    ? 0
		    : 2;
	end(&running);
	return unlink(program) < 0 || make_program() != 0 ? 3 : r;
}

/* The engine's name on a program that gives rights to whoever starts it. */
static int with_rights_to_give(int given)
{
	struct detach_wait running;
	int r;

	if (given != 0)
		return 1;
	running = start(program, no_environment);
	r = find_of(0) == 0 ? 0 : 2;
	end(&running);
	return unlink(program) < 0 || make_program() != 0 ? 3 : r;
}

static int with_set_uid(void)
{
	return with_rights_to_give(chmod(program, 04755));
}

static int with_set_gid(void)
{
	return with_rights_to_give(chmod(program, 02755));
}

static int with_capabilities(void)
{
	/* Not by setcap(8), which a machine that builds need not have. */
	const struct vfs_cap_data data = {.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
					  .data = {{.permitted = 1U << CAP_CHOWN}}};

	return with_rights_to_give(setxattr(program, "security.capability", &data, sizeof(data), 0));
}

static void one_is_what_its_program_is(void **state)
{
	int (*const programs[])(void) = {with_another_program, with_set_uid, with_set_gid, with_capabilities};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		in_child(programs[i]);
}

/* Below @directory a program of that name serves under others, by links. */
static void a_program_of_several_names_counts_below_its_directory(void **state)
{
	struct daemon_kind several = {.name = "x", .multicall = directory};
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	char real[96], link[96], command[512];
	struct detach_wait running;

	(void)state;
	(void)snprintf(real, sizeof(real), "%s%s", directory, strrchr(directory, '/'));
	(void)snprintf(link, sizeof(link), "%s/x", directory);
	(void)snprintf(command, sizeof(command), "cp /bin/sh %s && ln -s %s %s", real, real, link);
	assert_int_equal(system(command), 0);
	running = start(link, no_environment);
	assert_int_equal(daemon_find(&several, geteuid(), &daemon), 0);
	assert_int_equal(daemon.pid, running.pid);
	daemon_close(&daemon);
	several.multicall = "/usr";
	assert_int_equal(daemon_find(&several, geteuid(), &daemon), 0);
	assert_int_equal(daemon.pid, 0);
	end(&running);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(unlink(real), 0);
}

/* A socket at this path, whose listener the kernel remembers. */
static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static void one_whose_socket_is_another_s_does_not_count(void **state)
{
	struct daemon_kind listens = {.name = name, .socket_option = "--host", .socket_letter = "-H"};
	struct detach_wait running;
	struct daemon daemon;
	char path[64];
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	(void)snprintf(path, sizeof(path), "%s/socket", directory);
	listens.socket = path;
	running = start(program, no_environment);
	/* It was told to have another socket, at which nobody listens. */
	fd = listen_at(path);
	assert_int_equal(daemon_find(&listens, 0, &daemon), 0);
	assert_int_equal(daemon.pid, running.pid);
	daemon_close(&daemon);
	listens.socket_option = NULL;
	assert_int_equal(daemon_find(&listens, 0, &daemon), 0);
	assert_int_equal(daemon.pid, 0);
	assert_int_equal(daemon.rejected_pid, running.pid);
	assert_non_null(strstr(daemon.rejected_why, "socket"));
	assert_int_equal(close(fd), 0);
	assert_int_equal(daemon_find(&listens, 0, &daemon), 0);
	assert_int_equal(daemon.pid, running.pid);
	daemon_close(&daemon);
	end(&running);
	assert_int_equal(unlink(path), 0);
}

static void where_a_daemon_listens(void **state)
{
	static const struct {
		const char *arguments;
		size_t size;
		const char *path;
	} cases[] = {
#define LISTENS(text, path) {text, sizeof(text), path}
		LISTENS("x", "/usual"),
		LISTENS("x\0-H\0fd://", "/usual"),
		LISTENS("x\0-H\0tcp://a\0--host=unix:///b", "/b"),
		LISTENS("x\0--host\0/c\0-H\0/d", "/c"),
		LISTENS("x\0--host=tcp://a", NULL),
		LISTENS("x\0-H", "/usual"),
	};
	const struct daemon_kind usual = {
		.name = name, .socket = "/usual", .socket_option = "--host", .socket_letter = "-H"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct daemon daemon = {.arguments = (char *)(uintptr_t)cases[i].arguments,
					      .arguments_size = cases[i].size,
					      .root = -1};
		const char *path = daemon_socket_path(&usual, &daemon);

		assert_true(cases[i].path ? path && strcmp(path, cases[i].path) == 0 : !path);
	}
}

static void a_signal_goes_to_the_process_that_was_found(void **state)
{
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	struct detach_wait running = start(program, no_environment);
	int status;

	(void)state;
	assert_int_equal(daemon_find(&kind, geteuid(), &daemon), 0);
	daemon_signal(&daemon, SIGKILL);
	assert_int_equal(waitpid(running.pid, &status, 0), running.pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	(void)close(running.input);
}

/* The same number and the same start: a process that executes another program. */
static void a_process_that_executes_is_another(void **state)
{
	_cleanup_process_view_ struct process_view view = PROCESS_VIEW_NONE, gone = PROCESS_VIEW_NONE;
	_cleanup_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *const arguments[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
				   (char *)(uintptr_t) "echo; read line; exec /bin/sh -c 'echo; read line'", NULL};
	int input[2], output[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(input), 0);
	assert_int_equal(pipe(output), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(input[0], 0);
		(void)dup2(output[1], 1);
		(void)close(input[1]);
		(void)execv("/bin/sh", arguments);
		_exit(127);
	}
	(void)close(input[0]);
	(void)close(output[1]);
	assert_int_equal(read(output[0], &byte, 1), 1);
	assert_int_equal(process_view_open(proc, pid, &view), 0);
	assert_true(process_view_is_of(&view, geteuid()) && !process_view_is_of(&view, geteuid() + 1));
	assert_true(process_view_is_unchanged(&view));
	assert_int_equal(write(input[1], "\n", 1), 1);
	assert_int_equal(read(output[0], &byte, 1), 1);
	assert_false(process_view_is_unchanged(&view));
	(void)close(input[1]);
	(void)close(output[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(process_view_is_unchanged(&view));
	assert_int_equal(process_view_open(proc, pid, &gone), -ENOENT);
}

/* As an upgrade leaves it. */
static void one_whose_program_was_removed_counts(void **state)
{
	struct detach_wait running;

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	running = start(program, no_environment);
	assert_int_equal(unlink(program), 0);
	assert_int_equal(find_of(0), running.pid);
	assert_int_equal(make_program(), 0);
	end(&running);
}

/* What the configuration file of a daemon may be; trusted_file_test.c has the rules of a path. */
static void configuration_that_is_followed(void **state)
{
	struct daemon daemon = {.root = -1};
	char arguments[128], file[64];
	char *path = NULL;
	int length;

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	(void)snprintf(file, sizeof(file), "%s/config", directory);
	length = snprintf(arguments, sizeof(arguments), "x%c--config-file=%s", 0, file);
	daemon.arguments = arguments;
	daemon.arguments_size = (size_t)length + 1;
	assert_int_equal(daemon_config(&daemon, "--config-file", NULL, &path), 0);
	assert_string_equal(path, file);
	free(path);
	assert_int_equal(daemon_config(&daemon, "--other", NULL, &path), 0);
	assert_null(path);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_int_equal(daemon_config(&daemon, "--config-file", NULL, &path), -EPERM);
	free(path);
	assert_int_equal(unlink(file), 0);
	daemon.elsewhere = true;
	assert_int_equal(daemon_config(&daemon, "--config-file", NULL, &path), -EPERM);
	free(path);
}

/* A path that leads to our files here leads nowhere, or to other files, there. */
static void one_in_a_root_of_its_own(void **state)
{
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;

	(void)state;
	daemon.root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	daemon.elsewhere = true;
	assert_true(daemon.root >= 0);
	assert_false(daemon_sees(&daemon, program));
	assert_false(daemon_sees(&daemon, "/../../bin"));
	assert_false(daemon_sees(&daemon, "/"));
}

static int prepare(void **state)
{
	(void)state;
	(void)snprintf(name, sizeof(name), "ctrgpu-%d", getpid());
	if (!mkdtemp(directory) || chmod(directory, 0755) < 0)
		return -1;
	(void)snprintf(program, sizeof(program), "%s/%s", directory, name);
	(void)setenv("PROGRAM", program, 1);
	return make_program();
}

static int clean(void **state)
{
	(void)state;
	(void)unlink(program);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_runs),
		cmocka_unit_test(arguments_and_environment),
		cmocka_unit_test(the_start_is_told_from_what_came_before_and_after),
		cmocka_unit_test(one_of_several),
		cmocka_unit_test(docker_s_own_containerd),
		cmocka_unit_test(docker_s_own_containerd_elsewhere),
		cmocka_unit_test(another_user_s_is_not_ours),
		cmocka_unit_test(one_with_ids_of_two_users_is_of_neither),
		cmocka_unit_test(one_in_a_container_does_not_count),
		cmocka_unit_test(one_with_anything_of_its_own_does_not_count),
		cmocka_unit_test(one_is_what_its_program_is),
		cmocka_unit_test(a_program_of_several_names_counts_below_its_directory),
		cmocka_unit_test(one_whose_socket_is_another_s_does_not_count),
		cmocka_unit_test(where_a_daemon_listens),
		cmocka_unit_test(a_signal_goes_to_the_process_that_was_found),
		cmocka_unit_test(a_process_that_executes_is_another),
		cmocka_unit_test(one_whose_program_was_removed_counts),
		cmocka_unit_test(configuration_that_is_followed),
		cmocka_unit_test(one_in_a_root_of_its_own),
	};

	return cmocka_run_group_tests(tests, prepare, clean);
}
