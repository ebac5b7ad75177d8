/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A driver that answers with any bytes: what is asked of it, what its strings become, and where its store would be. The first
 * byte chooses the width of a character; answers are then taken from the input as they are asked for.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "dxg/dxg.h"
#include "wsl/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *next;
static size_t left;

/* Fills what was asked for as far as the input goes. Return: the result of the call. */
static int answer(void *buffer, size_t size)
{
	size_t given = size < left ? size : left;

	if (left == 0)
		return -EINVAL;
	if (given > 0)
		memcpy(buffer, next, given);
	next += given;
	left -= given;
	return given > 0 && ((const uint8_t *)buffer)[0] == 0xff ? -EINVAL : 0;
}

static int enumerate3(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters3 *arguments)
{
	(void)d3dkmt;
	(void)answer((void *)(uintptr_t)arguments->adapters, 2 * sizeof(struct d3dkmt_adapterinfo));
	return answer(&arguments->count, 1);
}

static int enumerate2(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters2 *arguments)
{
	(void)d3dkmt;
	return answer(&arguments->count, sizeof(arguments->count));
}

static int query(const struct d3dkmt *d3dkmt, struct d3dkmt_queryadapterinfo *arguments)
{
	(void)d3dkmt;
	return answer((void *)(uintptr_t)arguments->data, arguments->size);
}

static void close_adapter(const struct d3dkmt *d3dkmt, struct d3dkmt_closeadapter *arguments)
{
	(void)d3dkmt;
	(void)arguments;
}

static enum store_content look(const char *path, struct adapter_store *ret)
{
	(void)ret;
	return (enum store_content)((unsigned char)path[strlen(path) - 1] % 3);
}

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check(const struct adapter *adapter)
{
	const char *store = adapter->driver_store;

	require((adapter->unusable != 0) == (adapter->reason != NULL));
	require(adapter->unusable != 0 || store);
	if (!store)
		return;
	require(strncmp(store, PATH_WSL_DRIVERS "/", sizeof(PATH_WSL_DRIVERS)) == 0 && store[sizeof(PATH_WSL_DRIVERS)]);
	require(!strstr(store, "//") && !strstr(store, "/../") && !strstr(store, "/./"));
	require(strcmp(strrchr(store, '/'), "/..") != 0 && strcmp(strrchr(store, '/'), "/") != 0);
	require(!strpbrk(store, "\\:\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct d3dkmt calls = {enumerate3, enumerate2, query, close_adapter, size > 0 && data[0] & 1 ? 4 : 2, -1};
	struct adapter adapters[D3DKMT_MAX_ADAPTERS];
	struct dxg_facts *facts = NULL;
	size_t count = 0;

	next = data + (size > 0);
	left = size - (size > 0);
	if (d3dkmt_describe_adapters(&calls, &facts, &count) < 0)
		return 0;
	require(count <= D3DKMT_MAX_ADAPTERS);
	for (size_t i = 0; i < count; i++) {
		require(adapter_classify(&facts[i], look, &adapters[i]) == 0);
		check(&adapters[i]);
	}
	adapter_sort(adapters, count);
	for (size_t i = 0; i < count; i++)
		adapter_clear(&adapters[i]);
	dxg_facts_free(facts, count);
	return 0;
}
