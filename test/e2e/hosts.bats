#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The simulated hosts themselves (test/hosts): that they answer as the published kernel does, and leave nothing behind.

setup() {
	enter=$BATS_TEST_DIRNAME/../hosts/enter
	programs=${CTR_GPU_BUILD:-$BATS_TEST_DIRNAME/../../build}/test/hosts
	mounts=$(cat /proc/self/mounts)
	nodes=$(ls /dev)
	files=$(ls -d /usr/lib/wsl /usr/bin/nvidia* /etc/ld.so.conf.d/* 2>&1 || true)
}

# Nothing of a host is left on the machine: no mount, no node, no process.
teardown() {
	[ "$mounts" = "$(cat /proc/self/mounts)" ]
	[ "$nodes" = "$(ls /dev)" ]
	[ "$files" = "$(ls -d /usr/lib/wsl /usr/bin/nvidia* /etc/ld.so.conf.d/* 2>&1)" ]
	[ -z "$marker" ] || ! pgrep -f "$marker"
}

walk() {
	run "$enter" "$1" -- "$programs/dxgtest" "$2" "$3"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *1..* ]]
}

@test "every ioctl of one adapter" {
	walk wsl-nvidia 1 0
}

@test "every ioctl of an adapter and a compute-only one" {
	walk wsl-amd-npu 2 1
}

@test "a device without adapters cannot be opened, but looked at" {
	run "$enter" wsl-no-adapter -- "$programs/dxgtest" 0 0
	[ "$output" = "Bail out! /dev/dxg: Bad file descriptor" ]
	[ "$status" -eq 1 ]
	"$enter" wsl-no-adapter -- test -c /dev/dxg
}

@test "a store path that begins with \\SystemRoot" {
	walk hyperv-no-libdxcore 1 0
}

@test "every profile can be entered" {
	local name
	[ "$("$enter" --list | wc -l)" -ge 29 ]
	"$enter" --list | while read -r name _; do
		"$enter" "$name" -- true || { echo "$name"; exit 1; }
	done
}

# What a profile's adapters are to a program of libdxcore's COM interface, by attribute
com_adapters() {
	jq -r 'def yes(name; word): if .type | index(name) then word + " " else "" end;
		.adapters[] | select('"$1"')
		| "\(.name)|\(.luid)|\(.vendor):\(.device)|"
			+ (if .type | index("software") then "" else "hardware " end) + yes("hybrid-integrated"; "integrated")
			+ (if .type | index("compute-only") then "" else "graphics " end) + "compute|"
	' "$BATS_TEST_DIRNAME/../hosts/profiles/$2.json"
}

@test "a C++ program with Microsoft's headers, through libdxcore's COM interface" {
	local client=$BATS_TEST_TMPDIR/client profile

	# shellcheck disable=SC2046 # several options
	g++ -std=c++17 -Wall $(pkg-config --cflags DirectX-Headers) -o "$client" "$BATS_TEST_DIRNAME/../hosts/dxcore-client.cpp" \
		"$programs/files/dxcore-present/libdxcore.so"
	for profile in wsl-nvidia wsl-hybrid wsl-amd-npu wsl-two-nvidia wsl-software-only; do
		run "$enter" "$profile" -- "$client"
		echo "$profile: $output"
		[ "$status" -eq 0 ]
		diff <(sed 's/|[0-9]*$/|/; s/^\(graphics\|compute\) [0-9]*$/\1/' <<<"$output") \
			<(echo graphics; com_adapters '.type | index("compute-only") | not' "$profile"; echo compute; com_adapters true "$profile")
	done
	[ "$("$enter" wsl-hybrid -- "$client" 5a3f1c2b | cut -d '|' -f 1)" = "NVIDIA GeForce RTX 4070 Laptop GPU" ]
	run "$enter" wsl-hybrid -- "$client" 5a3f1c2a
	[ "$output" = "GetAdapterByLuid: 80070057" ]
}

@test "libdxcore has every name that Intel's and AMD's programs refuse to do without" {
	local name count=0 names

	names=$(nm -D --defined-only "$programs/files/dxcore-present/libdxcore.so" | cut -d ' ' -f 3)
	# intel/compute-runtime gdi_interface.cpp; ROCm/librocdxg dxcore_loader.cpp
	for name in CloseAdapter CreateAllocation2 CreateContextVirtual CreateDevice CreateHwQueue CreatePagingQueue \
		CreateSynchronizationObject CreateSynchronizationObject2 DestroyAllocation2 DestroyContext DestroyDevice DestroyHwQueue \
		DestroyPagingQueue DestroySynchronizationObject EnumAdapters2 EnumAdapters3 Escape Evict FreeGpuVirtualAddress Lock2 \
		MakeResident MapGpuVirtualAddress OpenAdapterFromLuid OpenResource OpenResourceFromNtHandle QueryAdapterInfo \
		QueryClockCalibration QueryResourceInfo QueryResourceInfoFromNtHandle QueryStatistics ReserveGpuVirtualAddress \
		SetContextSchedulingPriority ShareObjects SignalSynchronizationObject SignalSynchronizationObjectFromCpu \
		SignalSynchronizationObjectFromGpu SubmitCommand SubmitCommandToHwQueue Unlock2 UpdateGpuVirtualAddress \
		WaitForSynchronizationObject WaitForSynchronizationObjectFromCpu WaitForSynchronizationObjectFromGpu; do
		grep -qx "D3DKMT$name" <<<"$names" || { echo "D3DKMT$name is missing"; return 1; }
		count=$((count + 1))
	done
	[ "$count" -eq 43 ]
	grep -qx DXCoreCreateAdapterFactory <<<"$names"
}

@test "nvidia-smi walks from the loader library to the store" {
	run "$enter" wsl-hybrid -- nvidia-smi -L
	[ "$status" -eq 0 ]
	[[ $output =~ ^"GPU 0: NVIDIA GeForce RTX 4070 Laptop GPU (UUID: GPU-"[0-9a-f-]{36}")"$ ]]
}

@test "each of two NVIDIA adapters is one to nvidia-smi" {
	run "$enter" wsl-two-same-store -- nvidia-smi -L
	[ "${#lines[@]}" -eq 2 ]
	[ "${lines[0]}" != "${lines[1]}" ]
}

@test "without its store the driver finds nothing" {
	run "$enter" hyperv-stale-store -- /usr/lib/wsl/lib/nvidia-smi -L
	[ "$status" -ne 0 ]
	[[ $output == *"Failed to initialize NVML"* ]]
}

@test "driver libraries ask for no version of glibc" {
	[ "$(objdump -T "$programs"/files/{.,native-*}/*/* 2>/dev/null | grep -c 'UND.*dlopen')" -ge 5 ]
	run bash -c 'objdump -T "$1"/{.,native-*}/*/* 2>/dev/null | grep GLIBC_' bash "$programs/files"
	[ "$status" -eq 1 ]
}

@test "libdxcore.so can lack its functions, crash, or never answer" {
	run "$enter" wsl-dxcore-broken -- nvidia-smi
	[ "$status" -ne 0 ]
	run "$enter" wsl-dxcore-crashes -- nvidia-smi
	[ "$status" -eq 139 ]
	run "$enter" wsl-dxcore-hangs -- timeout 0.3 nvidia-smi
	[ "$status" -eq 124 ]
}

@test "a GPU-PV host looks like WSL: two mounts, the loader's cache, PATH" {
	"$enter" wsl-nvidia -- sh -c 'grep " /usr/lib/wsl/drivers tmpfs ro,nosuid,nodev," /proc/self/mounts &&
		grep " /usr/lib/wsl/lib overlay rw,nosuid,nodev," /proc/self/mounts &&
		ldconfig -p | grep /usr/lib/wsl/lib/libdxcore.so && command -v nvidia-smi &&
		[ "$(ls /usr/lib/wsl/drivers | wc -l)" -gt 40 ] && [ "$(stat -c %a /dev/dxg)" = 666 ]'
}

@test "a Hyper-V guest without libdxcore.so has none of that" {
	"$enter" hyperv-no-libdxcore -- sh -c '! ldconfig -p | grep wsl && ! command -v nvidia-smi &&
		[ ! -e /etc/ld.so.conf.d/ld.wsl.conf ] && [ ! -e /usr/lib/wsl/lib/libdxcore.so ] && [ -e /dev/dxg ]'
}

@test "a plain machine has no GPU" {
	"$enter" plain -- sh -c '[ ! -e /dev/dxg ] && [ ! -e /usr/lib/wsl ]'
}

@test "a profile that does not exist: where to see those that do" {
	run "$enter" nosuch -- true
	[ "$status" -eq 125 ]
	[[ $output == *"/nosuch.json: there is no such profile; test/hosts/enter --list shows those that are" ]]
}

@test "the command's exit status is passed through" {
	run "$enter" wsl-nvidia -- sh -c 'exit 42'
	[ "$status" -eq 42 ]
	run "$enter" wsl-nvidia -- sh -c 'kill -KILL $$'
	[ "$status" -eq 137 ]
	"$enter" wsl-nvidia -- "$BATS_TEST_TMPDIR/absent" || status=$?
	[ "$status" -eq 127 ]
	run "$enter" no-such-profile -- true
	[ "$status" -eq 125 ]
}

@test "what the command left running ends with it" {
	marker="sleep 31.$$"
	run timeout 60 "$enter" wsl-nvidia -- sh -c "setsid $marker >/dev/null 2>&1 & exit 3"
	[ "$status" -eq 3 ]
}

@test "with --keep it goes on, and so does the host" {
	marker="sleep 32.$$"
	out=$BATS_TEST_TMPDIR/out
	"$enter" --keep wsl-nvidia -- sh -c "(until [ -e $out.go ]; do sleep 0.05; done; nvidia-smi -L >$out) >/dev/null 2>&1 &"
	[ ! -s "$out" ]
	touch "$out.go"
	for _ in {1..1200}; do
		grep -s "GPU 0" "$out" && return
		sleep 0.05
	done
	return 1
}

@test "all of it ends when enter is killed" {
	marker="sleep 33.$$"
	"$enter" wsl-nvidia -- sh -c "setsid $marker & $marker" >/dev/null 2>&1 3>&- &
	until pgrep -f "^$marker"; do sleep 0.05; done
	kill -KILL $!
	for _ in {1..1200}; do
		pgrep -f "$marker" >/dev/null || break
		sleep 0.05
	done
}

@test "/etc and /usr/lib of the machine stay as they are" {
	"$enter" wsl-nvidia -- sh -c 'touch /etc/left-behind /usr/lib/left-behind'
	[ ! -e /etc/left-behind ] && [ ! -e /usr/lib/left-behind ]
}

@test "setuid programs gain privileges" {
	"$enter" wsl-nvidia -- grep '^NoNewPrivs:[[:space:]]*0' /proc/self/status
}

@test "--cgroup2 mounts version 2" {
	"$enter" --cgroup2 wsl-nvidia -- grep ' /sys/fs/cgroup cgroup2 ' /proc/self/mounts
}

@test "a native host has nodes, an installed driver, and what the module shows below /proc" {
	run "$enter" native-four -- nvidia-smi -L
	[ "${#lines[@]}" -eq 4 ]
	[ "${lines[3]}" = "GPU 3: NVIDIA H200 (UUID: GPU-b703df58-2273-35fb-29be-3f6c49b83a98)" ]
	"$enter" native-four -- sh -c 'grep -q "UUID.*83a98" /proc/driver/nvidia/gpus/0000:00:09.0/information &&
		grep -q "^195 nvidia$" /proc/devices && grep -q "^Block devices:" /proc/devices &&
		{ [ ! -d /sys/bus/pci/devices ] || grep -q 0x2335 /sys/bus/pci/devices/0000:00:09.0/device; } &&
		[ "$(stat -c %t:%T /dev/nvidia3)" = c3:3 ] && ldconfig -p | grep -q "libcuda.so.1 (libc6,x86-64) => /usr/lib" &&
		[ ! -e /dev/dxg ]'
}

@test "a MIG instance has its capability and that a node" {
	"$enter" native-mig -- sh -c 'cd /proc/driver/nvidia/capabilities/gpu1/mig/gi2/ci1 && grep "DeviceFileMinor: 158" access &&
		[ "$(stat -c %t:%T:%a /dev/nvidia-caps/nvidia-cap158)" = f1:9e:444 ]'
}

@test "to open a node without a driver tells whether the cgroup allows it" {
	run "$enter" native-nvidia -- cat /dev/nvidia0
	[[ $output == *"No such device or address"* ]]
}

@test "native and paravirtual GPUs together" {
	"$enter" native-and-dxg -- sh -c '[ -c /dev/dxg ] && [ -c /dev/nvidia0 ] && nvidia-smi -L | grep H200'
}

@test "drivers of other versions, in other places" {
	"$enter" native-newer -- sh -c 'grep -q "  999.10.01  " /proc/driver/nvidia/version && nvidia-smi | grep "Driver Version: 999.10.01" &&
		ldconfig -p | grep libnvidia-tomorrow.so.1'
	"$enter" native-halfway -- sh -c 'grep -q "  570.86.10  " /proc/driver/nvidia/version && nvidia-smi | grep "Driver Version: 580.159.04"'
	"$enter" native-prefix -- sh -c '! command -v nvidia-smi && /usr/local/nvidia/bin/nvidia-smi -L | grep "GPU 0"'
	"$enter" native-no-cache -- sh -c '! ldconfig -p | grep "libcuda\.so" && [ -L /usr/local/nvidia/lib64/libcuda.so.1 ] &&
		! /usr/local/nvidia/bin/nvidia-smi && LD_LIBRARY_PATH=/usr/local/nvidia/lib64 /usr/local/nvidia/bin/nvidia-smi -L | grep "GPU 1"'
	"$enter" native-root -- sh -c '! ldconfig -p | grep "libcuda\.so" && ldconfig -r /usr/local/driver -p | grep "libcuda.so.1 "'
	"$enter" native-compat32 -- sh -c 'ldconfig -p | grep "libcuda.so.1 (libc6) => /usr/lib/i386"'
}

@test "GPUs and nodes that are not there, and those of a fabric" {
	"$enter" native-no-cache -- sh -c '[ -c /dev/nvidia0 ] && [ ! -e /dev/nvidia1 ] && grep Excluded:.*Yes /proc/driver/nvidia/gpus/0000:00:08.0/information'
	"$enter" native-no-uvm -- sh -c '[ ! -e /dev/nvidia-uvm ] && ! grep nvidia-uvm /proc/devices && grep "^195 nvidia$" /proc/devices'
	"$enter" native-fabric -- sh -c '[ "$(stat -c %t:%T /dev/nvidia-caps-imex-channels/channel3)" = f2:3 ] && [ -c /dev/nvidia-nvswitchctl ] &&
		[ "$(stat -c %t:%T /dev/nvidia-nvswitch1)" = ef:1 ] && [ "$(ls /proc/driver/nvidia-nvswitch/devices | wc -l)" -eq 2 ]'
}
