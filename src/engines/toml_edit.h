/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An engine's TOML file made to say something else. What stays the same stays as its author wrote it: a value goes over
 * another, a key below its table's header, and new tables between two marked lines behind everything else.
 */

#include <jansson.h>

#include "engines/buffer.h"

/**
 * toml_edit_write() - as little as possible of a text, so that it says what is wanted
 *
 * What cannot be said beside what is there, as a table of its own below an inline table, makes a text that is not valid
 * or says something else: the caller reads it again.
 *
 * Return: 0; -EINVAL if the text is not valid, or is not any more; -ENOMEM.
 */
int toml_edit_write(struct text_buffer *text, json_t *wanted);

/**
 * toml_edit_cut() - take out marked lines
 * @whole: with whatever is between them; else those alone that have no key between them
 *
 * Return: 0 or -ENOMEM.
 */
int toml_edit_cut(struct text_buffer *text, bool whole);
