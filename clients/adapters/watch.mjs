// A file watcher of npm. Each batch of events goes out as a JSON line, [[kind, path], …]; an empty one once it watches,
// and one for each line that comes in, when all timers of the watcher have run.

import { createInterface } from "node:readline";

// Longer than any timer. Chokidar holds events back for 100 ms, and leaves out those that follow another within 50 ms;
// @parcel/watcher reports at once what comes after 500 ms of silence, and collects the rest for a while.
const PAUSES = { chokidar: 200, parcel: 600 };

const [, , name, folder] = process.argv;

function report(events) {
  process.stdout.write(`${JSON.stringify(events)}\n`);
}

async function chokidar() {
  const module = await import("chokidar");
  const { watch } = module.default ?? module;
  const watcher = watch(folder, { ignoreInitial: true });
  watcher.on("all", (kind, path) => report([[kind, path]]));
  await new Promise((ready) => watcher.on("ready", ready));
}

async function parcel() {
  const { default: watcher } = await import("@parcel/watcher");
  const told = (error, events) => {
    if (error) throw error;
    report(events.map(({ type, path }) => [type, path]));
  };
  await watcher.subscribe(folder, told, { backend: "inotify" });
}

await { chokidar, parcel }[name]();
report([]);
createInterface({ input: process.stdin }).on("line", () => setTimeout(report, PAUSES[name], []));
