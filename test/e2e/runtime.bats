#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# ctr-gpu-runtime in front of runc and crun, as an engine calls it.

load engines

setup_file() {
	require_root
	require_program runc
	require_program crun
	image debian >/dev/null
}

directory() {
	echo "$BATS_TEST_TMPDIR/bundle"
}

# prepare [JQ-FILTER]: a fresh bundle without a hook
prepare() {
	rm -rf "$(directory)"
	bundle debian "$(directory)" "del(.hooks) | ${1:-.}"
}

# shim PROFILE RUNTIME: the bundle's process run to its end by the shim and this runtime, which is left to mount
shim() {
	run sandbox "$1" bash -c '
		cd "$1" || exit
		known_runtime "$2"
		jq --arg path "$CTR_GPU_TEST_CGROUP/container" ".linux.cgroupsPath = \$path" config.json >config.new &&
			mv config.new config.json || exit
		exec memlock ctr-gpu-runtime --root /run/runtime run container
	' shim "$(directory)" "$2"
}

# start PROFILE RUNTIME [JQ-FILTER]
start() {
	prepare "${3:-.}"
	shim "$1" "$2"
}

config() {
	jq --compact-output "$1" "$(directory)/config.json"
}

gpu() {
	start wsl-nvidia "$1"
	expect_gpu
	[[ $(config '.hooks | keys') == '["poststop"]' ]]
}

# The hook does what lies in the root filesystem.
@test "a runtime that is not known to hold the places of mounts gets none, and the container its GPU" {
	local runtime

	for runtime in "runc version 1.1.5" "youki version 1" ""; do
		prepare
		run sandbox wsl-nvidia bash -c '
			cd "$1" || exit
			known_runtime runc
			sed -i "s/runc version 1.4.0/$2/" /run/known/runc
			jq --arg path "$CTR_GPU_TEST_CGROUP/container" ".linux.cgroupsPath = \$path" config.json >config.new && mv config.new config.json || exit
			memlock ctr-gpu-runtime --root /run/runtime run container
		' unknown "$(directory)" "$runtime"
		expect_gpu
		[[ $(config '.hooks | keys') == '["createRuntime","poststop"]' ]]
		[[ $(config '[.mounts[].destination | select(startswith("/usr/lib"))]') == "[]" ]]
	done
}

nix_path() {
	echo "/usr/lib/wsl/lib:$(store wsl-nvidia 0)"
}

# start_nix RUNTIME [VARIABLE…]: a program of Nix, with these variables besides
start_nix() {
	rm -rf "$(directory)"
	bundle nix "$(directory)" "del(.hooks) | .process.args = [\"/bin/sh\", \"-c\", \"env; probe\"]
		| .process.env += $(jq -cn '$ARGS.positional' --args -- "${@:2}")"
	shim wsl-nvidia "$1"
}

programs_of_nix() {
	start_nix "$1"
	expect_gpu
	expect_line "LD_LIBRARY_PATH=$(nix_path)"
	# What the container has in it stays, in front; an empty one would mean the working directory.
	start_nix "$1" LD_LIBRARY_PATH=/other LD_LIBRARY_PATH=/mine:
	expect_gpu
	expect_line "LD_LIBRARY_PATH=/mine::$(nix_path)"
	start_nix "$1" LD_LIBRARY_PATH=
	expect_line "LD_LIBRARY_PATH=$(nix_path)"
	start_nix "$1" "LD_LIBRARY_PATH=/usr/lib/wsl/lib:/mine"
	expect_line "LD_LIBRARY_PATH=/usr/lib/wsl/lib:/mine:$(store wsl-nvidia 0)"
	start_nix "$1" "LD_LIBRARY_PATH=$(nix_path)"
	expect_line "LD_LIBRARY_PATH=$(nix_path)"
}

@test "programs of Nix, whose loader reads no /etc/ld.so.cache, find the driver" {
	both programs_of_nix
	run sandbox wsl-nvidia ctr-gpu-runtime --dry-run create --bundle "$(directory)" x
	[[ $(jq '.environment | length' <<<"$output") == 0 ]]
	jq 'del(.process.env[] | select(startswith("LD_")))' "$(directory)/config.json" >"$(directory)/new"
	mv "$(directory)/new" "$(directory)/config.json"
	run sandbox wsl-nvidia ctr-gpu-runtime --dry-run create --bundle "$(directory)" x
	[[ $(jq -r '.environment[] | "\(.name)=\(.value)"' <<<"$output") == LD_LIBRARY_PATH=$(nix_path) ]]
	# Others have no need of it.
	prepare
	run sandbox wsl-nvidia ctr-gpu-runtime --dry-run create --bundle "$(directory)" x
	[[ $(jq '.environment | length' <<<"$output") == 0 ]]
}

# variables RUNTIME [VARIABLE…]: what a container that asks for the Intel GPU, and has these besides, is given
variables() {
	start wsl-hybrid "$1" "$(script env) | $(visible 1) | .process.env += $(jq -cn '$ARGS.positional' --args -- NVIDIA_DRIVER_CAPABILITIES=all "${@:2}")"
	expect_status 0
}

variables_of_drivers() {
	variables "$1"
	expect_line "GALLIUM_DRIVER=d3d12"
	expect_line "LIBVA_DRIVER_NAME=d3d12"
	expect_line "MESA_D3D12_DEFAULT_ADAPTER_NAME=Intel(R) Iris(R) Xe Graphics"
	variables "$1" GALLIUM_DRIVER=llvmpipe LIBVA_DRIVER_NAME= NVIDIA_DRIVER_CAPABILITIES=graphics,video
	expect_line "GALLIUM_DRIVER=llvmpipe"
	expect_line "LIBVA_DRIVER_NAME="
	expect_line "MESA_D3D12_DEFAULT_ADAPTER_NAME=Intel(R) Iris(R) Xe Graphics"
	[[ $(grep -c "^GALLIUM_DRIVER=" <<<"$output") == 1 ]]
	variables "$1" NVIDIA_DRIVER_CAPABILITIES=compute
	expect_not d3d12
}

@test "variables that drivers need, but never in place of the container's own" {
	both variables_of_drivers
	prepare "$(visible 0) | .process.env += [\"NVIDIA_DRIVER_CAPABILITIES=all\", \"GALLIUM_DRIVER=zink\"]"
	run sandbox wsl-hybrid ctr-gpu-runtime --dry-run create --bundle "$(directory)" x
	[[ $(jq -c '[.environment[].name]' <<<"$output") == '["LIBVA_DRIVER_NAME","MESA_D3D12_DEFAULT_ADAPTER_NAME"]' ]]
}

# A shell command: the nodes of vgem, with numbers of DRM, and another driver's
vgem='mount -t tmpfs none /sys/devices/platform && mkdir -p /sys/devices/platform/vgem/drm/{card0,renderD128,version} /dev/dri &&
	mknod /dev/dri/card0 c 226 0 && mknod /dev/dri/renderD128 c 226 128 && mknod /dev/dri/renderD129 c 226 129'

nodes_of_vgem() {
	prepare "$(script 'ls /dev/dri; for number in 128 129; do probe node 226 $number /tmp/$number; done') | $(visible 1)
		| .process.env += [\"NVIDIA_DRIVER_CAPABILITIES=$2\"]
		| .process.capabilities |= map_values(. + [\"CAP_MKNOD\"])"
	run sandbox wsl-hybrid bash -c "$vgem"' && mkdir -p /etc/ctr-gpu && echo "$2" >/etc/ctr-gpu/config.json && cd "$1" &&
		jq --arg path "$CTR_GPU_TEST_CGROUP/container" ".linux.cgroupsPath = \$path" config.json >new && mv new config.json &&
		exec memlock ctr-gpu-runtime --root /run/runtime run container' vgem "$(directory)" "{\"runtimes\": [\"$1\"]}"
}

nodes_for_video() {
	nodes_of_vgem "$1" video
	expect_line card0
	expect_line renderD128
	expect_no_line renderD129
	# There is no such driver here, so that it is found missing where it may be looked for.
	expect_line "/tmp/128=ENXIO"
	expect_line "/tmp/129=EPERM"
	nodes_of_vgem "$1" compute,graphics
	expect_no_line card0
	expect_line "/tmp/128=EPERM"
}

@test "the nodes of vgem are there for video, and no other driver's" {
	both nodes_for_video
}

one_of_two_with_one_store() {
	start wsl-two-same-store "$1" "$(script 'env; probe') | $(visible 1)"
	expect_line "CUDA_DEVICE_ORDER=PCI_BUS_ID"
	expect_line "CUDA_VISIBLE_DEVICES=1"
	start wsl-two-same-store "$1" "$(script env) | $(visible all)"
	expect_not CUDA_
}

@test "one of two NVIDIA GPUs with one driver store: CUDA shows that one" {
	both one_of_two_with_one_store
}

@test "a GPU on a WSL2 host, without any hook" {
	both gpu
}

gpu_without_libdxcore() {
	start hyperv-no-libdxcore "$1" ".process.env += [\"NVIDIA_DRIVER_CAPABILITIES=utility\"] | $(script 'ls /usr/lib/wsl/drivers; probe open /dev/dxg')"
	expect_status 0
	expect_line "$(basename "$(store hyperv-no-libdxcore 0)")"
	expect_line "/dev/dxg=ok"
}

@test "a GPU on a Hyper-V guest without libdxcore" {
	both gpu_without_libdxcore
}

native() {
	start native-nvidia "$1" "$(script 'ls /dev; probe')"
	expect_status 0
	expect_line nvidiactl
	expect_line "cuInit=0"
	[[ $(config '.hooks.createRuntime | length') == 1 ]]
}

@test "a native host: what must be covered in /proc is left to a hook" {
	both native
}

native_again() {
	native "$1"
	cp "$(directory)/config.json" "$BATS_TEST_TMPDIR/first"
	shim native-nvidia "$1"
	expect_line "cuInit=0"
	diff <(jq 'del(.linux.cgroupsPath)' "$BATS_TEST_TMPDIR/first") <(config 'del(.linux.cgroupsPath)' | jq .)
}

again() {
	start wsl-nvidia "$1"
	expect_gpu
	cp "$(directory)/config.json" "$BATS_TEST_TMPDIR/first"
	find "$(directory)" | sort >"$BATS_TEST_TMPDIR/files"
	for _ in 1 2; do
		shim wsl-nvidia "$1"
		expect_gpu
	done
	# Where its cgroup is differs from sandbox to sandbox.
	diff <(jq 'del(.linux.cgroupsPath)' "$BATS_TEST_TMPDIR/first") <(config 'del(.linux.cgroupsPath)' | jq .)
	diff "$BATS_TEST_TMPDIR/files" <(find "$(directory)" | sort)
}

@test "the same bundle again" {
	both again
	both native_again
}

# Who shares the root could have put a device there, and to open one may be to do something.
@test "a file of the image is opened as what was looked at, whatever is in its place by then" {
	prepare .
	# shellcheck disable=SC2016
	run sandbox wsl-nvidia bash -ec '
		known_runtime true
		strace -f -qq -e trace=openat,openat2 -e signal=none -o /run/trace ctr-gpu-runtime create --bundle "$1" container
		grep "[(][0-9]*, .*ld.so.cache" /run/trace' - "$(directory)"
	expect_status 0
	[[ -z $(grep -v O_PATH <<<"$output") ]] || { echo "$output"; false; }
}

@test "twice leaves the same bytes" {
	prepare
	run sandbox wsl-nvidia bash -c '
		known_runtime true
		chmod 640 "$1/config.json" && chown 1:2 "$1/config.json"
		ctr-gpu-runtime create --bundle "$1" ID && cp "$1/config.json" "$1/first" &&
			ctr-gpu-runtime --log /dev/null create --bundle="$1" ID && cmp "$1/config.json" "$1/first" &&
			stat -c "%a %u:%g" "$1/config.json"
	' twice "$(directory)"
	expect_status 0
	expect_line "640 1:2"
	[[ $(config '.linux.devices[].path') == '"/dev/dxg"' ]]
}

# A process that is killed at whatever call leaves the owner, too.
@test "config.json never belongs to another user" {
	prepare
	run sandbox wsl-nvidia bash -c '
		known_runtime true
		chmod 640 "$1/config.json" && chown 1:2 "$1/config.json" && cp -p "$1/config.json" "$1/before"
		for ((number = 1; ; number++)); do
			cp -p "$1/before" "$1/new" && mv "$1/new" "$1/config.json"
			fault "$number" kill-all ctr-gpu-runtime create --bundle "$1" ID 9>/run/happened 2>/dev/null
			[[ $(</run/happened) != none ]] || break
			[[ $(stat -c "%a %u:%g" "$1/config.json") == "640 1:2" ]] || echo "call $number: $(</run/happened)"
		done 2>/dev/null
		[[ $number -lt 100 ]] || echo done
	' killed "$(directory)"
	[[ $output == "done" ]]
}

nothing() {
	prepare "$1 | $(script 'ls /dev /usr/lib; probe')"
	cp "$(directory)/config.json" "$BATS_TEST_TMPDIR/before"
	run sandbox wsl-nvidia bash -c '
		mkdir -p /etc/ctr-gpu && echo "{\"runtimes\": [\"$2\"]}" >/etc/ctr-gpu/config.json
		cd "$1" && jq --compact-output ".linux.cgroupsPath = \"$CTR_GPU_TEST_CGROUP/container\"" config.json >new && mv new config.json
		cp config.json before && memlock ctr-gpu-runtime --root /run/runtime run container && cmp config.json before
	' nothing "$(directory)" "$2"
	expect_line "/dev/dxg=ENOENT"
	expect_not "wsl"
	expect_not "differ"
	cmp "$(directory)/rootfs/etc/ld.so.cache" "$(image debian)/etc/ld.so.cache"
}

# bats test_tags=cgroup
@test "a container that asks for nothing: not a byte changes" {
	both nothing '.process.env = ["PATH=/usr/bin"]'
	both nothing '.process.env = ["PATH=/usr/bin", "NVIDIA_VISIBLE_DEVICES=void"]'
}

no_gpu() {
	start wsl-no-adapter "$1" '.process.env = ["PATH=/usr/bin"] | .process.args = ["/bin/sh", "-c", "echo works"]'
	expect_status 0
	expect_line works
	start wsl-no-adapter "$1" '.process.env |= map(sub("=all$"; "=0"))'
	expect_status 1
	expect "[E_NO_ADAPTER]"
	# What any CUDA image has in its environment.
	start wsl-no-adapter "$1" '.process.args = ["/bin/sh", "-c", "echo works"]'
	expect_status 0
	expect_line works
	run run_bundle wsl-no-adapter ctr-gpu-runtime "$(directory)" "{\"runtimes\": [\"$1\"], \"on-missing\": {\"runtime\": \"fail\"}}"
	expect_status 1
	expect "[E_NO_ADAPTER]"
}

@test "a host without a GPU runs containers that ask for none, or that ask as every CUDA image does" {
	both no_gpu
}

rest_stays() {
	start wsl-nvidia "$1" '.process.rlimits = [{"type": "RLIMIT_FSIZE", "soft": 18446744073709551615, "hard": 18446744073709551615}]
		| .annotations = {"z": "ümläut <&>", "a": "\u2028\ud83d\ude00"}' # jq itself rounds such a number when it changes something
	sed -i 's/1844674407370955[0-9]*/18446744073709551615/g' "$(directory)/config.json"
	cp "$(directory)/config.json" "$BATS_TEST_TMPDIR/before"
	run sandbox wsl-nvidia bash -c '
		known_runtime true
		ctr-gpu-runtime create --bundle "$1" ID
	' rest "$(directory)"
	expect_status 0
	[[ $(grep -o 18446744073709551615 "$(directory)/config.json" | wc -l) == 2 ]]
	diff <(jq 'del(.mounts, .linux)' "$BATS_TEST_TMPDIR/before") <(jq 'del(.mounts, .linux)' "$(directory)/config.json")
}

@test "everything else in the configuration stays as it is" {
	rest_stays runc
}

read_only() {
	start wsl-nvidia "$1" '.root.readonly = true'
	expect_gpu
	[[ $(config '.hooks | keys') == '["poststop"]' ]]
}

@test "a read-only container" {
	both read_only
}

# On a filesystem that is read-only for the runtime as well; what to mount on is there.
read_only_image() {
	prepare '.root.readonly = true'
	mkdir -p "$(directory)/rootfs/usr/lib/wsl/lib" "$(directory)/rootfs$(store wsl-nvidia 0)"
	touch "$(directory)/rootfs/usr/bin/nvidia-smi"
	run sandbox wsl-nvidia bash -c '
		mkdir -p /etc/ctr-gpu && echo "{\"runtimes\": [\"$2\"]}" >/etc/ctr-gpu/config.json && cd "$1" &&
			jq ".linux.cgroupsPath = \"$CTR_GPU_TEST_CGROUP/container\"" config.json >new && mv new config.json &&
			mkdir /run/image && mount -t tmpfs tmpfs /run/image && cp -a rootfs/. /run/image &&
			mount -o remount,ro /run/image && mount --bind /run/image rootfs && memlock ctr-gpu-runtime --root /run/runtime run container
	' read_only_image "$(directory)" "$1"
	expect_gpu
	[[ $(config '.hooks.createRuntime | length') == 1 ]]
}

@test "a read-only image" {
	both read_only_image
}

volume() {
	mkdir -p "$BATS_TEST_TMPDIR/etc"
	cp -a "$(image debian)/etc/." "$BATS_TEST_TMPDIR/etc/"
	start wsl-nvidia "$2" ".mounts += [{destination: \"$1\", type: \"bind\", source: \"$BATS_TEST_TMPDIR/etc\", options: [\"rbind\"]}]"
	expect_gpu
	cmp "$BATS_TEST_TMPDIR/etc/ld.so.cache" "$(image debian)/etc/ld.so.cache"
}

@test "a volume over /etc is not written" {
	both volume /etc
	both volume //etc/../etc
}

other_root() {
	prepare "$2"
	mv "$(directory)/rootfs" "$BATS_TEST_TMPDIR/elsewhere"
	ln -s "$BATS_TEST_TMPDIR/elsewhere" "$(directory)/link"
	shim wsl-nvidia "$1"
	expect_gpu
	rm -rf "$BATS_TEST_TMPDIR/elsewhere"
}

@test "a root filesystem outside the bundle, or behind a symlink" {
	other_root runc ".root.path = \"$BATS_TEST_TMPDIR/elsewhere\""
	other_root crun ".root.path = \"$BATS_TEST_TMPDIR/elsewhere\""
	other_root crun '.root.path = "link"' # runc 1.1 refuses one
}

no_root() {
	start wsl-nvidia "$1" '.root.path = "nowhere"'
	[[ $status -ne 0 ]]
	expect nowhere
	expect_not ctr-gpu-runtime
	prepare
	rm "$(directory)/config.json"
	run sandbox wsl-nvidia bash -c 'cd "$1" && PATH="$PATH" exec ctr-gpu-runtime run container' no_root "$(directory)"
	[[ $status -ne 0 ]]
	expect config.json
	expect_not ctr-gpu-runtime
}

@test "what is missing is the runtime's to complain about" {
	both no_root
}

rules() {
	start wsl-nvidia "$1" "$(script 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse') | .process.capabilities.bounding += [\"CAP_MKNOD\"]
		| .process.capabilities.effective += [\"CAP_MKNOD\"] | .process.capabilities.permitted += [\"CAP_MKNOD\"]
		| .linux.resources.devices += [{\"allow\": true, \"type\": \"c\", \"access\": \"m\"}]"
	expect_line "/tmp/gpu=ok"
	expect_line "/tmp/fuse=EPERM"
}

# bats test_tags=cgroup
@test "the device rule is for the GPU and nothing else" {
	both rules
}

no_rules() {
	start wsl-nvidia "$1" 'del(.linux.resources.devices)'
	expect_gpu
}

# bats test_tags=cgroup
@test "an engine that has no device rules" {
	both no_rules
}

# crun takes it for an error when a hook ends before all of the state is written to it, so that somebody else's reads it.
own_hook() {
	start wsl-nvidia "$1" ".hooks = {prestart: [{path: \"$CTR_GPU_BUILD/bin/nvidia-container-runtime-hook\",
		args: [\"nvidia-container-runtime-hook\", \"prestart\"], env: [\"A=b\"]}],
		createRuntime: [{path: \"$CTR_GPU_BUILD/bin/ctr-gpu-hook\", args: [\"ctr-gpu-hook\", \"createRuntime\"], env: [\"A=b\"]},
			{path: \"/bin/dd\", args: [\"dd\", \"of=/dev/null\", \"status=none\"]}]}"
	expect_gpu
	[[ $(config '.hooks | del(.poststop)') == '{"createRuntime":[{"path":"/bin/dd","args":["dd","of=/dev/null","status=none"]}]}' ]]
}

@test "hooks that would do the same are removed, and no others" {
	both own_hook
}

expect_native_gpu() {
	expect_status 0
	expect_line "cuInit=0"
	expect_line "device=NVIDIA H200"
	expect_line "library=/usr/lib/ctr-gpu/libcuda.so.1"
}

# A new procfs cannot be mounted where files of a simulated host lie over the old one.
procfs_of_host='.linux.namespaces |= map(select(.type != "pid"))
	| .mounts |= map(if .type == "proc" then .type = "bind" | .source = "/proc" | .options = ["rbind"] else . end)'

# user_namespace PROFILE FILTER EXPECTED RUNTIME
user_namespace() {
	prepare '.linux.namespaces += [{"type": "user"}]
		| .linux.uidMappings = [{"containerID": 0, "hostID": 100000, "size": 65536}]
		| .linux.gidMappings = [{"containerID": 0, "hostID": 200000, "size": 65536}]
		| .mounts |= map(select(.type != "sysfs" and .type != "mqueue" and .type != "cgroup")) | '"$2"
	chown -R 100000:200000 "$(directory)/rootfs"
	# Our own directories are nobody else's to pass through. Its input is a file of ours: a runtime gives it to the container's root.
	run sandbox "$1" bash -c '
		mkdir -p /etc/ctr-gpu /run/bundle && echo "{\"runtimes\": [\"$2\"]}" >/etc/ctr-gpu/config.json &&
			mount --bind "$1" /run/bundle && cd /run/bundle &&
			jq ".linux.cgroupsPath = \"$CTR_GPU_TEST_CGROUP/container\"" config.json >new && mv new config.json &&
			memlock ctr-gpu-runtime --root /run/runtime run container
	' user_namespace "$(directory)" "$4" <<<""
	"expect_$3"
	[[ $(stat -c %u:%g "$(directory)/rootfs/etc/ld.so.cache") == 100000:200000 ]]
}

# bats test_tags=cgroup
@test "a user namespace of the container's own" {
	both user_namespace wsl-nvidia . gpu
}

# bats test_tags=cgroup
@test "a user namespace of the container's own, on a native host, whose libraries go to a tmpfs" {
	both user_namespace native-nvidia "$procfs_of_host" native_gpu
}

# Where the runtime's real name leads back to the shim.
@test "the shim does not start itself" {
	prepare
	run sandbox wsl-nvidia bash -c '
		mkdir /run/first /run/second && ln -s "$(command -v ctr-gpu-runtime)" /run/first/runc && ln /run/first/runc /run/second/crun
		PATH=/run/first:/run/second:$PATH timeout 60 nvidia-container-runtime --version
	'
	expect_status 0
	[[ ${lines[0]} == "ctr-gpu-runtime version "* && ${lines[1]} == "runc version"* ]]
	run sandbox wsl-nvidia bash -c '
		mkdir -p /etc/ctr-gpu && ln -s "$(command -v ctr-gpu-runtime)" /run/runc
		echo "{\"runtimes\": [\"/run/runc\"]}" >/etc/ctr-gpu/config.json
		timeout 60 ctr-gpu-runtime --version
	'
	expect_status 1
	expect "[ENOENT] no OCI runtime was found"
	expect "/etc/ctr-gpu/config.json"
}

@test "every other command is the runtime's, with its arguments, descriptors, directory and environment" {
	run sandbox wsl-nvidia bash -c '
		printf "#!/bin/sh\nprintf \"<%%s>\" \"\$@\"; echo; pwd; echo \$VARIABLE; cat <&7\nexit 42\n" >/run/runtime
		chmod +x /run/runtime && mkdir -p /etc/ctr-gpu && echo "{\"runtimes\": [\"/run/runtime\"]}" >/etc/ctr-gpu/config.json
		cd /tmp && VARIABLE=value ctr-gpu-runtime --root /r exec -t "a b" "" --dry-run create 7<<<seven
	'
	expect_status 42
	expect_line "<--root></r><exec><-t><a b><><--dry-run><create>"
	expect_line /tmp
	expect_line value
	expect_line seven
}

life() {
	prepare '.process.args = ["/bin/sleep", "1000"]'
	run sandbox wsl-nvidia bash -c '
		cd "$1" && mkdir -p /etc/ctr-gpu && echo "{\"runtimes\": [\"$2\"]}" >/etc/ctr-gpu/config.json
		jq --arg path "$CTR_GPU_TEST_CGROUP/container" ".linux.cgroupsPath = \$path" config.json >new && mv new config.json
		cd / && for what in --version features "spec --help"; do
			cmp <(ctr-gpu-runtime $what 2>&1 | sed "1{/^ctr-gpu-runtime version /d}") <("$2" $what 2>&1) || [[ $what == features ]] || exit 9
		done
		shim="ctr-gpu-runtime --root /run/runtime"
		memlock $shim create --bundle "$1" --pid-file /run/pid container </dev/null >/dev/null 2>&1 || exit 3
		$shim state container | jq -r .status && $shim start container && $shim state container | jq -r .status
		$shim exec container probe && $shim kill container KILL
		for _ in {1..600}; do [[ $($shim state container | jq -r .status) != stopped ]] || break; sleep 0.1; done
		echo "{\"nonsense\": 1, \"runtimes\": [\"$2\"]}" >/etc/ctr-gpu/config.json
		$shim state container | jq -r .status
		mkdir /run/first && ln -s "$(command -v "$2")" /run/first/runc && export PATH=/run/first:$PATH && echo broken >/etc/ctr-gpu/config.json
		$shim delete container && ! "$2" --root /run/runtime state container 2>/dev/null
	' life "$(directory)" "$1"
	expect_status 0
	expect_line created
	expect_line running
	expect_line stopped
	expect_line "cuInit=0"
}

# bats test_tags=cgroup
@test "create, state, start, exec, kill, delete; a mistake in the settings stops no container from being deleted" {
	both life
}

# The runtime that is chosen in spite of a mistake: a built-in one, if the file is no object or others can write it.
@test "whatever is wrong with the settings: only create of a container that asks for a GPU is refused" {
	local variable

	for variable in A=b NVIDIA_VISIBLE_DEVICES=all; do
		prepare ".process.env = [\"$variable\"]"
		cp -r "$(directory)" "$BATS_TEST_TMPDIR/$variable"
	done
	# shellcheck disable=SC2016
	run sandbox wsl-nvidia bash -c '
		mkdir -p /etc/ctr-gpu /run/first && export PATH=/run/first:$PATH
		for runtime in /run/first/runc /run/chosen; do
			printf "#!/bin/sh\necho \"\${0##*/} \$*\"\n" >$runtime && chmod 755 $runtime
		done
		bundles=$1 file=/etc/ctr-gpu/config.json chosen="{\"runtimes\": [\"/run/chosen\"]"
		goes_to() {
			local words
			for words in "state ID" "start ID" "exec ID sh" "kill ID TERM" "delete --force ID" "create --bundle $bundles/A=b ID"; do
				[[ $(ctr-gpu-runtime $words 2>&1) == "$1 $words" ]] || echo "not to $1, $2: $words"
			done
			[[ $(ctr-gpu-runtime create --bundle "$bundles/NVIDIA_VISIBLE_DEVICES=all" ID 2>&1) == *"[E"* ]] || echo "$2: not refused"
			rm -rf $file
		}
		echo "$chosen, \"nonsense\": 1}" >$file && goes_to chosen "an unknown key"
		echo "$chosen,}" >$file && goes_to runc "no JSON"
		echo "[]" >$file && goes_to runc "no object"
		: >$file && goes_to runc "an empty file"
		mkdir $file && goes_to runc "a directory"
		echo "$chosen}" >$file && chmod o+w $file && goes_to runc "others can write it"
		echo "$chosen}" >$file && chown 1000 $file && goes_to runc "it belongs to another"
		echo "$chosen}" >$file && chmod o+w /etc/ctr-gpu && goes_to runc "others can replace it"
		echo done' mistakes "$BATS_TEST_TMPDIR"
	[[ $output == done ]] || {
		echo "$output"
		false
	}
}

# An engine runs its runtime several times for a container. Settings, a line each, what the runtime was told, and how many calls
# there were before.
@test "another command than create is passed on with few calls" {
	# A sanitized one makes more.
	[[ $(readelf -lW "$CTR_GPU_BUILD/bin/ctr-gpu-hook") != *INTERP* ]] || skip "the shim is no static program"
	# shellcheck disable=SC2016
	run sandbox wsl-nvidia bash -ec '
		real=/run/real PATH=$PATH:/run/bin
		mkdir -p /etc/ctr-gpu /run/bin
		printf "#!/bin/sh\necho told \"\$0 \$*\"\n" >$real
		chmod 755 $real
		cp $real /run/bin/named
		for settings in "{\"runtimes\": [\"/run/none\", \"$real\"]}" "{\"runtimes\": [\"named\"]}" \
			"{\"runtimes\": [\"$real\"], \"nonsense\": {}}" "{\"runtimes\": [\"/run/re\\u0061l\"]}"; do
			echo "$settings" >/etc/ctr-gpu/config.json
			strace -f -o /run/trace ctr-gpu-runtime --root /x state ID
			calls=$(sed "1d; /execve/,\$d" /run/trace | grep -c .)
			[ "$calls" -le 40 ] && echo few || echo "$calls calls"
		done'
	expect_status 0
	[[ ${lines[*]} == "told /run/real --root /x state ID few told /run/bin/named --root /x state ID few \
told /run/real --root /x state ID few told /run/real --root /x state ID few" ]] || {
		echo "$output"
		false
	}
}

# fails ENVIRONMENT LOG-OPTIONS…: creation fails; the log is /run/log
fails() {
	local variable=$1
	shift

	prepare ".process.env = [\"$variable\"]"
	run sandbox wsl-nvidia bash -c 'ctr-gpu-runtime --log "$2" "${@:3}" create --bundle "$1" container; echo "status $?"; cat /run/log' \
		fails "$(directory)" "$@"
}

@test "an error is where engines look for it" {
	fails NVIDIA_VISIBLE_DEVICES=7 /run/log --log-format json
	expect_line "status 1"
	[[ $(tail -n 1 <<<"$output" | jq -r .level) == error ]]
	[[ $(tail -n 1 <<<"$output" | jq -r .msg) == "ctr-gpu-runtime: [E_UNKNOWN_DEVICE]"* ]]
	fails NVIDIA_VISIBLE_DEVICES=7 /run/log
	[[ $(tail -n 1 <<<"$output") == 'level=error msg="ctr-gpu-runtime: [E_UNKNOWN_DEVICE]'* ]]
	fails NVIDIA_VISIBLE_DEVICES=7 file:/run/log --log-format=json
	[[ $(tail -n 1 <<<"$output" | jq -r .level) == error ]]
}

@test "--dry-run prints the plan and changes nothing" {
	prepare
	cp "$(directory)/config.json" "$BATS_TEST_TMPDIR/before"
	run sandbox wsl-nvidia bash -c 'cd "$1" && ctr-gpu-runtime --dry-run create ID' dry "$(directory)"
	expect_status 0
	[[ $(jq -r '.devices[].path' <<<"$output") == /dev/dxg ]]
	sandbox wsl-nvidia ctr-gpu configure --dry-run --json /srv | diff - <(echo "$output")
	cmp "$(directory)/config.json" "$BATS_TEST_TMPDIR/before"
	cmp "$(directory)/rootfs/etc/ld.so.cache" "$(image debian)/etc/ld.so.cache"
	run sandbox wsl-nvidia ctr-gpu-runtime --dry-run delete ID
	expect_status 1
	expect "[E_BAD_ARGUMENT]"
}

rootless_run() {
	rm -rf "$BATS_FILE_TMPDIR/rootless/bundle"
	mkdir -p "$BATS_FILE_TMPDIR/rootless/bundle"
	image_copy debian "$BATS_FILE_TMPDIR/rootless/bundle/rootfs"
	chown -R 54321:54321 "$BATS_FILE_TMPDIR/rootless"
	run rootless wsl-nvidia bash -c '
		cd bundle && runc spec --rootless && jq ".process.terminal = false | .process.args = [\"/usr/bin/probe\"] | .process.rlimits = []
			| .process.env += [\"NVIDIA_VISIBLE_DEVICES=all\"] | .root.readonly = false" config.json >new && mv new config.json
		mkdir -p bin && ln -sf "$(command -v "$1")" bin/runc
		PATH=$PWD/bin:$PATH
		exec ctr-gpu-runtime --root "$XDG_RUNTIME_DIR/r" run container
	' rootless_run "$1"
	expect_gpu
}

@test "without root" {
	both rootless_run
}

# odd TEXT COMMANDS: what becomes of a bundle in which COMMANDS were run
odd() {
	prepare
	run sandbox wsl-nvidia bash -c 'known_runtime runc; cd "$1" && eval "$2" && timeout 60 ctr-gpu-runtime run container' odd "$(directory)" "$2"
	[[ $status -ne 0 && $status -ne 124 ]]
	expect "ctr-gpu-runtime: [E_BAD_"
	expect "$1"
}

@test "a config.json that is none" {
	odd "is a symlink" 'mv config.json elsewhere && ln -s elsewhere config.json'
	odd "root directory of this machine" "sed -i 's,\"rootfs\",\"/\",' config.json"
	odd '"mounts" is not an array' "jq '.mounts = {}' config.json >new && mv new config.json"
}

# Nothing to say that such a container asks for anything: it is the runtime that complains.
@test "a config.json that cannot be read is the runtime's to refuse" {
	for change in 'rm config.json && mkdir config.json' 'truncate --size 17M config.json && sed -i s,NVIDIA_VISIBLE,X, config.json' \
		"head --bytes 1000 /dev/zero | tr '\\0' '[' >config.json" ': >config.json'; do
		prepare
		(cd "$(directory)" && eval "$change")
		run sandbox wsl-nvidia timeout 20 ctr-gpu-runtime run --bundle "$(directory)" container
		[[ $status -ne 0 && $output != *ctr-gpu* ]] || {
			echo "$change: $output"
			return 1
		}
	done
}

nothing_is_left() {
	prepare
	rm "$(directory)/rootfs/etc/ld.so.cache"
	mkdir "$(directory)/rootfs/etc/ld.so.cache"
	find "$(directory)" -printf '%P %y %m %s %l\n' | sort >"$BATS_TEST_TMPDIR/before"
	cp "$(directory)/config.json" "$BATS_TEST_TMPDIR/config.json"
	run sandbox wsl-nvidia bash -c 'known_runtime runc; ctr-gpu-runtime run --bundle "$1" container' nothing "$(directory)"
	expect_status 1
	expect "/etc/ld.so.cache"
	diff "$BATS_TEST_TMPDIR/before" <(find "$(directory)" -printf '%P %y %m %s %l\n' | sort)
	cmp "$BATS_TEST_TMPDIR/config.json" "$(directory)/config.json"
}

# bats test_tags=cgroup
@test "a failure leaves nothing behind" {
	nothing_is_left
}
