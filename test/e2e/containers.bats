#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# `ctr-gpu info --containers`: which containers that run have GPUs, by which door, and what they would get now; `ctr-gpu top`:
# which use them. Each test has a host of its own, with the engines in it.

load engines

setup_file() {
	require_root
	image debian >/dev/null
}

# A row a container: its name, the door, the GPUs, and whether to restart it.
row='.containers[] | [.name // .id, (.given | map(.door) | join("+")), (.gpus | join("+")), .restart] | map(tostring) | join("|")'

# with_docker PROFILE SCRIPT
with_docker() {
	local directory

	directory=$(engine_directory "docker-$BATS_TEST_NUMBER")
	run sandbox "$1" bash -c '
		fail() { echo "FAILED: $*"; exit 1; }
		directory=$1 row=$3
		mkdir -p "$directory"
		dockerd --data-root "$directory/data" --exec-root /run/exec --pidfile /run/docker.pid --iptables=false \
			--ip6tables=false --bridge=none --cgroup-parent "$CTR_GPU_TEST_CGROUP" --add-runtime "nvidia=$CTR_GPU_BUILD/bin/ctr-gpu-runtime" \
			--exec-opt native.cgroupdriver=cgroupfs >"$directory/log" 2>&1 &
		soon docker_answers || exit
		tar -C "$2" -c . | docker import - debian >/dev/null || exit
		start() { docker run --detach --network none --name "$@" debian sleep 600 >/dev/null || fail "$1"; }
		eval "$4" || exit
		docker rm --force $(docker ps --quiet) >/dev/null
	' containers "$directory" "$(image debian)" "$row" "$2"
	expect_status 0
	expect_not "FAILED: "
}

@test "by --gpus, by the runtime, by attach, by the engine's own options; and those that have none" {
	with_docker wsl-hybrid '
		start plain
		start words -e NVIDIA_VISIBLE_DEVICES=all
		start gpus --gpus "\"device=0\""
		start shim --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all
		start both --gpus "\"device=0\""
		ctr-gpu attach both --device 0,1 || fail attach
		start own --device /dev/dxg
		ctr-gpu info --containers --json >/run/list || fail json
		jq -r "$row" /run/list
		[[ $(jq "[.containers[].given[].since] | map(select(. != null)) | map(fromdateiso8601 | . - now | fabs < 600) | all" /run/list) == true ]] ||
			fail since
		ctr-gpu info --containers
		ctr-gpu info --containers --csv && fail csv
		ctr-gpu detach both && docker rm --force gpus shim >/dev/null
		ctr-gpu info --containers --json | jq -r "$row" | sed "s/^/then /"'
	expect_line "gpus|gpus|0 NVIDIA GeForce RTX 4070 Laptop GPU|false"
	expect_line "shim|runtime|0 NVIDIA GeForce RTX 4070 Laptop GPU+1 Intel(R) Iris(R) Xe Graphics|false"
	expect_line "both|gpus+attach|0 NVIDIA GeForce RTX 4070 Laptop GPU+1 Intel(R) Iris(R) Xe Graphics|false"
	expect_line "own|other|0 NVIDIA GeForce RTX 4070 Laptop GPU+1 Intel(R) Iris(R) Xe Graphics|false"
	expect_not "plain|"
	expect_not "words|"
	expect "container both (docker, "
	expect "    by            ctr-gpu attach, since 2"
	expect "    now           it would get the same"
	expect "--containers and --csv exclude each other"
	expect_line "then both|gpus|0 NVIDIA GeForce RTX 4070 Laptop GPU|false"
	expect_not "then gpus"
}

# A store of the same name is another directory after the update; one of another name is left over.
@test "after an update of the driver: which to restart, by info and by doctor" {
	with_docker wsl-nvidia '
		store=$(ls -d /usr/lib/wsl/drivers/nv_dispi*)
		start stays --gpus all
		start gone --gpus all --volume /usr/lib/wsl/lib:/usr/lib/wsl/drivers/nv_old:ro
		ctr-gpu doctor --verbose | tr -s " \n" " " | grep -c "started with another driver: it has /usr/lib/wsl/drivers/nv_old"
		cp -a "$store" /run/new && mount --bind /run/new "$store" || fail "no update"
		start fresh --gpus all
		ctr-gpu info --containers --json | jq -r "$row" || fail json
		ctr-gpu info --containers
		ctr-gpu doctor | tr -s " \n" " "
		docker restart --time 0 stays >/dev/null
		ctr-gpu info --containers --json | jq -r "$row" | sed "s/^/then /"'
	expect_line 1
	expect_line "stays|gpus|0 NVIDIA GeForce RTX 4090|true"
	expect_line "gone|gpus|0 NVIDIA GeForce RTX 4090|true"
	expect_line "fresh|gpus|0 NVIDIA GeForce RTX 4090|false"
	expect_line "    lacks         $(store wsl-nvidia 0)"
	expect_line "    has           /usr/lib/wsl/drivers/nv_old"
	expect_line "    now           restart it: it would get other files or devices"
	expect "container stays (docker) was started with another driver: it lacks $(store wsl-nvidia 0)"
	expect "docker restart stays"
	expect_line "then stays|gpus|0 NVIDIA GeForce RTX 4090|false"
	expect_line "then gone|gpus|0 NVIDIA GeForce RTX 4090|true"
}

# bats test_tags=nightly
@test "a native driver with another libcuda" {
	with_docker native-nvidia '
		start one --gpus all
		start own --device /dev/nvidiactl --device /dev/nvidia0
		ctr-gpu info --containers --json | jq -r "$row"
		library=$(ctr-gpu list | grep "/libcuda.so\.[0-9.]*$" | grep -v "so.1$" | head -n 1)
		cp "$library" /run/new && mount --bind /run/new "$library" || fail "no update"
		ctr-gpu info --containers --json | jq -r "($row), (.containers[].lacks[])"
		umount "$library"'
	expect_line "one|gpus|0 NVIDIA H200|false"
	expect_line "own|other|0 NVIDIA H200|false"
	expect_line "one|gpus|0 NVIDIA H200|true"
	expect "/usr/lib/ctr-gpu/"
}

# With a file system in it that does not answer (tools/stall.c), a container is named, and the others are shown all the same.
@test "a container that does not answer" {
	[[ -c /dev/fuse ]] || skip "needs /dev/fuse"
	with_docker wsl-nvidia '
		mkdir -p /run/volume
		start stuck --volume /run/volume:/volume:rslave
		start well --gpus all
		stall /run/volume dxg || fail stall
		docker exec stuck busybox ln -s /volume/dxg /dev/dxg
		SECONDS=0
		ctr-gpu info --containers --json | jq -r "($row), (.containers[] | .error // empty)"
		ctr-gpu info --containers | cat
		echo "took $((SECONDS < 60))"
		for name in stuck2 stuck3; do
			start "$name" --volume /run/volume:/volume:rslave
			docker exec "$name" busybox ln -s /volume/dxg /dev/dxg
		done
		ctr-gpu assign 0 --exclusive >/run/said 2>&1 && touch /run/got & assign=$!
		ctr-gpu doctor >/run/found & doctor=$!
		ctr-gpu info --containers --json | jq -r ".containers[] | \"then \(.name): \(.error)\""
		wait "$assign" "$doctor"
		[[ ! -e /run/got ]] || fail "a GPU became exclusive"
		cat /run/said; tr -s " \n" " " </run/found
		kill "$(pidof stall)"'
	expect_line "well|gpus|0 NVIDIA GeForce RTX 4090|false"
	expect_line "stuck|||false"
	expect_line "a file system in it does not answer (FUSE, NFS, 9p)"
	expect "    not known:    a file system in it"
	expect_line "took 1"
	expect_line "then stuck3: a file system in it does not answer (FUSE, NFS, 9p)"
	expect_line "then well: others do not answer, and it was not looked at"
	expect_line "then stuck: others do not answer, and it was not looked at"
	expect "which GPUs the container stuck3 has is not known: a file system in it does not answer"
	expect "what 4 of the containers that run have is not known: stuck3 (docker): a file system in it"
}

# of_a_runtime RUNTIME: crun is given the hook at the stage where Podman 5 puts it, with the arguments of the other
of_a_runtime() {
	rm -rf "$BATS_TEST_TMPDIR/bundle"
	bundle debian "$BATS_TEST_TMPDIR/bundle" '.process.args = ["sleep", "600"]'"$([[ $1 != *crun ]] || echo ' | .hooks = {createRuntime: .hooks.prestart}')"
	run sandbox wsl-nvidia bash -c '
		cd "$1" || exit
		jq --arg path "$CTR_GPU_TEST_CGROUP/three" ".linux.cgroupsPath = \$path" config.json >config.new && mv config.new config.json
		memlock "$3" run --detach three </dev/null >/dev/null 2>&1 || exit
		ctr-gpu info --containers --json | jq -r "$2"
		"$3" delete --force three' containers "$BATS_TEST_TMPDIR/bundle" "$row" "$1"
	expect_status 0
	expect_line "three|hook|0 NVIDIA GeForce RTX 4090|false"
}

@test "runc and crun" {
	both of_a_runtime
}

# Which processes there are, the simulated NVML reads in a file. One container has its id in its cgroup's name, the other has not.
@test "top: which containers and which processes of the host use which GPUs" {
	bundle debian "$BATS_TEST_TMPDIR/bundle" '.process.args = ["sleep", "600"] | del(.hooks)'
	run sandbox native-four bash -c '
		foreign="$CTR_GPU_TEST_CGROUP/libpod-$(printf "%064d" 7).scope"
		groups=/sys/fs/cgroup && [[ -e $groups/cgroup.controllers ]] || groups=/sys/fs/cgroup/pids
		cd "$1" || exit
		ctr-gpu top
		for name in three nameless; do
			jq --arg path "$CTR_GPU_TEST_CGROUP/${name/nameless/other}" ".linux.cgroupsPath = \$path" config.json >config.new && mv config.new config.json
			memlock runc run --detach "$name" </dev/null >/dev/null 2>&1 || exit
			memlock runc exec --detach --pid-file "/run/$name" "$name" sleep 601 </dev/null >/dev/null 2>&1 || exit
		done
		mkdir -p "$groups/$foreign" || exit
		sleep 602 & host=$!
		name=$(printf "/run/a\033[2Jb") && cp "$(type -P sleep)" "$name"
		"$name" 603 & other=$!
		printf "%s" "$other" >"$groups/$foreign/cgroup.procs" || exit
		# Each has become its program, whoever began it.
		runs() { [[ $(<"/proc/$1/comm") != @(runc*|bash) ]]; }
		for process in "$(jq .init_process_pid /run/runc/three/state.json)" "$(</run/three)" "$(</run/nameless)" "$host" "$other"; do
			soon runs "$process" || exit
		done
		printf "%s\n" "0 -1 -1 $(jq .init_process_pid /run/runc/three/state.json) 1048576 compute 40" \
			"0 -1 -1 $(</run/three) 2097152 compute -1" "0 -1 -1 $(</run/three) 2097152 graphics -1" \
			"2 -1 -1 $(</run/nameless) 3145728 graphics 7" "1 -1 -1 $host 4194304 compute 4000" "1 -1 -1 $other -1 compute 0" \
			"1 -1 -1 4194303 5 compute 1" "3 refused" >/run/nvidia-processes
		ctr-gpu top --json >/run/top || echo "FAILED: json"
		jq -r ".processes[] | [.gpu, .container.engine, .container.id, .memory, (.gpuTime | if . == null then . else . * 100 | round end),
			.compute, .graphics, .where, .program] |
			map(tostring) | join(\"|\")" /run/top
		jq -r ".gpus[] | [.gpu, .known, .uuid] | map(tostring) | join(\"|\")" /run/top
		ctr-gpu top | sed "s/  */ /g; s/ [0-9][0-9]* / PID /2"
		ctr-gpu top | grep -c "$(printf "\033")"
		(soon grep -aq "three.*sleep" /run/screen; printf q; sleep 1) |
			timeout 120 script -qfec "ctr-gpu top; echo status=\$?" /run/screen >/dev/null
		grep -aq "three.*sleep" /run/screen && grep -aq "status=0" /run/screen && echo shown
		kill "$host" "$other"; wait
		rmdir "$groups/$foreign"
		runc delete --force three; runc delete --force nameless' containers "$BATS_TEST_TMPDIR/bundle"
	expect_status 0
	expect_not "FAILED: "
	expect_line "No process uses a GPU."
	expect_line "0|runc|three|1048576|40|true|false|container|sleep"
	expect_line "0|runc|three|2097152|null|true|true|container|sleep"
	expect_line "2|runc|nameless|3145728|7|false|true|container|sleep"
	expect_line "1|null|null|4194304|null|true|false|host|sleep"
	expect "1|null|$(printf '%064d' 7)|null|0|true|false|container|"
	expect " a?[2Jb"
	expect_line "1|null|null|5|1|true|false|unknown|null"
	expect_line "0|true|GPU-b703df58-2273-35fb-29be-3f6c49b83a95"
	expect_line "3|false|GPU-b703df58-2273-35fb-29be-3f6c49b83a98"
	expect_line "3 NVIDIA H200: its driver does not tell which processes use it."
	expect_line 0
	expect_line shown
}

@test "top: parts of GPUs; GPU-PV, where the driver does not tell; an NVML that is too old" {
	run sandbox native-mig bash -c 'echo "1 2 1 $$ 1048576 compute -1" >/run/nvidia-processes
		ctr-gpu top --json | jq -r ".processes[] | [.gpu, .uuid, .gpuTime, .where] | map(tostring) | join(\"|\")"
		cp "$CTR_GPU_BUILD/test/lib/works.so" /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.04 || exit 7
		ctr-gpu top && exit 8; ctr-gpu top --json | jq -r .error.id'
	expect_status 0
	expect "|MIG-GPU-b703df58-2273-35fb-29be-3f6c49b83a96/2/1|null|host"
	expect "it has no nvmlDeviceGetComputeRunningProcesses_v3"
	expect_line E_DRIVER_LIBRARY
	run sandbox wsl-nvidia bash -c 'ctr-gpu top; ctr-gpu top --json | jq -c "[.gpus[].known], .processes"'
	expect_status 0
	expect_line "0 NVIDIA GeForce RTX 4090: its driver does not tell which processes use it."
	expect "ctr-gpu info --containers"
	expect_line "[false]"
	expect_line "[]"
}

# Others have the terminal meanwhile, who read what is typed.
@test "top: a terminal is as it was while it is stopped, and when it has ended" {
	run sandbox wsl-nvidia python3 - <<-'END'
		import fcntl, os, pty, signal, termios, time

		def quiet(fd):
		    return not termios.tcgetattr(fd)[3] & (termios.ECHO | termios.ICANON)
		def soon(said, what):
		    for _ in range(600):
		        if what():
		            return print(said)
		        time.sleep(0.1)
		def child():
		    pid = os.fork()
		    if pid == 0:
		        os.setsid()
		        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
		        for fd in 0, 1, 2:
		            os.dup2(slave, fd)
		        os.execvp("ctr-gpu", ["ctr-gpu", "top"])
		    soon("begun", lambda: quiet(slave))
		    return pid

		signal.alarm(300)
		master, slave = pty.openpty()
		pid = child()
		os.kill(pid, signal.SIGTSTP)
		print("stopped", os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]), "quiet", quiet(slave))
		os.kill(pid, signal.SIGCONT)
		soon("continued", lambda: quiet(slave))
		os.write(master, b"q")
		print("ended", os.waitpid(pid, 0)[1], "quiet", quiet(slave))
		for number in signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP:
		    pid = child()
		    os.kill(pid, number)
		    print(number.name, os.waitpid(pid, 0)[1], "quiet", quiet(slave))
	END
	expect_status 0
	expect_line "stopped True quiet False"
	expect_line continued
	expect_line "ended 0 quiet False"
	for number in INT TERM QUIT HUP; do expect_line "SIG$number 0 quiet False"; done
}

of_podman() {
	run "$@" bash -c '
		# Without root it has no cgroup.
		[[ -z $memlock ]] || options="--cgroup-parent $CTR_GPU_TEST_CGROUP"
		$memlock podman run --runtime crun --detach --name given -e NVIDIA_VISIBLE_DEVICES=all $options debian sleep 600 >/dev/null || exit
		$memlock podman run --runtime crun --detach --name plain $options debian sleep 600 >/dev/null || exit
		ctr-gpu info --containers --json | jq -r "$row"
		ctr-gpu attach plain >/dev/null 2>&1
		ctr-gpu info --containers --json | jq -r "$row"
		podman rm --force given plain >/dev/null 2>&1'
	expect_status 0
	expect_line "given|hook|0 NVIDIA GeForce RTX 4090|false"
	expect_line "plain|attach|0 NVIDIA GeForce RTX 4090|false"
	[[ $(grep -c '^given' <<<"$output") -eq 2 && $(grep -c '^plain' <<<"$output") -eq 1 ]]
}

@test "podman, with root and without" {
	require_program podman
	require_program newuidmap
	podman_setup
	export row
	directory=$(engine_directory podman)
	of_podman sandbox wsl-nvidia env memlock=memlock CONTAINERS_CONF="$directory/containers.conf" \
		CONTAINERS_STORAGE_CONF="$directory/storage.conf"
	of_podman rootless wsl-nvidia env row="$row"
}
