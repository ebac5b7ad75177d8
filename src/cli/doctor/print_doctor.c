/* SPDX-License-Identifier: Apache-2.0 */

/* What was found, for a person's screen: the verdict, each engine's, and the findings, what is worst first. */

#include "cli/doctor/print_doctor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/print.h"
#include "cli/doctor/summary.h"

enum { COLUMNS = 100, INDENT = 20, HEADLINE_INDENT = 4 };

/* SGR of ECMA-48, by severity. */
static const char *const colours[SEVERITIES] = {
	[SEVERITY_OK] = "32",
	[SEVERITY_NOTE] = "36",
	[SEVERITY_WARNING] = "33",
	[SEVERITY_PROBLEM] = "1;31",
};

struct doctor_printer {
	FILE *file;
	bool colour;
};

/* @sgr: "" ends a colour */
static void print_doctor_set_colour(const struct doctor_printer *screen, const char *sgr)
{
	if (screen->colour)
		(void)fprintf(screen->file, "\033[%sm", sgr);
}

/* Text from @column on, in lines that are no longer than a screen, the further ones indented. */
static void print_doctor_write_wrapped(const struct doctor_printer *screen, const char *text, size_t column,
				       size_t indent)
{
	while (*text) {
		size_t length = strcspn(text, " "), blanks = strspn(text + length, " ");
		_cleanup_free_ char *word = strndup(text, length);

		print_write_text(word ? word : "", screen->file);
		column += length + blanks;
		text += length + blanks;
		if (blanks == 0 || !*text)
			continue;
		if (column + strcspn(text, " ") > COLUMNS) {
			(void)fprintf(screen->file, "\n%*s", (int)indent, "");
			column = indent;
		} else {
			(void)fprintf(screen->file, "%*s", (int)blanks, "");
		}
	}
	(void)fputc('\n', screen->file);
}

static void print_doctor_write_line(const struct doctor_printer *screen, enum severity severity, const char *id,
				    const char *text, const char *remedy)
{
	print_doctor_set_colour(screen, colours[severity]);
	(void)fprintf(screen->file, "%-8s", severity_names[severity]);
	print_doctor_set_colour(screen, "");
	(void)fprintf(screen->file, " %-10.*s ", (int)strcspn(id, "."), id);
	print_doctor_write_wrapped(screen, text, INDENT, INDENT);
	if (!remedy)
		return;
	(void)fprintf(screen->file, "%*s> ", INDENT, "");
	print_doctor_write_wrapped(screen, remedy, INDENT + 2, INDENT);
}

/* Whether the verdict on some engine gives it as a reason. */
static bool print_doctor_is_printed(const struct findings *findings, const struct finding *finding)
{
	for (size_t i = 0; i < findings->engine_count; i++) {
		struct summary verdict = summary_make(findings, &findings->engines[i]);

		for (enum method method = 0; method < METHODS; method++)
			if (verdict.closed_by[method] == finding)
				return true;
	}
	return false;
}

static void print_doctor_write_findings(const struct doctor_printer *screen, const struct findings *findings,
					enum severity severity)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		/* If a door is closed for another reason, it is not said that it is not set up. */
		if (finding->severity != severity || (finding->engine && severity <= SEVERITY_NOTE) ||
		    print_doctor_is_printed(findings, finding))
			continue;
		print_doctor_write_line(screen, severity, finding->id, finding->text,
					severity >= SEVERITY_WARNING ? finding->remedy : NULL);
	}
}

static void print_doctor_write_verdicts(const struct doctor_printer *screen, const struct findings *findings,
					enum severity severity)
{
	for (size_t i = 0; i < findings->engine_count; i++) {
		const struct host_engine *engine = &findings->engines[i];
		struct summary verdict = summary_make(findings, engine);
		_cleanup_free_ char *text = summary_text(findings, &verdict), *line = NULL;

		if (verdict.severity == severity && text &&
		    str_format(&line, "%s%s: %s", engine->label, engine->state, text) == 0)
			print_doctor_write_line(screen, severity, engine->id, line, summary_remedy(&verdict));
	}
}

/* " with Docker, Podman and containerd", or ", not with LXC". */
static void print_doctor_write_engines(const struct doctor_printer *screen, const struct findings *findings, bool works)
{
	size_t left = 0;

	for (size_t i = 0; i < findings->engine_count; i++)
		left += summary_make(findings, &findings->engines[i]).works == works;
	if (left > 0)
		(void)fputs(works ? " with " : ", not with ", screen->file);
	for (size_t i = 0; i < findings->engine_count; i++) {
		if (summary_make(findings, &findings->engines[i]).works != works)
			continue;
		left--;
		(void)fprintf(screen->file, "%s%s", findings->engines[i].label,
			      left > 1    ? ", "
			      : left == 0 ? ""
			      : works     ? " and "
					  : " or ");
	}
}

/* "A GPU container would work here with Docker, not with Podman." */
static void print_doctor_write_headline(const struct doctor_printer *screen, const struct findings *findings)
{
	static const char no[] = "A GPU container would not work here. First: ";
	const struct finding *first = summary_first(findings);

	print_doctor_set_colour(screen, colours[first ? SEVERITY_PROBLEM : SEVERITY_OK]);
	(void)fputs(first ? no : "A GPU container would work here", screen->file);
	if (!first) {
		print_doctor_write_engines(screen, findings, true);
		print_doctor_write_engines(screen, findings, false);
	}
	(void)fputs(first ? "" : ".", screen->file);
	print_doctor_set_colour(screen, "");
	print_doctor_write_wrapped(screen,
				   !first          ? ""
				   : first->remedy ? first->remedy
						   : first->text,
				   strlen(no), HEADLINE_INDENT);
}

int print_doctor_write(const struct findings *findings, FILE *file)
{
	const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
	/* See no-color.org. */
	bool plain = !isatty(fileno(file)) || (none && *none) || (terminal && streq(terminal, "dumb"));
	const struct doctor_printer screen = {.file = file, .colour = !plain};

	print_doctor_write_headline(&screen, findings);
	(void)fputc('\n', file);
	/* Problems that concern every engine come first. */
	print_doctor_write_findings(&screen, findings, SEVERITY_PROBLEM);
	for (enum severity severity = SEVERITIES; severity-- > 0;) {
		print_doctor_write_verdicts(&screen, findings, severity);
		if (severity < SEVERITY_PROBLEM)
			print_doctor_write_findings(&screen, findings, severity);
	}
	return print_finish(file);
}
