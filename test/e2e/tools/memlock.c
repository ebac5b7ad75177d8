/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a program to which setting a limit on locked memory always seems to succeed. crun raises that limit before it loads
 * a device program, which kernels since 5.11 no longer ask for and a root without CAP_SYS_RESOURCE may not do.
 *
 *	memlock PROGRAM [ARGUMENT…]
 */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))

int main(int argc, char **argv)
{
	/* prlimit64(pid, resource, new, old) with resource RLIMIT_MEMLOCK and a new limit: 0 without doing it. */
	struct sock_filter filter[] = {
		LOAD(nr),
		IF_EQUAL(SYS_prlimit64, 0, 6),
		LOAD(args[1]),
		IF_EQUAL(RLIMIT_MEMLOCK, 0, 4),
		LOAD(args[2]),
		IF_EQUAL(0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (argc < 2) {
		fprintf(stderr, "usage: memlock PROGRAM [ARGUMENT…]\n");
		return 2;
	}
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		perror("memlock: seccomp");
		return 1;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
