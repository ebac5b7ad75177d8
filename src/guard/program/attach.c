/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/program/attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "dxg/ioctl.h"
#include "guard/choice.h"
#include "guard/pins.h"
#include "guard/program/btf_check.h"
#include "guard/program/detach_wait.h"
#include "guard/program/errno.h"
#include "guard/program/probes.h"
#include "guard/program/programs.h"
#include "guard/tracing.h"

/* A symlink of bpffs, which holds links besides pins; no file is behind it. */
#define VERSION_LINK GUARD_PINS "/version"
/*
 * Of a load that has not ended; one that was killed leaves them attached. No dot: names with one are the file system's
 * own.
 */
#define NEXT_PINS GUARD_BPFFS "/ctr-gpu-next"

enum {
	COMPLAINT_MAX = 512,
	VERSION_MAX = 64,
	NOT_COUNTED = 1 << 30, /* choices that another version of the guard has not counted, more than there can be */
};

/* What libbpf and the verifier said last that looks like a reason. */
static char complaint[COMPLAINT_MAX];
static bool attach_verbose;
/* What was out while libbpf tried something. Its own answer may be another error then. */
static int shortage;

/* libbpf writes such an error as a number where it opens a module's types, elsewhere in words or by its name. */
static void attach_note_shortage(const char *line)
{
	static const struct {
		int error;
		const char *name;
	} shortages[] = {{EMFILE, "EMFILE"}, {ENFILE, "ENFILE"}, {ENOMEM, "ENOMEM"}};
	int types_error = 0;

	(void)sscanf(line, "failed to get BTF object #%*d FD: %d", &types_error);
	for (size_t i = 0; i < ARRAY_SIZE(shortages); i++)
		if (types_error == -shortages[i].error || strstr(line, strerror(shortages[i].error)) ||
		    strstr(line, shortages[i].name))
			shortage = -shortages[i].error;
}

__attribute__((format(printf, 2, 0))) static int attach_listen(enum libbpf_print_level level, const char *format,
							       va_list arguments)
{
	char text[4096];
	const char *line;
	va_list again;

	if (level != LIBBPF_WARN)
		return 0;
	va_copy(again, arguments);
	(void)vsnprintf(text, sizeof(text), format, again);
	va_end(again);
	line = str_has_prefix(text, "libbpf: ") ? text + strlen("libbpf: ") : text;
	attach_note_shortage(line);
	if (attach_verbose) {
		(void)vfprintf(stderr, format, arguments);
		return 0;
	}
	if (!complaint[0] && !strstr(line, "BEGIN PROG LOAD LOG"))
		(void)snprintf(complaint, sizeof(complaint), "%.*s", (int)strcspn(line, "\n"), line);
	return 0;
}

/* ---- pins ---- */

static bool attach_is_bpffs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == BPF_FS_MAGIC;
}

/* WSL without systemd has nobody who mounts it. */
static int attach_mount_bpffs(struct err *err)
{
	if (attach_is_bpffs(GUARD_BPFFS))
		return 0;
	if (mount("bpf", GUARD_BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=700") < 0)
		return err_set(err, -errno, "cannot mount a BPF file system on " GUARD_BPFFS ": %m");
	return 0;
}

/* A distribution mends a version without changing its number, so the programs themselves count. */
static const char *attach_version(void)
{
	static char version[VERSION_MAX];

	if (!version[0])
		(void)snprintf(version, sizeof(version), CTR_GPU_VERSION "-%016" PRIx64, programs_hash());
	return version;
}

bool attach_is_done(bool *ret_other)
{
	_cleanup_free_ char *version = NULL;
	bool there = pins_are_roots() && fd_read_link_at(AT_FDCWD, VERSION_LINK, &version) == 0;
	bool ours = there && streq(version, attach_version());

	if (ret_other)
		*ret_other = !ours && access(GUARD_PINS, F_OK) == 0;
	return ours;
}

static int attach_pin(struct guard *guard, struct err *err)
{
	struct bpf_link **links = (struct bpf_link **)&guard->links;
	struct bpf_program *program;
	size_t count = sizeof(guard->links) / sizeof(*links), i = 0;
	char path[256];
	int r;

	if (mkdir(NEXT_PINS, 0700) < 0)
		return err_set(err, -errno, "cannot make " NEXT_PINS ": %m");
	r = bpf_map__pin(guard->maps.choices, NEXT_PINS "/choices");
	if (r == 0)
		r = bpf_map__pin(guard->maps.present, NEXT_PINS "/present");
	bpf_object__for_each_program(program, guard->obj)
	{
		if (i == count || r < 0)
			break;
		(void)snprintf(path, sizeof(path), NEXT_PINS "/%s", bpf_program__name(program));
		if (links[i])
			r = bpf_link__pin(links[i], path);
		i++;
	}
	if (r == 0 && symlink(attach_version(), NEXT_PINS "/version") < 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "cannot pin the guard below " GUARD_BPFFS ": %m") : 0;
}

/*
 * The new ones are attached already, so nobody is unguarded between, and in one step: a start that looks for the
 * choices finds them, and if this process is killed, so does the next load.
 */
static int attach_take_place(struct err *err)
{
	bool replaces = faccessat(AT_FDCWD, GUARD_PINS, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	int r = replaces && !pins_are_roots() ? -EPERM : 0;

	if (r == 0 && renameat2(AT_FDCWD, NEXT_PINS, AT_FDCWD, GUARD_PINS, replaces ? RENAME_EXCHANGE : 0) < 0)
		r = -errno;
	if (r == 0)
		r = pins_remove(NEXT_PINS);
	return r < 0 ? err_set(err, r, "cannot put the guard's programs in the place of others in " GUARD_PINS ": %m")
		     : 0;
}

/* ---- loading ---- */

static int attach_explain(int r, const struct strv *missing, struct err *err)
{
	return err_set(err, CTR_GPU_E_GUARD, "this kernel or driver cannot be guarded: %.400s%s\n%s",
		       missing        ? missing->items[0]
		       : complaint[0] ? complaint
				      : strerror(-r),
		       missing && missing->count > 1 ? ", and more" : "",
		       missing ? CTR_GPU_LIBEXECDIR
			       "/ctr-gpu-guard check lists all of it; see docs/guard.md for the kernels that can."
			       : "See docs/guard.md for what the kernel needs.");
}

static int attach_device(unsigned *ret, struct err *err)
{
	struct stat st;

	if (stat(DXG_DEVICE, &st) < 0)
		return err_set(err, -errno, "cannot look at " DXG_DEVICE ": %m");
	/* MKDEV() of the kernel. */
	*ret = major(st.st_rdev) << 20 | minor(st.st_rdev);
	return 0;
}

/* Return: whether the programs of this version can count in it. */
static bool attach_can_count(int map)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	return map >= 0 && bpf_obj_get_info_by_fd(map, &info, &size) == 0 && info.type == BPF_MAP_TYPE_ARRAY &&
	       info.value_size == sizeof(struct guard_counts) && info.map_flags & BPF_F_MMAPABLE;
}

/*
 * The choices that there are, and how many.
 * @ret_counted: whether that is known
 * Return: 0 or negative errno.
 */
static int attach_keep_choices(struct guard *guard, bool *ret_counted)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	int r = choices_open(&choices);

	*ret_counted = r == -ENOENT || attach_can_count(choices.counts);
	/* Choices that cannot be opened must not be lost. */
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = bpf_map__reuse_fd(guard->maps.choices, choices.map);
	return r == 0 && *ret_counted ? bpf_map__reuse_fd(guard->maps.present, choices.counts) : r;
}

static int attach_load(struct guard *guard, bool counted)
{
	int r = bpf_object__load(guard->obj);

	if (r < 0 && shortage < 0)
		r = shortage;
	for (unsigned i = 0; r == 0 && !counted && i < GUARD_HIERARCHIES; i++)
		r = choice_count(bpf_map__fd(guard->maps.present), i, NOT_COUNTED);
	return r;
}

static int attach_load_and_attach(struct guard *guard, bool counted, struct err *err)
{
	int r = attach_load(guard, counted);
	bool may_pass = errno_is_temporary(r);

	if (r == 0) {
		r = programs_attach(guard);
		/* Others' programs may be as many as a function can have. */
		may_pass = errno_is_temporary(r) || r == -E2BIG;
	}
	if (may_pass)
		return err_set(err, r, "cannot load the guard's programs: %s%s%m", complaint, complaint[0] ? ": " : "");
	/* A service's limits, a container's or a security module's: another caller may. */
	if (r == -EPERM || r == -EACCES)
		return err_set(err, CTR_GPU_E_NO_PERMISSION, "this process may not load BPF programs: %s%s%s",
			       complaint, complaint[0] ? ": " : "", strerror(-r));
	return r < 0 ? attach_explain(r, NULL, err) : 0;
}

static int attach_configure(const struct btf_facts *facts, struct guard *guard, unsigned device, bool can_stay)
{
	int r = programs_set(guard, "guard_device", &device, sizeof(device));

	if (r == 0)
		r = programs_set(guard, "guard_can_stay", &can_stay, sizeof(can_stay));
	if (r == 0)
		r = programs_choose(guard, "guard_ioctl_compat", facts->has_compat_hook);
	if (r == 0)
		r = programs_choose(guard, "guard_removed", facts->has_rmdir_event);
	return r < 0 ? r : programs_choose(guard, "guard_refused_compat", facts->has_compat_hook);
}

static int attach_begin(const struct btf_facts *facts, struct guard *guard, struct err *err)
{
	const bool preempts = probes_are_wanted();
	const bool can_stay = preempts && facts->has_preempt_calls && probes_may_stay();
	unsigned device = 0;
	bool counted;
	int r = attach_device(&device, err);

	if (r < 0)
		return r;
	r = attach_configure(facts, guard, device, can_stay);
	if (r < 0)
		return err_set(err, r, "the guard's programs are not those that this program was built for: %m");
	probes_choose(guard->obj, facts, preempts);
	r = attach_keep_choices(guard, &counted);
	if (r < 0)
		return err_set(err, r, "cannot keep the choices that there are: %m");
	return attach_load_and_attach(guard, counted, err);
}

static int attach_all(const struct btf_facts *facts, struct err *err)
{
	struct guard *guard;
	int r;

	(void)libbpf_set_print(attach_listen);
	guard = programs_open();
	if (!guard)
		return err_set(err, -errno, "cannot read the guard's programs: %m");
	r = attach_begin(facts, guard, err);
	if (r == 0)
		r = pins_remove(NEXT_PINS);
	if (r == 0)
		r = attach_pin(guard, err);
	if (r == 0)
		r = attach_take_place(err);
	programs_close(guard);
	return r;
}

/* One at a time; the others find it done. */
static int attach_lock(int *ret, struct err *err)
{
	_cleanup_close_ int fd = open(GUARD_BPFFS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_set(err, -errno, "cannot lock " GUARD_BPFFS ": %m");
	*ret = steal_fd(&fd);
	return 0;
}

static int attach_remove(const char *pins, struct err *err)
{
	struct detach_wait running;
	int r;

	detach_wait_read(pins, &running);
	r = pins_remove(pins);
	if (r < 0)
		return err_set(err, r, "cannot remove %s: %m", pins);
	detach_wait_wait(&running);
	return 0;
}

int attach_do(bool verbose, struct err *err)
{
	_cleanup_strv_ struct strv missing = {0};
	_cleanup_close_ int lock = -1;
	struct btf_facts facts;
	int r;

	attach_verbose = verbose;
	if (attach_is_done(NULL) && access(NEXT_PINS, F_OK) < 0)
		return 0;
	if (geteuid() != 0)
		return err_set(err, CTR_GPU_E_NO_PERMISSION, "loading BPF programs takes root");
	if (tracing_is_off())
		return err_set(err, -EOPNOTSUPP, TRACING_OFF);
	r = btf_check_check(&facts, &missing);
	if (r < 0)
		return r;
	if (missing.count > 0)
		return attach_explain(0, &missing, err);
	r = attach_mount_bpffs(err);
	if (r == 0)
		r = attach_lock(&lock, err);
	if (r == 0)
		r = attach_is_done(NULL) ? attach_remove(NEXT_PINS, err) : attach_all(&facts, err);
	return r;
}

int attach_undo(struct err *err)
{
	_cleanup_close_ int lock = -1;
	int r;

	if (access(GUARD_PINS, F_OK) < 0 && access(NEXT_PINS, F_OK) < 0)
		return 0;
	r = attach_lock(&lock, err);
	if (r == 0)
		r = attach_remove(GUARD_PINS, err);
	return r == 0 ? attach_remove(NEXT_PINS, err) : r;
}
