/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Facts about container engines, for all callers, each stated once, in the table of engine.c; and what of them is on
 * this machine: programs, versions, nodes, the processes of containers.
 */

#include <jansson.h>
#include <signal.h>
#include <time.h>

#include "base/err.h"
#include "engines/daemon.h"
#include "model/finding.h"

/* ---- engine ---- */

/* A version's numbers, for comparison; 0 if it is not known. */
#define ENGINE_VERSION(major, minor) (1 + 1000L * ((minor) + 1000L * (major)))

/* A version of an engine, and what it knows of CDI; a later one knows the same until the next. */
struct engine_release {
	int major, minor;
	const char *cdi;    /* the newest version of specs; NULL behind the last release */
	const char *remark; /* what must be done for it to read specs; NULL: nothing */
};

enum engine_format { ENGINE_TOML, ENGINE_JSON };

struct engine {
	const char *name, *alias; /* "crio", as setup takes it, and how others write it, "cri-o"; NULL: not */
	const char *label;        /* "CRI-O" */
	const char *const *programs, *const *packages; /* any of which is it; NULL at the end */

	struct daemon_kind daemon;
	const char *service; /* of systemd and others; NULL: none */
	const char *snap;    /* where snapd has it; NULL: nowhere */
	const char *desktop; /* where WSL shows that Docker Desktop has it elsewhere; NULL: nowhere */

	/* Its configuration: these files, as patterns of glob(7), of which later ones count more. */
	enum engine_format format;
	const char *const *files;
	const char *const
		*directories; /* where such a file of root's may be that its daemon alone names; NULL: nowhere */
	const char *const *user_files;     /* of one that runs as a user, or besides those: below $XDG_CONFIG_HOME */
	const char *const *rootless_files; /* besides .files, of one that runs as a user; NULL: none */
	long has_rootless_files;           /* ENGINE_VERSION() since when, until it merges */
	long root_has_user_files; /* ENGINE_VERSION() since which an engine without a daemon reads those of root, too */
	const char *const *merged_files; /* instead of .files, as containers-config(5) has it; NULL: never */
	long merges;                     /* ENGINE_VERSION() since when */
	const char *imported;            /* what such a file usually imports; NULL: nothing */
	const char *imports;             /* where such a file names others, which count more; NULL: nowhere */
	int imports_merge; /* the major version since which those do not replace whole sections; 0: they never do */
	json_t *(*dump)(const char *file); /* asks the program what it makes of its file; NULL: it does not say */
	json_t *(*ask)(const struct daemon *daemon); /* asks the daemon that runs what it has; NULL: it does not say */
	const char *option, *letter;                 /* of the daemon, naming one file to be read instead; NULL: none */
	const char *variable;                        /* of the environment, the same; NULL: none */
	const char *snap_file;                       /* read by the snap's instead; NULL: none */
	const char *rancher_file;                    /* read by the containerd of k3s instead; NULL: none */

	/* Where things stand in it, as paths of json_at(); NULL: nowhere. */
	const char *const *sections; /* above all of these paths, each of which a file may have; NULL: none */
	const char *runtimes;        /* by their names; NULL: it has none */
	const char *program;         /* in one of these, or a list of such; NULL: that is the program itself */
	const char *default_runtime, *hooks_dir, *cdi, *cdi_dirs;
	long has_cdi_dirs;  /* ENGINE_VERSION() since when .cdi_dirs means something; 0: always */
	const char *cdi_on; /* how users write what turns CDI on */
	const char *const *hook_directories, *const *cdi_directories; /* that are read unless the file names others */

	const char *uses[METHODS]; /* how users ask it for a GPU, by each method; NULL: it has no such method */

	const struct engine_release *releases; /* with CDI, oldest first; NULL: it has none */
	long gpus_nvidia, gpus_amd; /* ENGINE_VERSION() since which --gpus gives CDI's devices of a kind; 0: never */
};

/* Where packages and the tarball's "register" put the file by which the hook is found. Engines read the first. */
#define ENGINE_HOOK_FILE "ctr-gpu.json"
#define ENGINE_HOOKS_USR "/usr/share/containers/oci/hooks.d"
#define ENGINE_HOOKS_ETC "/etc/containers/oci/hooks.d"
extern const char *const engine_hook_directories[]; /* with NULL at the end */

extern const struct engine engine_docker, engine_podman, engine_containerd, engine_crio, engine_buildkit, engine_lxc,
	engine_apptainer;
extern const struct engine *const engine_list[]; /* all of them, with NULL at the end */

/** Return: the engine that is called so; NULL. */
const struct engine *engine_find(const char *name, size_t length);

/** Whether this machine has one of its programs. */
bool engine_is_installed(const struct engine *engine);

/**
 * engine_version() - the version of its package or snap; the engine itself is not asked, since it might start
 * @snap: the engine is a snap
 *
 * Return: "20.10.24", owned by the caller; NULL if it is not known.
 */
char *engine_version(const struct engine *engine, bool snap);

/** ENGINE_VERSION() of a text; 0 if it begins with no number. */
long engine_version_number(const char *version);

/** Return: what the newest release that is not newer than @version knows; NULL: it has no CDI. */
const struct engine_release *engine_cdi(const struct engine *engine, long version);

enum engine_cdi_state {
	ENGINE_CDI_ON,
	ENGINE_CDI_OFF,     /* it has it, and does not use it */
	ENGINE_CDI_NONE,    /* no version before a later one has it */
	ENGINE_CDI_UNKNOWN, /* for want of a version */
};

/** Whether it gives containers CDI's devices. @setting: what its configuration says: -1: nothing, 0: off, 1: on. */
enum engine_cdi_state engine_cdi_state(const struct engine *engine, long version, int setting);

enum engine_step { ENGINE_START, ENGINE_RELOAD, ENGINE_RESTART };

/**
 * engine_restart_command() - what makes the engine of a daemon notice its configuration, on this host
 * @user: it is a service of the caller, and not the system's
 *
 * Return: the command, owned by the caller; NULL without memory.
 */
char *engine_restart_command(const struct engine *engine, const struct daemon *daemon, bool user,
			     enum engine_step step);

/**
 * engine_has_file() - whether a path that a daemon names is one of its engine's known places
 *
 * Arguments of a process are a hint: root writes to no other place without being asked to by a person. Links are
 * resolved on both sides; what is missing may be only the file and the known directory.
 */
bool engine_has_file(const struct engine *engine, const char *path);

/** Return: the path of a user's own file, such as "docker/daemon.json", owned by the caller; NULL without memory. */
char *engine_user_file(const char *name);

/* ---- node ---- */

/* A distribution of Kubernetes, known by its directory, whose node has engines of its own, or the machine's. */
struct engine_node {
	const char *label, *directory;
	const char *files; /* what its containerd reads, a pattern of glob(7); NULL: the machine's engine is its own */
	const char *file;  /* of these, the one to write to; NULL: it writes them anew at each start */
	const char *restart;
};

/* Kubelet's directory of device plugins, with every distribution (deviceplugin/v1beta1/constants.go). */
#define ENGINE_NODE_PLUGINS "/var/lib/kubelet/device-plugins"

/** Return: what this machine is a node of; NULL: of none. */
const struct engine_node *engine_node_find(void);

/* Where containerd may keep what it knows of containers that run: the machine's, Docker's own, those of nodes. */
extern const char *const engine_containerd_states[]; /* with NULL at the end */

/* ---- container pid ---- */

/* Which process a container's name means. */

struct container_pid {
	pid_t pid;
	const char *engine, *other; /* whose name it is, static; and whose else, with another process */
	char *id;
	char *name;                 /* what its engine calls it besides; NULL: nothing, or it was not asked for */
	char *bundle;               /* directory of its config.json; NULL: not known */
	unsigned long long started; /* in ticks since the boot; 0: not known */
	bool asked;                 /* the engine's daemon has said it just now */
	char *error;                /* why the process is not known, and @pid is 0; NULL */
	char *cgroup;               /* container_pids_mark(): "0::/…/docker-<id>.scope"; NULL: not known */
	dev_t mounts_device;        /* and its mount namespace; 0: not known */
	ino_t mounts;
};

void container_pid_clear(struct container_pid *found);
#define _cleanup_container_pid_ __attribute__((cleanup(container_pid_clear)))

struct container_pids {
	struct container_pid *items;
	size_t count;
	/* Those that may run all the same: engine, id, name and error; without an id it is not known which. */
	struct container_pid *unknown;
	size_t unknown_count;
};

void container_pids_clear(struct container_pids *list);
#define _cleanup_container_pids_ __attribute__((cleanup(container_pids_clear)))

/** The first processes of all containers that run, the caller's own alone, each once. Return: 0 or -ENOMEM. */
int container_pid_list(struct container_pids *ret);

/** Notes what the processes of each container have in common, for container_pids_find_owner(). Return: 0 or -ENOMEM. */
int container_pids_mark(struct container_pids *list);

/* Where a process is. */
enum container_pid_place {
	CONTAINER_PID_UNKNOWN, /* it has ended, the caller may not look, or no container has its PID namespace */
	CONTAINER_PID_HOST,    /* not in a container */
	CONTAINER_PID_LISTED,  /* in one of the list */
	CONTAINER_PID_FOREIGN, /* in a container of another user's engine, of which the id alone is known */
};

/**
 * container_pids_find_owner() - which container a process is in
 * @list:       marked
 * @ret_listed: for CONTAINER_PID_LISTED; borrowed from the list
 * @ret_id:     for CONTAINER_PID_FOREIGN
 */
enum { CONTAINER_PID_ID_SIZE = 64 + 1 };
enum container_pid_place container_pids_find_owner(const struct container_pids *list, pid_t pid,
						   const struct container_pid **ret_listed,
						   char ret_id[static CONTAINER_PID_ID_SIZE]);

/** The id of an engine's container in a cgroup's path, the outermost. @membership: of /proc/PID/cgroup. */
bool container_pid_read_id(const char *membership, char ret[static CONTAINER_PID_ID_SIZE]);

/**
 * container_pid_find_cgroup() - the cgroup of a container, which all its processes are in or below
 * @membership: of its first process, which may have made further ones below
 *
 * Return: 0, with a line up to there, owned by the caller, or with NULL: none has the id in its name; -ENOMEM.
 */
int container_pid_find_cgroup(const char *membership, const char *id, char **ret);

/** Whether a process is in such a cgroup or below. */
bool container_pid_is_below(const char *membership, const char *cgroup);

/** Where its engine has not said it: containerd's shim, its parent, works in its bundle. Return: NULL; borrowed. */
const char *container_pid_find_bundle(struct container_pid *found, int process);

/** When a process began, in seconds since 1970; 0: not known. @process: its directory in procfs */
time_t container_pid_read_time(int process);

/**
 * container_pid_find() - the first process of a container that runs
 * @name: as its engine knows it, or its id; the caller's own containers alone
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT, with @err set, if there is none, or several; -ENOMEM.
 */
int container_pid_find(const char *name, struct container_pid *ret, struct err *err);

/** Whether it is this process, and not another that has its number by now. @process: its directory in procfs */
bool container_pid_is(const struct container_pid *found, int process);

/* ---- container start ---- */

/**
 * container_start_wait() - wait for the containers that are being made at this moment, of which lists have none yet
 * @stop: ends the waiting when it is set; NULL: none does
 *
 * Those whose making begins later are not waited for. Return: 0; after that time, a process that makes one still.
 */
pid_t container_start_wait(int milliseconds, const volatile sig_atomic_t *stop);

/* ---- docker api ---- */

/* One question to a Docker daemon, over its socket. */

/**
 * docker_api_ask() - ask for something such as "/version"
 * @daemon: one that was found; asking another could start one that a service manager starts on demand
 * @ret:    the answer, a new reference
 *
 * Return: as daemon_http_get(); -ENOTCONN also if it listens at no socket.
 */
int docker_api_ask(const struct daemon *daemon, const char *what, json_t **ret);

/** Return: the answer, a new reference; NULL if there was none, for whatever reason. */
json_t *docker_api_get(const struct daemon *daemon, const char *what);

/** Whether the caller may connect to it. Return: 0; -EACCES, -ENOENT, … */
int docker_api_check_access(const struct daemon *daemon);
