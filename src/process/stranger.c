/* SPDX-License-Identifier: Apache-2.0 */

#include "process/stranger.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

int stranger_draw(uid_t *ret)
{
	uint32_t drawn;

	if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
		return -EIO;
	*ret = STRANGER_FIRST + drawn % STRANGERS;
	return 0;
}
