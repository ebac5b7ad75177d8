/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include_next <spawn.h>

/* Declared alone: the hook loads no modules. */
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first);
