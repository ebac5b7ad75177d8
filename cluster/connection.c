/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A peer of ours, kubelet as a rule. A call is a stream: its path names the method, one message is the request. The
 * answer is a message and trailers, or trailers alone. Of a call that stays open the newest answer alone is kept, so
 * that a peer that does not read takes no more memory than that.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cluster/grpc.h"

enum {
	CONNECTION_HEADERS_MAX = 16 * 1024, /* of a call, names and values */
	CONNECTION_STUCK_MS = 30 * 1000,    /* a peer that does not read */
};

struct connection_call {
	struct connection_call *next;
	int32_t stream;
	int64_t began;
	char method[GRPC_METHOD_MAX];
	bool is_post, is_grpc, is_long;
	size_t headers_size;
	struct frame request;
	bool answered, stays, stale;
	uint8_t *frame;
	size_t frame_size, sent;
	char status[12];
	const char *why;
};

struct connection {
	struct wire wire;
	struct grpc_service *service;
	struct connection_call *calls;
	int64_t active, stuck; /* since when; 0: it reads what is sent to it */
};

/* ---- answering ---- */

/* Trailers are the last of a call, or all of its answer. */
static int connection_submit_end(struct connection *connection, struct connection_call *call, bool alone)
{
	nghttp2_nv headers[4] = {wire_header(":status", "200"),
				 wire_header("content-type", "application/grpc"),
				 wire_header("grpc-status", call->status),
				 {0}};
	size_t count = 3;

	if (call->why)
		headers[count++] = wire_header("grpc-message", call->why);
	if (alone)
		return nghttp2_submit_response(connection->wire.session, call->stream, headers, count, NULL);
	return nghttp2_submit_trailer(connection->wire.session, call->stream, headers + 2, count - 2);
}

static void connection_refuse(struct connection *connection, struct connection_call *call, int code, const char *why)
{
	frame_clear(&call->request);
	call->answered = true;
	call->why = why;
	(void)snprintf(call->status, sizeof(call->status), "%d", code);
	(void)connection_submit_end(connection, call, true);
}

static struct connection_call *connection_find(const struct connection *connection, int32_t stream)
{
	struct connection_call *call = connection->calls;

	while (call && call->stream != stream)
		call = call->next;
	return call;
}

/* Has the service's answer in place of the last. A request is read once; later the service is given an empty one. */
static int connection_renew(struct connection *connection, struct connection_call *call)
{
	struct grpc_answer answer = {0};
	int r = connection->service->answer(connection->service->user, call->method, call->request.message,
					    call->request.size, &answer);

	frame_clear(&call->request);
	call->why = answer.why;
	if (r != GRPC_OK)
		return r;
	free(call->frame);
	call->frame = answer.frame;
	call->frame_size = answer.size;
	call->sent = 0;
	call->stays = answer.stays;
	call->stale = false;
	return GRPC_OK;
}

static ssize_t connection_read_answer(nghttp2_session *session, int32_t stream, uint8_t *buffer, size_t size,
				      uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct connection *connection = user;
	struct connection_call *call = connection_find(connection, stream);
	size_t left, part;

	(void)session;
	(void)source;
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (call->sent == call->frame_size && call->stale)
		(void)connection_renew(connection, call);
	left = call->frame_size - call->sent;
	part = left < size ? left : size;
	if (part > 0)
		memcpy(buffer, call->frame + call->sent, part);
	call->sent += part;
	if (call->sent < call->frame_size)
		return (ssize_t)part;
	if (call->stays)
		return part > 0 ? (ssize_t)part : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	if (connection_submit_end(connection, call, false) != 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return (ssize_t)part;
}

static void connection_answer(struct connection *connection, struct connection_call *call)
{
	const nghttp2_nv headers[] = {wire_header(":status", "200"), wire_header("content-type", "application/grpc")};
	const nghttp2_data_provider data = {.read_callback = connection_read_answer};
	int r = connection_renew(connection, call);

	if (r != GRPC_OK) {
		connection_refuse(connection, call, r, call->why);
		return;
	}
	call->answered = true;
	(void)snprintf(call->status, sizeof(call->status), "%d", GRPC_OK);
	(void)nghttp2_submit_response(connection->wire.session, call->stream, headers, ARRAY_SIZE(headers), &data);
}

/* A call whose request has ended. With another content type it is not gRPC, for which HTTP has a status. */
static void connection_answer_call(struct connection *connection, struct connection_call *call)
{
	const nghttp2_nv not_grpc[] = {wire_header(":status", "415")};

	if (call->answered)
		return;
	if (!call->is_grpc) {
		call->answered = true;
		(void)nghttp2_submit_response(connection->wire.session, call->stream, not_grpc, ARRAY_SIZE(not_grpc),
					      NULL);
	} else if (!call->is_post || call->is_long)
		connection_refuse(connection, call, GRPC_UNIMPLEMENTED, "there is no such method");
	else if (!frame_is_whole(&call->request))
		connection_refuse(connection, call, GRPC_INTERNAL, "the request ends within its message");
	else
		connection_answer(connection, call);
}

/* ---- what libnghttp2 calls ---- */

static int connection_on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct connection *connection = user;
	struct connection_call *call;

	(void)session;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	call = calloc(1, sizeof(*call));
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	call->stream = frame->hd.stream_id;
	call->began = grpc_now();
	call->request.held = &connection->service->held;
	call->next = connection->calls;
	connection->calls = call;
	return 0;
}

static bool connection_is(const char *wanted, const uint8_t *text, size_t size)
{
	return size == strlen(wanted) && memcmp(text, wanted, size) == 0;
}

static int connection_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
				size_t name_size, const uint8_t *value, size_t size, uint8_t flags, void *user)
{
	static const char type[] = "application/grpc";
	struct connection_call *call = connection_find(user, frame->hd.stream_id);

	(void)session;
	(void)flags;
	if (!call)
		return 0;
	call->headers_size += name_size + size;
	if (call->headers_size > CONNECTION_HEADERS_MAX)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (connection_is(":path", name, name_size)) {
		call->is_long = size >= sizeof(call->method) || memchr(value, 0, size);
		if (!call->is_long && size > 0)
			memcpy(call->method, value, size);
		if (!call->is_long)
			call->method[size] = '\0';
	} else if (connection_is(":method", name, name_size))
		call->is_post = connection_is("POST", value, size);
	else if (connection_is("content-type", name, name_size))
		call->is_grpc = size >= strlen(type) && memcmp(value, type, strlen(type)) == 0;
	return 0;
}

static int connection_on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t size,
			      void *user)
{
	struct connection_call *call = connection_find(user, stream);
	int r;

	(void)session;
	(void)flags;
	if (!call || call->answered)
		return 0;
	r = frame_read(&call->request, data, size);
	if (r < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (r != GRPC_OK)
		connection_refuse(user, call, r, "the request is not one message, as it should be");
	return 0;
}

static int connection_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct connection_call *call = connection_find(user, frame->hd.stream_id);

	(void)session;
	if (call && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		connection_answer_call(user, call);
	return 0;
}

static int connection_on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *user)
{
	struct connection *connection = user;
	struct connection_call **place = &connection->calls, *call;

	(void)session;
	(void)error;
	while (*place && (*place)->stream != stream)
		place = &(*place)->next;
	call = *place;
	if (!call)
		return 0;
	*place = call->next;
	frame_clear(&call->request);
	free(call->frame);
	free(call);
	return 0;
}

/*
 * Kubelet's gRPC of Kubernetes 1.20 has the socket's path for an authority, which is none in HTTP, and
 * for which libnghttp2 would end the call. So the few headers that count are judged here alone.
 */
static int connection_new_session(struct connection *connection, const nghttp2_session_callbacks *callbacks)
{
	nghttp2_option *option;
	int r = nghttp2_option_new(&option);

	if (r != 0)
		return r;
	nghttp2_option_set_no_http_messaging(option, 1);
	r = nghttp2_session_server_new2(&connection->wire.session, callbacks, connection, option);
	nghttp2_option_del(option);
	return r;
}

static int connection_begin_session(struct connection *connection)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_CALLS_MAX},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, CONNECTION_HEADERS_MAX},
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	};
	nghttp2_session_callbacks *callbacks;
	int r = nghttp2_session_callbacks_new(&callbacks);

	if (r != 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, connection_on_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, connection_on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, connection_on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, connection_on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, connection_on_close);
	r = connection_new_session(connection, callbacks);
	nghttp2_session_callbacks_del(callbacks);
	if (r != 0)
		return -ENOMEM;
	/* The last is a client's alone. */
	return nghttp2_submit_settings(connection->wire.session, NGHTTP2_FLAG_NONE, settings,
				       ARRAY_SIZE(settings) - 1) != 0
		       ? -ENOMEM
		       : 0;
}

/* ---- the connection ---- */

int connection_new(int fd, struct grpc_service *service, struct connection **ret)
{
	_cleanup_(connection_freep) struct connection *connection = NULL;
	_cleanup_close_ int taken = fd;
	int r;

	connection = calloc(1, sizeof(*connection));
	if (!connection)
		return -ENOMEM;
	connection->wire.fd = steal_fd(&taken);
	connection->service = service;
	connection->active = grpc_now();
	r = connection_begin_session(connection);
	if (r < 0)
		return r;
	*ret = steal_ptr(connection);
	return 0;
}

struct connection *connection_free(struct connection *connection)
{
	while (connection->calls)
		(void)connection_on_close(NULL, connection->calls->stream, 0, connection);
	wire_clear(&connection->wire);
	free(connection);
	return NULL;
}

int connection_fd(const struct connection *connection)
{
	return connection->wire.fd;
}

short connection_events(const struct connection *connection)
{
	return wire_events(&connection->wire);
}

bool connection_is_watching(const struct connection *connection)
{
	for (const struct connection_call *call = connection->calls; call; call = call->next)
		if (call->answered && call->stays)
			return true;
	return false;
}

int64_t connection_deadline(const struct connection *connection)
{
	int64_t deadline = connection_is_watching(connection) ? INT64_MAX : connection->active + GRPC_IDLE_MS;

	if (connection->stuck && connection->stuck + CONNECTION_STUCK_MS < deadline)
		deadline = connection->stuck + CONNECTION_STUCK_MS;
	for (const struct connection_call *call = connection->calls; call; call = call->next)
		if (!call->answered && call->began + GRPC_REQUEST_MS < deadline)
			deadline = call->began + GRPC_REQUEST_MS;
	return deadline;
}

bool connection_serve(struct connection *connection, short events)
{
	if (events & (POLLIN | POLLHUP | POLLERR)) {
		if (wire_receive(&connection->wire) < 0)
			return false;
		connection->active = grpc_now();
	}
	if (wire_send(&connection->wire) < 0)
		return false;
	if (connection->wire.out_size == 0)
		connection->stuck = 0;
	else if (connection->stuck == 0)
		connection->stuck = grpc_now();
	return wire_events(&connection->wire) != 0;
}

void connection_publish(struct connection *connection)
{
	for (struct connection_call *call = connection->calls; call; call = call->next)
		if (call->answered && call->stays) {
			call->stale = true;
			(void)nghttp2_session_resume_data(connection->wire.session, call->stream);
		}
}
