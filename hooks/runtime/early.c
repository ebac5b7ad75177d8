/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-runtime for every command but create and run, before the C library starts.
 *
 * A static program of glibc asks the processor some 70 times what it can do (cpuid). A virtual machine is left for each
 * of these, and every GPU-PV host is one: together they take as long as ten system calls of a start, 0.1 to 0.5 ms. An
 * engine runs its runtime several times for a container, and most of these commands are the real runtime's alone.
 *
 * So the static program begins here. What is unusual in any way goes on to the C library and main(). There are no
 * relocations yet, so no pointers in tables; no thread-local storage, so no errno and no stack protector; and no
 * function of the C library, which holds for the other files that this one calls, too.
 */

#include "early.h"

#include <errno.h>

#include "chosen.h"
#include "command_line.h"
#include "plain.h"
#include "search.h"

#define FOLDER "/etc/ctr-gpu"
#define FILE_NAME "config.json"

enum { SETTINGS_MAX = 4096, NOT_PLAIN = -1 };

#if defined(__x86_64__)
/* rdx: what the C library's start is to register with atexit(3). */
__asm__(".pushsection .text.early_start, \"ax\", @progbits\n"
	".globl early_start\n"
	".hidden early_start\n"
	".type early_start, @function\n"
	"early_start:\n"
	"	mov %rdx, %rbx\n"
	"	mov %rsp, %rdi\n"
	"	call early_main\n"
	"	mov %rbx, %rdx\n"
	"	jmp _start\n"
	".size early_start, . - early_start\n"
	".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text.early_start, \"ax\", @progbits\n"
	".globl early_start\n"
	".hidden early_start\n"
	".type early_start, @function\n"
	"early_start:\n"
	"	mov x19, x0\n"
	"	mov x0, sp\n"
	"	bl early_main\n"
	"	mov x0, x19\n"
	"	b _start\n"
	".size early_start, . - early_start\n"
	".popsection\n");
#endif

static bool early_is_runtime(const char *program)
{
	const char *name = program;

	for (const char *c = program; *c; c++)
		if (*c == '/')
			name = c + 1;
	return plain_same(name, "ctr-gpu-runtime") || plain_same(name, "nvidia-container-runtime");
}

static const char *early_find_path(char *const *environment)
{
	for (; *environment; environment++)
		if (plain_is(*environment, 5, "PATH="))
			return *environment + 5;
	return NULL;
}

/* As settings_check_owner(), but trusts root's files alone. */
static bool early_is_trusted(int fd, off_t *ret_size)
{
	struct stat st;

	if (!plain_stat(fd, "", AT_EMPTY_PATH, &st) || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return false;
	*ret_size = st.st_size;
	return true;
}

static long early_read_in(int directory, char data[SETTINGS_MAX])
{
	int fd = plain_open(directory, FILE_NAME, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	off_t size = 0;
	long got = NOT_PLAIN;

	if (fd < 0)
		return NOT_PLAIN;
	if (early_is_trusted(directory, &size) && early_is_trusted(fd, &size) && size < SETTINGS_MAX)
		got = plain_call(SYS_read, fd, (intptr_t)data, SETTINGS_MAX, 0);
	(void)plain_call(SYS_close, fd, 0, 0, 0);
	return got == size && size > 0 ? got : NOT_PLAIN;
}

/* Return: the size of the configuration; 0 if there is none; NOT_PLAIN. */
static long early_read_settings(char data[SETTINGS_MAX])
{
	long r = plain_access(FOLDER "/" FILE_NAME, 0);
	int directory;

	if (r < 0)
		return r == -ENOENT ? 0 : NOT_PLAIN;
	directory = plain_open(AT_FDCWD, FOLDER, O_PATH | O_DIRECTORY);
	if (directory < 0)
		return NOT_PLAIN;
	r = early_read_in(directory, data);
	(void)plain_call(SYS_close, directory, 0, 0, 0);
	return r;
}

static bool early_find(const struct chosen *chosen, const char *places, char path[SEARCH_PATH_MAX])
{
	if (chosen->count == 0)
		return search_program("runc", 4, places, path) || search_program("crun", 4, places, path);
	for (size_t i = 0; i < chosen->count; i++)
		if (search_program(chosen->items[i].text, chosen->items[i].length, places, path))
			return true;
	return false;
}

/* A function of its own, so that the hook does not need this much stack. Returns if main() is to do the work. */
static __attribute__((noinline)) void early_become(char **argv, char *const *environment)
{
	char settings[SETTINGS_MAX], path[SEARCH_PATH_MAX];
	long size = early_read_settings(settings);
	char *own = argv[0];
	struct chosen chosen;

	chosen.count = 0;
	if (size < 0 || (size > 0 && !chosen_read(settings, (size_t)size, &chosen)) ||
	    !early_find(&chosen, early_find_path(environment), path))
		return;
	argv[0] = path;
	(void)plain_call(SYS_execve, (intptr_t)path, (intptr_t)argv, (intptr_t)environment, 0);
	argv[0] = own;
}

__attribute__((used)) void early_main(long *stack)
{
	char **argv = (char **)(stack + 1), **environment = argv + stack[0] + 1;
	struct command_line line;

	if (stack[0] < 2 || !early_is_runtime(argv[0]) || plain_same(argv[1], "--dry-run"))
		return;
	command_line_read(argv + 1, &line);
	if (!line.creates)
		early_become(argv, environment);
}
