/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/helper.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "guard/choice.h"

/* Of the pins that are links; the maps have no such names. */
#define PROGRAM_PREFIX "guard_"

static int links_add(int pins, const char *name, struct links *links)
{
	_cleanup_close_ int fd = pins_open_pin(pins, name);
	struct bpf_link_info info;
	union bpf_attr attr;

	if (fd < 0)
		return fd;
	memset(&info, 0, sizeof(info));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uint64_t)(uintptr_t)&info;
	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) < 0)
		return -errno;
	if (links->count == LINKS_MAX)
		return 0;
	links->ids[links->count] = info.id;
	links->programs[links->count++] = info.prog_id;
	return 0;
}

static bool links_is_program(const char *name)
{
	return str_has_prefix(name, PROGRAM_PREFIX);
}

int links_read(int pins, struct links *ret)
{
	_cleanup_strv_ struct strv names = {0};
	int r = fd_list_names(pins, ".", links_is_program, LINKS_MAX, &names);

	*ret = (struct links){0};
	for (size_t i = 0; i < names.count && r == 0; i++)
		r = links_add(pins, names.items[i], ret);
	return r;
}

bool links_are_complete(int pins, const struct links *links)
{
	_cleanup_free_ char *note = NULL;

	/* An older version has made no note. */
	return fd_read_link_at(pins, LINKS_NOTE, &note) < 0 ? links->count > 0
							    : strtoul(note, NULL, 10) == links->count;
}

unsigned links_load(int pins)
{
	_cleanup_free_ char *note = NULL;
	const char *number = fd_read_link_at(pins, LINKS_NOTE, &note) < 0 ? NULL : strchr(note, ' ');

	return number ? (unsigned)strtoul(number, NULL, 10) : 0;
}

bool links_are_attached(void)
{
	_cleanup_close_ int pins = pins_open(NULL);
	struct links links;

	return pins >= 0 && links_read(pins, &links) == 0 && links_are_complete(pins, &links);
}
