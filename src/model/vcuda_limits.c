/* SPDX-License-Identifier: Apache-2.0 */

#include "model/vcuda_limits.h"

#include "base/json.h"
#include "base/print.h"
#include "base/str.h"
#include "model/settings.h"

json_t *vcuda_limits_pack(const struct vcuda_limits *limits, json_t *object)
{
	json_t *host = limits->host_memory ? json_integer((json_int_t)limits->host_memory) : json_null();

	(void)json_object_update_new(object, json_pack("{s:o, s:o, s:i, s:i, s:i, s:i}", "memory",
						       json_share(limits->memory), "hostMemory", host, "maxClients",
						       (int)limits->max_clients, "idle", (int)limits->idle, "balance",
						       (int)limits->balance, "share", (int)limits->share));
	return object;
}

void vcuda_limits_print(const struct vcuda_limits *limits, FILE *file)
{
	char memory[BYTES_TEXT_SIZE] = "all of its memory";

	if (limits->memory)
		str_format_share(limits->memory, memory);
	print_safe(file, "%s, %u processes", memory, limits->max_clients);
	if (limits->idle)
		(void)fprintf(file, ", suspended after %u s of rest", limits->idle);
	if (limits->balance)
		(void)fprintf(file, ", moved after %u s with more work than on another GPU", limits->balance);
	if (limits->share != USUAL_SHARE)
		(void)fprintf(file, ", share %u of its time", limits->share);
}

json_t *vcuda_limits_write(const struct vcuda_limits *limits)
{
	return json_pack("{s:I, s:I, s:i, s:i, s:i, s:i}", "memory", (json_int_t)limits->memory, "hostMemory",
			 (json_int_t)limits->host_memory, "maxClients", (int)limits->max_clients, "idle",
			 (int)limits->idle, "balance", (int)limits->balance, "share", (int)limits->share);
}

static json_int_t vcuda_limits_number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

struct vcuda_limits vcuda_limits_read(const json_t *object)
{
	const json_int_t share = vcuda_limits_number(object, "share");

	return (struct vcuda_limits){
		.memory = (uint64_t)vcuda_limits_number(object, "memory"),
		.host_memory = (uint64_t)vcuda_limits_number(object, "hostMemory"),
		.max_clients = (unsigned)vcuda_limits_number(object, "maxClients"),
		.idle = (unsigned)vcuda_limits_number(object, "idle"),
		.balance = (unsigned)vcuda_limits_number(object, "balance"),
		.share = share > 0 ? (unsigned)share : USUAL_SHARE,
	};
}
