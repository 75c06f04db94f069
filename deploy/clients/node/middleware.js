'use strict';
// Counts the page views of an application: (req, res, next), as Express, Connect and others have it, and plain http.
//
// What is counted is what `tallyd import` counts of an access log: GET and POST, answered with 2xx or 304, and no file by
// its suffix.  Known robots are left out by the server (bots: 'drop'), and what a browser fetches in advance here.
const net = require('net');

const FILE = /\.(css|js|mjs|map|json|xml|txt|ico|png|jpe?g|gif|svg|webp|avif|bmp|woff2?|ttf|otf|eot|mp3|mp4|webm|ogg)$/i;

function isView(method, path, status) {
  return ['GET', 'POST'].includes(method) && ((status >= 200 && status < 300) || status === 304) && !FILE.test(path);
}

const plain = (address) => (address || '').trim().replace(/^\[([^\]]*)\].*$/, '$1').replace(/^([^:]*):\d+$/, '$1').replace(/^::ffff:(?=[\d.]+$)/i, '');

/** The last address of X-Forwarded-For that no trusted proxy has, as tallyd's --trusted-proxies reads it. */
function clientAddress(peer, forwarded, trusted) {
  let address;
  for (const entry of [peer, ...(forwarded || '').split(',').reverse()]) {
    const host = plain(entry);
    const family = net.isIP(host);
    if (family === 0) break;
    address = host;
    if (!trusted.check(host, family === 6 ? 'ipv6' : 'ipv4')) break;
  }
  return address;
}

/** `user`: a function of the request, called when it has been answered; `counts`: one of method, path and status. */
function middleware(client, { site, user, trustedProxies = [], counts = isView } = {}) {
  const trusted = new net.BlockList();
  for (const network of trustedProxies) {
    const [address, bits] = network.split('/');
    const family = net.isIPv6(address) ? 'ipv6' : 'ipv4';
    trusted.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family);
  }
  return (req, res, next) => {
    const ts = Date.now();
    const ip = clientAddress(req.socket.remoteAddress, req.headers['x-forwarded-for'], trusted);
    const path = (req.originalUrl || req.url).replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '') || '/';
    res.once('close', () => {
      if (!res.headersSent || !counts(req.method, path, res.statusCode) || /prefetch/.test(req.headers['sec-purpose'])) return;
      let who;
      try {
        who = user?.(req);
      } catch {
        // the page is served, whoever it was
      }
      client.track(path, { ts, user: who, site, ip, ua: req.headers['user-agent'] });
    });
    next?.();
  };
}

module.exports = { middleware, isView, clientAddress };
