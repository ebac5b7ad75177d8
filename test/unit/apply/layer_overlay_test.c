/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apply/internal.h"
#include "base/cleanup.h"
#include "lib/container.h"

static char folder[] = "/tmp/ctr-gpu-overlay-XXXXXX";

static void mount_overlay(void)
{
	char options[512], merged[128];

	(void)snprintf(options, sizeof(options), "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", folder, folder,
		       folder);
	(void)snprintf(merged, sizeof(merged), "%s/merged", folder);
	if (mount("none", merged, "overlay", 0, options) < 0)
		_exit(2);
}

/* Each layer by an option of its own, as Linux 6.8 and later can. A colon is one of the path. */
static void mount_overlay_by_layers(void)
{
	static const char *const options[][2] = {
		{"lowerdir+", "lo:wer"}, {"lowerdir+", "lower"}, {"upperdir", "upper"}, {"workdir", "work"}};
	char path[128];
	int context = fsopen("overlay", FSOPEN_CLOEXEC), fd;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, options[i][1]);
		if (fsconfig(context, FSCONFIG_SET_STRING, options[i][0], path, 0) < 0)
			_exit(2);
	}
	(void)snprintf(path, sizeof(path), "%s/merged", folder);
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		_exit(2);
	fd = fsmount(context, FSMOUNT_CLOEXEC, 0);
	if (fd < 0 || move_mount(fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		_exit(2);
	(void)close(fd);
	(void)close(context);
}

static void make_folders(void)
{
	static const char *const names[] = {"lower", "lo:wer", "upper", "work", "merged"};
	char path[128];

	(void)strcpy(strrchr(folder, '-'), "-XXXXXX");
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
}

/* A process with that root. @own: which it has mounted itself, where this one does not see it. Return: 0: it cannot */
static pid_t start_process(bool own)
{
	char merged[128], byte = 0;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	(void)snprintf(merged, sizeof(merged), "%s/merged", folder);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (own && (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
			_exit(1);
		if (own)
			mount_overlay();
		if (chroot(merged) < 0 || write(ends[1], &byte, 1) != 1)
			_exit(1);
		(void)pause();
		_exit(0);
	}
	(void)close(ends[1]);
	byte = read(ends[0], &byte, 1) == 1;
	(void)close(ends[0]);
	if (!byte)
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	return byte ? pid : 0;
}

/* Whether the process's layers are found; it ends. */
static int look(pid_t pid, size_t lowers)
{
	_cleanup_(layer_overlay_close) struct layer_overlay overlay = LAYER_OVERLAY_NONE;
	struct ctr_gpu_container container = {.rootfs = (char *)"/"};
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	container.process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(container.process >= 0);
	assert_int_equal(container_open_rootfs(&container, &overlay.merged, NULL), 0);
	r = layer_overlay_open_running(&overlay);
	if (r == 0)
		assert_true(overlay.upper.fd >= 0 && overlay.lowers.count == lowers);
	(void)close(container.process);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return r;
}

static void remove_folders(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

/* A container that may mount gives the paths of its layers; in this namespace they are other directories. */
static void what_the_container_has_mounted_itself_is_not_looked_for(void **state)
{
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	make_folders();
	pid = start_process(true);
	if (pid > 0)
		assert_int_equal(look(pid, 1), -EOPNOTSUPP);
	remove_folders();
	if (pid == 0)
		skip("needs overlayfs on /tmp");
}

static int look_at_the_engine_s(void (*mount_it)(void), size_t lowers)
{
	pid_t pid;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 2;
	mount_it();
	pid = start_process(false);
	return pid == 0 || look(pid, lowers) != 0;
}

static void find_the_engine_s(void (*mount_it)(void), size_t lowers)
{
	int status = -1;
	pid_t pid;

	if (geteuid() != 0)
		skip("needs root");
	make_folders();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(look_at_the_engine_s(mount_it, lowers));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	remove_folders();
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip("needs overlayfs on /tmp");
	assert_int_equal(status, 0);
}

static void what_the_engine_has_mounted_is_found(void **state)
{
	(void)state;
	find_the_engine_s(mount_overlay, 1);
}

static void layers_that_were_given_one_by_one_are_found(void **state)
{
	(void)state;
	find_the_engine_s(mount_overlay_by_layers, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_container_has_mounted_itself_is_not_looked_for),
		cmocka_unit_test(what_the_engine_has_mounted_is_found),
		cmocka_unit_test(layers_that_were_given_one_by_one_are_found),
	};

	return cmocka_run_group_tests_name("layer_overlay", tests, NULL, NULL);
}
