/* SPDX-License-Identifier: Apache-2.0 */

/* Handles of memory and events that processes give each other: forged, kept, and more than there can be. */

#ifndef VCUDA_HOSTILE_SHARES_H
#define VCUDA_HOSTILE_SHARES_H

#include "wire.h"

int shares_forged(struct control_client *peer, uint64_t context);
int shares_counted(struct control_client *peer, uint64_t context);
int shares_physical(struct control_client *peer, uint64_t context);
int shares_places(struct control_client *peer, uint64_t context);

#endif
