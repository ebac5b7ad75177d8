/* SPDX-License-Identifier: Apache-2.0 */

#include "root/deeds.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

static void deeds_close_fds(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

/* Pages without a deed are never touched. */
struct deeds *deeds_new(bool shared)
{
	struct deeds *deeds = mmap(NULL, sizeof(*deeds), PROT_READ | PROT_WRITE,
				   MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);

	if (deeds == MAP_FAILED)
		return NULL;
	deeds->proc_self_fd = -1;
	deeds->namespaces[0] = deeds->namespaces[1] = -1;
	return deeds;
}

static int deeds_compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Opened one after the other, their numbers are adjacent: one or two calls close them all. */
static void deeds_close_all(const struct deeds *deeds)
{
	int fds[DEED_FDS * DEEDS_MAX + ARRAY_SIZE(deeds->namespaces) + 1];
	size_t count = 0, end;

	for (size_t i = 0; i < deeds->count; i++)
		for (size_t j = 0; j < DEED_FDS; j++)
			if (deeds->items[i].fds[j] >= 0)
				fds[count++] = deeds->items[i].fds[j];
	for (size_t i = 0; i < ARRAY_SIZE(deeds->namespaces); i++)
		if (deeds->namespaces[i] >= 0)
			fds[count++] = deeds->namespaces[i];
	if (deeds->proc_self_fd >= 0)
		fds[count++] = deeds->proc_self_fd;
	qsort(fds, count, sizeof(*fds), deeds_compare_fds);
	for (size_t start = 0; start < count; start = end) {
		for (end = start + 1; end < count && fds[end] == fds[end - 1] + 1;)
			end++;
		/* Linux 5.9 */
		if (close_range((unsigned)fds[start], (unsigned)fds[end - 1], 0) < 0)
			deeds_close_fds(fds + start, end - start);
	}
}

struct deeds *deeds_free(struct deeds *deeds)
{
	if (!deeds)
		return NULL;
	deeds_close_all(deeds);
	(void)munmap(deeds, sizeof(*deeds));
	return NULL;
}

int deeds_add(struct deeds *deeds, const struct deed *deed, const char *name)
{
	size_t length = name ? strlen(name) : 0;

	if (length >= DEED_NAME_SIZE)
		return -ENAMETOOLONG;
	if (deeds->count == DEEDS_MAX)
		return -E2BIG;
	deeds->items[deeds->count] = *deed;
	if (name)
		memcpy(deeds->items[deeds->count].name, name, length + 1);
	/* The list may be read at any time: in a signal handler, or after this process has ended. */
	__atomic_store_n(&deeds->count, deeds->count + 1, __ATOMIC_RELEASE);
	return 0;
}

void deeds_drop(struct deeds *deeds)
{
	__atomic_store_n(&deeds->count, deeds->count - 1, __ATOMIC_RELEASE);
}

void deeds_mark(struct deeds *deeds, unsigned number)
{
	__atomic_store_n(&deeds->items[deeds->count - 1].number, number, __ATOMIC_RELEASE);
}

/* Appends what there is room for. Return: where it ends. */
static size_t deeds_step_append(struct deeds *deeds, size_t at, const char *text, size_t length)
{
	const size_t room = sizeof(deeds->step) - 1 - at;

	length = length < room ? length : room;
	memcpy(deeds->step + at, text, length);
	return at + length;
}

void deeds_step(struct deeds *deeds, const char *text, const char *name)
{
	const char *gap = name ? strstr(text, "%s") : NULL;
	size_t at;

	if (!deeds)
		return;
	at = deeds_step_append(deeds, 0, text, gap ? (size_t)(gap - text) : strlen(text));
	if (gap) {
		at = deeds_step_append(deeds, at, name, strlen(name));
		at = deeds_step_append(deeds, at, gap + 2, strlen(gap + 2));
	}
	deeds->step[at] = '\0';
}

/* A deed stays on the list until it has been taken back. */
void deeds_undo(struct deeds *deeds)
{
	static const struct owner nobody_else;
	sigset_t all, mask;

	if (!deeds)
		return;
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &mask);
	while (deeds->count > 0) {
		const struct deed *deed = &deeds->items[deeds->count - 1];
		const struct owner *owner = deed->as_owner ? &deeds->owner : &nobody_else;

		owner_begin(owner);
		deed->undo(deeds, deed);
		owner_end(owner);
		deeds_drop(deeds);
		deeds_close_fds(deed->fds, DEED_FDS);
	}
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
}
