/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"
#include "engines/text.h"

enum { CONFIG_MAX = 256 * 1024 };

#define HOOK "nvidia-container-cli/"
#define RUNTIME "nvidia-container-runtime/"

/* Keys that need no successor are left out; docs/moving-from-nvidia.md lists all. */
static const struct {
	const char *path;      /* of json_at() */
	const char *default_;  /* NVIDIA's, which needs no message; NULL: any value was set on purpose */
	const char *successor; /* a key of /etc/ctr-gpu/config.json; NULL: none */
	const char *here;      /* what is said where there is none */
	const char *unset;     /* what to write there if it is not set, as our default is another; NULL: nothing */
} settings[] = {
	{"disable-require", "false", "disable-requirements", NULL, NULL},
	{"accept-nvidia-visible-devices-envvar-when-unprivileged", "true",
	 "accept-nvidia-visible-devices-envvar-when-unprivileged", NULL, NULL},
	{"accept-nvidia-visible-devices-as-volume-mounts", "true", "accept-nvidia-visible-devices-as-volume-mounts",
	 NULL, "false"},
	{"supported-driver-capabilities", "compat32,compute,display,graphics,ngx,utility,video", NULL,
	 "all capabilities can be asked for", NULL},
	{HOOK "root", "/", "driver-root", NULL, NULL},
	{HOOK "debug", NULL, "log", NULL, NULL},
	{RUNTIME "debug", "/dev/null", "log", NULL, NULL},
	{RUNTIME "runtimes", NULL, "runtimes", NULL, NULL},
	{RUNTIME "mode", "auto", NULL, "there is one way, that of every door", NULL},
	{RUNTIME "modes/legacy/cuda-compat-mode", "ldconfig", NULL,
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

	if (fd_read_file_at(AT_FDCWD, PATH_CONFIG, CONFIG_MAX, &data, &size) < 0 ||
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
	const char *path = settings[number].path, *successor = settings[number].successor,
		   *unset = settings[number].unset;
	_cleanup_free_ char *value = NULL, *key = strdup(path), *here = NULL;
	const json_t *set = json_at(theirs, path);

	if (!key || (set && json_print(set, JSON_ENCODE_ANY, &value) < 0) ||
	    (set ? toolkit_config_is_default(settings[number].default_, set, value) : !unset))
		return;
	for (char *slash = key; (slash = strchr(slash, '/'));)
		*slash = '.';
	if (successor &&
	    str_format(&here, "\"%s\": %s in /etc/ctr-gpu/config.json", successor, set ? value : unset) < 0)
		return;
	visit(&(struct nvidia_setting){key, value, here ? here : settings[number].here, successor}, user);
}

void toolkit_config_each(void (*visit)(const struct nvidia_setting *setting, void *user), void *user)
{
	_cleanup_free_ char *data = NULL;
	_cleanup_json_ json_t *ours = NULL, *theirs = NULL;
	struct text_buffer_error error;
	struct text_buffer text;
	size_t size;

	if (fd_read_file_at(AT_FDCWD, NVIDIA_CONFIG, CONFIG_MAX, &data, &size) < 0)
		return;
	text = (struct text_buffer){data, size};
	if (toml_parse_read(&text, &theirs, &error) < 0)
		return;
	ours = toolkit_config_read_ours();
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (!settings[i].successor || !json_object_get(ours, settings[i].successor))
			toolkit_config_look(theirs, i, visit, user);
}
