// BullMQ: `node bullmq_jobs.cjs work`, two such processes.
//
// https://docs.bullmq.io/guide/workers/concurrency: a concurrency factor in each process, and several processes; 200, as
// Tidemill has. https://docs.bullmq.io/guide/queues/auto-removal-of-jobs: completed jobs are removed.
// https://docs.bullmq.io/guide/queues/adding-bulks: addBulk. https://docs.bullmq.io/guide/going-to-production: workers
// retry their connection for ever (maxRetriesPerRequest null). A job whose lock is not renewed is stalled and comes back:
// the defaults of https://docs.bullmq.io/guide/workers/stalled-jobs.

const ledger = require("./ledger.cjs");
const { PAYLOAD, requireHere, serve } = require("./errands.cjs");
const { Queue, Worker } = requireHere("bullmq");

const place = new URL(process.env.BENCH_URL);
const connection = {
  host: place.hostname,
  port: Number(place.port),
  db: Number(place.pathname.slice(1) || 0),
  maxRetriesPerRequest: null,
};
const CONCURRENCY = 200;

const run = {
  noop: async ({ turn }) => ledger.noop(turn),
  stamp: async ({ job }) => ledger.event("stamp", job),
  slow: async ({ job }) => ledger.slow(job),
};

if (process.argv[2] === "work") {
  const worker = new Worker("bench", async (job) => run[job.name](job.data), { connection, concurrency: CONCURRENCY });
  worker.on("error", (error) => console.error(error));
  process.once("SIGTERM", () => worker.close().then(() => process.exit(0)));
} else {
  const queue = new Queue("bench", { connection, defaultJobOptions: { removeOnComplete: true } });
  serve({
    setup: () => queue.waitUntilReady(),
    one: (task, data) => queue.add(task, data),
    many: (turn, count) => queue.addBulk(Array.from({ length: count }, () => ({ name: "noop", data: { turn, payload: PAYLOAD } }))),
    left: async () => {
      const counts = await queue.getJobCounts("waiting", "active", "delayed", "prioritized");
      return Object.values(counts).reduce((sum, count) => sum + count, 0);
    },
    close: () => queue.close(),
  });
}
