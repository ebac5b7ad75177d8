/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { FINGERPRINT_SIZE = 32, SECOND_MS = 1000 };

static void audit_time(char ret[static FINGERPRINT_SIZE])
{
	time_t now = time(NULL);
	struct tm utc;

	if (!gmtime_r(&now, &utc) || strftime(ret, FINGERPRINT_SIZE, "%FT%TZ", &utc) == 0)
		ret[0] = '\0';
}

/* One write(2), so that lines stay whole. */
static void audit_put(const json_t *line)
{
	_cleanup_free_ char *text = json_dumps(line, JSON_COMPACT), *whole = NULL;

	if (text && str_format(&whole, "%s\n", text) == 0)
		(void)!write(STDERR_FILENO, whole, strlen(whole));
}

void audit_write(const char *event, const struct tenant *tenant, json_t *more)
{
	char stamp[FINGERPRINT_SIZE];
	json_t *line;

	audit_time(stamp);
	line = json_pack("{s:s, s:s}", "time", stamp, "event", event);
	if (line && tenant)
		(void)json_object_set_new(line, "container", json_string(tenant->id));
	if (line && more)
		(void)json_object_update(line, more);
	audit_put(line);
	json_decref(line);
	json_decref(more);
}

/* Of a word of the server: names of functions and steps, UUIDs. */
static json_t *audit_word(const char text[START_NAME])
{
	char word[START_NAME + 1] = "";

	for (size_t i = 0; i < START_NAME && text[i]; i++)
		word[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	return json_string(word);
}

void audit_tell_omitted(struct tenant *tenant)
{
	if (tenant->omitted > 0)
		audit_write("omitted", tenant, json_pack("{s:I}", "lines", (json_int_t)tenant->omitted));
	tenant->omitted = 0;
}

/*
 * Servers are as many as connections, and each may tell much. Whoever writes for ever fills the journal, which drops
 * what is oldest: what others did.
 */
static bool audit_may_write(struct tenant *tenant, int64_t now)
{
	const int64_t seconds = (now - tenant->written) / SECOND_MS, more = seconds * MANAGER_LINES_RATE;

	if (seconds > 0) {
		audit_tell_omitted(tenant);
		tenant->written = now;
		tenant->lines = tenant->lines > more ? tenant->lines - (unsigned)more : 0;
	}
	if (tenant->lines == MANAGER_LINES) {
		tenant->omitted++;
		return false;
	}
	tenant->lines++;
	return true;
}

/* With an error comes on which GPU it was. */
static uint64_t audit_number(const struct start_event *event)
{
	return event->kind == START_EVENT_STICKY ? (uint32_t)event->number : event->number;
}

void audit_server(struct tenant *tenant, const struct start_event *event, int64_t now)
{
	static const struct {
		const char *name;
		bool text, number;
	} kinds[] = {
		[START_EVENT_READY] = {"ready", false, false},
		[START_EVENT_FAILED] = {"start-failed", true, true},
		[START_EVENT_REFUSED] = {"refused", true, true},
		[START_EVENT_TABLE] = {"hidden-table", true, false},
		[START_EVENT_QUOTA] = {"quota", false, true},
		[START_EVENT_HOSTILE] = {"hostile", true, false},
		[START_EVENT_STICKY] = {"sticky", false, true},
		[START_EVENT_REACHED] = {"reached", true, true},
		[START_EVENT_ESTIMATED] = {"estimated", true, false},
	};
	json_t *more;

	tenant->refused_memory += event->kind == START_EVENT_QUOTA;
	tenant->refused_functions += event->kind == START_EVENT_REFUSED;
	if (event->kind >= ARRAY_SIZE(kinds) || !kinds[event->kind].name || !audit_may_write(tenant, now))
		return;
	more = json_object();
	if (more && kinds[event->kind].text)
		(void)json_object_set_new(more, "what", audit_word(event->text));
	if (more && kinds[event->kind].number)
		(void)json_object_set_new(more, "number", json_integer((json_int_t)audit_number(event)));
	audit_write(kinds[event->kind].name, tenant, more);
}
