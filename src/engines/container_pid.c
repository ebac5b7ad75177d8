/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The first process of a container, by the name that its engine knows. A Docker daemon of the caller's is asked; the
 * others write it down in files. What they say is a number that another process may have by now: the caller opens that
 * process, and then it is compared with what else is known of it.
 */

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "ctr-gpu-error.h"
#include "engines/engine.h"
#include "engines/text.h"
#include "system/machine.h"
#include "system/trusted_file.h"

enum {
	STATE_MAX = 4 << 20,
	NAME_LENGTH_MAX = 255,
	ID_LENGTH_MIN = 8, /* of the beginning of an id */
	NAMESPACES_MAX = 256,
	CONTAINERS_MAX = 64 * 1024,
	SILENT_MAX = 2, /* questions that a daemon does not answer, until it is asked no more */
	STAT_MAX = 4096,
	MEMBERSHIP_MAX = 16 * 1024,
	NAMES_SHOWN = 3,
	DRIVERS_MAX = 16,
};

/* Where runtimes keep what they know of a container, in JSON. */
static const struct container_pid_runtime {
	const char *engine, *root, *user, *file; /* @user: below $XDG_RUNTIME_DIR */
	const char *pid, *started;
} runtimes[] = {
	{"runc", "/run/runc", "runc", "state.json", "init_process_pid", "init_process_start"},
	{"crun", "/run/crun", "crun", "status", "pid", "process-start-time"},
};

/*
 * Below the directory of a containerd: a directory for each namespace, and below that one for each container. The
 * states of its runtimes are by namespaces, too, in one directory for all containerds.
 */
#define TASKS "io.containerd.runtime.v2.task"
#define TASK_STATES "/run/containerd/runc"

void container_pid_clear(struct container_pid *found)
{
	free(found->id);
	free(found->name);
	free(found->bundle);
	free(found->cgroup);
	free(found->error);
	*found = (struct container_pid){0};
}

void container_pids_clear(struct container_pids *list)
{
	for (size_t i = 0; i < list->count; i++)
		container_pid_clear(&list->items[i]);
	for (size_t i = 0; i < list->unknown_count; i++)
		container_pid_clear(&list->unknown[i]);
	free(list->items);
	free(list->unknown);
	*list = (struct container_pids){0};
}

/* Names are put into paths and into a request. */
static bool container_pid_is_name(const char *name)
{
	if (!isalnum((unsigned char)*name) || strlen(name) > NAME_LENGTH_MAX)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("_.+-", *name))
			return false;
	return true;
}

/*
 * A file that root, or the caller, has put there. Return: 0, with the text, owned by the caller; -ENOENT, also where a
 * file is in the place of its directory; negative errno.
 */
static int container_pid_read(const char *path, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = trusted_file_open(path, S_IFREG, geteuid(), O_RDONLY);

	if (fd < 0)
		return fd == -ENOTDIR ? -ENOENT : fd;
	return fd_read_all(fd, STATE_MAX, ret, ret_size);
}

/* Return: 0, with a new reference; as container_pid_read(). */
static int container_pid_read_json(const char *path, json_t **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int r = container_pid_read(path, &text, &size);

	return r == 0 ? json_parse(text, size, ret, NULL) : r;
}

/* Notes why it is not known which process a container is, unless it is known. Return: 0 or -ENOMEM. */
static int container_pid_fail(struct container_pid *found, const char *engine, const char *id, int error,
			      const char *what)
{
	int r;

	if (found->pid || found->error)
		return 0;
	errno = -error;
	r = error == -EPERM    ? str_format(&found->error, "%s is not trusted: others than root can write it", what)
	    : error == -EINVAL ? str_format(&found->error, "%s is damaged", what)
	    : error == -EFBIG  ? str_format(&found->error, "%s: there is too much to be read", what)
			       : str_format(&found->error, "%s: %m", what);
	if (r == 0 && id)
		r = str_replace(&found->id, id);
	found->engine = engine;
	return r;
}

/* Return: whether it is one more process; -ENOMEM. */
static int container_pid_take(struct container_pid *found, pid_t pid, const char *engine, const char *id,
			      unsigned long long started)
{
	if (pid <= 0 || found->pid == pid)
		return 0;
	if (found->pid) {
		found->other = engine;
		return 1;
	}
	if (str_replace(&found->id, id) < 0)
		return -ENOMEM;
	free(steal_ptr(found->error));
	found->pid = pid;
	found->engine = engine;
	found->started = started;
	return 1;
}

static unsigned long long container_pid_read_start(int process)
{
	unsigned long long start;

	return process_key_start(process, &start) < 0 ? 0 : start;
}

/* @started: 0: not known */
static bool container_pid_has_ended(pid_t pid, unsigned long long started)
{
	_cleanup_close_ int process = -1;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process < 0)
		return errno == ENOENT;
	return started && container_pid_read_start(process) != started;
}

/* ---- Docker ---- */

/* @ret: what is asked for; NULL, with the reason noted: there was no answer. Return: 0 or -ENOMEM. */
static int container_pid_ask(const struct daemon *daemon, const char *what, const char *id, struct container_pid *found,
			     json_t **ret)
{
	int r = docker_api_ask(daemon, what, ret);

	if (r == 0 || r == -ENOENT || r == -ENOMEM)
		return r == -ENOENT ? 0 : r;
	return container_pid_fail(found, engine_docker.name, id, r,
				  r == -EPROTO   ? "Docker answers with an error"
				  : r == -EACCES ? "Docker refuses to say it"
						 : "Docker does not answer");
}

static int container_pid_inspect(const struct daemon *daemon, const char *name, struct container_pid *found)
{
	_cleanup_free_ char *what = NULL;
	_cleanup_json_ json_t *answer = NULL;
	const char *id;
	int r;

	if (str_format(&what, "/containers/%s/json", name) < 0)
		return -ENOMEM;
	r = container_pid_ask(daemon, what, name, found, &answer);
	id = json_string_value(json_at(answer, "Id"));
	if (r < 0 || !id)
		return r;
	r = container_pid_take(found, (pid_t)json_integer_value(json_at(answer, "State/Pid")), engine_docker.name, id,
			       0);
	found->asked = r == 1 && !found->other;
	return r < 0 ? r : 0;
}

/* A daemon that is not taken for Docker's may be Docker's all the same. */
static int container_pid_find_daemon(struct daemon *ret, struct container_pid *found)
{
	_cleanup_free_ char *what = NULL;
	int r = daemon_find(&engine_docker.daemon, geteuid(), ret);

	if (r < 0)
		return container_pid_fail(found, engine_docker.name, NULL, r, "cannot look for Docker");
	if (ret->pid || !ret->rejected_pid)
		return 0;
	if (str_format(&what, "process %d is called dockerd, but not taken for it: %s", (int)ret->rejected_pid,
		       ret->rejected_why) < 0)
		return -ENOMEM;
	found->engine = engine_docker.name;
	found->error = steal_ptr(what);
	return 0;
}

static int container_pid_ask_docker(const char *name, struct container_pid *found)
{
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	int r = container_pid_find_daemon(&daemon, found);

	return r == 0 && daemon.pid ? container_pid_inspect(&daemon, name, found) : r;
}

/* ---- runtimes ---- */

/* As crun writes it; and as runc does, among what its configuration is labelled with. */
static int container_pid_take_bundle(struct container_pid *found, const json_t *state)
{
	const char *bundle = json_string_value(json_object_get(state, "bundle"));
	const json_t *label;
	size_t i;

	json_array_foreach (json_at(state, "config/labels"), i, label) {
		const char *text = json_string_value(label);

		if (!bundle && text && str_has_prefix(text, "bundle="))
			bundle = text + strlen("bundle=");
	}
	return bundle && bundle[0] == '/' && !found->other ? str_replace(&found->bundle, bundle) : 0;
}

/* Of one that has ended the file may be left. */
static int container_pid_read_state(const char *path, const struct container_pid_runtime *runtime, const char *id,
				    const char *engine, struct container_pid *found)
{
	_cleanup_json_ json_t *state = NULL;
	int r = container_pid_read_json(path, &state);
	const pid_t pid = (pid_t)json_integer_value(json_object_get(state, runtime->pid));
	const unsigned long long started =
		(unsigned long long)json_integer_value(json_object_get(state, runtime->started));

	if (r < 0)
		return r == -ENOENT ? 0 : r == -ENOMEM ? r : container_pid_fail(found, engine, id, r, path);
	if (container_pid_has_ended(pid, started))
		return 0;
	r = container_pid_take(found, pid, engine, id, started);
	return r == 1 ? container_pid_take_bundle(found, state) : r;
}

static int container_pid_find_state(const struct container_pid_runtime *runtime, const char *id, const char *engine,
				    struct container_pid *found)
{
	const char *run = geteuid() == 0 ? "" : getenv("XDG_RUNTIME_DIR");
	_cleanup_free_ char *path = NULL;
	int r;

	if (!run)
		return 0;
	r = *run ? str_format(&path, "%s/%s/%s/%s", run, runtime->user, id, runtime->file)
		 : str_format(&path, "%s/%s/%s", runtime->root, id, runtime->file);
	return r < 0 ? r : container_pid_read_state(path, runtime, id, engine ? engine : runtime->engine, found);
}

static int container_pid_find_states(const char *id, const char *engine, struct container_pid *found)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes) && r == 0; i++)
		r = container_pid_find_state(&runtimes[i], id, engine, found);
	return r;
}

/* ---- containerd ---- */

/* It says when the process began; the cgroup of the process may have any name. */
static int container_pid_find_task_state(const char *directory, const char *id, struct container_pid *found)
{
	const char *namespace = strrchr(directory, '/') + 1;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes) && r == 0; i++) {
		_cleanup_free_ char *path = NULL;

		r = str_format(&path, TASK_STATES "/%s/%s/%s", namespace, id, runtimes[i].file);
		if (r == 0)
			r = container_pid_read_state(path, &runtimes[i], id, "containerd", found);
	}
	return r;
}

static int container_pid_find_task(const char *directory, const char *id, struct container_pid *found)
{
	_cleanup_free_ char *bundle = NULL, *path = NULL, *text = NULL;
	int r = container_pid_find_task_state(directory, id, found);
	pid_t pid;

	if (r < 0)
		return r;
	if (str_format(&bundle, "%s/%s", directory, id) < 0 || str_format(&path, "%s/init.pid", bundle) < 0)
		return -ENOMEM;
	r = container_pid_read(path, &text, NULL);
	if (r == 0 && !isdigit((unsigned char)*text))
		r = -EINVAL;
	if (r < 0)
		return r == -ENOENT ? 0 : r == -ENOMEM ? r : container_pid_fail(found, "containerd", id, r, path);
	pid = (pid_t)strtol(text, NULL, 10);
	if (container_pid_has_ended(pid, 0))
		return 0;
	r = container_pid_take(found, pid, "containerd", id, 0);
	if (r == 1 && !found->other)
		found->bundle = steal_ptr(bundle);
	return r < 0 ? r : 0;
}

/* The names in a directory, which may be missing. @found: why these are not all. Return: 0 or -ENOMEM. */
static int container_pid_list_directory(const char *path, size_t max, const char *engine, struct container_pid *found,
					struct strv *ret)
{
	int r = fd_list_names(AT_FDCWD, path, container_pid_is_name, max, ret);

	if (r == -ENOENT || r == -ENOTDIR || r == -ENOMEM)
		return r == -ENOMEM ? r : 0;
	if (r == 0 && ret->count == max)
		r = -EFBIG;
	return r < 0 ? container_pid_fail(found, engine, NULL, r, path) : 0;
}

static int container_pid_add_namespaces(const char *state, struct container_pid *found, struct strv *ret)
{
	_cleanup_strv_ struct strv names = {0};
	_cleanup_free_ char *path = NULL;
	int r = str_format(&path, "%s/" TASKS, state);

	if (r == 0)
		r = container_pid_list_directory(path, NAMESPACES_MAX, "containerd", found, &names);
	for (size_t i = 0; i < names.count && r == 0; i++)
		r = strv_format(ret, "%s/%s", path, names.items[i]);
	return r;
}

/* The directories of all namespaces of each containerd. Return: 0 or -ENOMEM. */
static int container_pid_list_namespaces(struct container_pid *found, struct strv *ret)
{
	int r = 0;

	for (size_t i = 0; engine_containerd_states[i] && geteuid() == 0 && r == 0; i++)
		r = container_pid_add_namespaces(engine_containerd_states[i], found, ret);
	return r;
}

static int container_pid_find_tasks(const char *id, struct container_pid *found)
{
	_cleanup_strv_ struct strv namespaces = {0};
	int r = container_pid_list_namespaces(found, &namespaces);

	for (size_t i = 0; i < namespaces.count && r == 0; i++)
		r = container_pid_find_task(namespaces.items[i], id, found);
	return r;
}

/* ---- Podman and CRI-O ---- */

/* Their containers' names, in the storage that both have. That they run is what a runtime has written down. */

static bool container_pid_is_called(const json_t *container, const char *id, const char *name)
{
	const size_t length = strlen(name);
	const json_t *item;
	size_t i;

	if (streq(id, name) || (length >= ID_LENGTH_MIN && strncmp(id, name, length) == 0))
		return true;
	json_array_foreach (json_object_get(container, "names"), i, item)
		if (json_string_value(item) && streq(json_string_value(item), name))
			return true;
	return false;
}

/* containers-storage.conf(5). Return: 0, with NULL where it is not known; -ENOMEM. */
static int container_pid_find_conf(char **ret)
{
	const char *named = getenv("CONTAINERS_STORAGE_CONF");

	if (named)
		return named[0] == '/' ? str_replace(ret, named) : 0;
	if (geteuid() == 0)
		return str_replace(ret, "/etc/containers/storage.conf");
	*ret = engine_user_file("containers/storage.conf");
	return *ret ? 0 : -ENOMEM;
}

/* Where the configuration puts storage. Return: 0 or -ENOMEM. */
static int container_pid_read_storages(struct strv *ret)
{
	static const char *const keys[] = {"storage/graphroot", "storage/rootless_storage_path"};
	_cleanup_text_buffer_ struct text_buffer text = {0};
	_cleanup_free_ char *path = NULL, *data = NULL;
	_cleanup_json_ json_t *conf = NULL;
	struct text_buffer_error ignored;
	size_t size = 0;
	int r = container_pid_find_conf(&path);

	if (r < 0 || !path)
		return r;
	if (container_pid_read(path, &data, &size) < 0 || text_buffer_set(&text, data, size) < 0 ||
	    toml_parse_read(&text, &conf, &ignored) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(keys) && r == 0; i++) {
		const char *root = json_string_value(json_at(conf, keys[i]));

		/* A user's storage is not where the first says, in some versions. */
		if (root && root[0] == '/' && !strpbrk(root, "$~"))
			r = strv_add(ret, root);
	}
	return r;
}

static int container_pid_list_storages(struct strv *ret)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	int r = container_pid_read_storages(ret);

	if (r < 0)
		return r;
	if (geteuid() == 0)
		return strv_add(ret, "/var/lib/containers/storage");
	if (data && data[0] == '/')
		return strv_format(ret, "%s/containers/storage", data);
	return home && home[0] == '/' ? strv_format(ret, "%s/.local/share/containers/storage", home) : 0;
}

static bool container_pid_is_folder(const char *name)
{
	static const char suffix[] = "-containers";
	const size_t length = strlen(name);

	return length >= sizeof(suffix) && streq(name + length - (sizeof(suffix) - 1), suffix);
}

static int container_pid_add_list(const char *storage, const char *folder, const char *file, json_t *lists)
{
	_cleanup_free_ char *path = NULL;
	json_t *list = NULL;
	int r = str_format(&path, "%s/%s/%s", storage, folder, file);

	if (r < 0)
		return r;
	return container_pid_read_json(path, &list) == 0 && json_array_append_new(lists, list) < 0 ? -ENOMEM : 0;
}

/*
 * Each driver of storage (overlay, vfs, btrfs, zfs) has a file of its own. Return: 0, with an array for each that can
 * be read; -ENOMEM.
 */
static int container_pid_read_storage(const char *storage, json_t **ret)
{
	static const char *const files[] = {"containers.json", "volatile-containers.json" /* podman run --rm */};
	_cleanup_json_ json_t *lists = json_array();
	_cleanup_strv_ struct strv folders = {0};
	int r = lists ? fd_list_names(AT_FDCWD, storage, container_pid_is_folder, DRIVERS_MAX, &folders) : -ENOMEM;

	for (size_t i = 0; i < folders.count && r == 0; i++)
		for (size_t j = 0; j < ARRAY_SIZE(files) && r == 0; j++)
			r = container_pid_add_list(storage, folders.items[i], files[j], lists);
	if (r == -ENOMEM)
		return r;
	*ret = steal_ptr(lists);
	return 0;
}

static int container_pid_find_in(const char *storage, const char *name, struct container_pid *found)
{
	_cleanup_json_ json_t *lists = NULL;
	const json_t *list, *container;
	size_t i, j;
	int r = container_pid_read_storage(storage, &lists);

	json_array_foreach (lists, i, list)
		json_array_foreach (list, j, container) {
			const char *id = json_string_value(json_object_get(container, "id"));

			if (r == 0 && id && container_pid_is_name(id) && container_pid_is_called(container, id, name))
				r = container_pid_find_states(id, "podman", found);
		}
	return r;
}

static int container_pid_find_names(const char *name, struct container_pid *found)
{
	_cleanup_strv_ struct strv storages = {0};
	int r = container_pid_list_storages(&storages);

	for (size_t i = 0; i < storages.count && r == 0; i++)
		r = container_pid_find_in(storages.items[i], name, found);
	return r;
}

/* ---- none of them ---- */

/* Those that run: all names for a suggestion, and the first few of them to be read. */
static int container_pid_list_names(struct strv *ret_names, char **ret_shown)
{
	_cleanup_container_pids_ struct container_pids list = {0};
	_cleanup_strv_ struct strv shown = {0};
	int r = container_pid_list(&list);

	for (size_t i = 0; i < list.count && r == 0; i++)
		r = list.items[i].name ? strv_add(ret_names, list.items[i].name)
				       : strv_format(ret_names, "%.12s", list.items[i].id);
	for (size_t i = 0; i < ret_names->count && i < NAMES_SHOWN && r == 0; i++)
		r = strv_format(&shown, "%.30s", ret_names->items[i]);
	if (r == 0 && ret_names->count > NAMES_SHOWN)
		r = strv_add(&shown, "…");
	return r == 0 ? strv_join(&shown, ", ", ret_shown) : r;
}

static bool container_pid_has_daemon(uid_t uid)
{
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;

	return daemon_find(&engine_docker.daemon, uid, &daemon) == 0 && daemon.pid > 0;
}

/* Why a container that exists may not be among those that were looked at, or another way to name it. Return: @code. */
static int container_pid_explain(struct err *err, int code)
{
	const uid_t self = geteuid();
	bool root = container_pid_has_daemon(0), own = self != 0 && container_pid_has_daemon(self);
	_cleanup_free_ char *command = NULL;

	if (engine_is_installed(&engine_docker) && !root && !own) {
		command = engine_restart_command(&engine_docker, &DAEMON_NONE, false, ENGINE_START);
		return err_advise(err, code, "Docker does not run; start it, and the container: sudo %s",
				  command ? command : "dockerd");
	}
	if (self != 0)
		return err_advise(err, code,
				  "Containers of root's %s are looked at as root alone: try again with sudo.",
				  root ? "Docker" : "engines");
	return err_advise(err, code,
			  "Or name it by its first process, which its engine shows (docker inspect, podman inspect).");
}

static int container_pid_refuse_unknown(const char *name, struct err *err)
{
	_cleanup_strv_ struct strv names = {0};
	_cleanup_free_ char *shown = NULL;
	char suggestion[SUGGESTION_SIZE];
	int r = container_pid_list_names(&names, &shown);

	if (r < 0)
		return err_set(err, r, "%m");
	(void)str_suggest((const char *const *)names.items, names.count, name, suggestion);
	return container_pid_explain(err, err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT,
							  ("no container that runs is called %s%s", name, suggestion),
							  ("%s%s",
							   names.count > 0  ? "These run: "
							   : geteuid() == 0 ? "None runs."
									    : "This user runs none.",
							   names.count > 0 ? shown : "")));
}

/* ---- all of them ---- */

static int container_pid_refuse(const char *name, const struct container_pid *found, struct err *err)
{
	if (found->other)
		return err_set_advised(
			err, CTR_GPU_E_BAD_ARGUMENT,
			("%s is a container of %s and another of %s.", name, found->engine, found->other),
			("Name the one by its first process (docker inspect, podman inspect)."));
	if (found->pid)
		return 0;
	return found->error
		       ? err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT,
					 ("which process the container %s is is not known: %s", name, found->error),
					 ("Name it by its first process (docker inspect, podman inspect)."))
		       : container_pid_refuse_unknown(name, err);
}

int container_pid_find(const char *name, struct container_pid *ret, struct err *err)
{
	struct container_pid found = {0};
	int r;

	if (!container_pid_is_name(name))
		return err_set(err, CTR_GPU_E_BAD_ARGUMENT, "\"%.80s\" is not the name of a container", name);
	r = container_pid_ask_docker(name, &found);
	if (r == 0)
		r = container_pid_find_names(name, &found);
	if (r == 0)
		r = container_pid_find_states(name, NULL, &found);
	if (r == 0)
		r = container_pid_find_tasks(name, &found);
	r = r < 0 ? err_set(err, r, "%m") : container_pid_refuse(name, &found, err);
	if (r != 0) {
		container_pid_clear(&found);
		return r;
	}
	*ret = found;
	return 0;
}

/* ---- lists ---- */

/* Whether two have the same id, or neither has one. */
static bool container_pid_is_same_id(const char *id, const char *other)
{
	return id && other ? streq(id, other) : id == other;
}

/* An engine's own id is random, and its runtime has the container by the same; a name may be one of several engines. */
static bool container_pid_is_random(const char *id)
{
	enum { ID_LENGTH = 64 };

	return strlen(id) == ID_LENGTH && strspn(id, "0123456789abcdef") == ID_LENGTH;
}

static bool container_pid_is_same(const struct container_pid *one, const struct container_pid *other)
{
	return one->id && other->id && streq(one->id, other->id) &&
	       (container_pid_is_random(one->id) || streq(one->engine, other->engine));
}

/* One of which another source knows the process. */
static void container_pid_drop_unknown(struct container_pids *list, const struct container_pid *known)
{
	size_t left = 0;

	for (size_t i = 0; i < list->unknown_count; i++)
		if (container_pid_is_same(&list->unknown[i], known))
			container_pid_clear(&list->unknown[i]);
		else
			list->unknown[left++] = list->unknown[i];
	list->unknown_count = left;
}

/* Takes what is not known, unless that is known of: many may fail alike. Return: 0 or -ENOMEM. */
static int container_pid_append_unknown(struct container_pids *list, struct container_pid *found)
{
	struct container_pid *items;

	for (size_t i = 0; i < list->count; i++)
		if (container_pid_is_same(&list->items[i], found))
			return 0;
	for (size_t i = 0; i < list->unknown_count; i++)
		if (streq(list->unknown[i].error, found->error) &&
		    container_pid_is_same_id(list->unknown[i].id, found->id))
			return 0;
	items = array_grow(list->unknown, list->unknown_count, sizeof(*items));
	if (!items)
		return -ENOMEM;
	list->unknown = items;
	list->unknown[list->unknown_count++] = steal_struct(found);
	return 0;
}

/* Takes what was found, unless it is known; where that has no bundle, takes the bundle. Return: 0 or -ENOMEM. */
static int container_pid_append(struct container_pids *list, struct container_pid *found, const char *name)
{
	struct container_pid *items;

	if (found->pid)
		container_pid_drop_unknown(list, found);
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].pid == found->pid) {
			if (!list->items[i].bundle)
				list->items[i].bundle = steal_ptr(found->bundle);
			return 0;
		}
	if (name && str_replace(&found->name, name) < 0)
		return -ENOMEM;
	if (!found->pid)
		return found->error ? container_pid_append_unknown(list, found) : 0;
	items = array_grow(list->items, list->count, sizeof(*items));
	if (!items)
		return -ENOMEM;
	list->items = items;
	list->items[list->count++] = steal_struct(found);
	return 0;
}

/* @silent: how many questions were not answered */
static int container_pid_list_one(const struct daemon *daemon, const json_t *item, unsigned *silent,
				  struct container_pids *list)
{
	const char *id = json_string_value(json_object_get(item, "Id"));
	const char *name = json_string_value(json_array_get(json_object_get(item, "Names"), 0));
	_cleanup_container_pid_ struct container_pid found = {0};
	int r;

	if (!id || !container_pid_is_name(id))
		return 0;
	r = *silent < SILENT_MAX
		    ? container_pid_inspect(daemon, id, &found)
		    : container_pid_fail(&found, engine_docker.name, id, -ETIMEDOUT, "Docker does not answer");
	*silent += found.error ? 1 : 0;
	return r == 0 ? container_pid_append(list, &found, name && name[0] == '/' ? name + 1 : name) : r;
}

static int container_pid_list_docker(struct container_pids *list)
{
	_cleanup_container_pid_ struct container_pid all = {0};
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	_cleanup_json_ json_t *answer = NULL;
	const json_t *item;
	unsigned silent = 0;
	size_t i;
	int r = container_pid_find_daemon(&daemon, &all);

	if (r == 0 && daemon.pid)
		r = container_pid_ask(&daemon, "/containers/json", NULL, &all, &answer);
	json_array_foreach (answer, i, item)
		if (r == 0)
			r = container_pid_list_one(&daemon, item, &silent, list);
	return r == 0 ? container_pid_append(list, &all, NULL) : r;
}

static int container_pid_list_storage(const char *storage, struct container_pids *list)
{
	_cleanup_json_ json_t *drivers = NULL;
	const json_t *containers, *item;
	size_t i, j;
	int r = container_pid_read_storage(storage, &drivers);

	json_array_foreach (drivers, i, containers)
		json_array_foreach (containers, j, item) {
			const char *id = json_string_value(json_object_get(item, "id"));
			_cleanup_container_pid_ struct container_pid found = {0};

			if (r == 0 && id && container_pid_is_name(id))
				r = container_pid_find_states(id, "podman", &found);
			if (r == 0)
				r = container_pid_append(
					list, &found,
					json_string_value(json_array_get(json_object_get(item, "names"), 0)));
		}
	return r;
}

static int container_pid_list_podman(struct container_pids *list)
{
	_cleanup_strv_ struct strv storages = {0};
	int r = container_pid_list_storages(&storages);

	for (size_t i = 0; i < storages.count && r == 0; i++)
		r = container_pid_list_storage(storages.items[i], list);
	return r;
}

/* @find: of one of the names in a directory */
static int container_pid_find_all(const char *path, const char *engine, const void *owner,
				  int (*find)(const void *owner, const char *id, struct container_pid *found),
				  struct container_pids *list)
{
	_cleanup_container_pid_ struct container_pid all = {0};
	_cleanup_strv_ struct strv ids = {0};
	int r = container_pid_list_directory(path, CONTAINERS_MAX, engine, &all, &ids);

	for (size_t i = 0; i < ids.count && r == 0; i++) {
		_cleanup_container_pid_ struct container_pid found = {0};

		r = find(owner, ids.items[i], &found);
		if (r == 0)
			r = container_pid_append(list, &found, NULL);
	}
	return r == 0 ? container_pid_append(list, &all, NULL) : r;
}

static int container_pid_find_own_state(const void *owner, const char *id, struct container_pid *found)
{
	return container_pid_find_state(owner, id, NULL, found);
}

static int container_pid_list_states(struct container_pids *list)
{
	const char *run = geteuid() == 0 ? "" : getenv("XDG_RUNTIME_DIR");
	int r = 0;

	for (size_t i = 0; run && i < ARRAY_SIZE(runtimes) && r == 0; i++) {
		_cleanup_free_ char *path = NULL;

		r = *run ? str_format(&path, "%s/%s", run, runtimes[i].user)
			 : str_format(&path, "%s", runtimes[i].root);
		if (r == 0)
			r = container_pid_find_all(path, runtimes[i].engine, &runtimes[i], container_pid_find_own_state,
						   list);
	}
	return r;
}

static int container_pid_find_own_task(const void *owner, const char *id, struct container_pid *found)
{
	return container_pid_find_task(owner, id, found);
}

static int container_pid_list_tasks(struct container_pids *list)
{
	_cleanup_container_pid_ struct container_pid all = {0};
	_cleanup_strv_ struct strv namespaces = {0};
	int r = container_pid_list_namespaces(&all, &namespaces);

	for (size_t i = 0; i < namespaces.count && r == 0; i++)
		r = container_pid_find_all(namespaces.items[i], "containerd", namespaces.items[i],
					   container_pid_find_own_task, list);
	return r == 0 ? container_pid_append(list, &all, NULL) : r;
}

int container_pid_list(struct container_pids *ret)
{
	int (*const lists[])(struct container_pids *) = {container_pid_list_docker, container_pid_list_podman,
							 container_pid_list_states, container_pid_list_tasks};
	struct container_pids list = {0};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists) && r == 0; i++)
		r = lists[i](&list);
	if (r < 0)
		container_pids_clear(&list);
	else
		*ret = list;
	return r;
}

/* ---- processes ---- */

const char *container_pid_find_bundle(struct container_pid *found, int process)
{
	_cleanup_free_ char *text = NULL, *program = NULL;
	const char *parent, *name;
	char path[48];

	if (found->bundle || fd_read_kernel_file(process, "status", STAT_MAX, &text) < 0)
		return found->bundle;
	parent = strstr(text, "\nPPid:");
	if (!parent)
		return NULL;
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", atoi(parent + strlen("\nPPid:")));
	if (fd_read_link_at(AT_FDCWD, path, &program) < 0)
		return NULL;
	name = strrchr(program, '/');
	if (!name || !str_has_prefix(name + 1, "containerd-shim"))
		return NULL;
	memcpy(strrchr(path, '/'), "/cwd", sizeof("/cwd"));
	if (fd_read_link_at(AT_FDCWD, path, &found->bundle) < 0)
		found->bundle = NULL;
	return found->bundle;
}

time_t container_pid_read_time(int process)
{
	const unsigned long long ticks = container_pid_read_start(process);
	const long second = sysconf(_SC_CLK_TCK);
	struct timespec now, boot;

	if (!ticks || second <= 0 || clock_gettime(CLOCK_REALTIME, &now) < 0 ||
	    clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
		return 0;
	return now.tv_sec - boot.tv_sec + (time_t)(ticks / (unsigned long long)second);
}

bool container_pid_is(const struct container_pid *found, int process)
{
	_cleanup_free_ char *membership = NULL, *cgroup = NULL;

	if (found->started)
		return container_pid_read_start(process) == found->started;
	if (fd_read_kernel_file(process, "cgroup", MEMBERSHIP_MAX, &membership) == 0 &&
	    container_pid_find_cgroup(membership, found->id, &cgroup) == 0 && cgroup)
		return true;
	/* Without a right to cgroups there is nothing but the daemon's answer. */
	return found->asked && geteuid() != 0;
}

/* ---- whose a process is ---- */

/*
 * A container's processes are in the cgroup that its runtime made, which has the id in its name, or below it; and most
 * have the mounts of the first, which those have that were started in it later, too. No process chooses either for
 * itself: what it names, it names below its own.
 */

static bool container_pid_is_bound(char c)
{
	return !isalnum((unsigned char)c) && c != '_';
}

/* Behind an id is the end of a directory's name, or of the name of a unit; or a colon, as in "slice:prefix:id". */
static bool container_pid_is_end(const char *rest)
{
	static const char scope[] = ".scope";

	if (str_has_prefix(rest, scope))
		rest += sizeof(scope) - 1;
	return strchr("/:\n", *rest);
}

int container_pid_find_cgroup(const char *membership, const char *id, char **ret)
{
	const size_t length = strlen(id);

	for (const char *found = membership; length > 0 && (found = strstr(found, id)); found++) {
		const char *line = found;

		while (line > membership && line[-1] != '\n')
			line--;
		if (found == line || !container_pid_is_bound(found[-1]) || !container_pid_is_end(found + length))
			continue;
		*ret = strndup(line, (size_t)(found - line) + strcspn(found, "/\n"));
		return *ret ? 0 : -ENOMEM;
	}
	*ret = NULL;
	return 0;
}

bool container_pid_is_below(const char *membership, const char *cgroup)
{
	const size_t length = strlen(cgroup);

	for (const char *line = membership; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, cgroup, length) == 0 && strchr("/\n", line[length]))
			return true;
	}
	return false;
}

bool container_pid_read_id(const char *membership, char ret[static CONTAINER_PID_ID_SIZE])
{
	const size_t length = CONTAINER_PID_ID_SIZE - 1;

	for (const char *digits = membership; *digits; digits += *digits != '\0') {
		const size_t count = strspn(digits, "0123456789abcdef");

		if (count == length && digits > membership && container_pid_is_bound(digits[-1]) &&
		    container_pid_is_bound(digits[length])) {
			memcpy(ret, digits, length);
			ret[length] = '\0';
			return true;
		}
		digits += count;
	}
	return false;
}

static int container_pid_mark(struct container_pid *found)
{
	_cleanup_free_ char *membership = NULL;
	_cleanup_close_ int process = -1;
	char path[32];
	struct stat st;
	int r = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)found->pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process < 0 || !container_pid_is(found, process))
		return 0;
	if (fd_read_kernel_file(process, "cgroup", MEMBERSHIP_MAX, &membership) == 0)
		r = container_pid_find_cgroup(membership, found->id, &found->cgroup);
	if (fstatat(process, "ns/mnt", &st, 0) == 0) {
		found->mounts_device = st.st_dev;
		found->mounts = st.st_ino;
	}
	return r;
}

int container_pids_mark(struct container_pids *list)
{
	int r = 0;

	for (size_t i = 0; i < list->count && r == 0; i++)
		r = container_pid_mark(&list->items[i]);
	return r;
}

static bool container_pid_has_same(int process, const char *namespace, dev_t device, ino_t inode)
{
	struct stat st;

	return inode && fstatat(process, namespace, &st, 0) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* A container may be run with the mounts of the host. */
static bool container_pid_has(const struct container_pid *found, int process, const char *membership)
{
	struct stat own;

	if (found->cgroup && container_pid_is_below(membership, found->cgroup))
		return true;
	return stat("/proc/self/ns/mnt", &own) == 0 && own.st_ino != found->mounts &&
	       container_pid_has_same(process, "ns/mnt", found->mounts_device, found->mounts);
}

enum container_pid_place container_pids_find_owner(const struct container_pids *list, pid_t pid,
						   const struct container_pid **ret_listed,
						   char ret_id[static CONTAINER_PID_ID_SIZE])
{
	_cleanup_free_ char *membership = NULL;
	_cleanup_close_ int process = -1;
	char path[32];
	struct stat own;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process < 0 || fd_read_kernel_file(process, "cgroup", MEMBERSHIP_MAX, &membership) < 0)
		return CONTAINER_PID_UNKNOWN;
	for (size_t i = 0; i < list->count; i++)
		if (container_pid_has(&list->items[i], process, membership)) {
			*ret_listed = &list->items[i];
			return CONTAINER_PID_LISTED;
		}
	if (container_pid_read_id(membership, ret_id))
		return CONTAINER_PID_FOREIGN;
	return stat("/proc/self/ns/pid", &own) == 0 && container_pid_has_same(process, "ns/pid", own.st_dev, own.st_ino)
		       ? CONTAINER_PID_HOST
		       : CONTAINER_PID_UNKNOWN;
}
