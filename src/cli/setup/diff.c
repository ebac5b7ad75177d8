/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diff(1) finds the lines that differ. Where it is missing, every old line is shown as removed and every new one as
 * added.
 */

#include "cli/setup/setup.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/print.h"
#include "system/program_output.h"

#define DIFF "/usr/bin/diff"

enum { PATH_SIZE = 64, HEADS_MAX = 4096 };

/* A file of this process, which diff(1) has by its path. Return: descriptor; negative errno. */
static int diff_make_file(const struct text_buffer *text, char ret_path[static PATH_SIZE])
{
	_cleanup_close_ int fd = memfd_create("ctr-gpu", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_all(fd, text->data, text->size);

	if (r < 0)
		return r;
	(void)snprintf(ret_path, PATH_SIZE, "/proc/%d/fd/%d", (int)getpid(), fd);
	return steal_fd(&fd);
}

/* Return: what diff(1) writes, without its heading, which has the paths of memory; NULL: it cannot be run. */
static char *diff_run(const struct text_buffer *before, const struct text_buffer *after)
{
	const size_t max = 4 * (before->size + after->size) + HEADS_MAX;
	char old[PATH_SIZE], new[PATH_SIZE];
	_cleanup_close_ int a = diff_make_file(before, old), b = diff_make_file(after, new);
	_cleanup_free_ char *output = NULL;
	int exit_status = -1;
	char *hunks;
	size_t size;

	if (a >= 0 && b >= 0)
		exit_status = program_output_read_status((const char *const[]){DIFF, "-a", "-u", old, new, NULL},
							 PROGRAM_OUTPUT_USUAL_MS, max, &output, &size);
	/* 1 says that the texts differ; of one that was stopped, lines may be missing. */
	hunks = exit_status == 1 ? strstr(output, "\n@@ ") : NULL;
	return hunks ? strdup(hunks + 1) : NULL;
}

static size_t diff_count_lines(const struct text_buffer *text)
{
	size_t count = text->size && text->data[text->size - 1] != '\n';

	for (size_t i = 0; i < text->size; i++)
		count += text->data[i] == '\n';
	return count;
}

static void diff_write_lines(const struct text_buffer *text, char sign, FILE *file)
{
	for (size_t i = 0; i < text->size; i++) {
		if (i == 0 || text->data[i - 1] == '\n')
			(void)fputc(sign, file);
		(void)fputc(text->data[i], file);
	}
	if (text->size && text->data[text->size - 1] != '\n')
		(void)fputs("\n\\ No newline at end of file\n", file);
}

void diff_write(const struct text_buffer *before, const struct text_buffer *after, const char *path, FILE *file)
{
	const size_t old = diff_count_lines(before), new = diff_count_lines(after);
	_cleanup_free_ char *hunks = NULL;

	if (text_buffer_is_same(before, after))
		return;
	print_safe(file, "--- %s\n", before->size ? path : "/dev/null");
	print_safe(file, "+++ %s\n", path);
	hunks = diff_run(before, after);
	if (hunks) {
		(void)fputs(hunks, file);
		return;
	}
	(void)fprintf(file, "@@ -%d,%zu +%d,%zu @@\n", old > 0, old, new > 0, new);
	diff_write_lines(before, '-', file);
	diff_write_lines(after, '+', file);
}
