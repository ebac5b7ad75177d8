/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory and events that one process gives another: by CUDA's handles of 64 bytes, and by descriptors; as processes of the
 * same kind, and as servers of vCUDA are: another user, no network, no way to see each other, few system calls.
 */

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "question.h"

enum { CONFINED = 1, FILTERED = 2, BYTES = 256 << 20, DEADLINE = 60, DESCRIPTOR = 1 };

struct ipc {
	char bytes[64];
};

static CUresult (*ipc_get)(struct ipc *ret, CUdeviceptr pointer);
static CUresult (*ipc_open)(CUdeviceptr *ret, struct ipc handle, unsigned flags);
static CUresult (*ipc_close)(CUdeviceptr pointer);
static CUresult (*ipc_get_event)(struct ipc *ret, CUevent event);
static CUresult (*ipc_open_event)(CUevent *ret, struct ipc handle);
static CUresult (*import)(CUmemGenericAllocationHandle *ret, void *descriptor, int type);

static void sharing_find(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	*(void **)&ipc_get = dlsym(library, "cuIpcGetMemHandle");
	*(void **)&ipc_open = dlsym(library, "cuIpcOpenMemHandle_v2");
	*(void **)&ipc_close = dlsym(library, "cuIpcCloseMemHandle");
	*(void **)&ipc_get_event = dlsym(library, "cuIpcGetEventHandle");
	*(void **)&ipc_open_event = dlsym(library, "cuIpcOpenEventHandle");
	*(void **)&import = dlsym(library, "cuMemImportFromShareableHandle");
}

static void sharing_confine(void)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC) < 0 || setresgid(65534, 65534, 65534) < 0 ||
	    setresuid(65534, 65534, 65534) < 0)
		remark("cannot be confined: %s", strerror(errno));
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

#define REFUSE(call) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static void sharing_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		REFUSE(SYS_socket),
		REFUSE(SYS_connect),
		REFUSE(SYS_bind),
		REFUSE(SYS_listen),
		REFUSE(SYS_unlinkat),
		REFUSE(SYS_mkdirat),
		REFUSE(SYS_pidfd_getfd),
		REFUSE(SYS_ptrace),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		remark("cannot be filtered: %s", strerror(errno));
}

/* What NVML says that this process has, in MiB. */
static long long sharing_used(void)
{
	struct {
		unsigned pid;
		unsigned long long used;
		unsigned instances[2];
	} list[64];
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *gpu = NULL;
	unsigned count = 64;
	int (*init)(void) = NULL, (*find)(unsigned, void **) = NULL, (*ask)(void *, unsigned *, void *) = NULL;

	if (!library)
		return -1;
	*(void **)&init = dlsym(library, "nvmlInit_v2");
	*(void **)&find = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&ask = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	if (init() || find(0, &gpu) || ask(gpu, &count, list))
		return -2;
	for (unsigned i = 0; i < count; i++)
		if (list[i].pid == (unsigned)getpid())
			return (long long)(list[i].used >> 20);
	return -3;
}

static void sharing_send(int socket, const void *data, size_t bytes, int fd)
{
	struct iovec vector = {(void *)data, bytes};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
	const struct msghdr message = {.msg_iov = &vector,
				       .msg_iovlen = 1,
				       .msg_control = fd < 0 ? NULL : &control,
				       .msg_controllen = fd < 0 ? 0 : sizeof(control)};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (sendmsg(socket, &message, 0) < 0)
		remark("cannot be sent: %s", strerror(errno));
}

static int sharing_receive(int socket, void *data, size_t bytes)
{
	struct iovec vector = {data, bytes};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {
		.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fd = -1;

	if (recvmsg(socket, &message, 0) != (ssize_t)bytes)
		_exit(3);
	if (CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static void sharing_begin(int how, CUcontext *ret)
{
	(void)alarm(DEADLINE);
	if (how & CONFINED)
		sharing_confine();
	*ret = driver_begin();
	sharing_find();
	if (how & FILTERED)
		sharing_filter();
}

static uint32_t sharing_read(CUdeviceptr at)
{
	uint32_t word = 77;

	(void)cu.cuMemcpyDtoH_v2(&word, at, sizeof(word));
	return word;
}

static long long sharing_free(void)
{
	size_t free = 0, total = 0;

	(void)cu.cuMemGetInfo_v2(&free, &total);
	return (long long)(free >> 20);
}

/* ---- handles of 64 bytes ---- */

static void sharing_give_handles(int socket, int how)
{
	struct ipc memory = {{0}}, event_handle = {{0}};
	CUdeviceptr pointer = 0;
	CUevent event = NULL;
	CUcontext context;
	char done;

	sharing_begin(how, &context);
	(void)cu.cuMemAlloc_v2(&pointer, BYTES);
	(void)cu.cuMemsetD32_v2(pointer, 4711, 4);
	remark("%d: cuIpcGetMemHandle %d, of its middle %d", how, ipc_get(&memory, pointer),
	       ipc_get(&memory, pointer + 4096));
	(void)ipc_get(&memory, pointer);
	(void)cu.cuEventCreate(&event, 2);
	remark("%d: cuIpcGetEventHandle of an event that is not for it %d", how, ipc_get_event(&event_handle, event));
	(void)cu.cuEventCreate(&event, 2 | 4);
	remark("%d: cuIpcGetEventHandle %d", how, ipc_get_event(&event_handle, event));
	(void)cu.cuEventRecord(event, NULL);
	(void)cu.cuCtxSynchronize();
	sharing_send(socket, &memory, sizeof(memory), -1);
	sharing_send(socket, &event_handle, sizeof(event_handle), -1);
	(void)sharing_receive(socket, &done, 1);
	remark("%d: the giver has %lld MiB", how, sharing_used());
	remark("%d: it frees: %d", how, cu.cuMemFree_v2(pointer));
	sharing_send(socket, &done, 1, -1);
	(void)sharing_receive(socket, &done, 1);
	remark("%d: the other has closed it", how);
}

static void sharing_take_handles(int socket, int how)
{
	struct ipc memory, event_handle;
	CUdeviceptr pointer = 0, again = 0;
	CUevent event = NULL;
	CUcontext context;
	long long free;
	char done = 1;
	CUresult r;

	sharing_begin(how, &context);
	(void)sharing_receive(socket, &memory, sizeof(memory));
	(void)sharing_receive(socket, &event_handle, sizeof(event_handle));
	remark("%d: the taker had %lld MiB", how, sharing_used());
	r = ipc_open(&pointer, memory, 1);
	answer(r == 0, "%d: cuIpcOpenMemHandle %d", how, r);
	answer(!r && sharing_read(pointer) == 4711, "%d: what is in it is read", how);
	r = ipc_open(&again, memory, 1);
	remark("%d: opened again: %d, at the same place: %d", how, r, again == pointer);
	remark("%d: with flags 0: %d", how, ipc_open(&again, memory, 0));
	remark("%d: the taker has %lld MiB", how, sharing_used());
	remark("%d: cuMemFree of it %d", how, cu.cuMemFree_v2(pointer));
	r = ipc_open_event(&event, event_handle);
	answer(r == 0, "%d: cuIpcOpenEventHandle %d", how, r);
	remark("%d: cuEventQuery %d, cuStreamWaitEvent %d", how, cu.cuEventQuery(event),
	       cu.cuStreamWaitEvent(NULL, event, 0));
	free = sharing_free();
	sharing_send(socket, &done, 1, -1);
	(void)sharing_receive(socket, &done, 1);
	remark("%d: after the giver has freed it, %lld MiB more are free, and it reads %u", how, sharing_free() - free,
	       sharing_read(pointer));
	remark("%d: cuIpcCloseMemHandle %d, again %d, %d", how, ipc_close(pointer), ipc_close(pointer),
	       ipc_close(pointer));
	remark("%d: %lld MiB more are free then", how, sharing_free() - free);
	sharing_send(socket, &done, 1, -1);
}

/* ---- descriptors ---- */

static const CUmemAllocationProp shared = {.type = 1, .requested_handle_types = DESCRIPTOR, .location = {1, 0}};

static void sharing_map(int how, CUmemGenericAllocationHandle handle, CUdeviceptr *ret)
{
	const CUmemAccessDesc access = {{1, 0}, 3};
	const CUresult reserved = cu.cuMemAddressReserve(ret, BYTES, 0, 0, 0),
		       mapped = cu.cuMemMap(*ret, BYTES, 0, handle, 0),
		       reached = cu.cuMemSetAccess(*ret, BYTES, &access, 1);

	remark("%d: reserve %d, map %d, access %d", how, reserved, mapped, reached);
}

static void sharing_give_descriptor(int socket, int how)
{
	const CUmemAllocationProp alone = {.type = 1, .location = {1, 0}};
	CUmemGenericAllocationHandle handle = 0, other = 0;
	char name[64] = "", path[64], done = 1;
	CUdeviceptr pointer = 0;
	CUcontext context;
	int fd = -1, none = -1;

	sharing_begin(how, &context);
	remark("%d: cuMemCreate %d", how, cu.cuMemCreate(&handle, BYTES, &shared, 0));
	sharing_map(how, handle, &pointer);
	(void)cu.cuMemsetD32_v2(pointer, 815, 4);
	(void)cu.cuCtxSynchronize();
	remark("%d: cuMemExportToShareableHandle %d", how, cu.cuMemExportToShareableHandle(&fd, handle, DESCRIPTOR, 0));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	(void)!readlink(path, name, sizeof(name) - 1);
	remark("%d: it is %s", how, name);
	(void)cu.cuMemCreate(&other, 2 << 20, &alone, 0);
	remark("%d: of memory that was not made for it: %d", how,
	       cu.cuMemExportToShareableHandle(&none, other, DESCRIPTOR, 0));
	remark("%d: flags 1: %d, type 2: %d", how, cu.cuMemExportToShareableHandle(&none, handle, DESCRIPTOR, 1),
	       cu.cuMemExportToShareableHandle(&none, handle, 2, 0));
	sharing_send(socket, &done, 1, fd);
	(void)close(fd);
	(void)sharing_receive(socket, &done, 1);
	remark("%d: the giver has %lld MiB", how, sharing_used());
	remark("%d: it unmaps: %d", how, cu.cuMemUnmap(pointer, BYTES));
	remark("%d: it releases: %d", how, cu.cuMemRelease(handle));
	sharing_send(socket, &done, 1, -1);
	(void)sharing_receive(socket, &done, 1);
}

static void sharing_take_descriptor(int socket, int how)
{
	CUmemGenericAllocationHandle handle = 0, again = 0;
	CUmemAllocationProp properties = {0};
	CUdeviceptr pointer = 0;
	CUcontext context;
	long long free;
	char done = 1;
	CUresult r;
	int fd;

	sharing_begin(how, &context);
	remark("%d: the taker had %lld MiB", how, sharing_used());
	fd = sharing_receive(socket, &done, 1);
	r = import(&handle, (void *)(uintptr_t)fd, DESCRIPTOR);
	answer(r == 0, "%d: cuMemImportFromShareableHandle %d", how, r);
	r = import(&again, (void *)(uintptr_t)fd, DESCRIPTOR);
	remark("%d: again %d, the same %d", how, r, again == handle);
	remark("%d: of a pipe's end %d, of none %d", how, import(&again, (void *)(uintptr_t)0, DESCRIPTOR),
	       import(&again, (void *)(uintptr_t)999, DESCRIPTOR));
	sharing_map(how, handle, &pointer);
	answer(!r && sharing_read(pointer) == 815, "%d: what is in it is read", how);
	(void)cu.cuMemGetAllocationPropertiesFromHandle(&properties, handle);
	remark("%d: properties: type %d, handles %d, place %d %d", how, properties.type,
	       properties.requested_handle_types, properties.location.type, properties.location.id);
	remark("%d: the taker has %lld MiB", how, sharing_used());
	(void)close(fd);
	free = sharing_free();
	sharing_send(socket, &done, 1, -1);
	(void)sharing_receive(socket, &done, 1);
	remark("%d: after the giver has released it, %lld MiB more are free", how, sharing_free() - free);
	remark("%d: unmap %d, release %d %d", how, cu.cuMemUnmap(pointer, BYTES), cu.cuMemRelease(handle),
	       cu.cuMemRelease(again));
	remark("%d: %lld MiB more are free then", how, sharing_free() - free);
	sharing_send(socket, &done, 1, -1);
}

static void sharing_two(void (*give)(int, int), void (*take)(int, int), int how)
{
	int ends[2], status = 0;
	pid_t giver, taker;

	(void)fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0 || (giver = fork()) < 0)
		exit(2);
	if (giver == 0) {
		(void)close(ends[1]);
		give(ends[0], how);
		_exit(0);
	}
	taker = fork();
	if (taker == 0) {
		(void)close(ends[0]);
		take(ends[1], how);
		_exit(0);
	}
	(void)close(ends[0]);
	(void)close(ends[1]);
	(void)waitpid(giver, &status, 0);
	answer(status == 0, "%d: the giver ends with %#x", how, (unsigned)status);
	(void)waitpid(taker, &status, 0);
	answer(status == 0, "%d: the taker ends with %#x", how, (unsigned)status);
}

void ask_sharing(int argc, char **argv)
{
	static const int hows[] = {0, FILTERED, CONFINED, CONFINED | FILTERED};

	(void)argc;
	(void)argv;
	remark("0: as root; 1: as another user without network; 2: without sockets of its own; 3: both");
	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++)
		sharing_two(sharing_give_descriptor, sharing_take_descriptor, hows[i]);
	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++)
		sharing_two(sharing_give_handles, sharing_take_handles, hows[i]);
}
