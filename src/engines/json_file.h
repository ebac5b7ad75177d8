/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an engine's JSON file says, and what it is to say. dockerd takes an empty file for an object without members. */

#include <jansson.h>

#include "engines/buffer.h"

/** Return: 0 and an object; -EINVAL with @ret_error filled in, also if it is something else; -ENOMEM. */
int json_file_read(const struct text_buffer *text, json_t **ret, struct text_buffer_error *ret_error);

/** Has a text say this, in the order, the indentation and the line ends that it has. Return: 0 or -ENOMEM. */
int json_file_write(struct text_buffer *text, const json_t *wanted);
