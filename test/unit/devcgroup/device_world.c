/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "device_world.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

struct question {
	char path[64];
	int flags;
};

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

int device_world_possible(int version)
{
	if (geteuid() != 0)
		return 0;
	if (version == 1)
		return access("/sys/fs/cgroup/devices/devices.list", F_OK) == 0;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 0;
	/* EBUSY: it is what is mounted there. */
	return mount("none", "/sys/fs/cgroup", "cgroup2", 0, NULL) == 0 || errno == EBUSY;
}

static int answer(const struct question *question)
{
	int fd = open(question->path, question->flags | O_CLOEXEC | O_NONBLOCK), r = fd < 0 ? errno : 0;

	if (fd >= 0)
		(void)close(fd);
	return r;
}

static void member(int socket)
{
	struct question question;
	int reply;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(socket, &question, sizeof(question)) == sizeof(question)) {
		reply = answer(&question);
		if (write(socket, &reply, sizeof(reply)) != sizeof(reply))
			break;
	}
	_exit(0);
}

static void put(const char *folder, const char *file, const char *text)
{
	char path[192];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

void device_world_start(struct device_world *world, int version, const char *parent)
{
	static int number;
	char pid[16];
	int pair[2];

	(void)snprintf(world->path, sizeof(world->path), "/sys/fs/cgroup%s%s%s/ctr-gpu-test-%d-%d",
		       version == 1 ? "/devices" : "", *parent ? "/" : "", parent, (int)getpid(), number++);
	world->version = version;
	(void)strcpy(world->nodes, "/tmp/ctr-gpu-nodes.XXXXXX");
	assert_non_null(mkdtemp(world->nodes));
	assert_int_equal(mkdir(world->path, 0755), 0);
	world->fd = open(world->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(world->fd >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	world->member = fork();
	assert_true(world->member >= 0);
	if (!world->member) {
		(void)close(pair[0]);
		member(pair[1]);
	}
	(void)close(pair[1]);
	world->socket = pair[0];
	(void)snprintf(pid, sizeof(pid), "%d", (int)world->member);
	put(world->path, "cgroup.procs", pid);
	if (version == 1) {
		/* As engines do: nothing but making nodes and a few devices. */
		put(world->path, "devices.deny", "a");
		put(world->path, "devices.allow", "c *:* m");
		put(world->path, "devices.allow", "b *:* m");
		put(world->path, "devices.allow", "c 1:3 rwm");
	}
}

void device_world_stop(struct device_world *world)
{
	(void)close(world->socket);
	(void)waitpid(world->member, NULL, 0);
	(void)close(world->fd);
	assert_int_equal(rmdir(world->nodes), 0);
	assert_int_equal(rmdir(world->path), 0);
}

int device_world_open(const struct device_world *world, char type, unsigned major, unsigned minor, int flags)
{
	struct question question = {.flags = flags};
	int reply = -1;

	(void)snprintf(question.path, sizeof(question.path), "%s/node", world->nodes);
	assert_int_equal(mknod(question.path, (type == 'b' ? S_IFBLK : S_IFCHR) | 0600, makedev(major, minor)), 0);
	assert_int_equal(write(world->socket, &question, sizeof(question)), sizeof(question));
	assert_int_equal(read(world->socket, &reply, sizeof(reply)), sizeof(reply));
	assert_int_equal(unlink(question.path), 0);
	return reply;
}

int device_world_load(const struct bpf_insn *insns, size_t count)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = (__u64)(uintptr_t)insns;
	attr.insn_cnt = (__u32)count;
	attr.license = (__u64)(uintptr_t) "Apache";
	fd = bpf(BPF_PROG_LOAD, &attr);
	assert_true(fd >= 0);
	return fd;
}

int device_world_link(const struct device_world *world, int program_fd)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (__u32)program_fd;
	attr.link_create.target_fd = (__u32)world->fd;
	attr.link_create.attach_type = BPF_CGROUP_DEVICE;
	return bpf(BPF_LINK_CREATE, &attr);
}

int device_world_attach(const struct device_world *world, const struct bpf_insn *insns, size_t count, unsigned flags)
{
	union bpf_attr attr;
	int fd = device_world_load(insns, count);

	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (__u32)world->fd;
	attr.attach_bpf_fd = (__u32)fd;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = flags;
	assert_int_equal(bpf(BPF_PROG_ATTACH, &attr), 0);
	return fd;
}

static unsigned instructions_of(__u32 id)
{
	struct bpf_prog_info info;
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_id = id;
	fd = bpf(BPF_PROG_GET_FD_BY_ID, &attr);
	assert_true(fd >= 0);
	memset(&info, 0, sizeof(info));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (__u32)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (__u64)(uintptr_t)&info;
	assert_int_equal(bpf(BPF_OBJ_GET_INFO_BY_FD, &attr), 0);
	(void)close(fd);
	return info.xlated_prog_len / (unsigned)sizeof(struct bpf_insn);
}

unsigned device_world_programs(const struct device_world *world, unsigned *ret_insns)
{
	__u32 ids[64];
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.query.target_fd = (__u32)world->fd;
	attr.query.attach_type = BPF_CGROUP_DEVICE;
	attr.query.prog_ids = (__u64)(uintptr_t)ids;
	attr.query.prog_cnt = 64;
	assert_int_equal(bpf(BPF_PROG_QUERY, &attr), 0);
	*ret_insns = 0;
	for (unsigned i = 0; i < attr.query.prog_cnt; i++)
		*ret_insns += instructions_of(ids[i]);
	return attr.query.prog_cnt;
}
