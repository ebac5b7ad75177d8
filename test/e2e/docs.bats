#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# What the documentation says to type. test/docs finds the commands, and says how they are marked.

load engines

setup_file() {
	require_root
}

setup() {
	PATH=$CTR_GPU_BUILD/bin:$PATH
	docs=$e2e/../docs
	us=$'\037' rs=$'\036'
}

# Whether what was printed is what the page shows; "…" there stands for anything.
as_shown() {
	local shown=${1//$rs/$'\n'} pattern='' part

	while [[ $shown == *…* ]]; do
		part=${shown%%…*}
		pattern+=$(printf '%q' "$part")*
		shown=${shown#*…}
	done
	pattern+=$(printf '%q' "${shown%$'\n'}")
	eval "[[ \$output == $pattern ]]"
}

# run_command PROFILE COMMAND: as a user of that host types it; what it writes to /var and the home directory is gone afterwards.
# A container's /rootfs is a directory there.
run_command() {
	run sandbox "$1" bash -c '
		mkdir /run/docs && mount -t tmpfs tmpfs /run/docs && mkdir /run/docs/{upper,work,home,rootfs} &&
			mount -t overlay -o lowerdir=/var,upperdir=/run/docs/upper,workdir=/run/docs/work overlay /var || exit 126
		export HOME=/run/docs/home
		cd
		sudo() { "$@"; }
		eval "$1"
	' - "$(sed -E 's,(/srv)?/rootfs\b,/run/docs/rootfs,g' <<<"$2")" 2>&1
}

@test "every command in a block works, and prints what is shown" {
	local where profile outcome command shown count=0 bad=0

	while IFS=$us read -r where profile outcome command shown; do
		count=$((count + 1))
		run_command "$profile" "$command"
		if [[ $outcome == ok && $status -ne 0 || $outcome == fails && ($status -eq 0 || $status -ge 125) ]]; then
			printf '%s: %s: on %s it ends with status %d: %s\n' "$where" "$command" "$profile" "$status" "$output"
			bad=$((bad + 1))
		elif [[ $shown ]] && ! as_shown "$shown"; then
			printf '%s: %s: on %s it prints:\n%s\n' "$where" "$command" "$profile" "$output"
			bad=$((bad + 1))
		fi
	done < <("$docs" commands)
	echo "$count commands, $bad of them wrong"
	[[ $count -ge 20 && $bad -eq 0 ]]
}

@test "every command and option that is mentioned exists" {
	local where text verb word words option known count=0 bad=0

	while IFS=$us read -r where text; do
		read -ra words <<<"$text"
		verb=
		for word in "${words[@]:1}"; do
			if [[ $word == -* ]]; then
				[[ $verb != @(cdi|slurm|vcuda) ]] || break
			elif [[ ! $verb ]]; then
				verb=$word
			elif [[ $verb == @(cdi|slurm|vcuda) ]]; then
				verb="$verb $word"
			fi
		done
		[[ $verb != COMMAND && $verb != … ]] || continue
		count=$((count + 1))
		known=$(ctr-gpu --help)
		# shellcheck disable=SC2086
		if [[ $verb ]] && ! known+=$(ctr-gpu $verb --help 2>&1); then
			echo "$where: $text: there is no command $verb"
			bad=$((bad + 1))
			continue
		fi
		for option in $(grep -oE -- '(^| )--[a-z0-9-]+' <<<"$text"); do
			if ! grep -qE -- "$option\b" <<<"$known --help --version"; then
				echo "$where: $text: there is no option $option"
				bad=$((bad + 1))
			fi
		done
	done < <("$docs" mentions)
	echo "$count mentions, $bad of them wrong"
	[[ $count -ge 20 && $bad -eq 0 ]]
}

@test "every key of JSON output is in the manual" {
	local key profile command

	for profile in wsl-hybrid native-mig; do
		for command in info list "load --dry-run"; do
			# shellcheck disable=SC2086
			for key in $(sandbox "$profile" ctr-gpu $command --json | jq -r '[paths | map(strings)[]] | unique[]'); do
				grep -qE "^\\.(It |Pq )?Ic $key( |$)" "$e2e/../../man/ctr-gpu.1" || {
					echo "ctr-gpu $command --json has $key"
					return 1
				}
			done
		done
	done
	[[ $key ]]
}

# listed [COMMAND]: the commands below it that its help lists
listed() {
	ctr-gpu "$@" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

# Commands as they are typed: "info", "cdi generate".
commands() {
	local verb sub

	for verb in $(listed); do
		[[ $verb != help ]] || continue
		echo "$verb"
		for sub in $(listed "$verb"); do
			echo "$verb $sub"
		done
	done
}

# Long options in a help text, and in a page
help_options() {
	grep -oE -- '(^|[ ,[])--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' | sort -u
}

page_options() {
	sed -n 's/^\.\\".*//; s/^\(.*Fl.*\)/\1/p' "$@" | grep -oE 'Fl -[a-z][a-z0-9-]*' | sed 's/Fl /-/' | sort -u
}

@test "every option is in the manual, and the manual has no others" {
	local command page man=$e2e/../../man all="" missing=""

	while IFS= read -r command; do
		page=$man/ctr-gpu-${command%% *}.1
		[[ -e $page ]] || page=$man/ctr-gpu.1
		# shellcheck disable=SC2086
		for option in $(ctr-gpu $command --help | help_options); do
			all+=$option$'\n'
			[[ $option != --usage && $option != --help && $option != --version ]] || continue
			cat "$page" "$man/ctr-gpu.1" | page_options /dev/stdin | grep -qxF -- "$option" || missing+="ctr-gpu $command $option"$'\n'
		done
	done < <(commands)
	[[ -z $missing ]] || { printf 'not in the manual:\n%s' "$missing"; return 1; }
	missing=$(comm -13 <(sort -u <<<"$all") <(page_options "$man"/ctr-gpu*.1))
	[[ -z $missing ]] || { printf 'in the manual only:\n%s\n' "$missing"; return 1; }
	missing=$(comm -23 <(ctr-gpu-hook --help | help_options) <(page_options "$man/ctr-gpu-hook.8"))
	[[ -z $missing ]] || { printf 'ctr-gpu-hook:\n%s\n' "$missing"; return 1; }
}
