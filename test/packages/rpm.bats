#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
#
# The RPM packages built with the flags, directories and macros of distributions, of which test/packages/rpm has lists; the compiler and
# the libraries are this machine's. What every build has in common is in test/e2e/rpm.bats.

load ../e2e/engines

setup_file() {
	require_root
	require_program rpmbuild
	require_program eu-strip
}

# builds DISTRIBUTION: packages that a program is linked with and that run
builds() {
	local macros=$e2e/../packages/rpm/$1 out=$BATS_TEST_TMPDIR/out tree=$BATS_TEST_TMPDIR/tree libexec doc package

	"$e2e/../../pkg/make-rpm" "$out" --nocheck --without=static --load="$macros" >"$BATS_TEST_TMPDIR/log" 2>&1 ||
		{ cat "$BATS_TEST_TMPDIR/log"; tail -n 20 "$out/rpm/log"; return 1; }
	run cat "$out/rpm/log"
	expect_not "warning: "
	mkdir "$tree"
	for package in "$out"/rpm/RPMS/*/*.rpm; do
		rpm2cpio "$package" | (cd "$tree" && cpio --quiet -idmu)
	done
	[[ $(find "$out" -name '*.rpm' | wc -l) -ge 8 && -z $(find "$out" -name '*.rpm' ! -name "*-1$(sed -n 's/^%dist //p' "$macros").*.rpm") ]]
	libexec=$(sed -n 's/^%_libexecdir //p' "$macros") doc=$(sed -n 's/^%_docdir //p' "$macros")
	[[ -x $tree$libexec/ctr-gpu/ctr-gpu-driverd && -x $tree$libexec/ctr-gpu/ctr-gpu-guard && -e $tree$doc/ctr-gpu/README.md && -e $tree/usr/lib64/libctr-gpu.so.0 ]]
	[[ -x $tree$libexec/ctr-gpu/nvidia-names/nvidia-container-runtime ]]
	run grep -rl "$([[ $libexec == /usr/lib ]] && echo /usr/libexec || echo /usr/lib/ctr-gpu/ctr-gpu)" "$tree/usr/lib/systemd" "$tree/usr/share/ctr-gpu"
	[[ -z $output ]]
	gcc -o "$BATS_TEST_TMPDIR/program" -I"$tree/usr/include" "$e2e/../../examples/list-adapters.c" "$tree/usr/lib64/libctr-gpu.a" -ljansson -lyaml -ltirpc
	run sandbox wsl-nvidia bash -c 'mkdir -p /usr/libexec && cp -R "$0"/usr/. /usr/ && "$1" && /usr/bin/ctr-gpu --inventory=dxcore info' "$tree" "$BATS_TEST_TMPDIR/program"
	expect_status 0
	[[ $(grep -c "NVIDIA GeForce RTX 4090" <<<"$output") -ge 2 ]]
}

@test "Fedora 42" {
	builds fedora-42
}

@test "AlmaLinux 9" {
	builds almalinux-9
}

@test "Oracle Linux 10" {
	builds oraclelinux-10
}

@test "openSUSE Leap 15.6" {
	builds opensuse-leap-15.6
}

@test "openSUSE Tumbleweed" {
	builds opensuse-tumbleweed
}
