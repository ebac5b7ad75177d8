/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "guard/choice.h"
#include "process/privilege.h"
#include "system/machine.h"
#include "system/own_programs.h"
#include "system/trusted_file.h"

/* ---- the running kernel ---- */

/* What of the running kernel the guard depends on: tracing that root may have switched off, and preemption. */

bool tracing_is_off(void)
{
	_cleanup_free_ char *text = file_text("/proc/sys/kernel/ftrace_enabled");

	return text && text[0] == '0';
}

enum { MODES_MAX = 256 };

/* A word of the version's, which has blanks between them. */
static bool preempt_has_word(const char *version, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = version; (at = strstr(at, word)); at += length)
		if ((at == version || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

/* Return: what is in parentheses, new; NULL if there is nothing. */
static char *preempt_find_mode(const char *modes)
{
	const char *begin = modes ? strchr(modes, '(') : NULL;
	const char *end = begin ? strchr(begin, ')') : NULL;

	return end && end > begin + 1 ? strndup(begin + 1, (size_t)(end - begin) - 1) : NULL;
}

int preempt_classify(const char *version, const char *modes, char **ret_why)
{
	_cleanup_free_ char *mode = NULL;

	*ret_why = NULL;
	/* PREEMPT, PREEMPT_RT, PREEMPT_LAZY: built so. */
	if (!strstr(version, "PREEMPT"))
		return 0;
	if (!preempt_has_word(version, "PREEMPT_DYNAMIC"))
		return str_format(ret_why, "the kernel preempts itself (uname -v)");
	mode = preempt_find_mode(modes);
	if (!mode)
		return str_format(ret_why,
				  "the kernel may preempt itself (/sys/kernel/debug/sched/preempt cannot be read)");
	if (streq(mode, "none") || streq(mode, "voluntary"))
		return 0;
	return str_format(ret_why, "the kernel preempts itself (%.32s, in /sys/kernel/debug/sched/preempt)", mode);
}

/* Return: a descriptor of what is mounted already, or of a mount that goes with it. */
static int preempt_open_modes(void)
{
	int fd = open("/sys/kernel/debug/sched/preempt", O_RDONLY | O_CLOEXEC);
	_cleanup_capability_ int raised = CAPABILITY_NONE;
	_cleanup_close_ int context = -1, mount = -1;

	if (fd >= 0)
		return fd;
	raised = capability_raise(CAP_SYS_ADMIN);
	context = fsopen("debugfs", FSOPEN_CLOEXEC);
	if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	mount = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (mount < 0)
		return -errno;
	fd = openat(mount, "sched/preempt", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

int preempt_check(char **ret_why)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *modes = NULL;
	struct utsname names;

	if (uname(&names) < 0)
		return preempt_classify("PREEMPT_DYNAMIC", NULL, ret_why);
	/* A kernel that cannot needs no look at the file. */
	fd = strstr(names.version, "PREEMPT_DYNAMIC") ? preempt_open_modes() : -1;
	if (fd >= 0 && fd_read_all(fd, MODES_MAX, &modes, NULL) < 0)
		modes = NULL;
	return preempt_classify(names.version, modes, ret_why);
}

/* ---- what is attached ---- */

/* Of the pins that are links; the maps have no such names. */
#define PROGRAM_PREFIX "guard_"

static int links_add(int pins, const char *name, struct links *links)
{
	_cleanup_close_ int fd = pins_open_pin(pins, name);
	struct bpf_link_info info;
	union bpf_attr attr;

	if (fd < 0)
		return fd;
	memset(&info, 0, sizeof(info));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uint64_t)(uintptr_t)&info;
	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) < 0)
		return -errno;
	if (links->count == LINKS_MAX)
		return 0;
	links->ids[links->count] = info.id;
	links->programs[links->count++] = info.prog_id;
	return 0;
}

static bool links_is_program(const char *name)
{
	return str_has_prefix(name, PROGRAM_PREFIX);
}

int links_read(int pins, struct links *ret)
{
	_cleanup_strv_ struct strv names = {0};
	int r = fd_list_names(pins, ".", links_is_program, LINKS_MAX, &names);

	*ret = (struct links){0};
	for (size_t i = 0; i < names.count && r == 0; i++)
		r = links_add(pins, names.items[i], ret);
	return r;
}

bool links_are_complete(int pins, const struct links *links)
{
	_cleanup_free_ char *note = NULL;

	/* An older version has made no note. */
	return fd_read_link_at(pins, LINKS_NOTE, &note) < 0 ? links->count > 0
							    : strtoul(note, NULL, 10) == links->count;
}

unsigned links_load(int pins)
{
	_cleanup_free_ char *note = NULL;
	const char *number = fd_read_link_at(pins, LINKS_NOTE, &note) < 0 ? NULL : strchr(note, ' ');

	return number ? (unsigned)strtoul(number, NULL, 10) : 0;
}

bool links_are_attached(void)
{
	_cleanup_close_ int pins = pins_open(NULL);
	struct links links;

	return pins >= 0 && links_read(pins, &links) == 0 && links_are_complete(pins, &links);
}

/* ---- what it has answered, kept ---- */

/*
 * Why this kernel and driver cannot be guarded, kept until the next boot: finding out takes a program that reads all of
 * the kernel's types, and each start that chooses a GPU wants to know. That they can be is not kept, since the guard is
 * then loaded.
 */

#define CACHE_NAME "guard"

enum { CHECK_CACHE_MAX = 4096 };

/* Of a driver that was loaded anew these are other inodes; of one that is part of the kernel the second is missing. */
static uint64_t check_cache_inode(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* The line that what is kept begins with. */
static char *check_cache_key(const char *program)
{
	_cleanup_free_ char *boot = boot_cache_boot();
	struct stat st;
	char *key;

	if (!boot || stat(program, &st) < 0)
		return NULL;
	return str_format(&key, "%s %s %ju:%ju:%jd.%09ld %" PRIu64 " %" PRIu64 "\n", boot, program,
			  (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec,
			  check_cache_inode("/sys/module/dxgkrnl"), check_cache_inode("/sys/kernel/btf/dxgkrnl")) < 0
		       ? NULL
		       : key;
}

/*
 * @program: path of the ctr-gpu-guard that would be asked; another one, or another driver, has to be asked anew.
 * Return: the reason, a clause, owned by the caller; NULL if nothing was kept, or if a user other than root kept it.
 */
static char *check_cache_get(const char *program)
{
	_cleanup_free_ char *key = NULL, *text = NULL;
	const char *reason;
	size_t size;

	if (boot_cache_read(CACHE_NAME, CHECK_CACHE_MAX, &text, &size) < 0 || !(key = check_cache_key(program)) ||
	    !str_has_prefix(text, key))
		return NULL;
	reason = text + strlen(key);
	return *reason ? strndup(reason, strcspn(reason, "\n")) : NULL;
}

/* If the caller is root; the reason's first line counts. A failure to keep it is ignored. */
static void check_cache_put(const char *program, const char *reason)
{
	_cleanup_free_ char *key = check_cache_key(program), *text = NULL;

	if (key && str_format(&text, "%s%.*s\n", key, (int)strcspn(reason, "\n"), reason) == 0)
		boot_cache_write(CACHE_NAME, text);
}

/* What was kept has become wrong. */
static void check_cache_drop(void)
{
	boot_cache_remove(CACHE_NAME);
}

/* ---- the program ---- */

enum { ANSWER_MAX = 64 * 1024 };

/* PROC_USER_INIT_INO of include/linux/proc_ns.h. */
static const ino_t first_user_namespace = 0xEFFFFFFDU;

bool helper_is_loaded(void)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;

	return choices_open(&choices) == 0 && links_are_attached();
}

/* Return: the path of ctr-gpu-guard, owned by the caller; NULL if it is not installed. */
static char *helper_find(void)
{
	static const char *const usual[] = {"ctr-gpu-guard", "../libexec/ctr-gpu/ctr-gpu-guard",
					    CTR_GPU_LIBEXECDIR "/ctr-gpu-guard"};

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
		_cleanup_free_ char *path = usual[i][0] == '/' ? strdup(usual[i]) : own_programs_beside(usual[i]);
		struct stat st;

		if (path && stat(path, &st) == 0 && own_programs_is_trusted(&st))
			return steal_ptr(path);
	}
	return NULL;
}

/* Both of its outputs come from the descriptor. Return: 0 or negative errno. */
static int helper_start(const char *path, const char *command, int output, pid_t *ret)
{
	char *const arguments[] = {(char *)"ctr-gpu-guard", (char *)(uintptr_t)command, NULL};
	char *const environment[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int r;

	(void)sigemptyset(&none);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
	if (r == 0)
		r = posix_spawn(ret, path, &actions, &attributes, arguments, environment);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	return -r;
}

/*
 * Runs a command of ctr-gpu-guard.
 * @ret_answer: what it wrote, new
 * Return: its exit status; negative errno.
 */
static int helper_run(const char *path, const char *command, char **ret_answer)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	int pair[2], wait_status, r;
	pid_t pid = -1;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	r = helper_start(path, command, theirs, &pid);
	if (r < 0)
		return r;
	(void)close(steal_fd(&theirs));
	r = fd_read_all(ours, ANSWER_MAX, ret_answer, NULL);
	while (waitpid(pid, &wait_status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (r < 0)
		return r;
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -ECHILD;
}

/* ---- what speaks against it, before anything is run ---- */

static bool helper_is_locked_down(void)
{
	_cleanup_free_ char *state = file_text("/sys/kernel/security/lockdown");

	return state && !strstr(state, "[none]");
}

static const char *helper_find_obstacle(void)
{
	struct stat namespace;

	if (stat("/proc/self/ns/user", &namespace) == 0 && namespace.st_ino != first_user_namespace)
		return "a user namespace may not load BPF programs";
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return "the kernel brings no types along (CONFIG_DEBUG_INFO_BTF, /sys/kernel/btf/vmlinux)";
	if (helper_is_locked_down())
		return "the kernel is locked down (/sys/kernel/security/lockdown)";
	return NULL;
}

/* Whether it is the program's word on kernel and driver; a missing library or memory may be there the next time. */
static bool helper_is_result(const char *answer)
{
	return strstr(answer, "[E_GUARD] ");
}

/* Asks the program itself; its reason against is kept. */
static int helper_query(const char *path, char **ret_obstacle)
{
	_cleanup_free_ char *answer = NULL;
	int r = helper_run(path, "check", &answer);

	if (r == 0 || r == -ENOMEM)
		return r;
	if (r < 0 || !answer[0])
		return str_format(ret_obstacle, "ctr-gpu-guard does not run");
	r = str_format(ret_obstacle, "%.*s", (int)strcspn(answer, "\n"), answer);
	if (r == 0 && helper_is_result(answer))
		check_cache_put(path, *ret_obstacle);
	return r;
}

int helper_check(char **ret_obstacle)
{
	_cleanup_free_ char *path = NULL;
	const char *obstacle;

	*ret_obstacle = NULL;
	if (tracing_is_off())
		return str_format(ret_obstacle, TRACING_OFF);
	if (helper_is_loaded())
		return 0;
	obstacle = helper_find_obstacle();
	if (!obstacle && !(path = helper_find()))
		obstacle = "ctr-gpu-guard is not installed";
	if (obstacle)
		return str_format(ret_obstacle, "%s", obstacle);
	*ret_obstacle = check_cache_get(path);
	return *ret_obstacle ? 0 : helper_query(path, ret_obstacle);
}

/* What "ctr-gpu-guard: [E_GUARD] sentence" says besides the sentence's own beginning. */
static const char *helper_find_reason(const char *sentence)
{
	const char *reason = strstr(sentence, ": ");

	return reason ? reason + strlen(": ") : sentence;
}

/* The program's sentence and its advice, which is a line of its own. */
static int helper_explain(char *answer, struct err *err)
{
	const char *sentence = strsep(&answer, "\n"), *advice = strsep(&answer, "\n");

	if (!advice || !*advice)
		return err_set(err, CTR_GPU_E_GUARD, "%s", sentence);
	return err_set_advised(err, CTR_GPU_E_GUARD, ("%.400s", sentence), ("%s", advice));
}

/* One of another version, which an update has left, is replaced. */
static int helper_load_newest(struct err *err)
{
	_cleanup_free_ char *path = NULL, *answer = NULL;
	char *text;
	int r;

	path = helper_find();
	r = path ? helper_run(path, "load", &answer) : -ENOENT;
	if (r == 0) {
		check_cache_drop();
		return 0;
	}
	if (r < 0)
		return err_set(err, r, "cannot run ctr-gpu-guard, which loads the guard: %m");
	/* "ctr-gpu-guard: [E_GUARD] sentence" */
	text = strstr(answer, "] ");
	if (text && helper_is_result(answer))
		check_cache_put(path, helper_find_reason(text + strlen("] ")));
	if (text)
		return helper_explain(text + strlen("] "), err);
	/* Not its own words: a library that is missing, or a signal. */
	answer[strcspn(answer, "\n")] = '\0';
	return err_set(err, CTR_GPU_E_GUARD, "ctr-gpu-guard, which loads the guard, does not run%s%s",
		       answer[0] ? ": " : "", answer);
}

int helper_load(struct err *err)
{
	return helper_is_loaded() ? 0 : helper_load_newest(err);
}

int helper_refresh(struct err *err)
{
	_cleanup_free_ char *path = NULL, *answer = NULL;
	int r = helper_load_newest(err);

	if (r != 0)
		return r;
	path = helper_find();
	r = path ? helper_run(path, "sweep", &answer) : 0;
	return r < 0 ? err_set(err, r, "cannot run ctr-gpu-guard sweep: %m") : 0;
}
