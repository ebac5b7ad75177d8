/* SPDX-License-Identifier: Apache-2.0 */

#include "model/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/report.h"
#include "base/str.h"

const char *door_name(enum door door)
{
	static const char *const names[DOORS] = {
		[DOOR_GPUS] = "gpus", [DOOR_HOOK] = "hook", [DOOR_RUNTIME] = "runtime",
		[DOOR_CDI] = "cdi",   [DOOR_CLI] = "cli",
	};

	return names[door];
}

const char *severity_name(enum severity severity)
{
	static const char *const names[SEVERITIES] = {
		[SEVERITY_OK] = "ok",
		[SEVERITY_NOTE] = "note",
		[SEVERITY_WARNING] = "warning",
		[SEVERITY_PROBLEM] = "problem",
	};

	return names[severity];
}

static char *findings_keep(struct findings *findings, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

/* Return: the text, in the memory of the findings; "" if that is full. */
static char *findings_keep(struct findings *findings, const char *format, va_list arguments)
{
	char *text = findings->texts + findings->used;
	size_t room = sizeof(findings->texts) - findings->used;
	int length = vsnprintf(text, room, format, arguments);
	static char none[1];
	_cleanup_json_ json_t *utf8 = NULL;

	if (length < 0 || (size_t)length >= room) {
		findings->incomplete = true;
		return none;
	}
	findings->used += (size_t)length + 1;
	/* Words of a driver or an image that are not UTF-8 have no place in JSON, and none on a screen. */
	utf8 = json_string(text);
	for (unsigned char *c = (unsigned char *)text; !utf8 && *c; c++)
		*c = *c < 0x80 ? *c : '?';
	return text;
}

static const char *findings_keep_text(struct findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static const char *findings_keep_text(struct findings *findings, const char *format, ...)
{
	const char *text;
	va_list arguments;

	va_start(arguments, format);
	text = findings_keep(findings, format, arguments);
	va_end(arguments);
	return text;
}

/* Compilers have checked the whole, of which this is a part. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static int findings_first_length(const char *format, va_list arguments)
{
	_cleanup_free_ char *first = strndup(format, strcspn(format, "\n"));

	return first ? vsnprintf(NULL, 0, first, arguments) : -1;
}

#pragma GCC diagnostic pop

void findings_add_list(struct findings *findings, const char *id, enum severity severity, const char *format,
		       va_list arguments)
{
	struct finding finding = {.id = findings_keep_text(findings, "%s", id), .severity = severity};
	va_list again;
	char *text;
	int first;

	va_copy(again, arguments);
	finding.text = text = findings_keep(findings, format, arguments);
	/* At the format's newline, and not at one that is in what was found. */
	first = strchr(format, '\n') && *text ? findings_first_length(format, again) : -1;
	if (first >= 0) {
		text[first] = '\0';
		finding.remedy = text + first + 1;
	}
	va_end(again);
	if (findings->count < FINDINGS_MAX)
		findings->items[findings->count++] = finding;
	else
		findings->incomplete = true;
}

void findings_add(struct findings *findings, const char *id, enum severity severity, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	findings_add_list(findings, id, severity, format, arguments);
	va_end(arguments);
}

void findings_advise(struct findings *findings, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (findings->count > 0)
		findings->items[findings->count - 1].remedy = findings_keep(findings, format, arguments);
	va_end(arguments);
}

void findings_close(struct findings *findings, const char *engine, unsigned doors)
{
	if (findings->count == 0)
		return;
	findings->items[findings->count - 1].engine = findings_keep_text(findings, "%s", engine);
	findings->items[findings->count - 1].doors = doors;
}

void findings_add_message(struct findings *findings, const char *id, enum severity severity, const char *message)
{
	_cleanup_free_ char *line = strdup(message);
	char *remedy = line ? strchr(line, '\n') : NULL;

	for (char *newline = remedy; newline && (newline = strchr(newline, '\n'));)
		*newline = ' ';
	if (remedy)
		*remedy = '\0';
	findings_add(findings, id, severity, remedy ? "%s\n%s" : "%s", line ? line : message, remedy ? remedy + 1 : "");
}

struct host_engine *findings_add_engine(struct findings *findings, const char *id, const char *label,
					const char *state_format, ...)
{
	static struct host_engine none;
	struct host_engine engine = {.id = id, .label = label};
	va_list arguments;

	va_start(arguments, state_format);
	engine.state = findings_keep(findings, state_format, arguments);
	va_end(arguments);
	if (findings->engine_count == FINDINGS_ENGINES_MAX) {
		findings->incomplete = true;
		return &none;
	}
	findings->engines[findings->engine_count] = engine;
	return &findings->engines[findings->engine_count++];
}

void findings_add_door(struct findings *findings, struct host_engine *engine, enum door door, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	engine->doors[door] = findings_keep(findings, format, arguments);
	va_end(arguments);
}

const struct finding *findings_worst(const struct findings *findings)
{
	const struct finding *worst = NULL;

	for (size_t i = 0; i < findings->count; i++)
		if (!worst || findings->items[i].severity > worst->severity)
			worst = &findings->items[i];
	return worst;
}

const struct finding *findings_block(const struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		if (findings->items[i].severity == SEVERITY_PROBLEM && !findings->items[i].engine)
			return &findings->items[i];
	return NULL;
}

/* ---- JSON ---- */

static json_t *findings_doors_to_json(unsigned doors)
{
	json_t *array = json_array();

	for (enum door door = 0; door < DOORS; door++)
		if (doors & (1U << door))
			(void)json_array_append_new(array, json_string(door_name(door)));
	return array;
}

json_t *findings_to_json(const struct findings *findings)
{
	json_t *array = json_array();

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		if (json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "id", finding->id,
							   "severity", severity_name(finding->severity), "text",
							   finding->text, "remedy", report_string(finding->remedy),
							   "engine", report_string(finding->engine), "closes",
							   findings_doors_to_json(finding->doors))) < 0)
			return json_decref(array), NULL;
	}
	return array;
}
