/* SPDX-License-Identifier: Apache-2.0 */

/* One client of the manager's control socket: a hook that asks for a grant, or a command. */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vcuda_rpc.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "model/adapter.h"
#include "vcuda/build.h"
#include "vcuda/protocol/control.h"
#include "vcuda/protocol/pidref.h"

_Static_assert((int)MANAGER_TROUBLES == VCUDAD_TROUBLES_MAX, "all of them are listed");

enum {
	IDLE_MS = 10 * 1000,
	GRANTED_MS = 180 * 1000, /* above what a hook gives itself to make a container */
};

static char nothing[] = "";

/* ---- who ---- */

/* Return: 0 for root of this pid namespace; -EPERM for others; -ESRCH for one that has given up and ended. */
static int control_client_check_request(int fd)
{
	_cleanup_close_ int pidfd = -1;
	struct ucred who = {.uid = (uid_t)-1};
	int r = pidref_open_peer(fd, &pidfd, NULL, &who);
	bool ours;

	if (who.uid != 0)
		return -EPERM;
	/* One of another pid namespace has no number here. */
	if (r < 0)
		return r == -ESRCH && who.pid > 0 ? -ESRCH : -EPERM;
	ours = pidref_is_of_this_namespace(who.pid);
	/* If it has ended meanwhile, another of its number may have been looked at. */
	if (pidref_has_ended(pidfd))
		return -ESRCH;
	return ours ? 0 : -EPERM;
}

void control_client_accept(struct control_client **peers, int listener)
{
	_cleanup_close_ int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct control_client *peer;
	int r;

	if (fd < 0)
		return;
	r = control_client_check_request(fd);
	if (r == -EPERM)
		audit_write("not-root", NULL, NULL);
	if (r < 0)
		return;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return;
	peer->in = malloc(CONTROL_MARK + CONTROL_CALL_MAX);
	if (!peer->in) {
		free(peer);
		return;
	}
	peer->fd = steal_fd(&fd);
	peer->deadline = manager_now() + IDLE_MS;
	peer->next = *peers;
	*peers = peer;
}

void control_client_close(struct manager *manager, struct control_client **peers, struct control_client *peer)
{
	struct tenant *tenant = tenant_find(manager, peer->granted);

	if (tenant && !tenant->kept && tenant->uid == peer->granted_uid)
		tenant_end(manager, tenant, "not kept");
	while (*peers != peer)
		peers = &(*peers)->next;
	*peers = peer->next;
	(void)close(peer->fd);
	free(peer->in);
	free(peer->out);
	free(peer);
}

/* ---- what ---- */

static void control_client_refuse(struct vcudad_done *ret, int error, const char *why)
{
	ret->error = error;
	ret->message = (char *)(uintptr_t)why;
}

/* What it has may be other: what was left of something, not on a drained GPU, changed by an administrator. */
static json_t *control_client_describe_request(const struct vcudad_request *wish)
{
	const struct vcuda_limits *limits = &wish->limits;
	json_t *gpus = json_array();

	for (size_t i = 0; i < wish->gpus.gpus_len; i++)
		(void)json_array_append_new(gpus, json_string(wish->gpus.gpus_val[i].uuid));
	return json_pack("{s:i, s:I, s:i, s:I, s:I, s:i, s:o}", "pid", wish->pid, "user", (json_int_t)wish->owner.uid,
			 "slot", (int)wish->slot, "memory", (json_int_t)limits->memory, "hostMemory",
			 (json_int_t)limits->host_memory, "maxClients", (int)limits->max_clients, "gpus", gpus);
}

static bool control_client_is_same_request(const struct tenant *tenant, const struct vcudad_request *wish)
{
	_cleanup_json_ json_t *asked = control_client_describe_request(wish);

	/* An earlier version has not written it down. */
	if (!tenant->asked)
		return tenant->pid == wish->pid && tenant->owner.uid == wish->owner.uid && tenant->slot == wish->slot;
	return asked && json_equal(tenant->asked, asked);
}

static unsigned control_client_least(unsigned one, unsigned other)
{
	return one < other ? one : other;
}

static struct vcuda_limits control_client_bound(struct vcuda_limits limits)
{
	limits.idle = control_client_least(limits.idle, VCUDA_LIMIT_LONGEST_S);
	limits.balance = control_client_least(limits.balance, VCUDA_LIMIT_LONGEST_S);
	limits.max_clients = control_client_least(limits.max_clients, MANAGER_CLIENTS_MAX);
	limits.share = control_client_least(limits.share ? limits.share : TURN_SHARE_USUAL, TURN_SHARE_MOST);
	return limits;
}

/* A wish as a container. */
static int control_client_make_tenant(const struct vcudad_request *wish, struct tenant *tenant)
{
	int r = pidref_open(wish->pid, wish->started, &tenant->pidfd, &tenant->started);

	tenant->pid = wish->pid;
	tenant->owner = (struct owner){wish->owner.uid, wish->owner.limits, wish->owner.containers};
	tenant->limits = control_client_bound(wish->limits);
	tenant->slot = wish->slot;
	tenant->wanted_share = tenant->limits.share;
	tenant->library = strdup(wish->library);
	tenant->asked = control_client_describe_request(wish);
	if (r == 0 && (!tenant->library || !tenant->asked))
		r = -ENOMEM;
	for (size_t i = 0; i < wish->gpus.gpus_len && r == 0; i++)
		r = tenant_add_gpu(tenant, wish->gpus.gpus_val[i].uuid, wish->gpus.gpus_val[i].address,
				   wish->gpus.gpus_val[i].name, true);
	for (size_t i = 0; i < wish->spares.spares_len && r == 0; i++)
		r = tenant_add_gpu(tenant, wish->spares.spares_val[i].uuid, wish->spares.spares_val[i].address,
				   wish->spares.spares_val[i].name, false);
	return r;
}

static const char *control_client_explain(int r)
{
	switch (r) {
	case -ESRCH:
		return "there is no process of that number";
	case -EINVAL:
		return "a GPU is named by something that is not a UUID";
	case -ENODEV:
		return "its GPU is lost: sudo ctr-gpu vcuda list says why";
	case -EHOSTDOWN:
		return "its GPU is drained, so no container begins there: ctr-gpu vcuda undrain ends that";
	case -EAGAIN:
		return "servers of the container that had that slot of the GPU last are still ending; try again";
	case -EADDRINUSE:
		return "another container, which still runs, has that slot of the GPU";
	case -ENOSPC:
		return "as many containers have vCUDA as the manager serves at once";
	default:
		return strerror(-r);
	}
}

static void control_client_describe_grant(const struct tenant *tenant)
{
	const double processors = cgroup_count_cpus(tenant->processor);
	json_t *gpus = json_array();

	for (size_t i = 0; i < tenant->gpu_count; i++)
		(void)json_array_append_new(gpus, json_string(tenant->gpus[i].uuid));
	audit_write("grant", tenant,
		    vcuda_limits_pack(&tenant->limits,
				      json_pack("{s:i, s:I, s:i, s:o, s:o}", "pid", (int)tenant->pid, "owner",
						(json_int_t)tenant->owner.uid, "uid", (int)tenant->uid, "gpus", gpus,
						"processors", processors > 0 ? json_real(processors) : json_null())));
}

static bool control_client_is_same_slot(const struct tenant *tenant, const struct tenant *other)
{
	return other->slot == tenant->slot &&
	       memcmp(other->gpus[0].bytes, tenant->gpus[0].bytes, sizeof(other->gpus[0].bytes)) == 0;
}

/*
 * What slots of a GPU have comes to all of its memory, so each is one container's, until that has ended with all of its
 * servers; a name of one is no secret. Return: 0; -EADDRINUSE; -EAGAIN: it is free soon.
 */
static int control_client_check_slot(struct manager *manager, const struct tenant *tenant)
{
	int r = 0;

	for (struct tenant *other = manager->tenants; tenant->slot > 0 && other; other = other->next) {
		if (!control_client_is_same_slot(tenant, other))
			continue;
		if (!other->ending && !pidref_has_ended(other->pidfd))
			return -EADDRINUSE;
		tenant_end(manager, other, "container ended");
		if (other->clients > 0)
			r = -EAGAIN;
	}
	return r;
}

/* Return: the container that is meant, new or the same once more; NULL with @ret filled. */
static struct tenant *control_client_grant_tenant(struct manager *manager, const struct vcudad_request *wish,
						  struct vcudad_done *ret)
{
	struct tenant *old = tenant_find(manager, wish->id);
	_cleanup_tenant_ struct tenant *tenant = NULL;
	const char *why = NULL;
	int r;

	if (!tenant_is_name(wish->id) || wish->gpus.gpus_len == 0 || wish->limits.max_clients == 0) {
		control_client_refuse(ret, EINVAL,
				      "its name is not made of letters, digits and _.+-, or no GPU is asked for");
		return NULL;
	}
	if (old && pidref_has_ended(old->pidfd))
		tenant_end(manager, old, "container ended");
	else if (old && control_client_is_same_request(old, wish))
		return old;
	else if (old) {
		control_client_refuse(ret, EEXIST, "another container of its name, which still runs, has GPUs already");
		return NULL;
	}
	tenant = tenant_new(wish->id);
	r = tenant ? control_client_make_tenant(wish, tenant) : -ENOMEM;
	if (r == 0 && gpu_trouble_count_lost(manager, tenant) == tenant->gpu_count)
		r = -ENODEV;
	if (r == 0)
		r = control_client_check_slot(manager, tenant);
	if (r == 0)
		r = drain_avoid(manager, tenant);
	if (r == 0)
		r = owner_admit(manager, tenant, &why);
	if (r == 0)
		r = tenant_open(manager, tenant, -1, -1, -1);
	if (r < 0) {
		control_client_refuse(ret, -r, why ? why : control_client_explain(r));
		return NULL;
	}
	decider_add(manager, tenant);
	decider_divide(manager);
	control_client_describe_grant(tenant);
	return steal_ptr(tenant);
}

static size_t control_client_answer_grant(struct manager *manager, struct control_client *peer,
					  const struct control_call *call, void *ret, size_t max)
{
	struct vcudad_done done = {0, nothing};
	struct vcudad_granted granted = {.directory = nothing};
	struct tenant *tenant = control_client_grant_tenant(manager, call->arguments, &done);
	_cleanup_free_ char *directory = NULL;

	if (tenant && tenant_path(manager, tenant, &directory) == 0) {
		granted.directory = directory;
		(void)strcpy(peer->granted, tenant->id);
		peer->granted_uid = tenant->uid;
		peer->deadline = manager_now() + GRANTED_MS;
	}
	granted.error = done.error;
	granted.message = done.message;
	return control_write_reply(call, &granted, ret, max);
}

static void control_client_keep(struct manager *manager, const char *id, struct vcudad_done *ret)
{
	struct tenant *tenant = tenant_find(manager, id);

	if (!tenant) {
		control_client_refuse(ret, ENOENT, "the container has ended");
		return;
	}
	tenant->kept = true;
	manager->changed = true;
}

/* Return: the container that is meant; NULL with @ret filled. */
static struct tenant *control_client_find_tenant(const struct manager *manager, const char *text,
						 struct vcudad_done *ret)
{
	bool several;
	struct tenant *tenant = tenant_match(manager, text, &several);

	if (!tenant)
		control_client_refuse(ret, several ? ENOTUNIQ : ENOENT,
				      several ? "the names of several containers with GPUs by vCUDA begin so"
					      : "no container has GPUs by vCUDA whose id is that or begins so");
	return tenant;
}

static void control_client_revoke(struct manager *manager, const char *text, struct vcudad_done *ret)
{
	struct tenant *tenant = control_client_find_tenant(manager, text, ret);

	if (tenant)
		tenant_end(manager, tenant, "revoked");
}

static void control_client_suspend(struct manager *manager, const char *text, struct vcudad_done *ret)
{
	struct tenant *tenant = control_client_find_tenant(manager, text, ret);
	const char *why = NULL;
	int r = tenant ? suspension_ask(manager, tenant, true, &why) : 0;

	if (r < 0)
		control_client_refuse(ret, -r, why);
}

static void control_client_clear(struct manager *manager, const char *text, struct vcudad_done *ret)
{
	int r = gpu_trouble_clear(manager, text);

	if (r < 0)
		control_client_refuse(ret, -r,
				      r == -ENOTUNIQ ? "the UUIDs of several GPUs that are lost begin so"
						     : "no GPU is lost whose UUID is that or begins so");
}

static void control_client_resume(struct manager *manager, const char *text, struct vcudad_done *ret)
{
	struct tenant *tenant = control_client_find_tenant(manager, text, ret);

	int r = tenant ? suspension_resume(manager, tenant) : 0;

	if (r < 0)
		control_client_refuse(ret, -r,
				      r == -EBUSY ? "all containers are suspended: ctr-gpu vcuda resume --all"
						  : "it is not suspended");
	manager->changed = true;
}

static bool control_client_is_lost(const struct manager *manager, const char *uuid)
{
	const struct gpu_trouble *trouble;
	uint8_t bytes[16];

	trouble = adapter_read_uuid(uuid, bytes) ? gpu_trouble_find(manager, bytes) : NULL;
	return trouble && trouble->lost;
}

static void control_client_move(struct manager *manager, const struct vcudad_move *move, struct vcudad_done *ret)
{
	struct tenant *tenant = control_client_find_tenant(manager, move->id, ret);
	const char *why = NULL;
	uint64_t places;
	int r;

	if (!tenant)
		return;
	r = gpu_assign_move(tenant, move->from, move->to, &places, &why);
	if (r == 0 && control_client_is_lost(manager, move->to)) {
		why = "that GPU is lost";
		r = -EBUSY;
	}
	if (r == 0)
		r = suspension_move(manager, tenant, places, &why);
	if (r < 0)
		control_client_refuse(ret, -r, why);
}

static void control_client_drain(struct manager *manager, const struct vcudad_drain *drain, struct vcudad_done *ret)
{
	const char *why = NULL;
	int r = drain->ends ? drain_end(manager, drain->uuid, &why) : drain_begin(manager, drain->uuid, &why);

	if (r < 0)
		control_client_refuse(ret, -r, why);
}

/* The kernel ends servers at once that have more. Return: whether it is done; otherwise @ret is filled. */
static bool control_client_limit_host_memory(struct manager *manager, struct tenant *tenant, uint64_t bytes,
					     struct vcudad_done *ret)
{
	int r = manager->groups < 0 ? -EOPNOTSUPP : bytes ? cgroup_limit_memory(tenant, bytes) : -EINVAL;

	if (r < 0)
		control_client_refuse(ret, -r, manager->groups < 0 ? manager->unlimited : strerror(-r));
	else
		pinned_memory_host_memory(manager);
	return r == 0;
}

/* Return: what is wrong with what is wanted; NULL. */
static const char *control_client_check_limits(const struct vcuda_limits *limits, unsigned which)
{
	if (which & VCUDA_LIMIT_MAX_CLIENTS && (limits->max_clients == 0 || limits->max_clients > MANAGER_CLIENTS_MAX))
		return "a container has from 1 to 256 processes with CUDA";
	if (which & VCUDA_LIMIT_IDLE && limits->idle > VCUDA_LIMIT_LONGEST_S)
		return "a container is idle for 30 days at most";
	if (which & VCUDA_LIMIT_BALANCE && limits->balance > VCUDA_LIMIT_LONGEST_S)
		return "the load of GPUs is unlike for 30 days at most";
	if (which & VCUDA_LIMIT_SHARE && (limits->share == 0 || limits->share > TURN_SHARE_MOST))
		return "a container's share of its GPUs' time is from 1 to 1000";
	return NULL;
}

static void control_client_set_limits(struct manager *manager, struct tenant *tenant, const struct vcuda_limits *limits,
				      unsigned which)
{
	if (which & VCUDA_LIMIT_MEMORY)
		tenant_set_memory(tenant, limits->memory);
	if (which & VCUDA_LIMIT_MAX_CLIENTS)
		tenant->limits.max_clients = limits->max_clients;
	if (which & VCUDA_LIMIT_IDLE)
		tenant->limits.idle = limits->idle;
	if (which & VCUDA_LIMIT_BALANCE)
		tenant->limits.balance = limits->balance;
	if (which & VCUDA_LIMIT_SHARE) {
		tenant->limits.share = tenant->wanted_share = limits->share;
		decider_weigh(manager, tenant);
		decider_divide(manager);
	}
}

static void control_client_limit(struct manager *manager, const struct vcudad_limit *limit, struct vcudad_done *ret)
{
	struct tenant *tenant = control_client_find_tenant(manager, limit->id, ret);
	const char *why = control_client_check_limits(&limit->limits, limit->which);

	if (!tenant)
		return;
	if (why) {
		control_client_refuse(ret, EINVAL, why);
		return;
	}
	if (limit->which & VCUDA_LIMIT_HOST_MEMORY &&
	    !control_client_limit_host_memory(manager, tenant, limit->limits.host_memory, ret))
		return;
	control_client_set_limits(manager, tenant, &limit->limits, limit->which);
	manager->changed = true;
	audit_write("limit", tenant, vcuda_limits_pack(&tenant->limits, json_object()));
}

/* @gpus, @on: of MANAGER_GPUS_MAX */
static void control_client_list_tenant(const struct tenant *tenant, struct vcudad_gpu *gpus, vcudad_uuid *on,
				       struct vcudad_grant *ret)
{
	for (size_t i = 0; i < tenant->gpu_count; i++) {
		gpus[i] = (struct vcudad_gpu){tenant->gpus[i].uuid, tenant->gpus[i].address, tenant->gpus[i].name};
		on[i] = manager_find_gpu(tenant, tenant->places, i)->uuid;
	}
	*ret = (struct vcudad_grant){
		.id = (char *)(uintptr_t)tenant->id,
		.pid = tenant->pid,
		.owner = tenant->owner.uid,
		.uid = tenant->uid,
		.gpus = {(u_int)tenant->gpu_count, gpus},
		.on = {(u_int)tenant->gpu_count, on},
		.limits = tenant->limits,
		.used = tenant_sum_memory(tenant),
		.host_used = cgroup_measure_memory(tenant),
		.processors = cgroup_count_cpus(tenant->processor),
		.clients = tenant->clients,
		.connects = tenant->connects,
		.denied = tenant->denied,
		.crashes = tenant->crashes,
		.kept = tenant->kept,
		.state = (char *)(uintptr_t)suspension_name(&tenant->suspension),
		.by_hand = tenant->suspension.by_hand,
		.stays = balance_stays(tenant, manager_now()),
		.slot = tenant->slot,
		.trouble = (char *)(uintptr_t)tenant->suspension.trouble,
	};
}

/* @ret: MANAGER_TROUBLES of them */
static u_int control_client_list_troubles(const struct manager *manager, struct vcudad_trouble *ret)
{
	for (size_t i = 0; i < manager->trouble_count; i++) {
		const struct gpu_trouble *trouble = &manager->troubles[i];

		ret[i] = (struct vcudad_trouble){
			.uuid = trouble->gpu.uuid,
			.name = trouble->gpu.name,
			.lost = trouble->lost,
			.why = (char *)(uintptr_t)trouble->why,
			.since = (uint64_t)trouble->since,
		};
	}
	return (u_int)manager->trouble_count;
}

/* @grants, @gpus, @on: room for one more than there are tenants, with their GPUs; @troubles: MANAGER_TROUBLES */
static struct vcudad_grants control_client_list(const struct manager *manager, struct vcudad_grant *grants,
						struct vcudad_gpu *gpus, vcudad_uuid *on,
						struct vcudad_trouble *troubles)
{
	struct vcudad_grants list = {.servers = (u_int)manager->worker_count, .servers_max = MANAGER_WORKERS_MAX};

	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (!tenant->ending) {
			control_client_list_tenant(tenant, &gpus[list.grants.grants_len * MANAGER_GPUS_MAX],
						   &on[list.grants.grants_len * MANAGER_GPUS_MAX],
						   &grants[list.grants.grants_len]);
			list.grants.grants_len++;
		}
	list.grants.grants_val = grants;
	list.drained.drained_len = (u_int)manager->drained_count;
	list.drained.drained_val = (vcudad_uuid *)(uintptr_t)manager->drained;
	list.unlimited = (char *)(uintptr_t)manager->unlimited;
	list.driver_api_only = !VCUDA_INTEGRITY;
	list.asleep = manager->asleep;
	list.troubles.troubles_len = control_client_list_troubles(manager, troubles);
	list.troubles.troubles_val = troubles;
	return list;
}

static size_t control_client_answer_list(const struct manager *manager, const struct control_call *call, void *ret,
					 size_t max)
{
	_cleanup_free_ struct vcudad_grant *grants = calloc(manager->tenant_count + 1, sizeof(*grants));
	_cleanup_free_ struct vcudad_gpu *gpus = calloc((manager->tenant_count + 1) * MANAGER_GPUS_MAX, sizeof(*gpus));
	_cleanup_free_ vcudad_uuid *on = calloc((manager->tenant_count + 1) * MANAGER_GPUS_MAX, sizeof(*on));
	struct vcudad_trouble troubles[MANAGER_TROUBLES];
	struct vcudad_grants reply;

	if (!grants || !gpus || !on)
		return 0;
	reply = control_client_list(manager, grants, gpus, on, troubles);
	return control_write_reply(call, &reply, ret, max);
}

/* ---- usage ---- */

static const char *control_client_describe_state(const struct worker *worker)
{
	const struct start_quota *quota = worker->tenant->quota;
	uint32_t needs = 0;

	if (worker->tenant->suspension.state != SUSPENSION_NONE)
		return "suspended";
	for (size_t i = 0; i < worker->tenant->gpu_count; i++)
		needs |= quota->needs[i][worker->slot];
	if (needs & TURN_USED || (!needs && !quota->rests[worker->slot]))
		return "running";
	return needs ? "waiting" : "idle";
}

/* @busy: room for those of its GPUs */
static struct vcudad_process control_client_describe_process(const struct worker *worker, u_int grant, u_quad_t *busy)
{
	const struct start_quota *quota = worker->tenant->quota;

	for (size_t i = 0; i < worker->tenant->gpu_count; i++)
		busy[i] = quota->busy[i][worker->slot];
	return (struct vcudad_process){
		.grant = grant,
		.pid = worker->client_pid,
		.server = worker->pid,
		.started = worker->started,
		.used = quota->used[worker->slot],
		.copied_in = quota->copied[START_COPY_IN][worker->slot],
		.copied_out = quota->copied[START_COPY_OUT][worker->slot],
		.busy = {(u_int)worker->tenant->gpu_count, busy},
		.state = (char *)(uintptr_t)control_client_describe_state(worker),
	};
}

/* In the order of the list. */
static void control_client_list_processes(const struct manager *manager, u_quad_t *busy, struct vcudad_process *ret,
					  u_int *ret_count)
{
	u_int grant = 0;

	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next) {
		if (tenant->ending)
			continue;
		for (const struct worker *worker = manager->workers; worker; worker = worker->next)
			if (worker->tenant == tenant) {
				ret[*ret_count] = control_client_describe_process(worker, grant,
										  &busy[*ret_count * MANAGER_GPUS_MAX]);
				++*ret_count;
			}
		grant++;
	}
}

static size_t control_client_answer_usage(struct manager *manager, const struct control_call *call, void *ret,
					  size_t max)
{
	_cleanup_free_ struct vcudad_grant *grants = calloc(manager->tenant_count + 1, sizeof(*grants));
	_cleanup_free_ struct vcudad_gpu *gpus = calloc((manager->tenant_count + 1) * MANAGER_GPUS_MAX, sizeof(*gpus));
	_cleanup_free_ vcudad_uuid *on = calloc((manager->tenant_count + 1) * MANAGER_GPUS_MAX, sizeof(*on));
	_cleanup_free_ struct vcudad_process *processes = calloc(manager->worker_count + 1, sizeof(*processes));
	_cleanup_free_ u_quad_t *busy = calloc((manager->worker_count + 1) * MANAGER_GPUS_MAX, sizeof(*busy));
	struct vcudad_trouble troubles[MANAGER_TROUBLES];
	struct vcudad_usage reply = {0};
	struct timespec now;

	if (!grants || !gpus || !on || !processes || !busy)
		return 0;
	decider_measure(manager);
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	reply.now = (u_quad_t)now.tv_sec * 1000000000 + (u_quad_t)now.tv_nsec;
	reply.list = control_client_list(manager, grants, gpus, on, troubles);
	control_client_list_processes(manager, busy, processes, &reply.processes.processes_len);
	reply.processes.processes_val = processes;
	return control_write_reply(call, &reply, ret, max);
}

/* Return: how long the reply is; 0 if there is none. */
static size_t control_client_answer(struct manager *manager, struct control_client *peer,
				    const struct control_call *call, void *ret, size_t max)
{
	struct vcudad_done done = {0, nothing};

	switch (call->procedure) {
	case VCUDAD_GRANT:
		return control_client_answer_grant(manager, peer, call, ret, max);
	case VCUDAD_LIST:
		return control_client_answer_list(manager, call, ret, max);
	case VCUDAD_USAGE:
		return control_client_answer_usage(manager, call, ret, max);
	case VCUDAD_KEEP:
		control_client_keep(manager, *(vcudad_id *)call->arguments, &done);
		break;
	case VCUDAD_REVOKE:
		control_client_revoke(manager, *(vcudad_id *)call->arguments, &done);
		break;
	case VCUDAD_SUSPEND:
		control_client_suspend(manager, *(vcudad_id *)call->arguments, &done);
		break;
	case VCUDAD_RESUME:
		control_client_resume(manager, *(vcudad_id *)call->arguments, &done);
		break;
	case VCUDAD_SLEEP:
		if (((const struct vcudad_sleep *)call->arguments)->ends)
			suspension_wake(manager);
		else
			suspension_sleep(manager);
		break;
	case VCUDAD_CLEAR:
		control_client_clear(manager, *(vcudad_id *)call->arguments, &done);
		break;
	case VCUDAD_MOVE:
		control_client_move(manager, call->arguments, &done);
		break;
	case VCUDAD_DRAIN:
		control_client_drain(manager, call->arguments, &done);
		break;
	case VCUDAD_LIMIT:
		control_client_limit(manager, call->arguments, &done);
		break;
	default:
		return control_write_reply(call, NULL, ret, max);
	}
	return control_write_reply(call, &done, ret, max);
}

/* ---- bytes ---- */

/* A message is there. What is not a call of ours is not answered. */
static bool control_client_take_message(struct manager *manager, struct control_client *peer, size_t size)
{
	struct control_call call = {0};

	peer->out = malloc(CONTROL_REPLY_MAX);
	peer->deadline = manager_now() + (peer->granted[0] ? GRANTED_MS : IDLE_MS);
	if (peer->out && control_read_call(peer->in + CONTROL_MARK, size, &call))
		peer->out_size = control_client_answer(manager, peer, &call, peer->out, CONTROL_REPLY_MAX);
	control_call_clear(&call);
	peer->in_size = peer->out_at = 0;
	return peer->out_size > 0;
}

static bool control_client_read(struct manager *manager, struct control_client *peer)
{
	for (;;) {
		size_t size = 0, wanted = CONTROL_MARK;
		ssize_t part;

		if (peer->in_size >= CONTROL_MARK) {
			size = control_read_mark(peer->in, CONTROL_CALL_MAX);
			wanted += size;
			if (size == 0)
				return false;
		}
		if (peer->in_size == wanted)
			return control_client_take_message(manager, peer, size);
		part = recv(peer->fd, peer->in + peer->in_size, wanted - peer->in_size, 0);
		if (part <= 0)
			return part < 0 && (errno == EAGAIN || errno == EINTR);
		peer->in_size += (size_t)part;
	}
}

static bool control_client_write(struct control_client *peer)
{
	while (peer->out_at < peer->out_size) {
		ssize_t part = send(peer->fd, peer->out + peer->out_at, peer->out_size - peer->out_at, MSG_NOSIGNAL);

		if (part < 0)
			return errno == EAGAIN || errno == EINTR;
		peer->out_at += (size_t)part;
	}
	free(peer->out);
	peer->out = NULL;
	peer->out_size = 0;
	return true;
}

short control_client_events(const struct control_client *peer)
{
	return peer->out ? POLLOUT : POLLIN;
}

bool control_client_serve(struct manager *manager, struct control_client *peer)
{
	if (!peer->out && !control_client_read(manager, peer))
		return false;
	return !peer->out || control_client_write(peer);
}
