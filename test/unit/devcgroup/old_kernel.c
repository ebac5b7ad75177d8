/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A thread with a seccomp filter of its own runs the function, and the one that waits for it decides on its system calls:
 * whether BPF_F_REPLACE is asked for stands in memory, where a filter cannot look.
 */

#include "old_kernel.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field)                                                                  \
	{                                                                            \
		BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, field) \
	}
#define IF_EQUAL(value, yes, no)                                \
	{                                                       \
		BPF_JMP | BPF_JEQ | BPF_K, (yes), (no), (value) \
	}
#define ANSWER(value)                          \
	{                                      \
		BPF_RET | BPF_K, 0, 0, (value) \
	}

struct job {
	void (*function)(void *);
	void *argument;
	int pipe[2]; /* the listener's number, then the end */
};

static int install_filter(void)
{
	static struct sock_filter filter[] = {
		LOAD(nr),
		IF_EQUAL(SYS_openat2, 4, 0),
		IF_EQUAL(SYS_bpf, 0, 2),
		LOAD(args[0]),
		IF_EQUAL(BPF_PROG_ATTACH, 1, 0),
		ANSWER(SECCOMP_RET_ALLOW),
		ANSWER(SECCOMP_RET_USER_NOTIF),
	};
	static const struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void *run(void *data)
{
	struct job *job = data;
	int listener = install_filter();

	if (write(job->pipe[1], &listener, sizeof(listener)) != sizeof(listener) || listener < 0)
		return NULL;
	job->function(job->argument);
	(void)!write(job->pipe[1], &listener, sizeof(listener));
	return NULL;
}

static int decide(const struct seccomp_notif *call)
{
	/* The thread is of our address space. */
	const union bpf_attr *attr = (const union bpf_attr *)(uintptr_t)call->data.args[1];

	if (call->data.nr == SYS_openat2)
		return -ENOSYS;
	return attr->attach_flags & BPF_F_REPLACE ? -EINVAL : 0;
}

static unsigned supervise(int listener, int end)
{
	struct pollfd fds[2] = {{listener, POLLIN, 0}, {end, POLLIN, 0}};
	unsigned refused = 0;

	while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
		struct seccomp_notif call;
		struct seccomp_notif_resp answer = {0};

		memset(&call, 0, sizeof(call));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
			continue;
		answer.id = call.id;
		answer.error = decide(&call);
		answer.flags = answer.error ? 0 : (unsigned)SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		refused += answer.error != 0;
		(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	return refused;
}

_Bool old_kernel_run(void (*function)(void *), void *argument, unsigned *ret_refused)
{
	struct job job = {.function = function, .argument = argument};
	int listener = -1;
	pthread_t thread;

	if (pipe(job.pipe) < 0 || pthread_create(&thread, NULL, run, &job) != 0)
		return 0;
	(void)!read(job.pipe[0], &listener, sizeof(listener));
	if (listener >= 0) {
		*ret_refused = supervise(listener, job.pipe[0]);
		(void)close(listener);
	}
	(void)pthread_join(thread, NULL);
	(void)close(job.pipe[0]);
	(void)close(job.pipe[1]);
	return listener >= 0;
}
