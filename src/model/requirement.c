/* SPDX-License-Identifier: Apache-2.0 */

#include "model/requirement.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "model/version.h"

enum key { KEY_UNKNOWN, KEY_CUDA, KEY_DRIVER, KEY_ARCH, KEY_BRAND };

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

static const struct {
	const char *text;
	enum comparison comparison;
} operators[] = {
	{"=", EQUAL}, {"!=", NOT_EQUAL}, {"<", LESS}, {"<=", LESS_OR_EQUAL}, {">", GREATER}, {">=", GREATER_OR_EQUAL},
};

struct condition {
	enum key key;
	enum comparison comparison;
	const char *value; /* borrowed, up to `length` */
	size_t length;
	struct version version; /* the value, unless the key is brand or unknown */
};

/* Spaces separate alternatives, commas their conditions. What is empty between two of either does not count. */
struct requirement_reader {
	const char *next;
	const char *text; /* of the condition */
	size_t length;
	bool new_alternative;
};

static bool requirement_next(struct requirement_reader *reader)
{
	size_t skipped = strspn(reader->next, " ,");

	reader->new_alternative = memchr(reader->next, ' ', skipped);
	reader->text = reader->next + skipped;
	reader->length = strcspn(reader->text, " ,");
	reader->next = reader->text + reader->length;
	return reader->length > 0;
}

static enum key requirement_find_key(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i].name) == length && strncasecmp(keys[i].name, name, length) == 0)
			return keys[i].key;
	return KEY_UNKNOWN;
}

static bool requirement_find_comparison(const char *text, size_t length, enum comparison *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
		if (strlen(operators[i].text) != length || strncmp(operators[i].text, text, length) != 0)
			continue;
		*ret = operators[i].comparison;
		return true;
	}
	return false;
}

static bool requirement_condition_makes_sense(struct condition *condition)
{
	switch (condition->key) {
	case KEY_UNKNOWN:
		return true;
	case KEY_BRAND:
		return condition->comparison == EQUAL || condition->comparison == NOT_EQUAL;
	default:
		return version_read(condition->value, condition->length, &condition->version);
	}
}

/* A name, an operator, a value: "cuda>=12.4". */
static bool requirement_condition_parse(const char *text, size_t length, struct condition *ret)
{
	static const char operator_characters[] = "!<>=";
	size_t name = strcspn(text, operator_characters), operator;

	if (name == 0 || name >= length)
		return false;
	operator= strspn(text + name, operator_characters);
	if (name + operator>= length || !requirement_find_comparison(text + name, operator, & ret->comparison))
		return false;
	ret->key = requirement_find_key(text, name);
	ret->value = text + name + operator;
	ret->length = length - name - operator;
	return requirement_condition_makes_sense(ret);
}

static int requirement_bad(const char *text, size_t length, struct err *err)
{
	return err_set(err, CTR_GPU_E_BAD_REQUIREMENT,
		       "\"%.*s\" cannot be read as a requirement\nWrite one like cuda>=12.4, driver<470, arch>=7.5 or "
		       "brand=tesla.\n"
		       "NVIDIA_DISABLE_REQUIRE=1 in the container's environment starts it all the same.",
		       (int)(length > 64 ? 64 : length), text);
}

/* A property that nobody here knows may stand beside others; alone it is more likely to be a slip. */
int requirement_check_syntax(const char *requirement, struct err *err)
{
	struct requirement_reader reader = {.next = requirement};
	bool empty = true, known = false;

	while (requirement_next(&reader)) {
		struct condition condition;

		if (!requirement_condition_parse(reader.text, reader.length, &condition))
			return requirement_bad(reader.text, reader.length, err);
		known |= condition.key != KEY_UNKNOWN;
		empty = false;
	}
	return empty || known ? 0 : requirement_bad(requirement, strlen(requirement), err);
}

static bool requirement_holds(enum comparison wanted, int order)
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

static bool requirement_brand_equals(const struct condition *condition, const char *brand)
{
	return strlen(brand) == condition->length && strncasecmp(condition->value, brand, condition->length) == 0;
}

/* An image built with CUDA X.b runs on a driver of CUDA X.a: NVIDIA's minor-version compatibility. */
static enum requirement_verdict requirement_judge_cuda(const struct condition *condition,
						       const struct driver_facts *facts)
{
	const struct version have = {.parts = {(uint32_t)facts->cuda_major, (uint32_t)facts->cuda_minor}, .count = 2};

	if (facts->cuda_major == 0)
		return REQUIREMENT_UNKNOWN;
	if (requirement_holds(condition->comparison, version_compare(&have, &condition->version)))
		return REQUIREMENT_MET;
	if (condition->comparison != GREATER_OR_EQUAL && condition->comparison != GREATER)
		return REQUIREMENT_UNMET;
	return condition->version.parts[0] == have.parts[0] ? REQUIREMENT_MINOR_ONLY : REQUIREMENT_UNMET;
}

static enum requirement_verdict requirement_judge_brand(const struct condition *condition, const char *brand)
{
	if (!brand)
		return REQUIREMENT_UNKNOWN;
	return requirement_brand_equals(condition, brand) == (condition->comparison == EQUAL) ? REQUIREMENT_MET
											      : REQUIREMENT_UNMET;
}

static enum requirement_verdict requirement_judge_version(const struct condition *condition, const char *version)
{
	struct version have;

	if (!version || !version_read(version, strlen(version), &have))
		return REQUIREMENT_UNKNOWN;
	return requirement_holds(condition->comparison, version_compare(&have, &condition->version))
		       ? REQUIREMENT_MET
		       : REQUIREMENT_UNMET;
}

static enum requirement_verdict requirement_judge_condition(const struct condition *condition,
							    const struct driver_facts *facts)
{
	switch (condition->key) {
	case KEY_CUDA:
		return requirement_judge_cuda(condition, facts);
	case KEY_DRIVER:
		return requirement_judge_version(condition, facts->driver_version);
	case KEY_ARCH:
		return requirement_judge_version(condition, facts->architecture);
	case KEY_BRAND:
		return requirement_judge_brand(condition, facts->brand);
	case KEY_UNKNOWN:
		break;
	}
	return REQUIREMENT_UNKNOWN;
}

/*
 * Verdicts are ordered from good to bad: an "and" is as bad as its worst condition, an "or" as good as its best
 * alternative.
 */
enum requirement_verdict requirement_judge(const char *requirement, const struct driver_facts *facts)
{
	enum requirement_verdict best = REQUIREMENT_UNMET, all = REQUIREMENT_MET;
	struct requirement_reader reader = {.next = requirement};
	bool empty = true;

	while (requirement_next(&reader)) {
		enum requirement_verdict verdict;
		struct condition condition;

		if (!requirement_condition_parse(reader.text, reader.length, &condition))
			return REQUIREMENT_UNMET;
		if (reader.new_alternative && !empty) {
			best = all < best ? all : best;
			all = REQUIREMENT_MET;
		}
		verdict = requirement_judge_condition(&condition, facts);
		all = verdict > all ? verdict : all;
		empty = false;
	}
	return all < best ? all : best;
}
