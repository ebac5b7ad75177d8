/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The device, the directory of the host's loaders, and the driver store of each selected adapter, whole and at their
 * own paths: the loaders find the stores by the path that the driver reports, and which files of a store a program
 * needs changes with every driver. On WSL both directories are network file systems (9p) on which every path costs a
 * round trip to Windows, so a directory is opened once and its entries are taken as readdir(3) describes them.
 *
 * Some hosts have symlinks there that lead elsewhere (microsoft/WSL#5548 advises it). They would lead nowhere in a
 * container, so files of such a directory are mounted one by one, each from where it really is.
 */

#include "wsl/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "dxg/dxg.h"
#include "model/adapter.h"
#include "system/noexec.h"
#include "system/trusted_file.h"

/* ---- variables for user-mode drivers ---- */

/*
 * Facts: from Mesa 24.3 on, and up to 25.0 at least, software comes before d3d12 unless GALLIUM_DRIVER names that
 * (microsoft/wslg#1332; tried with Debian's 25.0 and 26.2). An image whose Mesa lacks d3d12 then has no OpenGL at all,
 * so only a container that asks for graphics gets it. libva derives a driver's name from the kernel's, vgem, which has
 * none. Mesa's d3d12 takes the adapter that says it is integrated, or else the first whose name contains the variable's
 * value (d3d12_dxcore_screen.cpp). ROCr asks /dev/dxg only if told to, before ROCm 7.13 (ROCm/librocdxg, README).
 * CUDA numbers devices by speed, unless CUDA_DEVICE_ORDER says by PCI address, as our indexes are.
 *
 * Left out on purpose: ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ZE_AFFINITY_MASK count in an order that the
 * vendors do not document for GPU-PV; a wrong number would hide the GPU that was chosen.
 */

struct choice {
	const struct adapter *const *adapters;
	size_t count;
	bool alone; /* no adapter of another backend is in the plan */
	bool named; /* variables are to name the chosen adapters */
};

/* ---- their values; NULL: the container is better off without ---- */

static const struct adapter *environment_first(const struct choice *choice, uint32_t vendor)
{
	for (size_t i = 0; i < choice->count; i++)
		if (!choice->adapters[i]->compute_only && (!vendor || choice->adapters[i]->vendor_id == vendor))
			return choice->adapters[i];
	return NULL;
}

static int environment_d3d12(const struct choice *choice, char **ret)
{
	return choice->alone && environment_first(choice, 0) ? str_format(ret, "d3d12") : 0;
}

/* If all GPUs are selected, Mesa may choose. */
static int environment_adapter_name(const struct choice *choice, char **ret)
{
	const struct adapter *adapter = environment_first(choice, 0);
	size_t gpus = 0;

	for (size_t i = 0; i < choice->count; i++)
		gpus += !choice->adapters[i]->is_npu;
	return choice->named && adapter && adapter->name && gpus < adapter->same_device_count
		       ? str_format(ret, "%s", adapter->name)
		       : 0;
}

static int environment_dxg_detection(const struct choice *choice, char **ret)
{
	return environment_first(choice, PCI_VENDOR_AMD) ? str_format(ret, "1") : 0;
}

static bool environment_is_some_of_nvidia(const struct choice *choice)
{
	size_t count = 0, same_vendor_count = 0;

	for (size_t i = 0; i < choice->count; i++) {
		if (choice->adapters[i]->vendor_id != PCI_VENDOR_NVIDIA)
			continue;
		same_vendor_count = choice->adapters[i]->same_vendor_count;
		count++;
	}
	return choice->named && count < same_vendor_count;
}

static int environment_cuda_order(const struct choice *choice, char **ret)
{
	return environment_is_some_of_nvidia(choice) ? str_format(ret, "PCI_BUS_ID") : 0;
}

/* NVIDIA's adapters have the first indexes of the host (adapter_sort()), so they are what CUDA counts, too. */
static int environment_cuda_devices(const struct choice *choice, char **ret)
{
	_cleanup_strv_ struct strv indexes = {0};
	int r = 0;

	if (!environment_is_some_of_nvidia(choice))
		return 0;
	for (size_t i = 0; i < choice->count && r == 0; i++) {
		char *index = NULL;

		if (choice->adapters[i]->vendor_id != PCI_VENDOR_NVIDIA)
			continue;
		r = str_format(&index, "%d", choice->adapters[i]->index);
		if (r == 0)
			r = strv_take(&indexes, index);
	}
	return r == 0 ? strv_join(&indexes, ",", ret) : r;
}

/* ---- their table ---- */

#define GRAPHICS (CAPABILITY_GRAPHICS | CAPABILITY_DISPLAY)

static const struct {
	const char *name;
	uint32_t capabilities; /* one of which the container asks for */
	int (*value)(const struct choice *choice, char **ret);
	bool combines;
	const char *unless, *reason;
} environment_table[] = {
	{"GALLIUM_DRIVER", GRAPHICS, environment_d3d12, true, NULL,
	 "some versions of Mesa render in software without it"},
	{"LIBVA_DRIVER_NAME", CAPABILITY_VIDEO, environment_d3d12, true, NULL,
	 "libva cannot tell the driver from the device"},
	{"MESA_D3D12_DEFAULT_ADAPTER_NAME", GRAPHICS | CAPABILITY_VIDEO, environment_adapter_name, true, NULL,
	 "Mesa takes the integrated GPU unless told another"},
	{"HSA_ENABLE_DXG_DETECTION", CAPABILITY_COMPUTE, environment_dxg_detection, true, NULL,
	 "ROCm before 7.13 looks for /dev/dxg only if told to"},
	{"CUDA_DEVICE_ORDER", CAPABILITY_COMPUTE, environment_cuda_order, false, "CUDA_VISIBLE_DEVICES",
	 "CUDA_VISIBLE_DEVICES counts by it"},
	{"CUDA_VISIBLE_DEVICES", CAPABILITY_COMPUTE, environment_cuda_devices, false, "CUDA_DEVICE_ORDER",
	 "CUDA shows every GPU of a driver, not only those chosen"},
};

int environment_plan(const struct request *request, const struct adapter *const *selected, size_t count,
		     struct plan *plan)
{
	/* With the guard CUDA counts the chosen ones alone, from 0. */
	const struct choice choice = {selected, count, plan->adapters.count <= count,
				      !plan->choice.grade || streq(plan->choice.grade, "environment")};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(environment_table) && r == 0; i++) {
		struct plan_env variable = {
			.combines = environment_table[i].combines,
			.unless = environment_table[i].unless,
		};

		if (!(request->capabilities & environment_table[i].capabilities))
			continue;
		r = environment_table[i].value(&choice, &variable.value);
		if (r < 0 || !variable.value)
			continue;
		variable.name = strdup(environment_table[i].name);
		variable.reason = strdup(environment_table[i].reason);
		r = plan_add_env(plan, &variable);
	}
	return r;
}

/* ---- the plan ---- */

enum { DRM_MAJOR = 226, VGEM_NODES_MAX = 16 };

enum { LINKS_MAX = 8 };

#define SMI_TARGET "/usr/bin/" DRIVER_STORE_SMI

static int wsl_plan_add_mount(struct plan *plan, const char *path, const char *target, const struct stat *st,
			      enum plan_mount_kind kind, const char *reason)
{
	struct plan_mount mount = {
		.source = strdup(path),
		.target = strdup(target),
		.directory = S_ISDIR(st->st_mode),
		.device = st->st_dev,
		.inode = st->st_ino,
		.kind = kind,
		.reason = reason ? strdup(reason) : NULL,
	};

	return plan_add_mount(plan, &mount);
}

static bool wsl_plan_is_entry(const char *path, const char *directory)
{
	return str_is_below(path, directory) && strrchr(path, '/') == path + strlen(directory);
}

/* Follows links from entry to entry of the directory. Return: what the last link points to, or @entry; for free(). */
static char *wsl_plan_follow_links(const char *entry, const char *directory)
{
	char *path = strdup(entry);

	for (int links = 0; path && links < LINKS_MAX && wsl_plan_is_entry(path, directory); links++) {
		_cleanup_free_ char *points_to = NULL;
		bool absolute;

		if (fd_read_link_at(AT_FDCWD, path, &points_to) < 0)
			return path;
		absolute = points_to[0] == '/';
		free(path);
		path = NULL;
		(void)str_format(&path, "%s%s%s", absolute ? "" : directory, absolute ? "" : "/", points_to);
	}
	return path;
}

/*
 * Where an entry of a driver's directory leads. Root made the symlinks in that directory, so root chose the places
 * outside it. A link at such a place must be root's, too: another user could lead it to any file of the host, which
 * would be mounted. @ret_st describes the file that was found, and no other file is mounted later.
 *
 * Return: 0; -ENOENT if it leads to no file; -EPERM, also where a path is not text; -ENOMEM.
 */
static int wsl_plan_find_file(const char *entry, const char *directory, char **ret, struct stat *ret_st)
{
	_cleanup_free_ char *path = wsl_plan_follow_links(entry, directory), *real = NULL;
	_cleanup_close_ int fd = -1, trusted = -1;
	char number[32];
	int r;

	if (!path)
		return -ENOMEM;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -ENOENT;
	(void)snprintf(number, sizeof(number), "/proc/self/fd/%d", fd);
	r = fd_read_link_at(AT_FDCWD, number, &real);
	if (r < 0 || fstat(fd, ret_st) < 0)
		return r == -ENOMEM ? r : -ENOENT;
	/* Paths of mounts are written into a container's config.json, and into plans. */
	if (!printable_is_all(entry) || !printable_is_all(real))
		return -EPERM;
	if (!streq(real, path)) {
		trusted = trusted_file_open(path, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_PATH);
		if (trusted < 0)
			return trusted == -ENOMEM ? trusted : -EPERM;
	}
	*ret = steal_ptr(real);
	return 0;
}

/* Return: 1 if it is in the plan; 0 if there is nothing to mount; -ENOMEM. */
static int wsl_plan_add_file(struct plan *plan, const char *directory, const char *name, const char *reason)
{
	_cleanup_free_ char *target = NULL, *real = NULL;
	struct stat st;
	int r;

	if (str_format(&target, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	r = wsl_plan_find_file(target, directory, &real, &st);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	/* A directory of its own has what belongs to it; one elsewhere may have anything. */
	if (!S_ISREG(st.st_mode) && !(S_ISDIR(st.st_mode) && streq(real, target)))
		return 0;
	r = wsl_plan_add_mount(plan, real, target, &st, PLAN_LIBRARY, reason);
	return r < 0 ? r : 1;
}

/* Leaves in @store only the libraries that are in the plan. */
static int wsl_plan_add_each(struct plan *plan, const char *directory, struct driver_store *store, const char *reason)
{
	_cleanup_strv_ struct strv names = {0}, libraries = steal_struct(&store->libraries), missing = {0};
	const struct dirent *entry;
	struct fd_entries entries;
	int r = lseek(store->fd, 0, SEEK_SET) < 0 ? -errno : 0;

	fd_entries_begin(&entries, store->fd);
	while (r == 0 && (entry = fd_entries_next(&entries)))
		if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
			r = strv_add(&names, entry->d_name);
	if (r == 0)
		r = -errno;
	strv_sort(&names);
	for (size_t i = 0; i < names.count && r == 0; i++) {
		r = wsl_plan_add_file(plan, directory, names.items[i], reason);
		if (r == 0)
			r = strv_add(&missing, names.items[i]);
		else if (r > 0)
			r = strv_contains(&libraries, names.items[i]) ? strv_add(&store->libraries, names.items[i]) : 0;
	}
	if (r < 0 || missing.count == 0)
		return r;
	return strv_format(&plan->warnings,
			   "%s/%s is left out%s: it leads to no file, over a link that others than root could make, or "
			   "has a name that is not text",
			   directory, missing.items[0], missing.count > 1 ? ", as others are" : "");
}

static int wsl_plan_add_directory(struct plan *plan, const char *path, struct driver_store *store, const char *reason)
{
	return store->has_outside_link ? wsl_plan_add_each(plan, path, store, reason)
				       : wsl_plan_add_mount(plan, path, path, &store->st, PLAN_LIBRARY, reason);
}

static int wsl_plan_add_libraries(struct plan *plan, const char *path, struct driver_store *store, bool overrides,
				  const char *reason)
{
	struct plan_library_dir directory = {
		.path = strdup(path),
		.overrides_image = overrides,
		.libraries = steal_struct(&store->libraries),
		.reason = strdup(reason),
	};

	return plan_add_library_dir(plan, &directory);
}

static bool wsl_plan_has_target(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->mount_count; i++)
		if (streq(plan->mounts[i].target, path))
			return true;
	return false;
}

/* nvidia-smi, where the shells of images look for it. An entry that is not a file is left out. */
static int wsl_plan_add_smi(struct plan *plan, const char *directory, const struct driver_store *store)
{
	_cleanup_free_ char *path = NULL, *real = NULL;
	struct stat st;
	int r;

	if (!store->has_smi || wsl_plan_has_target(plan, SMI_TARGET) ||
	    fstatat(store->fd, DRIVER_STORE_SMI, &st, 0) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (str_format(&path, "%s/" DRIVER_STORE_SMI, directory) < 0)
		return -ENOMEM;
	r = store->has_outside_link ? wsl_plan_find_file(path, directory, &real, &st) : 0;
	if (r < 0 || !S_ISREG(st.st_mode))
		return r == -ENOMEM ? r : 0;
	return wsl_plan_add_mount(plan, real ? real : path, SMI_TARGET, &st, PLAN_PROGRAM,
				  "the host's nvidia-smi, in the search path (capability utility)");
}

/* Whether programs of the request load the driver's libraries. */
static bool wsl_plan_is_loaded(const struct request *request, size_t count)
{
	return count > 0 && (request->capabilities & CAPABILITY_COMPUTE);
}

/*
 * What programs of the request load first, and without which none of them finds a GPU: any vendor's loads libdxcore,
 * and a CUDA program NVIDIA's loader besides. A driver that is half installed leaves them out, empty, or as links to
 * nothing.
 */
static int wsl_plan_check_loaders(const struct request *request, const struct adapter *const *selected, size_t count,
				  struct plan *plan, struct err *err)
{
	bool nvidia = false;

	if (!wsl_plan_is_loaded(request, count))
		return 0;
	for (size_t i = 0; i < count; i++)
		nvidia |= selected[i]->vendor_id == PCI_VENDOR_NVIDIA;
	return loaders_plan(nvidia, plan, err);
}

static int wsl_plan_add_lib(const struct request *request, const struct adapter *const *selected, size_t count,
			    struct plan *plan, struct err *err)
{
	_cleanup_listing_ struct driver_store store = {.fd = -1};
	int r;

	r = driver_store_read(PATH_WSL_LIB, &store);
	/* A container without a GPU can do without the driver; a host without adapters may lack it. */
	if (count == 0 && (r == -ENOENT || r == -ENOTDIR))
		return strv_add(&plan->warnings, PATH_WSL_LIB " is missing, so the container gets no driver");
	if (r == -ENOENT || r == -ENOTDIR)
		return err_advise(
			err,
			err_set_advised(err, CTR_GPU_E_DRIVER_LIBRARY,
					(PATH_WSL_LIB ", the directory of the host's driver libraries, is missing"),
					("WSL2: run wsl --update in Windows and keep gpuSupport on in .wslconfig.")),
			"Hyper-V: copy C:\\Windows\\System32\\lxss\\lib and libdxcore.so, libd3d12*.so of WSL to it.");
	if (r == 0)
		r = wsl_plan_add_directory(plan, PATH_WSL_LIB, &store,
					   "libraries of the host that find the driver stores");
	if (r < 0)
		return err_set_advised(err, r, ("cannot read " PATH_WSL_LIB ": %m"),
				       ("Check its permissions and that its mount still works."));
	r = wsl_plan_check_loaders(request, selected, count, plan, err);
	if (r == 0 && wsl_plan_is_loaded(request, count) && store.noexec)
		r = noexec_add(plan, PATH_WSL_LIB);
	if (r == 0 && (request->capabilities & CAPABILITY_UTILITY))
		r = wsl_plan_add_smi(plan, PATH_WSL_LIB, &store);
	if (r == 0 && store.libraries.count == 0)
		r = strv_add(&plan->warnings, PATH_WSL_LIB " holds no library, so programs will find no driver");
	if (r == 0)
		r = wsl_plan_add_libraries(plan, PATH_WSL_LIB, &store, true,
					   "programs must load these and not what an image brings of the same name");
	return r;
}

static int wsl_plan_describe_store(const struct adapter *adapter, char **ret)
{
	return str_format(ret, "driver store of %s", adapter->name ? adapter->name : adapter_vendor(adapter));
}

/* What was read when the adapters were looked at is not read again, unless each file of it counts. */
static int wsl_plan_list_store(const struct plan *plan, const struct adapter *adapter, bool wants_smi,
			       struct driver_store *ret)
{
	const struct adapter_store *store = &adapter->store;
	int r = 0;

	if (!store->is_read || store->has_outside_link)
		return driver_store_read(adapter->driver_store, ret);
	ret->st = (struct stat){.st_mode = S_IFDIR, .st_dev = store->device, .st_ino = store->inode};
	ret->noexec = store->noexec;
	ret->has_smi = wants_smi && store->has_smi && !wsl_plan_has_target(plan, SMI_TARGET);
	if (ret->has_smi)
		ret->fd = open(adapter->driver_store, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ret->has_smi && ret->fd < 0)
		return -errno;
	for (size_t i = 0; i < store->libraries.count && r == 0; i++)
		r = strv_add(&ret->libraries, store->libraries.items[i]);
	return r;
}

static int wsl_plan_add_store(const struct request *request, const struct adapter *adapter, struct plan *plan,
			      struct err *err)
{
	bool nvidia = adapter->vendor_id == PCI_VENDOR_NVIDIA;
	bool wants_smi = nvidia && (request->capabilities & CAPABILITY_UTILITY);
	_cleanup_listing_ struct driver_store listing = {.fd = -1};
	const char *store = adapter->driver_store;
	_cleanup_free_ char *reason = NULL;
	int r;

	r = wsl_plan_describe_store(adapter, &reason);
	if (r == 0)
		r = wsl_plan_list_store(plan, adapter, wants_smi, &listing);
	if (r == 0)
		r = wsl_plan_add_directory(plan, store, &listing, reason);
	if (r < 0)
		return err_set_advised(err, r, ("cannot read the driver store %s: %m", store),
				       ("Run wsl --shutdown in Windows, or copy the directory again."));
	if (listing.noexec && wsl_plan_is_loaded(request, 1))
		r = noexec_add(plan, store);
	if (r == 0 && wants_smi)
		r = wsl_plan_add_smi(plan, store, &listing);
	if (r < 0)
		return r;
	/* Intel's store has libLLVM and libopencl-clang; programs must keep getting the image's own. */
	return wsl_plan_add_libraries(plan, store, &listing, nvidia,
				      nvidia ? "every library in it belongs to the driver"
					     : "fills gaps: it brings libraries of others along");
}

static int wsl_plan_add_device(const struct adapter *adapter, struct plan *plan)
{
	struct plan_device device = {.access = "rw", .number = adapter->node, .path = strdup(PATH_DXG)};

	device.reason = strdup("the paravirtual GPU, through which every call to the host's driver goes");
	return plan_add_device(plan, &device);
}

/* libva finds d3d12 by the nodes of the module vgem, and programs share its pictures; no GPU is behind them. */
static int wsl_plan_add_vgem(struct plan *plan)
{
	_cleanup_strv_ struct strv names = {0};
	int r;

	r = fd_list_names(AT_FDCWD, "/sys/devices/platform/vgem/drm", adapter_is_dri_name, VGEM_NODES_MAX, &names);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; i < names.count && r == 0; i++) {
		struct plan_device device = {.access = "rw"};
		struct stat st;

		(void)str_format(&device.path, PATH_DRI "/%s", names.items[i]);
		if (device.path && (stat(device.path, &st) < 0 || !S_ISCHR(st.st_mode) ||
				    st.st_rdev != makedev(DRM_MAJOR, (unsigned)adapter_dri_minor(names.items[i])))) {
			free(device.path);
			continue;
		}
		device.number = device.path ? st.st_rdev : 0;
		device.reason = strdup("vgem, by which libva finds d3d12 (capability video)");
		r = plan_add_device(plan, &device);
	}
	return r;
}

/* A choice is held by what a container does not see; adapters of one driver are seen through one store. */
static int wsl_plan_warn(const struct adapter *const *selected, size_t count, struct plan *plan)
{
	if (!enforce_is_choice(selected, count) || plan->choice.luid_count > 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		size_t with_store = 0;
		char *text;

		for (size_t j = 0; j < count; j++)
			with_store += streq(selected[i]->driver_store, selected[j]->driver_store);
		if (with_store == selected[i]->store_sharing)
			continue;
		if (str_format(&text,
			       "adapters that were not selected work in the container, too: they have the driver store "
			       "of %s; CUDA_VISIBLE_DEVICES in the container narrows what programs use",
			       selected[i]->name ? selected[i]->name : adapter_vendor(selected[i])) < 0)
			return -ENOMEM;
		return strv_take(&plan->warnings, text);
	}
	return strv_add(&plan->warnings, "every adapter of the host can still be opened through " PATH_DXG
					 "; only the selected driver stores are visible");
}

/* A specification is for later starts, and the hook in it looks again. */
static int wsl_plan_warn_of_obstacles(const struct request *request, const struct adapter *const *selected,
				      size_t count, struct strv *ret)
{
	struct plan found = {0};
	struct err err = {0};
	int r = wsl_plan_check_loaders(request, selected, count, &found, &err);

	if (r == CTR_GPU_E_DRIVER_LIBRARY)
		r = strv_format(ret, "%s; the hook refuses such a container", err.text);
	if (r == 0 && wsl_plan_is_loaded(request, count))
		r = noexec_check(&found, PATH_WSL_LIB);
	for (size_t i = 0; i < found.obstacle_count && r == 0; i++)
		r = strv_format(ret, "%s; the hook refuses such a container%s%s", found.obstacles[i].reason,
				found.obstacles[i].library ? " if its image has no " : "",
				found.obstacles[i].library ? found.obstacles[i].library : "");
	plan_clear(&found);
	return r;
}

/*
 * Library directories stand in the order of precedence: the loaders of the host before what they load from the stores.
 */
int gpu_pv_plan(const struct settings *settings, void *seen, const struct request *request,
		const struct adapter *const *selected, size_t count, struct plan *plan, struct err *err)
{
	int r;

	(void)seen;
	/* A CDI specification has a hook, which makes a plan of its own. */
	r = request->nodes_only ? 0 : enforce_plan(settings, selected, count, plan, err);
	if (r == 0 && count > 0)
		r = wsl_plan_add_device(selected[0], plan);
	if (r == 0)
		r = environment_plan(request, selected, count, plan);
	if (r == 0 && count > 0 && (request->capabilities & CAPABILITY_VIDEO))
		r = wsl_plan_add_vgem(plan);
	if (request->nodes_only)
		return r == 0 ? wsl_plan_warn_of_obstacles(request, selected, count, &plan->warnings) : r;
	if (r == 0)
		r = wsl_plan_add_lib(request, selected, count, plan, err);
	for (size_t i = 0; i < count && r == 0; i++)
		if (!wsl_plan_has_target(plan, selected[i]->driver_store))
			r = wsl_plan_add_store(request, selected[i], plan, err);
	return r == 0 ? wsl_plan_warn(selected, count, plan) : r;
}
