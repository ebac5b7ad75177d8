#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2030,SC2031,SC2034
#
# Users who start containers without root and ask for GPUs by vCUDA: what the manager gives them, and what it does not, whatever is
# said. vcuda-podman.bats has real containers.

load ../../../test/e2e/engines

rootless_programs=/run/programs
user=54321 other=54322

setup_file() {
	require_root
	require_program unshare
	require_program newuidmap
}

a=GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4 b=GPU-7b10aa04-0041-0000-0000-000084ef55fb

# manager USERS: starts one with these users in the settings, and waits until it answers
manager() {
	mkdir -p /etc/ctr-gpu
	echo "{\"vcuda\": {\"mode\": \"allow\", \"memory\": \"6G\", \"users\": [$1]}}" >/etc/ctr-gpu/config.json
	ctr-gpu-vcudad 2>>"$scratch/audit" &
	manager=$!
	until ctr-gpu vcuda list >/dev/null 2>&1 && [[ -S /run/ctr-gpu-vcuda/socket ]]; do sleep 0.02; done
}

# in_namespace USERS SCRIPT [AS-ROOT]: a shell of the user's in a user namespace, where hooks are, on a host with two GPUs. It has a mount
# namespace of its own, and so may pass for a container's first process. `box` begins another container, and `root COMMAND…` is done by
# root of the host.
in_namespace() {
	local listen='mkfifo /run/asked /run/answered
		chmod 622 /run/asked
		chmod 644 /run/answered
		while read -r line; do bash -c "$line" >/run/answered 2>&1; done <>/run/asked &'

	export -f manager driver
	export scratch=$BATS_TEST_TMPDIR
	CTR_GPU_TEST_AS_ROOT="manager '$1'; export manager; $listen ${3-}" run rootless wsl-two-nvidia timeout --kill-after=1 240 \
		unshare --user --map-auto --map-root-user --mount bash -euc '
		a='"$a b=$b"'
		root() { echo "$*" >/run/asked; cat /run/answered; }
		ask() { /run/programs/vcuda/test/ask "$@" </dev/null; }
		listed() { root "ctr-gpu vcuda list --json" | jq -r "$1"; }
		soon() { local i; for ((i = 0; i < 3000; i++)); do "$@" && return; sleep 0.02; done; echo "not within a minute: $*"; return 1; }
		box() {
			unshare --mount sleep 300 >/dev/null &
			box=$!
			until [[ $(readlink "/proc/$box/ns/mnt") != "$(readlink "/proc/$$/ns/mnt")" ]]; do sleep 0.01; done
		}
		'"$2"
	echo "$output"
	cat "$scratch/audit"
}

# ---- what a user gets ----

@test "a user whom the settings do not name is refused, by a line that names the setting" {
	in_namespace "{\"uid\": $other}" 'ask id=one pid=$$ gpu=$a'
	expect_line "refused: uid $user gets no GPU by vCUDA here; the administrator allows it by {\"vcuda\": {\"users\": [{\"uid\": $user}]}} in /etc/ctr-gpu/config.json"
}

@test "of what a user's hook says counts what lessens; the rest is the administrator's and the host's" {
	in_namespace "{\"uid\": $user, \"memory\": \"4G\", \"share\": 50, \"max_clients\": 5, \"containers\": 3}" '
		ask id=one pid=$$ gpu=$a address=0000:ff:00.0 library=/tmp/evil.so memory=3G share=900 clients=200 host=1T owner=0 keep=1
		listed ".containers[] | [.container, .owner, .memory / 1073741824, .share, .maxClients, .gpus[].pciAddress] | @csv"
		root cat /run/ctr-gpu/vcudad.json
		box
		ask id=two pid=$box gpu=$b share=50 clients=2 keep=1
		listed "[.containers[].share] | @csv"
		ask id=three pid=$$ gpu=$a
		root "cat \$scratch/audit" | jq -rs "map(select(.event == \"grant\"))[] | [.container, .memory / 1073741824, .share, .maxClients] | @csv"
	'
	expect_status 0
	expect_line "granted: /run/ctr-gpu-vcuda/$user/$user+one"
	expect_line kept
	expect_line "\"$user+one\",$user,3,50,5,\"0000:01:00.0\""
	expect_not evil
	expect_line "\"$user+two\",1,25,2"
	expect_line "25,25"
	expect_line "refused: this user's other containers have all the memory of GPUs that \"memory\" allows; give each less by CTR_GPU_MEMORY"
}

@test "a user's containers together have the number that the settings allow, and one that ends makes room" {
	in_namespace "{\"uid\": $user, \"memory\": \"all\", \"containers\": 2}" '
		box; one=$box
		ask id=one pid=$box gpu=$a keep=1
		box
		ask id=two pid=$box gpu=$a keep=1
		ask id=three pid=$$ gpu=$a keep=1
		[[ -S /run/ctr-gpu-vcuda/54321/54321+one/socket ]]
		echo socket
		kill "$one"
		soon test ! -e /run/ctr-gpu-vcuda/54321/54321+one
		echo gone
		ask id=three pid=$$ gpu=$a keep=1
		listed "[.containers[].container] | sort | @csv"
	'
	expect_status 0
	expect_line 'refused: as many containers of this user have GPUs by vCUDA as "containers" allows'
	expect_line socket
	expect_line gone
	expect_line "\"$user+three\",\"$user+two\""
}

@test "of a percentage a user's containers have what they ask for, as an amount of their GPU" {
	in_namespace "{\"uid\": $user, \"memory\": \"50%\"}" '
		ask id=one pid=$$ gpu=$a memory=3G keep=1
		box
		ask id=two pid=$box gpu=$a memory=3G keep=1
		box
		ask id=three pid=$box gpu=$a keep=1
		box
		ask id=four pid=$box gpu=$a keep=1
		listed ".containers | length"
	' 'driver;'
	expect_status 0
	[[ $(grep -c "^granted:" <<<"$output") == 3 ]]
	expect_line "refused: this user's other containers have all the memory of GPUs that \"memory\" allows; give each less by CTR_GPU_MEMORY"
	expect_line 3
}

@test "a user has the GPUs that the settings name, and none that one container has alone" {
	in_namespace "{\"uid\": $user, \"gpus\": [\"1\"]}" '
		ask id=one pid=$$ gpu=$a
		ask id=one pid=$$ gpu=$b gpu=$a
		ask id=one pid=$$ gpu=$b
		ask id=one pid=$$ gpu=all
		ask id=one pid=$$ gpu=GPU-00000000-0000-0000-0000-000000000000
		root "ctr-gpu assign 1 --exclusive"
		ask id=one pid=$$ gpu=$b
	'
	expect_status 0
	expect "refused: uid $user may not have $a by vCUDA: \"gpus\" of its entry in {\"vcuda\": {\"users\": [...]}} of /etc/ctr-gpu/config.json does not name it"
	[[ $(grep -c "refused: uid $user may not have" <<<"$output") == 2 ]]
	[[ $(grep -c "^granted:" <<<"$output") == 1 ]]
	expect_line "refused: GPUs are asked for by their UUIDs"
	expect "refused: this host has no device"
	expect "is exclusive, and users' containers get none that is: ctr-gpu assign"
}

@test "members of a group; whoever is no member by the kernel's word is none" {
	in_namespace '{"gid": 7777}, {"gid": 54321, "share": 7}' 'ask id=one pid=$$ gpu=$a keep=1; listed .containers[].share'
	expect_line "granted: /run/ctr-gpu-vcuda/$user/$user+one"
	expect_line 7
	in_namespace '{"gid": 7777}' 'ask id=one pid=$$ gpu=$a'
	expect "refused: uid $user gets no GPU"
}

# ---- what a user may try ----

@test "a grant is for a process of the user's own, in namespaces of its own" {
	in_namespace "{\"uid\": $user}" '
		ask id=one pid=1 gpu=$a
		ask id=one pid="$(cat /run/roots)" gpu=$a
		ask id=one pid="$(cat /run/others)" gpu=$a
		ask id=one pid="$(cat /run/plain)" gpu=$a
		ask id=one pid="$(cat /run/files)" gpu=$a
		ask id=one pid=0 gpu=$a
		ask id=one pid=-1 gpu=$a
		ask id=one pid=999999 gpu=$a
	' 'sleep 300 & echo $! >/run/roots
		setpriv --reuid 54322 --regid 54322 --clear-groups unshare --user --map-root-user --mount sleep 300 & echo $! >/run/others
		setpriv --reuid 54321 --regid 54321 --clear-groups sleep 300 & echo $! >/run/plain
		# With files of the host.
		setpriv --reuid 54321 --regid 54321 --clear-groups unshare --user --map-root-user sleep 300 & echo $! >/run/files; '
	expect_status 0
	[[ $(grep -c "is not the first one of a container of uid $user, for which a grant lasts" <<<"$output") == 8 ]]
	expect_not granted
}

@test "users that are numbered in a user's namespace are no accounts of their own, nor is who is in none" {
	in_namespace "{\"uid\": $user}, {\"uid\": 600004}, {\"uid\": 600005}, {\"gid\": 54321}" '
		setpriv --reuid 5 --regid 0 --clear-groups /run/programs/vcuda/test/ask id=one pid=$$ gpu=$a </dev/null
		cat /run/outside
	' 'setpriv --reuid 54321 --regid 54321 --clear-groups /run/programs/vcuda/test/ask id=one pid=1 gpu=$a </dev/null >/run/outside
		/run/programs/vcuda/test/ask id=one pid=1 gpu=$a </dev/null >>/run/outside; '
	expect_status 0
	[[ $(grep -c "^refused: the process that asks is in no user namespace of a container, or another user made that" <<<"$output") == 3 ]]
	expect_not granted
}

@test "another container's name, directory and grant stay another's" {
	in_namespace "{\"uid\": $user, \"memory\": \"4G\"}, {\"uid\": $other}" '
		ask id=one pid=$$ gpu=$a memory=1G keep=1
		for id in ../x a/b "" "$(printf "%0120d" 0)" 54322+mine; do ask "id=$id" pid=$$ gpu=$a memory=1G; done
		{
			ls /run/ctr-gpu-vcuda || :
			ls /run/ctr-gpu-vcuda/54321 || :
			mkdir /run/ctr-gpu-vcuda/54321/new || :
			mv /run/ctr-gpu-vcuda/54321/54321+one /run/ctr-gpu-vcuda/54321/x || :
			rm -r /run/ctr-gpu-vcuda/54321/54321+one/socket || :
			ls /run/ctr-gpu-vcuda/54322/54322+mine || :
		} 2>&1
		cat /run/of-other
		listed "[.containers[].container] | sort | @csv"
	' 'touch /run/theirs /run/of-other
		chmod 666 /run/theirs
		setpriv --reuid 54322 --regid 54322 --clear-groups unshare --user --map-root-user --mount bash -c "
			/run/programs/vcuda/test/ask id=mine pid=\$\$ gpu='"$b"' keep=1 </dev/null >/run/theirs; sleep 300" &
		until grep -q . /run/theirs; do sleep 0.02; done; cp /run/theirs /run/of-other; '
	expect_status 0
	expect "granted: /run/ctr-gpu-vcuda/54322/54322+mine"
	expect "cannot open directory '/run/ctr-gpu-vcuda': Permission denied"
	expect "cannot open directory '/run/ctr-gpu-vcuda/54321': Permission denied"
	expect "cannot create directory '/run/ctr-gpu-vcuda/54321/new': Permission denied"
	expect "cannot move '/run/ctr-gpu-vcuda/54321/54321+one' to '/run/ctr-gpu-vcuda/54321/x': Permission denied"
	expect "cannot remove '/run/ctr-gpu-vcuda/54321/54321+one/socket': Permission denied"
	expect "cannot access '/run/ctr-gpu-vcuda/54322/54322+mine': Permission denied"
	expect_line "granted: /run/ctr-gpu-vcuda/54321/54321+54322+mine"
	expect_line "\"$user+one\",\"$other+mine\""
	[[ $(grep -c "^refused: its name is not made of letters\|^refused: the container's id is longer" <<<"$output") == 4 ]]
}

@test "connections that say nothing, or nonsense, keep nobody else waiting" {
	in_namespace "{\"uid\": $user}, {\"uid\": $other}" '
		ask bytes=20000
		# They have their seats for some seconds.
		for _ in 1 2 3 4; do
			/run/programs/vcuda/test/ask idle=100 </run/silence >/run/idle &
			soon grep -q connected /run/idle
			answer=$(ask id=one pid=$$ gpu=$a)
			[[ $answer == granted* ]] || break
		done
		echo "$answer"
		root "ctr-gpu vcuda list --json" | jq -c .containers
		echo >/run/go
		until grep -q . /run/of-other; do sleep 0.02; done
		cat /run/of-other
	' 'mkfifo /run/silence /run/go && sleep 300 >/run/silence & until [[ -p /run/go ]]; do sleep 0.01; done
		touch /run/of-other /run/idle; chmod 666 /run/go /run/silence /run/of-other /run/idle
		setpriv --reuid 54322 --regid 54322 --clear-groups unshare --user --map-root-user --mount bash -c "
			read -r line </run/go; /run/programs/vcuda/test/ask id=mine pid=\$\$ gpu='"$b"' keep=1 </dev/null >/run/of-other; sleep 300" & '
	expect_status 0
	expect_line closed
	expect_line "refused: too many containers begin at once; try again"
	expect_line "[]"
	expect_line "granted: /run/ctr-gpu-vcuda/54322/54322+mine"
}

@test "users who take all seats for requests leave one to who has none" {
	in_namespace "{\"uid\": $user}, {\"uid\": 54331}, {\"uid\": 54332}, {\"uid\": 54333}, {\"uid\": 54334}" 'ask id=one pid=$$ gpu=$a' \
		'mkfifo /run/silence; sleep 300 >/run/silence & for uid in 5433{1..4}; do
			setpriv --reuid $uid --regid $uid --clear-groups unshare --user --map-root-user \
				/run/programs/vcuda/test/ask idle=16 </run/silence >/run/$uid &
			until [[ -s /run/$uid ]]; do sleep 0.02; done
		done; '
	expect_status 0
	expect_line "granted: /run/ctr-gpu-vcuda/54321/54321+one"
}

@test "sockets that are waited for when they are closed, sent by a user who may nothing, keep nobody waiting" {
	in_namespace "{\"uid\": $user}" '
		timeout 20 /run/programs/vcuda/test/ask id=one pid=$$ gpu=$a </dev/null
	' 'mkfifo /run/silence; sleep 300 >/run/silence & setpriv --reuid 54322 --regid 54322 --clear-groups unshare --user --map-root-user \
			/run/programs/vcuda/test/ask linger=40 </run/silence >/run/sent &
		until grep -q sent= /run/sent; do sleep 0.02; done; '
	expect_status 0
	expect_line "granted: /run/ctr-gpu-vcuda/54321/54321+one"
}

@test "a manager that is started again knows whose containers are whose" {
	in_namespace "{\"uid\": $user, \"memory\": \"4G\", \"share\": 40}" '
		box
		ask id=one pid=$$ gpu=$a memory=1G share=40 keep=1
		ask id=two pid=$box gpu=$a memory=3G share=40 keep=1
		root "kill -9 \$manager; ctr-gpu-vcudad >/dev/null 2>>\$scratch/audit & until ctr-gpu vcuda list >/dev/null 2>&1; do sleep 0.02; done"
		soon test -S /run/ctr-gpu-vcuda/socket
		listed "[.containers | sort_by(.container)[] | .container, .owner, .share, .memory / 1073741824] | @csv"
		soon ask id=three pid=$$ gpu=$a
		kill "$box"
		soon test ! -e /run/ctr-gpu-vcuda/54321/54321+two && echo gone
	'
	expect_status 0
	expect_line "\"$user+one\",$user,20,1,\"$user+two\",$user,20,3"
	expect "refused: this user's other containers have all the memory of GPUs"
	expect_line gone
}
