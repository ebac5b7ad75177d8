# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
#
# Container engines for bats files: each in directories of its own, with a socket of its own, inside a simulated host
# (see `sandbox`), so that nothing of this machine's engines is used and nothing remains.
#
# A file's name says the cgroup version: the cases in NAME.bats run with what the machine has, and through a link
# NAME-cgroup2.bats once more with version 2. For each commit those alone that are tagged "cgroup", for which the version matters: an
# engine's first container, since with version 2 its device rules are a BPF program and no list; each case that opens a forbidden
# device, or undoes or repeats what was allowed; user namespaces, which may have been delegated a cgroup. The others, about files, libraries
# and words, run every night (make check-nightly). Where $engine_tree names a tree of test/engines/tree, the engines are those of
# that tree, and with them everything else that is not the kernel.

e2e=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
CTR_GPU_BUILD=$(readlink -f "${CTR_GPU_BUILD:-$e2e/../../build}")
export CTR_GPU_BUILD
# shellcheck source=test/e2e/images.bash
source "$e2e/images.bash"

# Podman 5 says on its standard error that version 1 of cgroups will not be supported for ever.
export PODMAN_IGNORE_CGROUPSV1_WARNING=1

cgroup_option=()
if [[ ${BATS_TEST_FILENAME-} == *-cgroup2.bats || -n ${engine_needs_cgroup2-} ]]; then
	cgroup_option=(--cgroup2)
fi

# ---- what every file needs ----

require_root() {
	[[ $(id -u) == 0 ]] || skip "needs root"
}

require_program() {
	command -v "$1" >/dev/null || skip "needs $1"
}

cgroup_version() {
	if [[ ${#cgroup_option[@]} -gt 0 || -e /sys/fs/cgroup/cgroup.controllers ]]; then
		echo 2
	else
		echo 1
	fi
}

# stores PROFILE: the driver stores of a simulated host's adapters, as paths, in the order of their PCI addresses
stores() {
	jq -r '.adapters | sort_by(.pci)[] | select(.store) | "/usr/lib/wsl/drivers/" + .store' "$e2e/../hosts/profiles/$1.json"
}

store() {
	stores "$1" | sed -n "$(($2 + 1))p"
}

# set_host PROFILE: what a command is put behind to run on a simulated host of its own, in $host. In a tree everything of
# ours is installed, as `make install-compat` does it, unless $engine_bare says that nothing is.
set_host() {
	if [[ -n ${engine_tree-} ]]; then
		host=(env "PATH=$tools_directory:/usr/sbin:/usr/bin:/sbin:/bin" "$e2e/../engines/enter" "${cgroup_option[@]}"
			"$1" "$engine_tree" -- bash -c '[[ -n ${engine_bare-} ]] || cp -a "$CTR_GPU_BUILD/test/engines/root/." / || exit
				exec "$@"' installed)
	else
		host=(env "PATH=$CTR_GPU_BUILD/bin:$tools_directory:$PATH" "$e2e/sandbox" "${cgroup_option[@]}" "$1" --)
	fi
}

# sandbox PROFILE COMMAND…: on a simulated host of its own
sandbox() {
	local host profile=$1
	shift

	set_host "$profile"
	"${host[@]}" "$@" 3>&-
}

# soon COMMAND…: again and again until it succeeds, on a machine that is never so busy, a minute at least. What it says is not shown.
# For scripts in a sandbox, too.
soon() {
	local _

	for _ in {1..1200}; do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	echo "not within a minute: $*" >&2
	return 1
}
export -f soon

# docker_answers [SOCKET]: for `soon`. The client takes longer to start than the daemon to make its socket, and waits there until it is served.
docker_answers() {
	[[ -S ${1:-/run/docker.sock} ]] && docker version
}
export -f docker_answers

# The files and directories of an engine, on a disk: overlayfs does not stack on every filesystem.
engine_directory() {
	local directory=$BATS_FILE_TMPDIR/$1

	mkdir -p "$directory"
	echo "$directory"
}

# ---- expectations ----

# expect TEXT: the last `run` printed this
expect() {
	[[ $output == *"$1"* ]] && return
	printf 'expected: %s\nin: %s\n' "$1" "$output"
	return 1
}

expect_not() {
	[[ $output != *"$1"* ]] && return
	printf 'not expected: %s\nin: %s\n' "$1" "$output"
	return 1
}

expect_line() {
	local line

	while IFS= read -r line; do
		[[ $line == "$1" ]] && return
	done <<<"${output//$'\r'/}"
	printf 'expected the line: %s\nin: %s\n' "$1" "$output"
	return 1
}

expect_no_line() {
	! grep -qxF -- "$1" <<<"${output//$'\r'/}" && return
	printf 'not expected the line: %s\nin: %s\n' "$1" "$output"
	return 1
}

expect_status() {
	[[ $status -eq $1 ]] && return
	printf 'expected status %s, got %s: %s\n' "$1" "$status" "$output"
	return 1
}

# What a program in a container with the GPU of wsl-nvidia must see
expect_gpu() {
	expect_status 0
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
	expect_line "device=NVIDIA GeForce RTX 4090"
	expect_line "library=/usr/lib/wsl/lib/libcuda.so.1"
	expect_line "library=$(store wsl-nvidia 0)/libcuda.so.1.1"
}

# ---- Docker ----

# docker_use NAME: of several daemons, each with a directory of its own, the one that is meant from here on
docker_use() {
	docker_name=$1
	DOCKER_HOST=unix://$(engine_directory "$1")/socket
	export DOCKER_HOST
}

# docker_start PROFILE [JSON [COMMAND]]: a daemon with this configuration that finds the hook where it looks for it, on its
# PATH; before it, a shell command that prepares the host. $docker_network is a process whose network and host name it has.
docker_start() {
	local directory host configuration=${2-}

	docker_use "${docker_name:-docker}"
	directory=$(engine_directory "$docker_name")
	[[ -n $configuration ]] || configuration='{}'
	echo "$configuration" >"$directory/daemon.json"
	# Pids of a daemon that ended with its sandbox.
	rm -rf "$directory/pid" "$directory/exec"
	set_host "$1"
	[[ -z ${docker_network-} ]] || host=(nsenter --net --uts --target "$docker_network" -- "${host[@]}")
	"${host[@]}" bash -c '
		eval "$1" || exit
		exec dockerd --data-root "$0/data" --exec-root "$0/exec" --host "unix://$0/socket" --pidfile "$0/pid" \
			--config-file "$0/daemon.json" --iptables=false --ip6tables=false --bridge=none \
			--cgroup-parent "$CTR_GPU_TEST_CGROUP" --exec-opt native.cgroupdriver=cgroupfs
	' "$directory" "${3-}" >"$directory/log" 2>&1 3>&- &
	echo $! >"$directory/sandbox.pid"
	for _ in {1..1200}; do
		docker_answers "$directory/socket" >/dev/null 2>&1 && return
		kill -0 "$(<"$directory/sandbox.pid")" 2>/dev/null || break
		sleep 0.05
	done
	echo "dockerd did not start:" && tail -n 20 "$directory/log"
	return 1
}

dockerd_pid() {
	pgrep --full -- "dockerd.* --pidfile $(engine_directory "${docker_name:-docker}")/pid" | tail -n 1
}

# Engine and client of a release belong together: the client of the tree, in the daemon's mount namespace.
docker_client() {
	local pid

	if [[ -z ${engine_tree-} ]]; then
		command docker "$@"
	else
		pid=$(dockerd_pid) && [[ -n $pid ]] && nsenter --mount --target "$pid" -- docker "$@"
	fi
}

# Docker opens the named pipe of a container's output in a thread. Where that thread does not run again, on a busy machine, before the
# container has ended, the output is lost, with status 0 (as with strace's inject=openat:delay_exit=4000000 for that open). So what
# prints nothing is run once more.
docker() {
	local output status

	if [[ $1 != run || " $* " != *" --rm "* || " $* " =~ \ (-i|-t|-ti|-it|-d|--detach|--interactive|--tty|--name|true|:)\  ]]; then
		docker_client "$@"
		return
	fi
	output=$(mktemp "$BATS_FILE_TMPDIR/output-XXXXXX")
	docker_client "$@" >"$output" && status=0 || status=$?
	if [[ $status -eq 0 && ! -s $output ]]; then
		docker_client "$@" >"$output" && status=0 || status=$?
	fi
	cat "$output"
	rm "$output"
	return "$status"
}

# docker_settings JSON: what config.json says on the daemon's host
docker_settings() {
	nsenter --mount --target "$(dockerd_pid)" -- sh -c 'mkdir -p /etc/ctr-gpu && echo "$0" >/etc/ctr-gpu/config.json' "$1"
}

docker_remove_containers() {
	docker ps --all --quiet | while read -r container; do
		docker rm --force "$container" >/dev/null </dev/null
	done
}

# docker_start_again NAME: three times; a container that had the GPU has it again, and its files do not grow
docker_start_again() {
	local first

	first=$(docker diff "$1" | sort)
	for _ in 1 2 3; do
		run docker start --attach "$1"
		expect_gpu
	done
	run docker diff "$1"
	[[ $(sort <<<"$output") == "$first" ]] || expect_line "$first"
}

docker_stop() {
	local directory pid

	directory=$(engine_directory "${docker_name:-docker}")
	[[ -s $directory/sandbox.pid ]] || return 0
	pid=$(<"$directory/sandbox.pid")
	kill -TERM "$pid" 2>/dev/null || true
	# The daemon may be the child of another shell: of setup_file's.
	for _ in {1..1200}; do
		kill -0 "$pid" 2>/dev/null || return 0
		sleep 0.05
	done
	echo "dockerd's sandbox $pid does not end"
	return 1
}

docker_image() {
	local root

	root=$(image "$1") || return
	tar -C "$root" -c . | docker import - "$1" >/dev/null
}

# An image that is made of a container with a GPU, while it runs and when it has ended, is without a GPU what it was before.
# docker_commit_is_harmless OPTION…: that give the GPU; the last test's output is in $output
docker_commit_is_harmless() {
	local look='(probe; test -d /usr/lib/ctr-gpu && ls -A /usr/lib/ctr-gpu; command -v nvidia-smi; nvidia-smi) 2>&1' before when

	before=$(docker run --rm debian sh -c "$look; true")
	for when in running ended; do
		docker run --detach --name "commit-$when" "$@" debian sh -c 'probe >/dev/null || exit; echo ready; sleep 60' >/dev/null
		until docker logs "commit-$when" | grep -q ready; do sleep 0.05; done
		[[ $when == running ]] || docker kill "commit-$when" >/dev/null
		docker commit "commit-$when" "committed-$when" >/dev/null
		run docker run --rm "committed-$when" sh -c "$look; true"
		[[ $output == "$before" ]] || {
			printf 'before: %s\n%s: %s\n' "$before" "$when" "$output"
			return 1
		}
		run docker run --rm "$@" "committed-$when" sh -c 'probe; nvidia-smi -L'
		expect_status 0
		expect_line "cuInit=0"
		expect "GPU 0: NVIDIA"
		docker rm --force "commit-$when" >/dev/null
	done
}

# What a container with a GPU leaves in its layer is what one without leaves: docker_leaves_nothing OPTION…
docker_leaves_nothing() {
	local name expected

	docker run --name left-none debian sh -c : >/dev/null
	expected=$(docker diff left-none | sort)
	docker run --name left-ended "$@" debian sh -c 'probe && echo mine >/tmp/mine && ls /usr/lib/wsl/lib >/dev/null'
	docker run --detach --name left-killed "$@" debian sleep 60 >/dev/null
	docker kill left-killed >/dev/null
	docker wait left-killed >/dev/null
	for name in left-ended left-killed; do
		run docker diff "$name"
		output=$(grep -vE ' /tmp(/mine)?$' <<<"$output" | sort) || true
		[[ $output == "$expected" ]] || {
			printf '%s: %s\n' "$name" "$output"
			return 1
		}
		run docker commit "$name" "$name"
		run docker run --rm "$name" sh -c 'ls -d /usr/lib/wsl /usr/lib/ctr-gpu /usr/bin/nvidia-smi /etc/ld.so.conf.d/*ctr-gpu*; cat /etc/ld.so.cache'
		expect_not "/usr/lib/wsl/lib"
		[[ $(grep -c 'No such file' <<<"$output") -eq 4 ]]
	done
	docker start --attach left-ended >/dev/null
	run docker diff left-ended
	expect_not wsl
}

# ---- Podman ----

# podman_configure DIRECTORY [HOOK]: configuration of its own, and our hook in a hooks directory of its own; in a tree the
# hook is installed
podman_configure() {
	local directory=$1 hook=${2:-$CTR_GPU_BUILD/bin/ctr-gpu-hook}

	mkdir -p "$directory"
	cat >"$directory/containers.conf" <<-END
		[containers]
		netns = "none"
		default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
		pids_limit = 0
		log_driver = "k8s-file"
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "none"
	END
	[[ -n ${engine_tree-} ]] || podman_hook "$directory" "$hook"
	cat >"$directory/storage.conf" <<-END
		[storage]
		driver = "overlay"
		graphroot = "$directory/graph"
		runroot = "${XDG_RUNTIME_DIR:-/run}/containers/storage"
	END
}

podman_hook() {
	mkdir -p "$1/hooks"
	echo "hooks_dir = [\"$1/hooks\"]" >>"$1/containers.conf"
	cat >"$1/hooks/ctr-gpu.json" <<-END
		{
			"version": "1.0.0",
			"hook": {"path": "$2", "args": ["ctr-gpu-hook", "prestart"], "env": ["LANG=C"]},
			"when": {"always": true},
			"stages": ["prestart", "poststop"]
		}
	END
}

# podman_in PROFILE ARGUMENT…: `podman ARGUMENT…` as root; "run" gets options that every container here needs
podman_in() {
	local profile=$1 directory
	shift

	directory=$(engine_directory podman)
	sandbox "$profile" env CONTAINERS_CONF="$directory/containers.conf" \
		CONTAINERS_STORAGE_CONF="$directory/storage.conf" bash -c '
			command=$1
			shift
			[[ $command != run ]] || set -- --cgroup-parent "$CTR_GPU_TEST_CGROUP" "$@"
			exec memlock podman "$command" "$@"
		' podman "$@"
}

# Podman's files, with the image debian, for root and for the user below
podman_setup() {
	local directory

	directory=$(engine_directory podman)
	podman_configure "$directory"
	tar -C "$(image debian)" -c . | podman_in - import --quiet - debian >/dev/null
	directory=$(engine_directory rootless)
	XDG_RUNTIME_DIR=/run/user/54321 podman_configure "$directory" "${rootless_programs:-/run/ctr-gpu}/bin/ctr-gpu-hook"
	sed -i "s,$directory,$(rootless_home),g" "$directory"/*.conf
	tar -C "$(image debian)" -c . | rootless - podman import --quiet - debian >/dev/null
}

# For scripts: cleaned_up NAME waits until Podman has cleaned up behind that container. `podman run` of version 5 ends before that, and
# what runs the poststop hooks goes on beside it.
cleaned_up='cleaned_up() { timeout 60 sh -c "until [ \"\$(podman inspect --format {{.State.Status}} \$0)\" = exited ]; do sleep 0.1; done" "$1"; }'

podman_remove_hooks() {
	rm -f "$(engine_directory podman)"/hooks/* "$(engine_directory rootless)"/hooks/*
}

# The home of the user below. What is below /run is links in the namespaces of a rootless Docker, and no place for its files;
# a machine that is not a tree is not written to elsewhere.
rootless_home() {
	if [[ -n ${engine_tree-} ]]; then
		echo /home/ctr-gpu-test
	else
		echo /run/home
	fi
}

# rootless PROFILE COMMAND…: as a user who is nobody special, with subordinate ids, a home and a runtime directory; engines'
# files are in the directory that $HOME names. Programs are reached under /run/ctr-gpu, or $rootless_programs where the host itself
# needs that, as our own directory may be private.
# What is in $CTR_GPU_TEST_AS_ROOT runs before, as root.
rootless() {
	local profile=$1 directory programs=${rootless_programs:-/run/ctr-gpu} path
	path=$programs/test/tools:/usr/sbin:/usr/bin:/sbin:/bin
	shift

	directory=$(engine_directory rootless)
	chown 54321:54321 "$directory"
	[[ -n ${engine_tree-} ]] || path=$programs/bin:$path
	sandbox "$profile" bash -ec '
		directory=$1 home=$2 path=$3 profile=$4 programs=$5
		shift 5
		printf "ctr-gpu-test:x:54321:54321::$home:/bin/sh\n" | cat /etc/passwd - >/run/passwd
		printf "ctr-gpu-test:x:54321:\n" | cat /etc/group - >/run/group
		printf "ctr-gpu-test:600000:65536\n" >/run/subid
		[[ -e /etc/subuid && -e /etc/subgid ]] || touch /etc/subuid /etc/subgid
		for file in passwd group; do mount --bind "/run/$file" "/etc/$file"; done
		for file in subuid subgid; do mount --bind /run/subid "/etc/$file"; done
		mkdir -p "$home" /run/user/54321 "$programs"
		mount --bind "$directory" "$home"
		mount --bind "$CTR_GPU_BUILD" "$programs"
		chown 54321:54321 /run/user/54321
		# As udev has them; on a simulated host /dev is not the machine'"'"'s.
		[[ $profile == - ]] || chmod 666 /dev/fuse /dev/net/tun
		# An unprivileged user namespace may mount these only where it sees one of which nothing is hidden.
		mkdir -p /run/whole/proc /run/whole/sys
		mount -t proc proc /run/whole/proc
		mount -t sysfs sysfs /run/whole/sys
		cd "$home"
		eval "${CTR_GPU_TEST_AS_ROOT-}"
		exec setpriv --reuid 54321 --regid 54321 --init-groups env -i HOME="$home" USER=ctr-gpu-test \
			XDG_RUNTIME_DIR=/run/user/54321 CONTAINERS_CONF="$home/containers.conf" \
			CONTAINERS_STORAGE_CONF="$home/storage.conf" \
			PATH="$path" "$@"
	' rootless "$directory" "$(rootless_home)" "$path" "$profile" "$programs" "$@"
}

# ---- vCUDA ----

# driver: the host's libcuda becomes the simulated one, with the GPUs of the host
driver() {
	local uuids

	uuids=$(ctr-gpu info --json | jq -r '[.adapters[].uuid | sub("GPU-"; "") | gsub("-"; "")] | join(",")') || return
	mkdir /run/driver && cp -a /usr/lib/wsl/lib/. /run/driver && rm -f /run/driver/lib{cuda,nvidia-ml}.so.1 &&
		cp "$CTR_GPU_BUILD"/vcuda/test/sim/lib{cuda,nvidia-ml}.so.1 /run/driver/ && printf '%s\n' GPUS=2 MEMORY=24G,8G \
		"UUIDS=$uuids" NAMES=Big,Small >/run/driver/sim.conf &&
		mount --bind /run/driver /usr/lib/wsl/lib
}

# ---- OCI runtimes ----

# bundle IMAGE DIRECTORY [JQ-FILTER]: a bundle whose config.json is the runtime's own with our hook in it
bundle() {
	local directory=$2 made

	mkdir -p "$directory"
	image_copy "$1" "$directory/rootfs" || return
	# jq takes longer to start than a container, and files ask for the same again and again.
	made=$(sha256sum <<<"${3:-.}") && made=$BATS_FILE_TMPDIR/bundle-${made%% *}
	[[ -e $made ]] || bundle_configuration "${3:-.}" "$made" || return
	cp "$made" "$directory/config.json"
}

# bundle_configuration JQ-FILTER FILE
bundle_configuration() {
	local new

	new=$(mktemp -d "$BATS_FILE_TMPDIR/new-XXXXXX") && (cd "$new" && runc spec) || return
	jq --arg hook "$CTR_GPU_BUILD/bin/ctr-gpu-hook" '
		.process.terminal = false
		| .process.args = ["/usr/bin/probe"]
		| .process.env = ["PATH=/usr/sbin:/usr/bin", "NVIDIA_VISIBLE_DEVICES=all"]
		| .process.rlimits = []
		| .root.readonly = false
		| .linux.resources.devices = [{"allow": false, "access": "rwm"}]
		| .linux.namespaces |= map(select(.type != "network"))
		| .hooks.prestart = [{"path": $hook, "args": ["ctr-gpu-hook", "prestart"], "env": ["LANG=C"]}]
		| '"$1" "$new/config.json" >"$new/new" && mv "$new/new" "$2"
}

# both FUNCTION [ARGUMENT…]: with each runtime as its last argument
both() {
	local runtime

	for runtime in runc crun; do
		echo "with $runtime:"
		"$@" "$runtime"
	done
}

# Filters of config.json: visible DEVICES, script SHELL-SCRIPT
visible() {
	echo ".process.env = [\"PATH=/usr/bin\", \"NVIDIA_VISIBLE_DEVICES=$1\"]"
}

script() {
	jq -rn --arg script "$1" '".process.args = [\"/bin/sh\", \"-c\", \($script | tojson)]"'
}

# known_runtime COMMAND: on a simulated host, a runtime for the shim which says that it is one that is left to mount
known_runtime() {
	mkdir -p /etc/ctr-gpu /run/known
	printf '#!/bin/sh\n[ "$1" != --version ] || exec echo runc version 1.4.0\nexec %s "$@"\n' "$1" >"/run/known/${1##*/}"
	chmod 755 "/run/known/${1##*/}"
	echo "{\"runtimes\": [\"/run/known/${1##*/}\"]}" >/etc/ctr-gpu/config.json
}
export -f known_runtime

# run_bundle PROFILE RUNTIME DIRECTORY [CONFIG]: run the bundle's process to its end, on a host with this configuration file. The path of its
# cgroup is put into what jq has written, without jq, which takes longer than the container.
run_bundle() {
	sandbox "$1" bash -c '
		cd "$2" || exit
		[[ -z $3 ]] || { mkdir -p /etc/ctr-gpu && echo "$3" >/etc/ctr-gpu/config.json; } || exit
		config=$(<config.json) linux="\"linux\": {" path="\"cgroupsPath\": \"$CTR_GPU_TEST_CGROUP/container\""
		if [[ $config =~ \"cgroupsPath\":\ \"[^\"]*\" ]]; then
			config=${config/"${BASH_REMATCH[0]}"/"$path"}
		elif [[ $config == *"  $linux"* ]]; then
			config=${config/"  $linux"/"  $linux$path,"}
		else
			echo "no \"linux\" in the configuration" && exit 1
		fi
		echo "$config" >config.json
		exec memlock "$1" --root /run/runtime run container
	' run_bundle "$2" "$3" "${4-}"
}
