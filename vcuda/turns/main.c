/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-vcuda-turns: decides which server has its turn on a GPU (vcuda/protocol/turns.h). The manager starts it and
 * tells it of containers. It is a user of its own, has no file but what the manager hands it, and ends with it.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "process/seccomp.h"
#include "vcuda/protocol/descriptors.h"
#include "vcuda/turns/turns.h"

/* clang-format off */
#define CALLS(X, W) \
	X(W, poll) X(W, ppoll) X(W, recvmsg) X(W, mmap) X(W, munmap) X(W, mremap) X(W, brk) X(W, madvise) X(W, close) \
	X(W, futex) X(W, clock_nanosleep) X(W, clock_gettime) X(W, rt_sigreturn) X(W, restart_syscall) X(W, exit_group)
_Static_assert(1 CALLS(SECCOMP_FITS, 0), "there is a word for every call");

static const struct sock_filter filter[] = {SECCOMP_BEGIN(CALLS), REFUSE(EPERM)};
/* clang-format on */

/* @ret_fds: -1 where none came. Return: whether there was an order; false: the manager is gone. */
static bool orders_receive(struct turns_order *ret, int ret_fds[2])
{
	return descriptors_receive(TURNS_MANAGER, ret, sizeof(*ret), ret_fds, 2, 0) == sizeof(*ret);
}

/* Its pages stay mapped, without the descriptors. */
static void orders_add(struct turns *turns, const struct turns_order *order, const int fds[2])
{
	void *quota = mmap(NULL, sizeof(struct start_quota), PROT_READ, MAP_SHARED, fds[0], 0);
	void *page = mmap(NULL, sizeof(struct start_turns), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);

	if (quota != MAP_FAILED && page != MAP_FAILED && turns_add(turns, order, quota, page) == 0)
		return;
	if (quota != MAP_FAILED)
		(void)munmap(quota, sizeof(struct start_quota));
	if (page != MAP_FAILED)
		(void)munmap(page, sizeof(struct start_turns));
}

static void orders_drop(struct turns *turns, uint32_t user)
{
	const struct start_quota *quota;
	struct start_turns *page;

	if (!turns_drop(turns, user, &quota, &page))
		return;
	(void)munmap((void *)(uintptr_t)quota, sizeof(*quota));
	(void)munmap(page, sizeof(*page));
}

/* Return: whether the manager is there. */
static bool orders_take(struct turns *turns)
{
	struct turns_order order;
	int fds[2];

	if (!orders_receive(&order, fds))
		return false;
	if (order.kind == TURNS_DROP || order.kind == TURNS_ADD)
		orders_drop(turns, order.user);
	if (order.kind == TURNS_ADD)
		orders_add(turns, &order, fds);
	else if (order.kind == TURNS_WEIGH)
		turns_weigh(turns, order.user, order.share);
	else if (order.kind == TURNS_MEASURE)
		turns_measure(turns, order.share);
	cleanup_closep(&fds[0]);
	cleanup_closep(&fds[1]);
	return true;
}

/* Return: whether there is an order to be read. */
static bool orders_wait(int64_t until)
{
	struct pollfd manager = {.fd = TURNS_MANAGER, .events = POLLIN};
	const int64_t wait = until == INT64_MAX ? 0 : until - clock_now_us();
	struct timespec time = {.tv_sec = wait / 1000000, .tv_nsec = wait % 1000000 * 1000};

	if (wait < 0)
		time = (struct timespec){0};
	return ppoll(&manager, 1, until == INT64_MAX ? NULL : &time, NULL) > 0;
}

static int orders_forbid_rights(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	/* It sleeps for less than what the kernel rounds up to otherwise. */
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	return seccomp_install(filter, ARRAY_SIZE(filter));
}

int main(void)
{
	struct turns *turns = turns_new();
	int64_t again = INT64_MAX;

	if (geteuid() == 0 || !turns || orders_forbid_rights() < 0) {
		(void)fputs("ctr-gpu-vcuda-turns: started by ctr-gpu-vcudad, not by hand; see ctr-gpu-vcudad(8)\n",
			    stderr);
		return EXIT_FAILURE;
	}
	while (!orders_wait(again) || orders_take(turns))
		again = turns_look(turns, clock_now_us());
	/* So that no server waits for a turn that is never given. */
	turns_free(turns);
	return EXIT_SUCCESS;
}
