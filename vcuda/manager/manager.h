/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What ctr-gpu-vcudad keeps: tenants, which are containers with GPUs granted to them, and workers, which are the server
 * processes that it has started for processes of these. One thread owns all of it. What a container can reach is its
 * listening socket; nothing is read from that. What a server sends are datagrams of a fixed size. Root alone may ask
 * for anything.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "vcuda/manager/cpu_limit.h"
#include "vcuda/protocol/start.h"

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

struct tenant {
	struct tenant *next;
	char id[MANAGER_ID_MAX + 1];
	pid_t pid; /* of the container's first process */
	uint64_t started;
	int pidfd;
	uid_t uid;
	struct gpu gpus[MANAGER_GPUS_MAX];
	size_t gpu_count;
	ssize_t first; /* the GPU that its programs find first; -1: nothing has connected yet */
	char *library;
	uint64_t memory;            /* 0: what the GPUs have */
	uint64_t host_limit;        /* of the host's memory that is page-locked */
	uint64_t host_memory;       /* of the host's in all */
	int group;                  /* directory of the servers' control group; -1: none */
	uint64_t kills;             /* in it, for want of memory, that are told */
	bool settled;               /* while that is shared out */
	struct cpu_limit processor; /* what its servers may have of the host's, as it was set last */
	unsigned max_clients;
	int listener; /* -1: none any more */
	int quota_fd;
	struct start_quota *quota;
	bool kept;
	bool ending;
	unsigned clients;
	uint64_t connects, denied, crashes;
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
	int events; /* -1: closed */
	unsigned slot;
	unsigned told;   /* datagrams that were read */
	int64_t kill_at; /* 0: it may live */
	bool adopted;    /* of a manager before this one */
	bool stopped;    /* by us */
};

struct manager {
	struct tenant *tenants;
	struct worker *workers;
	size_t tenant_count, worker_count;
	const char *directory; /* of the containers' sockets */
	const char *ledger;    /* path */
	const char *server;    /* path of ctr-gpu-vcuda */
	bool changed;          /* since the ledger was written */
	uint64_t host_memory;  /* of the host, for all containers; 0: as much as each may have */
	int groups;            /* directory of the manager's control group; -1: none */
	char unlimited[128];   /* why there is none */
	bool has_processors;   /* containers' groups limit these, too */
	int hierarchy;         /* where cgroup version 2 is mounted, if so */
	int watch;             /* of inotify(7), and of what containers themselves may have, if so */
};

/** Milliseconds of the monotonic clock. */
int64_t manager_now(void);
