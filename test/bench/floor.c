/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The floor under the hook: the system calls without which a container does not get a GPU, and nothing else. What the hook
 * has to find out is known here beforehand: what to mount, where the cgroup is, what the loader cache will be. Errors end
 * it; nothing is checked, undone or explained.
 *
 *	floor PID ROOTFS CGROUP CACHE DROP-IN [KIND SOURCE TARGET]…
 *
 * CGROUP is a version 1 devices.allow file, or a version 2 directory with one device program. CACHE and DROP-IN are files
 * with the future contents of /etc/ld.so.cache and of /etc/ld.so.conf.d/ctr-gpu.conf. KIND is "device", "directory" or
 * "file", which are mounted, or "link", for which SOURCE is what it points to, or "ask": device SOURCE is asked TARGET
 * times, as often as the hook has to, for what a simulated device takes is not to be counted against the hook. Or it is
 * "made", a file that gets the contents of SOURCE, or "hidden", a directory that becomes empty; SOURCE is nothing then.
 */

#include <err.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { ENTRIES_MAX = 128, DEVICES_MAX = 32, CONTENT_MAX = 4 << 20 };

enum kind { DEVICE, DIRECTORY, REGULAR, LINK, ASK, MADE, HIDDEN };

struct entry {
	enum kind kind;
	const char *source;
	char *target;
	int tree;
	struct content {
		char *data;
		size_t size;
	} content;
};

static int check(const char *what, long result)
{
	if (result < 0)
		err(1, "%s", what);
	return (int)result;
}

static struct content read_content(const char *path)
{
	struct content content = {NULL, 0};
	int fd = check(path, open(path, O_RDONLY | O_CLOEXEC));
	struct stat st;

	check(path, fstat(fd, &st));
	content.size = (size_t)st.st_size < CONTENT_MAX ? (size_t)st.st_size : CONTENT_MAX;
	content.data = malloc(content.size + 1);
	if (!content.data)
		err(1, "malloc");
	check(path, read(fd, content.data, content.size));
	close(fd);
	return content;
}

static int take_tree(const char *path, unsigned long long flags)
{
	struct mount_attr attr = {.attr_set = flags, .propagation = MS_PRIVATE};
	int tree = check(path, syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));

	check("mount_setattr", syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)));
	return tree;
}

static int open_in_root(int root, const char *path, unsigned long long flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* A directory that is missing costs one call per component; one that is there, one call in all. */
static int make_directory(int root, const char *path)
{
	int parent, fd = open_in_root(root, path, O_PATH | O_DIRECTORY);
	char *copy, *slash;

	if (fd >= 0)
		return fd;
	copy = strdup(path);
	slash = copy ? strrchr(copy, '/') : NULL;
	if (!slash)
		err(1, "%s", path);
	*slash = '\0';
	parent = *copy ? make_directory(root, copy) : dup(root);
	check(path, mkdirat(parent, slash + 1, 0755));
	fd = check(path, openat(parent, slash + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	close(parent);
	free(copy);
	return fd;
}

static void attach(int tree, int target)
{
	check("move_mount",
	      syscall(SYS_move_mount, tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
	close(tree);
	close(target);
}

static int make_file(int root, const char *directory, const char *name)
{
	int parent = make_directory(root, directory);
	int target;

	close(check(name, openat(parent, name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)));
	target = check(name, openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
	close(parent);
	return target;
}

/* A clone needs a mount that is attached (open_tree(2), until 6.15): for a moment, on the root. */
static int open_stage(int root)
{
	int stage, context = check("fsopen", syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC));

	check("fsconfig", syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
	stage = check("fsmount", syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
	check("move_mount",
	      syscall(SYS_move_mount, stage, "", root, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
	close(context);
	return stage;
}

static void take_made(int stage, struct entry *entry)
{
	const char *name = strrchr(entry->target, '/') + 1;
	int file;

	if (entry->kind == MADE) {
		file = check(name, openat(stage, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
		check(name, write(file, entry->content.data, entry->content.size));
		close(file);
	} else {
		check(name, mkdirat(stage, name, 0755));
	}
	entry->tree = check(name, syscall(SYS_open_tree, stage, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

static void take_all_made(int root, struct entry *entries, int count)
{
	int stage = -1;

	for (int i = 0; i < count; i++) {
		if (entries[i].kind != MADE && entries[i].kind != HIDDEN)
			continue;
		if (stage < 0)
			stage = open_stage(root);
		take_made(stage, &entries[i]);
	}
	if (stage < 0)
		return;
	check("fchdir", fchdir(stage));
	check("umount2", umount2(".", MNT_DETACH));
	close(stage);
}

static void make_entry(int root, struct entry *entry)
{
	char *slash = strrchr(entry->target, '/');

	if (entry->kind == HIDDEN || (entry->kind == MADE && strncmp(entry->target, "/proc/", 6) == 0)) {
		attach(entry->tree, check(entry->target, open_in_root(root, entry->target, O_PATH)));
		return;
	}
	if (entry->kind == DIRECTORY) {
		attach(entry->tree, make_directory(root, entry->target));
		return;
	}
	*slash = '\0';
	if (entry->kind == LINK)
		check(entry->target, symlinkat(entry->source, make_directory(root, entry->target), slash + 1));
	else
		attach(entry->tree, make_file(root, entry->target, slash + 1));
}

static void write_file(int root, const char *directory, const char *name, const struct content *content)
{
	int parent = make_directory(root, directory);
	int fd = check(name, openat(parent, ".new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));

	if (write(fd, content->data, content->size) != (ssize_t)content->size)
		err(1, "%s", name);
	close(fd);
	check(name, renameat(parent, ".new", parent, name));
	close(parent);
}

static void allow_version1(const char *cgroup, const dev_t *devices, size_t count)
{
	char rule[64];
	int fd = check(cgroup, open(cgroup, O_WRONLY | O_CLOEXEC)), length;

	for (size_t i = 0; i < count; i++) {
		length = snprintf(rule, sizeof(rule), "c %u:%u rw", major(devices[i]), minor(devices[i]));
		check(cgroup, write(fd, rule, (size_t)length));
	}
	close(fd);
}

/* clang-format off */
#define LOAD_FIELD(register, field)                                                                         \
	(struct bpf_insn){.code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = (register), .src_reg = BPF_REG_1, \
			   .off = offsetof(struct bpf_cgroup_dev_ctx, field)}
#define UNLESS(register, value, skip) \
	(struct bpf_insn){.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = (register), .off = (skip), .imm = (int)(value)}
#define ANSWER(value) (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = (value)}
#define EXIT (struct bpf_insn){.code = BPF_JMP | BPF_EXIT}
/* clang-format on */

static int load_program(const dev_t *devices, size_t count)
{
	struct bpf_insn program[2 + 4 * DEVICES_MAX + 2];
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE};
	uint32_t length = 0;

	program[length++] = LOAD_FIELD(BPF_REG_2, major);
	program[length++] = LOAD_FIELD(BPF_REG_3, minor);
	for (size_t i = 0; i < count; i++) {
		program[length++] = UNLESS(BPF_REG_2, major(devices[i]), 3);
		program[length++] = UNLESS(BPF_REG_3, minor(devices[i]), 2);
		program[length++] = ANSWER(1);
		program[length++] = EXIT;
	}
	program[length++] = ANSWER(0);
	program[length++] = EXIT;
	load.insns = (uintptr_t)program;
	load.insn_cnt = length;
	load.license = (uintptr_t) "Apache-2.0";
	return check("load", syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load)));
}

static void allow_version2(int cgroup, const dev_t *devices, size_t count)
{
	union bpf_attr query = {0}, get = {0}, attach = {0};
	uint32_t id = 0;

	query.query.target_fd = (uint32_t)cgroup;
	query.query.attach_type = BPF_CGROUP_DEVICE;
	query.query.prog_ids = (uintptr_t)&id;
	query.query.prog_cnt = 1;
	check("query", syscall(SYS_bpf, BPF_PROG_QUERY, &query, sizeof(query)));
	get.prog_id = id;
	attach.target_fd = (uint32_t)cgroup;
	attach.attach_bpf_fd = (uint32_t)load_program(devices, count);
	attach.attach_type = BPF_CGROUP_DEVICE;
	attach.attach_flags = BPF_F_ALLOW_MULTI | BPF_F_REPLACE;
	attach.replace_bpf_fd = (uint32_t)check("get", syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &get, sizeof(get)));
	check("attach", syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof(attach)));
}

static void allow_devices(const char *cgroup, const struct entry *entries, int count)
{
	dev_t devices[DEVICES_MAX];
	size_t device_count = 0;
	struct stat st;
	int fd;

	for (int i = 0; i < count && device_count < DEVICES_MAX; i++) {
		if (entries[i].kind != DEVICE)
			continue;
		check(entries[i].source, stat(entries[i].source, &st));
		devices[device_count++] = st.st_rdev;
	}
	fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		allow_version1(cgroup, devices, device_count);
		return;
	}
	allow_version2(fd, devices, device_count);
	close(fd);
}

static void enter_mount_namespace(const char *pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", pid);
	fd = check(path, open(path, O_RDONLY | O_CLOEXEC));
	check("setns", setns(fd, CLONE_NEWNS));
	close(fd);
}

static enum kind parse_kind(const char *word)
{
	static const char *const words[] = {
		[DEVICE] = "device", [DIRECTORY] = "directory", [REGULAR] = "file", [LINK] = "link",
		[ASK] = "ask",       [MADE] = "made",           [HIDDEN] = "hidden"};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i], word) == 0)
			return (enum kind)i;
	}
	errx(2, "%s: not a kind", word);
}

static void ask(const char *device, int count)
{
	int fd = check(device, open(device, O_RDONLY | O_CLOEXEC));
	uint32_t handle = 0;

	/* LX_DXCLOSEADAPTER of something that is not open. */
	for (int i = 0; i < count; i++)
		ioctl(fd, 0xc0044715, &handle);
	close(fd);
}

static void take_entry(char **words, struct entry *ret)
{
	const unsigned long long files = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

	*ret = (struct entry){.kind = parse_kind(words[0]), .source = words[1], .target = words[2], .tree = -1};
	if (ret->kind == ASK)
		ask(words[1], atoi(words[2]));
	else if (ret->kind == MADE)
		ret->content = read_content(ret->source);
	else if (ret->kind != LINK && ret->kind != HIDDEN)
		ret->tree = take_tree(ret->source, ret->kind == DEVICE ? MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC : files);
}

int main(int argc, char **argv)
{
	struct content cache, drop_in;
	struct entry entries[ENTRIES_MAX];
	int root, count = (argc - 6) / 3;

	if (argc < 9 || argc % 3 || count > ENTRIES_MAX)
		errx(2, "usage: floor PID ROOTFS CGROUP CACHE DROP-IN [KIND SOURCE TARGET]...");
	cache = read_content(argv[4]);
	drop_in = read_content(argv[5]);
	for (int i = 0; i < count; i++)
		take_entry(argv + 6 + 3 * i, &entries[i]);
	allow_devices(argv[3], entries, count);
	enter_mount_namespace(argv[1]);
	root = check(argv[2], open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC));
	take_all_made(root, entries, count);
	for (int i = 0; i < count; i++)
		if (entries[i].kind != ASK)
			make_entry(root, &entries[i]);
	write_file(root, "/etc/ld.so.conf.d", "ctr-gpu.conf", &drop_in);
	write_file(root, "/etc", "ld.so.cache", &cache);
	return 0;
}
