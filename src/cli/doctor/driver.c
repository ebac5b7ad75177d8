/* SPDX-License-Identifier: Apache-2.0 */

/* The driver's versions and files, and whether a plan can be made with them. */

#include <stdio.h>

#include "cli/doctor/doctor.h"
#include "plan/plan.h"

enum { REMARKS_MAX = 3 };

/* Return: whether a container could be given all of it. */
static bool driver_check_plan(struct doctor_context *examination)
{
	struct findings *findings = &examination->findings;
	bool explained = findings_block(findings);
	struct ctr_gpu_request *request = NULL;
	struct ctr_gpu_plan *plan = NULL;
	int r;

	r = ctr_gpu_request_new(examination->context, &request);
	if (r == 0)
		r = ctr_gpu_request_set_devices(request, "all");
	if (r == 0)
		r = ctr_gpu_plan_new(examination->context, request, examination->host, &plan);
	if (r != 0)
		findings_add_message(findings, "driver.files", SEVERITY_PROBLEM,
				     ctr_gpu_context_message(examination->context));
	/* What is missing because of a problem found earlier was reported with that. */
	for (size_t i = 0; r == 0 && i < plan->data.warnings.count && i < REMARKS_MAX && !explained; i++)
		findings_add_message(findings, "driver.plan", SEVERITY_WARNING, plan->data.warnings.items[i]);
	ctr_gpu_plan_unref(plan);
	ctr_gpu_request_unref(request);
	return r == 0;
}

static void driver_add_version(struct doctor_context *examination, const struct backend_checks *checks)
{
	struct driver_facts facts;
	char cuda[32] = "";

	host_read_facts(examination->host, checks->backend, &facts);
	if (facts.cuda_major > 0)
		(void)snprintf(cuda, sizeof(cuda), "CUDA %d.%d", facts.cuda_major, facts.cuda_minor);
	if (facts.driver_version)
		findings_add(&examination->findings, "driver.version", SEVERITY_OK, "%s %s%s%s", checks->driver,
			     facts.driver_version, cuda[0] ? ", " : "", cuda);
	else if (cuda[0])
		findings_add(&examination->findings, "driver.version", SEVERITY_OK, "%s offers %s", checks->driver,
			     cuda);
	driver_facts_clear(&facts);
}

void check_driver(struct doctor_context *examination)
{
	if (examination->usable == 0)
		return;
	for (size_t i = 0; examination->here[i]; i++)
		driver_add_version(examination, examination->here[i]);
	examination->planned = driver_check_plan(examination);
}
