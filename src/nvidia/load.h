/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Making a native host ready: NVIDIA's kernel modules are loaded and the device nodes are there. Distributions leave
 * this to the first program that uses the GPU (nvidia-modprobe, setuid root). So a host that only runs containers has
 * neither after a boot.
 *
 * What is to be done is a list of steps, plain data: load_decide() makes it and changes nothing, load_apply() acts on
 * it. Never on the way to a container: the hook has no code of this.
 */

#include "base/err.h"
#include "model/load.h"

/* Where this host's files are; others in tests. */
struct load_host {
	const char *proc, *sys, *dev;
	const char *programs; /* directories to search for modprobe, with colons between them */
};

/**
 * As decide() of struct backend_load. Nodes of a module that is not loaded are not in the list: their numbers show once
 * it is.
 */
int load_decide(const struct load_host *host, const struct load_options *options, struct load *ret, struct err *err);

/**
 * As apply() of struct backend_load. What was done before a step failed stays: it is right, and the next run goes on
 * from there.
 */
int load_apply(const struct load_host *host, const struct load_options *options, struct load *load, struct err *err);

/* ---- between the files of this noun ---- */

/** Appends the nodes the loaded modules want below @dev. @devices: /proc/devices. Return: 0 or as load_decide(). */
int load_add_nodes(const struct load_host *host, const struct load_options *options, const char *devices,
		   const char *dev, struct load *load, struct err *err);
