#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A release's Podman, as root and as a user, with GPU-PV and with a native driver. Our hook is found where it is installed.

load engines

setup_file() {
	local directory

	require_root
	use_tree
	directory=$(engine_directory podman)
	podman_configure "$directory"
	tar -C "$(image debian)" -c . | podman_in - import --quiet - debian >/dev/null

	directory=$(engine_directory rootless)
	XDG_RUNTIME_DIR=/run/user/54321 podman_configure "$directory"
	sed -i "s,$directory,$(rootless_home),g" "$directory"/*.conf
	tar -C "$(image debian)" -c . | rootless - podman import --quiet - debian >/dev/null
}

@test "the engine is the release's" {
	run podman_in - --version
	expect "$(tree_version podman)"
	run podman_in - info --format '{{.Host.CgroupsVersion}}'
	expect_line "v$(cgroup_version)"
}

@test "hooks.d, with crun" {
	run podman_in wsl-nvidia run --runtime crun --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "hooks.d, with runc" {
	run podman_in wsl-nvidia run --runtime runc --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "--runtime nvidia-container-runtime" {
	run podman_in wsl-nvidia run --runtime /usr/bin/nvidia-container-runtime --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "a container that asks for nothing gets nothing" {
	run podman_in wsl-nvidia run --rm --cap-add MKNOD debian sh -c 'ls /usr/lib; probe node 10 183 /tmp/node; probe'
	expect_line "/tmp/node=EPERM"
	expect_no_line wsl
	expect_no_gpu
}

@test "the device rule is for the GPU and nothing else" {
	run podman_in wsl-nvidia run --rm --cap-add MKNOD -e NVIDIA_VISIBLE_DEVICES=all debian \
		sh -c 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse'
	expect_line "/tmp/gpu=ok"
	expect_line "/tmp/fuse=EPERM"
}

@test "native: all GPUs" {
	run podman_in native-four run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_native 4
}

@test "native: one GPU, and no way to another" {
	run podman_in native-four run --rm --cap-add MKNOD -e "NVIDIA_VISIBLE_DEVICES=$(native_uuid 2)" debian \
		sh -c 'ls /dev; probe node 195 1 /tmp/other; probe node 195 2 /tmp/own; probe'
	expect_native 1
	expect_line nvidia2
	expect_no_line nvidia0
	expect_line "/tmp/other=EPERM"
	expect_line "/tmp/own=ENXIO"
}

@test "rootless: hooks.d, with crun" {
	run rootless wsl-nvidia podman --runtime crun run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "rootless: hooks.d, with runc" {
	run rootless wsl-nvidia podman --runtime runc run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "rootless: --runtime nvidia-container-runtime" {
	run rootless wsl-nvidia podman --runtime /usr/bin/nvidia-container-runtime run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "rootless: a container that asks for nothing gets nothing" {
	run rootless wsl-nvidia podman run --rm debian sh -c 'ls /usr/lib; probe'
	expect_no_line wsl
	expect_no_gpu
}

@test "rootless, native: one GPU, and no node of another" {
	run rootless native-four podman run --rm -e NVIDIA_VISIBLE_DEVICES=1 debian sh -c 'ls /dev; probe'
	expect_native 1
	expect_line nvidia1
	expect_no_line nvidia0
}
