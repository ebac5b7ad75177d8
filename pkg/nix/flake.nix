# SPDX-License-Identifier: Apache-2.0
#
# For NixOS: a package of this tree and a module (docs/packages.md). Nixpkgs has no static jansson, libyaml and libtirpc beside the
# shared ones: the hook is an ordinary program.
{
  description = "GPUs of the host for Linux containers";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      news = builtins.head (builtins.split "\n" (builtins.readFile ../../NEWS));
      version = builtins.head (builtins.match "ctr-gpu ([0-9.]+) .*" news);

      package =
        {
          lib,
          stdenv,
          cmocka,
          jansson,
          libbpf,
          libtirpc,
          libyaml,
          linuxHeaders,
          llvmPackages,
          nghttp2,
          pkg-config,
          protobufc,
          rpcsvc-proto,
          systemd,
        }:
        stdenv.mkDerivation {
          pname = "ctr-gpu";
          inherit version;
          src = ../..;
          strictDeps = true;
          # The wrapper of clang adds options of the machine's that the BPF target does not know.
          nativeBuildInputs = [
            llvmPackages.clang-unwrapped
            pkg-config
            protobufc
            rpcsvc-proto
          ];
          buildInputs = [
            cmocka
            jansson
            libbpf
            libtirpc
            libyaml
            nghttp2
            protobufc
          ];
          env.C_INCLUDE_PATH = lib.makeSearchPathOutput "dev" "include" [
            libbpf
            linuxHeaders
          ];
          enableParallelBuilding = true;
          postPatch = "patchShebangs pkg";
          # Slurm refuses plugins that were not built with its own headers.
          makeFlags = [
            "prefix=${placeholder "out"}"
            "libdir=${placeholder "out"}/lib"
            "COMMIT=${self.shortRev or ""}"
            "STATIC=0"
            "STRIP=:"
            "WERROR="
            "spank_lacks=slurm"
          ];
          buildFlags = [ "all" ];
          installTargets = [ "install-vcuda" ];
          # What is run for a device that comes must be there when NixOS puts its rules together.
          postInstall = ''
            substituteInPlace "$out/lib/udev/rules.d/61-ctr-gpu.rules" \
              --replace-fail /usr/bin/systemctl ${systemd}/bin/systemctl
          '';
          meta = {
            description = "GPUs of the host for Linux containers";
            license = lib.licenses.asl20;
            mainProgram = "ctr-gpu";
            platforms = systems;
          };
        };

      module =
        {
          config,
          lib,
          pkgs,
          ...
        }:
        let
          cfg = config.services.ctr-gpu;
          # The programs that engines look for by NVIDIA's names.
          names = pkgs.runCommand "ctr-gpu-nvidia-compat-${version}" { } ''
            mkdir -p "$out/bin"
            ln -s ${cfg.package}/bin/ctr-gpu-hook "$out/bin/nvidia-container-runtime-hook"
            ln -s ${cfg.package}/bin/ctr-gpu-hook "$out/bin/nvidia-cdi-hook"
            ln -s ${cfg.package}/bin/ctr-gpu "$out/bin/nvidia-container-cli"
            ln -s ${cfg.package}/bin/ctr-gpu-runtime "$out/bin/nvidia-container-runtime"
          '';
        in
        {
          options.services.ctr-gpu = {
            enable = lib.mkEnableOption "GPUs of this host for containers";
            package = lib.mkOption {
              type = lib.types.package;
              default = self.packages.${pkgs.stdenv.hostPlatform.system}.default;
              description = "The package of ctr-gpu.";
            };
            nvidiaCompat = lib.mkOption {
              type = lib.types.bool;
              default = false;
              description = "Whether engines find ctr-gpu by the names of NVIDIA's tools, as `docker run --gpus` needs it.";
            };
            settings = lib.mkOption {
              type = lib.types.attrs;
              default = { };
              description = "/etc/ctr-gpu/config.json, see ctr-gpu-config(5).";
            };
          };

          config = lib.mkIf cfg.enable {
            assertions = [
              {
                assertion = !(cfg.nvidiaCompat && config.hardware.nvidia-container-toolkit.enable);
                message = "services.ctr-gpu.nvidiaCompat and hardware.nvidia-container-toolkit both take NVIDIA's names: choose one.";
              }
            ];
            environment.systemPackages = [ cfg.package ] ++ lib.optional cfg.nvidiaCompat names;
            # A file, and no link into the store. Programs of the distribution are at no fixed path.
            environment.etc."ctr-gpu/config.json" = {
              mode = "0644";
              text = builtins.toJSON (
                {
                  runtimes = [
                    "${pkgs.runc}/bin/runc"
                    "${pkgs.crun}/bin/crun"
                  ];
                }
                // cfg.settings
              );
            };
            # NixOS takes units from packages, and does not read who wants them.
            systemd.packages = [ cfg.package ];
            systemd.services.ctr-gpu-refresh.wantedBy = [ "multi-user.target" ];
            systemd.paths.ctr-gpu-refresh.wantedBy = [ "multi-user.target" ];
            services.udev.packages = [ cfg.package ];
            # Where profiles look for abstractions/ctr-gpu.
            security.apparmor.packages = [ cfg.package ];
            # Podman has no folder of hooks there.
            virtualisation.containers.containersConf.settings.engine.hooks_dir = [
              "${cfg.package}/share/containers/oci/hooks.d"
            ];
            # What "ctr-gpu setup docker" writes elsewhere: here NixOS makes Docker's configuration.
            virtualisation.docker.daemon.settings = lib.mkIf config.virtualisation.docker.enable {
              features.cdi = true;
              runtimes.nvidia.path = "${cfg.package}/libexec/ctr-gpu/nvidia-names/nvidia-container-runtime";
            };
            systemd.services.docker = lib.mkIf (config.virtualisation.docker.enable && cfg.nvidiaCompat) {
              path = [ names ];
            };
          };
        };
    in
    {
      packages = nixpkgs.lib.genAttrs systems (system: {
        default = nixpkgs.legacyPackages.${system}.callPackage package { };
      });
      nixosModules.default = module;
    };
}
