/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/grant/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/str.h"
#include "model/version.h"
#include "system/own_programs.h"

enum { MOST_GPUS = 16 };

static const struct {
	const char *name, *link, *reason;
	bool needed;
} libraries[] = {
	{"libcuda.so.1", "libcuda.so", "CUDA's driver interface, served by vCUDA", true},
	{"libnvidia-ml.so.1", "libnvidia-ml.so", "NVIDIA's management interface, served by vCUDA", false},
};

/* ---- whether ---- */

/* A name that is no word for vCUDA, but ours: taken for another kind's, it would be a device's. */
static int vcuda_refuse_kinds(const struct request *request, struct err *err)
{
	for (size_t i = 0; i < request->devices.count; i++)
		if (str_has_prefix(request->devices.items[i].text, DEVICE_NAME_VCUDA_DOMAIN "/") &&
		    !request->devices.items[i].is_vcuda)
			return err_set_advised(err, CTR_GPU_E_UNKNOWN_DEVICE,
					       ("this host has no device \"%.64s\"", request->devices.items[i].text),
					       ("GPUs by vCUDA are: " DEVICE_NAME_VCUDA_KIND "=0"));
	return 0;
}

/* A specification of another kind has given the container nodes already. Return: NULL if it asks for none. */
static const char *vcuda_find_device(const struct request *request)
{
	for (size_t i = 0; i < request->devices.count && request_count_vcuda(request) == 0; i++)
		if (device_name_has_kind(&request->devices.items[i]))
			return request->devices.items[i].text;
	return NULL;
}

/* What it may not have of another's slot, it may not have beside its own. */
static int vcuda_check_slot(const struct settings *settings, const struct request *request, struct err *err)
{
	const struct device_name *name = request->devices.items;

	if (!request->has_slot)
		return 0;
	if (settings->vcuda_slots == 0)
		return err_set_advised(
			err, CTR_GPU_E_UNKNOWN_DEVICE,
			("the container asks for a slot of a GPU, and this host's GPUs have none"),
			("Its administrator makes them in /etc/ctr-gpu/config.json: {\"vcuda\": {\"slots\": 4}}"));
	if (request->kind != REQUEST_SOME || request->devices.count != 1)
		return err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT,
				       ("the container asks for a slot of a GPU and for something else"),
				       ("A container with a slot has no other GPU and no second slot."));
	if (name->slot < 0 || name->slot >= (long)settings->vcuda_slots)
		return err_set_advised(
			err, CTR_GPU_E_UNKNOWN_DEVICE, ("this host has no such slot of %.64s", name->text),
			("Slots of a GPU are: " DEVICE_NAME_SLOT_KIND "=UUID:0 to UUID:%u", settings->vcuda_slots - 1));
	return 0;
}

int vcuda_decide(const struct settings *settings, const struct request *request, bool *ret, struct err *err)
{
	const char *device = vcuda_find_device(request);
	size_t named = request_count_vcuda(request);
	bool asked = named > 0 || request->has_slot || request->mode == REQUEST_VCUDA;
	int r;

	if (vcuda_refuse_kinds(request, err))
		return CTR_GPU_E_UNKNOWN_DEVICE;
	if (named > 0 && named < request->devices.count)
		return err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT,
				       ("some of the container's GPUs are asked for by vCUDA and others as devices"),
				       ("Name all by one kind: " DEVICE_NAME_VCUDA_KIND "=0 or nvidia.com/gpu=0."));
	if (asked && settings->vcuda_mode == VCUDA_OFF)
		return err_set_advised(err, CTR_GPU_E_NO_PERMISSION,
				       ("the container asks for its GPUs by vCUDA, which this host does not offer"),
				       ("Its administrator allows it in /etc/ctr-gpu/config.json: {\"vcuda\": "
					"{\"mode\": \"allow\"}}"));
	r = vcuda_check_slot(settings, request, err);
	if (r != 0)
		return r;
	/* By default the specifications of other kinds have no nodes. */
	if (device && settings->vcuda_mode == VCUDA_ALLOW && request->mode == REQUEST_VCUDA)
		return err_set_advised(
			err, CTR_GPU_E_BAD_ARGUMENT,
			("the container asks for %.64s, a device, and by CTR_GPU_MODE=vcuda for none", device),
			("Ask for one of them; by vCUDA: --device " DEVICE_NAME_VCUDA_KIND "=0"));
	if (settings->vcuda_mode != VCUDA_FORCE) {
		*ret = asked || (settings->vcuda_mode == VCUDA_DEFAULT && request->mode != REQUEST_DEVICE);
		return 0;
	}
	if (device)
		return err_set_advised(err, CTR_GPU_E_NO_PERMISSION,
				       ("this host gives GPUs by vCUDA alone, and not as %.64s", device),
				       ("Ask for: --device " DEVICE_NAME_VCUDA_KIND "=all"));
	*ret = true;
	return 0;
}

/* ---- the client library ---- */

char *vcuda_find_client(const char *name)
{
	static const char *const places[] = {"../lib/ctr-gpu/vcuda", "../lib/vcuda"};
	char *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(places) && !found; i++) {
		_cleanup_free_ char *relative = NULL, *path = NULL;

		if (str_format(&relative, "%s/%s", places[i], name) < 0)
			return NULL;
		path = own_programs_beside(relative);
		found = path ? realpath(path, NULL) : NULL;
	}
	return found;
}

static int vcuda_add_library(size_t number, struct strv *names, struct plan *plan, struct err *err)
{
	const char *name = libraries[number].name;
	struct plan_mount mount = {.kind = PLAN_LIBRARY, .source = vcuda_find_client(name)};
	struct plan_symlink link = {0};
	struct stat st;
	int r;

	if (!mount.source || stat(mount.source, &st) < 0) {
		free(mount.source);
		return !libraries[number].needed
			       ? 0
			       : err_set_advised(err, -ENOENT, ("vCUDA's client library %s is missing", name),
						 ("Install the package ctr-gpu-vcuda."));
	}
	mount.device = st.st_dev;
	mount.inode = st.st_ino;
	mount.reason = strdup(libraries[number].reason);
	(void)str_format(&mount.target, VCUDA_LIBRARY_DIR "/%s", name);
	r = plan_add_mount(plan, &mount);
	if (r == 0)
		r = strv_add(names, name);
	if (r == 0)
		r = strv_add(names, libraries[number].link);
	(void)str_format(&link.path, VCUDA_LIBRARY_DIR "/%s", libraries[number].link);
	link.points_to = strdup(name);
	link.reason = strdup("the name that programs are linked with");
	return r == 0 ? plan_add_symlink(plan, &link) : r;
}

static int vcuda_add_client(struct plan *plan, struct err *err)
{
	_cleanup_strv_ struct strv names = {0};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(libraries) && r == 0; i++)
		r = vcuda_add_library(i, &names, plan, err);
	if (r == 0)
		r = plan_add_library_dir(plan, &(struct plan_library_dir){
						       .path = strdup(VCUDA_LIBRARY_DIR),
						       .overrides_image = true,
						       .libraries = steal_struct(&names),
						       .reason = strdup("vCUDA's client libraries"),
					       });
	/* What tells of GPUs that the container has not; it lacks nothing without. */
	return r == 0 ? plan_add_hidden(plan,
					&(struct plan_hidden){
						.path = strdup(PATH_PROC_NVIDIA),
						.reason = strdup("the GPUs of the host are not the container's"),
					})
		      : r;
}

/* The host's nvidia-smi, which is of the driver's version and asks ours, where containers with devices get it. */
static int vcuda_add_smi(const struct plan *native, struct plan *plan)
{
	for (size_t i = 0; i < native->mount_count; i++) {
		const struct plan_mount *program = &native->mounts[i];
		const char *name = strrchr(program->target, '/');
		struct plan_mount mount;

		if (program->kind != PLAN_PROGRAM || !name || !streq(name, "/nvidia-smi"))
			continue;
		mount = *program;
		mount.source = strdup(program->source);
		mount.target = strdup(program->target);
		mount.reason = strdup("the host's nvidia-smi, for the GPUs that the container was granted");
		return plan_add_mount(plan, &mount);
	}
	return 0;
}

int vcuda_plan_granted(const char *directory, struct plan *plan, struct err *err)
{
	struct plan_mount mount = {.kind = PLAN_SOCKET, .directory = true, .flags = PLAN_MOUNT_NOEXEC};
	struct stat st;
	int r;

	if (stat(directory, &st) < 0)
		return err_set(err, -errno, "the directory of vCUDA's socket, %s, is not there: %m", directory);
	mount.device = st.st_dev;
	mount.inode = st.st_ino;
	mount.source = strdup(directory);
	mount.target = strdup(VCUDA_SOCKET_DIR);
	mount.reason = strdup("the socket of vCUDA's server, as it was granted");
	r = plan_add_mount(plan, &mount);
	return r == 0 ? vcuda_add_client(plan, err) : r;
}

bool vcuda_knows_driver(const char *text)
{
	struct version version;

	return !version_read(text, strlen(text), &version) || version.parts[0] >= VCUDA_OLDEST_DRIVER;
}

/* Where a plan for devices has the driver's libcuda.so.1 from; NULL in @ret if it has none. Return: 0 or -ENOMEM. */
static int vcuda_find_driver(const struct plan *native, char **ret)
{
	for (size_t i = 0; i < native->library_dir_count; i++) {
		const struct plan_library_dir *dir = &native->library_dirs[i];
		_cleanup_free_ char *target = NULL;

		if (!strv_contains(&dir->libraries, "libcuda.so.1"))
			continue;
		if (str_format(&target, "%s/libcuda.so.1", dir->path) < 0)
			return -ENOMEM;
		for (size_t j = 0; j < native->mount_count; j++)
			if (streq(native->mounts[j].target, target))
				return str_format(ret, "%s", native->mounts[j].source);
			else if (streq(native->mounts[j].target, dir->path) && native->mounts[j].directory)
				return str_format(ret, "%s/libcuda.so.1", native->mounts[j].source);
	}
	return 0;
}

/* ---- the GPUs ---- */

static char *vcuda_copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static int vcuda_add_gpu(const struct adapter *adapter, struct plan *plan, struct err *err)
{
	struct plan_grant grant;

	if (adapter->is_part)
		return err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT,
				       ("device %.64s is a part of a GPU, which vCUDA cannot give",
					adapter->uuid ? adapter->uuid : ""),
				       ("Ask for the whole GPU."));
	if (!adapter->uuid)
		return err_set_advised(err, CTR_GPU_E_UNKNOWN_DEVICE,
				       ("vCUDA finds GPUs by their UUIDs, and the driver does not tell that of %.64s",
					adapter->name ? adapter->name : "this GPU"),
				       ("ctr-gpu doctor says whether the driver's libraries answer."));
	grant = (struct plan_grant){
		.uuid = strdup(adapter->uuid),
		.address = vcuda_copy(adapter->pci_address),
		.name = vcuda_copy(adapter->name),
		.reason = strdup("the container uses it through a server of the host"),
	};
	return plan_add_grant(plan, &grant);
}

static bool vcuda_is_same_model(const struct adapter *adapter, const struct plan *plan)
{
	for (size_t i = 0; i < plan->grant_count && adapter->name; i++)
		if (!plan->grants[i].spare && plan->grants[i].name && streq(plan->grants[i].name, adapter->name))
			return true;
	return false;
}

/* Only what a container asks for by itself is claimed. */
static bool vcuda_is_spare(const struct inventory *inventory, const bool *exclusive, size_t position,
			   const struct plan *plan)
{
	const struct adapter *adapter = &inventory->adapters[position];

	return !exclusive[position] && adapter->vendor_id == PCI_VENDOR_NVIDIA && !adapter->unusable &&
	       !adapter->is_part && adapter->uuid && !inventory_divides(inventory, adapter) &&
	       vcuda_is_same_model(adapter, plan);
}

/* Where the administrator lets containers be moved: other GPUs like its own. Its servers may use these, too. */
static int vcuda_add_spares(const struct inventory *inventory, const bool *exclusive, struct plan *plan)
{
	int r = 0;

	for (size_t i = 0; i < inventory->count && r == 0 && plan->grant_count < MOST_GPUS; i++) {
		const struct adapter *adapter = &inventory->adapters[i];
		struct plan_grant grant = {.spare = true};

		if (!vcuda_is_spare(inventory, exclusive, i, plan))
			continue;
		grant.uuid = strdup(adapter->uuid);
		grant.address = vcuda_copy(adapter->pci_address);
		grant.name = vcuda_copy(adapter->name);
		grant.reason = strdup("it is of the same model, and the configuration lets containers be moved");
		r = plan_add_grant(plan, &grant);
	}
	return r;
}

/* What the container asks for lowers what the host gives. */
static int vcuda_set_share(const struct settings *settings, const struct request *request, struct plan *plan)
{
	const unsigned given = settings->vcuda_limits.share ? settings->vcuda_limits.share : USUAL_SHARE;

	plan->grant_limits.share = request->vcuda_share && request->vcuda_share < given ? request->vcuda_share : given;
	return request->vcuda_share > given
		       ? strv_add(&plan->warnings,
				  "CTR_GPU_SHARE asks for more of the GPUs' time than this host gives a container")
		       : 0;
}

static int vcuda_set_memory(const struct settings *settings, const struct request *request, struct plan *plan)
{
	/* Slots of a GPU come to all of its memory together. */
	const uint64_t given =
		request->has_slot ? STR_SHARE(100 / settings->vcuda_slots) : settings->vcuda_limits.memory;

	plan->grant_limits.memory = given;
	plan->grant_slot =
		request->has_slot && request->devices.count == 1 ? (unsigned)request->devices.items[0].slot + 1 : 0;
	if (!request->vcuda_memory)
		return 0;
	/* Of a share, the container's server knows how much it is. */
	if (!STR_SHARE_BYTES(given) || request->vcuda_memory <= STR_SHARE_BYTES(given)) {
		plan->grant_limits.memory = request->vcuda_memory | STR_SHARE(STR_SHARE_PERCENT(given));
		return 0;
	}
	return strv_add(&plan->warnings, "CTR_GPU_MEMORY asks for more memory than this host gives a container");
}

/* Of those that were asked for, without these. */
struct left_out {
	size_t foreign, divided;
};

static int vcuda_tell_left_out(const struct left_out *left_out, struct plan *plan, struct err *err)
{
	int r = 0;

	if (plan->grant_count == 0 && left_out->divided > 0)
		return err_set_advised(err, CTR_GPU_E_NO_ADAPTER,
				       ("vCUDA gives whole GPUs, and what the container asks for is divided (MIG)"),
				       ("Ask for a part as a device; ctr-gpu info lists them."));
	if (plan->grant_count == 0 && left_out->foreign > 0)
		return err_set_advised(err, CTR_GPU_E_NO_ADAPTER,
				       ("vCUDA serves NVIDIA's GPUs, and no GPU that the container asks for is one"),
				       ("ctr-gpu info lists the GPUs of this host."));
	if (left_out->foreign > 0)
		r = strv_format(&plan->warnings, "%zu adapters are left out, since vCUDA serves NVIDIA's GPUs alone",
				left_out->foreign);
	if (r == 0 && left_out->divided > 0)
		r = strv_format(&plan->warnings, "%zu GPUs are left out, since vCUDA gives whole ones (MIG)",
				left_out->divided);
	return r;
}

int vcuda_plan(const struct settings *settings, const struct request *request, const struct inventory *inventory,
	       const bool *exclusive, const struct adapter *const *selected, size_t count, const struct plan *native,
	       struct plan *plan, struct err *err)
{
	struct left_out left_out = {0};
	int r;

	plan->grant_limits = settings->vcuda_limits;
	r = vcuda_set_memory(settings, request, plan);
	if (r == 0)
		r = vcuda_set_share(settings, request, plan);
	if (r == 0)
		r = vcuda_find_driver(native, &plan->grant_library);

	for (size_t i = 0; i < count && r == 0; i++) {
		if (selected[i]->vendor_id != PCI_VENDOR_NVIDIA)
			left_out.foreign++;
		else if (inventory_divides(inventory, selected[i]))
			left_out.divided++;
		else
			r = vcuda_add_gpu(selected[i], plan, err);
	}
	if (r == 0 && plan->grant_count > MOST_GPUS)
		return err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT,
				       ("vCUDA gives a container %d GPUs at most", MOST_GPUS), ("Name some of them."));
	if (r == 0)
		r = vcuda_tell_left_out(&left_out, plan, err);
	if (r == 0 && request->has_slot && plan->grant_count > 1)
		return err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT,
				       ("the container asks for a slot of more than one GPU"),
				       ("Name the GPU by its UUID."));
	/* A GPU's slots are for containers that were given these. */
	if (r == 0 && settings->vcuda_move && !request->has_slot)
		r = vcuda_add_spares(inventory, exclusive, plan);
	if (r != 0 || request->nodes_only)
		return r;
	r = vcuda_add_client(plan, err);
	return r == 0 ? vcuda_add_smi(native, plan) : r;
}
