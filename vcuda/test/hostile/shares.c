/* SPDX-License-Identifier: Apache-2.0 */

#include "shares.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vcuda/protocol/types.h"

enum {
	LAZY_PEERS = 1,
	INVALID = 1,
	OUT_OF_MEMORY = 2,
	OWN = 201,
	NOT_MAPPED = 205,
	PAGE = 2 << 20,
	PATIENCE = 400,
	DESCRIPTOR = 1
};

struct token {
	uint64_t word[8];
};

static int shares_call(struct control_client *peer, unsigned op, uint64_t context, uint64_t a, uint64_t b,
		       unsigned count)
{
	const uint64_t words[] = {a, b};

	return peer_call(peer, 0, op, context, words, count, NULL, 0);
}

static int shares_is(const char *what, int got, int wanted)
{
	if (got != wanted)
		printf("# %s: %d, not %d\n", what, got, wanted);
	return got != wanted;
}

static uint64_t shares_alloc(struct control_client *peer, uint64_t context, uint64_t bytes)
{
	return shares_call(peer, OP_cuMemAlloc_v2, context, bytes, 0, 1) == 0 ? peer_word(peer, 0) : 0;
}

static uint64_t shares_left(struct control_client *peer, uint64_t context)
{
	return shares_call(peer, OP_cuMemGetInfo_v2, context, 0, 0, 0) == 0 ? peer_word(peer, 0) : 0;
}

static int shares_give(struct control_client *peer, unsigned op, uint64_t context, uint64_t what, struct token *ret)
{
	const int r = shares_call(peer, op, context, what, 0, 1);

	if (r == 0)
		memcpy(ret, peer->wire->reply[0].word, sizeof(*ret));
	return r;
}

static int shares_take(struct control_client *peer, uint64_t context, const void *token, size_t bytes)
{
	const uint64_t words[] = {bytes, LAZY_PEERS};

	return peer_call(peer, 0, OP_cuIpcOpenMemHandle_v2, context, words, 2, token, bytes);
}

static int shares_take_event(struct control_client *peer, uint64_t context, const struct token *token)
{
	const uint64_t word = sizeof(*token);

	return peer_call(peer, 0, OP_cuIpcOpenEventHandle, context, &word, 1, token, sizeof(*token));
}

/* The simulated driver shares nothing where it has no file for it. */
static bool shares_are_there(struct control_client *peer, uint64_t context)
{
	struct token token;
	const uint64_t memory = shares_alloc(peer, context, PAGE);
	const int r = shares_give(peer, OP_cuIpcGetMemHandle, context, memory, &token);

	(void)shares_call(peer, OP_cuMemFree_v2, context, memory, 0, 1);
	return r != CUDA_ERROR_NOT_SUPPORTED;
}

/* Handles that no server has given, or for something else. Each word of a right one is changed by a bit. */
int shares_forged(struct control_client *peer, uint64_t context)
{
	struct control_client other;
	struct token token, forged, event_token;
	uint64_t memory, theirs, taken, event;
	int r = 0;

	if (!shares_are_there(peer, context))
		return 0;
	memory = shares_alloc(peer, context, PAGE);
	if (!memory || !peer_open(&other) || peer_hello(&other))
		return 1;
	theirs = peer_context(&other);
	r |= shares_is("given", shares_give(peer, OP_cuIpcGetMemHandle, context, memory, &token), 0);
	for (int i = 0; i < 3; i++) {
		forged = token;
		forged.word[i] ^= (uint64_t)1 << (7 * i + 3);
		r |= shares_is("forged", shares_take(&other, theirs, &forged, sizeof(forged)), INVALID);
	}
	r |= shares_is("of zeros", shares_take(&other, theirs, &(struct token){{0}}, sizeof(token)), INVALID);
	r |= shares_is("too short", shares_take(&other, theirs, &token, 24), INVALID);
	r |= shares_is("for an event", shares_take_event(&other, theirs, &token), NOT_MAPPED);
	r |= shares_is("its own", shares_take(peer, context, &token, sizeof(token)), OWN);
	r |= shares_is("closed without", shares_call(&other, OP_cuIpcCloseMemHandle, theirs, memory, 0, 1), INVALID);
	r |= shares_is("closed by its giver", shares_call(peer, OP_cuIpcCloseMemHandle, context, memory, 0, 1),
		       INVALID);
	r |= shares_is("taken", shares_take(&other, theirs, &token, sizeof(token)), 0);
	taken = peer_word(&other, 0);
	r |= shares_is("given on", shares_give(&other, OP_cuIpcGetMemHandle, theirs, taken, &forged), INVALID);
	r |= shares_is("freed by another", shares_call(&other, OP_cuMemFree_v2, theirs, taken, 0, 1), INVALID);
	r |= shares_is("closed", shares_call(&other, OP_cuIpcCloseMemHandle, theirs, taken, 0, 1), 0);
	r |= shares_is("closed again", shares_call(&other, OP_cuIpcCloseMemHandle, theirs, taken, 0, 1), INVALID);
	r |= shares_is("an event", shares_call(peer, OP_cuEventCreate, context, 6, 0, 1), 0);
	event = peer_word(peer, 0);
	r |= shares_is("event given", shares_give(peer, OP_cuIpcGetEventHandle, context, event, &event_token), 0);
	r |= shares_is("event as memory", shares_take(&other, theirs, &event_token, sizeof(event_token)), INVALID);
	r |= shares_is("event taken", shares_take_event(&other, theirs, &event_token), 0);
	/* With its end, the handle is none any more. */
	r |= shares_is("event ended", shares_call(peer, OP_cuEventDestroy_v2, context, event, 0, 1), 0);
	r |= shares_is("event of before", shares_take_event(&other, theirs, &event_token), NOT_MAPPED);
	r |= shares_is("freed", shares_call(peer, OP_cuMemFree_v2, context, memory, 0, 1), 0);
	r |= shares_is("of before", shares_take(&other, theirs, &token, sizeof(token)), INVALID);
	control_client_close(&other);
	printf("# forged handles\n");
	return r;
}

/* With a limit: counted once, as long as either has it, and no longer than the last lives. */
int shares_counted(struct control_client *peer, uint64_t context)
{
	const uint64_t limit = shares_left(peer, context), bytes = limit / 4 / PAGE * PAGE;
	struct control_client other;
	uint64_t memory, theirs, left;
	struct token token;
	int r = 0;

	if (limit > 1 << 30 || !shares_are_there(peer, context))
		return 0;
	memory = shares_alloc(peer, context, bytes);
	if (!memory || !peer_open(&other) || peer_hello(&other))
		return 1;
	theirs = peer_context(&other);
	left = shares_left(peer, context);
	r |= shares_is("given", shares_give(peer, OP_cuIpcGetMemHandle, context, memory, &token), 0);
	r |= shares_is("taken", shares_take(&other, theirs, &token, sizeof(token)), 0);
	r |= shares_is("counted once", shares_left(peer, context) == left && shares_left(&other, theirs) == left, 1);
	r |= shares_is("freed by its giver", shares_call(peer, OP_cuMemFree_v2, context, memory, 0, 1), 0);
	r |= shares_is("counted still", shares_left(peer, context) == left, 1);
	r |= shares_is("too much", shares_call(peer, OP_cuMemAlloc_v2, context, left + PAGE, 0, 1), OUT_OF_MEMORY);
	control_client_close(&other);
	for (int i = 0; i < PATIENCE && shares_left(peer, context) != limit; i++)
		(void)usleep(10000);
	r |= shares_is("counted after its end", shares_left(peer, context) == limit, 1);
	printf("# shared %lu of %lu\n", (unsigned long)bytes, (unsigned long)limit);
	return r;
}

static int shares_import(struct control_client *peer, uint64_t context, const struct token *token)
{
	const uint64_t words[] = {sizeof(*token), DESCRIPTOR};

	return peer_call(peer, 0, OP_cuMemImportFromShareableHandle, context, words, 2, token, sizeof(*token));
}

static int shares_end(struct control_client *peer, uint64_t context, const struct token *token)
{
	return shares_call(peer, WIRE_SHARE_END, context, token->word[1], token->word[2], 2);
}

/* Makes memory and a descriptor of it. Return: the memory's handle; 0. */
static uint64_t shares_export(struct control_client *peer, uint64_t context, uint64_t bytes, struct token *ret)
{
	const CUmemAllocationProp wish = {.type = 1, .requestedHandleTypes = DESCRIPTOR, .location = {1, 0}};
	const uint64_t make[] = {bytes, sizeof(wish), 0};
	uint64_t give[] = {0, DESCRIPTOR, 0};

	if (peer_call(peer, 0, OP_cuMemCreate, context, make, 3, &wish, sizeof(wish)))
		return 0;
	give[0] = peer_word(peer, 0);
	if (peer_call(peer, 0, OP_cuMemExportToShareableHandle, context, give, 3, NULL, 0))
		return 0;
	memcpy(ret, peer->wire->reply[0].word, sizeof(*ret));
	return give[0];
}

/* With a limit: whoever says more often than it had descriptors that one is closed, has the memory still. */
int shares_physical(struct control_client *peer, uint64_t context)
{
	const uint64_t limit = shares_left(peer, context), bytes = limit / 4 / PAGE * PAGE;
	struct control_client other;
	uint64_t memory, theirs, left;
	struct token token;
	int r = 0;

	if (limit > 1 << 30 || !shares_are_there(peer, context))
		return 0;
	memory = shares_export(peer, context, bytes, &token);
	if (!memory || !peer_open(&other) || peer_hello(&other))
		return 1;
	theirs = peer_context(&other);
	left = shares_left(peer, context);
	r |= shares_is("taken", shares_import(&other, theirs, &token), 0);
	r |= shares_is("closed by who has none", shares_end(&other, theirs, &token), INVALID);
	r |= shares_is("closed", shares_end(peer, context, &token), 0);
	r |= shares_is("closed twice", shares_end(peer, context, &token), INVALID);
	r |= shares_is("released", shares_call(peer, OP_cuMemRelease, context, memory, 0, 1), 0);
	r |= shares_is("counted still", shares_left(peer, context) == left, 1);
	control_client_close(&other);
	for (int i = 0; i < PATIENCE && shares_left(peer, context) <= left; i++)
		(void)usleep(10000);
	r |= shares_is("counted after its end", shares_left(peer, context) > left, 1);
	printf("# descriptors %lu of %lu\n", (unsigned long)bytes, (unsigned long)limit);
	return r;
}

/* Handles of more events than a container has places for. */
int shares_places(struct control_client *peer, uint64_t context)
{
	enum { MANY = 5000, PLACES = 4095 /* and one for the file that they are in */ };
	static uint64_t events[MANY];
	struct token token;
	int given = 0, r = 0;

	if (!shares_are_there(peer, context))
		return 0;
	for (int i = 0; i < MANY && !r; i++) {
		r |= shares_is("an event", shares_call(peer, OP_cuEventCreate, context, 6, 0, 1), 0);
		events[i] = peer_word(peer, 0);
		given += shares_give(peer, OP_cuIpcGetEventHandle, context, events[i], &token) == 0;
	}
	r |= shares_is("given", given, PLACES);
	for (int i = 0; i < MANY && !r; i++)
		r |= shares_is("ended", shares_call(peer, OP_cuEventDestroy_v2, context, events[i], 0, 1), 0);
	r |= shares_is("an event", shares_call(peer, OP_cuEventCreate, context, 6, 0, 1), 0);
	return r | shares_is("given then",
			     shares_give(peer, OP_cuIpcGetEventHandle, context, peer_word(peer, 0), &token), 0);
}
