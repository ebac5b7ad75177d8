#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# `ctr-gpu doctor --try`: a container with a GPU, from an image that it makes itself, by the engines' own clients, on a simulated
# WSL2 host. Nothing of it remains.

load engines

setup_file() {
	require_root
	require_program dockerd
	docker_start wsl-nvidia '{"runtimes": {"gone": {"path": "/none"}}}' || return
}

teardown_file() {
	docker_stop
}

setup() {
	docker_use docker
	PATH=$CTR_GPU_BUILD/bin:$PATH
}

nothing_remains() {
	[[ -z $(docker ps --all --quiet) && -z $(docker images --quiet) ]]
}

@test "Docker: --gpus by the hook; the device, and what the loader finds" {
	run ctr-gpu doctor --try=docker
	expect_status 0
	expect "/dev/dxg             opened"
	expect "libcuda.so.1         /usr/lib/wsl/lib/libcuda.so.1"
	expect_line "docker run --gpus all: yes, the container has a GPU and its driver"
	nothing_remains
}

@test "Docker: a door that is not there says so in the engine's words" {
	run ctr-gpu doctor --try=docker:runtime
	expect_status 1
	expect "docker run --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all: no"
	expect "nvidia"
	expect '"ctr-gpu doctor" says what may be in the way.'
	nothing_remains
	DOCKER_HOST=unix:///none/socket run ctr-gpu doctor --try=docker
	expect_status 1
	expect "Cannot connect to the Docker daemon"
	PATH=$CTR_GPU_BUILD/bin run ctr-gpu doctor --try=docker
	expect_status 1
	expect "docker is not installed here; install it, or name another engine"
	for wrong in docker:hook lxc docker: ''; do
		run ctr-gpu doctor --try="$wrong"
		expect_status 2
	done
}

@test "Docker and containerd that do not run: how to start them" {
	[[ ! -e /run/docker.sock && ! -e /run/containerd/containerd.sock ]] || skip "this machine's own run"
	run env -u DOCKER_HOST ctr-gpu doctor --try=docker
	expect_status 1
	expect "Cannot connect to the Docker daemon"
	[[ ${lines[-1]} == "Docker does not run. Start it, and try again: sudo "*(systemctl|service|rc-service|dockerd)* ]]
	run env -u DOCKER_HOST ctr-gpu doctor --try=containerd
	expect_status 1
	[[ ${lines[-1]} == "containerd does not run. Start it, and try again: sudo "* ]]
}

@test "Docker: a user who may not use its socket is told of sudo, and no long address" {
	run setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/tmp "DOCKER_HOST=$DOCKER_HOST" "PATH=$PATH" ctr-gpu doctor --try=docker
	expect_status 1
	expect "permission denied"
	expect_not "%2F"
	[[ ${lines[-1]} == "This user may not use the socket of Docker: sudo ctr-gpu doctor --try=docker:gpus" ]]
}

@test "Docker: a container that gets no GPU is no success" {
	# A client that forgets what it is told.
	mkdir "$BATS_TEST_TMPDIR/bin"
	printf '#!/bin/bash\nargs=()\nfor arg; do [[ $arg == --gpus || $arg == all ]] || args+=("$arg"); done\nexec %s "${args[@]}"\n' "$(type -P docker)" >"$BATS_TEST_TMPDIR/bin/docker"
	chmod 755 "$BATS_TEST_TMPDIR/bin/docker"
	PATH=$CTR_GPU_BUILD/bin:$BATS_TEST_TMPDIR/bin:$PATH run ctr-gpu doctor --try=docker
	expect_status 1
	expect_line "docker run --gpus all: no, the container started without any GPU device"
	nothing_remains
}

@test "given up or ended from outside, nothing remains" {
	# A client that takes its time before and after it has run the container.
	mkdir "$BATS_TEST_TMPDIR/bin"
	printf '#!/bin/bash\n[[ $1 != run ]] || { %s "${@/--rm/--init=false}" >/dev/null; touch %s; sleep 60; }\nexec %s "$@"\n' "$(type -P docker)" "$BATS_TEST_TMPDIR/runs" "$(type -P docker)" \
		>"$BATS_TEST_TMPDIR/bin/docker"
	chmod 755 "$BATS_TEST_TMPDIR/bin/docker"
	for signal in INT TERM HUP; do
		rm -f "$BATS_TEST_TMPDIR/runs"
		# Not from a background job, in which the shell ignores SIGINT.
		PATH=$CTR_GPU_BUILD/bin:$BATS_TEST_TMPDIR/bin:$PATH perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' ctr-gpu doctor --try=docker 2>"$BATS_TEST_TMPDIR/message" 3>&- &
		soon test -e "$BATS_TEST_TMPDIR/runs"
		[[ -n $(docker ps --all --quiet) ]]
		kill -"$signal" $!
		status=0
		wait $! || status=$?
		[[ $status -eq 1 ]]
		grep -q "given up" "$BATS_TEST_TMPDIR/message"
		nothing_remains
	done
}

@test "a signal while the image is made or removed: the daemon has done so before the end" {
	local step

	mkdir "$BATS_TEST_TMPDIR/bin"
	# The part of a client that asks the daemon does so a moment after the signal, and lives on alone.
	cat >"$BATS_TEST_TMPDIR/bin/docker" <<-END
		#!/bin/bash
		[[ \$1 == "\$STEP" ]] || exec $(type -P docker) "\$@"
		kill -INT \$PPID
		setsid bash -c 'sleep 0.7; exec $(type -P docker) "\$@"' docker "\$@" <&0 >/dev/null 2>&1 &
		wait \$!
	END
	chmod 755 "$BATS_TEST_TMPDIR/bin/docker"
	for step in import rm rmi; do
		STEP=$step PATH=$CTR_GPU_BUILD/bin:$BATS_TEST_TMPDIR/bin:$PATH run ctr-gpu doctor --try=docker
		[[ $step != import ]] || sleep 1
		nothing_remains
		if [[ $step == import ]]; then expect "given up"; else expect_status 0; fi
	done
}

# deaf_client SCRIPT: a client that runs this instead of a container, in $BATS_TEST_TMPDIR/bin
deaf_client() {
	mkdir -p "$BATS_TEST_TMPDIR/bin"
	printf '#!/bin/bash\ncase $1 in run) %s ;; esac\nexit 0\n' "$1" >"$BATS_TEST_TMPDIR/bin/docker"
	chmod 755 "$BATS_TEST_TMPDIR/bin/docker"
}

@test "a client that closes its output and lives on is given up by a signal, also one that ignores that" {
	local script begun="exec >&- 2>&-; touch $BATS_TEST_TMPDIR/runs"

	for script in "$begun; exec sleep 600" "trap '' TERM INT; $begun; while :; do read -t 60 <>/dev/zero || :; done"; do
		deaf_client "$script"
		rm -f "$BATS_TEST_TMPDIR/runs"
		PATH=$CTR_GPU_BUILD/bin:$BATS_TEST_TMPDIR/bin:$PATH perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' timeout -s KILL 120 ctr-gpu doctor --try=docker 2>"$BATS_TEST_TMPDIR/message" 3>&- &
		soon test -e "$BATS_TEST_TMPDIR/runs"
		sleep 0.1
		pkill -INT -P $! ctr-gpu
		status=0
		wait $! || status=$?
		[[ $status -eq 1 ]]
		grep -q "given up" "$BATS_TEST_TMPDIR/message"
	done
}

@test "a client gets no descriptor of whoever runs doctor" {
	echo secret >"$BATS_TEST_TMPDIR/secret"
	deaf_client 'ls -l /proc/self/fd | grep secret; exit 3'
	PATH=$CTR_GPU_BUILD/bin:$BATS_TEST_TMPDIR/bin:$PATH run ctr-gpu doctor --try=docker 7<"$BATS_TEST_TMPDIR/secret" 19<"$BATS_TEST_TMPDIR/secret"
	expect_not secret
}

@test "Podman: by the hooks directory" {
	local directory

	directory=$(engine_directory podman)
	podman_configure "$directory"
	run podman_shell 'ctr-gpu doctor --try=podman; echo "status $?"; /usr/bin/podman ps --all --quiet; /usr/bin/podman images --quiet'
	expect_line "status 0"
	expect "/dev/dxg             opened"
	[[ ${lines[-1]} == "status 0" ]]
	# Without the hook.
	sed -i /hooks_dir/d "$directory/containers.conf"
	run podman_shell 'ctr-gpu doctor --try=podman; echo "status $?"'
	expect_line "status 1"
	expect_line "podman run -e NVIDIA_VISIBLE_DEVICES=all: no, the container started without any GPU device"
}

# podman_shell SCRIPT: where `podman run` gets what every container here needs
podman_shell() {
	local directory

	directory=$(engine_directory podman)
	sandbox wsl-nvidia env CONTAINERS_CONF="$directory/containers.conf" CONTAINERS_STORAGE_CONF="$directory/storage.conf" bash -c '
		mkdir /run/bin
		printf "#!/bin/bash\ncommand=\$1; shift\n[[ \$command != run ]] || set -- --cgroup-parent \"\$CTR_GPU_TEST_CGROUP\" \"\$@\"\nexec %s /usr/bin/podman \"\$command\" \"\$@\"\n" "$(command -v memlock)" >/run/bin/podman
		chmod 755 /run/bin/podman
		PATH=/run/bin:$PATH
		'"$1"
}

@test "containerd: ctr run --gpus" {
	require_program ctr
	run sandbox wsl-nvidia bash -c '
		directory=$(mktemp -d /run/containerd-XXXXXX)
		export CONTAINERD_ADDRESS=$directory/socket
		containerd --root "$directory/root" --state "$directory/state" --address "$CONTAINERD_ADDRESS" --log-level error >"$directory/log" 2>&1 &
		soon ctr version || exit
		ctr-gpu doctor --try=containerd
		echo "status $?"
		ctr container ls --quiet; ls -d /tmp/ctr-gpu-try-* 2>/dev/null
		mkdir /run/bin; ln -s /bin/false /run/bin/nvidia-container-cli
		kill %%; wait; PATH=/run/bin:$PATH containerd --root "$directory/root" --state "$directory/state" --address "$CONTAINERD_ADDRESS" --log-level error >"$directory/log" 2>&1 &
		soon ctr version || exit
		PATH=/run/bin:$PATH ctr-gpu doctor --try=containerd
		echo "status $?"
		ctr container ls --quiet; ls -d /tmp/ctr-gpu-try-* 2>/dev/null
		echo over'
	expect_line "status 0"
	expect "/dev/dxg             opened"
	expect_line "status 1"
	[[ ${lines[-1]} == over && ${lines[-2]} == "status 1" ]]
}
