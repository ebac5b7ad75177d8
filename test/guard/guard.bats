#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# The guard on the stand-in for dxgkrnl, in a guest (test/guard/run), with cgroups made by hand: what honest, prying and racing programs
# get. Adapters are 1:a1, 1:a2 and so on.

load guard

setup_file() {
	guest_setup
	usual=$(preemption)
	export usual
}

teardown() {
	preempt "$usual"
}

@test "without the guard each program sees all adapters, and each hostile one gets what it wants" {
	host one-store
	mkdir -p /sys/fs/cgroup/free
	holds "$clients/enumerate" 1:a1 1:a2
	holds "$clients/enumerate" --int80 1:a1 1:a2
	fails 8 "$clients/enumerate" 1:a1 -- 1:a2
	fails 7 "$clients/guess" 1:a1 -- 1:a2
	fails 7 "$clients/guess" --int80 1:a1 -- 1:a2
	fails 6 "$clients/early" /sys/fs/cgroup/free/cgroup.procs 1:a1 -- 1:a2
	fails 1 "$clients/pass" /sys/fs/cgroup/free/cgroup.procs 1:a1 -- 1:a2
	echo 200 >"$module/window"
	for kind in handle luid statistics; do
		# In an emulator a process may see the words of one kind alone.
		soon fails 2 "$clients/race" "$kind" 4 1:a1 -- 1:a2
	done
	[[ $(messages 1:a2) -gt 20 ]]
}

@test "without the guard, who is killed in the middle of a call leaves a packet behind" {
	host one-store
	[[ $(<"$module/abandoned") == 0 ]]
	echo 20000 >"$module/host_delay"
	"$clients/enumerate" 1:a1 1:a2 3>&- >/dev/null &
	soon has_messages 1:a1
	kill -KILL $!
	wait $! || true
	[[ $(<"$module/abandoned") == 1 ]]
}

@test "two adapters of one vendor and one store: the chosen one alone, and the other one beside it" {
	guarded_host one-store
	choose first 1:a1
	choose second 1:a2
	sees_only first 1:a1 1:a2
	sees_only second 1:a2 1:a1
	holds "$clients/enumerate" 1:a1 1:a2
}

@test "a choice of both is no choice; who chose none has none" {
	guarded_host one-store
	choose both 1:a1 1:a2
	holds in_cgroup both "$clients/enumerate" 1:a1 1:a2
	choose nothing none
	holds in_cgroup nothing "$clients/enumerate" -- 1:a1 1:a2
	holds in_cgroup nothing "$clients/guess" -- 1:a1 1:a2
	[[ $(messages 1:a1) == "$(messages 1:a2)" ]]
}

# bats test_tags=slow
@test "another choice for the same cgroup holds from then on" {
	guarded_host one-store
	choose changing 1:a1
	sees_only changing 1:a1 1:a2
	choose changing 1:a2
	sees_only changing 1:a2 1:a1
	ctr-gpu-guard forget /sys/fs/cgroup/changing
	holds in_cgroup changing "$clients/enumerate" 1:a1 1:a2
}

# bats test_tags=slow
@test "two stores; Intel's and NVIDIA's; LUIDs that differ in their high words" {
	guarded_host two-stores
	choose chosen 1:a2
	sees_only chosen 1:a2 1:a1
	guarded_host hybrid
	choose chosen 1:a2
	sees_only chosen 1:a2 1:a1
	guarded_host same-low
	choose chosen 2:a1
	sees_only chosen 2:a1 1:a1
}

# bats test_tags=slow
@test "three of 16 adapters, one of 72" {
	local sixteen others

	mapfile -t sixteen < <(printf '1:%x\n' {161..176})
	mapfile -t others < <(printf '1:%x\n' {161..230})
	guarded_host many
	choose chosen 1:a2 1:ad 1:b0
	holds in_cgroup chosen "$clients/enumerate" 1:a2 1:ad 1:b0 -- 1:a1
	holds in_cgroup chosen "$clients/guess" 1:a2 1:ad 1:b0 -- 1:a1 1:a3 1:af
	holds "$clients/enumerate" "${sixteen[@]}"
	guarded_host crowd
	choose chosen 1:e7
	run in_cgroup chosen "$clients/enumerate" 1:e7 -- "${others[@]}"
	echo "$output"
	# An array with room for 64 is one that the driver of 72 leaves alone.
	grep -qx "ok - EnumAdapters3 with room for 128: the 1 adapters that there are to see, not 1" <<<"$output"
	grep -qx "ok - EnumAdapters3 with room for 128: nothing behind the count" <<<"$output"
	holds in_cgroup chosen "$clients/guess" 1:e7 -- 1:a1 1:e6 1:e8
}

@test "what was opened before the process was in the cgroup, and files handed in, are of no use" {
	guarded_host one-store
	choose late 1:a1
	holds "$clients/early" /sys/fs/cgroup/late/cgroup.procs 1:a1 -- 1:a2
	holds "$clients/early" /sys/fs/cgroup/late/cgroup.procs --int80 1:a1 -- 1:a2
	holds "$clients/pass" /sys/fs/cgroup/late/cgroup.procs 1:a1 -- 1:a2
	[[ $(<"$module/abandoned") == 0 ]]
}

@test "children, and cgroups below: as deep as one likes" {
	local directory=/sys/fs/cgroup/parent

	guarded_host one-store
	choose parent 1:a1
	holds in_cgroup parent sh -c '(exec "$@"); exit $?' fork "$clients/enumerate" 1:a1 -- 1:a2
	for _ in {1..12}; do
		directory+=/below
		mkdir "$directory"
	done
	sees_only "${directory#/sys/fs/cgroup/}" 1:a1 1:a2
	# Who is below cannot choose anew.
	choose parent/below 1:a1 1:a2
	holds in_cgroup parent/below "$clients/enumerate" 1:a1 -- 1:a2
}

# Where the kernel preempts itself one may get some more, which docs/guard.md says, but all of them hardly more, and none of them lives there
# either. $CTR_GPU_GUARD_ROUNDS is how often.
# bats test_tags=attack
@test "threads that change the words get hardly an answer in a container's life, die of it, and nobody in the middle of a call" {
	local window kind more rounds=${CTR_GPU_GUARD_ROUNDS:-1}

	mapfile -t more < <(race_options)

	guarded_host one-store
	for window in $(for ((i = 0; i < rounds; i++)); do echo 0 200; done); do
		echo "$window" >"$module/window"
		for kind in handle luid statistics; do
			choose racers 1:a1
			holds in_cgroup racers "$clients/race" "${more[@]}" "$kind" 8 1:a1 -- 1:a2
		done
	done
	choose racers 1:a1
	holds in_cgroup racers "$clients/race" "${more[@]}" handle 4 --int80 1:a1 -- 1:a2
	[[ $(<"$module/abandoned") == 0 ]]
	echo "$(messages 1:a2) messages"
	[[ -n ${more[*]} || $(messages 1:a2) -le $(((6 * rounds + 1) * $(answers_most))) ]]
}

@test "of a container one of whose processes reached another adapter, none makes a call any more" {
	guarded_host one-store
	choose racers 1:a1
	# It need not win a race: it has a device of another adapter's when it comes.
	holds "$clients/early" /sys/fs/cgroup/racers/cgroup.procs 1:a1 -- 1:a2
	run ctr-gpu-guard status
	expect "raced with the guard"
	run in_cgroup racers "$clients/enumerate" 1:a1 -- 1:a2
	expect_status 137
	choose others 1:a1
	sees_only others 1:a1 1:a2
}

# answers_most: how many of another adapter a container gets at most
answers_most() {
	echo $((2 * $(nproc)))
}

# parks KEEPER…: threads that wait in the driver's copy of their arguments, in a cgroup of their own: a container gets its answers once
parks() {
	local kind more round rounds=${CTR_GPU_GUARD_ROUNDS:-1}

	mapfile -t more < <(race_options)
	guarded_host one-store
	for ((round = 0; round < rounds; round++)); do
		for kind in statistics memory reuse handle; do
			choose "parked-$kind" 1:a1
			holds in_cgroup "parked-$kind" "$clients/park" "${more[@]}" "$@" "$kind" 44 1 1:a1 -- 1:a2
			holds in_cgroup "parked-$kind" "$clients/park" "${more[@]}" "$@" "$kind" 11 8 1:a1 -- 1:a2
		done
	done
	[[ $(<"$module/abandoned") == 0 ]]
	echo "$(messages 1:a2) messages"
	[[ $(messages 1:a2) -le $((4 * rounds * $(answers_most))) || -n $(race_options) ]]
}

# bats test_tags=attack
@test "threads that wait for a page of their arguments get hardly more answers than there are processors" {
	parks
}

# bats test_tags=slow,attack
@test "nor do threads that wait for a page of a file of a FUSE file system" {
	[[ -e /dev/fuse ]] || skip "the kernel has no FUSE"
	parks --file
}

# bats test_tags=attack
@test "a list of adapters whose place is exchanged tells hardly once of the hidden one" {
	local kind more round rounds=${CTR_GPU_GUARD_ROUNDS:-1}

	mapfile -t more < <(race_options)
	guarded_host one-store
	for ((round = 0; round < rounds; round++)); do
		for kind in list room none; do
			choose "exchanged-$kind" 1:a1
			holds in_cgroup "exchanged-$kind" "$clients/exchange" "${more[@]}" "$kind" 2000 1:a1 -- 1:a2
		done
	done
	[[ $(<"$module/abandoned") == 0 ]]
}

# $CTR_GPU_GUARD_CALLS is how many; of a program 200,000 at most, since the driver keeps a handle of the hidden adapter for each list.
# bats test_tags=attack
@test "of the calls of an honest program with 64 threads none fails, and hardly a list names another adapter where the kernel preempts itself" {
	local more left=${CTR_GPU_GUARD_CALLS:-20000}

	mapfile -t more < <(race_options)
	guarded_host one-store
	choose honest 1:a1
	for (( ; left > 0; left -= 200000)); do
		holds in_cgroup honest "$clients/honest" "${more[@]}" 64 $((left < 200000 ? left : 200000)) 1:a1
	done
	[[ $(messages 1:a2) == 0 ]]
}

# skipped: how often the kernel has left out one of the guard's programs that are no probes
skipped() {
	bpftool --json prog list | jq '[.[] | select(.name // "" | test("^guard_(?!probe)")) | .recursion_misses // 0] | add'
}

# until_skipped COMMAND…: it shows something only if the kernel interrupted others in the guard's programs
until_skipped() {
	for _ in {1..5}; do
		"$@"
		[[ $(skipped) == 0 ]] || return 0
	done
	skip "the kernel has interrupted nobody in the guard's programs"
}

# preempting: a guarded host whose kernel preempts itself, and a cgroup of it
preempting() {
	[[ $(uname -r) != 6.1.* ]] || skip "before Linux 6.2 a task's storage cannot be read where another task is preempted amid that"
	preempt full || skip "this kernel cannot preempt itself"
	guarded_host one-store
	choose starved 1:a1
}

# bats test_tags=preempting
@test "where the kernel preempts itself, no thread's first call is refused because others were interrupted in theirs" {
	local version

	version=$(uname -r | cut -d . -f 1,2)
	! [[ $version =~ ^6\.[2-9]$ ]] || skip "before Linux 6.10 a program cannot forbid that it is preempted"
	preempting
	until_skipped holds in_cgroup starved "$clients/newcomer" 150 1:a1 -- 1:a2
}

# bats test_tags=preempting
@test "where the kernel preempts itself and BPF is a security module, no call passes the guard unseen" {
	grep -qw bpf /sys/kernel/security/lsm || skip "this kernel does not have it among its security modules"
	preempting
	run bpftool prog list
	expect "lsm  name guard_lsm  "
	until_skipped holds in_cgroup starved "$clients/newcomer" --pry 50 1:a1 -- 1:a2
	[[ $(messages 1:a2) == 0 ]]
}

# bats test_tags=preempting
@test "where the kernel preempts itself and leaves programs out, honest ones see the same, and who gets an answer dies of it" {
	local kind round

	preempting
	choose honest 1:a1
	run bpftool prog list
	expect "name guard_probe_end "
	# The kernel follows ten threads at once to a function's end. In some rounds it leaves nothing out.
	for round in 1 2 3 4 5; do
		for kind in handle luid statistics; do
			choose starved 1:a1
			(holds in_cgroup starved "$clients/race" --more --starved "$kind" 2 1:a1 -- 1:a2) &
			for _ in {1..5}; do
				holds in_cgroup honest "$clients/enumerate" 1:a1 -- 1:a2
			done
			wait $!
		done
		[[ $round -lt 2 || $(skipped) == 0 ]] || break
	done
	echo "$(skipped) programs were left out, $(messages 1:a2) messages"
	[[ $(messages 1:a2) -le $((30 * round)) ]]
	[[ $(<"$module/abandoned") == 0 ]]
	# Elsewhere probes would only take time.
	preempt "$usual"
	guarded_host one-store
	run bpftool prog list
	[[ $usual == @(full|lazy) || $output != *guard_probe* ]]
}

@test "threads that have forbidden themselves the device (Landlock) do not keep a racing process alive" {
	local kind more

	[[ $(uname -r) != 6.1.* ]] || skip "Landlock knows calls of devices since Linux 6.10"
	mapfile -t more < <(race_options)
	guarded_host one-store
	echo 200 >"$module/window"
	for kind in handle luid statistics; do
		choose landlocked 1:a1
		holds in_cgroup landlocked "$clients/race" "${more[@]}" --landlocked "$kind" 8 1:a1 -- 1:a2
	done
	[[ $(<"$module/abandoned") == 0 ]]
}

# $CTR_GPU_GUARD_HOARD is how many: more than 65,536, which take three minutes, would fill a table that the kernel makes for them.
@test "what a container hoards takes no place that others need" {
	guarded_host one-store
	# As systemd sets it. The driver knows processes by their numbers.
	echo 4194304 >/proc/sys/kernel/pid_max
	choose hoarder 1:a1
	choose other 1:a2
	mkfifo "$BATS_TEST_TMPDIR/in"
	in_cgroup hoarder "$clients/hoard" "${CTR_GPU_GUARD_HOARD:-500}" 1:a1 <"$BATS_TEST_TMPDIR/in" >"$BATS_TEST_TMPDIR/out" 3>&- &
	exec 9>"$BATS_TEST_TMPDIR/in"
	while kill -0 $! && [[ ! -s $BATS_TEST_TMPDIR/out ]]; do
		sleep 0.2
	done
	[[ $(<"$BATS_TEST_TMPDIR/out") == ready ]]
	holds in_cgroup other "$clients/enumerate" 1:a2 -- 1:a1
	holds in_cgroup hoarder "$clients/enumerate" 1:a1 -- 1:a2
	exec 9>&-
	wait
	# Containers have one table in common, which they do not write.
	run bpftool map list
	[[ $output == *": hash  name choices"* ]]
	[[ $(grep -cE '(hash|array) .*name (calls|processes|lists)' <<<"$output") == 0 ]]
}

# bats test_tags=slow
@test "with a slow host, too, nobody is killed in the middle of a call" {
	local more

	mapfile -t more < <(race_options)
	guarded_host one-store
	choose slow 1:a1
	echo 200 >"$module/window"
	echo 4 >"$module/host_delay"
	holds in_cgroup slow "$clients/race" "${more[@]}" handle 6 1:a1 -- 1:a2
	choose slow 1:a1
	holds in_cgroup slow "$clients/race" "${more[@]}" statistics 6 1:a1 -- 1:a2
	[[ $(<"$module/abandoned") == 0 ]]
}

# idle: whether the guard's programs look for choices
idle() {
	[[ $(ctr-gpu-guard status --json | jq .idle) == "$1" ]]
}

@test "without a choice in force the programs look for none" {
	guarded_host one-store
	idle true
	choose first 1:a1
	choose first 1:a2
	choose second 1:a1
	idle false
	rmdir /sys/fs/cgroup/first
	idle false
	# By the programs of another load, choices are still known.
	ctr-gpu-guard unload
	ctr-gpu-guard load
	idle true
	choose second 1:a1
	ln -sfn other /sys/fs/bpf/ctr-gpu/version
	ctr-gpu-guard load
	idle false
	sees_only second 1:a1 1:a2
	ctr-gpu-guard forget /sys/fs/cgroup/second
	ctr-gpu-guard forget /sys/fs/cgroup/second
	idle true
	choose third 1:a2
	sees_only third 1:a2 1:a1
	rmdir /sys/fs/cgroup/third
	idle true
}

@test "a choice ends with its cgroup" {
	guarded_host one-store
	choose short 1:a1
	choose long 1:a2
	# Where another file system is mounted over the hierarchy, it knows no cgroup. That is no reason to end choices.
	unshare --mount bash -c 'mount -t tmpfs tmpfs /sys/fs/cgroup && ctr-gpu-guard sweep'
	run ctr-gpu-guard status
	expect "LUID-$(luid 1:a1)"
	expect "LUID-$(luid 1:a2)"
	rmdir /sys/fs/cgroup/short
	ctr-gpu-guard sweep
	run ctr-gpu-guard status
	expect_not "LUID-$(luid 1:a1)"
	expect "LUID-$(luid 1:a2)"
	mkdir /sys/fs/cgroup/short
	holds in_cgroup short "$clients/enumerate" 1:a1 1:a2
}

# bats test_tags=slow
@test "loading twice changes nothing; unloading frees all" {
	guarded_host one-store
	choose stays 1:a1
	ctr-gpu-guard load
	sees_only stays 1:a1 1:a2
	ctr-gpu-guard unload
	holds in_cgroup stays "$clients/enumerate" 1:a1 1:a2
}

# settled: the kernel detaches programs one after the other when their pins are gone; until then a list may be empty
settled() {
	[[ $(bpftool prog list | grep -c ' name guard_') -eq $(find /sys/fs/bpf/ctr-gpu*/ -name "guard_*" | wc -l) ]]
}

# killed_at CALL: the guard's load, when it is about to make this system call for the first time
killed_at() {
	run strace -o /dev/null -qq -e trace="$1" -e inject="$1":signal=KILL:when=1 ctr-gpu-guard load
	[[ $status -ne 0 ]]
}

# holds_when_killed CALL…: the choice of the cgroup "stays" when the load of another version is killed at each of these calls, and after the next load
holds_when_killed() {
	local call

	guarded_host one-store
	choose stays 1:a1
	for call in "$@"; do
		ln -sfn other /sys/fs/bpf/ctr-gpu/version
		killed_at "$call"
		soon settled
		holds in_cgroup stays "$clients/enumerate" 1:a1 -- 1:a2
		run ctr-gpu-guard status
		expect "loaded      yes"
		expect "LUID-$(luid 1:a1)"
		ctr-gpu-guard load
		[[ $(ctr-gpu-guard status --json | jq .otherVersion) == false && ! -e /sys/fs/bpf/ctr-gpu-next ]]
		soon settled
		holds in_cgroup stays "$clients/enumerate" 1:a1 -- 1:a2
	done
	sees_only stays 1:a1 1:a2
}

# With its pins made, before they are in place, and with the other ones in their place.
@test "whenever a load is killed that puts others in their place, choices hold, and the next load does it" {
	holds_when_killed symlinkat rename,renameat,renameat2 unlinkat
	# Also what such a load has left goes.
	ln -sfn other /sys/fs/bpf/ctr-gpu/version
	killed_at symlinkat
	ctr-gpu-guard unload
	[[ -z $(ls -d /sys/fs/bpf/ctr-gpu* 2>/dev/null) ]]
	holds in_cgroup stays "$clients/enumerate" 1:a1 1:a2
}

# bats test_tags=slow
@test "the same where it has no pin yet, and where the others have none left" {
	holds_when_killed mkdirat rmdir
}

@test "what is loaded is known by its programs, not by a version's number" {
	guarded_host one-store
	ln -sfn "$(ctr-gpu-guard --version | sed 's/.* //')" /sys/fs/bpf/ctr-gpu/version
	[[ $(ctr-gpu-guard status --json | jq .otherVersion) == true ]]
	ctr-gpu-guard load
	[[ $(ctr-gpu-guard status --json | jq .otherVersion) == false ]]
}

# as_user COMMAND…
as_user() {
	setpriv --reuid 1000 --regid 1000 --clear-groups "$@"
}

@test "where everybody may write to the BPF file system, and somebody was there first and holds its lock, the guard has another one" {
	local holder

	host one-store
	umount /sys/fs/bpf
	mount -t bpf bpf /sys/fs/bpf
	as_user mkdir /sys/fs/bpf/ctr-gpu /sys/fs/bpf/ctr-gpu-next
	setpriv --reuid 1000 --regid 1000 --clear-groups flock --no-fork /sys/fs/bpf sleep 100 3>&- &
	holder=$!
	soon eval "! flock -n /sys/fs/bpf true"
	run ctr-gpu-guard status
	expect "loaded      no"
	ctr-gpu-guard load
	kill "$holder"
	wait "$holder" || true
	run ctr-gpu-guard status
	expect "loaded      yes"
	[[ $(ctr-gpu-guard status --json | jq '.links | length') -eq $(ls /run/ctr-gpu/bpf/ctr-gpu | grep -c '^guard_') ]]
	for link in $(ctr-gpu-guard status --json | jq '.links[]'); do
		bpftool link show id "$link"
	done
	choose chosen 1:a1
	sees_only chosen 1:a1 1:a2
	for path in /run/ctr-gpu/bpf /run/ctr-gpu/guard.lock; do
		run as_user ls "$path"
		[[ $status -ne 0 ]]
	done
	# One that was there before others could write is replaced all the same.
	ln -sfn other /run/ctr-gpu/bpf/ctr-gpu/version
	ctr-gpu-guard load
	[[ $(ctr-gpu-guard status --json | jq .otherVersion) == false && ! -e /run/ctr-gpu/bpf/ctr-gpu-next ]]
	# A pin that is gone is a program that is.
	rm /run/ctr-gpu/bpf/ctr-gpu/guard_ioctl
	run ctr-gpu-guard status
	expect "loaded      no"
	ctr-gpu-guard load
	sees_only chosen 1:a1 1:a2
	ctr-gpu-guard unload
	[[ -z $(ls /run/ctr-gpu/bpf) && -d /sys/fs/bpf/ctr-gpu ]]
	umount /run/ctr-gpu/bpf /sys/fs/bpf
	guest_setup
}

# bats test_tags=slow
@test "who waits for another load waits for some seconds, and says for whom" {
	local holder

	host one-store
	mkdir -p /run/ctr-gpu
	flock --no-fork /run/ctr-gpu/guard.lock sleep 100 3>&- &
	holder=$!
	soon eval "! flock -n /run/ctr-gpu/guard.lock true"
	printf '%10d\n' "$holder" >/run/ctr-gpu/guard.lock
	run ctr-gpu-guard load
	[[ $status -ne 0 ]]
	expect "process $holder is loading or unloading the guard"
	kill "$holder"
	ctr-gpu-guard load
}

@test "a cgroup of the devices controller of version 1 holds a choice" {
	grep -q '^devices' /proc/cgroups || skip "the kernel has no such controller"
	guarded_host one-store
	mkdir -p /run/devices
	mountpoint -q /run/devices || mount -t cgroup -o devices devices /run/devices || skip "the kernel has no cgroups of version 1"
	mkdir -p /run/devices/first/below
	ctr-gpu-guard allow /run/devices/first "$(luid 1:a1)"
	# The root has no choice, and others have the same numbers for other cgroups.
	mkdir -p /run/other
	mountpoint -q /run/other || mount -t cgroup -o none,name=other other /run/other
	mkdir -p /run/other/first
	for directory in /run/devices /run/other/first /sys/fs/cgroup /tmp; do
		run ctr-gpu-guard allow "$directory" "$(luid 1:a2)"
		[[ $status -ne 0 ]]
		expect "$directory is no cgroup that can have a choice: "
	done
	for directory in first first/below; do
		holds sh -c 'echo 0 >"/run/devices/$0/cgroup.procs" && exec "$@"' "$directory" "$clients/enumerate" 1:a1 -- 1:a2
		holds sh -c 'echo 0 >"/run/devices/$0/cgroup.procs" && exec "$@"' "$directory" "$clients/guess" 1:a1 -- 1:a2
	done
	holds "$clients/enumerate" 1:a1 1:a2
	[[ $(messages 1:a2) -lt 10 ]]
	rmdir /run/devices/first/below /run/devices/first
	run ctr-gpu-guard status
	expect_not "LUID-$(luid 1:a1)"
}

@test "a driver whose structs have their fields elsewhere is guarded all the same" {
	guarded_host one-store moved
	choose chosen 1:a1
	sees_only chosen 1:a1 1:a2
	holds "$clients/early" /sys/fs/cgroup/chosen/cgroup.procs 1:a1 -- 1:a2
}

@test "a driver that lacks a function, has no types, or is not there is refused with the reason" {
	host one-store renamed
	run ctr-gpu-guard load
	[[ $status -ne 0 ]]
	expect "E_GUARD"
	expect "dxgprocess_adapter_by_handle"
	host one-store untyped
	run ctr-gpu-guard load
	[[ $status -ne 0 ]]
	expect "E_GUARD"
	expect "types"
	rmmod dxgkrnl
	run ctr-gpu-guard load
	[[ $status -ne 0 ]]
	expect "E_GUARD"
	run ctr-gpu-guard status
	expect "no"
}

# bats test_tags=refused
@test "a kernel whose modules have no types is refused with the reason, by strict too, and other grades go on" {
	local root=$BATS_TEST_TMPDIR/rootfs config=$BATS_TEST_TMPDIR/config.json

	[[ $(uname -r) == 5.10.* ]] || skip "this kernel's modules have types"
	host one-store
	mkdir -p "$root"
	run ctr-gpu-guard load
	[[ $status -ne 0 ]]
	expect "[E_GUARD] this kernel or driver cannot be guarded: "
	expect "the driver dxgkrnl brings no types along"
	run ctr-gpu-guard status
	expect "loaded      no"
	echo '{"choice": "strict"}' >"$config"
	run ctr-gpu --config "$config" configure --dry-run --device 1 "$root"
	[[ $status -ne 0 ]]
	expect "[E_GUARD] the choice of GPUs cannot be held on this host: "
	expect "the driver dxgkrnl brings no types along"
	run ctr-gpu --config "$config" doctor
	expect "a container that chooses a GPU does not start: "
	run ctr-gpu --config "$config" configure --dry-run "$root"
	expect_status 0
	echo '{"choice": "auto"}' >"$config"
	run ctr-gpu --config "$config" configure --dry-run --device 1 "$root"
	expect_status 0
	expect "choice      environment"
	expect "no guard: "
}

# loaded_with ERROR WHEN: the guard, where the kernel answers so to that one of the calls that load it
loaded_with() {
	run strace -o /dev/null -qq -e trace=bpf -e inject=bpf:error="$1":when="$2" ctr-gpu-guard load
}

@test "a load that fails for now alone says so, leaves nothing, and the next one works" {
	local last error

	host one-store
	strace -o "$BATS_TEST_TMPDIR/calls" -qq -e trace=bpf ctr-gpu-guard load
	last=$(grep -nE 'BPF_(LINK_CREATE|RAW_TRACEPOINT_OPEN)' "$BATS_TEST_TMPDIR/calls" | tail -n 1 | cut -d : -f 1)
	ctr-gpu-guard unload
	# Of one function there may be so many programs, and a live patch keeps others away.
	for error in E2BIG EBUSY ENFILE; do
		loaded_with "$error" "$last"
		[[ $status -ne 0 ]]
		expect "[$error] cannot load the guard's programs: "
		run ctr-gpu-guard status
		expect "loaded      no"
	done
	# Of another caller the kernel may take them.
	loaded_with EPERM "$last"
	[[ $status -ne 0 ]]
	expect "[E_NO_PERMISSION] this process may not load BPF programs: "
	loaded_with EOPNOTSUPP "$last"
	[[ $status -ne 0 ]]
	expect "[E_GUARD] this kernel or driver cannot be guarded: "
	run bash -c 'ulimit -n 12; ctr-gpu-guard load'
	[[ $status -ne 0 ]]
	expect "[EMFILE] "
	ctr-gpu-guard load
	choose chosen 1:a1
	holds in_cgroup chosen "$clients/enumerate" 1:a1 -- 1:a2
}

# strict: what a plan for one adapter is by it, in $output and $status
strict() {
	mkdir -p "$BATS_TEST_TMPDIR/rootfs"
	echo '{"choice": "strict"}' >"$BATS_TEST_TMPDIR/config.json"
	run ctr-gpu --config "$BATS_TEST_TMPDIR/config.json" configure --dry-run --device 1 "$BATS_TEST_TMPDIR/rootfs"
}

@test "where the tracing of functions is switched off nothing is held, which load, check, status and strict say; only for now" {
	local off="the tracing of functions is switched off (sysctl kernel.ftrace_enabled)"

	host one-store
	rm -f /run/ctr-gpu/guard
	run trace_functions 0
	# Linux 7.3 says: "The ftrace_enabled file is deprecated and no longer disables ftrace".
	[[ $output != *"Operation not supported"* ]] || skip "this kernel has no switch for the tracing of functions"
	expect_status 0
	for command in load check; do
		run ctr-gpu-guard "$command"
		[[ $status -ne 0 ]]
		expect "$off"
	done
	strict
	[[ $status -ne 0 ]]
	expect "[E_GUARD] the choice of GPUs cannot be held on this host: $off"
	[[ ! -e /run/ctr-gpu/guard ]]
	trace_functions 1
	ctr-gpu-guard load
	choose chosen 1:a1
	holds in_cgroup chosen "$clients/enumerate" 1:a1 -- 1:a2
	# Some kernels do not switch it off while programs are attached.
	if trace_functions 0; then
		fails 1 in_cgroup chosen "$clients/enumerate" 1:a1 -- 1:a2
		run ctr-gpu-guard status
		expect "weakness    $off: nothing is held"
		strict
		[[ $status -ne 0 ]]
		expect "$off"
	fi
	trace_functions 1
	holds in_cgroup chosen "$clients/enumerate" 1:a1 -- 1:a2
	run ctr-gpu-guard status
	expect_not "switched off"
}

@test "the kernel is well" {
	kernel_is_well
}
