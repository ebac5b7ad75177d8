/* SPDX-License-Identifier: Apache-2.0 */

/* Containers with granted GPUs, and the users who own those that root did not start. */

#include "vcuda/manager/manager.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "model/adapter.h"
#include "process/privilege.h"
#include "vcuda/manager/page.h"
#include "vcuda/protocol/pidref.h"

enum { LEAST_MEMORY = 1 << 20 };

/* One that has ended has its memory until its servers have ended, too. */
static bool owner_has_memory(const struct tenant *tenant)
{
	return !tenant->ending || tenant->clients > 0;
}

static bool owner_is_same(const struct tenant *tenant, const struct tenant *other)
{
	return tenant != other && tenant->owner.uid == other->owner.uid;
}

/* ---- memory of GPUs that an owner has ---- */

/*
 * An amount has bytes, or a percentage, or both, of which the smaller counts. Where the user's has one, each
 * container's gets it, too, and is counted by it. What has fewer bytes than its percentage comes to counts as these
 * are of its GPU. Containers of different GPUs have less than their percentages add up to.
 */

/* Return: bytes of the least of a container's GPUs; 0: not known of all. */
static uint64_t owner_measure_gpu(const struct manager *manager, const struct tenant *tenant)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < tenant->gpu_count; i++) {
		/* Where it is now: that one is watched, and says how much it has. */
		const struct gpu *gpu = manager_find_gpu(tenant, tenant->places, i);
		uint64_t bytes = 0;

		for (size_t k = 0; k < manager->memory_count; k++)
			if (memcmp(manager->memories[k].uuid, gpu->bytes, sizeof(gpu->bytes)) == 0)
				bytes = manager->memories[k].bytes;
		least = bytes < least ? bytes : least;
	}
	return tenant->gpu_count > 0 ? least : 0;
}

static unsigned owner_count_percent(const struct manager *manager, const struct tenant *tenant, bool *ret_unknown)
{
	const unsigned percent = STR_SHARE_PERCENT(tenant->limits.memory);
	const uint64_t bytes = STR_SHARE_BYTES(tenant->limits.memory), whole = owner_measure_gpu(manager, tenant);
	uint64_t part;

	if (!bytes || !percent)
		return percent;
	*ret_unknown |= !whole;
	/* Rounded up, so that what is left is no more than there is. */
	part = whole ? (bytes * 100 + whole - 1) / whole : percent;
	return part < percent ? (unsigned)part : percent;
}

static uint64_t owner_take(uint64_t wanted, uint64_t limit, uint64_t taken, uint64_t least)
{
	const uint64_t left = taken < limit ? limit - taken : 0;

	if (left < least)
		return 0;
	return wanted && wanted < left ? wanted : left;
}

/* Return: NULL; why it gets none. @ret_unknown: that may be otherwise soon */
static const char *owner_take_memory(const struct manager *manager, struct tenant *tenant, bool *ret_unknown)
{
	const uint64_t limit_bytes = STR_SHARE_BYTES(tenant->owner.limits.memory),
		       limit_percent = STR_SHARE_PERCENT(tenant->owner.limits.memory);
	uint64_t bytes = STR_SHARE_BYTES(tenant->limits.memory), percent = STR_SHARE_PERCENT(tenant->limits.memory),
		 taken_bytes = 0, taken_percent = 0;

	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (owner_is_same(tenant, other) && owner_has_memory(other)) {
			taken_bytes += STR_SHARE_BYTES(other->limits.memory);
			taken_percent += owner_count_percent(manager, other, ret_unknown);
		}
	if (limit_bytes)
		bytes = owner_take(bytes, limit_bytes, taken_bytes, LEAST_MEMORY);
	if (limit_percent)
		percent = owner_take(percent, limit_percent, taken_percent, 1);
	tenant->limits.memory = bytes | STR_SHARE(percent);
	if ((!limit_bytes || bytes) && (!limit_percent || percent))
		return NULL;
	/* What is not known are percentages, which do not matter where an amount in bytes is used up. */
	*ret_unknown &= limit_percent && !percent;
	return "this user's other containers have all the memory of GPUs that \"memory\" allows; give each less by "
	       "CTR_GPU_MEMORY";
}

/* ---- containers of an owner ---- */

/* Whatever is left of one that has ended takes a place of the manager's. */
static bool owner_may_have_more(const struct manager *manager, const struct tenant *tenant, size_t *ret_all)
{
	size_t own = 0;

	*ret_all = 0;
	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (other->owner.uid) {
			++*ret_all;
			own += owner_is_same(tenant, other);
		}
	return own < tenant->owner.containers;
}

/* What one that has ended still has is free soon. */
static int owner_refusal(const struct manager *manager, const struct tenant *tenant)
{
	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (owner_is_same(tenant, other) && other->ending)
			return -EAGAIN;
	return -EDQUOT;
}

int owner_admit(struct manager *manager, struct tenant *tenant, const char **ret_why)
{
	bool unknown = false;
	const char *why;
	size_t all;

	if (!tenant->owner.uid)
		return 0;
	if (!owner_may_have_more(manager, tenant, &all)) {
		*ret_why = "as many containers of this user have GPUs by vCUDA as \"containers\" allows";
		return owner_refusal(manager, tenant);
	}
	if (all >= MANAGER_USERS_MAX)
		return -ENOSPC;
	why = owner_take_memory(manager, tenant, &unknown);
	if (why) {
		*ret_why = why;
		return unknown ? -EAGAIN : owner_refusal(manager, tenant);
	}
	for (struct tenant *other = manager->tenants; other; other = other->next)
		if (owner_is_same(tenant, other))
			other->owner = tenant->owner;
	return 0;
}

bool owner_has_place(const struct manager *manager, const struct tenant *tenant)
{
	unsigned own = 0, all = 0;

	if (!tenant->owner.uid)
		return true;
	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (other->owner.uid) {
			all += other->clients;
			own += other->owner.uid == tenant->owner.uid ? other->clients : 0;
		}
	return own < tenant->owner.limits.max_clients && all < MANAGER_USERS_MAX;
}

/* ---- GPUs' time of an owner ---- */

uint32_t owner_share(const struct manager *manager, const struct tenant *tenant)
{
	uint64_t sum = tenant->wanted_share, part;

	if (!tenant->owner.uid)
		return tenant->wanted_share;
	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (owner_is_same(tenant, other) && !other->ending)
			sum += other->wanted_share;
	if (sum <= tenant->owner.limits.share)
		return tenant->wanted_share;
	part = tenant->wanted_share * (uint64_t)tenant->owner.limits.share / sum;
	return part > 0 ? (uint32_t)part : 1;
}

/* ---- containers ---- */

enum {
	SWEPT_MAX = 4096,
	BACKLOG = 64,
	SECOND_MS = 1000,
	/* Of a list of who may use a file, as include/uapi/linux/posix_acl.h has it. */
	ACL_OF_OWNER = 0x01,
	ACL_OF_USER = 0x02,
	ACL_OF_GROUP = 0x04,
	ACL_MASK = 0x10,
	ACL_OF_OTHERS = 0x20,
};

#define SOCKET_NAME "socket"

bool tenant_is_name(const char *id)
{
	static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
	size_t length = strspn(id, characters);

	return length > 0 && length <= MANAGER_ID_MAX && !id[length] && id[0] != '.';
}

struct tenant *tenant_find(const struct manager *manager, const char *id)
{
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (!tenant->ending && streq(tenant->id, id))
			return tenant;
	return NULL;
}

/* Engines make names of 64 digits and show the first twelve. */
struct tenant *tenant_match(const struct manager *manager, const char *text, bool *ret_several)
{
	struct tenant *found = tenant_find(manager, text);
	size_t count = 0;

	*ret_several = false;
	if (found || !*text)
		return found;
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (!tenant->ending && str_has_prefix(tenant->id, text)) {
			found = tenant;
			count++;
		}
	*ret_several = count > 1;
	return count == 1 ? found : NULL;
}

struct tenant *tenant_new(const char *id)
{
	struct tenant *tenant = calloc(1, sizeof(*tenant));

	if (!tenant)
		return NULL;
	(void)snprintf(tenant->id, sizeof(tenant->id), "%s", id);
	tenant->pidfd = tenant->listener = tenant->quota_fd = tenant->orders_fd = tenant->turns_fd = tenant->group = -1;
	tenant->limits.share = tenant->wanted_share = TURN_SHARE_USUAL;
	tenant->first = -1;
	tenant->suspension = SUSPENSION_NEW;
	/* Of one that is taken over, what was shared out is not known; of another, servers have nothing. */
	tenant->host_limit = UINT64_MAX;
	tenant->tokens = MANAGER_BURST;
	tenant->filled = manager_now();
	return tenant;
}

static void tenant_release_gpu(struct gpu *gpu)
{
	free(gpu->uuid);
	free(gpu->address);
	free(gpu->name);
	*gpu = (struct gpu){0};
}

void tenant_free(struct tenant *tenant)
{
	if (!tenant)
		return;
	for (size_t i = 0; i < tenant->reach; i++)
		tenant_release_gpu(&tenant->gpus[i]);
	suspension_close(&tenant->suspension);
	if (tenant->quota)
		(void)munmap(tenant->quota, sizeof(*tenant->quota));
	if (tenant->orders)
		(void)munmap(tenant->orders, sizeof(*tenant->orders));
	cleanup_closep(&tenant->quota_fd);
	cleanup_closep(&tenant->orders_fd);
	cleanup_closep(&tenant->turns_fd);
	fd_closer_close(&tenant->listener);
	cleanup_closep(&tenant->group);
	cleanup_closep(&tenant->pidfd);
	free(tenant->library);
	json_decref(tenant->asked);
	free(tenant);
}

void tenant_freep(struct tenant **tenant)
{
	tenant_free(*tenant);
}

int tenant_add_gpu(struct tenant *tenant, const char *uuid, const char *address, const char *name, bool granted)
{
	struct gpu gpu = {0};

	if (tenant->reach == MANAGER_GPUS_MAX)
		return -E2BIG;
	if (!adapter_read_uuid(uuid, gpu.bytes))
		return -EINVAL;
	gpu.uuid = strdup(uuid);
	gpu.address = strdup(address);
	gpu.name = strdup(name);
	if (!gpu.uuid || !gpu.address || !gpu.name) {
		tenant_release_gpu(&gpu);
		return -ENOMEM;
	}
	tenant->gpus[tenant->reach++] = gpu;
	tenant->gpu_count += granted;
	return 0;
}

void tenant_leave_out(struct tenant *tenant, size_t number)
{
	tenant_release_gpu(&tenant->gpus[number]);
	tenant->reach--;
	tenant->gpu_count--;
	memmove(&tenant->gpus[number], &tenant->gpus[number + 1],
		(tenant->reach - number) * sizeof(tenant->gpus[number]));
	tenant->gpus[tenant->reach] = (struct gpu){0};
}

/* ---- the quota ---- */

void tenant_set_memory(struct tenant *tenant, uint64_t memory)
{
	tenant->limits.memory = memory;
	__atomic_store_n((uint64_t *)&tenant->orders->limit, memory ? memory : UINT64_MAX, __ATOMIC_SEQ_CST);
}

uint64_t tenant_sum_memory(const struct tenant *tenant)
{
	uint64_t sum = share_sum(&tenant->quota->shares);

	/* Servers write there; what none could have is not counted. */
	for (size_t i = 0; i < START_QUOTA_SLOTS; i++)
		if (__builtin_add_overflow(sum, __atomic_load_n((uint64_t *)&tenant->quota->used[i], __ATOMIC_RELAXED),
					   &sum))
			return UINT64_MAX;
	return sum;
}

/* Of what its programs know by a number. Servers write there, too, so the sum may be anything. */
static uint64_t tenant_sum_busy(const struct tenant *tenant, size_t gpu)
{
	uint64_t sum = tenant->busy[gpu];

	for (size_t i = 0; i < START_QUOTA_SLOTS; i++)
		sum += atomic_load_explicit(&tenant->quota->busy[gpu][i], memory_order_relaxed);
	return sum;
}

/* Since the last move, of what its programs know by a number. What a server writes may go back. */
static uint64_t tenant_sum_new(const struct tenant *tenant, size_t number)
{
	const uint64_t sum = tenant_sum_busy(tenant, number);

	return sum > tenant->counted[number] ? sum - tenant->counted[number] : 0;
}

uint64_t tenant_sum_time(const struct tenant *tenant, size_t place)
{
	uint64_t sum = tenant->spent[place];

	for (size_t i = 0; i < tenant->gpu_count; i++)
		if (start_place(tenant->places, (unsigned)i) == place)
			sum += tenant_sum_new(tenant, i);
	return sum;
}

void tenant_settle_time(struct tenant *tenant)
{
	for (size_t i = 0; i < tenant->gpu_count; i++) {
		tenant->spent[start_place(tenant->places, (unsigned)i)] += tenant_sum_new(tenant, i);
		tenant->counted[i] = tenant_sum_busy(tenant, i);
	}
}

static int tenant_map_quota(struct tenant *tenant)
{
	void *memory;
	int r = page_map(tenant->quota_fd, sizeof(*tenant->quota), &memory);

	if (r == 0)
		tenant->quota = memory;
	return r;
}

/* ---- its orders ---- */

/* What servers get is open to be read. The manager's own descriptor is not kept, its mapping is. */
static int tenant_map_orders(struct tenant *tenant, int fd)
{
	void *memory;
	int r = page_map(fd, sizeof(*tenant->orders), &memory);

	if (r < 0)
		return r;
	tenant->orders = memory;
	tenant->orders_fd = page_open_again(fd, O_RDONLY);
	return tenant->orders_fd < 0 ? tenant->orders_fd : 0;
}

/* The manager itself neither reads nor writes there. */
static int tenant_open_turns(struct tenant *tenant, int fd)
{
	tenant->turns_fd = page_open_again(fd, O_RDONLY);
	return tenant->turns_fd < 0 ? tenant->turns_fd : 0;
}

/* ---- its socket ---- */

static int tenant_format_path(const struct manager *manager, uid_t owner, const char *id, char **ret)
{
	return owner ? str_format(ret, "%s/%u/%s", manager->users, owner, id)
		     : str_format(ret, "%s/%s", manager->directory, id);
}

int tenant_path(const struct manager *manager, const struct tenant *tenant, char **ret)
{
	return tenant_format_path(manager, tenant->owner.uid, tenant->id, ret);
}

/* The last one's is its user's, too. */
static void tenant_remove_directory(const struct manager *manager, uid_t owner, const char *id)
{
	_cleanup_free_ char *path = NULL, *socket_path = NULL;

	if (tenant_format_path(manager, owner, id, &path) < 0 || str_format(&socket_path, "%s/" SOCKET_NAME, path) < 0)
		return;
	(void)unlink(socket_path);
	(void)rmdir(path);
	if (!owner)
		return;
	*strrchr(path, '/') = '\0';
	(void)rmdir(path);
}

/* sun_path is shorter than the names of containers may be. */
static int tenant_bind(int directory, int *ret)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t old;
	int r;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" SOCKET_NAME, directory);
	(void)unlinkat(directory, SOCKET_NAME, 0);
	if (fd < 0)
		return -errno;
	/* Its mode from the start on: who can write there could put a link in its place before a chmod(2). */
	old = umask(0111);
	r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	(void)umask(old);
	fd_closer_refuse(fd);
	if (r < 0 || listen(fd, BACKLOG) < 0)
		return r < 0 ? r : -errno;
	*ret = steal_fd(&fd);
	return 0;
}

/*
 * All is root's in there: the user may go through it and neither make nor rename anything, so no path leads elsewhere.
 * Nobody else may go through, since the sockets behind it are the right to use GPUs.
 */
static int tenant_let_user_through(int directory, uid_t user)
{
	const struct {
		uint32_t version;
		struct {
			uint16_t tag, permissions;
			uint32_t id;
		} entries[5];
	} list = {htole32(2),
		  {{htole16(ACL_OF_OWNER), htole16(7), htole32(UINT32_MAX)},
		   {htole16(ACL_OF_USER), htole16(1), htole32(user)},
		   {htole16(ACL_OF_GROUP), htole16(0), htole32(UINT32_MAX)},
		   {htole16(ACL_MASK), htole16(1), htole32(UINT32_MAX)},
		   {htole16(ACL_OF_OTHERS), htole16(0), htole32(UINT32_MAX)}}};

	return fsetxattr(directory, "system.posix_acl_access", &list, sizeof(list), 0) < 0 ? -errno : 0;
}

static int tenant_make_user_directory(const struct manager *manager, uid_t user)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int directory = -1;

	if (str_format(&path, "%s/%u", manager->users, user) < 0)
		return -ENOMEM;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return directory < 0 ? -errno : tenant_let_user_through(directory, user);
}

/* Where one is already, an earlier manager's, it is in the container, and its socket is replaced. */
static int tenant_make_socket(const struct manager *manager, struct tenant *tenant)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int directory = -1;
	int r = tenant->owner.uid ? tenant_make_user_directory(manager, tenant->owner.uid) : 0;

	if (r == 0)
		r = tenant_path(manager, tenant, &path);
	if (r < 0)
		return r;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0 || fchmod(directory, 0755) < 0)
		return -errno;
	r = tenant_bind(directory, &tenant->listener);
	if (r < 0)
		tenant_remove_directory(manager, tenant->owner.uid, tenant->id);
	return r;
}

/* A server that the manager lost track of would have the uid, and could reach servers of the next container. */
static bool tenant_uid_is_free(uid_t uid)
{
	errno = 0;
	return getpriority(PRIO_USER, uid) == -1 && errno == ESRCH;
}

bool tenant_may_use_uid(const struct manager *manager, uid_t uid)
{
	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (tenant->uid == uid)
			return false;
	return tenant_uid_is_free(uid);
}

int tenant_draw_uid(const struct manager *manager, uid_t *ret)
{
	int r;

	do
		r = private_uid_draw(ret);
	while (r == 0 && !tenant_may_use_uid(manager, *ret));
	return r;
}

int tenant_open(struct manager *manager, struct tenant *tenant, int quota, int orders, int turns)
{
	_cleanup_close_ int orders_fd = orders, turns_fd = turns;
	int r = 0;

	tenant->quota_fd = quota;
	if (manager->tenant_count == MANAGER_TENANTS_MAX)
		return -ENOSPC;
	if (!tenant->uid)
		r = tenant_draw_uid(manager, &tenant->uid);
	if (r < 0)
		return r;
	if (quota < 0)
		tenant->quota_fd = page_make(sizeof(struct start_quota), PAGE_OF_ALL);
	if (orders < 0)
		orders_fd = page_make(sizeof(struct start_orders), PAGE_OF_MANAGER);
	if (turns < 0)
		turns_fd = page_make(sizeof(struct start_turns), PAGE_OF_MANAGER);
	if (tenant->quota_fd < 0 || orders_fd < 0 || turns_fd < 0)
		return -ENOMEM;
	r = tenant_map_quota(tenant);
	if (r == 0)
		r = tenant_map_orders(tenant, orders_fd);
	if (r == 0)
		r = tenant_open_turns(tenant, turns_fd);
	if (!tenant->limits.host_memory)
		tenant->limits.host_memory = manager->host_memory;
	if (r == 0)
		r = cgroup_make(manager, tenant);
	if (r == 0)
		r = tenant_make_socket(manager, tenant);
	if (r < 0)
		return r;
	tenant_set_memory(tenant, tenant->limits.memory);
	tenant->next = manager->tenants;
	manager->tenants = tenant;
	manager->tenant_count++;
	manager->changed = true;
	pinned_memory_host_memory(manager);
	return 0;
}

/* ---- connections ---- */

bool tenant_may_connect(struct tenant *tenant, int64_t now, int *ret_wait_ms)
{
	const int64_t each = SECOND_MS / MANAGER_RATE;
	int64_t more = (now - tenant->filled) / each;

	if (more > 0) {
		tenant->tokens = more > MANAGER_BURST - (int64_t)tenant->tokens ? MANAGER_BURST
										: tenant->tokens + (unsigned)more;
		tenant->filled += more * each;
	}
	*ret_wait_ms = tenant->tokens > 0 ? 0 : (int)(tenant->filled + each - now);
	return tenant->tokens > 0;
}

void tenant_tell_denied(const struct manager *manager, struct tenant *tenant, int64_t now)
{
	if (tenant->untold == 0 || (tenant->told && now - tenant->told < SECOND_MS))
		return;
	audit_write("deny", tenant,
		    json_pack("{s:I, s:i, s:i}", "connections", (json_int_t)tenant->untold, "maxClients",
			      (int)tenant->limits.max_clients, "gpusLost",
			      (int)gpu_trouble_count_lost(manager, tenant)));
	tenant->untold = 0;
	tenant->told = now;
}

static void tenant_deny(const struct manager *manager, struct tenant *tenant)
{
	tenant->denied++;
	tenant->untold++;
	tenant_tell_denied(manager, tenant, manager_now());
}

bool tenant_has_place(const struct manager *manager, const struct tenant *tenant)
{
	size_t kept = 0;

	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (other != tenant && !other->ending && other->clients == 0)
			kept++;
	return tenant->clients < tenant->limits.max_clients && owner_has_place(manager, tenant) &&
	       manager->worker_count + (tenant->clients > 0 ? kept : 0) < MANAGER_WORKERS_MAX;
}

static void tenant_serve(struct manager *manager, struct tenant *tenant, int client)
{
	int r;

	if (!tenant_has_place(manager, tenant)) {
		tenant_deny(manager, tenant);
		return;
	}
	if (tenant->first < 0)
		tenant->first = (ssize_t)gpu_assign_choose(manager, tenant);
	if ((size_t)tenant->first == tenant->gpu_count) {
		tenant->first = -1;
		tenant_deny(manager, tenant);
		return;
	}
	tenant->connects++;
	r = server_process_start(manager, tenant, client);
	if (r < 0) {
		audit_write("not-started", tenant, json_pack("{s:s}", "error", strerror(-r)));
		return;
	}
	audit_write("connect", tenant,
		    json_pack("{s:s, s:i}", "gpu",
			      manager_find_gpu(tenant, tenant->places, (size_t)tenant->first)->uuid, "clients",
			      (int)tenant->clients));
}

/* Whoever is refused reads the end of the connection. A server that has ended already has left us the last there. */
void tenant_accept(struct manager *manager, struct tenant *tenant)
{
	int client = accept4(tenant->listener, NULL, NULL, SOCK_CLOEXEC);

	if (client < 0)
		return;
	if (tenant->tokens > 0)
		tenant->tokens--;
	tenant_serve(manager, tenant, client);
	fd_closer_close(&client);
}

/* ---- its end ---- */

void tenant_end(struct manager *manager, struct tenant *tenant, const char *why)
{
	if (tenant->ending)
		return;
	tenant->told = 0;
	tenant_tell_denied(manager, tenant, manager_now());
	audit_tell_omitted(tenant);
	tenant->ending = true;
	manager->changed = true;
	fd_closer_close(&tenant->listener);
	tenant_remove_directory(manager, tenant->owner.uid, tenant->id);
	for (struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->tenant == tenant)
			server_process_stop(worker);
	audit_write("end", tenant, json_pack("{s:s, s:I}", "why", why, "connects", (json_int_t)tenant->connects));
}

bool tenant_is_over(const struct manager *manager, const struct tenant *tenant)
{
	return tenant->ending && tenant->clients == 0 && !tenant->suspension.program && !remnant_is_of(manager, tenant);
}

void tenant_remove(struct manager *manager, struct tenant *tenant)
{
	struct tenant **place = &manager->tenants;

	while (*place != tenant)
		place = &(*place)->next;
	*place = tenant->next;
	manager->tenant_count--;
	manager->changed = true;
	pinned_memory_host_memory(manager);
	tenant_free(tenant);
	cgroup_watch(manager);
	cgroup_sweep(manager);
}

static void tenant_sweep_directory(const struct manager *manager, const char *path, uid_t owner)
{
	_cleanup_strv_ struct strv names = {0};

	if (fd_list_names(AT_FDCWD, path, tenant_is_name, SWEPT_MAX, &names) < 0)
		return;
	for (size_t i = 0; i < names.count; i++)
		if (!tenant_find(manager, names.items[i]))
			tenant_remove_directory(manager, owner, names.items[i]);
}

static bool tenant_is_user(const char *name)
{
	return *name && !name[strspn(name, "0123456789")];
}

void tenant_sweep(const struct manager *manager)
{
	_cleanup_strv_ struct strv users = {0};

	tenant_sweep_directory(manager, manager->directory, 0);
	if (fd_list_names(AT_FDCWD, manager->users, tenant_is_user, SWEPT_MAX, &users) < 0)
		return;
	for (size_t i = 0; i < users.count; i++) {
		_cleanup_free_ char *path = NULL;

		if (str_format(&path, "%s/%s", manager->users, users.items[i]) < 0)
			return;
		tenant_sweep_directory(manager, path, (uid_t)strtoul(users.items[i], NULL, 10));
		(void)rmdir(path);
	}
}
