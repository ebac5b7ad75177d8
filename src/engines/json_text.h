/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an engine's JSON file says, and what it is to say. dockerd takes an empty file for an object without members. */

#include <jansson.h>

#include "engines/text.h"

/** Return: 0 and an object; -EINVAL with @ret_error filled in, also if it is something else; -ENOMEM. */
int json_text_read(const struct text *text, json_t **ret, struct text_error *ret_error);

/** Has a text say this, in the order, the indentation and the line ends that it has. Return: 0 or -ENOMEM. */
int json_text_write(struct text *text, const json_t *wanted);
