/* SPDX-License-Identifier: Apache-2.0 */

/* Cases of frames.c: what one thread waits for or works in, another takes away. */

#ifndef VCUDA_HOSTILE_WAITS_H
#define VCUDA_HOSTILE_WAITS_H

#include "wire.h"

int waits_events(struct control_client *peer, uint64_t context);
int waits_streams(struct control_client *peer, uint64_t context);
int waits_stacks(struct control_client *peer, uint64_t context);
int waits_contexts(struct control_client *peer, uint64_t context);
int waits_locked(struct control_client *peer, uint64_t context);
int waits_primary(struct control_client *peer, uint64_t context);
int waits_chunks(struct control_client *peer, uint64_t context);
int waits_memory(struct control_client *peer, uint64_t context);
int waits_done(struct control_client *peer, uint64_t context);
int waits_room(struct control_client *peer, uint64_t context);
int waits_twice(struct control_client *peer, uint64_t context);
int waits_compilers(struct control_client *peer, uint64_t context);
int waits_captures(struct control_client *peer, uint64_t context);
int waits_nodes(struct control_client *peer, uint64_t context);
int waits_threads(struct control_client *peer, uint64_t context);
int waits_names(struct control_client *peer, uint64_t context);
int waits_everything(struct control_client *peer, uint64_t context);

#endif
