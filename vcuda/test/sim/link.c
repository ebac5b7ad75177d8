/* SPDX-License-Identifier: Apache-2.0 */

/* The linker: texts of PTX become one, in a file that looks like an ELF of a GPU, so that its length can be read off it. */

#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

enum { LINK_CUBIN = 0, LINK_PTX = 1, LINK_FATBIN = 2 };

struct CUlinkState_st {
	struct object object;
	char *text;
	size_t length;
	void *image;
	unsigned option_count;
	int options[16];
	void **values;
	struct ptx_log info, error;
	pthread_t maker;
};

struct linked {
	Elf64_Ehdr header;
	Elf64_Shdr sections[2];
	char text[];
};

void *link_image(const char *text, size_t *ret_size)
{
	size_t length = strlen(text) + 1;
	struct linked *image = calloc(1, sizeof(*image) + length);

	if (!image)
		abort();
	memcpy(image->header.e_ident, ELFMAG, SELFMAG);
	image->header.e_ident[EI_CLASS] = ELFCLASS64;
	image->header.e_ident[EI_DATA] = ELFDATA2LSB;
	image->header.e_ident[EI_VERSION] = EV_CURRENT;
	image->header.e_type = ET_EXEC;
	image->header.e_machine = 190; /* EM_CUDA */
	image->header.e_version = EV_CURRENT;
	image->header.e_ehsize = sizeof(image->header);
	image->header.e_shoff = offsetof(struct linked, sections);
	image->header.e_shentsize = sizeof(image->sections[0]);
	image->header.e_shnum = 2;
	image->sections[1].sh_type = SHT_PROGBITS;
	image->sections[1].sh_offset = offsetof(struct linked, text);
	image->sections[1].sh_size = length;
	memcpy(image->text, text, length);
	*ret_size = sizeof(*image) + length;
	return image;
}

const char *link_text(const void *image)
{
	const struct linked *linked = image;

	return linked->header.e_machine == 190 && linked->header.e_shoff == offsetof(struct linked, sections)
		       ? linked->text
		       : NULL;
}

/* A real driver does not survive it that two threads use a linker at once, or that another than its maker does. */
enum { LINK_USERS = 64 };
static _Atomic uintptr_t link_users[LINK_USERS];

static void link_begin(CUlinkState state)
{
	for (int i = 0; i < LINK_USERS; i++)
		if (state && link_users[i] == (uintptr_t)state)
			abort();
	if (object_is(state, OBJECT_LINK) && !pthread_equal(state->maker, pthread_self()))
		abort();
	for (int i = 0; i < LINK_USERS; i++) {
		uintptr_t nobody = 0;

		if (atomic_compare_exchange_strong(&link_users[i], &nobody, (uintptr_t)state))
			break;
	}
	(void)usleep(100);
}

static void link_end(const CUlinkState *state)
{
	for (int i = 0; i < LINK_USERS; i++)
		if (link_users[i] == (uintptr_t)*state)
			link_users[i] = 0;
}

#define LINK_USE(state)                                                              \
	const CUlinkState used __attribute__((cleanup(link_end), unused)) = (state); \
	link_begin(used)

CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *ret)
{
	CUcontext context;
	CUlinkState state;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || (count && (!options || !values)) || count > 16, CUDA_ERROR_INVALID_VALUE);
	state = object_new(OBJECT_LINK, sizeof(*state), context);
	state->maker = pthread_self();
	state->option_count = count;
	state->values = values;
	if (count)
		memcpy(state->options, options, count * sizeof(*options));
	jit_options(count, options, values, &state->info, &state->error);
	*ret = state;
	LEAVE(CUDA_SUCCESS);
}

static void link_explain(CUlinkState state, const char *text)
{
	CUmodule module = object_new(OBJECT_MODULE, sizeof(*module), state->object.context);

	(void)ptx_parse(text, module, &state->error);
	module_free(module);
}

/* Of each text but the first, only what follows the line with the address size. */
static CUresult link_append(CUlinkState state, const char *text)
{
	const char *rest =
		state->length && strstr(text, ".address_size") ? strchr(strstr(text, ".address_size"), '\n') : text;
	CUmodule module = object_new(OBJECT_MODULE, sizeof(*module), state->object.context);
	struct ptx_log quiet = {0};
	CUresult r = ptx_parse(text, module, &quiet);
	bool wrong = r && r != PTX_UNRESOLVED;
	char *all;

	module_free(module);
	if (r == CUDA_ERROR_INVALID_PTX)
		link_explain(state, text);
	if (wrong)
		return r;
	all = realloc(state->text, state->length + strlen(rest) + 2);
	if (!all)
		return CUDA_ERROR_OUT_OF_MEMORY;
	state->text = all;
	memcpy(all + state->length, rest, strlen(rest) + 1);
	state->length += strlen(rest);
	memcpy(all + state->length, "\n", 2);
	state->length++;
	return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name, unsigned count,
			  int *options, void **values)
{
	CUcontext context;
	CUresult r;
	char *text;

	(void)name;
	(void)options;
	(void)values;
	(void)count;
	LINK_USE(state);
	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(state, OBJECT_LINK), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!data || !size || type < 0 || type > 5, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(type != LINK_PTX && type != LINK_CUBIN, CUDA_ERROR_INVALID_IMAGE);
	if (type == LINK_CUBIN)
		LEAVE(memcmp(data, "\177ELF", 4) == 0 && link_text(data) ? link_append(state, link_text(data))
									 : CUDA_ERROR_INVALID_IMAGE);
	object_enter(state);
	module_compile(state->object.context);
	object_leave(state);
	text = strndup(data, size);
	LEAVE_IF(!text, CUDA_ERROR_OUT_OF_MEMORY);
	r = link_append(state, text);
	free(text);
	LEAVE(r);
}

CUresult cuLinkAddFile_v2(CUlinkState state, int type, const char *path, unsigned count, int *options, void **values)
{
	void *text;
	size_t size;
	CUresult r = module_read_file(path, &text, &size);

	if (r)
		return path && object_is(state, OBJECT_LINK) && !state->image ? CUDA_ERROR_FILE_NOT_FOUND
									      : CUDA_ERROR_INVALID_VALUE;
	r = cuLinkAddData_v2(state, type, text, size, path, count, options, values);
	free(text);
	return r;
}

CUresult cuLinkComplete(CUlinkState state, void **ret, size_t *ret_size)
{
	CUcontext context;
	CUmodule module;
	CUresult r;

	LINK_USE(state);
	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(state, OBJECT_LINK), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!ret || !ret_size || !state->text, CUDA_ERROR_INVALID_VALUE);
	module = object_new(OBJECT_MODULE, sizeof(*module), context);
	r = ptx_parse(state->text, module, &state->error);
	module_free(module);
	jit_report(state->option_count, state->options, state->values, &state->info, &state->error);
	LEAVE_IF(r, r);
	free(state->image);
	state->image = link_image(state->text, ret_size);
	*ret = state->image;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuLinkDestroy(CUlinkState state)
{
	CUcontext context;

	LINK_USE(state);
	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(state, OBJECT_LINK), CUDA_ERROR_INVALID_HANDLE);
	free(state->text);
	free(state->image);
	object_free(state);
	object_tell_late();
	LEAVE(CUDA_SUCCESS);
}
