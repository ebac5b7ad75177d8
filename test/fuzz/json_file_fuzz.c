/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a file of Docker's: what is put in is there, and everything else stays as it was. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engines/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct text_buffer *text, json_t *json)
{
	_cleanup_json_ json_t *after = NULL;
	struct text_buffer_error error;

	if (json_object_set_new(json, "runtimes", json_pack("{s:s}", "path", "/r")) < 0 ||
	    json_file_write(text, json) < 0 || json_file_read(text, &after, &error) < 0 || !json_equal(after, json))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_text_buffer_ struct text_buffer text = {0};
	struct text_buffer_error error = {0};
	_cleanup_json_ json_t *json = NULL;

	/* A fuzzer that watches comparisons learns the mark of large numbers (base/json.h), which nobody else can. */
	if (memmem(data, size, "\\u0001", 6))
		return 0;
	if (text_buffer_set(&text, (const char *)data, size) == 0 && json_file_read(&text, &json, &error) == 0)
		check(&text, json);
	else if (!error.reason[0] || !error.line)
		abort();
	return 0;
}
