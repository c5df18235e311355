// The client of @modelcontextprotocol/sdk, which knows the protocol up to 2025-11-25.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { person, talk } from "./talk.mjs";

const [, kind, target, ...args] = process.argv.slice(2);
const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: target, args })
    : new StreamableHTTPClientTransport(new URL(target));
// The client tells its transport what was agreed on, and nobody else.
let protocolVersion;
const tellTransport = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  protocolVersion = version;
  tellTransport?.(version);
};

const forms = { capabilities: { elicitation: { form: {} } } };
const client = new Client({ name: "adapter", version: "1.0.0" }, forms);
client.setRequestHandler(ElicitRequestSchema, person);
await client.connect(transport);
const capabilities = client.getServerCapabilities();
const serverInfo = client.getServerVersion();

await talk({ protocolVersion, capabilities, serverInfo }, (method, params) => {
  switch (method) {
    case "tools/list":
      return client.listTools();
    case "tools/call":
      return client.callTool(params);
    case "resources/list":
      return client.listResources();
    case "resources/templates/list":
      return client.listResourceTemplates();
    case "resources/read":
      return client.readResource(params);
    default:
      return client.request({ method, params }, ResultSchema);
  }
});
await client.close();
