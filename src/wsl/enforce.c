/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "guard/helper.h"
#include "guard/layout.h"
#include "model/adapter.h"

#define ASKS_ITSELF "a program that asks /dev/dxg itself reaches every adapter"

bool enforce_is_choice(const struct adapter *const *selected, size_t count)
{
	size_t gpus = 0;

	for (size_t i = 0; i < count; i++)
		gpus += !selected[i]->is_npu;
	return count > 0 && gpus != selected[0]->same_device_count;
}

/* @weakness: why it holds against honest programs alone; NULL: it holds against all */
static int enforce_by_guard(const struct adapter *const *selected, size_t count, const char *weakness,
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

/* @obstacle: why the guard is not the grade; NULL: it is not wanted */
static int enforce_by_environment(const char *obstacle, struct plan_choice *choice)
{
	choice->grade = "environment";
	return str_format(&choice->reason,
			  "the others' driver stores are not mounted, and variables name the chosen ones "
			  "(all of them by --runtime=nvidia alone, none by docker run --gpus); " ASKS_ITSELF "%s%s",
			  obstacle ? "; no guard: " : "", obstacle ? obstacle : "");
}

static int enforce_by_store(struct plan_choice *choice)
{
	choice->grade = "store";
	return str_format(&choice->reason, "the others' driver stores are not mounted; " ASKS_ITSELF);
}

/* Why the guard cannot hold this choice; NULL if it can. */
static int enforce_find_obstacle(const struct adapter *const *selected, size_t count, char **ret)
{
	bool named = count <= GUARD_ADAPTERS_MAX;

	for (size_t i = 0; i < count; i++)
		named = named && selected[i]->has_luid;
	return named ? helper_check(ret) : str_format(ret, "an adapter has no LUID, or there are too many");
}

static int enforce_refuse(const char *obstacle, struct err *err)
{
	return err_set_advised(
		err, CTR_GPU_E_GUARD, ("the choice of GPUs cannot be held on this host: %.500s", obstacle),
		("Choose all GPUs, or set \"choice\" to \"auto\" in ctr-gpu's configuration (ctr-gpu-config(5))."));
}

static int enforce_refuse_weak(const char *weakness, struct err *err)
{
	return err_advise(
		err,
		err_set_advised(err, CTR_GPU_E_GUARD,
				("the choice of GPUs cannot be held on this host: %.200s", weakness),
				("There, " PREEMPT_EFFECT ".")),
		"Boot with preempt=voluntary, if the kernel takes that, choose all GPUs, or set \"choice\" to "
		"\"guard\".");
}

/* ---- what this host can do ---- */

struct enforce_result {
	const char *grade; /* NULL: refused */
	char *obstacle;    /* why the guard is not the grade; NULL: it could be, or is not wanted */
	char *weakness;    /* why it holds against honest programs alone; NULL: it holds against all */
};

static void enforce_clear(struct enforce_result *enforce_result)
{
	free(enforce_result->obstacle);
	free(enforce_result->weakness);
}

static int enforce_check(const struct settings *settings, const struct adapter *const *selected, size_t count,
			 struct enforce_result *ret)
{
	int r;

	if (settings->choice == CHOICE_STORE || settings->choice == CHOICE_ENVIRONMENT) {
		ret->grade = settings->choice == CHOICE_STORE ? "store" : "environment";
		return 0;
	}
	r = enforce_find_obstacle(selected, count, &ret->obstacle);
	if (r == 0 && !ret->obstacle)
		r = preempt_check(&ret->weakness);
	if (r == 0 && (settings->choice != CHOICE_STRICT || (!ret->obstacle && !ret->weakness)))
		ret->grade = ret->obstacle ? "environment" : "guard";
	return r;
}

int enforce_plan(const struct settings *settings, const struct adapter *const *selected, size_t count,
		 struct plan *plan, struct err *err)
{
	_cleanup_(enforce_clear) struct enforce_result enforce_result = {0};
	struct plan_choice *choice = &plan->choice;
	int r;

	if (!enforce_is_choice(selected, count))
		return 0;
	r = enforce_check(settings, selected, count, &enforce_result);
	if (r < 0)
		return r;
	choice->strict = settings->choice == CHOICE_STRICT;
	if (!enforce_result.grade)
		return enforce_result.obstacle ? enforce_refuse(enforce_result.obstacle, err)
					       : enforce_refuse_weak(enforce_result.weakness, err);
	if (streq(enforce_result.grade, "guard"))
		return enforce_by_guard(selected, count, enforce_result.weakness, choice);
	if (streq(enforce_result.grade, "store"))
		return enforce_by_store(choice);
	if (settings->choice == CHOICE_GUARD)
		r = strv_format(&plan->warnings, "the guard cannot hold the choice of GPUs here: %s",
				enforce_result.obstacle);
	return r == 0 ? enforce_by_environment(enforce_result.obstacle, choice) : r;
}

/* One among others; of all of them the one that is hardest to hold. */
static const struct adapter *enforce_find_choosable(const struct adapter *adapters, size_t count)
{
	const struct adapter *found = NULL;

	for (size_t i = 0; i < count; i++)
		if (adapter_is_choosable(&adapters[i]) && (!found || found->has_luid))
			found = &adapters[i];
	return found;
}

int enforce_describe(const struct settings *settings, const struct adapter *adapters, size_t count,
		     struct enforcement *ret)
{
	_cleanup_(enforce_clear) struct enforce_result enforce_result = {0};
	const struct adapter *chosen = enforce_find_choosable(adapters, count);
	int r = chosen ? enforce_check(settings, &chosen, 1, &enforce_result) : 0;

	if (r < 0 || !chosen)
		return r;
	*ret = (struct enforcement){.grade = enforce_result.grade, .strict = settings->choice == CHOICE_STRICT};
	if (enforce_result.obstacle || enforce_result.weakness)
		r = str_format(&ret->why, "%s%s",
			       enforce_result.obstacle ? enforce_result.obstacle : enforce_result.weakness,
			       enforce_result.obstacle ? "" : ": " PREEMPT_EFFECT);
	else if (!streq(enforce_result.grade, "guard"))
		r = str_format(&ret->why, "\"choice\" in the configuration");
	return r < 0 ? r : 1;
}
