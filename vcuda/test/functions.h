/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The functions of the driver API that the tests know: by which name cuGetProcAddress() is asked, the symbol behind it, since
 * which version of CUDA, and the parameters. T() has a twin besides, whose default stream is the thread's own.
 */

#ifndef VCUDA_TEST_FUNCTIONS_H
#define VCUDA_TEST_FUNCTIONS_H

/* clang-format off */
#define CUDA_FUNCTIONS(F, T) \
	F(cuInit, cuInit, 2000, (unsigned flags)) \
	F(cuDriverGetVersion, cuDriverGetVersion, 2020, (int *ret)) \
	F(cuGetErrorString, cuGetErrorString, 6000, (CUresult error, const char **ret)) \
	F(cuGetErrorName, cuGetErrorName, 6000, (CUresult error, const char **ret)) \
	F(cuGetProcAddress, cuGetProcAddress, 11030, (const char *name, void **ret, int version, cuuint64_t flags)) \
	F(cuGetProcAddress, cuGetProcAddress_v2, 12000, (const char *name, void **ret, int version, cuuint64_t flags, int *ret_status)) \
	F(cuGetExportTable, cuGetExportTable, 3000, (const void **ret, const CUuuid *id)) \
	F(cuDeviceGet, cuDeviceGet, 2000, (CUdevice *ret, int ordinal)) \
	F(cuDeviceGetCount, cuDeviceGetCount, 2000, (int *ret)) \
	F(cuDeviceGetName, cuDeviceGetName, 2000, (char *name, int size, CUdevice device)) \
	F(cuDeviceGetUuid, cuDeviceGetUuid, 9020, (CUuuid *ret, CUdevice device)) \
	F(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, (CUuuid *ret, CUdevice device)) \
	F(cuDeviceGetLuid, cuDeviceGetLuid, 10000, (char *luid, unsigned *mask, CUdevice device)) \
	F(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, (size_t *ret, CUdevice device)) \
	F(cuDeviceGetTexture1DLinearMaxWidth, cuDeviceGetTexture1DLinearMaxWidth, 11010, (size_t *ret, int format, unsigned channels, CUdevice device)) \
	F(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, (int *ret, int attribute, CUdevice device)) \
	F(cuDeviceGetProperties, cuDeviceGetProperties, 2000, (CUdevprop *ret, CUdevice device)) \
	F(cuDeviceComputeCapability, cuDeviceComputeCapability, 2000, (int *ret_major, int *ret_minor, CUdevice device)) \
	F(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, 4010, (CUdevice *ret, const char *id)) \
	F(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, (char *id, int size, CUdevice device)) \
	F(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000, (int *ret, CUdevice device, CUdevice peer)) \
	F(cuDeviceGetP2PAttribute, cuDeviceGetP2PAttribute, 8000, (int *ret, int attribute, CUdevice from, CUdevice to)) \
	F(cuDeviceGetExecAffinitySupport, cuDeviceGetExecAffinitySupport, 11040, (int *ret, int type, CUdevice device)) \
	F(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, (CUmemoryPool *ret, CUdevice device)) \
	F(cuDeviceGetMemPool, cuDeviceGetMemPool, 11020, (CUmemoryPool *ret, CUdevice device)) \
	F(cuDeviceSetMemPool, cuDeviceSetMemPool, 11020, (CUdevice device, CUmemoryPool pool)) \
	F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (CUcontext *ret, CUdevice device)) \
	F(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice device)) \
	F(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, (CUdevice device)) \
	F(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, 11000, (CUdevice device, unsigned flags)) \
	F(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000, (CUdevice device, unsigned *ret_flags, int *ret_active)) \
	F(cuCtxCreate, cuCtxCreate_v2, 3020, (CUcontext *ret, unsigned flags, CUdevice device)) \
	F(cuCtxCreate, cuCtxCreate_v3, 11040, (CUcontext *ret, void *affinity, int affinity_count, unsigned flags, CUdevice device)) \
	F(cuCtxCreate, cuCtxCreate_v4, 12050, (CUcontext *ret, void *parameters, unsigned flags, CUdevice device)) \
	F(cuCtxDestroy, cuCtxDestroy_v2, 4000, (CUcontext context)) \
	F(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000, (CUcontext context)) \
	F(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000, (CUcontext *ret)) \
	F(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (CUcontext context)) \
	F(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (CUcontext *ret)) \
	F(cuCtxGetDevice, cuCtxGetDevice, 2000, (CUdevice *ret)) \
	F(cuCtxGetDevice, cuCtxGetDevice_v2, 13000, (CUdevice *ret, CUcontext context)) \
	F(cuCtxGetFlags, cuCtxGetFlags, 7000, (unsigned *ret)) \
	F(cuCtxSetFlags, cuCtxSetFlags, 12010, (unsigned flags)) \
	F(cuCtxGetId, cuCtxGetId, 12000, (CUcontext context, unsigned long long *ret)) \
	F(cuCtxSynchronize, cuCtxSynchronize, 2000, (void)) \
	F(cuCtxSynchronize, cuCtxSynchronize_v2, 13000, (CUcontext context)) \
	F(cuCtxSetLimit, cuCtxSetLimit, 3010, (int limit, size_t value)) \
	F(cuCtxGetLimit, cuCtxGetLimit, 3010, (size_t *ret, int limit)) \
	F(cuCtxGetCacheConfig, cuCtxGetCacheConfig, 3020, (int *ret)) \
	F(cuCtxSetCacheConfig, cuCtxSetCacheConfig, 3020, (int config)) \
	F(cuCtxGetSharedMemConfig, cuCtxGetSharedMemConfig, 4020, (int *ret)) \
	F(cuCtxSetSharedMemConfig, cuCtxSetSharedMemConfig, 4020, (int config)) \
	F(cuCtxGetApiVersion, cuCtxGetApiVersion, 3020, (CUcontext context, unsigned *ret)) \
	F(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050, (int *ret_least, int *ret_greatest)) \
	F(cuCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000, (void)) \
	F(cuCtxGetExecAffinity, cuCtxGetExecAffinity, 11040, (void *ret, int type)) \
	F(cuCtxAttach, cuCtxAttach, 2000, (CUcontext *ret, unsigned flags)) \
	F(cuCtxDetach, cuCtxDetach, 2000, (CUcontext context)) \
	F(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000, (CUcontext peer, unsigned flags)) \
	F(cuCtxDisablePeerAccess, cuCtxDisablePeerAccess, 4000, (CUcontext peer)) \
	F(cuModuleLoad, cuModuleLoad, 2000, (CUmodule *ret, const char *path)) \
	F(cuModuleLoadData, cuModuleLoadData, 2000, (CUmodule *ret, const void *image)) \
	F(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, (CUmodule *ret, const void *image, unsigned count, int *options, void **values)) \
	F(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, (CUmodule *ret, const void *image)) \
	F(cuModuleUnload, cuModuleUnload, 2000, (CUmodule module)) \
	F(cuModuleGetLoadingMode, cuModuleGetLoadingMode, 11070, (int *ret)) \
	F(cuModuleGetFunction, cuModuleGetFunction, 2000, (CUfunction *ret, CUmodule module, const char *name)) \
	F(cuModuleGetFunctionCount, cuModuleGetFunctionCount, 12040, (unsigned *ret, CUmodule module)) \
	F(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 12040, (CUfunction *ret, unsigned count, CUmodule module)) \
	F(cuModuleGetGlobal, cuModuleGetGlobal_v2, 3020, (CUdeviceptr *ret, size_t *ret_bytes, CUmodule module, const char *name)) \
	F(cuLinkCreate, cuLinkCreate_v2, 6050, (unsigned count, int *options, void **values, CUlinkState *ret)) \
	F(cuLinkAddData, cuLinkAddData_v2, 6050, (CUlinkState state, int type, void *data, size_t size, const char *name, unsigned count, int *options, void **values)) \
	F(cuLinkAddFile, cuLinkAddFile_v2, 6050, (CUlinkState state, int type, const char *path, unsigned count, int *options, void **values)) \
	F(cuLinkComplete, cuLinkComplete, 5050, (CUlinkState state, void **ret, size_t *ret_size)) \
	F(cuLinkDestroy, cuLinkDestroy, 5050, (CUlinkState state)) \
	F(cuLibraryLoadData, cuLibraryLoadData, 12000, (CUlibrary *ret, const void *image, int *jit, void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)) \
	F(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, (CUlibrary *ret, const char *path, int *jit, void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)) \
	F(cuLibraryUnload, cuLibraryUnload, 12000, (CUlibrary library)) \
	F(cuLibraryGetKernel, cuLibraryGetKernel, 12000, (CUkernel *ret, CUlibrary library, const char *name)) \
	F(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 12040, (unsigned *ret, CUlibrary library)) \
	F(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040, (CUkernel *ret, unsigned count, CUlibrary library)) \
	F(cuLibraryGetModule, cuLibraryGetModule, 12000, (CUmodule *ret, CUlibrary library)) \
	F(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000, (CUdeviceptr *ret, size_t *ret_bytes, CUlibrary library, const char *name)) \
	F(cuLibraryGetManaged, cuLibraryGetManaged, 12000, (CUdeviceptr *ret, size_t *ret_bytes, CUlibrary library, const char *name)) \
	F(cuLibraryGetUnifiedFunction, cuLibraryGetUnifiedFunction, 12000, (void **ret, CUlibrary library, const char *name)) \
	F(cuKernelGetFunction, cuKernelGetFunction, 12000, (CUfunction *ret, CUkernel kernel)) \
	F(cuKernelGetLibrary, cuKernelGetLibrary, 12050, (CUlibrary *ret, CUkernel kernel)) \
	F(cuKernelGetAttribute, cuKernelGetAttribute, 12000, (int *ret, int attribute, CUkernel kernel, CUdevice device)) \
	F(cuKernelSetAttribute, cuKernelSetAttribute, 12000, (int attribute, int value, CUkernel kernel, CUdevice device)) \
	F(cuKernelSetCacheConfig, cuKernelSetCacheConfig, 12000, (CUkernel kernel, int config, CUdevice device)) \
	F(cuKernelGetName, cuKernelGetName, 12030, (const char **ret, CUkernel kernel)) \
	F(cuKernelGetParamInfo, cuKernelGetParamInfo, 12040, (CUkernel kernel, size_t index, size_t *ret_offset, size_t *ret_size)) \
	F(cuFuncGetAttribute, cuFuncGetAttribute, 2020, (int *ret, int attribute, CUfunction function)) \
	F(cuFuncSetAttribute, cuFuncSetAttribute, 9000, (CUfunction function, int attribute, int value)) \
	F(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 3000, (CUfunction function, int config)) \
	F(cuFuncSetSharedMemConfig, cuFuncSetSharedMemConfig, 4020, (CUfunction function, int config)) \
	F(cuFuncGetModule, cuFuncGetModule, 11000, (CUmodule *ret, CUfunction function)) \
	F(cuFuncGetName, cuFuncGetName, 12030, (const char **ret, CUfunction function)) \
	F(cuFuncGetParamInfo, cuFuncGetParamInfo, 12040, (CUfunction function, size_t index, size_t *ret_offset, size_t *ret_size)) \
	F(cuFuncIsLoaded, cuFuncIsLoaded, 12040, (int *ret, CUfunction function)) \
	F(cuFuncLoad, cuFuncLoad, 12040, (CUfunction function)) \
	F(cuMemGetInfo, cuMemGetInfo_v2, 3020, (size_t *ret_free, size_t *ret_total)) \
	F(cuMemAlloc, cuMemAlloc_v2, 3020, (CUdeviceptr *ret, size_t bytes)) \
	F(cuMemAllocPitch, cuMemAllocPitch_v2, 3020, (CUdeviceptr *ret, size_t *ret_pitch, size_t width, size_t height, unsigned element)) \
	F(cuMemFree, cuMemFree_v2, 3020, (CUdeviceptr pointer)) \
	F(cuMemGetAddressRange, cuMemGetAddressRange_v2, 3020, (CUdeviceptr *ret, size_t *ret_bytes, CUdeviceptr pointer)) \
	F(cuMemAllocHost, cuMemAllocHost_v2, 3020, (void **ret, size_t bytes)) \
	F(cuMemFreeHost, cuMemFreeHost, 2000, (void *pointer)) \
	F(cuMemHostAlloc, cuMemHostAlloc, 2020, (void **ret, size_t bytes, unsigned flags)) \
	F(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020, (CUdeviceptr *ret, void *pointer, unsigned flags)) \
	F(cuMemHostGetFlags, cuMemHostGetFlags, 2030, (unsigned *ret, void *pointer)) \
	F(cuMemHostRegister, cuMemHostRegister_v2, 6050, (void *pointer, size_t bytes, unsigned flags)) \
	F(cuMemHostUnregister, cuMemHostUnregister, 4000, (void *pointer)) \
	F(cuMemAllocManaged, cuMemAllocManaged, 6000, (CUdeviceptr *ret, size_t bytes, unsigned flags)) \
	F(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010, (CUipcMemHandle *ret, CUdeviceptr pointer)) \
	F(cuIpcOpenMemHandle, cuIpcOpenMemHandle, 4010, (CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags)) \
	F(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, 11000, (CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags)) \
	F(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, (CUdeviceptr pointer)) \
	F(cuIpcGetEventHandle, cuIpcGetEventHandle, 4010, (CUipcEventHandle *ret, CUevent event)) \
	F(cuIpcOpenEventHandle, cuIpcOpenEventHandle, 4010, (CUevent *ret, CUipcEventHandle handle)) \
	F(cuMemAdvise, cuMemAdvise, 8000, (CUdeviceptr pointer, size_t bytes, int advice, CUdevice device)) \
	F(cuMemAdvise, cuMemAdvise_v2, 12020, (CUdeviceptr pointer, size_t bytes, int advice, CUmemLocation location)) \
	T(cuMemPrefetchAsync, cuMemPrefetchAsync, 8000, ptsz, (CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream), (pointer, bytes, device, stream)) \
	T(cuMemPrefetchAsync, cuMemPrefetchAsync_v2, 12020, ptsz, (CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream), (pointer, bytes, location, flags, stream)) \
	F(cuMemRangeGetAttribute, cuMemRangeGetAttribute, 8000, (void *ret, size_t size, int attribute, CUdeviceptr pointer, size_t bytes)) \
	F(cuMemRangeGetAttributes, cuMemRangeGetAttributes, 8000, (void **ret, size_t *sizes, int *attributes, size_t count, CUdeviceptr pointer, size_t bytes)) \
	F(cuPointerGetAttribute, cuPointerGetAttribute, 4000, (void *ret, int attribute, CUdeviceptr pointer)) \
	F(cuPointerGetAttributes, cuPointerGetAttributes, 7000, (unsigned count, int *attributes, void **data, CUdeviceptr pointer)) \
	F(cuPointerSetAttribute, cuPointerSetAttribute, 6000, (const void *value, int attribute, CUdeviceptr pointer)) \
	T(cuMemAllocAsync, cuMemAllocAsync, 11020, ptsz, (CUdeviceptr *ret, size_t bytes, CUstream stream), (ret, bytes, stream)) \
	T(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, ptsz, (CUdeviceptr *ret, size_t bytes, CUmemoryPool pool, CUstream stream), (ret, bytes, pool, stream)) \
	T(cuMemFreeAsync, cuMemFreeAsync, 11020, ptsz, (CUdeviceptr pointer, CUstream stream), (pointer, stream)) \
	F(cuMemPoolCreate, cuMemPoolCreate, 11020, (CUmemoryPool *ret, const CUmemPoolProps *properties)) \
	F(cuMemPoolDestroy, cuMemPoolDestroy, 11020, (CUmemoryPool pool)) \
	F(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, (CUmemoryPool pool, size_t keep)) \
	F(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020, (CUmemoryPool pool, int attribute, void *value)) \
	F(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020, (CUmemoryPool pool, int attribute, void *ret)) \
	F(cuMemPoolSetAccess, cuMemPoolSetAccess, 11020, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)) \
	F(cuMemPoolGetAccess, cuMemPoolGetAccess, 11020, (int *ret, CUmemoryPool pool, CUmemLocation *location)) \
	F(cuMemAddressReserve, cuMemAddressReserve, 10020, (CUdeviceptr *ret, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags)) \
	F(cuMemAddressFree, cuMemAddressFree, 10020, (CUdeviceptr pointer, size_t bytes)) \
	F(cuMemCreate, cuMemCreate, 10020, (CUmemGenericAllocationHandle *ret, size_t bytes, const CUmemAllocationProp *properties, unsigned long long flags)) \
	F(cuMemRelease, cuMemRelease, 10020, (CUmemGenericAllocationHandle handle)) \
	F(cuMemMap, cuMemMap, 10020, (CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)) \
	F(cuMemUnmap, cuMemUnmap, 10020, (CUdeviceptr pointer, size_t bytes)) \
	F(cuMemSetAccess, cuMemSetAccess, 10020, (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count)) \
	F(cuMemGetAccess, cuMemGetAccess, 10020, (unsigned long long *ret, const CUmemLocation *location, CUdeviceptr pointer)) \
	F(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity, 10020, (size_t *ret, const CUmemAllocationProp *properties, int option)) \
	F(cuMemGetAllocationPropertiesFromHandle, cuMemGetAllocationPropertiesFromHandle, 10020, (CUmemAllocationProp *ret, CUmemGenericAllocationHandle handle)) \
	F(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000, (CUmemGenericAllocationHandle *ret, void *pointer)) \
	F(cuUserObjectCreate, cuUserObjectCreate, 11030, (CUuserObject *ret, void *data, CUhostFn destroy, unsigned references, unsigned flags)) \
	F(cuUserObjectRetain, cuUserObjectRetain, 11030, (CUuserObject object, unsigned count)) \
	F(cuUserObjectRelease, cuUserObjectRelease, 11030, (CUuserObject object, unsigned count)) \
	F(cuGraphRetainUserObject, cuGraphRetainUserObject, 11030, (CUgraph graph, CUuserObject object, unsigned count, unsigned flags)) \
	F(cuGraphReleaseUserObject, cuGraphReleaseUserObject, 11030, (CUgraph graph, CUuserObject object, unsigned count)) \
	F(cuMemExportToShareableHandle, cuMemExportToShareableHandle, 10020, (void *ret, CUmemGenericAllocationHandle handle, int type, unsigned long long flags)) \
	F(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020, (CUmemGenericAllocationHandle *ret, void *handle, int type)) \
	T(cuMemcpy, cuMemcpy, 4000, ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes)) \
	T(cuMemcpyPeer, cuMemcpyPeer, 4000, ptds, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes), (to, to_context, from, from_context, bytes)) \
	T(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020, ptds, (CUdeviceptr to, const void *from, size_t bytes), (to, from, bytes)) \
	T(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020, ptds, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes)) \
	T(cuMemcpyDtoD, cuMemcpyDtoD_v2, 3020, ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes)) \
	T(cuMemcpy2D, cuMemcpy2D_v2, 3020, ptds, (const CUDA_MEMCPY2D *copy), (copy)) \
	T(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, 3020, ptds, (const CUDA_MEMCPY2D *copy), (copy)) \
	T(cuMemcpy3D, cuMemcpy3D_v2, 3020, ptds, (const CUDA_MEMCPY3D *copy), (copy)) \
	T(cuMemcpy3DPeer, cuMemcpy3DPeer, 4000, ptds, (const CUDA_MEMCPY3D *copy), (copy)) \
	T(cuMemcpyAsync, cuMemcpyAsync, 4000, ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream)) \
	T(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000, ptsz, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes, CUstream stream), (to, to_context, from, from_context, bytes, stream)) \
	T(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020, ptsz, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream), (to, from, bytes, stream)) \
	T(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020, ptsz, (void *to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream)) \
	T(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020, ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream)) \
	T(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020, ptsz, (const CUDA_MEMCPY2D *copy, CUstream stream), (copy, stream)) \
	T(cuMemcpy3DAsync, cuMemcpy3DAsync_v2, 3020, ptsz, (const CUDA_MEMCPY3D *copy, CUstream stream), (copy, stream)) \
	T(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, 4000, ptsz, (const CUDA_MEMCPY3D *copy, CUstream stream), (copy, stream)) \
	F(cuArrayCreate, cuArrayCreate_v2, 3020, (CUarray *ret, const CUDA_ARRAY_DESCRIPTOR *descriptor)) \
	F(cuArray3DCreate, cuArray3DCreate_v2, 3020, (CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)) \
	F(cuArrayGetDescriptor, cuArrayGetDescriptor_v2, 3020, (CUDA_ARRAY_DESCRIPTOR *ret, CUarray array)) \
	F(cuArray3DGetDescriptor, cuArray3DGetDescriptor_v2, 3020, (CUDA_ARRAY3D_DESCRIPTOR *ret, CUarray array)) \
	F(cuArrayDestroy, cuArrayDestroy, 2000, (CUarray array)) \
	F(cuArrayGetPlane, cuArrayGetPlane, 11020, (CUarray *ret, CUarray array, unsigned index)) \
	F(cuArrayGetSparseProperties, cuArrayGetSparseProperties, 11010, (CUDA_ARRAY_SPARSE_PROPERTIES *ret, CUarray array)) \
	F(cuArrayGetMemoryRequirements, cuArrayGetMemoryRequirements, 11060, (CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUarray array, CUdevice device)) \
	F(cuMipmappedArrayCreate, cuMipmappedArrayCreate, 5000, (CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)) \
	F(cuMipmappedArrayGetLevel, cuMipmappedArrayGetLevel, 5000, (CUarray *ret, CUmipmappedArray mipmap, unsigned level)) \
	F(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy, 5000, (CUmipmappedArray mipmap)) \
	F(cuMipmappedArrayGetSparseProperties, cuMipmappedArrayGetSparseProperties, 11010, (CUDA_ARRAY_SPARSE_PROPERTIES *ret, CUmipmappedArray mipmap)) \
	F(cuMipmappedArrayGetMemoryRequirements, cuMipmappedArrayGetMemoryRequirements, 11060, (CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUmipmappedArray mipmap, CUdevice device)) \
	T(cuMemcpyDtoA, cuMemcpyDtoA_v2, 3020, ptds, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes), (to, offset, from, bytes)) \
	T(cuMemcpyAtoD, cuMemcpyAtoD_v2, 3020, ptds, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes), (to, from, offset, bytes)) \
	T(cuMemcpyHtoA, cuMemcpyHtoA_v2, 3020, ptds, (CUarray to, size_t offset, const void *from, size_t bytes), (to, offset, from, bytes)) \
	T(cuMemcpyAtoH, cuMemcpyAtoH_v2, 3020, ptds, (void *to, CUarray from, size_t offset, size_t bytes), (to, from, offset, bytes)) \
	T(cuMemcpyAtoA, cuMemcpyAtoA_v2, 3020, ptds, (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes), (to, to_offset, from, from_offset, bytes)) \
	T(cuMemcpyHtoAAsync, cuMemcpyHtoAAsync_v2, 3020, ptsz, (CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream), (to, offset, from, bytes, stream)) \
	T(cuMemcpyAtoHAsync, cuMemcpyAtoHAsync_v2, 3020, ptsz, (void *to, CUarray from, size_t offset, size_t bytes, CUstream stream), (to, from, offset, bytes, stream)) \
	F(cuModuleGetTexRef, cuModuleGetTexRef, 2000, (CUtexref *ret, CUmodule module, const char *name)) \
	F(cuModuleGetSurfRef, cuModuleGetSurfRef, 3000, (CUsurfref *ret, CUmodule module, const char *name)) \
	F(cuTexRefCreate, cuTexRefCreate, 2000, (CUtexref *ret)) \
	F(cuTexRefDestroy, cuTexRefDestroy, 2000, (CUtexref ref)) \
	F(cuTexRefSetArray, cuTexRefSetArray, 2000, (CUtexref ref, CUarray array, unsigned flags)) \
	F(cuTexRefSetMipmappedArray, cuTexRefSetMipmappedArray, 5000, (CUtexref ref, CUmipmappedArray mipmap, unsigned flags)) \
	F(cuTexRefSetAddress, cuTexRefSetAddress_v2, 3020, (size_t *ret_offset, CUtexref ref, CUdeviceptr at, size_t bytes)) \
	F(cuTexRefSetAddress2D, cuTexRefSetAddress2D_v2, 3020, (CUtexref ref, const CUDA_ARRAY_DESCRIPTOR *what, CUdeviceptr at, size_t pitch)) \
	F(cuTexRefSetAddress2D, cuTexRefSetAddress2D_v3, 4010, (CUtexref ref, const CUDA_ARRAY_DESCRIPTOR *what, CUdeviceptr at, size_t pitch)) \
	F(cuTexRefSetFormat, cuTexRefSetFormat, 2000, (CUtexref ref, int format, int channels)) \
	F(cuTexRefSetAddressMode, cuTexRefSetAddressMode, 2000, (CUtexref ref, int dimension, int mode)) \
	F(cuTexRefSetFilterMode, cuTexRefSetFilterMode, 2000, (CUtexref ref, int mode)) \
	F(cuTexRefSetMipmapFilterMode, cuTexRefSetMipmapFilterMode, 5000, (CUtexref ref, int mode)) \
	F(cuTexRefSetMipmapLevelBias, cuTexRefSetMipmapLevelBias, 5000, (CUtexref ref, float bias)) \
	F(cuTexRefSetMipmapLevelClamp, cuTexRefSetMipmapLevelClamp, 5000, (CUtexref ref, float least, float most)) \
	F(cuTexRefSetMaxAnisotropy, cuTexRefSetMaxAnisotropy, 5000, (CUtexref ref, unsigned most)) \
	F(cuTexRefSetBorderColor, cuTexRefSetBorderColor, 8000, (CUtexref ref, float *color)) \
	F(cuTexRefSetFlags, cuTexRefSetFlags, 2000, (CUtexref ref, unsigned flags)) \
	F(cuTexRefGetAddress, cuTexRefGetAddress_v2, 3020, (CUdeviceptr *ret, CUtexref ref)) \
	F(cuTexRefGetArray, cuTexRefGetArray, 2000, (CUarray *ret, CUtexref ref)) \
	F(cuTexRefGetMipmappedArray, cuTexRefGetMipmappedArray, 5000, (CUmipmappedArray *ret, CUtexref ref)) \
	F(cuTexRefGetAddressMode, cuTexRefGetAddressMode, 2000, (int *ret, CUtexref ref, int dimension)) \
	F(cuTexRefGetFilterMode, cuTexRefGetFilterMode, 2000, (int *ret, CUtexref ref)) \
	F(cuTexRefGetFormat, cuTexRefGetFormat, 2000, (int *ret_format, int *ret_channels, CUtexref ref)) \
	F(cuTexRefGetMipmapFilterMode, cuTexRefGetMipmapFilterMode, 5000, (int *ret, CUtexref ref)) \
	F(cuTexRefGetMipmapLevelBias, cuTexRefGetMipmapLevelBias, 5000, (float *ret, CUtexref ref)) \
	F(cuTexRefGetMipmapLevelClamp, cuTexRefGetMipmapLevelClamp, 5000, (float *ret_least, float *ret_most, CUtexref ref)) \
	F(cuTexRefGetMaxAnisotropy, cuTexRefGetMaxAnisotropy, 5000, (int *ret, CUtexref ref)) \
	F(cuTexRefGetBorderColor, cuTexRefGetBorderColor, 8000, (float *ret, CUtexref ref)) \
	F(cuTexRefGetFlags, cuTexRefGetFlags, 2000, (unsigned *ret, CUtexref ref)) \
	F(cuSurfRefSetArray, cuSurfRefSetArray, 3000, (CUsurfref ref, CUarray array, unsigned flags)) \
	F(cuSurfRefGetArray, cuSurfRefGetArray, 3000, (CUarray *ret, CUsurfref ref)) \
	F(cuTexObjectCreate, cuTexObjectCreate, 5000, (CUtexObject *ret, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view)) \
	F(cuTexObjectDestroy, cuTexObjectDestroy, 5000, (CUtexObject texture)) \
	F(cuTexObjectGetResourceDesc, cuTexObjectGetResourceDesc, 5000, (CUDA_RESOURCE_DESC *ret, CUtexObject texture)) \
	F(cuTexObjectGetTextureDesc, cuTexObjectGetTextureDesc, 5000, (CUDA_TEXTURE_DESC *ret, CUtexObject texture)) \
	F(cuTexObjectGetResourceViewDesc, cuTexObjectGetResourceViewDesc, 5000, (CUDA_RESOURCE_VIEW_DESC *ret, CUtexObject texture)) \
	F(cuSurfObjectCreate, cuSurfObjectCreate, 5000, (CUsurfObject *ret, const CUDA_RESOURCE_DESC *resource)) \
	F(cuSurfObjectDestroy, cuSurfObjectDestroy, 5000, (CUsurfObject surface)) \
	F(cuSurfObjectGetResourceDesc, cuSurfObjectGetResourceDesc, 5000, (CUDA_RESOURCE_DESC *ret, CUsurfObject surface)) \
	T(cuMemsetD8, cuMemsetD8_v2, 3020, ptds, (CUdeviceptr to, unsigned char value, size_t count), (to, value, count)) \
	T(cuMemsetD16, cuMemsetD16_v2, 3020, ptds, (CUdeviceptr to, unsigned short value, size_t count), (to, value, count)) \
	T(cuMemsetD32, cuMemsetD32_v2, 3020, ptds, (CUdeviceptr to, unsigned value, size_t count), (to, value, count)) \
	T(cuMemsetD2D8, cuMemsetD2D8_v2, 3020, ptds, (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height), (to, pitch, value, width, height)) \
	T(cuMemsetD2D16, cuMemsetD2D16_v2, 3020, ptds, (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height), (to, pitch, value, width, height)) \
	T(cuMemsetD2D32, cuMemsetD2D32_v2, 3020, ptds, (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height), (to, pitch, value, width, height)) \
	T(cuMemsetD8Async, cuMemsetD8Async, 3020, ptsz, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream), (to, value, count, stream)) \
	T(cuMemsetD16Async, cuMemsetD16Async, 3020, ptsz, (CUdeviceptr to, unsigned short value, size_t count, CUstream stream), (to, value, count, stream)) \
	T(cuMemsetD32Async, cuMemsetD32Async, 3020, ptsz, (CUdeviceptr to, unsigned value, size_t count, CUstream stream), (to, value, count, stream)) \
	T(cuMemsetD2D8Async, cuMemsetD2D8Async, 3020, ptsz, (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream), (to, pitch, value, width, height, stream)) \
	T(cuMemsetD2D16Async, cuMemsetD2D16Async, 3020, ptsz, (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height, CUstream stream), (to, pitch, value, width, height, stream)) \
	T(cuMemsetD2D32Async, cuMemsetD2D32Async, 3020, ptsz, (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream), (to, pitch, value, width, height, stream)) \
	T(cuLaunchKernel, cuLaunchKernel, 4000, ptsz, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters, void **extra), (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra)) \
	T(cuLaunchKernelEx, cuLaunchKernelEx, 11060, ptsz, (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra), (config, function, parameters, extra)) \
	T(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, ptsz, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters), (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters)) \
	T(cuLaunchHostFunc, cuLaunchHostFunc, 10000, ptsz, (CUstream stream, CUhostFn function, void *data), (stream, function, data)) \
	F(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, (int *ret, CUfunction function, int block, size_t shared)) \
	F(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, (int *ret, CUfunction function, int block, size_t shared, unsigned flags)) \
	F(cuOccupancyMaxPotentialBlockSize, cuOccupancyMaxPotentialBlockSize, 6050, (int *ret_grid, int *ret_block, CUfunction function, CUoccupancyB2DSize size_of, size_t shared, int limit)) \
	F(cuOccupancyMaxPotentialBlockSizeWithFlags, cuOccupancyMaxPotentialBlockSizeWithFlags, 7000, (int *ret_grid, int *ret_block, CUfunction function, CUoccupancyB2DSize size_of, size_t shared, int limit, unsigned flags)) \
	F(cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock, 10020, (size_t *ret, CUfunction function, int blocks, int block)) \
	F(cuOccupancyMaxPotentialClusterSize, cuOccupancyMaxPotentialClusterSize, 11070, (int *ret, CUfunction function, const CUlaunchConfig *config)) \
	F(cuOccupancyMaxActiveClusters, cuOccupancyMaxActiveClusters, 11070, (int *ret, CUfunction function, const CUlaunchConfig *config)) \
	F(cuStreamCreate, cuStreamCreate, 2000, (CUstream *ret, unsigned flags)) \
	F(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, (CUstream *ret, unsigned flags, int priority)) \
	F(cuStreamDestroy, cuStreamDestroy_v2, 4000, (CUstream stream)) \
	T(cuStreamGetPriority, cuStreamGetPriority, 5050, ptsz, (CUstream stream, int *ret), (stream, ret)) \
	T(cuStreamGetFlags, cuStreamGetFlags, 5050, ptsz, (CUstream stream, unsigned *ret), (stream, ret)) \
	T(cuStreamGetId, cuStreamGetId, 12000, ptsz, (CUstream stream, unsigned long long *ret), (stream, ret)) \
	T(cuStreamGetCtx, cuStreamGetCtx, 9020, ptsz, (CUstream stream, CUcontext *ret), (stream, ret)) \
	T(cuStreamGetDevice, cuStreamGetDevice, 12080, ptsz, (CUstream stream, CUdevice *ret), (stream, ret)) \
	T(cuStreamWaitEvent, cuStreamWaitEvent, 3020, ptsz, (CUstream stream, CUevent event, unsigned flags), (stream, event, flags)) \
	T(cuStreamAddCallback, cuStreamAddCallback, 5000, ptsz, (CUstream stream, CUstreamCallback function, void *data, unsigned flags), (stream, function, data, flags)) \
	T(cuStreamBeginCapture, cuStreamBeginCapture, 10000, ptsz, (CUstream stream), (stream)) \
	T(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo, 10010, ptsz, (CUstream stream, int *ret, cuuint64_t *ret_id), (stream, ret, ret_id)) \
	F(cuGraphExecUpdate, cuGraphExecUpdate, 10020, (CUgraphExec exec, CUgraph graph, CUgraphNode *ret_node, int *ret)) \
	F(cuGraphInstantiate, cuGraphInstantiate, 10000, (CUgraphExec *ret, CUgraph graph, CUgraphNode *ret_node, char *log, size_t size)) \
	F(cuGraphInstantiate, cuGraphInstantiate_v2, 11000, (CUgraphExec *ret, CUgraph graph, CUgraphNode *ret_node, char *log, size_t size)) \
	T(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010, ptsz, (CUstream stream, int mode), (stream, mode)) \
	T(cuStreamEndCapture, cuStreamEndCapture, 10000, ptsz, (CUstream stream, CUgraph *ret), (stream, ret)) \
	T(cuStreamIsCapturing, cuStreamIsCapturing, 10000, ptsz, (CUstream stream, int *ret), (stream, ret)) \
	T(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, 11030, ptsz, (CUstream stream, int *ret, cuuint64_t *ret_id, CUgraph *ret_graph, const CUgraphNode **ret_dependencies, size_t *ret_count), (stream, ret, ret_id, ret_graph, ret_dependencies, ret_count)) \
	T(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies, 11030, ptsz, (CUstream stream, CUgraphNode *dependencies, size_t count, unsigned flags), (stream, dependencies, count, flags)) \
	F(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, (int *mode)) \
	T(cuStreamAttachMemAsync, cuStreamAttachMemAsync, 6000, ptsz, (CUstream stream, CUdeviceptr pointer, size_t bytes, unsigned flags), (stream, pointer, bytes, flags)) \
	T(cuStreamQuery, cuStreamQuery, 2000, ptsz, (CUstream stream), (stream)) \
	T(cuStreamSynchronize, cuStreamSynchronize, 2000, ptsz, (CUstream stream), (stream)) \
	T(cuStreamCopyAttributes, cuStreamCopyAttributes, 11000, ptsz, (CUstream to, CUstream from), (to, from)) \
	T(cuStreamGetAttribute, cuStreamGetAttribute, 11000, ptsz, (CUstream stream, int attribute, CUstreamAttrValue *ret), (stream, attribute, ret)) \
	T(cuStreamSetAttribute, cuStreamSetAttribute, 11000, ptsz, (CUstream stream, int attribute, const CUstreamAttrValue *value), (stream, attribute, value)) \
	T(cuStreamWaitValue32, cuStreamWaitValue32, 8000, ptsz, (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags), (stream, address, value, flags)) \
	T(cuStreamWaitValue32, cuStreamWaitValue32_v2, 11070, ptsz, (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags), (stream, address, value, flags)) \
	T(cuStreamWaitValue64, cuStreamWaitValue64, 9000, ptsz, (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags), (stream, address, value, flags)) \
	T(cuStreamWaitValue64, cuStreamWaitValue64_v2, 11070, ptsz, (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags), (stream, address, value, flags)) \
	T(cuStreamWriteValue32, cuStreamWriteValue32, 8000, ptsz, (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags), (stream, address, value, flags)) \
	T(cuStreamWriteValue32, cuStreamWriteValue32_v2, 11070, ptsz, (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags), (stream, address, value, flags)) \
	T(cuStreamWriteValue64, cuStreamWriteValue64, 9000, ptsz, (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags), (stream, address, value, flags)) \
	T(cuStreamWriteValue64, cuStreamWriteValue64_v2, 11070, ptsz, (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags), (stream, address, value, flags)) \
	T(cuStreamBatchMemOp, cuStreamBatchMemOp_v2, 11070, ptsz, (CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags), (stream, count, operations, flags)) \
	F(cuEventCreate, cuEventCreate, 2000, (CUevent *ret, unsigned flags)) \
	T(cuEventRecord, cuEventRecord, 2000, ptsz, (CUevent event, CUstream stream), (event, stream)) \
	T(cuEventRecordWithFlags, cuEventRecordWithFlags, 11010, ptsz, (CUevent event, CUstream stream, unsigned flags), (event, stream, flags)) \
	F(cuEventQuery, cuEventQuery, 2000, (CUevent event)) \
	F(cuEventSynchronize, cuEventSynchronize, 2000, (CUevent event)) \
	F(cuEventDestroy, cuEventDestroy_v2, 4000, (CUevent event)) \
	F(cuEventElapsedTime, cuEventElapsedTime, 2000, (float *ret, CUevent from, CUevent to)) \
	F(cuEventElapsedTime, cuEventElapsedTime_v2, 12080, (float *ret, CUevent from, CUevent to)) \
	F(cuGraphCreate, cuGraphCreate, 10000, (CUgraph *ret, unsigned flags)) \
	F(cuGraphAddKernelNode, cuGraphAddKernelNode, 10000, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) \
	F(cuGraphAddKernelNode, cuGraphAddKernelNode_v2, 12000, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count, const CUDA_KERNEL_NODE_PARAMS *parameters)) \
	F(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams, 10000, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *ret)) \
	F(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams_v2, 12000, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *ret)) \
	F(cuGraphKernelNodeSetParams, cuGraphKernelNodeSetParams, 10000, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) \
	F(cuGraphKernelNodeSetParams, cuGraphKernelNodeSetParams_v2, 12000, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters)) \
	F(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode, 10000, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count, const CUDA_MEMCPY3D *copy, CUcontext context)) \
	F(cuGraphAddMemsetNode, cuGraphAddMemsetNode, 10000, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count, const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context)) \
	F(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeGetParams, 10000, (CUgraphNode node, CUDA_MEMCPY3D *ret)) \
	F(cuGraphMemcpyNodeSetParams, cuGraphMemcpyNodeSetParams, 10000, (CUgraphNode node, const CUDA_MEMCPY3D *copy)) \
	F(cuGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, 10020, (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context)) \
	F(cuGraphHostNodeGetParams, cuGraphHostNodeGetParams, 10000, (CUgraphNode node, CUDA_HOST_NODE_PARAMS *ret)) \
	F(cuGraphHostNodeSetParams, cuGraphHostNodeSetParams, 10000, (CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)) \
	F(cuGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams, 10020, (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)) \
	F(cuGraphAddHostNode, cuGraphAddHostNode, 10000, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count, const CUDA_HOST_NODE_PARAMS *parameters)) \
	F(cuGraphGetEdges, cuGraphGetEdges_v2, 12030, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)) \
	F(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies_v2, 12030, (CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)) \
	F(cuGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes_v2, 12030, (CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)) \
	F(cuGraphAddDependencies, cuGraphAddDependencies_v2, 12030, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)) \
	F(cuGraphRemoveDependencies, cuGraphRemoveDependencies_v2, 12030, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)) \
	T(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3, 12030, ptsz, (CUstream stream, int *ret, cuuint64_t *ret_id, CUgraph *ret_graph, const CUgraphNode **ret_nodes, const CUgraphEdgeData **ret_data, size_t *ret_count), (stream, ret, ret_id, ret_graph, ret_nodes, ret_data, ret_count)) \
	T(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2, 12030, ptsz, (CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count, unsigned flags), (stream, nodes, data, count, flags)) \
	T(cuStreamGetCtx, cuStreamGetCtx_v2, 12050, ptsz, (CUstream stream, CUcontext *ret, void **ret_green), (stream, ret, ret_green)) \
	F(cuGraphAddNode, cuGraphAddNode, 12020, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUgraphNodeParams *what)) \
	F(cuGraphAddNode, cuGraphAddNode_v2, 12030, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *what)) \
	F(cuGraphNodeSetParams, cuGraphNodeSetParams, 12020, (CUgraphNode node, CUgraphNodeParams *what)) \
	F(cuGraphExecNodeSetParams, cuGraphExecNodeSetParams, 12020, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *what)) \
	F(cuGraphConditionalHandleCreate, cuGraphConditionalHandleCreate, 12030, (CUgraphConditionalHandle *ret, CUgraph graph, CUcontext context, unsigned value, unsigned flags)) \
	F(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *what)) \
	F(cuGraphAddMemFreeNode, cuGraphAddMemFreeNode, 11040, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUdeviceptr pointer)) \
	F(cuGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, 11040, (CUgraphNode node, CUdeviceptr *ret)) \
	F(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040, (CUdevice device)) \
	F(cuDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute, 11040, (CUdevice device, int attribute, void *ret)) \
	F(cuDeviceSetGraphMemAttribute, cuDeviceSetGraphMemAttribute, 11040, (CUdevice device, int attribute, void *value)) \
	F(cuGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute, 11000, (CUgraphNode node, int attribute, CUstreamAttrValue *ret)) \
	F(cuGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute, 11000, (CUgraphNode node, int attribute, const CUstreamAttrValue *value)) \
	F(cuGraphKernelNodeCopyAttributes, cuGraphKernelNodeCopyAttributes, 11000, (CUgraphNode to, CUgraphNode from)) \
	T(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, ptsz, (CUgraphExec *ret, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *how), (ret, graph, how)) \
	T(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030, ptsz, (CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count, int mode), (stream, graph, dependencies, data, count, mode)) \
	T(cuStreamBatchMemOp, cuStreamBatchMemOp, 8000, ptsz, (CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags), (stream, count, operations, flags)) \
	T(cuMemcpyBatchAsync, cuMemcpyBatchAsync, 12080, ptsz, (CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count, CUmemcpyAttributes *attributes, size_t *begins, size_t attribute_count, size_t *failed, CUstream stream), (to, from, bytes, count, attributes, begins, attribute_count, failed, stream)) \
	T(cuMemcpyBatchAsync, cuMemcpyBatchAsync_v2, 13000, ptsz, (CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count, CUmemcpyAttributes *attributes, size_t *begins, size_t attribute_count, CUstream stream), (to, from, bytes, count, attributes, begins, attribute_count, stream)) \
	T(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync, 12080, ptsz, (size_t count, CUDA_MEMCPY3D_BATCH_OP *boxes, size_t *failed, unsigned long long flags, CUstream stream), (count, boxes, failed, flags, stream)) \
	T(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_v2, 13000, ptsz, (size_t count, CUDA_MEMCPY3D_BATCH_OP *boxes, unsigned long long flags, CUstream stream), (count, boxes, flags, stream)) \
	F(cuGraphAddEmptyNode, cuGraphAddEmptyNode, 10000, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count)) \
	F(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode, 10000, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUgraph child)) \
	F(cuGraphAddEventRecordNode, cuGraphAddEventRecordNode, 11010, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUevent event)) \
	F(cuGraphAddEventWaitNode, cuGraphAddEventWaitNode, 11010, (CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUevent event)) \
	F(cuGraphAddDependencies, cuGraphAddDependencies, 10000, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)) \
	F(cuGraphClone, cuGraphClone, 10000, (CUgraph *ret, CUgraph graph)) \
	F(cuGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, 10000, (CUgraphNode node, CUgraph *ret)) \
	F(cuGraphEventRecordNodeGetEvent, cuGraphEventRecordNodeGetEvent, 11010, (CUgraphNode node, CUevent *ret)) \
	F(cuGraphEventRecordNodeSetEvent, cuGraphEventRecordNodeSetEvent, 11010, (CUgraphNode node, CUevent event)) \
	F(cuGraphEventWaitNodeGetEvent, cuGraphEventWaitNodeGetEvent, 11010, (CUgraphNode node, CUevent *ret)) \
	F(cuGraphEventWaitNodeSetEvent, cuGraphEventWaitNodeSetEvent, 11010, (CUgraphNode node, CUevent event)) \
	F(cuGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams, 11010, (CUgraphExec exec, CUgraphNode node, CUgraph child)) \
	F(cuGraphExecEventRecordNodeSetEvent, cuGraphExecEventRecordNodeSetEvent, 11010, (CUgraphExec exec, CUgraphNode node, CUevent event)) \
	F(cuGraphExecEventWaitNodeSetEvent, cuGraphExecEventWaitNodeSetEvent, 11010, (CUgraphExec exec, CUgraphNode node, CUevent event)) \
	F(cuGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams, 10020, (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context)) \
	F(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams, 10000, (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *ret)) \
	F(cuGraphMemsetNodeSetParams, cuGraphMemsetNodeSetParams, 10000, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters)) \
	F(cuGraphNodeFindInClone, cuGraphNodeFindInClone, 10000, (CUgraphNode *ret, CUgraphNode node, CUgraph clone)) \
	F(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies, 10000, (CUgraphNode node, CUgraphNode *nodes, size_t *count)) \
	F(cuGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes, 10000, (CUgraphNode node, CUgraphNode *nodes, size_t *count)) \
	F(cuGraphNodeGetEnabled, cuGraphNodeGetEnabled, 11060, (CUgraphExec exec, CUgraphNode node, unsigned *ret)) \
	F(cuGraphNodeSetEnabled, cuGraphNodeSetEnabled, 11060, (CUgraphExec exec, CUgraphNode node, unsigned enabled)) \
	F(cuGraphRemoveDependencies, cuGraphRemoveDependencies, 10000, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)) \
	F(cuGraphNodeGetType, cuGraphNodeGetType, 10000, (CUgraphNode node, int *ret)) \
	F(cuGraphGetNodes, cuGraphGetNodes, 10000, (CUgraph graph, CUgraphNode *nodes, size_t *count)) \
	F(cuGraphGetRootNodes, cuGraphGetRootNodes, 10000, (CUgraph graph, CUgraphNode *nodes, size_t *count)) \
	F(cuGraphGetEdges, cuGraphGetEdges, 10000, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)) \
	F(cuGraphDestroyNode, cuGraphDestroyNode, 10000, (CUgraphNode node)) \
	F(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, (CUgraphExec *ret, CUgraph graph, unsigned long long flags)) \
	F(cuGraphExecGetFlags, cuGraphExecGetFlags, 12000, (CUgraphExec exec, cuuint64_t *ret)) \
	F(cuGraphExecUpdate, cuGraphExecUpdate_v2, 12000, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *ret)) \
	F(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams, 10010, (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) \
	F(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2, 12000, (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters)) \
	T(cuGraphUpload, cuGraphUpload, 11010, ptsz, (CUgraphExec exec, CUstream stream), (exec, stream)) \
	T(cuGraphLaunch, cuGraphLaunch, 10000, ptsz, (CUgraphExec exec, CUstream stream), (exec, stream)) \
	F(cuGraphExecDestroy, cuGraphExecDestroy, 10000, (CUgraphExec exec)) \
	F(cuGraphDestroy, cuGraphDestroy, 10000, (CUgraph graph)) \
	F(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled, 12000, (CUtensorMap *ret, int type, cuuint32_t rank, void *address, const cuuint64_t *dimensions, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *element_strides, int interleave, int swizzle, int promotion, int fill)) \
	F(cuTensorMapEncodeIm2col, cuTensorMapEncodeIm2col, 12000, (CUtensorMap *ret, int type, cuuint32_t rank, void *address, const cuuint64_t *dimensions, const cuuint64_t *strides, const int *lower, const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps, int interleave, int swizzle, int promotion, int fill)) \
	F(cuTensorMapEncodeIm2colWide, cuTensorMapEncodeIm2colWide, 12080, (CUtensorMap *ret, int type, cuuint32_t rank, void *address, const cuuint64_t *dimensions, const cuuint64_t *strides, int lower, int upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps, int interleave, int mode, int swizzle, int promotion, int fill)) \
	F(cuTensorMapReplaceAddress, cuTensorMapReplaceAddress, 12000, (CUtensorMap *map, void *address)) \
	F(cuProfilerStart, cuProfilerStart, 4000, (void)) \
	F(cuProfilerStop, cuProfilerStop, 4000, (void))
/* clang-format on */

#endif
