"""A proxy between tallyd and Redis that understands RESP and does harm at a chosen place.

    proxy.arm(Fault("reply-before", nth=3))     # the third script is run, its answer never arrives

One connection from tallyd is one connection to Redis.  Commands and replies are counted over all
connections; `match` chooses which commands count, by default those that run a script.

Points:  command-before  the command and what follows is not sent on
         command-inside  half of its bytes are sent on
         command-after   all of it is sent on, the answer is not waited for
         command-stuck   it lies in the network: tallyd's side is cut at once, and Redis gets it when the test calls
                         `fault.deliver()`, which returns when Redis has run it
         command-held    the same, and tallyd waits; the command and what follows go on when it calls `fault.release()`
         reply-before    Redis has answered; nothing of it is given back
         reply-inside    half of the answer's bytes are given back
         reply-after     all of it is given back
         error           the command is not sent on; `text` is the answer; the connection stays.  As in Redis, a
                         MULTI that was refused a command, or its EXEC, comes to nothing
         spoiled         Redis has answered; the reply, or the `item`th one of a transaction's, is of another type, as `spoil` of
                         resp.py makes it; but for what is only queued
         reply-late      Redis has answered; this answer and those behind it come `late_s` later
         reply-held      the same until the test calls `fault.release()`
         reply-hole      no answer comes any more, for `late_s`; then the connection is cut.  `fault.arrived`: Redis
                         has answered, so what the test does now happens behind it
At all up to reply-after the connection is cut on both sides.
"""

import os
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass, field

from .resp import encode, frame_end, parse, spoil

CUTS = ("command-before", "command-inside", "command-after", "reply-before", "reply-inside",
        "reply-after")


def is_script(args):
    return args[0].upper() in (b"EVAL", b"EVALSHA", b"FCALL")


def is_any(_args):
    return True


@dataclass
class Fault:
    point: str
    nth: int = 1       # the nth matching command from arming on
    times: int = 1     # and how many matching ones from there on (cuts: 1)
    match: object = is_script
    text: str = ""
    late_s: float = 0.2
    at: int = None     # reply-inside: so many bytes instead of half
    then: object = None  # the Fault that is armed when this one is over
    length: int = 0    # reply-inside: of the whole reply
    item: int = 0      # spoiled: which one of a transaction..
    items: int = 0     # ..of so many; 0: of none
    fired: int = 0
    done: threading.Event = field(default_factory=threading.Event)
    way: threading.Event = field(default_factory=threading.Event)      # command-stuck, .. -held: it may go on..
    arrived: threading.Event = field(default_factory=threading.Event)  # ..and has been run

    def deliver(self, deadline_s=10):
        """Let the command that is stuck go on to Redis."""
        self.way.set()
        assert self.arrived.wait(deadline_s), "Redis has run it"

    def release(self):
        """Let the command or the answer that is held, and those behind it, go."""
        self.way.set()

    def hits(self, args):
        """Is this the command to harm?  Counts it."""
        if self.done.is_set() or not self.match(args):
            return False
        self.nth -= 1
        if self.nth > 0:
            return False
        self.fired += 1
        if self.fired >= self.times:
            self.done.set()
        return True


class Proxy:
    """Listens on a unix socket; forwards to another one."""

    made = 0  # each has a name of its own, as a server may have several

    def __init__(self, directory, upstream):
        self.directory, self.upstream = directory, upstream
        self.lock = threading.Lock()
        self.fault = None
        self.connections = set()
        self.accepted = 0
        self.commands = deque(maxlen=10000)  # names, for a test's own assertions
        self.flow = threading.Event()  # cleared: nothing passes (a black hole)
        self.replies_flow = threading.Event()  # cleared: commands pass, replies wait
        self.hold_match = None  # the first command that matches has the replies held
        self.delay_s = 0.0  # each piece of a reply is held so long
        self.flow.set()
        self.replies_flow.set()
        self.listener = self._listen()
        self.listener.listen(64)
        self.open = True
        threading.Thread(target=self._accept, daemon=True).start()

    def _listen(self):
        self.path = os.path.join(self.directory, f"proxy{Proxy.made}.sock")
        Proxy.made += 1
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        return listener

    def _connect(self):
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self.upstream))
        except OSError:
            server.close()
            raise
        return server

    def _take(self):
        return self.listener.accept()[0]

    @property
    def url(self):
        return f"unix:{self.path}"

    def arm(self, fault):
        with self.lock:
            self.fault = fault
        return fault

    def disarm(self):
        self.arm(None)

    def black_hole(self, on=True):
        """Nothing passes in either direction, connections stay."""
        (self.flow.clear if on else self.flow.set)()

    def hold_replies(self, on=True):
        """Redis works, but its answers wait."""
        (self.replies_flow.clear if on else self.replies_flow.set)()

    def hold_replies_at(self, match):
        """From the first command on that matches; hold_replies(False) ends it."""
        with self.lock:
            self.hold_match = match

    def freeze(self):
        """The connections that are there now take everything and give nothing, silently; new ones work."""
        with self.lock:
            for connection in self.connections:
                connection.thawed.clear()

    def thaw(self):
        """What the frozen connections took goes on to Redis now, even if tallyd has given them up."""
        with self.lock:
            frozen = [c for c in self.connections if not c.thawed.is_set()]
        for connection in frozen:
            connection.thaw()

    def cut_all(self):
        with self.lock:
            victims = list(self.connections)
        for connection in victims:
            connection.cut()

    def close(self):
        self.open = False
        self.flow.set()
        self.replies_flow.set()
        # close() alone does not wake the thread in accept()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut_all()
        self.thaw()

    def _accept(self):
        while self.open:
            try:
                client = self._take()
            except OSError:
                return
            try:
                server = self._connect()
            except OSError:
                client.close()
                continue
            with self.lock:
                self.accepted += 1
                connection = Connection(self, client, server)
                self.connections.add(connection)
            connection.start()

    def judge(self, args):
        """The fault that strikes this command, or None."""
        with self.lock:
            self.commands.append(args[0].upper().decode())
            if self.hold_match is not None and self.hold_match(args):
                self.hold_match = None
                self.replies_flow.clear()
            fault = self.fault
            if fault is None or not fault.hits(args):
                return None
            if fault.done.is_set() and fault.then is not None:
                self.fault = fault.then
            return fault


class TcpProxy(Proxy):
    """The same for a server of TCP, on a port of 127.0.0.1: what stands in front of a node of a cluster, which announces it."""

    def __init__(self, server):
        super().__init__(None, (server.host, server.port))

    def _listen(self):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        return listener

    def _connect(self):
        server = socket.create_connection(self.upstream)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server

    def _take(self):
        client = super()._take()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client


@dataclass
class Swap:
    """What stands in place of Redis's reply."""

    reply: bytes
    point: str = "swap"


class Connection:
    """Two threads: commands up, replies down.  `expected` has one entry for each reply to give back."""

    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        # None: a plain reply; Fault: harm it; bytes: give these, Redis was not asked; Swap: give these instead of its reply
        self.expected = deque()
        self.in_multi = self.is_void = False  # MULTI was sent on; one of its commands was refused
        self.is_stuck = False  # tallyd's side is cut, and Redis will get more: its answers are nobody's
        self.lock = threading.Lock()
        self.thawed = threading.Event()  # cleared: frozen
        self.thawed.set()
        self.taken = bytearray()  # what it took while it was frozen
        self.up_lock = threading.Lock()  # guards the last two, and the sending up

    def start(self):
        threading.Thread(target=self._run, args=(self._up,), daemon=True).start()
        threading.Thread(target=self._run, args=(self._down,), daemon=True).start()

    def cut(self):
        for side in (self.client, self.server):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _run(self, direction):
        try:
            direction()
        except OSError:
            pass
        finally:
            self.cut()
            with self.proxy.lock:
                last = self not in self.proxy.connections
                self.proxy.connections.discard(self)
            if last:  # the other direction is over too
                self.client.close()
                self.server.close()

    def _up(self):
        data = bytearray()
        while more := self.client.recv(262144):
            data += more
            at, pass_on = 0, bytearray()
            while (end := frame_end(data, at)) is not None:
                frame = data[at:end]
                at = end
                args = parse(frame)[0]
                fault = self.proxy.judge(args)
                frame, fault = self._transaction(args[0].upper(), frame, fault)
                if fault is None or fault.point == "swap":
                    self._expect(fault)
                elif fault.point == "error":
                    # what stands before it must be answered first: send that on, then queue the error
                    self._send_up(pass_on)
                    pass_on = bytearray()
                    self._expect(b"-" + fault.text.encode() + b"\r\n")
                    continue
                elif fault.point == "spoiled":
                    fault.items = -1 if args[0].upper() == b"EXEC" else 0
                    self._expect(fault)
                elif fault.point == "command-held":
                    self._send_up(pass_on)
                    pass_on = bytearray()
                    fault.arrived.set()
                    fault.way.wait()
                    self._expect(None)
                elif fault.point.startswith("command"):
                    self._expect(fault)  # Redis may answer before the client is cut off
                    self._cut_up(fault, pass_on, frame)
                    return
                else:
                    self._expect(fault)
                pass_on += frame
            del data[:at]
            self._send_up(pass_on)
        self.thawed.wait()

    def _transaction(self, name, frame, fault):
        """(what is sent on, what becomes of its reply), with regard to MULTI."""
        refused = fault is not None and fault.point == "error"
        if not self.in_multi:
            self.in_multi, self.is_void = name == b"MULTI" and not refused, False
            return frame, fault
        if name not in (b"EXEC", b"DISCARD"):
            self.is_void = self.is_void or refused
            return frame, fault
        self.in_multi = False
        if name == b"DISCARD" or not (refused or self.is_void):
            return frame, fault
        text = fault.text if refused else "EXECABORT Transaction discarded because of previous errors."
        return encode((b"DISCARD",)), Swap(b"-" + text.encode() + b"\r\n") if fault is None or refused else fault

    def _send_up(self, data):
        self.proxy.flow.wait()
        with self.up_lock:
            if self.thawed.is_set():
                self.server.sendall(data)
            else:
                self.taken += data

    def thaw(self):
        with self.up_lock:
            try:
                self.server.sendall(self.taken)
            except OSError:
                pass  # cut meanwhile
            self.taken.clear()
            self.thawed.set()

    def _cut_up(self, fault, before, frame):
        share = {"command-before": 0, "command-inside": len(frame) // 2, "command-after": len(frame), "command-stuck": 0}
        self._send_up(before + frame[:share[fault.point]])
        # the client sees the end at once; Redis reads what it was sent, then the end
        self.is_stuck = fault.point == "command-stuck"
        self.client.shutdown(socket.SHUT_RDWR)
        if fault.point == "command-stuck":
            fault.way.wait()
            self._send_up(frame)
        self.server.shutdown(socket.SHUT_WR)
        while self.server.recv(65536):
            pass
        fault.arrived.set()

    def _expect(self, what):
        """Queue what to do with the next reply.  An error goes out at once if nothing stands before it."""
        with self.lock:
            self.expected.append(what)
            self._flush_errors()

    def _flush_errors(self):
        while self.expected and isinstance(self.expected[0], bytes):
            self.client.sendall(self.expected.popleft())

    def _down(self):
        data = bytearray()
        while more := self.server.recv(262144):
            data += more
            if self.proxy.delay_s:
                time.sleep(self.proxy.delay_s)
            self.proxy.flow.wait()
            self.proxy.replies_flow.wait()
            self.thawed.wait()
            at = 0
            while (end := frame_end(data, at)) is not None:
                frame = data[at:end]
                at = end
                with self.lock:
                    fault = self.expected.popleft() if self.expected else None
                    if fault is not None and (fault.point == "reply-before" or fault.point.startswith("command")):
                        return
                    if fault is not None and fault.point == "swap":
                        frame, fault = fault.reply, None
                    if fault is not None and fault.point == "spoiled":
                        if frame == b"+QUEUED\r\n":
                            fault.fired -= 1
                        else:
                            frame, fault.items = spoil(frame, fault.item if fault.items else None, fault.text)
                        fault = None
                    if fault is not None and fault.point in ("reply-late", "reply-hole"):
                        fault.arrived.set()
                        time.sleep(fault.late_s)  # the fault itself
                        if fault.point == "reply-hole":
                            return
                    if fault is not None and fault.point == "reply-held":
                        fault.arrived.set()
                        fault.way.wait()
                        fault = None
                    if fault is not None and fault.point == "reply-inside":
                        self.client.sendall(frame[:max(1, len(frame) // 2) if fault.at is None else fault.at])
                        fault.length = len(frame)
                        return
                    if not self.is_stuck:
                        self.client.sendall(frame)
                    if fault is not None and fault.point != "reply-late":
                        return
                    self._flush_errors()
            del data[:at]
