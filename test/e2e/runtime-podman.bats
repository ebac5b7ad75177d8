#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# `podman --runtime ctr-gpu-runtime`, as root and as a user, without any hook.

load engines

setup_file() {
	require_root
	require_program podman
	require_program newuidmap
	podman_setup
	podman_remove_hooks
}

shim() {
	podman_in wsl-nvidia run --runtime "$CTR_GPU_BUILD/bin/ctr-gpu-runtime" --rm "$@"
}

rootless_shim() {
	rootless wsl-nvidia podman --runtime /run/ctr-gpu/bin/ctr-gpu-runtime run --rm "$@"
}

@test "a GPU" {
	run shim -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

# bats test_tags=cgroup
@test "a container that asks for nothing gets nothing" {
	run shim --cap-add MKNOD debian sh -c 'ls /dev; probe node 10 183 /tmp/node; probe'
	expect_no_line "dxg"
	expect_line "/dev/dxg=ENOENT"
}

# bats test_tags=cgroup
@test "the device rule is for the GPU and nothing else" {
	run shim --cap-add MKNOD -e NVIDIA_VISIBLE_DEVICES=all debian sh -c 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse'
	expect_line "/tmp/gpu=ok"
	expect_line "/tmp/fuse=EPERM"
}

# bats test_tags=cgroup
@test "--read-only, another user, a user namespace" {
	run shim --read-only -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
	run shim --user 65534 --cap-drop ALL -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
	run shim --uidmap 0:100000:65536 -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "a failure says why" {
	run shim -e NVIDIA_VISIBLE_DEVICES=9 debian probe
	[[ $status -ne 0 ]]
	expect "[E_UNKNOWN_DEVICE]"
	expect_not "cuInit"
}

# bats test_tags=cgroup
@test "rootless" {
	run rootless_shim -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
	run rootless_shim --read-only -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
	run rootless_shim debian probe
	expect_line "/dev/dxg=ENOENT"
}
