/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Has a container have the GPUs that are exclusive, or refuses it. This is done before it has anything of them. What it
 * had before, as by another hook of the same start, stays its own.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "apply/internal.h"
#include "base/fd.h"
#include "lib/container.h"
#include "system/claim_file.h"

enum { UNDO_WAITS = 100, UNDO_NAP_MS = 10, NUMBER_MAX = 16 };

/* ---- taking back ---- */

/* Whether the claim of a GPU is a process's; another container may have the GPU once that has ended. */
static bool claim_gpus_is_of(int directory, const char *gpu, const char *process, size_t length)
{
	const int fd = openat(directory, gpu, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[CONTAINER_KEY_SIZE];
	const ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (fd >= 0)
		(void)close(fd);
	return got > (ssize_t)length && memcmp(text, process, length) == 0 && text[length] == ' ';
}

/* The name of the step is the process's key and the GPU, with '/' between them, at its number. */
static void claim_gpus_undo(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	const struct timespec nap = {.tv_nsec = UNDO_NAP_MS * 1000000L};
	const char *gpu = undo_step->name + undo_step->number + 1;
	const int directory = undo_step->fds[0];

	(void)undo_log;
	for (int i = 0; i < UNDO_WAITS && flock(directory, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; i++)
		(void)nanosleep(&nap, NULL);
	if (claim_gpus_is_of(directory, gpu, undo_step->name, undo_step->number))
		(void)unlinkat(directory, gpu, 0);
	(void)flock(directory, LOCK_UN);
}

/* ---- what is said ---- */

/* What users name a GPU by: the first word of what describes it. */
static int claim_gpus_number_length(const struct plan_claim *gpu)
{
	size_t length = strcspn(gpu->name, " ");

	return length < NUMBER_MAX ? (int)length : NUMBER_MAX;
}

static int claim_gpus_error_taken(const struct plan_claim *gpu, const struct claim *holder, struct err *err)
{
	return err_advise(
		err,
		err_set_advised(err, CTR_GPU_E_EXCLUSIVE,
				("GPU %.64s is exclusive, and the container %.12s has it (process %d).", gpu->name,
				 *holder->container ? holder->container : "of no name",
				 (int)process_key_pid(holder->process)),
				("End that container, or ask for another GPU: ctr-gpu assign shows who has which.")),
		"Root can have it shared: ctr-gpu assign %.*s --shared", claim_gpus_number_length(gpu), gpu->name);
}

/* A user cannot see who has a GPU, and so cannot take it. @r: of claim_file_lock() */
static int claim_gpus_error_lock(const struct plan_claim *gpu, int r, pid_t holder, struct err *err)
{
	errno = -r;
	if (r == -ETIMEDOUT)
		return err_set_advised(
			err, r,
			("who has GPU %.64s is not known, as process %d does not let go of the list: %m.", gpu->name,
			 (int)holder),
			("See what it waits for, or end it; then try again."));
	return err_set_advised(
		err, CTR_GPU_E_EXCLUSIVE,
		("GPU %.64s is exclusive, and only containers of root's engines can have it: %m.", gpu->name),
		("Ask for another GPU; or root can have it shared: ctr-gpu assign %.*s --shared",
		 claim_gpus_number_length(gpu), gpu->name));
}

static int claim_gpus_error_unknown(const struct plan_claim *gpu, struct err *err)
{
	return err_advise(
		err,
		err_set_advised(err, CTR_GPU_E_EXCLUSIVE,
				("GPU %.64s may be \"%.64s\", which is exclusive and which no GPU is known by now.",
				 gpu->name, gpu->may_be),
				("Root can say which is exclusive: ctr-gpu assign %.*s --exclusive",
				 claim_gpus_number_length(gpu), gpu->name)),
		"Or take that name out of \"exclusive\" in " PATH_CONFIG ".");
}

static int claim_gpus_error_nameless(const struct plan_claim *gpu, struct err *err)
{
	return err_set_advised(
		err, CTR_GPU_E_EXCLUSIVE,
		("GPU %.64s is exclusive, so a container has it as long as its first process lives: none is named.",
		 gpu->name),
		("Name it: --pid PID, or start the container by an engine."));
}

/* ---- claiming ---- */

/* A lock belongs to a descriptor and its copies, so the step has one of its own. */
static int claim_gpus_write(const struct claim_gpus *gpus, const char *gpu, const struct claim *claim, int directory)
{
	struct undo_step undo_step = {.undo = claim_gpus_undo, .fds = {-1, -1, -1}};
	char name[UNDO_STEP_NAME_SIZE];
	int r;

	undo_step.number = (unsigned)strlen(claim->process);
	(void)snprintf(name, sizeof(name), "%s/%s", claim->process, gpu);
	undo_step.fds[0] = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (undo_step.fds[0] < 0)
		return -errno;
	r = undo_log_add(gpus->undo_log, &undo_step, name);
	if (r < 0) {
		(void)close(undo_step.fds[0]);
		return r;
	}
	r = claim_file_write(directory, gpu, claim);
	return r == 0 ? strv_add(gpus->ret_taken, gpu) : r;
}

static int claim_gpus_take_one(const struct claim_gpus *gpus, const struct plan_claim *gpu, const struct claim *claim,
			       int directory)
{
	struct claim holder;
	int r = claim_file_read(directory, gpu->gpu, &holder);

	if (r == 0)
		return streq(holder.process, claim->process) ? 0 : claim_gpus_error_taken(gpu, &holder, gpus->err);
	if (r == -ENOENT)
		r = claim_gpus_write(gpus, gpu->gpu, claim, directory);
	return r < 0 ? err_set(gpus->err, r, "cannot read and write down who has GPU %.64s: %m", gpu->name) : 0;
}

int claim_gpus_take(const struct claim_gpus *gpus)
{
	const struct ctr_gpu_container *container = gpus->container;
	const struct plan *plan = gpus->plan;
	struct claim claim = {.since = time(NULL)};
	_cleanup_close_ int directory = -1;
	pid_t holder = 0;
	int r;

	for (size_t i = 0; i < plan->claim_count; i++)
		if (plan->claims[i].may_be)
			return claim_gpus_error_unknown(&plan->claims[i], gpus->err);
	if (container->process < 0)
		return claim_gpus_error_nameless(&plan->claims[0], gpus->err);
	r = container_key(container, claim.process);
	if (r < 0)
		return err_set(gpus->err, r, "cannot look at process %d: %m", (int)container->pid);
	(void)snprintf(claim.container, sizeof(claim.container), "%s", container->id ? container->id : "");
	str_make_printable(claim.container);
	undo_log_progress(gpus->undo_log, "looking at who has exclusive GPUs", NULL);
	directory = claim_file_lock(&holder);
	if (directory < 0)
		return claim_gpus_error_lock(&plan->claims[0], directory, holder, gpus->err);
	for (size_t i = 0; i < plan->claim_count && r == 0; i++)
		r = claim_gpus_take_one(gpus, &plan->claims[i], &claim, directory);
	return r;
}

void claim_gpus_release(const struct ctr_gpu_container *container, const json_t *names)
{
	_cleanup_close_ int directory = -1;
	char process[CONTAINER_KEY_SIZE];
	const json_t *name;
	pid_t holder;
	size_t i;

	if (json_array_size(names) == 0 || container_key(container, process) < 0)
		return;
	directory = claim_file_lock(&holder);
	json_array_foreach (names, i, name) {
		const char *gpu = json_string_value(name);
		struct claim claim;

		if (directory >= 0 && gpu && claim_file_read(directory, gpu, &claim) == 0 &&
		    streq(claim.process, process))
			(void)claim_file_remove(directory, gpu);
	}
}
