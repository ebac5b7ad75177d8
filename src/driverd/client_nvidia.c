/* SPDX-License-Identifier: Apache-2.0 */

/* What only NVIDIA's own libraries know. */

#include <stdlib.h>

#include "base/paths.h"
#include "driverd/protocol.h"

static const char hang_advice[] = "Look for messages of the driver in dmesg; the machine may have to be restarted.";

int driverd_nvml_names(const struct settings *settings, const char *library, bool opens_devices, const char *advice,
		       struct driverd_name **ret, size_t *ret_count, struct err *err)
{
	const struct question question = {
		.procedure = DRIVERD_NVML_NAMES,
		.library = library,
		.opens_devices = opens_devices,
		.advice = advice,
		.device = opens_devices ? PATH_NVIDIACTL : PATH_DXG,
		.hang_advice = hang_advice,
	};
	struct driverd_reply answer;
	int r;

	r = client_ask(settings, &question, &answer, err);
	if (r != 0)
		return r;
	*ret = answer.names;
	*ret_count = answer.name_count;
	return 0;
}

int driverd_cuda_version(const struct settings *settings, const char *library, int *ret_major, int *ret_minor,
			 struct err *err)
{
	const struct question question = {
		.procedure = DRIVERD_CUDA_VERSION,
		.library = library,
		.advice = "Without it requirements on the CUDA version are warnings.",
		.device = "libcuda",
		.hang_advice = hang_advice,
	};
	struct driverd_reply answer;
	int r;

	r = client_ask(settings, &question, &answer, err);
	if (r != 0)
		return r;
	if (answer.version < 1000 || answer.version > 999 * 1000)
		return err_set(err, CTR_GPU_E_DRIVER_LIBRARY, "%s says that its CUDA version is %d", library,
			       answer.version);
	*ret_major = answer.version / 1000;
	*ret_minor = answer.version % 1000 / 10;
	return 0;
}
