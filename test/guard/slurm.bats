#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# The guard with Slurm's own daemons, in a guest (test/guard/run) that has cgroup version 2 and no other: jobs without any container, on
# a machine with two adapters of one vendor and one store.

load guard

slurm=/run/slurm
export SLURM_CONF=$slurm/slurm.conf
records=/run/ctr-gpu-slurm

# Everything but COMMAND… waits as long as an emulator may take.
start_node() {
	SLURM_NODE_NAMED=1 SLURM_NODE_PATIENCE=3000 "$BATS_TEST_DIRNAME/../clusters/slurm-node" "$slurm" \
		"$(sed -n 's/^# Gres=//p' "$slurm/gres.conf")" touch "$slurm/ready" >"$slurm/out" 2>&1 3>&- &
	soon test -e "$slurm/ready" || cat "$slurm/out" "$slurm"/log/* >&2
}

setup_file() {
	local file program

	for program in slurmctld slurmd srun munged crun; do
		require_program "$program"
	done
	guest_setup
	host one-store
	mkdir -p "$slurm" /etc/ctr-gpu
	printf '{"choice": "guard", "runtimes": ["crun"]}\n' >/etc/ctr-gpu/config.json
	for file in cgroup plugstack oci; do
		cp "$BATS_TEST_DIRNAME/../../examples/slurm/$file.conf" "$slurm/"
	done
	sed -i "s,spank_ctr_gpu.so.*,$CTR_GPU_BUILD/lib/slurm/& program=$CTR_GPU_BUILD/bin/ctr-gpu timeout=600," "$slurm/plugstack.conf"
	sed -i "s,ctr-gpu-runtime,$CTR_GPU_BUILD/bin/&," "$slurm/oci.conf"
	printf '%s\n' MessageTimeout=100 SlurmdDebug=debug >"$slurm/more.conf"
	ctr-gpu slurm nodes >/dev/null
	ctr-gpu slurm gres >"$slurm/gres.conf"
	hostname node1
	start_node
	# What a job does: it looks for its own adapter and for the other one in each way of asking, while another job does the same.
	cat >"$slurm/looks" <<-END
		#!/bin/bash
		case \$NVIDIA_VISIBLE_DEVICES in
		LUID-$(luid 1:a1)) own=1:a1 other=1:a2 ;;
		LUID-$(luid 1:a2)) own=1:a2 other=1:a1 ;;
		*) exit 1 ;;
		esac
		meet() {
			mkdir "\$1/\$own"
			until [[ \$(ls "\$1" | wc -l) == 2 ]]; do sleep 0.1; done
		}
		[[ \$# == 0 ]] || meet "\$1"
		for mode in "" --int80; do
			"$clients/enumerate" \$mode "\$own" -- "\$other"
			"$clients/guess" \$mode "\$own" -- "\$other"
		done
		[[ \$# == 0 ]] || meet "\$1.end"
		echo "done with \$own by \$(id -u)"
	END
	chmod 755 "$slurm/looks"
}

teardown_file() {
	local pid

	# What still has bats' output keeps it from ending.
	for pid in "$slurm"/{slurmd,slurmctld}.pid /run/munge/munged.pid; do
		kill "$(<"$pid")" || true
	done
}

teardown() {
	[[ -n $BATS_TEST_COMPLETED ]] || tail -n 30 "$slurm"/log/*
}

user() {
	setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp "$@"
}

# saw TEXT ADAPTER…: the output of that many jobs, each of which saw its own alone
saw() {
	local text=$1
	shift

	grep -v '^ok' <<<"$text" || true
	! grep -q '^not ok' <<<"$text" || return
	[[ $(sed -n 's/^done with \([^ ]*\) .*/\1/p' <<<"$text" | sort) == "$(printf '%s\n' "$@")" ]]
}

choices() {
	[[ $(ctr-gpu-guard status --json | jq '.choices | length') == "$1" ]]
}

job_runs() {
	[[ -e $records/$1 ]] && choices 1
}

job_of() {
	squeue --noheader --format %i
}

nothing_is_left() {
	[[ -z $(squeue --noheader) && -z $(ls -A "$records") ]] && choices 0 && [[ -z $(find /sys/fs/cgroup -name 'job_*') ]]
}

@test "slurmd and its jobs are in cgroups of version 2, and it constrains devices there" {
	[[ $(</proc/self/cgroup) == 0::* && $(wc -l </proc/self/cgroup) == 1 ]]
	run srun --gres=gpu:1 bash -c 'cat /proc/self/cgroup; for node in /run/ctr-gpu/slurm/nvidia*; do : <$node; done'
	echo "$output"
	expect "slurmstepd.scope/job_"
	expect "/step_0/user/task_0"
	[[ $(grep -c "No such device or address" <<<"$output") == 1 && $(grep -c "Operation not permitted" <<<"$output") == 1 ]]
}

@test "two jobs of one GPU each at once: each sees its own by the guard, as root and as a user" {
	local meet=$slurm/meet

	mkdir -m 1777 "$meet" "$meet.end"
	srun --gres=gpu:1 "$slurm/looks" "$meet" >"$slurm/first" 2>&1 3>&- &
	user srun --gres=gpu:1 "$slurm/looks" "$meet" >"$slurm/second" 2>&1 3>&- &
	wait
	saw "$(<"$slurm/first")"$'\n'"$(<"$slurm/second")" 1:a1 1:a2
	grep -q "by 0$" "$slurm/first"
	grep -q "by 65534$" "$slurm/second"
	soon nothing_is_left
}

@test "a job without GPUs sees none, one with both sees both" {
	holds srun "$clients/enumerate" -- 1:a1 1:a2
	holds srun --gres=gpu:2 "$clients/enumerate" 1:a1 1:a2
	soon nothing_is_left
}

@test "a step has fewer GPUs than its job, and tasks of a step have the step's" {
	run salloc --quiet --gres=gpu:2 bash -c 'srun --gres=gpu:1 --exact "$0"; srun --gres=gpu:2 --exact "$1" 1:a1 1:a2' "$slurm/looks" "$clients/enumerate"
	echo "$output"
	expect_status 0
	saw "$output" 1:a1
	run srun --gres=gpu:1 --ntasks=3 "$slurm/looks"
	saw "$output" 1:a1 1:a1 1:a1
	soon nothing_is_left
}

@test "scancel, and the killing of a step's slurmstepd, leave no choice behind" {
	local job

	user srun --quiet --gres=gpu:1 sleep 1000 >/dev/null 2>&1 3>&- &
	soon eval '[[ -n $(job_of) ]]'
	job=$(job_of)
	soon job_runs "$job.0"
	scancel "$job"
	wait $! || true
	soon nothing_is_left
	user srun --quiet --gres=gpu:1 sleep 1000 >/dev/null 2>&1 3>&- &
	soon eval '[[ -n $(job_of) ]]'
	job=$(job_of)
	soon job_runs "$job.0"
	pkill -KILL -f "^slurmstepd: .$job.0"
	# What a task does without it, is held as before.
	sleep 1
	choices 1
	pkill -KILL -f 'sleep 1000$'
	scancel "$job"
	wait $! || true
	soon nothing_is_left
}

restart_slurmd() {
	local old

	old=$(<"$slurm/slurmd.pid")
	kill "-$1" "$old"
	soon eval '! kill -0 '"$old"' 2>/dev/null'
	slurmd 3>&-
}

@test "slurmd restarted in the middle of a job: the job keeps its adapter, and its end leaves nothing" {
	local job signal

	for signal in TERM KILL; do
		rm -f "$slurm/go"
		srun --gres=gpu:1 bash -c 'until [[ -e '"$slurm"'/go ]]; do sleep 0.1; done; exec '"$slurm/looks" >"$slurm/first" 2>&1 3>&- &
		soon eval '[[ -n $(job_of) ]]'
		job=$(job_of)
		soon job_runs "$job.0"
		restart_slurmd "$signal"
		job_runs "$job.0"
		touch "$slurm/go"
		wait $!
		saw "$(<"$slurm/first")" 1:a1
		soon nothing_is_left
	done
}

@test "slurmd, a step's slurmstepd and its tasks are killed together: slurmd's start leaves nothing" {
	local job

	user srun --quiet --gres=gpu:1 sleep 1000 >/dev/null 2>&1 3>&- &
	soon eval '[[ -n $(job_of) ]]'
	job=$(job_of)
	soon job_runs "$job.0"
	pkill -KILL -f "^slurmstepd: .$job.0|sleep 1000$"
	restart_slurmd KILL
	scancel "$job" || true
	wait $! || true
	soon nothing_is_left
	run srun --gres=gpu:1 "$slurm/looks"
	saw "$output" 1:a1
}

@test "srun --container: a container of root's has the step's adapter, and Slurm's rules stay" {
	local bundle=$slurm/bundle

	image_copy debian "$bundle/rootfs"
	cp "$clients"/{enumerate,guess} "$bundle/rootfs/usr/bin/"
	(cd "$bundle" && crun spec)
	sed -i 's/"terminal": true/"terminal": false/' "$bundle/config.json"
	holds srun --gres=gpu:1 --container="$bundle" /usr/bin/enumerate 1:a1 -- 1:a2
	holds srun --gres=gpu:1 --container="$bundle" /usr/bin/guess 1:a1 -- 1:a2
	soon nothing_is_left
}

@test "the kernel is well" {
	kernel_is_well
}
