/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime.h"

#include <stddef.h>
#include <string.h>

/* Options with a value: runc 1.0 to 1.4 (main.go, create.go, run.go), crun 1.0 to 1.20 (crun.c, create.c, run.c). */
static const char *const global_options[] = {"log",  "log-format", "log-level",      "root",
					     "criu", "rootless",   "cgroup-manager", NULL};
static const char *const create_options[] = {
	"bundle", "b", "config", "f", "console-socket", "pid-file", "pidfd-socket", "preserve-fds", NULL};

struct option_word {
	const char *name; /* NULL: no option */
	size_t length;
	const char *value;
};

static bool command_line_word_is(const struct option_word *word, const char *name)
{
	return word->name && strlen(name) == word->length && memcmp(word->name, name, word->length) == 0;
}

static bool command_line_takes_value(const struct option_word *word, const char *const *options)
{
	for (; *options; options++)
		if (command_line_word_is(word, *options))
			return true;
	return false;
}

/* "-b/path", as crun takes it: an option of one letter, with its value behind it. */
static bool command_line_has_attached(const char *text, const char *const *options, struct option_word *ret)
{
	const struct option_word letter = {.name = text + 1, .length = 1, .value = text + 2};

	if (text[1] == '-' || !text[2] || !command_line_takes_value(&letter, options))
		return false;
	*ret = letter;
	return true;
}

/* An option with its value, or an argument. Both runtimes take "--name value" and "--name=value", runc one dash too. */
static char *const *command_line_next_word(char *const *words, const char *const *options, struct option_word *ret)
{
	const char *text = *words++;
	bool equals;

	*ret = (struct option_word){0};
	if (text[0] != '-' || text[1] == '\0')
		return words;
	ret->name = text + 1 + (text[1] == '-');
	ret->length = strcspn(ret->name, "=");
	equals = ret->name[ret->length] == '=';
	if (!command_line_takes_value(ret, options)) {
		(void)command_line_has_attached(text, options, ret);
		return words;
	}
	ret->value = equals ? ret->name + ret->length + 1 : *words;
	return words + (!equals && *words);
}

void command_line_read(char *const *words, struct command_line *ret)
{
	struct option_word word;

	*ret = (struct command_line){0};
	while (*words && !ret->command) {
		const char *text = *words;

		words = command_line_next_word(words, global_options, &word);
		if (!word.name)
			ret->command = text;
		else if (command_line_word_is(&word, "log"))
			ret->log = word.value;
		else if (command_line_word_is(&word, "log-format"))
			ret->log_json = word.value && strcmp(word.value, "json") == 0;
	}
	ret->creates = ret->command && (strcmp(ret->command, "create") == 0 || strcmp(ret->command, "run") == 0);
	/* Both find options behind the container's name, too. */
	while (ret->creates && *words && strcmp(*words, "--") != 0) {
		words = command_line_next_word(words, create_options, &word);
		if (command_line_word_is(&word, "bundle") || command_line_word_is(&word, "b"))
			ret->bundle = word.value;
		else if (command_line_word_is(&word, "config") || command_line_word_is(&word, "f"))
			ret->config = word.value;
	}
}
