/* SPDX-License-Identifier: Apache-2.0 */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

static void format(char *ret, const char *directory, const char *name)
{
	if (snprintf(ret, TARGET_PATH_MAX, "%s/%s", directory, name) >= TARGET_PATH_MAX)
		errx(1, "%s: too long", directory);
}

static void make_directory(const char *directory, const char *name, char *ret)
{
	format(ret, directory, name);
	if (mkdir(ret, 0755) < 0 && errno != EEXIST)
		err(1, "%s", ret);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(1, "%s: %s", path, text);
	close(fd);
}

static void mount_or_die(const char *source, const char *target, const char *type, unsigned long flags,
			 const char *options)
{
	if (mount(source, target, type, flags, options) < 0)
		err(1, "mount %s on %s (%s)", type ? type : "", target, options ? options : "");
}

static void mount_overlay(const struct target *target, const char *image)
{
	char root[TARGET_PATH_MAX], upper[TARGET_PATH_MAX], work[TARGET_PATH_MAX];
	char options[4 * TARGET_PATH_MAX];

	format(root, target->bundle, "rootfs");
	format(upper, target->layers, "upper");
	format(work, target->layers, "work");
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s", image, upper, work);
	mount_or_die("overlay", root, "overlay", 0, options);
}

/* The mounts of a container: runc takes the host's as slaves, then makes the root and what is in it. */
static void mount_root(const struct target *target, const char *image)
{
	char root[TARGET_PATH_MAX], path[TARGET_PATH_MAX];

	mount_or_die(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL);
	mount_overlay(target, image);
	format(root, target->bundle, "rootfs");
	format(path, root, "proc");
	mount_or_die("proc", path, "proc", 0, NULL);
	format(path, root, "dev");
	mount_or_die("tmpfs", path, "tmpfs", MS_NOSUID, "mode=755");
}

static _Noreturn void wait_as_container(const struct target *target, const char *image, int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	mount_root(target, image);
	if (write(ready, "", 1) != 1)
		err(1, "pipe");
	close(ready);
	for (;;)
		pause();
}

/* A device program that allows nothing: mov r0, 0; exit. */
static void attach_deny_all(const char *cgroup)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr load = {0}, attach = {0};
	int program, directory = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	load.insns = (uintptr_t)instructions;
	load.insn_cnt = 2;
	load.license = (uintptr_t) "Apache-2.0";
	program = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
	if (program < 0)
		err(1, "bpf: load a device program");
	attach.target_fd = (uint32_t)directory;
	attach.attach_bpf_fd = (uint32_t)program;
	attach.attach_type = BPF_CGROUP_DEVICE;
	attach.attach_flags = BPF_F_ALLOW_MULTI;
	if (syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof(attach)) < 0)
		err(1, "%s: attach a device program", cgroup);
	close(program);
	close(directory);
}

static void make_cgroup(struct target *target, unsigned number)
{
	const char *version1 = "/sys/fs/cgroup/devices", *below = getenv("CTR_GPU_TEST_CGROUP");
	bool is_version1 = access("/sys/fs/cgroup/devices/devices.allow", F_OK) == 0;
	char parent[TARGET_PATH_MAX], path[TARGET_PATH_MAX], text[32];

	make_directory(is_version1 ? version1 : "/sys/fs/cgroup", below ? below + (below[0] == '/') : "ctr-gpu-bench",
		       parent);
	snprintf(text, sizeof(text), "bench-%u", number);
	make_directory(parent, text, target->cgroup);
	if (is_version1) {
		format(path, target->cgroup, "devices.deny");
		write_text(path, "a");
	} else {
		attach_deny_all(target->cgroup);
	}
	snprintf(text, sizeof(text), "%d", target->pid);
	format(path, target->cgroup, "cgroup.procs");
	write_text(path, text);
}

static void copy_file(const char *from, const char *to)
{
	int source = open(from, O_RDONLY | O_CLOEXEC), copy = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	struct stat st;

	if (source < 0 || copy < 0 || fstat(source, &st) < 0 ||
	    sendfile(copy, source, NULL, (size_t)st.st_size) != st.st_size)
		err(1, "%s to %s", from, to);
	close(source);
	close(copy);
}

static void make_bundle(const char *directory, unsigned number, const char *config, struct target *target)
{
	char name[32], bundles[TARGET_PATH_MAX], path[TARGET_PATH_MAX];

	snprintf(name, sizeof(name), "%u", number);
	make_directory(directory, name, target->layers);
	make_directory(target->layers, "upper", path);
	make_directory(target->layers, "work", path);
	make_directory(directory, "bundles", bundles);
	make_directory(bundles, name, target->bundle);
	make_directory(target->bundle, "rootfs", path);
	format(path, target->bundle, "config.json");
	copy_file(config, path);
}

void target_start(const char *directory, unsigned number, const char *image, const char *config, struct target *ret)
{
	struct target target = {0};
	int ready[2];
	char byte;

	make_bundle(directory, number, config, &target);
	if (pipe2(ready, O_CLOEXEC) < 0)
		err(1, "pipe");
	target.pid = (pid_t)syscall(SYS_clone, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD, 0, 0,
				    0, 0);
	if (target.pid < 0)
		err(1, "clone");
	if (target.pid == 0)
		wait_as_container(&target, image, ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		errx(1, "the container did not start");
	close(ready[0]);
	make_cgroup(&target, number);
	*ret = target;
}

void target_prepare(const char *directory, unsigned number, const char *image, const char *config, struct target *ret)
{
	*ret = (struct target){0};
	make_bundle(directory, number, config, ret);
	mount_overlay(ret, image);
}

static void remove_tree(const char *path)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

static void remove_prepared(const struct target *target)
{
	char root[TARGET_PATH_MAX];

	format(root, target->bundle, "rootfs");
	umount2(root, MNT_DETACH);
	remove_tree(target->bundle);
	remove_tree(target->layers);
}

void target_stop(struct target *target)
{
	if (!target->pid) {
		remove_prepared(target);
		return;
	}
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, 0);
	/* The cgroup is busy until the kernel has done away with the process. */
	for (int try = 0; try < 1000 && rmdir(target->cgroup) < 0 && errno == EBUSY; try++)
		usleep(1000);
	remove_tree(target->bundle);
	remove_tree(target->layers);
}
