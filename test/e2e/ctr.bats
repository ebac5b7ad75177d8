#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# containerd's own client: `ctr run --gpus N` has `containerd oci-hook` run nvidia-container-cli, which it finds on its PATH,
# with the environment of the client. Links to this file in test/engines run it with the containerd of other releases.

load engines

setup_file() {
	require_root
	require_program containerd
	require_program ctr
	! declare -F use_tree >/dev/null || use_tree
	image_archive debian ctr-gpu-test/debian:latest "$(engine_directory containerd)/image.tar"
}

# ctr_run PROFILE OPTIONS ARGUMENT…: `ctr run OPTIONS image ARGUMENT…` with a containerd of its own, after what $CTR_GPU_TEST_AS_ROOT says
ctr_run() {
	local profile=$1 options=$2
	shift 2

	run sandbox "$profile" bash -c '
		directory=$1 options=$2
		shift 2
		eval "${CTR_GPU_TEST_AS_ROOT-}"
		mkdir -p /run/containerd
		cat >/run/containerd/config.toml <<-END
			version = 2
			root = "$directory/root"
			state = "/run/containerd"
			disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
			[grpc]
			  address = "/run/containerd/containerd.sock"
		END
		containerd --config /run/containerd/config.toml >"$directory/log" 2>&1 &
		soon ctr version || exit
		ctr image import "$directory/image.tar" >"$directory/import" 2>&1 || exit
		# A weight of the processor, which ctr sets unasked, takes a controller that version 2 need not have.
		# To a file, which the shim of containerd writes. From a named pipe ctr reads nothing, and says nothing, where the container has ended
		# before the thread that opens the pipe runs again (strace -f -P /proc/self/fd/9 -e inject=openat:delay_exit=3000000 ctr run).
		ctr run --rm --log-uri "file://$directory/output" --cpu-shares 0 --cgroup "$CTR_GPU_TEST_CGROUP/container" $options \
			docker.io/ctr-gpu-test/debian:latest "container-$$" "$@"
		status=$?
		[[ ! -e $directory/output ]] || cat "$directory/output"
		rm -f "$directory/output"
		exit "$status"
	' ctr_run "$(engine_directory containerd)" "$options" "$@"
}

# bats test_tags=cgroup
@test "ctr run --gpus on a WSL2 host" {
	ctr_run wsl-nvidia "--gpus 0" probe
	expect_status 0
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
	expect_line "device=NVIDIA GeForce RTX 4090"
	expect_line "library=$(store wsl-nvidia 0)/libcuda.so.1.1"
}

@test "ctr run --gpus on a Hyper-V guest without libdxcore" {
	ctr_run hyperv-no-libdxcore "--gpus 0" true
	[[ $status -ne 0 ]]
	expect "/usr/lib/wsl/lib/libdxcore.so is missing, and without it no program finds a GPU"
}

@test "ctr run --gpus on a native host" {
	ctr_run native-nvidia "--gpus 0" probe
	expect_status 0
	expect_line "cuInit=0"
	expect_line "device=NVIDIA H200"
	expect_line "library=/usr/lib/ctr-gpu/libcuda.so.1"
}

# bats test_tags=cgroup
@test "of two GPUs, the one that is asked for" {
	ctr_run native-mig "--gpus 1" sh -c 'ls /dev'
	expect_status 0
	expect_line "nvidia1"
	expect_no_line "nvidia0"
	ctr_run wsl-two-nvidia "--gpus 1" sh -c 'ls /usr/lib/wsl/drivers'
	expect_line "$(basename "$(store wsl-two-nvidia 1)")"
	expect_no_line "$(basename "$(store wsl-two-nvidia 0)")"
}

# bats test_tags=cgroup
@test "without --gpus there is none" {
	ctr_run wsl-nvidia "" sh -c 'ls /dev /usr/lib'
	expect_status 0
	expect_not "dxg"
	expect_not "wsl"
}

@test "a GPU that the host does not have: no container, and containerd passes the reason on" {
	ctr_run wsl-nvidia "--gpus 7" probe
	expect_status 1
	expect "nvidia-container-cli: device error: this host has no device"
	expect_not "cuInit"
}

# bats test_tags=cgroup
@test "ctr run with the runtime shim" {
	ctr_run wsl-nvidia "--runc-binary nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=all" probe
	expect_status 0
	expect_line "cuInit=0"
	expect_line "library=$(store wsl-nvidia 0)/libcuda.so.1.1"
	ctr_run native-nvidia "--runc-binary nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=all" probe
	expect_status 0
	expect_line "device=NVIDIA H200"
	ctr_run wsl-nvidia "--runc-binary nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=7" probe
	expect_status 1
	expect "ctr-gpu-runtime: [E_UNKNOWN_DEVICE]"
}

@test "by vCUDA: what ctr has in its environment says so, and the container has no device" {
	local add="--mount type=bind,src=$CTR_GPU_BUILD/test/real/cuda-add,dst=/usr/bin/cuda-add,options=rbind:ro"
	local vcuda='driver && mkdir -p /etc/ctr-gpu && echo "{\"vcuda\": {\"mode\": \"allow\"}}" >/etc/ctr-gpu/config.json
		ctr-gpu-vcudad 2>/dev/null & until ctr-gpu vcuda list >/dev/null 2>&1; do sleep 0.02; done; export CTR_GPU_MODE=vcuda CTR_GPU_MEMORY=1G'

	[[ -z ${engine_tree-} ]] || skip "vCUDA is not installed there"
	export -f driver
	CTR_GPU_TEST_AS_ROOT=$vcuda ctr_run wsl-two-nvidia "--gpus 1 $add" sh -c 'ls /dev/dxg; cuda-add'
	expect_status 0
	expect_line "GPU-7b10aa04-0041-0000-0000-000084ef55fb: Small: 1048576 sums are right"
	expect "/dev/dxg: No such file"
	expect_not "GPU-5a3f1c2b"
}
