/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Page-locked memory: parts of the memfd that the server shares with us, which it registers with the driver, at the
 * same address on both sides, so that a kernel can use the pointers as it does natively and copies go at the speed of
 * the bus.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client/host.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"
#include "vcuda/protocol/descriptors.h"

enum { HOST_STEP = 65536, HOST_FLAGS = 7, HOST_HOLES = 4096 };

static struct lock host_lock;    /* of what is given out */
static struct lock host_receive; /* while a descriptor comes for what one thread asked for */
static uint64_t host_next; /* offset in the arena of what was never given out, which comes first: 1 TiB lasts long */
static struct {
	uint64_t offset, bytes;
} host_holes[HOST_HOLES]; /* what was given back, by offset */
static unsigned host_hole_count;

static void host_close_hole(unsigned i)
{
	memmove(&host_holes[i], &host_holes[i + 1], (--host_hole_count - i) * sizeof(host_holes[0]));
}

static bool host_take_new_place(uint64_t bytes, uint64_t *ret)
{
	if (bytes > WIRE_ARENA_BYTES - host_next)
		return false;
	*ret = host_next;
	host_next += bytes;
	return true;
}

/* Return: whether there is a place of so many bytes. */
static bool host_take_place(uint64_t bytes, uint64_t *ret)
{
	const unsigned last = host_hole_count - 1;
	unsigned i = 0;

	if (host_take_new_place(bytes, ret))
		return true;
	while (i < host_hole_count && host_holes[i].bytes < bytes)
		i++;
	if (i == host_hole_count) {
		if (i == 0 || host_holes[last].offset + host_holes[last].bytes != host_next)
			return false;
		/* With what is behind it, it may suffice. */
		host_next = host_holes[last].offset;
		host_close_hole(last);
		return host_take_new_place(bytes, ret);
	}
	*ret = host_holes[i].offset;
	host_holes[i].offset += bytes;
	host_holes[i].bytes -= bytes;
	if (host_holes[i].bytes == 0)
		host_close_hole(i);
	return true;
}

/* Holes that touch become one. One too many is forgotten. */
static void host_give_back(uint64_t offset, uint64_t bytes)
{
	unsigned i = 0;

	while (i < host_hole_count && host_holes[i].offset < offset)
		i++;
	if (i < host_hole_count && offset + bytes == host_holes[i].offset) {
		bytes += host_holes[i].bytes;
		host_close_hole(i);
	}
	if (i > 0 && host_holes[i - 1].offset + host_holes[i - 1].bytes == offset) {
		host_holes[i - 1].bytes += bytes;
		return;
	}
	if (host_hole_count == HOST_HOLES)
		return;
	memmove(&host_holes[i + 1], &host_holes[i], (host_hole_count++ - i) * sizeof(host_holes[0]));
	host_holes[i].offset = offset;
	host_holes[i].bytes = bytes;
}

static void host_leave(uint64_t offset, uint64_t bytes)
{
	LOCK_HOLD(&host_lock);
	host_give_back(offset, bytes);
}

/* The server has sent it before it answered. */
static CUresult host_map(uint64_t offset, size_t bytes)
{
	void *memory;
	char byte;
	int fd;

	if (!client_receive(&byte, sizeof(byte), &fd, 1, false) || fd < 0)
		return CUDA_ERROR_UNKNOWN;
	memory = client_map(fd, (void *)(client.arena + offset), WIRE_ARENA_OFFSET + offset, bytes);
	(void)close(fd);
	return memory ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

/* Without a place in both address spaces it is ordinary memory, which copies stage. */
static CUresult host_take_plain(size_t bytes, uint64_t *ret)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = (uint64_t)memory;
	return CUDA_SUCCESS;
}

/* A piece of its own. */
static CUresult host_take_shared(const struct range *like, size_t bytes, uint64_t *ret)
{
	uint64_t words[] = {0, bytes, like->kind == ADDRESS_MAP_MANAGED ? WIRE_ARENA_REACHED : like->flags};
	bool taken;
	CUresult r;

	lock_take(&host_lock);
	taken = host_take_place(bytes, &words[0]);
	lock_release(&host_lock);
	if (!taken)
		return CUDA_ERROR_OUT_OF_MEMORY;
	LOCK_HOLD(&host_receive);
	r = call_sync(WIRE_ARENA_ADD, words, 3, NULL, 0, NULL, 0);
	if (!r) {
		r = host_map(words[0], bytes);
		if (r && call_sync(WIRE_ARENA_DROP, words, 1, NULL, 0, NULL, 0))
			return r;
	}
	if (r)
		host_leave(words[0], bytes);
	else
		*ret = client.arena + words[0];
	return r;
}

/* ---- small pieces ---- */

/*
 * They lie in slabs, which the server knows as one. A piece is given out once: what was freed may be in use by the
 * device still, and the server waits for that when the whole slab goes.
 */

enum { SLAB_BYTES = 65536, SLAB_PIECE_MAX = SLAB_BYTES / 4, SLAB_ALIGNMENT = 512 };

struct slab {
	struct slab *next;
	uint64_t at, used;
	unsigned pieces;
	uint64_t context; /* the server's handle: with its end, the device does not reach the slab any more */
	enum address_map_kind kind;
};

static struct lock host_slab_lock;
static struct slab *host_slabs; /* the one that is filled stands first of its kind */

static struct slab **host_find_slab(uint64_t at)
{
	struct slab **place = &host_slabs;

	while (*place && at - (*place)->at >= SLAB_BYTES)
		place = &(*place)->next;
	return place;
}

static struct slab *host_slab_with_room(const struct range *range, uint64_t bytes)
{
	struct slab *slab = host_slabs;

	while (slab && (slab->kind != range->kind || slab->context != range->context->handle))
		slab = slab->next;
	return slab && bytes <= SLAB_BYTES - slab->used ? slab : NULL;
}

static CUresult host_make_slab(const struct range *range,
			       CUresult (*make)(const struct range *like, size_t bytes, uint64_t *ret),
			       struct slab **ret)
{
	struct slab *slab = calloc(1, sizeof(*slab));
	CUresult r = slab ? make(range, SLAB_BYTES, &slab->at) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r) {
		free(slab);
		return r;
	}
	slab->kind = range->kind;
	slab->context = range->context->handle;
	slab->next = host_slabs;
	host_slabs = slab;
	*ret = slab;
	return CUDA_SUCCESS;
}

/* A place for @range, with which host_take() ends. @make: where a slab of so many bytes comes from */
static CUresult host_take_piece(struct range *range, size_t bytes,
				CUresult (*make)(const struct range *like, size_t bytes, uint64_t *ret))
{
	const uint64_t whole = (bytes + SLAB_ALIGNMENT - 1) & ~(uint64_t)(SLAB_ALIGNMENT - 1);
	struct slab *slab;
	CUresult r = CUDA_SUCCESS;

	LOCK_HOLD(&host_slab_lock);
	slab = host_slab_with_room(range, whole);
	if (!slab)
		r = host_make_slab(range, make, &slab);
	if (r)
		return r;
	range->at = slab->at + slab->used;
	slab->used += whole;
	slab->pieces++;
	return CUDA_SUCCESS;
}

static bool host_is_piece(const struct range *range)
{
	LOCK_HOLD(&host_slab_lock);
	return *host_find_slab(range->at) != NULL;
}

/* Return: the slab if that was its last piece, which is in no list any more; NULL. */
static struct slab *host_give_piece(const struct range *range)
{
	struct slab **place, *slab;

	LOCK_HOLD(&host_slab_lock);
	place = host_find_slab(range->at);
	slab = *place;
	if (!slab || --slab->pieces > 0)
		return NULL;
	*place = slab->next;
	return slab;
}

/* Its last piece is the program's still. Nothing more is taken from it. */
static void host_put_slab_back(struct slab *slab)
{
	LOCK_HOLD(&host_slab_lock);
	slab->pieces = 1;
	slab->used = SLAB_BYTES;
	slab->next = host_slabs;
	host_slabs = slab;
}

/* ---- taking and giving ---- */

static uint64_t host_whole(uint64_t bytes)
{
	return (bytes + HOST_STEP - 1) & ~(uint64_t)(HOST_STEP - 1);
}

CUresult host_take(struct range *range, size_t bytes)
{
	const uint64_t whole = host_whole(bytes);
	CUresult r;

	if (whole < bytes)
		return range->kind == ADDRESS_MAP_MANAGED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	range->bytes = bytes;
	if (client.arena && bytes <= SLAB_PIECE_MAX)
		r = host_take_piece(range, bytes, host_take_shared);
	else if (client.arena)
		r = host_take_shared(range, whole, &range->at);
	else
		r = range->kind == ADDRESS_MAP_MANAGED ? CUDA_ERROR_NOT_SUPPORTED : host_take_plain(whole, &range->at);
	return r ? r : address_map_add(range);
}

/*
 * In a context that has failed a call fails that the server has done, too. It is asked again then: what it has dropped,
 * as that of a context that has ended, it does not know any more.
 */
static CUresult host_have_dropped(uint64_t offset)
{
	const struct thread *thread = thread_self();
	CUresult r = call_sync(WIRE_ARENA_DROP, &offset, 1, NULL, 0, NULL, 0);

	if (r && thread && r == call_context_failure(thread) &&
	    call_sync(WIRE_ARENA_DROP, &offset, 1, NULL, 0, NULL, 0) == CUDA_ERROR_INVALID_VALUE)
		return CUDA_SUCCESS;
	return r;
}

/* Behind all that uses it. What the driver refuses to free, as while a stream captures, stays as it is. */
static CUresult host_drop(uint64_t at, uint64_t bytes)
{
	const uint64_t offset = at - client.arena;
	CUresult r = host_have_dropped(offset);

	if (r)
		return r;
	if (mmap((void *)at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	host_leave(offset, bytes);
	return CUDA_SUCCESS;
}

/*
 * The driver waits for the device when it frees such memory, and so does a piece before its end. What another context
 * does with it may go on: the memory is there until the slab goes. An earlier command's failure is left to the
 * program's own calls that wait: what was to be freed is.
 */
static CUresult host_wait(const struct range *range)
{
	struct thread *thread = thread_self();
	bool unwatched;
	CUresult r;

	if (client.captures || !thread || !range->context || thread_context(thread) != range->context ||
	    range->context->gone)
		return CUDA_SUCCESS;
	unwatched = thread->unwatched;
	thread->unwatched = true;
	r = call_sync(OP_cuCtxSynchronize, NULL, 0, NULL, 0, NULL, 0);
	thread->unwatched = unwatched;
	return r;
}

static CUresult host_end_piece(const struct range *range)
{
	CUresult r = host_wait(range);
	struct slab *slab = r ? NULL : host_give_piece(range);

	if (!slab)
		return r;
	r = host_drop(slab->at, SLAB_BYTES);
	if (r)
		host_put_slab_back(slab);
	else
		free(slab);
	return r;
}

CUresult host_give(const struct range *range)
{
	if (!client.arena)
		return munmap((void *)range->at, host_whole(range->bytes)) < 0 ? CUDA_ERROR_INVALID_VALUE
									       : CUDA_SUCCESS;
	return host_is_piece(range) ? host_end_piece(range) : host_drop(range->at, host_whole(range->bytes));
}

CUresult on_cuMemHostAlloc(struct context *context, void **pointer, size_t bytes, unsigned flags)
{
	struct range range = {.kind = ADDRESS_MAP_HOST, .flags = flags, .context = context};
	CUresult r;

	if (bytes == 0) {
		*pointer = NULL;
		return CUDA_SUCCESS;
	}
	if (flags & ~(unsigned)HOST_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	r = host_take(&range, bytes);
	if (!r)
		*pointer = (void *)range.at;
	return r;
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes)
{
	return cuMemHostAlloc(pointer, bytes, 0);
}

CUresult on_cuMemFreeHost(void *pointer)
{
	struct range range;
	CUresult r;

	if (!pointer)
		return CUDA_SUCCESS;
	if (!address_map_remove((uint64_t)pointer, 1U << ADDRESS_MAP_HOST, &range))
		return CUDA_ERROR_INVALID_VALUE;
	r = host_give(&range);
	if (r) {
		range.freed = true;
		address_map_put_back(&range);
	}
	return r;
}

CUresult on_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned flags)
{
	struct range range;

	if (flags || !address_map_find((uint64_t)host, &range) || !address_map_is_host(&range))
		return CUDA_ERROR_INVALID_VALUE;
	if (range.kind == ADDRESS_MAP_REGISTERED ? !range.device : !client.arena)
		return CUDA_ERROR_NOT_SUPPORTED;
	*device = address_map_on_device(&range, (uint64_t)host);
	return CUDA_SUCCESS;
}

CUresult on_cuMemHostGetFlags(unsigned *flags, void *host)
{
	struct range range;

	if (!address_map_find((uint64_t)host, &range) ||
	    (!address_map_is_host(&range) && !address_map_is_managed(&range)))
		return CUDA_ERROR_INVALID_VALUE;
	/* CU_MEMHOSTALLOC_DEVICEMAP: with one address space for all, everything is. */
	*flags = address_map_is_managed(&range) ? 2 : range.flags | 2;
	return CUDA_SUCCESS;
}

/* ---- files that the program has mapped, so that the server can map them, too ---- */

enum { HOST_LINE = 4400, HOST_FD_PATH = 32 };

/* A line of /proc/self/maps. */
struct host_mapping {
	uint64_t begin, end, offset, inode;
	dev_t device;
	const char *path;
	bool shared;
};

/* strtoull(3) has another name in each glibc. Return: what stands behind the number, and behind what ends it. */
static const char *host_read_number(const char *at, unsigned base, uint64_t *ret)
{
	*ret = 0;
	for (;; at++) {
		const unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
				       : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a' + 10)
								  : base;

		if (digit >= base)
			return *at ? at + 1 : at;
		*ret = *ret * base + digit;
	}
}

static bool host_read_mapping(char *line, struct host_mapping *ret)
{
	uint64_t major_number, minor_number;
	const char *at = host_read_number(line, 16, &ret->begin);

	at = host_read_number(at, 16, &ret->end);
	if (strlen(at) < strlen("rw-s "))
		return false;
	ret->shared = memcmp(at, "rw", 2) == 0 && at[3] == 's';
	at = host_read_number(at + strlen("rw-s "), 16, &ret->offset);
	at = host_read_number(at, 16, &major_number);
	at = host_read_number(at, 16, &minor_number);
	ret->path = host_read_number(at, 10, &ret->inode);
	ret->device = makedev((unsigned)major_number, (unsigned)minor_number);
	ret->path += strspn(ret->path, " ");
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* fstat(2) is no function of a glibc before 2.33. */
static bool host_is_file(int fd, const struct host_mapping *mapping)
{
	struct stat st;

	return fd >= 0 && syscall(SYS_fstat, fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == mapping->device &&
	       st.st_ino == mapping->inode;
}

static bool host_is_in_memory(int fd)
{
	enum { TMPFS = 0x01021994, HUGETLBFS = (int)0x958458f6 };
	struct statfs st;

	return fstatfs(fd, &st) == 0 && ((int)st.f_type == TMPFS || (int)st.f_type == HUGETLBFS);
}

/* One that has no name any more, the program may have open. */
static int host_find_open_file(const struct host_mapping *mapping)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	int found = -1;

	while (directory && found < 0 && (entry = readdir(directory))) {
		uint64_t number;

		(void)host_read_number(entry->d_name, 10, &number);
		if (entry->d_name[0] != '.' && host_is_file((int)number, mapping) && host_is_in_memory((int)number))
			found = fcntl((int)number, F_DUPFD_CLOEXEC, 3);
	}
	if (directory)
		(void)closedir(directory);
	return found;
}

/*
 * The kernel says the path; another process can have put another file there. A file is only opened once it is known to
 * be that file, and in memory, as the server wants it: to open one on a disk, or of another file system, could wait, or
 * do something.
 */
static int host_open_file(const struct host_mapping *mapping)
{
	char path[HOST_FD_PATH];
	int place, fd = -1;

	if (!mapping->inode)
		return -1;
	place = mapping->path[0] == '/' ? open(mapping->path, O_PATH | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (host_is_file(place, mapping) && host_is_in_memory(place)) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
		fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	}
	if (place >= 0)
		(void)close(place);
	return fd >= 0 ? fd : host_find_open_file(mapping);
}

/*
 * The file of memory that a program shares by a mapping; *ret_offset: where @at is in it.
 *
 * Return: a descriptor of it; -1 if all of it is not one mapping of a file, or the file is not to be found.
 */
static int host_find_file(uint64_t at, uint64_t bytes, uint64_t *ret_offset)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = maps ? malloc(HOST_LINE) : NULL;
	struct host_mapping mapping;
	int fd = -1;

	while (line && fgets(line, HOST_LINE, maps)) {
		if (!host_read_mapping(line, &mapping) || at < mapping.begin || at >= mapping.end)
			continue;
		if (mapping.shared && bytes <= mapping.end - at) {
			*ret_offset = mapping.offset + (at - mapping.begin);
			fd = host_open_file(&mapping);
		}
		break;
	}
	free(line);
	if (maps)
		(void)fclose(maps);
	return fd;
}

/* ---- memory of the program's own ---- */

enum { HOST_PAGE = 4096 };

/* Return: whether the server can have it next. */
static bool host_send(int fd)
{
	return !client_is_lost() && descriptors_send(client.socket, "", 1, &fd, 1, MSG_DONTWAIT) == 1;
}

/* What is shared with other processes by a file in memory, the server can map, too. */
static void host_register_file(struct range *range)
{
	const uint64_t at = range->at & ~(uint64_t)(HOST_PAGE - 1),
		       bytes = (range->at + range->bytes + HOST_PAGE - 1 - at) & ~(uint64_t)(HOST_PAGE - 1);
	uint64_t words[] = {at, bytes, 0}, device = 0;
	const int fd = client.arena ? host_find_file(at, bytes, &words[2]) : -1;

	if (fd < 0)
		return;
	LOCK_HOLD(&host_receive);
	if (host_send(fd) && !call_sync(WIRE_REGISTER, words, 3, NULL, 0, &device, sizeof(device)))
		range->device = device;
	(void)close(fd);
}

/*
 * The pages of the program's own memory cannot become the server's after the fact. So this is page-locked in name:
 * copies go the way of ordinary memory, and the device has no address of it. But that of files in memory it has.
 */
CUresult on_cuMemHostRegister_v2(struct context *context, void *pointer, size_t bytes, unsigned flags)
{
	enum { REGISTER_IO_MEMORY = 4, REGISTER_FLAGS = 15 };
	struct range range = {.at = (uint64_t)pointer,
			      .bytes = bytes,
			      .kind = ADDRESS_MAP_REGISTERED,
			      .flags = flags,
			      .context = context};
	struct range there;

	if (!pointer || bytes == 0 || flags & ~(unsigned)REGISTER_FLAGS || range.at + bytes < range.at)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & REGISTER_IO_MEMORY)
		return call_refuse("cuMemHostRegister of memory of a device");
	if (address_map_find_in(range.at, bytes, &there))
		return address_map_is_managed(&there) ? CUDA_ERROR_INVALID_VALUE
						      : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	host_register_file(&range);
	return address_map_add(&range);
}

CUresult on_cuMemHostUnregister(void *pointer)
{
	struct range range;

	if (!pointer)
		return CUDA_ERROR_INVALID_VALUE;
	if (!address_map_remove((uint64_t)pointer, 1U << ADDRESS_MAP_REGISTERED, &range))
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	return range.device ? call_sync(WIRE_UNREGISTER, &range.device, 1, NULL, 0, NULL, 0) : CUDA_SUCCESS;
}
