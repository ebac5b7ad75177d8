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

# kubernetes PROFILE SCRIPT [OPTION]: a shell in which a node of such a host is up, with the functions of kubernetes.bash
kubernetes() {
	mkdir -p "$BATS_TEST_TMPDIR/node"
	ln -sf "$BATS_FILE_TMPDIR/image.tar" "$BATS_TEST_TMPDIR/node/image.tar"
	sandbox "$1" unshare --net bash -ec 'directory=$1 programs=$2 node_plugin_options=$5 examples=$6
		source "$3"
		[[ "$4" == *node_start* ]] || node_start
		eval "$4"' kubernetes "$BATS_TEST_TMPDIR/node" "$programs" "$here/kubernetes.bash" "$2" "${3-}" "$here/../../examples/kubernetes"
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
		until_true 120 offers nvidia.com/gpu 2
		for name in a b c; do pod "$name" "probe; sleep 1000"; done | kubectl apply -f - >/dev/null
		until_true 120 two_run
		waiting=$(kubectl get pods -o json | jq -r ".items[] | select(.status.phase == \"Pending\").metadata.name")
		for name in a b c; do
			[[ $name == "$waiting" ]] || { until_true 30 said "$name" device=; kubectl logs "$name" | grep -E "^(count|device)="; }
		done
		kubectl get pod "$waiting" -o json | jq -r ".status.conditions[] | select(.type == \"PodScheduled\").message"
		ending=$(tr -d "$waiting" <<<abc | cut -c 1)
		kubectl delete pod --wait=false "$ending" >/dev/null
		until_true 120 is Running "$waiting"
		echo started
		pod none "ls -d /usr/lib/wsl/drivers /dev/dxg" "{cpu: 10m}" | kubectl apply -f - >/dev/null
		until_true 120 is Failed none
		kubectl logs none
		curl --silent --unix-socket /run/metrics http://localhost/metrics | grep "^ctr_gpu_device_granted" | sort' --metrics=/run/metrics
	expect_status 0
	expect_line "device=NVIDIA GeForce RTX 4090"
	expect_line "device=NVIDIA RTX A2000"
	[[ $(grep -c "^count=1$" <<<"$output") -eq 2 ]]
	expect "Insufficient nvidia.com/gpu"
	expect_line started
	expect "ls: /dev/dxg: No such file"
	[[ $(grep -cE "^ctr_gpu_device_granted\{resource=\"nvidia.com/gpu\",device=\"($one|$two)\",namespace=\"default\",pod=\"[abc]\",container=\"one\"\} 1$" <<<"$output") -eq 2 ]]
}

@test "each vendor's GPUs are a resource of its own" {
	run kubernetes wsl-hybrid '
		until_true 120 offers nvidia.com/gpu 1
		until_true 30 offers intel.com/gpu 1
		pod green "ls /usr/lib/wsl/drivers" | kubectl apply -f - >/dev/null
		pod blue "ls /usr/lib/wsl/drivers" "{intel.com/gpu: 1}" | kubectl apply -f - >/dev/null
		until_true 120 is Succeeded green blue
		kubectl logs green
		kubectl logs blue'
	expect_status 0
	diff <(grep inf_ <<<"$output") <(stores wsl-hybrid | sed 's,.*/,,' | sort -r)
}

@test "four pods on four native GPUs open one each" {
	run kubernetes native-four '
		until_true 120 offers nvidia.com/gpu 4
		for name in a b c d; do
			pod "$name" "nvidia-smi -L; for i in 0 1 2 3; do mknod /tmp/nvidia\$i c 195 \$i; (: </tmp/nvidia\$i) 2>&1 | grep -q not.permitted || echo may open \$i; done; sleep 1000"
		done | kubectl apply -f - >/dev/null
		until_true 120 is Running a b c d
		for name in a b c d; do until_true 30 said "$name" "may open"; kubectl logs "$name"; done'
	expect_status 0
	[[ $(grep "may open" <<<"$output" | sort) == $'may open 0\nmay open 1\nmay open 2\nmay open 3' ]]
	[[ $(grep -o 'UUID: .*)' <<<"$output" | sort -u | wc -l) -eq 4 ]]
}

@test "parts of a divided GPU are devices like others" {
	run kubernetes native-mig '
		until_true 120 offers nvidia.com/gpu 5
		for name in a b c d e; do pod "$name" "echo \$(ls /dev/nvidia-caps) \$(ls /dev | grep nvidia[0-9]); sleep 1000"; done | kubectl apply -f - >/dev/null
		until_true 120 is Running a b c d e
		for name in a b c d e; do until_true 30 said "$name" nvidia; kubectl logs "$name"; done'
	expect_status 0
	[[ $(grep -c '^nvidia0$' <<<"$output") -eq 1 ]]
	[[ $(grep -E '^nvidia-cap[0-9]+ .*nvidia1$' <<<"$output" | sort -u | wc -l) -eq 4 ]]
}

@test "parts of a divided GPU are asked for by their size" {
	run kubernetes native-mig '
		until_true 120 offers nvidia.com/mig-3g.71gb 1
		until_true 30 offers nvidia.com/mig-2c.3g.71gb 1
		until_true 30 offers nvidia.com/gpu 1
		pod small "echo \$(ls /dev/nvidia-caps) \$(ls /dev | grep nvidia[0-9]); sleep 1000" "{nvidia.com/mig-2c.3g.71gb: 1}" | kubectl apply -f - >/dev/null
		pod large "echo \$(ls /dev/nvidia-caps) \$(ls /dev | grep nvidia[0-9]); sleep 1000" "{nvidia.com/mig-3g.71gb: 1}" | kubectl apply -f - >/dev/null
		pod whole "echo \$(ls /dev | grep nvidia[0-9]); sleep 1000" | kubectl apply -f - >/dev/null
		pod second probe "{nvidia.com/mig-3g.71gb: 1}" | kubectl apply -f - >/dev/null
		until_true 120 is Running small large whole
		is Pending second
		for name in small large whole; do until_true 30 said "$name" nvidia; echo "$name $(kubectl logs "$name")"; done' --mig=profiles
	expect_status 0
	expect_line "whole nvidia0"
	[[ $(grep -cE '^(small|large) (nvidia-cap[0-9]+ ){2}nvidia1$' <<<"$output") -eq 2 ]]
	[[ $(sed -n 's/^small //p' <<<"$output") != "$(sed -n 's/^large //p' <<<"$output")" ]]
}

@test "pods have a slot of a GPU each by vCUDA, on as few GPUs as will do, and none can make it larger" {
	[[ -x $CTR_GPU_BUILD/bin/ctr-gpu-vcudad ]] || { echo "ctr-gpu-vcudad was not built"; return 1; }
	run kubernetes wsl-two-nvidia '
		node_vcuda 2
		node_start
		until_true 120 offers ctr-gpu.org/vgpu 4
		[[ $(node_offers capacity nvidia.com/gpu) == 0 ]]
		pod_tool=$CTR_GPU_BUILD/test/tools/vcuda-hold
		pod_env="[{name: NVIDIA_VISIBLE_DEVICES, value: all}, {name: CTR_GPU_VISIBLE_DEVICES, value: all}, {name: CTR_GPU_MODE, value: device},
			{name: CTR_GPU_MEMORY, value: 100G}, {name: CTR_GPU_SHARE, value: \"1000\"}]"
		for name in a b c d; do
			pod "$name" "tool </dev/null; ls /dev/dxg; nvidia-smi -L; sleep 1000" "{ctr-gpu.org/vgpu: 1}" | kubectl apply -f - >/dev/null
			until_true 120 is Running "$name"
			until_true 60 said "$name" UUID
			kubectl logs "$name" | grep -E "^(devices|total)=|UUID|dxg" | sed "s/^/$name /"
		done
		pod fifth "tool </dev/null; sleep 1000" "{ctr-gpu.org/vgpu: 1}" | kubectl apply -f - >/dev/null
		pod two "true" "{ctr-gpu.org/vgpu: 2}" | kubectl apply -f - >/dev/null
		until_true 60 waits fifth
		ctr-gpu vcuda list --json | jq -r ".containers[] | \"granted \(.memory) \(.share) \(.gpus | length)\""
		kubectl delete pod two a --wait=false >/dev/null
		until_true 120 is Running fifth
		until_true 60 said fifth total=
		kubectl logs fifth | sed "s/^/fifth /"
		kubectl delete pod c d --wait=true >/dev/null
		pod two "true" "{ctr-gpu.org/vgpu: 2}" | kubectl apply -f - >/dev/null
		until_true 60 is Failed two
		kubectl get pod two -o json | jq -r .status.message'
	expect_status 0
	# The first two are on one GPU, and so are the others.
	[[ $(sed -n 's/^[ab] GPU 0: .*UUID: \(.*\))/\1/p' <<<"$output" | uniq -c | tr -s ' ') =~ ^\ 2\ GPU-[^$'\n']*$ ]]
	[[ $(grep -oE "UUID: [^)]*" <<<"$output" | sort | uniq -c | awk '{ print $1 }') == $'2\n2' ]]
	[[ $(grep -c "^[a-d] devices=1$" <<<"$output") -eq 4 ]]
	[[ $(grep "^[a-d] total=" <<<"$output" | cut -d = -f 2 | sort | uniq -c | tr -s ' ') == $' 2 12884901888\n 2 4294967296' ]]
	[[ $(grep -c "/dev/dxg: No such file" <<<"$output") -eq 4 ]]
	[[ $(grep -c "^granted 100.0 GiB, at most 50% 100 1$" <<<"$output") -eq 4 ]]
	[[ $(sed -n 's/^fifth total=//p' <<<"$output") == "$(sed -n 's/^a total=//p' <<<"$output")" ]]
	expect "a container has one slot of a GPU at most"
}

@test "a GPU whose driver store vanishes is not allocatable until it is back" {
	run kubernetes wsl-two-nvidia '
		mkdir -p "$directory/stores"; cp -a /usr/lib/wsl/drivers/. "$directory/stores"
		umount /usr/lib/wsl/drivers; mount --bind "$directory/stores" /usr/lib/wsl/drivers
		until_true 120 offers nvidia.com/gpu 2
		name='"$(basename "$(store wsl-two-nvidia 1)")"'
		mv "$directory/stores/$name" "$directory/away"
		until_true 60 offers nvidia.com/gpu 1
		node_offers capacity nvidia.com/gpu
		mv "$directory/away" "$directory/stores/$name"
		until_true 60 offers nvidia.com/gpu 2
		echo back'
	expect_status 0
	expect_line 2
	expect_line back
}

@test "110 pods, two at a time, each with one GPU" {
	run kubernetes wsl-two-nvidia '
		until_true 120 offers nvidia.com/gpu 2
		for ((i = 0; i < 110; i++)); do pod "pod-$i" probe; done | kubectl apply -f - >/dev/null
		until_true 1500 count_is 110 Succeeded
		pgrep -P "${node_pids[plugin]}" | sed "s,.*,/proc/&/smaps_rollup,; \$ a/proc/${node_pids[plugin]}/smaps_rollup" |
			xargs cat | awk "/^Pss:/ { sum += \$2 } END { print \"memory=\" sum }"
		cat /var/log/pods/default_pod-*/one/*.log | grep -oE "(count|device)=.*"'
	expect_status 0
	[[ $(grep -c "^count=1$" <<<"$output") -eq 110 ]]
	[[ $(grep -c "^device=NVIDIA " <<<"$output") -eq 110 ]]
	! grep -q __asan_init "$CTR_GPU_BUILD/bin/ctr-gpu-device-plugin" || return 0
	[[ $(sed -n "s/^memory=//p" <<<"$output") -gt 0 && $(sed -n "s/^memory=//p" <<<"$output") -lt 6144 ]]
	expect_line "device=NVIDIA GeForce RTX 4090"
	expect_line "device=NVIDIA RTX A2000"
}

@test "kubelet, containerd and the plugin are killed in every order, and no GPU is lost or given twice" {
	run kubernetes wsl-two-nvidia '
		orders=("kubelet containerd plugin" "kubelet plugin containerd" "containerd kubelet plugin" "containerd plugin kubelet"
			"plugin kubelet containerd" "plugin containerd kubelet")
		until_true 120 offers nvidia.com/gpu 2
		for name in a b c; do pod "$name" "nvidia-smi -L; sleep 10000"; done | kubectl apply -f - >/dev/null
		until_true 120 two_run
		rounds='"${CTR_GPU_TEST_KILLS:-50}"'
		for ((round = 0; round < rounds; round++)); do
			before=$(registrations)
			for name in ${orders[round % 6]}; do node_kill "$name"; done
			for name in ${orders[(round / 6) % 6]}; do "node_$name"; done
			until_true 180 settled || { echo "round $round"; dump; exit 1; }
			one_each || { echo "round $round"; dump; exit 1; }
			# The one that waits takes the place of one that ends.
			((round % 5 == 4)) || continue
			ending=$(running | head -n 1)
			kubectl delete pod "$ending" >/dev/null
			until_true 120 two_run
			pod "later-$round" "nvidia-smi -L; sleep 10000" | kubectl apply -f - >/dev/null
			one_each || { echo "round $round"; dump; exit 1; }
		done
		echo "rounds: $round"'
	expect_status 0
	expect_line "rounds: ${CTR_GPU_TEST_KILLS:-50}"
}

# Lines of a page's blocks, one a line
lines_of() {
	"$e2e/../docs" tried kubernetes | cut -d $'\037' -f 2- | sed -n "s/^ $1\x1f//p" | tr '\036' '\n'
}

@test "what docs/clusters.md says to type makes a node, and a pod has a GPU" {
	local part

	for part in node pod labels daemon-set; do
		lines_of "$part" >"$BATS_FILE_TMPDIR/$part"
		[[ -s $BATS_FILE_TMPDIR/$part ]]
	done
	export shown=$BATS_FILE_TMPDIR
	run kubernetes wsl-two-nvidia '
		# What the packages install, and images that this machine has.
		mkdir -p /usr/libexec/ctr-gpu
		cp "$CTR_GPU_BUILD"/bin/ctr-gpu-{device-plugin,driverd} /usr/libexec/ctr-gpu/
		mkdir -p /run/shown/examples
		cp -r "$examples" /run/shown/examples/
		sed -i -E "s,image: .*,image: localhost/debian:1," /run/shown/examples/kubernetes/pod-*.yaml
		make() {
			[[ $* == kubernetes-image ]] && mkdir build && cp "$CTR_GPU_BUILD/kubernetes-image.tar" build/
		}
		sudo() { "$@"; }
		systemctl() {
			case $* in
				"restart containerd") node_kill containerd TERM; node_containerd ;;
				"enable --now ctr-gpu-device-plugin") node_plugin ;;
				*) return 1 ;;
			esac
		}
		typed() {
			local line
			while read -r line; do
				[[ $line != "kubectl logs "* ]] || until_true 120 is Succeeded "${line##* }"
				eval "$line"
			done <"$shown/$1"
		}
		node_bare=1 node_start
		cd /run/shown
		typed node
		until_true 60 offers nvidia.com/gpu 2
		typed pod
		typed labels >/dev/null
		cat /etc/kubernetes/node-feature-discovery/features.d/ctr-gpu
		node_kill plugin TERM
		until_true 60 offers nvidia.com/gpu 0
		typed daemon-set
		until_true 120 offers nvidia.com/gpu 2
		# The plugin that runs is the image'"'"'s.
		pgrep -a ctr-gpu-device | cut -d " " -f 2 | sort -u
		kubectl delete -f examples/kubernetes/pod-runtime-class.yaml
		typed pod'
	expect_status 0
	[[ $(grep -c "^GPU 0: NVIDIA" <<<"$output") -eq 2 ]]
	expect_line "nvidia.com/gpu.count=2"
	expect "daemonset.apps/ctr-gpu-device-plugin created"
	expect_line /ctr-gpu/ctr-gpu-device-plugin
}
