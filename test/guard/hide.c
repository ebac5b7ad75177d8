/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hide FILE LUID -- HIDDEN: a program that has the device open where no list of its files shows it: in the queue of a socket. When
 * FILE is there it takes it back, and reaches no adapter by it, neither the one that it had nor the hidden one.
 */

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dxg.h"

enum { PATIENCE_S = 600 };

static struct arguments arguments;

static void nothing_answers(int fd, const char *what, LUID luid, uint32_t handle)
{
	uint32_t other;

	tap(dxg_open_luid(fd, luid, 0, &other) < 0, "the %s adapter is not opened by its LUID", what);
	if (handle)
		tap(dxg_bus(fd, handle) < 0, "the handle from before is of no adapter");
}

int main(int argc, char **argv)
{
	static D3DKMT_ADAPTERINFO infos[16];
	uint32_t handle = 0, count = 0;
	int pair[2], fd;

	if (argc < 5)
		return 2;
	arguments_read(argc, argv, 2, &arguments);
	if (arguments.seen_count != 1 || arguments.hidden_count != 1 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return 2;
	fd = dxg_open();
	tap(dxg_open_luid(fd, arguments.seen[0], 0, &handle) == 0 && dxg_bus(fd, handle) > 0,
	    "the adapter can be used");
	dxg_send(pair[0], fd);
	(void)close(fd);
	(void)printf("# hidden\n");
	(void)fflush(stdout);
	for (int i = 0; i < PATIENCE_S * 10 && access(argv[1], F_OK) < 0; i++)
		(void)usleep(100000);
	fd = dxg_receive(pair[1]);
	nothing_answers(fd, "own", arguments.seen[0], handle);
	nothing_answers(fd, "other", arguments.hidden[0], 0);
	tap(dxg_enumerate3(fd, infos, 16, &count) < 0 || count == 0, "a list of adapters is empty: %u", count);
	return tap_status();
}
