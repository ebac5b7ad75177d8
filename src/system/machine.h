/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this machine knows of itself: its packages, its PCI bus, and what is kept until the next boot. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ---- package ---- */

/*
 * What the distribution's package manager knows, read from its files: an engine's version without asking the engine,
 * which might not run, or might start if it were asked. dpkg's and apk's databases are text; others are not read.
 */

/**
 * package_version() - the version of the first of some packages that is installed
 * @names: with NULL at the end
 *
 * Return: "20.10.24", without the distribution's epoch and revision, owned by the caller; NULL if it is not known.
 */
char *package_version(const char *const *names);

/** Return: the package that a file belongs to, owned by the caller; NULL if it is not known. */
char *package_of_file(const char *path);

/* ---- pci ---- */

/* What is on this machine's PCI bus, whatever drives it. */

struct pci_function {
	char address[17]; /* "0000:01:00.0" */
	char driver[33];  /* "" if none drives it */
	unsigned vendor, device;
	bool display; /* a GPU, also one without a display */
};

/** Looks for the first that @is_wanted. @sys: "/sys", or another in tests. Return: whether there is one. */
bool pci_find(const char *sys, bool (*is_wanted)(const struct pci_function *function), struct pci_function *ret);

/* ---- boot cache ---- */

/* Files in /run/ctr-gpu: what is kept until the next boot. Only root can have made them. */

/**
 * boot_cache_read() - what was kept under a name
 *
 * Return: as fd_read_all(); -ENOENT; -EPERM if a user other than root could have written it.
 */
int boot_cache_read(const char *name, size_t max, char **ret_data, size_t *ret_size);

/** Keeps a text, whole or not at all, if the caller is root. */
void boot_cache_write(const char *name, const char *text);

/** The boot id. It is needed where /run survives a reboot, not being a tmpfs. NULL if it cannot be read. */
char *boot_cache_boot(void);

/** Removes it, if the caller is root. */
void boot_cache_remove(const char *name);

/* ---- process key ---- */

/* A text that no other process has before the next boot: its number and its start, "4711-123456". */
enum { PROCESS_KEY_SIZE = 48 };

/**
 * process_key_start() - when a process began
 * @process: its directory in procfs
 * @ret:     in ticks since the boot
 *
 * Return: 0; -ESRCH or -ENOENT if it has ended; negative errno.
 */
int process_key_start(int process, unsigned long long *ret);

/** Return: as process_key_start(). */
int process_key_make(pid_t pid, int process, char ret[PROCESS_KEY_SIZE]);

/** Whether a text has the form of a key. */
bool process_key_is_valid(const char *text);

/** Return: the number of its process. */
pid_t process_key_pid(const char *key);

/** Whether the process of a key has ended; a zombie has. If that cannot be seen, it has not. */
bool process_key_is_over(const char *key);
