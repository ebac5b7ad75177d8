/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a file of containerd's: what is put in is there, and the marked lines go again. */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/setup/toml_file.h"
#include "engines/toml_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TABLE "p/c.d/n"

static int put(struct text *text)
{
	_cleanup_toml_file_ struct toml_file file = {.text = text};
	int r;

	r = toml_file_put(&file, "p", "e", "true");
	if (r == 0)
		r = toml_file_put(&file, TABLE, "b", "\"/r\"");
	return r == 0 ? toml_file_finish(&file) : r;
}

static void expect(const struct text *text, const char *path, const char *value)
{
	_cleanup_free_ char *got = NULL;

	if (toml_text_get(text, path, &got) < 0 || strcmp(got, value) != 0)
		abort();
}

static void check(struct text *text)
{
	_cleanup_text_ struct text wrote = {0};
	struct text_error error;
	int r = put(text);

	if (r == -ENOTDIR)
		return;
	if (r < 0 || toml_text_check(text, &error) < 0 || text_set(&wrote, text->data, text->size) < 0)
		abort();
	expect(text, "p/e", "true");
	expect(text, TABLE "/b", "\"/r\"");
	if (toml_file_cut(text, &wrote) != 0 || toml_file_set(text, "p/e", NULL) < 0 || toml_file_set(text, TABLE "/b", NULL) < 0 ||
	    toml_text_check(text, &error) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_text_ struct text text = {0};
	struct text_error error = {0};

	if (text_set(&text, (const char *)data, size) == 0 && toml_text_check(&text, &error) == 0)
		check(&text);
	else if (!error.reason[0] || !error.line)
		abort();
	return 0;
}
