#!/usr/bin/env -S node --preserve-symlinks-main
'use strict';

// Finds the links of a page in Markdown or HTML and asks each of them whether it is still there, many at the same time.

require = require('node:module').createRequire(process.cwd() + '/'); // modules are found from this folder
const { HostError, Permanent, serve } = require('../../sdk/process/node');

/** The links of a text with the lines in which they stand, each once. */
function links(text) {
  const found = new Map();
  // [text](URL "title"), <URL>, href="URL", src="URL", [name]: URL
  const pattern = /\]\(<?([^\s)>]+)|<(https?:[^\s>]+)>|\b(?:href|src)\s*=\s*["']([^"']+)["']|^[ \t]*\[[^\]]+\]:\s*<?([^\s>]+)/gim;
  let line = 1;
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    for (; at < match.index; at++) line += text[at] === '\n';
    const url = match.slice(1).find(Boolean).replaceAll('&amp;', '&');
    if (/^https?:\/\//i.test(url) && !found.has(url)) found.set(url, line);
  }
  return [...found].map(([url, line]) => ({ url, line }));
}

/** Asks for a link; where HEAD is refused, by GET. */
async function check(job, url) {
  try {
    let response = await job.fetch(url, { method: 'HEAD' });
    if ([403, 405, 501].includes(response.status)) response = await job.fetch(url);
    return response.ok ? undefined : `status ${response.status}`;
  } catch (e) {
    if (e instanceof HostError) throw e; // the attempt is over, or no requests are granted
    return e.reason ?? e.message;
  }
}

async function linkcheck(job) {
  const all = links(job.text());
  if (all.length === 0) throw new Permanent('there are no links in it', { code: 'no_links', category: 'validation' });
  const broken = [];
  let next = 0;
  let done = 0;
  await Promise.all(Array.from({ length: Math.min(16, all.length) }, async () => {
    while (next < all.length) {
      const link = all[next++];
      const fault = await check(job, link.url);
      if (fault) broken.push({ ...link, fault });
      job.progress(++done, all.length);
    }
  }));
  await job.counter('links', { state: 'ok' }).add(all.length - broken.length);
  await job.counter('links', { state: 'broken' }).add(broken.length);
  broken.sort((a, b) => a.line - b.line);
  return { links: all.length, broken };
}

serve(linkcheck);
