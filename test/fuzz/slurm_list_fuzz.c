/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The name of a node, and a list of Slurm's, with a newline between them. Without brackets a list has its items and no
 * other name; what another program could have a name for is found in time, however many ways there are to look for it.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "slurm/slurm_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether it is one of those that commas divide. */
static bool is_item(const char *list, const char *name)
{
	const size_t length = strlen(name);

	for (;; list++) {
		const size_t item = strcspn(list, ",");

		if (item == length && memcmp(list, name, length) == 0)
			return true;
		list += item;
		if (!*list)
			return false;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	char *list = text ? strchr(text, '\n') : NULL;
	bool found;

	if (!list)
		return 0;
	*list++ = '\0';
	found = slurm_list_has(list, text);
	if (!strchr(list, '[') && *list && *text && strlen(text) <= 64 && found != is_item(list, text))
		abort();
	return 0;
}
