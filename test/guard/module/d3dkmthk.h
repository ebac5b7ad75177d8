/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once

/*
 * The layouts of the ioctls, from the published interface; numbers as strace(1) shows them, so that nothing is computed from
 * the structs.
 */

#include <linux/build_bug.h>
#include <linux/types.h>

struct winluid {
	u32 a, b;
};

struct d3dkmthandle {
	union {
		struct {
			u32 instance : 6;
			u32 index : 24;
			u32 unique : 2;
		};
		u32 v;
	};
};

struct d3dkmt_adapterinfo {
	struct d3dkmthandle adapter_handle;
	struct winluid adapter_luid;
	u32 num_sources;
	u32 present_move_regions_preferred;
};
static_assert(sizeof(struct d3dkmt_adapterinfo) == 20);

struct d3dkmt_enumadapters2 {
	u32 num_adapters;
	u32 reserved;
	u64 adapters;
};

struct d3dkmt_enumadapters3 {
	u64 filter;
	u32 adapter_count;
	u32 reserved;
	u64 adapters;
};

struct d3dkmt_openadapterfromluid {
	struct winluid adapter_luid;
	struct d3dkmthandle adapter_handle;
};

struct d3dkmt_queryadapterinfo {
	struct d3dkmthandle adapter;
	u32 type;
	u64 private_data;
	u32 private_data_size;
	u32 reserved;
};

struct d3dkmt_createdevice {
	struct d3dkmthandle adapter;
	u32 reserved;
	u32 flags;
	struct d3dkmthandle device;
	u64 buffers[6];
};
static_assert(sizeof(struct d3dkmt_createdevice) == 64);

struct d3dkmt_createpagingqueue {
	struct d3dkmthandle device;
	u32 priority;
	struct d3dkmthandle paging_queue;
	struct d3dkmthandle sync_object;
	u64 fence_cpu_virtual_address;
	u32 physical_adapter_index;
};

struct d3dkmt_querystatistics {
	u32 type;
	struct winluid adapter_luid;
	u64 process;
	char result[0x308];
	u64 query;
};
static_assert(sizeof(struct d3dkmt_querystatistics) == 0x328);

struct d3dkmt_enumprocesses {
	struct winluid adapter_luid;
	u64 buffer;
	u64 buffer_count;
};

enum {
	LX_DXOPENADAPTERFROMLUID = 0xC00C4701,
	LX_DXCREATEDEVICE = 0xC0404702,
	LX_DXCREATEPAGINGQUEUE = 0xC0204707,
	LX_DXRESERVEGPUVIRTUALADDRESS = 0xC0484708,
	LX_DXQUERYADAPTERINFO = 0xC0184709,
	LX_DXQUERYVIDEOMEMORYINFO = 0xC038470A,
	LX_DXMAKERESIDENT = 0xC030470B,
	LX_DXESCAPE = 0xC020470D,
	LX_DXGETDEVICESTATE = 0xC038470E,
	LX_DXENUMADAPTERS2 = 0xC0104714,
	LX_DXCLOSEADAPTER = 0xC0044715,
	LX_DXCHANGEVIDEOMEMORYRESERVATION = 0xC0204716,
	LX_DXDESTROYDEVICE = 0xC0044719,
	LX_DXDESTROYPAGINGQUEUE = 0xC004471C,
	LX_DXFLUSHHEAPTRANSITIONS = 0xC004471F,
	LX_DXFREEGPUVIRTUALADDRESS = 0xC0184720,
	LX_DXQUERYCLOCKCALIBRATION = 0xC028473D,
	LX_DXENUMADAPTERS3 = 0xC018473E,
	LX_DXQUERYSTATISTICS = 0xC3284743,
	LX_DXENUMPROCESSES = 0xC0184748,
	LX_ISFEATUREENABLED = 0xC00C4749,
};

enum {
	D3DKMT_ADAPTERS_MAX = 64,
	DXG_MAX_VM_BUS_PACKET_SIZE = 128 * 1024,
	ENUM_COMPUTE_ONLY = 1 << 0, /* of d3dkmt_enumadapters3.filter */
};

enum {
	TYPE_RENDER = 1 << 0,
	TYPE_PARAVIRTUALIZED = 1 << 7,
	TYPE_COMPUTE_ONLY = 1 << 11,
};
