/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What ctr-gpu-driverd is asked and answers: a datagram each, in XDR (RFC 4506), over a SOCK_SEQPACKET socketpair.
 * Every text, array and datagram has a bound, so that a child that a driver library has taken over cannot make its
 * caller allocate more than these come to.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "driverd/driverd.h"
#include "dxg/dxg.h"
#include "model/settings.h"

enum {
	DRIVERD_PATH_MAX = 4096,
	DRIVERD_MESSAGE_MAX = 512,
	DRIVERD_ADAPTERS_MAX = 64,
	DRIVERD_TEXT_MAX = 1040, /* MAX_PATH characters of four bytes */
	DRIVERD_NAMES_MAX = 256,
	DRIVERD_PROCESSES_MAX = 1024,
	DRIVERD_UUID_MAX = 96, /* NVML_DEVICE_UUID_V2_BUFFER_SIZE */
	DRIVERD_PROFILE_MAX = 32,
	DRIVERD_DATAGRAM_MAX = 64 * 1024, /* what the socket takes is about three times that */
};

enum driverd_procedure {
	DRIVERD_DXCORE_ADAPTERS = 1, /* the adapters as the libdxcore at this path describes them */
	DRIVERD_NVML_NAMES = 2,      /* GPUs and their parts as the NVML at this path names them */
	DRIVERD_CUDA_VERSION = 3,    /* the CUDA version of the libcuda at this path */
	DRIVERD_NVML_PROCESSES = 4,  /* as DRIVERD_NVML_NAMES, and the processes that use these */
	DRIVERD_NVML_WATCH = 5,      /* any number of answers, an event each, until the caller goes */
	DRIVERD_PROCEDURES,
};

struct driverd_request {
	enum driverd_procedure procedure;
	char *library;
	char *without; /* of a watch: UUIDs of GPUs that it does not open; NULL: none */
};

enum driverd_status {
	DRIVERD_OK = 0,
	DRIVERD_NOT_CONFINED = 1, /* the child could not give up its rights, and so loaded nothing */
	DRIVERD_NOT_LOADED = 2,   /* dlopen(3) failed */
	DRIVERD_NO_SYMBOLS = 3,   /* it is not the library that it should be */
	DRIVERD_REFUSED = 4,      /* the library's functions report a failure */
};

/* Whatever was not asked for is zero. */
struct driverd_reply {
	enum driverd_status status;
	char *message; /* NULL if the status is DRIVERD_OK */
	struct dxg_facts *facts;
	size_t fact_count;
	struct driverd_name *names;
	size_t name_count;
	struct driverd_process *processes;
	size_t process_count;
	int version; /* 13000 is 13.0 */
	struct driverd_event event;
};

void driverd_reply_clear(struct driverd_reply *reply);
#define _cleanup_driverd_answer_ _cleanup_(driverd_reply_clear)

/**
 * protocol_write_request() - a question as a datagram
 * @ret: of DRIVERD_DATAGRAM_MAX bytes
 *
 * Return: how many of them it takes; 0 if it is longer than it may be.
 */
size_t protocol_write_request(const struct driverd_request *request, void *ret);

/** @ret: its library is the caller's, also after a failure. Return: whether it is a question and nothing else. */
bool protocol_read_request(const void *data, size_t size, struct driverd_request *ret);

/** As protocol_write_request(), for the answer to that procedure. */
size_t protocol_write_reply(enum driverd_procedure procedure, const struct driverd_reply *reply, void *ret);

/**
 * @ret: zeroed before; owned by the caller, also after a failure.
 * Return: whether it is an answer to that procedure and nothing else.
 */
bool protocol_read_reply(enum driverd_procedure procedure, const void *data, size_t size, struct driverd_reply *ret);

/* The words of an answer that is a failure. */

/** Makes @reply a failure, with a message of printable ASCII and bounded length. */
void answer_failure(struct driverd_reply *reply, enum driverd_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * How the client starts ctr-gpu-driverd: `ctr-gpu-driverd <milliseconds> [opens-devices]` with the socket as its
 * descriptor 3.
 */

/* The library opens device nodes for writing, as NVML does; without it nothing is opened but for reading. */
#define DRIVERD_OPENS_DEVICES "opens-devices"

enum {
	DRIVERD_SOCKET = 3,
	/* How much later than its caller's patience the child ends by itself. */
	DRIVERD_GRACE_MS = 1000,
	/* It ends with its caller alone. */
	DRIVERD_NO_DEADLINE = 0,
};
