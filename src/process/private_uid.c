/* SPDX-License-Identifier: Apache-2.0 */

#include "process/private_uid.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

int private_uid_draw(uid_t *ret)
{
	uint32_t drawn;

	if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
		return -EIO;
	*ret = PRIVATE_UID_FIRST + drawn % PRIVATE_UIDS;
	return 0;
}
