/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/nvml/nvml_session.h"

#include <string.h>
#include <sys/mman.h>

#include "vcuda/client/call.h"
#include "vcuda/client_api.h"
#include "vcuda/nvml_api.h"

enum { NVML_SESSION_PAGE = 4096 };

static unsigned nvml_session_count; /* of nvmlInit() without nvmlShutdown() */

struct lock *nvml_session_lock(void)
{
	static struct lock *_Atomic wiped;
	static struct lock without;
	struct lock *known = wiped, *page;

	if (known)
		return known;
	page = mmap(NULL, NVML_SESSION_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || madvise(page, NVML_SESSION_PAGE, MADV_WIPEONFORK) < 0)
		return &without;
	if (atomic_compare_exchange_strong(&wiped, &known, page))
		return page;
	(void)munmap(page, NVML_SESSION_PAGE);
	return known;
}

nvmlReturn_t nvml_session_translate(CUresult result)
{
	static const struct {
		CUresult cuda;
		nvmlReturn_t nvml;
	} results[] = {
		{CUDA_SUCCESS, NVML_SUCCESS},
		{CUDA_ERROR_INVALID_VALUE, NVML_ERROR_INVALID_ARGUMENT},
		{CUDA_ERROR_NO_DEVICE, NVML_ERROR_DRIVER_NOT_LOADED},
		{CUDA_ERROR_OUT_OF_MEMORY, NVML_ERROR_MEMORY},
		{CUDA_ERROR_OPERATING_SYSTEM, NVML_ERROR_OPERATING_SYSTEM},
		{CUDA_ERROR_LAUNCH_FAILED, NVML_ERROR_GPU_IS_LOST},
		{CUDA_ERROR_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED},
	};

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].cuda == result)
			return results[i].nvml;
	return NVML_ERROR_UNKNOWN;
}

static nvmlReturn_t nvml_session_connect(void)
{
	client.looks = true;
	return nvml_session_translate(cuInit(0));
}

nvmlReturn_t nvml_session_enter(void)
{
	if (nvml_session_count == 0)
		return NVML_ERROR_UNINITIALIZED;
	if (client.life && client.life->ready)
		return NVML_SUCCESS;
	client_close();
	return nvml_session_connect();
}

nvmlReturn_t nvml_session_enter_for(const void *place)
{
	nvmlReturn_t r = nvml_session_enter();

	return r || place ? r : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvml_session_enter_device(nvmlDevice_t device, CUdevice *ret)
{
	nvmlReturn_t r = nvml_session_enter();

	for (CUdevice i = 0; i < client.host.device_count && !r; i++)
		if (nvml_session_handle(i) == device) {
			*ret = i;
			return NVML_SUCCESS;
		}
	return r ? r : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvml_session_read_usage(CUdevice device, struct wire_usage *ret)
{
	const uint64_t ordinal = (uint64_t)device;
	CUresult r = call_sync(WIRE_USAGE, &ordinal, 1, NULL, 0, ret, sizeof(*ret));

	if (r)
		return nvml_session_translate(r);
	/* The server's word. */
	ret->driver[sizeof(ret->driver) - 1] = '\0';
	if (ret->count > WIRE_PROCESSES)
		return NVML_ERROR_UNKNOWN;
	return NVML_SUCCESS;
}

nvmlReturn_t nvml_session_read_sensor(CUdevice device, enum wire_sensor sensor, unsigned *ret)
{
	return nvml_session_read_link(device, sensor, 0, ret);
}

nvmlReturn_t nvml_session_read_link(CUdevice device, enum wire_sensor sensor, unsigned link, unsigned *ret)
{
	const uint64_t words[] = {(uint64_t)device, sensor, link};
	uint32_t value = 0;
	CUresult r = call_sync(WIRE_SENSOR, words, 3, NULL, 0, &value, sizeof(value));

	if (!r)
		*ret = value;
	return nvml_session_translate(r);
}

nvmlReturn_t nvml_session_refuse(const char *name)
{
	(void)name;
	LOCK_HOLD(nvml_session_lock());
	return nvml_session_count == 0 ? NVML_ERROR_UNINITIALIZED : NVML_ERROR_NOT_SUPPORTED;
}

nvmlDevice_t nvml_session_handle(CUdevice device)
{
	return (nvmlDevice_t)&client.device[device];
}

nvmlReturn_t nvml_session_copy_text(char *to, unsigned length, const char *from)
{
	const size_t bytes = strlen(from) + 1;

	if (!to)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (length < bytes)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(to, from, bytes);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	return nvmlInit_v2();
}

nvmlReturn_t nvmlInit_v2(void)
{
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	nvml_session_count++;
	r = nvml_session_enter();
	if (r) {
		nvml_session_count--;
		client_close();
	}
	return r;
}

nvmlReturn_t nvmlShutdown(void)
{
	LOCK_HOLD(nvml_session_lock());
	if (nvml_session_count == 0)
		return NVML_ERROR_UNINITIALIZED;
	if (--nvml_session_count == 0)
		client_close();
	return NVML_SUCCESS;
}
