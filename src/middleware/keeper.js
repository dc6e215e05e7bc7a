// Portcullis: keeps the key of a session in browsers that bind none by themselves.
//
// The key is made here, cannot be exported by any script, and lies in IndexedDB. The session is renewed by signing what the
// server asks for; its cookies alone renew nothing. Where the browser binds the session by itself, this does nothing.
//
// `fetch` and forms wait while the session is being renewed. For other requests: `await portcullis.ready()`.
(() => {
  'use strict';

  const ENDPOINT = '/portcullis/key';
  const PAGE = '/portcullis/renew';
  const HEADER = 'portcullis-key';
  const AHEAD = 120_000; // milliseconds before the end of a cookie at which it is renewed
  const plainFetch = window.fetch.bind(window);
  const isPage = location.pathname === PAGE;

  if (window.portcullis?.ready) return;
  const canKeep = window.isSecureContext && crypto.subtle && window.indexedDB && navigator.locks && storage();
  window.portcullis = Object.freeze({ ready: canKeep ? ready : async () => {} });
  if (!canKeep) return isPage && onceLoaded(failed);

  // ---- what is kept: the key in IndexedDB; in localStorage until when the cookie is fresh, for all tabs to see at once

  function storage() {
    try { return window.localStorage; } catch { return null; }
  }

  async function kept(mode, act) {
    const database = await new Promise((done, fail) => {
      const opening = indexedDB.open('portcullis', 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore('keys');
      opening.onsuccess = () => done(opening.result);
      opening.onerror = () => fail(opening.error);
    });
    try {
      return await new Promise((done, fail) => {
        const transaction = database.transaction('keys', mode);
        const request = act(transaction.objectStore('keys'));
        transaction.oncomplete = () => done(request.result);
        transaction.onabort = () => fail(transaction.error);
      });
    } finally {
      database.close();
    }
  }
  const load = () => kept('readonly', (keys) => keys.get('own'));
  const save = (own) => kept('readwrite', (keys) => keys.put(own, 'own'));
  const drop = () => kept('readwrite', (keys) => keys.delete('own'));

  const isKept = () => localStorage.getItem('portcullis') !== null;
  const left = () => Number(localStorage.getItem('portcullis')) - Date.now();
  const lasts = (milliseconds) => localStorage.setItem('portcullis', String(Date.now() + milliseconds));

  // ---- the key, and what it signs (RFC 7515, RFC 7517)

  async function make() {
    const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign', 'verify']);
    const { crv, kty, x, y } = await crypto.subtle.exportKey('jwk', pair.publicKey);
    return { key: pair.privateKey, jwk: { crv, kty, x, y }, isBound: false };
  }

  const bytes = (text) => new TextEncoder().encode(text);
  const base64url = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

  async function sign(own, challenge) {
    const part = (value) => base64url(bytes(JSON.stringify(value)));
    const header = part({ alg: 'ES256', jwk: own.jwk, typ: 'portcullis-key+jwt' });
    const signed = `${header}.${part({ jti: challenge })}`;
    const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, own.key, bytes(signed));
    return `${signed}.${base64url(signature)}`;
  }

  // ---- talking to the server

  async function ask(own, challenge, says = 'ask') {
    const headers = { [HEADER]: says };
    if (own && challenge) headers['Secure-Session-Response'] = await sign(own, challenge);
    const answer = await plainFetch(ENDPOINT, { method: 'POST', headers, cache: 'no-store', redirect: 'error' });
    if (!answer.ok) throw new Error(`the session cannot be renewed now: ${answer.status}`);
    return answer.json();
  }

  async function keep(signs) {
    localStorage.setItem('portcullis-asked', String(Date.now()));
    let own = await load();
    let answer = await ask(own, signs && own?.challenge);
    if (answer.state === 'unbound' && answer.wait) {
      await pause(answer.wait);
      answer = await ask();
    }
    if (answer.state === 'unbound') {
      // One whose binding was not answered is shown again: another would look like a thief's.
      if (!own || own.isBound) own = await make();
      own.challenge = answer.challenge;
      await save(own);
      answer = await ask(own, own.challenge);
    }
    for (let tries = 0; own && answer.state === 'stale' && tries < 2; tries += 1) {
      answer = await ask(own, answer.challenge);
    }
    if (answer.state === 'stale') {
      // The key is gone. The session ends, or every page would come by here for nothing.
      await drop();
      answer = await ask(null, null, 'lost');
    }
    if (answer.state === 'bound') {
      if (own) await save({ ...own, isBound: true, challenge: answer.challenge });
      lasts(answer.lasts);
      renewed = performance.now();
    } else {
      localStorage.removeItem('portcullis');
      if (answer.state === 'device') {
        sessionStorage.setItem('portcullis', 'device');
        await drop();
      }
    }
  }

  // ---- when

  let renewed = 0;
  let renewing;
  function renew() {
    renewing ??= navigator.locks.request('portcullis', async () => {
      // Another tab may just have done it.
      if (!isKept() || left() <= AHEAD) await keep(true);
      else if (isOutdated()) await keep(false);
    }).finally(() => { renewing = undefined; });
    return renewing;
  }

  // Whether it is a while ago that the server was asked: somebody else may have signed in since.
  const isOutdated = () => !(Date.now() - Number(localStorage.getItem('portcullis-asked')) < 60_000);

  // Resolves when the session is fresh, or could not be made so; at once as long as it is, or where no key is kept.
  async function ready() {
    if (!isKept() || left() > AHEAD) return;
    const done = renew().catch(() => {});
    if (left() <= 0) await done;
  }

  const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

  function isOwn(input) {
    try {
      return new URL(input instanceof Request ? input.url : input, document.baseURI).origin === location.origin;
    } catch {
      return false;
    }
  }

  window.fetch = async function fetch(input, init) {
    if (!isOwn(input)) return plainFetch(input, init);
    await ready();
    const asked = performance.now();
    const answer = await plainFetch(input, init);
    // This clock and the server's do not agree, or the machine has slept.
    if (answer.headers.get(HEADER) !== 'stale') return answer;
    if (renewed < asked) lasts(0);
    await ready();
    const isSpent = input instanceof Request || init?.body instanceof ReadableStream;
    return isSpent ? answer : plainFetch(input, init);
  };

  const letThrough = new WeakSet();
  addEventListener('submit', (event) => {
    const { target: form, submitter } = event;
    if (letThrough.delete(form) || !isKept() || left() > 0) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    ready().finally(() => {
      letThrough.add(form);
      // The button may be gone by now, and Safari before 16 cannot do it.
      try { form.requestSubmit(submitter); } catch { form.submit(); }
    });
  }, true);

  // No timer: a session that nobody uses is to end by its idle timeout.
  for (const sign of ['pointerdown', 'keydown']) addEventListener(sign, ready, { capture: true, passive: true });
  document.addEventListener('visibilitychange', () => { if (!document.hidden) ready(); });

  // ---- the page that comes between where a page was asked for with a cookie that is no longer fresh

  function onceLoaded(act) {
    if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', act);
    else act();
  }

  // Always whole, and of this origin: a path may begin with two slashes.
  function destination() {
    const to = new URLSearchParams(location.search).get('to') ?? '/';
    const url = new URL(to.startsWith('/') ? location.origin + to : location.origin);
    url.hash = location.hash;
    return url.origin === location.origin && url.pathname !== PAGE ? url.href : location.origin;
  }

  function failed() {
    document.getElementById('again').href = destination();
    document.getElementById('failed').hidden = false;
  }

  async function goOn() {
    // Where cookies do not stay it would go on for ever.
    const recent = (sessionStorage.getItem('portcullis-came') ?? '').split(' ').filter((at) => Date.now() - at < 10_000);
    sessionStorage.setItem('portcullis-came', [...recent, Date.now()].join(' '));
    if (recent.length >= 3) return failed();
    for (const after of [0, 1000, 2000]) {
      await pause(after);
      try {
        lasts(0);
        await renew();
        return location.replace(destination());
      } catch { /* once more */ }
    }
    failed();
  }

  if (isPage) onceLoaded(goOn);
  else if (isKept()) left() > AHEAD && !isOutdated() || renew().catch(() => {});
  else if (sessionStorage.getItem('portcullis') !== 'device') renew().catch(() => {});
})();
