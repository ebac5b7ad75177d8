/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a step gets of its GPUs: the vendors' variables, as Slurm's AutoDetect sets them for GPUs with a device node
 * each; the guard's choice for its cgroup, where they share one; vCUDA's grant for slots; and a record for
 * ctr-gpu-runtime.
 */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "devcgroup/cgroup_path.h"
#include "guard/choice.h"
#include "guard/helper.h"
#include "lib/context.h"
#include "model/adapter.h"
#include "plan/plan.h"
#include "slurm/step.h"
#include "vcuda/grant/backend.h"
#include "vcuda/grant/grant.h"

/* ---- the GPUs of this node ---- */

void slurm_gpus_clear(struct slurm_gpus *gpus)
{
	for (size_t i = 0; i < gpus->count; i++)
		free(gpus->list[i].file);
}

/* As Slurm's AutoDetect writes the names that NVML gives. */
static void slurm_gpus_format_type(const char *name, char ret[static SLURM_TYPE_MAX])
{
	size_t size = 0;

	for (; name && *name && size + 1 < SLURM_TYPE_MAX; name++) {
		char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
		bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';

		if (fits || (size > 0 && ret[size - 1] != '_'))
			ret[size++] = fits ? c : '_';
	}
	while (size > 0 && ret[size - 1] == '_')
		size--;
	ret[size] = '\0';
}

/* How many GPUs of this vendor are before it, as the vendor's library counts them. */
static unsigned slurm_gpus_number(const struct ctr_gpu_host *host, size_t number, const char *vendor)
{
	struct ctr_gpu_adapter other;
	unsigned count = 0;

	for (size_t i = 0; i < number; i++)
		if (ctr_gpu_host_adapter(host, i, &other) == 0 && other.index >= 0 && streq(other.vendor, vendor))
			count++;
	return count;
}

static int slurm_gpus_find_file(const struct ctr_gpu_host *host, size_t number, const struct ctr_gpu_adapter *adapter,
				struct slurm_gpu *ret)
{
	struct ctr_gpu_driver driver = {0};
	int r;

	ret->made = ret->shared;
	ret->number = slurm_gpus_number(host, number, adapter->vendor);
	if (ret->made) {
		char vendor[SLURM_TYPE_MAX];

		slurm_gpus_format_type(adapter->vendor, vendor);
		return str_format(&ret->file, SLURM_NODES "/%s%u", vendor, ret->number);
	}
	r = ctr_gpu_host_driver(host, number, &driver);
	if (r == 0)
		r = str_format(&ret->file, "%s%d",
			       streq(adapter->backend, "nvidia") ? PATH_NVIDIA_GPU : PATH_DRI "/renderD", driver.minor);
	ctr_gpu_driver_clear(&driver);
	return r;
}

/* vCUDA serves NVIDIA's whole GPUs. */
static bool slurm_gpus_has_slots(const struct ctr_gpu_adapter *adapter, unsigned slots)
{
	return slots > 0 && streq(adapter->vendor, "NVIDIA");
}

static int slurm_gpus_add_slots(const struct slurm_gpu *gpu, unsigned slots, unsigned first, struct slurm_gpus *ret)
{
	int r = 0;

	for (unsigned i = 0; i < slots && ret->count < SLURM_GPUS_MAX && r == 0; i++) {
		struct slurm_gpu *slot = &ret->list[ret->count];

		*slot = *gpu;
		slot->slot = slot->made = true;
		(void)strcpy(slot->type, "vgpu");
		r = str_format(&slot->file, SLURM_NODES "/vgpu%u", first + i);
		ret->count += r == 0;
	}
	return r;
}

int slurm_gpus_list(const struct ctr_gpu_context *context, const struct ctr_gpu_host *host, struct slurm_gpus *ret)
{
	const unsigned slots = context->settings.vcuda_slots;
	unsigned made = 0;

	for (size_t i = 0; i < ctr_gpu_host_adapter_count(host) && ret->count < SLURM_GPUS_MAX; i++) {
		struct slurm_gpu gpu = {.position = i};
		struct ctr_gpu_adapter adapter;
		int r = ctr_gpu_host_adapter(host, i, &adapter);

		if (r < 0 || adapter.index < 0)
			continue;
		gpu.shared = streq(adapter.backend, "gpu-pv");
		if (slurm_gpus_has_slots(&adapter, slots)) {
			gpu.number = slurm_gpus_number(host, i, adapter.vendor);
			r = slurm_gpus_add_slots(&gpu, slots, made, ret);
			made += slots;
		} else {
			slurm_gpus_format_type(adapter.name ? adapter.name : adapter.vendor, gpu.type);
			r = slurm_gpus_find_file(host, i, &adapter, &gpu);
			if (r == 0)
				ret->list[ret->count++] = gpu;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the cgroups that Slurm makes for a job and its steps ---- */

/*
 * The cgroup of a step's tasks, whose device rules Slurm has made already when a plugin is called. With cgroup version
 * 1 a task is in it by then. With version 2 it still is where slurmstepd is, beside that cgroup, with the rules of the
 * whole job.
 */
struct slurm_group {
	int home;      /* directory of the cgroup that the caller comes from; -1: it was not moved */
	int tasks;     /* and of the one in which another was made for it */
	char name[32]; /* of this */
};

#define SLURM_GROUP_NONE ((struct slurm_group){-1, -1, ""})

/* Slurm's names, of cgroup version 2: where slurmstepd is, and where tasks will be. */
#define SLURM_GROUP_STEPD "slurm"
#define SLURM_GROUP_TASKS "user"

/* Return: 0 or -errno. */
static int slurm_group_move(int group)
{
	_cleanup_close_ int fd = openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_write_all(fd, "0", 1);
}

static int slurm_group_open(int directory, const char *name)
{
	const int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/*
 * slurm_group_enter_tasks() - have the rules of the step's tasks hold for this process
 * @step: directory of the step's cgroup
 * @ret:  SLURM_GROUP_NONE before, to be left in any case
 *
 * Return: 0, also where that is so already; negative errno.
 */
static int slurm_group_enter_tasks(int step, struct slurm_group *ret)
{
	_cleanup_close_ int home = slurm_group_open(step, SLURM_GROUP_STEPD), tasks = -1, own = -1;
	struct slurm_group group = {-1, -1, ""};
	int r;

	if (home == -ENOENT)
		return 0;
	tasks = home < 0 ? home : slurm_group_open(step, SLURM_GROUP_TASKS);
	if (tasks < 0)
		return tasks;
	/* Tasks start at once, each with a call of ours. */
	(void)snprintf(group.name, sizeof(group.name), "ctr-gpu-%d", (int)getpid());
	if (mkdirat(tasks, group.name, 0755) < 0 && errno != EEXIST)
		return -errno;
	own = slurm_group_open(tasks, group.name);
	r = own < 0 ? own : slurm_group_move(own);
	if (r < 0) {
		(void)unlinkat(tasks, group.name, AT_REMOVEDIR);
		return r;
	}
	group.home = steal_fd(&home);
	group.tasks = steal_fd(&tasks);
	*ret = group;
	return 0;
}

static void slurm_group_leave(struct slurm_group *group)
{
	if (group->tasks < 0)
		return;
	if (slurm_group_move(group->home) == 0)
		(void)unlinkat(group->tasks, group->name, AT_REMOVEDIR);
	cleanup_closep(&group->home);
	cleanup_closep(&group->tasks);
}

#define _cleanup_slurm_group_ __attribute__((cleanup(slurm_group_leave)))

enum { SLURM_GROUP_DESCRIPTORS = 16 };

/* Where Slurm makes them, with cgroup version 2 and with each controller of version 1. */
static const char *const slurm_group_places[] = {
	"/sys/fs/cgroup/system.slice/*slurmstepd.scope/job_",
	"/sys/fs/cgroup/*/slurm*/uid_*/job_",
};

static int slurm_group_visit(const char *path, const struct stat *st, int kind, struct FTW *place)
{
	(void)st, (void)place;
	if (kind == FTW_DP)
		(void)rmdir(path);
	return 0;
}

static void slurm_group_remove_jobs(const char *pattern)
{
	glob_t found;

	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		(void)nftw(found.gl_pathv[i], slurm_group_visit, SLURM_GROUP_DESCRIPTORS,
			   FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	globfree(&found);
}

void slurm_group_remove_job(const struct slurm_step *job)
{
	for (size_t i = 0; i < ARRAY_SIZE(slurm_group_places); i++) {
		_cleanup_free_ char *pattern = NULL;

		/* The name has letters and digits alone. */
		if (str_format(&pattern, "%s%s", slurm_group_places[i], job->job) == 0)
			slurm_group_remove_jobs(pattern);
	}
}

/* ---- a step ---- */

enum { MEMBERSHIP_MAX = 64 * 1024, MOUNTINFO_MAX = 4 * 1024 * 1024 };

struct step {
	struct ctr_gpu_context *context;
	const struct ctr_gpu_host *host;
	struct slurm_gpus gpus;
	bool open[SLURM_GPUS_MAX]; /* Slurm lets its tasks open them (ConstrainDevices) */
	bool granted[SLURM_GPUS_MAX];
	bool held;  /* by the guard, so that its programs see no other GPUs */
	int cgroup; /* the step's own; negative errno: none */
};

static void step_clear(struct step *step)
{
	cleanup_closep(&step->cgroup);
	slurm_gpus_clear(&step->gpus);
}

/* ---- which GPUs ---- */

/* How often a number is in a list with commas; all of them, if it is negative. */
static size_t step_count_number(const char *numbers, long number)
{
	size_t count = 0;
	char *end;

	for (const char *at = numbers; *at; at = *end ? end + 1 : end) {
		long one = strtol(at, &end, 10);

		count += end != at && (number < 0 || one == number);
		end += strcspn(end, ",");
	}
	return count;
}

/* The cgroup is asked before a driver is looked for. */
static bool step_may_open(const char *file)
{
	_cleanup_close_ int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd >= 0 || (errno != EPERM && errno != EACCES);
}

static int step_look(struct step *step)
{
	_cleanup_slurm_group_ struct slurm_group group = SLURM_GROUP_NONE;
	int r = step->cgroup < 0 ? 0 : slurm_group_enter_tasks(step->cgroup, &group);

	for (size_t i = 0; i < step->gpus.count && r == 0; i++)
		step->open[i] = step_may_open(step->gpus.list[i].file);
	return r < 0 ? err_set(&step->context->err, r,
			       "a cgroup cannot be made beside the step's tasks, to see which GPUs these may open: %s",
			       strerror(-r))
		     : 0;
}

/*
 * A number is a GPU's place in gres.conf, which may have another order, and may lack some. So in a cgroup of its own
 * the step has what it may open.
 */
static size_t step_choose(struct step *step, const char *numbers, bool in_cgroup)
{
	size_t granted = 0;

	for (size_t i = 0; i < step->gpus.count && numbers[0]; i++) {
		step->granted[i] = in_cgroup ? step->open[i] : step_count_number(numbers, (long)i) > 0;
		granted += step->granted[i];
	}
	return granted;
}

static bool step_has_made(const struct step *step)
{
	bool made = false;

	for (size_t i = 0; i < step->gpus.count; i++)
		made = made || step->gpus.list[i].made;
	return made;
}

static int step_refuse(const struct step *step, const char *numbers, bool in_cgroup)
{
	return err_set_advised(
		&step->context->err, CTR_GPU_E_UNKNOWN_DEVICE,
		("Slurm has granted the GPUs %s of its list, and it does not follow which of this node these are.",
		 numbers),
		("%sctr-gpu slurm gres --check says what is wrong with gres.conf, which must have all GPUs.",
		 in_cgroup ? "Have ConstrainDevices=yes in cgroup.conf. " : ""));
}

/* ---- the guard ---- */

static const struct adapter *step_adapter(const struct step *step, size_t number)
{
	return &step->host->inventory.adapters[step->gpus.list[number].position];
}

/* Return: a descriptor of the step's own cgroup; -ENOENT; negative errno. */
static int step_open_cgroup(void)
{
	_cleanup_free_ char *membership = NULL, *mountinfo = NULL;
	_cleanup_cgroup_places_ struct cgroup_places places = {0};
	struct guard_key key;
	int r = fd_read_file_at(AT_FDCWD, "/proc/self/cgroup", MEMBERSHIP_MAX, &membership, NULL);

	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &mountinfo, NULL);
	if (r == 0)
		r = cgroup_places_find(mountinfo, membership, &places);
	for (size_t i = 0; i < places.count && r == 0; i++) {
		_cleanup_free_ char *path = NULL;
		_cleanup_close_ int fd = -1;
		size_t size = slurm_step_path(places.items[i].below);

		if (size == 0)
			continue;
		r = str_format(&path, "%s/%.*s", places.items[i].point, (int)size, places.items[i].below);
		fd = r == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
		if (fd >= 0 && choice_key(fd, &key) == 0)
			return steal_fd(&fd);
	}
	return r < 0 ? r : -ENOENT;
}

static int step_write_choice(int cgroup, const uint64_t *luids, size_t count)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	struct guard_key key;
	int r = cgroup < 0 ? cgroup : choice_key(cgroup, &key);

	if (r == 0)
		r = choices_open(&choices);
	if (r == 0)
		r = choice_set(&choices, &key, luids, count);
	return r;
}

/* Return: why the guard cannot hold the choice, owned by the caller; NULL: it holds. */
static int step_arm(struct step *step, char **ret_obstacle)
{
	uint64_t luids[SLURM_GPUS_MAX];
	size_t count = 0;
	int r = helper_check(ret_obstacle);

	if (r == 0 && !*ret_obstacle && step->context->settings.choice == CHOICE_STRICT)
		r = preempt_check(ret_obstacle);
	if (r < 0 || *ret_obstacle)
		return r;
	if (helper_load(&step->context->err) != 0)
		return str_format(ret_obstacle, "%s", step->context->err.text);
	for (size_t i = 0; i < step->gpus.count; i++)
		if (step->gpus.list[i].shared && step->granted[i] && !step->gpus.list[i].slot)
			luids[count++] = (uint64_t)(uint32_t)step_adapter(step, i)->luid.high << 32 |
					 step_adapter(step, i)->luid.low;
	r = step_write_choice(step->cgroup, luids, count);
	step->held = r == 0;
	if (r == -ENOENT)
		return str_format(ret_obstacle,
				  "the step has no cgroup of its own (ProctrackType=proctrack/cgroup and "
				  "TaskPlugin=task/cgroup in slurm.conf, ConstrainDevices=yes in cgroup.conf)");
	return r < 0 ? str_format(ret_obstacle, "the guard's map cannot be written: %s", err_name(r)) : 0;
}

/* Also a step without any GPU has made a choice; of a slot's GPU it has no adapter. */
static bool step_is_choice(const struct step *step)
{
	bool choice = false;

	for (size_t i = 0; i < step->gpus.count; i++)
		choice = choice || (step->gpus.list[i].shared && (step->gpus.list[i].slot || !step->granted[i]));
	return choice;
}

static int step_hold(struct step *step)
{
	const enum choice_grade grade = step->context->settings.choice;
	_cleanup_free_ char *obstacle = NULL;
	int r;

	if (grade == CHOICE_STORE || grade == CHOICE_ENVIRONMENT || !step_is_choice(step))
		return 0;
	r = step_arm(step, &obstacle);
	if (r < 0 || !obstacle)
		return r;
	if (grade == CHOICE_STRICT)
		return err_set_advised(
			&step->context->err, CTR_GPU_E_GUARD,
			("the job's choice of GPUs cannot be held on this node: %.500s", obstacle),
			("Ask for all of its GPUs, or have the administrator set \"choice\" to \"auto\" in ctr-gpu's "
			 "configuration."));
	if (grade == CHOICE_GUARD)
		log_warning(&step->context->settings.log, "the job's choice of GPUs is not held: %s", obstacle);
	return 0;
}

/* ---- what it is told ---- */

/* Whether its programs see the granted GPUs alone, and so count these. */
static bool step_hides(const struct step *step, const char *vendor)
{
	bool others = false, open = false;

	for (size_t i = 0; i < step->gpus.count; i++) {
		const struct slurm_gpu *gpu = &step->gpus.list[i];

		if (step->granted[i] || !streq(adapter_vendor(step_adapter(step, i)), vendor))
			continue;
		others = true;
		open = open || (gpu->shared ? !step->held : step->open[i]);
	}
	return others && !open;
}

/* Of NVIDIA's driver Slurm knows the numbers itself. */
static int step_print_variable(const struct step *step, const char *vendor, const char *variable, FILE *file)
{
	bool counts_granted = step_hides(step, vendor), own = false, first = true;
	unsigned granted = 0;

	for (size_t i = 0; i < step->gpus.count; i++) {
		const struct adapter *adapter = step_adapter(step, i);

		if (!streq(adapter_vendor(adapter), vendor) || streq(adapter->backend->name, "nvidia"))
			continue;
		own = true;
		if (!step->granted[i])
			continue;
		(void)fprintf(file, "%s%s%u", first ? variable : ",", first ? "=" : "",
			      counts_granted ? granted : step->gpus.list[i].number);
		granted++;
		first = false;
	}
	if (own && first)
		(void)fputs(variable, file);
	if (own)
		(void)fputc('\n', file);
	return 0;
}

/* Whether the granted slots before it are of other GPUs. */
static bool step_is_first_slot(const struct step *step, size_t number)
{
	for (size_t i = 0; i < number; i++)
		if (step->granted[i] && step->gpus.list[i].slot &&
		    step->gpus.list[i].position == step->gpus.list[number].position)
			return false;
	return step->granted[number] && step->gpus.list[number].slot;
}

/* The names by which ctr-gpu finds the GPUs again. @slots: those of slots, each once, or those without */
static int step_print_devices(const struct step *step, bool slots, char **ret)
{
	int r = 0;

	for (size_t i = 0; i < step->gpus.count && r == 0; i++) {
		const struct adapter *adapter = step_adapter(step, i);
		char luid[LUID_TEXT_SIZE] = "";

		if (!step->granted[i] || step->gpus.list[i].slot != slots || (slots && !step_is_first_slot(step, i)))
			continue;
		if (adapter->has_luid)
			luid_format(adapter->luid, luid);
		r = luid[0] ? str_append(ret, "%s%s", *ret ? "," : "", luid)
			    : str_append(ret, "%s%d", *ret ? "," : "", adapter->index);
	}
	return r;
}

/* ---- vCUDA ---- */

static bool step_has_slots(const struct step *step)
{
	bool has = false;

	for (size_t i = 0; i < step->gpus.count; i++)
		has = has || step->gpus.list[i].slot;
	return has;
}

/* In the order of the grant: programs count its GPUs so. */
static void step_print_uuids(const struct step *step, FILE *file)
{
	const char *separator = "CUDA_VISIBLE_DEVICES=";

	for (size_t i = 0; i < step->gpus.count; i++)
		if (step_is_first_slot(step, i) && step_adapter(step, i)->uuid) {
			(void)fprintf(file, "%s%s", separator, step_adapter(step, i)->uuid);
			separator = ",";
		}
	(void)fputc('\n', file);
}

/* The library and the socket are where a task finds them without a container. */
static int step_print_grant(const struct step *step, const char *directory, FILE *file)
{
	_cleanup_free_ char *library = vcuda_find_client("libcuda.so.1");

	if (!library)
		return err_set_advised(&step->context->err, -ENOENT, ("vCUDA's client library libcuda.so.1 is missing"),
				       ("Install the package ctr-gpu-vcuda."));
	if (mkdir(SLURM_VCUDA, 0755) < 0 && errno != EEXIST)
		return err_set(&step->context->err, -errno, SLURM_VCUDA " cannot be made: %m");
	(void)fprintf(file, "mount %s " SLURM_VCUDA "\n", directory);
	(void)fputs("CTR_GPU_VCUDA_SOCKET=" SLURM_VCUDA "/socket\n", file);
	(void)fprintf(file, "LD_LIBRARY_PATH+=%.*s\n", (int)(strrchr(library, '/') - library), library);
	step_print_uuids(step, file);
	return 0;
}

/* ---- what a step gets by vCUDA ---- */

/*
 * The manager's grant for the GPUs of its slots, with as much of their memory and time as the slots are. A batch script
 * has its job's grant, which the job's steps have with it, since Slurm gives them the same slots. It ends with the
 * slurmstepd for which it was asked.
 */

struct step_grant {
	struct ctr_gpu_context *context; /* its message is set */
	const struct ctr_gpu_host *host;
	const struct slurm_step *step;
	const char *devices; /* list for ctr_gpu_request_set_devices(): the GPUs of the granted slots */
	size_t gpus, slots;  /* how many */
	pid_t stepd;
};

#define GRANT_DIRECTORIES PATH_RUN "/vcuda/"
#define GRANT_NAME "slurm-%s"

enum { WHOLE_PERCENT = 100 };

/* A step's of its own; of what has the whole job, the job's. */
static int step_grant_name(const struct slurm_step *step, char **ret)
{
	if (streq(step->step, "batch") || streq(step->step, "interactive"))
		return str_format(ret, GRANT_NAME, step->job);
	return str_format(ret, GRANT_NAME ".%s", step->job, step->step);
}

/* Return: 1 if the job has one, which the manager takes away with the job's script; 0; -ENOMEM. */
static int step_grant_find(const struct slurm_step *step, char **ret)
{
	_cleanup_free_ char *directory = NULL;
	struct stat st;

	if (str_format(&directory, GRANT_DIRECTORIES GRANT_NAME, step->job) < 0)
		return -ENOMEM;
	if (stat(directory, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	*ret = steal_ptr(directory);
	return 1;
}

/* What the administrator says of containers counts, but for these. */
static void step_grant_set(const struct step_grant *grant)
{
	struct settings *settings = &grant->context->settings;
	const size_t all = settings->vcuda_slots * grant->gpus;
	const size_t share = USUAL_SHARE * grant->slots;

	settings->vcuda_mode = VCUDA_ALLOW;
	settings->vcuda_limits.memory = STR_SHARE(WHOLE_PERCENT * grant->slots / all);
	settings->vcuda_limits.share = share < MOST_SHARE ? (unsigned)share : MOST_SHARE;
}

/* As of a container that asks for them. */
static int step_grant_plan(const struct step_grant *grant, struct ctr_gpu_plan **ret)
{
	struct ctr_gpu_request *request = NULL;
	int r = ctr_gpu_request_new(grant->context, &request);

	if (r == 0)
		r = ctr_gpu_request_set_devices(request, grant->devices);
	if (r == 0) {
		request->data.mode = REQUEST_VCUDA;
		request->data.nodes_only = true;
		r = ctr_gpu_plan_new(grant->context, request, grant->host, ret);
	}
	ctr_gpu_request_unref(request);
	return r;
}

/* Has it made, unless it is there. @ret_directory: of its socket, owned by the caller */
static int step_grant_ask(const struct step_grant *grant, char **ret_directory)
{
	struct ctr_gpu_plan *plan = NULL;
	_cleanup_free_ char *name = NULL;
	_cleanup_close_ int fd = -1;
	int r = step_grant_find(grant->step, ret_directory);

	if (r != 0)
		return r < 0 ? r : 0;
	step_grant_set(grant);
	r = step_grant_name(grant->step, &name);
	if (r == 0)
		r = step_grant_plan(grant, &plan);
	if (r == 0)
		r = grant_ask(&plan->data, name, grant->stepd, &fd, ret_directory, &grant->context->err);
	if (r == 0)
		r = grant_keep(fd, name, grant->stepd, &grant->context->err);
	ctr_gpu_plan_unref(plan);
	return r;
}

static int step_ask_slots(const struct step *step, const struct slurm_step *name, const char *devices, pid_t stepd,
			  char **ret_directory)
{
	struct step_grant grant = {
		.context = step->context, .host = step->host, .step = name, .devices = devices, .stepd = stepd};

	for (size_t i = 0; i < step->gpus.count; i++) {
		grant.slots += step->granted[i] && step->gpus.list[i].slot;
		grant.gpus += step_is_first_slot(step, i);
	}
	return step_grant_ask(&grant, ret_directory);
}

/* Where GPUs are given in slots, Slurm does not constrain their devices. Return: 0 or -ENOMEM. */
static int step_hide_nodes(const struct step *step, FILE *file)
{
	bool has_adapter = false;
	glob_t nodes;
	int r;

	for (size_t i = 0; i < step->gpus.count; i++)
		has_adapter =
			has_adapter || (step->granted[i] && step->gpus.list[i].shared && !step->gpus.list[i].slot);
	if (!has_adapter && access(PATH_DXG, F_OK) == 0)
		(void)fputs("mount /dev/null " PATH_DXG "\n", file);
	r = glob(PATH_NVIDIA_GPU "*", GLOB_NOSORT, NULL, &nodes);
	if (r != 0)
		return r == GLOB_NOMATCH ? 0 : -ENOMEM;
	for (size_t i = 0; i < nodes.gl_pathc; i++) {
		struct stat st;

		if (lstat(nodes.gl_pathv[i], &st) == 0 && S_ISCHR(st.st_mode))
			(void)fprintf(file, "mount /dev/null %s\n", nodes.gl_pathv[i]);
	}
	globfree(&nodes);
	return 0;
}

/* ---- all of it ---- */

static int step_tell(const struct step *step, const struct slurm_step *name, uid_t uid, pid_t stepd, FILE *file)
{
	_cleanup_record_ struct slurm_record record = {.uid = uid, .held = step->held, .stepd = stepd};
	_cleanup_free_ char *directory = NULL;
	int r = step_print_devices(step, true, &record.devices);

	record.vcuda = record.devices != NULL;
	if (r == 0 && record.vcuda)
		r = step_ask_slots(step, name, record.devices, stepd, &directory);
	else if (r == 0)
		r = step_print_devices(step, false, &record.devices);
	if (r == 0 && !record.devices)
		r = str_append(&record.devices, "void");
	if (r == 0)
		r = slurm_record_write(name, &record);
	if (r == 0 && directory)
		r = step_print_grant(step, directory, file);
	if (r != 0)
		return r;
	if (!step_has_slots(step))
		(void)step_print_variable(step, "NVIDIA", "CUDA_VISIBLE_DEVICES", file);
	else if (!record.vcuda)
		(void)fputs("CUDA_VISIBLE_DEVICES\n", file);
	(void)step_print_variable(step, "AMD", "ROCR_VISIBLE_DEVICES", file);
	(void)step_print_variable(step, "Intel", "ZE_AFFINITY_MASK", file);
	(void)fprintf(file, "NVIDIA_VISIBLE_DEVICES=%s\n", record.vcuda ? "void" : record.devices);
	return step_has_slots(step) ? step_hide_nodes(step, file) : 0;
}

/* Of those (MIG) Slurm has files and numbers of its own, and tells a step its parts by itself. */
static bool step_has_parts(const struct ctr_gpu_host *host)
{
	bool parts = false;

	for (size_t i = 0; i < host->inventory.count; i++)
		parts = parts || host->inventory.adapters[i].is_part;
	return parts;
}

/* A step's record has the name of its cgroup, with the heterogeneous component, which Slurm does not give plugins. */
static int step_find_name(const struct slurm_step *told, struct slurm_step *ret)
{
	int r = slurm_step_find_own(ret);

	if (r == -ENOENT)
		*ret = *told;
	return r == -ENOENT ? 0 : r;
}

int slurm_step_begin(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const struct slurm_step *told,
		     uid_t uid, const char *numbers, pid_t stepd, FILE *file)
{
	_cleanup_(step_clear) struct step step = {.context = context, .host = host, .cgroup = step_open_cgroup()};
	const bool in_cgroup = step.cgroup >= 0;
	struct slurm_step name;
	int r;

	if (host && step_has_parts(host))
		return 0;
	if (numbers[strspn(numbers, "0123456789,")])
		return step_refuse(&step, numbers, in_cgroup);
	r = step_find_name(told, &name);
	if (r == 0 && host)
		r = slurm_gpus_list(context, host, &step.gpus);
	if (r == 0)
		r = step_look(&step);
	if (r == 0 && step_choose(&step, numbers, in_cgroup) != step_count_number(numbers, -1)) {
		/* Where each GPU has a node of its own, Slurm gives and constrains it without us. */
		return step_has_made(&step) ? step_refuse(&step, numbers, in_cgroup) : 0;
	}
	if (r == 0)
		r = step_hold(&step);
	if (r == 0)
		r = step_tell(&step, &name, uid, stepd, file);
	return r;
}
