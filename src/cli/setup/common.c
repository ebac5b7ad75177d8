/* SPDX-License-Identifier: Apache-2.0 */

/* What the setup of each engine uses. */

#include "cli/setup/setup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"
#include "engines/config.h"

void setup_print(const struct setup *setup, const char *format, ...)
{
	/* With --dry-run standard output is the file. */
	FILE *file = setup->dry_run ? stderr : stdout;
	struct err line = {0};
	va_list arguments;

	va_start(arguments, format);
	err_write_list(&line, 0, format, arguments);
	va_end(arguments);
	(void)fprintf(file, "%s: %s\n", setup->engine ? setup->engine->facts->name : "all", line.text);
}

int setup_refuse_user(const struct setup *setup)
{
	const struct engine *facts = setup->engine->facts;

	if (geteuid() == 0 || setup->config || setup->rootless || setup->dry_run)
		return 0;
	if (!facts->user_files)
		return output_print("%s's configuration belongs to root: sudo ctr-gpu setup %s", facts->label,
				    facts->name);
	return output_print_advised(
		("%s's configuration belongs to root: sudo ctr-gpu setup %s", facts->label, facts->name),
		("For one that runs as you: ctr-gpu setup %s --rootless", facts->name));
}

int setup_find_daemon(struct setup *setup, uid_t uid)
{
	const struct engine *facts = setup->engine->facts;
	int r = daemon_find(&facts->daemon, uid, &setup->daemon);

	if (r == 0 && !setup->daemon.pid && setup->daemon.rejected_pid)
		setup_print(setup, "process %d is called %s, but %s, and is left alone", setup->daemon.rejected_pid,
			    facts->daemon.name, setup->daemon.rejected_why);
	if (r == 0)
		return 0;
	errno = -r;
	return output_print("cannot read /proc: %m");
}

/* ---- what files say ---- */

int setup_read(const struct setup *setup, const struct text_buffer *text, const char *path, json_t **ret)
{
	struct text_buffer_error error;
	int r = engine_config_parse(setup->engine->facts, text, ret, &error);

	if (r == -EINVAL)
		return output_print_advised(("%s:%zu:%zu: %s", path, error.line, error.column, error.reason),
					    ("Nothing was changed. Correct that, and try again."));
	return r < 0 ? output_no_memory() : 0;
}

int setup_read_config(struct setup *setup, const char *import)
{
	const struct engine *facts = setup->engine->facts;
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	int r = daemon_open_root(&setup->daemon, &root);

	if (r == 0 && import)
		r = engine_config_read_file(facts, &root, import, &setup->found);
	else if (r == 0)
		r = engine_config_read(facts, &setup->daemon, &root, &setup->found);
	return r == -ENOMEM ? output_no_memory() : 0;
}

int setup_write(const struct setup *setup, struct text_buffer *text, json_t *wanted)
{
	const struct engine *facts = setup->engine->facts;
	_cleanup_json_ json_t *before = NULL, *after = NULL;
	struct text_buffer_error error;
	int r = engine_config_parse(facts, text, &before, &error);

	if (r == 0 && json_equal(before, wanted))
		return 0;
	if (r == 0)
		r = engine_config_write(facts, text, wanted);
	if (r == 0)
		r = engine_config_parse(facts, text, &after, &error);
	if (r == -EINVAL || (r == 0 && !json_equal(after, wanted)))
		return output_print_advised(
			("%s has inline tables or dotted keys where tables are to be changed", setup->path),
			("Write them as [tables] with headers, and try again."));
	return r < 0 ? output_no_memory() : 0;
}

void setup_advise_restart(const struct setup *setup, bool changed, enum engine_step step)
{
	const struct engine *facts = setup->engine->facts;
	_cleanup_free_ char *command = NULL;

	if (!setup->daemon.pid)
		setup_print(setup, "no %s is running; it reads the file when it starts", facts->daemon.name);
	if (!setup->daemon.pid || !changed)
		return;
	command = engine_restart_command(facts, &setup->daemon, setup->rootless, step);
	setup_print(setup, "next: %s", command ? command : "restart it");
}
