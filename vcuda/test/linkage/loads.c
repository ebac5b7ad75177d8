/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loads the client libraries as their names say, and asks what can be answered without a GPU. It is compiled for the C library whose
 * loader is tried, so it includes nothing of one.
 */

int printf(const char *, ...);
void *dlopen(const char *, int);
void *dlsym(void *, const char *);
char *dlerror(void);

enum { NOW = 2 };

static void *load(const char *name)
{
	void *library = dlopen(name, NOW);

	if (!library)
		printf("%s\n", dlerror());
	return library;
}

int main(void)
{
	void *cuda = load("libcuda.so.1"), *nvml = load("libnvidia-ml.so.1");
	int (*init)(unsigned), (*text)(int, const char **), (*nvml_init)(void), r;
	const char *(*nvml_text)(int), *said = "";

	if (!cuda || !nvml)
		return 1;
	*(void **)&init = dlsym(cuda, "cuInit");
	*(void **)&text = dlsym(cuda, "cuGetErrorString");
	*(void **)&nvml_init = dlsym(nvml, "nvmlInit_v2");
	*(void **)&nvml_text = dlsym(nvml, "nvmlErrorString");
	if (!init || !text || !nvml_init || !nvml_text)
		return 1;
	r = init(0);
	(void)text(r, &said);
	printf("cuInit: %d %s\n", r, said);
	r = nvml_init();
	printf("nvmlInit: %d %s\n", r, nvml_text(r));
	printf("loaded\n");
	return 0;
}
