// Tries a marchwarden binary with other people's clients: node run.mjs BINARY.
// Prints a PASS line for every client, transport and era that holds, or FAIL lines that
// say what does not; exits 1 on a FAIL.
import { tryInspector } from './inspector.mjs';
import { tryTypeScript } from './typescript.mjs';
import { World } from './world.mjs';

const world = new World(process.argv[2]);
let failed = false;

// cell runs the checks of one client. A check throws, or gives a word on how it went.
async function cell(name, checks) {
  const held = [];
  for (const [what, check] of checks) {
    try {
      const word = await check();
      held.push(word ? `${what} (${word})` : what);
    } catch (err) {
      failed = true;
      console.log(`FAIL ${name}, ${what}: ${err?.message ?? err}`);
      if (what === 'connect') break;
    }
  }
  if (held.length === checks.length) console.log(`PASS ${name}: ${held.join(', ')}`);
}

try {
  await world.open();
  // The clients wait more than they work.
  await Promise.all([tryTypeScript(world, cell), tryInspector(world, cell)]);
} catch (err) {
  failed = true;
  console.log(`FAIL clients: ${err?.stack ?? err}`);
} finally {
  await world.close();
}
process.exit(failed ? 1 : 0);
