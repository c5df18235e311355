// Questions come in as JSON lines; what the client's API made of each goes out as one.

import { createInterface } from "node:readline";

/** Tells what the client was `opened` with, then puts every question to `ask` until there are no more. */
export async function talk(opened, ask) {
  const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
  const result = (result) => ({ result });
  const error = ({ code, message }) => ({ error: { code, message } });
  say(result(opened));
  for await (const line of createInterface({ input: process.stdin })) {
    const { method, params } = JSON.parse(line);
    say(await ask(method, params).then(result, error));
  }
}
