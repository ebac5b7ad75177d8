#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# ctr-gpu-device-plugin and newer releases of containerd, which Debian's next releases have: 1.7 with the real kubelet, 2 with the test's own
# (kubelet.py), which speaks CRI v1; Kubernetes 1.20 does not.

bats_require_minimum_version 1.5.0
load ../e2e/engines

here=$(dirname "$(readlink -f "$BATS_TEST_FILENAME")")

setup_file() {
	require_root
	for program in containerd etcd kubectl jq debootstrap; do
		require_program "$program"
	done
	[[ -x $CTR_GPU_BUILD/bin/ctr-gpu-device-plugin ]] || skip "ctr-gpu-device-plugin was not built"
	programs=$("$here/kubernetes-build" 3>&-)
	older=$("$here/../engines/tree" trixie containerd 3>&-)
	newer=$("$here/../engines/tree" sid containerd 3>&-)
	export programs older newer
	image_archive debian localhost/debian:1 "$BATS_FILE_TMPDIR/image.tar"
}

# node TREE SCRIPT: on a host with two adapters, with the functions of kubernetes.bash and that release's containerd
node() {
	mkdir -p "$BATS_TEST_TMPDIR/node"
	ln -sf "$BATS_FILE_TMPDIR/image.tar" "$BATS_TEST_TMPDIR/node/image.tar"
	run sandbox wsl-two-nvidia unshare --net bash -ec 'directory=$1 programs=$2 node_engine=$3 examples=$4 kubelet=$5
		source "$6"
		eval "$7"' node "$BATS_TEST_TMPDIR/node" "$programs" "$1" "$here/../../examples/kubernetes" "$e2e/kubelet.py" "$here/kubernetes.bash" "$2"
}

one_each() {
	[[ $(grep -oE "device=.*" <<<"$output" | sort) == $'device=NVIDIA GeForce RTX 4090\ndevice=NVIDIA RTX A2000' ]]
	[[ $(grep -c "count=1$" <<<"$output") -eq 2 ]]
}

@test "containerd 1.7 and a real kubelet: pods have a GPU each by CDI, with the engine's own runtime, and by mounts" {
	node "$older" '
		node_cdi=true
		mkdir -p /etc/containerd
		ctr-gpu cdi generate >/dev/null
		node_start
		until_true 120 offers nvidia.com/gpu 2
		grep "containers are told" "$directory/plugin.log"
		for name in a b; do pod_class= pod "$name" "probe; sleep 1000"; done | kubectl apply -f - >/dev/null
		until_true 120 is Running a b
		for name in a b; do until_true 30 said "$name" device=; kubectl logs "$name" | grep -E "^(count|device)="; done'
	expect_status 0
	expect "containerd 1.7"
	[[ $output == *1.7.* ]]
	expect "told their devices by: cdi,annotations"
	one_each
	node "$older" '
		node_start
		until_true 120 offers nvidia.com/gpu 2
		grep "containers are told" "$directory/plugin.log"
		for name in a b; do pod "$name" "probe; sleep 1000"; done | kubectl apply -f - >/dev/null
		until_true 120 is Running a b
		for name in a b; do until_true 30 said "$name" device=; kubectl logs "$name" | grep -E "^(count|device)="; done'
	expect_status 0
	expect "told their devices by: mounts"
	one_each
}

@test "containerd 2: containers made with the plugin's answer have a GPU each, by whichever strategy" {
	node "$newer" '
		mkdir -p /run/node "$directory" /run/var/lib/{upper,work}
		mount -t overlay -o lowerdir=/var/lib,upperdir=/run/var/lib/upper,workdir=/run/var/lib/work overlay /var/lib
		for place in /etc/cni /etc/containerd /etc/cdi; do
			mkdir -p "$place"
			mount -t tmpfs -o mode=755 tmpfs "$place"
		done
		node_network
		node_take_engine "$node_engine"
		ctr-gpu cdi generate >/dev/null
		node_cdi=true
		node_containerd_file
		ctr-gpu setup containerd >/dev/null
		node_containerd
		ctr -n k8s.io image import --local --snapshotter "${node_snapshotter:-overlayfs}" "$directory/image.tar" >/dev/null ||
			{ tail "$directory/containerd.log"; exit 1; }
		for strategy in cdi annotations mounts environment cdi,annotations,mounts,environment; do
			handler=
			case $strategy in mounts | environment) handler=nvidia ;; esac
			/usr/bin/python3 "$kubelet" "$CTR_GPU_BUILD/bin/ctr-gpu-device-plugin" "$directory/plugins" cri nvidia.com/gpu "$strategy" \
				/run/containerd/containerd.sock "$handler" probe | sed "s/^/$strategy /"
		done
		/usr/bin/python3 "$kubelet" "$CTR_GPU_BUILD/bin/ctr-gpu-device-plugin" "$directory/plugins" cri nvidia.com/gpu \
			cdi,annotations,mounts,environment /run/containerd/containerd.sock nvidia probe | sed "s/^/all /"'
	expect_status 0
	[[ $output =~ containerd.*\ [v]?2\.[0-9] ]]
	for strategy in cdi annotations mounts environment cdi,annotations,mounts,environment all; do
		[[ $(grep "^$strategy [01] " <<<"$output" | grep -E "(count|device)=" | cut -d " " -f 2- | sort) == \
			$'0 count=1\n0 device=NVIDIA GeForce RTX 4090\n1 count=1\n1 device=NVIDIA RTX A2000' ]] || { echo "$strategy: $output"; return 1; }
	done
}
