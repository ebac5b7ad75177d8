/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The codes that leave the library, all of them. Negative results are errno values; these are positive.
 * Messages carry the name without its prefix, in brackets: "[E_NO_ADAPTER]". The man page ctr-gpu-errors(7) has a
 * paragraph on each. Numbers are never reused.
 */

#ifdef __cplusplus
extern "C" {
#endif

#define CTR_GPU_ERRORS(X)                                                                             \
	X(NO_DEVICE, 1, "no GPU device: /dev/dxg, /dev/nvidiactl, one in /dev/dri")                   \
	X(NO_ADAPTER, 2, "the host shows no GPU that a container could use")                          \
	X(DRIVER_TOO_OLD, 3, "the host driver is older than WDDM 2.7")                                \
	X(NO_DRIVER_STORE, 4, "the driver store that the driver reports is not on disk")              \
	X(DRIVER_LIBRARY, 5, "a driver library is missing, has no usable symbols, or crashed")        \
	X(DRIVER_TIMEOUT, 6, "a driver library did not answer in time")                               \
	X(UNKNOWN_DEVICE, 7, "a device was asked for that the host does not have")                    \
	X(UNKNOWN_CAPABILITY, 8, "a driver capability was asked for that does not exist")             \
	X(REQUIREMENT, 9, "the image requires what this host's driver cannot give")                   \
	X(CONTAINER_RUNNING, 10, "the container has already started")                                 \
	X(BAD_ROOTFS, 11, "the root filesystem is not one that may be changed")                       \
	X(ROOTFS_READ_ONLY, 12, "a mount point is missing and the root filesystem cannot be written") \
	X(NO_PERMISSION, 13, "the caller may not do this")                                            \
	X(BAD_CONFIG, 14, "a configuration file cannot be used")                                      \
	X(BAD_STATE, 15, "the OCI state or config.json cannot be used")                               \
	X(NO_CGROUP, 16, "the container's device cgroup cannot be found or changed")                  \
	X(BAD_ARGUMENT, 17, "an argument is wrong")                                                   \
	X(KERNEL_TOO_OLD, 18, "the kernel lacks a system call that this needs")                       \
	X(BAD_REQUIREMENT, 19, "a requirement cannot be parsed")                                      \
	X(KERNEL_MODULE, 20, "a kernel module cannot be loaded")                                      \
	X(WRONG_NODE, 21, "something else is in the place of a device node")                          \
	X(VOLUME, 22, "a file or directory is needed where a volume is mounted")                      \
	X(GUARD, 23, "a choice among adapters cannot be held here")                                   \
	X(EXCLUSIVE, 24, "a GPU that one container at a time may have is another's")

enum ctr_gpu_error {
#define X(name, number, meaning) CTR_GPU_E_##name = (number),
	CTR_GPU_ERRORS(X)
#undef X
};

#ifdef __cplusplus
}
#endif
