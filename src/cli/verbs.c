/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/str.h"
#include "cli/output.h"

enum { NAME_MAX_LENGTH = 64, VERB_TEXT_MAX = 32, VERB_COLUMN = 20 };

/* What stands before the command's name, and where the command begins. */
struct line {
	struct global_options *globals;
	const struct verb *table;
	int verb; /* index in argv */
};

const struct verb *verb_find(const struct verb *table, const char *name)
{
	for (; table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

/* argp sorts its own lists; this one keeps the table's order, by first use. */
char *verb_help_filter(int key, const char *text, void *input)
{
	const struct line *line = input;
	int column = VERB_COLUMN;
	struct memstream stream;
	char usage[VERB_TEXT_MAX], *list;
	FILE *file;

	if (key != ARGP_KEY_HELP_PRE_DOC || !line)
		return (char *)text;
	file = memstream_open(&stream);
	if (!file)
		return (char *)text;
	for (const struct verb *verb = line->table; verb->name; verb++) {
		int width = (int)(strlen(verb->name) + strlen(verb->arguments)) + 1;

		if (verb->summary && width > column)
			column = width;
	}
	(void)fputs(text, file);
	(void)fputs("\n\nCommands:\n", file);
	for (const struct verb *verb = line->table; verb->name; verb++) {
		if (!verb->summary)
			continue;
		(void)snprintf(usage, sizeof(usage), "%s%s", verb->name, verb->arguments);
		print_safe(file, "  %-*s %s\n", column, usage, verb->summary);
	}
	return memstream_close(&stream, &list, NULL) == 0 ? list : (char *)text;
}

error_t verb_parse(int key, char *argument, struct argp_state *state)
{
	struct line *line = state->input;

	(void)argument;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = line->globals;
		return 0;
	case ARGP_KEY_ARG:
		line->verb = state->next - 1;
		state->next = state->argc; /* the rest is the command's */
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_state_help(state, stderr, ARGP_HELP_STD_HELP & ~(unsigned)ARGP_HELP_EXIT_OK);
		exit(EXIT_STATUS_USAGE);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int verb_run(const struct argp *argp, const struct verb *table, const char *program, struct global_options *globals,
	     int argc, char **argv)
{
	struct line line = {.globals = globals, .table = table};
	char name[NAME_MAX_LENGTH];
	const struct verb *verb;
	error_t error;

	error = argp_parse(argp, argc, argv, ARGP_IN_ORDER, NULL, &line);
	if (error) {
		errno = error;
		return output_print("cannot read the command line: %m");
	}
	verb = verb_find(table, argv[line.verb]);
	if (!verb) {
		suggest_verb(table, program, argv[line.verb]);
		return EXIT_STATUS_USAGE;
	}
	/* argp and getopt name the program by its zeroth argument. */
	(void)snprintf(name, sizeof(name), "%s %s", program, verb->name);
	argv[line.verb] = name;
	return verb->run(globals, argc - line.verb, argv + line.verb);
}

/* ---- suggest ---- */

enum {
	OPTION_LENGTH_MAX = 24, /* no name is longer */
	VERBS_MAX = 32,
	OPTIONS_MAX = 96,
};

void suggest_verb(const struct verb *table, const char *program, const char *name)
{
	char suggestion[SUGGESTION_SIZE];
	const char *names[VERBS_MAX];
	size_t count = 0;

	for (; count < VERBS_MAX && table->name; table++)
		if (table->summary)
			names[count++] = table->name;
	if (*str_suggest(names, count, name, suggestion))
		(void)fprintf(stderr, "%s: unknown command '%s'%s\n", program, name, suggestion);
	else
		(void)fprintf(stderr, "%s: unknown command '%s'; '%s --help' lists them\n", program, name, program);
}

/* ---- options ---- */

struct suggest_list {
	const struct argp_option *items[OPTIONS_MAX];
	size_t count;
};

static void suggest_collect(const struct argp *argp, struct suggest_list *list)
{
	for (const struct argp_option *option = argp->options;
	     option && (option->name || option->key || option->doc || option->group); option++)
		if (list->count < OPTIONS_MAX)
			list->items[list->count++] = option;
	for (const struct argp_child *child = argp->children; child && child->argp; child++)
		suggest_collect(child->argp, list);
}

/* Whether the next word is the value of this one, and no option. */
static bool suggest_takes_next(const struct suggest_list *list, const char *word)
{
	bool is_long = str_has_prefix(word, "--");

	for (size_t i = 0; i < list->count; i++) {
		const struct argp_option *option = list->items[i];

		if (option->arg && !(option->flags & OPTION_ARG_OPTIONAL) &&
		    (is_long ? option->name && streq(option->name, word + 2)
			     : word[0] == '-' && word[1] == option->key && !word[2]))
			return true;
	}
	return false;
}

static void suggest_check_option(const struct suggest_list *list, const char *program, const char *word)
{
	static const char *const own[] = {"help", "usage", "version"};
	const char *names[OPTIONS_MAX + ARRAY_SIZE(own)], *nearest;
	char name[OPTION_LENGTH_MAX + 1];
	size_t count = 0;

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		names[count++] = own[i];
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->name)
			names[count++] = list->items[i]->name;
	/* getopt_long(3) takes a beginning for the whole, and says itself where it may be several. */
	for (size_t i = 0; i < count; i++)
		if (strncmp(names[i], name, strlen(name)) == 0)
			return;
	nearest = str_nearest(names, count, name);
	if (!nearest)
		return;
	(void)fprintf(stderr, "%s: unrecognized option '--%s'; did you mean '--%s'?\n", program, name, nearest);
	exit(EXIT_STATUS_USAGE);
}

void suggest_option(const struct argp *argp, const char *program, int argc, char *const *argv)
{
	struct suggest_list list = {.count = 0};

	suggest_collect(argp, &list);
	for (int i = 1; i < argc && !streq(argv[i], "--"); i++) {
		if (str_has_prefix(argv[i], "--"))
			suggest_check_option(&list, program, argv[i] + 2);
		i += suggest_takes_next(&list, argv[i]);
	}
}
