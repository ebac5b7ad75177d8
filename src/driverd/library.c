/* SPDX-License-Identifier: Apache-2.0 */

#include "driverd/library.h"

#include <dlfcn.h>
#include <string.h>

#include "driverd/message.h"

bool library_load(const char *path, const struct library_symbol *symbols, struct driverd_reply *answer)
{
	void *library = path[0] == '/' ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;

	if (!library) {
		answer_failure(answer, DRIVERD_NOT_LOADED, "%s",
			       path[0] == '/' ? dlerror() : "its path is not absolute");
		return false;
	}
	for (; symbols->name; symbols++) {
		void *function = dlsym(library, symbols->name);

		if (!function && !symbols->optional) {
			answer_failure(answer, DRIVERD_NO_SYMBOLS, "it has no %s", symbols->name);
			return false;
		}
		memcpy(symbols->function, &function, sizeof(function));
	}
	return true;
}
