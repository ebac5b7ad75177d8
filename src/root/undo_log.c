/* SPDX-License-Identifier: Apache-2.0 */

#include "root/undo_log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The signal at the parent's end is forgotten when an identity changes (commit_creds() in kernel/cred.c). */
static int parent_signal;
static pid_t parent;

void mapped_root_begin(const struct mapped_root *owner)
{
	if (!owner->other)
		return;
	(void)prctl(PR_GET_PDEATHSIG, &parent_signal);
	parent = getppid();
	(void)setfsgid(owner->gid);
	(void)setfsuid(owner->uid);
}

void mapped_root_end(const struct mapped_root *owner)
{
	if (!owner->other)
		return;
	(void)setfsuid(geteuid());
	(void)setfsgid(getegid());
	if (parent_signal == 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, parent_signal);
	if (getppid() != parent)
		(void)kill(getpid(), parent_signal);
}

static void undo_log_close_fds(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

/* Which of its descriptors are its own: all behind this one. */
static size_t undo_step_first_own(const struct undo_step *undo_step)
{
	return undo_step->borrows ? 1 : 0;
}

/* Pages without a step are never touched. */
struct undo_log *undo_log_new(bool shared)
{
	struct undo_log *undo_log = mmap(NULL, sizeof(*undo_log), PROT_READ | PROT_WRITE,
					 MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);

	if (undo_log == MAP_FAILED)
		return NULL;
	undo_log->proc_self_fd = -1;
	undo_log->namespaces[0] = undo_log->namespaces[1] = -1;
	return undo_log;
}

static int undo_log_compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Opened one after the other, their numbers are adjacent: one or two calls close them all. */
static void undo_log_close_all(const struct undo_log *undo_log)
{
	int fds[UNDO_STEP_FDS * UNDO_LOG_MAX + ARRAY_SIZE(undo_log->namespaces) + 1];
	size_t count = 0, end;

	for (size_t i = 0; i < undo_log->count; i++)
		for (size_t j = undo_step_first_own(&undo_log->items[i]); j < UNDO_STEP_FDS; j++)
			if (undo_log->items[i].fds[j] >= 0)
				fds[count++] = undo_log->items[i].fds[j];
	for (size_t i = 0; i < ARRAY_SIZE(undo_log->namespaces); i++)
		if (undo_log->namespaces[i] >= 0)
			fds[count++] = undo_log->namespaces[i];
	if (undo_log->proc_self_fd >= 0)
		fds[count++] = undo_log->proc_self_fd;
	qsort(fds, count, sizeof(*fds), undo_log_compare_fds);
	for (size_t start = 0; start < count; start = end) {
		for (end = start + 1; end < count && fds[end] == fds[end - 1] + 1;)
			end++;
		/* Linux 5.9 */
		if (close_range((unsigned)fds[start], (unsigned)fds[end - 1], 0) < 0)
			undo_log_close_fds(fds + start, end - start);
	}
}

struct undo_log *undo_log_free(struct undo_log *undo_log)
{
	if (!undo_log)
		return NULL;
	undo_log_close_all(undo_log);
	(void)munmap(undo_log, sizeof(*undo_log));
	return NULL;
}

int undo_log_add(struct undo_log *undo_log, const struct undo_step *undo_step, const char *name)
{
	size_t size = name ? strlen(name) + 1 : 0;
	char *copy = undo_log->names + undo_log->names_size;

	if (size > UNDO_STEP_NAME_SIZE)
		return -ENAMETOOLONG;
	if (undo_log->count == UNDO_LOG_MAX)
		return -E2BIG;
	undo_log->items[undo_log->count] = *undo_step;
	undo_log->items[undo_log->count].name = name ? memcpy(copy, name, size) : "";
	undo_log->names_size += size;
	/* The list may be read at any time: in a signal handler, or after this process has ended. */
	__atomic_store_n(&undo_log->count, undo_log->count + 1, __ATOMIC_RELEASE);
	return 0;
}

void undo_log_pop(struct undo_log *undo_log)
{
	const char *name = undo_log->items[undo_log->count - 1].name;

	if (*name)
		undo_log->names_size = (size_t)(name - undo_log->names);
	__atomic_store_n(&undo_log->count, undo_log->count - 1, __ATOMIC_RELEASE);
}

void undo_log_set_number(struct undo_log *undo_log, unsigned number)
{
	__atomic_store_n(&undo_log->items[undo_log->count - 1].number, number, __ATOMIC_RELEASE);
}

void undo_log_note(struct undo_log *undo_log, char kind, const char *path, const char *detail)
{
	const size_t at = undo_log->made_size, path_size = strlen(path) + 1, detail_size = strlen(detail) + 1;

	if (1 + path_size + detail_size > sizeof(undo_log->made) - at)
		return;
	undo_log->made[at] = kind;
	memcpy(undo_log->made + at + 1, path, path_size);
	memcpy(undo_log->made + at + 1 + path_size, detail, detail_size);
	undo_log->made_count++;
	undo_log->made_size = at + 1 + path_size + detail_size;
}

/* Appends what there is room for. Return: where it ends. */
static size_t undo_log_progress_append(struct undo_log *undo_log, size_t at, const char *text, size_t length)
{
	const size_t room = sizeof(undo_log->step) - 1 - at;

	length = length < room ? length : room;
	memcpy(undo_log->step + at, text, length);
	return at + length;
}

void undo_log_progress(struct undo_log *undo_log, const char *text, const char *name)
{
	const char *gap = name ? strstr(text, "%s") : NULL;
	size_t at;

	if (!undo_log)
		return;
	at = undo_log_progress_append(undo_log, 0, text, gap ? (size_t)(gap - text) : strlen(text));
	if (gap) {
		at = undo_log_progress_append(undo_log, at, name, strlen(name));
		at = undo_log_progress_append(undo_log, at, gap + 2, strlen(gap + 2));
	}
	undo_log->step[at] = '\0';
}

void undo_log_limit_descriptors(bool work, bool alone)
{
	struct rlimit limit;
	rlim_t most;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	most = limit.rlim_max > UNDO_LOG_DESCRIPTORS ? limit.rlim_max - UNDO_LOG_DESCRIPTORS : 0;
	if (work && (limit.rlim_cur <= most || (alone && most >= UNDO_LOG_WORK_DESCRIPTORS)))
		return;
	limit.rlim_cur = work ? most : limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* A step stays on the list until it has been taken back. */
void undo_log_undo(struct undo_log *undo_log)
{
	static const struct mapped_root nobody_else;
	struct rlimit limit;
	sigset_t all, mask;
	bool limited;

	if (!undo_log)
		return;
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &mask);
	/* The work may have failed because it had all the descriptors that it may have. */
	limited = getrlimit(RLIMIT_NOFILE, &limit) == 0;
	undo_log_limit_descriptors(false, false);
	/* A signal may have come between mapped_root_begin() and its end. */
	(void)setfsuid(geteuid());
	(void)setfsgid(getegid());
	while (undo_log->count > 0) {
		const struct undo_step *undo_step = &undo_log->items[undo_log->count - 1];
		const struct mapped_root *owner = undo_step->as_owner ? &undo_log->owner : &nobody_else;
		const size_t own = undo_step_first_own(undo_step);

		mapped_root_begin(owner);
		undo_step->undo(undo_log, undo_step);
		mapped_root_end(owner);
		undo_log_pop(undo_log);
		undo_log_close_fds(undo_step->fds + own, UNDO_STEP_FDS - own);
	}
	if (limited)
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
}
