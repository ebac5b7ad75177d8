/* SPDX-License-Identifier: Apache-2.0 */

/* The question and the answers of ctr-gpu-driverd, as any bytes: what is read is within its bounds, and is told again in the same bytes. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "driverd/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t max)
{
	if (text && (!text[0] || strlen(text) > max))
		abort();
}

static void check_bounds(const struct driverd_reply *answer)
{
	if (answer->fact_count > DRIVERD_ADAPTERS_MAX || answer->name_count > DRIVERD_NAMES_MAX ||
	    answer->process_count > DRIVERD_PROCESSES_MAX)
		abort();
	check_text(answer->message, DRIVERD_MESSAGE_MAX);
	check_text(answer->event.uuid, DRIVERD_UUID_MAX);
	for (size_t i = 0; i < answer->fact_count; i++) {
		check_text(answer->facts[i].name, DRIVERD_TEXT_MAX);
		check_text(answer->facts[i].store, DRIVERD_TEXT_MAX);
	}
	for (size_t i = 0; i < answer->name_count; i++) {
		check_text(answer->names[i].uuid, DRIVERD_UUID_MAX);
		check_text(answer->names[i].of, DRIVERD_UUID_MAX);
	}
	for (size_t i = 0; i < answer->process_count; i++)
		if (answer->processes[i].name >= answer->name_count)
			abort();
}

static void check_answer(enum driverd_procedure procedure, const uint8_t *data, size_t size)
{
	static unsigned char once[DRIVERD_DATAGRAM_MAX], twice[DRIVERD_DATAGRAM_MAX];
	struct driverd_reply answer = {0}, again = {0};

	if (protocol_read_reply(procedure, data, size, &answer)) {
		size_t length = protocol_write_reply(procedure, &answer, once);

		check_bounds(&answer);
		if (length == 0 || length > size || !protocol_read_reply(procedure, once, length, &again) ||
		    protocol_write_reply(procedure, &again, twice) != length || memcmp(once, twice, length) != 0)
			abort();
	}
	driverd_reply_clear(&answer);
	driverd_reply_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct driverd_request question = {0};

	if (protocol_read_request(data, size, &question))
		check_text(question.library, DRIVERD_PATH_MAX);
	check_text(question.without, DRIVERD_PATH_MAX);
	free(question.library);
	free(question.without);
	for (int i = DRIVERD_DXCORE_ADAPTERS; i < DRIVERD_PROCEDURES; i++)
		check_answer((enum driverd_procedure)i, data, size);
	return 0;
}
