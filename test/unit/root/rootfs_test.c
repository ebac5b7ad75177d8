/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Root filesystems of hostile images. Every case runs twice: with openat2(2), and with the walk that stands in for it
 * where a filter of system calls refuses it. "/out" is the host; nothing may ever appear in it or be read from it.
 */

#include "scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "root/rootfs.h"

static struct rootfs rootfs;
static struct undo_log *undo_log;
static int self_fds;

static int setup(void **state)
{
	if (scratch_mount(state) < 0)
		return -1;
	make_directories("/out");
	write_file("/out/secret", "host");
	make_directories("/root");
	if (rootfs_open(AT_FDCWD, scratch_path("/root"), &rootfs) < 0)
		return -1;
	rootfs.proc_self_fd = self_fds;
	rootfs.undo_log = undo_log = undo_log_new(false);
	if (!undo_log)
		return -1;
	undo_log->proc_self_fd = dup(self_fds);
	return 0;
}

static int teardown(void **state)
{
	rootfs_close(&rootfs);
	undo_log_free(undo_log);
	return scratch_unmount(state);
}

static void assert_host_untouched(void)
{
	assert_content("/out/secret", "host");
	assert_int_equal(unlink(scratch_path("/out/secret")), 0);
	assert_int_equal(rmdir(scratch_path("/out")), 0);
}

static int make_directory(const char *path)
{
	struct rootfs_target place = ROOTFS_TARGET_NONE;
	int r = rootfs_make_directory(&rootfs, path, 0755, &place);

	assert_true((r == 0) == (place.fd >= 0));
	assert_true(!place.made || place.mount_class == MOUNT_CLASS_ROOT);
	rootfs_target_close(&place);
	rootfs_forget(&rootfs); /* each is looked up */
	return r;
}

static int make_file(const char *path)
{
	struct rootfs_target place = ROOTFS_TARGET_NONE;
	int r = rootfs_make_file(&rootfs, path, 0644, &place);

	assert_true((r == 0) == (place.fd >= 0));
	assert_true(!place.made || place.mount_class == MOUNT_CLASS_ROOT);
	rootfs_target_close(&place);
	rootfs_forget(&rootfs);
	return r;
}

static int replace(const char *path, const char *text)
{
	struct span content = span_text(text);
	int r = rootfs_replace_file(&rootfs, path, &content, 1, 0644);

	rootfs_forget(&rootfs);
	return r;
}

/* ---- symlinks ---- */

/* Where an image's directory may pretend to be. */
static const char *const disguises[] = {"/out",    "../out",     "../../../../../../out",
					"/../out", "/./../out/", "/proc/self/root"};

static void lead_out(const char *directory, const char *points_to)
{
	char *link = NULL, *below = NULL, *secret = NULL, *text = NULL;

	assert_int_equal(str_format(&link, "/root%s", directory), 0);
	assert_int_equal(str_format(&below, "%s/sub/x", directory), 0);
	assert_int_equal(str_format(&secret, "%s/secret", directory), 0);
	make_link(link, points_to);
	/* What it leads to is made inside the root. */
	assert_int_equal(make_file(below), 0);
	assert_int_equal(replace(below, "mine"), 0);
	assert_int_equal(replace(secret, "mine"), 0);
	assert_int_equal(rootfs_read_file(&rootfs, secret, 100, &text, NULL), 0);
	assert_string_equal(text, "mine");
	undo_log_undo(undo_log);
	assert_int_equal(unlink(scratch_path(link)), 0);
	assert_false(exists("/root/out"));
	free(text);
	free(link);
	free(below);
	free(secret);
}

static void test_directory_symlinks_lead_out(void **state)
{
	static const char *const directories[] = {"/dev", "/etc", "/usr/lib", "/usr/lib/wsl"};

	(void)state;
	make_directories("/root/usr/lib");
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		for (size_t j = 0; j < ARRAY_SIZE(disguises); j++) {
			if (i == 2)
				(void)rmdir(scratch_path("/root/usr/lib"));
			if (i == 3)
				make_directories("/root/usr/lib");
			lead_out(directories[i], disguises[j]);
		}
	assert_host_untouched();
}

static void test_symlinks_are_followed_inside(void **state)
{
	(void)state;
	make_directories("/root/out/deep");
	make_directories("/root/usr");
	make_link("/root/usr/lib", "/out");
	make_link("/root/etc", "../../../out/deep");
	make_link("/root/dev", "usr/lib/./deep/../deep");
	assert_int_equal(make_directory("/usr/lib/wsl/lib"), 0);
	assert_true(exists("/root/out/wsl/lib"));
	assert_int_equal(replace("/etc/ld.so.cache", "cache"), 0);
	assert_content("/root/out/deep/ld.so.cache", "cache");
	assert_int_equal(make_file("/dev/dxg"), 0);
	assert_true(exists("/root/out/deep/dxg"));
	assert_host_untouched();
}

static void test_dot_dot_ends_at_the_root(void **state)
{
	(void)state;
	make_directories("/root/a");
	assert_int_equal(make_file("/../../a/../../../file"), 0);
	assert_true(exists("/root/file"));
	assert_int_equal(make_file("/a/.."), -EISDIR);
	assert_int_equal(make_directory("/missing/.."), -EINVAL);
	assert_int_equal(make_directory("/missing/../x"), -EINVAL);
	assert_int_equal(make_directory("/a/../b//c/."), -EINVAL);
	assert_int_equal(make_directory("/a/../b//c/"), 0);
	assert_true(exists("/root/b/c"));
	assert_int_equal(replace("/a/..", "x"), -EINVAL);
	assert_host_untouched();
}

/* As container runtimes do it: what a link leads to is made, wherever in the root that is. */
static void test_dangling_and_circular_links(void **state)
{
	(void)state;
	make_link("/root/gone", "/nowhere");
	make_link("/root/circle", "/circle");
	make_directories("/root/sub");
	make_link("/root/chain", "sub/first");
	make_link("/root/sub/first", "../second");
	make_link("/root/second", "sub/../end/file");
	make_link("/root/leads-out", "../../../../out/new");
	assert_int_equal(make_file("/circle"), -ELOOP);
	assert_int_equal(make_directory("/circle/x"), -ELOOP);
	assert_int_equal(make_directory("/gone/x"), 0);
	assert_true(exists("/root/nowhere/x"));
	assert_int_equal(make_file("/chain"), 0);
	assert_content("/root/end/file", "");
	assert_int_equal(make_file("/leads-out"), 0);
	assert_content("/root/out/new", "");
	undo_log_undo(undo_log);
	assert_false(exists("/root/nowhere"));
	assert_false(exists("/root/end"));
	assert_int_equal(rootfs_make_symlink(&rootfs, "/gone", "y"), 0);
	assert_false(exists("/root/nowhere"));
	/* The file of text replaces a symlink, wherever that leads. */
	assert_int_equal(replace("/gone", "text"), 0);
	assert_content("/root/gone", "text");
	assert_host_untouched();
}

static void test_many_dangling_links(void **state)
{
	char from[32], to[32];

	(void)state;
	for (int i = 0; i <= 41; i++) {
		(void)snprintf(from, sizeof(from), "/root/%d", i + 1);
		(void)snprintf(to, sizeof(to), "/%d", i);
		make_link(from, to);
	}
	assert_int_equal(make_file("/42"), -ELOOP);
	/* Linux counts links twice where somebody else's renames make it look a path up once more. */
	assert_int_equal(make_file("/20"), 0);
	assert_content("/root/0", "");
}

static void test_many_links(void **state)
{
	char from[32], to[32];

	(void)state;
	write_file("/root/0", "end");
	for (int i = 1; i <= 41; i++) {
		(void)snprintf(from, sizeof(from), "/root/%d", i);
		(void)snprintf(to, sizeof(to), "/%d", i - 1);
		make_link(from, to);
	}
	assert_int_equal(make_file("/20"), 0);
	assert_int_equal(make_file("/41"), -ELOOP);
}

/* procfs inside the root, as containers have it: its magic links know the host's directories. */
static void test_magic_links(void **state)
{
	static const char *const paths[] = {"/proc/self/root", "/proc/self/cwd", "/proc/1/root", "/proc/self/root/tmp"};
	struct stat host, st;

	(void)state;
	make_directories("/root/proc");
	assert_int_equal(mount("proc", scratch_path("/root/proc"), "proc", 0, NULL), 0);
	assert_int_equal(stat("/", &host), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		int fd = rootfs_open_path(&rootfs, paths[i], O_PATH);

		if (fd < 0)
			continue;
		assert_int_equal(fstat(fd, &st), 0);
		assert_false(st.st_dev == host.st_dev && st.st_ino == host.st_ino);
		assert_false(st.st_dev == host.st_dev);
		close(fd);
	}
	assert_int_equal(umount2(scratch_path("/root/proc"), MNT_DETACH), 0);
}

/* ---- other things in the way ---- */

static void make_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", scratch_path(path));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void test_types_in_the_way(void **state)
{
	static const char *const files[] = {"/fifo", "/socket", "/device", "/file"};

	(void)state;
	assert_int_equal(mkfifo(scratch_path("/root/fifo"), 0644), 0);
	make_socket("/root/socket");
	assert_int_equal(mknod(scratch_path("/root/device"), S_IFCHR | 0666, makedev(10, 130)), 0);
	write_file("/root/file", "");
	make_directories("/root/directory");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		char *below = NULL;

		assert_int_equal(make_file(files[i]), 0);
		assert_int_equal(make_directory(files[i]), -ENOTDIR);
		assert_int_equal(str_format(&below, "%s/below", files[i]), 0);
		assert_int_equal(make_directory(below), -ENOTDIR);
		assert_int_equal(make_file(below), -ENOTDIR);
		assert_int_equal(replace(below, "x"), -ENOTDIR);
		free(below);
		assert_int_equal(rootfs_make_symlink(&rootfs, files[i], "y"), 0);
	}
	assert_int_equal(make_file("/directory"), -EISDIR);
	assert_int_equal(replace("/directory", "x"), -EISDIR);
	assert_int_equal(undo_log->count, 0);
}

/* Neither waits for a writer of the FIFO nor opens a device, which might be a watchdog. */
static void test_reading_what_is_no_file(void **state)
{
	char *text = NULL;

	(void)state;
	assert_int_equal(mkfifo(scratch_path("/root/fifo"), 0644), 0);
	make_socket("/root/socket");
	assert_int_equal(mknod(scratch_path("/root/device"), S_IFCHR | 0666, makedev(1, 5)), 0);
	make_link("/root/link", "/out/secret");
	write_file("/root/file", "12345");
	assert_int_equal(rootfs_read_file(&rootfs, "/fifo", 10, &text, NULL), -EINVAL);
	assert_int_equal(rootfs_read_file(&rootfs, "/socket", 10, &text, NULL), -EINVAL);
	assert_int_equal(rootfs_read_file(&rootfs, "/device", 10, &text, NULL), -EINVAL);
	assert_int_equal(rootfs_read_file(&rootfs, "/", 10, &text, NULL), -EINVAL);
	assert_int_equal(rootfs_read_file(&rootfs, "/link", 10, &text, NULL), -ENOENT);
	assert_int_equal(rootfs_read_file(&rootfs, "/file", 4, &text, NULL), -EFBIG);
	assert_null(text);
	assert_int_equal(rootfs_read_file(&rootfs, "/file", 5, &text, NULL), 0);
	assert_string_equal(text, "12345");
	free(text);
	/* By the path of /proc. */
	rootfs.proc_self_fd = -1;
	assert_int_equal(rootfs_read_file(&rootfs, "/file", 5, &text, NULL), 0);
	free(text);
}

static void test_long_names(void **state)
{
	char *path = calloc(1, 8192);

	(void)state;
	memset(path, 'a', 300);
	path[0] = '/';
	assert_int_equal(make_directory(path), -ENAMETOOLONG);
	for (size_t i = 0; i < 8000; i += 2)
		memcpy(path + i, "/b", 2);
	assert_int_equal(make_directory(path), -ENAMETOOLONG);
	assert_int_equal(undo_log->count, 0);
	free(path);
}

/* ---- writing and undoing ---- */

static void test_replaced_files(void **state)
{
	struct stat st;
	mode_t mask = umask(077);

	(void)state;
	assert_int_equal(replace("/etc/new", "new"), 0);
	umask(mask);
	assert_int_equal(stat(scratch_path("/root/etc/new"), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(replace("/etc/new", "newer"), 0);
	assert_content("/root/etc/new", "newer");
}

static void test_undo(void **state)
{
	char *before, *after;

	(void)state;
	make_directories("/root/etc");
	write_file("/root/etc/ld.so.cache", "image's");
	assert_int_equal(chmod(scratch_path("/root/etc/ld.so.cache"), 0640), 0);
	assert_int_equal(chown(scratch_path("/root/etc/ld.so.cache"), 7, 8), 0);
	make_link("/root/etc/link", "../lib");
	make_link("/root/etc/other", "/out");
	write_file("/root/etc/library", "image's");
	before = picture("/root");
	assert_int_equal(make_directory("/usr/lib/wsl/lib"), 0);
	assert_int_equal(make_file("/dev/dxg"), 0);
	assert_int_equal(rootfs_make_symlink(&rootfs, "/usr/bin/nvidia-smi", "x"), 0);
	assert_int_equal(replace("/etc/ld.so.cache", "ours"), 0);
	assert_int_equal(replace("/etc/ld.so.cache", "ours again"), 0);
	assert_int_equal(replace("/etc/link", "ours"), 0);
	assert_int_equal(rootfs_replace_symlink(&rootfs, "/usr/lib/new", "x"), 0);
	assert_int_equal(rootfs_replace_symlink(&rootfs, "/etc/library", "x"), 0);
	assert_int_equal(rootfs_replace_symlink(&rootfs, "/etc/other", "x"), 0);
	assert_int_equal(replace("/etc/ld.so.conf.d/x.conf", "ours"), 0);
	after = picture("/root");
	assert_string_not_equal(before, after);
	free(after);
	undo_log_undo(undo_log);
	after = picture("/root");
	assert_string_equal(before, after);
	free(after);
	free(before);
}

static void test_replaced_symlinks(void **state)
{
	(void)state;
	make_directories("/root/directory");
	write_file("/root/file", "x");
	make_link("/root/same", "target");
	make_link("/root/other", "/out");
	make_link("/root/dangling", "/gone/file");
	make_link("/root/outside", "../../../out");
	assert_int_equal(rootfs_replace_symlink(&rootfs, "/same", "target"), 0);
	assert_int_equal(undo_log->count, 0);
	for (size_t i = 0; i < 4; i++) {
		static const char *const paths[] = {"/file", "/other", "/dangling", "/new"};
		char link[32] = "", path[64];

		assert_int_equal(rootfs_replace_symlink(&rootfs, paths[i], "target"), 0);
		(void)snprintf(path, sizeof(path), "/root%s", paths[i]);
		assert_int_equal(readlink(scratch_path(path), link, sizeof(link) - 1), 6);
		assert_string_equal(link, "target");
	}
	/* A directory that a link leads to is one inside the root. */
	assert_int_equal(rootfs_replace_symlink(&rootfs, "/outside/link", "target"), 0);
	assert_false(exists("/out/link"));
	assert_int_equal(rootfs_replace_symlink(&rootfs, "/directory", "target"), -EISDIR);
	assert_true(exists("/root/directory"));
	assert_false(exists("/root/.ctr-gpu-0"));
	/* One that somebody was killed over is in nobody's way. */
	make_link("/root/.ctr-gpu-0", "x");
	assert_int_equal(rootfs_replace_symlink(&rootfs, "/new", "another"), 0);
}

static bool has_temporaries(void)
{
	DIR *directory = opendir(scratch_path("/root"));
	const struct dirent *entry;
	bool found = false;

	assert_non_null(directory);
	while ((entry = readdir(directory)))
		found |= str_has_prefix(entry->d_name, ".ctr-gpu-");
	closedir(directory);
	return found;
}

/* A process that is killed before the link has its name leaves it to the next; one that lives does not. */
static void test_links_of_the_killed(void **state)
{
	const struct sock_filter filter[] = {
		LOAD(nr),
		JUMP(BPF_JEQ, SYS_renameat, 0, 1),
		ANSWER(SECCOMP_RET_KILL_PROCESS),
		ALLOW,
	};
	pid_t pid = fork();
	int status, fd;

	(void)state;
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && seccomp_install(filter, ARRAY_SIZE(filter)) == 0)
			(void)rootfs_replace_symlink(&rootfs, "/first", "target");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && has_temporaries());
	assert_int_equal(rootfs_replace_symlink(&rootfs, "/second", "target"), 0);
	assert_false(has_temporaries());
	fd = open(scratch_path("/root/.ctr-gpu-0"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	make_link("/root/.ctr-gpu-0l", "theirs");
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(rootfs_replace_symlink(&rootfs, "/third", "target"), 0);
	assert_int_equal(unlink(scratch_path("/root/.ctr-gpu-0l")), 0);
	assert_int_equal(unlink(scratch_path("/root/.ctr-gpu-0")), 0);
	assert_false(has_temporaries());
	close(fd);
}

/* A file of an image may be larger than the disk, as long as it is sparse. */
static void test_holes_stay(void **state)
{
	const off_t size = 64 << 20;
	struct stat st;
	char *text;
	int fd;

	(void)state;
	make_directories("/root/etc");
	write_file("/root/etc/sparse", "beginning");
	fd = open(scratch_path("/root/etc/sparse"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "middle", 6, size / 2), 6);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
	assert_int_equal(replace("/etc/sparse", "ours"), 0);
	undo_log_undo(undo_log);
	assert_int_equal(stat(scratch_path("/root/etc/sparse"), &st), 0);
	assert_int_equal(st.st_size, size);
	assert_true(st.st_blocks * 512 <= 4 * 4096);
	assert_int_equal(rootfs_read_file(&rootfs, "/etc/sparse", (size_t)size, &text, NULL), 0);
	assert_string_equal(text, "beginning");
	assert_string_equal(text + size / 2, "middle");
	free(text);
}

static void make_beside(const char *path)
{
	struct rootfs_target place = ROOTFS_TARGET_NONE;

	assert_int_equal(rootfs_make_file(&rootfs, path, 0644, &place), 0);
	assert_true(place.made);
	rootfs_target_close(&place);
}

/* A directory is looked up once for all that is made in it, until something is mounted on a directory. */
static void test_known_parent(void **state)
{
	struct rootfs other = ROOTFS_CLOSED;

	(void)state;
	make_directories("/root/usr/lib");
	make_beside("/usr/lib/a");
	assert_int_equal(rename(scratch_path("/root/usr/lib"), scratch_path("/root/usr/old")), 0);
	make_directories("/root/usr/lib");
	make_beside("/usr/lib/b");
	assert_true(exists("/root/usr/old/b"));
	rootfs_forget(&rootfs);
	make_beside("/usr/lib/c");
	assert_true(exists("/root/usr/lib/c"));
	/* The same path of another root is another directory. */
	make_directories("/root/usr/other/usr/lib");
	other = rootfs;
	assert_int_equal(rootfs_open(AT_FDCWD, scratch_path("/root/usr/other"), &rootfs), 0);
	memcpy(rootfs.known, other.known, sizeof(rootfs.known));
	rootfs.undo_log = undo_log;
	make_beside("/usr/lib/d");
	assert_true(exists("/root/usr/other/usr/lib/d"));
	undo_log_undo(undo_log);
	assert_false(exists("/root/usr/old/b"));
	assert_false(exists("/root/usr/lib/c"));
	close(other.fd);
}

/* Links in a known directory lead where they lead from the root, and nowhere else. */
static void test_below_known_parent(void **state)
{
	(void)state;
	make_directories("/root/usr/lib/inner");
	make_directories("/root/etc");
	make_directories("/out");
	make_beside("/usr/lib/a");
	make_beside("/usr/lib/inner/b");
	assert_true(exists("/root/usr/lib/inner/b"));
	for (size_t i = 0; i < ARRAY_SIZE(disguises); i++) {
		assert_int_equal(symlink(disguises[i], scratch_path("/root/usr/lib/link")), 0);
		make_beside("/usr/lib/link/c");
		assert_false(exists("/out/c"));
		undo_log_undo(undo_log);
		rootfs_forget(&rootfs);
		assert_int_equal(unlink(scratch_path("/root/usr/lib/link")), 0);
		make_beside("/usr/lib/a");
	}
	assert_int_equal(symlink("/etc", scratch_path("/root/usr/lib/link")), 0);
	make_beside("/usr/lib/link/d");
	assert_true(exists("/root/etc/d"));
	make_beside("/usr/lib/inner/../../../etc/e");
	assert_true(exists("/root/etc/e"));
}

/* What was below a path that a link led along is not there any more once the link is replaced. */
static void test_known_below_replaced_link(void **state)
{
	(void)state;
	make_directories("/root/usr/a");
	make_directories("/root/usr/b");
	assert_int_equal(symlink("a", scratch_path("/root/usr/link")), 0);
	make_beside("/usr/link/first");
	assert_int_equal(rootfs_replace_symlink(&rootfs, "/usr/link", "b"), 0);
	make_beside("/usr/link/second");
	assert_true(exists("/root/usr/a/first"));
	assert_true(exists("/root/usr/b/second"));
}

/* Many files in one directory do not put others out of what is known. */
static void test_known_parent_stays(void **state)
{
	(void)state;
	make_directories("/root/etc");
	make_directories("/root/usr/lib");
	make_beside("/etc/first");
	for (int i = 0; i < 2 * ROOTFS_KNOWN_MAX; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "/usr/lib/%d", i);
		make_beside(path);
	}
	assert_int_equal(rename(scratch_path("/root/etc"), scratch_path("/root/old")), 0);
	make_directories("/root/etc");
	make_beside("/etc/second");
	assert_true(exists("/root/old/second"));
}

/* In a directory that was just made, too, as another process may be there. */
static void test_loop_in_known_parent(void **state)
{
	(void)state;
	make_beside("/new/directory/file");
	assert_int_equal(symlink("loop", scratch_path("/root/new/directory/loop")), 0);
	assert_int_equal(make_directory("/new/directory/loop"), -ELOOP);
}

/* More directories than are known; then each descriptor is closed, and once: no other file's was in its place. */
static void test_many_known_parents(void **state)
{
	const unsigned before = unit_count_descriptors();
	int other;

	(void)state;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 2 * ROOTFS_KNOWN_MAX; i++) {
			char path[64];

			(void)snprintf(path, sizeof(path), "/made/%d/inner/%d", i, round);
			make_beside(path);
			(void)snprintf(path, sizeof(path), "/made/%d/link%d", i, round);
			assert_int_equal(rootfs_make_symlink(&rootfs, path, "inner"), 0);
		}
	assert_true(exists("/root/made/0/inner/1"));
	undo_log_undo(undo_log);
	assert_false(exists("/root/made"));
	assert_int_equal(unit_count_descriptors(), before);
	other = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	rootfs_forget(&rootfs);
	assert_int_equal(fcntl(other, F_GETFD), FD_CLOEXEC);
	close(other);
}

/* Of a tmpfs of ours all is made without a look at what is there; what another made there meanwhile is found. */
static void test_known_own(void **state)
{
	struct rootfs_target place = ROOTFS_TARGET_NONE;
	int fd;

	(void)state;
	make_directories("/own");
	make_directories("/own/bin");
	fd = open(scratch_path("/own"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(rootfs_know_own(&rootfs, "/usr/lib/own/", fd), 0);
	make_beside("/usr/lib/own/bin/smi");
	assert_int_equal(rootfs_make_file(&rootfs, "/usr/lib/own/file", 0644, &place), 0);
	assert_int_equal(place.mount_class, MOUNT_CLASS_OWN);
	rootfs_target_close(&place);
	make_beside("/usr/lib/own/a/b/c");
	assert_true(exists("/own/bin/smi"));
	assert_true(exists("/own/a/b/c"));
	assert_false(exists("/root/usr/lib/own"));
	close(fd);
}

static void test_rewritten_files(void **state)
{
	static const struct span content = {(const unsigned char *)"new", 3};
	struct stat st;

	(void)state;
	write_file("/root/file", "old");
	assert_int_equal(chown(scratch_path("/root/file"), 7, 8), 0);
	assert_int_equal(chmod(scratch_path("/root/file"), 0640), 0);
	assert_int_equal(rootfs_rewrite_file(&rootfs, "/file", &content, 1), 0);
	assert_content("/root/file", "new");
	assert_int_equal(stat(scratch_path("/root/file"), &st), 0);
	assert_true(st.st_uid == 7 && st.st_gid == 8 && (st.st_mode & 07777) == 0640);
	make_link("/root/link", "file");
	make_directories("/root/directory");
	assert_int_equal(rootfs_rewrite_file(&rootfs, "/link", &content, 1), -ELOOP);
	assert_int_equal(rootfs_rewrite_file(&rootfs, "/directory", &content, 1), -EISDIR);
	assert_int_equal(rootfs_rewrite_file(&rootfs, "/none", &content, 1), -ENOENT);
	assert_false(has_temporaries());
}

static void fill_file_system(void)
{
	static const char some[4096];
	int fd = open(scratch_path("/filler"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(mount("tmpfs", scratch, "tmpfs", MS_REMOUNT, "size=1m"), 0);
	while (write(fd, some, sizeof(some)) > 0)
		continue;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

/* The room that our file had is enough for what it had replaced. */
static void test_restored_on_full_file_system(void **state)
{
	char old[64 * 1024], new[64 * 1024];

	(void)state;
	memset(old, 'o', sizeof(old) - 1);
	memset(new, 'n', sizeof(new) - 1);
	old[sizeof(old) - 1] = new[sizeof(new) - 1] = '\0';
	write_file("/root/file", old);
	assert_int_equal(replace("/file", new), 0);
	fill_file_system();
	undo_log_undo(undo_log);
	assert_content("/root/file", old);
	assert_false(has_temporaries());
}

/* What somebody else put in the meantime into what was created is not ours to remove. */
static void test_undo_leaves_others_files(void **state)
{
	(void)state;
	assert_int_equal(make_directory("/a/b"), 0);
	assert_int_equal(make_file("/file"), 0);
	write_file("/root/a/theirs", "x");
	write_file("/root/file", "x");
	undo_log_undo(undo_log);
	assert_false(exists("/root/a/b"));
	assert_content("/root/a/theirs", "x");
	assert_content("/root/file", "x");
}

static void test_read_only(void **state)
{
	(void)state;
	make_directories("/root/there");
	write_file("/root/file", "x");
	assert_int_equal(mount("none", scratch, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	assert_int_equal(make_directory("/there"), 0);
	assert_int_equal(make_directory("/there/not"), -EROFS);
	assert_int_equal(make_file("/file"), 0);
	assert_int_equal(make_file("/other"), -EROFS);
	assert_int_equal(replace("/file", "y"), -EROFS);
	assert_int_equal(rootfs_make_symlink(&rootfs, "/link", "y"), -EROFS);
	assert_int_equal(rootfs_make_symlink(&rootfs, "/file", "y"), 0);
	assert_int_equal(undo_log->count, 0);
}

/* The image's /etc leads to a volume that is a directory of the host: it is not the image's to have files written there. */
static void test_volumes_are_not_written(void **state)
{
	(void)state;
	make_directories("/root/volume");
	assert_int_equal(mount(scratch_path("/out"), scratch_path("/root/volume"), NULL, MS_BIND, NULL), 0);
	make_link("/root/etc", "/volume");
	assert_int_equal(replace("/etc/secret", "mine"), -EXDEV);
	assert_int_equal(replace("/etc/ld.so.cache", "mine"), -EXDEV);
	assert_int_equal(replace("/etc/ld.so.conf.d/x", "mine"), -EXDEV);
	assert_int_equal(rootfs_make_symlink(&rootfs, "/etc/link", "mine"), -EXDEV);
	/* Nor to have things made there to mount on, by whatever way. */
	make_link("/root/link", "volume/new");
	make_link("/root/directory", "/etc/new");
	assert_int_equal(make_file("/etc/point"), -EXDEV);
	assert_int_equal(make_file("/link"), -EXDEV);
	assert_int_equal(make_directory("/directory/x"), -EXDEV);
	assert_int_equal(make_file("/etc/secret"), 0);
	assert_int_equal(undo_log->count, 0);
	assert_int_equal(umount(scratch_path("/root/volume")), 0);
	assert_host_untouched();
}

static void test_mounted_files_are_not_replaced(void **state)
{
	(void)state;
	write_file("/root/file", "x");
	assert_int_equal(mount(scratch_path("/out/secret"), scratch_path("/root/file"), NULL, MS_BIND, NULL), 0);
	assert_int_equal(replace("/file", "y"), -EBUSY);
	assert_int_equal(undo_log->count, 0);
	assert_int_equal(umount(scratch_path("/root/file")), 0);
}

/* ---- races ---- */

static atomic_bool stop;

static void *swap(void *unused)
{
	int root = open(scratch_path("/root"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)unused;
	while (!stop)
		(void)renameat2(root, "swap", root, "link", RENAME_EXCHANGE);
	close(root);
	return NULL;
}

static void one_round(int round)
{
	char path[64], *text = NULL;

	(void)snprintf(path, sizeof(path), "/swap/%d/x", round % 50);
	(void)make_directory(path);
	(void)snprintf(path, sizeof(path), "/swap/f%d", round % 50);
	(void)make_file(path);
	(void)rootfs_make_symlink(&rootfs, "/swap/s", "x");
	(void)replace("/swap/secret", "container");
	if (rootfs_read_file(&rootfs, "/swap/secret", 100, &text, NULL) == 0)
		assert_string_equal(text, "container");
	free(text);
	text = NULL;
	if (rootfs_read_file(&rootfs, "/swap/../../out/secret", 100, &text, NULL) == 0)
		assert_string_equal(text, "container");
	free(text);
	if (round % 100 == 99)
		undo_log_undo(undo_log);
}

static void race(const char *points_to)
{
	pthread_t thread;

	make_directories("/root/swap");
	make_link("/root/link", points_to);
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, swap, NULL), 0);
	for (int round = 0; round < scratch_rounds(); round++)
		one_round(round);
	stop = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_host_untouched();
}

static void test_race_absolute(void **state)
{
	(void)state;
	race(scratch_path("/out"));
}

static void test_race_relative(void **state)
{
	(void)state;
	race("../out");
}

/* What has the file's name is a pipe at times, which tells whoever waits for a reader that it was opened. */
static void *swap_with_pipe(void *unused)
{
	int root = open(scratch_path("/root"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)unused;
	while (!stop) {
		int fd = openat(root, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		if (fd >= 0)
			close(fd);
		(void)!renameat(root, "new", root, "file");
		(void)!linkat(root, "pipe", root, "name", 0);
		(void)!renameat(root, "name", root, "file");
	}
	close(root);
	return NULL;
}

static atomic_bool opened;

static void *wait_for_reader(void *unused)
{
	int fd = open(scratch_path("/root/pipe"), O_WRONLY | O_CLOEXEC);

	(void)unused;
	opened = true;
	close(fd);
	return NULL;
}

static void read_file(void)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	(void)rootfs_read_file(&rootfs, "/file", 100, &text, &size);
}

static void replace_file(void)
{
	(void)replace("/file", "container");
	undo_log_undo(undo_log);
}

static void race_of_types(void (*act)(void))
{
	pthread_t swapper, waiter;

	assert_int_equal(mkfifo(scratch_path("/root/pipe"), 0600), 0);
	stop = opened = false;
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_reader, NULL), 0);
	assert_int_equal(pthread_create(&swapper, NULL, swap_with_pipe, NULL), 0);
	for (int round = 0; round < 10 * scratch_rounds() && !opened; round++)
		act();
	stop = true;
	assert_int_equal(pthread_join(swapper, NULL), 0);
	assert_false(opened);
	assert_true(open(scratch_path("/root/pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC) >= 0);
	assert_int_equal(pthread_join(waiter, NULL), 0);
}

static void test_race_of_types(void **state)
{
	(void)state;
	race_of_types(replace_file);
}

/* As the doctor reads an image. */
static void test_race_of_types_of_readers(void **state)
{
	(void)state;
	rootfs.proc_self_fd = -1;
	race_of_types(read_file);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static const struct CMUnitTest tests[] = {
	CASE(test_directory_symlinks_lead_out),
	CASE(test_symlinks_are_followed_inside),
	CASE(test_dot_dot_ends_at_the_root),
	CASE(test_dangling_and_circular_links),
	CASE(test_many_links),
	CASE(test_many_dangling_links),
	CASE(test_magic_links),
	CASE(test_types_in_the_way),
	CASE(test_reading_what_is_no_file),
	CASE(test_long_names),
	CASE(test_replaced_files),
	CASE(test_undo),
	CASE(test_restored_on_full_file_system),
	CASE(test_replaced_symlinks),
	CASE(test_links_of_the_killed),
	CASE(test_holes_stay),
	CASE(test_known_parent),
		CASE(test_below_known_parent),
		CASE(test_known_below_replaced_link),
		CASE(test_known_parent_stays),
		CASE(test_loop_in_known_parent),
		CASE(test_many_known_parents),
		CASE(test_known_own),
	CASE(test_rewritten_files),
	CASE(test_undo_leaves_others_files),
	CASE(test_read_only),
	CASE(test_volumes_are_not_written),
	CASE(test_mounted_files_are_not_replaced),
	CASE(test_race_absolute),
	CASE(test_race_relative),
	CASE(test_race_of_types),
	CASE(test_race_of_types_of_readers),
};

int main(void)
{
	static const int calls[] = {SYS_openat2};
	int failed;

	scratch_enter();
	self_fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	failed = cmocka_run_group_tests_name("rootfs", tests, NULL, NULL);
	refuse_calls(calls, ARRAY_SIZE(calls), EPERM);
	failed += cmocka_run_group_tests_name("rootfs without openat2", tests, NULL, NULL);
	scratch_remove();
	return failed != 0;
}
