/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/users/users.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/paths.h"
#include "lib/context.h"
#include "vcuda/protocol/pidref.h"

enum {
	BACKLOG = 128,
	SEATS = 64,          /* requests at once */
	SEATS_OF_USER = 16,  /* of these, a user's */
	AT_WORK_OF_USER = 4, /* and of these, what is worked at */
	TICK_MS = 500,
	LEAST_MS = 250,  /* of a request: so the audit is not filled, nor the driver asked, all the time */
	REQUEST_S = 300, /* no request takes longer */
	LISTENER = 3,
	REFUSED = 32,
	REFUSED_MS = 3000,
};

/* A request: it waits, or a process of its own works at it. */
struct seat {
	pid_t pid; /* 0: it waits */
	int connection, peer;
	struct account account;
};

struct counter {
	int listener;
	struct seat seats[SEATS];
	size_t count;
	struct {
		int connection; /* 0: none */
		int64_t until;
	} refused[REFUSED]; /* kept open for a while: a peer that writes to a closed one gets EPIPE, not the reason */
	size_t refused_at;
};

static const char too_many[] = "too many containers begin at once; try again";

/* ---- who may ---- */

/* Read anew each time: what an administrator changes counts from then on. */
static const struct vcuda_user *users_look_up(int connection, const struct account *account, struct settings *settings,
					      struct err *err)
{
	int r;

	settings_init(settings);
	r = settings_load(settings, NULL, err);
	if (r != 0)
		return NULL;
	return account_find_user(settings, account, connection);
}

static void users_refuse_for_good(struct counter *counter, int *connection, const char *why)
{
	const size_t at = counter->refused_at++ % REFUSED;

	wish_refuse(*connection, why);
	if (counter->refused[at].connection > 0)
		fd_closer_close(&counter->refused[at].connection);
	counter->refused[at].connection = steal_fd(connection);
	counter->refused[at].until = clock_now_ms() + REFUSED_MS;
}

/* Return: whether some are still open. */
static bool users_close_refused(struct counter *counter)
{
	bool any = false;

	for (size_t i = 0; i < REFUSED; i++) {
		if (counter->refused[i].connection <= 0)
			continue;
		if (counter->refused[i].until > clock_now_ms()) {
			any = true;
			continue;
		}
		fd_closer_close(&counter->refused[i].connection);
		counter->refused[i].connection = 0;
	}
	return any;
}

static void users_refuse_unknown(struct counter *counter, int *connection, const struct account *account,
				 const struct err *err)
{
	char why[256];

	if (*err->text)
		(void)snprintf(why, sizeof(why), "its configuration cannot be used: %.200s", err->text);
	else
		(void)snprintf(
			why, sizeof(why),
			"uid %u gets no GPU by vCUDA here; the administrator allows it by {\"vcuda\": {\"users\": "
			"[{\"uid\": %u}]}} in " PATH_CONFIG,
			account->uid, account->uid);
	users_refuse_for_good(counter, connection, why);
}

/* ---- requests ---- */

static _Noreturn void users_work(struct counter *counter, const struct seat *seat)
{
	const struct timespec least = {.tv_nsec = LEAST_MS * 1000000L};
	const struct vcuda_user *user;
	struct settings settings;
	struct err err = {0};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A group of its own: those of ours are only there to close something (pidref.c), and nobody counts them. */
	(void)setpgid(0, 0);
	/* fd_closer_close() may have had it end nothing. */
	(void)signal(SIGALRM, SIG_DFL);
	(void)alarm(REQUEST_S);
	(void)close(counter->listener);
	user = users_look_up(seat->connection, &seat->account, &settings, &err);
	if (user)
		wish_serve(seat->connection, &seat->account, seat->peer, user, &settings);
	(void)shutdown(seat->connection, SHUT_RDWR);
	(void)nanosleep(&least, NULL);
	_exit(0);
}

static size_t users_count(const struct counter *counter, uid_t uid, bool at_work)
{
	size_t count = 0;

	for (size_t i = 0; i < counter->count; i++)
		count += counter->seats[i].account.uid == uid && (!at_work || counter->seats[i].pid > 0);
	return count;
}

static void users_leave(struct counter *counter, size_t number)
{
	fd_closer_close(&counter->seats[number].connection);
	cleanup_closep(&counter->seats[number].peer);
	counter->seats[number] = counter->seats[--counter->count];
}

static void users_reap(struct counter *counter)
{
	for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;)
		for (size_t i = 0; i < counter->count; i++)
			if (counter->seats[i].pid == pid) {
				users_leave(counter, i);
				break;
			}
}

static void users_set_to_work(struct counter *counter)
{
	for (size_t i = 0; i < counter->count; i++) {
		struct seat *seat = &counter->seats[i];

		if (seat->pid > 0 || users_count(counter, seat->account.uid, true) >= AT_WORK_OF_USER)
			continue;
		seat->pid = fork();
		if (seat->pid == 0)
			users_work(counter, seat);
		if (seat->pid > 0)
			(void)setpgid(seat->pid, 0);
		if (seat->pid < 0) {
			users_refuse_for_good(counter, &seat->connection,
					      "the host has no room for another process; try again");
			users_leave(counter, i--);
		}
	}
}

/*
 * Where no seat is free, the user with most gives up one that no process serves yet, if @uid has two fewer.
 * Return: whether there is one now.
 */
static bool users_make_room(struct counter *counter, uid_t uid)
{
	size_t most = users_count(counter, uid, false) + 2, at = SEATS;

	if (counter->count < SEATS)
		return true;
	for (size_t i = 0; i < counter->count; i++) {
		const size_t own = users_count(counter, counter->seats[i].account.uid, false);

		if (counter->seats[i].pid == 0 && own >= most) {
			most = own;
			at = i;
		}
	}
	if (at == SEATS)
		return false;
	users_refuse_for_good(counter, &counter->seats[at].connection, too_many);
	users_leave(counter, at);
	return true;
}

/* Who is no user of the settings, or has requests enough, takes no seat. */
static void users_accept(struct counter *counter)
{
	_cleanup_close_ int connection = accept4(counter->listener, NULL, NULL, SOCK_CLOEXEC), peer = -1;
	struct settings settings = {0};
	struct account account;
	struct err err = {0};

	if (connection < 0)
		return;
	if (account_of_peer(connection, &account, &peer) < 0) {
		users_refuse_for_good(
			counter, &connection,
			"the process that asks is in no user namespace of a container, or another user made that");
		return;
	}
	if (!users_look_up(connection, &account, &settings, &err))
		users_refuse_unknown(counter, &connection, &account, &err);
	else if (users_count(counter, account.uid, false) >= SEATS_OF_USER || !users_make_room(counter, account.uid))
		users_refuse_for_good(counter, &connection, too_many);
	else
		counter->seats[counter->count++] =
			(struct seat){.connection = steal_fd(&connection), .peer = steal_fd(&peer), .account = account};
	settings_clear(&settings);
}

/* ---- the process ---- */

/* Every user may connect; the peer's uid decides what it gets. Only root can put a socket into this directory. */
static int users_listen(void)
{
	const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = PATH_VCUDA_USERS_SOCKET};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t old;
	int r;

	if (fd < 0)
		return -errno;
	fd_closer_refuse(fd);
	(void)unlink(PATH_VCUDA_USERS_SOCKET);
	old = umask(0111);
	r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	(void)umask(old);
	if (r < 0 || listen(fd, BACKLOG) < 0)
		return r < 0 ? r : -errno;
	return steal_fd(&fd);
}

static void users_wake(int number)
{
	(void)number;
}

static _Noreturn void users_run(int listener, pid_t manager)
{
	const struct sigaction wake = {.sa_handler = users_wake};
	static struct counter counter;
	sigset_t none;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != manager || dup2(listener, LISTENER) < 0)
		_exit(0);
	closefrom(LISTENER + 1);
	(void)prctl(PR_SET_NAME, "vcudad-users");
	(void)setpgid(0, 0);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)sigaction(SIGCHLD, &wake, NULL);
	counter.listener = LISTENER;
	for (;;) {
		struct pollfd wait = {.fd = LISTENER, .events = POLLIN};

		if (poll(&wait, 1, users_close_refused(&counter) || counter.count > 0 ? TICK_MS : -1) > 0)
			users_accept(&counter);
		users_reap(&counter);
		users_set_to_work(&counter);
	}
}

static bool users_are_allowed(void)
{
	struct settings settings;
	bool any;

	settings_init(&settings);
	/* What cannot be read is what each request says, once it is mended or not. */
	any = settings_load(&settings, NULL, NULL) != 0 || settings.vcuda_user_count > 0;
	settings_clear(&settings);
	return any;
}

int users_start(pid_t *ret)
{
	const pid_t manager = getpid();
	int listener;
	pid_t pid;

	*ret = 0;
	if (!users_are_allowed()) {
		(void)unlink(PATH_VCUDA_USERS_SOCKET);
		return 0;
	}
	listener = users_listen();
	if (listener < 0)
		return listener;
	pid = fork();
	if (pid == 0)
		users_run(listener, manager);
	(void)close(listener);
	*ret = pid > 0 ? pid : 0;
	return pid < 0 ? -errno : 0;
}
