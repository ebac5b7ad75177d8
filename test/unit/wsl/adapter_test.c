/* SPDX-License-Identifier: Apache-2.0 */

/* Which GPU-PV adapters count, why others do not, and how they are numbered. */

#include "unit.h"

#include "ctr-gpu-error.h"
#include "wsl/internal.h"

#define STORE "/usr/lib/wsl/drivers/nv.inf_amd64_1"

enum { RENDER = D3DKMT_TYPE_RENDER, COMPUTE = D3DKMT_TYPE_COMPUTE_ONLY, SOFTWARE = D3DKMT_TYPE_SOFTWARE };

static enum store_content look(const char *path, struct adapter_store *ret)
{
	(void)ret;
	if (strcmp(path, STORE "_windows") == 0)
		return STORE_WITHOUT_LIBRARY;
	return strcmp(path, STORE) == 0 ? STORE_HAS_LIBRARY : STORE_MISSING;
}

static const struct {
	const char *about;
	uint32_t wddm, type;
	const char *store;
	int unusable;
	const char *words[3]; /* of the reason */
} verdicts[] = {
	{"a GPU", 3100, RENDER, STORE, 0, {0}},
	{"the first that counts", 2700, RENDER, STORE, 0, {0}},
	{"a Windows path", 3100, RENDER, "\\SystemRoot\\System32\\DriverStore\\FileRepository\\nv.inf_amd64_1", 0, {0}},
	{"an NPU", 3100, COMPUTE, STORE, 0, {0}},
	{"both", 3100, RENDER | COMPUTE, STORE, 0, {0}},
	{"old", 2600, RENDER, STORE, CTR_GPU_E_DRIVER_TOO_OLD, {"WDDM 2.6", "2.7"}},
	{"very old", 1300, RENDER, NULL, CTR_GPU_E_DRIVER_TOO_OLD, {"WDDM 1.3"}},
	{"silent", 0, RENDER, NULL, CTR_GPU_E_DRIVER_TOO_OLD, {"does not tell its WDDM version"}},
	{"software", 3100, RENDER | SOFTWARE, STORE, CTR_GPU_E_NO_ADAPTER, {"software device"}},
	{"software, old", 1300, RENDER | SOFTWARE, NULL, CTR_GPU_E_NO_ADAPTER, {"software device"}},
	{"display", 3100, 1 << 1, STORE, CTR_GPU_E_NO_ADAPTER, {"neither render nor compute"}},
	{"nothing", 3100, 0, STORE, CTR_GPU_E_NO_ADAPTER, {"does not say what kind"}},
	{"no store", 3100, RENDER, NULL, CTR_GPU_E_NO_DRIVER_STORE, {"does not tell a driver store"}},
	{"a store elsewhere", 3100, RENDER, "/etc", CTR_GPU_E_NO_DRIVER_STORE, {"does not tell a driver store"}},
	{"a store that is gone",
	 3100,
	 RENDER,
	 "\\FileRepository\\nv.inf_amd64_0",
	 CTR_GPU_E_NO_DRIVER_STORE,
	 {"/usr/lib/wsl/drivers/nv.inf_amd64_0 is missing"}},
	{"a store for Windows alone",
	 3100,
	 COMPUTE,
	 STORE "_windows",
	 CTR_GPU_E_NO_DRIVER_STORE,
	 {STORE "_windows has no library for Linux"}},
};

static void judges(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
		struct dxg_facts facts = {
			.wddm_version = verdicts[i].wddm,
			.type_bits = verdicts[i].type,
			.store = (char *)verdicts[i].store,
		};
		struct adapter adapter;

		assert_int_equal(adapter_classify(&facts, look, &adapter), 0);
		if (adapter.unusable != verdicts[i].unusable)
			print_error("%s: %s\n", verdicts[i].about, adapter.reason);
		assert_int_equal(adapter.unusable, verdicts[i].unusable);
		assert_int_equal(adapter.reason != NULL, verdicts[i].unusable != 0);
		assert_int_equal(adapter.remedy != NULL, verdicts[i].unusable != 0);
		for (size_t w = 0; w < ARRAY_SIZE(verdicts[i].words) && verdicts[i].words[w]; w++)
			assert_non_null(strstr(adapter.reason, verdicts[i].words[w]));
		adapter_clear(&adapter);
	}
}

static void describes(void **state)
{
	struct dxg_facts facts = {
		.luid = {.low = 7, .high = -1},
		.wddm_version = 3200,
		.type_bits = COMPUTE,
		.vendor_id = PCI_VENDOR_AMD,
		.device_id = 0x17f0,
		.has_address = true,
		.address = {.bus = 0xc5, .device = 0x1f, .function = 7},
		.name = (char *)"NPU",
		.store = (char *)STORE,
	};
	struct adapter adapter;

	(void)state;
	assert_int_equal(adapter_classify(&facts, look, &adapter), 0);
	assert_string_equal(adapter.pci_address, "0000:c5:1f.7");
	assert_string_equal(adapter.name, "NPU");
	assert_string_equal(adapter.driver_store, STORE);
	assert_string_equal(adapter_vendor(&adapter), "AMD");
	assert_true(adapter.compute_only);
	assert_true(adapter.is_npu);
	assert_true(adapter.has_luid);
	assert_int_equal(adapter.luid.low, 7);
	assert_int_equal(adapter.luid.high, -1);
	assert_int_equal(adapter.minor, -1);
	adapter_clear(&adapter);
	/* In MCDM mode a GPU is one, and an NPU is none because its driver says that it renders. */
	facts.vendor_id = PCI_VENDOR_NVIDIA;
	assert_int_equal(adapter_classify(&facts, look, &adapter), 0);
	assert_true(adapter.compute_only);
	assert_false(adapter.is_npu);
	adapter_clear(&adapter);
	facts.vendor_id = PCI_VENDOR_INTEL;
	facts.type_bits = COMPUTE | RENDER;
	facts.name = (char *)"N\377\302\233m\303\251";
	assert_int_equal(adapter_classify(&facts, look, &adapter), 0);
	assert_true(adapter.is_npu);
	assert_string_equal(adapter.name, "N???m\303\251");
	adapter_clear(&adapter);
}

static void orders(void **state)
{
	/* As the driver gives them, named by their place afterwards. */
	struct adapter adapters[] = {
		{.name = (char *)"10",
		 .vendor_id = PCI_VENDOR_NVIDIA,
		 .pci_address = (char *)"0000:00:01.0",
		 .unusable = 1},
		{.name = (char *)"7",
		 .vendor_id = PCI_VENDOR_AMD,
		 .pci_address = (char *)"0000:00:01.0",
		 .is_npu = true},
		{.name = (char *)"4", .vendor_id = PCI_VENDOR_INTEL, .pci_address = (char *)"0000:00:02.0"},
		{.name = (char *)"2", .vendor_id = PCI_VENDOR_NVIDIA},
		{.name = (char *)"6", .vendor_id = PCI_VENDOR_QUALCOMM},
		{.name = (char *)"1", .vendor_id = PCI_VENDOR_NVIDIA, .pci_address = (char *)"0000:41:00.0"},
		{.name = (char *)"0", .vendor_id = PCI_VENDOR_NVIDIA, .pci_address = (char *)"0000:01:00.0"},
		{.name = (char *)"5", .vendor_id = PCI_VENDOR_AMD, .pci_address = (char *)"0000:03:00.0"},
		{.name = (char *)"3", .vendor_id = PCI_VENDOR_NVIDIA},
		{.name = (char *)"8", .vendor_id = PCI_VENDOR_INTEL, .is_npu = true},
		{.name = (char *)"9", .vendor_id = PCI_VENDOR_INTEL, .is_npu = true},
		{.name = (char *)"11", .vendor_id = PCI_VENDOR_NVIDIA, .unusable = 1},
	};
	char place[8];

	(void)state;
	adapter_sort(adapters, ARRAY_SIZE(adapters));
	for (size_t i = 0; i < ARRAY_SIZE(adapters); i++) {
		(void)snprintf(place, sizeof(place), "%zu", i);
		assert_string_equal(adapters[i].name, place);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges),
		cmocka_unit_test(describes),
		cmocka_unit_test(orders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
