/* SPDX-License-Identifier: Apache-2.0 */

/* A plan, for people and programs. Entries keep their order of application. */

#include <errno.h>
#include <inttypes.h>
#include <sys/sysmacros.h>

#include "base/json.h"
#include "base/print.h"
#include "base/str.h"
#include "ctr-gpu.h"
#include "plan/plan.h"

static void print_plan_reason(FILE *file, const char *reason)
{
	(void)fputs("\n            ", file);
	print_write_text(reason, file);
	(void)fputc('\n', file);
}

static void print_plan_mount(FILE *file, const struct plan_mount *mount)
{
	print_safe(file, "mount       %s", mount->source);
	if (!streq(mount->source, mount->target))
		print_safe(file, " on %s", mount->target);
	print_safe(file, " (read-only%s)", mount->flags & PLAN_MOUNT_NOEXEC ? ", noexec" : "");
	print_plan_reason(file, mount->reason);
}

static void print_plan_library_dir(FILE *file, const struct plan_library_dir *dir)
{
	print_safe(file, "libraries   %s (%zu, %s the image's own)", dir->path, dir->libraries.count,
		   dir->overrides_image ? "before" : "behind");
	print_plan_reason(file, dir->reason);
}

static void print_plan_proc_text(const struct plan *plan, FILE *file)
{
	for (size_t i = 0; i < plan->file_count; i++) {
		print_safe(file, "file        %s", plan->files[i].target);
		print_plan_reason(file, plan->files[i].reason);
	}
	for (size_t i = 0; i < plan->hidden_count; i++) {
		print_safe(file, "hidden      %s", plan->hidden[i].path);
		print_plan_reason(file, plan->hidden[i].reason);
	}
	for (size_t i = 0; i < plan->mode_count; i++) {
		print_safe(file, "mode        %s %04o", plan->modes[i].path, plan->modes[i].mode);
		print_plan_reason(file, plan->modes[i].reason);
	}
}

static void print_plan_grant(const struct plan *plan, const struct plan_grant *grant, FILE *file)
{
	print_safe(file, "vcuda       %s (", grant->uuid);
	print_write_text(grant->name ? grant->name : "unnamed", file);
	if (grant->spare) {
		(void)fputs("), to which it may be moved", file);
		print_plan_reason(file, grant->reason);
		return;
	}
	(void)fputs("), ", file);
	vcuda_limits_print(&plan->grant_limits, file);
	(void)fputs("; no device node", file);
	print_plan_reason(file, grant->reason);
}

/* As luid_format() of the adapters has it: the high part first. */
enum { CHOSEN_SIZE = 24 };
static const char *print_plan_luid(uint64_t luid, char text[CHOSEN_SIZE])
{
	(void)snprintf(text, CHOSEN_SIZE, "LUID-%016" PRIx64, luid);
	return text;
}

static void print_plan_choice(const struct plan_choice *choice, FILE *file)
{
	char text[CHOSEN_SIZE];

	if (!choice->grade)
		return;
	print_safe(file, "choice      %s%s", choice->grade, choice->strict ? ", strict" : "");
	for (size_t i = 0; i < choice->luid_count; i++)
		print_safe(file, "%s %s", i == 0 ? ":" : ",", print_plan_luid(choice->luids[i], text));
	print_plan_reason(file, choice->reason);
}

static json_t *print_plan_choice_json(const struct plan_choice *choice)
{
	char text[CHOSEN_SIZE];

	if (!choice->grade)
		return json_null();
	return json_pack("{s:s, s:b, s:o, s:o}", "grade", choice->grade, "strict", choice->strict, "luids",
			 print_array(i, choice->luid_count, json_string(print_plan_luid(choice->luids[i], text))),
			 "reason", print_string(choice->reason));
}

static void print_plan_device(const struct plan_device *device, FILE *file)
{
	print_safe(file, "device      %s (c %u:%u %s", device->path, major(device->number), minor(device->number),
		   device->access);
	if (device->group)
		(void)fprintf(file, ", for root and group %u", device->group);
	(void)fputc(')', file);
	print_plan_reason(file, device->reason);
}

static void print_plan_env(const struct plan_env *env, FILE *file)
{
	print_safe(file, "environment %s=", env->name);
	print_write_text(env->value, file);
	print_safe(file, " (by ctr-gpu-runtime%s; with the hook, by you: -e)", env->combines ? " or CDI" : "");
	print_plan_reason(file, env->reason);
}

static void print_plan_override(const struct plan_override *override, FILE *file)
{
	(void)fputs("outranked   ", file);
	print_write_text(override->path, file);
	print_safe(file, " by %s", override->by);
	print_plan_reason(file, override->reason);
}

static void print_plan_obstacle(const struct plan_obstacle *obstacle, FILE *file)
{
	print_safe(file, "obstacle    %s", obstacle->path);
	if (obstacle->library)
		print_safe(file, ", but for images with a %s", obstacle->library);
	print_plan_reason(file, obstacle->reason);
}

static void print_plan_line(const char *noun, const char *text, FILE *file)
{
	print_safe(file, "%-11s ", noun);
	print_write_text(text, file);
	(void)fputc('\n', file);
}

static int print_plan_text(const struct plan *plan, FILE *file)
{
	for (size_t i = 0; i < plan->adapters.count; i++)
		print_plan_line("GPU", plan->adapters.items[i], file);
	for (size_t i = 0; i < plan->device_count; i++)
		print_plan_device(&plan->devices[i], file);
	for (size_t i = 0; i < plan->grant_count; i++)
		print_plan_grant(plan, &plan->grants[i], file);
	for (size_t i = 0; i < plan->mount_count; i++)
		print_plan_mount(file, &plan->mounts[i]);
	for (size_t i = 0; i < plan->symlink_count; i++) {
		print_safe(file, "symlink     %s -> %s", plan->symlinks[i].path, plan->symlinks[i].points_to);
		print_plan_reason(file, plan->symlinks[i].reason);
	}
	print_plan_proc_text(plan, file);
	for (size_t i = 0; i < plan->env_count; i++)
		print_plan_env(&plan->env[i], file);
	for (size_t i = 0; i < plan->library_dir_count; i++)
		print_plan_library_dir(file, &plan->library_dirs[i]);
	for (size_t i = 0; i < plan->override_count; i++)
		print_plan_override(&plan->override[i], file);
	for (size_t i = 0; i < plan->obstacle_count; i++)
		print_plan_obstacle(&plan->obstacles[i], file);
	for (size_t i = 0; i < plan->claim_count; i++) {
		(void)fputs("exclusive   ", file);
		print_write_text(plan->claims[i].name, file);
		print_plan_reason(file, plan->claims[i].reason);
	}
	print_plan_choice(&plan->choice, file);
	for (size_t i = 0; i < plan->warnings.count; i++)
		print_plan_line("warning", plan->warnings.items[i], file);
	return print_finish(file);
}

/* An array with the members that follow, of each `e` of a list, and its reason. */
#define LIST_JSON(noun, list, members, ...)                                                                  \
	print_array(i, plan->noun##_count, ({                                                                \
			    const struct plan_##noun *e = &plan->list[i];                                    \
			    json_pack("{" members ", s:o}", __VA_ARGS__, "reason", print_string(e->reason)); \
		    }))

static json_t *print_plan_pack_grant(const struct plan *plan, const struct plan_grant *grant)
{
	json_t *packed = json_pack("{s:o, s:o, s:o, s:b, s:o}", "uuid", print_string(grant->uuid), "pciAddress",
				   print_string(grant->address), "name", print_string(grant->name), "spare",
				   grant->spare, "reason", print_string(grant->reason));

	return vcuda_limits_pack(&plan->grant_limits, packed);
}

static int print_plan_json(const struct plan *plan, FILE *file)
{
	json_t *devices = LIST_JSON(device, devices, "s:o, s:i, s:i, s:s, s:o", "path", print_string(e->path), "major",
				    (int)major(e->number), "minor", (int)minor(e->number), "access", e->access, "group",
				    e->group ? json_integer(e->group) : json_null());
	json_t *grants = print_array(i, plan->grant_count, print_plan_pack_grant(plan, &plan->grants[i]));
	json_t *mounts = LIST_JSON(mount, mounts, "s:o, s:o, s:b, s:b", "source", print_string(e->source), "target",
				   print_string(e->target), "directory", e->directory, "noexec",
				   (e->flags & PLAN_MOUNT_NOEXEC) != 0);
	json_t *symlinks = LIST_JSON(symlink, symlinks, "s:o, s:o", "path", print_string(e->path), "pointsTo",
				     print_string(e->points_to));
	json_t *files = LIST_JSON(file, files, "s:o, s:o", "target", print_string(e->target), "content",
				  print_string(e->content));
	json_t *hidden = LIST_JSON(hidden, hidden, "s:o", "path", print_string(e->path));
	json_t *modes = LIST_JSON(mode, modes, "s:o, s:o", "path", print_string(e->path), "mode",
				  json_sprintf("%04o", e->mode));
	json_t *env =
		LIST_JSON(env, env, "s:o, s:o, s:o", "name", print_string(e->name), "value", print_string(e->value),
			  "setBy", e->combines ? json_pack("[s, s]", "runtime", "cdi") : json_pack("[s]", "runtime"));
	json_t *override =
		LIST_JSON(override, override, "s:o, s:o", "path", print_string(e->path), "by", print_string(e->by));
	json_t *obstacles = LIST_JSON(obstacle, obstacles, "s:o, s:o, s:o", "path", print_string(e->path), "library",
				      print_string(e->library), "remedy", print_string(e->remedy));
	json_t *claims = LIST_JSON(claim, claims, "s:o, s:o, s:o", "gpu", print_string(e->gpu), "name",
				   print_string(e->name), "mayBe", print_string(e->may_be));
	json_t *library_dirs =
		LIST_JSON(library_dir, library_dirs, "s:o, s:b, s:o", "path", print_string(e->path), "overridesImage",
			  e->overrides_image, "libraries", print_strings(&e->libraries));

	return print_write_json(json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
					  "adapters", print_strings(&plan->adapters), "devices", devices, "vcuda",
					  grants, "mounts", mounts, "symlinks", symlinks, "files", files, "hidden",
					  hidden, "modes", modes, "environment", env, "libraryDirectories",
					  library_dirs, "outranked", override, "obstacles", obstacles, "exclusive",
					  claims, "choice", print_plan_choice_json(&plan->choice), "warnings",
					  print_strings(&plan->warnings)),
				file);
}

/* One file may go to several places of a container. */
static bool print_plan_is_listed(const struct plan *plan, size_t number)
{
	for (size_t i = 0; i < number; i++)
		if (streq(plan->mounts[i].source, plan->mounts[number].source))
			return true;
	return false;
}

static int print_plan_paths(const struct plan *plan, FILE *file)
{
	for (size_t i = 0; i < plan->device_count; i++)
		print_safe(file, "%s\n", plan->devices[i].path);
	for (size_t i = 0; i < plan->mount_count; i++)
		if (!print_plan_is_listed(plan, i))
			print_safe(file, "%s\n", plan->mounts[i].source);
	return print_finish(file);
}

/* ---- files of some kinds ---- */

/* Return: the libraries in a directory that is mounted whole; NULL for another mount. */
static const struct strv *print_plan_libraries(const struct plan *plan, const struct plan_mount *mount)
{
	for (size_t i = 0; mount->directory && i < plan->library_dir_count; i++)
		if (streq(plan->library_dirs[i].path, mount->target))
			return &plan->library_dirs[i].libraries;
	return NULL;
}

static void print_plan_files(const struct plan *plan, const struct plan_mount *mount, FILE *file)
{
	const struct strv *libraries = print_plan_libraries(plan, mount);

	if (!libraries)
		print_safe(file, "%s\n", mount->source);
	for (size_t i = 0; libraries && i < libraries->count; i++)
		print_safe(file, "%s/%s\n", mount->source, libraries->items[i]);
}

int ctr_gpu_plan_write_files(const struct ctr_gpu_plan *plan, unsigned kinds, FILE *file)
{
	static const unsigned kind_of[] = {
		[PLAN_LIBRARY] = CTR_GPU_FILES_LIBRARIES, [PLAN_PROGRAM] = CTR_GPU_FILES_PROGRAMS,
		[PLAN_SOCKET] = CTR_GPU_FILES_SOCKETS,    [PLAN_FIRMWARE] = CTR_GPU_FILES_FIRMWARE,
		[PLAN_CONFIG] = CTR_GPU_FILES_CONFIG,
	};

	for (size_t i = 0; (kinds & CTR_GPU_FILES_DEVICES) && i < plan->data.device_count; i++)
		print_safe(file, "%s\n", plan->data.devices[i].path);
	for (size_t i = 0; i < plan->data.mount_count; i++)
		if ((kinds & kind_of[plan->data.mounts[i].kind]) && !print_plan_is_listed(&plan->data, i))
			print_plan_files(&plan->data, &plan->data.mounts[i], file);
	return print_finish(file);
}

int ctr_gpu_plan_write(const struct ctr_gpu_plan *plan, enum ctr_gpu_format format, FILE *file)
{
	switch (format) {
	case CTR_GPU_FORMAT_TEXT:
		return print_plan_text(&plan->data, file);
	case CTR_GPU_FORMAT_JSON:
		return print_plan_json(&plan->data, file);
	case CTR_GPU_FORMAT_PATHS:
		return print_plan_paths(&plan->data, file);
	case CTR_GPU_FORMAT_CSV:
		break;
	}
	return -EINVAL;
}
