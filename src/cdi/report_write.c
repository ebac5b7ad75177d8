/* SPDX-License-Identifier: Apache-2.0 */

/* A report, for people and programs. */

#include <errno.h>

#include "base/print.h"
#include "cdi/report.h"
#include "ctr-gpu.h"

static const char *const severities[] = {[CDI_ERROR] = "error", [CDI_WARNING] = "warning", [CDI_NOTE] = "note"};

/* Which other file a device comes from, if any. */
static const char *cdi_report_describe(const struct ctr_gpu_cdi_report *report, const struct cdi_file *file,
				       const char *name, const struct cdi_file **ret_other)
{
	const struct cdi_file *conflict, *winner;

	*ret_other = NULL;
	if (!cdi_report_is_loaded(file))
		return "not loaded";
	winner = cdi_report_winner(report, file->spec.kind, name, &conflict);
	if (winner && winner->priority > file->priority)
		return *ret_other = winner, "hidden";
	if (conflict)
		return *ret_other = conflict == file ? winner : conflict, "conflict";
	return "used";
}

static void cdi_report_write_device(const struct ctr_gpu_cdi_report *report, const struct cdi_file *file,
				    const char *name, FILE *out)
{
	const struct cdi_file *other;
	const char *status = cdi_report_describe(report, file, name, &other);

	(void)fputs("    ", out);
	print_write_text(file->spec.kind ? file->spec.kind : "?", out);
	(void)fputc('=', out);
	print_write_text(name, out);
	if (!streq(status, "used"))
		print_safe(out, "  %s",
			   streq(status, "conflict") ? "in conflict, so that engines do not know it, with" : status);
	if (streq(status, "hidden"))
		(void)fputs(" by", out);
	if (other) {
		(void)fputc(' ', out);
		print_write_text(other->path, out);
	}
	(void)fputc('\n', out);
}

static void cdi_report_write_finding(enum cdi_severity severity, const char *text, FILE *out)
{
	print_safe(out, "    %s: ", severities[severity]);
	print_write_text(text, out);
	(void)fputc('\n', out);
}

static void cdi_report_write_file(const struct ctr_gpu_cdi_report *report, const struct cdi_file *file, FILE *out)
{
	print_write_text(file->path, out);
	if (file->spec.version) {
		(void)fputs("  CDI ", out);
		print_write_text(file->spec.version, out);
	}
	print_safe(out, "%s%s\n", file->spec.is_yaml ? ", YAML" : "", file->spec.is_ours ? ", written by ctr-gpu" : "");
	for (size_t i = 0; i < file->spec.device_count; i++)
		if (file->spec.devices[i].name)
			cdi_report_write_device(report, file, file->spec.devices[i].name, out);
	for (size_t i = 0; i < file->spec.problems.count; i++)
		cdi_report_write_finding(CDI_ERROR, file->spec.problems.items[i], out);
	for (size_t i = 0; i < file->finding_count; i++)
		cdi_report_write_finding(file->findings[i].severity, file->findings[i].text, out);
}

static json_t *cdi_report_devices_json(const struct ctr_gpu_cdi_report *report, const struct cdi_file *file)
{
	json_t *array = json_array();

	for (size_t i = 0; i < file->spec.device_count; i++) {
		const char *name = file->spec.devices[i].name, *status;
		const struct cdi_file *other;

		if (!name)
			continue;
		status = cdi_report_describe(report, file, name, &other);
		if (json_array_append_new(array, json_pack("{s:o, s:s, s:o}", "name", print_string(name), "status",
							   status, "by", print_string(other ? other->path : NULL))) < 0)
			return json_decref(array), NULL;
	}
	return array;
}

static json_t *cdi_report_findings_json(const struct cdi_file *file)
{
	const size_t problems = file->spec.problems.count;

	return print_array(i, problems + file->finding_count,
			   json_pack("{s:s, s:o}", "severity",
				     severities[i < problems ? CDI_ERROR : file->findings[i - problems].severity],
				     "text",
				     print_string(i < problems ? file->spec.problems.items[i]
							       : file->findings[i - problems].text)));
}

static void cdi_report_write_none(const struct ctr_gpu_cdi_report *report, FILE *file)
{
	(void)fputs("No CDI spec found", file);
	for (size_t i = 0; i < report->directories.count; i++)
		print_safe(file, " %s %s", i > 0 ? "or" : "in", report->directories.items[i]);
	(void)fputs(".\n", file);
}

int ctr_gpu_cdi_report_write(const struct ctr_gpu_cdi_report *report, enum ctr_gpu_format format, FILE *file)
{
	json_t *files;

	switch (format) {
	case CTR_GPU_FORMAT_TEXT:
		for (size_t i = 0; i < report->file_count; i++)
			cdi_report_write_file(report, &report->files[i], file);
		if (report->file_count == 0)
			cdi_report_write_none(report, file);
		else if (report->checked && ctr_gpu_cdi_report_is_fine(report))
			(void)fputs("No error was found.\n", file);
		return print_finish(file);
	case CTR_GPU_FORMAT_JSON:
		files = print_array(
			i, report->file_count, ({
				const struct cdi_file *e = &report->files[i];
				const struct cdi_spec *spec = &e->spec;
				json_pack("{s:o, s:s, s:o, s:o, s:s, s:b, s:b, s:o, s:o}", "path",
					  print_string(e->path), "format", spec->is_yaml ? "yaml" : "json", "kind",
					  print_string(spec->kind), "cdiVersion", print_string(spec->version),
					  "neededVersion", cdi_versions[spec->needed], "loaded",
					  cdi_report_is_loaded(e), "ours", spec->is_ours, "devices",
					  cdi_report_devices_json(report, e), "findings", cdi_report_findings_json(e));
			}));
		return print_write_json(
			json_pack("{s:o, s:b}", "files", files, "fine", ctr_gpu_cdi_report_is_fine(report)), file);
	case CTR_GPU_FORMAT_CSV:
	case CTR_GPU_FORMAT_PATHS:
		break;
	}
	return -EINVAL;
}
