/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the distribution's package manager knows, read from its files: an engine's version without asking the engine,
 * which might not run, or might start if it were asked. dpkg's and apk's databases are text; others are not read.
 */

/**
 * package_version() - the version of the first of some packages that is installed
 * @names: with NULL at the end
 *
 * Return: "20.10.24", without the distribution's epoch and revision, owned by the caller; NULL if it is not known.
 */
char *package_version(const char *const *names);

/** Return: the package that a file belongs to, owned by the caller; NULL if it is not known. */
char *package_of_file(const char *path);
