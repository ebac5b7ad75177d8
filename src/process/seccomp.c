/* SPDX-License-Identifier: Apache-2.0 */

#include "process/seccomp.h"

#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int seccomp_fill(struct sock_filter filter[SECCOMP_MAX], const struct sock_filter *table, size_t count)
{
	if (count > SECCOMP_MAX)
		return -E2BIG;
	memcpy(filter, table, count * sizeof(*filter));
	for (size_t i = 0; i < count; i++)
		if (filter[i].code == (BPF_JMP | BPF_JEQ | BPF_K) && filter[i].k == SECCOMP_OWN_PID)
			filter[i].k = (uint32_t)getpid();
	return 0;
}

int seccomp_install_everywhere(const struct sock_filter *table, size_t count)
{
	struct sock_filter filter[SECCOMP_MAX];
	const struct sock_fprog program = {(unsigned short)count, filter};
	int r = seccomp_fill(filter, table, count);
	long thread;

	if (r < 0)
		return r;
	thread = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	return thread < 0 ? -errno : thread > 0 ? -EBUSY : 0;
}

int seccomp_install(const struct sock_filter *table, size_t count)
{
	struct sock_filter filter[SECCOMP_MAX];
	const struct sock_fprog program = {(unsigned short)count, filter};
	int r = seccomp_fill(filter, table, count);

	if (r < 0)
		return r;
	/* Not seccomp(2): systemd's list @system-service lacks it, and a unit may be limited to that list. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}
