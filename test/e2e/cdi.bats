#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# ctr-gpu cdi: what it writes, what it lists and what it finds in specs, good, bad and hostile.

load cdi

setup_file() {
	require_root
}

host() {
	run sandbox "$1" bash -c "$2"
}

# spec DIRECTORY NAME [JQ-FILTER]: a small spec that is none of ours
spec() {
	mkdir -p "$1"
	jq -n '{cdiVersion: "0.3.0", kind: "example.com/card", devices: [{name: "one", containerEdits: {env: ["A=b"]}}]} | '"${3:-.}" >"$1/$2"
}

# check [ARGUMENT…]: on a host without a GPU
check() {
	run ctr-gpu cdi check "$@"
}

setup() {
	PATH=$CTR_GPU_BUILD/bin:$PATH
	specs=$BATS_TEST_TMPDIR/specs
}

@test "a spec for each vendor, with all names, and no numbers of devices" {
	host wsl-hybrid 'ctr-gpu cdi generate && cd /etc/cdi && stat -c "%n %a" * && jq -s "map({kind, cdiVersion, names: [.devices[].name]})" *.json &&
		grep -cE "major|minor" *.json'
	expect "nvidia.com/gpu: /etc/cdi/ctr-gpu-nvidia.json"
	expect_line "ctr-gpu-intel.json 644"
	expect_line "ctr-gpu-nvidia.json:0"
	expect '"0000:01:00.0"'
	expect '"LUID-000000005a3f1c2b"'
	expect '"cdiVersion": "0.5.0"'
	host native-mig 'ctr-gpu cdi generate --output=- | jq -r ".devices[].name"'
	expect_line GPU-b703df58-2273-35fb-29be-3f6c49b83a95
	expect_line 1:3
	expect_line MIG-00020001-2273-35fb-29be-3f6c49b83a96
	expect_line all
}

@test "every hook is ours, with environment and timeout" {
	host wsl-hybrid 'ctr-gpu cdi generate >/dev/null && jq -s "[.[].devices[].containerEdits.hooks[]] | all(.timeout == 120 and .env != [] and
		.hookName == \"createRuntime\" and (.path | endswith(\"/bin/ctr-gpu-hook\")) and (.args[1] | startswith(\"--device=\")))" /etc/cdi/*'
	expect_line true
}

@test "variables that drivers need are in a spec for their capability" {
	host wsl-hybrid 'ctr-gpu cdi generate --capabilities=graphics --output=/run/ && cd /run &&
		jq -c "[.devices[] | select(.name == \"0\" or .name == \"1\") | .containerEdits.env]" ctr-gpu-nvidia.json ctr-gpu-intel.json'
	expect_line '[["GALLIUM_DRIVER=d3d12","MESA_D3D12_DEFAULT_ADAPTER_NAME=NVIDIA GeForce RTX 4070 Laptop GPU"]]'
	expect_line '[["GALLIUM_DRIVER=d3d12","MESA_D3D12_DEFAULT_ADAPTER_NAME=Intel(R) Iris(R) Xe Graphics"]]'
	host wsl-hybrid 'ctr-gpu cdi generate --output=/run/ && jq -c "[.devices[].containerEdits.env] | unique" /run/ctr-gpu-*.json'
	expect_line "[null]"
	host wsl-amd-npu 'ctr-gpu cdi generate --kind=amd.com/gpu --no-hooks --output=/run/x.json && jq -c ".devices[0].containerEdits.env" /run/x.json'
	expect '"HSA_ENABLE_DXG_DETECTION=1"'
	# What one device says would replace what another says.
	host wsl-two-same-store 'ctr-gpu cdi generate --capabilities=all --output=- | grep -c CUDA_'
	expect_line 0
}

@test "a file of another name, of another kind, standard output" {
	host wsl-hybrid 'cd /tmp && ctr-gpu cdi generate --kind=nvidia.com/gpu --output=/run/x.json && jq -r .kind /run/x.json
		ctr-gpu cdi generate --kind=example.com/card --output=/run/new/ && jq -r "[.devices[].name] | length" /run/new/ctr-gpu-example.com-card.json
		cd /run && ctr-gpu cdi generate --output=relative/ && ls relative'
	expect_line nvidia.com/gpu
	expect_line 8
	expect_line ctr-gpu-intel.json
}

@test "what makes no sense is said" {
	host wsl-hybrid 'ctr-gpu cdi generate --output=-'
	expect_status 1
	expect "adapters of several vendors"
	host wsl-hybrid 'ctr-gpu cdi generate --kind=nvidia.com/gpu --output=/run/x.yaml'
	expect_status 2
	expect "[E_BAD_ARGUMENT]"
	host wsl-hybrid 'ctr-gpu cdi generate --kind=nonsense'
	expect_status 2
	expect '"nonsense" is not a kind'
	host wsl-hybrid 'ctr-gpu cdi generate --kind=amd.com/gpu; ls /etc/cdi'
	expect "[E_NO_ADAPTER]"
	host wsl-hybrid 'ctr-gpu cdi generate --hook=relative'
	expect_status 2
	host wsl-hybrid 'ctr-gpu cdi generate --hook=/x --no-hooks'
	expect_status 2
	host wsl-hybrid 'ctr-gpu cdi nonsense'
	expect_status 2
	host wsl-hybrid 'ctr-gpu cdi'
	expect_status 2
	host wsl-hybrid 'ctr-gpu cdi generate --output=/proc/x.json --kind=nvidia.com/gpu'
	expect_status 1
	expect "which stays as it was: No such file"
	host wsl-nvidia 'ctr-gpu cdi generate --output=/run/none/of/x.json; ls /run'
	expect_status 0
	expect "Make it first: mkdir -p /run/none/of/"
	expect_no_line none
	host wsl-nvidia 'cd /run; ctr-gpu cdi generate --output='
	expect_status 2
	expect "it is empty"
	host wsl-hybrid 'cp "$(command -v ctr-gpu)" /run/ctr-gpu; LD_LIBRARY_PATH=$CTR_GPU_BUILD/lib /run/ctr-gpu cdi generate'
	expect_status 1
	expect "the hook /run/ctr-gpu-hook is missing"
}

@test "a file that says the same stays untouched, and one that does not is replaced whole" {
	host wsl-nvidia 'ctr-gpu cdi generate && before=$(stat -c %i:%Y /etc/cdi/*) && ctr-gpu cdi generate && [[ $before == $(stat -c %i:%Y /etc/cdi/*) ]] && echo same
		exec 3</etc/cdi/ctr-gpu-nvidia.json && ctr-gpu cdi generate --no-hooks && [[ $(cat <&3 | jq ".devices | length") == 5 ]] && ls -A /etc/cdi | paste -sd " "'
	expect_status 0
	expect_line same
	expect_line ctr-gpu-nvidia.json
}

@test "an engine that is none is answered with the nearest" {
	host wsl-nvidia 'ctr-gpu cdi check --engine=podmn:4.3'
	expect "does not name an engine and its version; did you mean 'podman'?"
}

@test "where there is no spec, list and check say what writes one" {
	host wsl-nvidia 'rm -rf /etc/cdi; for verb in list check; do ctr-gpu cdi $verb; done'
	[[ $(grep -cx "This writes one for the GPUs of this host: sudo ctr-gpu cdi generate" <<<"$output") -eq 2 ]]
}

@test "YAML in a file named .json counts, as it does for engines" {
	host wsl-nvidia 'mkdir -p /etc/cdi; printf "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: all\n  containerEdits:\n    deviceNodes:\n    - path: /dev/dxg\n" >/etc/cdi/nvidia.json
		ctr-gpu cdi list; ctr-gpu setup docker; ls /etc/cdi; ctr-gpu cdi generate; ctr-gpu doctor --json | jq -r ".engines[].doors[] | select(.id == \"cdi\") | .because"; ctr-gpu cdi check
		echo "{\"cdiVersion\": \"0.5.0\", \"kind\": \"a.b/c\", \"devices\": [],}" >/etc/cdi/comma.json; ctr-gpu cdi check /etc/cdi/comma.json'
	expect "nvidia.com/gpu=all"
	expect "/etc/cdi/nvidia.json has devices of nvidia.com/gpu already"
	expect "/etc/cdi/nvidia.json has devices of the same names, so that engines know neither"
	expect_line cdi.error
	expect_not "it is not JSON"
	expect "it has no device"
}

@test "the spec of a vendor whose adapters are gone is removed, and nobody else's file" {
	sandbox wsl-hybrid ctr-gpu cdi generate --output="$specs/"
	cp "$specs/ctr-gpu-intel.json" "$specs/mine.json"
	spec "$specs" ctr-gpu-amd.json '.kind = "amd.com/gpu"'
	jq '.kind = "example.com/gpu"' "$specs/ctr-gpu-intel.json" >"$specs/ctr-gpu-example.com-gpu.json"
	host wsl-nvidia "ctr-gpu cdi generate --output=$specs; ls $specs"
	expect_status 0
	expect "removed from $specs, since these adapters are gone: ctr-gpu-intel.json"
	expect_no_line ctr-gpu-intel.json
	expect_line ctr-gpu-nvidia.json
	expect_line ctr-gpu-amd.json
	expect_line mine.json
	expect_line ctr-gpu-example.com-gpu.json
	host plain "ctr-gpu cdi generate --output=$specs; echo status \$?; ls $specs"
	expect_line "status 1"
	expect "[E_NO_DEVICE]"
	expect_no_line ctr-gpu-nvidia.json
	expect_line mine.json
}

@test "a spec of somebody else for the same devices is warned of" {
	host wsl-nvidia 'mkdir /etc/cdi && printf "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: all\n  containerEdits: {env: [A=b]}\n" >/etc/cdi/nvidia.yaml && ctr-gpu cdi generate'
	expect_status 0
	expect "warning: /etc/cdi/nvidia.yaml has devices of the same names"
	host wsl-nvidia 'ctr-gpu cdi generate 2>&1 && ctr-gpu cdi generate 2>&1'
	expect_not "warning"
}

@test "IMEX channels are in every device" {
	host native-fabric 'ctr-gpu cdi generate --imex-channel=0 && jq -c "[.devices[].containerEdits.deviceNodes | any(.path | endswith(\"channel0\"))] | unique" /etc/cdi/* && ctr-gpu cdi check'
	expect_status 0
	expect_line "[true]"
	host native-fabric 'ctr-gpu cdi generate --imex-channel=77'
	expect_status 1
	expect "[E_UNKNOWN_DEVICE]"
}

@test "list tells which file wins" {
	spec "$specs/etc" a.json
	spec "$specs/etc" b.json '.devices += [{name: "two", containerEdits: {env: ["A=b"]}}]'
	run ctr-gpu cdi list --spec-dir="$specs/etc" --spec-dir="$specs/none"
	expect_status 0
	expect_line "    example.com/card=one  in conflict with $specs/etc/b.json, so that engines do not know it"
	expect_line "    example.com/card=two"
	spec "$specs/run" c.json
	run ctr-gpu cdi list --spec-dir="$specs/etc" --spec-dir="$specs/run"
	expect_line "    example.com/card=one  hidden by $specs/run/c.json"
	expect_line "    example.com/card=one"
	run ctr-gpu cdi list --json --spec-dir="$specs/etc" --spec-dir="$specs/run"
	[[ $(jq -c '[.files[] | .devices[] | [.name, .status, .by]]' <<<"$output") == "[[\"one\",\"hidden\",\"$specs/run/c.json\"],[\"one\",\"hidden\",\"$specs/run/c.json\"],[\"two\",\"used\",null],[\"one\",\"used\",null]]" ]]
	run ctr-gpu cdi list --spec-dir="$specs/none"
	expect_status 0
	expect_line "No CDI spec found in $specs/none."
	expect_not "cdi generate"
	expect_line "ctr-gpu: warning: cannot read the directory $specs/none: No such file or directory"
}

@test "check finds files that two specs share, and is content with one" {
	spec "$specs" a.json
	check --spec-dir="$specs"
	expect_status 0
	expect_line "No error was found."
	expect "ctr-gpu did not write it"
	spec "$specs" b.json
	check --spec-dir="$specs"
	expect_status 1
	expect "engines know neither: one"
	check "$specs/a.json"
	expect_status 0
	mkdir "$specs/empty"
	check --spec-dir="$specs/none" --spec-dir="$specs/empty" --spec-dir="$specs/a.json"
	expect_status 1
	expect_line "No CDI spec found in $specs/none or $specs/empty or $specs/a.json."
	expect_line "ctr-gpu: warning: cannot read the directory $specs/none: No such file or directory"
	expect_not "directory $specs/empty:"
	expect_line "ctr-gpu: warning: cannot read the directory $specs/a.json: Not a directory"
	check --json "$specs/a.json"
	[[ $(jq .fine <<<"$output") == true ]]
}

@test "check finds what is not there, and hooks that an image could take over" {
	local hook=$BATS_TEST_TMPDIR/hook

	ln -s /dev/null "$BATS_TEST_TMPDIR/link"
	spec "$specs" a.json '.devices[0].containerEdits = {deviceNodes: [{path: "/dev/none"}, {path: "/dev/null", type: "c", major: 9, minor: 9},
			{path: "/dev/gone", type: "c", major: 9, minor: 9}, {path: "/dev/zero", major: 0, minor: 0},
			{path: "'"$BATS_TEST_TMPDIR"'/link"}],
		mounts: [{hostPath: "/none/library", containerPath: "/x", options: ["rbind"]}],
		hooks: [{hookName: "createContainer", path: "'"$hook"'", args: ["hook"]}]}'
	check "$specs/a.json"
	expect_status 1
	expect "the device node /dev/none is not there"
	expect "it says /dev/null is device 9:9, and it is 1:3"
	expect "warning: the device node /dev/gone is not there: containers get one without a device"
	expect_not "/dev/zero"
	expect "error: $BATS_TEST_TMPDIR/link is a symlink"
	expect "this is not there: /none/library"
	expect "the hook $hook is not there"
	expect 'has no "env": some runtimes give it the image'
	expect 'has no "timeout"'
	touch "$hook"
	check "$specs/a.json"
	expect "the hook $hook cannot be executed"
	chmod 777 "$hook"
	check "$specs/a.json"
	expect "others can write it"
	chmod 755 "$hook"
	chown 12345 "$hook"
	check "$specs/a.json"
	expect "belongs to uid 12345"
	chown 0 "$hook"
	spec "$specs" a.json '.devices[0].containerEdits = {hooks: [{hookName: "createContainer", path: "'"$hook"'", env: ["A=b"], timeout: 5}]}'
	chown 12345 "${hook%/*}"
	check "$specs/a.json"
	expect "warning: engines run the hook $hook as root, and others can put another file there"
	chown 0 "${hook%/*}"
	check "$specs/a.json"
	expect_status 0
	expect_not "warning"
}

@test "check knows which engine loads which version" {
	spec "$specs" a.json '.cdiVersion = "0.7.0" | .devices[0].containerEdits.additionalGids = [1]'
	check --engine podman:4.9 "$specs/a.json"
	expect_status 1
	expect "podman 4.9 knows CDI up to 0.6.0, and refuses a spec that says 0.7.0"
	expect_not "nothing in it needs that"
	check --engine docker:27.0 "$specs/a.json"
	expect_status 0
	check --engine docker:20.10 "$specs/a.json"
	expect "docker 20.10 does not read CDI specs"
	spec "$specs" a.json '.cdiVersion = "1.0.0"'
	check --engine containerd:1.7 "$specs/a.json"
	expect "though nothing in it needs that"
	check --engine nonsense:1 "$specs/a.json"
	expect_status 2
}

# podman_agrees FILE DEVICE: whether Podman starts a container with the device of this spec, and check has nothing against it, or neither
podman_agrees() {
	check --engine "podman:$known" "$1"
	ours=$status
	run podman_cdi - "mkdir -p /run/cdi; cp '$1' /run/cdi" --device "example.com/card=$2" debian env
	echo "${1##*/} $2: we say $ours, podman $status"
	[[ $ours -eq 0 && $status -eq 0 && $output == *A=b* ]] || [[ $ours -ne 0 && $status -ne 0 ]]
}

# Podman's own word on specs of every version, and on YAML as people and attackers write it, against ours.
@test "what check says of Podman is what Podman does" {
	local version known good=0
	local edits='{env: [A=b]}'

	require_program podman
	known=$(podman --version | grep -oE '[0-9]+\.[0-9]+' | head -n 1)
	podman_configure "$(engine_directory podman)"
	tar -C "$(image debian)" -c . | podman_in - import --quiet - debian >/dev/null
	rm "$(engine_directory podman)"/hooks/*
	for version in 0.3.0 0.4.0 0.5.0 0.6.0 0.7.0 0.8.0 1.0.0 1.1.0; do
		spec "$specs" a.json ".cdiVersion = \"$version\""
		podman_agrees "$specs/a.json" one
	done
	while read -r name device tail; do
		printf 'cdiVersion: 0.5.0\nkind: example.com/card\ndevices:\n- name: %b\n  containerEdits: %b\n' "$name" "${tail:-$edits}" >"$specs/a.yaml"
		cat "$specs/a.yaml"
		podman_agrees "$specs/a.yaml" "$device"
		good=$((good + (ours == 0)))
	done <<-'END'
		one one
		0 0
		010 8
		"010" 010
		yes true
		n false
		on true
		~ one
		one one {}
		one one
		one one {env:\x20[A=b],unknown:\x201}
		one one {env:\x20[A=b],unknown:\x20~}
		one one {env:\x20[A=b],hooks:\x20~}
		one one {env:\x20[&a\x20A=b,*a]}
		one one {env:\x20[*b]}
		one one {env:\x20[A=b]}\nkind:\x20example.com/card
		one one {env:\x20[A=b]}\n...\n---\nanother:\x20document
		one one {env:\x20[A=b]}\n}
		one one {env:\x20[A=b],deviceNodes:\x20[{path:\x20/dev/null,fileMode:\x200666}]}
		one one {env:\x20[A=b],deviceNodes:\x20[{path:\x20/dev/null,fileMode:\x20"0666"}]}
		one one {env:\x20[A=b],deviceNodes:\x20[{path:\x20/dev/null,hostPath:\x20~,major:\x20~}]}
		one one {env:\x20[A=b],deviceNodes:\x20[{path:\x20/dev/null,hostPath:\x20"",major:\x200}]}
		one one {env:\x20[A=b],deviceNodes:\x20[{path:\x20/dev/stdin}]}
		one one {env:\x20[A=b],deviceNodes:\x20[{path:\x20/dev/gone}]}
		one one {env:\x20[A=b],deviceNodes:\x20[{path:\x20/dev/gone,type:\x20c,major:\x201,minor:\x203}]}
		"a\\0b" one
	END
	[[ $good -ge 12 ]]
}

@test "a spec of ours is stale when devices come or go" {
	sandbox wsl-nvidia ctr-gpu cdi generate --output="$specs/"
	host wsl-nvidia "ctr-gpu cdi check $specs/*"
	expect_status 0
	host wsl-two-nvidia "ctr-gpu cdi check $specs/*"
	expect_status 1
	expect "stale: this host also has: 1, GPU-7b10aa04-0041-0000-0000-000084ef55fb, LUID-000000007b10aa04, 0000:41:00.0."
	host hyperv-no-libdxcore "ctr-gpu cdi check $specs/*"
	expect_status 1
	host plain "ctr-gpu cdi check $specs/*"
	expect_status 1
	expect "stale: this host has no GPU device any more"
	host native-nvidia "ctr-gpu cdi check $specs/*"
	expect "the device node /dev/dxg is not there"
	expect "stale: this host no longer has: GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4, LUID-000000005a3f1c2b, 0000:01:00.0."
	sandbox native-four ctr-gpu cdi generate --capabilities=graphics --output="$specs/"
	host native-four "ctr-gpu cdi check $specs/*"
	expect_status 0
	host native-four "rm /dev/nvidia-modeset; ctr-gpu cdi check $specs/*"
	expect_status 1
	expect "the device node /dev/nvidia-modeset is not there"
}

# What a hook of a spec would do, what `configure` would do, and what the hook of an environment would do.
@test "the plan is the same whether CDI, options or the environment ask" {
	local script='
		mkdir -p /run/bundle/rootfs && cd /run/bundle || exit
		unshare --pid --fork sleep 60 & child=$!
		jq -n --arg devices "$2" "{root: {path: \"rootfs\"}, process: {env: [\"NVIDIA_VISIBLE_DEVICES=\" + \$devices]}}" >/run/config.json
		state="{\"ociVersion\": \"1.0.2\", \"id\": \"x\", \"status\": \"creating\", \"pid\": $child, \"bundle\": \"/run/bundle\"}"
		cp /run/config.json /run/bundle/
		ctr-gpu configure --dry-run --json --device "$2" /run/bundle/rootfs >/run/configure
		ctr-gpu-hook --dry-run createRuntime <<<"$state" >/run/environment
		jq ".process.env = [\"NVIDIA_VISIBLE_DEVICES=void\"]" /run/config.json >/run/bundle/config.json
		ctr-gpu-hook --dry-run "--device=$1" createRuntime <<<"$state" >/run/cdi
		kill "$child"
		cmp /run/configure /run/environment && cmp /run/configure /run/cdi && jq ".devices | length" /run/cdi'

	run sandbox wsl-two-nvidia bash -c "$script" same nvidia.com/gpu=all all
	expect_status 0
	expect_line 1
	run sandbox wsl-two-nvidia bash -c "$script" same nvidia.com/gpu=LUID-000000007b10aa04 1
	expect_status 0
	run sandbox native-four bash -c "$script" same nvidia.com/gpu=2,nvidia.com/gpu=0 0,2
	expect_status 0
	expect_line 5
}

@test "of thousands of specs ours is read in any case, and what is not looked at is said" {
	local i

	spec "$specs" ctr-gpu-mine.json
	for i in {1..1025}; do
		printf '{"cdiVersion": "0.5.0", "kind": "example.com/claim", "devices": [{"name": "%d", "containerEdits": {"env": ["A=b"]}}]}' "$i" >"$specs/claim-$i.yaml"
	done
	check --spec-dir="$specs"
	[[ $status == 0 && $output == *"warning: it has more than 1024 specs, and the others were not looked at"* ]]
	[[ $output == *"example.com/card=one"* && $(grep -c example.com/claim= <<<"$output") == 1024 ]]
	rm "$specs/claim-7.yaml"
	check --spec-dir="$specs"
	[[ $status == 0 && $output == *"No error was found."* ]]
}

@test "hostile files are told apart from specs, and nothing hangs" {
	mkdir -p "$specs"
	mkfifo "$specs/fifo.json"
	mkdir "$specs/directory.json"
	ln -s loop.json "$specs/loop.json"
	ln -s /dev/zero "$specs/zero.json"
	ln -s /none "$specs/dangling.yaml"
	head -c 5000000 /dev/zero | tr '\0' ' ' >"$specs/huge.json"
	head -c 100000 /dev/zero | tr '\0' '[' >"$specs/deep.json"
	head -c 100000 /dev/urandom >"$specs/random.yaml"
	head -c 100000 /dev/urandom >"$specs/random.json"
	yes -- '- - - - a: b' | head -n 100000 >"$specs/items.yaml"
	yes 'devices:' | head -n 100000 >"$specs/keys.yaml"
	yes '- a: b' | head -n 600000 >"$specs/long.yaml"
	spec "$specs" escape.json '.devices[0].name = "\u001b[31mred" | .kind = "a\u001b]0;x\u0007/b"'
	jq -nc '{cdiVersion: "0.5.0", kind: "a.b/c", devices: [range(20000) | {name: "\(.)", containerEdits: {env: ["A=b"]}}]}' >"$specs/devices.json"
	check --spec-dir="$specs"
	expect_status 1
	expect "it has more than 4096 devices"
	expect "$specs/fifo.json"
	expect "it is not a regular file"
	expect "it has more than 4 MiB"
	expect "nested too deeply"
	expect "more than any real spec has"
	expect "a key for the second time"
	[[ $output != *$'\e'* ]]
	check --json --spec-dir="$specs"
	[[ $(jq '.files | length' <<<"$output") -ge 10 ]]
	spec "$specs/many" first.json
	for number in {1..400}; do
		cp "$specs/many/first.json" "$specs/many/$number.json"
	done
	run ctr-gpu cdi list --spec-dir="$specs/many"
	expect_status 0
}
