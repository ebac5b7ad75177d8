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

static int cdi_report_read_file(struct ctr_gpu_cdi_report *report, char *path)
{
	struct cdi_file *files = path ? array_grow(report->files, report->file_count, sizeof(*files)) : NULL, *file;
	_cleanup_free_ char *data = NULL;
	size_t size;
	int r;

	if (!files) {
		free(path);
		return -ENOMEM;
	}
	report->files = files;
	file = &files[report->file_count++];
	*file = (struct cdi_file){.path = path, .priority = report->priority};
	r = fd_read_untrusted_at(AT_FDCWD, file->path, CDI_FILE_MAX, &data, &size);
	if (r == -EFBIG)
		return cdi_schema_problem(&file->spec, "it has more than %d MiB; no real one has", CDI_FILE_MAX >> 20);
	if (r == -EINVAL)
		return cdi_schema_problem(&file->spec, "it is not a regular file");
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return cdi_schema_problem(&file->spec, "it cannot be read: %s", strerror(-r));
	return cdi_spec_parse(file->path, data, size, &file->spec);
}

int ctr_gpu_cdi_report_read_file(struct ctr_gpu_cdi_report *report, const char *path)
{
	return cdi_report_read_file(report, strdup(path));
}

int ctr_gpu_cdi_report_read_directory(struct ctr_gpu_cdi_report *report, const char *path)
{
	_cleanup_strv_ struct strv names = {0};
	_cleanup_dir_ DIR *stream = NULL;
	const struct dirent *entry;
	bool is_yaml;
	int r = strv_add(&report->directories, path);

	report->priority++;
	if (r < 0)
		return r;
	stream = opendir(path);
	if (!stream && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!stream)
		return err_set(&report->context->err, -errno,
			       "cannot read the directory %s: %m\nCheck its permissions.", path);
	while (r == 0 && names.count < CDI_FILES_MAX && (entry = readdir(stream)))
		if (entry->d_type != DT_DIR && cdi_spec_has_name(entry->d_name, &is_yaml))
			r = strv_add(&names, entry->d_name);
	strv_sort(&names);
	for (size_t i = 0; i < names.count && r == 0; i++) {
		char *file = NULL;

		r = str_format(&file, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", names.items[i]);
		if (r == 0)
			r = cdi_report_read_file(report, file);
	}
	return r;
}

/* ---- what engines make of it ---- */

bool cdi_report_is_loaded(const struct cdi_file *file)
{
	return file->spec.problems.count == 0;
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

		if (!cdi_report_is_loaded(file))
			return false;
		for (size_t j = 0; j < file->finding_count; j++)
			if (file->findings[j].severity == CDI_ERROR)
				return false;
	}
	return report->file_count > 0;
}
