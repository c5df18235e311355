// A server whose only tool has schemas that no lint may let pass: it shows that the lint looks.

import { createInterface } from "node:readline";

const inputSchema = { type: "object", properties: { anything: true } };
const answers = {
  initialize: {
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
    serverInfo: { name: "careless", version: "1.0.0" },
  },
  "tools/list": { tools: [{ name: "careless", inputSchema }] },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) {
    console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method] ?? {} }));
  }
}
