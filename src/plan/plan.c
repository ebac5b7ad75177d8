/* SPDX-License-Identifier: Apache-2.0 */

/* From a request and a host to a plan, which reads the host alone; and the guard that a plan needs, loaded. */

#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "ctr-gpu.h"
#include "guard/helper.h"
#include "lib/context.h"
#include "model/requirement.h"
#include "vcuda/grant/backend.h"

struct planner {
	struct ctr_gpu_context *context;
	const struct request *request;
	const struct ctr_gpu_host *host;
	struct plan *plan;
	size_t unsure;       /* requirements that a warning tells of */
	struct plan *native; /* where backends write to, for vCUDA something that the container does not get */
};

/* An image may have half a million of them, and warnings get into logs of the host. */
static int plan_warn_of_requirement(struct planner *planner, const char *requirement, enum requirement_result verdict)
{
	enum { WARNINGS_MAX = 16 };

	if (planner->unsure++ > WARNINGS_MAX)
		return 0;
	if (planner->unsure > WARNINGS_MAX)
		return strv_add(&planner->plan->warnings, "the image has more such requirements, which are not told");
	return strv_format(&planner->plan->warnings, "the image requires %.200s: %s", requirement,
			   verdict == REQUIREMENT_UNKNOWN
				   ? "this host does not tell whether it is so"
				   : "the driver is older, but of the same CUDA major version, which works");
}

static int plan_enforce_requirement(struct planner *planner, const char *requirement, const struct driver_facts *facts)
{
	static const char newer[] = "Update the host's driver, or use an image made for an older CUDA.",
			  other[] = "A newer driver does not change that: use an image made for this GPU and driver.";
	enum requirement_result verdict = requirement_check(requirement, facts);
	bool strict = planner->context->settings.strict_requirements;
	char have[32] = "an unknown CUDA";

	if (verdict == REQUIREMENT_MET)
		return 0;
	if (facts->cuda_major > 0)
		(void)snprintf(have, sizeof(have), "CUDA %d.%d", facts->cuda_major, facts->cuda_minor);
	if (verdict != REQUIREMENT_UNMET && !strict)
		return plan_warn_of_requirement(planner, requirement, verdict);
	return err_advise(
		&planner->context->err,
		err_set_advised(&planner->context->err, CTR_GPU_E_REQUIREMENT,
				("unsatisfied condition: the image requires %.200s, and the host's driver gives %s%s%s",
				 requirement, have, facts->driver_version ? ", driver " : "",
				 facts->driver_version ? facts->driver_version : ""),
				("%s", requirement_asks_for_newer(requirement, facts) ? newer : other)),
		"NVIDIA_DISABLE_REQUIRE=1 in the container's environment starts it all the same.");
}

static int plan_enforce_requirements(struct planner *planner, const struct backend *backend,
				     const struct adapter *const *selected, size_t count)
{
	struct driver_facts facts = {0};
	int r = 0;

	if (planner->request->requirements.count == 0 || count == 0 || planner->request->requirements_disabled ||
	    planner->context->settings.disable_requirements || !backend->facts)
		return 0;
	r = backend->facts(&planner->context->settings, host_backend_data(planner->host, backend), selected, count,
			   &facts);
	for (size_t i = 0; i < planner->request->requirements.count && r == 0; i++)
		r = plan_enforce_requirement(planner, planner->request->requirements.items[i], &facts);
	driver_facts_clear(&facts);
	return r;
}

static int plan_backend(struct planner *planner, const struct backend *backend, const struct selection *selection)
{
	_cleanup_free_ const struct adapter **selected = NULL;
	size_t count = 0;
	int r;

	if (selection->count > 0) {
		selected = calloc(selection->count, sizeof(*selected));
		if (!selected)
			return err_set(&planner->context->err, -ENOMEM, "%m");
	}
	for (size_t i = 0; i < selection->count; i++)
		if (selection->adapters[i]->backend == backend)
			selected[count++] = selection->adapters[i];
	/* A backend without a selected adapter adds nothing, unless only driver files are wanted. */
	if (count == 0 && planner->request->kind != REQUEST_NONE)
		return 0;
	r = plan_enforce_requirements(planner, backend, selected, count);
	if (r != 0)
		return r;
	return backend->plan(&planner->context->settings, host_backend_data(planner->host, backend), planner->request,
			     selected, count, planner->native, &planner->context->err);
}

/* vCUDA's servers find GPUs by their UUIDs, which only the driver's library may know. */
static int plan_identify(const struct planner *planner, const struct selection *selection)
{
	for (size_t i = 0; i < selection->count; i++)
		if (!selection->adapters[i]->uuid && selection->adapters[i]->vendor_id == PCI_VENDOR_NVIDIA)
			return host_identify(planner->host, &planner->context->err);
	return 0;
}

static int plan_backends(struct planner *planner, const struct selection *selection)
{
	int r = 0;

	for (size_t i = 0; i < planner->host->present_count && r == 0; i++)
		r = plan_backend(planner, planner->host->present[i], selection);
	return r;
}

/* @ret: by position in the inventory; also what may be exclusive */
static int plan_mark_exclusive(const struct planner *planner, bool **ret)
{
	_cleanup_exclusive_ struct host_exclusive exclusive = {0};
	int r = host_exclusive_find(planner->host, &planner->host->settings->exclusive, &exclusive);

	for (size_t i = 0; i < planner->host->inventory.count && r == 0; i++)
		exclusive.marked[i] |= exclusive.possible[i] != NULL;
	if (r == 0)
		*ret = steal_ptr(exclusive.marked);
	return r;
}

static int plan_vcuda(struct planner *planner, const struct selection *selection)
{
	const struct ctr_gpu_context *context = planner->context;
	const struct inventory *inventory = &planner->host->inventory;
	struct plan native = {0};
	_cleanup_free_ bool *exclusive = NULL;
	int r = plan_identify(planner, selection);

	planner->native = &native;
	if (r == 0)
		r = plan_mark_exclusive(planner, &exclusive);
	if (r == 0)
		r = plan_backends(planner, selection);
	if (r == 0)
		r = vcuda_plan(&context->settings, planner->request, inventory, exclusive, selection->adapters,
			       selection->count, &native, planner->plan, &planner->context->err);
	planner->native = NULL;
	plan_clear(&native);
	return r;
}

static int plan_warn_of_unserved(const struct planner *planner)
{
	int r = 0;

	for (size_t i = 0; i < REQUEST_UNSERVED && r == 0; i++)
		if (planner->request->unserved & 1U << i)
			r = strv_format(&planner->plan->warnings, "%s=enabled gives nothing; name what it means: %s",
					request_unserved[i].variable, request_unserved[i].options);
	return r;
}

int ctr_gpu_plan_new(struct ctr_gpu_context *context, const struct ctr_gpu_request *request,
		     const struct ctr_gpu_host *host, struct ctr_gpu_plan **ret_plan)
{
	struct ctr_gpu_plan *plan = calloc(1, sizeof(*plan));
	struct planner planner = {.context = context, .request = &request->data, .host = host};
	_cleanup_selection_ struct selection selection = {0};
	bool asks = request->data.kind != REQUEST_VOID, vcuda = false;
	int r = 0;

	if (!plan)
		return -ENOMEM;
	plan->context = context;
	plan->data.capabilities = planner.request->capabilities;
	planner.plan = planner.native = &plan->data;
	undo_log_progress(context->undo_log, "reading the drivers of this host", NULL);
	if (planner.request->vcuda_directory) {
		r = vcuda_plan_granted(planner.request->vcuda_directory, &plan->data, &context->err);
		asks = false;
	}
	if (asks)
		r = selection_new(host, planner.request, &selection, &context->err);
	for (size_t i = 0; i < selection.count && r == 0; i++) {
		char *name = NULL;

		r = adapter_describe(selection.adapters[i], &name);
		if (r == 0)
			r = strv_take(&plan->data.adapters, name);
	}
	/* Without GPUs there may be no host. */
	if (r == 0 && selection.count > 0)
		r = host_exclusive_plan(host, &selection, &plan->data);
	if (r == 0 && asks)
		r = vcuda_decide(&context->settings, planner.request, &vcuda, &context->err);
	if (r == 0 && asks)
		r = vcuda ? plan_vcuda(&planner, &selection) : plan_backends(&planner, &selection);
	if (r == 0 && asks)
		r = plan_warn_of_unserved(&planner);
	if (r != 0) {
		ctr_gpu_plan_unref(plan);
		return r;
	}
	*ret_plan = plan;
	return 0;
}

int ctr_gpu_plan_prepare(struct ctr_gpu_context *context, const struct ctr_gpu_plan *plan)
{
	int r = plan->data.choice.luid_count > 0 ? helper_load(&context->err) : 0;

	if (r == 0 || plan->data.choice.strict)
		return r;
	log_warning(&context->settings.log, "%s%s%s", context->err.text, context->err.advice[0] ? "; " : "",
		    context->err.advice);
	return 0;
}

struct ctr_gpu_plan *ctr_gpu_plan_unref(struct ctr_gpu_plan *plan)
{
	if (!plan)
		return NULL;
	plan_clear(&plan->data);
	free(plan);
	return NULL;
}
