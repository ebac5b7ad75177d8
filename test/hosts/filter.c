/* SPDX-License-Identifier: Apache-2.0 */

#include "filter.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "which architecture?"
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

int filter_install(bool opens)
{
	/* 32-bit programs are left alone: their ioctl is another number, and none of them uses GPU-PV. */
	struct sock_filter program[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, 7),
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, opens ? __NR_openat : __NR_ioctl, opens ? 4 : 0, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ioctl, 0, 4),
		LOAD(args[1]), /* the low half, as x86 and arm64 lay it out: ioctl codes have 32 bits */
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xFF00),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LX_DX_MAGIC << 8, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]), .filter = program};
	/* A signal must not make a client repeat a call that was answered already (Linux 5.19). */
	unsigned flags[] = {SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER};
	long listener = -1;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && listener < 0; i++)
		listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[i], &filter);
	return listener < 0 ? -errno : (int)listener;
}
