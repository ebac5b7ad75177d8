/* SPDX-License-Identifier: Apache-2.0 */

/* The OCI state and config.json, as any bytes. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct oci_state state = {0};
	struct oci_config config = {0};
	struct err err = {0};

	if (oci_parse_state((const char *)data, size, &state, &err) == 0) {
		if (state.pid <= 0 || state.bundle[0] != '/')
			abort();
		oci_state_clear(&state);
	} else if (!err.text[0]) {
		abort();
	}
	err = (struct err){0};
	if (oci_parse_config((const char *)data, size, &config, &err) == 0) {
		if (!config.root[0])
			abort();
		oci_config_clear(&config);
	} else if (!err.text[0]) {
		abort();
	}
	return 0;
}
