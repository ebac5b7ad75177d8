# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# The GPU-PV backend on simulated hosts: what it finds by either source, what it says where it finds nothing, and what it
# plans for a container.

bats_require_minimum_version 1.5.0

setup() {
	here=$(dirname "$BATS_TEST_FILENAME")
	build=$(readlink -f "${CTR_GPU_BUILD:-$here/../../build}")
	profiles=$here/../hosts/profiles
	PATH=$build/bin:$PATH
	lib=/usr/lib/wsl/lib
	drivers=/usr/lib/wsl/drivers
	nvidia_store=$drivers/nv_dispi.inf_amd64_4ac8a5f5c1b3b3ab
}

# host PROFILE COMMAND…: on a simulated host
host() {
	local profile=$1
	shift
	O=$build PATH=$PATH "$here/../hosts/enter" "$profile" -- "$@"
}

# info PROFILE FILTER [OPTION…]: what jq makes of the inventory
info() {
	local profile=$1 filter=$2
	shift 2
	host "$profile" ctr-gpu info --json "$@" 2>/dev/null | jq -c "$filter"
}

# plan PROFILE FILTER [OPTION…]: what jq makes of the plan
plan() {
	local profile=$1 filter=$2
	shift 2
	host "$profile" ctr-gpu list --json "$@" 2>/dev/null | jq -c "$filter"
}

# same GOT WANTED
same() {
	[[ $1 == "$2" ]] && return
	printf 'got:    %s\nwanted: %s\n' "$1" "$2"
	return 1
}

# says TEXT…: $output has each
says() {
	local text
	for text; do
		[[ $output == *"$text"* ]] && continue
		printf '"%s" is not in: %s\n' "$text" "$output"
		return 1
	done
}

@test "libdxcore and the ioctls give the same inventory" {
	local profile dxcore adapters count=0
	for file in "$profiles"/*.json; do
		profile=$(basename "$file" .json)
		read -r dxcore adapters < <(jq -r '"\(.libdxcore) \(.adapters | length)"' "$file")
		[[ $dxcore == present ]] || continue
		same "$(host "$profile" ctr-gpu info --json --inventory=dxcore 2>/dev/null)" "$(host "$profile" ctr-gpu info --json --inventory=ioctl 2>/dev/null)"
		same "$(info "$profile" '[.notes, ([.adapters[] | select(.backend == "gpu-pv")] | length)]')" "[[],$adapters]"
		count=$((count + 1))
	done
	[[ $count -ge 5 ]]
}

@test "every fact of an adapter" {
	same "$(info wsl-nvidia '.adapters[0] | [.index, .backend, .name, .vendor, .vendorId, .deviceId, .pciAddress, .luid, .wddmVersion,
		.driverStore, .computeOnly, .unusable]')" \
		'[0,"gpu-pv","NVIDIA GeForce RTX 4090","NVIDIA",4318,9860,"0000:01:00.0","LUID-000000005a3f1c2b",3200,"'"$nvidia_store"'",false,null]'
}

@test "NVIDIA first, then others that render, then what only computes; by PCI address" {
	same "$(info wsl-hybrid '[.adapters[] | [.index, .vendor]]')" '[[0,"NVIDIA"],[1,"Intel"]]'
	same "$(info wsl-two-nvidia '[.adapters[].pciAddress]')" '["0000:01:00.0","0000:41:00.0"]'
	same "$(info wsl-amd-npu '[.adapters[] | [.vendor, .computeOnly]]')" '[["AMD",false],["AMD",true]]'
	# Its NPU says that it renders, too, and comes first on the bus.
	same "$(info wsl-amd-xdna2 '[.adapters[] | [.name, .computeOnly]]')" '[["AMD Radeon RX 7900 XTX",false],[null,true]]'
	same "$(info hyperv-half-stale '[.adapters[] | [.index, .unusable]]')" '[[0,null],[null,"E_NO_DRIVER_STORE"]]'
}

@test "adapters of Qualcomm, which are not on PCI; an NPU whose driver is for Windows alone" {
	same "$(info wsl-qualcomm '[.adapters[] | [.index, .vendor, .vendorId, .pciAddress, .unusable]]')" \
		'[[0,"Qualcomm",1297040209,null,null],[null,"Qualcomm",1297040209,null,"E_NO_DRIVER_STORE"]]'
	same "$(info wsl-qualcomm '.adapters[1].reason')" "\"its driver store $drivers/qcnspmcdm8380.inf_arm64_1d0f4f7d1b7c9a51 has no library for Linux\""
	same "$(plan wsl-qualcomm '[.mounts[].target]')" "[\"$lib\",\"$drivers/qcdx8380.inf_arm64_6c9fb8f1e2f04b2a\"]"
}

@test "an NPU has a number and a kind of its own, and is given on request" {
	local npu=$drivers/kipudrv.inf_amd64_f4e4e5d1a3a9d6c2 amd=$drivers/u0198975.inf_amd64_3c5d1ea0f1f2bb61 device
	same "$(info wsl-amd-xdna2 '[.adapters[] | [.index, .npu]]')" '[[0,null],[null,"npu:0"]]'
	same "$(host wsl-amd-xdna2 ctr-gpu info | grep -o '^[GN]PU 0')" $'GPU 0\nNPU 0'
	same "$(plan wsl-amd-xdna2 '[.mounts[].target], .warnings')" "[\"$lib\",\"$amd\"]
[]"
	for device in npu:0 npu:all amd.com/npu=0 amd.com/npu=all LUID-000000000001b433 00:0b.0; do
		same "$(plan wsl-amd-xdna2 '[.mounts[].target]' --device=$device)" "[\"$lib\",\"$npu\"]"
	done
	same "$(plan wsl-amd-xdna2 '.warnings | length' --device=npu:0)" 1
	same "$(plan wsl-amd-xdna2 '[.mounts[].target]' --device=0,npu:0)" "[\"$lib\",\"$amd\",\"$npu\"]"
	run -1 host wsl-amd-xdna2 ctr-gpu list --device=1
	says "It has: 0 AMD Radeon RX 7900 XTX; npu:0 AMD"
	# shellcheck disable=SC2016
	run -0 host wsl-amd-xdna2 sh -c 'cd /run/ctr-gpu && ctr-gpu cdi generate --output=specs/ >/dev/null &&
		jq -c "[.kind, (.devices[] | [.name, .containerEdits.hooks[].args[1]])]" specs/*.json'
	same "$output" '["amd.com/npu",["0","--device=amd.com/npu=0"],["LUID-000000000001b433","--device=amd.com/npu=LUID-000000000001b433"],["0000:00:0b.0","--device=amd.com/npu=0000:00:0b.0"],["all","--device=amd.com/npu=all"]]
["amd.com/gpu",["0","--device=amd.com/gpu=0"],["LUID-000000000001a97d","--device=amd.com/gpu=LUID-000000000001a97d"],["0000:03:00.0","--device=amd.com/gpu=0000:03:00.0"],["all","--device=amd.com/gpu=all"]]'
}

@test "a host of Windows 10 refuses by zeros, which are no address" {
	local source
	for source in dxcore ioctl; do
		same "$(info wsl-windows-10 '[.adapters[] | [.index, .name, .pciAddress]]' --inventory=$source)" \
			'[[0,"NVIDIA GeForce RTX 4090",null],[1,"NVIDIA RTX A2000",null]]'
	done
	run -1 host wsl-windows-10 ctr-gpu list --device=0000:00:00.0
	says "[E_UNKNOWN_DEVICE]"
}

uuid_4090=GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4
uuid_a2000=GPU-7b10aa04-0041-0000-0000-000084ef55fb

@test "UUIDs are those of nvidia-smi, which NVML and the PCI address tell" {
	run host wsl-two-nvidia nvidia-smi -L
	says "NVIDIA RTX A2000 (UUID: $uuid_a2000)" "NVIDIA GeForce RTX 4090 (UUID: $uuid_4090)"
	same "$(info wsl-two-nvidia '[.adapters[] | [.name, .uuid]]')" \
		"[[\"NVIDIA GeForce RTX 4090\",\"$uuid_4090\"],[\"NVIDIA RTX A2000\",\"$uuid_a2000\"]]"
	same "$(info wsl-hybrid '[.adapters[].uuid]')" "[\"$uuid_4090\",null]"
	# Where no address is told, two cannot be told apart.
	same "$(info wsl-windows-10 '[.adapters[].uuid]')" '[null,null]'
	local device
	for device in $uuid_a2000 ${uuid_a2000,,} GPU-7b10 a2000; do
		same "$(plan wsl-two-nvidia '[.mounts[].target | select(startswith("'"$drivers"'"))]' --device="$device")" \
			"[\"$drivers/nvlti.inf_amd64_9e8ff2f2a1d0c37e\"]"
	done
	run -1 host wsl-two-nvidia ctr-gpu list --device=GPU-00000000
	says "[E_UNKNOWN_DEVICE]" 'no device "GPU-00000000"' "0 NVIDIA GeForce RTX 4090; 1 NVIDIA RTX A2000"
	run -1 host wsl-two-nvidia ctr-gpu list --device=nvidia
	says "[E_UNKNOWN_DEVICE]" '"nvidia" may be any of: 0 NVIDIA GeForce RTX 4090; 1 NVIDIA RTX A2000'
}

@test "UUIDs where the loader does not know libdxcore, and where NVML does not answer" {
	same "$(host wsl-nvidia sh -c 'rm /etc/ld.so.cache && ctr-gpu info --json' | jq -r '.adapters[0].uuid')" "$uuid_4090"
	run -1 host hyperv-no-libdxcore ctr-gpu list --device=GPU-11111111
	says "[E_DRIVER_LIBRARY]" "libnvidia-ml.so.1" "index, LUID or PCI address"
	run -0 host hyperv-no-libdxcore ctr-gpu list --device=0 --utility
	same "$(info hyperv-no-libdxcore '[.adapters[0].uuid, (.notes | length)]')" '[null,1]'
}

@test "NVML is asked once, for a UUID alone; what is kept is root's" {
	local kept=/run/ctr-gpu/uuids.json
	# shellcheck disable=SC2016
	run -0 host wsl-two-nvidia bash -c '
		asks() { strace -f -qq -e trace=execve -o /run/ctr-gpu/trace "$@" >/dev/null 2>&1; grep -c driverd /run/ctr-gpu/trace; }
		echo "index $(asks ctr-gpu configure --dry-run /srv --inventory=ioctl --device=1)"
		echo "first $(asks ctr-gpu configure --dry-run /srv --inventory=ioctl --device=$1)"
		echo "again $(asks ctr-gpu configure --dry-run /srv --inventory=ioctl --device=$2)"
		# The next boot gives other LUIDs, and may find the file.
		sed -i "s/\"boot\": *\"[^\"]*/&0/" $0; echo "boot $(asks ctr-gpu configure --dry-run /srv --inventory=ioctl --device=$2)"
		echo "unknown $(asks ctr-gpu configure --dry-run /srv --inventory=ioctl --device=GPU-00000000)"
		stat -c "kept %a %U" $0
		# Somebody else writes to it, or to the directory, or has put it there.
		sed -i "s/GPU-7b10/GPU-dead/" $0; echo "changed $(asks ctr-gpu configure --dry-run /srv --inventory=ioctl --device=GPU-dead)"
		chmod o+w $0; echo "file $(asks ctr-gpu configure --dry-run /srv --inventory=ioctl --device=$1)"
		sed -i "s/GPU-7b10/GPU-dead/" $0; chmod o+w /run/ctr-gpu
		echo "directory $(asks ctr-gpu configure --dry-run /srv --inventory=ioctl --device=$1)"; grep -c dead $0
		chmod o-w /run/ctr-gpu; chown 1000 $0; echo "owner $(asks ctr-gpu configure --dry-run /srv --inventory=ioctl --device=$1)"
		printf "{\"LUID-000000007b10aa04\": \"GPU-../x\", \"LUID-000000005a3f1c2b\": 7}" >$0; echo "nonsense $(asks ctr-gpu configure --dry-run /srv --inventory=ioctl --device=$1)"
	' "$kept" "$uuid_a2000" "$uuid_4090"
	same "$(grep -E '^[a-z]+ [0-9]+( root)?$' <<<"$output")" "index 0
first 1
again 0
boot 1
unknown 0
kept 600 root
changed 0
file 1
directory 1
owner 1
nonsense 1"
}

@test "NVML that knows one of two GPUs: the address says which, and the other gets no UUID" {
	run -0 host wsl-two-nvidia sh -c 'touch /run/ctr-gpu/nvml-knows-one; uuids() { ctr-gpu info --json | jq -c "[.adapters[].uuid]"; }
		uuids && uuids'
	same "$output" "[null,\"$uuid_a2000\"]
[null,\"$uuid_a2000\"]"
}

# changed PROFILE FILTER NAME: a profile of another name that jq made
changed() {
	mkdir -p "$BATS_TEST_TMPDIR/profiles"
	jq "$2" "$profiles/$1.json" >"$BATS_TEST_TMPDIR/profiles/$3.json"
}

@test "two adapters with one address: it selects neither, and is no name of a CDI device" {
	changed wsl-two-same-store '.adapters[].pci = "01:00.0"' partitions
	on_changed() {
		O=$build "$here/../hosts/enter" --profiles "$BATS_TEST_TMPDIR/profiles" partitions -- "$@"
	}
	run -1 on_changed ctr-gpu list --device=0000:01:00.0
	says "[E_UNKNOWN_DEVICE]" '"0000:01:00.0" may be any of: 0 NVIDIA GeForce RTX 4090; 1 NVIDIA GeForce RTX 4090' "index, LUID or UUID"
	run -0 on_changed ctr-gpu cdi generate --output=-
	same "$(jq -c '[.devices[].name]' <<<"$output")" '["0","LUID-000000005a3f1c2b","1","LUID-000000005a3f9d11","all"]'
	run -0 on_changed ctr-gpu info --json
	same "$(jq -c '[.adapters[].uuid]' <<<"$output")" '[null,null]'
}

@test "names that are not ASCII, which libdxcore itself cannot convert" {
	local source name="英伟达 GeForce RTX 4090 显卡 ®"
	changed wsl-nvidia ".adapters[0].name = \"$name\"" chinese
	for source in dxcore ioctl; do
		O=$build run -0 "$here/../hosts/enter" --profiles "$BATS_TEST_TMPDIR/profiles" chinese -- ctr-gpu info --json --inventory=$source
		same "$(jq -r '.adapters[0].name' <<<"$output")" "$name"
	done
}

@test "adapters that libdxcore knows and the kernel does not are used, with a remark that the doctor shows" {
	local made=$BATS_TEST_TMPDIR/profiles

	mkdir "$made"
	jq '.adapters[0].store = "nv_dispi.inf_amd64_0123456789abcdef"' "$profiles/wsl-old-driver.json" >"$made/disagrees.json"
	O=$build PATH=$PATH run "$here/../hosts/enter" --profiles "$made" disagrees -- bash -c 'mount --bind "$0" /usr/lib/wsl/lib/libdxcore.so &&
		ctr-gpu info --json && ctr-gpu doctor --json' "$build/test/lib/works.so"
	same "$(jq -sc '.[0] | [.adapters[0].unusable, (.notes | length)]' <<<"$output")" '[null,1]'
	says "/dev/dxg has no adapter that can be used; used /usr/lib/wsl/lib/libdxcore.so"
	same "$(jq -sr '.[1].findings[] | select(.id == "adapter.inventory") | .severity' <<<"$output")" "warning"
}

@test "a libdxcore that fails is not asked where the kernel has adapters, and costs a remark where it has none that can be used" {
	local profile kind made
	for kind in broken crashes hangs; do
		profile=wsl-dxcore-$kind
		same "$(info "$profile" '[.adapters[].name, .notes]' --timeout=0.3)" '["NVIDIA GeForce RTX 4090",[]]'
		run host "$profile" strace -f -qq -e trace=execve ctr-gpu configure --dry-run /srv
		[[ $output != *ctr-gpu-driverd* ]]
		made=$BATS_TEST_TMPDIR/profiles
		mkdir -p "$made"
		jq --slurpfile broken "$profiles/$profile.json" '.libdxcore = $broken[0].libdxcore' "$profiles/wsl-old-driver.json" >"$made/old-$kind.json"
		O=$build PATH=$PATH run "$here/../hosts/enter" --profiles "$made" "old-$kind" -- ctr-gpu info --json --timeout=0.3
		[[ $status -eq 1 ]]
		same "$(jq -c '[(.notes | length), (.adapters[0].unusable != null)]' <<<"$output")" '[1,true]'
		says "libdxcore.so" "used /dev/dxg itself"
	done
}

@test "a libdxcore that fails and was asked for is an error that says how" {
	run -1 host wsl-dxcore-broken ctr-gpu info --inventory=dxcore
	says "[E_DRIVER_LIBRARY]" "$lib/libdxcore.so" "it has no D3DKMTEnumAdapters2" "ioctl"
	run -1 host wsl-dxcore-crashes ctr-gpu info --inventory=dxcore
	says "[E_DRIVER_LIBRARY]" "$lib/libdxcore.so crashed (SIGSEGV)"
	run -1 host wsl-dxcore-hangs ctr-gpu info --inventory=dxcore --timeout=0.3
	says "[E_DRIVER_TIMEOUT]" "$lib/libdxcore.so did not answer within 0.3 s"
	run -1 host hyperv-no-libdxcore ctr-gpu info --inventory=dxcore
	says "[E_DRIVER_LIBRARY]" "libdxcore.so is missing"
}

@test "no libdxcore is a remark for the programs, and not for the inventory" {
	same "$(info hyperv-no-libdxcore '[.adapters[0].name, (.notes | map(.[:60]))]')" \
		'["NVIDIA RTX A4000",["/usr/lib/wsl/lib/libdxcore.so is missing, and without it no "]]'
}

@test "libdxcore in a configured directory" {
	printf '{"inventory": "dxcore", "library-directories": ["%s"]}' "$build/test/hosts/files/dxcore-present" >"$BATS_TEST_TMPDIR/config.json"
	chmod go-w "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/config.json"
	same "$(info hyperv-no-libdxcore '.adapters[0].name' --config="$BATS_TEST_TMPDIR/config.json")" '"NVIDIA RTX A4000"'
}

@test "an adapter that cannot be used says why" {
	run info hyperv-stale-store '.adapters[].reason'
	says "$drivers/nv_dispsi.inf_amd64_0d8a1ba1d2a6c1f7 is missing"
	run info wsl-old-driver '.adapters[].reason'
	says "WDDM 2.6" "2.7 is needed"
	run info wsl-software-only '.adapters[].reason'
	says "software device"
}

@test "no store is a usable one without its directory" {
	run -1 host hyperv-stale-store ctr-gpu list
	says "[E_NO_DRIVER_STORE]" "$drivers/nv_dispsi.inf_amd64_0d8a1ba1d2a6c1f7"
	run -1 host wsl-old-driver ctr-gpu list
	says "[E_DRIVER_TOO_OLD]" "WDDM 2.6"
	run -1 host wsl-software-only ctr-gpu list
	says "[E_NO_ADAPTER]" "software device"
	run -1 host wsl-no-adapter ctr-gpu list
	says "[E_NO_ADAPTER]"
	run -1 host plain ctr-gpu list
	says "[E_NO_DEVICE]" "/dev/dxg"
}

@test "a device, the host's libraries, nvidia-smi and a store" {
	same "$(host wsl-nvidia ctr-gpu list)" "/dev/dxg
$lib
$lib/nvidia-smi
$nvidia_store"
	same "$(plan wsl-nvidia '[.devices[] | [.path, .access]], [.mounts[].target], [.libraryDirectories[] | [.path, .overridesImage]], .warnings')" \
		"[[\"/dev/dxg\",\"rw\"]]
[\"$lib\",\"/usr/bin/nvidia-smi\",\"$nvidia_store\"]
[[\"$lib\",true],[\"$nvidia_store\",true]]
[]"
}

@test "libraries are what ends in .so or has .so. in it" {
	same "$(plan wsl-nvidia '[.libraryDirectories[].libraries[] | select(test("\\.so$|\\.so\\.") | not)]')" '[]'
	same "$(plan wsl-nvidia '.libraryDirectories[1].libraries | contains(["libcuda.so.1.1", "libnvidia-ptxjitcompiler.so.1"])')" true
	same "$(plan wsl-nvidia '[.libraryDirectories[].libraries[] | select(test("bin$|dll$|inf$|smi"))]')" '[]'
}

@test "every entry has a reason" {
	same "$(plan wsl-hybrid '[.. | objects | select(has("path") or has("target")) | .reason | length > 10] | all')" true
}

@test "only the stores of the selected adapters, and a word about the device" {
	run plan wsl-hybrid '[.mounts[].target], .warnings' --device=1
	says iigd_dch "every adapter of the host can still be opened through /dev/dxg"
	[[ $output != *"$nvidia_store"* ]]
	same "$(plan wsl-hybrid '[.libraryDirectories[] | .overridesImage]' --device=1)" '[true,false]'
	same "$(plan wsl-hybrid '[.mounts[].target | select(startswith("'"$drivers"'"))] | length' --device=all)" 2
	same "$(plan wsl-hybrid '.warnings' --device=all)" '[]'
	same "$(plan wsl-hybrid '.warnings' --device=0,1)" '[]'
	same "$(plan wsl-nvidia '.warnings' --device=0)" '[]'
}

@test "two adapters with one store share a mount" {
	same "$(plan wsl-two-same-store '[.mounts[].target | select(startswith("'"$drivers"'"))]')" "[\"$nvidia_store\"]"
	same "$(plan wsl-two-same-store '.warnings')" '[]'
	# A choice between them is none, and one between them and a third narrows nothing else.
	run plan wsl-two-same-store '.warnings' --device=1
	says "were not selected work in the container, too" "CUDA_VISIBLE_DEVICES"
}

@test "none is driver libraries without a device or a store" {
	same "$(plan wsl-nvidia '[.devices, [.mounts[].target], [.libraryDirectories[].path]]' --device=none)" \
		"[[],[\"$lib\",\"/usr/bin/nvidia-smi\"],[\"$lib\"]]"
}

@test "nvidia-smi belongs to the capability utility" {
	same "$(plan wsl-nvidia '[.mounts[].target]' --compute)" "[\"$lib\",\"$nvidia_store\"]"
	# An Intel laptop's driver brings none.
	same "$(plan wsl-amd-npu '[.mounts[].target | select(endswith("smi"))]')" '[]'
}

@test "nvidia-smi of the store where the libraries have none" {
	run host wsl-nvidia sh -c "rm $lib/nvidia-smi && ctr-gpu list"
	[[ $status -eq 0 ]]
	says "$nvidia_store/nvidia-smi"
}

@test "a host without its directory of libraries" {
	run -1 host wsl-nvidia sh -c "umount -l $lib && rmdir $lib && ctr-gpu list --inventory=ioctl"
	says "[E_DRIVER_LIBRARY]" "$lib, the directory of the host's driver libraries, is missing"
	run -0 host wsl-nvidia sh -c "umount -l $lib && ctr-gpu list --json --inventory=ioctl --utility"
	says "holds no library"
}

@test "a driver without its loaders is refused, where they are needed for what is asked" {
	local damage

	for damage in "rm $lib/libcuda.so.1" ": >$lib/libcuda.so.1" "ln -sf nothing $lib/libcuda.so.1" "rm $lib/libdxcore.so" \
		": >$lib/libdxcore.so"; do
		for door in list "configure --dry-run /srv" "list --device=0,1 --compute" "cdi generate --no-hooks --kind=nvidia.com/gpu --output=-"; do
			run -1 host wsl-hybrid sh -c "$damage && ctr-gpu $door"
			says "$lib/lib" "and without it no" "Run wsl --shutdown in Windows"
			[[ $door == list* ]] || says "[E_DRIVER_LIBRARY] $lib/lib"
		done
		run -0 host wsl-hybrid sh -c "$damage && ctr-gpu configure --dry-run --utility /srv"
		run host wsl-hybrid sh -c "$damage && ctr-gpu info"
		says "note: $lib/lib" "and without it no" "Run wsl --shutdown in Windows"
		run -0 host wsl-hybrid sh -c "$damage && ctr-gpu cdi generate --kind=nvidia.com/gpu --output=$BATS_TEST_TMPDIR/specs/"
		says "warning: $lib/lib" "the hook refuses such a container"
	done
	# Intel's and AMD's need no libcuda, and its absence is no remark where there is no GPU of NVIDIA's.
	run -0 host wsl-hybrid sh -c "rm $lib/libcuda.so.1 && ctr-gpu list --device=1 --compute"
	run -1 host wsl-hybrid sh -c "rm $lib/libdxcore.so && ctr-gpu list --device=1 --compute"
	run -0 host wsl-amd-npu sh -c "rm -f $lib/libcuda.so.1 && ctr-gpu info && ctr-gpu list"
	[[ $output != *libcuda* ]]
}

@test "symlinks out of the directory of libraries: what they lead to comes, each file by itself" {
	same "$(plan wsl-lib-links '.mounts[] | select(.target | startswith("'$lib/'")) | select(.target | test("libcuda.so.1$|nvoptix")) | [.source, .target]')" \
		'["/usr/lib/wsl/lib2/libcuda.so.1.1","/usr/lib/wsl/lib/libcuda.so.1"]
["/usr/lib/wsl/lib2/libnvoptix.so.1","/usr/lib/wsl/lib/libnvoptix.so.1"]
["/usr/lib/wsl/lib2/libnvoptix.so.1","/usr/lib/wsl/lib/libnvoptix_loader.so.1"]'
	same "$(plan wsl-lib-links '.warnings, [.mounts[].target | select(. == "'$lib'")]')" $'[]\n[]'
	same "$(plan wsl-lib-links '.libraryDirectories[0].libraries')" "$(plan wsl-nvidia '.libraryDirectories[0].libraries')"
	# One will do, also with "..", and one that stays inside will not.
	for points_to in /usr/lib/wsl/elsewhere/libdxcore.so ../elsewhere/libdxcore.so "/usr/lib/wsl/$(printf './%.0s' {1..1000})elsewhere/libdxcore.so"; do
		run -0 host wsl-nvidia sh -c "mkdir $lib/../elsewhere && mv $lib/libdxcore.so $lib/../elsewhere &&
			ln -s $points_to $lib/libdxcore.so && ctr-gpu list --json | jq -c '.mounts[] | [.source, .target]'"
		says '["/usr/lib/wsl/elsewhere/libdxcore.so","/usr/lib/wsl/lib/libdxcore.so"]' '["/usr/lib/wsl/lib/libcuda.so.1","/usr/lib/wsl/lib/libcuda.so.1"]'
	done
	for points_to in libdxcore.so.1 ./libdxcore.so.1 $lib/libdxcore.so.1; do
		run -0 host wsl-nvidia sh -c "mv $lib/libdxcore.so $lib/libdxcore.so.1 && ln -s $points_to $lib/libdxcore.so &&
			ctr-gpu list --json | jq -c '.mounts[] | [.source, .target]'"
		says '["/usr/lib/wsl/lib","/usr/lib/wsl/lib"]'
	done
}

# The directory is read twice; each time a second read tells that there is no more.
@test "a directory of libraries that cannot be read to its end is an error" {
	for which in 2 3 4; do
		run -1 host wsl-lib-links strace -f -qq -o /dev/null -P "$lib" -e trace=getdents64 -e inject=getdents64:error=EIO:when=$which ctr-gpu list
		says "[EIO] cannot read $lib: Input/output error"
	done
}

@test "a symlink that leads nowhere, or to anything but a file, is left out and named" {
	run -0 host wsl-lib-links sh -c 'cd /usr/lib/wsl/lib2 && rm libnvcuvid.so libnvoptix.so.1 && ln -s /etc ../lib/libetc.so &&
		ctr-gpu list --json | jq -c ".warnings[], ([.libraryDirectories[].libraries[], .mounts[].target | select(test(\"cuvid.so$|etc\"))])"'
	same "$output" '"/usr/lib/wsl/lib/libetc.so is left out, as others are: it leads to no file, over a link that others than root could make, or has a name that is not text"
[]'
}

@test "a place outside where others than root may make links: files come, what links lead to does not" {
	run -0 host wsl-nvidia sh -c "mkdir -m 777 /usr/lib/wsl/open && mv $lib/libdxcore.so /usr/lib/wsl/open && ln -s /etc/shadow /usr/lib/wsl/open/libsecret.so &&
		ln -s /usr/lib/wsl/open/*.so $lib && ctr-gpu list --json --inventory=ioctl | jq -c '.mounts[].source, .warnings[]'"
	says '"/usr/lib/wsl/open/libdxcore.so"' "$lib/libsecret.so is left out: it leads to no file, over a link that others than root could make, or has a name that is not text"
	[[ $output != *shadow* ]]
	# JSON, and so a container's config.json, takes no such name.
	run -0 host wsl-lib-links sh -c "cp $lib/libdxcore.so $lib/libx\$(printf '\\377').so && ctr-gpu list --json | jq -r '.warnings[], .mounts[].target'"
	says "$lib/libx?.so is left out: it leads to no file, over" "$lib/libdxcore.so"
	# The program by the same rule, at both of its places.
	run -0 host wsl-nvidia sh -c "mkdir -m 777 /usr/lib/wsl/open && rm $lib/nvidia-smi && ln -s /etc/shadow /usr/lib/wsl/open/nvidia-smi &&
		ln -s /usr/lib/wsl/open/nvidia-smi $lib && ctr-gpu list --json | jq -c '.mounts[] | select(.target | endswith(\"smi\")) | .source'"
	same "$output" "\"$nvidia_store/nvidia-smi\""
}

@test "a place outside where somebody swaps a library and a link while containers are made" {
	run host wsl-nvidia bash -c '
		mkdir -m 777 /usr/lib/wsl/open && cd /usr/lib/wsl/open && echo secret >"$2/secret" && mv "$1/libdxcore.so" . &&
			ln -s "$2/secret" link && ln -s "$PWD/libdxcore.so" "$1" || exit
		perl -e "require \"syscall.ph\"; syscall(SYS_renameat2(), -100, \$ARGV[0], -100, \$ARGV[1], 2) while 1" "$PWD/libdxcore.so" "$PWD/link" &
		for _ in {1..200}; do
			root=$(mktemp -d "$2/root.XXXXXX")
			ctr-gpu --inventory=ioctl configure "$root" 2>/dev/null || continue
			cmp -s "$root$1/libdxcore.so" "$2/secret" && echo "the secret is in the container"
			ctr-gpu unconfigure "$root"
		done
		kill $!
		echo done' vanish "$lib" "$BATS_TEST_TMPDIR"
	same "$output" "done"
}

@test "a library goes by the name of its file, and by its SONAME where ldconfig made a link for that" {
	same "$(plan wsl-nvidia '[.libraryDirectories[].libraries[] | select(test("optix|gpucomp"))]')" \
		'["libnvoptix.so.1","libnvoptix_loader.so.1","libnvidia-gpucomp.so","libnvoptix.so.1"]'
}

@test "libraries a directory down in the store: all of it is mounted" {
	run -0 host wsl-amd-npu sh -c 'ls $(ctr-gpu list | grep /u0)'
	says B025777
	same "$(plan wsl-amd-npu '[.libraryDirectories[1].libraries, .warnings]' --device=0)" \
		'[[],[]]'
}

@test "a store that comes and goes while containers are made: it is there, or it is named and nothing is left" {
	run host wsl-nvidia bash -c '
		set -e
		cp -a /usr/lib/wsl/drivers "$2/drivers"
		umount /usr/lib/wsl/drivers
		mount --bind "$2/drivers" /usr/lib/wsl/drivers
		store=$1
		while mv -T "$store" "$store.away" && sleep 0.01 && mv -T "$store.away" "$store" && sleep 0.01; do :; done &
		made=0 named=0
		for _ in {1..150}; do
			root=$(mktemp -d "$2/root.XXXXXX")
			if ctr-gpu configure "$root" 2>"$2/said"; then
				[[ -e $root$store/libcuda.so.1.1 ]] || echo "not in the container"
				made=$((made + 1))
				ctr-gpu unconfigure "$root"
			else
				grep -q "$(basename "$store")" "$2/said" && [[ $(wc -l <"$2/said") -le 3 ]] || cat "$2/said"
				[[ -z $(ls -A "$root") ]] || find "$root"
				named=$((named + 1))
			fi
			! grep -q "$root" /proc/self/mounts || grep "$root" /proc/self/mounts
		done
		kill $!
		((made > 0 && named > 0)) && echo both' vanish "$nvidia_store" "$BATS_TEST_TMPDIR"
	same "$output" both
	# Between its being seen and its being mounted.
	run -1 host wsl-nvidia strace -f -qq -o /dev/null -e trace=open_tree -e inject=open_tree:error=ESTALE:when=2 \
		ctr-gpu configure "$(mktemp -d "$BATS_TEST_TMPDIR/root.XXXXXX")"
	says "$nvidia_store is not what it was a moment ago" "Try again"
}

@test "more adapters than EnumAdapters2 can list" {
	jq '.adapters = [.adapters[0] as $one | range(72) | $one + {luid: "00000000:\(. + 1000)"}]' \
		"$here/../hosts/profiles/wsl-nvidia.json" >"$BATS_TEST_TMPDIR/many.json"
	run -1 "$here/../hosts/enter" --profiles "$BATS_TEST_TMPDIR" many -- "$build/bin/ctr-gpu" --inventory=ioctl info
	says "/dev/dxg lists more than 64 adapters"
}

@test "requirements are held against the CUDA version in libcuda's note" {
	run -0 host wsl-nvidia ctr-gpu list --require='cuda>=12.8'
	run -1 host wsl-nvidia ctr-gpu list --require='cuda>=13.0'
	says "[E_REQUIREMENT]" "CUDA 12.8"
}

@test "few path system calls below /usr/lib/wsl, each of which is a round trip to Windows" {
	local source
	for source in dxcore ioctl; do
		# LeakSanitizer, where this is built with it, fails under strace.
		ASAN_OPTIONS=detect_leaks=0 host wsl-nvidia strace -f -qq -e trace=%file -o "$BATS_TEST_TMPDIR/trace" ctr-gpu configure --dry-run --inventory=$source /srv >/dev/null
		calls=$(grep -c '"/usr/lib/wsl' "$BATS_TEST_TMPDIR/trace")
		echo "$source: $calls"
		[[ $calls -ge 2 && $calls -le 12 ]]
	done
}

@test "a user without rights, and root of a user namespace, see the same" {
	local all
	# Why a choice cannot be held is another thing for who may not load the guard.
	all=$(info wsl-hybrid "del(.choice.why)")
	chmod o+x "$build" "$build/bin" "$build/lib"
	for source in dxcore ioctl; do
		for namespace in env "unshare -Ur"; do
			# shellcheck disable=SC2086
			run host wsl-hybrid setpriv --reuid 1000 --regid 1000 --clear-groups $namespace \
				ctr-gpu info --json --inventory=$source
			[[ $status -eq 0 ]]
			same "$(jq -c "del(.choice.why)" <<<"$output")" "$all"
		done
	done
}

# A process in a frozen cgroup cannot be killed, like one that waits for the host inside dxgkrnl.
@test "a library that hangs inside the kernel costs a bounded wait, and nobody else asks the device" {
	local freezer=/sys/fs/cgroup/freezer/ctr-gpu-test-$$ pid start seconds patience
	mkdir "$freezer" 2>/dev/null || skip "needs the freezer of cgroup version 1"
	echo FROZEN >"$freezer/freezer.state"
	# On a busy machine it may have ended before it is found: then once more, with more time.
	for seconds in 1 10; do
		patience=$((seconds * 1000 + 1 + BASHPID % 999)) start=$SECONDS
		host wsl-dxcore-hangs ctr-gpu info --inventory=dxcore --timeout="$seconds.${patience: -3}" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
		# By what no other test of this machine has.
		until pid=$(pgrep -f "^ctr-gpu-driverd $patience\$") || ! kill -0 $!; do sleep 0.05; done
		{ echo "$pid" >"$freezer/cgroup.procs"; } 2>/dev/null && break
	done
	[[ -n $(<"$freezer/cgroup.procs") ]]
	until grep -q "wsl --shutdown" "$BATS_TEST_TMPDIR/out" || [[ $((SECONDS - start)) -gt 60 ]]; do sleep 0.1; done
	output=$(<"$BATS_TEST_TMPDIR/out")
	echo THAWED >"$freezer/freezer.state"
	wait
	rmdir "$freezer"
	says "[ETIMEDOUT]" "the driver does not answer" "wsl --shutdown"
}

@test "ctr-gpu-driverd by hand explains itself" {
	run -1 ctr-gpu-driverd
	says "started by ctr-gpu"
	run -1 ctr-gpu-driverd 0
	run -1 ctr-gpu-driverd 10x
	run -1 ctr-gpu-driverd 1000 more
}

@test "ctr-gpu-driverd without a socket ends" {
	run -1 bash -c 'exec ctr-gpu-driverd 1000 3<&-'
	run -1 bash -c 'exec ctr-gpu-driverd 1000 3</dev/null'
}

# "make deb" runs it on the machine that it finds, also on one with a GPU.
@test "a library in ctr-gpu-driverd has no descriptor, also where there is a /dev/dxg" {
	run host wsl-nvidia "$build/test/unit/driverd/driverd_test"
	echo "$output"
	[ "$status" -eq 0 ]
}
