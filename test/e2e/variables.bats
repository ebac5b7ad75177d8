#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# Which of the variables that a plan names reach a container's programs by which door, and by which one a user who is not root may
# open nodes that are for a group, measured with real engines on simulated hosts. The table in docs/how-it-works.md is what was measured; CTR_GPU_UPDATE=1 writes it.

load engines

setup_file() {
	require_root
	require_program podman
	[[ -e /sys/bus/pci/devices ]] || skip "needs a PCI bus"
	podman_setup
	image debian >/dev/null
}

names=(GALLIUM_DRIVER LIBVA_DRIVER_NAME MESA_D3D12_DEFAULT_ADAPTER_NAME HSA_ENABLE_DXG_DETECTION CUDA_VISIBLE_DEVICES)

# measure PROFILE DEVICE CDI-NAME: of one GPU of several, chosen by each door: "door NAME" for each variable that arrives, "door stores N",
# "door NODE=ERROR" for each render node that user 1000 opens, and "plan NAME" for each variable that the plan has
measure() {
	local directory

	directory=$(engine_directory "$1")
	mkdir -p "$directory/hooks" "$directory/none"
	podman_configure "$directory"
	sed "s|$directory/hooks|$directory/none|" "$directory/containers.conf" >"$directory/containers-none.conf"
	run sandbox "$1" bash -c '
		directory=$1 device=$3 cdi=$4
		capabilities=NVIDIA_DRIVER_CAPABILITIES=all
		dockerd --data-root "$directory/data" --exec-root /run/exec --pidfile /run/docker.pid --iptables=false \
			--ip6tables=false --bridge=none --cgroup-parent "$CTR_GPU_TEST_CGROUP" --add-runtime "nvidia=$CTR_GPU_BUILD/bin/ctr-gpu-runtime" \
			--exec-opt native.cgroupdriver=cgroupfs >"$directory/log" 2>&1 &
		soon docker_answers || exit
		tar -C "$2" -c . | docker import - debian >/dev/null || exit
		export CONTAINERS_CONF=$directory/containers.conf CONTAINERS_STORAGE_CONF=$directory/storage.conf
		tar -C "$2" -c . | podman import - debian >/dev/null 2>&1 || exit
		ctr-gpu cdi generate >/dev/null || exit
		ctr-gpu list --device "$device" --capabilities all --json | jq -r ".environment[].name | \"plan \" + ."
		ctr-gpu doctor --json | jq -r ".findings[].id" | grep "^choice" | sed "s/^/doctor /"
		# What reached it is in a file, since output can be lost on a busy machine.
		mkdir -m 1777 /run/out
		look="env >/out/env; ls /usr/lib/wsl/drivers | wc -l >/out/stores"
		[[ $5 != native-* ]] || look="for node in /dev/dri/renderD*; do probe open \$node; done >/out/nodes"
		go() {
			local door=$1
			shift
			"$@" --network none --volume /run/out:/out "${user[@]}" debian sh -c "$look" || exit
			[[ ! -e /run/out/env ]] || sed "s/=.*//; s/^/$door /" /run/out/env
			[[ ! -e /run/out/stores ]] || echo "$door stores $(cat /run/out/stores)"
			[[ ! -e /run/out/nodes ]] || sed "s/^/$door /" /run/out/nodes
			rm /run/out/*
		}
		user=()
		[[ $5 != native-* ]] || user=(--user 1000:1000)
		podman_run=(memlock podman run --rm --cgroup-parent "$CTR_GPU_TEST_CGROUP")
		go gpus docker run --rm -e "$capabilities" --gpus "\"device=$device\""
		go shim docker run --rm --runtime nvidia -e "$capabilities" -e "NVIDIA_VISIBLE_DEVICES=$device"
		go hook "${podman_run[@]}" -e "$capabilities" -e "NVIDIA_VISIBLE_DEVICES=$device"
		export CONTAINERS_CONF=$directory/containers-none.conf
		go cdi "${podman_run[@]}" -e "$capabilities" --device "$cdi"
		ctr-gpu cdi generate --capabilities=all >/dev/null || exit
		go cdi-all "${podman_run[@]}" -e "$capabilities" --device "$cdi"
	' variables "$directory" "$(image debian)" "$2" "$3" "$1"
	expect_status 0
}

# row DOOR TITLE: from $measured, in which each line has its host in front
row() {
	local name cells=() host

	for name in "${names[@]}"; do
		cells+=(yes)
		for host in $(sed -n "s/ plan $name\$//p" <<<"$measured"); do
			grep -qxF "$host $1 $name" <<<"$measured" || cells[-1]=no
		done
	done
	[[ -z $(grep " $1 stores " <<<"$measured" | grep -v "wsl-two-same-store" | grep -v "stores 1$") ]] && cells=(yes "${cells[@]}") || cells=(no "${cells[@]}")
	# No driver is behind a node that is opened: ENXIO.
	case $(sed -n "s/^native-[a-z]* $1 .*=//p" <<<"$measured") in
	ENXIO) cells+=(yes) ;;
	EACCES) cells+=(no) ;;
	*) cells+=(unknown) ;;
	esac
	printf '| %s |' "$2"
	printf ' %s |' "${cells[@]}"
	echo
}

table() {
	printf '| door | other stores hidden |'
	printf ' `%s` |' "${names[@]}"
	printf ' user 1000 opens `/dev/dri/renderD*` |\n|---|---|---|---|---|---|---|---|\n'
	row gpus "\`docker run --gpus\` before Docker 29.2 (hook)"
	row hook "Podman, \`-e NVIDIA_VISIBLE_DEVICES\` (hook)"
	row shim "\`docker run --runtime=nvidia\` (shim)"
	row cdi "\`--device nvidia.com/gpu=0\`, \`--gpus\` of Docker 29.2 and Podman 5 (CDI)"
	row cdi-all "the same, after \`cdi generate --capabilities=all\`"
}

@test "the table of doors and variables in docs/how-it-works.md is what containers see" {
	local measured='' page=$e2e/../../docs/how-it-works.md name

	for host in "wsl-hybrid 0 nvidia.com/gpu=0" "wsl-two-same-store 1 nvidia.com/gpu=1" "wsl-amd-npu 0 amd.com/gpu=0" "native-desktop 1 nvidia.com/gpu=1"; do
		# shellcheck disable=SC2086 # three words
		measure $host
		measured+=$(sed "s/^/${host%% *} /" <<<"$output")$'\n'
	done
	# Where nothing holds the choice, doctor names the door.
	[[ $(grep -c " doctor choice.variables$" <<<"$measured") -eq $(grep -c " doctor choice.not-held$" <<<"$measured") ]]
	grep -q "^wsl-two-same-store doctor choice.variables$" <<<"$measured"
	# Each variable is in a plan of one of these hosts.
	for name in "${names[@]}"; do
		grep -q " plan $name$" <<<"$measured"
	done
	table >"$BATS_TEST_TMPDIR/table"
	if [[ ${CTR_GPU_UPDATE-} ]]; then
		sed -i -e "/^<!-- made by: test\/e2e\/variables.bats -->$/,/^<!-- end -->$/{//!d}" \
			-e "/^<!-- made by: test\/e2e\/variables.bats -->$/r $BATS_TEST_TMPDIR/table" "$page"
	fi
	sed -n "/^<!-- made by: test\/e2e\/variables.bats -->$/,/^<!-- end -->$/p" "$page" | grep -v '^<!--' | diff - "$BATS_TEST_TMPDIR/table"
}
