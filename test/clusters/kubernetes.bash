# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# A Kubernetes of one machine, node1: functions, to be sourced in a sandbox (test/e2e/sandbox), with which everything ends: etcd, kube-apiserver,
# kube-scheduler, kube-controller-manager, kubelet, containerd and ctr-gpu-device-plugin. $directory is on a disk, has image.tar, and
# gets the logs; $programs is what kubernetes-build prints, $examples the folder of ours. node_start starts all (with $node_bare set
# neither plugin nor runtime); each of kubelet, containerd and plugin can be
# killed and started again. $node_engine is a tree of another release (test/engines/tree) whose containerd is taken.

export KUBECONFIG=/run/node/kubeconfig PATH=$programs:$PATH:/usr/lib/cni
declare -A node_pids

# node_run NAME COMMAND…
node_run() {
	local name=$1
	shift

	"$@" >>"$directory/$name.log" 2>&1 3>&- &
	node_pids[$name]=$!
}

# until_true SECONDS COMMAND…: on a machine that has nothing else to do; one that is busy has four times as long
until_true() {
	local end=$((SECONDS + 4 * $1))
	shift

	until "$@" >/dev/null 2>&1; do
		((SECONDS < end)) || { echo "in vain: $*" >&2; return 1; }
		sleep 0.1
	done
}

# A network of its own, from which nothing leads anywhere; kubelet wants an address and a default route.
node_network() {
	ip link set lo up
	ip link add uplink type veth peer name elsewhere
	ip address add 192.0.2.1/24 dev uplink
	ip link set uplink up
	ip link set elsewhere up
	ip route add default via 192.0.2.2
	mkdir -p /etc/cni/net.d
	cat >/etc/cni/net.d/10-pods.conf <<-END
		{"cniVersion": "0.4.0", "name": "pods", "type": "bridge", "bridge": "pods",
		 "ipam": {"type": "host-local", "dataDir": "/run/node/addresses", "ranges": [[{"subnet": "10.88.0.0/16"}]]}}
	END
}

# Debian's containerd needs the C library alone, of 2021.
node_take_engine() {
	local program

	for program in containerd containerd-shim-runc-v2 ctr; do
		mount --bind "$1/usr/bin/$program" "/usr/bin/$program"
	done
	# Which release is installed, the plugin asks dpkg.
	mount --bind "$1/var/lib/dpkg/status" /var/lib/dpkg/status
	containerd --version
}

node_containerd() {
	node_run containerd containerd --log-level info
	until_true 30 ctr version
}

# containerd's file, with the runtime that `ctr-gpu setup` puts in
node_containerd_file() {
	mkdir -p /etc/containerd
	cat >/etc/containerd/config.toml <<-END
		version = 2
		root = "$directory/containerd"
		state = "/run/containerd"
		[plugins."io.containerd.grpc.v1.cri"]
		sandbox_image = "localhost/debian:1"
		disable_apparmor = true
		restrict_oom_score_adj = true
		enable_cdi = ${node_cdi:-false}
		[plugins."io.containerd.grpc.v1.cri".cni]
		bin_dir = "/usr/lib/cni"
		conf_dir = "/etc/cni/net.d"
		[plugins."io.containerd.grpc.v1.cri".containerd]
		snapshotter = "${node_snapshotter:-overlayfs}"
	END
}

# Everybody is an administrator who knows the word.
node_server() {
	openssl genrsa -out key 2048 2>/dev/null
	openssl rsa -in key -pubout -out key.public 2>/dev/null
	echo word,admin,1,system:masters >words
	cat >"$KUBECONFIG" <<-END
		{"apiVersion": "v1", "kind": "Config", "current-context": "one",
		 "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:16443", "insecure-skip-tls-verify": true}}],
		 "users": [{"name": "one", "user": {"token": "word"}}],
		 "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}]}
	END
	node_run etcd etcd --data-dir etcd --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
		--listen-peer-urls http://127.0.0.1:2380
	node_run apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --secure-port=16443 --bind-address=127.0.0.1 \
		--cert-dir=/run/node --token-auth-file=words --authorization-mode=AlwaysAllow --service-account-key-file=key.public \
		--service-account-signing-key-file=key --service-account-issuer=https://one --service-cluster-ip-range=10.96.0.0/16 \
		--disable-admission-plugins=ServiceAccount --allow-privileged --kubelet-preferred-address-types=InternalIP
	until_true 90 kubectl get namespace default
	node_run controllers kube-controller-manager --kubeconfig="$KUBECONFIG" --authentication-kubeconfig="$KUBECONFIG" \
		--authorization-kubeconfig="$KUBECONFIG" --cert-dir=/run/node --port=0 --leader-elect=false
	node_run scheduler kube-scheduler --kubeconfig="$KUBECONFIG" --authentication-kubeconfig="$KUBECONFIG" \
		--authorization-kubeconfig="$KUBECONFIG" --cert-dir=/run/node --port=0 --leader-elect=false
}

node_kubelet() {
	cat >/run/node/kubelet.yaml <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
		authorization: {mode: AlwaysAllow}
		cgroupDriver: cgroupfs
		cgroupRoot: ${CTR_GPU_TEST_CGROUP:-/}
		failSwapOn: false
		cgroupsPerQOS: false
		enforceNodeAllocatable: []
		localStorageCapacityIsolation: false
		evictionHard: {}
		imageGCHighThresholdPercent: 100
		maxPods: 120
		registryPullQPS: 0
		syncFrequency: 5s
		volumePluginDir: /run/node/volumes
		readOnlyPort: 0
	END
	node_run kubelet kubelet --config=/run/node/kubelet.yaml --kubeconfig="$KUBECONFIG" --container-runtime=remote \
		--container-runtime-endpoint=unix:///run/containerd/containerd.sock --cert-dir=/run/node --hostname-override=node1 \
		--node-ip=192.0.2.1 -v="${node_verbose:-2}"
}

node_plugin() {
	node_run plugin "$CTR_GPU_BUILD/bin/ctr-gpu-device-plugin" ${node_plugin_options:+"$node_plugin_options"}
}

# node_kill NAME [SIGNAL]: and it has ended
node_kill() {
	kill "-${2:-KILL}" "${node_pids[$1]}" 2>/dev/null || true
	wait "${node_pids[$1]}" 2>/dev/null || true
}

node_is_ready() {
	kubectl get node node1 | grep -q ' Ready'
}

# node_offers [CAPACITY|ALLOCATABLE] RESOURCE: how many
node_offers() {
	kubectl get node node1 -o json | jq -r --arg of "$1" --arg name "$2" '.status[$of][$name] // "0"'
}

offers() {
	[[ $(node_offers allocatable "$1") == "$2" ]]
}

node_start() {
	local place

	mkdir -p /run/node "$directory"
	# Of this machine's own directories nothing is changed.
	for place in lib log; do
		mkdir -p "/run/var/$place/upper" "/run/var/$place/work"
		mount -t overlay -o "lowerdir=/var/$place,upperdir=/run/var/$place/upper,workdir=/run/var/$place/work" overlay "/var/$place"
	done
	for place in /etc/cni /etc/containerd; do
		mkdir -p "$place"
		mount -t tmpfs -o mode=755 tmpfs "$place"
	done
	cd /run/node || return
	node_network
	[[ ! ${node_engine-} ]] || node_take_engine "$node_engine"
	node_containerd_file
	[[ ${node_bare-} ]] || ctr-gpu setup containerd >"$directory/setup.log"
	node_containerd
	ctr -n k8s.io image import --snapshotter "${node_snapshotter:-overlayfs}" "$directory/image.tar" >/dev/null
	node_server
	node_kubelet
	until_true 60 node_is_ready || { tail -n 20 "$directory/kubelet.log" >&2; return 1; }
	[[ ! ${node_bare-} ]] || return 0
	kubectl apply -f "$examples/runtime-class.yaml" >/dev/null
	node_plugin
}

# node_vcuda SLOTS: vCUDA's simulated driver instead of the host's, its manager, and so many slots of each GPU
node_vcuda() {
	local uuids

	uuids=$(ctr-gpu info --json | jq -r '[.adapters[].uuid | sub("GPU-"; "") | gsub("-"; "")] | join(",")')
	mkdir -p /run/driver /etc/ctr-gpu
	cp -a /usr/lib/wsl/lib/. /run/driver
	rm -f /run/driver/lib{cuda,nvidia-ml}.so.1
	cp "$CTR_GPU_BUILD"/vcuda/test/sim/lib{cuda,nvidia-ml}.so.1 /run/driver/
	printf '%s\n' GPUS=2 MEMORY=24G,8G "UUIDS=$uuids" NAMES=Big,Small >/run/driver/sim.conf
	mount --bind /run/driver /usr/lib/wsl/lib
	echo "{\"vcuda\": {\"mode\": \"allow\", \"slots\": $1}}" >/etc/ctr-gpu/config.json
	mkdir -p "$directory"
	node_run vcudad ctr-gpu-vcudad
	until_true 30 ctr-gpu vcuda list
}

# pod NAME SCRIPT [LIMITS]: a pod that runs it; LIMITS as YAML's flow, {nvidia.com/gpu: 1}. $pod_env: its variables in the same way;
# $pod_tool: a program of the host that it has as /usr/bin/tool
pod() {
	cat <<-END
		---
		apiVersion: v1
		kind: Pod
		metadata: {name: $1}
		spec:
		  restartPolicy: Never
		  terminationGracePeriodSeconds: 0
		  automountServiceAccountToken: false
		  hostNetwork: ${pod_host_network:-true}
		  ${pod_class-runtimeClassName: nvidia}
		  containers:
		  - name: one
		    image: localhost/debian:1
		    command: [/bin/sh, -c, $(jq -n --arg script "$2" '$script')]
		    resources: {limits: ${3:-{nvidia.com/gpu: 1\}}}
		    ${pod_env:+env: $pod_env}
		    ${pod_tool:+volumeMounts: [{name: tool, mountPath: /usr/bin/tool, readOnly: true\}]}
		  ${pod_tool:+volumes: [{name: tool, hostPath: {path: $pod_tool\}\}]}
	END
}

phase() {
	kubectl get pod "$1" -o 'jsonpath={.status.phase}'
}

# is PHASE POD…
is() {
	local wanted=$1 pod
	shift

	for pod; do
		[[ $(phase "$pod") == "$wanted" ]] || return
	done
}

# said POD TEXT: its log has it
said() {
	kubectl logs "$1" | grep -q -- "$2"
}

# waits POD: it is not placed, since nothing is free
waits() {
	kubectl get pod "$1" -o json | jq -e '.status.conditions[]? | select(.type == "PodScheduled" and (.message // "" | contains("Insufficient")))'
}

running() {
	kubectl get pods -o json | jq -r '.items[] | select(.status.phase == "Running" and .metadata.deletionTimestamp == null).metadata.name'
}

two_run() {
	[[ $(running | wc -l) -eq 2 ]]
}

# count_is NUMBER PHASE
count_is() {
	[[ $(kubectl get pods -o json | jq --arg phase "$2" '[.items[] | select(.status.phase == $phase)] | length') -eq $1 ]]
}

registrations() {
	grep -c 'kubelet has nvidia.com/gpu registered' "$directory/plugin.log"
}

# After a round of kills: what ended for want of another is started again, as a service manager does it.
settled() {
	local name

	for name in containerd kubelet plugin; do
		kill -0 "${node_pids[$name]}" 2>/dev/null || "node_$name"
	done
	[[ $(registrations) -gt $before ]] && offers nvidia.com/gpu 2 && node_is_ready && two_run
}

# By kubelet's own record, the pods that run have a GPU each, and not the same.
one_each() {
	local pods

	pods=$(kubectl get pods -o json | jq '[.items[] | select(.status.phase == "Running" and .metadata.deletionTimestamp == null).metadata.uid]')
	jq -e --argjson pods "$pods" '[.Data.PodDeviceEntries[] | select(.PodUID as $uid | $pods | index($uid)).DeviceIDs | if type == "object" then .[] else . end | .[]]
		| length == 2 and (unique | length == 2)' /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint >/dev/null
}

dump() {
	kubectl get pods -o wide
	kubectl get node node1 -o json | jq -c '.status.allocatable, .status.conditions'
	jq -c . /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint
	tail -n 20 "$directory/plugin.log" "$directory/kubelet.log"
} >&2
