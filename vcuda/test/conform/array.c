/* SPDX-License-Identifier: Apache-2.0 */

/* Arrays, and textures and surfaces of them. */

#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { HOST = 1, DEVICE = 2, ARRAY = 3, WIDTH = 24, HEIGHT = 6, LAYERED = 1, SURFACE = 2 };
enum { CLAMP = 1, BORDER = 3, AS_INTEGER = 1 };

/* texel: element (x + tid.x, tid.y) of a texture; draw: value + 100 tid.y + tid.x to (tid.x, tid.y) of a surface. */
static const char kernels[] = ".version 6.0\n"
			      ".target sm_50\n"
			      ".address_size 64\n"
			      ".visible .entry texel(.param .u64 out, .param .u64 texture, .param .u32 first)\n"
			      "{\n"
			      "	.reg .b64 %o, %t, %p;\n"
			      "	.reg .b32 %x, %y, %w, %i, %f, %a, %b, %c, %d;\n"
			      "	ld.param.u64 %o, [out];\n"
			      "	ld.param.u64 %t, [texture];\n"
			      "	ld.param.u32 %f, [first];\n"
			      "	mov.u32 %x, %tid.x;\n"
			      "	mov.u32 %y, %tid.y;\n"
			      "	mov.u32 %w, %ntid.x;\n"
			      "	mad.lo.s32 %i, %y, %w, %x;\n"
			      "	mul.wide.u32 %p, %i, 4;\n"
			      "	add.s64 %p, %p, %o;\n"
			      "	add.s32 %x, %x, %f;\n"
			      "	tex.2d.v4.u32.s32 {%a, %b, %c, %d}, [%t, {%x, %y}];\n"
			      "	st.u32 [%p], %a;\n"
			      "	ret;\n"
			      "}\n"
			      ".visible .entry draw(.param .u64 surface, .param .u32 value)\n"
			      "{\n"
			      "	.reg .b64 %s;\n"
			      "	.reg .b32 %x, %y, %v;\n"
			      "	ld.param.u64 %s, [surface];\n"
			      "	ld.param.u32 %v, [value];\n"
			      "	mov.u32 %x, %tid.x;\n"
			      "	mov.u32 %y, %tid.y;\n"
			      "	add.u32 %v, %v, %x;\n"
			      "	mad.lo.s32 %v, %y, 100, %v;\n"
			      "	mul.lo.s32 %x, %x, 4;\n"
			      "	sust.b.2d.b32.trap [%s, {%x, %y}], {%v};\n"
			      "	ret;\n"
			      "}\n";

static CUfunction array_function(const char *name)
{
	static CUmodule own;
	CUfunction function = NULL;

	if ((!own && cu.cuModuleLoadData(&own, kernels)) || cu.cuModuleGetFunction(&function, own, name))
		got_text("(no kernel)");
	return function;
}

static CUarray array_of_words(size_t width, size_t height)
{
	const CUDA_ARRAY_DESCRIPTOR what = {width, height, CU_ARRAY_U32, 1};
	CUarray array = NULL;

	OK(cu.cuArrayCreate_v2(&array, &what));
	return array;
}

static CUDA_MEMCPY2D array_plane_in(CUarray array, const uint32_t *from)
{
	return (CUDA_MEMCPY2D){.src_type = HOST,
			       .src_host = from,
			       .src_pitch = (size_t)WIDTH * 4,
			       .dst_type = ARRAY,
			       .dst_array = array,
			       .width = (size_t)WIDTH * 4,
			       .height = HEIGHT};
}

/* Words that say where they are. */
static CUarray array_filled(void)
{
	CUarray array = array_of_words(WIDTH, HEIGHT);
	uint32_t words[WIDTH * HEIGHT];
	CUDA_MEMCPY2D copy = array_plane_in(array, words);

	for (unsigned i = 0; i < WIDTH * HEIGHT; i++)
		words[i] = i;
	OK(cu.cuMemcpy2D_v2(&copy));
	return array;
}

static void array_describe(void)
{
	const CUDA_ARRAY3D_DESCRIPTOR box = {16, 8, 4, CU_ARRAY_FLOAT, 4, 0},
				      layers = {16, 0, 3, CU_ARRAY_U8, 2, LAYERED};
	CUDA_ARRAY3D_DESCRIPTOR is = {0};
	CUDA_ARRAY_DESCRIPTOR plane = {0};
	CUarray array = array_of_words(WIDTH, HEIGHT);

	OK(cu.cuArrayGetDescriptor_v2(&plane, array));
	TRUE(plane.width == WIDTH && plane.height == HEIGHT && plane.format == CU_ARRAY_U32 && plane.channels == 1);
	OK(cu.cuArray3DGetDescriptor_v2(&is, array));
	TRUE(is.width == WIDTH && is.height == HEIGHT && is.depth == 0 && is.channels == 1);
	OK(cu.cuArrayDestroy(array));
	OK(cu.cuArray3DCreate_v2(&array, &box));
	OK(cu.cuArray3DGetDescriptor_v2(&is, array));
	TRUE(is.width == 16 && is.height == 8 && is.depth == 4 && is.format == CU_ARRAY_FLOAT && is.channels == 4);
	OK(cu.cuArrayDestroy(array));
	OK(cu.cuArray3DCreate_v2(&array, &layers));
	OK(cu.cuArray3DGetDescriptor_v2(&is, array));
	TRUE(is.height == 0 && is.depth == 3 && is.flags == LAYERED);
	OK(cu.cuArrayDestroy(array));
}

static void array_wrong(void)
{
	CUDA_ARRAY_DESCRIPTOR what = {0, 4, CU_ARRAY_U32, 1};
	CUarray array = NULL;

	IS(1, cu.cuArrayCreate_v2(&array, &what));
	what = (CUDA_ARRAY_DESCRIPTOR){16, 4, CU_ARRAY_U32, 3};
	IS(1, cu.cuArrayCreate_v2(&array, &what));
	what = (CUDA_ARRAY_DESCRIPTOR){16, 4, 0x77, 1};
	IS(1, cu.cuArrayCreate_v2(&array, &what));
	what = (CUDA_ARRAY_DESCRIPTOR){1 << 20, 4, CU_ARRAY_U32, 1};
	IS(1, cu.cuArrayCreate_v2(&array, &what));
	IS(1, cu.cuArrayCreate_v2(NULL, &what));
	IS(1, cu.cuArrayCreate_v2(&array, NULL));
	IS(400, cu.cuArrayDestroy(NULL));
	IS(400, cu.cuArrayGetDescriptor_v2(&what, NULL));
}

static void array_copy_plane(void)
{
	CUarray array = array_filled();
	uint32_t back[WIDTH * HEIGHT] = {0}, *pinned = check_pinned(4096);
	CUdeviceptr device = check_alloc(4096);
	CUDA_MEMCPY2D out = {.src_type = ARRAY,
			     .src_array = array,
			     .src_x = 8,
			     .src_y = 1,
			     .dst_type = HOST,
			     .dst_host = back,
			     .dst_pitch = 40,
			     .width = 40,
			     .height = 4};

	OK(cu.cuMemcpy2D_v2(&out));
	IS(WIDTH + 2, back[0]);
	IS(4 * WIDTH + 11, back[39]);
	IS(0, back[40]);
	out.dst_host = pinned;
	out.dst_pitch = 64;
	OK(cu.cuMemcpy2DAsync_v2(&out, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	IS(4 * WIDTH + 11, pinned[48 + 9]);
	IS(0, pinned[10]);
	out.dst_type = DEVICE;
	out.dst_device = device;
	OK(cu.cuMemcpy2DUnaligned_v2(&out));
	IS(2 * WIDTH + 2, check_word(device + 64));
	out.src_x = 60;
	IS(1, cu.cuMemcpy2D_v2(&out));
	out.src_x = 0;
	out.src_y = 3;
	IS(1, cu.cuMemcpy2D_v2(&out));
	out.src_array = NULL;
	NOTE(cu.cuMemcpy2D_v2(&out));
	OK(cu.cuMemFreeHost(pinned));
	OK(cu.cuMemFree_v2(device));
	OK(cu.cuArrayDestroy(array));
}

/* More than passes through at once, with gaps between rows. */
static void array_copy_large(void)
{
	enum { COLUMNS = 1500, ROWS = 2100, PITCH = 1511 };
	CUarray array = array_of_words(COLUMNS, ROWS);
	uint32_t *from = malloc((size_t)PITCH * ROWS * 4), *to = calloc((size_t)PITCH * ROWS, 4);
	CUDA_MEMCPY2D copy = {.src_type = HOST,
			      .src_host = from,
			      .src_pitch = PITCH * 4,
			      .dst_type = ARRAY,
			      .dst_array = array,
			      .width = COLUMNS * 4,
			      .height = ROWS};
	bool same = true;

	for (unsigned i = 0; i < PITCH * ROWS; i++)
		from[i] = i * 2654435761U;
	OK(cu.cuMemcpy2D_v2(&copy));
	copy = (CUDA_MEMCPY2D){.src_type = ARRAY,
			       .src_array = array,
			       .dst_type = HOST,
			       .dst_host = to,
			       .dst_pitch = PITCH * 4,
			       .width = COLUMNS * 4,
			       .height = ROWS};
	OK(cu.cuMemcpy2D_v2(&copy));
	for (size_t y = 0; y < ROWS; y++)
		same = same && memcmp(&from[y * PITCH], &to[y * PITCH], COLUMNS * 4) == 0 &&
		       to[y * PITCH + COLUMNS] == 0;
	TRUE(same);
	free(from);
	free(to);
	OK(cu.cuArrayDestroy(array));
}

static void array_copy_box(void)
{
	enum { X = 200, Y = 100, Z = 70 };
	const CUDA_ARRAY3D_DESCRIPTOR what = {X, Y, Z, CU_ARRAY_U32, 1, 0};
	CUarray array = NULL, other = NULL;
	uint32_t *from = malloc(X * Y * Z * 4), *to = calloc(X * Y * Z, 4);
	CUDA_MEMCPY3D copy = {.src_type = HOST,
			      .src_host = from,
			      .src_pitch = X * 4,
			      .src_height = Y,
			      .dst_type = ARRAY,
			      .width = X * 4,
			      .height = Y,
			      .depth = Z};

	for (unsigned i = 0; i < X * Y * Z; i++)
		from[i] = i;
	OK(cu.cuArray3DCreate_v2(&array, &what));
	OK(cu.cuArray3DCreate_v2(&other, &what));
	copy.dst_array = array;
	OK(cu.cuMemcpy3D_v2(&copy));
	copy = (CUDA_MEMCPY3D){.src_type = ARRAY,
			       .src_array = array,
			       .src_x = 4,
			       .src_y = 1,
			       .src_z = 2,
			       .dst_type = ARRAY,
			       .dst_array = other,
			       .width = (X - 1) * 4,
			       .height = Y - 1,
			       .depth = Z - 2};
	OK(cu.cuMemcpy3DAsync_v2(&copy, NULL));
	copy.src_context = copy.dst_context = context;
	OK(cu.cuMemcpy3DPeer(&copy));
	copy = (CUDA_MEMCPY3D){.src_type = ARRAY,
			       .src_array = other,
			       .dst_type = HOST,
			       .dst_host = to,
			       .dst_pitch = X * 4,
			       .dst_height = Y,
			       .width = X * 4,
			       .height = Y,
			       .depth = Z};
	OK(cu.cuMemcpy3D_v2(&copy));
	IS(2 * X * Y + X + 1, to[0]);
	IS((Z - 1) * X * Y + (Y - 1) * X + X - 1, to[(Z - 3) * X * Y + (Y - 2) * X + X - 2]);
	copy.src_z = 1;
	IS(1, cu.cuMemcpy3D_v2(&copy));
	free(from);
	free(to);
	OK(cu.cuArrayDestroy(array));
	OK(cu.cuArrayDestroy(other));
}

static void array_copy_lines(void)
{
	CUarray array = array_of_words(WIDTH, 0), other = array_of_words(WIDTH, 0);
	uint32_t words[WIDTH], *pinned = check_pinned(4096);
	CUdeviceptr device = check_alloc(4096);

	for (unsigned i = 0; i < WIDTH; i++)
		words[i] = 1000 + i;
	OK(cu.cuMemcpyHtoA_v2(array, 8, words, 64));
	OK(cu.cuMemcpyAtoA_v2(other, 0, array, 8, 64));
	OK(cu.cuMemcpyAtoD_v2(device, other, 4, 16));
	IS(1001, check_word(device));
	IS(1004, check_word(device + 12));
	OK(cu.cuMemsetD32_v2(device, 7, 8));
	OK(cu.cuMemcpyDtoA_v2(other, 4, device, 8));
	OK(cu.cuMemcpyAtoH_v2(words, other, 0, 64));
	IS(1000, words[0]);
	IS(7, words[2]);
	IS(1003, words[3]);
	OK(cu.cuMemcpyAtoHAsync_v2(pinned, other, 8, 8, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	IS(7, pinned[0]);
	pinned[0] = 5;
	OK(cu.cuMemcpyHtoAAsync_v2(other, 0, pinned, 4, NULL));
	OK(cu.cuMemcpyAtoH_v2(words, other, 0, 4));
	IS(5, words[0]);
	IS(1, cu.cuMemcpyAtoH_v2(words, other, 64, 64));
	OK(cu.cuMemFreeHost(pinned));
	OK(cu.cuMemFree_v2(device));
	OK(cu.cuArrayDestroy(array));
	OK(cu.cuArrayDestroy(other));
}

/* A node of a graph copies from it, and says so. */
static void array_in_graph(void)
{
	CUarray array = array_filled();
	CUdeviceptr device = check_alloc(4096);
	CUDA_MEMCPY3D copy = {.src_type = ARRAY,
			      .src_array = array,
			      .src_y = 2,
			      .dst_type = DEVICE,
			      .dst_device = device,
			      .dst_pitch = 64,
			      .dst_height = 1,
			      .width = 64,
			      .height = 1,
			      .depth = 1},
		      is = {0};
	CUgraphExec exec = NULL;
	CUgraphNode node = NULL;
	CUgraph graph = NULL;

	OK(cu.cuGraphCreate(&graph, 0));
	OK(cu.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
	OK(cu.cuGraphMemcpyNodeGetParams(node, &is));
	TRUE(is.src_type == ARRAY && is.src_array == array);
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(2 * WIDTH + 1, check_word(device + 4));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuMemFree_v2(device));
	OK(cu.cuArrayDestroy(array));
}

/* ---- textures ---- */

static CUDA_RESOURCE_DESC array_resource(CUarray array)
{
	return (CUDA_RESOURCE_DESC){.type = 0, .of = {.array = array}};
}

static CUtexObject array_texture(const CUDA_RESOURCE_DESC *resource, int address)
{
	const CUDA_TEXTURE_DESC how = {.address = {address, address, address}, .flags = AS_INTEGER};
	CUtexObject texture = 0;

	OK(cu.cuTexObjectCreate(&texture, resource, &how, NULL));
	return texture;
}

/* Four by two texels from (x, 0) on. */
static void array_read(CUtexObject texture, int x)
{
	CUdeviceptr out = check_alloc(4096);
	uint32_t words[8];

	OK(cu.cuLaunchKernel(array_function("texel"), 1, 1, 1, 4, 2, 1, 0, NULL, PARAMETERS(&out, &texture, &x), NULL));
	OK(cu.cuMemcpyDtoH_v2(words, out, sizeof(words)));
	for (int i = 0; i < 8; i++)
		NOTE(words[i]);
	OK(cu.cuMemFree_v2(out));
}

static void array_texture_of(void)
{
	CUarray array = array_filled();
	const CUDA_RESOURCE_DESC resource = array_resource(array);
	CUtexObject clamps = array_texture(&resource, CLAMP), ends = array_texture(&resource, BORDER);

	TRUE(clamps != ends);
	array_read(clamps, 3);
	array_read(clamps, WIDTH - 2);
	array_read(ends, WIDTH - 2);
	OK(cu.cuTexObjectDestroy(clamps));
	array_read(ends, -1);
	OK(cu.cuTexObjectDestroy(ends));
	OK(cu.cuArrayDestroy(array));
}

static void array_texture_memory(void)
{
	uint32_t words[64];
	CUdeviceptr device;
	CUDA_RESOURCE_DESC plane = {.type = 3, .of = {.memory = {0, CU_ARRAY_U32, 1, 8, 4, 0}}};
	CUtexObject texture;

	device = check_alloc(4096);
	for (unsigned i = 0; i < 64; i++)
		words[i] = 500 + i;
	OK(cu.cuMemcpyHtoD_v2(device, words, sizeof(words)));
	plane.of.memory.pointer = device;
	plane.of.memory.pitch = 128;
	texture = array_texture(&plane, CLAMP);
	array_read(texture, 1);
	OK(cu.cuTexObjectDestroy(texture));
	OK(cu.cuMemFree_v2(device));
}

static void array_texture_asked(void)
{
	CUarray array = array_filled();
	CUDA_RESOURCE_DESC resource = array_resource(array), is = {.type = 9};
	CUDA_RESOURCE_VIEW_DESC view = {.format = 0xd, .width = WIDTH, .height = HEIGHT}, seen = {0};
	CUDA_TEXTURE_DESC how = {.address = {CLAMP, BORDER, CLAMP}, .flags = AS_INTEGER}, was = {0};
	CUtexObject texture = 0;

	OK(cu.cuTexObjectCreate(&texture, &resource, &how, NULL));
	OK(cu.cuTexObjectGetResourceDesc(&is, texture));
	TRUE(is.type == 0 && is.of.array == array);
	OK(cu.cuTexObjectGetTextureDesc(&was, texture));
	TRUE(was.address[0] == CLAMP && was.address[1] == BORDER);
	NOTE(was.flags);
	NOTE(cu.cuTexObjectGetResourceViewDesc(&seen, texture));
	OK(cu.cuTexObjectDestroy(texture));
	NOTE(cu.cuTexObjectCreate(&texture, &resource, &how, &view));
	NOTE(cu.cuTexObjectGetResourceViewDesc(&seen, texture));
	NOTE(seen.format);
	NOTE(seen.width);
	OK(cu.cuTexObjectDestroy(texture));
	IS(1, cu.cuTexObjectCreate(NULL, &resource, &how, NULL));
	IS(1, cu.cuTexObjectCreate(&texture, NULL, &how, NULL));
	IS(1, cu.cuTexObjectCreate(&texture, &resource, NULL, NULL));
	resource.type = 7;
	IS(1, cu.cuTexObjectCreate(&texture, &resource, &how, NULL));
	OK(cu.cuArrayDestroy(array));
}

static void array_surface(void)
{
	const CUDA_ARRAY3D_DESCRIPTOR what = {WIDTH, HEIGHT, 0, CU_ARRAY_U32, 1, SURFACE};
	CUarray array = NULL;
	CUDA_RESOURCE_DESC resource, is = {0};
	CUsurfObject surface = 0;
	uint32_t value = 40, words[4] = {0};
	CUDA_MEMCPY2D out = {
		.src_type = ARRAY, .src_y = 2, .dst_type = HOST, .dst_host = words, .width = 16, .height = 1};

	OK(cu.cuArray3DCreate_v2(&array, &what));
	resource = array_resource(array);
	OK(cu.cuSurfObjectCreate(&surface, &resource));
	OK(cu.cuLaunchKernel(array_function("draw"), 1, 1, 1, 4, 3, 1, 0, NULL, PARAMETERS(&surface, &value), NULL));
	out.src_array = array;
	OK(cu.cuMemcpy2D_v2(&out));
	IS(240, words[0]);
	IS(243, words[3]);
	OK(cu.cuSurfObjectGetResourceDesc(&is, surface));
	TRUE(is.type == 0 && is.of.array == array);
	OK(cu.cuSurfObjectDestroy(surface));
	OK(cu.cuArrayDestroy(array));
}

static void array_levels(void)
{
	const CUDA_ARRAY3D_DESCRIPTOR what = {32, 16, 0, CU_ARRAY_U32, 1, 0};
	CUDA_RESOURCE_DESC resource = {.type = 1};
	CUmipmappedArray mipmap = NULL;
	CUDA_ARRAY_DESCRIPTOR is = {0};
	uint32_t words[4] = {9, 8, 7, 6};
	CUDA_MEMCPY2D in = {.src_type = HOST, .src_host = words, .dst_type = ARRAY, .width = 16, .height = 1};
	CUtexObject texture;
	CUarray level = NULL;

	OK(cu.cuMipmappedArrayCreate(&mipmap, &what, 3));
	OK(cu.cuMipmappedArrayGetLevel(&level, mipmap, 2));
	OK(cu.cuArrayGetDescriptor_v2(&is, level));
	TRUE(is.width == 8 && is.height == 4);
	IS(1, cu.cuMipmappedArrayGetLevel(&level, mipmap, 3));
	OK(cu.cuMipmappedArrayGetLevel(&level, mipmap, 0));
	in.dst_array = level;
	OK(cu.cuMemcpy2D_v2(&in));
	resource.of.mipmap = mipmap;
	texture = array_texture(&resource, CLAMP);
	array_read(texture, 0);
	OK(cu.cuTexObjectDestroy(texture));
	OK(cu.cuMipmappedArrayDestroy(mipmap));
	OK(cu.cuMipmappedArrayCreate(&mipmap, &what, 0));
	OK(cu.cuMipmappedArrayDestroy(mipmap));
	IS(1, cu.cuMipmappedArrayCreate(NULL, &what, 1));
}

/* Of arrays that are not made to be filled later, and have no planes. */
static void array_asked(void)
{
	const CUDA_ARRAY3D_DESCRIPTOR what = {32, 16, 0, CU_ARRAY_U32, 1, 0};
	CUDA_ARRAY_MEMORY_REQUIREMENTS requirements = {0};
	CUDA_ARRAY_SPARSE_PROPERTIES properties = {0};
	CUarray array = array_filled(), plane = NULL;
	CUmipmappedArray mipmap = NULL;

	OK(cu.cuMipmappedArrayCreate(&mipmap, &what, 2));
	NOTE(cu.cuArrayGetPlane(&plane, array, 0));
	NOTE(cu.cuArrayGetSparseProperties(&properties, array));
	NOTE(cu.cuMipmappedArrayGetSparseProperties(&properties, mipmap));
	NOTE(cu.cuArrayGetMemoryRequirements(&requirements, array, 0));
	NOTE(cu.cuMipmappedArrayGetMemoryRequirements(&requirements, mipmap, 0));
	OK(cu.cuMipmappedArrayDestroy(mipmap));
	OK(cu.cuArrayDestroy(array));
}

/* In elements: of an array its own, else bytes. */
static void array_boxes(void)
{
	CUarray array = array_of_words(WIDTH, HEIGHT);
	uint32_t *pinned = check_pinned(4096);
	CUdeviceptr device = check_alloc(4096);
	CUDA_MEMCPY3D_BATCH_OP boxes[2] = {{.width = 8, .height = 3, .depth = 1, .order = 1},
					   {.width = 4, .height = 2, .depth = 1, .order = 1}};
	CUstream stream = NULL;
	size_t failed = 7;

	OK(cu.cuStreamCreate(&stream, 1));
	for (uint32_t i = 0; i < 1024; i++)
		pinned[i] = i;
	boxes[0].from = (CUmemcpy3DOperand){.type = 1, .pointer = {(uintptr_t)pinned, 16, 0, {0, 0}}};
	boxes[0].to = (CUmemcpy3DOperand){.type = 2, .array = {array, 2, 1, 0}};
	boxes[1].from = (CUmemcpy3DOperand){.type = 2, .array = {array, 3, 2, 0}};
	boxes[1].to = (CUmemcpy3DOperand){.type = 1, .pointer = {device, 0, 0, {0, 0}}};
	OK(cu.cuMemcpy3DBatchAsync(1, boxes, &failed, 0, stream));
	OK(cu.cuStreamSynchronize(stream));
	OK(cu.cuMemcpy3DBatchAsync_v2(1, boxes + 1, 0, stream));
	OK(cu.cuStreamSynchronize(stream));
	IS(17, check_word(device));
	IS(20, check_word(device + 12));
	IS(33, check_word(device + 16));
	boxes[0].to = (CUmemcpy3DOperand){.type = 1, .pointer = {device + 1024, 0, 0, {0, 0}}};
	OK(cu.cuMemcpy3DBatchAsync_v2(1, boxes, 0, stream));
	OK(cu.cuStreamSynchronize(stream));
	IS(1, check_word(device + 1028));
	IS(4, check_word(device + 1024 + 8));
	IS(1, cu.cuMemcpy3DBatchAsync_v2(0, boxes, 0, stream));
	IS(1, cu.cuMemcpy3DBatchAsync_v2(1, NULL, 0, stream));
	NOTE(cu.cuMemcpy3DBatchAsync_v2(1, boxes, 1, stream));
	boxes[0].width = 0;
	NOTE(cu.cuMemcpy3DBatchAsync_v2(1, boxes, 0, stream));
	boxes[0].width = 8;
	boxes[0].from.type = 0;
	NOTE(cu.cuMemcpy3DBatchAsync_v2(1, boxes, 0, stream));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuArrayDestroy(array));
	OK(cu.cuMemFreeHost(pinned));
	OK(cu.cuMemFree_v2(device));
}

const struct check array_checks[] = {
	{"described as they were made", array_describe, false},
	{"made wrongly", array_wrong, false},
	{"copies of a plane", array_copy_plane, false},
	{"copies of a large plane", array_copy_large, false},
	{"copies of a box", array_copy_box, false},
	{"copies of lines", array_copy_lines, false},
	{"copied by a graph", array_in_graph, false},
	{"a texture, and what lies beside it", array_texture_of, false},
	{"a texture of device memory", array_texture_memory, false},
	{"a texture is asked what it is", array_texture_asked, false},
	{"a surface", array_surface, false},
	{"levels", array_levels, false},
	{"what is asked of others", array_asked, false},
	{"boxes, many at once", array_boxes, false},
	END,
};
