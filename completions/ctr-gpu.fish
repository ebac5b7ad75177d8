# SPDX-License-Identifier: Apache-2.0
#
# Completion of ctr-gpu and ctr-gpu-hook for fish. Commands and options are those that the program itself lists with --help,
# so there is nothing here to fall behind it; this knows only what the words for their values mean.

function __ctr_gpu_help
    ARGP_HELP_FMT=rmargin=1000 $argv --help 2>/dev/null </dev/null
end

# "name<TAB>what it does"
function __ctr_gpu_commands
    __ctr_gpu_help $argv | sed -n -E -e '/^Commands:/,/^$/s/^  ([a-z][a-z-]*)( [^ ]+)* *(.*)/\1\t\3/p' \
        -e '/^Usage:/{s/.* ([a-z-]+(\|[a-z-]+)+).*/\1/;t list;b' -e ':list' -e 's/$/\t/;s/\|/\t\n/g;p}'
end

# "--name=<TAB>-n<TAB>WORD<TAB>what it does"
function __ctr_gpu_options
    begin
        __ctr_gpu_help $argv | sed -n -E 's/^ +((-.), +)?(--[a-z][a-z0-9-]*\[?=?)([^] ]*)\]? *(.*)/\3\t\2\t\4\t\5/p'
        __ctr_gpu_help $argv | sed -n -E '/^Usage:/{s/[][|]/\n/g;p}' | sed -n -E 's/^(--[a-z][a-z0-9-]*=?)([A-Z]*)$/\1\t\t\2\t/p'
    end
end

# "name<TAB>model" of the GPUs that can be used. A model may have commas in its name, and what a shell acts on.
function __ctr_gpu_devices
    for line in ($argv info --timeout=1 --csv 2>/dev/null | grep -E '^(npu:)?[0-9]')
        set -l model (string replace -r '^[^,]*,[^,]*,[^,]*,(?:"([^"]*)"|([^,]*)),.*' '$1$2' -- $line)
        for name in (printf '%s\n' $line | grep -oE '^[a-z0-9:]+|(GPU|MIG|LUID)-[0-9A-Za-z/-]+|[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]')
            printf '%s\t%s\n' $name $model
        end
    end
end

function __ctr_gpu_values --argument-names program word current
    # A list: the last item is what is being typed.
    set -l list (string match -r '.*,' -- $current)
    switch $word
        case '*FILE*' '*PATH*'
            __fish_complete_path $current
        case '*DIR*' ROOTFS
            __fish_complete_directories $current
        case IDS
            printf '%s\n' "$list"{all,none} "$list"(__ctr_gpu_devices $program)
        case GPU
            printf '%s\n' "$list"all "$list"(__ctr_gpu_devices $program)
        case LIST
            printf '%s\n' "$list"{all,compat32,compute,display,graphics,ngx,utility,video}
        case SOURCE
            printf '%s\n' auto dxcore ioctl
        case VENDOR/CLASS
            printf '%s\n' nvidia.com/gpu amd.com/gpu intel.com/gpu amd.com/npu intel.com/npu ctr-gpu.org/vcuda
        case 'ENGINE[:DOOR'
            printf '%s\n' docker{,:gpus,:runtime,:cdi} podman{,:hook,:gpus,:runtime,:cdi} containerd
        case ENGINE
            printf '%s\n' docker podman containerd crio kubernetes vcuda
    end
end

function __ctr_gpu_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]

    for word in $words[2..-1]
        if string match -qv -- '-*' $word; and __ctr_gpu_commands $program | string match -q -- (printf '%s\t*' $word)
            set -a program $word
        end
    end
    if string match -q -- '--*=*' $current
        set -l option (string split -m 1 = -- $current)
        for line in (__ctr_gpu_options $program)
            set -l field (string split \t -- $line)
            if string match -q -r -- '^'$option[1]'\[?=$' $field[1]
                __ctr_gpu_values $words[1] $field[3] $option[2] | string replace -r '^' -- $option[1]=
            end
        end
        return
    end
    if string match -q -- '-*' $words[-1]
        for line in (__ctr_gpu_options $program)
            set -l field (string split \t -- $line)
            if string match -q -r -- '[a-z0-9]=$' $field[1]; and contains -- $words[-1] (string trim -r -c = -- $field[1]) $field[2]
                __ctr_gpu_values $words[1] $field[3] $current
                return
            end
        end
    end
    if string match -q -- '-*' $current
        for line in (__ctr_gpu_options $program)
            set -l field (string split \t -- $line)
            printf '%s\t%s\n' (string replace -r '\[=$' '' -- $field[1]) $field[4]
        end
        return
    end
    __ctr_gpu_commands $program
    switch (__ctr_gpu_help $program)[1]
        case '*ROOTFS*'
            __fish_complete_directories $current
        case '*ENGINE*'
            __ctr_gpu_values $words[1] ENGINE $current
            contains -- --remove $words; and echo all
        case '*[GPU*'
            __ctr_gpu_values $words[1] GPU $current
        case '* FILE*' '*[FILE*'
            __fish_complete_path $current
        case '*|prestart*'
            printf '%s\n' createRuntime prestart
    end
end

complete -c ctr-gpu -f -a '(__ctr_gpu_complete)'
complete -c ctr-gpu-hook -f -a '(__ctr_gpu_complete)'
