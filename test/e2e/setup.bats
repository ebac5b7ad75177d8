#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# `ctr-gpu setup`: what it writes into an engine's configuration and takes out again, and what it says of the daemon that runs.

load engines

setup_file() {
	require_root
	require_program dockerd
}

teardown_file() {
	docker_stop
}

# machine COMMAND…: where /etc, /var/lib, /run and processes are ours alone, in an empty directory on a disk
machine() {
	mkdir -p "$BATS_TEST_TMPDIR/machine"
	PATH=$CTR_GPU_BUILD/bin:$PATH unshare --mount --propagation private --pid --fork --kill-child --mount-proc bash -ec '
		cd "$1"
		shift
		mount -t tmpfs tmpfs /var/lib
		mount -t tmpfs tmpfs /run
		mkdir /run/upper /run/work /run/bin
		mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc
		rm -rf /etc/docker /etc/containerd /etc/containers /etc/crio /etc/cdi
		cp /bin/true /run/bin/ctr-gpu-runtime
		"$@"' machine "$BATS_TEST_TMPDIR/machine" "$@" 3>&-
}

# in_machine SCRIPT [ARGUMENT…]: a script there, in which `setup` is the command with the runtime that is there
in_machine() {
	local script=$1
	shift

	machine bash -ec 'setup() { ctr-gpu setup --runtime=/run/bin/ctr-gpu-runtime "$@"; }
		# What fails, with its message in a file.
		refused() { if "$@" 2>message; then echo "not refused: $*"; exit 1; fi; }
		# Waits until a process that was started has become what it is to be.
		appears() { until [[ $(cat "/proc/$1/comm") == "$2" ]]; do sleep 0.01; done; }
		'"$script" script "$@"
}

# Every way in which somebody may have written a daemon.json, in printf form.
json_layouts=('' '\n' ' \t\n' '{}' '{}\n' '{ }' '{\n}\n' '{\r\n}\r\n' '\xef\xbb\xbf{}' '\xef\xbb\xbf{\r\n  "debug": true\r\n}\r\n'
	'{"debug":true}' '{"debug": true}\n' '{ "debug" : true }' '{"debug":true,"hosts":["fd://"]}'
	'{\n  "debug": true\n}\n' '{\n\t"debug": true,\n\t"log-opts": {"max-size": "10m"}\n}' '{\r\n    "debug": true\r\n}'
	'{\n    "runtimes": {}\n}\n' '{"runtimes":{}}' '{"runtimes":{ } }' '{\n  "runtimes": {\n  }\n}'
	'{\n  "runtimes": {\n    "kata": {\n      "path": "/opt/kata"\n    }\n  },\n  "debug": true\n}\n'
	'{"runtimes":{"kata":{"path":"/opt/kata"}},"default-runtime":"kata","features":{"buildkit":true}}'
	'{"features": {"cdi": true}}' '{"features": null, "runtimes": null}' '\n\n{"a":"\\"}{\\\\","b":[ ]}\n\n'
	'{"default-runtime": "runc"}' '{"\\u0072untimes": {"a": {}}}')

@test "setup, then setup --remove: every layout of daemon.json is as it was, byte for byte" {
	in_machine '
		for layout; do
			for way in "" --set-as-default; do
				printf "$layout" >before
				cp before daemon.json
				setup docker --engine-config=daemon.json $way >/dev/null
				jq -e ".runtimes.nvidia.path == \"/run/bin/ctr-gpu-runtime\" and .features.cdi" <<<"$(sed "1s/^\xef\xbb\xbf//" daemon.json)" >/dev/null
				cp daemon.json once
				setup docker --engine-config=daemon.json $way | grep -q "everything is there"
				cmp once daemon.json
				setup docker --engine-config=daemon.json --remove >/dev/null
				cmp before daemon.json || { od -c before; exit 1; }
				[[ ! -e /var/lib/ctr-gpu ]]
			done
		done' "${json_layouts[@]}"
}

@test "--dry-run shows a diff that patch takes, and changes nothing" {
	in_machine '
		for layout; do
			printf "$layout" >before
			cp before daemon.json
			setup docker --engine-config=daemon.json --set-as-default --dry-run >diff 2>remarks
			cmp before daemon.json
			[[ ! -e /var/lib/ctr-gpu ]]
			patch --binary --posix --silent before diff
			setup docker --engine-config=daemon.json --set-as-default >/dev/null
			cmp before daemon.json
			cp daemon.json after
			setup docker --engine-config=daemon.json --remove --dry-run >diff 2>remarks
			cmp after daemon.json
			setup docker --engine-config=daemon.json --remove >/dev/null
			patch --binary --posix --silent after diff
			cmp after daemon.json
		done' "${json_layouts[@]:3}"
}

@test "the whole of a large file that changes in two places is not in the diff" {
	in_machine '
		{ echo "{"; echo "  \"runtimes\": {\"a\": {}},"; for i in {1..100}; do echo "  \"x$i\": $i,"; done; echo "  \"z\": 1"; echo "}"; } >daemon.json
		setup docker --engine-config=daemon.json --dry-run 2>/dev/null >diff
		[[ $(grep -c "^@@" diff) -eq 2 && $(wc -l <diff) -lt 25 ]]
		setup docker --engine-config=daemon.json >/dev/null
		[[ $(grep -c "\"x" daemon.json) -eq 100 ]]'
}

@test "a file that did not exist is gone again, with the directories that were made for it" {
	in_machine '
		setup docker >/dev/null
		jq -e .runtimes.nvidia /etc/docker/daemon.json >/dev/null
		[[ $(stat -c %a:%U:%G /etc/docker/daemon.json) == 644:root:root ]]
		setup docker --remove >/dev/null
		[[ ! -e /etc/docker && ! -e /var/lib/ctr-gpu ]]
		mkdir /etc/docker
		setup docker >/dev/null
		setup docker --remove >/dev/null
		[[ -d /etc/docker && -z $(ls -A /etc/docker) ]]'
}

@test "what others change in between stays" {
	in_machine '
		echo "{\"debug\": true}" >daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		jq -c ".debug = false | .added = 1 | .runtimes.kata = {path: \"/k\"}" daemon.json >edited
		cat edited >daemon.json
		setup docker --engine-config=daemon.json --remove >/dev/null
		[[ $(jq -cS . daemon.json) == "{\"added\":1,\"debug\":false,\"runtimes\":{\"kata\":{\"path\":\"/k\"}}}" ]]
		[[ ! -e /var/lib/ctr-gpu ]]'
}

@test "a runtime that somebody has changed since is theirs" {
	in_machine '
		echo "{}" >daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		sed -i "s,/run/bin/ctr-gpu-runtime,/opt/mine," daemon.json
		setup docker --engine-config=daemon.json --remove | grep "that stays"
		[[ $(jq -r .runtimes.nvidia.path daemon.json) == /opt/mine ]]'
}

@test "a runtime nvidia that is another'\''s is taken over only with --replace, and comes back" {
	in_machine '
		printf "{\"runtimes\" : {\"nvidia\": { \"path\" :\"nvidia-container-runtime\",\n\"runtimeArgs\": []}}, \"default-runtime\": \"nvidia\"}" >before
		cp before daemon.json
		refused setup docker --engine-config=daemon.json
		grep -q -- --replace message
		[[ $(wc -l <message) -le 3 ]]
		cmp before daemon.json
		setup docker --engine-config=daemon.json --replace >/dev/null
		[[ $(jq -r .runtimes.nvidia.path daemon.json) == /run/bin/ctr-gpu-runtime ]]
		setup docker --engine-config=daemon.json --remove >/dev/null
		cmp before daemon.json
		# By NVIDIA'\''s name it may be ours already.
		ln -s ctr-gpu-runtime /run/bin/nvidia-container-runtime
		setup docker --engine-config=daemon.json >/dev/null
		[[ $(jq -r .runtimes.nvidia.path daemon.json) == nvidia-container-runtime ]]'
}

@test "the default runtime is changed only with --set-as-default, and the old one comes back" {
	in_machine '
		printf "{\"default-runtime\": \"kata\",\n \"runtimes\": {\"kata\": {\"path\": \"/k\"}}}" >before
		cp before daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		[[ $(jq -r .\"default-runtime\" daemon.json) == kata ]]
		setup docker --engine-config=daemon.json --set-as-default >/dev/null
		[[ $(jq -r .\"default-runtime\" daemon.json) == nvidia ]]
		setup docker --engine-config=daemon.json --remove >/dev/null
		cmp before daemon.json'
}

@test "without the journal, what is recognizably ours is taken out" {
	in_machine '
		echo "{\"debug\": true}" >daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		rm -r /var/lib/ctr-gpu
		setup docker --engine-config=daemon.json --remove >/dev/null
		[[ $(jq -c .runtimes daemon.json) != *nvidia* && $(jq .debug daemon.json) == true ]]'
}

@test "a file that is not valid is not touched, and line and column are said" {
	in_machine '
		for case in "{\n  \"a\": 1,\n}|3:1" "// comment\n{}|1:1" "[]|1:1" "{\"runtimes\": {}, \"runtimes\": {}}|1:27" "{\"a\": \"\xff\"}|1:7"; do
			printf "${case%|*}" >daemon.json
			cp daemon.json before
			for way in "" --remove --dry-run; do
				refused setup docker --engine-config=daemon.json $way
				grep -q "daemon.json:${case##*|}: " message || { cat message; exit 1; }
		[[ $(wc -l <message) -le 3 ]]
			done
			cmp before daemon.json
		done
		printf "{\"runtimes\": [1]}" >daemon.json
		refused setup docker --engine-config=daemon.json
		grep -q "\"runtimes\" is no object" message
		[[ ! -e /var/lib/ctr-gpu ]]'
}

@test "mode, owner, labels and links of the file stay" {
	in_machine '
		mkdir real
		echo "{}" >real/daemon.json
		ln -s ../real/daemon.json daemon.json 2>/dev/null || true
		rm daemon.json
		ln -s real/daemon.json daemon.json
		chown 1234:2345 real/daemon.json
		chmod 640 real/daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		[[ -L daemon.json && $(stat -c %a:%u:%g real/daemon.json) == 640:1234:2345 ]]
		[[ $(ls -A real) == daemon.json ]]
		setup docker --engine-config=daemon.json --remove >/dev/null
		[[ -L daemon.json && $(stat -c %a:%u:%g real/daemon.json) == 640:1234:2345 && $(cat real/daemon.json) == "{}" ]]
		ln -s nowhere dangling
		refused setup docker --engine-config=dangling
		grep -q "symbolic link" message
		refused setup docker --engine-config=/dev/null
		grep -q "no regular file" message
		refused setup docker --engine-config=.
		grep -q "no regular file" message'
}

@test "a user is told whose the files are; a rootless Docker has its own" {
	in_machine '
		user() { setpriv --reuid 54321 --regid 54321 --clear-groups env -u XDG_CONFIG_HOME -u XDG_STATE_HOME HOME=/run/home "$@"; }
		mkdir /run/home
		chown 54321 /run/home
		chmod 755 /run
		refused user ctr-gpu setup docker --runtime=/run/bin/ctr-gpu-runtime
		grep -q "sudo ctr-gpu setup docker" message
		[[ $(wc -l <message) -le 3 ]]
		refused user ctr-gpu setup docker --runtime=/run/bin/ctr-gpu-runtime --engine-config=/etc/docker/daemon.json
		user ctr-gpu setup docker --runtime=/run/bin/ctr-gpu-runtime --rootless
		jq -e .runtimes.nvidia /run/home/.config/docker/daemon.json >/dev/null
		[[ -e /run/home/.local/state/ctr-gpu/setup.json ]]
		user ctr-gpu setup docker --remove
		[[ ! -e /run/home/.config && ! -e /run/home/.local/state/ctr-gpu ]]
		refused setup docker --rootless
		grep -q "without sudo" message'
}

@test "what keeps dockerd from starting is not written" {
	in_machine '
		mkdir /run/fake
		printf "#!/bin/sh\nread line\n" >/run/fake/dockerd
		chmod +x /run/fake/dockerd
		mkfifo wait
		/run/fake/dockerd --default-runtime=runc <>wait &
		appears $! dockerd
		refused setup docker --set-as-default
		grep -q -- "--default-runtime" message
		setup docker >/dev/null
		setup docker --remove >/dev/null
		kill %%
		wait %% || true
		/run/fake/dockerd --add-runtime nvidia=/x <>wait &
		appears $! dockerd
		refused setup docker
		grep -q -- "--add-runtime nvidia=/x" message
		[[ ! -e /etc/docker ]]'
}

@test "what makes the daemon notice: each way of running services has its command" {
	in_machine '
		mkdir /run/fake
		printf "#!/bin/sh\nread line\n" >/run/fake/dockerd
		chmod +x /run/fake/dockerd
		mkfifo wait
		setup docker | grep -q "no dockerd is running"
		setup docker --remove
		/run/fake/dockerd <>wait &
		pid=$!
		appears $pid dockerd
		# Of an unknown version, for which features.cdi is written.
		rm -f /etc/init.d/docker
		setup docker --dry-run 2>&1 | grep -qF "next: kill $pid"
		mkdir -p /etc/init.d
		printf "#!/bin/sh\n" >/etc/init.d/docker
		chmod +x /etc/init.d/docker
		setup docker --dry-run 2>&1 | grep -qF "next: service docker restart"
		mkdir /run/openrc
		setup docker --dry-run 2>&1 | grep -qF "next: rc-service docker restart"
		mkdir -p /run/systemd/system
		setup docker --dry-run 2>&1 | grep -qF "next: systemctl restart docker"
		mkdir /etc/docker
		echo "{\"features\": {\"cdi\": true}}" >/etc/docker/daemon.json
		setup docker --dry-run 2>&1 | grep -qF "next: systemctl reload docker"
		rm -r /run/systemd /run/openrc
		setup docker --dry-run 2>&1 | grep -qF "next: kill -HUP $pid"'
}

@test "a daemon that has other files, or is the snap'\''s, is said to be so" {
	in_machine '
		mkdir /run/fake
		printf "#!/bin/sh\nread line\n" >/run/fake/dockerd
		chmod +x /run/fake/dockerd
		mkfifo wait
		unshare --mount --propagation private bash -c "mount -t tmpfs tmpfs /run/bin; exec /run/fake/dockerd" <>wait &
		appears $! dockerd
		setup docker --dry-run 2>&1 | grep -q "does not see /run/bin/ctr-gpu-runtime"
		kill %%
		wait %% || true
		/run/fake/dockerd --config-file=/run/other.json <>wait &
		appears $! dockerd
		setup docker --dry-run 2>/dev/null | grep -qxF "+++ /run/other.json"
		setup docker --dry-run --engine-config=/etc/docker/daemon.json 2>&1 | grep -qF "but /run/other.json"
		kill %%
		wait %% || true
		SNAP_NAME=docker /run/fake/dockerd <>wait &
		appears $! dockerd
		refused setup docker
		grep -q "snap" message
		[[ $(wc -l <message) -le 3 && ! -e /etc/docker ]]'
}

@test "--gpus: the name that dockerd looks for, on its own PATH, when it starts" {
	in_machine '
		mkdir /run/fake /run/names
		printf "#!/bin/sh\nread line\n" >/run/fake/dockerd
		chmod +x /run/fake/dockerd
		mkfifo wait
		PATH=/run/names:/usr/bin:/bin /run/fake/dockerd <>wait &
		appears $! dockerd
		setup docker --dry-run 2>&1 | grep -q "needs nvidia-container-runtime-hook on the daemon.s PATH (/run/names:"
		cp /bin/true /run/names/nvidia-container-runtime-hook
		setup docker --dry-run 2>&1 | grep -q "runs /run/names/nvidia-container-runtime-hook, which is not ctr-gpu.s"
		rm /run/names/*
		cp /bin/true /run/names/ctr-gpu-hook
		ln -s ctr-gpu-hook /run/names/nvidia-container-runtime-hook
		setup docker --dry-run 2>&1 | { if grep -e "--gpus"; then exit 1; fi; }
		# It was not there yet when the daemon started, so reloading does not do.
		mkdir -p /run/systemd/system /etc/docker
		echo "{\"features\": {\"cdi\": true}}" >/etc/docker/daemon.json
		setup docker | grep -qF "next: systemctl restart docker"'
}

# in_daemon COMMAND…: in the namespaces of the sandbox's dockerd
in_daemon() {
	local pid
	pid=$(pgrep --full -- "--pidfile $(engine_directory docker)/pid" | while read -r pid; do
		[[ $(cat "/proc/$pid/comm") == dockerd ]] && echo "$pid"
	done)

	PATH=$CTR_GPU_BUILD/bin:$PATH nsenter --target "$pid" --mount --pid "$@" 3>&-
}

@test "dockerd takes what was written, with no more than a reload" {
	local directory

	directory=$(engine_directory docker)
	docker_start wsl-nvidia
	docker_image debian
	in_daemon mount -t tmpfs tmpfs /var/lib
	run in_daemon ctr-gpu setup docker --runtime="$(command -v runc)"
	expect_status 0
	expect "$directory/daemon.json: runtimes/nvidia written"
	expect_not "features/cdi"
	expect "next: kill -HUP "
	run docker run --rm --runtime=nvidia debian true
	[[ $status -ne 0 ]]
	kill -HUP "$(dockerd_pid)"
	for _ in {1..100}; do
		[[ $(docker info --format '{{json .Runtimes.nvidia}}') == null ]] || break
		sleep 0.05
	done
	run docker run --rm --runtime=nvidia debian sh -c 'echo runs'
	expect_line runs
	run in_daemon ctr-gpu setup docker --runtime="$(command -v runc)"
	expect "everything is there"
	expect_not "next:"
	in_daemon ctr-gpu setup docker --remove
	[[ $(<"$directory/daemon.json") == '{}' ]]
	docker_stop
}

@test "every option of --help is in the manual, and a command line that makes no sense is status 2" {
	for option in $("$CTR_GPU_BUILD/bin/ctr-gpu" setup --help | sed '/every command/,$d' | grep -oE '^ {6}--[a-z-]+' | tr -d ' -' | sort -u); do
		sed 's/^\.It //; s/Fl -/--/g' "$e2e/../../man/ctr-gpu-setup.1" | tr -d - | grep -q -- "$option"
	done
	for line in '' nonsense 'docker docker' '--remove --replace docker' '--runtime=x docker' '--set-as-default --remove docker'; do
		# shellcheck disable=SC2086
		run "$CTR_GPU_BUILD/bin/ctr-gpu" setup $line
		expect_status 2
	done
}
