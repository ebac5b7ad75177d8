/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/grant/grant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/paths.h"
#include "base/str.h"
#include "vcuda/protocol/control.h"
#include "vcuda_rpc.h"

#define GRANTS PATH_RUN "/vcuda/"
#define USERS PATH_VCUDA_USERS "/"

enum {
	NUMBERED_ID_SIZE = 24,
	ROOM_MS = 12 * 1000,
	NAP_MS = 50,
};

/* One that has no name is called after its process. */
static char *grant_name(const char *id, pid_t pid, char numbered[NUMBERED_ID_SIZE])
{
	(void)snprintf(numbered, NUMBERED_ID_SIZE, "pid-%d", (int)pid);
	return (char *)(uintptr_t)(id && *id ? id : numbered);
}

static int grant_explain_silence(int r, struct err *err)
{
	if (r == -ENOENT || r == -ECONNREFUSED)
		return err_set_advised(
			err, r,
			("vCUDA's manager ctr-gpu-vcudad does not run, and the container gets its GPUs from it."),
			("Start it: sudo systemctl enable --now ctr-gpu-vcudad "
			 "(OpenRC: rc-service ctr-gpu-vcudad start)."));
	if (r == -EACCES || r == -EPERM)
		return err_set_advised(err, CTR_GPU_E_NO_PERMISSION,
				       ("this host gives GPUs by vCUDA to root's containers alone."),
				       ("Its administrator allows a user's in /etc/ctr-gpu/config.json: {\"vcuda\": "
					"{\"users\": [{\"uid\": 1000}]}}"));
	if (r == -EPIPE || r == -ECONNRESET)
		return err_set_advised(err, CTR_GPU_E_NO_PERMISSION,
				       ("vCUDA's manager ctr-gpu-vcudad does not answer who asks from here."),
				       ("Start the container outside of another container."));
	if (r == -E2BIG)
		return err_set_advised(
			err, CTR_GPU_E_BAD_ARGUMENT,
			("the container's id, or the path of the driver's libcuda, is longer than vCUDA takes"),
			("Give the container an id of at most %d characters, and the driver a path of %d.",
			 VCUDAD_ID_MAX, VCUDAD_PATH_MAX));
	if (r == -EBADMSG)
		return err_set_advised(err, r,
				       ("vCUDA's manager ctr-gpu-vcudad answers what this program does not know; it is "
					"of another version."),
				       ("Start the one that is installed: systemctl restart ctr-gpu-vcudad (OpenRC: "
					"rc-service ctr-gpu-vcudad restart)."));
	return err_set_advised(err, r, ("vCUDA's manager ctr-gpu-vcudad does not answer: %m"),
			       ("Look at: journalctl -u ctr-gpu-vcudad"));
}

static int grant_refuse(int error, const char *message, struct err *err)
{
	/* It says which setting decides. */
	if (error == EPERM)
		return err_set_advised(err, CTR_GPU_E_NO_PERMISSION,
				       ("vCUDA's manager refuses the container: %.390s", message),
				       ("See ctr-gpu-config(5)."));
	return err_set_advised(err, error == EINVAL ? CTR_GPU_E_BAD_ARGUMENT : -error,
			       ("vCUDA's manager refuses the container: %.300s", message),
			       ("ctr-gpu vcuda list shows what is granted."));
}

static char *grant_text(const char *text)
{
	static char nothing[] = "";

	return text ? (char *)(uintptr_t)text : nothing;
}

void grant_describe(const struct plan *plan, struct vcudad_gpu *gpus, struct vcudad_request *ret)
{
	for (size_t i = 0; i < plan->grant_count && i < VCUDAD_GPUS_MAX; i++) {
		gpus[i] = (struct vcudad_gpu){
			.uuid = grant_text(plan->grants[i].uuid),
			.address = grant_text(plan->grants[i].address),
			.name = grant_text(plan->grants[i].name),
		};
		if (plan->grants[i].spare)
			ret->spares.spares_len++;
		else
			ret->gpus.gpus_len++;
	}
	ret->gpus.gpus_val = gpus;
	ret->spares.spares_val = gpus + ret->gpus.gpus_len;
	ret->library = grant_text(plan->grant_library);
	ret->limits = plan->grant_limits;
	ret->slot = plan->grant_slot;
}

/* The container gets it, whatever is in it. A user's is in a directory of the user's number. */
static bool grant_is_directory(const char *path)
{
	const char *name = str_has_prefix(path, GRANTS) ? path + strlen(GRANTS) : "";

	if (str_has_prefix(path, USERS)) {
		name = path + strlen(USERS);
		name += strspn(name, "0123456789");
		name += *name == '/';
	}
	return *name && !strchr(name, '/') && !streq(name, ".") && !streq(name, "..");
}

/*
 * Root's socket refuses users; where none is for these, that is the answer. Who is in the container's namespaces
 * already, as hooks of LXC, asks as a user and need name no process. Return: -ESRCH if one is to be named.
 */
static int grant_open(pid_t pid, int *ret_fd)
{
	const int r = control_open(ret_fd), of_users = r == -EACCES ? control_open_for_user(ret_fd) : r;

	if (r == 0 && pid == 0)
		return -ESRCH;
	return of_users == -ENOENT || of_users == -ECONNREFUSED ? r : of_users;
}

int grant_ask_manager(int fd, const struct vcudad_request *request, struct vcudad_granted *ret)
{
	const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};
	const int64_t end = clock_now_ms() + ROOM_MS;

	for (;;) {
		int r = control_ask(fd, VCUDAD_GRANT, request, ret);

		if (r < 0 || ret->error != EAGAIN || clock_now_ms() > end)
			return r;
		control_free_reply(VCUDAD_GRANT, ret);
		*ret = (struct vcudad_granted){0};
		(void)nanosleep(&nap, NULL);
	}
}

int grant_ask(const struct plan *plan, const char *id, pid_t pid, int *ret_fd, char **ret_directory, struct err *err)
{
	char numbered[NUMBERED_ID_SIZE];
	struct vcudad_gpu gpus[VCUDAD_GPUS_MAX];
	struct vcudad_request wish = {.id = grant_name(id, pid, numbered), .pid = (int)pid};
	struct vcudad_granted granted = {0};
	_cleanup_close_ int fd = -1;
	int r;

	grant_describe(plan, gpus, &wish);
	r = grant_open(pid, &fd);
	if (r == 0)
		r = grant_ask_manager(fd, &wish, &granted);
	if (r == -ESRCH)
		r = err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT,
				    ("vCUDA serves a container as long as its first process lives, and none is named."),
				    ("Name it: --pid PID, or start the container by an engine."));
	else if (r != 0)
		r = grant_explain_silence(r, err);
	else if (granted.error != 0)
		r = grant_refuse(granted.error, granted.message, err);
	else if (!grant_is_directory(granted.directory))
		r = grant_explain_silence(-EBADMSG, err);
	else if (!(*ret_directory = strdup(granted.directory)))
		r = -ENOMEM;
	else
		*ret_fd = steal_fd(&fd);
	control_free_reply(VCUDAD_GRANT, &granted);
	return r;
}

int grant_keep(int fd, const char *id, pid_t pid, struct err *err)
{
	char numbered[NUMBERED_ID_SIZE], *name = grant_name(id, pid, numbered);
	struct vcudad_done done = {0};
	int r = control_ask(fd, VCUDAD_KEEP, &name, &done);

	if (r < 0)
		r = grant_explain_silence(r, err);
	else if (done.error != 0)
		r = grant_refuse(done.error, done.message, err);
	control_free_reply(VCUDAD_KEEP, &done);
	return r;
}
