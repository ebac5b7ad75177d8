/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/config.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"
#include "engines/text.h"
#include "system/trusted_file.h"

enum { CONFIG_MAX = 4 * 1024 * 1024 }; /* as setup reads */

/* A file that was read, and what it says. */
struct engine_config_file {
	const struct engine *engine;
	const json_t *json;
	const char *path; /* NULL: the engine itself has said it */
};

void engine_config_clear(struct engine_config *config)
{
	free(config->path);
	free(config->invalid);
	free(config->unread);
	free(config->runtime);
	free(config->runtime_file);
	free(config->default_runtime);
	strv_clear(&config->hook_directories);
	strv_clear(&config->cdi_directories);
	json_decref(config->runtimes);
	json_decref(config->json);
	*config = (struct engine_config){.cdi = -1};
}

/* ---- values ---- */

const char *const *engine_config_sections(const struct engine *engine)
{
	static const char *const whole[] = {"", NULL};

	return engine->sections ? engine->sections : whole;
}

/* Return: borrowed; NULL if the file does not say it. */
static const json_t *engine_config_get(const struct engine_config_file *file, const char *key)
{
	const json_t *value = NULL;

	for (const char *const *section = engine_config_sections(file->engine); key && *section && !value; section++) {
		_cleanup_free_ char *path = NULL;

		if (str_format(&path, "%s%s%s", *section, **section ? "/" : "", key) < 0)
			return NULL;
		value = json_at(file->json, path);
	}
	return value;
}

static int engine_config_replace(char **string, const char *value)
{
	return value ? str_replace(string, value) : 0;
}

/* Podman has several: the first that is there counts, or the first. */
const char *engine_config_program(const struct engine *engine, const json_t *runtime)
{
	const json_t *program = engine->program ? json_at(runtime, engine->program) : runtime;
	const char *first = json_string_value(program);

	for (size_t i = 0; i < json_array_size(program); i++) {
		const char *path = json_string_value(json_array_get(program, i));

		if (path && access(path, F_OK) == 0)
			return path;
		first = first ? first : path;
	}
	return first;
}

static int engine_config_add_list(const json_t *array, struct strv *list)
{
	int r = 0;

	for (size_t i = 0; i < json_array_size(array) && r == 0; i++)
		if (json_is_string(json_array_get(array, i)))
			r = strv_add(list, json_string_value(json_array_get(array, i)));
	return r;
}

int engine_config_copy_list(const json_t *array, struct strv *ret)
{
	strv_clear(ret);
	return engine_config_add_list(array, ret);
}

/* With {append=true} in it, containers.conf(5), a list is added to earlier ones, and so are those of later files. */
static int engine_config_take_list(const json_t *array, bool *append, struct strv *list)
{
	if (!json_is_array(array))
		return 0;
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *said = json_object_get(json_array_get(array, i), "append");

		*append = said ? json_is_true(said) : *append;
	}
	return *append ? engine_config_add_list(array, list) : engine_config_copy_list(array, list);
}

/* Of all sections: a file that was written again for another version may have an old one that nothing reads. */
static int engine_config_find_runtimes(const struct engine_config_file *file, json_t *ret)
{
	for (const char *const *section = engine_config_sections(file->engine); *section; section++) {
		json_t *in = json_at(**section ? json_at(file->json, *section) : file->json, file->engine->runtimes);

		if (json_is_object(in) && json_object_update_missing(ret, in) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Adds a file's runtimes; one that an earlier file has, too, is replaced as a whole. */
static int engine_config_take_runtimes(const struct engine_config_file *file, struct engine_config *config)
{
	_cleanup_json_ json_t *runtimes = json_object();
	int r = file->engine->runtimes && runtimes ? engine_config_find_runtimes(file, runtimes) : 0;
	const char *program = engine_config_program(file->engine, json_object_get(runtimes, "nvidia"));

	if (!config->runtimes)
		config->runtimes = json_object();
	if (r == 0 && (!runtimes || json_object_update(config->runtimes, runtimes) < 0))
		r = -ENOMEM;
	if (r == 0 && program)
		r = engine_config_replace(&config->runtime_file, file->path);
	return r < 0 ? r : engine_config_replace(&config->runtime, program);
}

static int engine_config_take(const struct engine_config_file *file, struct engine_config *config)
{
	const struct engine *engine = file->engine;
	const json_t *chosen = engine_config_get(file, engine->default_runtime),
		     *cdi = engine_config_get(file, engine->cdi);
	int r = engine_config_take_runtimes(file, config);

	if (json_is_boolean(cdi))
		config->cdi = json_is_true(cdi);
	if (r == 0)
		r = engine_config_replace(&config->default_runtime, json_string_value(chosen));
	if (r == 0)
		r = engine_config_take_list(engine_config_get(file, engine->cdi_dirs), &config->appends_cdi,
					    &config->cdi_directories);
	if (r == 0)
		r = engine_config_take_list(engine_config_get(file, engine->hooks_dir), &config->appends_hooks,
					    &config->hook_directories);
	return r;
}

/* ---- files ---- */

int engine_config_parse(const struct engine *engine, const struct text_buffer *text, json_t **ret,
			struct text_buffer_error *ret_error)
{
	return engine->format == ENGINE_JSON ? json_file_read(text, ret, ret_error)
					     : toml_parse_read(text, ret, ret_error);
}

int engine_config_write(const struct engine *engine, struct text_buffer *text, json_t *wanted)
{
	return engine->format == ENGINE_JSON ? json_file_write(text, wanted) : toml_edit_write(text, wanted);
}

/* Engines that read every file of a directory skip entries that are not regular files. */
static int engine_config_explain(const struct engine *engine, const char *path, int r, struct engine_config *config)
{
	bool alone = engine->files && !engine->files[1];

	if (r == -ENOMEM)
		return r;
	if (r == -ENOENT || r == -ENOTDIR || (r == -EINVAL && !alone))
		return 0;
	free(steal_ptr(config->unread));
	return r == -EINVAL ? str_format(&config->unread, "%s is not a regular file", path)
			    : str_format(&config->unread, "%s cannot be read: %s", path, strerror(-r));
}

int engine_config_read_file(const struct engine *engine, const struct rootfs *root, const char *path,
			    struct engine_config *config)
{
	_cleanup_text_buffer_ struct text_buffer text = {0};
	_cleanup_json_ json_t *json = NULL;
	struct text_buffer_error error;
	int r;

	r = rootfs_read_file(root, path, CONFIG_MAX, &text.data, &text.size);
	if (r < 0)
		return engine_config_explain(engine, path, r, config);
	r = engine_config_parse(engine, &text, &json, &error);
	if (r == 0)
		r = engine_config_take(&(struct engine_config_file){engine, json, path}, config);
	if (r == 0 && engine->imports)
		config->json = steal_ptr(json);
	if (r != -EINVAL)
		return r;
	free(steal_ptr(config->invalid));
	return str_format(&config->invalid, "%s:%zu:%zu: %s", path, error.line, error.column, error.reason);
}

/* The one file that it was told to read; NULL: it reads the usual ones. */
static const char *engine_config_given(const struct engine *engine, const struct daemon *daemon)
{
	const char *told = engine->option ? daemon_option(daemon, engine->option, engine->letter) : NULL,
		   *variable = engine->variable ? getenv(engine->variable) : NULL;

	/* Podman takes an empty one for none. */
	if (!told && variable && *variable)
		told = variable;
	if (!told && daemon->snap)
		told = engine->snap_file;
	if (!told && engine->rancher_file && daemon_mentions(daemon, "/k3s/"))
		told = engine->rancher_file;
	return told;
}

int engine_config_expand(const char *pattern, struct strv *ret)
{
	glob_t found = {0};
	int r = 0;

	if (!strchr(pattern, '*'))
		return strv_add(ret, pattern);
	/* Engines take names that begin with a dot, too, and skip directories, which end with a slash here. */
	if (glob(pattern, GLOB_PERIOD | GLOB_MARK, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
			if (strrchr(found.gl_pathv[i], '/')[1])
				r = strv_add(ret, found.gl_pathv[i]);
	globfree(&found);
	return r;
}

static char *engine_config_user_file(const struct daemon *daemon, const char *name)
{
	const char *base = daemon_variable(daemon, "XDG_CONFIG_HOME"), *home = daemon_variable(daemon, "HOME");
	char *path = NULL;
	int r;

	if (!daemon->pid)
		return engine_user_file(name);
	r = base && base[0] == '/' ? str_format(&path, "%s/%s", base, name)
				   : str_format(&path, "%s/.config/%s", home ? home : "", name);
	return r == 0 ? path : NULL;
}

/* ---- files that are merged, containers-config(5) ---- */

static void engine_config_move_list(struct strv *to, struct strv *from)
{
	strv_clear(to);
	*to = *from;
	*from = (struct strv){0};
}

static int engine_config_compare_names(const void *a, const void *b)
{
	return strcmp(strrchr(*(char *const *)a, '/'), strrchr(*(char *const *)b, '/'));
}

/* Appends the files of a pattern, and among them one that is not there yet, if it is of that pattern. */
static int engine_config_expand_with(const char *pattern, const char *made, struct strv *ret)
{
	size_t first = ret->count;
	int r = engine_config_expand(pattern, ret);

	if (r < 0 || !made || strv_contains(ret, made) || fnmatch(pattern, made, FNM_PATHNAME) != 0)
		return r;
	r = strv_add(ret, made);
	qsort(ret->items + first, ret->count - first, sizeof(*ret->items), engine_config_compare_names);
	return r;
}

/* Some are for root alone, some for all others, and some for one user. */
static int engine_config_expand_own(const char *pattern, const char *made, struct strv *ret)
{
	const char *uid = strstr(pattern, "$UID");
	_cleanup_free_ char *own = NULL;

	if (strstr(pattern, geteuid() == 0 ? ".rootless." : ".rootful."))
		return 0;
	if (uid && str_format(&own, "%.*s%u%s", (int)(uid - pattern), pattern, geteuid(), uid + strlen("$UID")) < 0)
		return -ENOMEM;
	return engine_config_expand_with(own ? own : pattern, made, ret);
}

static int engine_config_add_files(const char *const *patterns, const char *made, struct strv *ret)
{
	int r = 0;

	for (; patterns && *patterns && r == 0; patterns++)
		r = engine_config_expand_own(*patterns, made, ret);
	return r;
}

static bool engine_config_has_name(const struct strv *files, const char *path)
{
	for (size_t i = 0; i < files->count; i++)
		if (engine_config_compare_names(&files->items[i], &path) == 0)
			return true;
	return false;
}

/*
 * Only the last file that is there counts, also if it cannot be read, and on top of it those of the directories,
 * whichever that is, in the order of their names; of those with one name, the last.
 */
static int engine_config_merge(struct strv *files)
{
	_cleanup_strv_ struct strv merged = {0}, parts = {0};
	int r = 0;

	for (size_t i = files->count; i-- > 0 && r == 0;) {
		const char *path = files->items[i];

		if (strstr(path, ".conf.d/"))
			r = engine_config_has_name(&parts, path) ? 0 : strv_add(&parts, path);
		else if (merged.count == 0 && (access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR)))
			r = strv_add(&merged, path);
	}
	if (parts.count > 0)
		qsort(parts.items, parts.count, sizeof(*parts.items), engine_config_compare_names);
	for (size_t i = 0; i < parts.count && r == 0; i++)
		r = strv_add(&merged, parts.items[i]);
	engine_config_move_list(files, &merged);
	return r;
}

/* Appends the files of a user, or of root, where the engine reads those. Return: 0 or -ENOMEM. */
static int engine_config_add_user_files(const struct engine *engine, const struct daemon *daemon, long version,
					const char *made, struct strv *ret)
{
	bool rootless = daemon->pid && daemon->uid != 0,
	     /* Without a daemon the files are the caller's. */
		callers = !engine->daemon.name &&
			  (geteuid() != 0 || version == 0 || version >= engine->root_has_user_files);
	int r = 0;

	for (const char *const *file = engine->user_files; file && *file && r == 0 && (rootless || callers); file++) {
		_cleanup_free_ char *pattern = engine_config_user_file(daemon, *file);

		r = pattern ? engine_config_expand_with(pattern, made, ret) : -ENOMEM;
	}
	return r;
}

/* The files that it would read, patterns expanded. @made: as if this were there, too; NULL. Return: 0 or -ENOMEM. */
static int engine_config_files(const struct engine *engine, const struct daemon *daemon, const char *made,
			       struct strv *ret)
{
	const char *told = engine_config_given(engine, daemon);
	_cleanup_free_ char *text = NULL;
	bool merges;
	long version;
	int r = 0;

	if (told)
		return strv_add(ret, told);
	text = engine->merged_files ? engine_version(engine, false) : NULL;
	version = engine_version_number(text);
	merges = engine->merged_files && version >= engine->merges;
	if (!daemon->pid || daemon->uid == 0)
		r = engine_config_add_files(merges ? engine->merged_files : engine->files, made, ret);
	if (r == 0 && !merges && (version == 0 || version >= engine->has_rootless_files))
		r = engine_config_add_files(engine->rootless_files, made, ret);
	if (r == 0)
		r = engine_config_add_user_files(engine, daemon, version, made, ret);
	return r == 0 && merges ? engine_config_merge(ret) : r;
}

/* Root reads no file that others chose. One of a daemon with files of its own is read among those. */
static int engine_config_check_file(const struct engine *engine, const struct daemon *daemon,
				    struct engine_config *config)
{
	_cleanup_free_ char *path = NULL;

	if (!engine->option || geteuid() != 0 || daemon->elsewhere ||
	    daemon_config(daemon, engine->option, engine->letter, &path) != -EPERM)
		return 0;
	return str_format(&config->unread, "%s is not a file that root alone may change", path);
}

static bool engine_config_is_usual(const char *const *usual, const char *path)
{
	for (; usual && *usual; usual++)
		if (fnmatch(*usual, path, FNM_PATHNAME) == 0)
			return true;
	return false;
}

/*
 * Whether it is the environment that names a file ($CONTAINERS_CONF, $XDG_CONFIG_HOME, $HOME), and others than root
 * could have put it there: under sudo or in a service the environment may be a user's.
 */
static bool engine_config_is_of_others(const struct engine *engine, const struct daemon *daemon, const char *path)
{
	_cleanup_close_ int fd = -1;

	if (geteuid() != 0 || daemon->pid)
		return false;
	if (engine_config_is_usual(engine->files, path) || engine_config_is_usual(engine->merged_files, path))
		return false;
	if (path[0] == '/')
		fd = trusted_file_open(path, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_PATH);
	return path[0] != '/' || fd == -EPERM;
}

static int engine_config_read_all(const struct engine *engine, const struct daemon *daemon, const struct rootfs *root,
				  const struct strv *files, struct engine_config *config)
{
	int r = 0;

	for (size_t i = 0; i < files->count && r == 0; i++) {
		const char *path = files->items[i];

		if (!engine_config_is_of_others(engine, daemon, path)) {
			r = engine_config_read_file(engine, root, path, config);
			continue;
		}
		free(steal_ptr(config->unread));
		r = str_format(&config->unread, "%s is not a file that root alone may change", path);
	}
	return r;
}

static bool engine_config_has_cdi_dirs(const struct engine *engine)
{
	_cleanup_free_ char *text = engine->has_cdi_dirs ? engine_version(engine, false) : NULL;
	long version = engine_version_number(text);

	return version == 0 || version >= engine->has_cdi_dirs;
}

int engine_config_read(const struct engine *engine, const struct daemon *daemon, const struct rootfs *root,
		       struct engine_config *ret)
{
	_cleanup_engine_config_ struct engine_config config = {.cdi = -1};
	_cleanup_strv_ struct strv files = {0};
	int r = engine_config_check_file(engine, daemon, &config);

	for (size_t i = 0; r == 0 && engine->hook_directories && engine->hook_directories[i]; i++)
		r = strv_add(&config.hook_directories, engine->hook_directories[i]);
	for (size_t i = 0; r == 0 && engine->cdi_directories && engine->cdi_directories[i]; i++)
		r = strv_add(&config.cdi_directories, engine->cdi_directories[i]);
	if (r == 0 && !config.unread)
		r = engine_config_files(engine, daemon, NULL, &files);
	if (r == 0)
		r = engine_config_read_all(engine, daemon, root, &files, &config);
	if (r == 0 && files.count == 1 && engine->files && !engine->files[1])
		r = engine_config_replace(&config.path, files.items[0]);
	if (r < 0)
		return r;
	if (!engine_config_has_cdi_dirs(engine))
		strv_clear(&config.cdi_directories);
	*ret = config;
	config = (struct engine_config){0};
	return 0;
}

bool engine_config_reads_later(const struct engine *engine, const struct daemon *daemon, const char *other,
			       const char *path)
{
	_cleanup_strv_ struct strv files = {0};
	bool later = false;

	if (engine_config_files(engine, daemon, path, &files) < 0 || !strv_contains(&files, path))
		return false;
	for (size_t i = 0; i < files.count; i++)
		later = streq(files.items[i], other) || (later && !streq(files.items[i], path));
	return later;
}

/* ---- what the engine makes of them ---- */

static void engine_config_move(char **to, char **from)
{
	free(*to);
	*to = *from;
	*from = NULL;
}

/* The daemon, or the program about its file. */
static json_t *engine_config_answer(const struct engine *engine, const struct daemon *daemon)
{
	_cleanup_strv_ struct strv files = {0};

	if (engine->ask && daemon->pid)
		return engine->ask(daemon);
	if (!engine->dump || daemon->elsewhere || engine_config_files(engine, daemon, NULL, &files) < 0 ||
	    files.count == 0 || access(files.items[0], R_OK) < 0)
		return NULL;
	return engine->dump(files.items[0]);
}

bool engine_config_query(const struct engine *engine, const struct daemon *daemon, struct engine_config *config,
			 int *ret_cdi)
{
	_cleanup_engine_config_ struct engine_config said = {.cdi = -1};
	_cleanup_json_ json_t *json = engine_config_answer(engine, daemon);
	bool lost;

	if (!json || engine_config_take(&(struct engine_config_file){engine, json, NULL}, &said) < 0)
		return false;
	lost = config->runtime && !said.runtime;
	engine_config_move(&config->runtime, &said.runtime);
	engine_config_move(&config->default_runtime, &said.default_runtime);
	engine_config_move_list(&config->cdi_directories, &said.cdi_directories);
	if (said.hook_directories.count > 0)
		engine_config_move_list(&config->hook_directories, &said.hook_directories);
	if (said.cdi >= 0)
		*ret_cdi = said.cdi;
	return lost;
}

char *engine_config_newer_file(const struct engine *engine, const struct daemon *daemon)
{
	_cleanup_strv_ struct strv files = {0};
	struct stat st;

	if (!daemon->pid || daemon->elsewhere || engine_config_files(engine, daemon, NULL, &files) < 0 ||
	    (engine->imported && engine_config_expand(engine->imported, &files) < 0))
		return NULL;
	for (size_t i = 0; i < files.count; i++)
		if (stat(files.items[i], &st) == 0 && daemon_is_older(daemon, &st.st_mtim))
			return strdup(files.items[i]);
	return NULL;
}

static bool engine_config_has_section(const struct engine *engine, const char *path)
{
	_cleanup_text_buffer_ struct text_buffer text = {0};
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_json_ json_t *json = NULL;
	struct text_buffer_error error;

	if (rootfs_open(AT_FDCWD, "/", &root) < 0 ||
	    rootfs_read_file(&root, path, CONFIG_MAX, &text.data, &text.size) < 0 ||
	    engine_config_parse(engine, &text, &json, &error) < 0)
		return false;
	for (const char *const *section = engine->sections; section && *section; section++)
		if (json_at(json, *section))
			return true;
	return false;
}

char *engine_config_find_import(const struct engine *engine, const char *path, const json_t *json)
{
	const json_t *imports = engine->imports ? json_at(json, engine->imports) : NULL, *pattern;
	int directory = (int)(strrchr(path, '/') - path);
	_cleanup_strv_ struct strv files = {0};
	size_t i;

	json_array_foreach (imports, i, pattern) {
		const char *text = json_string_value(pattern);
		_cleanup_free_ char *whole = NULL;

		if (text && (text[0] == '/' ? str_format(&whole, "%s", text)
					    : str_format(&whole, "%.*s/%s", directory, path, text)) == 0)
			(void)engine_config_expand(whole, &files);
	}
	for (i = files.count; i-- > 0;)
		if (!streq(files.items[i], path) && engine_config_has_section(engine, files.items[i]))
			return strdup(files.items[i]);
	return NULL;
}

bool engine_config_has_no_cri(const json_t *json)
{
	_cleanup_free_ char *disabled = json_dumps(json_object_get(json, "disabled_plugins"), 0);

	return disabled && strstr(disabled, "cri\"");
}

/* ---- NVIDIA's toolkit ---- */

enum { TOOLKIT_CONFIG_MAX = 256 * 1024 };

#define TOOLKIT_HOOK "nvidia-container-cli/"
#define TOOLKIT_RUNTIME "nvidia-container-runtime/"

/* Keys that need no successor are left out; docs/moving-from-nvidia.md lists all. */
static const struct {
	const char *path;      /* of json_at() */
	const char *default_;  /* NVIDIA's, which needs no message; NULL: any value was set on purpose */
	const char *successor; /* a key of /etc/ctr-gpu/config.json; NULL: none */
	const char *here;      /* what is said where there is none */
	const char *unset;     /* what to write there if it is not set, as our default is another; NULL: nothing */
} toolkit_settings[] = {
	{"disable-require", "false", "disable-requirements", NULL, NULL},
	{"accept-nvidia-visible-devices-envvar-when-unprivileged", "true",
	 "accept-nvidia-visible-devices-envvar-when-unprivileged", NULL, NULL},
	{"accept-nvidia-visible-devices-as-volume-mounts", "true", "accept-nvidia-visible-devices-as-volume-mounts",
	 NULL, "false"},
	{"supported-driver-capabilities", "compat32,compute,display,graphics,ngx,utility,video", NULL,
	 "all capabilities can be asked for", NULL},
	{TOOLKIT_HOOK "root", "/", "driver-root", NULL, NULL},
	{TOOLKIT_HOOK "debug", NULL, "log", NULL, NULL},
	{TOOLKIT_RUNTIME "debug", "/dev/null", "log", NULL, NULL},
	{TOOLKIT_RUNTIME "runtimes", NULL, "runtimes", NULL, NULL},
	{TOOLKIT_RUNTIME "mode", "auto", NULL, "there is one way, that of every door", NULL},
	{TOOLKIT_RUNTIME "modes/legacy/cuda-compat-mode", "ldconfig", NULL,
	 "libraries of an image never take the place of the host's", NULL},
	{"features/allow-cuda-compat-libs-from-container", "false", NULL,
	 "libraries of an image never take the place of the host's", NULL},
	{"features/ignore-imex-channel-requests", "false", NULL, "channels that are asked for and exist are given",
	 NULL},
};

static json_t *toolkit_config_read_ours(void)
{
	_cleanup_free_ char *data = NULL;
	json_t *json = NULL;
	size_t size;

	if (fd_read_file_at(AT_FDCWD, PATH_CONFIG, TOOLKIT_CONFIG_MAX, &data, &size) < 0 ||
	    json_parse(data, size, &json, NULL) < 0)
		return NULL;
	return json;
}

/* Those of every NVIDIA's package. */
static bool toolkit_config_is_usual_list(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));

		if (!name || (!streq(name, "docker-runc") && !streq(name, "runc") && !streq(name, "crun")))
			return false;
	}
	return json_is_array(list);
}

static bool toolkit_config_is_default(const char *usual, const json_t *value, const char *text)
{
	const char *string = json_string_value(value);

	return toolkit_config_is_usual_list(value) || (usual && streq(usual, string ? string : text));
}

static void toolkit_config_look(const json_t *theirs, size_t number,
				void (*visit)(const struct nvidia_setting *setting, void *user), void *user)
{
	const char *path = toolkit_settings[number].path, *successor = toolkit_settings[number].successor,
		   *unset = toolkit_settings[number].unset;
	_cleanup_free_ char *value = NULL, *key = strdup(path), *here = NULL;
	const json_t *set = json_at(theirs, path);

	if (!key || (set && json_print(set, JSON_ENCODE_ANY, &value) < 0) ||
	    (set ? toolkit_config_is_default(toolkit_settings[number].default_, set, value) : !unset))
		return;
	for (char *slash = key; (slash = strchr(slash, '/'));)
		*slash = '.';
	if (successor &&
	    str_format(&here, "\"%s\": %s in /etc/ctr-gpu/config.json", successor, set ? value : unset) < 0)
		return;
	visit(&(struct nvidia_setting){key, value, here ? here : toolkit_settings[number].here, successor}, user);
}

void toolkit_config_each(void (*visit)(const struct nvidia_setting *setting, void *user), void *user)
{
	_cleanup_free_ char *data = NULL;
	_cleanup_json_ json_t *ours = NULL, *theirs = NULL;
	struct text_buffer_error error;
	struct text_buffer text;
	size_t size;

	if (fd_read_file_at(AT_FDCWD, NVIDIA_CONFIG, TOOLKIT_CONFIG_MAX, &data, &size) < 0)
		return;
	text = (struct text_buffer){data, size};
	if (toml_parse_read(&text, &theirs, &error) < 0)
		return;
	ours = toolkit_config_read_ours();
	for (size_t i = 0; i < ARRAY_SIZE(toolkit_settings); i++)
		if (!toolkit_settings[i].successor || !json_object_get(ours, toolkit_settings[i].successor))
			toolkit_config_look(theirs, i, visit, user);
}
