# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Completion of ctr-gpu and ctr-gpu-hook for bash. Commands and options are those that the program itself lists with --help,
# so there is nothing here to fall behind it; this knows only what the words for their values mean.

# __ctr_gpu_help PROGRAM [COMMAND…]
__ctr_gpu_help() {
	ARGP_HELP_FMT=rmargin=1000 "$@" --help 2>/dev/null </dev/null
}

# __ctr_gpu_commands: their names, of the help on standard input: a list, or one|another in the usage
__ctr_gpu_commands() {
	sed -n -E -e '/^Commands:/,/^$/s/^  ([a-z][a-z-]*).*/\1/p' -e '/^Usage:/{s/.* ([a-z-]+(\|[a-z-]+)+).*/\1/;t list;b' -e ':list' -e 's/\|/\n/g;p}'
}

# __ctr_gpu_options: "--long", "--long=" or "--long[=", and what follows in capitals, of the help on standard input
__ctr_gpu_options() {
	sed -n -E -e 's/^ +(-., +)?(--[a-z][a-z0-9-]*\[?=?)([^] ]*).*/\2 \3 \1/p' \
		-e '/^Usage:/{s/[][|]/\n/g;p}' | sed -n -E 's/^(--[a-z][a-z0-9-]*=?)([A-Z]*)$/\1 \2/p; /^--[a-z].* /p' | sort -u
}

# __ctr_gpu_behind TEXT: the lines of standard input with a text before each
__ctr_gpu_behind() {
	local line

	while IFS= read -r line; do
		printf '%s%s\n' "$1" "$line"
	done
}

# __ctr_gpu_devices PROGRAM: what the GPUs that can be used are called. Their models' names may have commas, and what a shell acts on.
__ctr_gpu_devices() {
	"$1" info --timeout=1 --csv 2>/dev/null | grep -E '^(npu:)?[0-9]' |
		grep -oE '^[a-z0-9:]+|(GPU|MIG|LUID)-[0-9A-Za-z/-]+|[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]'
}

# __ctr_gpu_values WORD CURRENT: values of what --help calls WORD
__ctr_gpu_values() {
	local list=

	case $1 in
	*FILE* | *PATH*) compgen -f -- "$2" && return ;;
	*DIR* | ROOTFS) compgen -d -- "$2" && return ;;
	IDS | GPU)
		# A list: the last item is what is being typed.
		[[ $2 != *,* ]] || list=${2%,*},
		{ echo all; [[ $1 == GPU ]] || echo none; __ctr_gpu_devices "${program[0]}"; } | __ctr_gpu_behind "$list" | sort -u
		;;
	LIST)
		[[ $2 != *,* ]] || list=${2%,*},
		printf '%s\n' all compat32 compute display graphics ngx utility video | __ctr_gpu_behind "$list"
		;;
	SOURCE) printf '%s\n' auto dxcore ioctl ;;
	VENDOR/CLASS) printf '%s\n' nvidia.com/gpu amd.com/gpu intel.com/gpu amd.com/npu intel.com/npu ctr-gpu.org/vcuda ;;
	ENGINE\[:DOOR) printf '%s\n' docker{,:gpus,:runtime,:cdi} podman{,:hook,:gpus,:runtime,:cdi} containerd ;;
	ENGINE) printf '%s\n' docker podman containerd crio kubernetes vcuda ;;
	esac
}

__ctr_gpu_candidates() {
	local current=$1 help option word wanted previous=${words[${#words[@]} - 1]}

	help=$(__ctr_gpu_help "${program[@]}")
	if [[ $current == --*=* ]]; then
		while read -r option word _; do
			[[ ${option%%[[=]*} != "${current%%=*}" ]] ||
				__ctr_gpu_values "$word" "${current#*=}" | __ctr_gpu_behind "${current%%=*}="
		done < <(__ctr_gpu_options <<<"$help")
		return
	fi
	if [[ $previous == -* ]]; then
		while read -r option word wanted; do
			if [[ $option == *[a-z0-9]= && ($previous == "${option%=}" || $previous == "${wanted%,}") ]]; then
				__ctr_gpu_values "$word" "$current"
				return
			fi
		done < <(__ctr_gpu_options <<<"$help")
	fi
	if [[ $current == -* ]]; then
		__ctr_gpu_options <<<"$help" | sed 's/ .*//; s/\[=$//' | sort -u
		return
	fi
	__ctr_gpu_commands <<<"$help"
	case ${help%%$'\n'*} in
	*ROOTFS*) compgen -d -- "$current" ;;
	*ENGINE*)
		__ctr_gpu_values ENGINE "$current"
		[[ " ${words[*]} " != *" --remove "* ]] || echo all
		;;
	*'[GPU'*) __ctr_gpu_values GPU "$current" ;;
	*' FILE'* | *'[FILE'*) compgen -f -- "$current" ;;
	*'|prestart'*) printf '%s\n' createRuntime prestart ;;
	esac
}

_ctr_gpu() {
	local line=${COMP_LINE:0:COMP_POINT} current typed word candidate
	local -a words program

	# bash takes words apart at = and :, which are inside of ours.
	current=${line##*[[:space:]]}
	read -ra words <<<"${line%"$current"}"
	word=${COMP_WORDS[COMP_CWORD]}
	[[ $word != [=:] ]] || word=
	typed=${current%"$word"}

	program=("${words[0]}")
	for word in "${words[@]:1}"; do
		if [[ $word != -* ]] && __ctr_gpu_help "${program[@]}" | __ctr_gpu_commands | grep -qxF -- "$word"; then
			program+=("$word")
		fi
	done
	COMPREPLY=()
	while IFS= read -r candidate; do
		[[ $candidate != "$current"* ]] || COMPREPLY+=("${candidate#"$typed"}")
	done < <(__ctr_gpu_candidates "$current")
	if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
		compopt -o nospace 2>/dev/null
	fi
}
complete -F _ctr_gpu ctr-gpu ctr-gpu-hook
