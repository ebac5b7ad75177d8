/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libdxcore opens /dev/dxg in a static initialiser, so loading it is the first call. Its functions have C linkage and
 * return NTSTATUS, of which negative values are failures (libdxg src/d3dkmt-wsl.cpp). WCHAR is wchar_t there.
 */

#include "driverd/dxcore.h"

#include <errno.h>
#include <fcntl.h>
#include <wchar.h>

#include "base/cleanup.h"
#include "driverd/library.h"
#include "driverd/message.h"
#include "dxg/ioctl.h"

typedef int32_t ntstatus;

/* As the kernel interface's negative errno values become NTSTATUS (libdxg, LinuxErrToNTSTATUS). */
#define STATUS_INVALID_PARAMETER ((ntstatus)0xc000000d)
#define STATUS_BUFFER_TOO_SMALL ((ntstatus)0xc0000023)
#define STATUS_NO_MEMORY ((ntstatus)0xc0000017)

static struct {
	ntstatus (*enumerate3)(struct d3dkmt_enumadapters3 *); /* NULL: an older library */
	ntstatus (*enumerate2)(struct d3dkmt_enumadapters2 *);
	ntstatus (*query)(struct d3dkmt_queryadapterinfo *);
	ntstatus (*close)(struct d3dkmt_closeadapter *);
} dxcore;

static const struct library_symbol symbols[] = {
	{"D3DKMTEnumAdapters3", &dxcore.enumerate3, true},
	{"D3DKMTEnumAdapters2", &dxcore.enumerate2, false},
	{"D3DKMTQueryAdapterInfo", &dxcore.query, false},
	{"D3DKMTCloseAdapter", &dxcore.close, false},
	{0},
};

static ntstatus last_failure;

static int dxcore_to_errno(ntstatus status)
{
	if (status >= 0)
		return 0;
	last_failure = status;
	switch (status) {
	case STATUS_BUFFER_TOO_SMALL:
		return -EOVERFLOW;
	case STATUS_NO_MEMORY:
		return -ENOMEM;
	case STATUS_INVALID_PARAMETER:
		return -EINVAL;
	default:
		return -EIO;
	}
}

static int dxcore_call_enumerate3(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters3 *arguments)
{
	(void)d3dkmt;
	return dxcore.enumerate3 ? dxcore_to_errno(dxcore.enumerate3(arguments)) : -ENOSYS;
}

static int dxcore_call_enumerate2(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters2 *arguments)
{
	(void)d3dkmt;
	return dxcore_to_errno(dxcore.enumerate2(arguments));
}

/*
 * The library writes a name as UTF-8 into 260 bytes of its stack, however long it becomes (libdxg src/d3dkmt-wsl.cpp).
 * So the kernel is asked for names, with the library's handle: handles belong to the process and not to an open file
 * (dxgkrnl dxgprocess.c). It is open for that alone: the library finds no descriptor of ours.
 */
static int dxcore_call_query(const struct d3dkmt *d3dkmt, struct d3dkmt_queryadapterinfo *arguments)
{
	_cleanup_close_ int fd = -1;

	(void)d3dkmt;
	if (arguments->type != D3DKMT_QUERY_ADAPTERREGISTRYINFO)
		return dxcore_to_errno(dxcore.query(arguments));
	fd = open(DXG_DEVICE, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -EBADF : ioctl_query(fd, arguments);
}

static void dxcore_call_close(const struct d3dkmt *d3dkmt, struct d3dkmt_closeadapter *arguments)
{
	(void)d3dkmt;
	(void)dxcore.close(arguments);
}

static void dxcore_ask(struct driverd_reply *answer)
{
	const struct d3dkmt calls = {
		.enumerate3 = dxcore_call_enumerate3,
		.enumerate2 = dxcore_call_enumerate2,
		.query = dxcore_call_query,
		.close = dxcore_call_close,
		.char_size = sizeof(wchar_t),
		.fd = -1,
	};
	int r;

	r = d3dkmt_describe_adapters(&calls, &answer->facts, &answer->fact_count);
	if (r == -EPROTO)
		return answer_failure(answer, DRIVERD_REFUSED,
				      "D3DKMTEnumAdapters counts more adapters than it was given room for");
	if (r < 0)
		answer_failure(answer, DRIVERD_REFUSED, "D3DKMTEnumAdapters2 returned 0x%08x (is /dev/dxg accessible?)",
			       (unsigned)last_failure);
}

void dxcore_describe_adapters(const char *path, struct driverd_reply *answer)
{
	if (library_load(path, symbols, answer))
		dxcore_ask(answer);
}
