#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# Apptainer with --nvccli, as root and as a user in a user namespace. It runs nvidia-container-cli itself, between making the
# root directory of a container and entering it.

load engines

setup_file() {
	require_root
	engine_tree=$("$e2e/../engines/tree" "$suite" apptainer fuse-overlayfs libcap2 libjansson4 libseccomp2 libyaml-0-2 libtirpc3t64 \
		squashfuse)
	export engine_tree
	image_copy debian "$(engine_directory apptainer)/image"
	image_copy debian "$(engine_directory rootless)/image"
	chown -R 54321:54321 "$(engine_directory rootless)/image"
}

# What images do not have is not mounted. This machine may lack a capability that --no-privs does not want to keep.
options=(--no-privs --nv --nvccli --no-home --no-mount 'tmp,cwd,hostfs,/etc/localtime,/etc/hosts')

# as_root PROFILE OPTION… IMAGE ARGUMENT…
as_root() {
	local profile=$1
	shift
	# Not as the first process, which knows no mounts of engines.
	run sandbox "$profile" bash -c 'cd "$0" && "$@"; exit' "$(engine_directory apptainer)" \
		apptainer exec "${options[@]}" "$@"
}

as_user() {
	local profile=$1
	shift
	run rootless "$profile" apptainer exec "${options[@]}" "$@"
}

@test "root: a directory that is written to" {
	as_root wsl-nvidia --writable image probe
	expect_gpu
}

@test "root: a layer in memory over a directory" {
	as_root wsl-nvidia image probe
	expect_gpu
	as_root native-four image probe
	expect_native 4
}

@test "a user: a directory that is written to" {
	as_user wsl-nvidia --writable image probe
	expect_gpu
}

@test "a user: a layer in memory over a directory" {
	as_user wsl-nvidia image probe
	expect_gpu
	as_user native-four image probe
	expect_native 4
}

@test "a user: a squashfs image" {
	run rootless wsl-nvidia bash -c 'mksquashfs image image.sqfs >/dev/null && exec apptainer exec "$@" image.sqfs probe' \
		apptainer "${options[@]}"
	expect_gpu
}

@test "a /dev of its own has the GPU that is asked for" {
	export NVIDIA_VISIBLE_DEVICES=0
	as_root wsl-nvidia --contain image probe
	expect_gpu
	as_root native-four --contain image sh -c 'ls /dev'
	expect_line nvidia0
	expect_no_line nvidia1
	run rootless native-four bash -c '"$@"; exit' apptainer env NVIDIA_VISIBLE_DEVICES=1 apptainer exec "${options[@]}" --contain image sh -c 'ls /dev'
	expect_line nvidia1
	expect_no_line nvidia0
}

@test "a host without a GPU: no container, and Apptainer passes the reason on" {
	as_root plain image probe
	[[ $status -ne 0 ]]
	expect "nvidia-container-cli: initialization error: no GPU here"
	expect_not "/dev/dxg="
}
