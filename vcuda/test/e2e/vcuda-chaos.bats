#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# vCUDA while clients, servers, containers and the manager are killed at random, and containers suspended and resumed: afterwards nothing is left, and no client ever
# saw what it was not granted. $CTR_GPU_CHAOS clients are killed (60; 1000 take some minutes). $CTR_GPU_CHAOS_SEED repeats a run.
# Of $CTR_GPU_CHAOS_OF kills (40) one is the manager's, and two are while a container is suspended.

load ../../../test/e2e/engines

setup_file() {
	require_root
	require_program runc
	image debian >/dev/null
	[[ -x $CTR_GPU_BUILD/vcuda/test/chaos/chaos && -e $CTR_GPU_BUILD/vcuda/test/sim/libcuda.so.1 ]]
}

driver() {
	mkdir /run/driver && cp -a /usr/lib/wsl/lib/. /run/driver && rm -f /run/driver/lib{cuda,nvidia-ml}.so.1 &&
		cp "$CTR_GPU_BUILD"/vcuda/test/sim/lib{cuda,nvidia-ml}.so.1 /run/driver/ && printf '%s\n' GPUS=2 MEMORY=24G,8G \
		UUIDS=5a3f1c2b0001000000000000a5c0e3d4,7b10aa04004100000000000084ef55fb >/run/driver/sim.conf &&
		mount --bind /run/driver /usr/lib/wsl/lib
}

manager() {
	ctr-gpu-vcudad 2>>"$scratch/audit" &
	manager=$!
	until ctr-gpu vcuda list >/dev/null 2>&1; do sleep 0.02; done
}

# container NUMBER: whose clients are started again and again, three at a time. Each has other GPUs, and another limit.
container() {
	local name=c$1 devices=(0 1 all) memory=(64M 128M 256M)
	local granted=("5a3f1c2b 67108864" "7b10aa04 134217728" "5a3f1c2b,7b10aa04 268435456")

	mkdir -p "$scratch/$name"
	jq --arg name "$CTR_GPU_TEST_CGROUP/$name" --arg root "$scratch/bundle/rootfs" --arg devices "${devices[$1]}" \
		--arg memory "${memory[$1]}" --arg granted "${granted[$1]}" '
		.root.path = $root | .linux.cgroupsPath = $name
		| .process.args = ["/bin/sh", "-c", "for loop in 1 2 3; do (i=0; while [ ! -e /tmp/stop ]; do i=$((i + 1)); chaos client $loop$i; done) & done
			while sleep 1; do :; done"]
		| .process.env = ["PATH=/usr/bin", "CTR_GPU_MODE=vcuda", "NVIDIA_VISIBLE_DEVICES=" + $devices, "CTR_GPU_MEMORY=" + $memory,
			"CHAOS_GRANTED=" + $granted]' "$scratch/bundle/config.json" >"$scratch/$name/config.json"
	(cd "$scratch/$name" && exec memlock runc --root /run/runtime run "$name") >>"$scratch/$name.out" 2>&1 </dev/null &
}

# soon COMMAND…: it succeeds, within minutes where others have the processors; a server that hangs is killed after 10 seconds
soon() {
	local i

	for ((i = 0; i < 3000; i++)); do
		"$@" && return
		sleep 0.05
	done
	echo "not within minutes: $*"
	return 1
}

listed() {
	ctr-gpu vcuda list --json | jq -e "$1" >/dev/null
}

# victim PATTERN: one of these processes, at random
victim() {
	pgrep -f "$1" | shuf -n 1 --random-source=<(yes "$RANDOM")
}

end_container() {
	runc --root /run/runtime kill "$1" KILL 2>/dev/null || true
	soon eval "! runc --root /run/runtime state $1 >/dev/null 2>&1"
}

# goes_on NAME: its programs do, or it has none
goes_on() {
	ctr-gpu vcuda resume "$1" >>"$scratch/suspend.out" 2>&1 || listed ".containers | map(select(.container == \"$1\" and .state != \"running\")) == []"
}

# servers: processes of users of ours, but for those that decide on turns and watch GPUs, which end with the manager. Nobody here
# waits for those whose manager was killed.
servers() {
	ps -e -o uid=,stat=,pid=,comm= | awk '$1 >= 2100000000 && $2 !~ /^Z/ && $4 !~ /^ctr-gpu-vcuda-[tw]$/'
}

@test "clients, servers, containers and the manager are killed at random: nothing is left, nothing foreign is seen" {
	local scratch=$BATS_TEST_TMPDIR clients=${CTR_GPU_CHAOS:-60} seed=${CTR_GPU_CHAOS_SEED:-$RANDOM}

	bundle debian "$scratch/bundle" ".mounts += [{destination: \"/usr/bin/chaos\", type: \"bind\",
		source: \"$CTR_GPU_BUILD/vcuda/test/chaos/chaos\", options: [\"bind\", \"ro\"]}]"
	export scratch clients seed
	export -f driver manager container soon listed victim end_container goes_on servers
	run sandbox wsl-two-nvidia timeout --kill-after=1 "$((300 + clients))" bash -euc '
		mkdir -p /etc/ctr-gpu
		echo "{\"vcuda\": {\"mode\": \"allow\", \"max_clients\": 8}}" >/etc/ctr-gpu/config.json
		trap '\''status=$?; [[ $status == 0 ]] || { tail -n 30 "$scratch/audit"; servers; ctr-gpu vcuda list; }'\'' EXIT
		RANDOM=$seed
		driver
		manager
		descriptors=$(ls "/proc/$manager/fd" | wc -l)
		for number in 0 1 2; do
			container "$number"
			# One after the other, since runtimes make the places of mounts in one root.
			soon listed ".containers | length > $number"
		done 2>/dev/null
		soon listed ".servers >= 6"
		killed=0 crashed=0 restarted=0 again=0 suspended=0
		while ((killed < clients)); do
			case $((RANDOM % ${CTR_GPU_CHAOS_OF:-40})) in
			0)
				kill -KILL "$manager"; wait "$manager" || true
				sleep "0.$((RANDOM % 5))"
				manager && restarted=$((restarted + 1))
				;;
			1)
				number=$((RANDOM % 3))
				end_container "c$number"
				container "$number" && again=$((again + 1))
				# One that is not there yet is not ended by a signal.
				soon eval "runc --root /run/runtime state c$number >/dev/null 2>&1"
				;;
			4 | 5)
				# In the middle of it, servers crash and the manager is killed, too.
				number=$((RANDOM % 3))
				(ctr-gpu vcuda suspend "c$number" || true) >>"$scratch/suspend.out" 2>&1 & asking=$!
				sleep "0.$((RANDOM % 5))"
				((RANDOM % 3)) || kill -SEGV "$(victim ^ctr-gpu-vcuda$)" 2>/dev/null || true
				((RANDOM % 4)) || { kill -KILL "$manager"; wait "$manager" || true; manager; restarted=$((restarted + 1)); }
				suspended=$((suspended + 1))
				soon goes_on "c$number"
				wait "$asking"
				soon goes_on "c$number"
				;;
			6)
				kill -KILL "$(pgrep -xr R,S,D ctr-gpu-vcuda-w)" 2>/dev/null || true
				;;
			2 | 3)
				kill -SEGV "$(victim ^ctr-gpu-vcuda$)" 2>/dev/null && crashed=$((crashed + 1)) || true
				;;
			*)
				kill -KILL "$(victim "^chaos client")" 2>/dev/null && killed=$((killed + 1)) || true
				;;
			esac
			sleep "0.0$((RANDOM % 8))"
		done
		echo "$killed clients, $crashed servers, $again containers, $suspended suspended, $restarted managers"
		# The containers still run, and have nothing.
		soon listed ".containers | length == 3"
		touch "$scratch/bundle/rootfs/tmp/stop"
		until [[ -z $(pgrep -f "^chaos client") ]]; do pkill -KILL -f "^chaos client" || true; sleep 0.1; done
		soon listed ".servers == 0 and (.containers | length == 3 and all(.clients == 0 and .used == 0))"
		soon eval "[[ -z \$(servers) ]]"
		for number in 0 1 2; do end_container "c$number"; done
		soon listed ".containers == []"
		soon eval "[[ \$(jq -c .containers /run/ctr-gpu/vcudad.json) == \"[]\" ]]"
		soon eval "[[ -z \$(ls /run/ctr-gpu/vcuda) ]]"
		# One leads to the process that decides on turns, of which there is one. Without containers no GPU is watched.
		soon eval "! pgrep -xr R,S,D ctr-gpu-vcuda-w"
		soon eval "((\$(ls /proc/$manager/fd | wc -l) <= descriptors + 1))"
		soon eval "[[ \$(ps -e -o stat=,comm= | grep -c \"^[^Z].* ctr-gpu-vcuda-t\$\") == 1 ]]"
		soon eval "[[ \$(ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c memfd:ctr-gpu-vcuda) == 0 ]]"
		soon eval "[[ -z \$(find /sys/fs/cgroup -path \"*$CTR_GPU_TEST_CGROUP/c[012]*\") ]]"
		[[ -z $(grep foreign "$scratch"/*.out | tee /dev/stderr) ]]
		[[ -z $(grep hostile "$scratch/audit" | tee /dev/stderr) ]]
		jq -es "all(.time and .event)" "$scratch/audit" >/dev/null
	'
	echo "seed $seed: $output"
	expect_status 0
	[[ -z ${CTR_GPU_CHAOS-} ]] || echo "# seed $seed: $(grep "managers$" <<<"$output")" >&3
}
