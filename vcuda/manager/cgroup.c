/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "vcuda/protocol/pidref.h"

#define HIERARCHY "/sys/fs/cgroup"
#define OWN "manager"
#define PREFIX "container-"

enum {
	TEXT_MAX = 64 * 1024,
	ROUNDS = 16, /* what is started while others are moved */
	SWEPT_MAX = 4096,
	EVENTS_SIZE = 4096,
	LOOKS_MAX = 2 * MANAGER_TENANTS_MAX,
	CPU_LIMIT_MAX = 64,
	LEVELS_MAX = 32, /* of a container that may make groups, which may be as deep in them as it likes */
};

static int cgroup_write(int group, const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(group, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fd_write_all(fd, text, strlen(text));
}

static int cgroup_write_number(int group, const char *name, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	return cgroup_write(group, name, text);
}

/* ---- processors ---- */

double cgroup_count_cpus(struct cpu_limit processor)
{
	return processor.time ? (double)processor.time / (double)processor.of : 0;
}

/* Return: 0, also of a group that has no such file; errno where the kernel gives no more watches. */
static int cgroup_watch_cpu_limit(int hierarchy, const char *file, int watch)
{
	_cleanup_free_ char *path = NULL;

	if (str_format(&path, "/proc/self/fd/%d/%s", hierarchy, file) < 0)
		return ENOMEM;
	if (watch < 0 || inotify_add_watch(watch, path, IN_MODIFY) >= 0)
		return 0;
	return errno == ENOSPC || errno == ENOMEM ? errno : 0;
}

/* "max 100000" of one that has no limit. The topmost group has no such file. */
static struct cpu_limit cgroup_read_one_cpu_limit(int hierarchy, const char *group, int watch, int *error)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	struct cpu_limit found = {0};
	int r;

	if (str_format(&path, "%s/cpu.max", group + 1) < 0)
		return found;
	/* Before it is read, so that no change goes unseen. */
	r = cgroup_watch_cpu_limit(hierarchy, path, watch);
	*error = r ? r : *error;
	if (fd_read_kernel_file(hierarchy, path, CPU_LIMIT_MAX, &text) < 0 ||
	    sscanf(text, "%" SCNu64 " %" SCNu64, &found.time, &found.of) != 2 || found.of == 0)
		return (struct cpu_limit){0};
	return found;
}

/* What a container makes for itself, below that, gives it no more. */
static void cgroup_cut_path(char *group)
{
	for (int level = 0; *group; group++)
		if (*group == '/' && level++ == LEVELS_MAX) {
			*group = '\0';
			return;
		}
}

struct cpu_limit cgroup_read_cpu_limit(int hierarchy, const char *group, int watch, int *ret_error)
{
	_cleanup_free_ char *above = strdup(group);
	struct cpu_limit least = {0};
	char *last;

	*ret_error = 0;
	/* Where this process sees less than the whole hierarchy, groups beside it begin so. */
	if (!above || str_has_prefix(above, "/.."))
		return least;
	cgroup_cut_path(above);
	while ((last = strrchr(above, '/')) && last[1]) {
		struct cpu_limit one = cgroup_read_one_cpu_limit(hierarchy, above, watch, ret_error);

		if (one.time && (!least.time || cgroup_count_cpus(one) < cgroup_count_cpus(least)))
			least = one;
		*(last == above ? last + 1 : last) = '\0';
	}
	return least;
}

void cgroup_print_cpu_limit(struct cpu_limit processor, char ret[static CPU_LIMIT_TEXT_SIZE])
{
	if (processor.time)
		(void)snprintf(ret, CPU_LIMIT_TEXT_SIZE, "%" PRIu64 " %" PRIu64, processor.time, processor.of);
	else
		(void)strcpy(ret, "max");
}

/* ---- the manager's ---- */

__attribute__((format(printf, 2, 3))) static void cgroup_do_without(struct manager *manager, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(manager->unlimited, sizeof(manager->unlimited), format, arguments);
	va_end(arguments);
}

/* Of lines such as "0::/system.slice/ctr-gpu-vcudad.service". Return: "/system.slice…"; NULL; to be freed. */
static char *cgroup_read_path(const char *text)
{
	const char *line = str_has_prefix(text, "0::/") ? text : strstr(text, "\n0::/");
	const char *path = line ? strstr(line, "::/") + 2 : NULL;

	return path ? strndup(path, strcspn(path, "\n")) : NULL;
}

static char *cgroup_read_own(const char *text)
{
	char *own = cgroup_read_path(text);
	char *last = own ? strrchr(own, '/') : NULL;

	/* It was moved there by this or by whoever started it. */
	if (last && streq(last, "/" OWN))
		*last = '\0';
	return own;
}

static bool cgroup_has_word(const char *text, const char *word)
{
	const size_t length = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += length)
		if ((at == text || at[-1] == ' ') && strchr(" \n", at[length]))
			return true;
	return false;
}

/* Those of another manager, or a shell, must not be moved. Return: whether all processes there are the manager's. */
static bool cgroup_is_alone(const char *processes)
{
	for (const char *line = processes; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const pid_t pid = (pid_t)atoi(line);

		if (pid != getpid() && !pidref_is_ctr_gpu(pid))
			return false;
	}
	return true;
}

/* Servers of a manager before this one may be there, which made no groups. */
static void cgroup_move_processes(int to, const char *processes)
{
	_cleanup_free_ char *copy = strdup(processes);
	char *rest = copy;

	for (char *pid = strsep(&rest, "\n"); pid; pid = strsep(&rest, "\n"))
		if (*pid)
			(void)cgroup_write(to, "cgroup.procs", pid);
}

/* @controllers: to be switched on. Return: 0; -EBUSY if there are processes of others; negative errno. */
static int cgroup_prepare(int group, const char *controllers)
{
	int r = -EBUSY;

	for (int i = 0; i < ROUNDS && r == -EBUSY; i++) {
		_cleanup_close_ int own = -1;
		_cleanup_free_ char *processes = NULL;

		r = fd_read_kernel_file(group, "cgroup.procs", TEXT_MAX, &processes);
		if (r < 0)
			return r;
		if (!cgroup_is_alone(processes))
			return -EBUSY;
		if (mkdirat(group, OWN, 0755) < 0 && errno != EEXIST)
			return -errno;
		own = openat(group, OWN, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (own < 0)
			return -errno;
		cgroup_move_processes(own, processes);
		r = cgroup_write(group, "cgroup.subtree_control", controllers);
	}
	return r;
}

/* A kernel may have one for processors that this group cannot have, as where a process of it is a real-time one. */
static int cgroup_prepare_most(int group, bool *processors)
{
	int r = *processors ? cgroup_prepare(group, "+cpu +memory +pids") : -ENOENT;

	if (r == 0 || r == -EBUSY)
		return r;
	*processors = false;
	return cgroup_prepare(group, "+memory +pids");
}

/* Said once, until there is another watch. */
static void cgroup_do_without_watch(struct manager *manager, int error)
{
	if (!manager->unwatched)
		audit_write("limits-not-watched", NULL, json_pack("{s:s}", "error", strerror(error)));
	manager->unwatched = true;
}

static void cgroup_open_watch(struct manager *manager)
{
	manager->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (manager->watch < 0)
		cgroup_do_without_watch(manager, errno);
	else
		manager->unwatched = false;
}

static void cgroup_keep(struct manager *manager, int hierarchy, int *group)
{
	manager->groups = steal_fd(group);
	manager->hierarchy = manager->has_processors ? fcntl(hierarchy, F_DUPFD_CLOEXEC, 0) : -1;
	manager->has_processors = manager->hierarchy >= 0;
	if (manager->has_processors)
		cgroup_open_watch(manager);
}

void cgroup_take(struct manager *manager, int hierarchy, const char *text)
{
	_cleanup_free_ char *own = cgroup_read_own(text), *controllers = NULL;
	_cleanup_close_ int group = -1;
	int r;

	if (!own || !own[0] || !own[1]) {
		cgroup_do_without(manager, "the manager has no control group of version 2 of its own");
		return;
	}
	group = openat(hierarchy, own + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = group < 0 ? -errno : fd_read_kernel_file(group, "cgroup.controllers", TEXT_MAX, &controllers);
	if (controllers && (!cgroup_has_word(controllers, "memory") || !cgroup_has_word(controllers, "pids"))) {
		cgroup_do_without(manager,
				  "the manager's control group of version 2 has no controllers for memory and tasks");
		return;
	}
	if (r == 0) {
		manager->has_processors = controllers && cgroup_has_word(controllers, "cpu");
		r = cgroup_prepare_most(group, &manager->has_processors);
	}
	if (r == 0)
		cgroup_keep(manager, hierarchy, &group);
	else if (r == -EBUSY)
		cgroup_do_without(manager, "the manager shares its control group with other programs");
	else
		cgroup_do_without(manager, "the manager's control group cannot be changed: %s", strerror(-r));
}

void cgroup_find(struct manager *manager)
{
	_cleanup_close_ int hierarchy = open(HIERARCHY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *own = NULL;
	struct statfs st;

	if (hierarchy < 0 || fstatfs(hierarchy, &st) < 0 || st.f_type != CGROUP2_SUPER_MAGIC)
		cgroup_do_without(manager, "this host uses cgroup version 1");
	else if (fd_read_kernel_file(AT_FDCWD, "/proc/self/cgroup", TEXT_MAX, &own) < 0)
		cgroup_do_without(manager, "the manager's control group is not known");
	else
		cgroup_take(manager, hierarchy, own);
}

/* ---- containers' ---- */

int cgroup_limit_memory(struct tenant *tenant, uint64_t bytes)
{
	int r = 0;

	if (tenant->group >= 0)
		r = bytes ? cgroup_write_number(tenant->group, "memory.max", bytes)
			  : cgroup_write(tenant->group, "memory.max", "max");
	if (r == 0)
		tenant->limits.host_memory = bytes;
	return r;
}

static int cgroup_set_processors(struct tenant *tenant, struct cpu_limit processor)
{
	char text[CPU_LIMIT_TEXT_SIZE];
	int r;

	if (processor.time == tenant->processor.time && processor.of == tenant->processor.of)
		return 0;
	cgroup_print_cpu_limit(processor, text);
	r = cgroup_write(tenant->group, "cpu.max", text);
	if (r == 0)
		tenant->processor = processor;
	return r;
}

/* Of the same name there may be one with a limit. A kernel that limits nobody so has no such file. */
static int cgroup_free_processors(const struct manager *manager, struct tenant *tenant)
{
	int r = manager->has_processors ? cgroup_write(tenant->group, "cpu.max", "max") : 0;

	tenant->processor = (struct cpu_limit){0};
	return r == -ENOENT ? 0 : r;
}

int cgroup_follow_processors(struct manager *manager, struct tenant *tenant, const char *text)
{
	_cleanup_free_ char *group = cgroup_read_path(text);
	struct cpu_limit found;
	int error;

	if (!group || tenant->group < 0 || !manager->has_processors)
		return 0;
	/* A container that makes groups may be in another one each time, and watches of those before would stay. */
	if (++manager->looks > LOOKS_MAX)
		cgroup_watch(manager);
	found = cgroup_read_cpu_limit(manager->hierarchy, group, manager->watch, &error);
	if (error)
		cgroup_do_without_watch(manager, error);
	return cgroup_set_processors(tenant, found);
}

/* Of a process that has ended, the number may be another's by now, whose group was read. */
int cgroup_limit_processors(struct manager *manager, struct tenant *tenant)
{
	_cleanup_free_ char *text = NULL;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)tenant->pid);
	if (fd_read_kernel_file(AT_FDCWD, path, TEXT_MAX, &text) < 0 || pidref_has_ended(tenant->pidfd))
		return 0;
	return cgroup_follow_processors(manager, tenant, text);
}

static void cgroup_limit_all_processors(struct manager *manager)
{
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		(void)cgroup_limit_processors(manager, tenant);
}

/* A watch keeps what a group was, also when that is gone, and several containers may have the same one. */
void cgroup_watch(struct manager *manager)
{
	if (!manager->has_processors)
		return;
	manager->looks = 0;
	cleanup_closep(&manager->watch);
	cgroup_open_watch(manager);
	cgroup_limit_all_processors(manager);
}

/* Who changes its own limits all the time gets no more of ours than that: what is left is read next time. */
void cgroup_follow_changes(struct manager *manager)
{
	char events[EVENTS_SIZE];

	if (manager->watch < 0)
		cgroup_open_watch(manager);
	(void)!read(manager->watch, events, sizeof(events));
	cgroup_limit_all_processors(manager);
}

/* What is swapped out would come on top of what is limited. A kernel without swap has no such file. */
static int cgroup_forbid_swap(int group)
{
	int r = cgroup_write(group, "memory.swap.max", "0");

	return r == -ENOENT ? 0 : r;
}

static bool cgroup_read_kills(const struct tenant *tenant, uint64_t *ret)
{
	_cleanup_free_ char *events = NULL;
	const char *line;

	if (tenant->group < 0 || fd_read_kernel_file(tenant->group, "memory.events", TEXT_MAX, &events) < 0)
		return false;
	line = strstr(events, "oom_kill ");
	return line && sscanf(line, "oom_kill %" SCNu64, ret) == 1;
}

int cgroup_make(struct manager *manager, struct tenant *tenant)
{
	char name[sizeof(PREFIX) + MANAGER_ID_MAX];
	int r;

	if (manager->groups < 0)
		return 0;
	(void)snprintf(name, sizeof(name), PREFIX "%s", tenant->id);
	if (mkdirat(manager->groups, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	tenant->group = openat(manager->groups, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tenant->group < 0)
		return -errno;
	r = cgroup_limit_memory(tenant, tenant->limits.host_memory);
	if (r == 0)
		r = cgroup_forbid_swap(tenant->group);
	if (r == 0)
		r = cgroup_write_number(tenant->group, "pids.max", MANAGER_THREADS);
	if (r == 0)
		r = cgroup_free_processors(manager, tenant);
	if (r == 0)
		r = cgroup_limit_processors(manager, tenant);
	(void)cgroup_read_kills(tenant, &tenant->kills);
	return r;
}

uint64_t cgroup_measure_memory(const struct tenant *tenant)
{
	_cleanup_free_ char *current = NULL;

	if (tenant->group < 0 || fd_read_kernel_file(tenant->group, "memory.current", TEXT_MAX, &current) < 0)
		return 0;
	return strtoull(current, NULL, 10);
}

/* Of several that it has killed meanwhile, one each time. */
bool cgroup_has_killed(struct tenant *tenant)
{
	uint64_t now;

	if (!cgroup_read_kills(tenant, &now) || now <= tenant->kills)
		return false;
	tenant->kills++;
	return true;
}

int cgroup_enter(int group)
{
	return group < 0 ? 0 : cgroup_write(group, "cgroup.procs", "0");
}

/* ---- what is left ---- */

static bool cgroup_is_containers(const char *name)
{
	return str_has_prefix(name, PREFIX);
}

/* One that has ended has servers for a while, and its name may be another's already. */
static bool cgroup_is_needed(const struct manager *manager, const char *name)
{
	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (streq(tenant->id, name + strlen(PREFIX)))
			return true;
	return false;
}

void cgroup_sweep(const struct manager *manager)
{
	_cleanup_strv_ struct strv names = {0};

	if (manager->groups < 0 || fd_list_names(manager->groups, ".", cgroup_is_containers, SWEPT_MAX, &names) < 0)
		return;
	for (size_t i = 0; i < names.count; i++)
		if (!cgroup_is_needed(manager, names.items[i]))
			(void)unlinkat(manager->groups, names.items[i], AT_REMOVEDIR);
}
