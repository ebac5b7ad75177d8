# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# The command line: what it accepts, what it answers to nonsense, how it ends. Most of it looks at no host.

bats_require_minimum_version 1.5.0

setup() {
	here=$(dirname "$BATS_TEST_FILENAME")
	build=$(readlink -f "${CTR_GPU_BUILD:-$here/../../build}")
	bin=$build/bin
	PATH=$bin:$PATH
	version=$(sed -n 's/^ctr-gpu \([0-9.]*\).*/\1/p' "$here/../../NEWS" | head -n 1)
}

# host PROFILE COMMAND…: on a simulated host
host() {
	local profile=$1
	shift
	O=$build PATH=$PATH "$here/../hosts/enter" "$profile" -- "$@"
}

# refused STATUS TEXT COMMAND…: it ends with this status, prints nothing, and says TEXT on standard error
refused() {
	local wanted=$1 text=$2 status=0 stdout said
	shift 2
	said=$BATS_TEST_TMPDIR/stderr
	stdout=$("$@" 2>"$said") || status=$?
	if [[ $status -ne $wanted || -n $stdout ]] || ! grep -qF -- "$text" "$said"; then
		printf 'status %d, wanted %d\nstdout: %s\nstderr: %s\nwanted: %s\n' "$status" "$wanted" "$stdout" "$(<"$said")" "$text"
		return 1
	fi
}

# lines MAXIMUM: what refused() was told has no more lines, and all but the first are indented
lines() {
	local said=$BATS_TEST_TMPDIR/stderr
	[[ $(wc -l <"$said") -le $1 ]] && ! tail -n +2 "$said" | grep -qv '^    ' && return
	cat "$said"
	return 1
}

@test "--version, -V and the command version agree with NEWS" {
	# What the build wrote down of its commit; a tarball that was not made by git has none.
	commit=$(<"$build/gen/commit")
	[[ ! -e $here/../../.git || $commit =~ ^[0-9a-f]{7,}$ ]]
	for way in --version -V version; do
		run ctr-gpu "$way"
		[[ $status -eq 0 && $output == "ctr-gpu $version${commit:+ ($commit)}" ]]
	done
	for way in --version -version; do
		run ctr-gpu-hook "$way"
		[[ $status -eq 0 && $output == "ctr-gpu-hook $version${commit:+ ($commit)}" ]]
	done
}

@test "--help lists every command, and every command has its own" {
	run ctr-gpu --help
	[[ $status -eq 0 ]]
	# No summary is too long for its line.
	[[ -z $(sed -n '/^Commands:/,/^$/p' <<<"$output" | grep '^[^ C]') ]]
	for command in info list configure load setup refresh doctor version help; do
		[[ $output == *$'\n'"  $command "* ]]
	done
	for command in info list configure load setup refresh doctor version; do
		run ctr-gpu "$command" --help
		[[ $status -eq 0 && $output == "Usage: ctr-gpu $command "* && $output == *--inventory=SOURCE* ]]
		own=$output
		run ctr-gpu help "$command"
		[[ $status -eq 0 && $output == "$own" ]]
	done
	for command in "cdi generate" "cdi check" "vcuda limit"; do
		# shellcheck disable=SC2086
		run ctr-gpu help $command
		[[ $status -eq 0 && $output == "Usage: ctr-gpu $command "* && $output == "$(ctr-gpu $command --help)" ]]
	done
	# A command's own commands are listed as well, each with what it does.
	for command in "cdi check" "slurm gres" "slurm step" "vcuda list" "vcuda audit" "vcuda suspend"; do
		run ctr-gpu "${command% *}" --help
		[[ $status -eq 0 && $output == *$'\n'"Commands:"*$'\n'"  ${command#* } "*[A-Z]* ]]
		[[ -z $(sed -n '/^Commands:/,/^$/p' <<<"$output" | grep '^[^ C]') ]]
	done
	# The former name of a command is not listed.
	run ctr-gpu vgpu list --help
	[[ $status -eq 0 && $output == "Usage: ctr-gpu vcuda list "* ]]
	run ctr-gpu --help
	[[ $output == *$'\n'"  vcuda COMMAND "* && $output != *vgpu* ]]
	run ctr-gpu help cdi nonsense
	[[ $status -eq 2 && $output == *"unknown command 'nonsense'"* ]]
	for words in "load extra" "help extra" "vcuda limit extra" "vgpu limit extra" "cdi list extra"; do
		# shellcheck disable=SC2086
		refused 2 "'extra' is one argument too many" ctr-gpu help $words
	done
	run ctr-gpu-hook --help
	[[ $status -eq 0 && $output == *createRuntime* ]]
}

@test "every command of --help is in the manual's SYNOPSIS" {
	synopsis=$(sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/p' "$here/../../man/ctr-gpu.1")
	commands=$(ctr-gpu --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
	[[ $commands == *info*unconfigure*help ]]
	for command in $commands; do
		grep -qE "^\.Cm $command( |\$)" <<<"$synopsis" || {
			echo "$command"
			return 1
		}
	done
}

@test "every option of --help is in the manual" {
	for command in info list configure load doctor; do
		for option in $(ctr-gpu "$command" --help | grep -oE '^ {2,6}(-., )?--[a-z0-9-]+' | grep -oE '[a-z][a-z0-9-]+$'); do
			[[ $option == usage || $option == help ]] && continue
			sed 's/^\.It //; s/Fl -/--/g' "$here/../../man/ctr-gpu.1" | grep -qE -- "--$option\\b" || {
				echo "$command --$option"
				return 1
			}
		done
	done
}

@test "without a command it lists them, as an error; -h is --help everywhere" {
	run ctr-gpu 2>/dev/null
	[[ $status -eq 2 ]]
	diff <(ctr-gpu 2>&1 >/dev/null) <(ctr-gpu --help)
	for command in "" info list configure unconfigure cdi "cdi generate" "cdi list" "cdi check" load setup refresh doctor version help; do
		# shellcheck disable=SC2086
		diff <(ctr-gpu $command -h) <(ctr-gpu $command --help)
	done
	[[ $(ctr-gpu help -h) == "$(ctr-gpu --help)" && $(ctr-gpu -h) == *"  -h  "* ]]
	diff <(ctr-gpu-hook -h) <(ctr-gpu-hook --help)
}

@test "a command line that makes no sense is status 2 and leaves standard output empty" {
	refused 2 "unrecognized option '--nonsense'" ctr-gpu --nonsense
	refused 2 "unrecognized option '--nonsense'" ctr-gpu info --nonsense
	refused 2 "ctr-gpu info --help" ctr-gpu info --nonsense
	refused 2 "'x' is one argument too many" ctr-gpu info x
	refused 2 "'0' is one argument too many; a GPU is named so: --device 0" ctr-gpu list 0
	refused 2 "'x' is one argument too many" ctr-gpu load x
	refused 2 "'x' is one argument too many" ctr-gpu doctor x
	refused 2 "'x' is one argument too many" ctr-gpu version x
	refused 2 "exclude each other" ctr-gpu info --json --csv
	refused 2 "not 'wmi'" ctr-gpu --inventory=wmi info
	refused 2 "not 'wmi'" ctr-gpu info --inventory=wmi
	refused 2 "requires an argument" ctr-gpu list --device
}

@test "numbers are read to their end and within their bounds" {
	for number in 0 -1 1x x '' 3600.1 nan inf 1e99; do
		refused 2 "not '$number'" ctr-gpu --timeout="$number" info
	done
	for number in 0 -1 1x x '' 99999999999 0x10; do
		refused 2 "not '$number'" ctr-gpu configure --pid="$number" /
	done
}

@test "configure wants one absolute root directory" {
	refused 2 "ROOTFS is missing" ctr-gpu configure
	refused 2 "absolute path, not 'rootfs'" ctr-gpu configure rootfs
	refused 2 "absolute path, not ''" ctr-gpu configure ''
	refused 2 "'/b' is one argument too many" ctr-gpu configure /a /b
}

@test "an option or engine that does not exist is answered with the nearest" {
	refused 2 "unrecognized option '--devcie'; did you mean '--device'?" ctr-gpu list --devcie=0
	refused 2 "unrecognized option '--repalce'; did you mean '--replace'?" ctr-gpu setup docker --repalce
	refused 2 "did you mean '--timeout'?" ctr-gpu doctor --timeot=3
	refused 2 "did you mean '--output'?" ctr-gpu cdi generate --ouput=x
	# What stands where a value belongs is none, nor what stands behind "--".
	refused 1 '[E_NO_DEVICE]' host plain ctr-gpu list --device --devcie
	refused 2 "not 'dokcer'; did you mean 'docker'?" ctr-gpu setup dokcer
	refused 2 "not 'cri-o'; did you mean 'crio'?" ctr-gpu setup cri-o
	refused 2 "not 'kubernets'; did you mean 'kubernetes'?" ctr-gpu setup kubernets
	refused 2 "not 'lxc'" ctr-gpu setup lxc
	refused 2 "not 'dokcer'; did you mean 'docker'?" ctr-gpu doctor --try=dokcer
	refused 2 "not 'podman:gpsu'; did you mean 'podman:gpus'?" ctr-gpu doctor --try=podman:gpsu
	refused 2 "not 'dxcor'; did you mean 'dxcore'?" ctr-gpu --inventory=dxcor info
	refused 2 "unknown driver capability \"compue\"; did you mean 'compute'?" host wsl-nvidia ctr-gpu list --capabilities=compue
	refused 1 "configure; did you mean 'list'?" bash -c 'exec -a nvidia-container-cli ctr-gpu lsit'
	refused 2 "unknown command 'lod'; did you mean 'load'?" ctr-gpu-guard lod
}

@test "a failure with --json is JSON" {
	for way in "info --json" "list --json" "configure --json --dry-run /srv"; do
		# shellcheck disable=SC2086
		run -1 host plain bash -c "ctr-gpu $way 2>/dev/null"
		[[ $(jq -r '.error.id, (.error.text | length > 9), (.error.advice | length > 9)' <<<"$output" | xargs) == "E_NO_DEVICE true true" ]]
	done
	run -1 host wsl-nvidia bash -c "ctr-gpu list --json --device=9 2>/dev/null"
	[[ $(jq -r '.error.id, .error.advice' <<<"$output") == E_UNKNOWN_DEVICE$'\n'"It has: 0 NVIDIA GeForce RTX 4090"$'\n'* ]]
	run -1 host plain bash -c "ctr-gpu load --json 2>/dev/null"
	[[ $(jq -r '.error.id' <<<"$output") == E_NO_DEVICE ]]
	# An error without a name, too; and one object, also where there are more messages.
	for way in "vcuda list" "vcuda top" "vcuda audit" "cdi check --spec-dir=/none"; do
		run host wsl-nvidia bash -c "ctr-gpu $way --json 2>/dev/null"
		[[ $(jq -cr 'has("error") or has("files")' <<<"$output") == true ]] || { echo "$way: $output"; return 1; }
	done
	run -1 host wsl-nvidia bash -c "ctr-gpu vcuda list --json 2>/dev/null"
	[[ $(jq -r '.error.id, (.error.text | length > 9), (.error.advice | length > 9)' <<<"$output" | xargs) == "null true true" ]]
}

@test "a device by the number in its name, and one in quotation marks" {
	run -0 host wsl-hybrid ctr-gpu list -d 4070
	[[ $output == *nv_dispi* && $output != *iigd* ]]
	for number in 407 070 40; do
		refused 1 "no device \"$number\"" host wsl-hybrid ctr-gpu list -d "$number"
	done
	refused 1 'no device "7"' host wsl-hybrid ctr-gpu list -d 7
	grep -qF 'docker run --gpus 2 asks for 0 and 1' "$BATS_TEST_TMPDIR/stderr"
	refused 1 "no device \"vendo:intel\"; did you mean 'vendor:intel'?" host wsl-hybrid ctr-gpu list -d 0,vendo:intel
	refused 1 "shows all names of a device); did you mean 'vendor:amd'?" host native-amd ctr-gpu list -d amd
	refused 1 'no device "amd"' host native-intel ctr-gpu list -d amd
	[[ $(<"$BATS_TEST_TMPDIR/stderr") != *"did you mean"* ]]
	refused 1 "no device \"al\"; did you mean 'all'?" host wsl-nvidia ctr-gpu list -d al
	refused 1 'The quotation marks are part of the value' host wsl-hybrid ctr-gpu list -d '"all"'
	lines 3
}

@test "info and list say what keeps every container from a GPU" {
	run -1 host wsl-no-adapter ctr-gpu info
	[[ $output == *"Install the GPU's current driver in Windows"* ]]
	run -1 host wsl-gpu-off ctr-gpu info
	[[ $output == *"gpuSupport=true"* ]]
	# What is only in a note fails, too, and is said once.
	run -1 host native-halfway ctr-gpu info
	[[ $(grep -c "driver was updated halfway" <<<"$output") -eq 1 ]]
	run -1 host hyperv-no-libdxcore ctr-gpu info
	[[ $(grep -c "libdxcore.so is missing" <<<"$output") -eq 1 ]]
	run -1 host hyperv-no-libdxcore ctr-gpu info --csv
	[[ $output == *"libdxcore.so is missing"* ]]
	# And who runs a container is told of gpuSupport, too.
	run -1 host wsl-gpu-off ctr-gpu list
	[[ $output == *gpuSupport* ]]
	run -1 host wsl-nvidia bash -c 'mount -o remount,bind,noexec /usr/lib/wsl/lib; ctr-gpu list'
	[[ $output == *"/usr/lib/wsl/lib/nvidia-smi"*"remount,bind,exec /usr/lib/wsl/lib"* ]]
	run host wsl-nvidia bash -c 'for d in lib drivers; do mount -o remount,bind,noexec /usr/lib/wsl/$d; done; ctr-gpu info'
	[[ $output == *"remount,bind,exec /usr/lib/wsl/lib;"*"remount,bind,exec /usr/lib/wsl/drivers;"* ]]
	run -1 host native-prefix bash -c 'd=/usr/local/nvidia/lib64; mount --bind $d $d; mount -o remount,bind,noexec $d
		ctr-gpu info; ctr-gpu configure --dry-run "$BATS_TEST_TMPDIR"'
	[[ $output == *"note: /usr/local/nvidia/lib64 is mounted noexec"*"[E_DRIVER_LIBRARY] /usr/local/nvidia/lib64 is mounted noexec"* ]]
}

@test "a command that does not exist is answered with the nearest" {
	refused 2 "did you mean 'info'?" ctr-gpu inof
	refused 2 "did you mean 'info'?" ctr-gpu inf
	refused 2 "did you mean 'list'?" ctr-gpu lits
	refused 2 "did you mean 'configure'?" ctr-gpu conf
	refused 2 "did you mean 'configure'?" ctr-gpu help confgure
	for name in '' x frobnicate "$(printf 'info%.0s' {1..2000})"; do
		refused 2 "'ctr-gpu --help' lists them" ctr-gpu "$name"
	done
}

@test "-d is --debug before the command and --device behind it" {
	refused 1 '[E_BAD_CONFIG]' ctr-gpu -d -c /dev/null info
	refused 2 "option requires an argument -- 'd'" ctr-gpu list -d
	refused 2 "invalid option -- 'd'" ctr-gpu info -d
}

@test "output that is lost is a failure" {
	refused 1 "No space left on device" bash -c 'ctr-gpu --help >/dev/full'
	refused 1 "No space left on device" bash -c 'ctr-gpu --version >/dev/full'
	refused 1 "No space left on device" bash -c 'ctr-gpu version >/dev/full'
	refused 1 "No space left on device" bash -c 'ctr-gpu help list >/dev/full'
	refused 1 "Bad file descriptor" bash -c 'ctr-gpu version >&-'
	refused 1 "No space left on device" bash -c 'ctr-gpu-hook --version >/dev/full'
	refused 1 "No space left on device" bash -c 'ctr-gpu-hook --help >/dev/full'
	refused 1 "No space left on device" bash -c 'exec -a nvidia-cdi-hook ctr-gpu-hook --version >/dev/full'
	# Of a pipe whose reader has ended.
	run bash -c 'exec 3> >(true); wait $!; ctr-gpu version >&3; echo "$?"'
	[[ $output == 1 ]]
}

@test "output that is lost is a failure on a host with GPUs, too" {
	for way in 'info' 'info --json' 'info --csv' 'list' 'list --json' 'list --dry-run' 'configure --dry-run /srv' 'configure --dry-run --json /srv' \
		top 'top --json' assign 'assign --json' 'doctor --report=-' 'slurm gres' 'slurm nodes'; do
		host wsl-nvidia bash -c "ctr-gpu $way" >/dev/null
		refused 1 "No space left on device" host wsl-nvidia bash -c "ctr-gpu $way >/dev/full"
		[[ $(wc -l <"$BATS_TEST_TMPDIR/stderr") -eq 2 ]]
		# Who closes a pipe wants no message.
		run host wsl-nvidia bash -c "exec 3> >(true); wait \$!; ctr-gpu $way 2>&1 >&3; echo \$?"
		[[ $output == 1 ]]
	done
}

@test "closed standard streams stay unusable and take no file's place" {
	run bash -c 'ctr-gpu info --config=/none <&- 2>&- >&-'
	[[ $status -eq 1 && -z $output ]]
	run bash -c 'ctr-gpu version <&- 2>&-'
	[[ $status -eq 0 && $output == "ctr-gpu $version"* ]]
}

@test "a configuration that cannot be used is an error that names it" {
	refused 1 'cannot read the configuration /none/config.json' ctr-gpu --config=/none/config.json info
	refused 2 '--config is a file; it is empty' ctr-gpu --config= info
	refused 2 '--spec-dir is a directory; it is empty' ctr-gpu cdi check --spec-dir=
	refused 2 '--device is empty' host wsl-nvidia ctr-gpu list --device=
	refused 2 '--device is empty' host wsl-nvidia ctr-gpu configure --device= --dry-run /srv
	run host wsl-nvidia nvidia-container-cli list --device=
	[[ $status -eq 0 && -z $output ]]
	echo '{"driver-timout": 1}' >"$BATS_TEST_TMPDIR/config.json"
	refused 1 'unknown key "driver-timout"' ctr-gpu --config="$BATS_TEST_TMPDIR/config.json" info
	grep -qF 'ctr-gpu: [E_BAD_CONFIG]' "$BATS_TEST_TMPDIR/stderr"
	lines 3
	refused 1 'unknown key "driver-timout"' ctr-gpu list --config="$BATS_TEST_TMPDIR/config.json"
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	refused 1 "[E_BAD_CONFIG] $BATS_TEST_TMPDIR/fifo is not a regular file" timeout 60 ctr-gpu --config="$BATS_TEST_TMPDIR/fifo" info
	refused 1 '[E_BAD_CONFIG] /dev/null is not a regular file' ctr-gpu --config=/dev/null info
	refused 1 '[E_BAD_CONFIG] /etc is not a regular file' ctr-gpu --config=/etc info
	[[ $(<"$BATS_TEST_TMPDIR/stderr") != *"Move /etc"* ]]
	refused 1 'cannot read the configuration /etc/ctr-gpu/config.json: No such file or directory' host wsl-nvidia bash -c '
		mkdir -p /etc/ctr-gpu; ln -s /nonexistent/config.json /etc/ctr-gpu/config.json; ctr-gpu list'
}

@test "--debug says what is done, on standard error or in a file" {
	log=$BATS_TEST_TMPDIR/log
	run host wsl-nvidia bash -c 'ctr-gpu --debug info 2>&1 >/dev/null'
	[[ $status -eq 0 && $output == *'ctr-gpu: debug: '* ]]
	run host wsl-nvidia bash -c 'ctr-gpu info 2>&1 >/dev/null'
	[[ $status -eq 0 && -z $output ]]
	run host wsl-nvidia bash -c "ctr-gpu info --debug='$log' 2>&1 >/dev/null"
	[[ $status -eq 0 && -z $output ]]
	grep -q '^ctr-gpu: debug: ' "$log"
	refused 1 "cannot write the log to /none/log" ctr-gpu --debug=/none/log info
	# A link that another user has put there.
	if [[ $EUID -eq 0 ]]; then
		ln -s "$BATS_TEST_TMPDIR/target" "$BATS_TEST_TMPDIR/link"
		chown -h 12345 "$BATS_TEST_TMPDIR/link"
		refused 1 "cannot write the log to $BATS_TEST_TMPDIR/link: Operation not permitted" ctr-gpu --debug="$BATS_TEST_TMPDIR/link" info
		[[ ! -e $BATS_TEST_TMPDIR/target ]]
		mkfifo "$BATS_TEST_TMPDIR/fifo"
		chown 12345 "$BATS_TEST_TMPDIR/fifo"
		refused 1 "cannot write the log to $BATS_TEST_TMPDIR/fifo: Operation not permitted" timeout 60 ctr-gpu --debug="$BATS_TEST_TMPDIR/fifo" info
	fi
	# What was asked for is done all the same.
	run host wsl-nvidia bash -c 'ctr-gpu info --debug=/dev/full 2>&1 >/dev/null'
	[[ $status -eq 0 && ${lines[0]} == "ctr-gpu: the log is not complete: No space left on device" && ${lines[1]} == *"make room"* ]]
}

@test "list and configure --dry-run see the same, however it is asked for" {
	plan=$(host wsl-two-nvidia ctr-gpu list --device=0,1 --capabilities=utility,compute --json)
	[[ $(jq '.devices | length' <<<"$plan") -ge 1 ]]
	for way in 'list --json' 'list -d all --json' 'list -d 0 -d 1 -cu --json' 'configure --dry-run --json /srv' \
		'configure -d 1 -d 0 -c --capabilities=utility --dry-run --json /srv'; do
		# shellcheck disable=SC2086
		[[ $(host wsl-two-nvidia ctr-gpu $way | jq -S 'del(.warnings)') == "$(jq -S 'del(.warnings)' <<<"$plan")" ]]
	done
	run host wsl-two-nvidia ctr-gpu list
	[[ $output == *'/dev/dxg'* ]]
	[[ $output == "$(jq -r '(.devices[].path), (.mounts[].source)' <<<"$plan")" ]]
	[[ $(host wsl-nvidia ctr-gpu list --dry-run) == "$(host wsl-nvidia ctr-gpu configure --dry-run /srv)" ]]
	[[ $(host wsl-nvidia ctr-gpu list --dry-run --json) == "$(host wsl-nvidia ctr-gpu list --json)" ]]
	[[ $(host wsl-nvidia ctr-gpu list --dry-run) == "GPU  "* ]]
}

@test "a plan is not shown for a directory that is not there" {
	user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	refused 1 '/nonexistent cannot be opened: No such file' host wsl-nvidia ctr-gpu configure --dry-run /nonexistent
	grep -qF 'such as an unpacked image' "$BATS_TEST_TMPDIR/stderr"
	refused 1 '/nonexistent cannot be opened: No such file' host wsl-nvidia "${user[@]}" ctr-gpu configure --dry-run /nonexistent
	grep -qF 'such as an unpacked image' "$BATS_TEST_TMPDIR/stderr"
	run -1 --separate-stderr host wsl-nvidia ctr-gpu configure --dry-run --json /nonexistent
	[[ $(jq -r .error.id <<<"$output") == E_BAD_ROOTFS ]]
	[[ $(host wsl-nvidia "${user[@]}" ctr-gpu configure --dry-run /srv) == "GPU  "* ]]
	refused 1 'process 4194303 does not exist' host wsl-nvidia ctr-gpu configure --dry-run --pid=4194303 /srv
}

@test "what the library refuses of the command line is status 2, what the host lacks is status 1" {
	refused 2 '[E_UNKNOWN_CAPABILITY]' host wsl-nvidia ctr-gpu list --capabilities=telepathy
	lines 3
	refused 2 '[E_BAD_REQUIREMENT]' host wsl-nvidia ctr-gpu list --require='cuda=>12'
	lines 3
	refused 1 '[E_UNKNOWN_DEVICE]' host wsl-nvidia ctr-gpu list --device=7
	lines 3
	refused 1 '[E_REQUIREMENT]' host wsl-nvidia ctr-gpu list --require='cuda>=99.0'
	lines 3
}

@test "assign wants a GPU, which none is not" {
	for names in none void none,0 ""; do
		refused 2 "\"$names\" names no GPU" host wsl-nvidia ctr-gpu assign --exclusive "$names"
	done
}

@test "info --json and --csv can be read by programs" {
	host wsl-hybrid ctr-gpu info --json | jq -e '.adapters | length >= 2' >/dev/null
	run host wsl-hybrid ctr-gpu info --csv
	[[ ${lines[0]} == index,backend,vendor,name,* && ${#lines[@]} -ge 3 ]]
}

@test "info shows a host whose adapters cannot be used, and the rest refuses it" {
	run host wsl-old-driver ctr-gpu info
	[[ $status -eq 1 && $output == *'not usable:'*'[E_DRIVER_TOO_OLD]'* ]]
	refused 1 'ctr-gpu: [E_DRIVER_TOO_OLD]' host wsl-old-driver ctr-gpu list
	lines 3
}
