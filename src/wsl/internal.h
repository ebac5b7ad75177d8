/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of this folder share, a section for each. */

#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "dxg/dxg.h"
#include "model/adapter.h"
#include "model/backend.h"
#include "model/check.h"
#include "model/plan.h"
#include "model/request.h"
#include "model/settings.h"

/* ---- backend ---- */

/* The backend for GPU-PV hosts: adapters behind /dev/dxg, drivers in stores that the Windows host shares. */

extern const struct backend backend_gpu_pv;

/* ---- store ---- */

/* Driver stores: the directories of the Windows host's driver packages, shared with or copied to this machine. */

/**
 * store_directory() - where on this machine a store is
 * @told: what the driver says: a Windows path with a component "FileRepository" in any case, or a path below
 *        /usr/lib/wsl/drivers; hostile
 * @ret:  new string, owned by the caller; nothing says that it exists
 *
 * Return: 0; -EINVAL for anything else, for a component "..", and for characters that no Windows path has; -ENOMEM.
 */
int store_directory(const char *told, char **ret);

enum store_content {
	STORE_MISSING,
	STORE_WITHOUT_LIBRARY, /* files for Windows alone, or none */
	STORE_HAS_LIBRARY,     /* in it, or a directory down; or we cannot read it, so it may have one */
};

/** What is at @path. @ret: untouched unless all of it could be read; released with the adapter. */
enum store_content store_look(const char *path, struct adapter_store *ret);

/* ---- driver store ---- */

/* A directory of the driver's files that has been read. */

#define DRIVER_STORE_SMI "nvidia-smi"

struct driver_store {
	int fd; /* -1: what was read at another time */
	struct stat st;
	struct strv libraries; /* "libcuda.so.1", sorted */
	bool has_smi;          /* it has a file "nvidia-smi", as far as the directory says */
	bool noexec;           /* its mount is */
	bool has_outside_link; /* it has a symlink to what a container does not get with the directory */
};

void driver_store_clear(struct driver_store *store);
#define _cleanup_listing_ _cleanup_(driver_store_clear)

/** Reads the directory at @path. Return: 0; negative errno; @ret, cleared before, is released in any case. */
int driver_store_read(const char *path, struct driver_store *ret);

/* ---- adapter ---- */

/* What an adapter's facts, from whichever source, come to: whether it can be used and where it stands in the list. */

typedef enum store_content (*adapter_look_fn)(const char *path, struct adapter_store *ret);

/**
 * adapter_classify() - describe one adapter and say whether a container can use it
 * @facts: borrowed, hostile
 * @look:  what is in a directory; store_look() but in tests
 * @ret:   released with adapter_clear(); its backend is not set
 *
 * Return: 0 or -ENOMEM.
 */
int adapter_classify(const struct dxg_facts *facts, adapter_look_fn look, struct adapter *ret);

/**
 * adapter_sort() - the order of adapters for their numbers
 *
 * NVIDIA's first, by PCI address, so that an index means what it means to nvidia-smi; then those of others that render,
 * by PCI address; then those that only compute. Adapters without an address keep the driver's order, behind those with
 * one. Unusable ones come last.
 */
void adapter_sort(struct adapter *adapters, size_t count);

/* ---- dxcore ---- */

/* The inventory from libdxcore, which ctr-gpu-driverd loads. */

/**
 * dxcore_find() - the libdxcore.so of this machine
 * @ret: its path, owned by the caller; NULL if there is none
 *
 * Looked for where the loader would, then in /usr/lib/wsl/lib, which not every host's loader knows, then in
 * settings->library_dirs.
 *
 * Return: 0 or -ENOMEM.
 */
int dxcore_find(const struct settings *settings, char **ret);

/* ---- version ---- */

/* Which GPU-PV host this is. For advice to a user alone: what is done never depends on it. */

enum wsl_version {
	WSL_NONE,
	WSL_1, /* Windows's own imitation of Linux, which has no devices */
	WSL_2,
};

enum wsl_version wsl_version(void);

/* ---- loaders ---- */

/* The libraries in PATH_WSL_LIB that programs load first. */

/** What to do where @file of a directory of the driver is missing or damaged: a sentence. */
const char *loaders_remedy(const char *file, bool wsl);

/**
 * loaders_check() - whether programs find libdxcore and, with @nvidia, NVIDIA's loader for CUDA
 *
 * Return: 0; CTR_GPU_E_DRIVER_LIBRARY, with @err set, if one is missing, empty or a link to nothing.
 */
int loaders_check(bool nvidia, struct err *err);

/**
 * loaders_plan() - the same for a plan, to which a libdxcore that is missing is an obstacle: the image may have one
 *
 * Return: as loaders_check(), but for such a libdxcore; -ENOMEM.
 */
int loaders_plan(bool nvidia, struct plan *plan, struct err *err);

/* ---- plan ---- */

/* What a container needs for adapters behind /dev/dxg. */

/** As struct backend's plan(). */
int gpu_pv_plan(const struct settings *settings, void *seen, const struct request *request,
		const struct adapter *const *selected, size_t count, struct plan *plan, struct err *err);

/* ---- environment ---- */

/* The variables that user-mode drivers need on GPU-PV hosts: one table. */

/**
 * environment_plan() - add the variables for these adapters
 * @selected: of this backend; if the plan is for others, too, what would keep programs from those is left out
 *
 * Return: 0 or -ENOMEM.
 */
int environment_plan(const struct request *request, const struct adapter *const *selected, size_t count,
		     struct plan *plan);

/* ---- enforce ---- */

/* How a choice among the adapters of a GPU-PV host is held, by the administrator's wish and what this host can do. */

/**
 * enforce_plan() - fill in the plan's choice; nothing for all GPUs, which is what most containers ask for
 * @selected: of this backend
 *
 * Return: 0; CTR_GPU_E_GUARD with @err set if the choice must be held and cannot be; -ENOMEM.
 */
int enforce_plan(const struct settings *settings, const struct adapter *const *selected, size_t count,
		 struct plan *plan, struct err *err);

/** Whether these are not all GPUs of the host. NPUs are not counted: users who choose all GPUs expect none. */
bool enforce_is_choice(const struct adapter *const *selected, size_t count);

/** The same for whichever adapter is chosen: hold() of struct backend. */
int enforce_describe(const struct settings *settings, const struct adapter *adapters, size_t count,
		     struct enforcement *ret);

/* ---- uuid ---- */

/* The UUIDs of adapters. */

/** As struct backend's identify(), given this backend's adapters alone. */
int uuid_identify(const struct settings *settings, struct adapter *adapters, size_t count, struct err *err);
