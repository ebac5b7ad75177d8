/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu doctor --try: whether a GPU container works, by having the engine's own client run one. The image is made
 * here, of one static program (gpu_probe.c), and goes with the container, whatever happens.
 */

#include "cli/try/try.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/print.h"
#include "cli/output.h"
#include "engines/daemon.h"
#include "engines/engine.h"
#include "engines/text.h"
#include "try_program.h"

/* ---- running a client ---- */

enum {
	EXIT_NOT_FOUND = 127,
	GRACE_S = 3, /* between SIGTERM and SIGKILL */
	TICK_MS = 100,
};

static volatile sig_atomic_t over;

static void client_give_up(int signal_number)
{
	(void)signal_number;
	over = 1;
}

void client_guard(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	const struct sigaction action = {.sa_handler = client_give_up};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &action, NULL);
}

bool client_is_over(void)
{
	bool was = over;

	over = 0;
	return was;
}

static _Noreturn void client_become(const char *const *arguments, int input, int output)
{
	/* Handlers are not inherited, what is ignored is. */
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (input < 0)
		input = open("/dev/null", O_RDONLY);
	if (input >= 0 && lseek(input, 0, SEEK_SET) == 0 && dup2(input, STDIN_FILENO) >= 0 &&
	    dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0) {
		/* The client does not inherit descriptors that our caller left open. */
		closefrom(STDERR_FILENO + 1);
		(void)execvp(arguments[0], (char *const *)(const void *)arguments);
	}
	_exit(EXIT_NOT_FOUND);
}

/* Reads what there is; what does not fit is thrown away. Return: false at the end. */
static bool client_take_output(int fd, struct client_result *ret, size_t *size)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	char rest[4096];
	size_t room = sizeof(ret->output) - 1 - *size;
	ssize_t got;

	if (poll(&wait, 1, TICK_MS) <= 0)
		return true;
	got = read(fd, room ? ret->output + *size : rest, room ? room : sizeof(rest));
	if (got > 0 && room)
		*size += (size_t)got;
	return got > 0 || (got < 0 && errno == EINTR);
}

/* The state of a client that runs. */
struct client_watch {
	pid_t pid;
	int output;   /* -1: its streams are closed */
	time_t end_s; /* on the monotonic clock, when it gets SIGTERM, and then when it gets SIGKILL; 0: not set */
	int patience_s;
	bool hurried, killed, ended;
	int wait_status;
};

static void client_look_for_end(struct client_watch *watch)
{
	if (!watch->ended && waitpid(watch->pid, &watch->wait_status, WNOHANG) == watch->pid)
		watch->ended = true;
}

/* After the timeout or a signal, ends the client by SIGTERM, then by SIGKILL. Return: false: it is left behind. */
static bool client_hurry(struct client_watch *watch, int timeout_s, struct client_result *ret)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (watch->end_s == 0)
		watch->end_s = now.tv_sec + timeout_s;
	if (over && !watch->hurried && now.tv_sec + watch->patience_s < watch->end_s)
		watch->end_s = now.tv_sec + watch->patience_s;
	watch->hurried = over;
	if (ret->status == 0 && now.tv_sec >= watch->end_s) {
		ret->status = over ? -EINTR : -ETIMEDOUT;
		watch->end_s = now.tv_sec + GRACE_S;
		(void)kill(-watch->pid, SIGTERM);
	} else if (ret->status < 0 && now.tv_sec >= watch->end_s) {
		if (watch->killed || watch->ended)
			return false;
		watch->killed = true;
		watch->end_s = now.tv_sec + GRACE_S;
		(void)kill(-watch->pid, SIGKILL);
	}
	return true;
}

/*
 * Waits until the client has ended and its streams are closed. Both are needed: a process that it left behind may hold
 * the streams open, and the client may close them and run on.
 */
static void client_attend(pid_t pid, int fd, int timeout_s, int patience_s, struct client_result *ret)
{
	struct client_watch watch = {.pid = pid, .output = fd, .patience_s = patience_s};
	size_t size = 0;

	while (watch.output >= 0 || !watch.ended) {
		if (watch.output < 0)
			(void)poll(NULL, 0, watch.ended ? 0 : TICK_MS / 10);
		else if (!client_take_output(watch.output, ret, &size))
			watch.output = -1;
		client_look_for_end(&watch);
		if (watch.output < 0 && watch.ended)
			break;
		if (!client_hurry(&watch, timeout_s, ret) || (watch.killed && watch.ended))
			break;
	}
	ret->output[size] = '\0';
	if (ret->status == 0)
		ret->status = WIFEXITED(watch.wait_status) ? WEXITSTATUS(watch.wait_status)
							   : 128 + WTERMSIG(watch.wait_status);
}

void client_run(const char *const *arguments, int input, int timeout_s, int patience_s, struct client_result *ret)
{
	_cleanup_close_ int ours = -1;
	int pair[2];
	pid_t pid;

	ret->status = over && patience_s == 0 ? -EINTR : 0;
	ret->output[0] = '\0';
	if (ret->status < 0)
		return;
	if (pipe2(pair, O_CLOEXEC) < 0) {
		ret->status = -errno;
		return;
	}
	ours = pair[0];
	pid = fork();
	if (pid == 0)
		client_become(arguments, input, pair[1]);
	(void)close(pair[1]);
	if (pid < 0)
		ret->status = -errno;
	else
		client_attend(pid, ours, timeout_s, patience_s, ret);
}

/* ---- the ways ---- */

enum {
	STEP_S = 60,
	/* After a signal, of what makes or removes an image: the daemon would go on with it alone. */
	PATIENCE_S = 10,
	WORDS_MAX = 20,
	WAY_SIZE = 24, /* of "containerd:cli" */
	TAR_BLOCK = 512,
	LINES_SHOWN = 5, /* of an engine's complaint */
	LIBRARIES_SHOWN = 8,
};

#define PROGRAM "/ctr-gpu-try"

/* Words with blanks between; "@" is the container's name, "%" its image or root directory. */
struct engine_client {
	const char *name;
	const struct engine *daemon; /* the engine whose daemon it needs; NULL: none */
	const char *import;          /* reads a tar archive; NULL: a directory does */
	const char *removal[3];      /* commands that remove leftovers, if any */
};

static const struct engine_client docker = {
	"docker", &engine_docker, "docker import - %", {"docker rm --force @", "docker rmi --force %"}};
static const struct engine_client podman = {
	"podman", NULL, "podman import --quiet - %", {"podman rm --force --ignore @", "podman rmi --force %"}};
static const struct engine_client containerd = {
	"containerd",
	&engine_containerd,
	NULL,
	{"ctr task kill --signal SIGKILL @", "ctr task rm --force @", "ctr container rm @"}};

static const struct try_method {
	const struct engine_client *engine;
	const char *method, *shown, *run;
} ways[] = {
	/* The first of an engine is the one that is tried unless another is named. */
	{&docker, "gpus", "docker run --gpus all", "docker run --rm --network none --name @ --gpus all % " PROGRAM},
	{&docker, "runtime", "docker run --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all",
	 "docker run --rm --network none --name @ --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all % " PROGRAM},
	{&docker, "cdi", "docker run --device nvidia.com/gpu=all",
	 "docker run --rm --network none --name @ --device nvidia.com/gpu=all % " PROGRAM},
	{&podman, "hook", "podman run -e NVIDIA_VISIBLE_DEVICES=all",
	 "podman run --rm --network none --name @ -e NVIDIA_VISIBLE_DEVICES=all % " PROGRAM},
	{&podman, "gpus", "podman run --gpus all", "podman run --rm --network none --name @ --gpus all % " PROGRAM},
	{&podman, "runtime", "podman run --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all",
	 "podman --runtime nvidia run --rm --network none --name @ -e NVIDIA_VISIBLE_DEVICES=all % " PROGRAM},
	{&podman, "cdi", "podman run --device nvidia.com/gpu=all",
	 "podman run --rm --network none --name @ --device nvidia.com/gpu=all % " PROGRAM},
	{&containerd, "cli", "ctr run --gpus 0", "ctr run --rm --rootfs --gpus 0 % @ " PROGRAM},
};

static const struct try_method *try_find_method(const char *text)
{
	size_t length = strcspn(text, ":");

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strlen(ways[i].engine->name) == length && strncmp(ways[i].engine->name, text, length) == 0 &&
		    (!text[length] || strcmp(text + length + 1, ways[i].method) == 0))
			return &ways[i];
	return NULL;
}

bool try_find(const char *text)
{
	return try_find_method(text);
}

const char *try_suggest(const char *text, char ret[static SUGGESTION_SIZE])
{
	char words[ARRAY_SIZE(ways)][WAY_SIZE];
	const char *names[2 * ARRAY_SIZE(ways)];

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		(void)snprintf(words[i], WAY_SIZE, "%s:%s", ways[i].engine->name, ways[i].method);
		names[i] = ways[i].engine->name;
		names[ARRAY_SIZE(ways) + i] = words[i];
	}
	return str_suggest(names, ARRAY_SIZE(names), text, ret);
}

/* ---- the image ---- */

struct
try {
	const struct try_method *way;
	char name[48];      /* of the container, and of its image */
	char directory[32]; /* instead of an image; "" for none */
	struct client_result result;
};

struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], kind, link[100];
	char magic[8], user[32], group[32], device[16], prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "ustar");

static void try_write_header(FILE *file, const char *name, char kind, unsigned mode, size_t size)
{
	struct tar_header header = {.kind = kind, .magic = {'u', 's', 't', 'a', 'r', '\0', '0', '0'}};
	unsigned sum = 0;

	(void)snprintf(header.name, sizeof(header.name), "%s", name);
	(void)snprintf(header.mode, sizeof(header.mode), "%07o", mode);
	(void)snprintf(header.uid, sizeof(header.uid), "%07o", 0U);
	(void)snprintf(header.gid, sizeof(header.gid), "%07o", 0U);
	(void)snprintf(header.size, sizeof(header.size), "%011zo", size);
	(void)snprintf(header.mtime, sizeof(header.mtime), "%011o", 0U);
	memset(header.checksum, ' ', sizeof(header.checksum));
	for (size_t i = 0; i < sizeof(header); i++)
		sum += ((const unsigned char *)&header)[i];
	(void)snprintf(header.checksum, sizeof(header.checksum), "%06o", sum);
	(void)fwrite(&header, sizeof(header), 1, file);
}

static const char *const directories[] = {"dev", "etc", "proc", "sys", "tmp"};

/* Return: a descriptor, or -1 with errno set. */
static int try_make_archive(void)
{
	static const char zeros[2 * TAR_BLOCK];
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
	_cleanup_close_ int copy = fd < 0 ? -1 : dup(fd);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
	char name[16];

	if (!file)
		return -1;
	copy = -1; /* the stream's */
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		(void)snprintf(name, sizeof(name), "%s/", directories[i]);
		try_write_header(file, name, '5', 0755, 0);
	}
	try_write_header(file, &PROGRAM[1], '0', 0755, sizeof(try_program));
	(void)fwrite(try_program, sizeof(try_program), 1, file);
	(void)fwrite(zeros, (TAR_BLOCK - sizeof(try_program) % TAR_BLOCK) % TAR_BLOCK, 1, file);
	(void)fwrite(zeros, sizeof(zeros), 1, file);
	return fclose(file) == 0 ? steal_fd(&fd) : -1;
}

/* Return: 0 or -1 with errno set. */
static int try_make_root(struct try *try)
{
	_cleanup_close_ int root = -1, program = -1;
	char path[] = "/tmp/ctr-gpu-try-XXXXXX";

	if (!mkdtemp(path))
		return -1;
	memcpy(try->directory, path, sizeof(path));
	root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || fchmod(root, 0755) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (mkdirat(root, directories[i], 0755) < 0)
			return -1;
	program = openat(root, &PROGRAM[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	return program >= 0 && write(program, try_program, sizeof(try_program)) == sizeof(try_program) ? 0 : -1;
}

static int try_remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)place;
	return kind == FTW_DP ? rmdir(path) : unlink(path);
}

/* ---- the client ---- */

/* @input: for its standard input, or -1. @patience_s: as client_run() has it. */
static int try_run_client(struct try *try, const char *words, int input, int patience_s)
{
	_cleanup_free_ char *line = strdup(words);
	const char *arguments[WORDS_MAX] = {NULL};
	size_t count = 0;

	if (!line)
		return -ENOMEM;
	for (char *rest = line, *word; (word = strsep(&rest, " ")) && count < WORDS_MAX - 1;)
		arguments[count++] = strcmp(word, "@") == 0   ? try->name
				     : strcmp(word, "%") == 0 ? (try->directory[0] ? try->directory : try->name)
							      : word;
	client_run(arguments, input, STEP_S, patience_s, &try->result);
	return try->result.status;
}

/* A client that is configured for another machine's daemon does not need the local one. */
static bool try_needs_start(const struct engine *engine)
{
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;

	if (!engine || getenv("DOCKER_HOST"))
		return false;
	if (daemon_find(&engine->daemon, 0, &daemon) == 0 && !daemon.pid && geteuid() != 0)
		(void)daemon_find(&engine->daemon, geteuid(), &daemon);
	return !daemon.pid;
}

/* A client that may not use its daemon's socket adds the question that it had, with each / as %2F. */
static size_t try_line_length(const char *line)
{
	static const char *const questions[] = {": Get \"http", ": Post \"http", ": Head \"http"};
	size_t length = strcspn(line, "\r\n");

	for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
		const char *question = strstr(line, questions[i]);

		if (question && (size_t)(question - line) < length)
			length = (size_t)(question - line);
	}
	return length;
}

static void try_advise(const struct try *try)
{
	const struct engine *engine = try->way->engine->daemon;
	_cleanup_free_ char *command = NULL;

	if (engine && geteuid() != 0 && strstr(try->result.output, "permission denied")) {
		print_safe(stdout, "This user may not use the socket of %s: sudo ctr-gpu doctor --try=%s:%s\n",
			   engine->label, try->way->engine->name, try->way->method);
		return;
	}
	if (try_needs_start(engine))
		command = engine_restart_command(engine, &DAEMON_NONE, false, ENGINE_START);
	if (command)
		print_safe(stdout, "%s does not run. Start it, and try again: sudo %s\n", engine->label, command);
	else
		(void)printf("\"ctr-gpu doctor\" says what may be in the way.\n");
}

static int try_print(const struct try *try, const char *words)
{
	const char *output = try->result.output;
	int program = (int)strcspn(words, " ");

	switch (try->result.status) {
	case -EINTR:
		return output_print("given up");
	case -ETIMEDOUT:
		return output_print("%.*s did not come to an end within %d s", program, words, STEP_S);
	case 127:
		if (!try->result.output[0])
			return output_print("%.*s is not installed here; install it, or name another engine", program,
					    words);
		break;
	default:
		break;
	}
	print_safe(stdout, "%s: no\n", try->way->shown);
	/* The first lines of its output, without control characters. */
	for (int i = 0; i < LINES_SHOWN && *output; i++) {
		_cleanup_free_ char *line = strndup(output, try_line_length(output));

		(void)fputs("    ", stdout);
		print_write_text(line ? line : "", stdout);
		(void)fputc('\n', stdout);
		output += strcspn(output, "\r\n");
		output += strspn(output, "\r\n");
	}
	try_advise(try);
	return EXIT_STATUS_FAILURE;
}

/* ---- what arrived ---- */

struct probe_report {
	size_t devices, closed, libraries, missing;
};

static bool try_is_driver(const char *name)
{
	static const char *const names[] = {"libcuda.so",     "libdxcore.so",       "libd3d12.so", "libnvidia-ml.so",
					    "libamdhip64.so", "libze_intel_gpu.so", "libigd"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* "device\t/dev/dxg\t0", "library\tlibcuda.so.1\t/usr/lib/wsl/lib/libcuda.so.1\t0"; the line is taken apart. */
static void try_show_line(char *line, struct probe_report *report)
{
	const char *what = strsep(&line, "\t"), *name = strsep(&line, "\t"),
		   *path = what && strcmp(what, "library") == 0 ? strsep(&line, "\t") : NULL;
	const char *number = strsep(&line, "\t");
	int error = number ? atoi(number) : 0;

	if (!name || !number)
		return;
	if (strcmp(what, "device") == 0) {
		report->devices += error == 0;
		report->closed += error != 0;
		print_safe(stdout, "    %-20s %s\n", name, error ? strerror(error) : "opened");
	} else if (path && try_is_driver(name)) {
		report->libraries += error == 0;
		report->missing += error != 0;
		if (report->libraries + report->missing <= LIBRARIES_SHOWN)
			print_safe(stdout, "    %-20s %s%s%s\n", name, path, error ? ": " : "",
				   error ? strerror(error) : "");
	}
}

/* An engine may print a warning into a container's output: such a line is not the program's. */
static int try_show_report(struct try *try)
{
	struct probe_report report = {0};
	bool works;

	for (char *rest = try->result.output, *line; (line = strsep(&rest, "\r\n"));)
		try_show_line(line, &report);
	works = report.devices > 0 && report.closed == 0 && report.libraries > 0 && report.missing == 0;
	print_safe(stdout, "%s: %s\n", try->way->shown,
		   works                                       ? "yes, the container has a GPU and its driver"
		   : report.devices == 0 && report.closed == 0 ? "no, the container started without any GPU device"
		   : report.closed > 0                         ? "no, a device cannot be opened"
				       : "no, the loader finds no library of a driver, or one that is not there");
	return works ? 0 : EXIT_STATUS_FAILURE;
}

/* ---- all of it ---- */

int try_run(const char *text)
{
	static struct try try;
	_cleanup_close_ int archive = -1;
	const struct engine_client *engine;
	int r = 0;

	try.way = try_find_method(text);
	engine = try.way->engine;
	(void)snprintf(try.name, sizeof(try.name), "ctr-gpu-try-%d", getpid());
	client_guard();
	if (!engine->import)
		r = try_make_root(&try) < 0 ? output_print("cannot make a root directory in /tmp: %m") : 0;
	else if ((archive = try_make_archive()) < 0)
		r = output_print("cannot make an image: %m");
	else if (try_run_client(&try, engine->import, archive, PATIENCE_S))
		r = try_print(&try, engine->import);
	if (!r)
		r = try_run_client(&try, try.way->run, -1, 0) ? try_print(&try, try.way->run) : try_show_report(&try);
	/* Clean up after a signal, too. */
	(void)client_is_over();
	for (size_t i = 0; i < ARRAY_SIZE(engine->removal) && engine->removal[i]; i++)
		(void)try_run_client(&try, engine->removal[i], -1, PATIENCE_S);
	if (try.directory[0])
		(void)nftw(try.directory, try_remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	return r;
}
