'use strict';

// How many words there are in a text.
exports.countWords = (text) => text.split(' ').filter((word) => word !== '').length;
