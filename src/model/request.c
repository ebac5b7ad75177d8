/* SPDX-License-Identifier: Apache-2.0 */

#include "model/request.h"

#include <string.h>
#include <strings.h>

#include "model/requirement.h"

static const struct {
	const char *name;
	uint32_t bits;
} capabilities_by_name[] = {
	{"all", CAPABILITY_ALL},         {"compat32", CAPABILITY_COMPAT32}, {"compute", CAPABILITY_COMPUTE},
	{"display", CAPABILITY_DISPLAY}, {"graphics", CAPABILITY_GRAPHICS}, {"ngx", CAPABILITY_NGX},
	{"utility", CAPABILITY_UTILITY}, {"video", CAPABILITY_VIDEO},
};

const struct request_unserved request_unserved[REQUEST_UNSERVED] = {
	{"NVIDIA_GDS", "--device /dev/nvidia-fs0 (each of them) --volume /run/udev:/run/udev:ro"},
	{"NVIDIA_MOFED", "--device /dev/infiniband"},
	{"NVIDIA_GDRCOPY", "--device /dev/gdrdrv"},
};

void request_clear(struct request *request)
{
	device_names_clear(&request->devices);
	strv_clear(&request->requirements);
	strv_clear(&request->imex_channels);
	*request = (struct request){0};
}

/* Whether a word such as "all" is in a list, in whatever letters. */
static bool request_has_word(const struct strv *list, const char *word)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcasecmp(list->items[i], word) == 0)
			return true;
	return false;
}

void request_take_devices(struct request *request, struct device_names *list)
{
	device_names_clear(&request->devices);
	request->has_slot = false;
	for (size_t i = 0; i < list->count; i++)
		request->has_slot |= list->items[i].is_slot;
	if (list->count == 0 || device_names_have(list, DEVICE_NAME_VOID, false))
		request->kind = REQUEST_VOID;
	else if (device_names_have(list, DEVICE_NAME_NONE, false))
		request->kind = REQUEST_NONE;
	else if (device_names_have(list, DEVICE_NAME_ALL, true))
		request->kind = REQUEST_ALL;
	else {
		request->kind = REQUEST_SOME;
		request->devices = steal_struct(list);
	}
}

size_t request_count_vcuda(const struct request *request)
{
	size_t count = 0;

	for (size_t i = 0; i < request->devices.count; i++)
		count += request->devices.items[i].is_vcuda;
	return count;
}

int request_set_devices(struct request *request, const char *devices)
{
	_cleanup_device_names_ struct device_names list = {0};
	int r = device_names_split(&list, devices);

	if (r == 0)
		request_take_devices(request, &list);
	return r;
}

/* The words of device lists mean the same of channels. */
int request_take_imex_channels(struct request *request, struct strv *list)
{
	strv_clear(&request->imex_channels);
	if (request_has_word(list, "none") || request_has_word(list, "void"))
		return 0;
	if (request_has_word(list, "all"))
		return strv_add(&request->imex_channels, "all");
	request->imex_channels = steal_struct(list);
	return 0;
}

int request_set_imex_channels(struct request *request, const char *channels)
{
	_cleanup_strv_ struct strv list = {0};
	int r;

	r = strv_split(channels, ",", &list);
	return r == 0 ? request_take_imex_channels(request, &list) : r;
}

int request_list_capabilities(const struct request *request, struct strv *ret)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(capabilities_by_name) && r == 0; i++)
		if (capabilities_by_name[i].bits != CAPABILITY_ALL &&
		    (request->capabilities & capabilities_by_name[i].bits))
			r = strv_add(ret, capabilities_by_name[i].name);
	return r;
}

int request_set_capabilities(struct request *request, const char *capabilities, struct err *err)
{
	const char *names[ARRAY_SIZE(capabilities_by_name)];
	_cleanup_strv_ struct strv list = {0};
	char suggestion[SUGGESTION_SIZE];
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
		uint32_t bits = 0;

		for (size_t j = 0; j < ARRAY_SIZE(capabilities_by_name); j++) {
			names[j] = capabilities_by_name[j].name;
			if (streq(names[j], list.items[i]))
				bits = capabilities_by_name[j].bits;
		}
		if (!bits)
			return err_set_advised(
				err, CTR_GPU_E_UNKNOWN_CAPABILITY,
				("unknown driver capability \"%.32s\"%s", list.items[i],
				 str_suggest(names, ARRAY_SIZE(names), list.items[i], suggestion)),
				("The capabilities are compute, compat32, graphics, utility, video, display, ngx, "
				 "all."));
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
