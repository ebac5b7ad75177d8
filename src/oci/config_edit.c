/* SPDX-License-Identifier: Apache-2.0 */

/* Edits of a config.json: each has one list of the OCI specification say one thing more, unless it says so already. */

#include "oci/edit.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/str.h"
#include "oci/oci.h"

static int edit_no_memory(struct err *err)
{
	(void)err_set(err, -ENOMEM, "%m");
	return -ENOMEM;
}

static int edit_error(struct err *err, const char *what, const char *wanted)
{
	(void)err_set(err, CTR_GPU_E_BAD_STATE, "the runtime's config.json cannot be used: \"%s\" is not %s", what,
		      wanted);
	return CTR_GPU_E_BAD_STATE;
}

/* A member, made where it is missing or null. @ret is borrowed. */
static int edit_member(json_t *object, const char *name, json_type type, json_t **ret, struct err *err)
{
	json_t *value = json_object_get(object, name);

	if (!value || json_is_null(value)) {
		value = type == JSON_ARRAY ? json_array() : json_object();
		if (json_object_set_new(object, name, value) < 0)
			return edit_no_memory(err);
	}
	if (json_typeof(value) != type)
		return edit_error(err, name, type == JSON_ARRAY ? "an array" : "an object");
	*ret = value;
	return 0;
}

static bool edit_has_string(const json_t *object, const char *name, const char *value)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && streq(text, value);
}

/* Takes @entry. */
static int edit_append(json_t *array, json_t *entry, struct err *err)
{
	return !entry || json_array_append_new(array, entry) < 0 ? edit_no_memory(err) : 0;
}

/* ---- linux.devices ---- */

static json_t *edit_device_entry(const struct plan_device *device, const struct stat *node)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:I, s:I}", "path", device->path, "type", "c", "major",
			 (int)major(device->number), "minor", (int)minor(device->number), "fileMode",
			 (int)(node->st_mode & 0777), "uid", (json_int_t)node->st_uid, "gid", (json_int_t)node->st_gid);
}

/* What the engine has at this path stays if it is this device: its owner may be the user's wish. */
static int edit_add_device(json_t *devices, const struct plan_device *device, const struct stat *node, struct err *err)
{
	for (size_t i = json_array_size(devices); i-- > 0;) {
		const json_t *entry = json_array_get(devices, i);

		if (!edit_has_string(entry, "path", device->path))
			continue;
		if (edit_has_string(entry, "type", "c") &&
		    json_integer_value(json_object_get(entry, "major")) == major(device->number) &&
		    json_integer_value(json_object_get(entry, "minor")) == minor(device->number))
			return 0;
		(void)json_array_remove(devices, i);
	}
	return edit_append(devices, edit_device_entry(device, node), err);
}

/* ---- linux.resources.devices ---- */

static int edit_add_rule(json_t *rules, const struct plan_device *device, struct err *err)
{
	_cleanup_json_ json_t *rule = NULL;

	rule = json_pack("{s:b, s:s, s:i, s:i, s:s}", "allow", 1, "type", "c", "major", (int)major(device->number),
			 "minor", (int)minor(device->number), "access", device->access);
	if (!rule)
		return edit_no_memory(err);
	/* The last rule that matches counts, so a rule in front of a denial has no effect. */
	for (size_t i = json_array_size(rules); i-- > 0;) {
		const json_t *old = json_array_get(rules, i);

		if (json_equal(old, rule))
			return 0;
		if (!json_is_true(json_object_get(old, "allow")))
			break;
	}
	return json_array_append(rules, rule) < 0 ? edit_no_memory(err) : 0;
}

static json_t *edit_device_rules(const json_t *config)
{
	return json_object_get(json_object_get(json_object_get(config, "linux"), "resources"), "devices");
}

bool oci_edit_has_device_rules(const json_t *config)
{
	return json_array_size(edit_device_rules(config)) > 0;
}

static int edit_add_rules(json_t *config, const struct plan *plan, struct err *err)
{
	json_t *rules = edit_device_rules(config);
	int r = 0;

	for (size_t i = 0; i < plan->device_count && r == 0 && json_array_size(rules) > 0; i++)
		r = edit_add_rule(rules, &plan->devices[i], err);
	return r;
}

static int edit_add_devices(json_t *config, const struct plan *plan, const struct stat *nodes, struct err *err)
{
	json_t *linux_part, *devices;
	int r;

	r = edit_member(config, "linux", JSON_OBJECT, &linux_part, err);
	if (r == 0)
		r = edit_member(linux_part, "devices", JSON_ARRAY, &devices, err);
	for (size_t i = 0; i < plan->device_count && r == 0; i++)
		r = edit_add_device(devices, &plan->devices[i], &nodes[i], err);
	return r;
}

/* ---- mounts ---- */

static json_t *edit_mount_entry(const struct plan_mount *mount)
{
	return json_pack("{s:s, s:s, s:s, s:o}", "destination", mount->target, "type", "bind", "source", mount->source,
			 "options", plan_mount_options(mount->flags));
}

/* Behind the engine's mounts, which it has sorted by depth, so that ours end up on top. Takes @entry. */
static int edit_add_mount(json_t *mounts, json_t *entry, struct err *err)
{
	for (size_t i = entry ? json_array_size(mounts) : 0; i-- > 0;) {
		if (!json_equal(json_array_get(mounts, i), entry))
			continue;
		json_decref(entry);
		return 0;
	}
	return edit_append(mounts, entry, err);
}

static bool edit_may_be_volume(const json_t *mount)
{
	static const char *const types[] = {"proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2"};

	if (oci_is_bind(mount))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (edit_has_string(mount, "type", types[i]))
			return false;
	return true;
}

bool oci_edit_has_own_dev(const json_t *config)
{
	const json_t *mount;
	size_t i;

	json_array_foreach (json_object_get(config, "mounts"), i, mount)
		if (edit_has_string(mount, "destination", "/dev"))
			return !edit_may_be_volume(mount);
	return false;
}

/* A tmpfs: what the runtime makes to mount on is not in the image. It is read-only when the container starts. */
static int edit_add_own_directory(json_t *mounts, const struct plan *plan, struct err *err)
{
	for (size_t i = 0; i < plan->mount_count; i++)
		if (str_is_below(plan->mounts[i].target, PLAN_OWN_DIRECTORY))
			return edit_add_mount(mounts,
					      json_pack("{s:s, s:s, s:s, s:[s, s, s, s, s]}", "destination",
							PLAN_OWN_DIRECTORY, "type", "tmpfs", "source", "tmpfs",
							"options", "ro", "nosuid", "nodev", "noexec", "mode=0755"),
					      err);
	return 0;
}

static int edit_add_mounts(json_t *config, const struct plan *plan, struct err *err)
{
	json_t *mounts;
	int r;

	if (!plan->mount_count)
		return 0;
	r = edit_member(config, "mounts", JSON_ARRAY, &mounts, err);
	if (r == 0)
		r = edit_add_own_directory(mounts, plan, err);
	for (size_t i = 0; i < plan->mount_count && r == 0; i++)
		r = edit_add_mount(mounts, edit_mount_entry(&plan->mounts[i]), err);
	return r;
}

static json_t *edit_device_mount_entry(const char *path)
{
	return json_pack("{s:s, s:s, s:s, s:[s, s, s, s]}", "destination", path, "type", "bind", "source", path,
			 "options", "nosuid", "noexec", "rbind", "rprivate");
}

static int edit_add_device_mounts(json_t *config, const struct plan *plan, struct err *err)
{
	json_t *mounts;
	int r;

	r = edit_member(config, "mounts", JSON_ARRAY, &mounts, err);
	for (size_t i = 0; i < plan->device_count && r == 0; i++)
		r = edit_add_mount(mounts, edit_device_mount_entry(plan->devices[i].path), err);
	return r;
}

/* Takes @ours, which may be NULL without memory. */
static bool edit_is_equal(const json_t *mount, json_t *ours)
{
	_cleanup_json_ json_t *entry = ours;

	return json_equal(mount, entry);
}

bool oci_edit_is_volume(const json_t *mount, const struct plan *plan)
{
	if (!edit_may_be_volume(mount))
		return false;
	for (size_t i = 0; i < plan->mount_count; i++)
		if (edit_has_string(mount, "destination", plan->mounts[i].target) &&
		    edit_is_equal(mount, edit_mount_entry(&plan->mounts[i])))
			return false;
	for (size_t i = 0; i < plan->device_count; i++)
		if (edit_has_string(mount, "destination", plan->devices[i].path) &&
		    edit_is_equal(mount, edit_device_mount_entry(plan->devices[i].path)))
			return false;
	return true;
}

/* ---- process.env ---- */

/* Sets the plan's variables that the container lacks, and those that replace its own. */
static int edit_add_environment(json_t *config, const struct plan *plan, struct err *err)
{
	json_t *process, *environment = NULL, *item;
	_cleanup_strv_ struct strv own = {0};
	size_t j;
	int r;

	if (!plan->env_count)
		return 0;
	r = edit_member(config, "process", JSON_OBJECT, &process, err);
	if (r == 0)
		r = edit_member(process, "env", JSON_ARRAY, &environment, err);
	json_array_foreach (environment, j, item)
		if (json_is_string(item) && r == 0)
			r = strv_add(&own, json_string_value(item));
	for (size_t i = 0; i < plan->env_count && r == 0; i++) {
		const struct plan_env *variable = &plan->env[i];
		size_t length = strlen(variable->name);

		if (!plan_env_is_missing(variable, &own))
			continue;
		for (j = json_array_size(environment); j-- > 0;) {
			const char *text = json_string_value(json_array_get(environment, j));

			if (text && strncmp(text, variable->name, length) == 0 && text[length] == '=')
				(void)json_array_remove(environment, j);
		}
		r = edit_append(environment, json_sprintf("%s=%s", variable->name, variable->value), err);
	}
	return r;
}

/* ---- process.user.additionalGids ---- */

/* In a user namespace, a group's number means another group than on the host. */
static bool edit_has_user_namespace(const json_t *config)
{
	const json_t *item;
	size_t i;

	json_array_foreach (json_object_get(json_object_get(config, "linux"), "namespaces"), i, item)
		if (edit_has_string(item, "type", "user"))
			return true;
	return false;
}

static int edit_add_group(json_t *groups, gid_t group, struct err *err)
{
	const json_t *item;
	size_t i;

	json_array_foreach (groups, i, item)
		if (json_integer_value(item) == group)
			return 0;
	return edit_append(groups, json_integer(group), err);
}

static int edit_add_groups(json_t *config, const struct plan *plan, struct err *err)
{
	json_t *process, *user, *groups;
	int r = 0;

	for (size_t i = 0; i < plan->device_count && r == 0; i++) {
		if (!plan->devices[i].group || edit_has_user_namespace(config))
			continue;
		r = edit_member(config, "process", JSON_OBJECT, &process, err);
		if (r == 0)
			r = edit_member(process, "user", JSON_OBJECT, &user, err);
		if (r == 0)
			r = edit_member(user, "additionalGids", JSON_ARRAY, &groups, err);
		if (r == 0)
			r = edit_add_group(groups, plan->devices[i].group, err);
	}
	return r;
}

int oci_edit_apply_rules(json_t *config, const struct plan *plan, struct err *err)
{
	int r = edit_add_rules(config, plan, err);

	if (r == 0)
		r = edit_add_groups(config, plan, err);
	return r == 0 ? edit_add_environment(config, plan, err) : r;
}

int oci_edit_apply(json_t *config, const struct plan *plan, const struct stat *nodes, struct err *err)
{
	int r = 0;

	if (plan->device_count)
		r = nodes ? edit_add_devices(config, plan, nodes, err) : edit_add_device_mounts(config, plan, err);
	if (r == 0)
		r = edit_add_mounts(config, plan, err);
	return r == 0 ? oci_edit_apply_rules(config, plan, err) : r;
}

/* ---- hooks ---- */

static bool edit_acts_on_environment(const json_t *hook)
{
	static const char *const names[] = {"ctr-gpu-hook", "nvidia-container-runtime-hook",
					    "nvidia-container-toolkit"};
	const char *path = json_string_value(json_object_get(hook, "path"));
	const char *slash = path ? strrchr(path, '/') : NULL;
	const json_t *item;
	bool ours = false;
	size_t i;

	for (i = 0; path && i < ARRAY_SIZE(names); i++)
		ours = ours || streq(slash ? slash + 1 : path, names[i]);
	/* A hook of a CDI device names it, and does what the container's environment does not ask for. */
	json_array_foreach (json_object_get(hook, "args"), i, item)
		if (json_is_string(item) && str_has_prefix(json_string_value(item), "--device="))
			return false;
	return ours;
}

static void edit_remove_hooks(json_t *hooks, const char *stage)
{
	json_t *list = json_object_get(hooks, stage);
	size_t before = json_array_size(list);

	for (size_t i = before; i-- > 0;)
		if (edit_acts_on_environment(json_array_get(list, i)))
			(void)json_array_remove(list, i);
	if (before > 0 && json_array_size(list) == 0)
		(void)json_object_del(hooks, stage);
}

/* A hook without an environment gets the image's from some runtimes. Behind what others have there. */
static int edit_add_hook(json_t *hooks, const char *stage, const struct oci_edit_hook *hook, struct err *err)
{
	json_t *list;
	int r = edit_member(hooks, stage, JSON_ARRAY, &list, err);

	if (r != 0)
		return r;
	return edit_append(list,
			   json_pack("{s:s, s:[s, s], s:[s], s:i}", "path", hook->path, "args", "ctr-gpu-hook", stage,
				     "env", "CTR_GPU_HOOK=runtime", "timeout", hook->timeout_s),
			   err);
}

int oci_edit_set_hooks(json_t *config, const struct oci_edit_hook *hook, struct err *err)
{
	json_t *hooks = json_object_get(config, "hooks");
	int r;

	edit_remove_hooks(hooks, "prestart");
	edit_remove_hooks(hooks, "createRuntime");
	if (!hook->path)
		return 0;
	edit_remove_hooks(hooks, "poststop");
	r = edit_member(config, "hooks", JSON_OBJECT, &hooks, err);
	if (r == 0 && hook->gives)
		r = edit_add_hook(hooks, "createRuntime", hook, err);
	return r == 0 ? edit_add_hook(hooks, "poststop", hook, err) : r;
}
