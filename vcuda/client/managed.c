/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Managed memory: page-locked memory that client, server and device have at one address. It does not move to the device
 * when that uses it, which reaches it over the bus.
 */

#include <stdlib.h>
#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client/copy.h"
#include "vcuda/client/host.h"
#include "vcuda/client_api.h"

enum { MANAGED_PAGE = 4096, ATTACH_GLOBAL = 1, ATTACH_HOST = 2, ATTACH_SINGLE = 4 };
enum { READ_MOSTLY = 1, UNSET_READ_MOSTLY, PREFER, UNSET_PREFER, ACCESSED, UNSET_ACCESSED };
enum {
	OF_READ_MOSTLY = 1,
	OF_PREFERRED,
	OF_ACCESSED,
	OF_LAST,
	OF_PREFERRED_TYPE,
	OF_PREFERRED_ID,
	OF_LAST_TYPE,
	OF_LAST_ID
};

CUresult on_cuMemAllocManaged(struct context *context, CUdeviceptr *pointer, size_t bytes, unsigned flags)
{
	struct range range = {.kind = ADDRESS_MAP_MANAGED, .flags = flags, .context = context};
	CUresult r;

	if (bytes == 0 || (flags != ATTACH_GLOBAL && flags != ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	r = host_take(&range, bytes);
	if (!r)
		*pointer = range.at;
	return r;
}

/* ---- what the program says of it, page by page: nothing follows, the memory stays where it is ---- */

/* Numbers of CUmemLocationType, and of devices that are none. */
enum { LOCATION_NONE, LOCATION_DEVICE, LOCATION_HOST, LOCATION_NUMA, LOCATION_NUMA_CURRENT };
enum { ADVICE_CPU = -1, ADVICE_NO_DEVICE = -2 };

struct advice {
	CUmemLocation preferred, last; /* last: where it was prefetched to */
	uint32_t accessed;             /* a bit for the host, and above it one for each device */
	bool read_mostly;
};

/* Parts of which the same was said, by address. Of what lies between them, nothing was. */
struct advice_part {
	struct advice_part *next;
	uint64_t at, end;
	struct advice advice;
};

static struct lock advice_lock;
static struct advice_part *advice_parts;

/* Return: the place of the first part that ends behind @at. */
static struct advice_part **managed_find_part(uint64_t at)
{
	struct advice_part **place = &advice_parts;

	while (*place && (*place)->end <= at)
		place = &(*place)->next;
	return place;
}

static bool managed_insert_part(struct advice_part **place, uint64_t at, uint64_t end, const struct advice *advice)
{
	struct advice_part *part = malloc(sizeof(*part));

	if (!part)
		return false;
	*part = (struct advice_part){.next = *place, .at = at, .end = end, .advice = *advice};
	*place = part;
	return true;
}

/* A part that goes on beyond @at becomes two. */
static bool managed_cut_parts(uint64_t at)
{
	struct advice_part **place = managed_find_part(at), *part = *place;

	if (!part || part->at >= at)
		return true;
	if (!managed_insert_part(&part->next, at, part->end, &part->advice))
		return false;
	part->end = at;
	return true;
}

/* Nothing lies between the parts from @at to @end. */
static bool managed_fill_parts(uint64_t at, uint64_t end)
{
	static const struct advice nothing;

	for (struct advice_part **place = managed_find_part(at); at < end; place = &(*place)->next) {
		const uint64_t next = *place && (*place)->at < end ? (*place)->at : end;

		if (next > at && !managed_insert_part(place, at, next, &nothing))
			return false;
		at = (*place)->end;
	}
	return true;
}

static bool managed_is_same(const struct advice *a, const struct advice *b)
{
	return a->preferred.type == b->preferred.type && a->preferred.id == b->preferred.id &&
	       a->last.type == b->last.type && a->last.id == b->last.id && a->accessed == b->accessed &&
	       a->read_mostly == b->read_mostly;
}

/* Parts that touch and say the same become one. */
static void managed_join_parts(void)
{
	for (struct advice_part *part = advice_parts; part; part = part->next)
		while (part->next && part->next->at == part->end &&
		       managed_is_same(&part->advice, &part->next->advice)) {
			struct advice_part *gone = part->next;

			part->end = gone->end;
			part->next = gone->next;
			free(gone);
		}
}

/* Has @change write what is said of the bytes from @at to @end from now on. */
static CUresult managed_change_advice(uint64_t at, uint64_t end,
				      void (*change)(struct advice *advice, int what, CUmemLocation location), int what,
				      CUmemLocation location)
{
	LOCK_HOLD(&advice_lock);
	if (!managed_cut_parts(at) || !managed_cut_parts(end) || !managed_fill_parts(at, end))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (struct advice_part *part = *managed_find_part(at); part && part->at < end; part = part->next)
		change(&part->advice, what, location);
	managed_join_parts();
	return CUDA_SUCCESS;
}

/* Has @look see all that is said of the bytes from @at to @end. */
static void managed_look(uint64_t at, uint64_t end, void (*look)(const struct advice *advice, void *data), void *data)
{
	static const struct advice nothing;

	LOCK_HOLD(&advice_lock);
	for (const struct advice_part *part = *managed_find_part(at); at < end; part = part->next) {
		if (!part || part->at > at)
			look(&nothing, data);
		if (!part || part->at >= end)
			return;
		look(&part->advice, data);
		at = part->end;
	}
}

/* Return: the parts from @at to @end, which are said no more. */
static struct advice_part *managed_take_advice(uint64_t at, uint64_t end)
{
	struct advice_part **from, **to, *taken;

	LOCK_HOLD(&advice_lock);
	/* Where there is no memory to cut one, more is taken. */
	(void)managed_cut_parts(at);
	(void)managed_cut_parts(end);
	from = to = managed_find_part(at);
	while (*to && (*to)->at < end)
		to = &(*to)->next;
	if (to == from)
		return NULL;
	taken = *from;
	*from = *to;
	*to = NULL;
	return taken;
}

static void managed_put_advice_back(struct advice_part *taken)
{
	struct advice_part **place, *last = taken;

	if (!taken)
		return;
	while (last->next)
		last = last->next;
	LOCK_HOLD(&advice_lock);
	place = managed_find_part(taken->at);
	last->next = *place;
	*place = taken;
}

static void managed_free_parts(struct advice_part *taken)
{
	while (taken) {
		struct advice_part *gone = taken;

		taken = gone->next;
		free(gone);
	}
}

/* ---- giving back ---- */

CUresult managed_give(const struct range *range)
{
	/* First, since another thread may be given its place at once. */
	struct advice_part *said = managed_take_advice(range->at, range->at + range->bytes);
	CUresult r = host_give(range);

	if (r)
		managed_put_advice_back(said);
	else
		managed_free_parts(said);
	return r;
}

/* What the driver refuses to free is of no context from then on, and the program may free it. */
void managed_forget_context(const struct context *context)
{
	struct range range;

	while (address_map_remove_with_context(context, &range)) {
		range.context = NULL;
		if (managed_give(&range))
			address_map_put_back(&range);
	}
}

/* ---- saying ---- */

/* Whether all of it is managed memory, and from where to where its pages are. */
static bool managed_find(CUdeviceptr pointer, size_t bytes, uint64_t *ret_at, uint64_t *ret_end)
{
	struct range range;
	uint64_t at, end, most;

	if (bytes == 0 || !address_map_find(pointer, &range) || !address_map_is_managed(&range))
		return false;
	most = range.at + ((range.bytes + MANAGED_PAGE - 1) & ~(uint64_t)(MANAGED_PAGE - 1));
	if (bytes > most - pointer)
		return false;
	at = pointer & ~(uint64_t)(MANAGED_PAGE - 1);
	end = (pointer + bytes + MANAGED_PAGE - 1) & ~(uint64_t)(MANAGED_PAGE - 1);
	/* Small pieces share pages. */
	*ret_at = at < range.at ? range.at : at;
	*ret_end = end > range.at + range.bytes ? range.at + range.bytes : end;
	return true;
}

/* The host is one place, whatever nodes it has. */
static const CUmemLocation managed_host = {LOCATION_HOST, ADVICE_CPU};

static CUmemLocation managed_location(CUdevice device)
{
	return device == ADVICE_CPU ? managed_host : (CUmemLocation){LOCATION_DEVICE, device};
}

static bool managed_is_host(CUmemLocation location)
{
	return location.type >= LOCATION_HOST && location.type <= LOCATION_NUMA_CURRENT;
}

static uint32_t managed_bit(CUmemLocation location)
{
	return location.type == LOCATION_DEVICE ? 2U << location.id : 1;
}

static void managed_advise(struct advice *advice, int what, CUmemLocation location)
{
	if (what == READ_MOSTLY || what == UNSET_READ_MOSTLY)
		advice->read_mostly = what == READ_MOSTLY;
	else if (what == PREFER)
		advice->preferred = location;
	else if (what == UNSET_PREFER)
		advice->preferred = (CUmemLocation){LOCATION_NONE, 0};
	else if (what == ACCESSED)
		advice->accessed |= managed_bit(location);
	else
		advice->accessed &= ~managed_bit(location);
}

static CUresult managed_set_advice(CUdeviceptr pointer, size_t bytes, CUmem_advise what, CUmemLocation location)
{
	uint64_t at, end;

	if (what < READ_MOSTLY || what > UNSET_ACCESSED || !managed_find(pointer, bytes, &at, &end))
		return CUDA_ERROR_INVALID_VALUE;
	return managed_change_advice(at, end, managed_advise, what, location);
}

CUresult on_cuMemAdvise(CUdeviceptr pointer, size_t bytes, CUmem_advise what, CUdevice device)
{
	const bool placed = what == PREFER || what == ACCESSED || what == UNSET_ACCESSED;

	if (placed && device != ADVICE_CPU && !client_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return managed_set_advice(pointer, bytes, what, managed_location(device));
}

CUresult on_cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, CUmem_advise what, CUmemLocation location)
{
	const bool device = location.type == LOCATION_DEVICE && client_device(location.id);

	/* Advice about accesses takes no NUMA node of the host. */
	if ((!device && !managed_is_host(location)) || (what >= ACCESSED && location.type > LOCATION_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	return managed_set_advice(pointer, bytes, what, device ? location : managed_host);
}

static void managed_note_place(struct advice *advice, int what, CUmemLocation location)
{
	(void)what;
	advice->last = location;
}

/* What is asked of a stream that is captured fails, and the capture with it, as when its work is asked for. */
static CUresult managed_check_stream(CUstream stream)
{
	CUstreamCaptureStatus status = 0;
	CUresult r;

	if (!wire_is_stream(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!client.captures)
		return CUDA_SUCCESS;
	r = cuStreamIsCapturing(stream, &status);
	return r || !status ? r : cuStreamQuery(stream);
}

CUresult on_cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags,
				  CUstream stream)
{
	uint64_t at, end;
	CUresult r;

	if (location.type == LOCATION_DEVICE && !client_device(location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (managed_is_host(location))
		location = managed_host;
	if (flags || location.type == LOCATION_NONE || location.type > LOCATION_HOST ||
	    !managed_find(pointer, bytes, &at, &end))
		return CUDA_ERROR_INVALID_VALUE;
	r = managed_check_stream(stream);
	return r ? r : managed_change_advice(at, end, managed_note_place, 0, location);
}

CUresult on_cuMemPrefetchAsync(CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream)
{
	return on_cuMemPrefetchAsync_v2(pointer, bytes, managed_location(device), 0, stream);
}

/* ---- asking ---- */

/* What is so of all of it. */
struct managed_all {
	struct advice advice;
	bool begun;
};

static void managed_compare_place(CUmemLocation *all, CUmemLocation one)
{
	if (all->type != one.type || all->id != one.id)
		*all = (CUmemLocation){LOCATION_NONE, 0};
}

static void managed_compare(const struct advice *advice, void *data)
{
	struct managed_all *all = data;

	if (!all->begun) {
		all->advice = *advice;
		all->begun = true;
		return;
	}
	managed_compare_place(&all->advice.preferred, advice->preferred);
	managed_compare_place(&all->advice.last, advice->last);
	all->advice.accessed &= advice->accessed;
	all->advice.read_mostly &= advice->read_mostly;
}

static int managed_number(CUmemLocation location)
{
	if (location.type == LOCATION_DEVICE)
		return location.id;
	return location.type == LOCATION_NONE ? ADVICE_NO_DEVICE : ADVICE_CPU;
}

static void managed_list(uint32_t accessed, int *ret, size_t count)
{
	size_t used = 0;

	for (int i = 0; i < client.host.device_count && used < count; i++)
		if (accessed >> (i + 1) & 1)
			ret[used++] = i;
	if (accessed & 1 && used < count)
		ret[used++] = ADVICE_CPU;
	while (used < count)
		ret[used++] = ADVICE_NO_DEVICE;
}

static int managed_value(CUmem_range_attribute attribute, const struct advice *all)
{
	const CUmemLocation place = attribute == OF_LAST || attribute >= OF_LAST_TYPE ? all->last : all->preferred;

	if (attribute == OF_READ_MOSTLY)
		return all->read_mostly;
	if (attribute == OF_PREFERRED || attribute == OF_LAST)
		return managed_number(place);
	return attribute == OF_PREFERRED_TYPE || attribute == OF_LAST_TYPE ? place.type : managed_number(place);
}

CUresult on_cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute attribute, CUdeviceptr pointer,
				   size_t bytes)
{
	struct managed_all all = {.begun = false};
	uint64_t at, end;

	if (!data || size == 0 || size % sizeof(int) || attribute < OF_READ_MOSTLY || attribute > OF_LAST_ID ||
	    (attribute != OF_ACCESSED && size != sizeof(int)) || !managed_find(pointer, bytes, &at, &end))
		return CUDA_ERROR_INVALID_VALUE;
	managed_look(at, end, managed_compare, &all);
	if (attribute == OF_ACCESSED)
		managed_list(all.advice.accessed, data, size / sizeof(int));
	else
		*(int *)data = managed_value(attribute, &all.advice);
	return CUDA_SUCCESS;
}

CUresult on_cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *attributes, size_t count,
				    CUdeviceptr pointer, size_t bytes)
{
	CUresult r = CUDA_SUCCESS;

	if (!data || !sizes || !attributes || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !r; i++)
		r = on_cuMemRangeGetAttribute(data[i], sizes[i], attributes[i], pointer, bytes);
	return r;
}

/* Whoever it is attached to, host and device may use it at once. */
CUresult on_cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t bytes, unsigned flags)
{
	struct range range;

	if ((flags != ATTACH_GLOBAL && flags != ATTACH_HOST && flags != ATTACH_SINGLE) ||
	    (stream < WIRE_STREAM_NAMES && flags == ATTACH_SINGLE) || !address_map_find(pointer, &range) ||
	    range.kind != ADDRESS_MAP_MANAGED || range.at != pointer || (bytes && bytes != range.bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return managed_check_stream(stream);
}

/* ---- copies ---- */

/* Whether the host has it at the same address, and may use it once the call has returned. */
static bool managed_is_shared(CUdeviceptr pointer)
{
	struct range range;

	return address_map_find(pointer, &range) && (address_map_is_host(&range) || address_map_is_managed(&range));
}

CUresult managed_finish(CUresult r, CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
	return !r && (managed_is_shared(to) || managed_is_shared(from)) ? cuStreamSynchronize(stream) : r;
}
