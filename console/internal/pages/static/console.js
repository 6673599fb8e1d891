// SPDX-License-Identifier: Apache-2.0
'use strict';

// replace a part of the page. What a person opened or is at stays so.
const replace = (part, html) => {
  const open = [...part.querySelectorAll('details[open][id]')].map((d) => d.id);
  const at = document.activeElement && part.contains(document.activeElement) ? document.activeElement.id : '';
  part.innerHTML = html;
  open.forEach((id) => { const d = document.getElementById(id); if (d) d.open = true; });
  if (at) { const e = document.getElementById(at); if (e) e.focus(); }
};

// What changes by itself: the server sends a part of the page whenever it differs.
const live = document.querySelector('[data-live]');
if (live) {
  const state = document.getElementById('state');
  const source = new EventSource(live.dataset.live);
  source.addEventListener('part', (event) => { replace(live, event.data); });
  source.addEventListener('open', () => { state.textContent = 'live'; });
  source.addEventListener('error', () => { state.textContent = source.readyState === EventSource.CLOSED ? 'not live: load this page again later' : 'not live: connecting again'; });
  source.addEventListener('ended', () => { source.close(); state.textContent = 'not live: log in again'; });
}

// What a person types stays in this tab until it was applied, also when the login ends meanwhile. It belongs to one user.
const drafts = 'draft ';
const user = document.body.dataset.user || '';
const key = (path) => drafts + user + ' ' + path;
if (document.body.dataset.done) sessionStorage.removeItem(key(document.body.dataset.done));
if (document.body.dataset.out) Object.keys(sessionStorage).filter((k) => k.startsWith(drafts)).forEach((k) => sessionStorage.removeItem(k));
const form = document.querySelector('form[data-draft]');
if (form) {
  const here = key(location.pathname);
  const fields = () => [...form.elements].filter((e) => e.name && e.name !== 'csrf' && e.type !== 'submit');
  const keep = () => {
    const values = {};
    fields().forEach((e) => { values[e.name] = e.value; });
    try { sessionStorage.setItem(here, JSON.stringify(values)); } catch { /* the storage is full: the page still has it */ }
  };
  const kept = sessionStorage.getItem(here);
  if (kept && form.dataset.draft === 'new') {
    const values = JSON.parse(kept);
    fields().forEach((e) => { if (e.name in values) e.value = values[e.name]; });
    document.getElementById('restored').hidden = false;
  }
  if (form.dataset.draft !== 'new') keep();
  form.addEventListener('input', keep);
  const forget = document.getElementById('forget');
  if (forget) forget.addEventListener('click', () => { sessionStorage.removeItem(here); location.reload(); });
}

// The plan of a draft that was checked comes after the page, because it takes a moment. The button stays until it is there.
const plan = document.querySelector('[data-plan]');
if (plan && form) {
  const state = document.getElementById('plan-state');
  const button = plan.querySelector('button');
  const show = async () => {
    const sent = new URLSearchParams(new FormData(form));
    sent.set('do', 'plan');
    sent.set('part', 'yes');
    state.textContent = 'The plan is being made.';
    button.disabled = true;
    try {
      const rsp = await fetch(location.pathname, { method: 'POST', body: sent });
      const text = await rsp.text();
      if (rsp.headers.has('X-Part')) {
        plan.innerHTML = text;
        state.textContent = 'The plan is ready.';
        return;
      }
      state.textContent = rsp.status === 401 ? 'There is no plan: log in again.' : 'There is no plan: check the draft again.';
    } catch {
      state.textContent = 'There is no plan: the console cannot be reached.';
    }
    button.disabled = false;
  };
  button.addEventListener('click', (event) => { event.preventDefault(); show(); });
  show();
}

// Curves come after the page, because another server has them, and follow each minute that the page is seen.
const curves = document.querySelector('[data-curves]');
if (curves) {
  const state = document.getElementById('curves-state');
  const draw = async () => {
    if (document.hidden) return;
    try {
      const rsp = await fetch(curves.dataset.curves);
      const text = await rsp.text();
      if (rsp.headers.has('X-Part')) {
        replace(curves, text);
        state.textContent = '';
        return;
      }
      state.textContent = rsp.status === 401 ? 'The curves are not live: log in again.' : 'The curves are not live: load this page again later.';
    } catch {
      state.textContent = 'The curves are not live: the console cannot be reached.';
    }
  };
  state.textContent = 'The curves are being drawn.';
  setInterval(draw, 60000);
  document.addEventListener('visibilitychange', draw);
  draw();
}

// The slider of a restore writes a time, which can be typed as well.
const slider = document.querySelector('input[data-for]');
if (slider) {
  const text = document.getElementById(slider.dataset.for);
  const words = () => new Date(slider.valueAsNumber * 1000).toISOString().replace('.000Z', 'Z');
  slider.addEventListener('input', () => { text.value = words(); slider.setAttribute('aria-valuetext', words()); });
}
