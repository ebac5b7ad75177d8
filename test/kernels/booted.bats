#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=kernel
# shellcheck disable=SC2016
#
# Engines on a machine that systemd has booted with cgroup version 2 and AppArmor, in a guest (test/kernels/guest): their
# containers are systemd's scopes. Only /dev/dxg and the driver are simulated.

load ../e2e/engines

# on_host COMMAND…: on a WSL2 host, or that of the profile $host, beside the system's own systemd
on_host() {
	O=$CTR_GPU_BUILD PATH=$CTR_GPU_BUILD/bin:$tools_directory:$PATH "$e2e/../hosts/enter" "${host-wsl-nvidia}" -- "$@" 3>&-
}

setup_file() {
	[[ $CTR_GPU_GUEST == systemd ]]
	# The simulated one is not in systemd's mount namespace, where it looks for a path of DeviceAllow=.
	mknod -m 600 /dev/dxg c 10 183
	docker_use docker
	# By an option: the simulated host hides the machine's /etc/docker/daemon.json.
	on_host dockerd --host "$DOCKER_HOST" --pidfile "$BATS_FILE_TMPDIR/pid" --exec-opt native.cgroupdriver=systemd \
		--add-runtime "nvidia=$CTR_GPU_BUILD/bin/ctr-gpu-runtime" \
		--iptables=false --ip6tables=false --bridge=none >"$BATS_FILE_TMPDIR/log" 2>&1 3>&- &
	for _ in {1..600}; do
		! docker version >/dev/null 2>&1 || break
		sleep 0.1
	done
	docker_image debian || tail -n 20 "$BATS_FILE_TMPDIR/log"
}

teardown_file() {
	docker_use docker
	docker_remove_containers
	kill "$(<"$BATS_FILE_TMPDIR/pid")"
	rm /dev/dxg
}

setup() {
	docker_use docker
}

# keeps COMMAND…: what the command starts in a container sees the GPU, before and after systemd has written its rules anew
keeps() {
	local _

	for _ in before after; do
		run "$@"
		expect_status 0
		expect_line "/dev/dxg=ok"
		systemctl daemon-reload
	done
}

# docker_keeps OPTION…
docker_keeps() {
	local container

	container=$(docker run --detach "$@" debian sleep 100000)
	# Before systemd has read any file of ours.
	docker update --cpu-shares 512 "$container"
	keeps docker exec "$container" probe open /dev/dxg
	run docker exec "$container" cat /proc/self/attr/current
	expect_line "docker-default (enforce)"
}

@test "docker run --gpus: in a scope of systemd's and under AppArmor, over a daemon-reload" {
	docker_keeps --gpus all
}

@test "docker run --runtime=nvidia: the same" {
	docker_keeps --runtime nvidia --env NVIDIA_VISIBLE_DEVICES=all
}

@test "podman run: in a scope of systemd's, over a daemon-reload" {
	local directory

	directory=$(engine_directory podman)
	podman_configure "$directory"
	sed -i 's/cgroup_manager = .*/cgroup_manager = "systemd"/' "$directory/containers.conf"
	export CONTAINERS_CONF=$directory/containers.conf CONTAINERS_STORAGE_CONF=$directory/storage.conf
	# Its engine is the process that runs the command: it starts, tries and reloads on one host.
	run on_host bash -ec '
		tar -C "$1" -c . | podman import - debian >/dev/null
		podman run --detach --name keeps --env NVIDIA_VISIBLE_DEVICES=all debian sleep 100000 >/dev/null
		for _ in before after; do
			podman exec keeps probe open /dev/dxg
			systemctl daemon-reload
		done
		cat "/proc/$(podman inspect --format "{{.State.Pid}}" keeps)/cgroup"
		podman rm --force --time 0 keeps >/dev/null
	' podman "$(image debian)"
	expect_status 0
	[[ $(grep -c '^/dev/dxg=ok' <<<"${output//$'\r'/}") -eq 2 ]]
	expect ".scope"
}

# profiles: of a user's own for AppArmor, which differ in the abstraction alone
profiles() {
	local name

	cp "$e2e/../../pkg/apparmor/ctr-gpu" /etc/apparmor.d/abstractions/
	for name in without with; do
		printf '%s\n' 'abi <abi/3.0>,' 'include <tunables/global>' "profile ctr-gpu-test-$name flags=(attach_disconnected) {" \
			'include <abstractions/base>' "$([[ $name == without ]] || echo 'include <abstractions/ctr-gpu>')" \
			'/usr/bin/{busybox,probe} mrix,' '@{PROC}/@{pid}/attr/current r,' '}' | apparmor_parser --replace --skip-cache
	done
}

# confined COMMAND…: and what AppArmor has denied meanwhile is in $denied
confined() {
	dmesg --clear
	run "$@"
	echo "$output"
	denied=$(dmesg | grep -F 'apparmor="DENIED"' || true)
	echo "$denied"
}

# podman_confined OPTION…: a container of Podman's on that host, which asks for $devices
podman_confined() {
	local directory

	directory=$(engine_directory confined)
	podman_configure "$directory"
	export CONTAINERS_CONF=$directory/containers.conf CONTAINERS_STORAGE_CONF=$directory/storage.conf
	confined on_host bash -ec '
		podman image exists debian || tar -C "$1" -c . | podman import - debian >/dev/null
		exec podman run --rm --env "NVIDIA_VISIBLE_DEVICES=$3" --env AMD_VISIBLE_DEVICES=all "${@:4}" debian sh -c "$2"
	' podman "$(image debian)" "$look" "${devices-all}" "$@"
}

look='cat /proc/self/attr/current; probe; nvidia-smi -L; for node in /dev/nvidia0 /dev/nvidia-uvm /dev/dri/renderD128 /dev/kfd /dev/accel/accel0; do probe open $node; done'

@test "AppArmor: under Podman's own profile a container has its GPU, and nothing is denied" {
	local host=wsl-nvidia node

	podman_confined
	grep -Eq "^containers-default-[0-9.]+ \(enforce\)" <<<"$output"
	expect_gpu
	expect "GPU 0: NVIDIA"
	[[ -z $denied ]]
	host=native-hybrid
	podman_confined
	grep -Eq "^containers-default-[0-9.]+ \(enforce\)" <<<"$output"
	expect_line "cuInit=0"
	expect "GPU 0: NVIDIA"
	for node in /dev/nvidia0 /dev/dri/renderD128 /dev/kfd; do
		expect_line "$node=ENXIO"
	done
	[[ -z $denied ]]
}

@test "AppArmor: a profile of a user's own keeps the GPU from a container of Docker, and by the abstraction nothing is denied to it" {
	profiles
	confined docker run --rm --gpus all --security-opt apparmor=ctr-gpu-test-without debian sh -c "$look"
	expect_line "ctr-gpu-test-without (enforce)"
	expect_line "/dev/dxg=EACCES"
	expect_not "cuInit=0"
	expect "nvidia-smi: Permission denied"
	grep -F ' profile="ctr-gpu-test-without" name="/dev/dxg" ' <<<"$denied"
	confined docker run --rm --gpus all --security-opt apparmor=ctr-gpu-test-with debian sh -c "$look"
	expect_line "ctr-gpu-test-with (enforce)"
	expect_gpu
	expect "GPU 0: NVIDIA"
	[[ -z $denied ]]
}

# nodes_confined NODE…: what a container of Podman's has by the abstraction alone. They have no driver here.
nodes_confined() {
	local node

	podman_confined --security-opt apparmor=ctr-gpu-test-without
	expect_line "ctr-gpu-test-without (enforce)"
	expect_not "cuInit=0"
	for node; do
		expect_line "$node=EACCES"
		grep -F " profile=\"ctr-gpu-test-without\" name=\"$node\" " <<<"$denied"
	done
	podman_confined --security-opt apparmor=ctr-gpu-test-with
	expect_line "ctr-gpu-test-with (enforce)"
	for node; do
		expect_line "$node=ENXIO"
	done
	[[ -z $denied ]]
}

@test "AppArmor: the same with a container of Podman, and the nodes of NVIDIA's driver and of AMD's" {
	local host=native-hybrid devices

	profiles
	nodes_confined /dev/nvidia0 /dev/nvidia-uvm /dev/dri/renderD128 /dev/kfd
	expect_line "cuInit=0"
	expect "GPU 0: NVIDIA"
	devices=amd.com/npu=0
	nodes_confined /dev/accel/accel0
}
