#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=long
# shellcheck disable=SC2016,SC2154
#
# Every hostile shape of a root filesystem (shapes) through every door: none does anything to the host. Each shape and each door
# is tried with some of the volumes and user namespaces; with CTR_GPU_SHAPES=1, as in `make check-hostile`, with all of them. And
# races that such a volume makes possible.

load ../e2e/engines

setup_file() {
	require_root
	require_program runc
	image debian >/dev/null
}

shapes() {
	local SHAPES_IMAGE

	SHAPES_IMAGE=$(image debian)
	export SHAPES_IMAGE
	sandbox wsl-nvidia "$BATS_TEST_DIRNAME/shapes" "$1" "${CTR_GPU_SHAPES:-11}"
}

# bats test_tags=kernel
@test "hostile shapes, hook" {
	shapes hook
}

@test "hostile shapes, shim" {
	shapes shim
}

@test "hostile shapes, CDI" {
	shapes cdi
}

# bats test_tags=kernel
@test "hostile shapes, configure by hand" {
	shapes configure
}

# What is swapped is a directory of the root filesystem with files of the attacker's and a link to the shared volume. Whichever of the two
# the hook finds at which moment, bytes that it read in one must not come to lie over the other.
@test "the way to the cache and to the driver's directories is swapped while hooks run" {
	run sandbox wsl-nvidia bash -ec '
		image=$1 bundle=/run/bundle mine=/run/bundle/rootfs/mine
		mkdir -p "$bundle" /run/host/{etc/ld.so.conf.d,wsl/lib,wsl/drivers}
		echo host >/run/host/etc/ld.so.cache
		mount --bind /run/host /run/host
		mount --make-shared /run/host
		cp -a "$image" "$bundle/rootfs"
		cd "$bundle/rootfs"
		mkdir -p volume mine/{etc/ld.so.conf.d,wsl/lib,wsl/drivers}
		cp etc/ld.so.cache mine/etc
		ln -s /volume/etc mine/etc.other
		ln -s /volume/wsl mine/wsl.other
		rm -rf etc usr/lib/wsl
		ln -s mine/etc etc
		ln -s ../../mine/wsl usr/lib/wsl
		cd "$bundle"
		runc spec
		jq --arg hook "$(command -v ctr-gpu-hook)" --arg cgroup "$CTR_GPU_TEST_CGROUP/race" "
			.process.terminal = false | .process.rlimits = [] | .process.args = [\"/usr/bin/busybox\", \"true\"]
			| .process.env = [\"NVIDIA_VISIBLE_DEVICES=all\"] | .linux.cgroupsPath = \$cgroup | .root.readonly = false
			| .linux.rootfsPropagation = \"rshared\" | .linux.namespaces |= map(select(.type != \"network\"))
			| .mounts += [{destination: \"/volume\", type: \"bind\", source: \"/run/host\", options: [\"rbind\", \"ro\", \"rshared\"]}]
			| .hooks.prestart = [{path: \$hook, args: [\"ctr-gpu-hook\", \"prestart\"], env: [\"LANG=C\"]}]" config.json >new
		mv new config.json
		list() {
			find /run/host -printf "%P %y %m %U:%G %s %T@ %C@\n" | sort
			cat /run/host/etc/ld.so.cache
			cut -d " " -f 3- /proc/self/mountinfo
		}
		list >/run/before
		for name in etc wsl; do
			perl -e "require q(syscall.ph); syscall(SYS_renameat2(), -100, \$ARGV[0], -100, \$ARGV[1], 2) while 1" "$mine/$name" "$mine/$name.other" &
		done
		found=0 started=0
		for ((round = 0; round < ${2:-75}; round++)); do
			memlock runc --root /run/runtime run race >/run/output 2>&1 && started=$((started + 1))
			grep -q E_VOLUME /run/output && found=$((found + 1))
			list | cmp -s - /run/before || { list | diff /run/before - | head -n 20; echo "round $round" && exit 1; }
		done
		echo "started $started refused $found"
	' race "$(image debian)" "$([[ ${CTR_GPU_SHAPES-} == 1 ]] && echo 600)"
	echo "$output"
	expect_status 0
	expect "started "
	# Both must have been met, or nothing was tried.
	expect_not "started 0 "
	expect_not " refused 0"
}
