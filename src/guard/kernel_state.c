/* SPDX-License-Identifier: Apache-2.0 */

/* What of the running kernel the guard depends on: tracing that root may have switched off, and preemption. */

#include "guard/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "process/privilege.h"
#include "system/trusted_file.h"

bool tracing_is_off(void)
{
	_cleanup_free_ char *text = file_text("/proc/sys/kernel/ftrace_enabled");

	return text && text[0] == '0';
}

enum { MODES_MAX = 256 };

/* A word of the version's, which has blanks between them. */
static bool preempt_has_word(const char *version, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = version; (at = strstr(at, word)); at += length)
		if ((at == version || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

/* Return: what is in parentheses, new; NULL if there is nothing. */
static char *preempt_find_mode(const char *modes)
{
	const char *begin = modes ? strchr(modes, '(') : NULL;
	const char *end = begin ? strchr(begin, ')') : NULL;

	return end && end > begin + 1 ? strndup(begin + 1, (size_t)(end - begin) - 1) : NULL;
}

int preempt_classify(const char *version, const char *modes, char **ret_why)
{
	_cleanup_free_ char *mode = NULL;

	*ret_why = NULL;
	/* PREEMPT, PREEMPT_RT, PREEMPT_LAZY: built so. */
	if (!strstr(version, "PREEMPT"))
		return 0;
	if (!preempt_has_word(version, "PREEMPT_DYNAMIC"))
		return str_format(ret_why, "the kernel preempts itself (uname -v)");
	mode = preempt_find_mode(modes);
	if (!mode)
		return str_format(ret_why,
				  "the kernel may preempt itself (/sys/kernel/debug/sched/preempt cannot be read)");
	if (streq(mode, "none") || streq(mode, "voluntary"))
		return 0;
	return str_format(ret_why, "the kernel preempts itself (%.32s, in /sys/kernel/debug/sched/preempt)", mode);
}

/* Return: a descriptor of what is mounted already, or of a mount that goes with it. */
static int preempt_open_modes(void)
{
	int fd = open("/sys/kernel/debug/sched/preempt", O_RDONLY | O_CLOEXEC);
	_cleanup_capability_ int raised = CAPABILITY_NONE;
	_cleanup_close_ int context = -1, mount = -1;

	if (fd >= 0)
		return fd;
	raised = capability_raise(CAP_SYS_ADMIN);
	context = fsopen("debugfs", FSOPEN_CLOEXEC);
	if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	mount = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (mount < 0)
		return -errno;
	fd = openat(mount, "sched/preempt", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

int preempt_check(char **ret_why)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *modes = NULL;
	struct utsname names;

	if (uname(&names) < 0)
		return preempt_classify("PREEMPT_DYNAMIC", NULL, ret_why);
	/* A kernel that cannot needs no look at the file. */
	fd = strstr(names.version, "PREEMPT_DYNAMIC") ? preempt_open_modes() : -1;
	if (fd >= 0 && fd_read_all(fd, MODES_MAX, &modes, NULL) < 0)
		modes = NULL;
	return preempt_classify(names.version, modes, ret_why);
}
