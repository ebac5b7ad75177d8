/* SPDX-License-Identifier: Apache-2.0 */

#include "system/slurm_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"
#include "system/trusted_file.h"

enum { RECORD_MAX = 16 * 1024, MEMBERSHIP_MAX = 64 * 1024, RECORDS_MAX = 10000 };

static bool slurm_step_is_name(const char *name)
{
	size_t size = strspn(name, "0123456789abcdefghijklmnopqrstuvwxyz+");

	return size > 0 && size < SLURM_NAME_MAX && !name[size];
}

int slurm_step_set(const char *job, const char *step, struct slurm_step *ret)
{
	if (!slurm_step_is_name(job) || !slurm_step_is_name(step))
		return -EINVAL;
	(void)snprintf(ret->job, sizeof(ret->job), "%s", job);
	(void)snprintf(ret->step, sizeof(ret->step), "%s", step);
	return 0;
}

/* Version 1: /slurm/uid_1000/job_12/step_0/task_0; 2: /system.slice/slurmstepd.scope/job_12/step_0/user/task_0. */
size_t slurm_step_path(const char *path)
{
	const char *slurm = strstr(path, "slurm"), *job = slurm ? strstr(slurm, "/job_") : NULL;
	const char *step = job ? strchr(job + 1, '/') : NULL;

	if (!step || strncmp(step, "/step_", strlen("/step_")) != 0)
		return 0;
	return (size_t)(step - path) + 1 + strcspn(step + 1, "/\n");
}

static int slurm_step_find_line(const char *line, struct slurm_step *ret)
{
	char job[SLURM_NAME_MAX], step[SLURM_NAME_MAX];
	size_t size = slurm_step_path(line);
	const char *end = line + size, *name;

	if (size == 0)
		return -ENOENT;
	name = strstr(strstr(line, "slurm"), "/job_") + strlen("/job_");
	if (sscanf(name, "%31[0-9a-z+]/step_%31[0-9a-z+]", job, step) != 2 ||
	    name + strlen(job) + strlen("/step_") + strlen(step) != end)
		return -ENOENT;
	return slurm_step_set(job, step, ret);
}

int slurm_step_find(const char *membership, struct slurm_step *ret)
{
	int r = -ENOENT;

	while (r < 0 && *membership) {
		const char *end = strchrnul(membership, '\n');
		_cleanup_free_ char *line = strndup(membership, (size_t)(end - membership));

		if (!line)
			return -ENOMEM;
		r = slurm_step_find_line(line, ret);
		membership = *end ? end + 1 : end;
	}
	return r;
}

int slurm_step_find_own(struct slurm_step *ret)
{
	_cleanup_free_ char *membership = NULL;
	int r = fd_read_kernel_file(AT_FDCWD, "/proc/self/cgroup", MEMBERSHIP_MAX, &membership);

	return r < 0 ? r : slurm_step_find(membership, ret);
}

void slurm_record_clear(struct slurm_record *record)
{
	free(record->devices);
	*record = (struct slurm_record){0};
}

static int slurm_record_print(const struct slurm_record *record, char **ret)
{
	_cleanup_json_ json_t *json = json_pack("{s:I,s:b,s:s}", "uid", (json_int_t)record->uid, "held", record->held,
						"devices", record->devices);

	if (json && record->vcuda && json_object_set_new(json, "vcuda", json_true()) < 0)
		return -ENOMEM;
	if (json && record->stepd > 0 && json_object_set_new(json, "stepd", json_integer(record->stepd)) < 0)
		return -ENOMEM;
	*ret = json ? json_dumps(json, JSON_COMPACT) : NULL;
	return *ret ? 0 : -ENOMEM;
}

static int slurm_record_write_file(int folder, const char *unfinished, const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(folder, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, strlen(text));
	if (r == 0 && (fchmod(fd, 0644) < 0 || renameat(folder, unfinished, folder, name) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(folder, unfinished, 0);
	return r;
}

int slurm_record_write(const struct slurm_step *step, const struct slurm_record *record)
{
	_cleanup_free_ char *text = NULL, *name = NULL, *unfinished = NULL;
	_cleanup_close_ int folder = -1;
	int r = slurm_record_print(record, &text);

	if (r == 0)
		r = str_format(&name, "%s.%s", step->job, step->step);
	if (r == 0) /* in another pid namespace another process may have our number, but not of this step */
		r = str_format(&unfinished, "%s.%d", name, (int)getpid());
	if (r < 0)
		return r;
	if (mkdir(PATH_SLURM_STEPS, 0700) < 0 && errno != EEXIST)
		return -errno;
	folder = trusted_file_open(PATH_SLURM_STEPS, S_IFDIR, TRUSTED_FILE_ROOT_ONLY, O_RDONLY);
	if (folder < 0)
		return folder;
	if (fchmod(folder, 0755) < 0) /* whatever the caller's umask is */
		return -errno;
	(void)unlinkat(folder, unfinished, 0);
	return slurm_record_write_file(folder, unfinished, name, text);
}

/* Return: 0; -ENOENT; -EINVAL; negative errno. */
static int slurm_record_read_file(const char *name, struct slurm_record *ret)
{
	_cleanup_free_ char *path = NULL, *data = NULL;
	_cleanup_json_ json_t *json = NULL;
	_cleanup_close_ int fd = -1;
	const char *devices;
	json_int_t uid, stepd = 0;
	int held, vcuda = 0;
	size_t size;
	int r = str_format(&path, PATH_SLURM_STEPS "/%s", name);

	if (r < 0)
		return r;
	fd = trusted_file_open(path, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_RDONLY);
	r = fd < 0 ? fd : fd_read_all(fd, RECORD_MAX, &data, &size);
	if (r == 0)
		r = json_parse(data, size, &json, NULL);
	if (r < 0)
		return r;
	if (json_unpack(json, "{s:I,s:b,s?b,s?I,s:s}", "uid", &uid, "held", &held, "vcuda", &vcuda, "stepd", &stepd,
			"devices", &devices) < 0)
		return -EINVAL;
	*ret = (struct slurm_record){
		.uid = (uid_t)uid,
		.held = held,
		.vcuda = vcuda,
		.stepd = (pid_t)stepd,
		.devices = strdup(devices),
	};
	return ret->devices ? 0 : -ENOMEM;
}

static int slurm_record_read(const struct slurm_step *step, struct slurm_record *ret)
{
	_cleanup_free_ char *name = NULL;
	int r = str_format(&name, "%s.%s", step->job, step->step);

	return r < 0 ? r : slurm_record_read_file(name, ret);
}

static bool slurm_record_is_file(const char *name)
{
	return name[0] >= '0' && name[0] <= '9';
}

/* Whether another slurmstepd has written it. One that cannot be read may be another's. */
static bool slurm_record_is_of_another(const char *name, pid_t stepd)
{
	_cleanup_record_ struct slurm_record record = {0};

	return slurm_record_read_file(name, &record) < 0 || (record.stepd > 0 && record.stepd != stepd);
}

void slurm_record_remove(const struct slurm_step *step, pid_t stepd)
{
	_cleanup_close_ int folder = trusted_file_open(PATH_SLURM_STEPS, S_IFDIR, TRUSTED_FILE_ROOT_ONLY, O_RDONLY);
	_cleanup_strv_ struct strv names = {0};
	_cleanup_free_ char *name = NULL;
	size_t size;

	if (folder < 0 || str_format(&name, "%s.%s", step->job, step->step) < 0)
		return;
	size = strlen(name);
	(void)fd_list_names(folder, ".", slurm_record_is_file, RECORDS_MAX, &names);
	for (size_t i = 0; i < names.count; i++) {
		const char *one = names.items[i];

		if (strncmp(one, name, size) != 0 || (step->step[0] && one[size] && one[size] != '+'))
			continue;
		if (stepd <= 0 || !slurm_record_is_of_another(one, stepd))
			(void)unlinkat(folder, one, 0);
	}
}

/* ---- of the caller ---- */

static const char *slurm_step_variable(const char *const *environment, const char *name)
{
	const char *value = NULL;

	for (; environment && *environment; environment++)
		if (strncmp(*environment, name, strlen(name)) == 0)
			value = *environment + strlen(name);
	return value;
}

/*
 * Finds the step by environment variables, which its user can set. Only steps of that user count, so the user gains
 * nothing by it. For root, who starts containers for other users, it is not used.
 */
static int slurm_record_find_named(const char *const *environment, struct slurm_record *ret)
{
	const char *job = slurm_step_variable(environment, "SLURM_JOB_ID=");
	const char *name = slurm_step_variable(environment, "SLURM_STEP_ID=");
	_cleanup_record_ struct slurm_record record = {0};
	struct slurm_step step;
	int r;

	if (!job || getuid() == 0 || slurm_step_set(job, name ? name : "batch", &step) < 0)
		return -ENOENT;
	r = slurm_record_read(&step, &record);
	if (r < 0 || record.uid != getuid())
		return r < 0 ? r : -ENOENT;
	*ret = steal_struct(&record);
	return 0;
}

/*
 * By a cgroup's name. Where cgroups are a user's own, the user may have made one of that name: so a record is of use to
 * its own user, and to root, who makes those of Slurm.
 */
static int slurm_record_find_of(const struct slurm_step *step, struct slurm_record *ret)
{
	_cleanup_record_ struct slurm_record record = {0};
	int r = slurm_record_read(step, &record);

	if (r == 0 && getuid() != 0 && record.uid != getuid())
		return -EACCES;
	if (r == 0)
		*ret = steal_struct(&record);
	return r;
}

int slurm_record_find(const char *const *environment, struct slurm_record *ret)
{
	struct slurm_step step;
	int r;

	if (access(PATH_SLURM_STEPS, F_OK) < 0)
		return -ENOENT;
	r = slurm_step_find_own(&step);
	/* Where this cannot be read, the environment, which others write, does not count in its place. */
	if (r == 0)
		return slurm_record_find_of(&step, ret);
	r = slurm_record_find_named(environment, ret);
	return r == -ENOMEM || r == 0 ? r : -ENOENT;
}
