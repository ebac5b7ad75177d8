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
	[[ $output == *"ctr-gpu: [E_GUARD] the choice of GPUs cannot be held on this host: "* ]]
	[[ $output == *dxgkrnl* || $output == *"brings no types along"* || $output == *"ctr-gpu-guard is not installed"* ]]
	[[ $output == *"or set \"choice\" to \"auto\""* ]]
}

# in_info POLICY HOST WORDS: whether ctr-gpu info ends with a line of them
in_info() {
	echo "{\"choice\": \"$1\"}" >"$BATS_TEST_TMPDIR/config.json"
	run "$here/../hosts/enter" "$2" -- ctr-gpu --config "$BATS_TEST_TMPDIR/config.json" info
	echo "$output"
	[[ $(grep '^choice' <<<"$output") == $3 ]]
}

@test "info says which grade this host holds, and why not a harder one" {
	in_info store wsl-two-nvidia 'choice  store; no guard: "choice" in the configuration'
	in_info environment wsl-two-nvidia 'choice  environment; no guard: "choice" in the configuration'
	in_info guard wsl-two-nvidia 'choice  environment; no guard: *[a-z]*'
	in_info auto wsl-two-nvidia 'choice  environment; no guard: *[a-z]*'
	in_info strict wsl-two-nvidia 'choice  refused, strict; *[a-z]*'
	in_info strict wsl-nvidia ''
	in_info strict native-nvidia ''
	# The NPU is a choice, the only GPU is not.
	in_info auto wsl-amd-npu 'choice  environment; no guard: *[a-z]*'
	in_info strict wsl-amd-npu 'choice  refused, strict; *[a-z]*'
	in_info strict wsl-qualcomm ''
	run "$here/../hosts/enter" wsl-amd-npu -- ctr-gpu doctor -v
	[[ $output == *"a choice of GPUs is not held: "* ]]
	run "$here/../hosts/enter" wsl-nvidia -- ctr-gpu doctor -v
	[[ $output != *"a choice of GPUs"* ]]
	echo '{"choice": "strict"}' >"$BATS_TEST_TMPDIR/config.json"
	run "$here/../hosts/enter" wsl-two-nvidia -- ctr-gpu --config "$BATS_TEST_TMPDIR/config.json" info --json
	[[ $(jq -c '.choice | [.grade, .strict, (.why | length > 9)]' <<<"$output") == '[null,true,true]' ]]
	run "$here/../hosts/enter" wsl-nvidia -- ctr-gpu info --json
	[[ $(jq -c '[has("choice"), .choice]' <<<"$output") == '[true,null]' ]]
}

@test "the guard's program is asked once a boot; what is kept is root's, and for this program and driver alone" {
	[[ -e /sys/kernel/btf/vmlinux ]] || skip "without the kernel's types nobody is asked"
	[[ -x $build/bin/ctr-gpu-guard ]] || skip "this build has no ctr-gpu-guard"
	run "$here/../hosts/enter" wsl-two-nvidia -- bash -c '
		kept=/run/ctr-gpu/guard
		asks() {
			strace -f -qq -e trace=execve -o /run/ctr-gpu/trace ctr-gpu "$@" >/run/ctr-gpu/said 2>&1
			echo "$(grep -c ctr-gpu-guard /run/ctr-gpu/trace) $(grep -c "no guard: the kernel is odd" /run/ctr-gpu/said)"
		}
		plan() { asks configure --dry-run --device 1 "$1"; }
		mkdir -p -m 700 /run/ctr-gpu && rm -f $kept
		echo "first $(plan "$0")"
		echo "again $(plan "$0")"
		echo "info $(asks info)"
		stat -c "kept %a %U" $kept
		sed -i "2s/.*/the kernel is odd/" $kept; cp $kept /run/ctr-gpu/odd; echo "believed $(plan "$0")"
		other() { cp /run/ctr-gpu/odd $kept; "$@"; plan "$0"; }
		echo "boot $(other sed -i "1s/^..../0000/" $kept)"
		echo "driver $(other sed -i "1s/.$/7/" $kept)"
		echo "program $(other sed -i "1s/ [0-9]*:/ 1:/" $kept)"
		echo "cut $(other truncate -s 20 $kept)"
		echo "writable $(other chmod o+w $kept)"; chmod o-w $kept
		echo "owner $(other chown 1000 $kept)"; chown 0 $kept
		cp /run/ctr-gpu/odd $kept; ctr-gpu --debug refresh >/dev/null 2>&1; echo "refreshed $(plan "$0")"
	' "$BATS_TEST_TMPDIR/rootfs"
	echo "$output"
	[[ $output == "first 1 0
again 0 0
info 0 0
kept 600 root
believed 0 1
boot 1 0
driver 1 0
program 1 0
cut 1 0
writable 1 0
owner 1 0
refreshed 0 0" ]]
}

@test "what keeps the guard's program from answering is not kept: it may be mended before the next boot" {
	[[ -e /sys/kernel/btf/vmlinux ]] || skip "without the kernel's types nobody is asked"
	[[ -x $build/bin/ctr-gpu-guard ]] || skip "this build has no ctr-gpu-guard"
	run "$here/../hosts/enter" wsl-two-nvidia -- bash -c '
		mkdir -p -m 700 /run/ctr-gpu && rm -f /run/ctr-gpu/guard
		printf "#!/bin/sh\necho \"ctr-gpu-guard: \$(cat /run/ctr-gpu/says)\" >&2\nexit 1\n" >/run/ctr-gpu/program
		chmod 755 /run/ctr-gpu/program && mount --bind /run/ctr-gpu/program "$1/ctr-gpu-guard"
		for says in "error while loading shared libraries: libbpf.so.1" "[ENOMEM] Cannot allocate memory" "[E_GUARD] the kernel is odd"; do
			echo "$says" >/run/ctr-gpu/says
			ctr-gpu configure --dry-run --device 1 "$0" | grep -cF "no guard: ctr-gpu-guard: $says"
			ls /run/ctr-gpu/guard 2>/dev/null || echo none
		done
	' "$BATS_TEST_TMPDIR/rootfs" "$build/bin"
	echo "$output"
	[[ $output == "1
none
1
none
1
/run/ctr-gpu/guard" ]]
}

@test "that files or memory are short says nothing of the kernel, and is not kept" {
	local error

	[[ -e /sys/kernel/btf/vmlinux ]] || skip "without the kernel's types nobody is asked"
	[[ -x $build/bin/ctr-gpu-guard ]] || skip "this build has no ctr-gpu-guard"
	for error in EMFILE ENFILE ENOMEM; do
		run "$here/../hosts/enter" wsl-two-nvidia -- bash -c '
			mkdir -p -m 700 /run/ctr-gpu && rm -f /run/ctr-gpu/guard
			strace -f -qq -o /dev/null -P /sys/kernel/btf/vmlinux -e trace=openat -e inject=openat:error="$1" \
				ctr-gpu configure --dry-run --device 1 "$0"
			ls /run/ctr-gpu/guard 2>/dev/null || echo none
		' "$BATS_TEST_TMPDIR/rootfs" "$error"
		echo "$output"
		[[ $output == *"no guard: ctr-gpu-guard: [$error] "* && ${lines[-1]} == none ]]
	done
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
	[[ $status -eq 1 && $output == *"/tmp is no cgroup that can have a choice"* ]]
	run "$build/bin/ctr-gpu-guard" allow /tmp none
	[[ $status -eq 1 && $output == *"/tmp is no cgroup that can have a choice"* ]]
	run "$build/bin/ctr-gpu-guard" allow /tmp
	[[ $status -eq 1 && $output == "ctr-gpu-guard: [E_BAD_ARGUMENT] which adapters? "* ]]
	run "$build/bin/ctr-gpu-guard" allow /tmp none 1
	[[ $status -eq 1 && $output == *"none is not a LUID"* ]]
	run "$build/bin/ctr-gpu-guard" nothing
	[[ $status -eq 2 ]]
}

@test "the guard's program does nothing with arguments that it does not know" {
	local words

	[[ -x $build/bin/ctr-gpu-guard ]] || skip "this build has no ctr-gpu-guard"
	for words in "unload --help" "--help"; do
		# shellcheck disable=SC2086
		run "$build/bin/ctr-gpu-guard" $words
		[[ $status -eq 0 && ${lines[0]} == "usage: ctr-gpu-guard load "* ]]
	done
	for words in "unload --dry-run" "unload now" "load --json" "status --jsn" "check all" "forget /tmp /tmp" "allow /tmp --verbose 1"; do
		# shellcheck disable=SC2086
		run "$build/bin/ctr-gpu-guard" $words
		[[ $status -eq 2 && $output == "ctr-gpu-guard ${words%% *}: '"*"' is unknown, or one argument too many" ]]
	done
}
