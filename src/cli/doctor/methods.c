/* SPDX-License-Identifier: Apache-2.0 */

/* Each engine, and each way to ask it for a GPU: the table of what says what is in its way. */

#include "cli/doctor/doctor.h"

/* The program that `ctr run --gpus` and others start by this name. */
static void method_check_cli(struct engine_check *look)
{
	_cleanup_program_ struct program program = {0};

	if (!engine_check_find_program(look, "nvidia-container-cli", &program))
		engine_check_add(look, "no-cli", SEVERITY_NOTE, METHOD(CLI),
				 "nvidia-container-cli is missing\n"
				 "Install ctr-gpu-nvidia-compat, which has the name nvidia-container-cli.");
	else if (!program.ours)
		engine_check_add(look, "other-toolkit", SEVERITY_NOTE, 0, "%s is another toolkit's", program.path);
}

/* Where --gpus stands for CDI devices, it means those of nvidia.com/gpu alone. */
static void method_check_gpus(struct engine_check *look)
{
	if (!strv_contains(&look->examination->cdi_kinds, "nvidia.com/gpu"))
		engine_check_add(look, "no-kind", SEVERITY_NOTE, METHOD(GPUS),
				 "no CDI spec has the kind nvidia.com/gpu\n"
				 "sudo ctr-gpu cdi generate");
}

static void (*const method_checks[METHODS])(struct engine_check *look) = {
	[METHOD_GPUS] = method_check_gpus,
	[METHOD_HOOK] = engine_check_method_hooks,
	[METHOD_RUNTIME] = engine_check_method_runtime,
	[METHOD_CDI] = engine_check_method_cdi,
	[METHOD_CLI] = method_check_cli,
};

static void method_check_engine(struct doctor_context *examination, const struct engine *engine)
{
	_cleanup_engine_check_ struct engine_check look = ENGINE_CHECK_NONE;

	if (!engine_check_begin(examination, engine, &look))
		return;
	engine_check_describe(&look);
	engine_check_method_config(&look);
	for (enum method method = 0; method < METHODS; method++) {
		if (!engine->uses[method] ||
		    (method == METHOD_GPUS && engine_version_number(look.version) < engine->gpus_nvidia))
			continue;
		engine_check_add_method(&look, method);
		method_checks[method](&look);
	}
	engine_check_age(&look);
	engine_check_running(&look);
}

void check_engines(struct doctor_context *examination)
{
	check_docker_desktop(examination);
	check_docker(examination);
	for (const struct engine *const *engine = engine_list; *engine; engine++)
		if (*engine != &engine_docker && *engine != &engine_buildkit)
			method_check_engine(examination, *engine);
	if (examination->findings.engine_count == 0)
		findings_add(&examination->findings, "engines.none", SEVERITY_PROBLEM,
			     "no container engine is installed\n"
			     "Install Docker or Podman, then: sudo ctr-gpu setup docker, or podman.");
}
