/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An engine's daemon as something that this host's service manager runs. */

#include <stdbool.h>
#include <sys/types.h>

enum service_step { SERVICE_RELOAD, SERVICE_RESTART };

/**
 * service_command() - what makes a service reload or restart here
 * @user: it is a service of whoever asks, and not the system's
 * @pid:  of the daemon; 0: it does not run
 *
 * Return: the command, owned by the caller; NULL without memory.
 */
char *service_command(const char *service, bool user, pid_t pid, enum service_step step);
