/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the administrator or the caller may set: plain data, filled from /etc/ctr-gpu/config.json and from options by
 * src/lib/settings.c, read everywhere.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/str.h"
#include "model/vcuda_limits.h"

/* Where the adapters' descriptions come from on a GPU-PV host. */
enum inventory_source {
	INVENTORY_AUTO,   /* the device itself; libdxcore where that fails or has no adapter that can be used */
	INVENTORY_DXCORE, /* libdxcore, in ctr-gpu-driverd */
	INVENTORY_IOCTL,  /* ioctls on /dev/dxg, in this process */
};

/* What becomes of a container that wants GPUs on a host without any. */
enum on_missing {
	ON_MISSING_BY_REQUEST, /* fails if the user named them, starts if only words were used that images have, too */
	ON_MISSING_FAIL,
	ON_MISSING_WARN,
	ON_MISSING_SKIP,
};

/* When a container gets its GPUs by vCUDA, which is without any device. */
enum vcuda_mode {
	VCUDA_OFF,     /* never */
	VCUDA_ALLOW,   /* if it asks for that */
	VCUDA_DEFAULT, /* unless it asks for devices */
	VCUDA_FORCE,   /* always */
};

/* How a choice among the adapters behind one /dev/dxg is held. */
enum choice_grade {
	CHOICE_AUTO,        /* by the guard if that can hold here, else by the environment */
	CHOICE_STORE,       /* the others' driver stores are not mounted */
	CHOICE_ENVIRONMENT, /* and variables tell programs which adapters are meant */
	CHOICE_GUARD,       /* and the kernel refuses the others; a warning where it cannot */
	CHOICE_STRICT,      /* the same, and no container where it cannot */
};

/* The ways to ask for a GPU. */
enum entry { ENTRY_HOOK, ENTRY_RUNTIME, ENTRY_CDI, ENTRIES };

/* What all containers together may have by vCUDA that one user starts without root. */
struct vcuda_user {
	uid_t uid;        /* the user; 0: each member of the group */
	gid_t gid;        /* 0: the user */
	struct strv gpus; /* names; empty: all */
	struct vcuda_limits limits;
	unsigned containers;
};

enum { USUAL_SHARE = 100, MOST_SHARE = 1000, MOST_SLOTS = 32 };

/* The longest time that anything is given to answer. */
enum { SETTINGS_LONGEST_S = 3600 };

/*
 * What hooks are given in specs, at least, and above the deadline that they have for themselves: for the time before it
 * begins, and for what is taken back behind it. An engine kills a hook, and nothing is taken back then.
 */
enum { HOOK_TIMEOUT_LEAST_S = 120, HOOK_TIMEOUT_MARGIN_S = 60 };

struct settings {
	struct log log;
	enum inventory_source inventory;
	unsigned driver_timeout_ms; /* for one answer of a vendor's library */
	unsigned deadline_s;        /* for all that is done to give a container its GPUs */
	struct strv library_dirs;   /* searched for libdxcore.so after the loader's own and /usr/lib/wsl/lib */
	char *log_destination;      /* of hook, shim and CDI hook: a path, "journal"; NULL: none */
	char *driverd;              /* path of ctr-gpu-driverd; NULL: the usual places */
	char *driver_root;          /* root of a native driver installation; NULL: "/" */
	struct strv exclusive;      /* names of GPUs that one container at a time may have */
	struct strv runtimes;       /* that ctr-gpu-runtime looks for; empty: the usual ones */
	uid_t mps_user;             /* user beside root who may run the daemon that shares GPUs (MPS); 0: root alone */
	bool accept_environment;    /* of a container that is not privileged may ask for GPUs */
	bool accept_mounts;         /* below /var/run/nvidia-container-devices name GPUs */
	enum on_missing on_missing[ENTRIES];
	enum choice_grade choice;
	bool strict_requirements; /* requirements that would only warn stop the start */
	bool disable_requirements;
	bool granted; /* what the container gets was granted to it already: this host's GPUs are not looked at */
	enum vcuda_mode vcuda_mode;
	struct vcuda_limits vcuda_limits; /* of each container */
	unsigned vcuda_slots;             /* of each GPU, for containers that ask for one; 0: GPUs have none */
	bool vcuda_move;                  /* containers may be moved to other GPUs of the same model */
	struct vcuda_user *vcuda_users;   /* of several that are for a user, the first counts */
	size_t vcuda_user_count;
};

/** The timeout of a hook of ours, in seconds. */
static inline int settings_hook_timeout(const struct settings *settings)
{
	const unsigned wanted = settings->deadline_s + HOOK_TIMEOUT_MARGIN_S;

	return wanted > HOOK_TIMEOUT_LEAST_S ? (int)wanted : HOOK_TIMEOUT_LEAST_S;
}
