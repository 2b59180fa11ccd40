// Calls a marchwarden binary through the TypeScript SDK:
// node ts-v1.mjs BINARY QUESTION. Prints PASS and FAIL lines; exits 1 on a FAIL.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport, getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';

const [command, question] = process.argv.slice(2);
let failed = false;

function check(name, problem) {
  console.log(problem ? `FAIL typescript sdk ${name}: ${problem}` : `PASS typescript sdk ${name}`);
  failed ||= Boolean(problem);
}

const strays = [];
const client = new Client({ name: 'marchwarden-check', version: '1.0.0' });
client.onerror = (err) => strays.push(String(err));
const transport = new StdioClientTransport({
  command,
  args: ['serve', 'files'],
  env: { ...getDefaultEnvironment(), MARCHWARDEN_HOME: process.env.MARCHWARDEN_HOME ?? '' },
});

try {
  await client.connect(transport);

  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name);
  check('exactly one tool, research', names.join() !== 'research' && `tools are [${names}]`);

  const seen = [];
  const result = await client.callTool({ name: 'research', arguments: { question } }, undefined, {
    onprogress: (p) => seen.push(p),
    resetTimeoutOnProgress: true,
  });
  const citations = result.structuredContent?.citations ?? [];
  check('structured content with citations', result.isError ? result.content[0].text : citations.length === 0 && 'no citations');
  check('receives progress', seen.length === 0 && 'no progress came');
  const rising = seen.every((p, i) => p.message && (i === 0 || p.progress > seen[i - 1].progress));
  check('progress rises and has messages', !rising && JSON.stringify(seen));

  const stop = new AbortController();
  const cancelled = client.callTool({ name: 'research', arguments: { question, depth: 'deep' } }, undefined, { signal: stop.signal });
  stop.abort('enough');
  await cancelled.then(() => {}, () => {}); // it may have been faster than the abort
  const { tools: after } = await client.listTools();
  check('the server lives after a cancelled call', after.length !== 1 && `tools are [${after.map((tool) => tool.name)}]`);
  check('nothing but protocol on stdout', strays.length > 0 && strays.join('; '));

  const began = performance.now();
  await client.close();
  const took = performance.now() - began;
  check('the server ends with its input', took > 1500 && `took ${Math.round(took)} ms`);
} catch (err) {
  check('session', String(err));
}
process.exit(failed ? 1 : 0);
