#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=alone
#
# File systems that do not answer (tools/stall.c), in a volume, in the root filesystem, and as /usr/lib/wsl. Whoever waits for one
# can not even be killed, so what is asked for here is an error in time, and that nothing stays.
# Alone: deadlines are measured.

load engines

setup_file() {
	require_root
	require_program runc
	require_program crun
	[[ -c /dev/fuse ]] || skip "needs /dev/fuse"
	image debian >/dev/null
}

# stalled SCRIPT [ARGUMENT…]: on a host whose programs have two seconds. With a second for the child to end and what an engine
# needs on a busy machine, more than a minute is for ever.
stalled() {
	local script=$1
	shift
	run sandbox wsl-nvidia timeout --kill-after=1 60 bash -c '
		mkdir -p /run/stalled /etc/ctr-gpu && echo "{\"deadline\": 2}" >/etc/ctr-gpu/config.json || exit
		stall() { command stall /run/stalled "$1" && mount --rbind /run/stalled "$2"; }
		'"$script" stalled "$@"
}

# What a container's start on FILESYSTEM ends with; crun shows no message of hooks.
start() {
	local runtime=$1 doing=$2 script=$3 filter=$4

	rm -rf "$BATS_TEST_TMPDIR/bundle"
	bundle debian "$BATS_TEST_TMPDIR/bundle" "$filter"
	stalled "cd \"\$1\" && $script"' || exit 99
		memlock "$2" --root /run/runtime run container
		echo "status $?"
		"$2" --root /run/runtime list --quiet
		grep -c "ctr-gpu" /proc/mounts' "$BATS_TEST_TMPDIR/bundle" "$runtime"
	expect_no_line "status 0"
	expect "status "
	expect_no_line "container"
	[[ $runtime == crun ]] || expect "[ETIMEDOUT] gave up after 2 s while $doing"
}

# bats test_tags=kernel
@test "a volume where the driver goes" {
	for runtime in runc crun; do
		start "$runtime" "mounting /usr/lib/wsl/lib in the container" 'mkdir /run/volume && stall lib /run/volume' \
			'.mounts += [{destination: "/usr/lib/wsl", type: "bind", source: "/run/volume", options: ["bind", "rw"]}]'
	done
}

@test "the container's root filesystem" {
	for runtime in runc crun; do
		start "$runtime" "writing the loader's files" 'stall ld.so.cache rootfs' '.mounts |= map(select(.type != "cgroup"))'
	done
}

@test "the host's drivers" {
	for runtime in runc crun; do
		start "$runtime" "looking for GPUs and drivers on this host" "stall $(basename "$(store wsl-nvidia 0)") /usr/lib/wsl/drivers" .
	done
}

# bats test_tags=kernel
@test "a directory that \`configure\` is given, and what is taken back there" {
	stalled 'stall ld.so.cache /mnt && mount -t tmpfs tmpfs /mnt/dev && touch /mnt/dev/dxg || exit 99
		sort /proc/self/mountinfo >/run/before
		ctr-gpu configure /mnt
		echo "status $?"
		sort /proc/self/mountinfo | diff /run/before -
		ps -C ctr-gpu -o stat= | grep -q D && echo "left behind"
		# What still waits is ended by the answer, and does nothing more.
		pkill --exact stall
		while ps -C ctr-gpu -o stat= | grep -q D; do sleep 0.1; done
		sort /proc/self/mountinfo | diff /run/before - && echo "all gone"'
	expect_line "ctr-gpu: [ETIMEDOUT] gave up after 2 s while writing the loader's files in the container's /etc"
	expect_line "    Nothing of what was done stays in the container."
	expect_line "status 1"
	expect_line "left behind"
	expect_line "all gone"
	expect_not "/mnt"
}

@test "an engine that reads to the end what a hook says" {
	stalled 'stall lib /usr/lib/wsl && mkdir -p /run/bundle/rootfs &&
		echo "{\"root\": {\"path\": \"rootfs\"}, \"process\": {\"env\": [\"NVIDIA_VISIBLE_DEVICES=all\"]}}" >/run/bundle/config.json || exit 99
		unshare --mount sleep 60 &
		state=$(printf "{\"ociVersion\": \"1.0.2\", \"id\": \"t\", \"status\": \"creating\", \"pid\": %d, \"bundle\": \"/run/bundle\"}" $!)
		ctr-gpu-hook prestart <<<"$state" 2>&1 | cat
		ctr-gpu-runtime create --bundle /run/bundle x 2>&1 | cat
		nvidia-cdi-hook create-symlinks --link a::/b <<<"$state" 2>&1 | cat
		echo "the end"'
	# No store has a library there, so libdxcore is looked for.
	expect_line "ctr-gpu-hook: [ETIMEDOUT] gave up after 2 s while looking for GPUs and drivers on this host"
	expect_line "ctr-gpu-runtime: [ETIMEDOUT] gave up after 2 s while looking for GPUs and drivers on this host"
	expect_line "the end"
}

# bats test_tags=kernel
@test "SIGTERM ends it at once, and takes back what was done" {
	stalled 'stall ld.so.cache /mnt && mount -t tmpfs tmpfs /mnt/dev && touch /mnt/dev/dxg || exit 99
		sort /proc/self/mountinfo >/run/before
		echo "{\"deadline\": 600}" >/etc/ctr-gpu/config.json
		ctr-gpu configure /mnt &
		until grep -q " /mnt/usr" /proc/self/mounts; do sleep 0.1; done
		kill "$!"
		wait "$!"
		echo "status $?"
		sort /proc/self/mountinfo | diff /run/before -'
	expect "ctr-gpu: [EINTR] stopped by signal 15 (Terminated)"
	expect_line "status 1"
	expect_not "/mnt"
}

# The container mounts such a file system itself, say by FUSE, and has it answer for as long as that is of use.
@test "a container that has a file of such a file system open does not keep its GPU from \`detach --force\`" {
	rm -rf "$BATS_TEST_TMPDIR/bundle"
	bundle debian "$BATS_TEST_TMPDIR/bundle" 'del(.hooks) | .process.args = ["sh", "-c", "exec 3</mnt && exec sleep 600"] |
		.mounts += [{destination: "/mnt", type: "bind", source: "/run/volume", options: ["bind", "rw"]}]'
	stalled 'cd "$1" && mkdir /run/volume && stall none /run/volume || exit 99
		memlock runc --root /run/runtime run --detach container </dev/null >/run/log 2>&1 || { cat /run/log; exit 99; }
		pid=$(runc --root /run/runtime state container | jq .pid)
		until [[ -e /proc/$pid/fd/3 && $(<"/proc/$pid/comm") == sleep ]]; do sleep 0.05; done
		ctr-gpu attach "$pid" || exit 99
		pkill --exact --signal STOP stall
		ctr-gpu detach --force "$pid"
		echo "status $?"
		grep -c "/usr/lib/wsl" "/proc/$pid/mounts"
		pkill --exact --signal CONT stall
		runc --root /run/runtime delete --force container' "$BATS_TEST_TMPDIR/bundle"
	expect_line "status 0"
	expect_line 0
}

# It mounts one over what was given.
@test "a container in which a file system does not answer loses its GPU by \`detach\`, which says that some of it stays" {
	rm -rf "$BATS_TEST_TMPDIR/bundle"
	bundle debian "$BATS_TEST_TMPDIR/bundle" 'del(.hooks) | .process.args = ["sleep", "600"] |
		.mounts += [{destination: "/mnt", type: "bind", source: "/run/volume", options: ["bind", "rw"]}]'
	stalled 'cd "$1" && mkdir /run/volume && stall none /run/volume || exit 99
		memlock runc --root /run/runtime run --detach container </dev/null >/run/log 2>&1 || { cat /run/log; exit 99; }
		pid=$(runc --root /run/runtime state container | jq .pid)
		ctr-gpu attach "$pid" || exit 99
		nsenter --target "$pid" --mount busybox mount --bind /mnt /etc || exit 99
		pkill --exact --signal STOP stall
		ctr-gpu detach "$pid"
		echo "status $?"
		pkill --exact --signal CONT stall
		nsenter --target "$pid" --mount busybox umount /etc
		ctr-gpu detach "$pid"
		echo "status $?"
		runc --root /run/runtime delete --force container' "$BATS_TEST_TMPDIR/bundle"
	expect "[ETIMEDOUT] gave up after 2 s while taking back what was given"
	expect_line "    What has not been taken back stays; try again."
	expect_not "Nothing of what was done"
	expect_line "status 1"
	expect_line "status 0"
}

@test "Docker: the start ends in time, and the container can be removed" {
	require_program dockerd
	docker_start wsl-nvidia
	docker_image debian
	on_docker() { nsenter --mount --pid --target "$(dockerd_pid)" -- "$@"; }
	on_docker bash -c 'mkdir -p /run/stalled /etc/ctr-gpu && echo "{\"deadline\": 2}" >/etc/ctr-gpu/config.json &&
		"$0" /run/stalled lib' "$tools_directory/stall" 3>&-
	SECONDS=0
	run timeout 60 docker run --name stalled --gpus all --volume /run/stalled:/usr/lib/wsl debian true
	expect "[ETIMEDOUT] gave up after 2 s while mounting /usr/lib/wsl/lib in the container"
	run timeout 30 docker rm --force stalled
	expect_status 0
	[[ $SECONDS -lt 60 ]]
	run docker run --rm debian sh -c "echo others start"
	expect_line "others start"
	on_docker pkill --exact stall
	docker_stop
}

# phase NAME COMMAND…: capabilities, permitted and effective, and added filters of each process of a command that waits
phases='
	mkdir -p /run/bundle/rootfs && echo "{\"deadline\": 600}" >/etc/ctr-gpu/config.json &&
		echo "{\"root\": {\"path\": \"rootfs\"}, \"process\": {\"env\": [\"NVIDIA_VISIBLE_DEVICES=all\"]}}" >/run/bundle/config.json || exit 99
	in_status() { sed -n "s/^$2:\t*//p" "/proc/$1/status"; }
	filters=$(in_status self Seccomp_filters)
	# waits NAME: its processes wait, and not for a file system that has yet to answer
	waits() {
		local pid
		for pid in $(pgrep --exact "$1|stall"); do
			[[ $(<"/proc/$pid/syscall") != running ]] || return
		done
	}
	phase() {
		local name=$1 pid
		shift
		unshare --mount sleep 60 &
		printf "{\"ociVersion\": \"1.0.2\", \"id\": \"t\", \"status\": \"creating\", \"pid\": %d, \"bundle\": \"/run/bundle\"}" $! >/run/state
		until [[ $(<"/proc/$!/comm") == sleep ]]; do sleep 0.05; done
		"$@" </run/state >/dev/null 2>&1 &
		until [[ $(pgrep --count --exact "$name") -eq 2 ]] && waits "$name" && sleep 0.2 && waits "$name"; do sleep 0.1; done
		for pid in $(pgrep --exact "$name"); do
			echo "$1: $(in_status "$pid" CapPrm) $(in_status "$pid" CapEff) +$(($(in_status "$pid" Seccomp_filters) - filters))"
		done
		pkill --exact stall
		wait "$!"
		umount -l /run/stalled
	}'

# expect_phase COUNT LINE: with SYS_RESOURCE, or not where root does not have it
expect_phase() {
	[[ $(grep -cE "^${2//4012c/40[01]2c} \+${3}$" <<<"$output") -eq $1 ]] || { echo "not $1 times: $2 +$3"; echo "$output"; return 1; }
}

# bats test_tags=kernel
@test "what the processes of the hook may do while they look at the host" {
	stalled "$phases"'
		stall lib /usr/lib/wsl && phase ctr-gpu-hook ctr-gpu-hook prestart'
	expect_phase 2 "ctr-gpu-hook: 00000004012c10e2 00000000000000e2" 0
}

# With DAC_OVERRIDE, SETUID, SETGID: SYS_ADMIN, SYS_CHROOT and SYS_PTRACE, or CHOWN and FOWNER, or both, and a filter of system calls.
@test "what the processes of each program may do while they act on a container" {
	stalled "$phases"'
		on_container() { stall usr /run/bundle/rootfs && phase "$@"; umount -l /run/bundle/rootfs; }
		on_container ctr-gpu-hook ctr-gpu-hook prestart
		on_container nvidia-cdi-hook nvidia-cdi-hook create-symlinks --link a::/usr/b
		known_runtime runc && echo "{\"deadline\": 600, \"runtimes\": [\"/run/known/runc\"]}" >/etc/ctr-gpu/config.json
		on_container ctr-gpu-runtime ctr-gpu-runtime create --bundle /run/bundle x
		on_container ctr-gpu ctr-gpu configure /run/bundle/rootfs
		on_container nvidia-containe nvidia-container-cli configure --device=all /run/bundle/rootfs'
	for program in ctr-gpu-hook nvidia-cdi-hook nvidia-container-cli; do
		expect_phase 1 "$program: 00000004012c10e2 00000000000000e2" 0
		expect_phase 1 "$program: 00000004012c10c2 00000000002c00c2" 1
	done
	expect_phase 1 "ctr-gpu-runtime: 00000000000000cb 00000000000000cb" 1
	expect_phase 1 "ctr-gpu: 00000004012c10cb 00000000002c00cb" 1
}
