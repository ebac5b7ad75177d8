/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver API as the tests see it: its types, written from the public documentation, and the list of its functions that
 * the simulated driver has and that the conformance checks call. No toolkit is needed to compile what includes this.
 */

#ifndef VCUDA_TEST_CUDA_H
#define VCUDA_TEST_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUtexref_st *CUtexref;
typedef struct CUsurfref_st *CUsurfref;
typedef unsigned long long CUtexObject;
typedef unsigned long long CUsurfObject;
typedef unsigned long long CUgraphConditionalHandle;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);
typedef size_t (*CUoccupancyB2DSize)(int block);

#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)0x2)

typedef struct {
	char bytes[16];
} CUuuid;

typedef struct {
	char bytes[64];
} CUipcMemHandle;

typedef struct {
	char bytes[64];
} CUipcEventHandle;

typedef struct {
	int type;
	int id;
} CUmemLocation;

typedef struct {
	int type;
	int requested_handle_types;
	CUmemLocation location;
	void *win32;
	unsigned char flags[8];
} CUmemAllocationProp;

typedef struct {
	CUmemLocation location;
	int flags;
} CUmemAccessDesc;

typedef struct {
	int alloc_type;
	int handle_types;
	CUmemLocation location;
	void *win32;
	size_t max_size;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;

/* One side of a copy: a rectangle in host or device memory. */
typedef struct {
	size_t src_x, src_y;
	int src_type;
	const void *src_host;
	CUdeviceptr src_device;
	CUarray src_array;
	size_t src_pitch;
	size_t dst_x, dst_y;
	int dst_type;
	void *dst_host;
	CUdeviceptr dst_device;
	CUarray dst_array;
	size_t dst_pitch;
	size_t width, height;
} CUDA_MEMCPY2D;

typedef struct {
	size_t src_x, src_y, src_z, src_lod;
	int src_type;
	const void *src_host;
	CUdeviceptr src_device;
	CUarray src_array;
	CUcontext src_context; /* reserved where the copy is not one between peers */
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_lod;
	int dst_type;
	void *dst_host;
	CUdeviceptr dst_device;
	CUarray dst_array;
	CUcontext dst_context;
	size_t dst_pitch, dst_height;
	size_t width, height, depth;
} CUDA_MEMCPY3D;

typedef struct {
	size_t width, height;
	int format;
	unsigned channels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
	size_t width, height, depth;
	int format;
	unsigned channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
	unsigned tile[3], tail_level;
	unsigned long long tail_size;
	unsigned flags, reserved[4];
} CUDA_ARRAY_SPARSE_PROPERTIES;

typedef struct {
	size_t size, alignment;
	unsigned reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;

/* What a texture or a surface is made of: an array, one with levels, a line or a plane of device memory. */
typedef struct {
	int type;
	union {
		CUarray array;
		CUmipmappedArray mipmap;
		struct {
			CUdeviceptr pointer;
			int format;
			unsigned channels;
			size_t width, height, pitch; /* of a line, the first is its bytes */
		} memory;
		int reserved[32];
	} of;
	unsigned flags;
} CUDA_RESOURCE_DESC;

typedef struct {
	int address[3], filter;
	unsigned flags, anisotropy;
	int level_filter;
	float level_bias, level_least, level_most, border[4];
	int reserved[12];
} CUDA_TEXTURE_DESC;

typedef struct {
	int format;
	size_t width, height, depth;
	unsigned first_level, last_level, first_layer, last_layer, reserved[16];
} CUDA_RESOURCE_VIEW_DESC;

typedef struct {
	int id;
	char pad[4];
	union {
		char pad[64];
		int cooperative;
		int priority;
		int sync_policy;
		struct {
			unsigned x, y, z;
		} cluster;
		int programmatic;
	} value;
} CUlaunchAttribute;

typedef struct {
	unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
	CUstream stream;
	CUlaunchAttribute *attributes;
	unsigned attribute_count;
} CUlaunchConfig;

typedef struct {
	CUfunction function;
	unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
	void **parameters;
	void **extra;
	CUkernel kernel;
	CUcontext context;
} CUDA_KERNEL_NODE_PARAMS;

/* Before CUDA 12: the same without what is behind @extra. */
typedef struct {
	CUfunction function;
	unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
	void **parameters;
	void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

typedef struct {
	CUdeviceptr to;
	size_t pitch;
	unsigned value;
	unsigned element;
	size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
	unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

typedef struct {
	CUhostFn function;
	void *data;
} CUDA_HOST_NODE_PARAMS;

typedef struct {
	unsigned long long handle;
	int type;
	unsigned size;
	CUgraph *graphs;
	CUcontext context;
} CUDA_CONDITIONAL_NODE_PARAMS;

typedef struct {
	CUmemPoolProps pool;
	const CUmemAccessDesc *access;
	size_t access_count, bytes;
	CUdeviceptr pointer;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct {
	int type, reserved[3];
	union {
		long long pad[29];
		CUDA_KERNEL_NODE_PARAMS kernel;
		struct {
			int flags, reserved;
			CUcontext context;
			CUDA_MEMCPY3D copy;
		} copy;
		struct {
			CUDA_MEMSET_NODE_PARAMS fill;
			CUcontext context;
		} fill;
		CUDA_HOST_NODE_PARAMS host;
		CUgraph child;
		CUevent event;
		CUDA_MEM_ALLOC_NODE_PARAMS alloc;
		CUdeviceptr pointer;
		CUDA_CONDITIONAL_NODE_PARAMS conditional;
	};
	long long reserved2;
} CUgraphNodeParams;

typedef struct {
	cuuint64_t flags;
	CUstream stream;
	CUgraphNode error_node;
	int result;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct {
	int order;
	CUmemLocation from, to;
	unsigned flags;
} CUmemcpyAttributes;

typedef struct {
	int type; /* 1: pointer; 2: array */
	union {
		struct {
			CUdeviceptr at;
			size_t row, rows;
			CUmemLocation hint;
		} pointer;
		struct {
			CUarray array;
			size_t x, y, z;
		} array;
	};
} CUmemcpy3DOperand;

typedef struct {
	CUmemcpy3DOperand from, to;
	size_t width, height, depth;
	int order;
	unsigned flags;
} CUDA_MEMCPY3D_BATCH_OP;

typedef struct {
	int operation;
	int pad;
	CUdeviceptr address;
	uint64_t value;
	unsigned flags;
	unsigned pad2;
	CUdeviceptr alias;
	uint64_t reserved;
} CUstreamBatchMemOpParams;

typedef struct {
	int result;
	int pad;
	CUgraphNode error_node, error_from_node;
} CUgraphExecUpdateResultInfo;

typedef struct {
	int max_threads_per_block, max_threads_dim[3], max_grid_size[3];
	int shared_memory_per_block, total_constant_memory, simd_width, memory_pitch, registers_per_block, clock_rate;
	int texture_align;
} CUdevprop;

typedef union {
	char pad[64];
	int sync_policy;
	int priority;
} CUstreamAttrValue;

typedef struct {
	uint64_t opaque[16];
} CUtensorMap;

/* What the tests name of the numbers. */
enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEINITIALIZED = 4,
	CUDA_ERROR_INVALID_DEVICE_FUNCTION = 98,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_IMAGE = 200,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_CONTEXT_ALREADY_CURRENT = 202,
	CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
	CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
	CUDA_ERROR_INVALID_PTX = 218,
	CUDA_ERROR_FILE_NOT_FOUND = 301,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
	CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
	CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
	CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
	CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
	CUDA_ERROR_LAUNCH_FAILED = 719,
	CUDA_ERROR_NOT_PERMITTED = 800,
	CUDA_ERROR_NOT_SUPPORTED = 801,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
	CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
	CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
	CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
	CUDA_ERROR_CAPTURED_EVENT = 907,
	CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
	CUDA_ERROR_UNKNOWN = 999,
};

enum {
	CU_ARRAY_U8 = 1,
	CU_ARRAY_U16 = 2,
	CU_ARRAY_U32 = 3,
	CU_ARRAY_S8 = 8,
	CU_ARRAY_S32 = 0xa,
	CU_ARRAY_FLOAT = 0x20
};
enum { CU_MEMORY_HOST = 1, CU_MEMORY_DEVICE = 2, CU_MEMORY_ARRAY = 3, CU_MEMORY_UNIFIED = 4 };

#include "functions.h"

#define CUDA_DECLARE(name, symbol, version, parameters) CUresult symbol parameters;
#define CUDA_DECLARE_TWIN(name, symbol, version, suffix, parameters, arguments) \
	CUresult symbol parameters;                                             \
	CUresult symbol##_##suffix parameters;
CUDA_FUNCTIONS(CUDA_DECLARE, CUDA_DECLARE_TWIN)

#endif
