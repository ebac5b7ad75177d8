/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-vcuda-checkpoint: has NVIDIA's driver put away what servers of vCUDA have on their GPUs, or bring it back.
 * The driver does it in each of these processes itself; this program only asks, which needs rights that servers do not
 * have. It carries on from whatever state they are in.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/version.h"
#include "vcuda/checkpoint/rights.h"
#include "vcuda/checkpoint/room.h"
#include "vcuda/protocol/checkpoint.h"
#include "vcuda/protocol/start.h"

VERSION_NOTE();

enum { ARGUMENTS_LEAST = 5, PROCESSES_MAX = 256, PATIENCE_MS = 10000 };

/* Of a process, as cuCheckpointProcessGetState() has it. */
enum process_state { RUNNING, LOCKED, SAVED, FAILED, GONE };

/* What the driver's functions take; zeros beyond what is used are "as usual". */
struct lock_arguments {
	unsigned timeout_ms, reserved[15];
};

static struct {
	int (*state)(int pid, int *ret);
	int (*lock)(int pid, struct lock_arguments *arguments);
	int (*save)(int pid, void *arguments);
	int (*restore)(int pid, void *arguments);
	int (*unlock)(int pid, void *arguments);
} driver;

static int processes[PROCESSES_MAX];
static int process_count;
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
static bool checkpoint_each(enum process_state from, enum checkpoint_step step, int (*act)(int pid))
{
	bool done = true;

	for (int i = 0; i < process_count && done; i++) {
		const enum process_state state = checkpoint_look(processes[i]);
		const int r = state == from ? act(processes[i]) : 0;

		changed = changed || (state == from && !r);
		done = state != FAILED;
		if (r && !checkpoint_is_gone(processes[i]))
			done = checkpoint_fail(step, r);
	}
	return done;
}

static int checkpoint_lock(int pid)
{
	struct lock_arguments arguments = {.timeout_ms = PATIENCE_MS};

	return driver.lock(pid, &arguments);
}

static int checkpoint_save(int pid)
{
	return driver.save(pid, NULL);
}

static int checkpoint_restore(int pid)
{
	const int r = driver.restore(pid, NULL);

	broken = broken || (r && !checkpoint_is_gone(pid));
	return r;
}

static int checkpoint_unlock(int pid)
{
	return driver.unlock(pid, NULL);
}

static bool checkpoint_is_all(enum process_state wanted)
{
	for (int i = 0; i < process_count; i++) {
		const enum process_state state = checkpoint_look(processes[i]);

		if (state != wanted && state != GONE)
			return checkpoint_fail(CHECKPOINT_IS_OTHERWISE, (int)state);
	}
	return true;
}

static bool checkpoint_bring_back(void)
{
	return checkpoint_each(SAVED, CHECKPOINT_RESTORE, checkpoint_restore) &&
	       checkpoint_each(LOCKED, CHECKPOINT_UNLOCK, checkpoint_unlock) && checkpoint_is_all(RUNNING);
}

/* All are locked before the first is saved: none of them works on what another has. */
static bool checkpoint_put_away(void)
{
	if (!checkpoint_each(RUNNING, CHECKPOINT_LOCK_PROCESS, checkpoint_lock))
		return false;
	room_note(processes, process_count);
	if (!checkpoint_each(LOCKED, CHECKPOINT_SAVE, checkpoint_save) || !checkpoint_is_all(SAVED))
		return false;
	room_note_freed();
	return true;
}

static enum checkpoint_end checkpoint_suspend(void)
{
	if (checkpoint_put_away())
		return CHECKPOINT_DONE;
	return !changed || checkpoint_bring_back() ? CHECKPOINT_UNDONE : CHECKPOINT_LOST;
}

/* Nothing is tried that has no room. */
static enum checkpoint_end checkpoint_resume(void)
{
	if (!room_is_there())
		return CHECKPOINT_NO_ROOM;
	if (checkpoint_bring_back())
		return CHECKPOINT_DONE;
	if (broken)
		return CHECKPOINT_LOST;
	return !changed || checkpoint_put_away() ? CHECKPOINT_UNDONE : CHECKPOINT_LOST;
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

int main(int argc, char **argv)
{
	const bool suspend = argc > 1 && streq(argv[1], "suspend");
	void *page;
	int r;

	if (argc < ARGUMENTS_LEAST || argc - ARGUMENTS_LEAST >= PROCESSES_MAX ||
	    (!suspend && !streq(argv[1], "resume"))) {
		(void)fputs("ctr-gpu-vcuda-checkpoint: started by ctr-gpu-vcudad, not by hand; see ctr-gpu-vcudad(8)\n",
			    stderr);
		return CHECKPOINT_USAGE;
	}
	for (int i = 4; i < argc; i++)
		processes[process_count++] = atoi(argv[i]);
	if (!checkpoint_may_load(argv[2])) {
		(void)checkpoint_fail(CHECKPOINT_LIBRARY, EPERM);
		return checkpoint_end(CHECKPOINT_UNDONE);
	}
	while (flock(CHECKPOINT_LOCK, LOCK_EX) < 0 && errno == EINTR)
		;
	page = mmap(NULL, sizeof(struct start_orders), PROT_READ | PROT_WRITE, MAP_SHARED, CHECKPOINT_LOCK, 0);
	/* As root, before anything is heard of the processes: it makes nodes that are missing. */
	if (page == MAP_FAILED || !room_open(argv[2], page)) {
		(void)checkpoint_fail(CHECKPOINT_MEASURE, 0);
		return checkpoint_end(CHECKPOINT_UNDONE);
	}
	r = rights_give_up((uid_t)strtoul(argv[3], NULL, 10));
	if (r < 0)
		(void)checkpoint_fail(CHECKPOINT_RIGHTS, -r);
	if (r < 0 || !checkpoint_load(argv[2]))
		return checkpoint_end(CHECKPOINT_UNDONE);
	return checkpoint_end(suspend ? checkpoint_suspend() : checkpoint_resume());
}
