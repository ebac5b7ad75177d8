#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# What `ctr-gpu cdi check` says of a release's Docker and Podman, against what they do with specs of every version.

load engines

versions=(0.3.0 0.4.0 0.5.0 0.6.0 0.7.0 0.8.0 1.0.0 1.1.0)

setup_file() {
	local directory

	require_root
	use_tree
	directory=$(engine_directory podman)
	podman_configure "$directory"
	tar -C "$(image debian)" -c . | podman_in - import --quiet - debian >/dev/null
	directory=$(engine_directory specs)
	docker_start - "{\"features\": {\"cdi\": true}, \"cdi-spec-dirs\": [\"$directory\"]}"
	docker_image debian
}

teardown_file() {
	docker_stop
}

# with_podman PROFILE SCRIPT ARGUMENT…: `podman run ARGUMENT…` where SCRIPT wrote specs
with_podman() {
	local profile=$1 script=$2 directory
	shift 2

	directory=$(engine_directory podman)
	# shellcheck disable=SC2016 # for the inner shell
	run sandbox "$profile" env CONTAINERS_CONF="$directory/containers.conf" CONTAINERS_STORAGE_CONF="$directory/storage.conf" bash -c '
		eval "$1" || exit
		shift
		exec memlock podman run --cgroup-parent "$CTR_GPU_TEST_CGROUP" --rm "$@"
	' podman "$script" "$@"
}

small_spec() {
	echo "{\"cdiVersion\": \"$1\", \"kind\": \"example.com/card\", \"devices\": [{\"name\": \"one\", \"containerEdits\": {\"env\": [\"A=b\"]}}]}"
}

# agree ENGINE VERSION STATUS: our check says of a spec of this version what the engine's exit status does
agree() {
	local ours=0

	small_spec "$2" >"$BATS_TEST_TMPDIR/spec.json"
	"$CTR_GPU_BUILD/bin/ctr-gpu" cdi check --engine "$1" "$BATS_TEST_TMPDIR/spec.json" || ours=$?
	echo "$1, CDI $2: we say $ours, the engine $3"
	[[ $ours -eq 0 && $3 -eq 0 ]] || [[ $ours -ne 0 && $3 -ne 0 ]]
}

@test "a spec without hooks" {
	with_podman wsl-nvidia "ctr-gpu cdi generate --no-hooks" --device nvidia.com/gpu=0 debian probe
	expect_gpu
}

@test "what check says of Podman is what Podman does" {
	local version

	for version in "${versions[@]}"; do
		with_podman - "mkdir -p /etc/cdi; echo '$(small_spec "$version")' >/etc/cdi/a.json" --device example.com/card=one debian env
		agree "podman:$(tree_version podman)" "$version" "$status"
	done
}

@test "what check says of Docker is what Docker does" {
	local version directory

	directory=$(engine_directory specs)
	for version in "${versions[@]}"; do
		small_spec "$version" >"$directory/new"
		mv "$directory/new" "$directory/small.json"
		# The daemon hears of a change when it comes to it.
		for _ in 1 2 3 4 5; do
			run docker run --rm --network none --device example.com/card=one debian env
			[[ $status -ne 0 ]] || break
			sleep 0.2
		done
		agree "docker:$(tree_version docker.io)" "$version" "$status"
		rm "$directory/small.json"
	done
}
