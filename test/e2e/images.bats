#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Images of every shape: in each of them the program finds the driver, under the image's own loader, and a second start
# finds things as the first left them.

load engines

setup_file() {
	require_root
	require_program runc
}

# What a root filesystem holds: names, types, and the contents of files.
listing() {
	(cd "$1" && find . -printf '%y %m %p %l\n' | sort && find etc -type f -exec md5sum {} + 2>/dev/null | sort)
}

expect_gpu() {
	expect_status 0
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
	expect_line "device=NVIDIA GeForce RTX 4090"
	expect_line "library=/usr/lib/wsl/lib/libcuda.so.1"
}

starts_twice() {
	local bundle=$BATS_TEST_TMPDIR/bundle after

	bundle "$1" "$bundle"
	run run_bundle wsl-nvidia runc "$bundle"
	expect_gpu
	after=$(listing "$bundle/rootfs")
	run run_bundle wsl-nvidia runc "$bundle"
	expect_gpu
	diff <(echo "$after") <(listing "$bundle/rootfs")
}

# On a read-only root, directories that mounts need must be there; an image that is meant to be used so has them.
starts_read_only() {
	local bundle=$BATS_TEST_TMPDIR/bundle

	bundle "$1" "$bundle" '.root.readonly = true'
	run run_bundle wsl-nvidia runc "$bundle"
	expect_gpu
}

@test "debian: multiarch directories" {
	starts_twice debian
}

@test "debian, read-only" {
	starts_read_only debian
}

@test "fedora-like: /usr/lib64" {
	starts_twice fedora-like
}

@test "fedora-like, read-only" {
	starts_read_only fedora-like
}

@test "no loader cache" {
	starts_twice no-cache
}

@test "no loader cache, read-only" {
	starts_read_only no-cache
}

@test "an empty /etc" {
	starts_twice empty-etc
}

@test "no /etc" {
	starts_twice no-etc
}

# finds_after_ldconfig SETUP: with a ld.so.conf that a shell command makes, in a start and in another one of the same files
finds_after_ldconfig() {
	local bundle=$BATS_TEST_TMPDIR/bundle before

	rm -rf "$bundle"
	bundle debian "$bundle" "$(script 'probe >/dev/null && ldconfig && probe')"
	mkdir -p "$bundle/rootfs/sbin"
	cp /sbin/ldconfig "$bundle/rootfs/sbin/"
	(cd "$bundle/rootfs/etc" && eval "$1")
	before=$(cat "$bundle/rootfs/etc/ld.so.conf" 2>/dev/null) || true
	for _ in 1 2; do
		run run_bundle wsl-nvidia runc "$bundle"
		expect_gpu
	done
	[[ -z $before || $(<"$bundle/rootfs/etc/ld.so.conf") == "$before" ]]
}

@test "ldconfig in the container, whose ld.so.conf includes nothing of ours, other things, or is missing" {
	local directory

	directory=/usr/lib/$(gcc -print-multiarch)
	finds_after_ldconfig :
	finds_after_ldconfig "printf '$directory\n' >ld.so.conf; rm -r ld.so.conf.d"
	finds_after_ldconfig "printf '$directory' >ld.so.conf"
	finds_after_ldconfig "printf '# include ld.so.conf.d/*.conf\ninclude ld.so.conf.d/zz-*.conf\n$directory\n' >ld.so.conf"
	finds_after_ldconfig "rm -r ld.so.conf ld.so.conf.d"
}

@test "musl" {
	require_program musl-gcc
	starts_twice musl
}

@test "musl, read-only" {
	require_program musl-gcc
	starts_read_only musl
}

@test "driver libraries baked into the image lose to the host's" {
	starts_twice baked
	expect_not "cuInit=803"
}

@test "baked driver libraries, read-only" {
	starts_read_only baked
}

@test "5,000 libraries in the cache, which are all still found" {
	starts_twice many-libraries
	run ldconfig -C "$BATS_TEST_TMPDIR/bundle/rootfs/etc/ld.so.cache" -p
	[[ $(grep -c 'libgen[0-9]*\.so\.1 ' <<<"$output") -eq 5000 ]]
	expect "/usr/lib/wsl/lib/libcuda.so.1"
}

@test "the cache that is written is one that ldconfig reads, with nothing lost" {
	local bundle=$BATS_TEST_TMPDIR/bundle before

	bundle debian "$bundle"
	before=$(ldconfig -C "$bundle/rootfs/etc/ld.so.cache" -p | sed 1d | sort)
	run run_bundle wsl-nvidia runc "$bundle"
	expect_gpu
	run ldconfig -C "$bundle/rootfs/etc/ld.so.cache" -p
	expect_status 0
	[[ -z $(comm -23 <(echo "$before") <(sed 1d <<<"$output" | sort)) ]]
}

@test "an ldconfig that runs in the container later keeps the driver" {
	local bundle=$BATS_TEST_TMPDIR/bundle

	bundle debian "$bundle" '.process.args = ["/bin/sh", "-c", "ldconfig 2>/dev/null; probe"]'
	cp /sbin/ldconfig "$bundle/rootfs/usr/sbin/ldconfig"
	sed -i 's,PATH=/usr/bin,PATH=/usr/sbin:/usr/bin,' "$bundle/config.json"
	run run_bundle wsl-nvidia runc "$bundle"
	expect_gpu
}

@test "a baked libcuda stands in the library directory itself and the cache is gone" {
	local bundle=$BATS_TEST_TMPDIR/bundle

	bundle baked "$bundle"
	rm "$bundle/rootfs/etc/ld.so.cache"
	run run_bundle wsl-nvidia runc "$bundle"
	expect_gpu
}

@test "an image that has mount points, nodes and links where ours go" {
	local bundle=$BATS_TEST_TMPDIR/bundle

	bundle debian "$bundle"
	mkdir -p "$bundle/rootfs/usr/lib/wsl/lib" "$bundle/rootfs/opt/drivers"
	ln -s /opt/drivers "$bundle/rootfs/usr/lib/wsl/drivers"
	touch "$bundle/rootfs/usr/lib/wsl/lib/libcuda.so.1" "$bundle/rootfs/usr/bin/nvidia-smi"
	run run_bundle wsl-nvidia runc "$bundle"
	expect_gpu
}

# As runtimes do it with the mounts of config.json.
@test "a link to nowhere where our directories and nvidia-smi go: what it leads to is made in the image, nothing on the host" {
	local bundle=$BATS_TEST_TMPDIR/bundle

	bundle debian "$bundle"
	ln -s "$BATS_TEST_TMPDIR/outside" "$bundle/rootfs/usr/lib/wsl"
	ln -s ../../opt/first "$bundle/rootfs/usr/bin/nvidia-smi"
	mkdir "$bundle/rootfs/opt"
	ln -s second "$bundle/rootfs/opt/first"
	run run_bundle wsl-nvidia runc "$bundle"
	expect_status 0
	expect_gpu
	[[ ! -e $BATS_TEST_TMPDIR/outside ]]
	[[ -d $bundle/rootfs$BATS_TEST_TMPDIR/outside/lib && -f $bundle/rootfs/opt/second ]]
}
