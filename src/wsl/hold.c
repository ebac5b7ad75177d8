/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/hold.h"

#include <errno.h>
#include <stdlib.h>

#include "guard/helper.h"
#include "guard/layout.h"
#include "guard/preempt.h"
#include "model/adapter.h"

#define ASKS_ITSELF "a program that asks /dev/dxg itself reaches every adapter"

bool hold_is_choice(const struct adapter *const *selected, size_t count)
{
	size_t gpus = 0;

	for (size_t i = 0; i < count; i++)
		gpus += !selected[i]->is_npu;
	return count > 0 && gpus != selected[0]->sharing;
}

/* @weakness: why it holds against honest programs alone; NULL: it holds against all */
static int hold_by_guard(const struct adapter *const *selected, size_t count, const char *weakness,
			 struct plan_choice *choice)
{
	choice->luids = calloc(count, sizeof(*choice->luids));
	if (!choice->luids)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		choice->luids[i] = (uint64_t)(uint32_t)selected[i]->luid.high << 32 | selected[i]->luid.low;
	choice->luid_count = count;
	choice->grade = "guard";
	return str_format(&choice->reason,
			  "the kernel refuses the other adapters to every program of the container%s%s%s",
			  weakness ? "; but " : "", weakness ? weakness : "", weakness ? ": " PREEMPT_EFFECT : "");
}

/* @obstacle: why the guard is not the grade; NULL: nobody wants it */
static int hold_by_environment(const char *obstacle, struct plan_choice *choice)
{
	choice->grade = "environment";
	return str_format(&choice->reason,
			  "the others' driver stores are not mounted, and variables name the chosen ones; " ASKS_ITSELF
			  "%s%s",
			  obstacle ? "; no guard: " : "", obstacle ? obstacle : "");
}

static int hold_by_store(struct plan_choice *choice)
{
	choice->grade = "store";
	return str_format(&choice->reason, "the others' driver stores are not mounted; " ASKS_ITSELF);
}

/* What the caller cannot be told by the adapters themselves. */
static int hold_find_obstacle(const struct adapter *const *selected, size_t count, char **ret)
{
	bool named = count <= GUARD_ADAPTERS_MAX;

	for (size_t i = 0; i < count; i++)
		named = named && selected[i]->has_luid;
	return named ? helper_check(ret) : str_format(ret, "an adapter has no LUID, or there are too many");
}

static int hold_refuse(const char *obstacle, struct err *err)
{
	return err_set(err, CTR_GPU_E_GUARD,
		       "the choice of GPUs cannot be held on this host: %.500s\n"
		       "Choose all GPUs, or set \"choice\" to \"auto\" in ctr-gpu's configuration (ctr-gpu-config(5)).",
		       obstacle);
}

static int hold_refuse_weak(const char *weakness, struct err *err)
{
	return err_set(err, CTR_GPU_E_GUARD,
		       "the choice of GPUs cannot be held on this host: %.200s\n"
		       "There, " PREEMPT_EFFECT ".\n"
		       "Boot with preempt=voluntary, if the kernel takes that, choose all GPUs, or set \"choice\" to "
		       "\"guard\".",
		       weakness);
}

int hold_plan(const struct settings *settings, const struct adapter *const *selected, size_t count, struct plan *plan,
	      struct err *err)
{
	struct plan_choice *choice = &plan->choice;
	_cleanup_free_ char *obstacle = NULL, *weakness = NULL;
	int r;

	if (!hold_is_choice(selected, count))
		return 0;
	if (settings->choice == CHOICE_STORE)
		return hold_by_store(choice);
	if (settings->choice == CHOICE_ENVIRONMENT)
		return hold_by_environment(NULL, choice);
	r = hold_find_obstacle(selected, count, &obstacle);
	if (r < 0)
		return r;
	choice->strict = settings->choice == CHOICE_STRICT;
	r = obstacle ? 0 : preempt_check(&weakness);
	if (r < 0)
		return r;
	if (weakness && choice->strict)
		return hold_refuse_weak(weakness, err);
	if (!obstacle)
		return hold_by_guard(selected, count, weakness, choice);
	if (choice->strict)
		return hold_refuse(obstacle, err);
	if (settings->choice == CHOICE_GUARD)
		r = strv_format(&plan->warnings, "the guard cannot hold the choice of GPUs here: %s", obstacle);
	return r == 0 ? hold_by_environment(obstacle, choice) : r;
}
