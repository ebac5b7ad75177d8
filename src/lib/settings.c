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
	DEFAULT_DEADLINE_S = 60,    /* above the driver timeout, below the timeout in ctr-gpu.json */
	DEFAULT_VCUDA_PERCENT = 50, /* of the GPUs' memory: two containers fit on one */
	DEFAULT_VCUDA_CLIENTS = 16,
	MOST_VCUDA_CLIENTS = 256,
	MOST_EXCLUSIVE = 1000,
	MOST_VCUDA_USERS = 1000,
	DEFAULT_VCUDA_CONTAINERS = 4,
	MOST_VCUDA_CONTAINERS = 64,
	KEYS_MAX = 32, /* of an object */
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

static void settings_clear_users(struct settings *settings)
{
	for (size_t i = 0; i < settings->vcuda_user_count; i++)
		strv_clear(&settings->vcuda_users[i].gpus);
	free(settings->vcuda_users);
	settings->vcuda_users = NULL;
	settings->vcuda_user_count = 0;
}

void settings_clear(struct settings *settings)
{
	strv_clear(&settings->library_dirs);
	strv_clear(&settings->exclusive);
	strv_clear(&settings->runtimes);
	settings_clear_users(settings);
	free(settings->driverd);
	free(settings->log_destination);
	free(settings->driver_root);
	*settings = (struct settings){0};
}

struct key {
	const char *name;
	int (*read)(void *object, const struct key *key, const json_t *value);
	const char *wanted;
	size_t member;            /* of the object, which is struct settings or one of its list; where the value goes */
	const char *const *names; /* of the values of an enumeration; "journal": as good as a path */
	json_int_t least, most;   /* of a number */
	const struct table *table; /* of an object's own keys, which are read as these; NULL: it has none */
};

/* Keys of one object, or of each object of a list. */
struct table {
	const struct key *keys;
	size_t count;
	const char *prefix; /* of their names in messages */
	/* Of a list: where the keys of its next object go, NULL without memory; whether that may be as it was read. */
	void *(*add)(struct settings *settings);
	bool (*is_whole)(const void *object);
};

/* Each reader of a key returns 0, -EINVAL for an invalid value, or -ENOMEM. */

static void *settings_member(void *object, const struct key *key)
{
	return (char *)object + key->member;
}

static int settings_read_flag(void *object, const struct key *key, const json_t *value)
{
	*(bool *)settings_member(object, key) = json_is_true(value);
	return json_is_boolean(value) ? 0 : -EINVAL;
}

static int settings_read_number(void *object, const struct key *key, const json_t *value)
{
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < key->least || number > key->most)
		return -EINVAL;
	*(unsigned *)settings_member(object, key) = (unsigned)number;
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

static int settings_read_enum(void *object, const struct key *key, const json_t *value)
{
	return settings_read_name(key->names, value, settings_member(object, key));
}

/* One for all methods. What is in an object for some of them is read by the table. */
static int settings_read_on_missing(void *object, const struct key *key, const json_t *value)
{
	struct settings *settings = object;
	unsigned policy;

	if (json_is_object(value))
		return 0;
	if (settings_read_name(key->names, value, &policy) < 0)
		return -EINVAL;
	for (size_t i = 0; i < ENTRIES; i++)
		settings->on_missing[i] = (enum on_missing)policy;
	return 0;
}

static int settings_read_timeout(void *object, const struct key *key, const json_t *value)
{
	struct settings *settings = object;
	double seconds = json_number_value(value);

	(void)key;
	if (!json_is_number(value) || !(seconds >= 0.001 && seconds <= (double)SETTINGS_LONGEST_S))
		return -EINVAL;
	settings->driver_timeout_ms = (unsigned)(seconds * 1000);
	return 0;
}

static bool settings_is_absolute_path(const json_t *value)
{
	return json_is_string(value) && json_string_value(value)[0] == '/';
}

/* A program that is to be looked for, or its path. */
static int settings_read_path(void *object, const struct key *key, const json_t *value)
{
	unsigned ignored;

	if (!settings_is_absolute_path(value) && (!key->names || settings_read_name(key->names, value, &ignored) < 0))
		return -EINVAL;
	return str_replace(settings_member(object, key), json_string_value(value));
}

static int settings_read_list(void *object, const struct key *key, const json_t *value)
{
	struct strv *list = settings_member(object, key);
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
static int settings_read_names(void *object, const struct key *key, const json_t *value)
{
	struct strv *list = settings_member(object, key);
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

static int settings_read_bytes(void *object, const struct key *key, const json_t *value)
{
	return json_is_string(value) && str_parse_size(json_string_value(value), settings_member(object, key))
		       ? 0
		       : -EINVAL;
}

static int settings_read_share(void *object, const struct key *key, const json_t *value)
{
	return json_is_string(value) && str_parse_share(json_string_value(value), settings_member(object, key))
		       ? 0
		       : -EINVAL;
}

static const char *const modes[] = {
	[VCUDA_OFF] = "off", [VCUDA_ALLOW] = "allow", [VCUDA_DEFAULT] = "default", [VCUDA_FORCE] = "force", NULL};
#define OF_USER(name) .member = offsetof(struct vcuda_user, name)
static const struct key user_keys[] = {
	{"uid", settings_read_number, "a user's number", OF_USER(uid), .least = 1, .most = UINT32_MAX - 1},
	{"gid", settings_read_number, "a group's number", OF_USER(gid), .least = 1, .most = UINT32_MAX - 1},
	{"gpus", settings_read_names, "a list of names of GPUs, as ctr-gpu info shows them", OF_USER(gpus),
	 .most = MOST_EXCLUSIVE},
	{"memory", settings_read_share, "an amount such as \"8G\", a share such as \"50%\", or \"all\"",
	 OF_USER(limits.memory)},
	{"host_memory", settings_read_bytes, "an amount such as \"8G\"", OF_USER(limits.host_memory)},
	{"share", settings_read_number, "a whole number from 1 to 1000", OF_USER(limits.share), .least = 1,
	 .most = MOST_SHARE},
	{"max_clients", settings_read_number, "a whole number from 1 to 256", OF_USER(limits.max_clients), .least = 1,
	 .most = MOST_VCUDA_CLIENTS},
	{"containers", settings_read_number, "a whole number from 1 to 64", OF_USER(containers), .least = 1,
	 .most = MOST_VCUDA_CONTAINERS},
};
#undef OF_USER

static void *settings_add_user(struct settings *settings)
{
	struct vcuda_user *users = reallocarray(settings->vcuda_users, settings->vcuda_user_count + 1, sizeof(*users));

	if (!users)
		return NULL;
	settings->vcuda_users = users;
	users[settings->vcuda_user_count] = (struct vcuda_user){
		.limits = {.memory = STR_SHARE(DEFAULT_VCUDA_PERCENT),
			   .share = USUAL_SHARE,
			   .max_clients = DEFAULT_VCUDA_CLIENTS},
		.containers = DEFAULT_VCUDA_CONTAINERS,
	};
	return &users[settings->vcuda_user_count++];
}

/* It is for a user or for a group. */
static bool settings_is_user(const void *object)
{
	const struct vcuda_user *user = object;

	return !user->uid != !user->gid;
}

static const struct table user_table = {
	.keys = user_keys,
	.count = ARRAY_SIZE(user_keys),
	.prefix = "\"users\": ",
	.add = settings_add_user,
	.is_whole = settings_is_user,
};

/* What is in its objects is read by the table. */
static int settings_read_users(void *object, const struct key *key, const json_t *value)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(value) || (json_int_t)json_array_size(value) > key->most)
		return -EINVAL;
	json_array_foreach (value, i, item)
		if (!json_is_object(item))
			return -EINVAL;
	settings_clear_users(object);
	return 0;
}

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
	{"users", settings_read_users, "a list of objects, each with a \"uid\" or a \"gid\"", .most = MOST_VCUDA_USERS,
	 .table = &user_table},
};
static const struct table vcuda_table = {.keys = vcuda_keys, .count = ARRAY_SIZE(vcuda_keys), .prefix = "\"vcuda\": "};

/* Its keys are read by the table. */
static int settings_read_object(void *object, const struct key *key, const json_t *value)
{
	(void)object, (void)key;
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
#define OF_METHOD(method)                                                                             \
	settings_read_enum, "\"fail\", \"warn\" or \"skip\"",                                         \
		.member = offsetof(struct settings, on_missing) + (method) * sizeof(enum on_missing), \
		.names = policies
static const struct key method_keys[ENTRIES] = {
	[ENTRY_HOOK] = {"hook", OF_METHOD(ENTRY_HOOK)},
	[ENTRY_RUNTIME] = {"runtime", OF_METHOD(ENTRY_RUNTIME)},
	[ENTRY_CDI] = {"cdi", OF_METHOD(ENTRY_CDI)},
};
#undef OF_METHOD
static const struct table method_table = {.keys = method_keys, .count = ENTRIES, .prefix = "\"on-missing\": "};

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
	 .most = SETTINGS_LONGEST_S},
	{"library-directories", settings_read_list, "a list of absolute paths", MEMBER(library_dirs)},
	{"driver-root", settings_read_path, "an absolute path", MEMBER(driver_root)},
	/* A number: names are in databases that a static program does not reach. */
	{"mps-user", settings_read_number, "a user's number", MEMBER(mps_user), .most = UINT32_MAX - 1},
	{"runtimes", settings_read_list, "a list of names or absolute paths of OCI runtimes", MEMBER(runtimes),
	 .least = 1},
	{"choice", settings_read_enum, "\"auto\", \"store\", \"environment\", \"guard\" or \"strict\"", MEMBER(choice),
	 .names = grades},
	{"exclusive", settings_read_names, "a list of names of GPUs, as ctr-gpu info shows them", MEMBER(exclusive),
	 .most = MOST_EXCLUSIVE},
	{"strict-requirements", FLAG(strict_requirements)},
	{"disable-requirements", FLAG(disable_requirements)},
	{"on-missing", settings_read_on_missing,
	 "\"fail\", \"warn\" or \"skip\", or an object with one of these for \"hook\", \"runtime\" or \"cdi\"",
	 .names = policies, .table = &method_table},
	{"vcuda", settings_read_object,
	 "an object with \"mode\", \"memory\", \"host_memory\", \"max_clients\" or \"idle\"", .table = &vcuda_table},
	/* Administrators know these names from NVIDIA's configuration. */
	{"accept-nvidia-visible-devices-envvar-when-unprivileged", FLAG(accept_environment)},
	{"accept-nvidia-visible-devices-as-volume-mounts", FLAG(accept_mounts)},
};
#undef FLAG
#undef MEMBER

static const struct table table = {.keys = keys, .count = ARRAY_SIZE(keys), .prefix = ""};
_Static_assert(ARRAY_SIZE(keys) <= KEYS_MAX, "settings_refuse_key()");

static int settings_read_table(void *object, const char *path, const struct table *of, const json_t *json,
			       struct err *err);

/* What was meant by a word that is none of an enumeration's. */
static const char *settings_suggest_value(const struct key *key, const json_t *value, char ret[static SUGGESTION_SIZE])
{
	size_t count = 0;

	while (key->names && key->names[count])
		count++;
	return str_suggest(key->names, json_is_string(value) ? count : 0, json_string_value(value), ret);
}

static int settings_refuse_value(const char *path, const char *prefix, const struct key *key, const json_t *value,
				 struct err *err)
{
	_cleanup_free_ char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
	char suggestion[SUGGESTION_SIZE];

	return err_set_advised(err, CTR_GPU_E_BAD_CONFIG,
			       ("%s: %s\"%s\" must be %s, not %.64s%s", path, prefix, key->name, key->wanted,
				text ? text : "what is there", settings_suggest_value(key, value, suggestion)),
			       ("Correct \"%s\" in %s; see ctr-gpu-config(5).", key->name, path));
}

static int settings_refuse_key(const char *path, const struct table *of, const char *name, struct err *err)
{
	const char *names[KEYS_MAX];
	char suggestion[SUGGESTION_SIZE];

	for (size_t i = 0; i < of->count; i++)
		names[i] = of->keys[i].name;
	return err_set_advised(err, CTR_GPU_E_BAD_CONFIG,
			       ("%s: %sunknown key \"%.64s\"%s", path, of->prefix, name,
				str_suggest(names, of->count, name, suggestion)),
			       ("Correct or remove \"%.64s\" in %s; ctr-gpu-config(5) has the keys.", name, path));
}

static int settings_read_items(struct settings *settings, const char *path, const struct key *key, const json_t *list,
			       struct err *err)
{
	const json_t *item;
	size_t i;
	int r = 0;

	json_array_foreach (list, i, item) {
		void *object = key->table->add(settings);

		if (!object)
			return -ENOMEM;
		r = settings_read_table(object, path, key->table, item, err);
		if (r == 0 && !key->table->is_whole(object))
			r = settings_refuse_value(path, "", key, item, err);
		if (r != 0)
			return r;
	}
	return 0;
}

static int settings_read_inside(void *object, const char *path, const struct key *key, const json_t *value,
				struct err *err)
{
	if (!key->table)
		return 0;
	return key->table->add ? settings_read_items(object, path, key, value, err)
			       : settings_read_table(object, path, key->table, value, err);
}

static int settings_read_key(void *object, const char *path, const struct table *of, const char *name,
			     const json_t *value, struct err *err)
{
	for (size_t i = 0; i < of->count; i++) {
		const struct key *key = &of->keys[i];
		int r;

		if (!streq(key->name, name))
			continue;
		r = key->read(object, key, value);
		if (r == -EINVAL)
			return settings_refuse_value(path, of->prefix, key, value, err);
		return r == 0 ? settings_read_inside(object, path, key, value, err) : r;
	}
	return settings_refuse_key(path, of, name, err);
}

/* Behind a mistake the other keys are read, too; the caller decides what to do with them. */
static int settings_read_table(void *object, const char *path, const struct table *of, const json_t *json,
			       struct err *err)
{
	const char *name;
	json_t *value;
	int r = 0;

	json_object_foreach ((json_t *)(uintptr_t)json, name, value) {
		int r_key = settings_read_key(object, path, of, name, value, r == 0 ? err : NULL);

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
			("%s is not a JSON object: %s", path, r < 0 ? reason : "it is a list"),
			("Correct %s, an object such as {\"on-missing\": \"warn\"}, or move it away; see "
			 "ctr-gpu-config(5).",
			 path));
	if (r < 0)
		return r;
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
				       ("Name another, or write a file there; see ctr-gpu-config(5)."));
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
	struct stat st;
	size_t size;
	int r;

	/* A link to nothing counts as a file: what it should lead to may forbid something. */
	if (!path && lstat(file, &st) < 0 && errno == ENOENT)
		return 0;
	r = settings_open_checked(file, &fd, err);
	if (r > 0)
		return r;
	if (r == 0)
		r = fd_read_all(fd, CONFIG_MAX_SIZE, &data, &size);
	if (r < 0)
		return err_set_advised(err, r, ("cannot read the configuration %s: %m", file),
				       ("Check the path and the permissions of %s.", file));
	return settings_parse(settings, file, data, size, err);
}
