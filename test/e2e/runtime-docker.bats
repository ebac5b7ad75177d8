#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# `docker run --runtime=nvidia`: a runtime of the daemon's configuration, which is the shim.

load engines

setup_file() {
	require_root
	require_program dockerd
	require_program docker
	docker_start wsl-nvidia "{\"runtimes\": {\"nvidia\": {\"path\": \"$CTR_GPU_BUILD/bin/nvidia-container-runtime\"}}}"
	docker_image debian
}

teardown_file() {
	docker_stop
}

teardown() {
	docker_remove_containers
}

with_gpu() {
	docker run --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all "$@"
}

# config_of NAME: config.json of the container, as the runtime has read it
config_of() {
	cat "$(engine_directory docker)"/exec/containerd/daemon/io.containerd.runtime.v2.task/moby/"$(docker inspect --format '{{.Id}}' "$1")"/config.json
}

@test "a program finds libcuda by its name and the GPU behind it" {
	run with_gpu --rm debian probe
	expect_status 0
	expect_gpu
	with_gpu --detach --name long debian sleep 60
	[[ $(config_of long | jq -c '.linux.resources.devices | map(select(.allow and .major == 10 and .minor == 183)) | length') == 1 ]]
}

# bats test_tags=cgroup
@test "without NVIDIA_VISIBLE_DEVICES there is no node, no mount, no file and no rule" {
	run docker run --name plain --runtime=nvidia debian sh -c 'ls /dev /usr/lib/wsl; probe node 10 183 /tmp/node; probe'
	expect_no_line "dxg"
	expect_line "/tmp/node=EPERM"
	expect_line "/dev/dxg=ENOENT"
	run docker diff plain
	expect_not "ld.so"
	expect_not "wsl"
}

@test "an image made of the container is without a GPU what it was" {
	docker_commit_is_harmless --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all
}

# bats test_tags=cgroup
@test "nothing of a GPU is in the layer of a container that has ended" {
	docker_leaves_nothing --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all
	docker_remove_containers
	docker_leaves_nothing --runtime=nvidia --gpus all
}

@test "together with --gpus" {
	run docker run --rm --runtime=nvidia --gpus all debian probe
	expect_status 0
	expect_gpu
}

@test "settings may leave an environment unheard, but not a privileged container's, nor a device plugin's mounts" {
	docker_settings '{"accept-nvidia-visible-devices-envvar-when-unprivileged": false}'
	run with_gpu --rm debian probe
	expect_line "/dev/dxg=ENOENT"
	run with_gpu --rm --cap-add SYS_ADMIN --user 1000 debian probe
	expect_gpu
	run docker run --rm --runtime=nvidia -v /dev/null:/var/run/nvidia-container-devices/0 debian probe
	expect_gpu
	docker_settings '{}'
}

@test "settings that are no JSON: docker exec, stop and run without a GPU go on, docker stop with the container's signal" {
	with_gpu --detach --name polite debian sh -c 'trap "echo asked; exit 7" TERM; while :; do sleep 0.1; done'
	docker_settings '{"on-missing": "fail",}'
	run docker exec polite sh -c 'echo inside'
	expect_line inside
	run docker run --rm --runtime=nvidia debian sh -c 'echo plain'
	expect_line plain
	run with_gpu --rm debian probe
	expect_status 125
	expect "[E_BAD_CONFIG]"
	docker stop --time 10 polite
	docker_settings '{}'
	run docker logs polite
	expect_line asked
	[[ $(docker inspect --format '{{.State.ExitCode}}' polite) == 7 ]]
}

@test "a device that the host does not have: docker shows what, where and what next" {
	run docker run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=7 debian probe
	expect_status 125
	expect "ctr-gpu-runtime: [E_UNKNOWN_DEVICE]"
	expect_not "cuInit"
}

# bats test_tags=cgroup
@test "the device rule is for the GPU and nothing else" {
	run with_gpu --rm debian sh -c 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse'
	expect_line "/tmp/gpu=ok"
	expect_line "/tmp/fuse=EPERM"
}

# bats test_tags=cgroup
@test "the device rule is there still after docker update" {
	with_gpu --detach --name updated debian sleep 60
	docker update --cpu-shares 512 --memory 256m --memory-swap 256m updated
	run docker exec updated probe
	expect_gpu
}

@test "--read-only, another user, no capabilities, no limits" {
	run with_gpu --rm --read-only --user 65534 --cap-drop ALL --security-opt no-new-privileges --ulimit fsize=-1 debian probe
	expect_status 0
	expect_gpu
}

@test "a volume over /etc and a volume beside the driver's directory" {
	mkdir -p "$BATS_TEST_TMPDIR/etc" "$BATS_TEST_TMPDIR/lib"
	cp -a "$(image debian)/etc/." "$BATS_TEST_TMPDIR/etc/"
	run with_gpu --rm --volume "$BATS_TEST_TMPDIR/etc:/etc" --volume "$BATS_TEST_TMPDIR/lib:/usr/lib/wsl/extra" debian probe
	expect_status 0
	expect_gpu
	cmp "$BATS_TEST_TMPDIR/etc/ld.so.cache" "$(image debian)/etc/ld.so.cache"
}

# bats test_tags=cgroup
@test "starting a container again leaves no growing trace" {
	with_gpu --name again debian probe
	docker_start_again again
}

# bats test_tags=cgroup
@test "exec, pause, kill, rm" {
	with_gpu --detach --name long debian sleep 60
	run docker exec long probe
	expect_gpu
	docker pause long
	docker unpause long
	docker top long
	docker kill long
	docker rm long
}

@test "docker info knows the runtime" {
	run docker info --format '{{json .Runtimes}}'
	expect '"nvidia"'
	run docker info
	expect_not "WARNING: nvidia"
}
