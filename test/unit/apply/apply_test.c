/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Applying plans: everything lands where it should, a second time changes nothing, and whichever step fails, the tree and
 * its mounts are afterwards what they were. "/host" is the host, "/root" the container's root filesystem.
 */

#include "scratch.h"

#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "lib/container.h"
#include "lib/context.h"
#include "plan/plan.h"

static struct ctr_gpu_context *context;
static struct ctr_gpu_plan plan;

static void add_mount(const char *source, const char *target, unsigned flags)
{
	struct plan_mount entry = {.source = strdup(scratch_path(source)),
				   .target = strdup(target),
				   .flags = flags,
				   .reason = strdup("test")};
	struct stat st;

	assert_int_equal(stat(entry.source, &st), 0);
	entry.device = st.st_dev;
	entry.inode = st.st_ino;
	entry.directory = S_ISDIR(st.st_mode);
	assert_int_equal(plan_add_mount(&plan.data, &entry), 0);
}

static void add_device(const char *path, dev_t number)
{
	struct plan_device entry = {.path = strdup(path), .number = number, .access = "rw", .reason = strdup("test")};

	assert_int_equal(plan_add_device(&plan.data, &entry), 0);
}

static void add_symlink(const char *path, const char *points_to)
{
	struct plan_symlink entry = {.path = strdup(path), .points_to = strdup(points_to), .reason = strdup("test")};

	assert_int_equal(plan_add_symlink(&plan.data, &entry), 0);
}

static void add_library_dir(const char *path)
{
	struct plan_library_dir entry = {.path = strdup(path), .overrides_image = true, .reason = strdup("test")};

	assert_int_equal(strv_add(&entry.libraries, "libcuda.so.1"), 0);
	assert_int_equal(plan_add_library_dir(&plan.data, &entry), 0);
}

static int setup(void **state)
{
	if (scratch_mount(state) < 0 || ctr_gpu_context_new(&context) != 0)
		return -1;
	/* Where openat2 is refused, links to a root filesystem count only if root alone could have made them. */
	if (chmod(scratch, 0755) < 0)
		return -1;
	make_directories("/host/wsl/lib");
	make_directories("/host/store");
	write_file("/host/wsl/lib/libcuda.so.1", "library");
	write_file("/host/store/libnvwgf2umx.so", "store");
	write_file("/host/smi", "program");
	make_directories("/root/etc");
	make_directories("/root/dev");
	make_directories("/root/usr/bin");
	add_mount("/host/wsl/lib", "/usr/lib/wsl/lib", 0);
	add_mount("/host/store", "/usr/lib/wsl/drivers/nv", 0);
	add_mount("/host/smi", "/opt/tools/smi", PLAN_MOUNT_NOEXEC);
	add_device("/dev/null", makedev(1, 3));
	add_device("/dev/zero", makedev(1, 5));
	add_symlink("/usr/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi");
	add_library_dir("/usr/lib/wsl/lib");
	return 0;
}

static int teardown(void **state)
{
	plan_clear(&plan.data);
	plan.data = (struct plan){0};
	ctr_gpu_context_unref(context);
	return scratch_unmount(state);
}

/* In a program that goes on no descriptor is left, whatever became of it. */
static int apply(void)
{
	struct ctr_gpu_container *container = NULL;
	unsigned before = unit_count_descriptors();
	int r;

	r = ctr_gpu_container_new(context, 0, scratch_path("/root"), &container);
	if (r != 0)
		fail_msg("%s", ctr_gpu_context_message(context));
	r = ctr_gpu_plan_apply(context, &plan, container);
	ctr_gpu_container_unref(container);
	assert_int_equal(unit_count_descriptors(), before);
	return r;
}

static void assert_message(const char *word)
{
	const char *message = ctr_gpu_context_message(context);
	int lines = 1;

	if (!strstr(message, word))
		fail_msg("\"%s\" does not say \"%s\"", message, word);
	for (const char *c = message; *c; c++)
		lines += *c == '\n';
	assert_true(lines <= 3);
}

/* Applying fails with @result and leaves no trace. */
static void assert_fails(int result, const char *word)
{
	char *before = picture(""), *after;

	assert_int_equal(apply(), result);
	assert_message(word);
	after = picture("");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* ---- what works ---- */

static void test_everything(void **state)
{
	char *before, *after, link[64] = "";
	struct stat st;

	(void)state;
	assert_int_equal(apply(), 0);
	assert_content("/root/usr/lib/wsl/lib/libcuda.so.1", "library");
	assert_content("/root/usr/lib/wsl/drivers/nv/libnvwgf2umx.so", "store");
	assert_content("/root/usr/lib/ctr-gpu/opt/tools/smi", "program");
	assert_int_equal(stat(scratch_path("/root/dev/null"), &st), 0);
	assert_true(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
	assert_true(readlink(scratch_path("/root/usr/bin/nvidia-smi"), link, sizeof(link) - 1) > 0);
	assert_string_equal(link, "/usr/lib/wsl/lib/nvidia-smi");
	assert_int_equal(stat(scratch_path("/root/etc/ld.so.cache"), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	/* A second time nothing is left to do. */
	before = picture("/root");
	assert_int_equal(apply(), 0);
	after = picture("/root");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* The kernel's own files in the container: a file of ours lies over one, an empty directory over another. */
static void add_procfs_entries(void)
{
	struct plan_file file = {.target = strdup("/proc/tty/drivers"),
				 .content = strdup("none\n"),
				 .on_procfs = true,
				 .reason = strdup("test")};
	struct plan_file profile = {
		.target = strdup("/etc/nvidia/profile"), .content = strdup("{}\n"), .reason = strdup("test")};
	struct plan_file absent = {.target = strdup("/proc/nothing/params"),
				   .content = strdup("none\n"),
				   .on_procfs = true,
				   .reason = strdup("test")};
	struct plan_hidden hidden = {.path = strdup("/proc/fs"), .reason = strdup("test")};
	struct plan_hidden nothing = {.path = strdup("/proc/nothing"), .reason = strdup("test")};

	assert_int_equal(plan_add_file(&plan.data, &file), 0);
	assert_int_equal(plan_add_file(&plan.data, &profile), 0);
	assert_int_equal(plan_add_file(&plan.data, &absent), 0);
	assert_int_equal(plan_add_hidden(&plan.data, &hidden), 0);
	assert_int_equal(plan_add_hidden(&plan.data, &nothing), 0);
}

static void test_procfs(void **state)
{
	char *before, *after, link[64] = "";
	struct stat st;

	(void)state;
	make_directories("/root/proc");
	assert_int_equal(mount("proc", scratch_path("/root/proc"), "proc", 0, NULL), 0);
	add_procfs_entries();
	assert_int_equal(apply(), 0);
	assert_content("/root/proc/tty/drivers", "none\n");
	/* The image gets no file to mount on, but a link that leads into memory. */
	assert_int_equal(readlink(scratch_path("/root/etc/nvidia/profile"), link, sizeof(link) - 1), 35);
	assert_string_equal(link, "/usr/lib/ctr-gpu/etc/nvidia/profile");
	assert_content("/root/usr/lib/ctr-gpu/etc/nvidia/profile", "{}\n");
	assert_int_equal(mkdir(scratch_path("/root/usr/lib/ctr-gpu/x"), 0755), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(stat(scratch_path("/root/proc/fs"), &st), 0);
	assert_int_equal(st.st_nlink, 2); /* an empty directory */
	assert_int_equal(mkdir(scratch_path("/root/proc/fs/x"), 0755), -1);
	assert_int_equal(errno, EROFS);
	/* A second time nothing is left to do. */
	before = picture("/root/etc");
	assert_int_equal(apply(), 0);
	after = picture("/root/etc");
	assert_string_equal(before, after);
	free(before);
	free(after);
	assert_int_equal(umount2(scratch_path("/root/proc"), MNT_DETACH), 0);
}

/* An image may pretend to have a procfs; what it has there is left as it is. */
static void test_fake_procfs(void **state)
{
	struct stat st;

	(void)state;
	make_directories("/root/proc/fs/theirs");
	make_directories("/root/proc/tty");
	write_file("/root/proc/tty/drivers", "theirs");
	add_procfs_entries();
	assert_int_equal(apply(), 0);
	assert_content("/root/proc/tty/drivers", "theirs");
	assert_int_equal(stat(scratch_path("/root/proc/fs/theirs"), &st), 0);
}

static void assert_mode(const char *path, mode_t mode)
{
	struct stat st;

	assert_int_equal(stat(scratch_path(path), &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
}

/* Of a directory that the runtime has made in the container's /dev, and of no other; and back where a later step fails. */
static void test_modes(void **state)
{
	static const char *const paths[] = {"/dev/dri", "/opt", "/dev/../opt", "/dev/link", "/dev/none"};

	(void)state;
	make_directories("/root/dev");
	make_directories("/root/opt");
	assert_int_equal(mount("dev", scratch_path("/root/dev"), "tmpfs", 0, NULL), 0);
	make_directories("/root/dev/dri");
	assert_int_equal(symlink("../opt", scratch_path("/root/dev/link")), 0);
	assert_int_equal(chmod(scratch_path("/root/dev/dri"), 0700) | chmod(scratch_path("/root/opt"), 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_int_equal(plan_add_mode(&plan.data, &(struct plan_mode){strdup(paths[i]), 0751, strdup("test")}),
				 0);
	assert_int_equal(apply(), 0);
	assert_mode("/root/dev/dri", 0751);
	assert_mode("/root/opt", 0700);
	assert_int_equal(chmod(scratch_path("/root/dev/dri"), 0700), 0);
	/* The loader's files are what comes after. */
	assert_int_equal(unlink(scratch_path("/root/etc/ld.so.cache")), 0);
	make_directories("/root/etc/ld.so.cache");
	assert_int_equal(apply(), -EISDIR);
	assert_mode("/root/dev/dri", 0700);
	assert_int_equal(umount2(scratch_path("/root/dev"), MNT_DETACH), 0);
}

static void test_umask_does_not_matter(void **state)
{
	mode_t mask = umask(077);
	struct stat st;

	(void)state;
	assert_int_equal(apply(), 0);
	assert_int_equal(umask(mask), 077);
	assert_int_equal(stat(scratch_path("/root/usr/lib/wsl/drivers"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(stat(scratch_path("/root/etc/ld.so.conf.d"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
}

/* What an image may have at the places that are needed, without harm. */
static void test_image_brings_its_own(void **state)
{
	char link[64] = "";

	(void)state;
	make_directories("/root/usr/lib/wsl/lib");
	write_file("/root/usr/lib/wsl/lib/libcuda.so.1", "baked in");
	write_file("/root/dev/null", "a file");
	make_link("/root/dev/zero", "../dev/elsewhere");
	write_file("/root/dev/elsewhere", "");
	write_file("/root/usr/bin/nvidia-smi", "image's");
	make_link("/root/etc/ld.so.cache", "/nowhere");
	assert_int_equal(apply(), 0);
	assert_content("/root/usr/lib/wsl/lib/libcuda.so.1", "library");
	assert_content("/root/usr/bin/nvidia-smi", "image's");
	assert_true(readlink(scratch_path("/root/dev/zero"), link, sizeof(link) - 1) > 0);
	assert_string_equal(link, "../dev/elsewhere");
	assert_int_equal(readlink(scratch_path("/root/etc/ld.so.cache"), link, sizeof(link)), -1);
}

static void read_only(const char *path)
{
	assert_int_equal(mount(scratch_path(path), scratch_path(path), NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount("none", scratch_path(path), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
}

static void make_mount_points(void)
{
	make_directories("/root/usr/lib/wsl/lib");
	make_directories("/root/usr/lib/wsl/drivers/nv");
	make_directories("/root/opt/tools");
	write_file("/root/opt/tools/smi", "");
	write_file("/root/dev/null", "");
	write_file("/root/dev/zero", "");
}

static void test_read_only_root(void **state)
{
	char *text = NULL, *before, *after;

	(void)state;
	make_mount_points();
	write_file("/root/etc/ld.so.cache", "");
	read_only("/root");
	assert_int_equal(apply(), 0);
	assert_content("/root/usr/lib/wsl/lib/libcuda.so.1", "library");
	assert_false(exists("/root/usr/bin/nvidia-smi"));
	assert_int_equal(fd_read_file_at(AT_FDCWD, scratch_path("/root/etc/ld.so.cache"), 1 << 20, &text, NULL), 0);
	assert_true(strlen(text) > 0);
	free(text);
	before = picture("/root");
	assert_int_equal(apply(), 0);
	after = picture("/root");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* The user's own file, mounted over the image's, is covered and not written. */
static void test_cache_on_a_volume(void **state)
{
	(void)state;
	write_file("/host/cache", "");
	write_file("/root/etc/ld.so.cache", "");
	assert_int_equal(mount(scratch_path("/host/cache"), scratch_path("/root/etc/ld.so.cache"), NULL, MS_BIND, NULL),
			 0);
	assert_int_equal(apply(), 0);
	assert_content("/host/cache", "");
	assert_int_equal(umount2(scratch_path("/root/etc/ld.so.cache"), MNT_DETACH), 0);
	assert_content("/root/etc/ld.so.cache", "");
}

/* ---- volumes ---- */

/* A directory of the host at /volume, to which the image leads @path. */
static void lead_into_volume(const char *path, unsigned long propagation)
{
	make_directories("/host/volume/lib");
	make_directories("/root/volume");
	assert_int_equal(mount(scratch_path("/host/volume"), scratch_path("/host/volume"), NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount("", scratch_path("/host/volume"), NULL, propagation, NULL), 0);
	assert_int_equal(mount(scratch_path("/host/volume"), scratch_path("/root/volume"), NULL, MS_BIND, NULL), 0);
	(void)rmdir(scratch_path(path));
	make_link(path, "/volume");
}

/* Whatever is mounted there would be mounted on the host. */
static void test_shared_volume(void **state)
{
	(void)state;
	make_directories("/root/usr/lib");
	lead_into_volume("/root/usr/lib/wsl", MS_SHARED);
	make_directories("/host/volume/drivers/nv");
	assert_fails(CTR_GPU_E_VOLUME, "/usr/lib/wsl/lib is in a volume that shares");
}

static void test_cache_in_shared_volume(void **state)
{
	(void)state;
	lead_into_volume("/root/etc", MS_SHARED);
	write_file("/host/volume/ld.so.cache", "host's");
	assert_fails(CTR_GPU_E_VOLUME, "/etc/ld.so.cache is in a volume that shares");
}

static void test_cache_missing_in_volume(void **state)
{
	(void)state;
	lead_into_volume("/root/etc", MS_PRIVATE);
	assert_fails(CTR_GPU_E_VOLUME, "/etc/ld.so.cache is missing in a volume");
}

/* The driver's own directory, given by hand, may be shared: nothing has to be done to it. */
static void test_shared_volume_of_the_driver(void **state)
{
	(void)state;
	make_directories("/root/usr/lib/wsl/lib");
	assert_int_equal(
		mount(scratch_path("/host/wsl/lib"), scratch_path("/root/usr/lib/wsl/lib"), NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount("", scratch_path("/root/usr/lib/wsl/lib"), NULL, MS_SHARED, NULL), 0);
	assert_int_equal(apply(), 0);
	assert_content("/root/usr/lib/wsl/lib/libcuda.so.1", "library");
}

/* A private one is covered for the container alone, but nothing is made in it. */
static void test_private_volume(void **state)
{
	(void)state;
	make_directories("/root/usr/lib");
	lead_into_volume("/root/usr/lib/wsl", MS_PRIVATE);
	assert_fails(CTR_GPU_E_VOLUME, "/usr/lib/wsl/drivers/nv is missing in a volume");
	make_directories("/host/volume/drivers/nv");
	assert_int_equal(apply(), 0);
	assert_content("/root/volume/lib/libcuda.so.1", "library");
	assert_false(exists("/host/volume/lib/libcuda.so.1"));
}

/* A program is a convenience: where it would have to be made in a volume, the container starts without it. */
static void test_program_on_a_volume(void **state)
{
	(void)state;
	plan.data.mounts[2].kind = PLAN_PROGRAM;
	lead_into_volume("/root/opt", MS_SHARED);
	assert_int_equal(apply(), 0);
	assert_false(exists("/host/volume/tools"));
	make_directories("/host/volume/tools");
	write_file("/host/volume/tools/smi", "theirs");
	assert_int_equal(apply(), 0);
	assert_content("/host/volume/tools/smi", "theirs");
}

static void test_tmpfs_on_etc(void **state)
{
	(void)state;
	assert_int_equal(mount("", scratch_path("/root/etc"), "tmpfs", 0, NULL), 0);
	assert_int_equal(apply(), 0);
	assert_true(exists("/root/etc/ld.so.cache"));
	assert_int_equal(umount2(scratch_path("/root/etc"), MNT_DETACH), 0);
	assert_false(exists("/root/etc/ld.so.cache"));
}

/* ---- what fails ---- */

static void test_read_only_root_without_mount_points(void **state)
{
	(void)state;
	read_only("/root");
	assert_fails(CTR_GPU_E_ROOTFS_READ_ONLY, "/usr/lib/wsl/lib");
}

static void test_read_only_root_without_cache(void **state)
{
	(void)state;
	make_mount_points();
	read_only("/root");
	assert_fails(CTR_GPU_E_ROOTFS_READ_ONLY, "/etc/ld.so.cache");
}

static void test_each_target_in_turn(void **state)
{
	static const struct {
		const char *path;
		bool directory;
		const char *word;
	} obstacles[] = {
		{"/root/usr/lib", false, "/usr/lib/wsl/lib"},    {"/root/usr/lib/wsl/drivers", false, "drivers/nv"},
		{"/root/opt/tools/smi", true, "/opt/tools/smi"}, {"/root/dev/null", true, "/dev/null"},
		{"/root/dev/zero", true, "/dev/zero"},           {"/root/etc/ld.so.conf.d", false, "ld.so.conf.d"},
		{"/root/etc/ld.so.cache", true, "ld.so.cache"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(obstacles); i++) {
		char *above = strdup(obstacles[i].path);

		*strrchr(above, '/') = '\0';
		make_directories(above);
		if (obstacles[i].directory)
			make_directories(obstacles[i].path);
		else
			write_file(obstacles[i].path, "in the way");
		assert_fails(obstacles[i].directory ? -EISDIR : -ENOTDIR, obstacles[i].word);
		assert_int_equal(remove(scratch_path(obstacles[i].path)), 0);
		free(above);
	}
	assert_int_equal(apply(), 0);
}

static void test_usr_bin_is_a_file(void **state)
{
	(void)state;
	assert_int_equal(rmdir(scratch_path("/root/usr/bin")), 0);
	write_file("/root/usr/bin", "in the way");
	assert_fails(-ENOTDIR, "nvidia-smi");
}

static void test_circle(void **state)
{
	(void)state;
	make_link("/root/opt", "/opt");
	assert_fails(-ELOOP, "circle");
}

static void test_target_in_proc(void **state)
{
	(void)state;
	make_directories("/root/proc");
	assert_int_equal(mount("proc", scratch_path("/root/proc"), "proc", 0, NULL), 0);
	make_link("/root/dev/zero", "/proc/version");
	assert_fails(CTR_GPU_E_BAD_ROOTFS, "/dev/zero into /proc");
	assert_int_equal(umount(scratch_path("/root/proc")), 0);
}

static void test_changed_source(void **state)
{
	(void)state;
	assert_int_equal(rename(scratch_path("/host/store"), scratch_path("/host/old")), 0);
	assert_fails(-ENOENT, "/host/store");
	make_directories("/host/store");
	assert_fails(-ESTALE, "/host/store");
}

static void test_changed_device(void **state)
{
	(void)state;
	plan.data.devices[1].number = makedev(1, 4);
	assert_fails(-ESTALE, "/dev/zero");
}

static void test_files_that_were_there_come_back(void **state)
{
	(void)state;
	make_directories("/root/etc/ld.so.conf.d");
	write_file("/root/etc/ld.so.conf.d/theirs.conf", "/theirs\n");
	make_directories("/root/etc/ld.so.cache");
	assert_fails(-EISDIR, "ld.so.cache");
}

static void test_bad_roots(void **state)
{
	struct ctr_gpu_container *container = NULL;

	(void)state;
	make_link("/slash", "/");
	write_file("/file", "");
	assert_int_equal(ctr_gpu_container_new(context, 0, "/", &container), CTR_GPU_E_BAD_ROOTFS);
	assert_int_equal(ctr_gpu_container_new(context, 0, "//", &container), CTR_GPU_E_BAD_ROOTFS);
	assert_int_equal(ctr_gpu_container_new(context, 0, "/./../", &container), CTR_GPU_E_BAD_ROOTFS);
	assert_int_equal(ctr_gpu_container_new(context, 0, "", &container), CTR_GPU_E_BAD_ROOTFS);
	assert_int_equal(ctr_gpu_container_new(context, 0, "root", &container), CTR_GPU_E_BAD_ROOTFS);
	assert_int_equal(ctr_gpu_container_new(context, 0, scratch_path("/slash"), &container), CTR_GPU_E_BAD_ROOTFS);
	assert_int_equal(ctr_gpu_container_new(context, 0, scratch_path("/none"), &container), CTR_GPU_E_BAD_ROOTFS);
	assert_int_equal(ctr_gpu_container_new(context, 0, scratch_path("/file"), &container), CTR_GPU_E_BAD_ROOTFS);
	assert_int_equal(ctr_gpu_container_new(context, -1, scratch_path("/root"), &container), CTR_GPU_E_BAD_ARGUMENT);
	assert_null(container);
}

/* ---- containers with a process ---- */

struct process {
	pid_t pid;
	int hold; /* closing it ends the process */
};

/* Who enters a mount namespace gets its root directory, and in a chroot there are no user namespaces to be made. */
static void want_no_chroot(void)
{
	struct stat before, after;
	int status = 0, own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	pid_t child = fork();

	if (child == 0)
		_exit(stat("/", &before) == 0 && setns(own, CLONE_NEWNS) == 0 && stat("/", &after) == 0 &&
		      (before.st_ino != after.st_ino || before.st_dev != after.st_dev));
	close(own);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status != 0)
		skip("wants / to be the root of the mount namespace, which it is not in a chroot");
}

/* A process in namespaces of its own, like a runtime's; in its root filesystem already if @started. */
static struct process start(int namespaces, bool started)
{
	struct process process;
	int ready[2], hold[2];
	char byte;

	want_no_chroot();
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	process.pid = fork();
	if (process.pid == 0) {
		close(hold[1]);
		if (unshare(namespaces) < 0 || (started && chroot(scratch_path("/root")) < 0))
			_exit(1);
		(void)prctl(PR_SET_DUMPABLE, 1); /* which a runtime's process is after execve(2) */
		(void)!write(ready[1], "r", 1);
		(void)!read(hold[0], &byte, 1);
		_exit(0);
	}
	close(ready[1]);
	close(hold[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	process.hold = hold[1];
	return process;
}

static void end(struct process *process)
{
	close(process->hold);
	assert_int_equal(waitpid(process->pid, NULL, 0), process->pid);
}

/* Applying changes the caller's mount namespace, so a child does it. Return: what it returned. */
static int apply_to(const struct process *process, bool check_from_inside)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct ctr_gpu_container *container = NULL;
		int r = ctr_gpu_container_new(context, process->pid, scratch_path("/root"), &container);

		if (r == 0) {
			ctr_gpu_container_leave_cgroup(container);
			r = ctr_gpu_plan_apply(context, &plan, container);
		}
		if (r == 0 && check_from_inside && !exists("/root/usr/lib/wsl/lib/libcuda.so.1"))
			r = 99;
		_exit(r < 0 ? 100 - r : r);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_process(void **state)
{
	struct process process = start(CLONE_NEWNS, false);

	(void)state;
	assert_int_equal(apply_to(&process, true), 0);
	/* Mounted there and not here. */
	assert_true(exists("/root/usr/lib/wsl/lib"));
	assert_false(exists("/root/usr/lib/wsl/lib/libcuda.so.1"));
	end(&process);
}

static void test_started_process(void **state)
{
	struct process process = start(CLONE_NEWNS, true);

	(void)state;
	assert_int_equal(apply_to(&process, false), CTR_GPU_E_CONTAINER_RUNNING);
	end(&process);
	assert_int_equal(apply_to(&process, false), 100 + ESRCH);
}

static void write_map(pid_t pid, const char *map, const char *text)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, map);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void write_maps(pid_t pid, const char *text)
{
	write_map(pid, "uid_map", text);
	write_map(pid, "gid_map", text);
}

static int give_to_100000(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return lchown(path, 100000, 100000);
}

/* As with dockerd --userns-remap: what is created belongs to the container's root. */
static void test_user_namespace(void **state)
{
	struct process process = start(CLONE_NEWUSER | CLONE_NEWNS, false);
	static const char *const made[] = {"/root/etc/ld.so.cache", "/root/usr/lib/wsl/lib", "/root/usr/bin/nvidia-smi",
					   "/root/dev/null"};
	struct stat st;

	(void)state;
	write_maps(process.pid, "0 100000 65536");
	assert_int_equal(nftw(scratch_path("/root"), give_to_100000, 16, FTW_PHYS), 0);
	assert_int_equal(apply_to(&process, true), 0);
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		assert_int_equal(lstat(scratch_path(made[i]), &st), 0);
		assert_int_equal(st.st_uid, 100000);
		assert_int_equal(st.st_gid, 100000);
	}
	end(&process);
}

/* A volume with a directory of the host's root is not the container root's to create things in. */
static void test_user_namespace_and_foreign_directory(void **state)
{
	struct process process = start(CLONE_NEWUSER | CLONE_NEWNS, false);

	(void)state;
	write_maps(process.pid, "0 100000 65536");
	assert_int_equal(apply_to(&process, true), 100 + EACCES);
	assert_false(exists("/root/usr/lib"));
	end(&process);
}

/* An ordinary user's runtime: only in the container's user namespace may anything be mounted. */
static int apply_as_user(void)
{
	struct process process;
	int r;

	if (setresgid(100000, 100000, 100000) < 0 || setresuid(100000, 100000, 100000) < 0)
		return 98;
	(void)prctl(PR_SET_DUMPABLE, 1);
	process = start(CLONE_NEWUSER | CLONE_NEWNS, false);
	write_map(process.pid, "setgroups", "deny");
	write_maps(process.pid, "0 100000 1");
	r = apply_to(&process, true);
	end(&process);
	return r;
}

static void test_ordinary_user(void **state)
{
	struct stat st;
	pid_t child;
	int status;

	(void)state;
	want_no_chroot();
	assert_int_equal(nftw(scratch_path("/root"), give_to_100000, 16, FTW_PHYS), 0);
	child = fork();
	if (child == 0)
		_exit(apply_as_user());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(stat(scratch_path("/root/etc/ld.so.cache"), &st), 0);
	assert_int_equal(st.st_uid, 100000);
}

/* Without a container of its own, such a user is told what is missing. */
static void test_no_permission(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		struct ctr_gpu_container *container = NULL;

		if (setresuid(100000, 100000, 100000) < 0)
			_exit(98);
		_exit(ctr_gpu_container_new(context, 0, scratch_path("/root"), &container));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), CTR_GPU_E_NO_PERMISSION);
}

static void test_kernel_too_old(void **state)
{
	struct ctr_gpu_container *container = NULL;

	(void)state;
	assert_int_equal(ctr_gpu_container_new(context, 0, scratch_path("/root"), &container),
			 CTR_GPU_E_KERNEL_TOO_OLD);
	assert_non_null(strstr(ctr_gpu_context_message(context), "openat2"));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static const struct CMUnitTest tests[] = {
	CASE(test_everything),
	CASE(test_procfs),
	CASE(test_modes),
	CASE(test_fake_procfs),
	CASE(test_umask_does_not_matter),
	CASE(test_image_brings_its_own),
	CASE(test_cache_on_a_volume),
	CASE(test_shared_volume),
	CASE(test_cache_in_shared_volume),
	CASE(test_cache_missing_in_volume),
	CASE(test_shared_volume_of_the_driver),
	CASE(test_private_volume),
	CASE(test_program_on_a_volume),
	CASE(test_tmpfs_on_etc),
	CASE(test_read_only_root_without_mount_points),
	CASE(test_read_only_root_without_cache),
	CASE(test_each_target_in_turn),
	CASE(test_usr_bin_is_a_file),
	CASE(test_circle),
	CASE(test_target_in_proc),
	CASE(test_changed_source),
	CASE(test_changed_device),
	CASE(test_files_that_were_there_come_back),
	CASE(test_bad_roots),
	CASE(test_process),
	CASE(test_started_process),
	CASE(test_user_namespace),
	CASE(test_user_namespace_and_foreign_directory),
	CASE(test_no_permission),
	/* Without openat2 it is not known that a cover is ours, nor that no link of a user leads to the root filesystem. */
	CASE(test_read_only_root),
	CASE(test_ordinary_user),
};
enum { NEED_OPENAT2 = 2 };

static const struct CMUnitTest too_old[] = {
	CASE(test_kernel_too_old),
};

/* A filter cannot be taken back: another process has it. Return: how many failed. */
static int run_behind_filter(const int *calls, size_t count)
{
	int status = -1;
	pid_t child;

	(void)fflush(NULL);
	child = fork();
	if (child == 0) {
		refuse_calls(calls, count, EPERM);
		exit(_cmocka_run_group_tests("apply behind a filter that refuses openat2", tests,
					     ARRAY_SIZE(tests) - NEED_OPENAT2, NULL, NULL));
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

int main(void)
{
	static const int calls[] = {SYS_open_tree, SYS_move_mount, SYS_mount_setattr, SYS_fsopen};
	static const int needed[] = {SYS_openat2};
	int failed;

	scratch_enter();
	failed = cmocka_run_group_tests_name("apply", tests, NULL, NULL);
	failed += run_behind_filter(needed, ARRAY_SIZE(needed));
	forget_calls(calls, ARRAY_SIZE(calls));
	failed += cmocka_run_group_tests_name("apply before Linux 5.2", tests, NULL, NULL);
	forget_calls(needed, ARRAY_SIZE(needed));
	failed += cmocka_run_group_tests_name("apply before Linux 5.6", too_old, NULL, NULL);
	scratch_remove();
	return failed != 0;
}
