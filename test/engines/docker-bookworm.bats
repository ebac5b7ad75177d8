#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A release's Docker, with GPU-PV and with a native driver: a daemon on each.

load engines

setup_file() {
	require_root
	use_tree
	docker_pair '{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}'
}

teardown_file() {
	docker_stop_pair
}

setup() {
	docker_use wsl
}

teardown() {
	docker_remove_containers
}

@test "cgroup version" {
	run docker info --format '{{.CgroupVersion}}'
	expect_line "$(cgroup_version)"
}

@test "the engine is the release's" {
	run docker version --format '{{.Server.Version}}'
	expect "$(tree_version docker.io)"
}

@test "--gpus all" {
	run docker run --rm --gpus all debian probe
	expect_gpu
}

@test "--gpus 1" {
	run docker run --rm --gpus 1 debian probe
	expect_gpu
}

@test "--gpus device=0" {
	run docker run --rm --gpus '"device=0"' debian probe
	expect_gpu
}

@test "without --gpus there is nothing" {
	run docker run --rm -e NVIDIA_VISIBLE_DEVICES=all debian sh -c 'ls /usr/lib; probe node 10 183 /tmp/node; probe'
	expect_line "/tmp/node=EPERM"
	expect_no_line wsl
	expect_no_gpu
}

@test "the device rule is for the GPU and nothing else" {
	run docker run --rm --gpus all debian sh -c 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse'
	expect_line "/tmp/gpu=ok"
	expect_line "/tmp/fuse=EPERM"
}

@test "docker exec, and a container that is started again" {
	docker run --detach --name long --gpus all debian sleep 60
	run docker exec long probe
	expect_gpu
	docker restart --time 0 long
	run docker exec long probe
	expect_gpu
}

@test "a device that is not there: docker shows the reason" {
	run docker run --rm --gpus '"device=7"' debian probe
	[[ $status -ne 0 ]]
	expect "[E_UNKNOWN_DEVICE]"
}

@test "--runtime=nvidia" {
	run docker run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all debian \
		sh -c 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse; probe'
	expect_gpu
	expect_line "/tmp/gpu=ok"
	expect_line "/tmp/fuse=EPERM"
}

@test "--runtime=nvidia and --gpus" {
	run docker run --rm --runtime=nvidia --gpus all debian probe
	expect_gpu
}

@test "--runtime=nvidia: a container that asks for nothing gets nothing" {
	run docker run --rm --runtime=nvidia debian sh -c 'ls /usr/lib; probe node 10 183 /tmp/node; probe'
	expect_line "/tmp/node=EPERM"
	expect_no_line wsl
	expect_no_gpu
}

@test "--runtime=nvidia: docker exec, docker update, and a container that is started again" {
	docker run --detach --name long --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all debian sleep 60
	run docker exec long probe
	expect_gpu
	# An update writes the cgroup's device rules anew: on version 2 it replaces the program that a hook added to.
	docker update --cpu-shares 512 long
	run docker exec long probe
	expect_gpu
	docker restart --time 0 long
	run docker exec long probe
	expect_gpu
}

@test "native: --gpus all" {
	docker_use native
	run docker run --rm --gpus all debian probe
	expect_native 4
}

@test "native: --gpus device=UUID, and no way to another" {
	docker_use native
	run docker run --rm --gpus "\"device=$(native_uuid 2)\"" debian \
		sh -c 'ls /dev; probe node 195 1 /tmp/other; probe node 195 2 /tmp/own; probe'
	expect_native 1
	expect_no_other
}

@test "native: --runtime=nvidia, and no way to another GPU" {
	docker_use native
	run docker run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=1 debian \
		sh -c 'ls /dev; probe node 195 0 /tmp/other; probe node 195 1 /tmp/own; probe'
	expect_native 1
	expect_line nvidia1
	expect_no_line nvidia0
	expect_line "/tmp/other=EPERM"
	expect_line "/tmp/own=ENXIO"
}

@test "native: without --gpus there is nothing" {
	docker_use native
	run docker run --rm debian sh -c 'ls /dev /usr/lib; probe node 195 0 /tmp/node'
	expect_not nvidia
	expect_no_line ctr-gpu
	expect_line "/tmp/node=EPERM"
}
