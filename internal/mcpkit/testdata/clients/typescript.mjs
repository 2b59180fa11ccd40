// The TypeScript SDKs of both generations, with the same checks.
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HTTPV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { must, question, soon } from './world.mjs';

const self = { name: 'marchwarden-check', version: '1.0.0' };

const generations = {
  v1: {
    era: '2025-11-25', stdio: StdioV1, http: HTTPV1,
    client: () => new ClientV1(self),
    call: (client, args, options) => client.callTool({ name: 'research', arguments: args }, undefined, options),
  },
  'v2 legacy': {
    era: '2025-11-25', stdio: StdioV2, http: v2.StreamableHTTPClientTransport,
    client: () => new v2.Client(self, { versionNegotiation: { mode: 'legacy' } }),
    call: (client, args, options) => client.callTool({ name: 'research', arguments: args }, options),
  },
  'v2 auto': {
    era: '2026-07-28', stdio: StdioV2, http: v2.StreamableHTTPClientTransport,
    client: () => new v2.Client(self, { versionNegotiation: { mode: 'auto' } }),
    call: (client, args, options) => client.callTool({ name: 'research', arguments: args }, options),
  },
};

// dial connects to the quick server, or to the one whose model never answers.
async function dial(world, generation, link, slow) {
  const client = generation.client();
  const strays = [];
  // The SDKs handle an answer at once and a notification a turn later: what came before the
  // answer in the same read then has a token that they forgot. That no progress is sent after
  // an answer, the tests in Go see on the wire.
  const late = /progress notification for an unknown token/;
  client.onerror = (err) => late.test(String(err)) || strays.push(String(err));
  const transport = link === 'http'
    ? new generation.http(new URL(slow ? world.slow : world.quick))
    : new generation.stdio({ command: world.binary, args: slow ? world.slowArgs : ['serve', 'pi'], env: { ...process.env, ...(slow ? world.slowEnv : world.quickEnv) }, stderr: 'ignore' });
  await client.connect(transport);
  const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? generation.era;
  must(version === generation.era, `negotiated ${version}, not ${generation.era}`);
  return { client, strays };
}

function checks(world, generation, link, mark) {
  let quick, trace, answer;
  const seen = [];
  return [
    ['connect', async () => {
      quick = await dial(world, generation, link, false);
    }],
    ['list', async () => {
      const { tools } = await quick.client.listTools();
      must(tools.length === 1 && tools[0].name === 'research', `tools are [${tools.map((t) => t.name)}]`);
    }],
    ['call', async () => {
      const res = await generation.call(quick.client, { question }, { onprogress: (p) => seen.push(p), resetTimeoutOnProgress: true });
      must(!res.isError, res.content?.[0]?.text);
      must(res.structuredContent?.citations?.length > 0, 'no citations');
      ({ trace_id: trace, answer } = res.structuredContent);
    }],
    ['progress', () => {
      must(seen.length > 1, `${seen.length} messages came`);
      must(seen.every((p, i) => p.message && (i === 0 || p.progress > seen[i - 1].progress)), `it does not rise, or has no words: ${JSON.stringify(seen)}`);
      return `${seen.length} messages`;
    }],
    ['resource read', async () => {
      const contract = await quick.client.readResource({ uri: 'marchwarden://contract' });
      must(JSON.parse(contract.contents[0].text).version === 'v1', 'the contract has no version');
      const again = await quick.client.readResource({ uri: `marchwarden://result/${trace}` });
      must(JSON.parse(again.contents[0].text).answer === answer, 'the result has another answer');
    }],
    ['cancel', () => cancel(world, generation, link, mark)],
    ['close', async () => {
      must(quick.strays.length === 0, quick.strays.join('; '));
      const began = performance.now();
      await quick.client.close();
      const took = performance.now() - began;
      must(took < 1500, `the server took ${Math.round(took)} ms to end`);
    }],
  ];
}

// cancel stops a call whose research waits for a model, and holds the server to letting
// go of the model and to going on.
async function cancel(world, generation, link, mark) {
  const { client } = await dial(world, generation, link, true);
  const stop = new AbortController();
  const words = [];
  const call = generation.call(client, { question: `${question} ${mark}` }, { signal: stop.signal, onprogress: (p) => words.push(p.message) });
  const outcome = call.then(() => 'answered', () => 'stopped');
  await soon(() => world.asked(mark), 5000, `the model was not asked (${words.join('; ')})`);
  const began = performance.now();
  stop.abort('enough');
  must(await outcome === 'stopped', 'the call was answered');
  await soon(() => !world.waitedFor(mark), 2000, 'the research went on, for the model was still waited for');
  const took = Math.round(performance.now() - began);
  const { tools } = await client.listTools();
  must(tools.length === 1, 'the server does not live after it');
  await client.close();
  return `research stopped after ${took} ms`;
}

export async function tryTypeScript(world, cell) {
  const names = Object.keys(generations);
  await Promise.all(['http', 'stdio'].map(async (link) => {
    for (const name of names) {
      await cell(`typescript ${name} ${link}`, checks(world, generations[name], link, `[mark ${name} ${link}]`));
    }
  }));
}
