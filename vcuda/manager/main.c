/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-vcudad: vCUDA's manager. It makes a socket for each container that GPUs are granted to, and starts a server,
 * ctr-gpu-vcuda, for each process that connects there. It takes them away when the container ends.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "base/print.h"
#include "base/str.h"
#include "model/version.h"
#include "system/own_programs.h"
#include "vcuda/manager/manager.h"
#include "vcuda/protocol/control.h"
#include "vcuda/protocol/pidref.h"
#include "vcuda/users/users.h"

VERSION_NOTE();

#define HOME PATH_RUN

enum {
	EXIT_STATUS_USAGE = 2,
	GIVEN_SOCKET = 3, /* sd_listen_fds(3) */
	DESCRIPTORS = 4096,
	BACKLOG = 64,
	AGAIN_MS = 50,
	ANOTHER_TRIES = 40,
	STATE_FILE_AGAIN_MS = 1000,
	USERS_AGAIN_MS = 1000,
	CHANGES_AGAIN_MS = 100, /* for a container may change its own limits all the time */
	CHANGES_UNWATCHED_MS = 5000,
	WAITS_MAX = 8 + METRICS_PAGE_PEERS + MANAGER_PEERS_MAX + 3 * MANAGER_TENANTS_MAX + 3 * MANAGER_WORKERS_MAX +
		    MANAGER_TENANTS_MAX + MANAGER_REMNANTS_MAX,
};

static volatile sig_atomic_t ended;

/* ---- the beginning ---- */

static void vcudad_end(int number)
{
	(void)number;
	ended = 1;
}

static bool vcudad_was_given_socket(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");

	return pid && count && atoi(pid) == (int)getpid() && atoi(count) == 1;
}

static int vcudad_make_folders(const char *directory)
{
	if ((mkdir(HOME, 0700) < 0 && errno != EEXIST) || (mkdir(directory, 0700) < 0 && errno != EEXIST) ||
	    (mkdir(PATH_VCUDA_USERS, 0711) < 0 && errno != EEXIST))
		return -errno;
	return chmod(directory, 0700) < 0 || chmod(PATH_VCUDA_USERS, 0711) < 0 ? -errno : 0;
}

/* What a manager that was killed had just forked has its socket, too, until it executes something. */
static bool vcudad_is_another(void)
{
	const struct timespec moment = {.tv_nsec = AGAIN_MS * 1000000L};

	for (int i = 0; i < ANOTHER_TRIES; i++) {
		_cleanup_close_ int other = -1;

		if (control_open(&other) < 0)
			return false;
		(void)nanosleep(&moment, NULL);
	}
	return true;
}

/* Another manager that answers there keeps it. */
static int vcudad_listen(int *ret)
{
	const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = CONTROL_SOCKET};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (vcudad_is_another())
		return -EADDRINUSE;
	(void)unlink(CONTROL_SOCKET);
	(void)umask(0177);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	(void)umask(022);
	*ret = steal_fd(&fd);
	return 0;
}

static int vcudad_open_control(int *ret)
{
	if (!vcudad_was_given_socket())
		return vcudad_listen(ret);
	*ret = GIVEN_SOCKET;
	return fcntl(GIVEN_SOCKET, F_SETFD, FD_CLOEXEC) < 0 || fcntl(GIVEN_SOCKET, F_SETFL, O_NONBLOCK) < 0 ? -errno
													    : 0;
}

static void vcudad_prepare(void)
{
	const struct rlimit descriptors = {DESCRIPTORS, DESCRIPTORS}, none = {0, 0};
	const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	struct sigaction end = {.sa_handler = vcudad_end};

	(void)setrlimit(RLIMIT_NOFILE, &descriptors);
	(void)setrlimit(RLIMIT_CORE, &none);
	/* Of servers: memory that the GPU copies from and to. */
	(void)setrlimit(RLIMIT_MEMLOCK, &all);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	/* Whoever opens a file of a lease (remnant.c) between two calls. */
	(void)signal(SIGIO, SIG_IGN);
	(void)sigaction(SIGTERM, &end, NULL);
	(void)sigaction(SIGINT, &end, NULL);
	(void)umask(022);
	(void)!chdir("/");
}

/* Beside this program, or where both are installed. */
static char *vcudad_find_program(const char *name)
{
	char *path = own_programs_beside(name);

	if (path && access(path, X_OK) == 0)
		return path;
	free(path);
	return str_format(&path, CTR_GPU_LIBEXECDIR "/%s", name) < 0 ? NULL : path;
}

/* ---- the loop ---- */

struct loop {
	struct manager manager;
	struct control_client *peers;
	size_t peer_count;
	int control;
	struct pollfd waits[WAITS_MAX];
	void *owners[WAITS_MAX]; /* beside each */
	size_t wait_count;
	int64_t now, changes_at; /* when changes of containers' limits are followed again */
	int64_t unwatched_at;    /* and when these are looked at that are not watched */
	int timeout_ms;          /* -1: none */
	/* Who answers users. */
	pid_t users;      /* 0: nobody */
	int users_pidfd;  /* -1: none */
	int64_t users_at; /* when to start it, if it is wanted */
};

static void vcudad_wait_for(struct loop *loop, int fd, short events, void *owner)
{
	if (fd < 0 || loop->wait_count == WAITS_MAX)
		return;
	loop->waits[loop->wait_count] = (struct pollfd){.fd = fd, .events = events};
	loop->owners[loop->wait_count++] = owner;
}

static void vcudad_wake_at(struct loop *loop, int64_t when)
{
	const int64_t wait = when - loop->now;
	const int left = wait < 0 ? 0 : wait < INT_MAX ? (int)wait : INT_MAX;

	if (when == INT64_MAX)
		return;
	if (loop->timeout_ms < 0 || left < loop->timeout_ms)
		loop->timeout_ms = left;
}

static void vcudad_gather_tenants(struct loop *loop)
{
	for (struct tenant *tenant = loop->manager.tenants; tenant; tenant = tenant->next) {
		int wait_ms;

		/* Nobody else wakes us for it. */
		if (tenant_is_over(&loop->manager, tenant))
			vcudad_wake_at(loop, loop->now);
		vcudad_wait_for(loop, tenant->suspension.program_pidfd, POLLIN, tenant);
		vcudad_wake_at(loop, suspension_next(&loop->manager, tenant, loop->now));
		if (tenant->ending)
			continue;
		vcudad_wait_for(loop, tenant->pidfd, POLLIN, tenant);
		if (!suspension_hears(&loop->manager, tenant))
			continue;
		if (tenant_may_connect(tenant, loop->now, &wait_ms))
			vcudad_wait_for(loop, tenant->listener, POLLIN, tenant);
		else
			vcudad_wake_at(loop, loop->now + wait_ms);
		if (tenant->untold > 0)
			vcudad_wake_at(loop, loop->now + 1000);
	}
}

static void vcudad_gather_worker(struct loop *loop, struct worker *worker)
{
	if (!server_process_is_lent_to(worker)) {
		vcudad_wait_for(loop, worker->pidfd, POLLIN, worker);
		vcudad_wait_for(loop, worker->events, POLLIN, worker);
	} else if (worker->lender_pidfd >= 0) {
		vcudad_wait_for(loop, worker->lender_pidfd, POLLIN, worker);
	} else {
		vcudad_wake_at(loop, loop->now + AGAIN_MS);
	}
}

static void vcudad_gather_workers(struct loop *loop)
{
	for (struct worker *worker = loop->manager.workers; worker; worker = worker->next) {
		vcudad_gather_worker(loop, worker);
		if (worker->kill_at)
			vcudad_wake_at(loop, worker->kill_at);
		else
			vcudad_wait_for(loop, worker->client, POLLIN, worker);
	}
}

/* One whose client has ended is freed at once. */
static void vcudad_gather_remnants(struct loop *loop)
{
	for (struct remnant *remnant = loop->manager.remnants; remnant; remnant = remnant->next)
		vcudad_wait_for(loop, remnant->client, POLLIN, remnant);
	vcudad_wake_at(loop, remnant_next(&loop->manager, loop->now));
}

static void vcudad_gather_keeper(struct loop *loop)
{
	int64_t next;

	vcudad_wait_for(loop, keeper_wait_for(&loop->manager, loop->now, &next), POLLIN, &loop->manager.keeper);
	vcudad_wake_at(loop, next);
}

static void vcudad_gather_changes(struct loop *loop)
{
	if (loop->changes_at <= loop->now)
		vcudad_wait_for(loop, loop->manager.watch, POLLIN, &loop->manager);
	else
		vcudad_wake_at(loop, loop->changes_at);
	if (loop->manager.unwatched)
		vcudad_wake_at(loop, loop->unwatched_at);
}

static void vcudad_gather_metrics(struct loop *loop)
{
	const struct metrics_page *metrics = &loop->manager.metrics;

	vcudad_wait_for(loop, metrics->listener, POLLIN, &loop->manager.metrics);
	for (size_t i = 0; i < metrics->peer_count; i++) {
		vcudad_wait_for(loop, metrics->peers[i].fd, metrics_page_events(&metrics->peers[i]),
				&loop->manager.metrics);
		vcudad_wake_at(loop, metrics->peers[i].deadline);
	}
}

/* ---- users ---- */

static void vcudad_start_users(struct loop *loop)
{
	int r = users_start(&loop->users);

	loop->users_at = INT64_MAX;
	if (r == 0 && loop->users > 0)
		r = pidref_open(loop->users, 0, &loop->users_pidfd, NULL);
	if (r == 0)
		return;
	/* It would go on, and its end would not be seen. */
	if (loop->users > 0) {
		(void)kill(loop->users, SIGKILL);
		(void)waitpid(loop->users, NULL, 0);
		loop->users = 0;
	}
	audit_write("users-not-answered", NULL, json_pack("{s:s}", "error", strerror(-r)));
	loop->users_at = manager_now() + USERS_AGAIN_MS;
}

static void vcudad_look_at_users(struct loop *loop, bool over)
{
	int wait_status;

	if (over) {
		(void)waitpid(loop->users, &wait_status, 0);
		cleanup_closep(&loop->users_pidfd);
		loop->users = 0;
		loop->users_at = manager_now() + USERS_AGAIN_MS;
		audit_write("users-not-answered", NULL, json_pack("{s:s}", "error", "the process ended"));
	}
	if (loop->users_at <= manager_now())
		vcudad_start_users(loop);
}

static void vcudad_gather(struct loop *loop)
{
	loop->wait_count = loop->peer_count = 0;
	loop->timeout_ms = -1;
	loop->now = manager_now();
	for (struct control_client *peer = loop->peers; peer; peer = peer->next) {
		loop->peer_count++;
		vcudad_wait_for(loop, peer->fd, control_client_events(peer), peer);
		vcudad_wake_at(loop, peer->deadline);
	}
	if (loop->peer_count < MANAGER_PEERS_MAX)
		vcudad_wait_for(loop, loop->control, POLLIN, NULL);
	if (loop->manager.changed)
		vcudad_wake_at(loop, loop->now + STATE_FILE_AGAIN_MS);
	if (loop->manager.has_processors)
		vcudad_gather_changes(loop);
	if (loop->manager.decider.pid)
		vcudad_wait_for(loop, loop->manager.decider.fd, POLLIN, &loop->manager.decider);
	vcudad_wake_at(loop, decider_next(&loop->manager));
	if (loop->manager.watcher.pid)
		vcudad_wait_for(loop, loop->manager.watcher.fd, POLLIN, &loop->manager.watcher);
	vcudad_wake_at(loop, gpu_watch_next(&loop->manager));
	vcudad_wake_at(loop, gpu_trouble_next(&loop->manager));
	vcudad_gather_metrics(loop);
	vcudad_wait_for(loop, loop->users_pidfd, POLLIN, &loop->users);
	vcudad_wake_at(loop, loop->users_at);
	vcudad_wake_at(loop, drain_next(&loop->manager, manager_now()));
	vcudad_wake_at(loop, balance_next(&loop->manager));
	vcudad_gather_tenants(loop);
	vcudad_gather_workers(loop);
	vcudad_gather_remnants(loop);
	vcudad_gather_keeper(loop);
}

static bool vcudad_is_ready(const struct loop *loop, const void *owner, int fd)
{
	for (size_t i = 0; fd >= 0 && i < loop->wait_count; i++)
		if (loop->owners[i] == owner && loop->waits[i].fd == fd)
			return loop->waits[i].revents != 0;
	return false;
}

static void vcudad_serve_worker(struct loop *loop, struct worker *worker)
{
	if (vcudad_is_ready(loop, worker, worker->events))
		server_process_receive_reply(&loop->manager, worker);
	if (vcudad_is_ready(loop, worker, worker->pidfd) && !server_process_is_lent_to(worker)) {
		server_process_remove(&loop->manager, worker);
		return;
	}
	if (vcudad_is_ready(loop, worker, worker->client) && !worker->kill_at)
		worker->kill_at = manager_now() + MANAGER_KILL_MS;
	if (worker->kill_at && worker->kill_at <= manager_now()) {
		audit_write("kill", worker->tenant, NULL);
		worker->stopped = true;
		worker->kill_at = manager_now() + MANAGER_KILL_MS;
		pidref_signal(worker->pidfd, SIGKILL);
	}
}

static void vcudad_serve_changes(struct loop *loop)
{
	if (!vcudad_is_ready(loop, &loop->manager, loop->manager.watch) &&
	    (!loop->manager.unwatched || manager_now() < loop->unwatched_at))
		return;
	cgroup_follow_changes(&loop->manager);
	loop->changes_at = manager_now() + CHANGES_AGAIN_MS;
	loop->unwatched_at = manager_now() + CHANGES_UNWATCHED_MS;
}

/* Servers first: what one of them had is given back before another asks. */
static void vcudad_serve_containers(struct loop *loop)
{
	if (loop->manager.has_processors)
		vcudad_serve_changes(loop);
	for (struct worker *worker = loop->manager.workers, *next; worker; worker = next) {
		next = worker->next;
		vcudad_serve_worker(loop, worker);
	}
	if (remnant_look(&loop->manager, manager_now()))
		pinned_memory_host_memory(&loop->manager);
	for (struct tenant *tenant = loop->manager.tenants, *next; tenant; tenant = next) {
		next = tenant->next;
		tenant_tell_denied(&loop->manager, tenant, manager_now());
		if (!tenant->ending && vcudad_is_ready(loop, tenant, tenant->pidfd))
			tenant_end(&loop->manager, tenant, "container ended");
		else if (vcudad_is_ready(loop, tenant, tenant->listener) && suspension_accepts(tenant))
			tenant_accept(&loop->manager, tenant);
		else if (vcudad_is_ready(loop, tenant, tenant->listener))
			(void)suspension_resume(&loop->manager, tenant);
		suspension_look(&loop->manager, tenant, manager_now());
		if (tenant_is_over(&loop->manager, tenant)) {
			decider_drop(&loop->manager, tenant);
			tenant_remove(&loop->manager, tenant);
		}
	}
}

static void vcudad_serve_peers(struct loop *loop)
{
	for (struct control_client *peer = loop->peers, *next; peer; peer = next) {
		bool ready = vcudad_is_ready(loop, peer, peer->fd);

		next = peer->next;
		if ((ready && !control_client_serve(&loop->manager, peer)) || peer->deadline <= manager_now())
			control_client_close(&loop->manager, &loop->peers, peer);
	}
	if (vcudad_is_ready(loop, NULL, loop->control))
		control_client_accept(&loop->peers, loop->control);
}

static short vcudad_metrics_happened(const void *loop, int fd)
{
	return vcudad_is_ready(loop, &((const struct loop *)loop)->manager.metrics, fd);
}

/* Without it, the next manager ends servers that it does not know: it is tried again until it is there. */
static void vcudad_write_state_file(struct manager *manager)
{
	static bool failed;
	int r = manager->changed ? state_file_write(manager) : 0;

	if (!manager->changed)
		return;
	if (r < 0 && !failed)
		audit_write("ledger-not-written", NULL, json_pack("{s:s}", "error", strerror(-r)));
	manager->changed = failed = r < 0;
}

/* A signal that ends it and comes just before it would wait ends that, too. Return: as poll(2). */
static int vcudad_wait(struct loop *loop)
{
	const struct timespec time = {loop->timeout_ms / 1000, loop->timeout_ms % 1000 * 1000000L};
	sigset_t ends, before;
	int r;

	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigaddset(&ends, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &ends, &before);
	r = ended ? -1 : ppoll(loop->waits, loop->wait_count, loop->timeout_ms < 0 ? NULL : &time, &before);
	/* Not earlier: a signal that ppoll() finds beside something else it leaves blocked. */
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

static void vcudad_run(struct loop *loop)
{
	while (!ended) {
		vcudad_gather(loop);
		if (vcudad_wait(loop) < 0)
			continue;
		vcudad_serve_containers(loop);
		vcudad_serve_peers(loop);
		metrics_page_serve(&loop->manager.metrics, vcudad_metrics_happened, loop, manager_now());
		usage_metrics_publish(&loop->manager);
		gpu_trouble_look(&loop->manager, manager_now());
		drain_look(&loop->manager, manager_now());
		balance_look(&loop->manager, manager_now());
		decider_look(&loop->manager, vcudad_is_ready(loop, &loop->manager.decider, loop->manager.decider.fd));
		gpu_watch_look(&loop->manager, vcudad_is_ready(loop, &loop->manager.watcher, loop->manager.watcher.fd));
		keeper_look(&loop->manager);
		vcudad_look_at_users(loop, vcudad_is_ready(loop, &loop->users, loop->users_pidfd));
		vcudad_write_state_file(&loop->manager);
	}
}

static int vcudad_log_error(const char *what, int r)
{
	const char *next = r == -EADDRINUSE ? "Another manager answers there: systemctl status ctr-gpu-vcudad"
			   : geteuid() != 0 ? "Start it as root: systemctl start ctr-gpu-vcudad"
					    : NULL;

	(void)fprintf(stderr, "ctr-gpu-vcudad: %s: %s\n", what, strerror(-r));
	if (next)
		(void)fprintf(stderr, "    %s\n", next);
	return EXIT_FAILURE;
}

static int vcudad_print_text(const char *argument)
{
	bool version = streq(argument, "--version");

	if (!version && !streq(argument, "--help")) {
		print_safe(stderr, "ctr-gpu-vcudad: unknown argument %s; see ctr-gpu-vcudad(8)\n", argument);
		return EXIT_STATUS_USAGE;
	}
	(void)printf(version ? "ctr-gpu-vcudad %s\n"
			     : "Usage: ctr-gpu-vcudad [--metrics=PATH]\nvCUDA's manager %s, which init systems start; "
			       "see ctr-gpu-vcudad(8).\n",
		     CTR_GPU_VERSION);
	return print_finish(stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* @ret: where metrics are served; NULL: nowhere. Return: -1: go on; an exit status. */
static int vcudad_read_arguments(int argc, char **argv, const char **ret)
{
	static const char option[] = "--metrics=";

	for (int i = 1; i < argc; i++) {
		if (!str_has_prefix(argv[i], option))
			return vcudad_print_text(argv[i]);
		*ret = argv[i] + strlen(option);
		if (**ret != '/') {
			print_safe(stderr,
				   "ctr-gpu-vcudad: %s: it takes an absolute path\n"
				   "    See ctr-gpu-vcudad(8).\n",
				   argv[i]);
			return EXIT_STATUS_USAGE;
		}
	}
	return -1;
}

/* For root alone. */
static int vcudad_open_metrics(struct manager *manager, const char *where)
{
	int r;

	if (!where)
		return 0;
	(void)umask(0177);
	r = metrics_page_open(where, &manager->metrics);
	(void)umask(022);
	if (r == 0)
		manager->measured_until = INT64_MAX;
	return r;
}

int main(int argc, char **argv)
{
	static struct loop loop = {.manager = {.directory = HOME "/vcuda",
					       .users = PATH_VCUDA_USERS,
					       .ledger = HOME "/vcudad.json",
					       .groups = -1,
					       .metrics = {.listener = -1}},
				   .users_pidfd = -1};
	const char *metrics = NULL;
	int r = vcudad_read_arguments(argc, argv, &metrics);

	if (r >= 0)
		return r;
	vcudad_prepare();
	loop.manager.server = vcudad_find_program("ctr-gpu-vcuda");
	loop.manager.checkpoint = vcudad_find_program("ctr-gpu-vcuda-checkpoint");
	loop.manager.decider.path = vcudad_find_program("ctr-gpu-vcuda-turns");
	loop.manager.host_memory = pinned_memory_measure_host();
	r = loop.manager.server && loop.manager.checkpoint && loop.manager.decider.path
		    ? vcudad_make_folders(loop.manager.directory)
		    : -ENOMEM;
	if (r < 0)
		return vcudad_log_error("cannot make " HOME "/vcuda", r);
	r = vcudad_open_control(&loop.control);
	if (r < 0)
		return vcudad_log_error("cannot listen on " CONTROL_SOCKET, r);
	r = vcudad_open_metrics(&loop.manager, metrics);
	if (r < 0)
		return vcudad_log_error(metrics, r);
	cgroup_find(&loop.manager);
	r = state_file_read(&loop.manager);
	if (r < 0)
		audit_write("ledger-not-read", NULL, json_pack("{s:s}", "error", strerror(-r)));
	server_process_sweep(&loop.manager);
	tenant_sweep(&loop.manager);
	cgroup_sweep(&loop.manager);
	audit_write("start", NULL, json_pack("{s:s}", "version", CTR_GPU_VERSION));
	if (loop.manager.groups < 0)
		audit_write("unlimited", NULL, json_pack("{s:s}", "why", loop.manager.unlimited));
	else if (!loop.manager.has_processors)
		audit_write("unlimited", NULL,
			    json_pack("{s:s}", "why", "the manager's control group has no controller for processors"));
	vcudad_run(&loop);
	keeper_finish(&loop.manager);
	audit_write("stop", NULL, NULL);
	return EXIT_SUCCESS;
}
