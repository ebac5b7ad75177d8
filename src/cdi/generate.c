/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a host to a spec. The engine is told what it must do itself: device nodes, by path, since numbers of /dev/dxg
 * and of NVIDIA's nodes change from boot to boot. The hook does everything else, from the host as it is when a
 * container starts. So a spec stays valid after a driver update. A spec without the hook contains the plan itself.
 */

#include <errno.h>
#include <string.h>

#include "cdi/cdi.h"
#include "cdi/spec.h"
#include "ctr-gpu.h"
#include "lib/context.h"
#include "plan/plan.h"

struct generation {
	struct ctr_gpu_context *context;
	const struct ctr_gpu_host *host;
	const struct cdi_options *wish;
	struct strv names;        /* of devices so far */
	struct strv library_dirs; /* of all of them */
	bool has_groups;
	json_t *devices;
};

DEFINE_CLEANUP(struct ctr_gpu_plan *, ctr_gpu_plan_unref)
#define _cleanup_plan_ _cleanup_(ctr_gpu_plan_unrefp)

static int cdi_generate_append(json_t *array, json_t *item)
{
	return json_array_append_new(array, item) < 0 ? -ENOMEM : 0;
}

/* ---- which adapters ---- */

static bool cdi_generate_is_slot(const char *kind)
{
	return streq(kind, DEVICE_NAME_SLOT_KIND);
}

static bool cdi_generate_is_vcuda(const char *kind)
{
	return streq(kind, DEVICE_NAME_VCUDA_KIND) || cdi_generate_is_slot(kind);
}

/* By vCUDA, which is for NVIDIA's GPUs that are not divided. */
static bool cdi_generate_can_serve(const struct inventory *inventory, const struct adapter *adapter)
{
	return adapter->vendor_id == PCI_VENDOR_NVIDIA && !inventory_divides(inventory, adapter);
}

static int cdi_generate_add_vcuda_kinds(const struct ctr_gpu_host *host, struct strv *ret)
{
	int r;

	for (size_t i = 0; i < host->inventory.count && host->settings->vcuda_mode != VCUDA_OFF; i++)
		if (host->inventory.adapters[i].index >= 0 &&
		    cdi_generate_can_serve(&host->inventory, &host->inventory.adapters[i])) {
			r = strv_add(ret, DEVICE_NAME_VCUDA_KIND);
			return r == 0 && host->settings->vcuda_slots > 0 ? strv_add(ret, DEVICE_NAME_SLOT_KIND) : r;
		}
	return 0;
}

/* Where vCUDA is forced, no specification may have device nodes. */
int cdi_kinds(const struct ctr_gpu_host *host, struct strv *ret)
{
	bool devices = host->settings->vcuda_mode != VCUDA_FORCE;

	for (size_t i = 0; devices && i < host->inventory.count && host->inventory.adapters[i].index >= 0; i++) {
		_cleanup_free_ char *kind = NULL;
		const char *domain = adapter_domain(&host->inventory.adapters[i]);

		if (!domain)
			continue;
		if (str_format(&kind, "%s/%s", domain, host->inventory.adapters[i].is_npu ? "npu" : "gpu") < 0)
			return -ENOMEM;
		if (!strv_contains(ret, kind) && strv_add(ret, kind) < 0)
			return -ENOMEM;
	}
	return cdi_generate_add_vcuda_kinds(host, ret);
}

/* ---- edits ---- */

static json_t *cdi_generate_nodes(const struct plan *plan)
{
	json_t *nodes = json_array();

	for (size_t i = 0; i < plan->device_count; i++)
		if (cdi_generate_append(nodes, json_pack("{s:s, s:s}", "path", plan->devices[i].path, "permissions",
							 plan->devices[i].access)) < 0)
			return json_decref(nodes), NULL;
	return nodes;
}

static json_t *cdi_generate_mount(const char *source, const char *target, unsigned flags)
{
	return json_pack("{s:s, s:s, s:o}", "hostPath", source, "containerPath", target, "options",
			 plan_mount_options(flags));
}

static json_t *cdi_generate_mounts(const struct plan *plan)
{
	json_t *mounts = json_array();
	int r = 0;

	for (size_t i = 0; i < plan->mount_count && r == 0; i++) {
		const struct plan_mount *mount = &plan->mounts[i];

		/* A daemon may not run when a container starts, and a spec has no optional mounts: no sockets. */
		if (!str_has_prefix(mount->source, "/run/") && !str_has_prefix(mount->source, "/var/run/") &&
		    !str_has_prefix(mount->source, "/tmp/"))
			r = cdi_generate_append(mounts, cdi_generate_mount(mount->source, mount->target, mount->flags));
	}
	/* What a link beside its target would have led to is mounted in the link's place, too. */
	for (size_t i = 0; i < plan->symlink_count && r == 0; i++) {
		const struct plan_symlink *link = &plan->symlinks[i];
		size_t folder = (size_t)(strrchr(link->path, '/') + 1 - link->path);

		for (size_t j = 0; j < plan->mount_count && r == 0 && !strchr(link->points_to, '/'); j++)
			if (strncmp(plan->mounts[j].target, link->path, folder) == 0 &&
			    streq(plan->mounts[j].target + folder, link->points_to))
				r = cdi_generate_append(mounts, cdi_generate_mount(plan->mounts[j].source, link->path,
										   plan->mounts[j].flags));
	}
	return r == 0 ? mounts : (json_decref(mounts), NULL);
}

/* Appends NAME=VALUE. */
static int cdi_generate_add_variable(json_t *env, const char *name, const struct strv *values, const char *separator)
{
	_cleanup_free_ char *value = NULL;

	if (strv_join(values, separator, &value) < 0)
		return -ENOMEM;
	return cdi_generate_append(env, json_sprintf("%s=%s", name, value));
}

static int cdi_generate_add_capabilities(const struct generation *generation, json_t *env)
{
	_cleanup_strv_ struct strv capabilities = {0};

	if (request_list_capabilities(generation->wish->request, &capabilities) < 0)
		return -ENOMEM;
	return cdi_generate_add_variable(env, CDI_CAPABILITIES_VARIABLE, &capabilities, ",");
}

/* The hook clears its environment; what is in it says how the spec was made, and that nothing of the image is. */
static json_t *cdi_generate_hooks(const struct generation *generation, const char *device)
{
	json_t *env = json_pack("[s]", "CTR_GPU_HOOK=cdi");

	if (env && generation->wish->request->capabilities != CAPABILITY_DEFAULT &&
	    cdi_generate_add_capabilities(generation, env) < 0)
		env = (json_decref(env), NULL);
	return json_pack("[{s:s, s:s, s:[s, o, s], s:o, s:i}]", "hookName", "createRuntime", "path",
			 generation->wish->hook, "args", CDI_HOOK_NAME, json_sprintf("--device=%s", device),
			 "createRuntime", "env", env, "timeout", settings_hook_timeout(&generation->context->settings));
}

/*
 * Variables of a device. In an engine they replace the container's own, and another device's. So a device has only
 * variables that the specification's capabilities need, and that are right whatever other devices the container has.
 */
static json_t *cdi_generate_device_env(const struct plan *plan)
{
	json_t *env = json_array();

	for (size_t i = 0; i < plan->env_count; i++)
		if (plan->env[i].combines &&
		    cdi_generate_append(env, json_sprintf("%s=%s", plan->env[i].name, plan->env[i].value)) < 0)
			return json_decref(env), NULL;
	return env;
}

/* ---- devices ---- */

/* Without a hook it is not known whether an image has what this machine lacks. */
static int cdi_generate_check_obstacles(const struct generation *generation, const struct plan *plan)
{
	return plan->obstacle_count == 0
		       ? 0
		       : err_set_advised(&generation->context->err, CTR_GPU_E_DRIVER_LIBRARY,
					 ("%s", plan->obstacles[0].reason), ("%s", plan->obstacles[0].remedy));
}

/* Without a hook the guard does not learn a container's cgroup, so it is not checked whether the guard holds. */
static int cdi_generate_plan_unhooked(struct generation *generation, struct ctr_gpu_request *request,
				      struct ctr_gpu_plan **ret)
{
	struct settings *settings = &generation->context->settings;
	const enum choice_grade wanted = settings->choice;
	int r;

	if (wanted != CHOICE_STORE)
		settings->choice = CHOICE_ENVIRONMENT;
	r = ctr_gpu_plan_new(generation->context, request, generation->host, ret);
	settings->choice = wanted;
	if (r == 0)
		r = cdi_generate_check_obstacles(generation, &(*ret)->data);
	for (size_t i = 0; r == 0 && i < (*ret)->data.claim_count; i++)
		log_warning(&settings->log, "without hooks, GPU %s is not exclusive", (*ret)->data.claims[i].name);
	if (r != 0 || !(*ret)->data.choice.grade)
		return r;
	if (wanted == CHOICE_STRICT)
		return err_set_advised(&generation->context->err, CTR_GPU_E_GUARD,
				       ("a specification without hooks cannot hold the choice of a GPU"),
				       ("Leave out --no-hooks, or set \"choice\" to \"auto\" (ctr-gpu-config(5))."));
	if (wanted == CHOICE_GUARD)
		log_warning(&settings->log, "without hooks a container that chooses a GPU can reach the others");
	return 0;
}

/* The plan for some adapters, whose library directories are remembered. A spec without hooks needs all of it. */
static int cdi_generate_plan(struct generation *generation, const char *devices, uint32_t capabilities,
			     struct ctr_gpu_plan **ret)
{
	struct ctr_gpu_request request = {.context = generation->context, .data = *generation->wish->request};
	int r;

	request.data.devices = (struct device_names){0};
	request.data.nodes_only = generation->wish->hook != NULL;
	request.data.capabilities = capabilities;
	if (cdi_generate_is_vcuda(generation->wish->kind))
		request.data.mode = REQUEST_VCUDA;
	r = request_set_devices(&request.data, devices);
	if (r == 0)
		r = generation->wish->hook ? ctr_gpu_plan_new(generation->context, &request, generation->host, ret)
					   : cdi_generate_plan_unhooked(generation, &request, ret);
	device_names_clear(&request.data.devices);
	for (size_t i = 0; r == 0 && i < (*ret)->data.library_dir_count; i++)
		if (!strv_contains(&generation->library_dirs, (*ret)->data.library_dirs[i].path))
			r = strv_add(&generation->library_dirs, (*ret)->data.library_dirs[i].path);
	return r;
}

static json_t *cdi_generate_list_groups(const struct plan *plan)
{
	json_t *groups = json_array();

	for (size_t i = 0; i < plan->device_count; i++) {
		bool listed = !plan->devices[i].group;

		for (size_t j = 0; j < i && !listed; j++)
			listed = plan->devices[j].group == plan->devices[i].group;
		if (!listed && cdi_generate_append(groups, json_integer(plan->devices[i].group)) < 0)
			return json_decref(groups), NULL;
	}
	return groups;
}

/* A container may ask the hook for any part of the driver, and a hook can give no group. */
static int cdi_generate_add_groups(struct generation *generation, const char *device, json_t *edits)
{
	const struct request *request = generation->wish->request;
	_cleanup_plan_ struct ctr_gpu_plan *plan = NULL;
	_cleanup_json_ json_t *groups = NULL;
	int r;

	if (!request->groups)
		return 0;
	r = cdi_generate_plan(generation, device, generation->wish->hook ? CAPABILITY_ALL : request->capabilities,
			      &plan);
	if (r != 0)
		return r;
	groups = cdi_generate_list_groups(&plan->data);
	if (!groups)
		return -ENOMEM;
	generation->has_groups = generation->has_groups || json_array_size(groups) > 0;
	return json_array_size(groups) == 0 ? 0 : json_object_set(edits, "additionalGids", groups) < 0 ? -ENOMEM : 0;
}

/* @name in the spec for what the hook knows as @device. */
static int cdi_generate_add_device(struct generation *generation, const char *name, const char *device,
				   const struct plan *plan)
{
	json_t *edits, *env;
	int r;

	if (strv_contains(&generation->names, name) || !cdi_is_device_name(name))
		return 0;
	edits = generation->wish->hook ? json_pack("{s:o, s:o}", "deviceNodes", cdi_generate_nodes(plan), "hooks",
						   cdi_generate_hooks(generation, device))
				       : json_pack("{s:o, s:o}", "deviceNodes", cdi_generate_nodes(plan), "mounts",
						   cdi_generate_mounts(plan));
	env = cdi_generate_device_env(plan);
	if (json_array_size(env) > 0)
		(void)json_object_set(edits, "env", env);
	json_decref(env);
	r = env ? cdi_generate_add_groups(generation, device, edits) : -ENOMEM;
	if (r != 0) {
		json_decref(edits);
		return r;
	}
	if (cdi_generate_append(generation->devices, json_pack("{s:s, s:o}", "name", name, "containerEdits", edits)) <
	    0)
		return -ENOMEM;
	return strv_add(&generation->names, name);
}

static int cdi_generate_add_name(struct generation *generation, const char *name, const struct plan *plan)
{
	_cleanup_free_ char *device = NULL;

	if (!name)
		return 0;
	if (str_format(&device, "%s=%s", generation->wish->kind, name) < 0)
		return -ENOMEM;
	return cdi_generate_add_device(generation, name, device, plan);
}

/* A part has the address of its whole, and two GPU-PV partitions of one GPU have the same: then it names neither. */
static bool cdi_generate_has_own_address(const struct generation *generation, const struct adapter *adapter)
{
	const struct inventory *inventory = &generation->host->inventory;
	size_t count = 0;

	for (size_t i = 0; i < inventory->count && adapter->pci_address; i++)
		count += !inventory->adapters[i].is_part && inventory->adapters[i].pci_address &&
			 streq(inventory->adapters[i].pci_address, adapter->pci_address);
	return !adapter->is_part && count == 1;
}

/* By the UUID alone, which means the same GPU tomorrow. */
static int cdi_generate_add_slots(struct generation *generation, const struct adapter *adapter)
{
	int r = 0;

	for (unsigned i = 0; adapter->uuid && i < generation->host->settings->vcuda_slots && r == 0; i++) {
		_cleanup_plan_ struct ctr_gpu_plan *plan = NULL;
		_cleanup_free_ char *name = NULL, *device = NULL;

		if (str_format(&name, "%s:%u", adapter->uuid, i) < 0 ||
		    str_format(&device, "%s=%s", generation->wish->kind, name) < 0)
			return -ENOMEM;
		r = cdi_generate_plan(generation, device, generation->wish->request->capabilities, &plan);
		if (r == 0)
			r = cdi_generate_add_device(generation, name, device, &plan->data);
	}
	return r;
}

static int cdi_generate_add_adapter(struct generation *generation, const struct adapter *adapter)
{
	_cleanup_plan_ struct ctr_gpu_plan *plan = NULL, *gpu = NULL;
	char number[ADAPTER_NUMBER_SIZE], luid[LUID_TEXT_SIZE];
	const uint32_t capabilities = generation->wish->request->capabilities;
	const char *kind = generation->wish->kind;
	int r;

	adapter_format_number(adapter, number);
	r = cdi_generate_plan(generation, number, capabilities, &plan);
	if (!adapter->is_part)
		(void)snprintf(number, sizeof(number), "%d", selection_number_of(generation->host, kind, adapter));
	if (r == 0)
		r = cdi_generate_add_name(generation, number, &plan->data);
	/* A name that several partitions have means all of them. */
	if (r == 0 && adapter->partitions) {
		r = cdi_generate_plan(generation, adapter->pci_address, capabilities, &gpu);
		if (r == 0)
			r = cdi_generate_add_name(generation, adapter->pci_address, &gpu->data);
		if (r == 0)
			r = cdi_generate_add_name(generation, adapter->uuid, &gpu->data);
		return r == 0 ? cdi_generate_add_name(generation, adapter->alias, &gpu->data) : r;
	}
	if (r == 0)
		r = cdi_generate_add_name(generation, adapter->uuid, &plan->data);
	if (r == 0)
		r = cdi_generate_add_name(generation, adapter->alias, &plan->data);
	luid_format(adapter->luid, luid);
	if (r == 0 && adapter->has_luid)
		r = cdi_generate_add_name(generation, luid, &plan->data);
	if (r == 0 && cdi_generate_has_own_address(generation, adapter))
		r = cdi_generate_add_name(generation, adapter->pci_address, &plan->data);
	return r;
}

/* What the hook must be told so that it gives what "all" of this spec has. */
static int cdi_generate_name_all(const struct generation *generation, const struct selection *selection, char **ret)
{
	_cleanup_strv_ struct strv names = {0};
	int r = 0;

	if (generation->wish->request->kind == REQUEST_ALL)
		return str_format(ret, "%s=all", generation->wish->kind);
	for (size_t i = 0; i < selection->count && r == 0; i++) {
		char number[ADAPTER_NUMBER_SIZE];

		adapter_format_number(selection->adapters[i], number);
		r = strv_add(&names, number);
	}
	return r == 0 ? strv_join(&names, ",", ret) : r;
}

/* A spec can say where a file comes from, and not what is in it. */
static void cdi_generate_warn(const struct generation *generation, const struct plan *plan)
{
	for (size_t i = 0; i < plan->warnings.count && generation->wish->hook; i++)
		log_warning(&generation->context->settings.log, "%s", plan->warnings.items[i]);
	for (size_t i = 0; i < plan->file_count && !generation->wish->hook; i++)
		if (!plan->files[i].on_procfs)
			log_warning(&generation->context->settings.log,
				    "%s is not in the spec, since only a hook can make it: %s", plan->files[i].target,
				    plan->files[i].reason);
}

static int cdi_generate_add_all(struct generation *generation, const struct selection *selection)
{
	_cleanup_plan_ struct ctr_gpu_plan *plan = NULL;
	_cleanup_free_ char *device = NULL;
	int r;

	r = cdi_generate_name_all(generation, selection, &device);
	if (r == 0)
		r = cdi_generate_plan(generation, device, generation->wish->request->capabilities, &plan);
	if (r == 0)
		cdi_generate_warn(generation, &plan->data);
	return r == 0 ? cdi_generate_add_device(generation, "all", device, &plan->data) : r;
}

/* The wanted adapters that are of the spec's kind, in an array of its own. */
static int cdi_generate_select_adapters(const struct generation *generation, struct selection *ret)
{
	const char *kind = generation->wish->kind;
	size_t kept = 0, vendor = strcspn(kind, "/");
	bool all = !adapter_find_domain(kind, vendor), npus = streq(kind + vendor, "/npu");
	bool vcuda = cdi_generate_is_vcuda(kind);
	struct request request = *generation->wish->request;
	struct device_name name;
	char every[] = "npu:all";
	int r;

	if (npus && request.kind == REQUEST_ALL) {
		request.kind = REQUEST_SOME;
		device_name_read(every, &name);
		request.devices = (struct device_names){&name, 1};
	}
	r = selection_new(generation->host, &request, ret, &generation->context->err);
	if (r != 0)
		return r;
	for (size_t i = 0; i < ret->count; i++) {
		const char *domain = adapter_domain(ret->adapters[i]);

		if (ret->adapters[i]->is_npu == npus &&
		    (!vcuda || cdi_generate_can_serve(&generation->host->inventory, ret->adapters[i])) &&
		    (all || (domain && strlen(domain) == vendor && strncmp(domain, kind, vendor) == 0)))
			ret->adapters[kept++] = ret->adapters[i];
	}
	ret->count = kept;
	if (kept > 0)
		return 0;
	return err_set_advised(&generation->context->err, CTR_GPU_E_NO_ADAPTER,
			       ("no adapter of this host is one of %.*s", (int)strcspn(kind, "/"), kind),
			       ("ctr-gpu info lists the adapters."));
}

static int cdi_generate_add_devices(struct generation *generation)
{
	const struct inventory *inventory = &generation->host->inventory;
	_cleanup_selection_ struct selection selection = {0};
	bool has_parts = !cdi_generate_is_vcuda(generation->wish->kind);
	int r;

	/* A name that the driver does not tell is left out. */
	r = host_identify(generation->host, &generation->context->err);
	r = r == -ENOMEM ? r : cdi_generate_select_adapters(generation, &selection);
	if (cdi_generate_is_slot(generation->wish->kind)) {
		for (size_t i = 0; i < selection.count && r == 0; i++)
			r = cdi_generate_add_slots(generation, selection.adapters[i]);
		return r == 0 && generation->names.count == 0
			       ? err_set_advised(&generation->context->err, CTR_GPU_E_UNKNOWN_DEVICE,
						 ("slots have the UUIDs of their GPUs, which the driver does not tell"),
						 ("ctr-gpu doctor says whether the driver's libraries answer."))
			       : r;
	}
	for (size_t i = 0; i < selection.count && r == 0; i++)
		r = cdi_generate_add_adapter(generation, selection.adapters[i]);
	/* The parts of selected GPUs, which "all" does not mean but which have names of their own. */
	for (size_t i = 0; i < inventory->count && r == 0; i++)
		for (size_t j = 0; j < selection.count && r == 0 && has_parts && inventory->adapters[i].is_part; j++)
			if (selection.adapters[j]->index == inventory->adapters[i].whole &&
			    inventory->adapters[i].whole >= 0)
				r = cdi_generate_add_adapter(generation, &inventory->adapters[i]);
	return r == 0 ? cdi_generate_add_all(generation, &selection) : r;
}

/* ---- the spec ---- */

/*
 * An engine may run a hook of ours or NVIDIA's for every container: the image's own NVIDIA_VISIBLE_DEVICES must not
 * make it act, too. Without the hook the loader cache is missing, and the container cannot choose parts of the driver.
 */
static json_t *cdi_generate_env(const struct generation *generation)
{
	json_t *env = json_pack("[s]", CDI_DEVICES_VARIABLE "=void");

	if (env && str_has_prefix(generation->wish->kind, DOMAIN_AMD "/") &&
	    cdi_generate_append(env, json_string("AMD_VISIBLE_DEVICES=void")) < 0)
		return json_decref(env), NULL;
	if (!env || generation->wish->hook)
		return env;
	/* Without libraries of the host, neither variable means anything. */
	if (generation->library_dirs.count > 0 &&
	    (cdi_generate_add_capabilities(generation, env) < 0 ||
	     cdi_generate_add_variable(env, "LD_LIBRARY_PATH", &generation->library_dirs, ":") < 0))
		return json_decref(env), NULL;
	return env;
}

/* Once for a container, however many of the devices it has. */
static json_t *cdi_generate_edits(const struct generation *generation)
{
	json_t *env = cdi_generate_env(generation);

	if (!generation->wish->hook)
		return json_pack("{s:o}", "env", env);
	return json_pack("{s:o, s:[{s:s, s:s, s:[s, s], s:[s], s:i}]}", "env", env, "hooks", "hookName", "poststop",
			 "path", generation->wish->hook, "args", CDI_HOOK_NAME, "poststop", "env", "CTR_GPU_HOOK=cdi",
			 "timeout", settings_hook_timeout(&generation->context->settings));
}

/* The lowest version that has all parts of this spec: engines refuse a version that they do not know. */
static const char *cdi_generate_lowest_version(const struct generation *generation)
{
	const char *class = strchr(generation->wish->kind, '/');

	if (generation->has_groups)
		return cdi_versions[CDI_0_7];
	if (strchr(class, '.'))
		return cdi_versions[CDI_0_6];
	for (size_t i = 0; i < generation->names.count; i++)
		if (generation->names.items[i][0] >= '0' && generation->names.items[i][0] <= '9')
			return cdi_versions[CDI_0_5];
	return cdi_versions[CDI_0_3];
}

/* Whether there can be such a spec on this host. */
static int cdi_generate_check_wish(const struct generation *generation)
{
	const struct cdi_options *options = generation->wish;
	struct err *err = &generation->context->err;

	if (cdi_generate_is_vcuda(options->kind) && !options->hook)
		return err_set_advised(
			err, CTR_GPU_E_BAD_ARGUMENT,
			("a spec of " DEVICE_NAME_VCUDA_KIND " needs the hook, which asks vCUDA's manager"),
			("Leave --no-hooks out."));
	if (cdi_generate_is_slot(options->kind) && generation->context->settings.vcuda_slots == 0)
		return err_set_advised(
			err, CTR_GPU_E_BAD_ARGUMENT,
			("GPUs of this host have no slots, of which " DEVICE_NAME_SLOT_KIND " would be a spec"),
			("Make them in /etc/ctr-gpu/config.json: {\"vcuda\": {\"slots\": 4}}"));
	if (!cdi_generate_is_vcuda(options->kind) && generation->context->settings.vcuda_mode == VCUDA_FORCE)
		return err_set_advised(err, CTR_GPU_E_NO_PERMISSION,
				       ("this host gives GPUs by vCUDA alone, and %.64s is for devices", options->kind),
				       ("Write one with --kind=" DEVICE_NAME_VCUDA_KIND "."));
	return 0;
}

int cdi_generate(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const struct cdi_options *options,
		 json_t **ret)
{
	struct generation generation = {.context = context, .host = host, .wish = options, .devices = json_array()};
	json_t *spec = NULL;
	int r;

	r = generation.devices ? cdi_generate_check_wish(&generation) : -ENOMEM;
	if (r == 0)
		r = cdi_generate_add_devices(&generation);
	if (r == 0) {
		spec = json_pack("{s:s, s:s, s:o, s:O}", "cdiVersion", cdi_generate_lowest_version(&generation), "kind",
				 options->kind, "containerEdits", cdi_generate_edits(&generation), "devices",
				 generation.devices);
		r = spec ? 0 : -ENOMEM;
	}
	json_decref(generation.devices);
	strv_clear(&generation.names);
	strv_clear(&generation.library_dirs);
	if (r == 0)
		*ret = spec;
	return r == -ENOMEM ? err_set(&context->err, r, "%m") : r;
}
