/* SPDX-License-Identifier: Apache-2.0 */

/* Names and texts of errors, without cuInit. */

#include "check.h"

static void error_names(void)
{
	static const int errors[] = {0,   1,   2,   3,   4,   100, 101, 200, 201, 209, 218, 301, 400, 401, 500, 600,
				     700, 701, 708, 709, 712, 713, 719, 800, 801, 900, 901, 904, 905, 906, 907, 999};
	const char *name;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		name = NULL;
		OK(cu.cuGetErrorName(errors[i], &name));
		got_text(name);
	}
}

static void error_texts(void)
{
	static const int errors[] = {0, 1, 2, 3, 100, 201, 218, 400, 500, 600, 700, 719, 801};
	const char *text;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		text = NULL;
		OK(cu.cuGetErrorString(errors[i], &text));
		got_text(text);
	}
}

static void error_unknown(void)
{
	const char *name = "kept", *text = "kept";

	IS(1, cu.cuGetErrorName(99999, &name));
	got_text(name);
	IS(1, cu.cuGetErrorString(99999, &text));
	got_text(text);
	IS(1, cu.cuGetErrorName(-1, &name));
}

const struct check error_checks[] = {
	{"names", error_names, false},
	{"texts", error_texts, false},
	{"of a number that is none", error_unknown, false},
	END,
};
