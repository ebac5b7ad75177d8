/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A GPU (or NPU) of the host, usable or not, as every backend describes it. Plain data. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"

struct backend;

enum pci_vendor {
	PCI_VENDOR_AMD = 0x1002,
	PCI_VENDOR_AMD_PROCESSOR = 0x1022, /* what is on the processor but no graphics: NPUs */
	PCI_VENDOR_NVIDIA = 0x10de,
	PCI_VENDOR_MICROSOFT = 0x1414,
	PCI_VENDOR_QUALCOMM = 0x5143,
	PCI_VENDOR_INTEL = 0x8086,
	ACPI_VENDOR_QUALCOMM = 0x4d4f4351, /* "QCOM": an adapter that is not on PCI has its ACPI id here */
};

/* A locally unique id: names a GPU-PV adapter until the next boot. Layout of the D3DKMT interface. */
struct luid {
	uint32_t low;
	int32_t high;
};

/* A driver store as it was found. */
struct adapter_store {
	bool is_read; /* all of it; else nothing is known */
	struct strv libraries;
	dev_t device;
	ino_t inode;
	bool has_smi;          /* a file "nvidia-smi" */
	bool noexec;           /* its mount is */
	bool has_outside_link; /* a symlink to what a container does not get with the directory */
};

struct adapter {
	const struct backend *backend; /* who described it and plans for it */
	int index;                     /* the number users select it by, among its kind; -1 when not usable */
	int vendor_index;              /* its number among the usable GPUs of its vendor */
	bool is_npu;                   /* counted apart from GPUs, and given only to a container that names it */
	char *name;                    /* as the driver calls it, UTF-8; NULL if it gave none */
	uint32_t vendor_id, device_id; /* PCI ids of the physical device; 0 when unknown */
	char *pci_address;             /* on the machine that owns it, "0000:01:00.0"; NULL when unknown */
	char *uuid;                    /* "GPU-…"; NULL when unknown, as on GPU-PV until identify() of the backend */
	char *alias; /* another, of the vendor's library or tools: "MIG-…", "0x…"; NULL as above */

	/* GPU-PV */
	struct luid luid;
	bool has_luid;
	dev_t node;            /* the device node that it is behind */
	uint32_t wddm_version; /* 2700 is WDDM 2.7; 0 when unknown */
	uint32_t type_bits;    /* D3DKMT_ADAPTERTYPE */
	bool compute_only;     /* an NPU or an MCDM device, also if its driver claims to render */
	char *driver_store;    /* directory on this machine; NULL when unknown */
	struct adapter_store store;
	size_t same_device_count; /* usable GPUs behind the same device node, with this one if it is a GPU */
	size_t store_sharing;     /* usable adapters with the same driver store, with this one */
	size_t same_vendor_count; /* of those, the ones of the same vendor */

	/* native */
	int minor; /* of /dev/nvidia<minor>, /dev/dri/renderD<minor>, /dev/accel/accel<minor>; -1 when none */

	/*
	 * AMD's compute partitions: how many its GPU was divided into, each an adapter of its own. All have the GPU's
	 * PCI address and UUID, which mean all of them. 0 if it was not.
	 */
	size_t partitions;

	/* A part (MIG) of the adapter of the same backend and minor that is not one. Never numbered itself. */
	bool is_part;
	int part;  /* its number in the whole */
	int whole; /* index of the whole; -1 until adapters are numbered */
	int gpu_instance, compute_instance;
	char *profile; /* "1g.18gb"; NULL as alias */

	/*
	 * Why it cannot be used: code, short clause ("its driver store … is missing"), what to do. 0 and NULL if it
	 * can.
	 */
	int unusable;
	char *reason;
	const char *remedy;
};

/** Releases what the adapter owns, not the adapter itself. */
void adapter_clear(struct adapter *adapter);

/** Whether a container that gets this one alone gets another set than all GPUs behind the same device node. */
bool adapter_is_choosable(const struct adapter *adapter);

/** Return: "NVIDIA", "AMD", "Intel", "Microsoft", "Qualcomm", or "unknown vendor". */
const char *adapter_vendor(const struct adapter *adapter);

#define DOMAIN_AMD "amd.com"
#define DOMAIN_NVIDIA "nvidia.com"

/** Return: what CDI calls the vendor, DOMAIN_NVIDIA; NULL for an unknown one. */
const char *adapter_domain(const struct adapter *adapter);

/** Return: the domain, if adapter_domain() says this of some vendor; NULL. */
const char *adapter_find_domain(const char *text, size_t length);

/** "LUID-" and 16 hexadecimal digits, high part first. */
enum { LUID_TEXT_SIZE = 5 + 16 + 1 };
void luid_format(struct luid luid, char text[LUID_TEXT_SIZE]);

/** What selects it: "0", "1:0" for a part, "npu:0"; "" if nothing does. */
enum { ADAPTER_NUMBER_SIZE = 24 };
void adapter_format_number(const struct adapter *adapter, char text[ADAPTER_NUMBER_SIZE]);

/**
 * What users know an adapter by: `0 NVIDIA GeForce RTX 4090`, `0:1 NVIDIA A100`.
 * Return: new string in @ret or -ENOMEM.
 */
int adapter_describe(const struct adapter *adapter, char **ret);

/** All adapters of the host, in the order of their indexes; behind them those that are not usable, then parts. */
struct inventory {
	struct adapter *adapters;
	size_t count;
	struct strv notes; /* for an administrator: "libdxcore.so did not answer …; used /dev/dxg itself" */
};

void inventory_clear(struct inventory *inventory);

/** Whether the adapter is divided (MIG): then CUDA finds its parts there, and not the whole. */
bool inventory_divides(const struct inventory *inventory, const struct adapter *adapter);

/** Takes those behind the first @count out again. */
void inventory_truncate(struct inventory *inventory, size_t count);

/** Moves @adapter's content into the inventory; on failure (-ENOMEM) @adapter is cleared. */
int inventory_take(struct inventory *inventory, struct adapter *adapter);

/* Where a function is on the PCI bus. */

struct pci_address {
	uint32_t domain;
	uint8_t bus, device, function;
};

/** Whether a directory has the name of an address: "0000:01:00.0". */
bool pci_address_is_name(const char *name);

/** Reads an address as people write it: with a domain or without, with zeros in front or without. */
bool pci_address_read(const char *text, struct pci_address *ret);

bool pci_address_equal(const struct pci_address *a, const struct pci_address *b);

/** "GPU-5a3f1c2b-…", NVIDIA's name of a whole GPU, as bytes. Return: whether it is one. */
bool adapter_read_uuid(const char *text, uint8_t ret[static 16]);

/** Return: domain, bus, device and function in 16, 8, 5 and 3 bits; 0: it has no such number. */
uint32_t pci_address_number(const char *text);

/**
 * adapter_dri_minor() - the minor of a node in /dev/dri, which its name has: card0, renderD128
 *
 * Return: -1 for another name.
 */
int adapter_dri_minor(const char *name);
bool adapter_is_dri_name(const char *name);
