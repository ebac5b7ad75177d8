/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a file of Docker's: what is put in is there, and taking it out gives the same bytes. */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/setup/json_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(struct text *text, const char *path, const json_t *value, json_t *journal)
{
	json_t *got = NULL;
	int r;

	r = json_text_put(text, path, value, journal);
	if (r == -ENOTDIR)
		return;
	if (r < 0 || json_text_get(text, path, &got) < 0 || !json_equal(got, value))
		abort();
	json_decref(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_text_ struct text text = {0};
	struct text_error error = {0};
	json_t *journal = json_array(), *runtime = json_pack("{s:s}", "path", "/r"), *on = json_true();

	if (text_set(&text, (const char *)data, size) == 0 && json_text_check(&text, &error) == 0) {
		put(&text, "runtimes/nvidia", runtime, journal);
		put(&text, "features/cdi", on, journal);
		if (json_text_check(&text, &error) < 0)
			abort();
		for (size_t i = json_array_size(journal); i-- > 0;)
			if (json_text_undo(&text, json_array_get(journal, i)) != 0)
				abort();
		if (text.size != size || memcmp(text.data, data, size) != 0)
			abort();
	} else if (!error.reason[0] || !error.line) {
		abort();
	}
	json_decref(journal);
	json_decref(runtime);
	return 0;
}
