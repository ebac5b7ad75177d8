#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=kernel
# shellcheck disable=SC2016
#
# Engines on a machine that systemd has booted with cgroup version 2 and AppArmor, in a guest (test/kernels/guest): their
# containers are systemd's scopes. Only /dev/dxg and the driver are simulated.

load ../e2e/engines

# on_host COMMAND…: on a WSL2 host, beside the system's own systemd
on_host() {
	O=$CTR_GPU_BUILD PATH=$CTR_GPU_BUILD/bin:$tools_directory:$PATH "$e2e/../hosts/enter" wsl-nvidia -- "$@" 3>&-
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

	container=$(docker run --detach "$@" debian sleep 600)
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
		podman run --detach --name keeps --env NVIDIA_VISIBLE_DEVICES=all debian sleep 600 >/dev/null
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
