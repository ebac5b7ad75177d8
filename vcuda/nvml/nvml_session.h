/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From nvmlInit() to the last nvmlShutdown(): a connection, and so a server, of its own, which makes no context. One
 * thread at a time is in a call.
 */

#include "vcuda/client/client.h"
#include "vcuda/nvml/types.h"

/** Return: what is held until the end of a call. A child of fork(2) finds it free, whoever had it then. */
struct lock *nvml_session_lock(void);

/**
 * nvml_session_enter() - what every function begins with, with the lock held
 *
 * A child of fork(2) has its parent's session with NVIDIA's library; here it gets a connection of its own.
 *
 * Return: NVML_SUCCESS; what the function has to return instead.
 */
nvmlReturn_t nvml_session_enter(void);

/** The same of a function that needs @place, a pointer its caller gives. */
nvmlReturn_t nvml_session_enter_for(const void *place);

/** The same, and the device that a handle stands for. */
nvmlReturn_t nvml_session_enter_device(nvmlDevice_t device, CUdevice *ret);

/** Asks the server what the container has of a device at this moment. */
nvmlReturn_t nvml_session_read_usage(CUdevice device, struct wire_usage *ret);

/** Asks the server for a sensor of a device, in NVML's unit. Return: NVML_ERROR_NOT_SUPPORTED if it has none. */
nvmlReturn_t nvml_session_read_sensor(CUdevice device, enum wire_sensor sensor, unsigned *ret);

/** The same of one of its links to other GPUs. */
nvmlReturn_t nvml_session_read_link(CUdevice device, enum wire_sensor sensor, unsigned link, unsigned *ret);

/** Return: NVML's word for an answer of CUDA's. */
nvmlReturn_t nvml_session_translate(CUresult result);

/** The answer of a function that is not offered. */
nvmlReturn_t nvml_session_refuse(const char *name);

/** Return: the handle of a device. */
nvmlDevice_t nvml_session_handle(CUdevice device);

/** Copies text, or says that there is too little room. */
nvmlReturn_t nvml_session_copy_text(char *to, unsigned length, const char *from);
