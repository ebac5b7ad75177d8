/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An engine's JSON file made to say something else, in the order, the indentation and the line ends that it has. */

#include <jansson.h>

#include "engines/text.h"

/** Return: 0; -ENOMEM. */
int json_file_write(struct text *text, const json_t *wanted);
