#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# Somebody who shares a container's root filesystem, or a volume in it, changes it while the shim writes config.json and the runtime
# makes the container. $CTR_GPU_TEST_ROUNDS starts each, few unless it is set.

load ../e2e/engines

setup_file() {
	require_root
	require_program runc
	require_program crun
	image debian >/dev/null
}

setup() {
	rounds=${CTR_GPU_TEST_ROUNDS:-8}
	here=$BATS_TEST_TMPDIR/bundle
	outside=$BATS_TEST_TMPDIR/outside
	mkdir -p "$outside"
	bundle debian "$here" 'del(.hooks)'
}

# race RUNTIME SWAPPER [PREPARATION]: starts, each after a shell command in the bundle and while another runs there. How many
# containers ran, and what appeared outside, is in $output.
race() {
	run sandbox wsl-nvidia bash -c '
		cd "$1" || exit
		mkdir -p /etc/ctr-gpu && echo "{\"runtimes\": [\"$2\"]}" >/etc/ctr-gpu/config.json
		jq --arg path "$CTR_GPU_TEST_CGROUP/container" ".linux.cgroupsPath = \$path" config.json >config.first || exit
		started=0
		for ((round = 0; round < $3; round++)); do
			eval "$4" || exit
			cp config.first config.json || exit
			setsid bash -c "$5" >/dev/null 2>&1 &
			swapper=$!
			until [[ -e ready ]]; do sleep 0.01; done
			rm ready
			timeout 20 memlock ctr-gpu-runtime --root /run/runtime run "container-$round" </dev/null 2>/dev/null | grep -q "^/dev/dxg=ok" && started=$((started + 1))
			kill "$swapper"
			wait "$swapper" 2>/dev/null
			timeout 20 "$2" --root /run/runtime delete --force "container-$round" >/dev/null 2>&1
			find "$6" -mindepth 1 -printf "outside: %P %y\n" | sort
		done
		echo "$started of $3 started"
	' race "$here" "$1" "$rounds" "${3-:}" "$2" "$outside"
	echo "$output" | sort | uniq -c
	expect "started"
}

# swapper WHEN A B: a peer that exchanges two names of the root filesystem: "always", or from the moment at which the shim has
# written config.json
swapper() {
	printf 'exec perl -e '\''require "syscall.ph"; sub swap { syscall(SYS_renameat2(), -100, $ARGV[1], -100, $ARGV[2], 2) }
		my $last = (stat("config.json"))[1];
		open(my $ready, ">", "ready"); close($ready);
		while (1) {
			my $now = (stat("config.json"))[1] // $last;
			if ($ARGV[0] ne "always" && $now == $last) { next }
			my $text = ""; if (open(my $file, "<", "config.json")) { local $/; $text = <$file> }
			$last = $now;
			if ($ARGV[0] ne "always" && $text !~ /ctr-gpu-hook|dxg/) { next }
			while (1) { swap }
		}'\'' %s %s %s' "$@"
}

peer_swaps() {
	race "$1" "$(swapper written rootfs/usr/lib/wsl rootfs/usr/lib/other)" \
		"rm -rf rootfs/usr/lib/wsl rootfs/usr/lib/other; mkdir rootfs/usr/lib/wsl; ln -s '$outside' rootfs/usr/lib/other"
	expect_not "outside: "
}

@test "a peer swaps a directory of the driver for a link: nothing is made outside" {
	both peer_swaps
}

peer_swaps_etc() {
	race "$1" "$(swapper always rootfs/etc rootfs/other)" \
		"rm -rf rootfs/other; ln -s '$outside' rootfs/other"
	expect_not "outside: "
	[[ -d $here/rootfs/etc || -d $here/rootfs/other ]]
}

@test "a peer swaps the directory of the loader's files for a link: nothing is written outside" {
	both peer_swaps_etc
}
