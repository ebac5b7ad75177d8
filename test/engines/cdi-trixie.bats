#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# CDI with a release's Docker and Podman: specs of ours in containers, and what `ctr-gpu cdi check` says of an engine against
# what that engine does with specs of every version.

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
	docker_start wsl-two-nvidia "{\"features\": {\"cdi\": true}, \"cdi-spec-dirs\": [\"$directory\"]}" "ctr-gpu cdi generate --output=$directory/"
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

two_gpus() {
	expect_status 0
	expect_line "cuInit=0"
	expect_line "count=2"
	expect_line "library=$(store wsl-two-nvidia 0)/libcuda.so.1.1"
	expect_line "library=$(store wsl-two-nvidia 1)/libcuda.so.1.1"
}

@test "Podman: two devices of one spec, one, and one without hooks" {
	with_podman wsl-two-nvidia "ctr-gpu cdi generate" --device nvidia.com/gpu=0 --device nvidia.com/gpu=1 debian probe
	two_gpus
	with_podman wsl-nvidia "ctr-gpu cdi generate" --device nvidia.com/gpu=all debian probe
	expect_gpu
	with_podman wsl-nvidia "ctr-gpu cdi generate --no-hooks" --device nvidia.com/gpu=0 debian probe
	expect_gpu
}

@test "Docker: two devices of one spec, one, and none" {
	run docker run --rm --network none --device nvidia.com/gpu=0 --device nvidia.com/gpu=1 debian probe
	two_gpus
	run docker run --rm --network none --cap-drop ALL --user 1000 --device nvidia.com/gpu=0000:01:00.0 debian probe
	expect_line "count=1"
	run docker run --rm --network none debian probe
	expect_no_gpu
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
		small_spec "$version" >"$directory/new" && mv "$directory/new" "$directory/small.json"
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
