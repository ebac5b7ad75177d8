/* SPDX-License-Identifier: Apache-2.0 */

/* How often the watcher looks at a host, and what it says first. */

#include "unit.h"

#include <poll.h>

#include "base/json.h"
#include "cluster/plugin.h"

enum { WATCHER_TEST_MS = 2600 };

static void test_names_that_never_come(void **state)
{
	const int64_t until = grpc_now() + WATCHER_TEST_MS;
	struct watcher watcher = {.fd = -1};
	int64_t left;
	int looks = 0;

	(void)state;
	assert_int_equal(watcher_start(WATCHER_MIG_PARTS, &watcher), 0);
	while ((left = until - grpc_now()) > 0) {
		struct pollfd wait = {.fd = watcher.fd, .events = POLLIN};
		_cleanup_json_ json_t *look = NULL;

		if (poll(&wait, 1, (int)left) <= 0)
			break;
		assert_int_equal(watcher_read(&watcher, &look), 1);
		/* Also if there were specs, or none, already when the plugin looked for them itself. */
		if (looks++ == 0)
			assert_true(json_integer_value(json_object_get(look, "strategies")) > 0);
		watcher_ask_names(&watcher);
	}
	watcher_end(&watcher);
	assert_int_equal(waitpid(watcher.pid, NULL, 0), watcher.pid);
	/* One each two seconds, of which the first asks for names, and no other may for a minute. */
	assert_between(looks, 1, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_that_never_come),
	};

	return cmocka_run_group_tests_name("watcher", tests, NULL, NULL);
}
