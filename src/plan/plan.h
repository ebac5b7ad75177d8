/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_plan. */

#include "base/log.h"
#include "lib/context.h"
#include "model/plan.h"
#include "model/request.h"
#include "oci/oci.h"
#include "root/rootfs.h"

struct ctr_gpu_plan {
	struct plan data;
	struct ctr_gpu_context *context; /* borrowed, for errors; NULL: a plan of another kind */
};

/* Which adapters of a host a request means. */

struct selection {
	const struct adapter **adapters; /* borrowed from the host, in the order of their indexes, each once */
	size_t count;
};

void selection_clear(struct selection *selection);
#define _cleanup_selection_ _cleanup_(selection_clear)

/** Return: an adapter's number among the vendor's adapters in a kind's names, "amd.com/gpu"; -1 if it has none. */
int selection_number_of(const struct ctr_gpu_host *host, const char *kind, const struct adapter *wanted);

/**
 * selection_new() - the adapters that a request means
 *
 * Return: 0; CTR_GPU_E_UNKNOWN_DEVICE; the code of the adapters' own fault if none can be used or one that was named
 * cannot; -ENOMEM. @err is set.
 */
int selection_new(const struct ctr_gpu_host *host, const struct request *request, struct selection *ret,
		  struct err *err);

/**
 * selection_find() - all adapters that a name in the settings means, be they several, or not usable
 * @ret: by position in the inventory; all of it is false before
 *
 * Return: how many there are. No library is asked.
 */
size_t selection_find(const struct ctr_gpu_host *host, const struct device_name *name, bool *ret);

/** selection_find_possible() - mark those that a name may mean that means none, as not all is known of them */
void selection_find_possible(const struct ctr_gpu_host *host, const struct device_name *name, bool *marked);

/**
 * host_exclusive_plan() - put the exclusive GPUs of a selection into a plan, and those that may be exclusive
 *
 * Return: 0 or -ENOMEM.
 */
int host_exclusive_plan(const struct ctr_gpu_host *host, const struct selection *selection, struct plan *plan);

/* Fits a plan to the image: programs in some images do not read the files that list libraries. */

/** For a container whose process cannot be changed any more: says what it should have. Return: 0; negative errno. */
int image_check_warn(const struct plan *plan, const struct rootfs *rootfs, const struct oci_config *config,
		     const struct log *log);

/**
 * image_check_obstacles() - whether the image has what this machine lacks
 * @environment: of the container
 *
 * Return: 0; CTR_GPU_E_DRIVER_LIBRARY with @err set; -ENOMEM.
 */
int image_check_obstacles(const struct plan *plan, const struct rootfs *rootfs, const struct strv *environment,
			  struct err *err);
