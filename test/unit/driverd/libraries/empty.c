/* SPDX-License-Identifier: Apache-2.0 */

/* A library, but not this one. */

int something_else(void);
int something_else(void)
{
	return 0;
}
