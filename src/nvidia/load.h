/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Making a native host ready: NVIDIA's kernel modules are loaded and the device nodes are there. Distributions leave this to
 * the first program that uses the GPU (nvidia-modprobe, setuid root), so that a host which only runs containers has neither
 * after a boot.
 *
 * What is to be done is a list of steps, plain data: load_decide() makes it and changes nothing, load_do() acts on it. Never
 * on the way to a container: the hook has no code of this.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "ctr-gpu.h"

/* Where this host's files are; others in tests. */
struct load_host {
	const char *proc, *sys, *dev;
	const char *programs; /* directories in which modprobe is looked for, with colons between them */
};

extern const struct load_host load_this_host;

struct load_options {
	const char *driver_root;   /* "/", or where driver files and perhaps a second /dev are; NULL: "/" */
	bool modeset;              /* load nvidia-modeset, too */
	bool replace;              /* what stands in a node's place and is none of this number */
	struct strv imex_channels; /* numbers */
};

enum load_kind { LOAD_MODULE, LOAD_DIRECTORY, LOAD_NODE };
enum load_state { LOAD_MISSING, LOAD_THERE, LOAD_WRONG, LOAD_DONE };

struct load_step {
	enum load_kind kind;
	enum load_state state;
	char *name;   /* "nvidia-uvm", "/dev/nvidia-uvm" */
	char *reason;
	char *found;  /* what is in the node's place, where that is wrong; NULL */
	dev_t number; /* of a node */
	mode_t mode;  /* of a node or directory */
	uid_t uid;
	gid_t gid;
};

struct load {
	struct load_step *steps; /* modules first, directories before what is in them */
	size_t count;
	struct strv remarks;
};

void load_clear(struct load *load);
#define _cleanup_load_ _cleanup_(load_clear)

/**
 * load_decide() - what is there and what is missing
 *
 * Nodes of a module that is not loaded are not in the list: their numbers show once it is. A host whose GPUs are all behind
 * /dev/dxg has an empty list and a remark.
 *
 * Return: 0; CTR_GPU_E_NO_DEVICE if there is no GPU of NVIDIA; CTR_GPU_E_WRONG_NODE if something else is in a node's place
 * and is not to be replaced; CTR_GPU_E_UNKNOWN_DEVICE for an IMEX channel that cannot be; negative errno; with @err set.
 */
int load_decide(const struct load_host *host, const struct load_options *options, struct load *ret, struct err *err);

/**
 * load_do() - do what is missing
 * @load: of load_decide(); afterwards it has all steps, also those that showed when the modules were loaded
 *
 * What was done before a step failed stays: it is right, and the next run goes on from there.
 *
 * Return: 0; CTR_GPU_E_NO_PERMISSION; CTR_GPU_E_KERNEL_MODULE; what load_decide() returns; negative errno; with @err set.
 */
int load_do(const struct load_host *host, const struct load_options *options, struct load *load, struct err *err);

/** load_write() - the steps, and whether each is to do, done, or was there. Return: 0; -EINVAL for a format other than text or JSON; -EIO. */
int load_write(const struct load *load, enum ctr_gpu_format format, FILE *file);

/* ---- between the files of this noun ---- */

/** Appends a step, whose strings are taken; NULL ones among name and reason count as -ENOMEM. Return: 0 or -ENOMEM. */
int load_add(struct load *load, const struct load_step *step);

/** The same for a remark. */
int load_remark(struct load *load, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Appends the nodes that the loaded modules want below @dev. @devices: /proc/devices. Return: 0 or as load_decide(). */
int load_add_nodes(const struct load_host *host, const struct load_options *options, const char *devices, const char *dev,
		   struct load *load, struct err *err);
