/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the findings for a terminal: the summary, each engine's, then the findings, the worst first. Without --verbose
 * it prints only what works and what is wrong, and nothing twice.
 */

#include "cli/doctor/doctor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/print.h"

enum {
	COLUMNS = 100, /* where the output is not a terminal */
	COLUMNS_MIN = 40,
	INDENT = 20,
	HEADLINE_INDENT = 4,
	ADAPTERS_BRIEF = 2,
};

/* SGR of ECMA-48, by severity. */
static const char *const colours[SEVERITIES] = {
	[SEVERITY_OK] = "32",
	[SEVERITY_NOTE] = "36",
	[SEVERITY_WARNING] = "33",
	[SEVERITY_PROBLEM] = "1;31",
};

struct doctor_printer {
	FILE *file;
	const struct findings *findings;
	const struct finding *block; /* NULL: nothing of the machine itself is in the way */
	const struct finding *first; /* NULL: an engine works */
	size_t columns;
	bool colour, verbose;
};

/* @sgr: "" ends a colour */
static void print_doctor_set_colour(const struct doctor_printer *printer, const char *sgr)
{
	if (printer->colour)
		(void)fprintf(printer->file, "\033[%sm", sgr);
}

/* Writes text from @column on. It breaks lines at the screen's width and indents all but the first. */
static void print_doctor_write_wrapped(const struct doctor_printer *printer, const char *text, size_t column,
				       size_t indent)
{
	while (*text) {
		size_t length = strcspn(text, " "), blanks = strspn(text + length, " ");
		_cleanup_free_ char *word = strndup(text, length);

		if (column > indent && column + length > printer->columns) {
			(void)fprintf(printer->file, "\n%*s", (int)indent, "");
			column = indent;
		}
		print_write_text(word ? word : "", printer->file);
		column += length + blanks;
		text += length + blanks;
		/* What would be at the end of a line is left out. */
		if (*text && column + strcspn(text, " ") <= printer->columns)
			(void)fprintf(printer->file, "%*s", (int)blanks, "");
	}
	(void)fputc('\n', printer->file);
}

static void print_doctor_write_line(const struct doctor_printer *printer, enum severity severity, const char *id,
				    const char *text, const char *remedy)
{
	print_doctor_set_colour(printer, colours[severity]);
	(void)fprintf(printer->file, "%-8s", severity_names[severity]);
	print_doctor_set_colour(printer, "");
	(void)fprintf(printer->file, " %-10.*s ", (int)strcspn(id, "."), id);
	print_doctor_write_wrapped(printer, text, INDENT, INDENT);
	/* The headline has it already. */
	if (!remedy || (printer->first && printer->first->remedy && streq(remedy, printer->first->remedy)))
		return;
	(void)fprintf(printer->file, "%*s> ", INDENT, "");
	print_doctor_write_wrapped(printer, remedy, INDENT + 2, INDENT);
}

/* Whether the verdict on some engine gives it as a reason. */
static bool print_doctor_is_printed(const struct findings *findings, const struct finding *finding)
{
	for (size_t i = 0; i < findings->engine_count; i++) {
		struct summary summary = summary_make(findings, &findings->engines[i]);

		for (enum method method = 0; method < METHODS; method++)
			if (summary.closed_by[method] == finding)
				return true;
	}
	return false;
}

/* Whether to show a finding: problems, the first usable adapters, and why the last container got no GPU. */
static bool print_doctor_is_wanted(const struct doctor_printer *printer, const struct finding *finding,
				   size_t *adapters)
{
	if (printer->verbose || finding->severity >= SEVERITY_WARNING || streq(finding->id, "ctr-gpu.last-failure"))
		return true;
	if (printer->block || !streq(finding->id, "adapter.usable") || *adapters > ADAPTERS_BRIEF)
		return false;
	if ((*adapters)++ == ADAPTERS_BRIEF)
		print_doctor_write_line(printer, SEVERITY_OK, "adapter", "and more: ctr-gpu info", NULL);
	return *adapters <= ADAPTERS_BRIEF;
}

static void print_doctor_write_findings(const struct doctor_printer *printer, enum severity severity)
{
	const struct findings *findings = printer->findings;
	size_t adapters = 0;

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		/* A method that is closed for another reason is not reported as not set up. */
		if (finding->severity != severity || (finding->engine && severity <= SEVERITY_NOTE) ||
		    print_doctor_is_printed(findings, finding) || !print_doctor_is_wanted(printer, finding, &adapters))
			continue;
		print_doctor_write_line(printer, severity, finding->id, finding->text,
					severity >= SEVERITY_WARNING ? finding->remedy : NULL);
	}
}

/* An engine that is merely not set up is of interest where none works; one that does not run, in any case. */
static bool print_doctor_is_engine_wanted(const struct doctor_printer *printer, const struct summary *summary)
{
	if (printer->verbose)
		return true;
	if (summary->engine->idle)
		return true;
	if (printer->block)
		return summary_is_broken(summary);
	return summary->severity != SEVERITY_NOTE || printer->first;
}

static void print_doctor_write_verdicts(const struct doctor_printer *printer, enum severity severity)
{
	const struct findings *findings = printer->findings;

	for (size_t i = 0; i < findings->engine_count; i++) {
		const struct host_engine *engine = &findings->engines[i];
		struct summary summary = summary_make(findings, engine);
		_cleanup_free_ char *text = NULL, *line = NULL;

		if (summary.severity != severity || !print_doctor_is_engine_wanted(printer, &summary))
			continue;
		text = summary_text(findings, &summary, !printer->verbose);
		if (text && str_format(&line, "%s%s: %s", engine->label, engine->state, text) == 0)
			print_doctor_write_line(printer, severity, engine->id, line, summary_remedy(&summary));
	}
}

/* " with Docker, Podman and containerd", or ", not with LXC". */
static void print_doctor_write_engines(const struct doctor_printer *printer, const struct findings *findings,
				       bool works)
{
	size_t left = 0;

	for (size_t i = 0; i < findings->engine_count; i++)
		left += summary_make(findings, &findings->engines[i]).works == works;
	if (left > 0)
		(void)fputs(works ? " with " : ", not with ", printer->file);
	for (size_t i = 0; i < findings->engine_count; i++) {
		if (summary_make(findings, &findings->engines[i]).works != works)
			continue;
		left--;
		(void)fprintf(printer->file, "%s%s", findings->engines[i].label,
			      left > 1    ? ", "
			      : left == 0 ? ""
			      : works     ? " and "
					  : " or ");
	}
}

/* "A GPU container would work here with Docker, not with Podman." */
static void print_doctor_write_headline(const struct doctor_printer *printer)
{
	static const char no[] = "A GPU container would not work here. First: ";
	const struct finding *first = printer->first;

	print_doctor_set_colour(printer, colours[first ? SEVERITY_PROBLEM : SEVERITY_OK]);
	(void)fputs(first ? no : "A GPU container would work here", printer->file);
	if (!first) {
		print_doctor_write_engines(printer, printer->findings, true);
		print_doctor_write_engines(printer, printer->findings, false);
	}
	(void)fputs(first ? "" : ".", printer->file);
	print_doctor_set_colour(printer, "");
	print_doctor_write_wrapped(printer,
				   !first          ? ""
				   : first->remedy ? first->remedy
						   : first->text,
				   strlen(no), HEADLINE_INDENT);
}

static size_t print_doctor_columns(FILE *file)
{
	struct winsize size = {0};

	if (ioctl(fileno(file), TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return COLUMNS;
	return size.ws_col < COLUMNS_MIN ? COLUMNS_MIN : size.ws_col;
}

int print_doctor_write(const struct findings *findings, bool verbose, FILE *file)
{
	const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
	/* See no-color.org. */
	bool plain = !isatty(fileno(file)) || (none && *none) || (terminal && streq(terminal, "dumb"));
	const struct doctor_printer printer = {
		.file = file,
		.findings = findings,
		.block = findings_block(findings),
		.first = summary_first(findings),
		.columns = print_doctor_columns(file),
		.colour = !plain,
		.verbose = verbose,
	};

	print_doctor_write_headline(&printer);
	if (verbose)
		(void)fputc('\n', file);
	/* What concerns every engine comes first. */
	for (enum severity severity = SEVERITIES; severity-- > 0;) {
		if (severity >= SEVERITY_WARNING || !verbose)
			print_doctor_write_findings(&printer, severity);
		print_doctor_write_verdicts(&printer, severity);
		if (severity < SEVERITY_WARNING && verbose)
			print_doctor_write_findings(&printer, severity);
	}
	if (!verbose)
		(void)fputs("Everything that was looked at: ctr-gpu doctor -v\n", file);
	return print_finish(file);
}
