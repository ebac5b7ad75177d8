/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* A real container, with a program of ours in an image of our own. Nothing of it remains. */

/**
 * try_find() - whether there is such a way
 * @text: "docker", "docker:cdi"
 */
bool try_find(const char *text);

/** Tries it, and prints what arrived. Return: the exit status: 0 if the container had a GPU and a driver. */
int try_run(const char *text);
