/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists the GPUs of this host, one per line, and why one cannot be used.
 *
 *	cc -o list-adapters list-adapters.c $(pkg-config --cflags --libs ctr-gpu)
 */

#include <stdio.h>
#include <stdlib.h>

#include <ctr-gpu.h>

static void print(const struct ctr_gpu_adapter *adapter)
{
	if (adapter->index >= 0)
		printf("%d\t", adapter->index);
	else
		printf("-\t");
	printf("%s\t%s", adapter->vendor, adapter->name ? adapter->name : "(no name)");
	if (adapter->unusable)
		printf("\t%s: %s", ctr_gpu_error_name(adapter->unusable), adapter->reason);
	printf("\n");
}

int main(void)
{
	struct ctr_gpu_context *context;
	struct ctr_gpu_host *host;
	int result;

	if (ctr_gpu_context_new(&context) < 0)
		return EXIT_FAILURE;
	result = ctr_gpu_context_load_config(context, NULL);
	if (!result)
		result = ctr_gpu_host_new(context, &host);
	if (result) {
		fprintf(stderr, "list-adapters: [%s] %s\n", ctr_gpu_error_name(result), ctr_gpu_context_message(context));
		ctr_gpu_context_unref(context);
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < ctr_gpu_host_adapter_count(host); i++) {
		struct ctr_gpu_adapter adapter;

		if (ctr_gpu_host_adapter(host, i, &adapter) == 0)
			print(&adapter);
	}
	ctr_gpu_host_unref(host);
	ctr_gpu_context_unref(context);
	return EXIT_SUCCESS;
}
