# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the tests of the guard share, in a guest (test/guard/run): the adapters that there are, cgroups with a choice among them, and
# clients of theirs.

# shellcheck source=test/e2e/engines.bash
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/engines.bash"
clients=$CTR_GPU_BUILD/test/guard
module=/sys/module/dxgkrnl/parameters
PATH=$CTR_GPU_BUILD/bin:$tools_directory:$PATH

guest_setup() {
	[[ -n $CTR_GPU_GUEST ]] || return
	mountpoint -q /sys/fs/bpf || mount -t bpf -o mode=700 bpf /sys/fs/bpf
}

# trace_functions 0|1: whether the kernel lets functions be traced
trace_functions() {
	sysctl --quiet --write "kernel.ftrace_enabled=$1"
}

# host PROFILE [VARIANT]: other adapters, and no guard: its programs keep the driver from being unloaded
host() {
	trace_functions 1
	ctr-gpu-guard unload >/dev/null 2>&1 || true
	"$(dirname "${BASH_SOURCE[0]}")/load" "$@"
}

guarded_host() {
	host "$@" && ctr-gpu-guard load
}

# luid HIGH:LOW: as programs of ours print it, without their prefix
luid() {
	printf '%08x%08x' "$((16#${1%:*}))" "$((16#${1#*:}))"
}

# choose CGROUP LUID…|none: makes a cgroup, and says which adapters its processes may use
choose() {
	local directory=/sys/fs/cgroup/$1 luid luids=()
	shift

	mkdir -p "$directory"
	for luid in "$@"; do
		[[ $luid == none ]] || luid=$(luid "$luid")
		luids+=("$luid")
	done
	ctr-gpu-guard allow "$directory" "${luids[@]}"
}

# in_cgroup CGROUP COMMAND…
in_cgroup() (
	echo 0 >"/sys/fs/cgroup/$1/cgroup.procs" && exec "${@:2}"
)

# holds COMMAND…: a client, all of whose lines are good. Another program for each look takes longer in an emulator than the client itself.
holds() {
	output=$("$@" 2>&1) && status=0 || status=$?
	echo "$*:"
	[[ $'\n'$output != *$'\n'[!o]* ]] || grep -v '^ok' <<<"$output" || true
	expect_status 0
	[[ $'\n'$output == *$'\nok'* && $'\n'$output != *$'\nnot ok'* ]]
}

# fails LINES COMMAND…: a client of whose lines so many, or more, are not
fails() {
	run "${@:2}"
	echo "${*:2}:"
	grep -v '^ok' <<<"$output" || true
	[[ $(grep -c '^not ok' <<<"$output") -ge $1 ]]
}

# messages HIGH:LOW: how many have left the guest for this adapter
messages() {
	local wanted adapter count

	printf -v wanted '%08x:%08x' "$((16#${1%:*}))" "$((16#${1#*:}))"
	while read -r adapter count; do
		[[ $adapter != "$wanted" ]] || echo "$count"
	done <"$module/messages"
}

has_messages() {
	[[ $(messages "$1") -gt 0 ]]
}

# soon COMMAND…: it succeeds within the minutes that an emulator may take
soon() {
	for _ in {1..2000}; do
		"$@" && return
		sleep 0.1
	done
	return 1
}

# sees_only CGROUP SEEN HIDDEN: in every way of asking, and nothing is sent to the hidden one
sees_only() {
	local before mode

	before=$(messages "$3")
	for mode in "" --int80; do
		# shellcheck disable=SC2086
		holds in_cgroup "$1" "$clients/enumerate" $mode "$2" -- "$3"
		# shellcheck disable=SC2086
		holds in_cgroup "$1" "$clients/guess" $mode "$2" -- "$3"
	done
	[[ $(messages "$3") == "$before" ]]
}

# preemption: how the kernel preempts itself; nothing if it does not say
preemption() {
	mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
	[[ ! -e /sys/kernel/debug/sched/preempt ]] || sed 's/.*(\(.*\)).*/\1/' /sys/kernel/debug/sched/preempt
}

# preempt MODE: it does so that way from now on
preempt() {
	[[ $(preemption) == "$1" ]] || echo "$1" >/sys/kernel/debug/sched/preempt
}

# Of a kernel that preempts itself: --more, for race.
race_options() {
	[[ $(preemption) != @(lazy|full) ]] || echo --more
}

# The kernel has met nothing that it should not have.
kernel_is_well() {
	run dmesg
	! grep -E 'BUG:|Oops|WARNING:|general protection|refcount_t|KASAN|hung task' <<<"$output"
}
