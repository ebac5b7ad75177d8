/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Our files in the image's /etc/ld.so.conf.d. With them an ldconfig run in the container finds the driver's
 * directories. Directories that go before the image's are in a file that sorts first, the others in a file that sorts
 * last. Their names are fixed, so that starting a container again leaves nothing new behind.
 *
 * A directory that is not the driver's alone (native driver files are mounted one by one into the distribution's own
 * directory) is always in the last file, because moving it to the front would move the image's libraries too; and
 * behind a comment that marks it, because its entries in a cache are the image's.
 */

#include <stdbool.h>

#include "base/str.h"
#include "model/plan.h"

#define LOADER_CONF_FIRST "/etc/ld.so.conf.d/00-ctr-gpu.conf"
#define LOADER_CONF_LAST "/etc/ld.so.conf.d/zz-ctr-gpu.conf"

enum { LOADER_CONF_MAX_SIZE = 64 * 1024 };

/** Whether a directory shows nothing of the image: it is, or is in, a directory that is mounted whole. */
bool loader_conf_is_ours(const struct plan *plan, const struct plan_library_dir *dir);

/**
 * loader_conf_text() - what to write into one of the files
 * @first: LOADER_CONF_FIRST, else LOADER_CONF_LAST
 * @ret:   text; NULL if no directory belongs there
 *
 * Return: 0 or -ENOMEM.
 */
int loader_conf_text(const struct plan *plan, bool first, char **ret);

/** Appends the directories that were ours alone when @text was written, at most some dozens. Return: 0 or -ENOMEM. */
int loader_conf_parse(const char *text, struct strv *ret);

/** A file that lists nothing. */
extern const char loader_conf_empty[];
