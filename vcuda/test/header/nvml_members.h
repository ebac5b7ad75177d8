/* SPDX-License-Identifier: Apache-2.0 */

/* Members of vcuda/nvml/types.h: where they lie must be as in NVIDIA's nvml.h. */
MEMBER(nvmlPciInfo_t, busIdLegacy);
MEMBER(nvmlPciInfo_t, domain);
MEMBER(nvmlPciInfo_t, bus);
MEMBER(nvmlPciInfo_t, device);
MEMBER(nvmlPciInfo_t, pciDeviceId);
MEMBER(nvmlPciInfo_t, pciSubSystemId);
MEMBER(nvmlPciInfo_t, busId);
#ifdef CHECK_nvmlDeviceGetPciInfoExt
MEMBER(nvmlPciInfoExt_t, version);
MEMBER(nvmlPciInfoExt_t, domain);
MEMBER(nvmlPciInfoExt_t, bus);
MEMBER(nvmlPciInfoExt_t, device);
MEMBER(nvmlPciInfoExt_t, pciDeviceId);
MEMBER(nvmlPciInfoExt_t, pciSubSystemId);
MEMBER(nvmlPciInfoExt_t, baseClass);
MEMBER(nvmlPciInfoExt_t, subClass);
MEMBER(nvmlPciInfoExt_t, busId);
#endif
#ifdef CHECK_nvmlDeviceGetFieldValues
MEMBER(nvmlFieldValue_t, fieldId);
MEMBER(nvmlFieldValue_t, scopeId);
MEMBER(nvmlFieldValue_t, timestamp);
MEMBER(nvmlFieldValue_t, latencyUsec);
MEMBER(nvmlFieldValue_t, valueType);
MEMBER(nvmlFieldValue_t, nvmlReturn);
MEMBER(nvmlFieldValue_t, value);
#endif
MEMBER(nvmlMemory_t, total);
MEMBER(nvmlMemory_t, free);
MEMBER(nvmlMemory_t, used);
MEMBER(nvmlMemory_v2_t, version);
MEMBER(nvmlMemory_v2_t, total);
MEMBER(nvmlMemory_v2_t, reserved);
MEMBER(nvmlMemory_v2_t, free);
MEMBER(nvmlMemory_v2_t, used);
MEMBER(nvmlProcessInfo_v1_t, pid);
MEMBER(nvmlProcessInfo_v1_t, usedGpuMemory);
MEMBER(nvmlProcessInfo_v2_t, pid);
MEMBER(nvmlProcessInfo_v2_t, usedGpuMemory);
MEMBER(nvmlProcessInfo_v2_t, gpuInstanceId);
MEMBER(nvmlProcessInfo_v2_t, computeInstanceId);
MEMBER(nvmlEventData_t, device);
MEMBER(nvmlEventData_t, eventType);
MEMBER(nvmlEventData_t, eventData);
MEMBER(nvmlEventData_t, gpuInstanceId);
MEMBER(nvmlEventData_t, computeInstanceId);
MEMBER(nvmlUtilization_t, gpu);
MEMBER(nvmlUtilization_t, memory);
MEMBER(nvmlTemperature_t, version);
MEMBER(nvmlTemperature_t, sensorType);
MEMBER(nvmlTemperature_t, temperature);
