// The planner: the program itself, built for browsers, in a worker. See worker.js.

import { Problem, account, hub, keep, wait } from './hub.js';

// planner has one state, which all ask: idle, loading, ready, or broken and why. A change is an event.
export const planner = Object.assign(new EventTarget(), { state: 'idle', got: 0, all: 0, why: undefined });
const become = changes => planner.dispatchEvent(Object.assign(new Event('change'), Object.assign(planner, changes)));
let loaded; // a promise of the program's module, and of the address of what runs it
// load makes the planner ready, once; what has broken is loaded again.
export const load = () => loaded ??= fetchAll().then(program => { become({ state: 'ready' }); return program; }, broken);

function broken(error) {
  loaded = undefined;
  const why = Problem.of(error, 'The planner doesn’t start', 'reload the page; if that doesn’t help, try another browser');
  why.retry = true;
  become({ state: 'broken', why });
  throw why;
}
const stalled = 30_000; // a download that brings nothing for so long has stopped
const reload = ['check your connection, then try again'];

async function fetchAll() {
  become({ state: 'loading', got: 0, all: 0 });
  if (!globalThis.WebAssembly || !globalThis.DecompressionStream) {
    const lacks = globalThis.WebAssembly ? 'DecompressionStream: it’s too old' : 'WebAssembly, or doesn’t allow it here';
    throw new Problem('This browser can’t run the planner', `It has no ${lacks}.`,
      ['update it or use another one; a strict mode, such as Lockdown, may have switched it off']);
  }
  const [module, ...scripts] = await Promise.all([compile(), script('wasm_exec.js'), script('worker.js')]);
  return { module, source: URL.createObjectURL(new Blob(scripts, { type: 'text/javascript' })) };
}
const missing = why => { throw new Problem('A part of this page is missing', why, ['reload the page']); };
// get fetches a file of the page.
async function get(name) {
  const answer = await fetch(new URL(name, import.meta.url)).catch(() => {
    throw new Problem(navigator.onLine ? 'The planner couldn’t be loaded' : 'You’re offline', `${name} didn’t arrive.`, reload);
  });
  return answer.ok ? answer : missing(`${name}: ${answer.status}.`);
}

async function script(name) {
  const text = await (await get(name)).text();
  return /^\s*</.test(text) ? missing(`${name} is something else.`) : text;
}
// compile fetches the program, says how far it is, and distinguishes a cut-off file from a wrong one.
async function compile() {
  const answer = await get('plan.wasm.gz'), pieces = [];
  const all = answer.headers.get('Content-Encoding') ? 0 : +answer.headers.get('Content-Length');
  let got = 0;
  for (const reader = answer.body.getReader(); ;) {
    const piece = await Promise.race([reader.read(), wait(stalled)]).catch(() => undefined);
    if (!piece) throw new Problem('The planner’s download has stopped', `${got} bytes had arrived.`, reload);
    if (piece.done) break;
    pieces.push(piece.value);
    become({ got: got += piece.value.length, all });
  }
  const [a, b] = new Uint8Array(await new Blob(pieces).slice(0, 2).arrayBuffer());
  const packed = a === 0x1f && b === 0x8b;
  if (!packed && a !== 0) missing('plan.wasm.gz is something else.');
  let stream = new Blob(pieces).stream();
  if (packed) stream = stream.pipeThrough(new DecompressionStream('gzip')); // some servers have unpacked it
  return WebAssembly.compileStreaming(new Response(stream, { headers: { 'Content-Type': 'application/wasm' } })).catch(error => {
    throw new Problem('The planner came incomplete', error.message, reload);
  });
}
// waitOf reads what the program says when it waits long enough that people wonder: for how many seconds, for whom, and why.
export function waitOf(text) {
  const [, minutes = 0, seconds, host, why] = /^waiting (?:(\d+)m)?(\d+)s for (\S+): (.*)$/m.exec(text) ?? [];
  return seconds && { seconds: 60 * minutes + +seconds, host, why };
}
// run runs the program and returns what it prints. It calls heard with the bytes that have been read, and with a wait that it says.
// Its worker is made of a blob, so that it is bound by this page's policy.
export async function run(args, signal, heard = () => {}) {
  const { module, source } = await load();
  signal?.throwIfAborted();
  const worker = await Promise.resolve(source).then(from => new Worker(from)).catch(broken);
  let bytes = 0;
  const read = said => { const wait = waitOf(said); if (wait) heard(bytes, wait); };
  const ended = new Promise((yes, no) => {
    worker.onerror = event => no(new Problem('Your browser has stopped the planner', event.message ?? '',
      ['reload the page; an extension or a policy may forbid workers']));
    worker.onmessage = ({ data }) => {
      if (data.failed) no(stopped(data.failed));
      else if (data.said !== undefined) read(data.said);
      else if (data.code === undefined) heard(bytes = data.read);
      else yes(data);
    };
    signal?.addEventListener('abort', () => no(signal.reason));
  });
  const env = { HOME: '/', HF_ENDPOINT: hub() };
  if (account.token) env.HF_TOKEN = account.token;
  worker.postMessage({ module, args, env });
  return ended.catch(error => error instanceof Problem ? broken(error) : Promise.reject(error)).finally(() => worker.terminate());
}
const stopped = why => new Problem('The planner has stopped', why, ['reload the page; a very large model may need more memory']);
// answer runs a command with --json and returns the document, good or not.
async function answer(command, args, signal, heard) {
  const { stdout, stderr } = await run([command, '--json', ...args], signal, heard);
  try {
    return JSON.parse(stdout);
  } catch {
    const last = stderr.trim().split('\n').find(line => /panic|fatal|error/.test(line)) ?? 'It ended without an answer.';
    return broken(stopped(last.slice(0, 300)));
  }
}
// address returns the model that a visitor's text names: the program's parser is the only one.
export async function address(text, signal) {
  const { address: found, error } = await answer('address', ['--', text], signal);
  if (error) throw new Problem('This is no model of the Hub', error.message, [error.hint]);
  return found;
}
export const check = (name, signal, heard) => answer('verify', ['--level', 'structure', '--', name], signal, heard);
// plan returns what a model becomes, from its headers alone, or from samples of its weights too.
export async function plan(name, { samples = false, exact = false, signal, heard }) {
  const options = [...(samples ? [] : ['--sample-bytes', '0']), ...(exact ? ['--exact-f32'] : [])];
  const doc = await answer('plan', [...options, '--', name], signal, heard);
  return doc.ok || doc.estimate ? brief(doc, name, exact) : doc;
}
// brief is what the page shows of a plan, small however large the model is.
export function brief(doc, name, exact) {
  const { source_bytes: before, estimate: { output_bytes: after } } = doc;
  const groups = new Map();
  const add = (why, n, size, such) => {
    const g = groups.get(why) ?? { why, n: 0, size: 0, such };
    groups.set(why, { ...g, n: g.n + n, size: g.size + size });
  };
  for (const t of doc.uncompressed ?? []) add(t.why, 1, t.bytes, t.name);
  for (const u of doc.units) if (u.why) add(u.why, u.tensors, u.bytes, u.path);
  const { gpus, published = [], readers = [], warnings = [], differences = [], aliases = [] } = doc;
  return {
    name, exact, source: doc.source, commit: doc.commit, layout: doc.layout, closed: !!doc.closed,
    access: [doc.private && 'private', doc.gated && 'gated'].filter(Boolean).join(', '), before, after, sampled: doc.estimate.sampled_bytes,
    known: doc.estimate.exact, picture: doc.picture,
    needs: doc.needs, gpus, published, readers, warnings, differences, aliases: aliases.slice(0, 20),
    groups: [...groups.values()].sort((a, b) => b.size - a.size),
  };
}
// Plans are kept by name and by commit, so that a reload, a sign-in, and Back cost nothing. Another release doesn't read them.
const key = (name, exact) => `df11-plan:${new URL('.', import.meta.url).pathname}${exact ? 'f32:' : ''}${name}`;
export function remember(p) {
  for (const id of [p.name, `${p.source}@${p.commit}`]) keep.set(key(id, p.exact), JSON.stringify(p));
}
export function recall(name, exact) {
  const p = JSON.parse(keep.get(key(name, exact)) ?? 'null');
  return p && { ...p, name };
}
