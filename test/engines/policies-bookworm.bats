#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# The module for SELinux's policy and the abstraction for AppArmor's profiles, as a release's own tools take them. No kernel is asked here.

load engines

setup_file() {
	require_root
	engine_tree=$("$e2e/../engines/tree" "$suite" apparmor policycoreutils selinux-policy-default selinux-utils setools) || return
	export engine_tree
}

# on_machine SCRIPT: on a machine of that release where `make install` was run, from which nothing remains
on_machine() {
	run unshare --mount --propagation private -- bash -ec '
		mount -t tmpfs tmpfs /mnt
		mkdir /mnt/upper /mnt/work /mnt/root
		mount -t overlay -o "lowerdir=$1:$2,upperdir=/mnt/upper,workdir=/mnt/work" overlay /mnt/root
		mount -t proc proc /mnt/root/proc
		mount --bind /dev /mnt/root/dev
		exec chroot /mnt/root /usr/bin/env PATH=/usr/sbin:/usr/bin LC_ALL=C bash -euc "$3"
	' machine "$CTR_GPU_BUILD/test/engines/root" "$engine_tree" "$1"
}

policy='
	compiled=$(echo /etc/selinux/default/policy/policy.*)
	label() { matchpathcon -n -m c -f /etc/selinux/default/contexts/files/file_contexts "$1"; }
	labels() { for node in /dev/{dxg,kfd,accel/accel0,nvidia0,nvidia-caps/nvidia-cap1,dri/renderD128}; do echo "$node $(label "$node")"; done; }
	# What containers may do with nodes of a type, and on what that depends.
	rules() { sesearch --allow -t "$1" -c chr_file -p ioctl "$compiled" | grep "allow container_domain $1:chr_file.*ctr_gpu" || echo "no rule for $1"; }
'

@test "SELinux: the module comes into the policy, with labels for nodes that it lacks and rules for containers, and out of it again" {
	on_machine "$policy"'
		label /dev/dxg
		/usr/share/ctr-gpu/selinux load
		semodule --list-modules=full | grep ctr-gpu
		labels
		rules dri_device_t
		rules xserver_misc_device_t
		/usr/share/ctr-gpu/selinux load
		/usr/share/ctr-gpu/selinux unload
		/usr/share/ctr-gpu/selinux unload
		semodule --list-modules=full | grep ctr-gpu || echo unloaded
		label /dev/dxg'
	expect_status 0
	[[ $(grep -c "^system_u:object_r:device_t:s0$" <<<"$output") -eq 2 ]]
	for node in dxg kfd accel/accel0 dri/renderD128; do
		expect_line "/dev/$node system_u:object_r:dri_device_t:s0"
	done
	expect_line "/dev/nvidia0 system_u:object_r:xserver_misc_device_t:s0"
	expect_line "/dev/nvidia-caps/nvidia-cap1 system_u:object_r:xserver_misc_device_t:s0"
	expect_line unloaded
	grep -Eq "^200 +ctr-gpu +cil" <<<"$output"
	# Debian 12's policy has no containers: what names them is left out.
	if [[ $suite == bookworm ]]; then
		[[ $(grep -c "^no rule" <<<"$output") -eq 2 ]]
		return
	fi
	expect_not "no rule"
	[[ $(grep -c "ctr_gpu_containers \\]:True" <<<"$output") -ge 2 ]]
}

@test "SELinux: a policy that has a label of its own for a node keeps it, and takes the module" {
	on_machine "$policy"'
		printf "(filecon \"/dev/%s\" char (system_u object_r xserver_misc_device_t ((s0) (s0))))\n" dxg kfd >/tmp/other.cil
		semodule --install=/tmp/other.cil
		/usr/share/ctr-gpu/selinux load
		semodule --list-modules=full | grep ctr-gpu
		labels'
	expect_status 0
	grep -Eq "^200 +ctr-gpu +cil" <<<"$output"
	expect_line "/dev/dxg system_u:object_r:xserver_misc_device_t:s0"
	expect_line "/dev/kfd system_u:object_r:xserver_misc_device_t:s0"
	expect_line "/dev/accel/accel0 system_u:object_r:dri_device_t:s0"
}

@test "SELinux: a machine without its tools, or without a policy, is left alone" {
	on_machine 'rm -r /etc/selinux; /usr/share/ctr-gpu/selinux load; rm /usr/sbin/semodule; /usr/share/ctr-gpu/selinux load
		/usr/share/ctr-gpu/selinux unload; [[ ! -e /etc/selinux ]] && echo alone'
	expect_status 0
	[[ $output == alone ]]
}

# profile INCLUDE: one of a user's own
profile() {
	printf 'abi <abi/3.0>,\ninclude <tunables/global>\nprofile user /usr/bin/user {\n  include <abstractions/base>\n  %s\n}\n' "$1"
}

@test "AppArmor: a profile that includes the abstraction compiles, for the kernels of ten years" {
	on_machine "
		cat >/etc/apparmor.d/user <<-'END'
			$(profile 'include <abstractions/ctr-gpu>')
		END
		for abi in kernel-5.4-vanilla kernel-5.4-outoftree-network 3.0; do
			apparmor_parser --skip-kernel-load --skip-cache --policy-features /etc/apparmor.d/abi/\$abi \
				--ofile /tmp/\$abi /etc/apparmor.d/user
			[[ -s /tmp/\$abi ]] && echo compiled
		done
		echo '/dev/dxg rw' >>/etc/apparmor.d/abstractions/ctr-gpu
		apparmor_parser --skip-kernel-load --skip-cache /etc/apparmor.d/user || echo 'broken is refused'"
	expect_status 0
	[[ $(grep -cx compiled <<<"$output") -eq 3 ]]
	expect_line "broken is refused"
}

@test "AppArmor: a profile that includes the abstraction may say of all programs how they run" {
	on_machine "
		cat >/etc/apparmor.d/user <<-'END'
			$(profile $'include <abstractions/ctr-gpu>\n  /usr/** px,')
		END
		apparmor_parser --skip-kernel-load --skip-cache --ofile /tmp/user /etc/apparmor.d/user && echo compiled"
	expect_status 0
	expect_line compiled
}

@test "AppArmor: the abstraction has every program of the driver that containers get" {
	local program

	while read -r program; do
		grep -Fx "  /usr/bin/$program mrix," "$e2e/../../pkg/apparmor/ctr-gpu"
		grep -Fx "  /usr/lib/ctr-gpu/usr/bin/$program mrix," "$e2e/../../pkg/apparmor/ctr-gpu"
	done < <(sed -n '/^const struct driver_program driver_programs/,/^};/s/^\t{"\([^"]*\)".*/\1/p' "$e2e/../../src/nvidia/driver_files.c" | tee "$BATS_TEST_TMPDIR/programs")
	grep -qx nvidia-smi "$BATS_TEST_TMPDIR/programs"
}
