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
	char message[ERR_MESSAGE_MAX];
	struct err err = {0};

	(void)state;
	err_set(&err, -ENOENT, "the path %s, naïve", "\033]0;owned\a\033[2J\r\x7f\t");
	assert_string_equal(err.text, "the path ?]0;owned??[2J???, naïve");
	err_set(&err, -ENOENT, "x");
	err_prefix(&err, -ENOENT, "%s: ", "A\033B");
	assert_string_equal(err.text, "A?B: x");
	err_set_advised(&err, -ENOENT, ("naïve %s", "\302\2332J"), ("%s", "\342\200\256fdp.x"));
	assert_string_equal(err_message(&err, message), "naïve ??2J\n???fdp.x");
	err_set_advised(&err, -ENOENT, ("the variable %s", "A\nroot: all is well\n"), ("Name it."));
	assert_string_equal(err_message(&err, message), "the variable A?root: all is well?\nName it.");
	err_set_advised(&err, -ENOENT, ("%s: %m", "A\n"), ("%s%d%%", "\nB", 7));
	err_advise(&err, -ENOENT, "%s", "C\n");
	assert_string_equal(err_message(&err, message), "A?: No such file or directory\n?B7%\nC?");
	err_prefix(&err, -ENOENT, "%s: ", "A\nB");
	assert_string_equal(err.text, "A?B: A?: No such file or directory");
}

static void keeps_advice_apart(void **state)
{
	char message[ERR_MESSAGE_MAX];
	struct err err = {0};

	(void)state;
	assert_int_equal(err_set_advised(&err, 7, ("%s is missing", "/x"), ("Make it: mkdir %s", "/x")), 7);
	assert_string_equal(err.text, "/x is missing");
	assert_string_equal(err.advice, "Make it: mkdir /x");
	assert_int_equal(err_prefix(&err, 8, "NAME: "), 8);
	assert_int_equal(err_advise(&err, 9, "Or leave %s out.", "it"), 9);
	assert_string_equal(err_message(&err, message), "NAME: /x is missing\nMake it: mkdir /x\nOr leave it out.");
	/* The next error has none of it. */
	err_set(&err, -EIO, "cannot read /y");
	assert_string_equal(err_message(&err, message), "cannot read /y");
	err_advise(&err, -EIO, "Try again.");
	assert_string_equal(err_message(&err, message), "cannot read /y\nTry again.");
	assert_int_equal(err_set_advised(NULL, -EIO, ("nobody"), ("reads this")), -EIO);
}

static void says_what_to_do_where_the_errno_tells(void **state)
{
	struct err err = {0};

	(void)state;
	err_set(&err, -ENOSPC, "cannot write %s: %m", "/x");
	assert_string_equal(err.text, "cannot write /x: No space left on device");
	assert_string_equal(err.advice, "The file system is full (see df -h and df -i): make room, and try again.");
	err_set(&err, -EROFS, "cannot write %s: %m", "/x");
	assert_memory_equal(err.advice, "The file system is read-only: ", 30);
	err_set(&err, -EDQUOT, "cannot write %s: %m", "/x");
	assert_memory_equal(err.advice, "The disk quota is used up ", 26);
	err_set(&err, -ENOTDIR, "cannot write %s: %m", "/x");
	assert_memory_equal(err.advice, "A file is where a directory ", 28);
	/* Whoever knows better has said it. */
	err_set_advised(&err, -ENOSPC, ("cannot write %s: %m", "/x"), ("Make room there."));
	assert_string_equal(err.text, "cannot write /x: No space left on device");
	assert_string_equal(err.advice, "Make room there.");
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
		err_set_advised(&err, -EIO, ("%s", path), ("%.*s%s", (int)shift, "a", path));
		err_advise(&err, -EIO, "no room is left for this");
		assert_int_equal(strlen(err.advice), ERR_TEXT_MAX - 2 + shift);
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
		cmocka_unit_test(keeps_advice_apart),
		cmocka_unit_test(says_what_to_do_where_the_errno_tells),
		cmocka_unit_test(cuts_what_is_too_long),
		cmocka_unit_test(names_every_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
