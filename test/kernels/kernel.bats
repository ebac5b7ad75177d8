#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=kernel
# shellcheck disable=SC2016
#
# What differs between kernels, in a guest (test/kernels/guest): who may do what to a cgroup's devices.

load ../e2e/engines

setup_file() {
	require_root
	image debian >/dev/null
}

# start RUNTIME [JQ-FILTER]: a fresh bundle of the debian image on a WSL2 host, run to its end. Unlike run_bundle's, limits
# are the kernel's.
start() {
	local directory=$BATS_TEST_TMPDIR/bundle

	rm -rf "$directory"
	bundle debian "$directory" ".linux.cgroupsPath = \"/test\" | ${2:-.}"
	run sandbox wsl-nvidia bash -c 'cd "$2" && exec "$1" --root /run/runtime run container' start "$1" "$directory"
}

expect_gpu() {
	expect_status 0
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
}

# kernel_before MAJOR MINOR
kernel_before() {
	local major minor

	IFS=.- read -r major minor _ <<<"$(uname -r)"
	((major < $1 || (major == $1 && minor < $2)))
}

# put_before COMMAND…: a jq filter that has the hook started by another program
put_before() {
	jq -rn --arg path "$(command -v "$1")" '".hooks.prestart |= map(.args = (\($ARGS.positional | tojson) + [.path] + .args[1:]) | .path = \($path | tojson))"' \
		--args -- "$@"
}

@test "a container of runc gets its GPU" {
	start runc
	expect_gpu
}

@test "a container of crun gets its GPU" {
	start crun
	expect_gpu
}

# /mnt is shared with the guest by virtiofs, and the same directory by 9p, which Debian's cloud kernels lack; to be seen with
# CTR_GPU_GUEST_KERNEL=linux-image-amd64.
@test "the driver on virtiofs, and on 9p where the kernel has it, as WSL has it" {
	local directory=$BATS_TEST_TMPDIR/bundle kind kinds=virtiofs

	! modinfo 9pnet_virtio >/dev/null 2>&1 || kinds+=" 9p"
	for kind in $kinds; do
		rm -rf "$directory"
		bundle debian "$directory" '.linux.cgroupsPath = "/test"'
		run sandbox wsl-nvidia bash -c '
			set -e
			rm -rf /mnt/wsl
			mkdir -p /mnt/wsl /run/9p
			cp -a /usr/lib/wsl/lib /usr/lib/wsl/drivers /mnt/wsl
			from=/mnt/wsl
			if [[ $1 == 9p ]]; then
				mount -t 9p -o trans=virtio,version=9p2000.L,ro,nosuid,nodev,noatime,access=client,msize=65536 out /run/9p
				from=/run/9p/wsl
			fi
			for name in lib drivers; do
				umount /usr/lib/wsl/$name
				mount --bind $from/$name /usr/lib/wsl/$name
				findmnt --noheadings --output FSTYPE --target /usr/lib/wsl/$name
			done
			cd "$2" && exec runc --root /run/runtime run container' start $kind "$directory"
		expect_line $kind
		expect_gpu
		expect_line "library=/usr/lib/wsl/lib/libcuda.so.1"
	done
}

@test "a capability that only some kernels ask for is effective for the system calls that they ask it for" {
	local log=$BATS_TEST_TMPDIR/calls

	start runc "$(put_before strace -f -qq -e trace=bpf,capset,mount,move_mount,openat,setns -o "$log")"
	expect_gpu
	grep -q 'bpf(BPF_PROG_ATTACH' "$log"
	run grep -cE 'capset.*effective=[^,]*1<<CAP_NET_ADMIN' "$log"
	if kernel_before 6 9; then
		[[ $output -gt 0 ]]
	else
		[[ $output -eq 0 ]]
	fi
	run grep -E 'capset.*effective=[^,]*1<<CAP_(SYSLOG|SYS_RESOURCE)' "$log"
	[[ -z $output ]]
	# In the hook, which takes its capabilities first: nothing but bpf and capset while the capability is there.
	awk '/capset/ {extra = /effective=[^,]*1<<CAP_(NET_ADMIN|SYS_RESOURCE|SYSLOG)/; next} extra && !/bpf\(/ {print; bad = 1} END {exit bad || extra}' "$log"
}

@test "a device program whose constants the kernel hides is extended" {
	sysctl -qw net.core.bpf_jit_harden=2 kernel.kptr_restrict=1
	start runc
	sysctl -qw net.core.bpf_jit_harden=0 kernel.kptr_restrict=0
	expect_gpu
}

@test "a device program is loaded where the hook may lock no memory" {
	start runc "$(put_before prlimit --memlock=0:0)"
	expect_gpu
}

# No program: the cgroup has a list. Debian's kernels have the controller beside version 2.
@test "a device rule of cgroup version 1" {
	local directory=$BATS_TEST_TMPDIR/bundle

	bundle debian "$directory" '.linux.cgroupsPath = "/test" | .process.args = ["/bin/sh", "-c", "probe open /dev/dxg; probe node 10 229 /tmp/fuse"]
		| .process.capabilities[] += ["CAP_MKNOD"] | .linux.resources.devices += [{"allow": true, "type": "c", "access": "m"}]
		| .mounts |= map(select(.type != "cgroup"))'
	run sandbox wsl-nvidia bash -ec '
		umount --recursive /sys/fs/cgroup 2>/dev/null || true
		mount -t tmpfs tmpfs /sys/fs/cgroup
		mkdir /sys/fs/cgroup/devices
		mount -t cgroup -o devices devices /sys/fs/cgroup/devices
		cd "$1"
		runc --root /run/runtime run container
		rmdir /sys/fs/cgroup/devices/test 2>/dev/null || true' version1 "$directory"
	expect_status 0
	expect_line "/dev/dxg=ok"
	expect_line "/tmp/fuse=EPERM"
}
