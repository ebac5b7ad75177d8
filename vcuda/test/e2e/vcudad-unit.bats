#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# vCUDA's manager as systemd starts it, shut off as its unit says: real systemd, real servers, the simulated driver. What the
# controllers of cgroup version 2 do is seen in a guest (test/kernels/run), unless this machine has them.

load ../../../test/e2e/engines

directory=$BATS_FILE_TMPDIR/systemd
units=$e2e/../../pkg/systemd

inside() {
	"$e2e/systemd-world" run "$directory" "$@" 3>&-
}

setup_file() {
	require_root
	mkdir -p "$directory"
	"$e2e/systemd-world" start "$directory" 2
	inside bash -ec 'mkdir -p /usr/libexec/ctr-gpu /run/driver /run/client
		cp "$0"/bin/ctr-gpu /usr/bin; cp "$0"/bin/ctr-gpu-vcuda{,d,-checkpoint,-turns} /usr/libexec/ctr-gpu
		cp "$0"/vcuda/test/sim/lib{cuda,nvidia-ml}.so.1 /run/driver; printf "GPUS=1\nUUIDS=5a3f1c2b0001000000000000a5c0e3d4\n" >/run/driver/sim.conf
		cp "$0"/lib/vcuda/libcuda.so.1 "$0"/test/real/cuda-add "$0"/test/tools/vcuda-hold "$0"/vcuda/test/holds /run/client
		cp "$1"/ctr-gpu-vcuda{d.*,-*} /usr/lib/systemd/system; rm -rf /etc/ctr-gpu; mknod -m 666 /dev/dxg c 10 183
		mkdir /run/systemd/system/ctr-gpu-vcudad.service.d
		printf "[Service]\nStandardError=append:/run/audit\n" >/run/systemd/system/ctr-gpu-vcudad.service.d/output.conf
		printf "[Unit]\nDefaultDependencies=no\n" | tee /run/systemd/system/ctr-gpu-vcudad.service.d/alone.conf >/dev/null
		mkdir /run/systemd/system/ctr-gpu-vcudad.socket.d
		printf "[Unit]\nDefaultDependencies=no\n" >/run/systemd/system/ctr-gpu-vcudad.socket.d/alone.conf
		systemctl daemon-reload; systemctl start ctr-gpu-vcudad.socket' "$CTR_GPU_BUILD" "$units"
}

teardown_file() {
	"$e2e/systemd-world" stop "$directory"
}

# grant NAME [HOST-MEMORY [PID]]: as the hook asks for it, for that process or one that sleeps; there is no GPU here for a plan
grant() {
	inside bash -c 'pid=$4
		[[ $pid != 0 ]] || { setsid sleep 1000 <&- >&- 2>&- & pid=$!; }
		answer=$("$1/vcuda/test/ask" root=1 id="$2" pid="$pid" gpu=GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4 library=/run/driver/libcuda.so.1 \
			memory=1G host="$3" clients=4 keep=1 </dev/null)
		[[ $answer == granted:*kept ]] || { echo "$answer"; exit 1; }
		echo "$pid"' bash "$CTR_GPU_BUILD" "$1" "${2:-0}" "${3:-0}"
}

# client NAME PROGRAM…: with the socket of that container
client() {
	inside env LD_LIBRARY_PATH=/run/client CTR_GPU_VCUDA_SOCKET="/run/ctr-gpu/vcuda/$1/socket" "${@:2}"
}

@test "systemd has nothing against the units, and the manager is shut off from what it does not need" {
	run inside systemd-analyze verify --man=no /usr/lib/systemd/system/ctr-gpu-vcuda{d.service,d.socket,-suspend.service,-resume.service}
	expect_status 0
	[[ -z $output ]]
	run inside systemd-analyze security --offline=true --threshold=35 /usr/lib/systemd/system/ctr-gpu-vcudad.service
	expect_status 0
	for unit in suspend resume; do
		run inside systemd-analyze security --offline=true --threshold=15 "/usr/lib/systemd/system/ctr-gpu-vcuda-$unit.service"
		expect_status 0
	done
}

@test "whoever asks starts it, and it is root's alone" {
	run inside systemctl is-active ctr-gpu-vcudad.service
	expect_line inactive
	run inside ctr-gpu vcuda list
	expect_status 0
	expect_line "No container has GPUs by vCUDA."
	run inside systemctl is-active ctr-gpu-vcudad.service
	expect_line active
	run inside stat -c '%n %a %U' /run/ctr-gpu /run/ctr-gpu/vcudad.sock /run/ctr-gpu/vcuda
	expect_line "/run/ctr-gpu 700 root"
	expect_line "/run/ctr-gpu/vcudad.sock 600 root"
	expect_line "/run/ctr-gpu/vcuda 700 root"
}

@test "servers work under the unit's restrictions" {
	grant one
	run client one /run/client/cuda-add
	expect_status 0
	expect "GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4"
	expect "1048576 sums are right"
}

@test "turns are decided on under the unit's restrictions, by a user without rights" {
	grant first >/dev/null
	grant second >/dev/null
	run inside bash -c 'for _ in {1..3000}; do
			decider=$(pgrep -x ctr-gpu-vcuda-t) && grep -q "^Seccomp:.2" "/proc/$decider/status" && break; sleep 0.02; done
		grep -E "^(Uid|CapEff|NoNewPrivs|Seccomp):" "/proc/$decider/status"; ctr-gpu vcuda revoke first; ctr-gpu vcuda revoke second'
	expect_status 0
	[[ $output =~ Uid:$'\t'2[0-9]{9} ]]
	expect_line $'CapEff:\t0000000000000000'
	expect_line $'NoNewPrivs:\t1'
	expect_line $'Seccomp:\t2'
	run inside grep -c turns- /run/audit
	expect_line 0
}

# Which any other process of root's may have caused. Without CAP_SYS_RESOURCE the manager would start one decider after the other.
@test "the decider is told of containers while root has more descriptors on their way than the unit's limit" {
	inside python3 -c '
import array, os, socket, time
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
fds = array.array("i", [0] * 250)
for _ in range(20):
    one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
open("/run/on-their-way", "w").close()
end = time.monotonic() + 240
while os.path.exists("/run/on-their-way") and time.monotonic() < end:
    time.sleep(0.05)' &
	inside bash -c 'for _ in {1..3000}; do [[ -e /run/on-their-way ]] && exit; sleep 0.02; done; exit 1'
	grant first >/dev/null
	grant second >/dev/null
	run inside bash -c 'for _ in {1..3000}; do pgrep -x ctr-gpu-vcuda-t >/dev/null && break; sleep 0.02; done
		sleep 1.5; grep -c turns- /run/audit; pid=$(systemctl show -P MainPID ctr-gpu-vcudad.service)
		pgrep -P "$pid" -x ctr-gpu-vcuda-t | wc -l; rm /run/on-their-way; ctr-gpu vcuda revoke first; ctr-gpu vcuda revoke second'
	[[ $output$'\n' == $'0\n1\n'* ]]
	wait
}

@test "a container is suspended and resumed under the unit's restrictions" {
	grant rests >/dev/null
	run inside bash -ec '
		mkfifo /run/asked
		exec 3<>/run/asked
		LD_LIBRARY_PATH=/run/client CTR_GPU_VCUDA_SOCKET=/run/ctr-gpu/vcuda/rests/socket /run/client/holds 4194304 <&3 >/run/answers & holds=$!
		answered() { for _ in {1..3000}; do [[ $(tail -n 1 /run/answers) == "$1"* ]] && return; sleep 0.02; done; cat /run/answers /run/audit; exit 1; }
		answered held
		ctr-gpu vcuda suspend rests
		ctr-gpu vcuda list | grep "state      suspended"
		ctr-gpu vcuda resume rests
		echo check >&3
		answered right
		kill "$holds"; ctr-gpu vcuda revoke rests'
	expect_status 0
}

# What has the machine sleep says what it found instead; the links are those of the package.
@test "before the host sleeps containers are suspended, and resumed afterwards, by systemd and beside NVIDIA's units" {
	local sleep_once

	grant slept >/dev/null
	inside bash -ec '
		units=/run/systemd/system
		mkdir -p "$units"/sleep.target.wants "$units"/systemd-suspend.service.wants "$units"/systemd-suspend.service.d
		while read -r source path; do ln -s "/usr/lib/systemd/system/${source##*/}" "$units/${path#@unitdir@/}"; done \
			< <(awk -F " *[|] *" "\$2 == \"link\" && /sleep.target/ {print \$3, \$4}" "$0/files")
		for unit in vcuda-suspend vcuda-resume; do
			mkdir "$units/ctr-gpu-$unit.service.d"; printf "[Unit]\nDefaultDependencies=no\n" >"$units/ctr-gpu-$unit.service.d/alone.conf"
		done
		cat >/run/say <<-"END"
			#!/bin/sh
			echo "$1: $(ctr-gpu vcuda list --json | jq -r ".containers[] | select(.container == \"slept\").state")" >>/run/slept
		END
		chmod 755 /run/say
		printf "[Service]\nExecStart=\nExecStart=/run/say sleeps\n" >"$units/systemd-suspend.service.d/instead.conf"
		for unit in suspend:Before resume:After; do
			printf "[Unit]\nDefaultDependencies=no\n%s=systemd-suspend.service\n[Service]\nType=oneshot\nExecStart=/run/say %s\n" \
				"${unit#*:}" "${unit%:*}" >"$units/nvidia-${unit%:*}.service"
			ln -s "../nvidia-${unit%:*}.service" "$units/systemd-suspend.service.wants"
		done
		systemctl daemon-reload' "$units/.."
	sleep_once='systemctl start suspend.target; while systemctl list-jobs --no-legend | grep -q .; do sleep 0.1; done; /run/say then'
	run inside bash -c "$sleep_once; cat /run/slept; systemctl is-failed ctr-gpu-vcuda-{suspend,resume}.service"
	[[ $output == "suspend: suspended"$'\n'"sleeps: suspended"$'\n'"resume: suspended"$'\n'"then: running"$'\n'inactive$'\n'inactive ]]
	# A host that does not sleep in the end.
	inside sh -c 'printf "[Service]\nExecStart=\nExecStart=/bin/false\n" >/run/systemd/system/systemd-suspend.service.d/instead.conf; systemctl daemon-reload'
	run inside bash -c "$sleep_once; tail -n 1 /run/slept; tail -n 4 /run/audit | jq -r .event; ctr-gpu vcuda revoke slept"
	expect_line "then: running"
	expect_line wake
}

@test "a restart and a stop of the manager leave programs alone" {
	grant two
	inside bash -c 'mkfifo /run/more && (exec 4<>/run/more; LD_LIBRARY_PATH=/run/client CTR_GPU_VCUDA_SOCKET=/run/ctr-gpu/vcuda/two/socket \
		/run/client/vcuda-hold 4096 <&4 >/run/held 2>&1 &) ; for i in {1..600}; do grep -q ready /run/held && exit; sleep 0.1; done; cat /run/held; exit 1'
	inside systemctl restart ctr-gpu-vcudad.service
	run inside sh -c 'ctr-gpu vcuda list --json | jq ".containers[] | select(.container == \"two\") | .clients, .used"'
	expect_line 1
	expect_line 4096
	# What it tells is still heard.
	inside bash -c 'echo 2147483648 >/run/more; for _ in {1..3000}; do grep -q "\"event\":\"quota\",\"container\":\"two\"" /run/audit && exit; sleep 0.02; done
		cat /run/audit; exit 1'
	inside systemctl stop ctr-gpu-vcudad.service
	inside bash -c 'echo 8192 >/run/more; for _ in {1..3000}; do grep -q "^8192: " /run/held && exit; sleep 0.02; done; exit 1'
	run inside cat /run/held
	expect_line "8192: 0"
	run inside sh -c 'ctr-gpu vcuda list --json | jq ".containers[] | select(.container == \"two\") | .used"'
	expect_line 12288
	inside ctr-gpu vcuda revoke two
	run inside bash -c 'for _ in {1..3000}; do pgrep -x ctr-gpu-vcuda >/dev/null || break; sleep 0.02; done; pgrep -c -x ctr-gpu-vcuda; tail -n 1 /run/audit'
	expect_line 0
	expect '"event":"end","container":"two","why":"revoked"'
}

# The GPU of a simulated host: systemd mounts a /proc of its own for the unit, which has what a driver of the kernel has there.
native_host() {
	inside bash -ec '"$0"/../test/hosts/enter native-nvidia -- bash -ec "mkdir -p /run/host/dev; cp -a /proc/driver /proc/devices /run/host
			cp -a /sys/bus/pci/devices /run/host/pci; cp -a /dev/nvidia* /run/host/dev"
		cp -a /run/host/dev/. /dev
		for name in driver devices; do mount --bind "/run/host/$name" "/proc/$name"; done
		mount --bind /run/host/pci /sys/bus/pci/devices
		printf "[Service]\nBindReadOnlyPaths=/run/host/driver:/proc/driver /run/host/devices:/proc/devices\n" \
			>/run/systemd/system/ctr-gpu-vcudad.service.d/host.conf
		libraries=(/usr/lib/*-linux-gnu)
		for name in cuda nvidia-ml; do
			cp "$0/vcuda/test/sim/lib$name.so.1" "${libraries[0]}/lib$name.so.580.159.04"
			ln -sf "lib$name.so.580.159.04" "${libraries[0]}/lib$name.so.1"
		done
		printf "GPUS=1\nUUIDS=%s\n" "$1" >"${libraries[0]}/sim.conf"
		ldconfig; cp "$0"/bin/ctr-gpu-driverd /usr/libexec/ctr-gpu; cp "$0"/vcuda/test/ask /run/client; mkdir -p /etc/ctr-gpu' \
		"$CTR_GPU_BUILD" b703df58227335fb29be3f6c49b83a95
}

# user UNSHARE-OPTIONS ASK-ARGUMENTS…: what a user's hook asks for, of a container with these namespaces, and a program in that
user() {
	inside setpriv --reuid 54321 --regid 54321 --clear-groups unshare --user --map-root-user "$1" bash -c '
		/run/client/ask pid=$$ gpu=GPU-b703df58-2273-35fb-29be-3f6c49b83a95 keep=1 "$@" </dev/null
		LD_LIBRARY_PATH=/run/client CTR_GPU_VCUDA_SOCKET=/run/ctr-gpu-vcuda/54321/54321+${1#id=}/socket /run/client/cuda-add' bash "${@:2}"
}

@test "a user without root gets a GPU under the unit's restrictions, for a process with files of its own" {
	native_host
	inside bash -ec 'echo "{\"vcuda\": {\"mode\": \"allow\", \"users\": [{\"uid\": 54321, \"memory\": \"1G\"}]}}" >/etc/ctr-gpu/config.json
		systemctl daemon-reload; systemctl restart ctr-gpu-vcudad.service
		for _ in {1..3000}; do [[ -S /run/ctr-gpu-vcuda/socket ]] && exit; sleep 0.02; done; cat /run/audit; exit 1'
	run inside bash -c 'users=$(pgrep -x vcudad-users) && grep -E "^(NoNewPrivs|Seccomp|CapBnd):" "/proc/$users/status"'
	expect_status 0
	expect_line $'NoNewPrivs:\t1'
	expect_line $'Seccomp:\t2'
	run user --mount id=one
	expect_status 0
	expect_line "granted: /run/ctr-gpu-vcuda/54321/54321+one"
	expect_line kept
	expect "GPU-b703df58-2273-35fb-29be-3f6c49b83a95: Simulated GPU 0: 1048576 sums are right"
	# systemd gives the manager other files than the host's, and these are still the host's.
	run user --ipc id=two
	expect "is not the first one of a container of uid 54321, for which a grant lasts"
	expect_not granted
	# The last one is gone, the next one answers.
	inside systemctl restart ctr-gpu-vcudad.service
	inside bash -ec 'for _ in {1..3000}; do [[ $(pgrep -c -x vcudad-users) == 1 ]] && exit; sleep 0.02; done; exit 1'
	run user --mount id=three
	expect_status 0
	inside bash -ec 'rm /etc/ctr-gpu/config.json; systemctl restart ctr-gpu-vcudad.service
		for _ in {1..3000}; do [[ -e /run/ctr-gpu-vcuda/socket ]] || exit 0; sleep 0.02; done; exit 1'
}

# ---- what servers have of the host ----

group=/sys/fs/cgroup/system.slice/ctr-gpu-vcudad.service

has_controllers() {
	[[ " $(inside cat /sys/fs/cgroup/cgroup.controllers) " == *" memory "* ]]
}

# hold NAME AMOUNT…: a program of that container which takes these amounts, and what comes from /run/more-TAG, in the background
hold() {
	local tag=$1
	shift

	inside bash -c 'tag=$1; shift; rm -f /run/more-$tag; mkfifo /run/more-$tag; (exec 4<>/run/more-$tag
		LD_LIBRARY_PATH=/run/client CTR_GPU_VCUDA_SOCKET=/run/ctr-gpu/vcuda/${tag%-*}/socket /run/client/vcuda-hold "$@" \
			<&4 >/run/held-$tag 2>&1 &)
		for i in {1..1500}; do grep -q ready /run/held-$tag && exit; sleep 0.1; done; cat /run/held-$tag; exit 1' hold "$tag" "$@"
}

# more TAG AMOUNT: prints what that program got then
more() {
	inside bash -c 'echo "$2" >/run/more-$1; for i in {1..1500}; do grep "^$2: " /run/held-$1 && exit; sleep 0.1; done; exit 1' more "$@"
}

listed() {
	inside ctr-gpu vcuda list --json | jq -e "$1" >/dev/null
}

audited() {
	inside cat /run/audit | jq -es "map(select($1)) | length > 0" >/dev/null
}

@test "a host without the controllers: the audit and the list say that servers have no limit" {
	! has_controllers || skip "this host has them"
	grant free
	audited '.event == "unlimited" and (.why | test("no controllers for memory and tasks"))'
	listed '.containers[] | select(.container == "free") | .hostMemory == null'
	run inside ctr-gpu vcuda list
	expect "host       no limit for its servers: the manager's control group of version 2 has no controllers for memory and tasks"
	run inside ctr-gpu vcuda limit free --host-memory=1G
	expect_status 1
	expect "no controllers for memory and tasks"
	inside ctr-gpu vcuda revoke free
}

# bats test_tags=kernel
@test "servers of a container have so much of the host's memory together, and no other container's are ended for it" {
	has_controllers || skip "this kernel has no controller of version 2 for memory"
	grant small $((128 << 20))
	grant other
	run inside bash -c 'cat "$1"/cgroup.subtree_control "$1"/container-small/{memory.max,memory.swap.max,pids.max}; cat "$1"/cgroup.procs' \
		cat "$group"
	expect_status 0
	[[ $output == cpu*memory*pids*$'\n'134217728$'\n'0$'\n'4096 ]]
	hold other f1048576
	hold small-one f62914560
	hold small-two 4096
	listed '.containers[] | select(.container == "small") | .hostMemory == 134217728 and .hostUsed > 62914560'
	# Of page-locked memory the half, by an error of the driver's.
	run more small-two h83886080
	expect_line "h83886080: 2"
	[[ $(inside wc -l <"$group/container-small/cgroup.procs") == 2 ]]
	# The other half is too much: the kernel ends the larger one.
	more small-two f73400320
	for _ in {1..1500}; do
		! audited '.event == "out-of-memory" and .container == "small" and .hostMemory == 134217728' || break
		sleep 0.1
	done
	audited '.event == "out-of-memory" and .container == "small"'
	run more other f2097152
	expect_line "f2097152: 0"
	# A limit that is raised.
	inside ctr-gpu vcuda limit small --host-memory=512M
	hold small-three f209715200
	run inside cat /run/held-small-three
	expect_line "f209715200: 0"
}

# becomes LIMIT: of the servers of the container few
becomes() {
	local found

	for _ in {1..1500}; do
		found=$(inside cat "$group/container-few/cpu.max" 2>/dev/null) || true
		[[ $found != "$1" ]] || return 0
		sleep 0.1
	done
	echo "$found"
	return 1
}

# bats test_tags=kernel
@test "servers of a container have together as much of the processors as the container may have" {
	has_controllers || skip "this kernel has no controller of version 2 for memory"
	inside systemd-run --quiet --slice=few.slice --unit=few -p CPUQuota=40% -p Delegate=yes sh -c \
		'cd /sys/fs/cgroup/few.slice/few.service && mkdir inner && echo 0 >inner/cgroup.procs && exec sleep 1000'
	for _ in {1..1500}; do
		! inside grep -q . "/sys/fs/cgroup/few.slice/few.service/inner/cgroup.procs" || break
		sleep 0.1
	done
	grant free
	grant few 0 "$(inside cat /sys/fs/cgroup/few.slice/few.service/inner/cgroup.procs)"
	[[ $(inside cat "$group"/container-{few,free}/cpu.max) == "40000 100000"$'\n'"max 100000" ]]
	audited '.event == "grant" and .container == "few" and .processors == 0.4'
	audited '.event == "grant" and .container == "free" and .processors == null'
	listed '[.containers[] | select(.container == "few" or .container == "free") | .processors] | sort == [null, 0.4]'
	run client few /run/client/cuda-add
	expect_status 0
	expect "1048576 sums are right"
	[[ $(inside awk '$1 == "nr_throttled" {print $2}' "$group/container-few/cpu.stat") -gt 0 ]]
	# As docker update does it; by systemd's slice; while no manager runs; and when others have ended.
	inside systemctl set-property --runtime few.service CPUQuota=250%
	becomes "250000 100000"
	inside systemctl set-property --runtime few.slice CPUQuota=150%
	becomes "150000 100000"
	inside systemctl stop ctr-gpu-vcudad.service
	inside systemctl set-property --runtime few.slice CPUQuota=120%
	inside systemctl start ctr-gpu-vcudad.service
	becomes "120000 100000"
	inside ctr-gpu vcuda revoke free
	inside systemctl set-property --runtime few.slice CPUQuota=
	becomes "250000 100000"
	inside systemctl stop few.service
}

# bats test_tags=kernel
@test "a restart of the manager keeps limits, and groups of containers end with them" {
	has_controllers || skip "this kernel has no controller of version 2 for memory"
	grant kept $((96 << 20))
	hold kept 4096
	inside systemctl restart ctr-gpu-vcudad.service
	listed '.containers[] | select(.container == "kept") | .hostMemory == 100663296 and .clients == 1'
	run inside cat "$group"/container-kept/{memory.max,memory.swap.max,pids.max}
	[[ $output == 100663296$'\n'0$'\n'4096 ]]
	[[ $(inside cat "$group/container-kept/cgroup.procs" | wc -l) == 1 ]]
	# With its keeper and its deciders, if there are any.
	inside grep -qx "$(inside systemctl show --property=MainPID --value ctr-gpu-vcudad.service)" "$group/manager/cgroup.procs"
	run more kept f157286400
	expect_no_line "f157286400: 0"
	for _ in {1..1500}; do
		! listed '.containers[] | select(.container == "kept") | .clients == 0' || break
		sleep 0.1
	done
	audited '.event == "out-of-memory" and .container == "kept"'
	inside ctr-gpu vcuda revoke kept
	for _ in {1..1500}; do
		inside test -e "$group/container-kept" || break
		sleep 0.1
	done
	run inside test -e "$group/container-kept"
	expect_status 1
}
