/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What ctr-gpu-vcudad keeps: tenants, which are containers with GPUs granted to them, and workers, which are the server
 * processes that it has started for processes of these. One thread owns all of it. What a container can reach is its
 * listening socket; nothing is read from that. What a server sends are datagrams of a fixed size. Root alone may ask
 * for anything.
 */

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/clock.h"
#include "base/metrics_page.h"
#include "model/vcuda_limits.h"
#include "vcuda/manager/cgroup.h"
#include "vcuda/manager/suspension.h"
#include "vcuda/protocol/start.h"
#include "vcuda/protocol/turns.h"

struct device_names;

enum {
	MANAGER_GPUS_MAX = 16,
	MANAGER_ID_MAX = 128,
	MANAGER_TENANTS_MAX = 256,
	MANAGER_WORKERS_MAX = 256,
	MANAGER_PEERS_MAX = 128,
	MANAGER_CLIENTS_MAX = START_QUOTA_SLOTS,
	MANAGER_KILL_MS = 10 * 1000, /* from the end of a client, or of its container, to SIGKILL */
	MANAGER_BURST = 32,          /* connections of a container at once */
	MANAGER_RATE = 16,           /* and in each second afterwards */
	MANAGER_LINES = 512,         /* of the audit, from all servers of a container at once */
	MANAGER_LINES_RATE = 16,     /* and in each second afterwards */
	MANAGER_THREADS = 4096,      /* of all servers of a container */
	MANAGER_TROUBLES = 64,       /* GPUs that are lost or suspected */
	MANAGER_REMNANTS_MAX = 256,  /* more are not kept for their clients */
	MANAGER_USERS_MAX = 192,     /* containers, and servers, of all users; the rest is root's */
};

/*
 * Each container's servers are a user of their own (process/privilege.h). The kernel counts threads and descriptors
 * that are under way by user: nobody but root of the host and the container itself learns which it is, and to use up
 * what all these users have takes more of everything than there is.
 */

struct gpu {
	char *uuid, *address, *name;
	uint8_t bytes[16]; /* of the UUID */
};

/* A user who starts containers without root, and what all of these may have together, as the settings said last. */
struct owner {
	uid_t uid; /* 0: root, and no limit */
	struct vcuda_limits limits;
	unsigned containers;
};

/* Of a container that moves by itself (balance.h). */
struct tenant_balance {
	uint64_t seen[MANAGER_GPUS_MAX]; /* what tenant_sum_time() was, of each of its GPUs */
	int64_t looked_at;               /* when; 0: not yet */
	int64_t unlike_since;            /* it would be worth to move it, in each look; 0: it would not */
};

struct tenant {
	struct tenant *next;
	char id[MANAGER_ID_MAX + 1];
	struct owner owner;
	pid_t pid; /* of the container's first process */
	uint64_t started;
	int pidfd;
	uid_t uid;
	/* Those that it was granted, and behind them those that what is there may be moved to. */
	struct gpu gpus[MANAGER_GPUS_MAX];
	size_t gpu_count, reach;
	uint64_t places; /* which of these stands for which (start_place()) */
	ssize_t first;   /* the GPU that its programs find first; -1: nothing has connected yet */
	char *library;
	json_t *asked; /* what was asked for, by which the same is known that is asked for again; NULL: not known */
	struct vcuda_limits limits;
	unsigned slot;         /* of its GPU, from 1; 0: none */
	unsigned wanted_share; /* of time, before its owner's is divided */
	uint64_t host_limit;   /* of the host's memory that is page-locked */
	int group;             /* directory of the servers' control group; -1: none */
	uint64_t kills;        /* in it, for want of memory, that are told */
	bool settled;          /* while that is shared out */
	struct suspension suspension;
	int64_t decide_at; /* when the decider is told of it, as it could not be; 0: it is told */
	int64_t drain_at;  /* not moved from a drained GPU before */
	int64_t moved_at;  /* when it was, or could not be; 0: it never was */
	unsigned drains;   /* how often that was tried */
	struct tenant_balance balance;
	struct cpu_limit processor;        /* what its servers may have of the host's, as it was set last */
	int listener;                      /* -1: none any more */
	int quota_fd, orders_fd, turns_fd; /* what servers get */
	struct start_quota *quota;
	struct start_orders *orders;
	bool kept;
	bool ending;
	unsigned clients;
	uint64_t connects, denied, crashes;
	uint64_t refused_memory, refused_functions; /* as servers say */
	uint64_t busy[MANAGER_GPUS_MAX];            /* nanoseconds of GPUs' time, of servers that have ended */
	/* Of those that are counted by number: what each GPU had before the last move, and what is in that already. */
	uint64_t spent[MANAGER_GPUS_MAX], counted[MANAGER_GPUS_MAX];
	uint64_t untold; /* of denied */
	int64_t told;    /* when the last were */
	int64_t filled;  /* when tokens were counted last */
	int64_t written; /* when lines were counted last */
	unsigned lines, omitted;
	unsigned tokens;
};

struct worker {
	struct worker *next;
	struct tenant *tenant; /* borrowed */
	pid_t pid;
	uint64_t started;
	int pidfd, client; /* a pidfd, too; -1: not known */
	pid_t client_pid;
	uint64_t client_started;
	int events;      /* -1: closed */
	int events_kept; /* the number by which the keeper has it, too; 0: it has not */
	int shared;      /* what it shares with its client; -1: not known */
	unsigned slot;
	unsigned told;   /* datagrams that were read lately, */
	int64_t told_at; /* until then */
	unsigned asked;  /* for descriptors of others, lately */
	int64_t asked_at;
	pid_t lender;      /* which gets it one; 0: none does */
	int lender_pidfd;  /* -1: it could not be opened */
	uint64_t rests;    /* as it told last */
	int64_t rested_at; /* since when it has told the same */
	int64_t kill_at;   /* 0: it may live */
	bool adopted;      /* of a manager before this one */
	bool stopped;      /* by us */
};

/* The memory that an ended server leaves to its client, or to other processes that still map it. */
struct remnant {
	struct remnant *next;
	struct tenant *tenant; /* borrowed */
	int fd;                /* read-only, by which the manager sees whether another process has it */
	int client;            /* a pidfd; -1: it has ended */
	pid_t client_pid;
	uint64_t client_started;
	uint64_t bytes; /* in it, when it was looked at last */
	uint64_t freed; /* as far as this, nothing is in it */
	bool frees;     /* the rest, too */
	bool waits;     /* it could not be freed further */
	int fd_kept;    /* the number by which the keeper has it, too; 0: it has not */
	int64_t look_at;
};

/* A child that has what the manager has of remnants. */
struct keeper {
	pid_t pid; /* 0: there is none */
	uint64_t started;
	int pidfd;     /* of the one that there is */
	bool adopted;  /* of a manager before this one */
	int64_t began; /* when it was started */
};

/* ctr-gpu-vcuda-turns. */
struct decider {
	const char *path;
	pid_t pid;        /* 0: it does not run */
	int fd;           /* that it reads from; closed at its end */
	int64_t start_at; /* not before */
	bool measures;    /* it has servers measure how long GPUs have work */
};

/* What is known against a GPU. */
struct gpu_trouble {
	struct gpu gpu;
	bool lost; /* or only suspected */
	char why[START_NAME];
	time_t since;
	int64_t ends_at; /* by itself; 0: it does not */
};

/* What a GPU has, as NVML says. */
struct gpu_memory {
	uint8_t uuid[16];
	uint64_t bytes;
};

/* The server that watches GPUs. */
struct watcher {
	pid_t pid; /* 0: it does not run */
	int fd;    /* -1: it is being ended */
	bool watches;
	bool asked;       /* to look at the GPUs */
	int64_t start_at; /* not before; of one that is being ended: when to look for its end */
	uint8_t gpus[START_GPUS][16];
	size_t gpu_count;
};

struct manager {
	struct tenant *tenants;
	struct worker *workers;
	struct remnant *remnants;             /* the newest first */
	struct keeper keeper, keeper_written; /* that of the state file */
	bool remnants_changed;                /* since the keeper began */
	bool channels_changed;                /* the same of servers that tell us something */
	size_t tenant_count, worker_count;
	const char *directory; /* of the containers' sockets */
	const char *users;  /* of those of users' containers, each user's in a directory that the user may go through */
	const char *ledger; /* path */
	const char *server; /* path of ctr-gpu-vcuda */
	const char *checkpoint; /* and of ctr-gpu-vcuda-checkpoint */
	struct decider decider;
	struct watcher watcher;
	struct gpu_trouble troubles[MANAGER_TROUBLES];
	size_t trouble_count;
	struct gpu_memory memories[MANAGER_TROUBLES]; /* of GPUs of which that is known */
	size_t memory_count;
	int64_t measured_until; /* somebody looks; INT64_MAX: always */
	struct metrics_page metrics;
	char *drained[MANAGER_GPUS_MAX]; /* UUIDs */
	size_t drained_count;
	int64_t balance_at;   /* when the GPUs' loads are compared next */
	bool asleep;          /* all containers are to be suspended, since the host is about to sleep */
	bool changed;         /* since the ledger was written */
	uint64_t host_memory; /* of the host, for all containers; 0: as much as each may have */
	int groups;           /* directory of the manager's control group; -1: none */
	char unlimited[128];  /* why there is none */
	bool has_processors;  /* containers' groups limit these, too */
	int hierarchy;        /* where cgroup version 2 is mounted, if so */
	int watch;            /* of inotify(7), and of what containers themselves may have, if so */
	unsigned looks;       /* at containers' groups since that was made */
	bool unwatched;       /* the kernel gave too few watches: what containers may have is looked at now and then */
};

/** Return: the GPU on which is, in an arrangement, what a container's programs see as the one of a number. */
static inline const struct gpu *manager_find_gpu(const struct tenant *tenant, uint64_t places, size_t number)
{
	const unsigned place = start_place(places, (unsigned)number);

	return &tenant->gpus[place < tenant->reach ? place : number];
}

/** Return: milliseconds of the monotonic clock. */
static inline int64_t manager_now(void)
{
	return clock_now_ms();
}

/*
 * Containers with granted GPUs. Each has a directory with a socket that every user may connect to. The directory above
 * is root's alone, so only a container that has it mounted reaches the socket, which is the right to use the GPUs.
 */

/** Return: the container of that name which has not ended; NULL. */
struct tenant *tenant_find(const struct manager *manager, const char *id);

/**
 * tenant_match() - as an administrator names it
 * @ret_several: whether none is returned since the text is the beginning of several names
 *
 * Return: the container of that name, or the only one whose name begins so and which has not ended; NULL.
 */
struct tenant *tenant_match(const struct manager *manager, const char *text, bool *ret_several);

/** Whether a name may be that of a directory of ours. */
bool tenant_is_name(const char *id);

/** Return: one with nothing in it but the name, not among the manager's yet; NULL without memory. */
struct tenant *tenant_new(const char *id);

/**
 * tenant_add_gpu() - append a GPU
 * @address: "" is not known; so is @name
 * @granted: or what it was granted may be moved there; all that are granted come first
 *
 * Return: 0; -EINVAL if it is no UUID; -E2BIG; -ENOMEM.
 */
int tenant_add_gpu(struct tenant *tenant, const char *uuid, const char *address, const char *name, bool granted);

/** Takes one of several that it was granted away again, before any of them is anywhere else. */
void tenant_leave_out(struct tenant *tenant, size_t number);

/**
 * tenant_open() - give it a user, a quota and its socket, and take it among the manager's
 * @quota:  a quota that its servers have already, taken in any case; -1: a new one
 * @orders: the same of their orders
 * @turns:  and of their turns
 *
 * Return: 0, and it is the manager's; -ENOSPC if there are too many; negative errno.
 */
int tenant_open(struct manager *manager, struct tenant *tenant, int quota, int orders, int turns);

/** Return: 0; negative errno. @ret: a user that nobody is */
int tenant_draw_uid(const struct manager *manager, uid_t *ret);

/** Whether no container has servers of that user, and no process is left that is that user. */
bool tenant_may_use_uid(const struct manager *manager, uid_t uid);

/** Releases one that is not the manager's. */
void tenant_free(struct tenant *tenant);
void tenant_freep(struct tenant **tenant);
#define _cleanup_tenant_ __attribute__((cleanup(tenant_freep)))

/**
 * tenant_path() - the directory of its socket
 * @ret: owned by the caller
 *
 * Return: 0 or -ENOMEM.
 */
int tenant_path(const struct manager *manager, const struct tenant *tenant, char **ret);

/** Sets how much memory its programs may have together. */
void tenant_set_memory(struct tenant *tenant, uint64_t memory);

/** Return: how much they have. */
uint64_t tenant_sum_memory(const struct tenant *tenant);

/** Return: for how many nanoseconds one of its GPUs has had work of its programs, whatever number it has for them. */
uint64_t tenant_sum_time(const struct tenant *tenant, size_t place);

/** What its programs do from now on is done on other GPUs. */
void tenant_settle_time(struct tenant *tenant);

/** Whether it may connect now, by the rate. @ret_wait_ms: until it may */
bool tenant_may_connect(struct tenant *tenant, int64_t now, int *ret_wait_ms);

/** Whether it may have another server: of all places, one is kept for each container that has none. */
bool tenant_has_place(const struct manager *manager, const struct tenant *tenant);

/** Accepts a connection, and has it served or refuses it. */
void tenant_accept(struct manager *manager, struct tenant *tenant);

/** Writes down refused connections of which nobody was told yet, once a second at most. */
void tenant_tell_denied(const struct manager *manager, struct tenant *tenant, int64_t now);

/** Takes away its socket and ends its servers. @why: for the audit */
void tenant_end(struct manager *manager, struct tenant *tenant, const char *why);

/** Whether one has ended, and nothing of it is left. */
bool tenant_is_over(const struct manager *manager, const struct tenant *tenant);

/** Takes such a one out of the manager's, and releases it. */
void tenant_remove(struct manager *manager, struct tenant *tenant);

/** Removes what is left of containers of which the manager knows nothing. */
void tenant_sweep(const struct manager *manager);

/*
 * Users who start containers without root. What one may have is counted over all of the user's containers, those that
 * have ended included as long as servers of theirs live: so nothing is won by starting many, or by ending and starting
 * them.
 */

/**
 * owner_admit() - of a container that begins: whether its user may have one more, and how much of the rest is its
 *
 * Takes from what it wants of GPUs' memory what its user's other containers have. Has the user's containers go by the
 * limits that came with this one. Return: 0; -EDQUOT: no containers, or no memory, are left; -EAGAIN: the same, and
 * one that has ended still has some, or it is not known yet what part of its GPU another has; -ENOSPC: users have as
 * many as all of them may.
 */
int owner_admit(struct manager *manager, struct tenant *tenant, const char **ret_why);

/** Whether its user's containers may have another server. */
bool owner_has_place(const struct manager *manager, const struct tenant *tenant);

/** Return: a container's part of its user's share of GPUs' time. */
uint32_t owner_share(const struct manager *manager, const struct tenant *tenant);

/*
 * Memory that a server leaves behind. What it shared with its client is one file in memory, which this manager has
 * open, too. An honest server frees it when its client ends. One that was killed does not, and then its client may live
 * on and need what is in it, or pass it on to others. So it counts as the container's page-locked memory as long as it
 * is there, and is freed, whichever process keeps it, when the client has ended, or when no process has it any more.
 */

/** Return: the memory that a server is to share with its client; negative errno. */
int remnant_make(void);

/** A server has ended: keeps an eye on what it has left. Takes its memory and its client from @worker. */
void remnant_leave(struct manager *manager, struct worker *worker);

/** Return: how much memory a container has so. */
uint64_t remnant_measure(const struct manager *manager, const struct tenant *tenant);

/** Whether it has any. */
bool remnant_is_of(const struct manager *manager, const struct tenant *tenant);

/** Frees what is to be freed, a part each time. Return: whether containers may have other shares of such memory now. */
bool remnant_look(struct manager *manager, int64_t now);

/** Return: when to do that at the latest; INT64_MAX: when something happens. */
int64_t remnant_next(const struct manager *manager, int64_t now);

/**
 * remnant_reattach() - what a manager before this one had
 * @fd: of the keeper's; taken in any case
 * @known: the client's number and start time, and the number by which the keeper has it
 */
void remnant_reattach(struct manager *manager, struct tenant *tenant, int fd, const struct remnant *known);

/** In the keeper: frees what is of clients that have ended. */
void remnant_drop_ended(struct manager *manager);

/*
 * Of remnants, and of the sockets by which servers tell it something, the manager has descriptors alone, which end with
 * it. So while there are some, a child of its has these, too, and waits: the next manager takes them from it. Where no
 * manager comes, it frees what is to be freed, and ends with the last of these clients and servers. (The servers
 * themselves do not have their manager's end: what they set there would be its own.)
 *
 * What servers leave that end while no manager runs is not known to the next one. Their clients have it, or whom these
 * gave it, and it is gone with the last of them; until then the limits of control groups hold for it, and no others.
 */

/**
 * Has it have what there is now, of remnants at once. For servers that have begun, and where it has ended though it is
 * needed, it is replaced once a second at most.
 */
void keeper_look(struct manager *manager);

/** The same for a manager that ends: at once. */
void keeper_finish(struct manager *manager);

/** Return: what becomes readable when there is something to do; -1. @ret_next: when there is; INT64_MAX: not known */
int keeper_wait_for(const struct manager *manager, int64_t now, int64_t *ret_next);

/* The server processes: one for each process of a container that uses CUDA. */

/**
 * server_process_start() - a server for a connection
 * @client: the connection, which the server gets; stays the caller's, too
 *
 * Return: 0; negative errno.
 */
int server_process_start(struct manager *manager, struct tenant *tenant, int client);

/**
 * server_process_reattach() - one that an earlier manager has started
 * @known: of it: numbers and start times of server and client, and the slot
 *
 * Return: 0; -ESRCH if it is gone; negative errno.
 */
int server_process_reattach(struct manager *manager, struct tenant *tenant, const struct worker *known);

/**
 * server_process_sweep() - kill servers of which the manager knows nothing, and take back what they and others had
 *
 * For a manager that was started again, behind state_file_read(). One before it may have been killed before it wrote
 * down what it had just started, and servers may have ended since then. They are known by their users.
 */
void server_process_sweep(const struct manager *manager);

/** Reads what it tells, and has it given what it wants of another server of its container. */
void server_process_receive_reply(struct manager *manager, struct worker *worker);

/** Its client or its container has ended, or it is no longer wanted: asks it to end, and notes when to kill it. */
void server_process_stop(struct worker *worker);

/** Forgets one that has ended, gives back what it had of its container's quota, and says so if it crashed. */
void server_process_remove(struct manager *manager, struct worker *worker);

/*
 * What one server has for another of its container, a descriptor, is taken from the one and sent to the other by a
 * process of its own, the lender. It may be of any file, for a client can have sent the server that, and then the
 * lender may not end for as long as that file's file system likes (vcuda/protocol/pidref.h). Each server has one at a
 * time. While it is at work, the server is neither heard nor forgotten, so a container has no more of them than it may
 * have servers.
 */

/** Whether one is at work for a server. */
bool server_process_is_lent_to(struct worker *worker);

enum { SERVER_PROGRAM_FDS = START_SHARED + 1 - START_CLIENT, SERVER_PROGRAM_NOT_RUN = 127 };

/* A program of ours that is started with no right but its descriptors. */
struct server_program {
	int program; /* open, since its user need not reach its path */
	const char *name;
	int fds[SERVER_PROGRAM_FDS]; /* from START_CLIENT on; -1: leads nowhere */
	int fd_count;
	int group; /* directory of the control group that it enters; -1: none */
	uid_t uid;
};

/**
 * server_process_start_beside() - begins a program of ours that is no container's
 * @name: which it is called by
 * @uid: its own
 * @number: the descriptor, from START_CLIENT on, by which it has the other end of @ret_fd, a socket of datagrams
 *
 * Return: 0 or -errno.
 */
int server_process_start_beside(const char *path, const char *name, uid_t uid, int number, pid_t *ret_pid, int *ret_fd);

/** Return: START_NO_PATHS, where the administrator wants that. */
uint32_t server_process_path_flags(void);

/*
 * ctr-gpu-vcuda-turns, which decides whose turn it is on a GPU (vcuda/protocol/turns.h). It is there once there are two
 * containers, or a display measures one. Without it, or when it has ended, there are no turns, and servers go on as the
 * driver has them.
 */

/** Tells it of a container, or that its GPUs are others now; that one has ended; that its weight is another. */
void decider_add(struct manager *manager, struct tenant *tenant);
void decider_drop(struct manager *manager, const struct tenant *tenant);
void decider_weigh(struct manager *manager, const struct tenant *tenant);

/** Divides users' shares among their containers, which may be others than before. */
void decider_divide(struct manager *manager);

/** Starts it if it is needed and does not run. @ended: its end of the socket is closed */
void decider_look(struct manager *manager, bool ended);

/** How long GPUs have work is measured from now on, for some seconds. */
void decider_measure(struct manager *manager);

/** Return: when to do that; INT64_MAX: when something happens. */
int64_t decider_next(const struct manager *manager);

/*
 * GPUs that are lost: they have fallen off the bus, or need a reset. A server without a client, which has the driver's
 * NVML, watches the GPUs of all containers and tells. Where there is none (NVML has no events under WSL), errors of
 * containers' servers are what is known: any container could make them up, so a GPU is only suspected then, for some
 * minutes, and new containers get others first.
 *
 * What is known ends with the manager. The next one has the GPUs looked at when it begins to watch them.
 */

/** The state of a GPU; NULL: nothing is known against it. */
const struct gpu_trouble *gpu_trouble_find(const struct manager *manager, const uint8_t uuid[static 16]);

/** Whether one is lost. @gpu: of a container */
bool gpu_trouble_is_lost(const struct manager *manager, const struct gpu *gpu);

/** Return: how many of a container's are. */
size_t gpu_trouble_count_lost(const struct manager *manager, const struct tenant *tenant);

/** A server says something of one of its container's GPUs, which need not be true. */
void gpu_trouble_receive(struct manager *manager, const struct tenant *tenant, const struct start_event *event);

/**
 * gpu_trouble_clear() - take a GPU as healthy again
 * @text: its UUID, or the beginning of it
 *
 * Return: 0; -ENOENT: none that is lost is named so; -ENOTUNIQ: several.
 */
int gpu_trouble_clear(struct manager *manager, const char *text);

/** For gpu_watch.c. Return: a container's GPU of that UUID; NULL. */
const struct gpu *gpu_trouble_find_gpu(const struct manager *manager, const uint8_t uuid[static 16]);

/** Return: what is known of it, new, with nothing said, or as it is; NULL: no container has it, or no place is left. */
struct gpu_trouble *gpu_trouble_note(struct manager *manager, const uint8_t uuid[static 16]);

/** Says what is known from now on. */
void gpu_trouble_state(struct gpu_trouble *trouble, bool lost, const char *why);

/**
 * gpu_trouble_suspect() - the same of one that is suspected, unless something was said
 * @ends_at: it is so until then, if nobody says it once more; 0: until it is cleared
 */
void gpu_trouble_suspect(struct manager *manager, const uint8_t uuid[static 16], const char *why, int64_t ends_at);

/** Forgets what is over. */
void gpu_trouble_look(struct manager *manager, int64_t now);

/** Return: when to do that; INT64_MAX: when something happens. */
int64_t gpu_trouble_next(const struct manager *manager);

/** Reads what the one that watches tells, starts it where it is needed, and ends it where not. @ready: it has told */
void gpu_watch_look(struct manager *manager, bool ready);

/** Return: when to do that; INT64_MAX: when something happens. */
int64_t gpu_watch_next(const struct manager *manager);

/** What the one that watches says. */
void gpu_watch_serve(struct manager *manager, const struct start_event *event);

/* Which of its GPUs a container's programs find first: the least loaded one when the first of them connects. */

/**
 * gpu_assign_choose() - of a container's GPUs, the one on which the least memory is granted, then with the fewest
 * servers; one that is suspected only where there is no other
 *
 * Return: its number; the first of equals; gpu_count if all are lost.
 */
size_t gpu_assign_choose(const struct manager *manager, const struct tenant *tenant);

/** Whether one of its GPUs is there, in an arrangement. */
bool gpu_assign_uses(const struct tenant *tenant, uint64_t places, const struct gpu *gpu);

/**
 * gpu_assign_move() - where a container's GPUs are to be
 * @from: UUID of the GPU where what is to be moved is; "": the one that its programs find first
 * @to:   of another one. What the container has there comes to the first
 * @ret_why: why they cannot be
 *
 * Return: 0; -EALREADY; -EXDEV if it may not be there, or is of another model.
 */
int gpu_assign_move(const struct tenant *tenant, const char *from, const char *to, uint64_t *ret, const char **ret_why);

/**
 * gpu_assign_check_exclusive() - whether the settings keep a container from GPUs where it is to be moved
 * @ret_why: how
 *
 * One that became exclusive since the container began (ctr-gpu assign) is one other container's alone.
 *
 * Return: 0; -EPERM.
 */
int gpu_assign_check_exclusive(const struct tenant *tenant, uint64_t places, const char **ret_why);

/** Reads the names of the GPUs that are exclusive. Return: 0; otherwise the settings cannot be used. */
int gpu_assign_read_exclusive(struct device_names *ret);

/** Whether a GPU of a container, by its number, was not granted to it, and is one of these, or may be. */
bool gpu_assign_is_exclusive(const struct device_names *names, const struct tenant *tenant, size_t place);

/** What a server is told of its client's GPUs: all of the container's that are not lost, the chosen one first. */
void gpu_assign_list(const struct manager *manager, const struct tenant *tenant, struct start *ret);

/*
 * GPUs that are drained: no container begins there, and what is there is moved to others, one container at a time, as
 * soon as these have room for it.
 */

/** Return: 0; -EALREADY; -EINVAL if it is no UUID; -ENOSPC; -ENOMEM. @ret_why: why it is not */
int drain_begin(struct manager *manager, const char *uuid, const char **ret_why);

/** The same. */
int drain_end(struct manager *manager, const char *uuid, const char **ret_why);

/**
 * drain_avoid() - of a container that begins: have no GPU of it be on a drained one
 *
 * What may be elsewhere is. Other GPUs are left out, if one at least stays. Return: 0; -EHOSTDOWN if none does.
 */
int drain_avoid(const struct manager *manager, struct tenant *tenant);

/** Whether what a container has under a number may go to another of its GPUs, as far as these are good for it. */
bool drain_may_take(const struct manager *manager, const struct device_names *exclusive, const struct tenant *tenant,
		    size_t number, size_t place);

/** Moves what is to be moved. */
void drain_look(struct manager *manager, int64_t now);

/** Return: when to look next; INT64_MAX: when something happens. */
int64_t drain_next(const struct manager *manager, int64_t now);

/* Containers that move by themselves where the load of GPUs differs for long (balance.h), one at a time. */

/** Measures, and moves one if it is worth it. */
void balance_look(struct manager *manager, int64_t now);

/** Return: when to do that; INT64_MAX: when something happens. */
int64_t balance_next(const struct manager *manager);

/** Return: for how many seconds a container stays where it is, since it was moved, or could not be. */
unsigned balance_stays(const struct tenant *tenant, int64_t now);

/*
 * Root's connections to the control socket. Each has one message at a time, of a bounded size, and a time by which it
 * must be there.
 */

struct control_client {
	struct control_client *next;
	int fd;
	char *in, *out;
	size_t in_size, out_size, out_at;
	int64_t deadline;
	char granted[MANAGER_ID_MAX + 1]; /* ends with the connection, unless it is kept; "": nothing */
	uid_t granted_uid;
};

/** Accepts a connection, of root. */
void control_client_accept(struct control_client **peers, int listener);

/** What to wait for. */
short control_client_events(const struct control_client *peer);

/** Reads, answers or writes, as far as that goes. Return: whether the connection goes on. */
bool control_client_serve(struct manager *manager, struct control_client *peer);

/** Ends a connection, and what hangs on it. */
void control_client_close(struct manager *manager, struct control_client **peers, struct control_client *peer);

/*
 * What a manager that is started again must know: containers and servers, as JSON in a file of root's. Servers go on
 * without a manager.
 */

/** Writes it, whole or not at all. Return: 0 or negative errno. */
int state_file_write(const struct manager *manager);

/**
 * state_file_read() - take over what an earlier manager has written, as far as it still lives
 *
 * server_process_sweep() ends the servers that are not taken over.
 *
 * Return: 0; negative errno.
 */
int state_file_read(struct manager *manager);

/*
 * What an administrator can look up later: a line of JSON on standard error for each event. It tells who got what and
 * what was refused, and no arguments and no data of programs.
 */

/** Writes a line about a container; takes @more, an object or NULL. @tenant may be NULL. */
void audit_write(const char *event, const struct tenant *tenant, json_t *more);

/**
 * audit_server() - write down what a server tells
 * @now: milliseconds
 *
 * Nothing in it is trusted. Of lines above MANAGER_LINES in a second, there is only their number, before the next one.
 */
void audit_server(struct tenant *tenant, const struct start_event *event, int64_t now);

/** Writes down how many lines were left out since this was said last, if any. */
void audit_tell_omitted(struct tenant *tenant);

/* A page for Prometheus, where the administrator wants one. GPUs' time is measured all the time then. */

/** Answers those who have asked for it. */
void usage_metrics_publish(struct manager *manager);
