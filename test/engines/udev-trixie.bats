#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# The rules for ctr-gpu refresh, with a udev that can verify them: 255 or later.

load engines

setup_file() {
	require_root
}

@test "udev has nothing against the rules" {
	local tree

	tree=$("$e2e/../engines/tree" "$suite" udev)
	run "$e2e/../engines/enter" - "$tree" -- udevadm verify "$e2e/../../pkg/udev/61-ctr-gpu.rules"
	expect_status 0
	expect "Success: 1"
}

# Devices of this machine stand for those of the rules.
@test "a driver that is loaded, and a GPU that comes, start the service; others do not" {
	local tree

	[[ -d /sys/module/kernel && -n $(ls /sys/bus/pci/devices 2>/dev/null) ]] || skip "needs /sys/module/kernel and a PCI device"
	tree=$("$e2e/../engines/tree" "$suite" udev)
	run "$e2e/../engines/enter" - "$tree" -- bash -ec '
		mkdir -p /run/systemd/system /run/udev/rules.d
		device=$(ls -d /sys/bus/pci/devices/* | head -n 1)
		class=$(<"$device/class")
		starts() { echo "$1: $(udevadm test --action="$2" "$(readlink -f "$3")" 2>&1 | grep -c "RUN{program} : .*systemctl --no-block start ctr-gpu-refresh.service")"; }
		cp "$0" /run/udev/rules.d
		starts "other module" add /sys/module/kernel
		starts "other device" add "$device"
		sed "s/dxgkrnl/kernel/; s/0x10de/$(<"$device/vendor")/; s/0x03\\*/${class:0:4}*/" "$0" >"/run/udev/rules.d/${0##*/}"
		starts module add /sys/module/kernel
		starts gone remove /sys/module/kernel
		starts device add "$device"
		starts changed change "$device"
		rmdir /run/systemd/system
		starts "no systemd" add "$device"
		mkdir /run/systemd/system
		sed "s/\"drm\", KERNEL==\"renderD\*\"/\"mem\", KERNEL==\"null\"/; s/\"accel\", KERNEL==\"accel\*\"/\"mem\", KERNEL==\"zero\"/" "$0" >"/run/udev/rules.d/${0##*/}"
		starts "GPU" add /sys/devices/virtual/mem/null
		starts "NPU" remove /sys/devices/virtual/mem/zero
		starts "other node" add /sys/devices/virtual/mem/full
	' "$e2e/../../pkg/udev/61-ctr-gpu.rules"
	expect_line "other module: 0"
	expect_line "other device: 0"
	expect_line "module: 1"
	expect_line "gone: 1"
	expect_line "device: 1"
	expect_line "changed: 0"
	expect_line "GPU: 1"
	expect_line "NPU: 1"
	expect_line "other node: 0"
	expect_line "no systemd: 0"
}
