/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/program/errno.h"

#include <errno.h>
#include <stddef.h>

#include "base/str.h"

/* EBUSY: a function that others have attached to in a way that leaves no place for us, such as a live patch. */
bool errno_is_temporary(int r)
{
	static const int passing[] = {EAGAIN, EBUSY, EINTR, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC};

	for (size_t i = 0; i < ARRAY_SIZE(passing); i++)
		if (r == -passing[i])
			return true;
	return false;
}
