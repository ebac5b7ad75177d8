/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a process that works on a container may do, phase by phase: capabilities, and from its first look at the
 * container's files on, system calls. ctr-gpu-driverd has less, and sees to it itself (driverd/sandbox.c).
 */

enum phase {
	PHASE_BEGIN, /* reads arguments, the container's state and the host; waits for the child that does the rest */
	PHASE_GIVE,  /* acts on a container, and takes back what was done */
	PHASE_EDIT,  /* writes a bundle's config.json, and links into its root filesystem */
};

/**
 * phase_enter() - begin a phase: the capabilities of the table, as far as they are permitted, and no others
 *
 * In PHASE_GIVE and PHASE_EDIT only the system calls of a list are possible: others fail with EPERM, and those of
 * another architecture kill the process. It does not fail on kernels without seccomp filters, nor where the engine's
 * filter forbids another.
 *
 * Return: 0; negative errno.
 */
int phase_enter(enum phase phase);

/** The same for capabilities alone: in another program's process, or after entering a user namespace. */
int phase_limit(enum phase phase);
