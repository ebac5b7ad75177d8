/* SPDX-License-Identifier: Apache-2.0 */

/* Cases of frames.c: what one thread waits for or works in, another takes away. */

#ifndef VCUDA_HOSTILE_WAITS_H
#define VCUDA_HOSTILE_WAITS_H

#include "wire.h"

int waits_events(struct peer *peer, uint64_t context);
int waits_streams(struct peer *peer, uint64_t context);
int waits_contexts(struct peer *peer, uint64_t context);
int waits_primary(struct peer *peer, uint64_t context);
int waits_chunks(struct peer *peer, uint64_t context);
int waits_memory(struct peer *peer, uint64_t context);
int waits_done(struct peer *peer, uint64_t context);
int waits_room(struct peer *peer, uint64_t context);
int waits_twice(struct peer *peer, uint64_t context);
int waits_compilers(struct peer *peer, uint64_t context);
int waits_captures(struct peer *peer, uint64_t context);
int waits_nodes(struct peer *peer, uint64_t context);
int waits_threads(struct peer *peer, uint64_t context);
int waits_names(struct peer *peer, uint64_t context);
int waits_everything(struct peer *peer, uint64_t context);

#endif
