/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/loaders.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/str.h"
#include "ctr-gpu-error.h"
#include "wsl/version.h"

const char *loaders_remedy(const char *file, bool wsl)
{
	if (wsl)
		return "Run wsl --shutdown in Windows; if that does not help, install the GPU's driver there again.";
	if (file && streq(file, "libdxcore.so"))
		return "Copy libdxcore.so, libd3d12.so and libd3d12core.so to it from "
		       "C:\\Program Files\\WSL\\lib of a Windows host.";
	return "Copy the whole directory from the host again: from DriverStore\\FileRepository, and "
	       "lxss\\lib for " PATH_WSL_LIB ".";
}

/* What only root may read, or a file system does not show now, is no reason to refuse: others may see it. */
static const char *loaders_defect(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT || errno == ELOOP || errno == ENOTDIR ? "is missing" : NULL;
	return S_ISREG(st.st_mode) && st.st_size > 0 ? NULL : "is empty";
}

int loaders_check(bool nvidia, struct err *err)
{
	static const struct {
		const char *name, *path, *who;
	} loaders[] = {
		{"libdxcore.so", PATH_WSL_LIB "/libdxcore.so", "no program finds a GPU"},
		{"libcuda.so.1", PATH_WSL_LIB "/libcuda.so.1", "no CUDA program finds a GPU"},
	};

	for (size_t i = 0; i < (nvidia ? 2 : 1); i++) {
		const char *defect = loaders_defect(loaders[i].path);

		if (defect)
			return err_set(err, CTR_GPU_E_DRIVER_LIBRARY, "%s %s, and without it %s\n%s", loaders[i].path,
				       defect, loaders[i].who,
				       loaders_remedy(loaders[i].name, wsl_version() != WSL_NONE));
	}
	return 0;
}
