/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What this node offers: resources such as nvidia.com/gpu, each with devices that have a name. Plain data. What a
 * look at the host found is put in as JSON, which another process makes (watcher.c); answers to kubelet are made of it.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/grpc.h"
#include "driverd/driverd.h"
#include "model/nvml.h"

enum {
	RESOURCES_MAX = 16,
	RESOURCE_DEVICES_MAX = 512,
	RESOURCE_NAME_MAX = 64,
};

/* ---- resource ---- */

/*
 * Once listed a device stays, and is not healthy while the host does not have it: kubelet counts what is granted. A
 * full list drops the one that was listed first of those that are gone.
 */
struct device {
	char *id;      /* as `ctr-gpu list`, CDI and the environment have it */
	char *locator; /* by which it is known again when its driver does not tell its name; NULL */
	char *store;   /* its driver's directory; NULL */
	int numa;      /* node; -1: not known */
	bool healthy;
	bool seen; /* in the look that is put in */
	bool gone; /* not seen in the last one */
};

struct resource {
	char *name; /* "nvidia.com/gpu" */
	char *kind; /* of its devices' names in CDI; of most resources their own name */
	struct device *devices;
	size_t count;
	unsigned changes; /* how often its list became another */
};

struct resources {
	struct resource list[RESOURCES_MAX];
	size_t count;
	bool wants_names; /* a device is there whose name only its driver knows */
	json_t *slots;    /* what is in use of them, as a look has it; NULL */
	json_t *lost;     /* UUIDs of GPUs of which no slot is given, by the last look that knew; NULL */
};

/**
 * resources_update() - put in what a look at the host found
 * @found: {"devices": [{"resource", "kind", "id", "locator", "store", "numa", "usable"}]}; what is not so is passed
 *         over. Without a kind it is the resource's name. Without a resource the device is one that is known by its
 *         locator: its driver alone tells which it is. With "slots", what is in use of them, and "lost", UUIDs of GPUs.
 *         A look that does not know these has null, and what was lost before is lost still.
 *
 * An adapter that cannot be used and is not listed yet is not listed.
 *
 * Return: 0; -ENOMEM.
 */
int resources_update(struct resources *resources, const json_t *found);

/** None of the devices is healthy any more, and what is in use is not known: the host does not answer. */
void resources_fail(struct resources *resources);

void resources_clear(struct resources *resources);

/** Return: borrowed; NULL. */
const struct resource *resources_find(const struct resources *resources, const char *name);

/* Of what vCUDA gives of a GPU. */
#define RESOURCE_SLOTS "ctr-gpu.org/vgpu"

/** Whether a container has one device of it, and not more. */
bool resource_is_single(const struct resource *resource);

/** Return: borrowed; NULL. */
const struct device *resource_find(const struct resource *resource, const char *id);

/**
 * resource_prefer() - which of the devices that are available to give to a container
 * @available: names; those that are not the resource's are passed over
 * @must:      of these, which it gets in any case
 * @size:      how many it gets
 * @ret:       room for @size names, borrowed from the resource
 *
 * Those of one NUMA node, then those of one driver store; of several such groups the one of which the least is left.
 *
 * Return: how many are in @ret: less than @size where less are available; -ENOMEM.
 */
long resource_prefer(const struct resource *resource, char *const *available, size_t available_count, char *const *must,
		     size_t must_count, size_t size, const char **ret);

/* ---- trouble ---- */

/* Of a GPU of NVIDIA's, or of a part of one, which no container gets meanwhile. */

enum { TROUBLES_MAX = 128 };

struct trouble {
	char gpu[RESOURCE_NAME_MAX + 1];         /* its UUID */
	unsigned gpu_instance, compute_instance; /* NVML_NO_INSTANCE: all of the GPU */
	unsigned xid;                            /* the last error that was not a program's own fault; 0: none */
	enum nvml_state state;                   /* what the driver says is to be done; 0: it does not say */
	int64_t since;
};

struct troubles {
	struct trouble list[TROUBLES_MAX];
	size_t count;
};

/**
 * troubles_take() - put in what happened
 *
 * An error is forgotten when the driver says later that nothing is to be done. Return: whether that changes something.
 */
bool troubles_take(struct troubles *troubles, const struct driverd_event *event, int64_t now);

/** @gpu: a UUID; NULL. The instances: of a part. Return: borrowed; NULL: it is well. */
const struct trouble *troubles_find(const struct troubles *troubles, const char *gpu, int gpu_instance,
				    int compute_instance);

/** Return: 0, with all of them as a line in *@ret, owned by the caller; -ENOMEM. */
int troubles_print(const struct troubles *troubles, char **ret);

/** Return: 0, with the UUIDs of GPUs that are to be let go of, with commas, owned by the caller; -ENOMEM. */
int troubles_list(const struct troubles *troubles, int64_t now, char **ret);

/* ---- answer ---- */

/* How a container is told its devices. */
enum strategy {
	STRATEGY_CDI = 1 << 0,         /* "cdi_devices": kubelet 1.28 and later */
	STRATEGY_ANNOTATIONS = 1 << 1, /* annotations cdi.k8s.io/…: containerd 1.7 and CRI-O with CDI on */
	STRATEGY_MOUNTS = 1 << 2,      /* mounts below /var/run/nvidia-container-devices, for hook and shim */
	STRATEGY_ENVIRONMENT = 1 << 3, /* NVIDIA_VISIBLE_DEVICES or CTR_GPU_VISIBLE_DEVICES, for hook and shim */
};

/**
 * answer_make() - answer a call of kubelet's
 * @method: "/v1beta1.DevicePlugin/Allocate"
 *
 * Return: as grpc_service.answer.
 */
int answer_make(const struct resource *resource, unsigned strategies, const char *method, const uint8_t *request,
		size_t size, struct grpc_answer *ret);

/** The request of a registration. Return: of frame_new(), owned by the caller; NULL without memory. */
uint8_t *answer_registration(const struct resource *resource, const char *socket, size_t *ret_size);
