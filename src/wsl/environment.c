/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Facts: from Mesa 24.3 on, and up to 25.0 at least, software comes before d3d12 unless GALLIUM_DRIVER names that
 * (microsoft/wslg#1332; tried with Debian's 25.0 and 26.2). An image whose Mesa lacks d3d12 then has no OpenGL at all,
 * so only a container that asks for graphics gets it. libva derives a driver's name from the kernel's, vgem, which has
 * none. Mesa's d3d12 takes the adapter that says it is integrated, or else the first whose name contains the variable's
 * value (d3d12_dxcore_screen.cpp). ROCr asks /dev/dxg only if told to, before ROCm 7.13 (ROCm/librocdxg, README).
 * CUDA numbers devices by speed, unless CUDA_DEVICE_ORDER says by PCI address, as our indexes are.
 *
 * Left out on purpose: ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ZE_AFFINITY_MASK count in an order that the
 * vendors do not document for GPU-PV; a wrong number would hide the GPU that was chosen.
 */

#include "wsl/internal.h"

#include <string.h>

#include "model/adapter.h"

struct choice {
	const struct adapter *const *adapters;
	size_t count;
	bool alone; /* no adapter of another backend is in the plan */
	bool named; /* variables are to name the chosen adapters */
};

/* ---- values; NULL: the container is better off without ---- */

static const struct adapter *environment_first(const struct choice *choice, uint32_t vendor)
{
	for (size_t i = 0; i < choice->count; i++)
		if (!choice->adapters[i]->compute_only && (!vendor || choice->adapters[i]->vendor_id == vendor))
			return choice->adapters[i];
	return NULL;
}

static int environment_d3d12(const struct choice *choice, char **ret)
{
	return choice->alone && environment_first(choice, 0) ? str_format(ret, "d3d12") : 0;
}

/* If all GPUs are selected, Mesa may choose. */
static int environment_adapter_name(const struct choice *choice, char **ret)
{
	const struct adapter *adapter = environment_first(choice, 0);
	size_t gpus = 0;

	for (size_t i = 0; i < choice->count; i++)
		gpus += !choice->adapters[i]->is_npu;
	return choice->named && adapter && adapter->name && gpus < adapter->same_device_count
		       ? str_format(ret, "%s", adapter->name)
		       : 0;
}

static int environment_dxg_detection(const struct choice *choice, char **ret)
{
	return environment_first(choice, PCI_VENDOR_AMD) ? str_format(ret, "1") : 0;
}

static bool environment_is_some_of_nvidia(const struct choice *choice)
{
	size_t count = 0, same_vendor_count = 0;

	for (size_t i = 0; i < choice->count; i++) {
		if (choice->adapters[i]->vendor_id != PCI_VENDOR_NVIDIA)
			continue;
		same_vendor_count = choice->adapters[i]->same_vendor_count;
		count++;
	}
	return choice->named && count < same_vendor_count;
}

static int environment_cuda_order(const struct choice *choice, char **ret)
{
	return environment_is_some_of_nvidia(choice) ? str_format(ret, "PCI_BUS_ID") : 0;
}

/* NVIDIA's adapters have the first indexes of the host (adapter_sort()), so they are what CUDA counts, too. */
static int environment_cuda_devices(const struct choice *choice, char **ret)
{
	_cleanup_strv_ struct strv indexes = {0};
	int r = 0;

	if (!environment_is_some_of_nvidia(choice))
		return 0;
	for (size_t i = 0; i < choice->count && r == 0; i++) {
		char *index = NULL;

		if (choice->adapters[i]->vendor_id != PCI_VENDOR_NVIDIA)
			continue;
		r = str_format(&index, "%d", choice->adapters[i]->index);
		if (r == 0)
			r = strv_take(&indexes, index);
	}
	return r == 0 ? strv_join(&indexes, ",", ret) : r;
}

/* ---- the table ---- */

#define GRAPHICS (CAPABILITY_GRAPHICS | CAPABILITY_DISPLAY)

static const struct {
	const char *name;
	uint32_t capabilities; /* one of which the container asks for */
	int (*value)(const struct choice *choice, char **ret);
	bool combines;
	const char *unless, *reason;
} environment_table[] = {
	{"GALLIUM_DRIVER", GRAPHICS, environment_d3d12, true, NULL,
	 "some versions of Mesa render in software without it"},
	{"LIBVA_DRIVER_NAME", CAPABILITY_VIDEO, environment_d3d12, true, NULL,
	 "libva cannot tell the driver from the device"},
	{"MESA_D3D12_DEFAULT_ADAPTER_NAME", GRAPHICS | CAPABILITY_VIDEO, environment_adapter_name, true, NULL,
	 "Mesa takes the integrated GPU unless told another"},
	{"HSA_ENABLE_DXG_DETECTION", CAPABILITY_COMPUTE, environment_dxg_detection, true, NULL,
	 "ROCm before 7.13 looks for /dev/dxg only if told to"},
	{"CUDA_DEVICE_ORDER", CAPABILITY_COMPUTE, environment_cuda_order, false, "CUDA_VISIBLE_DEVICES",
	 "CUDA_VISIBLE_DEVICES counts by it"},
	{"CUDA_VISIBLE_DEVICES", CAPABILITY_COMPUTE, environment_cuda_devices, false, "CUDA_DEVICE_ORDER",
	 "CUDA shows every GPU of a driver, not only those chosen"},
};

int environment_plan(const struct request *request, const struct adapter *const *selected, size_t count,
		     struct plan *plan)
{
	/* With the guard CUDA counts the chosen ones alone, from 0. */
	const struct choice choice = {selected, count, plan->adapters.count <= count,
				      !plan->choice.grade || streq(plan->choice.grade, "environment")};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(environment_table) && r == 0; i++) {
		struct plan_env variable = {
			.combines = environment_table[i].combines,
			.unless = environment_table[i].unless,
		};

		if (!(request->capabilities & environment_table[i].capabilities))
			continue;
		r = environment_table[i].value(&choice, &variable.value);
		if (r < 0 || !variable.value)
			continue;
		variable.name = strdup(environment_table[i].name);
		variable.reason = strdup(environment_table[i].reason);
		r = plan_add_env(plan, &variable);
	}
	return r;
}
