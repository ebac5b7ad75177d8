#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# The hostile images as an OCI layout (layout), which others run against their tools: it is valid, and Podman runs some of it.

load ../e2e/engines

layout=$BATS_FILE_TMPDIR/layout

setup_file() {
	require_root
	require_program podman
	podman_setup
	HOSTILE_OUTSIDE=$BATS_FILE_TMPDIR/outside "$BATS_TEST_DIRNAME/layout" make "$layout" plain compat-root wsl-out preload 2>&3
}

setup() {
	outside=$BATS_FILE_TMPDIR/outside
	rm -rf "$outside"
	mkdir "$outside"
	echo secret >"$outside/secret"
}

# described DESCRIPTOR: the blob is what it says; prints its path
described() {
	local path

	path=$layout/blobs/$(jq -r '.digest | sub(":"; "/")' <<<"$1")
	[[ $(stat -c %s "$path") == "$(jq .size <<<"$1")" ]] || return
	[[ sha256:$(sha256sum "$path" | cut -d ' ' -f 1) == "$(jq -r .digest <<<"$1")" ]] || return
	echo "$path"
}

@test "each blob is what its descriptor says, and each layer what the configuration says" {
	local manifest descriptor layer config count=0

	[[ $(jq -r .imageLayoutVersion "$layout/oci-layout") == 1.0.0 ]]
	[[ $(jq -c '[.manifests[].annotations["org.opencontainers.image.ref.name"]]' "$layout/index.json") == '["plain","compat-root","wsl-out","preload"]' ]]
	while read -r descriptor; do
		[[ $(jq -r .mediaType <<<"$descriptor") == application/vnd.oci.image.manifest.v1+json ]]
		manifest=$(described "$descriptor")
		config=$(described "$(jq -c .config "$manifest")")
		layer=$(described "$(jq -c '.layers[0]' "$manifest")")
		[[ sha256:$(zcat "$layer" | sha256sum | cut -d ' ' -f 1) == "$(jq -r '.rootfs.diff_ids[0]' "$config")" ]]
		# What tar took from this machine's users.
		[[ -z $(tar -tzvf "$layer" --numeric-owner | grep -v ' 0/0 ') ]]
		count=$((count + 1))
	done < <(jq -c '.manifests[]' "$layout/index.json")
	[[ $count -eq 4 ]]
	[[ $(find "$layout/blobs" -type f | wc -l) -eq 12 && -z $(find "$layout" -name '.new*') ]]
}

@test "the table in docs/hostile-images.md has every image" {
	diff <(sed -n '/^<!-- made by: test\/hostile\/layout -->$/,/^<!-- end -->$/p' "$BATS_TEST_DIRNAME/../../docs/hostile-images.md" | grep -v '^<!--') \
		<("$BATS_TEST_DIRNAME/layout" table)
}

@test "Podman runs them with a GPU, and nothing outside changes" {
	local name before

	# Podman names an image after its path, in which it takes no capital letters.
	cd "$BATS_FILE_TMPDIR"
	before=$(find "$outside" -printf '%P %y %m %U:%G %s %l\n' | sort)
	for name in plain compat-root wsl-out preload; do
		run podman_in wsl-nvidia run --rm --network none "oci:layout:$name"
		echo "$output"
		[[ $name == preload || $status -eq 0 ]]
		[[ $(find "$outside" -printf '%P %y %m %U:%G %s %l\n' | sort) == "$before" ]]
		expect_not secret
		case $name in
		plain) expect_line started ;;
		# Nothing comes from the host's root but what a GPU needs; the container's own root is an overlay.
		compat-root)
			expect " /usr/lib/wsl/lib"
			expect_not " /usr/local/cuda"
			;;
		esac
	done
}
