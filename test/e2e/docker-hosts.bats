#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# `docker run --gpus` on hosts that are not one NVIDIA GPU under WSL2: a daemon each.

load engines

setup_file() {
	require_root
	require_program dockerd
	require_program docker
}

teardown() {
	docker_stop
}

host() {
	docker_start "$1" "{\"runtimes\": {\"nvidia\": {\"path\": \"$CTR_GPU_BUILD/bin/nvidia-container-runtime\"}}}"
	docker_image debian
}

# Which driver stores a container that was asked for with these options sees.
stores_seen() {
	run docker run --rm --gpus "$1" debian ls /usr/lib/wsl/drivers
	expect_status 0
}

@test "a Hyper-V guest without libdxcore: the adapters come from the device itself" {
	host hyperv-no-libdxcore
	for option in "--gpus all" "--runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all"; do
		# shellcheck disable=SC2086
		run docker run --rm $option debian probe
		expect_status 125
		expect "[E_DRIVER_LIBRARY] /usr/lib/wsl/lib/libdxcore.so is missing, and without it no program finds a GPU"
		expect "Copy libdxcore.so, libd3d12.so and libd3d12core.so to it"
	done
	docker create --name bare debian true >/dev/null
	docker cp "$CTR_GPU_BUILD/test/hosts/files/dxcore-present/libdxcore.so" bare:/usr/lib/libdxcore.so
	docker commit bare with-dxcore >/dev/null
	for option in "--gpus all" "--runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all"; do
		# shellcheck disable=SC2086
		run docker run --rm $option with-dxcore probe
		expect_line "cuInit=0"
	done
	run docker run --rm --gpus 'all,"capabilities=utility"' debian probe
	expect_line "/dev/dxg=ok"
	expect_line "library=/usr/lib/wsl/lib/libcuda.so.1"
	stores_seen 'all,"capabilities=utility"'
	expect_line "$(basename "$(store hyperv-no-libdxcore 0)")"
}

@test "libraries that are symlinks to another directory" {
	host wsl-lib-links
	for user in 0 1000; do
		run docker run --rm --user "$user" --gpus all debian probe
		expect_line "cuInit=0"
		expect_line "library=/usr/lib/wsl/lib/libcuda.so.1"
	done
	run docker run --rm --gpus all debian sh -c 'nvidia-smi -L; test ! -e /usr/lib/wsl/lib2 || echo more'
	expect "GPU 0: NVIDIA"
	expect_not more
}

@test "a laptop with two vendors: index 0 is NVIDIA's, and only its store is seen" {
	local intel nvidia

	host wsl-hybrid
	intel=$(basename "$(store wsl-hybrid 0)") nvidia=$(basename "$(store wsl-hybrid 1)")
	run docker run --rm --gpus 1 debian probe
	expect_line "cuInit=0"
	expect_line "device=NVIDIA GeForce RTX 4070 Laptop GPU"
	stores_seen '"device=0"'
	expect_line "$nvidia"
	expect_not "$intel"
	stores_seen '"device=1"'
	expect_line "$intel"
	expect_not "$nvidia"
	stores_seen all
	expect_line "$intel"
	expect_line "$nvidia"
	[[ ${#lines[@]} -eq 2 ]]
}

# bats test_tags=cgroup
@test "two NVIDIA adapters: both stores, and both are counted" {
	host wsl-two-nvidia
	run docker run --rm --gpus all debian probe
	expect_line "cuInit=0"
	expect_line "count=2"
	stores_seen all
	[[ ${#lines[@]} -eq 2 ]]
	stores_seen '"device=1"'
	[[ ${#lines[@]} -eq 1 ]]
	# As nvidia-smi -L prints it, by either way, and by its beginning.
	local a2000 uuid names
	a2000=$(basename "$(store wsl-two-nvidia 1)")
	run docker run --rm --gpus all debian nvidia-smi -L
	uuid=$(sed -n 's/.*RTX A2000 (UUID: \(.*\))/\1/p' <<<"$output")
	[[ $uuid == GPU-* ]]
	for names in "$uuid" "${uuid:0:12}" "RTX A2000"; do
		stores_seen "\"device=$names\""
		[[ $output == "$a2000" ]]
		run docker run --rm --runtime nvidia -e NVIDIA_VISIBLE_DEVICES="$names" debian ls /usr/lib/wsl/drivers
		[[ $output == "$a2000" ]]
	done
	run docker run --rm --gpus '"device=GPU-00000000-0000"' debian true
	expect_status 125
	expect 'no device "GPU-00000000-0000"'
}

# bats test_tags=cgroup
@test "a native driver without the files by which programs find it: the container has them, and nothing else changes" {
	local icd=/etc/OpenCL/vendors/nvidia.icd options vendors=$BATS_TEST_TMPDIR/vendors

	docker_start native-no-configs "{\"runtimes\": {\"nvidia\": {\"path\": \"$CTR_GPU_BUILD/bin/nvidia-container-runtime\"}}}"
	docker_image debian
	for options in "--gpus all" "--runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all"; do
		# shellcheck disable=SC2086
		docker create --name icd $options debian sh -c "cat $icd; { echo more >$icd; } 2>/dev/null || echo read-only" >/dev/null
		for _ in 1 2; do
			run docker start --attach icd
			expect_line libnvidia-opencl.so.1
			expect_line read-only
		done
		docker cp icd:$icd - | tar xO | cmp - /dev/null
		docker rm icd >/dev/null
		# Nothing is made in a volume, and the container starts.
		mkdir -p "$vendors"
		# shellcheck disable=SC2086
		run docker run --rm $options --volume "$vendors:/etc/OpenCL/vendors" debian sh -c 'ls /etc/OpenCL/vendors; probe'
		expect_status 0
		expect_line "cuInit=0"
		expect_not nvidia.icd
		rmdir "$vendors"
	done
}

@test "a machine without a GPU: --gpus fails, whatever runtime is used; what an image asks for does not" {
	docker_start plain "{\"runtimes\": {\"nvidia\": {\"path\": \"$CTR_GPU_BUILD/bin/nvidia-container-runtime\"}}, \"default-runtime\": \"nvidia\"}"
	docker_image debian
	run docker run --rm -e NVIDIA_VISIBLE_DEVICES=all debian sh -c 'echo works'
	expect_status 0
	expect_line works
	for runtime in nvidia runc; do
		run docker run --rm --runtime "$runtime" --gpus all -e NVIDIA_VISIBLE_DEVICES=all debian sh -c 'echo works'
		expect_status 125
		expect "[E_NO_DEVICE]"
	done
	docker_settings '{"on-missing": "warn"}'
	for runtime in nvidia runc; do
		run docker run --rm --runtime "$runtime" --gpus all debian sh -c 'echo works'
		expect_status 0
		expect_line works
	done
}

@test "a driver update in Windows: a container of before, started again, has the new store and nothing of the old one" {
	local old new=nv_dispi.inf_amd64_ffffffffc1b3b3ab

	old=$(basename "$(store wsl-nvidia 0)")
	mkdir "$BATS_TEST_TMPDIR/profiles"
	sed "s/$old/$new/g" "$e2e/../hosts/profiles/wsl-nvidia.json" >"$BATS_TEST_TMPDIR/profiles/wsl-updated.json"
	host wsl-nvidia
	docker create --name hook --gpus all debian probe
	docker create --name shim --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all debian probe
	for name in hook shim; do
		run docker start --attach "$name"
		expect_line "library=/usr/lib/wsl/drivers/$old/libcuda.so.1.1"
	done
	docker_stop
	export CTR_GPU_TEST_PROFILES=$BATS_TEST_TMPDIR/profiles
	host wsl-updated
	for name in hook shim; do
		run docker start --attach "$name"
		expect_line "cuInit=0"
		expect_line "library=/usr/lib/wsl/drivers/$new/libcuda.so.1.1"
		docker cp "$name:/etc/ld.so.cache" "$BATS_TEST_TMPDIR/cache"
		# What the start has added goes with its end.
		run strings "$BATS_TEST_TMPDIR/cache"
		expect_not "$old"
	done
	docker rm hook shim
}

# bats test_tags=cgroup
@test "a daemon with a user namespace for its containers" {
	local directory

	directory=$(engine_directory docker)
	chmod o+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/file" "$BATS_FILE_TMPDIR" "$directory"
	docker_start wsl-nvidia "{\"userns-remap\": \"default\",
		\"runtimes\": {\"nvidia\": {\"path\": \"$CTR_GPU_BUILD/bin/nvidia-container-runtime\"}}}" '
		echo dockremap:x:777:777::/:/bin/false >>/etc/passwd && echo dockremap:x:777: >>/etc/group &&
			echo dockremap:700000:65536 | tee /etc/subuid >/etc/subgid'
	docker_image debian
	for options in "--gpus all" "--gpus all --read-only" "--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all"; do
		# shellcheck disable=SC2086 # several words
		run docker run --rm $options debian sh -c 'cat /proc/self/uid_map && probe'
		expect "700000"
		expect_gpu
	done
}
