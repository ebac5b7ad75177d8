/* SPDX-License-Identifier: Apache-2.0 */

#include "model/plan.h"

#include <errno.h>
#include <stdlib.h>

/*
 * A list of the plan: entries are unique by the string that `key` names. `second` is the other string they must have,
 * or the key again; `release` is for what they own besides.
 */
#define DEFINE_PLAN_LIST(noun, list, key, second, release)                            \
	static void plan_##noun##_clear(struct plan_##noun *entry)                    \
	{                                                                             \
		free(entry->key);                                                     \
		release;                                                              \
		free(entry->reason);                                                  \
	}                                                                             \
                                                                                      \
	int plan_add_##noun(struct plan *plan, struct plan_##noun *entry)             \
	{                                                                             \
		struct plan_##noun *larger;                                           \
                                                                                      \
		if (!entry->key || !entry->second || !entry->reason)                  \
			return plan_##noun##_clear(entry), -ENOMEM;                   \
		for (size_t i = 0; i < plan->noun##_count; i++)                       \
			if (streq(plan->list[i].key, entry->key))                     \
				return plan_##noun##_clear(entry), 0;                 \
		larger = array_grow(plan->list, plan->noun##_count, sizeof(*larger)); \
		if (!larger)                                                          \
			return plan_##noun##_clear(entry), -ENOMEM;                   \
		plan->list = larger;                                                  \
		plan->list[plan->noun##_count++] = *entry;                            \
		return 0;                                                             \
	}                                                                             \
                                                                                      \
	static void plan_##noun##_list_clear(struct plan *plan)                       \
	{                                                                             \
		for (size_t i = 0; i < plan->noun##_count; i++)                       \
			plan_##noun##_clear(&plan->list[i]);                          \
		free(plan->list);                                                     \
	}

DEFINE_PLAN_LIST(device, devices, path, path, (void)0)
DEFINE_PLAN_LIST(mount, mounts, target, source, free(entry->source))
DEFINE_PLAN_LIST(symlink, symlinks, path, points_to, free(entry->points_to))
DEFINE_PLAN_LIST(file, files, target, content, free(entry->content))
DEFINE_PLAN_LIST(hidden, hidden, path, path, (void)0)
DEFINE_PLAN_LIST(mode, modes, path, path, (void)0)
DEFINE_PLAN_LIST(env, env, name, value, free(entry->value))
DEFINE_PLAN_LIST(override, override, path, by, free(entry->by))
DEFINE_PLAN_LIST(obstacle, obstacles, path, remedy, (free(entry->library), free(entry->remedy)))
DEFINE_PLAN_LIST(grant, grants, uuid, uuid, (free(entry->address), free(entry->name)))
DEFINE_PLAN_LIST(claim, claims, gpu, name, (free(entry->name), free(entry->may_be)))
DEFINE_PLAN_LIST(library_dir, library_dirs, path, path, (strv_clear(&entry->libraries), strv_clear(&entry->files)))

bool plan_env_is_missing(const struct plan_env *env, const struct strv *environment)
{
	return env->replaces ||
	       (!strv_variable(environment, env->name) && !(env->unless && strv_variable(environment, env->unless)));
}

void plan_drop_env(struct plan *plan, const struct strv *environment)
{
	size_t kept = 0;

	for (size_t i = 0; i < plan->env_count; i++)
		if (plan_env_is_missing(&plan->env[i], environment))
			plan->env[kept++] = plan->env[i];
		else
			plan_env_clear(&plan->env[i]);
	plan->env_count = kept;
}

int plan_list_obstacles(const struct plan *plan, struct strv *ret)
{
	int r = 0;

	for (size_t i = 0; i < plan->obstacle_count && r == 0; i++)
		r = strv_format(ret, "%s\n%s", plan->obstacles[i].reason, plan->obstacles[i].remedy);
	return r;
}

void plan_drop_obstacles(struct plan *plan)
{
	plan_obstacle_list_clear(plan);
	plan->obstacles = NULL;
	plan->obstacle_count = 0;
}

json_t *plan_mount_options(unsigned flags)
{
	json_t *options = json_pack("[s, s, s, s, s]", "ro", "nosuid", "nodev", "rbind", "rprivate");

	if (options && (flags & PLAN_MOUNT_NOEXEC) && json_array_append_new(options, json_string("noexec")) < 0)
		return json_decref(options), NULL;
	return options;
}

gid_t plan_device_group(const struct stat *node)
{
	/* A group that this user namespace does not map is shown as 65534 (overflowgid of proc_sys_kernel(5)). */
	enum { FOR_OTHERS = S_IROTH | S_IWOTH, FOR_GROUP = S_IRGRP | S_IWGRP, NO_GROUP = 65534 };

	return (node->st_mode & FOR_OTHERS) != FOR_OTHERS && (node->st_mode & FOR_GROUP) == FOR_GROUP &&
			       node->st_gid != NO_GROUP
		       ? node->st_gid
		       : 0;
}

void plan_clear(struct plan *plan)
{
	plan_device_list_clear(plan);
	plan_mount_list_clear(plan);
	plan_symlink_list_clear(plan);
	plan_file_list_clear(plan);
	plan_hidden_list_clear(plan);
	plan_mode_list_clear(plan);
	plan_env_list_clear(plan);
	plan_library_dir_list_clear(plan);
	plan_override_list_clear(plan);
	plan_obstacle_list_clear(plan);
	plan_grant_list_clear(plan);
	plan_claim_list_clear(plan);
	free(plan->grant_library);
	free(plan->choice.luids);
	free(plan->choice.reason);
	strv_clear(&plan->adapters);
	strv_clear(&plan->warnings);
	*plan = (struct plan){0};
}
