/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory of which a page is not there for as long as its keeper likes: each piece is three pages, of which the second comes late. The keeper
 * is userfaultfd(2), or a FUSE file system of the process's own, whose file the page is of.
 */

#include <stdbool.h>

enum { LATE_PAGE = 4096, LATE_MAX = 256 };

/** Makes so many pieces; ends the process if it cannot. @by_file: of a FUSE file system, for which one has to be root. */
void late_new(int count, bool by_file);

/** Return: the page of a piece that comes late. */
char *late_get_page(int piece);
/** Return: what will be in it. */
char *late_get_contents(int piece);

/** Whether somebody has asked for the page while it was kept back. */
bool late_is_awaited(int piece);

/** The page is there; if it was already, it stays as it is. */
void late_bring(int piece);
/** The page is gone again, unless somebody waits for it. */
void late_take(int piece);
