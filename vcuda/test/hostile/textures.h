/* SPDX-License-Identifier: Apache-2.0 */

/* Cases of frames.c: arrays, textures, surfaces and conditions that are not the client's, or lie elsewhere than it says. */

#ifndef VCUDA_HOSTILE_TEXTURES_H
#define VCUDA_HOSTILE_TEXTURES_H

#include "wire.h"

int textures_arrays(struct control_client *peer, uint64_t context);
int textures_boxes(struct control_client *peer, uint64_t context);
int textures_conditions(struct control_client *peer, uint64_t context);
int textures_numbers(struct control_client *peer, uint64_t context);
int textures_references(struct control_client *peer, uint64_t context);

#endif
