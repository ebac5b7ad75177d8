#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# Processes in containers that have a daemon's name and arguments, where the container has the host's process ids: setup and doctor,
# run by root, follow none of it.

load ../e2e/engines

setup_file() {
	require_root
	require_program runc
	require_program dockerd
	image debian >/dev/null
}

# host SCRIPT ARGUMENT…: a script on a host whose /etc is ours alone
host() {
	local script=$1
	shift

	run sandbox wsl-nvidia bash -ec '
		mkdir -p /run/upper /run/work /run/daemon
		mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc
		rm -rf /etc/docker /etc/containerd /etc/cdi
		mount -t tmpfs tmpfs /var/lib
		mkdir /var/lib/containerd
		shows() { until [[ $(cat "/proc/$1/comm") == "$2" ]]; do sleep 0.02; done; }
		'"$script" host "$@"
	echo "$output"
}

# What the attack wants to have written is not there, what was asked for is, and it was said before.
untouched() {
	expect_status 0
	expect "is called $1, but does not belong to this host"
	[[ ${output%%is called*} != *written* ]]
	expect "written"
	expect_line "preload: no"
}

@test "runc: a process called dockerd without a pid namespace is no daemon" {
	bundle debian "$BATS_TEST_TMPDIR/bundle" 'del(.hooks) | .process.args = ["/usr/bin/dockerd", "--config-file=/etc/ld.so.preload"]
		| .linux.namespaces |= map(select(.type != "pid"))'
	printf '#!/bin/sh\nsleep 60\n' >"$BATS_TEST_TMPDIR/bundle/rootfs/usr/bin/dockerd"
	chmod 755 "$BATS_TEST_TMPDIR/bundle/rootfs/usr/bin/dockerd"
	host '
		cd "$1"
		jq --arg path "$CTR_GPU_TEST_CGROUP/container" ".linux.cgroupsPath = \$path" config.json >config.new
		mv config.new config.json
		memlock runc --root /run/runtime run --detach container </dev/null >/dev/null
		shows "$(runc --root /run/runtime state container | jq .pid)" dockerd
		ctr-gpu setup docker 2>&1
		ctr-gpu doctor -v | grep Docker
		[[ -e /etc/ld.so.preload ]] && echo "preload: yes" || echo "preload: no"
		runc --root /run/runtime delete --force container' "$BATS_TEST_TMPDIR/bundle"
	untouched dockerd
	expect "not running"
}

@test "Docker: a process called containerd in a container with --pid=host is no daemon" {
	host '
		DOCKER_HOST=unix://$1/socket
		export DOCKER_HOST
		dockerd --data-root "$1/data" --exec-root "$1" --host "$DOCKER_HOST" --pidfile "$1/pid" --iptables=false \
			--ip6tables=false --bridge=none --cgroup-parent "$CTR_GPU_TEST_CGROUP" --exec-opt native.cgroupdriver=cgroupfs >"$1/log" 2>&1 &
		soon docker version
		tar -C "$2" -c . | docker import - debian >/dev/null
		docker run --detach --name attack --pid=host --volume /:/host:ro debian sh -c "
			printf \"#!/bin/sh\nsleep 60\n\" >/usr/bin/containerd && chmod 755 /usr/bin/containerd
			exec /usr/bin/containerd --config /etc/ld.so.preload" >/dev/null
		shows "$(docker inspect --format "{{.State.Pid}}" attack)" containerd
		ctr-gpu setup containerd 2>&1
		[[ -e /etc/ld.so.preload ]] && echo "preload: yes" || echo "preload: no"
		docker rm --force attack >/dev/null' "$(engine_directory docker)" "$(image debian)"
	untouched containerd
}

# A process of the host's root that is a daemon, with a file that others may have put there.
@test "a configuration file that others may change is not written, and what is no file is not opened" {
	host '
		cp /bin/sh /run/daemon/dockerd
		echo "read line" >/run/daemon/script
		chmod 755 /run /run/daemon /run/daemon/dockerd
		mkfifo /run/wait /run/pipe
		mkdir /run/user/home /run/user/home/docker
		echo "{}" >/run/user/home/daemon.json
		chown -R 4711 /run/user/home
		echo "{}" >/run/link-target
		ln -s /run/link-target /run/user/home/link
		echo "{}" >/tmp/daemons-test.json
		for file in /run/pipe /dev/null /run/user/home/daemon.json /run/user/home/link /run/user/home/none /tmp/daemons-test.json; do
			/run/daemon/dockerd /run/daemon/script --config-file="$file" <>/run/wait &
			shows $! dockerd
			if ctr-gpu setup docker >/run/out 2>&1; then echo "not refused: $file"; fi
			grep -c "process $!) reads $file, which is not a file that root alone may change" /run/out || cat /run/out
			kill -KILL $!
			wait $! || true
		done
		cat /run/user/home/daemon.json /run/link-target /tmp/daemons-test.json
		rm /tmp/daemons-test.json
		ls -A /run/user/home /etc/docker 2>/dev/null || true'
	expect_status 0
	expect_not "not refused"
	[[ $(grep -cx 1 <<<"$output") -eq 6 ]]
	[[ $(grep -cx '{}' <<<"$output") -eq 3 ]]
}

# As a user whom root's programs serve: sudo is root by all of its ids until it asks for a password.
@test "set-uid programs in a loop, by a daemon's name and with its arguments: no verb of root's takes one for a daemon" {
	host '
		mkdir /run/set-uid /run/engine /run/home
		install -m 4755 "$1" /run/set-uid/ask
		for name in dockerd containerd; do install -m 755 "$1" /run/engine/$name; done
		chmod 755 /run
		chown 4711 /run/home
		setpriv --reuid 4711 --regid 4711 --clear-groups bash -c "
			cd /run/home
			attack() {
				local name=\$1 option=\$2 link=\$3 program
				mkdir -p own && ln -s /run/set-uid/ask own/\$name
				for i in 1 2 3; do (exec own/\$name \$option=/etc/ld.so.preload \$PWD/own/\$name /run/engine/\$name) & done
				for program in su mount umount newgrp passwd sudo pkexec fusermount3; do
					[[ -u /usr/bin/\$program ]] || continue
					mkdir \$program-\$name && ln -s /usr/bin/\$program \$program-\$name/\$name
					while :; do \$program-\$name/\$name \$option=/etc/ld.so.preload; sleep 0.01; done &
				done
			}
			attack dockerd --config-file
			attack containerd --config
			touch started; wait" </dev/null >/dev/null 2>&1 &
		until [[ -e /run/home/started ]]; do sleep 0.02; done
		# The attack works: root by all ids, with the name.
		for _ in {1..500}; do
			grep -lsx "Uid:	0	0	0	0" $(pgrep -x dockerd | sed "s,.*,/proc/&/status,") >/run/seen 2>/dev/null && break
		done
		[[ -s /run/seen ]] && echo "seen as root"
		takes_none() {
			"$@" >/run/out 2>&1 || [[ "$1 $2" == "ctr-gpu doctor" ]] || { echo "failed: $*"; cat /run/out; }
			[[ ! -e /etc/ld.so.preload ]] || { echo "written by: $*"; rm -f /etc/ld.so.preload; }
			if grep -e "ld.so.preload" -e "\(Docker\|containerd\).*, running" /run/out; then echo "believed by: $*"; fi
		}
		for ((i = 0; i < ${CTR_GPU_TEST_STARTS:-2}; i++)); do
			takes_none ctr-gpu setup docker
			takes_none ctr-gpu setup containerd
			takes_none ctr-gpu doctor -v
			takes_none ctr-gpu setup --remove all
		done
		echo "rounds: $i"' "$CTR_GPU_BUILD/test/tools/set-uid-daemon"
	expect_status 0
	expect_line "seen as root"
	expect "rounds: "
	expect_not "failed:"
	expect_not "written by:"
	expect_not "believed by:"
}
