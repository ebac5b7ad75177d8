/* SPDX-License-Identifier: Apache-2.0 */

#include "process/phase.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/privilege.h"
#include "process/seccomp.h"

#define BEGIN (1U << PHASE_BEGIN)
#define GIVE (1U << PHASE_GIVE)
#define EDIT (1U << PHASE_EDIT)

/*
 * The phases in which a capability is permitted, and those in which it is effective, too. A hook has given up CHOWN and
 * FOWNER when it begins; "ctr-gpu configure" has them. MKNOD is in none: no node is made.
 */
static const struct {
	int value;
	unsigned permitted, effective;
} table[] = {
	{CAP_DAC_OVERRIDE, BEGIN | GIVE | EDIT, BEGIN | GIVE | EDIT}, /* files of another user (user namespaces) */
	{CAP_SETUID, BEGIN | GIVE | EDIT, BEGIN | GIVE | EDIT},       /* driverd; files of another owner of the root */
	{CAP_SETGID, BEGIN | GIVE | EDIT, BEGIN | GIVE | EDIT},
	{CAP_KILL, BEGIN, BEGIN},               /* driverd is stopped when it hangs */
	{CAP_SYS_ADMIN, BEGIN | GIVE, GIVE},    /* mount, setns, device rules */
	{CAP_SYS_CHROOT, BEGIN | GIVE, GIVE},   /* setns(2) to a mount namespace */
	{CAP_SYS_PTRACE, BEGIN | GIVE, GIVE},   /* /proc/<pid>/{ns,root} of one with more capabilities */
	{CAP_CHOWN, GIVE | EDIT, GIVE | EDIT},  /* files that are replaced keep their owner */
	{CAP_FOWNER, GIVE | EDIT, GIVE | EDIT}, /* and their mode */
	{CAP_NET_ADMIN, BEGIN | GIVE, 0},       /* to query and attach device programs before Linux 6.9 */
	{CAP_SYS_RESOURCE, BEGIN | GIVE, 0},    /* to load them before Linux 5.11, where RLIMIT_MEMLOCK is small */
	{CAP_SYSLOG, BEGIN | GIVE, 0},          /* to read them where net.core.bpf_jit_harden is 2 */
};

/* Of this process. A signal handler may come here. */
static struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3];
static bool known;

/* Remembers what this process has just been given, so that the kernel need not be asked. */
static void capability_know(const struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3])
{
	memcpy(own, words, sizeof(own));
	known = true;
}

/* Forgets it: capabilities have changed, as on entering another user namespace. */
static void capability_forget(void)
{
	known = false;
}

/* A program that never called capability_know() may change them itself. Return: NULL with errno set. */
static const struct __user_cap_data_struct *capability_own(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return known || syscall(SYS_capget, &header, own) == 0 ? own : NULL;
}

static int phase_set(enum phase phase)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct new[_LINUX_CAPABILITY_U32S_3] = {0};
	const struct __user_cap_data_struct *old = capability_own();

	if (!old)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const unsigned word = (unsigned)table[i].value / 32, bit = 1U << table[i].value % 32;

		if (!(table[i].permitted >> phase & 1) || !(old[word].permitted & bit))
			continue;
		new[word].permitted |= bit;
		new[word].effective |= table[i].effective >> phase & 1 ? bit : 0;
	}
	if (syscall(SYS_capset, &header, new) < 0)
		return -errno;
	capability_know(new);
	return 0;
}

int phase_limit(enum phase phase)
{
	capability_forget();
	return phase_set(phase);
}

int phase_enter(enum phase phase)
{
	int r = phase == PHASE_BEGIN ? 0 : seccomp_load();

	return r == -ENOMEM ? r : phase_set(phase);
}

/* ---- privilege ---- */

/* Sets or clears one effective flag. Return: whether the kernel did. */
static bool capability_turn(int value)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	own[value / 32].effective ^= 1U << value % 32;
	return syscall(SYS_capset, &header, own) == 0;
}

bool capability_is_effective(int value)
{
	return capability_own() && (own[value / 32].effective & 1U << value % 32);
}

int capability_raise(int value)
{
	if (value == CAPABILITY_NONE || capability_is_effective(value) ||
	    !(own[value / 32].permitted & 1U << value % 32))
		return CAPABILITY_NONE;
	return capability_turn(value) ? value : CAPABILITY_NONE;
}

void capability_lower(int *raised)
{
	if (*raised != CAPABILITY_NONE)
		(void)capability_turn(*raised);
	*raised = CAPABILITY_NONE;
}

int private_uid_draw(uid_t *ret)
{
	uint32_t drawn;

	if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
		return -EIO;
	*ret = PRIVATE_UID_FIRST + drawn % PRIVATE_UIDS;
	return 0;
}
