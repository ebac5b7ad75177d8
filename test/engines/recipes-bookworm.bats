#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# What README.md and docs/compose-and-editors.md say to type, with a release's own programs. "tried by: NAME" marks the blocks.
# A recipe that names a version must give a GPU from that version on, and none before it.

load engines

us=$'\037' rs=$'\036'

setup_file() {
	require_root
	use_tree
}

# tried NAME: the blocks of that mark, one a line
tried() {
	"$e2e/../docs" tried "$1"
}

# lines NAME: their lines
lines() {
	tried "$1" | cut -d "$us" -f 3- | tr "$rs" '\n' | sed '/^$/d'
}

# A shell function: runs each line, and prints "== STATUS LINE" behind what it printed.
recipes='recipes() {
	local line status

	while IFS= read -r line; do
		eval "$line" >printed 2>&1
		status=$?
		[[ $line != *nvidia-smi* || $(<printed) == *"NVIDIA GeForce RTX 4070"* ]] || status=$((status ? status : 99))
		cat printed
		echo "== $status $line"
	done <<<"$1"
}
'

# machine SCRIPT [ARGUMENT…]: a script on a laptop with an NVIDIA and an Intel GPU; $1 is a directory on a disk, $2 an image
machine() {
	local directory script=$1
	shift

	directory=$(engine_directory "machine-$BATS_TEST_NUMBER")
	sandbox wsl-hybrid bash -c '
		# As on a machine with systemd.
		sudo() { "$@"; }
		systemctl() {
			[[ $* == "restart docker" ]] || return
			stop_dockerd
			start_dockerd
		}
		directory=$1 image=$2
		cd "$directory" || exit
		'"$dockerd_functions$recipes$script" machine "$directory" "$(image debian)" "$@"
}

# expect_claims NAME: of each "== STATUS COMMAND   # ENGINE VERSION and later" in $output, and of others that they worked
expect_claims() {
	local line status version since count=0

	version=$(tree_version "$1")
	while IFS= read -r line; do
		[[ $line == "== "* ]] || continue
		count=$((count + 1))
		read -r _ status _ <<<"$line"
		since=$(sed -n 's/.* # [A-Z][a-z]* \([0-9.]*\) and later$/\1/p' <<<"$line")
		if [[ -n $since ]] && ! printf '%s\n' "$since" "$version" | sort --check=quiet --version-sort; then
			[[ $status -ne 0 ]] && continue
			echo "with version $version it works already: $line"
			return 1
		fi
		[[ $status -eq 0 ]] && continue
		printf 'with version %s it fails: %s\nin: %s\n' "$version" "$line" "$output"
		return 1
	done <<<"$output"
	[[ $count -eq $(lines "$2" | wc -l) && $count -gt 0 ]] || { echo "$count commands ran: $output"; return 1; }
}

@test "Docker: every line of the README" {
	run machine '
		start_dockerd || exit
		tar -C "$image" -c . | docker import - ubuntu >/dev/null
		recipes "$3"' "$(lines docker)"
	expect_claims docker.io docker
}

@test "Podman: every line of the README, as root and without" {
	local script=$recipes'
		printf "[containers]\nnetns = \"none\"\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n" >containers.conf
		printf "[storage]\ndriver = \"overlay\"\ngraphroot = \"%s/graph\"\nrunroot = \"%s/containers\"\n" "$PWD" "${XDG_RUNTIME_DIR:-/run}" >storage.conf
		export CONTAINERS_CONF=$PWD/containers.conf CONTAINERS_STORAGE_CONF=$PWD/storage.conf
		podman import --quiet - ubuntu >/dev/null <image.tar
		sudo() { [[ $(id -u) != 0 ]] || "$@"; }
		podman() {
			[[ $(id -u) == 0 ]] || { command podman "$@"; return; }
			memlock podman "$1" --cgroup-parent "$CTR_GPU_TEST_CGROUP" "${@:2}"
		}
		recipes "$1"'

	tar -C "$(image debian)" -c . >"$(engine_directory rootless)/image.tar"
	run machine '
		tar -C "$image" -cf image.tar .
		bash -c "$3" podman "$4"' "$script" "$(lines podman)"
	expect_claims podman podman
	# There root ran what `sudo` is for before.
	CTR_GPU_TEST_AS_ROOT="ctr-gpu setup podman" run rootless wsl-hybrid bash -c "$script" podman "$(lines podman)"
	expect_claims podman podman
}

# works_since CLAIM: whether "COMPOSE [docker DOCKER]" is met
works_since() {
	local compose docker

	read -r compose _ docker <<<"$1"
	{ printf '%s\n' "$compose" "$(tree_version docker-compose)" | sort --check=quiet --version-sort; } &&
		{ [[ -z $docker ]] || printf '%s\n' "$docker" "$(tree_version docker.io)" | sort --check=quiet --version-sort; }
}

@test "Compose: every file of the page, from the version on that it names" {
	local where claim text compose count=0 programs=(docker-compose)

	# Since 2 it is also a command of docker's.
	[[ $(tree_version docker-compose) == 1.* ]] || programs+=("docker compose")
	docker_use compose
	docker_start wsl-hybrid "" 'ctr-gpu setup docker >/dev/null && cp /etc/docker/daemon.json "$0/"'
	docker_image debian
	docker tag debian ubuntu
	while IFS=$us read -r where claim text; do
		count=$((count + 1))
		printf '%s\n' "${text//$rs/$'\n'}" >"$(engine_directory compose)/compose.yml"
		for compose in "${programs[@]}"; do
			run nsenter --mount --target "$(dockerd_pid)" -- bash -c '
				cd "$1" && printf "services:\n  app:\n    network_mode: none\n" >none.yml &&
					$2 -f compose.yml -f none.yml up --abort-on-container-exit --exit-code-from app
				status=$?
				$2 -f compose.yml -f none.yml down >/dev/null 2>&1
				exit $status' compose "$(engine_directory compose)" "$compose"
			echo "$compose: $where: $claim: $status: $output"
			if works_since "$claim"; then
				expect_status 0
				expect "NVIDIA GeForce RTX 4070"
			else
				[[ $status -ne 0 ]]
				expect_not "NVIDIA GeForce RTX 4070"
			fi
		done
	done < <(tried compose)
	docker_stop
	[[ $count -ge 4 ]]
}

@test "what Dev Containers and DevPod ask Docker for is there, if --gpus works" {
	run machine '
		mv /usr/bin/nvidia-container-runtime-hook /run/
		ctr-gpu setup docker
		mv /run/nvidia-container-runtime-hook /usr/bin/
		start_dockerd || exit
		echo "without: $(eval "$3")"
		ctr-gpu setup docker
		systemctl restart docker
		echo "with: $(eval "$3")"
		ctr-gpu setup docker | grep "everything is there"
		tar -C "$image" -c . | docker import - ubuntu >/dev/null
		docker run --rm --gpus all ubuntu nvidia-smi
		docker run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all ubuntu nvidia-smi
		ctr-gpu setup docker --remove
		[[ ! -e /etc/docker/daemon.json ]] && echo gone
		ctr-gpu setup docker
		rm -r /var/lib/ctr-gpu
		ctr-gpu setup --remove all
		grep nvidia-names /etc/docker/daemon.json || echo forgotten' "$(lines docker-info)"
	[[ $(lines docker-info) == "docker info -f"* ]]
	grep "^without: .*/usr/bin/ctr-gpu-runtime" <<<"$output"
	grep "^with: .*nvidia-container-runtime" <<<"$output"
	expect "everything is there"
	[[ $(grep -c "NVIDIA GeForce RTX 4070" <<<"$output") -ge 2 ]]
	expect_line gone
	expect_line forgotten
}

@test "Dev Containers: the command devcontainer starts a container with a GPU where its file asks for one, and without where not" {
	local tool=$BATS_FILE_TMPDIR/devcontainer text count=0

	command -v npm >/dev/null || skip "needs npm"
	npm install --no-audit --no-fund --prefix "$tool" @devcontainers/cli@0.89.0 >/dev/null 2>&1 || skip "npm cannot fetch @devcontainers/cli"
	cp -L "$(command -v node)" "$tool/node"
	mkdir "$tool/files"
	while IFS=$us read -r _ _ text; do
		count=$((count + 1))
		# This machine's daemon makes no network.
		jq '.runArgs += ["--network", "none"]' <<<"${text//$rs/$'\n'}" >"$tool/files/asks$count"
	done < <(tried devcontainer)
	[[ $count -eq 2 ]]
	jq 'del(.hostRequirements) | .runArgs = ["--network", "none"]' "$tool/files/asks1" >"$tool/files/plain"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR"
	run machine '
		ctr-gpu setup docker >/dev/null
		start_dockerd || exit
		tar -C "$image" -c . | docker import - ubuntu >/dev/null
		export HOME=/run
		devcontainer() { "$1/node" "$1/node_modules/@devcontainers/cli/devcontainer.js" "${@:2}"; }
		for file in "$3"/files/*; do
			workspace=/run/${file##*/}
			mkdir -p "$workspace/.devcontainer"
			cp "$file" "$workspace/.devcontainer/devcontainer.json"
			devcontainer "$3" up --workspace-folder "$workspace" --update-remote-user-uid-default never >up 2>&1 || cat up
			echo "${file##*/}: $(devcontainer "$3" exec --workspace-folder "$workspace" nvidia-smi -L 2>&1 | tail -n 1)"
		done' "$tool"
	echo "$output"
	[[ $(grep -c "^asks[12]: GPU 0: NVIDIA GeForce RTX 4070" <<<"$output") -eq 2 ]]
	grep "^plain: .*not found" <<<"$output"
}

@test "a build with the older builder" {
	run machine '
		start_dockerd || exit
		tar -C "$image" -c . | docker import - ubuntu >/dev/null
		mkdir /run/context && cd /run/context && echo "$3" >Dockerfile
		while IFS= read -r line; do
			eval "$line" || exit
		done <<<"$4"
		echo built' "$(lines dockerfile)" "$(lines build)"
	expect_status 0
	expect "NVIDIA GeForce RTX 4070"
	expect_line built
}

@test "a build with BuildKit, whose steps run in the shim, and nothing of it stays in the image" {
	[[ $(tree_version docker.io) != 20.* ]] || skip "Docker $(tree_version docker.io) reads no runtime for BuildKit"
	run machine '
		systemctl() {
			[[ $* == "restart docker" ]] || return 0
			stop_dockerd
			export $(sed -n "s/^Environment=//p" /etc/systemd/system/docker.service.d/*.conf)
			start_dockerd
		}
		start_dockerd || exit
		tar -C "$image" -c . | docker import - ubuntu >/dev/null
		mkdir /run/context && cd /run/context && echo "$3" >Dockerfile
		# This machine has no network, so that BuildKit makes none.
		docker() {
			local options=()

			[[ $1 != build ]] || options=(--progress plain --network none --tag built)
			command docker "$1" "${options[@]}" "${@:2}"
		}
		docker build . && echo "without: built"
		while IFS= read -r line; do
			eval "$line" || exit
		done <<<"$4"
		docker create --name built built >/dev/null
		docker export built | tar -t | grep -E "nvidia|wsl|ctr-gpu" || echo "nothing stays"' "$(lines dockerfile)" "$(lines buildkit)"
	expect_status 0
	expect "nvidia-smi: not found"
	expect_no_line "without: built"
	expect "NVIDIA GeForce RTX 4070"
	expect_line "nothing stays"
}

@test "builds with Podman and buildah: the hook runs, a CDI device does not work, and nothing stays in the image" {
	run machine '
		printf "[containers]\nnetns = \"none\"\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n" >containers.conf
		printf "[storage]\ndriver = \"overlay\"\ngraphroot = \"%s/graph\"\nrunroot = \"/run/containers\"\n" "$PWD" >storage.conf
		export CONTAINERS_CONF=$PWD/containers.conf CONTAINERS_STORAGE_CONF=$PWD/storage.conf
		tar -C "$image" -c . | podman import --quiet - ubuntu >/dev/null
		ctr-gpu setup podman >/dev/null
		mkdir /run/context && cd /run/context && echo "$3" >Dockerfile
		# Each in a cgroup of its own, and with limits that this machine has.
		count=0
		build() {
			count=$((count + 1))
			memlock "$1" build --tag built --network none --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 \
				--cgroup-parent "$CTR_GPU_TEST_CGROUP/build$count" "${@:3}"
		}
		podman() { build podman "$@"; }
		buildah() { build buildah "$@"; }
		while IFS= read -r line; do
			eval "$line" >printed 2>&1
			echo "== $? $line: $(grep "^GPU 0:" printed)"
		done <<<"$4"
		unset -f podman buildah
		memlock podman save built | tar -xO --wildcards "*.tar" | tar -t --ignore-zeros | grep -E "nvidia|wsl|ctr-gpu" || echo "nothing stays"
		build podman build --no-cache --device nvidia.com/gpu=all . >printed 2>&1
		echo "CDI: $?"
		tail -n 5 printed' "$(lines dockerfile)" "$(lines podman-build)"
	echo "$output"
	[[ $(grep -c "^== 0 .*GPU 0: NVIDIA GeForce RTX 4070" <<<"$output") -eq 4 ]]
	expect_line "nothing stays"
	expect_no_line "CDI: 0"
}

@test "buildx lists the devices of our specification" {
	[[ $(tree_version docker-buildx) == 0.2* ]] || skip "buildx $(tree_version docker-buildx) knows no devices"
	run machine '
		ctr-gpu cdi generate
		start_dockerd && docker buildx inspect'
	expect "nvidia.com/gpu=all"
	expect "intel.com/gpu=0"
}
