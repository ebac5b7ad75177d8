#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2030,SC2031,SC2034
#
# Images made to harm the host, each with runc and with crun. $outside stands for the host: a directory with a secret that
# no image shape may have read, changed or added to. The published attacks on GPU hooks and runtimes are all here; a comment
# names each. In images.bats a hook gives the containers their GPUs, and through a link images-runtime.bats the shim does.

load ../e2e/engines

setup_file() {
	require_root
	require_program runc
	require_program crun
	image debian >/dev/null
}

setup() {
	outside=$BATS_TEST_TMPDIR/outside
	here=$BATS_TEST_TMPDIR/bundle
}

with_shim() {
	[[ $BATS_TEST_FILENAME == *-runtime.bats ]]
}

# hurl RUNTIME: the bundle's process run to its end
hurl() {
	if with_shim; then
		run_bundle wsl-nvidia ctr-gpu-runtime "$here" "{\"runtimes\": [\"$1\"]}"
	else
		run_bundle wsl-nvidia "$1" "$here"
	fi
}

# Everything outside: names, types, modes, owners, contents.
picture() {
	find "$outside" -printf '%P %y %m %U:%G %l\n' | sort
	find "$outside" -type f -exec sha256sum {} +
}

# What a runtime refuses before its hooks run, ours is shown by hand, on both kinds of host: nothing outside changes.
by_hand() {
	local commands=$1 before profile

	for profile in wsl-nvidia native-no-configs; do
		echo "by hand, $profile:"
		rm -rf "$here" "$outside"
		mkdir -p "$outside"
		echo secret >"$outside/secret"
		bundle debian "$here"
		(cd "$here/rootfs" && eval "$commands")
		before=$(picture)
		run sandbox "$profile" timeout 60 ctr-gpu configure "$here/rootfs"
		echo "$output"
		[[ $status -lt 124 && $(picture) == "$before" ]]
		expect_not secret
	done
}

# shape EXPECTATION… -- COMMANDS [JQ-FILTER]: an image in whose root COMMANDS were run; what became of it is as expected
shape() {
	local expectation=() before filter runtime commands

	while [[ $1 != -- ]]; do
		expectation+=("$1")
		shift
	done
	commands=$2
	filter=${3:-.}
	for runtime in runc crun; do
		echo "with $runtime:"
		rm -rf "$here" "$outside"
		mkdir -p "$outside"
		echo secret >"$outside/secret"
		with_shim && filter="del(.hooks) | $filter"
		bundle debian "$here" "$filter"
		(cd "$here/rootfs" && eval "$commands")
		before=$(picture)
		run hurl "$runtime"
		echo "$output"
		[[ $(picture) == "$before" ]]
		expect_not secret
		"${expectation[@]}"
	done
	[[ ${expectation[0]} != whatever ]] || by_hand "$commands"
}

starts() {
	expect_status 0
	expect_line "cuInit=0"
}

# refused TEXT: the container does not start, and the hook says why (crun does not show what a hook says)
refused() {
	# A runtime makes what is missing behind a symlink, in the image.
	with_shim && return
	[[ $status -ne 0 ]]
	expect_not "cuInit"
	[[ $runtime == crun ]] || expect "$1"
}

# The root directory was reached by a link that others than root could have made.
linked() {
	[[ $status -ne 0 ]]
	expect "is reached by a symlink"
}

# Whether it starts is the runtime's business; only what is outside matters, there and by hand.
whatever() {
	:
}

without_dev='.mounts |= map(select(.destination | startswith("/dev") | not))'

# ---- directories that are symlinks (CVE-2024-0132, -0133, -0134, CVE-2025-23267, CVE-2026-24260, runc CVE-2026-41579) ----

@test "/etc/OpenCL and the ICD file in it, which is made where the host has none" {
	by_hand 'mkdir etc/OpenCL; ln -s "../../../../../../../../../$outside" etc/OpenCL/vendors'
	by_hand 'mkdir -p etc/OpenCL/vendors; ln -s "$outside/secret" etc/OpenCL/vendors/nvidia.icd'
	by_hand 'mkdir -p etc/OpenCL/vendors; ln -s /proc/self/root/"$outside/secret" etc/OpenCL/vendors/nvidia.icd'
	by_hand 'mkdir -p etc/OpenCL/vendors; mkfifo etc/OpenCL/vendors/nvidia.icd'
}

# bats test_tags=kernel
@test "/usr/lib/wsl leads to a directory of the host" {
	shape starts -- 'ln -s "$outside" usr/lib/wsl'
	[[ -d $here/rootfs$outside/lib ]]
	shape starts -- 'ln -s "../../../../../../../../../../../..$outside" usr/lib/wsl'
}

@test "/usr/lib/wsl leads to a directory of the host that the image has too" {
	shape starts -- 'mkdir -p ".$outside" && ln -s "$outside" usr/lib/wsl'
	[[ -d $here/rootfs$outside/lib ]]
	shape starts -- 'mkdir -p ".$outside" && ln -s "../../../../../../../../../..$outside" usr/lib/wsl'
}

@test "/usr/lib is a symlink" {
	shape starts -- 'mv usr/lib moved && ln -s /moved usr/lib'
	shape starts -- 'mv usr/lib moved && ln -s ../../../../../moved usr/lib'
}

@test "/etc leads to a directory of the host" {
	shape starts -- 'mv etc old && ln -s "$outside" etc'
	[[ -f $here/rootfs$outside/ld.so.cache ]]
	shape starts -- 'mv etc old && ln -s "../../../../../../../..$outside" etc'
	shape starts -- 'mkdir -p ".$outside" && cp -a etc/. ".$outside" && rm -r etc && ln -s "$outside" etc'
}

# runc until 1.5 (CVE-2026-41579) and crun 1.8 follow such a /dev themselves, whatever hooks there are, and put links and nodes
# of theirs into it; what is ours must not be among them.
@test "/dev leads to a directory of the host" {
	picture() {
		find "$outside" \( -name secret -o -name '*dxg*' -o -name '*wsl*' -o -name '.*' \) -printf '%P %y %m %s\n'
	}
	shape whatever -- 'rmdir dev && ln -s "$outside" dev'
	shape whatever -- 'rmdir dev && ln -s "$outside" dev' "$without_dev"
	shape whatever -- 'rmdir dev && ln -s "../../../../../../../..$outside" dev' "$without_dev"
}

@test "/proc leads to a directory of the host (runc CVE-2019-19921, CVE-2023-27561)" {
	shape whatever -- 'rmdir proc && ln -s "$outside" proc'
	shape whatever -- 'rmdir proc && ln -s /usr/lib proc'
}

# What is mounted on the root itself would be what the container starts in.
@test "/usr/lib/wsl/lib leads to the root directory" {
	shape refused "lead in a circle, or to its root" -- 'mkdir -p usr/lib/wsl && ln -s / usr/lib/wsl/lib'
	shape refused "lead in a circle, or to its root" -- 'mkdir -p usr/lib/wsl && ln -s ../../.. usr/lib/wsl/lib'
	run sandbox wsl-nvidia bash -c 'ctr-gpu configure "$0"; grep -c " $0" /proc/self/mountinfo' "$here/rootfs"
	expect "lead in a circle, or to its root"
	expect_line 0
}

# bats test_tags=kernel
@test "magic links of /proc" {
	shape refused "/usr/lib/wsl" -- "ln -s '/proc/self/cwd' usr/lib/wsl"
	shape refused "/usr/lib/wsl" -- "ln -s '/proc/1/root$outside' usr/lib/wsl"
}

# A mount over a file of procfs would have the runtime write the container's security label elsewhere (runc CVE-2019-16884).
# bats test_tags=kernel
@test "targets that lead into /proc and /sys" {
	shape refused "into /proc" -- 'mkdir -p usr/lib/wsl && ln -s /proc/sys usr/lib/wsl/lib'
	shape refused "/usr/lib/wsl/lib" -- 'ln -s /sys/kernel usr/lib/wsl'
	shape refused "into /proc" -- 'ln -s /proc/version dev/dxg' "$without_dev"
}

# A procfs that is none would have labels and settings written wherever it leads (runc CVE-2019-16884, CVE-2025-52881).
# bats test_tags=kernel
@test "a volume with links over /proc" {
	shape whatever -- 'mkdir -p fake/self/attr && ln -s "$outside/secret" fake/self/attr/exec && ln -s "$outside" fake/self/fd && ln -s "$outside" fake/driver' \
		".mounts |= map(if .destination == \"/proc\" then {destination: \"/proc\", type: \"bind\", source: \"$here/rootfs/fake\", options: [\"rbind\", \"rw\"]} else . end)"
}

@test "/sys leads to a directory of the host (runc CVE-2023-28642)" {
	shape whatever -- 'rmdir sys && ln -s "$outside" sys'
	shape whatever -- 'rmdir sys && ln -s "../../../../../../../..$outside" sys'
}

# A runtime that takes these for the real ones mounts what they lead to (runc CVE-2025-31133, CVE-2025-52565).
@test "/dev/null and /dev/console of the image are links" {
	shape whatever -- 'ln -s /proc/sysrq-trigger dev/null && ln -s "$outside/secret" dev/console' "$without_dev"
	shape whatever -- 'ln -s "../../../../../../../..$outside/secret" dev/null && mkdir dev/pts && ln -s "$outside" dev/pts/0' "$without_dev"
}

# Whether a directory of the host is left open for the container's process (runc CVE-2024-21626).
@test "a working directory that is a descriptor of ours" {
	local number

	for number in 3 4 5 6 7 8 9 10; do
		shape whatever -- : ".process.cwd = \"/proc/self/fd/$number\" | .process.args = [\"cat\", \"../../../../../../../../../..$outside/secret\"]"
	done
}

# Whoever sees it could open the host's program by its /proc/PID/exe and write to it (runc CVE-2019-5736, CVE-2024-0135).
@test "nothing of ours enters a running container" {
	with_shim && skip "by hand, whatever the runtime"
	bundle debian "$here" 'del(.hooks) | .process.args = ["sh", "-c", "while :; do ls -l /proc/[0-9]*/exe; done >/seen 2>/dev/null"]'
	run sandbox wsl-nvidia bash -ec '
		cd "$1"
		jq --arg path "$CTR_GPU_TEST_CGROUP/container" ".linux.cgroupsPath = \$path" config.json >config.new
		mv config.new config.json
		memlock runc --root /run/runtime run --detach container </dev/null >/dev/null 2>&1
		pid=$(runc --root /run/runtime state container | jq .pid)
		until [[ -s rootfs/seen ]]; do sleep 0.02; done
		for i in 1 2 3 4 5; do ! ctr-gpu configure --pid="$pid" "$PWD/rootfs"; done
		runc --root /run/runtime delete --force container' - "$here"
	echo "$output"
	expect_status 0
	[[ $(grep -c E_CONTAINER_RUNNING <<<"$output") -eq 5 ]]
	grep -q /busybox "$here/rootfs/seen"
	run grep -a ctr-gpu "$here/rootfs/seen"
	expect_status 1
}

# ---- files in the way ----

@test "a file of any kind where a directory must be" {
	local make

	for make in 'touch' 'mkfifo' 'mknod_null' 'make_socket'; do
		shape refused "/usr/lib/wsl/lib" -- "mkdir usr/lib/wsl && $make usr/lib/wsl/lib"
	done
}

mknod_null() {
	mknod "$1" c 1 3
}

make_socket() {
	perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) && bind(S, sockaddr_un($ARGV[0])) or die' "$1"
}

@test "a file of any kind at /dev/dxg" {
	local make

	for make in 'touch' 'mkfifo' 'mknod_null' 'make_socket' 'touch dev/file && ln -s file'; do
		shape starts -- "$make dev/dxg" "$without_dev"
	done
	shape refused "/dev/dxg" -- 'mkdir dev/dxg' "$without_dev"
	shape starts -- 'ln -s "$outside/secret" dev/dxg' "$without_dev"
	shape refused "/dev/dxg" -- 'ln -s dxg dev/dxg' "$without_dev"
}

# ---- loader files ----

cache_is_ours() {
	starts
	[[ -f $here/rootfs/etc/ld.so.cache && ! -L $here/rootfs/etc/ld.so.cache ]]
	[[ $(stat -c '%a %u:%g' "$here/rootfs/etc/ld.so.cache") == "644 0:0" ]]
}

@test "/etc/ld.so.cache is no cache" {
	local make

	for make in 'ln -s "$outside/secret"' 'ln -s "../../../../../..$outside/secret"' 'ln -s "$outside/new"' mkfifo mknod_null make_socket \
		touch 'head -c 100000 /dev/urandom >' 'head -c 200 "$(image debian)/etc/ld.so.cache" >'; do
		shape cache_is_ours -- "rm etc/ld.so.cache && $make etc/ld.so.cache"
	done
	shape refused "/etc/ld.so.cache" -- 'rm etc/ld.so.cache && mkdir etc/ld.so.cache'
	shape refused "/etc/ld.so.cache" -- 'truncate -s 3G etc/ld.so.cache'
}

@test "/etc/ld.so.cache is a second name of another file" {
	shape cache_is_ours -- 'echo precious >precious && ln -f precious etc/ld.so.cache'
	[[ $(<"$here/rootfs/precious") == precious ]]
}

@test "the loader's configuration leads out or blocks" {
	shape starts -- 'rm -r etc/ld.so.conf.d && ln -s "$outside" etc/ld.so.conf.d && mkdir -p ".$outside"'
	shape starts -- 'ln -s "$outside/secret" etc/ld.so.conf.d/000-first.conf && mkfifo etc/ld.so.conf.d/001-second.conf'
	shape starts -- 'rm etc/ld.so.conf && mkfifo etc/ld.so.conf'
	shape starts -- 'rm -r etc/ld.so.conf.d && ln -s "$outside" etc/ld.so.conf.d'
}

# We may read what the container may not, and what we read gets into a file for everybody.
not_read() {
	starts
	[[ $(sed 1d "$here/rootfs/$musl_path") == /lib:/usr/local/lib:/usr/lib ]]
}

@test "the loader's configuration leads to files of a volume or the kernel's that only root may read" {
	local musl_path target
	musl_path=etc/ld-musl-$(uname -m).path

	for target in /volume/secret /proc/iomem /proc/kmsg /sys/kernel/notes; do
		shape not_read -- 'chmod 600 "$outside/secret" && mkdir volume && touch "lib/ld-musl-$(uname -m).so.1" && ln -s "$target" "$musl_path"' \
			".mounts += [$(volume)]"
	done
	shape starts -- 'rm etc/ld.so.cache && ln -s /proc/kmsg etc/ld.so.cache'
}

# ---- nothing of the image is run, loaded or mounted ----

# CVE-2024-0136, CVE-2024-0137
not_run() {
	starts
	[[ ! -e $here/rootfs/ran ]]
}

@test "the image's ldconfig is not run" {
	shape not_run -- 'for name in usr/sbin/ldconfig usr/sbin/ldconfig.real usr/bin/nvidia-smi; do
		printf "#!/bin/sh\necho x >>/ran\necho x >>$outside/ran\n" >"$name" && chmod 755 "$name"; done'
}

preload() {
	echo "__attribute__((constructor)) static void f(void) { __builtin_trap(); }" |
		gcc -shared -fPIC -x c -o "$BATS_TEST_TMPDIR/poc.so" - && cp "$BATS_TEST_TMPDIR/poc.so" "$here/rootfs/poc.so" &&
		cp "$BATS_TEST_TMPDIR/poc.so" "$here/poc.so"
}

# CVE-2025-23266: three lines of Dockerfile. A hook that loads it traps.
@test "LD_PRELOAD of the image" {
	with_shim && skip "there is no hook"
	if readelf -dW "$CTR_GPU_BUILD/bin/ctr-gpu-hook" | grep -q libasan; then skip "a sanitized hook is an ordinary program, which libraries can be loaded into"; fi
	shape refused "createRuntime" -- preload '.process.env += ["LD_PRELOAD=/proc/self/cwd/poc.so"]
		| .hooks = {"createContainer": [.hooks.prestart[0] | del(.env) | .args[1] = "createContainer"]}'
	expect_not "signal"
	shape starts -- preload '.hooks.prestart[0].env = ["LD_PRELOAD=/proc/self/cwd/poc.so", "LD_AUDIT=/proc/self/cwd/poc.so"]'
}

only_ours_is_mounted() {
	expect_status 0
	expect "/usr/lib/wsl/drivers/nv_"
	expect_not "compat"
	expect_not "$outside"
}

# CVE-2024-0132, CVE-2025-23359: libraries that the image offers must not become mounts.
@test "CUDA compatibility libraries that lead to the host's root" {
	shape only_ours_is_mounted -- 'mkdir -p usr/local/cuda && ln -s / usr/local/cuda/compat &&
		ln -s "$outside" usr/local/cuda/lib64 && ln -s "$outside/secret" usr/lib/libcuda.so.1' \
		'.process.args = ["/bin/sh", "-c", "cut -d \" \" -f 4,5 /proc/self/mountinfo | grep -v \"^/ \"; cat /usr/local/cuda/lib64/* /usr/lib/libcuda.so.1; true"]'
}

# ---- volumes ----

volume() {
	jq -n --arg source "$outside" '{destination: "/volume", type: "bind", source: $source, options: ["rbind", "rw"]}'
}

@test "/etc leads to a volume, whose files stay as they are" {
	shape starts -- 'echo cache >"$outside/ld.so.cache" && mkdir "$outside/ld.so.conf.d" &&
		mv etc/passwd etc/group "$outside" && rm -r etc && ln -s volume etc && mkdir volume' ".mounts += [$(volume)]"
	shape refused "/etc/ld.so.cache" -- 'rm -r etc && ln -s volume etc && mkdir volume' ".mounts += [$(volume)]"
}

# runc CVE-2021-30465, CVE-2024-0132: a process that shares a volume swaps a directory and a symlink while containers start.
# bats test_tags=kernel
@test "a volume in which somebody swaps a directory and a symlink" {
	local shared=$BATS_TEST_TMPDIR/shared before runtime swapper round rounds=15 hooks=.

	! with_shim || hooks='del(.hooks)'

	mkdir -p "$outside/lib" "$shared/lib"
	echo secret >"$outside/secret"
	ln -s "$outside/lib" "$shared/link"
	before=$(picture)
	perl -e 'require "syscall.ph"; syscall(SYS_renameat2(), -100, $ARGV[0], -100, $ARGV[1], 2) while 1' \
		"$shared/lib" "$shared/link" 3>&- &
	swapper=$!
	bundle debian "$here" "$hooks | $(jq -rn --arg source "$shared" \
		'".mounts += [{destination: \"/usr/lib/wsl\", type: \"bind\", source: \($source | tojson), options: [\"rbind\", \"rw\"]}]"')"
	[[ -z ${CTR_GPU_TEST_EMULATED-} ]] || rounds=2
	for ((round = 0; round < rounds; round++)); do
		for runtime in runc crun; do
			run hurl "$runtime"
		done
	done
	kill "$swapper"
	[[ $(picture) == "$before" ]]
}

# ---- a failure leaves nothing behind ----

unchanged() {
	refused "/etc/ld.so.cache"
	[[ $(cd "$here/rootfs" && find . -path ./dev -prune -o -printf '%P %y %m %s %l\n' | sort) == "$(<"$BATS_TEST_TMPDIR/before")" ]]
}

# bats test_tags=kernel
@test "the image is as before when the last step fails" {
	shape unchanged -- 'rm etc/ld.so.cache && mkdir etc/ld.so.cache &&
		find . -path ./dev -prune -o -printf "%P %y %m %s %l\n" | sort >"$BATS_TEST_TMPDIR/before"'
}

# ---- the root directory itself ----

# Who owns a directory above the root can change it while the container is made: here, after the runtime has mounted it.
@test "the root directory is swapped for a link to a directory of the host" {
	with_shim && skip "the mounts are crun's own, made before"
	for link in "$outside" "/proc/self/cwd" "../outside"; do
		shape refused "is reached by a symlink" -- 'chown 12345 "$here"' ".hooks.prestart |= [{path: \"/bin/sh\", args: [\"sh\", \"-c\",
			\"cd $here && mv rootfs away && ln -s $link rootfs\"]}] + ."
	done
}

# The shim acts before a runtime has looked at the root.
@test "the root directory is a link to a directory of the host that others than root could have made" {
	with_shim || skip "hooks run when the runtime has refused such a link (runc) or made its own files behind it (crun)"
	for link in "$outside" "../outside" "/proc/self/root$outside"; do
		shape linked -- 'mkdir "$outside/etc" && chown -h 12345 "$here" && cd "$here" && mv rootfs away && ln -s "$link" rootfs'
	done
}

# Names of the host are those of the image once the container is entered: a FIFO at /run/ctr-gpu/devices.lock, files in
# /run/systemd/transient. With the shim the runtime allows the devices.
@test "device rules are changed before the container is entered" {
	with_shim && skip "the runtime does it"
	require_program strace
	bundle debian "$here" '.hooks.prestart[0] |= (.args = ["bash", "-c", "exec strace -f -qq -o '"$BATS_TEST_TMPDIR/trace"' -e trace=setns,write,bpf \(.path) prestart"]
		| .path = "/bin/bash" | .env = ["PATH=/usr/sbin:/usr/bin"])'
	run hurl runc
	sed "1,/setns(.*CLONE_NEWNS/d" "$BATS_TEST_TMPDIR/trace" >"$BATS_TEST_TMPDIR/entered"
	for call in "setns\(.*CLONE_NEWNS" "c 10:183|BPF_PROG_ATTACH"; do
		grep -E "$call" "$BATS_TEST_TMPDIR/trace"
	done
	! grep -E "c 10:183|BPF_PROG_ATTACH" "$BATS_TEST_TMPDIR/entered" || return 1
}
