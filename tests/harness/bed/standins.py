"""Programs that stand in for the agent where the bed itself is tested."""

from __future__ import annotations

import sys

WATCHDOG = """
import fcntl, os, struct, sys, time
def arm(seconds):
    device = os.open("/dev/watchdog", os.O_RDWR)
    fcntl.ioctl(device, 0xC0045706, struct.pack("i", seconds))
    return device
"""


def program(source: str) -> list[str]:
    """The command that runs it."""
    return [sys.executable, "-c", source]


IDLE = program("import signal; signal.pause()")
HEARS = program("""
import socket, sys
ear = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
ear.bind(("::", 7777))
while True:
    words, (sender, *_) = ear.recvfrom(100)
    print(sender.replace("::ffff:", ""), words.decode(), file=sys.stderr)
""")
SAYS = "import socket, sys; to, words = sys.argv[1:]; " + (
    "socket.socket(socket.AF_INET6 if ':' in to else socket.AF_INET, socket.SOCK_DGRAM)"
    ".sendto(words.encode(), (to, 7777))"
)
TALKS = """
import socket, sys
connection = None
for line in sys.stdin:
    command, _, argument = line.strip().partition(" ")
    try:
        connection = connection or socket.create_connection(("10.77.0.1", 6443), 5)
        if command == "say":
            connection.sendall(argument.encode())
            continue
        connection.settimeout(float(argument))
        print(connection.recv(100).decode() or "end", flush=True)
    except socket.timeout:
        print("silence", flush=True)
    except ConnectionError:
        print("reset", flush=True)
"""
"""A conversation with the API's address, led from outside: `say WORDS`, or `hear SECONDS`."""

REBOOTS = program("import ctypes; ctypes.CDLL(None).reboot(0x01234567)")
FEEDS = program(WATCHDOG + "device = arm(1)\nwhile True:\n    os.write(device, b'.'); time.sleep(0.2)")
STORES = program(
    WATCHDOG
    + """
import signal, socket
if "LISTEN_FDS" in os.environ:
    assert os.environ["LISTEN_PID"] == str(os.getpid())
    device = 3
    print("handed over:", os.environ["LISTEN_FDNAMES"], file=sys.stderr)
else:
    device = arm(2)
os.write(device, b".")
if "LISTEN_FDS" not in os.environ:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.connect(os.environ["NOTIFY_SOCKET"])
        socket.send_fds(notify, [b"FDSTORE=1\\nFDNAME=watchdog"], [device])
        notify.send(b"READY=1\\nSTATUS=armed")
signal.pause()
"""
)
CHATTERS = program("""
import socket
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.connect("/run/systemd/notify")
notify.setblocking(False)
try:
    for _ in range(1000):
        notify.send(b"STATUS=more")
except BlockingIOError:
    print("full")
""")
