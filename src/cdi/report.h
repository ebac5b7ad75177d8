/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_cdi_report: specs that were read, and what is to be said of each. */

#include "cdi/cdi.h"
#include "cdi/spec.h"

enum cdi_severity {
	CDI_ERROR,   /* it does not work, or is dangerous */
	CDI_WARNING, /* it works, and could be better */
	CDI_NOTE,    /* what was not looked at, or where there is nothing to do */
};

struct cdi_finding {
	enum cdi_severity severity;
	char *text; /* a line */
};

struct cdi_file {
	char *path;
	int priority; /* of its directory */
	bool is_rest; /* stands for the files of a directory that were too many; the path is the directory's */
	bool denied;  /* the caller may not read it */
	struct cdi_spec spec;
	struct cdi_finding *findings;
	size_t finding_count;
};

struct ctr_gpu_cdi_report {
	struct ctr_gpu_context *context;
	struct cdi_file *files;
	size_t file_count;
	struct strv directories;
	int priority; /* of the directory read last */
	bool checked;
};

/** Whether engines load the file at all. */
bool cdi_report_is_loaded(const struct cdi_file *file);

/**
 * cdi_report_winner() - which file a device comes from
 * @ret_conflict: another file of the same priority that has it, so that engines know neither; NULL if there is none
 *
 * Return: the file whose device counts.
 */
const struct cdi_file *cdi_report_winner(const struct ctr_gpu_cdi_report *report, const char *kind, const char *name,
					 const struct cdi_file **ret_conflict);

/** cdi_generate() with the options that an old spec of ours shows. */
int cdi_generate_like(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const struct cdi_spec *old,
		      json_t **ret);

/* An engine and what its CDI library knows. */
struct cdi_engine {
	const char *name;
	int major, minor;
	int newest;         /* enum cdi_version; -1: it has no CDI */
	const char *remark; /* what must be done for it to read specs; NULL: nothing */
};

/** @text is "docker:28.2". Return: 0; CTR_GPU_E_BAD_ARGUMENT with @err set. */
int cdi_engine_parse(const char *text, struct cdi_engine *ret, struct err *err);
