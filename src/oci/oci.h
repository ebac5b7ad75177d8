/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an OCI runtime tells its hooks: the state on their standard input, and the config.json that the state leads to
 * (OCI runtime specification, "State" and "Configuration"). The environment in config.json is the image author's, so
 * both are hostile: bytes in, checked members out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

enum {
	OCI_STATE_MAX = 1 << 20,
	OCI_CONFIG_MAX = 16 << 20,
};

struct oci_state {
	pid_t pid;    /* of the container's first process, as the runtime's pid namespace numbers it; greater than 0 */
	char *bundle; /* absolute */
	char *id;     /* what the engine calls the container; NULL if it says nothing */
};

struct oci_config {
	char *root; /* path of the root filesystem, relative to the bundle if it does not start with a slash */
	struct strv environment;   /* the array has a NULL behind its last item */
	bool privileged;           /* may become CAP_SYS_ADMIN */
	unsigned user;             /* whose its process is; 0 is root */
	struct strv groups;        /* numbers, of the groups that its process has */
	bool by_engine;            /* `docker run --gpus` has added the hook that it knows */
	struct strv binds;         /* absolute sources of mounts that bring what is elsewhere as well */
	struct strv tmpfs;         /* where the runtime mounts one; empty if some mount's content is not known */
	struct strv device_mounts; /* what mounts of /dev/null name below /var/run/nvidia-container-devices */
	struct oci_hook *
		hooks; /* those of ctr-gpu-hook with a --device, at the stage createRuntime, in the order of the file */
	size_t hook_count;
};

/* Its arguments, the zeroth too; the array has a NULL behind its last item. */
struct oci_hook {
	struct strv arguments;
};

/** The devices that a hook's arguments name, appended. Return: 0 or -ENOMEM. */
int oci_hook_devices(const char *const *arguments, struct strv *ret);

void oci_state_clear(struct oci_state *state);
void oci_config_clear(struct oci_config *config);

/**
 * oci_parse_state() - a container that is being created
 * @ret: released with oci_state_clear()
 *
 * Return: 0; CTR_GPU_E_BAD_STATE; CTR_GPU_E_CONTAINER_RUNNING if the status says so; -ENOMEM. @err is set.
 */
int oci_parse_state(const char *data, size_t size, struct oci_state *ret, struct err *err);

/** The same for a hook in the container's own namespaces. Its state may have no pid: then it is 0. */
int oci_parse_state_inside(const char *data, size_t size, struct oci_state *ret, struct err *err);

/** The same for one that has ended: status "stopped". Its pid is 0. Return: as oci_parse_state(). */
int oci_parse_state_ended(const char *data, size_t size, struct oci_state *ret, struct err *err);

/**
 * oci_load_config() - config.json as a tree
 * @ret: new reference to an object; members that are not looked at are in it as text (oci/json_raw.h)
 *
 * Return: 0; CTR_GPU_E_BAD_STATE; -ENOMEM. @err is set.
 */
int oci_load_config(const char *data, size_t size, json_t **ret, struct err *err);

/**
 * oci_print_config() - the tree as text
 * @data: that oci_load_config() made it of
 * @ret:  owned by the caller
 *
 * Return: 0 or -ENOMEM.
 */
int oci_print_config(const json_t *config, const char *data, char **ret);

/**
 * oci_read_config() - what is needed of config.json
 * @config: of oci_load_config(), borrowed
 * @ret:    released with oci_config_clear()
 *
 * Return: 0; CTR_GPU_E_BAD_STATE; -ENOMEM. @err is set.
 */
int oci_read_config(const json_t *config, struct oci_config *ret, struct err *err);

/** Both in one. */
int oci_parse_config(const char *data, size_t size, struct oci_config *ret, struct err *err);

/** Whether an entry of config.json's mounts binds something of the host. */
bool oci_is_bind(const json_t *mount);
