/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Facts of this machine that several rooms ask for: packages, PCI devices, and what is kept until the next boot.
 */

#include "system/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "model/adapter.h"
#include "system/trusted_file.h"

/* ---- packages ---- */

enum {
	DATABASE_MAX = 64 * 1024 * 1024,
	FILE_LISTS_MAX = 8192,
};

/* Paragraphs of lines `key value`, an empty line behind each. */
struct package_database {
	const char *path;
	const char *name, *version;     /* how lines begin */
	const char *status, *installed; /* a line that must be there, and its end; NULL: none */
};

static const struct package_database databases[] = {
	{"/var/lib/dpkg/status", "Package: ", "Version: ", "Status: ", " ok installed"},
	{"/lib/apk/db/installed", "P:", "V:", NULL, NULL},
};

/* The rest of the line in a paragraph that begins with @key. */
static const char *package_line_value(const char *paragraph, const char *end, const char *key, size_t *ret_length)
{
	size_t key_length = strlen(key);

	for (const char *line = paragraph; line < end; line += strcspn(line, "\n") + 1) {
		if (strncmp(line, key, key_length) != 0)
			continue;
		*ret_length = strcspn(line + key_length, "\n");
		return line + key_length;
	}
	return NULL;
}

static bool package_has_name(const char *value, size_t length, const char *const *names)
{
	for (; *names; names++)
		if (strlen(*names) == length && strncmp(*names, value, length) == 0)
			return true;
	return false;
}

/* The first word is what is wanted of a package: "install", or "hold" for one that is kept as it is. */
static bool package_is_installed(const struct package_database *database, const char *paragraph, const char *end)
{
	const char *value;
	size_t length, end_length;

	if (!database->status)
		return true;
	value = package_line_value(paragraph, end, database->status, &length);
	end_length = strlen(database->installed);
	return value && length > end_length &&
	       strncmp(value + length - end_length, database->installed, end_length) == 0;
}

/* "5:20.10.24+dfsg1-1" is version 20.10.24 outside the distribution. */
static char *package_upstream_version(const char *value, size_t length)
{
	const char *colon = memchr(value, ':', length);
	const char *start = colon ? colon + 1 : value;

	return strndup(start, strspn(start, "0123456789."));
}

static char *package_search(const struct package_database *database, const char *text, const char *const *names)
{
	const char *end, *value;
	size_t length;

	for (const char *paragraph = text; *paragraph; paragraph = end + strspn(end, "\n")) {
		end = strstr(paragraph, "\n\n");
		if (!end)
			end = paragraph + strlen(paragraph);
		value = package_line_value(paragraph, end, database->name, &length);
		if (!value || !package_has_name(value, length, names))
			continue;
		if (!package_is_installed(database, paragraph, end))
			continue;
		value = package_line_value(paragraph, end, database->version, &length);
		if (value)
			return package_upstream_version(value, length);
	}
	return NULL;
}

char *package_version(const char *const *names)
{
	for (size_t i = 0; i < ARRAY_SIZE(databases); i++) {
		_cleanup_free_ char *text = NULL;

		if (fd_read_file_at(AT_FDCWD, databases[i].path, DATABASE_MAX, &text, NULL) == 0)
			return package_search(&databases[i], text, names);
	}
	return NULL;
}

/* ---- packages of files ---- */

#define LISTS "/var/lib/dpkg/info"

static bool package_lists_file(const char *list, const char *path)
{
	_cleanup_free_ char *file = NULL, *text = NULL, *line = NULL;

	if (str_format(&file, LISTS "/%s", list) < 0 ||
	    fd_read_file_at(AT_FDCWD, file, DATABASE_MAX, &text, NULL) < 0 || str_format(&line, "%s\n", path) < 0)
		return false;
	for (const char *found = text; (found = strstr(found, line)); found++)
		if (found == text || found[-1] == '\n')
			return true;
	return false;
}

/* Only lists of packages with NVIDIA or CUDA in their names: the others, thousands, are not asked for. */
static bool package_is_candidate(const char *name)
{
	size_t length = strlen(name);

	return length > strlen(".list") && streq(name + length - strlen(".list"), ".list") &&
	       (strstr(name, "nvidia") || strstr(name, "cuda"));
}

char *package_of_file(const char *path)
{
	DIR *directory = opendir(LISTS);
	const struct dirent *entry;
	char *package = NULL;

	for (int i = 0; directory && !package && i < FILE_LISTS_MAX && (entry = readdir(directory)); i++)
		if (package_is_candidate(entry->d_name) && package_lists_file(entry->d_name, path))
			package = strndup(entry->d_name, strcspn(entry->d_name, ":"));
	if (directory)
		(void)closedir(directory);
	/* "libcuda1:amd64.list", "ctr-gpu.list" */
	if (package && strlen(package) > strlen(".list") && streq(package + strlen(package) - strlen(".list"), ".list"))
		package[strlen(package) - strlen(".list")] = '\0';
	return package;
}

/* ---- PCI bus ---- */

enum {
	CLASS_DISPLAY = 0x03, /* pci_ids.h: PCI_BASE_CLASS_DISPLAY; GPUs without a display have it, too */
	FUNCTIONS_MAX = 65536,
};

static unsigned pci_read_id(const char *directory, const char *name)
{
	_cleanup_free_ char *path = NULL, *text = NULL;

	if (str_format(&path, "%s/%s", directory, name) < 0)
		return 0;
	text = file_text(path);
	return text ? (unsigned)strtoul(text, NULL, 16) : 0;
}

static struct pci_function pci_read(const char *directory)
{
	_cleanup_free_ char *path = NULL, *link = NULL;
	struct pci_function function = {
		.vendor = pci_read_id(directory, "vendor"),
		.device = pci_read_id(directory, "device"),
		.display = pci_read_id(directory, "class") >> 16 == CLASS_DISPLAY,
	};

	(void)snprintf(function.address, sizeof(function.address), "%.16s", strrchr(directory, '/') + 1);
	if (str_format(&path, "%s/driver", directory) == 0 && fd_read_link_at(AT_FDCWD, path, &link) == 0)
		(void)snprintf(function.driver, sizeof(function.driver), "%.32s",
			       strrchr(link, '/') ? strrchr(link, '/') + 1 : link);
	return function;
}

bool pci_find(const char *sys, bool (*is_wanted)(const struct pci_function *function), struct pci_function *ret)
{
	_cleanup_strv_ struct strv addresses = {0};
	_cleanup_free_ char *devices = NULL;

	if (str_format(&devices, "%s/bus/pci/devices", sys) < 0 ||
	    fd_list_names(AT_FDCWD, devices, pci_address_is_name, FUNCTIONS_MAX, &addresses) < 0)
		return false;
	for (size_t i = 0; i < addresses.count; i++) {
		_cleanup_free_ char *directory = NULL;

		if (str_format(&directory, "%s/%s", devices, addresses.items[i]) < 0)
			return false;
		*ret = pci_read(directory);
		if (is_wanted(ret))
			return true;
	}
	return false;
}

/* ---- what is kept until the next boot ---- */

#define FOLDER PATH_RUN

enum { BOOT_MAX = 64, SWEPT_MAX = 1000 };

int boot_cache_read(const char *name, size_t max, char **ret_data, size_t *ret_size)
{
	char path[64];
	_cleanup_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), FOLDER "/%s", name);
	fd = trusted_file_open(path, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_RDONLY);
	return fd < 0 ? fd : fd_read_all(fd, max, ret_data, ret_size);
}

/* Of a name and the number of the process that writes it. */
static bool boot_cache_is_unfinished(const char *name)
{
	const char *number = strrchr(name, '.');

	return number && number[1] && !number[1 + strspn(number + 1, "0123456789")];
}

/*
 * What processes that were killed have left. One that is at it meanwhile finds its file gone, and keeps nothing this
 * time.
 */
static void boot_cache_sweep(int folder, const char *name)
{
	_cleanup_strv_ struct strv names = {0};

	(void)fd_list_names(folder, ".", boot_cache_is_unfinished, SWEPT_MAX, &names);
	for (size_t i = 0; i < names.count; i++)
		if (strncmp(names.items[i], name, strlen(name)) == 0 && names.items[i][strlen(name)] == '.')
			(void)unlinkat(folder, names.items[i], 0);
}

void boot_cache_write(const char *name, const char *text)
{
	_cleanup_close_ int folder = -1, fd = -1;
	char written[64];

	if (geteuid() != 0 || (mkdir(FOLDER, 0700) < 0 && errno != EEXIST))
		return;
	folder = trusted_file_open(FOLDER, S_IFDIR, TRUSTED_FILE_ROOT_ONLY, O_RDONLY);
	if (folder < 0)
		return;
	boot_cache_sweep(folder, name);
	/* In another pid namespace another process may have our number. */
	(void)snprintf(written, sizeof(written), "%s.%d", name, (int)getpid());
	fd = openat(folder, written, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (fd_write_all(fd, text, strlen(text)) < 0 || renameat(folder, written, folder, name) < 0)
		(void)unlinkat(folder, written, 0);
}

char *boot_cache_boot(void)
{
	char *boot;

	if (fd_read_kernel_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", BOOT_MAX, &boot) < 0)
		return NULL;
	boot[strcspn(boot, "\n")] = '\0';
	return boot;
}

void boot_cache_remove(const char *name)
{
	_cleanup_close_ int folder =
		geteuid() == 0 ? trusted_file_open(FOLDER, S_IFDIR, TRUSTED_FILE_ROOT_ONLY, O_RDONLY) : -1;

	if (folder < 0)
		return;
	boot_cache_sweep(folder, name);
	(void)unlinkat(folder, name, 0);
}

/* ---- process keys ---- */

static const char digits[] = "0123456789";

/* The fields behind the name, which may have blanks and brackets in it (proc_pid_stat(5)). */
static int process_key_read(int process, char *ret_state, unsigned long long *ret_start)
{
	enum { STAT_MAX = 4096, STATE = 3, START = 22 };
	_cleanup_free_ char *text = NULL;
	const char *end, *field;
	int r = fd_read_kernel_file(process, "stat", STAT_MAX, &text);

	if (r < 0)
		return r;
	field = end = strrchr(text, ')');
	for (int number = STATE - 1; field && number < START; number++)
		field = strchr(field + 1, ' ');
	if (!field)
		return -EINVAL;
	*ret_state = end[2];
	*ret_start = strtoull(field + 1, NULL, 10);
	return 0;
}

int process_key_start(int process, unsigned long long *ret)
{
	char state;

	return process_key_read(process, &state, ret);
}

static void process_key_print(pid_t pid, unsigned long long start, char ret[PROCESS_KEY_SIZE])
{
	(void)snprintf(ret, PROCESS_KEY_SIZE, "%d-%llu", (int)pid, start);
}

int process_key_make(pid_t pid, int process, char ret[PROCESS_KEY_SIZE])
{
	unsigned long long start;
	int r = process_key_start(process, &start);

	if (r == 0)
		process_key_print(pid, start, ret);
	return r;
}

bool process_key_is_valid(const char *text)
{
	size_t pid = strspn(text, digits), start = text[pid] == '-' ? strspn(text + pid + 1, digits) : 0;

	return pid > 0 && start > 0 && !text[pid + 1 + start] && pid + 1 + start < PROCESS_KEY_SIZE;
}

pid_t process_key_pid(const char *key)
{
	return (pid_t)strtol(key, NULL, 10);
}

bool process_key_is_over(const char *key)
{
	const pid_t pid = process_key_pid(key);
	char path[32], now[PROCESS_KEY_SIZE], state;
	_cleanup_close_ int process = -1;
	unsigned long long start;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process < 0)
		return errno == ENOENT;
	r = process_key_read(process, &state, &start);
	if (r < 0)
		return r == -ESRCH || r == -ENOENT;
	process_key_print(pid, start, now);
	return !streq(now, key) || state == 'Z' || state == 'X';
}
