/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/container.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/context.h"
#include "oci/env_request.h"
#include "process/privilege.h"
#include "system/machine.h"
#include "system/program_output.h"
#include "system/trusted_file.h"

/* ---- bundle ---- */

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

/*
 * bundle_file_may_ask() - whether a config.json that cannot be used has what a container would ask for a GPU by
 *
 * However large it is: what is not read is not known to ask for nothing.
 */
static bool bundle_file_may_ask(const char *path)
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

/* ---- container ---- */

enum { COMMAND_LINE_MAX = 64 * 1024 };

DEFINE_CLEANUP(struct ctr_gpu_container *, ctr_gpu_container_unref)
#define _cleanup_container_ _cleanup_(ctr_gpu_container_unrefp)

struct ctr_gpu_container *ctr_gpu_container_unref(struct ctr_gpu_container *container)
{
	if (!container)
		return NULL;
	cleanup_closep(&container->process);
	free(container->rootfs);
	free(container->record);
	free(container->id);
	free(container->bundle);
	oci_config_clear(&container->config);
	free(container);
	return NULL;
}

static bool container_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* ---- the process ---- */

/* Explains why the process could not be examined: @error. */
static int container_process_error(const struct ctr_gpu_container *container, int error, struct err *err)
{
	if (error == ENOENT || error == ESRCH)
		return err_set(err, -ESRCH, "the container's process %d does not exist", (int)container->pid);
	if (error == EACCES || error == EPERM)
		return err_set_advised(
			err, CTR_GPU_E_NO_PERMISSION,
			("user %d may not enter process %d, which belongs to another user or hides from its owner.",
			 (int)geteuid(), (int)container->pid),
			("Run this as root, or in the user namespace that the container was started from."));
	return err_set(err, -error, "cannot look at process %d: %m", (int)container->pid);
}

static int container_no_procfs(struct err *err)
{
	return err_set_advised(err, CTR_GPU_E_NO_PERMISSION,
			       ("/proc is not a procfs, so the container's process cannot be found."),
			       ("Mount proc there."));
}

/*
 * In a container's pid namespace with the host's /proc, the state's pid would name a process of the host (runc at the
 * stage createContainer).
 */
static int container_check_proc(int process, struct err *err)
{
	char self[16] = "";
	struct statfs fs;

	if (fstatfs(process, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return container_no_procfs(err);
	if (readlink("/proc/self", self, sizeof(self) - 1) < 0 || atoi(self) != (int)getpid())
		return err_set_advised(
			err, CTR_GPU_E_BAD_STATE,
			("/proc belongs to another pid namespace, so the container's process cannot be found."),
			("Run the hook at the stage createRuntime or prestart."));
	return 0;
}

static int container_open_process(struct ctr_gpu_container *container, struct err *err)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)container->pid);
	container->process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (container->process >= 0)
		return container_check_proc(container->process, err);
	/* In the procfs of another pid namespace /proc/self is missing, too. */
	return errno == ENOENT && access("/proc/self", F_OK) < 0 ? container_no_procfs(err)
								 : container_process_error(container, errno, err);
}

int container_check_running(const struct ctr_gpu_container *container, struct err *err)
{
	/* A dead process has no root; a later one of the same number is not found through the old directory. */
	if (container->process >= 0 && faccessat(container->process, "root/", F_OK, 0) < 0)
		return container_process_error(container, errno, err);
	return 0;
}

/* Whether the process has the root directory of this one. */
static int container_compare_roots(struct ctr_gpu_container *container, bool *ret_same, struct err *err)
{
	struct stat root;

	if (stat("/", &container->own_root) < 0)
		return err_set(err, -errno, "cannot stat /: %m");
	if (fstatat(container->process, "root", &root, 0) < 0)
		return container_process_error(container, errno, err);
	*ret_same = container_same_file(&container->own_root, &root);
	return 0;
}

/* Until pivot_root(2) the process has the root of the runtime, and so of its hooks. */
static int container_check_not_started(struct ctr_gpu_container *container, struct err *err)
{
	bool same = false;
	int r = container_compare_roots(container, &same, err);

	if (r != 0 || same)
		return r;
	return err_set_advised(
		err, CTR_GPU_E_CONTAINER_RUNNING,
		("process %d is in its root filesystem already; GPUs can be added only while a container is being "
		 "created.",
		 (int)container->pid),
		("Start it with a hook at the stage createRuntime or prestart."));
}

/* The opposite: there is nothing to add to before. */
static int container_check_started(struct ctr_gpu_container *container, struct err *err)
{
	bool same = false;
	int r = container_compare_roots(container, &same, err);

	if (r != 0 || !same)
		return r;
	return err_set_advised(
		err, CTR_GPU_E_BAD_ARGUMENT,
		("process %d has the root directory of this machine, so it does not belong to a container that runs.",
		 (int)container->pid),
		("Name the container, or its first process as its engine shows it (docker inspect, podman inspect)."));
}

int container_key(const struct ctr_gpu_container *container, char ret[CONTAINER_KEY_SIZE])
{
	return process_key_make(container->pid, container->process, ret);
}

/* A process that shares our mounts does not belong to a container: mounts for it would appear on this machine. */
static int container_check_own_mounts(const struct ctr_gpu_container *container, struct err *err)
{
	struct stat own, its;

	if (stat("/proc/self/ns/mnt", &own) < 0 || fstatat(container->process, "ns/mnt", &its, 0) < 0)
		return container_process_error(container, errno, err);
	if (!container_same_file(&own, &its))
		return 0;
	return err_set_advised(
		err, CTR_GPU_E_BAD_ARGUMENT,
		("process %d is in our own mount namespace, so it does not belong to a container.",
		 (int)container->pid),
		("Name the container's first process, or none to act on %s in this namespace.", container->rootfs));
}

/* ---- permission ---- */

bool container_has_own_user_namespace(const struct ctr_gpu_container *container)
{
	/* The initial user namespace (include/linux/proc_ns.h), which a process in another cannot look at. */
	static const ino_t initial = 0xEFFFFFFDU;
	struct stat own, its;

	return container->process >= 0 && fstatat(container->process, "ns/user", &its, 0) == 0 &&
	       its.st_ino != initial && stat("/proc/self/ns/user", &own) == 0 && !container_same_file(&own, &its);
}

/*
 * Kernels without openat2(2) cannot be tested. A filter of system calls that does not know it answers EPERM: then
 * openat2_open_path() walks.
 */
static int container_check_openat2(struct err *err)
{
	if (syscall(SYS_openat2, -1, NULL, NULL, 0) == 0 || errno != ENOSYS)
		return 0;
	return err_set_advised(err, CTR_GPU_E_KERNEL_TOO_OLD,
			       ("this kernel lacks openat2(2): Linux 5.6 or later is needed."),
			       ("Update the kernel; on WSL: wsl --update."));
}

static int container_check_permission(struct ctr_gpu_container *container, struct err *err)
{
	if (capability_is_effective(CAP_SYS_ADMIN))
		return 0;
	container->enter_user_namespace = container_has_own_user_namespace(container);
	if (container->enter_user_namespace)
		return 0;
	return err_set_advised(
		err, CTR_GPU_E_NO_PERMISSION,
		("user %d may not mount anything here: the capability CAP_SYS_ADMIN is missing.", (int)geteuid()),
		("Run this as root, or in a user namespace of your own (unshare --map-root-user --mount)."));
}

/* ---- the root filesystem ---- */

int container_check_root(struct rootfs *rootfs, const char *path, const struct stat *own_root, struct err *err)
{
	const int flags = AT_EMPTY_PATH | AT_NO_AUTOMOUNT;
	struct stat st, own;
	struct statx stx;

	if (statx(rootfs->fd, "", flags, STATX_INO | STATX_MNT_ID, &stx) < 0 || (!own_root && stat("/", &own) < 0))
		return err_set(err, -errno, "cannot stat %s: %m", path);
	st = (struct stat){.st_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor), .st_ino = stx.stx_ino};
	if (container_same_file(&st, own_root ? own_root : &own))
		return err_set(err, CTR_GPU_E_BAD_ROOTFS,
			       "%s is the root directory of this machine, not of a container", path);
	rootfs->mount = stx.stx_mask & STATX_MNT_ID ? stx.stx_mnt_id : 0;
	return 0;
}

/*
 * The owner of a directory above may replace it by a link to a directory of the host at any time. So links count only
 * where only root or the calling user could have made them.
 */
static int container_follow_links(const struct rootfs *base, const char *root)
{
	_cleanup_free_ char *path = strdup(root);
	_cleanup_close_ int trusted = -1, fd = -1;
	char *end;

	if (!path)
		return -ENOMEM;
	for (end = path + strlen(path); end > path + 1 && end[-1] == '/'; end--)
		end[-1] = '\0';
	fd = rootfs_open_path(base, path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	/* The directory itself may be another user's, in a user namespace. */
	if (fd >= 0)
		strrchr(path, '/')[1] = '\0';
	else
		fd = rootfs_open_path(base, path, O_PATH | O_DIRECTORY);
	trusted = fd < 0 ? fd : trusted_file_open(path, S_IFDIR, geteuid(), O_PATH);
	return trusted < 0 ? (trusted == -EPERM ? -ELOOP : trusted) : steal_fd(&fd);
}

/*
 * @base: what the path counts from; @path: absolute. Return: 0; CTR_GPU_E_BAD_ROOTFS or CTR_GPU_E_KERNEL_TOO_OLD with
 * @err set; negative errno if it cannot be opened.
 */
static int container_find_root(const struct rootfs *base, const char *path, struct rootfs *ret, struct err *err)
{
	int fd = rootfs_open_unlinked(base, path, O_PATH | O_DIRECTORY), r;

	if (fd == -ELOOP && (r = container_check_openat2(err)) != 0)
		return r;
	if (fd == -ELOOP)
		fd = container_follow_links(base, path);
	if (fd == -ELOOP)
		return err_set_advised(
			err, CTR_GPU_E_BAD_ROOTFS,
			("the root filesystem %s is reached by a symlink that others than root could have made.", path),
			("Name the directory itself, without links."));
	if (fd < 0)
		return fd;
	*ret = ROOTFS_CLOSED;
	ret->fd = fd;
	return 0;
}

/*
 * The path counts from the root of the process, not of its mount namespace: a runtime in a chroot gives paths of the
 * chroot.
 */
int container_open_rootfs(const struct ctr_gpu_container *container, struct rootfs *ret, struct err *err)
{
	_cleanup_rootfs_ struct rootfs base = ROOTFS_CLOSED, found = ROOTFS_CLOSED;
	int r;

	if (container->rootfs[0] != '/')
		return err_set_advised(err, CTR_GPU_E_BAD_ROOTFS,
				       ("the root filesystem \"%s\" is not an absolute path", container->rootfs),
				       ("%s", ROOTFS_ADVICE));
	r = container->process < 0 ? rootfs_open(AT_FDCWD, "/", &base)
				   : rootfs_open(container->process, "root/", &base);
	if (r < 0)
		return container_process_error(container, -r, err);
	r = container_find_root(&base, container->rootfs, &found, err);
	if (err_needs_no_context(r))
		return err_set(err, r, "the root filesystem %s cannot be opened: %m", container->rootfs);
	if (r < 0) {
		errno = -r;
		return err_set_advised(err, CTR_GPU_E_BAD_ROOTFS,
				       ("the root filesystem %s cannot be opened: %m", container->rootfs),
				       ("%s", ROOTFS_ADVICE));
	}
	if (r == 0)
		r = container_check_root(&found, container->rootfs,
					 container->process < 0 ? NULL : &container->own_root, err);
	if (r != 0)
		return r;
	*ret = found;
	found = ROOTFS_CLOSED;
	return 0;
}

int container_check(struct ctr_gpu_container *container, struct err *err)
{
	int r = 0;

	if (container->checked)
		return 0;
	if (container->process >= 0)
		r = container_check_own_mounts(container, err);
	if (r == 0 && container->process >= 0)
		r = (container->running ? container_check_started : container_check_not_started)(container, err);
	if (r == 0)
		r = container_check_permission(container, err);
	container->checked = r == 0;
	return r;
}

/* ---- the object ---- */

static int container_new(struct ctr_gpu_context *context, pid_t pid, const char *rootfs, struct ctr_gpu_container **ret)
{
	_cleanup_container_ struct ctr_gpu_container *container = NULL;
	struct err *err = &context->err;
	int r;

	container = calloc(1, sizeof(*container));
	if (!container)
		return err_set(err, -ENOMEM, "%m");
	*container = (struct ctr_gpu_container){.pid = pid, .process = -1, .rootfs = strdup(rootfs)};
	if (!container->rootfs)
		return err_set(err, -ENOMEM, "%m");
	r = pid ? container_open_process(container, err) : 0;
	if (r == 0)
		*ret = steal_ptr(container);
	return r;
}

/* The bundle's own directory is the one that config.json was read from, whatever has its path by now. */
int container_open_bundle_root(const struct ctr_gpu_bundle *bundle, struct rootfs *ret, struct err *err)
{
	_cleanup_rootfs_ struct rootfs base = ROOTFS_CLOSED;
	_cleanup_free_ char *directory = NULL, *path = NULL;
	const char *root = bundle->config.root;
	char link[32];
	int r;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", bundle->directory);
	r = root[0] == '/' ? 0 : fd_read_link_at(AT_FDCWD, link, &directory);
	if (r == 0)
		r = str_format(&path, "%s%s%s", directory ? directory : "", directory ? "/" : "", root);
	if (r == 0)
		r = rootfs_open(AT_FDCWD, "/", &base);
	return r < 0 ? r : container_find_root(&base, path, ret, err);
}

int ctr_gpu_container_new(struct ctr_gpu_context *context, pid_t pid, const char *rootfs,
			  struct ctr_gpu_container **ret_container)
{
	_cleanup_container_ struct ctr_gpu_container *container = NULL;
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	int r;

	if (pid < 0)
		return err_set(&context->err, CTR_GPU_E_BAD_ARGUMENT, "%d is not the number of a process", (int)pid);
	r = container_new(context, pid, rootfs, &container);
	if (r == 0)
		r = container_check(container, &context->err);
	/* Finds faults now; a container made from a state is opened when a plan is applied. */
	if (r == 0)
		r = container_open_rootfs(container, &root, &context->err);
	if (r == 0)
		*ret_container = steal_ptr(container);
	return r;
}

int ctr_gpu_container_new_running(struct ctr_gpu_context *context, pid_t pid, struct ctr_gpu_container **ret_container)
{
	_cleanup_container_ struct ctr_gpu_container *container = NULL;
	int r;

	if (pid <= 0)
		return err_set(&context->err, CTR_GPU_E_BAD_ARGUMENT, "%d is not the number of a process", (int)pid);
	r = container_new(context, pid, "/", &container);
	if (r != 0)
		return r;
	container->running = true;
	r = container_check(container, &context->err);
	if (r == 0)
		*ret_container = steal_ptr(container);
	return r;
}

/* The config.json of a bundle as bytes. Return: 0; negative errno. */
static int container_read_config_text(const char *bundle, char **ret_path, char **ret_data, size_t *ret_size)
{
	int r = str_format(ret_path, "%s/config.json", bundle);

	return r < 0 ? r : fd_read_untrusted_at(AT_FDCWD, *ret_path, OCI_CONFIG_MAX, ret_data, ret_size);
}

/*
 * The bundle on the command line of our parent, the runtime. crun tells its hooks its working directory instead, and
 * that is "/" once it has been in another mount namespace (a user namespace and --device). Return: absolute path; NULL.
 */
static char *container_find_bundle(void)
{
	_cleanup_free_ char *path = NULL, *data = NULL;
	const char *word, *value = NULL;
	size_t size;

	if (str_format(&path, "/proc/%d/cmdline", (int)getppid()) < 0 ||
	    fd_read_file_at(AT_FDCWD, path, COMMAND_LINE_MAX, &data, &size) < 0)
		return NULL;
	for (word = data; !value && word < data + size; word += strlen(word) + 1) {
		if (streq(word, "--bundle") || streq(word, "-b") || streq(word, "-bundle"))
			value = word + strlen(word) + 1;
		else if (str_has_prefix(word, "--bundle="))
			value = word + strlen("--bundle=");
	}
	return value && value < data + size && value[0] == '/' ? strdup(value) : NULL;
}

bool ctr_gpu_state_may_ask(const char *state, size_t size)
{
	_cleanup_(oci_state_clear) struct oci_state parsed = {0};
	_cleanup_free_ char *path = NULL;

	if (oci_parse_state_inside(state, size, &parsed, NULL) != 0 || streq(parsed.bundle, "/")) {
		free(parsed.bundle);
		parsed.bundle = container_find_bundle();
	}
	return parsed.bundle && str_format(&path, "%s/config.json", parsed.bundle) == 0 && bundle_file_may_ask(path);
}

/* @pid: used instead of the state's */
static int container_new_from_state(struct ctr_gpu_context *context, struct oci_state *state, pid_t pid,
				    struct ctr_gpu_container **ret_container)
{
	_cleanup_(oci_config_clear) struct oci_config config = {0};
	_cleanup_free_ char *rootfs = NULL, *path = NULL, *data = NULL;
	struct ctr_gpu_container *container;
	size_t size;
	int r;

	if (streq(state->bundle, "/")) {
		char *bundle = container_find_bundle();

		if (bundle) {
			free(state->bundle);
			state->bundle = bundle;
		}
	}
	r = container_read_config_text(state->bundle, &path, &data, &size);
	if (r == -ENOMEM)
		return err_set(&context->err, r, "%m");
	if (r == -EFBIG)
		return err_set(&context->err, CTR_GPU_E_BAD_STATE, "%s is larger than %d MiB; no real one is", path,
			       OCI_CONFIG_MAX >> 20);
	if (r < 0) {
		errno = -r;
		return err_set(&context->err, CTR_GPU_E_BAD_STATE,
			       "the container's configuration %s cannot be read: %m", path);
	}
	r = oci_parse_config(data, size, &config, &context->err);
	if (r != 0)
		return r;
	r = config.root[0] == '/' ? str_format(&rootfs, "%s", config.root)
				  : str_format(&rootfs, "%s/%s", state->bundle, config.root);
	if (r < 0)
		return err_set(&context->err, r, "%m");
	r = container_new(context, pid, rootfs, &container);
	if (r != 0)
		return r;
	container->config = steal_struct(&config);
	container->id = steal_ptr(state->id);
	container->bundle = steal_ptr(state->bundle);
	*ret_container = container;
	return 0;
}

int ctr_gpu_container_new_from_state(struct ctr_gpu_context *context, const char *state, size_t size,
				     struct ctr_gpu_container **ret_container)
{
	_cleanup_(oci_state_clear) struct oci_state parsed = {0};
	int r;

	r = oci_parse_state(state, size, &parsed, &context->err);
	return r == 0 ? container_new_from_state(context, &parsed, parsed.pid, ret_container) : r;
}

/*
 * At the stage createContainer a hook is a child of the container's first process, whose pid the state gives as that
 * process sees itself (runc) or not at all (crun). Any other process is one whose namespaces must be entered.
 */
int container_new_inside(struct ctr_gpu_context *context, const char *state, size_t size,
			 struct ctr_gpu_container **ret)
{
	_cleanup_(oci_state_clear) struct oci_state parsed = {0};
	int r;

	r = oci_parse_state_inside(state, size, &parsed, &context->err);
	if (r != 0)
		return r;
	r = container_new_from_state(context, &parsed, parsed.pid == context_caller(context) ? 0 : parsed.pid, ret);
	if (r == 0)
		(*ret)->inside = !(*ret)->pid;
	return r;
}

bool ctr_gpu_container_asks(const struct ctr_gpu_container *container)
{
	const struct env_request env = env_request_of_config(&container->config);

	return env_request_is_something(&env);
}

/* A hook that config.json does not list, as when it is run by hand, acts as the first. */
static bool container_is_first_hook(const struct ctr_gpu_container *container, const char *const *arguments)
{
	for (size_t i = 0; i < container->config.hook_count; i++) {
		const struct strv *its = &container->config.hooks[i].arguments;
		size_t same = 0;

		while (same < its->count && arguments[same] && streq(its->items[same], arguments[same]))
			same++;
		if (same == its->count && !arguments[same])
			return i == 0;
	}
	return true;
}

int ctr_gpu_container_hook_devices(const struct ctr_gpu_container *container, const char *const *arguments,
				   char **ret_devices)
{
	_cleanup_strv_ struct strv devices = {0};
	int r;

	if (!container_is_first_hook(container, arguments)) {
		*ret_devices = NULL;
		return 0;
	}
	r = oci_hook_devices(arguments, &devices);
	for (size_t i = 0; i < container->config.hook_count && r == 0; i++)
		r = oci_hook_devices((const char *const *)container->config.hooks[i].arguments.items, &devices);
	return r == 0 ? strv_join(&devices, ",", ret_devices) : r;
}

int ctr_gpu_container_set_record(struct ctr_gpu_container *container, const char *directory)
{
	return str_replace(&container->record, directory);
}

void ctr_gpu_container_leave_cgroup(struct ctr_gpu_container *container)
{
	container->leave_cgroup = true;
}

void ctr_gpu_container_leave_devices(struct ctr_gpu_container *container)
{
	container->leave_devices = true;
}
