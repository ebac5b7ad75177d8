/* SPDX-License-Identifier: Apache-2.0 */

#include "model/plan.h"

#include <errno.h>
#include <stdlib.h>

static void plan_device_clear(struct plan_device *entry)
{
	free(entry->path);
	free(entry->reason);
}

static void plan_mount_clear(struct plan_mount *entry)
{
	free(entry->source);
	free(entry->target);
	free(entry->reason);
}

static void plan_symlink_clear(struct plan_symlink *entry)
{
	free(entry->path);
	free(entry->points_to);
	free(entry->reason);
}

static void plan_file_clear(struct plan_file *entry)
{
	free(entry->target);
	free(entry->content);
	free(entry->reason);
}

static void plan_hidden_clear(struct plan_hidden *entry)
{
	free(entry->path);
	free(entry->reason);
}

static void plan_env_clear(struct plan_env *entry)
{
	free(entry->name);
	free(entry->value);
	free(entry->reason);
}

static void plan_library_dir_clear(struct plan_library_dir *entry)
{
	free(entry->path);
	free(entry->reason);
	strv_clear(&entry->libraries);
	strv_clear(&entry->files);
}

/* A list of the plan: entries are unique by the string that `key` names. */
#define DEFINE_PLAN_LIST(noun, list, key)                                             \
	int plan_add_##noun(struct plan *plan, struct plan_##noun *entry)             \
	{                                                                             \
		struct plan_##noun *larger;                                           \
                                                                                      \
		if (!entry->key || !entry->reason)                                    \
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

DEFINE_PLAN_LIST(device, devices, path)
DEFINE_PLAN_LIST(mount, mounts, target)
DEFINE_PLAN_LIST(symlink, symlinks, path)
DEFINE_PLAN_LIST(file, files, target)
DEFINE_PLAN_LIST(hidden, hidden, path)
DEFINE_PLAN_LIST(env, env, name)
DEFINE_PLAN_LIST(library_dir, library_dirs, path)

void plan_clear(struct plan *plan)
{
	plan_device_list_clear(plan);
	plan_mount_list_clear(plan);
	plan_symlink_list_clear(plan);
	plan_file_list_clear(plan);
	plan_hidden_list_clear(plan);
	plan_env_list_clear(plan);
	plan_library_dir_list_clear(plan);
	strv_clear(&plan->adapters);
	strv_clear(&plan->warnings);
	*plan = (struct plan){0};
}
