#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# What bash, zsh and fish offer for a command line, held against what the programs list with --help. Each shell runs its own
# completion code; of zsh, only the last step, the display, is replaced.

load engines

setup() {
	completions=$(readlink -f "$e2e/../../completions")
	PATH=$CTR_GPU_BUILD/bin:$PATH
}

# offered SHELL LINE: what SHELL would offer at the end of LINE, sorted
offered() {
	case $1 in
	bash)
		bash -c 'source "$1/ctr-gpu.bash"
			COMP_LINE=$2 COMP_POINT=${#2}
			# Words as readline takes them apart.
			read -ra COMP_WORDS <<<"$(sed "s/[=:]/ & /g" <<<"$2")"
			[[ $2 != *" " ]] || COMP_WORDS+=("")
			COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
			_ctr_gpu
			printf "%s\n" "${COMPREPLY[@]}"' - "$completions" "$2" 2>&1
		;;
	zsh)
		zsh -f -c 'compadd() { local -a opts; zparseopts -D -E -a opts S: l d:; [[ $1 != -- ]] || shift; print -rl -- $@; }
			_files() { ls; }
			compset() { :; }
			words=(${(s: :)2})
			[[ $2 != *" " ]] || words+=("")
			CURRENT=$#words
			source $1/_ctr-gpu' - "$completions" "$2" 2>&1
		;;
	fish)
		fish --no-config -c 'source $argv[1]/ctr-gpu.fish; complete -C $argv[2]' "$completions" "$2" 2>&1 | cut -f 1
		;;
	esac | sed '/^$/d; s/=$//' | LC_ALL=C sort
}

options() {
	"$@" --help | grep -oE '^ +(-., +)?--[a-z][a-z0-9-]+' | grep -oE -- '--.*' | LC_ALL=C sort -u
}

commands() {
	"$@" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'
	"$@" --help 2>/dev/null | head -n 1 | grep -oE '[a-z-]+(\|[a-z-]+)+' | tr '|' '\n'
}

# compare SHELL PROGRAM [COMMAND…]: it and every command below it
compare() {
	local shell=$1 command
	shift

	if [[ $2 == help ]]; then
		return
	fi
	echo "$*:"
	[[ -n $(options "$@") ]]
	diff <(options "$@") <(offered "$shell" "$* --")
	for command in $(commands "$@"); do
		grep -qxF "$command" <(offered "$shell" "$* ") || { echo "$shell does not offer $command"; return 1; }
		compare "$shell" "$@" "$command"
	done
}

offers_everything() {
	require_program "$1"
	compare "$1" ctr-gpu
	diff <(ctr-gpu-hook --help | grep -oE -- '--[a-z-]+' | sort -u) <(offered "$1" "ctr-gpu-hook --")
	diff <(printf 'createRuntime\nprestart\n') <(offered "$1" "ctr-gpu-hook ")
}

@test "bash: every command and option" {
	offers_everything bash
}

@test "zsh: every command and option" {
	offers_everything zsh
}

@test "fish: every command and option" {
	offers_everything fish
}

# Names that fish and bash offer begin with what is typed already, of which bash is given only what follows : and =.
@test "names of devices are this host's" {
	local shell line

	require_root
	for shell in bash zsh fish; do
		command -v "$shell" >/dev/null || continue
		for line in "ctr-gpu list -d " "ctr-gpu list --device="; do
			run offered_on_host "$shell" "$line"
			[[ $output == *"all"* && $output == *"LUID-000000005a3f1c2b"* && $output == *"0000:01:00.0"* ]] ||
				{ echo "$shell, $line: $output"; return 1; }
		done
	done
	run offered_on_host bash "ctr-gpu list --device=0,LUID-000000005"
	[[ $output == "0,LUID-000000005a3f1c2b" ]]
	run offered_on_host bash "ctr-gpu list --device=0000:01:"
	[[ $output == "00.0" ]]
}

@test "a model'\''s name may have commas, and what a shell acts on" {
	local shell

	mkdir "$BATS_TEST_TMPDIR/bin"
	printf '%s\n' '#!/bin/sh' "[ \"\$1\" = info ] || exec $CTR_GPU_BUILD/bin/ctr-gpu \"\$@\"" "printf '%s\\n' index,backend,vendor,name,pci_address,uuid,luid,driver_store,unusable,reason \\" \
		"	'0,drm,AMD,\"Advanced Micro Devices, Inc., \$(reboot), \`id\`\",0000:0a:00.0,GPU-1b,,,,' 'npu:0,wsl,AMD,x,,,LUID-000000005a3f1c2b,,,' ',wsl,Intel,0000:07:00.0,,,,,E_NONE,no'" >"$BATS_TEST_TMPDIR/bin/ctr-gpu"
	chmod +x "$BATS_TEST_TMPDIR/bin/ctr-gpu"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH
	for shell in bash zsh fish; do
		command -v "$shell" >/dev/null || continue
		run offered "$shell" "ctr-gpu list -d "
		[[ $output == $'0\n0000:0a:00.0\nGPU-1b\nLUID-000000005a3f1c2b\nall\nnone\nnpu:0' ]] || { echo "$shell: $output"; return 1; }
	done
	if command -v fish; then
		run fish --no-config -c 'source $argv[1]/ctr-gpu.fish; complete -C "ctr-gpu list -d "' "$completions"
		expect_line $'0\tAdvanced Micro Devices, Inc., $(reboot), `id`'
		expect_line $'npu:0\tx'
	fi
	run offered bash "ctr-gpu list -d a|b&c,n"
	[[ $output == $'a|b&c,none\na|b&c,npu:0' ]]
}

@test "names of devices are offered within seconds, and silently where there is no GPU" {
	local shell began=$SECONDS

	require_root
	for shell in bash zsh fish; do
		command -v "$shell" >/dev/null || continue
		CTR_GPU_TEST_HOST=wsl-dxcore-hangs run offered_on_host "$shell" "ctr-gpu list --device="
		# A driver library has ten by default.
		[[ $output == *all* && $((SECONDS - began)) -lt 9 ]] || { echo "$shell: $((SECONDS - began)) s: $output"; return 1; }
		CTR_GPU_TEST_HOST=plain run offered_on_host "$shell" "ctr-gpu list -d "
		[[ $output == $'all\nnone' ]] || { echo "$shell: $output"; return 1; }
		# What is made exclusive is a GPU.
		CTR_GPU_TEST_HOST=plain run offered_on_host "$shell" "ctr-gpu assign --exclusive "
		[[ $output == all ]] || { echo "$shell: $output"; return 1; }
		began=$SECONDS
	done
}

offered_on_host() {
	export -f offered
	export completions
	sandbox "${CTR_GPU_TEST_HOST:-wsl-nvidia}" bash -c 'offered "$@"' - "$@"
}

@test "values that one of a few words can be" {
	local shell

	for shell in bash zsh fish; do
		command -v "$shell" >/dev/null || continue
		run offered "$shell" "ctr-gpu setup "
		[[ $output == $'containerd\ncrio\ndocker\nkubernetes\npodman\nvcuda' ]] || { echo "$shell: $output"; return 1; }
	done
	for shell in bash zsh fish; do
		command -v "$shell" >/dev/null || continue
		run offered "$shell" "ctr-gpu setup --remove "
		[[ $output == $'all\ncontainerd\ncrio\ndocker\nkubernetes\npodman\nvcuda' ]] || { echo "$shell: $output"; return 1; }
		run offered "$shell" "ctr-gpu doctor --try="
		[[ ${output//--try=/} == $'containerd\ndocker\ndocker:cdi\ndocker:gpus\ndocker:runtime\npodman\npodman:cdi\npodman:gpus\npodman:hook\npodman:runtime' ]] ||
			{ echo "$shell: $output"; return 1; }
	done
	ctr-gpu setup --help | tr '\n' ' ' | grep 'docker, podman, containerd or crio'

	for shell in bash zsh fish; do
		command -v "$shell" >/dev/null || continue
		run offered "$shell" "ctr-gpu --inventory="
		[[ ${output//--inventory=/} == $'auto\ndxcore\nioctl' ]] || { echo "$shell: $output"; return 1; }
		for capability in $(offered "$shell" "ctr-gpu list --capabilities="); do
			run ctr-gpu list --capabilities="${capability#--capabilities=}"
			expect_not "usage"
			[[ $status != 2 ]] || { echo "$shell offers $capability: $output"; return 1; }
		done
	done
}

@test "help, and a file where one is meant" {
	run offered bash "ctr-gpu help conf"
	[[ $output == configure ]]
	mkdir "$BATS_TEST_TMPDIR/rootfs"
	run offered bash "ctr-gpu configure $BATS_TEST_TMPDIR/roo"
	[[ $output == "$BATS_TEST_TMPDIR/rootfs" ]]
	touch "$BATS_TEST_TMPDIR/config.json"
	run offered bash "ctr-gpu --config=$BATS_TEST_TMPDIR/conf"
	[[ $output == *"config.json" ]]
	! command -v fish || {
		cd "$BATS_TEST_TMPDIR"
		run offered fish "ctr-gpu cdi check conf"
		expect_line config.json
	}
}
