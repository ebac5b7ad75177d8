/* SPDX-License-Identifier: Apache-2.0 */

#include "apply/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctr-gpu-error.h"
#include "guard/choice.h"

static void guard_rule_undo(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	const struct choices choices = {undo_step->fds[0], undo_step->fds[1]};
	struct guard_key key;

	(void)undo_log;
	if (choice_key(undo_step->fds[2], &key) == 0)
		(void)choice_remove(&choices, &key);
}

/* Whether the process that does this is in that cgroup as well: then it is not the container's own. */
static bool guard_rule_is_own_cgroup(const struct guard_key *key)
{
	struct devcgroup *cgroup = NULL;
	struct guard_key own = {0};
	size_t depth;

	if (devcgroup_open(getpid(), -1, &cgroup, NULL) == 0 && cgroup)
		(void)choice_key(devcgroup_directory(cgroup, &depth), &own);
	devcgroup_free(cgroup);
	return own.cgroup == key->cgroup && own.hierarchy == key->hierarchy;
}

/* Return: what is in the way of the guard; NULL: nothing. */
static const char *guard_rule_find_key(const struct guard_rule *tell, int *ret_fd, struct guard_key *ret)
{
	size_t depth;

	if (!tell->cgroup)
		return "the container has no cgroup with device rules";
	*ret_fd = devcgroup_directory(tell->cgroup, &depth);
	if (choice_key(*ret_fd, ret) < 0 || guard_rule_is_own_cgroup(ret))
		return "the container has no cgroup of its own";
	return depth > GUARD_LEVELS_MAX ? "the container's cgroup is too far below the root" : NULL;
}

static int guard_rule_explain(const struct guard_rule *tell, const char *obstacle, int r)
{
	if (tell->choice->strict)
		return err_set(tell->err, CTR_GPU_E_GUARD,
			       "the choice of GPUs cannot be held: %s%s%s\n"
			       "Choose all GPUs, or set \"choice\" to \"auto\" in ctr-gpu's configuration.",
			       obstacle, r < 0 ? ": " : "", r < 0 ? err_name(r) : "");
	log_warning(tell->log, "the choice of GPUs is not held: %s%s%s", obstacle, r < 0 ? ": " : "",
		    r < 0 ? err_name(r) : "");
	return 0;
}

/* The undo log owns the maps' descriptors, or they are closed. */
static int guard_rule_write(const struct guard_rule *tell, int cgroup, const struct guard_key *key,
			    const struct choices *choices)
{
	const struct undo_step undo_step = {.undo = guard_rule_undo,
					    .fds = {choices->map, choices->counts, fcntl(cgroup, F_DUPFD_CLOEXEC, 0)}};
	int r = undo_step.fds[2] < 0 ? -errno : undo_log_add(tell->undo_log, &undo_step, "the guard's choice");

	for (size_t i = 0; i < UNDO_STEP_FDS && r < 0; i++)
		cleanup_closep(&undo_step.fds[i]);
	return r < 0 ? r : choice_set(choices, key, tell->choice->luids, tell->choice->luid_count);
}

int guard_rule_guard(const struct guard_rule *tell)
{
	struct choices choices;
	const char *obstacle;
	struct guard_key key;
	int cgroup = -1, r;

	if (tell->choice->luid_count == 0)
		return 0;
	undo_log_progress(tell->undo_log, "telling the guard of the choice", NULL);
	obstacle = guard_rule_find_key(tell, &cgroup, &key);
	if (obstacle)
		return guard_rule_explain(tell, obstacle, 0);
	r = choices_open(&choices);
	if (r < 0)
		return guard_rule_explain(tell, "the guard's map cannot be opened", r);
	r = guard_rule_write(tell, cgroup, &key, &choices);
	return r < 0 ? guard_rule_explain(tell, "the guard's map cannot be written", r) : 0;
}
