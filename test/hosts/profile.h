/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A profile: what a simulated host declares of itself. Plain data, read from test/hosts/profiles/NAME.json; every key is
 * described in README.md.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

enum {
	PROFILE_ADAPTERS_MAX = 128,
	PROFILE_SETS_MAX = 8,
	PROFILE_GPUS_MAX = 16,
	PROFILE_INSTANCES_MAX = 7,
	PROFILE_CHANNELS_MAX = 8,
	PROFILE_CARDS_MAX = 8
};

enum profile_files {
	FILES_WHOLE,  /* the directory and what belongs in it */
	FILES_EMPTY,  /* an empty directory */
	FILES_ABSENT, /* no directory, though the driver names it */
};

struct profile_adapter {
	const char *name;
	uint32_t vendor, device;
	LUID luid;
	bool has_address;
	ADAPTERADDRESS address;
	uint32_t wddm;
	uint32_t type;
	const char *store;        /* directory name; NULL: the driver tells none */
	const char *store_prefix; /* how Windows spells what is in front of it */
	const char *files;        /* which of the sets of files lies in it */
	enum profile_files on_disk;
};

/* A GPU that NVIDIA's kernel module drives, as /proc/driver/nvidia describes it. */
struct profile_gpu {
	const char *name, *pci, *uuid;
	uint32_t minor, device;
	bool node;     /* there is one in /dev */
	bool excluded; /* the module was told not to touch it */
	struct {
		uint32_t id, compute_instances;
	} mig[PROFILE_INSTANCES_MAX]; /* its GPU instances */
	size_t mig_count;
};

/* What direct rendering (DRM) knows of a PCI device. The two numbers need not go together: firmware's screen has a card alone. */
struct profile_card {
	const char *pci;
	uint32_t vendor, device; /* of one that is not among the GPUs */
	uint32_t card, render;
	const char *product;   /* what AMD's GPUs for servers are sold as; NULL */
	const char *unique_id; /* decimal, as AMD's compute driver has it; NULL: it does not know this one */
	uint32_t gfx_target;
	uint32_t partitions; /* AMD's compute partitions; their render nodes follow the card's own; 0: it has none */
	bool node;           /* there is one in /dev */
};

/* What the kernel's class of accelerators has: NPUs. */
struct profile_accelerator {
	const char *pci;
	uint32_t vendor, device;
	uint32_t number;
};

/* Drivers on the machine itself: NVIDIA's kernel module and its files, and whatever is in /dev/dri. */
struct profile_native {
	bool present;
	bool nvidia;        /* NVIDIA's module is loaded, even if it drives no GPU */
	const char *module; /* version that runs */
	const char *driver; /* version that is installed */
	const char *root;   /* the directory that is the driver's "/"; "" if that is the host's */
	const char *prefix; /* the directory that everything lies below; NULL: where Debian puts it */
	bool configs;       /* the files are there by which the loaders of OpenCL, Vulkan and EGL find the driver */
	bool loader_cache;  /* the loader's cache knows the libraries */
	bool compat32, uvm; /* 32-bit libraries are installed; the module nvidia-uvm is loaded */
	uint32_t nvswitches;
	uint32_t imex_channels[PROFILE_CHANNELS_MAX];
	size_t imex_channel_count;
	struct profile_gpu gpus[PROFILE_GPUS_MAX];
	size_t gpu_count;
	struct profile_card cards[PROFILE_CARDS_MAX]; /* of any vendor */
	size_t card_count;
	struct profile_accelerator accelerators[PROFILE_CARDS_MAX];
	size_t accelerator_count;
};

struct profile {
	void *document; /* owns every string */
	const char *about;

	bool dxg;
	const char *libdxcore; /* "present", "no-symbols", "hangs", "crashes"; NULL: there is none */
	const char *lib[PROFILE_SETS_MAX];
	size_t lib_count;
	bool old_interface; /* the Windows host speaks a VMBus interface whose answers to queries have no status */
	const char
		*lib_behind; /* directory that these lie in, with symlinks to them from where they belong; NULL: none */
	bool wsl_mounts;     /* lib and drivers are mounts of their own, as on WSL, and not plain directories */
	bool loader_cache;   /* ld.wsl.conf and what ldconfig makes of it */
	unsigned repository; /* how many directories of other drivers lie beside the stores */
	struct profile_adapter adapters[PROFILE_ADAPTERS_MAX];
	size_t adapter_count;

	struct profile_native native;
};

/**
 * profile_load() - read a declaration
 * @path: of the JSON file
 * @ret:  released with profile_clear()
 *
 * Return: 0; -1 after a message on standard error.
 */
int profile_load(const char *path, struct profile *ret);

void profile_clear(struct profile *profile);
