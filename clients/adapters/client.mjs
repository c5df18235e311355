// @modelcontextprotocol/client, which knows both eras of the protocol and asks for the newer one only when told to.

import {
  Client,
  ResourceNotFoundError,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { z } from "zod";
import { person, talk } from "./talk.mjs";

const [protocol, kind, target, ...args] = process.argv.slice(2);
const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: target, args })
    : new StreamableHTTPClientTransport(new URL(target));
const options = protocol === "2026-07-28" ? { versionNegotiation: { mode: "auto" } } : {};
options.capabilities = { elicitation: { form: {} } };

const client = new Client({ name: "adapter", version: "1.0.0" }, options);
client.setRequestHandler("elicitation/create", person);
await client.connect(transport);
const protocolVersion = client.getNegotiatedProtocolVersion();
const capabilities = client.getServerCapabilities();
const serverInfo = client.getServerVersion();

/** Errors as the server told them, where this client tells them otherwise. */
function untold(error) {
  // A resource that is not found has one code for it, whatever the era calls it.
  if (error instanceof ResourceNotFoundError && protocol !== "2026-07-28") {
    throw { code: -32002, message: error.message };
  }
  // A method that is unknown is HTTP's 404 in the newer era, of which it hands over the body unread.
  throw error.data?.status === 404 ? JSON.parse(error.data.text).error : error;
}

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
      return client.readResource(params).catch(untold);
    default:
      return client.request({ method, params }, z.looseObject({})).catch(untold);
  }
});
await client.close();
