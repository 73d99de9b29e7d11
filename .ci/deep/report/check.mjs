// Opens report pages in headless Chromium over its debugging protocol and fails on console messages, on what hangs over the
// page's edge, and on read-outs or sorting that do not work.
//
//   node check.mjs chromium PROFILE_FOLDER PAGE.html…        checks
//   SCREENSHOTS=FOLDER node check.mjs …                      and takes pictures
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [program, profile, ...pages] = process.argv.slice(2);
const pictures = process.env.SCREENSHOTS;
const faults = [];

const browser = spawn(program, [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--hide-scrollbars',
  `--user-data-dir=${profile}`, '--remote-debugging-pipe', 'about:blank',
], { stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] });
let complaints = '';
browser.stderr.on('data', data => { complaints += data; });
const ended = new Promise(done => browser.on('exit', done));
ended.then(() => {
  if (!waiting.size) return;
  console.error(complaints + 'the browser ended');
  process.exit(1);
});
for (const pipe of browser.stdio) pipe?.on('error', () => {}); // the end of the browser is told above

// send calls a method of the protocol; listeners hear its events. Messages end with a zero byte.
const waiting = new Map(), listeners = new Set();
let last = 0, rest = '';
browser.stdio[4].setEncoding('utf8').on('data', data => {
  const messages = (rest + data).split('\0');
  rest = messages.pop();
  for (const message of messages.map(text => JSON.parse(text))) {
    if (!message.id) {
      listeners.forEach(hear => hear(message));
      continue;
    }
    const { yes, no } = waiting.get(message.id);
    waiting.delete(message.id);
    message.error ? no(new Error(message.error.message)) : yes(message.result);
  }
});
const send = (method, params = {}, sessionId) => new Promise((yes, no) => {
  waiting.set(++last, { yes, no });
  browser.stdio[3].write(JSON.stringify({ id: last, method, params, sessionId }) + '\0');
});

async function check(page) {
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
  const call = (method, params) => send(method, params, sessionId);
  const run = async expression => {
    const { result, exceptionDetails } = await call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true, userGesture: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  const name = basename(page, '.html');
  const want = (ok, what) => { if (!ok) faults.push(`${name}: ${what}`); };
  let loaded;
  const hear = ({ method, params, sessionId: from }) => {
    if (from !== sessionId) return;
    if (method === 'Page.loadEventFired') loaded();
    if (method === 'Runtime.exceptionThrown') want(false, 'exception: ' + (params.exceptionDetails.exception?.description ?? params.exceptionDetails.text));
    if (method === 'Log.entryAdded') want(false, 'logged: ' + params.entry.text);
    if (method === 'Runtime.consoleAPICalled') want(false, 'console: ' + params.args.map(a => a.value).join(' '));
    if (method === 'Network.requestWillBeSent' && !/^(file|data):/.test(params.request.url)) want(false, 'asked for ' + params.request.url);
  };
  listeners.add(hear);
  for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await call(domain + '.enable');
  const shot = async (view, height) => {
    if (!pictures) return;
    const { data } = await call('Page.captureScreenshot', { captureBeyondViewport: !height });
    writeFileSync(`${pictures}/${name}-${view}.png`, data, 'base64');
  };

  for (const [view, width, scheme] of [['desktop-light', 1280, 'light'], ['desktop-dark', 1280, 'dark'], ['tablet', 768, 'light'], ['middle', 920, 'dark'],
     ['phone-light', 390, 'light'], ['phone-dark', 390, 'dark']]) {
    const mobile = width < 600;
    await call('Emulation.setDeviceMetricsOverride', { width, height: mobile ? 844 : 900, deviceScaleFactor: mobile ? 2 : 1, mobile });
    await call('Emulation.setTouchEmulationEnabled', { enabled: mobile });
    await call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
    const done = new Promise(ready => { loaded = ready; });
    await call('Page.navigate', { url: pathToFileURL(resolve(page)).href });
    await done;
    const wide = await run('document.documentElement.scrollWidth');
    want(wide <= width, `${view}: the page is ${wide} pixels wide on a screen of ${width}`);
    const over = await run(`[...document.querySelectorAll('main *, header *, footer *')]
      .filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 90))`);
    want(over.length === 0, `${view}: hangs over the right edge: ${over.join(' | ')}`);
    const touching = await run(`[...document.querySelectorAll('.ticks')].flatMap(axis => {
      const boxes = [...axis.children].map(e => e.getBoundingClientRect()).filter(b => b.width > 0);
      return boxes.filter((b, i) => i > 0 && b.left < boxes[i - 1].right + 2); }).length`);
    want(touching === 0, `${view}: ${touching} labels of an axis touch`);
    const empty = await run(`[...document.querySelectorAll('.plot')].filter(p => { const b = p.getBoundingClientRect(); return b.width < 200 || b.right > innerWidth; }).length`);
    want(empty === 0, `${view}: ${empty} plots are not in full view`);
    await shot(view);
  }
  await interact(name, run, call, want, shot);
  if (pictures) {
    const { data } = await call('Page.printToPDF', { printBackground: true, preferCSSPageSize: true });
    writeFileSync(`${pictures}/${name}.pdf`, data, 'base64');
  }
  listeners.delete(hear);
  await send('Target.closeTarget', { targetId });
}

// interact points at every plot, taps, and sorts every table both ways.
async function interact(name, run, call, want, shot) {
  const nPlots = await run(`document.querySelectorAll('.plot').length`);
  if (!nPlots) return;
  for (let i = 0; i < nPlots; i++) {
    const at = await run(`(() => { const p = document.querySelectorAll('.plot')[${i}]; p.scrollIntoView({ block: 'center' });
      const b = p.getBoundingClientRect(), t = JSON.parse(document.getElementById('readouts').textContent)[p.dataset.x];
      const slot = t.findLastIndex(s => s);
      return { x: b.left + (slot + 0.5) / t.length * b.width, y: b.top + b.height / 2, text: t[slot], axis: p.dataset.x }; })()`);
    for (const type of ['touchStart', 'touchEnd']) await call('Input.dispatchTouchEvent', { type, touchPoints: type === 'touchStart' ? [{ x: at.x, y: at.y }] : [] });
    const seen = await run(`({ text: document.getElementById('read').textContent, hidden: document.getElementById('read').hidden,
      lines: [...document.querySelectorAll('.plot[data-x=${at.axis}] .cursor')].map(l => !l.hidden) })`);
    want(!seen.hidden && seen.text.includes(at.text.split(':')[0]), `plot ${i}: a tap reads ${JSON.stringify(seen.text)}, want ${JSON.stringify(at.text)}`);
    want(seen.lines.every(Boolean), `plot ${i}: the cursor is not on all plots of its axis`);
    if (i === nPlots - 1) await shot('phone-tap', true);
  }
  await run(`document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))`);
  want(await run(`document.getElementById('read').hidden`), 'Escape does not take the read-out away');
  const unsorted = await run(`[...document.querySelectorAll('table.sort th button')].filter(b => {
    const i = b.parentNode.cellIndex, rows = b.closest('table').tBodies[0].rows;
    const n = () => [...rows].map(r => parseFloat((r.cells[i]?.textContent ?? '').replace(/[^\\d.-]/g, '')));
    const rising = v => v.every((x, k) => k === 0 || isNaN(x) || isNaN(v[k - 1]) || v[k - 1] <= x);
    b.click(); const up = n(); b.click(); const down = n();
    return i > 0 && !(rising(up) && rising(down.reverse())); }).length`);
  want(unsorted === 0, `${unsorted} columns do not sort`);
  await call('Emulation.setTouchEmulationEnabled', { enabled: false });
}

try {
  for (const page of pages) await check(page);
} finally {
  browser.kill();
  await ended;
}
faults.forEach(f => console.error(f));
if (faults.length) process.exit(1);
console.log(`${pages.length} pages: no console messages, nothing over the edge from 390 to 1280 pixels; read-outs and sorting work`);
