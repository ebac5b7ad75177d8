#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# ctr-gpu-device-plugin and a real Kubernetes on simulated hosts (kubernetes.bash).

bats_require_minimum_version 1.5.0
load ../e2e/engines

here=$(dirname "$(readlink -f "$BATS_TEST_FILENAME")")
one=GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4 two=GPU-7b10aa04-0041-0000-0000-000084ef55fb

setup_file() {
	require_root
	for program in containerd etcd kubectl jq; do
		require_program "$program"
	done
	[[ -x $CTR_GPU_BUILD/bin/ctr-gpu-device-plugin ]] || skip "ctr-gpu-device-plugin was not built"
	programs=$("$here/kubernetes-build" 3>&-)
	export programs
	image_archive debian localhost/debian:1 "$BATS_FILE_TMPDIR/image.tar"
}

# kubernetes PROFILE SCRIPT: a shell in which a node of such a host is up, with the functions of kubernetes.bash
kubernetes() {
	mkdir -p "$BATS_TEST_TMPDIR/node"
	ln -sf "$BATS_FILE_TMPDIR/image.tar" "$BATS_TEST_TMPDIR/node/image.tar"
	sandbox "$1" unshare --net bash -ec 'directory=$1 programs=$2
		source "$3"
		node_start
		eval "$4"' kubernetes "$BATS_TEST_TMPDIR/node" "$programs" "$here/kubernetes.bash" "$2"
}

@test "the plugin speaks the API that Kubernetes publishes" {
	# Every field of ours has its type and number there.
	fields() {
		sed 's,//.*,,; s/\[.*\]//' "$1" | tr -s ' \t\n' ' ' | grep -oE 'message \w+ \{[^}]*\}' |
			sed -E 's/message (\w+) \{(.*)\}/\1;\2/' | awk -F ';' '{ for (i = 2; i < NF; i++) print $1 ":" $i }' | sed -E 's/ +/ /g; s/ = /=/' | sort
	}
	fields "$here/../../cluster/device_plugin.proto" | grep -v 'CDIDevice' >"$BATS_TEST_TMPDIR/ours"
	fields "$programs/api/deviceplugin-v1beta1.proto" >"$BATS_TEST_TMPDIR/theirs"
	[[ $(wc -l <"$BATS_TEST_TMPDIR/ours") -ge 24 ]]
	run comm -23 "$BATS_TEST_TMPDIR/ours" "$BATS_TEST_TMPDIR/theirs"
	[[ -z $output ]] || { echo "not published: $output"; return 1; }
}

@test "two pods of a host with two adapters behind /dev/dxg see one each, and a third waits until one ends" {
	run kubernetes wsl-two-nvidia '
		until_true 30 offers nvidia.com/gpu 2
		for name in a b c; do pod "$name" "nvidia-smi -L | sed s/^.*UUID/UUID/; sleep 1000"; done | kubectl apply -f - >/dev/null
		until_true 60 is Running a b || until_true 1 is Running a c || is Running b c
		waiting=$(kubectl get pods -o json | jq -r ".items[] | select(.status.phase == \"Pending\").metadata.name")
		[[ $waiting == ? ]]
		running=$(tr -d "$waiting" <<<"a b c")
		for name in $running; do until_true 20 grep -q UUID <(kubectl logs "$name"); kubectl logs "$name"; done | sort
		kubectl get pod "$waiting" -o json | jq -r ".status.conditions[] | select(.type == \"PodScheduled\").message"
		kubectl delete pod --wait=false "${running:0:1}" >/dev/null
		until_true 60 is Running "$waiting"
		echo started
		pod none "ls /usr/lib/wsl/drivers /dev/dxg" "{cpu: 10m}" | kubectl apply -f - >/dev/null
		until_true 60 is Failed none; kubectl logs none | head -n 1'
	expect_status 0
	expect "UUID: $one"
	expect "UUID: $two"
	expect "Insufficient nvidia.com/gpu"
	expect started
}
