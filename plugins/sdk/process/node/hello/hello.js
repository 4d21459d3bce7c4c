#!/usr/bin/env -S node --preserve-symlinks-main
'use strict';

// Greets whoever the payload names: the smallest useful worker.

require = require('node:module').createRequire(process.cwd() + '/'); // modules are found from this folder
const { Permanent, serve } = require('..'); // '@jobhost/worker' where it is installed

serve((job) => {
  const name = job.text().trim();
  if (name === '') throw new Permanent('nobody to greet: the payload is empty');
  return `hello, ${name}`;
});
