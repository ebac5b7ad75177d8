/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where nvidia-uvm uses HMM, or the host's own page tables, kernels reach all memory of their process, which here is
 * the server. A process can say that they shall not, by flags of its first call to /dev/nvidia-uvm. NVIDIA's library
 * makes that call and has no setting for it; but as every library it looks ioctl() up in the program first.
 */

#include "vcuda/server/uvm_flags.h"

#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { UVM_INITIALIZE = 0x30000001 };

/*
 * NO_HMM is known to all versions; from 610 on it only keeps pages where they are, and NO_ACCESS is what takes access
 * away. Before, that one makes the call fail, and it can be made again.
 */
enum { NO_HMM = 1, NO_ACCESS = 4 };

int uvm_flags_begin(int fd, struct uvm_flags_begin *begin, int (*call)(int fd, struct uvm_flags_begin *begin))
{
	static const uint64_t added[] = {NO_HMM | NO_ACCESS, NO_HMM, 0};
	const uint64_t asked = begin->flags;
	int r = -1;

	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
		begin->flags = asked | added[i];
		begin->status = 0;
		r = call(fd, begin);
		if (r < 0 || begin->status == 0)
			break;
	}
	return r;
}

static int uvm_flags_call(int fd, struct uvm_flags_begin *begin)
{
	return (int)syscall(SYS_ioctl, fd, (unsigned long)UVM_INITIALIZE, begin);
}

/* In place of the C library's, for the driver's libraries. */
__attribute__((visibility("default"))) int uvm_flags_ioctl(int fd, unsigned long request, ...) __asm__("ioctl");

int uvm_flags_ioctl(int fd, unsigned long request, ...)
{
	void *argument;
	va_list list;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (request == UVM_INITIALIZE)
		return uvm_flags_begin(fd, argument, uvm_flags_call);
	return (int)syscall(SYS_ioctl, fd, request, argument);
}
