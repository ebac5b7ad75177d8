// SPDX-License-Identifier: Apache-2.0
//
// Prints what libdxcore.so says of adapters through its COM interface, compiled against Microsoft's own headers
// (DirectX-Headers), which the simulated library does not use: a wrong table of functions in one of them shows here.
//
//	dxcore-client [LUID-LOW]: with a number, of that adapter alone

#define INITGUID
#include <wsl/winadapter.h>

#include <directx/dxcore.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static HRESULT must(HRESULT result, const char *what)
{
	if (FAILED(result)) {
		std::printf("%s: %08x\n", what, static_cast<unsigned>(result));
		std::exit(1);
	}
	return result;
}

template <class T> static T get(IDXCoreAdapter *adapter, DXCoreAdapterProperty property)
{
	size_t size = 0;
	T value{};

	must(adapter->GetPropertySize(property, &size), "GetPropertySize");
	if (size != sizeof(value))
		std::printf("property %u has %zu bytes, not %zu\n", static_cast<unsigned>(property), size,
			    sizeof(value));
	must(adapter->GetProperty(property, &value), "GetProperty");
	return value;
}

static void show(IDXCoreAdapter *adapter)
{
	auto id = get<DXCoreHardwareIDParts>(adapter, DXCoreAdapterProperty::HardwareIDParts);
	auto luid = get<LUID>(adapter, DXCoreAdapterProperty::InstanceLuid);
	size_t size = 0;

	must(adapter->GetPropertySize(DXCoreAdapterProperty::DriverDescription, &size), "GetPropertySize");
	std::vector<char> name(size);
	must(adapter->GetProperty(DXCoreAdapterProperty::DriverDescription, size, name.data()), "GetProperty");
	if (adapter->GetProperty(DXCoreAdapterProperty::DriverDescription, size - 1, name.data()) != E_INVALIDARG)
		std::printf("a buffer that is too small is taken\n");
	std::printf("%s|%08x:%08x|%04x:%04x|%s%s%s%s|%llu\n", name.data(), static_cast<unsigned>(luid.HighPart),
		    static_cast<unsigned>(luid.LowPart), id.vendorID, id.deviceID,
		    get<bool>(adapter, DXCoreAdapterProperty::IsHardware) ? "hardware " : "",
		    get<bool>(adapter, DXCoreAdapterProperty::IsIntegrated) ? "integrated " : "",
		    adapter->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS) ? "graphics " : "",
		    adapter->IsAttributeSupported(DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE) ? "compute" : "",
		    static_cast<unsigned long long>(get<uint64_t>(adapter, DXCoreAdapterProperty::DriverVersion)));
	if (!adapter->IsValid() || adapter->IsQueryStateSupported(DXCoreAdapterState::AdapterMemoryBudget) ||
	    adapter->IsPropertySupported(static_cast<DXCoreAdapterProperty>(99)))
		std::printf("answers of yes and no are wrong\n");
}

static void list(IDXCoreAdapterFactory *factory, const char *title, const GUID &attribute)
{
	const DXCoreAdapterPreference hardware = DXCoreAdapterPreference::Hardware;
	IDXCoreAdapterFactory *again = nullptr;
	IDXCoreAdapterList *adapters = nullptr;
	IDXCoreAdapter *adapter = nullptr;

	must(factory->CreateAdapterList(1, &attribute, IID_IDXCoreAdapterList, reinterpret_cast<void **>(&adapters)),
	     "CreateAdapterList");
	must(adapters->Sort(1, &hardware), "Sort");
	must(adapters->GetFactory(IID_IDXCoreAdapterFactory, reinterpret_cast<void **>(&again)), "GetFactory");
	again->Release();
	std::printf("%s %u\n", title, adapters->GetAdapterCount());
	for (uint32_t i = 0; i < adapters->GetAdapterCount(); i++) {
		must(adapters->GetAdapter(i, IID_IDXCoreAdapter, reinterpret_cast<void **>(&adapter)), "GetAdapter");
		show(adapter);
		if (adapter->AddRef() != 2 || adapter->Release() != 1 || adapter->Release() != 0)
			std::printf("references are counted wrong\n");
	}
	if (adapters->GetAdapter(adapters->GetAdapterCount(), IID_IDXCoreAdapter,
				 reinterpret_cast<void **>(&adapter)) != E_INVALIDARG ||
	    adapters->IsStale() || !adapters->IsAdapterPreferenceSupported(hardware))
		std::printf("the list is wrong\n");
	if (adapters->AddRef() != 2 || adapters->Release() != 1 || adapters->Release() != 0)
		std::printf("references to the list are counted wrong\n");
}

int main(int argc, char **argv)
{
	IDXCoreAdapterFactory *factory = nullptr;
	IDXCoreAdapter *adapter = nullptr;

	must(DXCoreCreateAdapterFactory(IID_IDXCoreAdapterFactory, reinterpret_cast<void **>(&factory)),
	     "DXCoreCreateAdapterFactory");
	if (factory->QueryInterface(IID_IDXCoreAdapter, reinterpret_cast<void **>(&adapter)) != E_NOINTERFACE ||
	    factory->IsNotificationTypeSupported(DXCoreNotificationType::AdapterListStale))
		std::printf("the factory is wrong\n");
	if (argc > 1) {
		LUID luid = {static_cast<DWORD>(std::strtoul(argv[1], nullptr, 16)), 0};

		must(factory->GetAdapterByLuid(luid, IID_IDXCoreAdapter, reinterpret_cast<void **>(&adapter)),
		     "GetAdapterByLuid");
		show(adapter);
		adapter->Release();
	} else {
		list(factory, "graphics", DXCORE_ADAPTER_ATTRIBUTE_D3D12_GRAPHICS);
		list(factory, "compute", DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE);
	}
	return factory->Release() == 0 ? 0 : 1;
}
