/* SPDX-License-Identifier: Apache-2.0 */

/* Which variables a container needs, by vendor, capability, and what else is in the plan. */

#include "unit.h"

#include "base/str.h"
#include "model/adapter.h"
#include "wsl/internal.h"

#define ALL CAPABILITY_ALL
#define COMPUTE CAPABILITY_COMPUTE
#define VIDEO CAPABILITY_VIDEO
#define GRAPHICS CAPABILITY_GRAPHICS

static struct adapter nvidia0 = {.index = 0, .vendor_id = PCI_VENDOR_NVIDIA, .name = (char *)"RTX 4090"};
static struct adapter nvidia1 = {.index = 1, .vendor_id = PCI_VENDOR_NVIDIA, .name = (char *)"RTX 4070"};
static struct adapter mcdm = {.index = 1, .vendor_id = PCI_VENDOR_NVIDIA, .compute_only = true};
static struct adapter intel = {.index = 2, .vendor_id = PCI_VENDOR_INTEL, .name = (char *)"Iris"};
static struct adapter amd = {.index = 3, .vendor_id = PCI_VENDOR_AMD, .name = (char *)"Radeon"};
static struct adapter npu = {
	.index = 4, .vendor_id = PCI_VENDOR_AMD, .compute_only = true, .is_npu = true, .name = (char *)"NPU"};
static struct adapter nameless = {.index = 5, .vendor_id = PCI_VENDOR_INTEL};

static const struct {
	const char *about;
	const struct adapter *selected[3];
	size_t same_device_count, same_vendor_count; /* on the host */
	size_t others;                               /* adapters of other backends in the plan */
	uint32_t capabilities;
	const char *wanted;
} cases[] = {
	{"the only GPU", {&nvidia0}, 1, 1, 0, COMPUTE, ""},
	{"the only GPU, for graphics", {&nvidia0}, 1, 1, 0, GRAPHICS, "GALLIUM_DRIVER=d3d12 "},
	{"display is graphics", {&nvidia0}, 1, 1, 0, CAPABILITY_DISPLAY, "GALLIUM_DRIVER=d3d12 "},
	{"for video", {&intel}, 1, 1, 0, VIDEO, "LIBVA_DRIVER_NAME=d3d12 "},
	{"all of several", {&nvidia0, &intel}, 2, 1, 0, GRAPHICS, "GALLIUM_DRIVER=d3d12 "},
	{"one of several", {&intel}, 2, 1, 0, VIDEO, "LIBVA_DRIVER_NAME=d3d12 MESA_D3D12_DEFAULT_ADAPTER_NAME=Iris "},
	{"one without a name", {&nameless}, 2, 1, 0, GRAPHICS, "GALLIUM_DRIVER=d3d12 "},
	{"beside a native GPU, whose own driver is not d3d12", {&intel}, 1, 1, 1, GRAPHICS | VIDEO, ""},
	{"one NVIDIA GPU of two vendors'", {&nvidia0}, 2, 1, 0, COMPUTE, ""},
	{"one of two NVIDIA GPUs",
	 {&nvidia1},
	 2,
	 2,
	 0,
	 COMPUTE,
	 "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1 "},
	{"two of three",
	 {&nvidia0, &nvidia1, &intel},
	 4,
	 3,
	 0,
	 COMPUTE,
	 "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1 "},
	{"one of two that only compute", {&mcdm}, 2, 2, 0, ALL, "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1 "},
	{"both", {&nvidia0, &nvidia1}, 2, 2, 0, COMPUTE, ""},
	{"AMD", {&amd}, 1, 1, 0, COMPUTE, "HSA_ENABLE_DXG_DETECTION=1 "},
	{"AMD, not for ROCm", {&amd}, 1, 1, 0, CAPABILITY_UTILITY, ""},
	{"an NPU renders nothing and is not ROCm's", {&npu}, 1, 1, 0, ALL, ""},
	{"an NPU and one of two GPUs",
	 {&npu, &amd},
	 2,
	 1,
	 0,
	 ALL,
	 "GALLIUM_DRIVER=d3d12 LIBVA_DRIVER_NAME=d3d12 MESA_D3D12_DEFAULT_ADAPTER_NAME=Radeon HSA_ENABLE_DXG_DETECTION=1 "},
	{"driver files without a device", {NULL}, 0, 0, 0, ALL, ""},
};

static void plans(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct request request = {.capabilities = cases[i].capabilities};
		const struct adapter *selected[3];
		struct adapter copies[3];
		struct plan plan = {0};
		char got[512] = "";
		size_t count = 0;

		for (; count < 3 && cases[i].selected[count]; count++) {
			copies[count] = *cases[i].selected[count];
			copies[count].same_device_count = cases[i].same_device_count;
			copies[count].same_vendor_count = cases[i].same_vendor_count;
			selected[count] = &copies[count];
		}
		for (size_t j = 0; j < count + cases[i].others; j++)
			assert_int_equal(strv_add(&plan.adapters, "x"), 0);
		assert_int_equal(environment_plan(&request, selected, count, &plan), 0);
		for (size_t j = 0; j < plan.env_count; j++) {
			(void)strcat(strcat(strcat(strcat(got, plan.env[j].name), "="), plan.env[j].value), " ");
			assert_true(plan.env[j].combines == (strncmp(plan.env[j].name, "CUDA_", 5) != 0));
			assert_false(plan.env[j].replaces);
		}
		if (strcmp(got, cases[i].wanted) != 0)
			print_error("%s:\n", cases[i].about);
		assert_string_equal(got, cases[i].wanted);
		plan_clear(&plan);
	}
}

/* A variable of the pair alone would mean another GPU. */
static void own_values_stay(void **unused)
{
	static const struct {
		const char *own;
		size_t left;
	} containers[] = {{"PATH=/bin", 2}, {"CUDA_VISIBLE_DEVICES=", 0}, {"CUDA_DEVICE_ORDER=FASTEST_FIRST", 0}};
	const struct request request = {.capabilities = COMPUTE};
	struct adapter adapter = nvidia1;
	const struct adapter *selected[] = {&adapter};

	(void)unused;
	adapter.same_vendor_count = adapter.same_device_count = 2;
	for (size_t i = 0; i < ARRAY_SIZE(containers); i++) {
		struct strv environment = {0};
		struct plan plan = {0};

		assert_int_equal(strv_add(&environment, containers[i].own), 0);
		assert_int_equal(environment_plan(&request, selected, 1, &plan), 0);
		plan_drop_env(&plan, &environment);
		assert_int_equal(plan.env_count, containers[i].left);
		plan_clear(&plan);
		strv_clear(&environment);
	}
}

/* With the guard CUDA counts the chosen GPUs from 0; and who wants the stores alone wants no variable. */
static void only_its_own_grade_names_gpus(void **unused)
{
	static const struct {
		const char *grade;
		size_t count;
	} grades[] = {{"environment", 2}, {"guard", 0}, {"store", 0}};
	const struct request request = {.capabilities = COMPUTE};
	struct adapter adapter = nvidia1;
	const struct adapter *selected[] = {&adapter};

	(void)unused;
	adapter.same_vendor_count = adapter.same_device_count = 2;
	for (size_t i = 0; i < ARRAY_SIZE(grades); i++) {
		struct plan plan = {.choice.grade = grades[i].grade};

		assert_int_equal(environment_plan(&request, selected, 1, &plan), 0);
		assert_int_equal(plan.env_count, grades[i].count);
		plan_clear(&plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans),
		cmocka_unit_test(own_values_stay),
		cmocka_unit_test(only_its_own_grade_names_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
