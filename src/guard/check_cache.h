/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Why this kernel and driver cannot be guarded, kept until the next boot: finding out takes a program that reads all of
 * the kernel's types, and each start that chooses a GPU wants to know. That they can be is not kept, since the guard is
 * then loaded.
 */

/**
 * check_cache_get() - what was kept
 * @program: path of the ctr-gpu-guard that would be asked; another one, or another driver, has to be asked anew
 *
 * Return: the reason, a clause, owned by the caller; NULL if nothing was kept, or by somebody who is not root.
 */
char *check_cache_get(const char *program);

/** Keeps the reason, if the caller is root; its first line counts. Nobody fails because it cannot be kept. */
void check_cache_put(const char *program, const char *reason);

/** What was kept is no longer so. */
void check_cache_drop(void);
