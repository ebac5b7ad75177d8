/* SPDX-License-Identifier: Apache-2.0 */

/* Does the steps. Modules come first: once they are loaded, the missing nodes are known. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "model/backend.h"
#include "nvidia/internal.h"

static bool load_is_pending(const struct load_step *step)
{
	return step->state == LOAD_MISSING || step->state == LOAD_WRONG;
}

/* ---- modules ---- */

static int load_apply_modules(const struct load_host *host, const struct load_options *options, struct load *load,
			      struct err *err)
{
	_cleanup_strv_ struct strv loaded = {0};
	_cleanup_load_ struct load before = {0};
	int r = 0;

	for (size_t i = 0; i < load->count && r == 0; i++) {
		const struct load_step *step = &load->steps[i];

		if (step->kind != LOAD_MODULE || step->state != LOAD_MISSING)
			continue;
		r = program_modprobe(host->programs, options->driver_root, step->name, err);
		if (r == 0)
			r = strv_add(&loaded, step->name);
	}
	if (r != 0 || loaded.count == 0)
		return r;
	before = steal_struct(load);
	r = load_decide(host, options, load, err);
	for (size_t i = 0; i < load->count && r == 0; i++) {
		struct load_step *step = &load->steps[i];

		if (step->kind != LOAD_MODULE || !strv_contains(&loaded, step->name))
			continue;
		/*
		 * modprobe succeeds, too, where /etc/modprobe.d has it do something else ("install nvidia /bin/true").
		 */
		if (step->state == LOAD_MISSING)
			return err_set_advised(
				err, CTR_GPU_E_KERNEL_MODULE,
				("modprobe %s said nothing, and the module is not loaded all the same", step->name),
				("A file in /etc/modprobe.d may forbid it: modprobe --showconfig | grep nvidia"));
		step->state = LOAD_DONE;
	}
	return r;
}

/* ---- nodes ---- */

static int load_make(int parent, const char *name, const struct load_step *step)
{
	bool node = step->kind == LOAD_NODE;
	int r;

	if ((node ? mknodat(parent, name, S_IFCHR | 0600, step->number) : mkdirat(parent, name, step->mode)) < 0)
		return -errno;
	if ((!node || fchownat(parent, name, step->uid, step->gid, AT_SYMLINK_NOFOLLOW) == 0) &&
	    fchmodat(parent, name, step->mode, 0) == 0)
		return 0;
	r = -errno;
	(void)unlinkat(parent, name, node ? 0 : AT_REMOVEDIR);
	return r;
}

/*
 * The node gets its mode under a temporary name and is then renamed. So no process sees it with a wrong mode, and a
 * node that it replaces is there until then.
 */
static int load_apply_step(const struct load_step *step)
{
	const char *name = strrchr(step->name, '/') + 1;
	_cleanup_free_ char *temporary = NULL, *directory = strndup(step->name, (size_t)(name - step->name));
	_cleanup_close_ int parent = -1;
	unsigned random;
	int r;

	if (!directory)
		return -ENOMEM;
	/* A symlink in the directory's place must not lead elsewhere: O_NOFOLLOW. */
	if (name - step->name > 1)
		directory[name - step->name - 1] = '\0';
	parent = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (parent < 0)
		return -errno;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	if (str_format(&temporary, ".ctr-gpu-%08x", random) < 0)
		return -ENOMEM;
	r = load_make(parent, temporary, step);
	if (r < 0)
		return r;
	/* A file gives way to a node, a file or a node to a directory only when it is gone. */
	if (step->state == LOAD_WRONG && step->kind == LOAD_DIRECTORY)
		(void)unlinkat(parent, name, 0);
	if (renameat2(parent, temporary, parent, name, step->state == LOAD_MISSING ? RENAME_NOREPLACE : 0) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(parent, temporary, step->kind == LOAD_NODE ? 0 : AT_REMOVEDIR);
	return r;
}

static int load_apply_error(const struct load_step *step, int r, struct err *err)
{
	r = err_set(err, r, "cannot make %s: %m", step->name);
	return r == -EPERM ? err_advise(err, r, "In a user namespace the kernel lets no process make device nodes.")
			   : r;
}

static int load_apply_files(struct load *load, struct err *err)
{
	for (size_t i = 0; i < load->count; i++) {
		struct load_step *step = &load->steps[i];
		struct stat st;
		int r;

		if (step->kind == LOAD_MODULE || !load_is_pending(step))
			continue;
		r = load_apply_step(step);
		/* udev or another run may have been faster; then it is what was wanted, or an error. */
		if (r == -EEXIST && lstat(step->name, &st) == 0 &&
		    (step->kind == LOAD_NODE ? S_ISCHR(st.st_mode) && st.st_rdev == step->number
					     : S_ISDIR(st.st_mode))) {
			step->state = LOAD_THERE;
			continue;
		}
		if (r < 0)
			return load_apply_error(step, r, err);
		step->state = LOAD_DONE;
	}
	return 0;
}

/* Whether the kernel has SELinux, and the machine what knows its policy's labels. */
static bool load_has_labels(const struct load_host *host, const char *restorecon)
{
	_cleanup_free_ char *path = NULL;

	return restorecon && str_format(&path, "%s/fs/selinux/enforce", host->sys) == 0 && access(path, F_OK) == 0;
}

/*
 * What udev makes has the label that SELinux's policy has for it; what we made has the directory's, and no container
 * may use it. Without the label the nodes are there all the same: doctor says what they lack.
 */
static void load_label_files(const struct load_host *host, const struct load *load)
{
	_cleanup_free_ char *restorecon = program_find(host->programs, "restorecon");
	_cleanup_free_ const char **arguments = calloc(load->count + 3, sizeof(*arguments));
	_cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	size_t count = 0;
	pid_t pid;

	if (!arguments || null < 0 || !load_has_labels(host, restorecon))
		return;
	arguments[count++] = restorecon;
	arguments[count++] = "--";
	for (size_t i = 0; i < load->count; i++)
		if (load->steps[i].kind != LOAD_MODULE && load->steps[i].state == LOAD_DONE)
			arguments[count++] = load->steps[i].name;
	if (count > 2 && program_spawn(restorecon, (char *const *)arguments, null, &pid) == 0)
		(void)program_wait(pid);
}

int load_apply(const struct load_host *host, const struct load_options *options, struct load *load, struct err *err)
{
	bool pending = false;
	int r;

	for (size_t i = 0; i < load->count; i++)
		pending = pending || load_is_pending(&load->steps[i]);
	if (!pending)
		return 0;
	if (geteuid() != 0)
		return err_set_advised(err, CTR_GPU_E_NO_PERMISSION,
				       ("only root may load kernel modules and make device nodes"),
				       ("ctr-gpu load --dry-run shows what is missing."));
	r = load_apply_modules(host, options, load, err);
	if (r == 0)
		r = load_apply_files(load, err);
	load_label_files(host, load);
	return r;
}

/* ---- this host ---- */

static const struct load_host this_host = {
	.proc = "/proc", .sys = "/sys", .dev = "/dev", .programs = "/sbin:/usr/sbin:/bin:/usr/bin"};

static int load_decide_here(const struct load_options *options, struct load *ret, struct err *err)
{
	return load_decide(&this_host, options, ret, err);
}

static int load_apply_here(const struct load_options *options, struct load *load, struct err *err)
{
	return load_apply(&this_host, options, load, err);
}

const struct backend_load loader_nvidia = {.decide = load_decide_here, .apply = load_apply_here};
