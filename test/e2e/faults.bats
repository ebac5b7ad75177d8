#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# System calls that fail, a part of `make check-faults`: every eighth call, each with another fault. And a part of `make check-load`.

load engines

setup_file() {
	require_root
	[[ $(file -L "$CTR_GPU_BUILD/bin/ctr-gpu-hook") != *interpreter* ]] || skip "a sanitizer makes calls of its own"
}

each_call() {
	run env "PATH=$tools_directory:$CTR_GPU_BUILD/bin:$PATH" "$e2e/sandbox" wsl-nvidia -- "$e2e/../faults/each-call" "$1" 1 "${CTR_GPU_FAULTS_STEP:-8}"
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

@test "hooks that are killed while others start" {
	run env "PATH=$tools_directory:$CTR_GPU_BUILD/bin:$PATH" "$e2e/sandbox" wsl-nvidia -- "$e2e/../load/starts" 48 16
	echo "$output"
	[[ ${#lines[@]} -eq 1 && $output == "48 starts, 16 at once: "* ]]
}
