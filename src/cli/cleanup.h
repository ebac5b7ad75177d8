/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Resources of the commands that free themselves when their variable goes out of scope; the library's have their own. */

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(function)))

static inline void cleanup_freep(void *memory)
{
	free(*(void **)memory);
}

static inline void cleanup_closep(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void cleanup_jsonp(json_t **json)
{
	json_decref(*json);
}

#define _cleanup_free_ _cleanup_(cleanup_freep)
#define _cleanup_close_ _cleanup_(cleanup_closep)
#define _cleanup_json_ _cleanup_(cleanup_jsonp)
