/* SPDX-License-Identifier: Apache-2.0 */

/*
 * enter PROFILE -- COMMAND…: runs a command on a simulated host. Three processes: this one, which waits; the supervisor,
 * which answers for /dev/dxg and ends what the command leaves behind; and the command. Each ends the next when it dies.
 */

#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "dxgd.h"
#include "filter.h"
#include "space.h"

enum { EXIT_SETUP = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

struct options {
	const char *profiles, *files;
	bool list, keep, cgroup2;
	dev_t device;
	const char *profile;
	char **command;
};

enum { OPTION_PROFILES = 256, OPTION_FILES, OPTION_CGROUP2, OPTION_NODE };

static const struct argp_option option_table[] = {
	{"keep", 'k', NULL, 0,
	 "Leave running what the command started in the background; the host lasts as long as that", 0},
	{"list", 'l', NULL, 0, "List the profiles", 0},
	{"cgroup2", OPTION_CGROUP2, NULL, 0, "Mount cgroup version 2 over /sys/fs/cgroup", 0},
	{"node", OPTION_NODE, "MAJOR:MINOR", 0, "Device that stands for /dev/dxg, default 10:183 (hwrng)", 0},
	{"profiles", OPTION_PROFILES, "DIR", 0, "Where declarations are", 0},
	{"files", OPTION_FILES, "DIR", 0, "Where the files are that hosts are made of", 0},
	{0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;
	unsigned node_major, node_minor;

	switch (key) {
	case 'k':
		options->keep = true;
		return 0;
	case 'l':
		options->list = true;
		return 0;
	case OPTION_CGROUP2:
		options->cgroup2 = true;
		return 0;
	case OPTION_NODE:
		if (sscanf(argument, "%u:%u", &node_major, &node_minor) != 2)
			argp_error(state, "--node wants MAJOR:MINOR");
		options->device = makedev(node_major, node_minor);
		return 0;
	case OPTION_PROFILES:
		options->profiles = argument;
		return 0;
	case OPTION_FILES:
		options->files = argument;
		return 0;
	case ARGP_KEY_ARG:
		options->profile = argument;
		options->command = state->argv + state->next;
		state->next = state->argc;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int compare_names(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static int is_declaration(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');

	return end && strcmp(end, ".json") == 0;
}

static int list_profiles(const char *directory)
{
	struct dirent **entries;
	int count = scandir(directory, &entries, is_declaration, compare_names);

	if (count < 0) {
		(void)fprintf(stderr, "enter: %s: %s\n", directory, strerror(errno));
		return EXIT_SETUP;
	}
	for (int i = 0; i < count; i++) {
		_cleanup_free_ char *path = NULL;
		struct profile profile;

		if (asprintf(&path, "%s/%s", directory, entries[i]->d_name) >= 0 && profile_load(path, &profile) == 0) {
			printf("%-22.*s %s\n", (int)strlen(entries[i]->d_name) - 5, entries[i]->d_name, profile.about);
			profile_clear(&profile);
		}
		free(entries[i]);
	}
	free(entries);
	return 0;
}

static int send_fd(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	char byte = 0;
	struct iovec data = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

static int receive_fd(int socket)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec data = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fd;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || message.msg_controllen < CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

/* In the supervisor and in the waiting process a terminal's signals are the command's business. */
static void signals_for_waiting(bool waiting)
{
	static const int numbers[] = {SIGINT, SIGQUIT};
	sigset_t blocked;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)signal(numbers[i], waiting ? SIG_IGN : SIG_DFL);
	(void)sigemptyset(&blocked);
	(void)sigaddset(&blocked, SIGTERM);
	(void)sigaddset(&blocked, SIGHUP);
	(void)sigaddset(&blocked, SIGCHLD);
	(void)sigprocmask(waiting ? SIG_BLOCK : SIG_UNBLOCK, &blocked, NULL);
}

static int watch_signals(void)
{
	sigset_t watched;

	(void)sigemptyset(&watched);
	(void)sigaddset(&watched, SIGTERM);
	(void)sigaddset(&watched, SIGHUP);
	(void)sigaddset(&watched, SIGCHLD);
	return signalfd(-1, &watched, SFD_CLOEXEC);
}

_Noreturn static void run_command(const struct options *options, const struct profile *profile, int socket)
{
	const struct space space = {profile, options->files, options->device, options->cgroup2};
	_cleanup_free_ char *path = NULL;
	int listener;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	signals_for_waiting(false);
	if (space_enter(&space) < 0)
		_exit(EXIT_SETUP);
	if (profile->wsl_mounts &&
	    asprintf(&path, "%s:/usr/lib/wsl/lib", getenv("PATH") ?: "/usr/sbin:/usr/bin:/sbin:/bin") > 0)
		(void)setenv("PATH", path, 1);

	listener = filter_install(profile->dxg && profile->adapter_count == 0);
	if (listener < 0 || send_fd(socket, listener) < 0) {
		(void)fprintf(stderr, "enter: seccomp: %s\n", strerror(listener < 0 ? -listener : errno));
		_exit(EXIT_SETUP);
	}
	(void)execvp(options->command[0], options->command);
	(void)fprintf(stderr, "enter: %s: %s\n", options->command[0], strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

static void kill_tree(pid_t pid)
{
	char path[64];
	_cleanup_fclose_ FILE *children = NULL;
	int child;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	children = fopen(path, "re");
	while (children && fscanf(children, "%d", &child) == 1) {
		(void)kill(child, SIGKILL);
		kill_tree(child);
	}
}

/* Orphans of what dies become our children (PR_SET_CHILD_SUBREAPER), until none is left. */
static void kill_descendants(void)
{
	const struct timespec moment = {.tv_nsec = 500000};

	for (;;) {
		pid_t pid;

		kill_tree(getpid());
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0)
			return;
		(void)nanosleep(&moment, NULL);
	}
}

struct supervisor {
	const struct options *options;
	pid_t command, parent;
	int report; /* where the command's status goes */
	bool command_ended;
};

/* Return: whether there is still something to supervise. */
static bool reap(struct supervisor *supervisor)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != supervisor->command)
			continue;
		supervisor->command_ended = true;
		if (!supervisor->options->keep)
			kill_descendants();
		(void)!write(supervisor->report, &status, sizeof(status));
		(void)close(supervisor->report);
		if (!supervisor->options->keep)
			return false;
	}
	return pid == 0;
}

static bool handle_signal(struct supervisor *supervisor, int signals)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return true;
	if (info.ssi_signo == SIGCHLD)
		return reap(supervisor);
	if (getppid() != supervisor->parent && !(supervisor->options->keep && supervisor->command_ended)) {
		kill_descendants();
		return false;
	}
	if (!supervisor->command_ended)
		(void)kill(supervisor->command, (int)info.ssi_signo);
	return true;
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void supervise(struct supervisor *supervisor, struct dxgd *dxgd, int listener)
{
	_cleanup_close_ int signals = watch_signals();
	struct pollfd events[] = {{.fd = listener, .events = POLLIN}, {.fd = signals, .events = POLLIN}};

	raise_file_limit();
	for (;;) {
		if (poll(events, 2, -1) < 0)
			continue;
		if (events[0].revents & POLLIN)
			dxgd_answer(dxgd);
		else if (events[0].revents)
			events[0].fd = -1; /* the last user of the filter is gone */
		if ((events[1].revents & POLLIN) && !handle_signal(supervisor, signals))
			return;
	}
}

_Noreturn static void run_supervisor(const struct options *options, const struct profile *profile, pid_t parent,
				     int report)
{
	struct supervisor supervisor = {.options = options, .parent = parent, .report = report};
	int sockets[2], listener;
	struct dxgd *dxgd;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		_exit(EXIT_SETUP);
	supervisor.command = fork();
	if (supervisor.command == 0)
		run_command(options, profile, sockets[1]);
	(void)close(sockets[1]);
	listener = supervisor.command < 0 ? -1 : receive_fd(sockets[0]);
	dxgd = listener < 0 ? NULL : dxgd_new(profile, listener, options->device);
	if (!dxgd) {
		kill_descendants();
		_exit(EXIT_SETUP);
	}
	supervise(&supervisor, dxgd, listener);
	_exit(0);
}

static int wait_for(pid_t supervisor, int report)
{
	_cleanup_close_ int signals = watch_signals();
	struct pollfd events[] = {{.fd = report, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	struct signalfd_siginfo info;
	int status;

	while (poll(events, 2, -1) < 0 || !events[0].revents)
		if ((events[1].revents & POLLIN) && read(signals, &info, sizeof(info)) == sizeof(info) &&
		    info.ssi_signo != SIGCHLD)
			(void)kill(supervisor, (int)info.ssi_signo);
	if (read(report, &status, sizeof(status)) != sizeof(status))
		return EXIT_SETUP;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(const struct options *options, const struct profile *profile)
{
	pid_t self = getpid(), supervisor;
	int report[2], result;

	if (pipe2(report, O_CLOEXEC) < 0)
		return EXIT_SETUP;
	signals_for_waiting(true);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	supervisor = fork();
	if (supervisor == 0) {
		(void)close(report[0]);
		run_supervisor(options, profile, self, report[1]);
	}
	(void)close(report[1]);
	result = supervisor < 0 ? EXIT_SETUP : wait_for(supervisor, report[0]);
	if (!options->keep || result == EXIT_SETUP) {
		(void)waitpid(supervisor, NULL, 0);
		kill_descendants();
	}
	return result;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_table,
		parse_option,
		"PROFILE -- COMMAND…",
		"Runs a command on a simulated host. Options come before PROFILE.\v"
		"The exit status is the command's; 125 if the host could not be set up.",
		NULL,
		NULL,
		NULL,
	};
	struct options options = {
		.profiles = "test/hosts/profiles", .files = "build/test/hosts/files", .command = (char *[]){NULL}};
	_cleanup_free_ char *path = NULL;
	struct profile profile;
	int result;

	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &options))
		return EXIT_SETUP;
	if (options.list)
		return list_profiles(options.profiles);
	if (options.command[0] && strcmp(options.command[0], "--") == 0)
		options.command++;
	if (!options.profile || !options.command[0]) {
		(void)fprintf(stderr, "usage: enter [OPTION…] PROFILE -- COMMAND…\n");
		return EXIT_SETUP;
	}
	if (geteuid() != 0) {
		(void)fprintf(stderr, "enter: this needs root, for mounts and for a system call filter\n");
		return EXIT_SETUP;
	}
	if (!options.device)
		options.device = space_default_device();
	if (asprintf(&path, "%s/%s.json", options.profiles, options.profile) < 0 || profile_load(path, &profile) < 0)
		return EXIT_SETUP;
	result = run(&options, &profile);
	profile_clear(&profile);
	return result;
}
