#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# AMD's GPUs on native Linux by the engines' own CDI, `--device amd.com/gpu=…`, and Docker's `--gpus`. The nodes have no driver
# behind them: ENXIO is what one answers that may be opened.

load engines

generate="ctr-gpu cdi generate >/dev/null"

setup_file() {
	local configuration=

	require_root
	use_tree
	[[ $(tree_version docker.io) != 2[567].* ]] || configuration='{"features": {"cdi": true}}'
	docker_start native-amd "$configuration" "$generate"
	docker_image debian
	podman_setup
}

teardown_file() {
	docker_stop
}

# on_host PROFILE ARGUMENT…: `podman run` on a host whose specs $generate wrote
on_host() {
	local directory profile=$1
	shift

	directory=$(engine_directory podman)
	# shellcheck disable=SC2016 # for the inner shell
	run sandbox "$profile" env CONTAINERS_CONF="$directory/containers.conf" CONTAINERS_STORAGE_CONF="$directory/storage.conf" bash -c '
		eval "$1" || exit
		shift
		exec memlock podman run --cgroup-parent "$CTR_GPU_TEST_CGROUP" --rm "$@"
	' podman "$generate" "$@"
}

with_podman() {
	on_host native-amd "$@"
}

# shellcheck disable=SC2016 # for the container's shell
look='probe open /dev/dri/renderD129; probe open /dev/kfd; probe node 226 128 /tmp/other'

expect_one() {
	expect_line "/dev/dri/renderD129=ENXIO"
	expect_line "/dev/kfd=ENXIO"
	expect_line "/tmp/other=EPERM"
}

@test "Docker: one GPU, and no other; no group is needed" {
	run docker run --rm --device amd.com/gpu=1 debian sh -c "$look; ls -l /dev/dri/by-path"
	expect_one
	expect "pci-0000:0a:00.0-render -> ../renderD129"
	run docker run --rm --user 1000:1000 --device amd.com/gpu=1 debian probe open /dev/dri/renderD129
	expect_line "/dev/dri/renderD129=ENXIO"
	run docker run --rm --user 1000:1000 --device amd.com/gpu=1 debian probe open /dev/kfd
	expect_line "/dev/kfd=ENXIO"
}

@test "Docker: --gpus" {
	run docker run --rm --gpus '"device=1"' debian sh -c "$look"
	expect_one
	run docker run --rm --gpus all debian probe open /dev/dri/renderD128
	expect_line "/dev/dri/renderD128=ENXIO"
}

@test "Podman: one GPU, and no other; no group is needed" {
	local runtime

	for runtime in runc crun; do
		with_podman --runtime "$runtime" --cap-add mknod --device amd.com/gpu=1 debian sh -c "$look"
		expect_one
		with_podman --runtime "$runtime" --user 1000:1000 --device amd.com/gpu=1 debian probe open /dev/kfd
		expect_line "/dev/kfd=ENXIO"
	done
}

@test "Podman: a user opens nodes that the hook adds, where the spec has their groups" {
	local runtime graphics=(-e NVIDIA_DRIVER_CAPABILITIES=graphics --user 1000:1000 --device nvidia.com/gpu=1)

	for runtime in runc crun; do
		on_host native-desktop --runtime "$runtime" "${graphics[@]}" debian sh -c 'id -G; probe open /dev/dri/renderD134'
		expect_line 1000
		expect_line "/dev/dri/renderD134=EACCES"
		generate="ctr-gpu cdi generate --groups >/dev/null" on_host native-desktop --runtime "$runtime" "${graphics[@]}" debian \
			sh -c 'id -G; probe open /dev/dri/renderD134; probe open /dev/dri/card5'
		expect_line "1000 992"
		expect_line "/dev/dri/renderD134=ENXIO"
		expect_line "/dev/dri/card5=ENXIO"
	done
}
