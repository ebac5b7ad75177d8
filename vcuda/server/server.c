/* SPDX-License-Identifier: Apache-2.0 */

/* What all parts of the server know, and what they tell the manager. */

#include "vcuda/server/server.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "vcuda/protocol/descriptors.h"

enum { SERVER_NAMES = 512 }; /* that are told of once each */

struct server server;

uint64_t server_places(void)
{
	return server.orders->places[server.start.quota_slot];
}

unsigned server_find_name(unsigned number)
{
	return start_place(server_places(), number);
}

void server_tell(enum start_event_kind kind, uint64_t number, const char *text)
{
	struct start_event event = {.kind = kind, .number = number};

	(void)snprintf(event.text, sizeof(event.text), "%s", text);
	(void)send(START_MANAGER, &event, sizeof(event), MSG_NOSIGNAL | MSG_DONTWAIT);
}

int server_send_shared(const void *message, size_t bytes, int flags)
{
	const int fd = START_SHARED;

	return descriptors_send(START_CLIENT, message, bytes, &fd, 1, flags) < 0 ? -errno : 0;
}

void server_tell_once(enum start_event_kind kind, const char *text)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static char told[SERVER_NAMES][START_NAME];
	static int count;
	int i = 0;

	(void)pthread_mutex_lock(&mutex);
	while (i < count && strcmp(told[i], text) != 0)
		i++;
	if (i == count && count < SERVER_NAMES) {
		(void)snprintf(told[count++], START_NAME, "%s", text);
		server_tell(kind, 0, text);
	}
	(void)pthread_mutex_unlock(&mutex);
}
