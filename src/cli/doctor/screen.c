/* SPDX-License-Identifier: Apache-2.0 */

/* What was found, for a person's screen: the verdict, each engine's, and the findings, what is worst first. */

#include "cli/doctor/screen.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "cli/doctor/verdict.h"

enum { COLUMNS = 100, INDENT = 20, HEADLINE_INDENT = 4 };

/* SGR of ECMA-48, by severity. */
static const char *const colours[SEVERITIES] = {
	[SEVERITY_OK] = "32",
	[SEVERITY_NOTE] = "36",
	[SEVERITY_WARNING] = "33",
	[SEVERITY_PROBLEM] = "1;31",
};

struct screen {
	FILE *file;
	bool colour;
};

/* See no-color.org. */
static bool screen_has_colour(FILE *file)
{
	const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");

	return isatty(fileno(file)) && !(none && *none) && !(terminal && streq(terminal, "dumb"));
}

static void screen_begin_colour(const struct screen *screen, enum severity severity)
{
	if (screen->colour)
		(void)fprintf(screen->file, "\033[%sm", colours[severity]);
}

static void screen_end_colour(const struct screen *screen)
{
	if (screen->colour)
		(void)fputs("\033[m", screen->file);
}

/* Text from @column on, in lines that are no longer than a screen, the further ones indented. */
static void screen_write_wrapped(const char *text, size_t column, size_t indent, FILE *file)
{
	while (*text) {
		size_t length = strcspn(text, " "), blanks = strspn(text + length, " ");
		_cleanup_free_ char *word = strndup(text, length);

		report_write_text(word ? word : "", file);
		column += length + blanks;
		text += length + blanks;
		if (blanks == 0 || !*text)
			continue;
		if (column + strcspn(text, " ") > COLUMNS) {
			(void)fprintf(file, "\n%*s", (int)indent, "");
			column = indent;
		} else {
			(void)fprintf(file, "%*s", (int)blanks, "");
		}
	}
	(void)fputc('\n', file);
}

static void screen_write_line(const struct screen *screen, enum severity severity, const char *id, const char *text,
			      const char *remedy)
{
	screen_begin_colour(screen, severity);
	(void)fprintf(screen->file, "%-8s", severity_name(severity));
	screen_end_colour(screen);
	(void)fprintf(screen->file, " %-10.*s ", (int)strcspn(id, "."), id);
	screen_write_wrapped(text, INDENT, INDENT, screen->file);
	if (!remedy)
		return;
	(void)fprintf(screen->file, "%*s> ", INDENT, "");
	screen_write_wrapped(remedy, INDENT + 2, INDENT, screen->file);
}

static void screen_write_verdict(const struct screen *screen, const struct findings *findings,
				 const struct verdict *verdict)
{
	const struct host_engine *engine = verdict->engine;
	_cleanup_free_ char *text = verdict_text(findings, verdict), *line = NULL;

	if (!text || str_format(&line, "%s%s: %s", engine->label, engine->state, text) < 0)
		return;
	screen_write_line(screen, verdict->severity, engine->id, line, verdict_remedy(verdict));
}

static bool screen_is_told(const struct findings *findings, const struct finding *finding)
{
	for (size_t i = 0; i < findings->engine_count; i++) {
		struct verdict verdict = verdict_make(findings, &findings->engines[i]);

		if (verdict_tells(&verdict, finding))
			return true;
	}
	return false;
}

static void screen_write_severity(const struct screen *screen, const struct findings *findings, enum severity severity)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		/* That a door is not set up is of no interest where another reason is. */
		if (finding->severity != severity || (finding->engine && severity <= SEVERITY_NOTE))
			continue;
		if (!screen_is_told(findings, finding))
			screen_write_line(screen, severity, finding->id, finding->text,
					  severity >= SEVERITY_WARNING ? finding->remedy : NULL);
	}
}

static void screen_write_verdicts(const struct screen *screen, const struct findings *findings, enum severity severity)
{
	for (size_t i = 0; i < findings->engine_count; i++) {
		struct verdict verdict = verdict_make(findings, &findings->engines[i]);

		if (verdict.severity == severity)
			screen_write_verdict(screen, findings, &verdict);
	}
}

/* "A GPU container would work here with Docker, not with Podman." */
static void screen_write_headline(const struct screen *screen, const struct findings *findings)
{
	static const char no[] = "A GPU container would not work here. First: ";
	const struct finding *first = verdict_first(findings);
	const char *separator = " with ";

	if (first) {
		screen_begin_colour(screen, SEVERITY_PROBLEM);
		(void)fputs(no, screen->file);
		screen_end_colour(screen);
		screen_write_wrapped(first->remedy ? first->remedy : first->text, strlen(no), HEADLINE_INDENT,
				     screen->file);
		return;
	}
	screen_begin_colour(screen, SEVERITY_OK);
	(void)fputs("A GPU container would work here", screen->file);
	for (int wanted = 1; wanted >= 0; wanted--) {
		for (size_t i = 0; i < findings->engine_count; i++) {
			if (verdict_make(findings, &findings->engines[i]).works != wanted)
				continue;
			(void)fprintf(screen->file, "%s%s", separator, findings->engines[i].label);
			separator = wanted ? " and " : " or ";
		}
		separator = ", not with ";
	}
	(void)fputs(".", screen->file);
	screen_end_colour(screen);
	(void)fputc('\n', screen->file);
}

int screen_write(const struct findings *findings, FILE *file)
{
	const struct screen screen = {file, screen_has_colour(file)};

	screen_write_headline(&screen, findings);
	(void)fputc('\n', file);
	/* What is in every engine's way goes before them. */
	screen_write_severity(&screen, findings, SEVERITY_PROBLEM);
	for (enum severity severity = SEVERITIES; severity-- > 0;) {
		screen_write_verdicts(&screen, findings, severity);
		if (severity < SEVERITY_PROBLEM)
			screen_write_severity(&screen, findings, severity);
	}
	return report_finish(file);
}
