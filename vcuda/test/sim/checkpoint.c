/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checkpoints, which another process asks for: what is in a device's memory goes to the host's, and comes back. As a
 * real driver 580, this one has a thread for it in each process, named after the pipes by which others ask it, and
 * those are opened through /proc. In sim.conf CHECKPOINT=0: there is none; CHECKPOINT_US=300000: so long takes each
 * way. A file "full" beside the library: the devices have no room for what is to come back; "full-1": that one has none.
 * What is restored by pairs of GPUs is on others afterwards; as with a real one, each GPU is in one pair, and what a process
 * is told of places on the bus stays as it was. The name of the thread says on which GPUs there are contexts.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

enum { STATE_RUNNING, STATE_LOCKED, STATE_CHECKPOINTED, STATE_FAILED };
enum asked { ASK_STATE = 1, ASK_LOCK, ASK_CHECKPOINT, ASK_RESTORE, ASK_UNLOCK };
enum { WRONG_STATE = 401, NO_RIGHT = 304, NOT_READY = 600, NO_CHECKPOINT = 801, ANSWERS = 64 };

struct uuid {
	unsigned char bytes[16];
};

struct pair {
	struct uuid old, new;
};

/* What the arguments of cuCheckpointProcessRestore() are. */
struct restore_arguments {
	struct pair *pairs;
	unsigned count, reserved[13];
};

struct question {
	enum asked what;
	unsigned timeout_ms;
	unsigned count;
	struct pair pairs[SIM_GPUS_MAX];
};

struct answer {
	CUresult result;
	int state;
};

/* What the arguments of cuCheckpointProcessLock() are. */
struct lock_arguments {
	unsigned timeout_ms, reserved[15];
};

static int state;
static bool state_is_broken;
static int questions[2], answers[2];
bool sim_locked;

/* ---- in the process that has the memory ---- */

static bool checkpoint_is_at_work(void)
{
	for (CUstream stream = object_after(NULL, OBJECT_STREAM); stream; stream = object_after(stream, OBJECT_STREAM))
		if (stream->first)
			return true;
	return false;
}

/* Calls wait from here on. What was given to the GPU is done first. */
static CUresult checkpoint_lock(unsigned timeout_ms)
{
	struct timespec until;

	if (state != STATE_RUNNING)
		return WRONG_STATE;
	sim_locked = true;
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (checkpoint_is_at_work())
		if (timeout_ms && pthread_cond_timedwait(&sim_changed, &sim_lock, &until) == ETIMEDOUT) {
			sim_locked = false;
			(void)pthread_cond_broadcast(&sim_changed);
			return NOT_READY;
		} else if (!timeout_ms) {
			(void)pthread_cond_wait(&sim_changed, &sim_lock);
		}
	state = STATE_LOCKED;
	return CUDA_SUCCESS;
}

/* What a real driver does to its descriptors then, it must be let do. */
static CUresult checkpoint_change_descriptors(void)
{
	int pair[2], spare = dup(STDERR_FILENO);
	bool done = spare >= 0 && pipe2(pair, O_CLOEXEC) == 0;

	if (!done)
		return NO_RIGHT;
	done = dup2(pair[0], spare) == spare;
	(void)close(pair[0]);
	(void)close(pair[1]);
	(void)close(spare);
	return done ? CUDA_SUCCESS : NO_RIGHT;
}

static void checkpoint_take_time(void)
{
	(void)usleep((useconds_t)config_number("CHECKPOINT_US", 0));
}

/* Whether something is on a GPU is known by its contexts. */
static pid_t checkpoint_thread;

/* The lock is held. */
void checkpoint_tell_places(void)
{
	char path[64], name[32];
	unsigned places = 0;
	int fd;

	for (CUcontext context = object_after(NULL, OBJECT_CONTEXT); context;
	     context = object_after(context, OBJECT_CONTEXT))
		places |= 1U << context->device->place;
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)checkpoint_thread);
	(void)snprintf(name, sizeof(name), "simcp %d %d %x", questions[1], answers[0], places);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, name, strlen(name));
	(void)close(fd);
}

/* What is in one range, until it is back. */
struct saved {
	struct saved *next;
	uintptr_t start;
	size_t size;
	void *bytes;
};

static struct saved *all_saved;
static size_t saved_of[SIM_GPUS_MAX];

static bool checkpoint_save_range(const struct range *range)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = range->start & -page;
	struct saved *saved = calloc(1, sizeof(*saved));

	if (!saved)
		return false;
	saved->start = first;
	saved->size = (range->start + range->size - first + page - 1) & -page;
	saved->bytes = malloc(saved->size);
	if (!saved->bytes || mprotect((void *)first, saved->size, PROT_READ | PROT_WRITE) < 0)
		return false;
	memcpy(saved->bytes, (void *)first, saved->size);
	(void)madvise((void *)first, saved->size, MADV_DONTNEED);
	(void)mprotect((void *)first, saved->size, PROT_NONE);
	saved->next = all_saved;
	all_saved = saved;
	return true;
}

static CUresult checkpoint_save(void)
{
	CUresult r = state == STATE_LOCKED ? checkpoint_change_descriptors() : WRONG_STATE;

	if (r)
		return r;
	checkpoint_take_time();
	for (CUcontext context = object_after(NULL, OBJECT_CONTEXT); context;
	     context = object_after(context, OBJECT_CONTEXT))
		for (struct range *range = range_next(NULL, context); range; range = range_next(range, context))
			if (range->kind == ADDRESS_MAP_DEVICE && !range->page && !checkpoint_save_range(range)) {
				state = STATE_FAILED;
				return CUDA_ERROR_OUT_OF_MEMORY;
			}
	for (int i = 0; i < device_count(); i++) {
		saved_of[i] = device_get(i)->used;
		device_get(i)->used = 0;
	}
	state = STATE_CHECKPOINTED;
	return CUDA_SUCCESS;
}

static bool checkpoint_is_device(const struct device *device, const struct uuid *uuid)
{
	return memcmp(device->uuid, uuid->bytes, sizeof(device->uuid)) == 0;
}

/* Return: the device that is the GPU of this name now; NULL. */
static const struct device *checkpoint_find_device(const struct uuid *uuid)
{
	for (int i = 0; i < device_count(); i++)
		if (checkpoint_is_device(device_get(i), uuid))
			return device_get(i);
	return NULL;
}

/* Return: the device to which a pair leads; NULL: there is no pair, or none that may be. */
static const struct device *checkpoint_find_new(const struct device *device, const struct question *question)
{
	const struct device *found = NULL;

	for (unsigned i = 0; i < question->count; i++) {
		if (!checkpoint_is_device(device, &question->pairs[i].old))
			continue;
		if (found)
			return NULL;
		found = checkpoint_find_device(&question->pairs[i].new);
	}
	return found && strcmp(found->name, device->name) == 0 ? found : NULL;
}

/* Where each device comes to. Return: whether that is something that a driver does. */
static bool checkpoint_read_pairs(const struct question *question, struct device *ret)
{
	unsigned taken = 0;

	for (int i = 0; i < device_count(); i++) {
		const struct device *device = device_get(i), *new = device;

		if (question->count > 0)
			new = checkpoint_find_new(device, question);
		if (!new || taken & 1U << new->place)
			return false;
		taken |= 1U << new->place;
		ret[i] = *new;
	}
	return question->count == 0 || question->count == (unsigned)device_count();
}

static bool checkpoint_has_room(const struct device *there)
{
	char name[16];

	for (int i = 0; i < device_count(); i++) {
		(void)snprintf(name, sizeof(name), "full-%d", there[i].place);
		if (saved_of[i] > 0 && config_has_file(name))
			return false;
	}
	return !config_has_file("full");
}

static CUresult checkpoint_restore(const struct question *question)
{
	struct device there[SIM_GPUS_MAX];

	if (state != STATE_CHECKPOINTED)
		return WRONG_STATE;
	if (!checkpoint_read_pairs(question, there))
		return CUDA_ERROR_INVALID_VALUE;
	checkpoint_take_time();
	/* As a real driver 580: one for which there was no room can never be restored again. */
	if (!checkpoint_has_room(there) || state_is_broken) {
		const CUresult r = state_is_broken ? NO_RIGHT : CUDA_ERROR_OUT_OF_MEMORY;

		state_is_broken = true;
		return r;
	}
	while (all_saved) {
		struct saved *saved = all_saved;

		(void)mprotect((void *)saved->start, saved->size, PROT_READ | PROT_WRITE);
		memcpy((void *)saved->start, saved->bytes, saved->size);
		all_saved = saved->next;
		free(saved->bytes);
		free(saved);
	}
	for (int i = 0; i < device_count(); i++) {
		struct device *device = device_get(i);

		device->used = saved_of[i];
		device->place = there[i].place;
		device->memory = there[i].memory;
		memcpy(device->uuid, there[i].uuid, sizeof(device->uuid));
	}
	state = STATE_LOCKED;
	checkpoint_tell_places();
	return CUDA_SUCCESS;
}

static CUresult checkpoint_unlock(void)
{
	if (state != STATE_LOCKED)
		return WRONG_STATE;
	state = STATE_RUNNING;
	sim_locked = false;
	(void)pthread_cond_broadcast(&sim_changed);
	return CUDA_SUCCESS;
}

static CUresult checkpoint_do(const struct question *question)
{
	switch (question->what) {
	case ASK_STATE:
		return CUDA_SUCCESS;
	case ASK_LOCK:
		return checkpoint_lock(question->timeout_ms);
	case ASK_CHECKPOINT:
		return checkpoint_save();
	case ASK_RESTORE:
		return checkpoint_restore(question);
	case ASK_UNLOCK:
		return checkpoint_unlock();
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static void *checkpoint_serve(void *nothing)
{
	struct question question;

	/* Whoever makes a context meanwhile waits, or this would write down that there is none. */
	(void)pthread_mutex_lock(&sim_lock);
	checkpoint_thread = gettid();
	checkpoint_tell_places();
	(void)pthread_mutex_unlock(&sim_lock);
	while (read(questions[0], &question, sizeof(question)) == sizeof(question)) {
		struct answer answer = {0};

		(void)pthread_mutex_lock(&sim_lock);
		answer.result = checkpoint_do(&question);
		answer.state = state;
		(void)pthread_mutex_unlock(&sim_lock);
		(void)!write(answers[1], &answer, sizeof(answer));
	}
	return nothing;
}

void checkpoint_begin(void)
{
	pthread_t thread;

	if (config_number("CHECKPOINT", 1) == 0 || pipe2(questions, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0)
		return;
	if (pthread_create(&thread, NULL, checkpoint_serve, NULL) == 0)
		(void)pthread_detach(thread);
}

/* ---- in the process that asks ---- */

static int checkpoint_open(int pid, int number, int flags)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
	return open(path, flags | O_CLOEXEC);
}

/* Return: whether one of its threads is the one that is asked. */
static bool checkpoint_find(int pid, int *ret_ask, int *ret_hear)
{
	char path[64], name[32] = "";
	const struct dirent *entry;
	int ask = -1, hear = -1;
	DIR *threads;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	while (threads && ask < 0 && (entry = readdir(threads))) {
		FILE *file;

		(void)snprintf(path, sizeof(path), "/proc/%d/task/%.16s/comm", pid, entry->d_name);
		file = fopen(path, "re");
		if (file && fgets(name, sizeof(name), file))
			(void)sscanf(name, "simcp %d %d", &ask, &hear);
		if (file)
			(void)fclose(file);
	}
	if (threads)
		(void)closedir(threads);
	*ret_ask = ask < 0 ? -1 : checkpoint_open(pid, ask, O_WRONLY);
	*ret_hear = hear < 0 ? -1 : checkpoint_open(pid, hear, O_RDONLY);
	return ask >= 0;
}

static CUresult checkpoint_ask(int pid, struct question question, int *ret_state)
{
	struct answer answer = {.result = NO_RIGHT};
	int ask, hear;

	if (config_number("CHECKPOINT", 1) == 0)
		return NO_CHECKPOINT;
	if (!checkpoint_find(pid, &ask, &hear))
		return NO_RIGHT;
	if (ask < 0 || hear < 0 || write(ask, &question, sizeof(question)) != sizeof(question) ||
	    read(hear, &answer, sizeof(answer)) != sizeof(answer))
		answer.result = NO_RIGHT;
	(void)close(ask);
	(void)close(hear);
	if (ret_state)
		*ret_state = answer.state;
	return answer.result;
}

CUresult cuCheckpointProcessGetState(int pid, int *ret)
{
	return checkpoint_ask(pid, (struct question){.what = ASK_STATE}, ret);
}

CUresult cuCheckpointProcessLock(int pid, void *arguments)
{
	const struct lock_arguments *lock = arguments;

	return checkpoint_ask(pid, (struct question){.what = ASK_LOCK, .timeout_ms = lock ? lock->timeout_ms : 0},
			      NULL);
}

CUresult cuCheckpointProcessCheckpoint(int pid, void *arguments)
{
	CUresult r = call_fault(__func__);

	(void)arguments;
	return r ? r : checkpoint_ask(pid, (struct question){.what = ASK_CHECKPOINT}, NULL);
}

CUresult cuCheckpointProcessRestore(int pid, void *arguments)
{
	const struct restore_arguments *restore = arguments;
	struct question question = {.what = ASK_RESTORE};

	if (restore && restore->count > SIM_GPUS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	question.count = restore ? restore->count : 0;
	for (unsigned i = 0; i < question.count; i++)
		question.pairs[i] = restore->pairs[i];
	return checkpoint_ask(pid, question, NULL);
}

CUresult cuCheckpointProcessUnlock(int pid, void *arguments)
{
	(void)arguments;
	return checkpoint_ask(pid, (struct question){.what = ASK_UNLOCK}, NULL);
}
