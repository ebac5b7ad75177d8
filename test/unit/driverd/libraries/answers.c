/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers in the place of ctr-gpu-driverd, on the socket to its caller, which it can write to. Which way depends on the name
 * by which it was loaded.
 */

#define FAKE_OWN_ENUMERATE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "driverd/protocol.h"
#include "fake.h"

static uint32_t words[64 * 1024];

static void send_words(size_t count)
{
	for (size_t i = 0; i < count; i++)
		words[i] = htonl(words[i]);
	(void)!write(DRIVERD_SOCKET, words, count * sizeof(words[0]));
}

/* For ever: an answer of RPC in one record, to a call that was not made, with a verifier of four bytes, which libtirpc's client keeps. */
static void flood(void)
{
	const uint32_t reply[8] = {htonl(0x80000000u | 28), htonl(4711), htonl(1), 0, 0, htonl(4)};

	for (;;)
		(void)!write(DRIVERD_SOCKET, reply, sizeof(reply));
}

static void garbage(void)
{
	for (size_t i = 0; i < 100; i++)
		words[i] = 0x5a5a5a5a + (uint32_t)i;
	send_words(100);
}

static void oversized(void)
{
	send_words(40000);
}

static void empty(void)
{
	(void)!write(DRIVERD_SOCKET, "", 0);
}

/* Adapters of which nothing comes; more than there may be; a text of four gigabytes; bytes behind the end. */
static void missing(void)
{
	words[1] = 64;
	send_words(2);
}

static void count(void)
{
	words[1] = 0xffffffff;
	send_words(1000);
}

static void text(void)
{
	words[1] = 1;
	words[9] = 0xfffffffe;
	send_words(1000);
}

static void behind(void)
{
	send_words(3);
}

static void state(void)
{
	words[0] = 4711;
	send_words(2);
}

/* Holds the socket by all descriptors there may be, and does not answer. */
static void holds(void)
{
	sigset_t all;

	while (dup(DRIVERD_SOCKET) >= 0)
		;
	sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	for (;;)
		(void)pause();
}

static const struct {
	const char *name;
	void (*answer)(void);
} ways[] = {
	{"flood", flood}, {"garbage", garbage}, {"oversized", oversized}, {"empty", empty}, {"missing", missing},
	{"count", count}, {"text", text},       {"behind", behind},       {"state", state}, {"holds", holds},
};

EXPORT int32_t D3DKMTEnumAdapters3(struct d3dkmt_enumadapters3 *arguments)
{
	Dl_info info;

	(void)arguments;
	if (dladdr((void *)(uintptr_t)words, &info) == 0)
		abort();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strstr(info.dli_fname, ways[i].name))
			ways[i].answer();
	for (;;)
		(void)pause();
}

EXPORT int32_t D3DKMTEnumAdapters2(struct d3dkmt_enumadapters2 *arguments)
{
	(void)arguments;
	return FAKE_STATUS_INVALID_PARAMETER;
}
