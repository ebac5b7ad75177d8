/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The types of NVML as its public documentation has them. A struct with a version says its size and number in it. */

#include <stddef.h>
#include <stdint.h>

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef int nvmlClockType_t, nvmlEnableState_t, nvmlComputeMode_t, nvmlDeviceArchitecture_t, nvmlPstates_t,
	nvmlBrandType_t, nvmlTemperatureSensors_t, nvmlTemperatureThresholds_t, nvmlGpuP2PCapsIndex_t,
	nvmlGpuP2PStatus_t, nvmlNvLinkCapability_t, nvmlIntNvLinkDeviceType_t;

enum { NVML_BUS_LEGACY = 16, NVML_BUS = 32, NVML_UUID_TEXT = 41 };

typedef struct {
	char busIdLegacy[NVML_BUS_LEGACY];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[NVML_BUS];
} nvmlPciInfo_t;

typedef struct {
	unsigned int version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
	char busId[NVML_BUS];
} nvmlPciInfoExt_t;

typedef struct {
	unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
	unsigned int version;
	unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
	unsigned int pid;
	unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;

typedef nvmlProcessInfo_v2_t nvmlProcessInfo_t; /* the third version is the second */

typedef struct {
	unsigned int gpu, memory; /* percent of the time in which either was in use */
} nvmlUtilization_t;

typedef struct {
	unsigned int version;
	nvmlTemperatureSensors_t sensorType;
	int temperature;
} nvmlTemperature_t;

typedef struct {
	nvmlDevice_t device;
	unsigned long long eventType, eventData;
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

typedef struct {
	unsigned int fieldId, scopeId;
	long long timestamp, latencyUsec;
	int valueType;
	nvmlReturn_t nvmlReturn;
	union {
		double dVal;
		unsigned int uiVal;
		unsigned long long ullVal;
	} value;
} nvmlFieldValue_t;

#define NVML_VERSION(type, number) ((unsigned int)(sizeof(type) | (number) << 24))
#define NVML_NOT_AVAILABLE UINT64_MAX

enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_OPERATING_SYSTEM = 17,
	NVML_ERROR_MEMORY = 20,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_UNKNOWN = 999,
};

enum { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM };
