/* SPDX-License-Identifier: Apache-2.0 */

/* Looks at the host, one after the other, each in a child. What a look finds goes to the plugin as one message. */

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/print.h"
#include "base/str.h"
#include "cluster/plugin.h"
#include "ctr-gpu.h"
#include "engines/config.h"
#include "engines/engine.h"
#include "lib/context.h"
#include "vcuda/protocol/control.h"
#include "vcuda_rpc.h"

/* ---- strategy ---- */

/*
 * How containers of this node are told their devices, unless the administrator says it: by CDI where the engine that
 * runs them reads specs and one of ours is there, otherwise by mounts, which hook and shim read.
 */

static const struct {
	const char *name;
	enum strategy strategy;
} strategy_names[] = {
	{"cdi", STRATEGY_CDI},
	{"annotations", STRATEGY_ANNOTATIONS},
	{"mounts", STRATEGY_MOUNTS},
	{"environment", STRATEGY_ENVIRONMENT},
};

unsigned strategy_read(const char *text)
{
	_cleanup_strv_ struct strv words = {0};
	unsigned strategies = 0;

	if (strv_split(text, ",", &words) < 0)
		return 0;
	for (size_t i = 0; i < words.count; i++) {
		unsigned known = 0;

		for (size_t j = 0; j < ARRAY_SIZE(strategy_names); j++)
			if (streq(words.items[i], strategy_names[j].name))
				known = strategy_names[j].strategy;
		if (!known)
			return 0;
		strategies |= known;
	}
	return strategies;
}

void strategy_print(unsigned strategies, char ret[static STRATEGY_TEXT_SIZE])
{
	size_t size = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(strategy_names); i++)
		if (strategies & strategy_names[i].strategy)
			size += (size_t)snprintf(ret + size, STRATEGY_TEXT_SIZE - size, "%s%s", size > 0 ? "," : "",
						 strategy_names[i].name);
}

/* Whether there are specs of ours, without which an engine cannot know devices by their names. */
static bool strategy_has_specs(void)
{
	static const char *const patterns[] = {PATH_CDI "/ctr-gpu-*.json", PATH_CDI_RUN "/ctr-gpu-*.json"};
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		glob_t matches = {0};

		found = glob(patterns[i], GLOB_NOSORT, NULL, &matches) == 0 || found;
		globfree(&matches);
	}
	return found;
}

static bool strategy_reads_specs(const struct engine *engine)
{
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_engine_config_ struct engine_config config = {0};
	_cleanup_free_ char *version = NULL;

	if (daemon_find(&engine->daemon, 0, &daemon) < 0 || daemon_open_root(&daemon, &root) < 0 ||
	    (daemon.pid == 0 && !engine_is_installed(engine)) ||
	    engine_config_read(engine, &daemon, &root, &config) < 0)
		return false;
	version = engine_version(engine, daemon.snap);
	return engine_cdi_state(engine, engine_version_number(version), config.cdi) == ENGINE_CDI_ON;
}

unsigned strategy_find(void)
{
	if (strategy_has_specs() && (strategy_reads_specs(&engine_containerd) || strategy_reads_specs(&engine_crio)))
		return STRATEGY_CDI | STRATEGY_ANNOTATIONS;
	return STRATEGY_MOUNTS;
}

/* ---- watcher ---- */

enum {
	WATCHER_PAUSE_MS = 2000,
	WATCHER_LEAST_MS = 200,   /* whatever happens */
	WATCHER_LOOK_MS = 2500,   /* how long a look may take */
	WATCHER_NAMES_MS = 15000, /* one that asks drivers */
	WATCHER_NAMES_AGAIN_MS = 60 * 1000,
	WATCHER_MANAGER_MS = 500, /* of the time for a look, which then goes on without its answer */
	WATCHER_BUFFER = 512 * 1024,
	WATCHER_MESSAGE_MAX = 256 * 1024,
};

/* What the process that has the children knows. */
struct watcher_job {
	int fd;
	enum watcher_mig mig;
	bool names;         /* are wanted */
	int64_t names_from; /* not before */
	int specs;          /* whether there were some at the last look; -1: there was none */
	pid_t late;         /* a child that was killed and does not end; 0: none */
	struct xid_watch watch;
};

/* ---- in the child: a look ---- */

struct watcher_look {
	struct ctr_gpu_host *host;
	enum watcher_mig mig;
	const struct xid_watch *watch;
	bool served;          /* vCUDA's manager gives slots */
	json_t *slots, *lost; /* what it says; NULL: it is not known */
};

/* A native adapter's; the address of a GPU-PV adapter is one of the machine outside. */
static int watcher_numa(const struct adapter *adapter)
{
	_cleanup_free_ char *path = NULL, *text = NULL;

	if (adapter->has_luid || !adapter->pci_address || strchr(adapter->pci_address, '/') ||
	    str_format(&path, "/sys/bus/pci/devices/%s/numa_node", adapter->pci_address) < 0 ||
	    fd_read_file_at(AT_FDCWD, path, 64, &text, NULL) < 0)
		return -1;
	return atoi(text);
}

/*
 * The name by which CDI, the environment and `ctr-gpu list` know it, and which is still its own when others have come
 * or gone. An adapter of NVIDIA's behind /dev/dxg has one that its driver alone tells.
 */
static int watcher_name(const struct adapter *adapter, char **ret)
{
	char luid[LUID_TEXT_SIZE];

	*ret = NULL;
	if (adapter->is_part)
		return adapter->alias ? str_replace(ret, adapter->alias) : 0;
	if (adapter->partitions > 0)
		return str_format(ret, "%d", adapter->vendor_index);
	if (adapter->uuid)
		return str_replace(ret, adapter->uuid);
	if (adapter->has_luid && adapter->vendor_id == PCI_VENDOR_NVIDIA)
		return 0;
	luid_format(adapter->luid, luid);
	if (adapter->has_luid)
		return str_replace(ret, luid);
	return adapter->pci_address ? str_replace(ret, adapter->pci_address) : 0;
}

/* "nvidia.com/mig-1g.18gb.me": Kubernetes allows no plus in names. NULL: only the driver tells, and was not asked. */
static int watcher_profile(const struct adapter *adapter, char **ret)
{
	int r = adapter->profile ? str_format(ret, "%s/mig-%s", adapter_domain(adapter), adapter->profile) : 0;

	for (char *c = r == 0 ? *ret : NULL; c && (c = strchr(c, '+'));)
		*c = '.';
	return r;
}

/* The name is a part's in its kind, and its profile's in Kubernetes. */
static int watcher_resource(const struct adapter *adapter, enum watcher_mig mig, char **ret_kind, char **ret_resource)
{
	int r = str_format(ret_kind, "%s/%s", adapter_domain(adapter), adapter->is_npu ? "npu" : "gpu");

	if (r < 0)
		return r;
	return adapter->is_part && mig == WATCHER_MIG_PROFILES ? watcher_profile(adapter, ret_resource)
							       : str_replace(ret_resource, *ret_kind);
}

/* The GPU that it is, or is a part of. */
static const char *watcher_gpu(const struct ctr_gpu_host *host, const struct adapter *adapter)
{
	const struct inventory *inventory = &host->inventory;

	for (size_t i = 0; i < inventory->count && adapter->is_part; i++) {
		const struct adapter *whole = &inventory->adapters[i];

		if (whole->backend == adapter->backend && !whole->is_part && whole->minor == adapter->minor)
			return whole->uuid;
	}
	return adapter->uuid;
}

static bool watcher_is_usable(const struct watcher_look *look, const struct adapter *adapter)
{
	return adapter->unusable == 0 && !troubles_find(&look->watch->troubles, watcher_gpu(look->host, adapter),
							adapter->is_part ? adapter->gpu_instance : -1,
							adapter->is_part ? adapter->compute_instance : -1);
}

static json_t *watcher_describe(const struct watcher_look *look, const struct adapter *adapter)
{
	const enum watcher_mig mig = look->mig;
	_cleanup_free_ char *kind = NULL, *resource = NULL, *id = NULL;
	char luid[LUID_TEXT_SIZE];

	luid_format(adapter->luid, luid);
	if (watcher_resource(adapter, mig, &kind, &resource) < 0 || (resource && watcher_name(adapter, &id) < 0))
		return NULL;
	/* A part's place on its GPU is told without its driver, its name is not. */
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:i, s:b}", "resource", print_string(resource), "kind", kind, "id",
			 print_string(id), "locator",
			 print_string(adapter->has_luid  ? luid
				      : adapter->is_part ? adapter->uuid
							 : NULL),
			 "store", print_string(adapter->driver_store), "numa", watcher_numa(adapter), "usable",
			 watcher_is_usable(look, adapter));
}

/* Of a divided GPU either the parts or the whole. */
static bool watcher_offers(const struct inventory *inventory, const struct adapter *adapter, enum watcher_mig mig)
{
	const bool parts = mig != WATCHER_MIG_WHOLE;

	if (!adapter_domain(adapter))
		return false;
	return adapter->is_part ? parts : !(parts && inventory_divides(inventory, adapter));
}

/* ---- slots ---- */

/* What has slots is offered as these alone: a container with the whole would be on all of them. */
static bool watcher_has_slots(const struct ctr_gpu_host *host, const struct adapter *adapter)
{
	return host->settings->vcuda_mode != VCUDA_OFF && host->settings->vcuda_slots > 0 &&
	       adapter->vendor_id == PCI_VENDOR_NVIDIA && !adapter->is_part && !adapter->is_npu &&
	       !inventory_divides(&host->inventory, adapter);
}

/* Its GPU is in the place of a driver store, so that slots of one GPU are nearest to each other. */
static json_t *watcher_describe_slot(const struct watcher_look *look, const struct adapter *adapter, unsigned slot)
{
	_cleanup_free_ char *id = NULL, *locator = NULL, *gpu = NULL;
	char luid[LUID_TEXT_SIZE];

	luid_format(adapter->luid, luid);
	if (str_format(&gpu, "%s",
		       adapter->has_luid      ? luid
		       : adapter->pci_address ? adapter->pci_address
					      : "") < 0 ||
	    str_format(&locator, "%s:%u", gpu, slot) < 0 ||
	    (adapter->uuid && str_format(&id, "%s:%u", adapter->uuid, slot) < 0))
		return NULL;
	return json_pack("{s:s, s:o, s:s, s:s, s:i, s:b}", "resource", RESOURCE_SLOTS, "id", print_string(id),
			 "locator", locator, "store", gpu, "numa", watcher_numa(adapter), "usable",
			 look->served && watcher_is_usable(look, adapter));
}

static int watcher_add_slots(const struct watcher_look *look, const struct adapter *adapter, json_t *list)
{
	for (unsigned i = 0; i < look->host->settings->vcuda_slots; i++)
		if (json_array_append_new(list, watcher_describe_slot(look, adapter, i)) < 0)
			return -ENOMEM;
	return 0;
}

static int watcher_add(const struct watcher_look *look, const struct adapter *adapter, json_t *list)
{
	if (watcher_has_slots(look->host, adapter))
		return watcher_add_slots(look, adapter, list);
	if (!watcher_offers(&look->host->inventory, adapter, look->mig))
		return 0;
	return json_array_append_new(list, watcher_describe(look, adapter)) < 0 ? -ENOMEM : 0;
}

static json_t *watcher_list(const struct watcher_look *look)
{
	json_t *list = json_array();

	for (size_t i = 0; list && look->host && i < look->host->inventory.count; i++)
		if (watcher_add(look, &look->host->inventory.adapters[i], list) < 0)
			list = (json_decref(list), NULL);
	return list;
}

/* ---- slots in use ---- */

static json_t *watcher_describe_use(const struct vcudad_grant *grant)
{
	const uint64_t bytes = STR_SHARE_BYTES(grant->limits.memory);
	const unsigned percent = STR_SHARE_PERCENT(grant->limits.memory);
	_cleanup_free_ char *device = NULL;

	if (str_format(&device, "%s:%u", grant->gpus.gpus_val[0].uuid, grant->slot - 1) < 0)
		return NULL;
	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:i, s:i}", "device", print_string(device), "container",
			 print_string(grant->id), "limit", bytes ? json_integer((json_int_t)bytes) : json_null(),
			 "ratio", percent ? json_real(percent / 100.0) : json_null(), "used", (json_int_t)grant->used,
			 "share", (int)grant->limits.share, "processes", (int)grant->clients);
}

/* Of each slot in use {"device", "container", "limit", "ratio", "used", "share", "processes"}. */
static json_t *watcher_list_use(const struct vcudad_grants *list)
{
	json_t *slots = json_array();

	for (u_int i = 0; slots && i < list->grants.grants_len; i++) {
		const struct vcudad_grant *grant = &list->grants.grants_val[i];

		if (grant->slot > 0 && grant->gpus.gpus_len == 1 &&
		    json_array_append_new(slots, watcher_describe_use(grant)) < 0)
			slots = (json_decref(slots), NULL);
	}
	return slots;
}

/* The UUIDs of GPUs that are lost. */
static json_t *watcher_list_lost(const struct vcudad_grants *list)
{
	json_t *lost = json_array();

	for (u_int i = 0; lost && i < list->troubles.troubles_len; i++)
		if (list->troubles.troubles_val[i].lost &&
		    json_array_append_new(lost, print_string(list->troubles.troubles_val[i].uuid)) < 0)
			lost = (json_decref(lost), NULL);
	return lost;
}

/*
 * What vCUDA's manager says. A manager that does not answer in time gives slots all the same, as the hook waits longer;
 * but a socket at which no process listens is one that was left behind. What is not known stays null.
 */
static void watcher_ask_manager(struct watcher_look *look)
{
	struct vcudad_grants list = {0};
	_cleanup_close_ int fd = -1;
	char nothing = '\0';
	int r = control_open(&fd);

	look->served = r != -ENOENT && r != -ECONNREFUSED;
	if (r == 0)
		r = control_ask_within(fd, VCUDAD_LIST, &nothing, WATCHER_MANAGER_MS, &list);
	if (r == 0) {
		look->slots = watcher_list_use(&list);
		look->lost = watcher_list_lost(&list);
	}
	control_free_reply(VCUDAD_LIST, &list);
}

/* ---- a look ---- */

static int watcher_send(int fd, json_t *message)
{
	_cleanup_free_ char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	size_t size = text ? strlen(text) : 0;

	json_decref(message);
	if (!text)
		return -ENOMEM;
	if (size > WATCHER_MESSAGE_MAX)
		return -E2BIG;
	return send(fd, text, size, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* What the administrator is to know: why a look fails, why GPUs cannot be used, or are not watched. */
static json_t *watcher_why(int failure, struct ctr_gpu_context *context, const struct xid_watch *watch)
{
	_cleanup_free_ char *text = NULL;

	if (failure != 0)
		return print_string(context ? ctr_gpu_context_message(context) : NULL);
	if (watch->troubles.count > 0 && troubles_print(&watch->troubles, &text) < 0)
		return NULL;
	return print_string(text ? text : watch->why);
}

/* Return: the child's exit status. */
static int watcher_look(const struct watcher_job *job, bool names, bool specs)
{
	struct watcher_look look = {.mig = job->mig, .watch = &job->watch};
	struct ctr_gpu_context *context = NULL;
	int r = ctr_gpu_context_new(&context);

	if (r == 0)
		r = ctr_gpu_context_load_config(context, NULL);
	if (r == 0)
		r = ctr_gpu_host_new(context, &look.host);
	if (r == 0 && names)
		r = ctr_gpu_host_identify(context, look.host);
	if (look.host && look.host->settings->vcuda_slots > 0)
		watcher_ask_manager(&look);
	/*
	 * A spec that is the first, or was the last, changes how containers learn their devices. So may one that was
	 * written before the first look.
	 */
	r = watcher_send(job->fd, json_pack("{s:o, s:o*, s:o*, s:o*, s:o}", "devices", watcher_list(&look), "slots",
					    look.slots, "lost", look.lost, "strategies",
					    specs == job->specs ? NULL : json_integer(strategy_find()), "why",
					    watcher_why(r, context, &job->watch)));
	return r < 0;
}

/* ---- in the process that has the children ---- */

static void watcher_fail(const struct watcher_job *job, const char *why)
{
	if (watcher_send(job->fd, json_pack("{s:b, s:s}", "failed", 1, "why", why)) == -EPIPE)
		_exit(EXIT_SUCCESS);
}

/* Return: whether it has ended in time. */
static bool watcher_wait_for(pid_t child, int milliseconds, int *ret_status)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd wait = {.fd = pidfd, .events = POLLIN};
	int64_t until = grpc_now() + milliseconds, left = milliseconds;

	/* A time that is over would be one without an end to poll(2). */
	while (pidfd >= 0 && left > 0 && poll(&wait, 1, (int)left) < 0)
		left = until - grpc_now();
	return waitpid(child, ret_status, pidfd < 0 ? 0 : WNOHANG) == child;
}

static void watcher_do_look(struct watcher_job *job)
{
	const bool names = job->names && grpc_now() >= job->names_from, specs = strategy_has_specs();
	int ended = 0;
	pid_t child;

	/* A process that waits for a device in the kernel cannot be killed; a second one would wait, too. */
	if (job->late && waitpid(job->late, NULL, WNOHANG) == 0) {
		watcher_fail(job, "the driver does not answer");
		return;
	}
	job->late = 0;
	child = fork();
	if (child == 0)
		_exit(watcher_look(job, names, specs));
	if (names) {
		job->names = false;
		job->names_from = grpc_now() + WATCHER_NAMES_AGAIN_MS;
	}
	if (child < 0) {
		watcher_fail(job, "no process can be made");
	} else if (!watcher_wait_for(child, names ? WATCHER_NAMES_MS : WATCHER_LOOK_MS, &ended)) {
		(void)kill(child, SIGKILL);
		if (!watcher_wait_for(child, 200, &ended))
			job->late = child;
		watcher_fail(job, "the host's GPUs cannot be listed in time");
	} else if (ended != 0) {
		watcher_fail(job, "the look at the host ended early");
	} else {
		job->specs = specs;
	}
}

static void watcher_read_word(struct watcher_job *job)
{
	char word[16];
	ssize_t size = recv(job->fd, word, sizeof(word), MSG_DONTWAIT);

	if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
		_exit(EXIT_SUCCESS);
	if (size > 0)
		job->names = true;
}

/*
 * Return: whether something is to be looked at before the pause is over: a GPU to which something has happened, or
 * names that are wanted and may be asked for. The plugin wants them after each look as long as one is missing.
 */
static bool watcher_serve(struct watcher_job *job, bool word)
{
	if (word)
		watcher_read_word(job);
	return xid_watch_serve(&job->watch) || (word && grpc_now() >= job->names_from);
}

/* Until the next look. */
static void watcher_pause(struct watcher_job *job)
{
	const int64_t until = grpc_now() + WATCHER_PAUSE_MS;
	int64_t left;

	while ((left = until - grpc_now()) > 0) {
		struct pollfd wait[] = {
			{.fd = job->fd, .events = POLLIN},
			{.fd = job->watch.now.socket, .events = POLLIN},
			{.fd = job->watch.next.socket, .events = POLLIN},
		};

		if (poll(wait, ARRAY_SIZE(wait), (int)left) <= 0)
			break;
		if (watcher_serve(job, wait[0].revents != 0)) {
			(void)poll(NULL, 0, WATCHER_LEAST_MS);
			break;
		}
	}
	(void)xid_watch_serve(&job->watch);
}

__attribute__((noreturn)) static void watcher_run(int fd, pid_t parent, enum watcher_mig mig)
{
	struct watcher_job job = {.fd = fd, .mig = mig, .names = true, .specs = -1, .watch = XID_WATCH_NONE};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(EXIT_SUCCESS);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	for (;;) {
		watcher_do_look(&job);
		watcher_pause(&job);
	}
}

/* ---- in the plugin ---- */

int watcher_start(enum watcher_mig mig, struct watcher *ret)
{
	const int room = WATCHER_BUFFER;
	pid_t parent = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	(void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		watcher_run(pair[1], parent, mig);
	}
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		return -EAGAIN;
	}
	*ret = (struct watcher){.pid = pid, .fd = pair[0]};
	return 0;
}

void watcher_end(struct watcher *watcher)
{
	if (watcher->fd >= 0)
		(void)close(watcher->fd);
	watcher->fd = -1;
}

int watcher_read(const struct watcher *watcher, json_t **ret)
{
	_cleanup_free_ char *text = malloc(WATCHER_MESSAGE_MAX);
	ssize_t size;

	if (!text)
		return 0;
	size = recv(watcher->fd, text, WATCHER_MESSAGE_MAX, MSG_DONTWAIT);
	if (size < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	if (size == 0)
		return -EPIPE;
	return json_parse(text, (size_t)size, ret, NULL) == 0;
}

void watcher_ask_names(const struct watcher *watcher)
{
	(void)send(watcher->fd, "n", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}
