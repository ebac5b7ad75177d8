/* SPDX-License-Identifier: Apache-2.0 */

/* The OCI state and config.json, as any bytes; and what becomes of the latter when a plan is written into it, twice. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "oci/edit.h"
#include "oci/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct plan_device device = {.path = (char[]){"/dev/dxg"}, .number = 0xa7d, .access = "rw"};
static struct plan_mount mount = {.source = (char[]){"/s"}, .target = (char[]){"/t"}};
static struct plan_env variable = {.name = (char[]){"A"}, .value = (char[]){"b"}};
static const struct plan plan = {
	.devices = &device, .device_count = 1, .mounts = &mount, .mount_count = 1, .env = &variable, .env_count = 1};

/* Return: what is written after an edit, for free(3); NULL if it is refused. @gives: as of struct oci_edit_hook. */
static char *edit(const char *text, size_t size, bool gives)
{
	const struct stat node = {.st_mode = S_IFCHR | 0666};
	_cleanup_json_ json_t *config = NULL;
	struct err err = {0};
	char *written = NULL;

	if (oci_load_config(text, size, &config, &err) == 0 && oci_edit_apply(config, &plan, &node, &err) == 0 &&
	    oci_edit_set_hooks(config, &(struct oci_edit_hook){"/bin/ctr-gpu-hook", gives, 120}, &err) == 0 &&
	    oci_print_config(config, text, &written) < 0)
		abort();
	if (!written && !err.text[0])
		abort();
	return written;
}

/* What is left aside is in its place again. */
static void check_whole(const char *data, size_t size)
{
	_cleanup_json_ json_t *config = NULL, *whole = NULL, *again = NULL;
	_cleanup_free_ char *text = NULL;
	struct err err = {0};

	if (json_parse_to_print(data, size, &whole, NULL) < 0)
		return;
	if (oci_load_config(data, size, &config, &err) != 0 || oci_print_config(config, data, &text) < 0 ||
	    json_parse_to_print(text, strlen(text), &again, NULL) < 0 || !json_equal(whole, again))
		abort();
}

static void check_edits(const char *data, size_t size)
{
	_cleanup_free_ char *once = NULL, *twice = NULL;

	/* The fuzzer sees what strings are compared with, and so learns the random number that only we know (json_mark.h). */
	if (memmem(data, size, "\\u0001", strlen("\\u0001")) || memmem(data, size, "\\u0002", strlen("\\u0002")))
		return;
	check_whole(data, size);
	once = edit(data, size, size % 2);
	if (!once)
		return;
	twice = edit(once, strlen(once), size % 2);
	if (!twice || strcmp(once, twice) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct oci_state state = {0};
	struct oci_config config = {0};
	struct err err = {0};

	if (oci_parse_state((const char *)data, size, &state, &err) == 0) {
		if (state.pid <= 0 || state.bundle[0] != '/')
			abort();
		oci_state_clear(&state);
	} else if (!err.text[0]) {
		abort();
	}
	err = (struct err){0};
	if (oci_parse_config((const char *)data, size, &config, &err) == 0) {
		if (!config.root[0])
			abort();
		oci_config_clear(&config);
		check_edits((const char *)data, size);
	} else if (!err.text[0]) {
		abort();
	}
	return 0;
}
