/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Landlock (Documentation/userspace-api/landlock.rst): it needs no rights, no namespaces, and nothing from the manager.
 * The list is what NVIDIA's driver and the C library open on machines with a GPU, at their start and later. What is not
 * on it fails with EACCES, which libraries take as they take a file that is missing.
 */

#include "vcuda/server/server.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/landlock.h"
#include "base/paths.h"
#include "model/adapter.h"

enum { LANDLOCK_RULES_NAME = 300, LANDLOCK_RULES_INFORMATION = 4096 };

#define LANDLOCK_RULES_READ (LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
#define LANDLOCK_RULES_DEVICE (LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE | LANDLOCK_IOCTL_DEV)
#define LANDLOCK_RULES_GPUS PATH_PROC_NVIDIA "/gpus"

/* Those that exist. */
static const struct {
	const char *path;
	uint64_t rights;
} paths[] = {
	/* The driver's libraries, which it loads when they are needed, and what they need. */
	{"/lib", LANDLOCK_RULES_READ},
	{"/lib64", LANDLOCK_RULES_READ},
	{"/usr/lib", LANDLOCK_RULES_READ},
	{"/usr/lib64", LANDLOCK_RULES_READ},
	{"/usr/local/lib", LANDLOCK_RULES_READ},
	{"/usr/share/nvidia", LANDLOCK_RULES_READ},
	{"/etc/ld.so.cache", LANDLOCK_RULES_READ},
	{"/etc/localtime", LANDLOCK_RULES_READ},
	{"/etc/nvidia", LANDLOCK_RULES_READ},
	/* What the kernel says of the machine. Of processes, itself alone. */
	{"/proc/self", LANDLOCK_RULES_READ},
	/* The driver names its threads, and takes that for a failure of its start if it cannot. */
	{"/proc/self/task", LANDLOCK_RULES_READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE},
	{"/proc/driver", LANDLOCK_RULES_READ},
	{"/proc/sys/vm", LANDLOCK_RULES_READ},
	{"/proc/cpuinfo", LANDLOCK_RULES_READ},
	{"/proc/devices", LANDLOCK_RULES_READ},
	{"/proc/meminfo", LANDLOCK_RULES_READ},
	{"/proc/modules", LANDLOCK_RULES_READ},
	{"/proc/stat", LANDLOCK_RULES_READ},
	{"/proc/version", LANDLOCK_RULES_READ},
	{"/sys/bus/pci", LANDLOCK_RULES_READ},
	{"/sys/devices", LANDLOCK_RULES_READ},
	{"/sys/kernel/mm", LANDLOCK_RULES_READ},
	{"/sys/module", LANDLOCK_RULES_READ},
	/* Nodes that all GPUs have in common. */
	{"/dev/null", LANDLOCK_RULES_DEVICE},
	{"/dev/zero", LANDLOCK_RULES_DEVICE},
	{"/dev/urandom", LANDLOCK_RULES_READ},
	{PATH_DXG, LANDLOCK_RULES_DEVICE},
	{PATH_NVIDIACTL, LANDLOCK_RULES_DEVICE},
	{PATH_NVIDIA_UVM, LANDLOCK_RULES_DEVICE},
	{PATH_NVIDIA_UVM_TOOLS, LANDLOCK_RULES_DEVICE},
};

/* A rule holds for an inode. One of procfs is made anew once nobody has it open, so this one stays open. */
static int landlock_rules_allow(int rules, const char *path, uint64_t rights)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct landlock_beneath rule = {.parent = fd};
	struct stat st;

	/* Most of the nodes that there might be are not there. */
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	rule.allowed = rights & landlock_rights();
	if (!S_ISDIR(st.st_mode))
		rule.allowed &= ~(uint64_t)LANDLOCK_READ_DIR;
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_BENEATH, &rule, 0) < 0)
		return -errno;
	if (strncmp(path, "/proc/self", strlen("/proc/self")) == 0)
		(void)steal_fd(&fd);
	return 0;
}

/* The driver's libraries are beside its first one, or beside what that is a link to. */
static int landlock_rules_allow_library(int rules, const char *library)
{
	char *real = library[0] == '/' ? realpath(library, NULL) : NULL, name[LANDLOCK_RULES_NAME];
	int r = 0;

	if (library[0] == '/') {
		(void)snprintf(name, sizeof(name), "%s", library);
		r = landlock_rules_allow(rules, dirname(name), LANDLOCK_RULES_READ);
	}
	if (real && r == 0)
		r = landlock_rules_allow(rules, dirname(real), LANDLOCK_RULES_READ);
	free(real);
	return r;
}

/* ---- the nodes of the granted GPUs, and of those that they may be moved to ---- */

/* Return: the number of the node; -1: the kernel does not say. */
static int landlock_rules_minor(const char *address)
{
	_cleanup_free_ char *text = NULL;
	char path[LANDLOCK_RULES_NAME];
	const char *line;
	int number;

	(void)snprintf(path, sizeof(path), LANDLOCK_RULES_GPUS "/%s/information", address);
	if (fd_read_kernel_file(AT_FDCWD, path, LANDLOCK_RULES_INFORMATION, &text) < 0)
		return -1;
	line = strstr(text, "Device Minor:");
	return line && sscanf(line, "Device Minor: %d", &number) == 1 ? number : -1;
}

static bool landlock_rules_is_granted(const struct start *start, const char *address)
{
	/* 0 is a GPU whose place is not known. */
	uint32_t place = pci_address_number(address);

	for (uint32_t i = 0; i < start->reach; i++)
		if (place && start->gpus[i].place == place)
			return true;
	return false;
}

/* Where a GPU's place on the bus is not known, it may be any. */
static bool landlock_rules_knows_gpus(const struct start *start)
{
	for (uint32_t i = 0; i < start->reach; i++)
		if (start->gpus[i].place == 0)
			return false;
	return access(LANDLOCK_RULES_GPUS, F_OK) == 0;
}

static int landlock_rules_allow_node(int rules, int number)
{
	char path[LANDLOCK_RULES_NAME];

	(void)snprintf(path, sizeof(path), PATH_NVIDIA_GPU "%d", number);
	return landlock_rules_allow(rules, path, LANDLOCK_RULES_DEVICE);
}

static int landlock_rules_allow_every_node(int rules)
{
	enum { NODES = 256 };
	int r = 0;

	for (int i = 0; i < NODES && r == 0; i++)
		r = landlock_rules_allow_node(rules, i);
	return r;
}

static int landlock_rules_allow_granted(int rules, const struct start *start)
{
	DIR *directory = opendir(LANDLOCK_RULES_GPUS);
	const struct dirent *entry;
	int r = 0;

	while (directory && r == 0 && (entry = readdir(directory))) {
		const int number =
			landlock_rules_is_granted(start, entry->d_name) ? landlock_rules_minor(entry->d_name) : -1;

		if (number >= 0)
			r = landlock_rules_allow_node(rules, number);
	}
	if (directory)
		(void)closedir(directory);
	return r;
}

int landlock_rules_close(const struct start *start)
{
	_cleanup_close_ int rules = -1;
	int r = 0;

	if (landlock_version() < 1)
		return 0;
	rules = landlock_open();
	if (rules < 0)
		return rules;
	for (size_t i = 0; i < ARRAY_SIZE(paths) && r == 0; i++)
		r = landlock_rules_allow(rules, paths[i].path, paths[i].rights);
	if (r == 0)
		r = landlock_rules_allow_library(rules, start->library);
	if (r == 0)
		r = landlock_rules_knows_gpus(start) ? landlock_rules_allow_granted(rules, start)
						     : landlock_rules_allow_every_node(rules);
	if (r == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		r = -errno;
	return r;
}
