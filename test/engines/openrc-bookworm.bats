#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# The scripts for ctr-gpu refresh and vCUDA's manager, with the real OpenRC.

load engines

setup_file() {
	require_root
}

@test "OpenRC starts it, in the order that it has to" {
	local tree

	tree=$("$e2e/../engines/tree" "$suite" openrc libcap2 libjansson4 libseccomp2 libtirpc3 libyaml-0-2 procps)
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

@test "OpenRC starts and stops vCUDA's manager, before the engines, and servers go on meanwhile" {
	local tree

	tree=$("$e2e/../engines/tree" "$suite" logrotate openrc libcap2 libjansson4 libseccomp2 libtirpc3 libyaml-0-2 procps)
	run "$e2e/../engines/enter" native-nvidia "$tree" -- bash -ec '
		mkdir -p /usr/libexec/ctr-gpu; cp "$0"/bin/ctr-gpu /usr/bin; cp -a "$0"/lib/*.so* /usr/lib
		cp "$0"/bin/ctr-gpu-vcuda "$0"/bin/ctr-gpu-vcudad /usr/libexec/ctr-gpu
		install -m 755 "$1" /etc/init.d/ctr-gpu-vcudad
		mkdir -p /run/openrc; touch /run/openrc/softlevel
		echo "rc_cgroup_mode=legacy" >>/etc/rc.conf
		# OpenRC makes its groups beside that of the first process.
		for controller in memory pids; do
			mkdir "/sys/fs/cgroup/$controller$CTR_GPU_TEST_CGROUP"
			echo 1 >"/sys/fs/cgroup/$controller$CTR_GPU_TEST_CGROUP/cgroup.procs"
		done
		rc-update add ctr-gpu-vcudad default
		rc-status >/dev/null
		ctr-gpu vcuda list 2>&1 || true
		rc-service ctr-gpu-vcudad start
		sleep 0.5
		ctr-gpu vcuda list
		rc-service ctr-gpu-vcudad status
		for limit in memory.limit_in_bytes pids.max; do
			group=/sys/fs/cgroup/${limit%%.*}${CTR_GPU_TEST_CGROUP}openrc_ctr-gpu-vcudad
			grep -qx "$(pgrep -x ctr-gpu-vcudad)" "$group/cgroup.procs"
			cat "$group/$limit"
		done
		first=$(pgrep -x ctr-gpu-vcudad)
		rc-service ctr-gpu-vcudad restart
		sleep 0.5
		[[ $(pgrep -x ctr-gpu-vcudad) != "$first" && $(pgrep -c -x ctr-gpu-vcudad) == 1 ]]
		grep -c "\"event\":\"start\"" /var/log/ctr-gpu-vcudad.log
		cp "$1".logrotate /etc/logrotate.d/ctr-gpu-vcudad
		logrotate --force /etc/logrotate.conf
		[[ $(stat -c "%s %a" /var/log/ctr-gpu-vcudad.log) == "0 640" ]]
		rc-service ctr-gpu-vcudad stop
		[[ -z $(pgrep -x ctr-gpu-vcudad) ]]
		# What was written since then stands at the beginning of the file, and what was before it is kept.
		[[ $(head -c 1 /var/log/ctr-gpu-vcudad.log) == "{" ]]
		grep -c "\"event\":\"stop\"" /var/log/ctr-gpu-vcudad.log{,.1}
		stat -c "%n %a" /run/ctr-gpu /run/ctr-gpu/vcuda
		printf "#!/sbin/openrc-run\ndepend() { :; }\nstart() { :; }\n" >/etc/init.d/docker; chmod 755 /etc/init.d/docker; rc-update add docker default
		rc-update -u; grep -A9 "=.docker" /run/openrc/deptree | grep ctr-gpu-vcudad
	' "$CTR_GPU_BUILD" "$e2e/../../pkg/openrc/ctr-gpu-vcudad"
	expect_status 0
	expect "OpenRC: rc-service ctr-gpu-vcudad start"
	expect_line "No container has GPUs by vCUDA."
	expect "status: started"
	expect_line "$(awk '/^MemTotal:/ { printf "%.0f", int($2 * 768 / 4096) * 4096 }' /proc/meminfo)"
	expect_line 16384
	expect_line 2
	expect_line "/run/ctr-gpu 700"
	expect_line "/run/ctr-gpu/vcuda 700"
}
