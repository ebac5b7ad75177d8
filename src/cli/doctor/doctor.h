/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Behind `ctr-gpu doctor`: whether a container would get a GPU here, and the first thing to do if not. Every check
 * looks and changes nothing, opens nothing that could block, and needs no privilege: what it could not see it says.
 */

#include <stdbool.h>

#include "base/str.h"
#include "cli/doctor/finding.h"
#include "ctr-gpu.h"
#include "lib/host.h"

/* What checks are given, and what earlier ones leave for later ones. */
struct examination {
	struct ctr_gpu_context *context;
	const char *config; /* NULL: the usual file */
	const char *rootfs; /* of an image to look at; NULL: none */
	struct findings findings;

	bool gpu_pv, native;       /* which devices are here */
	bool wsl;                  /* and not another guest with GPU-PV; for advice only */
	struct ctr_gpu_host *host; /* NULL: no device answered */
	size_t usable;             /* adapters that a container can be given */
	struct strv cdi_kinds;     /* "nvidia.com/gpu", of specs that can be used */
};

/* In the order of running and showing them. */
void check_machine(struct examination *examination);
void check_devices(struct examination *examination);
void check_adapters(struct examination *examination);
void check_stores(struct examination *examination);
void check_driver(struct examination *examination);
void check_kernel(struct examination *examination);
void check_cdi(struct examination *examination);
void check_engines(struct examination *examination);
void check_rootless(struct examination *examination);
void check_security(struct examination *examination);
void check_image(struct examination *examination);
void check_installation(struct examination *examination);
