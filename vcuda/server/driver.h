/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The real driver library. A function that it does not have is NULL here. The struct is in vcuda/driver_api.h. */

#include "vcuda/protocol/types.h"

struct driver_api;
extern struct driver_api driver;

enum { DRIVER_VERSION = 32 };

/** Return: its version, as its file's name says it ("580.159.04"), in DRIVER_VERSION bytes; "" if that says none. */
const char *driver_name(void);

/** Return: another library of the driver's, from where its first one is; NULL if it has none of that name. */
void *driver_load_beside(const char *name);

/** Loads it. Return: 0; a negative errno. */
int driver_load(const char *library);
