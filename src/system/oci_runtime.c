/* SPDX-License-Identifier: Apache-2.0 */

#include "system/oci_runtime.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/version.h"
#include "system/machine.h"
#include "system/program_output.h"
#include "system/trusted_file.h"

enum { ANSWER_MAX = 512 };

/* ---- versions ---- */

/* The first versions that hold places, one for each line of releases that got it; the last, and all lines after it. */
static const struct version runc_first[] = {{{1, 2, 8}, 3}, {{1, 3, 3}, 3}, {{1, 4, 0}, 3}};
static const struct version crun_first[] = {{{1, 8, 0}, 3}};

static const struct {
	const char *says; /* in front of its version */
	const struct version *first;
	size_t count;
} runtimes[] = {
	{"runc version ", runc_first, ARRAY_SIZE(runc_first)},
	{"crun version ", crun_first, ARRAY_SIZE(crun_first)},
};

static bool oci_runtime_is_from(const struct version *version, const struct version *first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (version->parts[0] == first[i].parts[0] && version->parts[1] == first[i].parts[1])
			return version_compare(version, &first[i]) >= 0;
	return version_compare(version, &first[count - 1]) >= 0;
}

/* A candidate of a release is before it. */
static bool oci_runtime_is_candidate(const char *suffix)
{
	const char *candidate = strstr(suffix, "rc");

	return candidate && (size_t)(candidate - suffix) < strcspn(suffix, "\n");
}

bool oci_runtime_is_known(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		struct version version;
		size_t length;

		if (!str_has_prefix(text, runtimes[i].says))
			continue;
		text += strlen(runtimes[i].says);
		length = strspn(text, "0123456789.");
		return version_read(text, length, &version) && version.count > 1 &&
		       !oci_runtime_is_candidate(text + length) &&
		       oci_runtime_is_from(&version, runtimes[i].first, runtimes[i].count);
	}
	return false;
}

/* ---- asking ---- */

bool oci_runtime_holds_places(const char *program)
{
	_cleanup_close_ int fd = trusted_file_open(program, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_PATH);
	const char *const arguments[] = {program, "--version", NULL};
	_cleanup_free_ char *kept = NULL, *identity = NULL, *text = NULL, *answer = NULL;
	char name[40];
	struct stat st;
	size_t size;

	if (fd < 0 || fstat(fd, &st) < 0 ||
	    str_format(&identity, "%" PRIu64 ":%" PRIu64 " %" PRId64 ".%09ld\n", (uint64_t)st.st_dev,
		       (uint64_t)st.st_ino, (int64_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec) < 0)
		return false;
	(void)snprintf(name, sizeof(name), "runtime-%016" PRIx64, str_hash(program));
	if (boot_cache_read(name, ANSWER_MAX + 128, &kept, &size) == 0 && str_has_prefix(kept, identity))
		return oci_runtime_is_known(kept + strlen(identity));
	(void)program_output_read(arguments, PROGRAM_OUTPUT_USUAL_MS, ANSWER_MAX - 1, &answer, &size);
	if (!answer || !*answer || str_format(&text, "%s%s", identity, answer) < 0)
		return false;
	boot_cache_write(name, text);
	return oci_runtime_is_known(answer);
}
