#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
#
# A container whose first process is systemd, with cgroup version 2: its services have device rules of its own below those of the
# container. It needs no links in /dev/char, of which Docker and we make none.

load engines

setup_file() {
	local system

	require_root
	use_tree
	docker_start wsl-nvidia '' "ctr-gpu cdi generate >/dev/null"
	system=$("$e2e/../engines/tree" "$suite" systemd systemd-sysv dbus)
	tar -C "$system" -c . | docker import - base >/dev/null
	mkdir "$BATS_FILE_TMPDIR/add"
	cp "$tools_directory/probe" "$BATS_FILE_TMPDIR/add"
	printf 'FROM base\nCOPY probe /usr/bin/\n' >"$BATS_FILE_TMPDIR/add/Dockerfile"
	tar -C "$BATS_FILE_TMPDIR/add" -c . | DOCKER_BUILDKIT=0 docker build --tag system - >/dev/null
}

teardown_file() {
	docker_remove_containers
	docker_stop
}

# begin OPTION…: where it is told that a container is around it, and may write to its own cgroups
begin() {
	docker_use docker
	docker run --detach --name world --cgroupns private --cap-add SYS_ADMIN --security-opt seccomp=unconfined --tmpfs /run --tmpfs /tmp \
		--env container=docker "$@" system sh -c 'mount -o remount,rw /sys/fs/cgroup && exec /sbin/init'
	for _ in {1..100}; do
		! docker exec world systemctl is-system-running 2>/dev/null | grep -E 'running|degraded' || return 0
		sleep 0.2
	done
	docker logs world
	return 1
}

# service PROPERTY…: what a service with these settings sees
service() {
	run docker exec world systemd-run --quiet --pipe --wait "${@/#/--property=}" probe
}

# services OPTION…: in a container with a GPU by these
services() {
	begin "$@"
	docker exec world sh -c 'systemctl daemon-reload && systemctl daemon-reexec && systemctl daemon-reload && test ! -e /dev/char'
	run docker exec world probe
	expect_gpu
	service DevicePolicy=strict "DeviceAllow=/dev/dxg rw"
	expect_gpu
	# The numbers in this name are enough for systemd.
	service DevicePolicy=strict "DeviceAllow=/dev/char/10:183 rw"
	expect_gpu
	service DevicePolicy=closed
	expect_line "/dev/dxg=EPERM"
	docker rm --force world
}

@test "docker run --gpus, over a daemon-reload inside" {
	services --gpus all
}

@test "docker run --device, the same" {
	services --device nvidia.com/gpu=all
}

@test "without a GPU no service is given one" {
	begin
	service DevicePolicy=strict "DeviceAllow=/dev/dxg rw"
	expect_line "/dev/dxg=ENOENT"
	docker rm --force world
}
