#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The log that config.json asks for, at each door, and the failure that is kept where nothing else shows it.

load engines

setup_file() {
	require_root
}

# logged DESTINATION SCRIPT: on a host with this "log", with $state for a container that asks for all GPUs
logged() {
	run sandbox wsl-nvidia bash -c '
		mkdir -p /etc/ctr-gpu /run/bundle/rootfs/etc /run/bin && printf "#!/bin/sh\n" >/run/bin/runc && chmod +x /run/bin/runc &&
			jq -n --arg log "$1" "{log: \$log}" >/etc/ctr-gpu/config.json &&
			echo "{\"root\": {\"path\": \"rootfs\"}, \"process\": {\"env\": [\"NVIDIA_VISIBLE_DEVICES=${gpus:-all}\"]}}" >/run/bundle/config.json || exit 99
		unshare --mount sleep 60 &
		until [[ $(readlink /proc/$!/ns/mnt) != "$(readlink /proc/self/ns/mnt)" ]]; do sleep 0.1; done
		state=$(printf "{\"ociVersion\": \"1.0.2\", \"id\": \"t\", \"status\": \"creating\", \"pid\": %d, \"bundle\": \"/run/bundle\"}" $!)
		'"$2" logged "$1"
}

# Programs find theirs in /dev/log, and here nobody else's.
listen='umount -l /dev/log 2>/dev/null; rm -f /dev/log; busybox syslogd -n -O /run/syslog & until [[ -S /dev/log ]]; do sleep 0.1; done;'

doors='ctr-gpu-hook createRuntime <<<"$state"
	PATH=/run/bin:$PATH ctr-gpu-runtime create --bundle /run/bundle x
	nvidia-cdi-hook create-symlinks --link none <<<"$state"'

expect_log() {
	expect "ctr-gpu-hook["
	expect "debug: mounted /usr/lib/wsl/lib on /usr/lib/wsl/lib"
	expect "ctr-gpu-runtime["
	expect "nvidia-cdi-hook["
	expect 'warning: "none" is not TARGET::LINK'
}

@test "a file" {
	logged /run/log "$doors"'; echo "the log:"; cat /run/log'
	expect_log
	[[ ${output%%the log:*} != *debug* ]]
}

@test "the system's log" {
	busybox syslogd --help >/dev/null 2>&1 || skip "needs busybox syslogd"
	logged journal "$listen $doors"'; soon grep -q TARGET::LINK /run/syslog; sed "s/^.*daemon.\([a-z]*\)/\1/; s/\(debug\|warn\) \([^:]*\):/\2: \1:/; s/warn:/warning:/" /run/syslog'
	expect_log
}

@test "what cannot be written stops no container" {
	for destination in /none/log /dev/null /run /usr/lib/wsl/lib/log; do
		logged "$destination" 'ctr-gpu-hook createRuntime <<<"$state" && echo started'
		expect_line "started"
	done
	# A FIFO that nobody reads, a link to somebody's file.
	logged /run/log 'mkfifo /run/log; timeout 60 ctr-gpu-hook createRuntime <<<"$state" && echo started'
	expect_line "started"
	logged /run/log 'echo theirs >/run/theirs; ln -s theirs /run/log; ctr-gpu-hook createRuntime <<<"$state" && cat /run/theirs'
	expect_line "theirs"
}

@test "without a log, the doctor shows the last failure" {
	export gpus=9
	logged /run/log 'rm -f /dev/log; ctr-gpu-hook createRuntime <<<"$state" 2>/dev/null; stat -c "%a %U" /run/ctr-gpu /run/ctr-gpu/last-failure
		ctr-gpu doctor | grep -A3 "last container"; ctr-gpu doctor --json | grep last-failure'
	expect_line "700 root"
	expect_line "600 root"
	expect "the last container that got no GPU: 20"
	expect '[E_UNKNOWN_DEVICE] this host has no device "9"'
}

@test "a directory of somebody else's in its place is not used" {
	export gpus=9
	logged /run/log 'rm -f /dev/log; mkdir /run/theirs; ln -s theirs /run/ctr-gpu; ctr-gpu-hook createRuntime <<<"$state" 2>/dev/null
		rm /run/ctr-gpu; mkdir -m 777 /run/ctr-gpu; ctr-gpu-hook createRuntime <<<"$state" 2>/dev/null
		find /run/theirs /run/ctr-gpu'
	expect_line "/run/theirs"
	expect_line "/run/ctr-gpu"
	expect_not "last-failure"
}
