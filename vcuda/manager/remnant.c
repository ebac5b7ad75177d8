/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The host's memory that servers keep: how much each container may have of it, and what clients still have of servers
 * that have ended.
 */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vcuda/manager/page.h"
#include "vcuda/protocol/pidref.h"
#include "vcuda/protocol/wire.h"

enum {
	REMNANT_LOOK_MS = 1000,
	REMNANT_BLOCK = 512, /* of stat(2) */
};

/* So much is freed before others have their turn: some 10 ms. */
#define REMNANT_PART ((uint64_t)64 << 20)

static uint64_t remnant_read_bytes(const struct remnant *remnant)
{
	struct stat st;

	return fstat(remnant->fd, &st) == 0 ? (uint64_t)st.st_blocks * REMNANT_BLOCK : 0;
}

uint64_t remnant_measure(const struct manager *manager, const struct tenant *tenant)
{
	uint64_t sum = 0;

	for (const struct remnant *remnant = manager->remnants; remnant; remnant = remnant->next)
		if (remnant->tenant == tenant)
			sum += remnant->bytes;
	return sum;
}

bool remnant_is_of(const struct manager *manager, const struct tenant *tenant)
{
	for (const struct remnant *remnant = manager->remnants; remnant; remnant = remnant->next)
		if (remnant->tenant == tenant)
			return true;
	return false;
}

/* ---- who has it ---- */

/*
 * The kernel grants a read lease only on a file that is open for writing nowhere. The manager's own is read-only, so a
 * lease shows that no other process has a descriptor or a mapping, and that none is on its way through a socket. Where
 * a kernel grants no lease on such a file, it counts as in use.
 */
static bool remnant_is_let_go(const struct remnant *remnant)
{
	const bool alone = fcntl(remnant->fd, F_SETLEASE, F_RDLCK) == 0;

	if (alone)
		(void)fcntl(remnant->fd, F_SETLEASE, F_UNLCK);
	return alone;
}

static bool remnant_has_client(struct remnant *remnant)
{
	if (remnant->client < 0 || !pidref_has_ended(remnant->client))
		return remnant->client >= 0;
	cleanup_closep(&remnant->client);
	return false;
}

/* ---- its end ---- */

/* Ring and staging are of no use without the server; the rest may be data of the client's. */
static uint64_t remnant_free_until(const struct remnant *remnant)
{
	return remnant->frees ? WIRE_SHARED_BYTES : WIRE_ARENA_OFFSET;
}

static bool remnant_is_freed(const struct remnant *remnant)
{
	return remnant->freed >= remnant_free_until(remnant);
}

static bool remnant_goes_on(const struct remnant *remnant)
{
	return !remnant_is_freed(remnant) && !remnant->waits;
}

/* It takes as long as there are pages, so a part at a time. Mappings that others have read as zeros. */
static void remnant_free_part(struct remnant *remnant)
{
	const uint64_t until = remnant_free_until(remnant);
	const off_t at = lseek(remnant->fd, (off_t)remnant->freed, SEEK_DATA);
	_cleanup_close_ int fd = -1;
	uint64_t bytes;

	remnant->freed = at < 0 || (uint64_t)at > until ? until : (uint64_t)at;
	if (remnant_is_freed(remnant))
		return;
	bytes = until - remnant->freed < REMNANT_PART ? until - remnant->freed : REMNANT_PART;
	fd = page_open_again(remnant->fd, O_RDWR);
	/* Without a descriptor or memory for it: it is looked at again later. */
	remnant->waits = fd < 0 || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, (off_t)bytes) < 0;
	if (!remnant->waits)
		remnant->freed += bytes;
}

/* @place: in the list */
static void remnant_drop(struct remnant **place)
{
	struct remnant *remnant = *place;

	*place = remnant->next;
	cleanup_closep(&remnant->client);
	cleanup_closep(&remnant->fd);
	free(remnant);
}

/* Whether its memory may be freed: its client has ended, or no other process has it. */
static bool remnant_may_go(struct remnant *remnant)
{
	return !remnant_has_client(remnant) || remnant_is_let_go(remnant);
}

static bool remnant_is_due(struct remnant *remnant, int64_t now)
{
	return remnant_goes_on(remnant) || now >= remnant->look_at || !remnant_has_client(remnant);
}

/* Return: whether there is nothing left of it. */
static bool remnant_go_on(struct remnant *remnant, int64_t now)
{
	remnant->look_at = now + REMNANT_LOOK_MS;
	remnant->frees = remnant->frees || remnant_may_go(remnant);
	if (!remnant_is_freed(remnant))
		remnant_free_part(remnant);
	remnant->bytes = remnant_read_bytes(remnant);
	return remnant_is_freed(remnant) && (remnant->frees || remnant->bytes == 0);
}

bool remnant_look(struct manager *manager, int64_t now)
{
	bool looked = false;

	for (struct remnant **place = &manager->remnants; *place;) {
		const bool due = remnant_is_due(*place, now);

		looked |= due;
		if (due && remnant_go_on(*place, now)) {
			remnant_drop(place);
			manager->remnants_changed = true;
		} else {
			place = &(*place)->next;
		}
	}
	return looked;
}

int64_t remnant_next(const struct manager *manager, int64_t now)
{
	int64_t next = INT64_MAX;

	for (const struct remnant *remnant = manager->remnants; remnant; remnant = remnant->next) {
		const int64_t at = remnant_goes_on(remnant) ? now : remnant->look_at;

		next = at < next ? at : next;
	}
	return next;
}

/* ---- its beginning ---- */

/* Opened once more: Linux counts open files that can write, but not the one that memfd_create(2) returns. */
int remnant_make(void)
{
	_cleanup_close_ int fd = page_make(WIRE_SHARED_BYTES, PAGE_OF_MANAGER);

	return fd < 0 ? fd : page_open_again(fd, O_RDWR);
}

/* Return: the oldest of a container's, or of all, that is kept; NULL. */
static struct remnant *remnant_find_oldest(const struct manager *manager, const struct tenant *tenant,
					   size_t *ret_count)
{
	struct remnant *oldest = NULL;

	*ret_count = 0;
	for (struct remnant *remnant = manager->remnants; remnant; remnant = remnant->next)
		if (!remnant->frees && (!tenant || remnant->tenant == tenant)) {
			oldest = remnant;
			++*ret_count;
		}
	return oldest;
}

/* Whose servers are killed all the time loses what the first of them left. */
static void remnant_make_place(const struct manager *manager, const struct tenant *tenant)
{
	size_t all, own;
	struct remnant *oldest = remnant_find_oldest(manager, NULL, &all),
		       *oldest_own = remnant_find_oldest(manager, tenant, &own);

	if (all >= MANAGER_REMNANTS_MAX)
		(oldest_own ? oldest_own : oldest)->frees = true;
}

static void remnant_add(struct manager *manager, struct remnant *remnant)
{
	remnant->next = manager->remnants;
	manager->remnants = remnant;
	manager->remnants_changed = true;
}

void remnant_leave(struct manager *manager, struct worker *worker)
{
	_cleanup_free_ struct remnant *remnant = worker->shared >= 0 ? malloc(sizeof(*remnant)) : NULL;

	if (!remnant)
		return;
	*remnant = (struct remnant){
		.tenant = worker->tenant,
		.client = worker->client,
		.client_pid = worker->client_pid,
		.client_started = worker->client_started,
	};
	/* Opened anew, or it would be the client's, too. */
	remnant->fd = page_open_again(worker->shared, O_RDONLY);
	if (remnant->fd < 0)
		return;
	remnant_make_place(manager, worker->tenant);
	cleanup_closep(&worker->shared);
	worker->client = -1;
	remnant_add(manager, steal_ptr(remnant));
	(void)remnant_look(manager, manager_now());
	if (remnant_measure(manager, worker->tenant) > 0)
		audit_write("memory-kept", worker->tenant,
			    json_pack("{s:I}", "memory", (json_int_t)remnant_measure(manager, worker->tenant)));
}

void remnant_reattach(struct manager *manager, struct tenant *tenant, int fd, const struct remnant *known)
{
	_cleanup_close_ int taken = fd, pidfd = -1;
	struct remnant *remnant = malloc(sizeof(*remnant));

	if (!remnant)
		return;
	*remnant = *known;
	remnant->tenant = tenant;
	remnant->client = -1;
	remnant->fd = page_open_again(taken, O_RDONLY);
	if (remnant->fd < 0) {
		free(remnant);
		return;
	}
	if (known->client_started && pidref_open(known->client_pid, known->client_started, &pidfd, NULL) == 0)
		remnant->client = steal_fd(&pidfd);
	remnant->bytes = remnant_read_bytes(remnant);
	remnant_add(manager, remnant);
}

/* ---- in the keeper ---- */

static void remnant_free_all(struct remnant *remnant)
{
	remnant->frees = true;
	while (!remnant_is_freed(remnant))
		remnant_free_part(remnant);
}

void remnant_drop_ended(struct manager *manager)
{
	for (struct remnant **place = &manager->remnants; *place;)
		if (remnant_has_client(*place)) {
			place = &(*place)->next;
		} else {
			remnant_free_all(*place);
			remnant_drop(place);
		}
}

/* ---- how much each container may have ---- */

uint64_t pinned_memory_measure_host(void)
{
	struct sysinfo host;

	return sysinfo(&host) < 0 ? 0 : (uint64_t)host.totalram * host.mem_unit / 2;
}

/*
 * Page-locked memory is a part of what the container's servers may have of the host's: they are told that there is no
 * more before the kernel ends them.
 */
uint64_t pinned_memory_measure(const struct tenant *tenant)
{
	const uint64_t half = tenant->limits.host_memory / 2, quarter = pinned_memory_measure_host() / 2;

	return half < quarter ? half : quarter;
}

/*
 * Servers write there, so it is not more than the container was allowed, nor than half of all: a server that was not
 * taken over keeps to that by itself (start.host_memory).
 */
static uint64_t pinned_memory_had(const struct manager *manager, const struct tenant *tenant)
{
	const uint64_t half = manager->host_memory / 2, most = tenant->host_limit < half ? tenant->host_limit : half;
	uint64_t sum = remnant_measure(manager, tenant);

	for (size_t i = 0; i < START_QUOTA_SLOTS; i++)
		if (__builtin_add_overflow(sum, tenant->quota->locked[i], &sum))
			return most;
	return sum < most ? sum : most;
}

/* Servers do not count what others of their container have left. */
static void pinned_memory_set(const struct manager *manager, struct tenant *tenant, uint64_t limit)
{
	const uint64_t left = remnant_measure(manager, tenant), own = pinned_memory_measure(tenant),
		       most = left && own < limit ? own : limit;

	tenant->host_limit = limit;
	/* 0 would be no limit of ours. */
	tenant->orders->locked_limit = most > left ? most - left : 1;
}

/* A container that has more than its share, or that ends, keeps what it has and gets no more. */
static bool pinned_memory_has_more(const struct manager *manager, const struct tenant *tenant, uint64_t share)
{
	return tenant->ending || pinned_memory_had(manager, tenant) > share;
}

/* Who may not have all of its share leaves the rest to the others: many small ones take nothing from a large one. */
static bool pinned_memory_needs_less(const struct manager *manager, const struct tenant *tenant, uint64_t share)
{
	(void)manager;
	return pinned_memory_measure(tenant) < share;
}

typedef bool (*pinned_memory_question)(const struct manager *manager, const struct tenant *tenant, uint64_t share);

static struct tenant *pinned_memory_find(const struct manager *manager, pinned_memory_question is, uint64_t share)
{
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (!tenant->settled && is(manager, tenant, share))
			return tenant;
	return NULL;
}

static void pinned_memory_settle(const struct manager *manager, struct tenant *tenant, uint64_t limit, uint64_t *left)
{
	tenant->settled = true;
	pinned_memory_set(manager, tenant, limit);
	*left -= limit < *left ? limit : *left;
}

void pinned_memory_host_memory(struct manager *manager)
{
	uint64_t left = manager->host_memory, open = manager->tenant_count;
	struct tenant *tenant;

	if (left == 0)
		return;
	for (tenant = manager->tenants; tenant; tenant = tenant->next)
		tenant->settled = false;
	for (; open > 0 && (tenant = pinned_memory_find(manager, pinned_memory_has_more, left / open)); open--)
		pinned_memory_settle(manager, tenant, pinned_memory_had(manager, tenant), &left);
	for (; open > 0 && (tenant = pinned_memory_find(manager, pinned_memory_needs_less, left / open)); open--)
		pinned_memory_settle(manager, tenant, pinned_memory_measure(tenant), &left);
	for (tenant = manager->tenants; tenant && open > 0; tenant = tenant->next)
		if (!tenant->settled)
			pinned_memory_set(manager, tenant, left / open);
}
