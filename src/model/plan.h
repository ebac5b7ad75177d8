/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a container must see: plain data, made by reading the host and nothing else. Every entry says why it is there.
 * Paths are absolute; sources are paths of the host, targets paths of the container.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/str.h"
#include "model/vcuda_limits.h"

/* A character device that the container may open. The node of the host is bound to the same path. */
struct plan_device {
	char *path;
	dev_t number;       /* from st_rdev when the plan was made; apply refuses another */
	const char *access; /* cgroup access: "rw" */
	gid_t group;        /* only its members may open it; 0: every user may, or root alone */
	char *reason;
};

enum plan_mount_flags {
	PLAN_MOUNT_NOEXEC = 1 << 0, /* every mount is read-only, nosuid, nodev and private besides */
};

/** What OCI calls them, with those of every mount. Return: a new array; NULL without memory. */
json_t *plan_mount_options(unsigned flags);

/* What is mounted; a directory counts by what it holds. */
enum plan_mount_kind {
	PLAN_LIBRARY,
	PLAN_PROGRAM,
	PLAN_SOCKET, /* of a daemon of the host */
	PLAN_FIRMWARE,
	PLAN_CONFIG,
};

/*
 * The directory of a container in which nothing but ours is. A file system in memory lies over it, so that what is made
 * there, to be mounted on, never gets into the image's layer.
 */
#define PLAN_OWN_DIRECTORY PATH_CONTAINER

struct plan_mount {
	char *source, *target;
	bool directory; /* what the source is, and so what a missing target is created as */
	dev_t device;   /* of the source when the plan was made; apply refuses another file */
	ino_t inode;
	enum plan_mount_kind kind;
	unsigned flags;
	char *reason;
};

struct plan_symlink {
	char *path;    /* where the link is made */
	bool replaces; /* an existing file there; otherwise that stays */
	char *points_to;
	char *reason;
};

/* A file with content of ours, laid read-only over what the container has there. */
struct plan_file {
	char *target;
	char *content;
	bool on_procfs; /* the target is the kernel's: nothing is laid over where the container's /proc lacks it */
	char *reason;
};

/* A directory of the container's /proc that an empty one covers, if it is there. */
struct plan_hidden {
	char *path;
	char *reason;
};

/* A directory of the container's own /dev, which the runtime has made. */
struct plan_mode {
	char *path;
	mode_t mode;
	char *reason;
};

/* A variable for the container's programs. The container's own value stays unless the entry replaces it. */
struct plan_env {
	char *name, *value;
	bool replaces;
	bool combines;      /* it is right whatever other adapters a container gets besides */
	const char *unless; /* the container's own value of this one keeps the entry out, too; may be NULL */
	char *reason;
};

/* A library of the image that one of the driver's takes the place of. Only shown: the loader cache does it. */
struct plan_override {
	char *path, *by;
	char *reason;
};

/* A directory of libraries that the container's loader must find. */
struct plan_library_dir {
	char *path;
	/*
	 * Whether its libraries go before libraries of the same name in the image. True where every file in it belongs
	 * to the driver. False for stores that bring third-party libraries along (Intel's libLLVM): these only fill
	 * gaps.
	 */
	bool overrides_image;
	struct strv libraries; /* the names that programs ask for, "libcuda.so.1" */
	char *reason;
	struct strv files; /* the names of the libraries' files, one for each; none where that is the same */
};

/* A GPU that the container uses through vCUDA: it gets a socket, and no device. */
struct plan_grant {
	char *uuid;
	char *address, *name; /* NULL: not known */
	bool spare;           /* it does not see that one: what it has on another may be moved there */
	char *reason;
};

/* A GPU that one container at a time may have. */
struct plan_claim {
	char *gpu;    /* what claims call it until the next boot */
	char *name;   /* as a user would recognise it, behind its number */
	char *may_be; /* a name of an exclusive GPU: whether of this one is not known, so no container has it; NULL */
	char *reason;
};

/* How a choice among adapters behind one device is held. */
struct plan_choice {
	const char *grade; /* "store", "environment", "guard"; NULL: all adapters were asked for */
	bool strict;       /* no container where it cannot be held */
	uint64_t *luids;   /* of the chosen adapters, where the guard holds them */
	size_t luid_count;
	char *reason; /* what it stops, and what not */
};

/*
 * What keeps programs from the GPU whatever a container is given. Such a container is refused, unless its image has
 * what this machine lacks.
 */
struct plan_obstacle {
	char *path;    /* of this machine: what is missing, or cannot be used */
	char *library; /* a container works all the same whose image has this one; NULL: none does */
	char *remedy;  /* what to do, a sentence */
	char *reason;
};

struct plan {
	struct plan_device *devices;
	size_t device_count;
	struct plan_mount *mounts;
	size_t mount_count;
	struct plan_symlink *symlinks;
	size_t symlink_count;
	struct plan_file *files;
	size_t file_count;
	struct plan_hidden *hidden;
	size_t hidden_count;
	struct plan_mode *modes;
	size_t mode_count;
	struct plan_env *env;
	size_t env_count;
	struct plan_library_dir *library_dirs;
	size_t library_dir_count;
	struct plan_override *override;
	size_t override_count;
	struct plan_obstacle *obstacles;
	size_t obstacle_count;
	struct plan_grant *grants; /* spares last */
	size_t grant_count;
	struct vcuda_limits grant_limits;
	unsigned grant_slot; /* which slot of its GPU it is, from 1; 0: none */
	char *grant_library; /* the driver's libcuda.so.1, for the servers; NULL: as the loader finds it */
	struct plan_claim *claims;
	size_t claim_count;
	struct plan_choice choice;
	struct strv adapters;  /* the selected ones, as a user would recognise them */
	uint32_t capabilities; /* that were asked for (enum capability) */
	struct strv warnings;  /* one sentence each */
};

void plan_clear(struct plan *plan);

/** Return: the group of a plan_device with this node. */
gid_t plan_device_group(const struct stat *node);

/*
 * Each takes ownership of the strings in @entry, also when it fails; a missing one counts as -ENOMEM. An entry for a
 * path that the plan has already is dropped (two adapters share /dev/dxg and often a store). Return: 0 or -ENOMEM.
 */
int plan_add_device(struct plan *plan, struct plan_device *entry);
int plan_add_mount(struct plan *plan, struct plan_mount *entry);
int plan_add_symlink(struct plan *plan, struct plan_symlink *entry);
int plan_add_file(struct plan *plan, struct plan_file *entry);
int plan_add_hidden(struct plan *plan, struct plan_hidden *entry);
int plan_add_mode(struct plan *plan, struct plan_mode *entry);
int plan_add_env(struct plan *plan, struct plan_env *entry);
int plan_add_grant(struct plan *plan, struct plan_grant *entry);
int plan_add_claim(struct plan *plan, struct plan_claim *entry);
int plan_add_library_dir(struct plan *plan, struct plan_library_dir *entry);
int plan_add_override(struct plan *plan, struct plan_override *entry);
int plan_add_obstacle(struct plan *plan, struct plan_obstacle *entry);

/** Whether a container with these variables ("NAME=VALUE") still lacks this one. */
bool plan_env_is_missing(const struct plan_env *env, const struct strv *environment);

/** Takes out the variables that a container with these does not lack. */
void plan_drop_env(struct plan *plan, const struct strv *environment);

/** Appends what its obstacles say, two lines each. Return: 0 or -ENOMEM. */
int plan_list_obstacles(const struct plan *plan, struct strv *ret);

/** Takes out the obstacles, where the image has what they are about. */
void plan_drop_obstacles(struct plan *plan);
