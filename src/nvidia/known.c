/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/known.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "model/pci_address.h"
#include "system/kept.h"

enum {
	KEPT_MAX = 256 * 1024,
	SETTLED_AFTER = 2, /* seconds; file systems keep times in steps of up to so many */
	STAMP_SIZE = 6 * 17 + 1,
	INFORMATION_MAX = 4096,
};

static void known_clear_gpu(struct known_gpu *gpu)
{
	free(gpu->address);
	free(gpu->binding);
	free(gpu->information);
}

static void known_clear_place(struct known_place *place)
{
	free(place->stamp);
	free(place->path);
}

void known_forget_driver(struct known_driver *driver)
{
	free(driver->version);
	free(driver->cache);
	free(driver->root);
	for (size_t i = 0; i < driver->place_count; i++)
		known_clear_place(&driver->places[i]);
	for (size_t i = 0; i < driver->dir_count; i++) {
		known_clear_place(&driver->dirs[i].place);
		strv_clear(&driver->dirs[i].names);
	}
	*driver = (struct known_driver){0};
}

/* All but the head. */
static void known_forget(struct known *known)
{
	for (size_t i = 0; i < known->gpu_count; i++)
		known_clear_gpu(&known->gpus[i]);
	free(known->gpus);
	known->gpus = NULL;
	known->gpu_count = 0;
	known_forget_driver(&known->driver);
}

void known_close(struct known *known)
{
	known_forget(known);
	free(known->head);
	*known = (struct known){0};
}

/* ---- the file ---- */

/* A number of digits alone. */
static bool known_read_number(const char *text, int base, unsigned long max, unsigned long *ret)
{
	char *end;

	if (!text || !*text || text[strspn(text, "0123456789abcdef")])
		return false;
	errno = 0;
	*ret = strtoul(text, &end, base);
	return !*end && errno == 0 && *ret <= max;
}

/* "gpu ADDRESS BINDING DEVICE LENGTH", and on the next line a text of that length. */
static int known_parse_gpu(char *line, char **rest, struct known *known)
{
	const char *address = strsep(&line, " "), *binding = strsep(&line, " "), *device = strsep(&line, " ");
	_cleanup_free_ char *information = NULL;
	unsigned long id, length;

	if (!binding || !*binding || !pci_address_is_name(address) || !known_read_number(device, 16, UINT16_MAX, &id) ||
	    !known_read_number(line, 10, INFORMATION_MAX, &length) || known->gpu_count == KNOWN_GPUS_MAX)
		return -EINVAL;
	if (!*rest || strlen(*rest) <= length || (*rest)[length] != '\n')
		return -EINVAL;
	information = strndup(*rest, length);
	*rest += length + 1;
	if (!information || known_keep_gpu(known, address, binding, (uint32_t)id, information) < 0)
		return -ENOMEM;
	known_find_gpu(known, address, binding)->is_here = false;
	return 0;
}

/* "STAMP PATH" */
static int known_parse_place(char *line, struct known_place *ret)
{
	const char *stamp = strsep(&line, " ");

	if (!*stamp || !line || line[0] != '/')
		return -EINVAL;
	ret->stamp = strdup(stamp);
	ret->path = strdup(line);
	return ret->stamp && ret->path ? 0 : -ENOMEM;
}

/* "libraries 64|32 listed|unlisted STAMP PATH" */
static int known_parse_libraries(char *line, struct known_driver *driver)
{
	const char *abi = strsep(&line, " "), *listed = strsep(&line, " ");
	struct known_libraries *dir;

	if (!line || driver->dir_count == KNOWN_DIRS_MAX)
		return -EINVAL;
	dir = &driver->dirs[driver->dir_count++];
	dir->is_32 = streq(abi, "32");
	dir->is_listed = streq(listed, "listed");
	return known_parse_place(line, &dir->place);
}

static int known_parse_name(const char *name, struct known_driver *driver)
{
	struct known_libraries *dir = driver->dir_count ? &driver->dirs[driver->dir_count - 1] : NULL;

	if (!dir || dir->names.count == KNOWN_NAMES_MAX || !str_has_prefix(name, "lib") || strchr(name, '/'))
		return -EINVAL;
	return strv_add(&dir->names, name);
}

/* "driver VERSION STAMP ROOT", and what belongs to it up to "end". */
static int known_parse_driver(char *line, struct known_driver *driver)
{
	const char *version = strsep(&line, " "), *cache = strsep(&line, " ");

	if (!*version || !cache || !*cache || !line || driver->version)
		return -EINVAL;
	driver->version = strdup(version);
	driver->cache = strdup(cache);
	driver->root = strdup(line);
	return driver->version && driver->cache && driver->root ? 0 : -ENOMEM;
}

static int known_parse_line(char *line, char **rest, struct known *known)
{
	struct known_driver *driver = &known->driver;
	const char *word = strsep(&line, " ");

	if (!line)
		return -EINVAL;
	if (streq(word, "gpu"))
		return known_parse_gpu(line, rest, known);
	if (streq(word, "driver"))
		return known_parse_driver(line, driver);
	if (streq(word, "place") && driver->place_count < KNOWN_PLACES_MAX)
		return known_parse_place(line, &driver->places[driver->place_count++]);
	if (streq(word, "libraries"))
		return known_parse_libraries(line, driver);
	return streq(word, "name") ? known_parse_name(line, driver) : -EINVAL;
}

int known_parse(char *text, size_t size, struct known *ret)
{
	char *rest = text, *line = strsep(&rest, "\n");
	int r = strlen(line) + (rest ? strlen(rest) + 1 : 0) == size && streq(line, ret->head) ? 0 : -EINVAL;
	bool ends = false;

	while (r == 0 && !ends && (line = strsep(&rest, "\n"))) {
		ends = streq(line, "end");
		if (!ends)
			r = known_parse_line(line, &rest, ret);
	}
	if (r == 0 && (!ends || !rest || *rest))
		r = -EINVAL;
	if (r < 0)
		known_forget(ret);
	ret->is_new = false;
	return r;
}

static int known_print_driver(const struct known_driver *driver, char **text)
{
	int r = str_append(text, "driver %s %s %s\n", driver->version, driver->cache, driver->root);

	for (size_t i = 0; i < driver->place_count && r == 0; i++)
		r = str_append(text, "place %s %s\n", driver->places[i].stamp, driver->places[i].path);
	for (size_t i = 0; i < driver->dir_count && r == 0; i++) {
		const struct known_libraries *dir = &driver->dirs[i];

		r = str_append(text, "libraries %s %s %s %s\n", dir->is_32 ? "32" : "64",
			       dir->is_listed ? "listed" : "unlisted", dir->place.stamp, dir->place.path);
		for (size_t j = 0; j < dir->names.count && r == 0; j++)
			r = str_append(text, "name %s\n", dir->names.items[j]);
	}
	return r;
}

int known_print(const struct known *known, char **ret)
{
	_cleanup_free_ char *text = NULL;
	int r = str_format(&text, "%s\n", known->head);

	for (size_t i = 0; i < known->gpu_count && r == 0; i++) {
		const struct known_gpu *gpu = &known->gpus[i];

		if (gpu->is_here)
			r = str_append(&text, "gpu %s %s %x %zu\n%s\n", gpu->address, gpu->binding, gpu->device_id,
				       strlen(gpu->information), gpu->information);
	}
	if (r == 0 && known->driver.version)
		r = known_print_driver(&known->driver, &text);
	if (r == 0)
		r = str_append(&text, "end\n");
	if (r == 0)
		*ret = steal_ptr(text);
	return r;
}

/* Numbers of sysfs are another boot's where /run is not emptied. */
static int known_make_head(char **ret)
{
	_cleanup_free_ char *boot = kept_boot();

	return boot ? str_format(ret, "ctr-gpu nvidia 1 %s", boot) : -ENOENT;
}

int known_open(struct known *ret)
{
	_cleanup_free_ char *text = NULL;
	struct known known = {0};
	size_t size;
	int r = known_make_head(&known.head);

	if (r == 0 && kept_read(KNOWN_KEPT, KEPT_MAX, &text, &size) == 0)
		r = known_parse(text, size, &known);
	if (r == -ENOMEM)
		known_close(&known);
	else
		*ret = known;
	return r == -ENOMEM ? r : 0;
}

void known_write(struct known *known)
{
	_cleanup_free_ char *text = NULL;

	if (known->head && known->is_new && known_print(known, &text) == 0)
		kept_write(KNOWN_KEPT, text);
	known->is_new = false;
}

/* ---- GPUs ---- */

int known_binding(const char *address, char **ret)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (str_format(&path, "/sys/bus/pci/devices/%s/driver", address) < 0)
		return -ENOMEM;
	if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
		return -ENOENT;
	return str_format(ret, "%ju.%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

struct known_gpu *known_find_gpu(const struct known *known, const char *address, const char *binding)
{
	for (size_t i = 0; i < known->gpu_count; i++)
		if (streq(known->gpus[i].address, address))
			return streq(known->gpus[i].binding, binding) ? &known->gpus[i] : NULL;
	return NULL;
}

/* The one at an address, or a new one. Return: NULL without memory. */
static struct known_gpu *known_take_gpu(struct known *known, const char *address)
{
	struct known_gpu *gpus;

	for (size_t i = 0; i < known->gpu_count; i++)
		if (streq(known->gpus[i].address, address))
			return &known->gpus[i];
	gpus = array_grow(known->gpus, known->gpu_count, sizeof(*gpus));
	if (!gpus)
		return NULL;
	known->gpus = gpus;
	gpus[known->gpu_count] = (struct known_gpu){0};
	return &gpus[known->gpu_count++];
}

int known_keep_gpu(struct known *known, const char *address, const char *binding, uint32_t device_id,
		   const char *information)
{
	struct known_gpu *gpu, new = {
				       .address = strdup(address),
				       .binding = strdup(binding),
				       .device_id = device_id,
				       .information = strdup(information),
			       };

	gpu = new.address &&new.binding &&new.information ? known_take_gpu(known, address) : NULL;
	if (!gpu) {
		known_clear_gpu(&new);
		return -ENOMEM;
	}
	known_clear_gpu(gpu);
	new.is_here = true;
	*gpu = new;
	known->is_new = true;
	return 0;
}

/* ---- directories ---- */

bool known_is_settled(const struct stat *st, time_t since)
{
	return st->st_mtim.tv_sec < since - SETTLED_AFTER && st->st_ctim.tv_sec < since - SETTLED_AFTER;
}

static void known_format_stamp(const struct stat *st, char text[STAMP_SIZE])
{
	(void)snprintf(text, STAMP_SIZE, "%jx.%jx.%jx.%lx.%jx.%lx", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino,
		       (uintmax_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (uintmax_t)st->st_ctim.tv_sec,
		       st->st_ctim.tv_nsec);
}

int known_stamp(const struct stat *st, char **ret)
{
	char text[STAMP_SIZE];

	known_format_stamp(st, text);
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

bool known_is_stamp(const char *stamp, const struct stat *st)
{
	char text[STAMP_SIZE];

	known_format_stamp(st, text);
	return streq(stamp, text);
}
