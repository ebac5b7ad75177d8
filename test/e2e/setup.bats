#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# `ctr-gpu setup`: what it writes into an engine's configuration and takes out again, and what it says of the daemon that runs.

load engines

setup_file() {
	require_root
	require_program dockerd
}

# machine COMMAND…: where /etc, /var/lib, /run and processes are ours alone, in an empty directory on a disk
machine() {
	mkdir -p "$BATS_TEST_TMPDIR/machine"
	PATH=$CTR_GPU_BUILD/bin:$PATH unshare --mount --propagation private --pid --fork --kill-child --mount-proc bash -ec '
		cd "$1"
		shift
		mount -t tmpfs tmpfs /var/lib
		mount -t tmpfs -o mode=755 tmpfs /run
		mkdir /run/upper /run/work /run/bin
		mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc
		rm -rf /etc/docker /etc/containerd /etc/containers /etc/crio /etc/cdi
		# An installed package has the names that dockerd looks for.
		if compgen -G "/usr/bin/nvidia-c*" >/dev/null; then
			mkdir /run/upper-bin /run/work-bin
			mount -t overlay -o lowerdir=/usr/bin,upperdir=/run/upper-bin,workdir=/run/work-bin overlay /usr/bin
			rm /usr/bin/nvidia-c*
		fi
		cp /bin/true /run/bin/ctr-gpu-runtime
		"$@"' machine "$BATS_TEST_TMPDIR/machine" "$@" 3>&-
}

# in_machine SCRIPT [ARGUMENT…]: a script there, in which `setup` is the command with the runtime that is there
in_machine() {
	local script=$1
	shift

	machine bash -ec 'setup() { ctr-gpu setup --runtime=/run/bin/ctr-gpu-runtime "$@"; }
		# What fails, with its message in a file.
		# patched FILE DIFFERENCE: the file "patched", as one is with a difference
		patched() { rm -f patched; if [[ -e $1 ]]; then cp "$1" patched; fi; [[ ! -s $2 ]] || patch -s --binary patched "$2"; }
		refused() { if "$@" 2>message; then echo "not refused: $*"; exit 1; fi; }
		# fake NAME [ARGUMENT…]: a process that /proc shows as this daemon, until "ends"; a shell, or $fake_program with $fake_script
		fake() {
			local daemon=/run/fake/$1
			mkdir -p /run/fake
			[[ -p /run/fake/wait ]] || mkfifo /run/fake/wait
			[[ -x $daemon ]] || cp "${fake_program:-/bin/sh}" "$daemon"
			[[ -e /run/fake/script ]] || printf "%s\n" "${fake_script:-read line}" >/run/fake/script
			shift
			"$daemon" /run/fake/script "$@" <>/run/fake/wait &
			until [[ $(cat "/proc/$!/comm") == "${daemon##*/}" ]]; do sleep 0.01; done
		}
		ends() { kill -KILL %% && wait %% || true; }
		# pauses COMMAND…: in the background; it has read the file daemon.json, and waits a second before it writes
		pauses() {
			strace -qq -o /dev/null -e trace=fsync -e inject=fsync:delay_enter=1000000:when=1 "$@" &
			for _ in {1..500}; do
				[[ ! -s /var/lib/ctr-gpu/.setup.json.ctr-gpu && ! -s .daemon.json.ctr-gpu ]] || break
				sleep 0.01
			done
		}
		'"$script" script "$@"
}

# Every way in which somebody may have written a daemon.json, in printf form.
json_layouts=('' '\n' ' \t\n' '{}' '{}\n' '{ }' '{\n}\n' '{\r\n}\r\n' '\xef\xbb\xbf{}' '\xef\xbb\xbf{\r\n  "debug": true\r\n}\r\n'
	'{"debug":true}' '{"debug": true}\n' '{ "debug" : true }' '{"debug":true,"hosts":["fd://"]}'
	'{\n  "debug": true\n}\n' '{\n\t"debug": true,\n\t"log-opts": {"max-size": "10m"}\n}' '{\r\n    "debug": true\r\n}'
	'{\n    "runtimes": {}\n}\n' '{"runtimes":{}}' '{"runtimes":{ } }' '{\n  "runtimes": {\n  }\n}'
	'{\n  "runtimes": {\n    "kata": {\n      "path": "/opt/kata"\n    }\n  },\n  "debug": true\n}\n'
	'{"runtimes":{"kata":{"path":"/opt/kata"}},"default-runtime":"kata","features":{"buildkit":true}}'
	'{"features": {"cdi": true}}' '{"features": null, "runtimes": null}' '\n\n{"a":"\\"}{\\\\","b":[ ]}\n\n'
	'{"default-runtime": "runc"}' '{"\\u0072untimes": {"a": {}}}')

@test "setup, then setup --remove: every layout of daemon.json is as it was, byte for byte" {
	in_machine '
		for layout; do
			for way in "" --set-as-default; do
				printf "$layout" >before
				cp before daemon.json
				setup docker --engine-config=daemon.json $way >/dev/null
				jq -e ".runtimes.nvidia.path == \"/run/bin/ctr-gpu-runtime\" and .features.cdi" <<<"$(sed "1s/^\xef\xbb\xbf//" daemon.json)" >/dev/null
				cp daemon.json once
				setup docker --engine-config=daemon.json $way | grep -q "everything is there"
				cmp once daemon.json
				setup docker --engine-config=daemon.json --remove >/dev/null
				cmp before daemon.json || { od -c before; exit 1; }
				[[ ! -e /var/lib/ctr-gpu ]]
			done
		done' "${json_layouts[@]}"
}

@test "--dry-run shows the difference, and changes nothing" {
	in_machine '
		for layout; do
			printf "$layout" >before
			cp before daemon.json
			setup docker --engine-config=daemon.json --set-as-default --dry-run >shown 2>remarks
			grep -q "daemon.json would change:" remarks
			cmp before daemon.json
			patched daemon.json shown
			[[ ! -e /var/lib/ctr-gpu ]]
			setup docker --engine-config=daemon.json --set-as-default >/dev/null
			cmp patched daemon.json
			setup docker --engine-config=daemon.json --set-as-default --dry-run 2>&1 >/dev/null | grep -q "daemon.json would not change"
			cp daemon.json once
			cp /var/lib/ctr-gpu/setup.json state
			setup docker --engine-config=daemon.json --remove --dry-run >shown 2>remarks
			patched daemon.json shown
			cmp before patched
			cmp once daemon.json
			cmp state /var/lib/ctr-gpu/setup.json
			setup docker --engine-config=daemon.json --remove >/dev/null
			cmp before daemon.json
		done
		# Where something is remembered already.
		touch other.json
		setup docker --engine-config=other.json >/dev/null
		cp /var/lib/ctr-gpu/setup.json state
		setup docker --engine-config=daemon.json --dry-run >/dev/null 2>&1
		refused setup docker --engine-config=none/daemon.json
		grep -q "engine-config: the directory none does not exist" message
		cmp before daemon.json
		cmp state /var/lib/ctr-gpu/setup.json
		[[ ! -e none ]]
		# A mistake in typing makes no file, and in no directory that the engine knows.
		mkdir -p /etc/docker /etc/containers/containers.conf.d
		for file in deamon.json /etc/docker/dameon.json; do
			refused setup docker --engine-config=$file
			grep -q "engine-config: there is no file $file" message
			grep -q "Docker.s is called daemon.json" message
			[[ ! -e $file ]]
		done
		cmp state /var/lib/ctr-gpu/setup.json
		refused setup podman --engine-config=/etc/containers/99-ctr-gpu
		setup podman --engine-config=/etc/containers/containers.conf.d/50-mine.conf >/dev/null
		setup podman --engine-config=/etc/containers/containers.conf.d/50-mine.conf --remove >/dev/null
		cd /etc/containers
		for file in containers.conf.d/50-mine.conf containers.conf; do
			setup podman --engine-config=$file >/dev/null
			setup podman --engine-config=$file --remove >/dev/null
			setup podman --engine-config=/etc/containers/$file >/dev/null
			setup podman --engine-config=/etc/containers/$file --remove >/dev/null
			(
				export HOME=/run/home
				mkdir -p $HOME/.config/containers/containers.conf.d
				chmod 755 /run
				chown -R 54321 $HOME
				for action in "" --remove; do
					setpriv --reuid 54321 --regid 54321 --clear-groups env -u XDG_CONFIG_HOME -u XDG_STATE_HOME \
						ctr-gpu setup podman --rootless --runtime=/run/bin/ctr-gpu-runtime --engine-config=$HOME/.config/containers/$file $action >/dev/null
				done
			)
		done
		cd "$OLDPWD"
		setup docker --engine-config=other.json --remove >/dev/null
		# Where diff(1) is missing, every line is shown.
		mount --bind /dev/null /usr/bin/diff
		for layout; do
			printf "$layout" >daemon.json
			setup docker --engine-config=daemon.json --dry-run >shown 2>/dev/null
			[[ $(grep -c "^@@" shown) == 1 ]]
			patched daemon.json shown
			setup docker --engine-config=daemon.json >/dev/null
			cmp patched daemon.json
			setup docker --engine-config=daemon.json --remove >/dev/null
		done
		umount /usr/bin/diff
		# The same of one that is stopped amid its output.
		printf "#!/bin/sh\nprintf -- \"--- a\\n+++ b\\n@@ -1 +1,9 @@\\n-part\\n\"\nkill -KILL \$\$\n" >/run/stopped
		chmod 755 /run/stopped
		mount --bind /run/stopped /usr/bin/diff
		echo "{\"debug\": true}" >daemon.json
		setup docker --engine-config=daemon.json --dry-run >shown 2>/dev/null
		grep -qxF -- "-{\"debug\": true}" shown
		patched daemon.json shown
		setup docker --engine-config=daemon.json >/dev/null
		cmp patched daemon.json
		setup docker --engine-config=daemon.json --remove >/dev/null
		umount /usr/bin/diff
		rm daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		[[ -z $(setup docker --engine-config=daemon.json --remove --dry-run 2>remarks) ]]
		grep -q "daemon.json would be removed" remarks' "${json_layouts[@]}"
}

@test "keys keep their order, and the file its indentation and line ends" {
	in_machine '
		keeps() {
			printf "$1" >daemon.json
			setup docker --engine-config=daemon.json >/dev/null
			printf "$2" | sed "s,RUNTIME,/run/bin/ctr-gpu-runtime," | cmp - daemon.json || { cat daemon.json; exit 1; }
			setup docker --engine-config=daemon.json --remove >/dev/null
		}
		keeps "{\"z\": 18446744073709551615, \"features\": {\"cdi\": true}, \"a\": 0.5}" \
			"{\"z\": 18446744073709551615, \"features\": {\"cdi\": true}, \"a\": 0.5, \"runtimes\": {\"nvidia\": {\"path\": \"RUNTIME\"}}}"
		keeps "{\"z\":[1],\"features\":{\"cdi\":true}}\n" \
			"{\"z\":[1],\"features\":{\"cdi\":true},\"runtimes\":{\"nvidia\":{\"path\":\"RUNTIME\"}}}\n"
		keeps "\xef\xbb\xbf{\r\n\t\"z\": \"/\\u00e4\",\r\n\t\"features\": {\r\n\t\t\"cdi\": true\r\n\t}\r\n}" \
			"\xef\xbb\xbf{\r\n\t\"z\": \"/\xc3\xa4\",\r\n\t\"features\": {\r\n\t\t\"cdi\": true\r\n\t},\r\n\t\"runtimes\": {\r\n\t\t\"nvidia\": {\r\n\t\t\t\"path\": \"RUNTIME\"\r\n\t\t}\r\n\t}\r\n}"
		keeps "{\n  \"features\": {\n    \"cdi\": true}\n}\n" \
			"{\n  \"features\": {\n    \"cdi\": true\n  },\n  \"runtimes\": {\n    \"nvidia\": {\n      \"path\": \"RUNTIME\"\n    }\n  }\n}\n"'
}

@test "a file that did not exist is gone again" {
	in_machine '
		setup docker >/dev/null
		jq -e .runtimes.nvidia /etc/docker/daemon.json >/dev/null
		[[ $(stat -c %a:%U:%G /etc/docker/daemon.json) == 644:root:root ]]
		setup docker --remove >/dev/null
		[[ -d /etc/docker && -z $(ls -A /etc/docker) && ! -e /var/lib/ctr-gpu ]]
		setup docker >/dev/null
		setup docker --remove >/dev/null
		[[ -d /etc/docker && -z $(ls -A /etc/docker) ]]'
}

@test "an empty file that did exist stays" {
	in_machine '
		own=/etc/containers/containers.conf.d/99-ctr-gpu.conf
		mkdir -p /etc/containers/containers.conf.d /etc/docker
		touch $own /etc/docker/daemon.json
		setup podman --engine-config=$own >/dev/null
		setup podman --engine-config=$own --remove >/dev/null
		[[ -e $own && ! -s $own ]]
		setup docker >/dev/null
		setup podman >/dev/null
		setup --remove all >/dev/null
		[[ -e $own && ! -s $own && -e /etc/docker/daemon.json && ! -s /etc/docker/daemon.json ]]'
}

@test "a directory that is a link: what was written is found again, whether or not it was there at first" {
	in_machine '
		mkdir /run/elsewhere
		ln -s /run/elsewhere /etc/containers
		setup podman >/dev/null
		[[ -f /run/elsewhere/containers.conf.d/99-ctr-gpu.conf ]]
		[[ $(jq -c ".files | keys" /var/lib/ctr-gpu/setup.json) == "[\"/run/elsewhere/containers.conf.d/99-ctr-gpu.conf\"]" ]]
		setup podman | grep -q "everything is there"
		setup podman --remove >/dev/null
		[[ -z $(find /run/elsewhere -type f) && -L /etc/containers && ! -e /var/lib/ctr-gpu ]]'
}

# Its owner has put a link there since the file was read.
@test "a directory that becomes another meanwhile: nothing is made there" {
	require_program strace
	in_machine '
		for file in "{}" ""; do
			mkdir theirs others
			[[ -z $file ]] || echo "$file" >theirs/daemon.json
			pauses ctr-gpu setup --runtime=/run/bin/ctr-gpu-runtime docker --engine-config=theirs/daemon.json 2>message
			mv theirs before
			ln -s others theirs
			if wait $!; then exit 1; fi
			grep -q "cannot write .*/theirs/daemon.json: Too many levels of symbolic links" message
			[[ -z $(ls -A others) && ! -e /var/lib/ctr-gpu/setup.json ]]
			rm -rf /var/lib/ctr-gpu theirs before others
		done'
}

@test "no control character of a file's name gets on the terminal" {
	in_machine '
		mkdir -p /etc/containers/containers.conf.d
		printf "[engine.runtimes]\nnvidia = [\"/opt/theirs\"]\n" >"/etc/containers/containers.conf.d/$(printf "\033]0;owned\007\302\2332J").conf"
		refused setup podman
		grep -q "?\]0;owned???2J.conf has a runtime" message
		! grep -q "[[:cntrl:]]" <(tr -d "\n" <message) || exit 1'
}

@test "a user is told that containerd'\''s and CRI-O'\''s files are root'\''s; of a user'\''s own nothing is left" {
	in_machine '
		user() { setpriv --reuid 54321 --regid 54321 --clear-groups env -u XDG_CONFIG_HOME -u XDG_STATE_HOME HOME=/run/home "$@"; }
		mkdir /run/home
		chown 54321 /run/home
		chmod 755 /run
		for engine in containerd crio; do
			refused user ctr-gpu setup $engine --runtime=/run/bin/ctr-gpu-runtime
			grep -q "belongs to root: sudo ctr-gpu setup $engine" message
			refused user ctr-gpu setup --remove $engine
			grep -q "belongs to root: sudo ctr-gpu setup --remove $engine" message
		done
		user ctr-gpu setup podman --runtime=/run/bin/ctr-gpu-runtime >/dev/null
		user ctr-gpu setup podman --runtime=/run/bin/ctr-gpu-runtime >/dev/null
		user ctr-gpu setup podman --remove >/dev/null
		[[ -z $(find /run/home -type f) ]]
		refused user env -u HOME ctr-gpu setup podman --runtime=/run/bin/ctr-gpu-runtime
		grep -q "HOME is not set" message
		for file in "" none/; do
			refused setup docker --engine-config=$file
			grep -q -- "--engine-config is a file" message
		done'
}

@test "a program that others can change is written all the same, and that is said" {
	in_machine '
		setup docker >said
		! grep -q "by others than root" said || exit 1
		chown 12345 /run/bin
		setup docker | grep -q "/run/bin/ctr-gpu-runtime, which Docker runs as root, can be changed by others than root"
		setup docker --remove >said
		! grep -q "by others than root" said || exit 1'
}

@test "what others change in between stays" {
	in_machine '
		echo "{\"debug\": true}" >daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		jq -c ".debug = false | .added = 1 | .runtimes.kata = {path: \"/k\"}" daemon.json >edited
		cat edited >daemon.json
		setup docker --engine-config=daemon.json --remove >/dev/null
		[[ $(jq -cS . daemon.json) == "{\"added\":1,\"debug\":false,\"runtimes\":{\"kata\":{\"path\":\"/k\"}}}" ]]
		[[ ! -e /var/lib/ctr-gpu ]]
		# Also an object that they have emptied.
		rm daemon.json
		setup docker --engine-config=daemon.json --set-as-default >/dev/null
		echo "{\"runtimes\": {}, \"default-runtime\": \"theirs\"}" | tee daemon.json >before
		setup docker --engine-config=daemon.json --remove >said
		cmp before daemon.json
		grep -q "was changed later; that stays" said
		if grep "taken out" said; then exit 1; fi'
}

@test "what had been replaced comes back into a file that others have changed since, and a second setup goes on from theirs" {
	in_machine '
		old="{\"runtimes\": {\"nvidia\": {\"path\": \"/old\", \"runtimeArgs\": []}, \"kata\": {}}, \"default-runtime\": \"kata\", \"features\": {\"cdi\": false}}"
		echo "$old" >daemon.json
		setup docker --engine-config=daemon.json --replace --set-as-default >/dev/null
		jq ".added = 1" daemon.json >edited
		cat edited >daemon.json
		setup docker --engine-config=daemon.json --remove --dry-run >shown 2>/dev/null
		patched daemon.json shown
		mv patched expected
		[[ $(jq -cS . expected) == $(jq -cS ".added = 1" <<<"$old") ]]
		setup docker --engine-config=daemon.json --set-as-default | grep -q "everything is there"
		setup docker --engine-config=daemon.json --remove | { if grep stays; then exit 1; fi; }
		cmp expected daemon.json
		echo "{\"debug\": true}" >daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		jq ".added = 1" daemon.json >edited
		cat edited >daemon.json
		setup docker --engine-config=daemon.json --remove --dry-run >shown 2>/dev/null
		patched daemon.json shown
		mv patched expected
		setup docker --engine-config=daemon.json --set-as-default >/dev/null
		setup docker --engine-config=daemon.json --remove >/dev/null
		cmp expected daemon.json
		[[ $(jq -c . daemon.json) == "{\"debug\":true,\"added\":1}" && ! -e /var/lib/ctr-gpu ]]
		# One that setup made, and somebody has laid out anew, goes too.
		rm daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		jq -c . daemon.json >edited
		cat edited >daemon.json
		setup docker --engine-config=daemon.json --remove >/dev/null
		[[ ! -e daemon.json ]]'
}

@test "a runtime that somebody has changed since is theirs" {
	in_machine '
		echo "{}" >daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		sed -i "s,/run/bin/ctr-gpu-runtime,/opt/mine," daemon.json
		setup docker --engine-config=daemon.json --remove | grep "that stays"
		[[ $(jq -r .runtimes.nvidia.path daemon.json) == /opt/mine ]]'
}

@test "a runtime nvidia that is another'\''s is taken over only with --replace, and comes back" {
	in_machine '
		printf "{\"runtimes\" : {\"nvidia\": { \"path\" :\"nvidia-container-runtime\",\n\"runtimeArgs\": []}}, \"default-runtime\": \"nvidia\"}" >before
		cp before daemon.json
		refused setup docker --engine-config=daemon.json
		grep -q -- --replace message
		[[ $(wc -l <message) -le 3 ]]
		cmp before daemon.json
		setup docker --engine-config=daemon.json --replace >/dev/null
		[[ $(jq -r .runtimes.nvidia.path daemon.json) == /run/bin/ctr-gpu-runtime ]]
		setup docker --engine-config=daemon.json --remove >/dev/null
		cmp before daemon.json
		# By NVIDIA'\''s name it may be ours already, on the PATH of the daemon.
		ln -s ctr-gpu-runtime /run/bin/nvidia-container-runtime
		PATH=/run/bin:/usr/bin:/bin fake dockerd
		setup docker --engine-config=daemon.json >/dev/null
		[[ $(jq -r .runtimes.nvidia.path daemon.json) == nvidia-container-runtime ]]'
}

@test "the default runtime is changed only with --set-as-default, and the old one comes back" {
	in_machine '
		printf "{\"default-runtime\": \"kata\",\n \"runtimes\": {\"kata\": {\"path\": \"/k\"}}}" >before
		cp before daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		[[ $(jq -r .\"default-runtime\" daemon.json) == kata ]]
		setup docker --engine-config=daemon.json --set-as-default >/dev/null
		[[ $(jq -r .\"default-runtime\" daemon.json) == nvidia ]]
		setup docker --engine-config=daemon.json --remove >/dev/null
		cmp before daemon.json'
}

@test "without what setup remembers, what is recognizably ours is taken out" {
	in_machine '
		echo "{\"debug\": true}" >daemon.json
		setup docker --engine-config=daemon.json >/dev/null
		rm -r /var/lib/ctr-gpu
		setup docker --engine-config=daemon.json --remove >/dev/null
		[[ $(jq -c .runtimes daemon.json) != *nvidia* && $(jq .debug daemon.json) == true ]]
		# What is another'\''s is not ours to take out, nor a default that names it.
		echo "{\"runtimes\": {\"nvidia\": {\"path\": \"/opt/theirs\"}}, \"default-runtime\": \"nvidia\"}" >daemon.json
		cp daemon.json before
		setup docker --engine-config=daemon.json --remove | grep -q "nothing to remove"
		cmp before daemon.json'
}

@test "--remove all: each engine and each file is as it was, a default that would name nothing goes, others' files are not even read" {
	in_machine '
		mkdir -p /etc/docker /etc/containerd other
		echo "{\"debug\": true}" | tee /etc/docker/daemon.json other/daemon.json >before.json
		printf "version = 2\n" | tee /etc/containerd/config.toml >before.toml
		for engine in docker podman containerd crio; do setup $engine --set-as-default >/dev/null; done
		setup docker --engine-config=other/daemon.json >/dev/null
		cp before.toml other/config.toml
		setup containerd --engine-config=other/config.toml >/dev/null
		setup --remove all --dry-run >shown 2>remarks
		[[ $(grep -c "would change:" remarks) -eq 4 && $(grep -c "would be removed$" remarks) -eq 2 ]]
		mkdir patched.d
		for file in /etc/docker/daemon.json /etc/containerd/config.toml "$PWD"/other/*; do
			mkdir -p "patched.d/${file%/*}"
			cp "$file" "patched.d/$file"
		done
		patch -s --binary -d patched.d -p0 <<<"$(sed -E "s,^(---|\+\+\+) /,\1 ," shown)"
		cmp before.json patched.d/etc/docker/daemon.json
		cmp before.toml patched.d/etc/containerd/config.toml
		cmp before.json "patched.d/$PWD/other/daemon.json"
		setup --remove all
		cmp before.json /etc/docker/daemon.json
		cmp before.json other/daemon.json
		cmp before.toml other/config.toml
		cmp before.toml /etc/containerd/config.toml
		[[ -z $(find /etc/containers /etc/crio /var/lib/ctr-gpu /etc/cdi -type f 2>/dev/null) ]]
		# Changed since, named as the default by hand, and forgotten by setup.
		for lost in "" yes; do
			setup docker >/dev/null
			setup containerd >/dev/null
			jq ".runtimes.nvidia.runtimeArgs = [\"--debug\"] | .[\"default-runtime\"] = \"nvidia\"" /etc/docker/daemon.json >new
			cat new >/etc/docker/daemon.json
			printf "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\ndefault_runtime_name = \"nvidia\"\n" >>/etc/containerd/config.toml
			[[ -z $lost ]] || rm -r /var/lib/ctr-gpu
			setup --remove all >/dev/null
			[[ $(jq -c "[.debug, .[\"default-runtime\"], .runtimes.nvidia]" /etc/docker/daemon.json) == "[true,null,null]" ]]
			if grep nvidia /etc/containerd/config.toml; then exit 1; fi
			cp before.json /etc/docker/daemon.json
			cp before.toml /etc/containerd/config.toml
		done
		# Nor does it need what setup remembers to be readable.
		setup docker >/dev/null
		setup containerd >/dev/null
		echo "{\"version\": 1, \"files\": {\"$PWD/before.json\": {\"engine\": \"docker\", \"before\": 1}}}" >/var/lib/ctr-gpu/setup.json
		refused setup --remove all
		grep -q "setup.json is damaged" message
		[[ $(jq -c "[.debug, .runtimes.nvidia]" /etc/docker/daemon.json before.json | sort -u) == "[true,null]" ]]
		cmp before.toml /etc/containerd/config.toml
		rm -r /var/lib/ctr-gpu
		cp before.json /etc/docker/daemon.json
		# One that is not valid stops nothing that is not ours, and does not keep the other engines from being undone.
		mkdir -p /etc/crio
		echo "[" >/etc/containerd/config.toml
		setup --remove all
		cp before.toml /etc/containerd/config.toml
		setup docker >/dev/null
		setup containerd >/dev/null
		echo "{" >/etc/docker/daemon.json
		refused setup --remove all
		grep -q "daemon.json:1:1:\|daemon.json:2" message
		cmp before.toml /etc/containerd/config.toml
		refused setup all
		grep -q "goes with --remove" message'
}

@test "a file that is not valid is not touched, and line and column are said" {
	in_machine '
		for case in "{\n  \"a\": 1,\n}|3:1" "// comment\n{}|1:1" "[]|1:1" "{\"runtimes\": {}, \"runtimes\": {}}|1:27" "{\"a\": \"\xff\"}|1:7"; do
			printf "${case%|*}" >daemon.json
			cp daemon.json before
			for way in "" --remove --dry-run; do
				refused setup docker --engine-config=daemon.json $way
				grep -q "daemon.json:${case##*|}: " message || { cat message; exit 1; }
		[[ $(wc -l <message) -le 3 ]]
			done
			cmp before daemon.json
		done
		printf "{\"runtimes\": [1]}" >daemon.json
		refused setup docker --engine-config=daemon.json
		grep -q "\"runtimes\" is not an object" message
		[[ ! -e /var/lib/ctr-gpu ]]'
}

@test "a file whose name could not be remembered, or of which something else is remembered, is not touched" {
	in_machine '
		name=$(printf "a\xff.json")
		echo "{}" >"$name"
		refused setup docker --engine-config="$name"
		grep "a?.json is not UTF-8" message
		[[ $(cat "$name") == "{}" && ! -e /var/lib/ctr-gpu ]]
		mkdir /var/lib/ctr-gpu
		echo "{}" >daemon.json
		for files in "\"/etc/passwd\": 1" "\"daemon.json\": {}" "\"$PWD/daemon.json\": {\"engine\": \"docker\", \"after\": [], \"before\": 7}"; do
			echo "{\"version\": 1, \"files\": {$files}}" >/var/lib/ctr-gpu/setup.json
			for arguments in "docker --engine-config=daemon.json" "docker --engine-config=daemon.json --remove" "all --remove"; do
				refused setup $arguments
				grep "setup.json is damaged" message
			done
		done
		[[ -e /etc/passwd && $(cat daemon.json) == "{}" ]]'
}

@test "mode, owner, labels and links of the file stay" {
	in_machine '
		mkdir real
		echo "{}" >real/daemon.json
		ln -s real/daemon.json daemon.json
		chown 1234:2345 real/daemon.json
		chmod 640 real/daemon.json
		python3 -c "import os; os.setxattr(\"real/daemon.json\", \"user.label\", b\"mine\")"
		setup docker --engine-config=daemon.json >/dev/null
		python3 -c "import os; assert os.getxattr(\"real/daemon.json\", \"user.label\") == b\"mine\""
		[[ -L daemon.json && $(stat -c %a:%u:%g real/daemon.json) == 640:1234:2345 ]]
		[[ $(ls -A real) == daemon.json ]]
		setup docker --engine-config=daemon.json --remove >/dev/null
		[[ -L daemon.json && $(stat -c %a:%u:%g real/daemon.json) == 640:1234:2345 && $(cat real/daemon.json) == "{}" ]]
		ln -s nowhere dangling
		refused setup docker --engine-config=dangling
		grep -q "symbolic link" message
		refused setup docker --engine-config=/dev/null
		grep -q "not a regular file" message
		refused setup docker --engine-config=.
		grep -q "not a regular file" message'
}

@test "a file that cannot be replaced: why, and what can be done" {
	in_machine '
		echo "{}" >/run/source; echo "{}" >daemon.json
		mount --bind /run/source daemon.json
		refused setup docker --engine-config=daemon.json
		grep "cannot replace .*daemon.json: Device or resource busy" message
		grep "^    Something is mounted on it" message
		umount daemon.json
		if chattr +i daemon.json 2>/dev/null; then
			refused setup docker --engine-config=daemon.json
			chattr -i daemon.json
			grep "cannot replace .*daemon.json: Operation not permitted" message
			grep "chattr -ia" message
		fi
		[[ $(cat daemon.json) == "{}" && $(ls -A) == $(printf "daemon.json\nmessage") ]]'
}

@test "a file that somebody else changes meanwhile is theirs" {
	require_program strace
	in_machine '
		for way in "" --remove; do
			echo "{}" >daemon.json
			[[ -z $way ]] || setup docker --engine-config=daemon.json >/dev/null
			pauses ctr-gpu setup --runtime=/run/bin/ctr-gpu-runtime docker --engine-config=daemon.json $way 2>message
			echo "{\"debug\": true}" >daemon.json
			if wait $!; then exit 1; fi
			grep -q "changed meanwhile" message
			[[ $(cat daemon.json) == "{\"debug\": true}" && $(ls) == $(printf "daemon.json\nmessage") ]]
			rm -rf /var/lib/ctr-gpu
		done'
}

@test "two that change the same file at once: the second waits, and is told for whom" {
	in_machine '
		echo "{\"debug\": true}" >daemon.json
		mkdir -p /var/lib/ctr-gpu
		exec 9>/var/lib/ctr-gpu/lock
		flock 9
		echo 4711 >&9
		for i in 1 2; do
			ctr-gpu setup --runtime=/run/bin/ctr-gpu-runtime docker --engine-config=daemon.json >out$i 2>message$i 9<&- &
			started[i]=$!
		done
		for _ in {1..6000}; do
			[[ ! -s message1 || ! -s message2 ]] || break
			sleep 0.01
		done
		exec 9<&-
		wait "${started[1]}"
		wait "${started[2]}"
		cat message1 message2
		grep -q "ctr-gpu: waiting for another \"ctr-gpu setup\" to end (process 4711)" message1 message2
		[[ $(cat message1 message2 | wc -l) == 2 ]]
		[[ $(cat out1 out2 | grep -c "runtimes/nvidia written") == 1 && $(cat out1 out2 | grep -c "everything is there") == 1 ]]
		setup docker --engine-config=daemon.json --remove >/dev/null
		[[ $(cat daemon.json) == "{\"debug\": true}" && ! -e /var/lib/ctr-gpu/lock ]]'
}

@test "nobody else can hold root up: what others can open is not locked" {
	in_machine '
		echo "{\"debug\": true}" >daemon.json
		mkdir -m 755 -p /var/lib/ctr-gpu
		chmod 755 /var/lib
		setpriv --reuid 65534 --regid 65534 --clear-groups flock /var/lib/ctr-gpu sleep 600 &
		until grep -q FLOCK /proc/locks; do sleep 0.01; done
		timeout 60 ctr-gpu setup --runtime=/run/bin/ctr-gpu-runtime docker --engine-config=daemon.json
		[[ $(stat -c %a /var/lib/ctr-gpu) == 700 ]]
		timeout 60 ctr-gpu setup docker --engine-config=daemon.json --remove
		[[ $(cat daemon.json) == "{\"debug\": true}" ]]
		kill $!'
}

@test "the wait for another one has an end, and so has one that is interrupted" {
	in_machine '
		echo "{}" >daemon.json
		mkdir -p /var/lib/ctr-gpu
		exec 9>/var/lib/ctr-gpu/lock
		flock 9
		echo 4711 >&9
		# A nap is over at once, and so is a minute of them.
		strace -qq -o /dev/null -e trace=clock_nanosleep -e inject=clock_nanosleep:retval=0 \
			ctr-gpu setup --runtime=/run/bin/ctr-gpu-runtime docker --engine-config=daemon.json 2>message 9<&- && exit 1
		cat message
		grep -q "another \"ctr-gpu setup\" (process 4711) has not ended in 60 s" message
		ctr-gpu setup --runtime=/run/bin/ctr-gpu-runtime docker --engine-config=daemon.json 2>message 9<&- &
		until [[ -s message ]]; do sleep 0.01; done
		kill -TERM $!
		if wait $!; then exit 1; fi
		[[ $(cat daemon.json) == "{}" ]]'
}

@test "two that run at once do not forget what the other did" {
	in_machine '
		for i in {1..12}; do
			printf "{\"i\": $i}" >$i.json
			setup docker --engine-config=$i.json >/dev/null &
		done
		wait
		[[ $(jq ".files | length" /var/lib/ctr-gpu/setup.json) -eq 12 ]]
		for i in {1..12}; do
			setup docker --engine-config=$i.json --remove >/dev/null &
		done
		wait
		for i in {1..12}; do
			[[ $(cat $i.json) == "{\"i\": $i}" ]]
		done
		[[ ! -e /var/lib/ctr-gpu ]]'
}

@test "a user is told whose the files are; a rootless Docker has its own" {
	in_machine '
		user() { setpriv --reuid 54321 --regid 54321 --clear-groups env -u XDG_CONFIG_HOME -u XDG_STATE_HOME HOME=/run/home "$@"; }
		mkdir /run/home
		chown 54321 /run/home
		chmod 755 /run
		refused user ctr-gpu setup docker --runtime=/run/bin/ctr-gpu-runtime
		grep -q "sudo ctr-gpu setup docker" message
		[[ $(wc -l <message) -le 3 ]]
		refused user ctr-gpu setup docker --runtime=/run/bin/ctr-gpu-runtime --engine-config=/etc/docker/daemon.json
		user ctr-gpu setup docker --runtime=/run/bin/ctr-gpu-runtime --rootless
		jq -e .runtimes.nvidia /run/home/.config/docker/daemon.json >/dev/null
		[[ -e /run/home/.local/state/ctr-gpu/setup.json ]]
		user ctr-gpu setup docker --remove
		[[ -z $(find /run/home/.config -type f) && ! -e /run/home/.local/state/ctr-gpu ]]
		# Where the user has these directories elsewhere; a relative path counts for nothing.
		elsewhere() { user env XDG_CONFIG_HOME="$1" XDG_STATE_HOME="$2" ctr-gpu setup "${@:3}" --runtime=/run/bin/ctr-gpu-runtime; }
		for engine in docker:docker/daemon.json podman:containers/containers.conf.d/99-ctr-gpu.conf; do
			elsewhere /run/home/c /run/home/s "${engine%:*}" --rootless
			ls "/run/home/c/${engine#*:}"
			[[ $engine != docker* ]] || ls /run/home/s/ctr-gpu/setup.json
			elsewhere /run/home/c /run/home/s "${engine%:*}" --rootless --remove
			[[ -z $(find /run/home/c -type f) && ! -e /run/home/s/ctr-gpu ]]
		done
		elsewhere c s docker --rootless
		ls /run/home/.config/docker/daemon.json
		elsewhere c s docker --rootless --remove
		# Root'\''s daemon is no reason to take the user'\''s files; the user'\''s own is.
		fake dockerd
		refused user ctr-gpu setup docker --runtime=/run/bin/ctr-gpu-runtime
		grep -q "sudo ctr-gpu setup docker" message
		user ctr-gpu setup docker --runtime=/run/bin/ctr-gpu-runtime --dry-run >diff 2>remarks
		grep -q "/etc/docker/daemon.json would change:" remarks
		grep -q "PATH of dockerd (process $!) cannot be read" remarks
		ends
		chmod 666 /run/fake/wait
		setpriv --reuid 54321 --regid 54321 --clear-groups /run/fake/dockerd <>/run/fake/wait &
		until [[ $(cat "/proc/$!/comm") == dockerd ]]; do sleep 0.01; done
		user ctr-gpu setup docker --runtime=/run/bin/ctr-gpu-runtime | grep -q "/run/home/.config/docker/daemon.json: runtimes/nvidia written"
		ends
		refused setup docker --rootless
		grep -q "without sudo" message'
}

@test "what keeps dockerd from starting is not written" {
	in_machine '
		fake dockerd --default-runtime=runc
		refused setup docker --set-as-default
		grep -q -- "--default-runtime" message
		setup docker >/dev/null
		setup docker --remove >/dev/null
		ends
		fake dockerd --add-runtime nvidia=/x
		refused setup docker
		grep -q -- "--add-runtime nvidia=/x" message
		ends
		fake dockerd --add-runtime=other=/y --add-runtime nvidia=/z
		refused setup docker
		grep -q -- "--add-runtime nvidia=/z" message
		[[ ! -e /etc/docker/daemon.json ]]'
}

@test "what makes the daemon notice: each way of running services has its command" {
	in_machine '
		setup docker | grep -q "no dockerd is running"
		setup docker --remove
		fake dockerd
		pid=$!
		# Of an unknown version, for which features.cdi is written.
		rm -f /etc/init.d/docker
		setup docker --dry-run 2>&1 | grep -qF "next: kill $pid"
		mkdir -p /etc/init.d
		printf "#!/bin/sh\n" >/etc/init.d/docker
		chmod +x /etc/init.d/docker
		setup docker --dry-run 2>&1 | grep -qF "next: service docker restart"
		mkdir /run/openrc
		setup docker --dry-run 2>&1 | grep -qF "next: rc-service docker restart"
		mkdir -p /run/systemd/system
		setup docker --dry-run 2>&1 | grep -qF "next: systemctl restart docker"
		mkdir -p /etc/docker
		echo "{\"features\": {\"cdi\": true}}" >/etc/docker/daemon.json
		setup docker --dry-run 2>&1 | grep -qF "next: systemctl reload docker"
		rm -r /run/systemd /run/openrc
		setup docker --dry-run 2>&1 | grep -qF "next: kill -HUP $pid"'
}

@test "a daemon that has other files, or is the snap'\''s, is said to be so" {
	in_machine '
		fake dockerd
		ends
		unshare --mount --propagation private bash -c "mount -t tmpfs tmpfs /run/bin; exec /run/fake/dockerd" <>/run/fake/wait &
		until [[ $(cat "/proc/$!/comm") == dockerd ]]; do sleep 0.01; done
		setup docker --dry-run >out 2>&1
		grep -q "process $! is called dockerd, but does not belong to this host" out
		grep -q "no dockerd is running" out
		ends
		# In a container, which has to be set up from inside.
		unshare --pid --fork --kill-child /run/fake/dockerd <>/run/fake/wait &
		until [[ $(cat "/proc/$(pgrep --parent $!)/comm") == dockerd ]]; do sleep 0.01; done
		setup docker --dry-run 2>&1 | grep -q "no dockerd is running"
		ends
		fake dockerd --config-file=/etc/docker/other.json
		setup docker --dry-run 2>&1 >/dev/null | grep -qF "/etc/docker/other.json would change:"
		setup docker --dry-run --engine-config=/etc/docker/daemon.json 2>&1 | grep -qF "but /etc/docker/other.json"
		ends
		mount -t tmpfs tmpfs /mnt
		mkdir -p /mnt/wsl/docker-desktop
		setup docker --dry-run 2>&1 | grep -q "Docker Desktop runs its daemon elsewhere"
		mkdir -p /var/lib/snapd/snap/docker/1/bin
		cp /bin/sh /var/lib/snapd/snap/docker/1/bin/dockerd
		unshare --mount /var/lib/snapd/snap/docker/1/bin/dockerd -c "read line" <>/run/fake/wait &
		until [[ $(cat "/proc/$!/comm") == dockerd ]]; do sleep 0.01; done
		refused setup docker
		grep -q "snap" message
		[[ $(wc -l <message) -le 3 && ! -e /etc/docker ]]'
}

@test "a file that only a process names is shown with the line to type, and used where the engine'\''s files are" {
	in_machine '
		fake dockerd --config-file=/srv/new/daemon.json
		refused setup docker
		grep -qF "(process $!) reads /srv/new/daemon.json, which is not below /etc/docker" message
		grep -qxF "    If you mean that file: sudo ctr-gpu setup docker --engine-config=/srv/new/daemon.json" message
		refused setup docker --remove
		grep -qF "sudo ctr-gpu setup --remove docker --engine-config=/srv/new/daemon.json" message
		setup --remove all
		[[ ! -e /srv/new && ! -e /etc/docker && ! -e /var/lib/ctr-gpu ]]
		ends
		# What a shell would do something with is not shown as a line to type.
		fake dockerd "--config-file=/srv/a;reboot"
		refused setup docker
		grep -qxF "    Name the file that is meant: --engine-config=FILE" message
		ends
		for path in /etc/docker/../passwd /etc/ld.so.preload /etc/docker2/daemon.json; do
			fake dockerd --config-file=$path
			refused setup docker
			grep -qF "reads $path, which is not below" message
			ends
		done
		# Where the directory leads, root has said.
		mkdir /run/moved
		ln -s /run/moved /etc/docker
		ln -s /etc/ld.so.preload /run/moved/link.json
		echo "{}" >/run/moved/there.json
		fake dockerd --config-file=/etc/docker/there.json
		setup docker | grep -q "runtimes/nvidia written"
		grep -q nvidia /run/moved/there.json
		setup docker --remove
		ends
		touch /etc/ld.so.preload
		fake dockerd --config-file=/etc/docker/link.json
		refused setup docker
		[[ ! -s /etc/ld.so.preload ]]
		rm /etc/ld.so.preload
		ends
		fake containerd --config=/srv/containerd.toml
		refused setup containerd
		grep -qF "sudo ctr-gpu setup containerd --engine-config=/srv/containerd.toml" message'
}

@test "root writes nowhere where others could have put the file, or a link, also if a person names it" {
	in_machine '
		user() { setpriv --reuid 54321 --regid 54321 --clear-groups "$@"; }
		mkdir theirs shared
		chown 54321 theirs
		chmod 1777 shared
		chmod 755 .
		echo "{}" | tee shared/daemon.json >theirs/daemon.json
		touch target.json
		user ln -s "$PWD/target.json" theirs/link.json
		for file in theirs/daemon.json theirs/new.json theirs/link.json shared/daemon.json shared/new.json theirs/new/daemon.json; do
			for way in "" --remove --dry-run; do
				refused setup docker --engine-config=$file $way
				grep -q "others than root may change what is at $file" message
				[[ $(wc -l <message) -le 3 ]]
			done
		done
		[[ ! -s target.json && ! -e /var/lib/ctr-gpu && $(cat theirs/daemon.json shared/daemon.json) == $(printf "{}\n{}") ]]
		[[ $(ls theirs shared | tr "\n" " ") == "shared: daemon.json  theirs: daemon.json link.json " ]]
		# The same of the usual one; its user may set it up, and one that belongs to somebody else in root'\''s directory is what it was.
		mkdir /etc/docker
		chgrp 54321 /etc/docker
		chmod g+w /etc/docker
		refused setup docker
		grep -q "others than root may change what is at /etc/docker/daemon.json" message
		chmod g-w /etc/docker
		setup docker >/dev/null
		chown 54321 target.json
		setup docker --engine-config=target.json >/dev/null
		[[ $(stat -c %u target.json) == 54321 ]]'
}

@test "a machine that moves: NVIDIA'\''s settings that matter are named, those of its packages are not" {
	in_machine '
		rm -rf /etc/ctr-gpu; mkdir -p /etc/nvidia-container-runtime /etc/ctr-gpu
		file=/etc/nvidia-container-runtime/config.toml
		# As its package brings it.
		printf "disable-require = false\nsupported-driver-capabilities = \"compat32,compute,display,graphics,ngx,utility,video\"\n#accept-nvidia-visible-devices-as-volume-mounts = false\n[nvidia-container-cli]\nenvironment = []\nload-kmods = true\nldconfig = \"@/sbin/ldconfig.real\"\n[nvidia-container-runtime]\nlog-level = \"info\"\nmode = \"auto\"\nruntimes = [\"docker-runc\", \"runc\", \"crun\"]\n[nvidia-container-runtime.modes.legacy]\ncuda-compat-mode = \"ldconfig\"\n" >$file
		setup docker --dry-run 2>&1 | grep config.toml >out || true
		[[ $(cat out) == "docker: $file is not read: accept-nvidia-visible-devices-as-volume-mounts is not set; here: \"accept-nvidia-visible-devices-as-volume-mounts\": false in /etc/ctr-gpu/config.json" ]]
		ctr-gpu doctor --json | jq -r ".findings[] | select(.id == \"ctr-gpu.moving\") | .severity" >out || true
		[[ $(cat out) == note ]]
		printf "accept-nvidia-visible-devices-as-volume-mounts = true\naccept-nvidia-visible-devices-envvar-when-unprivileged = false\n[nvidia-container-cli]\nroot = \"/run/nvidia/driver\"\n# debug = \"/x\"\n[nvidia-container-runtime]\nmode = \"cdi\"\nruntimes = [\"youki\"]\n" >$file
		setup docker --dry-run 2>&1 | grep config.toml | sed "s/.*not read: //" >out
		diff out - <<-END
			accept-nvidia-visible-devices-envvar-when-unprivileged = false; here: "accept-nvidia-visible-devices-envvar-when-unprivileged": false in /etc/ctr-gpu/config.json
			nvidia-container-cli.root = "/run/nvidia/driver"; here: "driver-root": "/run/nvidia/driver" in /etc/ctr-gpu/config.json
			nvidia-container-runtime.runtimes = ["youki"]; here: "runtimes": ["youki"] in /etc/ctr-gpu/config.json
			nvidia-container-runtime.mode = "cdi"; no successor: there is one way, that of every door
		END
		ctr-gpu doctor >out || true
		[[ $(grep -c "config.toml is not read" out) == 4 ]]
		echo "{\"driver-root\": \"/run/nvidia/driver\", \"accept-nvidia-visible-devices-envvar-when-unprivileged\": false, \"runtimes\": [\"youki\"]}" >/etc/ctr-gpu/config.json
		[[ $(setup docker --dry-run 2>&1 | grep -c config.toml) == 1 ]]
		printf "disable-require = true\nsupported-driver-capabilities = \"compute\"\naccept-nvidia-visible-devices-as-volume-mounts = true\n[nvidia-container-cli]\ndebug = \"/x\"\n[nvidia-container-runtime]\ndebug = \"/y\"\n[nvidia-container-runtime.modes.legacy]\ncuda-compat-mode = \"mount\"\n[features]\nallow-cuda-compat-libs-from-container = true\nignore-imex-channel-requests = true\n" >$file
		setup docker --dry-run 2>&1 | grep config.toml | sed "s/.*not read: //" >out
		diff out - <<-END
			disable-require = true; here: "disable-requirements": true in /etc/ctr-gpu/config.json
			supported-driver-capabilities = "compute"; no successor: all capabilities can be asked for
			nvidia-container-cli.debug = "/x"; here: "log": "/x" in /etc/ctr-gpu/config.json
			nvidia-container-runtime.debug = "/y"; here: "log": "/y" in /etc/ctr-gpu/config.json
			nvidia-container-runtime.modes.legacy.cuda-compat-mode = "mount"; no successor: libraries of an image never take the place of the host'\''s
			features.allow-cuda-compat-libs-from-container = true; no successor: libraries of an image never take the place of the host'\''s
			features.ignore-imex-channel-requests = true; no successor: channels that are asked for and exist are given
		END
		echo "[" >$file
		setup docker --dry-run 2>&1 | { if grep config.toml; then exit 1; fi; }'
}

@test "Docker Desktop only: nothing is written that nobody reads" {
	in_machine '
		mount -t tmpfs tmpfs /mnt
		mount -t tmpfs tmpfs /usr/sbin
		mkdir -p /mnt/wsl/docker-desktop
		refused setup docker
		grep -q "Docker Desktop runs its daemon in a distribution of its own" message
		[[ $(wc -l <message) -le 3 && ! -e /etc/docker && ! -e /etc/cdi ]]'
}

@test "an engine that is not installed: what is written is for later, and that is said" {
	in_machine '
		setup podman | if grep "not installed"; then exit 1; fi
		mkdir /run/bin-upper /run/bin-work
		mount -t tmpfs tmpfs /usr/sbin
		mount -t overlay -o lowerdir=/usr/bin,upperdir=/run/bin-upper,workdir=/run/bin-work overlay /usr/bin
		rm -f /usr/bin/{podman,containerd,crio,dockerd}
		for engine in docker:Docker podman:Podman containerd:containerd crio:CRI-O; do
			setup "${engine%:*}" >out
			grep -qx "${engine%:*}: ${engine#*:} is not installed here; it reads the file when it is" out
			if grep "is running; it" out; then exit 1; fi
			touch "file-${engine%:*}"
			setup "${engine%:*}" --remove >out
			setup "${engine%:*}" --engine-config="$PWD/file-${engine%:*}" >>out
			if grep "not installed" out; then exit 1; fi
		done'
}

@test "a runtime that is named without its path is the first on the daemon'\''s PATH, which may be another toolkit'\''s" {
	in_machine '
		mkdir -p /run/names /run/first /etc/docker
		ln -s /run/bin/ctr-gpu-runtime /run/names/nvidia-container-runtime
		echo "{\"runtimes\": {\"nvidia\": {\"path\": \"nvidia-container-runtime\"}}}" >/etc/docker/daemon.json
		PATH=/run/first:/run/names:/usr/bin:/bin fake dockerd
		setup docker --dry-run >out 2>/dev/null
		if grep ctr-gpu-runtime out; then exit 1; fi
		cp /bin/false /run/first/nvidia-container-runtime
		refused setup docker
		grep -q "has a runtime .nvidia. already: nvidia-container-runtime" message
		setup docker --replace | grep "runtimes/nvidia changed"'
}

@test "--gpus: the name that dockerd looks for, on its own PATH, when it starts" {
	in_machine '
		mkdir /run/names
		PATH=/run/names:/usr/bin:/bin fake dockerd
		setup docker --dry-run 2>&1 | grep -q "needs nvidia-container-runtime-hook on the daemon.s PATH (/run/names:"
		cp /bin/true /run/names/nvidia-container-runtime-hook
		setup docker --dry-run 2>&1 | grep -q "runs /run/names/nvidia-container-runtime-hook, which is not ctr-gpu.s"
		rm /run/names/*
		cp /bin/true /run/names/ctr-gpu-hook
		ln -s ctr-gpu-hook /run/names/nvidia-container-runtime-hook
		setup docker --dry-run 2>&1 | { if grep -e "--gpus"; then exit 1; fi; }
		# An upgrade of the package makes the name anew, and the daemon has found it before.
		mkdir -p /run/documents/ctr-gpu-nvidia-compat /etc/docker
		mount --bind /run/documents /usr/share/doc
		ends
		sleep 1.1
		PATH=/run/names:/usr/bin:/bin fake dockerd
		# The clock of files is that of the last tick.
		sleep 0.1
		ln -sf ctr-gpu-hook /run/names/nvidia-container-runtime-hook
		setup docker >/dev/null
		setup docker | { if grep -F "next: "; then exit 1; fi; }
		setup docker --remove >/dev/null
		rm -r /run/documents/*
		# It was not there yet when the daemon started, so reloading does not do.
		mkdir -p /run/systemd/system /etc/docker
		echo "{\"features\": {\"cdi\": true}}" >/etc/docker/daemon.json
		setup docker | grep -qF "next: systemctl restart docker"'
}

# gpu_machine SCRIPT: a script on a simulated host with a GPU, whose /etc and /var/lib/ctr-gpu are ours alone; $1 is a directory
# on a disk, $2 an image
gpu_machine() {
	local directory

	directory=$(engine_directory gpu-machine)
	mkdir -p "$directory/docker"
	sandbox "${profile:-wsl-nvidia}" bash -ec '
		mkdir -p /run/upper /run/work /run/lib
		mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc
		rm -rf /etc/docker /etc/containers/containers.conf* /etc/cdi
		# The daemon, with no more of its own than keeps it apart from others.
		docker_daemon() {
			DOCKER_HOST=unix://$1/docker/socket
			export DOCKER_HOST
			rm -rf "$1/docker/pid" "$1/docker/exec"
			dockerd --data-root "$1/docker/data" --exec-root "$1/docker/exec" --host "$DOCKER_HOST" --pidfile "$1/docker/pid" \
				--iptables=false --ip6tables=false --bridge=none --cgroup-parent "$CTR_GPU_TEST_CGROUP" \
				--exec-opt native.cgroupdriver=cgroupfs >"$1/docker/log" 2>&1 &
			soon docker version || { cat "$1/docker/log"; return 1; }
		}
		'"$1" gpu_machine "$directory" "$(image debian)"
}

@test "Docker: what was written makes --runtime=nvidia work after no more than a reload, and is gone after --remove" {
	run gpu_machine '
		docker_daemon "$1"
		tar -C "$2" -c . | docker import - debian >/dev/null
		if docker run --rm --runtime=nvidia debian true 2>/dev/null; then exit 1; fi
		ctr-gpu setup docker
		jq -c . /etc/docker/daemon.json
		ls /etc/cdi
		kill -HUP "$(<"$1/docker/pid")"
		soon eval "[[ \$(docker info --format \"{{json .Runtimes.nvidia}}\") != null ]]"
		docker run --rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all debian probe
		ctr-gpu setup docker
		ctr-gpu setup docker --remove
		[[ ! -e /etc/docker/daemon.json && -z $(ls /etc/cdi) ]]
		echo gone'
	expect_status 0
	expect "runtimes/nvidia written"
	# 20.10 has no CDI; the daemon was asked. Turning it on in 25 and later takes more than a reload.
	if [[ $output == *'"features":{"cdi":true}'* ]]; then
		expect "features/cdi written"
		expect "next: "
	else
		expect_line "{\"runtimes\":{\"nvidia\":{\"path\":\"$CTR_GPU_BUILD/bin/ctr-gpu-runtime\"}}}"
		expect "next: kill -HUP "
	fi
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
	expect "everything is there"
	expect_line gone
}

@test "Docker: whose default runtime is ours starts containers after --remove all, without a restart" {
	run gpu_machine '
		ln -s "$CTR_GPU_BUILD/bin/ctr-gpu-hook" /usr/bin/nvidia-container-runtime-hook
		sleep 1.1
		docker_daemon "$1"
		tar -C "$2" -c . | docker import - debian >/dev/null
		ctr-gpu setup docker --set-as-default
		kill -HUP "$(<"$1/docker/pid")"
		soon eval "[[ \$(docker info --format \"{{.DefaultRuntime}}\") == nvidia ]]"
		docker run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
		docker run --detach --name lasting debian sleep 1000 >/dev/null
		docker create --name made debian true >/dev/null
		docker run --detach --runtime=runc --name other debian sleep 1000 >/dev/null
		ctr-gpu setup --remove all
		[[ ! -e /etc/docker/daemon.json && -z $(ls /etc/cdi) ]]
		echo "default: $(docker info --format "{{.DefaultRuntime}}")"
		docker run --rm debian sh -c "echo plain"
		echo "lasting: $(docker inspect --format "{{.State.Running}}" lasting)"
		ctr-gpu setup docker --set-as-default >/dev/null
		ctr-gpu setup docker --remove | grep next'
	expect_status 0
	expect_line "default: runc"
	expect_line plain
	expect_line "lasting: true"
	expect_line "docker: made with the runtime nvidia: made, lasting; without ctr-gpu docker exec and docker start fail for them: make them anew"
	expect "docker: docker run --gpus calls ctr-gpu's hook until Docker is restarted, and fails without it: "
	[[ ${lines[-1]} == *"next: "* && ${lines[-1]} != *HUP* ]]
}

@test "Docker: what a daemon that answers no more has by default is not claimed" {
	in_machine '
		mkdir -p /etc/docker
		setup docker --set-as-default >/dev/null
		# It says once that its default runtime is ours, and then nothing.
		fake_program=$(command -v perl)
		fake_script="
use Socket;
socket S, AF_UNIX, SOCK_STREAM, 0;
bind S, sockaddr_un(q(/run/api));
listen S, 99;
while (accept \$c, S) {
	next if !sysread \$c, \$asked, 9999;
	last if \$answered++;
	syswrite \$c, qq(HTTP/1.0 200 OK\r\n\r\n{\"DefaultRuntime\": \"nvidia\"});
	close \$c;
}
sleep 60;
"
		fake dockerd --host=unix:///run/api
		until [[ -S /run/api ]]; do sleep 0.01; done
		setup all --remove >said
		cat said
		[[ $(<said) != *"by default again"* ]]
		grep "next: " said
		[[ ! -e /etc/docker/daemon.json ]]'
}

@test "Docker: a daemon that has not read that CDI is on is to be restarted, also when the file is as it should be" {
	in_machine '
		mkdir -p /etc/docker
		setup docker >/dev/null
		jq ".features = {cdi: true}" /etc/docker/daemon.json >/run/file
		cat /run/file >/etc/docker/daemon.json
		fake_program=$(command -v perl)
		fake_script="
use Socket;
socket S, AF_UNIX, SOCK_STREAM, 0;
bind S, sockaddr_un(q(/run/api));
listen S, 99;
while (accept \$c, S) {
	syswrite \$c, qq(HTTP/1.0 200 OK\r\n\r\n{\"Version\": \"26.1.5\", \"Runtimes\": {\"nvidia\": {}}, \"CDISpecDirs\": \$ENV{DIRECTORIES}}) if sysread \$c, \$asked, 9999;
	close \$c;
}
"
		DIRECTORIES="[]" fake dockerd --host=unix:///run/api
		until [[ -S /run/api ]]; do sleep 0.01; done
		setup docker >said
		cat said
		grep "everything is there" said
		grep "next: .*restart" said
		ends; rm /run/api
		DIRECTORIES="[\"/etc/cdi\"]" fake dockerd --host=unix:///run/api
		until [[ -S /run/api ]]; do sleep 0.01; done
		setup docker >said
		cat said
		[[ $(<said) != *"next: "* ]]'
}

@test "Podman: what was written makes --runtime=nvidia and --device nvidia.com/gpu=all work" {
	podman_configure "$(engine_directory gpu-machine)"
	run gpu_machine '
		grep -v hooks_dir "$1/containers.conf" >/run/containers.conf
		mkdir -p /etc/containers
		cp /run/containers.conf /etc/containers/containers.conf
		export CONTAINERS_STORAGE_CONF=$1/storage.conf
		container() { memlock podman run --cgroup-parent "$CTR_GPU_TEST_CGROUP" --rm "$@" debian probe; }
		tar -C "$2" -c . | podman import --quiet - debian >/dev/null
		ctr-gpu setup podman
		echo "== runtime"
		container --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all
		echo "== device"
		container --runtime crun --device nvidia.com/gpu=all
		ctr-gpu setup docker
		ctr-gpu setup podman --remove
		[[ -n $(ls /etc/cdi) ]]
		ctr-gpu setup docker --remove
		[[ -z $(ls /etc/cdi /etc/containers/containers.conf.d | grep ctr-gpu) ]]
		cmp /run/containers.conf /etc/containers/containers.conf
		echo gone'
	expect_status 0
	expect "CDI spec of nvidia.com/gpu written"
	[[ $(grep -cxF "cuInit=0" <<<"$output") -eq 2 ]]
	expect_line gone
}

@test "Podman without root: --runtime=nvidia, and the hooks directory without any configuration" {
	local directory

	directory=$(engine_directory rootless)
	XDG_RUNTIME_DIR=/run/user/54321 podman_configure "$directory" /run/ctr-gpu/bin/ctr-gpu-hook
	sed -i "s,$directory,/run/home,g" "$directory"/*.conf
	mkdir -p "$directory/.config/containers"
	grep -v hooks_dir "$directory/containers.conf" >"$directory/.config/containers/containers.conf"
	chown -R 54321:54321 "$directory/.config"
	export CTR_GPU_TEST_AS_ROOT='mkdir -p /run/oci/hooks.d /usr/share/containers/oci
		cp hooks/ctr-gpu.json /run/oci/hooks.d/
		mount --bind /run/oci /usr/share/containers/oci'
	tar -C "$(image debian)" -c . | rootless wsl-nvidia podman import --quiet - debian
	run rootless wsl-nvidia bash -ec '
		unset CONTAINERS_CONF
		podman run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
		if podman run --rm --runtime nvidia debian true 2>/dev/null; then exit 1; fi
		ctr-gpu setup podman
		podman run --rm --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all debian probe
		ctr-gpu setup podman --remove
		[[ $(find "$HOME/.config/containers" -type f) == */containers.conf && ! -e $HOME/.local/state/ctr-gpu ]]
		echo gone'
	expect_status 0
	[[ $(grep -cxF "cuInit=0" <<<"$output") -eq 2 ]]
	expect "sudo ctr-gpu cdi generate"
	expect_line gone
}

@test "a CDI spec of somebody else'\''s is left alone, and none is written beside it" {
	run gpu_machine '
		mkdir /etc/cdi
		echo "kind: nvidia.com/gpu" >/etc/cdi/nvidia.yaml
		ctr-gpu setup crio
		ctr-gpu setup crio --remove
		ls /etc/cdi'
	expect_status 0
	expect_not "CDI spec of nvidia.com/gpu"
	expect_line nvidia.yaml
}

@test "a CDI spec is of the kind that it says, and of no other that is in its text" {
	run gpu_machine '
		mkdir /etc/cdi
		printf "# before nvidia.com/gpu\ncdiVersion: 0.5.0\nkind: management.nvidia.com/gpu\ndevices: []\n" >/etc/cdi/management.yaml
		ctr-gpu setup crio >/dev/null
		ls /etc/cdi
		echo "again: $(ctr-gpu setup crio)"
		ctr-gpu setup crio --remove >/dev/null
		echo "left: $(ls /etc/cdi)"'
	expect_status 0
	expect_line ctr-gpu-nvidia.json
	expect_line "again: crio: /etc/crio/crio.conf.d/99-ctr-gpu.conf: everything is there"
	expect_line "left: management.yaml"
}

@test "CDI specs stay as long as an engine is set up in a file that is not its usual one" {
	run gpu_machine '
		mkdir -p /etc/docker /etc/containerd
		echo "{}" >/etc/docker/other.json
		ctr-gpu setup docker --engine-config=/etc/docker/other.json >/dev/null
		ctr-gpu setup podman >/dev/null
		ctr-gpu setup podman --remove >/dev/null
		echo "docker: $(ls /etc/cdi)"
		ctr-gpu setup docker --remove --engine-config=/etc/docker/other.json >/dev/null
		echo "none: $(ls /etc/cdi)"
		# The file that its own option names.
		printf "version = 2\n" | tee /run/before >/etc/containerd/other.toml
		cp /bin/sh /run/containerd
		echo "read line" >/run/script
		mkfifo /run/wait
		/run/containerd /run/script -c /etc/containerd/other.toml <>/run/wait &
		until [[ $(cat /proc/$!/comm) == containerd ]]; do sleep 0.01; done
		ctr-gpu setup containerd >/dev/null
		kill -KILL $!
		wait $! || true
		ctr-gpu setup podman >/dev/null
		ctr-gpu setup podman --remove >/dev/null
		echo "containerd: $(ls /etc/cdi)"
		ctr-gpu setup --remove all >/dev/null
		cmp /run/before /etc/containerd/other.toml
		echo "all: $(ls /etc/cdi /var/lib/ctr-gpu)"'
	expect_status 0
	expect_line "docker: ctr-gpu-nvidia.json"
	expect_line "none: "
	expect_line "containerd: ctr-gpu-nvidia.json"
	expect_line "all: /etc/cdi:"
	expect_not ctr-gpu-nvidia.json$'\n'"/var"
}

@test "CDI specs stay as long as another engine'\''s file names our programs, also if that is not remembered" {
	run gpu_machine '
		ctr-gpu setup containerd >/dev/null
		# Earlier versions wrote nothing down of this file.
		rm /var/lib/ctr-gpu/setup.json
		ctr-gpu setup docker >/dev/null
		ctr-gpu setup docker --remove >/dev/null
		echo "one: $(ls /etc/cdi)"
		echo "then: $(ctr-gpu setup containerd --remove --dry-run 2>&1)"
		ctr-gpu setup containerd --remove >/dev/null
		echo "none: $(ls /etc/cdi)"'
	expect_status 0
	expect_line "one: ctr-gpu-nvidia.json"
	expect "/etc/cdi/ctr-gpu-nvidia.json would be removed"
	expect_line "none: "
}

@test "CDI specs stay, and --remove fails, where what is remembered of other engines is damaged" {
	run gpu_machine '
		mkdir -p /etc/containerd
		ctr-gpu setup containerd >/dev/null
		mkdir -p /var/lib/ctr-gpu && echo "{" >/var/lib/ctr-gpu/setup.json
		# TOML files say themselves what was written.
		ctr-gpu setup podman
		ctr-gpu setup crio --dry-run | grep -q "^+.*nvidia"
		for engine in podman containerd; do
			if ctr-gpu setup $engine --remove; then exit 1; fi
		done
		echo "named: $(grep -rl ctr-gpu /etc/containerd /etc/containers /etc/crio 2>/dev/null)"
		echo "left: $(ls /etc/cdi)"
		if ctr-gpu setup docker; then exit 1; fi
		ls /etc/docker 2>/dev/null || echo no Docker
		rm /var/lib/ctr-gpu/setup.json
		ctr-gpu setup containerd --remove >/dev/null
		echo "none: $(ls /etc/cdi)"'
	expect_status 0
	[[ $(grep -c "setup.json is damaged" <<<"$output") == 5 ]]
	expect_line "named: "
	expect_line "no Docker"
	expect_line "left: ctr-gpu-nvidia.json"
	expect_line "none: "
}

@test "where nothing can be remembered, the TOML files that say all themselves are changed" {
	in_machine '
		own=/etc/containers/containers.conf.d/99-ctr-gpu.conf
		mount -o remount,ro /var/lib
		setup podman 2>message
		grep -q "Read-only file system" message
		grep -q nvidia $own
		refused setup podman --remove
		grep -q "Read-only file system" message
		[[ ! -e $own ]]
		refused setup docker
		[[ ! -e /etc/docker/daemon.json ]]
		mount -o remount,rw /var/lib
		mount -t tmpfs -o size=64k tmpfs /var/lib
		setup containerd >/dev/null
		{ cat /dev/zero || true; } >/var/lib/full 2>/dev/null
		# What is remembered already is not written again.
		setup containerd --set-as-default 2>message
		[[ ! -s message ]]
		grep -q "default_runtime_name = \"nvidia\"" /etc/containerd/config.toml
		setup podman 2>message
		grep -q "No space left on device" message
		grep -q nvidia $own'
}

@test "a CDI spec that cannot be written: the engine file stays as it is, and --remove takes the specs written before" {
	profile=wsl-hybrid run gpu_machine '
		# Room for the first of two specs.
		mkdir /etc/cdi
		mount -t tmpfs -o nr_inodes=2 tmpfs /etc/cdi
		if ctr-gpu setup docker; then exit 1; fi
		echo "left: $(ls -A /etc/cdi) $(find /etc/docker /var/lib/ctr-gpu -type f 2>/dev/null)"
		ctr-gpu setup docker --remove
		ctr-gpu setup docker --engine-config=/run/daemon.json >/dev/null
		ls /run/daemon.json'
	expect_status 0
	expect "No space left on device"
	expect "json: removed"
	expect_line "docker: /etc/docker/daemon.json: nothing to remove"
	[[ $(grep -c "^left: ctr-gpu-[a-z]*.json $" <<<"$output") -eq 1 ]]
	expect_line /run/daemon.json
}

@test "a file that cannot be written: what --remove would restore is not remembered, and the CDI specs go with the last engine" {
	run gpu_machine '
		mkdir /etc/docker
		mount -t tmpfs -o ro,mode=755 tmpfs /etc/docker
		if ctr-gpu setup docker; then exit 1; fi
		echo "left: $(ls -A /var/lib/ctr-gpu)"
		ctr-gpu setup podman >/dev/null
		ctr-gpu setup docker --remove
		echo "one: $(ls /etc/cdi)"
		ctr-gpu setup podman --remove
		echo "none: $(ls /etc/cdi)"'
	expect_status 0
	expect_line "left: "
	expect_line "one: ctr-gpu-nvidia.json"
	expect_line "none: "
}

@test "a CDI spec that cannot be removed: that is said, and the same command once more removes it" {
	run gpu_machine '
		for engine in docker all; do
			mkdir -p /etc/cdi
			mount -t tmpfs tmpfs /etc/cdi
			ctr-gpu setup docker >/dev/null
			mount -o remount,ro /etc/cdi
			if ctr-gpu setup --remove $engine; then exit 1; fi
			echo "left: $(ls /etc/cdi)$(ls /etc/docker 2>/dev/null)"
			mount -o remount,rw /etc/cdi
			ctr-gpu setup --remove $engine
			umount /etc/cdi
			rmdir /etc/cdi
			echo "$engine: $(find /etc/cdi /etc/docker /var/lib/ctr-gpu -type f 2>/dev/null)"
		done'
	expect_status 0
	[[ $(grep -c "cannot remove /etc/cdi/ctr-gpu-nvidia.json: Read-only file system" <<<"$output") -eq 2 ]]
	[[ $(grep -cx "left: ctr-gpu-nvidia.json" <<<"$output") -eq 2 ]]
	expect_line "docker: /etc/cdi/ctr-gpu-nvidia.json: removed"
	expect_line "all: /etc/cdi/ctr-gpu-nvidia.json: removed"
	expect_line "docker: "
	expect_line "all: "
}

@test "every option of --help is in the manual, and a command line that makes no sense is status 2" {
	for option in $("$CTR_GPU_BUILD/bin/ctr-gpu" setup --help | sed '/every command/,$d' | grep -oE '^ {6}--[a-z-]+' | tr -d ' -' | sort -u); do
		sed 's/^\.It //; s/Fl -/--/g' "$e2e/../../man/ctr-gpu-setup.1" | tr -d - | grep -q -- "$option"
	done
	for line in '' nonsense 'docker docker' '--remove --replace docker' '--runtime=x docker' '--set-as-default --remove docker'; do
		# shellcheck disable=SC2086
		run "$CTR_GPU_BUILD/bin/ctr-gpu" setup $line
		expect_status 2
	done
}

# ---- containerd ----

toml_layouts=('' '\n' '# mine\n' 'version = 2' 'version = 2\n' 'version = 2\r\n\r\n[debug]\r\n  level = "info"\r\n'
	'disabled_plugins = ["cri"]\n' 'version = 2\n[plugins]\n  [plugins."io.containerd.grpc.v1.cri"]\n    enable_cdi = false # off\n'
	'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\n  default_runtime_name = "runc"\n\n  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\n    runtime_type = "io.containerd.runc.v2"\n    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\n      SystemdCgroup = true'
	"version = 2\n[plugins.'io.containerd.grpc.v1.cri'] # here\n\tsandbox_image = 'x'\n[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes]\n"
	'[plugins.cri.containerd]\n  no_pivot = false\n' 'imports = []\nversion = 2\n\n[plugins."io.containerd.grpc.v1.cri"]\n[timeouts]')

@test "containerd: every layout is as it was after --remove, and containerd and another parser read what is written" {
	require_program containerd
	require_program python3
	in_machine '
		# Version 2 writes other quotation marks.
		read_back() { containerd --config "$PWD/config.toml" config dump 2>/dev/null | tr "\\047" "\""; }
		containerd config default >default.toml
		for layout in "$@" default; do
			for way in "" --set-as-default; do
				if [[ $layout == default ]]; then cp default.toml before; else printf "$layout" >before; fi
				cp before config.toml
				setup containerd --engine-config=config.toml $way --dry-run 2>/dev/null >shown
				cmp before config.toml
				patched config.toml shown
				setup containerd --engine-config=config.toml $way >said 2>&1
				cmp patched config.toml
				python3 -c "import tomllib; tomllib.load(open(\"config.toml\", \"rb\"))"
				if containerd --version | grep -q " v*2\." && grep -qF "[plugins.cri" before; then
					# Of version 1, which it does not read any more.
					grep -q "containerd config migrate" said
				elif ! grep -q "disabled_plugins = ..cri" before; then
					read_back | grep -qF "BinaryName = \"/run/bin/ctr-gpu-runtime\""
					read_back | grep -qF "runtimes.runc]"
					[[ -z $way ]] || read_back | grep -qF "default_runtime_name = \"nvidia\""
				fi
				cp config.toml once
				setup containerd --engine-config=config.toml $way | grep -q "everything is there"
				cmp once config.toml
				setup containerd --engine-config=config.toml --remove >/dev/null
				cmp before config.toml || { cat config.toml; exit 1; }
				[[ ! -e /var/lib/ctr-gpu ]]
			done
		done' "${toml_layouts[@]}"
}

@test "containerd: the settings of its runtime are the new one's, too" {
	in_machine '
		printf "${1//%/%%}" >config.toml
		setup containerd --engine-config=config.toml >/dev/null
		[[ $(grep -c "SystemdCgroup = true" config.toml) -eq 2 ]]
		python3 -c "
import tomllib
options = tomllib.load(open(\"config.toml\", \"rb\"))[\"plugins\"][\"io.containerd.grpc.v1.cri\"][\"containerd\"][\"runtimes\"][\"nvidia\"][\"options\"]
assert options == {\"SystemdCgroup\": True, \"BinaryName\": \"/run/bin/ctr-gpu-runtime\"}, options"' "${toml_layouts[8]}"
}

# Tables of runtimes, and what the new one has of them besides its type and its path: that of the default runtime or, if it has
# another shim than runc's, of runc.
@test "containerd: the settings of the runtime that is used now come along, and no other shim's" {
	copies() {
		local cri="plugins.\"$3\".containerd"
		printf "version = $4\n$1\n" | sed "s/CRI/$cri/" >config.toml
		setup containerd --engine-config=config.toml $5 >/dev/null
		python3 - "$2" "$3" <<-"EOF"
			import json, sys, tomllib
			runtime = tomllib.load(open("config.toml", "rb"))["plugins"][sys.argv[2]]["containerd"]["runtimes"]["nvidia"]
			assert runtime.pop("runtime_type") == "io.containerd.runc.v2", runtime
			assert runtime["options"].pop("BinaryName") == "/run/bin/ctr-gpu-runtime", runtime
			assert runtime == json.loads(sys.argv[1]), runtime
		EOF
	}
	export -f copies
	in_machine '
		systemd='\''{"options": {"SystemdCgroup": true}}'\''
		kata="[CRI]\\ndefault_runtime_name = \"kata\"\\n[CRI.runtimes.kata]\\nruntime_type = \"io.containerd.kata.v2\"\\npod_annotations = [\"io.katacontainers.*\"]\\n[CRI.runtimes.kata.options]\\nConfigPath = \"/opt/kata\"\\n"
		runc="[CRI.runtimes.runc]\\nruntime_type = \"io.containerd.runc.v2\"\\n[CRI.runtimes.runc.options]\\nSystemdCgroup = true"
		for section in "io.containerd.grpc.v1.cri 2" "io.containerd.cri.v1.runtime 3"; do
			copies "$kata$runc" "$systemd" $section
			copies "$kata$runc" "$systemd" $section --set-as-default
			copies "$kata" "{\"options\": {}}" $section
			# A type that is empty, missing, or in other quotes.
			copies "[CRI.runtimes.runc]\\nruntime_type = \"\"\\nruntime_root = \"\"\\n[CRI.runtimes.runc.options]\\nSystemdCgroup = true" \
				"{\"runtime_root\": \"\", \"options\": {\"SystemdCgroup\": true}}" $section
			copies "[CRI.runtimes.runc.options]\\nSystemdCgroup = true" "$systemd" $section
			copies "[CRI.runtimes.runc]\\nruntime_type = \"io.containerd.runc.v1\"\\n[CRI.runtimes.runc.options]\\nSystemdCgroup = true" "$systemd" $section
			copies "[CRI.runtimes.nvidia]\\nruntime_type = \"io.containerd.kata.v2\"\\n[CRI.runtimes.nvidia.options]\\nConfigPath = \"/opt/kata\"\\n$runc" \
				"$systemd" $section --replace
			copies "[CRI.runtimes.runc]\\nruntime_type = '\''io.containerd.runc.v2'\''\\noptions = { SystemdCgroup = true, BinaryName = \"/opt/runc\" }" "$systemd" $section
			# The default counts, not runc, where both have the shim.
			copies "[CRI]\\ndefault_runtime_name = \"crun\"\\n[CRI.runtimes.crun]\\nruntime_type = \"io.containerd.runc.v2\"\\n[CRI.runtimes.crun.options]\\nBinaryName = \"crun\"\\nShimCgroup = \"/x\"\\n$runc" \
				"{\"options\": {\"ShimCgroup\": \"/x\"}}" $section
		done'
}

@test "containerd: the file without a version is made for both, a file of version 3 for containerd 2" {
	in_machine '
		setup containerd >/dev/null
		grep -qx "version = 2" /etc/containerd/config.toml
		setup containerd --remove >/dev/null
		[[ -z $(ls -A /etc/containerd) ]]
		echo "version = 3" >config.toml
		setup containerd --engine-config=config.toml >/dev/null
		grep -qF "[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.nvidia.options]" config.toml
		if grep -q enable_cdi config.toml; then exit 1; fi
		echo "version = 4" >config.toml
		refused setup containerd --engine-config=config.toml
		grep -q "version 4" message'
}

@test "containerd: what is another'\''s, what is not valid, and what cannot be added to is left alone" {
	in_machine '
		refuses() {
			printf "$1" >config.toml
			cp config.toml before
			refused setup containerd --engine-config=config.toml
			grep -q -- "$2" message || { cat message; exit 1; }
			[[ $(wc -l <message) -le 3 ]]
			cmp before config.toml
		}
		nvidia="version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]\n  BinaryName = \"/usr/bin/nvidia-container-runtime\" # theirs\n"
		refuses "$nvidia" --replace
		refuses "version = 2\n[plugins\n" "config.toml:2:9: "
		refuses "version = 2\na = 1\na = 2\n" "config.toml:3:1: "
		refuses "version = \"2\"\n" "\"version\" is not a whole number"
		refuses "version = 2\n[[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes]]\n" \
			"\"plugins/io.containerd.grpc.v1.cri/containerd/runtimes\" is not an object"
		refuses "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\ncontainerd = {}\n" "inline table"
		printf "$nvidia" >config.toml
		cp config.toml before
		setup containerd --engine-config=config.toml --replace >/dev/null
		grep -qxF "# ctr-gpu setup:   BinaryName = \"/usr/bin/nvidia-container-runtime\" # theirs" config.toml
		grep -qxF "  BinaryName = \"/run/bin/ctr-gpu-runtime\" # theirs # ctr-gpu setup" config.toml
		setup containerd --engine-config=config.toml --remove >/dev/null
		cmp before config.toml
		mkdir -p /etc/containerd/conf.d
		printf "$nvidia" >/etc/containerd/conf.d/99-nvidia.toml
		refuses "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n" "99-nvidia.toml"
		refused setup containerd --engine-config=config.toml --replace
		grep -q "99-nvidia.toml has settings of the CRI plugin" message
		# Anything of the plugin hides what ours says of it (containerd/containerd#6389), wherever the file is.
		mkdir drop-ins
		mv /etc/containerd/conf.d/99-nvidia.toml drop-ins/a.toml
		printf "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"/x\"\n" >drop-ins/a.toml
		refuses "version = 2\nimports = [\"drop-ins/*.toml\"]\n" "drop-ins/a.toml has settings of the CRI plugin"
		printf "version = 2\n[debug]\nlevel = \"info\"\n" >drop-ins/a.toml
		setup containerd --engine-config=config.toml >/dev/null
		# What somebody turned off stays off.
		printf "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  enable_cdi = false\n" >config.toml
		setup containerd --engine-config=config.toml | grep -q "turns CDI off (enable_cdi)"
		grep -q "enable_cdi = false" config.toml
		setup containerd --engine-config=config.toml --replace | grep -q "enable_cdi changed"
		grep -q "enable_cdi = true" config.toml'
}

@test "containerd: a section of an older version that is left in a file hides no runtime" {
	in_machine '
		mkdir -p /etc/containerd/conf.d
		printf "version = 3\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n" >/etc/containerd/config.toml
		printf "version = 3\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]\nruntime_type = \"io.containerd.runc.v2\"\n
			[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.nvidia]\nruntime_type = \"io.containerd.runc.v2\"\n
			[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.nvidia.options]\nBinaryName = \"/opt/theirs\"\n" >/etc/containerd/conf.d/99-nvidia.toml
		refused setup containerd
		grep -q "99-nvidia.toml has a runtime .nvidia. already" message'
}

@test "containerd: what others change in between stays, and what had been replaced comes back" {
	in_machine '
		cri="plugins.\"io.containerd.grpc.v1.cri\""
		file="version = 2\n[$cri]\n  enable_cdi = false # off\n  [$cri.containerd]\n    default_runtime_name = \"runc\"\n[timeouts]\n"
		# edited SED LEFT STAYS: the file, what somebody does to it after setup, what is left of it then, and whether that is said
		edited() {
			printf "$file" >config.toml
			setup containerd --engine-config=config.toml --set-as-default --replace >/dev/null
			sed -i "$1" config.toml
			setup containerd --engine-config=config.toml --remove >out
			printf "$file" | sed "$2" | cmp - config.toml || { cat config.toml; exit 1; }
			[[ $(grep -c "that stays" out) -eq $3 && ! -e /var/lib/ctr-gpu ]] || { cat out; exit 1; }
		}
		edited "s/timeouts/times/" "s/timeouts/times/" 0
		edited "\$ a [end]" "\$ a [end]" 0
		# A line that is marked goes, whatever it says; one of theirs stays.
		edited "s/cdi = true/cdi = 1/" "" 0
		edited "/cdi = true/d" "" 0
		edited "/cdi = false/d" "/cdi = false/d" 0
		edited "/default_runtime_name/d" "/default_runtime_name/d" 0
		file="version = 2\n[$cri]\n"
		edited "s/cdi = true/cdi = true # yes/" "" 0
		edited "s/^version/# mine\nversion/" "s/^version/# mine\nversion/" 0
		# The version goes with the rest, unless there is something that may need it.
		file="# mine\n"
		edited "1i # two" "1i # two" 0
		printf "$file" >config.toml
		setup containerd --engine-config=config.toml >/dev/null
		echo "[timeouts]" >>config.toml
		setup containerd --engine-config=config.toml --remove >/dev/null
		[[ $(grep -v "^#" config.toml | tr -d "\n") == "version = 2[timeouts]" ]]
		file="version = 2\n[$cri]\n"
		# Between the marked lines.
		printf "$file" >config.toml
		setup containerd --engine-config=config.toml >/dev/null
		sed -i "s,/run/bin/ctr-gpu-runtime,/opt/mine," config.toml
		setup containerd --engine-config=config.toml --remove | grep -q "that stays"
		grep -qF "BinaryName = \"/opt/mine\"" config.toml
		if grep enable_cdi config.toml; then exit 1; fi
		# Said in a way that has no lines of its own to take out.
		printf "version = 2\n" >config.toml
		setup containerd --engine-config=config.toml >/dev/null
		printf "version = 2\n$cri.containerd.runtimes = { kata = {}, nvidia = { runtime_type = \"io.containerd.runc.v2\", options = { BinaryName = \"/run/bin/ctr-gpu-runtime\" } } }\n" >config.toml
		cp config.toml before
		refused setup containerd --engine-config=config.toml --remove
		grep -q "inline tables" message
		cmp before config.toml'
}

@test "containerd: the marked lines are taken out, or the tables if the marks are gone" {
	in_machine '
		printf "version = 2\n" >config.toml
		setup containerd --engine-config=config.toml >/dev/null
		cp config.toml kept
		setup containerd --engine-config=config.toml --remove >/dev/null
		[[ $(cat config.toml) == "version = 2" ]]
		# What had been replaced comes back all the same, whatever others have added.
		printf "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  enable_cdi = false # off\n  [plugins.\"io.containerd.grpc.v1.cri\".containerd]\n  default_runtime_name = \"runc\"" >before
		cp before config.toml
		setup containerd --engine-config=config.toml --replace --set-as-default >/dev/null
		printf "\n[timeouts]" | tee -a config.toml >>before
		setup containerd --engine-config=config.toml --remove >/dev/null
		cmp before config.toml
		grep -v "^#" kept >config.toml
		setup containerd --engine-config=config.toml --remove >/dev/null
		if grep -q nvidia config.toml; then exit 1; fi
		python3 -c "import tomllib; tomllib.load(open(\"config.toml\", \"rb\"))"'
}

@test "containerd: one that runs is asked to restart, dockerd'\''s own and k3s'\'' are not meant" {
	in_machine '
		fake containerd --config /var/run/docker/containerd/containerd.toml
		setup containerd --dry-run 2>&1 | grep -q "no containerd is running"
		fake containerd
		mkdir -p /run/systemd/system
		setup containerd --dry-run 2>&1 | grep -qF "next: systemctl restart containerd"
		# Also when the file that it had read is gone.
		setup containerd >/dev/null
		setup containerd --remove --dry-run 2>&1 | grep -qF "next: systemctl restart containerd"
		setup containerd --remove >out
		grep -F "next: systemctl restart containerd" out
		setup containerd --remove >out
		if grep next out; then exit 1; fi
		ends
		fake containerd -c /var/lib/rancher/k3s/agent/etc/containerd/config.toml
		refused setup containerd
		grep -q "k3s" message'
}

@test "kubernetes: the engine and the file of each distribution, and back" {
	in_machine '
		mount -t tmpfs tmpfs /var/lib
		refused setup kubernetes
		grep -q "no node of Kubernetes" message
		mkdir -p /var/lib/kubelet/device-plugins
		setup kubernetes >out
		grep -q ctr-gpu-device-plugin out
		grep -q BinaryName /etc/containerd/config.toml
		setup kubernetes --remove >/dev/null
		if grep -qs nvidia /etc/containerd/config.toml; then exit 1; fi
		fake crio
		setup kubernetes --dry-run | grep -q "/etc/crio/crio.conf.d/99-ctr-gpu.conf"
		ends
		# Its containerd is told of another file, which imports this one.
		mkdir -p /var/lib/k0s /etc/k0s
		printf "version = 2\n" >/etc/k0s/containerd.toml
		fake containerd --config /etc/k0s/containerd.toml
		setup kubernetes --dry-run >/dev/null
		[[ ! -e /etc/k0s/containerd.d ]]
		setup kubernetes >out
		grep -q BinaryName /etc/k0s/containerd.d/ctr-gpu.toml
		grep -q "next: sudo k0s stop" out
		if grep "does not read" out; then exit 1; fi
		setup kubernetes --remove >/dev/null
		[[ ! -e /etc/k0s/containerd.d/ctr-gpu.toml ]]
		setup kubernetes >/dev/null
		ends
		setup all --remove >/dev/null
		[[ ! -e /etc/k0s/containerd.d/ctr-gpu.toml ]]
		cd /run
		# The checkout may be below /var, so it is not covered.
		mkdir /run/upper-var /run/work-var
		mount -t overlay -o lowerdir=/var,upperdir=/run/upper-var,workdir=/run/work-var overlay /var
		mount -t tmpfs tmpfs /var/lib
		mkdir -p /var/snap/microk8s/current/args
		printf "version = 2\nimports = []\n" | tee before >/var/snap/microk8s/current/args/containerd-template.toml
		setup kubernetes | grep -q "next: sudo snap restart"
		grep -q BinaryName /var/snap/microk8s/current/args/containerd-template.toml
		setup kubernetes --remove >/dev/null
		cmp before /var/snap/microk8s/current/args/containerd-template.toml
		rm -r /var/snap/microk8s
		mkdir -p /var/lib/rancher/rke2/agent
		refused setup kubernetes
		grep -q "RKE2 .*anew" message
		refused setup kubernetes --rootless
		refused setup kubernetes --engine-config=/etc/containerd/config.toml'
}

@test "containerd: the CRI plugin starts with what was written" {
	require_program containerd
	in_machine '
		setup containerd >/dev/null
		printf "root = \"%s/root\"\nstate = \"/run/state\"\n[grpc]\n  address = \"/run/socket\"\n[plugins.\"io.containerd.internal.v1.opt\"]\n  path = \"%s/opt\"\n" \
			"$PWD" "$PWD" | cat - >main.toml
		# The keys before the first table come first.
		{ grep -E "^(root|state)" main.toml; cat /etc/containerd/config.toml; sed -n "/^.grpc/,\$p" main.toml; } >all.toml
		containerd --config "$PWD/all.toml" >log 2>&1 &
		soon ctr --address /run/socket version || { cat log; exit 1; }
		ctr --address /run/socket plugins ls | grep -E "io.containerd.grpc.v1 +cri +.* ok" || { ctr --address /run/socket plugins ls; cat log; exit 1; }
		ends'
}

# ---- CRI-O and Podman ----

@test "CRI-O: a file of its own, which another parser reads, and which is gone again" {
	in_machine '
		setup crio --set-as-default >/dev/null
		python3 -c "
import tomllib
runtime = tomllib.load(open(\"/etc/crio/crio.conf.d/99-ctr-gpu.conf\", \"rb\"))[\"crio\"][\"runtime\"]
assert runtime == {\"default_runtime\": \"nvidia\", \"runtimes\": {\"nvidia\": {\"runtime_path\": \"/run/bin/ctr-gpu-runtime\", \"runtime_type\": \"oci\"}}}, runtime"
		setup crio --set-as-default | grep -q "everything is there"
		setup crio --remove >/dev/null
		[[ -z $(find /etc/crio -type f) ]]
		mkdir -p /etc/crio/crio.conf.d
		printf "[crio.runtime.runtimes.nvidia]\nruntime_path = \"/usr/bin/nvidia-container-runtime\"\n" >/etc/crio/crio.conf
		refused setup crio
		grep -q -- "--replace" message
		setup crio --replace >/dev/null
		setup crio --remove >/dev/null
		mv /etc/crio/crio.conf /etc/crio/crio.conf.d/99-nvidia.toml
		refused setup crio --replace
		grep -q "99-nvidia.toml.*CRI-O reads it last" message
		[[ $(ls /etc/crio/crio.conf.d) == 99-nvidia.toml ]]'
}

@test "CRI-O: the settings of the runtime that is used now are ours, too, whichever file has them" {
	copies() {
		setup crio "${@:2}" >/dev/null
		python3 - "$1" <<-"EOF"
			import json, sys, tomllib
			runtime = tomllib.load(open("/etc/crio/crio.conf.d/99-ctr-gpu.conf", "rb"))["crio"]["runtime"]["runtimes"]["nvidia"]
			assert runtime.pop("runtime_path") == "/run/bin/ctr-gpu-runtime" and runtime.pop("runtime_type") == "oci", runtime
			assert runtime == json.loads(sys.argv[1]), runtime
		EOF
		setup crio "${@:2}" | grep -q "everything is there"
		setup crio --remove >/dev/null
		[[ ! -e /etc/crio/crio.conf.d/99-ctr-gpu.conf ]]
	}
	export -f copies
	in_machine '
		mkdir -p /etc/crio/crio.conf.d
		runtime() { printf "[crio.runtime.runtimes.%s]\nruntime_path = \"/usr/libexec/crio/%s\"\nruntime_type = \"%s\"\n%s\n" "$1" "$1" "$2" "$3"; }
		copies "{}"
		runtime runc oci "monitor_path = \"/usr/libexec/crio/conmon\"" >/etc/crio/crio.conf
		copies "{\"monitor_path\": \"/usr/libexec/crio/conmon\"}"
		runtime crun "" "monitor_path = \"/m\"
allowed_annotations = [
	\"io.containers.trace-syscall\", # each on its line
	\"io.kubernetes.cri-o.Devices\",
]" >/etc/crio/crio.conf.d/10-crun.conf
		printf "[crio.runtime]\ndefault_runtime = \"crun\"\n" >/etc/crio/crio.conf.d/10-default.conf
		copies "{\"monitor_path\": \"/m\", \"allowed_annotations\": [\"io.containers.trace-syscall\", \"io.kubernetes.cri-o.Devices\"]}" --set-as-default
		# A later file wins; one for virtual machines is no model.
		runtime kata vm "privileged_without_host_devices = true" >/etc/crio/crio.conf.d/50-kata.conf
		printf "[crio.runtime]\ndefault_runtime = \"kata\"\n" >>/etc/crio/crio.conf.d/50-kata.conf
		copies "{\"monitor_path\": \"/usr/libexec/crio/conmon\"}"
		# Nor is one that starts the program of the default.
		runtime runc oci "inherit_default_runtime = true" >/etc/crio/crio.conf
		copies "{\"monitor_path\": \"/m\", \"allowed_annotations\": [\"io.containers.trace-syscall\", \"io.kubernetes.cri-o.Devices\"]}"'
}

@test "Podman: the runtime is in a file of its own, and Podman knows it by its name" {
	require_program podman
	in_machine '
		mount -t tmpfs tmpfs /var/lib/containers 2>/dev/null || { mkdir /var/lib/containers; }
		known() { unset CONTAINERS_CONF; podman --runtime nvidia info --format "{{.Host.OCIRuntime.Name}} {{.Host.OCIRuntime.Path}}"; }
		cp "$(command -v runc)" /run/bin/ctr-gpu-runtime
		if known 2>/dev/null; then exit 1; fi
		setup podman
		[[ $(known) == "nvidia /run/bin/ctr-gpu-runtime" ]]
		[[ $(podman info --format "{{.Host.OCIRuntime.Name}}") != nvidia ]]
		setup podman --set-as-default
		[[ $(podman info --format "{{.Host.OCIRuntime.Name}}") == nvidia ]]
		setup podman --set-as-default | grep -q "everything is there"
		setup podman --remove
		if known 2>/dev/null; then exit 1; fi
		[[ -z $(find /etc/containers -type f) && ! -e /var/lib/ctr-gpu ]]'
}

@test "Podman: a user'\''s is the user'\''s" {
	in_machine '
		user() { setpriv --reuid 54321 --regid 54321 --clear-groups env -u XDG_CONFIG_HOME -u XDG_STATE_HOME HOME=/run/home "$@"; }
		mkdir /run/home
		chown 54321 /run/home
		chmod 755 /run
		user ctr-gpu setup podman --runtime=/run/bin/ctr-gpu-runtime
		grep -q "nvidia = " /run/home/.config/containers/containers.conf.d/99-ctr-gpu.conf
		mkdir -p /etc/containers
		printf "[engine.runtimes]\nnvidia = [\"/usr/bin/nvidia-container-runtime\"]\n" >/etc/containers/containers.conf
		user ctr-gpu setup podman --remove
		[[ -z $(find /run/home -name "*.conf") ]]
		refused user ctr-gpu setup podman --runtime=/run/bin/ctr-gpu-runtime
		grep -q -- --replace message
		user ctr-gpu setup podman --runtime=/run/bin/ctr-gpu-runtime --replace
		user ctr-gpu setup podman --remove
		user mkdir -p /run/home/.config/containers/containers.conf.d
		mv /etc/containers/containers.conf /run/home/.config/containers/containers.conf.d/99-nvidia.conf
		refused user ctr-gpu setup podman --runtime=/run/bin/ctr-gpu-runtime --replace
		grep -q "99-nvidia.conf.*Podman reads it last" message
		# What the environment of root names may be another user'\''s.
		HOME=/run/home CONTAINERS_CONF=/run/home/.config/containers/containers.conf.d/99-nvidia.conf setup podman | grep "runtimes/nvidia written"'
}

# As it is with the Podman of each version: what would be written there would not count.
@test "Podman: another runtime that Podman reads later is not written over" {
	in_machine '
		unset CONTAINERS_CONF XDG_CONFIG_HOME
		export HOME=/run/home
		version() { mkdir -p /var/lib/dpkg; printf "Package: podman\nStatus: install ok installed\nVersion: $1\n" >/var/lib/dpkg/status; }
		other() { mkdir -p "${1%/*}"; printf "[engine.runtimes]\nnvidia = [\"/usr/bin/nvidia-container-runtime\"]\n" >"$1"; }
		later() { other "$1"; refused setup podman --replace; grep -q "$1 .*Podman reads it last" message; rm "$1"; }
		earlier() { other "$1"; refused setup podman; grep -q -- --replace message; setup podman --replace >/dev/null; setup podman --remove >/dev/null; rm "$1"; }
		not_read() { other "$1"; setup podman >/dev/null; setup podman --remove >/dev/null; rm "$1"; }
		etc=/etc/containers user=/run/home/.config/containers
		for version in 4.3.1 5.8.6 6.1.1; do
			version "$version"
			earlier $etc/containers.conf
			earlier $etc/containers.conf.d/50.conf
			later $etc/containers.conf.d/99-nvidia.conf
		done
		earlier $etc/containers.rootful.conf.d/50.conf
		later $etc/containers.rootful.conf.d/99-nvidia.conf
		earlier $user/containers.conf
		earlier $user/containers.conf.d/50.conf
		later $user/containers.conf.d/99-nvidia.conf
		version 5.8.6
		later $user/containers.conf
		later $user/containers.conf.d/50.conf
		not_read $etc/containers.rootful.conf.d/99-nvidia.conf
		version 4.3.1
		not_read $user/containers.conf'
}

# What a debugger of the user's can make of the command: a process that keeps its output, and one that writes without an end.
@test "a user does not keep root from removing the package" {
	run timeout 60 bash -c "$(declare -f machine in_machine); $(declare -p BATS_TEST_TMPDIR CTR_GPU_BUILD); "'in_machine "$@"' - '
		mkdir -p /run/prefix/bin /run/prefix/share/ctr-gpu
		cp "$1" /run/prefix/share/ctr-gpu
		for user in mallory:54321 oscar:54322 eve:54323; do
			mkdir -p "/run/${user%:*}/.local/state/ctr-gpu"
			touch "/run/${user%:*}/.local/state/ctr-gpu/setup.json"
			echo "${user%:*}:x:${user#*:}:54321::/run/${user%:*}:/bin/sh" >>/etc/passwd
		done
		chmod -R a+rX /run/prefix /run/mallory /run/oscar /run/eve
		printf "%s\n" "#!/bin/sh" "case \$(id -u) in" "54321) setsid sleep 1000 & ;;" "54322) setsid yes | tr -d \\\\n ;;" "54323) ls -l /proc/\$\$/fd | grep -c secret ;;" esac >/run/prefix/bin/ctr-gpu
		chmod +x /run/prefix/bin/ctr-gpu
		echo secret >/run/secret
		chmod 600 /run/secret
		exec 7</run/secret 9</run/secret 15</run/secret
		/run/prefix/share/ctr-gpu/unregister | cut -c -80' "$e2e/../../pkg/unregister"
	expect_status 0
	expect "mallory has set up an engine"
	expect "oscar: yyyy"
	expect_line "eve: 0"
	expect "oscar has set up an engine"
}
