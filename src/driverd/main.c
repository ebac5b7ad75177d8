/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-driverd: loads a vendor's library, asks it one question, and ends. The library is whatever the host's driver
 * installed, and it runs in nobody's name, so this process gives up every right first (confine.c). It is started by the
 * client (client.c) and is of no use to a person.
 */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/version_note.h"
#include "driverd/confine.h"
#include "driverd/dxcore.h"
#include "driverd/message.h"
#include "driverd/nvml.h"
#include "driverd/protocol.h"
#include "driverd/start.h"

VERSION_NOTE();

/* rpcgen's header does not declare the dispatcher that rpcgen generates. */
void driverd_1(struct svc_req *request, SVCXPRT *transport);

#ifdef __SANITIZE_ADDRESS__
/* The filter leaves a sanitizer no ptrace(2) to look for leaks with, and a crash must stay one for the client. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0:handle_segv=0:handle_abort=0";
}
#endif

enum { LONGEST_DEADLINE_MS = 3600 * 1000 };

static int confined;            /* what confine() returned */
static const char *failed_step;
static bool answered;

driverd_dxcore_answer *driverd_dxcore_adapters_1_svc(driverd_path *path, struct svc_req *request)
{
	static driverd_dxcore_answer answer;

	(void)request;
	answered = true;
	if (confined < 0)
		answer_failure(&answer, DRIVERD_NOT_CONFINED, "%s: %s", failed_step, strerror(-confined));
	else
		dxcore_describe_adapters(*path, &answer);
	return &answer;
}

driverd_parts_answer *driverd_nvml_parts_1_svc(driverd_path *path, struct svc_req *request)
{
	static driverd_parts_answer answer;

	(void)request;
	answered = true;
	if (confined < 0) {
		answer.status = DRIVERD_NOT_CONFINED;
		answer.driverd_parts_answer_u.message = answer_message("%s: %s", failed_step, strerror(-confined));
	} else {
		nvml_list_parts(*path, &answer);
	}
	return &answer;
}

driverd_version_answer *driverd_cuda_version_1_svc(driverd_path *path, struct svc_req *request)
{
	static driverd_version_answer answer;

	(void)request;
	answered = true;
	if (confined < 0) {
		answer.status = DRIVERD_NOT_CONFINED;
		answer.driverd_version_answer_u.message = answer_message("%s: %s", failed_step, strerror(-confined));
	} else {
		cuda_read_version(*path, &answer);
	}
	return &answer;
}

/* One connection, one request. */
static int serve(void)
{
	SVCXPRT *transport = svc_fd_create(DRIVERD_SOCKET, 0, 0);

	/* Protocol 0: nothing is told to a portmapper. */
	if (!transport || !svc_register(transport, DRIVERD, DRIVERD_1, driverd_1, 0))
		return EXIT_FAILURE;
	svc_getreq_common(DRIVERD_SOCKET);
	return answered ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The client starts us with all signals blocked. */
static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int usage(void)
{
	(void)fputs("ctr-gpu-driverd is started by ctr-gpu and its hook, with a socket; there is nothing to run by hand.\n", stderr);
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	unsigned long milliseconds;
	char *end;

	unblock_signals();
	if (argc != 2 && (argc != 3 || strcmp(argv[2], DRIVERD_OPENS_DEVICES) != 0))
		return usage();
	errno = 0;
	milliseconds = strtoul(argv[1], &end, 10);
	if (errno != 0 || end == argv[1] || *end || milliseconds == 0 || milliseconds > LONGEST_DEADLINE_MS)
		return usage();
	confined = confine((unsigned)milliseconds + DRIVERD_GRACE_MS, argc == 3, &failed_step);
	/* Not exit(3): what the library would do at exit is not wanted. */
	_exit(serve());
}
