/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads and replaces another program's configuration file. The new file has the same owner, mode and labels, and is
 * renamed over the old one, so that other processes never read half of it. Functions that fail print why on standard
 * error.
 */

#include <jansson.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "engines/text.h"

struct config_file {
	char *path; /* absolute, without symlinks */
	bool exists;
	struct stat status; /* if it exists */
	struct text_buffer text;
};

/* Begins as {0}. */
void config_file_close(struct config_file *file);
#define _cleanup_config_file_ __attribute__((cleanup(config_file_close)))

/** Reads the file at @path, which need not exist. A symlink is followed. Return: 0 or the exit status. */
int config_file_read(const char *path, struct config_file *ret);

/**
 * config_file_write() - replace the file's text
 * @mode: of a file that did not exist
 *
 * Directories that are missing are made. A file that has changed since it was read or written is left alone, and that
 * is a failure. Another process that writes it by this function is waited for.
 *
 * Return: 0 or the exit status.
 */
int config_file_write(struct config_file *file, const struct text_buffer *text, mode_t mode);

/** Removes the file, unless it has changed since it was read. Return: 0 or the exit status. */
int config_file_unlink(struct config_file *file);

/** Makes the directories above a file that are missing. Return: 0 or the exit status. */
int config_file_make_directories(const char *file);
