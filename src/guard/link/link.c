/* SPDX-License-Identifier: Apache-2.0 */

/* Links the guard's BPF objects into one, during the build: link OUTPUT OBJECT… */

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int link_fail(const char *path, int r)
{
	(void)fprintf(stderr, "link: %s: %s\n", path, strerror(-r));
	return 1;
}

int main(int argc, char **argv)
{
	struct bpf_linker *linker;
	int r = 0;

	if (argc < 3) {
		(void)fprintf(stderr, "usage: link OUTPUT OBJECT…\n");
		return 2;
	}
	linker = bpf_linker__new(argv[1], NULL);
	if (!linker)
		return link_fail(argv[1], -errno);
	for (int i = 2; i < argc && r == 0; i++) {
		r = bpf_linker__add_file(linker, argv[i], NULL);
		if (r < 0)
			(void)link_fail(argv[i], r);
	}
	if (r == 0) {
		r = bpf_linker__finalize(linker);
		if (r < 0)
			(void)link_fail(argv[1], r);
	}
	bpf_linker__free(linker);
	return r < 0;
}
