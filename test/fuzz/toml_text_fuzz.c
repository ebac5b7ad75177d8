/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a file of containerd's: what is put in is there, and taking it out gives the same bytes. */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engines/toml_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TABLE "p/c.d/n"

static int put(struct text *text, json_t *journal)
{
	_cleanup_toml_edit_ struct toml_edit edit = {.text = text, .journal = journal};
	int r;

	r = toml_text_put(&edit, "p", "e", "true");
	if (r == 0)
		r = toml_text_put(&edit, TABLE, "b", "\"/r\"");
	return r == 0 ? toml_text_finish(&edit) : r;
}

static void expect(const struct text *text, const char *path, const char *value)
{
	char *got = NULL;

	if (toml_text_get(text, path, &got) < 0 || strcmp(got, value) != 0)
		abort();
	free(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_text_ struct text text = {0};
	struct text_error error = {0};
	json_t *journal = json_array();
	int r;

	if (text_set(&text, (const char *)data, size) == 0 && toml_text_check(&text, &error) == 0) {
		r = put(&text, journal);
		if (r == 0) {
			if (toml_text_check(&text, &error) < 0)
				abort();
			expect(&text, "p/e", "true");
			expect(&text, TABLE "/b", "\"/r\"");
		} else if (r != -ENOTDIR) {
			abort();
		}
		for (size_t i = json_array_size(journal); i-- > 0;)
			if (toml_text_undo(&text, json_array_get(journal, i)) != 0)
				abort();
		if (text.size != size || memcmp(text.data, data, size) != 0)
			abort();
	} else if (!error.reason[0] || !error.line) {
		abort();
	}
	json_decref(journal);
	return 0;
}
