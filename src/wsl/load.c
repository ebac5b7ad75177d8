/* SPDX-License-Identifier: Apache-2.0 */

#include <sys/stat.h>

#include "base/paths.h"
#include "dxg/ioctl.h"
#include "wsl/backend.h"

static int gpu_pv_decide_load(const struct load_options *options, struct load *ret, struct err *err)
{
	struct stat st;

	(void)options;
	if (stat(PATH_DXG, &st) < 0 || !S_ISCHR(st.st_mode))
		return err_set(err, CTR_GPU_E_NO_DEVICE, PATH_DXG " is missing");
	return strv_format(&ret->remarks,
			   "nothing to load for GPUs behind " PATH_DXG ": their driver is part of the kernel");
}

const struct backend_load loader_gpu_pv = {.decide = gpu_pv_decide_load};
