/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind `ctr-gpu doctor`: whether a container would get a GPU here, and the first thing to do if not. */

#include "ctr-gpu.h"
#include "lib/host.h"
#include "model/check.h"

void check_machine(struct examination *examination);
void check_adapters(struct examination *examination);
void check_adapter_notes(struct examination *examination);
void check_driver(struct examination *examination);
void check_vcuda(struct examination *examination);
void check_kernel(struct examination *examination);
void check_cdi(struct examination *examination);
void check_engines(struct examination *examination);
void check_rootless(struct examination *examination);
void check_security(struct examination *examination);
void check_image(struct examination *examination);
void check_installation(struct examination *examination);
