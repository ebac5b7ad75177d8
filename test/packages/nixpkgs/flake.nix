# SPDX-License-Identifier: Apache-2.0
#
# Stands for nixpkgs, of which our flake takes names: packages are those of the Debian that this runs on, in /usr, and mkDerivation does the
# phases that the package has something to say of (builder).
{
  outputs =
    { self }:
    let
      lib = import ./lib.nix;
      packagesOf =
        system:
        let
          debian = {
            type = "derivation";
            outPath = "/usr";
          };
          pkgs =
            lib.genAttrs [
              "cmocka"
              "crun"
              "jansson"
              "libbpf"
              "libtirpc"
              "libyaml"
              "linuxHeaders"
              "nghttp2"
              "pkg-config"
              "protobufc"
              "rpcsvc-proto"
              "runc"
            ] (_: debian)
            // {
              # Named by a rule of udev's alone.
              systemd = debian // {
                outPath = "/systemd";
              };
              inherit lib stdenv;
              callPackage = f: _: f (builtins.intersectAttrs (builtins.functionArgs f) pkgs);
              llvmPackages.clang-unwrapped = debian;
            };
          stdenv = {
            hostPlatform = { inherit system; };
            mkDerivation =
              package:
              derivation (
                removeAttrs package [
                  "meta"
                  "env"
                  "nativeBuildInputs"
                  "buildInputs"
                ]
                // package.env
                // {
                  inherit system;
                  name = "${package.pname}-${package.version}";
                  builder = "/usr/bin/bash";
                  args = [ "-eu" ./builder ];
                  PATH = "/usr/bin";
                }
              )
              // {
                inherit (package) meta;
              };
          };
        in
        pkgs;
    in
    {
      inherit lib;
      legacyPackages = lib.genAttrs [
        "x86_64-linux"
        "aarch64-linux"
      ] packagesOf;
    };
}
