/* SPDX-License-Identifier: Apache-2.0 */

/* The methods of a device plugin: protobuf-c reads requests and writes answers. None changes anything. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device_plugin.pb-c.h"

#include "base/str.h"
#include "cluster/devices.h"

#define ANSWER_MOUNTS "/var/run/nvidia-container-devices/cdi/"
#define ANSWER_NVIDIA "nvidia.com/"

enum { ANSWER_CONTAINERS_MAX = 64 };

/* Return: GRPC_OK; GRPC_RESOURCE_EXHAUSTED without memory. */
static int answer_pack(const ProtobufCMessage *message, struct grpc_answer *ret)
{
	size_t size = protobuf_c_message_get_packed_size(message);

	ret->frame = frame_new(size);
	if (!ret->frame) {
		ret->why = "no memory";
		return GRPC_RESOURCE_EXHAUSTED;
	}
	(void)protobuf_c_message_pack(message, ret->frame + FRAME_HEAD);
	ret->size = FRAME_HEAD + size;
	return GRPC_OK;
}

static int answer_refuse(struct grpc_answer *ret, int code, const char *why)
{
	ret->why = why;
	return code;
}

static int answer_without_memory(struct grpc_answer *ret)
{
	return answer_refuse(ret, GRPC_RESOURCE_EXHAUSTED, "no memory");
}

/* What is made for an answer, and freed at once when it is packed. */
struct answer_scratch {
	void **items;
	size_t count;
};

static void answer_scratch_clear(struct answer_scratch *scratch)
{
	for (size_t i = 0; i < scratch->count; i++)
		free(scratch->items[i]);
	free(scratch->items);
}
#define _cleanup_scratch_ _cleanup_(answer_scratch_clear)

/* Keeps @item, which may be NULL for want of memory. Return: @item; NULL. */
static void *answer_keep(struct answer_scratch *scratch, void *item)
{
	void **items = item ? array_grow(scratch->items, scratch->count, sizeof(*items)) : NULL;

	if (!items) {
		free(item);
		return NULL;
	}
	scratch->items = items;
	return items[scratch->count++] = item;
}

static void *answer_room(struct answer_scratch *scratch, size_t count, size_t size)
{
	return answer_keep(scratch, calloc(count + 1, size));
}

/* ---- options, the list ---- */

static int answer_options(const struct resource *resource, unsigned strategies, const uint8_t *request, size_t size,
			  struct grpc_answer *ret)
{
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

	(void)resource;
	(void)strategies;
	(void)request;
	(void)size;
	options.get_preferred_allocation_available = true;
	return answer_pack(&options.base, ret);
}

/* A device, and where it is. */
struct answer_place {
	V1beta1__Device device;
	V1beta1__TopologyInfo topology;
	V1beta1__NUMANode node, *nodes[1];
};

static void answer_describe(struct answer_place *place, const struct device *device)
{
	v1beta1__device__init(&place->device);
	place->device.id = device->id;
	place->device.health = (char *)(uintptr_t)(device->healthy ? "Healthy" : "Unhealthy");
	if (device->numa < 0)
		return;
	v1beta1__numanode__init(&place->node);
	place->node.id = device->numa;
	place->nodes[0] = &place->node;
	v1beta1__topology_info__init(&place->topology);
	place->topology.n_nodes = 1;
	place->topology.nodes = place->nodes;
	place->device.topology = &place->topology;
}

static int answer_list(const struct resource *resource, unsigned strategies, const uint8_t *request, size_t size,
		       struct grpc_answer *ret)
{
	V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
	_cleanup_free_ struct answer_place *places = calloc(resource->count + 1, sizeof(*places));
	_cleanup_free_ V1beta1__Device **devices = calloc(resource->count + 1, sizeof(V1beta1__Device *));

	(void)strategies;
	(void)request;
	(void)size;
	if (!places || !devices)
		return answer_without_memory(ret);
	for (size_t i = 0; i < resource->count; i++) {
		answer_describe(&places[i], &resource->devices[i]);
		devices[i] = &places[i].device;
	}
	list.n_devices = resource->count;
	list.devices = devices;
	ret->stays = true;
	return answer_pack(&list.base, ret);
}

/* ---- a preference ---- */

static V1beta1__ContainerPreferredAllocationResponse *answer_prefer_for(
	struct answer_scratch *scratch, const struct resource *resource,
	const V1beta1__ContainerPreferredAllocationRequest *wish)
{
	V1beta1__ContainerPreferredAllocationResponse *response = answer_room(scratch, 1, sizeof(*response));
	size_t size = wish->allocation_size > 0 ? (size_t)wish->allocation_size : 0;
	const char **ids = answer_room(scratch, resource->count, sizeof(*ids));
	long chosen;

	if (!response || !ids)
		return NULL;
	chosen = resource_prefer(resource, wish->available_deviceids, wish->n_available_deviceids,
				 wish->must_include_deviceids, wish->n_must_include_deviceids, size, ids);
	if (chosen < 0)
		return NULL;
	v1beta1__container_preferred_allocation_response__init(response);
	response->n_deviceids = (size_t)chosen;
	response->deviceids = (char **)(uintptr_t)ids;
	return response;
}

static int answer_preference(const struct resource *resource, unsigned strategies, const uint8_t *request, size_t size,
			     struct grpc_answer *ret)
{
	V1beta1__PreferredAllocationResponse response = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
	V1beta1__PreferredAllocationRequest *wish = v1beta1__preferred_allocation_request__unpack(NULL, size, request);
	_cleanup_scratch_ struct answer_scratch scratch = {0};
	int r = GRPC_OK;

	(void)strategies;
	if (!wish)
		return answer_refuse(ret, GRPC_INTERNAL, "the request cannot be read");
	if (wish->n_container_requests > ANSWER_CONTAINERS_MAX)
		r = answer_refuse(ret, GRPC_RESOURCE_EXHAUSTED, "too many containers");
	for (size_t i = 0; i < wish->n_container_requests; i++)
		if (wish->container_requests[i]->n_available_deviceids > RESOURCE_DEVICES_MAX ||
		    wish->container_requests[i]->n_must_include_deviceids > RESOURCE_DEVICES_MAX)
			r = answer_refuse(ret, GRPC_INVALID_ARGUMENT, "more devices than there are");
	response.container_responses =
		answer_room(&scratch, r == GRPC_OK ? wish->n_container_requests : 0, sizeof(void *));
	if (r == GRPC_OK && !response.container_responses)
		r = answer_without_memory(ret);
	for (size_t i = 0; r == GRPC_OK && i < wish->n_container_requests; i++) {
		response.container_responses[i] = answer_prefer_for(&scratch, resource, wish->container_requests[i]);
		if (!response.container_responses[i])
			r = answer_without_memory(ret);
		response.n_container_responses = i + 1;
	}
	if (r == GRPC_OK)
		r = answer_pack(&response.base, ret);
	v1beta1__preferred_allocation_request__free_unpacked(wish, NULL);
	return r;
}

/* ---- an allocation ---- */

/* One container's part of the answer. */
struct answer_grant {
	V1beta1__ContainerAllocateResponse response;
	V1beta1__ContainerAllocateResponse__EnvsEntry variable, *variables[1];
	V1beta1__ContainerAllocateResponse__AnnotationsEntry annotation, *annotations[1];
};

static char *answer_join(struct answer_scratch *scratch, const char *prefix, char *const *ids, size_t count)
{
	char *text = strdup("");

	for (size_t i = 0; text && i < count; i++)
		if (str_append(&text, "%s%s%s", i > 0 ? "," : "", prefix, ids[i]) < 0) {
			free(text);
			return NULL;
		}
	return answer_keep(scratch, text);
}

/* A name with what stands before and between its parts. */
static char *answer_name(struct answer_scratch *scratch, const char *before, const char *resource, const char *between,
			 const char *id)
{
	char *text = NULL;

	return str_format(&text, "%s%s%s%s", before, resource, between, id) < 0 ? NULL : answer_keep(scratch, text);
}

static bool answer_add_cdi(struct answer_scratch *scratch, const struct resource *resource, char *const *ids,
			   size_t count, struct answer_grant *grant)
{
	V1beta1__CDIDevice *devices = answer_room(scratch, count, sizeof(*devices));
	V1beta1__CDIDevice **list = answer_room(scratch, count, sizeof(*list));

	for (size_t i = 0; devices && list && i < count; i++) {
		v1beta1__cdidevice__init(&devices[i]);
		devices[i].name = answer_name(scratch, "", resource->kind, "=", ids[i]);
		if (!devices[i].name)
			return false;
		list[i] = &devices[i];
	}
	grant->response.n_cdi_devices = count;
	grant->response.cdi_devices = list;
	return devices && list;
}

static bool answer_add_mounts(struct answer_scratch *scratch, const struct resource *resource, char *const *ids,
			      size_t count, struct answer_grant *grant)
{
	V1beta1__Mount *mounts = answer_room(scratch, count, sizeof(*mounts));
	V1beta1__Mount **list = answer_room(scratch, count, sizeof(*list));

	for (size_t i = 0; mounts && list && i < count; i++) {
		v1beta1__mount__init(&mounts[i]);
		mounts[i].host_path = (char *)(uintptr_t) "/dev/null";
		mounts[i].read_only = true;
		mounts[i].container_path = answer_name(scratch, ANSWER_MOUNTS, resource->kind, "/", ids[i]);
		if (!mounts[i].container_path)
			return false;
		list[i] = &mounts[i];
	}
	grant->response.n_mounts = count;
	grant->response.mounts = list;
	return mounts && list;
}

/* Each resource of a container has an annotation of its own. */
static bool answer_add_annotation(struct answer_scratch *scratch, const struct resource *resource, char *const *ids,
				  size_t count, struct answer_grant *grant)
{
	char *prefix = answer_name(scratch, "", resource->kind, "=", "");
	char *key = answer_name(scratch, "cdi.k8s.io/ctr-gpu-", resource->name, "", "");

	if (!prefix || !key)
		return false;
	*strrchr(key, '/') = '_';
	v1beta1__container_allocate_response__annotations_entry__init(&grant->annotation);
	grant->annotation.key = key;
	grant->annotation.value = answer_join(scratch, prefix, ids, count);
	grant->annotations[0] = &grant->annotation;
	grant->response.n_annotations = 1;
	grant->response.annotations = grant->annotations;
	return grant->annotation.value;
}

static bool answer_add_variable(struct answer_scratch *scratch, const struct resource *resource, char *const *ids,
				size_t count, struct answer_grant *grant)
{
	bool nvidia = str_has_prefix(resource->name, ANSWER_NVIDIA);
	/* A slot is named with its kind only. */
	char *prefix = answer_name(scratch, "", resource_is_single(resource) ? resource->kind : "",
				   resource_is_single(resource) ? "=" : "", "");

	if (!prefix)
		return false;
	v1beta1__container_allocate_response__envs_entry__init(&grant->variable);
	grant->variable.key = (char *)(uintptr_t)(nvidia ? "NVIDIA_VISIBLE_DEVICES" : "CTR_GPU_VISIBLE_DEVICES");
	grant->variable.value = answer_join(scratch, prefix, ids, count);
	grant->variables[0] = &grant->variable;
	grant->response.n_envs = 1;
	grant->response.envs = grant->variables;
	return grant->variable.value;
}

static V1beta1__ContainerAllocateResponse *answer_grant_ids(struct answer_scratch *scratch,
							    const struct resource *resource, unsigned strategies,
							    char *const *ids, size_t count)
{
	struct answer_grant *grant = answer_room(scratch, 1, sizeof(*grant));

	if (!grant)
		return NULL;
	v1beta1__container_allocate_response__init(&grant->response);
	if (count == 0)
		return &grant->response;
	if (((strategies & STRATEGY_CDI) && !answer_add_cdi(scratch, resource, ids, count, grant)) ||
	    ((strategies & STRATEGY_ANNOTATIONS) && !answer_add_annotation(scratch, resource, ids, count, grant)) ||
	    ((strategies & STRATEGY_MOUNTS) && !answer_add_mounts(scratch, resource, ids, count, grant)) ||
	    ((strategies & STRATEGY_ENVIRONMENT) && !answer_add_variable(scratch, resource, ids, count, grant)))
		return NULL;
	return &grant->response;
}

/* Return: GRPC_OK if the resource has all of them, and they can be used. */
static int answer_check_ids(const struct resource *resource, const V1beta1__ContainerAllocateRequest *wish,
			    struct grpc_answer *ret)
{
	if (wish->n_devicesids > RESOURCE_DEVICES_MAX)
		return answer_refuse(ret, GRPC_INVALID_ARGUMENT, "more devices than there are");
	if (resource_is_single(resource) && wish->n_devicesids > 1)
		return answer_refuse(ret, GRPC_INVALID_ARGUMENT, "a container has one slot of a GPU at most");
	for (size_t i = 0; i < wish->n_devicesids; i++) {
		const struct device *device = resource_find(resource, wish->devicesids[i]);

		if (!device)
			return answer_refuse(ret, GRPC_INVALID_ARGUMENT, "there is no such device");
		if (!device->healthy)
			return answer_refuse(ret, GRPC_FAILED_PRECONDITION,
					     "the device cannot be used now; on its node, ctr-gpu info says why");
	}
	return GRPC_OK;
}

static int answer_allocation_of(const V1beta1__AllocateRequest *wish, const struct resource *resource,
				unsigned strategies, struct grpc_answer *ret)
{
	V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
	_cleanup_scratch_ struct answer_scratch scratch = {0};
	int r;

	if (wish->n_container_requests > ANSWER_CONTAINERS_MAX)
		return answer_refuse(ret, GRPC_RESOURCE_EXHAUSTED, "too many containers");
	response.container_responses = answer_room(&scratch, wish->n_container_requests, sizeof(void *));
	if (!response.container_responses)
		return answer_without_memory(ret);
	response.n_container_responses = wish->n_container_requests;
	for (size_t i = 0; i < wish->n_container_requests; i++) {
		const V1beta1__ContainerAllocateRequest *container = wish->container_requests[i];

		r = answer_check_ids(resource, container, ret);
		if (r != GRPC_OK)
			return r;
		response.container_responses[i] = answer_grant_ids(&scratch, resource, strategies,
								   container->devicesids, container->n_devicesids);
		if (!response.container_responses[i])
			return answer_without_memory(ret);
	}
	return answer_pack(&response.base, ret);
}

static int answer_allocation(const struct resource *resource, unsigned strategies, const uint8_t *request, size_t size,
			     struct grpc_answer *ret)
{
	V1beta1__AllocateRequest *wish = v1beta1__allocate_request__unpack(NULL, size, request);
	int r;

	if (!wish)
		return answer_refuse(ret, GRPC_INTERNAL, "the request cannot be read");
	r = answer_allocation_of(wish, resource, strategies, ret);
	v1beta1__allocate_request__free_unpacked(wish, NULL);
	return r;
}

/* Kubelet does not call it unless the options say so. */
static int answer_start(const struct resource *resource, unsigned strategies, const uint8_t *request, size_t size,
			struct grpc_answer *ret)
{
	V1beta1__Empty nothing = V1BETA1__EMPTY__INIT;

	(void)resource;
	(void)strategies;
	(void)request;
	(void)size;
	return answer_pack(&nothing.base, ret);
}

/* ---- methods ---- */

int answer_make(const struct resource *resource, unsigned strategies, const char *method, const uint8_t *request,
		size_t size, struct grpc_answer *ret)
{
	static const struct {
		const char *name;
		int (*make)(const struct resource *resource, unsigned strategies, const uint8_t *request, size_t size,
			    struct grpc_answer *ret);
	} methods[] = {
		{"GetDevicePluginOptions", answer_options},    {"ListAndWatch", answer_list},
		{"GetPreferredAllocation", answer_preference}, {"Allocate", answer_allocation},
		{"PreStartContainer", answer_start},
	};
	static const char service[] = "/v1beta1.DevicePlugin/";

	for (size_t i = 0; str_has_prefix(method, service) && i < ARRAY_SIZE(methods); i++)
		if (streq(method + strlen(service), methods[i].name))
			return methods[i].make(resource, strategies, request, size, ret);
	return answer_refuse(ret, GRPC_UNIMPLEMENTED, "there is no such method");
}

uint8_t *answer_registration(const struct resource *resource, const char *socket, size_t *ret_size)
{
	V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	struct grpc_answer packed = {0};

	options.get_preferred_allocation_available = true;
	request.version = (char *)(uintptr_t) "v1beta1";
	request.endpoint = (char *)(uintptr_t)socket;
	request.resource_name = resource->name;
	request.options = &options;
	if (answer_pack(&request.base, &packed) != GRPC_OK)
		return NULL;
	*ret_size = packed.size;
	return packed.frame;
}
