/* SPDX-License-Identifier: Apache-2.0 */

/* Resources and their devices: what becomes of them when the host is looked at, and which of them fit each other. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cluster/devices.h"

static bool resource_is_id(const char *text)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
	size_t length = text ? strlen(text) : 0;

	return length > 0 && length <= RESOURCE_NAME_MAX && strspn(text, chars) == length;
}

static bool resource_is_name(const char *text)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
	size_t vendor = text ? strspn(text, chars) : 0, length = text ? strlen(text) : 0;

	return vendor > 0 && text[vendor] == '/' && length <= RESOURCE_NAME_MAX && length > vendor + 1 &&
	       strspn(text + vendor + 1, chars) == length - vendor - 1;
}

static struct resource *resources_seek(struct resources *resources, const char *name)
{
	for (size_t i = 0; i < resources->count; i++)
		if (streq(resources->list[i].name, name))
			return &resources->list[i];
	return NULL;
}

const struct resource *resources_find(const struct resources *resources, const char *name)
{
	return resources_seek((struct resources *)(uintptr_t)resources, name);
}

bool resource_is_single(const struct resource *resource)
{
	return streq(resource->name, RESOURCE_SLOTS);
}

/* Return: NULL where one more has no room. */
static struct resource *resources_get(struct resources *resources, const char *name, const char *kind)
{
	struct resource *resource = resources_seek(resources, name);

	if (resource)
		return resource;
	if (resources->count == RESOURCES_MAX)
		return NULL;
	resource = &resources->list[resources->count];
	resource->name = strdup(name);
	resource->kind = strdup(kind ? kind : name);
	if (!resource->name || !resource->kind) {
		free(resource->name);
		free(resource->kind);
		return NULL;
	}
	resources->count++;
	return resource;
}

const struct device *resource_find(const struct resource *resource, const char *id)
{
	for (size_t i = 0; i < resource->count; i++)
		if (streq(resource->devices[i].id, id))
			return &resource->devices[i];
	return NULL;
}

static void resource_clear_device(struct device *device)
{
	free(device->id);
	free(device->locator);
	free(device->store);
}

/* What a look says of a device. */
struct resource_look {
	const char *resource, *kind, *id, *locator, *store;
	int numa;
	bool usable;
	const json_t *lost; /* UUIDs of GPUs that no slot is given of */
};

static int resource_set_text(char **place, const char *text)
{
	if (text)
		return str_replace(place, text);
	free(*place);
	*place = NULL;
	return 0;
}

/* Return: whether kubelet is to be told; -ENOMEM. */
static int resource_set_device(struct device *device, const struct resource_look *look)
{
	bool changed = device->healthy != look->usable || device->numa != look->numa;

	device->seen = true;
	device->gone = false;
	device->healthy = look->usable;
	device->numa = look->numa;
	if (resource_set_text(&device->locator, look->locator) < 0 ||
	    resource_set_text(&device->store, look->store) < 0)
		return -ENOMEM;
	return changed;
}

/* What is at a place now has the place's name; what was there before is known by its own alone. */
static void resource_take_place(struct resource *resource, const struct device *taker, const char *locator)
{
	for (size_t i = 0; locator && i < resource->count; i++) {
		struct device *device = &resource->devices[i];

		if (device != taker && device->locator && streq(device->locator, locator)) {
			free(device->locator);
			device->locator = NULL;
		}
	}
}

static void resources_take_place(struct resources *resources, const struct device *taker, const char *locator)
{
	for (size_t i = 0; i < resources->count; i++)
		resource_take_place(&resources->list[i], taker, locator);
}

/* A part that is back at its place may be another, which the driver is asked first. */
static bool resource_is_doubtful(const struct device *device, const struct resource_look *look)
{
	return !look->id && look->usable && !device->healthy && str_has_prefix(look->locator, "MIG-");
}

/* A driver that is not asked for the name tells where the device is. */
static struct device *resource_find_again(struct resource *resource, const struct resource_look *look)
{
	for (size_t i = 0; i < resource->count; i++) {
		struct device *device = &resource->devices[i];

		if (look->id ? streq(device->id, look->id)
			     : look->locator && device->locator && streq(device->locator, look->locator))
			return device;
	}
	return NULL;
}

static int resource_add_device(struct resource *resource, const struct resource_look *look)
{
	struct device *devices, device = {.id = strdup(look->id)};

	if (!device.id || resource_set_device(&device, look) < 0 ||
	    !(devices = array_grow(resource->devices, resource->count, sizeof(*devices)))) {
		resource_clear_device(&device);
		return -ENOMEM;
	}
	resource->devices = devices;
	resource->devices[resource->count++] = device;
	resource->changes++;
	return 0;
}

/* Parts of a GPU have other names each time that it is divided. Return: whether there is room for one more. */
static bool resource_make_room(struct resource *resource)
{
	size_t first = 0;

	if (resource->count < RESOURCE_DEVICES_MAX)
		return true;
	while (first < resource->count && !resource->devices[first].gone)
		first++;
	if (first == resource->count)
		return false;
	resource_clear_device(&resource->devices[first]);
	memmove(&resource->devices[first], &resource->devices[first + 1],
		(--resource->count - first) * sizeof(*resource->devices));
	return true;
}

/* @ret: whose it is; of a name that is known or, without one, any. */
static struct device *resources_find_again(struct resources *resources, const struct resource_look *look,
					   struct resource **ret)
{
	struct device *device = NULL;

	for (size_t i = 0; i < resources->count && !device; i++) {
		if (look->resource && !streq(resources->list[i].name, look->resource))
			continue;
		*ret = &resources->list[i];
		device = resource_find_again(*ret, look);
	}
	return device;
}

/* Whether a device is a slot of a GPU that is lost. */
static bool resource_is_lost(const json_t *lost, const char *id)
{
	const json_t *item;
	size_t i;

	json_array_foreach (lost, i, item) {
		const char *uuid = json_string_value(item);

		if (uuid && *uuid && str_has_prefix(id, uuid) && id[strlen(uuid)] == ':')
			return true;
	}
	return false;
}

static bool resource_is_look(const struct resource_look *look)
{
	if (look->resource ? !resource_is_name(look->resource) : look->id != NULL)
		return false;
	return (!look->kind || resource_is_name(look->kind)) && (!look->id || resource_is_id(look->id));
}

static int resource_take_look(struct resources *resources, struct resource_look *look)
{
	struct resource *resource = NULL;
	struct device *device;
	int r;

	if (!resource_is_look(look))
		return 0;
	device = resources_find_again(resources, look, &resource);
	if (device && resource_is_doubtful(device, look)) {
		resources->wants_names = true;
		return 0;
	}
	look->usable = look->usable && !resource_is_lost(look->lost, device ? device->id : look->id ? look->id : "");
	if (device) {
		resources_take_place(resources, device, look->id ? look->locator : NULL);
		r = device->seen ? 0 : resource_set_device(device, look);
		resource->changes += r > 0;
		return r < 0 ? r : 0;
	}
	if (!look->id && look->usable)
		resources->wants_names = true;
	if (!look->id || !look->usable)
		return 0;
	resource = resources_get(resources, look->resource, look->kind);
	if (!resource || !resource_make_room(resource))
		return 0;
	resources_take_place(resources, NULL, look->locator);
	return resource_add_device(resource, look);
}

/* Those that were not seen are not there, or the host did not answer. */
static void resource_end_look(struct resource *resource, bool answered)
{
	for (size_t i = 0; i < resource->count; i++) {
		struct device *device = &resource->devices[i];

		if (answered)
			device->gone = !device->seen;
		if (!device->seen && device->healthy) {
			device->healthy = false;
			resource->changes++;
		}
		device->seen = false;
	}
}

int resources_update(struct resources *resources, const json_t *found)
{
	const json_t *item;
	size_t i;
	int r = 0;

	resources->wants_names = false;
	json_decref(resources->slots);
	resources->slots = json_incref(json_object_get(found, "slots"));
	if (json_is_array(json_object_get(found, "lost"))) {
		json_decref(resources->lost);
		resources->lost = json_incref(json_object_get(found, "lost"));
	}
	json_array_foreach (json_object_get(found, "devices"), i, item) {
		const json_t *numa = json_object_get(item, "numa");
		json_int_t node = json_is_integer(numa) ? json_integer_value(numa) : -1;
		struct resource_look look = {
			.resource = json_string_value(json_object_get(item, "resource")),
			.kind = json_string_value(json_object_get(item, "kind")),
			.id = json_string_value(json_object_get(item, "id")),
			.locator = json_string_value(json_object_get(item, "locator")),
			.store = json_string_value(json_object_get(item, "store")),
			.numa = node >= 0 && node < 4096 ? (int)node : -1,
			.usable = json_is_true(json_object_get(item, "usable")),
			.lost = resources->lost,
		};

		if (r == 0)
			r = resource_take_look(resources, &look);
	}
	for (i = 0; i < resources->count; i++)
		resource_end_look(&resources->list[i], true);
	return r;
}

void resources_fail(struct resources *resources)
{
	json_decref(resources->slots);
	resources->slots = NULL;
	for (size_t i = 0; i < resources->count; i++)
		resource_end_look(&resources->list[i], false);
}

void resources_clear(struct resources *resources)
{
	for (size_t i = 0; i < resources->count; i++) {
		for (size_t j = 0; j < resources->list[i].count; j++)
			resource_clear_device(&resources->list[i].devices[j]);
		free(resources->list[i].devices);
		free(resources->list[i].name);
		free(resources->list[i].kind);
	}
	json_decref(resources->slots);
	json_decref(resources->lost);
	*resources = (struct resources){0};
}

/* ---- which devices fit each other ---- */

/* Every available one is tried as the first, with those that are nearest to it. */

/* How far a device is from another, in steps; the first counts more than any of the second. */
enum { PREFERENCE_NUMA = 2, PREFERENCE_STORE = 1, PREFERENCE_DISTANCES = PREFERENCE_NUMA + PREFERENCE_STORE + 1 };

struct resource_preference {
	const struct device **candidates; /* those that must be come first */
	size_t count, must, size;
};

static int resource_distance(const struct device *a, const struct device *b)
{
	bool same_store = a->store && b->store ? streq(a->store, b->store) : a->store == b->store;

	return (a->numa == b->numa ? 0 : PREFERENCE_NUMA) + (same_store ? 0 : PREFERENCE_STORE);
}

static void resource_add_candidates(struct resource_preference *preference, const struct resource *resource,
				    char *const *ids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct device *device = resource_find(resource, ids[i]);
		bool known = !device || preference->count == resource->count;

		for (size_t j = 0; j < preference->count && !known; j++)
			known = preference->candidates[j] == device;
		if (!known)
			preference->candidates[preference->count++] = device;
	}
}

/* The nearest to @anchor. Return: how far they are from it altogether, and of its own group how many stay behind. */
static size_t resource_take_nearest(const struct resource_preference *preference, const struct device *anchor,
				    const char **ret)
{
	size_t taken = 0, cost = 0, left = 0;

	for (; taken < preference->must && taken < preference->size; taken++) {
		ret[taken] = preference->candidates[taken]->id;
		cost += (size_t)resource_distance(anchor, preference->candidates[taken]);
	}
	for (int distance = 0; distance < PREFERENCE_DISTANCES; distance++)
		for (size_t i = preference->must; i < preference->count; i++) {
			if (resource_distance(anchor, preference->candidates[i]) != distance)
				continue;
			if (taken < preference->size) {
				ret[taken++] = preference->candidates[i]->id;
				cost += (size_t)distance;
			} else if (distance == 0)
				left++;
		}
	return cost * (RESOURCE_DEVICES_MAX + 1) + left;
}

long resource_prefer(const struct resource *resource, char *const *available, size_t available_count, char *const *must,
		     size_t must_count, size_t size, const char **ret)
{
	_cleanup_free_ const struct device **candidates = calloc(resource->count + 1, sizeof(*candidates));
	struct resource_preference preference = {.candidates = candidates};
	size_t best = SIZE_MAX, anchors, chosen = 0;

	if (!candidates)
		return -ENOMEM;
	resource_add_candidates(&preference, resource, must, must_count);
	preference.must = preference.count;
	resource_add_candidates(&preference, resource, available, available_count);
	preference.size = size < preference.count ? size : preference.count;
	anchors = preference.must > 0 ? preference.must : preference.count;
	for (size_t i = 0; i < anchors; i++) {
		size_t cost = resource_take_nearest(&preference, candidates[i], ret);

		if (cost < best) {
			best = cost;
			chosen = i;
		}
	}
	if (anchors > 0)
		(void)resource_take_nearest(&preference, candidates[chosen], ret);
	return (long)preference.size;
}
