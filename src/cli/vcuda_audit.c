/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu vcuda audit: what vCUDA's manager wrote of containers, from systemd's journal or its file. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/print.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "system/program_output.h"

enum {
	AUDIT_MAX = 16 << 20,
	JOURNAL_MS = 60 * 1000, /* of a large journal on a slow disk it takes long */
	KEY_JSON = 0x100,
};

#define AUDIT_FILE "/var/log/ctr-gpu-vcudad.log"

struct vcuda_audit {
	const char *container; /* how its id begins; NULL: all */
	json_t *events;        /* NULL: they are printed as they come */
};

/* The last of it, without a line whose beginning is left out. Return: 0; negative errno. */
static int vcuda_audit_read_file(int fd, char **ret, size_t *ret_size)
{
	const off_t size = lseek(fd, 0, SEEK_END), start = size > AUDIT_MAX ? size - AUDIT_MAX : 0;
	char *end;
	int r;

	if (size < 0 || lseek(fd, start, SEEK_SET) < 0)
		return -errno;
	/* It may grow meanwhile. */
	r = fd_read_sized(fd, size - start, AUDIT_MAX + 1, ret, ret_size);
	if (r < 0 || start == 0)
		return r;
	end = strchrnul(*ret, '\n');
	*ret_size -= (size_t)(end - *ret);
	memmove(*ret, end, *ret_size + 1);
	return 0;
}

/* Return: 0, or the exit status after a message was printed. */
static int vcuda_audit_read(char **ret, size_t *ret_size)
{
	static const char *const journal[] = {"/usr/bin/journalctl",
					      "--unit=ctr-gpu-vcudad.service",
					      "--output=cat",
					      "--no-pager",
					      "--quiet",
					      "--lines=20000",
					      NULL};
	_cleanup_close_ int fd = -1;
	int r;

	if (access("/run/systemd/system", F_OK) == 0) {
		if (program_output_read(journal, JOURNAL_MS, AUDIT_MAX, ret, ret_size))
			return 0;
		return output_print_advised(
			("journalctl does not show the audit of ctr-gpu-vcudad"),
			("What it says: journalctl -u ctr-gpu-vcudad; root and the group adm may read it."));
	}
	fd = open(AUDIT_FILE, O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : vcuda_audit_read_file(fd, ret, ret_size);
	errno = -r;
	if (r < 0)
		return output_print_advised(("cannot read the audit %s: %m", AUDIT_FILE),
					    ("%s", r == -ENOENT ? "OpenRC's ctr-gpu-vcudad writes it when it starts: "
								  "sudo rc-service ctr-gpu-vcudad start"
								: "Root alone may read it: sudo ctr-gpu vcuda audit"));
	return 0;
}

/* Its time, what happened, to which container, and the rest as JSON has it. */
static void vcuda_audit_print(json_t *event)
{
	static const char *const named[] = {"time", "event", "container"};
	const char *separator = "  ";
	const char *key;
	json_t *value;

	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		const char *text = json_string_value(json_object_get(event, named[i]));

		print_safe(stdout, "%s%-*s", i > 0 ? "  " : "", i == 1 ? 14 : 12, text ? text : "-");
	}
	json_object_foreach (event, key, value) {
		_cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

		if (streq(key, named[0]) || streq(key, named[1]) || streq(key, named[2]))
			continue;
		print_safe(stdout, "%s%s=%s", separator, key, text ? text : "?");
		separator = " ";
	}
	(void)putchar('\n');
}

/* A line that is none of the audit is systemd's, or a warning of the manager's. */
static void vcuda_audit_take(const struct vcuda_audit *audit, const char *line, size_t size)
{
	json_t *event;
	const char *container;

	if (json_parse(line, size, &event, NULL) < 0)
		return;
	container = json_string_value(json_object_get(event, "container"));
	if (!json_object_get(event, "event") ||
	    (audit->container && (!container || !str_has_prefix(container, audit->container))))
		json_decref(event);
	else if (audit->events)
		(void)json_array_append_new(audit->events, event);
	else {
		vcuda_audit_print(event);
		json_decref(event);
	}
}

static error_t vcuda_audit_parse(int key, char *argument, struct argp_state *state)
{
	struct vcuda_audit *audit = state->input;

	switch (key) {
	case KEY_JSON:
		audit->events = json_array();
		return 0;
	case ARGP_KEY_ARG:
		if (audit->container)
			argp_error(state, "one container at a time");
		audit->container = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int vcuda_audit_show(struct global_options *globals, int argc, char **argv)
{
	static const struct argp_option options[] = {{"json", KEY_JSON, NULL, 0, "Print JSON", 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = vcuda_audit_parse,
		.children = global_options_children,
		.args_doc = "[CONTAINER]",
		.doc = "Show what happened to containers that have GPUs by vCUDA: grants, refusals, crashes.",
	};
	_cleanup_free_ char *text = NULL;
	struct vcuda_audit audit = {0};
	size_t size;
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &audit);
	r = vcuda_audit_read(&text, &size);
	if (r == 0)
		for (char *line = text, *end; *line; line = end + (*end == '\n')) {
			end = strchrnul(line, '\n');
			vcuda_audit_take(&audit, line, (size_t)(end - line));
		}
	if (audit.events && r == 0)
		return print_write_json(json_pack("{s:o}", "events", audit.events), stdout) == -ENOMEM
			       ? output_no_memory()
			       : 0;
	json_decref(audit.events);
	return r;
}
