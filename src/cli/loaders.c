/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/loaders.h"

#include "lib/backends.h"

#define LOADER_DECLARE(name) extern const struct backend_load loader_##name;
#define LOADER_ADDRESS(name) &loader_##name,
BACKENDS(LOADER_DECLARE)
static const struct backend_load *const loaders[] = {BACKENDS(LOADER_ADDRESS)};

int loaders_run(const struct load_options *options, bool apply, struct load *ret, struct err *err)
{
	_cleanup_load_ struct load all = {0};
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(loaders); i++) {
		_cleanup_load_ struct load load = {0};
		int r = loaders[i]->decide(options, &load, err);

		if (r == CTR_GPU_E_NO_DEVICE)
			continue;
		if (r == 0 && apply && loaders[i]->apply)
			r = loaders[i]->apply(options, &load, err);
		if (r == 0)
			r = load_merge(&all, &load);
		if (r != 0)
			return r;
		found = true;
	}
	if (!found)
		return CTR_GPU_E_NO_DEVICE;
	*ret = steal_struct(&all);
	return 0;
}
