#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# `ctr-gpu setup` with the engines of other releases: what it writes is what they take, from the first run to --remove.

load engines

setup_file() {
	require_root
	use_tree
}

# machine SCRIPT: a script where the engines are; $1 is a directory on a disk, $2 an image
machine() {
	local directory

	directory=$(engine_directory machine)
	sandbox wsl-nvidia bash -ec '
		directory=$1
		'"$dockerd_functions$1" machine "$directory" "$(image debian)"
}

@test "Docker: --runtime, --gpus and --device, and CDI is turned on only where it is off" {
	run machine '
		start_dockerd
		tar -C "$2" -c . | docker import - debian >/dev/null
		ctr-gpu setup docker
		tr -d " \n" </etc/docker/daemon.json
		echo
		stop_dockerd
		dockerd --validate --config-file=/etc/docker/daemon.json
		start_dockerd
		echo "== runtime"
		docker run --rm --network=none --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all debian probe
		echo "== gpus"
		docker run --rm --network=none --gpus all debian probe
		echo "== device"
		docker run --rm --network=none --device nvidia.com/gpu=all debian probe
		ctr-gpu setup docker | grep -F "everything is there"
		ctr-gpu setup docker --remove
		[[ ! -e /etc/docker/daemon.json && -z $(ls /etc/cdi) && -z $(ls -A /var/lib/ctr-gpu 2>/dev/null) ]]
		echo gone'
	expect_status 0
	case $(tree_version docker.io) in
	2[567].*) expect_line '{"runtimes":{"nvidia":{"path":"/usr/libexec/ctr-gpu/nvidia-names/nvidia-container-runtime"}},"features":{"cdi":true}}' ;;
	*) expect_line '{"runtimes":{"nvidia":{"path":"/usr/libexec/ctr-gpu/nvidia-names/nvidia-container-runtime"}}}' ;;
	esac
	[[ $(grep -cxF "cuInit=0" <<<"$output") -eq 3 ]]
	expect_line gone
}

@test "dockerd refuses what setup refuses to write" {
	run machine '
		echo "{\"default-runtime\": \"nvidia\", \"runtimes\": {\"nvidia\": {\"path\": \"/bin/true\"}}, \"features\": {\"cdi\": true}}" >/run/daemon.json
		dockerd --validate --config-file=/run/daemon.json
		if dockerd --validate --config-file=/run/daemon.json --default-runtime=runc; then exit 1; fi
		if dockerd --validate --config-file=/run/daemon.json --feature=cdi=true; then exit 1; fi'
	expect_status 0
	expect "both as a flag and in the configuration file: default-runtime"
}

@test "Podman: --runtime, --device, and --gpus where it has that" {
	run machine '
		mkdir -p /etc/containers
		printf "[containers]\nnetns = \"none\"\npids_limit = 0\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n" >/etc/containers/containers.conf
		[[ -e /etc/containers/policy.json ]] || echo "{\"default\": [{\"type\": \"insecureAcceptAnything\"}]}" >/etc/containers/policy.json
		printf "[storage]\ndriver = \"overlay\"\ngraphroot = \"%s/graph\"\nrunroot = \"/run/containers/storage\"\n" "$1" >/run/storage.conf
		export CONTAINERS_STORAGE_CONF=/run/storage.conf
		container() { memlock podman run --cgroup-parent "$CTR_GPU_TEST_CGROUP" --rm "$@" debian probe; }
		tar -C "$2" -c . | podman import --quiet - debian >/dev/null
		ctr-gpu setup podman
		container --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all
		container --runtime crun --device nvidia.com/gpu=all
		container --runtime crun --gpus all
		ctr-gpu setup podman --remove
		[[ ! -e /etc/containers/containers.conf.d/99-ctr-gpu.conf && ! -e /etc/cdi/ctr-gpu-nvidia.json ]]
		echo gone'
	expect_status 0
	[[ $(grep -cxF "cuInit=0" <<<"$output") -eq 3 ]]
	expect_line gone
}

@test "containerd: its CRI plugin starts with what was written, into no file, its own default, and one of version 2" {
	run machine '
		starts() {
			{ printf "root = \"%s/root\"\nstate = \"/run/state\"\n" "$1"; grep -vE "^(root|state) = |address = ./run/containerd/" /etc/containerd/config.toml; } >/run/all.toml
			containerd --config /run/all.toml --address /run/socket >/run/log 2>&1 &
			soon ctr --address /run/socket version || { cat /run/log; exit 1; }
			ctr --address /run/socket plugins ls | grep -E "cri.* ok" || { ctr --address /run/socket plugins ls; cat /run/log; exit 1; }
			containerd --config /run/all.toml config dump 2>/dev/null | grep -E "runtimes.(nvidia|runc)\]|BinaryName = .*ctr-gpu-runtime"
			kill %% && wait %% || true
			echo started
		}
		mkdir -p /etc/containerd
		for layout in none default version2; do
			rm -f /etc/containerd/config.toml /run/before
			case $layout in
			default) containerd config default >/run/before ;;
			version2) printf "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = \"pause\"\n" >/run/before ;;
			esac
			[[ ! -e /run/before ]] || cp /run/before /etc/containerd/config.toml
			ctr-gpu setup containerd
			starts "$1/containerd-$layout"
			ctr-gpu setup containerd --remove
			if [[ -e /run/before ]]; then cmp /run/before /etc/containerd/config.toml; else [[ ! -e /etc/containerd/config.toml ]]; fi
		done'
	expect_status 0
	[[ $(grep -cx started <<<"$output") -eq 3 ]]
	[[ $(grep -c "runtimes.nvidia\]" <<<"$output") -eq 3 && $(grep -c "runtimes.runc\]" <<<"$output") -eq 3 ]]
	[[ $(grep -c 'BinaryName = .*/usr/bin/ctr-gpu-runtime' <<<"$output") -eq 3 ]]
}

@test "Docker without root: it is found where it runs, with files of its own, and asked to reload" {
	export CTR_GPU_TEST_AS_ROOT=''
	tar -C "$(image debian)" -c . >"$(engine_directory rootless)/image.tar"
	run rootless wsl-nvidia bash -ec '
		export DOCKER_HOST=unix://$XDG_RUNTIME_DIR/docker.sock
		sh /usr/share/docker.io/contrib/dockerd-rootless.sh --iptables=false --ip6tables=false --bridge=none >"$HOME/docker.log" 2>&1 &
		for _ in {1..1200}; do
			docker version >/dev/null 2>&1 && break
			sleep 0.05
		done
		docker import - debian <"$HOME/image.tar" >/dev/null
		# It could be root'"'"'s that is meant, but for the daemon of this user.
		ctr-gpu setup docker
		kill -HUP "$(cat "$XDG_RUNTIME_DIR/docker.pid")"
		for _ in {1..1200}; do
			[[ $(docker info --format "{{json .Runtimes.nvidia}}") == null ]] || break
			sleep 0.05
		done
		docker run --rm --network=none --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all debian probe
		ctr-gpu setup docker --remove
		[[ ! -e $HOME/.config/docker/daemon.json && ! -e $HOME/.local/state/ctr-gpu ]]
		echo gone
		kill %%
		wait %% || true'
	expect_status 0
	expect ".config/docker/daemon.json: runtimes/nvidia written"
	expect "next: kill "
	expect "the CDI spec of nvidia.com/gpu, for --device nvidia.com/gpu=all, is missing"
	expect_line "cuInit=0"
	expect_line gone
}
