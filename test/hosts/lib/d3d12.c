/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A libd3d12.so that goes as far as the real one can be followed: D3D12CreateDevice() takes the adapter that the program
 * chose from libdxcore.so, loads the user-mode driver that this names, and makes a device in the kernel. There it ends:
 * what a program may call next is a whole graphics API. Standard error shows each step.
 */

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../abi.h"

#define EXPORT __attribute__((visibility("default")))

typedef int32_t HRESULT;
#define E_INVALIDARG ((HRESULT)0x80070057)
#define DXGI_ERROR_UNSUPPORTED ((HRESULT)0x887A0004)

/* Of IDXCoreAdapter, as far as it is needed here. */
struct adapter {
	const struct {
		void *unknown[3], *is_valid, *is_attribute_supported, *is_property_supported;
		HRESULT (*get_property)(struct adapter *self, uint32_t property, size_t size, void *data);
	} * functions;
};

enum { PROPERTY_LUID = 0, PROPERTY_DRIVER_DESCRIPTION = 2 };

static bool call(void *dxcore, const char *name, void *args)
{
	int32_t (*function)(void *) = NULL;

	*(void **)&function = dlsym(dxcore, name);
	return function && function(args) >= 0;
}

/* The path of the driver for D3D12, as libdxcore.so gives it. */
static bool read_driver(void *dxcore, uint32_t adapter, char *ret, size_t size)
{
	struct {
		uint32_t version, name[260];
	} answer = {.version = 3};
	D3DKMT_QUERYADAPTERINFO query = {
		.hAdapter = adapter,
		.Type = QUERY_UMDRIVERNAME,
		.pPrivateDriverData = (uintptr_t)&answer,
		.PrivateDriverDataSize = sizeof(answer),
	};
	size_t i = 0;

	if (!call(dxcore, "D3DKMTQueryAdapterInfo", &query))
		return false;
	for (; answer.name[i] && i + 1 < size; i++)
		ret[i] = (char)answer.name[i];
	ret[i] = '\0';
	return true;
}

static void show(const char *what, const char *value)
{
	(void)dprintf(STDERR_FILENO, "d3d12: %s %s\n", what, value);
}

static void create(void *dxcore, const LUID *luid)
{
	D3DKMT_OPENADAPTERFROMLUID opened = {.AdapterLuid = *luid};
	D3DKMT_CREATEDEVICE device = {0};
	char driver[512];

	if (!call(dxcore, "D3DKMTOpenAdapterFromLuid", &opened))
		return show("the adapter", "cannot be opened");
	if (!read_driver(dxcore, opened.hAdapter, driver, sizeof(driver)))
		return show("driver", "none");
	if (!dlopen(driver, RTLD_NOW))
		return show("driver", dlerror());
	show("driver", driver);
	device.hAdapter = opened.hAdapter;
	show("device", call(dxcore, "D3DKMTCreateDevice", &device) ? "made" : "refused");
}

/* Mesa asks for experimental shader models and goes no further without. */
EXPORT HRESULT D3D12EnableExperimentalFeatures(uint32_t count, const void *iids, void *configurations, uint32_t *sizes);
HRESULT D3D12EnableExperimentalFeatures(uint32_t count, const void *iids, void *configurations, uint32_t *sizes)
{
	(void)count;
	(void)iids;
	(void)configurations;
	(void)sizes;
	return 0;
}

EXPORT HRESULT D3D12CreateDevice(struct adapter *adapter, uint32_t level, const void *iid, void **ret);
HRESULT D3D12CreateDevice(struct adapter *adapter, uint32_t level, const void *iid, void **ret)
{
	void *dxcore = dlopen("libdxcore.so", RTLD_NOW);
	char name[4096] = "";
	LUID luid;

	(void)level;
	(void)iid;
	if (ret)
		*ret = NULL;
	if (!adapter || !dxcore || adapter->functions->get_property(adapter, PROPERTY_LUID, sizeof(luid), &luid) < 0)
		return E_INVALIDARG;
	(void)adapter->functions->get_property(adapter, PROPERTY_DRIVER_DESCRIPTION, sizeof(name), name);
	show("adapter", name);
	create(dxcore, &luid);
	return DXGI_ERROR_UNSUPPORTED;
}
