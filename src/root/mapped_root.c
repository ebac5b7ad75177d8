/* SPDX-License-Identifier: Apache-2.0 */

#include "root/mapped_root.h"

#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The signal at the parent's end is forgotten when an identity changes (commit_creds() in kernel/cred.c). */
static int parent_signal;
static pid_t parent;

void mapped_root_begin(const struct mapped_root *owner)
{
	if (!owner->other)
		return;
	(void)prctl(PR_GET_PDEATHSIG, &parent_signal);
	parent = getppid();
	(void)setfsgid(owner->gid);
	(void)setfsuid(owner->uid);
}

void mapped_root_end(const struct mapped_root *owner)
{
	if (!owner->other)
		return;
	(void)setfsuid(geteuid());
	(void)setfsgid(getegid());
	if (parent_signal == 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, parent_signal);
	if (getppid() != parent)
		(void)kill(getpid(), parent_signal);
}
