/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/internal.h"

#include <string.h>

#include "base/cleanup.h"

/* As rpm calls it. */
#if defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "x86_64"
#endif

#define COMPUTE CAPABILITY_COMPUTE
#define UTILITY CAPABILITY_UTILITY
#define VIDEO CAPABILITY_VIDEO
#define GRAPHICS CAPABILITY_GRAPHICS
#define DISPLAY CAPABILITY_DISPLAY
#define NGX CAPABILITY_NGX
#define SCREEN (GRAPHICS | DISPLAY)

/*
 * Libraries of the driver's version that are not in this table go to containers with COMPUTE, see
 * driver_files_is_wanted(). Columns: stem, number of the SONAME, capabilities, programs want the development name, own
 * version, meaning.
 */
const struct driver_library driver_libraries[] = {
	/* The video libraries load libcuda. */
	{"libcuda", "1", COMPUTE | VIDEO, true, false, "CUDA driver API"},
	{"libcudadebugger", "1", COMPUTE, false, false, "back end of cuda-gdb"},
	{"libnvidia-compiler", NULL, COMPUTE, false, false, "OpenCL compiler of older drivers"},
	{"libnvidia-fatbinaryloader", NULL, COMPUTE, false, false, "kernel loader of older drivers"},
	{"libnvidia-gpucomp", NULL, COMPUTE | SCREEN, false, false, "compiler for kernels and shaders"},
	{"libnvidia-nvvm", "4", COMPUTE, false, false, "compiler of NVVM programs"},
	{"libnvidia-opencl", "1", COMPUTE, false, false, "OpenCL"},
	{"libnvidia-pkcs11", NULL, COMPUTE, false, false, "attestation for confidential computing"},
	{"libnvidia-pkcs11-openssl3", NULL, COMPUTE, false, false, "attestation for confidential computing"},
	{"libnvidia-ptxjitcompiler", "1", COMPUTE, false, false, "compiler of PTX kernels"},
	{"libnvidia-allocator", "1", COMPUTE | SCREEN, false, false, "memory shared with displays; GBM"},

	{"libnvidia-ml", "1", UTILITY, true, false, "NVML, which nvidia-smi asks"},
	{"libnvidia-cfg", "1", UTILITY, false, false, "GPU configuration"},
	{"libnvidia-nscq", "2", UTILITY, false, false, "NVSwitch state"},
	{"libnvidia-sandboxutils", "1", UTILITY, false, false, "what a container needs, in NVIDIA's words"},
	{"libnvsdm", "1", UTILITY, false, false, "NVSwitch device monitoring"},

	{"libnvcuvid", "1", VIDEO, true, false, "video decoding (NVDEC)"},
	{"libnvidia-encode", "1", VIDEO, true, false, "video encoding (NVENC)"},
	{"libnvidia-opticalflow", "1", VIDEO, true, false, "optical flow"},
	{"libvdpau_nvidia", "1", VIDEO, false, false, "VDPAU"},

	{"libEGL_nvidia", "0", SCREEN, false, false, "EGL"},
	{"libGLX_nvidia", "0", SCREEN, false, false, "OpenGL for X, and Vulkan"},
	{"libGLESv1_CM_nvidia", "1", SCREEN, false, false, "OpenGL ES 1"},
	{"libGLESv2_nvidia", "2", SCREEN, false, false, "OpenGL ES 2"},
	{"libnvidia-api", "1", SCREEN, false, false, "NVAPI"},
	{"libnvidia-cbl", NULL, SCREEN, false, false, "Vulkan ray tracing"},
	{"libnvidia-egl-gbm", "1", SCREEN, false, true, "EGL on GBM"},
	{"libnvidia-egl-wayland", "1", SCREEN, false, true, "EGL on Wayland"},
	{"libnvidia-egl-wayland2", "1", SCREEN, false, true, "EGL on Wayland"},
	{"libnvidia-egl-xcb", "1", SCREEN, false, true, "EGL on X"},
	{"libnvidia-egl-xlib", "1", SCREEN, false, true, "EGL on X"},
	{"libnvidia-eglcore", NULL, SCREEN, false, false, "core of EGL"},
	{"libnvidia-fbc", "1", SCREEN, true, false, "frame buffer capture"},
	{"libnvidia-glcore", NULL, SCREEN, false, false, "core of OpenGL and Vulkan"},
	{"libnvidia-glsi", NULL, SCREEN, false, false, "shared by EGL and OpenGL"},
	{"libnvidia-glvkspirv", NULL, SCREEN, false, false, "SPIR-V compiler"},
	{"libnvidia-ifr", "1", SCREEN, true, false, "capture to a compressed stream"},
	{"libnvidia-rtcore", NULL, SCREEN, false, false, "ray tracing"},
	{"libnvidia-tls", NULL, SCREEN, false, false, "thread-local storage of OpenGL"},
	{"libnvidia-vksc-core", "1", SCREEN, false, false, "Vulkan SC"},
	{"libnvidia-wayland-client", NULL, DISPLAY, false, false, "Wayland for nvidia-settings"},
	{"libnvoptix", "1", SCREEN, false, false, "OptiX ray tracing"},

	{"libnvidia-ngx", "1", NGX | SCREEN, false, false, "NGX: DLSS and other neural features"},
};
const size_t driver_library_count = ARRAY_SIZE(driver_libraries);

const struct driver_library *driver_library_find(const char *stem, size_t length)
{
	if (length == 0 || length >= sizeof(driver_libraries[0].stem))
		return NULL;
	/* By its end first: nearly all begin with the same ten characters. */
	for (size_t i = 0; i < driver_library_count; i++) {
		const char *known = driver_libraries[i].stem;

		if (known[length - 1] == stem[length - 1] && known[length] == '\0' && memcmp(known, stem, length) == 0)
			return &driver_libraries[i];
	}
	return NULL;
}

const struct driver_program driver_programs[] = {
	{"nvidia-smi", UTILITY, "shows and manages GPUs"},
	{"nvidia-debugdump", UTILITY, "writes error reports"},
	{"nvidia-persistenced", UTILITY, "keeps GPUs initialised"},
	{"nv-fabricmanager", UTILITY, "manages NVSwitch fabrics"},
	{"nvidia-cuda-mps-control", COMPUTE, "controls the sharing of GPUs between processes"},
	{"nvidia-cuda-mps-server", COMPUTE, "shares GPUs between processes"},
};
const size_t driver_program_count = ARRAY_SIZE(driver_programs);

const struct driver_config driver_configs[] = {
	/* The OpenCL loader reads /etc/OpenCL/vendors and nothing else. */
	{"OpenCL/vendors/nvidia.icd", COMPUTE, "/etc", "tells the OpenCL loader of the driver",
	 "libnvidia-opencl.so.1"},
	{"egl/egl_external_platform.d/09_nvidia_wayland2.json", SCREEN, NULL, "EGL on Wayland",
	 "libnvidia-egl-wayland2.so.1"},
	{"egl/egl_external_platform.d/10_nvidia_wayland.json", SCREEN, NULL, "EGL on Wayland",
	 "libnvidia-egl-wayland.so.1"},
	{"egl/egl_external_platform.d/15_nvidia_gbm.json", SCREEN, NULL, "EGL on GBM", "libnvidia-egl-gbm.so.1"},
	{"egl/egl_external_platform.d/20_nvidia_xcb.json", SCREEN, NULL, "EGL on X", "libnvidia-egl-xcb.so.1"},
	{"egl/egl_external_platform.d/20_nvidia_xlib.json", SCREEN, NULL, "EGL on X", "libnvidia-egl-xlib.so.1"},
	{"glvnd/egl_vendor.d/10_nvidia.json", SCREEN, NULL, "tells GLVND of the driver's EGL", "libEGL_nvidia.so.0"},
	{"nvidia/nvoptix.bin", SCREEN, NULL, "data of OptiX", NULL},
	{"vulkan/icd.d/nvidia_icd.json", SCREEN, NULL, "tells the Vulkan loader of the driver", "libGLX_nvidia.so.0"},
	{"vulkan/icd.d/nvidia_icd." MACHINE ".json", SCREEN, NULL, "tells the Vulkan loader of the driver",
	 "libGLX_nvidia.so.0"},
	{"vulkan/implicit_layer.d/nvidia_layers.json", SCREEN, NULL, "Vulkan layers of the driver", NULL},
	{"vulkansc/icd.d/nvidia_icd_vksc.json", SCREEN, NULL, "tells the Vulkan SC loader of the driver", NULL},
	{"X11/xorg.conf.d/10-nvidia.conf", DISPLAY, NULL, "tells the X server of the driver", NULL},
	{"X11/xorg.conf.d/nvidia-drm-outputclass.conf", DISPLAY, NULL, "tells the X server of the driver", NULL},
};
const size_t driver_config_count = ARRAY_SIZE(driver_configs);

const struct driver_socket driver_sockets[] = {
	{"/run/nvidia-persistenced/socket", false, COMPUTE | UTILITY,
	 "nvidia-persistenced, which keeps GPUs initialised"},
	{"/run/nvidia-fabricmanager/socket", false, COMPUTE | UTILITY, "the fabric manager of NVSwitch machines"},
	{"/tmp/nvidia-mps", true, COMPUTE, "the daemon that shares GPUs between processes (MPS)"},
};
const size_t driver_socket_count = ARRAY_SIZE(driver_sockets);
