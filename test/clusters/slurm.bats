#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2089,SC2090,SC2154
# bats file_tags=alone
#
# Slurm's own daemons and clients on simulated hosts, with what `ctr-gpu slurm` tells them. Alone: they have the machine's network, and
# cgroups of one name.

bats_require_minimum_version 1.5.0
load ../e2e/engines

here=$(dirname "$(readlink -f "$BATS_TEST_FILENAME")")
[[ $BATS_TEST_FILENAME != *-sid* ]] || release=sid

# Of another release of Debian it is a tree with its Slurm, and a plugin that is built for that.
setup_file() {
	require_root
	spank=$CTR_GPU_BUILD/lib/slurm/spank_ctr_gpu.so
	if [[ -n ${release-} ]]; then
		require_program debootstrap
		engine_tree=$("$here/../engines/tree" "$release" busybox-static crun iproute2 jq libcap2 libjansson4 libseccomp2 libslurm-dev libtirpc3t64 libyaml-0-2 munge procps \
			slurm-client slurmctld slurmd)
		export engine_tree engine_bare=1
		mkdir "$BATS_FILE_TMPDIR/include"
		cp -a "$engine_tree/usr/include/slurm" "$BATS_FILE_TMPDIR/include/"
		spank=$BATS_FILE_TMPDIR/spank_ctr_gpu.so
		"${CC:-gcc}" -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -fPIC -shared -isystem "$BATS_FILE_TMPDIR/include" -I"$here/../../src" \
			-DCTR_GPU_BINDIR='"/usr/bin"' -o "$spank" "$here/../../src/slurm/spank/spank.c"
	else
		require_program slurmctld
		require_program slurmd
		require_program munged
	fi
	export spank
}

# Slurm leaves some of its cgroups.
teardown() {
	find /sys/fs/cgroup -depth -type d \( -path '*/slurm_node1*' -o -path '*/system.slice/node1_slurmstepd.scope*' \) -exec rmdir {} + 2>/dev/null || true
}

# slurm PROFILE SCRIPT: a shell beside a Slurm whose node is told what ctr-gpu says, in $directory
slurm() {
	sandbox "$1" bash -ec 'PATH=$CTR_GPU_BUILD/bin:$PATH directory=$1; mkdir -p "$directory"; rm -rf /etc/ctr-gpu
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
# user, and `batch_output FILE` prints what a batch job has written. $settings are ctr-gpu's, $stack a line for plugstack.conf, $slurm
# lines for slurm.conf.
with_plugin() {
	[[ -e $spank ]] || { echo "the machine lacks libslurm-dev, so there is no plugin to be tested"; return 1; }
	settings=${settings-'{"runtimes": ["crun"]}'} stack=${stack-} slurm=${slurm-} \
		sandbox "$1" bash -ec 'PATH=$CTR_GPU_BUILD/bin:$PATH directory=$1 bin=$CTR_GPU_BUILD/bin; mkdir -p "$directory" /etc/ctr-gpu; chmod 755 "$directory"; cp "$spank" "$directory/"
		printf "%s\n" "$settings" >/etc/ctr-gpu/config.json
		for file in cgroup oci plugstack; do cp "$5/$file.conf" "$directory"; done
		sed -i "s,ctr-gpu-runtime,$bin/&," "$directory/oci.conf"
		sed -i "s,spank_ctr_gpu.so.*,$directory/& program=$bin/ctr-gpu," "$directory/plugstack.conf"
		[[ -z $stack ]] || echo "$stack" >"$directory/plugstack.conf"
		printf "%s\n" "$slurm" >"$directory/more.conf"
		ctr-gpu slurm nodes >/dev/null
		ctr-gpu slurm gres >"$directory/gres.conf"
		user() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp "$@"; }
		# Slurm 22.05 reads the control group of a step that has just ended, and says in the output of the job that it is gone.
		batch_output() { grep -v "^slurmstepd-node1: error: .*/sys/fs/cgroup/" "$1"; }
		export -f user batch_output
		timeout 240 "$2" "$directory" "$(sed -n "s/^# Gres=//p" "$directory/gres.conf")" bash -ec "$3"' \
		slurm /run/slurm "$here/slurm-node" "$2" - "$here/../../examples/slurm"
}

# What a job is asked.
asks='echo "${CUDA_VISIBLE_DEVICES-unset} ${NVIDIA_VISIBLE_DEVICES-unset}"'

@test "plugin: a job is told its GPUs and no others, whatever its user says" {
	export asks
	with_plugin wsl-two-nvidia '
		user srun --gres=gpu:nvidia_rtx_a2000:1 sh -c "$asks; ls /run/ctr-gpu-slurm; sed s/,.stepd.:[0-9]*// /run/ctr-gpu-slurm/*; echo"
		user env SLURM_STEP_GPUS=0,1 SLURM_JOB_GPUS=0,1 CUDA_VISIBLE_DEVICES=0,1 NVIDIA_VISIBLE_DEVICES=all srun sh -c "$asks"
		srun --gres=gpu:2 sh -c "$asks"
		install -d -o 65534 "$directory/user"; cd "$directory/user"
		printf "#!/bin/bash\n$asks\nsrun sh -c %q\n" "$asks" >"$directory/batch"
		user env SLURM_STEP_GPUS=0,1 SLURM_JOB_GPUS=0,1 sbatch --quiet --wait --gres=gpu:nvidia_rtx_a2000:1 --output=/run/slurm/user/out "$directory/batch"
		batch_output /run/slurm/user/out
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

@test "plugin: a step has fewer GPUs than its job, and its tasks have the step's" {
	export asks
	with_plugin wsl-two-nvidia '
		opens="for node in /run/ctr-gpu/slurm/nvidia*; do head -c 1 \$node 2>&1 | sed s,.*:,,; done; sed -n s,.*/job_,job_,p /proc/self/cgroup | sort -u"
		salloc --quiet --gres=gpu:2 srun --gres=gpu:1 --exact sh -c "$asks; $opens"
		srun --quiet --gres=gpu:nvidia_rtx_a2000:1 --ntasks=3 sh -c "$asks"' >"$BATS_TEST_TMPDIR/said"
	diff <(grep -v job_ "$BATS_TEST_TMPDIR/said") - <<-END
		0 LUID-000000005a3f1c2b
		 No such device or address
		 Operation not permitted
		1 LUID-000000007b10aa04
		1 LUID-000000007b10aa04
		1 LUID-000000007b10aa04
	END
	[[ $(cgroup_version) == 1 ]] || [[ $(grep job_ "$BATS_TEST_TMPDIR/said") == job_1/step_0/user/task_0 ]]
}

@test "plugin: where a choice cannot be held, the settings decide what becomes of the job" {
	settings='{"choice": "strict"}' run with_plugin wsl-two-nvidia 'srun --gres=gpu:2 echo all; srun --gres=gpu:1 echo one || true; srun echo none'
	[[ $status != 0 && $output == *all* && $output == *"[E_GUARD] the job's choice of GPUs cannot be held on this node: "* && $output != *one* && $output != *none* ]]
	settings='{"choice": "guard"}' run with_plugin wsl-two-nvidia 'srun --gres=gpu:1 echo one; grep -o "warning: .*" "$directory/log/slurmd"'
	[[ $status == 0 && $output == *one* && $output == *"the job's choice of GPUs is not held: "* ]]
	stack="optional /run/slurm/spank_ctr_gpu.so program=/nowhere" run with_plugin wsl-two-nvidia 'srun --gres=gpu:1 echo one'
	[[ $status == 0 && $output == *one* && $output == *"/nowhere cannot be run: No such file or directory"* ]]
	stack="required /run/slurm/spank_ctr_gpu.so program=/nowhere" run with_plugin wsl-two-nvidia 'srun --gres=gpu:1 echo one'
	[[ $status != 0 && $output != *one* ]]
}

@test "plugin: a ctr-gpu that does not end is killed in time, and the step says so" {
	printf '#!/bin/sh\nsleep 1000 & echo CUDA_VISIBLE_DEVICES=0\nwait\n' >"$BATS_TEST_TMPDIR/slow"
	printf '#!/bin/sh\nsleep 1001 >/dev/null 2>&1 &\nexec >/dev/null 2>&1\nwait\n' >"$BATS_TEST_TMPDIR/silent"
	chmod -R go+rX "$BATS_TEST_TMPDIR"
	chmod 755 "$BATS_TEST_TMPDIR"/{slow,silent}
	for program in slow silent; do
		stack="required /run/slurm/spank_ctr_gpu.so program=$BATS_TEST_TMPDIR/$program timeout=2 timeout=x" run with_plugin wsl-two-nvidia '
			srun --gres=gpu:1 echo one || echo refused; grep -o "ctr_gpu: .*timeout=x.*" "$directory/log/slurmd" | head -n 1; # It is run at the end of a step, too.
			for i in {1..600}; do pgrep -f "^sleep 100[01]$" >/dev/null || exit 0; sleep 0.1; done; exit 1'
		echo "$output"
		[[ $status == 0 && $output == *refused* && $output != *one* ]]
		expect "ctr_gpu: $BATS_TEST_TMPDIR/$program has not ended within 2 s and was killed"
		expect '"timeout=x" in plugstack.conf is left out'
	done
}

@test "plugin: no task starts with a part of what is decided for it" {
	printf '#!/bin/sh\necho CUDA_VISIBLE_DEVICES=0\nyes "mount /dev/null /dev/null" | head -n 1000\n' >"$BATS_TEST_TMPDIR/long"
	chmod -R go+rX "$BATS_TEST_TMPDIR"
	chmod 755 "$BATS_TEST_TMPDIR/long"
	stack="required /run/slurm/spank_ctr_gpu.so program=$BATS_TEST_TMPDIR/long" run with_plugin wsl-two-nvidia '
		srun --gres=gpu:1 echo one || echo refused'
	echo "$output"
	[[ $status == 0 && $output == *refused* && $output != *one* ]]
	expect "ctr_gpu: $BATS_TEST_TMPDIR/long says more than 16383 bytes"
}

@test "plugin: what the user has in a list stays behind what is put in front of it, however long it is" {
	printf '#!/bin/sh\necho LD_LIBRARY_PATH+=/ours\n' >"$BATS_TEST_TMPDIR/lists"
	chmod -R go+rX "$BATS_TEST_TMPDIR"
	chmod 755 "$BATS_TEST_TMPDIR/lists"
	stack="required /run/slurm/spank_ctr_gpu.so program=$BATS_TEST_TMPDIR/lists" with_plugin wsl-two-nvidia '
		says="echo \$LD_LIBRARY_PATH | cut -c-12; echo \${#LD_LIBRARY_PATH}"
		LD_LIBRARY_PATH=/mine srun sh -c "$says"; LD_LIBRARY_PATH= srun sh -c "$says"
		LD_LIBRARY_PATH=/mine:$(printf "%0100000d" 0) srun sh -c "$says"' >"$BATS_TEST_TMPDIR/said"
	diff "$BATS_TEST_TMPDIR/said" <(printf '%s\n' /ours:/mine 11 /ours 5 /ours:/mine: 100012)
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

# with_slots SCRIPT: with_plugin, where vCUDA's manager runs and each of two GPUs, of 24 and 8 GiB, is given in four slots. Their driver is
# vcuda/test/sim's.
with_slots() {
	[[ -e $CTR_GPU_BUILD/vcuda/test/sim/libcuda.so.1 ]] || { echo "vcuda/test/sim is not built"; return 1; }
	export CTR_GPU_BUILD
	settings='{"runtimes": ["crun"], "vcuda": {"slots": 4}}' with_plugin wsl-two-nvidia '
		uuids=$(ctr-gpu info --json | jq -r "[.adapters[].uuid | sub(\"GPU-\"; \"\") | gsub(\"-\"; \"\")] | join(\",\")")
		mkdir /run/driver; cp -a /usr/lib/wsl/lib/. /run/driver; rm -f /run/driver/lib{cuda,nvidia-ml}.so.1
		cp "$CTR_GPU_BUILD"/vcuda/test/sim/lib{cuda,nvidia-ml}.so.1 /run/driver/
		printf "%s\n" GPUS=2 MEMORY=24G,8G "UUIDS=$uuids" NAMES=Big,Small >/run/driver/sim.conf
		mount --bind /run/driver /usr/lib/wsl/lib
		ctr-gpu-vcudad 2>/run/audit & manager=$!
		tools=$CTR_GPU_BUILD/test/tools adds=$CTR_GPU_BUILD/test/real/cuda-add
		grants() { ctr-gpu vcuda list --json | jq -c "[.containers[].container] | sort"; }
		soon() { for i in {1..1500}; do ! "$@" || return 0; sleep 0.02; done; echo "not soon: $*"; cat /run/audit "$directory"/log/slurmd; return 1; }
		granted() { [[ $(grants) == "$1" ]]; }
		soon granted "[]" >/dev/null
		'"$1"
}

@test "slots: a step has a part of a GPU by vCUDA, without any device, and the grant ends with it" {
	with_slots '
		tail -n 1 "$directory/gres.conf"
		says="echo \$CUDA_VISIBLE_DEVICES \$NVIDIA_VISIBLE_DEVICES; stat -c %t:%T /dev/dxg; $tools/vcuda-hold </dev/null; $adds"
		user LD_LIBRARY_PATH=/mine srun --gres=gpu:vgpu:1 sh -c "$says; echo \$LD_LIBRARY_PATH" | sed "s,$CTR_GPU_BUILD,BUILD,"
		echo two; srun --gres=gpu:vgpu:2 --ntasks=2 sh -c "$tools/vcuda-hold </dev/null"
		echo none; user CUDA_VISIBLE_DEVICES=0 srun sh -c "echo \${CUDA_VISIBLE_DEVICES-unset} \$NVIDIA_VISIBLE_DEVICES; stat -c %t:%T /dev/dxg; ls /run/ctr-gpu-slurm/vcuda"
		soon granted "[]"; stat -c %a:%F /dev/dxg | grep -q character' >"$BATS_TEST_TMPDIR/said"
	diff "$BATS_TEST_TMPDIR/said" - <<-END
		# Gres=gpu:vgpu:8
		GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4 void
		1:3
		devices=1
		total=6442450944
		ready
		driver=13.0
		GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4: Big: 1048576 sums are right
		BUILD/lib/vcuda:/mine
		two
		devices=1
		total=12884901888
		ready
		devices=1
		total=12884901888
		ready
		none
		unset void
		1:3
	END
}

@test "slots: as many steps as there are slots have one each, and a batch script shares its own with its steps" {
	with_slots '
		job="echo \$CUDA_VISIBLE_DEVICES; $tools/vcuda-hold </dev/null; until [ -e $directory/go ]; do sleep 0.1; done"
		for i in {1..8}; do srun --quiet --gres=gpu:vgpu:1 sh -c "$job" & jobs+=($!); done
		soon eval "[[ \$(grants | jq length) == 8 ]]"; srun --quiet --gres=gpu:vgpu:1 echo ninth & jobs+=($!)
		until squeue -h -t pending -o pending | grep .; do sleep 0.1; done
		ctr-gpu vcuda list --json | jq -c "[.containers[] | [.share, .gpus[0].name]] | group_by(.)[] | [.[0], length]"
		touch "$directory/go"; wait "${jobs[@]}"
		soon granted "[]"
		printf "#!/bin/bash\n$tools/vcuda-hold </dev/null\nsrun sh -c \"$tools/vcuda-hold </dev/null\"\nctr-gpu vcuda list --json | jq -c .containers[].container\n" >"$directory/batch"
		sbatch --quiet --wait --gres=gpu:vgpu:1 --output="$directory/out" "$directory/batch"; batch_output "$directory/out"
		soon granted "[]"' >"$BATS_TEST_TMPDIR/said"
	[[ $(grep -c "^GPU-5a3f1c2b" "$BATS_TEST_TMPDIR/said") == 4 && $(grep -c "^GPU-7b10aa04" "$BATS_TEST_TMPDIR/said") == 4 ]]
	diff <(grep -v "^GPU\|^ready" "$BATS_TEST_TMPDIR/said" | sort | uniq -c | sed "s/^ *//") - <<-END
		1 "slurm-10"
		1 [[100,"NVIDIA GeForce RTX 4090"],4]
		1 [[100,"NVIDIA RTX A2000"],4]
		10 devices=1
		1 ninth
		1 pending
		4 total=2147483648
		6 total=6442450944
	END
}

@test "slots: scancel, killed slurmstepds and a killed slurmd leave no grant, and a manager that is started again has those that run" {
	with_slots '
		runs() { until [[ -e /run/ctr-gpu-slurm/$1 ]]; do sleep 0.1; done; }
		user srun --quiet --gres=gpu:vgpu:1 sleep 1000 & runs 1.0; granted "[\"slurm-1.0\"]"; scancel 1; wait $! || true; soon granted "[]"; echo cancelled
		user srun --quiet --gres=gpu:vgpu:1 sleep 1000 & runs 2.0; kill -KILL $(pgrep -f "^slurmstepd: .2.0"); soon granted "[]"; scancel 2; wait $! || true; echo killed
		user srun --quiet --gres=gpu:vgpu:1 sh -c "until [ -e $directory/go ]; do sleep 0.1; done; $adds" & job=$!; runs 3.0
		kill -KILL $(cat "$directory/slurmd.pid"); sleep 0.5; slurmd; granted "[\"slurm-3.0\"]"
		kill -KILL "$manager"; sleep 0.5; ctr-gpu-vcudad 2>>/run/audit & soon granted "[\"slurm-3.0\"]"
		touch "$directory/go"; wait "$job"; soon granted "[]"
		until [[ -z $(squeue -h) ]]; do sleep 0.1; done; ls -A /run/ctr-gpu-slurm' >"$BATS_TEST_TMPDIR/said"
	diff "$BATS_TEST_TMPDIR/said" - <<-END
		cancelled
		killed
		driver=13.0
		GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4: Big: 1048576 sums are right
		vcuda
	END
}

@test "slots: without a manager a step that has some does not start, and is told why; others do" {
	with_slots '
		kill "$manager"; wait "$manager" || true
		srun --gres=gpu:vgpu:1 echo started || true; srun echo without' >"$BATS_TEST_TMPDIR/said" 2>&1
	grep -q "manager ctr-gpu-vcudad does not run" "$BATS_TEST_TMPDIR/said"
	! grep -q started "$BATS_TEST_TMPDIR/said" && grep -qx without "$BATS_TEST_TMPDIR/said"
}

@test "slots: srun --container gives a bundle the step's slots, as root and as a user" {
	with_slots '
		bundle=$directory/bundle; mkdir -p "$bundle"; cp -a "'"$(image debian)"'" "$bundle/rootfs"; cp "$tools/vcuda-hold" "$adds" "$bundle/rootfs/usr/bin/"; cd "$bundle"
		crun spec; sed -i "s/\"terminal\": true/\"terminal\": false/" config.json
		asks="! [ -e /dev/dxg ]; vcuda-hold </dev/null; cuda-add"
		NVIDIA_VISIBLE_DEVICES=all srun --gres=gpu:vgpu:2 --container="$bundle" /bin/sh -c "$asks"
		rm config.json; chown -R 65534:65534 .; user crun spec --rootless; sed -i "s/\"terminal\": true/\"terminal\": false/" config.json
		echo user; user srun --gres=gpu:vgpu:1 --container="$bundle" /bin/sh -c "$asks" 
		soon granted "[]"' >"$BATS_TEST_TMPDIR/said"
	diff "$BATS_TEST_TMPDIR/said" - <<-END
		devices=1
		total=12884901888
		ready
		driver=13.0
		GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4: Big: 1048576 sums are right
		user
		devices=1
		total=6442450944
		ready
		driver=13.0
		GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4: Big: 1048576 sums are right
	END
}
