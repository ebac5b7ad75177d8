/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of this folder share, a section for each. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "base/paths.h"
#include "base/str.h"
#include "model/adapter.h"
#include "model/backend.h"
#include "model/plan.h"
#include "model/request.h"
#include "model/settings.h"
#include "root/rootfs.h"
#include "system/machine.h"

/* ---- proc ---- */

/*
 * The text that the kernel and NVIDIA's kernel module write below /proc: bytes in, values out. Nothing is opened here.
 *
 * Facts: nv-procfs.c and nv-caps.c of NVIDIA's open kernel modules; drivers of other ages differ in blanks and in which
 * lines there are, so a value is found by its name alone.
 */

/**
 * proc_driver_version() - the version in /proc/driver/nvidia/version
 * @ret: "580.159.04", owned by the caller
 *
 * Return: 0; -ENOENT if the text names none; -ENOMEM.
 */
int proc_driver_version(const char *text, char **ret);

/** Whether text is a driver version: two or three numbers with dots between. */
bool proc_is_version(const char *text);

/**
 * proc_field() - the value of a line `name:<blanks>value`
 *
 * Return: 0; -ENOENT if the line or its value is missing; -ENOMEM.
 */
int proc_field(const char *text, const char *name, char **ret);

/** The same for a number up to @max. Return: 0; -ENOENT; -EINVAL if it is not a number or too large; -ENOMEM. */
int proc_number(const char *text, const char *name, unsigned max, unsigned *ret);

/**
 * proc_device_major() - which major number a driver has, as /proc/devices says
 *
 * Block devices are not looked at. Return: 0; -ENOENT.
 */
int proc_device_major(const char *devices, const char *name, unsigned *ret);

/**
 * proc_set_field() - the text with the value of one line replaced
 *
 * Return: 0; -ENOENT if the line is missing; -ENOMEM.
 */
int proc_set_field(const char *text, const char *name, const char *value, char **ret);

/* ---- module ---- */

/* The kernel module as it runs: its version, its device numbers, and whether a node below /dev is really its own. */

struct module {
	char *version; /* "580.159.04" */
	char *devices; /* /proc/devices */
};

void module_clear(struct module *module);
#define _cleanup_module_ _cleanup_(module_clear)

/**
 * module_read() - ask the kernel
 *
 * Return: 0; CTR_GPU_E_NO_DEVICE, with @err untouched, if /dev/nvidiactl is not a character device;
 * CTR_GPU_E_NO_ADAPTER with
 * @err set if it is one and no module stands behind it; negative errno with @err set.
 */
int module_read(struct module *ret, struct err *err);

/** The major number that a driver has for its nodes. @devices: /proc/devices. Return: 0; -ENOENT. */
int module_major(const char *devices, const char *driver, unsigned *ret);

/* Minors of nodes that have no GPU (kernel-open/nvidia/nv-linux.h, nvidia-modeset, nvidia-uvm, nvidia-nvswitch). */
enum {
	MINOR_CONTROL = 255,
	MINOR_MODESET = 254,
	MINOR_UVM = 0,
	MINOR_UVM_TOOLS = 1,
	MINOR_NVSWITCHCTL = 255,
};

/**
 * module_node() - look at a node, which must be a driver's one with a certain minor
 * @driver: as /proc/devices calls it: "nvidia", "nvidia-uvm", "nvidia-caps"
 *
 * A name below /dev proves nothing: the number does.
 *
 * Return: 0; -ENOENT if the node is missing; -ENXIO if the driver has no number; -ENODEV if the node is something
 * else; negative errno.
 */
int module_node(const struct module *module, const char *path, const char *driver, unsigned node_minor,
		struct stat *ret);

/** Whether it is for the module to drive. */
bool module_is_gpu(const struct pci_function *function);

/** A file below /proc or /sys that has less than a page, in one read. Return: 0; negative errno. */
int module_read_small(const char *path, char **ret);

/** The same, however long it is. */
int module_read_file(const char *path, char **ret);

/* ---- mig ---- */

/*
 * Parts of GPUs (Multi-Instance GPU): a GPU instance has a share of memory and engines, a compute instance in it some
 * of its cores. To open one is a capability: a file below /proc/driver/nvidia/capabilities names the minor of a node in
 * /dev/nvidia-caps. Where /proc/devices has no "nvidia-caps", the file below /proc itself is the capability.
 */

/* The parts that there are of a machine's GPUs. */
struct mig_part {
	int minor; /* of the GPU */
	int gpu_instance, compute_instance;
};
struct mig_parts {
	struct mig_part *items;
	size_t count;
};

/**
 * mig_plan() - the capabilities that a GPU or a part of one needs
 *
 * A GPU gets those of all its parts. Return: 0; CTR_GPU_E_NO_ADAPTER or negative errno with @err set.
 */
int mig_plan(const struct module *module, const struct mig_parts *parts, const struct adapter *adapter,
	     struct plan *plan, struct err *err);

/** The capability of a file below PATH_PROC_NVIDIA/capabilities, such as "mig/config". Return: as mig_plan(). */
int mig_plan_capability(const struct module *module, const char *name, const char *reason, struct plan *plan,
			struct err *err);

/* ---- cache ---- */

/*
 * Facts about a native host that take long to find. They are kept below /run until the next boot, each until something
 * shows that it changed. For a GPU's text the driver reads the GPU's PCI configuration. The text is kept for one
 * binding, of this device to this load of the module. To find the driver's libraries, the loader cache and directories
 * of thousands of files are read. The result is kept while their identity and times are the same.
 *
 * Only root writes the file, and it is read only if no other user can have written it. Its contents are validated like
 * the originals. Without the cache the originals are read.
 */

#define NVIDIA_CACHE_NAME "nvidia" /* the file's name */

struct nvidia_cache_gpu {
	char *address;      /* on the PCI bus */
	char *binding;      /* nvidia_cache_driver_binding() */
	uint32_t device_id; /* PCI's */
	char *information;  /* what the driver writes of it */
	bool is_here;       /* it was asked for since */
};

/* A directory, as it was when it was looked at. */
struct cached_directory {
	char *stamp; /* nvidia_cache_fingerprint() */
	char *path;  /* without symlinks, as this machine has it */
};

struct nvidia_cache_libraries {
	struct cached_directory place;
	bool is_32;
	bool is_listed;
	struct strv names; /* of the driver's libraries in it, if it is listed */
};

enum {
	NVIDIA_CACHE_GPUS_MAX = 256,
	NVIDIA_CACHE_PLACES_MAX = 16,
	NVIDIA_CACHE_DIRS_MAX = 8,
	NVIDIA_CACHE_NAMES_MAX = 256,
};

/* Where the driver's libraries are. */
struct nvidia_cache_driver {
	char *version;                                           /* NULL: that is not known */
	char *cache;                                             /* stamp of the loader cache that led there */
	char *root;                                              /* the driver root, without symlinks: "" for "/" */
	struct cached_directory places[NVIDIA_CACHE_PLACES_MAX]; /* where the links are that the loader cache names */
	size_t place_count;
	struct nvidia_cache_libraries dirs[NVIDIA_CACHE_DIRS_MAX];
	size_t dir_count;
};

struct nvidia_cache {
	char *head; /* the first line of what may be believed now; NULL: nothing is kept */
	struct nvidia_cache_gpu *gpus;
	size_t gpu_count;
	struct nvidia_cache_driver driver;
	bool is_new; /* there is more than was read */
};

/** Reads what is kept. What cannot be read or believed is not known. Return: 0 or -ENOMEM. */
int nvidia_cache_open(struct nvidia_cache *ret);

void nvidia_cache_close(struct nvidia_cache *cache);

/**
 * nvidia_cache_parse() - what a file says
 * @text: hostile; taken apart
 * @ret:  with the head that the file must have; otherwise empty, and still so if the file says nothing
 *
 * Return: 0; -EINVAL if it is malformed or has another head; -ENOMEM.
 */
int nvidia_cache_parse(char *text, size_t size, struct nvidia_cache *ret);

/** The same as a file. Return: 0 or -ENOMEM. */
int nvidia_cache_print(const struct nvidia_cache *cache, char **ret);

/** Keeps what is new, if the caller is root. */
void nvidia_cache_write(struct nvidia_cache *cache);

/* ---- GPUs ---- */

/**
 * nvidia_cache_driver_binding() - what stays the same only as long as a driver has a device
 *
 * The number of a link that the kernel makes whenever a driver takes a device; sysfs gives no number twice in a boot.
 *
 * Return: 0; -ENOENT where no driver has it, or sysfs does not show it; -ENOMEM.
 */
int nvidia_cache_driver_binding(const char *address, char **ret);

/** Return: what is known of a GPU; NULL. */
struct nvidia_cache_gpu *nvidia_cache_find_gpu(const struct nvidia_cache *cache, const char *address,
					       const char *binding);

/** Adds a GPU, in place of one at the same address. Return: 0 or -ENOMEM. */
int nvidia_cache_put_gpu(struct nvidia_cache *cache, const char *address, const char *binding, uint32_t device_id,
			 const char *information);

/* ---- directories ---- */

/** Whether what was looked at from @since on was unchanged as long as it takes to see the next change by its times. */
bool nvidia_cache_is_settled(const struct stat *st, time_t since);

/** Identity and times of a file or directory. Return: 0 or -ENOMEM. */
int nvidia_cache_fingerprint(const struct stat *st, char **ret);

/** Whether a stamp is of this. */
bool nvidia_cache_is_fingerprint(const char *stamp, const struct stat *st);

void nvidia_cache_drop_driver(struct nvidia_cache_driver *driver);

/* ---- probe ---- */

/* What a native host showed when its GPUs were listed. A plan and facts follow from it, so that a start asks once. */

struct nvidia_probe {
	struct module module;
	struct strv gpus; /* PCI addresses of all that the module drives, usable or not */
	struct mig_parts parts;
	struct nvidia_cache known;
};

/* ---- gpu ---- */

/* The GPUs that the kernel module drives, from /proc/driver/nvidia/gpus. */

/**
 * gpus_read() - append every GPU, in the order of PCI addresses, as nvidia-smi does
 *
 * Parts of GPUs (MIG) follow the GPU they belong to.
 * @probe: with the module; the rest is filled in
 * @backend: of the adapters
 *
 * Return: 0; negative errno with @err set.
 */
int gpus_read(struct nvidia_probe *probe, const struct backend *backend, struct inventory *inventory, struct err *err);

/** Fills what the text of gpus/<address>/information says. Return: 0; -EINVAL if it has no usable minor; -ENOMEM. */
int gpu_parse_information(const char *text, struct adapter *adapter, bool *ret_excluded);

/*
 * What a GPU's model name and PCI id tell of it, where that is safe, so that requirements on brand and architecture can
 * be judged without the vendor's library.
 */

/** Return: "tesla", "geforce", "geforcertx", … as NVIDIA_REQUIRE_* spells them; NULL if the name does not tell. */
const char *gpu_brand(const char *model);

/** Return: the compute capability, "9.0"; NULL if the PCI device id does not tell. */
const char *gpu_architecture(uint32_t device_id);

/* ---- driver_files: what files are for ---- */

/*
 * What the files of NVIDIA's driver are for. The tables say which capability a file goes with; they do not decide what
 * a driver is: a library of this driver version that they do not know goes with compute.
 */

struct driver_library {
	char stem[32];         /* "libcuda": the file is libcuda.so.<driver version> */
	const char *soversion; /* "1": its SONAME is libcuda.so.1; NULL: its SONAME is the file's name */
	uint32_t capabilities; /* any of them */
	bool development;      /* programs also look for libcuda.so */
	bool own_version;      /* the file has a version of its own, and is found by SONAME */
	const char *meaning;
};

extern const struct driver_library driver_libraries[];
extern const size_t driver_library_count;

/** Return: the entry of a stem of @length characters; NULL if there is none. */
const struct driver_library *driver_library_find(const char *stem, size_t length);

struct driver_program {
	const char *name;
	uint32_t capabilities;
	const char *meaning;
};

extern const struct driver_program driver_programs[];
extern const size_t driver_program_count;

struct driver_config {
	const char *name; /* below /usr/share or /etc */
	uint32_t capabilities;
	const char *target; /* directory that it is looked for in, if that is only one */
	const char *meaning;
	const char *library; /* the SONAME in it, if it has nothing else; NULL: its contents are not known */
};

extern const struct driver_config driver_configs[];
extern const size_t driver_config_count;

struct driver_socket {
	const char *path;
	bool directory;
	uint32_t capabilities;
	const char *meaning;
};

extern const struct driver_socket driver_sockets[];
extern const size_t driver_socket_count;

/* ---- driver_files: where they are ---- */

/*
 * The driver's files on this machine, wherever its packager put them. The kernel module's version is the key: a
 * directory with a library of exactly that version belongs to the driver. Such directories are found through
 * the host's loader cache, and failing that in well-known places; all below the driver root, if there is one. Inside a
 * container of ours, which may start containers itself, they are where we put them.
 */

/*
 * Where the driver's libraries are in a container: one directory of ours, since a plan does not know the image's layout
 * and the loader cache finds them in any. Each library has its SONAME there: programs ask for it, and unlike the file's
 * own name it does not change with the driver. So a container that is started again keeps nothing stale.
 */
#define LIBRARY_DIR_32 PATH_CONTAINER "/32"

enum { DRIVER_FILES_DIRS_MAX = NVIDIA_CACHE_DIRS_MAX };

struct driver_files_dir {
	int fd;
	char *path;   /* without symlinks, as this machine has it: with the driver root in front */
	bool is_32;   /* of the 32-bit ABI beside the machine's own */
	bool is_ours; /* PATH_CONTAINER of the container that this is: SONAMEs tell its libraries, not the version */
	struct stat st;
	bool is_listed;
	struct strv names; /* of the driver's libraries in it, ordered, once it is listed */
};

/* A directory in which files were looked for. */
struct driver_files_place {
	char *path; /* below the driver root; NULL: none */
	int fd;     /* negative errno: what opening it without following symlinks says */
};

enum { DRIVER_FILES_SEARCHED_MAX = 8 };

struct driver_files {
	const char *version; /* borrowed */
	struct rootfs root;
	struct driver_files_place searched[DRIVER_FILES_SEARCHED_MAX]; /* the last ones */
	size_t next_searched;
	char *root_path; /* without symlinks; "" for "/" */
	struct driver_files_dir dirs[DRIVER_FILES_DIRS_MAX];
	size_t dir_count;
	char *other_version; /* of a libcuda that does not belong to the kernel module; NULL: none was found */

	/* How the directories were found, if the loader cache alone led there. */
	time_t since; /* nothing was looked at before; the process may have been held up after that */
	bool has_cache;
	struct stat cache;
	struct strv places; /* directories that it names, below the driver root */
	bool is_new;        /* something of that is not known from an earlier time */
};

void driver_files_close(struct driver_files *files);
#define _cleanup_install_ _cleanup_(driver_files_close)

/**
 * driver_files_open() - find the driver's directories
 * @version: of the kernel module; must outlive the installation
 * @cache:   what an earlier start found counts if nothing has changed since; NULL: look
 *
 * Return: 0; CTR_GPU_E_DRIVER_LIBRARY if the libraries are nowhere or of another version; negative errno. @err is set.
 */
int driver_files_open(const struct settings *settings, const char *version, const struct nvidia_cache *cache,
		      struct driver_files *ret, struct err *err);

/**
 * driver_files_cache_put() - have the next start know what was found
 *
 * Nothing is kept that changed so lately that its times may not show the next change. Return: 0 or -ENOMEM.
 */
int driver_files_cache_put(const struct driver_files *files, struct nvidia_cache *cache);

/* A file of the driver. */
struct driver_files_file {
	char *path; /* without symlinks, as this machine has it */
	struct stat st;
};

/**
 * driver_files_find() - a file or directory by its path below the driver root
 * @path: absolute, each name behind one slash, none of them "." or ".."
 *
 * Return: 0; -ENOENT and other negative errno.
 */
int driver_files_find(const struct driver_files *files, const char *path, struct driver_files_file *ret);

/** The same by a directory ("" is the driver root) and a path below it: of many files in few directories. */
int driver_files_find_in(struct driver_files *files, const char *directory, const char *name,
			 struct driver_files_file *ret);

/** Return: a path of this machine as it is below the driver root; NULL if it is not below it. */
const char *driver_files_path_inside(const struct driver_files *files, const char *path);

/* A library of the driver's version, or one that came with it. */
struct driver_files_library {
	char *path;
	char *soname;
	const struct driver_library *known; /* NULL: the table does not know it */
	bool is_32;
	struct stat st;
};

struct driver_files_libraries {
	struct driver_files_library *items;
	size_t count;
};

void driver_files_libraries_clear(struct driver_files_libraries *libraries);
#define _cleanup_libraries_ _cleanup_(driver_files_libraries_clear)

/**
 * driver_files_libraries() - the libraries of some capabilities, ordered by directory and name
 * @capabilities: of enum capability; CAPABILITY_COMPAT32 adds the 32-bit ones
 *
 * Return: 0 or negative errno.
 */
int driver_files_libraries(struct driver_files *files, uint32_t capabilities, struct driver_files_libraries *ret);

/* ---- plan ---- */

/* What every part of the native plan works with. */

struct nvidia_plan {
	const struct settings *settings;
	struct nvidia_probe *seen;
	const struct module *module; /* in that */
	struct driver_files *install;
	uint32_t capabilities;
	const struct adapter *const *selected;
	size_t selected_count;
	struct plan *plan;
	struct err *err;
};

/* Each adds a part of the plan. Return: 0; CTR_GPU_E_* or negative errno, with err set. */

/** Device nodes of the selected GPUs, of the driver, of capabilities and IMEX channels. */
int plan_nodes(const struct nvidia_plan *nvidia_plan, const struct request *request);

/** Libraries, where the loader finds them. */
int plan_libraries(const struct nvidia_plan *nvidia_plan);

/** Programs, configuration, firmware, sockets, and modules that are looked for in fixed places. */
int plan_files(const struct nvidia_plan *nvidia_plan);

/** /proc/driver/nvidia as the container may see it, and the application profile. */
int plan_procfs(const struct nvidia_plan *nvidia_plan);

/* ---- load ---- */

/*
 * Making a native host ready: NVIDIA's kernel modules are loaded and the device nodes are there. Distributions leave
 * this to the first program that uses the GPU (nvidia-modprobe, setuid root). So a host that only runs containers has
 * neither after a boot.
 *
 * What is to be done is a list of steps, plain data: load_decide() makes it and changes nothing, load_apply() acts on
 * it. Never on the way to a container: the hook has no code of this.
 */

/* Where this host's files are; others in tests. */
struct load_host {
	const char *proc, *sys, *dev;
	const char *programs; /* directories to search for modprobe and restorecon, with colons between them */
};

/**
 * As decide() of struct backend_load. Nodes of a module that is not loaded are not in the list: their numbers show once
 * it is.
 */
int load_decide(const struct load_host *host, const struct load_options *options, struct load *ret, struct err *err);

/**
 * As apply() of struct backend_load. What was done before a step failed stays: it is right, and the next run goes on
 * from there.
 */
int load_apply(const struct load_host *host, const struct load_options *options, struct load *load, struct err *err);

/* ---- between the files of this noun ---- */

/** Appends the nodes the loaded modules want below @dev. @devices: /proc/devices. Return: 0 or as load_decide(). */
int load_add_nodes(const struct load_host *host, const struct load_options *options, const char *devices,
		   const char *dev, struct load *load, struct err *err);
