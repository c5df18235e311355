#!/usr/bin/env node
require("../run.js")("file-editor");
