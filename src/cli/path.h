/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/** Return: where @path leads from the working directory as it is now, owned by the caller; NULL, with errno set. */
char *path_absolute(const char *path);

/** Return: where a program of ours is installed, beside this one, owned by the caller; NULL without memory. */
char *path_of_program(const char *name);
