#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# The RPM packages, as rpmbuild makes them on any machine, with the programs linked dynamically as on Fedora: what is in them,
# and that the programs of a tree in which they are unpacked run.

load engines

setup_file() {
	require_root
	require_program rpmbuild
	require_program eu-strip
	require_program git
	git -C "$e2e" ls-files --error-unmatch rpm.bats >/dev/null 2>&1 || skip "needs a git checkout"
	"$e2e/../../pkg/make-rpm" "$BATS_FILE_TMPDIR" --nocheck --without=static >"$BATS_FILE_TMPDIR/log" 2>&1 ||
		{ cat "$BATS_FILE_TMPDIR/log"; return 1; }
}

# rpm_of PACKAGE: the file
rpm_of() {
	echo "$BATS_FILE_TMPDIR"/rpm/RPMS/*/"$1"-[0-9]*.rpm
}

# The shared library's package is called as the distribution calls such packages.
library_package() {
	[[ -e $(rpm_of ctr-gpu-libs) ]] && echo ctr-gpu-libs || echo libctr-gpu0
}

query() {
	rpm --query --package "$@" 2>/dev/null
}

@test "each package has its files, and nobody's libraries beside them" {
	run query --list "$(rpm_of ctr-gpu)"
	expect_line "/usr/bin/ctr-gpu"
	expect_line "/usr/bin/ctr-gpu-hook"
	expect_line "/usr/libexec/ctr-gpu/ctr-gpu-driverd"
	expect_line "/usr/share/containers/oci/hooks.d/ctr-gpu.json"
	expect "/usr/share/man/man8/ctr-gpu-hook.8"
	expect_line "/usr/bin/ctr-gpu-runtime"
	expect_not "nvidia-container-runtime"
	run query --list "$(rpm_of ctr-gpu-nvidia-compat)"
	[[ $output == $'/usr/bin/nvidia-cdi-hook\n/usr/bin/nvidia-container-cli\n/usr/bin/nvidia-container-runtime\n/usr/bin/nvidia-container-runtime-hook' ]]
	run query --list "$(rpm_of "$(library_package)")"
	expect "/libctr-gpu.so.0"
	run query --list "$(rpm_of ctr-gpu-devel)"
	expect_line "/usr/include/ctr-gpu.h"
	expect "/pkgconfig/ctr-gpu.pc"
	expect_not "libctr-gpu.a"
}

@test "NVIDIA's packages are conflicts, and the libraries are required" {
	run query --conflicts "$(rpm_of ctr-gpu-nvidia-compat)"
	expect_line "nvidia-container-toolkit"
	expect_line "nvidia-container-toolkit-base"
	expect_line "libnvidia-container-tools"
	run query --requires "$(rpm_of ctr-gpu)"
	expect "libjansson.so.4()(64bit)"
	expect "libctr-gpu.so.0(CTR_GPU_0.1)(64bit)"
	run query --scripts "$(rpm_of ctr-gpu)"
	[[ -z $output ]]
}

@test "the programs run from the packages' tree" {
	local name tree=$BATS_TEST_TMPDIR/tree

	mkdir "$tree"
	for name in ctr-gpu "$(library_package)"; do
		rpm2cpio "$(rpm_of "$name")" | (cd "$tree" && cpio --quiet -idm)
	done
	run readelf -SW "$tree/usr/bin/ctr-gpu-hook"
	expect ".text"
	expect_not ".debug_info"
	run "$tree/usr/bin/ctr-gpu-hook" --version
	expect_status 0
	expect "ctr-gpu-hook $(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$e2e/../../NEWS")"
	run sandbox wsl-nvidia bash -c 'mkdir -p /usr/libexec && cp -R "$0"/usr/. /usr/ && cp -P /usr/lib64/libctr-gpu.so.0* /usr/lib/ &&
		ldconfig && /usr/bin/ctr-gpu --inventory=dxcore info' "$tree"
	expect_status 0
	expect "NVIDIA GeForce RTX 4090"
}
