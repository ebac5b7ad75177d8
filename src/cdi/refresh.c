/* SPDX-License-Identifier: Apache-2.0 */

/* Brings the specs in a directory up to date. Correct ones are not touched. */

#include <errno.h>
#include <unistd.h>

#include "cdi/report.h"
#include "ctr-gpu.h"
#include "lib/context.h"

/* Hooks and capabilities stay as in the old spec: its author chose them. */
static int cdi_refresh_generate(struct ctr_gpu_context *context, const struct ctr_gpu_host *host,
				const struct ctr_gpu_cdi_report *report, const char *kind, const char *hook,
				json_t **ret)
{
	struct request request = {.kind = REQUEST_ALL};
	const struct cdi_options wish = {.kind = kind, .hook = hook, .request = &request};
	const struct cdi_spec *old = report->file_count > 0 ? &report->files[0].spec : NULL;
	int r;

	if (old && old->kind && streq(old->kind, kind) && old->device_count > 0)
		return cdi_generate_like(context, host, old, ret);
	r = request_set_capabilities(&request, "", &context->err);
	return r == 0 ? cdi_generate(context, host, &wish, ret) : r;
}

static int cdi_refresh_all(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const char *path,
			   const char *kind, const char *hook)
{
	struct ctr_gpu_cdi_report *report = NULL;
	json_t *spec;
	int r;

	r = ctr_gpu_cdi_report_new(context, &report);
	if (r == 0 && access(path, F_OK) == 0)
		r = ctr_gpu_cdi_report_read_file(report, path);
	if (r == 0)
		r = ctr_gpu_cdi_report_check(report, host, NULL);
	/* A file of another program under our name stays. */
	if (r == 0 && !ctr_gpu_cdi_report_is_fine(report) &&
	    (report->file_count == 0 || report->files[0].spec.is_ours)) {
		r = cdi_refresh_generate(context, host, report, kind, hook, &spec);
		if (r == 0)
			r = cdi_save(&context->err, path, spec);
	}
	ctr_gpu_cdi_report_unref(report);
	return r;
}

int ctr_gpu_cdi_refresh(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const char *directory,
			const char *hook)
{
	_cleanup_free_ char *removed = NULL;
	_cleanup_strv_ struct strv kinds = {0};
	int r;

	r = ctr_gpu_cdi_remove_stale(context, host, directory, &removed);
	if (r == 0 && host)
		r = cdi_kinds(host, &kinds);
	for (size_t i = 0; i < kinds.count && r == 0; i++) {
		_cleanup_free_ char *name = NULL, *path = NULL;

		if (cdi_file_name(kinds.items[i], &name) < 0 || str_format(&path, "%s/%s", directory, name) < 0)
			return -ENOMEM;
		r = cdi_refresh_all(context, host, path, kinds.items[i], hook);
	}
	return r;
}
