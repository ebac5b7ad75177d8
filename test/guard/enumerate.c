/* SPDX-License-Identifier: Apache-2.0 */

/*
 * enumerate [--int80] LUID… [-- HIDDEN…]: an honest program that asks in each way for the adapters, and finds these, in any order;
 * of others nothing is in the memory that it gave.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dxg.h"

enum { ROOM = 64, FILL = 0xA5 };

static struct arguments arguments;
static D3DKMT_ADAPTERINFO infos[128];
typedef int enumerate(int fd, D3DKMT_ADAPTERINFO *ret_infos, uint32_t room, uint32_t *ret_count);

/* Bytes behind the @count that were told of: as they were, or zero. */
static bool is_clean(uint32_t count)
{
	const unsigned char *at = (const unsigned char *)&infos[count], *end = (const unsigned char *)(infos + 128);

	for (; at < end; at++)
		if (*at != FILL && *at != 0)
			return false;
	return true;
}

static bool is_seen(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!luid_in(&infos[i].AdapterLuid, arguments.seen, arguments.seen_count))
			return false;
	return count == arguments.seen_count;
}

static bool all_answer(int fd, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (dxg_bus(fd, infos[i].hAdapter) < 0)
			return false;
	return true;
}

static void with_room(const char *name, enumerate *call, uint32_t room)
{
	int fd = dxg_open(), r;
	uint32_t count;

	memset(infos, FILL, sizeof(infos));
	r = call(fd, infos, room, &count);
	if (!tap(r == 0 && count <= room, "%s with room for %u: %d, count %u", name, room, r, count))
		return;
	tap(is_seen(count), "%s with room for %u: the %u adapters that there are to see, not %u", name, room,
	    arguments.seen_count, count);
	tap(is_clean(count), "%s with room for %u: nothing behind the count", name, room);
	tap(all_answer(fd, count), "%s with room for %u: each handle can be used", name, room);
}

/* Success with a count that says how many there are, or an error; in no case anything in the array. */
static void with_too_little(const char *name, enumerate *call)
{
	uint32_t room = arguments.seen_count - 1, count;
	int fd = dxg_open(), r;

	memset(infos, FILL, sizeof(infos));
	r = call(fd, infos, room, &count);
	tap(is_clean(0), "%s with too little room: %d, count %u, and nothing in the array", name, r, count);
	if (r == 0)
		tap(count == arguments.seen_count, "%s with too little room: count %u, of %u", name, count,
		    arguments.seen_count);
	else
		tap(r == -EOVERFLOW, "%s with too little room: %d", name, r);
}

static void counts(void)
{
	uint32_t count = 0;
	int fd = dxg_open(), r = dxg_enumerate3(fd, NULL, 0, &count);

	tap(r == 0 && count == arguments.seen_count, "EnumAdapters3 without an array: %d, count %u", r, count);
	r = dxg_enumerate3(fd, NULL, 7, &count);
	tap(r == 0 && count == arguments.seen_count, "EnumAdapters3 without an array and a count of 7: %d, count %u", r,
	    count);
	memset(infos, FILL, sizeof(infos));
	r = dxg_enumerate3(fd, infos, 0, &count);
	tap(r == 0 && count == arguments.seen_count, "EnumAdapters3 with room for none: %d, count %u", r, count);
	tap(is_clean(0), "EnumAdapters3 with room for none: an untouched array");
	/* The number that the second call will demand room for; compute-only ones have always been among them. */
	r = dxg_enumerate2(fd, NULL, 0, &count);
	tap(r == 0 && count >= arguments.seen_count, "EnumAdapters2 without an array: %d, count %u", r, count);
}

/* As libraries do: ask how many, make room, ask again. */
static void as_libraries(const char *name, enumerate *call)
{
	uint32_t count = 0;
	int fd = dxg_open(), r = call(fd, NULL, 0, &count);

	if (r == 0 && count <= 128)
		r = call(fd, infos, count, &count);
	tap(r == 0 && is_seen(count), "%s as libraries call it: %d, count %u", name, r, count);
}

static void each_by_luid(void)
{
	int fd = dxg_open();

	for (uint32_t i = 0; i < arguments.seen_count; i++) {
		static D3DKMT_CREATEDEVICE device;
		uint32_t handle;
		int r = dxg_open_luid(fd, arguments.seen[i], 0, &handle), bus = dxg_bus(fd, handle);

		tap(r == 0 && bus > 0, "OpenAdapterFromLuid %x:%x: %d, bus %d",
		    (unsigned int)arguments.seen[i].HighPart, arguments.seen[i].LowPart, r, bus);
		device = (D3DKMT_CREATEDEVICE){.hAdapter = handle};
		r = dxg_call(fd, LX_DXCREATEDEVICE, &device);
		tap(r == 0 && device.hDevice != 0, "CreateDevice: %d", r);
		r = dxg_call(fd, LX_DXGETDEVICESTATE, memcpy(infos, &device.hDevice, sizeof(device.hDevice)));
		tap(r == 0, "GetDeviceState: %d", r);
		r = dxg_call(fd, LX_DXDESTROYDEVICE, &device.hDevice);
		tap(r == 0, "DestroyDevice: %d", r);
		r = dxg_call(fd, LX_DXCLOSEADAPTER, &device.hAdapter);
		tap(r == 0, "CloseAdapter: %d", r);
	}
}

int main(int argc, char **argv)
{
	arguments_read(argc, argv, 1, &arguments);
	counts();
	with_room("EnumAdapters3", dxg_enumerate3, ROOM);
	with_room("EnumAdapters3", dxg_enumerate3, 128);
	with_room("EnumAdapters3", dxg_enumerate3, arguments.seen_count);
	as_libraries("EnumAdapters3", dxg_enumerate3);
	if (arguments.seen_count > 1)
		with_too_little("EnumAdapters3", dxg_enumerate3);
	if (arguments.seen_count + arguments.hidden_count <= ROOM) {
		with_room("EnumAdapters2", dxg_enumerate2, ROOM);
		as_libraries("EnumAdapters2", dxg_enumerate2);
		if (arguments.seen_count > 1)
			with_too_little("EnumAdapters2", dxg_enumerate2);
	}
	each_by_luid();
	return tap_status();
}
