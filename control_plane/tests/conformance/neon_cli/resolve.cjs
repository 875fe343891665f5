// Lets names below db.localhost resolve to 127.0.0.2, as a wildcard entry of a DNS server does.
const dns = require("node:dns");
const { syncBuiltinESMExports } = require("node:module");

for (const module of [dns, dns.promises]) {
  const { lookup } = module;
  module.lookup = (name, ...rest) => lookup(name.endsWith(".db.localhost") ? "127.0.0.2" : name, ...rest);
}
syncBuiltinESMExports();
