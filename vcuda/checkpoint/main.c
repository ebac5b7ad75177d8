/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-vcuda-checkpoint: has NVIDIA's driver put away what servers of vCUDA have on their GPUs, or bring it back.
 * The driver does it in each of these processes itself; this program only asks, which needs rights that servers do not
 * have. It carries on from whatever state they are in: it may have been killed before, so it writes down where each of
 * them comes to before the driver brings it there.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/adapter.h"
#include "model/version.h"
#include "process/seccomp.h"
#include "vcuda/protocol/checkpoint.h"
#include "vcuda/protocol/start.h"

VERSION_NOTE();

/* ---- room ---- */

/*
 * Whether GPUs have room for what is to come back. A driver 580 that is asked to restore a process for which there is
 * none fails, and the process can never be restored again: what it had is lost. So that is never tried.
 */

enum { ROOM_PROCESSES_MAX = 1024, ROOM_PATH_SIZE = 4096, ROOM_PART_MORE = 32 };

/* Above what processes had: for what the driver takes to bring it back. */
#define ROOM_MORE ((uint64_t)256 << 20)
#define ROOM_NOT_KNOWN UINT64_MAX

/* A server. */
struct room_process {
	int pid;
	unsigned slot;
};

struct memory {
	uint64_t total, free, used;
};

struct process {
	unsigned pid;
	uint64_t used;
	unsigned instances[2];
};

static struct {
	int (*init)(void);
	int (*handle)(const char *uuid, void **ret);
	int (*memory)(void *gpu, struct memory *ret);
	int (*processes)(void *gpu, unsigned *count, struct process *list);
} nvml;

static void *room_gpus[START_GPUS]; /* by number; NULL: one that cannot be asked */
static unsigned room_gpu_count;
static uint64_t free_before[START_GPUS];
static bool known[START_GPUS]; /* NVML said what these processes have of it */
/* Of the container: how much its processes have, and where, is written down there. */
static struct start_orders *orders;

/* What root loads is root's. */
static void *room_load_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return NULL;
	return dlopen(path, RTLD_NOW);
}

static void *room_load(const char *library)
{
	_cleanup_free_ char *real = library[0] == '/' ? realpath(library, NULL) : NULL;
	char path[ROOM_PATH_SIZE];
	void *found = NULL;

	if (real) {
		(void)snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", dirname(real));
		found = room_load_file(path);
	}
	return found ? found : dlopen("libnvidia-ml.so.1", RTLD_NOW);
}

static bool room_find(void *library, const char *name, void *ret)
{
	*(void **)ret = dlsym(library, name);
	return *(void **)ret;
}

/*
 * Begins to ask NVML, which is beside the driver's library, or where the loader finds it. @names: UUIDs of the
 * container's GPUs, by number, START_GPUS at most.
 */
static bool room_open(const char *library, const char *const *names, unsigned count)
{
	void *found = room_load(library);

	if (!found || !room_find(found, "nvmlInit_v2", &nvml.init) ||
	    !room_find(found, "nvmlDeviceGetHandleByUUID", &nvml.handle) ||
	    !room_find(found, "nvmlDeviceGetMemoryInfo", &nvml.memory) ||
	    !room_find(found, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes) || nvml.init())
		return false;
	for (; room_gpu_count < count && room_gpu_count < START_GPUS; room_gpu_count++)
		if (nvml.handle(names[room_gpu_count], &room_gpus[room_gpu_count]))
			room_gpus[room_gpu_count] = NULL;
	return room_gpu_count > 0;
}

/* Return: bytes; 0 where it cannot be asked, so that nothing is tried. */
static uint64_t room_measure_free(unsigned gpu)
{
	struct memory memory;

	return room_gpus[gpu] && nvml.memory(room_gpus[gpu], &memory) == 0 ? memory.free : 0;
}

/* Return: which of a server's GPUs is on this one. */
static unsigned room_number(const struct room_process *process, unsigned gpu)
{
	for (unsigned number = 0; number < room_gpu_count; number++)
		if (start_place(orders->places[process->slot], number) == gpu)
			return number;
	return gpu;
}

/*
 * Adds what these have of a GPU to the numbers under which they have it, and to *all. Return: whether NVML says it of
 * all that it lists.
 */
static bool room_sum(unsigned gpu, const struct room_process *processes, int count, uint64_t *sums, uint64_t *all)
{
	static struct process list[ROOM_PROCESSES_MAX];
	unsigned listed = ROOM_PROCESSES_MAX;
	bool said = true;

	if (!room_gpus[gpu] || nvml.processes(room_gpus[gpu], &listed, list))
		return false;
	for (unsigned k = 0; k < listed && k < ROOM_PROCESSES_MAX; k++)
		for (int i = 0; i < count; i++) {
			if (list[k].pid != (unsigned)processes[i].pid)
				continue;
			said = said && list[k].used != ROOM_NOT_KNOWN;
			sums[room_number(&processes[i], gpu)] += list[k].used == ROOM_NOT_KNOWN ? 0 : list[k].used;
			*all += list[k].used == ROOM_NOT_KNOWN ? 0 : list[k].used;
		}
	return said;
}

/* Of processes that were saved already there is nothing now: what was written down then holds. */
static void room_write_down(unsigned number, uint64_t bytes)
{
	if (bytes > orders->away[number])
		orders->away[number] = bytes;
}

/* Writes down how much these processes have on each GPU, before they are saved. */
static void room_note(const struct room_process *processes, int count)
{
	static bool again;
	uint64_t sums[START_GPUS] = {0}, all = 0;

	for (unsigned gpu = 0; gpu < room_gpu_count; gpu++) {
		/* At a second try some may be away already. */
		if (!again)
			free_before[gpu] = room_measure_free(gpu);
		known[gpu] = room_sum(gpu, processes, count, sums, &all);
	}
	/* One that lists none of them on any GPU knows them by other numbers. */
	for (unsigned gpu = 0; gpu < room_gpu_count; gpu++)
		known[gpu] = known[gpu] && all > 0;
	for (unsigned number = 0; number < room_gpu_count; number++)
		room_write_down(number, sums[number]);
	again = true;
}

/* The same where NVML did not know these processes: how much has become free. */
static void room_note_freed(const struct room_process *processes, int count)
{
	for (unsigned gpu = 0; gpu < room_gpu_count && count > 0; gpu++) {
		const uint64_t now = room_measure_free(gpu);

		if (!known[gpu] && now > free_before[gpu])
			room_write_down(room_number(&processes[0], gpu), now - free_before[gpu]);
	}
}

/* Return: how much there is for what comes back to it. */
static uint64_t room_measure(unsigned gpu, const struct room_process *processes, int count)
{
	uint64_t sums[START_GPUS] = {0}, there = 0;

	(void)room_sum(gpu, processes, count, sums, &there);
	return room_measure_free(gpu) + there;
}

/*
 * Whether the GPUs have as much free now, and some more. @places: where what they have comes to. What they have there
 * now makes room, or is part of it.
 */
static bool room_is_there(uint64_t places, const struct room_process *processes, int count)
{
	for (unsigned number = 0; number < START_GPUS; number++) {
		const uint64_t away = orders->away[number];
		const unsigned gpu = start_place(places, number);

		if (away && (gpu >= room_gpu_count ||
			     room_measure(gpu, processes, count) < away + away / ROOM_PART_MORE + ROOM_MORE))
			return false;
	}
	return true;
}

/* ---- what the driver is asked ---- */

enum { ARGUMENTS_LEAST = 8, PROCESSES_MAX = 256, PATIENCE_MS = 10000, DESCRIPTORS = 64 };

/* Of a process, as cuCheckpointProcessGetState() has it. */
enum process_state { RUNNING, LOCKED, SAVED, FAILED, GONE };

/* What the driver's functions take; zeros beyond what is used are "as usual". */
struct lock_arguments {
	unsigned timeout_ms, reserved[15];
};

struct uuid {
	uint8_t bytes[16];
};

struct gpu_pair {
	struct uuid old, new;
};

/* All GPUs that the process knows, each of them once as an old one, and once as a new one. */
struct restore_arguments {
	struct gpu_pair *pairs;
	unsigned count, reserved[13];
};
_Static_assert(sizeof(struct restore_arguments) == 56 + sizeof(void *), "as cuda.h has it");

static struct {
	int (*state)(int pid, int *ret);
	int (*lock)(int pid, struct lock_arguments *arguments);
	int (*save)(int pid, void *arguments);
	int (*restore)(int pid, struct restore_arguments *arguments);
	int (*unlock)(int pid, void *arguments);
} driver;

static struct room_process processes[PROCESSES_MAX];
static int process_count;
static const char *gpus[START_GPUS]; /* their UUIDs */
static unsigned gpu_count;
static uint64_t target; /* where what is brought back comes to */
static struct checkpoint_failure failure;
static bool changed; /* one of the processes at least */
static bool broken;  /* the driver could not restore one, and never will */

/* ---- what happened ---- */

/* The first one counts: what comes after it follows from it. */
static bool checkpoint_fail(enum checkpoint_step step, int number)
{
	static bool failed;

	if (!failed)
		failure = (struct checkpoint_failure){(uint32_t)step, number};
	failed = true;
	return false;
}

static int checkpoint_end(enum checkpoint_end end)
{
	if (end != CHECKPOINT_DONE)
		(void)!write(STDOUT_FILENO, &failure, sizeof(failure));
	return (int)end;
}

/* ---- the processes ---- */

/* Or ended and not waited for yet. */
static bool checkpoint_is_gone(int pid)
{
	char path[32], text[512] = "";
	_cleanup_close_ int fd = -1;
	const char *name_end;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return true;
	name_end = strrchr(text, ')');
	return !name_end || strchr("ZXx", name_end[1] == ' ' ? name_end[2] : 'X');
}

static enum process_state checkpoint_look(int pid)
{
	int state = FAILED, r = driver.state(pid, &state);

	if (r && checkpoint_is_gone(pid))
		return GONE;
	if (r)
		(void)checkpoint_fail(CHECKPOINT_GET_STATE, r);
	return r || state < RUNNING || state > FAILED ? FAILED : (enum process_state)state;
}

/* Has every process that is in the state @from do it. Return: whether all of them have. */
static bool checkpoint_each(enum process_state from, enum checkpoint_step step,
			    int (*act)(const struct room_process *process))
{
	bool done = true;

	for (int i = 0; i < process_count && done; i++) {
		const enum process_state state = checkpoint_look(processes[i].pid);
		const int r = state == from ? act(&processes[i]) : 0;

		changed = changed || (state == from && !r);
		done = state != FAILED;
		if (r && !checkpoint_is_gone(processes[i].pid))
			done = checkpoint_fail(step, r);
	}
	return done;
}

static int checkpoint_lock(const struct room_process *process)
{
	struct lock_arguments arguments = {.timeout_ms = PATIENCE_MS};

	return driver.lock(process->pid, &arguments);
}

static int checkpoint_save(const struct room_process *process)
{
	return driver.save(process->pid, NULL);
}

static int checkpoint_unlock(const struct room_process *process)
{
	return driver.unlock(process->pid, NULL);
}

static bool checkpoint_is_all(enum process_state wanted)
{
	for (int i = 0; i < process_count; i++) {
		const enum process_state state = checkpoint_look(processes[i].pid);

		if (state != wanted && state != GONE)
			return checkpoint_fail(CHECKPOINT_IS_OTHERWISE, (int)state);
	}
	return true;
}

/* ---- where they are ---- */

static void checkpoint_fill_pairs(uint64_t from, struct gpu_pair *ret)
{
	for (unsigned i = 0; i < gpu_count; i++) {
		(void)adapter_read_uuid(gpus[start_place(from, i)], ret[i].old.bytes);
		(void)adapter_read_uuid(gpus[start_place(target, i)], ret[i].new.bytes);
	}
}

static int checkpoint_restore_elsewhere(const struct room_process *process)
{
	struct gpu_pair pairs[START_GPUS];
	struct restore_arguments arguments = {.pairs = pairs, .count = gpu_count};
	int r;

	checkpoint_fill_pairs(orders->places[process->slot], pairs);
	orders->coming[process->slot] = target;
	orders->coming_set[process->slot] = 1;
	r = driver.restore(process->pid, &arguments);
	if (r == 0)
		orders->places[process->slot] = target;
	orders->coming_set[process->slot] = 0;
	return r;
}

/* What was not to be had elsewhere may come back where it was. */
static int checkpoint_restore(const struct room_process *process)
{
	int r;

	if (orders->places[process->slot] != target)
		return checkpoint_restore_elsewhere(process);
	r = driver.restore(process->pid, NULL);
	broken = broken || (r && !checkpoint_is_gone(process->pid));
	return r;
}

/* Their state says whether those are there that were on their way when an earlier one of this program ended. */
static void checkpoint_settle(void)
{
	for (int i = 0; i < process_count; i++) {
		const unsigned slot = processes[i].slot;
		const enum process_state state = orders->coming_set[slot] ? checkpoint_look(processes[i].pid) : GONE;

		if (state == RUNNING || state == LOCKED)
			orders->places[slot] = orders->coming[slot];
		if (state != GONE)
			orders->coming_set[slot] = 0;
	}
}

/* Whether some of those that are not away are there, or elsewhere. */
static bool checkpoint_is_one(uint64_t places, bool there)
{
	for (int i = 0; i < process_count; i++) {
		const enum process_state state = checkpoint_look(processes[i].pid);

		if ((state == RUNNING || state == LOCKED) && (orders->places[processes[i].slot] == places) == there)
			return true;
	}
	return false;
}

/* ---- what can be asked for ---- */

static bool checkpoint_has_room(uint64_t places)
{
	return room_is_there(places, processes, process_count);
}

static bool checkpoint_bring_back(uint64_t places)
{
	target = places;
	return checkpoint_each(SAVED, CHECKPOINT_RESTORE, checkpoint_restore) &&
	       checkpoint_each(LOCKED, CHECKPOINT_UNLOCK, checkpoint_unlock) && checkpoint_is_all(RUNNING);
}

/* All are locked before the first is saved: none of them works on what another has. */
static bool checkpoint_put_away(void)
{
	bool saved;

	if (!checkpoint_each(RUNNING, CHECKPOINT_LOCK_PROCESS, checkpoint_lock))
		return false;
	room_note(processes, process_count);
	saved = checkpoint_each(LOCKED, CHECKPOINT_SAVE, checkpoint_save) && checkpoint_is_all(SAVED);
	room_note_freed(processes, process_count);
	return saved;
}

static bool checkpoint_is_any(enum process_state state)
{
	for (int i = 0; i < process_count; i++)
		if (checkpoint_look(processes[i].pid) == state)
			return true;
	return false;
}

/*
 * Nothing is tried that has no room. What stands still where it was needs none, but to go on elsewhere it must be put
 * away.
 */
static enum checkpoint_end checkpoint_resume(uint64_t to)
{
	if (checkpoint_is_one(to, false) && !checkpoint_put_away())
		return CHECKPOINT_NO_ROOM;
	if (checkpoint_is_any(SAVED) && !checkpoint_has_room(to))
		return CHECKPOINT_NO_ROOM;
	if (checkpoint_bring_back(to))
		return CHECKPOINT_DONE;
	if (broken)
		return CHECKPOINT_LOST;
	return !changed || checkpoint_put_away() ? CHECKPOINT_UNDONE : CHECKPOINT_LOST;
}

/*
 * Has all where they were. @end: what that is then. Where another container has taken what the first ones had there,
 * all are put away, or stand still if the driver does not save the rest of them.
 */
static enum checkpoint_end checkpoint_undo(uint64_t from, enum checkpoint_end end)
{
	if (checkpoint_is_one(from, false) && !checkpoint_put_away())
		return CHECKPOINT_LOST;
	if (!checkpoint_is_any(SAVED) || checkpoint_has_room(from))
		return checkpoint_bring_back(from) ? end : CHECKPOINT_LOST;
	return checkpoint_put_away() || !checkpoint_is_any(FAILED) ? CHECKPOINT_AWAY : CHECKPOINT_LOST;
}

static enum checkpoint_end checkpoint_suspend(uint64_t from)
{
	enum checkpoint_end end = CHECKPOINT_UNDONE;

	if (checkpoint_put_away())
		return CHECKPOINT_DONE;
	/* An earlier one of these programs, which was killed, may have saved some, or left some locked beside them. */
	if (changed || checkpoint_is_any(SAVED) || checkpoint_is_any(LOCKED))
		end = checkpoint_undo(from, CHECKPOINT_UNDONE);
	/* The driver may have saved them at the second try. */
	return end == CHECKPOINT_AWAY && checkpoint_is_all(SAVED) ? CHECKPOINT_DONE : end;
}

/* All are away before the first one comes back elsewhere: so if one is there, nothing but that is left to do. */
static enum checkpoint_end checkpoint_move(uint64_t from, uint64_t to)
{
	if (!checkpoint_is_one(to, true)) {
		room_note(processes, process_count);
		if (!checkpoint_has_room(to))
			return checkpoint_undo(from, CHECKPOINT_NO_ROOM);
		if (!checkpoint_put_away())
			return checkpoint_undo(from, CHECKPOINT_UNDONE);
		if (!checkpoint_has_room(to))
			return checkpoint_undo(from, CHECKPOINT_NO_ROOM);
	}
	if (checkpoint_bring_back(to))
		return CHECKPOINT_DONE;
	return broken ? CHECKPOINT_LOST : checkpoint_undo(from, CHECKPOINT_UNDONE);
}

/* ---- rights ---- */

/*
 * The processes that this asks about are servers of vCUDA, which a container may have taken over: what they answer to
 * the driver's library here may be hostile to it. So it is the user that they are, and of root's rights it keeps two:
 * CAP_SYS_PTRACE, without which /proc does not open other processes' pipes, and CAP_DAC_READ_SEARCH, since the
 * directories of processes that cannot be dumped are root's. So it can read, and nothing more: it writes to what it has
 * and to the pipes of processes of this user, has no network, and neither traces, starts nor signals. (Landlock cannot
 * limit what it reads: the kernel denies a process under Landlock the pipes of all others.)
 */

/* clang-format off */
#define CALLS(X, W) \
	X(W, read) X(W, readv) X(W, pread64) X(W, write) X(W, writev) X(W, lseek) X(W, close) X(W, fstat) X(W, stat) \
	X(W, lstat) X(W, newfstatat) X(W, statx) X(W, access) X(W, faccessat) X(W, faccessat2) X(W, readlink) \
	X(W, readlinkat) X(W, getdents64) X(W, openat) X(W, open) X(W, dup) X(W, pipe2) X(W, poll) X(W, ppoll) \
	X(W, ioctl) X(W, mmap) X(W, munmap) X(W, mprotect) X(W, madvise) X(W, brk) \
	X(W, futex) X(W, set_robust_list) X(W, rseq) X(W, set_tid_address) X(W, sched_yield) X(W, arch_prctl) \
	X(W, sched_getaffinity) X(W, sched_get_priority_max) X(W, sched_get_priority_min) \
	X(W, getpid) X(W, gettid) X(W, getuid) X(W, geteuid) X(W, getgid) X(W, getegid) X(W, getrlimit) X(W, uname) \
	X(W, sysinfo) X(W, getrandom) X(W, exit) X(W, exit_group) \
	X(W, clock_gettime) X(W, clock_getres) X(W, clock_nanosleep) X(W, nanosleep) X(W, gettimeofday) X(W, time) \
	X(W, rt_sigaction) X(W, rt_sigprocmask) X(W, rt_sigreturn) X(W, restart_syscall)

_Static_assert(1 CALLS(SECCOMP_FITS, 0), "there is a word for every call");

static const struct sock_filter calls[] = {
	SECCOMP_BEGIN(CALLS),
	WITH_ONE_OF(fcntl, 1, 1U << F_GETFD | 1U << F_SETFD | 1U << F_GETFL),
	WITH_NULL(prlimit64, 2),
	WITHOUT(clone3),
	REFUSE(EPERM),
};
/* clang-format on */

static int checkpoint_limit_resources(void)
{
	const struct rlimit none = {0, 0}, descriptors = {DESCRIPTORS, DESCRIPTORS};

	if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_FSIZE, &none) < 0 ||
	    setrlimit(RLIMIT_NOFILE, &descriptors) < 0)
		return -errno;
	return 0;
}

/* Keeps two of root's capabilities. By default a process that changes from root to another uid loses them all. */
static int checkpoint_keep_two_rights(uid_t uid)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const uint32_t kept = 1U << CAP_SYS_PTRACE | 1U << CAP_DAC_READ_SEARCH;
	const struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = {{.effective = kept, .permitted = kept}};

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
	    setresuid(uid, uid, uid) < 0 || syscall(SYS_capset, &header, words) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* Becomes the user of the processes. Return: 0; negative errno. */
static int checkpoint_give_up_rights(uid_t uid)
{
	int r = checkpoint_limit_resources();

	if (r == 0)
		r = checkpoint_keep_two_rights(uid);
	return r == 0 ? seccomp_install(calls, ARRAY_SIZE(calls)) : r;
}

/* ---- the beginning ---- */

static bool checkpoint_find(void *library, const char *name, void *ret)
{
	*(void **)ret = dlsym(library, name);
	return *(void **)ret;
}

/* What is loaded as a user with more than a user's rights is root's own. */
static bool checkpoint_may_load(const char *path)
{
	struct stat st;

	return path[0] != '/' || (stat(path, &st) == 0 && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)));
}

static bool checkpoint_load(const char *path)
{
	void *library = dlopen(path[0] ? path : "libcuda.so.1", RTLD_NOW);

	if (!library)
		return checkpoint_fail(CHECKPOINT_LIBRARY, ENOENT);
	if (!checkpoint_find(library, "cuCheckpointProcessGetState", &driver.state) ||
	    !checkpoint_find(library, "cuCheckpointProcessLock", &driver.lock) ||
	    !checkpoint_find(library, "cuCheckpointProcessCheckpoint", &driver.save) ||
	    !checkpoint_find(library, "cuCheckpointProcessRestore", &driver.restore) ||
	    !checkpoint_find(library, "cuCheckpointProcessUnlock", &driver.unlock))
		return checkpoint_fail(CHECKPOINT_LIBRARY, ENOSYS);
	return true;
}

static void checkpoint_read_gpus(char *list)
{
	for (char *gpu = strtok(list, ","); gpu && gpu_count < START_GPUS; gpu = strtok(NULL, ","))
		gpus[gpu_count++] = gpu;
}

/* Return: whether it is what the manager says. */
static bool checkpoint_read_process(const char *text)
{
	struct room_process *process = &processes[process_count];

	if (sscanf(text, "%d:%u", &process->pid, &process->slot) != 2 || process->slot >= START_QUOTA_SLOTS)
		return false;
	process_count++;
	return true;
}

static bool checkpoint_read_arguments(int argc, char **argv)
{
	bool good = argc >= ARGUMENTS_LEAST && argc - ARGUMENTS_LEAST < PROCESSES_MAX &&
		    (streq(argv[1], "suspend") || streq(argv[1], "resume") || streq(argv[1], "move"));

	if (good)
		checkpoint_read_gpus(argv[6]);
	for (int i = ARGUMENTS_LEAST - 1; i < argc && good; i++)
		good = checkpoint_read_process(argv[i]);
	return good;
}

static enum checkpoint_end checkpoint_do(const char *what, uint64_t from, uint64_t to)
{
	checkpoint_settle();
	if (streq(what, "suspend"))
		return checkpoint_suspend(from);
	return streq(what, "resume") ? checkpoint_resume(to) : checkpoint_move(from, to);
}

int main(int argc, char **argv)
{
	void *page;
	int r;

	if (!checkpoint_read_arguments(argc, argv)) {
		(void)fputs("ctr-gpu-vcuda-checkpoint: started by ctr-gpu-vcudad, not by hand; see ctr-gpu-vcudad(8)\n",
			    stderr);
		return CHECKPOINT_USAGE;
	}
	if (!checkpoint_may_load(argv[2])) {
		(void)checkpoint_fail(CHECKPOINT_LIBRARY, EPERM);
		return checkpoint_end(CHECKPOINT_NOT_BEGUN);
	}
	while (flock(CHECKPOINT_LOCK, LOCK_EX) < 0 && errno == EINTR)
		;
	page = mmap(NULL, sizeof(*orders), PROT_READ | PROT_WRITE, MAP_SHARED, CHECKPOINT_LOCK, 0);
	orders = page;
	/* As root, before anything is heard of the processes: it makes nodes that are missing. */
	if (page == MAP_FAILED || !room_open(argv[2], gpus, gpu_count)) {
		(void)checkpoint_fail(CHECKPOINT_MEASURE, 0);
		return checkpoint_end(CHECKPOINT_NOT_BEGUN);
	}
	r = checkpoint_give_up_rights((uid_t)strtoul(argv[3], NULL, 10));
	if (r < 0)
		(void)checkpoint_fail(CHECKPOINT_RIGHTS, -r);
	if (r < 0 || !checkpoint_load(argv[2]))
		return checkpoint_end(CHECKPOINT_NOT_BEGUN);
	return checkpoint_end(checkpoint_do(argv[1], strtoull(argv[4], NULL, 16), strtoull(argv[5], NULL, 16)));
}
