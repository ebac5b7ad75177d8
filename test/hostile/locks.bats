#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# A user of the host who locks what he can open: all that root's commands leave or look for in directories of the system. Root's commands
# do their work all the same, and none says that it has waited.

load ../e2e/engines

setup_file() {
	require_root
}

@test "a user who holds the locks of all that he can open keeps no command of root's from its work" {
	run sandbox wsl-nvidia bash -ec '
		mkdir -p /run/upper /run/work "$0/root"/{etc,usr/lib,usr/bin,dev,proc,sys,run}
		mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc
		rm -rf /etc/docker /etc/cdi
		mkdir -p /etc/docker /etc/cdi /run/cdi
		chmod 755 "$0"
		mount -t tmpfs tmpfs /var/lib
		commands() {
			local command
			for command in "setup docker" "cdi generate --output=/etc/cdi/gpu.json" refresh "configure $1" "unconfigure $1" "configure $1" "setup docker --remove"; do
				# shellcheck disable=SC2086
				timeout 300 ctr-gpu $command >/run/said 2>&1 || { echo "$command: $(cat /run/said)"; return 1; }
				if grep -E "process [0-9]+|waited" /run/said; then return 1; fi
			done
		}
		commands "$0/root"
		mkfifo /run/held
		chmod 755 /run
		setpriv --reuid 65534 --regid 65534 --clear-groups perl -e '\''
			use Fcntl qw(:DEFAULT :flock); use File::Find; no warnings;
			my @held;
			sub hold { my $file; sysopen($file, shift, O_RDONLY | O_NONBLOCK) and flock($file, LOCK_EX | LOCK_NB) and push @held, $file }
			hold($_) for qw(/ /etc /run /run/lock /var/lib /tmp /var/tmp /sys/fs/bpf /dev);
			find({no_chdir => 1, wanted => sub { hold($File::Find::name) }}, grep { -e } qw(/run/ctr-gpu /run/cdi /var/lib/ctr-gpu /etc/ctr-gpu /etc/cdi /etc/docker), $ARGV[0]);
			print scalar(@held), "\n"; close STDOUT; sleep 600;
		'\'' "$0/root" >/run/held &
		read -r count </run/held
		echo "held: $count"
		[[ $count -gt 10 ]]
		kill -0 $!
		ctr-gpu unconfigure "$0/root"
		commands "$0/root"
		kill $!' "$BATS_TEST_TMPDIR"
	echo "$output"
	expect_status 0
}
