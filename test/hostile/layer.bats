#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# A container's layer is cleaned when it has ended (src/apply/layer.c). By then the container had it for itself: nothing that it
# left there has anything removed that was not made by its start, in the layer or outside.

load ../e2e/engines

setup_file() {
	require_root
	require_program runc
	image debian >/dev/null
}

setup() {
	here=$(engine_directory "layer-$BATS_TEST_NUMBER")
	bundle debian "$here/bundle" '.root.path = "../merged"'
	mv "$here/bundle/rootfs" "$here/lower"
	mkdir -p "$here/merged"
}

# aftermath SCRIPT BETWEEN: a container runs SCRIPT to its end; on the host BETWEEN is done, with the container's files at merged; then
# the hook is told of the end. What is in the layer, and in the directory beside it, is in $output.
aftermath() {
	rm -rf "$here"/{upper,work,outside} "$here/bundle/ctr-gpu.layer"
	mkdir -p "$here"/{upper,work,outside}
	jq --arg script "$1" '.process.args = ["/bin/sh", "-c", $script]' "$here/bundle/config.json" >"$here/new"
	mv "$here/new" "$here/bundle/config.json"
	run sandbox wsl-nvidia bash -c '
		cd "$0" && mount -t overlay -o lowerdir="$0/lower",upperdir="$0/upper",workdir="$0/work" overlay merged || exit
		jq --arg path "$CTR_GPU_TEST_CGROUP/container" ".linux.cgroupsPath = \$path" bundle/config.json >new && mv new bundle/config.json
		(cd bundle && memlock runc --root /run/runtime run container) || exit
		[[ -s bundle/ctr-gpu.layer ]] || exit 3
		eval "$1" || exit 4
		printf "{\"ociVersion\": \"1.0.2\", \"id\": \"container\", \"status\": \"stopped\", \"bundle\": \"%s\"}" "$0/bundle" | ctr-gpu-hook poststop || exit 5
		[[ ! -e bundle/ctr-gpu.layer ]] || echo kept
		cd upper && find . -mindepth 1 -printf "%P %y %l\n" | sort && cd ../outside && find . -mindepth 1 -printf "outside %P %y %l\n" | sort
	' "$here" "${2:-true}"
	expect_status 0
}

# The directories that engines compare by their times, and nothing in them
expect_bare() {
	[[ $(grep -v ' d $' <<<"$output") == "${1-}" ]]
	expect_not wsl
	for directory in etc etc/ld.so.conf.d usr usr/bin usr/lib; do
		[[ $(stat -c '%Y %a %u' "$here/upper/$directory") == $(stat -c '%Y %a %u' "$here/lower/$directory") ]]
	done
}

@test "nothing stays, and the image's cache is seen again" {
	aftermath 'nvidia-smi -L' 'touch -d @1000000000 lower/etc lower/usr/bin'
	expect "GPU 0: NVIDIA"
	output=$(grep -v '^GPU' <<<"$output")
	expect_bare
}

@test "what the container wrote stays: a file, a link and a directory in the places of ours" {
	aftermath 'rm /usr/bin/nvidia-smi && echo mine >/usr/bin/nvidia-smi; echo mine >/etc/ld.so.conf.d/00-ctr-gpu.conf; echo full >/usr/lib/wsl/drivers/full'
	expect_line "usr/bin/nvidia-smi f "
	expect_line "etc/ld.so.conf.d/00-ctr-gpu.conf f "
	expect_line "usr/lib/wsl/drivers/full f "
	expect_no_line "usr/lib/wsl/lib d "
	[[ $(<"$here/upper/etc/ld.so.conf.d/00-ctr-gpu.conf") == mine ]]
	aftermath 'busybox rm -f /usr/bin/nvidia-smi; busybox ln -s /bin/cat /usr/bin/nvidia-smi'
	expect_line "usr/bin/nvidia-smi l /bin/cat"
}

@test "a second name of our files keeps the content, and a file of the image is not removed with ours" {
	aftermath 'busybox ln /etc/ld.so.conf.d/00-ctr-gpu.conf /second && busybox ln /etc/ld.so.cache /third'
	expect_line "second f "
	expect_line "third f "
	expect_no_line "etc/ld.so.cache f "
	grep -q wsl "$here/upper/second"
}

@test "directories on the way become links that lead out" {
	aftermath 'true' 'rm -rf merged/etc/ld.so.conf.d && mkdir outside/lib && ln -s /usr/lib/wsl/lib/nvidia-smi outside/nvidia-smi &&
		cp lower/etc/ld.so.cache outside/ && ln -s "$0/outside" merged/etc/ld.so.conf.d && cp upper/etc/ld.so.cache outside/00-ctr-gpu.conf &&
		rm -rf merged/usr/bin && ln -s ../../../outside merged/usr/bin && rmdir merged/usr/lib/wsl/lib && rm -rf merged/usr/lib/wsl && ln -s "$0/outside" merged/usr/lib/wsl'
	expect_line "outside lib d "
	expect_line "outside nvidia-smi l /usr/lib/wsl/lib/nvidia-smi"
	expect_line "outside 00-ctr-gpu.conf f "
	expect_line "usr/bin l ../../../outside"
}

@test "something is mounted there" {
	aftermath 'true' 'mkdir outside/lib && mount --bind outside merged/usr/lib/wsl && mkdir outside/etc && touch outside/etc/ld.so.cache && mount --bind outside/etc merged/etc'
	expect_line "outside lib d "
	expect_line "outside etc/ld.so.cache f "
	expect_line "usr/lib/wsl/lib d "
}

@test "another process lives on the same root filesystem: all stays" {
	aftermath 'true' 'chroot merged /usr/bin/sleep 600 & soon grep -qx sleep "/proc/$!/comm"'
	expect_line kept
	expect_line "usr/lib/wsl/lib d "
}

@test "an ldconfig that ran in the container, by another name: its libraries stay in the cache, and ours do not" {
	aftermath 'true' 'mkdir merged/opt && cp merged/usr/lib/x86_64-linux-gnu/libm.so.6 merged/opt/ 2>/dev/null || cp merged/usr/lib/*/libm.so.6 merged/opt/
		echo /opt >>merged/etc/ld.so.conf && ldconfig -r merged'
	run ldconfig -C "$here/upper/etc/ld.so.cache" -p
	expect "/opt/libm.so.6"
	expect_not wsl
}

@test "a list that root has not written, or that says where it must not" {
	aftermath 'true' 'chown 65534 bundle/ctr-gpu.layer'
	expect_line "usr/lib/wsl/lib d "
	expect_line kept
	aftermath 'true' 'mkdir outside/empty && printf "ctr-gpu layer 1\0r%s\0\0d/../outside/empty\0\0d/\0\0d/usr/lib\0\0x/usr\0\0f" "$0/merged" >bundle/ctr-gpu.layer'
	expect_line "outside empty d "
	[[ -d $here/lower/usr/lib ]]
	aftermath 'true' 'mkdir -p outside/full && printf "ctr-gpu layer 1\0r/\0\0d%s/outside/full\0\0" "$0" >bundle/ctr-gpu.layer'
	expect_line "outside full d "
}

@test "a directory is swapped for a link that leads out while the layer is cleaned" {
	aftermath 'true' 'mkdir outside/lib && ln -s "$0/outside" merged/usr/lib/other && cp bundle/ctr-gpu.layer list
		perl -e "require \"syscall.ph\"; syscall(SYS_renameat2(), -100, \$ARGV[0], -100, \$ARGV[1], 2) while 1" merged/usr/lib/wsl merged/usr/lib/other &
		for ((round = 0; round < ${CTR_GPU_TEST_STARTS:-20}; round++)); do
			mkdir -p merged/usr/lib/wsl/lib merged/usr/lib/other/lib
			cp list bundle/ctr-gpu.layer
			printf "{\"ociVersion\": \"1.0.2\", \"id\": \"container\", \"status\": \"stopped\", \"bundle\": \"%s\"}" "$0/bundle" | ctr-gpu-hook poststop || exit
			[[ -d outside/lib ]] || exit 6
		done
		kill $! && cp list bundle/ctr-gpu.layer'
	expect_line "outside lib d "
}
