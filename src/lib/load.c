/* SPDX-License-Identifier: Apache-2.0 */

/* A native host made ready, as programs outside see it. The hook links nothing of this. */

#include "lib/load.h"

#include <errno.h>
#include <stdlib.h>

#include "ctr-gpu.h"
#include "lib/context.h"

int ctr_gpu_load_new(struct ctr_gpu_context *context, unsigned flags, struct ctr_gpu_load **ret_load)
{
	struct ctr_gpu_load *load = calloc(1, sizeof(*load));

	if (!load)
		return -ENOMEM;
	load->context = context;
	load->options.modeset = flags & CTR_GPU_LOAD_MODESET;
	load->options.replace = flags & CTR_GPU_LOAD_REPLACE;
	*ret_load = load;
	return 0;
}

struct ctr_gpu_load *ctr_gpu_load_unref(struct ctr_gpu_load *load)
{
	if (!load)
		return NULL;
	load_clear(&load->data);
	strv_clear(&load->options.imex_channels);
	free(load);
	return NULL;
}

int ctr_gpu_load_add_imex_channels(struct ctr_gpu_load *load, const char *channels)
{
	return strv_split(channels, ",", &load->options.imex_channels);
}

int ctr_gpu_load_decide(struct ctr_gpu_load *load)
{
	struct load data;
	int r;

	load->options.driver_root = load->context->settings.driver_root;
	r = load_decide(&load_this_host, &load->options, &data, &load->context->err);
	if (r != 0)
		return r;
	load_clear(&load->data);
	load->data = data;
	load->decided = true;
	return 0;
}

int ctr_gpu_load_apply(struct ctr_gpu_load *load)
{
	int r = 0;

	if (!load->decided)
		r = ctr_gpu_load_decide(load);
	return r == 0 ? load_do(&load_this_host, &load->options, &load->data, &load->context->err) : r;
}
