#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# A machine whose SELinux enforces Debian 13's policy, in a guest of its own (test/kernels/run selinux): the hook is installed, what
# starts containers is unconfined_t, and they are container_t. No policy knows /dev/dxg, or gives a container a device unasked.

load ../e2e/engines

setup_file() {
	require_root
	[[ $(getenforce) != Disabled ]]
	# What was written before there was a policy.
	restorecon -R /etc /usr/sbin/ctr-gpu-agent
	setenforce 1
	setsebool container_use_dri on
	image debian >/dev/null
}

# on_host DEVICE-TYPE COMMAND…: on a WSL2 host with labels as on a native one: drivers are libraries, and the device has this type
on_host() {
	dmesg --clear
	run sandbox wsl-nvidia bash -ec '
		mount -o remount,bind,rw /usr/lib/wsl/drivers
		chcon -R -t lib_t /usr/lib/wsl
		mount -o remount,bind,ro /usr/lib/wsl/drivers
		restorecon -R /etc 2>/dev/null
		chcon -t "$1" /dev/dxg
		shift
		exec "$@"' on_host "$@"
	echo "$output"
	dmesg | grep -F "avc:" | tee "$BATS_TEST_TMPDIR/denied"
	expect_status 0
	[[ $(getenforce) == Enforcing ]]
	run grep -E 'comm="ctr-gpu|comm="nvidia-' "$BATS_TEST_TMPDIR/denied"
	expect_status 1
}

# A container may not write into the pipes of an unconfined_t.
script='probe >/tmp/out 2>&1; cat /proc/self/attr/current >>/tmp/out; true'

# start DEVICE-TYPE: a container of runc
start() {
	local directory=$BATS_TEST_TMPDIR/bundle

	rm -rf "$directory"
	bundle debian "$directory" ".linux.cgroupsPath = \"/test\" | .hooks.prestart[0].path = \"/usr/bin/ctr-gpu-hook\"
		| .process.selinuxLabel = \"system_u:system_r:container_t:s0:c1,c2\"
		| .linux.mountLabel = \"system_u:object_r:container_file_t:s0:c1,c2\"
		| .process.args = [\"sh\", \"-c\", $(jq -n --arg script "$script" '$script')]"
	chcon -R -t container_file_t -l s0:c1,c2 "$directory/rootfs"
	on_host "$1" runc --root /run/runtime run --bundle "$directory" container
	output=$(tr '\0' '\n' <"$directory/rootfs/tmp/out")
}

@test "SELinux: a container_t of runc gets its GPU, and the hook is denied nothing" {
	start dri_device_t
	expect_line "system_u:system_r:container_t:s0:c1,c2"
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
}

@test "SELinux: a device with a label that is not for containers is refused by the policy alone" {
	start device_t
	expect_line "/dev/dxg=EACCES"
	expect_not "cuInit=0"
}

@test "SELinux: a container that Podman labels gets its GPU" {
	local directory

	directory=$(engine_directory podman)
	podman_configure "$directory" /usr/bin/ctr-gpu-hook
	on_host dri_device_t env CONTAINERS_CONF="$directory/containers.conf" CONTAINERS_STORAGE_CONF="$directory/storage.conf" bash -ec '
		tar -C "$1" -c . | podman import - debian >/dev/null
		podman run --name labelled --env NVIDIA_VISIBLE_DEVICES=all debian sh -c "$2"
		podman cp labelled:/tmp/out "$3"' podman "$(image debian)" "$script" "$directory/out"
	output=$(tr '\0' '\n' <"$directory/out")
	expect ":container_t:s0:c"
	expect_line "cuInit=0"
}
