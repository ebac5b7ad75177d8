// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/*
 * The adapters, as the module's parameters describe them (lists, one item for each adapter; the number of luids= is the
 * number of adapters), and what the host answers for each.
 */

#include <linux/module.h>
#include <linux/slab.h>

#include "dxgkrnl.h"

enum { ADAPTERS_LIMIT = 128, NAME_MAX_UNITS = 260 };

static unsigned long long luids[ADAPTERS_LIMIT];
module_param_array(luids, ullong, &dxgadapter_count, 0444);
MODULE_PARM_DESC(luids, "HIGH << 32 | LOW of each adapter");
static unsigned int ids[ADAPTERS_LIMIT], id_count;
module_param_array(ids, uint, &id_count, 0444);
MODULE_PARM_DESC(ids, "VENDOR << 16 | DEVICE; those without are NVIDIA's");
static unsigned int types[ADAPTERS_LIMIT], type_count;
module_param_array(types, uint, &type_count, 0444);
MODULE_PARM_DESC(types, "bits of D3DKMT_ADAPTERTYPE; those without can render");
static char *stores[ADAPTERS_LIMIT];
static unsigned int store_count;
module_param_array(stores, charp, &store_count, 0444);
MODULE_PARM_DESC(stores, "directories below FileRepository; those without have the last");
static char *names[ADAPTERS_LIMIT];
static unsigned int name_count;
module_param_array(names, charp, &name_count, 0444);
MODULE_PARM_DESC(names, "descriptions, _ for a space");

unsigned int dxgadapter_count;
struct dxgadapter *dxgadapters;

static int print_messages(char *buffer, const struct kernel_param *parameter)
{
	int length = 0;

	for (unsigned int i = 0; i < dxgadapter_count; i++)
		length += scnprintf(buffer + length, PAGE_SIZE - (size_t)length, "%08x:%08x %lld\n",
				    dxgadapters[i].luid.b, dxgadapters[i].luid.a,
				    (long long)atomic64_read(&dxgadapters[i].messages));
	return length;
}

static const struct kernel_param_ops messages_ops = {.get = print_messages};
module_param_cb(messages, &messages_ops, NULL, 0444);
MODULE_PARM_DESC(messages, "how many messages have left the guest for each adapter");

static void adapter_init(struct dxgadapter *adapter, unsigned int i)
{
	unsigned int id = i < id_count ? ids[i] : 0x10de2684;

	init_rwsem(&adapter->core_lock);
	adapter->luid = (struct winluid){.a = (u32)luids[i], .b = (u32)(luids[i] >> 32)};
	adapter->host_adapter_luid = (struct winluid){.a = 0xa000 + i};
	adapter->vendor = id >> 16;
	adapter->device = id & 0xffff;
	adapter->type = (i < type_count ? types[i] : TYPE_RENDER) | TYPE_PARAVIRTUALIZED;
	adapter->bus = i + 1;
	adapter->name = i < name_count ? names[i] : "NVIDIA_GeForce_RTX_4090";
	adapter->store = store_count == 0 ? "nv_dispi.inf_amd64_0123456789abcdef" : stores[min(i, store_count - 1)];
}

int dxgadapters_init(void)
{
	dxgadapters = kcalloc(max(dxgadapter_count, 1u), sizeof(*dxgadapters), GFP_KERNEL);
	if (!dxgadapters)
		return -ENOMEM;
	for (unsigned int i = 0; i < dxgadapter_count; i++)
		adapter_init(&dxgadapters[i], i);
	return 0;
}

void dxgadapters_free(void)
{
	kfree(dxgadapters);
}

struct dxgadapter *dxgadapter_by_luid(const struct winluid *luid)
{
	for (unsigned int i = 0; i < dxgadapter_count; i++)
		if (dxgadapters[i].luid.a == luid->a && dxgadapters[i].luid.b == luid->b)
			return &dxgadapters[i];
	return NULL;
}

/* ASCII to UTF-16, with the NUL that is there already; what does not fit is cut off. Return: bytes, with the NUL. */
static u32 put_string(void *data, u32 size, const char *prefix, const char *text)
{
	u16 *at = data, *last = (u16 *)data + size / 2 - 1;

	for (; *prefix && at < last; prefix++)
		*at++ = (u16)*prefix;
	for (; *text && at < last; text++)
		*at++ = *text == '_' && !*prefix ? (u16)' ' : (u16)*text;
	return (u32)((char *)at - (char *)data) + 2;
}

static int answer_words(void *data, u32 size, const u32 *words, u32 words_size)
{
	if (size < words_size)
		return -EINVAL;
	memcpy(data, words, words_size);
	return 0;
}

static int answer_registry_info(struct dxgadapter *adapter, void *data, u32 size)
{
	if (size < 4 * NAME_MAX_UNITS * 2)
		return -EINVAL;
	memset(data, 0, size);
	put_string(data, NAME_MAX_UNITS * 2, "", adapter->name);
	return 0;
}

/* D3DDDI_QUERYREGISTRY_INFO: offsets of what is asked for, of the size and the status of the answer, and of the answer. */
enum { REGISTRY_QUERY = 0, REGISTRY_SIZE = 536, REGISTRY_STATUS = 540, REGISTRY_OUTPUT = 544, REGISTRY_ALL = 552 };

static int answer_registry(struct dxgadapter *adapter, char *data, u32 size)
{
	static const char repository[] = "\\SystemRoot\\System32\\DriverStore\\FileRepository\\";
	u32 needed = (u32)(strlen(repository) + strlen(adapter->store) + 1) * 2, status = 0, query;

	if (size < REGISTRY_ALL)
		return -EINVAL;
	memcpy(&query, data + REGISTRY_QUERY, sizeof(query));
	if (query != 2)
		return -EINVAL;
	memset(data + REGISTRY_OUTPUT, 0, size - REGISTRY_OUTPUT);
	if (size - REGISTRY_OUTPUT < needed)
		status = 1;
	else {
		u16 *at = (u16 *)(data + REGISTRY_OUTPUT);

		for (const char *from = repository; *from; from++)
			*at++ = (u16)*from;
		for (const char *from = adapter->store; *from; from++)
			*at++ = (u16)*from;
	}
	memcpy(data + REGISTRY_SIZE, &needed, sizeof(needed));
	memcpy(data + REGISTRY_STATUS, &status, sizeof(status));
	return 0;
}

int dxgadapter_answer(struct dxgadapter *adapter, u32 type, void *data, u32 size)
{
	u32 words[7] = {0};

	switch (type) {
	case 6: /* ADAPTERADDRESS */
		words[0] = adapter->bus;
		return answer_words(data, size, words, 12);
	case 8: /* ADAPTERREGISTRYINFO */
		return answer_registry_info(adapter, data, size);
	case 13: /* DRIVERVERSION */
		words[0] = 3100;
		return answer_words(data, size, words, 4);
	case 15: /* ADAPTERTYPE */
		words[0] = adapter->type;
		return answer_words(data, size, words, 4);
	case 31: /* PHYSICALADAPTERDEVICEIDS */
		words[1] = adapter->vendor;
		words[2] = adapter->device;
		words[6] = 3;
		return answer_words(data, size, words, 28);
	case 48: /* QUERYREGISTRY */
		return answer_registry(adapter, data, size);
	}
	return -EINVAL;
}
