/* SPDX-License-Identifier: Apache-2.0 */

/* CDI specs in the directories that engines read, as `ctr-gpu cdi check` judges them. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "cdi/report.h"
#include "cli/doctor/doctor.h"

/* The second goes before the first, for devices of the same name (CDI SPEC.md). */
static const char *const directories[] = {PATH_CDI, PATH_CDI_RUN};

static bool cdi_is_for_gpus(const struct cdi_spec *spec)
{
	const char *class = spec->kind ? strchr(spec->kind, '/') : NULL;

	return spec->is_ours || (class && (streq(class, "/gpu") || str_has_prefix(spec->kind, "nvidia.com/") ||
					   str_has_prefix(spec->kind, "microsoft.com/")));
}

/* What is wrong with a file, and the kind of its devices if engines can use it. */
static void cdi_add_file(struct doctor_context *examination, const struct cdi_file *file)
{
	static const char format[] = "%s: %s\n%s";
	struct findings *findings = &examination->findings;
	const struct cdi_spec *spec = &file->spec;
	const char *remedy = spec->is_ours ? "sudo ctr-gpu refresh"
					   : "Write the file again with the tool that wrote it, or remove it: "
					     "sudo ctr-gpu cdi generate makes ours.";
	bool usable = spec->problems.count == 0;

	if (file->is_rest && file->finding_count)
		findings_add(findings, "cdi.many", SEVERITY_WARNING,
			     "%s: %s\nIf they are of devices that are gone, remove them: their tool left them behind.",
			     file->path, file->findings[0].text);
	if (file->is_rest || (usable && !cdi_is_for_gpus(spec)))
		return;
	if (file->denied)
		findings_add(findings, "cdi.unreadable", SEVERITY_WARNING,
			     "you may not read %s, nor may rootless engines of yours\n"
			     "sudo chmod a+r %s; for root's engines: sudo ctr-gpu doctor",
			     file->path, file->path);
	else if (!usable)
		findings_add(findings, "cdi.refused", SEVERITY_WARNING, format, file->path, spec->problems.items[0],
			     remedy);
	for (size_t i = 0; i < file->finding_count; i++) {
		bool error = file->findings[i].severity == CDI_ERROR;

		usable &= !error;
		if (file->findings[i].severity != CDI_NOTE)
			findings_add(findings, error ? "cdi.error" : "cdi.warning", SEVERITY_WARNING, format,
				     file->path, file->findings[i].text, remedy);
	}
	if (!usable)
		return;
	findings_add(findings, "cdi.spec", SEVERITY_OK, "%s: %zu device%s of kind %s", file->path, spec->device_count,
		     spec->device_count == 1 ? "" : "s", spec->kind);
	if (!strv_contains(&examination->cdi_kinds, spec->kind) && strv_add(&examination->cdi_kinds, spec->kind) < 0)
		findings->incomplete = true;
}

static bool cdi_is_usable(const struct cdi_file *file)
{
	for (size_t i = 0; i < file->finding_count; i++)
		if (file->findings[i].severity == CDI_ERROR)
			return false;
	return cdi_report_is_loaded(file) && cdi_is_for_gpus(&file->spec);
}

int cdi_list_kinds(const struct doctor_context *examination, const struct strv *places, struct strv *ret)
{
	struct ctr_gpu_cdi_report *report = NULL;
	int r = ctr_gpu_cdi_report_new(examination->context, &report);

	for (size_t i = 0; i < places->count && r == 0; i++)
		r = ctr_gpu_cdi_report_read_directory(report, places->items[i]);
	if (r == 0)
		r = ctr_gpu_cdi_report_check(report, examination->host, NULL);
	for (size_t i = 0; r == 0 && i < report->file_count; i++)
		if (cdi_is_usable(&report->files[i]) && !strv_contains(ret, report->files[i].spec.kind))
			r = strv_add(ret, report->files[i].spec.kind);
	ctr_gpu_cdi_report_unref(report);
	return r;
}

int cdi_find_spec(struct ctr_gpu_context *context, const char *kind, char **ret_path, bool *ret_ours)
{
	struct ctr_gpu_cdi_report *report = NULL;
	const struct cdi_file *found = NULL;
	int r = ctr_gpu_cdi_report_new(context, &report);

	for (size_t i = 0; i < ARRAY_SIZE(directories) && r == 0; i++)
		r = ctr_gpu_cdi_report_read_directory(report, directories[i]);
	for (size_t i = 0; r == 0 && !found && i < report->file_count; i++)
		if (report->files[i].spec.kind && streq(report->files[i].spec.kind, kind))
			found = &report->files[i];
	if (r == 0)
		r = found ? str_format(ret_path, "%s", found->path) : -ENOENT;
	if (r == 0)
		*ret_ours = found->spec.is_ours;
	ctr_gpu_cdi_report_unref(report);
	return r;
}

void check_cdi(struct doctor_context *examination)
{
	struct ctr_gpu_cdi_report *report = NULL;
	size_t before = examination->findings.count;
	int r;

	r = ctr_gpu_cdi_report_new(examination->context, &report);
	for (size_t i = 0; i < ARRAY_SIZE(directories) && r == 0; i++)
		if (ctr_gpu_cdi_report_read_directory(report, directories[i]) < 0)
			findings_add_error(&examination->findings, "cdi.unreadable", SEVERITY_WARNING,
					   &examination->context->err);
	if (r == 0)
		r = ctr_gpu_cdi_report_check(report, examination->host, NULL);
	for (size_t i = 0; r == 0 && i < report->file_count; i++)
		cdi_add_file(examination, &report->files[i]);
	ctr_gpu_cdi_report_unref(report);
	if (r != 0 || examination->cdi_kinds.count > 0)
		return;
	if (examination->findings.count == before)
		findings_add(&examination->findings, "cdi.none", SEVERITY_NOTE,
			     "there is no CDI spec of GPUs\n"
			     "sudo ctr-gpu cdi generate");
	/* This finding, or the last one about a file, closes the method CDI. */
	findings_close(&examination->findings, ANY_ENGINE, METHOD(CDI));
}
