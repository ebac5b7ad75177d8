/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What `ctr-gpu doctor --try` runs in a container: it lists the GPU devices that it can open, and the libraries in the
 * loader's cache. The image contains only this program, so it is linked without libraries and starts by itself.
 *
 * A line for each, with tabs between: "device", its path, errno; "library", its name, its path, errno.
 */

#include <asm/errno.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINES_MAX = 256, PATH_SIZE = 256 };

#if defined(__x86_64__)
static long kernel(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return r;
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall probe_run\n\thlt\n");
#elif defined(__aarch64__)
static long kernel(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
			 x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}

__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tbl probe_run\n");
#else
#error "how this architecture enters the kernel is not known"
#endif

_Noreturn void probe_run(void);

/* ---- strings ---- */

static size_t probe_length_of(const char *text)
{
	size_t length = 0;

	/* Without it gcc calls strlen(3), which is not there. */
	for (; text[length]; length++)
		__asm__ volatile("");
	return length;
}

static bool probe_begins(const char *text, const char *with)
{
	for (; *with; text++, with++)
		if (*text != *with)
			return false;
	return true;
}

static void probe_put(const char *text)
{
	(void)kernel(__NR_write, 1, (long)text, (long)probe_length_of(text), 0);
}

static void probe_put_number(long number)
{
	char digits[8];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do
		digits[--at] = (char)('0' + number % 10);
	while ((number /= 10) > 0 && at > 0);
	probe_put(digits + at);
}

/* ---- devices ---- */

static long probe_open_file(const char *path, int flags)
{
	return kernel(__NR_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0);
}

static void probe_print(const char *what, const char *name, const char *path, int flags)
{
	long fd = probe_open_file(path, flags);

	/* The driver's own answer: it has no writing, and no right is missing. */
	if (fd == -EINVAL)
		fd = probe_open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	probe_put(what);
	probe_put("\t");
	if (name)
		probe_put(name), probe_put("\t");
	probe_put(path);
	probe_put("\t");
	probe_put_number(fd < 0 ? -fd : 0);
	probe_put("\n");
	if (fd >= 0)
		(void)kernel(__NR_close, fd, 0, 0, 0);
}

struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t size;
	uint8_t kind;
	char name[];
} __attribute__((packed));

enum { KIND_DIRECTORY = 4 }; /* DT_DIR */

static bool probe_is_gpu(const char *name)
{
	return probe_begins(name, "dxg") || probe_begins(name, "nvidia") || probe_begins(name, "kfd") ||
	       probe_begins(name, "render") || probe_begins(name, "card");
}

static void probe_print_device(const char *directory, const char *name)
{
	char path[PATH_SIZE];
	size_t at = 0;

	for (; *directory; directory++)
		path[at++] = *directory;
	for (; *name && at < sizeof(path) - 1; name++)
		path[at++] = *name;
	path[at] = '\0';
	probe_print("device", NULL, path, O_RDWR | O_NONBLOCK | O_NOCTTY);
}

static void probe_list(const char *directory)
{
	static char buffer[16 * 1024] __attribute__((aligned(8)));
	long fd = probe_open_file(directory, O_RDONLY | O_DIRECTORY), size;

	while (fd >= 0 && (size = kernel(__NR_getdents64, fd, (long)buffer, sizeof(buffer), 0)) > 0)
		for (long at = 0; at < size;) {
			const struct entry *entry = (const struct entry *)(buffer + at);

			/* Not by its kind: a node that was mounted is a plain file to its directory. */
			if (entry->kind != KIND_DIRECTORY && probe_is_gpu(entry->name))
				probe_print_device(directory, entry->name);
			at += entry->size;
		}
}

/* ---- libraries: glibc's sysdeps/generic/dl-cache.h ---- */

struct probe_cache_entry {
	int32_t flags;
	uint32_t name, path;
	uint32_t unused[3];
};

struct probe_cache_header {
	char magic[20]; /* "glibc-ld.so.cache1.1" */
	uint32_t count, strings_size;
	uint32_t unused[5];
	struct probe_cache_entry entries[];
};

static char cache[4 * 1024 * 1024];

static const char *probe_string_at(uint32_t offset, long size)
{
	return (long)offset < size ? cache + offset : "";
}

static void probe_print_libraries(void)
{
	const struct probe_cache_header *header = (const struct probe_cache_header *)(const void *)cache;
	long fd = probe_open_file("/etc/ld.so.cache", O_RDONLY), got, size = 0;

	/* A byte less than there is room for, so that the last string ends. */
	while (fd >= 0 && (got = kernel(__NR_read, fd, (long)(cache + size), (long)sizeof(cache) - 1 - size, 0)) > 0)
		size += got;
	if (size < (long)sizeof(*header) || !probe_begins(cache, "glibc-ld.so.cache1.1"))
		return;
	for (uint32_t i = 0; i < header->count && i < LINES_MAX &&
			     (long)(sizeof(*header) + (i + 1) * sizeof(struct probe_cache_entry)) <= size;
	     i++)
		probe_print("library", probe_string_at(header->entries[i].name, size),
			    probe_string_at(header->entries[i].path, size), O_RDONLY | O_NONBLOCK);
}

void probe_run(void)
{
	probe_list("/dev/");
	probe_list("/dev/dri/");
	probe_print_libraries();
	probe_put("end\n");
	for (;;)
		(void)kernel(__NR_exit_group, 0, 0, 0, 0);
}
