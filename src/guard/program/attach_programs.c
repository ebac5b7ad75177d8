/* SPDX-License-Identifier: Apache-2.0 */

/* Where the guard's programs are attached, how they are pinned, and how they are replaced. */

#include "guard/program/internal.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/lock_file.h"
#include "base/paths.h"
#include "base/str.h"
#include "dxg/dxg.h"
#include "guard/choice.h"
#include "guard/helper.h"
#include "guard_object.h"

/*
 * The guard's BPF programs, which this program has in it, as libbpf has them. They are looked up by name, so that the
 * build needs no generated header, and no tool that a distribution may lack.
 */

enum { PROGRAMS_MAX = 64 };

struct guard {
	struct bpf_object *obj;
	const struct btf_facts *facts;
	int driver_types; /* the kernel's object for them, if the driver is a module; -1 */
	struct {
		struct bpf_map *choices, *present;
	} maps;
	unsigned load;                        /* the number of this load */
	struct bpf_link *links[PROGRAMS_MAX]; /* in the order of the programs; NULL where one is not attached */
};

/* ---- where programs are attached ---- */

/*
 * libbpf looks for each of them among the types of every module that is loaded, and each time among the kernel's own
 * first. With some dozens of modules that takes most of a load's time, and btf_check_check() has found them already.
 */

enum { TARGET_NAME_MAX = 64 };

static const struct programs_section {
	const char *prefix, *name_prefix; /* of the section; and of the name that its target has among the types */
	enum bpf_prog_type type;
	enum bpf_attach_type attach;
} programs_sections[] = {
	{"fentry/", "", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY},
	{"fexit/", "", BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT},
	{"fmod_ret/", "", BPF_PROG_TYPE_TRACING, BPF_MODIFY_RETURN},
	{"tp_btf/", "btf_trace_", BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP},
	{"lsm/", "bpf_lsm_", BPF_PROG_TYPE_LSM, BPF_LSM_MAC},
};

/* Return: what programs_sections has for it; the program has such a section. */
static const struct programs_section *programs_section_of(const struct bpf_program *program)
{
	size_t i = 0;

	while (!str_has_prefix(bpf_program__section_name(program), programs_sections[i].prefix))
		i++;
	return &programs_sections[i];
}

/* libbpf's prog_prepare_load_fn. */
static int programs_aim(struct bpf_program *program, struct bpf_prog_load_opts *options, long guard_address)
{
	const struct guard *guard = (const struct guard *)guard_address;
	const struct programs_section *section = programs_section_of(program);
	const char *name = bpf_program__section_name(program) + strlen(section->prefix);
	const struct btf_target *target;
	char full[TARGET_NAME_MAX];

	(void)snprintf(full, sizeof(full), "%s%s", section->name_prefix, name);
	target = btf_target_find(guard->facts, full);
	if (!target)
		return -ESRCH;
	options->attach_btf_id = target->id;
	options->attach_btf_obj_fd = target->of_module ? (__u32)guard->driver_types : 0;
	return 0;
}

/* libbpf's prog_attach_fn. */
static int programs_attach_one(const struct bpf_program *program, long guard_address, struct bpf_link **ret)
{
	(void)guard_address;
	*ret = bpf_program__type(program) == BPF_PROG_TYPE_LSM ? bpf_program__attach_lsm(program)
							       : bpf_program__attach_trace(program);
	return *ret ? 0 : -errno;
}

static int programs_register(const struct guard *guard)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, options, .cookie = (long)guard, .prog_prepare_load_fn = programs_aim,
		    .prog_attach_fn = programs_attach_one);
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(programs_sections) && r >= 0; i++)
		r = libbpf_register_prog_handler(programs_sections[i].prefix, programs_sections[i].type,
						 programs_sections[i].attach, &options);
	return r < 0 ? r : 0;
}

static bool programs_are_of_module(const struct btf_facts *facts)
{
	for (size_t i = 0; i < facts->target_count; i++)
		if (facts->targets[i].of_module)
			return true;
	return false;
}

static int programs_find_targets(struct guard *guard)
{
	if (programs_are_of_module(guard->facts)) {
		guard->driver_types = btf_target_open_module();
		if (guard->driver_types < 0)
			return guard->driver_types;
	}
	return programs_register(guard);
}

/* ---- programs ---- */

/* Return: what differs where the programs differ. */
static uint64_t programs_hash(void)
{
	return str_hash_of(guard_object, sizeof(guard_object));
}

static int programs_find_maps(struct guard *guard)
{
	size_t count = 0;
	struct bpf_program *program;

	bpf_object__for_each_program(program, guard->obj) count++;
	guard->maps.choices = bpf_object__find_map_by_name(guard->obj, "choices");
	guard->maps.present = bpf_object__find_map_by_name(guard->obj, "present");
	if (!guard->maps.choices || !guard->maps.present)
		return -ENOENT;
	return count > PROGRAMS_MAX ? -E2BIG : 0;
}

/* Programs that were attached stay so if their links are pinned. Takes NULL. */
static void programs_close(struct guard *guard)
{
	if (!guard)
		return;
	for (size_t i = 0; i < PROGRAMS_MAX; i++)
		(void)bpf_link__destroy(guard->links[i]);
	bpf_object__close(guard->obj);
	cleanup_closep(&guard->driver_types);
	free(guard);
}

static int programs_open_object(struct guard *guard)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "guard");
	int r = programs_find_targets(guard);

	if (r < 0)
		return r;
	guard->obj = bpf_object__open_mem(guard_object, sizeof(guard_object), &options);
	return guard->obj ? programs_find_maps(guard) : -errno;
}

/*
 * Once in a process.
 * @facts: where they will be attached; must last as long as they
 * Return: the programs, not loaded, to be released with programs_close(); NULL with errno set.
 */
static struct guard *programs_open(const struct btf_facts *facts)
{
	struct guard *guard = calloc(1, sizeof(*guard));
	int r;

	if (!guard)
		return NULL;
	guard->facts = facts;
	guard->driver_types = -1;
	r = programs_open_object(guard);
	if (r == 0)
		return guard;
	programs_close(guard);
	errno = -r;
	return NULL;
}

/* Return: where the constant is among the others, or NULL. */
static const struct btf_var_secinfo *programs_find_constant(const struct guard *guard, const char *name)
{
	const struct btf *btf = bpf_object__btf(guard->obj);
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *section = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);

	for (unsigned i = 0; section && i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *constant = &btf_var_secinfos(section)[i];

		if (streq(btf__name_by_offset(btf, btf__type_by_id(btf, constant->type)->name_off), name))
			return constant;
	}
	return NULL;
}

/*
 * Sets a constant of the programs before they are loaded.
 * @size: must be the size of the constant; -EINVAL otherwise
 * Return: 0; -ENOENT if no program has it.
 */
static int programs_set(struct guard *guard, const char *name, const void *value, size_t size)
{
	const struct btf_var_secinfo *constant = programs_find_constant(guard, name);
	struct bpf_map *map = bpf_object__find_map_by_name(guard->obj, ".rodata");
	_cleanup_free_ char *values = NULL;
	const void *initial;
	size_t all = 0;

	initial = map ? bpf_map__initial_value(map, &all) : NULL;
	if (!constant || !initial)
		return -ENOENT;
	if (constant->size != size || constant->offset > all || all - constant->offset < size)
		return -EINVAL;
	values = malloc(all);
	if (!values)
		return -ENOMEM;
	memcpy(values, initial, all);
	memcpy(values + constant->offset, value, size);
	return bpf_map__set_initial_value(map, values, all);
}

/* Leaves a program out of what is loaded, or not. Return: 0; -ENOENT if there is none of that name. */
static int programs_choose(struct guard *guard, const char *name, bool wanted)
{
	struct bpf_program *program = bpf_object__find_program_by_name(guard->obj, name);

	return program ? bpf_program__set_autoload(program, wanted) : -ENOENT;
}

/* Attaches those that were loaded. Return: 0; negative errno, with some of them attached. */
static int programs_attach(struct guard *guard)
{
	struct bpf_program *program;
	size_t i = 0;

	bpf_object__for_each_program(program, guard->obj)
	{
		if (bpf_program__autoload(program)) {
			guard->links[i] = bpf_program__attach(program);
			if (!guard->links[i])
				return -errno;
		}
		i++;
	}
	return 0;
}

/* A symlink of bpffs, which holds links besides pins; no file is behind it. */
#define VERSION_LINK "version"

/* Root's alone. */
#define LOCK_FOLDER PATH_RUN
#define LOCK_NAME "guard.lock"

enum {
	COMPLAINT_MAX = 512,
	VERSION_MAX = 64,
	PIN_PATH_MAX = 128,
	NOTE_MAX = 32,
	LOCK_WAIT_MS = 10000,  /* a load takes one or two seconds; a container waits for it */
	NOT_COUNTED = 1 << 30, /* choices that another version of the guard has not counted, more than there can be */
};

/* ---- the end of programs whose pins were removed: it comes after the pins' ---- */

enum { WAIT_ROUNDS = 1000, WAIT_USEC = 10000 };

static bool detach_wait_is(unsigned program)
{
	_cleanup_close_ int fd = bpf_prog_get_fd_by_id(program);

	return fd >= 0;
}

/* Waits until they are detached, for some seconds at most. */
static void detach_wait(const struct links *links)
{
	size_t gone = 0;

	for (int round = 0; round < WAIT_ROUNDS && gone < links->count; round++) {
		while (gone < links->count && !detach_wait_is(links->programs[gone]))
			gone++;
		if (gone < links->count)
			(void)usleep(WAIT_USEC);
	}
}

/* ---- programs that only some kernels need ---- */

/*
 * The programs that do again what others may be left out of on a kernel that preempts itself (preempt_check()):
 * probes, where nothing can interrupt them, and the gate as a security module. Elsewhere they would only take time.
 */

/*
 * Whether a program may take the locks that a task's storage and a signal take where nothing can interrupt it: not
 * with PREEMPT_RT.
 */
static bool probes_may_stay(void)
{
	struct utsname names;

	return uname(&names) == 0 && !strstr(names.version, "PREEMPT_RT");
}

static bool probes_are_possible(void)
{
	return probes_may_stay() && access("/sys/bus/event_source/devices/kprobe/type", R_OK) == 0;
}

/* Whether this kernel preempts itself. */
static bool probes_are_wanted(void)
{
	_cleanup_free_ char *why = NULL;

	return preempt_check(&why) == 0 && why;
}

/* Leaves them out of what is loaded, unless they are wanted and the kernel has what they need. */
static void probes_choose(struct bpf_object *programs, const struct btf_facts *facts, bool wanted)
{
	const bool possible = probes_are_possible();
	struct bpf_program *program;

	bpf_object__for_each_program(program, programs)
	{
		const char *name = bpf_program__name(program);

		if (str_has_prefix(name, "guard_probe_"))
			(void)bpf_program__set_autoload(program, wanted && possible);
		else if (str_has_prefix(name, "guard_again_"))
			(void)bpf_program__set_autoload(program, wanted);
		else if (streq(name, "guard_lsm"))
			(void)bpf_program__set_autoload(program, wanted && facts->has_bpf_lsm);
		else if (streq(name, "guard_lsm32"))
			(void)bpf_program__set_autoload(program,
							wanted && facts->has_bpf_lsm && facts->has_compat_hook);
	}
}

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

static bool attach_is_mounted(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == BPF_FS_MAGIC;
}

/* On WSL without systemd, no other program mounts the usual one. */
static int attach_mount(const char *path, struct err *err)
{
	if (attach_is_mounted(path))
		return 0;
	if (mount("bpf", path, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=700") < 0)
		return err_set(err, -errno, "cannot mount a BPF file system on %s: %m", path);
	return 0;
}

/* Others may write to the usual one, or have taken our names there. */
static int attach_mount_own(struct err *err)
{
	if (mkdir(PINS_OWN_FILE_SYSTEM, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "cannot make " PINS_OWN_FILE_SYSTEM ": %m");
	return attach_mount(PINS_OWN_FILE_SYSTEM, err);
}

/*
 * The BPF file system where only root can make, remove or replace pins.
 * @ret: its number
 * Return: descriptor; negative errno with @err set.
 */
static int attach_open_file_system(size_t *ret, struct err *err)
{
	int fd, r = attach_mount(PINS_USUAL_FILE_SYSTEM, err);

	if (r < 0)
		return r;
	fd = pins_open_file_system(PINS_USUAL);
	*ret = PINS_USUAL;
	if (fd >= 0 && !pins_are_others(fd))
		return fd;
	cleanup_closep(&fd);
	r = attach_mount_own(err);
	if (r < 0)
		return r;
	fd = pins_open_file_system(PINS_OWN);
	*ret = PINS_OWN;
	return fd < 0 ? err_set(err, fd, "cannot use " PINS_OWN_FILE_SYSTEM ": %m") : fd;
}

/* Whether a load that was killed has left its pins. */
static bool attach_is_unfinished(void)
{
	for (size_t i = 0; i < PINS_FILE_SYSTEMS; i++) {
		_cleanup_close_ int fd = pins_open_at(i, PINS_NEXT_NAME);

		if (fd >= 0)
			return true;
	}
	return false;
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
	_cleanup_close_ int pins = pins_open(NULL);
	_cleanup_free_ char *version = NULL;
	struct links links;
	bool ours = pins >= 0 && fd_read_link_at(pins, VERSION_LINK, &version) == 0 &&
		    streq(version, attach_version()) && links_read(pins, &links) == 0 &&
		    links_are_complete(pins, &links);

	if (ret_other)
		*ret_other = !ours && links_are_attached();
	return ours;
}

/* libbpf takes paths. */
static char *attach_pin_path(char path[PIN_PATH_MAX], int pins, const char *name)
{
	(void)snprintf(path, PIN_PATH_MAX, "/proc/self/fd/%d/%s", pins, name);
	return path;
}

static int attach_pin_links(struct guard *guard, int pins)
{
	struct bpf_link **links = (struct bpf_link **)&guard->links;
	struct bpf_program *program;
	size_t count = sizeof(guard->links) / sizeof(*links), i = 0;
	char path[PIN_PATH_MAX], note[NOTE_MAX];
	unsigned pinned = 0;
	int r = 0;

	bpf_object__for_each_program(program, guard->obj)
	{
		if (i == count || r < 0)
			break;
		if (links[i]) {
			r = bpf_link__pin(links[i], attach_pin_path(path, pins, bpf_program__name(program)));
			pinned++;
		}
		i++;
	}
	(void)snprintf(note, sizeof(note), "%u %u", pinned, guard->load);
	if (r == 0 && (symlinkat(note, pins, LINKS_NOTE) < 0 || symlinkat(attach_version(), pins, VERSION_LINK) < 0))
		r = -errno;
	return r;
}

static int attach_pin(struct guard *guard, size_t number, int file_system, struct err *err)
{
	_cleanup_close_ int pins = -1;
	char path[PIN_PATH_MAX];
	int r;

	if (mkdirat(file_system, PINS_NEXT_NAME, 0700) < 0)
		return err_set(err, -errno, "cannot make %s/" PINS_NEXT_NAME ": %m", pins_file_systems[number]);
	pins = pins_open_at(number, PINS_NEXT_NAME);
	r = pins < 0 ? pins : bpf_map__pin(guard->maps.choices, attach_pin_path(path, pins, GUARD_CHOICES_NAME));
	if (r == 0)
		r = bpf_map__pin(guard->maps.present, attach_pin_path(path, pins, GUARD_PRESENT_NAME));
	if (r == 0)
		r = attach_pin_links(guard, pins);
	return r < 0 ? err_set(err, r, "cannot pin the guard below %s: %m", pins_file_systems[number]) : 0;
}

/*
 * Puts the new pins in place, in one step: a start that looks for the choices finds them, and if this process is
 * killed, so does the next load. The new programs are attached already, so every process stays guarded.
 */
static int attach_take_place(size_t number, int file_system, struct err *err)
{
	bool replaces = faccessat(file_system, PINS_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	int r = 0;

	if (renameat2(file_system, PINS_NEXT_NAME, file_system, PINS_NAME, replaces ? RENAME_EXCHANGE : 0) < 0)
		r = -errno;
	for (size_t i = 0; i < PINS_FILE_SYSTEMS && r == 0; i++) {
		r = pins_remove(i, PINS_NEXT_NAME);
		if (r == 0 && i != number)
			r = pins_remove(i, PINS_NAME);
	}
	return r < 0 ? err_set(err, r, "cannot put the guard's programs in the place of others in %s/" PINS_NAME ": %m",
			       pins_file_systems[number])
		     : 0;
}

/* ---- loading ---- */

static int attach_explain(int r, const struct strv *missing, struct err *err)
{
	return err_set_advised(
		err, CTR_GPU_E_GUARD,
		("this kernel or driver cannot be guarded: %.400s%s",
		 missing        ? missing->items[0]
		 : complaint[0] ? complaint
				: strerror(-r),
		 missing && missing->count > 1 ? ", and more" : ""),
		("%s", missing ? CTR_GPU_LIBEXECDIR
			       "/ctr-gpu-guard check lists all of it; see docs/guard.md for the kernels that can."
			       : "See docs/guard.md for what the kernel needs."));
}

static int attach_device(unsigned *ret, struct err *err)
{
	struct stat st;

	if (stat(PATH_DXG, &st) < 0)
		return err_set(err, -errno, "cannot look at " PATH_DXG ": %m");
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

	/* Before they are attached: no load may find another one's lists and believe itself first. */
	if (r == 0)
		r = choice_set_first(bpf_map__fd(guard->maps.present), guard->load);
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

/* Two loads may count the same thread until one has taken the other's place. */
static unsigned attach_processors(void)
{
	int count = libbpf_num_possible_cpus();

	return count > 2 ? (unsigned)count : 2;
}

/* The number of this load: no other load has it, and it is not 0. */
static unsigned attach_number(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_BOOTTIME, &time);
	return (unsigned)(time.tv_sec * 1000 + time.tv_nsec / 1000000) | 1U << 31;
}

static int attach_set_constants(const struct btf_facts *facts, struct guard *guard, unsigned device, bool preempts)
{
	const bool can_stay = preempts && facts->has_preempt_calls && probes_may_stay();
	const unsigned processors = attach_processors(), number = attach_number();
	int r = programs_set(guard, "guard_device", &device, sizeof(device));

	guard->load = number;
	if (r == 0)
		r = programs_set(guard, "guard_processors", &processors, sizeof(processors));
	if (r == 0)
		r = programs_set(guard, "guard_load", &number, sizeof(number));
	if (r == 0)
		r = programs_set(guard, "guard_preempts", &preempts, sizeof(preempts));
	return r == 0 ? programs_set(guard, "guard_can_stay", &can_stay, sizeof(can_stay)) : r;
}

static int attach_choose(const struct btf_facts *facts, struct guard *guard)
{
	const struct {
		const char *program;
		bool wanted;
	} choices[] = {
		{"guard_ioctl_compat", facts->has_compat_hook},   {"guard_removed", facts->has_rmdir_event},
		{"guard_refused_compat", facts->has_compat_hook}, {"guard_fault", facts->has_fault_event},
		{"guard_fault_any", !facts->has_fault_event},
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(choices) && r == 0; i++)
		r = programs_choose(guard, choices[i].program, choices[i].wanted);
	return r;
}

static int attach_begin(const struct btf_facts *facts, struct guard *guard, struct err *err)
{
	const bool preempts = probes_are_wanted();
	unsigned device = 0;
	bool counted;
	int r = attach_device(&device, err);

	if (r < 0)
		return r;
	r = attach_set_constants(facts, guard, device, preempts);
	if (r == 0)
		r = attach_choose(facts, guard);
	if (r < 0)
		return err_set(err, r, "the guard's programs are not those that this program was built for: %m");
	probes_choose(guard->obj, facts, preempts);
	r = attach_keep_choices(guard, &counted);
	if (r < 0)
		return err_set(err, r, "cannot keep the choices that there are: %m");
	return attach_load_and_attach(guard, counted, err);
}

static int attach_put(struct guard *guard, struct err *err)
{
	_cleanup_close_ int file_system = -1;
	size_t number;
	int r = 0;

	file_system = attach_open_file_system(&number, err);
	if (file_system < 0)
		return file_system;
	for (size_t i = 0; i < PINS_FILE_SYSTEMS && r == 0; i++)
		r = pins_remove(i, PINS_NEXT_NAME);
	if (r < 0)
		return err_set(err, r, "cannot remove the pins of a load that was not ended: %m");
	r = attach_pin(guard, number, file_system, err);
	return r == 0 ? attach_take_place(number, file_system, err) : r;
}

static int attach_all(const struct btf_facts *facts, struct err *err)
{
	struct guard *guard;
	int r;

	(void)libbpf_set_print(attach_listen);
	guard = programs_open(facts);
	if (!guard)
		return err_set(err, -errno, "cannot read the guard's programs: %m");
	r = attach_begin(facts, guard, err);
	if (r == 0)
		r = attach_put(guard, err);
	programs_close(guard);
	return r;
}

/* One at a time; the others find it done. */
static int attach_lock(int *ret, struct err *err)
{
	_cleanup_close_ int folder = -1;
	pid_t holder = 0;
	int fd;

	if (mkdir(LOCK_FOLDER, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "cannot make " LOCK_FOLDER ": %m");
	folder = lock_file_open_directory(LOCK_FOLDER);
	if (folder < 0)
		return err_set(err, folder, "cannot open " LOCK_FOLDER ": %m");
	fd = lock_file_take(folder, LOCK_NAME, LOCK_WAIT_MS, &holder);
	if (fd == -ETIMEDOUT)
		return err_set_advised(
			err, fd,
			("process %d is loading or unloading the guard (" LOCK_FOLDER "/" LOCK_NAME ")", (int)holder),
			("Wait until it has ended, or end it."));
	if (fd < 0)
		return err_set(err, fd, "cannot lock " LOCK_FOLDER "/" LOCK_NAME ": %m");
	*ret = fd;
	return 0;
}

/* Their programs are the kernel's until a while after their pins are gone. */
static int attach_remove(size_t file_system, const char *name, struct err *err)
{
	_cleanup_close_ int pins = pins_open_at(file_system, name);
	struct links links = {0};
	int r;

	if (pins >= 0)
		(void)links_read(pins, &links);
	r = pins_remove(file_system, name);
	if (r < 0)
		return err_set(err, r, "cannot remove %s/%s: %m", pins_file_systems[file_system], name);
	detach_wait(&links);
	return 0;
}

static int attach_remove_everywhere(const char *name, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < PINS_FILE_SYSTEMS && r == 0; i++)
		r = attach_remove(i, name, err);
	return r;
}

/* Those that stay are the first again, after a load that was not ended. */
static void attach_restore_first(void)
{
	_cleanup_close_ int pins = pins_open(NULL);
	_cleanup_choices_ struct choices choices = CHOICES_NONE;

	if (pins >= 0 && choices_open(&choices) == 0 && attach_can_count(choices.counts))
		(void)choice_set_first(choices.counts, links_load(pins));
}

static int attach_replace(const struct btf_facts *facts, struct err *err)
{
	int r = attach_is_done(NULL) ? attach_remove_everywhere(PINS_NEXT_NAME, err) : attach_all(facts, err);

	attach_restore_first();
	return r;
}

int attach_do(bool verbose, struct err *err)
{
	_cleanup_strv_ struct strv missing = {0};
	_cleanup_close_ int lock = -1;
	struct btf_facts facts;
	int r;

	attach_verbose = verbose;
	if (attach_is_done(NULL) && !attach_is_unfinished())
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
	r = attach_lock(&lock, err);
	if (r == 0)
		r = attach_replace(&facts, err);
	return r;
}

int attach_undo(struct err *err)
{
	_cleanup_close_ int lock = -1, pins = pins_open(NULL);
	int r;

	if (pins == -ENOENT && !attach_is_unfinished())
		return 0;
	r = attach_lock(&lock, err);
	if (r == 0)
		r = attach_remove_everywhere(PINS_NAME, err);
	return r == 0 ? attach_remove_everywhere(PINS_NEXT_NAME, err) : r;
}
