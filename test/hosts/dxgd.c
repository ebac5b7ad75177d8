/* SPDX-License-Identifier: Apache-2.0 */

#include "dxgd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"

/* Linux 6.6; absent from older headers. */
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

struct dxgd {
	const struct profile *profile;
	int listener;
	struct clients clients;
};

struct dxgd *dxgd_new(const struct profile *profile, int listener, dev_t device)
{
	struct dxgd *dxgd = calloc(1, sizeof(*dxgd));

	if (!dxgd)
		return NULL;
	dxgd->profile = profile;
	dxgd->listener = listener;
	dxgd->clients.device = device;
	dxgd->clients.self = getpid();
	/* The client runs next, on this CPU: we are about to wait anyway. Older kernels refuse, and are slower. */
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	return dxgd;
}

/*
 * The real driver registers a process with the host when it opens the device, and fails where there is no adapter. The
 * node that stands for it would open.
 */
static bool opens_device(struct client *client, const struct seccomp_data *data)
{
	char path[sizeof("/dev/dxg")];

	return !(data->args[2] & O_PATH) && memory_read(&client->memory, data->args[1], path, sizeof(path)) &&
	       memcmp(path, "/dev/dxg", sizeof(path)) == 0;
}

static void respond(struct dxgd *dxgd, const struct seccomp_notif *call, struct seccomp_notif_resp *response)
{
	bool uncertain;
	struct client *client = clients_find(&dxgd->clients, (pid_t)call->pid, &uncertain);
	int fd = (int)call->data.args[0];

	if (!client || (uncertain && ioctl(dxgd->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &call->id) < 0)) {
		response->error = -ESRCH;
		return;
	}
	if (call->data.nr == SYS_openat && opens_device(client, &call->data)) {
		response->error = -EBADF;
		return;
	}
	if (call->data.nr == SYS_openat) {
		response->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		return;
	}
	switch (client_verdict(&dxgd->clients, client, fd)) {
	case VERDICT_OURS:
		response->error = device_ioctl(dxgd->profile, &client->handles, &client->memory,
					       (uint32_t)call->data.args[1], call->data.args[2]);
		return;
	case VERDICT_FOREIGN:
		response->error = -ENOTTY; /* "Call from a wrong process" */
		return;
	case VERDICT_NOT_OURS:
		response->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	}
}

void dxgd_answer(struct dxgd *dxgd)
{
	struct seccomp_notif call;
	struct seccomp_notif_resp response;

	memset(&call, 0, sizeof(call)); /* the kernel insists */
	if (ioctl(dxgd->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
		return;
	response = (struct seccomp_notif_resp){.id = call.id};
	respond(dxgd, &call, &response);
	(void)ioctl(dxgd->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}
