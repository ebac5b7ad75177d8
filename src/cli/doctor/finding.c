/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/doctor/finding.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "base/str.h"

static const char *const names[SEVERITIES] = {
	[SEVERITY_OK] = "ok", [SEVERITY_NOTE] = "note", [SEVERITY_WARNING] = "warning", [SEVERITY_PROBLEM] = "problem",
};

static const char *const door_names[DOORS] = {
	[DOOR_GPUS] = "gpus", [DOOR_HOOK] = "hook", [DOOR_RUNTIME] = "runtime", [DOOR_CDI] = "cdi", [DOOR_CLI] = "cli",
};

const char *door_name(enum door door)
{
	return door_names[door];
}

const char *severity_name(enum severity severity)
{
	return names[severity];
}

static void finding_clear(struct finding *finding)
{
	free(finding->id);
	free(finding->text);
	free(finding->remedy);
	free(finding->engine);
}

void findings_clear(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		finding_clear(&findings->items[i]);
	free(findings->items);
	*findings = (struct findings){0};
}

static void take(struct findings *findings, struct finding *finding)
{
	struct finding *items = NULL;

	if (finding->id && finding->text)
		items = array_grow(findings->items, findings->count, sizeof(*items));
	if (!items) {
		finding_clear(finding);
		findings->incomplete = true;
		return;
	}
	findings->items = items;
	items[findings->count++] = *finding;
}

void findings_add(struct findings *findings, const char *id, enum severity severity, const char *format, ...)
{
	struct finding finding = {.id = strdup(id), .severity = severity};
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&finding.text, format, arguments) < 0)
		finding.text = NULL;
	va_end(arguments);
	take(findings, &finding);
}

void findings_advise(struct findings *findings, const char *format, ...)
{
	struct finding *last = findings->count > 0 ? &findings->items[findings->count - 1] : NULL;
	va_list arguments;

	if (!last)
		return;
	free(last->remedy);
	va_start(arguments, format);
	if (vasprintf(&last->remedy, format, arguments) < 0) {
		last->remedy = NULL;
		findings->incomplete = true;
	}
	va_end(arguments);
}

void findings_add_message(struct findings *findings, const char *id, enum severity severity, const char *message)
{
	size_t length = strcspn(message, "\n");

	findings_add(findings, id, severity, "%.*s", (int)length, message);
	if (message[length] == '\0')
		return;
	findings_advise(findings, "%s", message + length + 1);
	for (char *end = findings->count > 0 ? findings->items[findings->count - 1].remedy : NULL; end && (end = strchr(end, '\n'));)
		*end = ' ';
}

void findings_close(struct findings *findings, const char *engine, unsigned doors)
{
	struct finding *last = findings->count > 0 ? &findings->items[findings->count - 1] : NULL;

	if (!last)
		return;
	free(last->engine);
	last->engine = strdup(engine);
	last->doors = doors;
	findings->incomplete |= !last->engine;
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

static json_t *doors_to_json(unsigned doors)
{
	json_t *array = json_array();

	for (enum door door = 0; door < DOORS; door++)
		if (doors & (1U << door))
			(void)json_array_append_new(array, json_string(door_names[door]));
	return array;
}

static unsigned doors_from_json(const json_t *array)
{
	unsigned doors = 0;
	const json_t *name;
	size_t i;

	json_array_foreach((json_t *)array, i, name)
		for (enum door door = 0; door < DOORS; door++)
			if (json_is_string(name) && streq(json_string_value(name), door_names[door]))
				doors |= 1U << door;
	return doors;
}

json_t *findings_to_json(const struct findings *findings)
{
	json_t *array = json_array();

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		if (json_array_append_new(array, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "id", finding->id, "severity",
							   names[finding->severity], "text", report_string(finding->text), "remedy",
							   report_string(finding->remedy), "engine", report_string(finding->engine),
							   "closes", doors_to_json(finding->doors))) < 0)
			return json_decref(array), NULL;
	}
	return array;
}

static int severity_of(const char *name, enum severity *ret)
{
	for (size_t i = 0; i < SEVERITIES; i++)
		if (streq(names[i], name)) {
			*ret = (enum severity)i;
			return 0;
		}
	return -EINVAL;
}

static char *copy(const json_t *text)
{
	return json_is_string(text) ? strdup(json_string_value(text)) : NULL;
}

int findings_from_json(const json_t *array, struct findings *findings)
{
	const json_t *item;
	size_t i;

	json_array_foreach((json_t *)array, i, item) {
		const char *severity = json_string_value(json_object_get(item, "severity"));
		struct finding finding = {0};

		if (!severity || severity_of(severity, &finding.severity) < 0)
			return -EINVAL;
		finding.id = copy(json_object_get(item, "id"));
		/* Words of a driver or an image that are not UTF-8 are null in JSON. */
		finding.text = copy(json_object_get(item, "text"));
		if (!finding.text)
			finding.text = strdup("(what was found cannot be written: it is not UTF-8)");
		finding.remedy = copy(json_object_get(item, "remedy"));
		finding.engine = copy(json_object_get(item, "engine"));
		finding.doors = doors_from_json(json_object_get(item, "closes"));
		take(findings, &finding);
	}
	return findings->incomplete ? -ENOMEM : 0;
}
