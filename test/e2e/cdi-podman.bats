#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# Podman with CDI: specs that `ctr-gpu cdi generate` writes, as root and as a user, with both runtimes.

load cdi

setup_file() {
	require_root
	require_program podman
	require_program newuidmap
	podman_setup
	# CDI alone, and no hook for every container.
	podman_remove_hooks
}

generate='ctr-gpu cdi generate >/dev/null'

# Runs with a device of a spec and each runtime.
with_device() {
	local runtime

	for runtime in runc crun; do
		echo "with $runtime:"
		run podman_cdi wsl-nvidia "${2-$generate}" --runtime "$runtime" --device "nvidia.com/gpu=$1" debian probe
		expect_gpu
	done
}

@test "all" {
	with_device all
}

# bats test_tags=cgroup
@test "nothing of a GPU is in the layer of a container that has ended" {
	local directory runtime

	directory=$(engine_directory podman)
	for runtime in runc crun; do
		run sandbox wsl-nvidia env CONTAINERS_CONF="$directory/containers.conf" CONTAINERS_STORAGE_CONF="$directory/storage.conf" bash -ec "$cleaned_up"'
			ctr-gpu cdi generate >/dev/null
			go() { memlock podman run --runtime "$0" --cgroup-parent "$CTR_GPU_TEST_CGROUP" "$@"; }
			go --name none debian sh -c :
			go --name all --device nvidia.com/gpu=all debian probe >/dev/null
			cleaned_up none
			cleaned_up all
			podman diff all 2>/dev/null | sort >/run/all
			podman diff none 2>/dev/null | sort | diff - /run/all && echo same
			podman rm --force all none >/dev/null
		' "$runtime"
		expect_line same
	done
}

@test "an index" {
	with_device 0
}

@test "a LUID and a PCI address" {
	run podman_cdi wsl-nvidia "$generate" --runtime runc --device nvidia.com/gpu=LUID-000000005a3f1c2b debian probe
	expect_gpu
	run podman_cdi wsl-nvidia "$generate" --runtime crun --device nvidia.com/gpu=0000:01:00.0 debian probe
	expect_gpu
}

@test "a device that the host does not have" {
	run podman_cdi wsl-nvidia "$generate" --device nvidia.com/gpu=7 debian probe
	[[ $status -ne 0 ]]
	expect "nvidia.com/gpu=7"
}

@test "without hooks" {
	with_device all 'ctr-gpu cdi generate --no-hooks >/dev/null'
}

@test "two devices in one container make one plan" {
	local runtime

	for runtime in runc crun; do
		run podman_cdi wsl-two-nvidia "$generate" --runtime "$runtime" --device nvidia.com/gpu=0 --device nvidia.com/gpu=1 debian \
			sh -c 'ls /usr/lib/wsl/drivers; grep -c /dev/dxg /proc/self/mountinfo; probe'
		expect_status 0
		expect_line "$(basename "$(store wsl-two-nvidia 0)")"
		expect_line "$(basename "$(store wsl-two-nvidia 1)")"
		expect_line "cuInit=0"
		# The engine made the node; ours is not laid over it.
		expect_line 0
	done
	run podman_cdi wsl-two-nvidia "$generate" --device nvidia.com/gpu=1 debian ls /usr/lib/wsl/drivers
	expect_line "$(basename "$(store wsl-two-nvidia 1)")"
	[[ $(grep -c . <<<"$output") -eq 1 ]]
}

@test "the vendors of a laptop are kinds of their own" {
	run podman_cdi wsl-hybrid "$generate" --device intel.com/gpu=all debian ls /usr/lib/wsl/drivers
	expect_status 0
	[[ $output == iigd_dch* && $(grep -c . <<<"$output") -eq 1 ]]
	run podman_cdi wsl-hybrid "$generate" --device nvidia.com/gpu=all debian ls /usr/lib/wsl/drivers
	[[ $output == nv_dispi* && $(grep -c . <<<"$output") -eq 1 ]]
	run podman_cdi wsl-hybrid "$generate" --device nvidia.com/gpu=all --device intel.com/gpu=0 debian ls /usr/lib/wsl/drivers
	[[ $(grep -c . <<<"$output") -eq 2 ]]
}

@test "an NPU is of a kind of its own; a GPU goes by its UUID" {
	run podman_cdi wsl-amd-xdna2 "$generate" --device amd.com/npu=0 debian ls /usr/lib/wsl/drivers
	expect_status 0
	[[ $output == kipudrv* && $(grep -c . <<<"$output") -eq 1 ]]
	run podman_cdi wsl-amd-xdna2 "$generate" --device amd.com/gpu=all debian ls /usr/lib/wsl/drivers
	[[ $output == u0198975* && $(grep -c . <<<"$output") -eq 1 ]]
	run podman_cdi wsl-two-nvidia "$generate" --device nvidia.com/gpu=GPU-7b10aa04-0041-0000-0000-000084ef55fb debian ls /usr/lib/wsl/drivers
	expect_status 0
	[[ $output == "$(basename "$(store wsl-two-nvidia 1)")" ]]
}

# bats test_tags=cgroup
@test "a container without devices is left alone" {
	run podman_cdi wsl-nvidia "$generate" --cap-add MKNOD -e NVIDIA_VISIBLE_DEVICES=all debian sh -c 'ls /dev; probe; probe node 10 183 /tmp/node'
	expect_no_line "dxg"
	expect_line "/dev/dxg=ENOENT"
	expect_line "/tmp/node=EPERM"
}

# bats test_tags=cgroup
@test "the device rule is for the GPU and nothing else" {
	local runtime

	for runtime in runc crun; do
		run podman_cdi wsl-nvidia "$generate" --runtime "$runtime" --cap-add MKNOD --device nvidia.com/gpu=all debian \
			sh -c 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse'
		expect_line "/tmp/gpu=ok"
		expect_line "/tmp/fuse=EPERM"
	done
}

@test "the image's NVIDIA_VISIBLE_DEVICES does not count, its capabilities and requirements do" {
	run podman_cdi wsl-nvidia "$generate" -e NVIDIA_VISIBLE_DEVICES=7 -e NVIDIA_DRIVER_CAPABILITIES=compute --device nvidia.com/gpu=0 \
		debian sh -c 'env; ls /usr/bin/nvidia-smi; probe'
	expect_line "NVIDIA_VISIBLE_DEVICES=void"
	expect_line "cuInit=0"
	expect_no_line "/usr/bin/nvidia-smi"
	run podman_cdi wsl-nvidia "$generate" --runtime runc -e NVIDIA_REQUIRE_CUDA='cuda>=99' --device nvidia.com/gpu=0 debian probe
	[[ $status -ne 0 ]]
	expect "[E_REQUIREMENT]"
}

@test "a hook for every container does nothing besides" {
	local directory

	directory=$(engine_directory podman)
	jq --arg path "$CTR_GPU_BUILD/bin/ctr-gpu-hook" '.hook.path = $path' "$e2e/../../hooks/ctr-gpu.json" >"$directory/hooks/ctr-gpu.json"
	run podman_cdi wsl-two-nvidia "$generate" --device nvidia.com/gpu=1 -e NVIDIA_VISIBLE_DEVICES=all debian ls /usr/lib/wsl/drivers
	rm "$directory"/hooks/*
	expect_status 0
	expect_line "$(basename "$(store wsl-two-nvidia 1)")"
	[[ $(grep -c . <<<"$output") -eq 1 ]]
}

@test "a user whose engine's node is his own, on a node of root's" {
	run podman_cdi native-nvidia "chmod 600 /dev/nvidia0 /dev/nvidiactl; $generate" --user 1000 --cap-drop ALL --device nvidia.com/gpu=0 debian probe open /dev/nvidia0
	expect_line "/dev/nvidia0=ENXIO"
}

# bats test_tags=cgroup
@test "native: one of four GPUs, by index and UUID" {
	run podman_cdi native-four "$generate" --device nvidia.com/gpu=2 debian sh -c 'ls /dev; probe'
	expect_line "nvidia2"
	expect_no_line "nvidia0"
	expect_line "cuInit=0"
	run podman_cdi native-four "$generate" --device nvidia.com/gpu=GPU-b703df58-2273-35fb-29be-3f6c49b83a98 debian sh -c 'ls /dev'
	expect_line "nvidia3"
	expect_no_line "nvidia2"
	run podman_cdi native-four "$generate" --device nvidia.com/gpu=all debian sh -c 'ls /dev'
	expect_line "nvidia0"
	expect_line "nvidia3"
}

# bats test_tags=cgroup
@test "native: a MIG part by its index and by NVML's name" {
	local name

	for name in 1:1 MIG-00020000-2273-35fb-29be-3f6c49b83a96; do
		run podman_cdi native-mig "$generate" --device "nvidia.com/gpu=$name" debian sh -c 'ls /dev /dev/nvidia-caps'
		expect_status 0
		expect_line "nvidia1"
		expect_no_line "nvidia0"
		expect_line "nvidia-cap156"
		expect_line "nvidia-cap157"
		expect_no_line "nvidia-cap158"
	done
}

@test "native, without hooks" {
	run podman_cdi native-nvidia 'ctr-gpu cdi generate --no-hooks >/dev/null' --device nvidia.com/gpu=0 debian probe
	expect_line "cuInit=0"
}

# A spec of wsl-nvidia, on that host after a driver update in Windows: the store has another name.
@test "a spec of before a driver update still works; one without hooks is called stale" {
	local specs=$BATS_TEST_TMPDIR/specs CTR_GPU_TEST_PROFILES=$BATS_TEST_TMPDIR/profiles

	sandbox wsl-nvidia ctr-gpu cdi generate --output="$specs/"
	sandbox wsl-nvidia ctr-gpu cdi generate --no-hooks --output="$specs/static.json"
	mkdir "$CTR_GPU_TEST_PROFILES"
	export CTR_GPU_TEST_PROFILES
	jq '.adapters[0].store = "nv_dispi.inf_amd64_0123456789abcdef"' "$e2e/../hosts/profiles/wsl-nvidia.json" \
		>"$CTR_GPU_TEST_PROFILES/wsl-nvidia.json"
	run podman_cdi wsl-nvidia "mkdir /etc/cdi; cp $specs/ctr-gpu-nvidia.json /etc/cdi" --device nvidia.com/gpu=all debian probe
	expect_status 0
	expect_line "cuInit=0"
	expect "library=/usr/lib/wsl/drivers/nv_dispi.inf_amd64_0123456789abcdef/"
	run sandbox wsl-nvidia ctr-gpu cdi check "$specs/ctr-gpu-nvidia.json"
	expect_status 0
	expect "No error was found."
	run sandbox wsl-nvidia ctr-gpu cdi check "$specs/static.json"
	expect_status 1
	expect "not there, since the driver has changed: $(store wsl-nvidia 0 2>/dev/null)"
	expect "stale: the driver or its nodes have changed"
	expect "ctr-gpu cdi generate --no-hooks"
}

# bats test_tags=cgroup
@test "rootless" {
	local runtime generate=/run/ctr-gpu/bin/$generate

	for runtime in runc crun; do
		run rootless_cdi wsl-nvidia "$generate" --runtime "$runtime" --device nvidia.com/gpu=all debian probe
		expect_gpu
	done
	run rootless_cdi wsl-nvidia "$generate" --device nvidia.com/gpu=0 debian probe
	expect_gpu
}

@test "rootless, without hooks" {
	run rootless_cdi wsl-nvidia 'ctr-gpu cdi generate --no-hooks >/dev/null' --device nvidia.com/gpu=0 debian probe
	expect_gpu
}
