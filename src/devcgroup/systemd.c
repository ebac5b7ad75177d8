/* SPDX-License-Identifier: Apache-2.0 */

/*
 * systemd writes the device rules of a unit's cgroup again at every daemon-reload, from what it knows of the unit: the
 * GPU of a running container would be gone ("Failed to initialize NVML: Unknown Error"). It reads NAME.d/NUMBER-*.conf
 * beside a unit at the same occasion, so what we allowed is written there (systemd.unit(5), "Unit File Load Path"). It
 * removes that folder with the unit if it has read it since; otherwise the hook of the container's end or the next run
 * of ours does.
 */

#include "devcgroup/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

/* ---- asking systemd ---- */

/*
 * Tells systemd of devices while it runs, as runc does: SetUnitProperties (org.freedesktop.systemd1(5)). What it reads
 * of our file at the next daemon-reload it would not know before, and any other change of the unit ("docker update")
 * makes it write the device rules that it knows of. The socket is the one that systemctl uses for root, where systemd
 * itself answers and no bus need run; D-Bus' specification tells the bytes.
 */

enum {
	ASK_MAX = 64 * 1024,
	ANSWERS_MAX = 64 * 1024,
	WAIT_MS = 1000, /* systemd answers nothing during a daemon-reload */
	HEADER = 16,    /* of a message, before its fields */
	CALL = 1,
	RETURN = 2,
	ERROR = 3,
	FIELD_PATH = 1,
	FIELD_INTERFACE = 2,
	FIELD_MEMBER = 3,
	FIELD_DESTINATION = 6,
	FIELD_SIGNATURE = 8,
};

#define DEVICE_ALLOW "DeviceAllow="

/* Numbers are in the sender's order, which the first byte tells. */
static const char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 'l' : 'B';

/* ---- the call ---- */

struct ask_message {
	unsigned char *data; /* all zeros behind @size */
	size_t size;
	bool full;
};

static void ask_put(struct ask_message *message, const void *data, size_t size)
{
	if (size > ASK_MAX - message->size) {
		message->full = true;
		return;
	}
	memcpy(message->data + message->size, data, size);
	message->size += size;
}

static void ask_align(struct ask_message *message, size_t alignment)
{
	static const char zeros[8];

	ask_put(message, zeros, (alignment - message->size % alignment) % alignment);
}

static void ask_put_number(struct ask_message *message, uint32_t number)
{
	ask_align(message, sizeof(number));
	ask_put(message, &number, sizeof(number));
}

static void ask_put_string(struct ask_message *message, const char *text, size_t length)
{
	ask_put_number(message, (uint32_t)length);
	ask_put(message, text, length);
	ask_put(message, "", 1);
}

static void ask_put_signature(struct ask_message *message, const char *text)
{
	const unsigned char length = (unsigned char)strlen(text);

	ask_put(message, &length, 1);
	ask_put(message, text, length + 1U);
}

/* An array of structures. Return: where they begin, for ask_end_array(). */
static size_t ask_begin_array(struct ask_message *message)
{
	ask_put_number(message, 0);
	ask_align(message, 8);
	return message->size;
}

/* @length: where the array's length is. */
static void ask_end_array(struct ask_message *message, size_t length, size_t begin)
{
	const uint32_t size = (uint32_t)(message->size - begin);

	memcpy(message->data + length, &size, sizeof(size));
}

static void ask_put_field(struct ask_message *message, unsigned char field, const char *type, const char *text)
{
	ask_align(message, 8);
	ask_put(message, &field, 1);
	ask_put_signature(message, type);
	if (*type == 'g')
		ask_put_signature(message, text);
	else
		ask_put_string(message, text, strlen(text));
}

static void ask_put_header(struct ask_message *message)
{
	const unsigned char start[] = {(unsigned char)order, CALL, 0, 1};

	ask_put(message, start, sizeof(start));
	ask_put_number(message, 0); /* the body's size, when it is known */
	ask_put_number(message, 1); /* the call's number */
	ask_put_number(message, 0); /* the fields' size */
	ask_put_field(message, FIELD_PATH, "o", "/org/freedesktop/systemd1");
	ask_put_field(message, FIELD_DESTINATION, "s", "org.freedesktop.systemd1");
	ask_put_field(message, FIELD_INTERFACE, "s", "org.freedesktop.systemd1.Manager");
	ask_put_field(message, FIELD_MEMBER, "s", "SetUnitProperties");
	ask_put_field(message, FIELD_SIGNATURE, "g", "sba(sv)");
	ask_end_array(message, HEADER - sizeof(uint32_t), HEADER);
	ask_align(message, 8);
}

/* One property: the devices of the lines of @text, NULL for none, which empties systemd's list. */
static void ask_put_property(struct ask_message *message, const char *text)
{
	size_t length, begin;

	ask_align(message, 8);
	ask_put_string(message, "DeviceAllow", strlen("DeviceAllow"));
	ask_put_signature(message, "a(ss)");
	ask_align(message, sizeof(uint32_t));
	length = message->size;
	begin = ask_begin_array(message);
	for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *path = line + strlen(DEVICE_ALLOW);
		size_t size = str_has_prefix(line, DEVICE_ALLOW) ? strcspn(path, " \n") : 0;

		if (size == 0 || path[size] != ' ')
			continue;
		ask_align(message, 8);
		ask_put_string(message, path, size);
		ask_put_string(message, path + size + 1, strcspn(path + size + 1, "\n"));
	}
	ask_end_array(message, length, begin);
}

static int ask_write(struct ask_message *message, const char *unit, bool anew, const char *text)
{
	size_t body, length, begin;

	ask_put_header(message);
	body = message->size;
	ask_put_string(message, unit, strlen(unit));
	ask_put_number(message, 1); /* until the next boot, as all of a transient unit */
	length = message->size;
	begin = ask_begin_array(message);
	if (anew)
		ask_put_property(message, NULL);
	ask_put_property(message, text);
	ask_end_array(message, length, begin);
	ask_end_array(message, sizeof(uint32_t), body);
	return message->full ? -E2BIG : 0;
}

/* ---- the answer ---- */

static uint32_t ask_number(const unsigned char *data)
{
	uint32_t number;

	memcpy(&number, data, sizeof(number));
	return number;
}

int devcgroup_systemd_answer(const char *data, size_t size)
{
	const char *end = memchr(data, '\n', size);
	const unsigned char *at, *behind = (const unsigned char *)data + size;

	if (!end)
		return 0;
	if (!str_has_prefix(data, "OK "))
		return -EACCES;
	/* Between replies systemd sends signals to every connected client; this skips them. */
	for (at = (const unsigned char *)end + 1; behind - at >= HEADER;) {
		uint64_t fields = ask_number(at + 12), body = ask_number(at + 4);
		uint64_t whole = HEADER + (fields + 7) / 8 * 8 + body;

		if (at[0] != (unsigned char)order)
			return -EBADMSG;
		if (at[1] == RETURN || at[1] == ERROR)
			return at[1] == RETURN ? 1 : -EREMOTEIO;
		if (whole > (uint64_t)(behind - at))
			return 0;
		at += whole;
	}
	return 0;
}

static int ask_wait(int fd)
{
	_cleanup_free_ char *data = malloc(ANSWERS_MAX);
	size_t size = 0;
	int r = data ? 0 : -ENOMEM;

	while (r == 0) {
		struct pollfd answer = {.fd = fd, .events = POLLIN};
		ssize_t count;

		if (poll(&answer, 1, WAIT_MS) != 1)
			return -ETIMEDOUT;
		count = read(fd, data + size, ANSWERS_MAX - size);
		if (count < 0)
			return -errno;
		/* Its end, or no room for more. */
		if (count == 0)
			return -ECONNRESET;
		size += (size_t)count;
		r = devcgroup_systemd_answer(data, size);
	}
	return r == 1 ? 0 : r;
}

static int ask_send(int fd, const void *data, size_t size)
{
	ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

	return sent == (ssize_t)size ? 0 : sent < 0 ? -errno : -EAGAIN;
}

int devcgroup_systemd_connect(void)
{
	return fd_connect("/run/systemd/private");
}

int devcgroup_systemd_ask(int fd, const char *unit, bool anew, const char *text)
{
	_cleanup_free_ unsigned char *data = calloc(1, ASK_MAX);
	struct ask_message message = {.data = data};
	char greeting[80], user[24];
	int r, length, size = 1;

	if (!data)
		return -ENOMEM;
	r = ask_write(&message, unit, anew, text);
	/* A zero, then the user's number in hexadecimal of its digits. */
	length = snprintf(user, sizeof(user), "%u", (unsigned)geteuid());
	size += snprintf(greeting + 1, sizeof(greeting) - 1, "AUTH EXTERNAL ");
	greeting[0] = '\0';
	for (int i = 0; i < length; i++)
		size += snprintf(greeting + size, sizeof(greeting) - (size_t)size, "%02x", (unsigned)user[i]);
	size += snprintf(greeting + size, sizeof(greeting) - (size_t)size, "\r\nBEGIN\r\n");
	if (r == 0)
		r = ask_send(fd, greeting, (size_t)size);
	if (r == 0)
		r = ask_send(fd, data, message.size);
	return r < 0 ? r : ask_wait(fd);
}

/* ---- drop-in files ---- */

/*
 * Sorts behind 50-DeviceAllow.conf, where engines' rules are: that begins by emptying the list. Numbers of the text and
 * of the container's cgroup follow: each container of a unit has files of its own, one for each list of devices, and
 * systemd takes all of them. So each can be removed without a look at the others.
 */
#define DROP_IN "50-ctr-gpu-"

/* A link beside the folder of transient units, of each unit that runs. */
#define RUNNING_UNIT "../units/invocation:"

enum { UNIT_FILE_MAX = 1024 * 1024, UNIT_PATH_MAX = 512, RACES_MAX = 8 };

static bool systemd_has_suffix(const char *text, const char *suffix)
{
	size_t size = strlen(text), tail = strlen(suffix);

	return size > tail && streq(text + size - tail, suffix);
}

/* The characters of a unit's name (systemd.unit(5)); no slash, and not starting with a dot. */
static bool systemd_is_unit_name(const char *name)
{
	if (*name == '.' || strlen(name) > 255 ||
	    !(systemd_has_suffix(name, ".scope") || systemd_has_suffix(name, ".service")))
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr(":-_.\\@", *name))
			return false;
	return true;
}

static bool systemd_has_file(int transient_fd, const char *prefix, const char *name)
{
	char path[UNIT_PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s%s", prefix, name);
	return fstatat(transient_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * A unit's cgroup lies in slices alone, so the outermost unit decides that this systemd has. What is below it, its
 * processes have named: a container that may make cgroups calls one as another container's unit. Units that are not
 * known here are those of a systemd outside of this machine. Only transient units are ours to change: their files are
 * removed with them.
 */
int devcgroup_find_unit(const char *path, const char *transient, char **ret_unit, size_t *ret_size)
{
	_cleanup_close_ int fd = -1;
	const char *end = path;

	*ret_unit = NULL;
	while (*end) {
		_cleanup_free_ char *name = NULL;
		const char *start = end + (*end == '/');

		end = start + strcspn(start, "/");
		name = strndup(start, (size_t)(end - start));
		if (!name)
			return -ENOMEM;
		if (!systemd_is_unit_name(name))
			continue;
		if (fd < 0)
			fd = open(transient, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return 0;
		if (systemd_has_file(fd, "", name)) {
			*ret_unit = steal_ptr(name);
			*ret_size = (size_t)(end - path);
			return 0;
		}
		if (systemd_has_file(fd, RUNNING_UNIT, name))
			return 0;
	}
	return 0;
}

/* Whether a unit file sets device rules; without any, one more would forbid all other devices ("closed"). */
static bool systemd_text_restricts(const char *text)
{
	static const char *const settings[] = {"DevicePolicy=strict", "DevicePolicy=closed", "DeviceAllow=/",
					       "DeviceAllow=char-", "DeviceAllow=block-"};

	for (const char *line = text; line; line = strchr(line, '\n'), line += line ? 1 : 0)
		for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
			if (str_has_prefix(line, settings[i]))
				return true;
	return false;
}

/* Whether a unit file names the device of a rule: by its number, as runc does, or by its path. */
static bool systemd_text_names(const char *text, const struct devcgroup_rule *rule)
{
	char number[64];

	(void)snprintf(number, sizeof(number), "/dev/%s/%u:%u ", rule->type == 'b' ? "block" : "char", rule->major,
		       rule->minor);
	for (const char *line = text; line; line = strchr(line, '\n'), line += line ? 1 : 0) {
		const char *value = str_has_prefix(line, "DeviceAllow=") ? line + strlen("DeviceAllow=") : "";

		if (str_has_prefix(value, number) ||
		    (rule->path && str_has_prefix(value, rule->path) && value[strlen(rule->path)] == ' '))
			return true;
	}
	return false;
}

/* @rule: NULL: whether any is set. */
static bool systemd_file_has(int folder_fd, const char *name, const struct devcgroup_rule *rule)
{
	_cleanup_free_ char *text = NULL;

	if (fd_read_file_at(folder_fd, name, UNIT_FILE_MAX, &text, NULL) < 0)
		return false;
	return rule ? systemd_text_names(text, rule) : systemd_text_restricts(text);
}

/* systemd keeps what engines asked for in the unit's file or, if they asked later, in drop-ins. */
static bool systemd_unit_has(const char *transient, const char *unit, const struct devcgroup_rule *rule)
{
	_cleanup_close_ int fd = open(transient, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *name = NULL;
	_cleanup_dir_ DIR *folder = NULL;
	const struct dirent *entry;
	bool says = false;

	if (fd < 0 || str_format(&name, "%s.d", unit) < 0)
		return false;
	if (systemd_file_has(fd, unit, rule))
		return true;
	folder = fd_open_directory(fd, name, O_NOFOLLOW);
	while (folder && !says && (entry = readdir(folder)))
		says = systemd_has_suffix(entry->d_name, ".conf") && !str_has_prefix(entry->d_name, DROP_IN) &&
		       systemd_file_has(directory_fd(folder), entry->d_name, rule);
	return says;
}

bool devcgroup_systemd_restricts(const char *transient, const char *unit)
{
	return systemd_unit_has(transient, unit, NULL);
}

bool devcgroup_systemd_knows(const char *transient, const char *unit, const struct devcgroup_rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!systemd_unit_has(transient, unit, &rules[i]))
			return false;
	return true;
}

/*
 * By its number, which systemd 240 and later take without a look at the node, and by its path for earlier ones: there
 * may be no such node where systemd lives.
 */
int devcgroup_drop_in_text(const char *unit, const struct devcgroup_rule *rules, size_t count, char **ret)
{
	_cleanup_free_ char *text = NULL;
	int r = str_format(&text, "# Written by ctr-gpu: the devices that the container was given.\n[%s]\n",
			   systemd_has_suffix(unit, ".scope") ? "Scope" : "Service");

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct devcgroup_rule *rule = &rules[i];
		const char *path = rule->path ? rule->path : "";
		/* A path that means itself in a unit file: no quotes, no specifiers, no blanks. */
		bool plain = str_has_prefix(path, "/dev/") && !strstr(path, "/..");

		for (; *path; path++)
			plain = plain && (isalnum((unsigned char)*path) || strchr("/-_.:+", *path));
		if (plain)
			r = str_append(&text, "DeviceAllow=%s %s\n", rule->path, rule->access);
		if (r == 0)
			r = str_append(&text, "DeviceAllow=/dev/%s/%u:%u %s\n", rule->type == 'b' ? "block" : "char",
				       rule->major, rule->minor, rule->access);
	}
	if (r == 0)
		*ret = steal_ptr(text);
	return r;
}

/* The file appears complete; a process that is killed before leaves nothing. Return: -EEXIST if it is there. */
static int systemd_write_file(int folder_fd, const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(folder_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644);
	_cleanup_free_ char *link = NULL;
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, strlen(text));
	if (r == 0)
		r = str_format(&link, "/proc/self/fd/%d", fd);
	if (r == 0 && (fchmod(fd, 0644) < 0 || linkat(AT_FDCWD, link, folder_fd, name, AT_SYMLINK_FOLLOW) < 0))
		r = -errno;
	return r;
}

/* Another hook may remove the folder, which is empty, at the same time. */
static int systemd_write_into(const char *folder, const char *name, const char *text)
{
	int r = -ENOENT;

	for (int race = 0; r == -ENOENT && race < RACES_MAX; race++) {
		_cleanup_close_ int fd = -1;

		if (mkdirat(AT_FDCWD, folder, 0755) < 0 && errno != EEXIST)
			return -errno;
		fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : systemd_write_file(fd, name, text);
	}
	return r;
}

/* Uses the descriptor of systemd's folder, since this may run in a container, which may have such a path, too. */
static void systemd_remove_drop_in(int transient, const char *name)
{
	char folder[UNDO_STEP_NAME_SIZE];
	const char *slash = strrchr(name, '/');

	if (!slash || strlen(name) >= UNDO_STEP_NAME_SIZE)
		return;
	(void)unlinkat(transient, name, 0);
	memcpy(folder, name, (size_t)(slash - name));
	folder[slash - name] = '\0';
	(void)unlinkat(transient, folder, AT_REMOVEDIR);
}

static void systemd_undo_drop_in(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)undo_log;
	systemd_remove_drop_in(undo_step->fds[0], undo_step->name);
}

/* Whether a file of ours in the unit's folder has the line. */
static bool systemd_is_wanted(int folder_fd, const char *line)
{
	_cleanup_dir_ DIR *folder = fd_open_directory(folder_fd, ".", O_NOFOLLOW);
	const struct dirent *entry;
	bool wanted = false;

	while (folder && !wanted && (entry = readdir(folder))) {
		_cleanup_free_ char *text = NULL;

		wanted = str_has_prefix(entry->d_name, DROP_IN) &&
			 fd_read_file_at(folder_fd, entry->d_name, UNIT_FILE_MAX, &text, NULL) == 0 &&
			 strstr(text, line);
	}
	return wanted;
}

int devcgroup_systemd_left(int folder, const char *gone, char **ret)
{
	_cleanup_free_ char *text = NULL, *left = NULL;
	/* systemd writes all that it knows into this file whenever it is asked. */
	int r = fd_read_file_at(folder, "50-DeviceAllow.conf", UNIT_FILE_MAX, &text, NULL);

	if (r == 0)
		r = str_format(&left, "%s", "");
	for (const char *line = text; r == 0 && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		_cleanup_free_ char *own = NULL;

		r = str_format(&own, "%.*s\n", (int)strcspn(line, "\n"), line);
		if (r == 0 && str_has_prefix(own, "DeviceAllow=/") && strstr(gone, own) &&
		    !systemd_is_wanted(folder, own))
			continue;
		if (r == 0)
			r = str_append(&left, "%s", own);
	}
	if (r == 0)
		*ret = steal_ptr(left);
	return r;
}

/* The unit's next change would bring the devices back. */
static void systemd_drop(int transient_fd, const char *name, const char *gone)
{
	const char *slash = strrchr(name, '/');
	_cleanup_free_ char *folder = slash ? strndup(name, (size_t)(slash - name)) : NULL, *left = NULL;
	_cleanup_close_ int fd = -1, systemd = -1;

	if (!folder || !systemd_has_suffix(folder, ".d"))
		return;
	fd = openat(transient_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || devcgroup_systemd_left(fd, gone, &left) < 0)
		return;
	folder[strlen(folder) - strlen(".d")] = '\0';
	systemd = devcgroup_systemd_connect();
	if (systemd >= 0)
		(void)devcgroup_systemd_ask(systemd, folder, true, left);
}

void devcgroup_remove_drop_in(const char *transient, const char *name)
{
	_cleanup_close_ int fd = open(transient, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;

	if (fd < 0)
		return;
	if (fd_read_file_at(fd, name, UNIT_FILE_MAX, &text, NULL) < 0)
		text = NULL;
	systemd_remove_drop_in(fd, name);
	if (text)
		systemd_drop(fd, name, text);
}

/* @name: of the file, below @transient. Return: 0; -EEXIST if the container has it; -errno. */
static int systemd_write_new(const char *transient, const char *folder, const char *name, const char *text,
			     struct undo_log *undo_log)
{
	struct undo_step undo_step = {.undo = systemd_undo_drop_in, .fds = {-1, -1, -1}};
	_cleanup_close_ int fd = open(transient, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	undo_step.fds[0] = fd;
	r = fd < 0 ? -errno : undo_log_add(undo_log, &undo_step, name);
	if (r < 0)
		return r;
	r = systemd_write_into(folder, strrchr(name, '/') + 1, text);
	if (r == -EEXIST)
		undo_log_pop(undo_log);
	else
		(void)steal_fd(&fd);
	return r;
}

int devcgroup_write_drop_in(const char *transient, const char *unit, const struct devcgroup_id *cgroup,
			    const struct devcgroup_rule *rules, size_t count, struct undo_log *undo_log,
			    char **ret_name, struct err *err)
{
	_cleanup_free_ char *folder = NULL, *name = NULL, *text = NULL;
	int r = str_format(&folder, "%s/%s.d", transient, unit);

	if (r == 0)
		r = devcgroup_drop_in_text(unit, rules, count, &text);
	if (r == 0)
		r = str_format(&name, "%s.d/" DROP_IN "%016" PRIx64 "-%" PRIx64 ".conf", unit, str_hash(text),
			       (uint64_t)cgroup->inode);
	if (r == 0)
		r = systemd_write_new(transient, folder, name, text, undo_log);
	if (r == -EEXIST)
		return 0;
	if (r < 0)
		return err_set(err, r, "cannot write %s/%s, for systemd to leave the container its GPU: %m", transient,
			       name ? name : unit);
	*ret_name = steal_ptr(name);
	return 0;
}

static bool systemd_is_older(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/*
 * A unit of the same name may have been started since: it would have the devices of its predecessor at the next
 * daemon-reload. systemd writes the unit's file when the unit is made, and the process that writes a file of ours has
 * seen that one.
 */
static bool systemd_is_stale(const struct stat *unit, int folder_fd, const char *name)
{
	struct stat st;

	return !unit || (fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			 systemd_is_older(&st.st_mtim, &unit->st_mtim));
}

/* Return: whether there was one. */
static bool systemd_remove_if_stale(int transient_fd, const char *folder)
{
	_cleanup_free_ char *unit = strndup(folder, strlen(folder) - strlen(".d"));
	const struct dirent *entry;
	_cleanup_dir_ DIR *files = NULL;
	bool ours = false, there;
	struct stat st;

	if (!unit || !systemd_is_unit_name(unit))
		return false;
	there = fstatat(transient_fd, unit, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!there && errno != ENOENT)
		return false;
	files = fd_open_directory(transient_fd, folder, O_NOFOLLOW);
	while (files && (entry = readdir(files)))
		if (str_has_prefix(entry->d_name, DROP_IN) &&
		    systemd_is_stale(there ? &st : NULL, directory_fd(files), entry->d_name))
			ours = unlinkat(directory_fd(files), entry->d_name, 0) == 0 || ours;
	if (ours)
		(void)unlinkat(transient_fd, folder, AT_REMOVEDIR);
	return ours;
}

bool devcgroup_remove_stale_drop_ins(const char *transient, const char *unit)
{
	_cleanup_dir_ DIR *folder = fd_open_directory(AT_FDCWD, transient, O_NOFOLLOW);
	const struct dirent *entry;
	bool found = false;

	while (folder && (entry = readdir(folder)))
		if (systemd_has_suffix(entry->d_name, ".d") &&
		    systemd_remove_if_stale(directory_fd(folder), entry->d_name))
			found = found || (unit && str_has_prefix(entry->d_name, unit) &&
					  streq(entry->d_name + strlen(unit), ".d"));
	return found;
}
