/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Version 2: BPF programs, attached to a cgroup and inherited by those below it; an access needs the consent of all
 * (Documentation/bpf/prog_cgroup_sysctl.rst and kernel/bpf/cgroup.c tell the flags). Each program that forbids one of
 * our devices is exchanged for one that allows it and otherwise answers as before.
 */

#include "devcgroup/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/lock_file.h"
#include "base/paths.h"
#include "devcgroup/bpf_device.h"
#include "process/privilege.h"

/* The kernel's own limit (BPF_CGROUP_MAX_PROGS); how often others may be faster. */
enum { PROGRAMS_MAX = 64, TRIES_MAX = 1000, WAIT_MS = 5000 };

#define LOCK_DIRECTORY PATH_RUN
#define LOCK "devices.lock"

struct v2_state {
	int needed;       /* that queries, attaching and detaching need effective on this kernel */
	size_t effective; /* programs that the container's accesses went through */
	pid_t holder;     /* of the lock that could not be had */
};

struct attached {
	__u32 ids[PROGRAMS_MAX];
	size_t count;
	unsigned flags;
};

static int v2_query(int cgroup_fd, unsigned query_flags, struct attached *ret)
{
	union bpf_attr attr;
	int r;

	memset(&attr, 0, sizeof(attr));
	attr.query.target_fd = (__u32)cgroup_fd;
	attr.query.attach_type = BPF_CGROUP_DEVICE;
	attr.query.query_flags = query_flags;
	attr.query.prog_ids = (__u64)(uintptr_t)ret->ids;
	attr.query.prog_cnt = PROGRAMS_MAX;
	r = bpf_call(BPF_PROG_QUERY, &attr);
	if (r < 0)
		return r;
	ret->count = attr.query.prog_cnt < PROGRAMS_MAX ? attr.query.prog_cnt : PROGRAMS_MAX;
	ret->flags = attr.query.attach_flags;
	return 0;
}

static int v2_change(enum bpf_cmd command, int cgroup_fd, int program_fd, unsigned flags, int replaced_fd)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (__u32)cgroup_fd;
	attr.attach_bpf_fd = (__u32)program_fd;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = flags;
	attr.replace_bpf_fd = flags & BPF_F_REPLACE ? (__u32)replaced_fd : 0;
	return bpf_call(command, &attr);
}

/* The id of a loaded program; no program has id 0. */
static __u32 v2_program_id(int program_fd)
{
	struct bpf_prog_info info = {0};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (__u32)program_fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (__u64)(uintptr_t)&info;
	return bpf_call(BPF_OBJ_GET_INFO_BY_FD, &attr) < 0 ? 0 : info.id;
}

static bool v2_is_attached(int cgroup_fd, __u32 id)
{
	struct attached attached = {0};

	if (v2_query(cgroup_fd, 0, &attached) < 0)
		return false;
	for (size_t i = 0; i < attached.count; i++)
		if (attached.ids[i] == id)
			return true;
	return false;
}

/* Of the host, whatever mount namespace is entered later. Return: descriptor; negative errno. */
static int v2_open_lock_directory(void)
{
	if (mkdir(LOCK_DIRECTORY, 0700) < 0 && errno != EEXIST)
		return -errno;
	return lock_file_open_directory(LOCK_DIRECTORY);
}

/* Attaching without a list replaces what is there, whatever that is: of ours, one at a time looks first. */
static int v2_exchange_only(int cgroup_fd, int old_fd, int new_fd, unsigned flags, int lock_directory,
			    pid_t *ret_holder)
{
	_cleanup_close_ int lock = lock_file_take(lock_directory, LOCK, WAIT_MS, ret_holder);

	if (lock < 0)
		return lock;
	return v2_is_attached(cgroup_fd, v2_program_id(old_fd))
		       ? v2_change(BPF_PROG_ATTACH, cgroup_fd, new_fd, flags & BPF_F_ALLOW_OVERRIDE, -1)
		       : -ENOENT;
}

/*
 * Replaces one program by another if the old one is still there. At no time is a device allowed that should not be.
 * Where several may be attached, Linux 5.6 and later exchange them in one step. Before that the new one is attached
 * beside the old one, then the old one is detached; in between both must consent. Return: 0; -ENOENT if the old one is
 * gone or a bpf_link's; -ETIMEDOUT with @ret_holder if another process has the lock.
 */
static int v2_exchange(int cgroup_fd, int old_fd, int new_fd, unsigned flags, int lock_directory, pid_t *ret_holder)
{
	int r;

	if (!(flags & BPF_F_ALLOW_MULTI))
		return v2_exchange_only(cgroup_fd, old_fd, new_fd, flags, lock_directory, ret_holder);
	r = v2_change(BPF_PROG_ATTACH, cgroup_fd, new_fd, BPF_F_ALLOW_MULTI | BPF_F_REPLACE, old_fd);
	if (r != -EINVAL)
		return r;
	r = v2_change(BPF_PROG_ATTACH, cgroup_fd, new_fd, BPF_F_ALLOW_MULTI, -1);
	if (r < 0)
		return r;
	r = v2_change(BPF_PROG_DETACH, cgroup_fd, old_fd, 0, -1);
	if (r < 0)
		(void)v2_change(BPF_PROG_DETACH, cgroup_fd, new_fd, 0, -1);
	return r;
}

enum { CGROUP, OLD, NEW };

/* The step before an exchange that takes a lock has the lock's directory. */
static void v2_undo_nothing(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)undo_log;
	(void)undo_step;
}

/* An exchanged program; the undo step's descriptors keep both alive. */
static void v2_undo_exchange(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	_cleanup_capability_ int raised = capability_raise(undo_step->capability);
	pid_t ignored;

	(void)undo_log;
	(void)v2_exchange(undo_step->fds[CGROUP], undo_step->fds[NEW], undo_step->fds[OLD], undo_step->number,
			  undo_step->number & BPF_F_ALLOW_MULTI ? -1 : undo_step[-1].fds[0], &ignored);
}

/* v2_exchange() that can be taken back. Takes over both programs; the first step of a level has its descriptor, too. */
static int v2_replace_locked(struct devcgroup *cgroup, struct devcgroup_level *level, int *old_fd, int *new_fd,
			     unsigned flags, int lock_directory)
{
	struct v2_state *state = cgroup->state;
	struct undo_step undo_step = {
		.undo = v2_undo_exchange, .fds = {-1, *old_fd, *new_fd}, .number = flags, .capability = state->needed};
	int r;

	undo_step.fds[CGROUP] = level->kept ? fcntl(level->fd, F_DUPFD_CLOEXEC, 0) : level->fd;
	r = undo_step.fds[CGROUP] < 0 ? -errno : undo_log_add(cgroup->undo_log, &undo_step, NULL);
	if (r == 0) {
		r = v2_exchange(level->fd, *old_fd, *new_fd, flags, lock_directory, &state->holder);
		if (r == 0) {
			*old_fd = *new_fd = -1;
			level->kept = true;
			return 0;
		}
		undo_log_pop(cgroup->undo_log);
	}
	if (level->kept)
		cleanup_closep(&undo_step.fds[CGROUP]);
	return r;
}

static int v2_replace_old(struct devcgroup *cgroup, struct devcgroup_level *level, int *old_fd, int *new_fd,
			  unsigned flags)
{
	struct undo_step undo_step = {.undo = v2_undo_nothing, .fds = {-1, -1, -1}};
	_cleanup_close_ int directory = -1;
	int r;

	if (flags & BPF_F_ALLOW_MULTI)
		return v2_replace_locked(cgroup, level, old_fd, new_fd, flags, -1);
	directory = v2_open_lock_directory();
	undo_step.fds[0] = directory;
	r = directory < 0 ? directory : undo_log_add(cgroup->undo_log, &undo_step, NULL);
	if (r < 0)
		return r;
	r = v2_replace_locked(cgroup, level, old_fd, new_fd, flags, directory);
	if (r == 0)
		(void)steal_fd(&directory);
	else
		undo_log_pop(cgroup->undo_log);
	return r;
}

static int v2_open_program(__u32 id, int *ret_fd)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_id = id;
	fd = bpf_call(BPF_PROG_GET_FD_BY_ID, &attr);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/*
 * Makes and loads the extended program. @missing: room for all rules; gets those that were added. Return: 0, with -1 in
 * @ret_fd if there is nothing to add; or an error.
 */
static int v2_extend(int old_fd, const struct devcgroup_rule *rules, size_t count, struct devcgroup_rule *missing,
		     size_t *ret_missing, int *ret_fd, struct err *err)
{
	_cleanup_bpf_program_ struct bpf_program old = {0}, new = {0};
	size_t lacking = 0;
	int r;

	r = bpf_program_read(old_fd, &old, err);
	if (r != 0)
		return r;
	for (size_t i = 0; i < count; i++)
		if (bpf_program_allows(&old, &rules[i]) != BPF_ALLOWS)
			missing[lacking++] = rules[i];
	if (lacking == 0) {
		*ret_fd = -1;
		return 0;
	}
	*ret_missing = lacking;
	r = bpf_program_extend(&old, missing, lacking, &new);
	if (r < 0)
		return err_set(err, r, "cannot allow devices: %m");
	return bpf_program_load(&new, ret_fd, err);
}

/* A program attached by a bpf_link can only be changed by its owner. */
static int v2_explain_link(const struct devcgroup_level *level, const char *advice, struct err *err)
{
	return err_set_advised(
		err, CTR_GPU_E_NO_CGROUP,
		("the device program of %s belongs to another program's link and cannot be replaced:", level->path),
		("%s", advice));
}

/* Return: -EAGAIN if the program is gone: an unknown one may be there instead. */
static int v2_replace(struct devcgroup *cgroup, struct devcgroup_level *level, __u32 id, unsigned flags,
		      const struct devcgroup_rule *rules, size_t count, struct err *err)
{
	_cleanup_free_ struct devcgroup_rule *missing = calloc(count, sizeof(*missing));
	_cleanup_close_ int old_fd = -1, new_fd = -1;
	size_t lacking = 0;
	int r = missing ? v2_open_program(id, &old_fd) : -ENOMEM;

	if (r == -ENOENT)
		return -EAGAIN;
	if (r < 0)
		return err_set(err, r, "cannot open the device program of %s: %m", level->path);
	r = v2_extend(old_fd, rules, count, missing, &lacking, &new_fd, err);
	if (r != 0 || new_fd < 0)
		return r;
	r = v2_replace_old(cgroup, level, &old_fd, &new_fd, flags);
	if (r == -ENOENT && !v2_is_attached(level->fd, id))
		return -EAGAIN;
	if (r == -ENOENT || r == -EPERM)
		return v2_explain_link(level, "give the device to the engine by CDI instead", err);
	if (r == -ETIMEDOUT)
		return err_set_advised(
			err, r,
			("cannot replace the device program of %s, as process %d does not let go of " LOCK_DIRECTORY
			 "/" LOCK ": %m.",
			 level->path, (int)((const struct v2_state *)cgroup->state)->holder),
			("See what it waits for, or end it; then try again."));
	if (r < 0)
		return err_set(err, r, "cannot replace the device program of %s: %m", level->path);
	if (level == cgroup->levels)
		cgroup->unit_changed = true;
	r = additions_add_in(&cgroup->additions, level->fd, missing, lacking);
	return r < 0 ? err_set(err, r, "%m") : 0;
}

/*
 * Several hooks, and engines, may change a cgroup at once: then what is there now is looked at again.
 * @ret: how many programs it has
 */
static int v2_allow_level(struct devcgroup *cgroup, struct devcgroup_level *level, const struct devcgroup_rule *rules,
			  size_t count, size_t *ret, struct err *err)
{
	struct attached attached = {0};
	int r = -EAGAIN;

	for (unsigned tries = 0; r == -EAGAIN && tries < TRIES_MAX; tries++) {
		r = v2_query(level->fd, 0, &attached);
		if (r < 0)
			return err_set(err, r, "cannot ask for the device programs of %s: %m", level->path);
		for (size_t i = 0; r == 0 && i < attached.count; i++)
			r = v2_replace(cgroup, level, attached.ids[i], attached.flags, rules, count, err);
	}
	if (r == -EAGAIN)
		return err_set(err, -EBUSY, "the device programs of %s do not stop changing: %m", level->path);
	*ret = attached.count;
	return r;
}

/* A container cannot have a device that a program further up still forbids, whatever its own says. */
static int v2_check_above(const struct devcgroup_level *own, const struct devcgroup_rule *rules, size_t count,
			  struct err *err)
{
	struct attached attached = {0};

	if (v2_query(own->fd, BPF_F_QUERY_EFFECTIVE, &attached) < 0)
		return 0;
	for (size_t i = 0; i < attached.count; i++) {
		_cleanup_bpf_program_ struct bpf_program program = {0};
		_cleanup_close_ int fd = -1;

		if (v2_open_program(attached.ids[i], &fd) < 0 || bpf_program_read(fd, &program, NULL) != 0)
			continue;
		for (size_t j = 0; j < count; j++)
			if (bpf_program_allows(&program, &rules[j]) == BPF_DENIES)
				return err_set_advised(
					err, CTR_GPU_E_NO_CGROUP,
					("a cgroup above %s forbids device %c %u:%u:", own->path, rules[j].type,
					 rules[j].major, rules[j].minor),
					("allow it there, or start the container under another parent cgroup"));
	}
	return 0;
}

static int v2_allow(struct devcgroup *cgroup, const struct devcgroup_rule *rules, size_t count, struct err *err)
{
	const struct v2_state *state = cgroup->state;
	_cleanup_capability_ int raised = capability_raise(state->needed);
	size_t ours = 0;
	int r = 0;

	for (size_t i = 0; i < cgroup->level_count && r == 0; i++) {
		size_t programs = 0;

		r = v2_allow_level(cgroup, &cgroup->levels[i], rules, count, &programs, err);
		ours += programs;
	}
	if (r != 0 || ours >= state->effective)
		return r;
	return v2_check_above(&cgroup->levels[cgroup->level_count - 1], rules, count, err);
}

/* ---- taking back in another process ---- */

/*
 * A program without the addition. systemd may have written one of its own since, by our drop-in, which is gone: then
 * one that forbids the devices until it does again. Return: 1 with @ret; 0 if nothing is to be done; -ENOMEM.
 */
static int v2_reduce(const struct bpf_program *old, const struct devcgroup_addition *addition, bool rewritten,
		     struct bpf_program *ret)
{
	int r = bpf_program_strip(old, addition->rules, addition->count, ret);

	if (r != 0 || !rewritten)
		return r;
	for (size_t i = 0; i < addition->count; i++)
		if (bpf_program_allows(old, &addition->rules[i]) == BPF_ALLOWS) {
			r = bpf_program_forbid(old, addition->rules, addition->count, ret);
			return r < 0 ? r : 1;
		}
	return 0;
}

/* Return: 0, also if the program does not have the addition; -EAGAIN if it is gone; an error. */
static int v2_strip(const struct devcgroup *cgroup, const struct devcgroup_level *level, __u32 id, unsigned flags,
		    const struct devcgroup_addition *addition, int lock_directory, bool *ret_done, struct err *err)
{
	_cleanup_bpf_program_ struct bpf_program old = {0}, new = {0};
	_cleanup_close_ int old_fd = -1, new_fd = -1;
	pid_t holder = 0;
	int r = v2_open_program(id, &old_fd);

	if (r == -ENOENT)
		return -EAGAIN;
	if (r < 0)
		return err_set(err, r, "cannot open the device program of %s: %m", level->path);
	/* What cannot be read was not extended. */
	if (bpf_program_read(old_fd, &old, NULL) != 0)
		return 0;
	r = v2_reduce(&old, addition, cgroup->rewritten, &new);
	if (r <= 0)
		return r < 0 ? err_set(err, r, "%m") : 0;
	r = bpf_program_load(&new, &new_fd, err);
	if (r != 0)
		return r;
	r = v2_exchange(level->fd, old_fd, new_fd, flags, lock_directory, &holder);
	if (r == -ENOENT && !v2_is_attached(level->fd, id))
		return -EAGAIN;
	if (r == -ENOENT || r == -EPERM)
		return v2_explain_link(level, "end the container: its devices go with it", err);
	if (r == -ETIMEDOUT)
		return err_set(err, r, "process %d does not let go of " LOCK_DIRECTORY "/" LOCK ": %m", (int)holder);
	*ret_done = r == 0;
	return r < 0 ? err_set(err, r, "cannot replace the device program of %s: %m", level->path) : 0;
}

static int v2_take_back(struct devcgroup *cgroup, const struct devcgroup_level *level,
			const struct devcgroup_addition *addition, struct err *err)
{
	const struct v2_state *state = cgroup->state;
	_cleanup_capability_ int raised = capability_raise(state->needed);
	_cleanup_close_ int directory = v2_open_lock_directory();
	int r = directory < 0 ? err_set(err, directory, "cannot open " LOCK_DIRECTORY ": %m") : -EAGAIN;
	bool done = false;

	for (unsigned tries = 0; r == -EAGAIN && tries < TRIES_MAX; tries++) {
		struct attached attached = {0};

		r = v2_query(level->fd, 0, &attached);
		if (r < 0)
			return err_set(err, r, "cannot ask for the device programs of %s: %m", level->path);
		for (size_t i = 0; r == 0 && !done && i < attached.count; i++)
			r = v2_strip(cgroup, level, attached.ids[i], attached.flags, addition, directory, &done, err);
	}
	return r == -EAGAIN ? err_set(err, -EBUSY, "the device programs of %s do not stop changing: %m", level->path)
			    : r;
}

static int v2_open(struct devcgroup *cgroup, struct err *err)
{
	const struct devcgroup_level *own = &cgroup->levels[cgroup->level_count - 1];
	_cleanup_capability_ int raised = CAPABILITY_NONE;
	struct attached effective = {0};
	struct v2_state *state;
	int r = v2_query(own->fd, BPF_F_QUERY_EFFECTIVE, &effective);

	/* Linux 6.9 and later take CAP_SYS_ADMIN in its place. */
	if (r == -EPERM && (raised = capability_raise(CAP_NET_ADMIN)) != CAPABILITY_NONE)
		r = v2_query(own->fd, BPF_F_QUERY_EFFECTIVE, &effective);
	/* A kernel without CONFIG_CGROUP_BPF has no device programs. */
	if (r == -EINVAL || r == -ENOSYS || ((r == -EPERM || r == -EACCES) && !devcgroup_is_privileged()))
		return 0;
	if (r < 0)
		return err_set(err, r, "cannot ask for the device programs of %s: %m", own->path);
	if (!effective.count)
		return 0;
	state = calloc(1, sizeof(*state));
	if (!state)
		return err_set(err, -ENOMEM, "cannot read the device programs of %s: %m", own->path);
	state->needed = raised;
	state->effective = effective.count;
	cgroup->state = state;
	return 1;
}

static void v2_close(struct devcgroup *cgroup)
{
	free(cgroup->state);
}

const struct devcgroup_version devcgroup_v2 = {v2_open, v2_allow, v2_take_back, v2_close};
