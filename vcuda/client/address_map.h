/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The memory that the process has from the driver, by address: what answers questions about pointers without the
 * server.
 */

#include "vcuda/client/client.h"

enum address_map_kind {
	ADDRESS_MAP_DEVICE = 1, /* cuMemAlloc() */
	ADDRESS_MAP_ASYNC,      /* of a pool */
	ADDRESS_MAP_GRAPH,      /* of a graph, which takes it anew each time that it runs */
	ADDRESS_MAP_GLOBAL,     /* a variable of a module */
	ADDRESS_MAP_VARIABLE,   /* the same, of managed memory: of variable.c */
	ADDRESS_MAP_RESERVED,   /* addresses for cuMemMap() */
	ADDRESS_MAP_MAPPED,     /* what is mapped there, which is found for itself alone */
	ADDRESS_MAP_HOST,       /* page-locked memory */
	ADDRESS_MAP_MANAGED,    /* cuMemAllocManaged() */
	ADDRESS_MAP_TAKEN,      /* of another process */
	ADDRESS_MAP_REGISTERED, /* the program's own, which is page-locked in name alone, but for files in memory */
};

struct range {
	uint64_t at, bytes;
	enum address_map_kind kind;
	unsigned flags;          /* of cuMemHostAlloc(), cuMemHostRegister() */
	uint64_t number;         /* no other allocation's */
	bool waits;              /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
	struct context *context; /* NULL: it is of none */
	CUdevice ordinal;        /* the device that it is of, where it is of no context */
	CUmemoryPool pool;       /* that it came from; 0: the device's own, or none */
	uint64_t owner;          /* the module or library that a variable is of; 0: none */
	uint64_t device;         /* of what is registered: where its first page is on the device; 0: nowhere */
	bool freed;              /* page-locked memory that the driver refused to free: it goes with its context */
};

CUresult address_map_add(const struct range *range);

/** Adds again what address_map_remove() gave, with its number, unless its place is another's by now. */
void address_map_put_back(const struct range *range);

/** Removes the range that begins at @at. Return: whether there is one of one of these @kinds, a bit each. */
bool address_map_remove(uint64_t at, unsigned kinds, struct range *ret);

/** Return: whether @at lies in a range, which is copied to @ret. */
bool address_map_find(uint64_t at, struct range *ret);

/** The same of the first range that shares a byte with the @bytes at @at. */
bool address_map_find_in(uint64_t at, uint64_t bytes, struct range *ret);

/** Notes that memory is mapped to reserved addresses, if there is room to. */
void address_map_add_mapping(uint64_t at, uint64_t bytes);

/** Forgets what was mapped to these. */
void address_map_remove_mappings(uint64_t at, uint64_t bytes);

/** Return: whether memory is mapped at @at; @ret: from where to where. */
bool address_map_find_mapping(uint64_t at, struct range *ret);

/** Notes what the attribute SYNC_MEMOPS of the range at @at is. */
void address_map_set_waits(uint64_t at, bool waits);

/** Return: whether a command on this device memory is sure to be well-formed. */
bool address_map_is_known(uint64_t at, uint64_t bytes, uint64_t alignment);

/** Whether it is memory of the host, and not of a device. */
static inline bool address_map_is_host(const struct range *range)
{
	return range->kind == ADDRESS_MAP_HOST || range->kind == ADDRESS_MAP_REGISTERED;
}

/** Whether host and device have it at one address. */
static inline bool address_map_is_managed(const struct range *range)
{
	return range->kind == ADDRESS_MAP_MANAGED || range->kind == ADDRESS_MAP_VARIABLE;
}

/** Return: where memory that is the host's, and that the device reaches, is for it. */
static inline uint64_t address_map_on_device(const struct range *range, uint64_t at)
{
	return range->kind == ADDRESS_MAP_REGISTERED ? range->device + (at - (range->at & ~(uint64_t)4095)) : at;
}

/** Return: whether all of this is page-locked memory, at its own address in the server. */
bool address_map_is_locked(const void *at, uint64_t bytes);

/** Return: whether it is known to be a device's. */
bool address_map_is_device(CUdeviceptr pointer);

/**
 * address_map_is_device_alone() - whether what a program calls the host's is a device's
 *
 * In the server's process the driver may have given the device an address where this process has memory of its own,
 * which is meant then.
 */
bool address_map_is_device_alone(uint64_t at, size_t bytes);

/**
 * address_map_has_host() - whether there is memory of the host, at both ends at least
 *
 * What was the device's and is freed is none. Where a filter of the program's does not let us look, it is believed.
 */
bool address_map_has_host(uint64_t at, size_t bytes);

void address_map_forget_context(const struct context *context);

/**
 * Removes managed memory of a context, and what the program has freed in vain, one range at a time. Return: whether
 * there was any.
 */
bool address_map_remove_with_context(const struct context *context, struct range *ret);

/** Forgets the variables of a module or library. */
void address_map_forget_owner(uint64_t owner);
