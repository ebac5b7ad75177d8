/* SPDX-License-Identifier: Apache-2.0 */

/* Code: the compiler of the driver, what its functions take, and launches. */

#include "vcuda/server/code.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

enum { CODE_LEVEL = 4096 };

/* ---- images ---- */

enum code_option { OPTION_WALL_TIME = 2, OPTION_INFO, OPTION_INFO_BYTES, OPTION_ERROR, OPTION_ERROR_BYTES };

CUresult code_read_options(struct request *q, unsigned more, struct code_options *options, struct code_answer *answer)
{
	const uint64_t count = q->argument[2];
	CUresult r = count > CODE_OPTIONS ? CUDA_ERROR_INVALID_VALUE : request_words(q, 3 + 2 * (unsigned)count + more);

	if (r)
		return r;
	memset(answer, 0, sizeof(*answer));
	options->count = 0;
	for (unsigned i = 0; i < count; i++) {
		const uint64_t name = q->argument[3 + 2 * i];

		if (!wire_is_jit_number(name))
			return CUDA_ERROR_INVALID_VALUE;
		options->name[options->count] = (CUjit_option)name;
		options->value[options->count++] = (void *)q->argument[4 + 2 * i];
	}
	options->name[options->count] = OPTION_INFO;
	options->value[options->count++] = answer->info;
	options->name[options->count] = OPTION_INFO_BYTES;
	options->value[options->count++] = (void *)(uintptr_t)sizeof(answer->info);
	options->name[options->count] = OPTION_ERROR;
	options->value[options->count++] = answer->error;
	options->name[options->count] = OPTION_ERROR_BYTES;
	options->value[options->count++] = (void *)(uintptr_t)sizeof(answer->error);
	return CUDA_SUCCESS;
}

CUresult code_reply(struct request *q, CUresult r, const struct code_options *options, struct code_answer *answer)
{
	/* Where the lengths went in, those of the logs come out. */
	answer->info_bytes = (uint32_t)(uintptr_t)options->value[options->count - 3];
	answer->error_bytes = (uint32_t)(uintptr_t)options->value[options->count - 1];
	if (answer->info_bytes > sizeof(answer->info))
		answer->info_bytes = sizeof(answer->info);
	if (answer->error_bytes > sizeof(answer->error))
		answer->error_bytes = sizeof(answer->error);
	q->reply_bytes = 0;
	request_reply(q, answer, sizeof(*answer));
	return r;
}

const void *code_image(const struct request *q)
{
	const void *image = request_upload(q, q->argument[0]);

	if (!image || !image_is_whole(image, q->argument[0]))
		return NULL;
	print_note_image(image, q->argument[0]);
	return image;
}

/* What the driver takes of the device for an image besides its code, as far as that can be read. */
static CUresult code_take_globals(const struct request *q, const void *image, uint64_t *ret)
{
	const uint64_t bytes = image_count_globals(image, q->argument[0]);

	if (bytes && !allocation_take(bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = bytes;
	return CUDA_SUCCESS;
}

/* What was in an image that cannot be read, the driver has taken by now, too. Return: CUDA_ERROR_OUT_OF_MEMORY. */
static CUresult code_count_loaded(uint64_t real, CUresult (*unload)(uint64_t real))
{
	if (driver_memory_fits())
		return CUDA_SUCCESS;
	(void)unload(real);
	(void)driver_memory_count();
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* @handle: 0 if the image was not loaded */
static void code_note_globals(uint64_t handle, uint64_t bytes, uint64_t context)
{
	if (bytes && (!handle || !quota_note(QUOTA_GLOBALS, handle, bytes, context)))
		quota_give(bytes);
	if (handle)
		driver_memory_note(QUOTA_GLOBALS, handle, UINT64_MAX, context);
}

/*
 * The driver allocates the arrays of a library in a context when something of it is first used there. That is too late
 * to refuse the client. So it is done at once, for each library in each context. If it fails, the call that first uses
 * the library there returns the error.
 */
static void code_load_library(uint64_t real)
{
	CUmodule module;

	if (driver.cuLibraryGetModule)
		(void)driver.cuLibraryGetModule(&module, real);
}

void code_load_libraries(void)
{
	struct object_ref hold;
	uint32_t place = 0;

	while (quota_is_limited() && handle_take_next(WIRE_LIBRARY, 0, &place, &hold)) {
		code_load_library(hold.real);
		object_ref_let_go(hold);
	}
}

static void code_load_in_contexts(uint64_t library)
{
	struct object_ref hold;
	uint32_t place = 0;
	CUcontext popped;

	while (quota_is_limited() && handle_take_next(WIRE_CONTEXT, 0, &place, &hold)) {
		if (!driver.cuCtxPushCurrent_v2(hold.real)) {
			code_load_library(library);
			(void)driver.cuCtxPopCurrent_v2(&popped);
		}
		object_ref_let_go(hold);
	}
}

/* A context that was found only after the library was loaded in the others, but before it has a handle, lacks it. */
static void code_load_again(uint64_t handle)
{
	struct object_ref hold;

	if (!quota_is_limited() || !handle_take(handle, &hold))
		return;
	code_load_in_contexts(hold.real);
	driver_memory_set_dirty();
	object_ref_let_go(hold);
}

CUresult serve_cuModuleLoadDataEx(struct request *q)
{
	struct code_options options;
	struct code_answer answer;
	CUresult r = code_read_options(q, 0, &options, &answer);
	const void *image = r ? NULL : code_image(q);
	uint64_t globals = 0;
	CUmodule module = 0;

	lane_leave(q);
	if (image)
		r = code_take_globals(q, image, &globals);
	if (image && !r)
		r = driver.cuModuleLoadDataEx(&module, image, options.count, options.name, options.value);
	request_end_upload(q);
	if (!image)
		return r ? r : CUDA_ERROR_INVALID_IMAGE;
	if (!r)
		r = code_count_loaded(module, driver.cuModuleUnload);
	if (!r)
		answer.handle = handle_make(WIRE_MODULE, module, 0, q->header.context);
	code_note_globals(answer.handle, globals, q->header.context);
	return code_reply(q, r, &options, &answer);
}

CUresult serve_cuLibraryLoadData(struct request *q)
{
	struct code_options options;
	struct code_answer answer;
	CUresult r = code_read_options(q, 0, &options, &answer);
	const void *image = r || !driver.cuLibraryLoadData ? NULL : code_image(q);
	uint64_t globals = 0;
	CUlibrary library = 0;

	lane_leave(q);
	if (image)
		r = code_take_globals(q, image, &globals);
	if (image && !r)
		r = driver.cuLibraryLoadData(&library, image, options.name, options.value, options.count, NULL, NULL,
					     0);
	request_end_upload(q);
	if (!image)
		return r ? r : CUDA_ERROR_INVALID_IMAGE;
	if (!r) {
		code_load_in_contexts(library);
		r = code_count_loaded(library, driver.cuLibraryUnload);
	}
	if (!r)
		answer.handle = handle_make(WIRE_LIBRARY, library, 0, 0);
	code_load_again(answer.handle);
	code_note_globals(answer.handle, globals, 0);
	return code_reply(q, r, &options, &answer);
}

/* ---- functions ---- */

struct code_function {
	uint64_t handle, context; /* in which its local memory is counted */
	struct wire_function info;
};
static struct code_function **functions[CODE_LEVEL];

static CUresult code_ask_attribute(uint64_t handle, uint64_t real, int attribute, int *value)
{
	CUdevice device = 0;

	if (wire_handle_type(handle) != WIRE_KERNEL)
		return driver.cuFuncGetAttribute(value, attribute, real);
	if (driver.cuCtxGetDevice(&device) || !driver.cuKernelGetAttribute)
		return CUDA_ERROR_INVALID_CONTEXT;
	return driver.cuKernelGetAttribute(value, attribute, real, device);
}

static CUresult code_ask_parameters(uint64_t handle, uint64_t real, struct wire_function *info)
{
	CUresult (*ask)(uint64_t, size_t, size_t *, size_t *) =
		wire_handle_type(handle) == WIRE_KERNEL ? driver.cuKernelGetParamInfo : driver.cuFuncGetParamInfo;
	size_t offset, bytes;

	if (!ask)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* Past the last one it is an invalid value. */
	for (; ask(real, info->parameters, &offset, &bytes) == CUDA_SUCCESS; info->parameters++) {
		if (info->parameters == WIRE_PARAMETERS || offset > UINT16_MAX || bytes > UINT16_MAX)
			return CUDA_ERROR_NOT_SUPPORTED;
		info->parameter[info->parameters].offset = (uint16_t)offset;
		info->parameter[info->parameters].size = (uint16_t)bytes;
		if (offset + bytes > info->bytes)
			info->bytes = (uint32_t)(offset + bytes);
	}
	return CUDA_SUCCESS;
}

static CUresult code_ask(uint64_t handle, uint64_t real, struct wire_function *info)
{
	CUresult r = code_ask_parameters(handle, real, info);

	for (int i = 0; i < WIRE_FUNCTION_ATTRIBUTES && !r; i++) {
		CUresult known = code_ask_attribute(handle, real, i, &info->attribute[i]);

		/* Newer attributes than the driver's. */
		if (i == 0)
			r = known;
	}
	return r;
}

/* Return: NULL if it is to be asked for. */
static inline struct code_function *code_known(uint64_t handle)
{
	const uint32_t index = wire_handle_index(handle);
	struct code_function *const *level = functions[index / CODE_LEVEL];
	struct code_function *function = level ? level[index % CODE_LEVEL] : NULL;

	return function && function->handle == handle ? function : NULL;
}

static struct code_function **code_place(uint64_t handle)
{
	const uint32_t index = wire_handle_index(handle);
	struct code_function ***level = &functions[index / CODE_LEVEL];

	if (!*level)
		*level = calloc(CODE_LEVEL, sizeof(**level));
	return *level ? *level + index % CODE_LEVEL : NULL;
}

/* Where there was none, it counts as the container's memory on the host, as long as the process is there. */
static CUresult code_learn(uint64_t handle, uint64_t real, struct code_function **ret)
{
	struct code_function **place = code_place(handle), *function;
	CUresult r;

	if (!place || (!*place && !quota_lock(sizeof(*function))))
		return CUDA_ERROR_OUT_OF_MEMORY;
	function = calloc(1, sizeof(*function));
	r = function ? code_ask(handle, real, &function->info) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		if (!*place)
			quota_unlock(sizeof(*function));
		free(function);
		return r;
	}
	function->handle = handle;
	free(*place);
	*place = *ret = function;
	/* What has to do with it is loaded by now, or will be when it runs. */
	driver_memory_set_dirty();
	return CUDA_SUCCESS;
}

/* The driver takes local memory for all threads that can be there at once when a kernel first needs it. */
static CUresult code_take_local(struct code_function *function, uint64_t context)
{
	enum { LOCAL_BYTES = 3 };
	const int each = function->info.attribute[LOCAL_BYTES];
	CUresult r = context_limits_take_stacks(each > 0 ? (uint64_t)each : 0, context);

	if (!r)
		function->context = context;
	return r;
}

/* Asks the driver, once for each function. */
static CUresult code_function(uint64_t handle, uint64_t real, struct code_function **ret)
{
	*ret = code_known(handle);
	return *ret ? CUDA_SUCCESS : code_learn(handle, real, ret);
}

/* A kernel is to run for the first time, or for the first time in this context. */
static __attribute__((cold)) CUresult code_prepare(const struct request *q, uint64_t handle, uint64_t real,
						   const struct wire_function **ret)
{
	struct code_function *function;
	CUresult r = code_function(handle, real, &function);

	if (!r)
		r = code_take_local(function, q->header.context);
	if (!r)
		*ret = &function->info;
	return r;
}

/* For a kernel that is to run. */
static inline CUresult code_runs(const struct request *q, uint64_t handle, uint64_t real,
				 const struct wire_function **ret)
{
	const struct code_function *function = code_known(handle);

	if (!function || function->context != q->header.context)
		return code_prepare(q, handle, real, ret);
	*ret = &function->info;
	return CUDA_SUCCESS;
}

CUresult serve_wire_function(struct request *q)
{
	struct code_function *function;
	CUresult r = request_words(q, 1);
	uint64_t real = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_FUNC, &real);
	if (!r)
		r = code_learn(q->argument[0], real, &function);
	if (!r)
		request_reply(q, &function->info, sizeof(function->info));
	return r;
}

/* ---- launches ---- */

enum { LAUNCH_WORDS = 7, LAUNCH_ATTRIBUTES = 16 };

/* Attributes without a pointer or a handle in them, a bit each. */
#define LAUNCH_ALLOWED \
	(1U << 0 | 1U << 1 | 1U << 2 | 1U << 3 | 1U << 4 | 1U << 5 | 1U << 6 | 1U << 8 | 1U << 9 | 1U << 10 | 1U << 14)

struct code_launch {
	uint64_t function;
	const struct wire_function *info;
	CUlaunchConfig config;
	CUlaunchAttribute attributes[LAUNCH_ATTRIBUTES];
	void *parameters[WIRE_PARAMETERS];
};

static bool code_knows_attribute(int attribute)
{
	return attribute >= 0 && attribute < 32 && (LAUNCH_ALLOWED >> attribute & 1);
}

static CUresult code_read_attributes(struct request *q, struct code_launch *launch)
{
	memcpy(launch->attributes, &q->argument[LAUNCH_WORDS], launch->config.numAttrs * sizeof(CUlaunchAttribute));
	for (unsigned i = 0; i < launch->config.numAttrs; i++)
		if (!code_knows_attribute(launch->attributes[i].id))
			return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

/* The values are those of launches, addresses and handles among them. */
CUresult serve_cuStreamSetAttribute(struct request *q)
{
	CUresult r = driver.cuStreamSetAttribute ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;
	const CUstreamAttrID attribute = (CUstreamAttrID)q->argument[1];
	CUstreamAttrValue value;
	CUstream stream = 0;

	if (!r)
		r = request_stream(q, 0, &stream);
	if (!r)
		r = request_struct(q, 2, &value, sizeof(value));
	if (!r && !code_knows_attribute(attribute))
		r = CUDA_ERROR_INVALID_VALUE;
	return r ? r : driver.cuStreamSetAttribute(stream, attribute, &value);
}

/* The same of a kernel in a graph. */
static CUresult code_read_node_attribute(struct request *q, unsigned words, uint64_t *ret_node)
{
	CUresult r = request_words(q, words);

	if (!r)
		r = request_handle(q, 0, WIRE_NODE, ret_node);
	return r || code_knows_attribute((CUkernelNodeAttrID)q->argument[1]) ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult serve_cuGraphKernelNodeSetAttribute(struct request *q)
{
	CUkernelNodeAttrValue value;
	uint64_t node = 0;
	CUresult r =
		driver.cuGraphKernelNodeSetAttribute ? code_read_node_attribute(q, 3, &node) : CUDA_ERROR_NOT_SUPPORTED;

	if (!r)
		r = request_struct(q, 2, &value, sizeof(value));
	return r ? r : driver.cuGraphKernelNodeSetAttribute(node, (CUkernelNodeAttrID)q->argument[1], &value);
}

CUresult serve_cuGraphKernelNodeGetAttribute(struct request *q)
{
	CUkernelNodeAttrValue value = {{0}};
	uint64_t node = 0;
	CUresult r =
		driver.cuGraphKernelNodeGetAttribute ? code_read_node_attribute(q, 2, &node) : CUDA_ERROR_NOT_SUPPORTED;

	if (!r)
		r = driver.cuGraphKernelNodeGetAttribute(node, (CUkernelNodeAttrID)q->argument[1], &value);
	if (!r)
		request_reply(q, &value, sizeof(value));
	return r;
}

/* Sizes are two to a word. */
static inline unsigned code_low(uint64_t word)
{
	return (unsigned)word;
}

static inline unsigned code_high(uint64_t word)
{
	return (unsigned)(word >> 32);
}

/* What runs, and where. Word 6 has the number of attributes, which stand behind the words. */
static inline CUresult code_begin_launch(struct request *q, struct code_launch *launch)
{
	CUresult r = request_words(q, LAUNCH_WORDS);
	const unsigned attributes = code_low(q->argument[6]);

	if (!r && !handle_look(q->argument[0], WIRE_FUNC, &launch->function))
		r = CUDA_ERROR_INVALID_HANDLE;
	launch->config.hStream = 0;
	launch->config.numAttrs = attributes;
	if (!r)
		r = request_stream(q, REQUEST_LAUNCH_STREAM, &launch->config.hStream);
	if (r)
		return r;
	return attributes > LAUNCH_ATTRIBUTES ||
			       LAUNCH_WORDS * 8 + attributes * sizeof(CUlaunchAttribute) > q->header.bytes
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

/* As a struct, with the attributes. */
static CUresult code_read_config(struct request *q, struct code_launch *launch)
{
	const uint64_t *word = q->argument;

	launch->config.gridDimX = code_low(word[1]);
	launch->config.gridDimY = code_high(word[1]);
	launch->config.gridDimZ = code_low(word[2]);
	launch->config.blockDimX = code_high(word[2]);
	launch->config.blockDimY = code_low(word[3]);
	launch->config.blockDimZ = code_high(word[3]);
	launch->config.sharedMemBytes = code_low(word[4]);
	launch->config.attrs = launch->attributes;
	return launch->config.numAttrs ? code_read_attributes(q, launch) : CUDA_SUCCESS;
}

static inline void code_lay_out(struct code_launch *launch, uint8_t *packed)
{
	for (unsigned i = 0; i < launch->info->parameters; i++)
		launch->parameters[i] = packed + launch->info->parameter[i].offset;
}

/* They stand behind the attributes. */
static inline CUresult code_read_parameters(struct request *q, struct code_launch *launch)
{
	CUresult r = code_runs(q, q->argument[0], launch->function, &launch->info);
	const size_t before = LAUNCH_WORDS * 8 + launch->config.numAttrs * sizeof(CUlaunchAttribute);
	uint8_t *packed = (uint8_t *)q->argument + before;

	if (r)
		return r;
	if (code_high(q->argument[6]) != launch->info->bytes || before + launch->info->bytes > q->header.bytes)
		return CUDA_ERROR_INVALID_VALUE;
	code_lay_out(launch, packed);
	return CUDA_SUCCESS;
}

CUresult serve_cuLaunchKernel(struct request *q)
{
	static struct code_launch launch;
	const uint64_t *word = q->argument;
	CUresult r = code_begin_launch(q, &launch);

	if (!r)
		r = code_read_parameters(q, &launch);
	return r ? r
		 : driver.cuLaunchKernel(launch.function, code_low(word[1]), code_high(word[1]), code_low(word[2]),
					 code_high(word[2]), code_low(word[3]), code_high(word[3]), code_low(word[4]),
					 launch.config.hStream, launch.parameters, NULL);
}

CUresult serve_cuLaunchCooperativeKernel(struct request *q)
{
	static struct code_launch launch;
	const uint64_t *word = q->argument;
	CUresult r = driver.cuLaunchCooperativeKernel ? code_begin_launch(q, &launch) : CUDA_ERROR_NOT_SUPPORTED;

	if (!r)
		r = code_read_parameters(q, &launch);
	return r ? r
		 : driver.cuLaunchCooperativeKernel(launch.function, code_low(word[1]), code_high(word[1]),
						    code_low(word[2]), code_high(word[2]), code_low(word[3]),
						    code_high(word[3]), code_low(word[4]), launch.config.hStream,
						    launch.parameters);
}

CUresult serve_cuLaunchKernelEx(struct request *q)
{
	static struct code_launch launch;
	CUresult r = driver.cuLaunchKernelEx ? code_begin_launch(q, &launch) : CUDA_ERROR_NOT_SUPPORTED;

	if (!r)
		r = code_read_config(q, &launch);
	if (!r)
		r = code_read_parameters(q, &launch);
	return r ? r : driver.cuLaunchKernelEx(&launch.config, launch.function, launch.parameters, NULL);
}

/* ---- kernels in graphs ---- */

enum { NODE_WORDS = 6 };

/* As a launch, with @handles words behind it. */
static CUresult code_read_node(struct request *q, unsigned handles, CUDA_KERNEL_NODE_PARAMS *node,
			       struct code_launch *launch)
{
	CUresult r = request_words(q, NODE_WORDS + handles);
	const uint64_t *word = q->argument;

	if (!r)
		r = request_handle(q, 0, WIRE_FUNC, &launch->function);
	if (!r)
		r = code_runs(q, word[0], launch->function, &launch->info);
	if (r)
		return r;
	if (word[5] != launch->info->bytes || (NODE_WORDS + handles) * 8 + word[5] > q->header.bytes)
		return CUDA_ERROR_INVALID_VALUE;
	code_lay_out(launch, (uint8_t *)&q->argument[NODE_WORDS + handles]);
	*node = (CUDA_KERNEL_NODE_PARAMS){
		.gridDimX = code_low(word[1]),
		.gridDimY = code_high(word[1]),
		.gridDimZ = code_low(word[2]),
		.blockDimX = code_high(word[2]),
		.blockDimY = code_low(word[3]),
		.blockDimZ = code_high(word[3]),
		.sharedMemBytes = code_low(word[4]),
		.kernelParams = launch->parameters,
	};
	if (wire_handle_type(word[0]) == WIRE_KERNEL)
		node->kern = launch->function;
	else
		node->func = launch->function;
	return CUDA_SUCCESS;
}

CUresult serve_cuGraphAddKernelNode_v2(struct request *q)
{
	static struct code_launch launch;
	const unsigned handles = q->header.words > NODE_WORDS ? q->header.words - NODE_WORDS : 1;
	CUDA_KERNEL_NODE_PARAMS parameters;
	uint64_t graph = 0, node = 0, before[REQUEST_HANDLES];
	CUresult r =
		handles > REQUEST_HANDLES ? CUDA_ERROR_INVALID_VALUE : code_read_node(q, handles, &parameters, &launch);

	if (!r)
		r = request_handle(q, NODE_WORDS, WIRE_GRAPH, &graph);
	for (unsigned i = 1; i < handles && !r; i++)
		r = request_handle(q, NODE_WORDS + i, WIRE_NODE, &before[i - 1]) ? CUDA_ERROR_INVALID_VALUE
										 : CUDA_SUCCESS;
	if (!r)
		r = driver.cuGraphAddKernelNode_v2
			    ? driver.cuGraphAddKernelNode_v2(&node, graph, before, handles - 1, &parameters)
			    : CUDA_ERROR_NOT_SUPPORTED;
	return r ? r : request_reply_handle(q, WIRE_NODE, node, q->argument[NODE_WORDS]);
}

/* The values as one piece, as launches send them. */
static CUresult code_pack(const struct wire_function *info, const CUDA_KERNEL_NODE_PARAMS *node, uint8_t *to)
{
	if (info->parameters && !node->kernelParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (unsigned i = 0; i < info->parameters; i++)
		memcpy(to + info->parameter[i].offset, node->kernelParams[i], info->parameter[i].size);
	return CUDA_SUCCESS;
}

/* A function that the client has no handle of is what a kernel of a library became, and ends with it. */
static uint64_t code_owner(uint64_t function, uint64_t node)
{
	CUfunction became = 0;
	uint32_t place = 0;
	uint64_t kernel, real;

	while ((kernel = handle_next(WIRE_KERNEL, 0, &place, &real)))
		if (driver.cuKernelGetFunction && !driver.cuKernelGetFunction(&became, real) && became == function)
			return kernel;
	return node;
}

static uint64_t code_handle(struct request *q, const CUDA_KERNEL_NODE_PARAMS *node)
{
	const uint64_t handle =
		handle_known(node->func ? WIRE_FUNC : WIRE_KERNEL, node->func ? node->func : node->kern);

	if (handle || !node->func)
		return handle;
	return handle_give(WIRE_FUNC, node->func, code_owner(node->func, q->argument[0]), q->header.context);
}

static CUresult code_reply_node(struct request *q, const CUDA_KERNEL_NODE_PARAMS *node)
{
	const uint64_t real = node->func ? node->func : node->kern;
	const uint64_t handle = code_handle(q, node), context = node->ctx ? handle_known(WIRE_CONTEXT, node->ctx) : 0;
	struct code_function *function;
	CUresult r = handle ? code_function(handle, real, &function) : CUDA_ERROR_OUT_OF_MEMORY;
	uint8_t *packed = r ? NULL : calloc(1, function->info.bytes + 1);

	if (!packed)
		return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
	const uint64_t words[NODE_WORDS] = {
		handle,
		node->gridDimX | (uint64_t)node->gridDimY << 32,
		node->gridDimZ | (uint64_t)node->blockDimX << 32,
		node->blockDimY | (uint64_t)node->blockDimZ << 32,
		node->sharedMemBytes,
		function->info.bytes,
	};

	r = code_pack(&function->info, node, packed);
	if (!r)
		r = request_keep_download(q, packed, function->info.bytes);
	if (!r)
		request_reply(q, words, sizeof(words));
	if (!r)
		request_reply(q, &context, sizeof(context));
	free(packed);
	return r;
}

CUresult serve_cuGraphKernelNodeGetParams_v2(struct request *q)
{
	CUresult r = driver.cuGraphKernelNodeGetParams_v2 ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	CUDA_KERNEL_NODE_PARAMS parameters = {0};
	uint64_t node = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_NODE, &node);
	if (!r)
		r = driver.cuGraphKernelNodeGetParams_v2(node, &parameters);
	return r ? r : code_reply_node(q, &parameters);
}

CUresult serve_cuGraphKernelNodeSetParams_v2(struct request *q)
{
	static struct code_launch launch;
	CUDA_KERNEL_NODE_PARAMS parameters;
	CUresult r = driver.cuGraphKernelNodeSetParams_v2 ? code_read_node(q, 1, &parameters, &launch)
							  : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t node = 0;

	if (!r)
		r = request_handle(q, NODE_WORDS, WIRE_NODE, &node);
	return r ? r : driver.cuGraphKernelNodeSetParams_v2(node, &parameters);
}

CUresult serve_cuGraphExecKernelNodeSetParams_v2(struct request *q)
{
	static struct code_launch launch;
	CUDA_KERNEL_NODE_PARAMS parameters;
	CUresult r = driver.cuGraphExecKernelNodeSetParams_v2 ? code_read_node(q, 2, &parameters, &launch)
							      : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t exec = 0, node = 0;

	if (!r)
		r = request_handle(q, NODE_WORDS, WIRE_EXEC, &exec);
	if (!r)
		r = request_handle(q, NODE_WORDS + 1, WIRE_NODE, &node);
	return r ? r : driver.cuGraphExecKernelNodeSetParams_v2(exec, node, &parameters);
}

/* ---- how many fit ---- */

CUresult serve_cuOccupancyMaxPotentialBlockSizeWithFlags(struct request *q)
{
	CUresult r = driver.cuOccupancyMaxPotentialBlockSizeWithFlags ? request_words(q, 4) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t function = 0, out[2];
	int grid = 0, block = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_FUNC, &function);
	if (!r)
		r = driver.cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, function, NULL, q->argument[1],
								     (int)q->argument[2], (unsigned)q->argument[3]);
	out[0] = (uint64_t)grid;
	out[1] = (uint64_t)block;
	request_reply(q, out, sizeof(out));
	return r;
}

/* A launch without its parameters, and one number for an answer. */
static CUresult code_count_clusters(struct request *q, CUresult (*count)(int *, CUfunction, const CUlaunchConfig *))
{
	static struct code_launch launch;
	CUresult r = count ? code_begin_launch(q, &launch) : CUDA_ERROR_NOT_SUPPORTED;
	int value = 0;

	if (!r)
		r = code_read_config(q, &launch);
	if (!r)
		r = count(&value, launch.function, &launch.config);
	if (!r)
		request_reply(q, &value, sizeof(value));
	return r;
}

CUresult serve_cuOccupancyMaxPotentialClusterSize(struct request *q)
{
	return code_count_clusters(q, driver.cuOccupancyMaxPotentialClusterSize);
}

CUresult serve_cuOccupancyMaxActiveClusters(struct request *q)
{
	return code_count_clusters(q, driver.cuOccupancyMaxActiveClusters);
}

/* ---- variables ---- */

/* Where it is, its size, and whether it is managed memory, which the client has to know. */
static CUresult code_get_variable(struct request *q, enum wire_type type,
				  CUresult (*get)(CUdeviceptr *, size_t *, uint64_t, const char *))
{
	enum { IS_MANAGED = 8 };
	CUresult r = get ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	const char *name = NULL;
	CUdeviceptr pointer = 0;
	uint64_t owner = 0;
	size_t bytes = 0;
	int managed = 0;

	if (!r)
		r = request_handle(q, 0, type, &owner);
	if (!r)
		r = request_string(q, 1, WIRE_INLINE, &name);
	if (!r)
		r = get(&pointer, &bytes, owner, name);
	if (r)
		return r;
	if (driver.cuPointerGetAttribute && driver.cuPointerGetAttribute(&managed, IS_MANAGED, pointer))
		managed = 0;
	const uint64_t out[] = {pointer, bytes, managed != 0};

	request_reply(q, out, sizeof(out));
	return CUDA_SUCCESS;
}

CUresult serve_cuModuleGetGlobal_v2(struct request *q)
{
	return code_get_variable(q, WIRE_MODULE, driver.cuModuleGetGlobal_v2);
}

CUresult serve_cuLibraryGetGlobal(struct request *q)
{
	return code_get_variable(q, WIRE_LIBRARY, driver.cuLibraryGetGlobal);
}

CUresult serve_cuLibraryGetManaged(struct request *q)
{
	return code_get_variable(q, WIRE_LIBRARY, driver.cuLibraryGetManaged);
}

/* ---- what is not offered, if it is there ---- */

CUresult serve_cuLibraryGetUnifiedFunction(struct request *q)
{
	CUresult r = driver.cuLibraryGetUnifiedFunction ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	const char *name = NULL;
	uint64_t library = 0;
	void *function;

	if (!r)
		r = request_handle(q, 0, WIRE_LIBRARY, &library);
	if (!r)
		r = request_string(q, 1, WIRE_INLINE, &name);
	if (!r)
		r = driver.cuLibraryGetUnifiedFunction(&function, library, name);
	return r ? r : CUDA_ERROR_NOT_SUPPORTED;
}
