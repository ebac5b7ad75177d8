/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/helper.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "system/machine.h"

#define CACHE_NAME "guard"

enum { CHECK_CACHE_MAX = 4096 };

/* Of a driver that was loaded anew these are other inodes; of one that is part of the kernel the second is missing. */
static uint64_t check_cache_inode(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* The line that what is kept begins with. */
static char *check_cache_key(const char *program)
{
	_cleanup_free_ char *boot = boot_cache_boot();
	struct stat st;
	char *key;

	if (!boot || stat(program, &st) < 0)
		return NULL;
	return str_format(&key, "%s %s %ju:%ju:%jd.%09ld %" PRIu64 " %" PRIu64 "\n", boot, program,
			  (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec,
			  check_cache_inode("/sys/module/dxgkrnl"), check_cache_inode("/sys/kernel/btf/dxgkrnl")) < 0
		       ? NULL
		       : key;
}

char *check_cache_get(const char *program)
{
	_cleanup_free_ char *key = NULL, *text = NULL;
	const char *reason;
	size_t size;

	if (boot_cache_read(CACHE_NAME, CHECK_CACHE_MAX, &text, &size) < 0 || !(key = check_cache_key(program)) ||
	    !str_has_prefix(text, key))
		return NULL;
	reason = text + strlen(key);
	return *reason ? strndup(reason, strcspn(reason, "\n")) : NULL;
}

void check_cache_put(const char *program, const char *reason)
{
	_cleanup_free_ char *key = check_cache_key(program), *text = NULL;

	if (key && str_format(&text, "%s%.*s\n", key, (int)strcspn(reason, "\n"), reason) == 0)
		boot_cache_write(CACHE_NAME, text);
}

void check_cache_drop(void)
{
	boot_cache_remove(CACHE_NAME);
}
