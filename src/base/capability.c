/* SPDX-License-Identifier: Apache-2.0 */

#include "base/capability.h"

#include <stdbool.h>

/* Sets one effective flag. Return: whether it had the other value, and now has this one. */
static bool capability_set(cap_value_t value, cap_flag_value_t wanted)
{
	cap_t all = cap_get_proc();
	cap_flag_value_t permitted = CAP_CLEAR, effective = wanted;
	bool changed = false;

	if (all && cap_get_flag(all, value, CAP_PERMITTED, &permitted) == 0 && permitted == CAP_SET &&
	    cap_get_flag(all, value, CAP_EFFECTIVE, &effective) == 0 && effective != wanted)
		changed = cap_set_flag(all, CAP_EFFECTIVE, 1, &value, wanted) == 0 && cap_set_proc(all) == 0;
	(void)cap_free(all);
	return changed;
}

cap_value_t capability_raise(cap_value_t value)
{
	return value != CAPABILITY_NONE && capability_set(value, CAP_SET) ? value : CAPABILITY_NONE;
}

void capability_lower(cap_value_t *raised)
{
	if (*raised != CAPABILITY_NONE)
		(void)capability_set(*raised, CAP_CLEAR);
	*raised = CAPABILITY_NONE;
}
