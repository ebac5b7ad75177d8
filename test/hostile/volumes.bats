#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154
#
# Images whose links lead into a volume, on real Docker: with --gpus and with --runtime=nvidia, the volume private, a slave and
# shared. $outside, a directory of the host, is the volume; neither it nor the mounts of the host may look otherwise afterwards.
# The general case, without an engine, is shapes.bats.

bats_require_minimum_version 1.5.0
load ../e2e/engines

setup_file() {
	require_root
	require_program dockerd
	require_program docker
	docker_start wsl-nvidia '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
	docker_image debian
}

teardown_file() {
	docker_stop
}

teardown() {
	docker_remove_containers
}

# Of the host that the daemon runs on: its mounts, but for those of running containers, and the volume.
host_picture() {
	cut -d " " -f 3- "/proc/$(dockerd_pid)/mountinfo" | grep -v '/docker/data/overlay2/\|/docker/data/containers/\|/run/docker\|nsfs' | sort
	find "$outside" -printf '%P %y %m %U:%G %s %T@ %l\n' | sort
	find "$outside" -type f -exec sha256sum {} +
}

# image_with LINK TARGET: the image "hostile", in which that is so
image_with() {
	local root=$BATS_TEST_TMPDIR/root

	rm -rf "$root"
	image_copy debian "$root"
	rm -rf "${root:?}$1"
	mkdir -p "$root/volume" "$(dirname "$root$1")"
	ln -s "$2" "$root$1"
	tar -C "$root" -c . | docker import - hostile >/dev/null
}

doors=("--gpus all" "--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all")
propagations=(rprivate rslave rshared)

# attack COMMAND…: the image with each door and with each kind of volume; $output of each goes to `after DOOR PROPAGATION`
attack() {
	local door propagation before

	for door in "${doors[@]}"; do
		for propagation in "${propagations[@]}"; do
			before=$(host_picture)
			# shellcheck disable=SC2086 # options
			run docker run --rm $door --user 1000 --cap-drop ALL --security-opt no-new-privileges \
				--volume "$outside:${at:-/volume}:ro,$propagation" hostile "$@"
			echo "$door $propagation: $output"
			diff <(echo "$before") <(host_picture)
			after "$propagation"
		done
	done
}

setup() {
	outside=$(engine_directory outside)/$BATS_TEST_NUMBER
	mkdir -p "$outside"
}

# Shared: nothing. Others: what is there may be covered, for the container alone.
only_where_private() {
	if [[ $1 == rshared ]]; then
		expect "[E_VOLUME]"
		expect_not "cuInit"
	else
		expect_line "cuInit=0"
	fi
}

never() {
	expect "[E_VOLUME]"
	expect_not "cuInit"
}

@test "/usr/lib/wsl leads to a volume that has the directories" {
	after() { only_where_private "$1"; }
	mkdir -p "$outside/lib" "$outside/drivers/$(basename "$(store wsl-nvidia 0)")"
	image_with /usr/lib/wsl /volume
	attack probe
	image_with /usr/lib/wsl/lib /volume/lib
	attack probe
}

@test "/usr/lib/wsl leads to a volume that lacks the directories: they are not made" {
	after() { never; }
	image_with /usr/lib/wsl /volume
	attack probe
	image_with /usr/lib/wsl /volume/not/there
	attack probe
}

# Docker makes /etc a directory whatever the image has there. Its own mounts on a shared volume stay on the host, so that one comes
# last.
# bats test_tags=kernel
@test "a volume over /etc with a cache: it is covered, for the container alone, or left" {
	local at=/etc

	after() { only_where_private "$1"; }
	cp "$(image debian)/etc/"{passwd,group,ld.so.cache} "$outside"
	touch "$outside"/{hosts,hostname,resolv.conf}
	image_with /link /nowhere
	propagations=(rprivate rslave)
	attack probe
	doors=("--gpus all")
	propagations=(rshared)
	attack probe
}

# Docker's own mount of the tmpfs appears on the host, too, and stays.
@test "a tmpfs in a shared volume: nothing of ours comes to the host through it" {
	local door pid

	pid=$(dockerd_pid)
	mkdir "$outside/own"
	image_with /usr/lib/wsl /volume/own
	for door in "${doors[@]}"; do
		# shellcheck disable=SC2086 # options
		run docker run --rm $door --volume "$outside:/volume:rshared" --tmpfs /volume/own hostile probe
		echo "$door: $output"
		never
		[[ $(grep -c " $outside/" "/proc/$pid/mountinfo") -eq 1 ]]
		[[ -z $(nsenter --mount --target "$pid" -- ls "$outside/own") ]]
		nsenter --mount --target "$pid" -- umount "$outside/own"
	done
}

@test "nvidia-smi leads to a volume: it is not made there, and the container starts" {
	after() { expect_line "cuInit=0"; }
	image_with /usr/bin/nvidia-smi /volume/smi
	attack probe
}

@test "a volume over /usr/bin: no empty nvidia-smi is made in it" {
	local door before

	cp -a "$(image debian)/usr/bin/." "$outside"
	for door in "${doors[@]}"; do
		before=$(host_picture)
		# shellcheck disable=SC2086 # options
		run docker run --rm $door --volume "$outside:/usr/bin" debian probe
		expect_line "cuInit=0"
		diff <(echo "$before") <(host_picture)
	done
}

# The cache is written to a tmpfs of the container's own; the driver's directories, given by hand, are as the user gave them.
@test "what honest users do: tmpfs over /etc and /dev, the driver's directory and /dev as volumes, shared too" {
	local door options before

	for door in "${doors[@]}"; do
		for options in "--tmpfs /etc" "--tmpfs /dev:dev" "--volume /usr/lib/wsl:/usr/lib/wsl" "--volume /usr/lib/wsl:/usr/lib/wsl:rshared" \
			"--volume /dev:/dev" "--volume /dev:/dev:rshared"; do
			before=$(host_picture)
			# shellcheck disable=SC2086 # options
			run docker run --rm $door $options debian probe
			echo "$door $options: $output"
			expect_line "cuInit=0"
			diff <(echo "$before") <(host_picture)
		done
	done
}

@test "an image that was made of a container has no nvidia-smi that does nothing and says that all is well" {
	local door

	for door in "${doors[@]}"; do
		docker rm --force made >/dev/null 2>&1 || true
		# shellcheck disable=SC2086 # options
		docker run --name made $door debian nvidia-smi -L
		docker commit made made >/dev/null
		run -127 docker run --rm made nvidia-smi
		run -127 docker run --rm made sh -c nvidia-smi
		# With a GPU it is there again.
		# shellcheck disable=SC2086 # options
		run docker run --rm $door made nvidia-smi -L
		expect "GPU 0: "
	done
}
