#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
#
# The README's commands on a new machine of this file's release, as a new user types them. NAME.bats is for the release NAME; all but
# one of them are links. For each commit `make deb` leaves out the unit tests, which every night's has.

load ../e2e/engines

suite=$(basename "$BATS_TEST_FILENAME" .bats)

setup_file() {
	require_root
	[[ -n ${CTR_GPU_TEST_NIGHTLY-} ]] || export DEB_BUILD_OPTIONS=nocheck
	"$e2e/../fresh/new-machine" "$suite" >"$BATS_FILE_TMPDIR/screen" 2>&1 3>&- || { tail -n 40 "$BATS_FILE_TMPDIR/screen"; return 1; }
}

# typed COMMAND: what the screen shows for it, as if it were run now
typed() {
	output=$(awk -v prompt="\$ $1" 'index($0, prompt) == 1 { on = 1; next } on && /^=== / { exit } on' "$BATS_FILE_TMPDIR/screen")
	status=$(grep -F -- " $1" "$BATS_FILE_TMPDIR/screen" | sed -n 's/^=== \([0-9]*\) .*/\1/p' | head -n 1)
	[[ -n $status ]] || { cat "$BATS_FILE_TMPDIR/screen"; return 1; }
	expect_status 0
}

@test "$suite: every command of the README works" {
	run grep '^=== ' "$BATS_FILE_TMPDIR/screen"
	[[ ${#lines[@]} -ge 6 ]]
	[[ $output != *"=== "[1-9]* ]]
}

@test "$suite: make deb says what it installs, and how far it is" {
	typed "sudo make deb"
	# docs/first-minutes has it as it is today.
	grep -q "^Installing from the distribution: ." "$e2e/../../docs/first-minutes/$suite.txt"
	expect_line "$(grep --max-count=1 "^Installing from the distribution: " "$e2e/../../docs/first-minutes/$suite.txt")"
	expect_line "  DEB  compiling"
	[[ -z ${CTR_GPU_TEST_NIGHTLY-} ]] || expect_line "  DEB  testing"
	expect "/build/deb/ctr-gpu_"
}

@test "$suite: the doctor has nothing against the machine" {
	typed "ctr-gpu doctor"
	expect "A GPU container would work here with Docker"
	expect "yes by --gpus all"
}

@test "$suite: a container has the GPU" {
	typed "docker run --rm --gpus all ubuntu nvidia-smi"
	expect "NVIDIA GeForce RTX 4090"
}

@test "$suite: the demo shows one, and installs no more than it needs" {
	typed "sudo make demo"
	expect "The container found the GPU of its"
	expect_not "g++"
}
