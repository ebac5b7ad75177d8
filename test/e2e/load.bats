#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ctr-gpu load: native hosts whose modules are not loaded or whose nodes are missing. The host's modprobe is a program of the
# test's, which writes down how it was called and lets the simulated module appear below /proc.

load engines

setup_file() {
	require_root
	require_program jq
}

# on PROFILE SCRIPT [ARGUMENT…]: a shell on a simulated host, with our programs in PATH
on() {
	local profile=$1 script=$2
	shift 2
	PATH=$CTR_GPU_BUILD/bin:$PATH "$e2e/../hosts/enter" "$profile" -- bash -euc "$modprobe_functions$script" "$profile" "$@"
}

# To be used on a host. unload MODULE…: it is as after a boot, and modprobe makes the modules appear.
# modprobe_is SCRIPT: another modprobe.
# shellcheck disable=SC2016
modprobe_functions='
work=$BATS_TEST_TMPDIR/work
mkdir -p "$work"
modprobe_is() {
	mkdir -p /usr/sbin
	rm -f /usr/sbin/modprobe
	printf "#!/bin/bash\n%s\n" "$1" >/usr/sbin/modprobe
	chmod 755 /usr/sbin/modprobe
}
unload() {
	local module
	for module; do
		grep -E "^ *[0-9]+ $module\$" /proc/devices >"$work/$module" || return
	done
	cat /proc/devices >"$work/devices"
	for module; do
		# The module nvidia has all numbers but that of nvidia-uvm.
		sed -i -E "/^ *[0-9]+ $module([a-z-]*)\$/{/nvidia-uvm/!d}; /^ *[0-9]+ $module\$/d" "$work/devices"
	done
	cp /proc/devices "$work/all"
	mount --bind "$work/devices" /proc/devices
	if [[ $1 == nvidia ]]; then
		mkdir -p "$work/none"
		mount --bind "$work/none" /proc/driver
	fi
	modprobe_is "
		export PATH=/usr/bin:/bin
		{ printf \"%s\" \"\$0\"; printf \" %s\" \"\$@\"; printf \"\n\"; env; ls -l /proc/self/fd; } >>$work/calls
		echo \"\${*: -1}\" >>$work/loaded
		case \${*: -1} in
		nvidia) umount /proc/driver; grep -v \"nvidia-uvm\$\" $work/all >$work/devices ;;
		nvidia-uvm) cat $work/all >$work/devices ;;
		esac"
}
nodes() {
	find /dev -name "nvidia*" -printf "%p %M %U:%G\n" | sort
}
'

@test "a host as after a boot gets its modules and the nodes that it has otherwise" {
	run on native-mig '
		nodes >"$work/before"
		unload nvidia nvidia-uvm
		rm -rf /dev/nvidia*
		ctr-gpu load >"$work/output"
		cat "$work/loaded"
		nodes >"$work/after"
		diff "$work/before" "$work/after"'
	# Of the driver 580 there are nodes besides, which programs make when they need them.
	expect_line "nvidia"
	expect_line "nvidia-uvm"
	expect_line "> /dev/nvidia-caps/nvidia-cap4323 cr-------- 0:0"
	expect_line "< /dev/nvidia-modeset crw-rw-rw- 0:0"
	[[ $(grep -c '^[<>]' <<<"$output") -eq 2 ]]
	run cat "$BATS_TEST_TMPDIR/work/output"
	expect_line "done        module nvidia"
	expect_line "done        node /dev/nvidia1 (c 195:1, mode 0666, owner 0:0)"
	expect_line "done        node /dev/nvidia-caps/nvidia-cap147 (c 241:147, mode 0444, owner 0:0)"
}

@test "and can then be used" {
	run on native-nvidia '
		unload nvidia nvidia-uvm
		rm -rf /dev/nvidia*
		! ctr-gpu list || exit
		ctr-gpu load >/dev/null
		ctr-gpu list'
	expect_status 0
	expect_line /dev/nvidia0
	expect_line /dev/nvidia-uvm
}

@test "modprobe gets a module, no environment and no descriptor of ours" {
	run on native-nvidia 'unload nvidia-uvm; exec 7</etc/passwd; FROM_OUTSIDE=1 MODPROBE_OPTIONS=--nonsense ctr-gpu load >/dev/null; cat "$work/calls"'
	expect_status 0
	expect_line "/sbin/modprobe -- nvidia-uvm" || expect_line "/usr/sbin/modprobe -- nvidia-uvm"
	[[ $output != *FROM_OUTSIDE* && $output != *MODPROBE_OPTIONS* && $output != *passwd* ]]
}

@test "nvidia-modeset only where it is asked for" {
	run on native-nvidia 'unload nvidia; rm -rf /dev/nvidia*; ctr-gpu load --modeset --dry-run --json | jq -r ".steps[].name"'
	expect_line nvidia-modeset
	run on native-nvidia 'unload nvidia; ctr-gpu load --dry-run --json | jq -r ".steps[].name"'
	expect_no_line nvidia-modeset
}

@test "--dry-run shows what is missing and changes nothing" {
	run on native-nvidia '
		unload nvidia nvidia-uvm
		rm -rf /dev/nvidia0 /dev/nvidia-caps
		nodes >"$work/before"
		ctr-gpu load --dry-run
		nodes | diff "$work/before" - && [[ ! -e $work/calls ]]'
	expect_status 0
	expect_line "to do       module nvidia"
	expect "shows when the module nvidia is loaded"
	run on native-nvidia 'rm -rf /dev/nvidia0 /dev/nvidia-caps; ctr-gpu load --dry-run; ls /dev/nvidia0'
	expect_line "to do       node /dev/nvidia0 (c 195:0, mode 0666, owner 0:0)"
	expect_line "to do       directory /dev/nvidia-caps"
	expect_line "there       node /dev/nvidiactl (c 195:255, mode 0666, owner 0:0)"
	[[ $status -ne 0 ]]
}

@test "a second run has nothing to do, needs no modprobe and no root" {
	run on native-four '
		rm -rf /dev/nvidia*
		ctr-gpu load >/dev/null
		find /dev -name "nvidia*" -printf "%p %i %C@\n" | sort >"$work/before"
		setpriv --reuid 65534 --regid 65534 --clear-groups ctr-gpu load --json | jq -r "[.steps[].state] | unique | join(\",\")"
		find /dev -name "nvidia*" -printf "%p %i %C@\n" | sort | diff "$work/before" -'
	expect_status 0
	expect_line there
}

@test "modes and owners are those that the module was told" {
	run on native-nvidia '
		sed "s/^DeviceFileMode: .*/DeviceFileMode: 432/; s/^DeviceFileGID: .*/DeviceFileGID: 44/" /proc/driver/nvidia/params >"$work/params"
		mount --bind "$work/params" /proc/driver/nvidia/params
		rm /dev/nvidia0 /dev/nvidia-uvm
		umask 077
		ctr-gpu load
		nodes'
	expect_status 0
	expect_line "/dev/nvidia0 crw-rw---- 0:44"
	expect_line "/dev/nvidia-uvm crw-rw-rw- 0:0"
	expect_line "/dev/nvidiactl crw-rw-rw- 0:0"
	expect "/dev/nvidiactl is left as it is, with mode 0666, owner 0:0; the driver would have 0660, 0:44"
}

@test "an administrator who makes the nodes himself is left alone" {
	run on native-nvidia '
		sed "s/^ModifyDeviceFiles: .*/ModifyDeviceFiles: 0/" /proc/driver/nvidia/params >"$work/params"
		mount --bind "$work/params" /proc/driver/nvidia/params
		rm /dev/nvidia0
		ctr-gpu load
		! test -e /dev/nvidia0'
	expect_status 0
	expect "NVreg_ModifyDeviceFiles=0"
}

@test "something else in a node's place is an error, and nothing is made" {
	run on native-nvidia 'rm /dev/nvidia0 /dev/nvidiactl; mknod /dev/nvidia0 c 1 3; ctr-gpu load || ls /dev/nvidiactl'
	expect "[E_WRONG_NODE]"
	expect "/dev/nvidia0 should be a node of NVIDIA's driver, and is the character device 1:3"
	expect "No such file or directory"
	run on native-nvidia 'rm /dev/nvidia0; ln -s nvidiactl /dev/nvidia0; ctr-gpu load'
	expect "is a symbolic link"
	run on native-nvidia 'rm -r /dev/nvidia-caps; touch /dev/nvidia-caps; ctr-gpu load'
	expect "/dev/nvidia-caps should be a directory, and is a regular file"
}

@test "--replace puts the right node there" {
	run on native-nvidia '
		rm -r /dev/nvidia0 /dev/nvidia-uvm /dev/nvidia-caps
		mknod /dev/nvidia0 c 1 3
		echo precious >"$work/file"
		ln -s "$work/file" /dev/nvidia-uvm
		touch /dev/nvidia-caps
		ctr-gpu load --replace
		nodes
		cat "$work/file"
		find /dev -name ".ctr-gpu*"'
	expect_status 0
	expect_line "done        node /dev/nvidia0 (c 195:0, mode 0666, owner 0:0), which was the character device 1:3"
	expect_line "/dev/nvidia0 crw-rw-rw- 0:0"
	expect_line "/dev/nvidia-uvm crw-rw-rw- 0:0"
	expect_line "/dev/nvidia-caps/nvidia-cap1 cr-------- 0:0"
	expect_line precious
	[[ $output != */.ctr-gpu* ]]
}

@test "nodes in the /dev of a driver's own root, too" {
	run on native-nvidia '
		mkdir -p "$work/root/real/dev" "$work/outside"
		ln -s /real/dev "$work/root/dev"
		rm /dev/nvidia0
		ctr-gpu load --root="$work/root" >/dev/null
		ls -l /dev/nvidia0 "$work/root/real/dev/nvidia0" "$work/root/real/dev/nvidia-caps/nvidia-cap1"'
	expect_status 0
	# One that is this machine's /dev is not a second one.
	run on native-nvidia 'rm -rf "$work/root"; mkdir -p "$work/root/dev"; mount --bind /dev "$work/root/dev"; ctr-gpu load --dry-run --root="$work/root"'
	expect_status 0
	[[ $output != *root/dev* ]]
}

@test "modules come from the driver's root where it has some for this kernel" {
	run on native-nvidia 'unload nvidia-uvm; mkdir -p "$work/root/lib/modules/$(uname -r)"; ctr-gpu load --root="$work/root" >/dev/null; cat "$work/calls"'
	expect_status 0
	expect "modprobe -d $BATS_TEST_TMPDIR/work/root -- nvidia-uvm"
}

@test "nodes of IMEX channels, where they are asked for" {
	run on native-nvidia 'ctr-gpu load --imex-channel=0,7 >/dev/null; ls /dev/nvidia-caps-imex-channels'
	expect_line channel0
	expect_line channel7
	for channel in 2048 99999999; do
		run on native-nvidia "ctr-gpu load --imex-channel=$channel"
		expect "an IMEX channel is a number below 2048"
		[[ $status -eq 1 ]]
	done
	# Of what is no list of numbers, no host is asked.
	for channel in x 0x1 -1 all; do
		run on wsl-nvidia "ctr-gpu load --imex-channel=$channel"
		expect "--imex-channel is a list of numbers such as 0,1, not '$channel'"
		[[ $status -eq 2 ]]
	done
}

@test "nodes of NVSwitches, as many as the driver found" {
	run on native-fabric '
		rm /dev/nvidia-nvswitch*
		ctr-gpu load >/dev/null
		ls /dev'
	expect_line nvidia-nvswitchctl
	expect_line nvidia-nvswitch1
	expect_no_line nvidia-nvswitch2
}

@test "what modprobe says is passed on, in print, with what to do" {
	run on native-nvidia 'unload nvidia; modprobe_is "echo modprobe: FATAL: Module nvidia not found in directory /lib/modules/x >&2; exit 1"; ctr-gpu load'
	expect "[E_KERNEL_MODULE] cannot load the module nvidia: modprobe: FATAL: Module nvidia not found"
	expect "Install NVIDIA's driver for kernel $(uname -r)"
	[[ $status -eq 1 && ${#lines[@]} -le 3 ]]
	run on native-nvidia 'unload nvidia; modprobe_is "echo modprobe: could not insert nvidia: No such device >&2; exit 1"; ctr-gpu load'
	expect "nouveau"
	run on native-nvidia 'unload nvidia; modprobe_is "printf \"\033[31m%4000d\n%4000d\n\" 1 2 >&2; exit 3"; ctr-gpu load'
	expect "cannot load the module nvidia: ?[31m"
	[[ $status -eq 1 && ${#output} -lt 800 && ${#lines[@]} -le 3 ]]
	run on native-nvidia 'unload nvidia; modprobe_is "kill -9 \$\$"; ctr-gpu load'
	expect "modprobe failed and said nothing"
}

@test "a modprobe that succeeds without a module, and a host without modprobe" {
	run on native-nvidia 'unload nvidia; modprobe_is "exit 0"; ctr-gpu load'
	expect "[E_KERNEL_MODULE]"
	expect "/etc/modprobe.d may forbid it"
	run on native-nvidia 'unload nvidia; rm -f /usr/sbin/modprobe /usr/bin/modprobe; ctr-gpu load'
	expect "modprobe is missing from /sbin:/usr/sbin:/bin:/usr/bin"
	expect "Install kmod"
}

@test "what modprobe leaves running does not hold us up" {
	run timeout 120 bash -c "$(declare -f on); $(declare -p e2e modprobe_functions); $(declare -p CTR_GPU_BUILD BATS_TEST_TMPDIR); export BATS_TEST_TMPDIR
		on native-nvidia 'unload nvidia; modprobe_is \"sleep 600 & echo modprobe: no >&2; exit 1\"; ctr-gpu load || echo afterwards'"
	expect "afterwards"
}

@test "who is not root is told so, and may look" {
	run on native-nvidia 'rm /dev/nvidia0; setpriv --reuid 65534 --regid 65534 --clear-groups ctr-gpu load'
	expect "[E_NO_PERMISSION] only root may load kernel modules"
	[[ $status -eq 1 ]]
	run on native-nvidia 'rm /dev/nvidia0; setpriv --reuid 65534 --regid 65534 --clear-groups ctr-gpu load --dry-run'
	expect_status 0
	expect "to do       node /dev/nvidia0"
}

@test "hosts without a GPU of NVIDIA's, and those with /dev/dxg alone" {
	run on plain 'ctr-gpu load'
	expect "[E_NO_DEVICE] this machine has no GPU of NVIDIA"
	run on wsl-nvidia 'ctr-gpu load'
	expect_status 0
	expect "nothing to load for GPUs behind /dev/dxg"
	run on native-and-dxg 'rm /dev/nvidia0; ctr-gpu load'
	expect_status 0
	expect "done        node /dev/nvidia0"
	expect "nothing to load for GPUs behind /dev/dxg"
	run on native-nvidia 'ctr-gpu load'
	expect_not "dxg"
}

@test "nvidia-container-cli does it where it is told to" {
	run on native-nvidia '
		unload nvidia nvidia-uvm
		rm -rf /dev/nvidia*
		! nvidia-container-cli info || exit
		nvidia-container-cli --load-kmods configure --dry-run --device=all /nowhere >/dev/null || true
		[[ ! -e $work/loaded ]] || exit
		mkdir -p "$work/rootfs"
		FROM_OUTSIDE=1 nvidia-container-cli --load-kmods configure --no-cgroups --device=all --utility "$work/rootfs"
		find "$work/rootfs/dev" -name "nvidia*"
		cat "$work/loaded" "$work/calls"'
	expect_status 0
	expect "nvidia-container-cli: initialization error: "
	expect_line "$BATS_TEST_TMPDIR/work/rootfs/dev/nvidia0"
	expect_line "nvidia"
	expect_line "nvidia-uvm"
	expect_not FROM_OUTSIDE
	run on native-nvidia 'unload nvidia-uvm; modprobe_is "exit 1"; nvidia-container-cli -k -d /dev/stderr info'
	expect_status 0
	expect "nvidia-container-cli: debug: --load-kmods: [E_KERNEL_MODULE] cannot load the module nvidia-uvm"
	expect_line "NVRM version:   580.159.04"
}

@test "the hook has nothing of this" {
	run nm "$CTR_GPU_BUILD/bin/ctr-gpu-hook"
	expect_status 0
	expect " T main"
	run bash -c "nm '$CTR_GPU_BUILD/bin/ctr-gpu-hook' | grep -E ' (modprobe_|load_do|load_decide|ctr_gpu_load_)'"
	[[ -z $output && $status -eq 1 ]]
}
