/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Version 1: a list of rules per cgroup (Documentation/admin-guide/cgroup-v1/devices.rst). One entry of the list must
 * cover an access whole; an entry for a device that has one already is merged with it.
 */

#include "devcgroup/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

enum { LIST_MAX = 1024 * 1024, ACCESS_SIZE = 4, RULE_SIZE = 64 };

static int v1_write_rule(int level_fd, const char *file, const char *rule)
{
	_cleanup_close_ int fd = openat(level_fd, file, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_write_all(fd, rule, strlen(rule));
}

static void v1_undo_rule(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)undo_log;
	(void)v1_write_rule(undo_step->fds[0], "devices.deny", undo_step->name);
}

/* Reads the number at *text, or `*`, which matches anything. */
static bool v1_number_matches(const char **text, unsigned number, bool *ret_exact)
{
	char *end;
	unsigned long value;

	if (**text == '*') {
		*ret_exact = false;
		++*text;
		return true;
	}
	value = strtoul(*text, &end, 10);
	if (end == *text)
		return false;
	*text = end;
	return value == number;
}

/* An entry such as "c 10:* rwm". Return: false if it is not about the device; else its access letters. */
static bool v1_entry_matches(const char *entry, const struct devcgroup_rule *rule, const char **ret_access,
			     bool *ret_exact)
{
	const char *text = entry + 2;
	bool exact = *entry != 'a';

	if ((*entry != 'a' && *entry != rule->type) || entry[1] != ' ')
		return false;
	if (!v1_number_matches(&text, rule->major, &exact) || *text++ != ':')
		return false;
	if (!v1_number_matches(&text, rule->minor, &exact) || *text++ != ' ')
		return false;
	*ret_access = text;
	*ret_exact = exact;
	return true;
}

/* The letters that allowing @rule adds to the list; "" if one entry covers it already. */
static void v1_letters_added(char *list, const struct devcgroup_rule *rule, char added[ACCESS_SIZE])
{
	const char *access;
	bool exact;
	char *rest;

	(void)snprintf(added, ACCESS_SIZE, "%s", rule->access);
	for (char *line = strtok_r(list, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (strlen(line) < 2 || !v1_entry_matches(line, rule, &access, &exact))
			continue;
		if (strspn(rule->access, access) == strlen(rule->access))
			*added = '\0';
		/* An entry for the device alone is merged with what it lacks. */
		for (char *letter = added; exact && *letter;) {
			if (strchr(access, *letter))
				memmove(letter, letter + 1, strlen(letter));
			else
				letter++;
		}
	}
}

/* Return: 1; negative errno. */
static int v1_note(struct devcgroup *cgroup, size_t level, const struct devcgroup_rule *rule, const char *letters)
{
	struct devcgroup_rule added = *rule;
	int r;

	added.access = additions_access(letters);
	r = additions_add_in(&cgroup->additions, cgroup->levels[level].fd, &added, 1);
	return r < 0 ? r : 1;
}

/* Return: 1 if the rule was added, 0 if it was there; negative errno. */
static int v1_allow_rule(struct devcgroup *cgroup, size_t level, const struct devcgroup_rule *rule)
{
	struct undo_step undo_step = {.undo = v1_undo_rule, .fds = {-1, -1, -1}};
	int fd = cgroup->levels[level].fd, r;
	_cleanup_free_ char *list = NULL;
	char access[ACCESS_SIZE], added[RULE_SIZE], line[RULE_SIZE];

	r = fd_read_file_at(fd, "devices.list", LIST_MAX, &list, NULL);
	if (r < 0)
		return r;
	v1_letters_added(list, rule, access);
	if (!*access)
		return 0;
	(void)snprintf(line, sizeof(line), "%c %u:%u %s", rule->type, rule->major, rule->minor, rule->access);
	/* The undo step has what devices.deny must be given to be back where we were. */
	(void)snprintf(added, sizeof(added), "%c %u:%u %s", rule->type, rule->major, rule->minor, access);
	undo_step.fds[0] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	r = undo_step.fds[0] < 0 ? -errno : undo_log_add(cgroup->undo_log, &undo_step, added);
	if (r == 0) {
		r = v1_write_rule(fd, "devices.allow", line);
		if (r == 0)
			return v1_note(cgroup, level, rule, access);
		undo_log_pop(cgroup->undo_log);
	}
	cleanup_closep(&undo_step.fds[0]);
	return r;
}

static int v1_allow(struct devcgroup *cgroup, const struct devcgroup_rule *rules, size_t count, struct err *err)
{
	for (size_t level = 0; level < cgroup->level_count; level++) {
		for (size_t i = 0; i < count; i++) {
			int r = v1_allow_rule(cgroup, level, &rules[i]);

			if (r == -EPERM && !devcgroup_is_privileged())
				return 0;
			/*
			 * The kernel refuses to a cgroup what the one above it does not have
			 * (security/device_cgroup.c).
			 */
			if (r == -EPERM)
				return err_set_advised(
					err, CTR_GPU_E_NO_CGROUP,
					("the cgroup above %s forbids device %c %u:%u:", cgroup->levels[level].path,
					 rules[i].type, rules[i].major, rules[i].minor),
					("allow it there, or start the container under another parent cgroup"));
			if (r < 0)
				return err_set(err, r, "cannot allow device %c %u:%u in %s: %m", rules[i].type,
					       rules[i].major, rules[i].minor, cgroup->levels[level].path);
			if (level == 0 && r > 0)
				cgroup->unit_changed = true;
		}
	}
	return 0;
}

/* A user namespace's root may write the file only if it was given the cgroup; otherwise no rule there is ours. */
static int v1_open(struct devcgroup *cgroup, struct err *err)
{
	const struct devcgroup_level *own = &cgroup->levels[cgroup->level_count - 1];
	int r;

	if (faccessat(own->fd, "devices.allow", W_OK, AT_EACCESS) == 0)
		return 1;
	r = -errno;
	if ((r == -EACCES || r == -EPERM || r == -EROFS) && !devcgroup_is_privileged())
		return 0;
	return err_set(err, r, "cannot write devices.allow in %s: %m", own->path);
}

static int v1_take_back(struct devcgroup *cgroup, const struct devcgroup_level *level,
			const struct devcgroup_addition *addition, struct err *err)
{
	(void)cgroup;
	for (size_t i = 0; i < addition->count; i++) {
		const struct devcgroup_rule *rule = &addition->rules[i];
		char line[RULE_SIZE];
		int r;

		(void)snprintf(line, sizeof(line), "%c %u:%u %s", rule->type, rule->major, rule->minor, rule->access);
		r = v1_write_rule(level->fd, "devices.deny", line);
		if (r < 0)
			return err_set(err, r, "cannot forbid device %c %u:%u in %s: %m", rule->type, rule->major,
				       rule->minor, level->path);
	}
	return 0;
}

static void v1_close(struct devcgroup *cgroup)
{
	(void)cgroup;
}

const struct devcgroup_version devcgroup_v1 = {v1_open, v1_allow, v1_take_back, v1_close};
