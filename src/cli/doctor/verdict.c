/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/doctor/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"

/* ---- what follows ---- */

static bool verdict_is_of(const struct finding *finding, const struct host_engine *engine)
{
	return finding->engine && (streq(finding->engine, ANY_ENGINE) || streq(finding->engine, engine->id));
}

/* Of two that say no, the worse one is the reason; of equals the engine's own. */
static bool verdict_outweighs(const struct finding *finding, const struct finding *other)
{
	if (!other || finding->severity != other->severity)
		return !other || finding->severity > other->severity;
	return streq(other->engine, ANY_ENGINE) && !streq(finding->engine, ANY_ENGINE);
}

static const struct finding *verdict_closer(const struct findings *findings, const struct host_engine *engine,
					    enum door door)
{
	const struct finding *worst = NULL;

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		if (verdict_is_of(finding, engine) && finding->doors & (1U << door) &&
		    verdict_outweighs(finding, worst))
			worst = finding;
	}
	return worst;
}

struct verdict verdict_make(const struct findings *findings, const struct host_engine *engine)
{
	struct verdict verdict = {.engine = engine, .severity = SEVERITY_OK};
	enum severity worst = SEVERITY_NOTE;

	for (enum door door = 0; door < DOORS; door++) {
		if (!engine->doors[door])
			continue;
		verdict.closed_by[door] = verdict_closer(findings, engine, door);
		if (!verdict.closed_by[door])
			verdict.open |= 1U << door;
		else if (verdict.closed_by[door]->severity > worst)
			worst = verdict.closed_by[door]->severity;
	}
	verdict.works = verdict.open && !findings_block(findings);
	if (!verdict.open)
		verdict.severity = worst > SEVERITY_NOTE ? SEVERITY_PROBLEM : SEVERITY_NOTE;
	else if (worst > SEVERITY_NOTE)
		verdict.severity = SEVERITY_WARNING;
	if (verdict.open && !verdict.works)
		verdict.severity = SEVERITY_PROBLEM;
	return verdict;
}

bool verdict_any(const struct findings *findings)
{
	for (size_t i = 0; i < findings->engine_count; i++)
		if (verdict_make(findings, &findings->engines[i]).works)
			return true;
	return false;
}

/* One that is broken goes before those that nobody has set up. */
const struct finding *verdict_first(const struct findings *findings)
{
	const struct finding *first = findings_block(findings);

	if (first)
		return first;
	for (size_t i = 0; i < findings->engine_count; i++) {
		struct verdict verdict = verdict_make(findings, &findings->engines[i]);

		if (verdict.works)
			return NULL;
		for (enum door door = 0; door < DOORS; door++)
			if (verdict.closed_by[door] && (!first || verdict.closed_by[door]->severity > first->severity))
				first = verdict.closed_by[door];
	}
	return first;
}

/* ---- in words ---- */

/* "--gpus all, --runtime=nvidia": the doors that a finding closes, or NULL leaves open. */
static void verdict_say_doors(FILE *sentence, const struct verdict *verdict, const struct finding *finding)
{
	const char *separator = "";

	for (enum door door = 0; door < DOORS; door++) {
		if (!verdict->engine->doors[door] || verdict->closed_by[door] != finding)
			continue;
		(void)fprintf(sentence, "%s%s", separator, verdict->engine->doors[door]);
		separator = ", ";
	}
}

/* Whether it is the finding of an earlier door, too. */
static bool verdict_is_told(const struct verdict *verdict, enum door door)
{
	for (enum door i = 0; i < door; i++)
		if (verdict->closed_by[i] == verdict->closed_by[door])
			return true;
	return false;
}

/* Of an engine that nobody has set up, or that has a way to go before that matters, only the first reason counts. */
static bool verdict_is_worth_telling(const struct verdict *verdict, enum door door)
{
	const struct finding *finding = verdict->closed_by[door];

	if (!finding || verdict_is_told(verdict, door))
		return false;
	if (verdict->works || finding->severity > SEVERITY_NOTE)
		return true;
	for (enum door i = 0; i < DOORS; i++)
		if (verdict->closed_by[i] && (i < door || verdict->closed_by[i]->severity > SEVERITY_NOTE))
			return false;
	return !verdict->open;
}

static size_t verdict_count_reasons(const struct verdict *verdict)
{
	size_t count = 0;

	for (enum door door = 0; door < DOORS; door++)
		count += verdict_is_worth_telling(verdict, door);
	return count;
}

char *verdict_text(const struct findings *findings, const struct verdict *verdict)
{
	bool whole = !verdict->open && verdict_count_reasons(verdict) == 1;
	const char *separator = "";
	char *text = NULL;
	size_t size;
	FILE *sentence = open_memstream(&text, &size);

	if (!sentence)
		return NULL;
	if (findings_block(findings)) {
		(void)fprintf(sentence, "no, as above");
		separator = "; then ";
	}
	if (verdict->open) {
		(void)fprintf(sentence, "%syes by ", separator);
		verdict_say_doors(sentence, verdict, NULL);
		separator = "; ";
	}
	for (enum door door = 0; door < DOORS; door++) {
		const struct finding *finding = verdict->closed_by[door];

		if (!verdict_is_worth_telling(verdict, door))
			continue;
		(void)fprintf(sentence, "%s%s", separator, whole ? "" : "by ");
		if (!whole)
			verdict_say_doors(sentence, verdict, finding);
		(void)fprintf(sentence, "%sno, because %s", whole ? "" : " ", finding->text);
		separator = "; ";
	}
	if (fclose(sentence) == 0)
		return text;
	free(text);
	return NULL;
}

/* If a door is open, the others need not be set up. */
const char *verdict_remedy(const struct verdict *verdict)
{
	const struct finding *first = NULL;

	for (enum door door = 0; door < DOORS; door++) {
		const struct finding *finding = verdict->closed_by[door];

		if (finding && finding->remedy && (!verdict->open || finding->severity >= SEVERITY_WARNING) &&
		    (!first || finding->severity > first->severity))
			first = finding;
	}
	return first ? first->remedy : NULL;
}

bool verdict_tells(const struct verdict *verdict, const struct finding *finding)
{
	for (enum door door = 0; door < DOORS; door++)
		if (verdict->closed_by[door] == finding)
			return true;
	return false;
}

/* ---- JSON ---- */

static json_t *verdict_doors_to_json(const struct findings *findings, const struct verdict *verdict)
{
	const struct finding *block = findings_block(findings);
	json_t *array = json_array();

	for (enum door door = 0; door < DOORS; door++) {
		const struct finding *because = block ? block : verdict->closed_by[door];

		if (verdict->engine->doors[door])
			(void)json_array_append_new(array,
						    json_pack("{s:s, s:s, s:b, s:o}", "id", door_name(door), "use",
							      verdict->engine->doors[door], "works", !because,
							      "because", report_string(because ? because->id : NULL)));
	}
	return array;
}

json_t *verdicts_to_json(const struct findings *findings)
{
	json_t *array = json_array();

	for (size_t i = 0; i < findings->engine_count; i++) {
		const struct host_engine *engine = &findings->engines[i];
		struct verdict verdict = verdict_make(findings, engine);

		if (json_array_append_new(array, json_pack("{s:s, s:s+, s:b, s:o}", "id", engine->id, "name",
							   engine->label, engine->state, "works", verdict.works,
							   "doors", verdict_doors_to_json(findings, &verdict))) < 0)
			return json_decref(array), NULL;
	}
	return array;
}
