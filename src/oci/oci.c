/* SPDX-License-Identifier: Apache-2.0 */

#include "oci/oci.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "oci/json_raw.h"

void oci_state_clear(struct oci_state *state)
{
	free(state->bundle);
	free(state->id);
	*state = (struct oci_state){0};
}

static void oci_hooks_free(struct oci_hook *hooks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		strv_clear(&hooks[i].arguments);
	free(hooks);
}

void oci_config_clear(struct oci_config *config)
{
	free(config->root);
	strv_clear(&config->environment);
	strv_clear(&config->groups);
	strv_clear(&config->binds);
	strv_clear(&config->tmpfs);
	strv_clear(&config->device_mounts);
	oci_hooks_free(config->hooks, config->hook_count);
	*config = (struct oci_config){0};
}

static int oci_error(struct err *err, const char *file, const char *what)
{
	return err_set(err, CTR_GPU_E_BAD_STATE, "the runtime's %s cannot be used: %s", file, what);
}

static int oci_parse_object(const char *file, const char *data, size_t size, size_t max, const struct json_raw *raws,
			    json_t **ret, struct err *err)
{
	char reason[JSON_ERROR_TEXT_LENGTH] = "";
	_cleanup_json_ json_t *json = NULL;
	int r;

	if (size > max)
		return err_set(err, CTR_GPU_E_BAD_STATE, "the runtime's %s cannot be used: it is larger than %zu MiB",
			       file, max >> 20);
	r = json_parse_skipping(data, size, raws, &json, reason);
	if (r == -ENOMEM)
		return err_set(err, r, "%m");
	if (r < 0)
		return oci_error(err, file, reason);
	if (!json_is_object(json))
		return oci_error(err, file, "it is not a JSON object");
	*ret = steal_ptr(json);
	return 0;
}

/* ---- state ---- */

static const struct json_raw state_raws[] = {{"annotations", NULL}, {NULL, NULL}};

/*
 * At the stages before the start the specification says "creating" or "created", and runtimes say either; what they say
 * must not be that the container has started already.
 */
static int oci_check_status(const json_t *state, struct err *err)
{
	const char *status = json_string_value(json_object_get(state, "status"));

	if (!status)
		return oci_error(err, "state", "\"status\" is not a string");
	if (streq(status, "running") || streq(status, "paused"))
		return err_set_advised(
			err, CTR_GPU_E_CONTAINER_RUNNING,
			("the container is %s already; GPUs can be added only while it is being created.", status),
			("Run the hook at the stage createRuntime or prestart."));
	if (!streq(status, "creating") && !streq(status, "created"))
		return oci_error(err, "state", "the status is not that of a container that is being created");
	return 0;
}

static int oci_check_ended(const json_t *state, struct err *err)
{
	const char *status = json_string_value(json_object_get(state, "status"));

	return status && streq(status, "stopped") ? 0 : oci_error(err, "state", "the container has not ended");
}

static int oci_parse_any_state(const char *data, size_t size, int (*check)(const json_t *state, struct err *err),
			       json_int_t least_pid, struct oci_state *ret, struct err *err)
{
	_cleanup_json_ json_t *state = NULL;
	const char *bundle;
	json_int_t pid;
	int r;

	r = oci_parse_object("state", data, size, OCI_STATE_MAX, state_raws, &state, err);
	if (r == 0)
		r = check(state, err);
	if (r != 0)
		return r;
	pid = json_integer_value(json_object_get(state, "pid"));
	if (pid < least_pid || pid > INT_MAX)
		return err_advise(err, oci_error(err, "state", "\"pid\" names no process."),
				  "Run the hook at the stage createRuntime or prestart.");
	bundle = json_string_value(json_object_get(state, "bundle"));
	if (!bundle || bundle[0] != '/')
		return oci_error(err, "state", "\"bundle\" is not an absolute path");
	ret->bundle = strdup(bundle);
	if (!ret->bundle)
		return err_set(err, -ENOMEM, "%m");
	ret->pid = (pid_t)pid;
	/* For the list of vCUDA's manager alone, which checks it. */
	if (json_is_string(json_object_get(state, "id")))
		ret->id = strdup(json_string_value(json_object_get(state, "id")));
	return 0;
}

int oci_parse_state(const char *data, size_t size, struct oci_state *ret, struct err *err)
{
	return oci_parse_any_state(data, size, oci_check_status, 1, ret, err);
}

int oci_parse_state_inside(const char *data, size_t size, struct oci_state *ret, struct err *err)
{
	return oci_parse_any_state(data, size, oci_check_status, 0, ret, err);
}

int oci_parse_state_ended(const char *data, size_t size, struct oci_state *ret, struct err *err)
{
	int r = oci_parse_any_state(data, size, oci_check_ended, INT_MIN, ret, err);

	ret->pid = 0;
	return r;
}

/* ---- config.json ---- */

/* What neither oci_read_config() nor an edit looks at and engines fill. */
static const struct json_raw capability_raws[] = {
	{"effective", NULL}, {"permitted", NULL}, {"inheritable", NULL}, {"ambient", NULL}, {NULL, NULL}};
static const struct json_raw process_raws[] = {
	{"capabilities", capability_raws}, {"rlimits", NULL}, {"args", NULL}, {NULL, NULL}};
static const struct json_raw linux_raws[] = {
	{"seccomp", NULL}, {"maskedPaths", NULL}, {"readonlyPaths", NULL}, {"sysctl", NULL}, {NULL, NULL}};
static const struct json_raw config_raws[] = {
	{"annotations", NULL}, {"process", process_raws}, {"linux", linux_raws}, {NULL, NULL}};

/* What oci_read_config() does not look at. */
static const struct json_raw read_raws[] = {
	{"annotations", NULL}, {"process", process_raws}, {"linux", NULL}, {NULL, NULL}};

/* process.env; without a process, or without variables, it is empty. */
static int oci_read_environment(const json_t *config, struct strv *ret, struct err *err)
{
	const json_t *process = json_object_get(config, "process"), *env, *item;
	size_t i;

	if (process && !json_is_object(process))
		return oci_error(err, "config.json", "\"process\" is not an object");
	env = json_object_get(process, "env");
	if (env && !json_is_null(env) && !json_is_array(env))
		return oci_error(err, "config.json", "\"process.env\" is not an array");
	json_array_foreach (env, i, item) {
		if (!json_is_string(item))
			return oci_error(err, "config.json", "\"process.env\" has an item that is not a string");
		if (strv_add(ret, json_string_value(item)) < 0)
			return err_set(err, -ENOMEM, "%m");
	}
	return strv_terminate(ret) < 0 ? err_set(err, -ENOMEM, "%m") : 0;
}

/* process.user; what is not a number counts as missing. */
static int oci_read_user(const json_t *config, struct oci_config *ret)
{
	const json_t *user = json_object_get(json_object_get(config, "process"), "user"), *item;
	int r = strv_format(&ret->groups, "%lld", (long long)json_integer_value(json_object_get(user, "gid")));
	size_t i;

	ret->user = (unsigned)json_integer_value(json_object_get(user, "uid"));
	json_array_foreach (json_object_get(user, "additionalGids"), i, item)
		if (r == 0)
			r = strv_format(&ret->groups, "%lld", (long long)json_integer_value(item));
	return r;
}

/* An image cannot bring such mounts: for a volume that it declares, the engine chooses the source. */
static int oci_read_device_mounts(const json_t *config, struct strv *ret)
{
	static const char root[] = "/var/run/nvidia-container-devices/";
	const json_t *mount;
	size_t i;
	int r = 0;

	json_array_foreach (json_object_get(config, "mounts"), i, mount) {
		const char *source = json_string_value(json_object_get(mount, "source"));
		const char *target = json_string_value(json_object_get(mount, "destination"));

		if (r == 0 && source && target && streq(source, "/dev/null") && str_has_prefix(target, root) &&
		    target[strlen(root)])
			r = strv_add(ret, target + strlen(root));
	}
	return r;
}

bool oci_is_bind(const json_t *mount)
{
	const json_t *option;
	size_t i;

	json_array_foreach (json_object_get(mount, "options"), i, option)
		if (json_is_string(option) &&
		    (streq(json_string_value(option), "bind") || streq(json_string_value(option), "rbind")))
			return true;
	return false;
}

/* A file system that a runtime makes for the container, or mounts from the kernel. */
static bool oci_is_new(const json_t *mount, const char *type)
{
	static const char *const types[] = {"tmpfs", "proc", "sysfs", "devpts", "mqueue", "cgroup", "cgroup2"};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (type && streq(types[i], type))
			return !oci_is_bind(mount);
	return false;
}

static int oci_read_mounts(const json_t *config, struct oci_config *ret)
{
	const json_t *mount;
	bool complete = true;
	size_t i;
	int r = 0;

	json_array_foreach (json_object_get(config, "mounts"), i, mount) {
		const char *source = json_string_value(json_object_get(mount, "source"));
		const char *target = json_string_value(json_object_get(mount, "destination"));
		const char *type = json_string_value(json_object_get(mount, "type"));
		bool new = oci_is_new(mount, type);

		if (!new && (!source || source[0] != '/'))
			complete = false;
		else if (r == 0 && !new)
			r = strv_add(&ret->binds, source);
		else if (r == 0 && target && streq(type, "tmpfs"))
			r = strv_add(&ret->tmpfs, target);
	}
	if (!complete)
		strv_clear(&ret->tmpfs);
	return r;
}

int oci_hook_devices(const char *const *arguments, struct strv *ret)
{
	static const char option[] = "--device=";
	int r = 0;

	for (; *arguments && r == 0; arguments++)
		if (str_has_prefix(*arguments, option))
			r = strv_split(*arguments + strlen(option), ",", ret);
	return r;
}

/* Of ctr-gpu-hook for CDI devices; most containers have none. */
static int oci_read_hooks(const json_t *json, struct oci_config *config)
{
	const json_t *hooks = json_object_get(json_object_get(json, "hooks"), "createRuntime"), *hook, *item;
	size_t i, j;

	json_array_foreach (hooks, i, hook) {
		const json_t *arguments = json_object_get(hook, "args");
		const char *program = json_string_value(json_array_get(arguments, 0));
		const char *slash = program ? strrchr(program, '/') : NULL;
		_cleanup_strv_ struct strv words = {0}, devices = {0};
		struct oci_hook *items;

		if (!program || !streq(slash ? slash + 1 : program, "ctr-gpu-hook"))
			continue;
		/* Items that are not strings are left out; the runtime has refused such hooks already. */
		json_array_foreach (arguments, j, item)
			if (json_is_string(item) && strv_add(&words, json_string_value(item)) < 0)
				return -ENOMEM;
		if (strv_terminate(&words) < 0 || oci_hook_devices((const char *const *)words.items, &devices) < 0)
			return -ENOMEM;
		if (devices.count == 0)
			continue;
		items = array_grow(config->hooks, config->hook_count, sizeof(*items));
		if (!items)
			return -ENOMEM;
		config->hooks = items;
		items[config->hook_count++] = (struct oci_hook){steal_struct(&words)};
	}
	return 0;
}

int oci_load_config(const char *data, size_t size, json_t **ret, struct err *err)
{
	return oci_parse_object("config.json", data, size, OCI_CONFIG_MAX, config_raws, ret, err);
}

int oci_print_config(const json_t *config, const char *data, char **ret)
{
	return json_print_restoring(config, JSON_COMPACT, data, ret);
}

/*
 * The bounding set is what tells: of an ordinary user in a privileged container all others are empty. Before 1.0.0-rc5
 * of the specification there was one set.
 */
static bool oci_is_privileged(const json_t *json)
{
	const json_t *sets = json_object_get(json_object_get(json, "process"), "capabilities"), *item;
	size_t i;

	json_array_foreach (json_is_array(sets) ? sets : json_object_get(sets, "bounding"), i, item)
		if (json_is_string(item) && streq(json_string_value(item), "CAP_SYS_ADMIN"))
			return true;
	return false;
}

/* dockerd adds this for --gpus and nothing else. What Podman and CRI-O add for every container has another name. */
static bool oci_is_by_engine(const json_t *json)
{
	const json_t *item;
	size_t i;

	json_array_foreach (json_object_get(json_object_get(json, "hooks"), "prestart"), i, item) {
		const char *path = json_string_value(json_object_get(item, "path"));
		const char *slash = path ? strrchr(path, '/') : NULL;

		if (slash && streq(slash, "/nvidia-container-runtime-hook"))
			return true;
	}
	return false;
}

int oci_read_config(const json_t *json, struct oci_config *ret, struct err *err)
{
	_cleanup_(oci_config_clear) struct oci_config config = {0};
	const char *root;
	int r;

	root = json_string_value(json_object_get(json_object_get(json, "root"), "path"));
	if (!root || !*root)
		return oci_error(err, "config.json", "\"root.path\" is not a path");
	r = oci_read_environment(json, &config.environment, err);
	if (r != 0)
		return r;
	config.privileged = oci_is_privileged(json);
	config.by_engine = oci_is_by_engine(json);
	config.root = strdup(root);
	if (!config.root || oci_read_user(json, &config) < 0 ||
	    oci_read_device_mounts(json, &config.device_mounts) < 0 || oci_read_mounts(json, &config) < 0 ||
	    oci_read_hooks(json, &config) < 0)
		return err_set(err, -ENOMEM, "%m");
	*ret = steal_struct(&config);
	return 0;
}

int oci_parse_config(const char *data, size_t size, struct oci_config *ret, struct err *err)
{
	_cleanup_json_ json_t *json = NULL;
	int r;

	r = oci_parse_object("config.json", data, size, OCI_CONFIG_MAX, read_raws, &json, err);
	return r == 0 ? oci_read_config(json, ret, err) : r;
}
