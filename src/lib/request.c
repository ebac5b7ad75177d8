/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/request.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/version.h"
#include "lib/ctr-gpu.h"
#include "lib/requirement.h"

static const struct {
	const char *name;
	uint32_t bits;
} capabilities_by_name[] = {
	{"all", CAPABILITY_ALL},          {"compat32", CAPABILITY_COMPAT32}, {"compute", CAPABILITY_COMPUTE},
	{"display", CAPABILITY_DISPLAY},  {"graphics", CAPABILITY_GRAPHICS}, {"ngx", CAPABILITY_NGX},
	{"utility", CAPABILITY_UTILITY},  {"video", CAPABILITY_VIDEO},
};

void request_clear(struct request *request)
{
	strv_clear(&request->devices);
	strv_clear(&request->requirements);
	strv_clear(&request->imex_channels);
	*request = (struct request){0};
}

/* Of what a CDI kind is made: a vendor's domain, or a class. */
static size_t kind_part_length(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

const char *request_name_without_kind(const char *device)
{
	size_t vendor = kind_part_length(device), class;

	if (vendor == 0 || device[vendor] != '/')
		return device;
	class = kind_part_length(device + vendor + 1);
	return class > 0 && device[vendor + 1 + class] == '=' ? device + vendor + 1 + class + 1 : device;
}

/*
 * A name as CDI has it, "nvidia.com/gpu=0", means what the name alone means. Only "all" depends on the vendor, and stays as
 * it is for those who know the adapters (src/lib/select.c).
 */
static void drop_kinds(struct strv *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const char *name = request_name_without_kind(list->items[i]);

		if (name != list->items[i] && !streq(name, "all"))
			memmove(list->items[i], name, strlen(name) + 1);
	}
}

/* Takes what is in @list, if the request keeps a list. */
static void set_device_list(struct request *request, struct strv *list)
{
	drop_kinds(list);
	strv_clear(&request->devices);
	if (list->count == 0 || strv_contains(list, "void"))
		request->kind = REQUEST_VOID;
	else if (strv_contains(list, "all"))
		request->kind = REQUEST_ALL;
	else if (strv_contains(list, "none"))
		request->kind = REQUEST_NONE;
	else {
		request->kind = REQUEST_SOME;
		request->devices = steal_struct(list);
	}
}

int request_set_devices(struct request *request, const char *devices)
{
	_cleanup_strv_ struct strv list = {0};
	int r;

	r = strv_split(devices, ",", &list);
	if (r == 0)
		set_device_list(request, &list);
	return r;
}

/* The words of device lists mean the same of channels. */
int request_set_imex_channels(struct request *request, const char *channels)
{
	_cleanup_strv_ struct strv list = {0};
	int r;

	r = strv_split(channels, ",", &list);
	if (r < 0)
		return r;
	strv_clear(&request->imex_channels);
	if (strv_contains(&list, "all"))
		return strv_add(&request->imex_channels, "all");
	if (!strv_contains(&list, "none") && !strv_contains(&list, "void"))
		request->imex_channels = steal_struct(&list);
	return 0;
}

static uint32_t capability_bits(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(capabilities_by_name); i++)
		if (streq(capabilities_by_name[i].name, name))
			return capabilities_by_name[i].bits;
	return 0;
}

int request_list_capabilities(const struct request *request, struct strv *ret)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(capabilities_by_name) && r == 0; i++)
		if (capabilities_by_name[i].bits != CAPABILITY_ALL && (request->capabilities & capabilities_by_name[i].bits))
			r = strv_add(ret, capabilities_by_name[i].name);
	return r;
}

int request_set_capabilities(struct request *request, const char *capabilities, struct err *err)
{
	_cleanup_strv_ struct strv list = {0};
	uint32_t all = 0;
	int r;

	r = strv_split(capabilities, ",", &list);
	if (r < 0)
		return r;
	if (strv_contains(&list, "all")) {
		request->capabilities = CAPABILITY_ALL;
		return 0;
	}
	for (size_t i = 0; i < list.count; i++) {
		uint32_t bits = capability_bits(list.items[i]);

		if (!bits)
			return err_set(err, CTR_GPU_E_UNKNOWN_CAPABILITY,
				       "there is no driver capability \"%.32s\"\nThere are: compute, compat32, graphics, utility, "
				       "video, display, ngx, all.",
				       list.items[i]);
		all |= bits;
	}
	request->capabilities = all ? all : CAPABILITY_DEFAULT;
	return 0;
}

int request_add_requirement(struct request *request, const char *requirement, struct err *err)
{
	int r = requirement_check_syntax(requirement, err);

	return r != 0 ? r : strv_add(&request->requirements, requirement);
}

/* ---- a container's environment ---- */

/* Engines append to the image's environment, so the last of several counts. */
static const char *env_get(const char *const *environment, const char *name)
{
	size_t length = strlen(name);
	const char *value = NULL;

	for (; *environment; environment++)
		if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
			value = *environment + length + 1;
	return value;
}

/* The spellings of true that Go's strconv.ParseBool knows, since that is what the variable has always been read with. */
static bool is_true(const char *value)
{
	static const char *const spellings[] = {"1", "t", "T", "true", "TRUE", "True"};

	for (size_t i = 0; value && i < ARRAY_SIZE(spellings); i++)
		if (streq(value, spellings[i]))
			return true;
	return false;
}

static bool read_cuda_version(const char *text, struct version *ret)
{
	return version_read(text, strlen(text), ret) && ret->count <= 3;
}

static int add_version_requirement(struct request *request, const char *cuda_version, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	struct version version;
	int r;

	if (!read_cuda_version(cuda_version, &version))
		return err_set(err, CTR_GPU_E_BAD_REQUIREMENT,
			       "CUDA_VERSION: \"%.32s\" is not a version of CUDA, such as 12.4.1\n"
			       "NVIDIA_DISABLE_REQUIRE=1 in the container's environment starts it all the same.",
			       cuda_version);
	r = str_format(&text, "cuda>=%u.%u", version.parts[0], version.parts[1]);
	return r < 0 ? r : request_add_requirement(request, text, err);
}

/* ---- resources of a service in a Docker Swarm ---- */

#define RESOURCE_PREFIX "DOCKER_RESOURCE_"

/*
 * Docker names the variable after the resource, in capitals. A number is always how many of a resource that is only counted,
 * never which: as a name Docker accepts none.
 */
static bool names_gpus(const char *variable, const char *value)
{
	const char *gpu = strstr(variable, "GPU");

	if (value[strspn(value, "0123456789")] == '\0')
		return false;
	return (gpu && gpu < value) || str_has_prefix(value, "GPU-") || str_has_prefix(value, "MIG-");
}

/* @value points into @variable, behind the name's "=". */
static bool occurs_again(const char *const *variable, const char *value)
{
	size_t length = (size_t)(value - *variable);

	for (const char *const *later = variable + 1; *later; later++)
		if (strncmp(*later, *variable, length) == 0)
			return true;
	return false;
}

static int resource_devices(const char *const *environment, struct strv *ret)
{
	for (const char *const *variable = environment; *variable; variable++) {
		const char *equals = strchr(*variable, '='), *value = equals ? equals + 1 : NULL;
		int r;

		if (!value || !str_has_prefix(*variable, RESOURCE_PREFIX) || !names_gpus(*variable, value) ||
		    occurs_again(variable, value))
			continue;
		r = strv_split(value, ",", ret);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * An image can carry such a variable, too. So one stands in for a choice that nobody made, or narrows "all", and changes
 * nothing about devices that whoever starts the container has named.
 */
static int read_devices(struct request *request, const char *devices, const char *const *environment)
{
	_cleanup_strv_ struct strv resources = {0};
	int r = 0;

	if (!devices || streq(devices, "all"))
		r = resource_devices(environment, &resources);
	if (r < 0)
		return r;
	if (resources.count == 0)
		return request_set_devices(request, devices ? devices : "void");
	set_device_list(request, &resources);
	return 0;
}

/* NVIDIA_REQUIRE_JETPACK is about files of Tegra boards and no condition. */
static bool is_requirement(const char *variable)
{
	return str_has_prefix(variable, "NVIDIA_REQUIRE_") && !str_has_prefix(variable, "NVIDIA_REQUIRE_JETPACK");
}

static int read_requirements(struct request *request, const char *const *environment, bool legacy, struct err *err)
{
	int r;

	request->requirements_disabled = is_true(env_get(environment, "NVIDIA_DISABLE_REQUIRE"));
	if (request->requirements_disabled)
		return 0;
	for (const char *const *variable = environment; *variable; variable++) {
		_cleanup_free_ char *name = NULL;
		const char *value = strchr(*variable, '=');

		if (!value || !is_requirement(*variable))
			continue;
		name = strndup(*variable, (size_t)(value - *variable));
		if (!name)
			return -ENOMEM;
		if (value[1] == '\0' || env_get(environment, name) != value + 1)
			continue;
		r = request_add_requirement(request, value + 1, err);
		if (r != 0)
			return r > 0 ? err_prefix(err, r, "%s: ", name) : r;
	}
	return legacy ? add_version_requirement(request, env_get(environment, "CUDA_VERSION"), err) : 0;
}

static int read_extras(struct request *request, const char *const *environment)
{
	const char *channels = env_get(environment, "NVIDIA_IMEX_CHANNELS"), *switches = env_get(environment, "NVIDIA_NVSWITCH");

	request->nvswitches = switches && streq(switches, "enabled");
	return channels ? request_set_imex_channels(request, channels) : 0;
}

static bool is_empty(const char *value)
{
	return !value || !*value;
}

/* Images of before NVIDIA_REQUIRE_CUDA say their CUDA version only, and expect every GPU and the whole driver. */
static bool is_legacy(const char *const *environment)
{
	return !is_empty(env_get(environment, "CUDA_VERSION")) && is_empty(env_get(environment, "NVIDIA_REQUIRE_CUDA"));
}

/* Such an image asks by its version alone; another's variable of that name ("cu118") asks for nothing. */
static const char *legacy_devices(const char *const *environment)
{
	struct version version;

	return is_legacy(environment) && read_cuda_version(env_get(environment, "CUDA_VERSION"), &version) ? "all" : NULL;
}

int request_read_environment(struct request *request, const char *const *environment, struct err *err)
{
	const char *devices = env_get(environment, "NVIDIA_VISIBLE_DEVICES");
	int r;

	r = read_devices(request, devices ? devices : legacy_devices(environment), environment);
	if (r < 0 || request->kind == REQUEST_VOID)
		return r;
	return request_read_properties(request, environment, err);
}

int request_read_properties(struct request *request, const char *const *environment, struct err *err)
{
	const char *capabilities = env_get(environment, "NVIDIA_DRIVER_CAPABILITIES");
	bool legacy = is_legacy(environment);
	int r;

	r = read_extras(request, environment);
	if (r < 0)
		return r;
	if (!capabilities)
		capabilities = legacy ? "all" : "";
	r = request_set_capabilities(request, capabilities, err);
	if (r > 0)
		return err_prefix(err, r, "NVIDIA_DRIVER_CAPABILITIES: ");
	return r != 0 ? r : read_requirements(request, environment, legacy, err);
}

/* ---- public ---- */

int ctr_gpu_request_new(struct ctr_gpu_context *context, struct ctr_gpu_request **ret_request)
{
	struct ctr_gpu_request *request = calloc(1, sizeof(*request));

	if (!request)
		return -ENOMEM;
	request->context = context;
	request->data.capabilities = CAPABILITY_DEFAULT;
	*ret_request = request;
	return 0;
}

struct ctr_gpu_request *ctr_gpu_request_unref(struct ctr_gpu_request *request)
{
	if (!request)
		return NULL;
	request_clear(&request->data);
	free(request);
	return NULL;
}

int ctr_gpu_request_set_devices(struct ctr_gpu_request *request, const char *devices)
{
	return request_set_devices(&request->data, devices);
}

int ctr_gpu_request_set_capabilities(struct ctr_gpu_request *request, const char *capabilities)
{
	return request_set_capabilities(&request->data, capabilities, &request->context->err);
}

int ctr_gpu_request_add_requirement(struct ctr_gpu_request *request, const char *requirement)
{
	return request_add_requirement(&request->data, requirement, &request->context->err);
}

int ctr_gpu_request_read_environment(struct ctr_gpu_request *request, const char *const *environment)
{
	return request_read_environment(&request->data, environment, &request->context->err);
}

int ctr_gpu_request_read_properties(struct ctr_gpu_request *request, const char *const *environment)
{
	return request_read_properties(&request->data, environment, &request->context->err);
}

int ctr_gpu_request_set_imex_channels(struct ctr_gpu_request *request, const char *channels)
{
	return request_set_imex_channels(&request->data, channels);
}

bool ctr_gpu_request_is_void(const struct ctr_gpu_request *request)
{
	return request->data.kind == REQUEST_VOID;
}

void ctr_gpu_request_set_mig(struct ctr_gpu_request *request, unsigned rights)
{
	request->data.mig_config = rights & CTR_GPU_MIG_CONFIG;
	request->data.mig_monitor = rights & CTR_GPU_MIG_MONITOR;
}
