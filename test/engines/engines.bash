# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Engines of other Debian releases, for bats files of this folder. NAME-SUITE.bats runs the cases of its file with the
# engines of that release, and NAME-SUITE-cgroup2.bats once more with cgroup version 2; all but one of them are links.

# shellcheck source=test/e2e/engines.bash
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../e2e/engines.bash"

suite=${BATS_TEST_FILENAME##*/}
suite=${suite%.bats}
suite=${suite%-cgroup2}
suite=${suite##*-}

# use_tree [PACKAGE…]: run engines from a tree of this file's release, with these packages besides
use_tree() {
	local packages=(buildah containerd crun docker-compose docker.io fuse-overlayfs iproute2 iptables kmod libcap2 libjansson4 libseccomp2 libyaml-0-2 podman
		procps rootlesskit runc slirp4netns uidmap "$@")

	case $suite in
	bookworm) packages+=(libtirpc3) ;;
	*) packages+=(docker-buildx docker-cli libtirpc3t64) ;;
	esac
	engine_tree=$("$e2e/../engines/tree" "$suite" "${packages[@]}") || return
	export engine_tree
	# Podman has no more than version 2 of cgroups since its own version 6.
	if [[ $(tree_version podman) != [0-5].* ]]; then
		export engine_needs_cgroup2=1
		cgroup_option=(--cgroup2)
	fi
}

# tree_version PACKAGE: without Debian's part
tree_version() {
	sed -n "/^Package: $1\$/,/^\$/s/^Version: \([0-9.]*\).*/\1/p" "$engine_tree/var/lib/dpkg/status"
}

# vendor_image NAME SUITE PACKAGE…: an image of a Debian release with these packages
vendor_image() {
	local root

	root=$("$e2e/../engines/tree" "${@:2}") || return
	tar -C "$root" --exclude=./var/cache --exclude=./usr/share/doc --exclude=./usr/share/locale -c . | docker import - "$1" >/dev/null
}

# docker_pair [JSON [COMMAND]]: a daemon on a GPU-PV host, wsl, and one on a native host, native
docker_pair() {
	docker_use wsl
	docker_start wsl-nvidia "$@"
	docker_image debian
	docker_use native
	docker_start native-four "$@"
	docker_image debian
}

docker_stop_pair() {
	docker_use wsl
	docker_stop
	docker_use native
	docker_stop
}

# For a script in a sandbox: a daemon with its files in $directory/docker
# shellcheck disable=SC2016,SC2034 # for the inner shell, of the files that load this
dockerd_functions='
	start_dockerd() {
		export DOCKER_HOST=unix://$directory/docker/socket
		mkdir -p "$directory/docker"
		rm -f "$directory/docker/pid"
		dockerd --data-root "$directory/docker/data" --exec-root "$directory/docker/exec" --host "$DOCKER_HOST" \
			--pidfile "$directory/docker/pid" --iptables=false --ip6tables=false --bridge=none \
			--cgroup-parent "$CTR_GPU_TEST_CGROUP" --exec-opt native.cgroupdriver=cgroupfs >"$directory/docker/log" 2>&1 &
		dockerd=$!
		soon docker version || { cat "$directory/docker/log"; return 1; }
	}
	stop_dockerd() { kill "$dockerd" && wait "$dockerd" || true; }
'

expect_no_gpu() {
	expect_line "/dev/dxg=ENOENT"
	expect_not "cuInit"
	expect_not "/usr/lib/wsl"
}

# native_uuid INDEX: of a GPU of native-four
native_uuid() {
	jq -r ".native.gpus[$1].uuid" "$e2e/../hosts/profiles/native-four.json"
}

# Of GPUs of native-four: what "ls /dev; probe node …" prints where GPU 2 is given and GPU 0 is not
expect_no_other() {
	expect_line nvidia2
	expect_no_line nvidia0
	expect_line "/tmp/other=EPERM"
	expect_line "/tmp/own=ENXIO"
}

# expect_native COUNT: of native-four's GPUs
expect_native() {
	expect_status 0
	expect_line "cuInit=0"
	expect_line "count=$1"
	expect_line "library=/usr/lib/ctr-gpu/libcuda.so.1"
}

# rootless_docker PROFILE ARGUMENT…: `docker ARGUMENT…` of a user, with a daemon for this command alone, started by Docker's
# own script. What $rootless_docker_json says is the user's configuration of it.
rootless_docker() {
	local profile=$1
	shift

	# shellcheck disable=SC2016 # for the inner shell
	rootless "$profile" bash -c '
		mkdir -p "$HOME/.config/docker"
		[[ -z $1 ]] || echo "$1" >"$HOME/.config/docker/daemon.json"
		shift
		export DOCKER_HOST=unix://$XDG_RUNTIME_DIR/docker.sock
		sh /usr/share/docker.io/contrib/dockerd-rootless.sh --iptables=false --ip6tables=false --bridge=none \
			>"$HOME/docker.log" 2>&1 &
		for _ in {1..1200}; do
			docker version >/dev/null 2>&1 && break
			if ! kill -0 $! 2>/dev/null; then
				tail -n 20 "$HOME/docker.log"
				exit 1
			fi
			sleep 0.05
		done
		docker "$@"
		status=$?
		kill -TERM $!
		wait $!
		exit $status
	' rootless_docker "${rootless_docker_json-}" "$@"
}
