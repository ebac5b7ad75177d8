/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gRPC's messages in HTTP/2's data ("Length-Prefixed-Message" of its protocol over HTTP/2); sessions of libnghttp2 with
 * their sockets, which do not block; and the two sides of a call: a peer that calls us, and a call of ours.
 */

#include "cluster/grpc.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { WIRE_READ = 8 * 1024 };

int64_t grpc_now(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- frame ---- */

static size_t frame_take(uint8_t *to, size_t have, size_t want, const uint8_t *data, size_t size)
{
	size_t taken = want - have < size ? want - have : size;

	if (taken > 0)
		memcpy(to + have, data, taken);
	return taken;
}

static int frame_begin(struct frame *frame)
{
	const uint8_t *head = frame->head;
	size_t length = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | (size_t)head[4];

	if (head[0] != 0)
		return GRPC_UNIMPLEMENTED;
	if (length > GRPC_MESSAGE_MAX || (frame->held && *frame->held + length > GRPC_HELD_MAX))
		return GRPC_RESOURCE_EXHAUSTED;
	frame->message = malloc(length + 1);
	if (!frame->message)
		return -ENOMEM;
	frame->length = length;
	if (frame->held)
		*frame->held += length;
	return GRPC_OK;
}

int frame_read(struct frame *frame, const uint8_t *data, size_t size)
{
	size_t taken = frame_take(frame->head, frame->head_size, FRAME_HEAD, data, size);
	int r = GRPC_OK;

	frame->head_size += taken;
	if (frame->head_size < FRAME_HEAD)
		return GRPC_OK;
	if (!frame->message)
		r = frame_begin(frame);
	if (r != GRPC_OK)
		return r;
	data += taken;
	size -= taken;
	taken = frame_take(frame->message, frame->size, frame->length, data, size);
	frame->size += taken;
	return taken < size ? GRPC_INTERNAL : GRPC_OK;
}

bool frame_is_whole(const struct frame *frame)
{
	return frame->message && frame->size == frame->length;
}

void frame_clear(struct frame *frame)
{
	if (frame->held && frame->message)
		*frame->held -= frame->length;
	free(frame->message);
	*frame = (struct frame){.held = frame->held};
}

uint8_t *frame_new(size_t size)
{
	uint8_t *frame = size <= UINT32_MAX - FRAME_HEAD ? malloc(FRAME_HEAD + size) : NULL;

	if (!frame)
		return NULL;
	frame[0] = 0;
	for (int i = 1; i < FRAME_HEAD; i++)
		frame[i] = (uint8_t)(size >> (8 * (FRAME_HEAD - 1 - i)));
	return frame;
}

/* ---- wire ---- */

/* What a session of either side has to write, and reads. */

struct wire {
	int fd;
	nghttp2_session *session;
	const uint8_t *out; /* the session's, until it is asked for more */
	size_t out_size;
};

/* A header of constants. */
static nghttp2_nv wire_header(const char *name, const char *value)
{
	/* The library writes through neither. */
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
			    NGHTTP2_NV_FLAG_NONE};
}

/* Reads what has come. Return: 0; -ECONNRESET; -EPROTO. */
static int wire_receive(struct wire *wire)
{
	uint8_t data[WIRE_READ];
	ssize_t size = recv(wire->fd, data, sizeof(data), MSG_DONTWAIT);

	if (size < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (size == 0)
		return -ECONNRESET;
	return nghttp2_session_mem_recv(wire->session, data, (size_t)size) < 0 ? -EPROTO : 0;
}

/* Writes what can be written. Return: 0; negative errno. */
static int wire_send(struct wire *wire)
{
	for (;;) {
		ssize_t size;

		if (wire->out_size == 0) {
			size = nghttp2_session_mem_send(wire->session, &wire->out);
			if (size < 0)
				return -EPROTO;
			if (size == 0)
				return 0;
			wire->out_size = (size_t)size;
		}
		size = send(wire->fd, wire->out, wire->out_size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (size < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		wire->out += size;
		wire->out_size -= (size_t)size;
	}
}

static short wire_events(const struct wire *wire)
{
	bool writes = wire->out_size > 0 || nghttp2_session_want_write(wire->session);

	return (short)((nghttp2_session_want_read(wire->session) ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

static void wire_clear(struct wire *wire)
{
	nghttp2_session_del(wire->session);
	if (wire->fd >= 0)
		(void)close(wire->fd);
	*wire = (struct wire){.fd = -1};
}

/* ---- connection ---- */

/*
 * A peer of ours, kubelet as a rule. A call is a stream: its path names the method, one message is the request. The
 * answer is a message and trailers, or trailers alone. Of a call that stays open the newest answer alone is kept, so
 * that a peer that does not read takes no more memory than that.
 */

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

/* ---- connection: answers ---- */

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

/* ---- connection: what libnghttp2 calls ---- */

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

/* ---- connection: its socket ---- */

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

/* ---- registration ---- */

/* A call of ours: one stream on a connection of its own. */

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

/* ---- registration: what libnghttp2 calls ---- */

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

/* ---- registration: the call ---- */

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
