/* SPDX-License-Identifier: Apache-2.0 */

/*
 * D3DKMT knows no UUID. NVML does, and the PCI address of the adapter on the Windows host, which joins both. The answer
 * is kept until the next boot, for which time an adapter keeps its LUID.
 */

#include "wsl/internal.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "driverd/driverd.h"
#include "system/machine.h"

#define KNOWN "uuids.json"
#define BOOT "boot" /* no LUID is called so */

enum { KNOWN_MAX = 64 * 1024 };

/* Only NVML, and so only NVIDIA's driver, gives adapters UUIDs. */
static bool uuid_is_nvidia(const struct adapter *adapter)
{
	return adapter->vendor_id == PCI_VENDOR_NVIDIA && !adapter->unusable;
}

static bool uuid_has_none(const struct adapter *adapter)
{
	return uuid_is_nvidia(adapter) && !adapter->uuid;
}

static size_t uuid_count(const struct adapter *adapters, size_t count)
{
	size_t nameless = 0;

	for (size_t i = 0; i < count; i++)
		nameless += uuid_has_none(&adapters[i]);
	return nameless;
}

/* What a library says becomes a name in specs and variables. */
static bool uuid_is_uuid(const char *text)
{
	return text && str_has_prefix(text, "GPU-") && text[4] &&
	       text[4 + strspn(text + 4, "0123456789abcdefABCDEF-")] == '\0';
}

/* ---- what is known since an earlier time ---- */

static int uuid_cache_get(struct adapter *adapters, size_t count)
{
	_cleanup_free_ char *text = NULL, *boot = NULL;
	_cleanup_json_ json_t *known = NULL;
	const char *known_boot;
	size_t size;
	int r = 0;

	if (boot_cache_read(KNOWN, KNOWN_MAX, &text, &size) < 0 || json_parse(text, size, &known, NULL) < 0)
		return 0;
	boot = boot_cache_boot();
	known_boot = json_string_value(json_object_get(known, BOOT));
	if (!boot || !known_boot || !streq(boot, known_boot))
		return 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		char luid[LUID_TEXT_SIZE];
		const char *uuid;

		luid_format(adapters[i].luid, luid);
		uuid = json_string_value(json_object_get(known, luid));
		if (uuid_has_none(&adapters[i]) && uuid_is_uuid(uuid))
			r = str_replace(&adapters[i].uuid, uuid);
	}
	return r;
}

/* A plan does not fail if the UUIDs cannot be kept. Only root can keep them; other users get them anew each time. */
static void uuid_cache_put(const struct adapter *adapters, size_t count)
{
	_cleanup_free_ char *text = NULL, *boot = boot_cache_boot();
	_cleanup_json_ json_t *known = boot ? json_pack("{s:s}", BOOT, boot) : NULL;

	for (size_t i = 0; known && i < count; i++) {
		char luid[LUID_TEXT_SIZE];

		luid_format(adapters[i].luid, luid);
		if (adapters[i].has_luid && adapters[i].uuid)
			(void)json_object_set_new(known, luid, json_string(adapters[i].uuid));
	}
	if (known && json_print(known, JSON_COMPACT, &text) == 0)
		boot_cache_write(KNOWN, text);
}

/* ---- what NVML says ---- */

/* The adapter at an address, or else the only one beside the only GPU; NULL: several, or it has its UUID. */
static struct adapter *uuid_find(struct adapter *adapters, size_t count, const char *address, bool is_only)
{
	struct adapter *found = NULL, *last = NULL;
	size_t matches = 0, all = 0;

	for (size_t i = 0; i < count; i++) {
		const char *own = adapters[i].pci_address;

		if (!uuid_is_nvidia(&adapters[i]))
			continue;
		last = &adapters[i];
		all++;
		if (!own || !address || !streq(own, address))
			continue;
		found = last;
		matches++;
	}
	if (matches == 0 && all == 1 && is_only)
		found = last;
	return found && matches <= 1 && !found->uuid ? found : NULL;
}

static int uuid_join(struct adapter *adapters, size_t count, const struct driverd_name *names, size_t name_count)
{
	int r = 0;

	for (size_t i = 0; i < name_count && r == 0; i++) {
		struct adapter *adapter = uuid_find(adapters, count, names[i].of, name_count == 1);

		if (adapter && !names[i].is_part && uuid_is_uuid(names[i].uuid))
			r = str_replace(&adapter->uuid, names[i].uuid);
	}
	return r;
}

static int uuid_query(const struct settings *settings, struct adapter *adapters, size_t count, struct err *err)
{
	_cleanup_free_ char *library = NULL;
	struct driverd_name *names = NULL;
	size_t name_count = 0, first = 0;
	int r;

	while (!uuid_has_none(&adapters[first]))
		first++;
	if (str_format(&library, "%s/libnvidia-ml.so.1", adapters[first].driver_store) < 0)
		return -ENOMEM;
	r = driverd_nvml_names(settings, library, false, "Name the GPU by its index, LUID or PCI address.", &names,
			       &name_count, err);
	if (r == 0)
		r = uuid_join(adapters, count, names, name_count);
	driverd_names_free(names, name_count);
	return r;
}

int uuid_identify(const struct settings *settings, struct adapter *adapters, size_t count, struct err *err)
{
	size_t nameless;
	int r;

	if (uuid_count(adapters, count) == 0)
		return 0;
	r = uuid_cache_get(adapters, count);
	nameless = uuid_count(adapters, count);
	if (r < 0 || nameless == 0)
		return r;
	r = uuid_query(settings, adapters, count, err);
	if (r == 0 && uuid_count(adapters, count) < nameless)
		uuid_cache_put(adapters, count);
	return r;
}
