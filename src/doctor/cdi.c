/* SPDX-License-Identifier: Apache-2.0 */

/* CDI specs in the directories that engines read: whether they name what is still here, and do not contradict each other. */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/json.h"
#include "doctor/doctor.h"
#include "doctor/file.h"

enum {
	SPEC_MAX = 4 * 1024 * 1024,
	SPECS_MAX = 256, /* of a directory */
};

/* The second goes before the first, for devices of the same name (CDI SPEC.md). */
static const char *const directories[] = {"/etc/cdi", "/var/run/cdi"};

/* What one file comes to. */
struct spec {
	struct strv devices; /* "nvidia.com/gpu=0" */
	char *kind;
	char *missing;       /* the first path of this machine that is not there; NULL */
	bool bare_hook;      /* a hook without an environment of its own inherits that of the image (CVE-2025-23266) */
};

static void spec_clear(struct spec *spec)
{
	strv_clear(&spec->devices);
	free(spec->kind);
	free(spec->missing);
}
#define _cleanup_spec_ _cleanup_(spec_clear)

static void need(struct spec *spec, const char *path)
{
	struct stat st;

	if (!spec->missing && path && path[0] == '/' && stat(path, &st) < 0)
		spec->missing = strdup(path);
}

/* ---- JSON ---- */

static void read_nodes(struct spec *spec, const json_t *nodes)
{
	const json_t *node;
	size_t i;

	json_array_foreach((json_t *)nodes, i, node) {
		const char *host = json_string_value(json_object_get(node, "hostPath"));

		need(spec, host && host[0] ? host : json_string_value(json_object_get(node, "path")));
	}
}

static void read_hooks(struct spec *spec, const json_t *hooks)
{
	const json_t *hook;
	size_t i;

	json_array_foreach((json_t *)hooks, i, hook) {
		need(spec, json_string_value(json_object_get(hook, "path")));
		if (json_array_size(json_object_get(hook, "env")) == 0)
			spec->bare_hook = true;
	}
}

static void read_edits(struct spec *spec, const json_t *edits)
{
	const json_t *mount;
	size_t i;

	read_nodes(spec, json_object_get(edits, "deviceNodes"));
	read_hooks(spec, json_object_get(edits, "hooks"));
	json_array_foreach(json_object_get(edits, "mounts"), i, mount)
		need(spec, json_string_value(json_object_get(mount, "hostPath")));
}

static void read_json(struct spec *spec, const json_t *json)
{
	const char *kind = json_string_value(json_object_get(json, "kind"));
	const json_t *device;
	size_t i;

	read_edits(spec, json_object_get(json, "containerEdits"));
	spec->kind = kind ? strdup(kind) : NULL;
	json_array_foreach(json_object_get(json, "devices"), i, device) {
		const char *name = json_string_value(json_object_get(device, "name"));
		char *full;

		read_edits(spec, json_object_get(device, "containerEdits"));
		if (kind && name && str_format(&full, "%s=%s", kind, name) == 0)
			(void)strv_take(&spec->devices, full);
	}
}

/* ---- YAML, as nvidia-ctk writes it: one key a line ---- */

static char *yaml_value(const char *line, const char *key)
{
	size_t blank = strspn(line, " -"), length = strlen(key);
	const char *value = line + blank + length;

	if (strncmp(line + blank, key, length) != 0 || *value++ != ':')
		return NULL;
	value += strspn(value, " \"'");
	return strndup(value, strcspn(value, "\"'\r\n"));
}

static void read_yaml_line(struct spec *spec, const char *line)
{
	static const char *const paths[] = {"hostPath", "path"};
	_cleanup_free_ char *kind = yaml_value(line, "kind"), *name = yaml_value(line, "name");
	char *full;

	if (kind && !spec->kind)
		spec->kind = steal_ptr(kind);
	if (name && spec->kind && str_format(&full, "%s=%s", spec->kind, name) == 0)
		(void)strv_take(&spec->devices, full);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_free_ char *path = yaml_value(line, paths[i]);

		need(spec, path);
	}
}

/* Its keys come in the order of the alphabet: the kind behind the devices. */
static void read_yaml(struct spec *spec, const char *text)
{
	const char *kind = str_has_prefix(text, "kind:") ? text : strstr(text, "\nkind:");

	if (kind)
		spec->kind = yaml_value(kind + (*kind == '\n'), "kind");
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		read_yaml_line(spec, line);
	spec->bare_hook = strstr(text, "hookName:") && !strstr(text, "  env:");
}

/* ---- files ---- */

static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), suffix_length = strlen(suffix);

	return length > suffix_length && streq(name + length - suffix_length, suffix);
}

/* Return: whether it could be read as what its name says. */
static bool read_spec(const char *path, struct spec *ret)
{
	_cleanup_json_ json_t *json = NULL;
	_cleanup_free_ char *data = NULL;
	size_t size;

	if (fd_read_file_at(AT_FDCWD, path, SPEC_MAX, &data, &size) < 0)
		return false;
	if (!has_suffix(path, ".json")) {
		read_yaml(ret, data);
		return ret->kind;
	}
	if (json_parse(data, size, &json, NULL) < 0)
		return false;
	read_json(ret, json);
	return ret->kind;
}

static void add_spec(struct examination *examination, const char *path, const struct spec *spec)
{
	struct findings *findings = &examination->findings;

	if (spec->missing) {
		findings_add(findings, "cdi.stale", SEVERITY_WARNING, "%s names %s, which is not there", path, spec->missing);
		findings_advise(findings, "sudo ctr-gpu cdi generate, and remove the file if another program wrote it.");
		return;
	}
	if (spec->bare_hook) {
		findings_add(findings, "cdi.bare-hook", SEVERITY_WARNING, "%s runs a hook without an environment of its own: images can take it over", path);
		findings_advise(findings, "Write it with a current tool: sudo ctr-gpu cdi generate.");
	}
	findings_add(findings, "cdi.spec", SEVERITY_OK, "%s: %zu device%s of kind %s", path, spec->devices.count, spec->devices.count == 1 ? "" : "s",
		     spec->kind);
	if (!strv_contains(&examination->cdi_kinds, spec->kind))
		(void)strv_add(&examination->cdi_kinds, spec->kind);
}

static bool is_gpu_kind(const char *kind)
{
	return has_suffix(kind, "/gpu") || has_suffix(kind, "/wslc") || strstr(kind, "nvidia.com/");
}

/* Of a device that two files of one directory describe, engines take neither. */
static void check_conflicts(struct examination *examination, const char *path, const struct spec *spec, struct strv *seen)
{
	for (size_t i = 0; i < spec->devices.count; i++)
		if (strv_contains(seen, spec->devices.items[i])) {
			findings_add(&examination->findings, "cdi.duplicate", SEVERITY_WARNING, "%s and another file in its directory both describe %s: engines take neither",
				     path, spec->devices.items[i]);
			findings_advise(&examination->findings, "Remove one of them.");
			break;
		}
	for (size_t i = 0; i < spec->devices.count; i++)
		(void)strv_add(seen, spec->devices.items[i]);
}

static void check_file(struct examination *examination, const char *path, struct strv *seen)
{
	_cleanup_spec_ struct spec spec = {0};

	if (!read_spec(path, &spec)) {
		findings_add(&examination->findings, "cdi.unreadable", SEVERITY_WARNING, "%s is no CDI spec, or you may not read it", path);
		findings_advise(&examination->findings, "Its mode should be 0644, its content JSON or YAML with a \"kind\".");
		return;
	}
	if (!is_gpu_kind(spec.kind))
		return;
	check_conflicts(examination, path, &spec, seen);
	add_spec(examination, path, &spec);
}

static void check_directory(struct examination *examination, const char *path)
{
	_cleanup_strv_ struct strv names = {0}, seen = {0};
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && names.count < SPECS_MAX && (entry = readdir(directory)))
		if (has_suffix(entry->d_name, ".json") || has_suffix(entry->d_name, ".yaml"))
			(void)strv_add(&names, entry->d_name);
	if (directory)
		(void)closedir(directory);
	strv_sort(&names);
	for (size_t i = 0; i < names.count; i++) {
		_cleanup_free_ char *file = NULL;

		if (str_format(&file, "%s/%s", path, names.items[i]) == 0)
			check_file(examination, file, &seen);
	}
}

void check_cdi(struct examination *examination)
{
	size_t before = examination->findings.count;

	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		check_directory(examination, directories[i]);
	if (examination->findings.count > before)
		return;
	findings_add(&examination->findings, "cdi.none", SEVERITY_NOTE, "no CDI spec for GPUs, which --device and Kubernetes would use");
	findings_advise(&examination->findings, "sudo ctr-gpu cdi generate");
}
