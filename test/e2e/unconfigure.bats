#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# A root filesystem that is given GPUs by hand, on a host whose mounts propagate, and what takes that back.

load engines

setup_file() {
	require_root
	image debian >/dev/null
}

# by_hand SCRIPT: on a host with a root filesystem in /run/root, a /dev of its own mounted in it, and another namespace, of $peer
by_hand() {
	run sandbox "${profile:-wsl-nvidia}" bash -ec '
		root=/run/root configured=/var/lib/ctr-gpu/configured
		mount -t tmpfs -o mode=755 tmpfs /var/lib
		mkdir /var/lib/ctr-gpu
		mount -t tmpfs tmpfs /var/lib/ctr-gpu
		cp -a "$1" "$root"
		mount -t tmpfs -o mode=755 tmpfs "$root/dev"
		ln -s ../nowhere "$root/etc/link"
		mounts() { cut -d " " -f 3- "/proc/$1/mountinfo"; }
		picture() {
			find "$root" -printf "%p %y %m %U:%G %s %l\n" | sort
			find "$root" -type f -exec sha256sum {} + | sort
			mounts self && mounts "$peer"
		}
		unshare --mount --propagation slave sleep 60 &
		peer=$!
		until grep -q master: "/proc/$peer/mountinfo"; do sleep 0.05; done
		picture >/run/before
		unchanged() { picture | diff /run/before -; }
		# stops CALL NUMBER COMMAND…: in the background; it stops behind that system call, until "goes_on"
		stops() {
			strace -f -qq -o /run/trace -e trace="$1" -e inject="$1:signal=STOP:when=$2" "${@:3}" &
			soon grep -q "stopped by SIGSTOP" /run/trace
		}
		goes_on() { pkill -CONT -x ctr-gpu; }
		# locked PATH: until another process has locked it
		locked() { while flock -n "$1" true; do sleep 0.05; done; }
		eval "$2"
	' by_hand "$(image debian)" "$1"
	echo "$output"
	[[ $status -eq 0 ]]
}

@test "configure and unconfigure leave root filesystem and mounts as they were, here and elsewhere" {
	by_hand 'ctr-gpu configure "$root" && chroot "$root" probe && ctr-gpu unconfigure "$root" && unchanged && ! ls "$configured"/*'
	expect_line "cuInit=0"
}

@test "what configure mounts by hand is private" {
	by_hand 'ctr-gpu configure "$root"
		! grep " $root/" /proc/self/mountinfo | grep -v " $root/dev .* shared:.* tmpfs tmpfs" | grep shared: || exit
		! grep " $root/usr" "/proc/$peer/mountinfo" && grep -c " $root/usr" /proc/self/mountinfo'
	expect_line 2 # directories; nvidia-smi is a symlink into one
}

@test "twice, and taken back at once" {
	by_hand 'ctr-gpu configure --capabilities=compute "$root" && ctr-gpu configure "$root" && chroot "$root" nvidia-smi -L &&
		ctr-gpu unconfigure "$root" && unchanged'
	expect "GPU 0: "
}

@test "one GPU and then another, so that a file of ours replaces one of ours" {
	profile=wsl-hybrid by_hand 'ctr-gpu configure --device=0 "$root" && ctr-gpu configure --device=1 "$root" && ctr-gpu unconfigure "$root" && unchanged'
}

@test "after a restart, which takes the mounts, files come back" {
	by_hand 'ctr-gpu configure "$root" && umount -l "$root" && ctr-gpu unconfigure "$root" &&
		cmp "$root/etc/ld.so.cache" "$1/etc/ld.so.cache" && [[ ! -e $root/usr/lib/wsl && ! -e $root/usr/bin/nvidia-smi ]]'
}

# File names are bytes; a record is JSON, which is UTF-8.
@test "paths that are not UTF-8, of a root and in an image" {
	by_hand 'odd=$(printf "\\351\\\\101")
		mv "$root/etc" "$root/$odd"
		ln -s "$odd" "$root/etc"
		mv "$root" "$root$odd"
		root+=$odd
		picture >/run/before
		ctr-gpu configure "$root" && chroot "$root" probe && ctr-gpu unconfigure "$root" && unchanged && ! ls "$configured"/*'
	expect_line "cuInit=0"
}

@test "the numbers of mounts are those of one boot" {
	by_hand 'ctr-gpu configure "$root"
		sed -i "s/\"boot\": \"./\"boot\": \"x/" "$configured"/*/0/deeds.json
		ctr-gpu unconfigure "$root"
		grep -c " $root/usr/lib/wsl" /proc/self/mountinfo'
	expect_line 2
}

@test "records of mounts that ended with earlier boots go, and others stay" {
	by_hand 'ctr-gpu configure "$root"
		umount -l "$root"
		ctr-gpu configure "$root"
		cd "$configured"/*
		jq -c "[.deeds[].kind] | unique" 1/deeds.json
		sed -i "s/\"boot\": \"./\"boot\": \"x/" {0,1}/deeds.json
		for i in {2..999}; do cp -a 1 "$i"; done
		umount -l "$root" && ctr-gpu configure "$root" && ls | tr "\n" " " && cd / && ctr-gpu unconfigure "$root" && unchanged'
	expect_line '["mount"]'
	expect "0 1 "
	expect_not "2 3"
}

@test "a sparse file is sparse when it is back" {
	by_hand 'truncate -s 12M "$root/etc/ld.so.cache"
		ctr-gpu configure "$root" && du -k --max-depth=0 "$configured" && ctr-gpu unconfigure "$root" && stat -c "%s in %b" "$root/etc/ld.so.cache"'
	expect "12582912 in 8"
	[[ $(grep -oE "^[0-9]+" <<<"$output" | head -1) -lt 1000 ]]
}

@test "a mount is found where it is by now, and one that stays is said and stays written down" {
	by_hand 'mount --make-rprivate /
		picture >/run/before
		ctr-gpu configure "$root"
		mv "$root/usr" "$root/usr2"
		ctr-gpu unconfigure "$root"
		! grep " $root/usr" /proc/self/mountinfo || exit
		! ls "$configured"/* || exit
		mv "$root/usr2" "$root/usr"
		ctr-gpu configure "$root"
		mount -t tmpfs tmpfs "$root/usr"
		! ctr-gpu unconfigure "$root" || exit
		ls "$configured"/*/0/deeds.json
		umount "$root/usr"
		ctr-gpu unconfigure "$root"
		! grep " $root/usr" /proc/self/mountinfo || exit
		! ls "$configured"/*'
	expect "stays, which was made for /run/root"
	expect "/0/deeds.json"
}

@test "what is too large to be kept for undoing is refused, and nothing of it is copied" {
	by_hand 'head -c 17M /dev/urandom >"$root/etc/ld.so.conf.d/00-ctr-gpu.conf"
		picture >/run/before
		! ctr-gpu configure "$root" && unchanged && ! find "$configured" "$root/etc" -newer /run/before -size +1M | grep .'
	expect "cannot make /etc/ld.so.conf.d/00-ctr-gpu.conf in the container"
	expect "more than 16 MiB"
}

@test "what was changed since is left" {
	by_hand 'ctr-gpu configure "$root"
		echo mine >"$root/etc/ld.so.cache"
		mkdir "$root/usr/lib/wsl/mine"
		ctr-gpu unconfigure "$root" && cat "$root/etc/ld.so.cache" && ls "$root/usr/lib/wsl"'
	expect_line mine
	[[ $(grep -c '^mine$' <<<"$output") -eq 2 ]]
	expect_not drivers
}

@test "an image that changes its links meanwhile leads nowhere else" {
	by_hand 'ctr-gpu configure "$root"
		mkdir /run/outside "$root/mnt"
		touch /run/outside/{dxg,nvidia-smi,ld.so.cache}
		mount --bind /run/outside "$root/mnt"
		mv "$root/usr/bin" "$root/usr/away"
		ln -s ../mnt "$root/usr/bin"
		rm -r "$root/etc"
		ln -s mnt "$root/etc"
		ctr-gpu unconfigure "$root" && find /run/outside -type f -empty -printf "%f\n"'
	expect_line dxg
	expect_line ld.so.cache
	expect_line nvidia-smi
}

# The directory is what was written down of when it is looked at, and a link when it is opened again.
@test "the owner of a directory on the way who changes it meanwhile leads nowhere else" {
	by_hand 'ctr-gpu configure "$root"
		umount -R "$root"
		mkdir -p /run/other/{usr,etc}
		cp -a "$root/usr/"{bin,lib} /run/other/usr
		find /run/other | sort >/run/listed
		stops readlinkat 1 ctr-gpu unconfigure "$root"
		mv "$root" /run/away && ln -s other "$root" && goes_on && ! wait $! && find /run/other | sort | diff /run/listed -'
	expect "[ESTALE]"
}

# The directory is renamed between the mount over it and what follows; where it is not mounted on, it can be.
@test "the owner of the directory above who renames it meanwhile leaves no shared mount there" {
	by_hand 'mkdir /run/evil
		unshare --mount --propagation private sleep 600 &
		elsewhere="nsenter --mount --target $! --"
		soon grep -qx sleep "/proc/$!/comm"
		$elsewhere umount "$root/dev"
		stops move_mount 1 ctr-gpu configure "$root"
		mounts self | grep " $root .* shared:"
		$elsewhere mv "$root" /run/away
		$elsewhere mv /run/evil "$root"
		goes_on
		wait $! || true
		$elsewhere mv "$root" /run/evil
		$elsewhere mv /run/away "$root"
		! mounts self | grep " $root .* shared:"'
}

@test "nobody else can lock a file that is about to be written" {
	by_hand 'file=$root/etc/.ctr-gpu-0
		stops flock 2 ctr-gpu configure "$root"
		! setpriv --reuid 65534 --regid 65534 --clear-groups flock -n "$file" sleep 5 && goes_on && wait $! && stat -c "%a %n" "$root/etc/ld.so.cache"'
	expect "cannot open lock file"
	expect_line "644 /run/root/etc/ld.so.cache"
}

@test "nothing was written down: it says so" {
	by_hand '! ctr-gpu unconfigure "$root" && ! ctr-gpu unconfigure /run/none'
	expect "[E_BAD_ARGUMENT] nothing is written down"
	expect "[E_BAD_ROOTFS]"
}

@test "records are written and taken back by one process at a time" {
	by_hand 'ctr-gpu configure --capabilities=compute "$root"
		records=$(echo "$configured"/*)
		mkdir "$records/new"
		touch "$records/new/of-another"
		timeout 20 flock "$records" sh -c "sleep 2; ls $records/new" &
		locked "$records"
		ctr-gpu configure "$root"
		wait $!
		ls "$records" | tr "\n" " "
		timeout 20 flock "$records" sh -c "sleep 2; ls $records/1" &
		locked "$records"
		ctr-gpu unconfigure "$root"
		wait $!
		unchanged'
	expect_line of-another
	expect "0 1 "
	expect deeds.json
}

@test "whoever does not let go of the records is named" {
	by_hand 'ctr-gpu configure "$root"
		flock --no-fork "$(echo "$configured"/*)" sleep 600 &
		locked "$(echo "$configured"/*)"
		echo "holder $!"
		naps() { strace -f -qq -o /dev/null -e trace=clock_nanosleep -e inject=clock_nanosleep:retval=0 "$@"; }
		! naps ctr-gpu unconfigure "$root" && ! naps ctr-gpu configure "$root" && kill $! && ! wait $! && ctr-gpu unconfigure "$root" && unchanged'
	holder=$(sed -n "s/^holder //p" <<<"$output")
	expect "process $holder has "
	expect "as process $holder does not let go of it"
}

@test "whoever waited for records that were removed meanwhile makes them anew" {
	by_hand 'ctr-gpu configure "$root"
		records=$(echo "$configured"/*)
		umount -R "$root"
		timeout 20 flock "$records" sh -c "sleep 2; rm -r $records" &
		locked "$records"
		ctr-gpu configure "$root"
		wait $!
		ls "$records"/0'
	expect deeds.json
}

@test "a record that is damaged is not believed" {
	by_hand 'ctr-gpu configure "$root"
		touch /run/victim
		for list in "$configured"/*/0/deeds.json; do
			jq ".deeds += [{kind: \"file\", path: \"/\", name: \"../victim\"}, {kind: \"file\", path: \"/../..\", name: \"victim\"}, {kind: \"x\"}, 7]" "$list" >/run/new
			cat /run/new >"$list"
		done
		ctr-gpu unconfigure "$root" && ls /run/victim'
}

@test "where nothing can be written down, configure warns and works" {
	by_hand 'mount -o remount,ro /var/lib/ctr-gpu; ctr-gpu configure "$root" && chroot "$root" probe'
	expect_line "cuInit=0"
	expect "warning: what was done cannot be taken back later"
}
