/* SPDX-License-Identifier: Apache-2.0 */

/* What a client asks first: the driver's version and the devices, of which only those granted exist for it. */

#include "vcuda/server/request.h"

#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"

/* Attributes that say what is not offered: pageable memory, registered memory, sharing between processes, arrays. */
static const struct {
	int attribute, value;
} serve_attributes[] = {
	{88, 0},  /* PAGEABLE_MEMORY_ACCESS */
	{99, 0},  /* HOST_REGISTER_SUPPORTED */
	{100, 0}, /* PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES */
	{101, 0}, /* DIRECT_MANAGED_MEM_ACCESS_FROM_HOST */
	{110, 0}, /* GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED */
	{116, 0}, /* GPU_DIRECT_RDMA_SUPPORTED */
	{119, 0}, /* MEMPOOL_SUPPORTED_HANDLE_TYPES */
	{128, 0}, /* HANDLE_TYPE_FABRIC_SUPPORTED */
	{132, 0}, /* MULTICAST_SUPPORTED */
};

enum { MANAGED_MEMORY = 83, CONCURRENT_MANAGED_ACCESS = 89 };

static CUresult serve_hello(struct request *q)
{
	struct wire_host host = {.driver_version = server.driver_version, .device_count = (int)server.start.gpu_count};
	CUresult r = request_words(q, 2);

	if (r)
		return r;
	host.arena = arena_choose((int64_t)q->argument[0]);
	quota_name_client((uint32_t)q->argument[1]);
	request_reply(q, &host, sizeof(host));
	return CUDA_SUCCESS;
}

static void serve_fill_attributes(struct wire_device *to, CUdevice device, const struct server_name *name)
{
	enum { BUS_NUMBER = 33, DEVICE_NUMBER = 34, DOMAIN = 50 };

	for (int i = 1; i < WIRE_ATTRIBUTES; i++)
		to->known[i] = driver.cuDeviceGetAttribute(&to->attribute[i], i, device) == CUDA_SUCCESS;
	for (size_t i = 0; i < sizeof(serve_attributes) / sizeof(serve_attributes[0]); i++)
		to->attribute[serve_attributes[i].attribute] = serve_attributes[i].value;
	to->attribute[BUS_NUMBER] = name->bus_number;
	to->attribute[DEVICE_NUMBER] = name->device_number;
	to->attribute[DOMAIN] = name->domain;
	/* It is page-locked memory at one address, which host and device may use at once, whatever the driver could. */
	to->attribute[MANAGED_MEMORY] = to->attribute[CONCURRENT_MANAGED_ACCESS] = server.arena != 0;
}

/* What the device has, or what the container may have of it if that is less. */
static CUresult serve_total(CUdevice device, uint64_t *ret)
{
	size_t total = 0;
	CUresult r = driver.cuDeviceTotalMem_v2(&total, device);

	*ret = quota_limit() < total ? quota_limit() : total;
	return r;
}

static CUresult serve_device(struct request *q)
{
	struct wire_device reply = {0};
	CUresult r = request_words(q, 1);
	const struct server_name *name;
	CUdevice device;

	if (!r)
		r = request_device(q, 0, &device);
	if (!r)
		r = driver.cuDeviceGetName(reply.name, sizeof(reply.name), device);
	if (!r)
		r = serve_total(device, &reply.total);
	if (r)
		return r;
	name = &server.names[server.granted[q->argument[0]]];
	memcpy(reply.bus, name->bus, sizeof(reply.bus));
	memcpy(reply.uuid, name->uuid, sizeof(reply.uuid));
	serve_fill_attributes(&reply, device, name);
	request_reply(q, &reply, sizeof(reply));
	return CUDA_SUCCESS;
}

/* Before there is anything that names one. */
static CUresult serve_choose(struct request *q)
{
	static bool chosen;
	const struct server old = server;
	CUresult r = request_words(q, 1);
	const uint8_t *list = r ? NULL : request_part(q, 0);
	const uint64_t count = list ? q->argument[0] : 0;
	uint64_t seen = 0;

	if (!list || chosen || handle_count > 0 || contexts_have_begun() || count == 0 ||
	    count > server.start.gpu_count)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t i = 0; i < count; i++) {
		if (list[i] >= old.start.gpu_count || seen & (uint64_t)1 << list[i])
			return CUDA_ERROR_INVALID_VALUE;
		seen |= (uint64_t)1 << list[i];
	}
	for (uint64_t i = 0; i < count; i++) {
		server.gpu[i] = old.gpu[list[i]];
		server.granted[i] = old.granted[list[i]];
	}
	server.start.gpu_count = (uint32_t)count;
	chosen = true;
	return CUDA_SUCCESS;
}

static CUresult serve_usage(struct request *q)
{
	struct wire_usage reply = {0};
	CUresult r = request_words(q, 1);
	CUdevice device;

	if (!r)
		r = request_device(q, 0, &device);
	if (!r)
		r = serve_total(device, &reply.total);
	if (r)
		return r;
	quota_report(server.granted[q->argument[0]], &reply);
	memcpy(reply.driver, driver_name(), sizeof(reply.driver));
	request_reply(q, &reply, sizeof(reply));
	return CUDA_SUCCESS;
}

/* Its lane has the mode of captures of a thread that has ended. */
static CUresult serve_thread(struct request *q)
{
	CUresult r = request_words(q, 0);
	CUstreamCaptureMode mode = 0;

	if (!r && driver.cuThreadExchangeStreamCaptureMode)
		(void)driver.cuThreadExchangeStreamCaptureMode(&mode);
	return r;
}

static CUresult serve_refused(struct request *q)
{
	char text[START_NAME] = {0};
	CUresult r = request_words(q, 2);
	const char *part = r ? NULL : request_part(q, 1);

	if (!part || (q->argument[0] != START_EVENT_REFUSED && q->argument[0] != START_EVENT_TABLE))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t i = 0; i < q->argument[1] && i < sizeof(text) - 1; i++)
		text[i] = part[i] > ' ' && part[i] <= '~' ? part[i] : '?';
	server_tell_once((enum start_event_kind)q->argument[0], text);
	return CUDA_SUCCESS;
}

const struct request_kind serve_kinds[WIRE_OPS] = {
	[WIRE_HELLO] = {serve_hello, "hello", REQUEST_NOW, false, 0},
	[WIRE_DEVICE] = {serve_device, "device", REQUEST_NOW, false, 0},
	[WIRE_CHOOSE] = {serve_choose, "choose", REQUEST_NOW, false, 0},
	[WIRE_UPLOAD] = {serve_wire_upload, "upload", REQUEST_NOW, false, 0},
	[WIRE_DOWNLOAD] = {serve_wire_download, "download", REQUEST_NOW, false, 0},
	[WIRE_FUNCTION] = {serve_wire_function, "function", REQUEST_NOW, false, 0},
	[WIRE_COPY_IN] = {serve_wire_copy_in, "copy in", REQUEST_NOW, false, 0},
	[WIRE_STAGE_IN] = {serve_wire_stage_in, "stage in", REQUEST_NOW, false, 0},
	[WIRE_STAGE_OUT] = {serve_wire_stage_out, "stage out", REQUEST_NOW, false, 0},
	[WIRE_STAGE_BOX] = {serve_wire_stage_box, "stage box", REQUEST_NOW, false, 0},
	[WIRE_STAGE_WAIT] = {serve_wire_stage_wait, "stage wait", REQUEST_ASKS, false, 0},
	[WIRE_PROBE] = {serve_wire_probe, "probe", REQUEST_NOW, false, 0},
	[WIRE_ARENA_ADD] = {serve_wire_arena_add, "arena add", REQUEST_MAY_WAIT, false, 0},
	[WIRE_ARENA_DROP] = {serve_wire_arena_drop, "arena drop", REQUEST_MAY_WAIT, false, 0},
	[WIRE_REFUSED] = {serve_refused, "refused", REQUEST_NOW, false, 0},
	[WIRE_PRINT] = {serve_wire_print, "print", REQUEST_NOW, false, 0},
	[WIRE_REGISTER] = {serve_wire_register, "register", REQUEST_MAY_WAIT, false, 0},
	[WIRE_UNREGISTER] = {serve_wire_unregister, "unregister", REQUEST_MAY_WAIT, false, 0},
	[WIRE_SHARE_END] = {serve_wire_share_end, "share end", REQUEST_NOW, false, 0},
	[WIRE_THREAD] = {serve_thread, "thread", REQUEST_NOW, false, 0},
	[WIRE_SENSOR] = {serve_wire_sensor, "sensor", REQUEST_NOW, false, 0},
	[WIRE_USAGE] = {serve_usage, "usage", REQUEST_NOW, false, 0},
};

CUresult serve_wire_arena_add(struct request *q)
{
	CUresult r = request_words(q, 3);

	if (!r)
		r = arena_begin_add(q->argument[0], q->argument[1], q->header.context);
	if (r)
		return r;
	lane_leave(q);
	return arena_end_add(q->argument[0], q->argument[1], q->argument[2] & WIRE_ARENA_REACHED);
}

CUresult serve_wire_arena_drop(struct request *q)
{
	CUresult r = request_words(q, 1);
	bool registered = false;
	uint64_t bytes = 0;

	if (!r)
		r = arena_begin_drop(q->argument[0], &bytes, &registered);
	if (r)
		return r;
	lane_leave(q);
	return arena_end_drop(q->argument[0], bytes, registered);
}
