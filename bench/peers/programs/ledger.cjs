// The ledger for Node: see ledger.py. There is no shared page here: a timer writes it, five milliseconds at the latest
// after a job.

const fs = require("node:fs");
const path = require("node:path");

const SLOW_MS = 2000;
const open = (kind) => fs.openSync(path.join(process.env.BENCH_LEDGER, `${kind}-${process.pid}`), "a+");

let events = null;
let timer = null;
let seen = { turn: 0, jobs: 0, first: 0n, last: 0n };

function write() {
  timer = null;
  const page = Buffer.alloc(32);
  [seen.turn, seen.jobs, seen.first, seen.last].forEach((value, index) => page.writeBigUInt64LE(BigInt(value), 8 * index));
  fs.writeFileSync(path.join(process.env.BENCH_LEDGER, `tally-${process.pid}`), page);
}

function noop(turn) {
  const now = process.hrtime.bigint();
  if (turn !== seen.turn) seen = { turn, jobs: 0, first: now, last: now };
  seen.jobs += 1;
  seen.last = now;
  timer ??= setTimeout(write, 5);
}

function event(what, job) {
  events ??= open("events");
  fs.writeSync(events, `${what} ${job} ${process.hrtime.bigint()}\n`);
}

async function slow(job) {
  event("begin", job);
  await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
  event("end", job);
}

module.exports = { noop, event, slow };
