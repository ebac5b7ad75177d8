/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind `ctr-gpu doctor`: whether a container would get a GPU here, and the first thing to do if not. */

#include "ctr-gpu.h"
#include "lib/host.h"
#include "model/check.h"
#include "model/plan.h"

/* The id of what check_image() says of a directory that it cannot look at. */
#define IMAGE_UNREADABLE "image.unreadable"

/** The kinds of specs of GPUs that can be used, in these directories. Return: 0; negative errno. */
int cdi_list_kinds(const struct doctor_context *examination, const struct strv *places, struct strv *ret);

/** Sets the kinds of GPU devices by a host that was read already. */
void machine_take_kinds(struct doctor_context *examination);

/** Says which of a plan's files are on mounts that nothing can be executed from. */
void driver_check_noexec(struct findings *findings, const struct plan *plan);

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
