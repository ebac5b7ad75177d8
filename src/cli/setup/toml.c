/* SPDX-License-Identifier: Apache-2.0 */

/* What the engines whose files are TOML have in common. */

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/config_file.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "engines/toml_text.h"

int setup_check_toml(const struct setup *setup, int r, const char *table)
{
	if (r == -ENOTDIR)
		return output_complain("%s: \"%s\" is written as an inline table or with dotted keys, to which no table can be added\n"
				       "    Write it as [tables] with headers, and try again.",
				       setup->path, table);
	return r < 0 ? output_complain("out of memory") : 0;
}

static int look_into(const struct setup *setup, const char *path, const char *key, char **ret_file)
{
	__attribute__((cleanup(config_file_close))) struct config_file file = {0};
	_cleanup_free_ char *ours = realpath(setup->path, NULL), *value = NULL;
	int status;

	status = config_file_read(path, &file);
	if (status)
		return status;
	if (!file.exists || strcmp(file.path, ours ? ours : setup->path) == 0)
		return 0;
	/* One that is not valid is the engine's to complain of. */
	if (!toml_text_mentions(&file.text, key) || (toml_text_get(&file.text, key, &value) == 0 && strstr(value, setup->runtime)))
		return 0;
	free(*ret_file);
	*ret_file = strdup(path);
	return *ret_file ? 0 : output_complain("out of memory");
}

int setup_find_elsewhere(const struct setup *setup, const char *pattern, const char *key, char **ret_file)
{
	glob_t found;
	int status = 0;

	if (glob(pattern, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc && !status; i++)
		status = look_into(setup, found.gl_pathv[i], key, ret_file);
	globfree(&found);
	return status;
}

/* Whether @other is in the same directory as @own, and sorted behind it. */
static bool is_read_later(const char *other, const char *own)
{
	const char *name = strrchr(other, '/'), *own_name = strrchr(own, '/');

	return name && own_name && name - other == own_name - own && strncmp(other, own, (size_t)(name - other)) == 0 &&
	       strcmp(name, own_name) > 0;
}

int setup_refuse_other(const struct setup *setup, const char *own, const char *other, const char *reader)
{
	if (is_read_later(other, own))
		return output_complain("%s has a runtime \"nvidia\" already, and %s reads it last\n    Remove that file, and try again.",
				       other, reader);
	if (setup->replace)
		return 0;
	return output_complain("%s has a runtime \"nvidia\" already\n    To let ours count instead, until --remove, add --replace.", other);
}

char *setup_quote_runtime(const struct setup *setup)
{
	_cleanup_json_ json_t *string = json_string(setup->runtime);

	/* JSON's strings are TOML's, too, but for the slash, which jansson leaves alone. */
	return string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
}
