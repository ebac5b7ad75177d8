#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A release's Docker without root, set up by nothing but Docker's own script.

load engines

setup_file() {
	require_root
	use_tree
	export rootless_docker_json='{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}'
	tar -C "$(image debian)" -c . | rootless_docker wsl-nvidia import - debian
}

@test "it runs without root" {
	run rootless_docker wsl-nvidia info --format '{{.SecurityOptions}} {{.CgroupVersion}} {{.ServerVersion}}'
	expect "name=rootless"
	expect " $(cgroup_version) $(tree_version docker.io)"
}

@test "--gpus all" {
	run rootless_docker wsl-nvidia run --rm --gpus all debian probe
	expect_gpu
}

@test "another user in the container, without capabilities" {
	run rootless_docker wsl-nvidia run --rm --user 65534 --cap-drop ALL --gpus all debian probe
	expect_gpu
}

@test "without --gpus there is nothing" {
	run rootless_docker wsl-nvidia run --rm -e NVIDIA_VISIBLE_DEVICES=all debian sh -c 'ls /usr/lib; probe'
	expect_no_line wsl
	expect_no_gpu
}

@test "--runtime=nvidia" {
	run rootless_docker wsl-nvidia run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "native: one GPU, and no node of another" {
	run rootless_docker native-four run --rm --gpus '"device=1"' debian sh -c 'ls /dev; probe'
	expect_native 1
	expect_line nvidia1
	expect_no_line nvidia0
}

@test "native: --runtime=nvidia" {
	run rootless_docker native-four run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=2 debian sh -c 'ls /dev; probe'
	expect_native 1
	expect_line nvidia2
	expect_no_line nvidia0
}
