/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked that is of no GPU: versions, names of processes, events, texts of errors. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vcuda/nvml/nvml_session.h"
#include "vcuda/nvml_api.h"

enum { SYSTEM_NEWEST = 13000, SYSTEM_VERSION = 80 };

static nvmlReturn_t system_read_driver(char *version)
{
	struct wire_usage usage;
	nvmlReturn_t r = nvml_session_enter();

	if (!r)
		r = nvml_session_read_usage(0, &usage);
	if (!r && usage.driver[0] == '\0')
		r = NVML_ERROR_NOT_SUPPORTED;
	if (!r)
		memcpy(version, usage.driver, strlen(usage.driver) + 1);
	return r;
}

/* As libcuda.so.1 beside us says it: no newer than what is offered. */
static int system_cuda(void)
{
	return client.host.driver_version < SYSTEM_NEWEST ? client.host.driver_version : SYSTEM_NEWEST;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	char text[SYSTEM_VERSION];
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = system_read_driver(text);
	return r ? r : nvml_session_copy_text(version, length, text);
}

/* The driver's, behind the number of CUDA's. */
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
	char text[SYSTEM_VERSION] = "00.";
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = system_read_driver(text + 3);
	if (r)
		return r;
	text[0] = (char)('0' + system_cuda() / 10000 % 10);
	text[1] = (char)('0' + system_cuda() / 1000 % 10);
	return nvml_session_copy_text(version, length, text);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = nvml_session_enter_for(version);
	if (!r)
		*version = system_cuda();
	return r;
}

/* "/proc/PID/cmdline", of which the first word is the name. */
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
	char path[32] = "/proc/", digits[16], text[1024] = {0};
	size_t at = strlen(path), count = 0;
	ssize_t bytes;
	int fd;

	LOCK_HOLD(nvml_session_lock());
	if (nvml_session_enter())
		return NVML_ERROR_UNINITIALIZED;
	for (; count == 0 || pid > 0; pid /= 10)
		digits[count++] = (char)('0' + pid % 10);
	while (count > 0)
		path[at++] = digits[--count];
	memcpy(path + at, "/cmdline", sizeof("/cmdline"));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NVML_ERROR_NOT_FOUND;
	bytes = pread(fd, text, sizeof(text) - 1, 0);
	(void)close(fd);
	if (bytes <= 0)
		return NVML_ERROR_NOT_FOUND;
	if (name && length > 0 && length < strlen(text) + 1)
		text[length - 1] = '\0';
	return nvml_session_copy_text(name, length, text);
}

nvmlReturn_t nvmlUnitGetCount(unsigned *count)
{
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = nvml_session_enter_for(count);
	if (!r)
		*count = 0;
	return r;
}

/* ---- sets of events, of which none ever comes ---- */

/* No GPU of a container has any to register. nvidia-smi makes a set before it asks for anything else. */
struct nvmlEventSet_st {
	char nothing;
};

static nvmlReturn_t system_enter(const void *place)
{
	LOCK_HOLD(nvml_session_lock());
	return nvml_session_enter_for(place);
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	nvmlReturn_t r = system_enter(set);
	nvmlEventSet_t made = r ? NULL : malloc(sizeof(*made));

	if (r)
		return r;
	if (!made)
		return NVML_ERROR_MEMORY;
	*set = made;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	nvmlReturn_t r = system_enter(set);

	if (!r)
		free(set);
	return r;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned milliseconds)
{
	const struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
	nvmlReturn_t r = system_enter(set && data ? set : NULL);

	if (r)
		return r;
	(void)nanosleep(&time, NULL);
	return NVML_ERROR_TIMEOUT;
}

/* ---- errors ---- */

const char *nvmlErrorString(nvmlReturn_t result)
{
	static const char *const texts[] = {
		"Success",
		"Uninitialized",
		"Invalid Argument",
		"Not Supported",
		"Insufficient Permissions",
		"Already Initialized",
		"Not Found",
		"Insufficient Size",
		"Insufficient External Power",
		"Driver Not Loaded",
		"Timeout",
		"Interrupt Request Issue",
		"NVML Shared Library Not Found",
		"Function Not Found",
		"Corrupted infoROM",
		"GPU is lost",
		"GPU requires reset",
		"The operating system has blocked the request",
		"Driver/library version mismatch",
		"In use by another client",
		"Insufficient Memory",
		"No data",
		"vGPU ECC is not supported",
		"Insufficient Resources",
		"Frequency not supported",
		"Argument version mismatch",
		"Deprecated",
		"Not Ready",
		"GPU Not Found",
		"Invalid State",
	};

	return result >= 0 && (size_t)result < sizeof(texts) / sizeof(texts[0]) ? texts[result] : "Unknown Error";
}
