#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for kubelet: gRPC by another implementation than the plugin's, protobuf by hand.

usage: kubelet.py PLUGIN DIRECTORY CASE [ARGUMENT…]

Starts the plugin with its sockets in DIRECTORY, and plays a case with it; what a case prints is compared by the test. Whatever is
waited for is waited for as a condition, for at most 30 seconds.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent import futures

os.environ["GRPC_VERBOSITY"] = "NONE"
import grpc  # noqa: E402

PLUGIN, DIRECTORY = sys.argv[1], sys.argv[2]
SERVICE = "/v1beta1.DevicePlugin/"
PATIENCE = 30
# As kubelet of Kubernetes 1.20 names its peer, which HTTP does not allow.
AUTHORITY = ("grpc.default_authority", f"{DIRECTORY}/ctr-gpu.sock")
with open(PLUGIN, "rb") as file:
    SANITIZED = b"__asan_init" in file.read()  # and then it takes memory as it likes


# ---- protobuf ----


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """A field: an integer, a text or a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(message):
    """A message as a list of (number, value)."""

    def read(at):
        number = shift = 0
        while True:
            number |= (message[at] & 127) << shift
            shift += 7
            at += 1
            if message[at - 1] < 128:
                return number, at

    out, at = [], 0
    while at < len(message):
        key, at = read(at)
        value, at = read(at)
        if key & 7 == 2:
            value, at = message[at : at + value], at + value
        else:
            assert key & 7 == 0
        out.append((key >> 3, value))
    return out


def several(message, number):
    return [value for key, value in fields(message) if key == number]


def one(message, number):
    return (several(message, number) or [b""])[-1]


# ---- kubelet's side ----


def wait_for(condition, what):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, f"waited in vain until {what}"
        time.sleep(0.02)


class Kubelet(grpc.GenericRpcHandler):
    """Takes registrations; `refuses` and `hangs` are what it does instead."""

    def __init__(self, refuses=False, keeps=False):
        self.seen, self.refuses, self.calls = {}, refuses, 0
        for name in os.listdir(DIRECTORY):
            if not keeps or name == "kubelet.sock":
                os.unlink(f"{DIRECTORY}/{name}")
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers((self,))
        self.server.add_insecure_port(f"unix:{DIRECTORY}/kubelet.sock")
        self.server.start()

    def service(self, call):
        assert call.method == "/v1beta1.Registration/Register", call.method
        return grpc.unary_unary_rpc_method_handler(self.register)

    def register(self, request, context):
        self.calls += 1
        if self.refuses:
            context.abort(grpc.StatusCode.INTERNAL, "not today\x1b[31m")
        assert one(request, 1) == b"v1beta1"
        assert one(one(request, 4), 2) == 1, "GetPreferredAllocation is there"
        self.seen[one(request, 3).decode()] = one(request, 2).decode()
        return b""

    def stop(self):
        self.server.stop(0).wait()

    def wait(self, *resources):
        wait_for(lambda: all(resource in self.seen for resource in resources), f"{resources} are registered")


class Resource:
    """A plugin's socket, and what it lists."""

    def __init__(self, kubelet, name):
        kubelet.wait(name)
        self.name, self.path = name, f"{DIRECTORY}/{kubelet.seen[name]}"
        self.channel = grpc.insecure_channel(f"unix:{self.path}", options=[("grpc.use_local_subchannel_pool", 1), AUTHORITY])
        self.lists, self.ended = [], False
        self.stream = self.channel.unary_stream(SERVICE + "ListAndWatch")(b"")
        threading.Thread(target=self.follow, daemon=True).start()
        wait_for(lambda: self.lists, f"{name} is listed")

    def follow(self):
        try:
            for message in self.stream:
                self.lists.append([(one(device, 1).decode(), one(device, 2).decode(), self.node(device)) for device in several(message, 1)])
        except grpc.RpcError:
            pass
        self.ended = True

    @staticmethod
    def node(device):
        nodes = several(one(device, 3), 1) if one(device, 3) else []
        return ",".join(str(one(node, 1) or 0) for node in nodes)

    def call(self, method, request=b""):
        return self.channel.unary_unary(SERVICE + method)(request, timeout=PATIENCE)

    def ids(self):
        return [device[0] for device in self.lists[-1]]

    def health(self):
        return {device[0]: device[1] for device in self.lists[-1]}

    def allocate(self, *containers):
        request = b"".join(field(1, b"".join(field(1, device) for device in devices)) for devices in containers)
        return [grant(response) for response in several(self.call("Allocate", request), 1)]

    def prefer(self, available, must, size):
        wish = b"".join(field(1, i) for i in available) + b"".join(field(2, i) for i in must) + field(3, size)
        response = several(self.call("GetPreferredAllocation", field(1, wish)), 1)
        return [device.decode() for device in several(response[0], 1)]


def grant(response):
    """A container's part of an answer, in lines."""
    out = [f"env {one(entry, 1).decode()}={one(entry, 2).decode()}" for entry in several(response, 1)]
    out += [f"mount {one(mount, 2).decode()} {one(mount, 1).decode()}" + (" ro" if one(mount, 3) else " rw") for mount in several(response, 2)]
    out += [f"annotation {one(entry, 1).decode()}={one(entry, 2).decode()}" for entry in several(response, 4)]
    out += [f"cdi {one(device, 1).decode()}" for device in several(response, 5)]
    assert {key for key, _ in fields(response)} <= {1, 2, 4, 5}
    return out


def code_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


class Plugin:
    started = []

    def __init__(self, *options):
        self.log = open(f"{DIRECTORY}.log", "ab+")
        self.process = subprocess.Popen([PLUGIN, f"--kubelet-directory={DIRECTORY}", *options], stderr=self.log)
        Plugin.started.append(self)

    def said(self):
        with open(f"{DIRECTORY}.log", "rb") as log:
            return log.read().decode()

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def runs(self):
        return self.process.poll() is None

    def memory(self):
        """What its processes have for themselves, in KiB."""
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, check=True).stdout.split()
        total = 0
        for pid in [self.process.pid, *map(int, children)]:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        return total


# ---- a peer that speaks no gRPC library ----

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


SETTINGS = frame(4, 0, 0)


def literal(name, value):
    assert len(name) < 127 and len(value) < 127
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def headers(stream, method="Allocate", end=False, kind="application/grpc", verb="POST", more=b""):
    block = literal(":method", verb) + literal(":scheme", "http") + literal(":authority", "x") + literal(":path", SERVICE + method) + literal("content-type", kind) + more
    return frame(1, 4 | (1 if end else 0), stream, block)


class Peer:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.settimeout(PATIENCE)

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass
        return self

    def read_to_end(self):
        """All that comes until the plugin closes."""
        out = b""
        try:
            while part := self.socket.recv(65536):
                out += part
        except ConnectionError:
            pass
        return out

    def read_last_headers(self):
        """The block that ends a call. Huffman's code makes no number of one or two digits shorter, so they stand there as they are."""
        data = b""
        while part := self.socket.recv(65536):
            data += part
            at = 0
            while at + 9 <= len(data) and at + 9 + (size := int.from_bytes(data[at : at + 3], "big")) <= len(data):
                if data[at + 3] == 1 and data[at + 4] & 1:
                    return data[at + 9 : at + 9 + size]
                at += 9 + size
        return data


# ---- cases ----


def case_list(*resources):
    Plugin("--strategy=mounts", *[word for word in resources if word.startswith("--")])
    kubelet = Kubelet()
    for name in [word for word in resources if not word.startswith("--")]:
        for device, health, _ in Resource(kubelet, name).lists[-1]:
            print(name, device, health)
    print("registered", *sorted(kubelet.seen))


def case_stays(name, *options):
    Plugin("--strategy=mounts", *options)
    resource = Resource(Kubelet(), name)
    time.sleep(6)  # looks without names, every other second
    for device, health, _ in resource.lists[-1]:
        print(name, device, health)


def case_allocate(name, strategy, *containers):
    Plugin(*([f"--strategy={strategy}"] if strategy != "default" else []), *[word for word in containers if word.startswith("--")])
    resource = Resource(Kubelet(), name)
    for number, lines in enumerate(resource.allocate(*[[resource.ids()[int(i)] for i in word] for word in containers if not word.startswith("--")])):
        for line in lines:
            print(number, line)


def case_follows(name):
    """The plugin begins before there is a spec, as at a driver that is loaded late."""
    plugin = Plugin()
    resource = Resource(Kubelet(), name)
    device = resource.ids()[0]
    mounts = [[f"mount /dev/null /var/run/nvidia-container-devices/cdi/{name}/{device} ro"]]
    assert resource.allocate([device]) == mounts
    subprocess.run(["ctr-gpu", "cdi", "generate"], check=True, stdout=subprocess.DEVNULL)
    wait_for(lambda: f"cdi {name}={device}" in resource.allocate([device])[0], "the spec counts")
    for spec in os.listdir("/etc/cdi"):
        os.unlink(f"/etc/cdi/{spec}")
    wait_for(lambda: resource.allocate([device]) == mounts, "there is no spec any more")
    assert plugin.said().count("told their devices by: cdi,annotations") == 1, plugin.said()


def case_nodes(name, *cases):
    """Each case is "AVAILABLE/MUST/SIZE=CHOSEN", devices by their numbers."""
    Plugin()
    resource = Resource(Kubelet(), name)
    ids = resource.ids()
    print("nodes", *[device[2] for device in resource.lists[-1]])
    for case in cases:
        wish, chosen = case.split("=")
        available, must, size = wish.split("/")
        got = "".join(str(ids.index(i)) for i in resource.prefer([ids[int(i)] for i in available], [ids[int(i)] for i in must], int(size)))
        assert got == chosen, f"{case}: {got}"


def case_prefer(name):
    Plugin()
    resource = Resource(Kubelet(), name)
    ids = resource.ids()
    assert resource.prefer(ids, [], 1) == ids[:1]
    assert resource.prefer(ids, [ids[1]], 1) == [ids[1]]
    assert sorted(resource.prefer(ids, [ids[1]], 2)) == sorted(ids)
    assert resource.prefer([ids[1], "unknown"], [], 2) == [ids[1]]
    assert resource.prefer([], [], 0) == []
    assert code_of(lambda: resource.prefer(["x"] * 600, [], 1)) == "INVALID_ARGUMENT"


def case_slots(name, whole):
    """Slots of four GPUs, three each, as vCUDA's manager is there or not, and as the configuration says."""
    settings = "/etc/ctr-gpu/config.json"
    plugin = Plugin("--strategy=mounts")
    kubelet = Kubelet()
    resource = Resource(kubelet, name)
    ids = resource.ids()
    assert len(ids) == 12 and whole not in kubelet.seen, ids
    # On the GPU that has slots in use already, as long as it has a free one.
    assert resource.prefer(ids[:3] + ids[4:], [], 1) == [ids[4]]
    assert resource.prefer([ids[0]] + ids[3:], [], 1) == [ids[0]]
    assert resource.prefer(ids[:3], [], 1) == [ids[0]]
    assert code_of(lambda: resource.allocate(ids[:2])) == "INVALID_ARGUMENT"
    assert code_of(lambda: resource.allocate([ids[0]], [ids[1]])) == "OK"
    assert code_of(lambda: resource.allocate([ids[0] + "9"])) == "INVALID_ARGUMENT"
    os.rename("/run/ctr-gpu/vcudad.sock", "/run/ctr-gpu/away")
    wait_for(lambda: set(resource.health().values()) == {"Unhealthy"}, "no slot is healthy without the manager")
    assert code_of(lambda: resource.allocate(ids[:1])) == "FAILED_PRECONDITION"
    os.rename("/run/ctr-gpu/away", "/run/ctr-gpu/vcudad.sock")
    wait_for(lambda: set(resource.health().values()) == {"Healthy"}, "all are healthy again")
    # With fewer slots the others are none any more; without, GPUs are offered whole.
    with open(settings, "w", encoding="ascii") as file:
        file.write('{"vcuda": {"mode": "allow", "slots": 2}}')
    wait_for(lambda: [i for i, health in resource.health().items() if health == "Unhealthy"] == ids[2::3], "a slot of each is gone")
    os.unlink(settings)
    wait_for(lambda: set(resource.health().values()) == {"Unhealthy"}, "there is no slot")
    gpus = Resource(kubelet, whole)
    assert set(gpus.health().values()) == {"Healthy"} and len(gpus.ids()) == 4
    assert plugin.runs()


class Manager:
    """A manager of vCUDA that knows of no container, and at times does not answer. `lost` are UUIDs of GPUs."""

    PATH = "/run/ctr-gpu/vcudad.sock"

    def __init__(self, lost):
        self.lost, self.hangs, self.asked, self.held = lost, False, 0, []
        os.makedirs(os.path.dirname(self.PATH), exist_ok=True)
        if os.path.exists(self.PATH):
            os.unlink(self.PATH)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.PATH)
        self.socket.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        def text(value):
            return struct.pack(">I", len(value)) + value.encode() + bytes(-len(value) % 4)

        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            size = struct.unpack(">I", peer.recv(4, socket.MSG_WAITALL))[0] & 0x7FFFFFFF
            call = peer.recv(size, socket.MSG_WAITALL)[:4]
            self.asked += 1
            if self.hangs:
                self.held.append(peer)
                continue
            troubles = b"".join(text(gpu) + text("A GPU") + struct.pack(">I", 1) + text("Xid 79") + bytes(8) for gpu in self.lost)
            answer = call + struct.pack(">5I", 1, 0, 0, 0, 0) + bytes(4 * 6) + struct.pack(">I", len(self.lost)) + troubles + bytes(4)
            peer.sendall(struct.pack(">I", 0x80000000 | len(answer)) + answer)
            peer.close()

    def end(self):
        """Its socket stays."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def case_slots_lost(name):
    """A GPU is lost, and what its manager says is not always to be had."""
    manager = Manager([])
    plugin = Plugin("--strategy=mounts")
    resource = Resource(Kubelet(), name)
    lost, well = resource.ids()
    manager.lost = [lost.split(":")[0]]
    wait_for(lambda: unhealthy(resource) == [lost], "the slot of the GPU is not healthy")
    count = len(resource.lists)
    manager.hangs = True
    asked = manager.asked
    wait_for(lambda: manager.asked >= asked + 3, "the plugin has asked in vain")
    assert len(resource.lists) == count, resource.lists
    assert code_of(lambda: resource.allocate([lost])) == "FAILED_PRECONDITION"
    assert code_of(lambda: resource.allocate([well])) == "OK"
    manager.end()
    wait_for(lambda: unhealthy(resource) == [lost, well], "no slot is healthy where no manager listens")
    Manager([])
    wait_for(lambda: not unhealthy(resource), "all are healthy again")
    assert plugin.runs()


def case_health(name, directory):
    """A driver store that vanishes and comes back."""
    plugin = Plugin()
    resource = Resource(Kubelet(), name)
    first = resource.ids()
    assert set(resource.health().values()) == {"Healthy"}
    os.rename(directory, directory + ".away")
    began = time.monotonic()
    wait_for(lambda: "Unhealthy" in resource.health().values(), "a device is not healthy")
    took = time.monotonic() - began
    gone = [device for device, health in resource.health().items() if health == "Unhealthy"]
    assert len(gone) == 1 and resource.ids() == first
    assert code_of(lambda: resource.allocate(gone)) == "FAILED_PRECONDITION"
    assert code_of(lambda: resource.allocate([device for device in first if device not in gone])) == "OK"
    os.rename(directory + ".away", directory)
    wait_for(lambda: set(resource.health().values()) == {"Healthy"}, "all are healthy again")
    assert resource.ids() == first and len(resource.lists) == 3, resource.lists
    assert not resource.ended and plugin.runs()
    print(f"# not healthy after {took:.1f} s", file=sys.stderr)


MODULE, ERRORS, ACTIONS = "/sys/module/nvidia", "/run/nvidia-xid", "/run/nvidia-action"


def unhealthy(resource):
    return [device for device, health in resource.health().items() if health == "Unhealthy"]


def act(text):
    """What is to be done for GPUs by the simulated driver's word."""
    with open(ACTIONS + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.rename(ACTIONS + ".new", ACTIONS)


def happen(line, until, what):
    """An error of a GPU (test/hosts/lib/nvml-native.c), again until NVML watches."""
    began = again = time.monotonic()
    while not until():
        assert time.monotonic() < began + PATIENCE, f"waited in vain until {what}"
        if time.monotonic() >= again:
            again += 1
            with open(ERRORS, "a", encoding="ascii") as file:
                file.write(line + "\n")
        time.sleep(0.02)


def settle(resource):
    """Until the plugin has seen all that happen() wrote, which on a busy machine is more than one line."""
    until = time.monotonic() + PATIENCE
    count, since = 0, time.monotonic()
    while time.monotonic() < since + 3:
        if len(resource.lists) != count or unhealthy(resource):
            count, since = len(resource.lists), time.monotonic()
        assert time.monotonic() < until, "the health of GPUs changes on and on"
        time.sleep(0.02)
    return count


def reload():
    """The driver's module, which has another directory then."""
    os.rmdir(MODULE)
    os.mkdir(MODULE)


def case_xid(name):
    """A GPU whose driver reports that it is lost, until the driver is loaded again."""
    plugin = Plugin()
    resource = Resource(Kubelet(), name)
    ids = resource.ids()
    happen("1 79 -1 -1", lambda: unhealthy(resource) == [ids[1]], "a GPU is not healthy")
    act("1 1\n")
    assert code_of(lambda: resource.allocate([ids[1]])) == "FAILED_PRECONDITION"
    assert code_of(lambda: resource.allocate([ids[0], ids[2]])) == "OK"
    wait_for(lambda: "cannot be used: Xid 79, reset required" in plugin.said(), "the log says why")
    act("")
    reload()
    wait_for(lambda: not unhealthy(resource), "all are healthy again")
    assert resource.ids() == ids


def case_xid_parts(name):
    """An error of a part of a GPU (MIG), and one of the GPU."""
    Plugin()
    resource = Resource(Kubelet(), name)
    act("1 old\n")
    happen("1 94 1 0", lambda: unhealthy(resource) == ["MIG-00010000-2273-35fb-29be-3f6c49b83a96"], "a part is not healthy")
    happen("1 48 -1 -1", lambda: len(unhealthy(resource)) == len(resource.ids()) - 1, "no part is healthy")


def case_xid_words(name):
    """What is a program's own fault, and what the driver says after an error."""
    plugin = Plugin()
    resource = Resource(Kubelet(), name)
    ids = resource.ids()
    act("")
    happen("3 94 -1 -1", lambda: unhealthy(resource) == [ids[3]], "a GPU is not healthy")
    wait_for(lambda: not unhealthy(resource), "the driver says that it is")
    count = settle(resource)
    with open(ERRORS, "a", encoding="ascii") as file:
        file.writelines(f"2 {number} -1 -1\n" for number in (13, 31, 43, 45, 68, 109))
    time.sleep(4)
    assert len(resource.lists) == count, resource.lists
    # An older driver says nothing of it.
    act("0 old\n")
    happen("0 48 -1 -1", lambda: unhealthy(resource) == [ids[0]], "a GPU is not healthy")
    time.sleep(7)
    assert unhealthy(resource) == [ids[0]]
    # One that is lost without an error is seen when all are looked at, and when it was reset; the plugin's GPUs are not open meanwhile.
    act("1 lost\n")
    reload()
    wait_for(lambda: unhealthy(resource) == [ids[1]], "a GPU is lost")
    act("")
    until = time.monotonic() + 90
    while unhealthy(resource) and time.monotonic() < until:
        time.sleep(0.2)
    assert not unhealthy(resource) and plugin.runs()


def case_restarts(name):
    plugin = Plugin()
    kubelet = Kubelet()
    ids = Resource(kubelet, name).ids()
    for _ in range(3):
        kubelet.stop()
        kubelet = Kubelet()
        assert Resource(kubelet, name).ids() == ids
    # One that leaves its directory as it is, while the stream of the last one is open still.
    kubelet.stop()
    kubelet = Kubelet(keeps=True)
    assert Resource(kubelet, name).ids() == ids
    # It empties its directory a little later, or somebody else does.
    os.unlink(f"{DIRECTORY}/{kubelet.seen.pop(name)}")
    assert Resource(kubelet, name).ids() == ids
    # The plugin is killed, and leaves its socket.
    plugin.kill()
    kubelet.seen.clear()
    plugin = Plugin()
    resource = Resource(kubelet, name)
    assert resource.ids() == ids
    # A kubelet that is gone while the plugin starts.
    kubelet.stop()
    plugin.kill()
    for left in os.listdir(DIRECTORY):
        os.unlink(f"{DIRECTORY}/{left}")
    plugin = Plugin()
    wait_for(lambda: os.listdir(DIRECTORY), "the socket is there")
    assert Resource(Kubelet(), name).ids() == ids
    # It goes, and takes its sockets along.
    assert plugin.kill(signal.SIGTERM) == 0
    assert os.listdir(DIRECTORY) == ["kubelet.sock"], os.listdir(DIRECTORY)


def case_watch_lost(name):
    """Kubelet drops the stream without a new start, as it does after an error: the plugin registers again."""
    Plugin()
    kubelet = Kubelet()
    resource = Resource(kubelet, name)
    kubelet.seen.clear()
    resource.channel.close()
    kubelet.wait(name)


def case_two(name):
    """A second plugin waits until the first has ended, and disturbs neither it nor kubelet."""
    first = Plugin("--strategy=mounts")
    kubelet = Kubelet()
    resource = Resource(kubelet, name)
    Plugin("--strategy=mounts")
    wait_for(lambda: "another device plugin listens there" in first.said(), "the second plugin says that there is another")
    assert not resource.ended and kubelet.calls == 1, kubelet.calls
    assert resource.allocate(resource.ids()[:1])
    assert first.said().count("another device plugin") == 1, first.said()
    kubelet.seen.clear()
    first.kill()
    assert Resource(kubelet, name).ids() == resource.ids()


def case_unwritable(*names):
    """A directory to which the plugin may not write: it says so once for each resource, whatever happens there."""
    os.chmod(DIRECTORY, 0o500)
    plugin = Plugin("--strategy=mounts")
    wait_for(lambda: plugin.said().count("Permission denied") >= len(names), "it says so")
    for i in range(20):
        with open(f"{DIRECTORY}/{i}", "w", encoding="ascii"):
            pass
    os.chmod(DIRECTORY, 0o700)
    kubelet = Kubelet()
    kubelet.wait(*names)
    assert plugin.said().count("Permission denied") == len(names), plugin.said()


def case_refuses(name):
    plugin = Plugin()
    kubelet = Kubelet(refuses=True)
    wait_for(lambda: kubelet.calls >= 3, "it has tried three times")
    said = plugin.said()
    assert said.count("kubelet does not register: gRPC's status 13: not today") == 1, said
    assert "\x1b" not in said
    kubelet.refuses = False
    assert Resource(kubelet, name).ids()


def case_hangs(name):
    """A kubelet that takes connections and says nothing."""
    plugin = Plugin()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{DIRECTORY}/kubelet.sock")
    listener.listen(16)
    listener.settimeout(PATIENCE)
    first, _ = listener.accept()
    assert first.recv(24) == PREFACE
    second, _ = listener.accept()
    assert "kubelet does not register: it does not answer" in plugin.said(), plugin.said()
    second.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    third, _ = listener.accept()
    third.close()
    listener.close()
    assert Resource(Kubelet(), name).ids()


def case_no_look(name):
    """The process that looks at the host hangs, as one does that waits for a driver."""
    plugin = Plugin()
    resource = Resource(Kubelet(), name)
    looks = int(subprocess.run(["pgrep", "-P", str(plugin.process.pid)], capture_output=True, check=True).stdout.split()[0])
    os.kill(looks, signal.SIGSTOP)
    wait_for(lambda: set(resource.health().values()) == {"Unhealthy"}, "nothing is healthy of which nothing is known")
    assert "the process that looks at the host does not answer" in plugin.said(), plugin.said()
    os.kill(looks, signal.SIGCONT)
    wait_for(lambda: set(resource.health().values()) == {"Healthy"}, "all are healthy again")


def hostile_frames():
    """What a peer sends, and what its call or connection comes to; None: what it likes, as long as it ends."""
    call = field(1, field(1, "x"))
    message = b"\x00" + struct.pack(">I", len(call)) + call
    yield "no HTTP/2", b"GET / HTTP/1.1\r\n\r\n", None
    yield "garbage", bytes(range(256)) * 300, None
    yield "the preface and garbage", PREFACE + b"\xff" * 9000, None
    yield "a frame on stream 0", PREFACE + SETTINGS + frame(0, 0, 0, b"x" * 10), None
    yield "an even stream", PREFACE + SETTINGS + headers(2), None
    yield "data without headers", PREFACE + SETTINGS + frame(0, 0, 7, b"x"), None
    yield "a frame that is too long", PREFACE + SETTINGS + frame(0, 0, 1, b"x" * 20000), None
    yield "broken HPACK", PREFACE + SETTINGS + frame(1, 4, 1, b"\xff" * 200), None
    yield "headers that do not end", PREFACE + SETTINGS + frame(1, 0, 1, literal(":method", "POST")) + frame(9, 0, 1, literal("a", "b" * 120)) * 4000, None
    yield "pings", PREFACE + SETTINGS + frame(6, 0, 0, b"12345678") * 20000, None
    yield "settings", PREFACE + frame(4, 0, 0, b"\x00\x03\x00\x00\x00\x01" * 5) * 5000, None
    yield "calls that are taken back", PREFACE + SETTINGS + b"".join(headers(i) + frame(3, 0, i, b"\0\0\0\x08") for i in range(1, 6001, 2)), None
    yield "an unknown method", PREFACE + SETTINGS + headers(1, "Nothing") + frame(0, 1, 1, message), b"\x0212"
    yield "a method that is too long", PREFACE + SETTINGS + headers(1, "N" * 90) + frame(0, 1, 1, message), b"\x0212"
    yield "another verb", PREFACE + SETTINGS + headers(1, verb="GET") + frame(0, 1, 1, message), b"\x0212"
    yield "another content type", PREFACE + SETTINGS + headers(1, kind="text/html") + frame(0, 1, 1, message), b"415"
    yield "no message", PREFACE + SETTINGS + headers(1, end=True), b"\x0213"
    yield "half a message", PREFACE + SETTINGS + headers(1) + frame(0, 1, 1, message[:-1]), b"\x0213"
    yield "more than a message", PREFACE + SETTINGS + headers(1) + frame(0, 1, 1, message + b"x"), b"\x0213"
    yield "a compressed message", PREFACE + SETTINGS + headers(1) + frame(0, 1, 1, b"\x01" + message[1:]), b"\x0212"
    yield "a message of 4 GiB", PREFACE + SETTINGS + headers(1) + frame(0, 1, 1, b"\x00\xff\xff\xff\xff"), b"\x018"
    yield "no protobuf", PREFACE + SETTINGS + headers(1) + frame(0, 1, 1, b"\x00\0\0\0\x03\x0a\x7f\x01"), b"\x0213"
    yield "an unknown device", PREFACE + SETTINGS + headers(1) + frame(0, 1, 1, message), b"\x013"


def case_hostile(name):
    plugin = Plugin()
    resource = Resource(Kubelet(), name)
    before = plugin.memory()
    for what, data, answer in hostile_frames():
        peer = Peer(resource.path).send(data)
        if answer is None:
            peer.socket.shutdown(socket.SHUT_WR)
            peer.read_to_end()
        else:
            last = peer.read_last_headers()
            assert answer in last, f"{what}: {last} has no {answer}"
        peer.socket.close()
        assert plugin.runs(), f"{what}: it has ended"
        assert resource.allocate(resource.ids()[:1]), what
    # More peers than it takes, which say nothing, and calls that never end: those that are there are served.
    crowd = [Peer(resource.path).send(PREFACE + SETTINGS + headers(1)) for _ in range(40)]
    assert resource.allocate(resource.ids()[:1])
    newcomer = Peer(resource.path).send(PREFACE + SETTINGS + headers(1, "GetDevicePluginOptions") + frame(0, 1, 1, bytes(5)))
    assert b"\x010" in newcomer.read_last_headers(), "one more is not served"
    assert not resource.ended
    for peer in crowd:
        peer.socket.close()
    grown = plugin.memory() - before
    assert SANITIZED or grown < 2048, f"{grown} KiB more than before"
    assert SANITIZED or plugin.memory() < 6 * 1024, plugin.memory()
    print(f"# {plugin.memory()} KiB", file=sys.stderr)


def case_slow(name):
    """A call that never ends is closed, as is a peer that asks for nothing; one that watches is not."""
    Plugin()
    resource = Resource(Kubelet(), name)
    began = time.monotonic()
    Peer(resource.path).send(PREFACE + SETTINGS + headers(1)).read_to_end()
    took = time.monotonic() - began
    assert 8 < took < 25, took
    assert not resource.ended


def case_codes(name):
    Plugin()
    resource = Resource(Kubelet(), name)
    ids = resource.ids()
    print("unknown", code_of(lambda: resource.allocate(["GPU-nope"])))
    print("one of two", code_of(lambda: resource.allocate([ids[0], "GPU-nope"])))
    print("of another container", code_of(lambda: resource.allocate([ids[0]], ["0"])))
    print("no method", code_of(lambda: resource.call("Nothing")))
    print("no protobuf", code_of(lambda: resource.call("Allocate", b"\xff\xff\xff")))
    print("too long", code_of(lambda: resource.call("Allocate", b"\x00" * 200000)))
    print("many containers", code_of(lambda: resource.allocate(*[ids[:1]] * 100)))
    print("none", code_of(lambda: resource.allocate([])), code_of(resource.allocate))
    print("start", code_of(lambda: resource.call("PreStartContainer")))


def case_many(name):
    """As many calls as a node ever makes, from several peers at once, and what they leave."""
    plugin = Plugin()
    resource = Resource(Kubelet(), name)
    ids = resource.ids()
    for _ in range(200):
        resource.allocate(ids)
    before = plugin.memory()
    began = time.monotonic()
    with futures.ThreadPoolExecutor(4) as pool:
        for answer in pool.map(lambda _: resource.allocate(ids[:1], ids[1:]), range(3000)):
            assert len(answer) == 2
    rate = 3000 / (time.monotonic() - began)
    assert SANITIZED or plugin.memory() - before < 512, (before, plugin.memory())
    print(f"# {rate:.0f} a second, {plugin.memory()} KiB", file=sys.stderr)


class Engine:
    """An engine's Container Runtime Interface (CRI v1), as far as kubelet speaks it for a pod of one container."""

    def __init__(self, path):
        self.channel = grpc.insecure_channel(f"unix:{path}", options=[("grpc.default_authority", "localhost")])

    def call(self, method, request):
        return self.channel.unary_unary(f"/runtime.v1.RuntimeService/{method}")(request, timeout=120)

    def run(self, name, handler, command, answer):
        """What a container prints that is made with a plugin's answer."""
        logs = f"{DIRECTORY}.logs"
        os.makedirs(logs, exist_ok=True)
        host = field(2, field(1, field(1, 2)))  # the host's network
        sandbox = field(1, field(1, name) + field(2, name) + field(3, "default")) + field(3, logs)
        sandbox += field(8, field(1, os.environ.get("CTR_GPU_TEST_CGROUP", "/")) + host)
        pod = one(self.call("RunPodSandbox", field(1, sandbox) + field(2, handler)), 1)
        config = field(1, field(1, "one")) + field(2, field(1, "localhost/debian:1")) + b"".join(field(3, word) for word in command)
        config += b"".join(field(6, field(1, one(i, 1)) + field(2, one(i, 2))) for i in several(answer, 1))
        config += b"".join(field(7, field(1, one(i, 1)) + field(2, one(i, 2)) + field(3, 1)) for i in several(answer, 2))
        config += b"".join(field(10, field(1, one(i, 1)) + field(2, one(i, 2))) for i in several(answer, 4))
        config += b"".join(field(17, field(1, one(i, 1))) for i in several(answer, 5))
        config += field(11, f"{name}.log") + field(15, b"")
        container = one(self.call("CreateContainer", field(1, pod) + field(2, config) + field(3, sandbox)), 1)
        self.call("StartContainer", field(1, container))
        wait_for(lambda: one(one(self.call("ContainerStatus", field(1, container)), 1), 3) == 2, f"{name} has ended")
        self.call("RemovePodSandbox", field(1, pod))
        with open(f"{logs}/{name}.log", encoding="utf-8") as log:
            return [line.split(" ", 3)[3].rstrip("\n") for line in log]


def case_cri(name, strategy, path, handler, *command):
    """A container for each device of a resource, made by an engine with the plugin's answer."""
    Plugin(f"--strategy={strategy}")
    resource = Resource(Kubelet(), name)
    engine = Engine(path)
    for number, device in enumerate(resource.ids()):
        answer = one(resource.call("Allocate", field(1, field(1, device))), 1)
        for line in engine.run(f"{strategy.replace(',', '-')}-{handler}{number}", handler, command, answer):
            print(number, line)


def end():
    for plugin in Plugin.started:
        if plugin.runs():
            plugin.kill()


def main():
    os.makedirs(DIRECTORY, exist_ok=True)
    globals()["case_" + sys.argv[3].replace("-", "_")](*sys.argv[4:])
    sys.stdout.flush()
    end()
    # Channels and servers have threads that wait.
    os._exit(0)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        end()
        os._exit(1)
