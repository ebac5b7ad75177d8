/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/hold.h"

#include <errno.h>
#include <stdlib.h>

#include "guard/helper.h"
#include "guard/layout.h"
#include "model/adapter.h"

#define ASKS_ITSELF "a program that asks /dev/dxg itself reaches every adapter"

bool hold_is_choice(const struct adapter *const *selected, size_t count)
{
	size_t gpus = 0;

	for (size_t i = 0; i < count; i++)
		gpus += !selected[i]->is_npu;
	return count > 0 && gpus != selected[0]->sharing;
}

static int hold_by_guard(const struct adapter *const *selected, size_t count, struct plan_choice *choice)
{
	choice->luids = calloc(count, sizeof(*choice->luids));
	if (!choice->luids)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		choice->luids[i] = (uint64_t)(uint32_t)selected[i]->luid.high << 32 | selected[i]->luid.low;
	choice->luid_count = count;
	choice->grade = "guard";
	return str_format(&choice->reason, "the kernel refuses the other adapters to every program of the container");
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

int hold_plan(const struct settings *settings, const struct adapter *const *selected, size_t count, struct plan *plan,
	      struct err *err)
{
	struct plan_choice *choice = &plan->choice;
	_cleanup_free_ char *obstacle = NULL;
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
	if (!obstacle)
		return hold_by_guard(selected, count, choice);
	if (choice->strict)
		return hold_refuse(obstacle, err);
	if (settings->choice == CHOICE_GUARD)
		r = strv_format(&plan->warnings, "the guard cannot hold the choice of GPUs here: %s", obstacle);
	return r == 0 ? hold_by_environment(obstacle, choice) : r;
}
