/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A word that asks for devices, as a user, an image or an engine writes it. It is parsed once, where it is read;
 * src/plan/select.c compares the values with the host's adapters. CDI's kind may be in front: "nvidia.com/gpu=0".
 */

#include <stdbool.h>
#include <stddef.h>

#include "model/adapter.h"

enum device_name_type {
	DEVICE_NAME_OTHER, /* a UUID, its beginning, a LUID, a PCI address, words of an adapter's name */
	DEVICE_NAME_VOID,
	DEVICE_NAME_NONE,
	DEVICE_NAME_ALL,
	DEVICE_NAME_VENDOR,        /* "vendor:intel", all of them */
	DEVICE_NAME_VENDOR_NUMBER, /* "vendor:amd:0", in AMD's own variable "0" */
	DEVICE_NAME_NUMBER,        /* "0", "npu:0" */
	DEVICE_NAME_PART,          /* "0:1" */
};

struct device_name {
	char *text;           /* as it was written, for messages; of a slot without its number */
	const char *name;     /* in it: what is behind CDI's kind */
	const char *domain;   /* of the kind, if that is a known vendor's; NULL */
	const char *variable; /* for AMD_VISIBLE_DEVICES, whose words mean AMD's GPUs alone; NULL */
	const char *vendor;   /* not terminated; NULL */
	size_t vendor_length;
	enum device_name_type type;
	bool is_npu;   /* "npu:0", "amd.com/npu=0" */
	bool is_vcuda; /* "ctr-gpu.org/vcuda=0", and a slot */
	bool is_slot;  /* "ctr-gpu.org/vgpu=GPU-…:3": a part of what vCUDA gives of a GPU */
	bool is_uuid;  /* which only a vendor's library may know */
	bool is_of_part, has_address, has_luid;
	long number, part, slot; /* -1: it names no slot */
	struct pci_address address;
	struct luid luid;
};

/** Whether CDI's kind is in front. */
static inline bool device_name_has_kind(const struct device_name *name)
{
	return name->name != name->text;
}

/** Parses @text, which @ret owns from then on. */
void device_name_read(char *text, struct device_name *ret);

void device_name_clear(struct device_name *name);
#define _cleanup_device_name_ _cleanup_(device_name_clear)

struct device_names {
	struct device_name *items;
	size_t count;
};

void device_names_clear(struct device_names *list);
#define _cleanup_device_names_ _cleanup_(device_names_clear)

/** Appends one. Return: 0; -E2BIG with more than STRV_SPLIT_MAX; -ENOMEM. */
int device_names_add(struct device_names *list, const char *text);

/** Appends those of a list such as "0, 1,all". Return: as above. */
int device_names_split(struct device_names *list, const char *text);

/** Appends all of a vendor's, or one if @number is at least 0, as @variable asks for them. Return: as above. */
int device_names_add_vendor(struct device_names *list, const char *vendor, long number, const char *variable);

/** Whether one is of this type. @bare: without a kind in front, or "npu:". */
bool device_names_have(const struct device_names *list, enum device_name_type type, bool bare);

/* The kinds of the names by which CDI asks for vCUDA: for GPUs, and for a slot of one. */
#define DEVICE_NAME_VCUDA_DOMAIN "ctr-gpu.org"
#define DEVICE_NAME_VCUDA_KIND DEVICE_NAME_VCUDA_DOMAIN "/vcuda"
#define DEVICE_NAME_SLOT_KIND DEVICE_NAME_VCUDA_DOMAIN "/vgpu"
