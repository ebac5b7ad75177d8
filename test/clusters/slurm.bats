#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# Slurm's own daemons and clients on simulated hosts, with what `ctr-gpu slurm` tells them.

bats_require_minimum_version 1.5.0
load ../e2e/engines

here=$(dirname "$(readlink -f "$BATS_TEST_FILENAME")")

setup_file() {
	require_root
	require_program slurmctld
	require_program slurmd
	require_program munged
}

# slurm PROFILE SCRIPT: a shell beside a Slurm whose node is told what ctr-gpu says, in $directory
slurm() {
	sandbox "$1" bash -ec 'directory=$1; mkdir -p "$directory"; rm -rf /etc/ctr-gpu
		printf "#!/bin/sh\necho export NVIDIA_VISIBLE_DEVICES=\"\${CUDA_VISIBLE_DEVICES:-void}\"\n" >"$directory/prolog"; chmod 755 "$directory/prolog"
		echo "TaskProlog=$directory/prolog" >"$directory/more.conf"
		ctr-gpu slurm nodes >/dev/null
		ctr-gpu slurm gres >"$directory/gres.conf"
		ctr-gpu slurm gres --check="$directory/gres.conf" >/dev/null
		gres=$(sed -n "s/^# Gres=//p" "$directory/gres.conf")
		timeout 240 "$2" "$directory" "$gres" bash -ec "$3"' slurm "$BATS_TEST_TMPDIR/slurm" "$here/slurm-node" "$2"
}

@test "jobs on adapters behind /dev/dxg get one each, and each is told which" {
	slurm wsl-two-nvidia '
		srun --gres=gpu:2 env | grep -E "^(CUDA_VISIBLE_DEVICES|SLURM_STEP_GPUS)="
		srun --gres=gpu:nvidia_rtx_a2000:1 env | grep -E "^(CUDA|NVIDIA)_VISIBLE_DEVICES="
		NVIDIA_VISIBLE_DEVICES=all srun env | grep -E "^(CUDA|NVIDIA)_VISIBLE_DEVICES="
		# Two at once, each of which waits for the other.
		meet="mkdir /tmp/\$CUDA_VISIBLE_DEVICES.meet.\$0; while [ \$(ls -d /tmp/*.meet.\$0 | wc -l) -lt 2 ]; do sleep 0.1; done; echo \$CUDA_VISIBLE_DEVICES"
		srun --gres=gpu:1 sh -c "$meet" $$ & srun --gres=gpu:1 sh -c "$meet" $$ & wait; rmdir /tmp/*.meet.$$' >"$BATS_TEST_TMPDIR/said"
	diff <(sort "$BATS_TEST_TMPDIR/said") <(printf '%s\n' CUDA_VISIBLE_DEVICES=0,1 SLURM_STEP_GPUS=0,1 {CUDA,NVIDIA}_VISIBLE_DEVICES=1 NVIDIA_VISIBLE_DEVICES=void 0 1 | sort)
}

@test "a job that asks for more than there is waits until another ends" {
	slurm wsl-two-nvidia '
		srun --gres=gpu:2 sh -c "while [ ! -e $directory/go ]; do sleep 0.1; done; echo first" & 
		until squeue -h -t running | grep -q .; do sleep 0.1; done
		srun --gres=gpu:1 echo second &
		until squeue -h -t pending | grep -q .; do sleep 0.1; done
		touch "$directory/go"; wait' >"$BATS_TEST_TMPDIR/said"
	diff "$BATS_TEST_TMPDIR/said" <(printf '%s\n' first second)
}

@test "native GPUs are counted by their own nodes" {
	slurm native-four 'srun --gres=gpu:nvidia_h200:4 env | grep ^CUDA_VISIBLE_DEVICES=; slurmd -G 2>&1' >"$BATS_TEST_TMPDIR/said"
	grep -qx CUDA_VISIBLE_DEVICES=0,1,2,3 "$BATS_TEST_TMPDIR/said"
	! grep -i error "$BATS_TEST_TMPDIR/said" || false
}
