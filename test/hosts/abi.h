/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The two faces of D3DKMT, written down for the simulation from the published headers (DirectX-Headers
 * include/wsl/winadapter.h, libdxg include/d3dkmthk.h, uapi misc/d3dkmthk.h of the WSL kernel). The project's own
 * header is not used on purpose: a mistake in one of the two must show when they meet.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define SIZE_IS(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#define FIELD_AT(type, field, offset) static_assert(offsetof(type, field) == (offset), #type "." #field)

typedef struct {
	uint32_t LowPart;
	int32_t HighPart;
} LUID;
SIZE_IS(LUID, 8);

typedef struct {
	uint32_t hAdapter;
	LUID AdapterLuid;
	uint32_t NumOfSources;
	uint32_t bPrecisePresentRegionsPreferred;
} D3DKMT_ADAPTERINFO;
SIZE_IS(D3DKMT_ADAPTERINFO, 20);
FIELD_AT(D3DKMT_ADAPTERINFO, NumOfSources, 12);

/* Pointers are 64-bit numbers in the kernel's layout; on 64-bit machines the library's layout is the same. */
typedef struct {
	uint32_t NumAdapters;
	uint32_t Padding;
	uint64_t pAdapters;
} D3DKMT_ENUMADAPTERS2;
SIZE_IS(D3DKMT_ENUMADAPTERS2, 16);

typedef struct {
	uint64_t Filter;
	uint32_t NumAdapters;
	uint32_t Padding;
	uint64_t pAdapters;
} D3DKMT_ENUMADAPTERS3;
SIZE_IS(D3DKMT_ENUMADAPTERS3, 24);
FIELD_AT(D3DKMT_ENUMADAPTERS3, pAdapters, 16);

enum { FILTER_INCLUDE_COMPUTE_ONLY = 1 << 0 };

typedef struct {
	LUID AdapterLuid;
	uint32_t hAdapter;
} D3DKMT_OPENADAPTERFROMLUID;
SIZE_IS(D3DKMT_OPENADAPTERFROMLUID, 12);

typedef struct {
	uint32_t hAdapter;
} D3DKMT_CLOSEADAPTER;
SIZE_IS(D3DKMT_CLOSEADAPTER, 4);

typedef struct {
	uint32_t hAdapter;
	uint32_t Type;
	uint64_t pPrivateDriverData;
	uint32_t PrivateDriverDataSize;
	uint32_t Padding;
} D3DKMT_QUERYADAPTERINFO;
SIZE_IS(D3DKMT_QUERYADAPTERINFO, 24);
FIELD_AT(D3DKMT_QUERYADAPTERINFO, PrivateDriverDataSize, 16);

#define REGISTRY_INFO(name, wide)              \
	typedef struct {                       \
		uint32_t QueryType;            \
		uint32_t QueryFlags;           \
		wide ValueName[260];           \
		uint32_t ValueType;            \
		uint32_t PhysicalAdapterIndex; \
		uint32_t OutputValueSize;      \
		uint32_t Status;               \
		union {                        \
			uint64_t OutputQword;  \
			wide OutputString[1];  \
		};                             \
	} name

REGISTRY_INFO(QUERYREGISTRY_LIBRARY, uint32_t);
SIZE_IS(QUERYREGISTRY_LIBRARY, 1072);
FIELD_AT(QUERYREGISTRY_LIBRARY, ValueType, 1048);
FIELD_AT(QUERYREGISTRY_LIBRARY, OutputValueSize, 1056);
FIELD_AT(QUERYREGISTRY_LIBRARY, OutputString, 1064);

REGISTRY_INFO(QUERYREGISTRY_KERNEL, uint16_t);
SIZE_IS(QUERYREGISTRY_KERNEL, 552);
FIELD_AT(QUERYREGISTRY_KERNEL, ValueType, 528);
FIELD_AT(QUERYREGISTRY_KERNEL, OutputValueSize, 536);
FIELD_AT(QUERYREGISTRY_KERNEL, OutputString, 544);

enum { REGISTRY_SERVICEKEY, REGISTRY_ADAPTERKEY, REGISTRY_DRIVERSTOREPATH, REGISTRY_DRIVERIMAGEPATH };
enum { REGISTRY_SUCCESS = 0, REGISTRY_OVERFLOW = 1, REGISTRY_FAIL = 2 };

typedef struct {
	uint32_t PhysicalAdapterIndex;
	uint32_t VendorID, DeviceID, SubVendorID, SubSystemID, RevisionID, BusType;
} QUERY_DEVICE_IDS;
SIZE_IS(QUERY_DEVICE_IDS, 28);

typedef struct {
	uint32_t BusNumber, DeviceNumber, FunctionNumber;
} ADAPTERADDRESS;
SIZE_IS(ADAPTERADDRESS, 12);

typedef struct {
	uint32_t hAdapter, Padding;
	uint32_t Flags, hDevice;
	uint64_t Buffers[6]; /* of drivers before WDDM 2 */
} D3DKMT_CREATEDEVICE;
SIZE_IS(D3DKMT_CREATEDEVICE, 64);
FIELD_AT(D3DKMT_CREATEDEVICE, hDevice, 12);

typedef struct {
	uint32_t hAdapter, hDevice, Type, Flags;
	uint64_t pPrivateDriverData;
	uint32_t PrivateDriverDataSize, hContext;
} D3DKMT_ESCAPE;
SIZE_IS(D3DKMT_ESCAPE, 32);

typedef struct {
	uint32_t Type;
	LUID AdapterLuid;
	uint32_t Padding;
	uint64_t hProcess;
	char Result[0x308];
	uint64_t Query;
} D3DKMT_QUERYSTATISTICS;
SIZE_IS(D3DKMT_QUERYSTATISTICS, 0x328);

typedef struct {
	LUID AdapterLuid;
	uint64_t Buffer, BufferCount;
} D3DKMT_ENUMPROCESSES;
SIZE_IS(D3DKMT_ENUMPROCESSES, 24);

typedef struct {
	uint32_t hAdapter, FeatureId;
	uint16_t Version, Value;
} D3DKMT_ISFEATUREENABLED;
SIZE_IS(D3DKMT_ISFEATUREENABLED, 12);

enum adapter_query {
	QUERY_UMDRIVERPRIVATE = 0,
	QUERY_UMDRIVERNAME = 1,
	QUERY_GETSEGMENTSIZE = 3,
	QUERY_ADAPTERADDRESS = 6,
	QUERY_ADAPTERREGISTRYINFO = 8,
	QUERY_DRIVERVERSION = 13,
	QUERY_ADAPTERTYPE = 15,
	QUERY_UMD_DRIVER_VERSION = 18,
	QUERY_PHYSICALADAPTERCOUNT = 30,
	QUERY_PHYSICALADAPTERDEVICEIDS = 31,
	QUERY_QUERYREGISTRY = 48,
	QUERY_KMD_DRIVER_VERSION = 49,
	QUERY_ADAPTERADDRESS_RENDER = 53,
	QUERY_ADAPTERREGISTRYINFO_RENDER = 54,
	QUERY_DRIVERVERSION_RENDER = 56,
	QUERY_ADAPTERTYPE_RENDER = 57,
	QUERY_ADAPTER_UNIQUE_GUID = 60,
	QUERY_DRIVER_DESCRIPTION = 65,
	QUERY_DRIVER_DESCRIPTION_RENDER = 66,
	QUERY_PARAVIRTUALIZATION_RENDER = 68,
	QUERY_SERVICENAME = 69,
	QUERY_WDDM_2_7_CAPS = 70,
	QUERY_WDDM_2_9_CAPS = 75,
};

enum adapter_type {
	TYPE_RENDER = 1 << 0,
	TYPE_DISPLAY = 1 << 1,
	TYPE_SOFTWARE = 1 << 2,
	TYPE_POST = 1 << 3,
	TYPE_HYBRID_DISCRETE = 1 << 4,
	TYPE_HYBRID_INTEGRATED = 1 << 5,
	TYPE_INDIRECT_DISPLAY = 1 << 6,
	TYPE_PARAVIRTUALIZED = 1 << 7,
	TYPE_ACG = 1 << 8,
	TYPE_SET_TIMINGS = 1 << 9,
	TYPE_DETACHABLE = 1 << 10,
	TYPE_COMPUTE_ONLY = 1 << 11,
};

/* ioctl codes, spelled as the numbers that strace(1) shows: nothing is computed from the structs above. */
#define LX_DXOPENADAPTERFROMLUID 0xC00C4701u
#define LX_DXQUERYADAPTERINFO 0xC0184709u
#define LX_DXENUMADAPTERS2 0xC0104714u
#define LX_DXCLOSEADAPTER 0xC0044715u
#define LX_DXENUMADAPTERS3 0xC018473Eu
#define LX_DXCREATEDEVICE 0xC0404702u
#define LX_DXESCAPE 0xC020470Du
#define LX_DXDESTROYDEVICE 0xC0044719u
#define LX_DXQUERYSTATISTICS 0xC3284743u
#define LX_DXENUMPROCESSES 0xC0184748u
#define LX_ISFEATUREENABLED 0xC00C4749u

enum { LX_DX_MAGIC = 0x47 };
enum { ADAPTERS_MAX = 64 };
/* A message to the host is 128 KiB at most, and has a header. */
enum { MESSAGE_DATA_MAX = 128 * 1024 - 64 };
