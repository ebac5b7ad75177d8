/* SPDX-License-Identifier: Apache-2.0 */

#include "dxg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static bool int80;
static bool failed;

void dxg_use_int80(void)
{
	int80 = true;
}

static bool luid_read(const char *text, LUID *ret)
{
	return sscanf(text, "%x:%x", (unsigned int *)&ret->HighPart, &ret->LowPart) == 2;
}

void arguments_read(int argc, char **argv, int first, struct arguments *ret)
{
	bool hidden = false;

	memset(ret, 0, sizeof(*ret));
	for (int i = first; i < argc; i++) {
		LUID luid;

		if (strcmp(argv[i], "--int80") == 0) {
			dxg_use_int80();
		} else if (strcmp(argv[i], "--") == 0) {
			hidden = true;
		} else if (luid_read(argv[i], &luid) && ret->seen_count < LUIDS_MAX && ret->hidden_count < LUIDS_MAX) {
			if (hidden)
				ret->hidden[ret->hidden_count++] = luid;
			else
				ret->seen[ret->seen_count++] = luid;
		} else {
			(void)fprintf(stderr, "%s: not a LUID: %s\n", argv[0], argv[i]);
			exit(2);
		}
	}
}

int dxg_open(void)
{
	int fd = open("/dev/dxg", O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		tap(false, "open /dev/dxg: %s", strerror(errno));
		exit(1);
	}
	return fd;
}

static int call32(int fd, unsigned int number, void *argument)
{
	int r = 0;

#ifdef __x86_64__
	if ((uintptr_t)argument >> 32)
		return -ERANGE;
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(54), "b"(fd), "c"(number), "d"(argument)
			 : "memory", "r8", "r9", "r10", "r11");
#else
	(void)fd, (void)number, (void)argument;
	r = -ENOSYS;
#endif
	return r;
}

int dxg_call(int fd, unsigned int number, void *argument)
{
	int r;

	if (int80)
		return call32(fd, number, argument);
	r = ioctl(fd, number, argument);
	return r < 0 ? -errno : r;
}

int dxg_enumerate3(int fd, D3DKMT_ADAPTERINFO *ret_infos, uint32_t room, uint32_t *ret_count)
{
	static D3DKMT_ENUMADAPTERS3 args;
	int r;

	args = (D3DKMT_ENUMADAPTERS3){
		.Filter = FILTER_INCLUDE_COMPUTE_ONLY,
		.NumAdapters = room,
		.pAdapters = (uintptr_t)ret_infos,
	};
	r = dxg_call(fd, LX_DXENUMADAPTERS3, &args);
	*ret_count = args.NumAdapters;
	return r;
}

int dxg_enumerate2(int fd, D3DKMT_ADAPTERINFO *ret_infos, uint32_t room, uint32_t *ret_count)
{
	static D3DKMT_ENUMADAPTERS2 args;
	int r;

	args = (D3DKMT_ENUMADAPTERS2){.NumAdapters = room, .pAdapters = (uintptr_t)ret_infos};
	r = dxg_call(fd, LX_DXENUMADAPTERS2, &args);
	*ret_count = args.NumAdapters;
	return r;
}

int dxg_bus(int fd, uint32_t handle)
{
	static D3DKMT_QUERYADAPTERINFO args;
	static ADAPTERADDRESS address;
	int r;

	address = (ADAPTERADDRESS){0};
	args = (D3DKMT_QUERYADAPTERINFO){
		.hAdapter = handle,
		.Type = QUERY_ADAPTERADDRESS,
		.pPrivateDriverData = (uintptr_t)&address,
		.PrivateDriverDataSize = sizeof(address),
	};
	r = dxg_call(fd, LX_DXQUERYADAPTERINFO, &args);
	return r < 0 ? r : (int)address.BusNumber;
}

int dxg_open_luid(int fd, LUID luid, uint32_t handle, uint32_t *ret_handle)
{
	static D3DKMT_OPENADAPTERFROMLUID args;
	int r;

	args = (D3DKMT_OPENADAPTERFROMLUID){.AdapterLuid = luid, .hAdapter = handle};
	r = dxg_call(fd, LX_DXOPENADAPTERFROMLUID, &args);
	*ret_handle = args.hAdapter;
	return r;
}

union control {
	char buffer[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* A message of one byte, with room for a file. */
static struct msghdr dxg_message(struct iovec *part, union control *control)
{
	static char byte;

	*part = (struct iovec){.iov_base = &byte, .iov_len = 1};
	return (struct msghdr){.msg_iov = part,
			       .msg_iovlen = 1,
			       .msg_control = control->buffer,
			       .msg_controllen = sizeof(control->buffer)};
}

void dxg_send(int socket, int fd)
{
	union control control = {0};
	struct iovec part;
	struct msghdr message = dxg_message(&part, &control);
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(socket, &message, 0) != 1)
		exit(4);
}

int dxg_receive(int socket)
{
	union control control = {0};
	struct iovec part;
	struct msghdr message = dxg_message(&part, &control);
	int fd;

	if (recvmsg(socket, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
		exit(4);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

bool luid_is(const LUID *luid, const LUID *other)
{
	return luid->LowPart == other->LowPart && luid->HighPart == other->HighPart;
}

bool luid_in(const LUID *luid, const LUID *luids, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (luid_is(luid, &luids[i]))
			return true;
	return false;
}

bool tap(bool good, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)printf("%sok - ", good ? "" : "not ");
	(void)vprintf(format, arguments);
	(void)putchar('\n');
	(void)fflush(stdout);
	va_end(arguments);
	failed |= !good;
	return good;
}

int tap_status(void)
{
	return failed;
}
