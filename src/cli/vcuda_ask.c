/* SPDX-License-Identifier: Apache-2.0 */

/* Asking vCUDA's manager, and what to do where it does not answer. */

#include <errno.h>

#include "vcuda_rpc.h"

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "vcuda/protocol/control.h"

static int vcuda_ask_explain(int r)
{
	errno = -r;
	if (r == -E2BIG)
		return output_print_advised(("no container has GPUs by vCUDA whose id is so long"),
					    ("ctr-gpu vcuda list shows what is granted."));
	if (r == -ENOENT || r == -ECONNREFUSED)
		return output_print_advised(("vCUDA's manager ctr-gpu-vcudad does not run"),
					    ("sudo systemctl enable --now ctr-gpu-vcudad (package ctr-gpu-vcuda; "
					     "OpenRC: rc-service ctr-gpu-vcudad start)"));
	if (r == -EACCES || r == -EPERM || r == -EPIPE || r == -ECONNRESET)
		return output_print_advised(("vCUDA's manager answers root alone"), ("Try it with sudo."));
	return output_print_advised(("vCUDA's manager ctr-gpu-vcudad does not answer: %m"),
				    ("What it said last: journalctl -u ctr-gpu-vcudad"));
}

int vcuda_ask(unsigned procedure, const void *arguments, void *ret)
{
	_cleanup_close_ int fd = -1;
	int r = control_open(&fd);

	if (r == 0)
		r = control_ask(fd, procedure, arguments, ret);
	return r < 0 ? vcuda_ask_explain(r) : 0;
}

static const char *vcuda_ask_advise(int error)
{
	if (error == ENOENT || error == ENOTUNIQ)
		return "ctr-gpu vcuda list shows what is granted, by the ids that docker ps shows.";
	if (error == ENOMEM)
		return "ctr-gpu vcuda list shows both; ctr-gpu vcuda limit --host-memory=AMOUNT changes one.";
	if (error == EBUSY || error == EALREADY)
		return "ctr-gpu vcuda list shows its state.";
	if (error == EXDEV)
		return "With {\"vcuda\": {\"move\": true}} in /etc/ctr-gpu/config.json, containers that begin\n"
		       "    from then on may be moved to other GPUs of the same model; ctr-gpu info lists them.";
	return error == EOPNOTSUPP ? "ctr-gpu-vcudad(8) says which hosts can limit it; --memory is for the GPUs' own."
				   : "ctr-gpu(1) says what a container may have.";
}

int vcuda_ask_done(unsigned procedure, const void *arguments)
{
	struct vcudad_done done = {0};
	int r = vcuda_ask(procedure, arguments, &done);

	if (r == 0 && done.error != 0)
		r = output_print_advised(("%s%.300s",
					  done.error == EOPNOTSUPP ? "the host's memory is not limited here: " : "",
					  done.message),
					 ("%s", vcuda_ask_advise(done.error)));
	control_free_reply(procedure, &done);
	return r;
}
