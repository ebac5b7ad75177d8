/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Texture and surface references: variables of a module that a program binds to memory, as programs up to CUDA 11 do. The
 * driver crashes where an argument is NULL.
 */

#include "check.h"

enum { HOST = 1, ARRAY = 3, WIDTH = 24, HEIGHT = 6, WRAP = 0, CLAMP = 1, LINEAR = 1, OVERRIDE = 1, AS_INTEGER = 1 };

/* seen: element (x + tid.x, tid.y) of the texture; paint: value + 100 tid.y + tid.x to (tid.x, tid.y) of the surface. */
static const char kernels[] = ".version 6.0\n"
			      ".target sm_50\n"
			      ".address_size 64\n"
			      ".global .texref plane;\n"
			      ".global .texref line;\n"
			      ".global .surfref canvas;\n"
			      ".visible .entry seen(.param .u64 out, .param .u32 first)\n"
			      "{\n"
			      "	.reg .b64 %o, %p;\n"
			      "	.reg .b32 %x, %y, %w, %i, %f, %a, %b, %c, %d;\n"
			      "	ld.param.u64 %o, [out];\n"
			      "	ld.param.u32 %f, [first];\n"
			      "	mov.u32 %x, %tid.x;\n"
			      "	mov.u32 %y, %tid.y;\n"
			      "	mov.u32 %w, %ntid.x;\n"
			      "	mad.lo.s32 %i, %y, %w, %x;\n"
			      "	mul.wide.u32 %p, %i, 4;\n"
			      "	add.s64 %p, %p, %o;\n"
			      "	add.s32 %x, %x, %f;\n"
			      "	tex.2d.v4.u32.s32 {%a, %b, %c, %d}, [plane, {%x, %y}];\n"
			      "	st.u32 [%p], %a;\n"
			      "	ret;\n"
			      "}\n"
			      ".visible .entry walked(.param .u64 out, .param .u32 first)\n"
			      "{\n"
			      "	.reg .b64 %o, %p;\n"
			      "	.reg .b32 %x, %f, %a, %b, %c, %d;\n"
			      "	ld.param.u64 %o, [out];\n"
			      "	ld.param.u32 %f, [first];\n"
			      "	mov.u32 %x, %tid.x;\n"
			      "	mul.wide.u32 %p, %x, 4;\n"
			      "	add.s64 %p, %p, %o;\n"
			      "	add.s32 %x, %x, %f;\n"
			      "	tex.1d.v4.u32.s32 {%a, %b, %c, %d}, [line, {%x}];\n"
			      "	st.u32 [%p], %a;\n"
			      "	ret;\n"
			      "}\n"
			      ".visible .entry paint(.param .u32 value)\n"
			      "{\n"
			      "	.reg .b32 %x, %y, %v;\n"
			      "	ld.param.u32 %v, [value];\n"
			      "	mov.u32 %x, %tid.x;\n"
			      "	mov.u32 %y, %tid.y;\n"
			      "	add.u32 %v, %v, %x;\n"
			      "	mad.lo.s32 %v, %y, 100, %v;\n"
			      "	mul.lo.s32 %x, %x, 4;\n"
			      "	sust.b.2d.b32.trap [canvas, {%x, %y}], {%v};\n"
			      "	ret;\n"
			      "}\n";

static CUmodule own;

static CUtexref reference(const char *name)
{
	CUtexref ref = NULL;

	if (!own && cu.cuModuleLoadData(&own, kernels))
		got_text("(no module)");
	OK(cu.cuModuleGetTexRef(&ref, own, name));
	return ref;
}

static CUsurfref reference_surface(void)
{
	CUsurfref ref = NULL;

	if (!own && cu.cuModuleLoadData(&own, kernels))
		got_text("(no module)");
	OK(cu.cuModuleGetSurfRef(&ref, own, "canvas"));
	return ref;
}

static CUarray reference_array(unsigned flags, uint32_t first)
{
	const CUDA_ARRAY3D_DESCRIPTOR what = {WIDTH, HEIGHT, 0, CU_ARRAY_U32, 1, flags};
	uint32_t words[WIDTH * HEIGHT];
	CUDA_MEMCPY2D copy = {.src_type = HOST,
			      .src_host = words,
			      .src_pitch = (size_t)WIDTH * 4,
			      .dst_type = ARRAY,
			      .width = (size_t)WIDTH * 4,
			      .height = HEIGHT};
	CUarray array = NULL;

	for (unsigned i = 0; i < WIDTH * HEIGHT; i++)
		words[i] = first + i;
	OK(cu.cuArray3DCreate_v2(&array, &what));
	copy.dst_array = array;
	OK(cu.cuMemcpy2D_v2(&copy));
	return array;
}

/* What a kernel reads from (x, 0) on: four by @rows. */
static void reference_read(const char *kernel, int x, unsigned rows)
{
	CUdeviceptr out = check_alloc(4096);
	CUfunction function = NULL;
	uint32_t words[8] = {0};

	OK(cu.cuModuleGetFunction(&function, own, kernel));
	OK(cu.cuLaunchKernel(function, 1, 1, 1, 4, rows, 1, 0, NULL, PARAMETERS(&out, &x), NULL));
	OK(cu.cuMemcpyDtoH_v2(words, out, sizeof(words)));
	for (unsigned i = 0; i < 4 * rows; i++)
		NOTE(words[i]);
	OK(cu.cuMemFree_v2(out));
}

static void reference_named(void)
{
	CUtexref ref = reference("plane"), again = reference("plane"), line = reference("line");
	CUsurfref surface = reference_surface();

	TRUE(ref == again && ref != line);
	IS(500, cu.cuModuleGetTexRef(&ref, own, "none"));
	NOTE(cu.cuModuleGetTexRef(&ref, own, "canvas"));
	NOTE(cu.cuModuleGetSurfRef(&surface, own, "plane"));
	IS(500, cu.cuModuleGetSurfRef(&surface, own, "none"));
	IS(1, cu.cuModuleGetTexRef(NULL, own, "plane"));
	IS(1, cu.cuModuleGetTexRef(&ref, own, NULL));
	IS(400, cu.cuModuleGetTexRef(&ref, NULL, "plane"));
	IS(400, cu.cuModuleGetSurfRef(&surface, NULL, "canvas"));
}

static void reference_of_array(void)
{
	CUarray array = reference_array(0, 0), other = reference_array(0, 1000), is = NULL;
	CUtexref ref = reference("plane");

	OK(cu.cuTexRefSetArray(ref, array, OVERRIDE));
	OK(cu.cuTexRefSetAddressMode(ref, 0, CLAMP));
	OK(cu.cuTexRefSetAddressMode(ref, 1, CLAMP));
	OK(cu.cuTexRefSetFlags(ref, AS_INTEGER));
	OK(cu.cuTexRefGetArray(&is, ref));
	TRUE(is == array);
	reference_read("seen", 3, 2);
	OK(cu.cuTexRefSetArray(ref, other, OVERRIDE));
	OK(cu.cuTexRefGetArray(&is, ref));
	TRUE(is == other);
	reference_read("seen", 5, 2);
	NOTE(cu.cuTexRefSetArray(ref, array, 0));
	OK(cu.cuArrayDestroy(array));
	OK(cu.cuArrayDestroy(other));
}

static void reference_note_new(CUtexref ref)
{
	float color[4] = {-1, -1, -1, -1}, least = -1, most = -1;
	int value = -1, channels = -1;
	unsigned flags = 99;

	NOTE(cu.cuTexRefGetFormat(&value, &channels, ref));
	NOTE(value);
	NOTE(channels);
	OK(cu.cuTexRefGetAddressMode(&value, ref, 0));
	NOTE(value);
	OK(cu.cuTexRefGetFilterMode(&value, ref));
	NOTE(value);
	OK(cu.cuTexRefGetMipmapFilterMode(&value, ref));
	NOTE(value);
	OK(cu.cuTexRefGetMipmapLevelBias(&least, ref));
	NOTE(least * 100);
	OK(cu.cuTexRefGetMipmapLevelClamp(&least, &most, ref));
	NOTE(least * 100);
	NOTE(most * 100);
	OK(cu.cuTexRefGetMaxAnisotropy(&value, ref));
	NOTE(value);
	OK(cu.cuTexRefGetBorderColor(color, ref));
	NOTE(color[0] * 100);
	NOTE(color[3] * 100);
	OK(cu.cuTexRefGetFlags(&flags, ref));
	NOTE(flags);
}

static void reference_set_all(CUtexref ref)
{
	float color[4] = {0.25F, 0.5F, 0.75F, 1};

	OK(cu.cuTexRefSetFormat(ref, CU_ARRAY_FLOAT, 4));
	OK(cu.cuTexRefSetAddressMode(ref, 0, CLAMP));
	OK(cu.cuTexRefSetAddressMode(ref, 2, CLAMP));
	OK(cu.cuTexRefSetFilterMode(ref, LINEAR));
	OK(cu.cuTexRefSetMipmapFilterMode(ref, LINEAR));
	OK(cu.cuTexRefSetMipmapLevelBias(ref, 0.5F));
	OK(cu.cuTexRefSetMipmapLevelClamp(ref, 0.25F, 3));
	OK(cu.cuTexRefSetMaxAnisotropy(ref, 8));
	OK(cu.cuTexRefSetBorderColor(ref, color));
	OK(cu.cuTexRefSetFlags(ref, AS_INTEGER));
}

/* What a new one has, and what was said of it. */
static void reference_asked(void)
{
	float color[4] = {-1, -1, -1, -1}, least = -1, most = -1;
	int value = -1, channels = -1;
	unsigned flags = 99;
	CUtexref ref = NULL;

	OK(cu.cuTexRefCreate(&ref));
	reference_note_new(ref);
	reference_set_all(ref);
	OK(cu.cuTexRefGetFormat(&value, &channels, ref));
	NOTE(value);
	NOTE(channels);
	OK(cu.cuTexRefGetAddressMode(&value, ref, 0));
	IS(CLAMP, value);
	OK(cu.cuTexRefGetAddressMode(&value, ref, 1));
	NOTE(value);
	OK(cu.cuTexRefGetAddressMode(&value, ref, 2));
	IS(CLAMP, value);
	OK(cu.cuTexRefGetFilterMode(&value, ref));
	IS(LINEAR, value);
	OK(cu.cuTexRefGetMipmapFilterMode(&value, ref));
	IS(LINEAR, value);
	OK(cu.cuTexRefGetMipmapLevelBias(&least, ref));
	IS(50, (int)(least * 100));
	OK(cu.cuTexRefGetMipmapLevelClamp(&least, &most, ref));
	IS(25, (int)(least * 100));
	IS(300, (int)(most * 100));
	OK(cu.cuTexRefGetMaxAnisotropy(&value, ref));
	IS(8, value);
	OK(cu.cuTexRefGetBorderColor(color, ref));
	IS(25, (int)(color[0] * 100));
	IS(75, (int)(color[2] * 100));
	OK(cu.cuTexRefGetFlags(&flags, ref));
	IS(AS_INTEGER, flags);
	OK(cu.cuTexRefDestroy(ref));
}

static void reference_wrong(void)
{
	CUtexref ref = NULL;
	CUarray array = NULL;
	CUmipmappedArray mipmap = NULL;
	CUdeviceptr at = 0;
	int value = 0;

	OK(cu.cuTexRefCreate(&ref));
	NOTE(cu.cuTexRefSetFormat(ref, 0x77, 1));
	NOTE(cu.cuTexRefSetFormat(ref, CU_ARRAY_U32, 3));
	NOTE(cu.cuTexRefSetAddressMode(ref, 3, CLAMP));
	NOTE(cu.cuTexRefSetAddressMode(ref, 0, 9));
	NOTE(cu.cuTexRefSetFilterMode(ref, 9));
	NOTE(cu.cuTexRefSetMaxAnisotropy(ref, 99));
	NOTE(cu.cuTexRefSetFlags(ref, 0x4000));
	NOTE(cu.cuTexRefGetArray(&array, ref));
	NOTE(cu.cuTexRefGetMipmappedArray(&mipmap, ref));
	NOTE(cu.cuTexRefGetAddress_v2(&at, ref));
	NOTE(cu.cuTexRefGetAddressMode(&value, ref, 7));
	OK(cu.cuTexRefDestroy(ref));
}

static void reference_of_memory(void)
{
	const CUDA_ARRAY_DESCRIPTOR what = {8, 4, CU_ARRAY_U32, 1};
	CUtexref line = reference("line"), plane = reference("plane");
	uint32_t words[256];
	CUdeviceptr device, is = 0;
	CUarray array = NULL;
	size_t offset = 99;

	for (unsigned i = 0; i < 256; i++)
		words[i] = 500 + i;
	device = check_words(words, 256);
	OK(cu.cuTexRefSetFormat(line, CU_ARRAY_U32, 1));
	OK(cu.cuTexRefSetFlags(line, AS_INTEGER));
	OK(cu.cuTexRefSetAddress_v2(&offset, line, device, 1024));
	IS(0, (long long)offset);
	OK(cu.cuTexRefGetAddress_v2(&is, line));
	TRUE(is == device);
	NOTE(cu.cuTexRefGetArray(&array, line));
	reference_read("walked", 3, 1);
	NOTE(cu.cuTexRefSetAddress_v2(&offset, line, device + 16, 512));
	NOTE(offset);
	reference_read("walked", 3, 1);
	NOTE(cu.cuTexRefSetAddress_v2(NULL, line, device + 16, 512));
	NOTE(cu.cuTexRefSetAddress_v2(NULL, line, device, 512));
	OK(cu.cuTexRefSetFlags(plane, AS_INTEGER));
	OK(cu.cuTexRefSetAddress2D_v3(plane, &what, device, 128));
	reference_read("seen", 1, 2);
	OK(cu.cuTexRefSetAddress2D_v2(plane, &what, device, 256));
	reference_read("seen", 1, 2);
	OK(cu.cuTexRefGetAddress_v2(&is, plane));
	TRUE(is == device);
	NOTE(cu.cuTexRefSetAddress2D_v3(plane, &what, device + 4, 128));
	NOTE(cu.cuTexRefSetAddress2D_v3(plane, &what, device, 100));
	NOTE(cu.cuTexRefSetAddress_v2(NULL, line, 0, 0));
	OK(cu.cuMemFree_v2(device));
}

static void reference_of_levels(void)
{
	const CUDA_ARRAY3D_DESCRIPTOR what = {32, 16, 0, CU_ARRAY_U32, 1, 0};
	CUmipmappedArray mipmap = NULL, is = NULL;
	CUarray level = NULL, array = NULL;
	CUtexref ref = reference("plane");

	OK(cu.cuMipmappedArrayCreate(&mipmap, &what, 3));
	OK(cu.cuTexRefSetMipmappedArray(ref, mipmap, OVERRIDE));
	OK(cu.cuTexRefGetMipmappedArray(&is, ref));
	TRUE(is == mipmap);
	NOTE(cu.cuTexRefGetArray(&array, ref));
	OK(cu.cuMipmappedArrayGetLevel(&level, mipmap, 1));
	OK(cu.cuTexRefSetArray(ref, level, OVERRIDE));
	OK(cu.cuTexRefGetArray(&array, ref));
	TRUE(array == level);
	NOTE(cu.cuTexRefGetMipmappedArray(&is, ref));
	OK(cu.cuMipmappedArrayDestroy(mipmap));
}

static void reference_of_surface(void)
{
	enum { SURFACE = 2, VALUE = 7 };
	CUsurfref ref = reference_surface();
	CUarray array = reference_array(SURFACE, 0), plain = reference_array(0, 0), is = NULL;
	CUdeviceptr device = check_alloc(4096);
	CUfunction function = NULL;
	uint32_t value = VALUE;

	NOTE(cu.cuSurfRefGetArray(&is, ref));
	OK(cu.cuSurfRefSetArray(ref, array, 0));
	OK(cu.cuSurfRefGetArray(&is, ref));
	TRUE(is == array);
	OK(cu.cuModuleGetFunction(&function, own, "paint"));
	OK(cu.cuLaunchKernel(function, 1, 1, 1, 4, 2, 1, 0, NULL, PARAMETERS(&value), NULL));
	OK(cu.cuMemcpyAtoD_v2(device, array, 0, 32));
	IS(VALUE, check_word(device));
	IS(VALUE + 3, check_word(device + 12));
	IS(4, check_word(device + 16));
	NOTE(cu.cuSurfRefSetArray(ref, array, 1));
	NOTE(cu.cuSurfRefSetArray(ref, plain, 0));
	OK(cu.cuMemFree_v2(device));
	OK(cu.cuArrayDestroy(plain));
	OK(cu.cuArrayDestroy(array));
}

/* Of a module, whose end is theirs, and of the program's. */
static void reference_ends(void)
{
	CUarray array = reference_array(0, 0), is = NULL;
	CUtexref ref = NULL, made = NULL;
	CUmodule mine = NULL;

	OK(cu.cuModuleLoadData(&mine, kernels));
	OK(cu.cuModuleGetTexRef(&ref, mine, "plane"));
	OK(cu.cuTexRefSetArray(ref, array, OVERRIDE));
	OK(cu.cuTexRefCreate(&made));
	OK(cu.cuTexRefSetArray(made, array, OVERRIDE));
	OK(cu.cuTexRefGetArray(&is, made));
	TRUE(is == array);
	OK(cu.cuTexRefDestroy(made));
	OK(cu.cuModuleUnload(mine));
	OK(cu.cuArrayDestroy(array));
}

/* While a reference has it. */
static void reference_loses_array(void)
{
	CUarray array = reference_array(0, 0), other = reference_array(0, 2000), is = NULL;
	CUtexref ref = reference("plane");

	OK(cu.cuTexRefSetArray(ref, array, OVERRIDE));
	OK(cu.cuTexRefSetFlags(ref, AS_INTEGER));
	OK(cu.cuArrayDestroy(array));
	OK(cu.cuTexRefSetArray(ref, other, OVERRIDE));
	OK(cu.cuTexRefGetArray(&is, ref));
	TRUE(is == other);
	reference_read("seen", 3, 2);
	OK(cu.cuModuleUnload(own));
	own = NULL;
	OK(cu.cuArrayDestroy(other));
}

const struct check reference_checks[] = {
	{"found by their names", reference_named, false},
	{"a texture of an array", reference_of_array, false},
	{"what was said of one", reference_asked, false},
	{"said wrongly", reference_wrong, false},
	{"a texture of device memory", reference_of_memory, false},
	{"a texture of levels", reference_of_levels, false},
	{"a surface", reference_of_surface, false},
	{"their end", reference_ends, false},
	{"an array that ends before", reference_loses_array, true},
	END,
};
