/* SPDX-License-Identifier: Apache-2.0 */

#include "apply/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctr-gpu-error.h"
#include "guard/choice.h"

/* The name of the step of a container that is made. */
static const char made[] = "the guard's choice";

int guard_rule_restore(const struct choices *choices, int cgroup, const uint64_t *luids, size_t count)
{
	struct guard_key key;
	int r = choice_key(cgroup, &key);

	return r < 0 ? r : choice_set(choices, &key, luids, count);
}

/* Of a container that runs, the name of the step is what was chosen before, as text. */
static size_t guard_rule_read_before(const char *text, uint64_t luids[GUARD_RULE_BEFORE_MAX])
{
	size_t count = 0;
	char *end;

	for (; *text && count < GUARD_RULE_BEFORE_MAX; text = end) {
		luids[count] = strtoull(text, &end, 16);
		if (end == text)
			break;
		count++;
	}
	return count;
}

static void guard_rule_undo(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	const struct choices choices = {undo_step->fds[0], undo_step->fds[1]};
	uint64_t before[GUARD_RULE_BEFORE_MAX];
	struct guard_key key;

	(void)undo_log;
	if (!streq(undo_step->name, made))
		(void)guard_rule_restore(&choices, undo_step->fds[2], before,
					 guard_rule_read_before(undo_step->name, before));
	else if (choice_key(undo_step->fds[2], &key) == 0)
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
static const char *guard_rule_find_key(const struct guard_rule *rule, int *ret_fd, struct guard_key *ret)
{
	size_t depth;

	if (!rule->cgroup)
		return "the container has no cgroup with device rules";
	*ret_fd = devcgroup_directory(rule->cgroup, &depth);
	if (choice_key(*ret_fd, ret) < 0 || guard_rule_is_own_cgroup(ret))
		return "the container has no cgroup of its own";
	return depth > GUARD_LEVELS_MAX ? "the container's cgroup is too far below the root" : NULL;
}

static int guard_rule_explain(const struct guard_rule *rule, const char *obstacle, int r)
{
	if (rule->choice->strict)
		return err_set_advised(rule->err, CTR_GPU_E_GUARD,
				       ("the choice of GPUs cannot be held: %s%s%s", obstacle, r < 0 ? ": " : "",
					r < 0 ? err_name(r) : ""),
				       ("Choose all GPUs, or set \"choice\" to \"auto\" in ctr-gpu's configuration."));
	log_warning(rule->log, "the choice of GPUs is not held: %s%s%s", obstacle, r < 0 ? ": " : "",
		    r < 0 ? err_name(r) : "");
	return 0;
}

static int guard_rule_print_before(const struct guard_rule_before *before, char **ret)
{
	int r = str_append(ret, "%s", before->count ? "" : "none");

	for (size_t i = 0; i < before->count && r == 0; i++)
		r = str_append(ret, "%s%" PRIx64, i ? " " : "", before->luids[i]);
	return r;
}

/* The undo log owns the maps' descriptors, or they are closed. @luids: NULL: all adapters may be used */
static int guard_rule_write(const struct guard_rule *rule, int cgroup, const struct guard_key *key,
			    const struct choices *choices, const uint64_t *luids, size_t count)
{
	struct undo_step undo_step = {.undo = guard_rule_undo,
				      .fds = {choices->map, choices->counts, fcntl(cgroup, F_DUPFD_CLOEXEC, 0)}};
	_cleanup_free_ char *before = NULL;
	int r = undo_step.fds[2] < 0 ? -errno : 0;

	if (r == 0 && rule->before)
		r = guard_rule_print_before(rule->before, &before);
	if (r == 0)
		r = undo_log_add(rule->undo_log, &undo_step, before ? before : made);
	for (size_t i = 0; i < UNDO_STEP_FDS && r < 0; i++)
		cleanup_closep(&undo_step.fds[i]);
	if (r == 0)
		r = luids ? choice_set(choices, key, luids, count) : choice_remove(choices, key);
	if (r == 0 && rule->before)
		rule->before->changed = true;
	return r;
}

/* What the container may use already, and what is added to that. Return: how many; negative errno. */
static int guard_rule_join(const struct guard_rule *rule, uint64_t luids[GUARD_ADAPTERS_MAX])
{
	const struct guard_rule_before *before = rule->before;
	size_t count = before->count;

	memcpy(luids, before->luids, count * sizeof(*luids));
	for (size_t i = 0; i < rule->choice->luid_count; i++) {
		size_t same = 0;

		while (same < count && luids[same] != rule->choice->luids[i])
			same++;
		if (same == count && count == GUARD_ADAPTERS_MAX)
			return -E2BIG;
		luids[same] = rule->choice->luids[i];
		count += same == count;
	}
	return (int)count;
}

/* Return: 1 if nothing is to be changed, as the container may use all of them, or is to; 0; negative errno. */
static int guard_rule_read_choice(const struct guard_rule *rule, const struct choices *choices,
				  const struct guard_key *key)
{
	struct guard_choice old = {0};
	int r = choice_get(choices, key, &old);

	if (r == -ENOENT)
		return rule->has_device || rule->all;
	if (r == 0 && old.count > GUARD_RULE_BEFORE_MAX)
		r = -E2BIG;
	for (size_t i = 0; i < old.count && r == 0; i++)
		rule->before->luids[rule->before->count++] = old.luids[i];
	return r;
}

/* Of a container that runs. */
static int guard_rule_extend(const struct guard_rule *rule, int cgroup, const struct guard_key *key,
			     struct choices *choices)
{
	uint64_t luids[GUARD_ADAPTERS_MAX];
	int r = guard_rule_read_choice(rule, choices, key), count = 0;

	if (r == 0 && !rule->all) {
		count = guard_rule_join(rule, luids);
		r = count < 0 ? count : 0;
	}
	if (r != 0) {
		choices_close(choices);
		return r < 0 ? r : 0;
	}
	return guard_rule_write(rule, cgroup, key, choices, rule->all ? NULL : luids, (size_t)count);
}

int guard_rule_guard(const struct guard_rule *rule)
{
	struct choices choices;
	const char *obstacle;
	struct guard_key key;
	int cgroup = -1, r;

	if (rule->choice->luid_count == 0 && !rule->all)
		return 0;
	undo_log_progress(rule->undo_log, "telling the guard of the choice", NULL);
	obstacle = guard_rule_find_key(rule, &cgroup, &key);
	if (obstacle)
		return rule->all ? 0 : guard_rule_explain(rule, obstacle, 0);
	r = choices_open(&choices);
	if (r == -ENOENT && rule->all)
		return 0;
	if (r < 0)
		return guard_rule_explain(rule, "the guard's map cannot be opened", r);
	r = rule->before
		    ? guard_rule_extend(rule, cgroup, &key, &choices)
		    : guard_rule_write(rule, cgroup, &key, &choices, rule->choice->luids, rule->choice->luid_count);
	return r < 0 ? guard_rule_explain(rule, "the guard's map cannot be written", r) : 0;
}
