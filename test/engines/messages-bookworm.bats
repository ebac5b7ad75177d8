#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# What engines say where nothing of ours is installed or set up: a user finds each message, literally, in
# docs/troubleshooting.md, and every message there is one that an engine of some release gives.

load ../e2e/cdi

page=$e2e/../../docs/troubleshooting.md
export engine_bare=yes

setup_file() {
	local directory

	require_root
	use_tree
	docker_use plain
	docker_start wsl-nvidia '{"runtimes": {"gone": {"path": "/usr/bin/nvidia-container-runtime"}}}'
	docker_image debian
	docker save debian >"$(engine_directory containerd)/image.tar"
	! has_cdi_on_demand || start_with_cdi
	directory=$(engine_directory podman)
	podman_configure "$directory"
	sed -i '/hooks_dir/d' "$directory/containers.conf"
	tar -C "$(image debian)" -c . | podman_in - import --quiet - debian >/dev/null
}

start_with_cdi() {
	docker_use cdi
	docker_start wsl-nvidia '{"features": {"cdi": true}, "builder": {"entitlements": {"device": true}}}'
	docker_image debian
}

teardown_file() {
	docker_use plain
	docker_stop
	docker_use cdi
	docker_stop
}

setup() {
	docker_use plain
}

teardown() {
	docker_remove_containers
}

docker_major() {
	tree_version docker.io | cut -d . -f 1
}

has_cdi_on_demand() {
	[[ $(docker_major) -ge 25 ]]
}

# messages: those of the page, one a line
messages() {
	sed -n '/^## What the engine says$/,/^## /s/^| `\([^`]*\)` | .*/\1/p' "$page"
}

# expect_message MESSAGE: it was printed, and the page has it
expect_message() {
	[[ $status -ne 0 ]] || { echo "it succeeded: $output"; return 1; }
	expect "$1" || return
	messages | grep -qxF -- "$1" || { echo "$page has no row for: $1"; return 1; }
}

# docker_run ARGUMENT…: 127, too, is no more than a failure here
docker_run() {
	docker run --rm --network=none "$@" debian probe || return 1
}

# compose LINE…: a service with these lines, started by docker-compose
compose() {
	local version=

	[[ $(docker_major) != 20 ]] || version='version: "3.8"\n'
	nsenter --mount --target "$(dockerd_pid)" -- bash -c '
		mkdir -p /run/project && cd /run/project && printf "$@" >compose.yml &&
			docker-compose -f compose.yml up --abort-on-container-exit
	' compose "$version"'services:\n  app:\n    image: debian\n    network_mode: none\n    command: probe\n'"$(printf '    %s\\n' "$@")"
}

# ctr_run ARGUMENT…: `ctr run ARGUMENT… image` with a containerd of its own
ctr_run() {
	sandbox wsl-nvidia bash -c '
		# A containerd that ends may leave a snapshot of this name.
		directory=$1 name=container-$2
		shift 2
		mkdir -p /run/containerd
		printf "version = 2\nroot = \"%s\"\nstate = \"/run/containerd\"\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n" \
			"$directory/root" >/run/containerd/config.toml
		containerd --config /run/containerd/config.toml >"$directory/log" 2>&1 &
		soon ctr version || exit
		ctr image import "$directory/image.tar" >/dev/null 2>&1 || exit
		exec ctr run --rm --cpu-shares 0 --cgroup "$CTR_GPU_TEST_CGROUP/container" "$@" docker.io/library/debian:latest "$name" probe
	' ctr_run "$(engine_directory containerd)" "$BATS_TEST_NUMBER" "$@"
}

@test "Docker: --gpus without the hook" {
	run docker_run --gpus all
	expect_message 'could not select device driver "" with capabilities: [[gpu]]'
}

@test "Docker: a runtime that is not set up" {
	run docker_run --runtime=nvidia
	case $(docker_major) in
	20) expect_message 'Unknown runtime specified nvidia' ;;
	*) expect_message 'unknown or invalid runtime name: nvidia' ;;
	esac
}

@test "Docker: a runtime whose program is gone" {
	run docker_run --runtime=gone
	expect_message 'fork/exec /usr/bin/nvidia-container-runtime: no such file or directory'
}

@test "Docker: a CDI device, as the daemon is by default" {
	run docker_run --device nvidia.com/gpu=all
	case $(docker_major) in
	20) expect_message 'nvidia.com/gpu=all is not an absolute path' ;;
	2[567]) expect_message 'could not select device driver "cdi" with capabilities: []' ;;
	*) expect_message 'CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all' ;;
	esac
}

@test "Docker: a CDI device without a specification" {
	has_cdi_on_demand || skip "Docker $(docker_major) has no CDI"
	docker_use cdi
	run docker_run --device nvidia.com/gpu=all
	expect_message 'CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all'
}

@test "Compose: a reservation of NVIDIA's driver" {
	run compose deploy: '  resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}'
	expect_message 'could not select device driver "nvidia" with capabilities: [[gpu]]'
}

@test "Compose: a reservation of CDI's driver" {
	run compose deploy: '  resources: {reservations: {devices: [{driver: cdi, device_ids: ["nvidia.com/gpu=all"], capabilities: [gpu]}]}}'
	case $(docker_major) in
	2[0-7]) expect_message 'could not select device driver "cdi" with capabilities: [[gpu]]' ;;
	*) expect_message 'CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all' ;;
	esac
}

@test "Compose: gpus" {
	run compose "gpus: all"
	case $(docker_major) in
	20) expect_message "Unsupported config option for services.app: 'gpus'" ;;
	2[1-7])
		# Its Compose 2.26 knows the key, and does nothing about it.
		expect "/dev/dxg=ENOENT"
		expect_not "select device driver"
		;;
	*) expect_message 'could not select device driver "" with capabilities: [[gpu]]' ;;
	esac
}

@test "Compose: a CDI device" {
	run compose 'devices: ["nvidia.com/gpu=all"]'
	case $(docker_major) in
	2[0-7]) expect_message 'error gathering device information while adding custom device "nvidia.com/gpu=all": no such file or directory' ;;
	*) expect_message 'CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all' ;;
	esac
}

@test "Compose: a runtime that is not set up" {
	run compose "runtime: nvidia"
	case $(docker_major) in
	20) expect_message 'Unknown runtime specified nvidia' ;;
	*) expect_message 'unknown or invalid runtime name: nvidia' ;;
	esac
}

# build ARGUMENT…: of a Dockerfile whose RUN asks for a CDI device
build() {
	nsenter --mount --target "$(dockerd_pid)" -- bash -c '
		mkdir -p /run/context && cd /run/context && printf "FROM debian\nRUN --device=nvidia.com/gpu=all probe\n" >Dockerfile &&
		docker buildx build "$@" .' build "$@"
}

@test "buildx: RUN --device" {
	[[ -e $engine_tree/usr/libexec/docker/cli-plugins/docker-buildx ]] || skip "the release has no buildx"
	run build
	case $(docker_major) in
	2[0-7]) expect_message 'unknown flag: device' ;;
	*) expect_message 'device feature is only supported in Dockerfile frontend 1.14.0-labs or later' ;;
	esac
	run build --allow device
	case $(docker_major) in
	2[0-7]) expect_message 'unknown entitlement device' ;;
	*) expect_message 'granting entitlement device is not allowed by build daemon configuration' ;;
	esac
}

@test "Podman: a CDI device without a specification" {
	run podman_in wsl-nvidia run --rm --device nvidia.com/gpu=all debian probe
	expect_message 'setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all'
}

@test "Podman: --gpus" {
	run podman_in wsl-nvidia run --rm --gpus all debian probe
	case $(tree_version podman) in
	4.*)
		expect "/dev/dxg=ENOENT"
		expect_not "CDI"
		;;
	5.*) expect_message 'setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all' ;;
	*) expect_message 'could not discover GPU vendor: no known GPU vendor found in CDI specs' ;;
	esac
}

@test "Podman: a runtime that is not set up" {
	run podman_in wsl-nvidia run --rm --runtime nvidia debian probe
	expect_message 'default OCI runtime "nvidia" not found: invalid argument'
}

@test "Podman: the variable alone, without a hook" {
	run podman_in wsl-nvidia run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_no_gpu
}

@test "ctr: --gpus without the program" {
	run ctr_run --gpus 0
	expect_message 'exec: "nvidia-container-cli": executable file not found in $PATH'
}

@test "ctr: a runtime that is not there" {
	run ctr_run --runc-binary nvidia-container-runtime
	expect_message 'exec: "nvidia-container-runtime": executable file not found in $PATH'
}

@test "ctr: a CDI device" {
	run ctr_run --device nvidia.com/gpu=all
	if [[ $(tree_version containerd) == 1.* ]]; then
		expect_message 'error stating device path: stat nvidia.com/gpu=all: no such file or directory'
	else
		expect_message 'CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all'
	fi
}

@test "every message of the page is one of these" {
	local message count=0

	while IFS= read -r message; do
		count=$((count + 1))
		grep -qF -- "expect_message '$message'" "$BATS_TEST_FILENAME" || grep -qF -- "expect_message \"$message\"" "$BATS_TEST_FILENAME" || {
			echo "no test provokes: $message"
			return 1
		}
	done < <(messages)
	[[ $count -ge 15 ]]
}
