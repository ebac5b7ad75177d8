/* SPDX-License-Identifier: Apache-2.0 */

/*
 * dxgtest ADAPTERS COMPUTE-ONLY: walks the ioctls of /dev/dxg as a program does that knows them only from the kernel's
 * published header, and prints TAP. dxgtest --bench N and --many N measure. Structures are bytes at offsets, and codes are
 * computed with _IOWR(): nothing is shared with what is tested.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CODE(number, size) ((unsigned)_IOC(_IOC_READ | _IOC_WRITE, 0x47, (number), (size)))
#define OPEN_FROM_LUID CODE(0x01, 12)
#define QUERY CODE(0x09, 24)
#define ENUM2 CODE(0x14, 16)
#define CLOSE CODE(0x15, 4)
#define ENUM3 CODE(0x3e, 24)
#define CREATE_DEVICE CODE(0x02, 64)
#define ESCAPE CODE(0x0d, 32)
#define DESTROY_DEVICE CODE(0x19, 4)
#define STATISTICS CODE(0x43, 0x328)
#define PROCESSES CODE(0x48, 24)
#define FEATURE CODE(0x49, 12)

enum { INFO_SIZE = 20, MOST = 64, REGISTRY_SIZE = 552 };

static int tests, failures;

__attribute__((format(printf, 2, 3))) static void check(bool good, const char *format, ...)
{
	va_list arguments;

	printf("%sok %d - ", good ? "" : "not ", ++tests);
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	if (!good) {
		printf("# errno %d (%s)\n", errno, strerror(errno));
		failures++;
	}
}

static uint32_t get(const void *bytes, size_t offset)
{
	uint32_t value;

	memcpy(&value, (const char *)bytes + offset, sizeof(value));
	return value;
}

static void put(void *bytes, size_t offset, uint64_t value, size_t size)
{
	memcpy((char *)bytes + offset, &value, size);
}

static int device(void)
{
	int fd = open("/dev/dxg", O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		printf("Bail out! /dev/dxg: %s\n", strerror(errno));
		exit(1);
	}
	return fd;
}

static bool fails(int result, int error)
{
	return result == -1 && errno == error;
}

/* Return: as ioctl(); *count in and out. */
static int enum2(int fd, uint32_t *count, void *infos)
{
	char args[16] = {0};
	int result;

	put(args, 0, *count, 4);
	put(args, 8, (uintptr_t)infos, 8);
	result = ioctl(fd, ENUM2, args);
	*count = get(args, 0);
	return result;
}

static int enum3(int fd, uint64_t filter, uint32_t *count, void *infos)
{
	char args[24] = {0};
	int result;

	put(args, 0, filter, 8);
	put(args, 8, *count, 4);
	put(args, 16, (uintptr_t)infos, 8);
	result = ioctl(fd, ENUM3, args);
	*count = get(args, 8);
	return result;
}

static int query(int fd, uint32_t handle, uint32_t type, void *data, uint32_t size)
{
	char args[24] = {0};

	put(args, 0, handle, 4);
	put(args, 4, type, 4);
	put(args, 8, (uintptr_t)data, 8);
	put(args, 16, size, 4);
	return ioctl(fd, QUERY, args);
}

static int close_adapter(int fd, uint32_t handle)
{
	return ioctl(fd, CLOSE, &handle);
}

static void test_enum2(int fd, uint32_t total, uint32_t compute_only)
{
	char infos[MOST * INFO_SIZE] = {0};
	uint32_t count = 5;

	check(enum2(fd, &count, NULL) == 0 && count == total, "EnumAdapters2 without a buffer counts %u", total);
	count = MOST;
	check(enum2(fd, &count, infos) == 0 && count == total - compute_only,
	      "EnumAdapters2 leaves out the compute-only ones");
	for (uint32_t i = 0; i < count; i++)
		check(get(infos, i * INFO_SIZE) >> 30 && !close_adapter(fd, get(infos, i * INFO_SIZE)),
		      "handle %u can be closed", i);
	count = MOST + 1;
	check(fails(enum2(fd, &count, infos), EINVAL), "EnumAdapters2 refuses room for more than %d", MOST);
	if (total > 0) {
		count = total - 1;
		check(fails(enum2(fd, &count, infos), EOVERFLOW) && count == total - 1,
		      "EnumAdapters2 with too little room: EOVERFLOW");
	}
	count = MOST;
	check(enum2(fd, &count, (void *)8) == -1 ? errno == EFAULT : count == 0, "EnumAdapters2 into nowhere: EFAULT");
	check(fails(ioctl(fd, ENUM2, (void *)8), EFAULT), "EnumAdapters2 from nowhere: EFAULT");
}

static void test_enum3(int fd, uint32_t total, uint32_t compute_only)
{
	char infos[(MOST + 1) * INFO_SIZE] = {0};
	uint32_t count = 0;

	check(enum3(fd, 0, &count, infos) == 0 && count == total, "EnumAdapters3 for none counts %u", total);
	count = MOST + 1;
	check(enum3(fd, 0, &count, infos) == 0 && count == total - compute_only, "EnumAdapters3 without filter bits");
	for (uint32_t i = 0; i < count; i++)
		(void)close_adapter(fd, get(infos, i * INFO_SIZE));
	count = MOST;
	check(enum3(fd, 1, &count, infos) == 0 && count == total, "EnumAdapters3 with compute-only ones");
	for (uint32_t i = 0; i < count; i++)
		(void)close_adapter(fd, get(infos, i * INFO_SIZE));
	count = 0x10000;
	check(fails(enum3(fd, 0, &count, infos), EINVAL), "EnumAdapters3 refuses room for 65536");
	if (total > 1) {
		memset(infos, 0, sizeof(infos));
		count = 1;
		check(enum3(fd, 1, &count, infos) == 0 && count == total && get(infos, 0) == 0,
		      "EnumAdapters3 with too little room: success, a count, and no list");
	}
}

static void test_codes(int fd)
{
	char args[64] = {0};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	check(fails(ioctl(fd, CODE(0x14, 24), args), ENOTTY), "a code of the wrong size: ENOTTY");
	check(fails(ioctl(fd, (unsigned)_IOC(_IOC_READ, 0x47, 0x14, 16), args), ENOTTY),
	      "a code of the wrong direction: ENOTTY");
	check(fails(ioctl(fd, CODE(0x7f, 16), args), ENOTTY), "an unknown code: ENOTTY");
	check(fails(ioctl(null, ENUM2, args), ENOTTY), "another device's own answer comes through");
	check(fails(ioctl(999, ENUM2, args), EBADF) && fails(ioctl(-1, ENUM2, args), EBADF), "no file: EBADF");
	(void)close(null);
}

static void test_sizes(int fd, uint32_t handle)
{
	static char big[128 * 1024 + 1];
	uint32_t four[2] = {0};
	bool good = query(fd, handle, 13, four, 4) == 0;

	check(good && four[0] >= 1000, "DRIVERVERSION is %u", four[0]);
	check(fails(query(fd, handle, 13, four, 8), EINVAL), "DRIVERVERSION of 8 bytes: EINVAL");
	check(fails(query(fd, handle, 13, four, 0), EINVAL), "0 bytes: EINVAL");
	check(fails(query(fd, handle, 48, big, sizeof(big)), EINVAL), "more than 128 KiB: EINVAL");
	check(fails(query(fd, handle, 48, big, sizeof(big) - 1), EINVAL), "128 KiB leave no room for a header: EINVAL");
	memset(big, 0, sizeof(big));
	put(big, 0, 2, 4);
	check(query(fd, handle, 48, big, 127 * 1024) == 0 && get(big, 540) == 0, "127 KiB are accepted");
	check(fails(query(fd, handle, 9999, four, 4), EINVAL), "an unknown query: EINVAL");
	check(fails(query(fd, handle + (500u << 6), 13, four, 4), EINVAL), "an unknown handle: EINVAL");
	check(fails(query(fd, handle ^ 1u << 30, 13, four, 4), EINVAL), "a handle with other unique bits: EINVAL");
	check(query(fd, handle | 0x3f, 13, four, 4) == 0, "a handle with other instance bits: the same");
	check(fails(query(fd, handle, 13, (void *)8, 4), EFAULT), "into nowhere: EFAULT");
}

static void test_read_only(int fd, uint32_t handle)
{
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(fails(query(fd, handle, 13, page, 4), EFAULT) && get(page, 0) == 0,
	      "into memory that is for reading: EFAULT");
	check(fails(ioctl(fd, ENUM2, page), EFAULT) && get(page, 0) == 0, "and of arguments");
	(void)munmap(page, 4096);
}

static void test_versions(int fd, uint32_t handle)
{
	uint32_t wddm = 0, caps = 0;
	uint16_t service[260];
	uint64_t umd = 0, kmd = 0;

	(void)query(fd, handle, 13, &wddm, 4);
	check(query(fd, handle, 18, &umd, 8) == 0 && query(fd, handle, 49, &kmd, 8) == 0 && umd && umd == kmd,
	      "UMD_DRIVER_VERSION and KMD_DRIVER_VERSION");
	check(query(fd, handle, 69, service, sizeof(service)) == 0 && service[0] && service[259] == 0, "SERVICENAME");
	check(wddm < 2700 ? fails(query(fd, handle, 70, &caps, 4), EINVAL)
			  : query(fd, handle, 70, &caps, 4) == 0 && caps,
	      "WDDM_2_7_CAPS of WDDM 2.7");
	check(wddm < 2900 ? fails(query(fd, handle, 75, &caps, 4), EINVAL)
			  : query(fd, handle, 75, &caps, 4) == 0 && caps,
	      "WDDM_2_9_CAPS of WDDM 2.9");
}

static void test_umd_name(int fd, uint32_t handle)
{
	static const char suffix[] = ".so";
	char info[524] = {3};
	uint16_t letter;
	size_t length = 0;
	bool good = query(fd, handle, 1, info, sizeof(info)) == 0, ends;

	do
		memcpy(&letter, info + 4 + 2 * length++, 2);
	while (letter);
	ends = length > 4;
	for (size_t i = 0; i < 3 && ends; i++)
		ends = info[4 + 2 * (length - 4 + i)] == suffix[i];
	check(good ? ends : errno == EINVAL, "UMDRIVERNAME: a library, or there is none");
	put(info, 0, 4, 4);
	check(fails(query(fd, handle, 1, info, sizeof(info)), EINVAL), "UMDRIVERNAME of an unknown Direct3D: EINVAL");
}

static void test_facts(int fd, uint32_t handle)
{
	uint32_t type, ids[7] = {0}, address[3];
	uint16_t name[4096];
	bool good;

	check(query(fd, handle, 15, &type, 4) == 0 && type & 1u << 7, "ADAPTERTYPE says paravirtualized");
	check((type & (1u << 1 | 1u << 3 | 1u << 6 | 1u << 8 | 1u << 9)) == 0, "ADAPTERTYPE says nothing of displays");
	check((type & (1u << 0 | 1u << 11)) != 0, "ADAPTERTYPE says render or compute");
	good = query(fd, handle, 31, ids, 28) == 0;
	check(good && ids[1] != 0, "PHYSICALADAPTERDEVICEIDS is %04x:%04x", ids[1], ids[2]);
	ids[0] = 1;
	check(fails(query(fd, handle, 31, ids, 28), EINVAL), "there is no second physical adapter");
	check(query(fd, handle, 6, address, 12) == 0 || errno == EINVAL, "ADAPTERADDRESS");
	check(query(fd, handle, 65, name, 8192) == 0 && name[0] != 0 && name[4095] == 0, "DRIVER_DESCRIPTION");
	check(fails(query(fd, handle, 65, name, 8190), EINVAL), "DRIVER_DESCRIPTION of another size: EINVAL");
}

static void test_registry_keys(int fd, uint32_t handle)
{
	static const char name[] = "DriverDesc";
	char info[REGISTRY_SIZE + 1024] = {0};

	put(info, 0, 1, 4);
	check(query(fd, handle, 48, info, sizeof(info)) == 0 && get(info, 540) == 2,
	      "a value that the adapter's key lacks: status 2");
	for (size_t i = 0; i < sizeof(name); i++)
		put(info, 8 + 2 * i, (unsigned char)name[i], 2);
	check(query(fd, handle, 48, info, sizeof(info)) == 0 && get(info, 540) == 0, "one that it has");
	put(info, 0, 0, 4);
	check(query(fd, handle, 48, info, sizeof(info)) == 0 && get(info, 540) == 2,
	      "and that the service's key lacks");
	put(info, 0, 3, 4);
	check(query(fd, handle, 48, info, sizeof(info)) == 0 && get(info, 540) == 0, "the path of the driver's image");
	put(info, 0, 4, 4);
	check(fails(query(fd, handle, 48, info, sizeof(info)), EINVAL), "an unknown kind of value: EINVAL");
}

static void test_registry(int fd, uint32_t handle)
{
	char info[REGISTRY_SIZE + 1024] = {0};
	uint32_t needed;
	uint16_t letter;

	put(info, 0, 2, 4);
	check(query(fd, handle, 48, info, REGISTRY_SIZE) == 0, "QUERYREGISTRY with too little room succeeds");
	needed = get(info, 536);
	check(get(info, 540) == 1 && needed > 40 && needed < 1024, "its status is an overflow, its size %u", needed);
	check(query(fd, handle, 48, info, REGISTRY_SIZE + needed) == 0 && get(info, 540) == 0,
	      "with as much room it succeeds");
	memcpy(&letter, info + 544 + needed - 2, 2);
	check(letter == 0, "the path ends where the size says");
	memcpy(&letter, info + 544, 2);
	check(letter == 'C' || letter == '\\', "the path is one of Windows");
	put(info, 4, 1, 4);
	check(fails(query(fd, handle, 48, info, REGISTRY_SIZE), EINVAL), "the store path takes no flags");
	put(info, 4, 0, 4);
	check(fails(query(fd, handle, 48, info, REGISTRY_SIZE - 1), EINVAL), "less than the structure: EINVAL");
	test_registry_keys(fd, handle);
}

static void test_handles(int fd, const char *info)
{
	char args[12];
	uint32_t version, handle;

	memcpy(args, info + 4, 8);
	check(ioctl(fd, OPEN_FROM_LUID, args) == 0, "OpenAdapterFromLuid");
	handle = get(args, 8);
	check(handle != get(info, 0) && query(fd, handle, 13, &version, 4) == 0, "gives a handle of its own");
	check(close_adapter(fd, handle) == 0, "which can be closed");
	check(fails(close_adapter(fd, handle), EINVAL), "once");
	check(fails(query(fd, handle, 13, &version, 4), EINVAL), "and is no handle then");
	put(args, 4, 0x7fffffff, 4);
	check(ioctl(fd, OPEN_FROM_LUID, args) == 0 && get(args, 8) == handle,
	      "OpenAdapterFromLuid of another LUID looks at the handle");
	put(args, 8, 0, 4);
	check(fails(ioctl(fd, OPEN_FROM_LUID, args), EINVAL), "without one: EINVAL");
	check(close_adapter(fd, 0) == 0, "to close 0 is nothing");
}

static void test_reuse(int fd, const char *info)
{
	static uint32_t handles[2000];
	char args[12];
	bool good = true;

	memcpy(args, info + 4, 8);
	for (size_t i = 0; i < 2000 && good; i++) {
		good = ioctl(fd, OPEN_FROM_LUID, args) == 0;
		handles[i] = get(args, 8);
	}
	check(good && handles[0] != handles[1999], "2000 handles at once");
	for (size_t i = 0; i < 2000 && good; i++)
		good = close_adapter(fd, handles[i]) == 0;
	check(good && ioctl(fd, OPEN_FROM_LUID, args) == 0 && get(args, 8) != handles[1999] &&
		      get(args, 8) != handles[0],
	      "what was closed is used again last");
	(void)close_adapter(fd, get(args, 8));
}

/* What nvidia-smi, ROCm and Intel's driver call next. */
static void test_device(int fd, const char *info)
{
	char args[64] = {0}, statistics[0x328] = {0}, processes[24] = {0};
	uint32_t device, pid = 0;

	put(args, 0, get(info, 0), 4);
	check(ioctl(fd, CREATE_DEVICE, args) == 0 && get(args, 12) != 0, "CreateDevice");
	device = get(args, 12);
	check(ioctl(fd, DESTROY_DEVICE, &device) == 0, "DestroyDevice");
	device = 0;
	check(fails(ioctl(fd, DESTROY_DEVICE, &device), EINVAL), "DestroyDevice of none: EINVAL");
	check(ioctl(fd, ESCAPE, args) == 0 && ioctl(fd, FEATURE, args) == 0, "Escape and IsFeatureEnabled");
	memcpy(statistics + 4, info + 4, 8);
	check(ioctl(fd, STATISTICS, statistics) == 0, "QueryStatistics");
	memcpy(processes, info + 4, 8);
	put(processes, 8, (uintptr_t)&pid, 8);
	put(processes, 16, 1, 8);
	check(ioctl(fd, PROCESSES, processes) == 0 && get(processes, 16) == 1 && pid == (uint32_t)getpid(),
	      "EnumProcesses");
	put(args, 0, 0, 4);
	check(fails(ioctl(fd, CREATE_DEVICE, args), EINVAL) && fails(ioctl(fd, ESCAPE, args), EINVAL) &&
		      fails(ioctl(fd, FEATURE, args), EINVAL),
	      "without an adapter's handle: EINVAL");
}

/* Runs @body in a child and checks that it returned true there. */
static void check_in_child(bool (*body)(int fd, uint32_t handle), int fd, uint32_t handle, const char *what)
{
	int status;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(body(fd, handle) ? 0 : 1);
	(void)waitpid(pid, &status, 0);
	check(status == 0, "%s", what);
}

static bool child_inherits(int fd, uint32_t handle)
{
	uint32_t version, count = MOST;
	char infos[MOST * INFO_SIZE];

	return fails(query(fd, handle, 13, &version, 4), ENOTTY) && fails(enum2(fd, &count, infos), ENOTTY);
}

static bool child_reopens(int fd, uint32_t handle)
{
	uint32_t version, count = 0;
	int own = device();

	return fails(query(fd, handle, 13, &version, 4), ENOTTY) && enum2(own, &count, NULL) == 0 &&
	       fails(query(own, handle, 13, &version, 4), EINVAL);
}

/* Handles end with the last of the process's files, and start again at 40000000. */
static bool child_ends_handles(int fd, uint32_t handle)
{
	char infos[MOST * INFO_SIZE];
	uint32_t count = MOST, version, first;
	int one = device(), other = device();

	(void)fd;
	(void)handle;
	if (enum3(one, 1, &count, infos) != 0 || count == 0 || get(infos, 0) != 0x40000000 ||
	    enum2(other, &count, NULL) != 0)
		return count == 0;
	first = get(infos, 0);
	(void)close(one);
	if (query(other, first, 13, &version, 4) != 0)
		return false;
	(void)close(other);
	one = device();
	return fails(query(one, first, 13, &version, 4), EINVAL) && enum3(one, 1, &count, infos) == 0 &&
	       get(infos, 0) == first;
}

static bool child_of_child_inherits(int fd, uint32_t handle)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(child_inherits(fd, handle) ? 0 : 1);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static bool child_executes(int fd, uint32_t handle)
{
	char number[16];
	uint32_t count = 0;
	int own = open("/dev/dxg", O_RDONLY);

	(void)fd;
	(void)handle;
	if (enum2(own, &count, NULL) != 0)
		return false;
	(void)snprintf(number, sizeof(number), "%d", own);
	(void)execl("/proc/self/exe", "dxgtest", "--count", number, NULL);
	return false;
}

static void *thread_queries(void *fd)
{
	uint32_t count = 0;

	return enum2(*(int *)fd, &count, NULL) == 0 ? fd : NULL;
}

static bool child_threads(int fd, uint32_t handle)
{
	pthread_t thread;
	int own = device(), copy = dup(own);
	void *result = NULL;
	uint32_t count = 0;

	(void)fd;
	(void)handle;
	return pthread_create(&thread, NULL, thread_queries, &copy) == 0 && pthread_join(thread, &result) == 0 &&
	       result && enum2(own, &count, NULL) == 0;
}

static bool child_is_passed_one(int fd, uint32_t handle)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec data = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	uint32_t count = 0;
	int passed;

	(void)handle;
	if (recvmsg(fd, &message, 0) != 1)
		return false;
	memcpy(&passed, CMSG_DATA(&control.header), sizeof(passed));
	return fails(enum2(passed, &count, NULL), ENOTTY);
}

static void test_passing(void)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	char byte = 0;
	struct iovec data = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	uint32_t count = 0;
	int sockets[2], fd, status;
	pid_t pid;

	(void)fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) < 0)
		return;
	pid = fork();
	if (pid == 0)
		_exit(child_is_passed_one(sockets[1], 0) ? 0 : 1);
	fd = device();
	(void)enum2(fd, &count, NULL);
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	(void)sendmsg(sockets[0], &message, 0);
	(void)waitpid(pid, &status, 0);
	check(status == 0, "a descriptor passed to another process: ENOTTY");
	(void)close(fd);
	(void)close(sockets[0]);
	(void)close(sockets[1]);
}

static void test_processes(int fd, uint32_t handle)
{
	int fresh = device();
	uint32_t count = 0;
	bool good = true;

	check_in_child(child_inherits, fd, handle, "a child's call on its parent's descriptor: ENOTTY");
	check_in_child(child_inherits, fresh, handle, "also when its parent has not used it");
	check_in_child(child_of_child_inherits, fd, handle, "and so a grandchild's");
	check_in_child(child_reopens, fd, handle, "a child's own descriptor works, and has no handles of its parent");
	check_in_child(child_ends_handles, fd, handle, "handles end with the last of a process's files");
	check_in_child(child_executes, fd, handle, "a descriptor survives execve()");
	check_in_child(child_threads, fd, handle, "threads and duplicates are of the same process");
	check(enum2(fresh, &count, NULL) == 0, "the parent's descriptor still works");
	test_passing();
	for (int i = 0; i < 300 && good; i++) {
		int again = device();

		good = enum2(again, &count, NULL) == 0;
		(void)close(again);
	}
	check(good, "300 times opened and closed");
	(void)close(fresh);
}

static void many_child(int calls)
{
	char infos[MOST * INFO_SIZE];
	int fd = device();

	for (int i = 0; i < calls; i++) {
		uint32_t count = MOST, version;

		if (enum2(fd, &count, infos) != 0)
			_exit(1);
		for (uint32_t j = 0; j < count; j++)
			if (query(fd, get(infos, j * INFO_SIZE), 13, &version, 4) != 0 ||
			    close_adapter(fd, get(infos, j * INFO_SIZE)) != 0)
				_exit(2);
	}
	_exit(0);
}

/* Return: whether all of @processes at once got all their answers. */
static bool many(int processes, int calls)
{
	bool good = true;
	int status;

	(void)fflush(stdout);
	for (int i = 0; i < processes; i++)
		if (fork() == 0)
			many_child(calls);
	for (int i = 0; i < processes; i++)
		good = wait(&status) > 0 && status == 0 && good;
	return good;
}

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int bench(int calls)
{
	char infos[MOST * INFO_SIZE];
	uint32_t count = MOST, version;
	int fd = device(), first;
	double start = now();

	first = enum2(fd, &count, infos);
	printf("first call %.1f us\n", now() - start);
	start = now();
	for (int i = 0; i < calls; i++)
		first |= query(fd, get(infos, 0), 13, &version, 4);
	printf("query %.2f us\n", (now() - start) / calls);
	start = now();
	for (int i = 0; i < calls; i++)
		(void)ioctl(fd, 0x5401, &version);
	printf("ioctl that is not trapped %.2f us\n", (now() - start) / calls);
	return first ? 1 : 0;
}

static int walk(uint32_t total, uint32_t compute_only)
{
	char infos[MOST * INFO_SIZE] = {0};
	uint32_t count = MOST;
	int fd = device();

	test_enum2(fd, total, compute_only);
	test_enum3(fd, total, compute_only);
	test_codes(fd);
	check(enum3(fd, 1, &count, infos) == 0 && count == total, "one handle for each");
	for (uint32_t i = 0; i < count; i++) {
		uint32_t handle = get(infos, i * INFO_SIZE);

		test_sizes(fd, handle);
		test_read_only(fd, handle);
		test_facts(fd, handle);
		test_versions(fd, handle);
		test_umd_name(fd, handle);
		test_registry(fd, handle);
		test_handles(fd, infos + i * INFO_SIZE);
		test_reuse(fd, infos + i * INFO_SIZE);
		test_device(fd, infos + i * INFO_SIZE);
	}
	test_processes(fd, get(infos, 0));
	check(many(64, 50), "64 processes at once");
	printf("1..%d\n", tests);
	return failures ? 1 : 0;
}

int main(int argc, char **argv)
{
	uint32_t count = 0;

	if (argc == 3 && strcmp(argv[1], "--count") == 0)
		return enum2(atoi(argv[2]), &count, NULL) == 0 ? 0 : 1;
	if (argc == 3 && strcmp(argv[1], "--bench") == 0)
		return bench(atoi(argv[2]));
	if (argc == 3 && strcmp(argv[1], "--many") == 0)
		return many(64, atoi(argv[2])) ? 0 : 1;
	if (argc != 3) {
		(void)fprintf(stderr, "usage: dxgtest ADAPTERS COMPUTE-ONLY\n");
		return 2;
	}
	return walk((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]));
}
