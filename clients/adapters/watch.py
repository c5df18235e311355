"""The file watcher of PyPI's watchfiles.

Each set of changes goes out as a JSON line, [[kind, path], …]; an empty one once it watches.
"""

import json
import sys

from watchfiles import watch

is_ready = False
# The first time that nothing has changed is when the folder is watched.
for changes in watch(sys.argv[1], yield_on_timeout=True, rust_timeout=100):
    if changes or not is_ready:
        is_ready = True
        print(json.dumps([[change.name, path] for change, path in changes]), flush=True)
