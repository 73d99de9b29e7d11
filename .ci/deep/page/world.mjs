// The page's world: its own files, and a hub in front of the one of main.go. Both play what a case scripts.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';

// A script maps 'METHOD /path' patterns to what is played there: answers one after the other, the last one from then on. An answer is
// { status, body, headers }, a function of request and response, or 'pass'. 'cut' is a broken connection.
let script = [];
export const asked = []; // of the hub: { method, url, at, bytes }
export function play(rules = {}) {
  script = Object.entries(rules).map(([pattern, answers]) => ({ pattern: new RegExp('^' + pattern + '$'), answers: [answers].flat(), n: 0 }));
  asked.length = 0;
}
function scripted(kind, request) {
  const rule = script.find(r => r.pattern.test(`${kind}${request.method} ${request.url.split('?')[0]}`));
  return rule && rule.answers[Math.min(rule.n++, rule.answers.length - 1)];
}

function answer(a, request, response) {
  if (typeof a === 'function') return a(request, response);
  if (a === 'cut') return request.destroy();
  if (a === 'stall') return undefined;
  const body = typeof a.body === 'string' || Buffer.isBuffer(a.body) ? a.body : JSON.stringify(a.body ?? {});
  response.writeHead(a.status ?? 200, { 'Content-Type': a.type ?? 'application/json', ...a.headers });
  response.end(body);
}

const listen = server => new Promise(done => server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}`)));
const types = { html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', json: 'application/json', gz: 'application/octet-stream' };

// open starts all of it. The page is at site/ a Space with sign-in, at site/plain/ a server without.
export async function begin({ server, folder, data, program, root }) {
  const world = { stand: undefined };
  const files = http.createServer((request, response) => {
    const a = scripted('page ', request);
    if (a && a !== 'pass') return answer(a, request, response);
    const { pathname } = new URL(request.url, 'http://page');
    if (pathname === '/frame') {
      return answer({ type: types.html, body: `<!doctype html><title>Space</title><iframe src="${request.url.slice(7).replace(/"/g, '')}" style="width:100%;height:900px"></iframe>
        <script>window.got=[];onmessage=e=>got.push(e.data)</script>` }, request, response);
    }
    const plain = pathname.startsWith('/plain/'), file = path.join(folder, plain ? pathname.slice(6) : pathname, pathname.endsWith('/') ? 'index.html' : '');
    if (!file.startsWith(folder) || !existsSync(file)) return answer({ status: 404, type: types.html, body: '<h1>no such file</h1>' }, request, response);
    let body = readFileSync(file);
    if (file.endsWith('index.html')) body = index(String(body), !plain, world);
    return answer({ type: types[file.split('.').at(-1)] ?? 'text/plain', body, headers: { 'Content-Length': body.length } }, request, response);
  });
  const pass = to => (request, response) => {
    const note = { method: request.method, url: request.url, at: Date.now(), bytes: 0, token: request.headers.authorization };
    if (request.method !== 'OPTIONS') asked.push(note);
    const open = { 'Access-Control-Allow-Origin': request.headers.origin ?? '*', 'Access-Control-Allow-Methods': 'GET,HEAD,POST,PUT,DELETE',
      'Access-Control-Allow-Headers': 'Authorization,Content-Type,Range,Accept', 'Access-Control-Expose-Headers': 'Retry-After,X-Error-Code,X-Error-Message' };
    const a = request.method !== 'OPTIONS' && scripted('', request);
    if (a && a !== 'pass') {
      for (const [k, v] of Object.entries(open)) response.setHeader(k, v);
      return answer(a, request, response);
    }
    const at = new URL(request.url, to());
    const inner = http.request(at, { method: request.method, headers: { ...request.headers, host: at.host } }, from => {
      response.writeHead(from.statusCode, from.headers);
      from.on('data', piece => { note.bytes += piece.length; });
      from.pipe(response);
    });
    inner.on('error', () => response.destroy());
    response.on('close', () => inner.destroy());
    request.pipe(inner);
  };
  const front = http.createServer(pass(() => world.back)), store = http.createServer(pass(() => world.behind));
  world.site = await listen(files);
  world.hub = await listen(front);
  world.store = await listen(store);
  world.stand = spawn(server, [data, program, world.site, world.hub, world.store], { stdio: ['pipe', 'pipe', 'inherit'] });
  [, world.back, world.behind, world.inside] = String(await new Promise(ready => world.stand.stdout.once('data', ready))).trim().split(' ');
  const env = { ...process.env, HF_ENDPOINT: world.inside, HF_TOKEN: '', EXAMPLES: 'org/qwen3 org/diffusers org/large', IMAGE: 'ghcr.io/df11-convert/df11-convert@sha256:' + '1'.repeat(64) };
  const built = spawnSync('page/build.sh', [folder], { cwd: root, env, encoding: 'utf8' });
  if (built.status !== 0) throw new Error(built.stderr);
  world.end = () => { world.stand.kill(); for (const s of [files, front, store]) { s.closeAllConnections(); s.close(); } };
  return world;
}

// index is the page as a server gives it; a Space puts its variables right behind the head's beginning.
function index(text, space, { hub, store }) {
  text = text.replace('https://huggingface.co https://*.huggingface.co https://*.hf.co', `${hub} ${store}`).replace('name="hub" content="https://huggingface.co"', `name="hub" content="${hub}"`);
  const variables = '{variables:{"OAUTH_CLIENT_ID":"space","OAUTH_SCOPES":"openid profile jobs contribute-repos gated-repos"}}';
  return Buffer.from(space ? text.replace('<head>', `<head><script>window.huggingface=${variables};</script>`) : text);
}
