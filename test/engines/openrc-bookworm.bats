#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# The script for ctr-gpu refresh, with the real OpenRC.

load engines

setup_file() {
	require_root
}

@test "OpenRC starts it, in the order that it has to" {
	local tree

	tree=$("$e2e/../engines/tree" "$suite" openrc libcap2 libseccomp2 libtirpc3 libyaml-0-2)
	run "$e2e/../engines/enter" native-nvidia "$tree" -- bash -ec '
		cp "$0"/bin/ctr-gpu* /usr/bin; cp -a "$0"/lib/*.so* /usr/lib
		install -m 755 "$1" /etc/init.d/ctr-gpu-refresh
		mkdir -p /run/openrc; touch /run/openrc/softlevel
		echo "rc_cgroup_mode=legacy" >>/etc/rc.conf
		rc-update add ctr-gpu-refresh default
		rc-status >/dev/null
		rm -f /dev/nvidia0
		rc-service ctr-gpu-refresh start
		stat -c "%n %a" /dev/nvidia0
		rc-service ctr-gpu-refresh status
		printf "#!/sbin/openrc-run\ndepend() { :; }\nstart() { :; }\n" >/etc/init.d/docker; chmod 755 /etc/init.d/docker; rc-update add docker default
		rc-update -u; grep -A9 "=.docker" /run/openrc/deptree | grep ctr-gpu-refresh
	' "$CTR_GPU_BUILD" "$e2e/../../pkg/openrc/ctr-gpu-refresh"
	expect_status 0
	expect_line "/dev/nvidia0 666"
	expect "status: started"
	expect "iafter"
}
