/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes of cuda.def, nvml.def and tables.def what would be written a hundred times by hand: `generate ops` and the
 * other names of outputs in main() print one file each. It runs on the machine that builds, from the definitions
 * as the preprocessor sees them, and stops at the first one that it does not understand.
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "vcuda/generate/definition.h"

/* What the file that is made stands on. */
static void main_print_includes(const char *output)
{
	static const char *const lists[][2] = {
		{"ops", "\"vcuda/protocol/wire.h\""},
		{"nvml-api", "\"vcuda/nvml/types.h\""},
		{"nvml-stubs", "\"vcuda/nvml/nvml_session.h\" \"vcuda/nvml_api.h\""},
		{"api driver", "\"vcuda/protocol/types.h\""},
		{"stubs", "<string.h> \"vcuda/client/call.h\" \"vcuda/client/context.h\" "
			  "\"vcuda/client/address_map.h\" "
			  "\"vcuda/client_api.h\" "
			  "\"vcuda/ops.h\""},
		{"cases", "\"vcuda/driver_api.h\" \"vcuda/ops.h\" \"vcuda/server/driver.h\" \"vcuda/server/handle.h\" "
			  "\"vcuda/server/request.h\""},
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (const char *at = lists[i][1]; definition_is(output, lists[i][0]) && *at; at += strspn(at, " ")) {
			printf("#include %.*s\n", (int)strcspn(at, " "), at);
			at += strcspn(at, " ");
		}
	if (definition_is(output, "ops api driver nvml-api"))
		printf("#pragma once\n");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} outputs[] = {
		{"ops", api_print_ops},         {"api", api_print_all},           {"stubs", stub_print_all},
		{"entries", entry_print_all},   {"driver", api_print_driver},     {"cases", case_print_all},
		{"check", check_print_cuda},    {"nvml-api", api_print_all},      {"refused", api_print_refused},
		{"nvml-stubs", stub_print_all}, {"nvml-check", check_print_nvml}, {"tables", table_print_all},
	};
	const bool nvml = argc == 2 && strncmp(argv[1], "nvml", 4) == 0;

	definition_read(nvml);
	if (argc == 2 && !definition_is(argv[1], "refused"))
		printf("/* Made by src/vcuda/generate of src/vcuda/%s.def. */\n", nvml ? "nvml" : "cuda");
	main_print_includes(argc == 2 ? argv[1] : "");
	for (size_t i = 0; argc == 2 && i < sizeof(outputs) / sizeof(outputs[0]); i++)
		if (strcmp(outputs[i].name, argv[1]) == 0) {
			outputs[i].print();
			return ferror(stdout) || fflush(stdout) ? 1 : 0;
		}
	fprintf(stderr, "usage: generate ops|api|stubs|entries|tables|driver|cases|check|refused|"
			"nvml-api|nvml-stubs|nvml-check\n");
	return 1;
}
