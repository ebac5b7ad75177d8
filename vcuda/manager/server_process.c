/* SPDX-License-Identifier: Apache-2.0 */

/* One server as the manager sees it: its process, what it reports, and what it gets of other servers'. */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "process/privilege.h"
#include "vcuda/manager/page.h"
#include "vcuda/protocol/descriptors.h"
#include "vcuda/protocol/pidref.h"
#include "vcuda/protocol/wire.h"

enum {
	REPORTED_MAX = 256,      /* datagrams of one server that are read at once, */
	REPORTED_EACH_S = 2,     /* and so many more each second */
	HEARD_MAX = 32,          /* of its datagrams before others have their turn */
	UNHEARD_MAX = 1024,      /* of one that has ended: more than its socket holds */
	WANTED_MAX = 512,        /* descriptors of others that one server gets at once */
	WANTED_RATE = 64,        /* and in each second afterwards */
	ABOVE = 16,              /* no descriptor of the server's is as high */
	SPINNERS_LEAST = 2,      /* processors */
	SWEEP_MS = 1000,         /* a process that is killed has so long */
	PROCESSES_MAX = 4 << 20, /* as many as Linux can have */
};

enum {
	LENDER_GIVER, /* a lender's descriptors: a pidfd, and a socket */
	LENDER_TAKER,
	LENDER_FDS,
};

static void server_process_mark_slots(const struct manager *manager, const struct tenant *tenant,
				      bool ret_taken[static START_QUOTA_SLOTS])
{
	memset(ret_taken, 0, START_QUOTA_SLOTS * sizeof(*ret_taken));
	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->tenant == tenant)
			ret_taken[worker->slot] = true;
}

static int server_process_find_slot(const struct manager *manager, const struct tenant *tenant, unsigned *ret)
{
	bool taken[START_QUOTA_SLOTS];

	server_process_mark_slots(manager, tenant, taken);
	for (unsigned i = 0; i < START_QUOTA_SLOTS; i++)
		if (!taken[i]) {
			*ret = i;
			return 0;
		}
	return -EMFILE;
}

static void server_process_empty_slot(struct tenant *tenant, unsigned slot)
{
	for (unsigned gpu = 0; gpu < MANAGER_GPUS_MAX; gpu++)
		tenant->busy[gpu] += atomic_exchange(&tenant->quota->busy[gpu][slot], 0);
	for (unsigned way = 0; way < START_COPIES; way++)
		tenant->quota->copied[way][slot] = 0;
	share_forget_slot(&tenant->quota->shares, slot);
	__atomic_store_n((uint64_t *)&tenant->quota->used[slot], 0, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint64_t *)&tenant->quota->client[slot], 0, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint64_t *)&tenant->quota->locked[slot], 0, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint64_t *)&tenant->quota->rests[slot], 0, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint64_t *)&tenant->orders->places[slot], 0, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint32_t *)&tenant->orders->coming_set[slot], 0, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint32_t *)&tenant->orders->order[slot], 0, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint32_t *)&tenant->quota->obeyed[slot], 0, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint32_t *)&tenant->quota->wanted[slot], 0, __ATOMIC_SEQ_CST);
	for (unsigned gpu = 0; gpu < START_GPUS; gpu++)
		__atomic_store_n((uint32_t *)&tenant->quota->needs[gpu][slot], 0, __ATOMIC_SEQ_CST);
}

/* ---- the child ---- */

/* Of all that are its user. A hard limit that is lower already is not ours to raise. */
static int server_process_limit_threads(void)
{
	struct rlimit threads;

	if (getrlimit(RLIMIT_NPROC, &threads) < 0)
		return -errno;
	if (threads.rlim_max > MANAGER_THREADS)
		threads.rlim_max = MANAGER_THREADS;
	threads.rlim_cur = threads.rlim_max;
	return setrlimit(RLIMIT_NPROC, &threads) < 0 ? -errno : 0;
}

/* Nothing that it executes or loads is run as root. */
static int server_process_become_user(uid_t uid)
{
	if (server_process_limit_threads() < 0 || setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
	    setresuid(uid, uid, uid) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

_Static_assert(START_CLIENT + SERVER_PROGRAM_FDS < ABOVE, "the program's descriptor has a number of its own");

/*
 * Everything of the manager's is closed, and nothing of it is in the environment. What was taken over must not write to
 * the audit, so its standard error leads nowhere. The driver asks a daemon (MPS) whose sockets are in /tmp unless the
 * environment says otherwise: any user of the host could be that daemon, so they are looked for where nothing is. It
 * may write no file, so it looks for no cache of compiled code.
 */
static _Noreturn void server_process_execute(const struct server_program *what)
{
	char *const arguments[] = {(char *)(uintptr_t)what->name, NULL};
	char *const environment[] = {(char *)"CUDA_MPS_PIPE_DIRECTORY=/nonexistent", (char *)"CUDA_CACHE_DISABLE=1",
				     NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), high[SERVER_PROGRAM_FDS], program;
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setsid();
	/* Root's to do, and before descriptors have other numbers. */
	if (cgroup_enter(what->group) < 0)
		_exit(SERVER_PROGRAM_NOT_RUN);
	program = fcntl(what->program, F_DUPFD_CLOEXEC, ABOVE);
	for (int i = 0; i < what->fd_count; i++)
		high[i] = fcntl(what->fds[i] < 0 ? null : what->fds[i], F_DUPFD_CLOEXEC, ABOVE);
	for (int i = 0; i < START_CLIENT; i++)
		if (null < 0 || dup2(null, i) < 0)
			_exit(SERVER_PROGRAM_NOT_RUN);
	for (int i = 0; i < what->fd_count; i++)
		if (high[i] < 0 || dup2(high[i], START_CLIENT + i) < 0)
			_exit(SERVER_PROGRAM_NOT_RUN);
	/* Before Linux 5.11 no range of descriptors can be marked as to be closed by execve(2). */
	program = dup3(program, START_CLIENT + what->fd_count, O_CLOEXEC);
	closefrom(START_CLIENT + what->fd_count + 1);
	if (program < 0 || chdir("/") < 0 || server_process_become_user(what->uid) < 0)
		_exit(SERVER_PROGRAM_NOT_RUN);
	(void)execveat(program, "", arguments, environment, AT_EMPTY_PATH);
	_exit(SERVER_PROGRAM_NOT_RUN);
}

int server_process_start_beside(const char *path, const char *name, uid_t uid, int number, pid_t *ret_pid, int *ret_fd)
{
	_cleanup_close_ int program = open(path, O_PATH | O_CLOEXEC), ours = -1, theirs = -1;
	struct server_program what = {.name = name, .fd_count = number - START_CLIENT + 1, .group = -1, .uid = uid};
	int pair[2];
	pid_t pid;

	if (program < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	what.program = program;
	for (int i = 0; i < what.fd_count; i++)
		what.fds[i] = START_CLIENT + i == number ? theirs : -1;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		server_process_execute(&what);
	*ret_pid = pid;
	*ret_fd = steal_fd(&ours);
	return 0;
}

static _Noreturn void server_process_become(int program, int client, const struct worker *worker, int events)
{
	const struct tenant *tenant = worker->tenant;

	server_process_execute(&(const struct server_program){
		.program = program,
		.name = "ctr-gpu-vcuda",
		.fds = {client, events, tenant->quota_fd, tenant->orders_fd, tenant->turns_fd, worker->shared},
		.fd_count = SERVER_PROGRAM_FDS,
		.group = tenant->group,
		.uid = tenant->uid,
	});
}

/* The administrator's switch, should a driver need files that its server does not know. */
uint32_t server_process_path_flags(void)
{
	const char *paths = getenv("CTR_GPU_VCUDA_PATHS");

	return paths && streq(paths, "all") ? START_NO_PATHS : 0U;
}

/* Who has little of the host's processors loses by spinning: the kernel stops it for what is left of the time. */
static uint32_t server_process_flags(const struct tenant *tenant)
{
	const bool little = tenant->processor.time && cgroup_count_cpus(tenant->processor) < (double)SPINNERS_LEAST;

	return server_process_path_flags() | (little ? START_NO_SPIN : 0U);
}

static int server_process_send_start(const struct manager *manager, const struct tenant *tenant, unsigned slot,
				     int events)
{
	struct start start = {
		.magic = START_MAGIC,
		.size = sizeof(start),
		.flags = server_process_flags(tenant),
		.uid = tenant->uid,
		.gid = tenant->uid,
		.quota_slot = slot,
	};

	start.host_memory = pinned_memory_measure(tenant);
	if (tenant->library && strlen(tenant->library) < sizeof(start.library))
		memcpy(start.library, tenant->library, strlen(tenant->library) + 1);
	gpu_assign_list(manager, tenant, &start);
	__atomic_store_n((uint64_t *)&tenant->orders->places[slot], tenant->places, __ATOMIC_SEQ_CST);
	return send(events, &start, sizeof(start), MSG_NOSIGNAL) == sizeof(start) ? 0 : -EIO;
}

/* Who is at the other end, so that a server that does not notice its client's end is ended. */
static void server_process_find_client(int client, struct worker *ret)
{
	struct ucred peer;

	if (pidref_open_peer(client, &ret->client, &ret->client_started, &peer) == 0)
		ret->client_pid = peer.pid;
}

/* ---- its life ---- */

/* Takes the descriptors. */
static int server_process_add(struct manager *manager, const struct worker *template)
{
	struct worker *worker = malloc(sizeof(*worker));

	if (!worker)
		return -ENOMEM;
	*worker = *template;
	worker->next = manager->workers;
	manager->workers = worker;
	manager->worker_count++;
	worker->tenant->clients++;
	manager->changed = true;
	manager->channels_changed |= worker->events >= 0;
	return 0;
}

int server_process_start(struct manager *manager, struct tenant *tenant, int client)
{
	struct worker worker = {.tenant = tenant, .events = -1, .pidfd = -1, .client = -1};
	_cleanup_close_ int program = open(manager->server, O_PATH | O_CLOEXEC), shared = remnant_make();
	_cleanup_close_ int ours = -1, theirs = -1, watched = -1, pidfd = -1;
	int pair[2], r;

	if (program < 0 || shared < 0)
		return program < 0 ? -errno : shared;
	worker.shared = shared;
	/* It may have been changed since the last one was started. */
	r = cgroup_limit_processors(manager, tenant);
	if (r == 0)
		r = server_process_find_slot(manager, tenant, &worker.slot);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	fd_closer_refuse(ours);
	/* Of the server's end alone: it waits for its datagrams. */
	(void)fcntl(theirs, F_SETFL, 0);
	r = server_process_send_start(manager, tenant, worker.slot, ours);
	if (r < 0)
		return r;
	server_process_find_client(client, &worker);
	watched = worker.client;
	worker.pid = fork();
	if (worker.pid < 0)
		return -errno;
	if (worker.pid == 0)
		server_process_become(program, client, &worker, theirs);
	/* What one that has ended by now has told is read as that of others. */
	r = pidref_open_child(worker.pid, &pidfd, &worker.started);
	worker.pidfd = pidfd;
	worker.events = ours;
	if (r == 0)
		r = server_process_add(manager, &worker);
	if (r < 0) {
		(void)kill(worker.pid, SIGKILL);
		(void)waitpid(worker.pid, NULL, 0);
		return r;
	}
	(void)steal_fd(&pidfd);
	(void)steal_fd(&watched);
	(void)steal_fd(&ours);
	(void)steal_fd(&shared);
	return 0;
}

/* @number: of the keeper's. What it tells is read on, also what it has told while there was no manager. */
static int server_process_take_channel(const struct manager *manager, int number)
{
	_cleanup_close_ int fd = number > 0 && manager->keeper.pid
					 ? (int)syscall(SYS_pidfd_getfd, manager->keeper.pidfd, number, 0)
					 : -1;
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? steal_fd(&fd) : -1;
}

int server_process_reattach(struct manager *manager, struct tenant *tenant, const struct worker *known)
{
	_cleanup_close_ int pidfd = -1, client = -1, shared = -1, events = -1;
	struct worker worker = *known;
	int r;

	if (known->slot >= START_QUOTA_SLOTS || !known->started)
		return -EINVAL;
	r = pidref_open(known->pid, known->started, &pidfd, NULL);
	if (r < 0)
		return r;
	worker.tenant = tenant;
	worker.adopted = true;
	worker.events = events = server_process_take_channel(manager, known->events_kept);
	worker.pidfd = pidfd;
	/* One whose client has ended meanwhile may hang. */
	if (known->client_started && pidref_open(known->client_pid, known->client_started, &client, NULL) < 0)
		worker.kill_at = manager_now() + MANAGER_KILL_MS;
	worker.client = client;
	shared = page_take(known->pid, START_SHARED, WIRE_SHARED_BYTES, PAGE_OF_MANAGER);
	worker.shared = shared;
	r = server_process_add(manager, &worker);
	if (r < 0)
		return r;
	(void)steal_fd(&pidfd);
	(void)steal_fd(&client);
	(void)steal_fd(&shared);
	(void)steal_fd(&events);
	return 0;
}

static bool server_process_is_number(const char *name)
{
	return name[0] && !name[strspn(name, "0123456789")];
}

static bool server_process_is_known(const struct manager *manager, pid_t pid)
{
	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->pid == pid)
			return true;
	return false;
}

/* Such users are hardly anybody else's, and a server cannot become another program. */
static bool server_process_is_server(pid_t pid)
{
	struct stat st;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &st) == 0 && st.st_uid >= PRIVATE_UID_FIRST && st.st_uid < PRIVATE_UID_FIRST + PRIVATE_UIDS &&
	       pidref_is_ctr_gpu(pid);
}

/* It is held while it is looked at, so that no other is killed. Return: whether it is one. */
static bool server_process_kill_unknown(const struct manager *manager, pid_t pid, int *ret_pidfd)
{
	_cleanup_close_ int pidfd = -1;

	if (!server_process_is_server(pid) || server_process_is_known(manager, pid) ||
	    pidref_open(pid, 0, &pidfd, NULL) < 0 || !server_process_is_server(pid) ||
	    !pidref_is_of_this_namespace(pid))
		return false;
	pidref_signal(pidfd, SIGKILL);
	*ret_pidfd = steal_fd(&pidfd);
	return true;
}

/* All of them have the same time: while one ends, so do the others. */
static void server_process_wait_for_ends(int *pidfds, size_t count)
{
	const int64_t until = manager_now() + SWEEP_MS;

	for (size_t i = 0; i < count; i++) {
		const int64_t left = until - manager_now();

		(void)poll(&(struct pollfd){.fd = pidfds[i], .events = POLLIN}, 1, left > 0 ? (int)left : 0);
		cleanup_closep(&pidfds[i]);
	}
}

/* Of servers that have ended while no manager ran. */
static void server_process_empty_free_slots(const struct manager *manager, struct tenant *tenant)
{
	bool taken[START_QUOTA_SLOTS];

	server_process_mark_slots(manager, tenant, taken);
	for (unsigned i = 0; i < START_QUOTA_SLOTS; i++)
		if (!taken[i])
			server_process_empty_slot(tenant, i);
}

void server_process_sweep(const struct manager *manager)
{
	_cleanup_strv_ struct strv names = {0};
	int pidfds[MANAGER_WORKERS_MAX];
	json_int_t ended = 0;
	size_t count = 0;

	(void)fd_list_names(AT_FDCWD, "/proc", server_process_is_number, PROCESSES_MAX, &names);
	for (size_t i = 0; i < names.count; i++) {
		if (!server_process_kill_unknown(manager, (pid_t)atoi(names.items[i]), &pidfds[count]))
			continue;
		ended++;
		if (++count == ARRAY_SIZE(pidfds)) {
			server_process_wait_for_ends(pidfds, count);
			count = 0;
		}
	}
	server_process_wait_for_ends(pidfds, count);
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		server_process_empty_free_slots(manager, tenant);
	if (ended > 0)
		audit_write("sweep", NULL, json_pack("{s:I}", "servers", ended));
}

/* The keeper may have it, too, and a server that sends there is not to wait. */
static void server_process_stop_receiving(struct worker *worker)
{
	(void)shutdown(worker->events, SHUT_RDWR);
	fd_closer_close(&worker->events);
}

/* ---- what one server has for another ---- */

/* Memory, and what NVIDIA's driver makes of memory of a GPU: a descriptor of its control node. */
static bool server_process_is_memory(int fd)
{
	enum { NVIDIA_MAJOR = 195, NVIDIA_CONTROL = 255 };
	struct statx st;

	return fcntl(fd, F_GET_SEALS) >= 0 ||
	       (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 && S_ISCHR(st.stx_mode) &&
		st.stx_rdev_major == NVIDIA_MAJOR && st.stx_rdev_minor == NVIDIA_CONTROL);
}

/* It closes what it took at its end alone, after all else; there it may stay for as long as a file system likes. */
static _Noreturn void server_process_run_lender(int giver, int taker, const struct start_event *event)
{
	int fd;

	(void)setpgid(0, 0);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	giver = fcntl(giver, F_DUPFD_CLOEXEC, ABOVE);
	taker = fcntl(taker, F_DUPFD_CLOEXEC, ABOVE);
	if (dup2(giver, LENDER_GIVER) < 0 || dup2(taker, LENDER_TAKER) < 0)
		_exit(0);
	closefrom(LENDER_FDS);
	fd = (int)syscall(SYS_pidfd_getfd, LENDER_GIVER, (int)(uint32_t)event->number, 0);
	(void)descriptors_send(LENDER_TAKER, event, sizeof(*event), &fd, fd >= 0 && server_process_is_memory(fd),
			       MSG_DONTWAIT);
	_exit(0);
}

/*
 * A server has what it gives others at numbers where nothing of its driver's is. Return: a pidfd of the container's
 * server in that slot; -1.
 */
static int server_process_find_giver(const struct manager *manager, const struct tenant *tenant, uint64_t wanted)
{
	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->tenant == tenant && worker->slot == wanted >> 32 && (uint32_t)wanted >= SHARE_FD)
			return worker->pidfd;
	return -1;
}

/* Without a descriptor, where it gets none. @event: what it said */
static void server_process_lend(const struct manager *manager, struct worker *worker, const struct start_event *event)
{
	const int giver = server_process_find_giver(manager, worker->tenant, event->number);
	const pid_t pid = giver >= 0 ? fork() : -1;

	if (pid == 0)
		server_process_run_lender(giver, worker->events, event);
	if (pid < 0) {
		(void)descriptors_send(worker->events, event, sizeof(*event), NULL, 0, MSG_DONTWAIT);
		return;
	}
	/* Out of ours, whose children pidref.c waits for. */
	(void)setpgid(pid, 0);
	worker->lender = pid;
	worker->lender_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
}

bool server_process_is_lent_to(struct worker *worker)
{
	if (!worker->lender)
		return false;
	if (waitpid(worker->lender, NULL, WNOHANG) == 0)
		return true;
	worker->lender = 0;
	cleanup_closep(&worker->lender_pidfd);
	return false;
}

static bool server_process_may_want(struct worker *worker, int64_t now)
{
	const int64_t gone = (now - worker->asked_at) * WANTED_RATE / 1000;

	if (gone > 0) {
		worker->asked = gone < worker->asked ? worker->asked - (unsigned)gone : 0;
		worker->asked_at = now;
	}
	if (worker->asked >= WANTED_MAX)
		return false;
	worker->asked++;
	return true;
}

/*
 * One that does not read its answers gets no more: descriptors on their way count as this process's. One that has ended
 * reads none.
 */
static bool server_process_answer(const struct manager *manager, struct worker *worker, const struct start_event *event)
{
	int unread = 0;

	if (!server_process_may_want(worker, manager_now()) || ioctl(worker->events, SIOCOUTQ, &unread) < 0 ||
	    unread > 0 || pidref_has_ended(worker->pidfd))
		return false;
	server_process_lend(manager, worker, event);
	return true;
}

/* Return: whether that were too many. */
static bool server_process_reports_too_much(struct worker *worker, int64_t now)
{
	const int64_t more = (now - worker->told_at) / 1000 * REPORTED_EACH_S;

	if (more > 0) {
		worker->told = worker->told > more ? worker->told - (unsigned)more : 0;
		worker->told_at = now;
	}
	return ++worker->told == REPORTED_MAX;
}

static void server_process_receive_events(struct manager *manager, struct worker *worker, int most)
{
	for (int i = 0; i < most && worker->events >= 0 && !worker->lender; i++) {
		struct start_event event;
		const ssize_t size = fd_closer_receive(worker->events, &event, sizeof(event));

		if (size < 0 && errno == EAGAIN)
			return;
		if (size == sizeof(event) && event.kind == START_EVENT_WANT &&
		    server_process_answer(manager, worker, &event))
			continue;
		if (size == sizeof(event)) {
			audit_server(worker->tenant, &event, manager_now());
			gpu_trouble_receive(manager, worker->tenant, &event);
		}
		/* Whoever goes on would keep us at work. An honest server notices nothing, and sends no descriptors. */
		if (size <= 0 || server_process_reports_too_much(worker, manager_now()))
			server_process_stop_receiving(worker);
	}
}

void server_process_receive_reply(struct manager *manager, struct worker *worker)
{
	server_process_receive_events(manager, worker, HEARD_MAX);
}

void server_process_stop(struct worker *worker)
{
	if (worker->kill_at)
		return;
	worker->kill_at = manager_now() + MANAGER_KILL_MS;
	worker->stopped = true;
	pidref_signal(worker->pidfd, SIGTERM);
}

static void server_process_reap(struct worker *worker)
{
	int wait_status = SIGKILL; /* of one that is not ours to wait for, it is not known */

	if (!worker->adopted && waitpid(worker->pid, &wait_status, WNOHANG) != worker->pid)
		return;
	if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL && cgroup_has_killed(worker->tenant)) {
		worker->tenant->crashes++;
		audit_write("out-of-memory", worker->tenant,
			    json_pack("{s:I}", "hostMemory", (json_int_t)worker->tenant->limits.host_memory));
	} else if (WIFSIGNALED(wait_status) && !worker->stopped && !worker->adopted) {
		worker->tenant->crashes++;
		audit_write("crash", worker->tenant, json_pack("{s:i}", "signal", WTERMSIG(wait_status)));
	} else if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == SERVER_PROGRAM_NOT_RUN) {
		worker->tenant->crashes++;
		audit_write("not-started", worker->tenant, NULL);
	}
}

void server_process_remove(struct manager *manager, struct worker *worker)
{
	struct worker **place = &manager->workers;

	while (*place != worker)
		place = &(*place)->next;
	*place = worker->next;
	/* It says nothing more, so all of it. */
	server_process_receive_events(manager, worker, UNHEARD_MAX);
	server_process_reap(worker);
	server_process_empty_slot(worker->tenant, worker->slot);
	worker->tenant->clients--;
	manager->worker_count--;
	manager->changed = true;
	fd_closer_close(&worker->events);
	remnant_leave(manager, worker);
	pinned_memory_host_memory(manager);
	cleanup_closep(&worker->shared);
	cleanup_closep(&worker->client);
	cleanup_closep(&worker->pidfd);
	free(worker);
}
