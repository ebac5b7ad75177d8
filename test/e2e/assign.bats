#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# GPUs that one container at a time may have (`ctr-gpu assign`): by every door, for every kind of host, when the container has
# ended in whatever way, and when many start at once. Each test has a host of its own, with the engine in it.

load engines

setup_file() {
	require_root
	require_program runc
	image debian >/dev/null
}

# With it begins the shell of every test. start NAME DEVICES [FILTER]: a container that sleeps, of a bundle of its own; process NAME;
# end NAME; mode GPU: what the table says of it. $runtime: another than runc
lib='
	fail() { echo "FAILED: $*"; exit 1; }
	mode() { ctr-gpu assign --json | jq -r --arg number "$1" ".gpus[] | select(.number == \$number) | .mode + \": \" + (.containers | map(.name // .id // \"?\") | join(\"+\"))"; }
	start() {
		mkdir -p "/run/bundles/$1"
		jq --arg path "$CTR_GPU_TEST_CGROUP/$1" --arg devices "$2" --arg rootfs "$bundle/rootfs" ".linux.cgroupsPath = \$path
			| .process.args = [\"sleep\", \"600\"] | .process.env = [\"PATH=/usr/bin\", \"CTR_GPU_VISIBLE_DEVICES=\" + \$devices]
			| .root.path = \$rootfs | ${3:-.}" "$bundle/config.json" >"/run/bundles/$1/config.json"
		memlock "${runtime:-runc}" run --bundle "/run/bundles/$1" --detach "$1" \
			</dev/null >/dev/null 2>"/run/bundles/$1/log" || { cat "/run/bundles/$1/log"; return 1; }
	}
	process() { runc state "$1" | jq .pid; }
	end() { runc delete --force "$1"; }
'

# with_runc PROFILE SCRIPT: $bundle is a bundle with our hook in it
with_runc() {
	rm -rf "$BATS_TEST_TMPDIR/bundle"
	bundle debian "$BATS_TEST_TMPDIR/bundle"
	run sandbox "$1" env bundle="$BATS_TEST_TMPDIR/bundle" bash -c "$lib$2"
	expect_status 0
	expect_not "FAILED: "
}

# The second container is refused until the first one has ended, and gets another GPU meanwhile.
one_at_a_time() {
	with_runc "$1" '
		start before 0 || fail before
		end before
		[[ ! -e /run/ctr-gpu/assigned ]] || fail "a start looked for claims where no GPU is exclusive"
		ctr-gpu assign 0 --exclusive && jq -c . /etc/ctr-gpu/config.json || fail assign
		[[ $(mode 0) == "exclusive: " && $(mode 1) == "shared: " ]] || fail "it is free: $(mode 0)"
		start one 0 || fail one
		[[ $(mode 0) == "exclusive: one" ]] || fail "one has it: $(mode 0)"
		start two 0 && fail "two got it"
		start all all && fail "all got it"
		[[ $(runc list -q) == one ]] || fail "two is there"
		[[ $(stat -c %a /run/ctr-gpu/assigned) == 700 ]] || fail "others can see claims"
		start three 1 || fail "the other GPU"
		end one
		[[ $(mode 0) == "exclusive: " ]] || fail "it is free again: $(mode 0)"
		start two 0 || fail "two, when one has ended"
		ctr-gpu assign 0 --shared || fail share
		start four 0 || fail four
		[[ $(mode 0) == shared:* && -z $(ls /run/ctr-gpu/assigned) ]] || fail "it is shared"
		for name in two three four; do end "$name"; done
		[[ $(<"/etc/ctr-gpu/config.json") == "{}" ]] || fail "the configuration: $(</etc/ctr-gpu/config.json)"'
	expect "[E_EXCLUSIVE] GPU 0 "
	expect " is exclusive, and the container one has it (process "
	expect "Root can have it shared: ctr-gpu assign 0 --shared"
	[[ $(grep -c E_EXCLUSIVE <<<"$output") -eq 2 ]]
}

@test "native, NVIDIA: one container at a time" {
	one_at_a_time native-four
	expect_line '{"exclusive":["GPU-b703df58-2273-35fb-29be-3f6c49b83a95"]}'
}

@test "native, AMD: one container at a time" {
	one_at_a_time native-amd
	expect_line '{"exclusive":["GPU-123456789abcdef0"]}'
}

@test "GPU-PV: one container at a time" {
	one_at_a_time wsl-hybrid
	expect_line '{"exclusive":["0000:01:00.0"]}'
}

@test "crun, and ctr-gpu-runtime: the same claim" {
	require_program crun
	with_runc wsl-hybrid '
		# The shim leaves all to this runtime that it can.
		known_runtime runc
		ctr-gpu assign 0 --exclusive >/dev/null
		runtime=crun start one 0 || fail one
		[[ $(mode 0) == "exclusive: one" ]] || fail "of crun: $(mode 0)"
		runtime=ctr-gpu-runtime start two 0 ".hooks = {}" && fail "two got it"
		runtime=ctr-gpu-runtime start three 1 ".hooks = {}" || fail three
		crun delete --force one
		runtime=ctr-gpu-runtime start two 0 ".hooks = {}" || fail "two, when one has ended"
		[[ $(mode 0) == "exclusive: two" ]] || fail "of the shim: $(mode 0)"
		end two; end three'
	expect "ctr-gpu-hook: [E_EXCLUSIVE] GPU 0 "
}

# What ends the container runs no hook: its process is killed, and runc is told nothing.
@test "freed at the end, also if no poststop hook ran; a process of the same number is another" {
	with_runc native-amd '
		ctr-gpu assign vendor:amd --exclusive >/dev/null
		start one 0 || fail one
		kill -KILL "$(process one)"
		until [[ $(runc state one | jq -r .status) == stopped ]]; do sleep 0.05; done
		[[ $(mode 0) == "exclusive: " && -n $(ls /run/ctr-gpu/assigned) ]] || fail "it is free: $(mode 0)"
		start two 0 || fail two
		claim=$(ls /run/ctr-gpu/assigned/*)
		sed -i "s/-[0-9]* /-1 /" "$claim"
		[[ $(ctr-gpu assign --json | jq ".gpus[0].since") == null ]] || fail "the process is younger than the claim"
		: >"$claim"
		start three 0 || fail "of what was not written to the end"
		start four 0 && fail four
		end two; end three'
}

@test "50 at once: exactly one has the GPU" {
	with_runc native-amd '
		ctr-gpu assign all --exclusive >/dev/null
		for i in {1..50}; do
			(start "n$i" 0 && echo "won $i") &
		done >>/run/log 2>&1 # not ">": cat would write over lines of others by copy_file_range(2)
		wait
		[[ $(grep -c "^won " /run/log) -eq 1 ]] || fail "$(cat /run/log)"
		[[ $(grep -c "E_EXCLUSIVE" /run/log) -eq 49 ]] || fail "$(cat /run/log)"
		won=$(sed -n "s/^won /n/p" /run/log)
		[[ $(runc list -q) == "$won" && $(mode 0) == "exclusive: $won" ]] || fail "$won: $(mode 0)"
		end "$won"'
}

@test "a GPU that containers have becomes exclusive, unless several have it" {
	with_runc native-amd '
		start one 0 || fail one
		start two 0,1 || fail two
		ctr-gpu assign 0 --exclusive && fail "two have it"
		[[ ! -e /etc/ctr-gpu/config.json ]] || fail "it was written all the same"
		ctr-gpu assign 1 --exclusive || fail "one has it"
		start three 1 && fail "three got it"
		end one
		ctr-gpu assign 0 --exclusive || fail "one has it now"
		ctr-gpu assign --json | jq -c ".gpus | map([.mode, .containers[0].pid, .since > 1000000])"
		start three 0 && fail "three got it"
		ctr-gpu assign
		end two'
	expect "GPU 0 AMD GPU gfx1100 (1002:744c) is used by 2 containers: one, two"
	grep -E '^\[\["exclusive",[0-9]+,true\],\["exclusive",[0-9]+,true\]\]$' <<<"$output"
	grep -E '^0 AMD GPU gfx1100 \(1002:744c\) +exclusive +two$' <<<"$output"
}

# What is mounted on the file keeps another from taking its place.
@test "who has a GPU is known as long as the settings say that it is exclusive, also if they cannot be written" {
	with_runc native-amd '
		ctr-gpu assign 0 --exclusive >/dev/null
		start one 0 || fail one
		mount --bind /etc/ctr-gpu/config.json /etc/ctr-gpu/config.json || fail mount
		ctr-gpu assign 0 --shared && fail "it was written"
		[[ $(mode 0) == "exclusive: one" ]] || fail "one has it: $(mode 0)"
		start two 0 && fail "two got it"
		umount /etc/ctr-gpu/config.json
		ctr-gpu assign 0 --shared >/dev/null || fail share
		[[ -z $(ls /run/ctr-gpu/assigned) ]] || fail "there is a claim of what is shared"
		end one'
	expect "cannot replace /etc/ctr-gpu/config.json"
}

# Root in it can remove what it has open.
@test "a container that shows no device has what its configuration asks for" {
	with_runc native-amd '
		start one 0 || fail one
		start two 0 || fail two
		start three "" || fail three
		rm -r "/proc/$(process one)/root/dev/dri" "/proc/$(process one)/root/dev/kfd" || fail rm
		ctr-gpu assign 0 --exclusive && fail "two have it"
		[[ $(mode 0) == "shared: one+two" ]] || fail "$(mode 0)"
		end two
		ctr-gpu assign 0 --exclusive >/dev/null || fail "one has it"
		[[ $(mode 0) == "exclusive: one" ]] || fail "$(mode 0)"
		start two 0 && fail "two got it"
		end one; end three'
	expect "is used by 2 containers: one, two"
}

# Who has the list of claims keeps `assign` waiting between its look at the containers and what it writes.
@test "a process that has a container's number by now does not get its GPU" {
	with_runc native-amd '
		ctr-gpu assign >/dev/null
		start one 0 || fail one
		pid=$(process one)
		exec {claims}</run/ctr-gpu/assigned
		flock "$claims"
		(exec {claims}<&-; exec ctr-gpu assign 0 --exclusive >/dev/null) & assign=$!
		# It has looked at the containers, and has come to the lock. One more it has open from its beginning.
		comes() { [[ $(readlink "/proc/$assign/exe") == */ctr-gpu ]] && (($(readlink "/proc/$assign/fd/"* | grep -cx /run/ctr-gpu/assigned) > 1)); }
		soon comes || fail "it does not come to the lock"
		end one
		for _ in {1..200}; do
			echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid
			sleep 600 {claims}<&- & other=$!
			((other != pid)) || break
			kill "$other"
			sleep 0.02
		done
		((other == pid)) || fail "no process has the number"
		flock --unlock "$claims"
		wait "$assign" || fail assign
		[[ $(mode 0) == "exclusive: " ]] || fail "no container has it: $(mode 0)"
		start two 0 || fail two
		end two
		kill "$other"'
}

# Its hooks are not through, so no list of runc's has it; what our hook gave it counts.
@test "a container that is being made counts, before its runtime has written it down" {
	with_runc native-amd '
		mkdir -p /run/bundles
		printf "#!/bin/sh\ntouch /run/made; while [ ! -e /run/go ]; do sleep 0.05; done\n" >/run/wait
		chmod 755 /run/wait
		slow=".hooks.prestart += [{path: \"/run/wait\"}]"
		start one 0 "$slow" & until [[ -e /run/made ]]; do sleep 0.05; done
		start two 0 || fail two
		(ctr-gpu assign 0 --exclusive && echo both got it) >/run/said 2>&1 & assign=$!
		until [[ -n $(ls -I lock /run/ctr-gpu/assigned 2>/dev/null) ]] || ! kill -0 "$assign"; do sleep 0.05; done
		start three 0 && fail "three, while it waits"
		[[ -z $(</run/said) ]] || fail "it did not wait: $(</run/said)"
		touch /run/go; wait
		grep -o "GPU 0 .* is used by 2 containers: .*" /run/said || fail "$(</run/said)"
		[[ ! -e /etc/ctr-gpu/config.json && $(mode 0) == "shared: one+two" ]] || fail "it is shared: $(mode 0)"
		end one
		rm /run/go /run/made
		start one 0 "$slow" & until [[ -e /run/made ]]; do sleep 0.05; done
		ctr-gpu assign 0 --exclusive >/run/said 2>&1 & until [[ -s /etc/ctr-gpu/config.json ]]; do sleep 0.05; done
		jq ".deadline = 30 | .exclusive += [\"1\"]" /etc/ctr-gpu/config.json >/run/new && cp /run/new /etc/ctr-gpu/config.json
		touch /run/go; wait
		grep -q "is used by 2 containers" /run/said || fail "$(</run/said)"
		[[ $(jq .deadline /etc/ctr-gpu/config.json) == 30 ]] || fail "what another process wrote: $(</etc/ctr-gpu/config.json)"
		[[ $(mode 0)/$(mode 1) == "shared: one+two/exclusive: " ]] || fail "it took back: $(mode 0), $(mode 1)"
		rm /etc/ctr-gpu/config.json
		end one; end two
		rm /run/go /run/made
		start one 0 "$slow" & until [[ -e /run/made ]]; do sleep 0.05; done
		ctr-gpu assign 0 --exclusive >/dev/null 2>/run/said & soon test -e /etc/ctr-gpu/config.json
		touch /run/go; wait
		[[ $(mode 0) == "exclusive: one" ]] || fail "$(mode 0): $(</run/said)"
		start two 0 && fail "two got it"
		end one'
}

@test "a signal ends the waiting for a container that is being made, and nothing is exclusive" {
	with_runc native-amd '
		mkdir -p /run/bundles
		printf "#!/bin/sh\ntouch /run/made; while [ ! -e /run/go ]; do sleep 0.05; done\n" >/run/wait
		chmod 755 /run/wait
		start one 0 ".hooks.prestart += [{path: \"/run/wait\"}]" & until [[ -e /run/made ]]; do sleep 0.05; done
		# It cannot go on from its message: the pipe is full.
		mkfifo /run/full; exec {full}<>/run/full
		dd if=/dev/zero of=/run/full bs=4096 oflag=nonblock 2>/dev/null
		ctr-gpu assign 0 --exclusive >/dev/null 2>/run/full & assign=$!
		until [[ -s /etc/ctr-gpu/config.json ]] || ! kill -0 "$assign"; do sleep 0.05; done
		kill -TERM "$assign"
		until [[ $(cut -d " " -f 2 "/proc/$assign/syscall") == 0x2 ]] || ! kill -0 "$assign"; do sleep 0.05; done
		[[ ! -e /etc/ctr-gpu/config.json ]] || fail "what it says is not so yet: $(</etc/ctr-gpu/config.json)"
		cat <&"$full" >/run/said & reader=$!
		wait "$assign" && fail "it was not stopped"
		soon grep -aq "stopped by signal 15" /run/said || fail "$(tr -d "\0" </run/said)"
		kill "$reader"
		[[ ! -e /etc/ctr-gpu/config.json ]] || fail "it is exclusive: $(</etc/ctr-gpu/config.json)"
		touch /run/go; wait
		[[ $(mode 0) == "shared: one" ]] || fail "$(mode 0)"
		end one'
}

# Who has the list of claims keeps both between their look at the settings and what they write.
@test "two at once, each with a GPU of its own: what one has written stays" {
	with_runc native-amd '
		ctr-gpu assign >/dev/null
		exec {claims}</run/ctr-gpu/assigned
		both() {
			flock "$claims"
			for gpu in 0 1; do
				(exec {claims}<&-; exec ctr-gpu assign "$gpu" "$1") &
			done >/run/said 2>&1
			for _ in {1..100}; do
				grep -q "waiting for another .ctr-gpu assign. to end" /run/said && break
				sleep 0.05
			done
			flock --unlock "$claims"
			wait
		}
		both --exclusive
		[[ $(mode 0)/$(mode 1) == "exclusive: /exclusive: " ]] || fail "$(mode 0), $(mode 1)"
		both --shared
		[[ $(mode 0)/$(mode 1) == "shared: /shared: " && -z $(ls /run/ctr-gpu/assigned) ]] || fail "$(mode 0), $(mode 1)"'
}

@test "a container that asks for a GPU which has gone since has the others" {
	with_runc native-amd '
		start one 0,1 || fail one
		sed -i "s/=0,1/=0,7/" /run/bundles/one/config.json
		ctr-gpu info --containers
		rm -r "/proc/$(process one)/root/dev/dri" "/proc/$(process one)/root/dev/kfd" || fail rm
		start two 0 || fail two
		ctr-gpu assign 0 --exclusive && fail "two have it"
		end two
		ctr-gpu assign 0 --exclusive >/dev/null || fail "one has it"
		[[ $(mode 0) == "exclusive: one" ]] || fail "$(mode 0)"
		start two 0 && fail "two got it"
		end one'
	expect "    GPUs          0 AMD GPU"
	expect_line "    now           it would be refused: this host has no device \"7\""
	expect_not "it would get the same"
	expect "is used by 2 containers: one, two"
}

# Their state is no other runtime's here, as it is with the runc of a containerd.
@test "containers of Kubernetes' distributions, which have a containerd of their own" {
	with_runc native-amd '
		printf "#!/bin/sh\nexec runc --root /run/others \"\$@\"\n" >/run/their-runc
		chmod 755 /run/their-runc
		runtime=/run/their-runc start one 0 || fail one
		[[ $(mode 0) == "shared: " ]] || fail "it is known already: $(mode 0)"
		for state in containerd k3s/containerd k0s/containerd docker/containerd/daemon; do
			task=/run/$state/io.containerd.runtime.v2.task/k8s.io/one
			mkdir -p "$task" && cp /run/bundles/one/config.json "$task" || fail "$task"
			/run/their-runc state one | jq -j .pid >"$task/init.pid"
			[[ $(mode 0) == "shared: one" ]] || fail "$state: $(mode 0)"
			printf x >"$task/init.pid"
			ctr-gpu assign 0 --exclusive && fail "a number that cannot be read"
			rm -r "/run/${state%%/*}"
		done
		/run/their-runc delete --force one'
	expect "which GPUs the container one has is not known: /run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/one/init.pid is damaged"
}

@test "a container of an engine that is not looked at, which attach has given a GPU" {
	with_runc native-amd '
		printf "#!/bin/sh\nexec runc --root /run/others \"\$@\"\n" >/run/their-runc
		chmod 755 /run/their-runc
		runtime=/run/their-runc start one void "del(.hooks)" || fail one
		pid=$(/run/their-runc state one | jq .pid)
		ctr-gpu attach "$pid" --device 0 || fail attach
		[[ $(mode 0) == "shared: $pid" ]] || fail "it is not counted: $(mode 0)"
		ctr-gpu info --containers | grep -F "container $pid (other, $pid, process $pid)" || fail info
		ctr-gpu assign 0 --exclusive || fail assign
		start two 0 && fail "two got it"
		/run/their-runc delete --force one
		[[ $(mode 0) == "exclusive: " ]] || fail "it has ended: $(mode 0)"
		start two 0 || fail two
		end two'
	expect "[E_EXCLUSIVE] GPU 0 "
}

@test "who reads the list slowly keeps no container from its start" {
	with_runc native-amd '
		ctr-gpu assign 0 --exclusive >/dev/null || fail assign
		mkfifo /run/pager
		exec {reader}<>/run/pager
		dd if=/dev/zero of=/run/pager bs=64k count=1 2>/dev/null
		ctr-gpu assign >/run/pager 2>/run/said &
		# It writes to that, on x86-64 or arm64.
		until [[ $(cut -d " " -f 1,2 "/proc/$!/syscall") =~ ^(1|64)\ 0x1$ ]] || ! kill -0 $!; do sleep 0.05; done
		[[ $(readlink "/proc/$!/exe") == */ctr-gpu ]] || fail "it has printed: $(</run/said)"
		# It would wait for ten seconds, and then be refused.
		SECONDS=0
		start one 0 || fail one
		((SECONDS < 9)) || fail "it took $SECONDS s"
		kill $!
		end one'
}

@test "a GPU and its parts" {
	with_runc native-mig '
		ctr-gpu assign
		ctr-gpu assign 1:1 --exclusive || fail assign
		jq -c .exclusive /etc/ctr-gpu/config.json
		start one 1:1 || fail one
		start two 1:1 && fail "two got it"
		start three 1:0 || fail "another part"
		start four 1 && fail "the whole, without the part"
		end one
		start four 1 || fail four
		start two 1:1 && fail "a part of what four has"
		for name in three four; do end "$name"; done
		ctr-gpu assign 1:1 --shared && ctr-gpu assign 1 --exclusive || fail "the whole"
		start one 1:1 || fail one
		start three 1:0 && fail "another part of one GPU"
		end one'
	[[ $(grep -c E_EXCLUSIVE <<<"$output") -eq 4 ]]
	with_runc native-mig '
		start one 1:1 || fail one
		start three 1:0 || fail three
		ctr-gpu assign 1 --exclusive && fail "two have parts of it"
		[[ $(mode 1) == "shared: "* ]] || fail "it is changed: $(mode 1)"
		end three
		ctr-gpu assign 1 --exclusive || fail assign
		[[ $(mode 1) == "exclusive: one" ]] || fail "one has a part of it: $(mode 1)"
		start three 1:0 && fail "three got a part"
		ctr-gpu assign 1 --shared && end one && start four 1 || fail four
		ctr-gpu assign 1:1 --exclusive || fail "a part"
		[[ $(mode 1:1) == "exclusive: four" ]] || fail "four has the whole: $(mode 1:1)"
		start one 1:1 && fail "one got what four has"
		end four'
	expect "GPU 1 NVIDIA H200 is used by 2 containers: "
	[[ $(grep -c E_EXCLUSIVE <<<"$output") -eq 2 ]]
}

@test "attach and detach, and what fails later; configure" {
	with_runc wsl-hybrid '
		ctr-gpu assign 0 --exclusive >/dev/null
		plain=".hooks = {} | .process.env = [\"PATH=/usr/bin\"]"
		start one 0 "$plain" && start two 0 "$plain" || fail start
		ctr-gpu attach one --device 0 || fail attach
		ctr-gpu attach two --device 0 && fail "two got it"
		ctr-gpu attach two --device 0,1 && fail "two got it"
		[[ $(mode 0) == "exclusive: one" ]] || fail "one has it: $(mode 0)"
		ctr-gpu detach one || fail detach
		[[ -z $(ls /run/ctr-gpu/assigned) ]] || fail "one has given it back"
		ctr-gpu attach two --device 0 || fail "attach two"
		ctr-gpu detach two
		echo in the way >"$bundle/rootfs/usr/lib/wsl"
		ctr-gpu attach two --device 0 && fail "what is in the way"
		[[ -z $(ls /run/ctr-gpu/assigned) ]] || fail "two has it all the same"
		rm -f "$bundle/rootfs/usr/lib/wsl"
		mkdir /run/rootfs
		ctr-gpu configure --device 0 /run/rootfs && fail "configure without a process"
		ctr-gpu configure --device 0 --dry-run /run/rootfs | grep -A 1 "^exclusive "
		ctr-gpu configure --device 0 --dry-run --json /run/rootfs | jq -c .exclusive
		ctr-gpu cdi generate --kind=nvidia.com/gpu --no-hooks --output=- >/dev/null
		end one; end two'
	expect "exclusive   0 "
	expect "none is named."
	expect "without hooks, GPU 0 "
}

# NVML tells the UUID of the other GPU alone.
@test "a GPU that may be the exclusive one is given to no container" {
	with_runc wsl-two-nvidia '
		mkdir -p /etc/ctr-gpu
		mkdir -p /run/ctr-gpu; touch /run/ctr-gpu/nvml-knows-one
		echo "{\"exclusive\": [\"GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4\"]}" >/etc/ctr-gpu/config.json
		start one 0 && fail "it may be that one"
		start two 1 || fail "it is another"
		ctr-gpu configure --device 0 --dry-run --json /run | jq -c ".exclusive[0].mayBe"
		ctr-gpu assign 0 --exclusive >/dev/null || fail assign
		start one 0 || fail one
		start three 0 && fail "three got it"
		end one; end two'
	expect_line '"GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4"'
	expect "[E_EXCLUSIVE] GPU 0 NVIDIA GeForce RTX 4090 may be "
	expect "Root can say which is exclusive: ctr-gpu assign 0 --exclusive"
}

@test "the configuration: other keys stay, and what is wrong in it is said" {
	run sandbox native-amd bash -c '
		mkdir -p /etc/ctr-gpu
		printf "{\n  \"deadline\": 30,\n  \"exclusive\": [\"0000:77:00.0\"]\n}\n" >/etc/ctr-gpu/config.json
		ctr-gpu assign
		ctr-gpu assign 1 --exclusive >/dev/null
		cat /etc/ctr-gpu/config.json
		ctr-gpu assign all --shared >/dev/null
		cat /etc/ctr-gpu/config.json
		ctr-gpu list --device 0 2>&1 | grep -c "which the settings say is exclusive"
		for value in 1 "[1]" "[\"\"]" "{}"; do
			echo "{\"exclusive\": $value}" >/etc/ctr-gpu/config.json
			ctr-gpu list && exit 9
		done
		rm /etc/ctr-gpu/config.json
		ctr-gpu assign 7 --exclusive
		ctr-gpu assign 0
		ctr-gpu assign --exclusive
		ctr-gpu assign 0 --exclusive --shared
		setpriv --reuid 54321 --clear-groups ctr-gpu assign 0 --exclusive
		ctr-gpu assign 0 --exclusive >/dev/null
		setpriv --reuid 54321 --clear-groups ctr-gpu assign'
	expect_status 0
	grep -E '^0000:77:00.0 +exclusive +\(this host does not have it\)$' <<<"$output"
	[[ $(grep -c '"exclusive" must be a list of names of GPUs' <<<"$output") -eq 4 ]]
	expect '[E_UNKNOWN_DEVICE] this host has no device "7"'
	expect "--exclusive or --shared is missing"
	expect "GPU is missing: its number"
	expect "--exclusive and --shared exclude each other"
	expect "only root may say who may have a GPU"
	expect_line "Root sees which containers have exclusive GPUs."
	[[ $(grep -c '"deadline": 30' <<<"$output") -eq 2 && $(grep -c '0000:77:00.0"' <<<"$output") -eq 2 ]]
}

@test "Docker: --gpus and --runtime=nvidia; docker run shows who has it" {
	require_program dockerd
	directory=$(engine_directory docker-assign)
	run sandbox wsl-hybrid bash -c '
		directory=$1
		mkdir -p "$directory"
		ctr-gpu assign 0 --exclusive >/dev/null
		echo "{\"runtimes\": {\"nvidia\": {\"path\": \"$CTR_GPU_BUILD/bin/nvidia-container-runtime\"}}}" >"$directory/daemon.json"
		dockerd --config-file "$directory/daemon.json" --data-root "$directory/data" --exec-root /run/exec --pidfile /run/docker.pid \
			--iptables=false --ip6tables=false --bridge=none --cgroup-parent "$CTR_GPU_TEST_CGROUP" \
			--exec-opt native.cgroupdriver=cgroupfs >"$directory/log" 2>&1 &
		soon docker_answers || exit
		tar -C "$2" -c . | docker import - debian >/dev/null || exit
		run="docker run --network none"
		$run --detach --name one --gpus device=0 debian sleep 600 >/dev/null || exit 1
		$run --rm --gpus all debian sh -c : && exit 2
		$run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=0 debian sh -c : && exit 3
		$run --rm --gpus device=1 debian sh -c : || exit 4
		ctr-gpu assign
		docker restart --time 0 one >/dev/null || exit 5
		$run --rm --gpus device=0 debian sh -c : && exit 6
		docker rm --force one >/dev/null
		$run --rm --gpus device=0 debian sh -c : || exit 7
		$run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=0 debian sh -c : || exit 8
		$run --detach --name one --gpus device=1 debian sleep 600 >/dev/null || exit 9
		kill -STOP "$(</run/docker.pid)"
		ctr-gpu assign 1 --exclusive 2>"$directory/refused" && exit 10
		ctr-gpu info --containers | tr -s " \n" " " >"$directory/listed"
		kill -CONT "$(</run/docker.pid)"
		ctr-gpu assign 1 --exclusive >/dev/null || exit 11
		docker rm --force one >/dev/null' docker "$directory" "$(image debian)"
	expect_status 0
	grep -E '^0 .* exclusive +one$' <<<"$output"
	[[ $(grep -c '\[E_EXCLUSIVE\] GPU 0 .* is exclusive, and the container [0-9a-f]* has it' <<<"$output") -eq 3 ]]
	output=$(<"$directory/refused")
	expect "which containers of docker run is not known: Docker does not answer"
	output=$(<"$directory/listed")
	expect "container (any) (docker) not known: Docker does not answer"
}

@test "Podman: the hook, CDI; without root there is no exclusive GPU" {
	require_program podman
	require_program newuidmap
	podman_setup
	directory=$(engine_directory podman)
	run sandbox native-amd env CONTAINERS_CONF="$directory/containers.conf" CONTAINERS_STORAGE_CONF="$directory/storage.conf" bash -c '
		ctr-gpu assign all --exclusive >/dev/null
		ctr-gpu cdi generate >/dev/null
		run="memlock podman run --cgroup-parent $CTR_GPU_TEST_CGROUP"
		$run --detach --name one -e AMD_VISIBLE_DEVICES=0 debian sleep 600 >/dev/null || exit 1
		$run --rm --device amd.com/gpu=0 debian sh -c : && exit 2
		$run --rm --device amd.com/gpu=1 debian sh -c : || exit 3
		$run --rm --device amd.com/gpu=all debian sh -c : && exit 4
		ctr-gpu assign
		podman rm --force --time 0 one >/dev/null
		$run --rm --device amd.com/gpu=all debian sh -c : || exit 5'
	expect_status 0
	grep -E '^0 .* exclusive +one$' <<<"$output"
	export CTR_GPU_TEST_AS_ROOT="ctr-gpu assign 0 --exclusive >/dev/null"
	run rootless native-amd bash -c 'podman run --rm -e AMD_VISIBLE_DEVICES=1 debian sh -c : && echo other; podman --runtime runc run --rm -e AMD_VISIBLE_DEVICES=0 debian sh -c :'
	expect_line other
	[[ $status -ne 0 ]]
	expect "only containers of root's engines can have it"
}
