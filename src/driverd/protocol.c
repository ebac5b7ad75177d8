/* SPDX-License-Identifier: Apache-2.0 */

/* One function for each type of the protocol, which libtirpc's XDR calls in both directions. */

#include "driverd/protocol.h"

#include <rpc/types.h>
#include <rpc/xdr.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

void driverd_names_free(struct driverd_name *names, size_t count)
{
	for (size_t i = 0; names && i < count; i++) {
		free(names[i].uuid);
		free(names[i].of);
		free(names[i].profile);
	}
	free(names);
}

void driverd_reply_clear(struct driverd_reply *reply)
{
	free(reply->message);
	dxg_facts_free(reply->facts, reply->fact_count);
	driverd_names_free(reply->names, reply->name_count);
	free(reply->processes);
	free(reply->event.uuid);
	*reply = (struct driverd_reply){0};
}

/* A text that is longer than it may be counts as missing, as NULL does. */
static bool protocol_write_text(XDR *xdr, char **text, u_int max)
{
	char nothing = '\0', *told = *text && strlen(*text) <= max ? *text : &nothing;

	if (xdr->x_op == XDR_ENCODE)
		return xdr_string(xdr, &told, max);
	if (!xdr_string(xdr, text, max))
		return false;
	if (!**text) {
		free(*text);
		*text = NULL;
	}
	return true;
}

static bool protocol_write_count(XDR *xdr, size_t *count, size_t max)
{
	u_int told = *count > max ? (u_int)max : (u_int)*count;

	if (!xdr_u_int(xdr, &told) || told > max)
		return false;
	*count = told;
	return true;
}

static bool protocol_write_address(XDR *xdr, struct dxg_facts *facts)
{
	bool_t told = facts->has_address;

	if (!xdr_bool(xdr, &told))
		return false;
	facts->has_address = told;
	return !told || (xdr_u_int(xdr, &facts->address.bus) && xdr_u_int(xdr, &facts->address.device) &&
			 xdr_u_int(xdr, &facts->address.function));
}

static bool protocol_write_facts(XDR *xdr, struct dxg_facts *facts)
{
	return xdr_u_int(xdr, &facts->luid.low) && xdr_int(xdr, &facts->luid.high) &&
	       xdr_u_int(xdr, &facts->wddm_version) && xdr_u_int(xdr, &facts->type_bits) &&
	       xdr_u_int(xdr, &facts->vendor_id) && xdr_u_int(xdr, &facts->device_id) &&
	       protocol_write_address(xdr, facts) && protocol_write_text(xdr, &facts->name, DRIVERD_TEXT_MAX) &&
	       protocol_write_text(xdr, &facts->store, DRIVERD_TEXT_MAX);
}

static bool protocol_write_adapters(XDR *xdr, struct driverd_reply *reply)
{
	size_t count = reply->fact_count;

	if (!protocol_write_count(xdr, &count, DRIVERD_ADAPTERS_MAX))
		return false;
	if (xdr->x_op == XDR_DECODE && !(reply->facts = calloc(count + 1, sizeof(*reply->facts))))
		return false;
	reply->fact_count = count;
	for (size_t i = 0; i < count; i++)
		if (!protocol_write_facts(xdr, &reply->facts[i]))
			return false;
	return true;
}

static bool protocol_write_name(XDR *xdr, struct driverd_name *name)
{
	bool_t is_part = name->is_part;

	if (!protocol_write_text(xdr, &name->uuid, DRIVERD_UUID_MAX) ||
	    !protocol_write_text(xdr, &name->of, DRIVERD_UUID_MAX) || !xdr_bool(xdr, &is_part))
		return false;
	name->is_part = is_part;
	return xdr_u_int(xdr, &name->gpu_instance) && xdr_u_int(xdr, &name->compute_instance) &&
	       protocol_write_text(xdr, &name->profile, DRIVERD_PROFILE_MAX);
}

static bool protocol_write_names(XDR *xdr, struct driverd_reply *reply)
{
	size_t count = reply->name_count;

	if (!protocol_write_count(xdr, &count, DRIVERD_NAMES_MAX))
		return false;
	if (xdr->x_op == XDR_DECODE && !(reply->names = calloc(count + 1, sizeof(*reply->names))))
		return false;
	reply->name_count = count;
	for (size_t i = 0; i < count; i++)
		if (!protocol_write_name(xdr, &reply->names[i]))
			return false;
	return true;
}

static bool protocol_write_process(XDR *xdr, struct driverd_process *process, size_t name_count)
{
	bool_t computes = process->computes, draws = process->draws;

	if (!xdr_u_int(xdr, &process->name) || process->name >= name_count || !xdr_u_int(xdr, &process->pid) ||
	    !xdr_bool(xdr, &computes) || !xdr_bool(xdr, &draws))
		return false;
	process->computes = computes;
	process->draws = draws;
	return xdr_uint64_t(xdr, &process->memory) && xdr_u_int(xdr, &process->percent) &&
	       (process->percent <= 100 || process->percent == DRIVERD_UNKNOWN_PERCENT);
}

static bool protocol_write_processes(XDR *xdr, struct driverd_reply *reply)
{
	size_t count = reply->process_count;

	if (!protocol_write_names(xdr, reply))
		return false;
	for (size_t i = 0; i < reply->name_count; i++)
		if (!xdr_u_int(xdr, &reply->names[i].refused))
			return false;
	if (!protocol_write_count(xdr, &count, DRIVERD_PROCESSES_MAX))
		return false;
	if (xdr->x_op == XDR_DECODE && !(reply->processes = calloc(count + 1, sizeof(*reply->processes))))
		return false;
	reply->process_count = count;
	for (size_t i = 0; i < count; i++)
		if (!protocol_write_process(xdr, &reply->processes[i], reply->name_count))
			return false;
	return true;
}

static bool protocol_write_event(XDR *xdr, struct driverd_event *event)
{
	int kind = (int)event->kind;

	if (!xdr_int(xdr, &kind) || kind < DRIVERD_EVENT_BEGUN || kind > DRIVERD_EVENT_XID)
		return false;
	event->kind = (enum driverd_event_kind)kind;
	return protocol_write_text(xdr, &event->uuid, DRIVERD_UUID_MAX) && xdr_u_int(xdr, &event->number) &&
	       xdr_u_int(xdr, &event->gpu_instance) && xdr_u_int(xdr, &event->compute_instance);
}

static bool protocol_write_reply_field(XDR *xdr, enum driverd_procedure procedure, struct driverd_reply *reply)
{
	int code = (int)reply->status;

	if (!xdr_int(xdr, &code) || code < DRIVERD_OK || code > DRIVERD_REFUSED)
		return false;
	reply->status = (enum driverd_status)code;
	if (code != DRIVERD_OK)
		return protocol_write_text(xdr, &reply->message, DRIVERD_MESSAGE_MAX);
	switch (procedure) {
	case DRIVERD_DXCORE_ADAPTERS:
		return protocol_write_adapters(xdr, reply);
	case DRIVERD_NVML_NAMES:
		return protocol_write_names(xdr, reply);
	case DRIVERD_NVML_PROCESSES:
		return protocol_write_processes(xdr, reply);
	case DRIVERD_CUDA_VERSION:
		return xdr_int(xdr, &reply->version);
	case DRIVERD_NVML_WATCH:
		return protocol_write_event(xdr, &reply->event);
	default:
		return false;
	}
}

static bool protocol_write_request_field(XDR *xdr, struct driverd_request *request)
{
	int procedure = (int)request->procedure;

	if (!xdr_int(xdr, &procedure) || procedure < DRIVERD_DXCORE_ADAPTERS || procedure >= DRIVERD_PROCEDURES)
		return false;
	request->procedure = (enum driverd_procedure)procedure;
	if (!protocol_write_text(xdr, &request->library, DRIVERD_PATH_MAX) || !request->library)
		return false;
	return procedure != DRIVERD_NVML_WATCH || protocol_write_text(xdr, &request->without, DRIVERD_PATH_MAX);
}

/* ---- as datagrams ---- */

static void protocol_writer_open(XDR *xdr, void *buffer)
{
	xdrmem_create(xdr, buffer, DRIVERD_DATAGRAM_MAX, XDR_ENCODE);
}

/* XDR does not write to what it reads. */
static bool protocol_reader_open(XDR *xdr, const void *data, size_t size)
{
	if (size > DRIVERD_DATAGRAM_MAX)
		return false;
	xdrmem_create(xdr, (char *)(uintptr_t)data, (u_int)size, XDR_DECODE);
	return true;
}

size_t protocol_write_request(const struct driverd_request *request, void *ret)
{
	struct driverd_request copy = *request;
	XDR xdr;

	protocol_writer_open(&xdr, ret);
	return protocol_write_request_field(&xdr, &copy) ? xdr_getpos(&xdr) : 0;
}

bool protocol_read_request(const void *data, size_t size, struct driverd_request *ret)
{
	XDR xdr;

	return protocol_reader_open(&xdr, data, size) && protocol_write_request_field(&xdr, ret) &&
	       xdr_getpos(&xdr) == size;
}

size_t protocol_write_reply(enum driverd_procedure procedure, const struct driverd_reply *reply, void *ret)
{
	struct driverd_reply copy = *reply;
	XDR xdr;

	protocol_writer_open(&xdr, ret);
	return protocol_write_reply_field(&xdr, procedure, &copy) ? xdr_getpos(&xdr) : 0;
}

bool protocol_read_reply(enum driverd_procedure procedure, const void *data, size_t size, struct driverd_reply *ret)
{
	XDR xdr;

	return protocol_reader_open(&xdr, data, size) && protocol_write_reply_field(&xdr, procedure, ret) &&
	       xdr_getpos(&xdr) == size;
}

void answer_failure(struct driverd_reply *reply, enum driverd_status status, const char *format, ...)
{
	char *message = calloc(1, DRIVERD_MESSAGE_MAX + 1);
	va_list arguments;

	if (!message)
		abort();
	va_start(arguments, format);
	(void)vsnprintf(message, DRIVERD_MESSAGE_MAX + 1, format, arguments);
	va_end(arguments);
	str_make_printable(message);
	*reply = (struct driverd_reply){.status = status, .message = message};
}
