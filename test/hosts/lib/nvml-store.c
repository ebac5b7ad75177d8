/* SPDX-License-Identifier: Apache-2.0 */

/* The driver's own NVML, as it lies in a driver store. */

#include <stdio.h>
#include <unistd.h>

#include "kmt.h"
#include "nvml.h"

struct nvml_device {
	struct kmt_adapter adapter;
};

static struct nvml_device devices[KMT_ADAPTERS_MAX];
static int device_count = -1;

static nvmlReturn_t answer(char *ret, unsigned int room, const char *text)
{
	return snprintf(ret, room, "%s", text) < (int)room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlInit_v2(void)
{
	struct kmt_adapter all[KMT_ADAPTERS_MAX];
	int count = kmt_adapters(KMT_NVIDIA, all, KMT_ADAPTERS_MAX);

	if (count <= 0)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	for (int i = 0; i < count; i++)
		devices[i].adapter = all[i];
	/* As where the driver has started for one GPU alone. */
	device_count = access("/run/ctr-gpu/nvml-knows-one", F_OK) == 0 ? 1 : count;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void)
{
	device_count = -1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	return answer(version, length, "570.86.16");
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	if (device_count < 0)
		return NVML_ERROR_UNINITIALIZED;
	*count = (unsigned int)device_count;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if ((int)index < 0 || (int)index >= device_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	return answer(name, length, device->adapter.name);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	const ADAPTERADDRESS *address = &device->adapter.address;

	*pci = (nvmlPciInfo_t){.bus = address->BusNumber, .device = address->DeviceNumber};
	(void)snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:%02X.0", pci->bus, pci->device);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	char text[41];

	kmt_uuid(&device->adapter, text);
	return answer(uuid, length, text);
}
