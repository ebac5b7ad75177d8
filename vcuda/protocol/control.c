/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/protocol/control.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vcuda_rpc.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

#define LAST_FRAGMENT 0x80000000U

static const struct {
	unsigned number;
	xdrproc_t arguments, reply;
	size_t arguments_size;
} procedures[] = {
	{VCUDAD_GRANT, (xdrproc_t)xdr_vcudad_request, (xdrproc_t)xdr_vcudad_granted, sizeof(struct vcudad_request)},
	{VCUDAD_KEEP, (xdrproc_t)xdr_vcudad_id, (xdrproc_t)xdr_vcudad_done, sizeof(vcudad_id)},
	{VCUDAD_REVOKE, (xdrproc_t)xdr_vcudad_id, (xdrproc_t)xdr_vcudad_done, sizeof(vcudad_id)},
	{VCUDAD_LIMIT, (xdrproc_t)xdr_vcudad_limit, (xdrproc_t)xdr_vcudad_done, sizeof(struct vcudad_limit)},
	/* It takes none. */
	{VCUDAD_LIST, (xdrproc_t)(void (*)(void))xdr_void, (xdrproc_t)xdr_vcudad_grants, 1},
	{VCUDAD_SUSPEND, (xdrproc_t)xdr_vcudad_id, (xdrproc_t)xdr_vcudad_done, sizeof(vcudad_id)},
	{VCUDAD_RESUME, (xdrproc_t)xdr_vcudad_id, (xdrproc_t)xdr_vcudad_done, sizeof(vcudad_id)},
	{VCUDAD_CLEAR, (xdrproc_t)xdr_vcudad_id, (xdrproc_t)xdr_vcudad_done, sizeof(vcudad_id)},
	{VCUDAD_USAGE, (xdrproc_t)(void (*)(void))xdr_void, (xdrproc_t)xdr_vcudad_usage, 1},
	{VCUDAD_MOVE, (xdrproc_t)xdr_vcudad_move, (xdrproc_t)xdr_vcudad_done, sizeof(struct vcudad_move)},
	{VCUDAD_DRAIN, (xdrproc_t)xdr_vcudad_drain, (xdrproc_t)xdr_vcudad_done, sizeof(struct vcudad_drain)},
	{VCUDAD_SLEEP, (xdrproc_t)xdr_vcudad_sleep, (xdrproc_t)xdr_vcudad_done, sizeof(struct vcudad_sleep)},
};

/* Called by what rpcgen makes. */
bool_t xdr_control_limits(XDR *xdr, control_limits *limits)
{
	return xdr_uint64_t(xdr, &limits->memory) && xdr_uint64_t(xdr, &limits->host_memory) &&
	       xdr_u_int(xdr, &limits->max_clients) && xdr_u_int(xdr, &limits->idle) &&
	       xdr_u_int(xdr, &limits->share) && xdr_u_int(xdr, &limits->balance);
}

/* Return: the place of a procedure in the table; behind its end if it is not one of ours. */
static size_t control_find(unsigned procedure)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(procedures) && procedures[i].number != procedure)
		i++;
	return i;
}

/* ---- marks ---- */

size_t control_read_mark(const void *mark, size_t max)
{
	const unsigned char *bytes = mark;
	uint32_t value = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];

	return (value & LAST_FRAGMENT) && (value & ~LAST_FRAGMENT) <= max ? value & ~LAST_FRAGMENT : 0;
}

/* @size: of the message behind the mark */
static size_t control_mark(unsigned char *bytes, u_int size)
{
	uint32_t value = size | LAST_FRAGMENT;

	for (int i = 0; i < CONTROL_MARK; i++)
		bytes[i] = (unsigned char)(value >> (24 - 8 * i));
	return size + CONTROL_MARK;
}

/* ---- the manager's side ---- */

void control_call_clear(struct control_call *call)
{
	size_t i = control_find(call->procedure);

	if (i < ARRAY_SIZE(procedures) && call->arguments)
		xdr_free(procedures[i].arguments, call->arguments);
	free(call->arguments);
	*call = (struct control_call){0};
}

/* XDR does not write to what it reads. */
bool control_read_call(const void *data, size_t size, struct control_call *ret)
{
	char credentials[2][MAX_AUTH_BYTES];
	struct rpc_msg message = {0};
	size_t i;
	XDR xdr;

	message.rm_call.cb_cred.oa_base = credentials[0];
	message.rm_call.cb_verf.oa_base = credentials[1];
	xdrmem_create(&xdr, (char *)(uintptr_t)data, (u_int)size, XDR_DECODE);
	if (size > CONTROL_CALL_MAX || !xdr_callmsg(&xdr, &message) || message.rm_direction != CALL ||
	    message.rm_call.cb_rpcvers != RPC_MSG_VERSION || message.rm_call.cb_prog != CTR_GPU_VCUDAD ||
	    message.rm_call.cb_vers != CTR_GPU_VCUDAD_V1)
		return false;
	ret->xid = message.rm_xid;
	i = control_find((unsigned)message.rm_call.cb_proc);
	if (i == ARRAY_SIZE(procedures))
		return true;
	ret->procedure = procedures[i].number;
	ret->arguments = calloc(1, procedures[i].arguments_size);
	return ret->arguments && procedures[i].arguments(&xdr, ret->arguments) && xdr_getpos(&xdr) == size;
}

size_t control_write_reply(const struct control_call *call, void *reply, void *ret, size_t max)
{
	struct rpc_msg message = {.rm_xid = call->xid, .rm_direction = REPLY};
	struct accepted_reply *accepted = &message.acpted_rply;
	size_t i = control_find(call->procedure);
	XDR xdr;

	message.rm_reply.rp_stat = MSG_ACCEPTED;
	accepted->ar_stat = i == ARRAY_SIZE(procedures) ? PROC_UNAVAIL : reply ? SUCCESS : GARBAGE_ARGS;
	if (accepted->ar_stat == SUCCESS) {
		accepted->ar_results.where = reply;
		accepted->ar_results.proc = procedures[i].reply;
	}
	if (max < CONTROL_MARK)
		return 0;
	xdrmem_create(&xdr, (char *)ret + CONTROL_MARK, (u_int)(max - CONTROL_MARK), XDR_ENCODE);
	return xdr_replymsg(&xdr, &message) ? control_mark(ret, xdr_getpos(&xdr)) : 0;
}

/* ---- the asking side ---- */

static int control_open_at(const char *path, int *ret_fd)
{
	/* -EAGAIN: the manager hangs. */
	const int fd = fd_connect(path);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

int control_open(int *ret_fd)
{
	return control_open_at(CONTROL_SOCKET, ret_fd);
}

int control_open_for_user(int *ret_fd)
{
	return control_open_at(CONTROL_USERS_SOCKET, ret_fd);
}

static int control_wait(int fd, short events, int64_t end)
{
	struct pollfd wait = {.fd = fd, .events = events};
	int64_t left = end - clock_now_ms();
	int r = left > 0 ? poll(&wait, 1, (int)left) : 0;

	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	return r > 0 ? 0 : -ETIMEDOUT;
}

/* read(2), since the seccomp filter of a process that works in a container does not allow recv(2). */
static int control_transfer(int fd, char *data, size_t size, bool out, int64_t end)
{
	while (size > 0) {
		ssize_t part = out ? send(fd, data, size, MSG_NOSIGNAL) : read(fd, data, size);
		int r = part > 0 ? 0 : part == 0 ? -EPIPE : -errno;

		if (r == -EAGAIN || r == -EINTR)
			r = control_wait(fd, out ? POLLOUT : POLLIN, end);
		if (r < 0)
			return r;
		if (part > 0) {
			data += part;
			size -= (size_t)part;
		}
	}
	return 0;
}

static int control_read_reply(const char *data, size_t size, size_t procedure, void *ret)
{
	struct rpc_msg message = {0};
	char verifier[MAX_AUTH_BYTES];
	bool readable;
	XDR xdr;

	message.acpted_rply.ar_verf.oa_base = verifier;
	message.acpted_rply.ar_results.where = ret;
	message.acpted_rply.ar_results.proc = procedures[procedure].reply;
	xdrmem_create(&xdr, (char *)(uintptr_t)data, (u_int)size, XDR_DECODE);
	readable = xdr_replymsg(&xdr, &message) && message.rm_reply.rp_stat == MSG_ACCEPTED &&
		   message.acpted_rply.ar_stat == SUCCESS && message.rm_xid == procedures[procedure].number;
	return readable ? 0 : -EBADMSG;
}

/* @buffer: of CONTROL_CALL_MAX */
static size_t control_write_call(size_t procedure, const void *arguments, char *buffer)
{
	struct rpc_msg message = {.rm_xid = procedures[procedure].number, .rm_direction = CALL};
	XDR xdr;

	message.rm_call.cb_rpcvers = RPC_MSG_VERSION;
	message.rm_call.cb_prog = CTR_GPU_VCUDAD;
	message.rm_call.cb_vers = CTR_GPU_VCUDAD_V1;
	message.rm_call.cb_proc = procedures[procedure].number;
	xdrmem_create(&xdr, buffer + CONTROL_MARK, CONTROL_CALL_MAX - CONTROL_MARK, XDR_ENCODE);
	if (!xdr_callmsg(&xdr, &message) || !procedures[procedure].arguments(&xdr, (void *)(uintptr_t)arguments))
		return 0;
	return control_mark((unsigned char *)buffer, xdr_getpos(&xdr));
}

int control_ask_within(int fd, unsigned procedure, const void *arguments, int patience_ms, void *ret)
{
	const int64_t end = clock_now_ms() + patience_ms;
	_cleanup_free_ char *buffer = malloc(CONTROL_CALL_MAX), *reply = NULL;
	size_t number = control_find(procedure), size;
	unsigned char mark[CONTROL_MARK];
	int r;

	if (!buffer)
		return -ENOMEM;
	size = control_write_call(number, arguments, buffer);
	if (size == 0)
		return -E2BIG;
	r = control_transfer(fd, buffer, size, true, end);
	if (r < 0)
		return r;
	r = control_transfer(fd, (char *)mark, sizeof(mark), false, end);
	if (r < 0)
		return r;
	size = control_read_mark(mark, CONTROL_REPLY_MAX);
	reply = malloc(size + 1);
	if (!reply || size == 0)
		return reply ? -EBADMSG : -ENOMEM;
	r = control_transfer(fd, reply, size, false, end);
	return r == 0 ? control_read_reply(reply, size, number, ret) : r;
}

int control_ask(int fd, unsigned procedure, const void *arguments, void *ret)
{
	return control_ask_within(fd, procedure, arguments, CONTROL_PATIENCE_MS, ret);
}

void control_free_reply(unsigned procedure, void *reply)
{
	xdr_free(procedures[control_find(procedure)].reply, reply);
}
