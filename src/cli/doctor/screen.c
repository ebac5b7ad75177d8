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

/* @sgr: "" ends a colour */
static void screen_set_colour(const struct screen *screen, const char *sgr)
{
	if (screen->colour)
		(void)fprintf(screen->file, "\033[%sm", sgr);
}

/* Text from @column on, in lines that are no longer than a screen, the further ones indented. */
static void screen_write_wrapped(const struct screen *screen, const char *text, size_t column, size_t indent)
{
	while (*text) {
		size_t length = strcspn(text, " "), blanks = strspn(text + length, " ");
		_cleanup_free_ char *word = strndup(text, length);

		report_write_text(word ? word : "", screen->file);
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

static void screen_write_line(const struct screen *screen, enum severity severity, const char *id, const char *text,
			      const char *remedy)
{
	screen_set_colour(screen, colours[severity]);
	(void)fprintf(screen->file, "%-8s", severity_names[severity]);
	screen_set_colour(screen, "");
	(void)fprintf(screen->file, " %-10.*s ", (int)strcspn(id, "."), id);
	screen_write_wrapped(screen, text, INDENT, INDENT);
	if (!remedy)
		return;
	(void)fprintf(screen->file, "%*s> ", INDENT, "");
	screen_write_wrapped(screen, remedy, INDENT + 2, INDENT);
}

/* Whether the verdict on some engine gives it as a reason. */
static bool screen_is_told(const struct findings *findings, const struct finding *finding)
{
	for (size_t i = 0; i < findings->engine_count; i++) {
		struct verdict verdict = verdict_make(findings, &findings->engines[i]);

		for (enum door door = 0; door < DOORS; door++)
			if (verdict.closed_by[door] == finding)
				return true;
	}
	return false;
}

static void screen_write_findings(const struct screen *screen, const struct findings *findings, enum severity severity)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		/* If a door is closed for another reason, it is not said that it is not set up. */
		if (finding->severity != severity || (finding->engine && severity <= SEVERITY_NOTE) ||
		    screen_is_told(findings, finding))
			continue;
		screen_write_line(screen, severity, finding->id, finding->text,
				  severity >= SEVERITY_WARNING ? finding->remedy : NULL);
	}
}

static void screen_write_verdicts(const struct screen *screen, const struct findings *findings, enum severity severity)
{
	for (size_t i = 0; i < findings->engine_count; i++) {
		const struct host_engine *engine = &findings->engines[i];
		struct verdict verdict = verdict_make(findings, engine);
		_cleanup_free_ char *text = verdict_text(findings, &verdict), *line = NULL;

		if (verdict.severity == severity && text &&
		    str_format(&line, "%s%s: %s", engine->label, engine->state, text) == 0)
			screen_write_line(screen, severity, engine->id, line, verdict_remedy(&verdict));
	}
}

/* " with Docker, Podman and containerd", or ", not with LXC". */
static void screen_write_engines(const struct screen *screen, const struct findings *findings, bool works)
{
	size_t left = 0;

	for (size_t i = 0; i < findings->engine_count; i++)
		left += verdict_make(findings, &findings->engines[i]).works == works;
	if (left > 0)
		(void)fputs(works ? " with " : ", not with ", screen->file);
	for (size_t i = 0; i < findings->engine_count; i++) {
		if (verdict_make(findings, &findings->engines[i]).works != works)
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
static void screen_write_headline(const struct screen *screen, const struct findings *findings)
{
	static const char no[] = "A GPU container would not work here. First: ";
	const struct finding *first = verdict_first(findings);

	screen_set_colour(screen, colours[first ? SEVERITY_PROBLEM : SEVERITY_OK]);
	(void)fputs(first ? no : "A GPU container would work here", screen->file);
	if (!first) {
		screen_write_engines(screen, findings, true);
		screen_write_engines(screen, findings, false);
	}
	(void)fputs(first ? "" : ".", screen->file);
	screen_set_colour(screen, "");
	screen_write_wrapped(screen,
			     !first          ? ""
			     : first->remedy ? first->remedy
					     : first->text,
			     strlen(no), HEADLINE_INDENT);
}

int screen_write(const struct findings *findings, FILE *file)
{
	const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
	/* See no-color.org. */
	bool plain = !isatty(fileno(file)) || (none && *none) || (terminal && streq(terminal, "dumb"));
	const struct screen screen = {.file = file, .colour = !plain};

	screen_write_headline(&screen, findings);
	(void)fputc('\n', file);
	/* Problems that concern every engine come first. */
	screen_write_findings(&screen, findings, SEVERITY_PROBLEM);
	for (enum severity severity = SEVERITIES; severity-- > 0;) {
		screen_write_verdicts(&screen, findings, severity);
		if (severity < SEVERITY_PROBLEM)
			screen_write_findings(&screen, findings, severity);
	}
	return report_finish(file);
}
