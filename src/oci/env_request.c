/* SPDX-License-Identifier: Apache-2.0 */

#include "oci/env_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/str.h"
#include "model/adapter.h"
#include "model/version.h"
#include "oci/oci.h"

struct env_request env_request_of_config(const struct oci_config *config)
{
	return (struct env_request){
		.environment = (const char *const *)config->environment.items,
		.mounts = &config->device_mounts,
		.privileged = config->privileged,
		.by_engine = config->by_engine,
	};
}

/* ---- variables ---- */

/* Engines append to the image's environment, so the last of several counts. */
static const char *env_request_get(const struct env_request *env, const char *name)
{
	size_t length = strlen(name);
	const char *value = NULL;

	for (const char *const *variable = env->environment; variable && *variable; variable++)
		if (strncmp(*variable, name, length) == 0 && (*variable)[length] == '=')
			value = *variable + length + 1;
	return value;
}

struct variable {
	const char *text, *value;
	size_t name_length, position;
};

static int env_request_variable_compare(const void *left, const void *right)
{
	const struct variable *a = left, *b = right;
	size_t shorter = a->name_length < b->name_length ? a->name_length : b->name_length;
	int r = memcmp(a->text, b->text, shorter);

	if (r == 0 && a->name_length != b->name_length)
		r = a->name_length < b->name_length ? -1 : 1;
	return r != 0 ? r : (a->position > b->position) - (a->position < b->position);
}

struct variables {
	struct variable *items;
	size_t count;
};

static void env_request_variables_clear(struct variables *variables)
{
	free(variables->items);
}

/*
 * Of each name that begins with @prefix the last, by name: an image may have a hundred thousand. Return: 0 or -ENOMEM.
 */
static int env_request_list(const struct env_request *env, const char *prefix, struct variables *ret)
{
	size_t kept = 0;
	for (const char *const *text = env->environment; text && *text; text++) {
		const char *equals = str_has_prefix(*text, prefix) ? strchr(*text, '=') : NULL;
		struct variable *items;

		if (!equals)
			continue;
		items = array_grow(ret->items, ret->count, sizeof(*items));
		if (!items)
			return -ENOMEM;
		ret->items = items;
		items[ret->count] = (struct variable){*text, equals + 1, (size_t)(equals - *text), ret->count};
		ret->count++;
	}
	if (ret->count > 0)
		qsort(ret->items, ret->count, sizeof(*ret->items), env_request_variable_compare);
	for (size_t i = 0; i < ret->count; i++) {
		const struct variable *variable = &ret->items[i];

		if (i + 1 == ret->count || variable[1].name_length != variable->name_length ||
		    memcmp(variable[1].text, variable->text, variable->name_length) != 0)
			ret->items[kept++] = *variable;
	}
	ret->count = kept;
	return 0;
}

/* ---- images of before NVIDIA_REQUIRE_CUDA ---- */

/* They say their CUDA version only, and expect every GPU and the whole driver. */
static bool env_request_is_legacy(const struct env_request *env)
{
	const char *version = env_request_get(env, "CUDA_VERSION"),
		   *requirement = env_request_get(env, "NVIDIA_REQUIRE_CUDA");

	return version && *version && (!requirement || !*requirement);
}

static bool env_request_read_cuda_version(const char *text, struct version *ret)
{
	return version_read(text, strlen(text), ret) && ret->count <= 3;
}

/* ---- resources of a service in a Docker Swarm ---- */

#define RESOURCE_PREFIX "DOCKER_RESOURCE_"

/*
 * Docker names the variable after the resource, in capitals. A number counts a resource; it is never a name, since
 * Docker accepts no number as one.
 */
static int env_request_resources(const struct env_request *env, struct device_names *ret)
{
	_cleanup_(env_request_variables_clear) struct variables variables = {0};
	int r = env_request_list(env, RESOURCE_PREFIX, &variables);

	for (size_t i = 0; i < variables.count && r == 0; i++) {
		const char *value = variables.items[i].value, *gpu = strstr(variables.items[i].text, "GPU");

		if (value[strspn(value, "0123456789")] != '\0' &&
		    ((gpu && gpu < value) || str_has_prefix(value, "GPU-") || str_has_prefix(value, "MIG-")))
			r = device_names_split(ret, value);
	}
	return r;
}

/* ---- devices ---- */

#define AMD_VARIABLE "AMD_VISIBLE_DEVICES"

enum { AMD_NUMBERS = 256 };

/*
 * "0", "0-2", as AMD's tools count: their GPUs alone. Anything else is an ordinary name. @seen: each number is
 * added once, since an image could repeat a range a million times.
 */
static int env_request_add_amd_device(const char *device, bool *seen, struct device_names *ret)
{
	unsigned first, last;
	int length = 0, r = 0;

	if (device[0] == '-' || device[strspn(device, "0123456789-")] || sscanf(device, "%4u%n", &first, &length) != 1)
		return device_names_add(ret, device);
	last = first;
	if (device[length] && sscanf(device, "%4u-%4u%n", &first, &last, &length) != 2)
		return device_names_add(ret, device);
	if (device[length] || last < first || last >= AMD_NUMBERS)
		return device_names_add(ret, device);
	for (unsigned i = first; i <= last && r == 0; i++) {
		r = seen[i] ? 0 : device_names_add_vendor(ret, "AMD", i, AMD_VARIABLE);
		seen[i] = true;
	}
	return r;
}

/* "void" and "none" count for the variables of both vendors. */
static bool env_request_is_nothing(const struct device_names *list)
{
	return device_names_have(list, DEVICE_NAME_VOID, true) || device_names_have(list, DEVICE_NAME_NONE, true);
}

/* Adds to what NVIDIA's variable names, @ret, whose "all" then means NVIDIA's. */
static int env_request_amd_devices(const struct env_request *env, struct device_names *ret, const char **ret_domain)
{
	const char *devices = env_request_get(env, AMD_VARIABLE);
	bool all = device_names_have(ret, DEVICE_NAME_ALL, true), seen[AMD_NUMBERS] = {false};
	_cleanup_device_names_ struct device_names list = {0};
	int r;

	if (!devices || env_request_is_nothing(ret))
		return 0;
	r = device_names_split(&list, devices);
	if (r < 0 || list.count == 0 || env_request_is_nothing(&list))
		return r;
	*ret_domain = NULL;
	if (device_names_have(&list, DEVICE_NAME_ALL, true))
		return all ? 0 : device_names_add_vendor(ret, "AMD", -1, AMD_VARIABLE);
	if (all) {
		device_names_clear(ret);
		r = device_names_add(ret, "vendor:nvidia");
	}
	for (size_t i = 0; i < list.count && r == 0; i++)
		r = env_request_add_amd_device(list.items[i].text, seen, ret);
	return r;
}

static const char *env_request_nvidia_devices(const struct env_request *env)
{
	const char *devices = env_request_get(env, "NVIDIA_VISIBLE_DEVICES");
	struct version version;

	/* A legacy image asks by its version alone; another's variable of that name ("cu118") asks for nothing. */
	if (!devices && env_request_is_legacy(env) &&
	    env_request_read_cuda_version(env_request_get(env, "CUDA_VERSION"), &version))
		return "all";
	return devices;
}

/*
 * An image can set any of these variables, too. So a resource's variable, and the one without a vendor's name, count
 * only where no devices were chosen, or to narrow "all". They never override devices that were named when the container
 * was started. Devices that the engine was given (--gpus) count alone.
 *
 * @ret_domain: of the vendor whose variable names the devices; NULL: no vendor's does
 */
static int env_request_variable_devices(const struct env_request *env, struct device_names *ret,
					const char **ret_domain)
{
	const char *neutral = env->by_engine ? NULL : env_request_get(env, "CTR_GPU_VISIBLE_DEVICES");
	const char *devices = env_request_nvidia_devices(env);
	_cleanup_device_names_ struct device_names chosen = {0};
	int r = devices ? device_names_split(&chosen, devices) : 0;
	/* To more exact words. */
	const bool open = !devices || (chosen.count == 1 && device_names_have(&chosen, DEVICE_NAME_ALL, true));

	*ret_domain = NULL;
	if (r == 0 && neutral && open)
		return device_names_split(ret, neutral);
	if (r == 0 && open)
		r = env_request_resources(env, ret);
	if (r == 0 && ret->count == 0 && devices) {
		*ret_domain = DOMAIN_NVIDIA;
		*ret = steal_struct(&chosen);
	}
	/* "" is a choice, too. */
	return r == 0 && !env->by_engine && (!devices || ret->count > 0) ? env_request_amd_devices(env, ret, ret_domain)
									 : r;
}

#define IMEX_PREFIX "imex/"

/* Device plugins of Kubernetes say by mounts what a container was granted. An image cannot forge these. */
static int env_request_mounted(const struct env_request *env, bool channels, struct strv *ret)
{
	int r = 0;

	for (size_t i = 0; env->mounts && i < env->mounts->count && r == 0; i++) {
		const char *mount = env->mounts->items[i];
		bool cdi = str_has_prefix(mount, "cdi/");
		char *slash;

		if (str_has_prefix(mount, IMEX_PREFIX) != channels)
			continue;
		r = strv_add(ret, mount + (channels ? strlen(IMEX_PREFIX) : cdi ? strlen("cdi/") : 0));
		/* "cdi/nvidia.com/gpu/0" is the name that CDI writes "nvidia.com/gpu=0". */
		if (r < 0 || !cdi || !(slash = strchr(ret->items[ret->count - 1], '/')) ||
		    !(slash = strchr(slash + 1, '/')))
			continue;
		*slash = '=';
	}
	return r;
}

static bool env_request_may_by_variable(const struct env_request *env, const struct settings *settings)
{
	return env->privileged || settings->accept_environment;
}

static int env_request_devices(const struct env_request *env, const struct settings *settings, struct device_names *ret,
			       const char **ret_domain)
{
	_cleanup_strv_ struct strv mounted = {0};
	int r = settings->accept_mounts ? env_request_mounted(env, false, &mounted) : 0;

	*ret_domain = DOMAIN_NVIDIA;
	for (size_t i = 0; i < mounted.count && r == 0; i++)
		r = device_names_add(ret, mounted.items[i]);
	if (r < 0 || ret->count > 0)
		return r;
	r = env_request_variable_devices(env, ret, ret_domain);
	if (env_request_may_by_variable(env, settings) || ret->count == 0)
		return r;
	log_warning(&settings->log,
		    "the environment asks for GPUs, which does not count in a container that is not privileged: "
		    "\"accept-nvidia-visible-devices-envvar-when-unprivileged\" is false");
	device_names_clear(ret);
	return r;
}

bool env_request_is_something(const struct env_request *env)
{
	_cleanup_device_names_ struct device_names devices = {0};
	const char *domain;

	if (env->mounts && env->mounts->count > 0)
		return true;
	return env_request_variable_devices(env, &devices, &domain) < 0 ||
	       (devices.count > 0 && !device_names_have(&devices, DEVICE_NAME_VOID, true));
}

/* ---- everything else ---- */

static int env_request_imex_channels(const struct env_request *env, const struct settings *settings,
				     struct request *request)
{
	_cleanup_strv_ struct strv list = {0};
	const char *channels = env_request_get(env, "NVIDIA_IMEX_CHANNELS");
	int r = settings->accept_mounts ? env_request_mounted(env, true, &list) : 0;

	if (r == 0 && list.count == 0 && channels && env_request_may_by_variable(env, settings))
		r = strv_split(channels, ",", &list);
	return r == 0 ? request_take_imex_channels(request, &list) : r;
}

/* These rights reach parts of GPUs that others use, so only privileged containers get them. */
static int env_request_mig_right(const struct env_request *env, const char *name, bool *ret, struct err *err)
{
	const char *value = env_request_get(env, name);

	if (!value || !*value)
		return 0;
	if (!env->privileged)
		return err_set_advised(
			err, CTR_GPU_E_NO_PERMISSION, ("%s is for privileged containers, and this one is not", name),
			("Start it with --privileged (or --cap-add=SYS_ADMIN), or without the variable."));
	if (!streq(value, "all"))
		return err_set(err, CTR_GPU_E_BAD_ARGUMENT, "%s is \"all\", not \"%.32s\"", name, value);
	*ret = true;
	return 0;
}

static int env_request_capabilities(const struct env_request *env, struct request *request, struct err *err)
{
	const char *neutral = env->by_engine ? NULL : env_request_get(env, "CTR_GPU_DRIVER_CAPABILITIES");
	const char *capabilities = neutral ? neutral : env_request_get(env, "NVIDIA_DRIVER_CAPABILITIES");
	int r;

	if (!capabilities)
		capabilities = env_request_is_legacy(env) ? "all" : "";
	r = request_set_capabilities(request, capabilities, err);
	return r > 0 ? err_prefix(err, r, "%s_DRIVER_CAPABILITIES: ", neutral ? "CTR_GPU" : "NVIDIA") : r;
}

static int env_request_requirements(const struct env_request *env, const struct settings *settings,
				    struct request *request, struct err *err)
{
	/* What Go's strconv.ParseBool takes for true: NVIDIA's tools have always read the variable so. */
	static const char *const truths[] = {"1", "t", "T", "true", "TRUE", "True"};
	const char *disable = env_request_get(env, "NVIDIA_DISABLE_REQUIRE"),
		   *cuda = env_request_get(env, "CUDA_VERSION");
	_cleanup_(env_request_variables_clear) struct variables variables = {0};
	_cleanup_free_ char *text = NULL;
	struct version version;
	int r;

	request->requirements_disabled = settings->disable_requirements;
	for (size_t i = 0; disable && i < ARRAY_SIZE(truths); i++)
		request->requirements_disabled |= streq(disable, truths[i]);
	if (request->requirements_disabled)
		return 0;
	r = env_request_list(env, "NVIDIA_REQUIRE_", &variables);
	for (size_t i = 0; i < variables.count && r == 0; i++) {
		const struct variable *variable = &variables.items[i];

		/* NVIDIA_REQUIRE_JETPACK is about files of Tegra boards and no condition. */
		if (str_has_prefix(variable->text, "NVIDIA_REQUIRE_JETPACK") || !*variable->value)
			continue;
		r = request_add_requirement(request, variable->value, err);
		if (r > 0)
			return err_prefix(err, r, "%.*s: ", (int)variable->name_length, variable->text);
	}
	if (r != 0 || !env_request_is_legacy(env))
		return r;
	if (!env_request_read_cuda_version(cuda, &version))
		return err_set_advised(
			err, CTR_GPU_E_BAD_REQUIREMENT,
			("CUDA_VERSION: \"%.32s\" is not a version of CUDA, such as 12.4.1", cuda),
			("NVIDIA_DISABLE_REQUIRE=1 in the container's environment starts it all the same."));
	r = str_format(&text, "cuda>=%u.%u", version.parts[0], version.parts[1]);
	return r < 0 ? r : request_add_requirement(request, text, err);
}

static bool env_request_parse_share(const char *text, unsigned *ret)
{
	uint64_t share;

	if (!str_parse_size(text, &share) || share > MOST_SHARE)
		return false;
	*ret = (unsigned)share;
	return true;
}

/* Less than a context of the driver's takes is an amount whose unit was left out. */
static int env_request_read_memory(const char *text, struct request *request, struct err *err)
{
	enum { LEAST_MEMORY = 1 << 20 };

	if (!str_parse_size(text, &request->vcuda_memory) || STR_SHARE_PERCENT(request->vcuda_memory) > 0)
		return err_set(err, CTR_GPU_E_BAD_ARGUMENT,
			       "CTR_GPU_MEMORY is a number of bytes such as 4G or 512M, not \"%.32s\"", text);
	if (request->vcuda_memory < LEAST_MEMORY)
		return err_set(err, CTR_GPU_E_BAD_ARGUMENT,
			       "CTR_GPU_MEMORY=%.32s is so many bytes, in which no program runs; 4G and 512M are more",
			       text);
	return 0;
}

int env_request_read_mode(const struct env_request *env, struct request *request, struct err *err)
{
	const char *share = env_request_get(env, "CTR_GPU_SHARE");
	const char *mode = env_request_get(env, "CTR_GPU_MODE"), *memory = env_request_get(env, "CTR_GPU_MEMORY");
	const int r = memory && *memory ? env_request_read_memory(memory, request, err) : 0;

	if (mode && streq(mode, "vcuda"))
		request->mode = REQUEST_VCUDA;
	else if (mode && streq(mode, "device"))
		request->mode = REQUEST_DEVICE;
	else if (mode && *mode)
		return err_set(err, CTR_GPU_E_BAD_ARGUMENT, "CTR_GPU_MODE is \"vcuda\" or \"device\", not \"%.32s\"",
			       mode);
	if (r != 0)
		return r;
	if (share && *share && !env_request_parse_share(share, &request->vcuda_share))
		return err_set(err, CTR_GPU_E_BAD_ARGUMENT,
			       "CTR_GPU_SHARE is a whole number from 1 to 1000, not \"%.32s\"", share);
	return 0;
}

static uint32_t env_request_unserved(const struct env_request *env)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < REQUEST_UNSERVED; i++) {
		const char *value = env_request_get(env, request_unserved[i].variable);

		bits |= value && streq(value, "enabled") ? 1U << i : 0;
	}
	return bits;
}

int env_request_read_properties(const struct env_request *env, const struct settings *settings, struct request *request,
				struct err *err)
{
	const char *switches = env_request_get(env, "NVIDIA_NVSWITCH");
	int r;

	request->nvswitches = switches && streq(switches, "enabled") && env_request_may_by_variable(env, settings);
	request->unserved = env_request_unserved(env);
	r = env_request_imex_channels(env, settings, request);
	if (r == 0)
		r = env_request_read_mode(env, request, err);
	if (r == 0)
		r = env_request_mig_right(env, "NVIDIA_MIG_CONFIG_DEVICES", &request->mig_config, err);
	if (r == 0)
		r = env_request_mig_right(env, "NVIDIA_MIG_MONITOR_DEVICES", &request->mig_monitor, err);
	if (r == 0)
		r = env_request_capabilities(env, request, err);
	return r == 0 ? env_request_requirements(env, settings, request, err) : r;
}

/* By its own variable; "vendor:AMD" may be a user's word. */
static bool env_request_has_all_of_amd(const struct device_names *devices)
{
	for (size_t i = 0; i < devices->count; i++)
		if (devices->items[i].type == DEVICE_NAME_VENDOR && devices->items[i].variable)
			return true;
	return false;
}

int env_request_read(const struct env_request *env, const struct settings *settings, struct request *request,
		     struct err *err)
{
	_cleanup_device_names_ struct device_names devices = {0};
	int r = env_request_devices(env, settings, &devices, &request->domain);

	if (r < 0)
		return r;
	request->by_engine = env->by_engine;
	/*
	 * An image's author cannot know the names of a host's devices, so a name comes from a user who knows the
	 * host.
	 */
	request->unnamed =
		!env->by_engine && !(settings->accept_mounts && env->mounts && env->mounts->count > 0) &&
		(device_names_have(&devices, DEVICE_NAME_ALL, true) ||
		 device_names_have(&devices, DEVICE_NAME_NONE, true) || env_request_has_all_of_amd(&devices));
	request_take_devices(request, &devices);
	return request->kind == REQUEST_VOID ? 0 : env_request_read_properties(env, settings, request, err);
}

/* ---- a file that cannot be understood ---- */

/* Return: what is behind the last @name; NULL if there is none. */
static const char *env_request_find_last(const char *text, const char *end, const char *name)
{
	const char *last = NULL;

	while ((text = memmem(text, (size_t)(end - text), name, strlen(name))))
		last = text += strlen(name);
	return last;
}

bool env_request_is_likely(const char *text, size_t size)
{
	/* What stands behind a value that asks for nothing is the end of the string. */
	static const char *const names[] = {"NVIDIA_VISIBLE_DEVICES=",  "AMD_VISIBLE_DEVICES=",
					    "CTR_GPU_VISIBLE_DEVICES=", "DOCKER_RESOURCE_",
					    "\"CUDA_VERSION=",          "nvidia-container-devices/"};
	static const char *const nothing[] = {"\"", "void\""};
	const char *end = text + size;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = env_request_find_last(text, end, names[i]);
		bool asks = value;

		for (size_t j = 0; i < 3 && asks && j < ARRAY_SIZE(nothing); j++)
			asks = (size_t)(end - value) < strlen(nothing[j]) ||
			       memcmp(value, nothing[j], strlen(nothing[j])) != 0;
		if (asks)
			return true;
	}
	return false;
}
