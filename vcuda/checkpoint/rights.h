/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/types.h>

/**
 * rights_give_up() - give up all that asking the driver of other processes does not take
 * @uid: the processes' user, which this becomes
 *
 * Return: 0; negative errno.
 */
int rights_give_up(uid_t uid);
