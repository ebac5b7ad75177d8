/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Both sides of a call: the client's functions that are nothing but a call of the server, and the server's, one for
 * each operation.
 */

#include <string.h>

#include "vcuda/generate/definition.h"

/* The client's functions that are nothing but a call of the server. */

static void stub_print_words(const struct function *f)
{
	printf("\tconst uint64_t words[] = {");
	for (int i = 0; i < f->count; i++) {
		const struct argument *a = &f->argument[i];
		const char *name = argument_name(a);

		if (argument_is(a, "STRING"))
			printf("strlen(%s), ", name);
		else if (argument_is(a, "IN"))
			printf("sizeof(*%s), ", name);
		else if (argument_is(a, "HS"))
			printf("%s * sizeof(*%s), ", a->field[2], name);
		else if (argument_is(a, "H H0") && strcmp(a->field[0], "CONTEXT") == 0)
			printf("context_handle(%s), ", name);
		else if (argument_is(a, "V DEVICE H H0 DROP STREAM AT"))
			printf("(uint64_t)%s, ", name);
		else if (argument_is(a, "P"))
			definition_stop("P in a function that is generated", f->name);
	}
	printf("0};\n");
	if (function_count_kind(f, "STRING IN HS") == 0)
		return;
	printf("\tconst struct call_part parts[] = {");
	for (int i = 0; i < f->count; i++) {
		const char *name = argument_name(&f->argument[i]);

		if (argument_is(&f->argument[i], "STRING"))
			printf("{%s, strlen(%s)}, ", name, name);
		else if (argument_is(&f->argument[i], "IN"))
			printf("{%s, sizeof(*%s)}, ", name, name);
		else if (argument_is(&f->argument[i], "HS"))
			printf("{%s, %s * sizeof(*%s)}, ", name, f->argument[i].field[2], name);
	}
	printf("};\n");
}

/* What a caller may not pass: no place for a result; in a call without a reply, a handle of another kind. */
static void stub_print_checks(const struct function *f)
{
	for (int i = 0; i < f->count; i++) {
		const struct argument *a = &f->argument[i];

		if (argument_is(a, "OUT NEW STRING IN NAME"))
			printf("\tif (!%s)\n\t\treturn call_fail(CUDA_ERROR_INVALID_VALUE);\n", argument_name(a));
		if (argument_is(a, "HS"))
			printf("\tif ((%s && !%s) || %s > CALL_HANDLES)\n"
			       "\t\treturn call_fail(CUDA_ERROR_INVALID_VALUE);\n",
			       a->field[2], argument_name(a), a->field[2]);
		if (argument_is(a, "H") && function_is(f, "async"))
			printf("\tif (wire_handle_type(%s) != WIRE_%s)\n"
			       "\t\treturn call_fail(CUDA_ERROR_INVALID_%s);\n",
			       argument_name(a), a->field[0], strcmp(a->field[0], "EXEC") == 0 ? "VALUE" : "HANDLE");
		if (argument_is(a, "STREAM") && function_is(f, "async"))
			printf("\tif (!wire_is_stream(%s))\n"
			       "\t\treturn call_fail(CUDA_ERROR_INVALID_HANDLE);\n",
			       argument_name(a));
	}
}

/* Results lie one behind the other, each at a multiple of 8. */
static void stub_print_outs(const struct function *f)
{
	for (int i = 0; i < f->count; i++)
		if (argument_is(&f->argument[i], "OUT OUT0 NEW"))
			printf("\tstruct {\n\t\t_Alignas(8) %s value;\n\t} out_%s;\n",
			       argument_is(&f->argument[i], "NEW") ? "uint64_t" : f->argument[i].field[0],
			       argument_name(&f->argument[i]));
	printf("\tuint64_t out[0");
	for (int i = 0; i < f->count; i++)
		if (argument_is(&f->argument[i], "OUT OUT0 NEW"))
			printf(" + sizeof(out_%s) / 8", argument_name(&f->argument[i]));
	printf("], *next = out;\n");
}

static void stub_print_results(const struct function *f)
{
	for (int i = 0; i < f->count; i++) {
		const char *name = argument_name(&f->argument[i]);

		if (argument_is(&f->argument[i], "OUT OUT0 NEW"))
			printf("\tmemcpy(&out_%s, next, sizeof(out_%s));\n\tnext += sizeof(out_%s) / 8;\n"
			       "\tif (%s)\n\t\t*%s = out_%s.value;\n",
			       name, name, name, name, name, name);
	}
}

static void stub_print_body(const struct function *f)
{
	const int words = function_count_kind(f, "V DEVICE H H0 DROP STREAM AT STRING IN HS");
	const int parts = function_count_kind(f, "STRING IN HS");
	const int outs = function_count_kind(f, "OUT OUT0 NEW");
	char arguments[TEXT_MAX * 2];

	(void)snprintf(arguments, sizeof(arguments), "OP_%s, words, %d, %s, %d", f->name, words,
		       parts ? "parts" : "NULL", parts);
	if (outs)
		stub_print_outs(f);
	stub_print_checks(f);
	printf("\tif (true) {\n");
	stub_print_words(f);
	if (function_count_kind(f, "NAME")) {
		for (int i = 0; i < f->count; i++)
			if (argument_is(&f->argument[i], "NAME"))
				printf("\treturn call_text(%s, %s);\n", arguments, argument_name(&f->argument[i]));
		printf("\t}\n");
		return;
	}
	if (function_is(f, "async")) {
		printf("\tif (true");
		for (int i = 0; i < f->count; i++)
			if (argument_is(&f->argument[i], "AT"))
				printf(" && address_map_is_known(%s, %s, %s)", f->argument[i].field[0],
				       f->argument[i].field[1], f->argument[i].field[2]);
			else if (argument_is(&f->argument[i], "H") && strcmp(f->argument[i].field[0], "EVENT") == 0)
				printf(" && call_fits_stream(%s, stream)", argument_name(&f->argument[i]));
		printf(")\n\t\treturn call_async(%s);\n\treturn call_sync(%s, NULL, 0);\n\t}\n", arguments, arguments);
		return;
	}
	if (!outs) {
		printf("\treturn call_sync(%s, NULL, 0);\n\t}\n", arguments);
		return;
	}
	printf("\tCUresult r = call_sync(%s, out, sizeof(out));\n\tif (r)\n\t\treturn r;\n\t}\n", arguments);
	stub_print_results(f);
	printf("\t(void)next;\n\treturn CUDA_SUCCESS;\n");
}

/* The beginning that many functions share: who calls, in which context, and what may not be passed to any of them. */
static void stub_print_entry(const struct function *f)
{
	const bool self = argument_is(&f->enters, "SELF");
	const char *name = *function_entered(f) ? function_entered(f) : "entered";

	if (!f->enters.kind[0])
		return;
	printf("\tstruct %s *%s;\n\tCUresult r = %s(&%s);\n\n\tif (r)\n\t\treturn r;\n", self ? "thread" : "context",
	       name, self ? "call_enter" : "context_current", name);
	for (int i = 0; i < f->count; i++)
		if (argument_is(&f->argument[i], "OUT NEW STRING IN"))
			printf("\tif (!%s)\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n", argument_name(&f->argument[i]));
		else if (argument_is(&f->argument[i], "DEVICE"))
			printf("\tif (!client_device(%s))\n\t\treturn CUDA_ERROR_INVALID_DEVICE;\n",
			       argument_name(&f->argument[i]));
}

/* A call of the function with the twin's stream: the null stream is the thread's own. */
static void stub_print_twin(const struct function *f, const char *prefix, const char *suffix, bool own)
{
	const char *entered = strcmp(prefix, "on_") == 0 ? function_entered(f) : "";

	printf("\treturn %s%s%s(%s", prefix, f->name, suffix, entered);
	for (int i = 0; i < f->count; i++) {
		const struct argument *a = &f->argument[i];

		printf("%s", i || *entered ? ", " : "");
		if (own && argument_is(a, "STREAM"))
			printf("%s ? %s : WIRE_STREAM_THREAD", argument_name(a), argument_name(a));
		else if (own && strcmp(a->field[0], "const CUlaunchConfig *") == 0)
			printf("launch_config_of_thread(%s, &copy)", argument_name(a));
		else
			printf("%s", argument_name(a));
	}
	if (function_takes_stream(f))
		printf("%s%s", f->count ? ", " : "", own ? "WIRE_STREAM_THREAD" : "WIRE_STREAM_NULL");
	printf(");\n");
}

static void stub_print(const struct function *f)
{
	if (function_is_on(f)) {
		function_print_head("", f, "", false);
		printf("\n{\n");
		stub_print_entry(f);
		stub_print_twin(f, "on_", "", false);
		printf("}\n");
	} else if (function_is(f, "sync async server")) {
		function_print_head("", f, "", false);
		printf("\n{\n");
		stub_print_body(f);
		printf("}\n");
	}
	if (!function_has_twin(f))
		return;
	function_print_twin_head(f);
	printf("\n{\n");
	if (strstr(f->name, "cuLaunchKernelEx"))
		printf("\tCUlaunchConfig copy;\n\n");
	stub_print_entry(f);
	stub_print_twin(f, function_is_on(f) ? "on_" : "", "", true);
	printf("}\n");
}

void stub_print_all(void)
{
	for (int i = 0; i < function_count; i++) {
		const struct function *f = &functions[i];

		if (function_is(f, "refused")) {
			printf("%s%s(void)\n{\n\treturn %s(\"%s\");\n}\n", function_result(f), f->name,
			       function_is_nvml(f) ? "nvml_session_refuse" : "call_refuse", f->name);
		} else if (function_is(f, "alias")) {
			struct function other = *definition_find(f->same);
			struct function target = other;

			memcpy(other.name, f->name, TEXT_MAX);
			target.twins = "-";
			function_print_head("", &other, "", false);
			printf("\n{\n");
			stub_print_twin(&target, "", "", false);
			printf("}\n");
		} else {
			stub_print(f);
		}
	}
}

/* The server's side: for each operation a function that checks its arguments and calls the driver. */

/* The word of the first handle among the arguments, or none: with whose end that of a new one comes. */
static int case_parent(const struct function *f)
{
	int word = 0;

	for (int i = 0; i < f->count; i++) {
		if (argument_is(&f->argument[i], "H") && !(strcmp(f->argument[i].field[0], "NODE") == 0 &&
							   i + 1 < f->count && argument_is(&f->argument[i + 1], "H")))
			return word;
		word += !argument_is(&f->argument[i], "OUT OUT0 NEW NAME");
	}
	return -1;
}

/* What is made of a graph is there when the graph is gone. */
static bool case_outlives(const struct function *f, const struct argument *made)
{
	return strcmp(made->field[0], "EXEC") == 0 ||
	       (strcmp(made->field[0], "GRAPH") == 0 && strstr(f->name, "Clone"));
}

static void case_print_argument(const struct argument *a, int word)
{
	const char *name = argument_name(a);

	if (argument_is(a, "V") && strcmp(a->field[0], "float") == 0)
		definition_stop("a float as an argument", name);
	if (argument_is(a, "V"))
		printf("\tconst %s %s = (%s)q->argument[%d];\n", a->field[0], name, a->field[0], word);
	else if (argument_is(a, "AT"))
		printf("\tconst CUdeviceptr %s = q->argument[%d];\n", name, word);
	else if (argument_is(a, "H H0 DROP"))
		printf("\tuint64_t %s = 0;\n", name);
	else if (argument_is(a, "HS"))
		printf("\tuint64_t %s[REQUEST_HANDLES];\n", name);
	else if (argument_is(a, "STREAM"))
		printf("\tCUstream %s = 0;\n", name);
	else if (argument_is(a, "DEVICE"))
		printf("\tCUdevice %s = 0;\n", name);
	else if (argument_is(a, "STRING"))
		printf("\tconst char *%s = NULL;\n", name);
	else if (argument_is(a, "IN OUT OUT0"))
		printf("\t%s %s = {0};\n", a->field[0], name);
	else if (argument_is(a, "NEW"))
		printf("\tuint64_t %s = 0;\n", name);
	else if (argument_is(a, "NAME"))
		printf("\tconst char *%s = NULL;\n", name);
}

static void case_print_check(const struct argument *a, int word)
{
	const char *name = argument_name(a);

	if (argument_is(a, "H DROP"))
		printf("\tif (!r)\n\t\tr = request_handle(q, %d, WIRE_%s, &%s);\n", word, a->field[0], name);
	else if (argument_is(a, "H0"))
		printf("\tif (!r && q->argument[%d])\n\t\tr = request_handle(q, %d, WIRE_%s, &%s);\n", word, word,
		       a->field[0], name);
	else if (argument_is(a, "HS"))
		printf("\tif (!r)\n\t\tr = request_handles(q, %d, WIRE_%s, %s, %s);\n", word, a->field[0], a->field[2],
		       name);
	else if (argument_is(a, "STREAM"))
		printf("\tif (!r)\n\t\tr = request_stream(q, %d, &%s);\n", word, name);
	else if (argument_is(a, "DEVICE"))
		printf("\tif (!r)\n\t\tr = request_device(q, %d, &%s);\n", word, name);
	else if (argument_is(a, "STRING"))
		printf("\tif (!r)\n\t\tr = request_string(q, %d, %s, &%s);\n", word,
		       a->field[1][0] ? a->field[1] : "256", name);
	else if (argument_is(a, "IN"))
		printf("\tif (!r)\n\t\tr = request_struct(q, %d, &%s, sizeof(%s));\n"
		       "\tif (!r)\n\t\tr = STRUCT_CHECK(&%s);\n",
		       word, name, name, name);
}

/* Others go on meanwhile, but do not end what the first handle is of. */
static void case_print_leave(const struct function *f)
{
	int word = 0;

	for (int i = 0; i < f->count; i++) {
		if (argument_is(&f->argument[i], "H")) {
			printf("\tif (!r) {\n\t\trequest_hold(q, q->argument[%d]);\n\t\tlane_leave(q);\n\t}\n", word);
			return;
		}
		word += !argument_is(&f->argument[i], "OUT OUT0 NEW NAME");
	}
	definition_stop("nothing to be held while the driver waits", f->name);
}

static void case_print(const struct function *f)
{
	const int parent = case_parent(f);
	int word = 0;

	printf("static CUresult serve_%s(struct request *q)\n{\n", f->name);
	for (int i = 0; i < f->count; i++) {
		case_print_argument(&f->argument[i], word);
		word += !argument_is(&f->argument[i], "OUT OUT0 NEW NAME");
	}
	printf("\tCUresult r = driver.%s ? request_words(q, %d) : CUDA_ERROR_NOT_SUPPORTED;\n\n", f->name, word);
	word = 0;
	for (int i = 0; i < f->count; i++) {
		case_print_check(&f->argument[i], word);
		word += !argument_is(&f->argument[i], "OUT OUT0 NEW NAME");
	}
	if (strcmp(f->driver, "waits") == 0)
		case_print_leave(f);
	printf("\tif (!r)\n\t\tr = driver.%s(", f->name);
	for (int i = 0; i < f->count; i++)
		printf("%s%s%s", i ? ", " : "", argument_is(&f->argument[i], "IN OUT OUT0 NEW NAME") ? "&" : "",
		       argument_name(&f->argument[i]));
	printf(");\n");
	if (function_count_kind(f, "OUT OUT0 NEW NAME"))
		printf("\tif (r)\n\t\treturn r;\n");
	for (int i = 0; i < f->count; i++) {
		const struct argument *a = &f->argument[i];

		if (argument_is(a, "OUT OUT0"))
			printf("\tSTRUCT_TELL(&%s);\n\trequest_reply(q, &%s, sizeof(%s));\n", a->field[1], a->field[1],
			       a->field[1]);
		else if (argument_is(a, "NEW") && parent >= 0 && !case_outlives(f, a))
			printf("\tr = request_reply_handle(q, WIRE_%s, %s, q->argument[%d]);\n", a->field[0],
			       a->field[1], parent);
		else if (argument_is(a, "NEW"))
			printf("\tr = request_reply_handle(q, WIRE_%s, %s, 0);\n", a->field[0], a->field[1]);
		else if (argument_is(a, "NAME"))
			printf("\trequest_reply_text(q, %s);\n", a->field[0]);
	}
	printf("\treturn r;\n}\n\n");
}

/* What ends an object has nothing but its handle. */
static void case_print_end(const struct function *f)
{
	const struct argument *a = &f->argument[0];

	if (f->count != 1 || !argument_is(a, "DROP"))
		definition_stop("more than a handle that is dropped", f->name);
	printf("static CUresult serve_%s(struct request *q)\n{\n"
	       "\tCUresult r = driver.%s ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;\n\n"
	       "\treturn r ? r : request_end(q, 0, WIRE_%s, driver.%s);\n}\n\n",
	       f->name, f->name, a->field[0], f->name);
}

/* Whether what it gives has handles. */
static bool case_makes(const struct function *f)
{
	static const char types[] = " CUcontext  CUmodule *  CUlibrary *  CUlinkState *  CUgraph *  CUgraphNode * "
				    " CUfunction *  CUkernel * ";

	for (int i = 0; i < f->count; i++) {
		char type[96];

		(void)snprintf(type, sizeof(type), " %s ", f->argument[i].field[0]);
		if (argument_is(&f->argument[i], "NEW") ||
		    (argument_is(&f->argument[i], "OUT P") && strstr(types, type)))
			return true;
	}
	return false;
}

/* The word that says in which stream the GPU has work by it; 0: it has none. */
static const char *case_stream(const struct function *f, char ret[static 16])
{
	int word = 0;

	if (strcmp(f->driver, "begins") != 0)
		return "0";
	if (function_is(f, "hand"))
		return "REQUEST_LAUNCH_STREAM";
	for (int i = 0; i < f->count && !argument_is(&f->argument[i], "STREAM"); i++)
		word += !argument_is(&f->argument[i], "OUT OUT0 NEW NAME");
	if (word == 0 || word == f->count)
		definition_stop("it begins work, and has no stream behind another argument", f->name);
	(void)snprintf(ret, 16, "%d", word);
	return ret;
}

static const char *case_time(const struct function *f)
{
	return strcmp(f->driver, "waits") == 0  ? "REQUEST_MAY_WAIT"
	       : strcmp(f->driver, "asks") == 0 ? "REQUEST_ASKS"
						: "REQUEST_NOW";
}

void case_print_all(void)
{
	for (int i = 0; i < function_count; i++)
		if (function_is(&functions[i], "sync async client"))
			(function_count_kind(&functions[i], "DROP") ? case_print_end : case_print)(&functions[i]);
	printf("const struct request_kind request_kinds[] = {\n");
	for (int i = 0; i < function_count; i++) {
		const struct function *f = &functions[i];
		char word[16];

		if (function_has_op(f))
			printf("\t[OP_%s] = {serve_%s, \"%s\", %s, %s, %s},\n", f->name, f->name, f->name, case_time(f),
			       case_makes(f) ? "true" : "false", case_stream(f, word));
	}
	printf("};\n");
}
