/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The API takes images without their length: an ELF file says in its headers how long it is, a fat binary, too, and all
 * else is text. The driver in the server judges what they are.
 */

#include "vcuda/client/context.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "vcuda/client/address_map.h"
#include "vcuda/client/call.h"
#include "vcuda/client/variable.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

enum {
	IMAGE_WRAPPER = 0x466243b1,
	IMAGE_FAT = (int)0xba55ed50,
	IMAGE_OPTIONS = 32,
	IMAGE_LOG = 1900,   /* bytes of a log that come back */
	IMAGE_OPERANDS = 2, /* of a linker, behind the options */
};

#define IMAGE_ANY SIZE_MAX

struct image_wrapper {
	int32_t magic, version;
	const void *data;
	const void *file;
};

struct image_fat {
	int32_t magic;
	uint16_t version, header;
	uint64_t bytes;
};

static size_t image_larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Return: 0 if it does not end within @most bytes. */
static size_t image_elf_bytes(const void *image, size_t most)
{
	const Elf64_Ehdr *header = image;
	const Elf64_Shdr *sections;
	size_t bytes = sizeof(*header);

	if (most < sizeof(*header))
		return 0;
	bytes = image_larger(bytes, header->e_phoff + (size_t)header->e_phnum * header->e_phentsize);
	bytes = image_larger(bytes, header->e_shoff + (size_t)header->e_shnum * header->e_shentsize);
	if (bytes > most || header->e_shoff > most || header->e_shnum > (most - header->e_shoff) / sizeof(*sections))
		return 0;
	sections = (const Elf64_Shdr *)((const char *)image + header->e_shoff);
	for (unsigned i = 0; header->e_shoff && i < header->e_shnum; i++)
		if (sections[i].sh_type != SHT_NOBITS)
			bytes = image_larger(bytes, sections[i].sh_offset + sections[i].sh_size);
	return bytes <= most ? bytes : 0;
}

/*
 * image_look() - where an image is, and how long
 * @most: what can be read of it: the length of a file, behind which is a NUL; IMAGE_ANY: as much as it says itself
 *
 * Return: NULL if it does not end there.
 */
static const void *image_look(const void *image, size_t most, size_t *ret_bytes)
{
	const struct image_wrapper *wrapper = image;
	const struct image_fat *fat;

	if (most >= SELFMAG && memcmp(image, ELFMAG, SELFMAG) == 0) {
		*ret_bytes = image_elf_bytes(image, most);
		return *ret_bytes ? image : NULL;
	}
	/* Points to what the compiler has put into the program. */
	if (most == IMAGE_ANY && wrapper->magic == IMAGE_WRAPPER)
		image = wrapper->data;
	fat = image;
	if (most < sizeof(fat->magic) || fat->magic != IMAGE_FAT) {
		*ret_bytes = strlen(image) + 1;
		return image;
	}
	if (most < sizeof(*fat) || fat->header > most || fat->bytes > most - fat->header)
		return NULL;
	*ret_bytes = fat->header + fat->bytes;
	return image;
}

/* ---- options of the compiler ---- */

enum image_option { OPTION_WALL_TIME = 2, OPTION_INFO, OPTION_INFO_BYTES, OPTION_ERROR, OPTION_ERROR_BYTES };

struct image_options {
	uint64_t words[3 + 2 * IMAGE_OPTIONS + IMAGE_OPERANDS];
	unsigned count; /* of words */
	char *info, *error;
	size_t info_bytes, error_bytes;
	void **info_told, **error_told; /* where the lengths of the logs are put */
	float *time;
};

static CUresult image_read_option(struct image_options *options, CUjit_option option, void **value)
{
	if (option == OPTION_INFO) {
		options->info = *value;
	} else if (option == OPTION_ERROR) {
		options->error = *value;
	} else if (option == OPTION_INFO_BYTES) {
		options->info_bytes = (uint32_t)(uintptr_t)*value;
		options->info_told = value;
	} else if (option == OPTION_ERROR_BYTES) {
		options->error_bytes = (uint32_t)(uintptr_t)*value;
		options->error_told = value;
	} else if (option == OPTION_WALL_TIME) {
		options->time = (float *)value;
	} else if (option >= 0 && wire_is_jit_number((uint64_t)option)) {
		options->words[options->count++] = (uint64_t)option;
		options->words[options->count++] = (uint64_t)*value;
	} else {
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_SUCCESS;
}

/* The first three words are for the caller. */
static CUresult image_read_options(struct image_options *options, unsigned count, const CUjit_option *names,
				   void **values)
{
	options->count = 3;
	if (count > IMAGE_OPTIONS || (count && (!names || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		CUresult r = image_read_option(options, names[i], &values[i]);

		if (r)
			return r;
	}
	options->words[2] = (options->count - 3) / 2;
	return CUDA_SUCCESS;
}

static void image_copy_log(char *to, size_t room, void **told, const char *from, size_t bytes)
{
	const size_t fits = bytes < room ? bytes : room;

	if (to && fits) {
		memcpy(to, from, fits);
		/* Programs print it as a string, also what is cut off. */
		to[fits - 1] = '\0';
	}
	if (told)
		*told = (void *)(uintptr_t)fits;
}

/* What every use of the compiler answers with, whether it succeeded or not. */
struct image_answer {
	uint64_t handle;
	uint32_t info_bytes, error_bytes;
	char info[IMAGE_LOG], error[IMAGE_LOG];
	float time;
};
_Static_assert(sizeof(struct image_answer) <= WIRE_REPLY, "logs fit");

static CUresult image_send(unsigned op, struct image_options *options, const void *image, size_t bytes, uint64_t *ret)
{
	static struct image_answer answers[WIRE_SLOTS];
	struct thread *thread = thread_self();
	struct image_answer *answer = &answers[thread->slot];
	CUresult r = bytes > WIRE_UPLOAD_MAX ? CUDA_ERROR_INVALID_IMAGE : call_upload(image, bytes);

	if (r)
		return r;
	options->words[0] = bytes;
	r = call_sync(op, options->words, options->count, NULL, 0, NULL, 0);
	if (call_reply_bytes() != sizeof(*answer))
		return r ? r : CUDA_ERROR_UNKNOWN;
	memcpy(answer, client.wire->reply[thread->slot].word, sizeof(*answer));
	if (answer->info_bytes > IMAGE_LOG || answer->error_bytes > IMAGE_LOG)
		return CUDA_ERROR_UNKNOWN;
	image_copy_log(options->info, options->info_bytes, options->info_told, answer->info, answer->info_bytes);
	image_copy_log(options->error, options->error_bytes, options->error_told, answer->error, answer->error_bytes);
	if (options->time)
		*options->time = answer->time;
	if (!r && ret)
		*ret = answer->handle;
	return r;
}

/* ---- modules and libraries ---- */

static CUresult image_load_module(CUmodule *module, const void *image, size_t most, unsigned count, CUjit_option *names,
				  void **values)
{
	struct image_options options = {0};
	struct context *context;
	CUresult r = context_current(&context);
	size_t bytes;

	if (r)
		return r;
	if (!module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read_options(&options, count, names, values);
	if (r)
		return r;
	image = image_look(image, most, &bytes);
	return image ? image_send(OP_cuModuleLoadDataEx, &options, image, bytes, module) : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *names, void **values)
{
	return image_load_module(module, image, IMAGE_ANY, count, names, values);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

static CUresult image_read_file(const char *path, char **ret, size_t *ret_bytes)
{
	const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	off_t bytes = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	ssize_t r = 1;
	char *data;

	if (fd < 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	data = bytes > 0 && (uint64_t)bytes < WIRE_UPLOAD_MAX ? calloc(1, (size_t)bytes + 1) : NULL;
	for (off_t done = 0; data && done < bytes && r > 0; done += r)
		r = pread(fd, data + done, (size_t)(bytes - done), done);
	(void)close(fd);
	if (!data)
		return CUDA_ERROR_INVALID_IMAGE;
	*ret = data;
	*ret_bytes = (size_t)bytes;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	struct context *context;
	CUresult r = context_current(&context);
	size_t bytes;
	char *image;

	if (r)
		return r;
	if (!module || !path)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read_file(path, &image, &bytes);
	if (r)
		return r;
	r = image_load_module(module, image, bytes, 0, NULL, NULL);
	free(image);
	return r;
}

CUresult cuModuleUnload(CUmodule module)
{
	CUresult r = call_sync(OP_cuModuleUnload, &module, 1, NULL, 0, NULL, 0);

	image_forget(module);
	if (r)
		return r;
	address_map_forget_owner(module);
	variable_forget_owner(module);
	return CUDA_SUCCESS;
}

static CUresult image_load_library(CUlibrary *library, const void *image, size_t most, CUjit_option *names,
				   void **values, unsigned count, CUlibraryOption *library_names,
				   unsigned library_count)
{
	struct image_options options = {0};
	struct thread *thread;
	CUresult r = call_enter(&thread);
	size_t bytes;

	if (r)
		return r;
	if (!library || !image || (library_count && !library_names))
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read_options(&options, count, names, values);
	if (r)
		return r;
	/*
	 * The first asks for the host's functions, the second says that the image will stay: it is copied in any case.
	 */
	for (unsigned i = 0; i < library_count; i++)
		if (library_names[i] != 1)
			return CUDA_ERROR_NOT_SUPPORTED;
	image = image_look(image, most, &bytes);
	return image ? image_send(OP_cuLibraryLoadData, &options, image, bytes, library) : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *names, void **values, unsigned count,
			   CUlibraryOption *library_names, void **library_values, unsigned library_count)
{
	(void)library_values;
	return image_load_library(library, image, IMAGE_ANY, names, values, count, library_names, library_count);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *names, void **values, unsigned count,
			       CUlibraryOption *library_names, void **library_values, unsigned library_count)
{
	struct thread *thread;
	CUresult r = call_enter(&thread);
	size_t bytes;
	char *image;

	(void)library_values;
	if (r)
		return r;
	if (!library || !path)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read_file(path, &image, &bytes);
	if (r)
		return r;
	r = image_load_library(library, image, bytes, names, values, count, library_names, library_count);
	free(image);
	return r;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	CUresult r = call_sync(OP_cuLibraryUnload, &library, 1, NULL, 0, NULL, 0);

	image_forget(library);
	if (r)
		return r;
	address_map_forget_owner(library);
	variable_forget_owner(library);
	return CUDA_SUCCESS;
}

/* ---- the linker ---- */

/* A linker writes into the buffers of its creation whenever it is used. */
struct linker {
	struct linker *next;
	uint64_t handle;
	struct image_options options;
	void *image;
	bool completed;
};

static struct lock linker_lock;
static struct linker *linkers;

static struct linker *image_find_linker(uint64_t handle)
{
	struct linker *linker;

	LOCK_HOLD(&linker_lock);
	for (linker = linkers; linker && linker->handle != handle; linker = linker->next)
		;
	return linker;
}

CUresult cuLinkCreate_v2(unsigned count, CUjit_option *names, void **values, CUlinkState *state)
{
	struct context *context;
	CUresult r = context_current(&context);
	struct linker *linker;

	if (r)
		return r;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	linker = calloc(1, sizeof(*linker));
	if (!linker)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = image_read_options(&linker->options, count, names, values);
	if (!r)
		r = image_send(OP_cuLinkCreate_v2, &linker->options, "", 0, &linker->handle);
	if (r) {
		free(linker);
		return r;
	}
	LOCK_HOLD(&linker_lock);
	linker->next = linkers;
	linkers = linker;
	*state = linker->handle;
	return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name,
			  unsigned count, CUjit_option *names, void **values)
{
	struct image_options options = {0};
	struct linker *linker = image_find_linker(state);
	struct thread *thread;
	CUresult r = call_enter(&thread);

	if (r)
		return r;
	if (!linker)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read_options(&options, count, names, values);
	if (r)
		return r;
	options.words[options.count++] = state;
	options.words[options.count++] = (uint64_t)type;
	options.info = linker->options.info;
	options.info_bytes = linker->options.info_bytes;
	options.info_told = linker->options.info_told;
	options.error = linker->options.error;
	options.error_bytes = linker->options.error_bytes;
	options.error_told = linker->options.error_told;
	(void)name;
	return image_send(OP_cuLinkAddData_v2, &options, data, bytes, NULL);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned count, CUjit_option *names,
			  void **values)
{
	const struct linker *linker = image_find_linker(state);
	struct thread *thread;
	CUresult r = call_enter(&thread);
	size_t bytes;
	char *data;

	if (r)
		return r;
	/* Nothing is added any more, whether there is such a file or not. */
	if (!linker || linker->completed || !path)
		return linker ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	r = image_read_file(path, &data, &bytes);
	if (r)
		return r;
	r = cuLinkAddData_v2(state, type, data, bytes, path, count, names, values);
	free(data);
	return r;
}

CUresult cuLinkComplete(CUlinkState state, void **image, size_t *bytes)
{
	struct linker *linker = image_find_linker(state);
	struct thread *thread;
	CUresult r = call_enter(&thread);
	uint64_t length;

	if (r)
		return r;
	if (!linker)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	linker->options.words[linker->options.count] = state;
	linker->options.count++;
	r = image_send(OP_cuLinkComplete, &linker->options, "", 0, &length);
	linker->options.count--;
	if (r)
		return r;
	linker->completed = true;
	if (length > WIRE_UPLOAD_MAX)
		return CUDA_ERROR_UNKNOWN;
	free(linker->image);
	linker->image = malloc(length);
	if (!linker->image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = call_download(0, linker->image, length);
	if (r)
		return r;
	*image = linker->image;
	if (bytes)
		*bytes = length;
	return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	struct linker **at = &linkers, *linker;
	struct thread *thread;
	CUresult r = call_enter(&thread);

	if (r)
		return r;
	LOCK_HOLD(&linker_lock);
	while (*at && (*at)->handle != state)
		at = &(*at)->next;
	if (!*at)
		return CUDA_ERROR_INVALID_HANDLE;
	linker = *at;
	*at = linker->next;
	free(linker->image);
	free(linker);
	return call_sync(OP_cuLinkDestroy, &state, 1, NULL, 0, NULL, 0);
}

/* ---- functions ---- */

/* By the index of a handle, in two levels. Nothing in it is freed, since threads read it without the lock. */
enum { FUNCTION_LEVEL = 4096 };
static struct lock function_lock;
static _Atomic(struct function *) *_Atomic functions[FUNCTION_LEVEL];
static _Atomic uint32_t function_epoch = 1;

void image_forget(uint64_t owner)
{
	(void)owner;
	function_epoch++;
}

/* What is known in the handle's place, for one device after the other. */
static struct function *image_functions(uint64_t handle)
{
	const uint32_t index = wire_handle_index(handle);
	_Atomic(struct function *) *level = functions[index / FUNCTION_LEVEL];

	return level ? level[index % FUNCTION_LEVEL] : NULL;
}

static CUdevice image_device(void)
{
	const struct thread *thread = thread_self();
	const struct context *context = thread ? thread_context(thread) : NULL;

	return context ? context->device : 0;
}

static struct function *image_known_function(uint64_t handle)
{
	const CUdevice device = image_device();
	struct function *function = image_functions(handle);

	while (function && (function->handle != handle || function->device != device))
		function = function->next;
	return function;
}

static size_t image_info_bytes(const struct wire_function *info)
{
	return sizeof(*info) - sizeof(info->parameter) + info->parameters * sizeof(info->parameter[0]);
}

/* What is told of a function as it was told of the one before it in this place is kept once, so that it is no leak. */
static CUresult image_keep_function(uint64_t handle, const struct wire_function *info, const struct function **ret)
{
	const uint32_t index = wire_handle_index(handle);
	const size_t bytes = image_info_bytes(info);
	const CUdevice device = image_device();
	_Atomic(struct function *) *place;
	struct function *function, *old;

	LOCK_HOLD(&function_lock);
	if (!functions[index / FUNCTION_LEVEL])
		functions[index / FUNCTION_LEVEL] = calloc(FUNCTION_LEVEL, sizeof(struct function *));
	if (!functions[index / FUNCTION_LEVEL])
		return CUDA_ERROR_OUT_OF_MEMORY;
	place = &functions[index / FUNCTION_LEVEL][index % FUNCTION_LEVEL];
	while (*place && (*place)->device != device)
		place = &(*place)->next;
	function = old = *place;
	if (!old || old->info.parameters != info->parameters || memcmp(&old->info, info, bytes) != 0) {
		function = malloc(sizeof(*function) - sizeof(*info) + bytes);
		if (!function)
			return CUDA_ERROR_OUT_OF_MEMORY;
		function->next = old ? (struct function *)old->next : NULL;
		function->device = device;
		memcpy(&function->info, info, bytes);
	}
	function->handle = handle;
	function->epoch = function_epoch;
	*place = function;
	*ret = function;
	return CUDA_SUCCESS;
}

static __attribute__((noinline)) CUresult image_ask_function(uint64_t handle, const struct function **ret)
{
	struct wire_function info;
	CUresult r = call_sync(WIRE_FUNCTION, &handle, 1, NULL, 0, &info, sizeof(info));

	if (r)
		return r;
	if (info.parameters > WIRE_PARAMETERS || info.bytes > WIRE_INLINE / 2)
		return CUDA_ERROR_UNKNOWN;
	for (unsigned i = 0; i < info.parameters; i++)
		if ((uint32_t)info.parameter[i].offset + info.parameter[i].size > info.bytes)
			return CUDA_ERROR_UNKNOWN;
	return image_keep_function(handle, &info, ret);
}

CUresult image_function(uint64_t handle, const struct function **ret)
{
	const struct function *function = image_known_function(handle);

	if (!function || function->epoch != function_epoch)
		return image_ask_function(handle, ret);
	*ret = function;
	return CUDA_SUCCESS;
}

static void image_ask_again(uint64_t handle)
{
	for (struct function *function = image_functions(handle); function; function = function->next)
		if (function->handle == handle)
			function->epoch = 0;
}

/* A kernel and its function have the same attributes, which programs set by the one or by the other. */
enum { SET_BY_FUNCTION = 1, SET_BY_KERNEL = 2 };
static _Atomic unsigned function_sets;

/* Return: whether what is known of the function has the attribute's value. */
static bool image_know_attribute(uint64_t handle, CUfunction_attribute attribute, int *ret)
{
	const unsigned other = wire_handle_type(handle) == WIRE_KERNEL ? SET_BY_FUNCTION : SET_BY_KERNEL;
	const struct function *function;

	if (attribute < 0 || attribute >= WIRE_FUNCTION_ATTRIBUTES || function_sets & other ||
	    wire_handle_type(handle) != (other == SET_BY_FUNCTION ? WIRE_KERNEL : WIRE_FUNC) ||
	    image_function(handle, &function))
		return false;
	*ret = function->info.attribute[attribute];
	return true;
}

static CUresult image_set_attribute(unsigned op, const uint64_t *words, unsigned count, uint64_t handle, unsigned set)
{
	CUresult r;

	function_sets |= set;
	r = call_sync(op, words, count, NULL, 0, NULL, 0);
	image_ask_again(handle);
	return r;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	const uint64_t words[] = {(uint64_t)attribute, function};
	struct context *context;
	CUresult r = context_current(&context);

	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (image_know_attribute(function, attribute, value))
		return call_context_failure(thread_self());
	return call_sync(OP_cuFuncGetAttribute, words, 2, NULL, 0, value, sizeof(*value));
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
	const uint64_t words[] = {(uint64_t)attribute, kernel, (uint64_t)device};
	struct context *context;

	if (!value)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	if (context_current(&context) == CUDA_SUCCESS && context->device == device &&
	    image_know_attribute(kernel, attribute, value))
		return call_context_failure(thread_self());
	return call_sync(OP_cuKernelGetAttribute, words, 3, NULL, 0, value, sizeof(*value));
}

/* Libraries set the same before each launch. */
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	const uint64_t words[] = {function, (uint64_t)attribute, (uint64_t)value};
	struct context *context;
	int known;

	if (function_sets & SET_BY_FUNCTION && context_current(&context) == CUDA_SUCCESS &&
	    image_know_attribute(function, attribute, &known) && known == value)
		return call_failure(thread_self());
	return image_set_attribute(OP_cuFuncSetAttribute, words, 3, function, SET_BY_FUNCTION);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
	const uint64_t words[] = {(uint64_t)attribute, (uint64_t)value, kernel, (uint64_t)device};
	struct context *context;
	int known;

	if (function_sets & SET_BY_KERNEL && context_current(&context) == CUDA_SUCCESS && context->device == device &&
	    image_know_attribute(kernel, attribute, &known) && known == value)
		return call_failure(thread_self());
	return image_set_attribute(OP_cuKernelSetAttribute, words, 4, kernel, SET_BY_KERNEL);
}
