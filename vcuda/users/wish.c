/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What users without root ask for: whose user a process is, and what is made of a wish of such a user for the manager.
 */

#include "vcuda/users/users.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "lib/context.h"
#include "plan/plan.h"
#include "system/machine.h"
#include "vcuda/grant/grant.h"
#include "vcuda/protocol/control.h"
#include "vcuda/protocol/pidref.h"
#include "vcuda_rpc.h"

enum {
	NAMESPACES_MAX = 33, /* the kernel nests no more user namespaces */
	ANCESTORS_MAX = 64,
	STATUS_MAX = 64 * 1024,
	GROUPS_MAX = 65536,
};

/* ---- accounts: processes ---- */

static int account_open_process(pid_t pid)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* What stands behind a name such as "Uid:" in its status, up to the end of the line; NULL; owned by the caller. */
static char *account_read_status(int process, const char *name)
{
	_cleanup_free_ char *text = NULL;
	const char *line;

	if (fd_read_kernel_file(process, "status", STATUS_MAX, &text) < 0)
		return NULL;
	line = strstr(text, name);
	return line && line > text && line[-1] == '\n'
		       ? strndup(line + strlen(name), strcspn(line, "\n") - strlen(name))
		       : NULL;
}

/* Return: the user that all of its ids are; -EPERM if they differ. */
static int account_read_uid(int process, uid_t *ret)
{
	_cleanup_free_ char *line = account_read_status(process, "Uid:");
	unsigned uids[4];

	if (!line || sscanf(line, "%u %u %u %u", &uids[0], &uids[1], &uids[2], &uids[3]) != 4)
		return -ESRCH;
	*ret = uids[0];
	return uids[0] == uids[1] && uids[0] == uids[2] && uids[0] == uids[3] ? 0 : -EPERM;
}

/* @other: "self", or a number; what cannot be looked at is taken for shared */
static bool account_shares(int process, const char *other, const char *namespace)
{
	struct stat one, its;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%s/%s", other, namespace);
	return stat(path, &one) < 0 || fstatat(process, namespace, &its, 0) < 0 ||
	       (one.st_dev == its.st_dev && one.st_ino == its.st_ino);
}

/* The host's files are init's: systemd gives the manager a mount namespace of its own. */
static bool account_has_files_of_host(int process)
{
	return account_shares(process, "self", "ns/mnt") || account_shares(process, "1", "ns/mnt");
}

/* ---- accounts: users ---- */

/* @uid: of the process, as it is here. Return: as account_of_peer(). */
static int account_read(int process, uid_t uid, struct account *ret)
{
	_cleanup_close_ int namespace = openat(process, "ns/user", O_RDONLY | O_CLOEXEC);
	struct stat own, st;
	uid_t owner = (uid_t)-1;

	if (namespace < 0 || stat("/proc/self/ns/user", &own) < 0 || fstat(namespace, &st) < 0)
		return -errno;
	*ret = (struct account){.device = st.st_dev, .inode = st.st_ino};
	for (int i = 0; i < NAMESPACES_MAX && st.st_ino != own.st_ino; i++) {
		int parent;

		if (ioctl(namespace, NS_GET_OWNER_UID, &owner) < 0)
			return -errno;
		/* -EPERM: it is not below this one. */
		parent = ioctl(namespace, NS_GET_PARENT);
		if (parent < 0)
			return -errno;
		(void)close(namespace);
		namespace = parent;
		if (fstat(namespace, &st) < 0)
			return -errno;
	}
	if (owner == (uid_t)-1 || st.st_ino != own.st_ino)
		return -EPERM;
	ret->by_root = owner == 0;
	ret->uid = ret->by_root ? uid : owner;
	return ret->uid ? 0 : -EPERM;
}

/* One of another pid namespace has no number here. If it has ended meanwhile, another of its number may be opened. */
static int account_open_peer(int connection, struct ucred *ret_who)
{
	_cleanup_close_ int pidfd = -1, process = -1;
	int r = pidref_open_peer(connection, &pidfd, NULL, ret_who);

	if (r < 0)
		return r;
	process = account_open_process(ret_who->pid);
	if (process < 0)
		return process;
	return pidref_has_ended(pidfd) ? -ESRCH : steal_fd(&process);
}

int account_of_peer(int connection, struct account *ret, int *ret_process)
{
	struct ucred who;
	_cleanup_close_ int process = account_open_peer(connection, &who);
	int r;

	if (process < 0)
		return process;
	r = account_read(process, who.uid, ret);
	/* Users that are numbered in a namespace belong to the one that made it, and would be as many accounts. */
	if (r == 0 && ret->uid != who.uid)
		r = -EPERM;
	if (r == 0)
		*ret_process = steal_fd(&process);
	return r;
}

/* ---- accounts: containers ---- */

/* The number that its innermost pid namespace has for a process. */
static pid_t account_inner_pid(int process)
{
	_cleanup_free_ char *line = account_read_status(process, "NSpid:");
	const char *last = line ? strrchr(line, '\t') : NULL;

	return last ? (pid_t)atoi(last) : 0;
}

/* Of a pid namespace, from one of its processes on. Return: its directory; negative errno. */
static int account_open_first(int process, pid_t *ret_pid)
{
	_cleanup_close_ int at = fcntl(process, F_DUPFD_CLOEXEC, 0);

	for (int i = 0; i < ANCESTORS_MAX && at >= 0; i++) {
		_cleanup_free_ char *line = account_read_status(at, "PPid:");

		if (account_inner_pid(at) == 1)
			return *ret_pid ? steal_fd(&at) : -EPERM;
		*ret_pid = line ? (pid_t)atoi(line) : 0;
		cleanup_closep(&at);
		at = *ret_pid > 0 ? account_open_process(*ret_pid) : -ESRCH;
	}
	return -EPERM;
}

static bool account_is_same(const struct account *one, const struct account *other)
{
	if (one->uid != other->uid || one->by_root != other->by_root)
		return false;
	return !one->by_root || (one->device == other->device && one->inode == other->inode);
}

/*
 * The first process of a container, of which a peer says that it is its user's. @peer: its directory in /proc; @pid: as
 * the peer numbers it; not used where the peer is in a pid namespace of its own: that is the container's.
 * Return: 0; -EPERM if it is another user's, or in no container; negative errno.
 */
static int account_open_container(const struct account *account, int peer, pid_t pid, pid_t *ret_pid,
				  unsigned long long *ret_started)
{
	const bool outside = account_shares(peer, "self", "ns/pid");
	_cleanup_close_ int process = -1;
	struct account its;
	uid_t uid;
	int r;

	*ret_pid = outside ? pid : 0;
	process = !outside ? account_open_first(peer, ret_pid) : pid > 0 ? account_open_process(pid) : -EPERM;
	if (process < 0)
		return process;
	r = account_read_uid(process, &uid);
	if (r == 0)
		r = account_read(process, uid, &its);
	/* Not a process of the host's files: it is in a container, or about to begin there. */
	if (r == 0 && (!account_is_same(account, &its) || account_has_files_of_host(process)))
		r = -EPERM;
	return r == 0 ? process_key_start(process, ret_started) : r;
}

/* ---- accounts: settings ---- */

/* Those that it had when it connected, as the kernel keeps them: more than it had, it cannot say. */
static size_t account_read_groups(int connection, gid_t *groups)
{
	socklen_t size = GROUPS_MAX * sizeof(*groups);
	struct ucred who;
	socklen_t who_size = sizeof(who);
	size_t count;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		size = 0;
	count = size / sizeof(*groups);
	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &who_size) == 0)
		groups[count++] = who.gid;
	return count;
}

static bool account_has_group(const gid_t *groups, size_t count, gid_t group)
{
	for (size_t i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return false;
}

const struct vcuda_user *account_find_user(const struct settings *settings, const struct account *account,
					   int connection)
{
	_cleanup_free_ gid_t *groups = calloc(GROUPS_MAX + 1, sizeof(*groups));
	/* In a namespace of root's, groups are root's to give, and each of its users would be one more member. */
	const size_t count = groups && !account->by_root ? account_read_groups(connection, groups) : 0;

	for (size_t i = 0; i < settings->vcuda_user_count; i++) {
		const struct vcuda_user *user = &settings->vcuda_users[i];

		if (user->uid ? user->uid == account->uid : account_has_group(groups, count, user->gid))
			return user;
	}
	return NULL;
}

/* ---- wishes ---- */

enum {
	CALL_S = 5,
	KEEP_S = 180, /* above what a hook gives itself to make a container */
	REPLY_MAX = 4096,
	NAME_MAX_LENGTH = VCUDAD_ID_MAX - sizeof("4294967295+"),
};

/* What a user asks for, and what it is made of for the manager. */
struct wish {
	const struct account *account;
	const struct vcuda_user *user;
	const struct vcudad_request *said;
	struct ctr_gpu_context *context;
	struct ctr_gpu_host *host;
	struct ctr_gpu_request *request;
	struct ctr_gpu_plan *plan;
	pid_t pid;
	unsigned long long started;
	int manager; /* the connection on which it is granted */
	char *id;
};

static void wish_clear(struct wish *wish)
{
	(void)ctr_gpu_plan_unref(wish->plan);
	(void)ctr_gpu_request_unref(wish->request);
	(void)ctr_gpu_host_unref(wish->host);
	(void)ctr_gpu_context_unref(wish->context);
	cleanup_closep(&wish->manager);
	free(wish->id);
}

/* ---- wishes: messages ---- */

static bool wish_write(int connection, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t part = send(connection, data, size, MSG_NOSIGNAL);

		if (part <= 0)
			return false;
		data += part;
		size -= (size_t)part;
	}
	return true;
}

static bool wish_answer(int connection, const struct control_call *call, void *reply)
{
	char bytes[REPLY_MAX];

	return wish_write(connection, bytes, control_write_reply(call, reply, bytes, sizeof(bytes)));
}

static void wish_answer_refusal(int connection, const struct control_call *call, int error, const char *why)
{
	struct vcudad_granted granted = {.error = error, .directory = (char *)""};
	char line[VCUDAD_MESSAGE_MAX];

	/* A sentence and what to do, in one line. */
	(void)snprintf(line, sizeof(line), "%s", why);
	for (char *end = line; (end = strchr(end, '\n'));)
		*end = ' ';
	granted.message = line;
	(void)wish_answer(connection, call, &granted);
}

void wish_refuse(int connection, const char *why)
{
	/* Its number is the procedure's, as every caller's is (control_ask()). */
	const struct control_call call = {.xid = VCUDAD_GRANT, .procedure = VCUDAD_GRANT};

	wish_answer_refusal(connection, &call, EPERM, why);
}

static bool wish_read_bytes(int connection, char *data, size_t size)
{
	while (size > 0) {
		ssize_t part = recv(connection, data, size, 0);

		if (part <= 0)
			return false;
		data += part;
		size -= (size_t)part;
	}
	return true;
}

/* @seconds: for each part of it. Return: whether it is that call */
static bool wish_read_call(int connection, unsigned procedure, int seconds, struct control_call *ret)
{
	const struct timeval patience = {.tv_sec = seconds};
	_cleanup_free_ char *data = malloc(CONTROL_CALL_MAX);
	char mark[CONTROL_MARK];
	size_t size;

	if (!data || setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    !wish_read_bytes(connection, mark, sizeof(mark)))
		return false;
	size = control_read_mark(mark, CONTROL_CALL_MAX);
	return size > 0 && wish_read_bytes(connection, data, size) && control_read_call(data, size, ret) &&
	       ret->procedure == procedure;
}

/* ---- wishes: what is asked for ---- */

/* The settings are those of all containers, but for these. */
static void wish_limit(const struct wish *wish)
{
	struct settings *settings = &wish->context->settings;
	const struct vcuda_user *user = wish->user;
	struct sysinfo machine = {0};

	(void)sysinfo(&machine);
	settings->vcuda_limits.host_memory =
		(user->limits.host_memory ? user->limits.host_memory
					  : (uint64_t)machine.totalram * machine.mem_unit / 2) /
		user->containers;
	if (user->limits.max_clients < settings->vcuda_limits.max_clients)
		settings->vcuda_limits.max_clients = user->limits.max_clients;
	/* Its servers could use what it may be moved to. */
	if (user->gpus.count > 0)
		settings->vcuda_move = false;
}

static int wish_list_devices(const struct vcudad_request *said, char **ret)
{
	int r = str_format(ret, "%s", "");

	for (u_int i = 0; i < said->gpus.gpus_len && r == 0; i++) {
		_cleanup_free_ char *before = *ret;
		uint8_t bytes[16];

		*ret = NULL;
		/* Not another name of a GPU, nor several. */
		r = adapter_read_uuid(said->gpus.gpus_val[i].uuid, bytes)
			    ? str_format(ret, "%s%s" DEVICE_NAME_VCUDA_KIND "=%s", before, *before ? "," : "",
					 said->gpus.gpus_val[i].uuid)
			    : -EINVAL;
	}
	return r;
}

static int wish_plan(struct wish *wish)
{
	_cleanup_free_ char *devices = NULL;
	int r = wish_list_devices(wish->said, &devices);

	if (r < 0 || !*devices)
		return err_set(&wish->context->err, CTR_GPU_E_BAD_ARGUMENT, "GPUs are asked for by their UUIDs");
	r = ctr_gpu_host_new(wish->context, &wish->host);
	if (r == 0)
		r = ctr_gpu_request_new(wish->context, &wish->request);
	if (r == 0)
		r = ctr_gpu_request_set_devices(wish->request, devices);
	if (r != 0)
		return r;
	wish->request->data.mode = REQUEST_VCUDA;
	wish->request->data.nodes_only = true;
	return ctr_gpu_plan_new(wish->context, wish->request, wish->host, &wish->plan);
}

static const struct adapter *wish_find_adapter(const struct inventory *inventory, const char *uuid)
{
	for (size_t i = 0; i < inventory->count; i++)
		if (inventory->adapters[i].uuid && streq(inventory->adapters[i].uuid, uuid))
			return &inventory->adapters[i];
	return NULL;
}

static int wish_mark(const struct wish *wish, bool *marked)
{
	for (size_t i = 0; i < wish->user->gpus.count; i++) {
		int r = host_exclusive_mark(wish->host, wish->user->gpus.items[i], marked, NULL);

		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

/* A name in the settings that no GPU has allows none. */
static int wish_check_names(const struct wish *wish)
{
	const struct inventory *inventory = &wish->host->inventory;
	_cleanup_free_ bool *marked = calloc(inventory->count + 1, sizeof(*marked));
	const struct plan *plan = &wish->plan->data;

	if (!marked || wish_mark(wish, marked) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < plan->grant_count; i++) {
		const struct adapter *adapter = wish_find_adapter(inventory, plan->grants[i].uuid);

		if (!adapter || !marked[adapter - inventory->adapters])
			return err_set(&wish->context->err, CTR_GPU_E_NO_PERMISSION,
				       "uid %u may not have %.64s by vCUDA: \"gpus\" of its entry in {\"vcuda\": "
				       "{\"users\": [...]}} of " PATH_CONFIG " does not name it",
				       wish->account->uid, plan->grants[i].uuid);
	}
	return 0;
}

static int wish_check_gpus(const struct wish *wish)
{
	const struct plan *plan = &wish->plan->data;

	/* Who has it could not be told from a user's word. */
	if (plan->claim_count > 0)
		return err_set(&wish->context->err, CTR_GPU_E_EXCLUSIVE,
			       "GPU %.64s is exclusive, and users' containers get none that is: ctr-gpu assign",
			       plan->claims[0].name ? plan->claims[0].name : "");
	return wish->user->gpus.count > 0 ? wish_check_names(wish) : 0;
}

/* ---- wishes: the grant ---- */

static void wish_describe(const struct wish *wish, struct vcudad_gpu *gpus, struct vcudad_request *ret)
{
	const struct vcuda_user *user = wish->user;

	grant_describe(&wish->plan->data, gpus, ret);
	ret->id = wish->id;
	ret->pid = wish->pid;
	ret->started = wish->started;
	ret->limits.memory = wish->said->limits.memory;
	ret->limits.share = wish->said->limits.share && wish->said->limits.share < user->limits.share
				    ? wish->said->limits.share
				    : user->limits.share;
	if (wish->said->limits.max_clients && wish->said->limits.max_clients < ret->limits.max_clients)
		ret->limits.max_clients = wish->said->limits.max_clients;
	ret->owner = (struct vcudad_owner){wish->account->uid, user->limits, user->containers};
}

static int wish_ask(const struct wish *wish, struct vcudad_granted *ret)
{
	struct vcudad_gpu gpus[VCUDAD_GPUS_MAX];
	struct vcudad_request asked = {0};

	wish_describe(wish, gpus, &asked);
	return grant_ask_manager(wish->manager, &asked, ret);
}

static bool wish_is_name(const char *text)
{
	return *text && strlen(text) <= NAME_MAX_LENGTH;
}

/* Return: 0, and a refusal has its sentence in the context. */
static int wish_prepare(struct wish *wish, int peer)
{
	struct err *err = &wish->context->err;
	int r = account_open_container(wish->account, peer, wish->said->pid, &wish->pid, &wish->started);

	if (r < 0)
		return err_set(err, CTR_GPU_E_NO_PERMISSION,
			       "process %d is not the first one of a container of uid %u, for which a grant lasts",
			       wish->pid, wish->account->uid);
	if (wish->said->slot > 0)
		return err_set(err, CTR_GPU_E_NO_PERMISSION,
			       "slots of GPUs are for root's containers; ask for a GPU and CTR_GPU_MEMORY");
	if (!wish_is_name(wish->said->id))
		return err_set(err, CTR_GPU_E_BAD_ARGUMENT, "the container's id is longer than vCUDA takes");
	/* Containers of several users may have the same name. */
	r = wish->said->pid == 0 ? str_format(&wish->id, "%u+pid-%d", wish->account->uid, (int)wish->pid)
				 : str_format(&wish->id, "%u+%s", wish->account->uid, wish->said->id);
	if (r == 0)
		r = wish_plan(wish);
	if (r == 0)
		r = wish_check_gpus(wish);
	if (r == 0 && control_open(&wish->manager) < 0)
		r = err_set(err, -ECONNREFUSED, "vCUDA's manager does not answer; try again");
	return r;
}

/* The grant ends with the connection, unless the hook says that the container is made. */
static void wish_wait_for_keep(int connection, struct wish *wish)
{
	struct control_call call = {0};
	struct vcudad_done done = {0};

	if (wish_read_call(connection, VCUDAD_KEEP, KEEP_S, &call) &&
	    control_ask(wish->manager, VCUDAD_KEEP, &wish->id, &done) == 0)
		(void)wish_answer(connection, &call, &done);
	control_free_reply(VCUDAD_KEEP, &done);
	control_call_clear(&call);
}

static void wish_serve_grant(int connection, struct wish *wish, int peer, const struct control_call *call)
{
	struct vcudad_granted granted = {0};
	int r = wish_prepare(wish, peer);

	if (r == 0)
		r = wish_ask(wish, &granted);
	if (r != 0)
		wish_answer_refusal(connection, call, r > 0 ? EPERM : -r,
				    *wish->context->err.text ? wish->context->err.text : strerror(-r));
	else if (granted.error != 0)
		wish_answer_refusal(connection, call, granted.error, granted.message);
	else if (wish_answer(connection, call, &granted))
		wish_wait_for_keep(connection, wish);
	control_free_reply(VCUDAD_GRANT, &granted);
}

void wish_serve(int connection, const struct account *account, int peer, const struct vcuda_user *user,
		struct settings *settings)
{
	struct wish wish = {.account = account, .user = user, .manager = -1};
	struct control_call call = {0};

	if (wish_read_call(connection, VCUDAD_GRANT, CALL_S, &call) && ctr_gpu_context_new(&wish.context) == 0) {
		settings_clear(&wish.context->settings);
		wish.context->settings = *settings;
		*settings = (struct settings){0};
		wish.said = call.arguments;
		wish_limit(&wish);
		wish_serve_grant(connection, &wish, peer, &call);
	}
	wish_clear(&wish);
	control_call_clear(&call);
}
