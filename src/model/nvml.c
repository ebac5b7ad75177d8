/* SPDX-License-Identifier: Apache-2.0 */

#include "model/nvml.h"

#include <stddef.h>
#include <string.h>

enum { FIELD_RECOVERY_ACTION = 230 };

/* nvmlDeviceGpuRecoveryAction_t */
static enum nvml_state nvml_state_of_action(unsigned action)
{
	enum { NONE, RESET, REBOOT, DRAIN_AND_RESET = 4, BUS_RESET = 6, SYSTEM_REBOOT = 7 };

	switch (action) {
	case NONE:
		return NVML_STATE_WELL;
	case RESET:
	case DRAIN_AND_RESET:
	case BUS_RESET:
		return NVML_STATE_RESET;
	case REBOOT:
	case SYSTEM_REBOOT:
		return NVML_STATE_REBOOT;
	default:
		return NVML_STATE_UNKNOWN;
	}
}

enum nvml_state nvml_state_ask(const struct nvml_questions *questions, void *gpu)
{
	struct nvml_field action = {.field = FIELD_RECOVERY_ACTION};
	unsigned long long memory[3];
	int r = questions->memory(gpu, memory);

	if (r == NVML_GPU_IS_LOST)
		return NVML_STATE_LOST;
	if (r == NVML_RESET_REQUIRED)
		return NVML_STATE_RESET;
	if (!questions->fields || questions->fields(gpu, 1, &action) != NVML_SUCCESS || action.outcome != NVML_SUCCESS)
		return NVML_STATE_UNKNOWN;
	return nvml_state_of_action(action.value[0]);
}

bool nvml_state_is_bad(enum nvml_state state)
{
	return state == NVML_STATE_LOST || state == NVML_STATE_RESET || state == NVML_STATE_REBOOT;
}

const char *nvml_state_text(enum nvml_state state)
{
	switch (state) {
	case NVML_STATE_LOST:
		return "fallen off the bus";
	case NVML_STATE_RESET:
		return "reset required";
	case NVML_STATE_REBOOT:
		return "reboot required";
	default:
		return "";
	}
}

static bool nvml_xid_is_among(uint32_t xid, const uint8_t *list, size_t count)
{
	return xid <= UINT8_MAX && memchr(list, (int)xid, count);
}

bool nvml_xid_is_fatal(uint32_t xid)
{
	static const uint8_t fatal[] = {46, 62, 64, 79, 95, 110, 119, 120, 140, 143, 158};

	return nvml_xid_is_among(xid, fatal, sizeof(fatal));
}

bool nvml_xid_is_doubtful(uint32_t xid)
{
	static const uint8_t doubtful[] = {48, 74, 94, 109, 136, 155, 156};

	return nvml_xid_is_among(xid, doubtful, sizeof(doubtful));
}

bool nvml_xid_is_of_program(uint32_t xid)
{
	static const uint8_t of_programs[] = {13, 31, 43, 45, 68, 109};

	return nvml_xid_is_among(xid, of_programs, sizeof(of_programs));
}
