# SPDX-License-Identifier: Apache-2.0
#
# Of nixpkgs' functions those that our flake calls, with the same results.
rec {
  genAttrs = names: f: builtins.listToAttrs (map (name: { inherit name; value = f name; }) names);
  makeSearchPathOutput = _: dir: packages: builtins.concatStringsSep ":" (map (p: "${p}/${dir}") packages);
  mkIf = condition: value: if condition then value else { };
  mkEnableOption = _: { };
  mkOption = option: option;
  optional = condition: value: if condition then [ value ] else [ ];
  types = genAttrs [ "attrs" "bool" "package" ] (name: name);
  licenses.asl20 = "Apache-2.0";
}
