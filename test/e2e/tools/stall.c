/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file system (FUSE) that stops answering: stall DIRECTORY NAME. Every name is there, libraries and nvidia-smi as empty
 * files, all others as directories, and none can be changed; but whoever looks for NAME waits for ever. The kernel holds that
 * process so that even SIGKILL does not end it. Goes into the background once it is mounted, and ends when it is unmounted or
 * killed; then whoever waited gets an error.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILE_BIT = 1 << 20 }; /* of node numbers */

static const char *stalling;

static void answer(int fd, uint64_t unique, int error, const void *data, size_t size)
{
	struct fuse_out_header header = {.len = (uint32_t)(sizeof(header) + size), .error = -error, .unique = unique};
	struct iovec parts[] = {{&header, sizeof(header)}, {(void *)data, size}};

	(void)!writev(fd, parts, size > 0 ? 2 : 1);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node & FILE_BIT ? S_IFREG | 0644 : S_IFDIR | 0755,
		.nlink = 1,
		.blksize = 4096,
	};
}

/* The same for the same name, or the kernel takes away what is mounted there. */
static uint64_t node_of(uint64_t parent, const char *name)
{
	uint64_t node = parent + 2;

	for (const char *at = name; *at; at++)
		node = node * 1099511628211U + (unsigned char)*at;
	return strstr(name, ".so.") || strcmp(name, "nvidia-smi") == 0 ? node | FILE_BIT : node & ~(uint64_t)FILE_BIT;
}

static void look_up(int fd, const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = {.nodeid = node_of(in->nodeid, name), .generation = 1};

	if (strcmp(name, stalling) == 0)
		return;
	out.attr = attributes(out.nodeid);
	answer(fd, in->unique, 0, &out, sizeof(out));
}

static void serve(int fd, const struct fuse_in_header *in)
{
	const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
					   .minor = FUSE_KERNEL_MINOR_VERSION,
					   .max_write = 4096,
					   .max_readahead = 4096};
	const struct fuse_attr_out attr = {.attr = attributes(in->nodeid)};
	const struct fuse_open_out open_out = {.fh = 1};
	const struct fuse_statfs_out statfs_out = {.st = {.bsize = 4096, .frsize = 4096, .namelen = 255}};

	switch (in->opcode) {
	case FUSE_INIT:
		return answer(fd, in->unique, 0, &init, sizeof(init));
	case FUSE_LOOKUP:
		return look_up(fd, in, (const char *)(in + 1));
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		return answer(fd, in->unique, 0, &attr, sizeof(attr));
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return answer(fd, in->unique, 0, &open_out, sizeof(open_out));
	case FUSE_STATFS:
		return answer(fd, in->unique, 0, &statfs_out, sizeof(statfs_out));
	case FUSE_READ:
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		return answer(fd, in->unique, 0, NULL, 0);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	case FUSE_MKDIR:
	case FUSE_MKNOD:
	case FUSE_CREATE:
	case FUSE_SYMLINK:
		return answer(fd, in->unique, EROFS, NULL, 0);
	default:
		return answer(fd, in->unique, ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static char request[1 << 16];
	char options[128];
	ssize_t size;
	int fd;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: stall DIRECTORY NAME\n");
		return 2;
	}
	stalling = argv[2];
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
	if (fd < 0 || mount("stall", argv[1], "fuse", 0, options) < 0 || daemon(0, 0) < 0) {
		perror("stall");
		return EXIT_FAILURE;
	}
	while ((size = read(fd, request, sizeof(request))) > 0 || errno == EINTR || errno == ENOENT)
		if (size > 0)
			serve(fd, (const struct fuse_in_header *)(const void *)request);
	return 0;
}
