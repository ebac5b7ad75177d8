/* SPDX-License-Identifier: Apache-2.0 */

/*
 * early CGROUP.PROCS [--int80] LUID -- HIDDEN: processes that opened an adapter, made a device and a queue of it, and then joined a
 * cgroup that may not see it. What each then tries is refused, or done once by a process that dies of it.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dxg.h"

struct held {
	uint32_t adapter, device, queue;
};

static struct arguments arguments;
static char argument[1024];

static void *handle_at(unsigned int offset, uint32_t handle)
{
	memset(argument, 0, sizeof(argument));
	return memcpy(argument + offset, &handle, sizeof(handle)) ? argument : NULL;
}

static int use_adapter(int fd, const struct held *held)
{
	int bus = dxg_bus(fd, held->adapter);

	return bus < 0 ? bus : 0;
}

static int use_new_device(int fd, const struct held *held)
{
	return dxg_call(fd, LX_DXCREATEDEVICE, handle_at(0, held->adapter));
}

static int use_memory(int fd, const struct held *held)
{
	return dxg_call(fd, LX_DXQUERYVIDEOMEMORYINFO, handle_at(8, held->adapter));
}

static int use_device(int fd, const struct held *held)
{
	return dxg_call(fd, LX_DXGETDEVICESTATE, handle_at(0, held->device));
}

static int use_new_queue(int fd, const struct held *held)
{
	return dxg_call(fd, LX_DXCREATEPAGINGQUEUE, handle_at(0, held->device));
}

static int use_queue(int fd, const struct held *held)
{
	return dxg_call(fd, LX_DXMAKERESIDENT, handle_at(0, held->queue));
}

static const struct use {
	const char *name;
	int (*use)(int fd, const struct held *held);
} uses[] = {
	{"QueryAdapterInfo", use_adapter}, {"CreateDevice", use_new_device},     {"QueryVideoMemoryInfo", use_memory},
	{"GetDeviceState", use_device},    {"CreatePagingQueue", use_new_queue}, {"MakeResident", use_queue},
};

static void hold(int fd, struct held *ret)
{
	if (dxg_open_luid(fd, arguments.hidden[0], 0, &ret->adapter) < 0 ||
	    dxg_call(fd, LX_DXCREATEDEVICE, handle_at(0, ret->adapter)) < 0)
		exit(3);
	memcpy(&ret->device, argument + 12, sizeof(ret->device));
	if (dxg_call(fd, LX_DXCREATEPAGINGQUEUE, handle_at(0, ret->device)) < 0)
		exit(3);
	memcpy(&ret->queue, argument + 8, sizeof(ret->queue));
}

static void join(const char *procs)
{
	int fd = open(procs, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "0", 1) != 1)
		exit(4);
	(void)close(fd);
}

/* Twice: who lives after the first has not been punished. Exit status: 0 if nothing was refused. */
static void child(const char *procs, const struct use *use)
{
	struct held held;
	int fd = dxg_open(), first, second;

	hold(fd, &held);
	join(procs);
	first = use->use(fd, &held);
	usleep(100000);
	second = use->use(fd, &held);
	(void)close(fd);
	_exit(first >= 0 || second >= 0 ? 0 : 10 + (-first & 0x3f));
}

static void try(const char *procs, const struct use *use)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		child(procs, use);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(5);
	if (WIFSIGNALED(status))
		tap(WTERMSIG(status) == SIGKILL, "%s: signal %d", use->name, WTERMSIG(status));
	else
		tap(WEXITSTATUS(status) == 10 + EINVAL || WEXITSTATUS(status) == 10 + EPERM, "%s: %s (%d)", use->name,
		    WEXITSTATUS(status) == 0 ? "answered, twice" : "refused", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	arguments_read(argc, argv, 2, &arguments);
	if (arguments.hidden_count != 1)
		return 2;
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		try(argv[1], &uses[i]);
	return tap_status();
}
