/* SPDX-License-Identifier: Apache-2.0 */

/*
 * grant ID LIBRARY MEMORY UUID COMMAND…: has the manager grant a GPU to this process, as the hook has it to a
 * container's, and executes COMMAND with our client library's socket. GRANT_SHARE is its share of the GPU's time. For
 * machines without a container engine.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vcuda/protocol/control.h"
#include "vcuda/protocol/start.h"
#include "vcuda_rpc.h"

enum { ARGUMENTS_LEAST = 6, CLIENTS = 16 };

int main(int argc, char **argv)
{
	struct vcudad_granted granted = {0};
	struct vcudad_done done = {0};
	struct vcudad_gpu gpu = {.address = (char *)"", .name = (char *)"granted"};
	struct vcudad_request wish = {.pid = getpid(), .gpus = {1, &gpu}, .max_clients = CLIENTS};
	const char *share = getenv("GRANT_SHARE");
	char path[256];
	int fd, r;

	if (argc < ARGUMENTS_LEAST)
		return 2;
	wish.id = argv[1];
	wish.library = argv[2];
	wish.memory = strtoull(argv[3], NULL, 0);
	gpu.uuid = argv[4];
	wish.share = share ? (u_int)strtoul(share, NULL, 10) : 0;
	r = control_open(&fd);
	if (r == 0)
		r = control_ask(fd, VCUDAD_GRANT, &wish, &granted);
	if (r == 0 && !granted.error)
		r = control_ask(fd, VCUDAD_KEEP, &wish.id, &done);
	if (r < 0 || granted.error || done.error) {
		(void)fprintf(stderr, "grant: %d %s\n", r, granted.error ? granted.message : "");
		return 1;
	}
	(void)snprintf(path, sizeof(path), "%s/socket", granted.directory);
	(void)setenv(START_SOCKET_VARIABLE, path, 1);
	(void)execvp(argv[ARGUMENTS_LEAST - 1], argv + ARGUMENTS_LEAST - 1);
	perror(argv[ARGUMENTS_LEAST - 1]);
	return 127;
}
