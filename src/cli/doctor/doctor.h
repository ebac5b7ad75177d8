/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind `ctr-gpu doctor`: whether a container would get a GPU here, and the first thing to do if not. */

#include "ctr-gpu.h"
#include "lib/host.h"
#include "model/check.h"

/* The id of what check_image() says of a directory that it cannot look at. */
#define IMAGE_UNREADABLE "image.unreadable"

void check_machine(struct doctor_context *examination);
void check_adapters(struct doctor_context *examination);
void check_adapter_notes(struct doctor_context *examination);
void check_driver(struct doctor_context *examination);
void check_vcuda(struct doctor_context *examination);
void check_kernel(struct doctor_context *examination);
void check_cdi(struct doctor_context *examination);
void check_engines(struct doctor_context *examination);
void check_rootless(struct doctor_context *examination);
void check_security(struct doctor_context *examination);
void check_image(struct doctor_context *examination);
void check_installation(struct doctor_context *examination);
