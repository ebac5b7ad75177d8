/* SPDX-License-Identifier: Apache-2.0 */

/* Before and after cuInit, and after fork. */

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void init_before(void)
{
	CUdeviceptr pointer;
	CUcontext current;
	int count;

	IS(3, cu.cuDeviceGetCount(&count));
	IS(3, cu.cuDeviceGet(&count, 0));
	IS(3, cu.cuCtxGetCurrent(&current));
	IS(3, cu.cuMemAlloc_v2(&pointer, 4096));
	IS(3, cu.cuCtxSynchronize());
	IS(3, cu.cuDevicePrimaryCtxRetain(&current, 0));
}

static void init_version(void)
{
	int version = 0;

	OK(cu.cuDriverGetVersion(&version));
	TRUE(version >= 12000);
	IS(1, cu.cuDriverGetVersion(NULL));
}

static void init_flags(void)
{
	int count;

	IS(1, cu.cuInit(1));
	IS(3, cu.cuDeviceGetCount(&count));
}

static void init_twice(void)
{
	OK(cu.cuInit(0));
	OK(cu.cuInit(0));
	IS(1, cu.cuInit(1));
}

/* What a child of a process that called cuInit gets. */
static int init_child(void)
{
	CUcontext current;
	int count, mask = 0;

	mask |= cu.cuDeviceGetCount(&count) != 3;
	mask |= (cu.cuCtxGetCurrent(&current) != 3) << 1;
	mask |= (cu.cuCtxSynchronize() != 3) << 2;
	mask |= (cu.cuInit(0) != 3) << 3;
	mask |= (cu.cuDriverGetVersion(&count) != 0) << 4;
	return mask;
}

static void init_fork(void)
{
	int status = 0, count = 0;
	pid_t pid;

	OK(cu.cuInit(0));
	OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
	OK(cu.cuCtxSetCurrent(context));
	pid = fork();
	if (pid == 0)
		_exit(init_child());
	(void)waitpid(pid, &status, 0);
	NOTE(WIFEXITED(status));
	want(WEXITSTATUS(status), 0);
	OK(cu.cuDeviceGetCount(&count));
	OK(cu.cuCtxSynchronize());
	(void)check_alloc(4096);
}

/* A child made before cuInit is a process like any other. */
static void init_fork_before(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) ? 1 : 0);
	(void)waitpid(pid, &status, 0);
	want(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
	OK(cu.cuInit(0));
}

const struct check init_checks[] = {
	{"calls before cuInit", init_before, true},
	{"the version without cuInit", init_version, true},
	{"flags", init_flags, true},
	{"twice", init_twice, true},
	{"a child after it, and its parent", init_fork, true},
	{"a child before it", init_fork_before, true},
	END,
};
