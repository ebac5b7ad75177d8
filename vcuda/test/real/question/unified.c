/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where NVIDIA's nvidia-uvm uses HMM, kernels reach all memory of their process. A process says that they shall not by a
 * flag of the first call to /dev/nvidia-uvm, which the driver's library makes. Its ioctl() is looked up in the program
 * first, as that of every library, so the program's own can add the flag.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "question.h"

enum { UVM_INITIALIZE = 0x30000001, SECRET = 0x5e5e5e5e };

struct uvm_initialize {
	uint64_t flags;
	uint32_t status;
};

enum { NO_HMM = 1, NO_ACCESS = 4, AGAIN = 1 << 16 };

static uint64_t added;
static struct uvm {
	uint64_t flags; /* the driver's */
	uint32_t status, calls;
} uvm;

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	struct uvm_initialize *initialize;
	void *argument;
	va_list list;
	long r;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	initialize = argument;
	if (request == UVM_INITIALIZE) {
		uvm.calls++;
		uvm.flags = initialize->flags;
		initialize->flags |= added & ~(uint64_t)AGAIN;
	}
	r = syscall(SYS_ioctl, fd, request, argument);
	/* As the server does: one flag fewer for a module that knows it not. */
	if (request == UVM_INITIALIZE && added & AGAIN && initialize->status) {
		initialize->flags = uvm.flags | NO_HMM;
		r = syscall(SYS_ioctl, fd, request, argument);
	}
	if (request == UVM_INITIALIZE)
		uvm.status = initialize->status;
	return (int)r;
}

struct start {
	struct uvm uvm;
	int init, retained, pageable, by_tables, managed, called, waited, managed_works;
	uint32_t read;
};

static int attribute(int number)
{
	int value = -1;

	(void)cu.cuDeviceGetAttribute(&value, number, 0);
	return value;
}

/* A kernel that reads what the driver was never told of, which is the last that is done. */
static void start_load(struct start *start)
{
	CUdeviceptr from, to = 0, managed = 0;
	uint32_t *own = malloc(4096);
	void *locked = NULL;

	*own = SECRET;
	from = (CUdeviceptr)(uintptr_t)own;
	(void)cu.cuMemHostAlloc(&locked, 4096, 0);
	to = (CUdeviceptr)(uintptr_t)locked;
	if (cu.cuMemAllocManaged(&managed, 4096, 1) == CUDA_SUCCESS) {
		*(uint32_t *)(uintptr_t)managed = 7;
		(void)cu.cuLaunchKernel(driver_function(kernels_ptx, "load"), 1, 1, 1, 1, 1, 1, 0, NULL,
					(void *[]){&managed, &to}, NULL);
		start->managed_works = cu.cuCtxSynchronize() == CUDA_SUCCESS && *(uint32_t *)locked == 7;
	}
	start->called = cu.cuLaunchKernel(driver_function(kernels_ptx, "load"), 1, 1, 1, 1, 1, 1, 0, NULL,
					  (void *[]){&from, &to}, NULL);
	start->waited = cu.cuCtxSynchronize();
	start->read = *(uint32_t *)locked;
}

static void start_with(const void *about, void *ret)
{
	struct start *start = ret;
	CUcontext context = NULL;

	added = *(const uint64_t *)about;
	driver_open();
	start->init = cu.cuInit(0);
	start->uvm = uvm;
	if (start->init)
		return;
	start->pageable = attribute(88);
	start->by_tables = attribute(100);
	start->managed = attribute(83);
	start->retained = cu.cuDevicePrimaryCtxRetain(&context, 0);
	start->uvm = uvm;
	if (start->retained == CUDA_SUCCESS && cu.cuCtxSetCurrent(context) == CUDA_SUCCESS)
		start_load(start);
}

static void show_start(uint64_t flags, const struct start *start, int signal)
{
	remark("with flags %#llx added: %u calls, the driver's own flags %#llx, status %#x; cuInit %d, context %d; pageable %d, "
	       "by the host's tables %d, managed %d (works: %d); a kernel that loads: %d, %d, %s; signal %d",
	       (unsigned long long)flags, start->uvm.calls, (unsigned long long)start->uvm.flags, start->uvm.status,
	       start->init, start->retained, start->pageable, start->by_tables, start->managed, start->managed_works,
	       start->called, start->waited, start->read == SECRET ? "it has it" : "it has it not", signal);
}

static void show_file(const char *path)
{
	char text[256] = "";
	FILE *file = fopen(path, "re");

	if (file && fgets(text, sizeof(text), file))
		text[strcspn(text, "\n")] = '\0';
	remark("%s: %s", path, file ? text : strerror(errno));
	if (file)
		(void)fclose(file);
}

void ask_unified(int argc, char **argv)
{
	static const uint64_t flags[] = {0, NO_HMM, NO_ACCESS, NO_HMM | NO_ACCESS | AGAIN, 2};
	static struct start starts[5];

	(void)argc;
	(void)argv;
	show_file("/proc/driver/nvidia/version");
	show_file("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm");
	show_file("/sys/module/nvidia_uvm/parameters/uvm_ats_mode");
	show_file("/proc/version");
	for (int i = 0; i < 5; i++)
		show_start(flags[i], &starts[i], alone(start_with, &flags[i], &starts[i], sizeof(starts[i])));
	answer(starts[0].read != SECRET, "a kernel does not read memory that the driver was never told of");
	answer(starts[0].uvm.calls > 0, "the driver's call to nvidia-uvm goes through the program's own ioctl()");
	answer(starts[1].uvm.calls > 0 && starts[1].uvm.status == 0 && starts[1].retained == 0 &&
		       starts[1].waited == 700,
	       "with HMM switched off by its flag the driver works, and such a kernel ends with 700");
	answer(starts[1].pageable == 0, "and it says that memory is not reached");
	answer(starts[3].uvm.calls > 0 && starts[3].uvm.status == 0 && starts[3].retained == 0,
	       "a call that is refused for a flag that the module does not know can be made again");
}
