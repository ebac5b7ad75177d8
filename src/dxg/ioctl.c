/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every call is a synchronous question to the host. The kernel ties an open /dev/dxg to the process that opened it and
 * answers others with ENOTTY (dxgkrnl ioctl.c), so the descriptor is opened here, used and closed. That closes the
 * adapters, too (dxgkrnl dxgprocess.c), and saves a call for each. Strings are UTF-16.
 */

#include "dxg/dxg.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/paths.h"

/* Linux uapi misc/d3dkmthk.h. */
#define LX_DXQUERYADAPTERINFO _IOWR(0x47, 0x09, struct d3dkmt_queryadapterinfo)
#define LX_DXENUMADAPTERS2 _IOWR(0x47, 0x14, struct d3dkmt_enumadapters2)
#define LX_DXENUMADAPTERS3 _IOWR(0x47, 0x3e, struct d3dkmt_enumadapters3)

/* A process that opens the device is made known to the host, which refuses where it has no adapter for this machine. */
enum { NO_ADAPTERS = EBADF };

bool ioctl_has_no_adapters(void)
{
	_cleanup_close_ int fd = open(PATH_DXG, O_RDONLY | O_CLOEXEC);

	return fd < 0 && errno == NO_ADAPTERS;
}

static int ioctl_call(int fd, unsigned long request, void *arguments)
{
	int r;

	do {
		r = ioctl(fd, request, arguments);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static int ioctl_call_enumerate3(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters3 *arguments)
{
	return ioctl_call(d3dkmt->fd, LX_DXENUMADAPTERS3, arguments);
}

static int ioctl_call_enumerate2(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters2 *arguments)
{
	return ioctl_call(d3dkmt->fd, LX_DXENUMADAPTERS2, arguments);
}

int ioctl_query(int fd, struct d3dkmt_queryadapterinfo *arguments)
{
	return ioctl_call(fd, LX_DXQUERYADAPTERINFO, arguments);
}

static int ioctl_call_query(const struct d3dkmt *d3dkmt, struct d3dkmt_queryadapterinfo *arguments)
{
	return ioctl_query(d3dkmt->fd, arguments);
}

int ioctl_adapters(struct dxg_facts **ret, size_t *ret_count, struct err *err)
{
	_cleanup_close_ int fd = open(PATH_DXG, O_RDONLY | O_CLOEXEC);
	struct d3dkmt calls = {
		.enumerate3 = ioctl_call_enumerate3,
		.enumerate2 = ioctl_call_enumerate2,
		.query = ioctl_call_query,
		.char_size = sizeof(uint16_t),
		.fd = fd,
	};
	int r;

	if (fd < 0 && errno == NO_ADAPTERS) {
		*ret = NULL;
		*ret_count = 0;
		return 0;
	}
	if (fd < 0)
		return err_set_advised(
			err, -errno, ("cannot open " PATH_DXG ": %m"),
			("%s", errno == EACCES || errno == EPERM
				       ? "Its mode should be 0666, and a container needs its device rule."
				       : "Run wsl --shutdown in Windows, or restart the virtual machine."));
	r = d3dkmt_describe_adapters(&calls, ret, ret_count);
	if (r == -EPROTO)
		return err_set_advised(
			err, r, (PATH_DXG " lists more than 64 adapters, the most that programs can be given: %m"),
			("Give this machine fewer of the host's GPUs."));
	if (r < 0)
		return err_set_advised(
			err, r, ("asking " PATH_DXG " for the adapters failed: %m"),
			("Run wsl --shutdown in Windows, or restart the virtual machine; dmesg | grep dxg may tell "
			 "more."));
	return 0;
}
