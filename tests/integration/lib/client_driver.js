'use strict';
// The Node client on a leash: a JSON command a line on stdin, a JSON answer a line on stdout; at the end of stdin it ends.
const path = require('path');
const { Client } = require(path.resolve(__dirname, '../../../deploy/clients/node'));

let client;
const perform = {
  open: ({ url, options }) => { client = new Client(url, options); return true; },
  track: ({ pages, members }) => pages.map((page) => client.track(page, members)),
  flush: ({ ms }) => client.flush(ms),
  close: ({ ms }) => client.close(ms),
  stats: () => client.stats(),
};

(async () => {
  for await (const row of require('readline').createInterface({ input: process.stdin })) {
    const command = JSON.parse(row);
    process.stdout.write(JSON.stringify(await perform[command.do](command)) + '\n');
  }
})();
