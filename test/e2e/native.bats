#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Native hosts: inventory, plans, and containers. No driver stands behind the nodes of a simulated host: opening one fails
# with ENXIO where a device rule allows it, and with EPERM where none does.

load engines

setup_file() {
	require_root
	require_program runc
	require_program strace
	require_program jq
}

# on PROFILE COMMAND…: on a native host, with our programs in PATH
on() {
	local profile=$1
	shift
	PATH=$CTR_GPU_BUILD/bin:$tools_directory:$PATH "$e2e/../hosts/enter" "native-$profile" -- "$@"
}

# plan PROFILE JQ-FILTER [OPTION…]: what the filter says of the plan
plan() {
	local profile=$1 filter=$2
	shift 2
	run bash -c 'set -o pipefail; "$@" | jq -r "$0"' "$filter" "$e2e/../hosts/enter" "native-$profile" -- "$CTR_GPU_BUILD/bin/ctr-gpu" \
		"${globals[@]}" configure --dry-run --json "$@" /srv
}
globals=()

devices='[.devices[].path] | join(" ")'

# The nodes of /dev/dri are found by PCI device.
require_pci() {
	[[ -d /sys/bus/pci/devices ]] || skip "this machine has no PCI bus"
}

# start PROFILE IMAGE DEVICES ARGUMENT…: a container in which runc runs the arguments; it asks for $capabilities, if that is set
start() {
	local profile=$1 image=$2 visible=$3 directory=$BATS_TEST_TMPDIR/bundle
	shift 3
	rm -rf "$directory"
	bundle "$image" "$directory" ".process.args = $(jq -cn '$ARGS.positional' --args -- "$@")
		| .process.env = [\"PATH=/usr/bin\", \"NVIDIA_VISIBLE_DEVICES=$visible\"${capabilities:+, \"NVIDIA_DRIVER_CAPABILITIES=$capabilities\"}]
		| .process.capabilities |= with_entries(.value += [\"CAP_MKNOD\"])"
	run sandbox "native-$profile" bash -c '
		cd "$1" || exit
		jq --arg path "$CTR_GPU_TEST_CGROUP/container" ".linux.cgroupsPath = \$path" config.json >config.new &&
			mv config.new config.json || exit
		exec memlock runc --root /run/runtime run container
	' start "$directory"
}

# ---- inventory ----

@test "GPUs have the order of their PCI addresses, whatever their minors" {
	run on unordered ctr-gpu info --json
	expect_status 0
	run jq -r '.adapters[] | "\(.index) \(.pciAddress) \(.uuid)"' <<<"$output"
	expect_line "0 0000:07:00.0 GPU-00000001-2273-35fb-29be-3f6c49b83a95"
	expect_line "2 0000:47:00.0 GPU-10000003-2273-35fb-29be-3f6c49b83a95"
	# Nobody has opened this one since boot; its UUID is question marks.
	expect_line "3 0001:01:00.0 null"
}

@test "a GPU without a node, and one that is excluded, are shown with the reason" {
	run on no-cache ctr-gpu info
	expect "its node /dev/nvidia1 is missing"
	expect "NVreg_ExcludedGpus"
	plan no-cache "$devices" --device 1
	expect "this host has no device"
	plan no-cache "$devices"
	expect_line "/dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia0"
}

@test "a host with both kinds of GPU has one numbering" {
	run on and-dxg ctr-gpu info --json
	expect_status 0
	run jq -r '.adapters[] | "\(.index) \(.backend)"' <<<"$output"
	expect_line "0 gpu-pv"
	expect_line "1 nvidia"
}

@test "a module of one version and libraries of another are named" {
	plan halfway .
	expect "E_DRIVER_LIBRARY"
	expect "kernel module 570.86.10, libraries 580.159.04"
}

@test "nodes of another driver are not taken for NVIDIA's" {
	run on prefix bash -c 'rm /dev/nvidia0 && mknod /dev/nvidia0 c 1 3 && ctr-gpu info'
	expect "/dev/nvidia0 is not the GPU's node"
	# Another GPU's, under the name of this one.
	run on prefix bash -c 'rm /dev/nvidia0 && mknod /dev/nvidia0 c 195 1 && ctr-gpu info'
	expect "/dev/nvidia0 is not the GPU's node"
	run on prefix bash -c 'rm /dev/nvidia-uvm && mknod /dev/nvidia-uvm c "$(awk "\$2 == \"nvidia-uvm\" { print \$1 }" /proc/devices)" 1 && ctr-gpu list'
	expect_no_line "/dev/nvidia-uvm"
	run on prefix bash -c 'rm /dev/nvidia-uvm && mknod /dev/nvidia-uvm c 1 3 && ctr-gpu list'
	expect_no_line "/dev/nvidia-uvm"
}

@test "a plan asks the kernel once for each thing" {
	local opened
	run on mig bash -c 'strace -f -qq -e trace=open,openat,openat2 -o /run/ctr-gpu/trace ctr-gpu list >/dev/null && cat /run/ctr-gpu/trace'
	expect_status 0
	opened=$output
	for path in /proc/devices /proc/driver/nvidia/version /proc/driver/nvidia/gpus /proc/driver/nvidia/gpus/0000:00:06.0/information \
		/proc/driver/nvidia/capabilities/gpu1/mig /proc/driver/nvidia/capabilities/gpu1/mig/gi2; do
		run grep -cF "\"$path\"" <<<"$opened"
		expect_line 1
	done
}

@test "what is known of a native host is believed until something changes" {
	require_pci
	run on nvidia bash -c '
		kept=/run/ctr-gpu/nvidia link=/sys/bus/pci/devices/0000:00:06.0/driver nvidia=/proc/driver/nvidia lib=/usr/lib/x86_64-linux-gnu
		work=/run/ctr-gpu/work; mkdir -p -m 777 $work/build && mount --bind "$CTR_GPU_BUILD" $work/build
		list() { # WHAT PROGRAM…: whom a plan asked, and what is in it
			strace -f -qq -e trace=open,openat,openat2 -o "$work/trace" "${@:2}" list >"$work/plan" 2>&1
			echo "$1:$(grep -q "gpus/0000:00:06.0/information" "$work/trace" && echo " gpu")$(grep -q "openat2.*ld.so.cache" "$work/trace" && echo " files")" \
				"$(grep -cE "gnu/lib.*[.]so|^/dev/nvidia0$" "$work/plan")"
		}
		uuid() { ctr-gpu info --json | jq -r ".adapters[0].uuid"; }
		new() { rm $link && ln -s ../../../../bus/pci/drivers/nvidia $link; }
		ls $kept 2>/dev/null
		ldconfig; list first ctr-gpu; sleep 4; list settled ctr-gpu; list again ctr-gpu; stat -c "%a %U" $kept
		sed -i "s/GPU-b703df58/GPU-00000000/" $nvidia/gpus/*/information; uuid; new; uuid; list bound ctr-gpu; list again ctr-gpu; uuid
		rm $link; list unbound ctr-gpu; ln -s ../../../../bus/pci/drivers/nvidia $link; list bound ctr-gpu
		sed -i "s/580.159.04/580.159.05/" $nvidia/version; list version ctr-gpu; sed -i "s/580.159.05/580.159.04/" $nvidia/version; list again ctr-gpu
		rm $lib/libnvidia-cfg.so.580.159.04; list library ctr-gpu; sleep 4; list settled ctr-gpu; list again ctr-gpu
		ldconfig; list ldconfig ctr-gpu; sleep 4; list settled ctr-gpu; list again ctr-gpu
		chown 65534 $kept; list owner ctr-gpu; list again ctr-gpu; chmod o+w $kept; list mode ctr-gpu; list again ctr-gpu
		chmod o+w /run/ctr-gpu; list folder ctr-gpu; list again ctr-gpu; chmod o-w /run/ctr-gpu; list closed ctr-gpu
		echo x >>$kept; list trailing ctr-gpu; list again ctr-gpu
		sed -i "s/^end$/x/" $kept; list malformed ctr-gpu; list again ctr-gpu
		sed -i "s/Minor: \t 0/Minor: \t x/" $kept; list minor ctr-gpu; list again ctr-gpu
		sed -i "1s/.$/x/" $kept; list boot ctr-gpu; list again ctr-gpu
		cp $kept $work/theirs; ln -sf work/theirs $kept; chown 65534 $work/theirs; list linked ctr-gpu; list again ctr-gpu
		ctr-gpu refresh >/dev/null 2>&1; list refreshed ctr-gpu; list again ctr-gpu
		chmod 666 $work/trace $work/plan; list user setpriv --reuid 65534 --regid 65534 --clear-groups $work/build/bin/ctr-gpu; list again ctr-gpu'
	expect_status 0
	diff - <(echo "$output") <<<"first: gpu files 11
settled: files 11
again: 11
600 root
GPU-b703df58-2273-35fb-29be-3f6c49b83a95
GPU-00000000-2273-35fb-29be-3f6c49b83a95
bound: 11
again: 11
GPU-00000000-2273-35fb-29be-3f6c49b83a95
unbound: gpu 11
bound: gpu 11
version: files 0
again: 11
library: files 10
settled: files 10
again: 10
ldconfig: files 10
settled: files 10
again: 10
owner: gpu files 10
again: 10
mode: gpu files 10
again: 10
folder: gpu files 10
again: gpu files 10
closed: 10
trailing: gpu files 10
again: 10
malformed: gpu files 10
again: 10
minor: gpu 10
again: 10
boot: gpu files 10
again: 10
linked: gpu files 10
again: 10
refreshed: files 10
again: 10
user: gpu files 10
again: 10"
}

# ---- selection ----

@test "GPUs are selected by index, UUID, its beginning, and PCI address" {
	plan unordered "$devices" --device 2
	expect_line "/dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia0"
	plan unordered "$devices" --device GPU-10000003
	expect_line "/dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia0"
	plan unordered "$devices" --device 0000:0A:00.0,GPU-00000001-2273-35fb-29be-3f6c49b83a95
	expect_line "/dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia2 /dev/nvidia3"
	plan unordered "$devices" --device GPU-0000000
	expect "E_UNKNOWN_DEVICE"
	plan unordered "$devices" --device none
	expect_line ""
	plan unordered '.mounts | length' --device none
	[[ $output -gt 5 ]]
}

@test "a part of a GPU brings its own capabilities and no others" {
	plan mig '[.devices[].path | select(test("caps|nvidia[0-9]"))] | join(" ")' --device 1:2
	expect_line "/dev/nvidia1 /dev/nvidia-caps/nvidia-cap156 /dev/nvidia-caps/nvidia-cap158"
	plan mig '[.devices[].path | select(test("caps|nvidia[0-9]"))] | join(" ")' \
		--device MIG-GPU-b703df58-2273-35fb-29be-3f6c49b83a96/2/0
	expect_line "/dev/nvidia1 /dev/nvidia-caps/nvidia-cap156 /dev/nvidia-caps/nvidia-cap157"
	plan mig '[.devices[].path | select(test("caps"))] | length' --device 1
	expect_line 7
	plan mig '[.hidden[].path] | sort | join(" ")' --device 1:0
	expect_line "/proc/driver/nvidia/capabilities/gpu0 /proc/driver/nvidia/capabilities/gpu1/mig/gi2 /proc/driver/nvidia/capabilities/gpu1/mig/gi5 /proc/driver/nvidia/gpus/0000:00:06.0"
	# Where a driver has no nodes of capabilities, the files are the capabilities.
	plan mig '[.hidden[].path | select(test("gi2"))] | join(" ")' --device 1:2
	expect_line /proc/driver/nvidia/capabilities/gpu1/mig/gi2/ci0
	plan mig '[.hidden[].path | select(test("gi2"))] | join(" ")' --device 1:1,1:2
	expect_line ""
	plan mig '[.hidden[].path | select(test("gpu1"))] | join(" ")' --device 1,1:2
	expect_line ""
	# Else nothing would be hidden.
	for below in "" /gpu1/mig/gi2; do
		run on mig strace -f -qq -o /dev/null -P "/proc/driver/nvidia/capabilities$below" -e trace=getdents64 \
			-e inject=getdents64:error=EIO:when=2+ ctr-gpu list --device 1:2
		expect "[EIO] cannot read /proc/driver/nvidia/capabilities$below: Input/output error"
	done
}

@test "the procfs of a container says that nobody makes device nodes" {
	plan prefix '.files[] | select(.target == "/proc/driver/nvidia/params").content'
	expect_line "ModifyDeviceFiles: 0"
	expect_line "DeviceFileUID: 0"
	expect_no_line "ModifyDeviceFiles: 1"
}

@test "IMEX channels and NVSwitches are given when they are asked for" {
	plan fabric "$devices" --imex-channel 3
	expect_line "/dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia0 /dev/nvidia-caps-imex-channels/channel3"
	plan fabric "$devices" --imex-channel 7
	expect "IMEX channel 7 has no node"
	plan fabric '[.devices[].path | select(test("imex"))] | join(" ")' --imex-channel all
	expect_line "/dev/nvidia-caps-imex-channels/channel0 /dev/nvidia-caps-imex-channels/channel3"
	plan fabric '[.devices[].path | select(test("imex"))] | length' --imex-channel none
	expect_line 0
	plan four '.warnings[]' --imex-channel all
	expect "this machine has none in /dev/nvidia-caps-imex-channels"
}

@test "a part's own UUID, which only NVML knows, selects it" {
	plan mig '[.devices[].path | select(test("caps"))] | join(" ")' --device MIG-00020001-2273-35fb-29be-3f6c49b83a96
	expect_line "/dev/nvidia-caps/nvidia-cap156 /dev/nvidia-caps/nvidia-cap158"
	plan mig . --device MIG-00020002-2273-35fb-29be-3f6c49b83a96
	expect "E_UNKNOWN_DEVICE"
}

@test "an NVML that is no NVML is named, and how to do without it" {
	run on mig bash -c 'lib=/usr/lib/x86_64-linux-gnu && cp $lib/libnvidia-cfg.so.580.159.04 $lib/libnvidia-ml.so.580.159.04 &&
		ctr-gpu list --device MIG-00020001-2273-35fb-29be-3f6c49b83a96'
	expect_status 1
	expect "E_DRIVER_LIBRARY"
	expect "it has no nvmlInit_v2"
	expect "0:1, or MIG-GPU-<uuid>"
}

@test "an NVML that hangs costs its deadline, and only who names a part by what NVML alone knows" {
	run on mig bash -c 'cp "$CTR_GPU_BUILD/test/lib/hangs.so" /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.04 || exit 7
		ctr-gpu --timeout=0.3 list --device MIG-00020001-2273-35fb-29be-3f6c49b83a96'
	expect_status 1
	expect "E_DRIVER_TIMEOUT"
	expect "did not answer within 0.3 s"
	run on mig bash -c 'cp "$CTR_GPU_BUILD/test/lib/hangs.so" /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.04 || exit 7
		ctr-gpu --timeout=0.3 list --device 1:0'
	expect_status 0
}

# ---- files ----

@test "a missing nvidia-uvm is a warning that says what to do" {
	plan no-uvm '.warnings[]'
	expect_status 0
	expect "ctr-gpu load"
}

# As in a container of ours: the driver's libraries are in one directory, by their SONAMEs. What is empty was left by docker commit.
inside_ours='
	libraries=".mounts[] | select(.target | startswith(\"/usr/lib/ctr-gpu/\"))"
	mkdir -p /usr/lib/ctr-gpu
	plan=$(ctr-gpu list --json)
	jq -r "$libraries | [.source, .target] | @tsv" <<<"$plan" | while read -r source target; do
		if [[ $1 == empty ]]; then touch "$target"; else cp "$source" "$target"; fi
	done
	rm "$2"/lib*.so.580.159.04
	touch /usr/lib/ctr-gpu/libnvidia-glcore.so.535.1
	echo /usr/lib/ctr-gpu >/etc/ld.so.conf.d/00-ctr-gpu.conf
	ldconfig 2>/dev/null
	ctr-gpu list --json >/run/inside || exit
	cmp <(jq "$libraries | .target" <<<"$plan") <(jq "$libraries | .target" /run/inside) &&
		[[ $(jq "$libraries | select(.source != .target)" /run/inside) == "" ]] && echo "the same libraries"
'

@test "a container of ours gives its GPUs to containers of its own: libraries are found by their SONAMEs" {
	run on four bash -ec "$inside_ours" inside files "$(multiarch_directory)"
	expect_line "the same libraries"
	run on four bash -ec "$inside_ours" inside empty "$(multiarch_directory)"
	expect "no libraries of that version are below /"
}

@test "a capability brings its libraries and no others" {
	plan prefix '[.libraryDirectories[].libraries[] | select(test("cuda|encode|ml|GLX|ngx"))] | sort | join(" ")' -c
	expect_line "libcuda.so libcuda.so.1 libcudadebugger.so.1"
	plan prefix '[.libraryDirectories[].libraries[] | select(test("cuda|encode|ml|GLX|ngx"))] | sort | join(" ")' -u
	expect_line "libnvidia-ml.so libnvidia-ml.so.1"
	plan prefix '[.mounts[].target | select(startswith("/usr/share"))] | sort | join(" ")' -g
	expect_line "/usr/share/glvnd/egl_vendor.d/10_nvidia.json /usr/share/vulkan/icd.d/nvidia_icd.json /usr/share/vulkan/implicit_layer.d/nvidia_layers.json"
}

@test "the files by which OpenCL, EGL and Vulkan find the driver are made where the host has none" {
	plan no-configs '.files[] | select(.target | test("icd|egl")) | [.target, (.content | fromjson? // .) | tostring] | join(" ")' --capabilities=all
	expect_line "/etc/OpenCL/vendors/nvidia.icd libnvidia-opencl.so.1"
	expect_line '/usr/share/glvnd/egl_vendor.d/10_nvidia.json {"file_format_version":"1.0.0","ICD":{"library_path":"libEGL_nvidia.so.0"}}'
	expect_line '/usr/share/vulkan/icd.d/nvidia_icd.json {"file_format_version":"1.0.0","ICD":{"library_path":"libGLX_nvidia.so.0","api_version":"1.3.0"}}'
	# Not without the library, not beside a file of any name that tells of it, and with the capability alone.
	plan no-configs '[.files[].target | select(test("icd|egl"))] | join(" ")' -c
	[ "$output" = /etc/OpenCL/vendors/nvidia.icd ]
	plan no-configs '[.files[].target | select(test("icd|egl"))] | length' -u
	[ "$output" = 0 ]
	plan nvidia '[.files[].target | select(test("icd|egl"))] | length' --capabilities=all
	[ "$output" = 0 ]
	run "$e2e/../hosts/enter" native-no-configs -- sh -c 'rm /usr/lib/*/libnvidia-opencl.so*
		mkdir -p /etc/vulkan/icd.d && echo {} >/etc/vulkan/icd.d/nvidia_icd.x86_64.json
		exec "$0" list --json --capabilities=all' "$CTR_GPU_BUILD/bin/ctr-gpu"
	[ "$(jq -c '[.files[].target | select(test("icd|egl"))]' <<<"$output")" = '["/usr/share/glvnd/egl_vendor.d/10_nvidia.json"]' ]
	run "$e2e/../hosts/enter" native-no-configs -- "$CTR_GPU_BUILD/bin/ctr-gpu" cdi generate --no-hooks --output=-
	expect "/etc/OpenCL/vendors/nvidia.icd is not in the spec, since only a hook can make it"
}

# As Debian's packages have it: what others load by a name without a version is reached through alternatives, and the rest lies
# where all libraries are.
debian_driver='
	cd "/usr/lib/$(gcc -print-multiarch)" && mkdir -p nvidia/current /etc/alternatives
	for library in *.so.580.159.04; do
		[[ $library =~ ^libnvidia-(eglcore|glcore|glsi|tls)\. ]] || mv "$library" nvidia/current/
	done
	for link in $(find . -maxdepth 1 -type l -lname "*.so.580.159.04" -printf "%f "); do
		ln -sfn "$PWD/nvidia/current/$link" "/etc/alternatives/$link"
		ln -sfn "/etc/alternatives/$link" "$link"
	done
	ldconfig -n nvidia/current
	ldconfig
'

@test "a driver that is spread over two directories is given whole, with the host's loader cache and without" {
	local filter='[.libraryDirectories[].libraries[]] | sort[]' cache

	run on nvidia bash -c 'ctr-gpu list --json --capabilities=all | jq -r "$0"' "$filter"
	expect_line libnvidia-glcore.so.580.159.04
	expect_line libnvidia-encode.so.1
	for cache in true 'rm /etc/ld.so.cache'; do
		[[ $(on nvidia bash -c "$debian_driver $cache; "'ctr-gpu list --json --capabilities=all | jq -r "$0"' "$filter") == "$output" ]]
	done
}

@test "of several drivers side by side, all is of the module's version, wherever the loader's links lead" {
	local filter='[.mounts[] | select(.source | test("[.]so[.]")) | .source] | sort[]' plain others
	# Without what has the version in its SONAME, as of a driver for computing alone.
	local few='cd "/usr/lib/$(gcc -print-multiarch)"; rm libnvidia-tls.so.* libnvidia-glcore.so.*; ldconfig 2>/dev/null'
	others="$few;"'for library in *.so.580.159.04; do cp "$library" "${library%580.159.04}590.10.01"; cp "$library" "${library%580.159.04}535.1.2"; done'

	plain=$(on nvidia bash -c "$few; "'ctr-gpu list --json --capabilities=all | jq -r "$0"' "$filter")
	[[ $(wc -l <<<"$plain") -gt 20 && $plain == *libEGL_nvidia.so.580.159.04* ]]
	# ldconfig has each link lead to the newest.
	run on nvidia bash -c "$others; ldconfig 2>/dev/null; readlink libcuda.so.1 libGLX_nvidia.so.0; "'ctr-gpu list --json --capabilities=all | jq -r "$0"' "$filter"
	[[ ${lines[0]} == *590.10.01 && ${lines[1]} == *590.10.01 ]]
	diff <(printf '%s\n' "${lines[@]:2}") - <<<"$plain"
	# Another's directory first, and no loader cache.
	run on nvidia bash -c "$others; mkdir $BATS_TEST_TMPDIR/other; mv *.so.590.10.01 $BATS_TEST_TMPDIR/other; ldconfig -n $BATS_TEST_TMPDIR/other 2>/dev/null; (echo $BATS_TEST_TMPDIR/other; cat /etc/ld.so.conf) >$BATS_TEST_TMPDIR/conf
		mount --bind $BATS_TEST_TMPDIR/conf /etc/ld.so.conf; ldconfig 2>/dev/null; "'list=$(ldconfig -p); grep -m1 libcuda.so.1 <<<"$list"; ctr-gpu list --json --capabilities=all | jq -r "$0"' "$filter"
	[[ ${lines[0]} == *"=> $BATS_TEST_TMPDIR/other/libcuda.so.1" ]]
	diff <(printf '%s\n' "${lines[@]:1}") - <<<"$plain"
	run on nvidia bash -c "$others; ldconfig 2>/dev/null; rm /etc/ld.so.cache; "'ctr-gpu list --json --capabilities=all | jq -r "$0"' "$filter"
	diff <(echo "$output") - <<<"$plain"
}

@test "libraries that the table does not know go with compute, under their SONAMEs" {
	plan newer '.mounts[] | select(.source | test("tomorrow")) | .target' -c
	expect_line "/usr/lib/ctr-gpu/libnvidia-tomorrow.so.1"
	expect_line "/usr/lib/ctr-gpu/libnvidia-tomorrowcore.so.999.10.01"
	plan newer '.mounts[] | select(.source | test("tomorrow")) | .target' -u
	expect_line ""
	run on newer ctr-gpu info
	expect "libnvidia-tomorrow.so.999.10.01"
}

@test "32-bit libraries have a directory of their own" {
	plan compat32 '[.mounts[].target | select(test("libcuda.so.1"))] | join(" ")' -c
	expect_line "/usr/lib/ctr-gpu/libcuda.so.1"
	plan compat32 '[.mounts[].target | select(test("libcuda.so.1"))] | join(" ")' -c --compat32
	expect_line "/usr/lib/ctr-gpu/libcuda.so.1 /usr/lib/ctr-gpu/32/libcuda.so.1"
	plan prefix '.warnings[]' -c --compat32
	expect "32-bit libraries are asked for"
}

@test "a driver below a root of its own is found there, and not without" {
	globals=(--root /usr/local/driver)
	plan root '[.mounts[] | select(.target == "/usr/lib/ctr-gpu/libcuda.so.1") | .source] | join(" ")'
	expect_line "/usr/local/driver/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04"
	plan root '[.mounts[] | select(.target == "/usr/bin/nvidia-smi") | .source] | join(" ")'
	expect_line "/usr/local/driver/usr/bin/nvidia-smi"
	globals=()
	plan root .
	expect "no libraries of that version are below /"
}

@test "graphics and display bring the selected GPU's nodes of /dev/dri, and nobody else's" {
	require_pci
	local dri='[(.devices[] | .path), (.symlinks[] | .path + "=" + .pointsTo) | select(test("/dri/"))] | sort | join(" ")' option

	for option in -g -D; do
		plan desktop "$dri" --device 1 $option
		expect_line "/dev/dri/by-path/pci-0000:41:00.0-card=../card5 /dev/dri/by-path/pci-0000:41:00.0-render=../renderD134 /dev/dri/card5 /dev/dri/renderD134"
	done
	plan desktop '[.devices[].path | select(test("/dri/"))] | sort | join(" ")' -g --device nvidia.com/gpu=all
	expect_line "/dev/dri/card5 /dev/dri/card7 /dev/dri/renderD133 /dev/dri/renderD134"
	plan desktop '[.devices[], .symlinks[] | .path | select(test("/dri/"))] | length' -c -u --device 0
	expect_line 0
}

@test "a part of a GPU (MIG) has none of the nodes of /dev/dri, which are the whole GPU's" {
	require_pci
	local device

	jq '.native.cards = [{pci: "0000:00:07.0", card: 8, render: 135}]' "$e2e/../hosts/profiles/native-mig.json" >"$BATS_TEST_TMPDIR/cards.json"
	for device in 1:0 1; do
		run bash -c '"$@" | jq -r ".devices[].path | select(test(\"/dri/|nvidia1\"))"' jq "$e2e/../hosts/enter" --profiles "$BATS_TEST_TMPDIR" cards -- \
			"$CTR_GPU_BUILD/bin/ctr-gpu" configure --dry-run --json -g --device "$device" /srv
		echo "$output"
		[[ $(sort <<<"$output" | xargs) == "$([[ $device == 1:0 ]] || echo "/dev/dri/card8 /dev/dri/renderD135 ")/dev/nvidia1" ]]
	done
}

# Parts have their numbers behind the GPUs of all vendors.
@test "a GPU, a part of another and another vendor's GPU in one request" {
	require_pci
	jq '.native.cards = [{pci: "0000:05:00.0", vendor: "1002", device: "74a1", card: 1, render: 128, unique_id: "1", gfx_target: 90402}]' \
		"$e2e/../hosts/profiles/native-mig.json" >"$BATS_TEST_TMPDIR/vendors.json"
	run bash -c '"$@" | jq -r "[.devices[].path | select(test(\"nvidia[01]|cap|renderD\"))] | sort | join(\" \")"' jq \
		"$e2e/../hosts/enter" --profiles "$BATS_TEST_TMPDIR" vendors -- "$CTR_GPU_BUILD/bin/ctr-gpu" configure --dry-run --json \
		--device nvidia.com/gpu=0,amd.com/gpu=0,nvidia.com/gpu=1:2 /srv
	expect_line "/dev/dri/renderD128 /dev/nvidia-caps/nvidia-cap156 /dev/nvidia-caps/nvidia-cap158 /dev/nvidia0 /dev/nvidia1"
}

@test "a node of /dev/dri that belongs to another driver is not given" {
	require_pci
	run on desktop bash -c 'rm /dev/dri/card7 && mknod /dev/dri/card7 c 1 3 && ctr-gpu list -g --device 0'
	expect_line "/dev/dri/renderD133"
	expect_no_line "/dev/dri/card7"
}

# ---- requirements ----

@test "requirements are held against driver, CUDA and brand without loading anything" {
	plan prefix "$devices" --require 'cuda>=13.0 brand=tesla,driver>=470'
	expect_status 0
	plan prefix "$devices" --require 'cuda>=14.0'
	expect "E_REQUIREMENT"
	expect "CUDA 13.0, driver 580.159.04"
	plan compat32 "$devices" --require 'brand=geforcertx,driver<581'
	expect_status 0
	plan compat32 "$devices" --require 'brand=tesla'
	expect "E_REQUIREMENT"
}

@test "a driver without a note is asked for its CUDA version" {
	plan old "$devices" --require 'cuda>=12.8,brand=tesla'
	expect_status 0
	plan old "$devices" --require 'cuda>=13.0'
	expect "CUDA 12.8, driver 570.86.10"
}

@test "an image with many requirements does not fill the log" {
	local many=()
	for i in {1..1000}; do
		many+=(--require "x=$i,cuda>=12")
	done
	plan prefix '.warnings | length, .[0], .[15:][]' "${many[@]}"
	expect_line 17
	expect_line "the image requires x=1,cuda>=12: this host does not tell whether it is so"
	expect_line "the image requires x=16,cuda>=12: this host does not tell whether it is so"
	expect_line "the image has more such requirements, which are not told"
	plan prefix '.warnings | length' "${many[@]:0:32}"
	expect_line 16
	# One that does not hold counts wherever it is.
	plan prefix . "${many[@]}" --require 'cuda>=14'
	expect E_REQUIREMENT
}

# ---- containers ----

works_in() {
	start prefix "$1" all /usr/bin/probe
	echo "in $1: $output"
	expect_status 0
	expect_line "cuInit=0"
	expect_line "device=NVIDIA H200"
	expect_line "library=/usr/lib/ctr-gpu/libcuda.so.1"
	expect_line "library=/usr/lib/ctr-gpu/libnvidia-ptxjitcompiler.so.1"
}

@test "a CUDA program finds the driver in images of every layout" {
	for image in debian fedora-like no-cache no-etc baked; do
		works_in "$image"
	done
}

# bats test_tags=cgroup
@test "an unselected GPU cannot be opened, not even through a node of one's own" {
	start unordered debian 2 /bin/sh -c '
		ls /dev | grep nvidia
		probe open /dev/nvidia0; probe open /dev/nvidiactl; probe open /dev/nvidia-uvm
		probe node 195 2 /tmp/other; probe node 195 0 /tmp/own'
	expect_status 0
	expect_line "/dev/nvidia0=ENXIO"
	expect_line "/dev/nvidiactl=ENXIO"
	expect_line "/dev/nvidia-uvm=ENXIO"
	expect_no_line "nvidia1"
	expect_no_line "nvidia2"
	expect_line "/tmp/other=EPERM"
	expect_line "/tmp/own=ENXIO"
}

# bats test_tags=cgroup
@test "the nodes of /dev/dri in a container: the selected GPU's open, others do not" {
	require_pci
	capabilities=graphics start desktop debian 0 /bin/sh -c '
		ls /dev/dri; cd /dev/dri/by-path; for link in *; do echo "$link=$(readlink "$link")"; done
		probe open /dev/dri/card7; probe open /dev/dri/by-path/pci-0000:01:00.0-render
		probe node 226 132 /tmp/integrated; probe node 226 134 /tmp/other; probe node 226 133 /tmp/own'
	expect_status 0
	expect_line "pci-0000:01:00.0-card=../card7"
	expect_line "pci-0000:01:00.0-render=../renderD133"
	for line in card5 card6 renderD132 renderD134; do
		expect_no_line "$line"
	done
	expect_not "0000:00:02.0"
	expect_not "0000:41:00.0"
	expect_line "/dev/dri/card7=ENXIO"
	expect_line "/dev/dri/by-path/pci-0000:01:00.0-render=ENXIO"
	expect_line "/tmp/integrated=EPERM"
	expect_line "/tmp/other=EPERM"
	expect_line "/tmp/own=ENXIO"
}

# bats test_tags=cgroup
@test "without a selection nothing of a GPU is visible" {
	start unordered debian void /bin/sh -c 'ls /dev /usr/lib; probe node 195 0 /tmp/node'
	expect_status 0
	expect_not nvidia
	expect_no_line ctr-gpu
	expect_line "/tmp/node=EPERM"
}

# bats test_tags=cgroup
@test "a part of a GPU in a container: its capabilities open, others do not" {
	start mig debian 1:1 /bin/sh -c '
		probe open /dev/nvidia-caps/nvidia-cap156; probe open /dev/nvidia-caps/nvidia-cap157
		probe node 241 158 /tmp/other; probe open /dev/nvidia1'
	expect_status 0
	expect_line "/dev/nvidia-caps/nvidia-cap156=ENXIO"
	expect_line "/dev/nvidia-caps/nvidia-cap157=ENXIO"
	expect_line "/tmp/other=EPERM"
	expect_line "/dev/nvidia1=ENXIO"
}
