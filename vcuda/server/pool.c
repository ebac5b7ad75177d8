/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pools that memory came from, and what they keep, which counts.
 */

#include "vcuda/server/quota.h"

#include <pthread.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"

enum { POOL_RESERVED = 5, POOL_USED = 7, POOLS = 64 };

/*
 * Those that memory came from. They keep what was freed, or is freed when a stream comes there, and other processes of
 * the container have to know. One that the client has destroyed would keep it where no client could use it, as long as
 * any of it is in use, so that it is the driver's until then.
 */
static pthread_mutex_t pool_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t pool;
	bool ended;
} pools[POOLS];
static unsigned pool_count;
static _Atomic uint64_t pools_keep; /* as it is counted */

static bool pool_is_counted(void)
{
	return quota_is_limited() && driver.cuMemPoolGetAttribute && driver.cuMemPoolTrimTo;
}

static uint64_t pool_query(uint64_t pool, CUmemPool_attribute attribute)
{
	uint64_t value = 0;

	(void)driver.cuMemPoolGetAttribute(pool, attribute, &value);
	return value;
}

static void pool_settle_all(void)
{
	uint64_t keep = 0;

	for (unsigned i = pool_count; i > 0; i--) {
		const uint64_t reserved = pool_query(pools[i - 1].pool, POOL_RESERVED);
		const uint64_t used = pool_query(pools[i - 1].pool, POOL_USED);

		if (pools[i - 1].ended && used == 0 && !driver.cuMemPoolDestroy(pools[i - 1].pool))
			pools[i - 1] = pools[--pool_count];
		else
			keep += reserved > used ? reserved - used : 0;
	}
	if (keep > pools_keep)
		quota_count(keep - pools_keep);
	else
		quota_give(pools_keep - keep);
	pools_keep = keep;
}

void pool_settle(void)
{
	(void)pthread_mutex_lock(&pool_mutex);
	if (pool_count > 0 && pool_is_counted())
		pool_settle_all();
	(void)pthread_mutex_unlock(&pool_mutex);
}

void pool_trim(void)
{
	(void)pthread_mutex_lock(&pool_mutex);
	for (unsigned i = 0; i < pool_count && pool_is_counted(); i++)
		(void)driver.cuMemPoolTrimTo(pools[i].pool, 0);
	if (pool_count > 0 && pool_is_counted())
		pool_settle_all();
	(void)pthread_mutex_unlock(&pool_mutex);
}

bool pool_add(uint64_t pool)
{
	bool added = true;

	(void)pthread_mutex_lock(&pool_mutex);
	for (unsigned i = 0; i < pool_count && added; i++)
		added = pools[i].pool != pool;
	if (added && pool_count < POOLS) {
		pools[pool_count].pool = pool;
		pools[pool_count++].ended = false;
	} else {
		added = !added || !pool_is_counted();
	}
	(void)pthread_mutex_unlock(&pool_mutex);
	return added;
}

uint64_t pool_cached(void)
{
	return pools_keep;
}

CUresult pool_end(uint64_t pool, bool (*keep)(uint64_t pool))
{
	CUresult r = CUDA_SUCCESS;
	unsigned i = 0;

	(void)pthread_mutex_lock(&pool_mutex);
	while (i < pool_count && pools[i].pool != pool)
		i++;
	if (i < pool_count && pool_is_counted() && keep(pool)) {
		pools[i].ended = true;
		pool_settle_all();
	} else {
		r = driver.cuMemPoolDestroy(pool);
		if (!r && i < pool_count)
			pools[i] = pools[--pool_count];
	}
	(void)pthread_mutex_unlock(&pool_mutex);
	return r;
}
