/* SPDX-License-Identifier: Apache-2.0 */

/* Loads each library by name and says where the loader found it: `libcuda.so.1 => /usr/lib/wsl/lib/libcuda.so.1`. */

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		struct link_map *map = NULL;

		if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
			printf("%s => %s\n", argv[i], dlerror());
			failed = 1;
			continue;
		}
		printf("%s => %s\n", argv[i], map->l_name);
	}
	return failed;
}
