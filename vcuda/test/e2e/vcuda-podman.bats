#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2030,SC2031,SC2034
#
# Podman as a user, with GPUs by vCUDA: the hook, ctr-gpu-runtime and CDI, by both OCI runtimes. The driver of the simulated host is
# vcuda/test/sim's, which servers alone load. vcuda-users.bats has what users may try, without an engine.

load ../../../test/e2e/engines

rootless_programs=/run/programs
user=54321

setup_file() {
	local name

	require_root
	require_program podman
	require_program newuidmap
	for name in bin/ctr-gpu-vcuda lib/vcuda/libcuda.so.1 vcuda/test/sim/libcuda.so.1 test/real/cuda-add; do
		[[ -e $CTR_GPU_BUILD/$name ]] || { echo "$CTR_GPU_BUILD/$name is missing" && return 1; }
	done
	podman_setup
}

# as_user USERS SCRIPT [AS-ROOT]: of the user, on a host with two GPUs whose settings name USERS
as_user() {
	export -f driver
	export scratch=$BATS_TEST_TMPDIR
	CTR_GPU_TEST_AS_ROOT='driver
		mkdir -p /etc/ctr-gpu
		echo "{\"vcuda\": {\"mode\": \"allow\", \"users\": ['"${1//\"/\\\"}"']}}" >/etc/ctr-gpu/config.json
		ctr-gpu-vcudad 2>>"$scratch/audit" &
		until ctr-gpu vcuda list >/dev/null 2>&1; do sleep 0.02; done
		'"${3-}" run rootless wsl-two-nvidia timeout --kill-after=1 300 bash -euc '
		go() { podman "${runtime[@]}" run --rm --network none -v /run/programs/test/real/cuda-add:/usr/bin/cuda-add:ro "$@"; }
		ask() { go -e NVIDIA_VISIBLE_DEVICES=all -e CTR_GPU_MODE=vcuda "$@"; }
		runtime=()
		'"$2"
	echo "$output"
	cat "$scratch/audit"
}

small="GPU-7b10aa04-0041-0000-0000-000084ef55fb: Small: 1048576 sums are right"

# bats test_tags=nightly
@test "the hook: a user's container has a GPU and no device, with crun and with runc" {
	as_user "{\"uid\": $user, \"memory\": \"4G\"}" '
		for name in crun runc; do
			runtime=(--runtime "$name")
			ask debian sh -c "ls /dev/dxg; cuda-add"
		done'
	expect_status 0
	[[ $(grep -cx "$small" <<<"$output") == 2 ]]
	expect "/dev/dxg: No such file"
}

# bats test_tags=nightly
@test "CDI" {
	as_user "{\"uid\": $user}" 'go --device ctr-gpu.org/vcuda=1 debian sh -c "ls /dev/dxg; cuda-add"' 'ctr-gpu cdi generate >/dev/null'
	expect_status 0
	expect_line "$small"
	expect_not "GPU-5a3f1c2b"
	expect "/dev/dxg: No such file"
}

# bats test_tags=nightly
@test "a user who may not: the container does not start, and the line names the setting" {
	as_user "" 'runtime=(--runtime runc); ask debian cuda-add'
	[[ $status -ne 0 ]]
	expect "this host gives GPUs by vCUDA to root's containers alone"
	expect '{"vcuda": {"users": [{"uid": 1000}]}}'
	as_user "{\"uid\": 54322}" 'runtime=(--runtime runc); ask debian cuda-add'
	[[ $status -ne 0 ]]
	expect "uid $user gets no GPU by vCUDA here; the administrator allows it by {\"vcuda\": {\"users\": [{\"uid\": $user}]}}"
	expect_not "sums are right"
}

# bats test_tags=nightly
@test "containers of a user side by side share what is the user's, and one that ends leaves nothing" {
	as_user "{\"uid\": $user, \"memory\": \"2G\", \"containers\": 2}" '
		ask -d --name first -e CTR_GPU_MEMORY=1G debian sh -c "cuda-add; sleep 300" >/dev/null
		ask debian cuda-add
		runtime=(--runtime runc)
		ask -d --name second debian sleep 300 >/dev/null
		if ask debian cuda-add; then exit 1; fi
		podman kill first second >/dev/null
		runtime=()
		ask debian cuda-add
		ls -d /run/ctr-gpu-vcuda/54321 2>&1 || echo none'
	expect_status 0
	[[ $(grep -cx "$small" <<<"$output") == 2 ]]
	expect "\"containers\" allows"
	expect_line none
}
