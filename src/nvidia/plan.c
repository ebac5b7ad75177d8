/* SPDX-License-Identifier: Apache-2.0 */

/* What a container gets for NVIDIA's GPUs besides their device nodes. */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "base/fd.h"
#include "base/paths.h"
#include "nvidia/internal.h"
#include "nvidia/nvidia.h"
#include "system/noexec.h"
#include "system/trusted_file.h"

/* Mounts @file on @target; takes over file->path. Return: 0 or -ENOMEM. */
static int nvidia_plan_add_mount(const struct nvidia_plan *nvidia_plan, struct driver_files_file *file,
				 const char *target, enum plan_mount_kind kind, const char *reason)
{
	struct plan_mount mount = {
		.source = steal_ptr(file->path),
		.target = strdup(target),
		.directory = S_ISDIR(file->st.st_mode),
		.device = file->st.st_dev,
		.inode = file->st.st_ino,
		.kind = kind,
		.flags = kind == PLAN_LIBRARY || kind == PLAN_PROGRAM ? 0 : PLAN_MOUNT_NOEXEC,
		.reason = strdup(reason),
	};

	return plan_add_mount(nvidia_plan->plan, &mount);
}

/* ---- libraries ---- */

/* Where GBM looks for a driver is compiled into it, and differs from distribution to distribution. */
static const char *const gbm_links[] = {
	"/usr/lib64/gbm/nvidia-drm_gbm.so",
#if defined(__aarch64__)
	"/usr/lib/aarch64-linux-gnu/gbm/nvidia-drm_gbm.so",
#else
	"/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so",
#endif
};

enum { SCREEN = CAPABILITY_GRAPHICS | CAPABILITY_DISPLAY };

static int plan_libraries_add_symlink(const struct nvidia_plan *nvidia_plan, const char *path, const char *points_to,
				      const char *reason)
{
	struct plan_symlink link = {.path = strdup(path), .points_to = strdup(points_to), .reason = strdup(reason)};

	return plan_add_symlink(nvidia_plan->plan, &link);
}

static int plan_libraries_add_library(const struct nvidia_plan *nvidia_plan, struct driver_files_library *library,
				      struct strv *names)
{
	const char *directory = library->is_32 ? LIBRARY_DIR_32 : PATH_CONTAINER;
	struct driver_files_file file = {.path = steal_ptr(library->path), .st = library->st};
	_cleanup_free_ char *target = NULL, *link = NULL;
	int r;

	/* Two directories may have the same library; the first counts, as it does for the loader. */
	if (strv_contains(names, library->soname)) {
		free(file.path);
		return 0;
	}
	if (str_format(&target, "%s/%s", directory, library->soname) < 0) {
		free(file.path);
		return -ENOMEM;
	}
	r = nvidia_plan_add_mount(nvidia_plan, &file, target, PLAN_LIBRARY,
				  library->known ? library->known->meaning
						 : "a library of this driver that ctr-gpu does not know");
	if (r == 0)
		r = strv_add(names, library->soname);
	if (r < 0 || !library->known || !library->known->development)
		return r;
	/* "libcuda.so" beside "libcuda.so.1", for programs that look for it without a version. */
	if (str_format(&link, "%s/%s.so", directory, library->known->stem) < 0)
		return -ENOMEM;
	r = plan_libraries_add_symlink(nvidia_plan, link, library->soname, "the name that programs are linked with");
	return r < 0 ? r : strv_add(names, strrchr(link, '/') + 1);
}

/* The libraries of a driver that is not the machine's own (a driver container's) may be on any mount. */
static int plan_libraries_check_mounts(const struct nvidia_plan *nvidia_plan)
{
	_cleanup_free_ char *seen = NULL;
	struct plan *plan = nvidia_plan->plan;
	int r = 0;

	for (size_t i = 0; i < plan->mount_count && r == 0 && (nvidia_plan->capabilities & CAPABILITY_COMPUTE); i++)
		if (plan->mounts[i].kind == PLAN_LIBRARY)
			r = noexec_check_around(plan, plan->mounts[i].source, &seen);
	return r;
}

int plan_libraries(const struct nvidia_plan *nvidia_plan)
{
	_cleanup_libraries_ struct driver_files_libraries libraries = {0};
	_cleanup_strv_ struct strv names = {0}, names_32 = {0};
	const struct {
		const char *path, *reason;
		struct strv *names;
	} dirs[] = {{PATH_CONTAINER, "the driver's libraries", &names},
		    {LIBRARY_DIR_32, "the driver's 32-bit libraries", &names_32}};
	int r;

	r = driver_files_libraries(nvidia_plan->install, nvidia_plan->capabilities, &libraries);
	if (r < 0)
		return err_set(nvidia_plan->err, r, "cannot read the driver's libraries: %m");
	for (size_t i = 0; i < libraries.count && r == 0; i++)
		r = plan_libraries_add_library(nvidia_plan, &libraries.items[i],
					       libraries.items[i].is_32 ? &names_32 : &names);
	if ((nvidia_plan->capabilities & SCREEN) && strv_contains(&names, "libnvidia-allocator.so.1"))
		for (size_t i = 0; i < ARRAY_SIZE(gbm_links) && r == 0; i++)
			r = plan_libraries_add_symlink(nvidia_plan, gbm_links[i],
						       PATH_CONTAINER "/libnvidia-allocator.so.1",
						       "where GBM looks for the driver");
	if (r == 0 && (nvidia_plan->capabilities & CAPABILITY_COMPAT32) && names_32.count == 0)
		r = strv_format(&nvidia_plan->plan->warnings,
				"32-bit libraries are asked for, and the host has none of driver %s",
				nvidia_plan->module->version);
	for (size_t i = 0; i < ARRAY_SIZE(dirs) && r == 0; i++)
		if (dirs[i].names->count > 0)
			r = plan_add_library_dir(nvidia_plan->plan, &(struct plan_library_dir){
									    .path = strdup(dirs[i].path),
									    .overrides_image = true,
									    .libraries = steal_struct(dirs[i].names),
									    .reason = strdup(dirs[i].reason),
								    });
	return r == 0 ? plan_libraries_check_mounts(nvidia_plan) : r;
}

/* ---- programs, configuration, firmware, sockets ---- */

/* Return: 0 and a file; -ENOENT if none of the places has it; -ENOMEM. Files of another kind are not it. */
static int plan_files_find_in(const struct nvidia_plan *nvidia_plan, const struct strv *places, const char *name,
			      mode_t kind, struct driver_files_file *ret, const char **ret_place)
{
	for (size_t i = 0; i < places->count; i++) {
		struct driver_files_file file;
		int r = driver_files_find_in(nvidia_plan->install, places->items[i], name, &file);

		if (r == -ENOMEM)
			return r;
		if (r < 0)
			continue;
		if ((file.st.st_mode & S_IFMT) != kind) {
			free(file.path);
			continue;
		}
		*ret = file;
		*ret_place = places->items[i];
		return 0;
	}
	return -ENOENT;
}

/* The prefixes that drivers outside /usr are installed below: /usr/local/nvidia for /usr/local/nvidia/lib64. */
static int plan_files_list_prefixes(const struct driver_files *files, struct strv *ret)
{
	for (size_t i = 0; i < files->dir_count; i++) {
		const char *path = driver_files_path_inside(files, files->dirs[i].path);
		const char *slash = path ? strrchr(path, '/') : NULL;
		_cleanup_free_ char *prefix = NULL;

		if (!slash || slash == path || !str_has_prefix(slash, "/lib") || str_has_prefix(path, "/usr/lib") ||
		    str_has_prefix(path, "/lib"))
			continue;
		prefix = strndup(path, (size_t)(slash - path));
		if (!prefix)
			return -ENOMEM;
		if (!strv_contains(ret, prefix) && strv_add(ret, prefix) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Places of one purpose: below each prefix, then the usual ones. */
static int plan_files_list_places(const struct strv *prefixes, const char *below, const char *const *usual,
				  size_t count, struct strv *ret)
{
	int r = 0;

	for (size_t i = 0; i < prefixes->count && r == 0; i++)
		r = strv_format(ret, "%s/%s", prefixes->items[i], below);
	for (size_t i = 0; i < count && r == 0; i++)
		r = strv_add(ret, usual[i]);
	return r;
}

static int plan_files_add_programs(const struct nvidia_plan *nvidia_plan, const struct strv *prefixes)
{
	static const char *const usual[] = {"/usr/bin", "/opt/bin", "/usr/local/bin", "/run/current-system/sw/bin"};
	_cleanup_strv_ struct strv places = {0};
	int r;

	r = plan_files_list_places(prefixes, "bin", usual, ARRAY_SIZE(usual), &places);
	for (size_t i = 0; i < driver_program_count && r == 0; i++) {
		const struct driver_program *program = &driver_programs[i];
		_cleanup_free_ char *target = NULL;
		struct driver_files_file file;
		const char *place;

		if (!(program->capabilities & nvidia_plan->capabilities))
			continue;
		r = plan_files_find_in(nvidia_plan, &places, program->name, S_IFREG, &file, &place);
		if (r == -ENOENT) {
			r = 0;
			continue;
		}
		if (r != 0)
			return r;
		if (str_format(&target, "/usr/bin/%s", program->name) < 0) {
			free(file.path);
			return -ENOMEM;
		}
		r = nvidia_plan_add_mount(nvidia_plan, &file, target, PLAN_PROGRAM, program->meaning);
	}
	return r;
}

/* @named: libraries that files of the host tell of, added to. */
static int plan_files_add_config(const struct nvidia_plan *nvidia_plan, const struct strv *places,
				 const struct driver_config *config, struct strv *named)
{
	_cleanup_free_ char *target = NULL;
	struct driver_files_file file;
	const char *place;
	int r;

	r = plan_files_find_in(nvidia_plan, places, config->name, S_IFREG, &file, &place);
	if (r != 0)
		return r == -ENOENT ? 0 : r;
	if (config->library && strv_add(named, config->library) < 0) {
		free(file.path);
		return -ENOMEM;
	}
	if (config->target)
		place = config->target;
	else if (!streq(place, "/etc"))
		place = "/usr/share";
	if (str_format(&target, "%s/%s", place, config->name) < 0) {
		free(file.path);
		return -ENOMEM;
	}
	return nvidia_plan_add_mount(nvidia_plan, &file, target, PLAN_CONFIG, config->meaning);
}

static bool plan_files_has_library(const struct nvidia_plan *nvidia_plan, const char *soname)
{
	for (size_t i = 0; i < nvidia_plan->plan->library_dir_count; i++)
		if (strv_contains(&nvidia_plan->plan->library_dirs[i].libraries, soname))
			return true;
	return false;
}

/*
 * Makes the file by which programs find a library. Some hosts have the library without this file: OpenCL then has no
 * platform. Vulkan's loader compares the version only with its own interface's; drivers have had 1.3 since 2022.
 */
static int plan_files_make_config(const struct nvidia_plan *nvidia_plan, const struct driver_config *config)
{
	struct plan_file file = {0};
	int r;

	r = str_format(&file.target, "%s/%s", config->target ? config->target : "/usr/share", config->name);
	if (r == 0)
		r = config->target
			    ? str_format(&file.content, "%s\n", config->library)
			    : str_format(
				      &file.content,
				      "{\"file_format_version\": \"1.0.0\", \"ICD\": {\"library_path\": \"%s\"%s}}\n",
				      config->library,
				      str_has_prefix(config->name, "vulkan") ? ", \"api_version\": \"1.3.0\"" : "");
	if (r == 0)
		r = str_format(&file.reason, "%s; the host has no such file", config->meaning);
	if (r == 0)
		return plan_add_file(nvidia_plan->plan, &file);
	free(file.target);
	free(file.content);
	return r;
}

static int plan_files_add_configs(const struct nvidia_plan *nvidia_plan, const struct strv *prefixes)
{
	static const char *const usual[] = {"/usr/share", "/etc", "/run/opengl-driver/share", "/run/opengl-driver/etc"};
	_cleanup_strv_ struct strv places = {0}, named = {0};
	int r;

	r = plan_files_list_places(prefixes, "share", usual, ARRAY_SIZE(usual), &places);
	for (size_t i = 0; i < driver_config_count && r == 0; i++)
		if (driver_configs[i].capabilities & nvidia_plan->capabilities)
			r = plan_files_add_config(nvidia_plan, &places, &driver_configs[i], &named);
	for (size_t i = 0; i < driver_config_count && r == 0; i++) {
		const char *library = driver_configs[i].library;

		if (!library || !(driver_configs[i].capabilities & nvidia_plan->capabilities) ||
		    strv_contains(&named, library) || !plan_files_has_library(nvidia_plan, library))
			continue;
		r = plan_files_make_config(nvidia_plan, &driver_configs[i]);
		if (r == 0)
			r = strv_add(&named, library);
	}
	return r;
}

/* Firmware of the GPU's own processor (GSP), a directory per driver version. */
static int plan_files_add_firmware(const struct nvidia_plan *nvidia_plan, const struct strv *prefixes)
{
	static const char *const usual[] = {"/lib/firmware/nvidia", "/run/current-system/firmware/nvidia"};
	_cleanup_strv_ struct strv places = {0};
	_cleanup_free_ char *target = NULL;
	struct driver_files_file file;
	const char *place;
	int r;

	if (!(nvidia_plan->capabilities & (CAPABILITY_COMPUTE | CAPABILITY_UTILITY)))
		return 0;
	r = plan_files_list_places(prefixes, "firmware/nvidia", usual, ARRAY_SIZE(usual), &places);
	if (r == 0)
		r = plan_files_find_in(nvidia_plan, &places, nvidia_plan->module->version, S_IFDIR, &file, &place);
	if (r != 0)
		return r == -ENOENT ? 0 : r;
	if (str_format(&target, "/lib/firmware/nvidia/%s", nvidia_plan->module->version) < 0) {
		free(file.path);
		return -ENOMEM;
	}
	return nvidia_plan_add_mount(nvidia_plan, &file, target, PLAN_FIRMWARE, "firmware of the GPUs' own processors");
}

/* Another user may have made it: a directory in /tmp, or the file that a link leads to. */
static int plan_files_add_socket(const struct nvidia_plan *nvidia_plan, const struct driver_socket *socket)
{
	uid_t owner = socket->directory ? nvidia_plan->settings->mps_user : TRUSTED_FILE_ROOT_ONLY;
	_cleanup_close_ int fd = trusted_file_open(socket->path, socket->directory ? S_IFDIR : S_IFSOCK, owner, O_PATH);
	struct driver_files_file file;

	if (fd == -ENOMEM)
		return fd;
	if (fd == -EPERM)
		return strv_format(&nvidia_plan->plan->warnings,
				   "%s is left out, since others than root%s may have put it there", socket->path,
				   socket->directory ? " and \"mps-user\" (ctr-gpu-config(5))" : " and its service");
	if (fd < 0 || fstat(fd, &file.st) < 0)
		return 0;
	file.path = strdup(socket->path);
	return file.path ? nvidia_plan_add_mount(nvidia_plan, &file, socket->path, PLAN_SOCKET, socket->meaning)
			 : -ENOMEM;
}

/* Daemons run on this machine, whatever root the driver has. */
static int plan_files_add_sockets(const struct nvidia_plan *nvidia_plan)
{
	struct stat st;
	int r = 0;

	for (size_t i = 0; i < driver_socket_count && r == 0; i++)
		if ((driver_sockets[i].capabilities & nvidia_plan->capabilities) &&
		    lstat(driver_sockets[i].path, &st) == 0)
			r = plan_files_add_socket(nvidia_plan, &driver_sockets[i]);
	return r;
}

/* ---- the X server ---- */

/* Where X servers look for modules is compiled into them. */
static const char *const module_dirs[] = {"/usr/lib/xorg/modules", "/usr/lib64/xorg/modules"};

static int plan_files_add_xorg_module(const struct nvidia_plan *nvidia_plan, const char *name, const char *target)
{
	_cleanup_strv_ struct strv places = {0};
	struct driver_files_file file = {0};
	const char *place;
	int r;

	r = plan_files_list_places(&(struct strv){0}, "", module_dirs, ARRAY_SIZE(module_dirs), &places);
	if (r == 0)
		r = plan_files_find_in(nvidia_plan, &places, name, S_IFREG, &file, &place);
	if (r == 0)
		r = nvidia_plan_add_mount(nvidia_plan, &file, target, PLAN_LIBRARY, "module of the X server");
	return r == -ENOENT ? 0 : r;
}

static int plan_files_add_xorg_modules(const struct nvidia_plan *nvidia_plan)
{
	_cleanup_free_ char *glx = NULL;
	int r = 0;

	if (!(nvidia_plan->capabilities & CAPABILITY_DISPLAY))
		return 0;
	if (str_format(&glx, "extensions/libglxserver_nvidia.so.%s", nvidia_plan->module->version) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(module_dirs) && r == 0; i++) {
		_cleanup_free_ char *driver = NULL, *extension = NULL;

		if (str_format(&driver, "%s/drivers/nvidia_drv.so", module_dirs[i]) < 0 ||
		    str_format(&extension, "%s/extensions/libglxserver_nvidia.so", module_dirs[i]) < 0)
			return -ENOMEM;
		r = plan_files_add_xorg_module(nvidia_plan, "drivers/nvidia_drv.so", driver);
		if (r == 0)
			r = plan_files_add_xorg_module(nvidia_plan, glx, extension);
	}
	return r;
}

int plan_files(const struct nvidia_plan *nvidia_plan)
{
	_cleanup_strv_ struct strv prefixes = {0};
	int r;

	r = plan_files_list_prefixes(nvidia_plan->install, &prefixes);
	if (r == 0)
		r = plan_files_add_programs(nvidia_plan, &prefixes);
	if (r == 0)
		r = plan_files_add_configs(nvidia_plan, &prefixes);
	if (r == 0)
		r = plan_files_add_firmware(nvidia_plan, &prefixes);
	if (r == 0)
		r = plan_files_add_xorg_modules(nvidia_plan);
	return r == 0 ? plan_files_add_sockets(nvidia_plan) : r;
}

/* ---- /proc/driver/nvidia ---- */

/*
 * /proc/driver/nvidia is the kernel's, and shows every GPU in every container. The directories of GPUs that the
 * container does not have are covered. Where params says "ModifyDeviceFiles: 1", the driver's libraries make missing
 * device nodes themselves; in a container they must not.
 */

enum { ENTRIES_MAX = 4096 }; /* of a directory */

int nvidia_plan_params(struct plan *plan)
{
	struct plan_file file = {.on_procfs = true};
	_cleanup_free_ char *text = NULL;
	int r;

	r = module_read_file(PATH_PROC_NVIDIA "/params", &text);
	if (r == 0)
		r = proc_set_field(text, "ModifyDeviceFiles", "0", &file.content);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	file.target = strdup(PATH_PROC_NVIDIA "/params");
	file.reason = strdup("the driver's libraries make no device nodes (ModifyDeviceFiles: 0)");
	return plan_add_file(plan, &file);
}

static int procfs_hide(const struct nvidia_plan *nvidia_plan, const char *directory, const char *name,
		       const char *reason)
{
	struct plan_hidden hidden = {.reason = strdup(reason)};

	(void)str_format(&hidden.path, "%s/%s", directory, name);
	return plan_add_hidden(nvidia_plan->plan, &hidden);
}

/* @part: that the directory belongs to the GPU of, or to the GPU instance; NULL: it has entries of all GPUs */
typedef bool (*procfs_wanted_fn)(const struct adapter *adapter, const char *name, const struct adapter *part);

/* Covers the entries of a directory that are not wanted by a selected adapter. */
static int procfs_hide_names(const struct nvidia_plan *nvidia_plan, const char *directory, const struct strv *names,
			     procfs_wanted_fn is_wanted, const struct adapter *part, const char *reason)
{
	int r = 0;

	for (size_t i = 0; i < names->count && r == 0; i++) {
		bool wanted = false;

		for (size_t j = 0; j < nvidia_plan->selected_count && !wanted; j++)
			wanted = is_wanted(nvidia_plan->selected[j], names->items[i], part);
		if (!wanted)
			r = procfs_hide(nvidia_plan, directory, names->items[i], reason);
	}
	return r;
}

/* The same for those that are of a kind. */
static int procfs_hide_entries(const struct nvidia_plan *nvidia_plan, const char *directory,
			       bool (*is_kind)(const char *name), procfs_wanted_fn is_wanted,
			       const struct adapter *part, const char *reason)
{
	_cleanup_strv_ struct strv names = {0};
	int r;

	r = fd_list_names(AT_FDCWD, directory, is_kind, ENTRIES_MAX, &names);
	/* Drivers without parts, and containers that do not see them, lack it. */
	if (r == -ENOENT || r == -EACCES || r == -EPERM)
		return 0;
	if (r < 0)
		return err_set(nvidia_plan->err, r, "cannot read %s: %m", directory);
	return procfs_hide_names(nvidia_plan, directory, &names, is_wanted, part, reason);
}

static bool procfs_is_number_behind(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);

	return str_has_prefix(name, prefix) && name[length] &&
	       strspn(name + length, "0123456789") == strlen(name + length);
}

static bool procfs_has_address(const struct adapter *adapter, const char *name, const struct adapter *part)
{
	(void)part;
	return adapter->pci_address && streq(adapter->pci_address, name);
}

static bool procfs_is_gpu(const char *name)
{
	return procfs_is_number_behind(name, "gpu");
}

static bool procfs_has_minor(const struct adapter *adapter, const char *name, const struct adapter *part)
{
	(void)part;
	return adapter->minor == atoi(name + strlen("gpu"));
}

static bool procfs_is_instance(const char *name)
{
	return procfs_is_number_behind(name, "gi");
}

static bool procfs_has_instance(const struct adapter *adapter, const char *name, const struct adapter *part)
{
	return adapter->minor == part->minor &&
	       (!adapter->is_part || adapter->gpu_instance == atoi(name + strlen("gi")));
}

static bool procfs_is_compute_instance(const char *name)
{
	return procfs_is_number_behind(name, "ci");
}

static bool procfs_has_compute_instance(const struct adapter *adapter, const char *name, const struct adapter *part)
{
	return adapter->minor == part->minor &&
	       (!adapter->is_part || (adapter->gpu_instance == part->gpu_instance &&
				      adapter->compute_instance == atoi(name + strlen("ci"))));
}

/* Beside a selected part of a GPU, the GPU's other parts, and those of its own GPU instance. */
static int procfs_hide_other_parts(const struct nvidia_plan *nvidia_plan, const struct adapter *part)
{
	static const char reason[] = "a part of the GPU that was not selected";
	_cleanup_free_ char *directory = NULL, *instance = NULL;
	int r;

	if (str_format(&directory, PATH_PROC_NVIDIA "/capabilities/gpu%d/mig", part->minor) < 0 ||
	    str_format(&instance, "%s/gi%d", directory, part->gpu_instance) < 0)
		return -ENOMEM;
	r = procfs_hide_entries(nvidia_plan, directory, procfs_is_instance, procfs_has_instance, part, reason);
	return r == 0 ? procfs_hide_entries(nvidia_plan, instance, procfs_is_compute_instance,
					    procfs_has_compute_instance, part, reason)
		      : r;
}

static int procfs_add_application_profile(const struct nvidia_plan *nvidia_plan)
{
	unsigned long long minors = 0;

	for (size_t i = 0; i < nvidia_plan->selected_count; i++)
		if (nvidia_plan->selected[i]->minor < NVIDIA_PROFILE_MINORS)
			minors |= 1ULL << nvidia_plan->selected[i]->minor;
	return nvidia_plan_profile(minors, nvidia_plan->plan);
}

int nvidia_plan_profile(unsigned long long minors, struct plan *plan)
{
	struct plan_file file = {
		.target = strdup("/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf"),
		.reason = strdup("EGL shows the selected GPUs only"),
	};

	(void)str_format(
		&file.content,
		"{\"profiles\": [{\"name\": \"_container_\", \"settings\": [\"EGLVisibleDGPUDevices\", 0x%llx]}],\n"
		" \"rules\": [{\"pattern\": [], \"profile\": \"_container_\"}]}\n",
		minors);
	return plan_add_file(plan, &file);
}

int plan_procfs(const struct nvidia_plan *nvidia_plan)
{
	int r;

	r = nvidia_plan_params(nvidia_plan->plan);
	if (r == 0)
		r = procfs_hide_names(nvidia_plan, PATH_PROC_NVIDIA "/gpus", &nvidia_plan->seen->gpus,
				      procfs_has_address, NULL, "a GPU that was not selected");
	if (r == 0)
		r = procfs_hide_entries(nvidia_plan, PATH_PROC_NVIDIA "/capabilities", procfs_is_gpu, procfs_has_minor,
					NULL, "parts of a GPU that was not selected");
	for (size_t i = 0; i < nvidia_plan->selected_count && r == 0; i++)
		if (nvidia_plan->selected[i]->is_part)
			r = procfs_hide_other_parts(nvidia_plan, nvidia_plan->selected[i]);
	if (r == 0 && (nvidia_plan->capabilities & SCREEN) && nvidia_plan->selected_count > 0)
		r = procfs_add_application_profile(nvidia_plan);
	return r;
}
