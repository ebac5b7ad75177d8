/* SPDX-License-Identifier: Apache-2.0 */

/* What kernels print. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { TEXT_MAX = 1 << 20 };

/* say: "kernel says VALUE" of each thread; claim: what assert() does. */
static const char kernels[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);\n"
	".extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function,\n"
	"	.param .b64 size);\n"
	".global .align 1 .b8 format[16] = {107, 101, 114, 110, 101, 108, 32, 115, 97, 121, 115, 32, 37, 117, 10, 0};\n"
	".global .align 1 .b8 claimed[6] = {99, 108, 97, 105, 109, 0};\n"
	".global .align 1 .b8 file[5] = {102, 105, 108, 101, 0};\n"
	".global .align 1 .b8 function[9] = {102, 117, 110, 99, 116, 105, 111, 110, 0};\n"
	".visible .entry say(.param .u32 value)\n"
	"{\n"
	"	.local .align 4 .b8 list[4];\n"
	"	.reg .b64 %l, %a, %f;\n"
	"	.reg .b32 %v, %r;\n"
	"	ld.param.u32 %v, [value];\n"
	"	mov.u64 %l, list;\n"
	"	st.local.u32 [%l], %v;\n"
	"	cvta.local.u64 %a, %l;\n"
	"	mov.u64 %f, format;\n"
	"	cvta.global.u64 %f, %f;\n"
	"	.param .b64 first;\n"
	"	.param .b64 second;\n"
	"	.param .b32 back;\n"
	"	st.param.b64 [first], %f;\n"
	"	st.param.b64 [second], %a;\n"
	"	call.uni (back), vprintf, (first, second);\n"
	"	ret;\n"
	"}\n"
	".visible .entry claim()\n"
	"{\n"
	"	.reg .b64 %m, %f, %n, %s;\n"
	"	.reg .b32 %l;\n"
	"	mov.u64 %m, claimed;\n"
	"	cvta.global.u64 %m, %m;\n"
	"	mov.u64 %f, file;\n"
	"	cvta.global.u64 %f, %f;\n"
	"	mov.u64 %n, function;\n"
	"	cvta.global.u64 %n, %n;\n"
	"	mov.u32 %l, 7;\n"
	"	mov.u64 %s, 1;\n"
	"	.param .b64 first;\n"
	"	.param .b64 second;\n"
	"	.param .b32 third;\n"
	"	.param .b64 fourth;\n"
	"	.param .b64 fifth;\n"
	"	st.param.b64 [first], %m;\n"
	"	st.param.b64 [second], %f;\n"
	"	st.param.b32 [third], %l;\n"
	"	st.param.b64 [fourth], %n;\n"
	"	st.param.b64 [fifth], %s;\n"
	"	call.uni __assertfail, (first, second, third, fourth, fifth);\n"
	"	ret;\n"
	"}\n";

static CUfunction print_function(const char *name)
{
	static CUmodule own;
	CUfunction function = NULL;

	if ((!own && cu.cuModuleLoadData(&own, kernels)) || cu.cuModuleGetFunction(&function, own, name))
		got_text("(no kernel)");
	return function;
}

static void print_say(uint32_t value, unsigned threads, CUstream stream)
{
	OK(cu.cuLaunchKernel(print_function("say"), 1, 1, 1, threads, 1, 1, 0, stream, PARAMETERS(&value), NULL));
}

/* ---- what is written where this process writes ---- */

static struct {
	int fd, was;
	FILE *file, *to;
	char text[TEXT_MAX];
} caught;

static void print_catch(int fd)
{
	caught.fd = fd;
	caught.to = fd == STDOUT_FILENO ? stdout : stderr;
	(void)fflush(caught.to);
	caught.file = tmpfile();
	caught.was = dup(fd);
	if (!caught.file || caught.was < 0 || dup2(fileno(caught.file), fd) < 0)
		got_text("(nothing caught)");
}

/* Return: what has been written up to now. */
static const char *print_caught(void)
{
	ssize_t bytes;

	(void)fflush(caught.to);
	bytes = pread(fileno(caught.file), caught.text, TEXT_MAX - 1, 0);
	caught.text[bytes > 0 ? bytes : 0] = '\0';
	return caught.text;
}

static void print_release(void)
{
	(void)fflush(caught.to);
	(void)dup2(caught.was, caught.fd);
	(void)close(caught.was);
	(void)fclose(caught.file);
}

static bool print_is(const char *text)
{
	return strcmp(print_caught(), text) == 0;
}

/* ---- checks ---- */

/* In the order of the program, whatever it waits for. */
static void print_ordered(void)
{
	CUdeviceptr device = check_alloc(4);
	CUevent event = NULL;
	bool is[5];

	OK(cu.cuEventCreate(&event, 0));
	print_catch(STDOUT_FILENO);
	printf("first\n");
	print_say(1, 2, NULL);
	OK(cu.cuCtxSynchronize());
	is[0] = print_is("first\nkernel says 1\nkernel says 1\n");
	printf("second\n");
	print_say(2, 1, NULL);
	OK(cu.cuStreamSynchronize(NULL));
	is[1] = print_is("first\nkernel says 1\nkernel says 1\nsecond\nkernel says 2\n");
	print_say(3, 1, NULL);
	OK(cu.cuEventRecord(event, NULL));
	OK(cu.cuEventSynchronize(event));
	is[2] = strstr(print_caught(), "says 2\nkernel says 3\n");
	print_say(4, 1, NULL);
	(void)check_word(device);
	is[3] = strstr(print_caught(), "says 3\nkernel says 4\n");
	print_say(5, 1, NULL);
	OK(cu.cuMemFree_v2(device));
	is[4] = strstr(print_caught(), "says 4\nkernel says 5\n");
	print_release();
	for (int i = 0; i < 5; i++)
		TRUE(is[i]);
	OK(cu.cuEventDestroy_v2(event));
}

static void print_stream(void)
{
	CUstream stream = NULL;
	bool is;

	OK(cu.cuStreamCreate(&stream, 1));
	print_catch(STDOUT_FILENO);
	print_say(6, 1, stream);
	OK(cu.cuStreamSynchronize(stream));
	is = print_is("kernel says 6\n");
	print_release();
	TRUE(is);
	OK(cu.cuStreamDestroy_v2(stream));
}

/* More than an answer of any kind has room for. */
static void print_much(void)
{
	enum { LINES = 20000, LINE = 18 };
	size_t bytes;
	bool whole = true;

	print_catch(STDOUT_FILENO);
	for (int i = 0; i < LINES / 1000; i++)
		print_say(10000, 1000, NULL);
	OK(cu.cuCtxSynchronize());
	bytes = strlen(print_caught());
	for (size_t i = 0; i + LINE <= bytes; i += LINE)
		whole = whole && strncmp(caught.text + i, "kernel says 10000\n", LINE) == 0;
	print_release();
	NOTE(bytes);
	TRUE(whole);
}

static void print_claim(void)
{
	bool says, is_out;

	(void)print_function("claim");
	print_catch(STDERR_FILENO);
	OK(cu.cuLaunchKernel(print_function("claim"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	IS(710, cu.cuCtxSynchronize());
	says = strstr(print_caught(), "file:7: function: block: [0,0,0], thread: [0,0,0] Assertion `claim` failed.\n");
	is_out = strstr(caught.text, "kernel says");
	print_release();
	TRUE(says);
	TRUE(!is_out);
	IS(710, cu.cuCtxSynchronize());
}

const struct check print_checks[] = {
	{"in the program's order", print_ordered, false},
	{"of a stream", print_stream, false},
	{"much", print_much, false},
	{"a claim that does not hold", print_claim, true},
	END,
};
