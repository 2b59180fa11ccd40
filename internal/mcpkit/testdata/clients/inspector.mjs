// The MCP inspector, as people start it: one process a request.
import { execFile } from 'node:child_process';
import { join } from 'node:path';

import { must, question } from './world.mjs';

const program = join(import.meta.dirname, 'node_modules', '.bin', 'mcp-inspector');

// inspect gives the exit status and what was printed, parsed if it is JSON.
function inspect(target, args) {
  return new Promise((done) => {
    execFile(process.execPath, [program, '--cli', ...target, ...args, '--format', 'json'], { timeout: 30_000, maxBuffer: 32 << 20 }, (err, stdout, stderr) => {
      let output;
      try {
        output = JSON.parse(stdout);
      } catch {
        // the checks say what they miss
      }
      done({ status: err ? (err.code ?? 'killed') : 0, output, said: `${stdout.slice(0, 300)} ${stderr.slice(0, 300)}`.trim() });
    });
  });
}

// result is what a request must give that succeeds.
async function result(target, args) {
  const ran = await inspect(target, args);
  must(ran.status === 0 && ran.output?.result, `exit status ${ran.status}: ${ran.said}`);
  return ran.output;
}

function checks(target, version) {
  let trace;
  return [
    ['initialize', async () => {
      const { result: res } = await result(target, ['--method', 'initialize']);
      must(res.protocolVersion === version, `negotiated ${res.protocolVersion}, not ${version}`);
    }],
    ['tools/list --strict', async () => {
      const { result: { tools }, schemaFindings } = await result(target, ['--method', 'tools/list', '--strict']);
      must(tools.length === 1 && tools[0].name === 'research', `tools are [${tools.map((t) => t.name)}]`);
      must(tools[0].inputSchema && tools[0].outputSchema, 'a schema is missing');
      must(!schemaFindings?.length, `findings: ${JSON.stringify(schemaFindings)}`);
      return '0 warnings';
    }],
    ['tools/call', async () => {
      const { result: res } = await result(target, ['--method', 'tools/call', '--tool-name', 'research', '--tool-arg', `question=${question}`, 'depth=shallow']);
      must(!res.isError, res.content?.[0]?.text);
      must(res.structuredContent?.citations?.length > 0, 'no citations');
      must(res.content?.[0]?.text, 'no readable text');
      trace = res.structuredContent.trace_id;
    }],
    ['bad input', async () => {
      const ran = await inspect(target, ['--method', 'tools/call', '--tool-name', 'research', '--tool-arg', 'depth=ultra']);
      must(ran.status === 5, `exit status ${ran.status}, not 5 for a tool error: ${ran.said}`);
      must(ran.output?.result?.content?.[0]?.text.startsWith('question: '), `the error does not name the field: ${ran.said}`);
    }],
    ['resources/read', async () => {
      const contract = await result(target, ['--method', 'resources/read', '--uri', 'marchwarden://contract']);
      must(JSON.parse(contract.result.contents[0].text).version === 'v1', 'the contract has no version');
      must(trace, 'the call gave no trace_id');
      const again = await result(target, ['--method', 'resources/read', '--uri', `marchwarden://result/${trace}`]);
      must(JSON.parse(again.result.contents[0].text).trace_id === trace, 'the result is that of another run');
    }],
    ['prompts/get', async () => {
      const prompt = await result(target, ['--method', 'prompts/get', '--prompt-name', 'verify-claim', '--prompt-args', 'claim=Tomatoes are berries']);
      must(prompt.result.messages[0].content.text.includes('«Tomatoes are berries»'), 'the claim is not in the words');
    }],
    ['--app-info', async () => {
      const ran = await inspect(target, ['--method', 'tools/call', '--tool-name', 'research', '--app-info']);
      must(ran.status === 0 && ran.output?.appInfo?.hasApp === true, `exit status ${ran.status}: ${ran.said}`);
    }],
  ];
}

export async function tryInspector(world, cell) {
  const env = Object.entries(world.quickEnv).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  const stdio = (era) => ['--protocol-era', era, ...env, world.binary, 'serve', 'pi'];
  const http = (era, url) => [url, '--transport', 'http', '--protocol-era', era];
  await Promise.all([['legacy', '2025-11-25'], ['modern', '2026-07-28']].map(async ([era, version]) => {
    await cell(`inspector ${era} http`, checks(http(era, world.quick), version));
    await cell(`inspector ${era} stdio`, checks(stdio(era), version));
  }));
  const bearer = ['--header', `Authorization: Bearer ${world.token}`];
  await cell('inspector with a token', [
    ['none is refused', async () => {
      const ran = await inspect([...http('modern', world.guarded), '--stored-auth-only'], ['--method', 'tools/list']);
      must(ran.status === 3, `exit status ${ran.status}, not 3 for a token that is needed: ${ran.said}`);
    }],
    ['legacy', () => result([...http('legacy', world.guarded), ...bearer], ['--method', 'tools/list']).then(() => '')],
    ['modern', () => result([...http('modern', world.guarded), ...bearer], ['--method', 'tools/list']).then(() => '')],
  ]);
}
