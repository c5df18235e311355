// Questions come in as JSON lines; what the client's API made of each goes out as one. What the server asks a person
// meanwhile goes out too, and the next line that comes in is what they said.

import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function hear() {
  const { done, value } = await lines.next();
  return done ? undefined : JSON.parse(value);
}

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

/** A person, who answers a form. */
export async function person({ params }) {
  say({ asked: params });
  return await hear();
}

/** Tells what the client was `opened` with, then puts every question to `ask` until there are no more. */
export async function talk(opened, ask) {
  const result = (result) => ({ result });
  const error = ({ code, message }) => ({ error: { code, message } });
  say(result(opened));
  for (let question = await hear(); question; question = await hear()) {
    say(await ask(question.method, question.params).then(result, error));
  }
}
