/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The hooks in specs of NVIDIA's tools. Each becomes a small plan from the hook's arguments, applied like any other.
 * They run at the stage createContainer, in the container's namespaces, before its root is changed to.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/log.h"
#include "lib/container.h"
#include "lib/context.h"
#include "plan/plan.h"
#include "root/mount.h"
#include "root/mount_class.h"
#include "system/elf_file.h"

#define REASON "a CDI spec asks for it"

enum {
	FOLDERS_MAX = 64,
	ENTRIES_MAX = 16384, /* libraries of a folder */
};

struct cdi_hook_call {
	struct ctr_gpu_context *context;
	const char *const *arguments; /* behind the command */
	struct rootfs rootfs;
	struct mount_map mount_map;
	struct plan *plan;
	const struct command *command; /* one of the two */
	const struct backend_hook *vendor;
};

struct command {
	const char *name;
	int (*plan)(const struct cdi_hook_call *call);
	bool links_only; /* of libraries */
};

/* ---- arguments ---- */

/*
 * The next value of an option: --name=value, --name value, -name value. @position is where to look, and then where to
 * go on.
 * Return: NULL behind the last value.
 */
static const char *cdi_hook_next_value(const struct cdi_hook_call *call, const char *name, size_t *position)
{
	size_t length = strlen(name);

	while (call->arguments[*position]) {
		const char *option = call->arguments[(*position)++];

		if (option[0] != '-')
			continue;
		option += option[1] == '-' ? 2 : 1;
		if (strncmp(option, name, length) != 0)
			continue;
		if (option[length] == '=')
			return option + length + 1;
		if (option[length] == '\0' && call->arguments[*position])
			return call->arguments[(*position)++];
	}
	return NULL;
}

static int cdi_hook_list_values(const struct cdi_hook_call *call, const char *name, struct strv *ret)
{
	size_t position = 0;
	const char *value;
	int r = 0;

	while (r == 0 && (value = cdi_hook_next_value(call, name, &position)))
		r = strv_add(ret, value);
	return r;
}

/* ---- create-symlinks ---- */

static int cdi_hook_add_symlink(const struct cdi_hook_call *call, const char *path, const char *points_to,
				bool replaces)
{
	struct plan_symlink link = {
		.path = strdup(path),
		.points_to = strdup(points_to),
		.reason = strdup(REASON),
		.replaces = replaces,
	};

	return plan_add_symlink(call->plan, &link);
}

/* "TARGET::LINK"; LINK is a path of the container. */
static int cdi_hook_create_symlinks(const struct cdi_hook_call *call)
{
	_cleanup_strv_ struct strv links = {0};
	int r;

	r = cdi_hook_list_values(call, "link", &links);
	for (size_t i = 0; i < links.count && r == 0; i++) {
		char *separator = strstr(links.items[i], "::");

		if (!separator || separator == links.items[i] || separator[2] != '/' || strstr(separator + 2, "::")) {
			log_warning(&call->context->settings.log, "\"%.256s\" is not TARGET::LINK; it is left out",
				    links.items[i]);
			continue;
		}
		*separator = '\0';
		r = cdi_hook_add_symlink(call, separator + 2, links.items[i], true);
	}
	return r;
}

/* ---- update-ldcache ---- */

static bool cdi_hook_is_library(const char *name)
{
	const char *suffix = strstr(name, ".so");

	return suffix && suffix != name && (suffix[3] == '\0' || suffix[3] == '.');
}

static int cdi_hook_add_library(struct plan_library_dir *dir, const char *soname, const char *file)
{
	int r;

	if (strv_contains(&dir->libraries, soname))
		return 0;
	r = strv_add(&dir->libraries, soname);
	return r == 0 ? strv_add(&dir->files, file) : r;
}

/* A mounted library's file has the driver's version in its name; the SONAME is in the library. */
static int cdi_hook_add_mounted(const struct cdi_hook_call *call, struct plan_library_dir *dir, const char *name,
				int fd)
{
	_cleanup_free_ char *soname = NULL, *link = NULL;
	_cleanup_close_ int old = -1;
	struct stat st;
	int r;

	r = elf_file_read_soname(fd, &soname);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = cdi_hook_add_library(dir, soname, name);
	if (r < 0 || streq(soname, name))
		return r;
	if (str_format(&link, "%s/%s", dir->path, soname) < 0)
		return -ENOMEM;
	/* ldconfig, too, sets a link right that belongs to another version, and leaves a file alone. */
	old = rootfs_open_path(&call->rootfs, link, O_PATH | O_NOFOLLOW);
	return cdi_hook_add_symlink(call, link, name, old >= 0 && fstat(old, &st) == 0 && S_ISLNK(st.st_mode));
}

/* Files of the image are listed by their names, as its own cache would have them; nothing in them is read. */
static int cdi_hook_add_entry(const struct cdi_hook_call *call, struct plan_library_dir *dir, const char *name,
			      bool all)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int handle = -1, fd = -1;

	if (str_format(&path, "%s/%s", dir->path, name) < 0)
		return -ENOMEM;
	handle = rootfs_open_path(&call->rootfs, path, O_PATH);
	if (handle < 0)
		return 0;
	if (mount_class_is_root(&call->rootfs, handle))
		return all ? cdi_hook_add_library(dir, name, name) : 0;
	fd = mount_class_is_kernel(handle) ? -1 : rootfs_open_regular(&call->rootfs, handle);
	return fd < 0 ? 0 : cdi_hook_add_mounted(call, dir, name, fd);
}

static int cdi_hook_add_folder(const struct cdi_hook_call *call, const char *path, bool all)
{
	struct plan_library_dir dir = {.overrides_image = true};
	_cleanup_strv_ struct strv names = {0};
	_cleanup_close_ int fd = -1;
	int r;

	fd = rootfs_open_path(&call->rootfs, path, O_RDONLY | O_DIRECTORY);
	if (path[0] != '/' || fd < 0) {
		log_debug(&call->context->settings.log, "the container has no folder %s", path);
		return 0;
	}
	dir.path = strdup(path);
	dir.reason = strdup(REASON);
	/* The directory may be a volume's, whose filesystem lists names for ever. */
	r = dir.path ? fd_list_names(fd, ".", cdi_hook_is_library, ENTRIES_MAX, &names) : -ENOMEM;
	if (r < 0 && r != -ENOMEM)
		r = 0;
	for (size_t i = 0; i < names.count && r == 0; i++)
		r = cdi_hook_add_entry(call, &dir, names.items[i], all);
	if (r == 0 && !call->command->links_only)
		return plan_add_library_dir(call->plan, &dir);
	free(dir.path);
	free(dir.reason);
	strv_clear(&dir.libraries);
	strv_clear(&dir.files);
	return r;
}

/* An image that has a cache has its own libraries in it. */
static int cdi_hook_update_ldcache(const struct cdi_hook_call *call)
{
	_cleanup_strv_ struct strv values = {0}, folders = {0};
	_cleanup_close_ int cache = rootfs_open_path(&call->rootfs, "/etc/ld.so.cache", O_PATH);
	bool all = !call->command->links_only && cache < 0;
	int r;

	r = cdi_hook_list_values(call, "folder", &values);
	if (r == 0)
		r = cdi_hook_list_values(call, "folders", &values);
	for (size_t i = 0; i < values.count && r == 0; i++)
		r = strv_split(values.items[i], ",", &folders);
	for (size_t i = 0; i < folders.count && i < FOLDERS_MAX && r == 0; i++)
		r = cdi_hook_add_folder(call, folders.items[i], all);
	return r;
}

/* ---- others ---- */

static int cdi_hook_change_mode(const struct cdi_hook_call *call)
{
	size_t position = 0, mode_position = 0;
	const char *path, *mode = cdi_hook_next_value(call, "mode", &mode_position);
	char *end;
	unsigned long bits = strtoul(mode ? mode : "", &end, 8);
	int r = 0;

	if (!mode || *end || end == mode || bits > 0777) {
		log_warning(&call->context->settings.log, "chmod: the mode is missing or invalid; nothing was done");
		return 0;
	}
	while (r == 0 && (path = cdi_hook_next_value(call, "path", &position)))
		r = plan_add_mode(
			call->plan,
			&(struct plan_mode){.path = strdup(path), .mode = (mode_t)bits, .reason = strdup(REASON)});
	return r;
}

static int cdi_hook_refuse_compat(const struct cdi_hook_call *call)
{
	log_warning(&call->context->settings.log,
		    "enable-cuda-compat: libraries of the image are never used in place of the host's; the container "
		    "runs with the host's driver");
	return 0;
}

static int cdi_hook_do_nothing(const struct cdi_hook_call *call)
{
	(void)call;
	return 0;
}

/* ---- the command ---- */

static const struct command commands[] = {
	{"create-symlinks", cdi_hook_create_symlinks, false},      {"update-ldcache", cdi_hook_update_ldcache, false},
	{"create-soname-symlinks", cdi_hook_update_ldcache, true}, {"chmod", cdi_hook_change_mode, false},
	{"enable-cuda-compat", cdi_hook_refuse_compat, false},     {"noop", cdi_hook_do_nothing, false},
};

/* Return: whether a command is known, here or to a backend. */
static bool cdi_hook_find_command(struct cdi_hook_call *call, const char *name)
{
	const struct backend *backend;

	for (size_t i = 0; i < ARRAY_SIZE(commands) && !call->command; i++)
		if (streq(commands[i].name, name))
			call->command = &commands[i];
	for (size_t i = 0; !call->command && !call->vendor && (backend = host_backend(i)); i++)
		for (const struct backend_hook *hook = backend->hooks; hook && hook->command && !call->vendor; hook++)
			call->vendor = streq(hook->command, name) ? hook : NULL;
	return call->command || call->vendor;
}

static int cdi_hook_run_command(struct cdi_hook_call *call, struct ctr_gpu_container *container)
{
	struct ctr_gpu_plan plan = {0};
	int r;

	call->plan = &plan.data;
	undo_log_progress(call->context->undo_log, "reading the container's files", NULL);
	r = container_open_rootfs(container, &call->rootfs, &call->context->err);
	call->rootfs.proc_self_fd = mount_open_proc_self_fd(-1);
	call->rootfs.mount_map = &call->mount_map;
	if (r == 0)
		r = call->command ? call->command->plan(call) : call->vendor->plan(&call->rootfs, call->plan);
	if (r == 0 &&
	    (plan.data.symlink_count || plan.data.file_count || plan.data.mode_count || plan.data.library_dir_count))
		r = ctr_gpu_plan_apply(call->context, &plan, container);
	cleanup_closep(&call->rootfs.proc_self_fd);
	rootfs_close(&call->rootfs);
	mount_map_clear(&call->mount_map);
	plan_clear(&plan.data);
	return r == -ENOMEM ? err_set(&call->context->err, r, "%m") : r;
}

int ctr_gpu_cdi_run_hook(struct ctr_gpu_context *context, const char *const *arguments, const char *state, size_t size)
{
	struct cdi_hook_call call = {.context = context, .rootfs = ROOTFS_CLOSED, .mount_map = MOUNT_MAP_NONE};
	struct ctr_gpu_container *container;
	int r;

	/* Options of the program stand before the command; none of them takes a value that is not written with "=". */
	while (*arguments && **arguments == '-')
		arguments++;
	if (!*arguments) {
		log_warning(&context->settings.log, "no CDI hook is named, and nothing is done");
		return 0;
	}
	if (!cdi_hook_find_command(&call, *arguments)) {
		/* Specs may come from newer tools. Scripts look for these words. */
		log_warning(&context->settings.log, "Unsupported CDI hook: %.64s", *arguments);
		return 0;
	}
	r = container_new_inside(context, state, size, &container);
	if (r != 0)
		return r;
	call.arguments = arguments + 1;
	r = cdi_hook_run_command(&call, container);
	ctr_gpu_container_unref(container);
	return r;
}
