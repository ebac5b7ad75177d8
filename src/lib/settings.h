/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fills struct settings: defaults, then /etc/ctr-gpu/config.json. */

#include <stddef.h>

#include "base/err.h"
#include "base/paths.h"
#include "model/settings.h"

void settings_init(struct settings *settings);
void settings_clear(struct settings *settings);

/**
 * settings_load() - take what a configuration file says
 * @path: NULL for PATH_CONFIG, which need not exist
 *
 * Return: 0; CTR_GPU_E_BAD_CONFIG or negative errno with @err set; @settings then hold what was read so far.
 */
int settings_load(struct settings *settings, const char *path, struct err *err);

/** The same from bytes; @path is for messages. */
int settings_parse(struct settings *settings, const char *path, const char *data, size_t size, struct err *err);
