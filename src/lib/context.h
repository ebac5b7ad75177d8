/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_context, ctr_gpu_host and ctr_gpu_request. */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/paths.h"
#include "ctr-gpu.h"
#include "model/backend.h"
#include "model/request.h"
#include "model/settings.h"
#include "root/undo_log.h"

struct ctr_gpu_log_target {
	ctr_gpu_log_fn log;
	void *user;
};

struct ctr_gpu_context {
	struct settings settings;
	struct err err;
	char *message; /* ERR_MESSAGE_MAX bytes, in which ctr_gpu_context_message() makes one of both its parts */
	struct ctr_gpu_log_target target;
	struct undo_log
		*undo_log; /* of the child of ctr_gpu_run_in_child() that this is, shared with its parent; else NULL */
	pid_t caller;      /* the process that started its parent */
	bool ends;         /* child and parent end when the work is done */
	bool takes_back;   /* the work of the child is to take back what a container was given */
};

/** The process that started this program. */
pid_t context_caller(const struct ctr_gpu_context *context);

/**
 * The list of changes that a function makes: the child's list, which its parent releases, or one of its own. NULL
 * without memory.
 */
struct undo_log *context_begin_undo_log(const struct ctr_gpu_context *context);
void context_end_undo_log(const struct ctr_gpu_context *context, struct undo_log *undo_log);

/* Fills struct settings: defaults, then /etc/ctr-gpu/config.json. */

void settings_init(struct settings *settings);
void settings_clear(struct settings *settings);

/**
 * settings_load() - take what a configuration file says
 * @path: NULL for PATH_CONFIG, which need not exist
 *
 * Return: 0; CTR_GPU_E_BAD_CONFIG or negative errno with @err set; @settings then hold what was read so far.
 */
int settings_load(struct settings *settings, const char *path, struct err *err);

/** The same from bytes; @path is for messages. */
int settings_parse(struct settings *settings, const char *path, const char *data, size_t size, struct err *err);

/*
 * The kinds of hosts, in the order of their adapters' numbers. A new one is a folder, and its name in this line. By its
 * name X(name) makes the list of what every kind has: struct backend backend_NAME, struct backend_load loader_NAME.
 */

#define BACKENDS(X) X(gpu_pv) X(nvidia) X(drm)

/* Behind ctr_gpu_host: what every backend found, under one numbering. */

enum { HOST_BACKENDS_MAX = 4 };

struct ctr_gpu_host {
	const struct settings *settings; /* of the context, borrowed */
	struct inventory inventory;      /* usable adapters first, each at the position that is its index */
	const struct backend *present[HOST_BACKENDS_MAX]; /* those whose device the host has */
	void *seen[HOST_BACKENDS_MAX];                    /* by each of them, for itself */
	size_t present_count;
};

/** What a backend's probe() has seen, for its other members. */
void *host_backend_data(const struct ctr_gpu_host *host, const struct backend *backend);

/** Removes what backends keep until the next boot: they ask again. */
void host_drop_cache(void);

/** Every kind of host that there is. Return: NULL behind the last. */
const struct backend *host_backend(size_t number);

/**
 * host_identify() - the names that only vendors' libraries know (struct backend's identify())
 *
 * Return: 0; -ENOMEM; of the first backend that could not ask, what it returned, with @err set; the others have.
 */
int host_identify(const struct ctr_gpu_host *host, struct err *err);

/**
 * host_find_use() - which processes use the host's adapters now (struct backend's find_use())
 * @ret: owned by the caller (use_clear())
 *
 * Return: 0, also where some or all drivers do not tell, which @ret says of each; the first failure of a backend, with
 * @err set; -ENOMEM.
 */
int host_find_use(const struct ctr_gpu_host *host, struct use *ret, struct err *err);

/**
 * host_load_guard() - load what holds a choice, where the settings want it and there is something to choose from
 *
 * Choices of containers that are gone are removed. Return: 0, also where it cannot be and need not; CTR_GPU_E_GUARD or
 * negative errno with @err set.
 */
int host_load_guard(const struct ctr_gpu_host *host, struct err *err);

/**
 * host_exclusive_mark() - the adapters that a list of names means, as for ctr_gpu_request_set_devices()
 * @marked: by position in the inventory; those are set
 *
 * Return: 0; as selection_new(), with @err set.
 */
int host_exclusive_mark(const struct ctr_gpu_host *host, const char *names, bool *marked, struct err *err);

/* What settings say that one container at a time may have; two lists by position in the inventory. */
struct host_exclusive {
	bool *marked;
	const char **possible; /* the first unknown name that may mean it, as not all of its names are known; or NULL */
	struct strv unknown;   /* names that no adapter is known by, or none that can be used */
	char *failure;         /* why a vendor's library told no names; NULL */
};

void host_exclusive_clear(struct host_exclusive *exclusive);
#define _cleanup_exclusive_ _cleanup_(host_exclusive_clear)

/**
 * host_exclusive_find() - look for them; a name of several adapters means each of them
 * @names: as the settings have them; an entry may be a list
 * @ret:  empty before; owned by the caller, also on failure (host_exclusive_clear())
 *
 * Return: 0 or -ENOMEM.
 */
int host_exclusive_find(const struct ctr_gpu_host *host, const struct strv *names, struct host_exclusive *ret);

/** What claims call an adapter, the same in every process until the next boot; a name of a file. */
enum { HOST_EXCLUSIVE_KEY_SIZE = 64 };
void host_exclusive_key(const struct adapter *adapter, char ret[HOST_EXCLUSIVE_KEY_SIZE]);

/** Whether a container that was given an adapter has the exclusive one by that: the same, its part or its whole. */
bool host_exclusive_has(const struct adapter *adapter, const struct adapter *given);

/** Facts about the driver behind a backend's usable adapters; what cannot be had is empty (driver_facts_clear()). */
void host_read_facts(const struct ctr_gpu_host *host, const struct backend *backend, struct driver_facts *ret);

/* Behind ctr_gpu_request. What a container asks for by itself is read in src/oci/env_request.h. */

struct ctr_gpu_request {
	struct ctr_gpu_context *context;
	struct request data;
};

/**
 * request_read_mode() - what an environment says of vCUDA, for a request that is otherwise made by words
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT with a message.
 */
int request_read_mode(struct ctr_gpu_request *request, const char *const *environment);
