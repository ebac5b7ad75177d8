/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the client programs of these tests share: raw calls of /dev/dxg, without any library, in 64-bit and in 32-bit
 * ways, and lines of TAP. Memory that a 32-bit call is given lies below 4 GiB: it is static, in a program that is linked for a
 * fixed address.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../hosts/abi.h"

/* Further numbers, spelled as in abi.h. */
#define LX_DXCREATEPAGINGQUEUE 0xC0204707u
#define LX_DXRESERVEGPUVIRTUALADDRESS 0xC0484708u
#define LX_DXQUERYVIDEOMEMORYINFO 0xC038470Au
#define LX_DXMAKERESIDENT 0xC030470Bu
#define LX_DXGETDEVICESTATE 0xC038470Eu
#define LX_DXCHANGEVIDEOMEMORYRESERVATION 0xC0204716u
#define LX_DXFLUSHHEAPTRANSITIONS 0xC004471Fu
#define LX_DXFREEGPUVIRTUALADDRESS 0xC0184720u
#define LX_DXQUERYCLOCKCALIBRATION 0xC028473Du

enum { LUIDS_MAX = 80 };

/* Arguments of every client: [--int80] LUID… [-- HIDDEN…], LUIDs as HIGH:LOW in hexadecimal. */
struct arguments {
	LUID seen[LUIDS_MAX], hidden[LUIDS_MAX];
	uint32_t seen_count, hidden_count;
};

/** Reads them from argv[first]; ends the program if they are wrong. */
void arguments_read(int argc, char **argv, int first, struct arguments *ret);

/** Calls are made by int $0x80 from now on: the kernel takes them for a 32-bit program's. */
void dxg_use_int80(void);

/** Return: a descriptor; ends the program if there is none. */
int dxg_open(void);

/** Return: 0 or more; negative errno. @argument is static if dxg_use_int80() was called. */
int dxg_call(int fd, unsigned int number, void *argument);

/** Return: negative errno of EnumAdapters3 with room for @room, or 0; @ret_infos is static. */
int dxg_enumerate3(int fd, D3DKMT_ADAPTERINFO *ret_infos, uint32_t room, uint32_t *ret_count);
int dxg_enumerate2(int fd, D3DKMT_ADAPTERINFO *ret_infos, uint32_t room, uint32_t *ret_count);

/** Return: the bus that the host has this adapter on, which differs for each; negative errno. */
int dxg_bus(int fd, uint32_t handle);

/** Return: 0 or negative errno. @handle: what the handle field has on entry. */
int dxg_open_luid(int fd, LUID luid, uint32_t handle, uint32_t *ret_handle);

/** Hands a file over a socket; the program ends if that cannot be. */
void dxg_send(int socket, int fd);
int dxg_receive(int socket);

bool luid_is(const LUID *luid, const LUID *other);
bool luid_in(const LUID *luid, const LUID *luids, uint32_t count);

/** One line of TAP. Return: @good. */
bool tap(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Return: what main() returns. */
int tap_status(void);
