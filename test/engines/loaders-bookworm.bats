#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
#
# The files that tell the loaders of OpenCL, Vulkan and EGL of the driver, where the host has none: Debian's own loaders read
# those that the container was given, open the library that is named there, and list the GPU. And what opens the driver's
# libraries by their names alone, on a GPU-PV host.

load engines

setup_file() {
	require_root
	docker_use wsl
	docker_start wsl-nvidia
	vendor_image ffmpeg bookworm ffmpeg
	docker_use native
	docker_start native-no-configs "{\"runtimes\": {\"nvidia\": {\"path\": \"$CTR_GPU_BUILD/bin/nvidia-container-runtime\"}}}"
	vendor_image loaders bookworm ocl-icd-libopencl1 clinfo libvulkan1 vulkan-tools libegl1 mesa-utils-bin
}

teardown_file() {
	docker_stop_pair
}

setup() {
	docker_use native
}

# both_doors EXPECTATION COMMAND: in a container that the hook gave the GPU, and in one of the runtime's
both_doors() {
	local door

	for door in "--gpus all" "--runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all"; do
		# shellcheck disable=SC2086 # several words
		run docker run --rm $door -e NVIDIA_DRIVER_CAPABILITIES="${capabilities:-all}" -e XDG_RUNTIME_DIR=/tmp loaders sh -c "$2"
		"$1" || return
	done
}

# What the C library says of a library that it has opened
expect_opened() {
	expect "calling init: /usr/lib/ctr-gpu/$1"
}

has_opencl() {
	expect_opened libnvidia-opencl.so.1
	expect_line "Platform #0: Simulated NVIDIA CUDA"
	expect_line " \`-- Device #0: Simulated GPU"
}

@test "OpenCL: ocl-icd opens the library that /etc/OpenCL/vendors/nvidia.icd names" {
	both_doors has_opencl 'LD_DEBUG=files clinfo -l 2>&1'
}

has_vulkan() {
	expect "Found ICD manifest file /usr/share/vulkan/icd.d/nvidia_icd.json"
	expect "Searching for ICD drivers named libGLX_nvidia.so.0"
	expect_opened libGLX_nvidia.so.0
	expect "deviceName         = Simulated GPU of driver 580.159.04"
}

@test "Vulkan: the loader opens the library that /usr/share/vulkan/icd.d/nvidia_icd.json names" {
	both_doors has_vulkan 'VK_LOADER_DEBUG=all LD_DEBUG=files vulkaninfo --summary 2>&1'
}

has_egl() {
	expect_opened libEGL_nvidia.so.0
	expect_line "EGL vendor string: NVIDIA (simulated)"
	expect_line "EGL version string: 1.5 580.159.04"
}

@test "EGL: libglvnd opens the library that /usr/share/glvnd/egl_vendor.d/10_nvidia.json names, before Mesa's" {
	# shellcheck disable=SC2016 # for the container's shell
	both_doors has_egl 'LD_DEBUG=files eglinfo.$(uname -m)-linux-gnu 2>&1'
}

has_no_driver() {
	expect_not _nvidia
	expect_not libnvidia-opencl
	expect_not "Simulated GPU"
}

@test "a container that asks for NVML alone has none of these files" {
	# shellcheck disable=SC2016 # for the container's shell
	capabilities=utility both_doors has_no_driver \
		'clinfo -l 2>&1; VK_LOADER_DEBUG=all vulkaninfo --summary 2>&1; eglinfo.$(uname -m)-linux-gnu 2>&1'
}

@test "Debian's FFmpeg opens libcuda; the libraries for video and OptiX are found by their names" {
	local library libraries="libnvidia-encode.so.1 libnvcuvid.so.1 libnvidia-opticalflow.so.1 libnvoptix.so.1"

	docker_use wsl
	run docker run --rm --gpus all -e NVIDIA_DRIVER_CAPABILITIES=all -e LD_DEBUG=files ffmpeg ffmpeg -init_hw_device cuda
	expect "file=libcuda.so.1 [0];  dynamically loaded by /lib/"
	expect "calling init: /usr/lib/wsl/lib/libcuda.so.1"
	# The simulated one ends there.
	expect "Could not dynamically load CUDA"
	# shellcheck disable=SC2086 # several words
	run docker run --rm --gpus all -e NVIDIA_DRIVER_CAPABILITIES=all -v "$tools_directory/dlopen-where:/usr/bin/dlopen-where" ffmpeg \
		dlopen-where $libraries
	expect_status 0
	for library in $libraries; do
		expect_line "$library => /usr/lib/wsl/lib/$library"
	done
	run docker run --rm -e LD_DEBUG=files ffmpeg ffmpeg -init_hw_device cuda
	expect_not "calling init: /usr/lib/wsl/lib/libcuda.so.1"
}
