/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a file of containerd's: what is put in is there, and goes again, byte for byte; what cannot be put in is noticed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engines/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Return: whether the text says it then. */
static bool become(struct text_buffer *text, json_t *wanted)
{
	_cleanup_json_ json_t *now = NULL;
	struct text_buffer_error error;

	return toml_edit_write(text, wanted) == 0 && toml_parse_read(text, &now, &error) == 0 &&
	       json_equal(now, wanted);
}

static void check(struct text_buffer *text, json_t *before)
{
	_cleanup_json_ json_t *wanted = json_deep_copy(before);
	json_t *p = json_object_get(wanted, "p"), *table = json_object_get(p, "c.d");

	if ((p && !json_is_object(p)) || (table && !json_is_object(table)))
		return;
	if (!p && json_object_set_new(wanted, "p", p = json_object()) < 0)
		abort();
	if (!table && json_object_set_new(p, "c.d", table = json_object()) < 0)
		abort();
	if (json_object_set_new(p, "e", json_true()) < 0 ||
	    json_object_set_new(table, "n", json_pack("{s:s}", "b", "/r")) < 0)
		abort();
	/* Below a table without a header, as {}, it has no place. */
	if (become(text, wanted) && !become(text, wanted))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_text_buffer_ struct text_buffer text = {0}, before = {0};
	struct text_buffer_error error = {0};
	_cleanup_json_ json_t *json = NULL;

	if (text_buffer_set(&text, (const char *)data, size) < 0)
		return 0;
	/* The author's text, without what was marked. */
	(void)toml_edit_undo(&text, TOML_EDIT_RESTORE);
	if (!text.data || text_buffer_set(&before, text.data, text.size) < 0)
		return 0;
	if (toml_parse_read(&text, &json, &error) == 0)
		check(&text, json);
	else if (!error.reason[0] || !error.line)
		abort();
	(void)toml_edit_undo(&text, TOML_EDIT_RESTORE);
	if (!memmem(before.data, before.size, "ctr-gpu setup", 13) && !text_buffer_is_same(&text, &before))
		abort();
	return 0;
}
