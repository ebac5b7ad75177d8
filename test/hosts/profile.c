/* SPDX-License-Identifier: Apache-2.0 */

#include "profile.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE_PREFIX "C:\\Windows\\System32\\DriverStore\\FileRepository\\"
#define DRIVER "580.159.04"

static const struct {
	const char *name;
	uint32_t bit;
} type_names[] = {
	{"render", TYPE_RENDER},
	{"display", TYPE_DISPLAY},
	{"software", TYPE_SOFTWARE},
	{"post", TYPE_POST},
	{"hybrid-discrete", TYPE_HYBRID_DISCRETE},
	{"hybrid-integrated", TYPE_HYBRID_INTEGRATED},
	{"detachable", TYPE_DETACHABLE},
	{"compute-only", TYPE_COMPUTE_ONLY},
};

static int complain(const char *path, const char *what)
{
	(void)fprintf(stderr, "enter: %s: %s\n", path, what);
	return -1;
}

static const char *text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static uint32_t number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_integer(value))
		return (uint32_t)json_integer_value(value);
	return json_is_string(value) ? (uint32_t)strtoul(json_string_value(value), NULL, 16) : 0;
}

static bool read_types(const json_t *list, uint32_t *ret)
{
	const json_t *entry;
	size_t index;

	json_array_foreach (list, index, entry) {
		size_t i = 0;

		while (i < sizeof(type_names) / sizeof(type_names[0]) &&
		       strcmp(type_names[i].name, json_string_value(entry)) != 0)
			i++;
		if (i == sizeof(type_names) / sizeof(type_names[0]))
			return false;
		*ret |= type_names[i].bit;
	}
	return true;
}

static enum profile_files read_presence(const json_t *value)
{
	if (json_is_false(value))
		return FILES_ABSENT;
	return json_is_string(value) && strcmp(json_string_value(value), "empty") == 0 ? FILES_EMPTY : FILES_WHOLE;
}

static const char *read_adapter(const json_t *object, struct profile_adapter *ret)
{
	const char *luid = text(object, "luid"), *pci = text(object, "pci");
	unsigned high, low, bus, device, function;

	ret->name = text(object, "name");
	ret->vendor = number(object, "vendor");
	ret->device = number(object, "device");
	ret->wddm = number(object, "wddm");
	ret->store = text(object, "store");
	ret->store_prefix = text(object, "store_prefix") ?: STORE_PREFIX;
	ret->files = text(object, "files");
	ret->on_disk = read_presence(json_object_get(object, "on_disk"));
	if (!ret->name || !ret->vendor || !ret->wddm)
		return "an adapter needs name, vendor and wddm";
	if (!luid || sscanf(luid, "%x:%x", &high, &low) != 2)
		return "an adapter needs a luid, \"HIGH:LOW\" in hexadecimal";
	ret->luid = (LUID){.LowPart = low, .HighPart = (int32_t)high};
	if (pci && sscanf(pci, "%x:%x.%x", &bus, &device, &function) != 3)
		return "pci must be \"BUS:DEVICE.FUNCTION\"";
	ret->has_address = pci != NULL;
	if (pci)
		ret->address = (ADAPTERADDRESS){bus, device, function};
	if (!read_types(json_object_get(object, "type"), &ret->type))
		return "an adapter has an unknown type";
	return NULL;
}

/* What holds unless a profile says otherwise. */
static bool is_not_false(const json_t *object, const char *key)
{
	return !json_is_false(json_object_get(object, key));
}

static const char *read_gpu(const json_t *object, struct profile_gpu *ret)
{
	const json_t *list = json_object_get(object, "mig"), *entry;
	size_t index;

	ret->name = text(object, "name");
	ret->pci = text(object, "pci");
	ret->uuid = text(object, "uuid");
	ret->minor = number(object, "minor");
	ret->device = number(object, "device");
	ret->node = is_not_false(object, "node");
	ret->excluded = json_is_true(json_object_get(object, "excluded"));
	if (!ret->name || !ret->pci || !ret->uuid || json_array_size(list) > PROFILE_INSTANCES_MAX)
		return "a native GPU needs name, pci and uuid, and has 7 MIG instances at most";
	json_array_foreach (list, index, entry) {
		ret->mig[index].id = number(entry, "id");
		ret->mig[index].compute_instances = number(entry, "compute_instances");
	}
	ret->mig_count = json_array_size(list);
	return NULL;
}

static const char *read_card(const json_t *object, struct profile_card *ret)
{
	ret->pci = text(object, "pci");
	ret->vendor = number(object, "vendor");
	ret->device = number(object, "device");
	ret->product = text(object, "product");
	ret->unique_id = text(object, "unique_id");
	ret->gfx_target = (uint32_t)json_integer_value(json_object_get(object, "gfx_target"));
	ret->partitions = (uint32_t)json_integer_value(json_object_get(object, "partitions"));
	ret->node = is_not_false(object, "node");
	ret->card = (uint32_t)json_integer_value(json_object_get(object, "card"));
	ret->render = (uint32_t)json_integer_value(json_object_get(object, "render"));
	return ret->pci && ret->render >= 128 ? NULL : "a card needs pci, card and render, which is 128 or more";
}

static const char *read_accelerator(const json_t *object, struct profile_accelerator *ret)
{
	ret->pci = text(object, "pci");
	ret->vendor = number(object, "vendor");
	ret->device = number(object, "device");
	ret->number = (uint32_t)json_integer_value(json_object_get(object, "accel"));
	return ret->pci ? NULL : "an accelerator needs pci";
}

static const char *read_native(const json_t *object, struct profile_native *ret)
{
	const json_t *list = json_object_get(object, "gpus"), *channels = json_object_get(object, "imex_channels"),
		     *cards = json_object_get(object, "cards"), *accelerators = json_object_get(object, "accelerators"),
		     *entry;
	size_t index;

	ret->present = object != NULL;
	ret->nvidia = object && is_not_false(object, "nvidia");
	ret->driver = text(object, "driver") ?: DRIVER;
	ret->module = text(object, "module") ?: ret->driver;
	ret->root = text(object, "root") ?: "";
	ret->prefix = text(object, "prefix");
	ret->configs = is_not_false(object, "configs");
	ret->loader_cache = is_not_false(object, "loader_cache");
	ret->compat32 = json_is_true(json_object_get(object, "compat32"));
	ret->uvm = is_not_false(object, "uvm");
	ret->nvswitches = number(object, "nvswitches");
	if (json_array_size(list) > PROFILE_GPUS_MAX || json_array_size(channels) > PROFILE_CHANNELS_MAX ||
	    json_array_size(cards) > PROFILE_CARDS_MAX || json_array_size(accelerators) > PROFILE_CARDS_MAX)
		return "too many GPUs, IMEX channels, cards or accelerators";
	json_array_foreach (channels, index, entry)
		ret->imex_channels[ret->imex_channel_count++] = (uint32_t)json_integer_value(entry);
	json_array_foreach (cards, index, entry) {
		const char *wrong = read_card(entry, &ret->cards[ret->card_count++]);

		if (wrong)
			return wrong;
	}
	json_array_foreach (accelerators, index, entry) {
		const char *wrong = read_accelerator(entry, &ret->accelerators[ret->accelerator_count++]);

		if (wrong)
			return wrong;
	}
	json_array_foreach (list, index, entry) {
		const char *wrong = read_gpu(entry, &ret->gpus[ret->gpu_count++]);

		if (wrong)
			return wrong;
	}
	return NULL;
}

static const char *read_document(const json_t *root, struct profile *ret)
{
	const json_t *list = json_object_get(root, "adapters"), *entry;
	size_t index;

	ret->about = text(root, "about");
	if (!ret->about)
		return "a profile needs \"about\"";
	ret->dxg = json_is_true(json_object_get(root, "dxg"));
	ret->libdxcore = text(root, "libdxcore");
	ret->old_interface = json_is_true(json_object_get(root, "old_interface"));
	ret->lib_behind = text(root, "lib_behind");
	ret->wsl_mounts = json_is_true(json_object_get(root, "wsl_mounts"));
	ret->loader_cache = json_is_true(json_object_get(root, "loader_cache"));
	ret->repository = number(root, "repository");
	if (json_array_size(list) > PROFILE_ADAPTERS_MAX ||
	    json_array_size(json_object_get(root, "lib")) > PROFILE_SETS_MAX)
		return "too many adapters or sets of libraries";

	json_array_foreach (json_object_get(root, "lib"), index, entry)
		ret->lib[ret->lib_count++] = json_string_value(entry);
	json_array_foreach (list, index, entry) {
		const char *wrong = read_adapter(entry, &ret->adapters[ret->adapter_count++]);

		if (wrong)
			return wrong;
	}
	return read_native(json_object_get(root, "native"), &ret->native);
}

int profile_load(const char *path, struct profile *ret)
{
	struct profile profile = {0};
	json_error_t error;
	const char *wrong;

	profile.document = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!profile.document)
		return complain(path, json_error_code(&error) == json_error_cannot_open_file
					      ? "there is no such profile; test/hosts/enter --list shows those that are"
					      : error.text);
	wrong = read_document(profile.document, &profile);
	if (wrong) {
		profile_clear(&profile);
		return complain(path, wrong);
	}
	*ret = profile;
	return 0;
}

void profile_clear(struct profile *profile)
{
	json_decref(profile->document);
	*profile = (struct profile){0};
}
