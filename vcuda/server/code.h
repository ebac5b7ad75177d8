/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What modules, libraries and linkers share: the compiler's options and logs, and the images that it is given. */

#include <stdbool.h>
#include <stdint.h>

#include "vcuda/server/request.h"
#include "vcuda/server/server.h"

enum { CODE_OPTIONS = 32, CODE_LOG = 1900 };

/* As the client has it in image.c. */
struct code_answer {
	uint64_t handle;
	uint32_t info_bytes, error_bytes;
	char info[CODE_LOG], error[CODE_LOG];
	float time;
};

struct code_options {
	unsigned count;
	CUjit_option name[CODE_OPTIONS + 5];
	void *value[CODE_OPTIONS + 5];
};

/* Options of ours, the last in a list: where the logs go, and how long they may be. */
enum { CODE_OWN_OPTIONS = 4 };

/**
 * The client's options, which are numbers, and buffers of ours for what the compiler says. @more: how many arguments
 * stand behind them.
 */
CUresult code_read_options(struct request *q, unsigned more, struct code_options *options, struct code_answer *answer);

/** Replies with the logs. Return: @r. */
CUresult code_reply(struct request *q, CUresult r, const struct code_options *options, struct code_answer *answer);

/** Return: the thread's upload, until request_end_upload(); NULL if it is no image that is all there. */
const void *code_image(const struct request *q);

/** Loads every library in the current context, where that takes memory of a limit. */
void code_load_libraries(void);

/* Images of code, as far as one can tell that the driver finds no more in them than there is. */

/**
 * image_is_whole() - whether all that an image says of places and lengths in it is within it
 *
 * The driver takes images without their length. Behind @bytes there has to be a NUL.
 */
bool image_is_whole(const uint8_t *image, uint64_t bytes);

/**
 * image_count_globals() - how much memory of the device the global arrays of a whole image take
 *
 * Of a fat binary, the most of its parts. What is compressed is not read.
 */
uint64_t image_count_globals(const uint8_t *image, uint64_t bytes);

/**
 * image_may_print() - whether a whole image has kernels that print, or assert something
 *
 * An image with compressed parts may, since these are not read.
 */
bool image_may_print(const uint8_t *image, uint64_t bytes);

/* Linkers, and what their threads leave behind. */

/** A context has ended. */
void linker_forget_context(uint64_t context);
