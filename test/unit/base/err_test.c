/* SPDX-License-Identifier: Apache-2.0 */

/* The sentences that users read. */

#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

static void sets_the_sentence_and_returns_the_code(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(err_set(&err, -ENOENT, "cannot open %s: %m", "/x"), -ENOENT);
	assert_string_equal(err.text, "cannot open /x: No such file or directory");
	assert_int_equal(err_prefix(&err, 7, "%s: ", "NAME"), 7);
	assert_string_equal(err.text, "NAME: cannot open /x: No such file or directory");
	assert_int_equal(err_set(NULL, -EIO, "nobody reads this"), -EIO);
}

static void lets_no_escape_sequence_through(void **state)
{
	struct err err = {0};

	(void)state;
	err_set(&err, -ENOENT, "the path %s\nsecond line, naïve", "\033]0;owned\a\033[2J\r\x7f\t");
	assert_string_equal(err.text, "the path ?]0;owned??[2J???\nsecond line, naïve");
	err_set(&err, -ENOENT, "x");
	err_prefix(&err, -ENOENT, "%s: ", "A\033B");
	assert_string_equal(err.text, "A?B: x");
	err_set(&err, -ENOENT, "naïve %s\n%s", "\302\2332J", "\342\200\256fdp.x");
	assert_string_equal(err.text, "naïve ??2J\n???fdp.x");
	err_set(&err, -ENOENT, "the variable %s\nis not known", "A\nroot: all is well\n");
	assert_string_equal(err.text, "the variable A?root: all is well?\nis not known");
	err_set(&err, -ENOENT, "%s: %m\n%s%d%%\n%s", "A\n", "\nB", 7, "C\n");
	assert_string_equal(err.text, "A?: No such file or directory\n?B7%\nC?");
	err_set(&err, -ENOENT, "the variable %s\nis not known", "A\nroot: all is well\n");
	err_prefix(&err, -ENOENT, "%s: ", "A\nB");
	assert_string_equal(err.text, "A?B: the variable A?root: all is well?\nis not known");
}

static void says_what_to_do_where_the_errno_tells(void **state)
{
	struct err err = {0};

	(void)state;
	err_set(&err, -ENOSPC, "cannot write %s: %m", "/x");
	assert_string_equal(err.text, "cannot write /x: No space left on device\n"
				      "The file system is full (see df -h and df -i): make room, and try again.");
	err_set(&err, -EROFS, "cannot write %s: %m", "/x");
	assert_non_null(strstr(err.text, "\nThe file system is read-only: "));
	err_set(&err, -EDQUOT, "cannot write %s: %m", "/x");
	assert_non_null(strstr(err.text, "\nThe disk quota is used up "));
	/* Whoever knows better has said it. */
	err_set(&err, -ENOSPC, "cannot write %s: %m\nMake room there.", "/x");
	assert_string_equal(err.text, "cannot write /x: No space left on device\nMake room there.");
}

static void cuts_what_is_too_long(void **state)
{
	static char path[ERR_TEXT_MAX + 10];
	struct err err = {0};

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	err_set(&err, -EIO, "%s", path);
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	err_prefix(&err, -EIO, "in front: ");
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	assert_memory_equal(err.text, "in front: aaa", 13);
	/* Between characters: the end must not be half a one, which no JSON takes. */
	for (size_t i = 0; i + 2 < sizeof(path); i += 2)
		memcpy(path + i, "\303\251", 2);
	for (size_t shift = 0; shift < 2; shift++) {
		err_set(&err, -EIO, "%.*s%s", (int)shift, "a", path);
		assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 2 + shift);
		err_prefix(&err, -EIO, "b");
		assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1 - shift);
	}
}

static void names_every_code(void **state)
{
	(void)state;
	assert_string_equal(err_name(0), "OK");
	assert_string_equal(err_name(-ENOENT), "ENOENT");
	assert_string_equal(err_name(-9999), "EUNKNOWN");
	assert_string_equal(err_name(9999), "E_UNKNOWN");
	assert_string_equal(err_name(CTR_GPU_E_NO_ADAPTER), "E_NO_ADAPTER");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_the_sentence_and_returns_the_code),
		cmocka_unit_test(lets_no_escape_sequence_through),
		cmocka_unit_test(says_what_to_do_where_the_errno_tells),
		cmocka_unit_test(cuts_what_is_too_long),
		cmocka_unit_test(names_every_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
