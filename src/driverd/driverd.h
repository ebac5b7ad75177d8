/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The client's side of ctr-gpu-driverd, which loads vendor code; vCUDA's programs load it themselves. It is started for
 * one question, which it is asked in one datagram on a socket that it inherits, and gone before the answer is used; or
 * it watches until its client ends that. A library that hangs or crashes costs that child and a bounded wait.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "dxg/dxg.h"
#include "model/settings.h"

/**
 * driverd_dxcore_adapters() - what libdxcore says of the adapters
 * @library:   absolute path of libdxcore.so, for the child to load
 * @ret:       array of facts, owned by the caller (dxg_facts_free())
 *
 * Return: 0; CTR_GPU_E_DRIVER_LIBRARY if the library cannot be loaded, lacks symbols, or crashed its process;
 * CTR_GPU_E_DRIVER_TIMEOUT after settings->driver_timeout_ms; -ETIMEDOUT if moreover the child cannot be killed, since
 * the kernel's device hangs and would hang for every process; negative errno. @err is set and names the library.
 */
int driverd_dxcore_adapters(const struct settings *settings, const char *library, struct dxg_facts **ret,
			    size_t *ret_count, struct err *err);

/* What NVML calls a GPU, or a part of one (MIG). */
struct driverd_name {
	char *uuid; /* "GPU-…", or "MIG-…", which only NVML knows; NULL: unknown */
	char *of;   /* of a GPU its PCI address, "0000:01:00.0"; of a part its GPU's UUID; NULL: unknown */
	bool is_part;
	unsigned gpu_instance, compute_instance; /* of a part */
	char *profile;                           /* of a part, "1g.18gb"; NULL: unknown */
	unsigned refused; /* why NVML has not said which processes use it, nvmlReturn_t; 0: it has, or was not asked */
};

/* What a process uses of one of these. */
struct driverd_process {
	unsigned name; /* its place among the names */
	unsigned pid;
	bool computes, draws;
	uint64_t memory;  /* bytes; DRIVERD_UNKNOWN_MEMORY */
	unsigned percent; /* of the GPU's time, of late; DRIVERD_UNKNOWN_PERCENT */
};

#define DRIVERD_UNKNOWN_MEMORY UINT64_MAX
#define DRIVERD_UNKNOWN_PERCENT UINT32_MAX

void driverd_names_free(struct driverd_name *names, size_t count);

/**
 * driverd_nvml_names() - all GPUs and their parts, as NVML names them
 * @library:       absolute path of libnvidia-ml.so
 * @opens_devices: NVML opens device nodes for writing, as on native hosts
 * @advice:        what to do without it, a line
 * @ret:           array, owned by the caller (driverd_names_free())
 *
 * Return: as driverd_dxcore_adapters().
 */
int driverd_nvml_names(const struct settings *settings, const char *library, bool opens_devices, const char *advice,
		       struct driverd_name **ret, size_t *ret_count, struct err *err);

/**
 * driverd_nvml_processes() - the same, and which processes use these now
 * @ret_processes: array, owned by the caller
 *
 * A GPU that has parts is not asked itself. Return: as driverd_dxcore_adapters().
 */
int driverd_nvml_processes(const struct settings *settings, const char *library, struct driverd_name **ret,
			   size_t *ret_count, struct driverd_process **ret_processes, size_t *ret_process_count,
			   struct err *err);

/* ---- a watch: the same child, which lives on and tells what happens to GPUs ---- */

enum driverd_event_kind {
	DRIVERD_EVENT_BEGUN = 1, /* it has looked at all GPUs, and from here on misses nothing */
	DRIVERD_EVENT_STATE = 2, /* number: enum nvml_state, when it became another, and after each error */
	DRIVERD_EVENT_XID = 3,   /* number: an error that the driver reports (Xid) */
};

struct driverd_event {
	enum driverd_event_kind kind;
	char *uuid; /* of the GPU; NULL: of none */
	unsigned number;
	unsigned gpu_instance, compute_instance; /* NVML_NO_INSTANCE: it is of the GPU, and not of a part */
};

struct driverd_watch {
	pid_t pid; /* 0: there is none */
	int socket;
};

#define DRIVERD_WATCH_NONE ((struct driverd_watch){.socket = -1})

/**
 * driverd_watch_start() - have NVML tell what happens to GPUs
 * @without: UUIDs with commas between them, of GPUs that are not opened, since what has one open keeps it from being
 *           reset; NULL
 *
 * Return: 0, with a child that says DRIVERD_EVENT_BEGUN, or fails; as driverd_dxcore_adapters().
 */
int driverd_watch_start(const struct settings *settings, const char *library, const char *without,
			struct driverd_watch *ret, struct err *err);

/**
 * driverd_watch_read() - what it has told
 * @ret: owned by the caller (free() its uuid)
 *
 * Return: 1; 0: nothing yet; CTR_GPU_E_DRIVER_LIBRARY: it cannot watch, @err says why; -EPIPE: it has ended.
 */
int driverd_watch_read(const struct driverd_watch *watch, struct driverd_event *ret, struct err *err);

/** Ends it, and waits for that, unless the kernel keeps it. */
void driverd_watch_end(struct driverd_watch *watch);

/** The CUDA version of a libcuda that carries no note. Return: as driverd_dxcore_adapters(). */
int driverd_cuda_version(const struct settings *settings, const char *library, int *ret_major, int *ret_minor,
			 struct err *err);
