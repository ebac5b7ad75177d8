/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which GPU-PV host this is. For advice to a user alone: what is done never depends on it. */

enum wsl_version {
	WSL_NONE,
	WSL_1, /* Windows's own imitation of Linux, which has no devices */
	WSL_2,
};

enum wsl_version wsl_version(void);
