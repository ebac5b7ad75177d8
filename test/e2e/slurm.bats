#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# ctr-gpu slurm: the lines for gres.conf, the nodes, what is wrong with a gres.conf, and what a step gets. With Slurm itself:
# ../clusters/slurm.bats.

bats_require_minimum_version 1.5.0
load engines

setup_file() {
	require_root
}

on() {
	local profile=$1
	shift
	sandbox "$profile" bash -ec 'rm -rf /etc/ctr-gpu; '"$1"
}

@test "each GPU has a line, each kind its number" {
	diff <(on wsl-hybrid 'ctr-gpu slurm gres') - <<-END
		# gres.conf of this node
		Name=gpu Type=nvidia_geforce_rtx_4070_laptop_gpu File=/run/ctr-gpu/slurm/nvidia0
		Name=gpu Type=intel_r_iris_r_xe_graphics File=/run/ctr-gpu/slurm/intel0
		# slurm.conf of the cluster: GresTypes=gpu, and in this node's line:
		# Gres=gpu:nvidia_geforce_rtx_4070_laptop_gpu:1,gpu:intel_r_iris_r_xe_graphics:1
	END
	diff <(on native-four 'ctr-gpu slurm gres') - <<-END
		# gres.conf of this node
		Name=gpu Type=nvidia_h200 File=/dev/nvidia0
		Name=gpu Type=nvidia_h200 File=/dev/nvidia1
		Name=gpu Type=nvidia_h200 File=/dev/nvidia2
		Name=gpu Type=nvidia_h200 File=/dev/nvidia3
		# slurm.conf of the cluster: GresTypes=gpu, and in this node's line:
		# Gres=gpu:nvidia_h200:4
	END
	on native-amd 'ctr-gpu slurm gres' | grep -q "^Name=gpu .* File=/dev/dri/renderD129$"
}

@test "nodes are made, found again and put right, and only where they are needed" {
	diff <(on wsl-two-nvidia 'cd /run/ctr-gpu 2>/dev/null || mkdir /run/ctr-gpu; ctr-gpu slurm nodes; ctr-gpu slurm nodes; echo again
		rm /run/ctr-gpu/slurm/nvidia1; echo >/run/ctr-gpu/slurm/nvidia1; rm /run/ctr-gpu/slurm/nvidia0; ln -s /dev/sda /run/ctr-gpu/slurm/nvidia0; ctr-gpu slurm nodes
		stat -c "%F %t:%T %A %U" /run/ctr-gpu/slurm/*; ctr-gpu slurm gres >/run/gres.conf; ctr-gpu slurm gres --check=/run/gres.conf') - <<-END
		/run/ctr-gpu/slurm/nvidia0
		/run/ctr-gpu/slurm/nvidia1
		again
		/run/ctr-gpu/slurm/nvidia0
		/run/ctr-gpu/slurm/nvidia1
		character special file 7f:0 cr--r--r-- root
		character special file 7f:1 cr--r--r-- root
		/run/gres.conf fits this node: 2 GPUs
	END
	[[ -z $(on native-four 'ctr-gpu slurm nodes; ls -A /run/ctr-gpu/slurm') ]]
	run on wsl-two-nvidia 'setpriv --reuid 65534 --clear-groups "$(command -v ctr-gpu)" slurm nodes'
	[[ $status == 1 && $output == *"cannot be made: "*"Run this as root"* ]]
}

# check PROFILE TEXT: what is said of a gres.conf
check() {
	text=$2 run on "$1" 'ctr-gpu slurm nodes >/dev/null; printf "%b" "$text" >/run/gres.conf; ctr-gpu slurm gres --check=/run/gres.conf'
}

@test "what is wrong with a gres.conf is said, with its line" {
	export text
	check wsl-two-nvidia 'AutoDetect=nvml\n'
	[[ $status == 1 && $output == "/run/gres.conf:1: AutoDetect finds no GPU behind /dev/dxg"* ]]
	check wsl-two-nvidia '# ours\nName=gpu Count=2\n'
	[[ $status == 1 && $output == *"/run/gres.conf:2: a line for GPUs has no File="* ]]
	check wsl-two-nvidia 'name=gpu type=x file=/run/ctr-gpu/slurm/nvidia[0-1]\n'
	[[ $status == 0 && $output == "/run/gres.conf fits this node: 2 GPUs" ]]
	check wsl-two-nvidia 'Name=gpu File=/run/ctr-gpu/slurm/nvidia0\nName=gpu File=/run/ctr-gpu/slurm/nvidia[0-2]'
	[[ $status == 1 && $output == *":2: /run/ctr-gpu/slurm/nvidia0 is named twice"* && $output == *"nvidia2 is not there"* ]]
	check wsl-two-nvidia 'Name=gpu File=/run/ctr-gpu/slurm/nvidia0 # and no other'
	[[ $status == 1 && $output == *"/run/ctr-gpu/slurm/nvidia1 (nvidia_rtx_a2000) is missing"* ]]
	check wsl-two-nvidia 'Name=gpu File=/etc/passwd\nName=gpu File=/dev/null\nName=gpu File=/run/ctr-gpu/slurm/nvidia[0,1]'
	[[ $status == 1 && $output == *"/etc/passwd is not a device"* && $output == *"/dev/null is no GPU"* && $output != *missing* ]]
	check wsl-two-nvidia 'Name=gpu File=/run/ctr-gpu/slurm/nvidia1\nName=gpu File=/run/ctr-gpu/slurm/nvidia0\n'
	[[ $status == 1 && $output == "/run/gres.conf:2: /run/ctr-gpu/slurm/nvidia0 is behind a later GPU"* && $(wc -l <<<"$output") == 2 ]]
	check native-four 'AutoDetect=nvml\n'
	[[ $status == 0 ]]
	check native-four 'Name=gpu File=/dev/nvidia[0-3]\nName=mps Count=400\n'
	[[ $status == 0 && $output == *"4 GPUs" ]]
	check native-four 'Name=gpu File=/dev/nvidia[00-03]\n'
	[[ $status == 1 && $output == *"/dev/nvidia00 is not there"* && $output == *"/dev/nvidia03 is not there"* ]]
	check native-four 'Name=gpu File=/dev/nvidia0,/dev/nvidia[1-2],/dev/nvidia3\n'
	[[ $status == 0 && $output == *"4 GPUs" ]]
	check native-four 'Name=gpu File=/dev/nvidia[0-3]x\nName=gpu File=/dev/nvidia[1,y],/dev/nvidia[3-2]\n'
	[[ $status == 1 && $output == *":1: /dev/nvidia[0-3]x is neither"*":2: /dev/nvidia[1,y] is neither"*":2: /dev/nvidia[3-2] is neither"* ]]
	# Of strange ranges there is an end.
	check native-four 'Name=gpu File=/dev/nvidia[0-4294967295]\nName=gpu File=/dev/x[\nName=gpu File=[3-1,\n'
	[[ $status == 1 && $(wc -l <<<"$output") -lt 1100 ]]
	run on native-four 'ctr-gpu slurm gres --check=/run/nothing'
	[[ $status == 1 && $output == *"/run/nothing cannot be read"* ]]
}

@test "of a gres.conf that several nodes share, this node's lines are judged" {
	export text SLURMD_NODENAME=gpu07

	for names in gpu07 a,gpu07 'gpu[00-15]' 'a[1-2],gpu[01,05-09],b' 'gpu[0-1][0-9]' 'g[x],gpu0[7]'; do
		check native-four "NodeName=$names Name=gpu File=/dev/nvidia[0-3]\nNodeName=other[00-15] Name=gpu File=/dev/nvidia[0-7]\nNodeName=b AutoDetect=nvml"
		[[ $status == 0 && ${lines[0]} == *"fits this node: 4 GPUs" && ${lines[1]} == "Lines for other nodes than gpu07, which were not judged: 2" ]] || { echo "$names: $output"; return 1; }
	done
	for names in gpu7 gpu gpu070 'gpu[0-15]' 'gpu[000-015]' 'gpu[08-15]' 'gpu[00-15]x' 'gpu[' 'gpu[07' '[' ',' gpu07[1]; do
		check native-four "NodeName=$names Name=gpu File=/dev/nvidia[0-3]\n"
		[[ $status == 1 && $output == *"/dev/nvidia3 (nvidia_h200) is missing"*"not judged: 1" ]] || { echo "$names: $output"; return 1; }
	done
	# Without that variable it is the host's name.
	unset SLURMD_NODENAME
	run on native-four 'echo "NodeName=gpu[08-09] Name=gpu File=/dev/nvidia[0-3]" >/run/gres.conf
		unshare --uts bash -ec "/usr/bin/python3 -c \"import socket; socket.sethostname(\\\"gpu09.example.org\\\")\"; ctr-gpu slurm gres --check=/run/gres.conf"'
	[[ $status == 0 && $output == *"4 GPUs" ]] || { echo "$output"; return 1; }
}

@test "a step is told its GPUs by their places in gres.conf, and root's record says so" {
	diff <(on wsl-hybrid 'umask 077; ctr-gpu slurm nodes >/dev/null; ctr-gpu slurm step 12 0 --uid=1000 --gpus=1; ctr-gpu slurm step 12 batch --gpus=0,1 | sed "s/LUID-[0-9a-f]*/LUID/g"
		cd /run/ctr-gpu-slurm; stat -c "%n %U %a" . *; cat 12.0; echo; ctr-gpu slurm step 3 0 >/dev/null; ctr-gpu slurm step --end 12; ls; ctr-gpu slurm step --end 3 0; ls') - <<-END
		CUDA_VISIBLE_DEVICES
		ZE_AFFINITY_MASK=0
		NVIDIA_VISIBLE_DEVICES=LUID-00000000000123f0
		CUDA_VISIBLE_DEVICES=0
		ZE_AFFINITY_MASK=0
		NVIDIA_VISIBLE_DEVICES=LUID,LUID
		. root 755
		12.0 root 644
		12.batch root 644
		{"uid":1000,"held":false,"devices":"LUID-00000000000123f0"}
		3.0
	END
	# Of NVIDIA's native driver, and of parts of GPUs, Slurm knows the numbers itself.
	[[ $(on native-four 'ctr-gpu slurm step 1 0 --gpus=2,3') == NVIDIA_VISIBLE_DEVICES=2,3 ]]
	[[ $(on native-amd 'ctr-gpu slurm step 1 0 --gpus=1') == $'ROCR_VISIBLE_DEVICES=1\nNVIDIA_VISIBLE_DEVICES=1' ]]
	[[ -z $(on native-mig 'ctr-gpu slurm step 1 0 --gpus=7') ]]
	# A machine without GPUs may be a node, too.
	[[ $(on plain 'ctr-gpu slurm step 1 0') == NVIDIA_VISIBLE_DEVICES=void ]]
}

@test "a step that cannot be given its GPUs is refused, and leaves nothing" {
	run on wsl-two-nvidia 'ctr-gpu slurm nodes >/dev/null; ctr-gpu slurm step 1 0 --gpus=2'
	[[ $status == 1 && $output == *"[E_UNKNOWN_DEVICE] Slurm has granted the GPUs 2 of its list"*"gres --check"* ]]
	# What is no list of numbers is not taken for none.
	for host in wsl-nvidia native-four; do
		for numbers in a 0,a 0-1; do
			run on "$host" "ctr-gpu slurm step 1 0 --gpus=$numbers"
			[[ $status == 1 && $output == "ctr-gpu: [E_UNKNOWN_DEVICE] Slurm has granted the GPUs $numbers of its list"* ]]
		done
	done
	run on wsl-two-nvidia 'mkdir /etc/ctr-gpu; echo "{\"choice\": \"strict\"}" >/etc/ctr-gpu/config.json; ctr-gpu slurm step 1 0 --gpus=0,1 && ! ctr-gpu slurm step 2 0 --gpus=1 && ls /run/ctr-gpu-slurm'
	[[ $status == 0 && $output == *"[E_GUARD] the job's choice of GPUs cannot be held on this node: "*$'\n1.0' ]]
	run on plain 'ctr-gpu slurm step 1 0 --gpus=0'
	[[ $status == 1 && $output == *"[E_NO_DEVICE]"* ]]
	run on wsl-nvidia 'setpriv --reuid 65534 --clear-groups "$(command -v ctr-gpu)" slurm step 1 0'
	[[ $status == 1 && $output == *"by root"* ]]
	for arguments in "" 1 "1 ../x" "1 0 0" "1 0 --uid=me"; do
		run on wsl-nvidia "ctr-gpu slurm step $arguments"
		[[ $status == 2 ]]
	done
}

@test "ctr-gpu-runtime gives a user's container the GPUs of the user's own step" {
	bundle() { printf '{"ociVersion": "1.0.2", "process": {"args": ["sh"], "env": [%s], "cwd": "/"}, "root": {"path": "rootfs"}}' "$1"; }
	export -f bundle
	diff <(on wsl-two-nvidia 'cd /run; mkdir -p b/rootfs; ctr-gpu slurm step 5 0 --uid=65534 --gpus=1 >/dev/null; ctr-gpu slurm step 6 0 --uid=1 --gpus=0 >/dev/null
		asks() { bundle "$1" >b/config.json; setpriv --reuid 65534 --clear-groups "$(command -v ctr-gpu-runtime)" --dry-run create --bundle b x | jq -c "[.adapters, .choice.grade]"; }
		asks "\"SLURM_JOB_ID=5\", \"SLURM_STEP_ID=0\", \"NVIDIA_VISIBLE_DEVICES=all\""
		asks "\"SLURM_JOB_ID=6\", \"SLURM_STEP_ID=0\""
		echo "{\"uid\":65534,\"held\":true,\"devices\":\"0\"}" >/run/ctr-gpu-slurm/5.0; asks "\"SLURM_JOB_ID=5\", \"SLURM_STEP_ID=0\""
		echo "{\"uid\":65534,\"held\":false,\"devices\":\"void\"}" >/run/ctr-gpu-slurm/5.0; asks "\"SLURM_JOB_ID=5\", \"SLURM_STEP_ID=0\", \"NVIDIA_VISIBLE_DEVICES=all\""
		chmod 666 /run/ctr-gpu-slurm/5.0; asks "\"SLURM_JOB_ID=5\", \"SLURM_STEP_ID=0\", \"NVIDIA_VISIBLE_DEVICES=0\""') - <<-END
		[["1 NVIDIA RTX A2000"],"environment"]
		[[],null]
		[["0 NVIDIA GeForce RTX 4090"],"store"]
		[[],null]
		[["0 NVIDIA GeForce RTX 4090"],"environment"]
	END
}

@test "what was left for the step of a cgroup is not to be got round by making it unreadable" {
	run on wsl-two-nvidia 'cd /run; mkdir -p b/rootfs; ctr-gpu slurm step 7 0 --uid=0 --gpus=1 >/dev/null
		printf "{\"ociVersion\": \"1.0.2\", \"process\": {\"args\": [\"sh\"], \"env\": [\"NVIDIA_VISIBLE_DEVICES=all\"], \"cwd\": \"/\"}, \"root\": {\"path\": \"rootfs\"}}" >b/config.json
		top=/sys/fs/cgroup; [[ -e $top/cgroup.controllers ]] || top+=/freezer
		before=$(sed -n "s/.*:freezer://p; s/^0:://p" /proc/self/cgroup | head -n 1) group=$top/slurm-$$
		trap "echo 0 >$top$before/cgroup.procs; rmdir $group/job_7/step_0 $group/job_7 $group" EXIT
		mkdir -p "$group/job_7/step_0"; echo 0 >"$group/job_7/step_0/cgroup.procs" || exit
		asks() { ctr-gpu-runtime --dry-run create --bundle b x 2>&1 || echo "status $?"; }
		asks | jq -c .adapters 2>/dev/null
		# Where cgroups are a user.s own, that user may make one of a step.s name: it is of no use to others than the step.s user.
		chmod 755 b; user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$(command -v ctr-gpu-runtime)" --dry-run create --bundle /run/b x 2>&1 || echo "user $?"; }
		user; sed -i "s/\"uid\":0/\"uid\":65534/" ctr-gpu-slurm/7.0; user | jq -c .adapters 2>/dev/null
		chmod 666 ctr-gpu-slurm/7.0; asks; chmod 644 ctr-gpu-slurm/7.0; echo "{" >ctr-gpu-slurm/7.0; asks'
	echo "$output"
	[[ ${lines[0]} == '["1 NVIDIA RTX A2000"]' && $(grep -cF '["1 NVIDIA RTX A2000"]' <<<"$output") == 2 ]]
	[[ $(grep -c "what this job's step was granted cannot be read in /run/ctr-gpu-slurm: " <<<"$output") == 3 && $(grep -c "^user 1" <<<"$output") == 1 ]]
	[[ $(grep -c "status 1" <<<"$output") == 2 ]]
}

@test "components of a heterogeneous step are told apart by their cgroups, and each is forgotten when its own slurmstepd ends" {
	run on wsl-two-nvidia 'cd /run; mkdir -p b/rootfs
		printf "{\"ociVersion\": \"1.0.2\", \"process\": {\"args\": [\"sh\"], \"env\": [\"NVIDIA_VISIBLE_DEVICES=all\"], \"cwd\": \"/\"}, \"root\": {\"path\": \"rootfs\"}}" >b/config.json
		top=/sys/fs/cgroup; [[ -e $top/cgroup.controllers ]] || top+=/freezer
		before=$(sed -n "s/.*:freezer://p; s/^0:://p" /proc/self/cgroup | head -n 1) group=$top/slurm-$$
		leave() { echo 0 >$top$before/cgroup.procs; }
		trap "leave; rmdir $group/job_8/step_0+{0,1} $group/job_8 $group" EXIT
		mkdir -p "$group/job_8/step_0+"{0,1}
		ctr-gpu slurm nodes >/dev/null
		for i in 0 1; do
			echo 0 >"$group/job_8/step_0+$i/cgroup.procs"
			ctr-gpu slurm step 8 0 --gpus=0,1 --slurmstepd=$((100 + i)) >/dev/null
			sed -i "s/\"devices\":\"[^\"]*/\"devices\":\"$i/" "ctr-gpu-slurm/8.0+$i"
			ctr-gpu-runtime --dry-run create --bundle b x | jq -c .adapters
		done
		leave; ctr-gpu slurm step 8 0 --slurmstepd=102 >/dev/null; ctr-gpu slurm step 8 01 >/dev/null
		ends() { ctr-gpu slurm step --end "$@"; echo "$*:" $(ls ctr-gpu-slurm); }
		ends --slurmstepd=99 8 0; ends --slurmstepd=100 8 0; echo "{" >ctr-gpu-slurm/8.0+0; ends --slurmstepd=101 8 0; ends 8 0; ends 8'
	diff - <(echo "$output") <<-END
		["0 NVIDIA GeForce RTX 4090"]
		["1 NVIDIA RTX A2000"]
		--slurmstepd=99 8 0: 8.0 8.0+0 8.0+1 8.01
		--slurmstepd=100 8 0: 8.0 8.0+1 8.01
		--slurmstepd=101 8 0: 8.0 8.0+0 8.01
		8 0: 8.01
		8:
	END
}

@test "slots: each of NVIDIA's GPUs has so many lines and nodes, other vendors' have theirs" {
	local slots='mkdir -p /etc/ctr-gpu; echo "{\"vcuda\": {\"slots\": 2}}" >/etc/ctr-gpu/config.json; '

	diff <(on wsl-hybrid "$slots"'ctr-gpu slurm gres; ctr-gpu slurm nodes; ctr-gpu slurm gres >/run/gres.conf; ctr-gpu slurm gres --check=/run/gres.conf') - <<-END
		# gres.conf of this node
		Name=gpu Type=vgpu File=/run/ctr-gpu/slurm/vgpu0
		Name=gpu Type=vgpu File=/run/ctr-gpu/slurm/vgpu1
		Name=gpu Type=intel_r_iris_r_xe_graphics File=/run/ctr-gpu/slurm/intel0
		# slurm.conf of the cluster: GresTypes=gpu, and in this node's line:
		# Gres=gpu:vgpu:2,gpu:intel_r_iris_r_xe_graphics:1
		/run/ctr-gpu/slurm/vgpu0
		/run/ctr-gpu/slurm/vgpu1
		/run/ctr-gpu/slurm/intel0
		/run/gres.conf fits this node: 3 GPUs
	END
	[[ $(on native-four "$slots"'ctr-gpu slurm nodes | tr "\n" " "') == "$(printf '/run/ctr-gpu/slurm/vgpu%s ' {0..7})" ]]
	# A step without any has no device, either; with an adapter of another vendor it has that.
	diff <(on wsl-hybrid "$slots"'ctr-gpu slurm nodes >/dev/null; ctr-gpu slurm step 1 0; ctr-gpu slurm step 1 1 --gpus=2; cat /run/ctr-gpu-slurm/1.1; echo') - <<-END
		CUDA_VISIBLE_DEVICES
		ZE_AFFINITY_MASK
		NVIDIA_VISIBLE_DEVICES=void
		mount /dev/null /dev/dxg
		CUDA_VISIBLE_DEVICES
		ZE_AFFINITY_MASK=0
		NVIDIA_VISIBLE_DEVICES=LUID-00000000000123f0
		{"uid":0,"held":false,"devices":"LUID-00000000000123f0"}
	END
	run on wsl-hybrid "$slots"'ctr-gpu slurm nodes >/dev/null; ctr-gpu slurm step 1 0 --gpus=0 --slurmstepd=$$ || ls /run/ctr-gpu-slurm'
	[[ $output == *"manager ctr-gpu-vcudad does not run"* && $output == *"No such file or directory"* ]]
	run on wsl-hybrid 'ctr-gpu slurm step 1 0 --slurmstepd=x'
	[[ $status == 2 ]]
}

@test "what Slurm leaves of an ended job's cgroups is removed, and nothing else" {
	on wsl-nvidia 'top=/sys/fs/cgroup; place=system.slice/node1_slurmstepd.scope; [[ -e $top/cgroup.controllers ]] || place=freezer/slurm_test$$/uid_0
		trap "find $top/${place%%/uid_0} -depth -type d -exec rmdir {} + 2>/dev/null || true" EXIT
		mkdir -p $top/$place/job_77{,7}/step_0/user/task_0
		sleep 100 & echo $! >$top/$place/job_77/step_0/user/task_0/cgroup.procs
		ctr-gpu slurm step --end 77 0; [[ -d $top/$place/job_77/step_0/user/task_0 ]]
		ctr-gpu slurm step --end 77; [[ -d $top/$place/job_77/step_0/user/task_0 ]]
		kill $!; wait $! || true
		ctr-gpu slurm step --end 77; [[ ! -e $top/$place/job_77 && -d $top/$place/job_777/step_0/user/task_0 ]]'
}
