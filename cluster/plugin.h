/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The parts of ctr-gpu-device-plugin that touch the machine: a process that looks at the host, sockets in kubelet's
 * directory, and kubelet itself, which comes and goes.
 */

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/metrics_page.h"
#include "cluster/devices.h"
#include "cluster/grpc.h"

/** Writes a line for the administrator; names in it may be hostile. */
void plugin_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- waits ---- */

/* What poll(2) waits for. */

enum { WAITS_MAX = 2 + 1 + RESOURCES_MAX * (1 + 8) + 2 + METRICS_PAGE_PEERS };

struct waits {
	struct pollfd list[WAITS_MAX];
	size_t count;
	int64_t until; /* INT64_MAX: for ever */
};

void waits_add(struct waits *waits, int fd, short events);
void waits_until(struct waits *waits, int64_t when);
/** Return: what happened to it. */
short waits_find(const struct waits *waits, int fd);

/* ---- xid watch ---- */

struct xid_watch {
	struct driverd_watch now, next; /* the next one ends the other when it has begun */
	char *without, *next_without;   /* which GPUs they leave out */
	int64_t until;                  /* when the next must have begun; without one, when there may be one */
	int64_t look_at;                /* those that are left out */
	ino_t module;                   /* the driver that is loaded; 0: none */
	struct troubles troubles;
	char *why; /* GPUs are not watched; NULL */
};

#define XID_WATCH_NONE ((struct xid_watch){.now = {.socket = -1}, .next = {.socket = -1}})

/** To be called when one of its sockets can be read, and now and then. Return: whether its troubles are others now. */
bool xid_watch_serve(struct xid_watch *watch);

/* ---- watcher ---- */

/*
 * A process of its own looks at the host every other second: drivers are slow at times, and what answers kubelet needs
 * no right to open a device. Each look is a child that is given up when it takes too long.
 */

struct watcher {
	pid_t pid;
	int fd; /* a message for each look, JSON */
};

/* As what a GPU of NVIDIA's that is divided (MIG) is offered. */
enum watcher_mig {
	WATCHER_MIG_PARTS,    /* its parts, devices of nvidia.com/gpu */
	WATCHER_MIG_PROFILES, /* its parts, each size a resource: nvidia.com/mig-1g.18gb */
	WATCHER_MIG_WHOLE,
};

/** Return: 0; negative errno. */
int watcher_start(enum watcher_mig mig, struct watcher *ret);
void watcher_end(struct watcher *watcher);

/** Return: 1 and a look, a new reference; 0: none has come; -EPIPE: the process has ended. */
int watcher_read(const struct watcher *watcher, json_t **ret);

/** Has the next look ask drivers for names, which takes long, at most once a minute. */
void watcher_ask_names(const struct watcher *watcher);

/* ---- endpoint ---- */

/* The socket of a resource, and who is connected to it. */

enum { ENDPOINT_PEERS_MAX = 8 };

struct endpoint {
	const struct resource *resource; /* borrowed */
	unsigned strategies;
	unsigned published; /* which of its changes the peers know */
	char *path;
	const char *name; /* of the file, in the path */
	int listener;     /* -1: it is not open */
	dev_t device;     /* of the file */
	ino_t inode;
	struct grpc_service service;
	struct connection *peers[ENDPOINT_PEERS_MAX];
	size_t peer_count;
	bool registered;
	int64_t unwatched; /* since when no peer watches */
	char *complaint;   /* the last of it that was logged */
};

/** Return: 0; -ENAMETOOLONG; -ENOMEM. */
int endpoint_new(const char *directory, const struct resource *resource, unsigned strategies, struct endpoint *ret);
void endpoint_clear(struct endpoint *endpoint);

void endpoint_gather(const struct endpoint *endpoint, struct waits *waits);
/** Serves the peers, and sends them changes. */
void endpoint_serve(struct endpoint *endpoint, const struct waits *waits);

/* ---- kubelet ---- */

/* Where kubelet listens, and what we ask of it. */

struct kubelet {
	char *directory, *path;
	int inotify, watch;
	bool present;
	struct stat seen;
	struct registration *call;
	struct endpoint *registering;
	int64_t deadline, again;
	char *complaint; /* the last of its directory and of calls that was logged */
};

/** Return: 0; negative errno. */
int kubelet_new(const char *directory, struct kubelet *ret);
void kubelet_clear(struct kubelet *kubelet);
void kubelet_gather(const struct kubelet *kubelet, struct waits *waits);

/**
 * kubelet_serve() - look whether it is another than before, make missing sockets, and go on with registering
 *
 * Return: 0; -EROFS: its directory is not to be written to from here.
 */
int kubelet_serve(struct kubelet *kubelet, struct endpoint *endpoints, size_t count, const struct waits *waits);

/* ---- strategy ---- */

enum { STRATEGY_TEXT_SIZE = 64 };

/** Reads "cdi,annotations". Return: the bits; 0: it is none, or not all are known. */
unsigned strategy_read(const char *text);
void strategy_print(unsigned strategies, char ret[static STRATEGY_TEXT_SIZE]);

/** What this node's engine understands. Return: bits of enum strategy. */
unsigned strategy_find(void);

/* ---- metrics ---- */

#define METRICS_POD_RESOURCES "/var/lib/kubelet/pod-resources/kubelet.sock"

struct metrics {
	struct metrics_page page;
	struct registration *call; /* that asks kubelet for pods */
	int64_t until;
};

/** @where: an absolute path, or "127.0.0.1:PORT". Return: 0; -EINVAL if it is neither; negative errno. */
int metrics_open(const char *where, struct metrics *ret);
void metrics_close(struct metrics *metrics);
void metrics_gather(const struct metrics *metrics, struct waits *waits);
void metrics_serve(struct metrics *metrics, const struct resources *resources, const struct waits *waits);

/* ---- labels ---- */

enum { LABEL_MAX = 63 }; /* of a name and of a value (Kubernetes' "Labels and Selectors") */

/**
 * label_format() - a text as a label may have it, or a part of one
 * @max: of its characters, LABEL_MAX at most
 * @ret: letters, digits, '-', '_' and '.', and one of the first two at both ends; or nothing
 */
void label_format(const char *text, size_t max, char ret[static LABEL_MAX + 1]);

/** Prints what this node has, a line a label. Return: 0; CTR_GPU_E_* or negative errno, which the log has. */
int labels_print(FILE *file);

/* ---- filter ---- */

/** From here on, no file is opened, no program run, no process made, and nothing but Unix sockets. Return: 0 or <0. */
int filter_enter(void);
