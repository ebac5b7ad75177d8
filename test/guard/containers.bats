#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# The guard with real engines, in a guest (test/guard/run): a choice of GPU that a container asks for as users do, on a machine with
# two adapters of one vendor and one store. The hook loads the guard itself.

load guard

# Under systemd, containers are units of its own.
cgroup_driver() {
	[[ -d /run/systemd/system ]] && echo systemd || echo cgroupfs
}

start_engine() {
	# By the second, `ctr-gpu attach` finds a container by its name.
	PATH=$CTR_GPU_BUILD/bin:$PATH dockerd --host "$DOCKER_HOST" --host unix:///run/docker.sock --pidfile "$BATS_FILE_TMPDIR/pid" --iptables=false --ip6tables=false \
		--exec-opt "native.cgroupdriver=$(cgroup_driver)" --bridge=none >>"$BATS_FILE_TMPDIR/log" 2>&1 3>&- &
	# Nobody is to be told that it was killed.
	disown
}

await_engine() {
	for _ in {1..600}; do
		! docker version >/dev/null 2>&1 || break
		sleep 0.2
	done
}

setup_file() {
	guest_setup
	docker_use docker
	start_engine
	image_copy debian "$BATS_FILE_TMPDIR/rootfs"
	cp "$clients"/{enumerate,guess,hide,race} "$BATS_FILE_TMPDIR/rootfs/usr/bin/"
	await_engine
	tar -C "$BATS_FILE_TMPDIR/rootfs" -c . | docker import - clients >/dev/null || tail -n 20 "$BATS_FILE_TMPDIR/log"
}

teardown_file() {
	docker_use docker
	docker_remove_containers
	kill "$(<"$BATS_FILE_TMPDIR/pid")"
}

setup() {
	docker_use docker
}

teardown() {
	docker_remove_containers
	runc --root /run/runtime list --quiet | while read -r container; do
		runc --root /run/runtime delete --force "$container"
	done
}

# grade WORD: how the machine's configuration has a choice held
grade() {
	mkdir -p /etc/ctr-gpu
	printf '{"choice": "%s"}\n' "$1" >/etc/ctr-gpu/config.json
}

# container NAME DEVICES [JQ-FILTER]: starts one that sleeps
container() {
	local directory=$BATS_TEST_TMPDIR/$1

	bundle debian "$directory" "$(visible "$2") | .process.args = [\"/bin/sleep\", \"600\"] | .linux.cgroupsPath = \"/$1\" | ${3:-.}"
	cp "$clients"/{enumerate,guess,race} "$directory/rootfs/usr/bin/"
	runc --root /run/runtime run --detach --bundle "$directory" "$1" >"$directory/log" 2>&1 </dev/null 3>&- || {
		cat "$directory/log"
		return 1
	}
}

# holds_only RUN… -- SEEN HIDDEN: what programs in a container, which are started so, see and get
holds_only() {
	local run=()

	while [[ $1 != -- ]]; do
		run+=("$1")
		shift
	done
	holds "${run[@]}" enumerate "$2" -- "$3"
	holds "${run[@]}" enumerate --int80 "$2" -- "$3"
	holds "${run[@]}" guess "$2" -- "$3"
}

# bats test_tags=boot
@test "the guest is what it was booted for" {
	docker_use docker
	[[ $(docker info --format '{{.CgroupDriver}}') == "$(cgroup_driver)" ]]
	[[ $(docker info --format '{{.CgroupVersion}}') == "$(cgroup_version)" ]]
	[[ -z ${CTR_GPU_GUARD_CGROUP-} || $(cgroup_version) == "$CTR_GPU_GUARD_CGROUP" ]]
	[[ $(cgroup_version) == 2 || $(</proc/self/cgroup) != *0::/* ]]
}

# bats test_tags=boot
@test "runc: two containers, each with one of two adapters, are each other's mirror image; a third has both" {
	host one-store
	grade guard
	container first 0
	container second 1
	container third all
	holds_only runc --root /run/runtime exec first -- 1:a1 1:a2
	holds_only runc --root /run/runtime exec second -- 1:a2 1:a1
	holds runc --root /run/runtime exec third enumerate 1:a1 1:a2
	holds "$clients/enumerate" 1:a1 1:a2
	run ctr-gpu-guard status
	expect "LUID-$(luid 1:a1)"
	expect "LUID-$(luid 1:a2)"
	runc --root /run/runtime delete --force first
	run ctr-gpu-guard status
	expect_not "LUID-$(luid 1:a1)"
	holds_only runc --root /run/runtime exec second -- 1:a2 1:a1
}

# bats test_tags=boot
@test "runc: the same name again with another choice; a privileged container; racers" {
	host one-store
	grade guard
	container again 0
	runc --root /run/runtime delete --force again
	rm -rf "$BATS_TEST_TMPDIR/again"
	container again 1
	holds_only runc --root /run/runtime exec again -- 1:a2 1:a1
	container privileged 1 '.process.capabilities |= map_values(["CAP_SYS_ADMIN", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE"])
		| .linux.resources.devices = [{"allow": true, "access": "rwm"}] | .linux.namespaces |= map(select(.type != "cgroup"))'
	holds_only runc --root /run/runtime exec privileged -- 1:a2 1:a1
	mapfile -t more < <(race_options)
	echo 200 >"$module/window"
	holds runc --root /run/runtime exec again race "${more[@]}" handle 6 1:a2 -- 1:a1
	[[ $(<"$module/abandoned") == 0 ]]
}

# nest NAME: puts runc and a container, which has a guarded container's device, into the root directory of that one
nest() {
	local root=$BATS_TEST_TMPDIR/$1/rootfs inner=$BATS_TEST_TMPDIR/$1/rootfs/inner library

	cp "$(command -v runc)" "$root/usr/bin/runc"
	for library in $(ldd "$(command -v runc)" | grep -o '/[^ ]*'); do
		cp -nL --parents "$library" "$root/"
	done
	bundle debian "$inner" '.process.args = ["enumerate", "1:a2", "--", "1:a1"] | .linux.cgroupsPath = "/inner" | del(.hooks)
		| .linux.devices = [{"path": "/dev/dxg", "type": "c", "major": '$((0x$(stat -c %t /dev/dxg)))', "minor": '$((0x$(stat -c %T /dev/dxg)))'}]
		| .linux.resources = {"devices": [{"allow": true, "access": "rwm"}]} | .mounts |= map(select(.type != "cgroup"))'
	cp "$clients"/{enumerate,guess} "$inner/rootfs/usr/bin/"
}

# bats test_tags=boot
@test "a container that a guarded container makes sees no more than that" {
	host one-store
	grade guard
	# Who may make containers may write its cgroups, and so that is mounted for it alone.
	container outer 1 '.process.capabilities |= map_values(["CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETFCAP", "CAP_MKNOD",
			"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SYS_CHROOT", "CAP_SYS_RESOURCE", "CAP_BPF",
			"CAP_PERFMON", "CAP_NET_ADMIN", "CAP_SYS_PTRACE", "CAP_AUDIT_WRITE", "CAP_NET_BIND_SERVICE"])
		| .process.noNewPrivileges = false | .linux.maskedPaths = [] | .linux.readonlyPaths = []
		| .linux.resources.devices = [{"allow": true, "access": "rwm"}]
		| .mounts |= map(if .type == "cgroup" then .options |= map(select(. != "ro")) else . end)'
	nest outer
	holds_only runc --root /run/runtime exec outer -- 1:a2 1:a1
	holds runc --root /run/runtime exec outer runc --root /run/inner run --bundle /inner inner
	sed -i 's/"enumerate"/"guess"/' "$BATS_TEST_TMPDIR/outer/rootfs/inner/config.json"
	holds runc --root /run/runtime exec outer runc --root /run/inner run --bundle /inner inner2
}

@test "strict: a choice is refused where it cannot be held, and says why; a container that asks for all starts" {
	host one-store untyped
	grade strict
	run container refused 1
	[[ $status -ne 0 ]]
	expect "E_GUARD"
	expect "types"
	container all all
	holds runc --root /run/runtime exec all enumerate 1:a1 1:a2
}

# /sys/kernel/debug is mounted by race_options alone.
@test "a kernel that preempts itself: strict refuses it, the other grades say what holds; one that does not is none of this" {
	local more

	host one-store
	! mountpoint -q /sys/kernel/debug || umount /sys/kernel/debug
	grade strict
	run container refused 1
	echo "$output"
	mountpoint -q /sys/kernel/debug && return 1
	mapfile -t more < <(race_options)
	if [[ ${#more[@]} -eq 0 ]]; then
		expect_status 0
		run ctr-gpu-guard check
		expect_status 0
		expect_not "preempts"
		run ctr-gpu-guard status
		expect_not "weakness"
		return
	fi
	[[ $status -ne 0 ]]
	expect "E_GUARD"
	expect "the kernel preempts itself"
	expect "preempt=voluntary"
	run ctr-gpu doctor
	expect "a container that chooses a GPU does not start: the kernel preempts"
	grade auto
	run ctr-gpu configure --dry-run --device 1 "$BATS_FILE_TMPDIR/rootfs"
	expect "but the kernel preempts itself"
	container weak 1
	holds_only runc --root /run/runtime exec weak -- 1:a2 1:a1
	run ctr-gpu-guard check
	expect_status 0
	expect "preempts itself"
	run ctr-gpu-guard status --json
	[[ $(jq -r .weakness <<<"$output") == *"preempts itself"* ]]
}

@test "auto: the hardest grade that works, and the plan says which" {
	host one-store
	grade auto
	run ctr-gpu list --device 1
	expect_status 0
	run ctr-gpu configure --dry-run --device 1 "$BATS_FILE_TMPDIR/rootfs"
	expect "choice"
	container chosen 1
	holds_only runc --root /run/runtime exec chosen -- 1:a2 1:a1
	runc --root /run/runtime delete --force chosen
	host one-store untyped
	container soft 1
	# Nothing holds it: programs that ask the driver find both.
	holds runc --root /run/runtime exec soft enumerate 1:a1 1:a2
}

# bats test_tags=boot
@test "docker run --gpus '\"device=1\"': one adapter, and the mirror image beside it" {
	host one-store
	grade guard
	first=$(docker run --detach --gpus '"device=0"' clients sleep 100000)
	second=$(docker run --detach --gpus '"device=1"' clients sleep 100000)
	holds_only docker exec "$first" -- 1:a1 1:a2
	holds_only docker exec "$second" -- 1:a2 1:a1
	holds docker run --rm --gpus '"device=1"' clients guess 1:a2 -- 1:a1
	holds docker run --rm --gpus all clients enumerate 1:a1 1:a2
	docker restart --time 0 "$second"
	holds_only docker exec "$second" -- 1:a2 1:a1
	if [[ $(cgroup_driver) == systemd ]]; then
		systemctl daemon-reload
		holds_only docker exec "$second" -- 1:a2 1:a1
		grep -q "docker-$first.scope" "/proc/$(docker inspect --format '{{.State.Pid}}' "$first")/cgroup"
	fi
	docker rm --force "$first" "$second"
	run ctr-gpu-guard status
	expect_not "LUID-"
}

# refresh: ctr-gpu-refresh.service, as a boot starts it
refresh() {
	local units=$BATS_TEST_DIRNAME/../../pkg/systemd unit=/run/systemd/system/ctr-gpu-refresh.service

	cp "$units/ctr-gpu-refresh.service" "$unit"
	mkdir -p "$unit.d"
	# The unit sees nothing of /tmp and /var/tmp, where a build may be.
	printf '[Service]\nExecStart=\nExecStart=%s/bin/ctr-gpu refresh\nBindReadOnlyPaths=%s\n' "$CTR_GPU_BUILD" "$CTR_GPU_BUILD" >"$unit.d/build.conf"
	systemctl daemon-reload
	systemctl reset-failed ctr-gpu-refresh.service 2>/dev/null || true
	systemctl start ctr-gpu-refresh.service || {
		journalctl --no-pager -u ctr-gpu-refresh.service
		return 1
	}
}

# bats test_tags=boot
@test "the service of a boot loads the guard, shut off as it is, and what another version left is replaced" {
	local container

	[[ -d /run/systemd/system ]] || skip "the first process is not systemd"
	host one-store
	grade guard
	rm -rf /run/ctr-gpu /etc/cdi
	refresh
	run ctr-gpu-guard status --json
	[[ $(jq -c '[.loaded, .otherVersion]' <<<"$output") == '[true,false]' ]]
	[[ ! -e /run/ctr-gpu/guard ]]
	ls /etc/cdi/*.json
	container=$(docker run --detach --gpus '"device=1"' clients sleep 100000)
	holds_only docker exec "$container" -- 1:a2 1:a1
	ln -sfn other /sys/fs/bpf/ctr-gpu/version
	[[ $(ctr-gpu-guard status --json | jq .otherVersion) == true ]]
	refresh
	[[ $(ctr-gpu-guard status --json | jq .otherVersion) == false ]]
	holds_only docker exec "$container" -- 1:a2 1:a1
}

@test "an engine that is killed leaves a container its choice, and takes it away when it is back" {
	local container

	host one-store
	grade guard
	container=$(docker run --detach --gpus '"device=1"' clients sleep 100000)
	kill -KILL "$(<"$BATS_FILE_TMPDIR/pid")"
	holds_only runc --root /run/docker/runtime-runc/moby exec "$container" -- 1:a2 1:a1
	rm -f "$BATS_FILE_TMPDIR/pid"
	start_engine
	await_engine
	docker rm --force "$container"
	run ctr-gpu-guard status
	expect "loaded      yes"
	expect_not "LUID-"
	holds docker run --rm --gpus '"device=0"' clients enumerate 1:a1 -- 1:a2
}

@test "a hook that is killed after it has written the choice leaves none behind" {
	local directory=$BATS_TEST_TMPDIR/killed hook=$BATS_TEST_TMPDIR/hook

	host one-store
	grade guard
	ctr-gpu-guard load
	# The first mount comes later.
	printf '#!/bin/bash\nexec strace -f -qq -o %s/calls -e trace=bpf,move_mount -e inject=move_mount:signal=KILL %s prestart\n' \
		"$BATS_TEST_TMPDIR" "$CTR_GPU_BUILD/bin/ctr-gpu-hook" >"$hook"
	chmod +x "$hook"
	bundle debian "$directory" "$(visible 1) | .linux.cgroupsPath = \"/killed\" | .hooks.prestart |= map(.path = \"$hook\")"
	run runc --root /run/runtime run --bundle "$directory" killed
	[[ $status -ne 0 ]]
	grep -q BPF_MAP_UPDATE_ELEM "$BATS_TEST_TMPDIR/calls"
	grep -q 'killed by SIGKILL' "$BATS_TEST_TMPDIR/calls"
	run ctr-gpu-guard status --json
	[[ $(jq -c '[.choices, .idle]' <<<"$output") == '[[],true]' ]]
}

# choices: what containers may use, an item each: the guard's map
choices() {
	ctr-gpu-guard status --json | jq -c '[.choices[].luids]'
}

# bats test_tags=boot
@test "attach: a running container gets one of two adapters, and the guard holds it; detach takes it back" {
	local container

	host one-store
	grade guard
	container=$(docker run --detach --name attached clients sleep 100000)
	run docker exec "$container" stat /dev/dxg
	expect_status 1
	ctr-gpu attach attached --device 1
	holds_only docker exec "$container" -- 1:a2 1:a1
	[[ $(choices) == "[[\"LUID-$(luid 1:a2)\"]]" ]]
	ctr-gpu detach attached
	run docker exec "$container" enumerate 1:a2
	[[ $status -ne 0 ]]
	run ctr-gpu-guard status
	expect " none"
	# All of them, after a choice; and what was before.
	ctr-gpu attach attached --device 0
	holds_only docker exec "$container" -- 1:a1 1:a2
	ctr-gpu attach attached
	holds docker exec "$container" enumerate 1:a1 1:a2
	ctr-gpu detach attached
	[[ $(choices) == "[[]]" ]]
	docker rm --force attached
	[[ $(choices) == "[]" ]]
	# One that has the other adapter by its start keeps it, and that alone.
	container=$(docker run --detach --gpus '"device=0"' clients sleep 100000)
	holds_only docker exec "$container" -- 1:a1 1:a2
	ctr-gpu attach "$container" --device 0,1
	holds docker exec "$container" enumerate 1:a1 1:a2
	ctr-gpu detach "$container"
	holds_only docker exec "$container" -- 1:a1 1:a2
	docker rm --force "$container"
	[[ $(choices) == "[]" ]]
}

# bats test_tags=boot
@test "detach: a device that a program has hidden reaches no adapter afterwards" {
	local container

	host one-store
	grade guard
	container=$(docker run --detach clients sleep 100000)
	ctr-gpu attach "$container" --device 1
	docker exec --detach "$container" sh -c 'hide /tmp/go 1:a2 -- 1:a1 >/tmp/out 2>&1; echo "ended $?" >>/tmp/out'
	soon docker exec "$container" grep -q hidden /tmp/out
	ctr-gpu detach "$container"
	docker exec "$container" touch /tmp/go
	soon docker exec "$container" grep -q ended /tmp/out
	run docker exec "$container" cat /tmp/out
	echo "$output"
	expect_line "ended 0"
	expect_line "ok - the adapter can be used"
}

# What works in the container asks for the other adapter, too, in each instant of an attach and of a detach.
@test "attach and detach two hundred times, with the guard, on a container that works" {
	local container process i

	host one-store
	grade guard
	container=$(docker run --detach clients sleep 100000)
	ctr-gpu attach "$container" --device 1
	ctr-gpu detach "$container"
	process=$(docker inspect --format '{{.State.Pid}}' "$container")
	docker diff "$container" | sort >"$BATS_TEST_TMPDIR/layer"
	cut -d " " -f 3- "/proc/$process/mountinfo" >"$BATS_TEST_TMPDIR/mounts"
	docker exec --detach "$container" sh -c 'while [ ! -e /tmp/stop ]; do
		guess 1:a2 -- 1:a1
		enumerate 1:a2 -- 1:a1
	done >/tmp/out 2>&1; touch /tmp/ended'
	for ((i = 0; i < ${CTR_GPU_GUARD_ATTACHES:-200}; i++)); do
		ctr-gpu attach "$container" --device 1 || { echo "attach $i"; return 1; }
		[[ $(choices) == "[[\"LUID-$(luid 1:a2)\"]]" ]] || { echo "choices in round $i"; return 1; }
		[[ $((i % 20)) != 0 ]] || holds docker exec "$container" enumerate 1:a2 -- 1:a1
		ctr-gpu detach --force "$container" || { echo "detach $i"; return 1; }
	done
	docker exec "$container" touch /tmp/stop
	soon docker exec "$container" stat /tmp/ended
	ctr-gpu attach "$container" --device 1
	ctr-gpu detach "$container"
	# It worked in some, and in none was there an answer of the other.
	docker cp "$container:/tmp/out" "$BATS_TEST_TMPDIR/out"
	echo "$(grep -c "^ok - adapter 1:a2 can be used" "$BATS_TEST_TMPDIR/out") of its rounds had the adapter"
	grep -q "^ok - adapter 1:a2 can be used" "$BATS_TEST_TMPDIR/out"
	run grep -B 10 -E "^not ok - .*(of others|as of an unknown)" "$BATS_TEST_TMPDIR/out"
	echo "$output"
	expect_status 1
	docker exec "$container" busybox rm -f /tmp/out /tmp/stop /tmp/ended
	docker diff "$container" | sort | diff "$BATS_TEST_TMPDIR/layer" -
	cut -d " " -f 3- "/proc/$process/mountinfo" | diff "$BATS_TEST_TMPDIR/mounts" -
	[[ -z $(find /run/ctr-gpu/attached -type f) ]]
	docker rm --force "$container"
	[[ $(choices) == "[]" ]]
}

# bats test_tags=boot
@test "docker run --privileged: an honest program sees the chosen one" {
	host one-store
	grade guard
	holds docker run --rm --privileged --gpus '"device=1"' clients enumerate 1:a2 -- 1:a1
}

@test "runc on a machine of cgroup version 1" {
	local directory=$BATS_TEST_TMPDIR/bundle

	grep -q '^devices' /proc/cgroups || skip "the kernel has no such controller"
	host one-store
	grade guard
	bundle debian "$directory" "$(visible 1) | .process.args = [\"enumerate\", \"1:a2\", \"--\", \"1:a1\"] | .linux.cgroupsPath = \"/version1\"
		| .mounts |= map(select(.type != \"cgroup\"))"
	cp "$clients/enumerate" "$directory/rootfs/usr/bin/"
	holds unshare --mount bash -ec '
		umount --recursive /sys/fs/cgroup
		mount -t tmpfs tmpfs /sys/fs/cgroup
		mkdir /sys/fs/cgroup/devices
		mount -t cgroup -o devices devices /sys/fs/cgroup/devices
		cd "$1" && exec runc --root /run/runtime run version1' version1 "$directory"
}

# bats test_tags=boot
@test "the kernel is well" {
	kernel_is_well
}
