/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * JSON as its author wrote it: members are put in and taken out of the text, and every other byte stays. What is put in is
 * one piece, so that taking it out again is exact; a journal of such edits, an array of objects, is what undoing needs.
 *
 * A path is names with '/' between them, "runtimes/nvidia"; "" is the document itself.
 */

#include <jansson.h>

#include "engines/text.h"

/** Return: 0, also for a text of nothing but blanks; -EINVAL with @ret_error filled in; -ENOMEM. */
int json_text_check(const struct text *text, struct text_error *ret_error);

/** Return: 0 and a new reference; -ENOENT; -ENOMEM. */
int json_text_get(const struct text *text, const char *path, json_t **ret);

/** Finds where the value of @path starts, for a message. Return: false if there is none. */
bool json_text_find(const struct text *text, const char *path, size_t *ret_at);

/**
 * json_text_put() - see to it that a member has this value
 * @text:    what json_text_check() has passed
 * @value:   borrowed
 * @journal: array that gets one more edit; none if the member has the value already
 *
 * Return: 0; -ENOTDIR if something on the way there is no object; -ENOMEM.
 */
int json_text_put(struct text *text, const char *path, const json_t *value, json_t *journal);

/**
 * json_text_undo() - take an edit back; the last one first
 * @text: may have been edited by others since
 * @edit: of the journal
 *
 * Return: 0, also if nothing of it is left; 1 if somebody has given the member another value, which stays; -EINVAL if this is
 * no edit; -ENOMEM.
 */
int json_text_undo(struct text *text, const json_t *edit);

/** Takes a member out, and the comma with it. Return: 0, also if it is not there; -ENOMEM. */
int json_text_remove(struct text *text, const char *path);
