#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# AMD's and Intel's GPUs on the machine itself: nodes of /dev/dri, /dev/kfd and /dev/accel, and nothing else. Their numbers
# are forbidden by every engine's own rules; a node that may be opened answers ENXIO, since no driver is behind it, and one
# that its owner and mode forbid EACCES.

load cdi
bats_require_minimum_version 1.5.0

setup_file() {
	require_root
	require_program dockerd
	require_program podman
	[[ -e /sys/bus/pci/devices ]] || skip "needs a PCI bus"
	docker_start native-amd "{\"runtimes\": {\"nvidia\": {\"path\": \"$CTR_GPU_BUILD/bin/nvidia-container-runtime\"}}}"
	docker_image debian
	podman_setup
}

teardown_file() {
	docker_stop
}

# plan PROFILE OPTION…: the paths of the nodes that a container would get
plan() {
	local profile=$1
	shift

	run sandbox "native-$profile" ctr-gpu configure --dry-run --json "$@" /srv
	expect_status 0
	run jq -r '[.devices[].path | ltrimstr("/dev/")] | sort | join(" ")' <<<"$output"
}

# asked PROFILE ENVIRONMENT…: the same by a container's variables, through the hook
asked() {
	local profile=$1 bundle=$BATS_TEST_TMPDIR/bundle
	shift

	mkdir -p "$bundle/rootfs"
	jq -n '{ociVersion: "1.0.2", root: {path: "rootfs"}, process: {args: ["sh"], env: $ARGS.positional, user: {uid: 0, gid: 0}},
		hooks: {prestart: [$ENV.docker_hook // empty | {path: ., args: ["nvidia-container-runtime-hook", "prestart"]}]}}' \
		--args "$@" >"$bundle/config.json"
	jq -n --arg bundle "$bundle" '{ociVersion: "1.0.2", id: "drm", status: "creating", pid: 1, bundle: $bundle}' >"$bundle/state"
	run --separate-stderr sandbox "native-$profile" bash -c 'ctr-gpu-hook --dry-run createRuntime <"$1"' asked "$bundle/state"
	[[ $status -eq 0 ]] || return 0
	[[ -n $output ]] || output='{"devices": []}'
	run jq -r '[.devices[].path | ltrimstr("/dev/")] | sort | join(" ")' <<<"$output"
}

@test "the inventory names GPUs, partitions and NPUs" {
	run sandbox native-amd ctr-gpu info
	expect "GPU 0   AMD GPU gfx1100 (1002:744c)"
	expect "UUID          GPU-123456789abcdef0"
	expect "node          /dev/dri/renderD128"
	run sandbox native-amd-partitions ctr-gpu info
	expect "GPU 3   AMD Instinct MI300X OAM"
	expect "partition     one of 4 of its GPU"
	run sandbox native-intel ctr-gpu info
	expect "NPU 0   Intel NPU (8086:7d1d)"
	run sandbox native-hybrid ctr-gpu info --json
	run jq -r '[.adapters[] | .backend + ":" + .vendor] | join(" ")' <<<"$output"
	expect_line "nvidia:NVIDIA drm:AMD drm:AMD"
}

@test "devices only: a GPU's render node, AMD's compute node, cards for screens alone" {
	plan amd
	expect_line "dri/renderD128 dri/renderD129 kfd"
	plan amd --device 1
	expect_line "dri/renderD129 kfd"
	plan amd --device 0 -g
	expect_line "dri/card1 dri/renderD128"
	plan intel
	expect_line "dri/renderD128 dri/renderD129"
	plan intel --device npu:0
	expect_line "accel/accel0"
	plan intel --device 0000:03:00.0 -D
	expect_line "dri/card1 dri/renderD129"
	run sandbox native-amd ctr-gpu configure --dry-run --json --device 0 /srv
	run jq -c '[.mounts, .libraryDirectories | length], [.symlinks[] | .path + "=" + .pointsTo], [.devices[].group]' <<<"$output"
	expect_line '[0,0]'
	expect_line '["/dev/dri/by-path/pci-0000:03:00.0-render=../renderD128"]'
	expect_line '[992,992]'
}

@test "a partition has a number, and the names of its GPU mean all of them" {
	plan amd-partitions --device 2
	expect_line "dri/renderD130 kfd"
	plan amd-partitions --device GPU-a000000000000001
	expect_line "dri/renderD128 dri/renderD129 dri/renderD130 dri/renderD131 kfd"
	plan amd-partitions --device 0000:26:00.0
	expect_line "dri/renderD132 kfd"
}

@test "a partition of which the compute driver says nothing has no link by its address" {
	run sandbox native-amd-partitions bash -c 'mount -t tmpfs none /sys/class/kfd/kfd/topology/nodes &&
		ctr-gpu configure --dry-run --json --device 1 /srv'
	expect_status 0
	[[ $(jq -c '[.devices[0].path, .symlinks]' <<<"$output") == '["/dev/dri/renderD129",[]]' ]]
}

@test "AMD_VISIBLE_DEVICES: all, none, numbers, ranges, unique ids" {
	asked amd AMD_VISIBLE_DEVICES=all
	expect_line "dri/renderD128 dri/renderD129 kfd"
	asked amd AMD_VISIBLE_DEVICES=none
	expect_line ""
	asked amd-partitions AMD_VISIBLE_DEVICES=1-2,4
	expect_line "dri/renderD129 dri/renderD130 dri/renderD132 kfd"
	asked amd AMD_VISIBLE_DEVICES=0xEF2F7EBA3EC966ED
	expect_line "dri/renderD129 kfd"
	asked amd AMD_VISIBLE_DEVICES=0-2
	[[ $status -ne 0 && $stderr == *'[E_UNKNOWN_DEVICE] AMD_VISIBLE_DEVICES asks for GPU 2 of AMD, which this host does not have'* ]]
}

@test "each vendor's words are about its own GPUs" {
	asked hybrid NVIDIA_VISIBLE_DEVICES=all
	expect_not dri
	expect nvidia0
	asked hybrid NVIDIA_VISIBLE_DEVICES=1
	[[ $status -ne 0 && $stderr == *'no device "1"'* ]]
	asked hybrid AMD_VISIBLE_DEVICES=0
	expect_line "dri/renderD128 kfd"
	# In the vendor's own numbers, as they were written.
	asked hybrid AMD_VISIBLE_DEVICES=1
	[[ $status -ne 0 && $stderr == *'AMD_VISIBLE_DEVICES asks for GPU 1 of AMD,'*'It has: 0 AMD GPU'* ]]
	asked intel AMD_VISIBLE_DEVICES=0
	[[ $status -ne 0 && $stderr == *'[E_NO_ADAPTER] AMD_VISIBLE_DEVICES asks for GPU 0 of AMD,'*'It has: 0 Intel GPU'* ]]
	asked hybrid NVIDIA_VISIBLE_DEVICES=all AMD_VISIBLE_DEVICES=all
	expect "dri/renderD128 kfd nvidia-uvm nvidia-uvm-tools nvidia0 nvidiactl"
	# A laptop's own graphics are no answer to an image for CUDA, but are to a user of `docker run --gpus`.
	asked intel NVIDIA_VISIBLE_DEVICES=all
	expect_line ""
	[[ -z $stderr || $stderr == *"no GPU of nvidia.com"* ]]
	docker_hook=/usr/bin/nvidia-container-runtime-hook asked intel NVIDIA_VISIBLE_DEVICES=all
	expect_line "dri/renderD128 dri/renderD129"
	run sandbox native-hybrid nvidia-container-cli list --device all
	expect /dev/nvidia0
	expect_not /dev/dri/renderD128
}

@test "what is not there is refused with what is, whosever it is" {
	run sandbox native-intel ctr-gpu list --device amd.com/gpu=0
	expect_status 1
	expect "It has: 0 Intel GPU (8086:7d55); 1 Intel GPU (8086:56a0); npu:0 Intel NPU (8086:7d1d)"
}

@test "CDI specs count the GPUs of their vendor" {
	run sandbox native-hybrid ctr-gpu cdi generate --kind amd.com/gpu --output -
	run jq -r '([.devices[] | .name] | join(" ")), (.devices[0].containerEdits.deviceNodes | map(.path) | join(" ")), .containerEdits.env[1]' \
		<<<"$output"
	expect_line "0 0000:c1:00.0 all"
	expect_line "/dev/dri/renderD128 /dev/kfd"
	expect_line "AMD_VISIBLE_DEVICES=void"
	run sandbox native-intel bash -c 'ctr-gpu cdi generate && ls /etc/cdi && ctr-gpu cdi check'
	expect_status 0
	expect "intel.com/gpu"
	expect "intel.com/npu"
	run sandbox native-amd ctr-gpu cdi generate --no-hooks --output -
	expect_not LD_LIBRARY_PATH
}

@test "CDI specs give the groups of nodes where that is asked for, and never group 0" {
	local groups='.cdiVersion, (.devices[0].containerEdits.additionalGids | tostring)' status_file='bind() { mount --bind "$1" /var/lib/dpkg/status; }
		printf "Package: podman\nStatus: install ok installed\nVersion: %s+ds1-1\n\n" 4.9.3 >/run/old
		printf "Package: podman\nStatus: install ok installed\nVersion: %s+ds1-1\n\n" 5.1.0 >/run/new
		printf "Package: %s\nStatus: install ok installed\nVersion: 1.7.24~ds1-1\n\n" containerd >>/run/new'

	run sandbox native-amd bash -c "ctr-gpu cdi generate --groups --output - | jq -r '$groups'"
	[[ $output == $'0.7.0\n[992]' ]]
	# The card is for screens, and for its own group; the default has neither.
	run sandbox native-desktop bash -c "chgrp 44 /dev/dri/card*; ctr-gpu cdi generate --kind nvidia.com/gpu --groups --output - | jq -r '$groups'"
	[[ $output == $'0.7.0\n[992,44]' || $output == $'0.7.0\n[44,992]' ]]
	run sandbox native-desktop bash -c "ctr-gpu cdi generate --kind nvidia.com/gpu --output - | jq -r '$groups'"
	[[ $output == $'0.5.0\nnull' ]]
	run sandbox native-amd bash -c "chgrp 0 /dev/dri/* /dev/kfd; ctr-gpu cdi generate --groups --output - | jq -r '$groups'"
	[[ $output == $'0.5.0\nnull' ]]
	# An engine that would refuse the file keeps it away from where that one looks.
	run sandbox native-amd bash -c "$status_file; bind /run/old; ctr-gpu cdi generate --groups; ls /etc/cdi; ctr-gpu cdi generate --groups --output=/run/cdi-new/"
	expect "Podman 4.9.3 knows CDI up to 0.6.0, and would refuse a spec with groups, which is of 0.7.0"
	expect_line "amd.com/gpu: /run/cdi-new/ctr-gpu-amd.json"
	expect_no_line ctr-gpu-amd.json
	# A refresh keeps them, and follows them.
	run sandbox native-amd bash -c "$status_file; bind /run/new; ctr-gpu cdi generate --groups && ctr-gpu cdi check && chgrp 993 /dev/dri/render*; ctr-gpu cdi check
		ctr-gpu refresh; jq -r '$groups' /etc/cdi/ctr-gpu-amd.json"
	expect "the driver or its nodes have changed for"
	expect_line 0.7.0
	[[ ${lines[-1]} == "[993,992]" || ${lines[-1]} == "[992,993]" ]]
}

# bats test_tags=cgroup
@test "Docker: --gpus on a host with AMD's GPUs alone" {
	run docker run --rm --gpus all debian sh -c 'probe open /dev/dri/renderD128; probe open /dev/dri/renderD129; probe open /dev/kfd'
	expect_status 0
	expect_line "/dev/dri/renderD128=ENXIO"
	expect_line "/dev/dri/renderD129=ENXIO"
	expect_line "/dev/kfd=ENXIO"
	run docker run --rm debian probe node 226 128 /tmp/node
	expect_line "/tmp/node=EPERM"
}

@test "the runtime shim adds the nodes' group to a user's" {
	run docker run --rm --runtime=nvidia -e AMD_VISIBLE_DEVICES=0 --user 1000:1000 debian \
		sh -c 'id -G; probe open /dev/dri/renderD128; probe open /dev/kfd; probe open /dev/dri/renderD129'
	expect_status 0
	expect_line "1000 992"
	expect_line "/dev/dri/renderD128=ENXIO"
	expect_line "/dev/kfd=ENXIO"
	expect_line "/dev/dri/renderD129=ENOENT"
}

# bats test_tags=cgroup
@test "Podman: the hook binds the host's nodes, for root and for who is in their group" {
	local runtime

	for runtime in runc crun; do
		run podman_in native-amd run --runtime "$runtime" --rm -e AMD_VISIBLE_DEVICES=0 debian probe open /dev/dri/renderD128
		expect_line "/dev/dri/renderD128=ENXIO"
		run podman_in native-amd run --runtime "$runtime" --rm -e AMD_VISIBLE_DEVICES=0 --user 1000:1000 debian probe open /dev/dri/renderD128
		expect_line "/dev/dri/renderD128=EACCES"
		run podman_in native-amd run --runtime "$runtime" --rm -e AMD_VISIBLE_DEVICES=0 --user 1000:1000 --group-add 992 debian probe open /dev/kfd
		expect_line "/dev/kfd=ENXIO"
	done
	# Which the plan says.
	asked amd AMD_VISIBLE_DEVICES=0
	jq '.process.user = {uid: 1000, gid: 1000}' "$BATS_TEST_TMPDIR/bundle/config.json" >"$BATS_TEST_TMPDIR/new"
	mv "$BATS_TEST_TMPDIR/new" "$BATS_TEST_TMPDIR/bundle/config.json"
	run sandbox native-amd bash -c 'ctr-gpu-hook --dry-run createRuntime <"$1"' asked "$BATS_TEST_TMPDIR/bundle/state"
	expect "--group-add 992"
}

# The user's own groups are what a rootless container's process has, if the engine leaves them to it: crun does.
in_group='echo render:x:992:ctr-gpu-test >>/etc/group'
open_nodes='probe open /dev/dri/renderD129; probe open /dev/kfd; probe open /dev/dri/renderD128'

# bats test_tags=cgroup
@test "rootless Podman: the hook binds the host's nodes, for who is in their group and keeps it" {
	CTR_GPU_TEST_AS_ROOT=$in_group run rootless native-amd podman --runtime crun run --rm --group-add keep-groups \
		-e AMD_VISIBLE_DEVICES=1 debian sh -c "$open_nodes; ls -l /dev/dri/by-path"
	expect_status 0
	expect_line "/dev/dri/renderD129=ENXIO"
	expect_line "/dev/kfd=ENXIO"
	expect_line "/dev/dri/renderD128=ENOENT"
	expect "pci-0000:0a:00.0-render -> ../renderD129"
	# Without the option, or the group, the kernel refuses them; the container starts.
	CTR_GPU_TEST_AS_ROOT=$in_group run rootless native-amd podman --runtime crun run --rm -e AMD_VISIBLE_DEVICES=1 debian sh -c "$open_nodes"
	expect_status 0
	expect_line "/dev/dri/renderD129=EACCES"
	run rootless native-amd podman --runtime runc run --rm -e AMD_VISIBLE_DEVICES=1 debian sh -c "$open_nodes"
	expect_status 0
	expect_line "/dev/kfd=EACCES"
	expect_line "/dev/dri/renderD128=ENOENT"
}

# bats test_tags=cgroup
@test "rootless Podman with CDI" {
	local generate='ctr-gpu cdi generate >/dev/null'

	podman_remove_hooks
	run rootless_cdi native-amd "$in_group; $generate" --runtime crun --group-add keep-groups --device amd.com/gpu=1 debian \
		sh -c "$open_nodes; ls -l /dev/dri/by-path"
	expect_status 0
	expect_line "/dev/dri/renderD129=ENXIO"
	expect_line "/dev/kfd=ENXIO"
	expect_line "/dev/dri/renderD128=ENOENT"
	expect "pci-0000:0a:00.0-render -> ../renderD129"
	run rootless_cdi native-amd "$generate" --runtime runc --device amd.com/gpu=1 debian sh -c "$open_nodes"
	expect_status 0
	expect_line "/dev/dri/renderD129=EACCES"
}

# bats test_tags=cgroup
@test "Podman with CDI" {
	local runtime

	podman_remove_hooks
	for runtime in runc crun; do
		run podman_cdi native-intel 'ctr-gpu cdi generate >/dev/null' --runtime "$runtime" --user 1000:1000 --device intel.com/gpu=1 \
			debian sh -c 'probe open /dev/dri/renderD129; probe open /dev/dri/renderD128'
		expect_line "/dev/dri/renderD129=ENXIO"
		expect_line "/dev/dri/renderD128=ENOENT"
	done
	run podman_cdi native-intel 'ctr-gpu cdi generate >/dev/null' --device intel.com/npu=all debian probe open /dev/accel/accel0
	expect_line "/dev/accel/accel0=ENXIO"
}

@test "a node that is missing, or another's, is said" {
	run sandbox native-amd bash -c 'rm /dev/dri/renderD129; ctr-gpu info'
	expect "its node /dev/dri/renderD129 is missing"
	run sandbox native-amd bash -c 'rm /dev/dri/renderD129; mknod /dev/dri/renderD129 c 1 3; ctr-gpu configure --dry-run --device GPU-ef2f7eba3ec966ed /srv'
	[[ $status -ne 0 ]]
	expect "another device than the kernel lists"
	run sandbox native-amd bash -c 'rm /dev/kfd; ctr-gpu configure --dry-run /srv'
	expect_status 0
	expect "/dev/kfd is missing"
}

@test "ctr-gpu load has nothing to do for these GPUs, and says so" {
	run sandbox native-amd ctr-gpu load
	expect_status 0
	expect "nothing to load for AMD's and Intel's GPUs: udev loads their drivers"
	# Without one, what is missing is NVIDIA's.
	run sandbox plain ctr-gpu load
	expect_not "AMD's"
}

@test "doctor knows these GPUs, and what is missing" {
	run sandbox native-amd ctr-gpu doctor --json
	run jq -r '.findings[].id' <<<"$output"
	expect_line host.drm
	expect_line adapter.usable
	run sandbox native-amd bash -c 'rm /dev/kfd; ctr-gpu doctor'
	expect "/dev/kfd is missing"
	run sandbox native-amd setpriv --reuid 54321 --clear-groups ctr-gpu doctor
	expect "you may not open /dev/dri/renderD128"
	# A daemon of root's may.
	run sandbox native-amd setpriv --reuid 54321 --clear-groups ctr-gpu doctor --json
	run jq -r '.engines[] | select(.doors[].because == "device.permission").id' <<<"$output"
	[[ $(sort -u <<<"$output") == podman ]]
	run sandbox native-hybrid ctr-gpu doctor --json
	run jq -r '.findings[].id' <<<"$output"
	expect_line host.both
}
