#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# `docker run --device nvidia.com/gpu=…` of releases whose Docker has CDI, with specs as `ctr-gpu cdi generate` writes them: a
# daemon each on GPU-PV and on a native host, and one without root.

load engines

generate="ctr-gpu cdi generate >/dev/null"

# Docker 25 to 27 have CDI on demand, later ones at once.
cdi_on_demand() {
	[[ $(tree_version docker.io) == 2[567].* ]]
}

# A rootless daemon sees the host's /etc/cdi as a link, which those on demand do not follow. They are given a directory in
# which the user has written the specs, and needs no root to do so.
configure_rootless() {
	rootless_docker_json='' CTR_GPU_TEST_AS_ROOT=$generate
	if cdi_on_demand; then
		rootless_docker_json='{"features": {"cdi": true}, "cdi-spec-dirs": ["'$(rootless_home)'/.config/cdi"]}'
		# shellcheck disable=SC2016 # for the shell that evaluates it
		CTR_GPU_TEST_AS_ROOT='mkdir -p "$home/.config/cdi" && chown -R 54321:54321 "$home/.config" &&
			setpriv --reuid 54321 --regid 54321 --clear-groups ctr-gpu cdi generate --output="$home/.config/cdi/" >/dev/null'
	fi
	export rootless_docker_json CTR_GPU_TEST_AS_ROOT
}

setup_file() {
	local configuration=

	require_root
	use_tree
	! cdi_on_demand || configuration='{"features": {"cdi": true}}'
	docker_pair "$configuration" "$generate"
	configure_rootless
	tar -C "$(image debian)" -c . | rootless_docker wsl-nvidia import - debian
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

@test "all" {
	run docker run --rm --device nvidia.com/gpu=all debian \
		sh -c 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse; probe'
	expect_gpu
	expect_line "/tmp/gpu=ok"
	expect_line "/tmp/fuse=EPERM"
}

@test "an index, a LUID and a PCI address" {
	for device in 0 LUID-000000005a3f1c2b 0000:01:00.0; do
		run docker run --rm --device "nvidia.com/gpu=$device" debian probe
		expect_gpu
	done
}

@test "without --device there is nothing, whatever the image says" {
	run docker run --rm -e NVIDIA_VISIBLE_DEVICES=all debian sh -c 'ls /usr/lib; probe'
	expect_no_line wsl
	expect_no_gpu
}

@test "the same container again, and docker exec and update" {
	docker run --detach --name long --device nvidia.com/gpu=all debian sleep 60
	run docker exec long probe
	expect_gpu
	docker update --cpu-shares 512 long
	run docker exec long probe
	expect_gpu
	docker restart --time 0 long
	run docker exec long probe
	expect_gpu
}

@test "a device that the spec does not have is an error of Docker's" {
	run docker run --rm --device nvidia.com/gpu=7 debian probe
	expect_status 125
	expect "nvidia.com/gpu=7"
}

# try_cdi: as somebody types it on that host
try_cdi() {
	run nsenter --mount --target "$(dockerd_pid)" -- ctr-gpu doctor --try=docker:cdi
	[[ -z $(docker ps --all --quiet; docker images --format "{{.Repository}}" | grep -v debian) ]]
}

@test "doctor --try=docker:cdi: what arrived, and why nothing does where CDI is off" {
	try_cdi
	expect_status 0
	expect "/dev/dxg             opened"
	expect "libcuda.so.1         /usr/lib/wsl/lib/libcuda.so.1"
	expect_line "docker run --device nvidia.com/gpu=all: yes, the container has a GPU and its driver"
	# The nodes of a simulated native host have no driver behind them.
	docker_use native
	try_cdi
	expect_status 1
	expect "/dev/nvidia3         No such device or address"
	expect "libcuda.so.1         /usr/lib/ctr-gpu/libcuda.so.1"
	docker_use off
	docker_start wsl-nvidia '{"features": {"cdi": false}}' "$generate"
	try_cdi
	docker_stop
	expect_status 1
	expect_line "docker run --device nvidia.com/gpu=all: no"
	expect 'could not select device driver "cdi"'
}

@test "native: all" {
	docker_use native
	run docker run --rm --device nvidia.com/gpu=all debian probe
	expect_native 4
}

@test "native: two devices, and no way to another" {
	docker_use native
	run docker run --rm --device nvidia.com/gpu=1 --device "nvidia.com/gpu=$(native_uuid 2)" debian \
		sh -c 'ls /dev; probe node 195 0 /tmp/other; probe node 195 2 /tmp/own; probe'
	expect_native 2
	expect_line nvidia1
	expect_no_other
}

@test "rootless: all" {
	run rootless_docker wsl-nvidia run --rm --device nvidia.com/gpu=all debian probe
	expect_gpu
}

@test "rootless, native: one GPU, and no node of another" {
	run rootless_docker native-four run --rm --device nvidia.com/gpu=1 debian sh -c 'ls /dev; probe'
	expect_native 1
	expect_line nvidia1
	expect_no_line nvidia0
}
