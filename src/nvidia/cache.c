/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "model/adapter.h"
#include "system/machine.h"

enum {
	SOURCES_MAX = 256 * 1024,
	SETTLED_AFTER = 2, /* seconds; file systems keep times in steps of up to so many */
	FINGERPRINT_SIZE = 6 * 17 + 1,
	INFORMATION_MAX = 4096,
};

static void nvidia_cache_clear_gpu(struct nvidia_cache_gpu *gpu)
{
	free(gpu->address);
	free(gpu->binding);
	free(gpu->information);
}

static void nvidia_cache_clear_directory(struct cached_directory *place)
{
	free(place->stamp);
	free(place->path);
}

void nvidia_cache_drop_driver(struct nvidia_cache_driver *driver)
{
	free(driver->version);
	free(driver->cache);
	free(driver->root);
	for (size_t i = 0; i < driver->place_count; i++)
		nvidia_cache_clear_directory(&driver->places[i]);
	for (size_t i = 0; i < driver->dir_count; i++) {
		nvidia_cache_clear_directory(&driver->dirs[i].place);
		strv_clear(&driver->dirs[i].names);
	}
	*driver = (struct nvidia_cache_driver){0};
}

/* All but the head. */
static void nvidia_cache_drop(struct nvidia_cache *cache)
{
	for (size_t i = 0; i < cache->gpu_count; i++)
		nvidia_cache_clear_gpu(&cache->gpus[i]);
	free(cache->gpus);
	cache->gpus = NULL;
	cache->gpu_count = 0;
	nvidia_cache_drop_driver(&cache->driver);
}

void nvidia_cache_close(struct nvidia_cache *cache)
{
	nvidia_cache_drop(cache);
	free(cache->head);
	*cache = (struct nvidia_cache){0};
}

/* ---- the file ---- */

/* A number of digits alone. */
static bool nvidia_cache_read_number(const char *text, int base, unsigned long max, unsigned long *ret)
{
	char *end;

	if (!text || !*text || text[strspn(text, "0123456789abcdef")])
		return false;
	errno = 0;
	*ret = strtoul(text, &end, base);
	return !*end && errno == 0 && *ret <= max;
}

/* "gpu ADDRESS BINDING DEVICE LENGTH", and on the next line a text of that length. */
static int nvidia_cache_parse_gpu(char *line, char **rest, struct nvidia_cache *cache)
{
	const char *address = strsep(&line, " "), *binding = strsep(&line, " "), *device = strsep(&line, " ");
	_cleanup_free_ char *information = NULL;
	unsigned long id, length;

	if (!binding || !*binding || !pci_address_is_name(address) ||
	    !nvidia_cache_read_number(device, 16, UINT16_MAX, &id) ||
	    !nvidia_cache_read_number(line, 10, INFORMATION_MAX, &length) || cache->gpu_count == NVIDIA_CACHE_GPUS_MAX)
		return -EINVAL;
	if (!*rest || strlen(*rest) <= length || (*rest)[length] != '\n')
		return -EINVAL;
	information = strndup(*rest, length);
	*rest += length + 1;
	if (!information || nvidia_cache_put_gpu(cache, address, binding, (uint32_t)id, information) < 0)
		return -ENOMEM;
	nvidia_cache_find_gpu(cache, address, binding)->is_here = false;
	return 0;
}

/* "STAMP PATH" */
static int nvidia_cache_parse_directory(char *line, struct cached_directory *ret)
{
	const char *stamp = strsep(&line, " ");

	if (!*stamp || !line || line[0] != '/')
		return -EINVAL;
	ret->stamp = strdup(stamp);
	ret->path = strdup(line);
	return ret->stamp && ret->path ? 0 : -ENOMEM;
}

/* "libraries 64|32 listed|unlisted STAMP PATH" */
static int nvidia_cache_parse_libraries(char *line, struct nvidia_cache_driver *driver)
{
	const char *abi = strsep(&line, " "), *listed = strsep(&line, " ");
	struct nvidia_cache_libraries *dir;

	if (!line || driver->dir_count == NVIDIA_CACHE_DIRS_MAX)
		return -EINVAL;
	dir = &driver->dirs[driver->dir_count++];
	dir->is_32 = streq(abi, "32");
	dir->is_listed = streq(listed, "listed");
	return nvidia_cache_parse_directory(line, &dir->place);
}

static int nvidia_cache_parse_name(const char *name, struct nvidia_cache_driver *driver)
{
	struct nvidia_cache_libraries *dir = driver->dir_count ? &driver->dirs[driver->dir_count - 1] : NULL;

	if (!dir || dir->names.count == NVIDIA_CACHE_NAMES_MAX || !str_has_prefix(name, "lib") || strchr(name, '/'))
		return -EINVAL;
	return strv_add(&dir->names, name);
}

/* "driver VERSION STAMP ROOT", and what belongs to it up to "end". */
static int nvidia_cache_parse_driver(char *line, struct nvidia_cache_driver *driver)
{
	const char *version = strsep(&line, " "), *cache = strsep(&line, " ");

	if (!*version || !cache || !*cache || !line || driver->version)
		return -EINVAL;
	driver->version = strdup(version);
	driver->cache = strdup(cache);
	driver->root = strdup(line);
	return driver->version && driver->cache && driver->root ? 0 : -ENOMEM;
}

static int nvidia_cache_parse_line(char *line, char **rest, struct nvidia_cache *cache)
{
	struct nvidia_cache_driver *driver = &cache->driver;
	const char *word = strsep(&line, " ");

	if (!line)
		return -EINVAL;
	if (streq(word, "gpu"))
		return nvidia_cache_parse_gpu(line, rest, cache);
	if (streq(word, "driver"))
		return nvidia_cache_parse_driver(line, driver);
	if (streq(word, "place") && driver->place_count < NVIDIA_CACHE_PLACES_MAX)
		return nvidia_cache_parse_directory(line, &driver->places[driver->place_count++]);
	if (streq(word, "libraries"))
		return nvidia_cache_parse_libraries(line, driver);
	return streq(word, "name") ? nvidia_cache_parse_name(line, driver) : -EINVAL;
}

int nvidia_cache_parse(char *text, size_t size, struct nvidia_cache *ret)
{
	char *rest = text, *line = strsep(&rest, "\n");
	int r = strlen(line) + (rest ? strlen(rest) + 1 : 0) == size && streq(line, ret->head) ? 0 : -EINVAL;
	bool ends = false;

	while (r == 0 && !ends && (line = strsep(&rest, "\n"))) {
		ends = streq(line, "end");
		if (!ends)
			r = nvidia_cache_parse_line(line, &rest, ret);
	}
	if (r == 0 && (!ends || !rest || *rest))
		r = -EINVAL;
	if (r < 0)
		nvidia_cache_drop(ret);
	ret->is_new = false;
	return r;
}

static int nvidia_cache_print_driver(const struct nvidia_cache_driver *driver, char **text)
{
	int r = str_append(text, "driver %s %s %s\n", driver->version, driver->cache, driver->root);

	for (size_t i = 0; i < driver->place_count && r == 0; i++)
		r = str_append(text, "place %s %s\n", driver->places[i].stamp, driver->places[i].path);
	for (size_t i = 0; i < driver->dir_count && r == 0; i++) {
		const struct nvidia_cache_libraries *dir = &driver->dirs[i];

		r = str_append(text, "libraries %s %s %s %s\n", dir->is_32 ? "32" : "64",
			       dir->is_listed ? "listed" : "unlisted", dir->place.stamp, dir->place.path);
		for (size_t j = 0; j < dir->names.count && r == 0; j++)
			r = str_append(text, "name %s\n", dir->names.items[j]);
	}
	return r;
}

int nvidia_cache_print(const struct nvidia_cache *cache, char **ret)
{
	_cleanup_free_ char *text = NULL;
	int r = str_format(&text, "%s\n", cache->head);

	for (size_t i = 0; i < cache->gpu_count && r == 0; i++) {
		const struct nvidia_cache_gpu *gpu = &cache->gpus[i];

		if (gpu->is_here)
			r = str_append(&text, "gpu %s %s %x %zu\n%s\n", gpu->address, gpu->binding, gpu->device_id,
				       strlen(gpu->information), gpu->information);
	}
	if (r == 0 && cache->driver.version)
		r = nvidia_cache_print_driver(&cache->driver, &text);
	if (r == 0)
		r = str_append(&text, "end\n");
	if (r == 0)
		*ret = steal_ptr(text);
	return r;
}

/* Numbers of sysfs are another boot's where /run is not emptied. */
static int nvidia_cache_make_head(char **ret)
{
	_cleanup_free_ char *boot = boot_cache_boot();

	return boot ? str_format(ret, "ctr-gpu nvidia 1 %s", boot) : -ENOENT;
}

int nvidia_cache_open(struct nvidia_cache *ret)
{
	_cleanup_free_ char *text = NULL;
	struct nvidia_cache cache = {0};
	size_t size;
	int r = nvidia_cache_make_head(&cache.head);

	if (r == 0 && boot_cache_read(NVIDIA_CACHE_NAME, SOURCES_MAX, &text, &size) == 0)
		r = nvidia_cache_parse(text, size, &cache);
	if (r == -ENOMEM)
		nvidia_cache_close(&cache);
	else
		*ret = cache;
	return r == -ENOMEM ? r : 0;
}

void nvidia_cache_write(struct nvidia_cache *cache)
{
	_cleanup_free_ char *text = NULL;

	if (cache->head && cache->is_new && nvidia_cache_print(cache, &text) == 0)
		boot_cache_write(NVIDIA_CACHE_NAME, text);
	cache->is_new = false;
}

/* ---- GPUs ---- */

int nvidia_cache_driver_binding(const char *address, char **ret)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (str_format(&path, "/sys/bus/pci/devices/%s/driver", address) < 0)
		return -ENOMEM;
	if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
		return -ENOENT;
	return str_format(ret, "%ju.%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

struct nvidia_cache_gpu *nvidia_cache_find_gpu(const struct nvidia_cache *cache, const char *address,
					       const char *binding)
{
	for (size_t i = 0; i < cache->gpu_count; i++)
		if (streq(cache->gpus[i].address, address))
			return streq(cache->gpus[i].binding, binding) ? &cache->gpus[i] : NULL;
	return NULL;
}

/* The one at an address, or a new one. Return: NULL without memory. */
static struct nvidia_cache_gpu *nvidia_cache_get_gpu(struct nvidia_cache *cache, const char *address)
{
	struct nvidia_cache_gpu *gpus;

	for (size_t i = 0; i < cache->gpu_count; i++)
		if (streq(cache->gpus[i].address, address))
			return &cache->gpus[i];
	gpus = array_grow(cache->gpus, cache->gpu_count, sizeof(*gpus));
	if (!gpus)
		return NULL;
	cache->gpus = gpus;
	gpus[cache->gpu_count] = (struct nvidia_cache_gpu){0};
	return &gpus[cache->gpu_count++];
}

int nvidia_cache_put_gpu(struct nvidia_cache *cache, const char *address, const char *binding, uint32_t device_id,
			 const char *information)
{
	struct nvidia_cache_gpu *gpu, new = {
					      .address = strdup(address),
					      .binding = strdup(binding),
					      .device_id = device_id,
					      .information = strdup(information),
				      };

	gpu = new.address &&new.binding &&new.information ? nvidia_cache_get_gpu(cache, address) : NULL;
	if (!gpu) {
		nvidia_cache_clear_gpu(&new);
		return -ENOMEM;
	}
	nvidia_cache_clear_gpu(gpu);
	new.is_here = true;
	*gpu = new;
	cache->is_new = true;
	return 0;
}

/* ---- directories ---- */

bool nvidia_cache_is_settled(const struct stat *st, time_t since)
{
	return st->st_mtim.tv_sec < since - SETTLED_AFTER && st->st_ctim.tv_sec < since - SETTLED_AFTER;
}

static void nvidia_cache_format_fingerprint(const struct stat *st, char text[FINGERPRINT_SIZE])
{
	(void)snprintf(text, FINGERPRINT_SIZE, "%jx.%jx.%jx.%lx.%jx.%lx", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino,
		       (uintmax_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (uintmax_t)st->st_ctim.tv_sec,
		       st->st_ctim.tv_nsec);
}

int nvidia_cache_fingerprint(const struct stat *st, char **ret)
{
	char text[FINGERPRINT_SIZE];

	nvidia_cache_format_fingerprint(st, text);
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

bool nvidia_cache_is_fingerprint(const char *stamp, const struct stat *st)
{
	char text[FINGERPRINT_SIZE];

	nvidia_cache_format_fingerprint(st, text);
	return streq(stamp, text);
}
