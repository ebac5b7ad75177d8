/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Real cgroups with real rules and programs, and a process in them that tries to open devices. An open that the cgroup
 * forbids fails with EPERM; one that it allows fails with something else or not at all, as the machine has the device.
 */

#include "unit.h"

#include "device_world.h"
#include "old_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/lock_file.h"
#include "base/paths.h"
#include "devcgroup/devcgroup.h"

#define ALLOWED(world, ...) assert_int_not_equal(device_world_open(world, __VA_ARGS__), EPERM)
#define FORBIDDEN(world, ...) assert_int_equal(device_world_open(world, __VA_ARGS__), EPERM)

/* 10:183 is hwrng, 10:232 kvm, 1:3 null. */
static const struct devcgroup_rule read_write = {'c', 10, 183, "rw", "/dev/hwrng"},
				   read_only = {'c', 10, 183, "r", "/dev/hwrng"};

#define LOAD_FIELD(size, to, field)                                                \
	{                                                                          \
		.code = BPF_LDX | BPF_MEM | (size), .dst_reg = (to), .src_reg = 1, \
		.off = offsetof(struct bpf_cgroup_dev_ctx, field)                  \
	}
#define OP(operation, to, value)                                             \
	{                                                                    \
		.code = (operation) | BPF_K, .dst_reg = (to), .imm = (value) \
	}
#define JUMP(operation, left, value, by)                                                              \
	{                                                                                             \
		.code = BPF_JMP | (operation) | BPF_K, .dst_reg = (left), .off = (by), .imm = (value) \
	}
#define EXIT                               \
	{                                  \
		.code = BPF_JMP | BPF_EXIT \
	}

/* The shape of runc's and crun's: fields to R2 to R5, a block per rule, deny. Allows c *:* m, b *:* m and c 1:3 rwm. */
static const struct bpf_insn engine_program[] = {
	LOAD_FIELD(BPF_W, 2, access_type),
	OP(BPF_ALU | BPF_AND, 2, 0xffff),
	LOAD_FIELD(BPF_W, 3, access_type),
	OP(BPF_ALU | BPF_RSH, 3, 16),
	LOAD_FIELD(BPF_W, 4, major),
	LOAD_FIELD(BPF_W, 5, minor),
	JUMP(BPF_JNE, 2, BPF_DEVCG_DEV_CHAR, 5),
	{.code = BPF_ALU | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 3},
	OP(BPF_ALU | BPF_AND, 1, BPF_DEVCG_ACC_MKNOD),
	{.code = BPF_JMP | BPF_JNE | BPF_X, .dst_reg = 1, .src_reg = 3, .off = 2},
	OP(BPF_ALU64 | BPF_MOV, 0, 1),
	EXIT,
	JUMP(BPF_JNE, 2, BPF_DEVCG_DEV_CHAR, 4),
	JUMP(BPF_JNE, 4, 1, 3),
	JUMP(BPF_JNE, 5, 3, 2),
	OP(BPF_ALU64 | BPF_MOV, 0, 1),
	EXIT,
	OP(BPF_ALU64 | BPF_MOV, 0, 0),
	EXIT,
};

/* The shape of systemd's: one exit at the end that the rules jump to, half-word loads. Allows c *:* m and c 1:3 rwm. */
static const struct bpf_insn systemd_program[] = {
	LOAD_FIELD(BPF_H, 2, access_type),
	LOAD_FIELD(BPF_W, 3, access_type),
	OP(BPF_ALU | BPF_RSH, 3, 16),
	LOAD_FIELD(BPF_W, 4, major),
	LOAD_FIELD(BPF_W, 5, minor),
	JUMP(BPF_JEQ, 3, BPF_DEVCG_ACC_MKNOD, 5),
	JUMP(BPF_JNE, 2, BPF_DEVCG_DEV_CHAR, 2),
	JUMP(BPF_JNE, 4, 1, 1),
	JUMP(BPF_JEQ, 5, 3, 2),
	OP(BPF_ALU64 | BPF_MOV, 0, 0),
	{.code = BPF_JMP | BPF_JA, .off = 1},
	OP(BPF_ALU64 | BPF_MOV, 0, 1),
	EXIT,
};

static struct undo_log *undo_log;

struct program {
	const struct bpf_insn *insns;
	size_t count;
	unsigned flags;
};

static const struct program engine = {engine_program, ARRAY_SIZE(engine_program), BPF_F_ALLOW_MULTI};
static const struct program by_systemd = {systemd_program, ARRAY_SIZE(systemd_program), BPF_F_ALLOW_MULTI};

static void attach(const struct device_world *world, const struct program *program)
{
	(void)close(device_world_attach(world, program->insns, program->count, program->flags));
}

/* Version 2 mounts over /sys/fs/cgroup for good, so its tests come after those of version 1. */
static void must_be_possible(int version)
{
	static int possible[] = {-1, -1, -1};

	if (possible[version] < 0) {
		possible[version] = device_world_possible(version);
		/* Hooks take turns by a file there. */
		if (version == 2 && possible[version])
			assert_int_equal(mount("none", "/run", "tmpfs", 0, NULL), 0);
	}
	if (!possible[version]) {
		skip(version == 1 ? "needs root and cgroup version 1" : "needs root and cgroup version 2");
	}
}

/* What was done before stays done. */
static struct devcgroup *open_cgroup(pid_t pid)
{
	struct devcgroup *cgroup = NULL;
	struct err err = {0};
	int r = devcgroup_open(pid, -1, &cgroup, &err);

	undo_log_free(undo_log);
	undo_log = undo_log_new(false);
	assert_non_null(undo_log);

	if (r != 0)
		fail_msg("devcgroup_open: %d: %s", r, err.text);
	return cgroup;
}

static void allow(struct devcgroup *cgroup, const struct devcgroup_rule *rules, size_t count)
{
	struct err err = {0};
	int r = devcgroup_allow(cgroup, rules, count, undo_log, &err);

	if (r != 0)
		fail_msg("devcgroup_allow: %d: %s", r, err.text);
}

/* What holds in every world that forbids all but null: a device comes, nothing else does, and it goes again. */
static void device_comes_and_goes(const struct device_world *world)
{
	struct devcgroup *cgroup;

	ALLOWED(world, 'c', 1, 3, O_RDWR);
	FORBIDDEN(world, 'c', 10, 183, O_RDONLY);
	cgroup = open_cgroup(world->member);
	assert_non_null(cgroup);
	allow(cgroup, &read_write, 1);
	ALLOWED(world, 'c', 10, 183, O_RDONLY);
	ALLOWED(world, 'c', 10, 183, O_RDWR);
	ALLOWED(world, 'c', 1, 3, O_RDWR);
	FORBIDDEN(world, 'c', 10, 232, O_RDONLY);
	FORBIDDEN(world, 'c', 11, 183, O_RDONLY);
	FORBIDDEN(world, 'c', 10, 182, O_RDONLY);
	undo_log_undo(undo_log);
	FORBIDDEN(world, 'c', 10, 183, O_RDONLY);
	ALLOWED(world, 'c', 1, 3, O_RDWR);
	devcgroup_free(cgroup);
}

static void reading_is_not_writing(const struct device_world *world)
{
	struct devcgroup *cgroup = open_cgroup(world->member);

	allow(cgroup, &read_only, 1);
	ALLOWED(world, 'c', 10, 183, O_RDONLY);
	FORBIDDEN(world, 'c', 10, 183, O_WRONLY);
	FORBIDDEN(world, 'c', 10, 183, O_RDWR);
	devcgroup_free(cgroup);

	/* Another run gives more, and takes only that back. */
	cgroup = open_cgroup(world->member);
	allow(cgroup, &read_write, 1);
	ALLOWED(world, 'c', 10, 183, O_RDWR);
	undo_log_undo(undo_log);
	FORBIDDEN(world, 'c', 10, 183, O_RDWR);
	ALLOWED(world, 'c', 10, 183, O_RDONLY);
	devcgroup_free(cgroup);
}

static void what_was_allowed_stays(const struct device_world *world)
{
	static const struct devcgroup_rule null_too[] = {{'c', 1, 3, "rw", "/dev/null"},
							 {'c', 10, 183, "rw", "/dev/hwrng"}};
	struct devcgroup *cgroup = open_cgroup(world->member);

	allow(cgroup, null_too, ARRAY_SIZE(null_too));
	undo_log_undo(undo_log);
	ALLOWED(world, 'c', 1, 3, O_RDWR);
	FORBIDDEN(world, 'c', 10, 183, O_RDWR);
	undo_log_undo(undo_log);
	ALLOWED(world, 'c', 1, 3, O_RDWR);
	devcgroup_free(cgroup);
}

static void block_devices_are_not_character_devices(const struct device_world *world)
{
	static const struct devcgroup_rule loop = {'b', 7, 5, "rw", "/dev/loop5"};
	struct devcgroup *cgroup = open_cgroup(world->member);

	FORBIDDEN(world, 'b', 7, 5, O_RDONLY);
	allow(cgroup, &loop, 1);
	ALLOWED(world, 'b', 7, 5, O_RDONLY);
	FORBIDDEN(world, 'c', 7, 5, O_RDONLY);
	undo_log_undo(undo_log);
	FORBIDDEN(world, 'b', 7, 5, O_RDONLY);
	devcgroup_free(cgroup);
	cgroup = open_cgroup(world->member);
	allow(cgroup, &read_write, 1);
	ALLOWED(world, 'c', 10, 183, O_RDONLY);
	FORBIDDEN(world, 'b', 10, 183, O_RDONLY);
	devcgroup_free(cgroup);
}

static void copy(const struct devcgroup *cgroup, struct devcgroup_additions *ret)
{
	const struct devcgroup_additions *from = devcgroup_additions_of(cgroup);

	for (size_t i = 0; i < from->count; i++)
		assert_int_equal(additions_add(ret, &from->items[i].cgroup, from->items[i].rules, from->items[i].count),
				 0);
}

static int try_to_take_back(pid_t member, const struct devcgroup_additions *additions, struct err *err)
{
	struct devcgroup_id ids[8];
	struct devcgroup *cgroup;
	int r;

	for (size_t i = 0; i < additions->count; i++)
		ids[i] = additions->items[i].cgroup;
	r = devcgroup_open_again(member, -1, ids, additions->count, &cgroup, err);
	if (r == 0)
		r = devcgroup_take_back(cgroup, additions, err);
	devcgroup_free(cgroup);
	return r;
}

static void take_back(const struct device_world *world, struct devcgroup_additions *additions)
{
	struct err err = {0};

	if (try_to_take_back(world->member, additions, &err) != 0)
		fail_msg("%s", err.text);
	additions_clear(additions);
}

static void move(pid_t member, const char *path)
{
	char procs[512], number[16];
	int fd;

	(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	(void)snprintf(number, sizeof(number), "%d", (int)member);
	fd = open(procs, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, number, strlen(number)), strlen(number));
	(void)close(fd);
}

/* A process whose cgroups it may write goes further down than ctr-gpu ever opens, or out. */
static void who_moves_does_not_keep_the_device(const struct device_world *world)
{
	enum { DEEP = 12 };
	struct devcgroup_additions additions = {0};
	struct devcgroup *cgroup = open_cgroup(world->member);
	struct device_world other;
	struct err err = {0};
	char path[512];

	(void)snprintf(path, sizeof(path), "%s", world->path);
	allow(cgroup, &read_write, 1);
	copy(cgroup, &additions);
	devcgroup_free(cgroup);
	device_world_start(&other, world->version, "");
	move(world->member, other.path);
	assert_int_equal(try_to_take_back(world->member, &additions, &err), CTR_GPU_E_NO_CGROUP);
	assert_non_null(strstr(err.text, "nor below"));
	for (int i = 0; i < DEEP; i++) {
		(void)strcat(path, "/x");
		assert_int_equal(mkdir(path, 0755), 0);
	}
	move(world->member, path);
	ALLOWED(world, 'c', 10, 183, O_RDWR);
	take_back(world, &additions);
	FORBIDDEN(world, 'c', 10, 183, O_RDWR);
	move(world->member, world->path);
	FORBIDDEN(world, 'c', 10, 183, O_RDWR);
	for (int i = 0; i < DEEP; i++) {
		assert_int_equal(rmdir(path), 0);
		*strrchr(path, '/') = '\0';
	}
	device_world_stop(&other);
}

/* Another process takes back what is written down, and only that: here it has no list of what was changed. */
static void another_process_takes_it_back(const struct device_world *world)
{
	struct devcgroup_additions reading = {0}, writing = {0};
	struct devcgroup *cgroup = open_cgroup(world->member);

	allow(cgroup, &read_only, 1);
	copy(cgroup, &reading);
	assert_int_equal(reading.count, 1);
	devcgroup_free(cgroup);
	cgroup = open_cgroup(world->member);
	allow(cgroup, &read_write, 1);
	copy(cgroup, &writing);
	devcgroup_free(cgroup);
	ALLOWED(world, 'c', 10, 183, O_RDWR);
	take_back(world, &writing);
	FORBIDDEN(world, 'c', 10, 183, O_RDWR);
	ALLOWED(world, 'c', 10, 183, O_RDONLY);
	take_back(world, &reading);
	FORBIDDEN(world, 'c', 10, 183, O_RDONLY);
	ALLOWED(world, 'c', 1, 3, O_RDWR);
	/* There was nothing to add. */
	cgroup = open_cgroup(world->member);
	allow(cgroup, &(const struct devcgroup_rule){'c', 1, 3, "rw", "/dev/null"}, 1);
	assert_int_equal(devcgroup_additions_of(cgroup)->count, 0);
	devcgroup_free(cgroup);
}

static void (*const cases[])(const struct device_world *) = {
	another_process_takes_it_back,
	device_comes_and_goes,
	reading_is_not_writing,
	what_was_allowed_stays,
	who_moves_does_not_keep_the_device,
	block_devices_are_not_character_devices,
};

static void v1_rules(void **state)
{
	(void)state;
	must_be_possible(1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct device_world world;

		device_world_start(&world, 1, "");
		cases[i](&world);
		device_world_stop(&world);
	}
}

static void v2_programs(void **state)
{
	static const struct program programs[] = {
		{engine_program, ARRAY_SIZE(engine_program), BPF_F_ALLOW_MULTI},
		{engine_program, ARRAY_SIZE(engine_program), BPF_F_ALLOW_OVERRIDE},
		{engine_program, ARRAY_SIZE(engine_program), 0},
		{systemd_program, ARRAY_SIZE(systemd_program), BPF_F_ALLOW_MULTI},
	};

	(void)state;
	must_be_possible(2);
	for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(programs); i++) {
		struct device_world world;
		unsigned insns;

		device_world_start(&world, 2, "");
		attach(&world, &programs[i % ARRAY_SIZE(programs)]);
		cases[i / ARRAY_SIZE(programs)](&world);
		assert_int_equal(device_world_programs(&world, &insns), 1);
		device_world_stop(&world);
	}
}

static void v2_two_programs(void **state)
{
	struct device_world world;
	unsigned before, insns;

	(void)state;
	must_be_possible(2);
	device_world_start(&world, 2, "");
	attach(&world, &engine);
	attach(&world, &by_systemd);
	(void)device_world_programs(&world, &before);
	device_comes_and_goes(&world);
	assert_int_equal(device_world_programs(&world, &insns), 2);
	assert_int_equal(insns, before);
	device_world_stop(&world);
}

static void v2_no_program_is_nothing_to_do(void **state)
{
	struct device_world world;

	(void)state;
	must_be_possible(2);
	device_world_start(&world, 2, "");
	assert_null(open_cgroup(world.member));
	device_world_stop(&world);
}

static void v2_program_does_not_grow(void **state)
{
	struct device_world world;
	unsigned once, again;

	(void)state;
	must_be_possible(2);
	device_world_start(&world, 2, "");
	attach(&world, &engine);
	for (int i = 0; i < 5; i++) {
		struct devcgroup *cgroup = open_cgroup(world.member);

		allow(cgroup, &read_write, 1);
		devcgroup_free(cgroup);
		(void)device_world_programs(&world, i ? &again : &once);
	}
	assert_int_equal(again, once);
	device_world_stop(&world);
}

static void v2_outer_cgroup_is_named(void **state)
{
	struct device_world outer, inner;
	struct devcgroup *cgroup;
	struct err err = {0};

	(void)state;
	must_be_possible(2);
	device_world_start(&outer, 2, "");
	attach(&outer, &engine);
	device_world_start(&inner, 2, strrchr(outer.path, '/') + 1);
	attach(&inner, &engine);
	cgroup = open_cgroup(inner.member);
	assert_int_equal(devcgroup_allow(cgroup, &read_write, 1, undo_log, &err), CTR_GPU_E_NO_CGROUP);
	assert_non_null(strstr(err.text, "10:183"));
	devcgroup_free(cgroup);
	device_world_stop(&inner);
	device_world_stop(&outer);
}

struct attempt {
	pid_t pid;
	struct devcgroup *cgroup;
	int result;
};

static void attempt_allow(void *data)
{
	struct attempt *attempt = data;

	attempt->result = devcgroup_open(attempt->pid, -1, &attempt->cgroup, NULL);
	if (attempt->result == 0)
		attempt->result = devcgroup_allow(attempt->cgroup, &read_write, 1, undo_log, NULL);
}

static void attempt_undo(void *data)
{
	(void)data;
	undo_log_undo(undo_log);
}

/* Without BPF_F_REPLACE the new program comes beside the old one, which then goes. */
static void v2_old_kernel(void **state)
{
	struct device_world world;
	struct attempt attempt = {0};
	unsigned refused = 0, insns;

	(void)state;
	must_be_possible(2);
	device_world_start(&world, 2, "");
	attach(&world, &engine);
	attach(&world, &by_systemd);
	attempt.pid = world.member;
	assert_true(old_kernel_run(attempt_allow, &attempt, &refused));
	assert_int_equal(attempt.result, 0);
	/* openat2 once for each usual place and once below the mount, and an exchange for each program. */
	assert_between(refused, 4, 5);
	ALLOWED(&world, 'c', 10, 183, O_RDWR);
	FORBIDDEN(&world, 'c', 10, 232, O_RDWR);
	assert_int_equal(device_world_programs(&world, &insns), 2);
	assert_true(old_kernel_run(attempt_undo, &attempt, &refused));
	FORBIDDEN(&world, 'c', 10, 183, O_RDWR);
	assert_int_equal(device_world_programs(&world, &insns), 2);
	devcgroup_free(attempt.cgroup);
	device_world_stop(&world);
}

/* Where no mount shows the cgroup: an error for root, since a rule may hold; nothing for others. */
static int without_mounts(pid_t pid, bool privileged)
{
	struct devcgroup *cgroup = NULL;
	struct err err = {0};
	int r;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 101;
	if (mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) < 0)
		return 102;
	if (!privileged && setresuid(1000, 1000, 1000) < 0)
		return 103;
	r = devcgroup_open(pid, -1, &cgroup, &err);
	if (privileged)
		return r == CTR_GPU_E_NO_CGROUP && strstr(err.advice, "/sys/fs/cgroup") ? 0 : 104;
	return r == 0 && !cgroup ? 0 : 105;
}

static void v2_no_mount_shows_the_cgroup(void **state)
{
	struct device_world world;

	(void)state;
	must_be_possible(2);
	device_world_start(&world, 2, "");
	for (int privileged = 0; privileged < 2; privileged++) {
		int status = -1;
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(without_mounts(world.member, privileged));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	device_world_stop(&world);
}

/*
 * Hardening changes what the kernel shows of a program. The machine's setting is put back, after a failure too; two of
 * these tests at once would each take the other's for it.
 */
static struct {
	int fd;
	char before;
} hardening = {.fd = -1};

static bool harden(void)
{
	hardening.fd = open("/proc/sys/net/core/bpf_jit_harden", O_RDWR | O_CLOEXEC);
	return hardening.fd >= 0 && flock(hardening.fd, LOCK_EX) == 0 &&
	       read(hardening.fd, &hardening.before, 1) == 1 && pwrite(hardening.fd, "2", 1, 0) == 1;
}

static int put_hardening_back(void **state)
{
	int r = hardening.fd < 0 || !hardening.before || pwrite(hardening.fd, &hardening.before, 1, 0) == 1 ? 0 : -1;

	(void)state;
	if (hardening.fd >= 0)
		(void)close(hardening.fd);
	hardening.fd = -1;
	return r;
}

static void v2_hardened_program_is_restored(void **state)
{
	struct device_world world;
	unsigned insns;

	(void)state;
	must_be_possible(2);
	if (!harden()) {
		skip("cannot set net.core.bpf_jit_harden");
	}
	device_world_start(&world, 2, "");
	attach(&world, &engine);
	attach(&world, &by_systemd);
	(void)device_world_programs(&world, &insns);
	assert_int_equal(put_hardening_back(NULL), 0);
	assert_true(insns > 2 * ARRAY_SIZE(engine_program));
	device_comes_and_goes(&world);
	reading_is_not_writing(&world);
	device_world_stop(&world);
}

/* One that is attached by a bpf_link is its owner's alone; what was done before it was met is undone. */
static void v2_linked_program_is_refused(void **state)
{
	struct device_world world;
	struct devcgroup *cgroup;
	struct err err = {0};
	int program, link;

	(void)state;
	must_be_possible(2);
	device_world_start(&world, 2, "");
	attach(&world, &engine);
	program = device_world_load(systemd_program, ARRAY_SIZE(systemd_program));
	link = device_world_link(&world, program);
	assert_true(link >= 0);
	cgroup = open_cgroup(world.member);
	assert_int_equal(devcgroup_allow(cgroup, &read_write, 1, undo_log, &err), CTR_GPU_E_NO_CGROUP);
	assert_non_null(strstr(err.text, "link"));
	undo_log_undo(undo_log);
	devcgroup_free(cgroup);
	(void)close(link);
	(void)close(program);
	FORBIDDEN(&world, 'c', 10, 183, O_RDONLY);
	ALLOWED(&world, 'c', 1, 3, O_RDWR);
	device_world_stop(&world);
}

static void v2_linked_program_is_told_of_by_who_takes_back(void **state)
{
	static const struct devcgroup_rule null = {'c', 1, 3, "rw", "/dev/null"};
	struct devcgroup_additions additions = {.drop_in = strdup("gone.scope.d/gone.conf")};
	struct devcgroup_id id = {0};
	struct device_world world;
	struct err err = {0};
	int program, link;

	(void)state;
	must_be_possible(2);
	device_world_start(&world, 2, "");
	program = device_world_load(engine_program, ARRAY_SIZE(engine_program));
	link = device_world_link(&world, program);
	assert_true(link >= 0);
	assert_int_equal(additions_identify(world.fd, &id), 0);
	assert_int_equal(additions_add(&additions, &id, &null, 1), 0);
	assert_int_equal(try_to_take_back(world.member, &additions, &err), CTR_GPU_E_NO_CGROUP);
	assert_non_null(strstr(err.text, "link"));
	additions_clear(&additions);
	(void)close(link);
	(void)close(program);
	device_world_stop(&world);
}

/* A program that calls a helper function: its call cannot be loaded again. */
static void v2_program_with_calls_is_refused(void **state)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_uid_gid},
		OP(BPF_ALU64 | BPF_MOV, 0, 0),
		EXIT,
	};
	static const struct program calls = {insns, ARRAY_SIZE(insns), BPF_F_ALLOW_MULTI};
	struct device_world world;
	struct devcgroup *cgroup;
	struct err err = {0};

	(void)state;
	must_be_possible(2);
	device_world_start(&world, 2, "");
	attach(&world, &engine);
	attach(&world, &calls);
	cgroup = open_cgroup(world.member);
	assert_int_equal(devcgroup_allow(cgroup, &read_write, 1, undo_log, &err), CTR_GPU_E_NO_CGROUP);
	assert_non_null(strstr(err.text, "helper"));
	devcgroup_free(cgroup);
	device_world_stop(&world);
}

/* Runs as root of a user namespace, which has no say over device cgroups: nothing to do, and no error. */
static int without_privilege(pid_t pid, uid_t uid)
{
	struct devcgroup *cgroup = NULL;
	char map[32];
	int fd, r;

	if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 ||
	    unshare(CLONE_NEWUSER) < 0)
		return 101;
	(void)snprintf(map, sizeof(map), "0 %u 1\n", (unsigned)uid);
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, map, strlen(map)) < 0)
		return 102;
	(void)close(fd);
	if (geteuid() != 0)
		return 103;
	r = devcgroup_open(pid, -1, &cgroup, NULL);
	if (r == 0 && cgroup)
		r = devcgroup_allow(cgroup, &read_write, 1, undo_log, NULL);
	devcgroup_free(cgroup);
	return r == 0 ? 0 : 104;
}

static void nothing_is_done_in_a_user_namespace(const struct device_world *world)
{
	static const uid_t uids[] = {0, 1000};

	for (size_t i = 0; i < ARRAY_SIZE(uids); i++) {
		int status = -1;
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(without_privilege(world->member, uids[i]));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		FORBIDDEN(world, 'c', 10, 183, O_RDONLY);
	}
}

static void v1_user_namespace(void **state)
{
	struct device_world world;

	(void)state;
	must_be_possible(1);
	if (!unit_has_user_namespaces())
		skip(UNIT_NO_USER_NAMESPACES);
	device_world_start(&world, 1, "");
	nothing_is_done_in_a_user_namespace(&world);
	device_world_stop(&world);
}

static void v2_user_namespace(void **state)
{
	struct device_world world;

	(void)state;
	must_be_possible(2);
	if (!unit_has_user_namespaces())
		skip(UNIT_NO_USER_NAMESPACES);
	device_world_start(&world, 2, "");
	attach(&world, &engine);
	nothing_is_done_in_a_user_namespace(&world);
	device_world_stop(&world);
}

static void v1_outer_cgroup_is_named(void **state)
{
	struct device_world outer, inner;
	struct devcgroup *cgroup;
	struct err err = {0};

	(void)state;
	must_be_possible(1);
	device_world_start(&outer, 1, "");
	device_world_start(&inner, 1, strrchr(outer.path, '/') + 1);
	cgroup = open_cgroup(inner.member);
	assert_int_equal(devcgroup_allow(cgroup, &read_write, 1, undo_log, &err), CTR_GPU_E_NO_CGROUP);
	assert_non_null(strstr(err.text, "10:183"));
	devcgroup_free(cgroup);
	device_world_stop(&inner);
	device_world_stop(&outer);
}

enum { HOOKS = 8, ROUNDS = 20, FIRST_MINOR = 100 };

static int allow_minor(pid_t member, unsigned minor)
{
	const struct devcgroup_rule rule = {'c', 10, minor, "rw", NULL};
	struct devcgroup *cgroup = NULL;
	struct undo_log *own = undo_log_new(false);
	int r = devcgroup_open(member, -1, &cgroup, NULL);

	return r == 0 ? devcgroup_allow(cgroup, &rule, 1, own, NULL) : r;
}

/* Several processes that each allow a device of their own, all at once or one after the other. */
static void run_hooks(pid_t member, bool at_once)
{
	pid_t hooks[HOOKS];
	int start[2], status;

	assert_int_equal(pipe(start), 0);
	for (unsigned i = 0; i < HOOKS; i++) {
		hooks[i] = fork();
		if (hooks[i] == 0) {
			char byte;

			(void)close(start[1]);
			if (at_once)
				(void)!read(start[0], &byte, 1);
			_exit(allow_minor(member, FIRST_MINOR + i) != 0);
		}
		if (!at_once) {
			assert_int_equal(waitpid(hooks[i], &status, 0), hooks[i]);
			assert_int_equal(status, 0);
		}
	}
	(void)close(start[1]);
	for (unsigned i = 0; at_once && i < HOOKS; i++) {
		assert_int_equal(waitpid(hooks[i], &status, 0), hooks[i]);
		assert_int_equal(status, 0);
	}
	(void)close(start[0]);
}

static unsigned insns_after(unsigned flags, bool at_once)
{
	const struct program program = {engine_program, ARRAY_SIZE(engine_program), flags};
	struct device_world world;
	unsigned insns;

	device_world_start(&world, 2, "");
	attach(&world, &program);
	run_hooks(world.member, at_once);
	for (unsigned i = 0; i < HOOKS; i++)
		ALLOWED(&world, 'c', 10, FIRST_MINOR + i, O_RDWR);
	FORBIDDEN(&world, 'c', 10, FIRST_MINOR + HOOKS, O_RDWR);
	assert_int_equal(device_world_programs(&world, &insns), 1);
	device_world_stop(&world);
	return insns;
}

/* Nobody's device is lost, and nobody's is in the program twice. */
static void v2_hooks_at_once(void **state)
{
	static const unsigned flags[] = {BPF_F_ALLOW_MULTI, BPF_F_ALLOW_OVERRIDE, 0};

	(void)state;
	must_be_possible(2);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		unsigned insns = insns_after(flags[i], false);

		for (unsigned round = 0; round < ROUNDS; round++)
			assert_int_equal(insns_after(flags[i], true), insns);
	}
}

/* Until the socket's other end is closed. Return: its pid, when it has the lock. */
static pid_t hold_the_lock(int ends[2])
{
	pid_t ignored, pid = fork();
	char byte = 0;
	int home;

	if (pid != 0) {
		(void)close(ends[1]);
		assert_int_equal(read(ends[0], &byte, 1), 1);
		return pid;
	}
	(void)close(ends[0]);
	home = lock_file_open_directory(PATH_RUN);
	if (home < 0 || lock_file_take(home, "devices.lock", 0, &ignored) < 0 || write(ends[1], &byte, 1) != 1)
		_exit(1);
	_exit(read(ends[1], &byte, 1) != 0);
}

static void v2_a_lock_that_is_held_is_waited_for_and_its_holder_named(void **state)
{
	static const struct program program = {engine_program, ARRAY_SIZE(engine_program), BPF_F_ALLOW_OVERRIDE};
	struct device_world world;
	struct devcgroup *cgroup;
	struct err err = {0};
	int ends[2], r;
	char name[32];
	pid_t holder;

	(void)state;
	must_be_possible(2);
	assert_true(mkdir(PATH_RUN, 0700) == 0 || errno == EEXIST);
	device_world_start(&world, 2, "");
	attach(&world, &program);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	holder = hold_the_lock(ends);
	cgroup = open_cgroup(world.member);
	assert_int_equal(devcgroup_allow(cgroup, &read_write, 1, undo_log, &err), -ETIMEDOUT);
	(void)snprintf(name, sizeof(name), "process %d ", (int)holder);
	assert_non_null(strstr(err.text, name));
	assert_non_null(strstr(err.text, PATH_RUN "/devices.lock"));
	FORBIDDEN(&world, 'c', 10, 183, O_RDWR);
	devcgroup_free(cgroup);
	(void)close(ends[0]);
	assert_int_equal(waitpid(holder, &r, 0), holder);
	assert_int_equal(r, 0);
	cgroup = open_cgroup(world.member);
	allow(cgroup, &read_write, 1);
	ALLOWED(&world, 'c', 10, 183, O_RDWR);
	devcgroup_free(cgroup);
	device_world_stop(&world);
}

static void a_process_that_is_gone_is_an_error(void **state)
{
	struct devcgroup *cgroup = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(devcgroup_open(0x7ffffff0, -1, &cgroup, &err), -ENOENT);
	assert_non_null(strstr(err.text, "process 2147483632"));
}

/* Part of the path of a cgroup is the path of one above it. */
static void a_list_of_cgroups_that_is_too_long_is_an_error(void **state)
{
	char directory[] = "/tmp/ctr-gpu-devcgroup.XXXXXX";
	struct devcgroup *cgroup = NULL;
	struct err err = {0};
	int process, file;

	(void)state;
	assert_non_null(mkdtemp(directory));
	process = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	file = openat(process, "cgroup", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(dprintf(file, "%04d:c%04d:/a/cgroup\n", i + 10, i), 21);
	assert_true(dprintf(file, "5:devices:/docker/x\n") > 0);
	close(file);
	assert_int_equal(devcgroup_open(getpid(), process, &cgroup, &err), -EFBIG);
	assert_null(cgroup);
	assert_int_equal(unlinkat(process, "cgroup", 0), 0);
	close(process);
	assert_int_equal(rmdir(directory), 0);
}

static int start(void **state)
{
	(void)state;
	undo_log = undo_log_new(false);
	return undo_log ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	undo_log_free(undo_log);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v1_rules),
		cmocka_unit_test(v1_outer_cgroup_is_named),
		cmocka_unit_test(v1_user_namespace),
		cmocka_unit_test(a_process_that_is_gone_is_an_error),
		cmocka_unit_test(a_list_of_cgroups_that_is_too_long_is_an_error),
		cmocka_unit_test(v2_programs),
		cmocka_unit_test(v2_two_programs),
		cmocka_unit_test(v2_no_program_is_nothing_to_do),
		cmocka_unit_test(v2_program_does_not_grow),
		cmocka_unit_test(v2_hooks_at_once),
		cmocka_unit_test(v2_a_lock_that_is_held_is_waited_for_and_its_holder_named),
		cmocka_unit_test(v2_outer_cgroup_is_named),
		cmocka_unit_test(v2_old_kernel),
		cmocka_unit_test(v2_no_mount_shows_the_cgroup),
		cmocka_unit_test_teardown(v2_hardened_program_is_restored, put_hardening_back),
		cmocka_unit_test(v2_linked_program_is_refused),
		cmocka_unit_test(v2_linked_program_is_told_of_by_who_takes_back),
		cmocka_unit_test(v2_program_with_calls_is_refused),
		cmocka_unit_test(v2_user_namespace),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
