/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu refresh: bring device nodes and CDI specs up to date after a boot, or when a driver was loaded or an adapter
 * came or went. Services call it on machines of every kind, so it succeeds without a GPU; and often, so it writes
 * nothing if nothing has changed.
 */

#include <stdlib.h>

#include "cli/cdi/cdi.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/path.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "lib/context.h"
#include "lib/host.h"

static int refresh_all(struct session *session)
{
	_cleanup_load_ struct load load = {0};
	_cleanup_free_ char *hook = NULL;
	struct err unguarded = {0};
	int r, guard = 0;

	host_drop_cache();
	/* Modules and nodes of NVIDIA's driver, where there is a GPU for it. */
	r = load_run(session, (struct load_options){0}, false, &load);
	if (!r || r == CTR_GPU_E_NO_DEVICE)
		r = ctr_gpu_host_new(session->context, &session->host);
	if (r && r != CTR_GPU_E_NO_DEVICE)
		return session_check(session, r);
	if (!r)
		guard = host_load_guard(session->host, &unguarded);
	hook = path_of_program("ctr-gpu-hook");
	if (!hook)
		return output_no_memory();
	r = ctr_gpu_cdi_refresh(session->context, session->host, cdi_directory(), hook);
	if (r || !guard)
		return session_check(session, r);
	/* Told last: a container that chooses no GPU needs no guard, and may need its spec. */
	session->context->err = unguarded;
	return session_check(session, guard);
}

int verb_refresh(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.children = global_options_children,
		.doc = "Make device nodes and CDI specs what they should be now, after a boot or a change of GPUs or "
		       "drivers.",
	};
	_cleanup_session_ struct session session = {0};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, NULL);
	r = session_open(&session, globals);
	return r ? r : refresh_all(&session);
}
