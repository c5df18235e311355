#!/usr/bin/env node
require("../run.js")("codex-cli-acp");
