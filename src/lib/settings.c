/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"

enum {
	OVERFLOW_UID = 65534, /* the default of /proc/sys/kernel/overflowuid */
	CONFIG_MAX_SIZE = 64 * 1024,
	DEFAULT_DRIVER_TIMEOUT_MS = 10 * 1000,
	LONGEST_DRIVER_TIMEOUT_S = 3600,
	DEFAULT_DEADLINE_S = 60, /* above the driver timeout, below the timeout in ctr-gpu.json */
	LONGEST_DEADLINE_S = 3600,
	DEFAULT_VCUDA_PERCENT = 50, /* of the GPUs' memory: two containers fit on one */
	DEFAULT_VCUDA_CLIENTS = 16,
	MOST_VCUDA_CLIENTS = 256,
	MOST_EXCLUSIVE = 1000,
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
		.vcuda_limits = {.memory = STR_SHARE(DEFAULT_VCUDA_PERCENT), .max_clients = DEFAULT_VCUDA_CLIENTS},
	};
}

void settings_clear(struct settings *settings)
{
	strv_clear(&settings->library_dirs);
	strv_clear(&settings->exclusive);
	strv_clear(&settings->runtimes);
	free(settings->driverd);
	free(settings->log_destination);
	free(settings->driver_root);
	*settings = (struct settings){0};
}

struct key {
	const char *name;
	int (*read)(struct settings *settings, const struct key *key, const json_t *value);
	const char *wanted;
	size_t member;             /* of struct settings; where the value goes */
	const char *const *names;  /* of the values of an enumeration; "journal": as good as a path */
	json_int_t least, most;    /* of a number */
	const struct table *table; /* of an object's own keys, which are read as these; NULL: it has none */
};

/* Keys of one object. */
struct table {
	const struct key *keys;
	size_t count;
	const char *prefix; /* of their names in messages */
};

/* Each reader of a key returns 0, -EINVAL for an invalid value, or -ENOMEM. */

static void *settings_member(struct settings *settings, const struct key *key)
{
	return (char *)settings + key->member;
}

static int settings_read_flag(struct settings *settings, const struct key *key, const json_t *value)
{
	*(bool *)settings_member(settings, key) = json_is_true(value);
	return json_is_boolean(value) ? 0 : -EINVAL;
}

static int settings_read_number(struct settings *settings, const struct key *key, const json_t *value)
{
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < key->least || number > key->most)
		return -EINVAL;
	*(unsigned *)settings_member(settings, key) = (unsigned)number;
	return 0;
}

/* The index of a name in a list that ends with NULL; "" in the list matches nothing. */
static int settings_read_name(const char *const *names, const json_t *value, unsigned *ret)
{
	for (unsigned i = 0; json_is_string(value) && names[i]; i++) {
		if (!*names[i] || !streq(names[i], json_string_value(value)))
			continue;
		*ret = i;
		return 0;
	}
	return -EINVAL;
}

static int settings_read_enum(struct settings *settings, const struct key *key, const json_t *value)
{
	return settings_read_name(key->names, value, settings_member(settings, key));
}

/* One for all methods, or an object with some of them. */
static int settings_read_on_missing(struct settings *settings, const struct key *key, const json_t *value)
{
	static const char *const methods[ENTRIES] = {
		[ENTRY_HOOK] = "hook", [ENTRY_RUNTIME] = "runtime", [ENTRY_CDI] = "cdi"};
	size_t named = 0;
	int r = 0;

	for (size_t i = 0; i < ENTRIES && r == 0; i++) {
		const json_t *policy = json_is_object(value) ? json_object_get(value, methods[i]) : value;

		r = policy ? settings_read_name(key->names, policy, (unsigned *)&settings->on_missing[i]) : 0;
		named += policy != NULL;
	}
	return r == 0 && json_is_object(value) && json_object_size(value) != named ? -EINVAL : r;
}

static int settings_read_timeout(struct settings *settings, const struct key *key, const json_t *value)
{
	double seconds = json_number_value(value);

	(void)key;
	if (!json_is_number(value) || !(seconds >= 0.001 && seconds <= (double)LONGEST_DRIVER_TIMEOUT_S))
		return -EINVAL;
	settings->driver_timeout_ms = (unsigned)(seconds * 1000);
	return 0;
}

static bool settings_is_absolute_path(const json_t *value)
{
	return json_is_string(value) && json_string_value(value)[0] == '/';
}

/* A program that is to be looked for, or its path. */
static int settings_read_path(struct settings *settings, const struct key *key, const json_t *value)
{
	unsigned ignored;

	if (!settings_is_absolute_path(value) && (!key->names || settings_read_name(key->names, value, &ignored) < 0))
		return -EINVAL;
	return str_replace(settings_member(settings, key), json_string_value(value));
}

static int settings_read_list(struct settings *settings, const struct key *key, const json_t *value)
{
	struct strv *list = settings_member(settings, key);
	size_t i;
	json_t *item;

	if (!json_is_array(value))
		return -EINVAL;
	strv_clear(list);
	json_array_foreach ((json_t *)value, i, item) {
		/* Where it may, a name: of a program that is to be looked for. */
		if (!settings_is_absolute_path(item) &&
		    (!key->least || json_string_length(item) == 0 || strchr(json_string_value(item), '/')))
			return -EINVAL;
		if (strv_add(list, json_string_value(item)) < 0)
			return -ENOMEM;
	}
	return (json_int_t)list->count < key->least ? -EINVAL : 0;
}

/* What `ctr-gpu info` calls a device; which this host has, is found when a container asks. */
static int settings_read_names(struct settings *settings, const struct key *key, const json_t *value)
{
	struct strv *list = settings_member(settings, key);
	size_t i;
	json_t *item;

	if (!json_is_array(value) || (json_int_t)json_array_size(value) > key->most)
		return -EINVAL;
	strv_clear(list);
	json_array_foreach ((json_t *)value, i, item) {
		if (json_string_length(item) == 0)
			return -EINVAL;
		if (strv_add(list, json_string_value(item)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int settings_read_runtimes(struct settings *settings, const struct key *key, const json_t *value)
{
	int r = settings_read_list(settings, key, value);

	settings->unread |= r < 0;
	return r;
}

static int settings_read_bytes(struct settings *settings, const struct key *key, const json_t *value)
{
	return json_is_string(value) && str_parse_size(json_string_value(value), settings_member(settings, key))
		       ? 0
		       : -EINVAL;
}

static int settings_read_share(struct settings *settings, const struct key *key, const json_t *value)
{
	return json_is_string(value) && str_parse_share(json_string_value(value), settings_member(settings, key))
		       ? 0
		       : -EINVAL;
}

static const char *const modes[] = {
	[VCUDA_OFF] = "off", [VCUDA_ALLOW] = "allow", [VCUDA_DEFAULT] = "default", [VCUDA_FORCE] = "force", NULL};
static const struct key vcuda_keys[] = {
	{"mode", settings_read_enum, "\"off\", \"allow\", \"default\" or \"force\"",
	 .member = offsetof(struct settings, vcuda_mode), .names = modes},
	{"memory", settings_read_share, "an amount such as \"8G\", a share such as \"50%\", or \"all\"",
	 .member = offsetof(struct settings, vcuda_limits.memory)},
	{"host_memory", settings_read_bytes, "an amount such as \"8G\"",
	 .member = offsetof(struct settings, vcuda_limits.host_memory)},
	{"max_clients", settings_read_number, "a whole number from 1 to 256",
	 .member = offsetof(struct settings, vcuda_limits.max_clients), .least = 1, .most = MOST_VCUDA_CLIENTS},
	{"idle", settings_read_number, "seconds, a whole number from 0 to 2592000",
	 .member = offsetof(struct settings, vcuda_limits.idle), .most = VCUDA_LIMIT_LONGEST_S},
	{"balance", settings_read_number, "seconds, a whole number from 0 to 2592000",
	 .member = offsetof(struct settings, vcuda_limits.balance), .most = VCUDA_LIMIT_LONGEST_S},
	{"share", settings_read_number, "a whole number from 1 to 1000",
	 .member = offsetof(struct settings, vcuda_limits.share), .least = 1, .most = MOST_SHARE},
	{"slots", settings_read_number, "a whole number from 0 to 32", .member = offsetof(struct settings, vcuda_slots),
	 .most = MOST_SLOTS},
	{"move", settings_read_flag, "true or false", .member = offsetof(struct settings, vcuda_move)},
};
static const struct table vcuda_table = {vcuda_keys, ARRAY_SIZE(vcuda_keys), "\"vcuda\": "};

/* Its keys are read by the table. */
static int settings_read_object(struct settings *settings, const struct key *key, const json_t *value)
{
	(void)settings, (void)key;
	return json_is_object(value) ? 0 : -EINVAL;
}

static const char *const sources[] = {
	[INVENTORY_AUTO] = "auto", [INVENTORY_DXCORE] = "dxcore", [INVENTORY_IOCTL] = "ioctl", NULL};
static const char *const policies[] = {[ON_MISSING_BY_REQUEST] = "",
				       [ON_MISSING_FAIL] = "fail",
				       [ON_MISSING_WARN] = "warn",
				       [ON_MISSING_SKIP] = "skip",
				       NULL};
static const char *const grades[] = {
	[CHOICE_AUTO] = "auto",   [CHOICE_STORE] = "store",   [CHOICE_ENVIRONMENT] = "environment",
	[CHOICE_GUARD] = "guard", [CHOICE_STRICT] = "strict", NULL};
static const char *const logs[] = {"journal", NULL};

/* An enumeration is read as a number, and so is a user. */
_Static_assert(sizeof(enum inventory_source) == sizeof(unsigned) && sizeof(enum vcuda_mode) == sizeof(unsigned) &&
		       sizeof(enum on_missing) == sizeof(unsigned) && sizeof(enum choice_grade) == sizeof(unsigned) &&
		       sizeof(uid_t) == sizeof(unsigned),
	       "as wide as a number");

#define MEMBER(name) .member = offsetof(struct settings, name)
#define FLAG(name) settings_read_flag, "true or false", MEMBER(name)
static const struct key keys[] = {
	{"inventory", settings_read_enum, "\"auto\", \"dxcore\" or \"ioctl\"", MEMBER(inventory), .names = sources},
	{"driver-timeout", settings_read_timeout, "seconds, from 0.001 to 3600", MEMBER(driver_timeout_ms)},
	{"log", settings_read_path, "an absolute path, or \"journal\"", MEMBER(log_destination), .names = logs},
	{"deadline", settings_read_number, "seconds, a whole number from 1 to 3600", MEMBER(deadline_s), .least = 1,
	 .most = LONGEST_DEADLINE_S},
	{"library-directories", settings_read_list, "a list of absolute paths", MEMBER(library_dirs)},
	{"driver-root", settings_read_path, "an absolute path", MEMBER(driver_root)},
	/* A number: names are in databases that a static program does not reach. */
	{"mps-user", settings_read_number, "a user's number", MEMBER(mps_user), .most = UINT32_MAX - 1},
	{"runtimes", settings_read_runtimes, "a list of names or absolute paths of OCI runtimes", MEMBER(runtimes),
	 .least = 1},
	{"choice", settings_read_enum, "\"auto\", \"store\", \"environment\", \"guard\" or \"strict\"", MEMBER(choice),
	 .names = grades},
	{"exclusive", settings_read_names, "a list of names of GPUs, as ctr-gpu info shows them", MEMBER(exclusive),
	 .most = MOST_EXCLUSIVE},
	{"strict-requirements", FLAG(strict_requirements)},
	{"disable-requirements", FLAG(disable_requirements)},
	{"on-missing", settings_read_on_missing,
	 "\"fail\", \"warn\" or \"skip\", or an object with one of these for \"hook\", \"runtime\" or \"cdi\"",
	 .names = policies},
	{"vcuda", settings_read_object,
	 "an object with \"mode\", \"memory\", \"host_memory\", \"max_clients\" or \"idle\"", .table = &vcuda_table},
	/* Administrators know these names from NVIDIA's configuration. */
	{"accept-nvidia-visible-devices-envvar-when-unprivileged", FLAG(accept_environment)},
	{"accept-nvidia-visible-devices-as-volume-mounts", FLAG(accept_mounts)},
};
#undef FLAG
#undef MEMBER

static const struct table table = {keys, ARRAY_SIZE(keys), ""};

static int settings_read_table(struct settings *settings, const char *path, const struct table *of,
			       const json_t *object, struct err *err);

static int settings_read_key(struct settings *settings, const char *path, const struct table *of, const char *name,
			     const json_t *value, struct err *err)
{
	for (size_t i = 0; i < of->count; i++) {
		const struct key *key = &of->keys[i];
		int r;

		if (!streq(key->name, name))
			continue;
		r = key->read(settings, key, value);
		if (r == -EINVAL)
			return err_set_advised(err, CTR_GPU_E_BAD_CONFIG,
					       ("%s: %s\"%s\" must be %s", path, of->prefix, name, key->wanted),
					       ("See ctr-gpu-config(5)."));
		return r == 0 && key->table ? settings_read_table(settings, path, key->table, value, err) : r;
	}
	return err_set_advised(err, CTR_GPU_E_BAD_CONFIG, ("%s: %sunknown key \"%.64s\"", path, of->prefix, name),
			       ("See ctr-gpu-config(5) for the keys."));
}

/* Behind a mistake the other keys are read, too; the caller decides what to do with them. */
static int settings_read_table(struct settings *settings, const char *path, const struct table *of,
			       const json_t *object, struct err *err)
{
	const char *name;
	json_t *value;
	int r = 0;

	json_object_foreach ((json_t *)(uintptr_t)object, name, value) {
		int r_key = settings_read_key(settings, path, of, name, value, r == 0 ? err : NULL);

		r = r == 0 ? r_key : r;
	}
	return r;
}

int settings_parse(struct settings *settings, const char *path, const char *data, size_t size, struct err *err)
{
	static const char bom[] = "\xef\xbb\xbf";
	char reason[JSON_ERROR_TEXT_LENGTH];
	_cleanup_json_ json_t *json = NULL;
	size_t start = 0;
	int r;

	/* As some editors of Windows begin a text. */
	if (size >= strlen(bom) && memcmp(data, bom, strlen(bom)) == 0)
		start = strlen(bom);
	r = json_parse(data + start, size - start, &json, reason);
	if (r == -EINVAL || (r == 0 && !json_is_object(json)))
		return err_set_advised(
			err, CTR_GPU_E_BAD_CONFIG,
			("%s is not a JSON object: %s", path, r < 0 ? reason : "something else stands there"),
			("Mend %s or move it away; see ctr-gpu-config(5).", path));
	if (r < 0)
		return r;
	settings->unread = false;
	return settings_read_table(settings, path, &table, json, err);
}

/*
 * A configuration decides what root does, so only root or the caller may write it. In a user namespace without this
 * machine's root, root's files seem to belong to the overflow uid (user_namespaces(7)). That uid is accepted there: a
 * configuration gives its reader no rights that it lacks on this machine.
 */
static int settings_check_owner(int fd, const char *path, struct err *err)
{
	struct stat st, namespace;
	bool unknown_here;

	if (fstat(fd, &st) < 0)
		return err_set(err, -errno, "cannot look at %s: %m", path);
	unknown_here = st.st_uid == OVERFLOW_UID && stat("/proc/self/ns/user", &namespace) == 0 &&
		       namespace.st_ino != initial_user_namespace;
	if (st.st_uid != 0 && st.st_uid != geteuid() && !unknown_here)
		return err_set_advised(err, CTR_GPU_E_BAD_CONFIG,
				       ("%s belongs to uid %u, so it is not read", path, st.st_uid),
				       ("Make it root's: chown root %s", path));
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set_advised(err, CTR_GPU_E_BAD_CONFIG,
				       ("%s can be written by others than its owner, so it is not read", path),
				       ("chmod go-w %s", path));
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
	fd = fd_open_file_at(dir, slash ? path + (slash - directory) + 1 : path, 0);
	if (fd == -EINVAL)
		return err_set_advised(err, CTR_GPU_E_BAD_CONFIG, ("%s is not a regular file", path),
				       ("See ctr-gpu-config(5)."));
	if (fd < 0)
		return fd;
	r = settings_check_owner(dir, slash ? directory : ".", err);
	if (r == 0)
		r = settings_check_owner(fd, path, err);
	if (r == 0)
		*ret_fd = steal_fd(&fd);
	return r;
}

int settings_load(struct settings *settings, const char *path, struct err *err)
{
	const char *file = path ? path : PATH_CONFIG;
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
		return err_set_advised(err, r, ("cannot read the configuration %s: %m", file),
				       ("Check the path and the permissions of %s.", file));
	return settings_parse(settings, file, data, size, err);
}
