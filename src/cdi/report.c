/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Specs that were read, and whether they would work: an engine loads them, what they name is there, their hooks are
 * safe to run, and those of ours say what would be written now.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/print.h"
#include "cdi/report.h"
#include "ctr-gpu.h"
#include "engines/engine.h"
#include "lib/context.h"
#include "system/trusted_file.h"

/* ---- report ---- */

/* A reader needs no more than these. */
enum { CDI_FINDINGS_MAX = 64 };

int ctr_gpu_cdi_report_new(struct ctr_gpu_context *context, struct ctr_gpu_cdi_report **ret_report)
{
	struct ctr_gpu_cdi_report *report = calloc(1, sizeof(*report));

	if (!report)
		return -ENOMEM;
	report->context = context;
	*ret_report = report;
	return 0;
}

struct ctr_gpu_cdi_report *ctr_gpu_cdi_report_unref(struct ctr_gpu_cdi_report *report)
{
	if (!report)
		return NULL;
	for (size_t i = 0; i < report->file_count; i++) {
		struct cdi_file *file = &report->files[i];

		for (size_t j = 0; j < file->finding_count; j++)
			free(file->findings[j].text);
		free(file->findings);
		free(file->path);
		cdi_spec_clear(&file->spec);
	}
	free(report->files);
	strv_clear(&report->directories);
	free(report);
	return NULL;
}

/* Return: 0 or -ENOMEM. */
static __attribute__((format(printf, 3, 4))) int cdi_report_find(struct cdi_file *file, enum cdi_severity severity,
								 const char *format, ...)
{
	struct cdi_finding *findings;
	struct err text = {0};
	va_list arguments;

	if (file->finding_count >= CDI_FINDINGS_MAX)
		return 0;
	findings = array_grow(file->findings, file->finding_count, sizeof(*findings));
	if (!findings)
		return -ENOMEM;
	file->findings = findings;
	va_start(arguments, format);
	(void)vsnprintf(text.text, sizeof(text.text), format, arguments);
	va_end(arguments);
	findings[file->finding_count] = (struct cdi_finding){severity, strdup(text.text)};
	return findings[file->finding_count].text ? (file->finding_count++, 0) : -ENOMEM;
}

/* ---- reading ---- */

/* @path: taken. Return: the file, borrowed; NULL without memory. */
static struct cdi_file *cdi_report_add_file(struct ctr_gpu_cdi_report *report, char *path)
{
	struct cdi_file *files = path ? array_grow(report->files, report->file_count, sizeof(*files)) : NULL;

	if (!files) {
		free(path);
		return NULL;
	}
	report->files = files;
	files[report->file_count] = (struct cdi_file){.path = path, .priority = report->priority};
	return &files[report->file_count++];
}

static int cdi_report_read_file(struct ctr_gpu_cdi_report *report, char *path)
{
	struct cdi_file *file = cdi_report_add_file(report, path);
	_cleanup_free_ char *data = NULL;
	size_t size;
	int r;

	if (!file)
		return -ENOMEM;
	r = fd_read_untrusted_at(AT_FDCWD, file->path, CDI_FILE_MAX, &data, &size);
	if (r == -EFBIG)
		return cdi_schema_problem(&file->spec, "it has more than %d MiB; no real one has", CDI_FILE_MAX >> 20);
	if (r == -EINVAL)
		return cdi_schema_problem(&file->spec, "it is not a regular file");
	if (r == -ENOMEM)
		return r;
	file->denied = r == -EACCES || r == -EPERM;
	if (r < 0)
		return cdi_schema_problem(&file->spec, "it cannot be read: %s", strerror(-r));
	return cdi_spec_parse(file->path, data, size, &file->spec);
}

int ctr_gpu_cdi_report_read_file(struct ctr_gpu_cdi_report *report, const char *path)
{
	return cdi_report_read_file(report, strdup(path));
}

/* The names of specs; ours are always among them. @ret_more: whether there are more of others' than are looked at */
static int cdi_report_list_names(DIR *stream, struct strv *ret, bool *ret_more)
{
	const struct dirent *entry;
	size_t others = 0;
	bool is_yaml;
	int r = 0;

	*ret_more = false;
	while (r == 0 && (entry = readdir(stream))) {
		if (entry->d_type == DT_DIR || !cdi_spec_has_name(entry->d_name, &is_yaml))
			continue;
		if (!str_has_prefix(entry->d_name, CDI_FILE_PREFIX) && ++others > CDI_FILES_MAX)
			*ret_more = true;
		else
			r = strv_add(ret, entry->d_name);
	}
	strv_sort(ret);
	return r;
}

static int cdi_report_tell_of_more(struct ctr_gpu_cdi_report *report, const char *directory)
{
	struct cdi_file *rest = cdi_report_add_file(report, strdup(directory));

	if (!rest)
		return -ENOMEM;
	rest->is_rest = true;
	return cdi_report_find(rest, CDI_WARNING, "it has more than %d specs, and the others were not looked at",
			       CDI_FILES_MAX);
}

int ctr_gpu_cdi_report_read_directory(struct ctr_gpu_cdi_report *report, const char *path)
{
	_cleanup_strv_ struct strv names = {0};
	_cleanup_dir_ DIR *stream = NULL;
	bool more;
	int r = strv_add(&report->directories, path);

	report->priority++;
	if (r < 0)
		return r;
	stream = opendir(path);
	if (!stream && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!stream)
		return err_set_advised(&report->context->err, -errno, ("cannot read the directory %s: %m", path),
				       ("Check its permissions."));
	r = cdi_report_list_names(stream, &names, &more);
	for (size_t i = 0; i < names.count && r == 0; i++) {
		char *file = NULL;

		r = str_format(&file, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", names.items[i]);
		if (r == 0)
			r = cdi_report_read_file(report, file);
	}
	return r == 0 && more ? cdi_report_tell_of_more(report, path) : r;
}

/* ---- what engines make of it ---- */

bool cdi_report_is_loaded(const struct cdi_file *file)
{
	return file->spec.problems.count == 0 && !file->is_rest;
}

const struct cdi_file *cdi_report_winner(const struct ctr_gpu_cdi_report *report, const char *kind, const char *name,
					 const struct cdi_file **ret_conflict)
{
	const struct cdi_file *winner = NULL;

	*ret_conflict = NULL;
	for (size_t i = 0; i < report->file_count; i++) {
		const struct cdi_file *file = &report->files[i];

		size_t device = 0, count = file->spec.device_count;

		if ((winner && file->priority < winner->priority) || !cdi_report_is_loaded(file) || !file->spec.kind ||
		    !streq(file->spec.kind, kind))
			continue;
		while (device < count &&
		       !(file->spec.devices[device].name && streq(file->spec.devices[device].name, name)))
			device++;
		if (device == count)
			continue;
		*ret_conflict = winner && winner->priority == file->priority ? winner : NULL;
		winner = file;
	}
	return winner;
}

bool ctr_gpu_cdi_report_is_fine(const struct ctr_gpu_cdi_report *report)
{
	for (size_t i = 0; i < report->file_count; i++) {
		const struct cdi_file *file = &report->files[i];

		if (file->spec.problems.count)
			return false;
		for (size_t j = 0; j < file->finding_count; j++)
			if (file->findings[j].severity == CDI_ERROR)
				return false;
	}
	return report->file_count > 0;
}

/* ---- check ---- */

enum { NAMED_MAX = 6, MISSING_MAX = 1024, ENGINES_MAX = 16, ENGINE_NAME_SIZE = 24 };

/* A list in a sentence, as long as it stays readable. */
static int cdi_check_join_some(const struct strv *list, char **ret)
{
	struct strv first = {.items = list->items, .count = list->count < NAMED_MAX ? list->count : NAMED_MAX};
	_cleanup_free_ char *text = NULL;

	if (strv_join(&first, ", ", &text) < 0)
		return -ENOMEM;
	return list->count > NAMED_MAX ? str_format(ret, "%s and %zu more", text, list->count - NAMED_MAX)
				       : str_format(ret, "%s", text);
}

/* ---- check: paths ---- */

/*
 * A hook without an environment of its own gets one of the runtime's choice. Some versions of runc and crun gave it the
 * image's: LD_PRELOAD then runs the image's code as the hook (CVE-2025-23266).
 */
static int cdi_check_hook(struct cdi_file *file, const struct cdi_hook *hook)
{
	const char *path = hook->path, *stage = hook->stage ? hook->stage : "?";
	_cleanup_close_ int fd = path ? trusted_file_open(path, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_PATH) : -1;
	struct stat st;
	int r = 0;

	if (!path)
		return 0;
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		r = cdi_report_find(file, CDI_ERROR, "the hook %s is not there", path);
	else if (!(st.st_mode & S_IXUSR))
		r = cdi_report_find(file, CDI_ERROR, "the hook %s cannot be executed", path);
	else if (st.st_uid != 0)
		r = cdi_report_find(file, CDI_ERROR, "engines run the hook %s as root, but it belongs to uid %u", path,
				    st.st_uid);
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		r = cdi_report_find(file, CDI_ERROR, "engines run the hook %s as root, but others can write it", path);
	else if (fd == -EPERM)
		r = cdi_report_find(file, CDI_WARNING,
				    "engines run the hook %s as root, and others can put another file there", path);
	if (r == 0 && !hook->has_environment)
		r = cdi_report_find(
			file, CDI_ERROR,
			"the hook %s (%s) has no \"env\": some runtimes give it the image's, with which an image "
			"takes over the host",
			path, stage);
	if (r == 0 && !hook->has_timeout)
		r = cdi_report_find(file, CDI_WARNING,
				    "the hook %s (%s) has no \"timeout\", so that containers hang if it does", path,
				    stage);
	return r;
}

/* Engines look at the path itself, and not where a link leads (deviceInfoFromPath() of the CDI library). */
static int cdi_check_node(struct cdi_file *file, const struct cdi_node *node)
{
	struct stat st;

	if (!node->path)
		return 0;
	if (lstat(node->path, &st) < 0)
		return node->is_complete
			       ? cdi_report_find(file, CDI_WARNING,
						 "the device node %s is not there: containers get one without a device",
						 node->path)
			       : cdi_report_find(file, CDI_ERROR,
						 "the device node %s is not there, so that no container with it starts",
						 node->path);
	if (S_ISLNK(st.st_mode) && !node->is_complete)
		return cdi_report_find(
			file, CDI_ERROR,
			"%s is a symlink, which engines do not follow, so that no container with it starts",
			node->path);
	if (S_ISDIR(st.st_mode) || (S_ISLNK(st.st_mode) && stat(node->path, &st) < 0))
		return 0;
	if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
		return cdi_report_find(file, CDI_ERROR, "%s is not a device node", node->path);
	if (node->numbered && (node->major != major(st.st_rdev) || node->minor != minor(st.st_rdev)))
		return cdi_report_find(file, CDI_ERROR,
				       "it says %s is device %lld:%lld, and it is %u:%u: write the spec again",
				       node->path, node->major, node->minor, major(st.st_rdev), minor(st.st_rdev));
	return 0;
}

static int cdi_check_edits(struct cdi_file *file, const struct cdi_edits *edits)
{
	int r = 0;

	for (size_t i = 0; i < edits->node_count && r == 0; i++)
		r = cdi_check_node(file, &edits->nodes[i]);
	for (size_t i = 0; i < edits->hook_count && r == 0; i++)
		r = cdi_check_hook(file, &edits->hooks[i]);
	return r;
}

/* One sentence for all, since a driver update takes them all away at once. */
static int cdi_check_mounts(struct cdi_file *file)
{
	_cleanup_strv_ struct strv missing = {0};
	_cleanup_free_ char *text = NULL;
	struct stat st;
	int r = 0;

	for (size_t i = 0; i <= file->spec.device_count; i++) {
		const struct cdi_edits *edits = i > 0 ? &file->spec.devices[i - 1].edits : &file->spec.edits;

		for (size_t j = 0; j < edits->mount_count && missing.count < MISSING_MAX && r == 0; j++) {
			const char *source = edits->mounts[j].source;

			if (source && source[0] == '/' && lstat(source, &st) < 0 && !strv_contains(&missing, source))
				r = strv_add(&missing, source);
		}
	}
	if (r != 0 || missing.count == 0)
		return r;
	r = cdi_check_join_some(&missing, &text);
	return r == 0 ? cdi_report_find(file, CDI_ERROR, "of what it mounts this is not there%s: %s",
					file->spec.is_ours ? ", since the driver has changed" : "", text)
		      : r;
}

/* The same node or hook in fifty devices is one finding. */
static void cdi_check_drop_repeated(struct cdi_file *file)
{
	size_t kept = 0;

	for (size_t i = 0; i < file->finding_count; i++) {
		size_t same = 0;

		while (same < kept && !streq(file->findings[same].text, file->findings[i].text))
			same++;
		if (same < kept)
			free(file->findings[i].text);
		else
			file->findings[kept++] = file->findings[i];
	}
	file->finding_count = kept;
}

static int cdi_check_paths(struct cdi_file *file)
{
	int r;

	r = cdi_check_edits(file, &file->spec.edits);
	for (size_t i = 0; i < file->spec.device_count && r == 0; i++) {
		r = cdi_check_edits(file, &file->spec.devices[i].edits);
		cdi_check_drop_repeated(file);
	}
	return r == 0 ? cdi_check_mounts(file) : r;
}

/* ---- check: other files ---- */

static int cdi_check_others(const struct ctr_gpu_cdi_report *report, struct cdi_file *file)
{
	_cleanup_strv_ struct strv conflicts = {0}, hidden = {0};
	const struct cdi_file *other, *conflicting = NULL, *hiding = NULL;
	_cleanup_free_ char *text = NULL;
	int r = 0;

	for (size_t i = 0; i < file->spec.device_count && r == 0; i++) {
		const char *name = file->spec.devices[i].name;
		const struct cdi_file *winner = cdi_report_winner(report, file->spec.kind, name, &other);

		if (winner->priority > file->priority) {
			hiding = winner;
			r = strv_add(&hidden, name);
		} else if (other) {
			conflicting = other == file ? winner : other;
			r = strv_add(&conflicts, name);
		}
	}
	if (r == 0 && conflicting)
		r = cdi_check_join_some(&conflicts, &text);
	if (r == 0 && conflicting)
		r = cdi_report_find(file, CDI_ERROR,
				    "%s has some of its devices, too, so that engines know neither: %s",
				    conflicting->path, text);
	if (r == 0 && hiding)
		r = cdi_report_find(file, CDI_WARNING, "%zu of its devices come from %s instead", hidden.count,
				    hiding->path);
	return r;
}

/* ---- check: the host ---- */

static const struct cdi_hook *cdi_check_first_hook(const struct cdi_spec *spec)
{
	for (size_t i = 0; i < spec->device_count; i++)
		if (spec->devices[i].edits.hook_count > 0)
			return &spec->devices[i].edits.hooks[0];
	return NULL;
}

int cdi_generate_like(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const struct cdi_spec *old,
		      json_t **ret)
{
	const struct cdi_hook *hook = cdi_check_first_hook(old);
	const char *capabilities =
		strv_variable(hook ? &hook->environment : &old->edits.environment, CDI_CAPABILITIES_VARIABLE);
	struct request request = {.kind = REQUEST_ALL, .groups = old->needed == CDI_0_7};
	const struct cdi_options options = {.kind = old->kind, .hook = hook ? hook->path : NULL, .request = &request};
	int r;

	r = request_set_capabilities(&request, capabilities ? capabilities : "", &context->err);
	return r == 0 ? cdi_generate(context, host, &options, ret) : r;
}

static const struct cdi_device *cdi_check_find_device(const struct cdi_spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->device_count; i++)
		if (streq(spec->devices[i].name, name))
			return &spec->devices[i];
	return NULL;
}

static int cdi_check_list_missing_devices(const struct cdi_spec *in, const struct cdi_spec *of, struct strv *ret)
{
	int r = 0;

	for (size_t i = 0; i < of->device_count && r == 0; i++)
		if (!cdi_check_find_device(in, of->devices[i].name))
			r = strv_add(ret, of->devices[i].name);
	return r;
}

static bool cdi_check_has_all(const struct strv *in, const struct strv *of)
{
	for (size_t i = 0; i < of->count; i++)
		if (!strv_contains(in, of->items[i]))
			return false;
	return true;
}

/* Nodes besides, as of IMEX channels, may have been wished for. */
static bool cdi_check_edits_match(const struct cdi_edits *old, const struct cdi_edits *new)
{
	for (size_t i = 0, j; i < new->node_count; i++) {
		for (j = 0; j < old->node_count && !streq(old->nodes[j].path, new->nodes[i].path); j++)
			;
		if (j == old->node_count)
			return false;
	}
	for (size_t i = 0, j; i < new->mount_count; i++) {
		for (j = 0; j < old->mount_count && !(streq(old->mounts[j].source, new->mounts[i].source) &&
						      streq(old->mounts[j].target, new->mounts[i].target));
		     j++)
			;
		if (j == old->mount_count)
			return false;
	}
	return old->mount_count == new->mount_count &&cdi_check_has_all(&old->groups, &new->groups) &&
	       cdi_check_has_all(&new->groups, &old->groups);
}

static int cdi_check_report_stale(struct cdi_file *file, const struct strv *devices, const char *what)
{
	_cleanup_free_ char *text = NULL;

	if (devices->count == 0)
		return 0;
	if (cdi_check_join_some(devices, &text) < 0)
		return -ENOMEM;
	return cdi_report_find(file, CDI_ERROR, "stale: %s: %s. Write it again: ctr-gpu cdi generate%s", what, text,
			       cdi_check_first_hook(&file->spec) ? "" : " --no-hooks");
}

static int cdi_check_compare(struct cdi_file *file, const struct cdi_spec *new)
{
	_cleanup_strv_ struct strv gone = {0}, added = {0}, changed = {0};
	int r;

	r = cdi_check_list_missing_devices(new, &file->spec, &gone);
	if (r == 0)
		r = cdi_check_list_missing_devices(&file->spec, new, &added);
	for (size_t i = 0; i < new->device_count &&r == 0; i++) {
		const struct cdi_device *device = cdi_check_find_device(&file->spec, new->devices[i].name);

		if (device && !cdi_check_edits_match(&device->edits, &new->devices[i].edits))
			r = strv_add(&changed, device->name);
	}
	if (r == 0)
		r = cdi_check_report_stale(file, &gone, "this host no longer has");
	if (r == 0)
		r = cdi_check_report_stale(file, &added, "this host also has");
	return r == 0 ? cdi_check_report_stale(file, &changed, "the driver or its nodes have changed for") : r;
}

static int cdi_check_host(const struct ctr_gpu_cdi_report *report, struct cdi_file *file,
			  const struct ctr_gpu_host *host)
{
	_cleanup_(cdi_spec_clear) struct cdi_spec new = {0};
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *json = NULL;
	int r;

	if (!host)
		return cdi_report_find(file, CDI_ERROR, "stale: this host has no GPU device any more");
	r = cdi_generate_like(report->context, host, &file->spec, &json);
	if (r > 0)
		return cdi_report_find(file, CDI_ERROR, "stale: it could not be written now: %s",
				       report->context->err.text);
	if (r < 0)
		return r;
	text = json_dumps(json, JSON_COMPACT);
	r = text ? cdi_spec_parse("new.json", text, strlen(text), &new) : -ENOMEM;
	return r == 0 ? cdi_check_compare(file, &new) : r;
}

/* ---- check: all of it ---- */

static int cdi_check_file(const struct ctr_gpu_cdi_report *report, struct cdi_file *file,
			  const struct ctr_gpu_host *host, const struct cdi_engine *engine)
{
	const struct cdi_spec *spec = &file->spec;
	int r = 0;

	if (engine && engine->newest < 0)
		r = cdi_report_find(file, CDI_ERROR, "%s %d.%d does not read CDI specs", engine->name, engine->major,
				    engine->minor);
	else if (engine && spec->declared > engine->newest)
		r = cdi_report_find(file, CDI_ERROR, "%s %d.%d knows CDI up to %s, and refuses a spec that says %s%s",
				    engine->name, engine->major, engine->minor, cdi_versions[engine->newest],
				    cdi_versions[spec->declared],
				    spec->needed <= engine->newest ? ", though nothing in it needs that" : "");
	else if (engine && spec->needed > engine->newest)
		r = cdi_report_find(file, CDI_ERROR, "%s %d.%d knows CDI up to %s, and refuses %s", engine->name,
				    engine->major, engine->minor, cdi_versions[engine->newest], spec->needed_for);
	else if (engine && engine->remark)
		r = cdi_report_find(file, CDI_NOTE, "%s", engine->remark);
	if (r == 0)
		r = cdi_check_paths(file);
	if (r == 0)
		r = cdi_check_others(report, file);
	if (r == 0 && file->spec.is_ours)
		r = cdi_check_host(report, file, host);
	else if (r == 0)
		r = cdi_report_find(file, CDI_NOTE,
				    "ctr-gpu did not write it, so whether it matches this host's GPUs was not checked");
	cdi_check_drop_repeated(file);
	return r;
}

int ctr_gpu_cdi_report_check(struct ctr_gpu_cdi_report *report, const struct ctr_gpu_host *host, const char *engine)
{
	struct cdi_engine parsed = {0};
	int r = 0;

	if (engine)
		r = cdi_engine_parse(engine, &parsed, &report->context->err);
	for (size_t i = 0; i < report->file_count && r == 0; i++)
		if (cdi_report_is_loaded(&report->files[i]))
			r = cdi_check_file(report, &report->files[i], host, engine ? &parsed : NULL);
	report->checked = r == 0;
	return r == -ENOMEM ? err_set(&report->context->err, r, "%m") : r;
}

/* What an engine's CDI library knows. Distributions build engines with other libraries at times. */

static const char *cdi_engine_suggest(const char *text, size_t length, char ret[static SUGGESTION_SIZE])
{
	const char *names[ENGINES_MAX];
	char name[ENGINE_NAME_SIZE];
	size_t count = 0;

	(void)snprintf(name, sizeof(name), "%.*s", (int)length, text);
	for (const struct engine *const *engine = engine_list; *engine && count < ENGINES_MAX; engine++)
		if ((*engine)->releases && !streq((*engine)->name, name))
			names[count++] = (*engine)->alias ? (*engine)->alias : (*engine)->name;
	return str_suggest(names, count, name, ret);
}

int cdi_engine_parse(const char *text, struct cdi_engine *ret, struct err *err)
{
	size_t length = strcspn(text, ":");
	const struct engine *known = engine_find(text, length);
	struct cdi_engine engine = {.newest = -1};
	const struct engine_release *release;
	char suggestion[SUGGESTION_SIZE];

	if (!known || !known->releases || text[length] != ':' ||
	    sscanf(text + length + 1 + (text[length + 1] == 'v'), "%4d.%4d", &engine.major, &engine.minor) < 1)
		return err_set_advised(
			err, CTR_GPU_E_BAD_ARGUMENT,
			("\"%.64s\" does not name an engine and its version%s", text,
			 cdi_engine_suggest(text, length, suggestion)),
			("The engines are docker, podman, containerd, cri-o and buildkit; for example podman:4.3."));
	engine.name = known->alias ? known->alias : known->name;
	release = engine_cdi(known, ENGINE_VERSION(engine.major, engine.minor));
	if (release) {
		engine.newest = cdi_spec_version(release->cdi);
		engine.remark = release->remark;
	}
	*ret = engine;
	return 0;
}

/* ---- as text and JSON ---- */

/* A report, for people and programs. */

static const char *const severities[] = {[CDI_ERROR] = "error", [CDI_WARNING] = "warning", [CDI_NOTE] = "note"};

/* Which other file a device comes from, if any. */
static const char *cdi_report_describe(const struct ctr_gpu_cdi_report *report, const struct cdi_file *file,
				       const char *name, const struct cdi_file **ret_other)
{
	const struct cdi_file *conflict, *winner;

	*ret_other = NULL;
	if (!cdi_report_is_loaded(file))
		return "not loaded";
	winner = cdi_report_winner(report, file->spec.kind, name, &conflict);
	if (winner && winner->priority > file->priority)
		return *ret_other = winner, "hidden";
	if (conflict)
		return *ret_other = conflict == file ? winner : conflict, "conflict";
	return "used";
}

static void cdi_report_write_device(const struct ctr_gpu_cdi_report *report, const struct cdi_file *file,
				    const char *name, FILE *out)
{
	const struct cdi_file *other;
	const char *status = cdi_report_describe(report, file, name, &other);

	(void)fputs("    ", out);
	print_write_text(file->spec.kind ? file->spec.kind : "?", out);
	(void)fputc('=', out);
	print_write_text(name, out);
	if (!streq(status, "used"))
		print_safe(out, "  %s", streq(status, "conflict") ? "in conflict with" : status);
	if (streq(status, "hidden"))
		(void)fputs(" by", out);
	if (other) {
		(void)fputc(' ', out);
		print_write_text(other->path, out);
	}
	if (streq(status, "conflict"))
		(void)fputs(", so that engines do not know it", out);
	(void)fputc('\n', out);
}

static void cdi_report_write_finding(enum cdi_severity severity, const char *text, FILE *out)
{
	print_safe(out, "    %s: ", severities[severity]);
	print_write_text(text, out);
	(void)fputc('\n', out);
}

static void cdi_report_write_file(const struct ctr_gpu_cdi_report *report, const struct cdi_file *file, FILE *out)
{
	print_write_text(file->path, out);
	if (file->spec.version) {
		(void)fputs("  CDI ", out);
		print_write_text(file->spec.version, out);
	}
	print_safe(out, "%s%s\n", file->spec.is_yaml ? ", YAML" : "", file->spec.is_ours ? ", written by ctr-gpu" : "");
	for (size_t i = 0; i < file->spec.device_count; i++)
		if (file->spec.devices[i].name)
			cdi_report_write_device(report, file, file->spec.devices[i].name, out);
	for (size_t i = 0; i < file->spec.problems.count; i++)
		cdi_report_write_finding(CDI_ERROR, file->spec.problems.items[i], out);
	for (size_t i = 0; i < file->finding_count; i++)
		cdi_report_write_finding(file->findings[i].severity, file->findings[i].text, out);
}

static json_t *cdi_report_devices_json(const struct ctr_gpu_cdi_report *report, const struct cdi_file *file)
{
	json_t *array = json_array();

	for (size_t i = 0; i < file->spec.device_count; i++) {
		const char *name = file->spec.devices[i].name, *status;
		const struct cdi_file *other;

		if (!name)
			continue;
		status = cdi_report_describe(report, file, name, &other);
		if (json_array_append_new(array, json_pack("{s:o, s:s, s:o}", "name", print_string(name), "status",
							   status, "by", print_string(other ? other->path : NULL))) < 0)
			return json_decref(array), NULL;
	}
	return array;
}

static json_t *cdi_report_findings_json(const struct cdi_file *file)
{
	const size_t problems = file->spec.problems.count;

	return print_array(i, problems + file->finding_count,
			   json_pack("{s:s, s:o}", "severity",
				     severities[i < problems ? CDI_ERROR : file->findings[i - problems].severity],
				     "text",
				     print_string(i < problems ? file->spec.problems.items[i]
							       : file->findings[i - problems].text)));
}

static void cdi_report_write_none(const struct ctr_gpu_cdi_report *report, FILE *file)
{
	(void)fputs("No CDI spec found", file);
	for (size_t i = 0; i < report->directories.count; i++)
		print_safe(file, " %s %s", i > 0 ? "or" : "in", report->directories.items[i]);
	(void)fputs(".\n", file);
	for (size_t i = 0; i < report->directories.count; i++)
		if (streq(report->directories.items[i], PATH_CDI))
			(void)fputs("This writes one for the GPUs of this host: sudo ctr-gpu cdi generate\n", file);
}

int ctr_gpu_cdi_report_write(const struct ctr_gpu_cdi_report *report, enum ctr_gpu_format format, FILE *file)
{
	json_t *files;

	switch (format) {
	case CTR_GPU_FORMAT_TEXT:
		for (size_t i = 0; i < report->file_count; i++)
			cdi_report_write_file(report, &report->files[i], file);
		if (report->file_count == 0)
			cdi_report_write_none(report, file);
		else if (report->checked && ctr_gpu_cdi_report_is_fine(report))
			(void)fputs("No error was found.\n", file);
		return print_finish(file);
	case CTR_GPU_FORMAT_JSON:
		files = print_array(
			i, report->file_count, ({
				const struct cdi_file *e = &report->files[i];
				const struct cdi_spec *spec = &e->spec;
				json_pack("{s:o, s:s, s:o, s:o, s:s, s:b, s:b, s:o, s:o}", "path",
					  print_string(e->path), "format", spec->is_yaml ? "yaml" : "json", "kind",
					  print_string(spec->kind), "cdiVersion", print_string(spec->version),
					  "neededVersion", cdi_versions[spec->needed], "loaded",
					  cdi_report_is_loaded(e), "ours", spec->is_ours, "devices",
					  cdi_report_devices_json(report, e), "findings", cdi_report_findings_json(e));
			}));
		return print_write_json(
			json_pack("{s:o, s:b}", "files", files, "fine", ctr_gpu_cdi_report_is_fine(report)), file);
	case CTR_GPU_FORMAT_CSV:
	case CTR_GPU_FORMAT_PATHS:
		break;
	}
	return -EINVAL;
}
