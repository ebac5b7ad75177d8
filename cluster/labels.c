/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What this node has, as labels by which Kubernetes chooses nodes: lines for a file of Node Feature Discovery's
 * features.d. A kind of GPU has the name of its resource, nvidia.com/gpu, in front of what is said of it.
 */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/print.h"
#include "base/str.h"
#include "cluster/plugin.h"
#include "ctr-gpu.h"
#include "lib/context.h"

void label_format(const char *text, size_t max, char ret[static LABEL_MAX + 1])
{
	size_t size = 0;

	for (; *text && size < max; text++) {
		bool fits = isalnum((unsigned char)*text) || *text == '.' || *text == '_';

		if (fits || (size > 0 && ret[size - 1] != '-'))
			ret[size++] = fits ? *text : '-';
	}
	while (size > 0 && !isalnum((unsigned char)ret[size - 1]))
		size--;
	ret[size] = '\0';
}

static void label_print(FILE *file, const char *kind, const char *name, const char *value)
{
	char text[LABEL_MAX + 1];

	label_format(value, LABEL_MAX, text);
	if (*text)
		(void)fprintf(file, "%s.%s=%s\n", kind, name, text);
}

/* The resource that the plugin offers an adapter by. */
static int label_kind(const struct adapter *adapter, char **ret)
{
	return str_format(ret, "%s/%s", adapter_domain(adapter), adapter->is_npu ? "npu" : "gpu");
}

static bool label_counts(const struct adapter *adapter)
{
	return adapter_domain(adapter) && !adapter->is_part && adapter->unusable == 0;
}

static bool label_is_of(const struct adapter *adapter, const struct adapter *first)
{
	return label_counts(adapter) && adapter->is_npu == first->is_npu &&
	       streq(adapter_domain(adapter), adapter_domain(first));
}

/* The versions of the driver that the first of a kind has. */
static void label_print_driver(FILE *file, const char *kind, const struct ctr_gpu_host *host, size_t number)
{
	struct ctr_gpu_driver driver = {0};
	char cuda[32];

	if (ctr_gpu_host_driver(host, number, &driver) < 0)
		return;
	(void)snprintf(cuda, sizeof(cuda), "%d.%d", driver.cuda_major, driver.cuda_minor);
	label_print(file, kind, "driver", driver.version ? driver.version : "");
	label_print(file, kind, "cuda", driver.cuda_major > 0 ? cuda : "");
	label_print(file, kind, "architecture", driver.architecture ? driver.architecture : "");
	ctr_gpu_driver_clear(&driver);
}

/* Whether no adapter of its kind before it has its name. */
static bool label_is_new(const struct inventory *inventory, const struct adapter *adapter)
{
	for (const struct adapter *other = inventory->adapters; other < adapter; other++)
		if (label_is_of(other, adapter) && other->name && streq(other->name, adapter->name))
			return false;
	return true;
}

/* Of a kind: how many, whose products, and the driver. A node with two products has a label for each. */
static int labels_print_kind(FILE *file, const struct ctr_gpu_host *host, size_t first)
{
	const struct inventory *inventory = &host->inventory;
	const struct adapter *of = &inventory->adapters[first];
	_cleanup_free_ char *kind = NULL;
	unsigned count = 0, products = 0;
	char product[LABEL_MAX + 1];

	if (label_kind(of, &kind) < 0)
		return -ENOMEM;
	for (size_t i = first; i < inventory->count; i++) {
		const struct adapter *adapter = &inventory->adapters[i];

		if (!label_is_of(adapter, of))
			continue;
		count++;
		if (!adapter->name || !label_is_new(inventory, adapter))
			continue;
		products++;
		label_format(adapter->name, LABEL_MAX - strlen("gpu.has."), product);
		if (*product)
			(void)fprintf(file, "%s.has.%s=true\n", kind, product);
	}
	(void)fprintf(file, "%s.count=%u\n", kind, count);
	label_print(file, kind, "product", products == 1 && of->name ? of->name : "mixed");
	label_print(file, kind, "backend", of->has_luid ? "gpu-pv" : "native");
	label_print_driver(file, kind, host, first);
	return 0;
}

/* What holds a container's choice among the adapters behind /dev/dxg. */
static int labels_print_choice(FILE *file, const struct ctr_gpu_host *host)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *json = NULL;
	struct memstream stream;
	FILE *memory = memstream_open(&stream);
	const char *grade;
	size_t size = 0;
	int r = memory ? ctr_gpu_host_write(host, CTR_GPU_FORMAT_JSON, memory) : -ENOMEM;

	if (memory && memstream_close(&stream, &text, &size) < 0)
		r = -ENOMEM;
	if (r == 0)
		r = json_parse(text, size, &json, NULL);
	grade = json_string_value(json_object_get(json_object_get(json, "choice"), "grade"));
	if (grade)
		label_print(file, "ctr-gpu.org/gpu", "choice", grade);
	return r;
}

static bool label_is_first(const struct inventory *inventory, size_t number)
{
	for (size_t i = 0; i < number; i++)
		if (label_is_of(&inventory->adapters[number], &inventory->adapters[i]))
			return false;
	return label_counts(&inventory->adapters[number]);
}

int labels_print(FILE *file)
{
	struct ctr_gpu_context *context = NULL;
	struct ctr_gpu_host *host = NULL;
	int r = ctr_gpu_context_new(&context);

	if (r == 0)
		r = ctr_gpu_context_load_config(context, NULL);
	if (r == 0)
		r = ctr_gpu_host_new(context, &host);
	for (size_t i = 0; r == 0 && i < host->inventory.count; i++)
		if (label_is_first(&host->inventory, i))
			r = labels_print_kind(file, host, i);
	if (r == 0)
		r = labels_print_choice(file, host);
	if (r != 0)
		plugin_log("%s", context ? ctr_gpu_context_message(context) : strerror(-r));
	(void)ctr_gpu_host_unref(host);
	(void)ctr_gpu_context_unref(context);
	return r == 0 ? print_finish(file) : r;
}
