// Runs the binary of this machine's package in its own place: same arguments, input, output, signals and exit status.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const SIGNALS = ["SIGHUP", "SIGINT", "SIGTERM"];

function find(name) {
  const platform = `${process.platform}-${process.arch}`;
  const owned = `@{{owner_lowercase}}/file-editor-${platform}`;
  const suffix = process.platform === "win32" ? ".exe" : "";
  try {
    return require.resolve(`${owned}/bin/${name}${suffix}`);
  } catch {
    const known = Object.keys(require("./package.json").optionalDependencies);
    console.error(
      known.includes(owned)
        ? `file-editor: the package ${owned} is not installed; install again, without --omit=optional or --no-optional`
        : `file-editor: there is no binary for ${platform}; build it: {{repository}}`,
    );
    process.exit(1);
  }
}

module.exports = (name) => {
  const child = spawn(find(name), process.argv.slice(2), { stdio: "inherit" });
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(`file-editor: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
};
