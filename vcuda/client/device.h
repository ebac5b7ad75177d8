/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Attributes of devices by the numbers of CUdevice_attribute. */

#include "vcuda/client/client.h"

enum {
	DEVICE_MAX_BLOCK_X = 2,
	DEVICE_MAX_BLOCK_Y = 3,
	DEVICE_MAX_BLOCK_Z = 4,
	DEVICE_MAX_GRID_X = 5,
	DEVICE_MAX_GRID_Y = 6,
	DEVICE_MAX_GRID_Z = 7,
	DEVICE_MAX_SHARED = 8,
	DEVICE_PROCESSORS = 16,
	DEVICE_PROCESSOR_THREADS = 39,
	DEVICE_CAPABILITY_MAJOR = 75,
	DEVICE_CAPABILITY_MINOR = 76,
};

/** Of a device that there is, and a number below WIRE_ATTRIBUTES. */
int device_attribute(CUdevice device, CUdevice_attribute attribute);
