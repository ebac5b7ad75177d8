/* SPDX-License-Identifier: Apache-2.0 */

/* A call of ours: one stream on a connection of its own. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/str.h"
#include "cluster/grpc.h"

enum { REGISTRATION_WORDS = 256 };

struct registration {
	struct wire wire;
	uint8_t *request;
	size_t size, sent;
	bool ended;
	int code; /* gRPC's status; -1: none has come */
	char http[4];
	struct frame answer;
	char words[REGISTRATION_WORDS];
	char why[REGISTRATION_WORDS + 128];
};

/* ---- what libnghttp2 calls ---- */

static ssize_t registration_read_request(nghttp2_session *session, int32_t stream, uint8_t *buffer, size_t size,
					 uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct registration *registration = user;
	size_t left = registration->size - registration->sent, part = left < size ? left : size;

	(void)session;
	(void)stream;
	(void)source;
	memcpy(buffer, registration->request + registration->sent, part);
	registration->sent += part;
	if (registration->sent == registration->size)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)part;
}

static void registration_copy(char *to, size_t room, const uint8_t *text, size_t size)
{
	(void)snprintf(to, room, "%.*s", (int)(size < room ? size : room), (const char *)text);
	printable_only(to);
}

static int registration_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
				  size_t name_size, const uint8_t *value, size_t size, uint8_t flags, void *user)
{
	struct registration *registration = user;
	char label[16], number[4];

	(void)session;
	(void)flags;
	(void)frame;
	if (name_size >= sizeof(label))
		return 0;
	memcpy(label, name, name_size);
	label[name_size] = '\0';
	if (streq(label, ":status"))
		registration_copy(registration->http, sizeof(registration->http), value, size);
	if (streq(label, "grpc-message"))
		registration_copy(registration->words, sizeof(registration->words), value, size);
	if (streq(label, "grpc-status") && size > 0 && size < sizeof(number)) {
		registration_copy(number, sizeof(number), value, size);
		registration->code = atoi(number);
	}
	return 0;
}

/* A message that cannot be taken is as none. */
static int registration_on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
				size_t size, void *user)
{
	struct registration *registration = user;

	(void)session;
	(void)flags;
	(void)stream;
	return frame_read(&registration->answer, data, size) == GRPC_OK ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int registration_on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *user)
{
	struct registration *registration = user;

	(void)session;
	(void)stream;
	(void)error;
	registration->ended = true;
	return 0;
}

/* ---- the call ---- */

static int registration_begin_session(struct registration *registration)
{
	nghttp2_session_callbacks *callbacks;
	int r = nghttp2_session_callbacks_new(&callbacks);

	if (r != 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, registration_on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, registration_on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, registration_on_close);
	r = nghttp2_session_client_new(&registration->wire.session, callbacks, registration);
	nghttp2_session_callbacks_del(callbacks);
	return r != 0 ? -ENOMEM : 0;
}

static int registration_submit(struct registration *registration, const char *method)
{
	const nghttp2_nv headers[] = {
		wire_header(":method", "POST"),
		wire_header(":scheme", "http"),
		wire_header(":path", method),
		wire_header(":authority", "localhost"),
		wire_header("content-type", "application/grpc"),
		wire_header("te", "trailers"),
		wire_header("user-agent", "ctr-gpu/" CTR_GPU_VERSION),
	};
	const nghttp2_data_provider data = {.read_callback = registration_read_request};
	const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};

	if (nghttp2_submit_settings(registration->wire.session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)) != 0)
		return -ENOMEM;
	return nghttp2_submit_request(registration->wire.session, NULL, headers, ARRAY_SIZE(headers), &data, NULL) < 0
		       ? -ENOMEM
		       : 0;
}

static void registration_freep(struct registration **registration)
{
	if (*registration)
		(void)registration_free(*registration);
}

int registration_new(const char *path, const char *method, uint8_t *request, size_t size, struct registration **ret)
{
	_cleanup_(registration_freep) struct registration *registration = calloc(1, sizeof(*registration));
	int r;

	if (!registration) {
		free(request);
		return -ENOMEM;
	}
	registration->request = request;
	registration->size = size;
	registration->code = -1;
	registration->wire.fd = fd_connect(path);
	r = registration->wire.fd < 0 ? registration->wire.fd : registration_begin_session(registration);
	if (r == 0)
		r = registration_submit(registration, method);
	if (r < 0)
		return r;
	*ret = steal_ptr(registration);
	return 0;
}

struct registration *registration_free(struct registration *registration)
{
	wire_clear(&registration->wire);
	frame_clear(&registration->answer);
	free(registration->request);
	free(registration);
	return NULL;
}

int registration_fd(const struct registration *registration)
{
	return registration->wire.fd;
}

short registration_events(const struct registration *registration)
{
	return wire_events(&registration->wire);
}

static enum registration_state registration_fail(struct registration *registration)
{
	if (registration->code > 0)
		(void)snprintf(registration->why, sizeof(registration->why), "gRPC's status %d: %s", registration->code,
			       registration->words);
	else
		(void)snprintf(registration->why, sizeof(registration->why), "it ended the call%s%s",
			       registration->http[0] ? " with HTTP's status " : "", registration->http);
	return REGISTRATION_FAILED;
}

enum registration_state registration_serve(struct registration *registration, short events)
{
	int r = wire_send(&registration->wire);

	if (r == 0 && (events & (POLLIN | POLLHUP | POLLERR)))
		r = wire_receive(&registration->wire);
	if (r == 0 && !registration->ended)
		r = wire_send(&registration->wire);
	if (!registration->ended && r == 0 && wire_events(&registration->wire) != 0)
		return REGISTRATION_WAITS;
	return registration->code == GRPC_OK ? REGISTRATION_DONE : registration_fail(registration);
}

const char *registration_why(const struct registration *registration)
{
	return registration->why;
}

const uint8_t *registration_answer(const struct registration *registration, size_t *ret_size)
{
	if (!frame_is_whole(&registration->answer))
		return NULL;
	*ret_size = registration->answer.length;
	return registration->answer.message;
}
