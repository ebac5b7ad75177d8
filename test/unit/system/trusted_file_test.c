/* SPDX-License-Identifier: Apache-2.0 */

/* Which files of the host count as put there by root. */

#include "unit.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "scratch.h"
#include "system/trusted_file.h"

enum { USER = 4711, SERVICE = 4712 };

static void put(const char *path, mode_t mode, uid_t owner)
{
	char *full = scratch_path(path);

	switch (mode & S_IFMT) {
	case S_IFDIR:
		assert_int_equal(mkdir(full, 0755), 0);
		break;
	case S_IFSOCK:
	case S_IFIFO:
	case S_IFREG:
		assert_int_equal(mknod(full, mode & S_IFMT, 0), 0);
		break;
	default:
		fail();
	}
	assert_int_equal(chown(full, owner, 0), 0);
	assert_int_equal(chmod(full, mode & ALLPERMS), 0);
}

static void link_from(const char *to, const char *path, uid_t owner)
{
	assert_int_equal(symlink(to, scratch_path(path)), 0);
	assert_int_equal(lchown(scratch_path(path), owner, 0), 0);
}

static int set_up(void **state)
{
	return scratch_mount(state) < 0 ? -1 : chmod(scratch, 0755);
}

static int look(const char *path, mode_t type, uid_t other)
{
	_cleanup_close_ int fd = trusted_file_open(scratch_path(path), type, other, O_PATH);

	return fd < 0 ? fd : 0;
}

static void files(void **state)
{
	_cleanup_close_ int fd = -1;
	char text[4];

	(void)state;
	put("/good", S_IFREG | 0644, 0);
	put("/group", S_IFREG | 0664, 0);
	put("/world", S_IFREG | 0646, 0);
	put("/user", S_IFREG | 0644, USER);
	put("/fifo", S_IFIFO | 0644, 0);
	assert_int_equal(look("/good", S_IFREG, TRUSTED_FILE_ROOT_ONLY), 0);
	assert_int_equal(look("//./good", S_IFREG, TRUSTED_FILE_ROOT_ONLY), 0);
	assert_int_equal(look("/good", S_IFDIR, TRUSTED_FILE_ROOT_ONLY), -EINVAL);
	assert_int_equal(look("/good/x", S_IFREG, TRUSTED_FILE_ROOT_ONLY), -ENOTDIR);
	assert_int_equal(look("/group", S_IFREG, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/world", S_IFREG, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/user", S_IFREG, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/user", S_IFREG, USER), 0);
	assert_int_equal(look("/fifo", S_IFREG, TRUSTED_FILE_ROOT_ONLY), -EINVAL);
	assert_int_equal(look("/none", S_IFREG, TRUSTED_FILE_ROOT_ONLY), -ENOENT);
	assert_int_equal(trusted_file_open("relative", S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_PATH), -EINVAL);
	fd = trusted_file_open(scratch_path("/good"), S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text)), 0);
}

static void directories(void **state)
{
	static const struct {
		mode_t mode;
		uid_t owner;
		int alone, with_user; /* what becomes of a file of root's in it */
	} cases[] = {
		{0755, 0, 0, 0},
		{0775, 0, -EPERM, -EPERM},
		{0757, 0, -EPERM, -EPERM},
		{01777, 0, -EPERM, -EPERM},
		{0755, USER, -EPERM, 0},
		{0700, USER, -EPERM, 0},
		{0755, SERVICE, -EPERM, -EPERM},
		{0777, USER, -EPERM, -EPERM},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char directory[16], file[24], deep[24];

		(void)snprintf(directory, sizeof(directory), "/%zu", i);
		(void)snprintf(file, sizeof(file), "/%zu/file", i);
		(void)snprintf(deep, sizeof(deep), "/%zu/none", i);
		put(directory, S_IFDIR | cases[i].mode, cases[i].owner);
		put(file, S_IFREG | 0644, 0);
		assert_int_equal(look(file, S_IFREG, TRUSTED_FILE_ROOT_ONLY), cases[i].alone);
		assert_int_equal(look(file, S_IFREG, USER), cases[i].with_user);
		assert_int_equal(look(deep, S_IFREG, TRUSTED_FILE_ROOT_ONLY), cases[i].alone ? -EPERM : -ENOENT);
	}
}

/* /tmp: root's directories stay where they are; files could have been linked or moved there. */
static void sticky(void **state)
{
	(void)state;
	put("/tmp", S_IFDIR | 01777, 0);
	put("/tmp/root", S_IFDIR | 0755, 0);
	put("/tmp/user", S_IFDIR | 0755, USER);
	put("/tmp/open", S_IFDIR | 0777, 0);
	put("/tmp/root/socket", S_IFSOCK | 0666, 0);
	put("/tmp/user/socket", S_IFSOCK | 0666, USER);
	put("/tmp/socket", S_IFSOCK | 0666, 0);
	link_from("root", "/tmp/link", 0);
	assert_int_equal(look("/tmp/root", S_IFDIR, TRUSTED_FILE_ROOT_ONLY), 0);
	assert_int_equal(look("/tmp/root/socket", S_IFSOCK, TRUSTED_FILE_ROOT_ONLY), 0);
	assert_int_equal(look("/tmp/open", S_IFDIR, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/tmp/user", S_IFDIR, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/tmp/user", S_IFDIR, USER), 0);
	assert_int_equal(look("/tmp/user/socket", S_IFSOCK, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/tmp/user/socket", S_IFSOCK, USER), 0);
	assert_int_equal(look("/tmp/socket", S_IFSOCK, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/tmp/link", S_IFDIR, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/tmp/none", S_IFDIR, TRUSTED_FILE_ROOT_ONLY), -EPERM);
}

/* The directory of a service's user, in one of root's. */
static void sockets_of_services(void **state)
{
	(void)state;
	put("/run", S_IFDIR | 0755, 0);
	put("/run/service", S_IFDIR | 0755, SERVICE);
	put("/run/service/socket", S_IFSOCK | 0666, SERVICE);
	put("/run/service/other", S_IFSOCK | 0666, USER);
	put("/run/service/file", S_IFREG | 0644, SERVICE);
	put("/run/service/deeper", S_IFDIR | 0755, SERVICE);
	put("/run/service/deeper/socket", S_IFSOCK | 0666, SERVICE);
	link_from("/run", "/run/service/link", SERVICE);
	put("/run/open", S_IFDIR | 0777, SERVICE);
	put("/run/open/socket", S_IFSOCK | 0666, SERVICE);
	assert_int_equal(look("/run/service/socket", S_IFSOCK, TRUSTED_FILE_ROOT_ONLY), 0);
	assert_int_equal(look("/run/service/other", S_IFSOCK, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/run/service/file", S_IFREG, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/run/service/deeper/socket", S_IFSOCK, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/run/service/link", S_IFDIR, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/run/open/socket", S_IFSOCK, TRUSTED_FILE_ROOT_ONLY), -EPERM);
}

static void links(void **state)
{
	char target[64];

	(void)state;
	put("/to", S_IFDIR | 0755, 0);
	put("/to/file", S_IFREG | 0644, 0);
	link_from("to", "/relative", 0);
	link_from("../to/file", "/to/up", 0);
	(void)snprintf(target, sizeof(target), "%s/to", scratch);
	link_from(target, "/absolute", 0);
	link_from("/loop", "/loop", 0);
	link_from("loop2", "/loop2", 0);
	put("/user", S_IFDIR | 0755, USER);
	link_from("../to", "/user/link", USER);
	link_from("to/none", "/dangling", 0);
	assert_int_equal(look("/relative/file", S_IFREG, TRUSTED_FILE_ROOT_ONLY), 0);
	assert_int_equal(look("/absolute/file", S_IFREG, TRUSTED_FILE_ROOT_ONLY), 0);
	assert_int_equal(look("/to/up", S_IFREG, TRUSTED_FILE_ROOT_ONLY), 0);
	assert_int_equal(look("/to/../to/file", S_IFREG, TRUSTED_FILE_ROOT_ONLY), 0);
	assert_int_equal(look("/loop2", S_IFREG, TRUSTED_FILE_ROOT_ONLY), -ELOOP);
	assert_int_equal(look("/user/link/file", S_IFREG, TRUSTED_FILE_ROOT_ONLY), -EPERM);
	assert_int_equal(look("/user/link/file", S_IFREG, USER), 0);
	assert_int_equal(look("/dangling", S_IFREG, TRUSTED_FILE_ROOT_ONLY), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files, set_up, scratch_unmount),
		cmocka_unit_test_setup_teardown(directories, set_up, scratch_unmount),
		cmocka_unit_test_setup_teardown(sticky, set_up, scratch_unmount),
		cmocka_unit_test_setup_teardown(sockets_of_services, set_up, scratch_unmount),
		cmocka_unit_test_setup_teardown(links, set_up, scratch_unmount),
	};
	int result;

	scratch_enter();
	result = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove();
	return result;
}
