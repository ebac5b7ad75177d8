/* SPDX-License-Identifier: Apache-2.0 */

#include "base/err_advice.h"

#include <errno.h>
#include <stddef.h>

const char *err_errno_advice(int error)
{
	switch (error) {
	case EROFS:
		return "The file system is read-only: remount it writable, or write to another directory.";
	case ENOSPC:
		return "The file system is full (see df -h and df -i): make room, and try again.";
	case EDQUOT:
		return "The disk quota is used up (see quota -s): make room, and try again.";
	default:
		return NULL;
	}
}
