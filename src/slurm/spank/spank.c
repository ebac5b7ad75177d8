/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A plugin of Slurm (SPANK, spank(8)): each step of a job gets the GPUs that Slurm has granted, and no others. It runs
 * in slurmstepd, which has threads, and descriptors and signals of its own; so what is done is done by `ctr-gpu slurm
 * step`, and the plugin only says which step it is, and sets the variables that it is told.
 *
 * Of the environment, which is the user's, it reads the one variable that slurmstepd has just written itself: of a
 * step SLURM_STEP_GPUS, of a batch script SLURM_JOB_GPUS. Slurm takes it out where nothing was granted.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

SPANK_PLUGIN(ctr_gpu, 1)

enum {
	NUMBER_SIZE = 24,
	NUMBERS_SIZE = 2048,
	LIST_SIZE = 128 * 1024, /* the most that execve(2) takes of one variable (MAX_ARG_STRLEN) */
	ANSWER_SIZE = 16384,
	WORDS_MAX = 12,
	TIMEOUT_S = 90, /* above ctr-gpu's own "deadline" */
	TIMEOUT_S_MAX = 24 * 3600,
	KILLED_MS = 5 * 1000, /* until a program that was killed is given up */
	LOOK_MS = 20,
};

/* What stands behind the plugin's name in plugstack.conf. */
struct spank_options {
	const char *program; /* the command ctr-gpu: "program=PATH", or where it is installed */
	long timeout_s;      /* what it has for a step: "timeout=SECONDS" */
};

/* Return: what is behind "NAME="; NULL: it is another word. */
static const char *spank_value(const char *word, const char *name)
{
	const size_t size = strlen(name);

	return strncmp(word, name, size) == 0 ? word + size : NULL;
}

static struct spank_options spank_read_options(int count, char *words[])
{
	struct spank_options options = {CTR_GPU_BINDIR "/ctr-gpu", TIMEOUT_S};

	for (int i = 0; i < count; i++) {
		const char *program = spank_value(words[i], "program="), *timeout = spank_value(words[i], "timeout=");
		char *end = NULL;
		long seconds = timeout ? strtol(timeout, &end, 10) : 0;

		if (program)
			options.program = program;
		else if (timeout && !*end && seconds > 0 && seconds <= TIMEOUT_S_MAX)
			options.timeout_s = seconds;
		else
			slurm_error("ctr_gpu: \"%s\" in plugstack.conf is left out: there are program=PATH and "
				    "timeout=SECONDS",
				    words[i]);
	}
	return options;
}

/* ---- running it ---- */

static int64_t spank_now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* In a process group of its own, with which all that it has started can be killed. */
static int spank_start(char *const words[], int output, pid_t *ret)
{
	char *const environment[] = {(char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int r;

	(void)sigemptyset(&none); /* slurmstepd blocks some */
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setpgroup(&attributes, 0);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
	if (r == 0)
		r = posix_spawn(ret, words[0], &actions, &attributes, words, environment);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	return r;
}

/* Return: whether there is something to be read, or the end, before @until. */
static bool spank_wait_readable(int fd, int64_t until)
{
	struct pollfd output = {.fd = fd, .events = POLLIN};

	for (;;) {
		const int64_t left = until - spank_now_ms();
		const int r = poll(&output, 1, left > 0 ? (int)left : 0);

		if (r >= 0 || errno != EINTR)
			return r > 0;
	}
}

/*
 * What is too long for @ret is read and dropped, so that the program does not wait. Ends at @until. Return: whether it
 * is whole: a part of it would give a task less than was decided, or hide less from it.
 */
static bool spank_read(int fd, int64_t until, char ret[static ANSWER_SIZE])
{
	char rest[512];
	size_t size = 0;
	ssize_t n = 1;
	bool whole = true;

	while (n > 0 && spank_wait_readable(fd, until)) {
		bool fits = size < ANSWER_SIZE - 1;

		n = fits ? read(fd, ret + size, ANSWER_SIZE - 1 - size) : read(fd, rest, sizeof(rest));
		whole = whole && (fits || n <= 0);
		if (n > 0 && fits)
			size += (size_t)n;
		if (n < 0 && errno == EINTR)
			n = 1;
	}
	ret[size] = '\0';
	return whole;
}

/* It may have been killed by Slurm, which kills what is left of a step. What it has started ends with it. */
static void spank_reap(pid_t pid, int *ret)
{
	(void)kill(-pid, SIGKILL);
	while (waitpid(pid, ret, 0) < 0 && errno == EINTR)
		;
}

/* Return: whether it has ended before @until. */
static bool spank_wait_end(pid_t pid, int64_t until, int *ret)
{
	for (;;) {
		siginfo_t info = {0};
		const int r = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);

		if (r == 0 && info.si_pid == pid)
			spank_reap(pid, ret);
		if (info.si_pid == pid || (r < 0 && errno != EINTR))
			return true;
		if (spank_now_ms() >= until)
			return false;
		(void)poll(NULL, 0, LOOK_MS);
	}
}

/* One that waits in the kernel for ever is left there, and ends with the step. */
static void spank_kill(const struct spank_options *options, pid_t pid)
{
	int ignored;

	(void)kill(-pid, SIGKILL);
	slurm_error("ctr_gpu: %s has not ended within %ld s and was killed. Look what does not answer: ctr-gpu doctor",
		    options->program, options->timeout_s);
	if (!spank_wait_end(pid, spank_now_ms() + KILLED_MS, &ignored))
		slurm_error("ctr_gpu: the kernel keeps it: its process %ld is left behind", (long)pid);
}

/* @ret: what the program wrote, also to standard error. Return: whether it has succeeded. */
static bool spank_run(const struct spank_options *options, char *const words[], char ret[static ANSWER_SIZE])
{
	const int64_t until = spank_now_ms() + options->timeout_s * 1000;
	int ends[2], wait_status = -1, r;
	bool whole = false;
	pid_t pid = -1;

	ret[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) < 0) {
		slurm_error("ctr_gpu: no pipe: %m");
		return false;
	}
	r = spank_start(words, ends[1], &pid);
	(void)close(ends[1]);
	if (r == 0)
		whole = spank_read(ends[0], until, ret);
	(void)close(ends[0]);
	if (r != 0) {
		slurm_error("ctr_gpu: %s cannot be run: %s. Install the package ctr-gpu", words[0], strerror(r));
		return false;
	}
	if (!spank_wait_end(pid, until, &wait_status)) {
		spank_kill(options, pid);
		return false;
	}
	if (!whole)
		slurm_error("ctr_gpu: %s says more than %d bytes, and no task starts with a part of it", words[0],
			    ANSWER_SIZE - 1);
	return whole && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
}

/* ---- which step ---- */

struct spank_step {
	char job[NUMBER_SIZE], step[NUMBER_SIZE], uid[NUMBER_SIZE];
	bool batch;
};

/* Return: whether Slurm has said so. */
static bool spank_identify(spank_t spank, struct spank_step *ret)
{
	uint32_t job, step;
	uid_t uid;

	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS)
		return false;
	ret->batch = step == SLURM_BATCH_SCRIPT;
	(void)snprintf(ret->job, sizeof(ret->job), "%" PRIu32, job);
	(void)snprintf(ret->uid, sizeof(ret->uid), "%lu", (unsigned long)uid);
	/* As Slurm names their cgroups, but for the component of a heterogeneous step, which it does not tell. */
	if (ret->batch)
		(void)snprintf(ret->step, sizeof(ret->step), "batch");
	else if (step == SLURM_INTERACTIVE_STEP)
		(void)snprintf(ret->step, sizeof(ret->step), "interactive");
	else
		(void)snprintf(ret->step, sizeof(ret->step), "%" PRIu32, step);
	return true;
}

/* ---- what Slurm calls ---- */

/* "SOURCE TARGET", for the task alone: nothing of it is left when its processes have ended. */
static bool spank_mount(char *words, bool *own)
{
	char *target = strchr(words, ' ');

	if (target)
		*target++ = '\0';
	if (!*own)
		*own = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0;
	if (*own && target && mount(words, target, NULL, MS_BIND, NULL) == 0)
		return true;
	slurm_error("ctr_gpu: %s cannot be mounted on %s: %m", words, target ? target : "");
	return false;
}

/* Return: whether it was done. A task that lacked it might see GPUs that are another's. */
static bool spank_set(spank_t spank, const char *name, const char *value)
{
	const spank_err_t r = spank_setenv(spank, name, value, 1);

	if (r != ESPANK_SUCCESS)
		slurm_error("ctr_gpu: %s cannot be set: %s", name, spank_strerror(r));
	return r == ESPANK_SUCCESS;
}

/* In front of what the user has there, which has any length that the kernel lets a variable have. */
static bool spank_prepend(spank_t spank, const char *name, const char *value)
{
	char *all = NULL, *old = calloc(1, LIST_SIZE);
	const spank_err_t r = old ? spank_getenv(spank, name, old, LIST_SIZE) : ESPANK_NOSPACE;
	bool done;

	if (r != ESPANK_SUCCESS && r != ESPANK_ENV_NOEXIST) {
		slurm_error("ctr_gpu: %s cannot be read: %s", name, spank_strerror(r));
		free(old);
		return false;
	}
	if (r == ESPANK_ENV_NOEXIST)
		old[0] = '\0';
	done = asprintf(&all, "%s%s%s", value, old[0] ? ":" : "", old) >= 0 && spank_set(spank, name, all);
	free(all);
	free(old);
	return done;
}

/*
 * A line is a variable ("NAME=value", "NAME", which is unset, "NAME+=value" in front of a list), a mount ("mount SOURCE
 * TARGET"), or part of a message. @own: whether the task has a mount namespace of its own. Return: whether it was done.
 */
static bool spank_take_line(spank_t spank, char *line, bool done, bool *own)
{
	static const char mounts[] = "mount ";
	const size_t name = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
	const char *value = strchr(line, '=');

	if (done && strncmp(line, mounts, strlen(mounts)) == 0)
		return spank_mount(line + strlen(mounts), own);
	if (name > 0 && line[name] == '=') {
		line[name] = '\0';
		return spank_set(spank, line, value + 1);
	}
	if (name > 0 && value && strncmp(line + name, "+=", 2) == 0) {
		line[name] = '\0';
		return spank_prepend(spank, line, value + 1);
	}
	if (name > 0 && !line[name])
		(void)spank_unsetenv(spank, line);
	else if (done)
		slurm_info("%s", line);
	else
		slurm_error("%s", line);
	return true;
}

/* Of each task, as root, in the step's cgroup and before the user's program. */
int slurm_spank_task_init_privileged(spank_t spank, int count, char *words[])
{
	char numbers[NUMBERS_SIZE] = "", answer[ANSWER_SIZE], *rest = answer;
	const struct spank_options options = spank_read_options(count, words);
	char stepd[NUMBER_SIZE];
	struct spank_step step;
	const char *const line[WORDS_MAX] = {options.program, "slurm",        "step", "--uid",  step.uid, "--gpus",
					     numbers,         "--slurmstepd", stepd,  step.job, step.step};
	spank_err_t r;
	bool done, own = false, all = true;

	if (!spank_identify(spank, &step)) {
		slurm_error("ctr_gpu: Slurm does not say which step this is");
		return -1;
	}
	r = spank_getenv(spank, step.batch ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS", numbers, sizeof(numbers));
	if (r != ESPANK_SUCCESS && r != ESPANK_ENV_NOEXIST) {
		slurm_error("ctr_gpu: which GPUs were granted cannot be read: %s", spank_strerror(r));
		return -1;
	}
	(void)snprintf(stepd, sizeof(stepd), "%ld", (long)getppid());
	done = spank_run(&options, (char *const *)(uintptr_t)line, answer);
	for (char *text = strsep(&rest, "\n"); text; text = strsep(&rest, "\n"))
		if (text[0])
			all = spank_take_line(spank, text, done, &own) && all;
	return done && all ? 0 : -1;
}

/* @step: NULL: of all steps of the job, whatever slurmstepd they had */
static void spank_end(int count, char *words[], const char *job, const char *step)
{
	const struct spank_options options = spank_read_options(count, words);
	char answer[ANSWER_SIZE], stepd[NUMBER_SIZE];
	const char *const line[WORDS_MAX] = {options.program, "slurm", "step", "--end",
					     "--slurmstepd",  stepd,   job,    step};
	const char *const all[WORDS_MAX] = {options.program, "slurm", "step", "--end", job};

	(void)snprintf(stepd, sizeof(stepd), "%ld", (long)getpid());
	if (!spank_run(&options, (char *const *)(uintptr_t)(step ? line : all), answer) && answer[0])
		slurm_error("%s", answer);
}

/* The guard's choice ends with the step's cgroup; here the record goes. */
int slurm_spank_exit(spank_t spank, int count, char *words[])
{
	struct spank_step step;

	if (spank_context() == S_CTX_REMOTE && spank_identify(spank, &step))
		spank_end(count, words, step.job, step.step);
	return 0;
}

/* Of steps whose slurmstepd was killed. */
int slurm_spank_job_epilog(spank_t spank, int count, char *words[])
{
	char number[NUMBER_SIZE];
	uint32_t job;

	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
		return 0;
	(void)snprintf(number, sizeof(number), "%" PRIu32, job);
	spank_end(count, words, number, NULL);
	return 0;
}
