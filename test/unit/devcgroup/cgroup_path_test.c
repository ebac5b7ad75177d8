/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <stdlib.h>
#include <sys/sysmacros.h>

#include "devcgroup/cgroup_path.h"

/* What is found for two texts: "VERSION MAJOR:MINOR POINT BELOW", one per place; "" for none. */
static const struct {
	const char *name, *mountinfo, *membership, *expected;
} cases[] = {
	{"version 2", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
	 "0::/system.slice/docker-12.scope\n", "2 0:26 /sys/fs/cgroup system.slice/docker-12.scope\n"},
	{"version 1", "36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices\n",
	 "5:devices:/docker/12\n0::/\n", "1 0:33 /sys/fs/cgroup/devices docker/12\n"},
	{"both, version 1 before version 2",
	 "41 31 0:38 / /sys/fs/cgroup/unified rw shared:1 master:2 - cgroup2 cgroup2 rw\n"
	 "36 31 0:33 / /sys/fs/cgroup/devices rw,relatime shared:3 - cgroup cgroup rw,devices\n",
	 "5:devices:/a\n0::/b\n", "1 0:33 /sys/fs/cgroup/devices a\n2 0:38 /sys/fs/cgroup/unified b\n"},
	{"controllers that share a hierarchy", "36 31 0:33 / /c rw - cgroup cgroup rw,cpu,devices,pids\n",
	 "5:cpu,devices,pids:/a\n", "1 0:33 /c a\n"},
	{"version 1 without devices",
	 "36 31 0:33 / /c rw - cgroup cgroup rw,cpu\n37 31 0:34 / /d rw - cgroup cgroup rw,xdevices,devicesx\n",
	 "5:devices:/a\n4:xdevices:/b\n", ""},
	{"the topmost cgroup", "30 23 0:26 / /c rw - cgroup2 c rw\n", "0::/\n", "2 0:26 /c \n"},
	{"a mount of part of the hierarchy", "30 23 0:26 /docker/12 /c rw - cgroup2 c rw\n", "0::/docker/12/inner/x\n",
	 "2 0:26 /c inner/x\n"},
	{"a mount of exactly the cgroup", "30 23 0:26 /docker/12 /c rw - cgroup2 c rw\n", "0::/docker/12\n",
	 "2 0:26 /c \n"},
	{"a mount of another part", "30 23 0:26 /docker/12 /c rw - cgroup2 c rw\n", "0::/docker/123\n", ""},
	{"a mount of what is below", "30 23 0:26 /docker/12/a /c rw - cgroup2 c rw\n", "0::/docker/12\n", ""},
	{"outside of our namespace, and so is the mount", "30 23 0:26 /../.. /c rw - cgroup2 c rw\n", "0::/../../x/y\n",
	 "2 0:26 /c x/y\n"},
	{"outside of our namespace, beside the mount", "30 23 0:26 /../a /c rw - cgroup2 c rw\n", "0::/../a/b\n",
	 "2 0:26 /c b\n"},
	{"outside of what is mounted", "30 23 0:26 / /c rw - cgroup2 c rw\n", "0::/../x\n", ""},
	{"further outside than the mount", "30 23 0:26 /.. /c rw - cgroup2 c rw\n", "0::/../../x\n", ""},
	{"below a mount by names that are not told", "30 23 0:26 /../.. /c rw - cgroup2 c rw\n", "0::/x\n", ""},
	{"climbing path", "30 23 0:26 / /c rw - cgroup2 c rw\n", "0::/a/../../etc\n", ""},
	{"path with a dot", "30 23 0:26 / /c rw - cgroup2 c rw\n", "0::/a/./b\n", ""},
	{"escapes in point and root", "30 23 0:26 /a\\040b /c\\011d\\134e\\043 rw - cgroup2 c rw\n",
	 "0::/a b/c\\040d\n", "2 0:26 /c\td\\e# c\\040d\n"},
	{"what is no escape", "30 23 0:26 / /c\\9\\000\\77 rw - cgroup2 c rw\n", "0::/a\n",
	 "2 0:26 /c\\9\\000\\77 a\n"},
	{"colons in a path", "30 23 0:26 / /c rw - cgroup2 c rw\n", "0::/a:b/c:devices:/d\n",
	 "2 0:26 /c a:b/c:devices:/d\n"},
	{"later mounts first", "30 23 0:26 / /c rw - cgroup2 c rw\n31 23 0:26 / /d rw - cgroup2 c rw\n", "0::/a\n",
	 "2 0:26 /d a\n2 0:26 /c a\n"},
	{"a type in the place of options", "30 23 0:26 / /c rw cgroup2 - tmpfs cgroup2 rw,devices\n", "0::/a\n", ""},
	{"no separator", "30 23 0:26 / /c rw cgroup2 c rw\n", "0::/a\n", ""},
	{"cut short", "30 23 0:26 /\n30 23\n\n-\n30 23 0:26 / /c rw -", "0::/a\n", ""},
	{"device number that is none",
	 "30 23 0:x / /c rw - cgroup2 c rw\n30 23 : / /c rw - cgroup2 c rw\n30 23 1 / /c rw - cgroup2 c rw\n"
	 "30 23 9999999999:1 / /c rw - cgroup2 c rw\n",
	 "0::/a\n", ""},
	{"relative root or point", "30 23 0:26 x /c rw - cgroup2 c rw\n30 23 0:26 / c rw - cgroup2 c rw\n", "0::/a\n",
	 ""},
	{"membership cut short", "30 23 0:26 / /c rw - cgroup2 c rw\n", "0::\n0:\n0\n\n", ""},
	{"membership that is relative", "30 23 0:26 / /c rw - cgroup2 c rw\n", "0::a\n", ""},
	{"no newline at the end", "30 23 0:26 / /c rw - cgroup2 c rw", "0::/a", "2 0:26 /c a\n"},
	{"nothing", "", "", ""},
};

static void places_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_cgroup_places_ struct cgroup_places places = {0};
		char text[512] = "";
		size_t size = 0;

		assert_int_equal(cgroup_places_find(cases[i].mountinfo, cases[i].membership, &places), 0);
		for (size_t j = 0; j < places.count; j++) {
			const struct cgroup_place *place = &places.items[j];

			size += (size_t)snprintf(text + size, sizeof(text) - size, "%d %u:%u %s %s\n", place->version,
						 major(place->dev), minor(place->dev), place->point, place->below);
		}
		if (strcmp(text, cases[i].expected) != 0)
			fail_msg("%s: found \"%s\", not \"%s\"", cases[i].name, text, cases[i].expected);
	}
}

static void many_mounts_are_bounded(void **state)
{
	static const char line[] = "30 23 0:26 / /c rw - cgroup2 c rw\n";
	_cleanup_cgroup_places_ struct cgroup_places places = {0};
	_cleanup_free_ char *text = calloc(1001, sizeof(line));

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < 1000; i++)
		memcpy(text + i * (sizeof(line) - 1), line, sizeof(line));
	assert_int_equal(cgroup_places_find(text, "0::/a\n", &places), 0);
	assert_int_equal(places.count, CGROUP_PLACES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_found),
		cmocka_unit_test(many_mounts_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
