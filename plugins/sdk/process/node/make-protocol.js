#!/usr/bin/env node
'use strict';

// Writes the description of the protocol in the form that the SDK loads. make protocol runs it.

const fs = require('node:fs');
const path = require('node:path');
const protobuf = require('protobufjs');

const root = protobuf.loadSync(path.join(__dirname, '../protocol/worker.proto'));
fs.writeFileSync(path.join(__dirname, 'lib/worker.json'), JSON.stringify(root.toJSON(), null, 1) + '\n');
