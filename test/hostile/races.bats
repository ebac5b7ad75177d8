#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# Somebody who shares a container's root filesystem, or a volume in it, changes it while the shim writes config.json and the runtime
# makes the container, or while hooks of CDI specs work in it. $CTR_GPU_TEST_STARTS starts each, few unless it is set; a thousand take a
# quarter of an hour.

load ../e2e/engines

setup_file() {
	require_root
	require_program runc
	require_program crun
	image debian >/dev/null
}

setup() {
	rounds=${CTR_GPU_TEST_STARTS:-8}
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
	# Or nothing was tried.
	expect_no_line "0 of $rounds started"
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

# seen_outside: names, types, modes, sizes and links' targets
seen_outside() {
	find "$outside" -printf '%P %y %m %s %l\n' | sort
}

# cdi_hooks PLACE OTHER: what specs of nvidia-ctk have engines run at the stage createContainer, in the container's mount namespace before
# its root is changed to, while PLACE of the root filesystem, a directory, and OTHER beside it, a link that leads out, change places. How
# many of the hooks did their work is in $output.
cdi_hooks() {
	local before

	mkdir -p "$outside/nvidia" "$outside/dri" "$here/rootfs/usr/lib/here"
	chmod 700 "$outside" "$outside/dri"
	echo mine | tee "$outside/link" "$outside/ld.so.cache" "$outside/liba.so" >/dev/null
	touch "$here/rootfs/usr/lib/here/liba.so.1"
	before=$(seen_outside)
	run unshare --mount --propagation private bash -c '
		for directory in /etc /usr; do
			mount --bind "$directory" "$directory" && mount -o remount,bind,ro "$directory" || exit
		done
		cd "$1" && mount -t tmpfs dev rootfs/dev && mkdir -m 700 rootfs/dev/dri || exit
		echo "{\"root\": {\"path\": \"rootfs\"}, \"process\": {\"env\": []}}" >config.json
		ln -sfn "$2" "rootfs/$4" || exit
		perl -e "require \"syscall.ph\"; syscall(SYS_renameat2(), -100, \$ARGV[0], -100, \$ARGV[1], 2) while 1" "rootfs/$3" "rootfs/$4" &
		hook() {
			printf "{\"ociVersion\": \"1.0\", \"id\": \"x\", \"status\": \"creating\", \"pid\": 0, \"bundle\": \"%s\"}" "$PWD" |
				timeout 20 "$CTR_GPU_BUILD/bin/nvidia-cdi-hook" "$@" 2>/dev/null && worked=$((worked + 1))
		}
		worked=0
		for ((round = 0; round < $5; round++)); do
			hook create-symlinks --link new::/etc/link --link new::/usr/lib/here/link
			hook update-ldcache --folder /usr/lib/here
			hook create-soname-symlinks --folder /usr/lib/here
			hook chmod --mode 755 --path /dev/dri
			hook update-application-profile
		done
		kill $! && wait $! 2>/dev/null
		find rootfs -name link -type l -printf "inside: %f\n" -quit
		echo "$worked worked"
	' cdi_hooks "$here" "$outside" "$1" "$2" "$rounds"
	echo "$output"
	expect "inside: link"
	expect_no_line "0 worked"
	[[ $(seen_outside) == "$before" && $(<"$outside/link")$(<"$outside/ld.so.cache") == minemine ]] || {
		diff <(echo "$before") <(seen_outside)
		return 1
	}
}

@test "a peer swaps directories for links while hooks of CDI specs work: nothing outside is made, written or changed" {
	cdi_hooks etc other
	cdi_hooks usr/lib/here usr/lib/there
	cdi_hooks usr usr-other
	cdi_hooks dev/dri dev/other
}
