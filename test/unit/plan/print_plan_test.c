/* SPDX-License-Identifier: Apache-2.0 */

/* A plan whose paths somebody chose who wants to be obeyed by a terminal, or to have a line of his own in a list. */

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctr-gpu.h"
#include "plan/plan.h"

#define HOSTILE "/a\033[2J\n/etc/shadow\302\233\377"
#define SHOWN "/a?[2J?/etc/shadow???"

static char hostile[] = HOSTILE, name[] = HOSTILE;
static char *names[] = {name};

static const struct ctr_gpu_plan plan = {
	.data = {.devices = &(struct plan_device){.path = hostile, .access = "rw", .reason = hostile},
		 .device_count = 1,
		 .mounts =
			 &(struct plan_mount){.source = hostile, .target = name, .directory = true, .reason = hostile},
		 .mount_count = 1,
		 .symlinks = &(struct plan_symlink){.path = hostile, .points_to = hostile, .reason = hostile},
		 .symlink_count = 1,
		 .files = &(struct plan_file){.target = hostile, .content = hostile, .reason = hostile},
		 .file_count = 1,
		 .hidden = &(struct plan_hidden){.path = hostile, .reason = hostile},
		 .hidden_count = 1,
		 .modes = &(struct plan_mode){.path = hostile, .reason = hostile},
		 .mode_count = 1,
		 .env = &(struct plan_env){.name = name, .value = hostile, .reason = hostile},
		 .env_count = 1,
		 .library_dirs =
			 &(struct plan_library_dir){.path = hostile, .libraries = {names, 1}, .reason = hostile},
		 .library_dir_count = 1,
		 .override = &(struct plan_override){.path = hostile, .by = hostile, .reason = hostile},
		 .override_count = 1,
		 .grants = &(struct plan_grant){.uuid = hostile, .name = hostile, .reason = hostile},
		 .grant_count = 1,
		 .adapters = {names, 1},
		 .warnings = {names, 1}},
};

/* Return: owned by the caller. */
static char *write_plan(enum ctr_gpu_format format, unsigned kinds)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	assert_int_equal(kinds ? ctr_gpu_plan_write_files(&plan, kinds, file) : ctr_gpu_plan_write(&plan, format, file),
			 0);
	assert_int_equal(fclose(file), 0);
	return text;
}

/* Lines and text. */
static void assert_harmless(const char *text)
{
	for (; *text; text++)
		assert_true(*text == '\n' || (*text >= ' ' && *text < 0x7f));
}

static void paths_are_one_line_each(void **state)
{
	_cleanup_free_ char *paths = write_plan(CTR_GPU_FORMAT_PATHS, 0),
			    *files = write_plan(CTR_GPU_FORMAT_PATHS, CTR_GPU_FILES_DEVICES | CTR_GPU_FILES_LIBRARIES);

	(void)state;
	assert_string_equal(paths, SHOWN "\n" SHOWN "\n");
	assert_string_equal(files, SHOWN "\n" SHOWN "/" SHOWN "\n");
}

static void text_has_no_line_of_theirs(void **state)
{
	_cleanup_free_ char *text = write_plan(CTR_GPU_FORMAT_TEXT, 0);

	(void)state;
	assert_harmless(text);
	assert_null(strstr(text, "\n/etc"));
	assert_non_null(strstr(text, "mount       " SHOWN));
	assert_non_null(strstr(text, "outranked   " SHOWN " by " SHOWN));
}

/* It would be refused for want of memory otherwise. */
static void json_takes_what_is_not_utf8(void **state)
{
	_cleanup_free_ char *json = write_plan(CTR_GPU_FORMAT_JSON, 0);

	(void)state;
	assert_harmless(json);
	assert_non_null(strstr(json, "\"source\": \"" SHOWN "\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_one_line_each),
		cmocka_unit_test(text_has_no_line_of_theirs),
		cmocka_unit_test(json_takes_what_is_not_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
