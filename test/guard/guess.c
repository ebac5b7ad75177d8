/* SPDX-License-Identifier: Apache-2.0 */

/*
 * guess [--int80] LUID… -- HIDDEN…: a program that knows the LUIDs of adapters that it should not see, and tries every handle that
 * they could have. Each call answers as for an adapter that there is not.
 */

#include <stdio.h>
#include <string.h>

#include "dxg.h"

static struct arguments arguments;
static const LUID unknown = {.LowPart = 0xdead, .HighPart = 0xbeef};

/* Of each call that takes an adapter's handle, how far behind the start it is. */
static const struct handle_call {
	unsigned int number;
	unsigned int offset;
} handle_calls[] = {
	{LX_DXCREATEDEVICE, 0},
	{LX_DXRESERVEGPUVIRTUALADDRESS, 0},
	{LX_DXQUERYVIDEOMEMORYINFO, 8},
	{LX_DXESCAPE, 0},
	{LX_DXCHANGEVIDEOMEMORYRESERVATION, 8},
	{LX_DXFLUSHHEAPTRANSITIONS, 0},
	{LX_DXFREEGPUVIRTUALADDRESS, 0},
	{LX_DXQUERYCLOCKCALIBRATION, 0},
	{LX_ISFEATUREENABLED, 0},
};

static void by_luid(LUID hidden)
{
	static D3DKMT_QUERYSTATISTICS statistics, statistics_unknown;
	static D3DKMT_ENUMPROCESSES processes, processes_unknown;
	uint32_t handle, handle_unknown;
	int fd = dxg_open(), r, expected;

	for (uint32_t before = 0; before < 2; before++) {
		r = dxg_open_luid(fd, hidden, before, &handle);
		expected = dxg_open_luid(fd, unknown, before, &handle_unknown);
		tap(r == expected && handle == handle_unknown,
		    "OpenAdapterFromLuid with handle %u: %d and %x, as of an unknown one", before, r, handle);
	}
	statistics = (D3DKMT_QUERYSTATISTICS){.AdapterLuid = hidden};
	statistics_unknown = (D3DKMT_QUERYSTATISTICS){.AdapterLuid = unknown};
	r = dxg_call(fd, LX_DXQUERYSTATISTICS, &statistics);
	expected = dxg_call(fd, LX_DXQUERYSTATISTICS, &statistics_unknown);
	tap(r == expected && memcmp(statistics.Result, statistics_unknown.Result, sizeof(statistics.Result)) == 0,
	    "QueryStatistics: %d, as of an unknown one", r);
	processes = (D3DKMT_ENUMPROCESSES){.AdapterLuid = hidden, .BufferCount = 3};
	processes_unknown = (D3DKMT_ENUMPROCESSES){.AdapterLuid = unknown, .BufferCount = 3};
	r = dxg_call(fd, LX_DXENUMPROCESSES, &processes);
	expected = dxg_call(fd, LX_DXENUMPROCESSES, &processes_unknown);
	tap(r == expected && processes.BufferCount == processes_unknown.BufferCount,
	    "EnumProcesses: %d, as of an unknown one", r);
}

/* Adapters' buses, of those that may be seen. */
static int buses[LUIDS_MAX];

static bool may_be_seen(int bus)
{
	for (uint32_t i = 0; i < arguments.seen_count; i++)
		if (buses[i] == bus)
			return true;
	return false;
}

/* Return: whether a call with this handle does anything. */
static bool any_answers(int fd, uint32_t handle)
{
	static char argument[1024];
	bool answers = false;

	for (size_t i = 0; i < sizeof(handle_calls) / sizeof(handle_calls[0]); i++) {
		memset(argument, 0, sizeof(argument));
		memcpy(argument + handle_calls[i].offset, &handle, sizeof(handle));
		if (dxg_call(fd, handle_calls[i].number, argument) >= 0)
			answers = true;
	}
	return answers;
}

/* Handles that an enumeration has made and not told of lie among the first. */
static void by_handle(void)
{
	static D3DKMT_ADAPTERINFO infos[128];
	uint32_t tried = 0, mine = 0, foreign = 0, foreign_calls = 0, foreign_closed = 0, count;
	int fd = dxg_open();

	(void)dxg_enumerate3(fd, infos, 128, &count);
	(void)dxg_enumerate3(fd, infos, 1, &count);
	(void)dxg_enumerate2(fd, infos, 64, &count);
	for (uint32_t index = 0; index < 256; index++) {
		for (uint32_t unique = 0; unique < 4; unique++) {
			static uint32_t handle;
			int bus;

			handle = unique << 30 | index << 6 | (index & 1 ? 0x3f : 0);
			bus = dxg_bus(fd, handle);
			tried++;
			if (bus >= 0 && may_be_seen(bus)) {
				mine++;
				continue;
			}
			foreign += bus >= 0;
			foreign_calls += any_answers(fd, handle);
			foreign_closed += handle > 0x3f && dxg_call(fd, LX_DXCLOSEADAPTER, &handle) == 0;
		}
	}
	tap(mine >= arguments.seen_count, "%u handles of adapters that may be seen, of %u", mine, tried);
	tap(foreign == 0, "QueryAdapterInfo with every handle: %u answers of others", foreign);
	tap(foreign_calls == 0, "other calls with every handle: %u answers of others", foreign_calls);
	tap(foreign_closed == 0, "CloseAdapter with every handle: %u of others", foreign_closed);
}

int main(int argc, char **argv)
{
	int fd;

	arguments_read(argc, argv, 1, &arguments);
	fd = dxg_open();
	for (uint32_t i = 0; i < arguments.seen_count; i++) {
		const LUID *luid = &arguments.seen[i];
		uint32_t handle;

		buses[i] = dxg_open_luid(fd, *luid, 0, &handle) == 0 ? dxg_bus(fd, handle) : -1;
		tap(buses[i] > 0, "adapter %x:%x can be used", (unsigned int)luid->HighPart, luid->LowPart);
		/* A container may get it while this looks. test/guard/load gives 1:a1 the bus 1, and so on. */
		if (buses[i] <= 0)
			buses[i] = (int)(luid->LowPart - 0xa0);
	}
	for (uint32_t i = 0; i < arguments.hidden_count; i++)
		by_luid(arguments.hidden[i]);
	by_handle();
	return tap_status();
}
