/* SPDX-License-Identifier: Apache-2.0 */

/* Names and texts of the errors, from the public documentation. */

#include "sim.h"

static const struct {
	CUresult error;
	const char *name, *text;
} errors[] = {
/* clang-format off */
#define E(number, name, text) {number, "CUDA_" name, text},
	E(0, "SUCCESS", "no error")
	E(1, "ERROR_INVALID_VALUE", "invalid argument")
	E(2, "ERROR_OUT_OF_MEMORY", "out of memory")
	E(3, "ERROR_NOT_INITIALIZED", "initialization error")
	E(4, "ERROR_DEINITIALIZED", "driver shutting down")
	E(100, "ERROR_NO_DEVICE", "no CUDA-capable device is detected")
	E(101, "ERROR_INVALID_DEVICE", "invalid device ordinal")
	E(200, "ERROR_INVALID_IMAGE", "device kernel image is invalid")
	E(201, "ERROR_INVALID_CONTEXT", "invalid device context")
	E(209, "ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device")
	E(215, "ERROR_UNSUPPORTED_LIMIT", "limit is not supported on this architecture")
	E(217, "ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices")
	E(224, "ERROR_UNSUPPORTED_EXEC_AFFINITY", "the provided execution affinity is not supported")
	E(218, "ERROR_INVALID_PTX", "a PTX JIT compilation failed")
	E(301, "ERROR_FILE_NOT_FOUND", "file not found")
	E(304, "ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS")
	E(400, "ERROR_INVALID_HANDLE", "invalid resource handle")
	E(401, "ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state")
	E(500, "ERROR_NOT_FOUND", "named symbol not found")
	E(600, "ERROR_NOT_READY", "device not ready")
	E(700, "ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered")
	E(701, "ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch")
	E(702, "ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated")
	E(704, "ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled")
	E(705, "ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled")
	E(708, "ERROR_PRIMARY_CONTEXT_ACTIVE", "cannot set while device is active in this process")
	E(709, "ERROR_CONTEXT_IS_DESTROYED", "context is destroyed")
	E(710, "ERROR_ASSERT", "device-side assert triggered")
	E(712, "ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped")
	E(713, "ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region")
	E(719, "ERROR_LAUNCH_FAILED", "unspecified launch failure")
	E(800, "ERROR_NOT_PERMITTED", "operation not permitted")
	E(801, "ERROR_NOT_SUPPORTED", "operation not supported")
	E(802, "ERROR_SYSTEM_NOT_READY", "system not yet initialized")
	E(900, "ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing")
	E(901, "ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture")
	E(903, "ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not initiated in this stream")
	E(904, "ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work")
	E(905, "ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream")
	E(906, "ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream")
	E(907, "ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream")
	E(908, "ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture sequence from another thread")
	E(910, "ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update")
	E(999, "ERROR_UNKNOWN", "unknown error")
#undef E
	/* clang-format on */
};

static CUresult error_find(CUresult error, const char **ret, bool name)
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = NULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			*ret = name ? errors[i].name : errors[i].text;
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **ret)
{
	return error_find(error, ret, true);
}

CUresult cuGetErrorString(CUresult error, const char **ret)
{
	return error_find(error, ret, false);
}
