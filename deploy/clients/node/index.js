'use strict';
// Page views for tallyd: queued, sent in the background, counted once.  README.md says how.
const { Client } = require('./client');
const { middleware } = require('./middleware');

module.exports = { Client, middleware };
