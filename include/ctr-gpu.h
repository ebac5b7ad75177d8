/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ctr-gpu: the GPUs of a Linux host, for its containers.
 *
 * The work has three steps. A *request* says what a container asks for, a *host* what there is; from both comes a *plan*,
 * plain data that can be printed; applying the plan is the only step that changes anything.
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
 * Results: 0; a negative errno; or one of the positive CTR_GPU_E_* that the function's comment names. In both cases
 * ctr_gpu_context_message() has the sentence for the user. Outputs (ret_*) are written on success only. Nothing is printed.
 *
 * Objects belong to the thread that uses them; different contexts may be used by different threads.
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

/* Everything else in the library is hidden. */
#pragma GCC visibility push(default)

struct ctr_gpu_context;
struct ctr_gpu_host;
struct ctr_gpu_request;
struct ctr_gpu_plan;
struct ctr_gpu_container;
struct ctr_gpu_bundle;
struct ctr_gpu_cdi_report;

/* ---- context: settings, the last error, where remarks go ---- */

enum ctr_gpu_log_level {
	CTR_GPU_LOG_WARNING = 0, /* the work goes on, but a user should know */
	CTR_GPU_LOG_DEBUG = 1,   /* what was looked at and decided */
};

typedef void (*ctr_gpu_log_fn)(void *user, enum ctr_gpu_log_level level, const char *text);

/** Which source describes the adapters of a GPU-PV host. */
enum ctr_gpu_inventory {
	CTR_GPU_INVENTORY_AUTO = 0,   /* /dev/dxg itself; libdxcore where that fails or has no usable adapter */
	CTR_GPU_INVENTORY_DXCORE = 1, /* libdxcore or nothing */
	CTR_GPU_INVENTORY_IOCTL = 2,  /* /dev/dxg or nothing */
};

enum ctr_gpu_format {
	CTR_GPU_FORMAT_TEXT = 0,
	CTR_GPU_FORMAT_JSON = 1,
	CTR_GPU_FORMAT_CSV = 2, /* ctr_gpu_host_write() only */
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
 * @context: may be NULL; objects made with it must have been released before
 *
 * Return: NULL.
 * Since: 0.1
 */
struct ctr_gpu_context *ctr_gpu_context_unref(struct ctr_gpu_context *context);

/**
 * ctr_gpu_context_message() - the sentence that belongs to the last result other than 0
 * @context: borrowed
 *
 * Return: what went wrong, where, and the next thing to try, in one to three lines without a last newline; valid until the
 * next call with this context.
 * Since: 0.1
 */
const char *ctr_gpu_context_message(const struct ctr_gpu_context *context);

/**
 * ctr_gpu_context_set_log() - say where remarks go; without it nobody hears them
 * @log:  called with one line without a newline; NULL for none
 * @user: handed through
 *
 * Since: 0.1
 */
void ctr_gpu_context_set_log(struct ctr_gpu_context *context, ctr_gpu_log_fn log, void *user);

/**
 * ctr_gpu_run_in_child() - do work that may wait for ever in a child process that can be left behind
 * @context:    its setting "deadline" counts; borrowed
 * @work:       called in the child with @context as it is now; what it returns, 0 to 255, is the child's status of exit(3)
 * @user:       handed through
 * @ret_status: what @work returned; anything but 0 takes back what was done
 *
 * A file system that does not answer holds a process where no signal handler runs. So whoever must answer in time calls
 * functions that read the host or a container in @work, and none of them itself: ctr_gpu_host_new(), ctr_gpu_plan_new(),
 * ctr_gpu_plan_apply(), ctr_gpu_plan_apply_to_bundle(), ctr_gpu_cdi_run_hook(). A child that is not done in time is killed, and
 * what it had done to one container is taken back. SIGTERM, SIGINT, SIGHUP and SIGQUIT do the same at once.
 *
 * The child has a copy of the memory, and the caller's own descriptors: what it closes is closed. For programs of one thread.
 *
 * Return: 0; -ETIMEDOUT; -EINTR if a signal came; -ECHILD if the child was killed by somebody else; negative errno. After
 * -ETIMEDOUT and -EINTR a child may be left, with the caller's descriptors, until its file system answers.
 * Since: 0.1
 */
int ctr_gpu_run_in_child(struct ctr_gpu_context *context, int (*work)(void *user), void *user, int *ret_status);

/**
 * ctr_gpu_context_load_config() - take settings from a configuration file
 * @path: file; NULL for /etc/ctr-gpu/config.json, which need not exist
 *
 * The file and its directory must belong to root or to the caller and be writable by nobody else.
 *
 * Return: 0; CTR_GPU_E_BAD_CONFIG; negative errno.
 * Since: 0.1
 */
int ctr_gpu_context_load_config(struct ctr_gpu_context *context, const char *path);

/**
 * ctr_gpu_context_log() - where the configuration wants programs without a terminal to log
 *
 * Return: an absolute path; "journal" for the system's log; NULL for nowhere; valid until the settings change.
 * Since: 0.1
 */
const char *ctr_gpu_context_log(const struct ctr_gpu_context *context);

/**
 * ctr_gpu_context_runtime() - the OCI runtimes that ctr-gpu-runtime stands in front of
 * @number: from 0; the first that is installed is to be used
 *
 * Return: a name to look for or an absolute path, valid until the settings change; NULL if there are no more, or if a
 * configuration file could not be read that may say which.
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
 * ctr_gpu_context_set_driver_timeout() - how long one answer of a vendor's library may take
 * @milliseconds: 10,000 unless set; not 0
 *
 * Since: 0.1
 */
void ctr_gpu_context_set_driver_timeout(struct ctr_gpu_context *context, unsigned milliseconds);

/**
 * ctr_gpu_context_set_driver_root() - say where a native driver is installed
 * @directory: the root of the driver's files, such as /run/nvidia/driver; absolute; "/" unless set
 *
 * Device nodes and /proc stay this machine's.
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT if it is not absolute; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_context_set_driver_root(struct ctr_gpu_context *context, const char *directory);

/* ---- host: the adapters there are ---- */

/**
 * ctr_gpu_host_new() - look at the host
 * @context:  borrowed; must outlive the host
 * @ret_host: new host, owned by the caller, release with ctr_gpu_host_unref()
 *
 * An adapter that cannot be used is part of the host, with the reason. A host with no usable adapter is a success here.
 *
 * Return: 0; CTR_GPU_E_NO_DEVICE if there is no GPU device of any kind; CTR_GPU_E_NO_ADAPTER if there is a device without
 * its kernel module; CTR_GPU_E_DRIVER_LIBRARY or CTR_GPU_E_DRIVER_TIMEOUT if libdxcore was forced and failed; negative errno.
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
 * ctr_gpu_host_adapter_count() - how many adapters there are, usable or not
 *
 * Since: 0.1
 */
size_t ctr_gpu_host_adapter_count(const struct ctr_gpu_host *host);

/**
 * struct ctr_gpu_adapter - an adapter as a program sees it
 *
 * Strings live as long as the host; NULL or 0 where something is not known.
 *
 * Since: 0.1
 */
struct ctr_gpu_adapter {
	int index;               /* what users select it by; -1 if it cannot be used */
	const char *backend;     /* "gpu-pv" or "nvidia" */
	const char *name;        /* as the driver calls it */
	const char *vendor;      /* "NVIDIA", "AMD", "Intel", … */
	uint32_t vendor_id, device_id; /* PCI */
	const char *pci_address; /* on the machine that owns it, "0000:01:00.0" */
	const char *uuid;
	uint64_t luid;           /* high part in the upper half */
	unsigned wddm_version;   /* 2700 is 2.7 */
	const char *driver_store;
	int unusable;            /* CTR_GPU_E_*; 0 if it can be used */
	const char *reason;      /* why not */
};

/**
 * ctr_gpu_host_adapter() - describe an adapter
 * @number: position, from 0 to ctr_gpu_host_adapter_count() - 1; usable ones come first, so it is their index
 *
 * Return: 0 or -ERANGE.
 * Since: 0.1
 */
int ctr_gpu_host_adapter(const struct ctr_gpu_host *host, size_t number, struct ctr_gpu_adapter *ret_adapter);

/**
 * struct ctr_gpu_driver - what the host tells of an adapter's driver, and what that tells of the adapter
 *
 * NULL or 0 where something is not known.
 *
 * Since: 0.1
 */
struct ctr_gpu_driver {
	int minor;          /* of /dev/nvidia<minor>; -1 if the adapter has no such node */
	char *version;      /* "580.95.05" */
	int cuda_major, cuda_minor;
	char *architecture; /* the GPU's compute capability, "9.0" */
	char *brand;        /* as NVIDIA_REQUIRE_* names it: "tesla", "geforce", … */
};

/**
 * ctr_gpu_host_driver() - what requirements are held against
 * @number:     position, as for ctr_gpu_host_adapter()
 * @ret_driver: its strings are owned by the caller, release with ctr_gpu_driver_clear()
 *
 * Return: 0; -ERANGE; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_host_driver(const struct ctr_gpu_host *host, size_t number, struct ctr_gpu_driver *ret_driver);

/**
 * ctr_gpu_driver_clear() - release what a driver's description owns
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
 * @devices: "all", "none" (driver libraries only), "void" or "" (nothing), or a list of indexes, LUIDs, PCI addresses and
 *           UUIDs, separated by commas; "1:0" is the first part (MIG) of GPU 1. Each may have the form of a CDI device,
 *           "nvidia.com/gpu=0"; "all" then means those of that vendor.
 *
 * Whether the host has them shows when the plan is made.
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_request_set_devices(struct ctr_gpu_request *request, const char *devices);

/**
 * ctr_gpu_request_set_capabilities() - which parts of the driver
 * @capabilities: of compute, compat32, graphics, utility, video, display, ngx, separated by commas; or "all". "utility,compute"
 *                unless set
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
 * ctr_gpu_request_set_imex_channels() - memory that GPUs of several machines share
 * @channels: numbers of channels, separated by commas; "all" whose nodes this host has; "none" or ""
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_request_set_imex_channels(struct ctr_gpu_request *request, const char *channels);

/** Rights over the parts (MIG) of GPUs. */
enum ctr_gpu_mig {
	CTR_GPU_MIG_CONFIG = 1 << 0,  /* to make and remove them */
	CTR_GPU_MIG_MONITOR = 1 << 1, /* to see those of everybody */
};

/**
 * ctr_gpu_request_set_mig() - rights over the parts of GPUs, for programs that administrate them
 * @rights: of enum ctr_gpu_mig; 0 unless set
 *
 * Since: 0.1
 */
void ctr_gpu_request_set_mig(struct ctr_gpu_request *request, unsigned rights);

/**
 * ctr_gpu_request_read_environment() - take everything from a container's environment
 * @environment: "NAME=value", NULL-terminated; of a name that occurs twice, the last counts
 *
 * NVIDIA_VISIBLE_DEVICES, NVIDIA_DRIVER_CAPABILITIES, NVIDIA_REQUIRE_*, NVIDIA_DISABLE_REQUIRE, NVIDIA_IMEX_CHANNELS,
 * NVIDIA_NVSWITCH, DOCKER_RESOURCE_* of a Docker Swarm, and CUDA_VERSION of older images. The environment may come from an
 * image that nobody trusts: the container counts as one that is not privileged, and the settings of the context say whether
 * such a one may ask.
 *
 * Return: 0; CTR_GPU_E_UNKNOWN_CAPABILITY; CTR_GPU_E_BAD_REQUIREMENT; CTR_GPU_E_NO_PERMISSION; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_request_read_environment(struct ctr_gpu_request *request, const char *const *environment);

/**
 * ctr_gpu_request_read_container() - take what a container's config.json asks for and, by the settings, may
 * @container: of ctr_gpu_container_new_from_state(); otherwise it asks for nothing
 * @devices:   NULL: those that it asks for; otherwise these, since its engine says so, and the rest as it says
 *
 * Return: 0; CTR_GPU_E_UNKNOWN_CAPABILITY; CTR_GPU_E_BAD_REQUIREMENT; CTR_GPU_E_BAD_ARGUMENT; CTR_GPU_E_NO_PERMISSION for
 * what only privileged containers may have; -ENOMEM.
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

/** The ways by which a container comes. */
enum ctr_gpu_door {
	CTR_GPU_DOOR_HOOK = 0,    /* an OCI hook that reads the container's environment */
	CTR_GPU_DOOR_RUNTIME = 1, /* a runtime in front of the runtime */
	CTR_GPU_DOOR_CDI = 2,     /* a hook of a CDI spec */
};

/** What becomes of a container that asks for GPUs where there are none. */
enum ctr_gpu_on_missing {
	CTR_GPU_ON_MISSING_FAIL = 0,
	CTR_GPU_ON_MISSING_WARN = 1, /* it starts without, and a log says so */
	CTR_GPU_ON_MISSING_SKIP = 2, /* it starts without */
};

/**
 * ctr_gpu_request_on_missing() - whether a container starts without the GPUs that it asks for
 * @result: of ctr_gpu_host_new() or ctr_gpu_plan_new()
 *
 * By the settings of the context; without one, a container starts that asks in words which an image may have brought along.
 *
 * Return: CTR_GPU_ON_MISSING_FAIL unless @result is CTR_GPU_E_NO_DEVICE or CTR_GPU_E_NO_ADAPTER.
 * Since: 0.1
 */
enum ctr_gpu_on_missing ctr_gpu_request_on_missing(const struct ctr_gpu_request *request, enum ctr_gpu_door door, int result);

/**
 * ctr_gpu_request_is_void() - whether nothing at all is asked for
 *
 * Since: 0.1
 */
bool ctr_gpu_request_is_void(const struct ctr_gpu_request *request);

/* ---- plan: what the container must see ---- */

/**
 * ctr_gpu_plan_new() - work out what a container must see
 * @request:  borrowed
 * @host:     borrowed; NULL for a request that is void
 * @ret_plan: new plan, owned by the caller, release with ctr_gpu_plan_unref()
 *
 * Reads the host; mounts, creates and logs nothing.
 *
 * Return: 0; CTR_GPU_E_NO_ADAPTER, CTR_GPU_E_DRIVER_TOO_OLD or CTR_GPU_E_NO_DRIVER_STORE if no adapter can be used, or one
 * that was asked for cannot; CTR_GPU_E_UNKNOWN_DEVICE; CTR_GPU_E_REQUIREMENT; CTR_GPU_E_DRIVER_LIBRARY if libraries of the
 * driver are missing or do not belong to its kernel module; negative errno.
 * Since: 0.1
 */
int ctr_gpu_plan_new(struct ctr_gpu_context *context, const struct ctr_gpu_request *request, const struct ctr_gpu_host *host,
		     struct ctr_gpu_plan **ret_plan);

/**
 * ctr_gpu_plan_fit_bundle() - add what the image at hand needs besides
 *
 * Programs that Nix or Guix built read no /etc/ld.so.cache: the plan gets an LD_LIBRARY_PATH for them, in which what the
 * container has in it comes first.
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_plan_fit_bundle(struct ctr_gpu_plan *plan, const struct ctr_gpu_bundle *bundle);

/**
 * ctr_gpu_plan_fit_container() - the same for a container that exists, whose environment cannot be changed any more
 *
 * The plan gets a warning that says what the variable should be. ctr_gpu_plan_apply() logs the same without being asked.
 *
 * Return: 0 or -ENOMEM.
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

/** What ctr_gpu_plan_write_files() may be asked for. */
enum ctr_gpu_files {
	CTR_GPU_FILES_DEVICES = 1 << 0,
	CTR_GPU_FILES_PROGRAMS = 1 << 1,
	CTR_GPU_FILES_LIBRARIES = 1 << 2,
	CTR_GPU_FILES_SOCKETS = 1 << 3,
	CTR_GPU_FILES_FIRMWARE = 1 << 4,
	CTR_GPU_FILES_CONFIG = 1 << 5,
};

/**
 * ctr_gpu_plan_write_files() - write the paths on the host of some of the plan's files, one per line
 * @kinds: of enum ctr_gpu_files
 *
 * Of a directory of libraries that is mounted whole, its libraries.
 *
 * Return: 0; -EIO.
 * Since: 0.1
 */
int ctr_gpu_plan_write_files(const struct ctr_gpu_plan *plan, unsigned kinds, FILE *file);

/* ---- container: where the plan is applied ---- */

/**
 * ctr_gpu_container_new() - a container that is being created
 * @pid:           its first process, in this pid namespace; 0 to act in the caller's own mount namespace and leave device
 *                 rules alone
 * @rootfs:        absolute path of its root directory, as the runtime's mount namespace has it
 * @ret_container: new container, owned by the caller, release with ctr_gpu_container_unref()
 *
 * Return: 0; CTR_GPU_E_BAD_ROOTFS; CTR_GPU_E_CONTAINER_RUNNING; CTR_GPU_E_NO_PERMISSION; CTR_GPU_E_BAD_ARGUMENT if the process
 * is no container's; CTR_GPU_E_BAD_STATE if /proc is another pid namespace's; -ESRCH; negative errno.
 * Since: 0.1
 */
int ctr_gpu_container_new(struct ctr_gpu_context *context, pid_t pid, const char *rootfs,
			  struct ctr_gpu_container **ret_container);

/**
 * ctr_gpu_container_new_from_state() - the container that an OCI state describes
 * @state: JSON that a runtime writes to its hooks' standard input; hostile
 * @size:  bytes
 *
 * Reads config.json of the bundle that the state names. Whether the container can be given anything shows when a plan is
 * applied: a hook is called for containers of every kind, and those that ask for nothing must not fail by it.
 *
 * Return: 0; CTR_GPU_E_BAD_STATE; CTR_GPU_E_CONTAINER_RUNNING; -ESRCH; negative errno.
 * Since: 0.1
 */
int ctr_gpu_container_new_from_state(struct ctr_gpu_context *context, const char *state, size_t size,
				     struct ctr_gpu_container **ret_container);

/**
 * ctr_gpu_container_unref() - release a container; what was applied to it stays
 * @container: may be NULL
 *
 * Return: NULL.
 * Since: 0.1
 */
struct ctr_gpu_container *ctr_gpu_container_unref(struct ctr_gpu_container *container);

/**
 * ctr_gpu_container_environment() - the environment of the container's process, as its config.json says
 *
 * Return: NULL-terminated "NAME=value"; valid as long as the container; empty if it was not made from a state.
 * Since: 0.1
 */
const char *const *ctr_gpu_container_environment(const struct ctr_gpu_container *container);

/**
 * ctr_gpu_container_asks() - whether its config.json asks for anything, may it or not
 *
 * For hooks, which see every container of an engine: where it does not, settings and host need not be looked at.
 *
 * Since: 0.1
 */
bool ctr_gpu_container_asks(const struct ctr_gpu_container *container);

/**
 * ctr_gpu_state_may_ask() - whether there is anything to say that a container asks for GPUs
 * @state: what a runtime wrote to its hook, of which nothing needs to make sense
 *
 * For hooks that see every container of an engine, where ctr_gpu_container_new_from_state() fails: that is no reason for a
 * container that wants no GPU to fail. Looks for the text that asks in the config.json of the bundle that the state, or else the
 * command line of the calling runtime, names; what cannot be read says nothing.
 *
 * Since: 0.1
 */
bool ctr_gpu_state_may_ask(const char *state, size_t size);

/**
 * ctr_gpu_container_hook_devices() - the devices for which CDI specs of ours put hooks into the container's config.json
 * @arguments:   NULL-terminated, with which the asking hook was called; its --device= counts in any case
 * @ret_devices: list for ctr_gpu_request_set_devices(), to be released with free(); NULL if the asking hook is none of these
 *               entries' first, which acts for all of them
 *
 * An engine puts a hook into config.json for each device that it was asked for.
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_container_hook_devices(const struct ctr_gpu_container *container, const char *const *arguments, char **ret_devices);

/**
 * ctr_gpu_container_set_record() - have written down what is done to the container, for ctr_gpu_take_back()
 * @directory: absolute, made where missing; nobody but its owner may write there. Records of any number of root filesystems
 *
 * For a root filesystem in the caller's own mount namespace, where no namespace takes mounts with it when it ends.
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_container_set_record(struct ctr_gpu_container *container, const char *directory);

/**
 * ctr_gpu_take_back() - take back all that is written down of a root filesystem
 * @rootfs:    its path
 * @directory: of ctr_gpu_container_set_record()
 *
 * Mounts are removed, what was made is removed if nothing was put into it, and what was replaced comes back unless it was changed
 * since. What is not as it was left stays.
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT if nothing is written down; CTR_GPU_E_BAD_ROOTFS; negative errno.
 * Since: 0.1
 */
int ctr_gpu_take_back(struct ctr_gpu_context *context, const char *rootfs, const char *directory);

/**
 * ctr_gpu_container_leave_cgroup() - do not touch device rules, which somebody else manages
 *
 * Since: 0.1
 */
void ctr_gpu_container_leave_cgroup(struct ctr_gpu_container *container);

/**
 * ctr_gpu_container_leave_devices() - do not bind device nodes, which somebody else makes
 *
 * Since: 0.1
 */
void ctr_gpu_container_leave_devices(struct ctr_gpu_container *container);

/**
 * ctr_gpu_plan_apply() - give the container what the plan says
 * @plan:      borrowed
 * @container: borrowed
 *
 * All or nothing: what was done before a step failed is undone. The calling thread ends up in the container's mount
 * namespace if it has one of its own, so a process applies one plan, as its last deed; it must have a single thread.
 *
 * Return: 0; CTR_GPU_E_NO_PERMISSION; CTR_GPU_E_BAD_ROOTFS if the image leads a path into /proc or /sys;
 * CTR_GPU_E_ROOTFS_READ_ONLY; CTR_GPU_E_NO_CGROUP; CTR_GPU_E_KERNEL_TOO_OLD; negative errno; for a container made from a state,
 * what ctr_gpu_container_new() returns.
 * Since: 0.1
 */
int ctr_gpu_plan_apply(struct ctr_gpu_context *context, const struct ctr_gpu_plan *plan, struct ctr_gpu_container *container);

/* ---- bundle: a container that does not exist yet ---- */

/**
 * ctr_gpu_bundle_new() - an OCI bundle whose container has not been created
 * @directory:  the bundle
 * @config:     its configuration, as a path that counts from there; NULL for config.json
 * @ret_bundle: new bundle, owned by the caller, release with ctr_gpu_bundle_unref()
 *
 * Return: 0; -ENOENT if there is no bundle or no configuration; CTR_GPU_E_BAD_STATE; negative errno.
 * Since: 0.1
 */
int ctr_gpu_bundle_new(struct ctr_gpu_context *context, const char *directory, const char *config,
		       struct ctr_gpu_bundle **ret_bundle);

/**
 * ctr_gpu_bundle_unref() - release a bundle; what was applied to it stays
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
 * ctr_gpu_bundle_environment() - the environment of the container's process
 *
 * Return: NULL-terminated "NAME=value"; valid as long as the bundle.
 * Since: 0.1
 */
const char *const *ctr_gpu_bundle_environment(const struct ctr_gpu_bundle *bundle);

/**
 * ctr_gpu_bundle_set_hook() - say where ctr-gpu-hook is
 * @path: absolute
 *
 * Return: 0 or -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_bundle_set_hook(struct ctr_gpu_bundle *bundle, const char *path);

/**
 * ctr_gpu_plan_apply_to_bundle() - have the container created with what the plan says
 * @plan:   borrowed
 * @bundle: borrowed
 *
 * Writes devices, device rules, mounts and environment into the bundle's configuration, and files for the image's loader
 * into its root filesystem; hooks that would do the same are removed. What can be done only while the container is created,
 * such as covering files of /proc, is left to ctr-gpu-hook, which is registered in the configuration. All or nothing; the
 * same again changes nothing.
 *
 * Return: 0; CTR_GPU_E_BAD_STATE; CTR_GPU_E_BAD_ROOTFS; -ENOENT if ctr-gpu-hook is needed and was not named; negative errno.
 * Since: 0.1
 */
int ctr_gpu_plan_apply_to_bundle(struct ctr_gpu_context *context, const struct ctr_gpu_plan *plan, struct ctr_gpu_bundle *bundle);

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
 * @request: which adapters, and which driver capabilities and IMEX channels; its requirements count as the host is now
 * @kind:    "nvidia.com/gpu"; of a vendor that makes adapters, that vendor's, of any other, all of them
 * @hook:    absolute path of ctr-gpu-hook, which does what an engine cannot; NULL for a spec that does without and so is right
 *           only for the driver that the host has now
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT; CTR_GPU_E_NO_ADAPTER if there is none of the kind; as ctr_gpu_plan_new(); -EIO.
 * Since: 0.1
 */
int ctr_gpu_cdi_write(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const struct ctr_gpu_request *request,
		      const char *kind, const char *hook, FILE *file);

/**
 * ctr_gpu_cdi_path() - where ctr_gpu_cdi_save() would write
 * @path:     as there
 * @ret_path: of the file, to be released with free()
 *
 * For who notes what is to be undone before it is done.
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_cdi_path(struct ctr_gpu_context *context, const char *kind, const char *path, char **ret_path);

/**
 * ctr_gpu_cdi_save() - write a CDI spec to a file, whole or not at all
 * @path:     absolute; of a directory, in which the file is named after the kind, or of a file that ends in ".json"
 * @ret_path: of the file, to be released with free()
 *
 * A file that says the same already stays untouched. Another file of that directory that has the same devices is a warning in the
 * log.
 *
 * Return: as ctr_gpu_cdi_write(); CTR_GPU_E_NO_PERMISSION; negative errno.
 * Since: 0.1
 */
int ctr_gpu_cdi_save(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const struct ctr_gpu_request *request,
		     const char *kind, const char *hook, const char *path, char **ret_path);

/**
 * ctr_gpu_cdi_remove_stale() - remove specs that ctr_gpu_cdi_save() wrote for vendors whose adapters are gone
 * @host:        NULL for one that has no GPU device at all
 * @directory:   need not exist
 * @ret_removed: names of files, a line each, to be released with free()
 *
 * A file counts by its name and by what it says; others' files are left alone. Return: 0; negative errno.
 * Since: 0.1
 */
int ctr_gpu_cdi_remove_stale(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const char *directory,
			     char **ret_removed);

/**
 * ctr_gpu_cdi_run_hook() - what a hook does that specs of NVIDIA's tools name
 * @arguments: NULL-terminated, of nvidia-cdi-hook without its name: a command such as "update-ldcache" and its options
 * @state:     JSON that a runtime writes to its hooks' standard input; hostile
 * @size:      bytes
 *
 * For the stage createContainer, at which a hook is in the container's namespaces. What is not known, or not done for the
 * host's safety, is logged as a warning and no failure.
 *
 * Return: 0; CTR_GPU_E_BAD_STATE; as ctr_gpu_plan_apply().
 * Since: 0.1
 */
int ctr_gpu_cdi_run_hook(struct ctr_gpu_context *context, const char *const *arguments, const char *state, size_t size);

/**
 * ctr_gpu_cdi_refresh() - make the specs in a directory what they should be now
 * @host:      NULL for one that has no GPU device at all
 * @directory: need not exist
 * @hook:      absolute path of ctr-gpu-hook, for a spec that is not there yet
 *
 * Specs of vendors whose adapters are gone are removed, missing ones written, and stale ones written anew, with the hook and
 * the capabilities that they had. What is right is left alone, and so is what others wrote.
 *
 * Return: 0; as ctr_gpu_cdi_save().
 * Since: 0.1
 */
int ctr_gpu_cdi_refresh(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const char *directory, const char *hook);

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
 * Specs may be anybody's and say anything; what is wrong with one is part of the report.
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
 * ctr_gpu_cdi_report_check() - find out whether the specs would work
 * @host:   NULL for one that has no GPU device at all
 * @engine: "docker:28.2", "podman:4.3", "containerd:1.7", "cri-o:1.30" or "buildkit:0.20", which must be able to load them;
 *          NULL for none in particular
 *
 * Return: 0, whatever was found; CTR_GPU_E_BAD_ARGUMENT for an engine that nobody knows; -ENOMEM.
 * Since: 0.1
 */
int ctr_gpu_cdi_report_check(struct ctr_gpu_cdi_report *report, const struct ctr_gpu_host *host, const char *engine);

/**
 * ctr_gpu_cdi_report_is_fine() - whether there are specs, and no error was found in any
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
