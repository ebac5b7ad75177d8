#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# Arch's recipe, built by makepkg and installed and removed by pacman, both of Debian sid, with Arch's flags and sid's compiler and
# libraries. One machine lives through it all, in test/packages/arch; the cases here read what it wrote down.

load ../e2e/engines

setup_file() {
	local tree version

	require_root
	tree=$("$e2e/../engines/tree" sid pacman-package-manager makepkg gcc libc6-dev make pkg-config libjansson-dev libyaml-dev libtirpc-dev \
		rpcsvc-proto libcmocka-dev clang libbpf-dev libnghttp2-dev libprotobuf-c-dev protobuf-c-compiler ccache fakeroot git file procps \
		libarchive-tools zstd mandoc)
	version=$(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$e2e/../../NEWS")
	cp -a "$e2e/../../pkg/arch" "$BATS_FILE_TMPDIR/recipe"
	(cd "$e2e/../.." && pkg/sources | tar --null -T - --transform "s,^,ctr-gpu-$version/," -czf "$BATS_FILE_TMPDIR/recipe/ctr-gpu-$version.tar.gz")
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR"
	# What is compiled here before is not compiled again.
	[[ -z ${CCACHE_DIR-} ]] || cp -a "$CCACHE_DIR" "$BATS_FILE_TMPDIR/ccache"
	PATH=/usr/sbin:/usr/bin:/sbin:/bin "$e2e/../engines/enter" wsl-nvidia "$tree" -- "$e2e/../packages/arch" "$BATS_FILE_TMPDIR" >"$BATS_FILE_TMPDIR/log" 2>&1 3>&- ||
		{ tail -n 40 "$BATS_FILE_TMPDIR/log"; return 1; }
}

# section NAME: what the machine wrote down of it
section() {
	sed -n "/^=== $1\$/,/^=== /{/^=== /!p}" "$BATS_FILE_TMPDIR/log"
}

# packed RECIPE-PACKAGE…: what pkg/files says of these, with Arch's directories; an archive is left out where there is a shared library
packed() {
	local package

	for package; do
		env -u MAKEFLAGS -u MAKELEVEL make -s --no-print-directory -C "$e2e/../.." prefix=/usr libdir=/usr/lib libexecdir=/usr/lib STATIC=0 spank_installed= "packaged-$package"
	done | sed '/\.a$/d; s,^usr/share/man/.*,&.gz,'
}

# fakeroot(1) of sid says now and then that a payload was not recognized, of any package, and the packages are whole: the next cases look at them.
@test "makepkg makes the packages, and complains of nothing" {
	run grep -nE "warning: |WARNING: |error: " <(section makepkg | grep -v "WARNING: Skipping dependency checks\|^libfakeroot internal error: payload not recognized!")
	[[ -z $output ]] || { head <<<"$output"; return 1; }
	run section makepkg
	expect "Finished making: ctr-gpu"
	expect_line "exit status 0"
}

@test "each package has its files, and its pages are compressed" {
	local package

	for package in ctr-gpu-guard ctr-gpu-kubernetes ctr-gpu-vcuda ctr-gpu-nvidia-compat; do
		diff <(packed "$package" | sort) <(section "files $package")
	done
	diff <({ packed ctr-gpu libctr-gpu0 libctr-gpu-dev; echo usr/share/libalpm/hooks/ctr-gpu.hook; } | sort) <(section "files ctr-gpu")
}

@test "they depend on each other, and NVIDIA's names conflict" {
	run section "info ctr-gpu"
	expect_line "depend = jansson"
	expect_no_line "depend = ctr-gpu"
	run section "info ctr-gpu-nvidia-compat"
	expect_line "depend = ctr-gpu"
	expect_line "conflict = nvidia-container-toolkit"
	run section "info ctr-gpu-guard"
	expect_line "depend = libbpf"
}

@test "pacman installs them, every file is as it was, and the programs run" {
	run section install
	expect_line "exit status 0"
	expect_not "error"
	run section check
	[[ $(grep -c " 0 altered files" <<<"$output") -eq 5 ]]
	run section info
	expect_line "GPU 0   NVIDIA GeForce RTX 4090"
	[[ $(grep -c "^/usr/lib/ctr-gpu/" <<<"$output") -ge 3 ]]
}

@test "a configuration that cannot be taken back keeps the package; else nothing of ours is left" {
	run section refuse
	expect "daemon.json"
	expect "failed to commit transaction"
	expect_line "exit status 1"
	expect_line "still: /usr/bin/ctr-gpu"
	run section remove
	expect_line "exit status 0"
	expect_line '{"debug": true}'
	expect_line "left: /etc/cdi/ctr-gpu-mine.json"
	[[ $(grep -c '^left:' <<<"$output") -eq 1 ]]
}
