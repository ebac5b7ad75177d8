/* SPDX-License-Identifier: Apache-2.0 */

/* What an image may have where ours is looked for: the loader's drop-ins, and musl's path file. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ldcache/ldcache.h"
#include "ldcache/loader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char front_item[] = "/usr/lib/wsl/lib", behind_item[] = "/usr/lib/ctr-gpu", *front_items[] = {front_item},
	    *behind_items[] = {behind_item};
static const struct strv front = {.items = front_items, .count = 1}, behind = {.items = behind_items, .count = 1};

/* Written once more, it stays as it is. */
static void check_musl(const char *text)
{
	_cleanup_free_ char *once = NULL, *twice = NULL;

	if (ldcache_musl_path(text, &front, &behind, &once) < 0 || ldcache_musl_path(once, &front, &behind, &twice) < 0)
		abort();
	if (!strstr(once, front_item) || strcmp(once, twice) != 0)
		abort();
}

/* What was added is found. */
static void check_include(const char *text)
{
	_cleanup_free_ char *once = NULL, *twice = NULL;

	if (loader_conf_include(text, &once) < 0 || (once && loader_conf_include(once, &twice) < 0) || twice)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	_cleanup_strv_ struct strv directories = {0};

	if (!text || loader_conf_parse(text, &directories) < 0 || directories.count > 100)
		abort();
	for (size_t i = 0; i < directories.count; i++)
		if (directories.items[i][0] != '/')
			abort();
	check_musl(text);
	check_include(text);
	return 0;
}
