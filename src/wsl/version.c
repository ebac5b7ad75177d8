/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/version.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/paths.h"
#include "base/str.h"

/* WSL mounts the stores; in other guests they were copied to a directory. */
static bool wsl_version_is_mount(const char *path)
{
	struct statx stx;

	return statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, 0, &stx) == 0 &&
	       (stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) && (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* What WSL's own init makes in every distribution, whatever kernel its user built. */
static bool wsl_version_has_interop(void)
{
	struct stat st;

	return stat("/run/WSL", &st) == 0 || stat("/proc/sys/fs/binfmt_misc/WSLInterop", &st) == 0;
}

/* "4.4.0-19041-Microsoft" is WSL1, "5.15.153.1-microsoft-standard-WSL2" WSL2, whose users may run other kernels. */
enum wsl_version wsl_version(void)
{
	struct utsname name;

	if (uname(&name) == 0 && strstr(name.release, "-Microsoft"))
		return WSL_1;
	if (uname(&name) == 0 && (strcasestr(name.release, "microsoft") || strcasestr(name.release, "wsl2")))
		return WSL_2;
	return wsl_version_is_mount(PATH_WSL_DRIVERS) || wsl_version_has_interop() ? WSL_2 : WSL_NONE;
}
