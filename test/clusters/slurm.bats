#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2089,SC2090,SC2154
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

# Slurm leaves some of its cgroups.
teardown() {
	find /sys/fs/cgroup -depth -type d -path '*/slurm_node1*' -exec rmdir {} + 2>/dev/null || true
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

# with_plugin PROFILE SCRIPT: the same with Slurm's plugin, and with the files of examples/slurm. In SCRIPT `user` runs a command as a
# user; $settings are ctr-gpu's, $stack a line for plugstack.conf, $slurm lines for slurm.conf.
with_plugin() {
	[[ -z $("$here/../../pkg/needs" slurm) ]] || { echo "the machine lacks libslurm-dev, so there is no plugin to be tested"; return 1; }
	settings=${settings-'{"runtimes": ["crun"]}'} stack=${stack-} slurm=${slurm-} \
		sandbox "$1" bash -ec 'directory=$1 bin=$(dirname "$(command -v ctr-gpu)"); mkdir -p "$directory" /etc/ctr-gpu; chmod 755 "$directory"
		printf "%s\n" "$settings" >/etc/ctr-gpu/config.json
		for file in cgroup oci plugstack; do cp "$5/$file.conf" "$directory"; done
		sed -i "s,ctr-gpu-runtime,$bin/&," "$directory/oci.conf"
		sed -i "s,spank_ctr_gpu.so.*,$bin/../lib/slurm/& program=$bin/ctr-gpu," "$directory/plugstack.conf"
		[[ -z $stack ]] || echo "$stack" >"$directory/plugstack.conf"
		printf "%s\n" "$slurm" >"$directory/more.conf"
		ctr-gpu slurm nodes >/dev/null
		ctr-gpu slurm gres >"$directory/gres.conf"
		user() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp "$@"; }
		export -f user
		timeout 240 "$2" "$directory" "$(sed -n "s/^# Gres=//p" "$directory/gres.conf")" bash -ec "$3"' \
		slurm /run/slurm "$here/slurm-node" "$2" - "$here/../../examples/slurm"
}

# What a job is asked.
asks='echo "${CUDA_VISIBLE_DEVICES-unset} ${NVIDIA_VISIBLE_DEVICES-unset}"'

@test "plugin: a job is told its GPUs and no others, whatever its user says" {
	export asks
	with_plugin wsl-two-nvidia '
		user srun --gres=gpu:nvidia_rtx_a2000:1 sh -c "$asks; ls /run/ctr-gpu-slurm; cat /run/ctr-gpu-slurm/*; echo"
		user env SLURM_STEP_GPUS=0,1 SLURM_JOB_GPUS=0,1 CUDA_VISIBLE_DEVICES=0,1 NVIDIA_VISIBLE_DEVICES=all srun sh -c "$asks"
		srun --gres=gpu:2 sh -c "$asks"
		install -d -o 65534 "$directory/user"; cd "$directory/user"
		printf "#!/bin/bash\n$asks\nsrun sh -c %q\n" "$asks" >"$directory/batch"
		user env SLURM_STEP_GPUS=0,1 SLURM_JOB_GPUS=0,1 sbatch --quiet --wait --gres=gpu:nvidia_rtx_a2000:1 --output=/run/slurm/user/out "$directory/batch"
		cat /run/slurm/user/out
		# Its steps have ended.
		until [[ -z $(squeue -h) ]]; do sleep 0.1; done
		ls -A /run/ctr-gpu-slurm' >"$BATS_TEST_TMPDIR/said"
	diff "$BATS_TEST_TMPDIR/said" - <<-'END'
		1 LUID-000000007b10aa04
		1.0
		{"uid":65534,"held":false,"devices":"LUID-000000007b10aa04"}
		unset void
		0,1 LUID-000000005a3f1c2b,LUID-000000007b10aa04
		1 LUID-000000007b10aa04
		1 LUID-000000007b10aa04
	END
}

@test "plugin: GPUs of two vendors may have the same number, where Slurm constrains devices" {
	with_plugin wsl-hybrid '
		says="echo \${CUDA_VISIBLE_DEVICES-unset} \${ZE_AFFINITY_MASK-unset} \$NVIDIA_VISIBLE_DEVICES"
		srun --gres=gpu:intel_r_iris_r_xe_graphics:1 sh -c "$says"
		srun --gres=gpu:nvidia_geforce_rtx_4070_laptop_gpu:1 sh -c "$says"
		srun --gres=gpu:2 sh -c "$says"' >"$BATS_TEST_TMPDIR/said"
	diff <(sed 's/LUID-[0-9a-f]*/LUID/g' "$BATS_TEST_TMPDIR/said") - <<-END
		unset 0 LUID
		0 unset LUID
		0 0 LUID,LUID
	END
	[[ $(cut -d " " -f 3 "$BATS_TEST_TMPDIR/said" | head -n 2 | sort -u | wc -l) == 2 ]]
}

@test "plugin: where a choice cannot be held, the settings decide what becomes of the job" {
	settings='{"choice": "strict"}' run with_plugin wsl-two-nvidia 'srun --gres=gpu:2 echo all; srun --gres=gpu:1 echo one || true; srun echo none'
	[[ $status != 0 && $output == *all* && $output == *"[E_GUARD] the job's choice of GPUs cannot be held on this node: "* && $output != *one* && $output != *none* ]]
	settings='{"choice": "guard"}' run with_plugin wsl-two-nvidia 'srun --gres=gpu:1 echo one; grep -o "warning: .*" "$directory/log/slurmd"'
	[[ $status == 0 && $output == *one* && $output == *"the job's choice of GPUs is not held: "* ]]
	stack="optional $CTR_GPU_BUILD/lib/slurm/spank_ctr_gpu.so program=/nowhere" run with_plugin wsl-two-nvidia 'srun --gres=gpu:1 echo one'
	[[ $status == 0 && $output == *one* && $output == *"/nowhere cannot be run: No such file or directory"* ]]
	stack="required $CTR_GPU_BUILD/lib/slurm/spank_ctr_gpu.so program=/nowhere" run with_plugin wsl-two-nvidia 'srun --gres=gpu:1 echo one'
	[[ $status != 0 && $output != *one* ]]
}

@test "plugin: nothing of a step is left, however it ends" {
	with_plugin wsl-two-nvidia '
		left() { until [[ -z $(squeue -h) ]]; do sleep 0.1; done; echo "$1"; ls -A /run/ctr-gpu-slurm; }
		runs() { until [[ $(ls /run/ctr-gpu-slurm 2>/dev/null) == "$1" ]]; do sleep 0.1; done; }
		user srun --quiet --gres=gpu:1 sleep 100 & runs 1.0; scancel 1; wait || true; left cancelled
		user srun --quiet --gres=gpu:1 sleep 100 & runs 2.0; kill -KILL $(pgrep -f "^slurmstepd: .2.0|sleep 100$"); wait || true; scancel 2; left killed
		user srun --quiet --gres=gpu:1 sleep 3 & runs 3.0; kill $(cat "$directory/slurmd.pid"); sleep 1; slurmd; wait || true; left restarted' >"$BATS_TEST_TMPDIR/said"
	diff "$BATS_TEST_TMPDIR/said" - <<-END
		cancelled
		killed
		restarted
	END
}

@test "srun --container gives a bundle the step's GPUs, as root and as a user, whatever its environment says" {
	with_plugin wsl-two-nvidia '
		bundle=$directory/bundle; mkdir -p "$bundle"/rootfs/{bin,dev,proc,sys,tmp,etc}; cp /bin/busybox "$bundle/rootfs/bin/sh"; cd "$bundle"
		asks="for d in /dev/dxg /usr/lib/wsl/drivers/*/libcuda.so*; do [ ! -e \$d ] || echo \$d; done"
		crun spec; sed -i "s/\"terminal\": true/\"terminal\": false/" config.json
		NVIDIA_VISIBLE_DEVICES=all srun --gres=gpu:nvidia_rtx_a2000:1 --container="$bundle" /bin/sh -c "$asks"
		rm config.json; chown -R 65534:65534 .; user crun spec --rootless; sed -i "s/\"terminal\": true/\"terminal\": false/" config.json
		echo user; user NVIDIA_VISIBLE_DEVICES=all srun --gres=gpu:nvidia_rtx_a2000:1 --container="$bundle" /bin/sh -c "$asks"
		echo none; user NVIDIA_VISIBLE_DEVICES=all srun --container="$bundle" /bin/sh -c "$asks"' >"$BATS_TEST_TMPDIR/said"
	diff "$BATS_TEST_TMPDIR/said" - <<-END
		/dev/dxg
		$(store wsl-two-nvidia 1)/libcuda.so.1.1
		user
		/dev/dxg
		$(store wsl-two-nvidia 1)/libcuda.so.1.1
		none
	END
}
