# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2016
#
# The hook before it does anything: its arguments, states that are none, and what it inherits.

setup() {
	here=$(dirname "$BATS_TEST_FILENAME")
	build=$(readlink -f "${CTR_GPU_BUILD:-$here/../../build}")
	hook=$build/bin/ctr-gpu-hook
	said=$BATS_TEST_TMPDIR/stderr
}

# refused STATUS TEXT COMMAND…: it ends with this status, prints nothing, and says TEXT in at most three lines
refused() {
	local wanted=$1 text=$2 status=0 stdout
	shift 2
	stdout=$("$@" 2>"$said") || status=$?
	if [[ $status -ne $wanted || -n $stdout || $(wc -l <"$said") -gt 3 ]] || ! grep -qF -- "$text" "$said"; then
		printf 'status %d, wanted %d\nstdout: %s\nstderr: %s\nwanted: %s\n' "$status" "$wanted" "$stdout" "$(<"$said")" "$text"
		return 1
	fi
}

# A bundle, and the state of a container in it whose environment asks for what the arguments say.
state() {
	local bundle=$BATS_TEST_TMPDIR/bundle environment
	mkdir -p "$bundle/rootfs"
	environment=$(printf '%s\n' "$@" | jq -R . | jq -s 'map(select(. != ""))')
	jq -n --argjson env "$environment" '{ociVersion: "1.0.2", root: {path: "rootfs"}, process: {env: $env, args: ["sh"]}}' \
		>"$bundle/config.json"
	jq -n --arg bundle "$bundle" --argjson pid $$ '{ociVersion: "1.0.2", id: "test", status: "creating", pid: $pid, bundle: $bundle}'
}

@test "arguments that make no sense are status 2" {
	refused 2 "Usage: ctr-gpu-hook" "$hook"
	refused 2 "Usage: ctr-gpu-hook" "$hook" prestart createRuntime
	refused 2 "unrecognized option" "$hook" --nonsense prestart
	refused 2 "unknown stage 'Prestart'" "$hook" Prestart
	refused 2 "absolute path, not 'config.json'" "$hook" -config config.json prestart
	refused 2 "absolute path, not 'true'" "$hook" -debug=true prestart
}

@test "stages inside the container are refused with the reason" {
	for stage in createContainer startContainer; do
		refused 2 "[E_BAD_ARGUMENT] $stage hooks run inside the container" "$hook" "$stage"
	done
}

@test "stages with nothing to do succeed whatever the state is" {
	for stage in poststart poststop; do
		run "$hook" "$stage" <<<'{'
		[[ $status -eq 0 && -z $output ]]
	done
}

# By the name that Docker calls it by for --gpus: other names see containers that want no GPU, too.
docker_hook() {
	ln -s "$hook" "$BATS_TEST_TMPDIR/nvidia-container-runtime-hook"
	hook=$BATS_TEST_TMPDIR/nvidia-container-runtime-hook
	export hook
}

@test "a state that is none is refused" {
	docker_hook
	refused 1 "[E_BAD_STATE]" bash -c '"$hook" prestart </dev/null'
	refused 1 "[E_BAD_STATE]" bash -c '"$hook" prestart <&-'
	for text in '{' '[]' 'null' '1' '{}' '{"ociVersion":"1.0.2"}' '{"bundle":"/none","pid":1}{' '{"bundle":1,"pid":1}' \
		'{"bundle":"relative","pid":1}' '{"bundle":"/none","pid":"1"}' '{"bundle":"/none","bundle":"/none","pid":1}' \
		$'{"bundle":"/\xff","pid":1}' '{"bundle":"/a\u0000b","pid":1}'; do
		refused 1 "[E_BAD_STATE]" "$hook" prestart <<<"$text"
	done
	refused 1 '    Run the hook at the stage createRuntime or prestart.' "$hook" prestart <<<'{"status":"creating","bundle":"/none","pid":0}'
	refused 1 "[E_BAD_STATE]" bash -c 'printf "{\"bundle\":\"/none\",\0\"pid\":1}" | "$hook" prestart'
}

# An object of JSON with one member more.
annotated() {
	local object

	object=$(cat)
	printf '%s, "annotations": {"x": "%s"}}\n' "${object%\}*}" "$1"
}

@test "what cannot be read asks for nothing, unless there is something to say that it asks" {
	local bundle=$BATS_TEST_TMPDIR/bundle state text

	for text in '' '{' '{"bundle":"/none","pid":1}{' '{"bundle":"/","status":"creating","pid":1}'; do
		run "$hook" createRuntime <<<"$text"
		[[ $status -eq 0 && -z $output ]]
	done
	for text in 'a\u0000b' '\ud800' 'x", "x": "y'; do
		state=$(state 'PATH=/bin' | annotated "$text")
		run "$hook" createRuntime <<<"$state"
		[[ $status -eq 0 && -z $output ]]
		# The annotations are in config.json, too.
		annotated "$text" <"$bundle/config.json" >"$bundle/new"
		mv "$bundle/new" "$bundle/config.json"
		run "$hook" createRuntime <<<"$state"
		[[ $status -eq 0 && -z $output ]]
		state=$(state 'NVIDIA_VISIBLE_DEVICES=all' | annotated "$text")
		# A shell whose arguments are those of a runtime.
		refused 1 "[E_BAD_STATE]" bash -c '"$0" createRuntime; exit $?' "$hook" create --bundle "$bundle" x <<<"$state"
	done
}

@test "a configuration that is too large is an error where it asks for a GPU, wherever in it" {
	local bundle=$BATS_TEST_TMPDIR/bundle state filler=$BATS_TEST_TMPDIR/filler small=$BATS_TEST_TMPDIR/small variable

	head -c $((17 << 20)) /dev/zero | tr '\0' ' ' >"$filler"
	for variable in NVIDIA_VISIBLE_DEVICES=all NVIDIA_VISIBLE_DEVICES=void PATH=/bin; do
		state=$(state "$variable")
		mv "$bundle/config.json" "$small"
		for parts in "$filler $small" "$small $filler"; do
			# shellcheck disable=SC2086
			cat $parts >"$bundle/config.json"
			if [[ $variable == *=all ]]; then
				refused 1 "[E_BAD_STATE] $bundle/config.json is larger than 16 MiB" "$hook" createRuntime <<<"$state"
				refused 1 "$bundle/config.json is larger than 16 MiB" "$build/bin/ctr-gpu-runtime" create --bundle "$bundle" x
			else
				run "$hook" createRuntime <<<"$state"
				[[ $status -eq 0 && -z $output ]]
			fi
		done
	done
	# Where a read ends in the middle of what is asked for.
	for cut in 3 27 29; do
		{
			head -c $(((16 << 20) - cut)) "$filler"
			printf '"NVIDIA_VISIBLE_DEVICES=void"'
			head -c 99 "$filler"
		} >"$bundle/config.json"
		run "$hook" createRuntime <<<"$state"
		[[ $status -eq 0 && -z $output ]]
		sed -i 's/=void/=0   /' "$bundle/config.json"
		refused 1 "larger than 16 MiB" "$hook" createRuntime <<<"$state"
	done
}

@test "a bundle of which crun tells only \"/\" is found on its command line" {
	state NVIDIA_VISIBLE_DEVICES=all >/dev/null
	refused 1 "[E_CONTAINER_RUNNING]" bash -c 'printf "{\"bundle\":\"/\",\"status\":\"running\",\"pid\":1}" | "$0" createRuntime; exit $?' \
		"$hook" create --bundle "$BATS_TEST_TMPDIR/bundle" x
	state PATH=/bin >/dev/null
	run bash -c 'printf "{\"bundle\":\"/\",\"status\":\"running\",\"pid\":1}" | "$0" createRuntime; exit $?' \
		"$hook" create --bundle "$BATS_TEST_TMPDIR/bundle" x
	[[ $status -eq 0 && -z $output ]]
}

@test "a state that has no end is refused at a MiB" {
	docker_hook
	refused 1 "[EFBIG]" bash -c 'head -c 1048577 /dev/zero | "$hook" prestart'
	refused 1 "[EFBIG]" bash -c 'yes | "$hook" prestart'
	refused 1 "[E_BAD_STATE]" bash -c 'head -c 1048576 /dev/zero | tr "\0" "[" | "$hook" prestart'
}

@test "a state that never comes is given up" {
	export hook
	refused 1 "[ETIMEDOUT]" bash -c 'sleep 20 | "$hook" prestart & hooks=$!; trap "kill $(jobs -p)" EXIT; wait $hooks'
}

@test "a container that asks for nothing is left alone, on a host without a GPU and with a broken configuration" {
	echo '{' >"$BATS_TEST_TMPDIR/config.json"
	for environment in '' 'NVIDIA_VISIBLE_DEVICES=' 'NVIDIA_VISIBLE_DEVICES=void' \
		'NVIDIA_DRIVER_CAPABILITIES=nonsense' 'NVIDIA_REQUIRE_CUDA=nonsense'; do
		run "$hook" -config "$BATS_TEST_TMPDIR/config.json" prestart < <(state "$environment")
		[[ $status -eq 0 && -z $output ]]
	done
	refused 1 "[E_BAD_CONFIG]" "$hook" -config "$BATS_TEST_TMPDIR/config.json" prestart < <(state NVIDIA_VISIBLE_DEVICES=all)
}

@test "a log that cannot be written is no reason for a container that asks for nothing to fail" {
	local log

	mkfifo "$BATS_TEST_TMPDIR/fifo"
	for log in /none/log "$BATS_TEST_TMPDIR/fifo"; do
		run timeout 60 "$hook" -debug="$log" prestart < <(state)
		[[ $status -eq 0 && -z $output ]]
		refused 1 "cannot write the log of --debug: No such" timeout 60 "$hook" -debug="$log" prestart < <(state NVIDIA_VISIBLE_DEVICES=all)
	done
}

@test "what a container asks for wrongly is said" {
	refused 1 "[E_UNKNOWN_CAPABILITY]" "$hook" prestart < <(state NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=nonsense)
	refused 1 "[E_BAD_REQUIREMENT]" "$hook" prestart < <(state NVIDIA_VISIBLE_DEVICES=all 'NVIDIA_REQUIRE_CUDA=cuda=>1')
}

# A state as above whose config.json has hooks of ours for devices a and b, behind somebody else's.
cdi_state() {
	local state

	state=$(state NVIDIA_VISIBLE_DEVICES=void)
	jq '.hooks.createRuntime = [{path: "/bin/true", args: ["true", "--device=x"]},
		(("a", "b") as $device | {path: "/usr/bin/ctr-gpu-hook", args: ["ctr-gpu-hook", "--device=" + $device, "createRuntime"]})]' \
		"$BATS_TEST_TMPDIR/bundle/config.json" >"$BATS_TEST_TMPDIR/bundle/new"
	mv "$BATS_TEST_TMPDIR/bundle/new" "$BATS_TEST_TMPDIR/bundle/config.json"
	echo "$state"
}

@test "of the hooks of a CDI spec the first one acts" {
	for device in a b; do
		run bash -c 'exec -a ctr-gpu-hook "$0" "--device=$1" createRuntime <<<"$2"' "$hook" "$device" "$(cdi_state)"
		echo "device $device: status $status: $output"
		[[ $device == a && $status -eq 1 && $output == *"[E_"* ]] || [[ $device == b && $status -eq 0 && -z $output ]]
	done
	# One that is none of them acts for all of them and itself; so does one that only shows what it would do.
	refused 1 "[E_" "$hook" --device=c createRuntime < <(cdi_state)
	refused 1 "[E_" "$hook" --device=b --dry-run createRuntime < <(cdi_state)
	# Without a device of its own it is a hook as ever.
	run "$hook" createRuntime < <(cdi_state)
	[[ $status -eq 0 && -z $output ]]
}

# The system calls of the hook, up to the first read of the state.
trace() {
	command -v strace >/dev/null || skip "needs strace"
	strace -o "$BATS_TEST_TMPDIR/trace" -e trace='!mmap,munmap,brk,mprotect' "$@" >/dev/null 2>&1 </dev/null || true
	cat "$BATS_TEST_TMPDIR/trace"
}

@test "it makes a known place of its process before it reads its arguments" {
	run trace "$hook" nonsense
	for call in 'close_range(3, ' 'chdir("/")' 'umask(022)' 'prctl(PR_SET_NO_NEW_PRIVS, 1' 'prctl(PR_SET_DUMPABLE, SUID_DUMP_DISABLE' \
		'RLIMIT_CORE, {rlim_cur=0, rlim_max=0}' 'rt_sigprocmask(SIG_SETMASK, []' 'capset('; do
		[[ ${output%%nonsense*} == *"execve("* ]] # the trace begins with the arguments
		behind=${output#*$'\n'}
		[[ ${behind%%no stage*} == *"$call"* ]] || {
			echo "missing before the message: $call"
			return 1
		}
	done
}

@test "it keeps neither inherited descriptors nor its environment nor needless capabilities" {
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	LD_PRELOAD=/none CANARY=in-a-coal-mine "$hook" prestart <"$BATS_TEST_TMPDIR/fifo" 7</etc/passwd &
	pid=$!
	exec 9>"$BATS_TEST_TMPDIR/fifo"
	# It reads its standard input.
	until [[ $(readlink "/proc/$pid/exe") == "$hook" && $(cut -d " " -f 1,2 "/proc/$pid/syscall") == "0 0x0" ]]; do sleep 0.02; done
	ls -l "/proc/$pid/fd" >"$BATS_TEST_TMPDIR/fds"
	cat "/proc/$pid/status" >"$BATS_TEST_TMPDIR/status"
	cwd=$(readlink "/proc/$pid/cwd")
	exec 9>&-
	wait "$pid" || true
	[[ $(grep -c -- '->' "$BATS_TEST_TMPDIR/fds") -eq 3 && $cwd == / ]]
	grep -qE '^NoNewPrivs:\s*1$' "$BATS_TEST_TMPDIR/status"
	# DAC_OVERRIDE, KILL, SETGID, SETUID
	grep -qE '^CapEff:\s*00000000000000e2$' "$BATS_TEST_TMPDIR/status"
	# And, only permitted: SYS_CHROOT, SYS_PTRACE, SYS_ADMIN, NET_ADMIN, SYSLOG, and SYS_RESOURCE where root has it.
	grep -qE '^CapPrm:\s*000000040[01]2c10e2$' "$BATS_TEST_TMPDIR/status"
}

@test "nothing in its environment can load code into it" {
	dynamic=$(readelf -dW "$hook")
	if [[ $dynamic == *libasan* ]]; then skip "a sanitized hook is an ordinary program"; fi
	[[ $dynamic != *NEEDED* ]]
	run readelf -lW "$hook"
	[[ $status -eq 0 && $output != *INTERP* ]]
}

@test "the registration for hooks.d is what Podman expects" {
	json=$here/../../hooks/ctr-gpu.json
	jq -e '.version == "1.0.0" and .when.always == true and .hook.timeout > 60 and (.hook.env | length) > 0
		and .stages == [.hook.args[1], "poststop"] and (.hook.path | startswith("/"))' "$json" >/dev/null
	stage=$(jq -r '.hook.args[1]' "$json")
	run "$hook" "$stage" < <(state '')
	[[ $status -eq 0 && -z $output ]]
}

@test "a message that standard error would lose is in the system log" {
	busybox syslogd --help >/dev/null 2>&1 || skip "needs busybox syslogd"
	docker_hook
	export log=$BATS_TEST_TMPDIR/log
	state NVIDIA_VISIBLE_DEVICES=all >"$log.state"
	# A /dev of its own, so that its /dev/log is nobody else's, and no GPU is in it.
	unshare --mount bash -c '
		mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 && exec 3>&- || exit
		busybox syslogd -n -O "$log" &
		trap "kill $!" EXIT
		for _ in {1..3000}; do [[ -S /dev/log ]] && break; sleep 0.02; done
		"$hook" prestart <<<"{" 2>&1 | cat >"$log.heard"
		"$hook" prestart <<<"[]" 2>/dev/null
		"$hook" createRuntime <"$log.state" 2>"$log.started" && echo started >>"$log.started"
		for _ in {1..3000}; do grep -qs E_NO_DEVICE "$log" && break; sleep 0.02; done
	'
	grep -qF 'ctr-gpu-hook: [E_BAD_STATE]' "$log.heard"
	[[ $(grep -cF 'daemon.err ctr-gpu-hook: [E_BAD_STATE]' "$log") -eq 1 ]]
	# And that a container starts without what it asks for.
	[[ $(<"$log.started") == started ]]
	grep -F 'daemon.warn' "$log" | grep -F 'ctr-gpu-hook: warning: [E_NO_DEVICE]' | grep -F 'starts without'
}

@test "an engine in a chroot: the container's paths are its own" {
	local root=$BATS_TEST_TMPDIR/chroot

	! file -L "$hook" | grep -q interpreter || skip "a sanitized hook is not static"
	mkdir -p "$root"/{bin,dev,proc,sys,usr/lib/wsl,etc/ctr-gpu,bundle,rootfs/etc}
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp "$hook" "$root/bin/"
	echo '{"inventory": "ioctl"}' >"$root/etc/ctr-gpu/config.json"
	echo '{"root": {"path": "/rootfs"}, "process": {"env": ["NVIDIA_VISIBLE_DEVICES=all"]}}' >"$root/bundle/config.json"
	run "$here/sandbox" wsl-nvidia -- bash -c '
		mount --bind "$0" "$0" || exit
		for directory in dev proc sys usr/lib/wsl; do
			mount --rbind "/$directory" "$0/$directory" || exit
		done
		chroot "$0" /bin/busybox sh -c '\''
			export PATH=/bin
			busybox unshare -m busybox sleep 60 &
			until [ "$(busybox tr "\0" " " <"/proc/$!/cmdline")" = "busybox sleep 60 " ]; do busybox sleep 0.05; done
			printf "{\"ociVersion\": \"1.0.2\", \"id\": \"t\", \"status\": \"creating\", \"pid\": %d, \"bundle\": \"/bundle\"}" $! |
				ctr-gpu-hook createRuntime && busybox ls "/proc/$!/root/rootfs/usr/lib/wsl/lib" "/proc/$!/root/rootfs/dev"
			status=$?
			kill $!
			exit $status
		'\'' 2>&1
	' "$root"
	[[ $status -eq 0 && $output == *libcuda.so.1* && $output == *dxg* ]] || {
		echo "$output"
		return 1
	}
}

# 16 MB of values that are two characters long, which took 850 MB of memory outside of the container's cgroup.
@test "what a configuration costs does not grow with the number of things in it" {
	for ask in "" NVIDIA_VISIBLE_DEVICES=all; do
		state "$ask" >"$BATS_TEST_TMPDIR/state"
		for many in '"",' '{},' '1,'; do
			jq -c --arg many "$many" 'if $many == "\"\"," then .process.env += ["HERE"] elif $many == "{}," then .mounts = ["HERE"]
				else .process.user.additionalGids = ["HERE"] end' "$BATS_TEST_TMPDIR/bundle/config.json" >"$BATS_TEST_TMPDIR/short"
			MANY=$many awk '{ many = ENVIRON["MANY"]; while (length(many) < 8000000) many = many many
				n = index($0, "\"HERE\""); print substr($0, 1, n - 1) many substr($0, n) }' \
				"$BATS_TEST_TMPDIR/short" >"$BATS_TEST_TMPDIR/bundle/config.json"
			run prlimit --as=134217728 "$hook" prestart <"$BATS_TEST_TMPDIR/state"
			echo "$ask, $many: $status $output"
			if [[ -z $ask ]]; then
				[[ $status -eq 0 && -z $output ]]
			else
				[[ $status -ne 0 && $output == *"config.json cannot be used: more than 131072 values"* ]]
			fi
			cp "$BATS_TEST_TMPDIR/short" "$BATS_TEST_TMPDIR/bundle/config.json"
			sed -i 's/,\?"HERE"//' "$BATS_TEST_TMPDIR/bundle/config.json"
		done
	done
}
