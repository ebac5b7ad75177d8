/* SPDX-License-Identifier: Apache-2.0 */

/* Specs as files: written whole or not at all, and taken away when what they are about is gone. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/print.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cdi/report.h"
#include "cdi/spec.h"
#include "ctr-gpu.h"
#include "lib/context.h"
#include "root/atomic_file.h"

/* ---- which kind, and where ---- */

static int cdi_save_check_kind(struct err *err, const char *kind)
{
	if (cdi_is_kind(kind))
		return 0;
	return err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT, ("\"%.128s\" is not a kind of CDI devices", kind),
			       ("A kind is VENDOR/CLASS, such as nvidia.com/gpu."));
}

static int cdi_save_find_path(struct err *err, const char *kind, const char *path, char **ret)
{
	_cleanup_free_ char *name = NULL;
	size_t length = strlen(path);
	struct stat st;

	if (path[length - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode))) {
		if (cdi_file_name(kind, &name) < 0)
			return -ENOMEM;
		return str_format(ret, "%s%s%s", path, path[length - 1] == '/' ? "" : "/", name);
	}
	if (length < strlen(".json") || !streq(path + length - strlen(".json"), ".json"))
		return err_set_advised(
			err, CTR_GPU_E_BAD_ARGUMENT,
			("\"%.256s\" is neither a directory nor named *.json: engines would not read it", path),
			("Give the name of a directory with a slash behind it if it does not exist yet."));
	return str_format(ret, "%s", path);
}

/* ---- writing ---- */

/* Engines look at the directory again whenever a file in it changes. */
static bool cdi_save_is_there(const char *path, const char *text, size_t size)
{
	_cleanup_free_ char *old = NULL;
	size_t old_size;
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0644 &&
	       fd_read_file_at(AT_FDCWD, path, CDI_FILE_MAX, &old, &old_size) == 0 && old_size == size &&
	       memcmp(old, text, size) == 0;
}

/* Engines read files that end in .json or .yaml, so they do not see this one before it has its name. */
static int cdi_save_write(int directory, const char *name, const char *text, size_t size)
{
	char temporary[ATOMIC_FILE_SIZE];
	_cleanup_close_ int fd = atomic_file_open(-1, directory, 0600, temporary, NULL);
	int r;

	if (fd < 0)
		return fd;
	r = fd_write_all(fd, text, size);
	if (r == 0 && (fchmod(fd, 0644) < 0 || fsync(fd) < 0 || renameat(directory, temporary, directory, name) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(directory, temporary, 0);
	return r;
}

/* /etc/cdi is not there on most machines; its parents are. */
static int cdi_save_replace(const char *path, const char *text, size_t size)
{
	const char *name = strrchr(path, '/') + 1;
	_cleanup_free_ char *directory = strndup(path, (size_t)(name - path));
	_cleanup_close_ int parent = -1;
	bool made;
	int r;

	if (!directory)
		return -ENOMEM;
	made = mkdir(directory, 0755) == 0;
	if (!made && errno != EEXIST)
		return -errno;
	parent = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = parent < 0 ? -errno : cdi_save_write(parent, name, text, size);
	if (r < 0 && made)
		(void)rmdir(directory);
	return r;
}

/*
 * Writes a spec, whole or not at all, unless the file says the same; takes @spec.
 * Return: 0; negative errno, @err set.
 */
static int cdi_save(struct err *err, const char *path, json_t *spec)
{
	_cleanup_free_ char *text = NULL, *directory = NULL;
	struct memstream stream;
	size_t size = 0;
	int r;

	if (!memstream_open(&stream)) {
		json_decref(spec);
		return -ENOMEM;
	}
	r = print_write_json(spec, stream.file);
	if (memstream_close(&stream, &text, &size) < 0 || r < 0)
		return -ENOMEM;
	if (cdi_save_is_there(path, text, size))
		return 0;
	r = cdi_save_replace(path, text, size);
	if (r == -EACCES || r == -EPERM)
		return err_set_advised(err, CTR_GPU_E_NO_PERMISSION, ("user %d may not write %s", (int)geteuid(), path),
				       ("Run this as root; ctr-gpu cdi generate can write elsewhere (--output)."));
	directory = strndup(path, (size_t)(strrchr(path, '/') + 1 - path));
	if (r == -ENOENT && directory && access(directory, F_OK) < 0)
		return err_set_advised(err, r, ("cannot write %s: the directory above it is missing", path),
				       ("Make it first: mkdir -p %s", directory));
	return r < 0 ? err_set(err, r, "cannot write %s, which stays as it was: %m", path) : 0;
}

/*
 * Engines know none of the devices that two files of a directory have. Faults of the other files do not matter here,
 * nor does a lack of memory: the spec is written.
 */
static void cdi_save_warn_of_others(struct ctr_gpu_context *context, const char *path)
{
	_cleanup_free_ char *directory = strndup(path, (size_t)(strrchr(path, '/') - path));
	_cleanup_strv_ struct strv told = {0};
	struct ctr_gpu_cdi_report *report;

	if (!directory || ctr_gpu_cdi_report_new(context, &report) < 0)
		return;
	(void)ctr_gpu_cdi_report_read_directory(report, *directory ? directory : "/");
	for (size_t i = 0; i < report->file_count; i++) {
		const struct cdi_file *file = &report->files[i], *winner, *other;

		for (size_t j = 0; streq(file->path, path) && j < file->spec.device_count; j++) {
			winner = cdi_report_winner(report, file->spec.kind, file->spec.devices[j].name, &other);
			if (!winner || !other)
				continue;
			other = other == file ? winner : other;
			if (strv_contains(&told, other->path))
				continue;
			log_warning(
				&context->settings.log,
				"%s has devices of the same names, so that engines know neither; remove one of the two",
				other->path);
			(void)strv_add(&told, other->path);
		}
	}
	ctr_gpu_cdi_report_unref(report);
}

/* ---- taking away ---- */

/* A kind for whose adapters this program chooses the name of a file; NPUs come and go with their drivers. */
static bool cdi_save_is_known_kind(const char *kind)
{
	size_t vendor = strcspn(kind, "/");

	return streq(kind, DEVICE_NAME_VCUDA_KIND) || streq(kind, DEVICE_NAME_SLOT_KIND) ||
	       (adapter_find_domain(kind, vendor) && streq(kind + vendor, "/gpu"));
}

/* Only a file that this program names and writes, of a vendor whose adapters it lists. */
static bool cdi_save_is_stale(int directory, const char *name, const struct strv *kinds)
{
	_cleanup_(cdi_spec_clear) struct cdi_spec spec = {0};
	_cleanup_free_ char *expected = NULL, *data = NULL;
	struct stat st;
	size_t size;

	if (!str_has_prefix(name, CDI_FILE_PREFIX) || fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode) || fd_read_file_at(directory, name, CDI_FILE_MAX, &data, &size) < 0 ||
	    cdi_spec_parse(name, data, size, &spec) < 0)
		return false;
	if (!spec.is_ours || !spec.kind || !cdi_save_is_known_kind(spec.kind) || strv_contains(kinds, spec.kind))
		return false;
	return cdi_file_name(spec.kind, &expected) == 0 && streq(expected, name);
}

int ctr_gpu_cdi_remove_stale(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const char *directory,
			     char **ret_removed)
{
	_cleanup_strv_ struct strv kinds = {0}, removed = {0};
	const struct dirent *entry;
	_cleanup_dir_ DIR *stream = opendir(directory);
	int r = 0;

	if (!stream && errno == EACCES)
		return err_set_advised(&context->err, -errno, ("cannot read the directory %s: %m", directory),
				       ("Check its permissions."));
	if (!stream && errno != ENOENT)
		return err_set(&context->err, -errno, "cannot read the directory %s: %m", directory);
	r = host ? cdi_kinds(host, &kinds) : 0;
	while (stream && r == 0 && (entry = readdir(stream))) {
		if (!cdi_save_is_stale(directory_fd(stream), entry->d_name, &kinds))
			continue;
		if (unlinkat(directory_fd(stream), entry->d_name, 0) < 0)
			r = err_set(&context->err, -errno, "cannot remove %s/%s, which is stale: %m", directory,
				    entry->d_name);
		else
			r = strv_add(&removed, entry->d_name);
	}
	return r == 0 ? strv_join(&removed, "\n", ret_removed) : r;
}

/* ---- public ---- */

int ctr_gpu_cdi_kinds(const struct ctr_gpu_host *host, char **ret_kinds)
{
	_cleanup_strv_ struct strv kinds = {0};
	int r;

	r = cdi_kinds(host, &kinds);
	return r == 0 ? strv_join(&kinds, ",", ret_kinds) : r;
}

static int cdi_save_generate(struct ctr_gpu_context *context, const struct ctr_gpu_host *host,
			     const struct ctr_gpu_request *request, const char *kind, const char *hook, json_t **ret)
{
	const struct cdi_options options = {.kind = kind, .hook = hook, .request = &request->data};
	int r;

	r = cdi_save_check_kind(&context->err, kind);
	if (r == 0 && hook && hook[0] != '/')
		r = err_set(&context->err, CTR_GPU_E_BAD_ARGUMENT,
			    "the hook is named by an absolute path, not \"%.128s\"", hook);
	return r == 0 ? cdi_generate(context, host, &options, ret) : r;
}

int ctr_gpu_cdi_write(struct ctr_gpu_context *context, const struct ctr_gpu_host *host,
		      const struct ctr_gpu_request *request, const char *kind, const char *hook, FILE *file)
{
	json_t *spec;
	int r;

	r = cdi_save_generate(context, host, request, kind, hook, &spec);
	return r == 0 ? print_write_json(spec, file) : r;
}

int ctr_gpu_cdi_path(struct ctr_gpu_context *context, const char *kind, const char *path, char **ret_path)
{
	int r;

	if (path[0] != '/')
		return err_set(&context->err, CTR_GPU_E_BAD_ARGUMENT,
			       "a spec is written to an absolute path, not \"%.128s\"", path);
	r = cdi_save_check_kind(&context->err, kind);
	return r == 0 ? cdi_save_find_path(&context->err, kind, path, ret_path) : r;
}

int ctr_gpu_cdi_save(struct ctr_gpu_context *context, const struct ctr_gpu_host *host,
		     const struct ctr_gpu_request *request, const char *kind, const char *hook, const char *path,
		     char **ret_path)
{
	_cleanup_free_ char *file = NULL;
	json_t *spec;
	int r;

	r = ctr_gpu_cdi_path(context, kind, path, &file);
	if (r == 0)
		r = cdi_save_generate(context, host, request, kind, hook, &spec);
	if (r == 0)
		r = cdi_save(&context->err, file, spec);
	if (r != 0)
		return r;
	cdi_save_warn_of_others(context, file);
	*ret_path = steal_ptr(file);
	return 0;
}

/* ---- refresh ---- */

/* Brings the specs in a directory up to date. Correct ones are not touched. */

/* Hooks and capabilities stay as in the old spec: its author chose them. */
static int cdi_refresh_generate(struct ctr_gpu_context *context, const struct ctr_gpu_host *host,
				const struct ctr_gpu_cdi_report *report, const char *kind, const char *hook,
				json_t **ret)
{
	struct request request = {.kind = REQUEST_ALL};
	const struct cdi_options options = {.kind = kind, .hook = hook, .request = &request};
	const struct cdi_spec *old = report->file_count > 0 ? &report->files[0].spec : NULL;
	int r;

	if (old && old->kind && streq(old->kind, kind) && old->device_count > 0)
		return cdi_generate_like(context, host, old, ret);
	r = request_set_capabilities(&request, "", &context->err);
	return r == 0 ? cdi_generate(context, host, &options, ret) : r;
}

/* Another program's spec under our name stays. Where a file was cut off, engines read nothing of it. */
static bool cdi_refresh_replaces(const struct ctr_gpu_cdi_report *report)
{
	const struct cdi_spec *old = report->file_count > 0 ? &report->files[0].spec : NULL;

	return !old || old->is_ours || (!old->version && !old->kind && old->device_count == 0);
}

static int cdi_refresh_all(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const char *path,
			   const char *kind, const char *hook)
{
	struct ctr_gpu_cdi_report *report = NULL;
	json_t *spec;
	int r;

	r = ctr_gpu_cdi_report_new(context, &report);
	if (r == 0 && access(path, F_OK) == 0)
		r = ctr_gpu_cdi_report_read_file(report, path);
	if (r == 0)
		r = ctr_gpu_cdi_report_check(report, host, NULL);
	if (r == 0 && !ctr_gpu_cdi_report_is_fine(report) && cdi_refresh_replaces(report)) {
		r = cdi_refresh_generate(context, host, report, kind, hook, &spec);
		if (r == 0)
			r = cdi_save(&context->err, path, spec);
	}
	ctr_gpu_cdi_report_unref(report);
	return r;
}

int ctr_gpu_cdi_refresh(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const char *directory,
			const char *hook)
{
	_cleanup_free_ char *removed = NULL;
	_cleanup_strv_ struct strv kinds = {0};
	int r;

	r = ctr_gpu_cdi_remove_stale(context, host, directory, &removed);
	if (r == 0 && host)
		r = cdi_kinds(host, &kinds);
	for (size_t i = 0; i < kinds.count && r == 0; i++) {
		_cleanup_free_ char *name = NULL, *path = NULL;

		if (cdi_file_name(kinds.items[i], &name) < 0 || str_format(&path, "%s/%s", directory, name) < 0)
			return -ENOMEM;
		r = cdi_refresh_all(context, host, path, kinds.items[i], hook);
	}
	return r;
}
