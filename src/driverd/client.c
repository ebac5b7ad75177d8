/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asks ctr-gpu-driverd: one child, one question, one answer. However the call ends, the child is killed and reaped before
 * the result is looked at.
 */

#include "driverd/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "driverd/driverd.h"
#include "driverd/protocol.h"
#include "driverd/start.h"

static const char dxcore_advice[] =
	"The inventory source \"ioctl\" does without this library (ctr-gpu-config(5), key \"inventory\").";

/* ---- where the program is ---- */

/*
 * Whether nobody but the system and the caller decides what the file does. In a user namespace everything of the host's root
 * belongs to the overflow uid, and so does the running program: whoever owns that is trusted already.
 */
static bool is_trusted(const struct stat *file)
{
	struct stat running;

	if (!S_ISREG(file->st_mode) || (file->st_mode & (S_IWGRP | S_IWOTH)))
		return false;
	if (file->st_uid == 0 || file->st_uid == geteuid())
		return true;
	return stat("/proc/self/exe", &running) == 0 && file->st_uid == running.st_uid;
}

static int usual_places(struct strv *ret)
{
	char path[1024];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
	char *place, *slash;
	int r = 0;

	slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
	if (slash && (size_t)length < sizeof(path)) {
		r = str_format(&place, "%.*s/ctr-gpu-driverd", (int)(slash - path), path);
		if (r == 0)
			r = strv_take(ret, place);
		if (r == 0)
			r = str_format(&place, "%.*s/../libexec/ctr-gpu/ctr-gpu-driverd", (int)(slash - path), path);
		if (r == 0)
			r = strv_take(ret, place);
	}
	return r == 0 ? strv_add(ret, CTR_GPU_LIBEXECDIR "/ctr-gpu-driverd") : r;
}

/* A path that is set is the only one; of the usual ones the first that exists counts. */
static int find_program(const struct settings *settings, const char *advice, char **ret, struct err *err)
{
	_cleanup_strv_ struct strv places = {0};
	struct stat st;
	size_t i = 0;
	int r;

	r = settings->driverd ? strv_add(&places, settings->driverd) : usual_places(&places);
	if (r != 0)
		return r;
	while (i < places.count && stat(places.items[i], &st) < 0)
		i++;
	if (i == places.count)
		return err_set(err, -ENOENT, "ctr-gpu-driverd, which asks the driver's libraries, is not there (last looked for %s)\n"
			       "Install ctr-gpu completely. %s", places.items[places.count - 1], advice);
	if (!is_trusted(&st))
		return err_set(err, CTR_GPU_E_NO_PERMISSION,
			       "%1$s is not started, since others than root and the caller may change it\n"
			       "Run: chown root %1$s && chmod go-w %1$s", places.items[i]);
	*ret = steal_ptr(places.items[i]);
	return 0;
}

int driverd_find(const struct settings *settings, char **ret, struct err *err)
{
	return find_program(settings, dxcore_advice, ret, err);
}

/* ---- the child ---- */

enum { REAP_MS = 2000 };

struct child {
	pid_t pid;
	int socket;
};

/*
 * The child borrows this process's memory and stack until it runs the program, so it does nothing but that. All signals are
 * blocked meanwhile, lest a handler of the caller's run in it; the program unblocks them. posix_spawn(3) does the same with
 * sixty system calls more, for it looks at every signal's handler.
 */
static __attribute__((noinline)) int run(const char *program, char *const *arguments, int socket, pid_t *ret_pid)
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

static int spawn(const char *program, unsigned timeout_ms, bool opens_devices, int socket, pid_t *ret_pid)
{
	char milliseconds[16];
	char *const arguments[] = {(char *)"ctr-gpu-driverd", milliseconds, opens_devices ? (char *)DRIVERD_OPENS_DEVICES : NULL, NULL};
	sigset_t all, mask;
	int r;

	(void)snprintf(milliseconds, sizeof(milliseconds), "%u", timeout_ms);
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &mask);
	r = run(program, arguments, socket, ret_pid);
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return r;
}

static int start(const struct settings *settings, const struct question *question, struct child *ret, struct err *err)
{
	_cleanup_free_ char *program = NULL;
	_cleanup_close_ int ours = -1, theirs = -1;
	int pair[2], r;

	r = find_program(settings, question->advice, &program, err);
	if (r != 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, -errno, "cannot make a socket for ctr-gpu-driverd: %m");
	ours = pair[0];
	theirs = pair[1];
	r = spawn(program, settings->driver_timeout_ms, question->opens_devices, theirs, &ret->pid);
	if (r < 0)
		return err_set(err, r, "cannot start %s: %m", program);
	ret->socket = steal_fd(&ours);
	return 0;
}

/*
 * Waits for a child that has been killed. One that the kernel holds does not die: dxgkrnl waits for the host's answers with
 * wait_for_completion(), which no signal ends (drivers/hv/dxgkrnl/dxgvmbus.c). It is left behind, and whoever reaps us reaps it.
 *
 * Return: the flags for waitpid(2): WNOHANG once there is no more waiting to be done.
 */
static int wait_bounded(pid_t pid)
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
 * @ret_status: of waitpid(2); 0 if somebody else reaped the child (SIGCHLD ignored)
 *
 * Return: whether the child is gone.
 */
static bool stop(struct child *child, int *ret_status)
{
	int flags;
	pid_t pid;

	*ret_status = 0;
	(void)close(child->socket);
	(void)kill(child->pid, SIGKILL);
	flags = wait_bounded(child->pid);
	do {
		pid = waitpid(child->pid, ret_status, flags);
	} while (pid < 0 && errno == EINTR);
	return pid != 0;
}

/* ---- the call ---- */

/* libtirpc writes with write(2), so a child that is gone would send its caller a SIGPIPE. */
static void hold_sigpipe(sigset_t *ret_mask, bool *ret_was_pending)
{
	sigset_t pipe_only, pending;

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	(void)sigpending(&pending);
	*ret_was_pending = sigismember(&pending, SIGPIPE) == 1;
	(void)pthread_sigmask(SIG_BLOCK, &pipe_only, ret_mask);
}

static void release_sigpipe(const sigset_t *mask, bool was_pending)
{
	const struct timespec at_once = {0};
	sigset_t pipe_only;

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	if (!was_pending)
		(void)sigtimedwait(&pipe_only, NULL, &at_once);
	(void)pthread_sigmask(SIG_SETMASK, mask, NULL);
}

/* Return: what the RPC layer says; the answer is to be released with xdr_free() also when that is a failure. */
static enum clnt_stat call(int socket, const struct question *question, unsigned timeout_ms)
{
	struct timeval timeout = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	/* The address of a peer that is connected already; libtirpc only copies it. */
	struct sockaddr_storage nobody = {.ss_family = AF_UNIX};
	struct netbuf address = {.maxlen = sizeof(nobody), .len = sizeof(nobody.ss_family), .buf = &nobody};
	driverd_path path = (char *)question->library;
	enum clnt_stat result;
	CLIENT *client;

	client = clnt_vc_create(socket, &address, DRIVERD, DRIVERD_1, 0, 0);
	if (!client)
		return RPC_SYSTEMERROR;
	result = clnt_call(client, question->procedure, (xdrproc_t)xdr_driverd_path, (caddr_t)&path,
			   (xdrproc_t)question->decode, (caddr_t)question->answer, timeout);
	clnt_destroy(client);
	return result;
}

/* Why there is no answer. A child that was still running when stop() killed it has the same status as one that timed out. */
static int explain_silence(enum clnt_stat result, int status, const struct settings *settings, const struct question *question,
			   struct err *err)
{
	const char *library = question->library, *advice = question->advice;

	if (result == RPC_TIMEDOUT)
		return err_set(err, CTR_GPU_E_DRIVER_TIMEOUT, "ctr-gpu-driverd: %s did not answer within %g s\n%s", library,
			       settings->driver_timeout_ms / 1000.0, advice);
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		return err_set(err, CTR_GPU_E_DRIVER_LIBRARY, "ctr-gpu-driverd: %s crashed (SIG%s)\n%s", library,
			       sigabbrev_np(WTERMSIG(status)), advice);
	if (WIFEXITED(status))
		return err_set(err, CTR_GPU_E_DRIVER_LIBRARY,
			       "ctr-gpu-driverd: ended with status %d before %s had answered\n%s", WEXITSTATUS(status), library, advice);
	return err_set(err, CTR_GPU_E_DRIVER_LIBRARY, "ctr-gpu-driverd: no answer about %s: %s\n%s", library,
		       clnt_sperrno(result), advice);
}

static const char *step(driverd_status status)
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

/* The child's words are as hostile as the library in it. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

int client_explain_status(const struct question *question, int status, char *message, struct err *err)
{
	make_printable(message);
	return err_set(err, CTR_GPU_E_DRIVER_LIBRARY, "ctr-gpu-driverd: %s %s: %s\n%s", question->library, step((driverd_status)status),
		       message, question->advice);
}

int client_ask(const struct settings *settings, const struct question *question, struct err *err)
{
	enum clnt_stat result;
	bool pipe_was_pending;
	struct child child;
	sigset_t mask;
	int r, status;

	r = start(settings, question, &child, err);
	if (r != 0)
		return r;
	hold_sigpipe(&mask, &pipe_was_pending);
	result = call(child.socket, question, settings->driver_timeout_ms);
	release_sigpipe(&mask, pipe_was_pending);
	if (!stop(&child, &status))
		return err_set(err, -ETIMEDOUT, "the driver does not answer: ctr-gpu-driverd hangs in a call to %s that nothing can end\n%s",
			       question->device, question->hang_advice);
	return result == RPC_SUCCESS ? 0 : explain_silence(result, status, settings, question, err);
}

/* ---- the answer ---- */

static int take_text(const char *text, char **ret)
{
	if (!text[0])
		return 0;
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static int take_adapter(const driverd_adapter *adapter, struct dxg_facts *ret)
{
	int r;

	*ret = (struct dxg_facts){
		.luid = {.low = adapter->luid_low, .high = adapter->luid_high},
		.wddm_version = adapter->wddm_version,
		.type_bits = adapter->type_bits,
		.vendor_id = adapter->vendor_id,
		.device_id = adapter->device_id,
		.has_address = adapter->address,
	};
	if (adapter->address)
		ret->address = (struct d3dkmt_adapteraddress){
			.bus = adapter->address->bus,
			.device = adapter->address->device,
			.function = adapter->address->function,
		};
	r = take_text(adapter->name, &ret->name);
	return r < 0 ? r : take_text(adapter->store, &ret->store);
}

static int take_adapters(const driverd_dxcore_answer *answer, struct dxg_facts **ret, size_t *ret_count)
{
	size_t count = answer->driverd_dxcore_answer_u.adapters.adapters_len;
	struct dxg_facts *facts = calloc(count + 1, sizeof(*facts));
	int r = facts ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && r == 0; i++)
		r = take_adapter(&answer->driverd_dxcore_answer_u.adapters.adapters_val[i], &facts[i]);
	if (r < 0) {
		dxg_facts_free(facts, count);
		return r;
	}
	*ret = facts;
	*ret_count = count;
	return 0;
}

int driverd_dxcore_adapters(const struct settings *settings, const char *library, struct dxg_facts **ret, size_t *ret_count,
			    struct err *err)
{
	driverd_dxcore_answer answer = {0};
	struct question question = {
		.procedure = DRIVERD_DXCORE_ADAPTERS,
		.decode = (void (*)(void))xdr_driverd_dxcore_answer,
		.answer = &answer,
		.library = library,
		.advice = dxcore_advice,
		.device = "/dev/dxg",
		.hang_advice = "Run wsl --shutdown in Windows, or restart the virtual machine.",
	};
	int r;

	r = client_ask(settings, &question, err);
	if (r == 0 && answer.status == DRIVERD_OK)
		r = take_adapters(&answer, ret, ret_count);
	else if (r == 0)
		r = client_explain_status(&question, (int)answer.status, answer.driverd_dxcore_answer_u.message, err);
	xdr_free((xdrproc_t)xdr_driverd_dxcore_answer, (char *)&answer);
	return r;
}
