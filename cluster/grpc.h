/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * gRPC as far as kubelet speaks it to its device plugins: HTTP/2 on a Unix socket (libnghttp2), each call a stream,
 * each message behind five bytes, the status of a call in its trailers. All that a peer sends is taken for hostile: how
 * many calls it may have open, how long a request may be and how long it may take are bounded here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* Of gRPC's status codes those that are used. */
enum grpc_status {
	GRPC_OK = 0,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
};

enum {
	GRPC_MESSAGE_MAX = 128 * 1024, /* names of a thousand devices, twice */
	GRPC_HELD_MAX = 1024 * 1024,   /* of requests that are not complete, by all peers together */
	GRPC_METHOD_MAX = 96,
	GRPC_CALLS_MAX = 8, /* of a connection at once */
	GRPC_REQUEST_MS = 10 * 1000,
	GRPC_IDLE_MS = 60 * 1000,
};

/** Milliseconds of a clock that is never set. */
int64_t grpc_now(void);

/* ---- frame ---- */

/* One message: a byte that says whether it is compressed, four with its length, and the message. */

enum { FRAME_HEAD = 5 };

struct frame {
	uint8_t head[FRAME_HEAD];
	size_t head_size;
	uint8_t *message;
	size_t size, length; /* what has come, what will */
	size_t *held;        /* counts what is held of all requests; borrowed */
};

/**
 * frame_read() - take bytes of a message, in parts as they come
 *
 * Return: GRPC_OK; GRPC_UNIMPLEMENTED for a compressed message; GRPC_RESOURCE_EXHAUSTED for one that is too long, or
 * where too much is held; GRPC_INTERNAL for bytes behind it; -ENOMEM.
 */
int frame_read(struct frame *frame, const uint8_t *data, size_t size);

/** Whether all of a message has come. */
bool frame_is_whole(const struct frame *frame);

void frame_clear(struct frame *frame);

/** Room for a message of @size, behind its head. Return: owned by the caller; NULL without memory. */
uint8_t *frame_new(size_t size);

/* ---- connection ---- */

/* A peer that calls our methods. */

struct grpc_answer {
	uint8_t *frame;  /* of frame_new(); the connection frees it */
	size_t size;     /* with its head */
	bool stays;      /* the call stays open for more answers */
	const char *why; /* of a status other than GRPC_OK */
};

struct grpc_service {
	/* Return: GRPC_OK with @ret filled in; another status. */
	int (*answer)(void *user, const char *method, const uint8_t *request, size_t size, struct grpc_answer *ret);
	void *user;
	size_t held; /* see GRPC_HELD_MAX */
};

struct connection;

/** @fd: is taken, also where this fails. Return: 0; negative errno. */
int connection_new(int fd, struct grpc_service *service, struct connection **ret);
struct connection *connection_free(struct connection *connection);
DEFINE_CLEANUP(struct connection *, connection_free)

/** What poll(2) is to wait for. */
int connection_fd(const struct connection *connection);
short connection_events(const struct connection *connection);
/** When it is to be closed unless something happens; INT64_MAX: never. */
int64_t connection_deadline(const struct connection *connection);

/** Reads, answers and writes as far as that is possible now. Return: whether the connection goes on. */
bool connection_serve(struct connection *connection, short events);

/** Asks the service anew for each call that stays open, and sends the answers. */
void connection_publish(struct connection *connection);

/** Whether a call stays open. */
bool connection_is_watching(const struct connection *connection);

/* ---- registration ---- */

/* Our one call of a method of kubelet's, which may never answer. */

enum registration_state { REGISTRATION_WAITS, REGISTRATION_DONE, REGISTRATION_FAILED };

struct registration;

/**
 * registration_new() - call a method
 * @path:    of the peer's socket
 * @method:  "/v1beta1.Registration/Register"
 * @request: of frame_new(); is taken, also where this fails
 *
 * Return: 0; negative errno.
 */
int registration_new(const char *path, const char *method, uint8_t *request, size_t size, struct registration **ret);
struct registration *registration_free(struct registration *registration);

int registration_fd(const struct registration *registration);
short registration_events(const struct registration *registration);

/** Goes on as far as that is possible now. */
enum registration_state registration_serve(struct registration *registration, short events);

/** Return: the message of the answer, if all of it has come, until it is freed; NULL. */
const uint8_t *registration_answer(const struct registration *registration, size_t *ret_size);

/** Why it failed, in words, until it is freed; the peer's own are printable. */
const char *registration_why(const struct registration *registration);
