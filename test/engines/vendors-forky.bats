#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
#
# Vendors' own user-mode drivers, as Debian packages them, in containers of Docker on a GPU-PV host: each goes as far as it can
# on a simulated adapter. docs/gpu-pv-hosts.md says how far that is, and why no further.

load engines

setup_file() {
	require_root
	use_tree
	docker_use hybrid
	docker_start wsl-hybrid '{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}, "features": {"cdi": true}}' \
		'ctr-gpu cdi generate --capabilities=all >/dev/null'
	vendor_image intel sid libze-intel-gpu1 intel-opencl-icd libze1 ocl-icd-libopencl1 clinfo
	vendor_image mesa sid mesa-vulkan-drivers libgl1-mesa-dri libegl1 libegl-mesa0 libgles2 vulkan-tools mesa-utils mesa-utils-bin \
		mesa-va-drivers vainfo
	vendor_image mesa25 trixie libgl1-mesa-dri libegl1 libegl-mesa0 mesa-utils mesa-utils-bin
	docker_use amd
	docker_start wsl-amd-npu '{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}'
	vendor_image rocm sid libhsa-runtime64-1 rocminfo
}

teardown_file() {
	docker_use hybrid
	docker_stop
	docker_use amd
	docker_stop
}

setup() {
	docker_use hybrid
}

teardown() {
	docker_remove_containers
}

# runtime OPTION… IMAGE COMMAND…: a container of the runtime shim
runtime() {
	run docker run --rm --runtime=nvidia -e CTR_GPU_TEST_TRACE=1 "$@"
}

# What Intel's driver does on an adapter of its own: it makes a device, and gives up at the queue for paging, which only a GPU
# has.
expect_intel_device() {
	expect_line "D3DKMTOpenAdapterFromLuid=00000000"
	expect_line "D3DKMTCreateDevice=00000000"
	expect_line "D3DKMTCreatePagingQueue=c0000001"
	expect_line "D3DKMTDestroyDevice=00000000"
}

@test "Intel OpenCL makes a device on the chosen adapter" {
	runtime -e NVIDIA_VISIBLE_DEVICES=1 intel clinfo -l
	expect_intel_device
}

@test "Intel OpenCL makes a device with the hook and with CDI, too: it needs no variable" {
	run docker run --rm --gpus all -e CTR_GPU_TEST_TRACE=1 intel clinfo -l
	expect_intel_device
	run docker run --rm --device intel.com/gpu=0 -e CTR_GPU_TEST_TRACE=1 intel clinfo -l
	expect_intel_device
}

@test "Intel OpenCL finds nothing in a container that asks for NVIDIA's adapter alone, or for none" {
	runtime -e NVIDIA_VISIBLE_DEVICES=0 intel clinfo -l
	expect_not "D3DKMTCreateDevice"
	runtime intel clinfo -l
	expect_not "D3DKMT"
}

@test "Intel Level Zero makes a device on the chosen adapter" {
	local program

	program=$(engine_directory hybrid)/level-zero
	printf '%s\n' '#include <dlfcn.h>' '#include <stdio.h>' 'int main(void) {' \
		'void *library = dlopen("libze_loader.so.1", RTLD_NOW);' \
		'int (*init)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "zeInit") : 0;' \
		'return init ? printf("zeInit=%x\n", (unsigned)init(0)) < 0 : 1; }' | gcc -w -x c -o "$program" -
	runtime -e NVIDIA_VISIBLE_DEVICES=1 -v "$program:/usr/bin/level-zero" intel level-zero
	expect_intel_device
	# ZE_RESULT_ERROR_UNINITIALIZED: no driver has a device.
	expect_line "zeInit=78000001"
}

# expect_d3d12 ADAPTER DRIVER
expect_d3d12() {
	expect_line "d3d12: adapter $1"
	expect_line "d3d12: driver $2"
	expect_line "d3d12: device made"
}

nvidia="NVIDIA GeForce RTX 4070 Laptop GPU"
intel="Intel(R) Iris(R) Xe Graphics"

@test "Mesa's d3d12 makes a device on the chosen adapter, where it would take the integrated one" {
	runtime -e NVIDIA_VISIBLE_DEVICES=0 -e NVIDIA_DRIVER_CAPABILITIES=graphics mesa eglinfo -p surfaceless
	expect_d3d12 "$nvidia" "$(store wsl-hybrid 1)/libnvwgf2umx.so"
	expect_not "d3d12: adapter $intel"
	runtime -e NVIDIA_VISIBLE_DEVICES=1 -e NVIDIA_DRIVER_CAPABILITIES=graphics mesa eglinfo -p surfaceless
	expect_d3d12 "$intel" "$(store wsl-hybrid 0)/libigd12umd64.so"
	runtime -e NVIDIA_VISIBLE_DEVICES=all -e NVIDIA_DRIVER_CAPABILITIES=graphics mesa eglinfo -p surfaceless
	expect_d3d12 "$intel" "$(store wsl-hybrid 0)/libigd12umd64.so"
	# Without the variable the choice would be lost: Mesa takes the adapter whose driver is not there.
	runtime -e NVIDIA_VISIBLE_DEVICES=0 -e NVIDIA_DRIVER_CAPABILITIES=graphics -e MESA_D3D12_DEFAULT_ADAPTER_NAME= mesa \
		eglinfo -p surfaceless
	expect_line "d3d12: adapter $intel"
	expect_not "d3d12: device made"
}

@test "Mesa's d3d12 is chosen by a CDI spec that was made for graphics" {
	run docker run --rm --device nvidia.com/gpu=0 mesa eglinfo -p surfaceless
	expect_d3d12 "$nvidia" "$(store wsl-hybrid 1)/libnvwgf2umx.so"
	run docker run --rm --device nvidia.com/gpu=0 mesa env
	expect_line "LIBVA_DRIVER_NAME=d3d12"
}

@test "Mesa 25.0 renders in software without the variable; Mesa 26.2 tries d3d12 first" {
	run docker run --rm --gpus all mesa25 eglinfo -p surfaceless
	expect "renderer: llvmpipe"
	expect_not "d3d12:"
	run docker run --rm --gpus all mesa eglinfo -p surfaceless
	expect_d3d12 "$intel" "$(store wsl-hybrid 0)/libigd12umd64.so"
	expect "renderer: llvmpipe"
	runtime -e NVIDIA_VISIBLE_DEVICES=0 -e NVIDIA_DRIVER_CAPABILITIES=graphics mesa25 eglinfo -p surfaceless
	expect_d3d12 "$nvidia" "$(store wsl-hybrid 1)/libnvwgf2umx.so"
	# With the hook, the user says what it cannot set.
	run docker run --rm --gpus all -e GALLIUM_DRIVER=d3d12 -e "MESA_D3D12_DEFAULT_ADAPTER_NAME=$nvidia" mesa25 eglinfo -p surfaceless
	expect_d3d12 "$nvidia" "$(store wsl-hybrid 1)/libnvwgf2umx.so"
}

@test "the user's own choice of software stays" {
	runtime -e NVIDIA_VISIBLE_DEVICES=0 -e NVIDIA_DRIVER_CAPABILITIES=all -e GALLIUM_DRIVER=llvmpipe mesa eglinfo -p surfaceless
	expect "renderer: llvmpipe"
	expect_not "d3d12:"
}

@test "an engine lets the variables of a CDI spec replace the container's own" {
	run docker run --rm --device nvidia.com/gpu=0 -e GALLIUM_DRIVER=llvmpipe mesa env
	expect_line "GALLIUM_DRIVER=d3d12"
}

@test "Mesa's VA-API driver for d3d12 is packaged, and the variable names it; its node is vgem's" {
	runtime -e NVIDIA_VISIBLE_DEVICES=1 -e NVIDIA_DRIVER_CAPABILITIES=video mesa sh -c \
		'env; ls /usr/lib/*/dri/d3d12_drv_video.so; vainfo --display drm 2>&1'
	expect_line "LIBVA_DRIVER_NAME=d3d12"
	expect "/dri/d3d12_drv_video.so"
	expect "failed to initialize display 'drm'"
}

@test "Mesa's Vulkan driver for D3D12, dzn, is not in Debian's packages" {
	runtime -e NVIDIA_VISIBLE_DEVICES=1 mesa sh -c 'ls /usr/share/vulkan/icd.d; XDG_RUNTIME_DIR=/tmp vulkaninfo --summary 2>&1'
	expect "lvp_icd"
	expect_not dzn
	expect "llvmpipe"
}

@test "Debian's ROCm does not know /dev/dxg" {
	docker_use amd
	runtime -e NVIDIA_VISIBLE_DEVICES=0 rocm sh -c 'env; ls -l /dev/dxg; rocminfo 2>&1; grep -c dxg /usr/lib/*/libhsa-runtime64.so.1'
	expect_line "HSA_ENABLE_DXG_DETECTION=1"
	expect "hsa_init Failed"
	expect_not D3DKMT
	[[ $(tail -n 1 <<<"$output") == 0 ]]
}
