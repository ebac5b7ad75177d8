/* SPDX-License-Identifier: Apache-2.0 */

/* What glibc has and musl has not, of what the hook uses. The headers beside this file declare it. */

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* musl's own sets FD_CLOEXEC with a second call, for kernels that do not know O_CLOEXEC; its openat(2) does not. */
int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list arguments;

	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {
		va_start(arguments, flags);
		mode = va_arg(arguments, mode_t);
		va_end(arguments);
	}
	return openat(AT_FDCWD, path, flags, mode);
}

/* So does musl's with a descriptor that is made so; of commands it knows none that the hook uses otherwise. */
int fcntl(int fd, int command, ...)
{
	unsigned long argument;
	va_list arguments;

	va_start(arguments, command);
	argument = va_arg(arguments, unsigned long);
	va_end(arguments);
	return (int)syscall(SYS_fcntl, fd, command, argument);
}

/*
 * musl's sends the signal to the thread whose number it knows from the start, which in a child of ours is the parent's:
 * src/apply/child.c makes it without fork(3).
 */
_Noreturn void abort(void)
{
	sigset_t one;

	(void)signal(SIGABRT, SIG_DFL);
	(void)sigemptyset(&one);
	(void)sigaddset(&one, SIGABRT);
	(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
	(void)kill(getpid(), SIGABRT);
	__builtin_trap();
}

/* musl's goes on waiting when it is interrupted, and for the whole time again. */
int sigtimedwait(const sigset_t *signals, siginfo_t *ret_information, const struct timespec *time)
{
	return (int)syscall(SYS_rt_sigtimedwait, signals, ret_information, time, _NSIG / 8);
}

int fsopen(const char *type, unsigned flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}

int fsconfig(int fd, unsigned command, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, command, key, value, aux);
}

int fsmount(int fd, unsigned flags, unsigned attributes)
{
	return (int)syscall(SYS_fsmount, fd, flags, attributes);
}

int move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

int open_tree(int directory, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, directory, path, flags);
}

int mount_setattr(int directory, const char *path, unsigned flags, struct mount_attr *attributes, size_t size)
{
	return (int)syscall(SYS_mount_setattr, directory, path, flags, attributes, size);
}

int statx(int directory, const char *path, int flags, unsigned mask, struct statx *ret)
{
	return (int)syscall(SYS_statx, directory, path, flags, mask, ret);
}

int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

void closefrom(int first)
{
	DIR *directory;

	if (close_range((unsigned)first, UINT_MAX, 0) == 0)
		return;
	directory = opendir("/proc/self/fd");
	/* As glibc does: to go on with files that are not ours to hold would be worse. */
	if (!directory)
		abort();
	for (const struct dirent *entry; (entry = readdir(directory));) {
		const int fd = atoi(entry->d_name);

		if (fd >= first && fd != dirfd(directory))
			(void)close(fd);
	}
	(void)closedir(directory);
}

const char *strerrorname_np(int number)
{
	static const char *const names[] = {
		[0] = "0",
#include "errno_names.h"
	};

	return number >= 0 && (size_t)number < sizeof(names) / sizeof(names[0]) ? names[number] : NULL;
}

const char *sigabbrev_np(int number)
{
	static const char *const names[] = {
		[SIGHUP] = "HUP",       [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
		[SIGTRAP] = "TRAP",     [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
		[SIGKILL] = "KILL",     [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
		[SIGPIPE] = "PIPE",     [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGCHLD] = "CHLD",
		[SIGSTKFLT] = "STKFLT", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
		[SIGTTIN] = "TTIN",     [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
		[SIGXFSZ] = "XFSZ",     [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
		[SIGIO] = "POLL",       [SIGPWR] = "PWR",       [SIGSYS] = "SYS",
	};

	return number >= 0 && (size_t)number < sizeof(names) / sizeof(names[0]) ? names[number] : NULL;
}

/*
 * What only relocations write becomes read-only, as glibc does it before main(). musl leaves it out for programs that
 * are linked statically.
 */

/* The linker's, where the program begins in memory. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

__attribute__((constructor)) static void relro_protect(void)
{
	uintptr_t base = (uintptr_t)&__ehdr_start, page = (uintptr_t)getpagesize();
	const ElfW(Phdr) *header = (const ElfW(Phdr) *)(base + __ehdr_start.e_phoff);

	for (unsigned i = 0; i < __ehdr_start.e_phnum; i++, header++) {
		uintptr_t start = (base + header->p_vaddr) & -page;
		uintptr_t end = (base + header->p_vaddr + header->p_memsz) & -page;

		if (header->p_type != PT_GNU_RELRO || start == end)
			continue;
		if (mprotect((void *)start, end - start, PROT_READ) < 0)
			abort();
	}
}
