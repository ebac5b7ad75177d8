/* SPDX-License-Identifier: Apache-2.0 */

#include "process/capability.h"

#include <stdbool.h>

/* Sets one effective flag; safe in a signal handler, since not by libcap's memory. Return: whether that changed it. */
static bool capability_set(cap_value_t value, bool wanted)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	struct __user_cap_data_struct *word = &data[value / 32];
	const unsigned bit = 1U << value % 32;

	if (capget(&header, data) < 0 || !(word->permitted & bit) || !(word->effective & bit) != wanted)
		return false;
	word->effective ^= bit;
	return capset(&header, data) == 0;
}

cap_value_t capability_raise(cap_value_t value)
{
	return value != CAPABILITY_NONE && capability_set(value, true) ? value : CAPABILITY_NONE;
}

void capability_lower(cap_value_t *raised)
{
	if (*raised != CAPABILITY_NONE)
		(void)capability_set(*raised, false);
	*raised = CAPABILITY_NONE;
}
