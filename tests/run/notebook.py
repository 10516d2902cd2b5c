"""A notebook's kernel (ipykernel) whose CUDA kernel never ends, and a Ctrl-C: `python notebook.py CUINSTR`. It needs jupyter_client."""
import os
import signal
import subprocess
import sys
import tempfile
import time

from jupyter_client import BlockingKernelClient

BEGIN = r'''
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
ptx = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry spin() {
$L: bra $L;
}
.visible .entry ends() { ret; }
"""
context, module = ctypes.c_void_p(), ctypes.c_void_p()
driver.cuInit(0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), driver.cuCtxSetCurrent(context)
def run(name):
    function = ctypes.c_void_p()
    driver.cuModuleGetFunction(ctypes.byref(function), module, name)
    launched = driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    return launched, driver.cuCtxSynchronize()
print("loaded", driver.cuModuleLoadData(ctypes.byref(module), ptx))
'''


def said(client, code, within):
    """What a cell prints, and the error that it ends with."""
    text, error = [], []

    def hear(message):
        if message["msg_type"] == "stream":
            text.append(message["content"]["text"])
            sys.stdout.write(message["content"]["text"])
            sys.stdout.flush()
        elif message["msg_type"] == "error":
            error.append(message["content"]["ename"])

    client.execute_interactive(code, timeout=within, output_hook=hear)
    return "".join(text).split(), error


def main(command):
    file = os.path.join(tempfile.mkdtemp(), "connection.json")
    words = [command, "run", "--on-stop", "leave", "--", sys.executable, "-m", "ipykernel_launcher", "-f", file]
    kernel = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        until = time.time() + 120
        while not os.path.exists(file) or os.path.getsize(file) == 0:
            assert kernel.poll() is None and time.time() < until, "no kernel"
            time.sleep(0.05)
        client = BlockingKernelClient(connection_file=file)
        client.load_connection_file()
        client.start_channels()
        client.wait_for_ready(timeout=120)
        assert said(client, BEGIN, 120) == (["loaded", "0"], []), "the module is not loaded"
        # As Jupyter does it: the signal goes to the process that it started.
        identity = client.execute('print("hangs", flush=True); run(b"spin")')
        while True:
            message = client.get_iopub_msg(timeout=120)
            if message["msg_type"] == "stream" and "hangs" in message["content"]["text"]:
                break
        time.sleep(1)
        kernel.send_signal(signal.SIGINT)
        while True:
            message = client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") == identity and message["msg_type"] == "error":
                print("interrupted", message["content"]["ename"])
            if message["parent_header"].get("msg_id") == identity and message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        found, error = said(client, 'print("after", *run(b"ends"))', 120)
        assert found == ["after", "0", "0"] and not error, (found, error)
        client.shutdown()
        print("ended", kernel.wait(120))
    finally:
        if kernel.poll() is None:
            os.killpg(kernel.pid, signal.SIGKILL)


main(sys.argv[1])
