'use strict';

const assert = require('node:assert');
const test = require('node:test');
const { countWords } = require('../lib/words.js');

test('words are counted', () => {
  assert.strictEqual(countWords(''), 0);
  assert.strictEqual(countWords(' a  stray   sheep '), 3);
});
