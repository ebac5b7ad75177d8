#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=alone
#
# System calls that fail, a part of `make check-faults`: every eighth call, each with another fault. And a part of `make check-load`.
# Alone: 64 starts at once, for which others would wait until their deadlines.

load engines

setup_file() {
	require_root
	[[ $(file -L "$CTR_GPU_BUILD/bin/ctr-gpu-hook") != *interpreter* ]] || skip "a sanitizer makes calls of its own"
}

# each_call PROGRAM [FAULT…]
each_call() {
	run env "PATH=$tools_directory:$CTR_GPU_BUILD/bin:$PATH" "$e2e/sandbox" wsl-nvidia -- "$e2e/../faults/each-call" "$1" 1 "${CTR_GPU_FAULTS_STEP:-8}" "${@:2}"
	echo "$output"
	[[ ${#lines[@]} -eq 1 ]]
	[[ $output =~ ^$1:\ ([0-9]+)\ calls$ && ${BASH_REMATCH[1]} -gt 15 ]]
}

@test "configure" {
	each_call configure
}

@test "hook" {
	each_call hook
}

@test "runtime shim" {
	each_call shim
}

@test "setup" {
	each_call setup
}

@test "setup and configure, given up by ^C" {
	each_call setup interrupt
	each_call configure interrupt
}

# on_bundle SCRIPT: on a host with a bundle for all GPUs; `container` gives it a process, and the hook's $state
on_bundle() {
	run env "PATH=$tools_directory:$CTR_GPU_BUILD/bin:$PATH" "$e2e/sandbox" wsl-nvidia -- bash -c '
		root=/run/bundle/rootfs
		fresh() {
			rm -rf "$root" && mkdir -p "$root"/{etc,proc,dev} && echo "not a cache" >"$root/etc/ld.so.cache"
			echo "{\"root\": {\"path\": \"rootfs\"}, \"process\": {\"env\": [\"NVIDIA_VISIBLE_DEVICES=all\"]}}" >/run/bundle/config.json
		}
		container() {
			unshare --mount --propagation private sleep 60 &
			until [[ $(readlink "/proc/$!/ns/mnt") != "$(readlink /proc/self/ns/mnt)" ]]; do sleep 0.01; done
			state=$(printf "{\"ociVersion\": \"1.0.2\", \"id\": \"t\", \"status\": \"creating\", \"pid\": %d, \"bundle\": \"/run/bundle\"}" $!)
		}
		picture() {
			find /run/bundle "/proc/$1/root/run/bundle" -printf "%p %y %s\n" | sort
			grep -h " /run/bundle" "/proc/$1/mountinfo" /proc/self/mountinfo
		}
		fresh'"; $1"
	echo "$output"
}

@test "a limit on the size of files" {
	on_bundle 'container; picture $! >/run/before
		# Standard error is no file.
		echo "$state" | (ulimit -f 0; ctr-gpu-hook createRuntime; echo "status $?") 2>&1 | cat
		(ulimit -f 0; ctr-gpu configure "$root"; echo "status $?") 2>&1 | cat
		picture $! >/run/after; diff /run/before /run/after && echo same'
	[[ $(grep -c "^ctr-gpu.*: \[EFBIG\] cannot make /etc/ld.so.conf.d/00-ctr-gpu.conf in the container: File too large" <<<"$output") -eq 2 ]]
	[[ $(grep -c "^    The size of files is limited: raise \"ulimit -f\"" <<<"$output") -eq 2 ]]
	[[ $(grep -c "^status 1$" <<<"$output") -eq 2 ]]
	expect_line "same"
}

# What takes a change back needs descriptors, too.
@test "a limit on the number of open files" {
	on_bundle 'succeeded=0 failed=0
		for number in {6..64}; do
			fresh; container; picture $! >/run/before
			for command in "ctr-gpu-hook createRuntime" "ctr-gpu configure $root"; do
				if (ulimit -n "$number"; $command) <<<"$state" >/run/message 2>&1; then
					succeeded=$((succeeded + 1))
					[[ $command != *configure* ]] || ctr-gpu unconfigure "$root"
					kill $!; fresh; container; picture $! >/run/before
					continue
				fi
				failed=$((failed + 1))
				grep "files" /run/message >/dev/null || echo "$number: $(</run/message)"
				[[ $number -lt 6 ]] || grep -x "    The number of open files is limited: .*" /run/message >/dev/null || echo "$number: $(</run/message)"
				picture $! >/run/after; diff /run/before /run/after || echo "$number: $command leaves something"
			done
			kill $!
		done 2>/dev/null
		[[ $succeeded -lt 10 || $failed -lt 30 ]] || echo "all or nothing"'
	[[ $output == "all or nothing" ]]
}

# Of which root's own hard limit may be below what the program would set.
@test "a limit on the number of processes" {
	on_bundle '(ulimit -u 10; ctr-gpu info; echo "status $?") 2>&1'
	expect "NVIDIA GeForce RTX 4090"
	expect_line "status 0"
}

@test "a quota of the container's storage that is used up" {
	on_bundle 'container; picture $! >/run/before
		full() { strace -f -qq -o /dev/null -e trace=write,writev -e inject=writev:error=EDQUOT:when=1 -e inject=write:error=EDQUOT:when=1 "$@"; }
		full ctr-gpu-hook createRuntime <<<"$state"; echo "status $?"
		full ctr-gpu configure "$root"; echo "status $?"
		picture $! >/run/after; diff /run/before /run/after && echo same'
	[[ $(grep -c "^ctr-gpu.*: \[EDQUOT\] cannot make /etc/ld.so.conf.d/00-ctr-gpu.conf in the container: \(Disk q\|Q\)uota exceeded" <<<"$output") -eq 2 ]]
	[[ $(grep -c "^    The quota of the container's storage is used up" <<<"$output") -eq 2 ]]
	[[ $(grep -c "^status 1$" <<<"$output") -eq 2 ]]
	expect_line "same"
}

@test "the next start removes the temporary files of one that was killed" {
	on_bundle 'left=0
		for ((number = 1; ; number += 2)); do
			fresh; container
			fault "$number" kill-all ctr-gpu-hook createRuntime 9>/run/happened 2>/dev/null <<<"$state"
			kill $!
			[[ $(</run/happened) != none ]] || break
			[[ -n $(find "$root" -name ".ctr-gpu-*") ]] || continue
			left=$((left + 1)); container
			ctr-gpu-hook createRuntime <<<"$state" || echo "call $number: the next start fails"
			kill $!
			find "$root" -name ".ctr-gpu-*" -printf "call $number: %P stays\n"
		done 2>/dev/null
		[[ $left -lt 2 ]] || echo "all gone"'
	[[ $output == "all gone" ]]
}

@test "hooks that are killed while others start" {
	run env "PATH=$tools_directory:$CTR_GPU_BUILD/bin:$PATH" "$e2e/sandbox" wsl-nvidia -- "$e2e/../load/starts" 48 16
	echo "$output"
	[[ ${#lines[@]} -eq 1 && $output == "48 starts, 16 at once: "* ]]
}
