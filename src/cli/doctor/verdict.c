/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/doctor/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memstream.h"
#include "base/report.h"

/* ---- what follows ---- */

/* Of two findings that close a door the worse is the reason; of equals, the engine's own. */
static const struct finding *verdict_closer(const struct findings *findings, const struct host_engine *engine,
					    enum door door)
{
	const struct finding *worst = NULL;
	unsigned weight, most = 0;

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		if (!(finding->doors & (1U << door)) || !finding->engine)
			continue;
		if (streq(finding->engine, engine->id))
			weight = 2 * finding->severity + 2;
		else if (streq(finding->engine, ANY_ENGINE))
			weight = 2 * finding->severity + 1;
		else
			continue;
		if (weight > most)
			worst = finding;
		if (weight > most)
			most = weight;
	}
	return worst;
}

struct verdict verdict_make(const struct findings *findings, const struct host_engine *engine)
{
	struct verdict verdict = {.engine = engine, .severity = SEVERITY_OK};
	enum severity worst = SEVERITY_NOTE;

	for (enum door door = 0; door < DOORS; door++) {
		if (!engine->doors[door][0])
			continue;
		verdict.closed_by[door] = verdict_closer(findings, engine, door);
		if (!verdict.closed_by[door])
			verdict.open |= 1U << door;
		else if (verdict.closed_by[door]->severity > worst)
			worst = verdict.closed_by[door]->severity;
	}
	verdict.works = verdict.open && !findings_block(findings);
	if (!verdict.works)
		verdict.severity = verdict.open || worst > SEVERITY_NOTE ? SEVERITY_PROBLEM : SEVERITY_NOTE;
	else if (worst > SEVERITY_NOTE)
		verdict.severity = SEVERITY_WARNING;
	return verdict;
}

/* A broken door comes before doors that are not set up. */
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
	const char *separator = "by ";

	for (enum door door = 0; door < DOORS; door++) {
		if (!verdict->engine->doors[door][0] || verdict->closed_by[door] != finding)
			continue;
		(void)fprintf(sentence, "%s%s", separator, verdict->engine->doors[door]);
		separator = ", ";
	}
}

/* Doors that are merely not set up: of an engine that does not work, only the first is told. */
static bool verdict_is_worth_telling(const struct verdict *verdict, enum door door)
{
	const struct finding *finding = verdict->closed_by[door];
	bool first = !verdict->open;

	if (!finding)
		return false;
	for (enum door i = 0; i < DOORS; i++) {
		if (i < door && verdict->closed_by[i] == finding)
			return false;
		if (verdict->closed_by[i] && (i < door || verdict->closed_by[i]->severity > SEVERITY_NOTE))
			first = false;
	}
	return first || verdict->works || finding->severity > SEVERITY_NOTE;
}

char *verdict_text(const struct findings *findings, const struct verdict *verdict)
{
	const char *separator = "";
	struct memstream stream;
	FILE *sentence = memstream_open(&stream);
	size_t reasons = 0;
	char *text;

	if (!sentence)
		return NULL;
	if (findings_block(findings)) {
		(void)fprintf(sentence, "no, as above");
		separator = "; then ";
	}
	if (verdict->open) {
		(void)fprintf(sentence, "%syes ", separator);
		verdict_say_doors(sentence, verdict, NULL);
		separator = "; ";
	}
	for (enum door door = 0; door < DOORS; door++)
		reasons += verdict_is_worth_telling(verdict, door);
	for (enum door door = 0; door < DOORS; door++) {
		if (!verdict_is_worth_telling(verdict, door))
			continue;
		(void)fputs(separator, sentence);
		if (verdict->open || reasons > 1) {
			verdict_say_doors(sentence, verdict, verdict->closed_by[door]);
			(void)fputc(' ', sentence);
		}
		(void)fprintf(sentence, "no, because %s", verdict->closed_by[door]->text);
		separator = "; ";
	}
	return memstream_close(&stream, &text, NULL) == 0 ? text : NULL;
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

/* ---- JSON ---- */

static json_t *verdict_to_json(const struct findings *findings, const struct host_engine *engine)
{
	struct verdict verdict = verdict_make(findings, engine);
	const struct finding *block = findings_block(findings);
	json_t *doors = json_array();

	for (enum door door = 0; door < DOORS; door++) {
		const struct finding *because = block ? block : verdict.closed_by[door];

		if (engine->doors[door][0])
			(void)json_array_append_new(doors,
						    json_pack("{s:s, s:s, s:b, s:o}", "id", door_names[door], "use",
							      engine->doors[door], "works", !because, "because",
							      report_string(because ? because->id : NULL)));
	}
	return json_pack("{s:s, s:s+, s:b, s:o}", "id", engine->id, "name", engine->label, engine->state, "works",
			 verdict.works, "doors", doors);
}

json_t *verdicts_to_json(const struct findings *findings)
{
	return report_array(i, findings->engine_count, verdict_to_json(findings, &findings->engines[i]));
}
