// What the clients meet: servers of the binary under test, and a model that never answers.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const question = 'What are ideal crops for a garden in Utah?';

// must throws unless something holds.
export function must(holds, problem) {
  if (!holds) throw new Error(problem);
}

// soon gives the first true value of probe, or throws after the time given.
export async function soon(probe, ms, problem) {
  for (const end = performance.now() + ms; ; ) {
    const value = await probe();
    if (value) return value;
    must(performance.now() < end, `${problem} within ${ms} ms`);
    await new Promise((go) => setTimeout(go, 20));
  }
}

export class World {
  #home = mkdtempSync(join(tmpdir(), 'marchwarden-'));
  #servers = [];
  #asked = new Map(); // marks of questions to whether the model is still waited for

  constructor(binary) {
    this.binary = binary;
  }

  async open() {
    this.model = http.createServer((req, res) => this.#stall(req, res));
    this.model.listen(0, '127.0.0.1');
    await once(this.model, 'listening');
    this.quickEnv = { MARCHWARDEN_HOME: join(this.#home, 'quick') };
    this.slowEnv = { MARCHWARDEN_HOME: join(this.#home, 'slow'), OLLAMA_HOST: `http://127.0.0.1:${this.model.address().port}` };
    this.slowArgs = ['serve', 'pi', '--model', 'ollama/stall'];
    const guardedEnv = { MARCHWARDEN_HOME: join(this.#home, 'guarded') };
    this.token = execFileSync(this.binary, ['token', 'add', 'clients'], { env: { ...process.env, ...guardedEnv }, stdio: ['ignore', 'pipe', 'ignore'] }).toString().trim();
    [this.quick, this.slow, this.guarded] = await Promise.all([
      this.#serve(['serve', 'pi'], this.quickEnv),
      this.#serve(this.slowArgs, this.slowEnv),
      this.#serve(['serve', 'pi'], guardedEnv),
    ]);
  }

  // The model takes questions and answers none; it only notes who still waits.
  #stall(req, res) {
    let body = '';
    req.on('data', (part) => (body += part));
    req.on('end', () => {
      const mark = /\[mark [a-z0-9 ]+\]/.exec(body)?.[0];
      this.#asked.set(mark, true);
      res.on('close', () => this.#asked.set(mark, false));
    });
  }

  asked(mark) {
    return this.#asked.has(mark);
  }

  waitedFor(mark) {
    return this.#asked.get(mark) === true;
  }

  async #serve(args, env) {
    const child = spawn(this.binary, [...args, '--http', '127.0.0.1:0', '--rate', '1000'], { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#servers.push(child);
    let said = '';
    child.stderr.on('data', (part) => (said += part));
    const url = await soon(() => {
      must(child.exitCode === null, `the server ended: ${said}`);
      return /at (http:\S+\/mcp)/.exec(said)?.[1];
    }, 10_000, 'the server did not come up');
    return url;
  }

  async close() {
    await Promise.all(this.#servers.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 5000);
      await ended;
      clearTimeout(late);
    }));
    this.model?.closeAllConnections();
    this.model?.close();
    rmSync(this.#home, { recursive: true, force: true });
  }
}
