/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/turns/turns.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PASS_SCALE = 1000, AGAIN_US = 40, CLIENT_GPUS = 32 /* where a client's word has its bits of GPUs */ };

struct container {
	uint32_t user, share;
	unsigned gpu_count;
	uint8_t gpus[START_GPUS]; /* numbers of ours */
	const struct start_quota *quota;
	struct start_turns *page;
	uint64_t pass[START_GPUS];
	int64_t needed_at[START_GPUS];                /* when one of its servers needed the GPU last */
	uint32_t last[START_GPUS][START_QUOTA_SLOTS]; /* turn of each */
	bool late[START_GPUS][START_QUOTA_SLOTS];     /* its turn is over, and what it has begun is not done */
};

/* On a GPU. */
struct server {
	struct container *container; /* NULL: none */
	unsigned gpu;                /* as the container counts */
	unsigned slot;
};

struct gpu {
	uint8_t uuid[16];
	struct server servers[TURNS_SERVERS];
	size_t server_count;
	bool rivals;
	int64_t rivals_at;    /* when it had some last */
	struct server holder; /* of the turn */
	int64_t began, ended; /* of its turn; 0: it goes on */
	int64_t counted_at;
	uint64_t clock; /* the pass of the last turn's server when that turn began */
};

struct turns {
	struct container *containers[TURNS_CONTAINERS];
	size_t container_count;
	struct gpu gpus[TURNS_GPUS];
	size_t gpu_count;
	uint32_t number;
	int64_t scanned_at;
	bool measured;
};

/* ---- pages ---- */

static uint32_t server_needs(const struct server *server)
{
	return atomic_load_explicit(&server->container->quota->needs[server->gpu][server->slot], memory_order_acquire);
}

static _Atomic uint32_t *server_turn(const struct server *server)
{
	return &server->container->page->turn[server->gpu][server->slot];
}

static void server_set_turn(const struct server *server, uint32_t number)
{
	_Atomic uint32_t *turn = server_turn(server);

	atomic_store_explicit(turn, number, memory_order_release);
	(void)syscall(SYS_futex, (uint32_t *)turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void server_set_rivals(const struct server *server, bool rivals)
{
	_Atomic uint32_t *word = &server->container->page->rivals[server->slot];
	const uint32_t bit = 1U << server->gpu;

	if (rivals)
		(void)atomic_fetch_or(word, bit);
	else
		(void)atomic_fetch_and(word, ~bit);
}

/* It has work: its client has not been asleep, or says so. */
static bool server_works(const struct server *server)
{
	return server_needs(server) ||
	       atomic_load_explicit(&server->container->quota->rests[server->slot], memory_order_relaxed) == 0;
}

static bool server_is(const struct server *one, const struct server *other)
{
	return one->container == other->container && one->slot == other->slot && one->gpu == other->gpu;
}

static bool *server_late(const struct server *server)
{
	return &server->container->late[server->gpu][server->slot];
}

static void server_count(const struct server *server, int64_t microseconds)
{
	struct container *container = server->container;

	container->pass[server->gpu] += (uint64_t)microseconds * PASS_SCALE / container->share;
	(void)atomic_fetch_add(&container->page->spent[server->gpu][server->slot], (uint64_t)microseconds * 1000);
}

/* ---- containers ---- */

struct turns *turns_new(void)
{
	return calloc(1, sizeof(struct turns));
}

static uint32_t turns_check_share(uint32_t share)
{
	return share > 0 && share <= TURN_SHARE_MOST ? share : TURN_SHARE_USUAL;
}

/* Some container has it, whose servers may be on it. */
static bool turns_uses_gpu(const struct turns *turns, size_t gpu)
{
	for (size_t i = 0; i < turns->container_count; i++)
		for (unsigned k = 0; k < turns->containers[i]->gpu_count; k++)
			if (turns->containers[i]->gpus[k] == gpu)
				return true;
	return false;
}

/* Return: a number that stands for no GPU, or for one that no container has any more; TURNS_GPUS: there is none. */
static unsigned turns_take_gpu(struct turns *turns, const uint8_t uuid[16])
{
	size_t i = 0;

	while (i < turns->gpu_count && turns_uses_gpu(turns, i))
		i++;
	if (i == TURNS_GPUS)
		return TURNS_GPUS;
	turns->gpu_count += i == turns->gpu_count;
	turns->gpus[i] = (struct gpu){0};
	memcpy(turns->gpus[i].uuid, uuid, sizeof(turns->gpus[i].uuid));
	return (unsigned)i;
}

/* Return: the GPU's number; TURNS_GPUS if there are too many. */
static unsigned turns_find_gpu(struct turns *turns, const uint8_t uuid[16])
{
	for (size_t i = 0; i < turns->gpu_count; i++)
		if (memcmp(turns->gpus[i].uuid, uuid, sizeof(turns->gpus[i].uuid)) == 0)
			return (unsigned)i;
	return turns_take_gpu(turns, uuid);
}

/* As if no server had a turn or a rival: a decider before this one may have ended in the middle. */
static void container_empty_page(const struct container *container)
{
	for (unsigned slot = 0; slot < START_QUOTA_SLOTS; slot++) {
		atomic_store(&container->page->rivals[slot], 0);
		for (unsigned gpu = 0; gpu < container->gpu_count; gpu++)
			server_set_turn(&(struct server){(struct container *)(uintptr_t)container, gpu, slot}, 0);
	}
}

static void container_measure(const struct container *container, bool measured)
{
	for (unsigned slot = 0; slot < START_QUOTA_SLOTS; slot++)
		if (measured)
			(void)atomic_fetch_or(&container->page->rivals[slot], TURN_MEASURED);
		else
			(void)atomic_fetch_and(&container->page->rivals[slot], ~TURN_MEASURED);
}

int turns_add(struct turns *turns, const struct turns_order *order, const struct start_quota *quota,
	      struct start_turns *page)
{
	struct container *container;

	if (turns->container_count == TURNS_CONTAINERS || order->gpu_count > START_GPUS)
		return -ENOSPC;
	container = calloc(1, sizeof(*container));
	if (!container)
		return -ENOMEM;
	container->user = order->user;
	container->share = turns_check_share(order->share);
	container->quota = quota;
	container->page = page;
	/* From here on, GPUs that it has keep their numbers. */
	turns->containers[turns->container_count++] = container;
	for (unsigned i = 0; i < order->gpu_count; i++) {
		const unsigned gpu = turns_find_gpu(turns, order->gpus[i]);

		if (gpu == TURNS_GPUS)
			break;
		container->gpus[container->gpu_count++] = (uint8_t)gpu;
	}
	container_empty_page(container);
	container_measure(container, turns->measured);
	turns->scanned_at = 0;
	return 0;
}

void turns_free(struct turns *turns)
{
	for (size_t i = 0; i < turns->container_count; i++) {
		container_empty_page(turns->containers[i]);
		free(turns->containers[i]);
	}
	free(turns);
}

static struct container **turns_find(struct turns *turns, uint32_t user)
{
	for (size_t i = 0; i < turns->container_count; i++)
		if (turns->containers[i]->user == user)
			return &turns->containers[i];
	return NULL;
}

static void gpu_forget(struct gpu *gpu, const struct container *container)
{
	size_t kept = 0;

	for (size_t i = 0; i < gpu->server_count; i++)
		if (gpu->servers[i].container != container)
			gpu->servers[kept++] = gpu->servers[i];
	gpu->server_count = kept;
	if (gpu->holder.container == container)
		gpu->holder.container = NULL;
}

bool turns_drop(struct turns *turns, uint32_t user, const struct start_quota **ret_quota, struct start_turns **ret_page)
{
	struct container **place = turns_find(turns, user), *container = place ? *place : NULL;

	if (!container)
		return false;
	container_empty_page(container);
	for (size_t i = 0; i < turns->gpu_count; i++)
		gpu_forget(&turns->gpus[i], container);
	*ret_quota = container->quota;
	*ret_page = container->page;
	*place = turns->containers[--turns->container_count];
	free(container);
	return true;
}

void turns_weigh(struct turns *turns, uint32_t user, uint32_t share)
{
	struct container **place = turns_find(turns, user);

	if (place)
		(*place)->share = turns_check_share(share);
}

void turns_measure(struct turns *turns, bool measured)
{
	turns->measured = measured;
	for (size_t i = 0; i < turns->container_count; i++)
		container_measure(turns->containers[i], measured);
}

/* ---- which servers there are ---- */

/* It has ended, or has no context there, or goes without turns: the next one in its slot waits for none. */
static void server_forget(const struct server *server)
{
	const uint32_t rivals =
		atomic_load_explicit(&server->container->page->rivals[server->slot], memory_order_relaxed);

	if (rivals & 1U << server->gpu)
		server_set_rivals(server, false);
	if (atomic_load_explicit(server_turn(server), memory_order_relaxed))
		server_set_turn(server, 0);
}

static void turns_scan_server(struct turns *turns, struct container *container, unsigned slot)
{
	const uint64_t client = atomic_load_explicit(&container->quota->client[slot], memory_order_relaxed);

	for (unsigned i = 0; i < container->gpu_count; i++) {
		struct gpu *gpu = &turns->gpus[container->gpus[i]];
		const struct server server = {container, i, slot};

		if (!(client >> CLIENT_GPUS & (uint64_t)1 << i) || gpu->server_count == TURNS_SERVERS) {
			server_forget(&server);
			continue;
		}
		gpu->servers[gpu->server_count++] = server;
		server_set_rivals(&server, gpu->rivals);
	}
}

/* One slot that is in use, and those before it that are not. Return: the next one. */
static unsigned turns_scan_next(struct turns *turns, struct container *container, unsigned slot)
{
	bool used = false;

	while (slot < START_QUOTA_SLOTS && !used) {
		used = atomic_load_explicit(&container->quota->client[slot], memory_order_relaxed) >> CLIENT_GPUS;
		turns_scan_server(turns, container, slot++);
	}
	return slot;
}

/*
 * Of each container one server in turn: one whose servers say that they are more than there can be fills a GPU's table
 * with what others leave of it, and no other goes without turns for it.
 */
static void turns_scan(struct turns *turns)
{
	unsigned slots[TURNS_CONTAINERS] = {0};
	bool more = true;

	for (size_t i = 0; i < turns->gpu_count; i++)
		turns->gpus[i].server_count = 0;
	while (more) {
		more = false;
		for (size_t i = 0; i < turns->container_count; i++) {
			slots[i] = turns_scan_next(turns, turns->containers[i], slots[i]);
			more |= slots[i] < START_QUOTA_SLOTS;
		}
	}
}

/* ---- turns ---- */

/* Of two containers at least. */
static bool gpu_has_rivals(const struct gpu *gpu, bool (*has)(const struct server *server))
{
	const struct container *first = NULL;

	for (size_t i = 0; i < gpu->server_count; i++) {
		const struct server *server = &gpu->servers[i];

		if (server->container == first || !has(server))
			continue;
		if (first)
			return true;
		first = server->container;
	}
	return false;
}

static bool server_is_there(const struct server *server)
{
	(void)server;
	return true;
}

static void gpu_set_rivals(struct gpu *gpu, bool rivals)
{
	if (gpu->rivals == rivals)
		return;
	gpu->rivals = rivals;
	gpu->holder.container = NULL;
	for (size_t i = 0; i < gpu->server_count; i++) {
		*server_late(&gpu->servers[i]) = false;
		server_set_rivals(&gpu->servers[i], rivals);
		server_set_turn(&gpu->servers[i], 0);
	}
}

/* Another than the one that has it waits for the turn. */
static bool gpu_is_wanted(const struct gpu *gpu)
{
	for (size_t i = 0; i < gpu->server_count; i++)
		if (!server_is(&gpu->servers[i], &gpu->holder) && server_needs(&gpu->servers[i]) & TURN_WANTED)
			return true;
	return false;
}

/* Whose pass is least; of one container's, the one that had its last turn first. Return: NULL if nobody waits. */
static const struct server *gpu_choose(struct gpu *gpu)
{
	const struct server *chosen = NULL;

	for (size_t i = 0; i < gpu->server_count; i++) {
		const struct server *server = &gpu->servers[i];
		const uint64_t pass = server->container->pass[server->gpu];

		if (!(server_needs(server) & TURN_WANTED))
			continue;
		if (!chosen || pass < chosen->container->pass[chosen->gpu] ||
		    (server->container == chosen->container &&
		     server->container->last[server->gpu][server->slot] <
			     chosen->container->last[chosen->gpu][chosen->slot]))
			chosen = server;
	}
	return chosen;
}

static void gpu_give_turn(struct turns *turns, struct gpu *gpu, int64_t now)
{
	const struct server *chosen = gpu_choose(gpu);

	if (!chosen)
		return;
	turns->number += turns->number == UINT32_MAX ? 2 : 1;
	gpu->holder = *chosen;
	gpu->began = now;
	gpu->ended = 0;
	gpu->clock = chosen->container->pass[chosen->gpu];
	chosen->container->last[chosen->gpu][chosen->slot] = turns->number;
	server_set_turn(chosen, turns->number);
}

/* Return: whether its turn is over. */
static bool gpu_is_over(const struct gpu *gpu, uint32_t needs, int64_t now)
{
	const int64_t most = *server_late(&gpu->holder) ? TURNS_SHORT_US : TURNS_LONG_US;

	if (!(needs & TURN_USED))
		return !needs || now - gpu->began > TURNS_TAKE_US;
	return now - gpu->began > most && gpu_is_wanted(gpu);
}

/* Return: whether the turn can be another's. */
static bool gpu_end_turn(struct gpu *gpu, int64_t now)
{
	const struct server *holder = &gpu->holder;
	const uint32_t needs = server_needs(holder);

	if (!gpu->ended) {
		if (!gpu_is_over(gpu, needs, now))
			return false;
		server_set_turn(holder, 0);
		gpu->ended = now;
	}
	if (needs & TURN_USED && !*server_late(holder) && now - gpu->ended <= TURNS_GRACE_US)
		return false;
	*server_late(holder) = needs & TURN_USED;
	return true;
}

/*
 * Who was away has no claim to what it did not use, and who wants little has one to a fifth of a second at most. A
 * moment between two kernels is not away. Who had much more waits for half a second of each other's: it may
 * have had work that the driver did not get on with, as while it ends another process, which takes seconds.
 */
static void gpu_bound_pass(const struct gpu *gpu, const struct server *server, int64_t now)
{
	struct container *container = server->container;
	uint64_t *pass = &container->pass[server->gpu];
	const bool was_away = now - container->needed_at[server->gpu] > TURNS_QUIET_US;
	const uint64_t claim = was_away ? 0 : (uint64_t)TURNS_CLAIM_US * PASS_SCALE / container->share,
		       debt = (uint64_t)TURNS_DEBT_US * PASS_SCALE / container->share;

	if (!server_needs(server))
		return;
	if (gpu->clock > claim && *pass < gpu->clock - claim)
		*pass = gpu->clock - claim;
	if (*pass > gpu->clock + debt)
		*pass = gpu->clock + debt;
	container->needed_at[server->gpu] = now;
}

/* Of the one that has the turn, and of those that are late, whose work is under way beside it. */
static void gpu_count(struct gpu *gpu, int64_t now)
{
	const int64_t past = now - gpu->counted_at;

	gpu->counted_at = now;
	for (size_t i = 0; i < gpu->server_count; i++) {
		const struct server *server = &gpu->servers[i];
		const bool holds = server_is(server, &gpu->holder);

		gpu_bound_pass(gpu, server, now);
		if (*server_late(server) && !(server_needs(server) & TURN_USED))
			*server_late(server) = false;
		if (holds || *server_late(server))
			server_count(server, past);
	}
}

static void gpu_look(struct turns *turns, struct gpu *gpu, int64_t now)
{
	if (gpu_has_rivals(gpu, server_works)) {
		if (!gpu->rivals)
			gpu->counted_at = now;
		gpu->rivals_at = now;
		gpu_set_rivals(gpu, true);
	} else if (now - gpu->rivals_at > TURNS_QUIET_US) {
		gpu_set_rivals(gpu, false);
	}
	if (!gpu->rivals)
		return;
	gpu_count(gpu, now);
	if (gpu->holder.container && gpu_end_turn(gpu, now))
		gpu->holder.container = NULL;
	if (!gpu->holder.container)
		gpu_give_turn(turns, gpu, now);
}

int64_t turns_look(struct turns *turns, int64_t now)
{
	bool rivals = false, several = false;

	if (now - turns->scanned_at > TURNS_SCAN_US) {
		turns_scan(turns);
		turns->scanned_at = now;
	}
	for (size_t i = 0; i < turns->gpu_count; i++) {
		gpu_look(turns, &turns->gpus[i], now);
		rivals |= turns->gpus[i].rivals;
		several |= gpu_has_rivals(&turns->gpus[i], server_is_there);
	}
	for (size_t i = 0; rivals && i < turns->container_count; i++)
		(void)atomic_fetch_add(&turns->containers[i]->page->beat, 1);
	if (turns->container_count < 2 && !rivals)
		return INT64_MAX;
	return now + (rivals ? AGAIN_US : several ? TURNS_SCAN_US : 4 * TURNS_SCAN_US);
}
