/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What kernels print. The driver writes it to the process's stdout, and failed assertions to its stderr, when somebody
 * waits for the GPU, or in a thread of its own. Here both lead into memory, from where the client fetches it: every
 * reply says whether there is any. Nobody waits for a client that does not.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vcuda/server/code.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

/* The driver's own buffer has 1 MiB, unless a program sets another limit. What is beyond this is lost. */
enum { PRINT_MAX = 16 << 20, PRINT_FIRST = 65536 };

static struct print {
	char *text;
	size_t begin, end, room;
	uint64_t lost; /* bytes */
} prints[WIRE_PRINTS];

static pthread_mutex_t print_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t print_waits; /* a bit for each that has some */
static _Atomic bool print_can;

void print_note_image(const void *image, uint64_t bytes)
{
	if (!print_can && image_may_print(image, bytes))
		print_can = true;
}

bool print_is_possible(void)
{
	return print_can;
}

uint32_t print_waiting(void)
{
	return atomic_load_explicit(&print_waits, memory_order_relaxed);
}

/* With the lock. Return: whether there is room for so many more. */
static bool print_make_room(struct print *print, size_t bytes)
{
	size_t room = print->room ? print->room : PRINT_FIRST;
	char *larger;

	if (print->end - print->begin + bytes > PRINT_MAX)
		return false;
	if (print->begin > 0) {
		memmove(print->text, print->text + print->begin, print->end - print->begin);
		print->end -= print->begin;
		print->begin = 0;
	}
	while (room < print->end + bytes)
		room *= 2;
	if (room == print->room)
		return true;
	if (!quota_lock(room - print->room))
		return false;
	larger = realloc(print->text, room);
	if (!larger) {
		quota_unlock(room - print->room);
		return false;
	}
	print->text = larger;
	print->room = room;
	return true;
}

static void print_add(enum wire_print which, const char *text, size_t bytes)
{
	struct print *print = &prints[which];

	if (bytes > print->room - print->end && !print_make_room(print, bytes)) {
		print->lost += bytes;
		return;
	}
	memcpy(print->text + print->end, text, bytes);
	print->end += bytes;
	print_waits |= 1U << which;
}

static ssize_t print_take(void *cookie, const char *text, size_t bytes)
{
	(void)pthread_mutex_lock(&print_mutex);
	print_add((enum wire_print)(uintptr_t)cookie, text, bytes);
	(void)pthread_mutex_unlock(&print_mutex);
	return (ssize_t)bytes;
}

static FILE *print_open(enum wire_print which)
{
	FILE *file = fopencookie((void *)(uintptr_t)which, "w", (cookie_io_functions_t){.write = print_take});

	if (file)
		(void)setvbuf(file, NULL, _IONBF, 0);
	return file;
}

bool print_begin(void)
{
	FILE *const out = print_open(WIRE_PRINT_OUT), *const error = print_open(WIRE_PRINT_ERROR);

	if (!out || !error)
		return false;
	stdout = out;
	stderr = error;
	return true;
}

/* With the lock. How much is lost stands behind what is not. */
static void print_tell_lost(struct print *print)
{
	char line[128];
	const int length = snprintf(line, sizeof(line),
				    "ctr-gpu: vCUDA: %llu bytes that kernels printed are lost; fetch them earlier\n",
				    (unsigned long long)print->lost);

	print->lost = 0;
	print_add(WIRE_PRINT_ERROR, line, (size_t)length);
}

CUresult serve_wire_print(struct request *q)
{
	CUresult r = request_words(q, 1);
	struct print *print;
	size_t bytes;

	if (r || q->argument[0] >= WIRE_PRINTS)
		return CUDA_ERROR_INVALID_VALUE;
	print = &prints[q->argument[0]];
	(void)pthread_mutex_lock(&print_mutex);
	bytes = print->end - print->begin < WIRE_REPLY ? print->end - print->begin : WIRE_REPLY;
	if (bytes > 0)
		memcpy(q->reply, print->text + print->begin, bytes);
	q->reply_bytes = (uint32_t)bytes;
	print->begin += bytes;
	if (print->begin == print->end) {
		print->begin = print->end = 0;
		print_waits &= ~(1U << q->argument[0]);
		if (print->lost)
			print_tell_lost(print);
	}
	(void)pthread_mutex_unlock(&print_mutex);
	return CUDA_SUCCESS;
}
