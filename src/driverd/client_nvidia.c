/* SPDX-License-Identifier: Apache-2.0 */

/* What only the native driver's own libraries know. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driverd/client.h"
#include "driverd/driverd.h"
#include "driverd/protocol.h"

static const char hang_advice[] = "Look for messages of the driver in dmesg; the machine may have to be restarted.";

void driverd_parts_free(struct driverd_mig_part *parts, size_t count)
{
	for (size_t i = 0; parts && i < count; i++) {
		free(parts[i].uuid);
		free(parts[i].gpu_uuid);
	}
	free(parts);
}

static int take_parts(const driverd_parts_answer *answer, struct driverd_mig_part **ret, size_t *ret_count)
{
	size_t count = answer->driverd_parts_answer_u.parts.parts_len;
	const driverd_part *given = answer->driverd_parts_answer_u.parts.parts_val;
	struct driverd_mig_part *parts = calloc(count + 1, sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		parts[i] = (struct driverd_mig_part){
			.uuid = strdup(given[i].uuid),
			.gpu_uuid = strdup(given[i].gpu_uuid),
			.gpu_instance = given[i].gpu_instance,
			.compute_instance = given[i].compute_instance,
		};
		if (!parts[i].uuid || !parts[i].gpu_uuid) {
			driverd_parts_free(parts, count);
			return -ENOMEM;
		}
	}
	*ret = parts;
	*ret_count = count;
	return 0;
}

int driverd_nvml_parts(const struct settings *settings, const char *library, struct driverd_mig_part **ret, size_t *ret_count,
		       struct err *err)
{
	driverd_parts_answer answer = {0};
	struct question question = {
		.procedure = DRIVERD_NVML_PARTS,
		.decode = (void (*)(void))xdr_driverd_parts_answer,
		.answer = &answer,
		.library = library,
		.opens_devices = true,
		.advice = "Parts of GPUs can be named without it: 0:1, or MIG-GPU-<uuid>/<GPU instance>/<compute instance>.",
		.device = "/dev/nvidiactl",
		.hang_advice = hang_advice,
	};
	int r;

	r = client_ask(settings, &question, err);
	if (r == 0 && answer.status == DRIVERD_OK)
		r = take_parts(&answer, ret, ret_count);
	else if (r == 0)
		r = client_explain_status(&question, (int)answer.status, answer.driverd_parts_answer_u.message, err);
	xdr_free((xdrproc_t)xdr_driverd_parts_answer, (char *)&answer);
	return r;
}

int driverd_cuda_version(const struct settings *settings, const char *library, int *ret_major, int *ret_minor, struct err *err)
{
	driverd_version_answer answer = {0};
	struct question question = {
		.procedure = DRIVERD_CUDA_VERSION,
		.decode = (void (*)(void))xdr_driverd_version_answer,
		.answer = &answer,
		.library = library,
		.advice = "Without it requirements on the CUDA version are warnings.",
		.device = "libcuda",
		.hang_advice = hang_advice,
	};
	int r, version;

	r = client_ask(settings, &question, err);
	version = answer.driverd_version_answer_u.number;
	if (r == 0 && answer.status != DRIVERD_OK) {
		r = client_explain_status(&question, (int)answer.status, answer.driverd_version_answer_u.message, err);
	} else if (r == 0 && (version < 1000 || version > 999 * 1000)) {
		r = err_set(err, CTR_GPU_E_DRIVER_LIBRARY, "%s says that its CUDA version is %d", library, version);
	} else if (r == 0) {
		*ret_major = version / 1000;
		*ret_minor = version % 1000 / 10;
	}
	xdr_free((xdrproc_t)xdr_driverd_version_answer, (char *)&answer);
	return r;
}
