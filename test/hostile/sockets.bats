#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# What users of the host put where sockets of the driver's daemons are looked for: it does not come into containers.

load ../e2e/engines

setup_file() {
	require_root
	require_program runc
	image debian >/dev/null
}

# given SCRIPT [CONFIG]: what a container sees after SCRIPT ran on the host, whose /tmp and /run are empty
given() {
	rm -rf "$BATS_TEST_TMPDIR/bundle"
	bundle debian "$BATS_TEST_TMPDIR/bundle" \
		'.process.args = ["sh", "-c", "find -L /tmp /run -type f -o -type s | grep -v nvidia-container-devices; true"]
			| .mounts |= map(select(.destination != "/run"))'
	run sandbox native-four bash -c '
		mkdir -p /run/bundle && mount --bind "$1" /run/bundle && cd /run/bundle || exit
		mount -t tmpfs -o mode=1777 tmpfs /tmp
		socket() { python3 -c "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])" "$1"; }
		eval "$2" || exit
		[[ -z $3 ]] || { mkdir -p /run/upper /run/work && mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc &&
			mkdir -p /etc/ctr-gpu && echo "$3" >/etc/ctr-gpu/config.json; } || exit
		"$CTR_GPU_BUILD/bin/ctr-gpu" configure --dry-run /srv | grep "left out"
		jq --arg path "$CTR_GPU_TEST_CGROUP/container" ".linux.cgroupsPath = \$path" config.json >config.new && mv config.new config.json || exit
		memlock runc --root /run/runtime run container || echo "status $?"
	' given "$BATS_TEST_TMPDIR/bundle" "$1" "${2-}"
	echo "$output"
	expect_not "status "
}

shown() {
	expect "$1"
	expect_not "left out"
}

left_out() {
	expect_not "secret"
	expect "is left out"
}

@test "/tmp/nvidia-mps: root's, a user's, one that everybody may write to, a link" {
	given 'mkdir /tmp/nvidia-mps && echo >/tmp/nvidia-mps/control'
	shown /tmp/nvidia-mps/control
	given 'mkdir -m 1777 /tmp/nvidia-mps && echo >/tmp/nvidia-mps/secret'
	left_out
	given 'mkdir /tmp/nvidia-mps && echo >/tmp/nvidia-mps/secret && chown 4711 /tmp/nvidia-mps'
	left_out
	given 'mkdir -p /run/private && echo >/run/private/secret && ln -s /run/private /tmp/nvidia-mps && chown -h 4711 /tmp/nvidia-mps'
	left_out
	given 'mkdir -p /run/private && echo >/run/private/secret && ln -s /run/private /tmp/nvidia-mps'
	left_out
}

@test "/tmp/nvidia-mps of the user that the configuration names, and of another" {
	given 'mkdir /tmp/nvidia-mps && echo >/tmp/nvidia-mps/control && chown 4711 /tmp/nvidia-mps' '{"mps-user": 4711}'
	shown /tmp/nvidia-mps/control
	given 'mkdir /tmp/nvidia-mps && echo >/tmp/nvidia-mps/secret && chown 4712 /tmp/nvidia-mps' '{"mps-user": 4711}'
	left_out
}

@test "the socket of a service'\''s user, and what else that user may have put in its place" {
	given 'mkdir /run/nvidia-persistenced && socket /run/nvidia-persistenced/socket && chown -R 4712 /run/nvidia-persistenced'
	shown /run/nvidia-persistenced/socket
	given 'mkdir /run/nvidia-persistenced && socket /run/secret && ln -s /run/secret /run/nvidia-persistenced/socket && chown -hR 4712 /run/nvidia-persistenced'
	left_out
	given 'mkdir -m 777 /run/nvidia-persistenced && socket /run/nvidia-persistenced/socket && mkdir /run/nvidia-fabricmanager && socket /run/nvidia-fabricmanager/socket'
	expect "/run/nvidia-persistenced/socket is left out"
	expect_line /run/nvidia-fabricmanager/socket
	expect_no_line /run/nvidia-persistenced/socket
}
