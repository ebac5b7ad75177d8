/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A peer that sends any bytes to the device plugin: HTTP/2, gRPC's messages, requests. The first byte says in which parts
 * they come; where the second is odd, what follows is sent as one request of a method, in HTTP/2 that is right.
 */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cluster/devices.h"
#include "cluster/grpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct resources resources;

static int answer(void *user, const char *method, const uint8_t *request, size_t size, struct grpc_answer *ret)
{
	(void)user;
	return answer_make(&resources.list[0],
			   STRATEGY_CDI | STRATEGY_ANNOTATIONS | STRATEGY_MOUNTS | STRATEGY_ENVIRONMENT, method,
			   request, size, ret);
}

static void prepare(void)
{
	static const char text[] =
		"{\"devices\": [{\"resource\": \"a.b/c\", \"id\": \"x\", \"usable\": true, \"numa\": 1},"
		"{\"resource\": \"a.b/c\", \"id\": \"y\", \"usable\": true, \"numa\": 0, \"store\": \"/s\"}]}";
	_cleanup_json_ json_t *json = NULL;

	if (json_parse(text, strlen(text), &json, NULL) < 0 || resources_update(&resources, json) < 0)
		abort();
}

static void discard(int fd)
{
	uint8_t bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void send_raw(const uint8_t *data, size_t size, size_t part, struct grpc_service *service)
{
	struct connection *connection;
	bool goes_on = true;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || connection_new(pair[0], service, &connection) < 0)
		abort();
	while (goes_on && size > 0) {
		ssize_t sent = send(pair[1], data, size < part ? size : part, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent <= 0)
			break;
		data += sent;
		size -= (size_t)sent;
		goes_on = connection_serve(connection, POLLIN);
		connection_publish(connection);
		discard(pair[1]);
	}
	(void)connection_free(connection);
	(void)close(pair[1]);
}

static void ask(const uint8_t *data, size_t size, unsigned number)
{
	static const char *const methods[] = {"Allocate", "GetPreferredAllocation", "ListAndWatch",
					      "PreStartContainer"};
	struct grpc_answer made = {0};
	char method[GRPC_METHOD_MAX];

	(void)snprintf(method, sizeof(method), "/v1beta1.DevicePlugin/%s", methods[number % ARRAY_SIZE(methods)]);
	if (answer(NULL, method, data, size, &made) != GRPC_OK && (made.frame || !made.why))
		abort();
	free(made.frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct grpc_service service = {.answer = answer};

	if (resources.count == 0)
		prepare();
	if (size < 2)
		return 0;
	if (data[1] & 1)
		ask(data + 2, size - 2, data[0]);
	else
		send_raw(data + 2, size - 2, (size_t)data[0] + 1, &service);
	if (service.held != 0)
		abort();
	return 0;
}
