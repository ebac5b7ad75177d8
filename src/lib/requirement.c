/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/requirement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum key { KEY_CUDA, KEY_DRIVER, KEY_ARCH, KEY_BRAND };

static const struct {
	const char *name;
	enum key key;
} keys[] = {
	{"cuda", KEY_CUDA},
	{"driver", KEY_DRIVER},
	{"arch", KEY_ARCH},
	{"brand", KEY_BRAND},
};

enum comparison { EQUAL, NOT_EQUAL, LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL };

/* Two-character operators first, so that "<=" is not read as "<". */
static const struct {
	const char *text;
	enum comparison comparison;
} operators[] = {
	{"!=", NOT_EQUAL}, {"<=", LESS_OR_EQUAL}, {">=", GREATER_OR_EQUAL}, {"=", EQUAL}, {"<", LESS}, {">", GREATER},
};

struct condition {
	enum key key;
	enum comparison comparison;
	const char *value; /* borrowed, up to `length` */
	size_t length;
};

static const char separators[] = " ,";

/* One condition at @text, which ends at a separator or the end. */
static bool parse_condition(const char *text, size_t length, struct condition *ret)
{
	size_t i, name = strcspn(text, "!<>=");

	if (name >= length)
		return false;
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i].name) == name && strncmp(keys[i].name, text, name) == 0)
			break;
	if (i == ARRAY_SIZE(keys))
		return false;
	ret->key = keys[i].key;
	for (i = 0; i < ARRAY_SIZE(operators); i++)
		if (str_has_prefix(text + name, operators[i].text))
			break;
	if (i == ARRAY_SIZE(operators))
		return false;
	ret->comparison = operators[i].comparison;
	name += strlen(operators[i].text);
	if (name >= length)
		return false;
	ret->value = text + name;
	ret->length = length - name;
	return ret->key == KEY_BRAND || (*ret->value >= '0' && *ret->value <= '9');
}

int requirement_check_syntax(const char *requirement, struct err *err)
{
	const char *next = requirement + strspn(requirement, separators);

	for (; *next; next += strspn(next, separators)) {
		size_t length = strcspn(next, separators);
		struct condition condition;

		if (!parse_condition(next, length, &condition))
			return err_set(err, CTR_GPU_E_BAD_REQUIREMENT,
				       "\"%.*s\" is no requirement\nOne looks like cuda>=12.4, driver<470, arch>=7.5 or brand=tesla.",
				       (int)(length > 64 ? 64 : length), next);
		next += length;
	}
	return 0;
}

/* Dotted numbers, missing parts being 0: "470" equals "470.0". Return: <0, 0, >0. */
static int compare_versions(const char *a, size_t a_length, const char *b, size_t b_length)
{
	const char *a_end = a + a_length, *b_end = b + b_length;

	while (a < a_end || b < b_end) {
		unsigned long x = 0, y = 0;

		for (; a < a_end && *a >= '0' && *a <= '9'; a++)
			x = x * 10 + (unsigned long)(*a - '0');
		for (; b < b_end && *b >= '0' && *b <= '9'; b++)
			y = y * 10 + (unsigned long)(*b - '0');
		if (x != y)
			return x < y ? -1 : 1;
		a += a < a_end;
		b += b < b_end;
	}
	return 0;
}

static bool holds(enum comparison wanted, int order)
{
	switch (wanted) {
	case EQUAL:
		return order == 0;
	case NOT_EQUAL:
		return order != 0;
	case LESS:
		return order < 0;
	case LESS_OR_EQUAL:
		return order <= 0;
	case GREATER:
		return order > 0;
	case GREATER_OR_EQUAL:
		return order >= 0;
	}
	return false;
}

static bool brand_equals(const struct condition *condition, const char *brand)
{
	return strlen(brand) == condition->length && strncasecmp(condition->value, brand, condition->length) == 0;
}

/* An image built with CUDA X.b runs on a driver of CUDA X.a: NVIDIA's minor-version compatibility. */
static enum requirement_verdict judge_cuda(const struct condition *condition, const struct driver_facts *facts)
{
	char have[32];

	if (facts->cuda_major == 0)
		return REQUIREMENT_UNKNOWN;
	(void)snprintf(have, sizeof(have), "%d.%d", facts->cuda_major, facts->cuda_minor);
	if (holds(condition->comparison, compare_versions(have, strlen(have), condition->value, condition->length)))
		return REQUIREMENT_MET;
	if (condition->comparison != GREATER_OR_EQUAL && condition->comparison != GREATER)
		return REQUIREMENT_UNMET;
	return strtol(condition->value, NULL, 10) == facts->cuda_major ? REQUIREMENT_MINOR_ONLY : REQUIREMENT_UNMET;
}

static enum requirement_verdict judge_condition(const struct condition *condition, const struct driver_facts *facts)
{
	const char *have;

	if (condition->key == KEY_CUDA)
		return judge_cuda(condition, facts);
	have = condition->key == KEY_DRIVER ? facts->driver_version :
	       condition->key == KEY_ARCH   ? facts->architecture :
					      facts->brand;
	if (!have)
		return REQUIREMENT_UNKNOWN;
	if (condition->key == KEY_BRAND)
		return brand_equals(condition, have) == (condition->comparison == EQUAL) ? REQUIREMENT_MET : REQUIREMENT_UNMET;
	return holds(condition->comparison, compare_versions(have, strlen(have), condition->value, condition->length)) ?
		       REQUIREMENT_MET :
		       REQUIREMENT_UNMET;
}

/*
 * Verdicts are ordered from good to bad: an "and" is as bad as its worst condition, an "or" as good as its best
 * alternative.
 */
enum requirement_verdict requirement_judge(const char *requirement, const struct driver_facts *facts)
{
	enum requirement_verdict best = REQUIREMENT_UNMET, all = REQUIREMENT_MET;
	const char *next = requirement + strspn(requirement, separators);

	if (!*next)
		return REQUIREMENT_MET;
	while (*next) {
		size_t length = strcspn(next, separators);
		enum requirement_verdict verdict;
		struct condition condition;

		if (!parse_condition(next, length, &condition))
			return REQUIREMENT_UNMET;
		verdict = judge_condition(&condition, facts);
		all = verdict > all ? verdict : all;
		next += length;
		if (*next != ',') {
			best = all < best ? all : best;
			all = REQUIREMENT_MET;
		}
		next += strspn(next, separators);
	}
	return best;
}
