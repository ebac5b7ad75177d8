/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the simulated machine is like. A server is told nothing by its environment, so a file beside the library says the same.
 *
 *	GPUS=2 MEMORY=24G,8G NAMES=A,B UUIDS=hex,hex VERSION=12040 FAULTS=cuMemAlloc_v2@3=2 HOST_REGISTER=0 CHECKPOINT=0 COPY_RATE=1000000
 *	CHECKPOINT_US=300000 STRICT=1 COMPILE_US=20000 AGAIN_US=30000 STREAM_MEM_OPS_V1=1 PAGEABLE=1 HOST_PAGE_TABLES=1
 *
 * CONTEXT_BYTES=549453824 STREAM_BYTES=540000 EXEC_BYTES=11000000 ARRAY_BYTES=65536: what the device loses to each. LAUNCHES=2048: the limit of them
 * in a new context. PAGES=1: small
 * pieces share pages, which are lost as a whole. Of libnvidia-ml.so.1 beside it, NVML=none: it does not begin;
 * zero: it says that a process has nothing; early: it counts this one before it has a context.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static char config_text[8192];
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

/* Return: NULL if there is no such file. */
static FILE *config_open(const char *name)
{
	char path[4096];
	const char *slash;
	Dl_info info;

	if (!dladdr((void *)config_value, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	if (!slash)
		return NULL;
	(void)snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, name);
	return fopen(path, "re");
}

bool config_has_file(const char *name)
{
	FILE *file = config_open(name);

	if (file)
		(void)fclose(file);
	return file;
}

static void config_read(void)
{
	FILE *file = config_open("sim.conf");

	if (!file)
		return;
	config_text[fread(config_text, 1, sizeof(config_text) - 1, file)] = '\0';
	(void)fclose(file);
}

const char *config_value(const char *key)
{
	static _Thread_local char value[1024];
	const char *line = config_text;
	size_t length = strlen(key);

	(void)snprintf(value, sizeof(value), "CTR_GPU_SIM_%s", key);
	if (getenv(value))
		return getenv(value);
	(void)pthread_once(&config_once, config_read);
	while (line && *line) {
		if (strncmp(line, key, length) == 0 && line[length] == '=') {
			(void)snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + length + 1, "\n"),
				       line + length + 1);
			return value;
		}
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return NULL;
}

unsigned long long config_number(const char *key, unsigned long long otherwise)
{
	const char *value = config_value(key);

	return value && *value ? strtoull(value, NULL, 0) : otherwise;
}
