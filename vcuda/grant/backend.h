/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a container gets by vCUDA: a client library in the place of the driver's, and a socket of the manager. The GPUs
 * are those of the backends that found them; nothing of their devices and drivers enters the plan.
 */

#include <stdbool.h>

#include "base/err.h"
#include "base/paths.h"
#include "model/adapter.h"
#include "model/plan.h"
#include "model/request.h"
#include "model/settings.h"

/* Of the container: where the client library looks for the socket. */
#define VCUDA_SOCKET_DIR PATH_RUN "/vcuda"
#define VCUDA_LIBRARY_DIR PATH_CONTAINER "/vcuda"

/**
 * vcuda_decide() - whether a request is served by vCUDA
 *
 * Return: 0; CTR_GPU_E_NO_PERMISSION if the settings forbid what it asks for; CTR_GPU_E_BAD_ARGUMENT; @err is set.
 */
int vcuda_decide(const struct settings *settings, const struct request *request, bool *ret, struct err *err);

/**
 * vcuda_plan() - add the client library and the GPUs that the manager is to be asked for
 * @inventory: of the host
 * @exclusive: by position in it: whether one container at a time may have it; such a one is nobody's spare
 * @selected: of all backends; those that are not NVIDIA's, or are divided (MIG), are left out with a warning
 * @native:   what the container would get for devices: tells where the driver's libraries are
 *
 * Return: 0; CTR_GPU_E_NO_ADAPTER if none is left; CTR_GPU_E_BAD_ARGUMENT; negative errno; @err is set.
 */
int vcuda_plan(const struct settings *settings, const struct request *request, const struct inventory *inventory,
	       const bool *exclusive, const struct adapter *const *selected, size_t count, const struct plan *native,
	       struct plan *plan, struct err *err);

/** The same for a container whose socket was granted already. Return: 0; negative errno; @err is set. */
int vcuda_plan_granted(const char *directory, struct plan *plan, struct err *err);

/* The first major version whose functions tell what parameters a kernel has. */
enum { VCUDA_OLDEST_DRIVER = 550 };

/** Whether servers work with a driver of this version; what cannot be read as a version counts as new. */
bool vcuda_knows_driver(const char *version);

/** Return: the path of the client library's file of this name, owned by the caller; NULL if it is not installed. */
char *vcuda_find_client(const char *name);
