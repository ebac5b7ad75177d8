#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# vCUDA's manager with real containers of runc, whose servers and clients are tools/vcuda-standin.c: what it grants, counts,
# ends, and takes over when it is started again. vcuda.bats has real servers.

bats_require_minimum_version 1.5.0
load ../../../test/e2e/engines

setup_file() {
	local root=$BATS_FILE_TMPDIR/root

	require_root
	require_program runc
	image debian >/dev/null
	# The manager starts the server beside it.
	mkdir -p "$root/bin" "$root/lib/vcuda"
	cp "$CTR_GPU_BUILD"/bin/ctr-gpu{,-hook,-driverd,-vcudad,-vcuda-checkpoint,-vcuda-turns} "$root/bin/"
	cp "$CTR_GPU_BUILD/test/tools/vcuda-standin" "$root/bin/ctr-gpu-vcuda"
	cp "$CTR_GPU_BUILD/lib/libctr-gpu.so.0" "$root/lib/vcuda/libcuda.so.1"
	ln -s ctr-gpu-hook "$root/bin/ctr-gpu-runtime"
	chmod -R go+rX "$BATS_FILE_TMPDIR"
}

# ---- on the simulated host ----

# manager [ARGUMENT…]: starts one, and waits until it answers
manager() {
	"$root/bin/ctr-gpu-vcudad" "$@" 2>>"$scratch/audit" &
	# shellcheck disable=SC2034 # for the tests' scripts
	manager=$!
	until "$root/bin/ctr-gpu" vcuda list >/dev/null 2>&1; do sleep 0.02; done
}

# container NAME SCRIPT [VARIABLE…]: one whose program is a shell's, in the background; what it prints is in NAME.out
container() {
	local name=$1 script=$2
	shift 2

	jq --arg script "$script" --arg name "$CTR_GPU_TEST_CGROUP/$name" '.process.args = ["/bin/sh", "-c", $script]
		| .linux.cgroupsPath = $name | .process.env += $ARGS.positional' "$scratch/bundle/config.json" --args -- "$@" \
		>"$scratch/config-$name.json" || return
	rm -rf "${scratch:?}/$name" && mkdir -p "$scratch/$name" && cp "$scratch/config-$name.json" "$scratch/$name/config.json" || return
	sed -i "s,\"path\": \"rootfs\",\"path\": \"$scratch/bundle/rootfs\"," "$scratch/$name/config.json"
	(cd "$scratch/$name" && exec memlock runc --root /run/runtime run "$name") >"$scratch/$name.out" 2>&1 </dev/null &
}

# vcuda ARGUMENT…
vcuda() {
	"$root/bin/ctr-gpu" vcuda "$@"
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
	grep -q -- "$2" "$scratch/$1.out"
}

audited() {
	jq -es --arg event "$1" "map(select(.event == \$event)) | length > 0 and any(${2:-true})" "$scratch/audit" >/dev/null
}

listed() {
	vcuda list --json | jq -e "$1" >/dev/null
}

gone() {
	[[ ! -e /run/ctr-gpu/vcuda/$1 ]]
}

# on_host SCRIPT: with these functions, where vCUDA is allowed and a bundle is ready
on_host() {
	local root=$BATS_FILE_TMPDIR/root scratch=$BATS_TEST_TMPDIR
	local settings='{"vcuda": {"mode": "allow", "memory": "1G", "max_clients": 3}}'

	bundle debian "$scratch/bundle" ".hooks.prestart[0].path = \"$root/bin/ctr-gpu-hook\"
		| .process.env = [\"PATH=/usr/bin\", \"NVIDIA_VISIBLE_DEVICES=${devices:-all}\", \"CTR_GPU_MODE=vcuda\"]
		| .mounts += [{destination: \"/usr/bin/client\", type: \"bind\", source: \"$CTR_GPU_BUILD/test/tools/vcuda-standin\",
			options: [\"bind\", \"ro\"]}]"
	export root scratch
	export -f manager container vcuda soon said audited listed gone
	run sandbox wsl-two-nvidia timeout --kill-after=1 240 bash -euc '
		mkdir -p /etc/ctr-gpu
		echo "$0" >/etc/ctr-gpu/config.json
		trap '\''jobs=$?; [[ $jobs == 0 ]] || { cat "$scratch"/*.out "$scratch/audit"; }'\'' EXIT
		'"$1" "$settings"
	expect_status 0
}

# ---- what it does ----

@test "a container has a socket and no device; the server is a user of its own, with the container's GPUs and quota" {
	on_host '
		manager
		container one "ls /dev/dxg; ls -l /run/ctr-gpu/vcuda; ls /usr/lib/ctr-gpu/vcuda; client /run/ctr-gpu/vcuda/socket descriptors rights environment"
		soon said one "variables="
		grep -qx "server pid=[0-9]* slot=0 uid=21[0-4][0-9]* limit=1073741824 gpus=5a3f1c2b,7b10aa04" "$scratch/one.out"
		grep -q "No such file or directory" "$scratch/one.out"
		grep -qx "libcuda.so.1" "$scratch/one.out"
		grep -qx "highest=9" "$scratch/one.out"
		grep -qx "variables=CUDA_MPS_PIPE_DIRECTORY=/nonexistent CUDA_CACHE_DISABLE=1" "$scratch/one.out"
		grep -qE "^uid=(21[0-4][0-9]+) gid=\\1 groups=0 gain=0$" "$scratch/one.out"
		[[ $(stat -c %a /run/ctr-gpu/vcuda) == 700 && $(stat -c %a /run/ctr-gpu/vcudad.sock) == 600 ]]
		wait "$!"
		soon gone one
		audited grant ".container == \"one\" and .memory == 1073741824"
		audited connect
		audited end ".why == \"container ended\""
		soon listed ".containers == []"
	'
}

@test "a container that was given the second GPU finds that and no other" {
	devices=1 on_host '
		manager
		container one "client"
		soon said one "gpus="
		grep -qx "server .* gpus=7b10aa04" "$scratch/one.out"
	'
}

@test "two containers have different users, and the second begins on the GPU that has less to do" {
	on_host '
		manager
		container one "client; sleep 300"
		soon said one gpus=
		container two "client; sleep 300"
		soon said two gpus=
		grep -q "gpus=5a3f1c2b,7b10aa04" "$scratch/one.out"
		grep -q "gpus=7b10aa04,5a3f1c2b" "$scratch/two.out"
		[[ $(grep -ho "uid=21[0-9]*" "$scratch/one.out" "$scratch/two.out" | sort -u | wc -l) == 2 ]]
	'
}

@test "clients above the limit are refused and counted, and one that ends makes room" {
	on_host '
		manager
		container one "client /run/ctr-gpu/vcuda/socket <>/dev/zero >/dev/null & for i in 1 2 3 4 5; do sleep 300 | client & sleep 0.1; done; wait"
		soon said one closed
		soon listed ".containers[0] | .clients == 3 and .denied == 3 and .maxClients == 3"
		audited deny ".maxClients == 3"
		vcuda limit one --max-clients=4
		listed ".containers[0].maxClients == 4"
	'
}

@test "what a server has of the quota is listed, and given back however it ends" {
	on_host '
		manager
		container one "client /run/ctr-gpu/vcuda/socket take=4096 </dev/null; echo ended; sleep 300 | client /run/ctr-gpu/vcuda/socket take=8192 take=8192"
		soon said one ended
		soon listed ".containers[0].used == 16384 and .containers[0].clients == 1"
		server=$(sed -n "s/^server pid=\([0-9]*\) .*/\1/p" "$scratch/one.out" | tail -n 1)
		kill -KILL "$server"
		soon listed ".containers[0].used == 0 and .containers[0].clients == 0 and .containers[0].crashes == 1"
		audited crash ".signal == 9"
		vcuda limit one --memory=2G
		listed ".containers[0].memory == 2147483648"
	'
}

@test "a page of metrics is served to root, whoever else asks slowly or for nonsense, and replaces no file" {
	on_host '
		echo kept >"$scratch/file"
		"$root/bin/ctr-gpu-vcudad" --metrics="$scratch/file" 2>&1 | grep "$scratch/file: Address already in use"
		[[ $(cat "$scratch/file") == kept ]]
		"$root/bin/ctr-gpu-vcudad" --metrics=relative 2>&1 | grep "it takes an absolute path"
		manager --metrics=/run/metrics
		kill -KILL "$manager"; wait "$manager" || true
		manager --metrics=/run/metrics
		[[ $(stat -c %a /run/metrics) == 600 ]]
		page() { curl --silent --max-time 8 --unix-socket /run/metrics http://localhost/metrics | sed -n "s/^ctr_gpu_vcuda_//p"; }
		has() { page | grep -qxF -- "$1"; }
		container one "sleep 300 | client /run/ctr-gpu/vcuda/socket take=4096 & client /run/ctr-gpu/vcuda/socket refused busy=1500000000 </dev/null
			client /run/ctr-gpu/vcuda/socket busy=250000000 crash; sleep 300"
		soon audited crash
		soon listed ".containers[0].used == 4096"
		vcuda limit one --max-clients=1
		(cd / && runc --root /run/runtime exec one client /run/ctr-gpu/vcuda/socket </dev/null) || true
		page >"$scratch/page.out"
		for line in "servers 1" "memory_used_bytes{container=\"one\"} 4096" "memory_limit_bytes{container=\"one\"} 1073741824" \
			"processes{container=\"one\"} 1" "suspended{container=\"one\"} 0" "share{container=\"one\"} 100" \
			"connections_total{container=\"one\"} 3" "refused_connections_total{container=\"one\"} 1" \
			"refused_functions_total{container=\"one\"} 1" "crashes_total{container=\"one\"} 1" \
			"gpu_time_seconds_total{container=\"one\",gpu=\"GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4\"} 1.75" \
			"gpu_time_seconds_total{container=\"one\",gpu=\"GPU-7b10aa04-0041-0000-0000-000084ef55fb\"} 0"; do
			soon has "$line"
		done
		[[ $(curl --silent --unix-socket /run/metrics http://localhost/other) == "The page is /metrics." ]]
		# A client may close its side for writing when it has asked (nc -N).
		/usr/bin/python3 -c "
import socket
peer = socket.socket(socket.AF_UNIX)
peer.connect(\"/run/metrics\")
peer.send(b\"GET /metrics HTTP/1.1\\r\\n\\r\\n\")
peer.shutdown(socket.SHUT_WR)
print(peer.makefile().readline(), end=\"\")" | grep "200 OK"
		# Who does not read, or says nothing, is not waited for, and keeps no other from the page.
		/usr/bin/python3 -c "
import socket, time
for i in range(12):
    time.sleep(0.05)
    peer = socket.socket(socket.AF_UNIX)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    peer.connect(\"/run/metrics\")
    try:
        peer.send(b\"GET /metrics HTTP/1.1\\r\\n\\r\\n\" if i % 2 else b\"GET\")
    except OSError:
        pass
    globals()[\"peer%d\" % i] = peer
open(\"/run/sent\", \"w\")
time.sleep(300)" & crowd=$!
		soon test -e /run/sent
		for i in 1 2 3; do
			timeout 4 "$root/bin/ctr-gpu" vcuda list >/dev/null
			has "processes{container=\"one\"} 1"
		done
		kill "$crowd"
	'
}

@test "a server that crashes is written down with its signal, and harms no other" {
	on_host '
		manager
		container one "sleep 300 | client & sleep 0.2; client /run/ctr-gpu/vcuda/socket crash; client /run/ctr-gpu/vcuda/socket refused </dev/null; sleep 300"
		soon said one done
		soon audited crash ".signal == 11 and .container == \"one\""
		soon audited refused ".what == \"cuIpcGetMemHandle\""
		soon listed ".containers[0].clients == 1"
	'
}

@test "what a server tells is no line of the audit of its own, and no flood" {
	on_host '
		manager
		container one "client /run/ctr-gpu/vcuda/socket forge </dev/null; client /run/ctr-gpu/vcuda/socket flood </dev/null; echo end; sleep 300"
		soon said one end
		soon listed ".containers[0].clients == 0"
		jq -es "all(.time and .event)" "$scratch/audit"
		[[ $(grep -c "\"event\":\"grant\"" "$scratch/audit") == 1 ]]
		[[ $(grep -c hidden-table "$scratch/audit") == 256 ]]
	'
}

@test "a container that ends takes everything with it, and a server that does not end is killed" {
	on_host '
		manager
		container one "sleep 300 | client & sleep 300 | client /run/ctr-gpu/vcuda/socket stay & sleep 300"
		soon said one done
		runc --root /run/runtime kill one KILL
		soon gone one
		soon listed ".containers == []"
		soon listed ".servers == 0"
		audited kill
		[[ -z $(pgrep -f "^ctr-gpu-vcuda$") ]]
	'
}

@test "revoked: the socket is gone, its servers end, the container goes on" {
	on_host '
		manager
		container one "sleep 300 | client; client; echo after; sleep 300"
		soon said one gpus=
		vcuda revoke one
		gone one
		soon listed ".servers == 0"
		pkill -x sleep || true
		soon said one after
		grep -q "No such file or directory" "$scratch/one.out"
		vcuda revoke one && exit 1
		audited end ".why == \"revoked\""
	'
}

@test "a manager that is started again takes over containers, servers and what they have" {
	on_host '
		manager
		container one "sleep 300 | client /run/ctr-gpu/vcuda/socket take=4096 & sleep 300 | client /run/ctr-gpu/vcuda/socket take=4096 & until [ -e /tmp/more ]; do sleep 0.1; done; client; sleep 300"
		soon listed "[.containers[] | select(.container == \"one\")][0].used == 8192"
		container two "echo begun; until [ -e /tmp/end ]; do sleep 0.1; done"
		two=$!
		soon said two begun
		kill -KILL "$manager"; wait "$manager" || true
		touch "$scratch/bundle/rootfs/tmp/end"
		wait "$two"
		manager
		soon listed ".containers | length == 1"
		listed ".containers[0] | .container == \"one\" and .used == 8192 and .clients == 2 and .memory == 1073741824"
		gone two
		audited adopt ".clients == 2"
		touch "$scratch/bundle/rootfs/tmp/more"
		soon said one "slot=2 uid=$(vcuda list --json | jq ".containers[0].uid")"
		runc --root /run/runtime kill one KILL
		soon gone one
		soon listed ".servers == 0"
	'
}

@test "a manager that was killed: what ended meanwhile is given back, what it had no time to write down is ended" {
	on_host '
		manager
		container one "sleep 301 | client /run/ctr-gpu/vcuda/socket take=4096 & until [ -e /tmp/second ]; do sleep 0.1; done
			sleep 302 | client /run/ctr-gpu/vcuda/socket take=8192 & until [ -e /tmp/third ]; do sleep 0.1; done
			sleep 303 | client /run/ctr-gpu/vcuda/socket take=16384 & sleep 300"
		soon listed ".containers[0].used == 4096"
		touch "$scratch/bundle/rootfs/tmp/second"
		soon listed ".containers[0].used == 12288"
		touch "$scratch/bundle/rootfs/tmp/third"
		soon listed ".containers[0].used == 28672"
		kill -KILL "$manager"; wait "$manager" || true
		pkill -KILL -f "^sleep 301"
		soon eval "[[ \$(pgrep -c -f ^ctr-gpu-vcuda\$) == 2 ]]"
		jq -c "del(.containers[0].servers[] | select(.slot == 1))" /run/ctr-gpu/vcudad.json >"$scratch/ledger"
		cat "$scratch/ledger" >/run/ctr-gpu/vcudad.json
		manager
		soon listed ".containers[0] | .used == 16384 and .clients == 1"
		soon eval "[[ \$(pgrep -c -f ^ctr-gpu-vcuda\$) == 1 ]]"
		audited sweep ".servers == 1"
	'
}

@test "what could not be written down for a while is, once it can be" {
	on_host '
		manager
		mkdir /run/ctr-gpu/vcudad.json.new
		container one "client; sleep 300"
		soon audited ledger-not-written
		sleep 1.5
		[[ $(grep -c ledger-not-written "$scratch/audit") == 1 ]]
		rmdir /run/ctr-gpu/vcudad.json.new
		soon grep -q "\"id\":\"one\"" /run/ctr-gpu/vcudad.json
	'
}

@test "a server that outlives its client is killed by a manager that was started again, too" {
	on_host '
		manager
		container one "sleep 301 | client /run/ctr-gpu/vcuda/socket stay & sleep 300"
		soon said one done
		kill -KILL "$manager"; wait "$manager" || true
		pkill -KILL -f "^client /run"
		manager
		listed ".servers == 1"
		soon listed ".servers == 0 and (.containers | length == 1)"
		audited kill
	'
}

@test "a container is named by how its name begins, and two of one name are not confused" {
	on_host '
		manager
		container 4f2a90 "client; sleep 300"
		soon said 4f2a90 gpus= # one after the other, since both runtimes make the places of mounts in one root
		container 4f2b17 "client; sleep 300"
		soon said 4f2b17 gpus=
		vcuda limit 4f2a --memory=2G --max-clients=1
		listed "[.containers[] | select(.memory == 2147483648)] | length == 1 and .[0].container == \"4f2a90\""
		vcuda revoke 4f2 2>"$scratch/error" && exit 1
		grep -q "several containers" "$scratch/error"
		vcuda limit "" --memory=1G && exit 1
		mkdir "$scratch/again"
		sed "s,$CTR_GPU_TEST_CGROUP/4f2a90,$CTR_GPU_TEST_CGROUP/again," "$scratch/4f2a90/config.json" >"$scratch/again/config.json"
		(cd "$scratch/again" && memlock runc --root /run/other run 4f2a90 >"$scratch/again.out" 2>&1 </dev/null) && exit 1
		said again "another container of its name, which still runs"
		listed ".containers | length == 2"
		vcuda revoke 4f2a
		listed ".containers | length == 1"
	'
}

@test "vcuda audit shows what happened to all containers or to one, from the manager's file or systemd's journal" {
	on_host '
		manager
		container one "client; sleep 300"
		soon said one gpus=
		container two "client; sleep 300"
		soon said two gpus=
		vcuda revoke one
		soon audited end
		mount -t tmpfs tmpfs /var/log
		vcuda audit 2>"$scratch/error" && exit 1
		grep -q "cannot read the audit /var/log/ctr-gpu-vcudad.log: No such file" "$scratch/error"
		{ echo "[warning] a line that is no JSON"; cat "$scratch/audit"; echo "{\"event\":\"\\u001b[31m\",\"container\":\"two\"}"; } >/var/log/ctr-gpu-vcudad.log
		vcuda audit >"$scratch/of-all"
		grep -E "^[0-9T:Z-]{20}  end +one" "$scratch/of-all"
		grep -E "^[0-9T:Z-]{20}  grant +two +.*gpus=" "$scratch/of-all"
		grep -q -e warning -e "$(printf "\\033")" "$scratch/of-all" && exit 1
		vcuda audit tw >"$scratch/of-two"
		grep -q "  grant  " "$scratch/of-two"
		grep -q "  one" "$scratch/of-two" && exit 1
		vcuda audit one --json | jq -e "[.events[] | .event] | index(\"grant\") < index(\"end\")"
		vcuda audit one two 2>"$scratch/error" && exit 1
		# Of a log that is longer than is read, the last part.
		{ echo "{\"event\":\"long-ago\",\"container\":\"one\"}"; head -c 17000000 /dev/zero | tr "\0" x; echo; cat "$scratch/audit"; } >/var/log/ctr-gpu-vcudad.log
		vcuda audit >"$scratch/of-all"
		grep -E "  end +one" "$scratch/of-all"
		grep -q long-ago "$scratch/of-all" && exit 1
		mkdir -p /run/systemd/system
		cp "$scratch/audit" /var/log/journal
		rm /var/log/ctr-gpu-vcudad.log
		printf "#!/bin/sh\necho \"-- Boot --\"; cat /var/log/journal\n" >"$scratch/journalctl"
		chmod 755 "$scratch/journalctl"
		[[ -e /usr/bin/journalctl ]] || : >/usr/bin/journalctl
		mount --bind "$scratch/journalctl" /usr/bin/journalctl
		vcuda audit one | grep -E "  end +one"
		printf "#!/bin/sh\nexit 1\n" >"$scratch/journalctl"
		vcuda audit 2>"$scratch/error" && exit 1
		grep -q "journalctl does not show the audit" "$scratch/error"
	'
}

@test "an id that is longer than the manager takes is not taken for a manager that does not answer" {
	on_host '
		manager
		long=$(printf "a%.0s" {1..129})
		container "$long" "echo started"
		wait "$!" || true
		said "$long" "an id of at most 128 characters"
		vcuda revoke "$long" 2>"$scratch/error" && exit 1
		grep -q "no container has GPUs by vCUDA whose id is so long" "$scratch/error"
		container "${long:1}" "client; sleep 300"
		soon said "${long:1}" gpus=
		vcuda revoke "${long:1}"
	'
}

@test "without a manager a start fails and says how to start it; with one, a start that fails leaves nothing" {
	on_host '
		container one "echo started"
		wait "$!" || true
		said one "ctr-gpu-vcudad does not run"
		said one "systemctl enable --now ctr-gpu-vcudad"
		said one "^started" && exit 1
		manager
		jq ".mounts += [{destination: \"/etc\", type: \"tmpfs\", source: \"tmpfs\", options: [\"ro\"]}]" "$scratch/bundle/config.json" >"$scratch/new"
		mv "$scratch/new" "$scratch/bundle/config.json"
		container broken "echo started"
		wait "$!" || true
		soon gone broken
		soon listed ".containers == []"
	'
}

# A manager of which only the answer is real: on this host the real one may not limit what it tells here.
@test "the list says what servers may have of the host and what they are not built for, and a limit that cannot be set, why not" {
	on_host '
		mkdir -p /run/ctr-gpu
		python3 -c "
import socket, struct
def text(value):
    return struct.pack(\">I\", len(value)) + value + bytes(-len(value) % 4)
def grant(name, processors):
    return (text(name) + struct.pack(\">iIII\", 7, 0, 2100000001, 1) + text(b\"GPU-1\") + text(b\"\") + text(b\"One\") +
        struct.pack(\">I\", 1) + text(b\"GPU-2\") + struct.pack(\">QQIIIIQIQQQIQd\", 2 << 30, 4 << 30, 16, 600, 300, 60, 1 << 30, 1, 3, 2, 1, 1, 3 << 30, processors) +
        text(b\"waiting\") + struct.pack(\">II\", 0, 500) + text(b\"no room\") + struct.pack(\">I\", 3))
list = struct.pack(\">I\", 2) + grant(b\"few\", 1.5) + grant(b\"free\", 0) + struct.pack(\">II\", 1, 256) + text(b\"\") + struct.pack(\">II\", 1, 1) + (
    struct.pack(\">I\", 1) + text(b\"GPU-2\") + text(b\"Two\") + struct.pack(\">I\", 1) + text(b\"Xid 79\") + struct.pack(\">q\", 1767323045)) + struct.pack(\">I\", 1) + text(b\"GPU-3\")
refused = struct.pack(\">i\", 95) + text(b\"this host uses cgroup version 1\")
s = socket.socket(socket.AF_UNIX)
s.bind(\"/run/ctr-gpu/vcudad.sock\")
s.listen()
open(\"/run/listens\", \"w\").close()
for answer in (list, list, refused):
    c = s.accept()[0]
    size = struct.unpack(\">I\", c.recv(4, socket.MSG_WAITALL))[0] & 0x7fffffff
    xid = c.recv(size, socket.MSG_WAITALL)[:4]
    answer = xid + struct.pack(\">5I\", 1, 0, 0, 0, 0) + answer
    c.sendall(struct.pack(\">I\", 0x80000000 | len(answer)) + answer)
" & until [[ -e /run/listens ]]; do sleep 0.02; done
		vcuda list | tee "$scratch/list.out"
		said list "^    host       3.0 GiB in use of 4.0 GiB, by its servers$"
		said list "^    state      suspended, waits for memory of its GPUs$"
		said list "^    idle       suspended when it has rested for 600 s$"
		said list "^    balance    moved when its GPU has had more work than others for 60 s$"
		said list "^               was moved; stays for 500 s$"
		said list "^    share      300 of its GPUs. time, where others want it, too$"
		said list "^    trouble    no room$"
		said list "^    slot       2 of its GPU$"
		said list "^    processors 1.5 at most, for its servers$"
		said list "^    processors no limit for its servers$"
		said list "^GPU-2 Two$"
		said list "^               on GPU-2, to which it was moved$"
		said list "^drained: GPU-3, on which no container begins$"
		said list "^    lost since 2026-01-02T03:04:05Z: Xid 79$"
		said list "^driver API only: programs with NVIDIA.s CUDA runtime do not run by this build$"
		said list "^all are suspended, and those that come, until ctr-gpu vcuda resume --all$"
		listed "[.containers[].processors] == [1.5, null] and .containers[0].slot == 2 and .driverApiOnly and .allSuspended and .gpuTroubles[0].lost"
		vcuda limit few --host-memory=1G 2>"$scratch/refused.out" && exit 1
		said refused "the host.s memory is not limited here: this host uses cgroup version 1"
		said refused "ctr-gpu-vcudad(8) says which hosts can limit it"
	'
}

# What the manager should be may be another program of root's that listens there, or one that was broken: a container gets nothing of it.
@test "a manager that answers nonsense, too much, half or nothing, or another directory, costs a start its time and gives nothing" {
	on_host '
		hows=(garbage closed long length other-call half silent /run/secret /run/ctr-gpu/vcuda/../../secret /etc)
		printf "%s\n" "${hows[@]}" >"$scratch/hows"
		mkdir -p /run/ctr-gpu/vcuda /run/secret
		touch /run/secret/file
		python3 -c "
import os, socket, struct, sys
def text(value, length=None):
    return struct.pack(\">I\", len(value) if length is None else length) + value + bytes(-len(value) % 4)
def granted(directory, **length):
    return struct.pack(\">i\", 0) + text(b\"\") + text(directory, **length)
def framed(xid, answer):
    answer = xid + struct.pack(\">5I\", 1, 0, 0, 0, 0) + answer
    return struct.pack(\">I\", 0x80000000 | len(answer)) + answer
s = socket.socket(socket.AF_UNIX)
s.bind(\"/run/ctr-gpu/vcudad.sock\")
s.listen()
open(\"/run/listens\", \"w\").close()
kept = []
for line in sys.stdin:
    how = line.strip()
    c = s.accept()[0]
    kept.append(c)
    size = struct.unpack(\">I\", c.recv(4, socket.MSG_WAITALL))[0] & 0x7fffffff
    xid = c.recv(size, socket.MSG_WAITALL)[:4]
    if how == \"garbage\":
        c.sendall(os.urandom(4096))
    elif how == \"closed\":
        c.close()
    elif how == \"long\":
        c.sendall(struct.pack(\">I\", 0x80000000 | 0x7ffffff0) + bytes(4096))
    elif how == \"length\":
        c.sendall(framed(xid, granted(b\"/run/ctr-gpu/vcuda/x\", length=0x7fffffff)))
    elif how == \"other-call\":
        c.sendall(framed(bytes(4), granted(b\"/run/ctr-gpu/vcuda/x\")))
    elif how == \"half\":
        c.sendall(framed(xid, granted(b\"/run/ctr-gpu/vcuda/x\"))[:-4])
    elif how.startswith(\"/\"):
        c.sendall(framed(xid, granted(how.encode())))
        try:
            c.sendall(framed(b\"\\0\\0\\0\\2\", struct.pack(\">i\", 0) + text(b\"\")))
        except OSError:
            pass
" <"$scratch/hows" 2>"$scratch/manager.out" & manager=$!
		until [[ -e /run/listens ]]; do sleep 0.02; done
		for how in "${hows[@]}"; do
			began=$EPOCHSECONDS
			container one "echo started; ls /run/ctr-gpu/vcuda"
			wait "$!" || true
			said one "^started" && { echo "$how: it started"; exit 1; }
			said one "vCUDA.s manager ctr-gpu-vcudad " || { echo "$how: no word of the manager"; exit 1; }
			[[ $(grep -c . "$scratch/one.out") -le 6 && $((EPOCHSECONDS - began)) -lt 30 ]]
			runc --root /run/runtime delete --force one 2>/dev/null || true
		done
		wait $manager
		[[ ! -s $scratch/manager.out ]]
	'
}

@test "a manager waits for what is left of the socket of one before it, and does not take that of one which lives" {
	on_host '
		mkdir -p /run/ctr-gpu
		# The manager and the first who asks connect to what is left, which goes then.
		python3 -c "
import socket
s = socket.socket(socket.AF_UNIX)
s.bind(\"/run/ctr-gpu/vcudad.sock\")
s.listen()
open(\"/run/listens\", \"w\").close()
peers = [s.accept() for _ in range(2)]
open(\"/run/met\", \"w\").close()" & until [[ -e /run/listens ]]; do sleep 0.02; done
		manager
		[[ -e /run/met ]]
		"$root/bin/ctr-gpu-vcudad" 2>"$scratch/second" && exit 1
		grep "Another manager answers there" "$scratch/second"
		listed ".containers == []"
	'
}

@test "the program that has the driver suspend servers says so where it did not look at any" {
	local orders=$BATS_TEST_TMPDIR/orders library

	truncate -s 1M "$orders"
	for library in /nonexistent/libcuda.so.1 "$CTR_GPU_BUILD/lib/vcuda/libcuda.so.1"; do
		run -127 "$CTR_GPU_BUILD/bin/ctr-gpu-vcuda-checkpoint" move "$library" 65534 0 0 GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4 1:0 3<>"$orders"
	done
}

@test "nobody but root asks the manager, and no other pid namespace" {
	on_host '
		manager
		chmod 666 /run/ctr-gpu/vcudad.sock
		chmod 711 /run/ctr-gpu
		setpriv --reuid 1000 --regid 1000 --clear-groups "$root/bin/ctr-gpu" vcuda list && exit 1
		audited not-root
		unshare --pid --fork "$root/bin/ctr-gpu" vcuda list && exit 1
		vcuda list
	'
}

@test "connections that send nothing, or nonsense, or too much, keep nobody else out" {
	on_host '
		manager
		python3 -c "
import socket, os, time
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(\"/run/ctr-gpu/vcudad.sock\")
    return s
idle = [connect() for _ in range(50)]
for data in (b\"\x80\x00\x00\x04abcd\", b\"\xff\xff\xff\xff\", b\"\x00\x00\x00\x10\" + b\"x\" * 16, os.urandom(4096)):
    s = connect()
    s.sendall(data)
    s.settimeout(60)
    try:
        assert s.recv(1) == b\"\", data
    except ConnectionResetError:
        pass
time.sleep(0.1)
os.system(os.environ[\"root\"] + \"/bin/ctr-gpu vcuda list\")
"
		[[ $(awk "/VmRSS/ { print \$2 }" /proc/$manager/status) -lt 20000 ]]
		vcuda list
	'
}

# besiege SECONDS: a program that has a container's socket, as root without any rights in a pid namespace of its own: it connects as fast as it can, with messages
# and descriptors that lie there before anybody looks, and from processes that end and leave the connection to another one
besiege() {
	unshare --mount --pid --fork --kill-child setpriv --inh-caps=-all --bounding-set=-all python3 -c '
import array, os, socket, sys, time
end = time.monotonic() + float(sys.argv[1])
kept, tried, first = [], 0, os.getpid()
def connect(kind=socket.SOCK_SEQPACKET):
    s = socket.socket(socket.AF_UNIX, kind)
    s.setblocking(False)
    s.connect(sys.argv[2])
    return s
def fill(s):
    ends = os.pipe()
    fds = array.array("i", [ends[0]] * 250)
    for part in (b"\x80\xff\xff\xff", b"\x00", b"\x80\x00\x00\x28" + b"\xff" * 40, os.urandom(4096)):
        try:
            s.sendmsg([part], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        except OSError:
            pass
    try:
        while True:
            s.send(os.urandom(512))
    except OSError:
        pass
    for fd in ends:
        os.close(fd)
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    try:
        connect(kind)
        sys.exit("a socket of another kind is taken")
    except OSError:
        pass
while time.monotonic() < end:
    tried += 1
    try:
        s = connect()
        if tried % 7 == 0 and os.fork() == 0:
            other = connect()
            if os.fork() == 0:
                time.sleep(300)
            os._exit(0)
        fill(s)
        if tried % 3:
            kept.append(s)
    except OSError:
        if os.getpid() != first:
            os._exit(1)
        time.sleep(0.01)
    if len(kept) > 200:
        kept.clear()
print("tried", tried)
' "$1" "$2"
}

@test "who has a container's socket alone keeps no other container from its servers, and costs the manager nothing that grows" {
	export -f besiege
	on_host '
		manager
		# Its root can make nothing where that is, which is in memory of the host, and take nothing away.
		container one "cd /run/ctr-gpu/vcuda; touch new; rm -f socket; ln -s /etc/passwd socket; ls -A; echo tried; sleep 300"
		soon said one "^tried"
		container two "sleep 300"
		soon test -S /run/ctr-gpu/vcuda/two/socket
		[[ $(ls -A /run/ctr-gpu/vcuda/one) == socket && -S /run/ctr-gpu/vcuda/one/socket ]]
		began=$EPOCHSECONDS
		besiege 6 /run/ctr-gpu/vcuda/one/socket >"$scratch/besiege.out" 2>&1 &
		besieger=$!
		soon listed ".containers[] | select(.container == \"one\") | .connects + .denied > 40"
		most=0
		while kill -0 $besieger 2>/dev/null; do
			"$CTR_GPU_BUILD/test/tools/vcuda-standin" /run/ctr-gpu/vcuda/two/socket take=4096 </dev/null >"$scratch/two-client.out"
			said two-client "gpus="
			listed ".containers[] | select(.container == \"one\") | .clients <= 3"
			count=$(ls /proc/$manager/fd | wc -l)
			[[ $count -le $most ]] || most=$count
		done
		wait $besieger
		lasted=$((EPOCHSECONDS - began + 2))
		echo "at most $most descriptors, $(grep VmHWM /proc/$manager/status), $(grep -c "\"container\":\"one\"" "$scratch/audit") lines in $lasted s" >"$scratch/seen.out"
		[[ $most -lt 60 ]]
		[[ $(awk "/VmHWM/ { print \$2 }" /proc/$manager/status) -lt 20000 ]]
		# A line for each connection and one a second for those that are refused, with what becomes of its server.
		[[ $(grep -c "\"container\":\"one\"" "$scratch/audit") -le $((2 * (32 + 16 * lasted) + lasted + 8)) ]]
		# Also those whose clients left their connections to others, who are gone now, too.
		soon listed ".containers[] | select(.container == \"one\") | .clients == 0"
		soon eval "((\$(pgrep -c -P $manager) < 5))"
		vcuda revoke one
		"$CTR_GPU_BUILD/test/tools/vcuda-standin" /run/ctr-gpu/vcuda/two/socket </dev/null
	'
}
