/* SPDX-License-Identifier: Apache-2.0 */

/* The page for Prometheus of a node with many slots in use. */

#include "scratch.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/json.h"
#include "cluster/plugin.h"

enum { METRICS_TEST_SLOTS = RESOURCE_DEVICES_MAX };

static char *describe_node(void)
{
	_cleanup_free_ char *text = NULL;
	struct memstream stream;
	FILE *file = memstream_open(&stream);

	assert_non_null(file);
	(void)fputs("{\"devices\": [", file);
	for (int i = 0; i < METRICS_TEST_SLOTS; i++)
		(void)fprintf(file,
			      "%s{\"resource\": \"" RESOURCE_SLOTS "\", \"usable\": true, \"id\": \"GPU-%032d:%d\"}",
			      i > 0 ? "," : "", i, i);
	(void)fputs("], \"slots\": [", file);
	for (int i = 0; i < METRICS_TEST_SLOTS; i++)
		(void)fprintf(file,
			      "%s{\"device\": \"GPU-%032d:%d\", \"container\": \"a\\\"b\\\\c\\nd%060d\", \"used\": 1, "
			      "\"limit\": 2, \"ratio\": 0.5, \"share\": 4, \"processes\": 5}",
			      i > 0 ? "," : "", i, i, i);
	(void)fputs("]}", file);
	assert_int_equal(memstream_close(&stream, &text, NULL), 0);
	return steal_ptr(text);
}

static int ask(const char *where)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\n\r\n";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", where);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
	return fd;
}

/* Return: all that the peer is sent, in which the plugin's loop has its turn after each piece. */
static char *take_page(struct metrics *metrics, const struct resources *resources, int peer)
{
	const int64_t until = grpc_now() + 60000;
	size_t size = 0, room = 4 << 20;
	char *page = malloc(room);
	ssize_t got = -1;

	assert_non_null(page);
	while (got != 0 && grpc_now() < until) {
		struct waits waits = {.until = INT64_MAX};

		metrics_gather(metrics, &waits);
		(void)poll(waits.list, waits.count, 10);
		metrics_serve(metrics, resources, &waits);
		while (size + 1 < room && (got = recv(peer, page + size, room - size - 1, MSG_DONTWAIT)) > 0)
			size += (size_t)got;
	}
	page[size] = '\0';
	return page;
}

/* The loop that serves it answers kubelet as well, and drops peers that have waited for some seconds. */
static void test_many_slots(void **state)
{
	_cleanup_free_ char *text = describe_node(), *page = NULL, *line = NULL;
	_cleanup_json_ json_t *json = NULL;
	struct resources resources = {0};
	struct metrics metrics;
	clock_t before, after;
	int peer;

	(void)state;
	assert_int_equal(json_parse(text, strlen(text), &json, NULL), 0);
	assert_int_equal(resources_update(&resources, json), 0);
	assert_int_equal(metrics_open(scratch_path("/metrics"), &metrics), 0);
	peer = ask(scratch_path("/metrics"));
	before = clock();
	page = take_page(&metrics, &resources, peer);
	after = clock();
	assert_int_equal(str_format(&line,
				    "\nctr_gpu_slot_processes{device=\"GPU-%032d:%d\",id=\"a\\\"b\\\\cd%060d\"} 5\n",
				    METRICS_TEST_SLOTS - 1, METRICS_TEST_SLOTS - 1, METRICS_TEST_SLOTS - 1),
			 0);
	assert_non_null(strstr(page, line));
	assert_non_null(strstr(page, "\nctr_gpu_kubelet_answers 0\n"));
	assert_true(after - before < CLOCKS_PER_SEC);
	(void)close(peer);
	metrics_close(&metrics);
	resources_clear(&resources);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_slots),
	};
	int r;

	scratch_enter();
	r = cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
	scratch_remove();
	return r;
}
