/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The containers that run and have GPUs: which, how they came by them, and whether they would get the same now. After
 * an update of the driver, a container has the files of the old one until it is restarted.
 *
 * A container is looked at by a child: what is mounted in it may not answer. What it shows is compared with the plan
 * that its configuration would make now, and nothing of it is believed.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/print.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/run.h"
#include "engines/engine.h"
#include "lib/container.h"
#include "plan/plan.h"
#include "root/mountinfo.h"
#include "root/rootfs.h"
#include "system/machine.h"

DEFINE_CLEANUP(struct ctr_gpu_container *, ctr_gpu_container_unref)
#define _cleanup_container_ _cleanup_(ctr_gpu_container_unrefp)
DEFINE_CLEANUP(struct ctr_gpu_bundle *, ctr_gpu_bundle_unref)
#define _cleanup_bundle_ _cleanup_(ctr_gpu_bundle_unrefp)
DEFINE_CLEANUP(struct ctr_gpu_request *, ctr_gpu_request_unref)
#define _cleanup_request_ _cleanup_(ctr_gpu_request_unrefp)
DEFINE_CLEANUP(struct ctr_gpu_plan *, ctr_gpu_plan_unref)
#define _cleanup_plan_ _cleanup_(ctr_gpu_plan_unrefp)

enum {
	LOOK_MS = 3000, /* for one container */
	ALL_MS = 6000,  /* for those that do not answer */
	ANSWER_MAX = 4 << 20,
	SHOWN_MAX = 4, /* paths, for a person */
	RECORDS_MAX = 4096,
};

/* How a container came by its GPUs. */
static const struct containers_way {
	const char *id, *text;
} ways[] = {
	{"gpus", "docker run --gpus"},
	{"hook", "its engine's hook"},
	{"runtime", "the runtime nvidia (ctr-gpu-runtime)"},
	{"cdi", "a CDI device"},
	{"attach", "ctr-gpu attach"},
	{"other", "its engine's own options, without ctr-gpu"},
};

struct containers_look {
	struct ctr_gpu_context *context;
	const struct ctr_gpu_host *host;
	struct container_pid *found;
	bool asked;   /* what it asks for counts, whatever it shows */
	bool refused; /* of what it asks for no plan can be made now */
	struct ctr_gpu_container *container;
	struct rootfs rootfs;
	struct strv places;  /* in which directories plans mount directories of libraries */
	struct strv targets; /* of the mounts of all plans */
	json_t *given, *gpus, *lacks, *has;
};

/* It ends with the boot, as mounts do. */
char *containers_find_records(void)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	char *path = NULL;

	if (geteuid() == 0)
		return strdup(PATH_RUN "/attached");
	if (run && run[0] == '/')
		(void)str_format(&path, "%s/ctr-gpu/attached", run);
	return path;
}

/* ---- in the container ---- */

static bool containers_has_path(const struct containers_look *look, const char *path, struct stat *ret)
{
	_cleanup_close_ int fd = rootfs_open_path(&look->rootfs, path, O_PATH);

	return fd >= 0 && fstat(fd, ret) == 0;
}

/* Whether it has been given any of the devices; one may have another number by now. */
static bool containers_has_device(const struct containers_look *look, const struct plan *plan)
{
	struct stat st;

	for (size_t i = 0; i < plan->device_count; i++)
		if (containers_has_path(look, plan->devices[i].path, &st) && S_ISCHR(st.st_mode))
			return true;
	return false;
}

static int containers_add_path(json_t *list, const char *path)
{
	json_t *text = print_string(path);
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (json_equal(item, text))
			return json_decref(text), 0;
	return json_array_append_new(list, text) < 0 ? -ENOMEM : 0;
}

/* Programs, sockets and configuration may be the image's own, and a daemon makes its socket anew. */
static bool containers_needs_mount(const struct plan_mount *mount)
{
	return mount->kind == PLAN_LIBRARY || mount->kind == PLAN_FIRMWARE;
}

static int containers_compare(struct containers_look *look, const struct plan *plan)
{
	struct stat st;
	int r = 0;

	for (size_t i = 0; i < plan->device_count && r == 0; i++) {
		const struct plan_device *device = &plan->devices[i];

		if (!containers_has_path(look, device->path, &st) || !S_ISCHR(st.st_mode) ||
		    st.st_rdev != device->number)
			r = containers_add_path(look->lacks, device->path);
	}
	for (size_t i = 0; i < plan->mount_count && r == 0; i++) {
		const struct plan_mount *mount = &plan->mounts[i];
		bool same = containers_has_path(look, mount->target, &st) && st.st_dev == mount->device &&
			    st.st_ino == mount->inode;

		r = strv_add(&look->targets, mount->target);
		/* Where the image has no such file, it is there, and a symlink leads to it. */
		if (r == 0)
			r = strv_format(&look->targets, PLAN_OWN_DIRECTORY "%s", mount->target);
		if (r == 0 && containers_needs_mount(mount) && !same)
			r = containers_add_path(look->lacks, mount->target);
		if (r == 0 && mount->kind == PLAN_LIBRARY && mount->directory)
			r = strv_format(&look->places, "%.*s", (int)(strrchr(mount->target, '/') - mount->target),
					mount->target);
	}
	return r;
}

static bool containers_is_ours(const struct containers_look *look, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (str_has_prefix(path, PLAN_OWN_DIRECTORY "/"))
		return true;
	for (size_t i = 0; slash && i < look->places.count; i++)
		if (strlen(look->places.items[i]) == (size_t)(slash - path) &&
		    str_has_prefix(path, look->places.items[i]))
			return true;
	return false;
}

/* What is mounted where a plan mounts libraries, and in no plan any more. */
static int containers_find_old(struct containers_look *look)
{
	_cleanup_close_ int fd = openat(look->container->process, "mountinfo", O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	struct mountinfo_field rest;
	struct mountinfo_line line;
	int r = fd < 0 ? -errno : fd_read_all(fd, MOUNTINFO_MAX, &text, NULL);

	if (r < 0)
		return r;
	rest = mountinfo_field_of(text);
	while (r == 0 && mountinfo_next(&rest, &line)) {
		_cleanup_free_ char *path = mountinfo_unescape(line.point);

		if (!path)
			return -ENOMEM;
		if (containers_is_ours(look, path) && !strv_contains(&look->targets, path))
			r = containers_add_path(look->has, path);
	}
	return r;
}

/* ---- how it came by them ---- */

static const char *containers_time(time_t seconds, char text[32])
{
	struct tm tm;

	if (seconds <= 0 || !gmtime_r(&seconds, &tm) || strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		return NULL;
	return text;
}

/* Of what is refused as a whole, since one that it names has gone, or of another reason: what the rest means. */
static int containers_add_asked(struct containers_look *look, const struct request *request)
{
	const bool names = request->kind == REQUEST_SOME;
	const size_t count = names ? request->devices.count : 1;
	int r = 0;

	for (size_t i = 0; i < count && r != -ENOMEM; i++) {
		_cleanup_selection_ struct selection selection = {0};
		struct request one = *request; /* whose lists are the other's */
		struct err ignored = {0};

		if (names)
			one.devices = (struct device_names){&request->devices.items[i], 1};
		r = selection_new(look->host, &one, &selection, &ignored);
		for (size_t j = 0; j < selection.count && r == 0; j++) {
			_cleanup_free_ char *gpu = NULL;

			r = adapter_describe(selection.adapters[j], &gpu);
			if (r == 0)
				r = containers_add_path(look->gpus, gpu);
		}
	}
	return r == -ENOMEM ? r : 0;
}

/* @plan: NULL: none can be made now, which the context says */
static int containers_add_way(struct containers_look *look, const char *id, time_t since,
			      const struct ctr_gpu_request *request, const struct plan *plan)
{
	const char *choice = plan && plan->choice.grade ? plan->choice.grade : NULL;
	char text[32];
	json_t *way = json_pack("{s:s, s:o, s:o, s:o}", "door", id, "since", print_string(containers_time(since, text)),
				"choice", print_string(choice), "refused",
				print_string(plan ? NULL : ctr_gpu_context_message(look->context)));
	int r = json_array_append_new(look->given, way) < 0 ? -ENOMEM : 0;

	look->refused |= !plan;
	if (r == 0 && !plan && look->asked)
		r = containers_add_asked(look, &request->data);
	for (size_t i = 0; plan && i < plan->adapters.count && r == 0; i++)
		r = containers_add_path(look->gpus, plan->adapters.items[i]);
	return r == 0 && plan ? containers_compare(look, plan) : r;
}

static bool containers_is_start(const char *stage)
{
	return streq(stage, "createRuntime") || streq(stage, "prestart");
}

/* Podman 5 gives createRuntime what a file names for prestart, with the arguments of the file. */
static bool containers_has_hook(const json_t *tree, const char *stage)
{
	const json_t *hook;
	size_t i;

	json_array_foreach (json_object_get(json_object_get(tree, "hooks"), stage), i, hook) {
		const char *path = json_string_value(json_object_get(hook, "path"));
		const char *word = json_string_value(json_array_get(json_object_get(hook, "args"), 1));
		const char *slash = path ? strrchr(path, '/') : NULL;

		if (slash && streq(slash, "/ctr-gpu-hook") && word &&
		    (streq(word, stage) || (containers_is_start(word) && containers_is_start(stage))))
			return true;
	}
	return false;
}

/* A file in a hooks directory has the same arguments for all its stages; the runtime names the stage of the end. */
static const char *containers_find_way(const struct ctr_gpu_bundle *bundle)
{
	if (bundle->config.hook_count > 0)
		return "cdi";
	if (bundle->config.by_engine)
		return "gpus";
	if (containers_has_hook(bundle->tree, "poststop"))
		return "runtime";
	return containers_has_hook(bundle->tree, "createRuntime") || containers_has_hook(bundle->tree, "prestart")
		       ? "hook"
		       : NULL;
}

/* Its configuration moves to the container, which the request is read of. */
static int containers_read_request(struct containers_look *look, struct ctr_gpu_bundle *bundle,
				   struct ctr_gpu_request *request)
{
	struct oci_config *config = &look->container->config;
	_cleanup_strv_ struct strv names = {0};
	_cleanup_free_ char *devices = NULL;
	int r = 0;

	oci_config_clear(config);
	*config = steal_struct(&bundle->config);
	for (size_t i = 0; i < config->hook_count && r == 0; i++)
		r = oci_hook_devices((const char *const *)config->hooks[i].arguments.items, &names);
	if (r == 0 && names.count > 0)
		r = strv_join(&names, ",", &devices);
	return r == 0 ? ctr_gpu_request_read_container(request, look->container, devices) : r;
}

/* What its configuration asks for may not have been given: nothing runs a hook for an image's variables alone. */
static int containers_look_at_start(struct containers_look *look)
{
	const char *directory = container_pid_find_bundle(look->found, look->container->process), *id;
	_cleanup_bundle_ struct ctr_gpu_bundle *bundle = NULL;
	_cleanup_request_ struct ctr_gpu_request *request = NULL;
	_cleanup_plan_ struct ctr_gpu_plan *plan = NULL;
	struct ctr_gpu_context *context = look->context;
	int r;

	if (!directory || ctr_gpu_bundle_new(context, directory, NULL, &bundle) != 0)
		return 0;
	id = containers_find_way(bundle);
	r = id ? ctr_gpu_request_new(context, &request) : 0;
	if (r < 0 || !id)
		return r;
	r = containers_read_request(look, bundle, request);
	if (r != 0 || ctr_gpu_request_is_void(request))
		return r == -ENOMEM ? r : 0;
	r = ctr_gpu_plan_new(context, request, look->host, &plan);
	if (r == 0 && !look->asked && !containers_has_device(look, &plan->data))
		return 0;
	return containers_add_way(look, id, container_pid_read_time(look->container->process), request,
				  r == 0 ? &plan->data : NULL);
}

/* The numbers of adapters, of what a record calls them. */
static int containers_read_record(const json_t *record, struct ctr_gpu_request *request)
{
	_cleanup_strv_ struct strv devices = {0}, capabilities = {0};
	_cleanup_free_ char *device_list = NULL, *capability_list = NULL;
	const json_t *item;
	size_t i;
	int r = 0;

	json_array_foreach (json_object_get(record, "adapters"), i, item) {
		const char *text = json_string_value(item);

		if (r == 0 && text)
			r = strv_format(&devices, "%.*s", (int)strcspn(text, " "), text);
	}
	json_array_foreach (json_object_get(record, "capabilities"), i, item)
		if (r == 0 && json_string_value(item))
			r = strv_add(&capabilities, json_string_value(item));
	if (r == 0)
		r = strv_join(&devices, ",", &device_list);
	if (r == 0)
		r = strv_join(&capabilities, ",", &capability_list);
	if (r == 0)
		r = ctr_gpu_request_set_devices(request, device_list);
	return r == 0 ? ctr_gpu_request_set_capabilities(request, capability_list) : r;
}

static int containers_look_at_records(struct containers_look *look)
{
	_cleanup_free_ char *directory = containers_find_records();
	_cleanup_json_ json_t *records = NULL;
	const json_t *record;
	size_t i;
	int r = directory ? running_read_records(look->container, directory, &records) : 0;

	json_array_foreach (records, i, record) {
		_cleanup_request_ struct ctr_gpu_request *request = NULL;
		_cleanup_plan_ struct ctr_gpu_plan *plan = NULL;

		r = ctr_gpu_request_new(look->context, &request);
		if (r == 0)
			r = containers_read_record(record, request);
		if (r == 0)
			r = ctr_gpu_plan_new(look->context, request, look->host, &plan);
		if (r == -ENOMEM)
			return r;
		r = containers_add_way(look, "attach", (time_t)json_integer_value(json_object_get(record, "since")),
				       request, r == 0 ? &plan->data : NULL);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* ---- GPUs that it has without ctr-gpu ---- */

static bool containers_has_all_devices(const struct containers_look *look, const struct plan *plan)
{
	struct stat st;

	for (size_t i = 0; i < plan->device_count; i++)
		if (!containers_has_path(look, plan->devices[i].path, &st) || st.st_rdev != plan->devices[i].number)
			return false;
	return plan->device_count > 0;
}

static int containers_look_at_adapter(struct containers_look *look, const struct adapter *adapter)
{
	_cleanup_request_ struct ctr_gpu_request *request = NULL;
	_cleanup_plan_ struct ctr_gpu_plan *plan = NULL;
	char number[ADAPTER_NUMBER_SIZE];
	int r = ctr_gpu_request_new(look->context, &request);

	adapter_format_number(adapter, number);
	if (r == 0)
		r = ctr_gpu_request_set_devices(request, number);
	if (r == 0)
		r = ctr_gpu_request_set_capabilities(request, "utility");
	if (r == 0)
		r = ctr_gpu_plan_new(look->context, request, look->host, &plan);
	if (r != 0 || !containers_has_all_devices(look, &plan->data))
		return r == -ENOMEM ? r : 0;
	return containers_add_path(look->gpus, plan->data.adapters.items[0]);
}

static int containers_look_at_nodes(struct containers_look *look)
{
	const struct inventory *inventory = &look->host->inventory;
	int r = 0;

	for (size_t i = 0; i < inventory->count && r == 0; i++)
		if (!inventory->adapters[i].unusable)
			r = containers_look_at_adapter(look, &inventory->adapters[i]);
	if (r < 0 || json_array_size(look->gpus) == 0 || json_array_size(look->given) > 0)
		return r;
	return json_array_append_new(look->given, json_pack("{s:s, s:n, s:n, s:n}", "door", "other", "since", "choice",
							    "refused")) < 0
		       ? -ENOMEM
		       : 0;
}

/* ---- one container ---- */

static int containers_look_inside(struct containers_look *look)
{
	int r = container_open_rootfs(look->container, &look->rootfs, &look->context->err);

	if (r < 0 || (r > 0 && !look->asked))
		return r;
	r = containers_look_at_start(look);
	if (r == 0)
		r = containers_look_at_records(look);
	if (r == 0 && (json_array_size(look->given) == 0 || look->refused))
		r = containers_look_at_nodes(look);
	if (r == 0 && (look->places.count > 0 || look->targets.count > 0))
		r = containers_find_old(look);
	return r;
}

static json_t *containers_describe(const struct containers_look *look)
{
	const struct container_pid *found = look->found;
	char process[PROCESS_KEY_SIZE] = "";

	(void)process_key_make(found->pid, look->container->process, process);
	return json_pack("{s:s, s:o, s:o, s:i, s:s, s:O, s:O, s:O, s:O, s:b, s:n}", "engine", found->engine, "id",
			 print_string(found->id), "name", print_string(found->name), "pid", (int)found->pid, "process",
			 process, "gpus", look->gpus, "given", look->given, "lacks", look->lacks, "old", look->has,
			 "restart", json_array_size(look->lacks) > 0 || json_array_size(look->has) > 0, "error");
}

/* @error: why it is not known what it has */
static json_t *containers_describe_unknown(const struct container_pid *found, const char *error)
{
	return json_pack("{s:s, s:o, s:o, s:i, s:s, s:[], s:[], s:[], s:[], s:b, s:s}", "engine", found->engine, "id",
			 print_string(found->id), "name", print_string(found->name), "pid", (int)found->pid, "process",
			 "", "gpus", "given", "lacks", "old", "restart", 0, "error", error);
}

static bool containers_has_ended(const struct container_pid *found)
{
	_cleanup_close_ int process = -1;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)found->pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return process < 0 || !container_pid_is(found, process);
}

static json_t *containers_describe_looked_at(struct containers_look *look)
{
	const int r = containers_look_inside(look);

	if (r < 0)
		return containers_has_ended(look->found) ? json_object()
							 : containers_describe_unknown(look->found, strerror(-r));
	return r == 0 && json_array_size(look->given) > 0 ? containers_describe(look) : json_object();
}

/* Return: the container; an empty object if it has ended, or has no GPU; NULL without memory. */
static json_t *containers_look_at(struct ctr_gpu_context *context, const struct ctr_gpu_host *host,
				  struct container_pid *found, bool asked)
{
	_cleanup_container_ struct ctr_gpu_container *container = NULL;
	struct containers_look look = {
		.context = context, .host = host, .found = found, .asked = asked, .rootfs = ROOTFS_CLOSED};
	json_t *json;
	int r = ctr_gpu_container_new_running(context, found->pid, &container);

	if (r < 0 && !containers_has_ended(found))
		return containers_describe_unknown(found, strerror(-r));
	if (r != 0 || !container_pid_is(found, container->process))
		return json_object();
	look.container = container;
	look.given = json_array();
	look.gpus = json_array();
	look.lacks = json_array();
	look.has = json_array();
	json = containers_describe_looked_at(&look);
	json_decref(look.given);
	json_decref(look.gpus);
	json_decref(look.lacks);
	json_decref(look.has);
	rootfs_close(&look.rootfs);
	strv_clear(&look.places);
	strv_clear(&look.targets);
	return json;
}

/* ---- its child ---- */

static _Noreturn void containers_answer(struct ctr_gpu_context *context, const struct ctr_gpu_host *host,
					struct container_pid *found, bool asked, int fd)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	json_t *json;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Who reads what the parent prints does not wait for one that is left behind. */
	for (int i = 0; nothing >= 0 && i <= STDERR_FILENO; i++)
		(void)dup2(nothing, i);
	json = containers_look_at(context, host, found, asked);
	if (json && json_print(json, JSON_COMPACT, &text) == 0)
		(void)fd_write_all(fd, text, strlen(text));
	json_decref(json);
	_exit(EXIT_SUCCESS);
}

/* Return: 0, with what came until it was closed; -ETIMEDOUT; negative errno. */
static int containers_wait(int fd, int milliseconds, char **ret, size_t *ret_size)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};
	_cleanup_free_ char *text = NULL;
	size_t size = 0;

	for (;;) {
		char part[4096], *longer;
		ssize_t got;
		int ready = poll(&end, 1, milliseconds);

		if (ready == 0 || size > ANSWER_MAX)
			return -ETIMEDOUT;
		got = ready < 0 ? -1 : read(fd, part, sizeof(part));
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0)
			break;
		longer = got > 0 ? realloc(text, size + (size_t)got) : text;
		if (got > 0 && !longer)
			return -ENOMEM;
		text = longer;
		if (got > 0)
			memcpy(text + size, part, (size_t)got);
		size += got > 0 ? (size_t)got : 0;
	}
	*ret = steal_ptr(text);
	*ret_size = size;
	return 0;
}

/* Return: as containers_wait(), and then what containers_look_at() returns; -EINVAL: the child has died. */
static int containers_ask(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, struct container_pid *found,
			  bool asked, json_t **ret)
{
	_cleanup_close_ int ours = -1, others = -1;
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int pair[2], r;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	ours = pair[0];
	others = pair[1];
	(void)fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		containers_answer(context, host, found, asked, others);
	(void)close(steal_fd(&others));
	r = containers_wait(ours, LOOK_MS, &text, &size);
	/* One that waits in the kernel is left behind. */
	(void)kill(pid, SIGKILL);
	for (int i = 0; i < 20 && waitpid(pid, NULL, WNOHANG) == 0; i++)
		(void)poll(NULL, 0, 5);
	return r < 0 ? r : size == 0 ? -EINVAL : json_parse(text, size, ret, NULL);
}

/* ---- all of them ---- */

/* What does not answer is waited for twice; @waited: for how long that was. Return: as containers_ask(). */
static int containers_ask_in_time(struct ctr_gpu_context *context, const struct ctr_gpu_host *host,
				  struct container_pid *found, bool asked, int *waited, json_t **ret)
{
	const char *error = "others do not answer, and it was not looked at";
	int r = *waited < ALL_MS ? containers_ask(context, host, found, asked, ret) : -ETIMEDOUT;

	if (r != -ETIMEDOUT && r != -EINVAL)
		return r;
	if (r == -EINVAL)
		error = "the process that looked at it has died";
	else if (*waited < ALL_MS) {
		*waited += LOOK_MS;
		error = "a file system in it does not answer (FUSE, NFS, 9p)";
	}
	*ret = containers_describe_unknown(found, error);
	return *ret ? 0 : -ENOMEM;
}

/* Attach may have been told another process than the first. @list: marked */
static bool containers_is_listed(const struct container_pids *list, pid_t pid)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (stat(path, &st) < 0)
		return false;
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].mounts == st.st_ino && list->items[i].mounts_device == st.st_dev)
			return true;
	return false;
}

/* It is called by its number, as it was for attach. @key: of its first process */
static int containers_add_process(struct container_pids *list, const char *key)
{
	_cleanup_container_pid_ struct container_pid found = {
		.pid = process_key_pid(key), .engine = "other", .started = strtoull(strchr(key, '-') + 1, NULL, 10)};
	struct container_pid *items;

	if (process_key_is_over(key) || containers_is_listed(list, found.pid))
		return 0;
	items = array_grow(list->items, list->count, sizeof(*items));
	if (items)
		list->items = items;
	if (!items || str_format(&found.id, "%d", (int)found.pid) < 0)
		return -ENOMEM;
	list->items[list->count++] = steal_struct(&found);
	return 0;
}

/* Containers of engines that are not looked at, of which attach was told the process. Return: 0 or -ENOMEM. */
static int containers_add_attached(struct container_pids *list)
{
	_cleanup_free_ char *directory = containers_find_records();
	_cleanup_strv_ struct strv keys = {0};
	int r = directory ? fd_list_names(AT_FDCWD, directory, process_key_is_valid, RECORDS_MAX, &keys) : 0;

	r = r == -ENOMEM ? r : 0;
	if (r == 0 && keys.count > 0)
		r = container_pids_mark(list);
	for (size_t i = 0; i < keys.count && r == 0; i++)
		r = containers_add_process(list, keys.items[i]);
	return r;
}

int containers_list(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, bool asked, json_t **ret)
{
	_cleanup_container_pids_ struct container_pids found = {0};
	_cleanup_json_ json_t *list = json_array();
	int r = list ? container_pid_list(&found) : -ENOMEM, waited = 0;

	if (r == 0)
		r = containers_add_attached(&found);
	for (size_t i = 0; i < found.count && r == 0; i++) {
		_cleanup_json_ json_t *container = NULL;

		r = containers_ask_in_time(context, host, &found.items[i], asked, &waited, &container);
		if (r == 0 && json_object_size(container) > 0 && json_array_append(list, container) < 0)
			r = -ENOMEM;
	}
	for (size_t i = 0; i < found.unknown_count && r == 0; i++)
		r = json_array_append_new(list,
					  containers_describe_unknown(&found.unknown[i], found.unknown[i].error)) < 0
			    ? -ENOMEM
			    : 0;
	if (r == 0)
		*ret = steal_ptr(list);
	return r;
}

/* ---- for a person ---- */

static const char *containers_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* The engine's name for it; an id is as short as engines show it. */
static void containers_format_name(const json_t *container, char ret[128])
{
	const char *name = containers_text(container, "name"), *id = containers_text(container, "id");

	if (*name)
		(void)snprintf(ret, 128, "%s", name);
	else
		(void)snprintf(ret, 128, "%.12s", *id ? id : "(any)");
}

static void containers_print_list(const char *label, const json_t *list, FILE *file)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		if (i == SHOWN_MAX)
			print_safe(file, "    %-14sand %zu more\n", "", json_array_size(list) - i);
		if (i >= SHOWN_MAX)
			continue;
		print_safe(file, "    %-14s", i == 0 ? label : "");
		print_write_text(json_string_value(item) ? json_string_value(item) : "", file);
		(void)fputc('\n', file);
	}
}

/* In the time of this machine. */
static void containers_print_since(const char *text, FILE *file)
{
	struct tm tm = {0};
	char local[32];
	time_t seconds;

	if (!strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return;
	seconds = timegm(&tm);
	if (localtime_r(&seconds, &tm) && strftime(local, sizeof(local), "%Y-%m-%d %H:%M:%S", &tm) > 0)
		print_safe(file, ", since %s", local);
}

static void containers_print_way(const json_t *way, FILE *file)
{
	const char *id = containers_text(way, "door"), *choice = containers_text(way, "choice");
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(ways) && !streq(ways[i].id, id))
		i++;
	print_safe(file, "    %-14s%s", "by", ways[i].text);
	containers_print_since(containers_text(way, "since"), file);
	if (*choice)
		print_safe(file, "; choice: %s", choice);
	(void)fputc('\n', file);
	if (*containers_text(way, "refused"))
		print_safe(file, "    %-14sit would be refused: %.*s\n", "now",
			   (int)strcspn(containers_text(way, "refused"), "\n"), containers_text(way, "refused"));
}

static bool containers_is_refused(const json_t *given)
{
	const json_t *way;
	size_t i;

	json_array_foreach (given, i, way)
		if (*containers_text(way, "refused"))
			return true;
	return false;
}

static void containers_print_one(const json_t *container, FILE *file)
{
	const json_t *given = json_object_get(container, "given"), *way;
	const int pid = (int)json_integer_value(json_object_get(container, "pid"));
	char name[128];
	size_t i;

	containers_format_name(container, name);
	(void)fputs("container ", file);
	print_write_text(name, file);
	if (pid > 0)
		print_safe(file, " (%s, %.12s, process %d)\n", containers_text(container, "engine"),
			   containers_text(container, "id"), pid);
	else
		print_safe(file, " (%s)\n", containers_text(container, "engine"));
	containers_print_list("GPUs", json_object_get(container, "gpus"), file);
	json_array_foreach (given, i, way)
		containers_print_way(way, file);
	if (*containers_text(container, "error"))
		print_safe(file, "    %-14s%s\n", "not known:", containers_text(container, "error"));
	else if (json_is_true(json_object_get(container, "restart")))
		print_safe(file, "    %-14srestart it: it would get other files or devices\n", "now");
	else if (json_array_size(given) > 0 && !containers_is_refused(given) &&
		 !streq(containers_text(json_array_get(given, 0), "door"), "other"))
		print_safe(file, "    %-14sit would get the same\n", "now");
	containers_print_list("lacks", json_object_get(container, "lacks"), file);
	containers_print_list("has", json_object_get(container, "old"), file);
}

int containers_write(json_t *list, enum ctr_gpu_format format, FILE *file)
{
	const json_t *container;
	size_t i;

	if (format == CTR_GPU_FORMAT_JSON)
		return print_write_json(json_pack("{s:s, s:O}", "version", CTR_GPU_VERSION, "containers", list), file);
	json_array_foreach (list, i, container)
		containers_print_one(container, file);
	if (json_array_size(list) == 0)
		print_safe(file, "No container that runs has a GPU%s.\n",
			   geteuid() == 0 ? "" : ", of those that this user may look at");
	if (geteuid() != 0)
		print_safe(file, "Containers of root's engines: sudo ctr-gpu info --containers\n");
	return print_finish(file);
}

/* ---- the check ---- */

static void containers_report(struct findings *findings, const json_t *container)
{
	const char *engine = containers_text(container, "engine");
	const char *lacks = json_string_value(json_array_get(json_object_get(container, "lacks"), 0));
	const char *old = json_string_value(json_array_get(json_object_get(container, "old"), 0));
	char name[128];

	containers_format_name(container, name);
	if (streq(engine, "docker") || streq(engine, "podman"))
		findings_add(findings, "containers.stale", SEVERITY_WARNING,
			     "container %s (%s) was started with another driver: it %s %s\n%s restart %s", name, engine,
			     lacks ? "lacks" : "has", lacks ? lacks : old, engine, name);
	else
		findings_add(findings, "containers.stale", SEVERITY_WARNING,
			     "container %s (%s) was started with another driver: it %s %s\n"
			     "End container %s and start it anew.",
			     name, engine, lacks ? "lacks" : "has", lacks ? lacks : old, name);
}

static void containers_report_unknown(struct findings *findings, const json_t *first, size_t count)
{
	char name[128];

	containers_format_name(first, name);
	findings_add(findings, "containers.unknown", SEVERITY_WARNING,
		     "what %zu of the containers that run have is not known: %s (%s): %s\n"
		     "ctr-gpu info --containers names each; restart them.",
		     count, name, containers_text(first, "engine"), containers_text(first, "error"));
}

void check_containers(struct doctor_context *examination)
{
	_cleanup_json_ json_t *list = NULL;
	const json_t *container, *first = NULL;
	size_t i, unknown = 0;

	if (!examination->host || examination->usable == 0 ||
	    containers_list(examination->context, examination->host, false, &list) < 0)
		return;
	json_array_foreach (list, i, container) {
		if (json_is_true(json_object_get(container, "restart")))
			containers_report(&examination->findings, container);
		if (*containers_text(container, "error") && unknown++ == 0)
			first = container;
	}
	if (first)
		containers_report_unknown(&examination->findings, first, unknown);
}
