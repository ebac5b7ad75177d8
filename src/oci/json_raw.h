/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Members of a JSON text that its reader does not look at. Half of a container's configuration is a list of system
 * calls and the like. To build a tree of it takes longer than anything else that a start does in user space. So before
 * parsing each such value is replaced by a random placeholder, a string, and afterwards it is put back.
 */

#include <jansson.h>
#include <stddef.h>

/* Lists of them end with an entry without a name. */
struct json_raw {
	const char *name;
	const struct json_raw *members; /* of an object that is looked at; NULL: nothing of it is */
};

/**
 * json_parse_skipping() - json_parse_to_print() for a text of which not all is looked at
 * @raws: what is not; each reads as a string, and is itself again when json_print_restoring() writes it
 */
int json_parse_skipping(const char *data, size_t size, const struct json_raw *raws, json_t **ret,
			char reason[JSON_ERROR_TEXT_LENGTH]);

/** json_print() of what json_parse_skipping() made of @data. */
int json_print_restoring(const json_t *json, size_t flags, const char *data, char **ret);
