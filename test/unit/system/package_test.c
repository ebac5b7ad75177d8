/* SPDX-License-Identifier: Apache-2.0 */

/* Versions of packages, in a database of dpkg's that is the test's. */

#include "unit.h"

#include <stdlib.h>

#include "scratch.h"
#include "system/machine.h"

#define DATABASE "/var/lib/dpkg/status"

static const char *database;

/* Return: the version of the package as it is with this status; "": it is not installed. */
static const char *version_with(const char *status)
{
	static const char *const names[] = {"docker-ce", NULL};
	static char version[32];
	_cleanup_free_ char *found = NULL;
	FILE *file = fopen(database, "we");

	assert_non_null(file);
	(void)fprintf(file,
		      "Package: docker\nStatus: install ok installed\nVersion: 1.5-2\n\n"
		      "Package: docker-ce\n%sVersion: 5:20.10.24+dfsg1-1\n\n"
		      "Package: zsh\nStatus: install ok installed\nVersion: 5.9-4\n",
		      status);
	assert_int_equal(fclose(file), 0);
	found = package_version(names);
	(void)snprintf(version, sizeof(version), "%s", found ? found : "");
	return version;
}

static void what_is_installed_has_a_version_whatever_is_wanted_of_it(void **state)
{
	(void)state;
	assert_string_equal(version_with("Status: install ok installed\n"), "20.10.24");
	assert_string_equal(version_with("Status: hold ok installed\n"), "20.10.24");
	assert_string_equal(version_with("Status: deinstall ok installed\n"), "20.10.24");
}

static void what_is_not_installed_has_none(void **state)
{
	(void)state;
	assert_string_equal(version_with("Status: deinstall ok config-files\n"), "");
	assert_string_equal(version_with("Status: install ok half-installed\n"), "");
	assert_string_equal(version_with("Status: install reinstreq installed\n"), "");
	assert_string_equal(version_with("Status:  ok installed\n"), "");
	assert_string_equal(version_with(""), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_installed_has_a_version_whatever_is_wanted_of_it),
		cmocka_unit_test(what_is_not_installed_has_none),
	};
	int failed;

	scratch_enter();
	if (access(DATABASE, F_OK) < 0) {
		puts("ok 1 - wants a machine with dpkg # SKIP\n1..1");
		scratch_remove();
		return 0;
	}
	database = scratch_path("/status");
	if (scratch_mount(NULL) < 0 || mknod(database, S_IFREG | 0644, 0) < 0 ||
	    mount(database, DATABASE, NULL, MS_BIND, NULL) < 0)
		scratch_fail();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)umount2(DATABASE, MNT_DETACH);
	scratch_remove();
	return failed;
}
