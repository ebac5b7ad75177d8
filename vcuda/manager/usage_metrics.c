/* SPDX-License-Identifier: Apache-2.0 */

/* The manager's page for Prometheus: what containers have, and what they did. */

#include "vcuda/manager/manager.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

#define USAGE_METRICS "ctr_gpu_vcuda_"

/* Of a container. */
struct series {
	const char *name, *type, *help;
	double (*value)(const struct tenant *tenant); /* below 0: it has none */
};

static double usage_metrics_used(const struct tenant *tenant)
{
	return (double)tenant_sum_memory(tenant);
}

static double usage_metrics_limit(const struct tenant *tenant)
{
	const uint64_t bytes = STR_SHARE_BYTES(tenant->limits.memory);

	return bytes ? (double)bytes : -1;
}

static double usage_metrics_limit_ratio(const struct tenant *tenant)
{
	const unsigned percent = STR_SHARE_PERCENT(tenant->limits.memory);

	return percent ? percent / 100.0 : -1;
}

static double usage_metrics_processes(const struct tenant *tenant)
{
	return tenant->clients;
}

static double usage_metrics_suspended(const struct tenant *tenant)
{
	return tenant->suspension.state != SUSPENSION_NONE;
}

static double usage_metrics_share(const struct tenant *tenant)
{
	return tenant->limits.share;
}

static double usage_metrics_connections(const struct tenant *tenant)
{
	return (double)tenant->connects;
}

static double usage_metrics_denied(const struct tenant *tenant)
{
	return (double)tenant->denied;
}

static double usage_metrics_refused_memory(const struct tenant *tenant)
{
	return (double)tenant->refused_memory;
}

static double usage_metrics_refused_functions(const struct tenant *tenant)
{
	return (double)tenant->refused_functions;
}

static double usage_metrics_crashes(const struct tenant *tenant)
{
	return (double)tenant->crashes;
}

static const struct series usage_metrics[] = {
	{"memory_used_bytes", "gauge", "Memory of its GPUs that the container's processes have together.",
	 usage_metrics_used},
	{"memory_limit_bytes", "gauge", "How much of that they may have.", usage_metrics_limit},
	{"memory_limit_ratio", "gauge", "How much of it they may have, as a part of what the GPUs have.",
	 usage_metrics_limit_ratio},
	{"processes", "gauge", "Processes of the container that use CUDA.", usage_metrics_processes},
	{"suspended", "gauge", "Whether the container is suspended.", usage_metrics_suspended},
	{"share", "gauge", "Its share of its GPUs' time.", usage_metrics_share},
	{"connections_total", "counter", "Processes that have begun to use CUDA.", usage_metrics_connections},
	{"refused_connections_total", "counter", "Processes that were refused, being too many.", usage_metrics_denied},
	{"refused_memory_total", "counter", "Seconds in which it was refused memory.", usage_metrics_refused_memory},
	{"refused_functions_total", "counter", "Functions that are not offered and were called.",
	 usage_metrics_refused_functions},
	{"crashes_total", "counter", "Servers of the container that crashed.", usage_metrics_crashes},
};

static void usage_metrics_print_head(FILE *page, const char *name, const char *type, const char *help)
{
	(void)fprintf(page, "# HELP " USAGE_METRICS "%s %s\n# TYPE " USAGE_METRICS "%s %s\n", name, help, name, type);
}

/* @gpu: or NULL */
static void usage_metrics_print_line(FILE *page, const char *name, const struct tenant *tenant, const char *gpu,
				     double value)
{
	(void)fprintf(page, USAGE_METRICS "%s{", name);
	metrics_page_print_label(page, "container", tenant->id);
	if (gpu)
		metrics_page_print_label(page, ",gpu", gpu);
	(void)fprintf(page, "} %.17g\n", value);
}

static void usage_metrics_print_series(FILE *page, const struct series *series, const struct tenant *tenants)
{
	usage_metrics_print_head(page, series->name, series->type, series->help);
	for (const struct tenant *tenant = tenants; tenant; tenant = tenant->next) {
		const double value = series->value(tenant);

		if (!tenant->ending && value >= 0)
			usage_metrics_print_line(page, series->name, tenant, NULL, value);
	}
}

static void usage_metrics_print_time(FILE *page, const struct tenant *tenants)
{
	static const char name[] = "gpu_time_seconds_total";

	usage_metrics_print_head(page, name, "counter", "How long a GPU has had work of the container's.");
	for (const struct tenant *tenant = tenants; tenant; tenant = tenant->next)
		for (size_t i = 0; i < tenant->reach && !tenant->ending; i++) {
			const uint64_t time = tenant_sum_time(tenant, i);

			if (time > 0 || gpu_assign_uses(tenant, tenant->places, &tenant->gpus[i]))
				usage_metrics_print_line(page, name, tenant, tenant->gpus[i].uuid, (double)time / 1e9);
		}
}

void usage_metrics_publish(struct manager *manager)
{
	_cleanup_free_ char *text = NULL;
	struct memstream stream;
	FILE *page;

	if (!metrics_page_is_asked(&manager->metrics))
		return;
	page = memstream_open(&stream);
	if (page) {
		usage_metrics_print_head(page, "servers", "gauge", "Servers of all containers.");
		(void)fprintf(page, USAGE_METRICS "servers %zu\n", manager->worker_count);
		for (size_t i = 0; i < ARRAY_SIZE(usage_metrics); i++)
			usage_metrics_print_series(page, &usage_metrics[i], manager->tenants);
		usage_metrics_print_time(page, manager->tenants);
		(void)memstream_close(&stream, &text, NULL);
	}
	metrics_page_publish(&manager->metrics, text);
}
