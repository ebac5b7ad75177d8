/* SPDX-License-Identifier: Apache-2.0 */

#include "model/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/print.h"
#include "base/str.h"

const char *const method_names[METHODS] = {
	[METHOD_GPUS] = "gpus", [METHOD_HOOK] = "hook", [METHOD_RUNTIME] = "runtime",
	[METHOD_CDI] = "cdi",   [METHOD_CLI] = "cli",
};

const char *const severity_names[SEVERITIES] = {
	[SEVERITY_OK] = "ok",
	[SEVERITY_NOTE] = "note",
	[SEVERITY_WARNING] = "warning",
	[SEVERITY_PROBLEM] = "problem",
};

/* A part of a format that compilers have checked as a whole. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* At the newline of the format: arguments may have newlines, too. */
static int findings_first_length(const char *format, va_list arguments)
{
	_cleanup_free_ char *first = strndup(format, strcspn(format, "\n"));

	return first ? vsnprintf(NULL, 0, first, arguments) : -1;
}

#pragma GCC diagnostic pop

/* The last place says that there was more, since what did not fit may close a method. */
static void findings_end(struct findings *findings)
{
	struct finding *last = &findings->items[FINDINGS_MAX - 1];

	if (findings->count == FINDINGS_MAX)
		return;
	findings->count = FINDINGS_MAX;
	*last = (struct finding){.id = "doctor.full", .severity = SEVERITY_PROBLEM};
	(void)snprintf(last->text, sizeof(last->text), "more was found than can be told");
	last->remedy = last->text + strlen(last->text) + 1;
	(void)snprintf(last->remedy, sizeof(last->text) - strlen(last->text) - 1,
		       "Mend what is told first, such as broken files of hooks and CDI, and look again.");
}

void findings_add_list(struct findings *findings, const char *id, enum severity severity, const char *format,
		       va_list arguments)
{
	_cleanup_json_ json_t *utf8 = NULL;
	struct finding *finding;
	va_list again;
	int first;

	if (findings->count >= FINDINGS_MAX - 1) {
		findings_end(findings);
		return;
	}
	finding = &findings->items[findings->count++];
	/* A check that was cut off may have left another one here. */
	finding->severity = severity;
	finding->remedy = NULL;
	finding->engine = NULL;
	finding->methods = 0;
	(void)snprintf(finding->id, sizeof(finding->id), "%s", id);
	va_copy(again, arguments);
	first = findings_first_length(format, again);
	va_end(again);
	(void)vsnprintf(finding->text, sizeof(finding->text), format, arguments);
	/* Words of a driver or an image that are not UTF-8 have no place in JSON, and none on a screen. */
	utf8 = json_string(finding->text);
	for (char *c = finding->text; !utf8 && *c; c++)
		*c = *c & 0x80 ? '?' : *c;
	if (first < 0 || !strchr(format, '\n') || (size_t)first >= strlen(finding->text))
		return;
	finding->text[first] = '\0';
	finding->remedy = finding->text + first + 1;
}

void findings_add(struct findings *findings, const char *id, enum severity severity, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	findings_add_list(findings, id, severity, format, arguments);
	va_end(arguments);
}

void findings_close(struct findings *findings, const char *engine, unsigned methods)
{
	if (findings->count == 0 || findings->count == FINDINGS_MAX)
		return;
	findings->items[findings->count - 1].engine = engine;
	findings->items[findings->count - 1].methods = methods;
}

/* Advice of several lines is one remedy. */
static void findings_join_remedy(struct findings *findings)
{
	for (char *c = findings->items[findings->count - 1].remedy; c && *c; c++)
		*c = *c == '\n' ? ' ' : *c;
}

void findings_add_error(struct findings *findings, const char *id, enum severity severity, const struct err *err)
{
	findings_add(findings, id, severity, err->advice[0] ? "%s\n%s" : "%s", err->text, err->advice);
	findings_join_remedy(findings);
}

void findings_add_message(struct findings *findings, const char *id, enum severity severity, const char *message)
{
	size_t first = strcspn(message, "\n");

	findings_add(findings, id, severity, message[first] ? "%.*s\n%s" : "%.*s", (int)first, message,
		     message + first + 1);
	findings_join_remedy(findings);
}

struct host_engine *findings_add_engine(struct findings *findings, const char *id, const char *label)
{
	static struct host_engine none;
	struct host_engine *engine = &none;

	if (findings->engine_count < FINDINGS_ENGINES_MAX)
		engine = &findings->engines[findings->engine_count++];
	else
		findings->incomplete = true;
	engine->id = id;
	engine->label = label;
	return engine;
}

const struct finding *findings_block(const struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		if (findings->items[i].severity == SEVERITY_PROBLEM && !findings->items[i].engine)
			return &findings->items[i];
	return NULL;
}

/* ---- JSON ---- */

static json_t *findings_methods_to_json(unsigned methods)
{
	json_t *array = json_array();

	for (enum method method = 0; method < METHODS; method++)
		if (methods & (1U << method))
			(void)json_array_append_new(array, json_string(method_names[method]));
	return array;
}

static json_t *findings_item_to_json(const struct finding *finding)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "id", finding->id, "severity",
			 severity_names[finding->severity], "text", finding->text, "remedy",
			 print_string(finding->remedy), "engine", print_string(finding->engine), "closes",
			 findings_methods_to_json(finding->methods));
}

json_t *findings_to_json(const struct findings *findings)
{
	return print_array(i, findings->count, findings_item_to_json(&findings->items[i]));
}
