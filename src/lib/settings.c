/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/json.h"

enum {
	OVERFLOW_UID = 65534, /* /proc/sys/kernel/overflowuid, which nobody changes */
	CONFIG_MAX_SIZE = 64 * 1024,
	DEFAULT_DRIVER_TIMEOUT_MS = 10 * 1000,
	LONGEST_DRIVER_TIMEOUT_S = 3600,
	DEFAULT_DEADLINE_S = 60, /* above the driver timeout, below the timeout in ctr-gpu.json */
	LONGEST_DEADLINE_S = 3600,
};

/* PROC_USER_INIT_INO of include/linux/proc_ns.h. */
static const ino_t initial_user_namespace = 0xEFFFFFFDU;

void settings_init(struct settings *settings)
{
	*settings = (struct settings){
		.driver_timeout_ms = DEFAULT_DRIVER_TIMEOUT_MS,
		.deadline_s = DEFAULT_DEADLINE_S,
		.accept_environment = true,
		.accept_mounts = true,
	};
}

void settings_clear(struct settings *settings)
{
	strv_clear(&settings->library_dirs);
	strv_clear(&settings->runtimes);
	free(settings->driverd);
	free(settings->log_destination);
	free(settings->driver_root);
	*settings = (struct settings){0};
}

/* Each reader of a key returns 0, -EINVAL for an invalid value, or -ENOMEM. */

/* Which of some names it is, of which the first may be NULL. */
static int settings_find_name(const char *const *names, size_t count, const json_t *value, size_t *ret)
{
	for (size_t i = 0; json_is_string(value) && i < count; i++) {
		if (!names[i] || !streq(names[i], json_string_value(value)))
			continue;
		*ret = i;
		return 0;
	}
	return -EINVAL;
}

static int settings_read_policy(const json_t *value, enum on_missing *ret)
{
	static const char *const names[] = {
		[ON_MISSING_FAIL] = "fail", [ON_MISSING_WARN] = "warn", [ON_MISSING_SKIP] = "skip"};
	size_t number;
	int r = settings_find_name(names, ARRAY_SIZE(names), value, &number);

	if (r == 0)
		*ret = (enum on_missing)number;
	return r;
}

/* One for all doors, or an object with some of them. */
static int settings_read_on_missing(struct settings *settings, const json_t *value)
{
	static const char *const names[ENTRIES] = {
		[ENTRY_HOOK] = "hook", [ENTRY_RUNTIME] = "runtime", [ENTRY_CDI] = "cdi"};
	size_t named = 0;
	int r = 0;

	for (size_t i = 0; i < ENTRIES && r == 0; i++) {
		const json_t *policy = json_is_object(value) ? json_object_get(value, names[i]) : value;

		r = policy ? settings_read_policy(policy, &settings->on_missing[i]) : 0;
		named += policy != NULL;
	}
	return r == 0 && json_is_object(value) && json_object_size(value) != named ? -EINVAL : r;
}

static int settings_read_inventory(struct settings *settings, const json_t *value)
{
	static const char *const names[] = {
		[INVENTORY_AUTO] = "auto", [INVENTORY_DXCORE] = "dxcore", [INVENTORY_IOCTL] = "ioctl"};
	size_t number;
	int r = settings_find_name(names, ARRAY_SIZE(names), value, &number);

	if (r == 0)
		settings->inventory = (enum inventory_source)number;
	return r;
}

static int settings_read_timeout(struct settings *settings, const json_t *value)
{
	double seconds = json_number_value(value);

	if (!json_is_number(value) || !(seconds >= 0.001 && seconds <= (double)LONGEST_DRIVER_TIMEOUT_S))
		return -EINVAL;
	settings->driver_timeout_ms = (unsigned)(seconds * 1000);
	return 0;
}

static int settings_read_deadline(struct settings *settings, const json_t *value)
{
	json_int_t seconds = json_integer_value(value);

	if (seconds < 1 || seconds > LONGEST_DEADLINE_S)
		return -EINVAL;
	settings->deadline_s = (unsigned)seconds;
	return 0;
}

static bool settings_is_absolute_path(const json_t *value)
{
	return json_is_string(value) && json_string_value(value)[0] == '/';
}

static int settings_read_log(struct settings *settings, const json_t *value)
{
	if (!settings_is_absolute_path(value) && !(json_is_string(value) && streq(json_string_value(value), "journal")))
		return -EINVAL;
	return str_replace(&settings->log_destination, json_string_value(value));
}

/* A program that is to be looked for, or its path. */
static bool settings_is_program(const json_t *value)
{
	return settings_is_absolute_path(value) ||
	       (json_string_length(value) > 0 && !strchr(json_string_value(value), '/'));
}

static int settings_read_list(const json_t *value, bool (*is_item)(const json_t *item), struct strv *ret)
{
	size_t i;
	json_t *item;
	int r;

	if (!json_is_array(value))
		return -EINVAL;
	strv_clear(ret);
	json_array_foreach ((json_t *)value, i, item) {
		if (!is_item(item))
			return -EINVAL;
		r = strv_add(ret, json_string_value(item));
		if (r < 0)
			return r;
	}
	return 0;
}

static int settings_read_library_dirs(struct settings *settings, const json_t *value)
{
	return settings_read_list(value, settings_is_absolute_path, &settings->library_dirs);
}

static int settings_read_runtimes(struct settings *settings, const json_t *value)
{
	int r = json_array_size(value) > 0 ? settings_read_list(value, settings_is_program, &settings->runtimes)
					   : -EINVAL;

	settings->unread |= r < 0;
	return r;
}

static int settings_read_driver_root(struct settings *settings, const json_t *value)
{
	if (!settings_is_absolute_path(value))
		return -EINVAL;
	return str_replace(&settings->driver_root, json_string_value(value));
}

/* A number: names are in databases that a static program does not reach. */
static int settings_read_mps_user(struct settings *settings, const json_t *value)
{
	json_int_t user = json_integer_value(value);

	if (!json_is_integer(value) || user < 0 || user >= UINT32_MAX)
		return -EINVAL;
	settings->mps_user = (uid_t)user;
	return 0;
}

static const struct key {
	const char *name;
	int (*read)(struct settings *settings, const json_t *value); /* NULL: one of true and false */
	const char *wanted;
	size_t flag; /* where that goes */
} keys[] = {
	{"inventory", settings_read_inventory, "\"auto\", \"dxcore\" or \"ioctl\"", 0},
	{"driver-timeout", settings_read_timeout, "seconds, from 0.001 to 3600", 0},
	{"log", settings_read_log, "an absolute path, or \"journal\"", 0},
	{"deadline", settings_read_deadline, "seconds, a whole number from 1 to 3600", 0},
	{"library-directories", settings_read_library_dirs, "a list of absolute paths", 0},
	{"driver-root", settings_read_driver_root, "an absolute path", 0},
	{"mps-user", settings_read_mps_user, "a user's number", 0},
	{"runtimes", settings_read_runtimes, "a list of names or absolute paths of OCI runtimes", 0},
	{"strict-requirements", NULL, "true or false", offsetof(struct settings, strict_requirements)},
	{"disable-requirements", NULL, "true or false", offsetof(struct settings, disable_requirements)},
	{"on-missing", settings_read_on_missing,
	 "\"fail\", \"warn\" or \"skip\", or an object with one of these for \"hook\", \"runtime\" or \"cdi\"", 0},
	/* NVIDIA's names, which administrators know. */
	{"accept-nvidia-visible-devices-envvar-when-unprivileged", NULL, "true or false",
	 offsetof(struct settings, accept_environment)},
	{"accept-nvidia-visible-devices-as-volume-mounts", NULL, "true or false",
	 offsetof(struct settings, accept_mounts)},
};

static int settings_read_key(struct settings *settings, const char *path, const char *name, const json_t *value,
			     struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		int r;

		if (!streq(keys[i].name, name))
			continue;
		if (keys[i].read)
			r = keys[i].read(settings, value);
		else if ((r = json_is_boolean(value) ? 0 : -EINVAL) == 0)
			*(bool *)((char *)settings + keys[i].flag) = json_is_true(value);
		if (r == -EINVAL)
			return err_set(err, CTR_GPU_E_BAD_CONFIG, "%s: \"%s\" must be %s\nSee ctr-gpu-config(5).", path,
				       name, keys[i].wanted);
		return r;
	}
	return err_set(err, CTR_GPU_E_BAD_CONFIG, "%s: unknown key \"%.64s\"\nSee ctr-gpu-config(5) for the keys.",
		       path, name);
}

int settings_parse(struct settings *settings, const char *path, const char *data, size_t size, struct err *err)
{
	char reason[JSON_ERROR_TEXT_LENGTH];
	_cleanup_json_ json_t *json = NULL;
	const char *name;
	json_t *value;
	int r;

	r = json_parse(data, size, &json, reason);
	if (r == -EINVAL || (r == 0 && !json_is_object(json)))
		return err_set(err, CTR_GPU_E_BAD_CONFIG,
			       "%s is not a JSON object: %s\nMend it or move it away; see ctr-gpu-config(5).", path,
			       r < 0 ? reason : "something else stands there");
	if (r < 0)
		return r;
	settings->unread = false;
	/* What a mistake in one key means for another is its reader's business, so all are read. */
	json_object_foreach (json, name, value) {
		int r_key = settings_read_key(settings, path, name, value, r == 0 ? err : NULL);

		r = r == 0 ? r_key : r;
	}
	return r;
}

/*
 * In a user namespace without this machine's root, root's files seem to be nobody's (user_namespaces(7)). What a
 * configuration decides there takes no more rights than its reader has on this machine.
 */
static bool settings_is_unknown_here(uid_t uid)
{
	struct stat st;

	return uid == OVERFLOW_UID && stat("/proc/self/ns/user", &st) == 0 && st.st_ino != initial_user_namespace;
}

/* A configuration decides what root does; only root, or whoever runs us, may write it. */
static int settings_check_owner(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, -errno, "cannot look at %s: %m", path);
	if (st.st_uid != 0 && st.st_uid != geteuid() && !settings_is_unknown_here(st.st_uid))
		return err_set(err, CTR_GPU_E_BAD_CONFIG,
			       "%s belongs to uid %u, so it is not read\nMake it root's: chown root %s", path,
			       st.st_uid, path);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, CTR_GPU_E_BAD_CONFIG,
			       "%s can be written by others than its owner, so it is not read\nchmod go-w %s", path,
			       path);
	return 0;
}

static int settings_open_checked(const char *path, int *ret_fd, struct err *err)
{
	_cleanup_free_ char *directory = strdup(path);
	_cleanup_close_ int dir = -1, fd = -1;
	char *slash;
	int r;

	if (!directory)
		return -ENOMEM;
	slash = strrchr(directory, '/');
	if (slash)
		slash[slash == directory] = '\0';
	dir = open(slash ? directory : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = openat(dir, slash ? path + (slash - directory) + 1 : path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = settings_check_owner(dir, slash ? directory : ".", err);
	if (r == 0)
		r = settings_check_owner(fd, path, err);
	if (r == 0)
		*ret_fd = steal_fd(&fd);
	return r;
}

int settings_load(struct settings *settings, const char *path, struct err *err)
{
	const char *file = path ? path : SETTINGS_DEFAULT_PATH;
	_cleanup_free_ char *data = NULL;
	_cleanup_close_ int fd = -1;
	size_t size;
	int r;

	if (!path && access(file, F_OK) < 0 && errno == ENOENT)
		return 0;
	r = settings_open_checked(file, &fd, err);
	if (r == -ENOENT && !path)
		return 0;
	settings->unread = true;
	if (r > 0)
		return r;
	if (r == 0)
		r = fd_read_all(fd, CONFIG_MAX_SIZE, &data, &size);
	if (r < 0)
		return err_set(err, r, "cannot read the configuration %s: %m\nCheck the path and its permissions.",
			       file);
	return settings_parse(settings, file, data, size, err);
}
