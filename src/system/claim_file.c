/* SPDX-License-Identifier: Apache-2.0 */

#include "system/claim_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/lock_file.h"
#include "base/str.h"
#include "system/trusted_file.h"

enum { WAIT_MS = 10 * 1000, TEXT_MAX = 256 };

/* Names are made by host_exclusive_key(), or read in a record. */
static bool claim_file_is_name(const char *gpu)
{
	return *gpu && *gpu != '.' && !strchr(gpu, '/') && strlen(gpu) < CLAIM_GPU_SIZE;
}

int claim_file_open_directory(void)
{
	if ((mkdir(PATH_RUN, 0700) < 0 && errno != EEXIST) || (mkdir(CLAIM_DIRECTORY, 0700) < 0 && errno != EEXIST))
		return -errno;
	return trusted_file_open(CLAIM_DIRECTORY, S_IFDIR, TRUSTED_FILE_ROOT_ONLY, O_RDONLY);
}

int claim_file_lock(pid_t *ret_holder)
{
	_cleanup_close_ int directory = claim_file_open_directory();

	return directory < 0 ? directory : lock_file_take_directory(directory, WAIT_MS, ret_holder);
}

/* "4711-123456 1764201600 ID". A process that was killed may have left a part of it; its container has not begun. */
static bool claim_file_parse(char *text, struct claim *ret)
{
	char *since = strchr(text, ' '), *container = since ? strchr(since + 1, ' ') : NULL, *end;
	struct claim claim = {0};

	end = container ? strchr(container, '\n') : NULL;
	if (!end)
		return false;
	*since = *container = *end = '\0';
	if (!process_key_is_valid(text) || strlen(container + 1) >= sizeof(claim.container))
		return false;
	(void)snprintf(claim.process, sizeof(claim.process), "%s", text);
	(void)snprintf(claim.container, sizeof(claim.container), "%s", container + 1);
	claim.since = (time_t)strtoll(since + 1, NULL, 10);
	*ret = claim;
	return true;
}

int claim_file_read(int directory, const char *gpu, struct claim *ret)
{
	_cleanup_free_ char *text = NULL;
	struct claim claim;
	int r = claim_file_is_name(gpu) ? fd_read_file_at(directory, gpu, TEXT_MAX, &text, NULL) : -EINVAL;

	if (r < 0)
		return r;
	if (!claim_file_parse(text, &claim) || process_key_is_over(claim.process))
		return -ENOENT;
	*ret = claim;
	return 0;
}

int claim_file_write(int directory, const char *gpu, const struct claim *claim)
{
	_cleanup_close_ int fd = -1;
	char text[TEXT_MAX];
	int r = claim_file_remove(directory, gpu);

	if (r < 0)
		return r;
	(void)snprintf(text, sizeof(text), "%s %lld %s\n", claim->process, (long long)claim->since, claim->container);
	fd = openat(directory, gpu, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, strlen(text));
	if (r < 0)
		(void)unlinkat(directory, gpu, 0);
	return r;
}

int claim_file_remove(int directory, const char *gpu)
{
	if (!claim_file_is_name(gpu))
		return -EINVAL;
	return unlinkat(directory, gpu, 0) < 0 && errno != ENOENT ? -errno : 0;
}
