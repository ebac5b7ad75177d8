/* SPDX-License-Identifier: Apache-2.0 */

/* The two kinds of files that engines have, and what those that are TOML have in common. */

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/setup/json_file.h"
#include "cli/setup/setup.h"
#include "cli/setup/toml_file.h"
#include "engines/toml_text.h"

const struct setup_format setup_json = {json_file_check, json_file_get, json_file_set, NULL};
const struct setup_format setup_toml = {toml_text_check, toml_text_get, toml_file_set, toml_file_cut};

int setup_check_toml(const struct setup *setup, int r, const char *table)
{
	if (r == -ENOTDIR)
		return output_complain(
			"%s: \"%s\" is written as an inline table or with dotted keys, to which no table can be added\n"
			"    Write it as [tables] with headers, and try again.",
			setup->path, table);
	return r < 0 ? output_no_memory() : 0;
}

static int format_look_into(const struct setup *setup, const char *path, const char *key, char **ret_file)
{
	_cleanup_config_file_ struct config_file file = {0};
	_cleanup_free_ char *ours = realpath(setup->path, NULL), *value = NULL;
	int r = config_file_read(path, &file);

	if (r || !file.exists || streq(file.path, ours ? ours : setup->path))
		return r;
	/* One that is not valid is the engine's to complain of. */
	if (!toml_text_mentions(&file.text, key) ||
	    (toml_text_get(&file.text, key, &value) == 0 && strstr(value, setup->runtime)))
		return 0;
	free(*ret_file);
	*ret_file = strdup(path);
	return *ret_file ? 0 : output_no_memory();
}

int setup_find_elsewhere(const struct setup *setup, const char *pattern, const char *key, char **ret_file)
{
	glob_t found;
	int r = 0;

	if (glob(pattern, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc && !r; i++)
		r = format_look_into(setup, found.gl_pathv[i], key, ret_file);
	globfree(&found);
	return r;
}

int setup_refuse_other(const struct setup *setup, const char *other)
{
	const char *name = strrchr(other, '/'), *own = strrchr(setup->path, '/');
	/* Of one directory, engines read what is sorted behind ours later. */
	bool later = name && own && name - other == own - setup->path &&
		     strncmp(other, setup->path, (size_t)(name - other)) == 0 && strcmp(name, own) > 0;

	if (later)
		return output_complain("%s has a runtime \"nvidia\" already, and %s reads it last\n"
				       "    Remove that file, and try again.",
				       other, setup->engine->facts->label);
	if (setup->replace)
		return 0;
	return output_complain(
		"%s has a runtime \"nvidia\" already\n    To let ours count instead, until --remove, add --replace.",
		other);
}

char *setup_quote_runtime(const struct setup *setup)
{
	_cleanup_json_ json_t *string = json_string(setup->runtime);

	/* JSON's strings are TOML's, too, but for the slash, which jansson leaves alone. */
	return string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
}
