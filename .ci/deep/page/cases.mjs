// What goes wrong, case by case: what the hub or the page's server does, and what the visitor must read then.

import { readFileSync } from 'node:fs';

const model = '/?model=org/llama', target = 'ann/llama-DF11';
const slow = { expected: 'any' };

// --- first visit: the planner, the Hub, the browser ---

const worker = body => ({ 'page GET .*worker.js': { body, type: 'text/javascript' } });
const broken = [
  ['no WebAssembly', { before: () => { delete window.WebAssembly; } }, {}, /can.t run the planner.*WebAssembly/],
  ['no DecompressionStream', { before: () => { delete window.DecompressionStream; } }, {}, /can.t run the planner.*too old/],
  ['wasm 404', {}, { 'page GET .*plan.wasm.gz': { status: 404, body: 'gone' } }, /missing.*404/],
  ['wasm is HTML', {}, { 'page GET .*plan.wasm.gz': { body: '<!doctype html><h1>login', type: 'text/html' } }, /missing.*something else/],
  ['wasm is empty', {}, { 'page GET .*plan.wasm.gz': { body: '' } }, /missing|incomplete/],
  ['wasm is cut', {}, { 'page GET .*plan.wasm.gz': { body: Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3]) } }, /incomplete/],
  ['wasm stalls', { fast: 60 }, { 'page GET .*plan.wasm.gz': (_, r) => { r.writeHead(200); r.write(Buffer.from([0x1f, 0x8b])); } }, /download has stopped/],
  ['wasm_exec.js 404', {}, { 'page GET .*wasm_exec.js': { status: 404, body: '<h1>no' } }, /missing.*wasm_exec/],
  ['wasm_exec.js is HTML', {}, { 'page GET .*wasm_exec.js': { body: '<h1>no', type: 'text/html' } }, /missing.*wasm_exec/],
  ['worker blocked', { before: () => { window.Worker = function () { throw new Error('blocked by policy'); }; } }, {}, /doesn.t start.*blocked by policy/],
  ['worker.js is of another release', {}, worker('onmessage = async () => { throw new Error("old"); }; addEventListener("unhandledrejection", e => { throw e.reason; });'), /has stopped|stopped the planner/],
  ['the program panics', {}, worker('onmessage = () => postMessage({ code: 2, stdout: "", stderr: "fatal error: out of memory" });'), /has stopped.*out of memory/],
].map(([name, options, rules, wanted]) => [`planner: ${name}`, async t => {
  t.play(rules);
  const tab = await t.open(model, { ...slow, ...options });
  await t.says(tab, '#about-answer', wanted);
  t.want(/Try again/.test(await t.text(tab, '#about-answer')), 'there is no way on');
  t.want(!/Cannot destructure|undefined/.test(await t.text(tab, '#messages')), 'words of the machine');
  t.play({});
  if (Object.keys(rules).length) {
    await tab.click('#about-answer button.main');
    await t.seen(tab, '#plan-title');
    t.want(!(await tab.$('#about-answer')), 'the message stays');
  }
  await t.close(tab);
}]);

const info = 'GET /api/models/org/llama.*';
const away = [
  ['503', { [info]: { status: 503, body: { error: 'Service Unavailable' } } }, /busy or out of reach/],
  ['429', { [info]: { status: 429, body: { error: 'slow down' } } }, /too many|busy or out of reach/],
  ['429 for an hour', { [info]: { status: 429, body: {}, headers: { 'Retry-After': '3600' } } }, /too many|busy or out of reach/],
  ['unreachable', { [info]: 'cut' }, /out of reach|busy/],
].map(([name, rules, wanted]) => [`hub: ${name}`, async t => {
  t.play(rules);
  const began = Date.now(), tab = await t.open(model, slow);
  await t.says(tab, '#about-answer', wanted, 60_000);
  t.want(Date.now() - began < 45_000, `gives up after ${Date.now() - began} ms`);
  t.want(!/run the same command|HF_|df11-convert /.test(await t.text(tab, '#messages')), await t.text(tab, '#messages'));
  await t.close(tab);
}]);

// waits says for whom and how long, and goes on by itself.
const busyFor = (seconds, n = 1) => ({ [info]: [...Array(n).fill({ status: 429, body: {}, headers: { 'Retry-After': String(seconds) } }), 'pass'] });
away.push(['hub: a short wait is counted down', async t => {
  t.play(busyFor(7));
  const tab = await t.open(model, slow);
  await t.says(tab, '#progress', /waiting for the Hub, [78] s left: rate limit reached.*Stop/);
  await t.says(tab, '#progress', /waiting for the Hub, [1-4] s left/);
  await t.seen(tab, '#plan-title');
  await t.idle(tab);
  await t.close(tab);
}], ['hub: a short wait is stopped', async t => {
  t.play(busyFor(12));
  const tab = await t.open(model, slow);
  await t.says(tab, '#progress', /waiting for the Hub/);
  await tab.click('#stop');
  await t.says(tab, '#progress', /^stopped/);
  await new Promise(done => setTimeout(done, 1500));
  t.want(/^stopped/.test(await t.text(tab, '#progress')), `after the stop: ${await t.text(tab, '#progress')}`);
  await t.close(tab);
}], ['hub: after a long wait it asks again by itself', async t => {
  t.play(busyFor(3600, 2));
  const tab = await t.open(model, { ...slow, fast: 20 });
  await t.says(tab, '#about-answer', /too many.*asks again in \d+ s.*Try again/);
  t.want(!/http|attempts|source:/.test(await t.text(tab, '#about-answer')), `words for a log: ${await t.text(tab, '#about-answer')}`);
  await t.seen(tab, '#plan-title');
  await t.close(tab);
}], ['hub: a message that is closed asks no more', async t => {
  t.play(busyFor(3600));
  const tab = await t.open(model, { ...slow, fast: 30 });
  await t.says(tab, '#about-answer', /asks again in/);
  await tab.click('#about-answer button.close');
  const before = t.asked.length;
  await new Promise(done => setTimeout(done, 4000));
  t.want(t.asked.length === before, 'it asks again');
  await t.close(tab);
}], ['hub: trying a check again checks', async t => {
  t.play({ 'GET /api/models/ann/good-DF11.*': [{ status: 429, body: {}, headers: { 'Retry-After': '3600' } }, 'pass'] });
  const tab = await t.open('/?check=ann/good-DF11', slow);
  await t.says(tab, '#about-answer', /Try again/);
  await tab.click('#about-answer button.main');
  await t.says(tab, '#verdict', /No fault found/);
  await t.close(tab);
}]);

const visits = [
  ['visit: offline', async t => {
    const tab = await t.open('/', slow);
    await tab.focus('#model');
    await tab.waitForFunction(() => /^$/.test(document.getElementById('progress').innerText.trim()));
    await tab.setOfflineMode(true);
    await tab.evaluate(() => { Object.defineProperty(navigator, 'onLine', { get: () => false }); });
    await tab.type('#model', 'org/llama');
    await tab.keyboard.press('Enter');
    await t.says(tab, '#about-answer', /offline/);
    await t.close(tab);
  }],
  ['visit: reading costs no planner', async t => {
    const got = [];
    const tab = await t.open('/', {});
    tab.on('request', r => got.push(r.url()));
    await t.seen(tab, '#examples');
    t.want(!got.some(u => u.includes('wasm')), 'a visit loads the planner');
    t.want((await tab.$$('#examples svg[role=img]')).length === 3, 'there are not three examples');
    await tab.click('#examples a');
    await t.seen(tab, '#plan-title');
    await t.close(tab);
  }],
  ['visit: the script is missing', async t => {
    t.play({ 'page GET .*/view.js': { status: 404, body: '' } });
    const tab = await t.open('/', slow);
    await t.says(tab, '#unready', /script hasn.t run/, 20_000);
    await t.close(tab);
  }],
  ['visit: no JavaScript', async t => {
    const tab = await t.open('/', {});
    await tab.setJavaScriptEnabled(false);
    await tab.goto(t.site + '/');
    const { y } = await (await tab.$('#unready')).boundingBox();
    t.want(y < 500, `the word about JavaScript is at ${y}`);
    await tab.setJavaScriptEnabled(true);
    await t.close(tab);
  }],
  ['visit: cookies are blocked', async t => {
    const tab = await t.open(model, { before: () => { Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('denied', 'SecurityError'); } }); } });
    await t.seen(tab, '#plan-title');
    t.want(!(await tab.$('#about-sign-in')), 'a plain visit complains');
    await tab.click('#sign-in');
    await t.says(tab, '#about-sign-in', /forbids.*allow cookies/);
    await t.close(tab);
  }],
  ['visit: the bytes of a plan', async t => {
    const tab = await t.open('/?model=org/large', { before: () => { Object.defineProperty(navigator, 'connection', { value: { saveData: true } }); } });
    await t.seen(tab, '#plan-title');
    await t.idle(tab);
    const read = t.asked, sum = read.reduce((n, a) => n + a.bytes, 0);
    console.log(`  headers alone: ${read.length} requests, ${sum} bytes`);
    t.want(sum < 400_000 && read.length < 25, `saveData: ${read.length} requests, ${sum} bytes`);
    t.want(/headers/.test(await tab.$eval('#plan-meta', e => e.textContent)), 'the basis is not named');
    const before = t.asked.length;
    await tab.reload();
    await t.seen(tab, '#plan-title');
    t.want(!t.asked.slice(before).some(a => /resolve|models\/org/.test(a.url)), 'a reload costs a plan');
    await t.close(tab);
    const full = await t.open('/?model=org/large');
    await t.says(full, '#progress', /samples of the weights.*Stop/);
    await t.idle(full);
    t.want(/of the weights/.test(await full.$eval('#plan-meta', e => e.textContent)), 'the plan was not refined');
    await t.close(full);
  }],
  ['visit: the refinement is stopped', async t => {
    const tab = await t.open('/?model=org/scattered');
    await t.says(tab, '#progress', /samples of the weights/);
    await tab.click('#stop');
    await t.idle(tab);
    t.want(/headers/.test(await tab.$eval('#plan-meta', e => e.textContent)), 'it went on');
    await t.close(tab);
  }],
  ['visit: suggestions and prices are something else', async t => {
    t.play({ 'GET /api/models': { body: {} }, 'GET /api/jobs/hardware': { body: {} } });
    const tab = await t.open('/', { kept: t.kept });
    await tab.type('#model', 'org/llama');
    await tab.keyboard.press('Enter');
    await t.says(tab, '#terms', /November 2026/);
    await t.close(tab);
  }],
  ['visit: suggestions while typing', async t => {
    const tab = await t.open('/');
    await tab.type('#model', 'good');
    await tab.waitForFunction(() => [...document.querySelectorAll('#ids option')].length > 0);
    await t.close(tab);
  }],
  ['paste: an address', async t => {
    const tab = await t.open('/');
    await tab.type('#model', 'https://huggingface.co/org/llama/blob/main/config.json');
    await tab.keyboard.press('Enter');
    await t.seen(tab, '#plan-title');
    t.want(await tab.$eval('#model', e => e.value) === 'org/llama@main', `taken as ${await tab.$eval('#model', e => e.value)}`);
    await t.close(tab);
  }],
  ['visit: Back, and the title', async t => {
    const tab = await t.open(model);
    await t.seen(tab, '#plan-title');
    await t.idle(tab);
    t.want(/llama/.test(await tab.title()), `the title is ${await tab.title()}`);
    await tab.$eval('#model', e => { e.value = ''; });
    await tab.type('#model', 'org/tied');
    await tab.keyboard.press('Enter');
    await t.says(tab, '#plan-title', /tied/);
    await tab.goBack();
    await t.says(tab, '#plan-title', /llama/);
    await t.close(tab);
  }],
  ...['/?repo=org/llama', '/#model=org/llama'].map(path => [`address: ${path}`, async t => {
    const tab = await t.open(path);
    await t.says(tab, '#plan-title', /llama/);
    await t.close(tab);
  }]),
  ['address: __theme', async t => {
    const tab = await t.open('/?__theme=dark');
    await t.seen(tab, '#who + *');
    t.want(await tab.evaluate(() => getComputedStyle(document.body).backgroundColor) === 'rgb(15, 18, 22)', 'the theme is not dark');
    await t.close(tab);
  }],
  ['policy: no other origin', async t => {
    const tab = await t.open('/', slow);
    const reached = await tab.evaluate(async url => {
      const ask = `fetch('${url}').then(() => 'reached', () => 'stopped')`;
      const worker = new Worker(URL.createObjectURL(new Blob([ask + '.then(postMessage)'])));
      return [await fetch(url).then(() => 'reached', () => 'stopped'), await new Promise(done => { worker.onmessage = event => done(event.data); })];
    }, t.inside + '/api/models/org/llama');
    t.want(String(reached) === 'stopped,stopped', `another origin than the Hub: ${reached}`);
    await t.close(tab);
  }],
];

// --- 2.3 and 2.4: what cannot be planned, and the next step ---

const shell = /--\w|set HF_|run the same|df11-convert verify:/;
const next = [
  ['org/gated', /accept|n.t let you|gated/, 'Open its page'],
  ['org/nothing-there', /no such|private/i, 'Sign in with'],
  ['ann/private', /no such|private/i, 'Sign in with'],
  ['org/f16', /can.t be converted/, ''],
  ['org/gguf', /can.t be converted/, ''],
  ['org/pickle', /can.t be converted/, ''],
  ['org/adapter', /can.t be converted/, ''],
  ['org/f32', /F32/, 'Plan it as BF16'],
  ['ann/good-DF11', /DF11 model already/, 'Check it'],
  ['datasets/a/b', /is a dataset, not a model/, ''],
  ['   ', /no model.*name a model/, ''],
  ['-o', /no model/, ''],
  ['a/b/c', /no model/, ''],
  ['https://huggingface.co/gpt2', /no model/, ''],
  ['org/several', /several.*hf:..org.several.FILE/, ''],
  ['a/<img src=x onerror=alert(1)>', /<img/, ''],
].map(([id, why, button]) => [`refusal: ${id}`, async t => {
  const tab = await t.open('/?model=' + encodeURIComponent(id), slow);
  await t.says(tab, '#about-answer', why);
  const said = await t.text(tab, '#messages');
  t.want(said.includes(button), `no button ${button}: ${said}`);
  t.want(!shell.test(said.replace(/df11-convert plan \S+/, '')), `words of a shell: ${said}`);
  t.want(!(await tab.$('img')), 'a name is markup');
  const [focus, head, announced] = await tab.evaluate(() => [document.activeElement.id, document.activeElement.textContent, document.getElementById('state').textContent]);
  t.want(focus === 'answer-title' && announced.startsWith(head), 'it has not the focus, or is not announced');
  if (button === 'Check it' || button === 'Plan it as BF16') {
    await tab.click('#about-answer button.main');
    await t.says(tab, button === 'Check it' ? '#verdict' : '#plan-title', /No fault found|org\/f32/);
    t.want(button === 'Check it' || /--exact-f32/.test(await tab.$eval('#command', e => e.textContent)), 'the command leaves out --exact-f32');
  }
  await t.close(tab);
}]);
// The program's own hints are shown as they are.
next.push(...['f16', 'gguf', 'pickle', 'adapter', 'empty'].map(name => [`hint: ${name}`, async t => {
  const { error } = JSON.parse(t.own(['plan', '--json', '--', 'org/' + name]).stdout);
  const tab = await t.open('/?model=org/' + name, slow);
  await t.seen(tab, '#about-answer');
  const said = await tab.$$eval('#about-answer li', all => all.map(e => e.textContent));
  t.want(error.hint && said.includes(error.hint), `${JSON.stringify(said)} instead of ${JSON.stringify(error.hint)}`);
  await t.close(tab);
}]));
next.push(['refusal: a check of what is no result', async t => {
  const tab = await t.open('/?check=org/llama', slow);
  await t.says(tab, '#about-answer', /isn.t a finished DF11 model.*Plan it/);
  await tab.click('#about-answer button.main');
  await t.says(tab, '#plan-title', /org\/llama/);
  await t.close(tab);
}], ['refusal: gated, then the terms are accepted', async t => {
  const tab = await signed(t);
  t.play({ 'GET /org/llama/resolve/.*': [{ status: 403, body: { error: 'Access to model org/llama is restricted.' }, headers: { 'X-Error-Code': 'GatedRepo' } }, 'pass'] });
  await tab.click('#go');
  await t.says(tab, '#about-answer', /accept its terms.*accept the terms there, come back, and try again/);
  t.want(await tab.$eval('#about-answer a', e => e.href) === t.hub + '/org/llama', 'its page is elsewhere');
  await tab.click('#about-answer button.main');
  await t.seen(tab, '#plan-title');
  await t.close(tab);
}], ['refusal: gated, then signed in', async t => {
  const tab = await t.open('/?model=org/gated', slow);
  await t.says(tab, '#about-answer', /Sign in with/);
  await t.agree(tab, '#about-answer button.main');
  await t.seen(tab, '#plan-title');
  t.want(await tab.$eval('#private', e => e.checked), 'a gated model becomes public');
  await t.close(tab);
}], ['refusal: gated, signed in, the terms not accepted', async t => {
  const tab = await t.open('/?model=org/terms', slow);
  await t.agree(tab);
  await t.says(tab, '#about-answer', /accept its terms.*Open its page/);
  await t.close(tab);
}], ['refusal: the sign-in has ended', async t => {
  const tab = await signed(t);
  t.play({ [info]: { status: 401, body: { error: 'Invalid credentials in Authorization header' } } });
  await tab.click('#go');
  await t.says(tab, '#about-answer', /your sign-in.*Sign in with/);
  t.want(await tab.$eval('#who', e => e.textContent) === '', 'still shown as signed in');
  await t.close(tab);
}], ['names that turn the direction', async t => {
  const tab = await t.open('/?model=org/turned', slow);
  await t.says(tab, '#about-answer', /can.t be converted/);
  const said = await t.text(tab, '#messages');
  t.want(!/[\u202a-\u202e]/.test(said) && /\\u202e/.test(said), `raw marks of direction: ${JSON.stringify(said)}`);
  await t.close(tab);
}]);

// --- 2.2: the sign-in ---

const back = query => (request, response) => {
  const asked = new URL(request.url, 'http://hub').searchParams;
  response.writeHead(302, { Location: asked.get('redirect_uri') + '?' + query.replace('STATE', asked.get('state')) });
  response.end();
};
const status = n => ({ status: n, body: { error: 'invalid_grant', error_description: `no ${n}` } });
const html = { body: '<!doctype html><h1>Login</h1>', type: 'text/html' };
const token = 'POST /oauth/token', userinfo = 'GET /oauth/userinfo', authorize = 'GET /oauth/authorize';
const signIns = [
  ['denied', { [authorize]: back('error=access_denied&state=STATE') }, /didn.t agree/],
  ['scope', { [authorize]: back('error=invalid_scope&state=STATE') }, /doesn.t grant/],
  ['another error', { [authorize]: back('error=server_error&error_description=down%E2%80%AE&state=STATE') }, /down\\u202e/],
  ['wrong state', { [authorize]: back('code=x&state=other') }, /belongs to no sign-in/],
  ['code without state', { [authorize]: back('code=x') }, /belongs to no sign-in/],
  ['error without state', { [authorize]: back('error=access_denied') }, /belongs to no sign-in/],
  ...[400, 401, 403, 429, 500].map(n => [`token ${n}`, { [token]: status(n) }, new RegExp(String(n))]),
  ['token: network', { [token]: 'cut' }, /can.t be reached/],
  ['token: HTML', { [token]: html }, /something else/],
  ['token: none', { [token]: { body: {} } }, /no token/],
  ...[401, 403].map(n => [`userinfo ${n}`, { [userinfo]: status(n) }, new RegExp(String(n))]),
  ['userinfo 500', { [userinfo]: status(500) }, /500/],
  ['userinfo: network', { [userinfo]: 'cut' }, /can.t be reached/],
  ['userinfo: HTML', { [userinfo]: html }, /something else/],
  ['userinfo: no name', { [userinfo]: { body: { sub: '1' } } }, /who you are/],
].map(([name, rules, wanted]) => [`sign-in: ${name}`, async t => {
  t.play(rules);
  const tab = await t.open(model, { ...slow, fast: 8, kept: t.kept });
  await t.seen(tab, '#plan-title');
  await t.idle(tab);
  await tab.click('#sign-in');
  if (!rules[authorize]) {
    await tab.waitForSelector('#yes');
    await tab.click('#yes');
  }
  await t.says(tab, '#about-sign-in', wanted);
  await t.seen(tab, '#plan-title'); // and no other action hides the message
  t.want(!/code=|state=|error=/.test(tab.url()), `the address keeps it: ${tab.url()}`);
  t.want(await tab.$('#about-sign-in'), 'the message went away');
  if (/denied|userinfo/.test(name)) {
    const before = t.asked.length;
    await tab.click('#go');
    await t.seen(tab, '#plan-title');
    t.want(await tab.$('#about-sign-in'), 'another plan hides the message');
    t.want(t.asked.length > before && !t.asked.slice(before).some(a => a.token), 'a token is used although the sign-in is not complete');
  }
  t.want(!await tab.$eval('#sign-in', e => e.hidden), 'there is no way to try again');
  await t.close(tab);
}]);
signIns.push(...['code=x', 'error=access_denied', 'state=x&code=x'].map(query => [`sign-in: ?${query} in the address`, async t => {
  const tab = await t.open('/?' + query);
  await t.says(tab, '#about-sign-in', /belongs to no sign-in.*Sign in with/);
  t.want(tab.url() === t.site + '/', `the address keeps it: ${tab.url()}`);
  await t.close(tab);
}]), ['sign-in: a token of 120 s', async t => {
  t.play({ [token]: { body: { access_token: 'hf_oauth_of_ann', expires_in: 120 } } });
  const tab = await signed(t);
  await tab.click('#start');
  await t.says(tab, '#about-job', /outlive your sign-in/);
  t.want(!t.asked.some(a => a.method === 'POST' && /jobs/.test(a.url)), 'a job was started');
  await t.close(tab);
}], ['sign-in: a token of 10 min', async t => {
  let body;
  const refuse = async (q, r) => {
    body = JSON.parse(Buffer.concat(await q.toArray()));
    r.writeHead(402);
    r.end('{}');
  };
  t.play({ [token]: { body: { access_token: 'hf_oauth_of_ann', expires_in: 600 } }, [post]: refuse });
  const tab = await signed(t);
  await tab.click('#start');
  await t.says(tab, '#about-job', /no credit/);
  t.want(body.timeoutSeconds <= 540, `the job may run for ${body.timeoutSeconds} s`);
  t.want(body.labels['df11-convert'] === 'org/llama' && body.labels['df11-target'] === target, 'no labels');
  t.want(body.command[1] === `org/llama@${t.commit}`, `it converts ${body.command[1]}`);
  t.want(/@sha256:[0-9a-f]{64}$/.test(body.dockerImage), `the image is ${body.dockerImage}`);
  t.want(/billing/.test(await tab.$eval('#about-job', e => e.innerHTML)), 'no link to billing');
  await t.close(tab);
}], ['sign-in: what the visitor has chosen stays', async t => {
  t.play({ [list]: { body: [] }, [post]: { status: 402 } });
  const tab = await t.open(model, { ...slow, kept: t.kept });
  await t.seen(tab, '#plan-title');
  await tab.$eval('#options', e => { e.open = true; });
  await tab.$eval('#target', e => e.select());
  await tab.type('#target', 'mine');
  await tab.click('#private');
  await t.agree(tab, '#start');
  await t.seen(tab, '#start');
  t.want(await tab.$eval('#target', e => e.value) === 'mine' && await tab.$eval('#private', e => e.checked), 'name or visibility are lost');
  t.want(/--private .*ann\/mine$/.test(await tab.$eval('#command', e => e.textContent)), 'the command does something else');
  await t.close(tab);
}], ['sign-in: in the frame of the Space', async t => {
  const tab = await t.open('/frame?/?model=org/llama', slow);
  const frame = await (await tab.waitForSelector('iframe')).contentFrame();
  await frame.waitForFunction(() => document.getElementById('plan-title').innerText !== '' && document.getElementById('progress').innerText.trim() === '', { timeout: 60_000 });
  const before = t.asked.length, opened = new Promise(done => tab.browserContext().once('targetcreated', done));
  await frame.click('#sign-in');
  const other = await (await opened).page();
  t.listen(other, 'tab of the frame', 'any');
  await other.waitForSelector('#yes', { timeout: 60_000 });
  await Promise.all([other.waitForNavigation(), other.click('#yes')]);
  await t.says(other, '#who', /ann/);
  await t.seen(other, '#start');
  t.want(!t.asked.slice(before).some(a => /resolve|models\/org/.test(a.url)), 'the new tab plans again');
  await t.close(tab);
}], ['frame: the outer address follows', async t => {
  const before = () => { window.sent = []; window.parent.postMessage = (m, to) => { window.sent.push([m, to]); }; };
  const tab = await t.open('/frame?/', { ...slow, before });
  const frame = await (await tab.waitForSelector('iframe')).contentFrame();
  await frame.waitForSelector('#model');
  await frame.type('#model', 'org/llama');
  await frame.click('#go');
  await frame.waitForFunction(() => document.getElementById('plan-title').innerText !== '', { timeout: 60_000 });
  const sent = await frame.evaluate(() => window.sent).catch(() => []);
  t.want(sent.some(([m, to]) => m.queryString === 'model=org%2Fllama' && to === t.hub), `sent: ${JSON.stringify(sent)}`);
  await t.close(tab);
}]);

// --- 3.2: jobs ---

const post = 'POST /api/jobs/ann', list = 'GET /api/jobs/ann', one = 'GET /api/jobs/ann/J1', logs = 'GET /api/jobs/ann/J1/logs', manifest = 'GET /ann/llama-DF11/resolve/main/df11-manifest.json';
const job = (t, stage, message) => ({ body: { id: 'J1', status: { stage, message }, flavor: 'cpu-upgrade', createdAt: new Date().toISOString(),
  command: ['df11-convert', `org/llama@${t.commit}`, '--push', '--repo-id', target], labels: { 'df11-convert': 'org/llama', 'df11-target': target } } });
const stream = (...lines) => (_, r) => { // stays open
  r.writeHead(200, { 'Content-Type': 'text/event-stream' });
  for (const line of lines) r.write(line.startsWith(':') || line.startsWith('data') ? line + '\n\n' : `data: ${JSON.stringify({ data: line })}\n\n`);
};
const ends = (...lines) => (q, r) => { stream(...lines)(q, r); r.end(); };
const progress = (percent, phase = 'convert') => JSON.stringify({ level: 'INFO', msg: 'progress', percent, phase, files: 1, files_total: 3, bytes: 5, bytes_total: 9, seconds_left: 100 });
const good = t => ({ body: { source: { repo: 'org/llama', commit: t.commit }, verification: [{ method: 'cpu', n_weights: 123456 }] } });
const none = { status: 404, body: { error: 'Entry not found' } };

// signed is a tab with a plan whose visitor has signed in. Its clock is fast.
async function signed(t, path = model, fast = 20, context) {
  const tab = await t.open(path, { ...slow, fast, kept: t.kept, context });
  await t.seen(tab, '#plan-title');
  await t.idle(tab);
  await t.agree(tab);
  await t.says(tab, '#who', /ann/);
  await t.seen(tab, '#plan-title');
  return tab;
}

const states = t => ({ waits: job(t, 'SCHEDULING'), runs: job(t, 'RUNNING'), done: job(t, 'COMPLETED'), failed: job(t, 'ERROR', 'ImagePullBackOff'), late: job(t, 'ERROR', 'Job timeout') });
const ends3 = [
  ['the image cannot be pulled, the stream only keeps alive', s => [[s.waits, s.failed], stream(': keep-alive'), none], /job has failed/, /ImagePullBackOff/],
  ['the stream breaks off each time', s => [[s.runs, s.runs, s.done], (q, r) => { r.writeHead(200); r.write('data: {"da'); setTimeout(() => r.destroy(), 20); }, 'good'], /Published/],
  ['the stream never ends', s => [[s.runs, s.done], stream(progress(5)), 'good'], /Published/],
  ['a line that is no JSON, and a bad number', s => [[s.runs, s.runs, s.done], ends('data: {nonsense', 'data: {"data": 5}', '{"msg":"progress","percent":"many"}', progress(50)), 'good'], /Published/],
  ['the log is refused with 429', s => [[s.runs, s.runs, s.done], { status: 429 }, 'good'], /Published/],
  ['the log is refused with 500', s => [[s.runs, s.runs, s.done], { status: 500 }, 'good'], /Published/],
  ['the log comes too late: 404', s => [[s.waits, s.runs, s.done], [{ status: 404 }, stream(progress(7))], 'good'], /Published/],
  ['the stage is refused with 503 and 429', s => [[{ status: 503 }, { status: 429 }, s.runs, { status: 500 }, s.done], stream(progress(7)), 'good'], /Published/],
  ['the stage can.t be reached', s => [['cut', s.runs, 'cut', s.done], stream(), 'good'], /Published/],
  ['the stage is HTML', s => [[html, s.done], stream(), 'good'], /Published/],
  ['the stage is refused with 403', s => [[{ status: 403 }, s.runs, s.done], stream(), 'good'], /Published/],
  ['the stage is something else', s => [[{ body: {} }, { body: 'null' }, { body: { id: 'J1' } }, s.runs, s.done], stream(), 'good'], /Published/],
  ['a new job is not known yet', s => [[{ status: 404 }, { status: 404 }, s.runs, s.done], stream(), 'good'], /Published/],
  ['completed, the log is cut', s => [[s.done], ends('{', '  "schema_version": 1,'), 'good'], /Published/, /123,456 weights/],
  ['completed, without a log', s => [[s.done], { status: 404 }, 'good'], /Published/],
  ['completed, without a manifest', s => [[s.done], ends(), none], /without a result/],
  ['completed, the manifest is of another model', s => [[s.done], ends(), { body: { source: { repo: 'org/other', commit: 'x' } } }], /unknown/],
  ['completed, the manifest cannot be read', s => [[s.done], ends(), { status: 500 }], /unknown/],
  ['timeout', s => [[s.runs, s.late], stream(), none], /has failed/, /Job timeout.*start it again/],
  ['timeout after the end', s => [[s.runs, s.late], stream(), 'good'], /Published/],
  ['the program fails', s => [[s.runs, s.failed], ends(JSON.stringify({ level: 'ERROR', msg: 'disk full', hints: ['take a larger machine', '1 of 2 saved; resume with: df11-convert x'] })), none],
    /has failed/, /disk full.*take a larger machine\nthen start it again: it goes on/],
  ['its result in one line', s => [[s.runs, s.failed], ends('{"schema_version":1,"error":{"message":"you may not\u202e"}}', 'noise'), none], /has failed/, /you may not\\u202e/],
].map(([name, rules, title, why]) => [`job: ${name}`, async t => {
  const [stages, log, result] = rules(states(t));
  t.play({ [post]: job(t, 'SCHEDULING'), [list]: { body: [] }, [one]: stages, [logs]: log, [manifest]: result === 'good' ? good(t) : result });
  const tab = await signed(t);
  await tab.click('#start');
  await t.says(tab, '#run-title', title, 90_000);
  if (why) t.want(new RegExp(why.source, 's').test(await t.text(tab, '#run')), await t.text(tab, '#run'));
  t.want(t.asked.filter(a => a.method === 'POST' && a.url === '/api/jobs/ann').length === 1, 'not one job was started');
  const times = t.asked.filter(a => a.url === '/api/jobs/ann/J1').map(a => 20 * a.at), gaps = times.slice(1).map((at, i) => at - times[i]);
  t.want(gaps.every(gap => gap > 9_000 || gap < 1_000 && name.includes('reached')), `asks for the stage after ${gaps} ms`);
  t.want(await tab.evaluate(() => document.activeElement.id) === 'run-title', 'the outcome has not the focus');
  t.want(/jobs\/ann\/J1/.test(await tab.$eval('#run-links', e => e.innerHTML)), 'no link to the job');
  await t.close(tab);
}]);

ends3.push(['job: the queue is shown', async t => {
  t.play({ [post]: job(t, 'SCHEDULING'), [list]: { body: [] }, [one]: job(t, 'SCHEDULING', 'position 3 in the queue\u202e'), [logs]: stream() });
  const tab = await signed(t);
  await tab.click('#start');
  await t.says(tab, '#phase', /the Hub says: position 3 in the queue\\u202e/);
  await t.says(tab, '#steps [aria-current]', /waiting for a machine/);
  await t.says(tab, '#clock', /elapsed, at most \$\d+\.\d\d so far/);
  await t.close(tab);
}]);

const starts = [
  ...[
    [400, /didn.t start/],
    [401, /sign-in has ended/],
    [402, /no credit/],
    [403, /doesn.t let you/],
    [404, /knows no jobs/],
    [429, /too many/],
    [500, /didn.t start/],
    [503, /didn.t start/],
  ].map(([n, wanted]) => [`start: ${n}`, { [post]: { status: n, body: { error: 'said <img src=x>' } }, [list]: { body: [] } }, wanted]),
  ['start: HTML', { [post]: { ...html, status: 502 }, [list]: { body: [] } }, /didn.t start/],
  ['start: network', { [post]: 'cut', [list]: { body: [] } }, /didn.t start|can.t be reached/],
  ['start: the list is refused', { [list]: { status: 429 } }, /none was started|too many/],
  ['start: the list is away', { [list]: 'cut' }, /none was started/],
].map(([name, rules, wanted]) => [name, async t => {
  t.play(rules);
  const tab = await signed(t, model, 60);
  await tab.click('#start');
  await t.says(tab, '#about-job', wanted);
  t.want(!(await tab.$('img')), 'a message is markup');
  t.want(await tab.$eval('#start', e => !e.disabled) || /sign-in has ended/.test(await t.text(tab, '#messages')), 'there is no way to try again');
  if (name === 'start: 401') t.want(await tab.$eval('#sign-in', e => !e.hidden), 'still shown as signed in');
  if (!(post in rules)) t.want(!t.asked.some(a => a.method === 'POST' && a.url === '/api/jobs/ann'), 'a job was started blindly');
  await t.close(tab);
}]);

const twice = [
  ['job: one runs already', r => ({ [list]: r.listed })],
  ['job: the answer to the start was lost', r => ({ [list]: [{ body: [] }, r.listed], [post]: { status: 504 } })],
  ['job: the answer to the start is something else', r => ({ [list]: [{ body: [] }, r.listed], [post]: { body: {} } })],
  ['job: the connection broke at the start', r => ({ [list]: [{ body: [] }, r.listed], [post]: (_, half) => { half.writeHead(200); half.write('{"id'); setTimeout(() => half.destroy(), 50); } })],
].map(([name, rules]) => [name, async t => {
  t.play({ [one]: job(t, 'RUNNING'), [logs]: stream(), ...rules({ listed: { body: [job(t, 'RUNNING').body] } }) });
  const tab = await signed(t);
  await tab.click('#start');
  await t.says(tab, '#run-title', /Your job/);
  await tab.waitForFunction(() => /job=J1/.test(location.search));
  t.want(t.asked.filter(a => a.method === 'POST' && a.url === '/api/jobs/ann').length <= 1, 'two jobs');
  const query = new URL(t.hub + t.asked.find(a => a.url.startsWith('/api/jobs/ann?')).url).searchParams;
  t.want(String(query.getAll('label')) === `df11-convert=org/llama,df11-target=${target}` && String(query.getAll('stage')) === 'RUNNING,SCHEDULING', `asks ${query}`);
  await t.close(tab);
}]);
twice.push(['job: started in two tabs at once', async t => {
  let started = false;
  t.play({ [list]: (q, r) => r.end(JSON.stringify(started ? [job(t, 'RUNNING').body] : [])), [one]: job(t, 'RUNNING'), [logs]: stream(),
    [post]: (q, r) => setTimeout(() => { started = true; r.end(JSON.stringify(job(t, 'RUNNING').body)); }, 500) });
  const first = await signed(t), second = await signed(t, model, 20, first.browserContext());
  await Promise.all([first, second].map(tab => tab.$eval('#start', e => e.click())));
  for (const tab of [first, second]) {
    await tab.bringToFront();
    await t.says(tab, '#run-title', /Your job/);
  }
  t.want(t.asked.filter(a => a.method === 'POST' && a.url === '/api/jobs/ann').length === 1, 'two jobs');
  await t.close(first);
}], ['job: the target of an organization', async t => {
  const tab = await signed(t);
  await tab.$eval('#options', e => { e.open = true; });
  await tab.$eval('#target', e => { e.value = 'some-org/x'; });
  await tab.click('#start');
  t.want(!await tab.$eval('#target', e => e.checkValidity()) && !t.asked.some(a => a.method === 'POST' && a.url === '/api/jobs/ann'), 'a job is started for an organization');
  await t.close(tab);
}], ['job: a reload, and another tab', async t => {
  t.play({ [one]: job(t, 'RUNNING'), [logs]: stream(progress(40)), [list]: { body: [] } });
  const tab = await t.open(model + '&job=J1', { ...slow, fast: 20 });
  await t.says(tab, '#about-job', /names a job.*Sign in/);
  await t.agree(tab, '#about-job button.main');
  await t.says(tab, '#run-title', /Your job: ann\/llama-DF11/);
  await t.says(tab, '#phase', /40%/);
  await t.says(tab, '#clock', /elapsed.*so far/);
  t.want(/close this page/.test(await t.text(tab, '#run')), 'it does not say that the page may be closed');
  t.want(/40%/.test(await tab.title()), `the title is ${await tab.title()}`);
  await tab.click('#sign-out');
  await t.says(tab, '#about-job', /goes on.*costing/);
  await t.close(tab);
}], ['job: 401 while it runs', async t => {
  t.play({ [post]: job(t, 'RUNNING'), [list]: { body: [] }, [one]: [job(t, 'RUNNING'), { status: 401 }], [logs]: stream(progress(3)) });
  const tab = await signed(t);
  await tab.click('#start');
  await t.says(tab, '#about-job', /sign-in has ended.*Sign in/);
  t.want(!/ann/.test(await t.text(tab, '#who')), 'still shown as signed in');
  t.want(/job=J1/.test(tab.url()), 'the job is lost');
  await t.close(tab);
}], ['job: 404 for good', async t => {
  t.play({ [one]: { status: 404 }, [logs]: { status: 404 } });
  const tab = await signed(t, model + '&job=J1');
  await t.says(tab, '#about-job', /knows no such job/);
  await t.close(tab);
}], ['job: cancel is refused', async t => {
  t.play({ [post]: job(t, 'RUNNING'), [list]: { body: [] }, [one]: job(t, 'RUNNING'), [logs]: stream(progress(3)), 'POST .*/cancel': { status: 403 } });
  const tab = await signed(t);
  await tab.click('#start');
  await t.says(tab, '#phase', /3%/);
  await tab.click('#cancel');
  await t.says(tab, '#phase', /not canceled/);
  await t.close(tab);
}], ['job: no news', async t => {
  t.play({ [post]: job(t, 'RUNNING'), [list]: { body: [] }, [one]: [job(t, 'RUNNING'), 'cut', 'cut', 'cut', job(t, 'RUNNING')], [logs]: stream(progress(3)) });
  const tab = await signed(t);
  await tab.click('#start');
  await t.says(tab, '#about-lost', /No news/);
  await tab.waitForFunction(() => !document.getElementById('about-lost'), { timeout: 30_000 });
  await t.close(tab);
}], ['money: before the sign-in, and as the Hub has it', async t => {
  t.play({ 'GET /api/jobs/hardware': { body: [{ name: 'cpu-upgrade', unitCostUSD: 0.01, unitLabel: 'minute' }, { name: 'cpu-performance', unitCostUSD: 0.02, unitLabel: 'minute' }] } });
  const tab = await t.open(model);
  await t.says(tab, '#start', /about 2 min, at most \$0\.10/);
  const said = await t.text(tab, '#job');
  t.want(/every minute/.test(said) && /prices of today/.test(said) && /guess/.test(said) && /close the page/.test(said) && !/second/.test(said), said);
  await t.close(tab);
}], ['money: nothing to gain', async t => {
  const tab = await t.open('/?model=org/unknown');
  await t.seen(tab, '#plan-title');
  const [gain, button] = await tab.evaluate(() => [document.getElementById('sizes').innerText, document.getElementById('start').checkVisibility()]);
  t.want(!/nothing/.test(gain) || !button, `${gain}, and a job is offered`);
  await t.close(tab);
}]);

// What visitors paste goes to the program's own parser, with the same table as the command line and the Action.
const table = JSON.parse(readFileSync('cmd/df11-convert/testdata/addresses.json', 'utf8')).filter(({ text }) => !text.includes('mirror:'));
const named = ({ repo, revision, file }) => file ? 'hf://' + repo + (revision ? '@' + encodeURIComponent(revision) : '') + '/' + encodeURI(file)
  : repo + (revision ? '@' + revision : '');
const addresses = ['paste: all of the table', async t => {
  const tab = await t.open('/');
  const got = await tab.evaluate(async texts => {
    const { address } = await import(new URL('planner.js', document.querySelector('script[type=module]').src));
    const found = [];
    for (const text of texts) found.push(await address(text).catch(problem => ({ why: problem.why })));
    return found;
  }, table.map(row => row.text));
  table.forEach((row, i) => {
    const isModel = /^[\w.-]+\/[\w.-]+$/.test(row.repo ?? '') && !row.repo.startsWith('.');
    t.want(isModel ? got[i] === named(row) : row.error ? got[i].why === row.error : got[i].why, `${row.text}: ${JSON.stringify(got[i])}`);
  });
  await t.close(tab);
}];
const pastes = [
  ['"https://hf.co/org/llama/tree/main?x=1#y" ', '#plan-title', /org\/llama/],
  ['git clone https://huggingface.co/org/llama.git', '#plan-title', /org\/llama/],
  ['https://huggingface.co/org/llama/resolve/main/model.safetensors?download=true', '#plan-title', /org\/llama/],
  ['https://huggingface.co/datasets/a/b', '#about-answer', /is a dataset, not a model.*name a model/s],
  ['https://huggingface.co/gpt2', '#about-answer', /names no model/],
  ['a/b/c', '#about-answer', /a\/b\/c: no such file or folder, and not a Hub id/],
].map(([pasted, where, wanted]) => [`paste: ${pasted}`, async t => {
  const tab = await t.open('/?model=' + encodeURIComponent(pasted));
  await t.says(tab, where, wanted);
  await t.close(tab);
}]);

// Whatever comes from a repo may be forged. No name becomes markup or an address, turns what is around it, or widens the page.
const forgeries = [
  ['plan', '/?model=org/forged', '#plan-title'],
  ['address', '/?model=' + encodeURIComponent('javascript:alert(1)//<img src=x onerror=alert(1)>\u202e'), '#about-answer'],
  ...[0, 1, 2, 3, 4, 5].map(n => [`manifest ${n}`, `/?check=ann/forged-${n}`, '#check:not([hidden]), #about-answer']),
].map(([name, path, where]) => [`forged: ${name}`, async t => {
  t.want(t.forged === 6, `${t.forged} forgeries`);
  const tab = await t.open(path, { ...slow, width: 360 });
  await t.seen(tab, where);
  await t.idle(tab);
  await tab.$$eval('details', all => all.forEach(d => { d.open = true; }));
  await t.look(tab, `forged-${name.replace(' ', '-')}-light`);
  const longest = await tab.evaluate(() => Math.max(...[...document.querySelectorAll('main *')].map(e => e.childElementCount ? 0 : e.textContent.length)));
  t.want(longest < 3000, `a name of ${longest} characters`);
  await t.close(tab);
}]);
forgeries.push(['forged: the answers of the Hub', async t => {
  const evil = '<img src=x onerror=alert(1)>\u202e"';
  t.play({ 'GET /api/models': { body: [{ id: evil }, { id: { a: 1 } }, { id: 'org/llama' }] }, [userinfo]: { body: { preferred_username: evil } }, [list]: { body: [] } });
  const tab = await t.open(model, { ...slow, kept: t.kept });
  await t.seen(tab, '#plan-title');
  await t.idle(tab);
  await tab.$eval('#model', e => { e.value = ''; });
  await tab.type('#model', 'llam');
  await tab.waitForFunction(() => document.querySelectorAll('#ids option').length > 0);
  const offered = await tab.$$eval('#ids option', all => all.map(e => e.value));
  t.want(String(offered) === 'org/llama', `suggests ${JSON.stringify(offered)}`);
  await t.agree(tab);
  await t.says(tab, '#about-sign-in', /hasn.t said who you are/);
  t.want(await t.text(tab, '#who') === '', 'an account without a name');
  await t.look(tab, 'forged-account-light');
  await t.close(tab);
}]);

// The table of 3.3: what is read and written, and what the visitor is offered first.
const offers = [
  ['8B', 16.4e9, 11.2e9, 'cpu-performance 2 min $0.07 $0.32', 2],
  ['405B', 812e9, 553e9, 'cpu-performance 18 min $0.57 $2.22', 1],
  ['small', 235e6, 161e6, 'cpu-upgrade 2 min $0.01 $0.01', 1],
].map(([name, download_bytes, upload_bytes, wanted, n]) => [`money: ${name}`, async t => {
  const { quotes, span, dollars } = await import(process.cwd() + '/page/job.js'), all = quotes({ download_bytes, upload_bytes }), [q] = all;
  const said = `${q.flavor} ${span(q.seconds)} ${dollars(q.cost)} ${dollars(q.most)}`;
  t.want(said === wanted && all.length === n, `${said}, ${all.length} machines`);
}]);

export const cases = [...broken, ...away, ...visits, ...next, ...signIns, ...ends3, ...starts, ...twice, addresses, ...pastes, ...forgeries, ...offers];
