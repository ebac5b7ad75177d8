/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-driverd: loads a vendor's library, asks it one question, and ends, or watches until its caller has gone. The
 * library is whatever the host's driver installed, so this process gives up every right first, and its user
 * (sandbox.c). It is started by the client (client.c) and is not meant for users.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driverd/internal.h"
#include "driverd/protocol.h"
#include "model/settings.h"
#include "model/version.h"

VERSION_NOTE();

#ifdef __SANITIZE_ADDRESS__
/* The filter leaves a sanitizer no ptrace(2) to look for leaks with, and a crash must stay one for the client. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0:handle_segv=0:handle_abort=0";
}
#endif

static void driverd_serve_request(const struct driverd_request *request, struct driverd_reply *reply)
{
	switch (request->procedure) {
	case DRIVERD_DXCORE_ADAPTERS:
		return dxcore_describe_adapters(request->library, reply);
	case DRIVERD_NVML_NAMES:
		return nvml_list_names(request->library, reply);
	case DRIVERD_NVML_PROCESSES:
		return nvml_list_processes(request->library, reply);
	case DRIVERD_CUDA_VERSION:
		return cuda_read_version(request->library, reply);
	case DRIVERD_NVML_WATCH:
		return nvml_watch(request, DRIVERD_SOCKET, reply);
	case DRIVERD_PROCEDURES:
		return;
	}
}

/* One question, one answer. @confined: what sandbox_enter() returned. */
static int driverd_serve(int confined, const char *failed_step)
{
	static unsigned char datagram[DRIVERD_DATAGRAM_MAX];
	struct driverd_request request = {0};
	struct driverd_reply reply = {0};
	ssize_t size = read(DRIVERD_SOCKET, datagram, sizeof(datagram));

	if (size <= 0 || !protocol_read_request(datagram, (size_t)size, &request))
		return EXIT_FAILURE;
	if (confined < 0)
		answer_failure(&reply, DRIVERD_NOT_CONFINED, "%s: %s", failed_step, strerror(-confined));
	else
		driverd_serve_request(&request, &reply);
	size = (ssize_t)protocol_write_reply(request.procedure, &reply, datagram);
	if (size == 0) {
		answer_failure(&reply, DRIVERD_REFUSED, "its answer is longer than one may be");
		size = (ssize_t)protocol_write_reply(request.procedure, &reply, datagram);
	}
	return write(DRIVERD_SOCKET, datagram, (size_t)size) == size ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The client starts us with all signals blocked. */
static void driverd_unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int driverd_usage(void)
{
	(void)fputs("ctr-gpu-driverd is started by ctr-gpu and its hook, with a socket; it is not run by hand.\n",
		    stderr);
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	const char *failed_step;
	unsigned long milliseconds;
	int confined;
	char *end;

	driverd_unblock_signals();
	if (argc != 2 && (argc != 3 || strcmp(argv[2], DRIVERD_OPENS_DEVICES) != 0))
		return driverd_usage();
	errno = 0;
	milliseconds = strtoul(argv[1], &end, 10);
	if (errno != 0 || end == argv[1] || *end || milliseconds > SETTINGS_LONGEST_S * 1000UL)
		return driverd_usage();
	if (milliseconds != DRIVERD_NO_DEADLINE)
		milliseconds += DRIVERD_GRACE_MS;
	confined = sandbox_enter((unsigned)milliseconds, argc == 3, &failed_step);
	/* Not exit(3): what the library would do at exit is not wanted. */
	_exit(driverd_serve(confined, failed_step));
}
