/* SPDX-License-Identifier: Apache-2.0 */

/* Modules and functions. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { ERROR_LOG = 5, ERROR_LOG_SIZE = 6 };

#define HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"

static const char wrong[] = HEAD ".visible .entry wrong()\n{\n\tnonsense.u32 %x;\n\tret;\n}\n";

static void code_bad_image(void)
{
	static const char text[64] = "this is no image at all";
	static const uint32_t zeros[64];
	CUmodule loaded = NULL;

	NOTE(cu.cuModuleLoadData(&loaded, text));
	NOTE(cu.cuModuleLoadData(&loaded, zeros));
	IS(1, cu.cuModuleLoadData(NULL, kernels_ptx));
	NOTE(cu.cuModuleLoadData(&loaded, NULL));
}

static void code_bad_elf(void)
{
	static const unsigned char elf[256] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	CUmodule loaded = NULL;

	NOTE(cu.cuModuleLoadData(&loaded, elf));
}

static void code_bad_ptx(void)
{
	char log[4096] = "";
	int options[] = {ERROR_LOG, ERROR_LOG_SIZE};
	void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
	CUmodule loaded = NULL;

	IS(218, cu.cuModuleLoadData(&loaded, wrong));
	IS(218, cu.cuModuleLoadDataEx(&loaded, wrong, 2, options, values));
	TRUE(strstr(log, "nonsense") != NULL);
	TRUE(strlen(log) > 20);
	OK(cu.cuCtxSynchronize());
}

static void code_missing(void)
{
	CUfunction function = NULL;
	CUdeviceptr pointer = 0;
	size_t size = 0;

	check_load();
	IS(500, cu.cuModuleGetFunction(&function, module, "missing"));
	IS(500, cu.cuModuleGetGlobal_v2(&pointer, &size, module, "missing"));
	IS(1, cu.cuModuleGetFunction(&function, module, ""));
	IS(1, cu.cuModuleGetFunction(NULL, module, "nop"));
	IS(1, cu.cuModuleGetFunction(&function, module, NULL));
	NOTE(cu.cuModuleGetFunction(&function, NULL, "nop"));
}

static void code_global(void)
{
	CUdeviceptr pointer = 0;
	size_t size = 0;

	check_load();
	OK(cu.cuModuleGetGlobal_v2(&pointer, &size, module, "counter"));
	IS(4, (long long)size);
	IS(7, check_word(pointer));
	OK(cu.cuLaunchKernel(check_function("count"), 3, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	IS(7 + 96, check_word(pointer));
	OK(cu.cuMemsetD32_v2(pointer, 1, 1));
	OK(check_launch("count", 1, NULL, NULL));
	IS(2, check_word(pointer));
	OK(cu.cuModuleGetGlobal_v2(&pointer, &size, module, "buffer"));
	IS(1000, (long long)size);
	OK(cu.cuModuleGetGlobal_v2(NULL, &size, module, "table"));
	IS(16, (long long)size);
	OK(cu.cuModuleGetGlobal_v2(&pointer, NULL, module, "table"));
}

static void code_constant(void)
{
	CUdeviceptr out = check_alloc(16), table = 0;
	uint32_t words[4] = {0}, other = 55;

	check_load();
	OK(check_launch("table_copy", 1, NULL, PARAMETERS(&out)));
	OK(cu.cuMemcpyDtoH_v2(words, out, 16));
	IS(11, words[0]);
	IS(44, words[3]);
	OK(cu.cuModuleGetGlobal_v2(&table, NULL, module, "table"));
	OK(cu.cuMemcpyHtoD_v2(table + 4, &other, 4));
	OK(check_launch("table_copy", 1, NULL, PARAMETERS(&out)));
	IS(55, check_word(out + 4));
	OK(cu.cuMemFree_v2(out));
}

static void code_unload(void)
{
	CUmodule loaded = NULL;
	CUfunction function = NULL;

	OK(cu.cuModuleLoadData(&loaded, kernels_ptx));
	OK(cu.cuModuleGetFunction(&function, loaded, "nop"));
	OK(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cu.cuModuleUnload(loaded));
	OK(cu.cuCtxSynchronize());
	NOTE(cu.cuModuleUnload(NULL));
}

static void code_twice(void)
{
	CUmodule first = NULL, second = NULL;
	CUdeviceptr a = 0, b = 0;

	OK(cu.cuModuleLoadData(&first, kernels_ptx));
	OK(cu.cuModuleLoadDataEx(&second, kernels_ptx, 0, NULL, NULL));
	TRUE(first != second);
	OK(cu.cuModuleGetGlobal_v2(&a, NULL, first, "counter"));
	OK(cu.cuModuleGetGlobal_v2(&b, NULL, second, "counter"));
	TRUE(a != b);
	OK(cu.cuModuleUnload(first));
	IS(7, check_word(b));
	OK(cu.cuModuleUnload(second));
}

static void code_file(void)
{
	char path[] = "/tmp/conform-XXXXXX";
	int fd = mkstemp(path);
	CUmodule loaded = NULL;
	CUfunction function = NULL;

	NOTE(write(fd, kernels_ptx, strlen(kernels_ptx)) == (ssize_t)strlen(kernels_ptx));
	(void)close(fd);
	OK(cu.cuModuleLoad(&loaded, path));
	OK(cu.cuModuleGetFunction(&function, loaded, "nop"));
	OK(cu.cuModuleUnload(loaded));
	(void)unlink(path);
	IS(301, cu.cuModuleLoad(&loaded, "/nonexistent/file.ptx"));
	IS(1, cu.cuModuleLoad(&loaded, NULL));
}

/* A fatbin as nvcc makes it, with PTX in it. */
struct code_fatbin {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
	uint16_t kind, entry_version;
	uint32_t entry_size;
	uint64_t payload;
	uint32_t compressed, unknown;
	uint16_t minor, major;
	uint32_t architecture, name, name_length;
	uint64_t flags, zero, decompressed, options;
	char text[1024];
};

static const char small_ptx[] = HEAD ".visible .entry nop()\n{\n\tret;\n}\n";

static void code_fatbin(void)
{
	static struct code_fatbin fatbin = {.magic = 0xba55ed50,
					    .version = 1,
					    .header_size = 16,
					    .size = 72 + 1024,
					    .kind = 1,
					    .entry_version = 0x101,
					    .entry_size = 72,
					    .payload = 1024,
					    .minor = 0,
					    .major = 6,
					    .unknown = 64,
					    .architecture = 50,
					    .flags = 0x11};
	CUmodule loaded = NULL;
	CUfunction function = NULL;

	memcpy(fatbin.text, small_ptx, sizeof(small_ptx));
	OK(cu.cuModuleLoadFatBinary(&loaded, &fatbin));
	OK(cu.cuModuleGetFunction(&function, loaded, "nop"));
	OK(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuModuleUnload(loaded));
	OK(cu.cuModuleLoadData(&loaded, &fatbin));
	OK(cu.cuModuleUnload(loaded));
}

static void code_parameters(void)
{
	CUfunction function = check_function("saxpy");
	size_t offset = 99, size = 99;

	for (size_t i = 0; i < 4; i++) {
		OK(cu.cuFuncGetParamInfo(function, i, &offset, &size));
		NOTE(offset);
		NOTE(size);
	}
	IS(1, cu.cuFuncGetParamInfo(function, 4, &offset, &size));
	IS(1, cu.cuFuncGetParamInfo(check_function("nop"), 0, &offset, &size));
	OK(cu.cuFuncGetParamInfo(check_function("structure4000"), 0, &offset, &size));
	NOTE(size);
	OK(cu.cuFuncGetParamInfo(check_function("structure12"), 1, &offset, NULL));
	NOTE(offset);
}

static void code_attributes(void)
{
	int value = -1;

	OK(cu.cuFuncGetAttribute(&value, 0, check_function("nop")));
	IS(1024, value);
	OK(cu.cuFuncGetAttribute(&value, 0, check_function("small")));
	IS(128, value);
	OK(cu.cuFuncGetAttribute(&value, 1, check_function("sharing")));
	NOTE(value);
	OK(cu.cuFuncGetAttribute(&value, 3, check_function("nop")));
	NOTE(value);
	OK(cu.cuFuncGetAttribute(&value, 5, check_function("nop")));
	NOTE(value);
	OK(cu.cuFuncGetAttribute(&value, 8, check_function("nop")));
	NOTE(value);
	IS(1, cu.cuFuncGetAttribute(&value, 99, check_function("nop")));
	IS(1, cu.cuFuncGetAttribute(NULL, 0, check_function("nop")));
}

static void code_set_attributes(void)
{
	CUfunction function = check_function("reverse");
	int value = -1;

	OK(cu.cuFuncSetAttribute(function, 8, 65536));
	OK(cu.cuFuncGetAttribute(&value, 8, function));
	NOTE(value);
	IS(1, cu.cuFuncSetAttribute(function, 8, 1 << 30));
	OK(cu.cuFuncSetAttribute(function, 9, 50));
	OK(cu.cuFuncGetAttribute(&value, 9, function));
	NOTE(value);
	IS(1, cu.cuFuncSetAttribute(function, 0, 5));
	IS(1, cu.cuFuncSetAttribute(function, 9, 101));
	OK(cu.cuFuncSetCacheConfig(function, 1));
	NOTE(cu.cuFuncSetCacheConfig(function, 9));
	OK(cu.cuFuncSetSharedMemConfig(function, 0));
	NOTE(cu.cuFuncSetSharedMemConfig(function, 9));
}

static void code_names(void)
{
	CUfunction function = check_function("vectorAdd");
	const char *name = NULL;
	CUmodule of = NULL;
	int loaded = 99;

	OK(cu.cuFuncGetName(&name, function));
	got_text(name);
	OK(cu.cuFuncGetModule(&of, function));
	TRUE(of == module);
	OK(cu.cuFuncLoad(function));
	OK(cu.cuFuncIsLoaded(&loaded, function));
	IS(1, loaded);
}

static void code_enumerate(void)
{
	CUfunction functions[64] = {NULL};
	CUmodule loaded = NULL;
	const char *name = NULL;
	unsigned count = 0;

	OK(cu.cuModuleLoadData(&loaded, small_ptx));
	OK(cu.cuModuleGetFunctionCount(&count, loaded));
	IS(1, count);
	OK(cu.cuModuleEnumerateFunctions(functions, 1, loaded));
	OK(cu.cuFuncGetName(&name, functions[0]));
	got_text(name);
	OK(cu.cuModuleUnload(loaded));
	check_load();
	OK(cu.cuModuleGetFunctionCount(&count, module));
	NOTE(count);
}

static void code_loading_mode(void)
{
	int mode = 0;

	OK(cu.cuModuleGetLoadingMode(&mode));
	TRUE(mode == 1 || mode == 2);
}

const struct check code_checks[] = {
	{"images that are none", code_bad_image, true},
	{"an ELF that is none", code_bad_elf, true},
	{"PTX with an error, and what is said of it", code_bad_ptx, false},
	{"names that are not there", code_missing, true},
	{"variables", code_global, false},
	{"constants", code_constant, false},
	{"unloading after a launch", code_unload, true},
	{"loaded twice", code_twice, false},
	{"from a file", code_file, false},
	{"from a fatbin", code_fatbin, true},
	{"parameters", code_parameters, false},
	{"attributes of a function", code_attributes, false},
	{"setting attributes", code_set_attributes, true},
	{"name and module of a function", code_names, false},
	{"functions of a module", code_enumerate, false},
	{"loading mode", code_loading_mode, false},
	END,
};
