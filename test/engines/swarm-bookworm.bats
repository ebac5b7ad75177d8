#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A Docker Swarm of two nodes: a daemon each on a native host with four GPUs and on a GPU-PV host, in network namespaces that
# a veth pair joins. Services have an overlay network and names in it: virtual addresses and published ports would want IPVS
# in the kernel.

load engines

node_network() {
	unshare --net --uts sleep infinity >/dev/null 2>&1 3>&- &
	echo $! >"$(engine_directory "$1")/network.pid"
	# unshare(1) is there before its namespace is.
	until [[ $(readlink "/proc/$!/ns/net") != "$(readlink /proc/self/ns/net)" ]]; do sleep 0.01; done
}

network_pid() {
	cat "$(engine_directory "$1")/network.pid"
}

in_network() {
	nsenter --net --uts --target "$(network_pid "$1")" -- "${@:2}"
}

# The ends of a pair are born in their namespaces; this machine's own network is not touched.
join_networks() {
	node_network native
	node_network wsl
	in_network native ip link add eth0 type veth peer name eth0 netns "$(network_pid wsl)"
	in_network native ip address add 192.0.2.1/24 dev eth0
	in_network wsl ip address add 192.0.2.2/24 dev eth0
	for node in native wsl; do
		in_network $node hostname $node
		in_network $node ip link set lo up
		in_network $node ip link set eth0 up
	done
}

# start_node PROFILE GPU…: a daemon whose containers all go through our runtime, and which has these GPUs to give away
start_node() {
	local profile=$1
	shift

	docker_start "$profile" "$(jq -n '{
		runtimes: {nvidia: {path: "/usr/bin/nvidia-container-runtime"}}, "default-runtime": "nvidia",
		"node-generic-resources": $ARGS.positional | map("NVIDIA-GPU=" + .)
	}' --args "$@")"
	docker_image debian
}

setup_file() {
	require_root
	use_tree
	join_networks
	docker_use native
	docker_network=$(network_pid native) start_node native-four "$(native_uuid 0)" "$(native_uuid 1)" "$(native_uuid 2)" "$(native_uuid 3)"
	docker swarm init --advertise-addr 192.0.2.1
	token=$(docker swarm join-token --quiet worker)
	docker_use wsl
	docker_network=$(network_pid wsl) start_node wsl-nvidia 0000:01:00.0
	docker swarm join --token "$token" 192.0.2.1:2377
	docker_use native
	docker network create --driver overlay tasks
}

teardown_file() {
	for node in native wsl; do
		docker_use $node
		docker_stop
		kill "$(network_pid $node)"
	done
}

setup() {
	docker_use native
}

teardown() {
	docker service rm gpu >/dev/null || true
}

# Docker 20.10 shuts down tasks with named resources when their node is updated, as it is when it gets an address in an overlay
# network ("assigned node no longer meets constraints").
create() {
	local network=(--network tasks --endpoint-mode dnsrr)

	[[ $(tree_version docker.io) != 20.10.* ]] || network=(--network host)
	docker service create --quiet --detach --no-resolve-image "${network[@]}" --restart-condition none --stop-grace-period 0s \
		--name gpu "$@"
}

# service REPLICAS GPUS COMMAND: tasks that keep what they were given
service() {
	create --replicas "$1" --generic-resource "NVIDIA-GPU=$2" debian sh -c "$3; sleep 60"
}

# wait_for COUNT TEXT COMMAND…: until the command prints so many lines with this text in it; what it prints is in $output
wait_for() {
	local count=$1 text=$2
	shift 2

	for _ in {1..300}; do
		run "$@"
		[[ $(grep -c -- "$text" <<<"$output") -lt $count ]] || return 0
		sleep 0.1
	done
	echo "there are not $count times $text in: $output"
	docker service ps --no-trunc gpu
	return 1
}

# placed COUNT NODE: so many running tasks are on this node
placed() {
	wait_for "$1" "^$2 Running" docker service ps gpu --format '{{.Node}} {{.CurrentState}}'
	[[ $(grep -c "^$2 Running" <<<"$output") -eq $1 ]]
}

@test "the nodes, and the release's engine on them" {
	run docker node ls --format '{{.Hostname}} {{.Status}} {{.EngineVersion}}'
	expect "native Ready $(tree_version docker.io)"
	expect "wsl Ready $(tree_version docker.io)"
}

@test "a service of four GPUs goes where there are four, and sees them" {
	service 1 4 "probe"
	placed 1 native
	wait_for 1 "library=/usr/lib/ctr-gpu/libcuda.so.1" docker service logs --raw gpu
	expect_line "cuInit=0"
	expect_line "count=4"
}

@test "five tasks of one GPU each: each has one of its own, on both nodes" {
	service 5 1 "nvidia-smi -L; probe"
	placed 4 native
	placed 1 wsl
	wait_for 5 "cuInit=0" docker service logs --raw gpu
	[[ $(grep -c "^count=1" <<<"$output") -eq 5 ]]
	for gpu in 0 1 2 3; do
		[[ $(grep -c "^GPU 0: .*$(native_uuid $gpu)" <<<"$output") -eq 1 ]]
	done
	expect_line "device=NVIDIA GeForce RTX 4090"
}

@test "a task for which no GPU is left is not placed" {
	service 6 1 "true"
	wait_for 1 "insufficient resources" docker service ps --no-trunc gpu
	placed 4 native
	placed 1 wsl
}

@test "a service that asks for no GPU gets none" {
	create --mode global debian sh -c 'ls /dev /usr/lib; probe; sleep 60'
	wait_for 2 "/dev/dxg=ENOENT" docker service logs --raw gpu
	expect_not nvidia
	expect_no_line wsl
	expect_not cuInit
}
