// The Hub: its API, who is signed in, and what this tab keeps. The token is in this module's memory alone.

export const setting = name => document.querySelector(`meta[name="${name}"]`).content;
export const hub = () => setting('hub');
export const wait = ms => new Promise(done => setTimeout(done, ms));
// A Problem is what went wrong in words for a visitor: a title, the reason, and what to do.
export class Problem extends Error {
  constructor(title, why = '', todo = [], more = {}) {
    super(title);
    Object.assign(this, { title, why, todo }, more);
  }
  // of leaves a Problem as it is, and makes one of another error.
  static of(error, title, ...todo) { return error instanceof Problem ? error : new Problem(title, error.message, todo); }
}
// shown makes a text from outside fit to be read: it escapes what has no glyph, such as marks that turn the direction of writing, and cuts
// what would fill the screen.
const longest = 1000;
const cut = text => text.length > longest ? text.slice(0, longest) + '…' : text;
export const shown = text => cut(String(text ?? '')).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, c =>
  c === '\n' ? c : [...Array(c.length).keys()].map(i => '\\u' + c.charCodeAt(i).toString(16).padStart(4, '0')).join(''));
// keep holds texts for this tab's session, unless the browser forbids that.
const session = work => {
  try { return work(sessionStorage); } catch { return undefined; }
};
export const keep = {
  get: key => session(kept => kept.getItem(key)) ?? undefined,
  set: (key, text) => session(kept => { kept.setItem(key, text); return true; }), // whether it is kept
  drop: key => session(kept => kept.removeItem(key)),
};

// --- questions ----------------------------------------------------------------------------------------------------------
export let account = {}; // token, ends, user: all of it or nothing
// api asks the Hub, and it alone. A read is repeated while the Hub is busy or away: tries times in all.
export async function api(path, { tries = 1, token = account.token, headers, ...options } = {}) {
  const identity = token && { Authorization: 'Bearer ' + token };
  for (let n = 1; ; n++) {
    const answer = await once(path, { ...options, headers: { ...identity, ...headers } }).catch(error => error);
    if (answer instanceof Response) return answer;
    if (n >= tries || answer.status && answer.status !== 429 && answer.status < 500) throw answer;
    await wait(1000 * Math.min(answer.after || 2 ** n, 60));
  }
}
async function once(path, options) {
  const { signal = AbortSignal.timeout(30_000) } = options;
  const answer = await fetch(hub() + path, { ...options, signal, credentials: 'omit', referrerPolicy: 'no-referrer' }).catch(() => {
    throw new Problem(navigator.onLine ? 'The Hub can’t be reached' : 'You’re offline', '', ['check your connection, then try again']);
  });
  if (answer.ok) return answer;
  const { error, error_description: more } = await answer.json().catch(() => ({}));
  const { status } = answer, said = more ?? error;
  throw new Problem(`The Hub answers with ${status}`, said ? 'The Hub says: ' + shown(said) : '', [],
    { status, after: +answer.headers.get('Retry-After') });
}

export async function json(path, options) {
  const value = await (await api(path, options)).json().catch(() => undefined);
  if (value && typeof value === 'object') return value;
  throw new Problem('The Hub sent something else than an answer', '', ['a proxy or a login page of your network may be in between']);
}
// suggest lists models whose names hold a text, the most downloaded first.
export const suggest = (text, limit = 8) => json('/api/models?' + new URLSearchParams({ search: text, limit, sort: 'downloads' }))
  .then(models => models.map(m => String(m.id)).filter(id => /^[\w.-]+\/[\w.-]+$/.test(id))).catch(() => []);

// --- sign-in ------------------------------------------------------------------------------------------------------------
const client = () => window.huggingface?.variables?.OAUTH_CLIENT_ID || setting('oauth-client'); // a Space brings its own
const scope = 'openid profile jobs contribute-repos gated-repos';
const here = () => location.origin + location.pathname;
const pending = 'df11-sign-in'; // kept from leaving for the Hub until coming back: no token
const base64url = raw => btoa(String.fromCharCode(...raw)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));
const again = 'Press “Sign in” to try again.';
export const canSignIn = () => isSecureContext && !!client();
export const framed = () => window.top !== window;
// signIn leaves for the Hub. A frame, in which the Hub refuses to ask, opens a tab that does so.
export async function signIn() {
  if (framed()) {
    if (window.open(location.href)) return;
    throw new Problem('Your browser has blocked a new tab', '', ['allow it for this page: signing in needs one']);
  }
  const verifier = random(), state = random();
  if (!keep.set(pending, JSON.stringify({ verifier, state, query: location.search }))) {
    throw new Problem('You can’t sign in', 'Your browser forbids this page to keep anything until the Hub answers.',
      ['allow cookies and site data for this page, or use the command under “Run it yourself”']);
  }
  const challenge = base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
  location.assign(hub() + '/oauth/authorize?' + new URLSearchParams({
    client_id: client(), redirect_uri: here(), response_type: 'code', scope, state,
    code_challenge: challenge, code_challenge_method: 'S256',
  }));
}

// signOut forgets the visitor, and what only they may know: plans.
export function signOut() {
  account = {};
  session(kept => Object.keys(kept).filter(key => key.startsWith('df11-')).forEach(keep.drop));
}
// comeFromFrame takes over what a frame of this page keeps that has opened this tab to sign in, and says whether there is one.
export function comeFromFrame() {
  try {
    const from = window.opener;
    if (!from || from.location.origin !== location.origin || from.top === from) return false;
    window.opener = null;
    for (const [key, text] of Object.entries(from.sessionStorage)) keep.set(key, text);
    return true;
  } catch { return false; } // another site's
}
const declined = {
  access_denied: ['You didn’t agree', 'Without the three rights no job can be started for you. Plans and checks need no sign-in.'],
  invalid_scope: ['The Hub doesn’t grant what this page asks for',
    'The page’s operator must register it for jobs, contribute-repos, and gated-repos.'],
};
// comeBack takes the Hub's answer out of the address, and signs in if it answers this tab's question. It says whether there was one.
export async function comeBack() {
  const query = new URLSearchParams(location.search), asked = JSON.parse(keep.get(pending) ?? 'null');
  keep.drop(pending);
  if (!['state', 'code', 'error'].some(name => query.has(name))) return false;
  history.replaceState(null, '', here() + (asked?.query ?? ''));
  if (!asked || query.get('state') !== asked.state) {
    throw new Problem('You’re not signed in', 'The answer belongs to no sign-in that this tab has begun, so it was thrown away.', [again]);
  }
  if (!query.has('code')) {
    const said = shown(query.get('error_description') ?? query.get('error'));
    const [title, why] = declined[query.get('error')] ?? ['The Hub hasn’t signed you in', said];
    throw new Problem(title, why, [again]);
  }
  const form = new URLSearchParams({ grant_type: 'authorization_code', client_id: client(), code: query.get('code'),
    redirect_uri: here(), code_verifier: asked.verifier });
  try {
    const got = await json('/oauth/token', { method: 'POST', body: form, token: '' });
    if (!got.access_token) throw new Problem('The Hub has sent no token');
    const { preferred_username: user } = await json('/oauth/userinfo', { token: got.access_token, tries: 3 });
    if (!/^[\w.-]{1,96}$/.test(user ?? '')) throw new Problem('The Hub hasn’t said who you are'); // it becomes a part of addresses
    account = { token: got.access_token, ends: Date.now() + 1000 * (got.expires_in ?? 3600), user };
  } catch (error) {
    const { title, why, todo } = Problem.of(error, 'That didn’t work');
    throw new Problem('You’re not signed in', [title, why].filter(Boolean).join('. '), [...todo, again]);
  }
  return true;
}
