'use strict';

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const test = require('node:test');

// Processes that together take what none of them takes alone: a single one may be refused memory, and fail by itself.
const kEater = "const taken = Buffer.alloc(96 << 20, 'x'); setInterval(() => taken.length, 1000)";

test('the end that was asked for', async () => {
  const end = process.env.END || 'pass';
  if (end === 'hang') await new Promise(() => setInterval(() => {}, 1000));
  if (end === 'memory') {
    const eaters = [1, 2, 3, 4].map(() => spawn(process.execPath, ['-e', kEater]));
    await Promise.race(eaters.map((eater) => new Promise((resolve) => eater.on('exit', resolve))));
    eaters.forEach((eater) => eater.kill());
  }
  assert.strictEqual(end, 'pass');
});
