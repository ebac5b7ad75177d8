/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Allows one device in the cgroup of a process, as the hook does, and nothing else of what the hook does:
 *
 *	device-rule [--undo] [--times N] [--keep FILE | --take-back FILE] PID TYPE MAJOR MINOR ACCESS PATH
 *
 * --undo takes it back at once. --keep writes down what was done, and --take-back takes that back. --times does and undoes it N times first, and says how long the median took.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "devcgroup/devcgroup.h"

enum { TIMES_MAX = 10000 };

static int fail(int error, const struct err *err)
{
	(void)fprintf(stderr, "device-rule: %s [%s]\n", err->text, err_name(error));
	return EXIT_FAILURE;
}

static int keep(const struct devcgroup *cgroup, const char *path)
{
	const struct devcgroup_additions *additions = devcgroup_additions_of(cgroup);
	json_t *json = json_pack("{s:o, s:s?}", "additions", additions_print(additions), "dropIn", additions->drop_in);
	int r = json ? json_dump_file(json, path, 0) : -1;

	json_decref(json);
	return r < 0 ? -EIO : 0;
}

/* @record: where to write it down; NULL */
static int run(pid_t pid, const struct devcgroup_rule *rule, bool undo, const char *record)
{
	struct undo_log *undo_log = undo_log_new(false);
	struct devcgroup *cgroup = NULL;
	struct err err = {0};
	int r = undo_log ? devcgroup_open(pid, -1, &cgroup, &err) : -ENOMEM;

	if (r == 0 && cgroup)
		r = devcgroup_allow(cgroup, rule, 1, undo_log, &err);
	if (r == 0 && record && cgroup)
		r = keep(cgroup, record);
	if (r == 0 && undo)
		undo_log_undo(undo_log);
	else if (r == 0 && devcgroup_finish(cgroup, false) < 0)
		(void)fprintf(stderr, "device-rule: systemd was not told\n");
	devcgroup_free(cgroup);
	(void)undo_log_free(undo_log);
	return r == 0 ? EXIT_SUCCESS : fail(r, &err);
}

/* As another process does that has only what was written down. */
static int take_back(pid_t pid, const char *record)
{
	json_t *json = json_load_file(record, 0, NULL);
	struct devcgroup_additions additions = {0};
	struct devcgroup *cgroup = NULL;
	struct devcgroup_id ids[8];
	struct err err = {0};
	int r = json ? additions_read(json, &additions) : -ENOENT;

	for (size_t i = 0; i < additions.count && i < ARRAY_SIZE(ids); i++)
		ids[i] = additions.items[i].cgroup;
	if (r == 0)
		r = devcgroup_open_again(pid, -1, ids, additions.count, &cgroup, &err);
	if (r == 0)
		r = devcgroup_take_back(cgroup, &additions, &err);
	devcgroup_free(cgroup);
	additions_clear(&additions);
	json_decref(json);
	return r == 0 ? EXIT_SUCCESS : fail(r, &err);
}

static int compare(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* The undoing is not part of the time. */
static int measure(pid_t pid, const struct devcgroup_rule *rule, size_t times)
{
	static double taken[TIMES_MAX];

	struct undo_log *undo_log = undo_log_new(false);

	for (size_t i = 0; undo_log && i < times; i++) {
		struct devcgroup *cgroup = NULL;
		struct err err = {0};
		double start = now();
		int r = devcgroup_open(pid, -1, &cgroup, &err);

		if (r == 0 && cgroup)
			r = devcgroup_allow(cgroup, rule, 1, undo_log, &err);
		if (r == 0 && getenv("CTR_GPU_TEST_FINISH"))
			(void)devcgroup_finish(cgroup, false);
		taken[i] = now() - start;
		undo_log_undo(undo_log);
		devcgroup_free(cgroup);
		if (r != 0)
			return fail(r, &err);
	}
	(void)undo_log_free(undo_log);
	qsort(taken, times, sizeof(*taken), compare);
	printf("median %.0f us, fastest %.0f us, of %zu\n", taken[times / 2], taken[0], times);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct devcgroup_rule rule;
	size_t times = 0;
	const char *record = NULL;
	bool undo = false, back = false;
	pid_t pid;

	for (; argc > 1 && str_has_prefix(argv[1], "--"); argc--, argv++) {
		if (streq(argv[1], "--undo")) {
			undo = true;
			continue;
		}
		if (argc > 2 && streq(argv[1], "--times"))
			times = strtoul(argv[2], NULL, 10);
		else if (argc > 2)
			record = argv[2];
		back |= streq(argv[1], "--take-back");
		argc--;
		argv++;
	}
	if (argc != 7 || times > TIMES_MAX) {
		(void)fprintf(stderr, "usage: device-rule [--undo] [--times N] [--keep FILE | --take-back FILE] PID "
				      "TYPE MAJOR MINOR ACCESS PATH\n");
		return 2;
	}
	pid = (pid_t)strtol(argv[1], NULL, 10);
	rule = (struct devcgroup_rule){
		.type = *argv[2],
		.major = (unsigned)strtoul(argv[3], NULL, 10),
		.minor = (unsigned)strtoul(argv[4], NULL, 10),
		.access = argv[5],
		.path = argv[6],
	};
	if (back)
		return take_back(pid, record);
	return times ? measure(pid, &rule, times) : run(pid, &rule, undo, record);
}
