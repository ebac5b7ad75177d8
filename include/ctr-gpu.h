/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ctr-gpu: the GPUs of a Linux host, for its containers.
 *
 * The work has three steps. A *request* says what a container asks for, a *host* describes the GPUs and drivers. From
 * both the library makes a *plan*, plain data that can be printed. Applying the plan is the only step that changes
 * anything.
 *
 *	struct ctr_gpu_context *context;
 *	struct ctr_gpu_request *request;
 *	struct ctr_gpu_host *host;
 *	struct ctr_gpu_plan *plan;
 *
 *	ctr_gpu_context_new(&context);
 *	ctr_gpu_request_new(context, &request);
 *	ctr_gpu_request_set_devices(request, "all");
 *	ctr_gpu_host_new(context, &host);
 *	ctr_gpu_plan_new(context, request, host, &plan);
 *	ctr_gpu_plan_write(plan, CTR_GPU_FORMAT_JSON, stdout);
 *
 * Results: 0; a negative errno; or one of the positive CTR_GPU_E_* that the function's comment names. After the latter
 * two ctr_gpu_context_message() returns the message for the user. Outputs (ret_*) are written on success only. Nothing
 * is printed.
 *
 * Objects belong to the thread that uses them; different threads may use different contexts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <ctr-gpu-error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library exports these functions alone. */
#pragma GCC visibility push(default)

struct ctr_gpu_context;
struct ctr_gpu_host;
struct ctr_gpu_request;
struct ctr_gpu_plan;
struct ctr_gpu_container;
struct ctr_gpu_bundle;
struct ctr_gpu_cdi_report;

/* ---- context: settings, the last error, the log callback ---- */

enum ctr_gpu_log_level {
	CTR_GPU_LOG_WARNING = 0, /* the work goes on, but a user should know */
	CTR_GPU_LOG_DEBUG = 1,   /* every step and decision */
};

typedef void (*ctr_gpu_log_fn)(void *user, enum ctr_gpu_log_level level, const char *text);

/** Which source describes the adapters of a GPU-PV host. */
enum ctr_gpu_inventory {
	CTR_GPU_INVENTORY_AUTO = 0,   /* /dev/dxg; libdxcore if that fails or has no usable adapter */
	CTR_GPU_INVENTORY_DXCORE = 1, /* only libdxcore */
	CTR_GPU_INVENTORY_IOCTL = 2,  /* only /dev/dxg */
};

enum ctr_gpu_format {
	CTR_GPU_FORMAT_TEXT = 0,
	CTR_GPU_FORMAT_JSON = 1,
	CTR_GPU_FORMAT_CSV = 2,   /* ctr_gpu_host_write() only */
	CTR_GPU_FORMAT_PATHS = 3, /* ctr_gpu_plan_write() only: one path of the host per line */
};

/**
 * ctr_gpu_version() - the version of the library
 *
 * Return: "major.minor.patch"; static.
 * Since: 0.1
 */
const char *ctr_gpu_version(void);

/**
 * ctr_gpu_error_name() - the stable name of a result
 * @result: what a function returned
 *
 * Return: "E_NO_ADAPTER" for CTR_GPU_E_NO_ADAPTER, "EACCES" for -EACCES; static, never NULL.
 * Since: 0.1
 */
const char *ctr_gpu_error_name(int result);

/**
 * ctr_gpu_context_new() - a context with the default settings
 * @ret_context: new context, owned by the caller, release with ctr_gpu_context_unref()
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_context_new(struct ctr_gpu_context **ret_context);

/**
 * ctr_gpu_context_unref() - release a context
 * @context: may be NULL; release the objects made with it first
 *
 * Return: NULL.
 * Since: 0.1
 */
struct ctr_gpu_context *ctr_gpu_context_unref(struct ctr_gpu_context *context);

/**
 * ctr_gpu_context_message() - the message of the last result other than 0
 * @context: borrowed
 *
 * Return: what went wrong, where, and the next thing to try, in one to three lines without a final newline; valid until
 * the next call with this context.
 * Since: 0.1
 */
const char *ctr_gpu_context_message(const struct ctr_gpu_context *context);

/**
 * ctr_gpu_context_set_log() - set the log callback; without one, messages are discarded
 * @log:  called with one line without a newline; NULL for none
 * @user: passed to @log
 *
 * Since: 0.1
 */
void ctr_gpu_context_set_log(struct ctr_gpu_context *context, ctr_gpu_log_fn log, void *user);

/**
 * ctr_gpu_run_in_child() - do work that may never end in a child process that can be left behind
 * @context:    has the setting "deadline"; borrowed
 * @work:       called in the child with @context as it is now; its result, 0 to 255, is the child's exit status
 * @user:       passed to @work
 * @ret_status: the result of @work; anything but 0 undoes the changes. NULL: the program ends with it, by exit(3)
 *
 * If a file system does not answer, a process can wait in the kernel and not handle signals. So a program with a
 * deadline calls functions that read the host or a container only in @work: ctr_gpu_host_new(), ctr_gpu_plan_new(),
 * ctr_gpu_plan_apply(), ctr_gpu_plan_apply_to_bundle(), ctr_gpu_cdi_run_hook(). A child that does not finish in time is
 * killed, and its changes to a container are undone. SIGTERM, SIGINT, SIGHUP and SIGQUIT do the same at once.
 *
 * The child has a copy of the memory, and shares the caller's descriptors: what it closes is closed in both. It ends
 * with _exit(2); what atexit(3) was told is done by the parent alone. The program must have a single thread.
 *
 * Return: 0; -ETIMEDOUT; -EINTR after a signal; -ECHILD if another process killed the child; negative errno. After
 * -ETIMEDOUT and -EINTR a child may be left, with the caller's descriptors, until its file system answers.
 * Since: 0.1
 */
int ctr_gpu_run_in_child(struct ctr_gpu_context *context, int (*work)(void *user), void *user, int *ret_status);

/**
 * ctr_gpu_context_load_config() - take settings from a configuration file
 * @path: file; NULL for /etc/ctr-gpu/config.json, which need not exist
 *
 * The file and its directory must belong to root or to the caller and must not be writable for others.
 *
 * Return: 0; CTR_GPU_E_BAD_CONFIG; negative errno.
 * Since: 0.1
 */
int ctr_gpu_context_load_config(struct ctr_gpu_context *context, const char *path);

/**
 * ctr_gpu_context_log() - the setting "log", the target of the hooks' log
 *
 * Return: an absolute path; "journal" for the system's log; NULL if it is not set; valid until the settings change.
 * Since: 0.1
 */
const char *ctr_gpu_context_log(const struct ctr_gpu_context *context);

/**
 * ctr_gpu_context_runtime() - the OCI runtimes among which ctr-gpu-runtime chooses
 * @number: from 0; use the first that is installed
 *
 * If the configuration file could not be read, these are the built-in ones.
 *
 * Return: a name or an absolute path, valid until the settings change; NULL after the last.
 * Since: 0.1
 */
const char *ctr_gpu_context_runtime(const struct ctr_gpu_context *context, size_t number);

/**
 * ctr_gpu_context_set_inventory() - force a source of the inventory
 *
 * Since: 0.1
 */
void ctr_gpu_context_set_inventory(struct ctr_gpu_context *context, enum ctr_gpu_inventory inventory);

/**
 * ctr_gpu_context_set_driver_timeout() - set the longest time for an answer of a vendor's library
 * @milliseconds: 10,000 unless set; 0 changes nothing; more than an hour is an hour
 *
 * Since: 0.1
 */
void ctr_gpu_context_set_driver_timeout(struct ctr_gpu_context *context, unsigned milliseconds);

/**
 * ctr_gpu_context_set_driver_root() - set the directory below which a native driver is installed
 * @directory: absolute, such as /run/nvidia/driver; "/" unless set
 *
 * Device nodes and /proc are always this machine's.
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT if it is not absolute; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_context_set_driver_root(struct ctr_gpu_context *context, const char *directory);

/* ---- host: its adapters ---- */

/**
 * ctr_gpu_host_new() - find the adapters of the host
 * @context:  borrowed; must outlive the host
 * @ret_host: new host, owned by the caller, release with ctr_gpu_host_unref()
 *
 * Adapters that cannot be used are part of the host, with the reason. It succeeds also if none can be used.
 *
 * Return: 0; CTR_GPU_E_NO_DEVICE if the machine has no GPU device; CTR_GPU_E_NO_ADAPTER if a device exists, but its
 * kernel module is not loaded; CTR_GPU_E_DRIVER_LIBRARY or CTR_GPU_E_DRIVER_TIMEOUT if libdxcore was forced and failed;
 * negative errno.
 * Since: 0.1
 */
int ctr_gpu_host_new(struct ctr_gpu_context *context, struct ctr_gpu_host **ret_host);

/**
 * ctr_gpu_host_unref() - release a host
 * @host: may be NULL
 *
 * Return: NULL.
 * Since: 0.1
 */
struct ctr_gpu_host *ctr_gpu_host_unref(struct ctr_gpu_host *host);

/**
 * ctr_gpu_host_adapter_count() - the number of adapters, usable or not
 *
 * Since: 0.1
 */
size_t ctr_gpu_host_adapter_count(const struct ctr_gpu_host *host);

/**
 * struct ctr_gpu_adapter - the description of an adapter
 *
 * Strings live as long as the host; unknown values are NULL or 0.
 *
 * Since: 0.1
 */
struct ctr_gpu_adapter {
	int index;                     /* selects a GPU; -1 for one that cannot be used, an NPU or a part (MIG) */
	int npu;                       /* selects an NPU, as "npu:0"; -1 for other adapters */
	const char *backend;           /* "gpu-pv", "nvidia" or "drm" */
	const char *name;              /* the driver's */
	const char *vendor;            /* "NVIDIA", "AMD", "Intel", … */
	uint32_t vendor_id, device_id; /* PCI */
	const char *pci_address;       /* on the machine that owns it, "0000:01:00.0" */
	const char *uuid;              /* on GPU-PV after ctr_gpu_host_identify() */
	uint64_t luid;                 /* GPU-PV; high part in the upper half */
	unsigned wddm_version;         /* 2700 is 2.7 */
	const char *driver_store;
	int unusable;       /* CTR_GPU_E_*; 0 if it can be used */
	const char *reason; /* why not */
};

/**
 * ctr_gpu_host_adapter() - describe an adapter
 * @number: position, from 0 to ctr_gpu_host_adapter_count() - 1. Usable GPUs come first: their position is their index
 *
 * Return: 0 or -ERANGE.
 * Since: 0.1
 */
int ctr_gpu_host_adapter(const struct ctr_gpu_host *host, size_t number, struct ctr_gpu_adapter *ret_adapter);

/**
 * ctr_gpu_host_identify() - ask NVIDIA's NVML for the UUIDs that nothing else knows
 *
 * These are the UUIDs of GPUs on GPU-PV, and of parts of GPUs (MIG), which only ctr_gpu_host_write() shows. NVML is
 * loaded in a process of its own. If root asks, the answer for GPU-PV is kept in /run/ctr-gpu until the next boot. Call
 * this to show UUIDs; ctr_gpu_plan_new() does so by itself if a request has one.
 *
 * Return: 0; CTR_GPU_E_DRIVER_LIBRARY, CTR_GPU_E_DRIVER_TIMEOUT or negative errno if a driver cannot be asked. Its
 * UUIDs stay unknown then.
 * Since: 0.1
 */
int ctr_gpu_host_identify(struct ctr_gpu_context *context, struct ctr_gpu_host *host);

/**
 * struct ctr_gpu_driver - the driver of an adapter, with which requirements are compared
 *
 * Unknown values are NULL or 0.
 *
 * Since: 0.1
 */
struct ctr_gpu_driver {
	int minor; /* of /dev/nvidia<minor>, /dev/dri/renderD<minor> or /dev/accel/accel<minor>; -1 if it has none */
	char *version; /* "580.95.05" */
	int cuda_major, cuda_minor;
	char *architecture; /* the GPU's compute capability, "9.0" */
	char *brand;        /* as NVIDIA_REQUIRE_* names it: "tesla", "geforce", … */
};

/**
 * ctr_gpu_host_driver() - describe the driver of an adapter
 * @number:     position, as for ctr_gpu_host_adapter()
 * @ret_driver: its strings are owned by the caller, release with ctr_gpu_driver_clear()
 *
 * Return: 0; -ERANGE; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_host_driver(const struct ctr_gpu_host *host, size_t number, struct ctr_gpu_driver *ret_driver);

/**
 * ctr_gpu_driver_clear() - release the strings of a driver's description
 *
 * Since: 0.1
 */
void ctr_gpu_driver_clear(struct ctr_gpu_driver *driver);

/**
 * ctr_gpu_host_write() - write the inventory for a person, a program or a spreadsheet
 * @format: TEXT, JSON or CSV
 *
 * Return: 0; -EINVAL for another format; -ENOMEM; -EIO.
 * Since: 0.1
 */
int ctr_gpu_host_write(const struct ctr_gpu_host *host, enum ctr_gpu_format format, FILE *file);

/* ---- request: what a container asks for ---- */

/**
 * ctr_gpu_request_new() - a request for nothing
 * @context:     borrowed; must outlive the request
 * @ret_request: new request, owned by the caller, release with ctr_gpu_request_unref()
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_request_new(struct ctr_gpu_context *context, struct ctr_gpu_request **ret_request);

/**
 * ctr_gpu_request_unref() - release a request
 * @request: may be NULL
 *
 * Return: NULL.
 * Since: 0.1
 */
struct ctr_gpu_request *ctr_gpu_request_unref(struct ctr_gpu_request *request);

/**
 * ctr_gpu_request_set_devices() - which devices
 * @devices: "all", "none" (driver libraries only), "void" or "" (nothing), or a list, separated by commas, of indexes,
 *           LUIDs, PCI addresses, UUIDs and other names that ctr-gpu(1) lists; "1:0" is the first part (MIG) of GPU 1.
 *           Each may have the form of a CDI device, "nvidia.com/gpu=0"; "nvidia.com/gpu=all" means all of that vendor
 *
 * ctr_gpu_plan_new() checks whether the host has them.
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_request_set_devices(struct ctr_gpu_request *request, const char *devices);

/**
 * ctr_gpu_request_set_capabilities() - which parts of the driver
 * @capabilities: of compute, compat32, graphics, utility, video, display, ngx, separated by commas; or "all".
 *                "utility,compute" unless set
 *
 * Return: 0; CTR_GPU_E_UNKNOWN_CAPABILITY; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_request_set_capabilities(struct ctr_gpu_request *request, const char *capabilities);

/**
 * ctr_gpu_request_add_requirement() - what the driver must be
 * @requirement: a condition such as "cuda>=12.4 brand=tesla,driver>=470": a space is "or", a comma "and"
 *
 * Return: 0; CTR_GPU_E_BAD_REQUIREMENT; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_request_add_requirement(struct ctr_gpu_request *request, const char *requirement);

/**
 * ctr_gpu_request_set_imex_channels() - channels by which GPUs of several machines share memory
 * @channels: their numbers, separated by commas; "all" of which this host has a node; "none" or ""
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_request_set_imex_channels(struct ctr_gpu_request *request, const char *channels);

/** Rights over the parts (MIG) of GPUs. */
enum ctr_gpu_mig {
	CTR_GPU_MIG_CONFIG = 1 << 0,  /* to make and remove them */
	CTR_GPU_MIG_MONITOR = 1 << 1, /* to see those of all users */
};

/**
 * ctr_gpu_request_set_mig() - rights over the parts of GPUs, for programs that manage them
 * @rights: of enum ctr_gpu_mig; 0 unless set
 *
 * Since: 0.1
 */
void ctr_gpu_request_set_mig(struct ctr_gpu_request *request, unsigned rights);

/**
 * ctr_gpu_request_read_environment() - fill the request from a container's environment
 * @environment: "NAME=value", NULL-terminated; if a name occurs twice, the last value is used
 *
 * Reads the variables that ctr-gpu-hook(8) explains, NVIDIA_VISIBLE_DEVICES among them. The environment may come from
 * an untrusted image: it is treated as that of an unprivileged container, within the settings of the context.
 *
 * Return: 0; CTR_GPU_E_UNKNOWN_CAPABILITY; CTR_GPU_E_BAD_REQUIREMENT; CTR_GPU_E_BAD_ARGUMENT for another wrong value;
 * CTR_GPU_E_NO_PERMISSION for what only privileged containers may have; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_request_read_environment(struct ctr_gpu_request *request, const char *const *environment);

/**
 * ctr_gpu_request_read_container() - fill the request from a container's config.json, within the settings
 * @container: of ctr_gpu_container_new_from_state(); otherwise it asks for nothing
 * @devices:   from the container's engine; NULL for those that the file asks for
 *
 * Return: as ctr_gpu_request_read_environment().
 * Since: 0.1
 */
int ctr_gpu_request_read_container(struct ctr_gpu_request *request, const struct ctr_gpu_container *container,
				   const char *devices);

/**
 * ctr_gpu_request_read_bundle() - the same for a container that does not exist yet
 *
 * Return: as ctr_gpu_request_read_container().
 * Since: 0.1
 */
int ctr_gpu_request_read_bundle(struct ctr_gpu_request *request, const struct ctr_gpu_bundle *bundle);

/** The ways to ask for a GPU. */
enum ctr_gpu_method {
	CTR_GPU_METHOD_HOOK = 0,    /* an OCI hook that reads the container's environment */
	CTR_GPU_METHOD_RUNTIME = 1, /* ctr-gpu-runtime */
	CTR_GPU_METHOD_CDI = 2,     /* a hook of a CDI spec */
};

/** What to do with a container that asks for GPUs on a host without one. */
enum ctr_gpu_on_missing {
	CTR_GPU_ON_MISSING_FAIL = 0,
	CTR_GPU_ON_MISSING_WARN = 1, /* it starts without, and a log says so */
	CTR_GPU_ON_MISSING_SKIP = 2, /* it starts without */
};

/**
 * ctr_gpu_request_on_missing() - whether a container starts without the GPUs that it asks for
 * @result: of ctr_gpu_host_new() or ctr_gpu_plan_new()
 *
 * The setting "on-missing" decides; by default, a container starts if its request may come from the image.
 *
 * Return: one of the above; CTR_GPU_ON_MISSING_FAIL unless @result is CTR_GPU_E_NO_DEVICE or CTR_GPU_E_NO_ADAPTER.
 * Since: 0.1
 */
enum ctr_gpu_on_missing ctr_gpu_request_on_missing(const struct ctr_gpu_request *request, enum ctr_gpu_method method,
						   int result);

/**
 * ctr_gpu_request_is_void() - whether the request asks for nothing
 *
 * Since: 0.1
 */
bool ctr_gpu_request_is_void(const struct ctr_gpu_request *request);

/* ---- plan: what the container must see ---- */

/**
 * ctr_gpu_plan_new() - decide what a container must see
 * @request:  borrowed
 * @host:     borrowed; NULL for a request that is void
 * @ret_plan: new plan, owned by the caller, release with ctr_gpu_plan_unref()
 *
 * Reads the host; mounts, creates and logs nothing.
 *
 * Return: 0; CTR_GPU_E_NO_ADAPTER, CTR_GPU_E_DRIVER_TOO_OLD or CTR_GPU_E_NO_DRIVER_STORE if no adapter, or not the
 * requested one, can be used; CTR_GPU_E_UNKNOWN_DEVICE; CTR_GPU_E_REQUIREMENT; CTR_GPU_E_DRIVER_LIBRARY if libraries of
 * the driver are missing or do not match its kernel module; CTR_GPU_E_DRIVER_TIMEOUT; CTR_GPU_E_GUARD if the settings
 * want a choice among adapters held, and it cannot be; CTR_GPU_E_NO_PERMISSION if the settings do not permit the
 * request; CTR_GPU_E_BAD_ARGUMENT if it contradicts itself; negative errno.
 * Since: 0.1
 */
int ctr_gpu_plan_new(struct ctr_gpu_context *context, const struct ctr_gpu_request *request,
		     const struct ctr_gpu_host *host, struct ctr_gpu_plan **ret_plan);

/**
 * ctr_gpu_plan_fit_bundle() - add what a container's image needs in addition
 *
 * Programs built by Nix or Guix do not read /etc/ld.so.cache: the plan gets LD_LIBRARY_PATH for them, with the
 * container's own value first. Variables that the container has already are taken out.
 *
 * Return: 0; CTR_GPU_E_DRIVER_LIBRARY if neither this machine nor the image has a library without which no program
 * finds a GPU, or if the driver's cannot be used here; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_plan_fit_bundle(struct ctr_gpu_plan *plan, const struct ctr_gpu_bundle *bundle);

/**
 * ctr_gpu_plan_find_outranked() - add the libraries of a bundle's image that the driver's outrank
 *
 * As far as the image's loader cache lists them. It is for a plan that is shown: applying does not need them, and
 * reading the cache takes time.
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_plan_find_outranked(struct ctr_gpu_plan *plan, const struct ctr_gpu_bundle *bundle);

/**
 * ctr_gpu_plan_fit_container() - both for a container that exists, whose environment can no longer be changed
 *
 * It is for a plan that is shown, which gets a warning with the value for the variable. ctr_gpu_plan_apply() logs that,
 * and what other variables the container lacks, in any case.
 *
 * Return: as ctr_gpu_plan_fit_bundle().
 * Since: 0.1
 */
int ctr_gpu_plan_fit_container(struct ctr_gpu_plan *plan, const struct ctr_gpu_container *container);

/**
 * ctr_gpu_plan_unref() - release a plan
 * @plan: may be NULL
 *
 * Return: NULL.
 * Since: 0.1
 */
struct ctr_gpu_plan *ctr_gpu_plan_unref(struct ctr_gpu_plan *plan);

/**
 * ctr_gpu_plan_write() - write the plan, with the reason of every entry
 * @format: TEXT, JSON or PATHS
 *
 * Return: 0; -EINVAL for another format; -ENOMEM; -EIO.
 * Since: 0.1
 */
int ctr_gpu_plan_write(const struct ctr_gpu_plan *plan, enum ctr_gpu_format format, FILE *file);

/** What ctr_gpu_plan_write_files() can write. */
enum ctr_gpu_files {
	CTR_GPU_FILES_DEVICES = 1 << 0,
	CTR_GPU_FILES_PROGRAMS = 1 << 1,
	CTR_GPU_FILES_LIBRARIES = 1 << 2,
	CTR_GPU_FILES_SOCKETS = 1 << 3,
	CTR_GPU_FILES_FIRMWARE = 1 << 4,
	CTR_GPU_FILES_CONFIG = 1 << 5,
};

/**
 * ctr_gpu_plan_write_files() - write the host's paths of some of the plan's files, one per line
 * @kinds: of enum ctr_gpu_files
 *
 * For a mounted directory of libraries, it writes the libraries in it.
 *
 * Return: 0; -EIO.
 * Since: 0.1
 */
int ctr_gpu_plan_write_files(const struct ctr_gpu_plan *plan, unsigned kinds, FILE *file);

/* ---- container: to which the plan is applied ---- */

/**
 * ctr_gpu_container_new() - a container that is being created
 * @pid:           its first process, in this pid namespace; 0 to act in the caller's own mount namespace and leave
 *                 device rules alone
 * @rootfs:        absolute path of its root directory in that process's mount namespace
 * @ret_container: new container, owned by the caller, release with ctr_gpu_container_unref()
 *
 * Return: 0; CTR_GPU_E_BAD_ROOTFS; CTR_GPU_E_CONTAINER_RUNNING; CTR_GPU_E_NO_PERMISSION; CTR_GPU_E_BAD_ARGUMENT if the
 * process does not belong to a container; CTR_GPU_E_BAD_STATE if /proc is another pid namespace's; -ESRCH; negative
 * errno.
 * Since: 0.1
 */
int ctr_gpu_container_new(struct ctr_gpu_context *context, pid_t pid, const char *rootfs,
			  struct ctr_gpu_container **ret_container);

/**
 * ctr_gpu_container_new_running() - a container that runs
 * @pid: a process of it, in this pid namespace; its mount namespace and root directory are the container's
 *
 * What ctr_gpu_plan_apply() gives it does not end with it by itself: name a directory for records first, by
 * ctr_gpu_container_set_record(), and take it back by ctr_gpu_undo_running(). Variables cannot be set any more.
 *
 * Return: 0; CTR_GPU_E_NO_PERMISSION; CTR_GPU_E_BAD_ARGUMENT if the process has the machine's own root directory;
 * CTR_GPU_E_BAD_STATE if /proc is another pid namespace's; -ESRCH; negative errno.
 * Since: 0.1
 */
int ctr_gpu_container_new_running(struct ctr_gpu_context *context, pid_t pid, struct ctr_gpu_container **ret_container);

/**
 * ctr_gpu_container_new_from_state() - the container that an OCI state describes
 * @state: JSON that a runtime writes to its hooks' standard input; hostile
 * @size:  bytes
 *
 * Reads config.json in the bundle that the state names. It does not check whether the container can be changed;
 * ctr_gpu_plan_apply() does, because a hook is called for containers of every kind, and those that ask for nothing must
 * not fail.
 *
 * Return: 0; CTR_GPU_E_BAD_STATE; CTR_GPU_E_CONTAINER_RUNNING; -ESRCH; negative errno.
 * Since: 0.1
 */
int ctr_gpu_container_new_from_state(struct ctr_gpu_context *context, const char *state, size_t size,
				     struct ctr_gpu_container **ret_container);

/**
 * ctr_gpu_container_unref() - release a container; the changes to it stay
 * @container: may be NULL
 *
 * Return: NULL.
 * Since: 0.1
 */
struct ctr_gpu_container *ctr_gpu_container_unref(struct ctr_gpu_container *container);

/**
 * ctr_gpu_container_asks() - whether its config.json asks for anything, permitted or not
 *
 * For hooks that are called for every container: if it asks for nothing, settings and host are not needed.
 *
 * Since: 0.1
 */
bool ctr_gpu_container_asks(const struct ctr_gpu_container *container);

/**
 * ctr_gpu_state_may_ask() - whether a container may ask for GPUs, where ctr_gpu_container_new_from_state() fails
 * @state: what a runtime wrote to its hook; may be anything
 *
 * A hook that is called for every container should then let those start that do not want a GPU. Searches the
 * container's config.json for text that asks. Finds the file in the bundle that the state names, or else by the command
 * line of the calling runtime. A file that cannot be read counts as not asking.
 *
 * Since: 0.1
 */
bool ctr_gpu_state_may_ask(const char *state, size_t size);

/**
 * ctr_gpu_container_hook_devices() - the devices for which our CDI specs put hooks into the container's config.json
 * @arguments:   of the calling hook, NULL-terminated; its --device= is always included
 * @ret_devices: list for ctr_gpu_request_set_devices(), release with free(); NULL if the calling hook is not the first
 *               of these hooks, which acts for all of them
 *
 * The file has one hook for each device.
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_container_hook_devices(const struct ctr_gpu_container *container, const char *const *arguments,
				   char **ret_devices);

/**
 * ctr_gpu_container_clean() - take back what a start has made in the layer of a container that has ended
 * @state: what a runtime wrote to its hook of the stage poststop
 *
 * ctr_gpu_plan_apply() for a container made from a state, and ctr_gpu_plan_apply_to_bundle(), leave a list in the
 * bundle, if they run in a child of ctr_gpu_run_in_child(). Directories that are still empty, links and files that are
 * still ours go, and the loader's files are the image's again; the list goes, too. A root filesystem that is no
 * overlayfs, or on which another container runs, stays as it is. Device rules that were written for systemd go with
 * their units.
 *
 * Return: 0, also if there is no list; CTR_GPU_E_BAD_STATE if the container has not ended; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_container_clean(struct ctr_gpu_context *context, const char *state, size_t size);

/**
 * ctr_gpu_container_set_record() - record the changes to the container, for ctr_gpu_undo()
 * @directory: absolute, created if missing; only its owner may be able to write there. For any number of root
 *             filesystems
 *
 * For a root filesystem in the caller's own mount namespace, where mounts outlive the container; and for a container
 * that runs, where ctr_gpu_undo_running() reads it: there the directory is best one that ends with the boot, as mounts
 * do.
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_container_set_record(struct ctr_gpu_container *container, const char *directory);

/**
 * ctr_gpu_undo() - undo the recorded changes to a root filesystem
 * @rootfs:    its path
 * @directory: of ctr_gpu_container_set_record()
 *
 * Removes mounts, and files and directories that are still empty; restores replaced files that have not changed since.
 * Everything else stays.
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT if nothing is recorded; CTR_GPU_E_BAD_ROOTFS; -ENOSPC if a file could not be
 * brought back, which stays recorded; negative errno.
 * Since: 0.1
 */
int ctr_gpu_undo(struct ctr_gpu_context *context, const char *rootfs, const char *directory);

/**
 * ctr_gpu_undo_running() - take back what a container that runs was given
 * @container: of ctr_gpu_container_new_running()
 * @directory: of ctr_gpu_container_set_record()
 * @force:     also if a process in the container has one of the devices open; what is open stays open
 *
 * All of it, the newest first: mounts, what was made and replaced, device rules, the guard's choice, what was written
 * for systemd; and the records. What the container was started with stays. Works in children, as ctr_gpu_run_in_child()
 * does.
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT if nothing is recorded; -EBUSY if a device is open, or something is mounted over
 * what was mounted; -ENOSPC if a file could not be brought back, which stays recorded; CTR_GPU_E_NO_PERMISSION;
 * CTR_GPU_E_NO_CGROUP; negative errno.
 * Since: 0.1
 */
int ctr_gpu_undo_running(struct ctr_gpu_context *context, struct ctr_gpu_container *container, const char *directory,
			 bool force);

/**
 * ctr_gpu_container_leave_cgroup() - do not change device rules, because the caller manages them
 *
 * Since: 0.1
 */
void ctr_gpu_container_leave_cgroup(struct ctr_gpu_container *container);

/**
 * ctr_gpu_container_leave_devices() - do not bind device nodes, because the caller makes them
 *
 * Since: 0.1
 */
void ctr_gpu_container_leave_devices(struct ctr_gpu_container *container);

/**
 * ctr_gpu_plan_prepare() - make this machine ready for the plan
 * @plan: borrowed
 *
 * Loads the guard, if the plan wants it and it is not loaded yet: once after a boot, by a program of its own. Call this
 * before ctr_gpu_plan_apply(), and before giving up the right to load BPF programs.
 *
 * Return: 0; CTR_GPU_E_GUARD if that fails and the choice must be held; negative errno. Where it need not be, a warning
 * is logged.
 * Since: 0.1
 */
int ctr_gpu_plan_prepare(struct ctr_gpu_context *context, const struct ctr_gpu_plan *plan);

/**
 * ctr_gpu_plan_apply() - apply the plan to the container
 * @plan:      borrowed
 * @container: borrowed
 *
 * If a step fails, the steps before it are undone. The calling thread moves to the container's mount namespace, if that
 * has its own. So a process must have a single thread and can apply one plan, as the last thing it does.
 *
 * Return: 0; CTR_GPU_E_NO_PERMISSION; CTR_GPU_E_BAD_ROOTFS if the image leads a path into /proc or /sys;
 * CTR_GPU_E_ROOTFS_READ_ONLY; CTR_GPU_E_VOLUME; CTR_GPU_E_NO_CGROUP; CTR_GPU_E_GUARD; CTR_GPU_E_EXCLUSIVE if one
 * container at a time may have a GPU and another has it, or this one has no process; CTR_GPU_E_KERNEL_TOO_OLD;
 * CTR_GPU_E_BAD_ARGUMENT for a plan with vCUDA and a container without a process; negative errno; for a container made
 * from a state, what ctr_gpu_container_new() returns.
 * Since: 0.1
 */
int ctr_gpu_plan_apply(struct ctr_gpu_context *context, const struct ctr_gpu_plan *plan,
		       struct ctr_gpu_container *container);

/* ---- bundle: a container that does not exist yet ---- */

/**
 * ctr_gpu_bundle_new() - an OCI bundle whose container has not been created
 * @directory:  the bundle
 * @config:     path of its configuration, relative to the bundle; NULL for config.json
 * @ret_bundle: new bundle, owned by the caller, release with ctr_gpu_bundle_unref()
 *
 * Return: 0; -ENOENT if the bundle or its configuration is missing; CTR_GPU_E_BAD_STATE; negative errno.
 * Since: 0.1
 */
int ctr_gpu_bundle_new(struct ctr_gpu_context *context, const char *directory, const char *config,
		       struct ctr_gpu_bundle **ret_bundle);

/**
 * ctr_gpu_bundle_unref() - release a bundle; the changes to it stay
 * @bundle: may be NULL
 *
 * Return: NULL.
 * Since: 0.1
 */
struct ctr_gpu_bundle *ctr_gpu_bundle_unref(struct ctr_gpu_bundle *bundle);

/**
 * ctr_gpu_bundle_may_ask() - ctr_gpu_state_may_ask() for what ctr_gpu_bundle_new() cannot read
 *
 * Since: 0.1
 */
bool ctr_gpu_bundle_may_ask(const char *directory, const char *config);

/**
 * ctr_gpu_bundle_set_hook() - set the path of ctr-gpu-hook
 * @path: absolute
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_bundle_set_hook(struct ctr_gpu_bundle *bundle, const char *path);

/**
 * ctr_gpu_bundle_set_runtime() - name the OCI runtime that is going to make the container
 * @path: absolute
 *
 * It is asked for its version, once after a boot. Until it is named, and if its version is not known to be safe where
 * somebody changes the root filesystem meanwhile, ctr_gpu_plan_apply_to_bundle() leaves mounts, devices and the
 * loader's files to ctr-gpu-hook.
 *
 * Since: 0.1
 */
void ctr_gpu_bundle_set_runtime(struct ctr_gpu_bundle *bundle, const char *path);

/**
 * ctr_gpu_plan_apply_to_bundle() - write the plan into the bundle, for the runtime to apply
 * @plan:   borrowed
 * @bundle: borrowed
 *
 * Writes devices, device rules, mounts and environment into the bundle's configuration, and files for the image's
 * loader into its root filesystem; hooks that would do the same are removed. Some things can be done only while the
 * container is created, such as covering files in /proc; for these ctr-gpu-hook is added to the configuration. If a
 * step fails, the steps before it are undone. A second call changes nothing.
 *
 * Return: 0; CTR_GPU_E_BAD_STATE; CTR_GPU_E_BAD_ROOTFS if its root filesystem is the machine's own, or reached by a
 * symlink that another user could have made; CTR_GPU_E_ROOTFS_READ_ONLY; -ENOENT if ctr-gpu-hook is needed and its path
 * was not set; negative errno.
 * Since: 0.1
 */
int ctr_gpu_plan_apply_to_bundle(struct ctr_gpu_context *context, const struct ctr_gpu_plan *plan,
				 struct ctr_gpu_bundle *bundle);

/* ---- CDI: specs that engines read ---- */

/**
 * ctr_gpu_cdi_kinds() - the kinds of devices that the host's adapters are
 * @ret_kinds: "nvidia.com/gpu,intel.com/gpu", to be released with free(); "" if no adapter can be used
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_cdi_kinds(const struct ctr_gpu_host *host, char **ret_kinds);

/**
 * ctr_gpu_cdi_write() - write a CDI spec of the host's adapters
 * @request: the adapters, driver capabilities and IMEX channels; its requirements are compared with the present driver
 * @kind:    "nvidia.com/gpu" for that vendor's adapters; the kind of a vendor that makes none for all adapters
 * @hook:    absolute path of ctr-gpu-hook, for what an engine cannot do; NULL for a spec without a hook, which is valid
 *           for the present driver only
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT; CTR_GPU_E_NO_ADAPTER if there is none of the kind; as ctr_gpu_plan_new(); -EIO.
 * Since: 0.1
 */
int ctr_gpu_cdi_write(struct ctr_gpu_context *context, const struct ctr_gpu_host *host,
		      const struct ctr_gpu_request *request, const char *kind, const char *hook, FILE *file);

/**
 * ctr_gpu_cdi_path() - where ctr_gpu_cdi_save() would write
 * @path:     as there
 * @ret_path: of the file, to be released with free()
 *
 * For callers that record a change before they make it.
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_cdi_path(struct ctr_gpu_context *context, const char *kind, const char *path, char **ret_path);

/**
 * ctr_gpu_cdi_save() - write a CDI spec to a file, completely or not at all
 * @path:     absolute; of a directory, in which the file is named after the kind, or of a file that ends in ".json"
 * @ret_path: of the file, to be released with free()
 *
 * A file with the same contents is not touched. A warning is logged if another file of that directory has the same
 * devices.
 *
 * Return: as ctr_gpu_cdi_write(); CTR_GPU_E_NO_PERMISSION; negative errno.
 * Since: 0.1
 */
int ctr_gpu_cdi_save(struct ctr_gpu_context *context, const struct ctr_gpu_host *host,
		     const struct ctr_gpu_request *request, const char *kind, const char *hook, const char *path,
		     char **ret_path);

/**
 * ctr_gpu_cdi_remove_stale() - remove specs that ctr_gpu_cdi_save() wrote for vendors whose adapters are gone
 * @host:        NULL if the machine has no GPU device
 * @directory:   need not exist
 * @ret_removed: names of files, a line each, to be released with free()
 *
 * Recognises these files by name and contents; other files are left alone.
 *
 * Return: 0; negative errno.
 * Since: 0.1
 */
int ctr_gpu_cdi_remove_stale(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const char *directory,
			     char **ret_removed);

/**
 * ctr_gpu_cdi_run_hook() - do the work of a hook in a spec of NVIDIA's tools
 * @arguments: NULL-terminated, of nvidia-cdi-hook without its name: a command such as "update-ldcache" and its options
 * @state:     JSON that a runtime writes to its hooks' standard input; hostile
 * @size:      bytes
 *
 * For the stage createContainer, at which a hook is in the container's namespaces. Unknown commands, and what is not
 * done for the host's safety, are logged as warnings.
 *
 * Return: 0; CTR_GPU_E_BAD_STATE; as ctr_gpu_plan_apply().
 * Since: 0.1
 */
int ctr_gpu_cdi_run_hook(struct ctr_gpu_context *context, const char *const *arguments, const char *state, size_t size);

/**
 * ctr_gpu_cdi_refresh() - update the specs in a directory
 * @host:      NULL if the machine has no GPU device
 * @directory: need not exist
 * @hook:      absolute path of ctr-gpu-hook, for a spec that is not there yet
 *
 * Removes specs of vendors whose adapters are gone, writes missing ones, and writes stale ones again, with their hook
 * and capabilities. Valid specs and those of other programs are left alone.
 *
 * Return: 0; as ctr_gpu_cdi_save().
 * Since: 0.1
 */
int ctr_gpu_cdi_refresh(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const char *directory,
			const char *hook);

/**
 * ctr_gpu_cdi_report_new() - begin a report on CDI specs
 * @context:    borrowed; must outlive the report
 * @ret_report: new report, owned by the caller, release with ctr_gpu_cdi_report_unref()
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_cdi_report_new(struct ctr_gpu_context *context, struct ctr_gpu_cdi_report **ret_report);

/**
 * ctr_gpu_cdi_report_unref() - release a report
 * @report: may be NULL
 *
 * Return: NULL.
 * Since: 0.1
 */
struct ctr_gpu_cdi_report *ctr_gpu_cdi_report_unref(struct ctr_gpu_cdi_report *report);

/**
 * ctr_gpu_cdi_report_read_directory() - add every spec in a directory
 * @path: need not exist; devices in it go before those of directories that were read earlier
 *
 * Specs are not trusted; their defects become part of the report.
 *
 * Return: 0; negative errno.
 * Since: 0.1
 */
int ctr_gpu_cdi_report_read_directory(struct ctr_gpu_cdi_report *report, const char *path);

/**
 * ctr_gpu_cdi_report_read_file() - add one spec
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_cdi_report_read_file(struct ctr_gpu_cdi_report *report, const char *path);

/**
 * ctr_gpu_cdi_report_check() - check whether the specs would work
 * @host:   NULL if the machine has no GPU device
 * @engine: "docker:28.2", "podman:4.3", "containerd:1.7", "cri-o:1.30" or "buildkit:0.20", which must be able to load
 *          them; NULL for none in particular
 *
 * Return: 0, also if it found errors; CTR_GPU_E_BAD_ARGUMENT for an unknown engine; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_cdi_report_check(struct ctr_gpu_cdi_report *report, const struct ctr_gpu_host *host, const char *engine);

/**
 * ctr_gpu_cdi_report_is_fine() - whether specs exist and have no errors
 *
 * Since: 0.1
 */
bool ctr_gpu_cdi_report_is_fine(const struct ctr_gpu_cdi_report *report);

/**
 * ctr_gpu_cdi_report_write() - write every spec, its devices, and what was found
 * @format: TEXT or JSON
 *
 * Return: 0; -EINVAL for another format; -ENOMEM; -EIO.
 * Since: 0.1
 */
int ctr_gpu_cdi_report_write(const struct ctr_gpu_cdi_report *report, enum ctr_gpu_format format, FILE *file);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
