// Judges one run of the conformance suite, also what the suite itself does not score:
// node judge.mjs NAME RESULTS BASELINE STATUS LEAST. RESULTS is the suite's output folder,
// STATUS its exit status, LEAST how many checks must have passed. Every check that did not
// pass must be in BASELINE, and the other way round. Prints a PASS line with counts, or
// FAIL lines; exits 1 on a FAIL.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [name, results, baseline, status, least] = process.argv.slice(2);
const expected = new Set([...readFileSync(baseline, 'utf8').matchAll(/^ {2}- (\S+)$/gm)].map((m) => m[1]));
const problems = [];
const missed = new Set();
const count = { SUCCESS: 0, FAILURE: 0, WARNING: 0, SKIPPED: 0, INFO: 0, tasks: 0 };

let folders = [];
try {
  folders = readdirSync(results).filter((f) => f.startsWith('server-'));
} catch {
  problems.push('the suite wrote no results');
}
for (const folder of folders) {
  const scenario = /^server-(.+?)-\d{4}-\d\d-\d\dT/.exec(folder)[1];
  for (const check of JSON.parse(readFileSync(join(results, folder, 'checks.json'), 'utf8'))) {
    count[check.status]++;
    if (check.status === 'SUCCESS' && scenario.startsWith('tasks-')) count.tasks++;
    if (check.status !== 'FAILURE' && check.status !== 'WARNING') continue;
    const entry = `${scenario}:${check.id}`;
    missed.add(entry);
    if (!expected.has(entry)) problems.push(`${entry}: ${check.errorMessage ?? check.description}`);
  }
}
for (const entry of expected) if (!missed.has(entry)) problems.push(`${entry}: is in the baseline and did not fail`);
if (status !== '0') problems.push(`the suite exits with ${status}`);
if (count.SUCCESS < Number(least)) problems.push(`${count.SUCCESS} checks passed, and ${least} did before`);

for (const problem of problems) console.log(`FAIL conformance ${name}: ${problem}`);
if (problems.length > 0) process.exit(1);
console.log(`PASS conformance ${name}: ${count.SUCCESS} checks passed (${count.tasks} on tasks), ${count.FAILURE + count.WARNING} are in the baseline, ` +
  `${count.SKIPPED} skipped; ${folders.length} scenarios`);
