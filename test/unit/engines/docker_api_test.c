/* SPDX-License-Identifier: Apache-2.0 */

/* Answers of a Docker daemon, and of what is none. */

#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "engines/engine.h"

static char directory[] = "/tmp/ctr-gpu-test-XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char arguments[160];
static size_t arguments_size;
static int listener;

/* Ends when whoever asked has gone. */
static void serve(const char *answer)
{
	int fd = accept(listener, NULL, NULL);
	char question[256];

	(void)signal(SIGPIPE, SIG_IGN);
	if (fd < 0 || read(fd, question, sizeof(question)) <= 0 ||
	    strncmp(question, "GET /version HTTP/1.0\r\n", 23) != 0)
		_exit(1);
	(void)!write(fd, answer, strlen(answer));
	_exit(0);
}

static int ask(const char *answer, json_t **ret)
{
	const struct daemon daemon = {.pid = 1, .root = -1, .arguments = arguments, .arguments_size = arguments_size};
	pid_t pid = fork();
	int status, r;

	assert_true(pid >= 0);
	if (pid == 0)
		serve(answer);
	r = docker_api_ask(&daemon, "/version", ret);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return r;
}

static void an_answer(void **state)
{
	_cleanup_json_ json_t *json = NULL;

	(void)state;
	assert_int_equal(
		ask("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{\"Version\": \"28.1.1\"}\n", &json), 0);
	assert_string_equal(json_string_value(json_object_get(json, "Version")), "28.1.1");
}

/* An array with so many spaces, and a number. */
static int ask_long(size_t spaces, json_t **ret)
{
	_cleanup_free_ char *text = malloc(spaces + 64);
	size_t length;

	assert_non_null(text);
	length = (size_t)sprintf(text, "HTTP/1.0 200 OK\r\n\r\n[");
	memset(text + length, ' ', spaces);
	(void)sprintf(text + length + spaces, "7]");
	return ask(text, ret);
}

/* Of some hundred containers. */
static void a_long_answer(void **state)
{
	_cleanup_json_ json_t *json = NULL;

	(void)state;
	assert_int_equal(ask_long(2 << 20, &json), 0);
	assert_int_equal(json_integer_value(json_array_get(json, 0)), 7);
	assert_int_equal(ask_long(16 << 20, &json), -EFBIG);
}

static void what_is_no_answer(void **state)
{
	static const struct {
		const char *answer;
		int r;
	} answers[] = {
		{"", -EPROTO},
		{"HTTP/1.0 200 OK\r\n\r\n", -EPROTO},
		{"HTTP/1.0 200 OK\r\n{}", -EPROTO},
		{"HTTP/1.0 ", -EPROTO},
		{"HTTP/1.1 404 Not Found\r\n\r\n{}", -ENOENT},
		{"HTTP/1.1 403 Forbidden\r\n\r\n{}", -EACCES},
		{"HTTP/1.1 500 Internal Server Error\r\n\r\n{}", -EPROTO},
		{"\r\n\r\n{}", -EPROTO},
		{"HTTP/9.9 200 OK\r\n\r\n{}", -EPROTO},
		{"HTTP/1.0 200 OK\r\n\r\n{\"a\": 1, \"a\": 2}", -EPROTO},
		{"HTTP/1.0 200 OK\r\n\r\n{}{}", -EPROTO},
	};
	json_t *json = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		assert_int_equal(ask(answers[i].answer, &json), answers[i].r);
}

static void one_that_says_nothing_or_is_not_there(void **state)
{
	struct daemon daemon = {.pid = 1, .root = -1, .arguments = arguments, .arguments_size = arguments_size};
	char long_path[200], none[] = "-H=unix:///nonexistent/socket";
	json_t *json = NULL;

	(void)state;
	/* It takes the question, and nobody answers. */
	assert_int_equal(docker_api_ask(&daemon, "/version", &json), -ETIMEDOUT);
	daemon.arguments = none;
	daemon.arguments_size = sizeof(none);
	assert_int_equal(docker_api_ask(&daemon, "/version", &json), -ENOTCONN);
	memset(long_path, 'x', sizeof(long_path));
	memcpy(long_path, "-H=unix:///", 11);
	long_path[sizeof(long_path) - 1] = '\0';
	daemon.arguments = long_path;
	daemon.arguments_size = sizeof(long_path);
	assert_null(docker_api_get(&daemon, "/version"));
}

static int prepare(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", directory);
	arguments_size =
		(size_t)snprintf(arguments, sizeof(arguments), "dockerd%c--host%cunix://%s", 0, 0, address.sun_path) +
		1;
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return listener < 0 || bind(listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
			       listen(listener, 1) < 0
		       ? -1
		       : 0;
}

static int clean(void **state)
{
	(void)state;
	(void)close(listener);
	(void)unlink(address.sun_path);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer),
		cmocka_unit_test(a_long_answer),
		cmocka_unit_test(what_is_no_answer),
		cmocka_unit_test(one_that_says_nothing_or_is_not_there),
	};

	return cmocka_run_group_tests(tests, prepare, clean);
}
