/* SPDX-License-Identifier: Apache-2.0 */

/*
 * unasked STEP…: a program of a container that has the driver take memory which nobody asks it for, in its primary context. Prints
 * for each step what it returned, and how much memory is left then: "step=result left". Steps:
 *
 *	left, wait                         nothing; nothing for two seconds
 *	context, context:GPU, end          another context, on the first GPU or that one, and its end
 *	alloc:BYTES                        what everybody does
 *	plain:BYTES, packed:BYTES          a module with an array, as text, and in a fat binary, compressed as the simulated driver reads it
 *	library:BYTES                      the same as a library
 *	unload                             of the last module or library
 *	local:BYTES                        a kernel with so much local memory runs
 *	stack:BYTES, heap:BYTES            a limit is set
 *	texture:BYTES                      an array of so many, in rows of 64 KiB
 *	streams:COUNT, graphs:COUNT        so many, as far as they can be had, and what refused the next one; drop: all are ended
 *	pieces:BYTES                       allocated in 4 KiB, of which all but every hundredth are freed
 *	thirds:COUNT                       so many allocations of a third of 2 MiB and a little, as far as they can be had
 */

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t handle;

#define FUNCTIONS(X)                                                                                       \
	X(cuInit, (unsigned))                                                                              \
	X(cuDevicePrimaryCtxRetain, (handle *, int))                                                       \
	X(cuCtxSetCurrent, (handle))                                                                       \
	X(cuCtxCreate_v2, (handle *, unsigned, int))                                                       \
	X(cuCtxDestroy_v2, (handle))                                                                       \
	X(cuCtxSetLimit, (int, size_t))                                                                    \
	X(cuArrayCreate_v2, (handle *, const void *))                                                      \
	X(cuCtxSynchronize, (void))                                                                        \
	X(cuMemGetInfo_v2, (size_t *, size_t *))                                                           \
	X(cuMemAlloc_v2, (handle *, size_t))                                                               \
	X(cuMemFree_v2, (handle))                                                                          \
	X(cuStreamCreate, (handle *, unsigned))                                                            \
	X(cuStreamDestroy_v2, (handle))                                                                    \
	X(cuGraphCreate, (handle *, unsigned))                                                             \
	X(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long))                             \
	X(cuGraphExecDestroy, (handle))                                                                    \
	X(cuModuleLoadData, (handle *, const void *))                                                      \
	X(cuModuleUnload, (handle))                                                                        \
	X(cuModuleGetFunction, (handle *, handle, const char *))                                           \
	X(cuLibraryLoadData, (handle *, const void *, void *, void *, unsigned, void *, void *, unsigned)) \
	X(cuLibraryUnload, (handle))                                                                       \
	X(cuLaunchKernel,                                                                                  \
	  (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **))

#define X(name, arguments) static int(*name) arguments;
FUNCTIONS(X)
#undef X

enum { TEXT_MAX = 1024, PART = 64, PACKED = 0x5a };

static handle primary, second, loaded;
static int is_library;

/* NVIDIA's: a header, and a part with a longer one, of which only these words count. */
struct fat {
	uint32_t magic;
	uint16_t version, header;
	uint64_t bytes;
	uint16_t kind, part_version;
	uint32_t part_header;
	uint64_t part_bytes;
	uint32_t compressed, words[9];
	uint64_t becomes;
	char text[TEXT_MAX];
};
_Static_assert(offsetof(struct fat, text) == 16 + PART, "two headers without gaps");

/* Local memory is used by what the compiler cannot know to be never true. */
static const char body[] =
	".reg .pred %p;\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\nmov.u32 %r1, %ctaid.x;\ncvt.u64.u32 %d1, %r1;\n"
	"mov.u64 %d2, room;\nadd.u64 %d3, %d2, %d1;\nst.local.u32 [%d3], %r1;\nxor.b32 %r2, %r1, 64;\n"
	"cvt.u64.u32 %d3, %r2;\nadd.u64 %d3, %d2, %d3;\nld.local.u32 %r3, [%d3];\nsetp.ne.u32 %p, %r1, 77777;\n"
	"@%p bra done;\nst.global.u32 [%d1], %r3;\ndone:\n";

static void write_text(char text[TEXT_MAX], unsigned long array, unsigned long local)
{
	char line[2][64] = {"", ""};

	if (array)
		(void)snprintf(line[0], sizeof(line[0]), ".visible .global .align 4 .b8 array[%lu];\n", array);
	if (local)
		(void)snprintf(line[1], sizeof(line[1]), ".local .align 4 .b8 room[%lu];\n", local);
	(void)snprintf(text, TEXT_MAX,
		       ".version 6.0\n.target sm_50\n.address_size 64\n%s.visible .entry nop()\n{\n%s%sret;\n}\n",
		       line[0], line[1], local ? body : "");
}

static const struct fat *write_fat(unsigned long array)
{
	static struct fat fat;
	uint32_t length;

	fat = (struct fat){
		.magic = 0xba55ed50, .version = 1, .header = 16, .kind = 1, .part_version = 0x101, .part_header = PART};
	write_text(fat.text, array, 0);
	length = (uint32_t)strlen(fat.text);
	for (uint32_t i = 0; i < length; i++)
		fat.text[i] ^= PACKED;
	fat.compressed = length;
	fat.part_bytes = fat.becomes = length;
	fat.bytes = PART + length;
	return &fat;
}

static int load(const void *image, int as_library)
{
	handle got = 0;
	const int r = as_library ? cuLibraryLoadData(&got, image, NULL, NULL, 0, NULL, NULL, 0)
				 : cuModuleLoadData(&got, image);

	if (r == 0) {
		loaded = got;
		is_library = as_library;
	}
	return r;
}

static int load_plain(unsigned long bytes)
{
	char text[TEXT_MAX];

	write_text(text, bytes, 0);
	return load(text, 0);
}

static int run_local(unsigned long bytes)
{
	handle module, function;
	char text[TEXT_MAX];
	int r;

	write_text(text, 0, bytes);
	r = cuModuleLoadData(&module, text);
	if (r == 0)
		r = cuModuleGetFunction(&function, module, "nop");
	if (r == 0)
		r = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, NULL, NULL);
	return r ? r : cuCtxSynchronize();
}

/* ---- many ---- */

static handle many[1 << 14];
static unsigned many_count;
static int are_streams;

static int make_many(unsigned long count, int streams)
{
	handle graph = 0;
	int r = streams ? 0 : cuGraphCreate(&graph, 0);

	are_streams = streams;
	for (many_count = 0; many_count < count && r == 0; many_count += r == 0)
		r = streams ? cuStreamCreate(&many[many_count], 1)
			    : cuGraphInstantiateWithFlags(&many[many_count], graph, 0);
	printf("# %u of them\n", many_count);
	return r;
}

static int drop_many(void)
{
	int r = 0;

	while (many_count > 0 && r == 0) {
		const handle last = many[--many_count];

		r = are_streams ? cuStreamDestroy_v2(last) : cuGraphExecDestroy(last);
	}
	return r;
}

static int scatter(unsigned long bytes)
{
	int r = 0;

	for (unsigned long i = 0; i < bytes / 4096 && r == 0; i++)
		r = cuMemAlloc_v2(&many[i], 4096);
	for (unsigned long i = 0; i < bytes / 4096 && r == 0; i++)
		if (i % 100)
			r = cuMemFree_v2(many[i]);
	return r;
}

/* Of these, two fit into a page. */
static int allocate_thirds(unsigned long count)
{
	unsigned long i = 0;
	int r = 0;

	for (; i < count && r == 0; i += r == 0)
		r = cuMemAlloc_v2(&many[i], (2 << 20) / 3 + 1);
	printf("# %lu of them\n", i);
	return r;
}

static int make_texture(unsigned long bytes)
{
	enum { U8 = 1 };
	const struct {
		size_t width, height;
		int format;
		unsigned channels;
	} what = {65536, bytes / 65536, U8, 1};
	handle array;

	return cuArrayCreate_v2(&array, &what);
}

static int begin_second(unsigned long device)
{
	const int r = cuCtxCreate_v2(&second, 0, (int)device);

	(void)cuCtxSetCurrent(primary);
	return r;
}

static int end_second(void)
{
	const int r = cuCtxDestroy_v2(second);

	(void)cuCtxSetCurrent(primary);
	return r;
}

static int take(const char *step)
{
	const unsigned long bytes = strchr(step, ':') ? strtoul(strchr(step, ':') + 1, NULL, 0) : 0;
	handle memory;

	if (strcmp(step, "left") == 0)
		return 0;
	if (strcmp(step, "wait") == 0)
		return (int)sleep(2);
	if (strcmp(step, "context") == 0 || strncmp(step, "context:", 8) == 0)
		return begin_second(bytes);
	if (strcmp(step, "end") == 0)
		return end_second();
	if (strncmp(step, "alloc:", 6) == 0)
		return cuMemAlloc_v2(&memory, bytes);
	if (strncmp(step, "plain:", 6) == 0)
		return load_plain(bytes);
	if (strncmp(step, "packed:", 7) == 0)
		return load(write_fat(bytes), 0);
	if (strncmp(step, "library:", 8) == 0)
		return load(write_fat(bytes), 1);
	if (strcmp(step, "unload") == 0)
		return is_library ? cuLibraryUnload(loaded) : cuModuleUnload(loaded);
	if (strncmp(step, "local:", 6) == 0)
		return run_local(bytes);
	if (strncmp(step, "streams:", 8) == 0 || strncmp(step, "graphs:", 7) == 0)
		return make_many(bytes, step[0] == 's');
	if (strcmp(step, "drop") == 0)
		return drop_many();
	if (strncmp(step, "pieces:", 7) == 0)
		return scatter(bytes);
	if (strncmp(step, "texture:", 8) == 0)
		return make_texture(bytes);
	if (strncmp(step, "thirds:", 7) == 0)
		return allocate_thirds(bytes);
	if (strncmp(step, "stack:", 6) == 0 || strncmp(step, "heap:", 5) == 0)
		return cuCtxSetLimit(step[0] == 's' ? 0 : 2, bytes);
	return -1;
}

static int begin(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int r;

#define X(name, arguments)                                        \
	if (!driver || !(*(void **)&name = dlsym(driver, #name))) \
		return -1;
	FUNCTIONS(X)
#undef X
	r = cuInit(0);
	if (r == 0)
		r = cuDevicePrimaryCtxRetain(&primary, 0);
	return r ? r : cuCtxSetCurrent(primary);
}

int main(int argc, char **argv)
{
	const int began = begin();

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (began)
		return printf("no context=%d\n", began) < 0;
	for (int i = 1; i < argc; i++) {
		const int r = take(argv[i]);
		size_t left = 0, total;

		(void)cuMemGetInfo_v2(&left, &total);
		printf("%s=%d %zu\n", argv[i], r, left);
	}
	return 0;
}
