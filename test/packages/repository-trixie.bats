#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# An apt repository of the packages on a web server, and a machine of a release that uses it as docs/packages.md says: apt brings the
# packages with what they depend on, then newer ones, and nothing that the key has not signed. One machine lives through it all, in
# test/packages/repository; the cases here read what it wrote down. NAME-SUITE.bats is for that release; all but one of them are links.

load ../e2e/engines
load packages

suite=${BATS_TEST_FILENAME##*-}
suite=${suite%.bats}

setup_file() {
	local tree

	require_root
	require_program apt-ftparchive
	require_program gpg
	tree=$("$e2e/../engines/tree" "$suite" busybox ca-certificates curl)
	# The agent's socket is there, and its path is short.
	GNUPGHOME=$(mktemp -d /tmp/ctr-gpu-key-XXXXXX)
	export GNUPGHOME
	make_repositories
	"$e2e/../docs" tried repository | cut -d $'\037' -f 3- | tr $'\036' '\n' >"$BATS_FILE_TMPDIR/lines"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR"
	PATH=/usr/sbin:/usr/bin:/sbin:/bin "$e2e/../engines/enter" wsl-nvidia "$tree" -- "$e2e/../packages/repository" "$BATS_FILE_TMPDIR" "$suite" \
		>"$BATS_FILE_TMPDIR/log" 2>&1 3>&- || { tail -n 40 "$BATS_FILE_TMPDIR/log"; return 1; }
}

teardown_file() {
	[[ ${GNUPGHOME-} == /tmp/ctr-gpu-key-* ]] || return 0
	gpgconf --kill gpg-agent
	rm -rf "$GNUPGHOME"
}

# new_key NAME: its fingerprint
new_key() {
	gpg --batch --quiet --passphrase '' --quick-generate-key "$1 <jane@debian.org>" ed25519 sign never 2>/dev/null
	gpg --batch --with-colons --list-secret-keys "$1" | sed -n '/^fpr/{s/^fpr:*//; s/:$//p; q}'
}

# publish KEY FOLDER DEBS: what is in the folder DEBS, with the list that make deb writes of it
publish() {
	local deb

	mkdir -p "$3/deb"
	mv "$3"/*.deb "$3/deb/"
	{
		echo "Checksums-Sha256:"
		for deb in "$3"/deb/*.deb; do
			echo " $(sha256sum <"$deb" | cut -d ' ' -f 1) $(stat -c %s "$deb") ${deb##*/}"
		done
	} >"$3/deb/packages.changes"
	KEY=$1 SUITE=$suite "$e2e/../../pkg/make-repository" "$3" "$2"
}

# Folders: first, then second with newer packages, and what somebody between the server and the machine makes of a third.
make_repositories() {
	local key name directory=$BATS_FILE_TMPDIR deb

	key=$(new_key Jane)
	mkdir "$directory"/{1,2,3,4}
	for name in ctr-gpu ctr-gpu-nvidia-compat; do
		cp "$debs/$name"_[0-9]*.deb "$directory/1/"
		for deb in "$debs/$name"_[0-9]*.deb; do
			# apt-ftparchive wants the architecture in the name.
			raise "$deb" "$directory/2/${name}_2_${deb##*_}" next
			raise "$deb" "$directory/3/${name}_3_${deb##*_}" next2
			cp "$directory/3/${name}_3_${deb##*_}" "$directory/4/"
		done
	done
	publish "$key" "$directory/first" "$directory/1"
	cp -a "$directory/first" "$directory/second"
	publish "$key" "$directory/second" "$directory/2"
	cp -a "$directory/second" "$directory/package"
	publish "$key" "$directory/package" "$directory/3"
	cp -a "$directory/package" "$directory/index"
	cp -a "$directory/second" "$directory/other-key"
	cp -a "$directory/package" "$directory/unsigned"
	# A byte of a package, and the length is as it was; a word of the index; another's signature; none.
	printf X | dd of="$(echo "$directory/package/pool/$suite"/ctr-gpu_3_*.deb)" bs=1 seek=5000 conv=notrunc status=none
	sed -i '0,/^Size: /s//Size: 1/' "$directory"/index/dists/"$suite"/main/binary-*/Packages
	rm "$directory"/index/dists/"$suite"/main/binary-*/Packages.xz
	publish "$(new_key John)" "$directory/other-key" "$directory/4"
	rm "$directory/unsigned/dists/$suite"/{InRelease,Release.gpg}
}

# section NAME: what the machine wrote down of it
section() {
	sed -n "/^=== $1\$/,/^=== /{/^=== /!p}" "$BATS_FILE_TMPDIR/log"
}

@test "$suite: the lines of the page, and apt installs the packages with what they depend on" {
	run section lines
	expect_line "exit status 0"
	run section install
	[[ $(grep -c "^exit status 0" <<<"$output") -eq 2 ]]
	expect_not "W:"
	expect "Setting up libjansson4"
	expect_line "GPU 0   NVIDIA GeForce RTX 4090"
	[[ $(grep -cE "^ctr-gpu(-nvidia-compat)? .* installed" <<<"$output") -eq 2 && $output != *"+next installed"* ]]
}

@test "$suite: newer packages come by apt upgrade, and older ones are had by their version" {
	run section upgrade
	[[ $(grep -c "^exit status 0" <<<"$output") -eq 2 ]]
	[[ $(grep -cE "^ctr-gpu(-nvidia-compat)? .*\+next installed" <<<"$output") -eq 2 ]]
	run section back
	expect_line "exit status 0"
	[[ $(grep -cE "^ctr-gpu(-nvidia-compat)? .* installed" <<<"$output") -eq 2 && $output != *"+next installed"* ]]
}

@test "$suite: a package that was changed on its way is refused, and those that are installed stay" {
	run section package
	expect "Hash Sum mismatch"
	expect_line "exit status 100"
	[[ $(grep -cE "^ctr-gpu(-nvidia-compat)? .*\+next installed" <<<"$output") -eq 2 ]]
}

@test "$suite: an index that was changed, another's signature and none are refused" {
	local name

	for name in index other-key unsigned; do
		run section "$name"
		expect_line "exit status 100"
		expect_not "+next2"
	done
	run section unsigned
	expect "is no longer signed"
	run section other-key
	expect "The repository is not updated and the previous index files will be used."
}
