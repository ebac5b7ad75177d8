/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a container asks for, from its config.json to the request: the environment, requirements on drivers, mounts of device plugins.
 * And the same variables with any bytes in them, which JSON would not let through.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/context.h"
#include "model/requirement.h"
#include "oci/env_request.h"
#include "oci/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_request(const struct env_request *ask)
{
	struct request request = {0};
	struct settings settings;
	struct err err = {0};

	settings_init(&settings);
	if (env_request_read(ask, &settings, &request, &err) != 0 && !err.text[0])
		abort();
	(void)env_request_is_something(ask);
	request_clear(&request);
	settings_clear(&settings);
}

static void read_config(const char *data, size_t size)
{
	struct oci_config config = {0};
	struct err err = {0};

	if (oci_parse_config(data, size, &config, &err) == 0) {
		const struct env_request ask = env_request_of_config(&config);

		read_request(&ask);
		oci_config_clear(&config);
	}
}

static void read_variables(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
					    "NVIDIA_REQUIRE_CUDA", "NVIDIA_IMEX_CHANNELS", "DOCKER_RESOURCE_GPU"};
	const struct driver_facts facts = {.cuda_major = 12, .cuda_minor = 4};
	char *text = strndup((const char *)data, size), *items[ARRAY_SIZE(names) + 1] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!text || asprintf(&items[i], "%s=%s", names[i], text) < 0)
			abort();
	read_request(&(struct env_request){.environment = (const char *const *)items});
	(void)requirement_check(text, &facts);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		free(items[i]);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0 && data[0] == '{')
		read_config((const char *)data, size);
	else
		read_variables(data, size);
	return 0;
}
