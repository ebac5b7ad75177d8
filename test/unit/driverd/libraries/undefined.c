/* SPDX-License-Identifier: Apache-2.0 */

/* Cannot be loaded, since it wants something that nobody has. */

#include "fake.h"

extern int nobody_has_this;
int *wanted(void);
int *wanted(void)
{
	return &nobody_has_this;
}
