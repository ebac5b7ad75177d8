/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/doctor/engine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "cli/doctor/doctor.h"

static void engine_clear(struct host_engine *engine)
{
	free(engine->id);
	free(engine->label);
	free(engine->state);
	for (size_t i = 0; i < DOORS; i++)
		free(engine->doors[i]);
}

void engines_clear(struct engines *engines)
{
	for (size_t i = 0; i < engines->count; i++)
		engine_clear(&engines->items[i]);
	free(engines->items);
	*engines = (struct engines){0};
}

/* Takes @engine over. Return: where it is now. */
static struct host_engine *engines_take(struct engines *engines, struct host_engine *engine)
{
	static struct host_engine none;
	struct host_engine *items = NULL;

	if (engine->id && engine->label && engine->state)
		items = array_grow(engines->items, engines->count, sizeof(*items));
	if (!items) {
		engine_clear(engine);
		engines->incomplete = true;
		engine_clear(&none);
		none = (struct host_engine){0};
		return &none;
	}
	engines->items = items;
	items[engines->count] = *engine;
	return &items[engines->count++];
}

struct host_engine *engines_add(struct engines *engines, const char *id, const char *label, const char *state_format, ...)
{
	struct host_engine engine = {.id = strdup(id), .label = strdup(label)};
	va_list arguments;

	va_start(arguments, state_format);
	if (vasprintf(&engine.state, state_format, arguments) < 0)
		engine.state = NULL;
	va_end(arguments);
	return engines_take(engines, &engine);
}

void engine_has(struct host_engine *engine, enum door door, const char *format, ...)
{
	va_list arguments;

	free(engine->doors[door]);
	va_start(arguments, format);
	if (vasprintf(&engine->doors[door], format, arguments) < 0)
		engine->doors[door] = NULL;
	va_end(arguments);
}

void engine_has_cdi(struct host_engine *engine, const struct examination *examination, const char *option)
{
	static const char preferred[] = "nvidia.com/gpu";
	const struct strv *kinds = &examination->cdi_kinds;

	engine_has(engine, DOOR_CDI, "%s %s=all", option,
		   kinds->count == 0 || strv_contains(kinds, preferred) ? preferred : kinds->items[0]);
}

/* ---- JSON, from one process to another ---- */

json_t *engines_to_json(const struct engines *engines)
{
	json_t *array = json_array();

	for (size_t i = 0; i < engines->count; i++) {
		const struct host_engine *engine = &engines->items[i];
		json_t *doors = json_array();

		for (size_t j = 0; j < DOORS; j++)
			(void)json_array_append_new(doors, report_string(engine->doors[j]));
		if (json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:o}", "id", engine->id, "label", engine->label, "state",
							   engine->state, "doors", doors)) < 0)
			return json_decref(array), NULL;
	}
	return array;
}

static char *copy(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? strdup(text) : NULL;
}

int engines_from_json(const json_t *array, struct engines *engines)
{
	const json_t *item;
	size_t i;

	json_array_foreach((json_t *)array, i, item) {
		struct host_engine engine = {.id = copy(item, "id"), .label = copy(item, "label"), .state = copy(item, "state")};
		const json_t *doors = json_object_get(item, "doors");

		for (size_t j = 0; j < DOORS; j++) {
			const char *door = json_string_value(json_array_get(doors, j));

			engine.doors[j] = door ? strdup(door) : NULL;
		}
		(void)engines_take(engines, &engine);
	}
	return engines->incomplete ? -ENOMEM : 0;
}

/* ---- which there are ---- */

int engine_find_daemon(const char *name, bool (*wanted)(const struct daemon *daemon), struct daemon *ret_daemon, struct rootfs *ret_root)
{
	if (daemon_find(name, 0, wanted, ret_daemon) == 0 && ret_daemon->pid == 0 && geteuid() != 0)
		(void)daemon_find(name, geteuid(), wanted, ret_daemon);
	return daemon_open_root(ret_daemon, ret_root);
}

void check_engines(struct examination *examination)
{
	static void (*const checks[])(struct examination *) = {
		check_docker_desktop, check_docker, check_podman, check_containerd, check_crio, check_lxc, check_apptainer,
	};

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		checks[i](examination);
	if (examination->engines.count > 0)
		return;
	findings_add(&examination->findings, "engines.none", SEVERITY_PROBLEM, "no container engine is installed");
	findings_advise(&examination->findings, "Install Docker or Podman, then: sudo ctr-gpu setup docker, or podman.");
}
