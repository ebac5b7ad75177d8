#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=long
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154
#
# CUDA in containers that hold no device: real engines, our client library, servers and manager. The driver of the simulated
# host is vcuda/test/sim's, which servers alone load.

load ../../../test/e2e/engines

setup_file() {
	local name

	require_root
	require_program runc
	require_program crun
	image debian >/dev/null
	for name in bin/ctr-gpu-vcuda lib/vcuda/libcuda.so.1 lib/vcuda/libnvidia-ml.so.1 vcuda/test/nvml/ask vcuda/test/sim/lib{cuda,nvidia-ml}.so.1 test/real/cuda-add; do
		[[ -e $CTR_GPU_BUILD/$name ]] || { echo "$CTR_GPU_BUILD/$name is missing" && return 1; }
	done
}

# ---- on the simulated host ----

movable='{"vcuda": {"mode": "allow", "memory": "1G", "max_clients": 16, "move": true}}'

balanced=${movable%\}\}}', "balance": 1}}'

# manager: starts one, and waits until it answers
manager() {
	ctr-gpu-vcudad 2>>"$scratch/audit" &
	manager=$!
	until ctr-gpu vcuda list >/dev/null 2>&1; do sleep 0.02; done
}

# container NAME SCRIPT [VARIABLE…]: one of $runtime whose program is a shell's, in the background; what it prints is in NAME.out
container() {
	local name=$1 script=$2
	shift 2

	mkdir "$scratch/$name" || return
	jq --arg script "$script" --arg name "$CTR_GPU_TEST_CGROUP/$name" --arg root "$scratch/bundle/rootfs" \
		'.process.args = ["/bin/sh", "-c", $script] | .root.path = $root | .linux.cgroupsPath = $name
		| .process.env += $ARGS.positional' "$scratch/bundle/config.json" --args -- "$@" >"$scratch/$name/config.json" || return
	(cd "$scratch/$name" && exec memlock "${runtime:-runc}" --root /run/runtime run "$name") >"$scratch/$name.out" 2>&1 </dev/null &
	container=$!
}

# soon COMMAND…: it succeeds, within a minute or more where others have the processors
soon() {
	local i

	for ((i = 0; i < 3000; i++)); do
		"$@" && return
		sleep 0.02
	done
	echo "not within a minute: $*"
	return 1
}

said() {
	grep -qx -- "$2" "$scratch/$1.out"
}

listed() {
	ctr-gpu vcuda list --json | jq -e "$1" >/dev/null
}

audited() {
	jq -es --arg event "$1" "map(select(.event == \$event)) | length > 0 and any(${2:-true})" "$scratch/audit" >/dev/null
}

# is NAME STATE: so the list has it
is() {
	listed ".containers | map(select(.container == \"$1\"))[0].state == \"$2\""
}

# leaves NAME STATE PROCESS: until the manager has written down that it is no longer in that state, or who asked for it has ended
leaves() {
	while kill -0 "$3" 2>/dev/null; do
		[[ $(jq -r ".containers[] | select(.id == \"$1\").suspension" /run/ctr-gpu/vcudad.json) == "$2" ]] || return 0
		sleep 0.01
	done
}

# asks NAME WORD: of its program `holds 4194304 </tmp/NAME`, which has data on a GPU
asks() {
	[[ -p $scratch/bundle/rootfs/tmp/$1 ]] || mkfifo "$scratch/bundle/rootfs/tmp/$1"
	echo "$2" >>"$scratch/bundle/rootfs/tmp/$1" &
}

# answers NAME COUNT WORD: so often so far, and in the last line
answers() {
	[[ $(grep -c " ms$" "$scratch/$1.out") == "$2" && $(grep " ms$" "$scratch/$1.out" | tail -n 1) == "$3 "* ]]
}

# spent NAME: milliseconds of turns on its first GPU, of all its servers, as the page says that the decider writes
spent() {
	local pid

	pid=$(pgrep -u "$(ctr-gpu vcuda list --json | jq ".containers | map(select(.container == \"$1\"))[0].uid")" | head -n 1) || return
	od -An -v -w8 -t u8 -j $((8 * ((4 + 256 * 4 + 16 * 256 * 4 + 7) / 8))) -N $((256 * 8)) "/proc/$pid/fd/7" |
		awk '{ sum += $1 } END { print int(sum / 1e6) }'
}

# spend NAME: it has had turns since
spend() {
	local before

	before=$(spent "$1") && sleep 0.1 && (($(spent "$1") > before))
}

# divided ONE OTHER LEAST MOST: how many times as long turns ONE has in two seconds, of which others may have the processors for a while
divided() {
	local one other

	for _ in 1 2 3; do
		one=$(spent "$1") other=$(spent "$2")
		sleep 2
		one=$(($(spent "$1") - one)) other=$(($(spent "$2") - other))
		echo "$1 $one ms, $2 $other ms"
		! awk -v one="$one" -v other="$other" -v least="$3" -v most="$4" 'BEGIN { exit !(one >= least * other && one <= most * other && other > 0) }' ||
			return 0
	done
	return 1
}

# same: the driver with two GPUs of one model
same() {
	driver && sed -i "s/^NAMES=.*/NAMES=Same/; s/^MEMORY=.*/MEMORY=24G/" /run/driver/sim.conf
}

# on NAME: the GPUs on which its servers have contexts, as bits, a line for each server
on() {
	local pid

	for pid in $(pgrep -u "$(ctr-gpu vcuda list --json | jq ".containers | map(select(.container == \"$1\"))[0].uid")"); do
		sed -n "s/^simcp [0-9]* [0-9]* //p" "/proc/$pid"/task/*/comm
	done
}

# are_on NAME BITS: all of its servers; is_on NAME BITS: and the list says so, too
are_on() {
	[[ $(on "$1" 2>/dev/null | sort -u) == "$2" ]]
}
is_on() {
	local gpus=(- 5a3f1c2b 5a3f9d11)

	are_on "$1" "$2" && listed ".containers | map(select(.container == \"$1\"))[0].gpus[0].on | startswith(\"GPU-${gpus[$2]}\")"
}

# on_host SCRIPT: with these functions, where vCUDA is allowed and a bundle for $devices is ready
on_host() {
	local scratch=$BATS_TEST_TMPDIR settings=${settings:-'{"vcuda": {"mode": "allow", "memory": "1G", "max_clients": 16}}'}

	bundle debian "$scratch/bundle" ".process.env = [\"PATH=/usr/bin\", \"NVIDIA_VISIBLE_DEVICES=${devices:-all}\", \"CTR_GPU_MODE=vcuda\"]
		| .mounts += [[\"cuda-add\", \"test/real/cuda-add\"], [\"hold\", \"test/tools/vcuda-hold\"], [\"ask\", \"vcuda/test/nvml/ask\"],
			[\"occupy\", \"test/tools/vcuda-occupy\"], [\"holds\", \"vcuda/test/holds\"],
			[\"turns\", \"vcuda/test/turns\"] | {destination: (\"/usr/bin/\" + .[0]),
			type: \"bind\", source: (\"$CTR_GPU_BUILD/\" + .[1]), options: [\"bind\", \"ro\"]}]
		| ${filter:-.}"
	export scratch runtime
	export -f driver slices same on are_on is_on manager container soon said listed audited is leaves asks answers spent spend divided
	run sandbox "${profile:-wsl-two-nvidia}" timeout --kill-after=1 240 bash -euc '
		mkdir -p /etc/ctr-gpu
		echo "$0" >/etc/ctr-gpu/config.json
		trap '\''jobs=$?; [[ $jobs == 0 ]] || { cat "$scratch"/*.out "$scratch/audit"; }'\'' EXIT
		'"$1" "$settings"
	expect_status 0
}

# ---- by the hook ----

add_on_both() {
	rm -rf "$BATS_TEST_TMPDIR/bundle" "$BATS_TEST_TMPDIR/one"
	runtime=$1 on_host '
		driver
		manager
		container one "ls /dev/dxg /dev/nvidia*; ls /usr/lib/wsl; ls /proc/driver/nvidia; cuda-add; nvidia-smi -L"
		wait "$container"
		said one "GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4: Big: 1048576 sums are right"
		said one "GPU-7b10aa04-0041-0000-0000-000084ef55fb: Small: 1048576 sums are right"
		[[ $(grep -c "No such file" "$scratch/one.out") -ge 3 ]]
		said one "GPU 0: Big (UUID: GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4)"
	'
}

@test "a container without a device adds vectors on both GPUs" {
	both add_on_both
}

@test "the second of two GPUs behind one device, and nothing else" {
	devices=1 on_host '
		driver
		manager
		container one "hold </dev/null; cuda-add"
		wait "$container"
		said one "devices=1"
		said one "GPU-7b10aa04-0041-0000-0000-000084ef55fb: Small: 1048576 sums are right"
		grep -q GPU-5a3f1c2b "$scratch/one.out" && exit 1
		said one "total=1073741824"
	'
}

# slices PROCESS: the nanoseconds that its threads want a processor for at a time, of sched_getattr(2)
slices() {
	local thread

	for thread in /proc/"$1"/task/*; do
		perl -e 'my $b = pack("L", 56) . "\0" x 52; syscall(315, int(shift), $b, 56, 0) == 0 or exit 1; print +(unpack("LLQlLQQQ", $b))[5], "\n"' "${thread##*/}" || return
	done
}

@test "threads of a server are let in at once where those of programs spin" {
	[[ $(uname -m) == x86_64 ]] || skip "sched_getattr(2) has another number here"
	printf '%s\n' 6.12 "$(uname -r)" | sort -CV || skip "needs Linux 6.12"
	on_host '
		driver
		manager
		container one "sleep 300 | hold 1048576"
		soon said one "1048576: 0"
		server=$(pgrep -u "$(ctr-gpu vcuda list --json | jq ".containers[0].uid")")
		[[ $(slices "$server" | sort -u) == 100000 ]]
	'
}

@test "NVML lists the granted GPU, and what the container has of its memory" {
	devices=1 on_host '
		driver
		manager
		container one "ask list; sleep 300 | hold 1048576 & until [ -e /tmp/more ]; do sleep 0.1; done; ask list; echo end"
		soon said one "1048576: 0"
		touch "$scratch/bundle/rootfs/tmp/more"
		soon said one end
		said one "GPU 0: Small (UUID: GPU-7b10aa04-0041-0000-0000-000084ef55fb): 0 of 1073741824"
		said one "GPU 0: Small (UUID: GPU-7b10aa04-0041-0000-0000-000084ef55fb): 1048576 of 1073741824"
		[[ $(grep -c "GPU 1\|Big" "$scratch/one.out") == 0 ]]
	'
}

@test "the quota is refused at the byte, by the driver's own error, across the processes of a container" {
	on_host '
		driver
		manager
		container one "sleep 300 | hold 536870912 & until [ -e /tmp/first ]; do sleep 0.1; done; sleep 300 | hold 402653184 268435456 134217728 1 &
			until [ -e /tmp/more ]; do sleep 0.1; done; hold 1048576 </dev/null"
		soon said one "536870912: 0"
		touch "$scratch/bundle/rootfs/tmp/first"
		soon said one "1: 2"
		said one "402653184: 0"
		said one "268435456: 2"
		said one "134217728: 0"
		listed ".containers[0].used == 1073741824"
		soon audited quota
		ctr-gpu vcuda limit one --memory=2G
		touch "$scratch/bundle/rootfs/tmp/more"
		soon said one "1048576: 0"
	'
}

@test "a limit below what is in use takes nothing away, and gives nothing more until enough was freed" {
	on_host '
		driver
		manager
		container one "(until [ -e /tmp/more ]; do sleep 0.1; done; echo 1048576; sleep 300) | hold 268435456 & sleep 300 | hold 536870912 & sleep 300"
		soon listed ".containers[0].used == 805306368"
		ctr-gpu vcuda limit one --memory=512M --max-clients=1
		listed ".containers[0] | .used == 805306368 and .memory == 536870912 and .clients == 2 and .maxClients == 1"
		touch "$scratch/bundle/rootfs/tmp/more"
		soon said one "1048576: 2"
		pkill -KILL -f "^hold 536870912"
		soon listed ".containers[0].used == 268435456"
		rm "$scratch/bundle/rootfs/tmp/more"
		(cd / && runc --root /run/runtime exec one hold 1 </dev/null) | grep "cuInit="
		ctr-gpu vcuda limit one --memory=all --max-clients=2
		(cd / && runc --root /run/runtime exec one hold 1073741824 </dev/null) | grep -x "1073741824: 0"
	'
}

@test "what the driver takes for a process counts until the process ends" {
	on_host '
		driver
		echo CONTEXT_BYTES=549453824 >>/run/driver/sim.conf
		manager
		container one "sleep 300 | hold 1048576 & until [ -e /tmp/more ]; do sleep 0.1; done; hold 1 </dev/null; sleep 300"
		soon listed ".containers[0].used == 550502400"
		touch "$scratch/bundle/rootfs/tmp/more"
		soon said one "cuCtxCreate=2"
		soon audited quota
		jq -es "map(select(.event == \"quota\")) | length == 1 and .[0].number == 549453824" "$scratch/audit"
		pkill -KILL -f "^hold 1048576"
		soon listed ".containers[0].used == 0"
	'
}

@test "a container may ask for less memory than it is given" {
	filter='.process.env += ["CTR_GPU_MEMORY=64M"]' on_host '
		driver
		manager
		container one "hold 67108864 1 </dev/null"
		wait "$container"
		said one "total=67108864"
		said one "67108864: 0"
		said one "1: 2"
	'
}

@test "a container has a share of its GPUs' memory: half of it, or what the configuration says" {
	settings='{"vcuda": {"mode": "allow"}}' devices=1 on_host '
		driver
		manager
		container one "until [ -e /tmp/more ]; do sleep 0.1; done; hold 4294967296 1 </dev/null"
		soon listed ".containers[0].memory == \"50%\""
		ctr-gpu vcuda list | grep "memory     0 bytes in use of 50%$"
		audited grant ".memory == \"50%\""
		touch "$scratch/bundle/rootfs/tmp/more"
		soon said one "total=4294967296"
		soon said one "4294967296: 0"
		soon said one "1: 2"
		container two "until [ -e /tmp/less ]; do sleep 0.1; done; hold 1 </dev/null" CTR_GPU_MEMORY=3G
		soon listed "any(.containers[]; .memory == \"3.0 GiB, at most 50%\")"
		touch "$scratch/bundle/rootfs/tmp/less"
		soon said two "total=3221225472"
	'
	settings='{"vcuda": {"mode": "allow", "memory": "25%"}}' devices=all on_host '
		driver
		manager
		container three "until [ -e /tmp/most ]; do sleep 0.1; done; hold 1 </dev/null" CTR_GPU_MEMORY=31G
		soon listed ".containers[0].memory == \"31.0 GiB, at most 25%\""
		touch "$scratch/bundle/rootfs/tmp/most"
		soon said three "total=8589934592"
	'
}

# slot GPU:NUMBER: what a device plugin of Kubernetes tells a container of
slot() {
	echo ".mounts += [{destination: \"/var/run/nvidia-container-devices/cdi/ctr-gpu.org/vgpu/$1\", source: \"/dev/null\", type: \"bind\", options: [\"bind\", \"ro\"]}]"
}

@test "a slot of a GPU is a fourth of its memory and no other GPU, whatever the container's variables say" {
	local first=GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4 second=GPU-7b10aa04-0041-0000-0000-000084ef55fb

	settings='{"vcuda": {"mode": "allow", "slots": 4, "memory": "1G", "move": true}}' filter="$(slot "$second:3")
		| .process.env += [\"CTR_GPU_MODE=device\", \"CTR_GPU_MEMORY=100G\", \"CTR_GPU_SHARE=1000\", \"CTR_GPU_VISIBLE_DEVICES=all\"]" on_host '
		driver
		manager
		container one "hold 2147483648 1 </dev/null; ls /dev/dxg; cuda-add; until [ -e /tmp/end ]; do sleep 0.1; done"
		soon said one "2147483648: 0"
		said one "devices=1"
		said one "total=2147483648"
		said one "1: 2"
		soon said one "'"$second"': Small: 1048576 sums are right"
		! grep -q "GPU-5a3f1c2b\|Big" "$scratch/one.out" || exit 1
		grep -q "/dev/dxg: No such file" "$scratch/one.out"
		audited grant ".memory == \"100.0 GiB, at most 25%\""
		# The slot is the first container.s, as long as it runs: another that names it has nothing.
		listed ".containers[0].slot == 3"
		container other "echo started"
		! wait "$container" || exit 1
		! said other started || exit 1
		grep -q "another container, which still runs, has that slot of the GPU" "$scratch/other.out"
		touch "$scratch/bundle/rootfs/tmp/end"
		soon listed ".containers == []"
		container two "until [ -e /tmp/more ]; do sleep 0.1; done; hold 1048576 1 </dev/null" CTR_GPU_MEMORY=1M
		soon listed "any(.containers[]; .memory == \"1.0 MiB, at most 25%\" and .share == 100 and (.gpus | length) == 1)"
		touch "$scratch/bundle/rootfs/tmp/more"
		soon said two "1048576: 0"
		soon said two "1: 2"
	'
	# A second slot, a GPU beside it and a slot that is none are refused.
	for filter in "$(slot "$second:3") | $(slot "$second:2")" "$(slot "$second:3") | $(slot "$second:3" | sed "s,cdi/.*vgpu/[^\"\\\\]*,all,")" "$(slot "$second:4")" "$(slot "$first")"; do
		rm -rf "$BATS_TEST_TMPDIR/bundle" "$BATS_TEST_TMPDIR/one"
		settings='{"vcuda": {"mode": "allow", "slots": 4}}' filter=$filter on_host '
			driver
			manager
			container one "echo started"
			! wait "$container" || exit 1
			! said one started || exit 1
			grep -q "E_BAD_ARGUMENT\|E_UNKNOWN_DEVICE" "$scratch/one.out"
		'
	done
}

@test "a slot is given on when servers of the container that had it have ended, not while they have its memory" {
	settings='{"vcuda": {"mode": "allow", "slots": 4}}' filter=$(slot GPU-7b10aa04-0041-0000-0000-000084ef55fb:3) on_host '
		driver
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; hold 1073741824 <&3"
		soon said one ready
		server=$(pgrep -xo ctr-gpu-vcuda)
		kill -STOP "$server"
		runc --root /run/runtime kill one KILL
		soon listed ".containers == []"
		container two "echo started"
		sleep 1
		kill -0 "$server"
		! said two started || exit 1
		kill -KILL "$server"
		soon said two started
	'
}

@test "setup vcuda has containers get GPUs by it, and --remove takes that back" {
	on_host '
		driver
		rm -rf /etc/ctr-gpu/config.json /etc/cdi
		# A service manager that says what it was told; the manager runs without it.
		printf "%s\n" "#!/bin/sh" "echo \"\$*\" >>\"$scratch/systemctl\"" >"$scratch/fake"
		chmod +x "$scratch/fake"
		[[ ! -e /usr/bin/systemctl ]] || mount --bind "$scratch/fake" /usr/bin/systemctl
		ctr-gpu setup vcuda --dry-run >"$scratch/shown" 2>"$scratch/remarks"
		grep -q "^+.*\"mode\": \"allow\"" "$scratch/shown"
		grep -q "would be written" "$scratch/remarks"
		[[ ! -e /etc/ctr-gpu/config.json && ! -e /etc/cdi && ! -e $scratch/systemctl ]]
		ctr-gpu setup vcuda >"$scratch/remarks"
		grep -q "next: as root, at each boot, start /.*/ctr-gpu-vcudad (ctr-gpu-vcudad(8))" "$scratch/remarks"
		[[ ! -e $scratch/systemctl ]]
		jq -e ".vcuda.mode == \"allow\"" /etc/ctr-gpu/config.json
		jq -e ".kind == \"ctr-gpu.org/vcuda\"" /etc/cdi/ctr-gpu-vcuda.json
		manager
		container one "cuda-add"
		wait "$container"
		said one ".*sums are right"
		ctr-gpu setup vcuda >"$scratch/remarks"
		cat "$scratch/remarks"
		grep -q "everything is there" "$scratch/remarks"
		ctr-gpu setup vcuda --set-as-default >/dev/null
		jq -e ".vcuda.mode == \"default\"" /etc/ctr-gpu/config.json
		ctr-gpu setup vcuda --remove >/dev/null
		[[ ! -e /etc/ctr-gpu/config.json && -z $(ls /etc/cdi) && ! -e /var/lib/ctr-gpu/setup.json ]]

		# What an engine needs stays.
		ctr-gpu setup podman >/dev/null
		ctr-gpu setup vcuda >/dev/null
		[[ -e /etc/cdi/ctr-gpu-vcuda.json ]]
		ctr-gpu setup vcuda --remove >/dev/null
		[[ ! -e /etc/cdi/ctr-gpu-vcuda.json && -n $(ls /etc/cdi) ]]
		ctr-gpu setup vcuda >/dev/null
		ctr-gpu setup podman --remove >/dev/null
		[[ -e /etc/cdi/ctr-gpu-vcuda.json ]]
		ctr-gpu setup vcuda --remove >/dev/null
		[[ -z $(ls /etc/cdi) ]]

		# With systemd, in a file of an administrator who writes more into it meanwhile.
		mkdir -p /run/systemd/system
		printf "{\n\t\"vcuda\": {\n\t\t\"memory\": \"1G\"\n\t}\n}\n" >/etc/ctr-gpu/config.json
		cp /etc/ctr-gpu/config.json "$scratch/before"
		ctr-gpu setup vcuda >/dev/null
		[[ $(cat "$scratch/systemctl") == "enable --now ctr-gpu-vcudad.service ctr-gpu-vcudad.socket" ]]
		jq ".vcuda.idle = 5" /etc/ctr-gpu/config.json >/etc/new.json
		cat /etc/new.json >/etc/ctr-gpu/config.json
		ctr-gpu setup vcuda --remove >/dev/null
		[[ $(tail -n 1 "$scratch/systemctl") == "disable --now ctr-gpu-vcudad.service ctr-gpu-vcudad.socket" ]]
		jq -e ".vcuda == {memory: \"1G\", idle: 5}" /etc/ctr-gpu/config.json
		cp "$scratch/before" /etc/ctr-gpu/config.json
		ctr-gpu setup vcuda >/dev/null
		ctr-gpu setup vcuda --remove >/dev/null
		cmp "$scratch/before" /etc/ctr-gpu/config.json
		# What he has decided stays, with the service.
		ctr-gpu setup vcuda >/dev/null
		echo "{\"vcuda\": {\"mode\": \"force\"}}" >/etc/ctr-gpu/config.json
		rm "$scratch/systemctl"
		ctr-gpu setup vcuda --remove | grep -q "the mode \"force\" stays"
		[[ ! -e $scratch/systemctl ]]
		ctr-gpu setup vcuda --replace 2>/dev/null && exit 1
		# One that fails is said.
		printf "%s\n" "#!/bin/sh" "exit 1" >"$scratch/fake"
		ctr-gpu setup vcuda 2>"$scratch/remarks" && exit 1
		grep -q "systemctl enable --now .* has failed" "$scratch/remarks"
	'
}

@test "programs that are killed leave nothing, and other programs alone" {
	on_host '
		driver
		manager
		container one "for i in 1 2 3 4 5 6 7 8; do sleep 300 | hold 1048576 & done; sleep 300"
		soon said one "1048576: 0" # one after the other, since both runtimes make the places of mounts in one root
		container two "while sleep 0.2; do cuda-add; done"
		soon listed "[.containers[] | select(.container == \"one\")][0] | .clients == 8 and .used == 8388608"
		pkill -KILL -x vcuda-hold || pkill -KILL -f "^hold 1048576"
		soon listed "[.containers[] | select(.container == \"one\")][0] | .clients == 0 and .used == 0"
		soon grep -q "sums are right" "$scratch/two.out"
		grep -q "wrong\|error" "$scratch/two.out" && exit 1
		runc --root /run/runtime kill one KILL; runc --root /run/runtime kill two KILL
		soon listed ".servers == 0 and .containers == []"
	'
}

# Docker's containers have CAP_SETUID and no user namespace unless they are told otherwise.
@test "root of a container that becomes its neighbours' users takes nothing from servers of another container" {
	filter='.process.capabilities |= map_values(. + ["CAP_SETUID"] | unique)
		| .process.rlimits = [{type: "RLIMIT_NOFILE", hard: 16384, soft: 1024}]' on_host '
		driver
		manager
		container one "(until [ -e /tmp/more ]; do sleep 0.1; done; echo h1048576; sleep 300) | hold 4096"
		soon said one ready
		container two "sleep 300 | occupy 128"
		soon grep -q "occupied 256 around" "$scratch/two.out"
		container three "hold h1048576 </dev/null"
		wait "$container"
		touch "$scratch/bundle/rootfs/tmp/more"
		soon grep -q "h1048576: " "$scratch/one.out"
		said one "h1048576: 0"
		said three "h1048576: 0"
	'
}

@test "a manager that is started again: programs go on, and what they have is still counted" {
	on_host '
		driver
		manager
		container one "(until [ -e /tmp/more ]; do sleep 0.1; done; echo 1048576; sleep 300) | hold 1071644672"
		soon said one ready
		kill -KILL "$manager"
		wait "$manager" || true
		manager
		listed ".containers[0] | .clients == 1 and .used == 1071644672"
		touch "$scratch/bundle/rootfs/tmp/more"
		soon said one "1048576: 0"
		soon listed ".containers[0].used == 1072693248"
	'
}

@test "revoked: a program's next call fails, and so does cuInit of others" {
	on_host '
		driver
		manager
		container one "(until [ -e /tmp/more ]; do sleep 0.1; done; echo 1048576; sleep 1) | hold 4096; hold </dev/null; echo end"
		soon said one ready
		ctr-gpu vcuda revoke one
		touch "$scratch/bundle/rootfs/tmp/more"
		soon said one end
		# What the driver says of a context that is lost, and of a machine without a GPU.
		said one "1048576: 719"
		said one "cuInit=100"
	'
}

# What a start costs that does not ask for it: `make bench` measures; here nothing of it is even looked for.
# ---- suspended ----

@test "suspended by command: a program waits at its next call, and has what it had when it is resumed" {
	on_host '
		driver
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; holds 4194304 <&3 & until [ -e /tmp/more ]; do sleep 0.1; done; hold </dev/null; echo more; wait"
		soon said one held
		asks one check
		soon answers one 1 right
		ctr-gpu vcuda suspend one
		is one suspended
		listed ".containers[0].byHand"
		audited suspend ".container == \"one\" and .why == \"command\" and .memory > 4194304"
		asks one launch
		touch "$scratch/bundle/rootfs/tmp/more"
		sleep 1
		is one suspended
		answers one 1 right
		said one more && exit 1
		ctr-gpu vcuda suspend one
		ctr-gpu vcuda resume one
		soon answers one 2 launched
		soon said one more
		audited resume
		asks one check
		soon answers one 3 right
		ctr-gpu vcuda suspend one
		ctr-gpu vcuda resume one
		asks one check
		soon answers one 4 right
		ctr-gpu vcuda resume one 2>&1 | grep "it is not suspended"
		ctr-gpu vcuda suspend one
		# Another suspends it again between two looks of the one that waits until it runs.
		{ timeout 30 ctr-gpu vcuda resume one || echo "status $?"; } >"$scratch/resumed" 2>&1 & resumes=$!
		soon eval "jq -es \"map(select(.event == \\\"resume\\\")) | length == 3\" \"$scratch/audit\" >/dev/null"
		ctr-gpu vcuda suspend one
		wait "$resumes"
		grep "status 124" "$scratch/resumed" && exit 1
		is one suspended
		runc --root /run/runtime kill one KILL
		soon listed ".containers == [] and .servers == 0"
	'
}

@test "all are suspended while the host sleeps, also those that begin, and nothing is resumed but what was suspended for it" {
	on_host '
		driver
		manager
		for name in runs command rests; do
			mkfifo "$scratch/bundle/rootfs/tmp/$name"
			container "$name" "exec 3<>/tmp/$name; holds 4194304 <&3 & until [ -e /tmp/more ]; do sleep 0.1; done; hold </dev/null; echo more; wait"
			soon said "$name" held
		done
		ctr-gpu vcuda suspend command
		ctr-gpu vcuda limit rests --idle=1
		soon is rests suspended
		ctr-gpu vcuda suspend --all
		is runs suspended
		listed .allSuspended
		audited sleep
		audited suspend ".container == \"runs\" and .why == \"all\""
		ctr-gpu vcuda resume runs 2>&1 | grep "all containers are suspended: ctr-gpu vcuda resume --all"
		# No call and no new program brings one back, nor does another manager, and a new container waits.
		kill -KILL "$manager"; wait "$manager" || true
		manager
		container late "holds 4194304 </dev/null"
		asks rests check
		asks runs check
		touch "$scratch/bundle/rootfs/tmp/more"
		soon is late suspended
		sleep 1
		listed ".allSuspended and ([.containers[].state] | unique == [\"suspended\"])"
		answers runs 0 "" || ! grep " ms$" "$scratch/runs.out"
		ctr-gpu vcuda resume --all
		is command suspended
		is runs running
		listed "(.allSuspended | not) and ([.containers[] | select(.byHand).container] == [\"command\"])"
		soon answers runs 1 right
		soon answers rests 1 right
		soon said runs more
		soon said late held
		audited wake
		# What rests comes back by itself alone.
		soon is rests suspended
		ctr-gpu vcuda suspend --all
		ctr-gpu vcuda resume --all
		is rests suspended
		is runs running
		is command suspended
		ctr-gpu vcuda suspend --all runs && exit 1
		ctr-gpu vcuda suspend && exit 1
		true
	'
}

@test "suspended since it rests: the next call brings back what it had, and so does a new program" {
	on_host '
		driver
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; holds 4194304 <&3 & until [ -e /tmp/more ]; do sleep 0.1; done; hold </dev/null; echo more; wait"
		soon said one held
		ctr-gpu vcuda limit one --idle=1
		soon is one suspended
		listed ".containers[0] | .idle == 1 and (.byHand | not)"
		audited suspend ".why == \"idle\""
		# The time of its suspension is none of its rest.
		sleep 3
		ctr-gpu vcuda limit one --idle=3
		asks one check
		soon answers one 1 right
		[[ $(grep -c "\"event\":\"suspend\"" "$scratch/audit") == 1 ]]
		ctr-gpu vcuda limit one --idle=1
		soon is one suspended
		touch "$scratch/bundle/rootfs/tmp/more"
		soon said one more
		soon is one suspended
		# One that works on a GPU does not rest.
		asks one spin
		soon is one running
		sleep 1.5
		is one running
		soon answers one 2 spun
		ctr-gpu vcuda limit one --idle=0
		asks one check
		soon answers one 3 right
		sleep 2.5
		is one running
	'
}

@test "a manager that is killed while it suspends and resumes: the next one carries on" {
	on_host '
		driver
		echo CHECKPOINT_US=1000000 >>/run/driver/sim.conf
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; holds 4194304 <&3"
		soon said one held
		rounds=0
		for when in 0.1 0.5 1.2 1.8; do
			(ctr-gpu vcuda suspend one || true) 2>/dev/null & asking=$!
			leaves one running "$asking"
			sleep "$when"
			kill -KILL "$manager"; wait "$manager" || true
			wait "$asking"
			manager
			soon is one suspended
			(ctr-gpu vcuda resume one || true) 2>/dev/null & asking=$!
			leaves one suspended "$asking"
			sleep "$when"
			kill -KILL "$manager"; wait "$manager" || true
			wait "$asking"
			manager
			soon is one running
			rounds=$((rounds + 1))
			asks one check
			soon answers one "$rounds" right
		done
		audited adopt
	'
}

@test "containers that all have work have turns on a GPU, by their shares; who is alone needs none" {
	devices=0 on_host '
		driver
		manager
		container one "turns 2000000 queue 0 1e11"
		first=$container
		soon listed ".containers | length == 1"
		container two "turns 100000 queue 0 1e11" CTR_GPU_SHARE=25
		second=$container
		soon spend one
		soon spend two
		listed ".containers | map(.share) | sort == [25, 100]"
		divided one two 2.4 6
		ctr-gpu vcuda limit two --share=100
		divided one two 0.6 1.7
		ctr-gpu vcuda list | grep "share      100 of its GPUs"
		ctr-gpu vcuda limit two --share=1001 2>&1 | grep "from 1 to 1000"
		# Without whoever decides, they go on, and the next one decides again.
		kill -KILL "$(pgrep -x ctr-gpu-vcuda-t)"
		soon audited turns-ended
		soon spend one
		soon spend two
		kill -KILL "$manager"; wait "$manager" || true
		manager
		soon spend one
		soon spend two
		divided one two 0.6 1.7
		soon eval "[[ \$(pgrep -cxr R,S,D ctr-gpu-vcuda-t) == 1 ]]"
		runc --root /run/runtime kill two KILL
		soon listed ".containers | length == 1"
		soon eval "! spend one"
		runc --root /run/runtime kill one KILL
	'
}

@test "top shows how long a GPU works for programs, what they copy and how they are; who only looks, ends" {
	devices=0 on_host '
		driver
		manager
		ctr-gpu vcuda top >"$scratch/top.out"
		grep -x "No container has GPUs by vCUDA." "$scratch/top.out"
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; holds 4194304 <&3 & turns 2000000 ahead 0 1e11"
		soon said one held # one after the other, since both runtimes make the places of mounts in one root
		container two "turns 2000000 rest 0 1e11"
		top() { ctr-gpu vcuda top --json >"$scratch/top.out" && jq -e "def program(\$c; \$p): [.containers[] |
			select(.container == \$c).processes[] | select(.program == \$p)][0]; $1" "$scratch/top.out" >/dev/null; }
		# Both have turns, which are counted, and two has much less to do.
		while sleep 0.2; do asks one check; done &
		asking=$!
		soon top "(.containers | length == 2) and (program(\"one\"; \"turns\") | .gpuTime[0] > 0.1 and .toGpu == 0 and .fromGpu == 0)
			and program(\"two\"; \"turns\").gpuTime[0] > 0.02
			and (program(\"one\"; \"holds\") | .gpuTime == [0] and .toGpu > 1e6 and .fromGpu > 1e6 and .memory > 4194304)"
		kill "$asking"
		ctr-gpu vcuda suspend two
		# One alone has none, and is measured for who looks.
		while asks one spin; do sleep 1.8; done &
		asking=$!
		soon top "(program(\"two\"; \"turns\") | .state == \"suspended\" and .gpuTime == [0]) and program(\"one\"; \"turns\").gpuTime[0] > 0.05
			and (program(\"one\"; \"holds\") | .gpuTime[0] > 0.8 and .gpuTime[0] < 1.1 and .state == \"running\")"
		jq -e ".containers[] | select(.container == \"one\") | .used > 4194304 and .share == 100 and .memory == 1073741824" "$scratch/top.out"
		kill "$asking"
		# What it has begun while it was measured keeps it from no turn.
		ctr-gpu vcuda resume two
		soon top "program(\"two\"; \"turns\").gpuTime[0] > 0.02 and program(\"one\"; \"turns\").gpuTime[0] > 0.1"
		runc --root /run/runtime kill one KILL
		soon listed ".containers | length == 1"
		soon top "program(\"two\"; \"turns\") | .gpuTime[0] > 0.02 and .gpuTime[0] < 0.9 and .state == \"running\""
		ctr-gpu vcuda top >"$scratch/text"
		grep -E "^two  .* % .*running" "$scratch/text"
		grep -E "running     turns$" "$scratch/text"
		[[ $(grep -c CONTAINER "$scratch/text") == 1 && $(grep -c "$(printf "\033")" "$scratch/text") == 0 ]]
		# On a terminal it goes on until q, or SIGINT.
		(until [[ $(grep -c CONTAINER "$scratch/screen") -ge 2 ]]; do sleep 0.1; done 2>/dev/null; printf q; sleep 300) |
			timeout 100 script -qfec "stty rows 5; ctr-gpu vcuda top; echo status=\$?; stty -a" "$scratch/screen" >/dev/null &
		soon grep -q "status=0" "$scratch/screen"
		soon grep -q " icanon.* echo " "$scratch/screen"
		setpriv --reuid=1000 --clear-groups ctr-gpu vcuda top 2>&1 | grep "answers root alone"
		runc --root /run/runtime kill two KILL
	'
}

@test "what has no room on its GPU is resumed in the order in which it was asked for" {
	devices=0 on_host '
		driver
		manager
		for name in one two three; do
			mkfifo "$scratch/bundle/rootfs/tmp/$name"
			container "$name" "exec 3<>/tmp/$name; holds 4194304 <&3"
			soon said "$name" held
			ctr-gpu vcuda limit "$name" --idle=1
			soon is "$name" suspended
			ctr-gpu vcuda limit "$name" --idle=0
		done
		touch /run/driver/full
		asks two launch
		soon is two waiting
		ctr-gpu vcuda list | grep "suspended, waits for memory of its GPUs"
		asks three launch
		soon is three waiting
		asks one launch
		soon is one waiting
		ctr-gpu vcuda resume one 2>&1 | grep "its GPUs have no room"
		audited resume-waits ".container == \"two\""
		rm /run/driver/full
		for name in two three one; do soon answers "$name" 1 launched; done
		jq -er "select(.event == \"resume\").container" "$scratch/audit" | diff - <(printf "%s\n" two three one)
	'
}

@test "what cannot be saved whole comes back once there is room, and is not lost where another container took it" {
	devices=0 on_host '
		driver
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one" "$scratch/bundle/rootfs/tmp/other"
		container one "exec 3<>/tmp/one 4<>/tmp/other; holds 4194304 <&3 & holds 4194304 <&4"
		soon eval "[[ \$(grep -c ^held \"$scratch/one.out\") == 2 ]]"
		# The second server is saved at the second try.
		touch /run/driver/full
		echo "FAULTS=cuCheckpointProcessCheckpoint@2=2" >>/run/driver/sim.conf
		ctr-gpu vcuda suspend one
		is one suspended
		rm /run/driver/full
		ctr-gpu vcuda resume one
		asks one check
		asks other check
		soon answers one 2 right
		# Or not at that either.
		touch /run/driver/full
		sed -i "s/^FAULTS=.*/&,cuCheckpointProcessCheckpoint@2=2/" /run/driver/sim.conf
		ctr-gpu vcuda suspend one >"$scratch/why" 2>&1 && exit 1
		grep "cuCheckpointProcessCheckpoint(): 2" "$scratch/why"
		audited suspend-failed
		audited resume-waits
		is one waiting
		# Nor when all are to be: that is said. Then it can be.
		sed -i "s/^FAULTS=.*/FAULTS=cuCheckpointProcessCheckpoint@*=2/" /run/driver/sim.conf
		ctr-gpu vcuda suspend --all >"$scratch/why" 2>&1 && exit 1
		grep "^one is waiting: cuCheckpointProcessCheckpoint(): 2" "$scratch/why"
		grep "containers that could not be suspended: 1" "$scratch/why"
		sed -i /^FAULTS=/d /run/driver/sim.conf
		ctr-gpu vcuda suspend --all
		ctr-gpu vcuda resume --all
		is one suspended
		ctr-gpu vcuda resume one && exit 1
		is one waiting
		asks one check
		rm /run/driver/full
		soon answers one 3 right
		asks other check
		soon answers one 4 right
		is one running
	'
}

@test "what the driver does not save goes on once the programs that it had saved have ended" {
	devices=0 on_host '
		driver
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one" "$scratch/bundle/rootfs/tmp/other"
		container one "exec 3<>/tmp/one 4<>/tmp/other; holds 4194304 <&3 & holds 4194304 <&4; wait"
		soon eval "[[ \$(grep -c ^held \"$scratch/one.out\") == 2 ]]"
		touch /run/driver/full
		echo "FAULTS=cuCheckpointProcessCheckpoint@2=2,cuCheckpointProcessCheckpoint@2=2" >>/run/driver/sim.conf
		ctr-gpu vcuda suspend one && exit 1
		is one waiting
		sed -i "s/^FAULTS=.*/FAULTS=cuCheckpointProcessCheckpoint@*=2/" /run/driver/sim.conf
		kill -KILL "$(jq ".containers[0].servers[0].client" /run/ctr-gpu/vcudad.json)"
		soon eval "jq -e \".containers[0].servers | length == 1\" /run/ctr-gpu/vcudad.json"
		ctr-gpu vcuda suspend --all && exit 1
		asks one check
		asks other check
		soon answers one 1 right
		is one running
	'
}

@test "a container of which nothing could be saved goes on, however full its GPU is" {
	devices=0 on_host '
		driver
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; holds 4194304 <&3"
		soon grep -q ^held "$scratch/one.out"
		touch /run/driver/full
		echo "FAULTS=cuCheckpointProcessCheckpoint@1=2" >>/run/driver/sim.conf
		ctr-gpu vcuda suspend one >"$scratch/why" 2>&1 && exit 1
		grep "cuCheckpointProcessCheckpoint(): 2" "$scratch/why"
		is one running
		asks one check
		soon answers one 1 right
	'
}

lost=GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4

@test "a GPU that is lost: its programs get an error, new ones another GPU, until it is cleared" {
	on_host '
		driver
		manager
		for name in one two; do mkfifo "$scratch/bundle/rootfs/tmp/$name"; done
		container one "exec 3<>/tmp/one; holds 4194304 <&3; hold </dev/null; cuda-add; echo end"
		soon said one held
		container two "exec 3<>/tmp/two; holds 4194304 <&3"
		soon said two held
		# What a program did wrong is no fault of the GPU.
		echo "0 13" >>/run/driver/xid
		soon audited xid ".gpu == \"'"$lost"'\" and .number == 13"
		asks one check
		soon answers one 1 right
		listed ".gpuTroubles == []"
		# Another watches on.
		kill -KILL "$(pgrep -xr R,S,D ctr-gpu-vcuda-w)"
		soon audited watch-ended
		echo "0 79" >>/run/driver/xid
		soon audited gpu-lost ".gpu == \"'"$lost"'\" and .why == \"Xid 79\""
		asks one check
		soon said one "cuMemcpyDtoH_v2: error 719"
		soon said one end
		# The next program of the same container has what is left, as the others had.
		said one "devices=1"
		said one "GPU-7b10aa04-0041-0000-0000-000084ef55fb: Small: 1048576 sums are right"
		asks two check
		soon answers two 1 right
		container three "hold </dev/null; echo end"
		soon said three end
		said three "devices=1"
		ctr-gpu vcuda list | grep -A 1 "^'"$lost"'" | grep "lost since 2.*Z: Xid 79"
		(ctr-gpu doctor || true) 2>&1 | tr -s " \n" " " |
			grep "'"$lost"' is lost (Xid 79), and no container gets it by vCUDA > Reset the GPU .* sudo ctr-gpu vcuda clear '"$lost"'"
		ctr-gpu vcuda clear GPU-7b 2>&1 | grep "no GPU is lost whose UUID is that"
		rm /run/driver/xid
		ctr-gpu vcuda clear GPU-5a3f
		listed ".gpuTroubles == []"
		audited gpu-cleared
		container four "hold </dev/null; echo end"
		soon said four end
		said four "devices=2"
	'
}

@test "what NVML says of a GPU when a server has an error, and when the manager begins; a grant of that GPU alone is refused" {
	devices=0 on_host '
		driver
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		echo "FAULTS=cuCtxSynchronize@1=214" >>/run/driver/sim.conf
		container one "exec 3<>/tmp/one; holds 4194304 <&3; sleep 300"
		soon said one held
		echo "0 94" >/run/driver/xid
		soon audited gpu-suspected ".why == \"Xid 94\""
		echo 0 >/run/driver/lost
		asks one spin
		soon audited gpu-lost ".why == \"fallen off the bus\""
		audited sticky ".number == 214"
		container two "hold </dev/null"
		wait "$container" && exit 1
		grep -q "its GPU is lost" "$scratch/two.out"
		# A new manager knows nothing, until the one that watches has looked.
		rm /run/driver/lost
		echo 1 >/run/driver/action
		kill "$manager"; wait "$manager" || true
		manager
		container three "hold </dev/null; sleep 300"
		soon audited gpu-lost ".why == \"reset required\""
		listed ".gpuTroubles | length == 1 and .[0].lost"
		# There is nothing left to be watched: what has a GPU open keeps it from being reset.
		soon eval "! pgrep -xr R,S,D ctr-gpu-vcuda-w"
	'
}

@test "a GPU that cannot be watched is suspected when a server says so, and others are taken first" {
	on_host '
		driver
		printf "%s\n" NVML=none FAULTS=cuCtxSynchronize@1=214 >>/run/driver/sim.conf
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; holds 4194304 <&3"
		soon said one held
		soon audited not-watched
		asks one spin
		soon audited gpu-suspected ".gpu == \"'"$lost"'\" and .why == \"CUDA error 214\""
		soon listed ".containers == []"
		sed -i /FAULTS/d /run/driver/sim.conf
		container two "cuda-add; sleep 300"
		soon eval "[[ \$(grep -m 1 \"sums are right\" $scratch/two.out) == *Small* ]]"
		ctr-gpu vcuda list | grep "suspected since .*: CUDA error 214"
	'
}

@test "a driver that cannot suspend is said to be one, and the program goes on" {
	on_host '
		driver
		echo CHECKPOINT=0 >>/run/driver/sim.conf
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; holds 4194304 <&3"
		soon said one held
		ctr-gpu vcuda suspend one >"$scratch/why" 2>&1 && exit 1
		grep "it is running: cuCheckpointProcessGetState(): 801" "$scratch/why"
		audited suspend-failed
		is one running
		ctr-gpu vcuda suspend --all >"$scratch/why" 2>&1 && exit 1
		grep "^one is running: cuCheckpointProcessGetState(): 801" "$scratch/why"
		grep "containers that could not be suspended: 1" "$scratch/why"
		ctr-gpu vcuda resume --all
		asks one check
		soon answers one 1 right
	'
}

@test "moved to another GPU of its model: programs go on with what they had, and see the GPU that they saw" {
	profile=wsl-two-same-store devices=0 settings=$movable on_host '
		same
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; holds 4194304 <&3 & for i in 1 2; do
			until [ -e /tmp/more\$i ]; do sleep 0.1; done; nvidia-smi -L; ask; done; wait"
		soon said one held
		is_on one 1
		touch "$scratch/bundle/rootfs/tmp/more1"
		soon said one "GPU 0: Same (UUID: GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4)"
		ctr-gpu vcuda move one --device 1
		is one running
		is_on one 2
		audited move ".container == \"one\" and .memory > 4194304 and (.from[0] | startswith(\"GPU-5a3f1c2b\")) and (.to[0] | startswith(\"GPU-5a3f9d11\"))"
		ctr-gpu vcuda list | grep "on GPU-5a3f9d11-0002-0000-0000-0000a5c062ee, to which it was moved"
		asks one check
		soon answers one 1 right
		asks one launch
		soon answers one 2 launched
		cp "$scratch/one.out" "$scratch/before"
		touch "$scratch/bundle/rootfs/tmp/more2"
		soon eval "[[ \$(grep -c \"^GPU 0\" \"$scratch/one.out\") == 2 ]]"
		[[ $(grep "^GPU 0" "$scratch/one.out" | sort -u | wc -l) == 1 ]]
		ctr-gpu vcuda move one --device 1 2>&1 | grep "it is there already"
		ctr-gpu vcuda move one --device 5a3f1c2b 2>&1 | grep "this host has no NVIDIA GPU"
		ctr-gpu vcuda move one 2>&1 | grep "it is not said to which GPU"
		ctr-gpu vcuda move one --from 0 --device 1 2>&1 | grep "it has nothing on that GPU"
		ctr-gpu vcuda move one --from 1 --device GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4
		is_on one 1
		asks one check
		soon answers one 3 right
		# One that is suspended comes back there.
		ctr-gpu vcuda suspend one
		ctr-gpu vcuda move one --device 1
		is one suspended
		ctr-gpu vcuda resume one
		is_on one 2
		asks one check
		soon answers one 4 right
	'
}

@test "what cannot be moved stays where it was, and it is said why" {
	profile=wsl-two-same-store devices=0 settings=$movable on_host '
		same
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; holds 4194304 <&3"
		soon said one held
		touch /run/driver/full-1
		ctr-gpu vcuda move one --device 1 >"$scratch/why" 2>&1 && exit 1
		grep "it was not moved: the other GPU has no room for what it has" "$scratch/why"
		audited move-failed
		is one running
		is_on one 1
		[[ $(grep -c "\"event\":\"suspend" "$scratch/audit") == 0 ]]
		asks one check
		soon answers one 1 right
		rm /run/driver/full-1
		# A GPU that became exclusive takes none, whoever moves it; the other is drained.
		ctr-gpu assign 1 --exclusive
		ctr-gpu vcuda move one --device 1 >"$scratch/why" 2>&1 && exit 1
		grep "that GPU is exclusive, so one container that asks for it has it alone: ctr-gpu assign" "$scratch/why"
		ctr-gpu vcuda drain 0 >"$scratch/why" 2>&1 && exit 1
		grep "^one stays: it may be moved to no other GPU of the same model that is not drained, or exclusive" "$scratch/why"
		ctr-gpu vcuda undrain 0
		is_on one 1
		ctr-gpu assign 1 --shared
		ctr-gpu vcuda move one --device 1
		is_on one 2
		echo "{\"vcuda\": {\"mode\": \"allow\"}}" >/etc/ctr-gpu/config.json
		mkfifo "$scratch/bundle/rootfs/tmp/two"
		container two "exec 3<>/tmp/two; holds 4194304 <&3"
		soon said two held
		ctr-gpu vcuda move two --device 1 >"$scratch/why" 2>&1 && exit 1
		grep "its servers may not use that GPU: it was not given it when it began" "$scratch/why"
		grep "\"move\": true" "$scratch/why"
		asks two check
		soon answers two 1 right
	'
	settings=$movable on_host '
		driver
		manager
		rm -rf "$scratch/one"
		mkdir -p "$scratch/bundle/rootfs/tmp"
		mkfifo "$scratch/bundle/rootfs/tmp/both"
		container both "exec 3<>/tmp/both; holds 4194304 <&3"
		soon said both held
		ctr-gpu vcuda move both --device 1 >"$scratch/why" 2>&1 && exit 1
		grep "that GPU is of another model" "$scratch/why"
		asks both check
		soon answers both 1 right
	'
}

@test "the manager and the program that has the driver move are killed amid a move: all is on one GPU" {
	profile=wsl-two-same-store devices=0 settings=$movable on_host '
		same
		echo CHECKPOINT_US=200000 >>/run/driver/sim.conf
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one" "$scratch/bundle/rootfs/tmp/hold"
		container one "exec 4<>/tmp/hold; hold <&4 & hold <&4 & exec 3<>/tmp/one; holds 4194304 <&3"
		soon said one held
		soon eval "[[ \$(on one | wc -l) == 3 ]]"
		rounds=0 to=1
		for when in 0.05 0.3 0.5 0.7 0.9 1.1 1.3 1.6; do
			(ctr-gpu vcuda move one --device "$to" || true) 2>/dev/null & asking=$!
			leaves one running "$asking"
			sleep "$when"
			((rounds % 2)) || kill -KILL "$(pgrep -xo ctr-gpu-vcuda-c)" 2>/dev/null || true
			kill -KILL "$manager"; wait "$manager" || true
			wait "$asking"
			manager
			soon is one running
			rounds=$((rounds + 1))
			is_on one 1 || is_on one 2
			is_on one 2 && to=0 || to=1
			asks one check
			soon answers one "$rounds" right
		done
		audited move
		audited adopt
		[[ $(grep -c "\"event\":\"crash" "$scratch/audit") == 0 ]]
	'
}

@test "a GPU is drained: what is there is moved as far as there is room, and nothing begins there" {
	profile=wsl-two-same-store devices=0 settings=$movable on_host '
		same
		manager
		for name in one two; do
			mkfifo "$scratch/bundle/rootfs/tmp/$name"
			container "$name" "exec 3<>/tmp/$name; holds 4194304 <&3"
			soon said "$name" held
		done
		echo "{\"vcuda\": {\"mode\": \"allow\"}}" >/etc/ctr-gpu/config.json
		mkfifo "$scratch/bundle/rootfs/tmp/bound"
		container bound "exec 3<>/tmp/bound; holds 4194304 <&3"
		soon said bound held
		ctr-gpu vcuda drain 0 >"$scratch/drain" 2>&1 && exit 1
		cat "$scratch/drain"
		grep "^bound stays: it may be moved to no other GPU of the same model that is not drained" "$scratch/drain"
		[[ $(grep -c stays: "$scratch/drain") == 1 ]]
		soon is_on one 2
		soon is_on two 2
		soon is_on bound 1
		for name in one two bound; do
			asks "$name" check
			soon answers "$name" 1 right
		done
		listed ".drained == [\"GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4\"]"
		ctr-gpu vcuda list | grep "drained: GPU-5a3f1c2b"
		# A manager that is started again knows it.
		kill -KILL "$manager"; wait "$manager" || true
		manager
		container refused "true"
		wait "$container" && exit 1
		grep "its GPU is drained" "$scratch/refused.out"
		echo "$0" >/etc/ctr-gpu/config.json
		mkfifo "$scratch/bundle/rootfs/tmp/new"
		container new "exec 3<>/tmp/new; holds 4194304 <&3"
		soon said new held
		soon is_on new 2
		ctr-gpu vcuda undrain 0
		listed ".drained == []"
		ctr-gpu vcuda undrain 0 2>&1 | grep "that GPU is not drained"
		audited drain
		audited undrain
	'
}

@test "where a GPU has more work than another for long, a container moves by itself, and stays" {
	profile=wsl-two-same-store devices=0 settings=$balanced on_host '
		same
		manager
		container one "turns 40000000 queue 0 1e11"
		soon are_on one 1
		container two "turns 40000000 queue 0 1e11"
		soon audited move
		{ are_on one 1 && are_on two 2; } || { are_on one 2 && are_on two 1; } || exit
		audited balance ".fromLoad > 0.3 and .load > 0.1 and .toLoad < 0.2 and (.from | startswith(\"GPU-5a3f1c2b\")) and (.to | startswith(\"GPU-5a3f9d11\"))"
		listed "[.containers[] | select(.stays > 500)] | length == 1"
		listed ".containers | all(.balance == 1)"
		ctr-gpu vcuda list | grep "balance    moved when its GPU has had more work than others for 1 s"
		ctr-gpu vcuda list | grep "was moved; stays for [56]"
		# A manager that is started again knows how long.
		kill -KILL "$manager"; wait "$manager" || true
		manager
		listed "[.containers[] | select(.stays > 500)] | length == 1"
		[[ $(grep -c "\"event\":\"balance\"" "$scratch/audit") == 1 ]]
		ctr-gpu vcuda limit one --balance=0
		listed ".containers | any(.balance == 0)"
		runc --root /run/runtime kill one KILL
		runc --root /run/runtime kill two KILL
	'
}

@test "what a killed server left is known to the manager behind one that was killed, and gone with its client" {
	on_host '
		remnants() { [[ $(jq "[.containers[].remnants[]] | length" /run/ctr-gpu/vcudad.json) == "$1" ]]; }
		driver
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; hold h8388608 <&3; sleep 300"
		soon said one ready
		kill -SEGV "$(pgrep -xo ctr-gpu-vcuda)"
		soon audited memory-kept ".memory >= 8388608"
		soon remnants 1
		soon pgrep -x ctr-gpu-keeper
		keeper=$(pgrep -x ctr-gpu-keeper)
		# Another one without any other change.
		kill -KILL "$keeper"
		soon eval "[[ \$(jq .keeper /run/ctr-gpu/vcudad.json) != $keeper ]] && pgrep -x ctr-gpu-keeper"
		kill -KILL "$manager"; wait "$manager" || true
		manager
		remnants 1
		soon eval "[[ \$(pgrep -xc ctr-gpu-keeper) == 1 ]]"
		kill -KILL "$(pgrep -xo hold)"
		soon remnants 0
		soon eval "! pgrep -x ctr-gpu-keeper"
	'
}

@test "what servers tell is in the audit of each manager behind one that was killed, also what they told while there was none" {
	on_host '
		denied() { [[ $(jq -s "map(select(.event == \"quota\" and .container == \"one\")) | length" "$scratch/audit") == "$1" ]]; }
		kept() { [[ $(jq "[.containers[].servers[].events] | any(. > 0)" /run/ctr-gpu/vcudad.json) == true ]]; }
		driver
		manager
		mkfifo "$scratch/bundle/rootfs/tmp/one"
		container one "exec 3<>/tmp/one; hold 4096 <&3" CTR_GPU_MEMORY=64M
		soon said one ready
		for ((i = 1; i < 4; i++)); do
			soon kept
			kill -KILL "$manager"; wait "$manager" || true
			# A server tells of refused memory once a second.
			sleep 1.1
			[[ $i != 3 ]] || echo $((i << 30)) >"$scratch/bundle/rootfs/tmp/one"
			[[ $i != 3 ]] || soon said one "$((i << 30)): 2"
			manager
			[[ $i == 3 ]] || echo $((i << 30)) >"$scratch/bundle/rootfs/tmp/one"
			soon denied "$i"
		done
		# One that ends by itself loses nothing either.
		kill "$manager"; wait "$manager"
		manager
		kept
		runc --root /run/runtime kill one KILL
		soon eval "! pgrep -x ctr-gpu-keeper"
	'
}

@test "a container that was moved has turns on the GPU where it is" {
	profile=wsl-two-same-store devices=0 settings=$movable on_host '
		same
		manager
		container one "turns 2000000 queue 0 1e11"
		soon are_on one 1
		container two "turns 100000 queue 0 1e11"
		soon are_on two 1
		soon spend one
		soon spend two
		ctr-gpu vcuda move two --device 1
		are_on one 1
		are_on two 2
		soon eval "! spend one"
		soon eval "! spend two"
		ctr-gpu vcuda move one --device 1
		are_on one 2
		are_on two 2
		soon spend one
		soon spend two
		runc --root /run/runtime kill one KILL
		runc --root /run/runtime kill two KILL
	'
}

@test "a start that does not ask for vCUDA looks for nothing of it" {
	require_program strace
	printf '#!/bin/sh\nexec strace -f -o "%s/trace" "%s/bin/ctr-gpu-hook" "$@"\n' "$BATS_TEST_TMPDIR" "$CTR_GPU_BUILD" >"$BATS_TEST_TMPDIR/hook"
	chmod 755 "$BATS_TEST_TMPDIR/hook"
	filter=".mounts |= map(select(.destination | startswith(\"/usr/bin\") | not)) | .process.env -= [\"CTR_GPU_MODE=vcuda\"] | .hooks.prestart[0].path = \"$BATS_TEST_TMPDIR/hook\"" on_host '
		manager
		container one "ls /dev/dxg"
		wait "$container"
		said one /dev/dxg
		grep -q /usr/lib/wsl "$scratch/trace"
		[[ $(sed "s,$CTR_GPU_BUILD,,g" "$scratch/trace" | grep -c "vcudad\|/vcuda") == 0 ]]
	'
	rm -rf "$BATS_TEST_TMPDIR"/{bundle,one}
	filter=".hooks.prestart[0].path = \"$BATS_TEST_TMPDIR/hook\"" on_host '
		manager
		container one "ls /dev/dxg"
		wait "$container" || true
		grep -q "connect(.*vcudad.sock" "$scratch/trace"
	'
}

# ---- by other doors ----

@test "ctr-gpu-runtime" {
	filter='del(.hooks)' runtime=ctr-gpu-runtime devices=1 on_host '
		driver
		manager
		container one "ls /dev/dxg; cuda-add"
		wait "$container"
		said one "GPU-7b10aa04-0041-0000-0000-000084ef55fb: Small: 1048576 sums are right"
	'
}

@test "Podman, by CDI" {
	require_program podman
	podman_setup
	run podman_in wsl-two-nvidia version --format '{{.Client.Version}}'
	echo "Podman $output"
	export -f driver manager
	export scratch=$BATS_TEST_TMPDIR
	run sandbox wsl-two-nvidia env CONTAINERS_CONF="$(engine_directory podman)/containers.conf" \
		CONTAINERS_STORAGE_CONF="$(engine_directory podman)/storage.conf" bash -ec '
			mkdir -p /etc/ctr-gpu
			echo "{\"vcuda\": {\"mode\": \"force\"}}" >/etc/ctr-gpu/config.json
			driver
			manager
			ctr-gpu cdi generate
			ls /etc/cdi
			memlock podman run --cgroup-parent "$CTR_GPU_TEST_CGROUP" --rm --device ctr-gpu.org/vcuda=1 \
				-v "$CTR_GPU_BUILD/test/real/cuda-add:/usr/bin/cuda-add:ro" debian sh -c "ls /dev/dxg; cuda-add"'
	expect_status 0
	expect_line "ctr-gpu-vcuda.json"
	expect_line "GPU-7b10aa04-0041-0000-0000-000084ef55fb: Small: 1048576 sums are right"
	expect "/dev/dxg: No such file"
	expect_not "GPU-5a3f1c2b"
}

# docker_on PROFILE [JSON [COMMAND]]
docker_on() {
	export -f driver manager
	export scratch=$BATS_TEST_TMPDIR
	docker_start "$1" "${2-}" 'mkdir -p /etc/ctr-gpu
		echo "{\"vcuda\": {\"mode\": \"allow\"}}" >/etc/ctr-gpu/config.json
		driver && manager || exit'"${3-}"
	docker_image debian
}

@test "docker run --gpus device=1" {
	require_program dockerd
	require_program docker
	docker_on wsl-two-nvidia
	run docker run --rm --gpus '"device=1"' -e CTR_GPU_MODE=vcuda -v "$CTR_GPU_BUILD/test/real/cuda-add:/usr/bin/cuda-add:ro" \
		debian sh -c "ls /dev/dxg; cuda-add"
	docker_stop
	expect_status 0
	expect_line "GPU-7b10aa04-0041-0000-0000-000084ef55fb: Small: 1048576 sums are right"
	expect "/dev/dxg: No such file"
	expect_not "GPU-5a3f1c2b"
}

# With a device, the choice of one of them hides nothing: both GPUs are behind one node, and their drivers in one store.
@test "docker run --gpus device=1, with two GPUs on one store: the second and nothing else" {
	require_program dockerd
	require_program docker
	docker_on wsl-two-same-store
	run docker run --rm --gpus '"device=1"' -e CTR_GPU_MODE=vcuda -v "$CTR_GPU_BUILD/test/real/cuda-add:/usr/bin/cuda-add:ro" \
		-v "$CTR_GPU_BUILD/test/tools/vcuda-hold:/usr/bin/hold:ro" -v "$CTR_GPU_BUILD/test/tools/probe:/usr/bin/try:ro" debian \
		sh -c "ls /dev /usr/lib/wsl; try node 10 183 /tmp/node; find / -path /proc -prune -o -name 'libcuda.so*' -print -o -name 'libdxcore*' -print; hold </dev/null; cuda-add"
	docker run --detach --name first --gpus '"device=0"' -e CTR_GPU_MODE=vcuda debian sleep 300
	inside=$(docker run --rm --gpus '"device=1"' -e CTR_GPU_MODE=vcuda debian ls -R /run/ctr-gpu)
	docker_stop
	expect_status 0
	expect_line "devices=1"
	expect_line "GPU-5a3f9d11-0002-0000-0000-0000a5c062ee: Small: 1048576 sums are right"
	expect_not "GPU-5a3f1c2b"
	expect_no_line dxg
	expect_line "/tmp/node=EPERM"
	expect "/usr/lib/wsl: No such file"
	# One container's socket is nowhere in another.
	[[ $inside == $'/run/ctr-gpu:\nvcuda\n\n/run/ctr-gpu/vcuda:\nsocket' ]]
	[[ $(grep -c libcuda.so <<<"$output") == 2 ]]
}

@test "Docker's daemon is killed and started again: what containers have goes on, and their end is seen" {
	require_program dockerd
	require_program docker
	export -f driver manager soon listed
	export scratch=$BATS_TEST_TMPDIR
	image=$(image debian)
	export image
	run sandbox wsl-two-nvidia timeout --kill-after=1 240 bash -euc '
		engine() {
			dockerd --containerd /run/containerd.sock --data-root "$scratch/data" --exec-root /run/docker --pidfile /run/docker.pid --iptables=false --ip6tables=false \
				--bridge=none --live-restore --cgroup-parent "$CTR_GPU_TEST_CGROUP" --exec-opt native.cgroupdriver=cgroupfs \
				>>"$scratch/docker.log" 2>&1 &
			for i in {1..600}; do docker version >/dev/null 2>&1 && return || sleep 0.1; done
			tail -n 20 "$scratch/docker.log" && return 1
		}
		mkdir -p /etc/ctr-gpu
		echo "{\"vcuda\": {\"mode\": \"allow\"}}" >/etc/ctr-gpu/config.json
		containerd --address /run/containerd.sock --root "$scratch/containerd" --state /run/containerd-state >"$scratch/containerd.log" 2>&1 &
		soon test -S /run/containerd.sock
		driver
		manager
		engine
		tar -C "$image" -c . | docker import - debian >/dev/null
		id=$(docker run --detach --name held --gpus all -e CTR_GPU_MODE=vcuda -v "$CTR_GPU_BUILD/test/tools/vcuda-hold:/usr/bin/hold:ro" \
			debian sh -c "sleep 300 | hold 4096")
		soon listed ".containers[0].used == 4096"
		kill -KILL "$(</run/docker.pid)"
		sleep 0.5
		rm -f /run/docker.pid
		listed ".containers[0].used == 4096"
		engine
		soon listed ".containers[0].used == 4096"
		[[ $(docker exec held hold </dev/null) == *devices=2* ]]
		docker restart --time 0 held >/dev/null
		soon listed ".containers | length == 1 and .[0].used == 4096"
		[[ $(jq -s "map(select(.event == \"grant\")) | length" "$scratch/audit") == 2 ]]
		docker kill held >/dev/null
		soon listed ".servers == 0 and .containers == []"
		! ls /run/ctr-gpu/vcuda/*
	'
	expect_status 0
}
