#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# LXC's own hook for NVIDIA GPUs, which runs nvidia-container-cli in the container's user and mount namespace. It refuses
# containers without a user namespace. Links to this file in test/engines run it with the LXC of other releases, of which that
# of forky wants version 2 of cgroups.

load engines

setup_file() {
	require_root
	require_program lxc-execute
	! declare -F use_tree >/dev/null || use_tree lxc
}

config='' # of the host's ctr-gpu

# lxc PROFILE SETTINGS COMMAND…: a container with these lines in its configuration, run to its end, after what $CTR_GPU_TEST_AS_ROOT says
lxc() {
	local profile=$1 settings=$2 directory
	shift 2

	directory=$(engine_directory lxc)
	rm -rf "$directory/container"
	image_copy debian "$directory/container/rootfs"
	chown -R 100000:100000 "$directory/container/rootfs"
	# Its root, an ordinary user of the machine, must get there.
	chmod 755 "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR" "$directory" "$directory/container"
	run sandbox "$profile" bash -c '
		directory=$1 config=$2 settings=$3
		shift 3
		[[ -z $config ]] || { mkdir -p /etc/ctr-gpu && echo "$config" >/etc/ctr-gpu/config.json; } || exit
		eval "${CTR_GPU_TEST_AS_ROOT-}"
		echo root:100000:65536 >/run/subid
		[[ -e /etc/subuid && -e /etc/subgid ]] || touch /etc/subuid /etc/subgid
		for file in subuid subgid; do mount --bind /run/subid "/etc/$file" || exit; done
		# The kernel lets a user namespace mount these where they are to be seen without anything mounted over them, which
		# they are not on a simulated host.
		mkdir -p /run/lxc /run/clean/{proc,sys}
		mount -t proc proc /run/clean/proc && mount -t sysfs sysfs /run/clean/sys || exit
		cat >"$directory/container/config" <<-END
			lxc.rootfs.path = dir:$directory/container/rootfs
			lxc.idmap = u 0 100000 65536
			lxc.idmap = g 0 100000 65536
			lxc.net.0.type = empty
			lxc.mount.auto = proc:mixed sys:ro
			lxc.autodev = 1
			lxc.apparmor.profile = unconfined
			lxc.cgroup.dir = ${CTR_GPU_TEST_CGROUP#/}/container
			lxc.hook.mount = /run/hook
			$settings
		END
		# LXC loses the end of what a hook says now and then. A sanitized program that is not dumpable
		# cannot look for its own leaks there.
		install -m 666 /dev/null /run/said
		printf "#!/bin/sh\nexport ASAN_OPTIONS=detect_leaks=0\nexec /usr/share/lxc/hooks/nvidia \"\$@\" 2>/run/said\n" >/run/hook
		chmod 755 /run/hook
		# LXC 7 makes groups of cpuset of version 1 without processors, in which nothing runs.
		! mountpoint -q /sys/fs/cgroup/cpuset || umount /sys/fs/cgroup/cpuset || exit
		lxc-execute -P "$directory" -n container -- "$@"
		status=$?
		cat /run/said
		exit "$status"
	' lxc "$directory" "$config" "$settings" "$@"
}

visible() {
	printf 'lxc.environment = NVIDIA_VISIBLE_DEVICES=%s\nlxc.environment = NVIDIA_DRIVER_CAPABILITIES=%s\n' "$1" "${2-compute,utility}"
}

@test "a GPU on a WSL2 host" {
	lxc wsl-nvidia "$(visible all)" /usr/bin/probe
	expect_status 0
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
	expect_line "device=NVIDIA GeForce RTX 4090"
	expect_line "library=$(store wsl-nvidia 0)/libcuda.so.1.1"
}

@test "a GPU on a native host" {
	lxc native-nvidia "$(visible 0 all)" /usr/bin/probe
	expect_status 0
	expect_line "cuInit=0"
	expect_line "device=NVIDIA H200"
}

@test "of two GPUs, the one that is asked for" {
	lxc wsl-two-nvidia "$(visible 1)" /bin/sh -c 'ls /usr/lib/wsl/drivers'
	expect_status 0
	expect_line "$(basename "$(store wsl-two-nvidia 1)")"
	expect_no_line "$(basename "$(store wsl-two-nvidia 0)")"
}

@test "the library alone, and nothing" {
	lxc wsl-nvidia "$(visible none)" /bin/sh -c 'ls /usr/lib/wsl/lib /dev'
	expect_status 0
	expect_line "libdxcore.so"
	expect_no_line "dxg"
	lxc wsl-nvidia "$(visible void)" /bin/sh -c 'ls /usr/lib /dev'
	expect_status 0
	expect_no_line "wsl"
	expect_no_line "dxg"
}

@test "a requirement that the host does not meet: no container" {
	lxc wsl-nvidia "$(visible all)
lxc.environment = NVIDIA_REQUIRE_CUDA=cuda>=99.0" /usr/bin/probe
	[[ $status -ne 0 ]]
	expect_no_line "cuInit=0"
	expect "nvidia-container-cli: requirement error: unsatisfied condition"
}

@test "root's configuration counts, though its owner is unknown in the container" {
	config='{"disable-requirements": true}'
	lxc wsl-nvidia "$(visible all)
lxc.environment = NVIDIA_REQUIRE_CUDA=cuda>=99.0" /usr/bin/probe
	expect_status 0
	expect_line "cuInit=0"
}

vcuda='driver && { ctr-gpu-vcudad 2>/run/audit & } && until ctr-gpu vcuda list >/dev/null 2>&1; do sleep 0.02; done'

@test "by vCUDA, where the settings name the container's root: a GPU without a device, until the container ends" {
	[[ -z ${engine_tree-} ]] || skip "vCUDA is not installed there"
	export -f driver
	config='{"vcuda": {"mode": "allow", "users": [{"uid": 100000, "memory": "1G"}]}}'
	CTR_GPU_TEST_AS_ROOT=$vcuda lxc wsl-two-nvidia "$(visible 1)
lxc.environment = CTR_GPU_MODE=vcuda
lxc.mount.entry = tmpfs run tmpfs rw,mode=755,create=dir 0 0
lxc.mount.entry = $CTR_GPU_BUILD/test/real/cuda-add usr/bin/cuda-add none bind,ro,create=file 0 0" /bin/sh -c 'ls /dev/dxg; cuda-add'
	expect_status 0
	expect_line "GPU-7b10aa04-0041-0000-0000-000084ef55fb: Small: 1048576 sums are right"
	expect "/dev/dxg: No such file"
}

@test "by vCUDA, where the settings do not name the container's root: no container" {
	[[ -z ${engine_tree-} ]] || skip "vCUDA is not installed there"
	export -f driver
	config='{"vcuda": {"mode": "allow", "users": [{"uid": 100001}, {"gid": 100000}]}}'
	CTR_GPU_TEST_AS_ROOT=$vcuda lxc wsl-two-nvidia "$(visible 1)
lxc.environment = CTR_GPU_MODE=vcuda" /bin/sh -c 'echo began'
	[[ $status -ne 0 ]]
	expect "uid 100000 gets no GPU by vCUDA here"
	expect_no_line began
}
