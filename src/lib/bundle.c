/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/context.h"
#include "oci/ask.h"

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
		return err_set(err, CTR_GPU_E_BAD_STATE, "%s is larger than %d MiB, which no real one is",
			       bundle->config_path, OCI_CONFIG_MAX >> 20);
	if (r == -EINVAL || r == -ENXIO)
		return err_set(err, CTR_GPU_E_BAD_STATE, "%s is not a regular file", bundle->config_path);
	return err_set(err, CTR_GPU_E_BAD_STATE, "the container's configuration %s cannot be read: %m",
		       bundle->config_path);
}

/* Splits @config, which may be a path of its own, into a directory and a name. */
static int bundle_open_config_home(struct ctr_gpu_bundle *bundle, const char *config)
{
	_cleanup_free_ char *above = NULL;
	const char *slash = strrchr(config, '/');

	above = slash ? strndup(config, (size_t)(slash - config) + 1) : strdup(".");
	if (!above || str_format(&bundle->config_name, "/%s", slash ? slash + 1 : config) < 0)
		return -ENOMEM;
	return rootfs_open(bundle->directory, above, &bundle->config_home);
}

static int bundle_open(struct ctr_gpu_bundle *bundle, const char *directory, const char *config)
{
	bool absolute = config[0] == '/';

	if (str_format(&bundle->config_path, "%s%s%s", absolute ? "" : directory, absolute ? "" : "/", config) < 0)
		return -ENOMEM;
	bundle->directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return bundle->directory < 0 ? -errno : bundle_open_config_home(bundle, config);
}

static int bundle_read_tree(struct ctr_gpu_bundle *bundle, struct err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	int r;

	r = fd_read_file_at(bundle->config_home.fd, bundle->config_name + 1, OCI_CONFIG_MAX, &data, &size);
	if (r < 0)
		return bundle_explain(bundle, r, err);
	r = oci_load_config(data, size, &bundle->tree, err);
	return r == 0 ? oci_read_config(bundle->tree, &bundle->config, err) : r;
}

int ctr_gpu_bundle_new(struct ctr_gpu_context *context, const char *directory, const char *config,
		       struct ctr_gpu_bundle **ret_bundle)
{
	_cleanup_bundle_ struct ctr_gpu_bundle *bundle = calloc(1, sizeof(*bundle));
	int r;

	if (!bundle)
		return err_set(&context->err, -ENOMEM, "%m");
	*bundle = (struct ctr_gpu_bundle){.directory = -1, .config_home = ROOTFS_CLOSED};
	r = bundle_open(bundle, directory, config ? config : "config.json");
	if (r < 0)
		return bundle_explain(bundle, r, &context->err);
	r = bundle_read_tree(bundle, &context->err);
	if (r != 0)
		return r;
	*ret_bundle = steal_ptr(bundle);
	return 0;
}

bool ctr_gpu_bundle_may_ask(const char *directory, const char *config)
{
	_cleanup_free_ char *path = NULL, *data = NULL;
	const char *name = config ? config : "config.json";
	size_t size;

	return str_format(&path, "%s%s%s", name[0] == '/' ? "" : directory, name[0] == '/' ? "" : "/", name) == 0 &&
	       fd_read_file_at(AT_FDCWD, path, OCI_CONFIG_MAX, &data, &size) == 0 && ask_is_likely(data, size);
}

int ctr_gpu_bundle_set_hook(struct ctr_gpu_bundle *bundle, const char *path)
{
	return str_replace(&bundle->hook, path);
}
