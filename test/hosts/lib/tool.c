/* SPDX-License-Identifier: Apache-2.0 */

/* A program of a driver that only says which one it is. */

#include <stdio.h>

int main(void)
{
	puts(NAME " (simulated)");
	return 0;
}
