/* SPDX-License-Identifier: Apache-2.0 */

/* The end of `ctr-gpu doctor`: which method works with which engine, and what to do next. */

#include "cli/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/str.h"

/* ---- what follows ---- */

/* Of two findings that close a method the worse is the reason; of equals, the engine's own. */
static const struct finding *summary_closer(const struct findings *findings, const struct host_engine *engine,
					    enum method method)
{
	const struct finding *worst = NULL;
	unsigned weight, most = 0;

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		if (!(finding->methods & (1U << method)) || !finding->engine)
			continue;
		if (streq(finding->engine, engine->id))
			weight = 2 * finding->severity + 2;
		else if (streq(finding->engine, ANY_ENGINE) && !(engine->apart & (1U << method)))
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

struct summary summary_make(const struct findings *findings, const struct host_engine *engine)
{
	struct summary summary = {.engine = engine, .severity = SEVERITY_OK};
	enum severity worst = SEVERITY_NOTE;

	for (enum method method = 0; method < METHODS; method++) {
		if (!engine->methods[method][0])
			continue;
		summary.closed_by[method] = summary_closer(findings, engine, method);
		if (!summary.closed_by[method])
			summary.open |= 1U << method;
		else if (summary.closed_by[method]->severity > worst)
			worst = summary.closed_by[method]->severity;
	}
	summary.works = summary.open && !findings_block(findings);
	if (!summary.works)
		summary.severity = summary.open || worst > SEVERITY_NOTE ? SEVERITY_PROBLEM : SEVERITY_NOTE;
	else if (worst > SEVERITY_NOTE)
		summary.severity = SEVERITY_WARNING;
	return summary;
}

bool summary_is_broken(const struct summary *summary)
{
	for (enum method method = 0; method < METHODS; method++)
		if (summary->closed_by[method] && summary->closed_by[method]->severity > SEVERITY_NOTE)
			return true;
	return false;
}

/* A finding about the devices or the driver store, which breaks some containers of every engine; NULL. */
static const struct finding *summary_find_obstacle(const struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		if (finding->severity == SEVERITY_WARNING && !finding->engine &&
		    (str_has_prefix(finding->id, "device.") || str_has_prefix(finding->id, "store.")))
			return finding;
	}
	return NULL;
}

/* A broken method, or an obstacle for every engine, comes before methods that are not set up. */
const struct finding *summary_first(const struct findings *findings)
{
	const struct finding *first = findings_block(findings);

	if (first)
		return first;
	first = summary_find_obstacle(findings);
	for (size_t i = 0; i < findings->engine_count; i++) {
		struct summary summary = summary_make(findings, &findings->engines[i]);

		if (summary.works)
			return NULL;
		for (enum method method = 0; method < METHODS; method++)
			if (summary.closed_by[method] &&
			    (!first || summary.closed_by[method]->severity > first->severity))
				first = summary.closed_by[method];
	}
	return first;
}

/* ---- in words ---- */

/* "--gpus all, --runtime=nvidia": the methods that a finding closes, or NULL leaves open. */
static void summary_print_methods(FILE *sentence, const struct summary *summary, const struct finding *finding)
{
	const char *separator = "by ";

	for (enum method method = 0; method < METHODS; method++) {
		if (!summary->engine->methods[method][0] || summary->closed_by[method] != finding)
			continue;
		(void)fprintf(sentence, "%s%s", separator, summary->engine->methods[method]);
		separator = ", ";
	}
}

/* Methods that are merely not set up: of an engine that does not work, only the first is told. */
static bool summary_is_worth_printing(const struct summary *summary, enum method method, bool brief)
{
	const struct finding *finding = summary->closed_by[method];
	bool first = !summary->open;

	if (!finding)
		return false;
	for (enum method i = 0; i < METHODS; i++) {
		if (i < method && summary->closed_by[i] == finding)
			return false;
		if (summary->closed_by[i] && (i < method || summary->closed_by[i]->severity > SEVERITY_NOTE))
			first = false;
	}
	return first || (summary->works && !brief) || finding->severity > SEVERITY_NOTE;
}

char *summary_text(const struct findings *findings, const struct summary *summary, bool brief)
{
	const char *separator = "";
	struct memstream stream;
	FILE *sentence = memstream_open(&stream);
	size_t reasons = 0;
	char *text;

	if (!sentence)
		return NULL;
	if (findings_block(findings) && !brief) {
		(void)fprintf(sentence, "no, as above");
		separator = "; then ";
	}
	if (summary->open && (summary->works || !brief)) {
		(void)fprintf(sentence, "%syes ", separator);
		summary_print_methods(sentence, summary, NULL);
		separator = "; ";
	}
	for (enum method method = 0; method < METHODS; method++)
		reasons += summary_is_worth_printing(summary, method, brief);
	for (enum method method = 0; method < METHODS; method++) {
		if (!summary_is_worth_printing(summary, method, brief))
			continue;
		(void)fputs(separator, sentence);
		if (summary->open || reasons > 1) {
			summary_print_methods(sentence, summary, summary->closed_by[method]);
			(void)fputc(' ', sentence);
		}
		(void)fprintf(sentence, "no, because %s", summary->closed_by[method]->text);
		separator = "; ";
	}
	return memstream_close(&stream, &text, NULL) == 0 ? text : NULL;
}

/* If a method is open, the others need not be set up. */
const char *summary_remedy(const struct summary *summary)
{
	const struct finding *first = NULL;

	for (enum method method = 0; method < METHODS; method++) {
		const struct finding *finding = summary->closed_by[method];

		if (finding && finding->remedy && (!summary->open || finding->severity >= SEVERITY_WARNING) &&
		    (!first || finding->severity > first->severity))
			first = finding;
	}
	return first ? first->remedy : NULL;
}

/* ---- JSON ---- */

static json_t *summary_to_json(const struct findings *findings, const struct host_engine *engine)
{
	struct summary summary = summary_make(findings, engine);
	const struct finding *block = findings_block(findings);
	json_t *methods = json_array();

	for (enum method method = 0; method < METHODS; method++) {
		const struct finding *because = block ? block : summary.closed_by[method];

		if (engine->methods[method][0])
			(void)json_array_append_new(methods,
						    json_pack("{s:s, s:s, s:b, s:o}", "id", method_names[method], "use",
							      engine->methods[method], "works", !because, "because",
							      print_string(because ? because->id : NULL)));
	}
	return json_pack("{s:s, s:s+, s:b, s:o}", "id", engine->id, "name", engine->label, engine->state, "works",
			 summary.works, "doors", methods);
}

json_t *summaries_to_json(const struct findings *findings)
{
	return print_array(i, findings->engine_count, summary_to_json(findings, &findings->engines[i]));
}

/* ---- methods ---- */

/* Each engine, and each method to ask it for a GPU: the table of the functions that find what is in the way. */

/* The program that `ctr run --gpus` and others start by this name. */
static void method_check_cli(struct engine_check *check)
{
	_cleanup_program_ struct program program = {0};

	if (!engine_check_find_program(check, "nvidia-container-cli", &program))
		engine_check_add(check, "no-cli", SEVERITY_NOTE, METHOD(CLI),
				 "nvidia-container-cli is missing\n"
				 "Install ctr-gpu-nvidia-compat, which has the name nvidia-container-cli.");
	else if (!program.ours)
		engine_check_add(check, "other-toolkit", SEVERITY_NOTE, 0, "%s is another toolkit's", program.path);
}

/* Where --gpus stands for CDI devices, it means those of nvidia.com/gpu, and in newer engines those of AMD. */
static void method_check_gpus(struct engine_check *check)
{
	const struct strv *kinds = engine_check_kinds(check);
	bool amd = check->engine->gpus_amd && engine_version_number(check->version) >= check->engine->gpus_amd;

	if (!strv_contains(kinds, "nvidia.com/gpu") && (!amd || !strv_contains(kinds, "amd.com/gpu")))
		engine_check_add(check, "no-kind", SEVERITY_NOTE, METHOD(GPUS),
				 "no CDI spec has the kind nvidia.com/gpu%s\n"
				 "sudo ctr-gpu cdi generate",
				 amd ? " or amd.com/gpu" : "");
}

static void (*const method_checks[METHODS])(struct engine_check *check) = {
	[METHOD_GPUS] = method_check_gpus,
	[METHOD_HOOK] = engine_check_method_hooks,
	[METHOD_RUNTIME] = engine_check_method_runtime,
	[METHOD_CDI] = engine_check_method_cdi,
	[METHOD_CLI] = method_check_cli,
};

static void method_check_engine(struct doctor_context *examination, const struct engine *engine)
{
	_cleanup_engine_check_ struct engine_check check = ENGINE_CHECK_NONE;

	if (!engine_check_begin(examination, engine, &check))
		return;
	engine_check_describe(&check);
	engine_check_method_config(&check);
	for (enum method method = 0; method < METHODS; method++) {
		if (!engine->uses[method] ||
		    (method == METHOD_GPUS && engine_version_number(check.version) < engine->gpus_nvidia))
			continue;
		engine_check_add_method(&check, method);
		method_checks[method](&check);
	}
	engine_check_age(&check);
	engine_check_running(&check);
}

/* k3s and others bring an engine, which is here while they run. */
static void method_add_no_engine(struct findings *findings)
{
	const struct engine_node *node = engine_node_find();

	if (node && node->restart)
		findings_add(findings, "engines.none", SEVERITY_PROBLEM,
			     "the containerd of %s does not run, and no other container engine is installed\n"
			     "%s",
			     node->label, node->restart);
	else
		findings_add(findings, "engines.none", SEVERITY_PROBLEM,
			     "no container engine is installed\n"
			     "Install Docker or Podman, then: sudo ctr-gpu setup docker, or podman.");
}

void check_engines(struct doctor_context *examination)
{
	check_docker_desktop(examination);
	check_docker(examination);
	for (const struct engine *const *engine = engine_list; *engine; engine++)
		if (*engine != &engine_docker && *engine != &engine_buildkit)
			method_check_engine(examination, *engine);
	if (examination->findings.engine_count == 0)
		method_add_no_engine(&examination->findings);
}
