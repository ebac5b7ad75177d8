/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The files of NVIDIA's driver on the host: which there are, what each is for, and where an installation has put them.
 */

#include "nvidia/internal.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "ldcache/ldcache.h"
#include "system/elf_file.h"

/* ---- what files are for ---- */

/* As rpm calls it. */
#if defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "x86_64"
#endif

#define COMPUTE CAPABILITY_COMPUTE
#define UTILITY CAPABILITY_UTILITY
#define VIDEO CAPABILITY_VIDEO
#define GRAPHICS CAPABILITY_GRAPHICS
#define DISPLAY CAPABILITY_DISPLAY
#define NGX CAPABILITY_NGX
#define SCREEN (GRAPHICS | DISPLAY)

/*
 * Libraries of the driver's version that are not in this table go to containers with COMPUTE, see
 * driver_files_is_wanted(). Columns: stem, number of the SONAME, capabilities, programs want the development name, own
 * version, meaning.
 */
const struct driver_library driver_libraries[] = {
	/* The video libraries load libcuda. */
	{"libcuda", "1", COMPUTE | VIDEO, true, false, "CUDA driver API"},
	{"libcudadebugger", "1", COMPUTE, false, false, "back end of cuda-gdb"},
	{"libnvidia-compiler", NULL, COMPUTE, false, false, "OpenCL compiler of older drivers"},
	{"libnvidia-fatbinaryloader", NULL, COMPUTE, false, false, "kernel loader of older drivers"},
	{"libnvidia-gpucomp", NULL, COMPUTE | SCREEN, false, false, "compiler for kernels and shaders"},
	{"libnvidia-nvvm", "4", COMPUTE, false, false, "compiler of NVVM programs"},
	{"libnvidia-opencl", "1", COMPUTE, false, false, "OpenCL"},
	{"libnvidia-pkcs11", NULL, COMPUTE, false, false, "attestation for confidential computing"},
	{"libnvidia-pkcs11-openssl3", NULL, COMPUTE, false, false, "attestation for confidential computing"},
	{"libnvidia-ptxjitcompiler", "1", COMPUTE, false, false, "compiler of PTX kernels"},
	{"libnvidia-allocator", "1", COMPUTE | SCREEN, false, false, "memory shared with displays; GBM"},

	{"libnvidia-ml", "1", UTILITY, true, false, "NVML, which nvidia-smi asks"},
	{"libnvidia-cfg", "1", UTILITY, false, false, "GPU configuration"},
	{"libnvidia-nscq", "2", UTILITY, false, false, "NVSwitch state"},
	{"libnvidia-sandboxutils", "1", UTILITY, false, false, "what a container needs, in NVIDIA's words"},
	{"libnvsdm", "1", UTILITY, false, false, "NVSwitch device monitoring"},

	{"libnvcuvid", "1", VIDEO, true, false, "video decoding (NVDEC)"},
	{"libnvidia-encode", "1", VIDEO, true, false, "video encoding (NVENC)"},
	{"libnvidia-opticalflow", "1", VIDEO, true, false, "optical flow"},
	{"libvdpau_nvidia", "1", VIDEO, false, false, "VDPAU"},

	{"libEGL_nvidia", "0", SCREEN, false, false, "EGL"},
	{"libGLX_nvidia", "0", SCREEN, false, false, "OpenGL for X, and Vulkan"},
	{"libGLESv1_CM_nvidia", "1", SCREEN, false, false, "OpenGL ES 1"},
	{"libGLESv2_nvidia", "2", SCREEN, false, false, "OpenGL ES 2"},
	{"libnvidia-api", "1", SCREEN, false, false, "NVAPI"},
	{"libnvidia-cbl", NULL, SCREEN, false, false, "Vulkan ray tracing"},
	{"libnvidia-egl-gbm", "1", SCREEN, false, true, "EGL on GBM"},
	{"libnvidia-egl-wayland", "1", SCREEN, false, true, "EGL on Wayland"},
	{"libnvidia-egl-wayland2", "1", SCREEN, false, true, "EGL on Wayland"},
	{"libnvidia-egl-xcb", "1", SCREEN, false, true, "EGL on X"},
	{"libnvidia-egl-xlib", "1", SCREEN, false, true, "EGL on X"},
	{"libnvidia-eglcore", NULL, SCREEN, false, false, "core of EGL"},
	{"libnvidia-fbc", "1", SCREEN, true, false, "frame buffer capture"},
	{"libnvidia-glcore", NULL, SCREEN, false, false, "core of OpenGL and Vulkan"},
	{"libnvidia-glsi", NULL, SCREEN, false, false, "shared by EGL and OpenGL"},
	{"libnvidia-glvkspirv", NULL, SCREEN, false, false, "SPIR-V compiler"},
	{"libnvidia-ifr", "1", SCREEN, true, false, "capture to a compressed stream"},
	{"libnvidia-rtcore", NULL, SCREEN, false, false, "ray tracing"},
	{"libnvidia-tls", NULL, SCREEN, false, false, "thread-local storage of OpenGL"},
	{"libnvidia-vksc-core", "1", SCREEN, false, false, "Vulkan SC"},
	{"libnvidia-wayland-client", NULL, DISPLAY, false, false, "Wayland for nvidia-settings"},
	{"libnvoptix", "1", SCREEN, false, false, "OptiX ray tracing"},

	{"libnvidia-ngx", "1", NGX | SCREEN, false, false, "NGX: DLSS and other neural features"},
};
const size_t driver_library_count = ARRAY_SIZE(driver_libraries);

const struct driver_library *driver_library_find(const char *stem, size_t length)
{
	if (length == 0 || length >= sizeof(driver_libraries[0].stem))
		return NULL;
	/* By its end first: nearly all begin with the same ten characters. */
	for (size_t i = 0; i < driver_library_count; i++) {
		const char *known = driver_libraries[i].stem;

		if (known[length - 1] == stem[length - 1] && known[length] == '\0' && memcmp(known, stem, length) == 0)
			return &driver_libraries[i];
	}
	return NULL;
}

const struct driver_program driver_programs[] = {
	{"nvidia-smi", UTILITY, "shows and manages GPUs"},
	{"nvidia-debugdump", UTILITY, "writes error reports"},
	{"nvidia-persistenced", UTILITY, "keeps GPUs initialised"},
	{"nv-fabricmanager", UTILITY, "manages NVSwitch fabrics"},
	{"nvidia-cuda-mps-control", COMPUTE, "controls the sharing of GPUs between processes"},
	{"nvidia-cuda-mps-server", COMPUTE, "shares GPUs between processes"},
};
const size_t driver_program_count = ARRAY_SIZE(driver_programs);

const struct driver_config driver_configs[] = {
	/* The OpenCL loader reads /etc/OpenCL/vendors and nothing else. */
	{"OpenCL/vendors/nvidia.icd", COMPUTE, "/etc", "tells the OpenCL loader of the driver",
	 "libnvidia-opencl.so.1"},
	{"egl/egl_external_platform.d/09_nvidia_wayland2.json", SCREEN, NULL, "EGL on Wayland",
	 "libnvidia-egl-wayland2.so.1"},
	{"egl/egl_external_platform.d/10_nvidia_wayland.json", SCREEN, NULL, "EGL on Wayland",
	 "libnvidia-egl-wayland.so.1"},
	{"egl/egl_external_platform.d/15_nvidia_gbm.json", SCREEN, NULL, "EGL on GBM", "libnvidia-egl-gbm.so.1"},
	{"egl/egl_external_platform.d/20_nvidia_xcb.json", SCREEN, NULL, "EGL on X", "libnvidia-egl-xcb.so.1"},
	{"egl/egl_external_platform.d/20_nvidia_xlib.json", SCREEN, NULL, "EGL on X", "libnvidia-egl-xlib.so.1"},
	{"glvnd/egl_vendor.d/10_nvidia.json", SCREEN, NULL, "tells GLVND of the driver's EGL", "libEGL_nvidia.so.0"},
	{"nvidia/nvoptix.bin", SCREEN, NULL, "data of OptiX", NULL},
	{"vulkan/icd.d/nvidia_icd.json", SCREEN, NULL, "tells the Vulkan loader of the driver", "libGLX_nvidia.so.0"},
	{"vulkan/icd.d/nvidia_icd." MACHINE ".json", SCREEN, NULL, "tells the Vulkan loader of the driver",
	 "libGLX_nvidia.so.0"},
	{"vulkan/implicit_layer.d/nvidia_layers.json", SCREEN, NULL, "Vulkan layers of the driver", NULL},
	{"vulkansc/icd.d/nvidia_icd_vksc.json", SCREEN, NULL, "tells the Vulkan SC loader of the driver", NULL},
	{"X11/xorg.conf.d/10-nvidia.conf", DISPLAY, NULL, "tells the X server of the driver", NULL},
	{"X11/xorg.conf.d/nvidia-drm-outputclass.conf", DISPLAY, NULL, "tells the X server of the driver", NULL},
};
const size_t driver_config_count = ARRAY_SIZE(driver_configs);

const struct driver_socket driver_sockets[] = {
	{"/run/nvidia-persistenced/socket", false, COMPUTE | UTILITY,
	 "nvidia-persistenced, which keeps GPUs initialised"},
	{"/run/nvidia-fabricmanager/socket", false, COMPUTE | UTILITY, "the fabric manager of NVSwitch machines"},
	{"/tmp/nvidia-mps", true, COMPUTE, "the daemon that shares GPUs between processes (MPS)"},
};
const size_t driver_socket_count = ARRAY_SIZE(driver_sockets);

/* ---- where files are ---- */

/* Libraries that lead to the driver's directories. */
static const char *const anchors[] = {
	"libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libGLX_nvidia.so.0", "libnvcuvid.so.1",
};

/* Debian spreads the driver over two directories: some libraries whose SONAME has the version in it lie apart. */
static const char *const versioned_anchors[] = {"libnvidia-tls.so.", "libnvidia-glcore.so."};

/* Where drivers are when no loader cache tells. */
static const char *const usual_dirs[] = {
#if defined(__aarch64__)
	"/usr/lib/aarch64-linux-gnu/nvidia/current",
	"/usr/lib/aarch64-linux-gnu",
#else
	"/usr/lib/x86_64-linux-gnu/nvidia/current",
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/i386-linux-gnu/nvidia/current",
	"/usr/lib/i386-linux-gnu",
	"/usr/lib32",
	"/run/opengl-driver-32/lib",
#endif
	"/usr/lib64",
	"/usr/lib64/nvidia",
	"/usr/lib",
	"/usr/local/nvidia/lib64",
	"/usr/local/nvidia/lib",
	"/opt/nvidia/lib64",
	"/run/opengl-driver/lib",
	"/home/kubernetes/bin/nvidia/lib64",
};

static void driver_files_drop_dirs(struct driver_files *files)
{
	for (size_t i = 0; i < files->dir_count; i++) {
		cleanup_closep(&files->dirs[i].fd);
		free(files->dirs[i].path);
		strv_clear(&files->dirs[i].names);
	}
	files->dir_count = 0;
}

static void driver_files_forget(struct driver_files_place *place)
{
	if (place->path)
		cleanup_closep(&place->fd);
	free(steal_ptr(place->path));
}

void driver_files_close(struct driver_files *files)
{
	driver_files_drop_dirs(files);
	for (size_t i = 0; i < DRIVER_FILES_SEARCHED_MAX; i++)
		driver_files_forget(&files->searched[i]);
	strv_clear(&files->places);
	free(files->other_version);
	free(files->root_path);
	rootfs_close(&files->root);
	files->root_path = NULL;
	files->other_version = NULL;
}

/* The path of an open file, without symlinks. */
static int driver_files_path(int fd, char **ret)
{
	_cleanup_free_ char *path = NULL;
	char link[32];
	int r;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	r = fd_read_link_at(AT_FDCWD, link, &path);
	if (r < 0)
		return r;
	if (path[0] != '/')
		return -EINVAL;
	*ret = steal_ptr(path);
	return 0;
}

/* A path with a symlink in it, most likely. */
static int driver_files_resolve(const struct driver_files *files, const char *path, struct driver_files_file *ret)
{
	_cleanup_close_ int fd = rootfs_open_path(&files->root, path, O_PATH);
	struct driver_files_file file;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &file.st) < 0)
		return -errno;
	r = driver_files_path(fd, &file.path);
	if (r == 0)
		*ret = file;
	return r;
}

int driver_files_find(const struct driver_files *files, const char *path, struct driver_files_file *ret)
{
	_cleanup_close_ int fd = rootfs_open_unlinked(&files->root, path, O_PATH);
	struct driver_files_file file;

	if (fd == -ELOOP)
		return driver_files_resolve(files, path, ret);
	if (fd < 0)
		return fd;
	if (fstat(fd, &file.st) < 0)
		return -errno;
	if (str_format(&file.path, "%s%s", files->root_path, path) < 0)
		return -ENOMEM;
	*ret = file;
	return 0;
}

/* What holds as long as a plan is made. Other failures may be over the next time: descriptors had run out, say. */
static bool driver_files_is_answer(int fd)
{
	return fd >= 0 || fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP;
}

static int driver_files_open_place(struct driver_files *files, const char *directory)
{
	struct driver_files_place *place;
	int fd;

	for (size_t i = 0; i < DRIVER_FILES_SEARCHED_MAX; i++)
		if (files->searched[i].path && streq(files->searched[i].path, directory))
			return files->searched[i].fd;
	place = &files->searched[files->next_searched++ % DRIVER_FILES_SEARCHED_MAX];
	driver_files_forget(place);
	fd = rootfs_open_unlinked(&files->root, *directory ? directory : "/", O_PATH | O_DIRECTORY);
	if (!driver_files_is_answer(fd))
		return fd;
	*place = (struct driver_files_place){.path = strdup(directory), .fd = fd};
	if (place->path)
		return fd;
	cleanup_closep(&fd);
	return -ENOMEM;
}

/* A name leads nowhere else: what is below the driver root is not followed out of it. */
int driver_files_find_in(struct driver_files *files, const char *directory, const char *name,
			 struct driver_files_file *ret)
{
	int place = strchr(name, '/') ? -ELOOP : driver_files_open_place(files, directory);
	_cleanup_free_ char *path = NULL;
	struct driver_files_file file;

	if (place < 0 && place != -ELOOP)
		return place;
	if (place >= 0 && fstatat(place, name, &file.st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (place < 0 || S_ISLNK(file.st.st_mode))
		return str_format(&path, "%s/%s", directory, name) < 0 ? -ENOMEM : driver_files_find(files, path, ret);
	if (str_format(&file.path, "%s%s/%s", files->root_path, directory, name) < 0)
		return -ENOMEM;
	*ret = file;
	return 0;
}

const char *driver_files_path_inside(const struct driver_files *files, const char *path)
{
	size_t length = strlen(files->root_path);

	return strncmp(path, files->root_path, length) == 0 && path[length] == '/' ? path + length : NULL;
}

/* Return: the length of <stem> if the name is <stem>.so.<driver version>, else 0. */
static size_t driver_files_stem_length(const struct driver_files *files, const char *name)
{
	size_t length = strlen(name), suffix = strlen(files->version) + strlen(".so.");
	const char *end;

	if (length <= suffix)
		return 0;
	end = name + length - suffix;
	return str_has_prefix(end, ".so.") && streq(end + strlen(".so."), files->version) ? length - suffix : 0;
}

/* ---- directories ---- */

/* Whether a library is of the machine's own ABI or of the 32-bit one beside it; -ENOEXEC for any other. */
static int driver_files_read_abi(int dir, const char *name, bool *ret_is_32)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	Elf64_Ehdr header; /* both classes begin alike up to e_version */

	if (fd < 0)
		return -errno;
	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
#if defined(__x86_64__)
	if (header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64) {
		*ret_is_32 = false;
		return 0;
	}
	if (header.e_ident[EI_CLASS] == ELFCLASS32 && header.e_machine == EM_386) {
		*ret_is_32 = true;
		return 0;
	}
#elif defined(__aarch64__)
	if (header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_AARCH64) {
		*ret_is_32 = false;
		return 0;
	}
#endif
	return -ENOEXEC;
}

/* Whether there is a directory whose path is the first @length characters. @inside: below the driver root */
static bool driver_files_has_dir(const struct driver_files *files, const char *path, size_t length, bool inside)
{
	for (size_t i = 0; i < files->dir_count; i++) {
		const char *known = files->dirs[i].path;

		if (inside)
			known = driver_files_path_inside(files, known);
		if (known && strncmp(known, path, length) == 0 && known[length] == '\0')
			return true;
	}
	return false;
}

/* What a container has of an earlier one, as after docker commit, are empty files and no libraries: their ABI tells. */
static bool driver_files_is_ours(const struct driver_files *files, const char *path, size_t length)
{
	static const char *const ours[] = {PATH_CONTAINER, LIBRARY_DIR_32};
	const char *inside = driver_files_path_inside(files, path);

	length -= inside ? (size_t)(inside - path) : 0;
	for (size_t i = 0; inside && i < ARRAY_SIZE(ours); i++)
		if (strlen(ours[i]) == length && strncmp(ours[i], inside, length) == 0)
			return true;
	return false;
}

/* For the message: a libcuda of another version than the kernel module's. Return: 0 or -ENOMEM. */
static int driver_files_note_other(struct driver_files *files, const char *name)
{
	const char *version = str_has_prefix(name, "libcuda.so.") ? name + strlen("libcuda.so.") : "";

	if (files->other_version || !proc_is_version(version) || streq(version, files->version))
		return 0;
	files->other_version = strdup(version);
	return files->other_version ? 0 : -ENOMEM;
}

/* The directory of a library of the driver: @path's first @length characters, and @name. Return: 0 or -ENOMEM. */
static int driver_files_take_dir(struct driver_files *files, const char *path, size_t length, const char *name,
				 bool is_ours)
{
	struct driver_files_dir dir = {.path = strndup(path, length), .is_ours = is_ours};

	if (!dir.path)
		return -ENOMEM;
	dir.fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir.fd >= 0 && driver_files_read_abi(dir.fd, name, &dir.is_32) == 0 && fstat(dir.fd, &dir.st) == 0) {
		files->is_new = true;
		files->dirs[files->dir_count++] = dir;
		return 0;
	}
	cleanup_closep(&dir.fd);
	free(dir.path);
	return 0;
}

/*
 * Where libraries of several drivers lie side by side, the loader's links lead to the newest: whether the module's own
 * is beside it. @directory: the first @length characters. Return: 0, with its name; -ENOENT; -ENOMEM.
 */
static int driver_files_find_beside(const struct driver_files *files, const char *directory, size_t length,
				    const char *name, char **ret)
{
	const char *end = strstr(name, ".so.");
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (!end)
		return -ENOENT;
	if (str_format(&path, "%.*s/%.*s.so.%s", (int)length, directory, (int)(end - name), name, files->version) < 0)
		return -ENOMEM;
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	*ret = strdup(path + length + 1);
	return *ret ? 0 : -ENOMEM;
}

/* Follows what has the name of a driver's library to its file, and takes its directory if the version is right. */
static int driver_files_consider(struct driver_files *files, const char *path)
{
	_cleanup_free_ char *real = NULL, *beside = NULL;
	struct driver_files_file file = {0};
	const char *name;
	size_t length;
	bool is_ours;
	int r;

	r = driver_files_resolve(files, path, &file);
	if (r != 0)
		return r == -ENOMEM ? r : 0;
	real = file.path;
	name = strrchr(real, '/') + 1;
	length = (size_t)(name - 1 - real);
	if (!S_ISREG(file.st.st_mode))
		return 0;
	is_ours = driver_files_is_ours(files, real, length);
	if (!is_ours && driver_files_stem_length(files, name) == 0) {
		r = driver_files_find_beside(files, real, length, name, &beside);
		if (r < 0)
			return r == -ENOMEM ? r : driver_files_note_other(files, name);
		name = beside;
	}
	if (driver_files_has_dir(files, real, length, false) || files->dir_count == DRIVER_FILES_DIRS_MAX)
		return 0;
	return driver_files_take_dir(files, real, length, name, is_ours);
}

/* What the loader cache has of the driver. */
struct visit {
	struct driver_files *install;
	struct strv later; /* paths of libraries whose names have the version in them */
	int r;
};

/* A machine has thousands of libraries. Nearly all differ from an anchor in what is behind "lib". */
static bool driver_files_begins_as(const char *name, const char *anchor)
{
	return name[3] == anchor[3] && name[4] == anchor[4];
}

static bool driver_files_is_anchor(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(anchors); i++)
		if (driver_files_begins_as(name, anchors[i]) && streq(anchors[i], name))
			return true;
	return false;
}

static bool driver_files_is_versioned_anchor(const struct driver_files *files, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(versioned_anchors); i++)
		if (driver_files_begins_as(name, versioned_anchors[i]) && str_has_prefix(name, versioned_anchors[i]))
			return streq(name + strlen(versioned_anchors[i]), files->version);
	return false;
}

/* The link at @path may lead elsewhere one day; that changes the directory it is in. */
static int driver_files_note_place(struct driver_files *files, const char *path, size_t length)
{
	_cleanup_free_ char *place = strndup(path, length);

	if (!place)
		return -ENOMEM;
	return strv_contains(&files->places, place) ? 0 : strv_add(&files->places, place);
}

static int driver_files_follow(struct driver_files *files, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (path[0] != '/' || slash == path || driver_files_has_dir(files, path, (size_t)(slash - path), true))
		return 0;
	return driver_files_note_place(files, path, (size_t)(slash - path)) < 0 ? -ENOMEM
										: driver_files_consider(files, path);
}

static void driver_files_visit_entry(void *user, const char *name, const char *path)
{
	struct visit *visit = user;

	if (visit->r != 0 || strncmp(name, "lib", 3) != 0 || !name[3])
		return;
	if (driver_files_is_anchor(name))
		visit->r = driver_files_follow(visit->install, path);
	else if (driver_files_is_versioned_anchor(visit->install, name))
		visit->r = strv_add(&visit->later, path);
}

static int driver_files_search_cache(struct driver_files *files)
{
	struct visit visit = {.install = files};
	_cleanup_free_ char *data = NULL;
	_cleanup_close_ int fd = -1;
	size_t size;
	int r;

	fd = rootfs_open_path(&files->root, "/etc/ld.so.cache", O_RDONLY | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return 0;
	files->has_cache = fstat(fd, &files->cache) == 0;
	r = fd_read_all(fd, LDCACHE_MAX_SIZE, &data, &size);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	ldcache_each(&(struct span){(const unsigned char *)data, size}, driver_files_visit_entry, &visit);
	/* Last, since of a directory that is known the links to another one are not looked at any more. */
	for (size_t i = 0; i < visit.later.count && visit.r == 0; i++)
		visit.r = driver_files_follow(files, visit.later.items[i]);
	strv_clear(&visit.later);
	return visit.r;
}

static int driver_files_search_usual(struct driver_files *files)
{
	int r = 0;

	files->has_cache = false;
	for (size_t i = 0; i < ARRAY_SIZE(usual_dirs) && r == 0; i++) {
		for (size_t j = 0; j < ARRAY_SIZE(anchors) + ARRAY_SIZE(versioned_anchors) && r == 0; j++) {
			bool versioned = j >= ARRAY_SIZE(anchors);
			_cleanup_free_ char *path = NULL;

			r = str_format(&path, "%s/%s%s", usual_dirs[i],
				       versioned ? versioned_anchors[j - ARRAY_SIZE(anchors)] : anchors[j],
				       versioned ? files->version : "");
			if (r == 0)
				r = driver_files_consider(files, path);
		}
	}
	return r;
}

static bool driver_files_has_abi(const struct driver_files *files, bool is_32)
{
	for (size_t i = 0; i < files->dir_count; i++)
		if (files->dirs[i].is_32 == is_32)
			return true;
	return false;
}

static int driver_files_explain_missing(const struct driver_files *files, const char *root, struct err *err)
{
	if (files->other_version)
		return err_set_advised(
			err, CTR_GPU_E_DRIVER_LIBRARY,
			("the driver was updated halfway: kernel module %s, libraries %s", files->version,
			 files->other_version),
			("Restart the machine, or stop what uses the GPUs and reload the module: rmmod nvidia-uvm "
			 "nvidia; modprobe nvidia"));
	return err_set_advised(
		err, CTR_GPU_E_DRIVER_LIBRARY,
		("NVIDIA's kernel module is loaded (%s), and no libraries of that version are below %s", files->version,
		 root),
		("Install the driver's libraries, or say where they are: \"driver-root\" in the configuration, "
		 "--root."));
}

/* ---- what an earlier start found ---- */

/* Return: 1 if the place is what it was; 0; -ENOMEM. */
static int driver_files_cache_get_directory(struct driver_files *files, const struct cached_directory *known)
{
	const char *inside = driver_files_path_inside(files, known->path);
	struct stat st;

	if (!inside || stat(known->path, &st) < 0 || !nvidia_cache_is_fingerprint(known->stamp, &st))
		return 0;
	return strv_add(&files->places, inside) < 0 ? -ENOMEM : 1;
}

static int driver_files_cache_get_dir(struct driver_files *files, const struct nvidia_cache_libraries *known)
{
	struct driver_files_dir *dir = &files->dirs[files->dir_count++];
	int r = 0;

	*dir = (struct driver_files_dir){
		.fd = open(known->place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.path = strdup(known->place.path),
		.is_32 = known->is_32,
		.is_listed = known->is_listed,
	};
	if (!dir->path)
		return -ENOMEM;
	if (!driver_files_path_inside(files, dir->path) || dir->fd < 0 || fstat(dir->fd, &dir->st) < 0 ||
	    !nvidia_cache_is_fingerprint(known->place.stamp, &dir->st))
		return 0;
	for (size_t i = 0; i < known->names.count && r == 0; i++)
		if (driver_files_stem_length(files, known->names.items[i]) > 0)
			r = strv_add(&dir->names, known->names.items[i]);
	return r < 0 ? r : 1;
}

/* Return: 1 if all is as it was; 0 if it must be looked for; -ENOMEM. */
static int driver_files_cache_get(struct driver_files *files, const struct nvidia_cache_driver *known)
{
	int r = 1;

	if (!known->version || !streq(known->version, files->version) || !streq(known->root, files->root_path) ||
	    fstatat(files->root.fd, "etc/ld.so.cache", &files->cache, 0) < 0 ||
	    !nvidia_cache_is_fingerprint(known->cache, &files->cache))
		return 0;
	for (size_t i = 0; i < known->place_count && r == 1; i++)
		r = driver_files_cache_get_directory(files, &known->places[i]);
	for (size_t i = 0; i < known->dir_count && r == 1; i++)
		r = driver_files_cache_get_dir(files, &known->dirs[i]);
	files->has_cache = r == 1;
	if (r == 1)
		return 1;
	driver_files_drop_dirs(files);
	strv_clear(&files->places);
	return r;
}

/* A line of a file has no room for some names. Return: 0; -ESTALE if it cannot be kept; -ENOMEM. */
static int driver_files_cache_put_directory(const struct driver_files *files, const char *path, const struct stat *st,
					    struct cached_directory *ret)
{
	int r = nvidia_cache_is_settled(st, files->since) && !strchr(path, '\n')
			? nvidia_cache_fingerprint(st, &ret->stamp)
			: -ESTALE;

	if (r < 0)
		return r;
	ret->path = strdup(path);
	return ret->path ? 0 : -ENOMEM;
}

static int driver_files_cache_put_dir(const struct driver_files *files, const struct driver_files_dir *dir,
				      struct nvidia_cache_driver *driver)
{
	struct nvidia_cache_libraries *known = &driver->dirs[driver->dir_count++];
	int r = dir->is_ours ? -ESTALE : driver_files_cache_put_directory(files, dir->path, &dir->st, &known->place);

	known->is_32 = dir->is_32;
	known->is_listed = dir->is_listed;
	for (size_t i = 0; i < dir->names.count && r == 0; i++)
		r = strchr(dir->names.items[i], '\n') ? -ESTALE : strv_add(&known->names, dir->names.items[i]);
	return r;
}

/* Where the loader cache has links to the driver, apart from the driver's own directories. */
static int driver_files_cache_put_link_directory(const struct driver_files *files, const char *path,
						 struct nvidia_cache_driver *driver)
{
	_cleanup_free_ char *real = NULL;
	struct driver_files_file file;
	int r = driver->place_count < NVIDIA_CACHE_PLACES_MAX ? driver_files_find(files, path, &file) : -ESTALE;

	if (r < 0)
		return r == -ENOMEM ? r : -ESTALE;
	real = file.path;
	if (driver_files_has_dir(files, real, strlen(real), false))
		return 0;
	return driver_files_cache_put_directory(files, real, &file.st, &driver->places[driver->place_count++]);
}

static int driver_files_describe(const struct driver_files *files, struct nvidia_cache_driver *driver)
{
	bool settled = files->has_cache && nvidia_cache_is_settled(&files->cache, files->since);
	int r = settled && !strchr(files->root_path, '\n') ? 0 : -ESTALE;

	if (r == 0)
		r = nvidia_cache_fingerprint(&files->cache, &driver->cache);
	driver->version = strdup(files->version);
	driver->root = strdup(files->root_path);
	if (!driver->version || !driver->root)
		return -ENOMEM;
	for (size_t i = 0; i < files->places.count && r == 0; i++)
		r = driver_files_cache_put_link_directory(files, files->places.items[i], driver);
	for (size_t i = 0; i < files->dir_count && r == 0; i++)
		r = driver_files_cache_put_dir(files, &files->dirs[i], driver);
	return r;
}

int driver_files_cache_put(const struct driver_files *files, struct nvidia_cache *cache)
{
	struct nvidia_cache_driver driver = {0};
	int r = files->is_new ? driver_files_describe(files, &driver) : -ESTALE;

	if (r < 0) {
		nvidia_cache_drop_driver(&driver);
		return r == -ENOMEM ? r : 0;
	}
	nvidia_cache_drop_driver(&cache->driver);
	cache->driver = driver;
	cache->is_new = true;
	return 0;
}

int driver_files_open(const struct settings *settings, const char *version, const struct nvidia_cache *cache,
		      struct driver_files *ret, struct err *err)
{
	_cleanup_install_ struct driver_files files = {.version = version, .root = ROOTFS_CLOSED, .since = time(NULL)};
	const char *root = settings->driver_root ? settings->driver_root : "/";
	int r;

	r = rootfs_open(AT_FDCWD, root, &files.root);
	if (r < 0)
		return err_set_advised(err, r, ("cannot open the driver root %s: %m", root),
				       ("Check \"driver-root\" in the configuration, and --root."));
	r = driver_files_path(files.root.fd, &files.root_path);
	if (r == 0 && streq(files.root_path, "/"))
		files.root_path[0] = '\0';
	if (r == 0 && cache)
		r = driver_files_cache_get(&files, &cache->driver);
	if (r == 0)
		r = driver_files_search_cache(&files);
	if (r == 1)
		r = 0;
	if (r == 0 && !driver_files_has_abi(&files, false))
		r = driver_files_search_usual(&files);
	if (r < 0)
		return err_set(err, r, "cannot look for the driver's libraries: %m");
	if (driver_files_has_abi(&files, false)) {
		*ret = files;
		files = (struct driver_files){.root = ROOTFS_CLOSED};
		return 0;
	}
	return driver_files_explain_missing(&files, root, err);
}

/* ---- libraries ---- */

/*
 * A name that ends in the driver's version decides, together with the table, and only libraries that the table does not
 * know are opened, for their SONAME.
 */

static void driver_files_clear_library(struct driver_files_library *library)
{
	free(library->path);
	free(library->soname);
}

void driver_files_libraries_clear(struct driver_files_libraries *libraries)
{
	for (size_t i = 0; i < libraries->count; i++)
		driver_files_clear_library(&libraries->items[i]);
	free(libraries->items);
	*libraries = (struct driver_files_libraries){0};
}

/* The file itself: in a driver root a symlink may lead anywhere, so it is followed inside the root. */
static int driver_files_locate_library(const struct driver_files *files, const struct driver_files_dir *dir,
				       const char *name, struct driver_files_library *library)
{
	_cleanup_free_ char *path = NULL;
	struct driver_files_file file;
	const char *inside;
	int r;

	if (str_format(&path, "%s/%s", dir->path, name) < 0)
		return -ENOMEM;
	if (fstatat(dir->fd, name, &library->st, AT_SYMLINK_NOFOLLOW) < 0)
		return -ENOENT;
	if (S_ISREG(library->st.st_mode)) {
		library->path = steal_ptr(path);
		return 0;
	}
	inside = driver_files_path_inside(files, path);
	r = inside ? driver_files_find(files, inside, &file) : -ENOENT;
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	library->path = file.path;
	library->st = file.st;
	return S_ISREG(file.st.st_mode) ? 0 : -ENOENT;
}

/* What is not a library with a usable SONAME is left out. */
static int driver_files_append_library(const struct driver_files *files, const struct driver_files_dir *dir,
				       const char *name, const struct driver_library *known,
				       struct driver_files_libraries *libraries)
{
	struct driver_files_library library = {.known = known, .is_32 = dir->is_32}, *items = NULL;
	int r = driver_files_locate_library(files, dir, name, &library);

	if (r == 0 && known && known->soversion) {
		r = str_format(&library.soname, "%s.so.%s", known->stem, known->soversion);
	} else if (r == 0 && known) {
		library.soname = strdup(name);
	} else if (r == 0) {
		_cleanup_close_ int fd = open(library.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

		r = fd < 0 ? -ENOENT : elf_file_read_soname(fd, &library.soname);
		if (r == 0 && !str_has_prefix(library.soname, "lib"))
			r = -ENOENT;
	}
	/* They are written into a container's config.json, and into plans. */
	if (r == 0 && library.soname && (!printable_is_all(library.path) || !printable_is_all(library.soname)))
		r = -ENOENT;
	if (r == 0 && library.soname)
		items = array_grow(libraries->items, libraries->count, sizeof(*items));
	if (!items) {
		driver_files_clear_library(&library);
		return r == 0 || r == -ENOMEM ? -ENOMEM : 0;
	}
	libraries->items = items;
	items[libraries->count++] = library;
	return 0;
}

static bool driver_files_is_wanted(const struct driver_library *library, uint32_t capabilities)
{
	return (library ? library->capabilities : CAPABILITY_COMPUTE) & capabilities;
}

/* The length of a library's stem; 0 for other files. docker commit leaves an empty file where a library was mounted. */
static size_t driver_files_dir_stem_length(const struct driver_files *files, const struct driver_files_dir *dir,
					   const char *name)
{
	const char *end;
	struct stat st;

	if (!dir->is_ours)
		return driver_files_stem_length(files, name);
	end = strstr(name, ".so.");
	if (!end || fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	return (size_t)(end - name);
}

static int driver_files_list_dir(struct driver_files *files, struct driver_files_dir *dir)
{
	const struct dirent *entry;
	struct fd_entries entries;
	int r = 0;

	if (dir->is_listed)
		return 0;
	fd_entries_begin(&entries, dir->fd);
	while (r == 0 && dir->names.count < NVIDIA_CACHE_NAMES_MAX && (entry = fd_entries_next(&entries)))
		if (driver_files_dir_stem_length(files, dir, entry->d_name) > 0)
			r = strv_add(&dir->names, entry->d_name);
	/* Part of a list would be believed until the directory changes. */
	if (r == 0 && dir->names.count < NVIDIA_CACHE_NAMES_MAX)
		r = -errno;
	if (r < 0) {
		strv_clear(&dir->names);
		return r;
	}
	strv_sort(&dir->names);
	dir->is_listed = files->is_new = true;
	return 0;
}

static int driver_files_add_versioned(struct driver_files *files, struct driver_files_dir *dir, uint32_t capabilities,
				      struct driver_files_libraries *libraries)
{
	int r = driver_files_list_dir(files, dir);

	for (size_t i = 0; i < dir->names.count && r == 0; i++) {
		const char *name = dir->names.items[i];
		size_t stem = driver_files_dir_stem_length(files, dir, name);
		const struct driver_library *library = driver_library_find(name, stem);

		if (driver_files_is_wanted(library, capabilities))
			r = driver_files_append_library(files, dir, name, library, libraries);
	}
	return r;
}

int driver_files_libraries(struct driver_files *files, uint32_t capabilities, struct driver_files_libraries *ret)
{
	_cleanup_libraries_ struct driver_files_libraries libraries = {0};
	int r = 0;

	for (size_t i = 0; i < files->dir_count && r == 0; i++) {
		struct driver_files_dir *dir = &files->dirs[i];

		if (dir->is_32 && !(capabilities & CAPABILITY_COMPAT32))
			continue;
		r = driver_files_add_versioned(files, dir, capabilities, &libraries);
		for (size_t j = 0; j < driver_library_count && r == 0; j++) {
			const struct driver_library *library = &driver_libraries[j];
			_cleanup_free_ char *name = NULL;

			if (!library->own_version || !driver_files_is_wanted(library, capabilities))
				continue;
			if (str_format(&name, "%s.so.%s", library->stem, library->soversion) < 0)
				return -ENOMEM;
			r = driver_files_append_library(files, dir, name, library, &libraries);
		}
	}
	if (r < 0)
		return r;
	*ret = steal_struct(&libraries);
	return 0;
}
