/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The operations of our own. */

#include "vcuda/server/request.h"

extern const struct request_kind serve_kinds[WIRE_OPS];

CUresult serve_wire_upload(struct request *q);
CUresult serve_wire_download(struct request *q);
CUresult serve_wire_function(struct request *q);
CUresult serve_wire_copy_in(struct request *q);
CUresult serve_wire_stage_in(struct request *q);
CUresult serve_wire_stage_out(struct request *q);
CUresult serve_wire_stage_wait(struct request *q);
CUresult serve_wire_probe(struct request *q);
CUresult serve_wire_arena_add(struct request *q);
CUresult serve_wire_arena_drop(struct request *q);
