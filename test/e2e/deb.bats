#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=long
# shellcheck disable=SC2016,SC2154
#
# The Debian packages: what is in them, and what they do when dpkg installs them on a simulated host whose /usr, /etc and
# /var are thrown away afterwards. The machine's own packages are what dependencies are checked against.

load engines

programs=(dpkg-buildpackage dh)

setup_file() {
	local program own=()

	require_root
	for program in "${programs[@]}"; do
		require_program "$program"
	done
	checkout=$("$e2e/../../pkg/sources" | sha256sum)
	export MAINTAINER="Jane Roe <jane@debian.org>"
	# Every night with dpkg's flags, with which test/fresh builds them for each commit; else with those of the tree's own build, for which
	# the compiler has made the same already (test/run), and packed in a hurry.
	[[ -n ${CTR_GPU_TEST_NIGHTLY-} ]] || own=(CTR_GPU_FLAGS= CC="${CC:-gcc}" DEB_CPPFLAGS_SET= DEB_CFLAGS_SET= DEB_LDFLAGS_SET=
		DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1)
	# The unit tests have run already, or will.
	env "${own[@]}" DEB_BUILD_OPTIONS="nocheck parallel=2" "$e2e/../../pkg/make-deb" "$BATS_FILE_TMPDIR" >"$BATS_FILE_TMPDIR/log" 2>&1 ||
		{ cat "$BATS_FILE_TMPDIR/log"; return 1; }
	[[ $("$e2e/../../pkg/sources" | sha256sum) == "$checkout" ]] || { echo "the checkout is not as it was"; return 1; }
}

setup() {
	debs=$BATS_FILE_TMPDIR/deb
}

# deb PACKAGE: the file
deb() {
	echo "$debs/$1"_[0-9]*.deb
}

# contents PACKAGE: the paths of its files and links, with multiarch's directory as MULTIARCH
contents() {
	dpkg-deb --fsys-tarfile "$(deb "$1")" | tar -t | sed -n "s,$(dpkg-architecture -q DEB_HOST_MULTIARCH),MULTIARCH,; s,^\./\(.*[^/]\)\$,\1,p" |
		LC_ALL=C sort
}

# pages PACKAGE: its man pages; functions: what the header declares, as pages
pages() {
	contents "$1" | sed -n 's,^usr/share/man/man[1-9]/\(.*\)\.gz$,\1,p' | sort
}

functions() {
	sed -n 's/^\t\(ctr_gpu_[a-z_]*\);/\1.3/p' "$e2e/../../src/lib/ctr-gpu.map"
}

# installing PROFILE SCRIPT [ARGUMENT…]: run SCRIPT on a simulated host, where `install PACKAGE…` installs packages
installing() {
	local profile=$1 script=$2
	shift 2

	sandbox "$profile" bash -ec '
		PATH=/usr/sbin:/usr/bin:/sbin:/bin
		debs=$1 script=$2
		shift 2
		mkdir /run/var
		mount -t tmpfs tmpfs /run/var
		mkdir /run/var/upper /run/var/work
		mount -t overlay -o lowerdir=/var,upperdir=/run/var/upper,workdir=/run/var/work overlay /var
		# What the sandbox has mounted over is no part of the machine.
		rmdir /var/lib/ctr-gpu 2>/dev/null || true
		export DEBIAN_FRONTEND=noninteractive LC_ALL=C
		# Nor are packages of ours that its user has.
		dpkg-query -W -f "\${Package}\n" "*ctr-gpu*" 2>/dev/null |
			xargs -r dpkg --no-triggers --force-depends --purge >/dev/null 2>&1 || true
		install() {
			local name
			local -a files=()

			for name in "$@"; do
				files+=("$debs/${name}"_[0-9]*.deb)
			done
			dpkg --no-triggers -i "${files[@]}"
		}
		eval "$script"
	' installing "$debs" "$script" "$@"
}

# A package of NVIDIA's name, with the file that both have.
nvidia_package() {
	local tree=$BATS_TEST_TMPDIR/nvidia

	mkdir -p "$tree/DEBIAN" "$tree/usr/bin"
	printf '#!/bin/sh\n' >"$tree/usr/bin/nvidia-container-runtime-hook"
	chmod 755 "$tree/usr/bin/nvidia-container-runtime-hook"
	cat >"$tree/DEBIAN/control" <<-END
		Package: nvidia-container-toolkit
		Version: 1.17.8-1
		Architecture: all
		Maintainer: nobody <nobody@localhost>
		Description: has a file of the same name
	END
	dpkg-deb --root-owner-group -b "$tree" "$debs/nvidia-container-toolkit_1.17.8-1_all.deb" >/dev/null
}

@test "each package has its files and no others" {
	diff <(contents libctr-gpu0 | grep -v '^usr/share/doc/') - <<-END
		usr/lib/MULTIARCH/libctr-gpu.so.0
		usr/lib/MULTIARCH/libctr-gpu.so.$(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$e2e/../../NEWS")
	END
	diff <(contents libctr-gpu-dev | grep -v '^usr/share/\(doc\|man\)/') - <<-END
		usr/include/ctr-gpu-error.h
		usr/include/ctr-gpu.h
		usr/lib/MULTIARCH/libctr-gpu.a
		usr/lib/MULTIARCH/libctr-gpu.so
		usr/lib/MULTIARCH/pkgconfig/ctr-gpu.pc
	END
	diff <(contents ctr-gpu | grep -v '^usr/share/\(doc\|man\)/') - <<-END
		etc/apparmor.d/abstractions/ctr-gpu
		usr/bin/ctr-gpu
		usr/bin/ctr-gpu-hook
		usr/bin/ctr-gpu-runtime
		usr/lib/systemd/system/ctr-gpu-refresh.path
		usr/lib/systemd/system/ctr-gpu-refresh.service
		usr/lib/udev/rules.d/61-ctr-gpu.rules
		usr/libexec/ctr-gpu/ctr-gpu-driverd
		usr/libexec/ctr-gpu/nvidia-names/nvidia-container-runtime
		usr/share/bash-completion/completions/ctr-gpu
		usr/share/bash-completion/completions/ctr-gpu-hook
		usr/share/containers/oci/hooks.d/ctr-gpu.json
		usr/share/ctr-gpu/openrc/ctr-gpu-refresh
		usr/share/ctr-gpu/selinux
		usr/share/ctr-gpu/unregister
		usr/share/fish/vendor_completions.d/ctr-gpu-hook.fish
		usr/share/fish/vendor_completions.d/ctr-gpu.fish
		usr/share/lintian/overrides/ctr-gpu
		usr/share/selinux/packages/ctr-gpu.cil
		usr/share/zsh/vendor-completions/_ctr-gpu
	END
	diff <(contents ctr-gpu-vcuda | grep -v '^usr/share/doc/') - <<-END
		usr/lib/ctr-gpu/vcuda/libcuda.so.1
		usr/lib/ctr-gpu/vcuda/libnvidia-ml.so.1
		usr/lib/systemd/system/ctr-gpu-vcuda-resume.service
		usr/lib/systemd/system/ctr-gpu-vcuda-suspend.service
		usr/lib/systemd/system/ctr-gpu-vcudad.service
		usr/lib/systemd/system/ctr-gpu-vcudad.socket
		usr/lib/systemd/system/sleep.target.wants/ctr-gpu-vcuda-resume.service
		usr/lib/systemd/system/sleep.target.wants/ctr-gpu-vcuda-suspend.service
		usr/libexec/ctr-gpu/ctr-gpu-vcuda
		usr/libexec/ctr-gpu/ctr-gpu-vcuda-checkpoint
		usr/libexec/ctr-gpu/ctr-gpu-vcuda-turns
		usr/libexec/ctr-gpu/ctr-gpu-vcudad
		usr/share/ctr-gpu/openrc/ctr-gpu-vcudad
		usr/share/ctr-gpu/openrc/ctr-gpu-vcudad.logrotate
		usr/share/lintian/overrides/ctr-gpu-vcuda
		usr/share/man/man8/ctr-gpu-vcuda.8.gz
		usr/share/man/man8/ctr-gpu-vcudad.8.gz
	END
	diff <(contents ctr-gpu-guard | grep -v '^usr/share/doc/') - <<-END
		usr/libexec/ctr-gpu/ctr-gpu-guard
		usr/share/man/man8/ctr-gpu-guard.8.gz
	END
	diff <(contents ctr-gpu-kubernetes | grep -v '^usr/share/doc/') - <<-END
		usr/lib/systemd/system/ctr-gpu-device-plugin.service
		usr/libexec/ctr-gpu/ctr-gpu-device-plugin
		usr/share/lintian/overrides/ctr-gpu-kubernetes
		usr/share/man/man8/ctr-gpu-device-plugin.8.gz
	END
	diff <(contents ctr-gpu-slurm | grep -v '^usr/share/doc/.*/\(changelog\|copyright\)') - <<-END
		usr/lib/MULTIARCH/slurm-wlm/spank_ctr_gpu.so
		$(cd "$e2e/../../examples/slurm" && printf 'usr/share/doc/ctr-gpu-slurm/examples/%s\n' *)
	END
	dpkg-deb --field "$(deb ctr-gpu-slurm)" Depends | grep -qE 'slurmd \(>= [0-9]+\.[0-9]+\), slurmd \(<< [0-9]+\.[0-9]+\.999\)'
	# Each page is with its program.
	diff <(for package in ctr-gpu ctr-gpu-guard ctr-gpu-kubernetes ctr-gpu-vcuda; do pages "$package"; done | sort) \
		<(cd "$e2e/../../man" && printf '%s\n' ctr-gpu*.[!3] | sort)
	diff <(pages libctr-gpu-dev) <({ functions && cd "$e2e/../../man" && printf '%s\n' *.3; } | sort -u)
	diff <(contents ctr-gpu-nvidia-compat | grep -v '^usr/share/doc/') - <<-END
		usr/bin/nvidia-cdi-hook
		usr/bin/nvidia-container-cli
		usr/bin/nvidia-container-runtime
		usr/bin/nvidia-container-runtime-hook
		usr/share/man/man1/nvidia-container-cli.1.gz
		usr/share/man/man8/nvidia-cdi-hook.8.gz
		usr/share/man/man8/nvidia-container-runtime-hook.8.gz
		usr/share/man/man8/nvidia-container-runtime.8.gz
	END
}

@test "what was stripped is in packages with debugging symbols" {
	local name id

	for name in libctr-gpu0 ctr-gpu; do
		dpkg-deb -x "$(deb "$name")" "$BATS_TEST_TMPDIR/tree"
		dpkg-deb -x "$(deb "$name-dbgsym")" "$BATS_TEST_TMPDIR/debug"
	done
	for name in bin/ctr-gpu bin/ctr-gpu-hook libexec/ctr-gpu/ctr-gpu-driverd "lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)/libctr-gpu.so.0"; do
		run readelf -SW "$BATS_TEST_TMPDIR/tree/usr/$name"
		expect ".text"
		expect_not ".symtab"
		expect_not ".debug_info"
		id=$(readelf -n "$BATS_TEST_TMPDIR/tree/usr/$name" | sed -n 's/.*Build ID: //p')
		readelf -SW "$BATS_TEST_TMPDIR/debug/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" | grep -q '\.debug_info'
	done
}

@test "scripts of packages are of units, and of no engine's" {
	local name

	for name in libctr-gpu0 libctr-gpu-dev ctr-gpu-nvidia-compat; do
		run bash -c 'dpkg-deb --ctrl-tarfile "$1" | tar -t' - "$(deb "$name")"
		expect_status 0
		expect "./control"
		expect_not "inst"
		expect_not "rm"
		expect_not "config"
	done
	dpkg-deb -e "$(deb ctr-gpu)" "$BATS_TEST_TMPDIR/control"
	run cat "$BATS_TEST_TMPDIR"/control/{postinst,prerm,postrm}
	expect "deb-systemd-helper enable 'ctr-gpu-refresh.service'"
	for name in docker podman containerd crio; do
		expect_not "$name"
	done
	# A manager that runs is the new one after an update, and does not run any more when the package is gone.
	dpkg-deb -e "$(deb ctr-gpu-vcuda)" "$BATS_TEST_TMPDIR/vcuda"
	run cat "$BATS_TEST_TMPDIR"/vcuda/{postinst,prerm}
	expect "_dh_action=restart"
	expect "deb-systemd-invoke \$_dh_action 'ctr-gpu-vcudad.service' 'ctr-gpu-vcudad.socket'"
	expect "deb-systemd-invoke stop 'ctr-gpu-vcudad.service' 'ctr-gpu-vcudad.socket'"
	# Programs of the guard that are loaded are replaced; where there are none, or that fails, the update goes on.
	dpkg-deb -e "$(deb ctr-gpu-guard)" "$BATS_TEST_TMPDIR/guard"
	run sandbox plain unshare --mount --propagation private -- bash -ec '
		mkdir -p /usr/libexec/ctr-gpu; mount -t tmpfs tmpfs /usr/libexec/ctr-gpu
		printf "#!/bin/sh\necho guard: \$*\nexit 1\n" >/usr/libexec/ctr-gpu/ctr-gpu-guard; chmod 755 /usr/libexec/ctr-gpu/ctr-gpu-guard
		mount -t tmpfs tmpfs /sys/fs/bpf; "$1" configure 0.1.0; mkdir /sys/fs/bpf/ctr-gpu; "$1" configure 0.1.0; "$1" abort-upgrade 0.1.0' - "$BATS_TEST_TMPDIR/guard/postinst"
	expect_status 0
	[[ $output == "guard: load" ]]
	# Each of them runs where there is neither systemd nor what it comes with.
	for name in "postinst configure" "prerm remove" "postrm remove" "postrm purge"; do
		run sandbox plain unshare --mount --propagation private -- bash -c '
			for program in /usr/bin/deb-systemd-*; do mount --bind /dev/null "$program"; done; "$@"' - "$BATS_TEST_TMPDIR"/control/$name
		expect_status 0
	done
}

@test "the version is that of NEWS, and sorts before its release" {
	local version number

	number=$(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$e2e/../../NEWS")
	version=$(dpkg-deb -f "$(deb ctr-gpu)" Version)
	[[ $version == "$number"* ]]
	if grep -q 'not yet released' <(head -n 1 "$e2e/../../NEWS"); then
		dpkg --compare-versions "$version" lt "$number"
		dpkg --compare-versions "$version" gt "$number~"
	else
		[[ $version == "$number" ]]
	fi
}

@test "lintian has nothing against them" {
	require_program lintian
	# Debian 12's does not know the field Static-Built-Using; sid's has no tag library-not-linked-against-libc any more.
	run lintian --allow-root --suppress-tags unknown-field,alien-tag --fail-on error,warning --tag-display-limit 0 "$debs"/*.changes
	expect_status 0
}

@test "installed: the command, and ctr-gpu-driverd where the library looks for it" {
	run installing wsl-nvidia '
		install ctr-gpu >/dev/null
		dpkg-query -W -f "\${Package}=\${Status}\n" ctr-gpu
		command -v ctr-gpu
		ctr-gpu --inventory=dxcore info'
	expect_status 0
	expect_line "ctr-gpu=install ok installed"
	expect_line "/usr/bin/ctr-gpu"
	expect "NVIDIA GeForce RTX 4090"
}

@test "installed: Podman finds the hook, and a container gets its GPU" {
	local directory

	require_program podman
	require_program crun
	directory=$(engine_directory podman)
	podman_configure "$directory"
	sed -i '/^hooks_dir/d' "$directory/containers.conf"
	tar -C "$(image debian)" -c . | podman_in - import --quiet - debian >/dev/null
	run installing wsl-nvidia '
		export CONTAINERS_CONF=$1/containers.conf CONTAINERS_STORAGE_CONF=$1/storage.conf
		probe() {
			"$2/memlock" podman run --cgroup-parent "$CTR_GPU_TEST_CGROUP" --runtime crun --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
		}
		echo "before: $(probe "$@" | grep /dev/dxg)"
		install ctr-gpu >/dev/null
		probe "$@"' "$directory" "$tools_directory"
	expect_status 0
	expect_line "before: /dev/dxg=ENOENT"
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
	expect_line "device=NVIDIA GeForce RTX 4090"
}

@test "installed: Docker finds the hook under NVIDIA's name" {
	run installing plain '
		install ctr-gpu ctr-gpu-nvidia-compat >/dev/null
		readlink -f "$(command -v nvidia-container-runtime-hook)"
		nvidia-container-runtime-hook --version'
	expect_status 0
	expect_line "/usr/bin/ctr-gpu-hook"
	expect "ctr-gpu-hook "
}

@test "installed: a program is built with the development files" {
	require_program pkg-config
	run installing plain '
		install libctr-gpu0 libctr-gpu-dev >/dev/null
		cd /run
		printf "%s\n" "#include <ctr-gpu.h>" "#include <stdio.h>" "int main(void) { puts(ctr_gpu_version()); }" >version.c
		gcc -o version version.c $(pkg-config --cflags --libs ctr-gpu)
		./version
		pkg-config --modversion ctr-gpu'
	expect_status 0
	[[ ${lines[0]} == "$(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$e2e/../../NEWS")" && ${lines[0]} == "${lines[1]}" ]]
}

@test "NVIDIA's package is not overwritten but taken the place of: apt asks before, dpkg says so" {
	nvidia_package
	run installing plain '
		install nvidia-container-toolkit ctr-gpu >/dev/null
		echo "apt:"
		echo n | apt-get -o Dir::State::lists=/run/no-lists install "$debs"/ctr-gpu-nvidia-compat_*.deb 2>&1 || true
		dpkg-query -S /usr/bin/nvidia-container-runtime-hook
		readlink /usr/bin/nvidia-container-runtime-hook || echo "no link"
		echo "dpkg:"
		install ctr-gpu-nvidia-compat 2>&1
		dpkg-query -S /usr/bin/nvidia-container-runtime-hook
		dpkg-query -W -f "\${Package}: \${db:Status-Status}\n" "nvidia*" 2>/dev/null'
	expect_status 0
	expect "The following packages will be REMOVED:"
	# Newer releases show the answer behind the question.
	[[ $output == *"Do you want to continue? [Y/n] "*"Abort."* ]]
	expect_line "nvidia-container-toolkit: /usr/bin/nvidia-container-runtime-hook"
	expect_line "no link"
	expect "considering removing nvidia-container-toolkit in favour of ctr-gpu-nvidia-compat"
	expect_line "ctr-gpu-nvidia-compat: /usr/bin/nvidia-container-runtime-hook"
	expect_not "nvidia-container-toolkit: installed"
}

@test "NVIDIA's package does not overwrite ours" {
	nvidia_package
	run installing plain '
		install ctr-gpu ctr-gpu-nvidia-compat >/dev/null
		install nvidia-container-toolkit 2>&1 && exit 99
		readlink /usr/bin/nvidia-container-runtime-hook'
	expect_status 0
	expect "conflicts with"
	expect_line "ctr-gpu-hook"
}

@test "removed and purged, nothing is left" {
	run installing plain '
		# Of /var what was written here: others of this machine may be at work below it.
		everything() {
			find /usr /etc /run/var/upper -xdev -not -path "*/upper/lib/dpkg*" -not -path "*/upper/log*" \
				-not -path "*/upper/lib/systemd*" | sort
		}
		touch /var/lib
		everything >/run/before
		install libctr-gpu0 libctr-gpu-dev ctr-gpu ctr-gpu-nvidia-compat >/dev/null 2>&1
		everything >/run/during
		cmp -s /run/before /run/during && exit 99
		dpkg --no-triggers --remove ctr-gpu-nvidia-compat libctr-gpu-dev ctr-gpu libctr-gpu0 >/dev/null
		everything >/run/removed
		dpkg --no-triggers --purge ctr-gpu-nvidia-compat libctr-gpu-dev ctr-gpu libctr-gpu0 >/dev/null 2>&1
		everything >/run/purged
		echo "removed:"
		# That units are active is remembered until the package is purged, and a configuration file stays.
		diff /run/before <(grep -v "/multi-user.target.wants/ctr-gpu-refresh" /run/removed | grep -vxFf <(grep ^/etc/apparmor.d /run/during | grep -vxFf /run/before))
		echo "purged:"
		diff /run/before /run/purged
		ls /var/lib/dpkg/info | grep ctr-gpu || echo "dpkg knows nothing"'
	expect_status 0
	[[ $output == $'removed:\npurged:\ndpkg knows nothing' ]]
}

# new_key: a key of gpg's that is thrown away, in $GNUPGHOME; its fingerprint is $fingerprint
new_key() {
	# The agent's socket is there, and its path is short.
	GNUPGHOME=$(mktemp -d /tmp/ctr-gpu-key-XXXXXX)
	export GNUPGHOME
	gpg --batch --quiet --passphrase '' --quick-generate-key 'Jane Roe <jane@debian.org>' ed25519 sign never 2>/dev/null
	fingerprint=$(gpg --batch --with-colons --list-secret-keys | sed -n '/^fpr/{s/^fpr:*//; s/:$//p; q}')
}

teardown() {
	[[ ${GNUPGHOME-} == /tmp/ctr-gpu-key-* ]] || return 0
	gpgconf --kill gpg-agent
	rm -rf "$GNUPGHOME"
}

# user NAME FOLDER: a machine with an apt of its own, on which the lines of docs/packages.md were typed, with FOLDER for the address
# and ctr-gpu installed as it was built. APT_CONFIG says where it is.
user() {
	local root=$BATS_TEST_TMPDIR/$1 lines

	mkdir -p "$root"/etc/apt/{apt.conf.d,keyrings,preferences.d,sources.list.d,trusted.gpg.d} "$root"/var/{lib,cache}/apt "$root/var/log/apt"
	{
		awk -v RS= -v ORS='\n\n' '!/^Package: [a-z-]*ctr-gpu/' /var/lib/dpkg/status
		dpkg-deb -f "$(deb ctr-gpu)" | sed '1a Status: install ok installed'
	} >"$root/status"
	cat >"$root/apt.conf" <<-END
		Dir "$root/";
		Dir::State::status "$root/status";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
	END
	lines=$(sed -n '/^    .*curl .*ctr-gpu\.asc/,/^$/p' "$e2e/../../docs/packages.md" |
		sed "s,https://example.org/ctr-gpu,file://$2,; s,sudo ,,; s, /etc/, $root/etc/,g; s,Suites: bookworm,Suites: here,")
	[[ $(wc -l <<<"$lines") == 2 ]]
	eval "$lines" >/dev/null
	export APT_CONFIG=$root/apt.conf
}

# repository FOLDER: made of what was built
repository() {
	KEY=$fingerprint SUITE=here "$e2e/../../pkg/make-repository" "$BATS_FILE_TMPDIR" "$1"
}

@test "a repository is made with a whole key alone, the same twice, and what fails leaves nothing" {
	local made=$BATS_TEST_TMPDIR/made refused
	local -A refusals=([UNSIGNED=]="apt believes a repository by its signature" [KEY=0123ABCD]="KEY is a whole fingerprint" [SUITE=../x]="SUITE is a name"
		[KEY=0123456789ABCDEF0123456789ABCDEF01234567]="gpg has no secret key")

	require_program apt-ftparchive
	require_program gpg
	new_key
	for refused in "${!refusals[@]}"; do
		run env KEY= UNSIGNED=1 "$refused" "$e2e/../../pkg/make-repository" "$BATS_FILE_TMPDIR" "$made"
		expect_status 1
		expect "${refusals[$refused]}"
		[[ ! -e $made ]]
	done
	# A folder of root's, for a user who has the key.
	mkdir "$made"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_TEST_TMPDIR"
	run setpriv --reuid 65534 --regid 65534 --clear-groups env UNSIGNED=1 SUITE=here "$e2e/../../pkg/make-repository" "$BATS_FILE_TMPDIR" "$made"
	expect_status 1
	expect "sudo install -d -o nobody $made"
	rmdir "$made"
	# A key that signs nothing.
	run env "PATH=$BATS_TEST_TMPDIR/bin:$PATH" bash -c 'mkdir "${PATH%%:*}"; printf "#!/bin/sh\ncase \$* in *clearsign*) exit 2 ;; esac\nexec /usr/bin/gpg \"\$@\"\n" >"${PATH%%:*}/gpg"
		chmod 755 "${PATH%%:*}/gpg"; KEY=$1 "$2" "$3" "$4"' - "$fingerprint" "$e2e/../../pkg/make-repository" "$BATS_FILE_TMPDIR" "$made"
	expect_status 1
	expect "gpg did not sign"
	[[ ! -e $made ]]
	repository "$made"
	cp -a "$made" "$made.first"
	repository "$made"
	diff -r "$made.first" "$made"
	repository "$made.again"
	diff -r "$made" "$made.again"
	# What was not built so is not taken, and a version is one file.
	mkdir -p "$BATS_TEST_TMPDIR/other/deb"
	cp "$debs"/*.changes "$(deb ctr-gpu)" "$BATS_TEST_TMPDIR/other/deb"
	echo >>"$BATS_TEST_TMPDIR/other/deb/$(basename "$(deb ctr-gpu)")"
	run env KEY="$fingerprint" SUITE=here "$e2e/../../pkg/make-repository" "$BATS_TEST_TMPDIR/other" "$made"
	expect_status 1
	expect "these are not what was built"
	echo >>"$made/pool/here/$(basename "$(deb ctr-gpu)")"
	run repository "$made"
	expect_status 1
	expect "has the same version and is another"
	# An index of others is theirs.
	sed -i 's/^Origin: .*/Origin: Debian/' "$made/dists/here/Release"
	run repository "$made"
	expect_status 1
	expect "is of another repository"
}

@test "apt takes packages from a repository that the key has signed, and nothing that was changed" {
	local made=$BATS_TEST_TMPDIR/made copy name changed

	require_program apt-ftparchive
	require_program gpg
	require_program curl
	new_key
	repository "$made"
	user whole "$made"
	run apt-get update
	expect_status 0
	expect_not "W:"
	cd "$BATS_TEST_TMPDIR"
	apt-get download ctr-gpu
	cmp "$(basename "$(deb ctr-gpu)")" "$(deb ctr-gpu)"
	apt-cache policy ctr-gpu-nvidia-compat | grep "file:$made here/main"
	run apt-get -s upgrade
	expect_not "Inst ctr-gpu"
	# Not the signature of another key.
	cp -a "$made" "$made.other"
	user other "$made.other"
	gpgconf --kill gpg-agent
	rm -rf "$GNUPGHOME"
	new_key
	repository "$made.other"
	run apt-get update
	expect_status 100
	expect "is not signed"
	# A byte, and the length is as it was.
	for name in dists/here/InRelease "dists/here/main/binary-$(dpkg --print-architecture)/Packages" "pool/here/$(basename "$(deb ctr-gpu)")"; do
		copy=$BATS_TEST_TMPDIR/changed-${name##*/}
		cp -a "$made" "$copy"
		changed=$copy/$name
		[[ $name != */Packages ]] || rm "$changed.xz"
		[[ $name != dists/* ]] && printf X | dd of="$changed" bs=1 seek=5000 conv=notrunc status=none ||
			sed -i '0,/[Cc]tr-gpu/s//xtr-gpu/' "$changed"
		user "with-${name##*/}" "$copy"
		rm -f "$(basename "$(deb ctr-gpu)")"
		run bash -c 'apt-get update && apt-get download ctr-gpu'
		expect_status 100
		[[ $name == */InRelease ]] && expect "is not signed" || expect "Hash Sum mismatch"
		[[ ! -e $(basename "$(deb ctr-gpu)") ]]
	done
}

@test "a newer package of a repository is an upgrade, and an older one stays" {
	local made=$BATS_TEST_TMPDIR/made tree=$BATS_TEST_TMPDIR/tree next=$BATS_TEST_TMPDIR/next version

	require_program apt-ftparchive
	require_program gpg
	require_program curl
	new_key
	repository "$made"
	version=$(dpkg-deb -f "$(deb ctr-gpu)" Version)
	dpkg-deb -R "$(deb ctr-gpu)" "$tree"
	sed -i 's/^Version: .*/Version: 9.9/' "$tree/DEBIAN/control"
	mkdir -p "$next/deb"
	dpkg-deb --root-owner-group -Znone -b "$tree" "$next/deb/ctr-gpu_9.9_amd64.deb" >/dev/null
	printf 'Checksums-Sha256:\n %s 1 %s\n' "$(sha256sum <"$next/deb/ctr-gpu_9.9_amd64.deb" | cut -d ' ' -f 1)" ctr-gpu_9.9_amd64.deb >"$next/deb/next.changes"
	# A machine that has the index of before, which is of the same commit.
	user next "$made"
	apt-get update
	KEY=$fingerprint SUITE=here "$e2e/../../pkg/make-repository" "$next" "$made"
	apt-get update
	run apt-get -s upgrade
	expect "Inst ctr-gpu [$version] (9.9 "
	run apt-cache madison ctr-gpu
	expect " 9.9 |"
	expect " $version |"
}
