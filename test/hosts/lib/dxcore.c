/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A libdxcore.so with the D3DKMT functions of the real one, as Microsoft's libdxg publishes them: it opens /dev/dxg when
 * it is loaded, hands calls to the kernel, turns errno into NTSTATUS, UTF-16 into 4-byte WCHAR, and Windows paths of the
 * driver store into paths below /usr/lib/wsl/drivers. It knows no adapter: those come from the device. The names that
 * only drivers' own programs call are there, since these refuse a library that lacks one; what the device does not answer
 * fails as it does. dxcore-com.c has the other face of the library.
 *
 * Built four times: as it is, with WITHOUT_SYMBOLS, HANGS and CRASHES.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../abi.h"

#define EXPORT __attribute__((visibility("default")))

typedef int32_t NTSTATUS;
#define STATUS(number) ((NTSTATUS)(number))

static int device = -1;

static void open_device(void)
{
	device = open("/dev/dxg", O_RDONLY | O_CLOEXEC);
}

__attribute__((constructor)) static void load(void)
{
	open_device();
}

#ifdef WITHOUT_SYMBOLS
EXPORT int DXCoreIsNotWhatItWas(void);
EXPORT int DXCoreIsNotWhatItWas(void)
{
	return device;
}
#else

EXPORT NTSTATUS D3DKMTEnumAdapters2(D3DKMT_ENUMADAPTERS2 *args);
EXPORT NTSTATUS D3DKMTEnumAdapters3(D3DKMT_ENUMADAPTERS3 *args);
EXPORT NTSTATUS D3DKMTOpenAdapterFromLuid(D3DKMT_OPENADAPTERFROMLUID *args);
EXPORT NTSTATUS D3DKMTCloseAdapter(const D3DKMT_CLOSEADAPTER *args);
EXPORT NTSTATUS D3DKMTQueryAdapterInfo(const D3DKMT_QUERYADAPTERINFO *args);

static const struct {
	int error;
	uint32_t status;
} statuses[] = {
	{EEXIST, 0xC0000035},      {ENOMEM, 0xC0000017},     {EINVAL, 0xC000000D},     {ENOENT, 0xC0000033},
	{EAGAIN, 0x00000102},      {EOVERFLOW, 0xC0000023},  {ENODEV, 0xC00002B6},     {EACCES, 0xC0000022},
	{ENOSYS, 0xC00000BB},      {EPERM, 0xC00000BB},      {EOPNOTSUPP, 0xC000001D}, {EBADF, 0xC0000008},
	{EINPROGRESS, 0xC01E0102}, {EPROTOTYPE, 0xC0000024},
};

#define STATUS_UNSUCCESSFUL STATUS(0xC0000001)
#define STATUS_INVALID_PARAMETER STATUS(0xC000000D)
#define STATUS_NO_MEMORY STATUS(0xC0000017)

static NTSTATUS status_of(int error)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (statuses[i].error == error)
			return STATUS(statuses[i].status);
	return STATUS_UNSUCCESSFUL;
}

static void misbehave(void)
{
#if defined(HANGS)
	for (;;)
		(void)pause();
#elif defined(CRASHES)
	(void)raise(SIGSEGV);
#endif
}

/* With CTR_GPU_TEST_TRACE in the environment, standard error shows how far a driver gets. */
static NTSTATUS trace(const char *name, NTSTATUS status)
{
	if (getenv("CTR_GPU_TEST_TRACE"))
		(void)dprintf(STDERR_FILENO, "%s=%08x\n", name, (unsigned)status);
	return status;
}

static NTSTATUS call(unsigned long code, const void *args)
{
	int result;

	if (device < 0)
		return STATUS_UNSUCCESSFUL;
	result = ioctl(device, code, args);
	return result == -1 ? status_of(errno) : result;
}

/* After a fork() the descriptor belongs to another process and answers ENOTTY; only three functions repair that. */
static NTSTATUS call_or_reopen(unsigned long code, void *args)
{
	int result;

	if (device < 0)
		return STATUS_UNSUCCESSFUL;
	result = ioctl(device, code, args);
	if (result != -1)
		return result;
	if (errno != ENOTTY && errno != EBADF)
		return status_of(errno);
	(void)close(device);
	open_device();
	return call(code, args);
}

NTSTATUS D3DKMTEnumAdapters2(D3DKMT_ENUMADAPTERS2 *args)
{
	misbehave();
	return call_or_reopen(LX_DXENUMADAPTERS2, args);
}

NTSTATUS D3DKMTEnumAdapters3(D3DKMT_ENUMADAPTERS3 *args)
{
	misbehave();
	return call_or_reopen(LX_DXENUMADAPTERS3, args);
}

NTSTATUS D3DKMTOpenAdapterFromLuid(D3DKMT_OPENADAPTERFROMLUID *args)
{
	return trace("D3DKMTOpenAdapterFromLuid", call_or_reopen(LX_DXOPENADAPTERFROMLUID, args));
}

NTSTATUS D3DKMTCloseAdapter(const D3DKMT_CLOSEADAPTER *args)
{
	return call(LX_DXCLOSEADAPTER, args);
}

/* ---- what user-mode drivers call once they have chosen an adapter ---- */

#define THUNK(name, code)                              \
	EXPORT NTSTATUS name(void *args);              \
	NTSTATUS name(void *args)                      \
	{                                              \
		return trace(#name, call(code, args)); \
	}

THUNK(D3DKMTCreateDevice, LX_DXCREATEDEVICE)
THUNK(D3DKMTDestroyDevice, LX_DXDESTROYDEVICE)
THUNK(D3DKMTEscape, LX_DXESCAPE)
THUNK(D3DKMTQueryStatistics, LX_DXQUERYSTATISTICS)
THUNK(D3DKMTEnumProcesses, LX_DXENUMPROCESSES)

/* The simulated device has none of these: the kernel says ENOTTY, and the library this. */
#define ABSENT(name)                                      \
	EXPORT NTSTATUS name(void *args);                 \
	NTSTATUS name(void *args)                         \
	{                                                 \
		(void)args;                               \
		return trace(#name, STATUS_UNSUCCESSFUL); \
	}

ABSENT(D3DKMTCreateAllocation)
ABSENT(D3DKMTCreateAllocation2)
ABSENT(D3DKMTCreateContextVirtual)
ABSENT(D3DKMTCreateHwQueue)
ABSENT(D3DKMTCreateNativeFence)
ABSENT(D3DKMTCreatePagingQueue)
ABSENT(D3DKMTCreateSynchronizationObject)
ABSENT(D3DKMTCreateSynchronizationObject2)
ABSENT(D3DKMTDestroyAllocation2)
ABSENT(D3DKMTDestroyContext)
ABSENT(D3DKMTDestroyHwQueue)
ABSENT(D3DKMTDestroyPagingQueue)
ABSENT(D3DKMTDestroySynchronizationObject)
ABSENT(D3DKMTEvict)
ABSENT(D3DKMTFreeGpuVirtualAddress)
ABSENT(D3DKMTGetDeviceState)
ABSENT(D3DKMTLock2)
ABSENT(D3DKMTMakeResident)
ABSENT(D3DKMTMapGpuVirtualAddress)
ABSENT(D3DKMTOpenResource)
ABSENT(D3DKMTOpenResourceFromNtHandle)
ABSENT(D3DKMTOpenSyncObjectFromNtHandle2)
ABSENT(D3DKMTOpenSyncObjectNtHandleFromName)
ABSENT(D3DKMTQueryClockCalibration)
ABSENT(D3DKMTQueryResourceInfo)
ABSENT(D3DKMTQueryResourceInfoFromNtHandle)
ABSENT(D3DKMTQueryVideoMemoryInfo)
ABSENT(D3DKMTRegisterTrimNotification)
ABSENT(D3DKMTReserveGpuVirtualAddress)
ABSENT(D3DKMTSetAllocationPriority)
ABSENT(D3DKMTSetContextSchedulingPriority)
ABSENT(D3DKMTShareObjects)
ABSENT(D3DKMTSignalSynchronizationObject)
ABSENT(D3DKMTSignalSynchronizationObjectFromCpu)
ABSENT(D3DKMTSignalSynchronizationObjectFromGpu)
ABSENT(D3DKMTSubmitCommand)
ABSENT(D3DKMTSubmitCommandToHwQueue)
ABSENT(D3DKMTUnlock2)
ABSENT(D3DKMTUnregisterTrimNotification)
ABSENT(D3DKMTUpdateGpuVirtualAddress)
ABSENT(D3DKMTWaitForSynchronizationObject)
ABSENT(D3DKMTWaitForSynchronizationObjectFromCpu)
ABSENT(D3DKMTWaitForSynchronizationObjectFromGpu)

/* ---- adapters' answers ---- */

/* Windows paths of the driver store become paths of this machine; the mount point is part of the library. */
static void translate_path(uint32_t *text)
{
	static const char marker[] = "\\filerepository\\", root[] = "/usr/lib/wsl/drivers/";
	uint32_t *rest = NULL;
	size_t length = 0;

	for (uint32_t *at = text; *at; at++) {
		size_t matched = 0;

		while (marker[matched] && (at[matched] | (at[matched] >= 'A' && at[matched] <= 'Z' ? 0x20u : 0)) ==
						  (uint32_t)marker[matched])
			matched++;
		if (!marker[matched])
			rest = at + matched;
	}
	if (!rest)
		return;

	for (; root[length]; length++)
		text[length] = (uint32_t)root[length];
	for (; *rest; rest++)
		text[length++] = *rest == '\\' ? '/' : *rest;
	text[length] = 0;
}

static void widen(uint32_t *wide, const uint16_t *utf16, size_t count)
{
	size_t out = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t code = utf16[i];

		if (code >= 0xD800 && code < 0xDC00 && i + 1 < count)
			code = 0x10000 + ((code - 0xD800) << 10) + (utf16[++i] - 0xDC00u);
		wide[out++] = code;
	}
	while (out < count)
		wide[out++] = 0;
}

/* Queries whose answer is a few numbers and then text. */
static const struct conversion {
	uint32_t type, numbers, characters;
} conversions[] = {
	{QUERY_UMDRIVERNAME, 4, 260},
	{QUERY_ADAPTERREGISTRYINFO, 0, 4 * 260},
	{QUERY_ADAPTERREGISTRYINFO_RENDER, 0, 4 * 260},
	{QUERY_ADAPTER_UNIQUE_GUID, 0, 40},
	{QUERY_DRIVER_DESCRIPTION, 0, 4096},
	{QUERY_DRIVER_DESCRIPTION_RENDER, 0, 4096},
};

/* libdxg writes these strings as UTF-8 into 260 bytes of its stack (d3dkmt-wsl.cpp, TempString), and overruns them. */
static void overrun(const uint16_t *utf16, size_t count)
{
	size_t more = 0;

	for (size_t i = 0; i < count; i++)
		more += utf16[i] >= 0x800 ? 2 : utf16[i] >= 0x80;
	if (more > 5)
		abort();
}

static NTSTATUS query_text(const D3DKMT_QUERYADAPTERINFO *args, const struct conversion *conversion)
{
	char *answer = (char *)(uintptr_t)args->pPrivateDriverData, *raw;
	D3DKMT_QUERYADAPTERINFO inner = *args;
	NTSTATUS status;

	if (args->PrivateDriverDataSize != conversion->numbers + 4 * conversion->characters)
		return STATUS_INVALID_PARAMETER;
	inner.PrivateDriverDataSize = conversion->numbers + 2 * conversion->characters;
	raw = calloc(1, inner.PrivateDriverDataSize);
	if (!raw)
		return STATUS_NO_MEMORY;

	memcpy(raw, answer, conversion->numbers);
	inner.pPrivateDriverData = (uintptr_t)raw;
	status = call(LX_DXQUERYADAPTERINFO, &inner);
	if (status >= 0) {
		memcpy(answer, raw, conversion->numbers);
		if (conversion->type == QUERY_ADAPTERREGISTRYINFO)
			overrun((uint16_t *)(void *)raw, 260);
		widen((uint32_t *)(void *)(answer + conversion->numbers),
		      (uint16_t *)(void *)(raw + conversion->numbers), conversion->characters);
		if (conversion->type == QUERY_UMDRIVERNAME)
			translate_path((uint32_t *)(void *)(answer + conversion->numbers));
	}
	free(raw);
	return status;
}

static void registry_answer(QUERYREGISTRY_LIBRARY *answer, const QUERYREGISTRY_KERNEL *raw, size_t room)
{
	size_t characters = raw->OutputValueSize / 2;

	answer->ValueType = raw->ValueType;
	answer->Status = raw->Status;
	/* The size of the Windows path, also when the path that is handed out is a shorter one. */
	answer->OutputValueSize = raw->OutputValueSize * 2;
	if (raw->Status != REGISTRY_SUCCESS || characters == 0 || characters > room / 4)
		return;
	widen(answer->OutputString, raw->OutputString, characters);
	answer->OutputString[characters - 1] = 0;
	translate_path(answer->OutputString);
}

static NTSTATUS query_registry(const D3DKMT_QUERYADAPTERINFO *args)
{
	QUERYREGISTRY_LIBRARY *answer = (QUERYREGISTRY_LIBRARY *)(uintptr_t)args->pPrivateDriverData;
	D3DKMT_QUERYADAPTERINFO inner = *args;
	QUERYREGISTRY_KERNEL *raw;
	NTSTATUS status;

	if (args->PrivateDriverDataSize < sizeof(*answer))
		return STATUS_INVALID_PARAMETER;
	inner.PrivateDriverDataSize = (uint32_t)(sizeof(*raw) + (args->PrivateDriverDataSize - sizeof(*answer)) / 2);
	raw = calloc(1, inner.PrivateDriverDataSize);
	if (!raw)
		return STATUS_NO_MEMORY;

	raw->QueryType = answer->QueryType;
	raw->QueryFlags = answer->QueryFlags;
	for (size_t i = 0; i < 260; i++)
		raw->ValueName[i] = (uint16_t)answer->ValueName[i];
	raw->ValueType = answer->ValueType;
	raw->PhysicalAdapterIndex = answer->PhysicalAdapterIndex;
	inner.pPrivateDriverData = (uintptr_t)raw;
	status = call(LX_DXQUERYADAPTERINFO, &inner);
	if (status >= 0)
		registry_answer(answer, raw,
				args->PrivateDriverDataSize - offsetof(QUERYREGISTRY_LIBRARY, OutputString));
	free(raw);
	return status;
}

NTSTATUS D3DKMTQueryAdapterInfo(const D3DKMT_QUERYADAPTERINFO *args)
{
	if (!args || !args->pPrivateDriverData)
		return STATUS_INVALID_PARAMETER;
	if (args->Type == QUERY_QUERYREGISTRY)
		return query_registry(args);
	for (size_t i = 0; i < sizeof(conversions) / sizeof(conversions[0]); i++)
		if (conversions[i].type == args->Type)
			return query_text(args, &conversions[i]);
	return call(LX_DXQUERYADAPTERINFO, args);
}
#endif
