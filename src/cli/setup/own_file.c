/* SPDX-License-Identifier: Apache-2.0 */

/* Engines that read several files, for which ours is a file of its own. */

#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/setup/setup.h"

/* ---- Podman ---- */

/*
 * A file of our own among those of containers.conf(5), the machine's or the user's. Podman has no daemon to reload.
 * Containers that ask by NVIDIA_VISIBLE_DEVICES get their GPUs through the hooks directory, without any of this.
 */

#define PODMAN_FILE "containers/containers.conf.d/99-ctr-gpu.conf"
#define HOOK ENGINE_HOOKS_USR "/" ENGINE_HOOK_FILE

static int podman_look(struct setup *setup)
{
	setup->rootless |= geteuid() != 0;
	return 0;
}

static int podman_edit(struct setup *setup, json_t *file)
{
	return keys_put_runtime(setup, file, "", json_pack("[s]", setup->runtime));
}

static void podman_advise(const struct setup *setup, bool changed)
{
	(void)changed;
	if (!setup->remove && access(HOOK, F_OK) < 0 && access(ENGINE_HOOKS_ETC "/" ENGINE_HOOK_FILE, F_OK) < 0)
		setup_print(setup, HOOK " is not there, so NVIDIA_VISIBLE_DEVICES gives GPUs only to containers with "
					"--runtime=nvidia");
}

const struct setup_engine setup_podman = {
	.facts = &engine_podman,
	.file = "/etc/" PODMAN_FILE,
	.user_file = PODMAN_FILE,
	.look = podman_look,
	.edit = podman_edit,
	.advise = podman_advise,
};

/* ---- CRI-O ---- */

/* A file of our own among those that it reads one after the other, the later ones winning. */

#define CRIO_FILE "/etc/crio/crio.conf.d/99-ctr-gpu.conf"

static int crio_look(struct setup *setup)
{
	if (setup->rootless)
		return output_print_advised(("CRI-O runs as root only"), ("Run this without --rootless."));
	return setup_refuse_user(setup);
}

/*
 * The current runtime's settings, such as the monitor's path and the allowed annotations. Ours gets the same, since it
 * starts that runtime. A runtime for virtual machines has settings of its own.
 */
static json_t *crio_model(const struct setup *setup)
{
	const char *chosen = setup->found.default_runtime, *const names[] = {chosen ? chosen : "runc", "runc", "crun"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *runtime = json_object_get(setup->found.runtimes, names[i]);
		const char *type = json_string_value(json_object_get(runtime, "runtime_type"));

		if (json_is_object(runtime) && !(type && streq(type, "vm")))
			return runtime;
	}
	return NULL;
}

static int crio_edit(struct setup *setup, json_t *file)
{
	json_t *there = keys_runtime(&engine_crio, file, ""), *model = there ? there : crio_model(setup);
	_cleanup_json_ json_t *table = model ? json_deep_copy(model) : json_object();

	if (json_object_set_new(table, "runtime_path", json_string(setup->runtime)) < 0 ||
	    json_object_set_new(table, "runtime_type", json_string("oci")) < 0)
		return output_no_memory();
	return keys_put_runtime(setup, file, "", steal_ptr(table));
}

const struct setup_engine setup_crio = {
	.facts = &engine_crio,
	.file = CRIO_FILE,
	.look = crio_look,
	.edit = crio_edit,
};
