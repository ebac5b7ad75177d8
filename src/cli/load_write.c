/* SPDX-License-Identifier: Apache-2.0 */

/* The steps that make a native host ready, for people and programs. */

#include <errno.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "base/print.h"
#include "cli/load.h"

static const struct {
	const char *text, *json;
} load_states[] = {
	[LOAD_MISSING] = {"to do", "missing"},
	[LOAD_THERE] = {"there", "there"},
	[LOAD_WRONG] = {"replace", "wrong"},
	[LOAD_DONE] = {"done", "done"},
};

static const char *const load_kinds[] = {
	[LOAD_MODULE] = "module", [LOAD_DIRECTORY] = "directory", [LOAD_NODE] = "node"};

static void load_write_step(const struct load_step *step, FILE *file)
{
	print_safe(file, "%-11s %s %s", load_states[step->state].text, load_kinds[step->kind], step->name);
	if (step->kind == LOAD_NODE)
		(void)fprintf(file, " (c %u:%u, mode %04o, owner %u:%u)", major(step->number), minor(step->number),
			      step->mode, step->uid, step->gid);
	if (step->found)
		print_safe(file, ", which was %s", step->found);
	(void)fputs("\n            ", file);
	print_write_text(step->reason, file);
	(void)fputc('\n', file);
}

static json_t *load_step_json(const struct load_step *step)
{
	json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:o}", "kind", load_kinds[step->kind], "state",
				 load_states[step->state].json, "name", print_string(step->name), "reason",
				 print_string(step->reason), "found", print_string(step->found));
	char mode[16];

	(void)snprintf(mode, sizeof(mode), "%04o", step->mode);
	if (json && step->kind == LOAD_NODE &&
	    json_object_update_new(json,
				   json_pack("{s:I, s:I, s:s, s:I, s:I}", "major", (json_int_t)major(step->number),
					     "minor", (json_int_t)minor(step->number), "mode", mode, "uid",
					     (json_int_t)step->uid, "gid", (json_int_t)step->gid)) < 0)
		return json_decref(json), NULL;
	return json;
}

int load_write(const struct load *load, enum ctr_gpu_format format, FILE *file)
{
	switch (format) {
	case CTR_GPU_FORMAT_TEXT:
		for (size_t i = 0; i < load->count; i++)
			load_write_step(&load->steps[i], file);
		for (size_t i = 0; i < load->remarks.count; i++) {
			(void)fputs("remark      ", file);
			print_write_text(load->remarks.items[i], file);
			(void)fputc('\n', file);
		}
		return print_finish(file);
	case CTR_GPU_FORMAT_JSON:
		return print_write_json(json_pack("{s:o, s:o}", "steps",
						  print_array(i, load->count, load_step_json(&load->steps[i])),
						  "remarks", print_strings(&load->remarks)),
					file);
	case CTR_GPU_FORMAT_CSV:
	case CTR_GPU_FORMAT_PATHS:
		break;
	}
	return -EINVAL;
}
