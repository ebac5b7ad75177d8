#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# `docker run --gpus`, which finds our hook under the name it has always looked for.

load engines

setup_file() {
	require_root
	require_program dockerd
	require_program docker
	docker_start wsl-nvidia
	docker_image debian
}

teardown_file() {
	docker_stop
}

teardown() {
	docker_remove_containers
}

# bats test_tags=cgroup
@test "the daemon runs with the cgroup version that is to be tested" {
	run docker info --format '{{.CgroupVersion}}'
	expect_line "$(cgroup_version)"
}

# bats test_tags=cgroup
@test "--gpus all: a program finds libcuda by its name and the GPU behind it" {
	run docker run --rm --gpus all debian probe
	expect_status 0
	expect_gpu
}

@test "--gpus 1" {
	run docker run --rm --gpus 1 debian probe
	expect_gpu
}

@test "--gpus device=0" {
	run docker run --rm --gpus '"device=0"' debian probe
	expect_gpu
}

@test "--gpus with capabilities" {
	run docker run --rm --gpus 'all,"capabilities=compute,utility"' debian probe
	expect_gpu
}

@test "nvidia-smi is in PATH" {
	run docker run --rm --gpus all debian nvidia-smi -L
	expect_status 0
	expect "GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-"
}

# Docker makes a directory of a source that is missing.
@test "a volume that puts a directory in the place of a file is named, and not the image" {
	run docker run --rm --gpus all -v /usr/bin/none-here:/usr/bin/nvidia-smi debian probe
	expect "[E_VOLUME] a volume puts a directory at /usr/bin/nvidia-smi"
	expect_not "remove it from the image"
}

@test "settings may leave an environment unheard, but not a privileged container's, nor a device plugin's mounts" {
	docker_settings '{"accept-nvidia-visible-devices-envvar-when-unprivileged": false}'
	run docker run --rm --gpus all debian probe
	expect_line "/dev/dxg=ENOENT"
	run docker run --rm --gpus all --cap-add SYS_ADMIN --user 1000 debian probe
	expect_gpu
	run docker run --rm --gpus all -v /dev/null:/var/run/nvidia-container-devices/0 debian probe
	expect_gpu
	docker_settings '{}'
}

# bats test_tags=cgroup
@test "a device that the host does not have: docker shows what, where and what next" {
	run docker run --rm --gpus '"device=1"' debian probe
	expect_status 125
	expect "ctr-gpu-hook: [E_UNKNOWN_DEVICE]"
	expect "1"
	expect_not "cuInit"
	[[ $(grep -c . <<<"${output#*E_UNKNOWN_DEVICE}") -le 6 ]]
}

# bats test_tags=cgroup
@test "without --gpus there is no node, no mount, no file and no rule" {
	run docker run --name plain debian sh -c 'ls /dev /usr/lib/wsl; cat /proc/mounts; probe node 10 183 /tmp/node; probe'
	expect_no_line "dxg"
	expect_not "/usr/lib/wsl/"
	expect "No such file or directory"
	expect_line "/tmp/node=EPERM"
	expect_line "/dev/dxg=ENOENT"
	run docker diff plain
	expect_not "ld.so"
	expect_not "wsl"
}

@test "without --gpus, NVIDIA_VISIBLE_DEVICES means nothing to docker" {
	run docker run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_line "/dev/dxg=ENOENT"
	expect_not "cuInit"
}

@test "--gpus counts, whatever the image says in NVIDIA_VISIBLE_DEVICES" {
	run docker run --rm --gpus all -e NVIDIA_VISIBLE_DEVICES=void debian probe
	expect_gpu
}

# bats test_tags=cgroup
@test "the device rule is for the GPU and nothing else" {
	run docker run --rm --gpus all debian sh -c 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse; probe node 10 237 /tmp/loop'
	expect_line "/tmp/gpu=ok"
	expect_line "/tmp/fuse=EPERM"
	expect_line "/tmp/loop=EPERM"
}

@test "only the store of the selected adapter is there, read-only" {
	run docker run --rm --gpus all debian sh -c 'ls /usr/lib/wsl/drivers; grep -E "dxg|wsl" /proc/mounts; touch /usr/lib/wsl/lib/x'
	expect_line "$(basename "$(store wsl-nvidia 0)")"
	[[ $(grep -c 'inf_amd64' < <(grep -v ' ' <<<"$output")) -eq 1 ]]
	expect "Read-only file system"
	run docker run --rm --gpus all debian grep -E ' /usr/lib/wsl/' /proc/mounts
	[[ $(grep -c . <<<"$output") -eq 2 ]]
	[[ $(grep -cE ' ro,nosuid,nodev' <<<"$output") -eq 2 ]]
}

@test "--gpus: an image made of the container is without a GPU what it was" {
	docker_commit_is_harmless --gpus all
}

# Docker has no hook for the end of such a container: nothing but empty directories, a link to nowhere and the loader's files stays.
@test "--gpus: what stays in the layer of a container that has ended is what the documentation says" {
	docker run --name stays --gpus all debian probe
	run docker diff stays
	output=$(grep -v '^C /\(etc\|usr\)\(/[a-z.]*\)\?$' <<<"$output" | sort)
	[[ $output == "A /etc/ld.so.conf.d/00-ctr-gpu.conf
A /usr/bin/nvidia-smi
A /usr/lib/wsl
A /usr/lib/wsl/drivers
A $(store wsl-nvidia 0)
A /usr/lib/wsl/lib" ]]
}

@test "--read-only" {
	run docker run --rm --read-only --gpus all debian probe
	expect_gpu
}

@test "another user than root, without capabilities or new privileges" {
	run docker run --rm --user 65534 --cap-drop ALL --security-opt no-new-privileges --gpus all debian probe
	expect_gpu
}

@test "--ulimit without limits, which are larger than any signed number" {
	run docker run --rm --ulimit fsize=-1 --gpus all debian sh -c 'probe; ulimit -f'
	expect_status 0
	expect_gpu
	expect_line unlimited
}

# bats test_tags=cgroup
@test "--privileged" {
	docker run --rm --privileged debian id || skip "this machine's root lacks capabilities that --privileged gives"
	run docker run --rm --privileged --gpus all debian probe
	expect_gpu
}

@test "--ipc host, --pid host and a tmpfs on /dev/shm" {
	run docker run --rm --ipc host --pid host --tmpfs /run --gpus all debian probe
	expect_gpu
}

# bats test_tags=cgroup
@test "starting a container again leaves no growing trace" {
	docker create --name again --gpus all debian probe
	run docker start --attach again
	expect_gpu
	docker_start_again again
}

@test "docker exec finds the GPU too" {
	docker run --detach --name long --gpus all debian sleep 60
	run docker exec long probe
	expect_gpu
}

# bats test_tags=cgroup
@test "two containers at once" {
	docker run --detach --name one --gpus all debian sleep 60
	docker run --detach --name two --gpus all debian sleep 60
	docker run --detach --name three debian sleep 60
	run docker exec one probe
	expect_gpu
	run docker exec two probe
	expect_gpu
	run docker exec three probe
	expect_line "/dev/dxg=ENOENT"
}

@test "nothing of a container is mounted on the host" {
	local before

	before=$(sort "/proc/$(dockerd_pid)/mounts")
	docker run --detach --name mounts --gpus all debian sleep 60
	docker exec mounts cat /proc/mounts | grep -q /usr/lib/wsl/lib
	run cat "/proc/$(dockerd_pid)/mounts"
	# Docker itself mounts the container's overlay and its network namespace.
	[[ $(comm -13 <(echo "$before") <(sort <<<"$output") | grep -vcE '^(overlay|nsfs|shm|tmpfs) /') -eq 0 ]]
}

# bats test_tags=cgroup
@test "after a failure the same container can start when the reason is gone" {
	docker create --name retry --gpus all debian probe
	run docker run --rm --gpus '"device=7"' debian probe
	expect_status 125
	run docker start --attach retry
	expect_gpu
}
