/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What NVIDIA's NVML says of how a GPU is: events of the errors that its driver reports (Xid), and what is to be done
 * for it. The caller loads the library and passes its functions; this file has nvml.h's numbers and what they mean.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
	NVML_SUCCESS = 0,
	NVML_TIMEOUT = 10,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_EVENT_XID = 8,
};

struct nvml_event {
	void *gpu;
	unsigned long long kind, number;
	unsigned gpu_instance, compute_instance; /* NVML_NO_INSTANCE: of the GPU */
};

#define NVML_NO_INSTANCE UINT32_MAX

struct nvml_field {
	unsigned field, scope;
	long long stamp, latency;
	int type, outcome;
	unsigned value[2];
};
_Static_assert(sizeof(struct nvml_field) == 40, "as nvml.h has it");

enum nvml_state {
	NVML_STATE_UNKNOWN, /* the driver does not say: it is older than R565, or other GPUs are to be seen to first */
	NVML_STATE_WELL,    /* it says that nothing is to be done */
	NVML_STATE_LOST,    /* fallen off the bus */
	NVML_STATE_RESET,   /* to be reset */
	NVML_STATE_REBOOT,  /* its host is to be started again */
	NVML_STATES,
};

/* Functions of NVML: nvmlDeviceGetMemoryInfo, and nvmlDeviceGetFieldValues, which is NULL before R525. */
struct nvml_questions {
	int (*memory)(void *gpu, unsigned long long ret[3]);
	int (*fields)(void *gpu, int count, struct nvml_field *fields);
};

/** Asks the driver how a GPU is. */
enum nvml_state nvml_state_ask(const struct nvml_questions *questions, void *gpu);

/** Whether programs cannot use it until something is done for it. */
bool nvml_state_is_bad(enum nvml_state state);

/** Return: "reset required"; static. */
const char *nvml_state_text(enum nvml_state state);

/*
 * By NVIDIA's catalogue of Xid: those after which a GPU must be reset or its host started again; those after which it
 * says that this may be so, or is to be done when convenient; and those that are a program's own fault, which NVIDIA's
 * device plugin for Kubernetes passes over, too. The others need nothing of themselves.
 */
bool nvml_xid_is_fatal(uint32_t xid);
bool nvml_xid_is_doubtful(uint32_t xid);
bool nvml_xid_is_of_program(uint32_t xid);
