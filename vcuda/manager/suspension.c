/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/suspension.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "vcuda/manager/manager.h"
#include "vcuda/manager/page.h"
#include "vcuda/protocol/checkpoint.h"
#include "vcuda/protocol/pidref.h"

enum {
	PARK_MS = 30 * 1000, /* what is under way may take so long */
	PROGRAM_MS = 60 * 1000,
	BYTES_EACH_MS = 128 * 1024, /* an H100 takes 2 GB a second; this leaves much room */
	LOOK_MS = 20,               /* at servers that park */
	WANTED_MS = 100,            /* at those that are suspended */
	IDLE_MS = 1000,             /* at those that may be idle */
	AGAIN_MS = 1000,            /* to resume what had no room */
	FAILED_MS = 10 * 1000,      /* what could not be done for another reason */
	SECOND_MS = 1000,
	ABOVE = 16,
	MEMORY_TEXT_MAX = 4096,
};

static const char *const names[] = {
	[SUSPENSION_NONE] = "running",        [SUSPENSION_PARKING] = "suspending", [SUSPENSION_SAVING] = "suspending",
	[SUSPENSION_SUSPENDED] = "suspended", [SUSPENSION_RESUMING] = "resuming",  [SUSPENSION_MOVING] = "moving",
};

const char *suspension_name(const struct suspension *suspension)
{
	if (suspension->state == SUSPENSION_SUSPENDED && suspension->wanted && !suspension->queued &&
	    !suspension->trouble[0])
		return names[SUSPENSION_RESUMING];
	return suspension->queued ? "waiting" : suspension->moves ? "moving" : names[suspension->state];
}

/* ---- orders ---- */

static void suspension_write_order(struct tenant *tenant, unsigned slot, uint32_t order)
{
	__atomic_store_n((uint32_t *)&tenant->orders->order[slot], order, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, (uint32_t *)&tenant->orders->order[slot], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void suspension_order(struct manager *manager, struct tenant *tenant, enum start_order what)
{
	struct suspension *suspension = &tenant->suspension;
	uint32_t number = (uint32_t)manager_now() & (UINT32_MAX >> START_ORDER_BITS);

	if (number == suspension->order >> START_ORDER_BITS)
		number++;
	/* By the time, so that servers of an earlier manager have had another. */
	suspension->order = number << START_ORDER_BITS | (uint32_t)what;
	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->tenant == tenant)
			suspension_write_order(tenant, worker->slot, suspension->order);
}

static bool suspension_is_obeyed(const struct manager *manager, const struct tenant *tenant)
{
	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->tenant == tenant && !worker->kill_at &&
		    __atomic_load_n((uint32_t *)&tenant->quota->obeyed[worker->slot], __ATOMIC_SEQ_CST) !=
			    tenant->suspension.order)
			return false;
	return true;
}

static bool suspension_is_wanted(const struct manager *manager, const struct tenant *tenant)
{
	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->tenant == tenant &&
		    __atomic_load_n((uint32_t *)&tenant->quota->wanted[worker->slot], __ATOMIC_SEQ_CST))
			return true;
	return false;
}

/* ---- what happened ---- */

/* What rested before it was suspended has not rested since then. */
static void suspension_begin_rest(struct manager *manager, const struct tenant *tenant)
{
	for (struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->tenant == tenant)
			worker->rests = 0;
}

static void suspension_become(struct manager *manager, struct tenant *tenant, enum suspension_state state)
{
	struct suspension *suspension = &tenant->suspension;

	if (state == SUSPENSION_NONE && suspension->state != SUSPENSION_NONE)
		suspension_order(manager, tenant, START_GO);
	if (state == SUSPENSION_NONE) {
		memset((void *)tenant->orders->away, 0, sizeof(tenant->orders->away));
		suspension->wanted = suspension->by_hand = suspension->for_sleep = suspension->partly = false;
		suspension_begin_rest(manager, tenant);
	}
	if (state != SUSPENSION_RESUMING && state != SUSPENSION_SUSPENDED)
		suspension->queued = 0;
	suspension->moves = suspension->moves && state == SUSPENSION_PARKING;
	suspension->begun = false;
	suspension->state = state;
	suspension->began = manager_now();
	suspension->try_at = suspension->began;
	manager->changed = true;
}

/* It is not what it should be, and goes on from @state. */
static void suspension_fail(struct manager *manager, struct tenant *tenant, enum suspension_state state,
			    const char *why)
{
	struct suspension *suspension = &tenant->suspension;
	const bool resumes = suspension->state == SUSPENSION_RESUMING;

	(void)snprintf(suspension->trouble, sizeof(suspension->trouble), "%s", why);
	audit_write(suspension->moves ? "move-failed"
		    : resumes         ? "resume-failed"
				      : "suspend-failed",
		    tenant, json_pack("{s:s}", "why", why));
	suspension_become(manager, tenant, state);
	suspension->try_at = suspension->began + FAILED_MS;
}

static void suspension_succeed(struct manager *manager, struct tenant *tenant, enum suspension_state state)
{
	struct suspension *suspension = &tenant->suspension;
	const json_int_t took = manager_now() - suspension->began;
	json_t *more = json_pack("{s:I, s:I}", "milliseconds", took, "memory", (json_int_t)tenant_sum_memory(tenant));

	if (more && state == SUSPENSION_SUSPENDED)
		(void)json_object_set_new(more, "why",
					  json_string(suspension->by_hand     ? "command"
						      : suspension->for_sleep ? "all"
									      : "idle"));
	audit_write(state == SUSPENSION_SUSPENDED ? "suspend" : "resume", tenant, more);
	suspension->trouble[0] = '\0';
	suspension->partly = false;
	suspension_become(manager, tenant, state);
}

/* Which of its GPUs is on which now, by their own names. */
static json_t *suspension_list_gpus(const struct tenant *tenant, uint64_t places)
{
	json_t *list = json_array();

	for (size_t i = 0; i < tenant->gpu_count; i++)
		(void)json_array_append_new(list, json_string(manager_find_gpu(tenant, places, i)->uuid));
	return list;
}

/* What it has is elsewhere. */
static void suspension_note_move(struct manager *manager, struct tenant *tenant, uint64_t places)
{
	audit_write("move", tenant,
		    json_pack("{s:o, s:o, s:I, s:I}", "from", suspension_list_gpus(tenant, tenant->places), "to",
			      suspension_list_gpus(tenant, places), "milliseconds",
			      (json_int_t)(tenant->suspension.state == SUSPENSION_MOVING
						   ? manager_now() - tenant->suspension.began
						   : 0),
			      "memory", (json_int_t)tenant_sum_memory(tenant)));
	tenant->suspension.trouble[0] = '\0';
	tenant_settle_time(tenant);
	tenant->places = places;
	tenant->moved_at = manager_now();
	decider_add(manager, tenant);
	manager->changed = true;
}

/* ---- the program that has the driver do it ---- */

static void suspension_list_pids(const struct manager *manager, const struct tenant *tenant, char **ret, size_t max,
				 size_t *ret_count)
{
	size_t count = 0;

	for (const struct worker *worker = manager->workers; worker && count < max; worker = worker->next)
		if (worker->tenant == tenant && str_format(&ret[count], "%d:%u", (int)worker->pid, worker->slot) == 0)
			count++;
	*ret_count = count;
}

static _Noreturn void suspension_become_program(int program, int lock, int out, char *const *arguments)
{
	char *const environment[] = {NULL};
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setsid();
	program = fcntl(program, F_DUPFD_CLOEXEC, ABOVE);
	lock = fcntl(lock, F_DUPFD_CLOEXEC, ABOVE);
	out = fcntl(out, F_DUPFD_CLOEXEC, ABOVE);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
	    dup2(lock, CHECKPOINT_LOCK) < 0 || chdir("/") < 0)
		_exit(CHECKPOINT_NOT_BEGUN);
	/* Before Linux 5.11 no range of descriptors can be marked as to be closed by execve(2). */
	program = dup3(program, CHECKPOINT_LOCK + 1, O_CLOEXEC);
	closefrom(CHECKPOINT_LOCK + 2);
	(void)execveat(program, "", arguments, environment, AT_EMPTY_PATH);
	_exit(CHECKPOINT_NOT_BEGUN);
}

/* The page is opened anew: a lock belongs to an open file description, and servers share the manager's. */
static int suspension_run(struct tenant *tenant, const char *path, char *const *arguments)
{
	struct suspension *suspension = &tenant->suspension;
	_cleanup_close_ int program = open(path, O_PATH | O_CLOEXEC), lock = -1, in = -1, out = -1, pidfd = -1;
	int pair[2], r;
	pid_t pid;

	lock = page_open_again(tenant->orders_fd, O_RDWR);
	if (program < 0 || lock < 0)
		return program < 0 ? -errno : lock;
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	in = pair[0];
	out = pair[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		suspension_become_program(program, lock, out, arguments);
	/* It may have ended already, and is there until it is waited for. */
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		r = -errno;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return r;
	}
	suspension->program = pid;
	suspension->program_pidfd = steal_fd(&pidfd);
	suspension->program_out = steal_fd(&in);
	suspension->ending = false;
	return 0;
}

/* Of all its GPUs, by number. */
static int suspension_name_gpus(const struct tenant *tenant, char **ret)
{
	int r = str_format(ret, "%s", tenant->gpus[0].uuid);

	for (size_t i = 1; i < tenant->reach && r == 0; i++) {
		_cleanup_free_ char *before = *ret;

		*ret = NULL;
		r = str_format(ret, "%s,%s", before, tenant->gpus[i].uuid);
	}
	return r;
}

/* Servers write how much they have; more than they may put into the host's memory they cannot save. */
int64_t suspension_patience(const struct manager *manager, const struct tenant *tenant)
{
	const uint64_t host = pinned_memory_measure_host() * 2, own = tenant->limits.host_memory,
		       most = manager->groups >= 0 && own < host ? own : host, said = tenant_sum_memory(tenant),
		       bytes = said < most ? said : most;

	return PROGRAM_MS + (int64_t)(bytes / BYTES_EACH_MS) * (tenant->suspension.moves ? 2 : 1);
}

static int suspension_start(struct manager *manager, struct tenant *tenant, const char *what)
{
	enum { BEFORE = 7, PIDS = MANAGER_CLIENTS_MAX };
	const uint64_t to = tenant->suspension.moves ? tenant->suspension.target : tenant->places;
	_cleanup_free_ char *user = NULL, *places = NULL, *target = NULL, *gpus = NULL;
	char *arguments[BEFORE + PIDS + 1] = {(char *)"ctr-gpu-vcuda-checkpoint", (char *)(uintptr_t)what};
	size_t count;
	int r;

	if (str_format(&user, "%u", (unsigned)tenant->uid) < 0 ||
	    str_format(&places, "%llx", (unsigned long long)tenant->places) < 0 ||
	    str_format(&target, "%llx", (unsigned long long)to) < 0 || suspension_name_gpus(tenant, &gpus) < 0)
		return -ENOMEM;
	arguments[2] = tenant->library;
	arguments[3] = user;
	arguments[4] = places;
	arguments[5] = target;
	arguments[6] = gpus;
	suspension_list_pids(manager, tenant, arguments + BEFORE, PIDS, &count);
	tenant->suspension.deadline = manager_now() + suspension_patience(manager, tenant);
	r = count > 0 ? suspension_run(tenant, manager->checkpoint, arguments) : 0;
	for (size_t i = 0; i < count; i++)
		free(arguments[BEFORE + i]);
	return r;
}

static void suspension_explain(const struct suspension *suspension, int wait_status,
			       char ret[static SUSPENSION_TROUBLE])
{
	static const char *const steps[CHECKPOINT_STEPS] = {
		[CHECKPOINT_RIGHTS] = "giving up rights",
		[CHECKPOINT_LIBRARY] = "loading the driver",
		[CHECKPOINT_MEASURE] = "NVML does not say how much of a GPU is free",
		[CHECKPOINT_GET_STATE] = "cuCheckpointProcessGetState()",
		[CHECKPOINT_LOCK_PROCESS] = "cuCheckpointProcessLock()",
		[CHECKPOINT_SAVE] = "cuCheckpointProcessCheckpoint()",
		[CHECKPOINT_RESTORE] = "cuCheckpointProcessRestore()",
		[CHECKPOINT_UNLOCK] = "cuCheckpointProcessUnlock()",
		[CHECKPOINT_IS_OTHERWISE] = "a server is in another state than the driver said",
	};
	struct checkpoint_failure failure;
	const bool said = read(suspension->program_out, &failure, sizeof(failure)) == sizeof(failure) &&
			  failure.step < CHECKPOINT_STEPS;

	if (!said)
		(void)snprintf(ret, SUSPENSION_TROUBLE, "ctr-gpu-vcuda-checkpoint ended with status %#x",
			       (unsigned)wait_status);
	else if (failure.step == CHECKPOINT_MEASURE)
		(void)snprintf(ret, SUSPENSION_TROUBLE, "%s", steps[failure.step]);
	else if (failure.step <= CHECKPOINT_LIBRARY)
		(void)snprintf(ret, SUSPENSION_TROUBLE, "%s: %s", steps[failure.step],
			       failure.number == ENOSYS ? "it cannot suspend, which R570 and later can"
							: strerror(failure.number));
	else
		(void)snprintf(ret, SUSPENSION_TROUBLE, "%s: %d", steps[failure.step], failure.number);
}

/* Its servers are good for nothing any more; their programs get errors. */
static void suspension_lose(struct manager *manager, struct tenant *tenant, const char *why)
{
	for (struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->tenant == tenant)
			server_process_stop(worker);
	suspension_fail(manager, tenant, SUSPENSION_NONE, why);
}

static void suspension_queue(struct manager *manager, struct tenant *tenant)
{
	struct suspension *suspension = &tenant->suspension;
	const int64_t queued = suspension->queued ? suspension->queued : manager_now();

	if (!suspension->queued)
		audit_write("resume-waits", tenant, NULL);
	suspension_become(manager, tenant, SUSPENSION_SUSPENDED);
	suspension->queued = queued;
	suspension->try_at = manager_now() + AGAIN_MS;
}

/* What was to be moved or suspended is where it was; if it is @away, it comes back when there is room. */
static void suspension_stay(struct manager *manager, struct tenant *tenant, const char *why, bool away)
{
	suspension_fail(manager, tenant, away ? SUSPENSION_SUSPENDED : SUSPENSION_NONE, why);
	if (!away)
		return;
	tenant->suspension.wanted = tenant->suspension.partly = true;
	suspension_queue(manager, tenant);
	tenant->suspension.try_at = manager_now() + (manager->asleep ? FAILED_MS : AGAIN_MS);
}

static void suspension_end_move(struct manager *manager, struct tenant *tenant, int end, const char *why)
{
	const uint64_t target = tenant->suspension.target;

	if (end == CHECKPOINT_DONE) {
		suspension_note_move(manager, tenant, target);
		suspension_become(manager, tenant, SUSPENSION_NONE);
	} else if (end == CHECKPOINT_NO_ROOM || end == CHECKPOINT_AWAY) {
		suspension_stay(manager, tenant, "the other GPU has no room for what it has", end == CHECKPOINT_AWAY);
	} else if (end == CHECKPOINT_UNDONE || end == CHECKPOINT_NOT_BEGUN) {
		suspension_stay(manager, tenant, why, false);
	} else {
		suspension_lose(manager, tenant, why);
	}
}

/* What was begun cannot be left as it is: a program has to end it, however it goes. */
static void suspension_try_again(struct suspension *suspension)
{
	suspension->state = SUSPENSION_PARKING;
	suspension->begun = true;
}

/* The same where a program could do nothing. Who waits for it reads why; the audit says so once, not at each try. */
static void suspension_try_later(struct tenant *tenant, const char *why)
{
	struct suspension *suspension = &tenant->suspension;

	if (!suspension->trouble[0])
		audit_write(suspension->moves ? "move-failed" : "suspend-failed", tenant,
			    json_pack("{s:s}", "why", why));
	(void)snprintf(suspension->trouble, sizeof(suspension->trouble), "%s", why);
	suspension_try_again(suspension);
	suspension->try_at = manager_now() + AGAIN_MS;
}

/* Of a program that was killed nothing is known. */
static void suspension_end(struct manager *manager, struct tenant *tenant, int wait_status)
{
	const int end = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : CHECKPOINT_LOST;
	const bool resumes = tenant->suspension.state == SUSPENSION_RESUMING;
	const enum suspension_state before = resumes ? SUSPENSION_SUSPENDED : SUSPENSION_NONE;
	char why[SUSPENSION_TROUBLE];

	/* It carries on from whatever it has left. */
	if (WIFSIGNALED(wait_status) && tenant->suspension.state == SUSPENSION_MOVING && !tenant->suspension.ending &&
	    !tenant->suspension.again) {
		suspension_try_again(&tenant->suspension);
		tenant->suspension.again = true;
		return;
	}
	if (end != CHECKPOINT_DONE)
		suspension_explain(&tenant->suspension, wait_status, why);
	if (end == CHECKPOINT_NOT_BEGUN && tenant->suspension.begun)
		suspension_try_later(tenant, why);
	else if (tenant->suspension.state == SUSPENSION_MOVING)
		suspension_end_move(manager, tenant, end, why);
	else if (end == CHECKPOINT_DONE)
		suspension_succeed(manager, tenant, resumes ? SUSPENSION_NONE : SUSPENSION_SUSPENDED);
	else if (end == CHECKPOINT_NO_ROOM)
		suspension_queue(manager, tenant);
	else if (end == CHECKPOINT_AWAY)
		suspension_stay(manager, tenant, why, true);
	else if (end == CHECKPOINT_UNDONE || end == CHECKPOINT_NOT_BEGUN)
		suspension_fail(manager, tenant, before, why);
	else
		suspension_lose(manager, tenant, why);
}

/* What is to come back does so when all wake. */
static void suspension_defer(struct suspension *suspension)
{
	if (!suspension->wanted || suspension->queued)
		return;
	suspension->for_sleep = true;
	suspension->wanted = false;
}

/* What could not be saved whole still has memory of a GPU, which the host's sleep would take: that is tried again. */
static void suspension_save_rest(struct manager *manager, struct tenant *tenant)
{
	suspension_become(manager, tenant, SUSPENSION_PARKING);
	suspension_try_again(&tenant->suspension);
	suspension_defer(&tenant->suspension);
}

/* Of one that is suspended when all are to be. */
static void suspension_sleep_on(struct manager *manager, struct tenant *tenant)
{
	tenant->suspension.trouble[0] = '\0';
	if (tenant->suspension.partly)
		suspension_save_rest(manager, tenant);
	suspension_defer(&tenant->suspension);
}

static void suspension_reap(struct manager *manager, struct tenant *tenant)
{
	struct suspension *suspension = &tenant->suspension;
	const bool resumes = suspension->state == SUSPENSION_RESUMING;
	int wait_status = 0;

	if (waitpid(suspension->program, &wait_status, WNOHANG) != suspension->program)
		return;
	suspension->program = 0;
	suspension_end(manager, tenant, wait_status);
	suspension_close(suspension);
	/* It was being resumed when all were to sleep. */
	if (resumes && manager->asleep && suspension->state == SUSPENSION_SUSPENDED)
		suspension_sleep_on(manager, tenant);
}

/* One that a server keeps waiting, which has to answer the driver. */
static void suspension_kill(struct suspension *suspension)
{
	if (!suspension->ending)
		pidref_signal(suspension->program_pidfd, SIGKILL);
	suspension->ending = true;
}

/* ---- one after the other ---- */

/* Where it is, or comes to. */
static uint64_t suspension_places(const struct tenant *tenant)
{
	return tenant->suspension.moves ? tenant->suspension.target : tenant->places;
}

static bool suspension_share_gpu(const struct tenant *one, uint64_t places, const struct tenant *other)
{
	for (size_t i = 0; i < one->gpu_count; i++)
		if (gpu_assign_uses(other, suspension_places(other), manager_find_gpu(one, places, i)))
			return true;
	return false;
}

/* Whether others wait for memory where it would be. */
static bool suspension_is_awaited(const struct manager *manager, const struct tenant *tenant, uint64_t places)
{
	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (other != tenant && !other->ending && other->suspension.queued &&
		    suspension_share_gpu(tenant, places, other))
			return true;
	return false;
}

/* What a program has begun to move is neither here nor there, and comes before all that only waits. */
static bool suspension_comes_first(const struct suspension *other, const struct suspension *own)
{
	if (other->state == SUSPENSION_RESUMING || other->state == SUSPENSION_MOVING)
		return true;
	if (own->begun)
		return false;
	return (other->begun && other->moves) || (other->queued && (!own->queued || other->queued < own->queued));
}

/* One at a time comes to a GPU: each looks whether there is room before it begins. */
static bool suspension_is_next(const struct manager *manager, const struct tenant *tenant)
{
	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (other != tenant && !other->ending &&
		    suspension_share_gpu(tenant, suspension_places(tenant), other) &&
		    suspension_comes_first(&other->suspension, &tenant->suspension))
			return false;
	return true;
}

/* ---- to suspend ---- */

/* Return: what the host could give; UINT64_MAX: it does not say. */
static uint64_t suspension_measure_host(void)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long kibibytes;
	const char *line;

	if (fd_read_kernel_file(AT_FDCWD, "/proc/meminfo", MEMORY_TEXT_MAX, &text) < 0)
		return UINT64_MAX;
	line = strstr(text, "MemAvailable:");
	return line && sscanf(line, "MemAvailable: %llu kB", &kibibytes) == 1 ? (uint64_t)kibibytes << 10 : UINT64_MAX;
}

/* The kernel would end servers that have more of it than they may. */
static bool suspension_has_room(const struct manager *manager, const struct tenant *tenant, const char **ret_why)
{
	const uint64_t bytes = tenant_sum_memory(tenant), had = cgroup_measure_memory(tenant);

	*ret_why = "what it has on its GPUs does not fit into what its servers may have of the host's memory";
	if (manager->groups >= 0 && (had > tenant->limits.host_memory || bytes > tenant->limits.host_memory - had))
		return false;
	*ret_why = "the host has not enough free memory for what it has on its GPUs";
	return bytes < suspension_measure_host();
}

/* @moves: to its target */
static void suspension_park(struct manager *manager, struct tenant *tenant, bool moves)
{
	struct suspension *suspension = &tenant->suspension;

	suspension_become(manager, tenant, SUSPENSION_PARKING);
	suspension->moves = moves;
	suspension->again = false;
	suspension->deadline = suspension->began + PARK_MS;
	suspension->trouble[0] = '\0';
	suspension_order(manager, tenant, START_PARK);
}

int suspension_ask(struct manager *manager, struct tenant *tenant, bool by_hand, const char **ret_why)
{
	struct suspension *suspension = &tenant->suspension;

	if (suspension->state != SUSPENSION_NONE) {
		*ret_why = suspension->moves ? "it is being moved" : "it is being resumed";
		if (suspension->state == SUSPENSION_RESUMING || suspension->wanted || suspension->moves)
			return -EBUSY;
		suspension->by_hand = suspension->by_hand || by_hand;
		manager->changed = true;
		return 0;
	}
	if (!suspension_has_room(manager, tenant, ret_why))
		return -ENOMEM;
	suspension_park(manager, tenant, false);
	suspension->by_hand = by_hand;
	return 0;
}

int suspension_move(struct manager *manager, struct tenant *tenant, uint64_t places, const char **ret_why)
{
	struct suspension *suspension = &tenant->suspension;

	*ret_why = "it is being suspended, resumed or moved";
	if (suspension->state != SUSPENSION_NONE && suspension->state != SUSPENSION_SUSPENDED)
		return -EBUSY;
	if (gpu_assign_check_exclusive(tenant, places, ret_why) < 0)
		return -EPERM;
	if (tenant->clients == 0 || suspension->state == SUSPENSION_SUSPENDED) {
		suspension_note_move(manager, tenant, places);
		return 0;
	}
	if (!suspension_has_room(manager, tenant, ret_why))
		return -ENOMEM;
	*ret_why = "others wait for memory of the other GPU";
	if (suspension_is_awaited(manager, tenant, places))
		return -ENOMEM;
	suspension->target = places;
	suspension_park(manager, tenant, true);
	return 0;
}

bool suspension_moves_any(const struct manager *manager)
{
	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (tenant->suspension.moves)
			return true;
	return false;
}

/* Return: what it waits for; NULL. Servers had parked before a program began, and those that are away cannot say so. */
static const char *suspension_explain_parking(const struct manager *manager, const struct tenant *tenant)
{
	if (!tenant->suspension.begun && !suspension_is_obeyed(manager, tenant))
		return "one of its programs is in the middle of something for more than 30 seconds";
	if (tenant->suspension.moves && !suspension_is_next(manager, tenant))
		return "other containers come to its GPU for more than 30 seconds";
	return NULL;
}

static void suspension_look_at_parking(struct manager *manager, struct tenant *tenant, int64_t now)
{
	const bool moves = tenant->suspension.moves, begun = tenant->suspension.begun;
	const char *why = suspension_explain_parking(manager, tenant);
	int r;

	if (why && now >= tenant->suspension.deadline && !begun)
		suspension_fail(manager, tenant, SUSPENSION_NONE, why);
	if (why || (begun && now < tenant->suspension.try_at))
		return;
	tenant->suspension.state = moves ? SUSPENSION_MOVING : SUSPENSION_SAVING;
	manager->changed = true;
	r = suspension_start(manager, tenant, moves ? "move" : "suspend");
	if (r < 0 && begun)
		suspension_try_later(tenant, strerror(-r));
	else if (r < 0)
		suspension_fail(manager, tenant, SUSPENSION_NONE, strerror(-r));
	else if (!tenant->suspension.program && moves)
		suspension_end_move(manager, tenant, CHECKPOINT_DONE, "");
	else if (!tenant->suspension.program)
		suspension_succeed(manager, tenant, SUSPENSION_SUSPENDED);
}

/* Whether all of its servers rest, and have for so long. */
static bool suspension_is_idle(const struct manager *manager, const struct tenant *tenant, int64_t now)
{
	bool idle = tenant->clients > 0;

	for (struct worker *worker = manager->workers; worker; worker = worker->next) {
		uint64_t rests;

		if (worker->tenant != tenant)
			continue;
		rests = __atomic_load_n((uint64_t *)&tenant->quota->rests[worker->slot], __ATOMIC_SEQ_CST);
		if (rests == 0 || rests != worker->rests)
			worker->rested_at = now;
		worker->rests = rests;
		idle = idle && rests && now - worker->rested_at >= (int64_t)tenant->limits.idle * SECOND_MS;
	}
	return idle;
}

/* What could not be is tried again, for as long as all are to be. */
static void suspension_look_at_sleepless(struct manager *manager, struct tenant *tenant, int64_t now)
{
	const char *why;
	int r;

	if (now < tenant->suspension.try_at)
		return;
	r = suspension_ask(manager, tenant, false, &why);
	if (r < 0)
		suspension_fail(manager, tenant, SUSPENSION_NONE, why);
	else
		tenant->suspension.for_sleep = true;
}

static void suspension_look_at_running(struct manager *manager, struct tenant *tenant, int64_t now)
{
	struct suspension *suspension = &tenant->suspension;
	const char *why;

	if (manager->asleep) {
		suspension_look_at_sleepless(manager, tenant, now);
		return;
	}
	if (!tenant->limits.idle || !suspension_is_idle(manager, tenant, now) || now < suspension->try_at)
		return;
	if (suspension_ask(manager, tenant, false, &why) == -ENOMEM) {
		(void)snprintf(suspension->trouble, sizeof(suspension->trouble), "%s", why);
		suspension->try_at = now + (int64_t)tenant->limits.idle * SECOND_MS;
	}
}

/* ---- to resume ---- */

int suspension_resume(const struct manager *manager, struct tenant *tenant)
{
	if (manager->asleep)
		return -EBUSY;
	if (tenant->suspension.state == SUSPENSION_NONE || tenant->suspension.moves)
		return -EALREADY;
	tenant->suspension.wanted = true;
	tenant->suspension.by_hand = tenant->suspension.for_sleep = false;
	tenant->suspension.try_at = 0;
	tenant->suspension.trouble[0] = '\0';
	return 0;
}

static void suspension_look_at_suspended(struct manager *manager, struct tenant *tenant, int64_t now)
{
	struct suspension *suspension = &tenant->suspension;
	int r;

	if (manager->asleep) {
		/* The reason stays until it is saved: who waits for it reads that. */
		if (suspension->partly && now >= suspension->try_at)
			suspension_save_rest(manager, tenant);
		return;
	}
	if (!suspension->by_hand && tenant->clients == 0) {
		suspension_become(manager, tenant, SUSPENSION_NONE);
		return;
	}
	if (!suspension->by_hand && suspension_is_wanted(manager, tenant))
		suspension->wanted = true;
	if (!suspension->wanted || now < suspension->try_at)
		return;
	if (!suspension_is_next(manager, tenant)) {
		if (!suspension->queued)
			suspension_queue(manager, tenant);
		return;
	}
	suspension->state = SUSPENSION_RESUMING;
	suspension->began = now;
	manager->changed = true;
	r = suspension_start(manager, tenant, "resume");
	if (r < 0)
		suspension_fail(manager, tenant, SUSPENSION_SUSPENDED, strerror(-r));
	else if (!suspension->program)
		suspension_succeed(manager, tenant, SUSPENSION_NONE);
}

/* ---- all of them, while the host sleeps ---- */

void suspension_sleep(struct manager *manager)
{
	if (!manager->asleep)
		audit_write("sleep", NULL, NULL);
	manager->asleep = manager->changed = true;
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next) {
		struct suspension *suspension = &tenant->suspension;

		if (suspension->state == SUSPENSION_SUSPENDED) {
			suspension_sleep_on(manager, tenant);
			continue;
		}
		/* One that comes back from the queue is waited for, and not taken for one that waits. */
		suspension->try_at = suspension->queued = 0;
		suspension->trouble[0] = '\0';
		if (suspension->state != SUSPENSION_RESUMING)
			suspension_defer(suspension);
	}
}

void suspension_wake(struct manager *manager)
{
	if (manager->asleep)
		audit_write("wake", NULL, NULL);
	manager->asleep = false;
	manager->changed = true;
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next) {
		tenant->suspension.trouble[0] = '\0';
		if (tenant->suspension.for_sleep && !tenant->suspension.by_hand)
			(void)suspension_resume(manager, tenant);
		tenant->suspension.for_sleep = false;
	}
}

/* ---- both ---- */

bool suspension_has_begun(const struct suspension *suspension)
{
	return suspension->begun || suspension->state == SUSPENSION_SAVING || suspension->state == SUSPENSION_MOVING;
}

void suspension_take_over(struct manager *manager, struct tenant *tenant, const char *name, uint64_t target, bool begun)
{
	struct suspension *suspension = &tenant->suspension;
	const bool rests = streq(name, "suspended") || streq(name, "resuming") || streq(name, "waiting");

	if (streq(name, "suspending") || streq(name, "moving")) {
		suspension->state = SUSPENSION_PARKING;
		suspension->moves = streq(name, "moving");
		suspension->target = target;
		suspension->begun = begun;
		suspension->deadline = manager_now() + PARK_MS;
	} else if (rests) {
		suspension->state = SUSPENSION_SUSPENDED;
		suspension->wanted = !streq(name, "suspended");
		suspension->queued = streq(name, "waiting") ? manager_now() : 0;
	}
	suspension->began = manager_now();
	suspension_order(manager, tenant, suspension->state == SUSPENSION_NONE ? START_GO : START_PARK);
}

bool suspension_accepts(const struct tenant *tenant)
{
	return tenant->suspension.state == SUSPENSION_NONE;
}

bool suspension_hears(const struct manager *manager, const struct tenant *tenant)
{
	const struct suspension *suspension = &tenant->suspension;

	return suspension_accepts(tenant) || (suspension->state == SUSPENSION_SUSPENDED && !suspension->by_hand &&
					      !suspension->wanted && !manager->asleep);
}

void suspension_look(struct manager *manager, struct tenant *tenant, int64_t now)
{
	struct suspension *suspension = &tenant->suspension;

	if (suspension->program) {
		if (now >= suspension->deadline || tenant->ending)
			suspension_kill(suspension);
		suspension_reap(manager, tenant);
		return;
	}
	if (tenant->ending)
		return;
	if (suspension->state == SUSPENSION_NONE)
		suspension_look_at_running(manager, tenant, now);
	else if (suspension->state == SUSPENSION_PARKING)
		suspension_look_at_parking(manager, tenant, now);
	else if (suspension->state == SUSPENSION_SUSPENDED)
		suspension_look_at_suspended(manager, tenant, now);
}

int64_t suspension_next(const struct manager *manager, const struct tenant *tenant, int64_t now)
{
	const struct suspension *suspension = &tenant->suspension;

	if (suspension->program)
		return suspension->ending ? INT64_MAX : suspension->deadline;
	if (tenant->ending)
		return INT64_MAX;
	switch (suspension->state) {
	case SUSPENSION_NONE:
		if (manager->asleep)
			return suspension->try_at > now ? suspension->try_at : now;
		return tenant->limits.idle && tenant->clients > 0 ? now + IDLE_MS : INT64_MAX;
	case SUSPENSION_SUSPENDED:
		if (manager->asleep && !suspension->partly)
			return INT64_MAX;
		if (suspension->wanted || manager->asleep)
			return suspension->try_at > now ? suspension->try_at : now + LOOK_MS;
		return suspension->by_hand || tenant->clients == 0 ? INT64_MAX : now + WANTED_MS;
	default:
		return now + LOOK_MS;
	}
}
