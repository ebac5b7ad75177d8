/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Members of a JSON text that its reader does not look at. Half of a container's configuration is a list of system
 * calls and the like, and to build a tree of it takes longer than anything else that a start does in user space. So
 * such values stay text: in what is parsed a string stands for each, of a form that nobody else can write.
 */

#include <stddef.h>

/* Lists of them end with an entry without a name. */
struct json_aside {
	const char *name;
	const struct json_aside *members; /* of an object that is looked at; NULL: nothing of it is */
};

/**
 * json_aside_take() - a shorter text
 * @asides: members of the object that @data is
 * @ret:    owned by the caller; what @asides names is not in it
 *
 * What is left out has quotes and brackets in pairs, and is not checked further.
 *
 * Return: 0; -ENOMEM; -EINVAL if @data cannot be JSON; negative errno without a random number.
 */
int json_aside_take(const char *data, size_t size, const struct json_aside *asides, char **ret, size_t *ret_size);

/**
 * json_aside_give_back() - the values in their places again
 * @text: made from what was parsed
 * @data: as json_aside_take() got it
 * @ret:  owned by the caller
 *
 * Return: 0 or -ENOMEM.
 */
int json_aside_give_back(const char *text, const char *data, char **ret);
