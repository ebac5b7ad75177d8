/* SPDX-License-Identifier: Apache-2.0 */

/* What the next manager has of this one: a file, and a child that keeps what cannot be written down. */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "vcuda/manager/page.h"
#include "vcuda/protocol/pidref.h"
#include "vcuda/protocol/wire.h"

enum { STATE_FILE_MAX = 4 << 20 };

/* ---- writing the file ---- */

/* Their sockets by the keeper's descriptors. */
static json_t *state_file_list_workers(const struct manager *manager, const struct tenant *tenant)
{
	json_t *list = json_array();

	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->tenant == tenant)
			(void)json_array_append_new(list,
						    json_pack("{s:i, s:I, s:i, s:i, s:I, s:i}", "pid", (int)worker->pid,
							      "started", (json_int_t)worker->started, "slot",
							      (int)worker->slot, "client", (int)worker->client_pid,
							      "clientStarted", (json_int_t)worker->client_started,
							      "events", worker->events >= 0 ? worker->events_kept : 0));
	return list;
}

/* By the descriptors that the keeper has; the oldest first, as they were left. */
static json_t *state_file_list_remnants(const struct manager *manager, const struct tenant *tenant)
{
	json_t *list = json_array();

	for (const struct remnant *remnant = manager->remnants; remnant; remnant = remnant->next)
		if (remnant->tenant == tenant && remnant->fd_kept)
			(void)json_array_insert_new(list, 0,
						    json_pack("{s:i, s:i, s:I}", "fd", remnant->fd_kept, "client",
							      (int)remnant->client_pid, "clientStarted",
							      (json_int_t)remnant->client_started));
	return list;
}

static json_t *state_file_list_gpus(const struct tenant *tenant)
{
	json_t *list = json_array();

	for (size_t i = 0; i < tenant->reach; i++)
		(void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b}", "uuid", tenant->gpus[i].uuid,
							    "address", tenant->gpus[i].address, "name",
							    tenant->gpus[i].name, "spare", i >= tenant->gpu_count));
	return list;
}

static json_t *state_file_describe_owner(const struct owner *owner)
{
	json_t *described = vcuda_limits_write(&owner->limits);

	(void)json_object_update_new(described, json_pack("{s:I, s:i}", "user", (json_int_t)owner->uid, "containers",
							  (int)owner->containers));
	return described;
}

static json_t *state_file_describe_suspension(const struct suspension *suspension)
{
	return json_pack("{s:s, s:s, s:I, s:b, s:b, s:b, s:b}", "suspension", suspension_name(suspension), "trouble",
			 suspension->trouble, "target", (json_int_t)suspension->target, "byHand", suspension->by_hand,
			 "forSleep", suspension->for_sleep, "begun", suspension_has_begun(suspension), "partly",
			 suspension->partly);
}

static json_t *state_file_list_times(const uint64_t times[static MANAGER_GPUS_MAX])
{
	json_t *list = json_array();

	for (size_t i = 0; i < MANAGER_GPUS_MAX; i++)
		(void)json_array_append_new(list, json_integer((json_int_t)times[i]));
	return list;
}

/* What is counted, so that it goes on from there. */
static json_t *state_file_describe_use(const struct tenant *tenant)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "connects", (json_int_t)tenant->connects, "denied",
			 (json_int_t)tenant->denied, "crashes", (json_int_t)tenant->crashes, "refusedMemory",
			 (json_int_t)tenant->refused_memory, "refusedFunctions", (json_int_t)tenant->refused_functions,
			 "busy", state_file_list_times(tenant->busy), "spent", state_file_list_times(tenant->spent),
			 "counted", state_file_list_times(tenant->counted));
}

static json_t *state_file_describe(const struct manager *manager, const struct tenant *tenant)
{
	struct vcuda_limits limits = tenant->limits;
	json_t *entry = json_pack("{s:s, s:o, s:i, s:I, s:I, s:s, s:i, s:I, s:I, s:i, s:o, s:o, s:o}", "id", tenant->id,
				  "owner", state_file_describe_owner(&tenant->owner), "pid", (int)tenant->pid,
				  "started", (json_int_t)tenant->started, "uid", (json_int_t)tenant->uid, "library",
				  tenant->library, "first", (int)tenant->first, "places", (json_int_t)tenant->places,
				  "movedAt", (json_int_t)tenant->moved_at, "slot", (int)tenant->slot, "gpus",
				  state_file_list_gpus(tenant), "servers", state_file_list_workers(manager, tenant),
				  "remnants", state_file_list_remnants(manager, tenant));

	limits.share = tenant->wanted_share;
	(void)json_object_update_new(entry, vcuda_limits_write(&limits));
	(void)json_object_update_new(entry, state_file_describe_suspension(&tenant->suspension));
	(void)json_object_update_new(entry, state_file_describe_use(tenant));
	(void)json_object_set(entry, "asked", tenant->asked);
	return entry;
}

/* A container that is not committed yet ends with the connection of its hook, and so with this manager. */
static json_t *state_file_list(const struct manager *manager)
{
	json_t *list = json_array(), *drained = json_array();

	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (tenant->kept && !tenant->ending)
			(void)json_array_append_new(list, state_file_describe(manager, tenant));
	for (size_t i = 0; i < manager->drained_count; i++)
		(void)json_array_append_new(drained, json_string(manager->drained[i]));
	return json_pack("{s:i, s:b, s:o, s:o, s:i, s:I}", "version", 1, "asleep", manager->asleep, "containers", list,
			 "drained", drained, "keeper", (int)manager->keeper.pid, "keeperStarted",
			 (json_int_t)manager->keeper.started);
}

int state_file_write(const struct manager *manager)
{
	_cleanup_json_ json_t *all = state_file_list(manager);
	_cleanup_free_ char *text = NULL, *new = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	if (!all || json_print(all, JSON_COMPACT, &text) < 0 || str_format(&new, "%s.new", manager->ledger) < 0)
		return -ENOMEM;
	fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, strlen(text));
	if (r == 0 && rename(new, manager->ledger) < 0)
		r = -errno;
	return r;
}

/* ---- reading the file ---- */

static const char *state_file_text(const json_t *entry, const char *name)
{
	const char *text = json_string_value(json_object_get(entry, name));

	return text ? text : "";
}

static json_int_t state_file_number(const json_t *entry, const char *name)
{
	return json_integer_value(json_object_get(entry, name));
}

/* Of the first server that lives and has it. */
static int state_file_take_page(const json_t *servers, int number, size_t bytes, mode_t mode)
{
	const json_t *server;
	size_t i;

	json_array_foreach (servers, i, server) {
		_cleanup_close_ int pidfd = -1;
		pid_t pid = (pid_t)state_file_number(server, "pid");
		int fd;

		if (pidref_open(pid, (uint64_t)state_file_number(server, "started"), &pidfd, NULL) < 0)
			continue;
		fd = page_take(pid, number, bytes, mode);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

static struct owner state_file_read_owner(const json_t *owner)
{
	return (struct owner){
		.uid = (uid_t)state_file_number(owner, "user"),
		.limits = vcuda_limits_read(owner),
		.containers = (unsigned)state_file_number(owner, "containers"),
	};
}

/* A version before this one has not written them down. */
static void state_file_read_times(const json_t *entry, const char *name, uint64_t ret[static MANAGER_GPUS_MAX])
{
	const json_t *list = json_object_get(entry, name);

	for (size_t i = 0; i < MANAGER_GPUS_MAX; i++)
		ret[i] = (uint64_t)json_integer_value(json_array_get(list, i));
}

static void state_file_read_use(const json_t *entry, struct tenant *tenant)
{
	tenant->connects = (uint64_t)state_file_number(entry, "connects");
	tenant->denied = (uint64_t)state_file_number(entry, "denied");
	tenant->crashes = (uint64_t)state_file_number(entry, "crashes");
	tenant->refused_memory = (uint64_t)state_file_number(entry, "refusedMemory");
	tenant->refused_functions = (uint64_t)state_file_number(entry, "refusedFunctions");
	state_file_read_times(entry, "busy", tenant->busy);
	state_file_read_times(entry, "spent", tenant->spent);
	state_file_read_times(entry, "counted", tenant->counted);
}

static int state_file_fill(const json_t *entry, struct tenant *tenant)
{
	const json_t *gpu;
	size_t i;
	int r = 0;

	tenant->owner = state_file_read_owner(json_object_get(entry, "owner"));
	tenant->pid = (pid_t)state_file_number(entry, "pid");
	tenant->started = (uint64_t)state_file_number(entry, "started");
	tenant->uid = (uid_t)state_file_number(entry, "uid");
	tenant->limits = vcuda_limits_read(entry);
	tenant->wanted_share = tenant->limits.share;
	tenant->slot = (unsigned)state_file_number(entry, "slot");
	state_file_read_use(entry, tenant);
	tenant->moved_at = (int64_t)state_file_number(entry, "movedAt");
	tenant->library = strdup(state_file_text(entry, "library"));
	tenant->asked = json_deep_copy(json_object_get(entry, "asked"));
	tenant->suspension.by_hand = json_is_true(json_object_get(entry, "byHand"));
	tenant->suspension.for_sleep = json_is_true(json_object_get(entry, "forSleep"));
	(void)snprintf(tenant->suspension.trouble, sizeof(tenant->suspension.trouble), "%s",
		       state_file_text(entry, "trouble"));
	/* An earlier version has no such key: whatever it has a reason of is saved once more, which does no harm. */
	tenant->suspension.partly = json_object_get(entry, "partly") ? json_is_true(json_object_get(entry, "partly"))
								     : tenant->suspension.trouble[0] != '\0';
	tenant->kept = true;
	json_array_foreach (json_object_get(entry, "gpus"), i, gpu)
		if (r == 0)
			r = tenant_add_gpu(tenant, state_file_text(gpu, "uuid"), state_file_text(gpu, "address"),
					   state_file_text(gpu, "name"), !json_is_true(json_object_get(gpu, "spare")));
	tenant->places = (uint64_t)state_file_number(entry, "places");
	tenant->first = (ssize_t)state_file_number(entry, "first");
	if (tenant->first >= (ssize_t)tenant->gpu_count || tenant->first < -1)
		tenant->first = -1;
	if (r == 0 && (!tenant->library || tenant->gpu_count == 0 || !tenant->started))
		r = tenant->library ? -EINVAL : -ENOMEM;
	return r == 0 ? pidref_open(tenant->pid, tenant->started, &tenant->pidfd, NULL) : r;
}

static void state_file_reattach_remnants(struct manager *manager, struct tenant *tenant, const json_t *remnants)
{
	const json_t *remnant;
	size_t i;

	json_array_foreach (remnants, i, remnant) {
		const struct remnant known = {
			.fd_kept = (int)state_file_number(remnant, "fd"),
			.client_pid = (pid_t)state_file_number(remnant, "client"),
			.client_started = (uint64_t)state_file_number(remnant, "clientStarted"),
		};
		const int fd = manager->keeper.pid ? page_take(manager->keeper.pid, known.fd_kept, WIRE_SHARED_BYTES,
							       PAGE_OF_MANAGER)
						   : -1;

		if (fd >= 0)
			remnant_reattach(manager, tenant, fd, &known);
	}
}

/* Where all servers ended while there was no manager, their page is gone, and what it had is not added up again. */
static void state_file_lose_page(struct tenant *tenant)
{
	for (size_t i = 0; i < MANAGER_GPUS_MAX; i++)
		if (tenant->counted[i] > tenant->busy[i])
			tenant->counted[i] = tenant->busy[i];
}

/* Return: as tenant_open(). */
static int state_file_open_tenant(struct manager *manager, const json_t *servers, struct tenant *tenant)
{
	const int quota = state_file_take_page(servers, START_QUOTA, sizeof(struct start_quota), PAGE_OF_ALL);

	if (quota < 0)
		state_file_lose_page(tenant);
	return tenant_open(manager, tenant, quota,
			   state_file_take_page(servers, START_ORDERS, sizeof(struct start_orders), PAGE_OF_MANAGER),
			   state_file_take_page(servers, START_TURNS, sizeof(struct start_turns), PAGE_OF_MANAGER));
}

static int state_file_reattach(struct manager *manager, const json_t *entry)
{
	const json_t *servers = json_object_get(entry, "servers"), *server;
	const char *id = state_file_text(entry, "id");
	_cleanup_tenant_ struct tenant *tenant = tenant_is_name(id) ? tenant_new(id) : NULL;
	struct tenant *adopted;
	size_t i;
	int r;

	if (!tenant)
		return -EINVAL;
	r = state_file_fill(entry, tenant);
	if (r == 0)
		r = state_file_open_tenant(manager, servers, tenant);
	if (r < 0)
		return r;
	adopted = steal_ptr(tenant);
	json_array_foreach (servers, i, server) {
		const struct worker known = {
			.pid = (pid_t)state_file_number(server, "pid"),
			.started = (uint64_t)state_file_number(server, "started"),
			.slot = (unsigned)state_file_number(server, "slot"),
			.client_pid = (pid_t)state_file_number(server, "client"),
			.client_started = (uint64_t)state_file_number(server, "clientStarted"),
			.events_kept = (int)state_file_number(server, "events"),
		};

		(void)server_process_reattach(manager, adopted, &known);
	}
	state_file_reattach_remnants(manager, adopted, json_object_get(entry, "remnants"));
	suspension_take_over(manager, adopted, state_file_text(entry, "suspension"),
			     (uint64_t)state_file_number(entry, "target"),
			     json_is_true(json_object_get(entry, "begun")));
	audit_write("adopt", adopted, json_pack("{s:i}", "clients", (int)adopted->clients));
	return 0;
}

/* Root alone may write there: what it says decides who is killed. */
static int state_file_load(const struct manager *manager, json_t **ret)
{
	_cleanup_close_ int fd = open(manager->ledger, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t size = 0;
	int r;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	r = fd_read_all(fd, STATE_FILE_MAX, &text, &size);
	return r == 0 ? json_parse(text, size, ret, NULL) : r;
}

/* It has ended if all of these clients have. */
static void state_file_find_keeper(const json_t *all, struct keeper *ret)
{
	struct keeper known = {
		.pid = (pid_t)state_file_number(all, "keeper"),
		.started = (uint64_t)state_file_number(all, "keeperStarted"),
		.adopted = true,
		.began = manager_now(),
	};

	if (known.pid > 0 && known.started && pidref_open(known.pid, known.started, &known.pidfd, NULL) == 0)
		*ret = known;
}

int state_file_read(struct manager *manager)
{
	_cleanup_json_ json_t *all = NULL;
	const json_t *entry;
	const char *why;
	size_t i;
	int r = state_file_load(manager, &all);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (state_file_number(all, "version") != 1)
		return -EINVAL;
	manager->asleep = json_is_true(json_object_get(all, "asleep"));
	state_file_find_keeper(all, &manager->keeper);
	manager->keeper_written = manager->keeper;
	json_array_foreach (json_object_get(all, "drained"), i, entry)
		(void)drain_begin(manager, json_is_string(entry) ? json_string_value(entry) : "", &why);
	json_array_foreach (json_object_get(all, "containers"), i, entry) {
		r = state_file_reattach(manager, entry);
		if (r < 0)
			audit_write("not-adopted", NULL,
				    json_pack("{s:s, s:s}", "container", state_file_text(entry, "id"), "error",
					      r == -ESRCH ? "container ended" : strerror(-r)));
	}
	decider_divide(manager);
	return 0;
}

enum {
	KEEPER_DESCRIPTORS = 4096, /* as many as the manager may have */
	ENDS_MAX = 2 * MANAGER_REMNANTS_MAX + MANAGER_WORKERS_MAX,
	AGAIN_MS = 1000,
};

/* ---- the keeper, in the child ---- */

static bool keeper_needs(const struct manager *manager, int fd)
{
	for (const struct remnant *remnant = manager->remnants; remnant; remnant = remnant->next)
		if (remnant->fd == fd || remnant->client == fd)
			return true;
	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->events == fd)
			return true;
	return false;
}

/* A server that ends hangs up. Return: how many ends there are to be waited for. */
static nfds_t keeper_gather(struct manager *manager, struct pollfd ends[static ENDS_MAX])
{
	nfds_t count = 0;

	remnant_drop_ended(manager);
	for (const struct remnant *remnant = manager->remnants; remnant && count < ENDS_MAX; remnant = remnant->next)
		ends[count++] = (struct pollfd){.fd = remnant->client, .events = POLLIN};
	for (const struct worker *worker = manager->workers; worker && count < ENDS_MAX; worker = worker->next)
		if (worker->events >= 0)
			ends[count++] = (struct pollfd){.fd = worker->events};
	return count;
}

static void keeper_forget_ended(const struct manager *manager)
{
	for (struct worker *worker = manager->workers; worker; worker = worker->next) {
		struct pollfd end = {.fd = worker->events};

		if (worker->events >= 0 && poll(&end, 1, 0) > 0)
			worker->events = -1;
	}
}

/* Whoever connects to a socket of the manager's is to find that it is gone. */
static _Noreturn void keeper_run(struct manager *manager)
{
	static struct pollfd ends[ENDS_MAX];
	nfds_t count;

	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "ctr-gpu-keeper");
	for (int fd = 0; fd < KEEPER_DESCRIPTORS; fd++)
		if (!keeper_needs(manager, fd))
			(void)close(fd);
	while ((count = keeper_gather(manager, ends)) > 0) {
		(void)poll(ends, count, -1);
		keeper_forget_ended(manager);
	}
	_exit(0);
}

/* ---- the life of the keeper ---- */

/* One of a manager before this one is no child of this one's. */
static void keeper_end(struct keeper *keeper)
{
	int wait_status;

	if (keeper->pid == 0)
		return;
	pidref_signal(keeper->pidfd, SIGKILL);
	if (!keeper->adopted)
		(void)waitpid(keeper->pid, &wait_status, 0);
	cleanup_closep(&keeper->pidfd);
}

static struct keeper keeper_start(struct manager *manager)
{
	struct keeper keeper = {.pid = fork(), .began = manager_now()};

	if (keeper.pid == 0)
		keeper_run(manager);
	if (keeper.pid > 0 && pidref_open(keeper.pid, 0, &keeper.pidfd, &keeper.started) == 0)
		return keeper;
	/* The next manager would not know it. */
	if (keeper.pid > 0) {
		(void)kill(keeper.pid, SIGKILL);
		(void)waitpid(keeper.pid, NULL, 0);
	}
	return (struct keeper){0};
}

/* Whether there is something that it is to have. */
static bool keeper_is_needed(const struct manager *manager)
{
	bool any = manager->remnants;

	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		any |= worker->events >= 0;
	return any;
}

/* What it has, by the numbers that they have here. */
static void keeper_mark(const struct manager *manager)
{
	for (struct worker *worker = manager->workers; worker; worker = worker->next)
		worker->events_kept = worker->events >= 0 ? worker->events : 0;
	for (struct remnant *remnant = manager->remnants; remnant; remnant = remnant->next)
		remnant->fd_kept = remnant->fd;
}

/*
 * The one that the file names stays, and one that it never named goes. Where none can be started, the one before is
 * better than none: it has what there was then.
 */
static void keeper_renew(struct manager *manager)
{
	struct keeper next = {0};

	if (keeper_is_needed(manager)) {
		next = keeper_start(manager);
		manager->remnants_changed = !next.pid;
		manager->keeper.began = manager_now();
		if (!next.pid)
			return;
	}
	if (manager->keeper.pid != manager->keeper_written.pid)
		keeper_end(&manager->keeper);
	keeper_mark(manager);
	manager->keeper = next;
	manager->remnants_changed = manager->channels_changed = false;
	manager->changed = true;
}

/* By itself it ends with the last client and server. Or somebody has killed it, or the kernel, which had no memory. */
static bool keeper_has_ended(const struct manager *manager)
{
	return manager->keeper.pid && pidref_has_ended(manager->keeper.pidfd);
}

int keeper_wait_for(const struct manager *manager, int64_t now, int64_t *ret_next)
{
	const int64_t may = manager->keeper.began + AGAIN_MS;
	const bool ended = keeper_has_ended(manager);

	*ret_next = !ended && !manager->channels_changed && !manager->remnants_changed ? INT64_MAX
		    : may > now                                                        ? may
										       : now;
	return manager->keeper.pid && !ended ? manager->keeper.pidfd : -1;
}

/* What could not be written down is tried again at the next look. */
static void keeper_settle(struct manager *manager)
{
	if (manager->keeper.pid == manager->keeper_written.pid || state_file_write(manager) < 0)
		return;
	keeper_end(&manager->keeper_written);
	manager->keeper_written = manager->keeper;
}

/*
 * The next one has what is there, and is written down, before the last one lets it go: a manager that is killed in
 * between leaves a file that is right. What could not be started is tried again at the next look.
 */
void keeper_look(struct manager *manager)
{
	if (manager->remnants_changed || ((manager->channels_changed || keeper_has_ended(manager)) &&
					  manager_now() >= manager->keeper.began + AGAIN_MS))
		keeper_renew(manager);
	keeper_settle(manager);
}

void keeper_finish(struct manager *manager)
{
	if (manager->channels_changed || manager->remnants_changed)
		keeper_renew(manager);
	keeper_settle(manager);
}
