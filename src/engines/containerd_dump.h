/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What containerd itself makes of its files: how it merges those that one imports differs from version to version. */

#include <jansson.h>

/**
 * containerd_dump() - ask the program containerd for its configuration, `containerd --config FILE config dump`
 * @file: the one that its daemon reads
 *
 * Only a program that root alone could have put there is run, without an environment. It starts no daemon.
 *
 * Return: all of it, a new reference; NULL if it did not say within five seconds, for whatever reason.
 */
json_t *containerd_dump(const char *file);
