# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# How a choice among the adapters of a GPU-PV host is held: what the plan says by each policy, and what "strict" refuses. This
# machine's kernel has no dxgkrnl, so nothing can be guarded here; test/guard/guard.bats has kernels where it can.

bats_require_minimum_version 1.5.0

setup() {
	here=$(dirname "$BATS_TEST_FILENAME")
	build=$(readlink -f "${CTR_GPU_BUILD:-$here/../../build}")
	PATH=$build/bin:$PATH
	mkdir -p "$BATS_TEST_TMPDIR/rootfs"
}

# plan POLICY HOST [OPTION…]: the choice in the plan
plan() {
	local policy=$1 host=$2
	shift 2
	echo "{\"choice\": \"$policy\"}" >"$BATS_TEST_TMPDIR/config.json"
	O=$build PATH=$PATH "$here/../hosts/enter" "$host" -- ctr-gpu --config "$BATS_TEST_TMPDIR/config.json" configure --dry-run --json \
		"$@" "$BATS_TEST_TMPDIR/rootfs" 2>&1
}

@test "all GPUs, or the only one, are no choice" {
	[[ $(plan strict wsl-two-nvidia | jq -c .choice) == null ]]
	[[ $(plan strict wsl-nvidia --device 0 | jq -c .choice) == null ]]
	[[ $(plan strict native-nvidia | jq -c .choice) == null ]]
}

@test "each policy's grade is in the plan, with what it stops" {
	local policy got

	for policy in store environment auto guard; do
		got=$(plan $policy wsl-two-nvidia --device 1 | jq -r '.choice | "\(.grade) \(.luids | length) \(.reason)"')
		case $policy in
		store) [[ $got == "store 0 the others' driver stores are not mounted; "* ]] ;;
		environment) [[ $got == "environment 0 "*"variables name the chosen ones"* && $got != *"no guard"* ]] ;;
		*) [[ $got == "environment 0 "*"; no guard: "* ]] ;;
		esac
	done
}

@test "only where variables hold a choice do they name GPUs" {
	[[ $(plan environment wsl-two-nvidia --device 1 | jq -c '[.environment[] | select(.name == "CUDA_VISIBLE_DEVICES") | .value]') == '["1"]' ]]
	[[ $(plan store wsl-two-nvidia --device 1 | jq -c '[.environment[] | select(.name | startswith("CUDA"))]') == '[]' ]]
}

@test "guard warns where it cannot hold, auto does not" {
	[[ $(plan guard wsl-two-nvidia --device 1 | jq -r '.warnings[]') == *"the guard cannot hold the choice of GPUs here: "* ]]
	[[ $(plan auto wsl-two-nvidia --device 1 | jq -r '.warnings[]') != *"the guard"* ]]
}

@test "strict refuses a choice that cannot be held, and names what is missing" {
	run plan strict wsl-two-nvidia --device 1
	[[ $status -ne 0 ]]
	[[ ${lines[0]} == "ctr-gpu: [E_GUARD] the choice of GPUs cannot be held on this host: "* ]]
	[[ $output == *dxgkrnl* || $output == *"brings no types along"* || $output == *"ctr-gpu-guard is not installed"* ]]
	[[ $output == *"or set \"choice\" to \"auto\""* ]]
}

# specification POLICY: what is written for a host with two GPUs, without hooks
specification() {
	echo "{\"choice\": \"$1\"}" >"$BATS_TEST_TMPDIR/config.json"
	O=$build PATH=$PATH "$here/../hosts/enter" wsl-two-nvidia -- strace -f -qq -e trace=execve -e signal=none -o "$BATS_TEST_TMPDIR/calls" \
		ctr-gpu --config "$BATS_TEST_TMPDIR/config.json" cdi generate --no-hooks --output=- 2>&1
}

@test "a specification without hooks: strict refuses it, guard warns, and the guard is not asked" {
	run specification auto
	[[ $status -eq 0 && $output != *"without hooks"* && $output == *'"name": "1"'* ]]
	run specification guard
	[[ $status -eq 0 && $output == *"without hooks a container that chooses a GPU can reach the others"* ]]
	run specification strict
	[[ $status -ne 0 && $output == *"[E_GUARD] a specification without hooks cannot hold the choice of a GPU"* ]]
	run grep -c ctr-gpu-guard "$BATS_TEST_TMPDIR/calls"
	[[ $output == 0 && -s $BATS_TEST_TMPDIR/calls ]]
}

@test "the guard's program says what this machine lacks, and needs no rights for it" {
	[[ -x $build/bin/ctr-gpu-guard ]] || skip "this build has no ctr-gpu-guard"
	[[ ! -e /sys/module/dxgkrnl ]] || skip "this machine has the driver"
	run setpriv --reuid 65534 --regid 65534 --clear-groups "$build/bin/ctr-gpu-guard" check
	[[ $status -eq 1 && $output == *BTF* ]]
	run "$build/bin/ctr-gpu-guard" load
	[[ $status -eq 1 && $output == "ctr-gpu-guard: [E_GUARD] this kernel or driver cannot be guarded: "* ]]
	run "$build/bin/ctr-gpu-guard" status
	[[ $status -eq 0 && $output == "loaded      no" ]]
	run "$build/bin/ctr-gpu-guard" allow
	[[ $status -eq 1 && $output == *"which cgroup?"* ]]
	run "$build/bin/ctr-gpu-guard" allow /tmp 1
	[[ $status -eq 1 && $output == *"/tmp is not a cgroup's directory"* ]]
	run "$build/bin/ctr-gpu-guard" nothing
	[[ $status -eq 2 ]]
}
