/* SPDX-License-Identifier: Apache-2.0 */

#include "process/privilege.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of this process. A signal handler may come here. */
static struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3];
static bool known;

void capability_know(const struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3])
{
	memcpy(own, words, sizeof(own));
	known = true;
}

void capability_forget(void)
{
	known = false;
}

/* A program that never called capability_know() may change them itself. */
const struct __user_cap_data_struct *capability_own(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return known || syscall(SYS_capget, &header, own) == 0 ? own : NULL;
}

/* Sets or clears one effective flag. Return: whether the kernel did. */
static bool capability_turn(int value)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	own[value / 32].effective ^= 1U << value % 32;
	return syscall(SYS_capset, &header, own) == 0;
}

bool capability_is_effective(int value)
{
	return capability_own() && (own[value / 32].effective & 1U << value % 32);
}

int capability_raise(int value)
{
	if (value == CAPABILITY_NONE || capability_is_effective(value) ||
	    !(own[value / 32].permitted & 1U << value % 32))
		return CAPABILITY_NONE;
	return capability_turn(value) ? value : CAPABILITY_NONE;
}

void capability_lower(int *raised)
{
	if (*raised != CAPABILITY_NONE)
		(void)capability_turn(*raised);
	*raised = CAPABILITY_NONE;
}

int private_uid_draw(uid_t *ret)
{
	uint32_t drawn;

	if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
		return -EIO;
	*ret = PRIVATE_UID_FIRST + drawn % PRIVATE_UIDS;
	return 0;
}
