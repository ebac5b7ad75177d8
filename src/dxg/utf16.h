/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Windows' wide strings as UTF-8. A driver wrote them: they may lack their NUL, and hold lone surrogates or numbers
 * that are not characters. libc's converters depend on the locale.
 */

#include <stddef.h>

#include "base/span.h"

/**
 * utf16_from_wide() - convert up to the first NUL, or to the end if there is none
 * @wide:      the string, in this machine's byte order; a rest shorter than a character is ignored
 * @char_size: 2 for UTF-16, 4 for UTF-32
 * @ret:       new string, owned by the caller; bytes that are not a character became U+FFFD
 *
 * Return: 0 or -ENOMEM.
 */
int utf16_from_wide(const struct span *wide, size_t char_size, char **ret);
