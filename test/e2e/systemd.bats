#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=systemd, kernel, cgroup
#
# A device that a container was given, and a systemd that writes the device rules of its scope anew: the real systemd, as
# the first process of namespaces of its own, with scopes of systemd-run, runc and crun. The cases are for cgroup version 2
# here, and through a link systemd-cgroup1.bats once more for version 1.

directory=$BATS_FILE_TMPDIR/systemd
version=2
mounted=/sys/fs/cgroup
processes=/sys/fs/cgroup
if [[ $BATS_TEST_FILENAME == *-cgroup1.bats ]]; then
	version=1
	mounted=/sys/fs/cgroup/devices
	processes=/sys/fs/cgroup/systemd
fi

setup_file() {
	mkdir -p "$BATS_FILE_TMPDIR/systemd"
	why_not >"$BATS_FILE_TMPDIR/skip" || return 0
	"$BATS_TEST_DIRNAME/systemd-world" start "$BATS_FILE_TMPDIR/systemd" "$version" || {
		"$BATS_TEST_DIRNAME/systemd-world" stop "$BATS_FILE_TMPDIR/systemd"
		return 1
	}
}

teardown_file() {
	[ -s "$BATS_FILE_TMPDIR/skip" ] || "$BATS_TEST_DIRNAME/systemd-world" stop "$BATS_FILE_TMPDIR/systemd"
}

# Says why this machine cannot run these tests, and fails; or neither.
why_not() {
	[ "$(id -u)" -eq 0 ] || { echo "needs root" && return 1; }
	[ -x /lib/systemd/systemd ] || { echo "needs systemd" && return 1; }
	if [ "$version" -eq 1 ]; then
		findmnt --noheadings --types cgroup --options devices >/dev/null || { echo "needs cgroup version 1" && return 1; }
	else
		findmnt --noheadings --types cgroup2 >/dev/null || { echo "needs cgroup version 2" && return 1; }
	fi
}

setup() {
	[ ! -s "$BATS_FILE_TMPDIR/skip" ] || skip "$(cat "$BATS_FILE_TMPDIR/skip")"
	tools=${CTR_GPU_BUILD:-$BATS_TEST_DIRNAME/../../build}/test/tools
}

inside() {
	"$BATS_TEST_DIRNAME/systemd-world" run "$directory" "$@" 3>&-
}

# The cgroup whose device rules hold for $member.
find_group() {
	if [ "$version" -eq 1 ]; then
		group=$(inside sed -n 's/^[0-9]*:devices:.//p' "/proc/$member/cgroup")
	else
		group=$(inside sed -n 's/^0::.//p' "/proc/$member/cgroup")
	fi
}

# Starts a scope named $1 with device rules like an engine's, and further properties.
scope() {
	unit=$1
	shift
	inside systemd-run --scope --unit="$unit" "$@" sleep 600 >/dev/null 2>&1 &
	for _ in {1..600}; do
		member=$(inside head -n 1 "$processes/system.slice/$unit/cgroup.procs" 2>/dev/null) || member=
		[ -z "$member" ] || { find_group && return; }
		sleep 0.1
	done
	return 1
}

strict=(-p DevicePolicy=strict -p 'DeviceAllow=/dev/null rw' -p 'DeviceAllow=char-* m')

# What a process in the scope gets when it opens a device: "open", "forbidden", or another error.
try() {
	# shellcheck disable=SC2016
	inside sh -c 'echo $$ >"$1/cgroup.procs" && exec 2>&1 && : <"$2" && echo open' sh "$mounted/$group" "$1" |
		sed 's/.*not permitted$/forbidden/; s/.*No such device.*/open/'
}

allow() {
	inside "$tools/device-rule" "$@" "$member" c 10 183 rw /dev/hwrng
}

drop_in() {
	inside find "/run/systemd/transient/$unit.d" -name '50-ctr-gpu-*' 2>/dev/null
}

hwrng_is() {
	local answer
	answer=$(try /dev/hwrng)
	[ "$answer" = "$1" ] || { echo "hwrng: $answer, not $1" && return 1; }
	[ "$(try /dev/kvm)" = forbidden ] || { echo "kvm is not forbidden" && return 1; }
	[ "$(try /dev/null)" = open ] || { echo "null is not open" && return 1; }
}

# systemd writes the device rules of the scope anew, from what it has read. Version 252 does so at each daemon-reload; 257 makes no
# bpf(2) call and writes no devices.allow of the scope then, and does both when a property of the unit is set, as Docker sets it for
# "docker update".
rules_anew() {
	inside systemctl daemon-reload
	inside systemctl set-property --runtime "$unit" CPUWeight=50
}

@test "a daemon-reload leaves a scope its device" {
	scope keeps.scope "${strict[@]}"
	hwrng_is forbidden
	allow
	hwrng_is open
	inside systemctl daemon-reload
	hwrng_is open
	inside systemctl daemon-reexec
	hwrng_is open
	rules_anew
	hwrng_is open
}

# As if we had not told systemd.
untell() {
	inside rm "$(drop_in)"
	inside sed -i -E '/hwrng|10:183/d' "/run/systemd/transient/$unit.d/50-DeviceAllow.conf"
}

@test "without what we tell systemd, the device goes" {
	scope loses.scope "${strict[@]}"
	allow
	hwrng_is open
	untell
	rules_anew
	hwrng_is forbidden
}

@test "a run after the device was lost brings it back" {
	scope back.scope "${strict[@]}"
	allow
	untell
	rules_anew
	hwrng_is forbidden
	allow
	hwrng_is open
	rules_anew
	hwrng_is open
}

@test "what is undone stays undone" {
	scope undone.scope "${strict[@]}"
	allow --undo
	hwrng_is forbidden
	[ -z "$(drop_in)" ]
	rules_anew
	hwrng_is forbidden
}

# What ctr-gpu detach does, whose process has not done it.
@test "what another process takes back is gone at once, and stays so" {
	scope given.scope "${strict[@]}"
	for reload in true "inside systemctl daemon-reload"; do
		allow --keep /run/kept
		$reload
		hwrng_is open
		allow --take-back /run/kept
		hwrng_is forbidden
		[ -z "$(drop_in)" ]
		inside systemctl daemon-reload
		hwrng_is forbidden
	done
}

# As with version 1, where systemd is told nothing of a container that runs.
@test "what was given twice is taken back all the same" {
	scope twice.scope "${strict[@]}"
	allow --keep /run/kept
	inside sed -i -E '/hwrng|10:183/d' "/run/systemd/transient/$unit.d/50-DeviceAllow.conf"
	allow
	allow --take-back /run/kept
	[ -z "$(drop_in)" ]
	rules_anew
	hwrng_is forbidden
}

@test "systemd reads no error in what we write" {
	scope clean.scope "${strict[@]}"
	allow
	: >"$directory/log"
	inside systemctl daemon-reload
	inside systemctl show -p DeviceAllow clean.scope | grep -q '^DeviceAllow=/dev/hwrng rw$'
	run grep -i 'ctr-gpu' "$directory/log"
	[ "$status" -eq 1 ]
	[ "$(inside stat -c %a "$(drop_in)")" = 644 ]
}

# As an engine leaves it that tells systemd of those devices only which have a name in /dev/char.
@test "a device that the cgroup allows and systemd does not know of is kept" {
	scope hidden.scope "${strict[@]}"
	allow
	inside rm "$(drop_in)"
	hwrng_is open
	allow
	rules_anew
	hwrng_is open
}

@test "two containers in one scope keep the devices of both" {
	scope both.scope "${strict[@]}"
	inside sh -c '[ -e /dev/kmsg ] || mknod /dev/kmsg c 1 11'
	allow
	inside "$tools/device-rule" "$member" c 1 11 rw /dev/kmsg
	rules_anew
	hwrng_is open
	[ "$(try /dev/kmsg)" = open ]
}

@test "a scope without device rules of systemd's gets none" {
	scope free.scope
	run allow
	[ "$status" -eq 0 ]
	[ -z "$(drop_in)" ]
	rules_anew
	[ "$(try /dev/kvm)" != forbidden ]
}

# Stops the scope. systemd 252 leaves our file if it has not read it; a later one reads it when it is told of a device.
leave_behind() {
	local file text

	file=$(drop_in)
	text=$(inside cat "$file")
	inside systemctl stop "$unit"
	[ -n "$(drop_in)" ] || inside sh -c 'mkdir -p "${1%/*}" && printf "%s\n" "$2" >"$1"' sh "$file" "$text"
	[ -n "$(drop_in)" ]
}

@test "the file of a scope that is gone is removed" {
	scope gone.scope "${strict[@]}"
	allow
	leave_behind
	inside mkdir -p /run/systemd/transient/other.scope.d
	inside touch /run/systemd/transient/other.scope.d/50-other.conf
	scope next.scope "${strict[@]}"
	allow
	run inside test -e /run/systemd/transient/gone.scope.d
	[ "$status" -eq 1 ]
	inside test -e /run/systemd/transient/other.scope.d/50-other.conf
	[ -n "$(drop_in)" ]
}

# A unit's name may come again; systemd reads the folder at the next daemon-reload.
@test "a later scope of the same name does not have its predecessor's device" {
	local ended='{"ociVersion": "1.0.2", "id": "x", "status": "stopped", "bundle": "/run"}'

	scope again.scope "${strict[@]}"
	allow
	leave_behind
	inside "$tools/../../bin/ctr-gpu-hook" poststop <<<"$ended"
	[ -z "$(drop_in)" ]
	# Where the hook of the end was not run, the next start sees which file is older than its scope.
	scope again.scope "${strict[@]}"
	allow
	leave_behind
	scope again.scope "${strict[@]}"
	inside sh -c '[ -e /dev/kmsg ] || mknod /dev/kmsg c 1 11'
	inside "$tools/device-rule" "$member" c 1 11 rw /dev/kmsg
	rules_anew
	hwrng_is forbidden
	[ "$(try /dev/kmsg)" = open ]
}

@test "a daemon-reload amid a start leaves the scope its device" {
	local tracer

	command -v strace >/dev/null || skip "needs strace"
	scope amid.scope "${strict[@]}"
	inside strace -o "/run/calls" -e trace=linkat -e inject=linkat:signal=STOP:when=1 "$tools/device-rule" "$member" c 10 183 rw /dev/hwrng 3>&- &
	tracer=$!
	until inside grep -q 'stopped by SIGSTOP' /run/calls 2>/dev/null; do
		kill -0 "$tracer"
		sleep 0.1
	done
	hwrng_is open
	inside systemctl daemon-reload
	inside pkill --signal CONT device-rule
	wait "$tracer"
	hwrng_is open
	rules_anew
	hwrng_is open
}

@test "a container that calls its cgroups as another container's unit gets nothing for that one" {
	local victim

	scope victim.scope "${strict[@]}"
	victim=$group
	scope evil.scope "${strict[@]}"
	allow
	inside sh -c 'mkdir -p "$1/victim.scope" && echo "$2" >"$1/victim.scope/cgroup.procs"' sh "$mounted/$group" "$member"
	allow
	unit=victim.scope
	[ -z "$(drop_in)" ]
	inside systemctl daemon-reload
	group=$victim
	hwrng_is forbidden
}

# engine NAME COMMAND…: a container in a scope that the engine asked systemd for; $edits of its configuration
edits=.
engine() {
	local name=$1 id=$1$BATS_TEST_NUMBER bundle=/run/bundle-$1-$BATS_TEST_NUMBER
	shift

	command -v "$name" >/dev/null || skip "needs $name"
	command -v jq >/dev/null || skip "needs jq"
	[ -x /bin/busybox ] || skip "needs busybox"
	inside mkdir -p "$bundle/rootfs/bin" "$bundle/rootfs/dev" "$bundle/rootfs/proc" "$bundle/rootfs/sys"
	inside cp /bin/busybox "$bundle/rootfs/bin/sleep"
	inside sh -c 'cd "$1" && runc spec && jq ".process.terminal = false | .process.args = [\"/bin/sleep\", \"600\"] |
		del(.process.rlimits) | .linux.namespaces |= map(select(.type != \"network\")) |
		.linux.cgroupsPath = \"system.slice:test:$2\" | $3" config.json >new && mv new config.json' sh "$bundle" "$id" "$edits"
	inside sh -c 'cd "$1" && shift && exec "$@" </dev/null >/dev/null' sh "$bundle" "$@" --systemd-cgroup run -d "$id"
	member=$(inside "$name" state "$id" | jq .pid)
	unit=test-$id.scope
	find_group
	[[ $group == *$unit* ]]
}

@test "a container of runc keeps its device" {
	engine runc runc
	hwrng_is forbidden
	allow
	hwrng_is open
	rules_anew
	hwrng_is open
	untell
	rules_anew
	hwrng_is forbidden
}

# update SHARES: what "docker update" does. Where version 2 has no such controller it fails, when systemd has been asked.
update() {
	run inside runc update --cpu-share "$1" "runc$BATS_TEST_NUMBER"
	[[ $status -eq 0 || $output == *cpu.weight* ]]
}

@test "an update right after the start leaves the device, and so does one before and after a daemon-reload" {
	engine runc runc
	allow
	hwrng_is open
	update 512
	hwrng_is open
	inside systemctl daemon-reload
	update 256
	hwrng_is open
}

# What ctr-gpu detach does. systemd forgets the device, and nothing else.
@test "an update after the device was taken back does not bring it back" {
	engine runc runc
	allow --keep /run/kept
	inside grep -q hwrng "/run/systemd/transient/$unit.d/50-DeviceAllow.conf"
	before=$(inside grep -vE 'hwrng|10:183' "/run/systemd/transient/$unit.d/50-DeviceAllow.conf")
	allow --take-back /run/kept
	hwrng_is forbidden
	diff <(inside sort "/run/systemd/transient/$unit.d/50-DeviceAllow.conf" | grep .) <(sort <<<"$before" | grep .)
	update 512
	hwrng_is forbidden
	rules_anew
	hwrng_is forbidden
}

@test "a systemd that does not answer holds nothing up for long, and has its file" {
	scope stopped.scope "${strict[@]}"
	inside sh -c 'mv /run/systemd/private /run/systemd/private.kept'
	inside perl -e 'use Socket; socket my $s, AF_UNIX, SOCK_STREAM, 0; bind $s, sockaddr_un("/run/systemd/private"); listen $s, 5; sleep 60' 3>&- &
	listener=$!
	until inside test -S /run/systemd/private; do sleep 0.05; done
	run allow
	kill "$listener"
	inside mv /run/systemd/private.kept /run/systemd/private
	[[ $status -eq 0 && $output == *"systemd was not told"* ]]
	[ -n "$(drop_in)" ]
	hwrng_is open
}

# As with CDI, where the engine has told the runtime, and the runtime systemd, before the hook says it again.
@test "a container whose engine has allowed the device keeps it, and no file of ours is left" {
	edits='.linux.resources.devices += [{allow: true, type: "c", major: 10, minor: 183, access: "rw"}]'
	engine runc runc
	edits=.
	hwrng_is open
	allow
	hwrng_is open
	[ -z "$(drop_in)" ]
	rules_anew
	run try /dev/hwrng
	echo "after the reload: $output"
	hwrng_is open
}

# crun's program is on a cgroup below the scope, which systemd does not touch.
@test "a container of crun keeps its device" {
	[ "$version" -eq 2 ] || skip "crun refuses a machine with both versions mounted"
	engine crun "$tools/memlock" crun
	hwrng_is forbidden
	allow
	hwrng_is open
	rules_anew
	hwrng_is open
	inside systemctl daemon-reexec
	hwrng_is open
}

# In the world there is no GPU: the shim writes the configuration on a simulated host, and what of it is systemd's business is run
# in the world.
@test "a container of runc has the device from ctr-gpu-runtime, and keeps it" {
	local build=${CTR_GPU_BUILD:-$BATS_TEST_DIRNAME/../../build} bundle=$BATS_TEST_TMPDIR/bundle

	command -v runc >/dev/null || skip "needs runc"
	command -v jq >/dev/null || skip "needs jq"
	mkdir -p "$bundle/rootfs/etc"
	(cd "$bundle" && runc spec && jq '.process.env += ["NVIDIA_VISIBLE_DEVICES=all"] | .root.readonly = false
		| .linux.cgroupsPath = "system.slice:test:runc"' config.json >new && mv new config.json)
	# shellcheck disable=SC2016
	CTR_GPU_BUILD=$build "$BATS_TEST_DIRNAME/sandbox" wsl-nvidia -- bash -c '
		mkdir -p /etc/ctr-gpu /dev/char && ln -s ../dxg /dev/char/10:183 && echo "{\"runtimes\": [\"/run/known\"]}" >/etc/ctr-gpu/config.json
		printf "#!/bin/sh\necho runc version 1.4.0\n" >/run/known && chmod 755 /run/known
		"$1/bin/ctr-gpu-runtime" create --bundle "$2" container && jq -e ".hooks.createRuntime == null" "$2/config.json" >/dev/null &&
			jq "{devices: .linux.devices, rules: .linux.resources.devices}" "$2/config.json" >/dev/fd/4 && rm /dev/char/10:183 &&
			"$1/bin/ctr-gpu-runtime" create --bundle "$2" container && jq -e ".hooks.createRuntime != null" "$2/config.json" >/dev/null
	' shim "$build" "$bundle" 4>"$bundle/written" 3>&-
	inside mkdir -p /dev/char
	inside ln -s ../hwrng /dev/char/10:183
	edits=$(jq --raw-output '".linux.devices = \(.devices) | .linux.resources.devices = \(.rules)"' "$bundle/written")
	engine runc runc
	hwrng_is open
	[ -z "$(drop_in)" ]
	rules_anew
	hwrng_is open
}
