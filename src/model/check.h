/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The checks of `ctr-gpu doctor`, its own and those of backends. A check looks and changes nothing, opens nothing that
 * could block, and needs no privilege. What it found it reports by findings_add(): a stable id, how bad it is, what is
 * where, and what to do next.
 */

#include "model/backend.h"
#include "model/finding.h"

struct backend_checks;

enum { CHECKS_KINDS_MAX = 8 };

/* What checks are given, and what earlier ones leave for later ones. */
struct doctor_context {
	const struct settings *settings;
	struct findings findings;
	const struct backend_checks *here[CHECKS_KINDS_MAX]; /* kinds of GPU devices; NULL behind the last */
	const struct inventory *inventory;                   /* NULL: it was not read yet, or no device answered */
	size_t usable; /* adapters that a container can be given; they come first */
	bool planned;  /* a plan could be made for them */

	/* For checks of no backend. */
	struct ctr_gpu_context *context;
	const char *config;        /* NULL: the usual file */
	const char *rootfs;        /* of an image to look at; NULL: none */
	struct ctr_gpu_host *host; /* of the inventory */
	struct strv cdi_kinds;     /* "nvidia.com/gpu", of specs that can be used */
};

/* When a check is run. */
enum check_stage {
	CHECK_DEVICES,  /* before a driver is asked */
	CHECK_ADAPTERS, /* the inventory was read */
	CHECK_DRIVER,   /* a plan was tried */
	CHECK_MACHINE,  /* what is the same for every kind of GPU */
	CHECK_STAGES,
};

struct check {
	enum check_stage stage;
	const char *subject; /* what it looks at, for users who wait for it: "the driver stores" */
	void (*run)(struct doctor_context *examination);
};

/* What doctor knows of a kind of host, apart from struct backend, because the hook does not contain it. */
struct backend_checks {
	const struct backend *backend;
	const char *driver; /* what to call it: "NVIDIA driver" */

	/** Whether it is one; NULL: if it has the device. */
	bool (*is_here)(void);

	/** Return: what to call this host, "WSL2, GPUs behind /dev/dxg", and the finding that says so, "host.wsl". */
	const char *(*describe)(const char **ret_id);

	/** Return: what to do where its device lists no adapter. */
	const char *(*advise_no_adapter)(void);

	/** Reports why the device is missing, where it should be here; otherwise nothing. */
	void (*explain)(struct findings *findings);

	/** Those of the checks whose findings no inventory and no plan has, for `info` and `list`; NULL: none. */
	void (*check_host)(struct doctor_context *examination);

	const struct check *checks; /* for a host that has the device; the last is {0} */
};
