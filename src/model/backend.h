/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a kind of host (GPU-PV, NVIDIA's driver, the kernel's own drivers) can do. Nothing outside a backend asks which
 * kind a host is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "model/adapter.h"
#include "model/plan.h"
#include "model/request.h"
#include "model/settings.h"

/* What makes a host ready, as steps, plain data: kernel modules, device nodes and their directories. */

struct load_options {
	const char *driver_root;   /* "/", or where driver files and perhaps a second /dev are; NULL: "/" */
	bool modeset;              /* load nvidia-modeset, too */
	bool replace;              /* put a node in the place of a file, or of a node with another number */
	struct strv imex_channels; /* numbers */
};

enum load_kind { LOAD_MODULE, LOAD_DIRECTORY, LOAD_NODE };
enum load_state { LOAD_MISSING, LOAD_THERE, LOAD_WRONG, LOAD_DONE };

struct load_step {
	enum load_kind kind;
	enum load_state state;
	char *name; /* "nvidia-uvm", "/dev/nvidia-uvm" */
	char *reason;
	char *found;  /* what is in the node's place, where that is wrong; NULL */
	dev_t number; /* of a node */
	mode_t mode;  /* of a node or directory */
	uid_t uid;
	gid_t gid;
};

struct load {
	struct load_step *steps; /* modules first, directories before what is in them */
	size_t count;
	struct strv remarks;
};

void load_clear(struct load *load);
#define _cleanup_load_ _cleanup_(load_clear)

/** Appends a step, whose strings are taken; NULL ones among name and reason count as -ENOMEM. Return: 0 or -ENOMEM. */
int load_add(struct load *load, const struct load_step *step);

/** Appends what @from has, which is empty afterwards. Return: 0 or -ENOMEM. */
int load_merge(struct load *load, struct load *from);

/* What is known of the driver, for requirements. A NULL or zero member is not known. */
struct driver_facts {
	int cuda_major, cuda_minor;
	char *driver_version; /* "580.95.05" */
	char *architecture;   /* compute capability, "9.0" */
	char *brand;
};

/* How a choice among the GPUs of a host is held, by this machine's settings. */
struct enforcement {
	const char *grade; /* "store", "environment", "guard"; NULL: a container that chooses is refused */
	bool strict;
	char *why; /* why the grade is not a stricter one, or holds against honest programs alone; NULL: it holds */
};

/* Which processes use adapters now, as the driver counts it. */

struct use_process {
	size_t adapter; /* its place in the inventory */
	pid_t pid;
	bool computes, draws;
	uint64_t memory;  /* bytes; USE_UNKNOWN_MEMORY */
	unsigned percent; /* of the adapter's time, of late; USE_UNKNOWN_PERCENT */
};

#define USE_UNKNOWN_MEMORY UINT64_MAX
#define USE_UNKNOWN_PERCENT UINT32_MAX

struct use {
	struct use_process *processes;
	size_t count;
	bool *known; /* of each adapter of the inventory: whether those that use it are among them */
};

void use_clear(struct use *use);
#define _cleanup_use_ _cleanup_(use_clear)

/** Appends one. Return: 0 or -ENOMEM. */
int use_add(struct use *use, const struct use_process *process);

struct rootfs;

/* What a hook of a CDI spec asks for by a vendor's command. @rootfs: the container's. Return: 0 or -ENOMEM. */
struct backend_hook {
	const char *command;
	int (*plan)(const struct rootfs *rootfs, struct plan *plan);
};

struct backend {
	const char *name;        /* in `info` and in JSON: "gpu-pv", "nvidia", "drm" */
	const char *device;      /* the character device that shows a host of this kind, or the first of several */
	const char *advice;      /* what to do where it is missing and should not be, sentences */
	const char *also_serves; /* "nvidia.com": its adapters of all vendors also answer to this one's words; NULL */
	const char
		*cache_name; /* file of boot_cache_read() with what is faster read there than asked for; NULL: none */
	const char *part;    /* what a part of a GPU is called: "MIG"; NULL if they cannot be divided */

	/**
	 * probe() - describe every adapter behind this kind of device, usable or not
	 *
	 * Appends to @inventory, in the order of the numbers that users see.
	 * @ret_seen: what plan() and facts() would have to ask again, for them; owned by the caller (forget())
	 *
	 * Return: 0; CTR_GPU_E_NO_DEVICE if the host has no device of this kind; another CTR_GPU_E_* or negative errno,
	 * with @err set, if it has one that cannot be asked.
	 */
	int (*probe)(const struct settings *settings, struct inventory *inventory, void **ret_seen, struct err *err);

	/** forget() - release what probe() has seen; NULL if it gives nothing */
	void (*free_data)(void *seen);

	/**
	 * plan() - add what a container needs for these adapters
	 * @selected: adapters of this backend, all usable, borrowed; @count may be 0 (driver files, no device)
	 *
	 * Return: 0; CTR_GPU_E_* or negative errno with @err set.
	 */
	int (*plan)(const struct settings *settings, void *seen, const struct request *request,
		    const struct adapter *const *selected, size_t count, struct plan *plan, struct err *err);

	/**
	 * facts() - what requirements are held against; NULL if the backend knows nothing
	 *
	 * Return: 0 or negative errno. Strings in @ret are owned by the caller (driver_facts_clear()).
	 */
	int (*facts)(const struct settings *settings, void *seen, const struct adapter *const *selected, size_t count,
		     struct driver_facts *ret);

	/**
	 * identify() - fill in the names that only the vendor's library knows, uuid or alias; NULL if it has none
	 * @adapters: of the inventory, also other backends'; those that have their names already are skipped
	 *
	 * Called when a request uses such a name, and when names are shown or written down. A container's start does
	 * not need it otherwise.
	 *
	 * Return: 0, whatever was found; CTR_GPU_E_* or negative errno with @err set if the library was not reached.
	 */
	int (*identify)(const struct settings *settings, struct adapter *adapters, size_t count, struct err *err);

	/**
	 * remarks() - what an administrator should know of the driver's files; NULL if there is never anything
	 *
	 * Asked when the inventory is written, and not on the way to a container. Return: 0 or -ENOMEM; sentences in
	 * @ret.
	 */
	int (*driver_notes)(const struct settings *settings, const struct inventory *inventory, struct strv *ret);

	/**
	 * describe() - what the inventory says of an adapter besides; NULL: nothing
	 *
	 * Appends a label and its value by turns. Return: 0 or -ENOMEM.
	 */
	int (*describe)(const struct adapter *adapter, struct strv *ret);

	/**
	 * hold() - how a choice among the adapters would be held; NULL where each has a node of its own
	 * @adapters: of the inventory, also other backends'
	 *
	 * Asked when the inventory is written. Return: 1 with @ret, whose @why is owned by the caller; 0 if there is
	 * nothing to choose from; -ENOMEM.
	 */
	int (*enforcement)(const struct settings *settings, const struct adapter *adapters, size_t count,
			   struct enforcement *ret);

	/**
	 * find_use() - which processes use its adapters now; NULL where the driver does not tell
	 * @adapters: of the inventory, also other backends'
	 * @use:      appended to; its known has a place for each of these
	 *
	 * Return: 0; CTR_GPU_E_* or negative errno with @err set if the driver was not reached.
	 */
	int (*find_use)(const struct settings *settings, const struct adapter *adapters, size_t count, struct use *use,
			struct err *err);

	const struct backend_hook *hooks; /* the last is {0}; NULL: none */
};

/* What `ctr-gpu load` does for a kind of host, apart from struct backend, because the hook does not contain it. */
struct backend_load {
	/**
	 * decide() - what is there and what is missing
	 *
	 * Return: 0; CTR_GPU_E_NO_DEVICE if the host has no such GPU; CTR_GPU_E_WRONG_NODE if something else is in a
	 * node's place and is not to be replaced; CTR_GPU_E_UNKNOWN_DEVICE for an IMEX channel that cannot be; negative
	 * errno. @err is set.
	 */
	int (*decide)(const struct load_options *options, struct load *ret, struct err *err);

	/**
	 * apply() - do what is missing; NULL if nothing ever is
	 * @load: of decide(); afterwards it has all steps, also those that showed when the modules were loaded
	 *
	 * Return: 0; CTR_GPU_E_NO_PERMISSION; CTR_GPU_E_KERNEL_MODULE; as decide(). @err is set.
	 */
	int (*apply)(const struct load_options *options, struct load *load, struct err *err);
};

void driver_facts_clear(struct driver_facts *facts);
