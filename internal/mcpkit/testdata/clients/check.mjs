// Judges one output of the inspector: node check.mjs list|call|bad FILE.
import { readFileSync } from 'node:fs';

const [kind, file] = process.argv.slice(2);

const judges = {
  list(result) {
    const names = (result.tools ?? []).map((tool) => tool.name);
    if (names.length !== 1 || names[0] !== 'research') return `tools are [${names}]`;
    if (!result.tools[0].inputSchema || !result.tools[0].outputSchema) return 'a schema is missing';
  },
  call(result) {
    if (result.isError) return `tool error: ${result.content?.[0]?.text}`;
    if (!result.structuredContent?.citations?.length) return 'no citations';
    if (!result.content?.[0]?.text) return 'no readable text';
  },
  bad(result) {
    if (!result.isError) return 'no error';
    if (result.content?.[0]?.text.startsWith('question: ') !== true) return `the error does not name the field: ${result.content?.[0]?.text}`;
  },
};

let output;
try {
  output = JSON.parse(readFileSync(file, 'utf8'));
} catch (err) {
  console.log(`the inspector gave no JSON (${err.message})`);
  process.exit(1);
}
const problem = output.result ? judges[kind](output.result) : `no result: ${JSON.stringify(output)}`;
if (problem) {
  console.log(problem);
  process.exit(1);
}
