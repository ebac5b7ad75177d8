/* SPDX-License-Identifier: Apache-2.0 */

/* Whether a choice among the GPUs of this host would be held. */

#include "guard/choice.h"
#include "guard/helper.h"
#include "wsl/internal.h"

/* A container that gets all of them works in any case. */
static enum severity check_guard_severity(enum choice_grade grade)
{
	return grade == CHOICE_STRICT || grade == CHOICE_GUARD ? SEVERITY_WARNING : SEVERITY_NOTE;
}

static void check_guard_report(struct doctor_context *examination, const char *obstacle)
{
	const enum choice_grade grade = examination->settings->choice;

	findings_add(&examination->findings, "choice.not-held", check_guard_severity(grade),
		     "%s: %s\n"
		     "%s",
		     grade == CHOICE_STRICT ? "a container that chooses a GPU does not start"
					    : "a choice of GPUs is not held",
		     obstacle,
		     grade == CHOICE_STRICT
			     ? "Mend it, or set \"choice\" to \"auto\" in /etc/ctr-gpu/config.json."
			     : "Install ctr-gpu-guard on a kernel that can hold it (docs/guard.md) and run ctr-gpu "
			       "refresh, or choose all GPUs.");
}

static void check_guard_add(struct doctor_context *examination, const char *weakness)
{
	const bool refused = weakness && examination->settings->choice == CHOICE_STRICT;

	if (!weakness)
		findings_add(&examination->findings, "choice.held", SEVERITY_OK,
			     "a choice among the GPUs is held by the guard, which %s",
			     helper_is_loaded() ? "is loaded" : "the first container that chooses loads");
	else
		findings_add(&examination->findings, "choice.held-weakly", refused ? SEVERITY_WARNING : SEVERITY_NOTE,
			     "%s: %s, and " PREEMPT_EFFECT "\n"
			     "Boot a kernel that does not (with preempt=voluntary, if it takes that)%s.",
			     refused ? "a container that chooses a GPU does not start"
				     : "a choice among the GPUs is held by the guard against honest programs",
			     weakness, refused ? ", or set \"choice\" to \"guard\" in /etc/ctr-gpu/config.json" : "");
}

/* Root alone can look. */
static void check_guard_racers(struct doctor_context *examination)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	size_t condemned = choices_open(&choices) == 0 ? choice_count_marked_for_kill(&choices) : 0;

	if (condemned > 0)
		findings_add(&examination->findings, "choice.raced", SEVERITY_WARNING,
			     "%zu cgroups have raced with the guard for an adapter that was not chosen for them, "
			     "and make no further call\n"
			     "ctr-gpu-guard status names them; look at what runs in those containers.",
			     condemned);
}

void check_guard(struct doctor_context *examination)
{
	const struct inventory *inventory = examination->inventory;
	const enum choice_grade grade = examination->settings->choice;
	_cleanup_free_ char *obstacle = NULL, *weakness = NULL;
	bool choosable = false;

	for (size_t i = 0; inventory && i < inventory->count; i++)
		choosable = choosable || adapter_is_choosable(&inventory->adapters[i]);
	if (!choosable)
		return;
	if (grade == CHOICE_STORE || grade == CHOICE_ENVIRONMENT)
		check_guard_report(examination, "the configuration's \"choice\" wants no guard");
	else if (helper_check(&obstacle) == 0 && obstacle)
		check_guard_report(examination, obstacle);
	else if (preempt_check(&weakness) == 0)
		check_guard_add(examination, weakness);
	check_guard_racers(examination);
}
