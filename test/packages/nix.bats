#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# The flake for NixOS, evaluated and built by sid's Nix in its sandbox, from a checkout in git as docs/packages.md has it. In the place of
# nixpkgs is test/packages/nixpkgs, whose packages are Debian's. The machine is test/packages/nix; the cases here read what it wrote down.

load ../e2e/engines

setup_file() {
	local tree

	require_root
	tree=$("$e2e/../engines/tree" sid nix-bin git gcc libc6-dev make pkg-config libjansson-dev libyaml-dev libtirpc-dev rpcsvc-proto \
		libcmocka-dev clang libbpf-dev libnghttp2-dev libprotobuf-c-dev protobuf-c-compiler ccache mandoc)
	mkdir "$BATS_FILE_TMPDIR/tree"
	(cd "$e2e/../.." && pkg/sources | tar --null -T - -cf -) | tar -xf - -C "$BATS_FILE_TMPDIR/tree"
	PATH=/usr/sbin:/usr/bin:/sbin:/bin "$e2e/../engines/enter" wsl-nvidia "$tree" -- "$e2e/../packages/nix" "$BATS_FILE_TMPDIR" \
		>"$BATS_FILE_TMPDIR/log" 2>&1 3>&- || { tail -n 40 "$BATS_FILE_TMPDIR/log"; return 1; }
}

# section NAME: what the machine wrote down of it
section() {
	sed -n "/^=== $1\$/,/^=== /{/^=== /!p}" "$BATS_FILE_TMPDIR/log"
}

@test "nix flake check: packages of both architectures, and a module" {
	run section check
	expect_line "exit status 0"
	expect_not "error"
	run section show
	expect_line "x86_64-linux: ctr-gpu-$(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$e2e/../../NEWS")"
	expect_line "aarch64-linux: ctr-gpu-$(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$e2e/../../NEWS")"
}

@test "nix build makes the package, with all that make install-vcuda installs, in its place" {
	local out

	run section build
	expect_line "exit status 0"
	out=$(section out)
	diff <(cd "$e2e/../.." && env -u MAKEFLAGS -u MAKELEVEL bash -c 'for package in ctr-gpu libctr-gpu0 libctr-gpu-dev ctr-gpu-guard ctr-gpu-kubernetes ctr-gpu-vcuda; do
		make -s --no-print-directory "prefix=$1" "libdir=$1/lib" STATIC=0 spank_lacks=slurm "packaged-$package"; done' - "$out" | sed "s,^${out#/}/,," | sort) \
		<(section files)
}

@test "nothing in it names a place outside of the store that is another's on NixOS" {
	run section outside
	[[ -z $output ]] || { echo "$output"; return 1; }
	[[ $(section udev) == /systemd/bin/systemctl ]]
}

@test "its programs run, and find each other" {
	run section run
	expect_line "GPU 0   NVIDIA GeForce RTX 4090"
	expect "\"path\": \"$(section out)/bin/ctr-gpu-runtime\""
	expect_no_line "no guard"
}
