/* SPDX-License-Identifier: Apache-2.0 */

#include "command_line.h"

#include "plain.h"

/*
 * Options with a value: runc 1.0 to 1.4 (main.go, create.go, run.go), crun 1.0 to 1.20 (crun.c, create.c, run.c). Each
 * list ends with "". They are no pointers, since this may run before there are relocations.
 */
typedef const char command_line_option[16];
static command_line_option global_options[] = {"log",  "log-format", "log-level",      "root",
					       "criu", "rootless",   "cgroup-manager", ""};
static command_line_option create_options[] = {
	"bundle", "b", "config", "f", "console-socket", "pid-file", "pidfd-socket", "preserve-fds", ""};

struct option_word {
	const char *name; /* NULL: no option */
	size_t length;
	const char *value;
};

static bool command_line_word_is(const struct option_word *word, const char *name)
{
	return word->name && plain_is(word->name, word->length, name);
}

static bool command_line_takes_value(const struct option_word *word, command_line_option *options)
{
	for (; **options; options++)
		if (command_line_word_is(word, *options))
			return true;
	return false;
}

/* An option with its value, or an argument. Both runtimes take "--name value" and "--name=value", runc one dash too. */
static char *const *command_line_next_word(char *const *words, command_line_option *options, struct option_word *ret)
{
	const char *text = *words++;
	bool equals;

	*ret = (struct option_word){0};
	if (text[0] != '-' || text[1] == '\0')
		return words;
	ret->name = text + 1 + (text[1] == '-');
	while (ret->name[ret->length] && ret->name[ret->length] != '=')
		ret->length++;
	equals = ret->name[ret->length] == '=';
	if (!command_line_takes_value(ret, options))
		return words;
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
			ret->log_json = word.value && plain_same(word.value, "json");
	}
	ret->creates = ret->command && (plain_same(ret->command, "create") || plain_same(ret->command, "run"));
	/* Both find options behind the container's name, too. */
	while (ret->creates && *words && !plain_same(*words, "--")) {
		words = command_line_next_word(words, create_options, &word);
		if (command_line_word_is(&word, "bundle") || command_line_word_is(&word, "b"))
			ret->bundle = word.value;
		else if (command_line_word_is(&word, "config") || command_line_word_is(&word, "f"))
			ret->config = word.value;
	}
}
