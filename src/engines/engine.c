/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "engines/daemon.h"
#include "system/machine.h"

enum { SNAP_FILE_MAX = 256 * 1024 };

const char *const engine_hook_directories[] = {ENGINE_HOOKS_USR, ENGINE_HOOKS_ETC,
					       "/usr/local/share/containers/oci/hooks.d", NULL};

const struct engine *engine_find(const char *name, size_t length)
{
	for (const struct engine *const *engine = engine_list; *engine; engine++) {
		const char *const names[] = {(*engine)->name, (*engine)->alias ? (*engine)->alias : (*engine)->name};

		for (size_t j = 0; j < ARRAY_SIZE(names); j++)
			if (strlen(names[j]) == length && strncmp(names[j], name, length) == 0)
				return *engine;
	}
	return NULL;
}

bool engine_is_installed(const struct engine *engine)
{
	for (const char *const *program = engine->programs; *program; program++)
		if (path_lookup_is_here(*program))
			return true;
	return false;
}

/* ---- versions ---- */

static char *engine_snap_version(const struct engine *engine)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	const char *line = NULL;

	if (str_format(&path, "%s/meta/snap.yaml", engine->snap) == 0 &&
	    fd_read_file_at(AT_FDCWD, path, SNAP_FILE_MAX, &text, NULL) == 0)
		line = strstr(text, "\nversion: ");
	if (!line)
		return NULL;
	line += strlen("\nversion: ");
	line += strspn(line, "'\"v");
	return strndup(line, strspn(line, "0123456789."));
}

char *engine_version(const struct engine *engine, bool snap)
{
	return snap && engine->snap ? engine_snap_version(engine) : package_version(engine->packages);
}

long engine_version_number(const char *version)
{
	char *end;
	long major, minor;

	if (!version)
		return 0;
	major = strtol(version, &end, 10);
	if (end == version || major < 0 || major > 10000)
		return 0;
	minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
	return ENGINE_VERSION(major, minor >= 0 && minor < 1000 ? minor : 999);
}

const struct engine_release *engine_cdi(const struct engine *engine, long version)
{
	const struct engine_release *newest = NULL;

	for (const struct engine_release *release = engine->releases; release && release->cdi; release++)
		if (version >= ENGINE_VERSION(release->major, release->minor))
			newest = release;
	return newest;
}

enum engine_cdi_state engine_cdi_state(const struct engine *engine, long version, int setting)
{
	const struct engine_release *release = engine_cdi(engine, version);

	if (!engine->releases || (version > 0 && !release))
		return ENGINE_CDI_NONE;
	/* The version does not matter if CDI is on in all releases, or if the configuration says. */
	if (setting >= 0 || !engine->releases->remark)
		return setting == 0 ? ENGINE_CDI_OFF : ENGINE_CDI_ON;
	if (version == 0)
		return ENGINE_CDI_UNKNOWN;
	return release->remark ? ENGINE_CDI_OFF : ENGINE_CDI_ON;
}

/* ---- files ---- */

char *engine_user_file(const char *name)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *path;
	int r;

	if (base && base[0] == '/')
		r = str_format(&path, "%s/%s", base, name);
	else
		r = str_format(&path, "%s/.config/%s", home ? home : "", name);
	return r == 0 ? path : NULL;
}

/* The real path of a file that may be missing in a directory that is there, owned by the caller; NULL. */
static char *engine_real_path(const char *path)
{
	const char *name = strrchr(path, '/');
	_cleanup_free_ char *above = NULL, *real = realpath(path, NULL);
	char *result;

	if (real || errno != ENOENT || !name)
		return steal_ptr(real);
	above = strndup(path, (size_t)(name - path));
	real = above ? realpath(above, NULL) : NULL;
	return real && str_format(&result, "%s%s", real, name) == 0 ? result : NULL;
}

/* @directory: without a slash at its end. */
static bool engine_is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 && path[length] == '/' && !strstr(path + length, "/../");
}

bool engine_has_file(const struct engine *engine, const char *path)
{
	_cleanup_free_ char *real = engine_real_path(path);

	for (const char *const *known = engine->directories; known && *known; known++) {
		_cleanup_free_ char *directory = realpath(*known, NULL);

		if (directory ? real && engine_is_below(real, directory)
			      : errno == ENOENT && engine_is_below(path, *known))
			return true;
	}
	return false;
}

/* ---- services ---- */

static bool engine_runs_here(const char *manager)
{
	struct stat st;

	return stat(manager, &st) == 0 && S_ISDIR(st.st_mode);
}

char *engine_restart_command(const struct engine *engine, const struct daemon *daemon, bool user, enum engine_step step)
{
	const char *verb = step == ENGINE_START ? "start" : step == ENGINE_RELOAD ? "reload" : "restart";
	/* What reloads is the service manager's own or a signal. */
	const char *plain = step == ENGINE_START ? "start" : "restart";
	_cleanup_free_ char *script = NULL;
	char *command;
	int r;

	if (str_format(&script, "/etc/init.d/%s", engine->service) < 0)
		return NULL;
	if (daemon->snap)
		r = str_format(&command, "snap %s %s", plain, engine->service);
	/* sd_booted(3) looks for this directory, too. */
	else if (engine_runs_here("/run/systemd/system"))
		r = str_format(&command, "systemctl %s%s %s", user ? "--user " : "", verb, engine->service);
	else if (step == ENGINE_RELOAD && daemon->pid)
		r = str_format(&command, "kill -HUP %d", daemon->pid);
	else if (!user && engine_runs_here("/run/openrc"))
		r = str_format(&command, "rc-service %s %s", engine->service, plain);
	else if (!user && access(script, X_OK) == 0)
		r = str_format(&command, "service %s %s", engine->service, plain);
	else if (daemon->pid)
		r = str_format(&command, "kill %d, and start it again as it was started", daemon->pid);
	else
		r = str_format(&command, "%s &", engine->daemon.name);
	return r == 0 ? command : NULL;
}
