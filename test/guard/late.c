/* SPDX-License-Identifier: Apache-2.0 */

#include "late.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	PIECE = 3 * LATE_PAGE,
	REQUEST_MAX = 256 * 1024,
	MINOR = 31, /* of the protocol, that is spoken here */
	FILE_NODE = 2,
};

#define MOUNT_POINT "/tmp"
#define FILE_NAME "late"

static char *pages, *contents;
static int keeper = -1, file = -1, pieces; /* userfaultfd or /dev/fuse; what is mapped of the latter */

/* With the process that is the file system. */
static struct shared {
	volatile bool awaited[LATE_MAX], there[LATE_MAX];
} * shared;

static _Noreturn void give_up(const char *what)
{
	(void)dprintf(STDOUT_FILENO, "# %s: %s\n", what, strerror(errno));
	_exit(3);
}

char *late_get_page(int piece)
{
	return pages + (size_t)piece * PIECE + LATE_PAGE;
}

char *late_get_contents(int piece)
{
	return contents + (size_t)piece * LATE_PAGE;
}

bool late_is_awaited(int piece)
{
	return shared->awaited[piece];
}

/* ---- userfaultfd ---- */

static void *watch_faults(void *unused)
{
	struct uffd_msg message;

	(void)unused;
	while (read(keeper, &message, sizeof(message)) == sizeof(message))
		if (message.event == UFFD_EVENT_PAGEFAULT)
			shared->awaited[(message.arg.pagefault.address - (uintptr_t)pages) / PIECE] = true;
	return NULL;
}

static void keep_by_faults(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	pthread_t thread;

	keeper = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (keeper < 0 || ioctl(keeper, UFFDIO_API, &api) < 0)
		give_up("userfaultfd");
	for (int i = 0; i < pieces; i++) {
		struct uffdio_register range = {
			.range = {.start = (uintptr_t)late_get_page(i), .len = LATE_PAGE},
			.mode = UFFDIO_REGISTER_MODE_MISSING,
		};

		if (ioctl(keeper, UFFDIO_REGISTER, &range) < 0)
			give_up("UFFDIO_REGISTER");
	}
	if (pthread_create(&thread, NULL, watch_faults, NULL) != 0)
		give_up("a thread");
}

/* ---- a FUSE file system with one file ---- */

static uint64_t asked[LATE_MAX]; /* for a page, by which request; 0: by none */

static void answer(uint64_t request, int error, const void *data, size_t size)
{
	struct fuse_out_header header = {.len = (uint32_t)(sizeof(header) + size), .error = -error, .unique = request};
	const struct iovec parts[] = {{&header, sizeof(header)}, {(void *)(uintptr_t)data, size}};

	/* Who asked may have been killed. */
	(void)!writev(keeper, parts, size > 0 ? 2 : 1);
}

static struct fuse_attr attributes_of(uint64_t node)
{
	const bool is_file = node == FILE_NODE;

	return (struct fuse_attr){
		.ino = node,
		.size = is_file ? (uint64_t)pieces * LATE_PAGE : 0,
		.mode = is_file ? S_IFREG | 0600 : S_IFDIR | 0700,
		.nlink = 1,
		.blksize = LATE_PAGE,
	};
}

static void note_page(uint64_t request, uint64_t piece)
{
	if (piece >= (uint64_t)pieces) {
		answer(request, 0, NULL, 0);
		return;
	}
	asked[piece] = request;
	if (!shared->there[piece])
		shared->awaited[piece] = true;
}

static void answer_pages(void)
{
	for (int i = 0; i < pieces; i++)
		if (asked[i] && shared->there[i]) {
			answer(asked[i], 0, late_get_contents(i), LATE_PAGE);
			asked[i] = 0;
		}
}

static void answer_request(const struct fuse_in_header *in, const void *data)
{
	const struct fuse_init_in *init = data;
	const struct fuse_read_in *part = data;
	const struct fuse_open_out opened = {0};

	switch (in->opcode) {
	case FUSE_INIT: {
		const struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
						  .minor = init->minor < MINOR ? init->minor : MINOR,
						  .max_write = LATE_PAGE,
						  .time_gran = 1};

		answer(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_LOOKUP: {
		const struct fuse_entry_out out = {
			.nodeid = FILE_NODE, .entry_valid = 3600, .attr_valid = 3600, .attr = attributes_of(FILE_NODE)};

		answer(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_GETATTR: {
		const struct fuse_attr_out out = {.attr_valid = 3600, .attr = attributes_of(in->nodeid)};

		answer(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_OPEN:
		answer(in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		note_page(in->unique, part->offset / LATE_PAGE);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(in->unique, ENOSYS, NULL, 0);
	}
}

/* A process of its own, and the only one that can end the wait of one that was killed. */
static _Noreturn void serve_file(void)
{
	static char request[REQUEST_MAX] __attribute__((aligned(8)));
	struct pollfd asks = {.fd = keeper, .events = POLLIN};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		ssize_t size = poll(&asks, 1, 1) > 0 ? read(keeper, request, sizeof(request)) : 0;

		if (size < 0 && errno == ENODEV)
			_exit(0);
		if (size >= (ssize_t)sizeof(struct fuse_in_header))
			answer_request((void *)request, request + sizeof(struct fuse_in_header));
		answer_pages();
	}
}

/* It goes with the process, which has a mount namespace of its own. */
static void mount_file_system(void)
{
	char options[96];

	keeper = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (keeper < 0 || unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		give_up("/dev/fuse");
	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40700,user_id=0,group_id=0", keeper);
	if (mount("late", MOUNT_POINT, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		give_up("mounting a FUSE file system");
}

/* One page at a time, as each has to be waited for. */
static void keep_by_file(void)
{
	pid_t server;

	mount_file_system();
	server = fork();
	if (server == 0)
		serve_file();
	if (server < 0)
		give_up("a process");
	(void)close(keeper);
	/* The kernel learns that nobody is told of a close, so that nobody waits for it. */
	(void)close(open(MOUNT_POINT "/" FILE_NAME, O_RDONLY | O_CLOEXEC));
	file = open(MOUNT_POINT "/" FILE_NAME, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		give_up("a file of a FUSE file system");
	for (int i = 0; i < pieces; i++)
		if (mmap(late_get_page(i), LATE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file,
			 (off_t)i * LATE_PAGE) == MAP_FAILED ||
		    madvise(late_get_page(i), LATE_PAGE, MADV_RANDOM) < 0)
			give_up("mapping a file of a FUSE file system");
}

/* Whoever looks for it without waiting finds it. */
static void bring_page_of_file(int piece)
{
	shared->there[piece] = true;
	(void)*(volatile char *)late_get_page(piece);
}

/* ---- both ---- */

void late_new(int count, bool by_file)
{
	pieces = count;
	pages = mmap(NULL, (size_t)count * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	contents = mmap(NULL, (size_t)count * LATE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || contents == MAP_FAILED || shared == MAP_FAILED)
		give_up("mmap");
	if (by_file)
		keep_by_file();
	else
		keep_by_faults();
}

void late_bring(int piece)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)late_get_page(piece),
		.src = (uintptr_t)late_get_contents(piece),
		.len = LATE_PAGE,
	};

	if (file >= 0)
		bring_page_of_file(piece);
	else
		(void)ioctl(keeper, UFFDIO_COPY, &copy);
}

void late_take(int piece)
{
	shared->there[piece] = false;
	(void)madvise(late_get_page(piece), LATE_PAGE, MADV_DONTNEED);
	if (file >= 0)
		(void)posix_fadvise(file, (off_t)piece * LATE_PAGE, LATE_PAGE, POSIX_FADV_DONTNEED);
}
