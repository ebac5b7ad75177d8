#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# `docker run --gpus` on a native host with four GPUs.

load engines

setup_file() {
	require_root
	require_program dockerd
	require_program docker
	docker_start native-four "{\"runtimes\": {\"nvidia\": {\"path\": \"$CTR_GPU_BUILD/bin/nvidia-container-runtime\"}}}"
	docker_image debian
}

teardown_file() {
	docker_stop
}

teardown() {
	docker ps --all --quiet | xargs --no-run-if-empty docker rm --force >/dev/null
}

uuid() {
	jq -r ".native.gpus[$1].uuid" "$e2e/../hosts/profiles/native-four.json"
}

@test "--gpus all: every GPU, and the driver by its SONAME" {
	run docker run --rm --gpus all debian probe
	expect_status 0
	expect_line "cuInit=0"
	expect_line "count=4"
	expect_line "library=/usr/lib/ctr-gpu/libcuda.so.1"
}

# bats test_tags=cgroup
@test "--gpus device=UUID: one GPU, and no way to another" {
	run docker run --rm --gpus "\"device=$(uuid 2)\"" debian sh -c 'ls /dev; nvidia-smi -L; probe node 195 1 /tmp/other; probe node 195 2 /tmp/own'
	expect_status 0
	expect_line nvidia2
	expect_no_line nvidia0
	expect "$(uuid 2)"
	expect_not "$(uuid 1)"
	expect_line "/tmp/other=EPERM"
	expect_line "/tmp/own=ENXIO"
}

# bats test_tags=cgroup
@test "--runtime=nvidia" {
	run docker run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES="$(uuid 2)" debian sh -c 'ls /dev; nvidia-smi -L; probe node 195 1 /tmp/other; probe'
	expect_status 0
	expect_line nvidia2
	expect_no_line nvidia0
	expect "$(uuid 2)"
	expect_line "/tmp/other=EPERM"
	expect_line "library=/usr/lib/ctr-gpu/libcuda.so.1"
}

@test "an image made of the container is without a GPU what it was: --gpus, --runtime=nvidia" {
	docker_commit_is_harmless --gpus all
	docker_remove_containers
	docker_commit_is_harmless --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all
}

# bats test_tags=cgroup
@test "a container that is started again works again" {
	docker create --name again --gpus '"device=1"' debian probe >/dev/null
	run docker start --attach again
	expect_line "count=1"
	run docker start --attach again
	expect_status 0
	expect_line "count=1"
	expect_line "library=/usr/lib/ctr-gpu/libcuda.so.1"
}

# bats test_tags=cgroup
@test "without --gpus nothing is there" {
	run docker run --rm debian sh -c 'ls /dev /usr/lib; probe node 195 0 /tmp/node'
	expect_not nvidia
	expect_no_line ctr-gpu
	expect_line "/tmp/node=EPERM"
}
