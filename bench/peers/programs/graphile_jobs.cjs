// Graphile Worker: `node graphile_jobs.cjs work`, two such processes.
//
// https://worker.graphile.org/docs/performance, "with batching": 24 concurrent jobs, a pool of 25 connections, a local
// queue of 500, completions released together without delay. Bulk enqueue by add_jobs
// (https://worker.graphile.org/docs/sql-add-jobs). A job of a worker that died stays locked for four hours, which cannot
// be configured.

const ledger = require("./ledger.cjs");
const { PAYLOAD, requireHere, serve } = require("./errands.cjs");
const { Logger, makeWorkerUtils, run, runMigrations } = requireHere("graphile-worker");
const { Client } = requireHere("pg");

const connectionString = process.env.BENCH_URL;
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
const taskList = {
  noop: async ({ turn }) => ledger.noop(turn),
  stamp: async ({ job }) => ledger.event("stamp", job),
  slow: async ({ job }) => ledger.slow(job),
};

async function work() {
  const runner = await run({ preset, logger, taskList });
  await runner.promise;
}

function produce() {
  let utils = null;
  const opened = async () => (utils ??= await makeWorkerUtils({ connectionString, logger }));
  return serve({
    setup: () => runMigrations({ connectionString, logger }),
    one: async (task, data) => (await opened()).addJob(task, data),
    many: async (turn, count) => {
      const job = { identifier: "noop", payload: { turn, payload: PAYLOAD } };
      await (await opened()).addJobs(Array.from({ length: count }, () => job));
    },
    left: async () => {
      const client = new Client({ connectionString });
      await client.connect();
      const { rows } = await client.query("SELECT count(*)::int AS count FROM graphile_worker.jobs");
      await client.end();
      return rows[0].count;
    },
    close: async () => utils?.release(),
  });
}

(process.argv[2] === "work" ? work() : produce()).catch((error) => {
  console.error(error);
  process.exit(1);
});
