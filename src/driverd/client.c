/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asks ctr-gpu-driverd: one child, one question, one answer. However the call ends, the child is killed and reaped
 * before the result is looked at. The child of a watch lives until driverd_watch_end().
 */

#include "driverd/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/str.h"
#include "driverd/driverd.h"
#include "system/own_programs.h"

static const char dxcore_advice[] =
	"The inventory source \"ioctl\" does without this library (ctr-gpu-config(5), key \"inventory\").";

/* One question to a child, whatever it is about. */
struct question {
	enum driverd_procedure procedure;
	const char *library; /* absolute path */
	const char *without; /* of a watch */
	bool opens_devices;  /* the library opens device nodes for writing */
	const char *advice;  /* the next thing to try when it fails, one line */
	const char *device;  /* what it hangs in when it hangs for good */
	const char *hang_advice;
};

/* ---- the child ---- */

enum { REAP_MS = 2000, SIGNAL_SIZE = 24 };

struct child {
	pid_t pid;
	int socket;
};

/*
 * The child borrows this process's memory and stack until it runs the program, so it does nothing but that. All signals
 * are blocked meanwhile, lest a handler of the caller's run in it; the program unblocks them. posix_spawn(3) does the
 * same with sixty system calls more, for it looks at every signal's handler.
 */
static __attribute__((noinline)) int driverd_run(const char *program, char *const *arguments, int socket,
						 pid_t *ret_pid)
{
	char *const environment[] = {NULL};
	volatile int failure = 0;
	pid_t pid = vfork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		/* dup2(2) onto itself would leave the descriptor O_CLOEXEC. */
		if (socket == DRIVERD_SOCKET ? fcntl(socket, F_SETFD, 0) == 0 : dup2(socket, DRIVERD_SOCKET) >= 0)
			(void)execve(program, arguments, environment);
		failure = errno;
		_exit(EXIT_FAILURE);
	}
	if (failure != 0) {
		(void)waitpid(pid, NULL, 0);
		return -failure;
	}
	*ret_pid = pid;
	return 0;
}

static int driverd_spawn(const char *program, unsigned timeout_ms, bool opens_devices, int socket, pid_t *ret_pid)
{
	char milliseconds[16];
	char *const arguments[] = {(char *)"ctr-gpu-driverd", milliseconds,
				   opens_devices ? (char *)DRIVERD_OPENS_DEVICES : NULL, NULL};
	sigset_t all, mask;
	int r;

	(void)snprintf(milliseconds, sizeof(milliseconds), "%u", timeout_ms);
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &mask);
	r = driverd_run(program, arguments, socket, ret_pid);
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return r;
}

static int driverd_start(const struct settings *settings, const struct question *question, unsigned timeout_ms,
			 struct child *ret, struct err *err)
{
	_cleanup_free_ char *program = NULL;
	_cleanup_close_ int ours = -1, theirs = -1;
	int pair[2], r;

	r = own_programs_find_driverd(settings, question->advice, &program, err);
	if (r != 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, -errno, "cannot make a socket for ctr-gpu-driverd: %m");
	ours = pair[0];
	theirs = pair[1];
	r = driverd_spawn(program, timeout_ms, question->opens_devices, theirs, &ret->pid);
	if (r < 0)
		return err_set(err, r, "cannot start %s: %m", program);
	ret->socket = steal_fd(&ours);
	return 0;
}

/*
 * Waits for a child that has been killed. One that the kernel holds does not die: dxgkrnl waits for the host's answers
 * with wait_for_completion(), which no signal ends (drivers/hv/dxgkrnl/dxgvmbus.c). It is left behind; the process that
 * adopts it reaps it.
 *
 * Return: the flags for waitpid(2): WNOHANG once the child has ended or been given up.
 */
static int driverd_wait_bounded(pid_t pid)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = {.fd = pidfd, .events = POLLIN};

	/* Before Linux 5.3 there is only waiting. */
	if (pidfd < 0)
		return 0;
	while (poll(&end, 1, REAP_MS) < 0 && errno == EINTR)
		;
	return WNOHANG;
}

/*
 * @ret_status: of waitpid(2); 0 if the child was reaped elsewhere (SIGCHLD ignored)
 *
 * Return: whether the child is gone.
 */
static bool driverd_stop(struct child *child, int *ret_status)
{
	int flags;
	pid_t pid;

	*ret_status = 0;
	(void)close(child->socket);
	(void)kill(child->pid, SIGKILL);
	flags = driverd_wait_bounded(child->pid);
	do {
		pid = waitpid(child->pid, ret_status, flags);
	} while (pid < 0 && errno == EINTR);
	return pid != 0;
}

/* ---- the call ---- */

/* Waits for a datagram or the end of the child. Return: 0 or negative errno. */
static int driverd_wait_answer(int socket, unsigned timeout_ms)
{
	struct pollfd answer = {.fd = socket, .events = POLLIN};
	const int64_t end = clock_now_ms() + timeout_ms;
	int64_t left = timeout_ms;
	int r;

	while ((r = poll(&answer, 1, (int)left)) < 0 && errno == EINTR) {
		left = end - clock_now_ms();
		left = left < 0 ? 0 : left;
	}
	return r > 0 ? 0 : r < 0 ? -errno : -ETIMEDOUT;
}

static int driverd_send(int socket, const struct question *question)
{
	const struct driverd_request asked = {.procedure = question->procedure,
					      .library = (char *)(uintptr_t)question->library,
					      .without = (char *)(uintptr_t)question->without};
	_cleanup_free_ unsigned char *datagram = malloc(DRIVERD_DATAGRAM_MAX);
	ssize_t size;

	if (!datagram)
		return -ENOMEM;
	size = (ssize_t)protocol_write_request(&asked, datagram);
	if (size == 0)
		return -ENAMETOOLONG;
	return send(socket, datagram, (size_t)size, MSG_NOSIGNAL) == size ? 0 : -EPIPE;
}

/* Return: 0; -EAGAIN: there is none; -EPIPE; -EBADMSG; -ENOMEM. */
static int driverd_receive(int socket, enum driverd_procedure procedure, struct driverd_reply *ret)
{
	_cleanup_free_ unsigned char *datagram = malloc(DRIVERD_DATAGRAM_MAX);
	ssize_t size;

	if (!datagram)
		return -ENOMEM;
	/* With MSG_TRUNC the size is the whole datagram's, also if only a part was copied. */
	size = recv(socket, datagram, DRIVERD_DATAGRAM_MAX, MSG_DONTWAIT | MSG_TRUNC);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (size <= 0)
		return -EPIPE;
	return protocol_read_reply(procedure, datagram, (size_t)size, ret) ? 0 : -EBADMSG;
}

/* One datagram each way. What else the child sends stays in the kernel, which bounds it, and ends with the socket. */
static int driverd_converse(int socket, const struct question *question, unsigned timeout_ms, struct driverd_reply *ret)
{
	int r = driverd_send(socket, question);

	if (r == 0)
		r = driverd_wait_answer(socket, timeout_ms);
	if (r == 0)
		r = driverd_receive(socket, question->procedure, ret);
	return r == -EAGAIN ? -EPIPE : r;
}

/* Real-time signals have no names. */
static void driverd_name_signal(int number, char ret[SIGNAL_SIZE])
{
	const char *name = sigabbrev_np(number);

	if (name)
		(void)snprintf(ret, SIGNAL_SIZE, "SIG%s", name);
	else
		(void)snprintf(ret, SIGNAL_SIZE, "signal %d", number);
}

/* Why the answer is missing. A child that driverd_stop() killed has the same status as one that timed out. */
static int driverd_explain_silence(int failure, int wait_status, const struct settings *settings,
				   const struct question *question, struct err *err)
{
	const char *library = question->library, *advice = question->advice;
	char signal[SIGNAL_SIZE];

	if (failure == -ENOMEM)
		return failure;
	if (failure == -ETIMEDOUT)
		return err_set_advised(err, CTR_GPU_E_DRIVER_TIMEOUT,
				       ("ctr-gpu-driverd: %s did not answer within %g s", library,
					settings->driver_timeout_ms / 1000.0),
				       ("%s", advice));
	if (failure != -EBADMSG && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) != SIGKILL) {
		driverd_name_signal(WTERMSIG(wait_status), signal);
		return err_set_advised(err, CTR_GPU_E_DRIVER_LIBRARY,
				       ("ctr-gpu-driverd: %s crashed (%s)", library, signal), ("%s", advice));
	}
	if (failure != -EBADMSG && WIFEXITED(wait_status))
		return err_set_advised(err, CTR_GPU_E_DRIVER_LIBRARY,
				       ("ctr-gpu-driverd: ended with status %d before %s had answered",
					WEXITSTATUS(wait_status), library),
				       ("%s", advice));
	return err_set_advised(err, CTR_GPU_E_DRIVER_LIBRARY,
			       ("ctr-gpu-driverd: what it sent about %s cannot be read", library), ("%s", advice));
}

static const char *driverd_step(enum driverd_status status)
{
	switch (status) {
	case DRIVERD_NOT_CONFINED:
		return "is not loaded, since the process that would load it cannot give up its rights";
	case DRIVERD_NOT_LOADED:
		return "cannot be loaded";
	case DRIVERD_NO_SYMBOLS:
		return "is not the library that it should be";
	default:
		return "reports a failure";
	}
}

static int driverd_explain_status(const struct question *question, const struct driverd_reply *reply, struct err *err)
{
	char none[] = "it does not say why", *message = reply->message ? reply->message : none;

	/* The child's words are as hostile as the library in it. */
	str_make_printable(message);
	return err_set_advised(err, CTR_GPU_E_DRIVER_LIBRARY,
			       ("ctr-gpu-driverd: %s %s: %s", question->library, driverd_step(reply->status), message),
			       ("%s", question->advice));
}

/*
 * client_query() - start a child, ask it, end it
 * @ret: DRIVERD_OK and what was asked for, owned by the caller
 *
 * Return: 0; CTR_GPU_E_DRIVER_LIBRARY, CTR_GPU_E_DRIVER_TIMEOUT or negative errno with @err set.
 */
static int client_query(const struct settings *settings, const struct question *question, struct driverd_reply *ret,
			struct err *err)
{
	_cleanup_driverd_answer_ struct driverd_reply reply = {0};
	struct child child = {.socket = -1};
	int r, wait_status;

	r = driverd_start(settings, question, settings->driver_timeout_ms, &child, err);
	if (r != 0)
		return r;
	r = driverd_converse(child.socket, question, settings->driver_timeout_ms, &reply);
	if (!driverd_stop(&child, &wait_status))
		return err_set_advised(
			err, -ETIMEDOUT,
			("the driver does not answer: ctr-gpu-driverd hangs in a call to %s that nothing can end",
			 question->device),
			("%s", question->hang_advice));
	if (r < 0)
		return driverd_explain_silence(r, wait_status, settings, question, err);
	if (reply.status != DRIVERD_OK)
		return driverd_explain_status(question, &reply, err);
	*ret = steal_struct(&reply);
	return 0;
}

int driverd_dxcore_adapters(const struct settings *settings, const char *library, struct dxg_facts **ret,
			    size_t *ret_count, struct err *err)
{
	const struct question question = {
		.procedure = DRIVERD_DXCORE_ADAPTERS,
		.library = library,
		.advice = dxcore_advice,
		.device = PATH_DXG,
		.hang_advice = "Run wsl --shutdown in Windows, or restart the virtual machine.",
	};
	struct driverd_reply reply;
	int r;

	r = client_query(settings, &question, &reply, err);
	if (r != 0)
		return r;
	*ret = reply.facts;
	*ret_count = reply.fact_count;
	return 0;
}

/* What only NVIDIA's own libraries know. */

static const char hang_advice[] = "Look for messages of the driver in dmesg; the machine may have to be restarted.";

int driverd_nvml_names(const struct settings *settings, const char *library, bool opens_devices, const char *advice,
		       struct driverd_name **ret, size_t *ret_count, struct err *err)
{
	const struct question question = {
		.procedure = DRIVERD_NVML_NAMES,
		.library = library,
		.opens_devices = opens_devices,
		.advice = advice,
		.device = opens_devices ? PATH_NVIDIACTL : PATH_DXG,
		.hang_advice = hang_advice,
	};
	struct driverd_reply reply;
	int r;

	r = client_query(settings, &question, &reply, err);
	if (r != 0)
		return r;
	*ret = reply.names;
	*ret_count = reply.name_count;
	return 0;
}

int driverd_nvml_processes(const struct settings *settings, const char *library, struct driverd_name **ret,
			   size_t *ret_count, struct driverd_process **ret_processes, size_t *ret_process_count,
			   struct err *err)
{
	const struct question question = {
		.procedure = DRIVERD_NVML_PROCESSES,
		.library = library,
		.opens_devices = true,
		.advice = "\"ctr-gpu info --containers\" shows without it which containers have which GPUs.",
		.device = PATH_NVIDIACTL,
		.hang_advice = hang_advice,
	};
	struct driverd_reply reply;
	int r;

	r = client_query(settings, &question, &reply, err);
	if (r != 0)
		return r;
	*ret = reply.names;
	*ret_count = reply.name_count;
	*ret_processes = reply.processes;
	*ret_process_count = reply.process_count;
	return 0;
}

static const char watch_advice[] = "GPUs are taken for well as long as they are there.";

int driverd_watch_start(const struct settings *settings, const char *library, const char *without,
			struct driverd_watch *ret, struct err *err)
{
	const struct question question = {
		.procedure = DRIVERD_NVML_WATCH,
		.library = library,
		.without = without,
		.opens_devices = true,
		.advice = watch_advice,
	};
	struct child child = {.socket = -1};
	int r = driverd_start(settings, &question, DRIVERD_NO_DEADLINE, &child, err);

	if (r != 0)
		return r;
	*ret = (struct driverd_watch){.pid = child.pid, .socket = child.socket};
	r = driverd_send(child.socket, &question);
	if (r == 0)
		return 0;
	driverd_watch_end(ret);
	return err_set(err, r, "cannot ask ctr-gpu-driverd: %m");
}

int driverd_watch_read(const struct driverd_watch *watch, struct driverd_event *ret, struct err *err)
{
	const struct question question = {.library = "NVML", .advice = watch_advice};
	_cleanup_driverd_answer_ struct driverd_reply reply = {0};
	int r = driverd_receive(watch->socket, DRIVERD_NVML_WATCH, &reply);

	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return r == -ENOMEM ? r : -EPIPE;
	if (reply.status != DRIVERD_OK)
		return driverd_explain_status(&question, &reply, err);
	*ret = reply.event;
	reply.event.uuid = NULL;
	return 1;
}

void driverd_watch_end(struct driverd_watch *watch)
{
	struct child child = {.pid = watch->pid, .socket = watch->socket};
	int ignored;

	if (watch->pid)
		(void)driverd_stop(&child, &ignored);
	*watch = DRIVERD_WATCH_NONE;
}

int driverd_cuda_version(const struct settings *settings, const char *library, int *ret_major, int *ret_minor,
			 struct err *err)
{
	const struct question question = {
		.procedure = DRIVERD_CUDA_VERSION,
		.library = library,
		.advice = "Without it requirements on the CUDA version are warnings.",
		.device = "libcuda",
		.hang_advice = hang_advice,
	};
	struct driverd_reply reply;
	int r;

	r = client_query(settings, &question, &reply, err);
	if (r != 0)
		return r;
	if (reply.version < 1000 || reply.version > 999 * 1000)
		return err_set(err, CTR_GPU_E_DRIVER_LIBRARY, "%s says that its CUDA version is %d", library,
			       reply.version);
	*ret_major = reply.version / 1000;
	*ret_minor = reply.version % 1000 / 10;
	return 0;
}
