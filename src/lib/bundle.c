/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/context.h"
#include "oci/env_request.h"
#include "system/program_output.h"

DEFINE_CLEANUP(struct ctr_gpu_bundle *, ctr_gpu_bundle_unref)
#define _cleanup_bundle_ _cleanup_(ctr_gpu_bundle_unrefp)

struct ctr_gpu_bundle *ctr_gpu_bundle_unref(struct ctr_gpu_bundle *bundle)
{
	if (!bundle)
		return NULL;
	cleanup_closep(&bundle->directory);
	rootfs_close(&bundle->config_home);
	free(bundle->config_name);
	free(bundle->config_path);
	free(bundle->data);
	json_decref(bundle->tree);
	oci_config_clear(&bundle->config);
	free(bundle->hook);
	free(bundle);
	return NULL;
}

static int bundle_explain(const struct ctr_gpu_bundle *bundle, int r, struct err *err)
{
	errno = -r;
	if (r == -ENOENT || r == -ENOMEM)
		return err_set(err, r, "%s: %m", bundle->config_path);
	if (r == -EFBIG)
		return err_set(err, CTR_GPU_E_BAD_STATE, "%s is larger than %d MiB; no real one is",
			       bundle->config_path, OCI_CONFIG_MAX >> 20);
	if (r == -EINVAL || r == -ENXIO)
		return err_set(err, CTR_GPU_E_BAD_STATE, "%s is not a regular file", bundle->config_path);
	return err_set(err, CTR_GPU_E_BAD_STATE, "the container's configuration %s cannot be read: %m",
		       bundle->config_path);
}

int ctr_gpu_bundle_new(struct ctr_gpu_context *context, const char *directory, const char *config,
		       struct ctr_gpu_bundle **ret_bundle)
{
	_cleanup_bundle_ struct ctr_gpu_bundle *bundle = NULL;
	const char *name = config ? config : "config.json", *slash = strrchr(name, '/');
	_cleanup_free_ char *above = NULL;
	bool absolute = name[0] == '/';
	size_t size;
	int r;

	/* The path may be of its own: a directory, and a name in it. */
	above = slash ? strndup(name, (size_t)(slash - name) + 1) : strdup(".");
	if (above)
		bundle = malloc(sizeof(*bundle));
	if (!bundle)
		return err_set(&context->err, -ENOMEM, "%m");
	*bundle = (struct ctr_gpu_bundle){.directory = -1, .config_home = ROOTFS_CLOSED};
	if (str_format(&bundle->config_path, "%s%s%s", absolute ? "" : directory, absolute ? "" : "/", name) < 0 ||
	    str_format(&bundle->config_name, "/%s", slash ? slash + 1 : name) < 0)
		return err_set(&context->err, -ENOMEM, "%m");
	bundle->directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = bundle->directory < 0 ? -errno : rootfs_open(bundle->directory, above, &bundle->config_home);
	if (r == 0)
		r = fd_read_untrusted_at(bundle->config_home.fd, bundle->config_name + 1, OCI_CONFIG_MAX, &bundle->data,
					 &size);
	if (r != 0)
		return bundle_explain(bundle, r, &context->err);
	r = oci_load_config(bundle->data, size, &bundle->tree, &context->err);
	if (r == 0)
		r = oci_read_config(bundle->tree, &bundle->config, &context->err);
	if (r != 0)
		return r;
	*ret_bundle = steal_ptr(bundle);
	return 0;
}

/* Fills what is left of a buffer. Return: how much there is in it then; less than @max at the file's end. */
static size_t bundle_read_on(int fd, char *data, size_t size, size_t max)
{
	ssize_t part = 1;

	while (size < max && (part > 0 || (part < 0 && errno == EINTR))) {
		part = read(fd, data + size, max - size);
		size += part > 0 ? (size_t)part : 0;
	}
	return size;
}

bool bundle_file_may_ask(const char *path)
{
	_cleanup_close_ int fd = fd_open_file_at(AT_FDCWD, path, 0);
	_cleanup_free_ char *data = fd < 0 ? NULL : buffer_new(OCI_CONFIG_MAX);
	size_t size = 0, whole;

	while (data && (size = bundle_read_on(fd, data, size, OCI_CONFIG_MAX)) == OCI_CONFIG_MAX) {
		const char *quote = memrchr(data, '"', size);

		/* A string that is cut in two is looked at with what follows, unless it fills most of the buffer. */
		whole = quote && quote > data + size / 2 ? (size_t)(quote - data) : size;
		/* The quote is the last of one string or the first of another. */
		if (env_request_is_likely(data, whole < size ? whole + 1 : size))
			return true;
		memmove(data, data + whole, size - whole);
		size -= whole;
	}
	return data && env_request_is_likely(data, size);
}

bool ctr_gpu_bundle_may_ask(const char *directory, const char *config)
{
	_cleanup_free_ char *path = NULL;
	const char *name = config ? config : "config.json";

	return str_format(&path, "%s%s%s", name[0] == '/' ? "" : directory, name[0] == '/' ? "" : "/", name) == 0 &&
	       bundle_file_may_ask(path);
}

int ctr_gpu_bundle_set_hook(struct ctr_gpu_bundle *bundle, const char *path)
{
	return str_replace(&bundle->hook, path);
}

/* Without root a runtime makes only what its user may, and its user's files are as they like. */
void ctr_gpu_bundle_set_runtime(struct ctr_gpu_bundle *bundle, const char *path)
{
	bundle->makes_mounts = geteuid() != 0 || oci_runtime_holds_places(path);
}
