/* SPDX-License-Identifier: Apache-2.0 */

#include "cdi/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/print.h"
#include "ctr-gpu.h"

/* A reader needs no more than these. */
enum { FINDINGS_MAX = 64 };

int ctr_gpu_cdi_report_new(struct ctr_gpu_context *context, struct ctr_gpu_cdi_report **ret_report)
{
	struct ctr_gpu_cdi_report *report = calloc(1, sizeof(*report));

	if (!report)
		return -ENOMEM;
	report->context = context;
	*ret_report = report;
	return 0;
}

struct ctr_gpu_cdi_report *ctr_gpu_cdi_report_unref(struct ctr_gpu_cdi_report *report)
{
	if (!report)
		return NULL;
	for (size_t i = 0; i < report->file_count; i++) {
		struct cdi_file *file = &report->files[i];

		for (size_t j = 0; j < file->finding_count; j++)
			free(file->findings[j].text);
		free(file->findings);
		free(file->path);
		cdi_spec_clear(&file->spec);
	}
	free(report->files);
	strv_clear(&report->directories);
	free(report);
	return NULL;
}

int cdi_report_find(struct cdi_file *file, enum cdi_severity severity, const char *format, ...)
{
	struct cdi_finding *findings;
	struct err text = {0};
	va_list arguments;

	if (file->finding_count >= FINDINGS_MAX)
		return 0;
	findings = array_grow(file->findings, file->finding_count, sizeof(*findings));
	if (!findings)
		return -ENOMEM;
	file->findings = findings;
	va_start(arguments, format);
	(void)vsnprintf(text.text, sizeof(text.text), format, arguments);
	va_end(arguments);
	findings[file->finding_count] = (struct cdi_finding){severity, strdup(text.text)};
	return findings[file->finding_count].text ? (file->finding_count++, 0) : -ENOMEM;
}

/* ---- reading ---- */

/* @path: taken. Return: the file, borrowed; NULL without memory. */
static struct cdi_file *cdi_report_add_file(struct ctr_gpu_cdi_report *report, char *path)
{
	struct cdi_file *files = path ? array_grow(report->files, report->file_count, sizeof(*files)) : NULL;

	if (!files) {
		free(path);
		return NULL;
	}
	report->files = files;
	files[report->file_count] = (struct cdi_file){.path = path, .priority = report->priority};
	return &files[report->file_count++];
}

static int cdi_report_read_file(struct ctr_gpu_cdi_report *report, char *path)
{
	struct cdi_file *file = cdi_report_add_file(report, path);
	_cleanup_free_ char *data = NULL;
	size_t size;
	int r;

	if (!file)
		return -ENOMEM;
	r = fd_read_untrusted_at(AT_FDCWD, file->path, CDI_FILE_MAX, &data, &size);
	if (r == -EFBIG)
		return cdi_schema_problem(&file->spec, "it has more than %d MiB; no real one has", CDI_FILE_MAX >> 20);
	if (r == -EINVAL)
		return cdi_schema_problem(&file->spec, "it is not a regular file");
	if (r == -ENOMEM)
		return r;
	file->denied = r == -EACCES || r == -EPERM;
	if (r < 0)
		return cdi_schema_problem(&file->spec, "it cannot be read: %s", strerror(-r));
	return cdi_spec_parse(file->path, data, size, &file->spec);
}

int ctr_gpu_cdi_report_read_file(struct ctr_gpu_cdi_report *report, const char *path)
{
	return cdi_report_read_file(report, strdup(path));
}

/* The names of specs; ours are always among them. @ret_more: whether there are more of others' than are looked at */
static int cdi_report_list_names(DIR *stream, struct strv *ret, bool *ret_more)
{
	const struct dirent *entry;
	size_t others = 0;
	bool is_yaml;
	int r = 0;

	*ret_more = false;
	while (r == 0 && (entry = readdir(stream))) {
		if (entry->d_type == DT_DIR || !cdi_spec_has_name(entry->d_name, &is_yaml))
			continue;
		if (!str_has_prefix(entry->d_name, CDI_FILE_PREFIX) && ++others > CDI_FILES_MAX)
			*ret_more = true;
		else
			r = strv_add(ret, entry->d_name);
	}
	strv_sort(ret);
	return r;
}

static int cdi_report_tell_of_more(struct ctr_gpu_cdi_report *report, const char *directory)
{
	struct cdi_file *rest = cdi_report_add_file(report, strdup(directory));

	if (!rest)
		return -ENOMEM;
	rest->is_rest = true;
	return cdi_report_find(rest, CDI_WARNING, "it has more than %d specs, and the others were not looked at",
			       CDI_FILES_MAX);
}

int ctr_gpu_cdi_report_read_directory(struct ctr_gpu_cdi_report *report, const char *path)
{
	_cleanup_strv_ struct strv names = {0};
	_cleanup_dir_ DIR *stream = NULL;
	bool more;
	int r = strv_add(&report->directories, path);

	report->priority++;
	if (r < 0)
		return r;
	stream = opendir(path);
	if (!stream && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!stream)
		return err_set_advised(&report->context->err, -errno, ("cannot read the directory %s: %m", path),
				       ("Check its permissions."));
	r = cdi_report_list_names(stream, &names, &more);
	for (size_t i = 0; i < names.count && r == 0; i++) {
		char *file = NULL;

		r = str_format(&file, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", names.items[i]);
		if (r == 0)
			r = cdi_report_read_file(report, file);
	}
	return r == 0 && more ? cdi_report_tell_of_more(report, path) : r;
}

/* ---- what engines make of it ---- */

bool cdi_report_is_loaded(const struct cdi_file *file)
{
	return file->spec.problems.count == 0 && !file->is_rest;
}

const struct cdi_file *cdi_report_winner(const struct ctr_gpu_cdi_report *report, const char *kind, const char *name,
					 const struct cdi_file **ret_conflict)
{
	const struct cdi_file *winner = NULL;

	*ret_conflict = NULL;
	for (size_t i = 0; i < report->file_count; i++) {
		const struct cdi_file *file = &report->files[i];

		size_t device = 0, count = file->spec.device_count;

		if ((winner && file->priority < winner->priority) || !cdi_report_is_loaded(file) || !file->spec.kind ||
		    !streq(file->spec.kind, kind))
			continue;
		while (device < count &&
		       !(file->spec.devices[device].name && streq(file->spec.devices[device].name, name)))
			device++;
		if (device == count)
			continue;
		*ret_conflict = winner && winner->priority == file->priority ? winner : NULL;
		winner = file;
	}
	return winner;
}

bool ctr_gpu_cdi_report_is_fine(const struct ctr_gpu_cdi_report *report)
{
	for (size_t i = 0; i < report->file_count; i++) {
		const struct cdi_file *file = &report->files[i];

		if (file->spec.problems.count)
			return false;
		for (size_t j = 0; j < file->finding_count; j++)
			if (file->findings[j].severity == CDI_ERROR)
				return false;
	}
	return report->file_count > 0;
}

/* ---- as text and JSON ---- */

/* A report, for people and programs. */

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
	for (size_t i = 0; i < report->directories.count; i++)
		if (streq(report->directories.items[i], PATH_CDI))
			(void)fputs("This writes one for the GPUs of this host: sudo ctr-gpu cdi generate\n", file);
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
