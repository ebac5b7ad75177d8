/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tells systemd of devices while it runs, as runc does: SetUnitProperties (org.freedesktop.systemd1(5)). What it reads
 * of our file at the next daemon-reload it would not know before, and any other change of the unit ("docker update")
 * makes it write the device rules that it knows of. The socket is the one that systemctl uses for root, where systemd
 * itself answers and no bus need run; D-Bus' specification tells the bytes.
 */

#include "devcgroup/internal.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

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
