/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fixed paths, each once: of devices, of drivers on the host, of ctr-gpu itself. Nothing is opened here. */

/* GPU-PV */
#define PATH_DXG "/dev/dxg"
#define PATH_WSL "/usr/lib/wsl"
#define PATH_WSL_LIB PATH_WSL "/lib"         /* the loaders that Windows brings along */
#define PATH_WSL_DRIVERS PATH_WSL "/drivers" /* the driver stores */

/* NVIDIA's driver */
#define PATH_NVIDIA_GPU "/dev/nvidia" /* and the minor number */
#define PATH_NVIDIACTL "/dev/nvidiactl"
#define PATH_NVIDIA_UVM "/dev/nvidia-uvm"
#define PATH_NVIDIA_UVM_TOOLS "/dev/nvidia-uvm-tools"
#define PATH_NVIDIA_MODESET "/dev/nvidia-modeset"
#define PATH_NVIDIA_CAPS "/dev/nvidia-caps"
#define PATH_NVIDIA_IMEX "/dev/nvidia-caps-imex-channels"
#define PATH_NVIDIA_NVSWITCH "/dev/nvidia-nvswitch" /* and its number */
#define PATH_NVIDIA_NVSWITCHCTL "/dev/nvidia-nvswitchctl"
#define PATH_PROC_NVIDIA "/proc/driver/nvidia"

/* AMD, Intel, and the screens of every vendor */
#define PATH_DRI "/dev/dri"
#define PATH_KFD "/dev/kfd"

/* ctr-gpu */
#define PATH_CONFIG "/etc/ctr-gpu/config.json"
#define PATH_RUN "/run/ctr-gpu"
#define PATH_VCUDAD PATH_RUN "/vcudad.sock" /* where vCUDA's manager answers */
#define PATH_VCUDA_USERS "/run/ctr-gpu-vcuda" /* what users' containers have by vCUDA; they may go through it */
#define PATH_VCUDA_USERS_SOCKET PATH_VCUDA_USERS "/socket" /* where vCUDA's manager answers users */
#define PATH_STATE "/var/lib/ctr-gpu"
#define PATH_SLURM_STEPS "/run/ctr-gpu-slurm" /* what steps of Slurm's jobs were granted; every user may read it */
#define PATH_CONTAINER "/usr/lib/ctr-gpu"     /* in a container: the driver's libraries */

/* CDI specs, as every engine has them */
#define PATH_CDI "/etc/cdi"
#define PATH_CDI_RUN "/var/run/cdi"
