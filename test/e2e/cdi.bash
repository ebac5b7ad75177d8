# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# CDI specs in tests: written on the simulated host that uses them.

load engines

# podman_cdi PROFILE SCRIPT ARGUMENT…: `podman run ARGUMENT…` as root on a host on which SCRIPT ran before, as a rule to write a spec
podman_cdi() {
	local profile=$1 script=$2 directory
	shift 2

	directory=$(engine_directory podman)
	sandbox "$profile" env CONTAINERS_CONF="$directory/containers.conf" CONTAINERS_STORAGE_CONF="$directory/storage.conf" bash -c '
		eval "$1" || exit
		shift
		exec memlock podman run --cgroup-parent "$CTR_GPU_TEST_CGROUP" --rm "$@"
	' podman "$script" "$@"
}

# rootless_cdi PROFILE SCRIPT ARGUMENT…: the same as a user who is nobody special; SCRIPT runs as root
rootless_cdi() {
	local profile=$1 script=$2
	shift 2

	CTR_GPU_TEST_AS_ROOT=$script rootless "$profile" podman run --rm "$@"
}
