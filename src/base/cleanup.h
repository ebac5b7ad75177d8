/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Resources that free themselves. A variable declared with one of these attributes is released when it goes
 * out of scope; a function that hands the resource to its caller takes it out with steal_ptr() or steal_fd().
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Some clang take a variable that is only released for unused. */
#define _cleanup_(function) __attribute__((cleanup(function), unused))

/** Declares `release##p` for _cleanup_(): it releases what the variable points to, unless that is NULL. */
#define DEFINE_CLEANUP(type, release)               \
	static inline void release##p(type *object) \
	{                                           \
		if (*object)                        \
			(void)release(*object);     \
	}

static inline void cleanup_freep(void *memory)
{
	free(*(void **)memory);
}

/** Also for descriptors in a struct: what is closed already is not closed again, when its number is another's. */
static inline void cleanup_closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static inline void cleanup_fclosep(FILE **file)
{
	if (*file)
		(void)fclose(*file);
}

#define _cleanup_free_ _cleanup_(cleanup_freep)
#define _cleanup_close_ _cleanup_(cleanup_closep)
#define _cleanup_fclose_ _cleanup_(cleanup_fclosep)

#define steal_ptr(pointer)                                \
	({                                                \
		__typeof__(pointer) *steal_ = &(pointer); \
		__typeof__(pointer) taken_ = *steal_;     \
		*steal_ = NULL;                           \
		taken_;                                   \
	})

/** For a struct whose release function ignores zeros. */
#define steal_struct(object)                          \
	({                                            \
		__typeof__(object) steal_ = (object); \
		__typeof__(*steal_) taken_ = *steal_; \
		*steal_ = (__typeof__(*steal_)){0};   \
		taken_;                               \
	})

static inline int steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
