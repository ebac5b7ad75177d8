/* SPDX-License-Identifier: Apache-2.0 */

#include "model/requirement.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "model/version.h"

/* ---- versions ---- */

static bool version_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Moves @text behind the number. */
static bool version_read_part(const char **text, const char *end, uint32_t *ret)
{
	uint64_t value = 0;
	const char *next = *text;

	for (; next < end && version_is_digit(*next); next++) {
		value = value * 10 + (uint64_t)(*next - '0');
		if (value > UINT32_MAX)
			return false;
	}
	if (next == *text)
		return false;
	*text = next;
	*ret = (uint32_t)value;
	return true;
}

/* Of a release candidate or a build, as in "12.2.0-1". */
static bool version_is_suffix(const char *text, const char *end)
{
	if (end - text < 2 || (*text != '-' && *text != '+'))
		return false;
	for (text++; text < end; text++)
		if (!version_is_digit(*text) && !((*text | 0x20) >= 'a' && (*text | 0x20) <= 'z') &&
		    !strchr("-+.", *text))
			return false;
	return true;
}

bool version_read(const char *text, size_t length, struct version *ret)
{
	const char *end = text + length;
	struct version version = {0};

	text += length > 0 && *text == 'v';
	if (!version_read_part(&text, end, &version.parts[version.count++]))
		return false;
	while (text < end && *text == '.' && version.count < VERSION_PARTS_MAX) {
		text++;
		if (!version_read_part(&text, end, &version.parts[version.count++]))
			return false;
	}
	if (text < end && !(version.count == 3 && version_is_suffix(text, end)))
		return false;
	*ret = version;
	return true;
}

int version_compare(const struct version *a, const struct version *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(a->parts); i++)
		if (a->parts[i] != b->parts[i])
			return a->parts[i] < b->parts[i] ? -1 : 1;
	return 0;
}

/* ---- requirements ---- */

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

/*
 * Blanks separate alternatives, commas their conditions. What is empty between two of either does not count. YAML's
 * texts of several lines end with a line end, and may have others.
 */
#define BLANKS " \t\n\v\f\r"

struct requirement_reader {
	const char *next;
	const char *text; /* of the condition */
	size_t length;
	bool new_alternative;
};

static bool requirement_next(struct requirement_reader *reader)
{
	size_t skipped = strspn(reader->next, BLANKS ",");

	reader->new_alternative = strcspn(reader->next, BLANKS) < skipped;
	reader->text = reader->next + skipped;
	reader->length = strcspn(reader->text, BLANKS ",");
	reader->next = reader->text + reader->length;
	return reader->length > 0;
}

/* A name, an operator, a value: "cuda>=12.4". */
static bool requirement_condition_parse(const char *text, size_t length, struct condition *ret)
{
	static const char operator_characters[] = "!<>=";
	size_t name = strcspn(text, operator_characters), symbol, number;

	if (name == 0 || name >= length)
		return false;
	symbol = strspn(text + name, operator_characters);
	for (number = 0; number < ARRAY_SIZE(operators); number++)
		if (strlen(operators[number].text) == symbol &&
		    strncmp(operators[number].text, text + name, symbol) == 0)
			break;
	if (name + symbol >= length || number == ARRAY_SIZE(operators))
		return false;
	*ret = (struct condition){.key = KEY_UNKNOWN,
				  .comparison = operators[number].comparison,
				  .value = text + name + symbol,
				  .length = length - name - symbol};
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i].name) == name && strncasecmp(keys[i].name, text, name) == 0)
			ret->key = keys[i].key;
	if (ret->key == KEY_UNKNOWN)
		return true;
	if (ret->key == KEY_BRAND)
		return ret->comparison == EQUAL || ret->comparison == NOT_EQUAL;
	return version_read(ret->value, ret->length, &ret->version);
}

static int requirement_bad(const char *text, size_t length, struct err *err)
{
	return err_advise(
		err,
		err_set_advised(err, CTR_GPU_E_BAD_REQUIREMENT,
				("\"%.*s\" cannot be read as a requirement", (int)(length > 64 ? 64 : length), text),
				("Write one like cuda>=12.4, driver<470, arch>=7.5 or brand=tesla.")),
		"NVIDIA_DISABLE_REQUIRE=1 in the container's environment starts it all the same.");
}

/* An unknown property may stand beside known ones; alone it is more likely to be a slip. */
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

/* An image built with CUDA X.b runs on a driver of CUDA X.a: NVIDIA's minor-version compatibility. */
static enum requirement_result requirement_check_cuda(const struct condition *condition,
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

static enum requirement_result requirement_check_version(const struct condition *condition, const char *version)
{
	struct version have;

	if (!version || !version_read(version, strlen(version), &have))
		return REQUIREMENT_UNKNOWN;
	return requirement_holds(condition->comparison, version_compare(&have, &condition->version))
		       ? REQUIREMENT_MET
		       : REQUIREMENT_UNMET;
}

static enum requirement_result requirement_check_condition(const struct condition *condition,
							   const struct driver_facts *facts)
{
	bool same;

	switch (condition->key) {
	case KEY_CUDA:
		return requirement_check_cuda(condition, facts);
	case KEY_DRIVER:
		return requirement_check_version(condition, facts->driver_version);
	case KEY_ARCH:
		return requirement_check_version(condition, facts->architecture);
	case KEY_BRAND:
		if (!facts->brand)
			return REQUIREMENT_UNKNOWN;
		same = strlen(facts->brand) == condition->length &&
		       strncasecmp(condition->value, facts->brand, condition->length) == 0;
		return same == (condition->comparison == EQUAL) ? REQUIREMENT_MET : REQUIREMENT_UNMET;
	case KEY_UNKNOWN:
		break;
	}
	return REQUIREMENT_UNKNOWN;
}

/*
 * Verdicts are ordered from good to bad: an "and" is as bad as its worst condition, an "or" as good as its best
 * alternative.
 */
enum requirement_result requirement_check(const char *requirement, const struct driver_facts *facts)
{
	enum requirement_result best = REQUIREMENT_UNMET, all = REQUIREMENT_MET;
	struct requirement_reader reader = {.next = requirement};
	bool empty = true;

	while (requirement_next(&reader)) {
		enum requirement_result verdict;
		struct condition condition;

		if (!requirement_condition_parse(reader.text, reader.length, &condition))
			return REQUIREMENT_UNMET;
		if (reader.new_alternative && !empty) {
			best = all < best ? all : best;
			all = REQUIREMENT_MET;
		}
		verdict = requirement_check_condition(&condition, facts);
		all = verdict > all ? verdict : all;
		empty = false;
	}
	return all < best ? all : best;
}

static bool requirement_condition_asks_for_newer(const struct condition *condition, const struct driver_facts *facts)
{
	struct version have = {.parts = {(uint32_t)facts->cuda_major, (uint32_t)facts->cuda_minor}, .count = 2};
	int order;

	if (requirement_check_condition(condition, facts) != REQUIREMENT_UNMET)
		return true;
	if (condition->key != KEY_CUDA && condition->key != KEY_DRIVER)
		return false;
	if (condition->key == KEY_DRIVER && !version_read(facts->driver_version, strlen(facts->driver_version), &have))
		return false;
	order = version_compare(&have, &condition->version);
	return order < 0 || (order == 0 && condition->comparison != LESS);
}

bool requirement_asks_for_newer(const char *requirement, const struct driver_facts *facts)
{
	struct requirement_reader reader = {.next = requirement};
	bool all = true, empty = true;

	while (requirement_next(&reader)) {
		struct condition condition;

		if (!requirement_condition_parse(reader.text, reader.length, &condition))
			return false;
		if (reader.new_alternative && !empty && all)
			return true;
		all = (all || reader.new_alternative) && requirement_condition_asks_for_newer(&condition, facts);
		empty = false;
	}
	return all;
}
