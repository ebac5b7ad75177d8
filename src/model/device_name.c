/* SPDX-License-Identifier: Apache-2.0 */

#include "model/device_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
#define HEX_DIGITS DIGITS "abcdefABCDEF"

static const char npu[] = "npu:", vendor[] = "vendor:", part[] = "MIG-", gpu[] = "GPU-", luid[] = "LUID-";

static bool device_name_begins(const char *text, const char *with)
{
	return strncasecmp(text, with, strlen(with)) == 0;
}

/* A whole number up to @end. */
static bool device_name_read_number(const char *text, char end, long *ret)
{
	char *rest;

	if (!*text || !strchr(DIGITS, *text))
		return false;
	errno = 0;
	*ret = strtol(text, &rest, 10);
	return *rest == end && errno == 0;
}

/* ---- CDI's kind ---- */

/* Of what a kind is made: a vendor's domain, or a class. */
static size_t device_name_kind_length(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

/* "amd.com/npu=" */
static void device_name_read_kind(struct device_name *name)
{
	const char *text = name->text;
	size_t domain = device_name_kind_length(text),
	       class = domain && text[domain] == '/' ? device_name_kind_length(text + domain + 1) : 0;

	name->name = text;
	if (class == 0 || text[domain + 1 + class] != '=')
		return;
	name->name = text + domain + 1 + class + 1;
	name->domain = adapter_find_domain(text, domain);
	name->is_npu = str_has_prefix(text + domain, "/npu=");
	name->is_slot = str_has_prefix(text, DEVICE_NAME_SLOT_KIND "=");
	name->is_vcuda = name->is_slot || str_has_prefix(text, DEVICE_NAME_VCUDA_KIND "=");
}

/* "GPU-5a3f1c2b-…:3": what is before the number names the GPU. */
static void device_name_read_slot(struct device_name *name)
{
	char *colon = name->is_slot ? strrchr(name->text, ':') : NULL;

	name->slot = -1;
	if (!colon || colon <= name->name || !device_name_read_number(colon + 1, '\0', &name->slot)) {
		name->slot = -1;
		return;
	}
	*colon = '\0';
}

/* ---- what is behind it ---- */

/* "vendor:amd", "vendor:amd:0" */
static enum device_name_type device_name_read_vendor(struct device_name *name)
{
	name->vendor = name->name + strlen(vendor);
	name->vendor_length = strcspn(name->vendor, ":");
	if (!name->vendor[name->vendor_length])
		return DEVICE_NAME_VENDOR;
	return device_name_read_number(name->vendor + name->vendor_length + 1, '\0', &name->number)
		       ? DEVICE_NAME_VENDOR_NUMBER
		       : DEVICE_NAME_OTHER;
}

static enum device_name_type device_name_read_type(struct device_name *name)
{
	static const struct {
		const char *word;
		enum device_name_type type;
	} words[] = {{"void", DEVICE_NAME_VOID}, {"none", DEVICE_NAME_NONE}, {"all", DEVICE_NAME_ALL}};
	bool of_npus = device_name_begins(name->name, npu);
	const char *text = name->name + (of_npus ? strlen(npu) : 0);

	if (device_name_begins(name->name, vendor))
		return device_name_read_vendor(name);
	name->is_npu |= of_npus;
	for (size_t i = of_npus ? 2 : 0; i < ARRAY_SIZE(words); i++)
		if (strcasecmp(text, words[i].word) == 0)
			return words[i].type;
	if (device_name_read_number(text, '\0', &name->number))
		return DEVICE_NAME_NUMBER;
	if (!of_npus && device_name_read_number(text, ':', &name->number) &&
	    device_name_read_number(strchr(text, ':') + 1, '\0', &name->part))
		return DEVICE_NAME_PART;
	return DEVICE_NAME_OTHER;
}

/* "LUID-0000000000000001" */
static bool device_name_read_luid(const char *text, struct luid *ret)
{
	uint64_t number;

	if (!device_name_begins(text, luid) || strspn(text + strlen(luid), HEX_DIGITS) != 16 || text[strlen(luid) + 16])
		return false;
	number = strtoull(text + strlen(luid), NULL, 16);
	*ret = (struct luid){(uint32_t)number, (int32_t)(uint32_t)(number >> 32)};
	return true;
}

void device_name_read(char *text, struct device_name *ret)
{
	*ret = (struct device_name){.text = text};
	device_name_read_kind(ret);
	device_name_read_slot(ret);
	ret->type = device_name_read_type(ret);
	ret->is_uuid = device_name_begins(ret->name, gpu) || device_name_begins(ret->name, part);
	ret->is_of_part = ret->type == DEVICE_NAME_PART || device_name_begins(ret->name, part);
	ret->has_address = pci_address_read(ret->name, &ret->address);
	ret->has_luid = device_name_read_luid(ret->name, &ret->luid);
}

void device_name_clear(struct device_name *name)
{
	free(name->text);
	*name = (struct device_name){0};
}

/* ---- lists ---- */

void device_names_clear(struct device_names *list)
{
	for (size_t i = 0; i < list->count; i++)
		device_name_clear(&list->items[i]);
	free(list->items);
	*list = (struct device_names){0};
}

int device_names_add(struct device_names *list, const char *text)
{
	char *copy = list->count < STRV_SPLIT_MAX ? strdup(text) : NULL;
	struct device_name *more = copy ? array_grow(list->items, list->count, sizeof(*more)) : NULL;

	if (!more) {
		free(copy);
		return list->count < STRV_SPLIT_MAX ? -ENOMEM : -E2BIG;
	}
	list->items = more;
	device_name_read(copy, &more[list->count++]);
	return 0;
}

int device_names_split(struct device_names *list, const char *text)
{
	_cleanup_strv_ struct strv words = {0};
	int r = strv_split(text, ",", &words);

	for (size_t i = 0; i < words.count && r == 0; i++)
		r = device_names_add(list, words.items[i]);
	return r;
}

int device_names_add_vendor(struct device_names *list, const char *of, long number, const char *variable)
{
	_cleanup_free_ char *text = NULL;
	struct device_name *name;
	int r = number < 0 ? str_format(&text, "all") : str_format(&text, "%ld", number);

	if (r == 0)
		r = device_names_add(list, text);
	if (r < 0)
		return r;
	name = &list->items[list->count - 1];
	name->type = number < 0 ? DEVICE_NAME_VENDOR : DEVICE_NAME_VENDOR_NUMBER;
	name->vendor = of;
	name->vendor_length = strlen(of);
	name->variable = variable;
	return 0;
}

bool device_names_have(const struct device_names *list, enum device_name_type type, bool bare)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].type == type &&
		    !(bare && (device_name_has_kind(&list->items[i]) || list->items[i].is_npu)))
			return true;
	return false;
}
