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
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

SPANK_PLUGIN(ctr_gpu, 1)

enum { NUMBER_SIZE = 24, NUMBERS_SIZE = 2048, ANSWER_SIZE = 16384, WORDS_MAX = 10 };

#define SPANK_PROGRAM "program="

/* The command ctr-gpu: "program=PATH" behind the plugin's name in plugstack.conf, or where it is installed. */
static const char *spank_program(int count, char *words[])
{
	for (int i = 0; i < count; i++)
		if (strncmp(words[i], SPANK_PROGRAM, strlen(SPANK_PROGRAM)) == 0)
			return words[i] + strlen(SPANK_PROGRAM);
	return CTR_GPU_BINDIR "/ctr-gpu";
}

/* ---- running it ---- */

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
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
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

/* What is too long for @ret is read and dropped, so that the program does not wait. */
static void spank_read(int fd, char ret[static ANSWER_SIZE])
{
	char rest[512];
	size_t size = 0;
	ssize_t n;

	do {
		bool fits = size < ANSWER_SIZE - 1;

		n = fits ? read(fd, ret + size, ANSWER_SIZE - 1 - size) : read(fd, rest, sizeof(rest));
		if (n > 0 && fits)
			size += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	ret[size] = '\0';
}

/* @ret: what the program wrote, also to standard error. Return: whether it has succeeded. */
static bool spank_run(char *const words[], char ret[static ANSWER_SIZE])
{
	int ends[2], wait_status = -1, r;
	pid_t pid = -1;

	ret[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) < 0) {
		slurm_error("ctr_gpu: no pipe: %m");
		return false;
	}
	r = spank_start(words, ends[1], &pid);
	(void)close(ends[1]);
	if (r == 0)
		spank_read(ends[0], ret);
	(void)close(ends[0]);
	if (r != 0) {
		slurm_error("ctr_gpu: %s cannot be run: %s. Install the package ctr-gpu", words[0], strerror(r));
		return false;
	}
	while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
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
	/* As Slurm names their cgroups. */
	if (ret->batch)
		(void)snprintf(ret->step, sizeof(ret->step), "batch");
	else if (step == SLURM_INTERACTIVE_STEP)
		(void)snprintf(ret->step, sizeof(ret->step), "interactive");
	else
		(void)snprintf(ret->step, sizeof(ret->step), "%" PRIu32, step);
	return true;
}

/* ---- what Slurm calls ---- */

/* A line is a variable, "NAME=value" or "NAME", or part of a message. */
static void spank_take_line(spank_t spank, char *line, bool done)
{
	size_t name = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
	bool variable = name > 0 && (line[name] == '=' || !line[name]);

	if (!variable && done)
		slurm_info("%s", line);
	else if (!variable)
		slurm_error("%s", line);
	else if (!line[name])
		(void)spank_unsetenv(spank, line);
	else {
		line[name] = '\0';
		(void)spank_setenv(spank, line, line + name + 1, 1);
	}
}

/* Of each task, as root, in the step's cgroup and before the user's program. */
int slurm_spank_task_init_privileged(spank_t spank, int count, char *words[])
{
	char numbers[NUMBERS_SIZE] = "", answer[ANSWER_SIZE], *rest = answer;
	struct spank_step step;
	const char *const line[WORDS_MAX] = {spank_program(count, words),
					     "slurm",
					     "step",
					     "--uid",
					     step.uid,
					     "--gpus",
					     numbers,
					     step.job,
					     step.step};
	spank_err_t r;
	bool done;

	if (!spank_identify(spank, &step)) {
		slurm_error("ctr_gpu: Slurm does not say which step this is");
		return -1;
	}
	r = spank_getenv(spank, step.batch ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS", numbers, sizeof(numbers));
	if (r != ESPANK_SUCCESS && r != ESPANK_ENV_NOEXIST) {
		slurm_error("ctr_gpu: which GPUs were granted cannot be read: %s", spank_strerror(r));
		return -1;
	}
	done = spank_run((char *const *)(uintptr_t)line, answer);
	for (char *text = strsep(&rest, "\n"); text; text = strsep(&rest, "\n"))
		if (text[0])
			spank_take_line(spank, text, done);
	return done ? 0 : -1;
}

/* @step: NULL: of all steps of the job */
static void spank_end(const char *program, const char *job, const char *step)
{
	const char *const line[WORDS_MAX] = {program, "slurm", "step", "--end", job, step};
	char answer[ANSWER_SIZE];

	if (!spank_run((char *const *)(uintptr_t)line, answer) && answer[0])
		slurm_error("%s", answer);
}

/* The guard's choice ends with the step's cgroup; here the record goes. */
int slurm_spank_exit(spank_t spank, int count, char *words[])
{
	struct spank_step step;

	if (spank_context() == S_CTX_REMOTE && spank_identify(spank, &step))
		spank_end(spank_program(count, words), step.job, step.step);
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
	spank_end(spank_program(count, words), number, NULL);
	return 0;
}
