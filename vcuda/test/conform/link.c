/* SPDX-License-Identifier: Apache-2.0 */

/* The linker: a function of one text calls one of another. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { ERROR_LOG = 5, ERROR_LOG_SIZE = 6, PTX = 1 };

#define HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"

static char caller[] = HEAD ".extern .func (.param .u32 result) twice(.param .u32 x);\n"
			    ".visible .entry linked(.param .u64 out, .param .u32 number)\n"
			    "{\n"
			    "	.reg .b32 %x;\n"
			    "	.reg .b64 %a;\n"
			    "	ld.param.u64 %a, [out];\n"
			    "	ld.param.u32 %x, [number];\n"
			    "	{\n"
			    "	.param .u32 given;\n"
			    "	.param .u32 back;\n"
			    "	st.param.u32 [given], %x;\n"
			    "	call (back), twice, (given);\n"
			    "	ld.param.u32 %x, [back];\n"
			    "	}\n"
			    "	st.u32 [%a], %x;\n"
			    "	ret;\n"
			    "}\n";
static char callee[] = HEAD ".visible .func (.param .u32 result) twice(.param .u32 x)\n"
			    "{\n"
			    "	.reg .b32 %x;\n"
			    "	ld.param.u32 %x, [x];\n"
			    "	add.u32 %x, %x, %x;\n"
			    "	st.param.u32 [result], %x;\n"
			    "	ret;\n"
			    "}\n";
static char wrong[] = HEAD ".visible .entry wrong()\n{\n\tnonsense.u32 %x;\n\tret;\n}\n";

static CUresult link_add(CUlinkState state, char *text)
{
	return cu.cuLinkAddData_v2(state, PTX, text, strlen(text) + 1, "text", 0, NULL, NULL);
}

static void link_two(void)
{
	CUdeviceptr out = check_alloc(4);
	CUlinkState state = NULL;
	CUmodule loaded = NULL;
	CUfunction function = NULL;
	uint32_t number = 21;
	void *image = NULL;
	size_t size = 0;

	OK(cu.cuLinkCreate_v2(0, NULL, NULL, &state));
	OK(link_add(state, caller));
	OK(link_add(state, callee));
	OK(cu.cuLinkComplete(state, &image, &size));
	TRUE(image && size > 64 && memcmp(image, "\177ELF", 4) == 0);
	OK(cu.cuModuleLoadData(&loaded, image));
	OK(cu.cuLinkDestroy(state));
	OK(cu.cuModuleGetFunction(&function, loaded, "linked"));
	OK(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, PARAMETERS(&out, &number), NULL));
	IS(42, check_word(out));
	OK(cu.cuModuleUnload(loaded));
	OK(cu.cuMemFree_v2(out));
}

static void link_unresolved(void)
{
	char log[4096] = "";
	int options[] = {ERROR_LOG, ERROR_LOG_SIZE};
	void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
	CUlinkState state = NULL;
	void *image = NULL;
	size_t size = 0;

	OK(cu.cuLinkCreate_v2(2, options, values, &state));
	OK(link_add(state, caller));
	NOTE(cu.cuLinkComplete(state, &image, &size));
	TRUE(strstr(log, "twice") != NULL);
	OK(cu.cuLinkDestroy(state));
}

static void link_wrong(void)
{
	char log[4096] = "";
	int options[] = {ERROR_LOG, ERROR_LOG_SIZE};
	void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
	CUlinkState state = NULL;
	void *image = NULL;
	size_t size = 0;
	CUresult added, completed;

	OK(cu.cuLinkCreate_v2(2, options, values, &state));
	added = link_add(state, wrong);
	completed = cu.cuLinkComplete(state, &image, &size);
	TRUE(added != 0 || completed != 0);
	NOTE(added);
	TRUE(strstr(log, "nonsense") != NULL);
	OK(cu.cuLinkDestroy(state));
}

static void link_file(void)
{
	char path[] = "/tmp/conform-XXXXXX";
	int fd = mkstemp(path);
	CUlinkState state = NULL;
	void *image = NULL;
	size_t size = 0;

	NOTE(write(fd, callee, strlen(callee)) == (ssize_t)strlen(callee));
	(void)close(fd);
	OK(cu.cuLinkCreate_v2(0, NULL, NULL, &state));
	OK(link_add(state, caller));
	OK(cu.cuLinkAddFile_v2(state, PTX, path, 0, NULL, NULL));
	OK(cu.cuLinkComplete(state, &image, &size));
	NOTE(cu.cuLinkAddFile_v2(state, PTX, "/nonexistent/file.ptx", 0, NULL, NULL));
	OK(cu.cuLinkDestroy(state));
	(void)unlink(path);
}

static void link_errors(void)
{
	CUlinkState state = NULL;

	IS(1, cu.cuLinkCreate_v2(0, NULL, NULL, NULL));
	OK(cu.cuLinkCreate_v2(0, NULL, NULL, &state));
	NOTE(cu.cuLinkAddData_v2(state, 99, callee, sizeof(callee), "x", 0, NULL, NULL));
	NOTE(cu.cuLinkAddData_v2(state, PTX, NULL, 5, "x", 0, NULL, NULL));
	OK(cu.cuLinkDestroy(state));
}

static void link_no_file(void)
{
	CUlinkState state = NULL;

	OK(cu.cuLinkCreate_v2(0, NULL, NULL, &state));
	NOTE(cu.cuLinkAddFile_v2(state, PTX, "/nonexistent/file.ptx", 0, NULL, NULL));
	NOTE(cu.cuLinkAddFile_v2(state, PTX, NULL, 0, NULL, NULL));
	OK(cu.cuLinkDestroy(state));
}

static void *link_many(void *argument)
{
	long failed = 0;

	(void)argument;
	(void)cu.cuCtxSetCurrent(context);
	for (int i = 0; i < 20; i++) {
		CUlinkState state = NULL;
		void *image = NULL;
		size_t size = 0;

		failed += cu.cuLinkCreate_v2(0, NULL, NULL, &state) != 0;
		failed += link_add(state, caller) != 0;
		failed += link_add(state, callee) != 0;
		failed += cu.cuLinkComplete(state, &image, &size) != 0;
		failed += cu.cuLinkDestroy(state) != 0;
	}
	return (void *)failed;
}

static void link_threads(void)
{
	enum { THREADS = 6 };
	pthread_t threads[THREADS];
	long failed = 0;
	void *more;

	for (int i = 0; i < THREADS; i++)
		(void)pthread_create(&threads[i], NULL, link_many, NULL);
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(threads[i], &more);
		failed += (long)more;
	}
	IS(0, failed);
}

const struct check link_checks[] = {
	{"two texts", link_two, false},
	{"a function that is nowhere", link_unresolved, false},
	{"a text with an error", link_wrong, false},
	{"a file", link_file, false},
	{"nonsense", link_errors, true},
	{"a file that is not there", link_no_file, true},
	{"in six threads at once", link_threads, true},
	END,
};
