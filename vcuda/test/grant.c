/* SPDX-License-Identifier: Apache-2.0 */

/*
 * grant ID LIBRARY MEMORY UUID COMMAND…: has the manager grant a GPU to this process, as the hook has it to a
 * container's, and executes COMMAND with our client library's socket. GRANT_SHARE is its share of the GPU's time. UUID
 * may be several, with commas between them, each with its place: UUID@0000:1b:00.0; GRANT_SPARES are those that it may be moved to, and GRANT_OTHERS the same
 * of another model. For machines without a container engine.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vcuda/protocol/control.h"
#include "vcuda/protocol/start.h"
#include "vcuda_rpc.h"

enum { ARGUMENTS_LEAST = 6, CLIENTS = 16 };

/* Return: how many were added, behind @count. */
static u_int add(struct vcudad_gpu gpus[static VCUDAD_GPUS_MAX], u_int count, char *list, const char *name)
{
	const u_int before = count;

	for (char *uuid = list ? strtok(list, ",") : NULL; uuid && count < VCUDAD_GPUS_MAX; uuid = strtok(NULL, ",")) {
		char *at = strchr(uuid, '@');

		if (at)
			*at++ = '\0';
		gpus[count++] = (struct vcudad_gpu){uuid, at ? at : (char *)"", (char *)(uintptr_t)name};
	}
	return count - before;
}

int main(int argc, char **argv)
{
	struct vcudad_granted granted = {0};
	struct vcudad_done done = {0};
	struct vcudad_gpu gpus[VCUDAD_GPUS_MAX];
	struct vcudad_request wish = {.pid = getpid(), .gpus = {0, gpus}, .limits = {.max_clients = CLIENTS}};
	const char *share = getenv("GRANT_SHARE");
	char path[256];
	int fd, r;

	if (argc < ARGUMENTS_LEAST)
		return 2;
	wish.id = argv[1];
	wish.library = argv[2];
	wish.limits.memory = strtoull(argv[3], NULL, 0);
	wish.gpus.gpus_len = add(gpus, 0, argv[4], "granted");
	wish.spares.spares_val = gpus + wish.gpus.gpus_len;
	wish.spares.spares_len = add(gpus, wish.gpus.gpus_len, getenv("GRANT_SPARES"), "granted");
	wish.spares.spares_len +=
		add(gpus, wish.gpus.gpus_len + wish.spares.spares_len, getenv("GRANT_OTHERS"), "another");
	wish.limits.share = share ? (u_int)strtoul(share, NULL, 10) : 0;
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
