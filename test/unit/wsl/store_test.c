/* SPDX-License-Identifier: Apache-2.0 */

/* What a driver may say of its store, and what must not be believed. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include <errno.h>

#include "wsl/internal.h"

#define STORE "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_4ac8a5f5c1b3b3ab"

static const struct {
	const char *told, *path; /* NULL: refused */
} cases[] = {
	{"\\SystemRoot\\System32\\DriverStore\\FileRepository\\nv_dispi.inf_amd64_4ac8a5f5c1b3b3ab", STORE},
	{"C:\\WINDOWS\\System32\\DriverStore\\FileRepository\\nv_dispi.inf_amd64_4ac8a5f5c1b3b3ab", STORE},
	{"C:\\Windows\\System32\\HostDriverStore\\FileRepository\\nv_dispi.inf_amd64_4ac8a5f5c1b3b3ab\\", STORE},
	{"C:\\windows\\system32\\driverstore\\FILEREPOSITORY\\nv_dispi.inf_amd64_4ac8a5f5c1b3b3ab", STORE},
	{"C:/Windows/System32/DriverStore/filerepository/nv_dispi.inf_amd64_4ac8a5f5c1b3b3ab", STORE},
	{STORE, STORE},
	{STORE "/", STORE},
	{"\\FileRepository\\u0198975.inf_amd64_0123\\B198521", "/usr/lib/wsl/drivers/u0198975.inf_amd64_0123/B198521"},
	{"\\FileRepository\\\303\244.inf", "/usr/lib/wsl/drivers/\303\244.inf"},
	{"\\FileRepository\\...inf", "/usr/lib/wsl/drivers/...inf"},

	{"", NULL},
	{"nv_dispi.inf_amd64_4ac8a5f5c1b3b3ab", NULL},
	{"C:\\Windows\\System32", NULL},
	{"/usr/lib/wsl/lib", NULL},
	{"/usr/lib/wsl/drivers", NULL},
	{"/usr/lib/wsl/drivers/", NULL},
	{"/usr/lib/wsl/drivers//x", NULL},
	{"/usr/lib/wsl/driversx/y", NULL},
	{"/usr/lib/wsl/drivers/..", NULL},
	{"/usr/lib/wsl/drivers/../../../../etc", NULL},
	{"/usr/lib/wsl/drivers/x/../../lib", NULL},
	{"/usr/lib/wsl/drivers/.", NULL},
	{"/etc", NULL},
	{"\\FileRepository", NULL},
	{"\\FileRepository\\", NULL},
	{"\\FileRepository\\\\x", NULL},
	{"\\FileRepository\\..\\x", NULL},
	{"\\FileRepository\\x\\..", NULL},
	{"\\FileRepository\\x/..\\y", NULL},
	{"\\FileRepositoryx\\y", NULL},
	{"xFileRepository\\y", NULL},
	{"\\FileRepository\\x:/etc", NULL},
	{"\\FileRepository\\x\ny", NULL},
	{"\\FileRepository\\x\033[2Jy", NULL},
	{"\\FileRepository\\x\302\2332Jy", NULL},
	{"\\FileRepository\\x\342\200\256y", NULL},
	{"\\FileRepository\\x\377y", NULL},
};

static void finds_the_directory(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *path = NULL;
		int r = store_directory(cases[i].told, &path);

		if (r != (cases[i].path ? 0 : -EINVAL))
			print_error("case %zu: %s\n", i, cases[i].told);
		assert_int_equal(r, cases[i].path ? 0 : -EINVAL);
		if (cases[i].path)
			assert_string_equal(path, cases[i].path);
		else
			assert_null(path);
	}
}

static enum store_content look(const char *path)
{
	struct adapter adapter = {0};
	enum store_content content = store_look(path, &adapter.store);

	adapter_clear(&adapter);
	return content;
}

static void looks_for_a_library(void **state)
{
	char store[] = "/tmp/store_test-XXXXXX";
	struct adapter adapter = {0};
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(look("/etc/passwd"), STORE_MISSING);
	assert_int_equal(look("/nonexistent"), STORE_MISSING);
	assert_non_null(mkdtemp(store));
	fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(look(store), STORE_WITHOUT_LIBRARY);
	assert_int_equal(mkdirat(fd, "libx.so", 0700), 0);
	assert_int_equal(close(openat(fd, "npu.dll", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_int_equal(look(store), STORE_WITHOUT_LIBRARY);
	/* As AMD's B025777/amdxc64.so. */
	assert_int_equal(close(openat(fd, "libx.so/amdxc64.so", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	assert_int_equal(look(store), STORE_HAS_LIBRARY);
	assert_int_equal(unlinkat(fd, "libx.so/amdxc64.so", 0), 0);
	assert_int_equal(symlinkat("nowhere", fd, "libcuda.so.1.1"), 0);
	assert_int_equal(store_look(store, &adapter.store), STORE_HAS_LIBRARY);
	assert_true(adapter.store.is_read && !adapter.store.has_smi && !adapter.store.has_outside_link);
	assert_int_equal(adapter.store.libraries.count, 1);
	assert_string_equal(adapter.store.libraries.items[0], "libcuda.so.1.1");
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(adapter.store.inode == st.st_ino && adapter.store.device == st.st_dev);
	adapter_clear(&adapter);
	assert_int_equal(symlinkat("../nowhere", fd, "nvidia-smi"), 0);
	assert_int_equal(store_look(store, &adapter.store), STORE_HAS_LIBRARY);
	assert_true(adapter.store.is_read && adapter.store.has_smi && adapter.store.has_outside_link);
	adapter_clear(&adapter);
	assert_int_equal(unlinkat(fd, "nvidia-smi", 0), 0);
	assert_int_equal(unlinkat(fd, "libcuda.so.1.1", 0), 0);
	assert_int_equal(unlinkat(fd, "npu.dll", 0), 0);
	assert_int_equal(unlinkat(fd, "libx.so", AT_REMOVEDIR), 0);
	(void)close(fd);
	assert_int_equal(rmdir(store), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_directory),
		cmocka_unit_test(looks_for_a_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
