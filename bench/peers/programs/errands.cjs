// The producer's errands for Node: see errands.py. `requireHere` finds packages in the peer's own environment.

const path = require("node:path");
const readline = require("node:readline");
const { createRequire } = require("node:module");

const PAYLOAD = "x".repeat(200);
const BULK = 1000;
const pause = () => new Promise((resolve) => setTimeout(resolve, 10 + 20 * Math.random()));
const requireHere = createRequire(path.join(process.env.BENCH_MODULES, "x.js"));

const errands = {
  async setup(jobs) {
    await jobs.setup();
    return { bulk: jobs.many !== undefined };
  },
  async noop(jobs, { turn, count, bulk }) {
    const began = process.hrtime.bigint(), cpu = process.cpuUsage();
    if (bulk) for (let first = 0; first < count; first += BULK) await jobs.many(turn, Math.min(BULK, count - first));
    else for (let job = 0; job < count; job += 1) await jobs.one("noop", { turn, payload: PAYLOAD });
    const { user, system } = process.cpuUsage(cpu);
    return { took_s: Number(process.hrtime.bigint() - began) / 1e9, cpu_s: (user + system) / 1e6 };
  },
  async stamps(jobs, { first, count }) {
    const called = [];
    for (let job = first; job < first + count; job += 1) {
      await pause();
      called.push(Number(process.hrtime.bigint()));
      await jobs.one("stamp", { job });
    }
    return { called };
  },
  async slow(jobs, { count }) {
    for (let job = 0; job < count; job += 1) await jobs.one("slow", { job });
    return {};
  },
  async left(jobs) {
    return { left: await jobs.left() };
  },
};

async function serve(jobs) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { do: name, ...options } = JSON.parse(line);
    console.log(JSON.stringify(await errands[name](jobs, options)));
  }
  await jobs.close();
  process.exit(0);
}

module.exports = { PAYLOAD, requireHere, serve };
