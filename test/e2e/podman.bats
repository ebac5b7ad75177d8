#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Podman, which runs our hook for every container because a file in its hooks directory says so; as root and as a user.

load engines

setup_file() {
	require_root
	require_program podman
	require_program newuidmap
	podman_setup
}

with_runtime() {
	run podman_in wsl-nvidia run --runtime "$1" --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

# bats test_tags=cgroup
@test "podman with crun" {
	with_runtime crun
}

# bats test_tags=cgroup
@test "podman with runc" {
	with_runtime runc
}

@test "the hooks file that is installed works" {
	local directory

	directory=$(engine_directory podman)
	cp "$directory/hooks/ctr-gpu.json" "$BATS_TEST_TMPDIR/"
	jq --arg path "$CTR_GPU_BUILD/bin/ctr-gpu-hook" '.hook.path = $path' "$e2e/../../hooks/ctr-gpu.json" \
		>"$directory/hooks/ctr-gpu.json"
	run podman_in wsl-nvidia run --runtime crun --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	cp "$BATS_TEST_TMPDIR/ctr-gpu.json" "$directory/hooks/"
	expect_gpu
}

@test "a UUID of nvidia-smi, for root and for a user" {
	local uuid
	run podman_in wsl-nvidia run --runtime crun --rm -e NVIDIA_VISIBLE_DEVICES=all debian nvidia-smi -L
	uuid=$(sed -n 's/.*(UUID: \(.*\))/\1/p' <<<"$output")
	[[ $uuid == GPU-* ]]
	run podman_in wsl-nvidia run --runtime crun --rm -e NVIDIA_VISIBLE_DEVICES="$uuid" debian probe
	expect_gpu
	run rootless wsl-nvidia podman --runtime crun run --rm -e NVIDIA_VISIBLE_DEVICES="$uuid" debian probe
	expect_gpu
}

# leaves_nothing COMMAND…: a shell of root's or of a user's; Podman itself changes /etc
leaves_nothing() {
	run "$@" bash -ec "$cleaned_up"'
		go() { podman run ${CTR_GPU_TEST_CGROUP:+--cgroup-parent "$CTR_GPU_TEST_CGROUP"} "$@" >/dev/null; }
		go --name left-none debian sh -c :
		go --name left -e NVIDIA_VISIBLE_DEVICES=all debian probe
		cleaned_up left-none
		cleaned_up left
		podman diff left 2>/dev/null | sort >"${XDG_RUNTIME_DIR:-/run}/left"
		podman diff left-none 2>/dev/null | sort | diff - "${XDG_RUNTIME_DIR:-/run}/left" && echo same
		podman rm --force left left-none >/dev/null
	'
	expect_line same
}

# bats test_tags=cgroup
@test "nothing of a GPU is in the layer of a container that has ended, for root and for a user" {
	local directory

	directory=$(engine_directory podman)
	leaves_nothing sandbox wsl-nvidia env CONTAINERS_CONF="$directory/containers.conf" CONTAINERS_STORAGE_CONF="$directory/storage.conf" memlock
	leaves_nothing rootless wsl-nvidia
}

cuda_image_without_gpu() {
	run podman_in plain run --runtime "$1" --rm -e NVIDIA_VISIBLE_DEVICES=all -e NVIDIA_REQUIRE_CUDA='cuda>=12.4' -e CUDA_VERSION=12.4.1 debian sh -c 'echo works'
	expect_status 0
	[[ $output == works ]]
	run podman_in plain run --runtime "$1" --rm -e NVIDIA_VISIBLE_DEVICES=0 debian sh -c 'echo works'
	[[ $status -ne 0 ]]
	expect_no_line works
}

@test "on a machine without a GPU, CUDA images start, and containers do not for which a GPU was named" {
	cuda_image_without_gpu crun
	cuda_image_without_gpu runc
}

# bats test_tags=cgroup
@test "a container that asks for nothing gets nothing" {
	run podman_in wsl-nvidia run --runtime crun --rm --cap-add MKNOD debian sh -c 'ls /dev; probe node 10 183 /tmp/node; probe'
	expect_no_line "dxg"
	expect_line "/tmp/node=EPERM"
	expect_line "/dev/dxg=ENOENT"
	expect_not "cuInit"
}

# bats test_tags=cgroup
@test "the device rule is for the GPU and nothing else" {
	run podman_in wsl-nvidia run --runtime crun --rm --cap-add MKNOD -e NVIDIA_VISIBLE_DEVICES=all debian \
		sh -c 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse'
	expect_line "/tmp/gpu=ok"
	expect_line "/tmp/fuse=EPERM"
}

@test "--read-only" {
	run podman_in wsl-nvidia run --runtime crun --rm --read-only -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "--rootfs: a directory instead of an image" {
	image_copy fedora-like "$BATS_TEST_TMPDIR/rootfs"
	run podman_in wsl-nvidia run --runtime crun --rm -e NVIDIA_VISIBLE_DEVICES=all --rootfs "$BATS_TEST_TMPDIR/rootfs" probe
	expect_gpu
}

@test "another user, without capabilities" {
	run podman_in wsl-nvidia run --runtime crun --rm --user 65534 --cap-drop ALL -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

# crun has been in another mount namespace by then, and tells its hooks that the bundle is "/".
# bats test_tags=cgroup
@test "a user namespace with a device of its own, with a GPU and without" {
	run podman_in wsl-no-adapter run --runtime crun --rm --uidmap 0:100000:65536 --device /dev/fuse debian sh -c 'echo started'
	expect_status 0
	expect_line "started"
	run podman_in wsl-nvidia run --runtime crun --rm --uidmap 0:100000:65536 --device /dev/fuse -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "annotations that are no text we could read" {
	for annotation in $'a\x01=\x02' 'a="\u0000' $'b=\xff'; do
		run podman_in wsl-no-adapter run --runtime crun --rm --annotation "$annotation" debian sh -c 'echo started'
		[[ $output != *ctr-gpu* && $output != *"error executing hook"* ]]
	done
}

# bats test_tags=cgroup
@test "a user namespace: --uidmap" {
	run podman_in wsl-nvidia run --runtime crun --rm --uidmap 0:100000:65536 -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "a failure stops the container" {
	run podman_in wsl-nvidia run --runtime runc --rm -e NVIDIA_VISIBLE_DEVICES=9 debian probe
	[[ $status -ne 0 ]]
	expect "ctr-gpu-hook: [E_UNKNOWN_DEVICE]"
	expect_not "cuInit"
}

rootless_with() {
	run rootless wsl-nvidia podman --runtime "$1" run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

# bats test_tags=cgroup
@test "rootless, with crun" {
	rootless_with crun
}

# bats test_tags=cgroup
@test "rootless, with runc" {
	rootless_with runc
}

# bats test_tags=cgroup
# shape_rootless COMMANDS [PEER]: a root filesystem of the user's, in which COMMANDS were run, while PEER runs there, as another container
# may that has it, too. $CTR_GPU_TEST_STARTS starts: the user's own files stay as they are.
shape_rootless() {
	local directory rounds=${CTR_GPU_TEST_STARTS:-1} before

	directory=$(engine_directory rootless)
	rm -rf "$directory/root" "$directory/precious"
	image_copy debian "$directory/root"
	mkdir -p "$directory/precious"/{wsl,lib,drivers}
	echo mine | tee "$directory/precious"/{ld.so.cache,00-ctr-gpu.conf,nvidia-smi,dxg} >/dev/null
	(cd "$directory/root" && eval "$1")
	chown -hR 54321:54321 "$directory/root" "$directory/precious"
	before=$(find "$directory/precious" -printf '%P %y %m %T@ %l\n' -type f -exec sha256sum {} +)
	run rootless wsl-nvidia bash -c '
		cd root && setsid bash -c "$2" & peer=$!
		for ((round = 0; round < $1; round++)); do
			for runtime in runc crun; do
				podman --runtime "$runtime" run --rm -e NVIDIA_VISIBLE_DEVICES=all --rootfs "$HOME/root" probe </dev/null 2>&1
			done
		done
		kill "$peer" 2>/dev/null' shape_rootless "$rounds" "${2:-:}"
	echo "$output" | sort | uniq -c
	[[ $(find "$directory/precious" -printf '%P %y %m %T@ %l\n' -type f -exec sha256sum {} +) == "$before" ]] || {
		find "$directory/precious" -ls
		return 1
	}
}

@test "rootless: a root filesystem that leads to the user's files, and one that a peer changes, harm none of them" {
	shape_rootless :
	expect_line "cuInit=0"
	shape_rootless 'ln -s /run/home/precious usr/lib/wsl'
	shape_rootless 'rm -rf etc/ld.so.conf.d; ln -s ../../../../../../../../run/home/precious etc/ld.so.conf.d'
	shape_rootless 'rm -f etc/ld.so.cache; ln -s /run/home/precious/ld.so.cache etc/ld.so.cache; ln -s /run/home/precious/nvidia-smi usr/bin/nvidia-smi'
	shape_rootless 'mkdir usr/lib/wsl; ln -s /run/home/precious usr/lib/other' \
		'perl -e "require \"syscall.ph\"; syscall(SYS_renameat2(), -100, \$ARGV[0], -100, \$ARGV[1], 2) while 1" usr/lib/wsl usr/lib/other'
}

@test "rootless: a container that asks for nothing gets nothing" {
	run rootless wsl-nvidia podman run --rm debian sh -c 'ls /dev; probe'
	expect_no_line "dxg"
	expect_line "/dev/dxg=ENOENT"
}

@test "rootless, another user in the container" {
	run rootless wsl-nvidia podman --runtime crun run --rm --user 65534 -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "rootless, --read-only" {
	run rootless wsl-nvidia podman --runtime crun run --rm --read-only -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "rootless, on a Hyper-V guest without libdxcore" {
	run rootless hyperv-no-libdxcore podman --runtime crun run --rm -e NVIDIA_VISIBLE_DEVICES=all \
		-e NVIDIA_DRIVER_CAPABILITIES=utility debian \
		sh -c 'ls /usr/lib/wsl/drivers; probe open /dev/dxg'
	expect_line "$(basename "$(store hyperv-no-libdxcore 0)")"
	expect_line "/dev/dxg=ok"
}

@test "libraries that are symlinks to another directory, also rootless" {
	run podman_in wsl-lib-links run --runtime crun --rm --user 1000 -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
	run rootless wsl-lib-links podman --runtime crun run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}
