/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* /dev/dxg: the layouts of D3DKMT, the ioctls, and Windows' strings. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/paths.h"
#include "base/span.h"
#include "model/adapter.h"

/* ---- utf16 ---- */

/*
 * Windows' wide strings as UTF-8. A driver wrote them: they may lack their NUL, and hold lone surrogates or numbers
 * that are not characters. libc's converters depend on the locale.
 */

/**
 * utf16_from_wide() - convert up to the first NUL, or to the end if there is none
 * @wide:      the string, in this machine's byte order; a rest shorter than a character is ignored
 * @char_size: 2 for UTF-16, 4 for UTF-32
 * @ret:       new string, owned by the caller; bytes that are not a character became U+FFFD
 *
 * Return: 0 or -ENOMEM.
 */
int utf16_from_wide(const struct span *wide, size_t char_size, char **ret);

/* ---- d3dkmt ---- */

/*
 * The D3DKMT interface, as far as an inventory needs it: layouts and numbers that libdxcore.so (DirectX-Headers
 * include/wsl/winadapter.h, libdxg include/d3dkmthk.h) and /dev/dxg (Linux uapi misc/d3dkmthk.h of the WSL kernel)
 * share. Strings differ: WCHAR has 4 bytes in the library and 2 (UTF-16) in the ioctl.
 */

struct d3dkmt_adapterinfo {
	uint32_t handle;
	struct luid luid;
	uint32_t sources;
	uint32_t present_regions_preferred;
};
_Static_assert(sizeof(struct d3dkmt_adapterinfo) == 20, "D3DKMT_ADAPTERINFO");

struct d3dkmt_enumadapters2 {
	uint32_t count;
	uint32_t padding;
	uint64_t adapters;
};
_Static_assert(sizeof(struct d3dkmt_enumadapters2) == 16, "D3DKMT_ENUMADAPTERS2");

enum { D3DKMT_ENUM_COMPUTE_ONLY = 1 << 0 };

struct d3dkmt_enumadapters3 {
	uint64_t filter;
	uint32_t count;
	uint32_t padding;
	uint64_t adapters;
};
_Static_assert(sizeof(struct d3dkmt_enumadapters3) == 24, "D3DKMT_ENUMADAPTERS3");

struct d3dkmt_queryadapterinfo {
	uint32_t handle;
	uint32_t type;
	uint64_t data;
	uint32_t size;
	uint32_t padding;
};
_Static_assert(sizeof(struct d3dkmt_queryadapterinfo) == 24, "D3DKMT_QUERYADAPTERINFO");

struct d3dkmt_closeadapter {
	uint32_t handle;
};

/* KMTQUERYADAPTERINFOTYPE. Nothing else is asked: an unknown type leaves a line in the guest's kernel log. */
enum d3dkmt_query {
	D3DKMT_QUERY_ADAPTERADDRESS = 6,
	D3DKMT_QUERY_ADAPTERREGISTRYINFO = 8,
	D3DKMT_QUERY_DRIVERVERSION = 13,
	D3DKMT_QUERY_ADAPTERTYPE = 15,
	D3DKMT_QUERY_DEVICE_IDS = 31,
	D3DKMT_QUERY_QUERYREGISTRY = 48,
};

/* D3DKMT_ADAPTERTYPE. The guest's kernel sets PARAVIRTUALIZED on every adapter. */
enum d3dkmt_adaptertype {
	D3DKMT_TYPE_RENDER = 1 << 0,
	D3DKMT_TYPE_SOFTWARE = 1 << 2,
	D3DKMT_TYPE_PARAVIRTUALIZED = 1 << 7,
	D3DKMT_TYPE_COMPUTE_ONLY = 1 << 11,
};

struct d3dkmt_adapteraddress {
	uint32_t bus, device, function;
};

struct d3dkmt_device_ids {
	uint32_t physical_adapter; /* in: 0 */
	uint32_t vendor, device, subvendor, subsystem, revision, bus_type;
};
_Static_assert(sizeof(struct d3dkmt_device_ids) == 28, "D3DKMT_QUERY_DEVICE_IDS");

enum {
	D3DKMT_WDDM_2_7 = 2700, /* the first that GPU-PV for Linux works with */

	D3DKMT_REGISTRY_DRIVERSTOREPATH = 2, /* D3DDDI_QUERYREGISTRY_INFO.QueryType */
	D3DKMT_REGISTRY_OVERFLOW = 1,        /* .Status, with the call itself successful */

	D3DKMT_MAX_ADAPTERS = 64, /* more make the kernel answer EINVAL */
	D3DKMT_MAX_PATH = 260,
};

/* What one adapter says of itself, from either source, before anything is concluded from it. */
struct dxg_facts {
	struct luid luid;
	uint32_t wddm_version; /* 0: unknown */
	uint32_t type_bits;
	uint32_t vendor_id, device_id;
	bool has_address;
	struct d3dkmt_adapteraddress address;
	char *name;  /* UTF-8; NULL: unknown */
	char *store; /* as the driver has it: a Windows path or one below /usr/lib/wsl/drivers, UTF-8; NULL: unknown */
};

struct dxg_facts *dxg_facts_free(struct dxg_facts *facts, size_t count);

/*
 * A way to make the calls: the ioctls of /dev/dxg, or libdxcore's functions. Each call returns 0 or a negative errno;
 * a positive NTSTATUS (STATUS_PENDING) counts as 0.
 */
struct d3dkmt {
	int (*enumerate3)(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters3 *arguments);
	int (*enumerate2)(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters2 *arguments);
	int (*query)(const struct d3dkmt *d3dkmt, struct d3dkmt_queryadapterinfo *arguments);
	void (*close)(const struct d3dkmt *d3dkmt, struct d3dkmt_closeadapter *arguments);
	size_t char_size; /* of WCHAR: 2 or 4; of names 2, for all ask the kernel for those */
	int fd;           /* for the functions that make the calls */
};

/**
 * d3dkmt_describe_adapters() - ask every adapter what an inventory needs
 * @ret: array of facts, owned by the caller (dxg_facts_free())
 *
 * Both sources are asked by this one procedure, so that they cannot come to differ. An adapter that refuses a question
 * has that fact missing.
 *
 * Return: 0; -EPROTO if the answer to the enumeration is invalid; -ENOMEM; negative errno of the enumeration.
 */
int d3dkmt_describe_adapters(const struct d3dkmt *d3dkmt, struct dxg_facts **ret, size_t *ret_count);

/* ---- ioctl ---- */

/* The inventory from /dev/dxg itself, without any library. */

/** The query of an adapter, of an open device and one of the process's handles. Return: 0 or negative errno. */
int ioctl_query(int fd, struct d3dkmt_queryadapterinfo *arguments);

/**
 * ioctl_adapters() - what the kernel says of the adapters
 * @ret: array of facts, owned by the caller (dxg_facts_free())
 *
 * Return: 0; negative errno with @err set.
 */
int ioctl_adapters(struct dxg_facts **ret, size_t *ret_count, struct err *err);

/** Whether opening the device fails as it does where the host has no adapter for this machine. */
bool ioctl_has_no_adapters(void);
