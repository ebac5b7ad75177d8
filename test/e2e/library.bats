#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# The library, as programs of others meet it: installed, found by pkg-config, linked shared and static, from C and C++. The
# programs are those of examples/.

load engines

setup_file() {
	require_root
}

setup() {
	examples=$CTR_GPU_BUILD/test/examples
	stage=$CTR_GPU_BUILD/test/stage
	libdir=$(dirname "$(find "$stage" -name libctr-gpu.a)")
}

# example PROFILE NAME [ARGUMENT…]: run it on a simulated host, with the library that is installed
example() {
	local profile=$1 name=$2
	shift 2

	run sandbox "$profile" env LD_LIBRARY_PATH="$libdir" "$examples/$name" "$@" 2>&1
}

# installed ARGUMENT…: what pkg-config knows of the installed library
installed() {
	PKG_CONFIG_SYSROOT_DIR=$stage PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config "$@" ctr-gpu
}

# "NAME NODE" of what the library exports, and of what its map says
exports() {
	readelf --dyn-syms --wide "$CTR_GPU_BUILD/lib/libctr-gpu.so.0" |
		awk '$5 == "GLOBAL" && $7 != "UND" && $7 != "ABS" { sub("@@", " ", $8); print $8 }' | LC_ALL=C sort
}

mapped() {
	awk '/^CTR_GPU_/ { node = $1 } /^\tctr_gpu_/ { sub(";", ""); print $1, node }' "$e2e/../../src/lib/ctr-gpu.map" | LC_ALL=C sort
}

@test "it exports what the map lists, under the map's versions, and nothing else" {
	[[ $(mapped | wc -l) -gt 30 ]]
	diff <(mapped) <(exports)
}

@test "it is called libctr-gpu.so.0 and needs the libraries that are documented" {
	run readelf --dynamic "$CTR_GPU_BUILD/lib/libctr-gpu.so.0"
	expect "Library soname: [libctr-gpu.so.0]"
	run bash -c 'sed -n "s/.*(NEEDED).*\[\(.*\)\.so\..*/\1/p" <<<"$1" | grep -vxE "libjansson|libyaml-0|libcap|libseccomp|libtirpc|libc|lib[au]*[bs]*san|libgcc_s"' - "$output"
	[[ -z $output ]]
	# The shared libtirpc would bring Kerberos along.
	if nm "$CTR_GPU_BUILD/bin/ctr-gpu-hook" | grep -q " T xdr_int$"; then
		run ldd "$CTR_GPU_BUILD/bin/ctr-gpu" "$CTR_GPU_BUILD/bin/ctr-gpu-driverd" "$CTR_GPU_BUILD/lib/libctr-gpu.so.0"
		expect_not libtirpc
		expect_not krb5
	fi
}

@test "its interface is that of the last dump, or has more" {
	require_program abidiff
	run "$e2e/../abi" check "$CTR_GPU_BUILD"
	expect_status 0
}

@test "pkg-config says its version, and where it is" {
	[[ $(installed --modversion) == "$(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$e2e/../../NEWS")" ]]
	[[ $(installed --variable=libdir) == "${libdir#"$stage"}" || $(installed --variable=libdir) == "$libdir" ]]
	[[ " $(installed --libs) " == *" -lctr-gpu "* ]]
	[[ $(installed --libs) != *jansson* ]]
	[[ $(installed --static --libs) == *-lctr-gpu*-ljansson*-lyaml*-ltirpc* ]]
}

@test "a C program lists adapters, those that cannot be used with the reason" {
	example wsl-hybrid list-adapters
	expect_status 0
	expect_line $'0\tNVIDIA\tNVIDIA GeForce RTX 4070 Laptop GPU'
	expect_line $'1\tIntel\tIntel(R) Iris(R) Xe Graphics'
	example wsl-old-driver list-adapters
	expect_status 0
	expect "E_DRIVER_TOO_OLD: its driver is WDDM 2.6"
	example plain list-adapters
	expect_status 1
	expect "[E_NO_DEVICE]"
}

@test "a static program does the same, with no library of ours" {
	[[ -e $examples/list-adapters-static ]] || skip "this build has no static programs"
	run file "$examples/list-adapters-static"
	expect "statically linked"
	run sandbox wsl-hybrid "$examples/list-adapters-static"
	expect_status 0
	expect_line $'0\tNVIDIA\tNVIDIA GeForce RTX 4070 Laptop GPU'
}

@test "a C++ program does the same" {
	example native-nvidia adapters
	expect_status 0
	expect "NVIDIA NVIDIA "
	example plain adapters
	expect_status 1
	expect "adapters: E_NO_DEVICE: no GPU here"
}

@test "a program prints the plan that ctr-gpu prints" {
	local ours theirs

	ours=$(sandbox native-nvidia ctr-gpu list --json --device 0 --capabilities compute,video)
	theirs=$(sandbox native-nvidia env LD_LIBRARY_PATH="$libdir" "$examples/plan-json" NVIDIA_VISIBLE_DEVICES=0 \
		NVIDIA_DRIVER_CAPABILITIES=compute,video)
	[[ $(jq '.devices | length' <<<"$ours") -gt 0 ]]
	diff <(echo "$ours") <(echo "$theirs")
	example native-nvidia plan-json
	expect_status 0
	[[ -z $output ]]
	example native-nvidia plan-json NVIDIA_VISIBLE_DEVICES=9
	expect_status 1
	expect "[E_UNKNOWN_DEVICE]"
}

@test "the program in libctr-gpu(3) does what the page says" {
	local program=$BATS_TEST_TMPDIR/program

	! readelf --dynamic "$CTR_GPU_BUILD/lib/libctr-gpu.so.0" | grep -q 'libasan' || skip "a sanitized library wants sanitized programs"
	sed -n '/^#include <ctr-gpu.h>/,/^\.Ed/p' "$e2e/../../man/libctr-gpu.3" | sed '$d; s/\\e/\\/g' >"$program.c"
	# shellcheck disable=SC2046 # several options
	${CC:-gcc} -std=c11 -Wall -Wextra -Werror -o "$program" "$program.c" $(installed --cflags --libs)
	run sandbox wsl-hybrid env LD_LIBRARY_PATH="$libdir" "$program"
	expect_status 0
	[[ $(jq '.adapters | length' <<<"$output") -eq 2 ]]
	run sandbox plain env LD_LIBRARY_PATH="$libdir" "$program"
	expect_status 1
	expect "[E_NO_DEVICE]"
}

@test "a program gives a container its GPUs by the container's process" {
	local directory=$BATS_TEST_TMPDIR/bundle hook=$BATS_TEST_TMPDIR/hook

	printf '#!/bin/bash\nset -e\nLD_LIBRARY_PATH=%s exec %s "$(jq .pid)" %s 0\n' "$libdir" "$examples/give-gpus" "$directory/rootfs" >"$hook"
	chmod 755 "$hook"
	bundle debian "$directory" ".hooks = {createRuntime: [{path: \"$hook\", env: [\"PATH=$PATH\"]}]}
		| .process.env = [\"PATH=/usr/sbin:/usr/bin\"]"
	run run_bundle wsl-nvidia runc "$directory"
	expect_status 0
	expect_line "cuInit=0"
	run sandbox wsl-nvidia env LD_LIBRARY_PATH="$libdir" "$examples/give-gpus" 4000000 "$directory/rootfs"
	expect_status 1
	expect "process 4000000 does not exist"
}
