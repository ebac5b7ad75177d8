/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A page for Prometheus: what this node offers, and which pod has it, for which kubelet is asked each time. It is
 * served only where the administrator wants it.
 */

#include <poll.h>
#include <string.h>

#include "pod_resources.pb-c.h"

#include "base/str.h"
#include "cluster/plugin.h"

enum { METRICS_ASK_MS = 1000 /* which kubelet has for its answer */ };

int metrics_open(const char *where, struct metrics *ret)
{
	*ret = (struct metrics){0};
	return metrics_page_open(where, &ret->page);
}

/* ---- the page ---- */

static void metrics_print_devices(FILE *page, const struct resources *resources)
{
	(void)fputs("# HELP ctr_gpu_device_healthy Whether a pod can have the device.\n"
		    "# TYPE ctr_gpu_device_healthy gauge\n",
		    page);
	for (size_t i = 0; i < resources->count; i++)
		for (size_t j = 0; j < resources->list[i].count; j++) {
			const struct device *device = &resources->list[i].devices[j];

			metrics_page_print_label(page, "ctr_gpu_device_healthy{resource", resources->list[i].name);
			metrics_page_print_label(page, ",device", device->id);
			(void)fprintf(page, "} %d\n", device->healthy);
		}
}

/* A number of each slot that is in use. */
static void metrics_print_slot_numbers(FILE *page, const json_t *slots, const char *key, const char *name,
				       const char *help)
{
	const json_t *slot;
	size_t i;

	(void)fprintf(page, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
	json_array_foreach (slots, i, slot) {
		const json_t *number = json_object_get(slot, key);
		const char *device = json_string_value(json_object_get(slot, "device"));
		const char *container = json_string_value(json_object_get(slot, "container"));

		if (!json_is_number(number) || !device)
			continue;
		(void)fprintf(page, "%s{", name);
		metrics_page_print_label(page, "device", device);
		metrics_page_print_label(page, ",id", container ? container : "");
		(void)fprintf(page, "} %.17g\n", json_number_value(number));
	}
}

static void metrics_print_slots(FILE *page, const struct resources *resources)
{
	static const struct {
		const char *key, *name, *help;
	} numbers[] = {
		{"used", "ctr_gpu_slot_memory_used_bytes", "Memory of its GPU that a slot's container has."},
		{"limit", "ctr_gpu_slot_memory_limit_bytes", "How much of that it may have by its own wish."},
		{"ratio", "ctr_gpu_slot_memory_limit_ratio", "How much of that it may have, as a part of the GPU's."},
		{"share", "ctr_gpu_slot_share", "Its share of the GPU's time."},
		{"processes", "ctr_gpu_slot_processes", "Its processes that use CUDA."},
	};

	for (size_t i = 0; resources_find(resources, RESOURCE_SLOTS) && i < ARRAY_SIZE(numbers); i++)
		metrics_print_slot_numbers(page, resources->slots, numbers[i].key, numbers[i].name, numbers[i].help);
}

static void metrics_print_grants(FILE *page, const struct resources *resources, const Podresources__PodResources *pod,
				 const Podresources__ContainerResources *container)
{
	for (size_t i = 0; i < container->n_devices; i++) {
		const Podresources__ContainerDevices *devices = container->devices[i];
		const struct resource *resource = resources_find(resources, devices->resource_name);

		for (size_t j = 0; resource && j < devices->n_device_ids; j++) {
			metrics_page_print_label(page, "ctr_gpu_device_granted{resource", resource->name);
			metrics_page_print_label(page, ",device", devices->device_ids[j]);
			metrics_page_print_label(page, ",namespace", pod->namespace_);
			metrics_page_print_label(page, ",pod", pod->name);
			metrics_page_print_label(page, ",container", container->name);
			(void)fputs("} 1\n", page);
		}
	}
}

/* @message: what kubelet answered. What cannot be read counts as no answer. */
static void metrics_print_pods(FILE *page, const struct resources *resources, const uint8_t *message, size_t size)
{
	Podresources__ListPodResourcesResponse *list =
		message ? podresources__list_pod_resources_response__unpack(NULL, size, message) : NULL;

	(void)fprintf(page,
		      "# HELP ctr_gpu_kubelet_answers Whether kubelet says which pods have devices.\n"
		      "# TYPE ctr_gpu_kubelet_answers gauge\nctr_gpu_kubelet_answers %d\n"
		      "# HELP ctr_gpu_device_granted A device that a container of a pod has.\n"
		      "# TYPE ctr_gpu_device_granted gauge\n",
		      list != NULL);
	for (size_t i = 0; list && i < list->n_pod_resources; i++)
		for (size_t j = 0; j < list->pod_resources[i]->n_containers; j++)
			metrics_print_grants(page, resources, list->pod_resources[i],
					     list->pod_resources[i]->containers[j]);
	if (list)
		podresources__list_pod_resources_response__free_unpacked(list, NULL);
}

/* ---- kubelet ---- */

static void metrics_ask(struct metrics *metrics)
{
	uint8_t *request = frame_new(0);

	metrics->until = grpc_now() + METRICS_ASK_MS;
	if (!request || registration_new(METRICS_POD_RESOURCES, "/v1.PodResourcesLister/List", request, FRAME_HEAD,
					 &metrics->call) < 0)
		metrics->until = 0;
}

/* Everyone who asks by now has the same page. */
static void metrics_publish(struct metrics *metrics, const struct resources *resources, bool answered)
{
	_cleanup_free_ char *text = NULL;
	struct memstream stream;
	FILE *page = memstream_open(&stream);
	size_t size = 0;
	const uint8_t *message = answered ? registration_answer(metrics->call, &size) : NULL;

	if (page) {
		metrics_print_devices(page, resources);
		metrics_print_slots(page, resources);
		metrics_print_pods(page, resources, message, size);
		(void)memstream_close(&stream, &text, NULL);
	}
	metrics_page_publish(&metrics->page, text);
	if (metrics->call)
		metrics->call = registration_free(metrics->call);
	metrics->until = 0;
}

static void metrics_go_on(struct metrics *metrics, const struct resources *resources, const struct waits *waits)
{
	enum registration_state state = REGISTRATION_FAILED;

	if (!metrics_page_is_asked(&metrics->page))
		return;
	if (!metrics->call)
		metrics_ask(metrics);
	if (metrics->call)
		state = registration_serve(metrics->call, waits_find(waits, registration_fd(metrics->call)));
	if (state != REGISTRATION_WAITS || grpc_now() >= metrics->until)
		metrics_publish(metrics, resources, state == REGISTRATION_DONE);
}

/* ---- the loop ---- */

void metrics_gather(const struct metrics *metrics, struct waits *waits)
{
	waits_add(waits, metrics->page.listener, POLLIN);
	for (size_t i = 0; i < metrics->page.peer_count; i++) {
		waits_add(waits, metrics->page.peers[i].fd, metrics_page_events(&metrics->page.peers[i]));
		waits_until(waits, metrics->page.peers[i].deadline);
	}
	if (!metrics->call)
		return;
	waits_add(waits, registration_fd(metrics->call), registration_events(metrics->call));
	waits_until(waits, metrics->until);
}

static short metrics_happened(const void *waits, int fd)
{
	return waits_find(waits, fd);
}

void metrics_serve(struct metrics *metrics, const struct resources *resources, const struct waits *waits)
{
	metrics_page_serve(&metrics->page, metrics_happened, waits, grpc_now());
	metrics_go_on(metrics, resources, waits);
}

void metrics_close(struct metrics *metrics)
{
	metrics_page_close(&metrics->page);
	if (metrics->call)
		metrics->call = registration_free(metrics->call);
}
