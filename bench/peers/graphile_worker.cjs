// Graphile Worker: `node graphile_worker.cjs install|enqueue|work URL [JOBS]`, where graphile-worker can be required.
//
// As https://worker.graphile.org/docs/performance has it "with batching": 24 concurrent jobs, a pool of 25 connections,
// a local queue of 500, completions released together without delay. Bulk enqueue by add_jobs.
//
// `work` says "ready", waits for a line on standard input, drains the queue once and reports as the raw loop's children
// do. Timed like ours: from the first start of a task to the last end, which leaves the last release out.

const path = require("node:path");
const { createRequire } = require("node:module");
const { Logger, makeWorkerUtils, runMigrations, runOnce } = createRequire(path.join(process.cwd(), "x.js"))("graphile-worker");

const BULK = 1000;
const PAYLOAD = "x".repeat(202);
const [errand, connectionString, jobs] = process.argv.slice(2);

const logger = new Logger(() => () => undefined);
const preset = {
  worker: {
    connectionString,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
};

const now = () => Number(process.hrtime.bigint()) / 1e9;
const spent = (since) => {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1e6;
};

async function enqueue() {
  const utils = await makeWorkerUtils({ connectionString, logger });
  const began = now(), cpu = process.cpuUsage();
  for (let first = 0; first < jobs; first += BULK) {
    const some = Array.from({ length: Math.min(BULK, jobs - first) }, () => ({
      identifier: "noop",
      payload: { payload: PAYLOAD },
    }));
    await utils.addJobs(some);
  }
  const report = { jobs: Number(jobs), began, ended: now(), cpu_s: spent(cpu) };
  await utils.release();
  return report;
}

async function work() {
  const seen = { jobs: 0, began: 0, ended: 0 };
  const noop = async () => {
    seen.ended = now();
    seen.began ||= seen.ended;
    seen.jobs += 1;
  };
  console.log("ready");
  const told = await new Promise((resolve) => process.stdin.once("data", resolve).once("end", () => resolve("")));
  if (String(told) !== "go\n") return null;
  const cpu = process.cpuUsage();
  await runOnce({ preset, logger, noHandleSignals: true, taskList: { noop } });
  return { ...seen, cpu_s: spent(cpu) };
}

async function main() {
  if (errand === "install") {
    await runMigrations({ connectionString, logger });
    return {};
  }
  return errand === "enqueue" ? enqueue() : work();
}

main().then((report) => {
  if (report !== null) console.log(JSON.stringify(report));
  process.exit(0);
}, (error) => {
  console.error(error);
  process.exit(1);
});
