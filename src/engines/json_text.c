/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/json_text.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"

/* The parser says where, but takes no large numbers then, so they are rounded. */
static int json_text_refuse(const struct text *text, size_t start, char *reason, struct text_error *ret_error)
{
	json_error_t where;
	json_t *json = json_loadb(text->data + start, text->size - start,
				  JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &where);
	/* "… near 'TOKEN'" quotes the file, which may contain secrets. */
	char *quote = strstr(reason, " near ");

	if (quote)
		*quote = '\0';
	(void)text_refuse(text, start, reason, ret_error);
	if (!json && where.line > 0 && where.column > 0) {
		ret_error->line = (size_t)where.line;
		ret_error->column = (size_t)where.column;
	}
	json_decref(json);
	return -EINVAL;
}

int json_text_read(const struct text *text, json_t **ret, struct text_error *ret_error)
{
	size_t bom = text_bom(text), length = text->size ? strlen(text->data) : 0;
	size_t start = text->size ? bom + strspn(text->data + bom, " \t\r\n") : 0;
	char reason[JSON_ERROR_TEXT_LENGTH];
	_cleanup_json_ json_t *json = NULL;
	int r;

	/* The parser takes some of these for blanks. */
	if (length < text->size)
		return text_refuse(text, length, "a NUL character", ret_error);
	if (start == text->size) {
		*ret = json_object();
		return *ret ? 0 : -ENOMEM;
	}
	r = json_parse(text->data + bom, text->size - bom, &json, reason);
	if (r == -EINVAL)
		return json_text_refuse(text, bom, reason, ret_error);
	if (r == 0 && !json_is_object(json))
		return text_refuse(text, start, "an object is expected, {...}", ret_error);
	*ret = steal_ptr(json);
	return r;
}
