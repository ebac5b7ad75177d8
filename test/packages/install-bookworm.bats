#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# The Debian packages on a machine of a release that has container engines and nothing of ours: installed by its apt, with
# what they depend on and no more, on a simulated WSL2 host. One machine lives through it all, in test/packages/machine; the
# cases here read what it wrote down. NAME-SUITE.bats is for that release; all but one of them are links.

load ../e2e/engines
load packages

suite=${BATS_TEST_FILENAME##*-}
suite=${suite%.bats}

setup_file() {
	local packages=(docker.io podman crun runc procps iptables) tree image

	require_root
	[[ $suite == bookworm ]] || packages+=(docker-cli)
	tree=$("$e2e/../engines/tree" "$suite" "${packages[@]}")
	# As a later release would be: the same files under a higher version.
	mkdir "$BATS_FILE_TMPDIR/now" "$BATS_FILE_TMPDIR/next"
	for name in libctr-gpu0 ctr-gpu ctr-gpu-nvidia-compat; do
		cp "$debs/$name"_[0-9]*.deb "$BATS_FILE_TMPDIR/now/"
		raise "$BATS_FILE_TMPDIR/now/$name"_[0-9]*.deb "$BATS_FILE_TMPDIR/next/$name.deb"
	done
	for name in nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools; do
		nvidia_package "$name"
	done
	image=$(image debian)
	tar -C "$image" -c . >"$BATS_FILE_TMPDIR/image.tar"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR"
	PATH=/usr/sbin:/usr/bin:/sbin:/bin "$e2e/../engines/enter" wsl-nvidia "$tree" -- \
		"$e2e/../packages/machine" "$BATS_FILE_TMPDIR" "$CTR_GPU_BUILD/test/tools" >"$BATS_FILE_TMPDIR/log" 2>&1 3>&- ||
		{ tail -n 40 "$BATS_FILE_TMPDIR/log"; return 1; }
}

# A package of NVIDIA's name, and a program that ours have, too.
nvidia_package() {
	local tree=$BATS_FILE_TMPDIR/nvidia program=nvidia-container-runtime-hook

	[[ $1 != *-base ]] || program=nvidia-container-runtime
	[[ $1 != *-tools ]] || program=nvidia-container-cli
	rm -rf "$tree"
	mkdir -p "$tree/DEBIAN" "$tree/usr/bin" "$BATS_FILE_TMPDIR/nvidia-debs"
	printf '#!/bin/sh\n' >"$tree/usr/bin/$program"
	chmod 755 "$tree/usr/bin/$program"
	printf '%s\n' "Package: $1" "Version: 1.17.8-1" "Architecture: all" "Maintainer: nobody <nobody@localhost>" \
		"Description: has a program of the same name" >"$tree/DEBIAN/control"
	dpkg-deb --root-owner-group -b "$tree" "$BATS_FILE_TMPDIR/nvidia-debs/$1.deb" >/dev/null
}

# section NAME: what the machine wrote down of it
section() {
	sed -n "/^=== $1\$/,/^=== /{/^=== /!p}" "$BATS_FILE_TMPDIR/log"
}

expect_gpu() {
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
	expect_line "device=NVIDIA GeForce RTX 4090"
}

@test "$suite: apt explains the conflict with packages of NVIDIA's, and changes nothing before it is told to" {
	run section conflict
	expect "The following packages will be REMOVED:"
	for name in nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools; do
		expect "$name"
		expect_line "still: $name installed"
	done
	expect "Abort."
	expect_line "nvidia-container-runtime-hook is nvidia-container-toolkit's"
}

@test "$suite: told to, apt removes them and leaves none of their programs" {
	run section exchange
	expect_line "exit status 0"
	expect_line "nvidia-container-runtime-hook is ctr-gpu-nvidia-compat's"
	expect_line "nvidia-container-runtime is ctr-gpu-nvidia-compat's"
	expect_line "nvidia-container-cli is ctr-gpu-nvidia-compat's"
}

@test "$suite: apt install ./*.deb brings what is missing, and nothing fails without systemd" {
	run section install
	expect_line "exit status 0"
	expect_line "ctr-gpu: installed"
	expect_line "libctr-gpu0: installed"
	expect_line "ctr-gpu-nvidia-compat: installed"
	expect_not "not found"
	expect_line "GPU 0   NVIDIA GeForce RTX 4090"
}

@test "$suite: docker run --gpus all, with a daemon that was started and no other step" {
	run section "docker without"
	expect "could not select device driver"
	run section docker
	expect_gpu
}

@test "$suite: Podman finds the hook" {
	run section "podman without"
	expect_line "/dev/dxg=ENOENT"
	run section podman
	expect_gpu
}

@test "$suite: upgraded, downgraded, installed again" {
	for step in upgrade downgrade reinstall; do
		run section "$step"
		expect_line "exit status 0"
		expect_line "the unit that was disabled is disabled"
		expect_line "{\"inventory\": \"ioctl\"}"
		expect_line "GPU 0   NVIDIA GeForce RTX 4090"
		expect_line "default: nvidia"
		expect_line "no file was added or lost"
	done
	run section upgrade
	expect "+next"
	run section downgrade
	expect_not "version: *+next"
}

@test "$suite: a configuration that cannot be taken back keeps the package" {
	run section refuse
	expect "daemon.json:"
	expect "ctr-gpu setup --remove all"
	expect_line "exit status 100"
	expect_line "ctr-gpu: installed"
}

@test "$suite: removed, engines that were set up run containers: the Docker that runs, one started anew, root's Podman; and users' files are as before" {
	run section setup
	expect_line "/dev/dxg=ok"
	run section remove
	expect_line "Docker runs it"
	expect_line "Docker runs it after a restart"
	expect_line "Podman runs it"
	expect_line "{}"
	expect "alice: podman: /home/alice/.config/containers/containers.conf.d/99-ctr-gpu.conf: removed"
}

@test "$suite: removed, CDI specs go and the administrator's settings stay" {
	run section remove
	expect_line "exit status 0"
	expect_line "/etc/ctr-gpu/config.json"
	expect_line "/etc/cdi/mine.json"
	expect_line "/etc/cdi/ctr-gpu-mine.json"
	expect_no_line "/etc/cdi/ctr-gpu-nvidia.json"
	expect_not "/usr/bin"
	expect_not "hooks.d"
}

@test "$suite: purged, nothing of ours is left" {
	run section purge
	expect_line "exit status 0"
	expect_line "left: /etc/cdi"
	expect_line "left: /etc/cdi/mine.json"
	expect_line "left: /etc/cdi/ctr-gpu-mine.json"
	# A directory that setup has made stays, as others may have begun to use it.
	expect_line "left: /etc/containers/containers.conf.d"
	[[ $(grep -c '^left:' <<<"$output") == 4 ]] || { echo "$output"; return 1; }
}
