#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# Whichever door a request comes through, the plan is the same: `--dry-run` of each prints it, byte for byte.

load engines

setup_file() {
	require_root
}

# What is defined here runs on the simulated host, all doors on one: the functions are in its shell's environment.

# strings TEXT…: as JSON, in $strings. jq takes longer to start than a door to answer.
strings() {
	local text

	strings=
	for text; do
		text=${text//\\/\\\\}
		text=${text//\"/\\\"}
		text=${text//$'\t'/\\t}
		strings+=${strings:+, }\"${text//$'\n'/\\n}\"
	done
	strings="[$strings]"
}

# A bundle whose process has these variables, and before "--" the devices for which a CDI spec added hooks.
prepare() {
	local bundle=$BATS_TEST_TMPDIR/bundle hooks='' mounts='' prestart='' list bounds device strings

	while [[ $1 != -- ]]; do
		strings ctr-gpu-hook "--device=$1" createRuntime
		hooks+="${hooks:+, }{\"path\": \"/usr/bin/ctr-gpu-hook\", \"args\": $strings, \"env\": [\"LANG=C\"]}"
		shift
	done
	shift
	for device in ${mounted//,/ }; do
		mounts+="${mounts:+, }{\"source\": \"/dev/null\", \"destination\": \"/var/run/nvidia-container-devices/$device\", \"type\": \"bind\", \"options\": [\"bind\"]}"
	done
	[[ -z ${docker_hook-} ]] || prestart="{\"path\": \"$docker_hook\", \"args\": [\"nvidia-container-runtime-hook\", \"prestart\"]}"
	IFS=, read -ra list <<<"${bounding-CAP_CHOWN}"
	strings "${list[@]}"
	bounds=$strings
	strings "$@"
	mkdir -p "$bundle/rootfs"
	printf '{"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "process": {"args": ["sh"], "env": %s, "capabilities": {"bounding": %s}},
		"hooks": {"prestart": [%s]%s}, "mounts": [%s]}\n' \
		"$strings" "$bounds" "$prestart" "${hooks:+, \"createRuntime\": [$hooks]}" "$mounts" >"$bundle/config.json"
	printf '{"ociVersion": "1.0.2", "id": "doors", "status": "creating", "pid": 1, "bundle": "%s"}\n' "$bundle" >"$bundle/state.json"
}

# The doors, each in its own words. What a request is made of is in $devices (a list), $capabilities, $requirement and
# $channels; what else an environment says, in $variables, one a line; what mounts say, in $mounted, a list; what the process
# may become capable of, in $bounding, a list; the hook that `docker run --gpus` adds, in $docker_hook.

door_configure() {
	ctr-gpu configure --dry-run --json --device="$devices" --capabilities="$capabilities" \
		${requirement:+--require="$requirement"} ${channels:+--imex-channel="$channels"} /srv
}

door_configure_cdi_name() {
	ctr-gpu configure --dry-run --json --device="nvidia.com/gpu=${devices//,/,nvidia.com/gpu=}" \
		--capabilities="$capabilities" ${requirement:+--require="$requirement"} ${channels:+--imex-channel="$channels"} /srv
}

# For a container that is there, as the doors that engines call have it.
door_configure_container() {
	ctr-gpu configure --dry-run --json --device="$devices" --capabilities="$capabilities" "$BATS_TEST_TMPDIR/bundle/rootfs"
}

door_list() {
	ctr-gpu list --json --device="$devices" --capabilities="$capabilities" ${requirement:+--require="$requirement"} \
		${channels:+--imex-channel="$channels"}
}

# What only variables or mounts ask for.
door_words() {
	prepare_environment --
	ctr-gpu-hook --dry-run createRuntime <"$BATS_TEST_TMPDIR/bundle/state.json"
}

door_words_runtime() {
	prepare_environment --
	ctr-gpu-runtime --dry-run create --bundle "$BATS_TEST_TMPDIR/bundle" doors
}

door_list_of_defaults() {
	ctr-gpu list --json --device="$devices"
}

# prepare_environment [DEVICE… --] VARIABLE…: as `prepare`, with what the request has besides devices
prepare_environment() {
	local more

	mapfile -t more <<<"${variables:-UNUSED=}"
	prepare "$@" ${capabilities:+NVIDIA_DRIVER_CAPABILITIES="$capabilities"} ${requirement:+NVIDIA_REQUIRE_CUDA="$requirement"} \
		${channels:+NVIDIA_IMEX_CHANNELS="$channels"} "${more[@]}"
}

with_environment() {
	prepare_environment -- "$@"
}

door_hook() {
	with_environment "NVIDIA_VISIBLE_DEVICES=$devices"
	ctr-gpu-hook --dry-run createRuntime <"$BATS_TEST_TMPDIR/bundle/state.json"
}

door_nvidia_hook() {
	with_environment "NVIDIA_VISIBLE_DEVICES=$devices"
	nvidia-container-runtime-hook --dry-run prestart <"$BATS_TEST_TMPDIR/bundle/state.json"
}

# The hook that a CDI spec adds for each device, as the first of them is run.
door_cdi() {
	local names

	IFS=, read -ra names <<<"$devices"
	prepare_environment "${names[@]}" -- NVIDIA_VISIBLE_DEVICES=all NVIDIA_VISIBLE_DEVICES=void
	ctr-gpu-hook --device="${names[0]}" --dry-run createRuntime <"$BATS_TEST_TMPDIR/bundle/state.json"
}

door_runtime() {
	with_environment "NVIDIA_VISIBLE_DEVICES=$devices"
	ctr-gpu-runtime --dry-run create --bundle "$BATS_TEST_TMPDIR/bundle" doors
}

door_nvidia_runtime() {
	with_environment "NVIDIA_VISIBLE_DEVICES=$devices"
	nvidia-container-runtime --dry-run create --bundle "$BATS_TEST_TMPDIR/bundle" doors
}

door_swarm() {
	with_environment "DOCKER_RESOURCE_NVIDIA-GPU=$devices" NVIDIA_VISIBLE_DEVICES=all
	ctr-gpu-runtime --dry-run create --bundle "$BATS_TEST_TMPDIR/bundle" doors
}

door_container_cli() {
	local options

	if [[ $capabilities == all ]]; then
		options=(--compute --utility --video --graphics --display --ngx --compat32)
	else
		read -ra options <<<"--${capabilities//,/ --}"
	fi
	nvidia-container-cli configure "${mig[@]}" --dry-run --no-cgroups --ldconfig=@/sbin/ldconfig --device="$devices" \
		"${options[@]}" ${requirement:+--require="$requirement"} ${channels:+--imex-channel="$channels"} --pid="${pid:-1}" \
		"$BATS_TEST_TMPDIR/bundle/rootfs"
}

# With a process in a mount namespace of its own, as a container's first one is.
door_container_cli_container() {
	local pid status

	unshare --mount sleep 600 &
	pid=$!
	while [[ /proc/$pid/ns/mnt -ef /proc/self/ns/mnt ]]; do sleep 0.01; done
	door_container_cli
	status=$?
	kill "$pid"
	return "$status"
}

door_container_cli_mig() {
	local mig=(--mig-config=all)

	door_container_cli
}

# agree DOOR…: these doors print the plan that the first prints, and that is one
agree() {
	local door plan=$BATS_TEST_TMPDIR/plan other=$BATS_TEST_TMPDIR/other errors=$BATS_TEST_TMPDIR/errors

	"door_$1" >"$plan" 2>"$errors" || { cat "$errors" && return 1; }
	jq --exit-status '.mounts | length > 0' "$plan" >/dev/null || return
	for door in "${@:2}"; do
		"door_$door" >"$other" 2>"$errors"
		cmp "$plan" "$other" && continue
		echo "$1 and $door differ, on $profile, devices $devices, capabilities $capabilities, requirement $requirement"
		diff "$plan" "$other" | head -n 20
		cat "$errors"
		return 1
	done
}

# give_nothing DOOR…: these doors print a plan that has nothing in it
give_nothing() {
	local door plan=$BATS_TEST_TMPDIR/plan errors=$BATS_TEST_TMPDIR/errors

	for door in "$@"; do
		"door_$door" >"$plan" 2>"$errors" &&
			jq --exit-status '[.devices, .mounts, .files, .symlinks, .environment] | flatten | length == 0' "$plan" >/dev/null && continue
		echo "$door:" && cat "$plan" "$errors"
		return 1
	done
}

# refuse CODE DOOR…: these doors print no plan, and say this of the reason
refuse() {
	local code=$1 door plan=$BATS_TEST_TMPDIR/plan errors=$BATS_TEST_TMPDIR/errors

	for door in "${@:2}"; do
		if "door_$door" >"$plan" 2>"$errors" || { [[ -s $plan ]] && ! jq --exit-status .error "$plan" >/dev/null; } || ! grep -qF "[$code]" "$errors"; then
			echo "$door:" && cat "$plan" "$errors"
			return 1
		fi
	done
}

# has_only DOOR UUID,…: its plan has the GPUs whose UUIDs begin so, by vCUDA, and nothing of a device
has_only() {
	local plan

	plan=$("door_$1") && jq --exit-status '[.devices, .files, .environment] | flatten | length == 0' <<<"$plan" >/dev/null &&
		[[ $(jq -r '[.vcuda[].uuid[:12]] | join(",")' <<<"$plan") == "$2" ]]
}

environment_doors=(hook nvidia_hook runtime nvidia_runtime)
all_doors=(configure list "${environment_doors[@]}" cdi container_cli)
image_doors=(configure "${environment_doors[@]}" cdi container_cli_container) # which see what the image has

# on_host FUNCTION ARGUMENT…: for the request in $devices, $capabilities and $requirement on a host of $profile
on_host() (
	# shellcheck disable=SC2046 # names of functions
	export -f agree refuse give_nothing has_only strings prepare prepare_environment with_environment $(compgen -A function door_)
	export profile devices capabilities requirement channels variables mounted bounding docker_hook BATS_TEST_TMPDIR
	sandbox "$profile" bash -c 'mkdir -p /etc/ctr-gpu && echo "$0" >/etc/ctr-gpu/config.json && "$@"' "${settings:-{\}}" "$@"
)

# same PROFILE DEVICES [CAPABILITIES [REQUIREMENT]]: through every door; a name in a list of CDI's kind means the same name, and
# a Swarm gives names but no numbers
same() {
	local profile=$1 devices=$2 capabilities=${3:-compute,utility} requirement=${4-}
	local doors=("${all_doors[@]}")

	[[ $devices == all ]] || doors+=(configure_cdi_name)
	[[ $devices == all || $devices =~ ^[0-9]+$ ]] || doors+=(swarm)
	on_host agree "${doors[@]}"
}

uuid() {
	jq -r ".native.gpus[$2].uuid" "$e2e/../hosts/profiles/$1.json"
}

@test "one adapter under WSL2" {
	same wsl-nvidia all
	same wsl-nvidia 0
	same wsl-nvidia 0000:01:00.0 all
}

@test "libraries that are symlinks to another directory" {
	same wsl-lib-links all
}

@test "words in capitals, and PCI addresses in all spellings" {
	local profile=native-four capabilities=compute devices

	devices=all on_host door_list >"$BATS_TEST_TMPDIR/all"
	devices=ALL on_host door_hook | cmp - "$BATS_TEST_TMPDIR/all"
	devices=All on_host door_runtime | cmp - "$BATS_TEST_TMPDIR/all"
	devices=ALL on_host door_container_cli | cmp - "$BATS_TEST_TMPDIR/all"
	devices=VOID on_host give_nothing hook runtime
	same wsl-nvidia 0:1:0.0
	same wsl-nvidia 00000000:01:00.0
}

@test "what NVIDIA's tools give by other variables is named, and how to have it" {
	local profile=native-nvidia devices=0 capabilities=compute variables=$'NVIDIA_GDS=enabled\nNVIDIA_GDRCOPY=enabled\nNVIDIA_MOFED=no'

	for door in hook nvidia_hook runtime; do
		on_host "door_$door" >"$BATS_TEST_TMPDIR/other"
		[[ $(jq -r '[.warnings[] | select(contains("=enabled gives nothing; name what it means: --device /dev/"))] | length' \
			"$BATS_TEST_TMPDIR/other") -eq 2 ]]
	done
}

@test "two vendors under WSL2" {
	same wsl-hybrid all
	same wsl-hybrid 0 compute,utility,video,graphics
	same wsl-hybrid 1
	same wsl-hybrid 1,0
}

@test "vendors, words of names, UUIDs and NPUs" {
	same wsl-hybrid vendor:intel
	same wsl-hybrid "iris(r) xe"
	same wsl-hybrid GPU-5a3f1c2b
	same wsl-amd-xdna2 npu:0
	same wsl-amd-xdna2 npu:0,0
	same wsl-hybrid vendor:intel:0
	local profile=wsl-amd-xdna2 devices=0 capabilities=compute,utility requirement variables settings

	# The variables of other names mean the same as NVIDIA's.
	for variables in AMD_VISIBLE_DEVICES=0 AMD_VISIBLE_DEVICES=0-0 AMD_VISIBLE_DEVICES=all CTR_GPU_VISIBLE_DEVICES=0 \
		$'NVIDIA_VISIBLE_DEVICES=all\nAMD_VISIBLE_DEVICES=0' $'NVIDIA_VISIBLE_DEVICES=all\nCTR_GPU_VISIBLE_DEVICES=vendor:amd'; do
		on_host agree list words words_runtime
	done
	variables=AMD_VISIBLE_DEVICES=7 on_host refuse E_UNKNOWN_DEVICE words words_runtime
	for variables in AMD_VISIBLE_DEVICES=void CTR_GPU_VISIBLE_DEVICES= $'NVIDIA_VISIBLE_DEVICES=void\nAMD_VISIBLE_DEVICES=all' \
		$'NVIDIA_VISIBLE_DEVICES=all\nCTR_GPU_VISIBLE_DEVICES=void'; do
		on_host give_nothing words words_runtime
	done
	# An image of AMD's starts where there is no GPU of AMD's.
	profile=wsl-nvidia variables=AMD_VISIBLE_DEVICES=all on_host give_nothing words words_runtime
	# What the engine was told counts, and no variable of the image.
	profile=wsl-hybrid devices=1 docker_hook=/usr/bin/nvidia-container-runtime-hook \
		variables=$'NVIDIA_VISIBLE_DEVICES=1\nCTR_GPU_VISIBLE_DEVICES=all\nAMD_VISIBLE_DEVICES=all' on_host agree list words words_runtime
	settings="{\"accept-nvidia-visible-devices-envvar-when-unprivileged\": false}"
	variables=AMD_VISIBLE_DEVICES=all on_host give_nothing words words_runtime
	settings= variables=

	devices=vendor:nvidia on_host refuse E_NO_ADAPTER "${all_doors[@]}"
	profile=wsl-two-same-store devices=4090 on_host refuse E_UNKNOWN_DEVICE "${all_doors[@]}"
	profile=wsl-two-same-store devices=geforce on_host refuse E_UNKNOWN_DEVICE "${all_doors[@]}"
}

@test "a Hyper-V guest without libdxcore" {
	same hyperv-no-libdxcore all utility
	profile=hyperv-no-libdxcore devices=0 capabilities=compute on_host refuse E_DRIVER_LIBRARY "${image_doors[@]}"
}

agree_with_dxcore() {
	local root

	mount -t tmpfs none /srv
	prepare --
	for root in "$BATS_TEST_TMPDIR/bundle/rootfs" /srv; do
		install -D /bin/true "$root/usr/lib/libdxcore.so"
	done
	agree "$@" && [[ $(door_hook | jq '.obstacles | length') == 0 ]] && : >/srv/usr/lib/libdxcore.so && refuse E_DRIVER_LIBRARY configure
}

@test "a Hyper-V guest without libdxcore, and an image that has one" {
	export -f agree_with_dxcore
	profile=hyperv-no-libdxcore devices=0 capabilities=compute,utility on_host agree_with_dxcore "${image_doors[@]}"
}

refuse_noexec() {
	mount -o remount,bind,noexec "$mounted_noexec"
	refuse E_DRIVER_LIBRARY "$@" && door_hook 2>&1 | grep -F "$mounted_noexec is mounted noexec"
}

@test "a driver on a mount from which nothing can be run" {
	export -f refuse_noexec
	export mounted_noexec
	for mounted_noexec in /usr/lib/wsl/lib /usr/lib/wsl/drivers; do
		profile=wsl-nvidia devices=0 capabilities=compute on_host refuse_noexec "${image_doors[@]}"
	done
	mounted_noexec=/usr/lib/wsl/drivers profile=wsl-hybrid devices=vendor:intel capabilities=compute on_host refuse_noexec hook runtime
}

@test "four GPUs of a native driver" {
	same native-four all
	same native-four 2 compute
	same native-four 3,1 all
	same native-four "$(uuid native-four 2)" utility 'driver>=500'
}

@test "a driver without the files by which programs find it" {
	same native-no-configs all
	same native-no-configs 0 all
}

@test "parts of GPUs" {
	same native-mig all
	same native-mig 1:1
	same native-mig MIG-GPU-b703df58-2273-35fb-29be-3f6c49b83a96/2/0,MIG-00020001-2273-35fb-29be-3f6c49b83a96
}

@test "a driver at another place, a fabric, and both kinds of driver at once" {
	same native-prefix 0 graphics,display
	same native-fabric all
	same native-and-dxg all
	same native-and-dxg 0
}

@test "what a host cannot give, no door gives" {
	local profile=native-four devices=7 capabilities=compute requirement=

	on_host refuse E_UNKNOWN_DEVICE "${all_doors[@]}"
	devices=0 requirement='driver>=9999'
	on_host refuse E_REQUIREMENT "${all_doors[@]}"
}

@test "conditions that are written oddly are read alike" {
	same wsl-nvidia all compute 'cuda>=11,'
	same wsl-nvidia all compute 'colour=red cuda>=11'
	same native-four 0 compute ',driver>=500, cuda>=99'
	local profile=wsl-nvidia devices=all capabilities=compute requirement

	for requirement in 'cuda>=1e1' 'cuda>=11.x' 'brand>tesla' 'cuda>=11 nonsense' 'cuda>=18446744073709551628'; do
		on_host refuse E_BAD_REQUIREMENT "${all_doors[@]}"
	done
}

@test "IMEX channels: some, all, none" {
	local channels

	for channels in 3 0,3 all none void; do
		same native-fabric 0
	done
	channels=all same native-four 0
	local profile=native-fabric devices=0 capabilities=compute

	channels=77 on_host refuse E_UNKNOWN_DEVICE "${all_doors[@]}"
}

@test "images that say no more than their CUDA version" {
	local profile=native-four devices=all capabilities=all requirement variables

	# The first door has it in so many words.
	variables=CUDA_VERSION=9.0.176 on_host agree configure "${environment_doors[@]}"
	capabilities='' variables=$'CUDA_VERSION=9.0.176\nNVIDIA_DRIVER_CAPABILITIES=' on_host agree list_of_defaults "${environment_doors[@]}"
	for variables in CUDA_VERSION=foo CUDA_VERSION=9..0 CUDA_VERSION=+9 CUDA_VERSION=-9 CUDA_VERSION=9.0.116.50; do
		on_host refuse E_BAD_REQUIREMENT "${environment_doors[@]}" cdi
	done
}

key=accept-nvidia-visible-devices

@test "an environment may ask for GPUs, or only that of a privileged container" {
	local profile=native-fabric devices=all capabilities=compute settings

	variables=NVIDIA_NVSWITCH=enabled channels=3 on_host agree hook "${environment_doors[@]}"
	settings="{\"$key-envvar-when-unprivileged\": false}"
	variables=NVIDIA_NVSWITCH=enabled on_host give_nothing "${environment_doors[@]}"
	variables=CUDA_VERSION=9.0 on_host give_nothing words words_runtime
	variables=DOCKER_RESOURCE_GPU=all on_host give_nothing words words_runtime
	bounding=CAP_CHOWN,CAP_SYS_ADMIN channels=3 on_host agree configure "${environment_doors[@]}" cdi
	# What the engine was told counts, and what the image adds to it does not.
	local expected
	expected=$(on_host door_list)
	variables=NVIDIA_NVSWITCH=enabled channels=3
	[[ $(on_host door_cdi) == "$expected" ]]
}

@test "mounts of a device plugin ask for GPUs, whatever the environment says" {
	local profile=native-fabric devices capabilities=compute settings variables=NVIDIA_VISIBLE_DEVICES=all

	devices=0 mounted=0 on_host agree list words words_runtime
	devices=0 mounted=cdi/nvidia.com/gpu/0 on_host agree list words words_runtime
	devices=0 channels=3 mounted=0,imex/3 variables='' on_host agree configure words words_runtime
	settings="{\"$key-envvar-when-unprivileged\": false}"
	devices=0 mounted=0 on_host agree list words words_runtime
	settings="{\"$key-envvar-when-unprivileged\": false, \"$key-as-volume-mounts\": false}"
	mounted=0 on_host give_nothing words words_runtime
	settings="{\"$key-as-volume-mounts\": false}"
	devices=all mounted=0 on_host agree list words words_runtime
	mounted=9 settings='' on_host refuse E_UNKNOWN_DEVICE words words_runtime
}

@test "rights over parts of GPUs are for privileged containers" {
	local profile=native-mig devices=all capabilities=compute variables=NVIDIA_MIG_CONFIG_DEVICES=all

	on_host refuse E_NO_PERMISSION "${environment_doors[@]}" cdi
	bounding=CAP_SYS_ADMIN on_host agree container_cli_mig "${environment_doors[@]}" cdi
	# They go with whole GPUs.
	devices=1:1 bounding=CAP_SYS_ADMIN on_host refuse E_BAD_ARGUMENT container_cli_mig "${environment_doors[@]}" cdi
	devices=1 bounding=CAP_SYS_ADMIN on_host agree container_cli_mig "${environment_doors[@]}" cdi
}

@test "without a GPU a container starts whose image asks, and none whose user does" {
	local profile devices capabilities=compute settings

	for profile in plain wsl-no-adapter; do
		local code=E_NO_DEVICE
		[[ $profile == plain ]] || code=E_NO_ADAPTER
		settings=''
		devices=all on_host give_nothing "${environment_doors[@]}"
		variables=CUDA_VERSION=12.4.1 on_host give_nothing words words_runtime
		devices=0 on_host refuse $code "${environment_doors[@]}" cdi configure
		devices=all docker_hook=/usr/bin/nvidia-container-runtime-hook on_host refuse $code "${environment_doors[@]}"
		devices=all on_host refuse $code configure list cdi container_cli
		mounted=all on_host refuse $code words words_runtime
		settings='{"on-missing": "fail"}'
		devices=all on_host refuse $code "${environment_doors[@]}" cdi
		for settings in '{"on-missing": "warn"}' '{"on-missing": "skip"}'; do
			devices=0 docker_hook=/usr/bin/nvidia-container-runtime-hook on_host give_nothing "${environment_doors[@]}" cdi
			devices=0 on_host refuse $code configure list container_cli
		done
		settings='{"on-missing": {"hook": "skip", "runtime": "fail"}}'
		devices=0 on_host give_nothing hook
		devices=all on_host refuse $code runtime cdi
	done
	for profile in plain wsl-gpu-off; do
		devices=none settings='' on_host give_nothing "${environment_doors[@]}"
	done
	profile=wsl-gpu-off devices=0 settings='' on_host refuse E_NO_ADAPTER "${environment_doors[@]}" cdi configure
	# What is wrong with a GPU, or with what is asked of it, is said in any case.
	settings='{"on-missing": "skip"}'
	profile=wsl-old-driver devices=all on_host refuse E_DRIVER_TOO_OLD "${environment_doors[@]}" cdi
	profile=wsl-nvidia devices=7 on_host refuse E_UNKNOWN_DEVICE "${environment_doors[@]}" cdi
}

# Of a plan, and of a spec that needs no hook: the nodes, and what is mounted where. For a link a spec has the file once more.
plan_edits='[(.devices[].path),
	(.mounts as $mounts | $mounts[], (.symlinks[] as $link | ($link.path | sub("[^/]*$"; "")) as $directory
		| $mounts[] | select(.target == $directory + $link.pointsTo) | .target = $link.path) | [.source, .target])]'
spec_edits='[.devices[] | select(.name == $name) | .containerEdits | .deviceNodes[].path, (.mounts[] | [.hostPath, .containerPath])]'

# same_spec PROFILE DEVICE
same_spec() {
	local plan spec

	plan=$(sandbox "$1" ctr-gpu list --json --device="$2" --capabilities=all | jq -c "$plan_edits | sort[]")
	spec=$(sandbox "$1" ctr-gpu cdi generate --no-hooks --kind=example.com/gpu --output=- |
		jq -c --arg name "$2" "$spec_edits | sort[]")
	[[ -n $plan ]] && diff <(echo "$plan") <(echo "$spec")
}

@test "what the plan outranks in the image, every door names that has one" {
	local profile=wsl-nvidia devices=all capabilities=compute,utility root=$BATS_TEST_TMPDIR/bundle/rootfs outranked

	mkdir -p "$root/etc" "$root/opt/baked"
	cp "$CTR_GPU_BUILD/test/hosts/files/lib-nvidia/libcuda.so.1" "$root/opt/baked/"
	echo /opt/baked >"$root/etc/ld.so.conf"
	ldconfig -r "$root"
	outranked=$(on_host door_configure_container | jq -c '.outranked | map([.path, .by])')
	[[ $outranked == '[["/opt/baked/libcuda.so.1","/usr/lib/wsl/lib/libcuda.so.1"]]' ]]
	on_host agree configure_container "${environment_doors[@]}" cdi container_cli_container
}

@test "a CDI spec that needs no hook has the plan's devices and files" {
	same_spec wsl-hybrid all
	same_spec wsl-hybrid 1
	same_spec wsl-lib-links all
	same_spec native-four all
	same_spec native-prefix 0
}

# The hook of a CDI spec for vCUDA, and `configure` with the same names.
door_vcuda_cdi() {
	devices=ctr-gpu.org/vcuda=${devices//,/,ctr-gpu.org/vcuda=} door_cdi
}

door_vcuda_names() {
	devices=ctr-gpu.org/vcuda=${devices//,/,ctr-gpu.org/vcuda=} door_configure
}

door_vcuda_list() {
	devices=ctr-gpu.org/vcuda=${devices//,/,ctr-gpu.org/vcuda=} door_list
}

@test "vCUDA, by a variable and by names of CDI: the second of two GPUs, and nothing of a device" {
	local profile=wsl-two-nvidia capabilities=compute,utility requirement='' devices
	local settings='{"vcuda": {"mode": "allow", "memory": "8G"}}' variables=CTR_GPU_MODE=vcuda

	for devices in 1 0,1 all; do
		on_host agree "${environment_doors[@]}" vcuda_cdi
		variables='' on_host agree vcuda_names vcuda_list vcuda_cdi
		[[ $(on_host door_hook) == "$(variables='' on_host door_vcuda_list)" ]]
	done
	devices=1 on_host has_only hook GPU-7b10aa04
	devices=1 on_host has_only vcuda_cdi GPU-7b10aa04
	devices=0,1 on_host has_only runtime GPU-5a3f1c2b,GPU-7b10aa04
	profile=native-four devices=2 on_host agree "${environment_doors[@]}" vcuda_cdi
	# A device and none.
	devices=nvidia.com/gpu=1 on_host refuse E_BAD_ARGUMENT hook runtime
	variables='' devices=ctr-gpu.org/vgpu=1 on_host refuse E_UNKNOWN_DEVICE configure hook runtime
	# Without asking, devices.
	variables='' devices=1 on_host agree list "${environment_doors[@]}" cdi
	[[ $(variables='' devices=1 on_host door_hook | jq '.vcuda | length') == 0 ]]
}

@test "vCUDA by default or by force, and where it is off" {
	local profile=wsl-two-nvidia capabilities=compute,utility requirement='' devices=1 variables
	local settings='{"vcuda": {"mode": "default"}}'

	on_host agree list configure "${environment_doors[@]}" vcuda_cdi
	on_host has_only list GPU-7b10aa04
	[[ $(variables=CTR_GPU_MODE=device on_host door_hook | jq '.vcuda | length') == 0 ]]
	settings='{"vcuda": {"mode": "force"}}'
	variables=CTR_GPU_MODE=device on_host has_only hook GPU-7b10aa04
	devices=nvidia.com/gpu=1 on_host refuse E_NO_PERMISSION configure hook runtime cdi
	settings='{}'
	variables=CTR_GPU_MODE=vcuda on_host refuse E_NO_PERMISSION "${environment_doors[@]}"
	devices=ctr-gpu.org/vcuda=1 on_host refuse E_NO_PERMISSION configure hook runtime cdi
	# A container asks for less, and never for more.
	settings='{"vcuda": {"mode": "force", "memory": "8G"}}'
	[[ $(variables=CTR_GPU_MEMORY=4G on_host door_hook | jq '.vcuda[0].memory') == $((4 << 30)) ]]
	[[ $(variables=CTR_GPU_MEMORY=16G on_host door_runtime | jq '.vcuda[0].memory') == $((8 << 30)) ]]
	variables=CTR_GPU_MEMORY=much on_host refuse E_BAD_ARGUMENT hook runtime
}

@test "vCUDA leaves other vendors' GPUs out, and does not stand for them" {
	local profile=wsl-hybrid capabilities=compute,utility requirement='' devices settings='{"vcuda": {"mode": "force"}}'

	devices=all on_host has_only hook GPU-5a3f1c2b
	devices=0 on_host has_only vcuda_cdi GPU-5a3f1c2b
	devices=vendor:intel on_host refuse E_NO_ADAPTER configure hook runtime
	profile=native-mig devices=1:1 on_host refuse E_BAD_ARGUMENT configure hook runtime
	profile=native-mig devices=all on_host has_only hook GPU-b703df58
	profile=native-mig devices=1 on_host refuse E_NO_ADAPTER configure hook runtime
	[[ $(profile=native-mig sandbox native-mig bash -c 'mkdir -p /etc/ctr-gpu; echo "$0" >/etc/ctr-gpu/config.json
		ctr-gpu cdi generate --kind=ctr-gpu.org/vcuda --output=- | jq -c "[.devices[].name]"' "$settings") == '["0","GPU-b703df58-2273-35fb-29be-3f6c49b83a95","0000:00:06.0","all"]' ]]
}
