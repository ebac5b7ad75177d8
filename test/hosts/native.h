/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A host with NVIDIA's kernel module: its nodes, what it shows below /proc, and an installed driver. The nodes have the
 * numbers of the real ones and no driver behind them: to open one that the device cgroup allows fails with ENXIO, and with
 * EPERM if it does not. All functions return 0, or -1 after a message on standard error.
 */

#include "profile.h"

/** Makes nvidia0, nvidiactl, nvidia-uvm, nvidia-caps/… in @directory. */
int native_nodes(const struct profile_native *native, const char *directory);

/** Writes driver/nvidia/… and devices, this machine's with NVIDIA's lines in it, into @directory. */
int native_proc(const struct profile_native *native, const char *directory);

/** Writes what /sys/bus/pci/devices says of each GPU into @directory. */
int native_sys(const struct profile_native *native, const char *directory);

/** Writes what /sys/class says of cards, AMD's compute driver and accelerators into @directory. */
int native_class(const struct profile_native *native, const char *directory);

/**
 * Installs the driver's libraries, programs, firmware and configuration where the profile says, and names their directories
 * to ldconfig(8).
 */
int native_files(const struct profile_native *native, const char *files);
