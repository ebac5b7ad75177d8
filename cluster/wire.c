/* SPDX-License-Identifier: Apache-2.0 */

/* A session of libnghttp2 and its socket, which does not block. */

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cluster/grpc.h"

enum { WIRE_READ = 8 * 1024 };

int64_t grpc_now(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

nghttp2_nv wire_header(const char *name, const char *value)
{
	/* The library writes through neither. */
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
			    NGHTTP2_NV_FLAG_NONE};
}

int wire_receive(struct wire *wire)
{
	uint8_t data[WIRE_READ];
	ssize_t size = recv(wire->fd, data, sizeof(data), MSG_DONTWAIT);

	if (size < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (size == 0)
		return -ECONNRESET;
	return nghttp2_session_mem_recv(wire->session, data, (size_t)size) < 0 ? -EPROTO : 0;
}

int wire_send(struct wire *wire)
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

short wire_events(const struct wire *wire)
{
	bool writes = wire->out_size > 0 || nghttp2_session_want_write(wire->session);

	return (short)((nghttp2_session_want_read(wire->session) ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

void wire_clear(struct wire *wire)
{
	nghttp2_session_del(wire->session);
	if (wire->fd >= 0)
		(void)close(wire->fd);
	*wire = (struct wire){.fd = -1};
}
