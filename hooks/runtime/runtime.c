/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-runtime: stands in front of an OCI runtime. Before a container is created, it writes into the container's
 * configuration the GPUs that the container asks for; then, and for any other command at once, it becomes the runtime.
 * It stays in the environment, directory and descriptors that the engine gave it, since they are the runtime's.
 */

#include "runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <ctr-gpu.h>

#include "../internal.h"
#include "process/phase.h"
#include "process/sanitise.h"

struct shim {
	struct command_line line;
	bool dry_run;
	char *runtime; /* to become */
	struct ctr_gpu_context *context;
	struct ctr_gpu_bundle *bundle;
	struct ctr_gpu_request *request;
	struct ctr_gpu_host *host;
	struct ctr_gpu_plan *plan;
};

/* ---- command line ---- */

/* Options with a value: runc 1.0 to 1.4 (main.go, create.go, run.go), crun 1.0 to 1.20 (crun.c, create.c, run.c). */
static const char *const global_options[] = {"log",  "log-format", "log-level",      "root",
					     "criu", "rootless",   "cgroup-manager", NULL};
static const char *const create_options[] = {
	"bundle", "b", "config", "f", "console-socket", "pid-file", "pidfd-socket", "preserve-fds", NULL};

struct option_word {
	const char *name; /* NULL: no option */
	size_t length;
	const char *value;
};

static bool command_line_word_is(const struct option_word *word, const char *name)
{
	return word->name && strlen(name) == word->length && memcmp(word->name, name, word->length) == 0;
}

static bool command_line_takes_value(const struct option_word *word, const char *const *options)
{
	for (; *options; options++)
		if (command_line_word_is(word, *options))
			return true;
	return false;
}

/* "-b/path", as crun takes it: an option of one letter, with its value behind it. */
static bool command_line_has_attached(const char *text, const char *const *options, struct option_word *ret)
{
	const struct option_word letter = {.name = text + 1, .length = 1, .value = text + 2};

	if (text[1] == '-' || !text[2] || !command_line_takes_value(&letter, options))
		return false;
	*ret = letter;
	return true;
}

/* An option with its value, or an argument. Both runtimes take "--name value" and "--name=value", runc one dash too. */
static char *const *command_line_next_word(char *const *words, const char *const *options, struct option_word *ret)
{
	const char *text = *words++;
	bool equals;

	*ret = (struct option_word){0};
	if (text[0] != '-' || text[1] == '\0')
		return words;
	ret->name = text + 1 + (text[1] == '-');
	ret->length = strcspn(ret->name, "=");
	equals = ret->name[ret->length] == '=';
	if (!command_line_takes_value(ret, options)) {
		(void)command_line_has_attached(text, options, ret);
		return words;
	}
	ret->value = equals ? ret->name + ret->length + 1 : *words;
	return words + (!equals && *words);
}

void command_line_read(char *const *words, struct command_line *ret)
{
	struct option_word word;

	*ret = (struct command_line){0};
	while (*words && !ret->command) {
		const char *text = *words;

		words = command_line_next_word(words, global_options, &word);
		if (!word.name)
			ret->command = text;
		else if (command_line_word_is(&word, "log"))
			ret->log = word.value;
		else if (command_line_word_is(&word, "log-format"))
			ret->log_json = word.value && strcmp(word.value, "json") == 0;
	}
	ret->creates = ret->command && (strcmp(ret->command, "create") == 0 || strcmp(ret->command, "run") == 0);
	/* Both find options behind the container's name, too. */
	while (ret->creates && *words && strcmp(*words, "--") != 0) {
		words = command_line_next_word(words, create_options, &word);
		if (command_line_word_is(&word, "bundle") || command_line_word_is(&word, "b"))
			ret->bundle = word.value;
		else if (command_line_word_is(&word, "config") || command_line_word_is(&word, "f"))
			ret->config = word.value;
	}
}

/* ---- which runtime ---- */

/* Where distributions and administrators install runtimes. An engine's own PATH may lack some of these. */
static const char usual_places[] = "/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin";

/* A link to us, such as nvidia-container-runtime or an administrator's runc, would have us start ourselves for ever. */
static bool find_runtime_is_self(const struct stat *st)
{
	struct stat self;

	return stat("/proc/self/exe", &self) == 0 && self.st_dev == st->st_dev && self.st_ino == st->st_ino;
}

static bool find_runtime_is_usable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0 && !find_runtime_is_self(&st);
}

static bool find_runtime_try(const char *place, size_t place_length, const char *name, char ret[FIND_RUNTIME_PATH_MAX])
{
	const int length = snprintf(ret, FIND_RUNTIME_PATH_MAX, "%.*s/%s", (int)place_length, place, name);

	return length < FIND_RUNTIME_PATH_MAX && find_runtime_is_usable(ret);
}

static bool find_runtime_in_places(const char *places, const char *name, char ret[FIND_RUNTIME_PATH_MAX])
{
	while (places) {
		const size_t size = strcspn(places, ":");

		/* A relative path counts from the working directory, which may be anybody's. */
		if (places[0] == '/' && find_runtime_try(places, size, name, ret))
			return true;
		places = places[size] ? places + size + 1 : NULL;
	}
	return false;
}

/*
 * find_runtime_program() - find a program that can be executed and is not this one under another name
 * @name:   an absolute path, or what is looked for in directories
 * @places: the value of PATH, or NULL; where nothing is found there, the usual directories are searched
 * @ret:    its path
 *
 * Return: whether there is one.
 */
static bool find_runtime_program(const char *name, const char *places, char ret[FIND_RUNTIME_PATH_MAX])
{
	if (name[0] == '/')
		return strlen(name) < FIND_RUNTIME_PATH_MAX && find_runtime_is_usable(strcpy(ret, name));
	return find_runtime_in_places(places, name, ret) || find_runtime_in_places(usual_places, name, ret);
}

int find_runtime(const struct ctr_gpu_context *context, char **ret_path)
{
	char path[FIND_RUNTIME_PATH_MAX];
	const char *name;

	for (size_t i = 0; (name = ctr_gpu_context_runtime(context, i)); i++) {
		if (!find_runtime_program(name, getenv("PATH"), path))
			continue;
		*ret_path = strdup(path);
		return *ret_path ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

char *find_runtime_beside(const char *name)
{
	char self[4096], *path;
	ssize_t length;

	length = readlink("/proc/self/exe", self, sizeof(self));
	if (length <= 0 || length == (ssize_t)sizeof(self))
		return NULL;
	while (length > 0 && self[length - 1] != '/')
		length--;
	if (asprintf(&path, "%.*s%s", (int)length, self, name) < 0)
		return NULL;
	if (access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}

/* ---- why a container cannot be created, where the engine reads its runtime's errors ---- */

enum { REPORT_ERROR_MAX = 2048 };

/* crun's logs may be "file:PATH", "syslog:ID" and "journald:ID" as well (src/libcrun/error.c). */
static FILE *runtime_open_log(const char *log)
{
	const char *path = strncmp(log, "file:", 5) == 0 ? log + 5 : log;
	int fd = -1;

	if (strncmp(log, "syslog:", 7) != 0 && strncmp(log, "journald:", 9) != 0)
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
	return fd < 0 ? NULL : fdopen(fd, "a");
}

/* containerd, Docker (go-runc, getLastRuntimeError()) and Podman show the last entry of the level "error". */
static void runtime_write_log(FILE *file, bool as_json, const char *message)
{
	json_t *text = json_string(message);
	char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL, stamp[TRACE_TIME_SIZE];

	trace_write_time(stamp);
	if (quoted)
		trace_print_line(file,
				 as_json ? "{\"level\":\"error\",\"msg\":%s,\"time\":\"%s\"}\n"
					 : "level=error msg=%s time=\"%s\"\n",
				 quoted, stamp);
	free(quoted);
	json_decref(text);
}

/*
 * runtime_print_failure() - write to standard error, and to the log if the engine wants one
 * @r:    negative errno or CTR_GPU_E_*
 * @text: sentences of the library
 *
 * Return: the program's exit status.
 */
static int runtime_print_failure(const struct command_line *line, int r, const char *text)
{
	char message[REPORT_ERROR_MAX];
	FILE *log;

	(void)snprintf(message, sizeof(message), "ctr-gpu-runtime: [%s] %s", ctr_gpu_error_name(r), text);
	trace_print_line(stderr, "%s\n", message);
	trace_write("error", message);
	log = line->log ? runtime_open_log(line->log) : NULL;
	if (log) {
		runtime_write_log(log, line->log_json, message);
		(void)fclose(log);
	}
	return EXIT_FAILURE;
}

/* ---- the shim ---- */

static void runtime_close(struct shim *shim)
{
	(void)ctr_gpu_plan_unref(shim->plan);
	(void)ctr_gpu_host_unref(shim->host);
	(void)ctr_gpu_request_unref(shim->request);
	(void)ctr_gpu_bundle_unref(shim->bundle);
	(void)ctr_gpu_context_unref(shim->context);
	free(shim->runtime);
}

static int runtime_apply_plan(struct shim *shim)
{
	char *hook = find_runtime_beside("ctr-gpu-hook");
	int r = hook ? ctr_gpu_bundle_set_hook(shim->bundle, hook) : 0;

	free(hook);
	return r ? r : ctr_gpu_plan_apply_to_bundle(shim->context, shim->plan, shim->bundle);
}

static int runtime_change_bundle(void *user)
{
	struct shim *shim = user;
	int r;

	r = ctr_gpu_host_new(shim->context, &shim->host);
	if (!r)
		r = ctr_gpu_plan_new(shim->context, shim->request, shim->host, &shim->plan);
	if (!r)
		r = phase_enter(PHASE_EDIT);
	if (!r)
		r = ctr_gpu_plan_fit_bundle(shim->plan, shim->bundle);
	if (!r && shim->dry_run)
		r = ctr_gpu_plan_find_outranked(shim->plan, shim->bundle);
	if (r)
		r = report_error_go_without(shim->context, shim->request, CTR_GPU_METHOD_RUNTIME, shim->dry_run, r,
					    &shim->plan);
	if (!r && shim->dry_run)
		r = ctr_gpu_plan_write(shim->plan, CTR_GPU_FORMAT_JSON, stdout);
	else if (!r && !ctr_gpu_request_is_void(shim->request))
		r = runtime_apply_plan(shim);
	return r ? runtime_print_failure(&shim->line, r, ctr_gpu_context_message(shim->context)) : 0;
}

static const char *runtime_find_bundle(const struct shim *shim)
{
	return shim->line.bundle ? shim->line.bundle : ".";
}

/* Whether it is about a container that is to be, and that may want a GPU. */
static bool runtime_is_for_gpus(const struct shim *shim)
{
	return shim->line.creates &&
	       (shim->dry_run || ctr_gpu_bundle_may_ask(runtime_find_bundle(shim), shim->line.config));
}

/* The host is looked at only for a container that asks for something. Return: the exit status of a failure; 0. */
static int runtime_give_gpus(struct shim *shim)
{
	const char *path = runtime_find_bundle(shim);
	int r, exit_status;

	r = ctr_gpu_bundle_new(shim->context, path, shim->line.config, &shim->bundle);
	if (!r)
		r = ctr_gpu_request_new(shim->context, &shim->request);
	if (!r)
		r = ctr_gpu_request_read_bundle(shim->request, shim->bundle);
	/* The runtime reports a missing or invalid bundle itself. */
	if (r && !shim->dry_run && (r == -ENOENT || !ctr_gpu_bundle_may_ask(path, shim->line.config)))
		return 0;
	if (!r && ctr_gpu_request_is_void(shim->request) && !shim->dry_run)
		return 0;
	if (!r && shim->runtime)
		ctr_gpu_bundle_set_runtime(shim->bundle, shim->runtime);
	if (!r)
		r = ctr_gpu_run_in_child(shim->context, runtime_change_bundle, shim, &exit_status);
	if (!r)
		return exit_status;
	exit_status = runtime_print_failure(&shim->line, r, ctr_gpu_context_message(shim->context));
	deadline_let_go();
	return exit_status;
}

/*
 * A mistake in our settings must not keep a container from being stopped, nor one from being created that wants no GPU.
 * Of a file that cannot be read, or that others can write, nothing is taken: the runtime is a built-in one then.
 */
static int runtime_serve(struct shim *shim, char **argv)
{
	bool mistaken;
	int r, exit_status;

	r = ctr_gpu_context_new(&shim->context);
	if (r)
		return runtime_print_failure(&shim->line, r, "no memory");
	ctr_gpu_context_set_log(shim->context, trace_log, NULL);
	r = ctr_gpu_context_load_config(shim->context, NULL);
	if (shim->line.creates)
		trace_open(ctr_gpu_context_log(shim->context));
	mistaken = r != 0;
	if (mistaken && runtime_is_for_gpus(shim))
		return runtime_print_failure(&shim->line, r, ctr_gpu_context_message(shim->context));
	r = shim->dry_run ? 0 : find_runtime(shim->context, &shim->runtime);
	if (r)
		return runtime_print_failure(
			&shim->line, r,
			"no OCI runtime was found to start the container with.\n"
			"Install runc or crun, or name yours under \"runtimes\" in /etc/ctr-gpu/config.json.");
	exit_status = shim->line.creates && !mistaken ? runtime_give_gpus(shim) : 0;
	if (exit_status || shim->dry_run)
		return exit_status;
	argv[0] = shim->runtime;
	(void)execv(shim->runtime, argv);
	return runtime_print_failure(&shim->line, -errno, "the OCI runtime cannot be executed.");
}

bool runtime_is_called(const char *program)
{
	return arguments_is_called(program, "ctr-gpu-runtime") ||
	       arguments_is_called(program, "nvidia-container-runtime");
}

int runtime_main(int argc, char **argv)
{
	__attribute__((cleanup(runtime_close))) struct shim shim = {0};

	trace_begin("ctr-gpu-runtime");
	/* The runtime says its own behind it, and engines take the last (moby daemon/info_unix.go). */
	if (argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0)) {
		(void)printf("ctr-gpu-runtime version %s\n", ctr_gpu_version());
		(void)fflush(stdout);
	}
	if (argc > 1 && strcmp(argv[1], "--dry-run") == 0) {
		shim.dry_run = true;
		argv++;
	}
	command_line_read(argv + (argc > 0), &shim.line);
	if (shim.dry_run && !shim.line.creates)
		return runtime_print_failure(&shim.line, CTR_GPU_E_BAD_ARGUMENT,
					     "--dry-run goes in front of create or run.");
	return runtime_serve(&shim, argv);
}
