/* SPDX-License-Identifier: Apache-2.0 */

#include "drm/card.h"
#include "drm/drm.h"

static int drm_load_decide(const struct load_options *options, struct load *ret, struct err *err)
{
	struct inventory inventory = {0};
	int r = cards_read(&backend_drm, &inventory);
	size_t count = inventory.count;

	(void)options;
	inventory_clear(&inventory);
	if (r < 0)
		return err_set(err, r, "%m");
	/* What is said of the NVIDIA GPU that is missing stays. */
	if (count == 0)
		return CTR_GPU_E_NO_DEVICE;
	return strv_format(&ret->remarks, "nothing to load for AMD's and Intel's GPUs: udev loads their drivers");
}

const struct backend_load loader_drm = {.decide = drm_load_decide};
