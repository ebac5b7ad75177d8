/* SPDX-License-Identifier: Apache-2.0 */

/* Any other library of a driver: a real ELF file that says which one it is. Built once for each, with its NAME. */

__attribute__((visibility("default"))) const char *simulated_driver_library(void);

const char *simulated_driver_library(void)
{
	return NAME;
}
