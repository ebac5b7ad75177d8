/* SPDX-License-Identifier: Apache-2.0 */

#include "capture.h"
#include "unit.h"

#include <errno.h>

#include "hooks/internal.h"
#include "lib/context.h"

static struct ctr_gpu_context *context;

static const char *failure(const char *sentence)
{
	int status;

	(void)err_set(&context->err, CTR_GPU_E_NO_ADAPTER, "%s", sentence);
	capture_begin(STDERR_FILENO);
	status = report_error_failure(context, CTR_GPU_E_NO_ADAPTER);
	(void)capture_end();
	assert_int_equal(status, 1);
	return capture_text;
}

static void lines_of_a_failure_are_indented(void **state)
{
	(void)state;
	assert_string_equal(failure("one line"), "ctr-gpu-hook: [E_NO_ADAPTER] one line\n");
	(void)err_set_advised(&context->err, CTR_GPU_E_NO_ADAPTER, ("what"), ("where"));
	(void)err_advise(&context->err, CTR_GPU_E_NO_ADAPTER, "next");
	capture_begin(STDERR_FILENO);
	(void)report_error_failure(context, CTR_GPU_E_NO_ADAPTER);
	assert_string_equal(capture_end(), "ctr-gpu-hook: [E_NO_ADAPTER] what\n    where\n    next\n");
}

static void an_error_before_the_library(void **state)
{
	(void)state;
	capture_begin(STDERR_FILENO);
	assert_int_equal(report_error_step("read the container's state", -EFBIG), 1);
	assert_string_equal(capture_end(), "ctr-gpu-hook: [EFBIG] cannot read the container's state: File too large\n");
}

/* Sentences quote what an image says. */
static void a_long_sentence_fits(void **state)
{
	static char sentence[8000];

	(void)state;
	memset(sentence, 'x', sizeof(sentence) - 1);
	(void)failure(sentence);
	assert_true(strlen(capture_text) > 200 && strlen(capture_text) < 2048);
	assert_int_equal(capture_text[strlen(capture_text) - 1], '\n');
}

/* Each line gets four blanks, so a sentence of the largest size may grow to more than there is room for. */
static void many_lines_are_cut_off(void **state)
{
	(void)state;
	(void)err_set(&context->err, CTR_GPU_E_NO_ADAPTER, "%s", "");
	for (int i = 0; i < ERR_TEXT_MAX; i++)
		(void)err_advise(&context->err, CTR_GPU_E_NO_ADAPTER, "x");
	assert_int_equal(strlen(ctr_gpu_context_message(context)), ERR_TEXT_MAX);
	capture_begin(STDERR_FILENO);
	(void)report_error_failure(context, CTR_GPU_E_NO_ADAPTER);
	(void)capture_end();
	assert_between(strlen(capture_text), 2000, 2047);
	assert_int_equal(capture_text[strlen(capture_text) - 1], '\n');
}

static void messages_have_the_name_of_the_program(void **state)
{
	(void)state;
	trace_begin("nvidia-cdi-hook");
	capture_begin(STDERR_FILENO);
	(void)report_error_step("begin", -ENOMEM);
	trace_begin("ctr-gpu-hook");
	assert_string_equal(capture_end(), "nvidia-cdi-hook: [ENOMEM] cannot begin: Cannot allocate memory\n");
}

/* Only words that an image may have brought along let a container start without. */
static void a_missing_gpu_is_no_failure(void **state)
{
	struct ctr_gpu_request *request;
	struct ctr_gpu_plan *plan = NULL;

	(void)state;
	assert_int_equal(ctr_gpu_request_new(context, &request), 0);
	capture_begin(STDERR_FILENO);
	assert_int_equal(
		report_error_go_without(context, request, CTR_GPU_METHOD_HOOK, true, CTR_GPU_E_NO_DEVICE, &plan),
		CTR_GPU_E_NO_DEVICE);
	assert_null(plan);
	assert_int_equal(
		ctr_gpu_request_read_environment(request, (const char *const[]){"NVIDIA_VISIBLE_DEVICES=all", NULL}),
		0);
	assert_int_equal(
		report_error_go_without(context, request, CTR_GPU_METHOD_HOOK, false, CTR_GPU_E_NO_DEVICE, &plan), 0);
	assert_string_equal(capture_end(), "");
	assert_non_null(plan);
	assert_true(ctr_gpu_request_is_void(request));
	ctr_gpu_plan_unref(plan);
	ctr_gpu_request_unref(request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_a_failure_are_indented),
		cmocka_unit_test(an_error_before_the_library),
		cmocka_unit_test(a_long_sentence_fits),
		cmocka_unit_test(many_lines_are_cut_off),
		cmocka_unit_test(messages_have_the_name_of_the_program),
		cmocka_unit_test(a_missing_gpu_is_no_failure),
	};

	if (ctr_gpu_context_new(&context) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
